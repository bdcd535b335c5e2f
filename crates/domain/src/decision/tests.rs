//! Table-driven tests of what is due, in the week of [`fixtures`](crate::tests::fixtures).

mod pausing;
mod precedence;
mod replay;
mod when_due;

use super::*;
use crate::{
    record::{Forced, Opposite, Permit, Request, Transition, Writer},
    resource::Power,
    step::Step,
    stop_method::StopMethod,
    tests::fixtures::{
        World, at, daily, droplet, office_droplet, only_observe, schedule_name, world,
    },
};

const STOP: Direction = Direction::Stop;
const START: Direction = Direction::Start;
const RUNNING: Desired = Desired::Running;
const STOPPED: Desired = Desired::Stopped;

/// Asserts that a decision acts, by which edge and for which reason.
#[track_caller]
fn acts(decision: &Decision, edge: &str, rank: Rank, direction: Direction, why: Why) {
    let Decision::Act(due) = decision else {
        panic!("nothing is due: {decision:?}");
    };
    let key = EdgeKey { instant: at(edge), rank };
    assert_eq!((due.handled.key, due.direction, due.why), (key, direction, why));
    assert_eq!(due.handled.desired, Some(direction.desired()));
}

#[track_caller]
fn leaves(decision: &Decision, reason: &LeaveReason) {
    assert_eq!(*decision, Decision::Leave(reason.clone()));
}

#[test]
fn a_resource_seen_for_the_first_time_follows_its_schedule_at_once() {
    let decision = world().decide(&office_droplet(), "mon 22:10");
    acts(&decision, "mon 19:00", Rank::Schedule, STOP, Why::Edge);
}

#[test]
fn what_is_recorded_as_handled_has_its_generation_and_schedule() {
    let world = world().in_generation(7);
    let Decision::Act(due) = world.decide(&office_droplet(), "mon 09:00") else {
        panic!("nothing is due");
    };
    assert_eq!(due.handled.generation, Generation(7));
    assert_eq!(due.handled.schedule, Some(schedule_name("office")));
    assert_eq!(due.cause, Cause::Schedule);
}

#[test]
fn an_edge_is_due_once_and_until_it_is_handled() {
    let record = office_droplet().having_handled("mon 08:00", RUNNING);
    leaves(&world().decide(&record, "mon 18:59:59"), &LeaveReason::Handled);
    for late in ["mon 19:00", "mon 19:01", "tue 07:59"] {
        let decision = world().decide(&record, late);
        acts(&decision, "mon 19:00", Rank::Schedule, STOP, Why::Edge);
        let record = record.clone().having_done(&decision);
        leaves(&world().decide(&record, late), &LeaveReason::Handled);
    }
}

#[test]
fn of_missed_edges_only_the_latest_counts() {
    let record = office_droplet().having_handled("mon 08:00", RUNNING);
    let decision = world().decide(&record, "wed 12:00");
    acts(&decision, "wed 08:00", Rank::Schedule, START, Why::Edge);
}

#[test]
fn a_schedule_without_a_desired_state_wants_nothing() {
    let only_begins = serde_json::json!({
        "timezone": "UTC",
        "periods": [{"begin": "08:00"}],
    });
    let world = world().with_schedule("office", only_begins);
    let record = office_droplet().having_handled("mon 08:00", RUNNING);
    leaves(&world.decide(&record, "tue 03:00"), &LeaveReason::NothingDesired);
    let decision = world.decide(&record, "tue 08:00");
    acts(&decision, "tue 08:00", Rank::Schedule, START, Why::Edge);
}

#[test]
fn a_reader_of_an_older_configuration_does_nothing() {
    let mut record = office_droplet().having_handled("mon 08:00", RUNNING);
    record.handled.as_mut().unwrap().generation = Generation(2);
    leaves(&world().decide(&record, "mon 19:00"), &LeaveReason::StaleReader);
    let decision = world().in_generation(2).decide(&record, "mon 19:00");
    acts(&decision, "mon 19:00", Rank::Schedule, STOP, Why::Edge);
}

#[test]
fn a_reader_whose_clock_is_behind_the_record_does_nothing() {
    let record = office_droplet().having_handled("mon 19:00", STOPPED);
    let world = world().in_generation(2);
    leaves(&world.decide(&record, "mon 18:59:59"), &LeaveReason::StaleReader);
    leaves(&world.decide(&record, "mon 19:00"), &LeaveReason::Handled);
}

