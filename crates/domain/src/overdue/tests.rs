//! What is overdue, in the week of [`fixtures`](crate::tests::fixtures).

use super::*;
use crate::{
    record::{Ask, Cause, Forced, Observed, Opposite, Rank, Request, Transition},
    step::Step,
    stop_method::StopMethod,
    tests::fixtures::{World, at, droplet, office_droplet, only_observe, reference, world},
};

const RUNNING: Desired = Desired::Running;
const STOPPED: Desired = Desired::Stopped;

impl World {
    /// Returns since when the record has been overdue, under a configuration that has always been
    /// in force.
    fn overdue(&self, record: &Record, now: &str) -> Option<Timestamp> {
        overdue(record, self.rules(), None, at(now)).map(|overdue| overdue.since)
    }
}

#[track_caller]
fn check(world: &World, record: &Record, now: &str, since: Option<&str>) {
    assert_eq!(world.overdue(record, now), since.map(at), "at {now}");
}

/// Returns a record stopped on Monday evening, as it should be.
fn stopped_overnight() -> Record {
    office_droplet()
        .having_handled("mon 19:00", STOPPED)
        .settled(Power::Stopped)
        .showing(Power::Stopped, "mon 19:01")
}

/// Returns a record with a transition in flight, begun at an edge that it handled.
fn in_flight(direction: Direction, edge: &str, ask: Ask) -> Record {
    let mut record = office_droplet()
        .having_handled(edge, direction.desired())
        .in_flight_towards(direction, edge);
    record.request = Some(Request {
        direction,
        asked_at: at(edge),
        looked_at: at(edge),
        ask,
        earlier_unanswered: false,
        forced: Forced::No,
        effect_timeout: None,
        first_accepted_at: None,
        step: Step::Off { gracefully: false },
        created_machine: None,
        problem: None,
    });
    record
}

impl Record {
    fn showing(mut self, power: Power, since: &str) -> Self {
        self.observed = Some(Observed { power, size: None, busy: None, at: at(since) });
        self
    }

    /// Turns the record into one of another kind, under the same schedule.
    fn of_kind(mut self, reference_text: &str) -> Self {
        self.reference = reference(reference_text);
        self
    }
}

#[test]
fn a_machine_whose_start_edge_is_not_handled_is_overdue_after_a_quarter_of_an_hour() {
    let mut record = stopped_overnight();
    check(&world(), &record, "tue 07:59", None);
    check(&world(), &record, "tue 08:15", None);
    check(&world(), &record, "tue 08:15:01", Some("tue 08:00"));
    let overdue = overdue(&record, world().rules(), None, at("tue 09:08"));
    assert_eq!(overdue.map(|overdue| overdue.desired), Some(RUNNING));
    // After many retries, only the edge still shows when it became due.
    record.attempts = 9;
    record.retry_at = Some(at("tue 09:20"));
    record.due_at = record.retry_at;
    check(&world(), &record, "tue 09:08", Some("tue 08:00"));
    check(&world(), &record, "tue 18:59", Some("tue 08:00"));
    // Stopped is desired again, and it is stopped.
    check(&world(), &record, "tue 21:00", None);
}

#[test]
fn each_kind_has_its_own_time_and_some_minutes_more() {
    for (kind, last) in [
        ("do-main/droplet/1", "tue 08:15"),
        ("hz-eu/server/1", "tue 08:15"),
        ("do-main/node-pool/c1/p1", "tue 08:20"),
        ("do-main/database/d1", "tue 08:35"),
    ] {
        // A server's label names the schedule as a tag does.
        let record =
            stopped_overnight().tagged(&["offhours:office", "offhours=office"]).of_kind(kind);
        check(&world(), &record, last, None);
        let later = format!("{last}:01");
        check(&world(), &record, &later, Some("tue 08:00"));
    }
}

#[test]
fn a_stop_that_does_not_happen_is_overdue_as_well() {
    let record = office_droplet().having_handled("mon 08:00", RUNNING);
    check(&world(), &record, "mon 19:10", None);
    check(&world(), &record, "mon 20:00", Some("mon 19:00"));
}

#[test]
fn one_that_shows_what_is_wanted_is_not_whatever_was_handled() {
    let runs = stopped_overnight().settled(Power::Running);
    check(&world(), &runs, "tue 09:00", None);
    let between = stopped_overnight().settled(Power::Between);
    check(&world(), &between, "tue 09:00", Some("tue 08:00"));
}

#[test]
fn what_a_person_changed_after_the_edge_was_handled_is_not_overdue() {
    let record = office_droplet().having_handled("tue 08:00", RUNNING).settled(Power::Stopped);
    check(&world(), &record, "tue 12:00", None);
    // Nor is a transition that a person overtook, or that was released: it has settled there.
    let started = office_droplet().having_handled("mon 19:00", STOPPED).settled(Power::Running);
    check(&world(), &started, "mon 23:00", None);
}

