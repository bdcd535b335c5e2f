//! Each edge of a schedule is reported once, whichever process counts it and however often.

use domain::{digest::Digest, schedule::Desired};
use environment::SteppedClock;
use jiff::{SignedDuration, Timestamp};
use lifecycle::Report;
use serde_json::json;
use store::{EdgeReport, Store, item::reported_edge_key};

use crate::{
    process::PollStatus,
    support::{RequestCounter, World, fault, monday, office_hours, one_of_each_kind, run},
};

/// A world in which the evening edge has been reported.
async fn after_the_edge() -> World {
    let configuration = office_hours("", "", "");
    let world = World::start(&configuration, &one_of_each_kind(), monday("17:48:00")).await;
    world.run_until(monday("18:31:30")).await;
    world
}

/// Runs one tick of another process. It holds no token, because nothing is in flight.
async fn tick(world: &World, store: &Store, writer: &str, at: Timestamp) -> Report {
    let poll_status = PollStatus::new(world, store, &[], SteppedClock::at(at));
    // Boxed, because several of these side by side in one test would fill its stack.
    Box::pin(poll_status.tick(writer)).await
}

/// Deletes the note that the evening edge has been reported.
async fn forget(world: &World) {
    let delete = world.engine.client().delete_item().table_name("offhours-accounts");
    let key = reported_edge_key(EdgeReport::Digest, &"office".parse().unwrap());
    delete.set_key(Some(key)).send().await.unwrap();
}

fn only(digests: &[Digest]) -> &Digest {
    let [digest] = digests else {
        panic!("not one digest: {digests:#?}");
    };
    digest
}

#[test]
fn ticks_at_once_and_cold_starts_report_an_edge_once() {
    run(async {
        let mut world = after_the_edge().await;
        let shown = only(world.digests()).clone();
        assert_eq!((shown.followed, shown.seen, shown.desired), (4, 4, Desired::Stopped));
        let at = monday("18:32:00");
        let (_, cold) = RequestCounter::on(&world.engine);
        assert_eq!(tick(&world, &cold, "cold", at).await.digests, []);

        forget(&world).await;
        let (_, first) = RequestCounter::on(&world.engine);
        let (_, second) = RequestCounter::on(&world.engine);
        // The same invocation delivered twice runs twice.
        let (left, right) = tokio::join!(
            tick(&world, &first, "twice", at),
            tick(&world, &second, "twice", at + SignedDuration::from_millis(1)),
        );
        let both = [left.digests, right.digests].concat();
        let again = only(&both);
        assert_eq!((again.edge, again.seen), (shown.edge, shown.seen));
        for (store, at) in [(&first, "18:33:00"), (&cold, "18:34:00"), (&second, "18:40:00")] {
            assert_eq!(tick(&world, store, "later", monday(at)).await.digests, []);
        }
    });
}

#[test]
fn an_applied_configuration_does_not_report_an_edge_again() {
    run(async {
        let mut world = after_the_edge().await;
        let changed = office_hours("max_stops = 7", "", "");
        world.apply(&changed).await;
        world.run_until(monday("18:45:00")).await;
        only(world.digests());
    });
}

#[test]
fn an_edge_that_was_not_counted_in_time_is_not_reported() {
    run(async {
        let world = after_the_edge().await;
        forget(&world).await;
        let (counter, cold) = RequestCounter::on(&world.engine);
        let report = tick(&world, &cold, "late", monday("18:40:01")).await;
        assert_eq!(report.digests, []);
        assert!(counter.take_count() > 0);
    });
}

#[test]
fn a_tick_after_an_edge_was_reported_costs_one_request_more_and_then_none() {
    run(async {
        let world = after_the_edge().await;
        let (counter, cold) = RequestCounter::on(&world.engine);
        // The head, the overrides, the configuration in two tables, the states, the due records, the
        // digests.
        for (at, most) in [("18:32:00", 7), ("18:32:30", 4)] {
            let report = tick(&world, &cold, "idle", monday(at)).await;
            assert_eq!(report, Report::default());
            let requests = counter.take_count();
            assert!((1..=most).contains(&requests), "{at}: {requests}");
        }
    });
}

#[test]
fn at_the_deadline_an_edge_is_reported_with_what_is_unfinished() {
    run(async {
        let configuration = office_hours("", "", "");
        let mut world = World::start(&configuration, &one_of_each_kind(), monday("17:48:00")).await;
        world.run_until(monday("17:59:30")).await;
        world.simulator().add_fault(fault(&json!({
            "match": { "account": "hz-eu" },
            "times": 100_000,
            "does": { "answer": { "status": 503 } },
        })));
        world.run_until(monday("18:34:30")).await;
        assert_eq!(world.digests(), []);
        world.run_until(monday("18:50:00")).await;
        let digest = only(world.digests());
        assert_eq!(digest.at, monday("18:35:00"));
        assert_eq!((digest.seen, digest.unfinished), (3, 1));
        assert_eq!(digest.not_seen[0].name, "ci");
    });
}

#[test]
fn a_stop_just_before_midnight_is_reported_once_it_has_ended() {
    run(async {
        // In Dhaka, midnight is at 18:00 UTC.
        let configuration = office_hours("", "", "")
            .replace("Europe/Berlin", "Asia/Dhaka")
            .replace(r#"weekdays = "mon-fri", begin = "08:00", end = "19:00""#, r#"end = "23:55""#);
        let mut world = World::start(&configuration, &one_of_each_kind(), monday("17:48:00")).await;
        world.run_until(monday("18:45:00")).await;
        let digest = only(world.digests());
        assert_eq!(digest.edge, monday("17:55:00"));
        assert_eq!((digest.followed, digest.seen, digest.unfinished), (4, 4, 0));
    });
}

#[test]
fn an_edge_that_no_resource_follows_is_not_reported() {
    run(async {
        let configuration = office_hours("", "", "");
        let fleet = one_of_each_kind().replace("office", "off");
        let mut world = World::start(&configuration, &fleet, monday("17:48:00")).await;
        world.run_until(monday("18:45:00")).await;
        assert_eq!(world.digests(), []);
        assert_eq!(world.changes().len(), 0);
    });
}