#[test]
fn a_new_configuration_acts_at_once_where_it_wants_something_else() {
    let record = office_droplet().having_handled("mon 08:00", RUNNING);
    let closed = world().with_schedule("office", daily("06:00", "07:00"));
    leaves(&closed.decide(&record, "mon 12:00"), &LeaveReason::Handled);
    let decision = closed.in_generation(2).decide(&record, "mon 12:00");
    acts(&decision, "mon 07:00", Rank::Schedule, STOP, Why::Changed);
}

#[test]
fn a_new_configuration_with_the_same_desired_state_does_not_restart_what_a_person_stopped() {
    let earlier = world().with_schedule("office", daily("07:00", "19:00"));
    let record = office_droplet().having_handled("mon 08:00", RUNNING).settled(Power::Stopped);
    let decision = earlier.in_generation(2).decide(&record, "mon 12:00");
    leaves(&decision, &LeaveReason::Handled);
}

#[test]
fn another_schedule_acts_at_once_where_it_wants_something_else() {
    let record = office_droplet().having_handled("mon 08:00", RUNNING);
    for (begin, end, expected) in [("05:00", "06:00", Some(STOP)), ("06:00", "20:00", None)] {
        let world = world().with_schedule("night", daily(begin, end));
        let moved = record.clone().tagged(&["offhours:night"]);
        let decision = world.decide(&moved, "mon 12:00");
        match expected {
            Some(direction) => {
                acts(&decision, "mon 06:00", Rank::Schedule, direction, Why::Changed);
            }
            None => leaves(&decision, &LeaveReason::Handled),
        }
    }
}

#[test]
fn a_desired_state_that_was_only_observed_is_acted_on_with_the_next_configuration() {
    let record = office_droplet().having_handled("mon 19:00", None);
    leaves(&world().decide(&record, "mon 20:00"), &LeaveReason::Handled);
    let decision = world().in_generation(2).decide(&record, "mon 20:00");
    acts(&decision, "mon 19:00", Rank::Schedule, STOP, Why::Changed);
}

#[test]
fn a_command_that_was_only_observed_does_not_act_later() {
    let observed = office_droplet().commanded("mon 10:00", STOPPED).having_handled_ranked(
        "mon 10:00",
        Rank::Manual,
        None,
    );
    leaves(&world().decide(&observed, "mon 12:00"), &LeaveReason::Handled);
    // Once acting is allowed, only what the schedule wants acts.
    let acting = world().in_generation(2);
    let decision = acting.decide(&observed, "mon 12:00");
    acts(&decision, "mon 08:00", Rank::Schedule, START, Why::Changed);
    let untagged = observed.tagged(&[]);
    leaves(&acting.decide(&untagged, "mon 12:00"), &LeaveReason::Unnamed);
    assert_eq!(acting.due_at(&untagged, "mon 12:00"), None);
}

fn enforced() -> World {
    world().following("office", |policy| policy.enforce = true)
}

#[test]
fn drift_is_put_back_only_where_enforced() {
    let started = office_droplet().having_handled("mon 19:00", STOPPED).settled(Power::Running);
    leaves(&world().decide(&started, "mon 21:00"), &LeaveReason::Handled);
    let decision = enforced().decide(&started, "mon 21:00");
    acts(&decision, "mon 19:00", Rank::Schedule, STOP, Why::Drift);
    let still_off = started.settled(Power::Stopped);
    leaves(&enforced().decide(&still_off, "mon 21:00"), &LeaveReason::Handled);
}

#[test]
fn drift_is_judged_only_where_nothing_is_under_way_or_held() {
    let started = office_droplet().having_handled("mon 19:00", STOPPED).settled(Power::Running);
    let retained = Record { retained: true, ..started.clone() };
    let observed = started.clone().having_handled("mon 19:00", None);
    let refused = Record {
        phase: Phase::Refused {
            transition: transition(STOP, "mon 19:00"),
            reason: "no".to_owned(),
        },
        ..started.clone()
    };
    let stuck = Record {
        phase: Phase::Stuck {
            transition: transition(STOP, "mon 19:00"),
            since: at("mon 19:10"),
            reason: "no".to_owned(),
        },
        ..started
    };
    for record in [retained, observed, refused, stuck] {
        leaves(&enforced().decide(&record, "mon 21:00"), &LeaveReason::Handled);
    }
}

