//! Refused starts, replaced tokens, lost requests: what comes back in the morning, and how soon.

use cloud_simulator::Act;
use domain::{
    record::{Direction, Phase},
    resource::{Power, SavedState},
    schedule::Desired,
};
use jiff::SignedDuration;
use lifecycle::{Event, event::Answer};
use serde_json::json;

use crate::support::{ACCOUNTS, World, droplet, fault, monday, pool, run, server, short_night};

const DROPLET: &str = "do-main/droplet/1";
const SERVER: &str = "hz-eu/server/11";
const POOL: &str = "do-main/node-pool/c1/p1";

fn is_settled(record: &domain::record::Record, at: Power) -> bool {
    record.phase == Phase::Settled { at }
}

/// A Droplet and a server that were stopped on Monday evening; it is 18:38 UTC.
async fn before_the_start() -> World {
    let fleet = [ACCOUNTS, &droplet(1, "web", &["offhours:office"]), &server(11, "")].concat();
    let world = World::start(&short_night("", ""), &fleet, monday("17:48:00")).await;
    world.run_until(monday("18:38:30")).await;
    for resource in [DROPLET, SERVER] {
        assert!(is_settled(&world.record(resource).await, Power::Stopped));
    }
    world
}

#[test]
fn a_pool_whose_lost_shrink_landed_comes_back_whole_whatever_a_person_left_of_it() {
    run(async {
        let pools = pool("count = 3\nautoscale = { min = 1, max = 5 }");
        let fleet = [ACCOUNTS, &pools].concat();
        let world = World::start(&short_night("", ""), &fleet, monday("17:48:00")).await;
        world.run_until(monday("17:59:30")).await;
        world.simulator().add_fault(fault(&json!({
            "match": { "method": "PUT" },
            "does": { "answer": { "status": 504, "after_effect": true } },
        })));
        world.run_until(monday("18:00:50")).await;
        // A developer whose jobs are pending wants one node back.
        let scale = Act::Scale { count: 1, autoscale: None };
        world.person(POOL, scale);
        world.run_until(monday("19:10:30")).await;
        let record = world.record(POOL).await;
        assert_eq!(record.saved, None);
        let size = record.observed.unwrap().size.unwrap();
        let SavedState::NodePool { count, autoscale } = size else {
            panic!("{size:?}");
        };
        let bounds = autoscale.map(|bounds| (bounds.min, bounds.max));
        assert_eq!((count, bounds), (3, Some((1, 5))));
    });
}

#[test]
fn one_answer_of_any_refusal_costs_a_start_minutes_and_not_the_day() {
    for (status, within) in [(401, 3), (403, 3), (404, 3), (422, 18)] {
        run(async {
            let mut world = before_the_start().await;
            for resource in [DROPLET, SERVER] {
                world.simulator().add_fault(fault(&json!({
                    "match": { "method": "POST", "resource": resource },
                    "does": { "answer": { "status": status } },
                })));
            }
            let edge = monday("18:40:30");
            world.run_until(edge).await;
            for resource in [DROPLET, SERVER] {
                let record = world.record(resource).await;
                assert!(record.in_flight().is_some(), "{status}: {record:#?}");
                let refused = |e: &&Event| matches!(e, Event::Refused { .. });
                let events = world.events(resource);
                let expected = usize::from(status == 422);
                assert_eq!(events.iter().filter(refused).count(), expected, "{status}");
            }
            world.run_until(edge + SignedDuration::from_mins(within)).await;
            for resource in [DROPLET, SERVER] {
                let record = world.record(resource).await;
                assert!(is_settled(&record, Power::Running), "{status}: {record:#?}");
            }
        });
    }
}

#[test]
fn a_change_that_is_not_permitted_needs_a_person_and_is_not_repeated_every_minute() {
    run(async {
        let mut world = before_the_start().await;
        let forbidden = json!({"id": "forbidden", "message": "You are not authorized"});
        world.simulator().add_fault(fault(&json!({
            "match": { "method": "POST", "resource": DROPLET },
            "times": 100,
            "does": { "answer": { "status": 403, "body": forbidden.to_string() } },
        })));
        let before = world.changes().len();
        world.run_until(monday("20:41:30")).await;
        // Ten in two hours for the Droplet, and one for the server.
        let sent = world.changes().len() - before;
        assert!((10..=13).contains(&sent), "{sent}");
        let is_told = |event: &&Event| {
            matches!(event, Event::Asked { answer: Answer::TokenRefused(words), .. }
                if words.contains("the scope droplet:update, or the account is unpaid or blocked"))
        };
        assert_eq!(world.events(DROPLET).iter().filter(is_told).count(), 1);
        let record = world.record(DROPLET).await;
        let request = record.request.as_ref().unwrap();
        assert!(request.problem.is_some(), "{record:#?}");
    });
}

#[test]
fn a_start_that_was_accepted_and_had_no_effect_is_sent_again_and_reported_once() {
    run(async {
        let mut world = before_the_start().await;
        let action = json!({"action": {"id": 987, "command": "start_server", "status": "success"}});
        world.simulator().add_fault(fault(&json!({
            "match": { "method": "POST", "resource": SERVER },
            "times": 2,
            "does": { "answer": { "status": 201, "body": action.to_string() } },
        })));
        world.run_until(monday("18:55:30")).await;
        let record = world.record(SERVER).await;
        assert!(record.in_flight().is_some(), "{record:#?}");
        assert!(record.request.unwrap().problem.is_some());
        world.run_until(monday("19:10:30")).await;
        assert!(is_settled(&world.record(SERVER).await, Power::Running));
        let events = world.events(SERVER);
        let stuck = events.iter().filter(|e| matches!(e, Event::Stuck { .. }));
        assert_eq!(stuck.count(), 1);
    });
}