#[test]
fn a_transition_under_way_has_the_time_from_its_edge() {
    let failed = Ask::Failed { retry_at: at("tue 09:15") };
    let accepted = Ask::Accepted { at: at("tue 08:01"), action: None };
    for ask in [Ask::Open, failed, accepted] {
        let record = in_flight(Direction::Start, "tue 08:00", ask);
        let record = record.showing(Power::Stopped, "mon 19:01");
        check(&world(), &record, "tue 08:15", None);
        check(&world(), &record, "tue 09:00", Some("tue 08:00"));
    }
}

#[test]
fn one_claimed_late_has_been_due_since_its_edge() {
    let record = stopped_overnight().having_handled("tue 08:00", RUNNING);
    let record = record.in_flight_towards(Direction::Start, "tue 09:00");
    check(&world(), &record, "tue 09:01", Some("tue 08:00"));
}

#[test]
fn one_under_way_the_other_way_is_judged_by_what_it_shows() {
    let stopping = in_flight(Direction::Stop, "mon 19:00", Ask::Open);
    let off = stopping.clone().showing(Power::Stopped, "mon 19:01");
    check(&world(), &off, "tue 09:00", Some("tue 08:00"));
    let on = stopping.showing(Power::Running, "mon 08:01");
    check(&world(), &on, "tue 09:00", None);
}

#[test]
fn one_seen_at_its_end_and_only_watched_is_there() {
    let mut record = office_droplet()
        .having_handled("tue 08:00", RUNNING)
        .in_flight_towards(Direction::Start, "tue 08:00")
        .showing(Power::Running, "tue 08:00");
    record.opposite = Some(Opposite { until: at("tue 08:30"), may_become: None });
    check(&world(), &record, "tue 08:20", None);
    // Not observed any more: what was seen may have changed since.
    check(&world(), &record, "tue 08:30", Some("tue 08:00"));
    record.opposite = Some(Opposite { until: at("tue 08:30"), may_become: None });
    let record = record.showing(Power::Stopped, "tue 08:02");
    check(&world(), &record, "tue 08:20", Some("tue 08:00"));
}

/// Returns records whose transition ended without reaching its target state.
fn ended(direction: Direction, edge: &str) -> [Record; 2] {
    let record = in_flight(direction, edge, Ask::Open);
    let transition = || Transition {
        target: None,
        method: StopMethod::Graceful,
        forced: false,
        was_running: false,
        direction,
        claimed_at: at(edge),
        cause: Cause::Schedule,
        schedule: None,
    };
    let reason = || "a reason".to_owned();
    let stuck = Phase::Stuck { transition: transition(), since: at(edge), reason: reason() };
    let refused = Phase::Refused { transition: transition(), reason: reason() };
    [stuck, refused].map(|phase| Record { phase, ..record.clone() })
}

#[test]
fn what_is_stuck_or_refused_is_overdue_only_once_a_later_edge_is() {
    for record in ended(Direction::Stop, "mon 19:00") {
        let running = record.clone().showing(Power::Running, "mon 08:01");
        check(&world(), &running, "mon 23:00", None);
        check(&world(), &running, "tue 09:00", None);
        let off = record.showing(Power::Stopped, "mon 19:30");
        check(&world(), &off, "tue 09:00", Some("tue 08:00"));
    }
    for record in ended(Direction::Start, "tue 08:00") {
        let off = record.showing(Power::Stopped, "mon 19:01");
        check(&world(), &off, "tue 12:00", None);
    }
}

#[test]
fn what_may_not_be_touched_is_not_overdue() {
    let record = stopped_overnight();
    let now = "tue 09:00";
    check(&world(), &record, now, Some("tue 08:00"));
    check(&world().protecting("do-main/droplet/*"), &record, now, None);
    let opted_out = record.clone().tagged(&["offhours:off"]);
    check(&world(), &opted_out, now, None);
    let unnamed = record.clone().tagged(&[]);
    check(&world(), &unnamed, now, None);
    let unknown = record.clone().tagged(&["offhours:ofice"]);
    check(&world(), &unknown, now, None);
    let held = Record { held: true, handled: None, ..record.clone() };
    check(&world(), &held, now, None);
    let conflict = Record { duplicate_of: Some(reference("do-two/droplet/1")), ..record.clone() };
    check(&world(), &conflict, now, None);
    let gone = Record { phase: Phase::Gone { since: at("mon 22:00") }, ..record.clone() };
    check(&world(), &gone, now, None);
    let mut without = world();
    without.configuration.accounts.clear();
    check(&without, &record, now, None);
}