#[test]
fn drift_acts_on_the_handled_edge_alone() {
    // The configuration has since moved the edge to an earlier time; its desired state is the same.
    let record = office_droplet().having_handled("mon 19:00", STOPPED).settled(Power::Running);
    let earlier = enforced()
        .with_schedule("office", daily("08:00", "18:00"))
        .following("office", |policy| policy.enforce = true)
        .in_generation(2);
    leaves(&earlier.decide(&record, "mon 21:00"), &LeaveReason::Handled);
}

#[test]
fn what_is_gone_needs_nothing() {
    let record = Record { phase: Phase::Gone { since: at("mon 10:00") }, ..office_droplet() };
    leaves(&world().decide(&record, "mon 19:00"), &LeaveReason::Gone);
    assert_eq!(world().due_at(&record, "mon 19:00"), None);
}

#[test]
fn what_is_held_waits_for_approval_but_obeys_a_person() {
    let held = Record { held: true, ..office_droplet() };
    leaves(&world().decide(&held, "mon 19:00"), &LeaveReason::Held);
    assert_eq!(world().due_at(&held, "mon 19:00"), None);
    let overridden = world().overriding("do-main/droplet/1", STOPPED, "mon 09:00", "mon 12:00");
    leaves(&overridden.decide(&held, "mon 10:00"), &LeaveReason::Held);
    let commanded = held.commanded("mon 10:00", STOPPED);
    let decision = world().decide(&commanded, "mon 10:00");
    acts(&decision, "mon 10:00", Rank::Manual, STOP, Why::Edge);
    // The start of what Offhours had stopped, or a command that a schedule's edge follows.
    let retry = Ask::Failed { retry_at: at("mon 19:01") };
    let record = office_droplet().having_handled("mon 19:00", RUNNING);
    let record = record.in_flight_towards(START, "mon 19:00");
    let under_way = Record { held: true, request: Some(request(retry)), ..record };
    leaves(&world().decide(&under_way, "mon 19:00"), &LeaveReason::Held);
    for instant in ["mon 19:01", "tue 08:00"] {
        assert_eq!(world().decide(&under_way, instant), Decision::AskAgain(START), "{instant}");
    }
}

#[test]
fn observe_mode_of_service_account_or_schedule_holds_for_what_is_due() {
    let mode = |world: &World| match world.decide(&office_droplet(), "mon 19:00") {
        Decision::Act(due) => due.mode,
        other @ (Decision::AskAgain(_) | Decision::Leave(_)) => {
            panic!("nothing is due: {other:?}")
        }
    };
    assert_eq!(mode(&world()), Mode::Act);
    let schedule = world().following("office", |policy| policy.mode = Mode::Observe);
    let mut service = world();
    service.configuration.settings.mode = Mode::Observe;
    let mut account = world();
    for (name, one) in &mut account.configuration.accounts {
        if name.as_str() == "do-main" {
            only_observe(one);
        }
    }
    let mut other_account = world();
    for (name, one) in &mut other_account.configuration.accounts {
        if name.as_str() == "hz-eu" {
            only_observe(one);
        }
    }
    for world in [schedule, service, account] {
        assert_eq!(mode(&world), Mode::Observe);
    }
    assert_eq!(mode(&other_account), Mode::Act);
}

fn transition(direction: Direction, claimed_at: &str) -> Transition {
    Transition {
        target: None,
        method: StopMethod::Graceful,
        forced: false,
        was_running: false,
        direction,
        claimed_at: at(claimed_at),
        cause: Cause::Schedule,
        schedule: None,
    }
}

fn request(ask: Ask) -> Request {
    Request {
        direction: STOP,
        asked_at: at("mon 19:00"),
        looked_at: at("mon 19:00"),
        ask,
        earlier_unanswered: false,
        forced: Forced::No,
        effect_timeout: None,
        first_accepted_at: None,
        step: Step::Off { gracefully: false },
        created_machine: None,
        problem: None,
    }
}