#[test]
fn a_refusal_that_lasts_is_reported_once_and_asked_about_every_quarter_of_an_hour() {
    run(async {
        let mut world = before_the_start().await;
        world.simulator().add_fault(fault(&json!({
            "match": { "method": "POST", "resource": DROPLET },
            "times": 100,
            "does": { "answer": { "status": 422 } },
        })));
        let before = world.changes().len();
        world.run_until(monday("20:41:30")).await;
        let events = world.events(DROPLET);
        let refused = events.iter().filter(|e| matches!(e, Event::Refused { .. }));
        assert_eq!(refused.count(), 1);
        // Nine for the Droplet, and one for the server.
        assert_eq!(world.changes().len() - before, 10);
        // The stop edge still reverses it.
        world.run_until(monday("22:05:30")).await;
        assert!(is_settled(&world.record(DROPLET).await, Power::Stopped));
    });
}

#[test]
fn a_reversed_stop_is_started_as_soon_as_it_is_seen_and_watched_while_it_may_act() {
    run(async {
        let fleet = [ACCOUNTS, &droplet(1, "web", &["offhours:office"])].concat();
        let mut world = World::start(&short_night("", ""), &fleet, monday("10:00:00")).await;
        world.run_until(monday("10:06:30")).await;
        let target = json!({ "resources": [DROPLET] });
        world.stop(&target).await;
        world.run_until(monday("10:06:35")).await;
        let report = world.start_now(&target).await;
        let events: Vec<_> = report.outcomes.iter().map(|o| &o.event).collect();
        assert!(
            matches!(events[..], [Event::Watching { direction: Direction::Start, .. }]),
            "{events:?}"
        );
        world.run_until(monday("10:10:30")).await;
        let observed = world.record(DROPLET).await.observed.unwrap();
        assert_eq!(observed.power, Power::Running);
        // Its stop could act until now.
        world.run_until(monday("10:17:30")).await;
        let record = world.record(DROPLET).await;
        assert!(is_settled(&record, Power::Running), "{record:#?}");
        assert_eq!(world.changes().len(), 2);
        let events = world.events(DROPLET);
        let started = |e: &Event| matches!(e, Event::Seen { direction: Direction::Start, .. });
        assert!(events.iter().any(started), "{events:#?}");
    });
}

#[test]
fn a_stop_that_is_reversed_before_it_shows_is_watched_and_says_so() {
    run(async {
        let fleet = [ACCOUNTS, &server(11, "")].concat();
        let world = World::start(&short_night("", ""), &fleet, monday("10:00:00")).await;
        world.run_until(monday("10:06:30")).await;
        let target = json!({ "resources": [SERVER] });
        world.stop(&target).await;
        world.run_until(monday("10:06:35")).await;
        let report = world.start_now(&target).await;
        let events: Vec<_> = report.outcomes.iter().map(|o| &o.event).collect();
        assert!(matches!(events[..], [Event::Watching { .. }]), "{events:?}");
        // The guest still obeys the earlier shutdown, and is started again.
        world.run_until(monday("10:09:30")).await;
        let record = world.record(SERVER).await;
        assert!(record.watched_until().is_some(), "{record:#?}");
        assert_eq!(world.changes().len(), 2);
        world.run_until(monday("10:18:30")).await;
        assert!(is_settled(&world.record(SERVER).await, Power::Running));
    });
}

#[test]
fn the_same_invocation_delivered_once_more_undoes_no_later_command() {
    run(async {
        let fleet = [ACCOUNTS, &droplet(1, "web", &["offhours:office"])].concat();
        let world = World::start(&short_night("", ""), &fleet, monday("10:00:00")).await;
        world.run_until(monday("10:06:30")).await;
        let mut record = world.record(DROPLET).await;
        let first = domain::record::ManualCommand {
            instant: monday("10:06:00"),
            desired: Desired::Running,
            by: "ada".to_owned(),
            request_id: "second".to_owned(),
            earlier: vec!["first".to_owned()],
            rehearsal: false,
        };
        assert!(first.knows("first") && first.knows("second") && !first.knows("third"));
        assert_eq!(first.invocations(), ["second", "first"]);
        record.manual_command = Some(first);
        world.local.store().save(record).await.unwrap();
        world.stop(&json!({ "resources": [DROPLET] })).await;
        let command = world.record(DROPLET).await.manual_command.unwrap();
        assert_eq!(command.earlier, ["second", "first"]);
    });
}

#[test]
fn an_override_that_reverses_an_accepted_stop_does_not_wait_ten_minutes() {
    run(async {
        let fleet = [ACCOUNTS, &droplet(1, "web", &["offhours:office"])].concat();
        let world = World::start(&short_night("", ""), &fleet, monday("17:48:00")).await;
        world.run_until(monday("18:00:04")).await;
        world.override_with(DROPLET, Desired::Running, SignedDuration::from_hours(2)).await;
        world.run_until(monday("18:03:30")).await;
        let record = world.record(DROPLET).await;
        assert!(is_settled(&record, Power::Running), "{record:#?}");
    });
}