#[test]
fn what_is_only_observed_is_not_overdue() {
    let due = stopped_overnight();
    let under_way = in_flight(Direction::Start, "tue 08:00", Ask::Open);
    let service = || {
        let mut world = world();
        world.configuration.settings.mode = Mode::Observe;
        world
    };
    let account = || {
        let mut world = world();
        let account = world.configuration.accounts.values_mut();
        account.for_each(only_observe);
        world
    };
    let schedule = || world().following("office", |policy| policy.mode = Mode::Observe);
    for world in [service(), account(), schedule()] {
        check(&world, &due, "tue 09:00", None);
        check(&world, &under_way, "tue 09:00", None);
    }
}

#[test]
fn what_retain_running_leaves_is_not_overdue() {
    let retaining = world().following("office", |policy| policy.retain_running = true);
    let mut record = office_droplet().having_handled("mon 08:00", RUNNING);
    record.retained = true;
    check(&retaining, &record, "mon 20:00", None);
    check(&world(), &record, "mon 20:00", Some("mon 19:00"));
    // `retain_running` does not apply to the edge of an override.
    let overridden = retaining.overriding("office", STOPPED, "mon 20:00", "mon 23:00");
    check(&overridden, &record, "mon 21:00", Some("mon 20:00"));
}

#[test]
fn nothing_is_late_by_what_was_wanted_before_it_joined() {
    let mut record = office_droplet();
    record.joined_at = Some(at("mon 22:30"));
    check(&world(), &record, "mon 22:31", None);
    check(&world(), &record, "mon 22:46", Some("mon 22:30"));
    let claimed = Record {
        joined_at: record.joined_at,
        ..in_flight(Direction::Stop, "mon 19:00", Ask::Open)
    };
    check(&world(), &claimed, "mon 22:45", None);
    // The next edge is later than both.
    check(&world(), &stopped_overnight(), "tue 08:16", Some("tue 08:00"));
}

#[test]
fn nothing_is_late_by_what_a_new_configuration_wants_from_earlier_on() {
    let record = stopped_overnight();
    let world = world();
    let since = |in_force_since: &str, now: &str| {
        let in_force_since = Some(at(in_force_since));
        overdue(&record, world.rules(), in_force_since, at(now)).map(|overdue| overdue.since)
    };
    assert_eq!(since("tue 09:00", "tue 09:15"), None);
    assert_eq!(since("tue 09:00", "tue 09:16"), Some(at("tue 09:00")));
    assert_eq!(since("mon 12:00", "tue 09:00"), Some(at("tue 08:00")));
}

#[test]
fn what_is_put_back_has_its_time_from_when_it_was_seen_otherwise() {
    let enforcing = world().following("office", |policy| policy.enforce = true);
    let drifted = office_droplet()
        .having_handled("mon 19:00", STOPPED)
        .settled(Power::Running)
        .showing(Power::Running, "mon 22:00");
    check(&enforcing, &drifted, "mon 22:15", None);
    check(&enforcing, &drifted, "mon 22:16", Some("mon 22:00"));
    let put_back = office_droplet()
        .having_handled("mon 19:00", STOPPED)
        .in_flight_towards(Direction::Stop, "mon 22:01")
        .showing(Power::Running, "mon 22:00");
    check(&enforcing, &put_back, "mon 22:16", None);
    check(&enforcing, &put_back, "mon 22:17", Some("mon 22:01"));
}

#[test]
fn overrides_and_commands_are_wanted_from_their_own_instants_on() {
    let id = "do-main/droplet/1";
    let overridden = world().overriding(id, RUNNING, "mon 21:00", "mon 23:00");
    let record = stopped_overnight();
    check(&overridden, &record, "mon 21:15", None);
    check(&overridden, &record, "mon 21:30", Some("mon 21:00"));
    check(&overridden, &record, "mon 23:00", None);
    let commanded = droplet().settled(Power::Stopped).commanded("mon 21:00", RUNNING);
    check(&world(), &commanded, "mon 21:15", None);
    check(&world(), &commanded, "mon 22:00", Some("mon 21:00"));
}

#[test]
fn a_schedule_that_wants_nothing_now_has_nothing_overdue() {
    let only_begins = serde_json::json!({
        "timezone": "UTC",
        "periods": [{"begin": "08:00"}],
    });
    let world = world().with_schedule("office", only_begins);
    let record = stopped_overnight();
    check(&world, &record, "tue 07:00", None);
    check(&world, &record, "tue 09:00", Some("tue 08:00"));
    let rank = Rank::Schedule;
    let handled = record.having_handled_ranked("tue 08:00", rank, RUNNING);
    check(&world, &handled, "wed 07:00", None);
}
