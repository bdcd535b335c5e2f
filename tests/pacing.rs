//! Dispatch stays within what an account's rate limit leaves, and hands out starts first.

use domain::{pacing::RateLimit, record::Record, resource::Power};
use jiff::{SignedDuration, Timestamp};
use store::AccountState;

use crate::{
    process::DiscardInvocations,
    support::{ACCOUNTS, World, dispatch, first_seen, monday, office_hours, reference, run},
};

/// The twentieth of Hetzner's limit that is kept back.
const KEPT: u64 = 180;

/// The number of requests for a list of the servers.
const LIST: u64 = 1;

/// A world with this many servers to start and to stop at 18:00.
async fn due_at_the_edge(starts: u64, stops: u64) -> World {
    let nights = r#"
        [schedules.nights]
        timezone = "UTC"
        periods = [{ begin = "18:00", end = "06:00" }]
    "#;
    let configuration = office_hours("", "", nights);
    let world = World::start(&configuration, ACCOUNTS, monday("17:58:00")).await;
    for id in 1..=starts + stops {
        // The stops are the older ones in the index.
        let (schedule, power, earlier) = if id <= starts {
            ("nights", Power::Stopped, 0)
        } else {
            ("office", Power::Running, 60)
        };
        let record = Record {
            due_at: Some(edge() - SignedDuration::from_secs(earlier)),
            ..first_seen(id, Some(schedule), power)
        };
        world.local.store().save(record).await.unwrap();
    }
    world
}

fn edge() -> Timestamp {
    monday("18:00:00")
}

/// The number of starts and stops that one tick hands out if this many requests were left this long
/// ago.
async fn handed_out(world: &World, remaining: u64, age: SignedDuration) -> (usize, usize) {
    let store = world.local.store();
    store.save_account_state(&state(remaining, age)).await.unwrap();
    let dispatched = dispatch(store, &DiscardInvocations, edge()).await;
    (dispatched.starts.len(), dispatched.stops.len())
}

/// An account that was listed at the edge, with this many requests left this long before it.
fn state(remaining: u64, age: SignedDuration) -> AccountState {
    AccountState {
        listed_at: Some(edge()),
        tried_at: Some(edge()),
        rate: Some(RateLimit { remaining, at: edge() - age, limit: None, others: None }),
        ..AccountState::unknown("hz-eu".parse().unwrap())
    }
}

const NOW: SignedDuration = SignedDuration::ZERO;

#[test]
fn a_twentieth_of_the_limit_is_for_others_who_share_the_token() {
    run(async {
        let world = due_at_the_edge(0, 20).await;
        assert_eq!(handed_out(&world, KEPT + LIST + 12, NOW).await, (0, 12));
        assert_eq!(handed_out(&world, KEPT + LIST, NOW).await, (0, 0));
        assert_eq!(handed_out(&world, 1, NOW).await, (0, 0));
        assert_eq!(handed_out(&world, 1000, NOW).await, (0, 20));
    });
}

#[test]
fn what_was_left_a_quarter_of_an_hour_ago_says_nothing() {
    run(async {
        let world = due_at_the_edge(0, 20).await;
        let old = SignedDuration::from_mins(15);
        assert_eq!(handed_out(&world, 0, old).await, (0, 20));
    });
}

#[test]
fn what_is_left_goes_to_the_starts_first_and_a_fourth_of_it_to_the_stops() {
    run(async {
        let world = due_at_the_edge(8, 8).await;
        assert_eq!(handed_out(&world, KEPT + 14, NOW).await, (8, 4));
        // There is not enough for everything that is to start.
        assert_eq!(handed_out(&world, KEPT + 8, NOW).await, (5, 1));
        // A stop is never handed out alone.
        assert_eq!(handed_out(&world, KEPT + 3, NOW).await, (2, 0));
    });
}

#[test]
fn what_has_failed_before_comes_after_what_was_not_tried() {
    run(async {
        let world = due_at_the_edge(0, 20).await;
        for id in 1..=15 {
            let mut failing = world.record(&format!("hz-eu/server/{id}")).await;
            failing.attempts = 2;
            world.local.store().save(failing).await.unwrap();
        }
        let state = state(KEPT + LIST + 6, NOW);
        let store = world.local.store();
        store.save_account_state(&state).await.unwrap();
        let stops = dispatch(store, &DiscardInvocations, edge()).await.stops;
        let others = (16..=20).map(|id| reference(&format!("hz-eu/server/{id}")));
        assert_eq!(stops.len(), 6);
        assert!(others.into_iter().all(|other| stops.contains(&other)));
    });
}
