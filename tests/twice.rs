//! A command that is delivered twice, and one for a record that is ahead of the clock.

use cloud_simulator::Act;
use domain::{record::Direction, resource::Power};
use jiff::SignedDuration;
use lifecycle::{Event, Occurrence};
use serde_json::json;

use crate::{
    process::Process,
    support::{ACCOUNTS, World, monday, office_hours, run, server},
};

const SERVER: &str = "hz-eu/server/11";

async fn one_server(from: &str) -> World {
    let fleet = [ACCOUNTS, &server(11, "")].concat();
    World::start(&office_hours("", "", ""), &fleet, monday(from)).await
}

async fn observed(world: &World) -> Option<Power> {
    let observed = world.record(SERVER).await.observed;
    observed.map(|observed| observed.power)
}

#[test]
fn a_command_that_comes_twice_is_one_command() {
    run(async {
        let world = one_server("10:00:00").await;
        world.run_until(monday("10:01:30")).await;
        let stop = json!({ "resources": [SERVER], "by": "ada" });
        let process = Process::beside(&world);
        process.act("an id", Direction::Stop, &stop).await;
        assert_eq!(world.changes().len(), 1);
        world.run_until(monday("10:04:30")).await;
        assert_eq!(observed(&world).await, Some(Power::Stopped));
        // A person starts it at the provider; then the command is delivered again.
        world.person(SERVER, Act::PowerOn);
        world.run_until(monday("10:10:30")).await;
        assert_eq!(observed(&world).await, Some(Power::Running));
        let process = Process::beside(&world);
        process.act("an id", Direction::Stop, &stop).await;
        world.run_until(monday("10:20:30")).await;
        assert_eq!(world.changes().len(), 1);
        // Another invocation is another command.
        let process = Process::beside(&world);
        process.act("another id", Direction::Stop, &stop).await;
        assert_eq!(world.changes().len(), 2);
    });
}

#[test]
fn a_command_follows_the_edge_that_a_faster_clock_has_handled() {
    run(async {
        let world = one_server("17:48:00").await;
        world.run_until(monday("17:59:50")).await;
        let ahead = Process::later(&world, monday("18:00:00"));
        let report = ahead.hint(Direction::Stop, &[SERVER]).await;
        assert_eq!(report.outcomes.len(), 1);
        // Two seconds before the edge by its own clock, and after it by the record.
        let behind = Process::beside(&world);
        behind.clock.advance_to(monday("17:59:58"));
        let start = json!({ "resources": [SERVER], "by": "ada" });
        let report = behind.act("an id", Direction::Start, &start).await;
        let declined = |event: &Event| matches!(event, Event::Declined { .. });
        assert!(!report.outcomes.iter().any(|o| declined(&o.event)));
        let record = world.record(SERVER).await;
        let (handled, asked) = (record.handled.unwrap(), record.manual_command.unwrap());
        let just_after = handled.key.instant + SignedDuration::from_millis(1);
        assert_eq!(asked.instant, just_after);
        world.run_until(monday("18:20:30")).await;
        assert_eq!(observed(&world).await, Some(Power::Running));
    });
}

#[test]
fn what_a_clock_that_was_far_ahead_has_handled_is_reported_and_a_command_puts_it_right() {
    run(async {
        let mut world = one_server("12:00:00").await;
        world.run_until(monday("12:10:30")).await;
        let morning = monday("12:10:30") + SignedDuration::from_hours(20);
        Process::later(&world, morning).hint(Direction::Start, &[SERVER]).await;
        let handled = async |world: &World| world.record(SERVER).await.handled.unwrap().key.instant;
        assert!(handled(&world).await > monday("18:00:00"));
        world.run_until(monday("18:20:30")).await;
        // The stop of 18:00 is not sent: by the record, it is long over.
        assert_eq!(observed(&world).await, Some(Power::Running));
        let said = |outcome: &Occurrence| {
            let Event::Postponed { reason, .. } = &outcome.event else { return false };
            reason.to_string().contains("a clock that was ahead")
        };
        assert!(world.outcomes().iter().any(said), "{:?}", world.outcomes());
        world.stop(&json!({ "resources": [SERVER], "by": "ada" })).await;
        assert!(handled(&world).await < monday("18:30:00"));
        world.run_until(monday("18:30:30")).await;
        assert_eq!(observed(&world).await, Some(Power::Stopped));
        // The next morning is as it should be.
        world.run_until(morning).await;
        assert_eq!(observed(&world).await, Some(Power::Running));
    });
}
