//! What a pause keeps from being sent, and what follows it.

use proptest::prelude::*;

use super::*;
use crate::configuration::PauseScope;

const ID: &str = "do-main/droplet/1";

fn everything() -> PauseScope {
    PauseScope::Everything
}

#[track_caller]
fn is_paused(world: &World, record: &Record, now: &str) {
    let decision = world.decide(record, now);
    assert!(matches!(decision, Decision::Leave(LeaveReason::Paused(_))), "{now}: {decision:?}");
}

#[test]
fn only_the_latest_of_the_edges_that_a_pause_covers_is_handled_after_it() {
    let world = world().pausing(everything(), false, "mon 18:00", "wed 10:00");
    let record = office_droplet().having_handled("mon 08:00", RUNNING);
    leaves(&world.decide(&record, "mon 18:30"), &LeaveReason::Handled);
    for now in ["mon 19:00", "tue 18:59", "wed 07:59"] {
        is_paused(&world, &record, now);
    }
    assert_eq!(world.due_at(&record, "mon 19:30"), Some(at("wed 10:00")));
    acts(&world.decide(&record, "wed 10:00"), "wed 08:00", Rank::Schedule, START, Why::Edge);
}

#[test]
fn a_pause_of_stops_lets_starts_through() {
    let world = world().pausing(everything(), true, "mon 18:00", "wed 20:00");
    let record = office_droplet().having_handled("mon 08:00", RUNNING);
    is_paused(&world, &record, "mon 19:00");
    assert_eq!(world.due_at(&record, "mon 19:30"), Some(at("tue 08:00")));
    acts(&world.decide(&record, "tue 08:00"), "tue 08:00", Rank::Schedule, START, Why::Edge);
}

#[test]
fn what_is_in_flight_is_neither_asked_for_again_nor_cut() {
    let world = world().pausing(everything(), false, "mon 19:00", "mon 22:00");
    let mut record =
        office_droplet().having_handled("mon 19:00", STOPPED).in_flight_towards(STOP, "mon 19:00");
    is_paused(&world, &record, "mon 19:05");
    record.request = Some(request(Ask::Accepted { at: at("mon 19:01"), action: None }));
    is_paused(&world, &record, "mon 19:05");
    leaves(&world.decide(&record, "mon 22:00"), &LeaveReason::Handled);
}

#[test]
fn what_is_in_flight_and_failed_is_due_when_the_pause_ends() {
    let world = world().pausing(everything(), false, "mon 19:00", "mon 22:00");
    let record =
        office_droplet().having_handled("mon 19:00", STOPPED).in_flight_towards(STOP, "mon 19:00");
    let mut failed = record.clone();
    failed.request = Some(request(Ask::Failed { retry_at: at("mon 19:02") }));
    assert_eq!(world.due_at(&failed, "mon 19:05"), Some(at("mon 22:00")));
    let mut accepted = record;
    accepted.request = Some(request(Ask::Accepted { at: at("mon 19:01"), action: None }));
    let due = world.due_at(&accepted, "mon 19:05").unwrap();
    assert!(due < at("mon 19:05"), "it is followed: {due}");
}

#[test]
fn a_pause_applies_to_what_its_scope_covers() {
    let record = office_droplet().having_handled("mon 08:00", RUNNING);
    let scopes = [
        (PauseScope::Account("do-main".parse().unwrap()), true),
        (PauseScope::Account("hz-eu".parse().unwrap()), false),
        (PauseScope::Schedule(schedule_name("office")), true),
        (PauseScope::Schedule(schedule_name("late")), false),
        (PauseScope::Tag("tag:offhours=OFFICE".parse().unwrap()), true),
        (PauseScope::Tag("tag:prod*".parse().unwrap()), false),
    ];
    for (scope, applies) in scopes {
        let world = world().pausing(scope.clone(), false, "mon 18:00", "mon 22:00");
        let pause = pause_of(&record, world.rules(), STOP, at("mon 19:00"));
        assert_eq!(pause.is_some(), applies, "{scope}");
    }
}

#[test]
fn of_two_pauses_the_later_end_counts() {
    let schedule = PauseScope::Schedule(schedule_name("office"));
    let world = world().pausing(everything(), false, "mon 18:00", "mon 20:00").pausing(
        schedule,
        false,
        "mon 18:30",
        "mon 21:00",
    );
    let record = office_droplet().having_handled("mon 08:00", RUNNING);
    is_paused(&world, &record, "mon 20:30");
    assert_eq!(world.due_at(&record, "mon 19:30"), Some(at("mon 21:00")));
}

#[test]
fn what_a_pause_put_off_is_overdue_only_some_time_after_it() {
    let world = world().pausing(everything(), false, "mon 18:00", "mon 22:00");
    let record = office_droplet().settled(Power::Running).having_handled("mon 08:00", RUNNING);
    let overdue = |now| crate::overdue::overdue(&record, world.rules(), None, at(now));
    assert_eq!(overdue("mon 21:59"), None);
    assert_eq!(overdue("mon 22:05"), None);
    assert_eq!(overdue("mon 22:30").map(|overdue| overdue.since), Some(at("mon 22:00")));
}

proptest! {
    /// The order of precedence: each rule wins over all that stand after it.
    #[test]
    fn the_strongest_rule_that_applies_decides(
        protected: bool,
        opted_out: bool,
        paused: bool,
        overridden in proptest::option::of(prop_oneof![Just(RUNNING), Just(STOPPED)]),
        schedule_overridden in proptest::option::of(prop_oneof![Just(RUNNING), Just(STOPPED)]),
        commanded in proptest::option::of(prop_oneof![Just(RUNNING), Just(STOPPED)]),
    ) {
        let mut world = world();
        if protected {
            world = world.protecting("name:web");
        }
        if paused {
            world = world.pausing(everything(), false, "mon 09:00", "mon 12:00");
        }
        for (target, desired) in [(ID, overridden), ("office", schedule_overridden)] {
            if let Some(desired) = desired {
                world = world.overriding(target, desired, "mon 09:00", "mon 12:00");
            }
        }
        let mut record = office_droplet();
        if opted_out {
            record = record.tagged(&["offhours:off", "offhours:office"]);
        }
        if let Some(desired) = commanded {
            record = record.commanded("mon 10:00", desired);
        }
        let verdict = world.judge(&record, "mon 11:00");
        match verdict.decision {
            Decision::Leave(LeaveReason::Excluded(Exclusion::Protected(_))) => {
                prop_assert!(protected);
            }
            Decision::Leave(LeaveReason::Excluded(Exclusion::OptedOut { .. })) => {
                prop_assert!(opted_out && !protected);
            }
            Decision::Leave(LeaveReason::Paused(_)) => {
                prop_assert!(paused && !opted_out && !protected);
            }
            Decision::Act(due) => {
                prop_assert!(!paused && !opted_out && !protected);
                let wanted = overridden.or(schedule_overridden).or(commanded).unwrap_or(RUNNING);
                prop_assert_eq!(due.direction, Direction::towards(wanted));
            }
            other @ (Decision::AskAgain(_) | Decision::Leave(_)) => prop_assert!(false, "{other:?}"),
        }
    }
}
