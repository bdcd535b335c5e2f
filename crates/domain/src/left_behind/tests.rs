//! Table-driven tests of what is left behind, in the week of [`fixtures`](crate::tests::fixtures).

use super::*;
use crate::{
    configuration::Mode,
    hibernation::Hibernation,
    record::{Direction, Observed},
    resource::{Power, SavedState},
    tests::fixtures::{World, at, droplet, office_droplet, world},
};

const STOPPED: Desired = Desired::Stopped;
const RUNNING: Desired = Desired::Running;
const ORPHANED: Option<LeftBehind> = Some(LeftBehind::Orphaned);

#[track_caller]
fn check(world: &World, record: &Record, expected: Option<LeftBehind>) {
    let found = left_behind(record, world.rules(), at("mon 21:00"));
    assert_eq!(found, expected);
}

fn owed(record: Record) -> Record {
    Record { saved: Some(SavedState::NodePool { count: 3, autoscale: None }), ..record }
}

/// Returns records stopped by the schedule `office`, by a command while it covered them, or by an
/// override.
fn stopped() -> [(&'static str, Record); 3] {
    let of = |instant: &str, rank| {
        let record = office_droplet().having_handled_ranked(instant, rank, STOPPED);
        record.settled(Power::Stopped)
    };
    [
        ("schedule", of("mon 19:00", Rank::Schedule)),
        ("command", of("mon 18:00", Rank::Manual).commanded("mon 18:00", STOPPED)),
        ("override", of("mon 18:00", Rank::OverrideSet)),
    ]
}

/// Adds the override of the Droplet that made the stop and has ended.
fn overridden(world: World) -> World {
    world.overriding("do-main/droplet/1", STOPPED, "mon 18:00", "mon 20:00")
}

#[test]
fn what_was_stopped_by_whatever_means_is_orphaned_once_its_schedule_goes() {
    for (by, record) in stopped() {
        assert!(record.is_held_stopped(), "{by}");
        for record in [owed(record.clone()), record] {
            check(&overridden(world()), &record, None);
            check(&overridden(world().without_schedules()), &record, ORPHANED);
            let untagged = record.clone().tagged(&[]);
            check(&overridden(world()), &untagged, ORPHANED);
            let opted_out = record.clone().tagged(&["offhours:office", "offhours:off"]);
            check(&overridden(world()), &opted_out, ORPHANED);
            let gone = Record { phase: Phase::Gone { since: at("mon 20:00") }, ..untagged };
            let is_owed = gone.saved.is_some();
            check(&overridden(world()), &gone, is_owed.then_some(LeftBehind::Gone));
        }
    }
}

#[test]
fn what_runs_and_is_owed_nothing_or_was_stopped_elsewhere_is_not_left_behind() {
    let [(_, stopped), ..] = stopped();
    let untagged = stopped.tagged(&[]);
    check(&world(), &untagged.clone().settled(Power::Running), None);
    check(&world(), &owed(untagged).settled(Power::Running), ORPHANED);
    check(&world(), &droplet().settled(Power::Stopped), None);
}

#[test]
fn what_was_stopped_and_is_not_known_for_a_moment_is_held_stopped() {
    for (by, record) in stopped() {
        let unknown = record.settled(Power::Between);
        assert!(unknown.is_held_stopped(), "{by}");
        check(&world().without_schedules(), &unknown, ORPHANED);
    }
    assert!(!droplet().settled(Power::Between).is_held_stopped());
}

/// Returns a record whose start, begun in the morning, has not been seen to succeed.
fn starting() -> Record {
    let record = office_droplet().having_handled("mon 08:00", RUNNING);
    seen(record.in_flight_towards(Direction::Start, "mon 08:00"), Power::Stopped)
}

fn seen(record: Record, power: Power) -> Record {
    Record {
        observed: Some(Observed { power, size: None, busy: None, at: at("mon 08:01") }),
        ..record
    }
}

#[test]
fn what_has_not_been_started_yet_is_held_stopped() {
    let stuck = |record: Record| {
        let transition = record.in_flight().unwrap().clone();
        Record {
            phase: Phase::Stuck { transition, since: at("mon 08:11"), reason: String::new() },
            ..record
        }
    };
    for record in [starting(), stuck(starting())] {
        assert!(record.is_held_stopped());
        check(&world(), &record, None);
        check(&world().without_schedules(), &record, ORPHANED);
        check(&world(), &record.clone().tagged(&[]), ORPHANED);
        let runs = seen(record, Power::Running);
        assert!(!runs.is_held_stopped());
        check(&world(), &runs.tagged(&[]), None);
    }
}

#[test]
fn what_a_stop_that_failed_later_switched_off_is_held_stopped() {
    let stopping = office_droplet().having_handled("mon 19:00", STOPPED);
    let stopping = stopping.in_flight_towards(Direction::Stop, "mon 19:00");
    let transition = stopping.in_flight().unwrap().clone();
    let (since, reason) = (at("mon 19:20"), String::new());
    let refused = Phase::Refused { transition: transition.clone(), reason: reason.clone() };
    for phase in [refused, Phase::Stuck { transition, since, reason }] {
        let record = Record { phase, ..stopping.clone() };
        let off = seen(record.clone(), Power::Stopped);
        assert!(off.is_held_stopped());
        check(&world(), &off, None);
        check(&world().without_schedules(), &off, ORPHANED);
        let on = seen(record, Power::Running);
        assert!(!on.is_held_stopped());
        check(&world().without_schedules(), &on, None);
    }
}

#[test]
fn a_start_by_a_person_that_was_given_up_was_not_meant_to_stay_off() {
    let mut record = droplet()
        .commanded("mon 18:00", RUNNING)
        .having_handled_ranked("mon 18:00", Rank::Manual, STOPPED)
        .settled(Power::Stopped);
    record.handled.as_mut().unwrap().schedule = None;
    check(&world(), &record, ORPHANED);
}

#[test]
fn a_machine_that_a_person_stopped_under_no_schedule_was_meant_to_stay_off() {
    let mut record = droplet()
        .commanded("mon 18:00", STOPPED)
        .having_handled_ranked("mon 18:00", Rank::Manual, STOPPED)
        .settled(Power::Stopped);
    record.handled.as_mut().unwrap().schedule = None;
    check(&world(), &record, None);
    check(&world(), &owed(record), ORPHANED);
}

#[test]
fn what_a_person_wants_now_is_not_left_behind() {
    let [(_, by_schedule), ..] = stopped();
    let owed = owed(by_schedule.tagged(&[]));
    check(&world(), &owed, ORPHANED);
    for desired in [STOPPED, RUNNING] {
        let until_ten = world().overriding("do-main/droplet/1", desired, "mon 20:00", "mon 22:00");
        check(&until_ten, &owed, None);
    }
    let started = owed.clone().commanded("mon 20:30", RUNNING);
    check(&world(), &started, None);
    let stopped_again = owed.commanded("mon 20:30", STOPPED);
    check(&world(), &stopped_again, ORPHANED);
}

#[test]
fn what_is_gone_and_was_off_when_it_was_last_seen_is_left_behind_whatever_covers_it() {
    let [(_, by_schedule), ..] = stopped();
    let gone = |power| Record {
        phase: Phase::Gone { since: at("mon 20:00") },
        observed: Some(Observed { power, size: None, busy: None, at: at("mon 19:01") }),
        ..by_schedule.clone()
    };
    check(&world(), &gone(Power::Stopped), Some(LeftBehind::Gone));
    check(&world(), &gone(Power::Running), None);
    let removed = world().without_account("do-main");
    check(&removed, &owed(gone(Power::Stopped)), None);
}

#[test]
fn an_override_covers_only_what_it_starts() {
    let [(_, by_schedule), ..] = stopped();
    let untagged = by_schedule.tagged(&[]);
    for (desired, expected) in [(STOPPED, Coverage::Nothing), (RUNNING, Coverage::Full)] {
        let until_ten = world().overriding("do-main/droplet/1", desired, "mon 20:00", "mon 22:00");
        let found = coverage(&untagged, until_ten.rules(), at("mon 21:00"));
        assert_eq!(found, expected);
    }
}

#[test]
fn what_observe_mode_keeps_stopped_is_left_behind_once_it_should_run() {
    let mut by_deployment = world();
    by_deployment.configuration.floor.mode = Mode::Observe;
    let mut by_service = world();
    by_service.configuration.settings.mode = Mode::Observe;
    let by_schedule = world().following("office", |policy| policy.mode = Mode::Observe);
    for (observer, observing) in [
        (Observer::Deployment, by_deployment),
        (Observer::Service, by_service),
        (Observer::Schedule, by_schedule),
    ] {
        for (_, record) in stopped() {
            let at_night = coverage(&record, observing.rules(), at("mon 21:00"));
            assert_eq!(at_night, Coverage::Observed);
            check(&observing, &record, None);
            let morning = left_behind(&record, observing.rules(), at("tue 09:00"));
            assert_eq!(morning, ORPHANED);
            let barrier = barrier(&record, &observing.configuration);
            assert_eq!(barrier, Some(Barrier::Observed(observer)));
        }
        // An override starts nothing there either.
        let [(_, record), ..] = stopped();
        let wanted = observing.overriding("office", RUNNING, "mon 20:00", "mon 22:00");
        check(&wanted, &record, ORPHANED);
    }
}

#[test]
fn without_its_account_only_what_is_owed_a_size_is_left_behind() {
    let removed = world().without_account("do-main");
    let [(_, by_schedule), ..] = stopped();
    check(&removed, &by_schedule, None);
    assert!(is_ghost(&by_schedule, &removed.configuration, at("mon 22:00")));
    let owed = owed(by_schedule);
    check(&removed, &owed, Some(LeftBehind::Unreachable));
    assert!(!is_ghost(&owed, &removed.configuration, at("mon 22:00")));
    let gone = Record { phase: Phase::Gone { since: at("mon 20:00") }, ..owed };
    assert!(is_ghost(&gone, &removed.configuration, at("mon 22:00")));
    assert!(!is_ghost(&gone, &world().configuration, at("mon 22:00")));
}

#[test]
fn what_has_been_gone_for_days_is_past_unless_something_is_owed() {
    let gone = |record: Record| Record {
        phase: Phase::Gone { since: at("mon 20:00") },
        observed: Some(Observed {
            power: Power::Stopped,
            size: None,
            busy: None,
            at: at("mon 19:01"),
        }),
        ..record
    };
    let [(_, by_schedule), ..] = stopped();
    let (stopped, owed) = (gone(by_schedule.clone()), gone(owed(by_schedule)));
    let world = world();
    for (now, is_past) in [("thu 19:59", false), ("thu 20:00", true)] {
        assert_eq!(is_ghost(&stopped, &world.configuration, at(now)), is_past);
        let left = left_behind(&stopped, world.rules(), at(now));
        assert_eq!(left, (!is_past).then_some(LeftBehind::Gone));
        assert!(!is_ghost(&owed, &world.configuration, at(now)));
        let left = left_behind(&owed, world.rules(), at(now));
        assert_eq!(left, Some(LeftBehind::Gone));
    }
    for record in irreplaceable() {
        assert!(!is_ghost(&gone(record), &world.configuration, at("sun 20:00")));
    }
}

/// Returns a record that alone describes a machine, in each phase.
fn irreplaceable() -> Vec<Record> {
    let of = |change: fn(&mut Hibernation)| {
        let mut kept = Hibernation::of(office_droplet().reference.id);
        change(&mut kept);
        Record {
            hibernation: Some(Box::new(kept)),
            ..office_droplet().having_handled("mon 08:00", RUNNING)
        }
    };
    let waking = of(|kept| kept.present = None);
    let seen_running = |record: &Record| seen(record.clone(), Power::Running);
    vec![
        waking.clone().in_flight_towards(Direction::Start, "mon 08:00"),
        seen_running(&waking).in_flight_towards(Direction::Start, "mon 08:00"),
        waking.in_flight_towards(Direction::Stop, "mon 08:00"),
        of(|kept| kept.delete_asked = true).settled(Power::Running),
        of(|kept| kept.incomplete = true).settled(Power::Running),
    ]
}

#[test]
fn what_only_its_record_describes_is_held_in_every_phase_and_never_a_ghost() {
    for record in irreplaceable() {
        assert!(record.is_irreplaceable() && record.is_held_stopped());
        check(&world(), &record, None);
        check(&world().without_schedules(), &record, ORPHANED);
        let mut removed = world();
        removed.configuration.accounts.clear();
        check(&removed, &record, Some(LeftBehind::Unreachable));
        assert!(!is_ghost(&record, &removed.configuration, at("mon 22:00")));
    }
    let kept = Hibernation::of(office_droplet().reference.id);
    let whole =
        Record { hibernation: Some(Box::new(kept)), ..office_droplet().settled(Power::Running) };
    assert!(!whole.is_irreplaceable() && !whole.is_held_stopped());
}
