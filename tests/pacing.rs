//! Dispatch hands out within what an account's rate limit leaves, and what must run goes first.

use domain::{record::Record, resource::Power};
use jiff::{SignedDuration, Timestamp};
use store::{AccountState, Rate};

use crate::{
    process::Nowhere,
    support::{ACCOUNTS, World, dispatch, first_seen, monday, office_hours, run},
};

/// What a server costs: a read and a change.
const REQUESTS_EACH: u64 = 2;

/// An account of a hundred servers, of which so many are to start at 18:00 and so many to stop.
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

/// How many starts and stops one tick hands out, when so many requests were left so long ago.
async fn handed_out(world: &World, remaining: u64, age: SignedDuration) -> (usize, usize) {
    let store = world.local.store();
    let state = AccountState {
        listed_at: Some(edge()),
        tried_at: Some(edge()),
        rate: Some(Rate {
            remaining,
            at: edge() - age,
        }),
        ..AccountState::unknown("hz-eu".parse().unwrap())
    };
    store.save_account_state(&state).await.unwrap();
    let dispatched = dispatch(store, &Nowhere, edge()).await;
    (dispatched.starts.len(), dispatched.stops.len())
}

const NOW: SignedDuration = SignedDuration::ZERO;

#[test]
fn half_of_what_is_left_is_for_others_who_share_the_token() {
    run(async {
        let world = due_at_the_edge(0, 20).await;
        let remaining = 40;
        let most = usize::try_from(remaining / 2 / REQUESTS_EACH).unwrap();
        let (_, stops) = handed_out(&world, remaining, NOW).await;
        assert!((1..=most).contains(&stops), "{stops} of at most {most}");
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
fn what_is_left_goes_to_the_starts_first() {
    run(async {
        let world = due_at_the_edge(8, 8).await;
        let (starts, stops) = handed_out(&world, 40, NOW).await;
        assert_eq!(starts, 8);
        assert!(stops < 8, "{stops}");
        // Where there is not enough for all that are to start, nothing is stopped.
        let (starts, stops) = handed_out(&world, 20, NOW).await;
        assert!(starts > 0 && stops == 0, "{starts} and {stops}");
    });
}