fn stopping(ask: Ask) -> Record {
    Record {
        request: Some(request(ask)),
        ..office_droplet().having_handled("mon 19:00", STOPPED).in_flight_towards(STOP, "mon 19:00")
    }
}

#[test]
fn a_lost_request_is_asked_again_once_its_permit_is_over() {
    let record = Record {
        permit: Some(Permit { until: at("mon 19:02"), writer: Writer("other".to_owned()) }),
        ..stopping(Ask::Open)
    };
    leaves(&world().decide(&record, "mon 19:01:59"), &LeaveReason::Handled);
    let decision = world().decide(&record, "mon 19:02");
    assert_eq!(decision, Decision::AskAgain(STOP));
}

#[test]
fn a_failed_request_is_asked_again_when_its_time_has_come() {
    let record = stopping(Ask::Failed { retry_at: at("mon 19:05") });
    leaves(&world().decide(&record, "mon 19:04:59"), &LeaveReason::Handled);
    let decision = world().decide(&record, "mon 19:05");
    assert_eq!(decision, Decision::AskAgain(STOP));
}

#[test]
fn an_accepted_request_is_never_asked_again() {
    let record = stopping(Ask::Accepted { at: at("mon 19:00"), action: None });
    leaves(&world().decide(&record, "tue 07:59"), &LeaveReason::Handled);
}

#[test]
fn nothing_is_asked_again_that_is_no_longer_desired() {
    let record = stopping(Ask::Open);
    let world = world().overriding("office", RUNNING, "mon 19:05", "mon 21:00");
    let decision = world.decide(&record, "mon 19:10");
    acts(&decision, "mon 19:05", Rank::OverrideSet, START, Why::Edge);
    let turned = record
        .having_handled_ranked("mon 19:05", Rank::OverrideSet, RUNNING)
        .in_flight_towards(STOP, "mon 19:00");
    leaves(&world.decide(&turned, "mon 19:10"), &LeaveReason::Handled);
}

#[test]
fn a_watch_out_asks_as_soon_as_it_has_seen_the_wrong_end() {
    let watching = |power| {
        let mut record = office_droplet()
            .having_handled("tue 08:00", RUNNING)
            .in_flight_towards(START, "tue 08:00")
            .observed(power, "tue 08:02");
        record.opposite = Some(Opposite { until: at("tue 08:10"), may_become: None });
        record
    };
    let decision = world().decide(&watching(Power::Stopped), "tue 08:03");
    assert_eq!(decision, Decision::AskAgain(START));
    let decision = world().decide(&watching(Power::Running), "tue 08:03");
    leaves(&decision, &LeaveReason::Handled);
}

#[test]
fn a_request_can_act_until_late_after_its_acceptance_or_its_permit() {
    use crate::reference::ResourceKind::{Database, NodePool, Server};
    let accepted = request(Ask::Accepted { at: at("mon 19:00:10"), action: None });
    let open = request(Ask::Open);
    for (kind, after_acceptance, after_permit) in [
        (Server, "mon 19:10:15", "mon 19:12:05"),
        (NodePool, "mon 19:15:15", "mon 19:17:05"),
        (Database, "mon 19:30:15", "mon 19:32:05"),
    ] {
        assert_eq!(accepted.quiet_at(kind), at(after_acceptance));
        assert_eq!(open.quiet_at(kind), at(after_permit));
    }
}

#[test]
fn the_hard_cut_can_act_as_late_as_any_request() {
    let mut cut = request(Ask::Accepted { at: at("mon 19:00:10"), action: None });
    cut.asked_at = at("mon 19:09");
    for forced in [Forced::Intended, Forced::Accepted] {
        cut.forced = forced;
        let kind = crate::reference::ResourceKind::Server;
        assert_eq!(cut.quiet_at(kind), at("mon 19:21:05"));
    }
}

#[test]
fn only_a_request_that_certainly_failed_cannot_act() {
    let failed = Ask::Failed { retry_at: at("mon 19:05") };
    assert!(request(Ask::Open).may_act());
    assert!(!request(failed.clone()).may_act());
    let mut unknown = request(failed.clone());
    unknown.earlier_unanswered = true;
    assert!(unknown.may_act());
    let mut cut = request(failed);
    cut.forced = Forced::Intended;
    assert!(cut.may_act());
}
