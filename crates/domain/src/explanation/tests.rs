//! Table-driven tests of standing commands and next edges, in the week of
//! [`fixtures`](crate::tests::fixtures).

use super::*;
use crate::{
    configuration::PauseScope,
    resource::Power,
    tests::fixtures::{World, at, daily, droplet, office_droplet, world},
};

const STOPPED: Desired = Desired::Stopped;
const RUNNING: Desired = Desired::Running;

/// The command that a record follows at an instant, and its next edge.
fn shown(
    world: &World,
    record: &Record,
    now: &str,
) -> (Option<StandingCommand>, Option<EdgeExplanation>) {
    let (rules, now) = (world.rules(), at(now));
    let verdict = judge(record, Subject::recorded(record), rules, now);
    let command = standing_command(record, &verdict, rules, now);
    let next = next_edge(record, &verdict, command.as_ref(), rules, now);
    (command, next)
}

/// Checks until when a command stands: at which edge the Droplet changes next, and into which state.
#[track_caller]
fn stands(world: &World, record: &Record, now: &str, expected: Option<(&str, Desired)>) {
    let (command, next) = shown(world, record, now);
    let until = command.expect("no command stands").until;
    assert_eq!(next, until);
    let changes = until.map(|edge| (edge.at.unwrap(), edge.to.unwrap()));
    assert_eq!(changes, expected.map(|(time, to)| (at(time), to)));
}

#[test]
fn a_command_stands_until_the_resource_changes_and_not_only_its_schedule() {
    let stopped = || office_droplet().commanded("mon 16:54", STOPPED).settled(Power::Stopped);
    // The evening's edge wants it stopped, too.
    stands(&world(), &stopped(), "mon 17:00", Some(("tue 08:00", RUNNING)));
    let on_its_way = office_droplet()
        .commanded("mon 16:54", STOPPED)
        .in_flight_towards(Direction::Stop, "mon 16:54");
    stands(&world(), &on_its_way, "mon 17:00", Some(("tue 08:00", RUNNING)));
    let started = office_droplet().commanded("mon 21:15", RUNNING);
    stands(&world(), &started, "mon 21:20", Some(("tue 19:00", STOPPED)));
    let retaining = world().following("office", |policy| policy.retain_running = true);
    stands(&retaining, &started, "mon 21:20", None);
    let by_day = office_droplet().commanded("mon 12:00", RUNNING);
    stands(&retaining, &by_day, "mon 12:30", Some(("mon 19:00", STOPPED)));
    let overridden = world().overriding("office", RUNNING, "mon 18:00", "mon 20:00");
    stands(&overridden, &stopped(), "mon 17:00", Some(("mon 18:00", RUNNING)));
    let unscheduled = droplet().commanded("mon 16:54", STOPPED);
    let unscheduled = unscheduled.settled(Power::Stopped);
    stands(&world(), &unscheduled, "mon 17:00", None);

    // After the evening's edge, or after a person started it, it no longer follows the command.
    for (record, now) in [
        (stopped(), "mon 19:00"),
        (stopped().settled(Power::Running), "mon 17:00"),
        (office_droplet(), "mon 17:00"),
    ] {
        assert_eq!(shown(&world(), &record, now).0, None, "{now}");
    }
}

#[test]
fn the_next_edge_has_a_desired_state_and_belongs_to_what_may_be_touched() {
    let record = office_droplet().having_handled("mon 08:00", RUNNING);
    let next =
        EdgeExplanation { at: Some(at("mon 19:00")), to: Some(STOPPED), cause: Cause::Schedule };
    assert_eq!(shown(&world(), &record, "mon 18:55"), (None, Some(next)));

    let always = serde_json::json!({ "timezone": "UTC", "periods": [{}] });
    let always = world().with_schedule("always", always);
    let record = droplet().tagged(&["offhours:always"]);
    assert_eq!(shown(&always, &record, "mon 09:00"), (None, None));

    let two = world().with_schedule("night", daily("20:00", "06:00"));
    let conflict = office_droplet().tagged(&["offhours:office", "offhours:night"]);
    assert_eq!(shown(&two, &conflict, "mon 09:00"), (None, None));
}

/// Checks what comes after an instant: each time a state.
#[track_caller]
fn comes(world: &World, record: &Record, now: &str, expected: &[(&str, Desired)]) {
    let edges = coming(record, world.rules(), at(now)).take(expected.len());
    let found: Vec<_> = edges.map(|edge| (edge.key.instant, edge.desired)).collect();
    let expected: Vec<_> = expected.iter().map(|(time, to)| (at(time), Some(*to))).collect();
    assert_eq!(found, expected, "{now}");
}

#[test]
fn an_edge_that_a_pause_puts_off_comes_at_its_end() {
    let everything = || PauseScope::Everything;
    let paused = |starts, until| world().pausing(everything(), starts, "mon 17:00", until);
    let record = || office_droplet().having_handled("mon 08:00", RUNNING);
    let (edge, end, start) =
        (("mon 19:00", STOPPED), ("mon 21:00", STOPPED), ("tue 08:00", RUNNING));
    let evening = paused(false, "mon 21:00");
    comes(&evening, &record(), "mon 17:00", &[edge, end, start]);
    comes(&evening, &record(), "mon 20:00", &[end, start]);
    let next = EdgeExplanation { at: Some(at(end.0)), to: Some(STOPPED), cause: Cause::Schedule };
    assert_eq!(shown(&evening, &record(), "mon 20:00").1, Some(next));
    let stopped = record().having_handled("mon 19:00", STOPPED);
    comes(&evening, &stopped.settled(Power::Stopped), "mon 20:00", &[start]);
    let stopping = record().in_flight_towards(Direction::Stop, "mon 16:59");
    comes(&evening, &stopping, "mon 20:00", &[start]);

    // A later edge counts in its place: one that is sent, or is put off itself.
    let next_stop = ("tue 19:00", STOPPED);
    comes(&paused(true, "tue 09:00"), &record(), "mon 17:00", &[edge, start, next_stop]);
    let again = ("tue 09:00", RUNNING);
    comes(&paused(false, "tue 09:00"), &record(), "mon 17:00", &[edge, start, again, next_stop]);
    // One pause follows another, and one does not reach the edge.
    let office = PauseScope::Schedule("office".parse().unwrap());
    let both = paused(false, "mon 19:30").pausing(office, false, "mon 19:20", "mon 21:00");
    comes(&both, &record(), "mon 17:00", &[edge, end, start]);
    comes(&paused(false, "mon 19:00"), &record(), "mon 17:00", &[edge, start]);
}
