//! Machines that are moved to a smaller plan while they are off, and back.

use domain::{
    configuration::{DropletMethod, ServerMethod},
    record::effect_timeout,
    stop_method::StopMethod,
};

use super::*;
use crate::{follow::needs_log, methods};

const OWN: &str = "g-2vcpu-8gb";
const SMALL: &str = "s-1vcpu-1gb";

fn size(plan: &str) -> MachineSize {
    let (vcpus, memory_mib) = if plan == OWN { (2, 8192) } else { (1, 1024) };
    MachineSize { plan: plan.to_owned(), vcpus, memory_mib, disk_gib: 25, ..MachineSize::default() }
}

fn saved() -> SavedState {
    SavedState::Machine(size(OWN))
}

/// A Droplet that is resized after it is asked to shut down.
fn resized() -> Case {
    let case = case("do-main/droplet/1", Size::Machine(size(OWN)));
    let mut case = case.following(|policy| {
        policy.methods.droplet = DropletMethod::Resize;
        policy.graceful = true;
    });
    case.target = Some(SavedState::Machine(size(SMALL)));
    case
}

/// A server that is rescaled.
fn rescaled() -> Case {
    let case = case("hz-eu/server/1", Size::Machine(size(OWN)));
    let mut case = case.following(|policy| policy.methods.server = ServerMethod::Rescale);
    case.target = Some(SavedState::Machine(size(SMALL)));
    case
}

fn resize_to(plan: &str) -> Step {
    Step::Resize(SavedState::Machine(size(plan)))
}

impl Case {
    fn on_plan(mut self, plan: &str) -> Self {
        self.resource.size = Size::Machine(size(plan));
        self
    }

    /// The record that a step left, with its request accepted.
    fn accepted(mut self, send: Send, instant: &str) -> Self {
        self.record = send.record;
        self.record.permit = None;
        self.at(instant)
            .request(|request| {
                request.ask = accepted(instant);
            })
            .record(|record| {
                let request = record.request.as_ref().unwrap();
                record.may_have_shrunk |= request.is_shrink();
            })
    }

    #[track_caller]
    fn followed(mut self) -> Self {
        self.record = self.records().record;
        self
    }

    /// Seen off after the first part of a stop.
    #[track_caller]
    fn switched_off(self) -> Self {
        let send = self.sends(STOP);
        let off = self.accepted(send, "19:00:02").off();
        off.at("19:00:30").followed()
    }

    /// Stopped at its end edge, and seen to be stopped.
    fn small(self) -> Self {
        let case = self.off().on_plan(SMALL).settled(Power::Stopped);
        let case = case.saved(saved()).used().handled("19:00", STOPPED);
        case.record(|record| {
            record.small_plans.insert(SMALL.to_owned());
        })
    }

    /// At Tuesday's begin edge, its saved plan requested.
    fn growing(self) -> Self {
        let case = self.small().at("tue 08:00");
        let send = case.sends(START);
        case.accepted(send, "tue 08:00:02")
    }
}

#[test]
fn what_follows_a_step_that_was_not_answered_and_is_seen_done_does_not_wait() {
    let first = resized().sends(STOP).record;
    let open = resized().record(|record| {
        *record = first;
        record.permit = None;
        record.attempts = 5;
        record.retry_at = Some(at("19:15"));
    });
    let off = open.off().at("19:02").followed();
    assert_eq!(off.record.retry_at, None);
    // What was postponed meanwhile counts for no other request.
    let postponed = off.record(|record| record.attempts = 3);
    let send = postponed.sends(STOP);
    assert_eq!((send.step(), send.record.attempts), (resize_to(SMALL), 0));
}

#[test]
fn a_start_puts_back_no_plan_that_no_stop_took_away() {
    // Its move was refused, and a person has given it a smaller plan since.
    let case = rescaled().on_plan(SMALL).settled(Power::Running).saved(saved());
    let case = case.handled("19:00", STOPPED).at("tue 08:00");
    let write = case.writes(START);
    assert_eq!(write.record.phase, Phase::Settled { at: Power::Running });
    assert_eq!(write.record.saved, None);
    let moved = case.used();
    assert_eq!(moved.sends(START).step(), SHUTDOWN);
}

#[test]
fn a_stop_switches_off_then_moves_and_ends_when_it_is_small() {
    let case = resized();
    let send = case.sends(STOP);
    assert_eq!(send.step(), SHUTDOWN);
    assert_eq!(send.record.saved, None, "nothing shrinks yet");
    let transition = send.record.in_flight().unwrap();
    assert_eq!(transition.method, StopMethod::Resize);
    assert_eq!(transition.target, case.target);

    let off = case.accepted(send, "19:00:02").off().at("19:00:30").followed();
    assert!(off.record.in_flight().is_some(), "off is not the end");
    assert!(off.record.wants_next_step());
    assert!(off.record.due_at.is_some_and(|due_at| due_at <= off.now));

    let send = off.at("19:00:35").sends(STOP);
    assert_eq!(send.step(), resize_to(SMALL));
    assert_eq!(send.record.saved, Some(saved()), "saved before it leaves");
    assert!(!send.record.may_have_shrunk, "nothing was accepted yet");

    let moved = resized().off().accepted(send, "19:00:36");
    assert!(moved.record.request.as_ref().unwrap().is_shrink());
    moved.clone().at("19:01").goes_on();
    let write = moved.on_plan(SMALL).at("19:02").records();
    assert!(is_settled(&write.record, Power::Stopped));
    let entry = write.history.unwrap();
    assert_eq!(entry.method, Some(StopMethod::Resize));
    assert_eq!((entry.saved, entry.seen), (Some(saved()), resized().target));
    assert!(write.record.may_have_shrunk);
}

#[test]
fn a_machine_that_is_off_too_late_is_not_moved_any_more() {
    let off = resized().switched_off();
    assert_eq!(off.clone().at("tue 06:00").sends(STOP).step(), resize_to(SMALL));
    let late = off.clone().at("tue 07:46");
    late.leaves(STOP);
    let write = late.records();
    assert!(is_settled(&write.record, Power::Stopped));
    assert_eq!(write.history.unwrap().ending, Ending::Seen);
    let moving = off.record(|record| record.may_have_shrunk = true).at("tue 07:46");
    assert_eq!(moving.sends(STOP).step(), resize_to(SMALL));
}

#[test]
fn what_a_person_switched_off_is_moved_at_its_edge_or_is_left_off_where_that_is_too_late() {
    // A schedule that leaves no more time than that is followed all the same.
    let short = resized().open(&[("08:00", "07:50")]).off().at("tue 07:50");
    assert_eq!(short.sends(STOP).step(), resize_to(SMALL));
    let late = resized().off().at("tue 07:46");
    for case in [late.clone(), late.observing()] {
        let write = case.writes(STOP);
        assert!(is_settled(&write.record, Power::Stopped));
        assert_eq!(write.record.handled.unwrap().key.instant, at("19:00"));
        assert_eq!(write.record.last.unwrap().ending, Ending::AlreadyThere);
    }
}

#[test]
fn a_start_moves_back_then_switches_on_and_clears_only_then() {
    let case = resized().growing();
    assert!(case.record.request.as_ref().unwrap().step.moves());
    assert_eq!(case.record.saved, Some(saved()));
    let back = case.on_plan(OWN).at("tue 08:01").followed();
    assert!(back.record.wants_next_step());
    assert_eq!(back.record.saved, Some(saved()), "it does not run yet");
    let send = back.sends(START);
    assert_eq!(send.step(), ON);
    let on = back.accepted(send, "tue 08:01:30").seen(Power::Running);
    let write = on.at("tue 08:02").records();
    assert!(is_settled(&write.record, Power::Running));
    assert_eq!(write.record.saved, None);
    assert!(write.record.small_plans.is_empty() && !write.record.may_have_shrunk);
    let entry = write.history.unwrap();
    assert_eq!((entry.method, entry.saved), (Some(StopMethod::Resize), Some(saved())));
}

#[test]
fn a_machine_that_a_person_runs_small_is_switched_off_before_it_grows() {
    let case = resized().small().seen(Power::Running).at("tue 08:00");
    let send = case.sends(START);
    assert_eq!(send.step(), SHUTDOWN);
    let off = case.accepted(send, "tue 08:00:02");
    // Our own shutdown is not a person's action against the start.
    let off = off.logged(ActionEffect::Shutdown, "tue 08:00:02");
    off.clone().at("tue 08:01").goes_on();
    let cut = off.clone().at("tue 08:01:10");
    assert!(matches!(cut.follow(), Follow::Force));
    assert_eq!(cut.sends(START).step(), CUT);
    let off = off.off().at("tue 08:00:20").followed();
    assert_eq!(off.sends(START).step(), resize_to(OWN));
}

#[test]
fn a_person_who_starts_the_machine_meanwhile_was_faster() {
    let case = resized();
    let off = case.switched_off();
    let started = off.seen(Power::Running).logged(ActionEffect::Start, "19:02").at("19:03");
    assert_eq!(ending(&started.records()), Some(&Ending::Superseded));
    assert_eq!(ending(&started.writes(STOP)), Some(&Ending::Superseded));
}

/// Their start is on its way while the machine is seen off.
#[test]
fn a_person_who_starts_the_machine_before_it_was_seen_off_was_faster() {
    let case = resized();
    let off = case.switched_off();
    let started = off.seen(Power::Running).logged(ActionEffect::Start, "19:00:20").at("19:00:40");
    assert_eq!(ending(&started.records()), Some(&Ending::Superseded));
    assert_eq!(ending(&started.writes(STOP)), Some(&Ending::Superseded));
}

#[test]
fn a_person_who_starts_a_droplet_that_was_just_moved_was_faster() {
    let case = resized();
    let off = case.switched_off();
    let send = off.sends(STOP);
    let moved = off.accepted(send, "19:00:32").on_plan(SMALL);
    let started = moved.seen(Power::Running).logged(ActionEffect::Start, "19:00:50").at("19:00:58");
    let wants_log = started.with(|seen, context| needs_log(&started.record, seen, context.now));
    assert!(wants_log, "only the log says who started it");
    let write = started.records();
    assert_eq!(ending(&write), Some(&Ending::Superseded));
    assert_eq!(write.record.saved, Some(saved()), "it is owed its plan");
    assert!(write.record.may_have_shrunk);
}

#[test]
fn a_machine_whose_move_was_refused_is_owed_nothing_once_a_person_was_faster() {
    let off = resized().switched_off();
    let mut refused = resized().off();
    refused.record = off.sends(STOP).record;
    let refused = refused.record(|record| record.permit = None);
    let refused = refused.request(|request| request.ask = failed("19:01"));
    let started = refused.seen(Power::Running).logged(ActionEffect::Start, "19:00:50");
    let started = started.at("19:00:58");
    let write = started.records();
    assert_eq!(ending(&write), Some(&Ending::Superseded));
    assert_eq!(write.record.saved, None);
    // The record was restored, and is older than the move.
    let write = started.on_plan(SMALL).records();
    assert_eq!(ending(&write), Some(&Ending::Superseded));
    assert_eq!(write.record.saved, Some(saved()));
    assert!(write.record.may_have_shrunk);
}

#[test]
fn a_resize_whose_answer_was_lost_is_found_in_the_log_and_never_repeated() {
    let case = resized().off().in_flight(STOP, "19:00").at("19:00:30");
    let case = case.record(|record| {
        let Phase::InFlight { transition } = &mut record.phase else {
            panic!("under way");
        };
        transition.method = StopMethod::Resize;
        transition.target = Some(SavedState::Machine(size(SMALL)));
    });
    let send = case.clone().asked_step(SHUTDOWN, "19:00").sends(STOP);
    let mut open = case;
    open.record = send.record;
    let late_look = open.clone().at("19:03").logged(ActionEffect::Resize, "19:00:31");
    let write = late_look.writes(STOP);
    assert!(matches!(write.record.request.unwrap().ask, Ask::Accepted { .. }));
    assert!(write.record.may_have_shrunk);
    // Without a trace it never arrived, and what is saved stays as it was.
    let again = open.at("19:03").sends(STOP);
    assert_eq!(again.step(), resize_to(SMALL));
    assert_eq!(again.record.saved, Some(saved()));
    assert!(again.record.may_have_shrunk, "an unanswered one may have landed");
}

#[test]
fn a_move_that_was_refused_is_not_repeated_after_a_persons_start() {
    let switched_off = resized().switched_off().at("19:01");
    let send = switched_off.sends(STOP);
    let refused = switched_off.accepted(send, "19:01").at("19:01:20");
    let refused = refused.request(|request| request.ask = failed("19:01:10"));
    assert_eq!(refused.clone().sends(STOP).step(), resize_to(SMALL));
    // It does not show as running yet.
    let started = refused.logged(ActionEffect::Start, "19:01:01");
    assert_eq!(ending(&started.writes(STOP)), Some(&Ending::Superseded));
}

#[test]
fn a_stop_is_asked_again_once_a_late_start_has_moved_the_machine_back() {
    // A stop at 19:00 that found the machine small and off, while a move of 18:56 may still act.
    let on = |plan| {
        let mut case = resized().off().in_flight(STOP, "19:00").at("19:03");
        case = case.saved(saved()).used().not_before("19:10").on_plan(plan);
        case.observed(Power::Stopped).record(|record| {
            let Phase::InFlight { transition } = &mut record.phase else {
                panic!("under way");
            };
            transition.method = StopMethod::Resize;
            transition.target = Some(SavedState::Machine(size(SMALL)));
            record.small_plans = [SMALL.to_owned()].into();
        })
    };
    on(SMALL).leaves(STOP);
    assert!(on(SMALL).record.watched_until().is_some());
    let back = on(OWN);
    assert_eq!(back.record.watched_until(), None);
    let send = back.sends(STOP);
    assert_eq!(send.step(), resize_to(SMALL));
    assert_eq!(send.record.saved, Some(saved()));
}

impl Case {
    /// A step that was seen to be done.
    fn asked_step(self, step: Step, since: &str) -> Self {
        let transition = self.record.in_flight().unwrap().clone();
        let case = self.asked(STOP, since, Ask::Done { at: at(since) });
        let case = case.request(|request| request.step = step);
        case.record(|record| record.phase = Phase::InFlight { transition })
    }
}

#[test]
fn a_plan_that_could_not_come_back_is_refused_before_anything_is_sent() {
    let mut case = resized();
    case.target = None;
    case.refusal = Some("its plan cannot be ordered in fra1 now");
    let write = case.writes(STOP);
    assert!(matches!(write.record.phase, Phase::Refused { .. }));
    assert_eq!(ending(&write), Some(&Ending::Refused));
    assert_eq!(write.record.handled.unwrap().key.instant, at("19:00"));
    assert!(matches!(write.events[..], [Event::Refused { .. }]));
    // It is off already: there is nothing to refuse.
    assert_eq!(ending(&case.clone().off().writes(STOP)), None);
    case.observing().postpones(STOP, "cannot be ordered");
}

/// It would be sent whenever observe mode ends, hours after it was given.
#[test]
fn a_command_that_observe_mode_could_not_carry_out_never_acts_later() {
    let mut case = resized().commanded(STOPPED, "19:30").at("19:30");
    case.target = None;
    case.refusal = Some("its plan cannot be ordered in fra1 now");
    let observed = case.clone().observing();
    let write = observed.writes(STOP);
    assert_eq!(write.history, None);
    let [Event::Declined { reason }] = &write.events[..] else {
        panic!("not declined: {:?}", write.events);
    };
    assert!(reason.contains("cannot be ordered"));
    assert!(is_settled(&write.record, Power::Running));
    let mut later = case.record(|record| *record = write.record).at("21:00");
    later.refusal = None;
    later.clone().untagged().postpones(STOP, "no schedule");
    later.leaves(STOP);
}

#[test]
fn a_plan_withdrawn_after_the_power_went_leaves_it_off_and_whole() {
    let case = resized();
    let mut off = case.switched_off();
    off.refusal = Some("its plan cannot be ordered in fra1 now");
    let write = off.writes(STOP);
    assert!(matches!(write.record.phase, Phase::Refused { .. }));
    assert_eq!(write.record.saved, None);
    let mut morning = off.at("tue 08:00");
    morning.record = write.record;
    assert_eq!(morning.sends(START).step(), ON);
}

#[test]
fn without_a_smaller_plan_a_stop_is_only_a_shutdown() {
    let mut case = resized();
    case.target = None;
    let send = case.sends(STOP);
    assert_eq!(send.step(), SHUTDOWN);
    let transition = send.record.in_flight().unwrap();
    assert_eq!(transition.method, StopMethod::Graceful);
    let off = case.accepted(send, "19:00:02").off().at("19:00:30");
    assert!(is_settled(&off.records().record, Power::Stopped));
}

#[test]
fn a_small_plan_is_never_taken_for_the_original() {
    // A cheaper plan may have more memory than the machine's own.
    let mut case = rescaled().small();
    let Size::Machine(machine) = &mut case.resource.size else {
        panic!("a machine");
    };
    machine.memory_mib = 32_768;
    let start = case.clone().at("tue 08:00").sends(START);
    assert_eq!(start.step(), resize_to(OWN));
    // A person started it small in the evening: the next stop keeps what is saved.
    let mut evening = case.seen(Power::Running).handled("08:00", RUNNING).at("19:00");
    evening.target = None;
    let send = evening.sends(STOP);
    assert_eq!(send.record.saved, Some(saved()));
}

#[test]
fn another_plan_that_a_person_chose_stays() {
    let case = resized().small().on_plan("s-8vcpu-16gb").seen(Power::Running);
    let mut case = case.at("tue 08:00");
    if let Size::Machine(machine) = &mut case.resource.size {
        (machine.vcpus, machine.memory_mib) = (8, 16_384);
    }
    let write = case.writes(START);
    assert_eq!(ending(&write), Some(&Ending::Resized));
    assert_eq!(write.record.saved, None);
    assert!(write.record.small_plans.is_empty());
}

#[test]
fn a_server_that_its_change_of_type_has_started_is_shut_down_again() {
    let case = rescaled();
    let off = case.switched_off();
    let send = off.sends(STOP);
    let moved = off.accepted(send, "19:00:36").on_plan(SMALL).seen(Power::Running);
    let moved = moved.at("19:02").followed();
    let send = moved.sends(STOP);
    assert_eq!(send.step(), SHUTDOWN);
    assert_eq!(send.record.saved, Some(saved()));
    let off = moved.accepted(send, "19:02:01").off().at("19:02:30");
    assert!(is_settled(&off.records().record, Power::Stopped));
}

#[test]
fn a_server_may_be_left_running_small_and_counts_as_stopped() {
    let case = rescaled().following(|policy| policy.rescaled_runs = true);
    let off = case.switched_off();
    let send = off.sends(STOP);
    let moved = off.accepted(send, "19:00:36").on_plan(SMALL).seen(Power::Running);
    let write = moved.at("19:02").records();
    assert!(is_settled(&write.record, Power::Stopped));
    assert_eq!(write.record.observed.unwrap().power, Power::Stopped);
}

#[test]
fn a_plan_that_is_not_to_be_had_in_the_morning_is_asked_for_without_end() {
    let grow = |case: Case| {
        let case = case.growing();
        case.request(|request| {
            request.ask = failed("tue 08:11");
            request.problem = Some("too large to fit".into());
        })
    };
    let waiting = grow(resized()).at("tue 08:11");
    assert_eq!(waiting.sends(START).step(), resize_to(OWN));
    let small = grow(resized().following(|policy| policy.start_small = true));
    let early = small.clone().request(|request| request.ask = failed("tue 08:05"));
    assert_eq!(early.at("tue 08:05").sends(START).step(), resize_to(OWN));
    let small = small.at("tue 08:11");
    assert!(small.now > at("tue 08:00") + effect_timeout(ResourceKind::Droplet));
    let send = small.sends(START);
    assert_eq!(send.step(), Step::On { small: true });
    let on = small.accepted(send, "tue 08:11:01").seen(Power::Running);
    let write = on.at("tue 08:12").records();
    assert!(is_settled(&write.record, Power::Running));
    assert_eq!(write.record.saved, Some(saved()), "it is still owed its plan");
    assert!(write.history.unwrap().reason.unwrap().contains(OWN));
}

const NO_ROOM: &str = "its own plan cannot be ordered";

/// Running on its small plan at Tuesday's begin edge, as its stop left it.
fn runs_small() -> Case {
    let case = rescaled().following(|policy| policy.rescaled_runs = true);
    let case = case.small().record(|record| record.small_runs = true);
    case.seen(Power::Running).at("tue 08:00")
}

#[test]
fn a_start_leaves_a_machine_running_small_while_its_own_plan_cannot_be_ordered() {
    let mut case = runs_small();
    case.refusal = Some(NO_ROOM);
    let write = case.writes(START);
    assert!(is_settled(&write.record, Power::Running));
    assert_eq!(write.record.saved, Some(saved()), "it is owed its plan");
    assert!(write.record.small_runs && !write.record.retained);
    assert_eq!(write.history, None, "nothing was given up");
    let reported =
        matches!(&write.events[..], [Event::AlreadyThere { reason, .. }] if reason == NO_ROOM);
    assert!(reported, "{:?}", write.events);
    // A shutdown of ours that may still act is waited for: it would leave the machine off.
    let acting = case.clone().asked(STOP, "tue 07:55", accepted("tue 07:55"));
    acting.clone().leaves(START);
    let acting = acting.settled(Power::Stopped).handled("tue 07:55", STOPPED);
    acting.postpones(START, NO_ROOM);
    // Once it is to be had, the machine is switched off for it.
    case.refusal = None;
    assert_eq!(case.sends(START).step(), SHUTDOWN);
}

#[test]
fn a_running_machine_whose_own_plan_is_refused_runs_again_at_once() {
    let case = runs_small();
    let send = case.sends(START);
    let off = case.accepted(send, "tue 08:00:02").off();
    let off = off.at("tue 08:00:30").followed();
    let send = off.sends(START);
    assert_eq!(send.step(), resize_to(OWN));
    let refused = off.accepted(send, "tue 08:00:31").at("tue 08:00:32");
    let asked = |ask: Ask, problem: Option<&str>| {
        refused.clone().request(|request| {
            request.ask = ask;
            request.first_accepted_at = None;
            request.problem = problem.map(Into::into);
        })
    };
    // What says nothing about its plan is asked again.
    let busy = asked(failed("tue 08:00:32"), None);
    assert_eq!(busy.sends(START).step(), resize_to(OWN));
    let refused = asked(failed("tue 08:00:32"), Some("no room"));
    let send = refused.sends(START);
    assert_eq!(send.step(), Step::On { small: true });
    let on = refused.accepted(send, "tue 08:00:33").seen(Power::Running);
    let write = on.at("tue 08:01").records();
    assert!(is_settled(&write.record, Power::Running));
    assert_eq!(write.record.saved, Some(saved()));
}

#[test]
fn a_machine_that_a_start_left_small_is_neither_drifting_nor_switched_off_in_the_evening() {
    let morning = runs_small().handled("tue 08:00", RUNNING);
    let standing = |case: &Case| methods::standing(&case.resource, &case.record);
    assert_eq!(standing(&runs_small()), Some(Power::Stopped));
    assert_eq!(standing(&morning), Some(Power::Running));
    let mut evening = morning.at("tue 19:00");
    evening.target = Some(SavedState::Machine(size(SMALL)));
    let write = evening.writes(STOP);
    assert!(is_settled(&write.record, Power::Stopped));
    assert_eq!(write.record.saved, Some(saved()));
}

#[test]
fn a_turn_before_anything_shrank_only_switches_on() {
    let case = resized();
    let off = case.switched_off();
    let turned = off.overridden(RUNNING, "19:00:40", "22:00").at("19:01");
    let send = turned.sends(START);
    assert_eq!(send.step(), ON);
    assert_eq!(send.record.not_before(), None, "the shutdown has acted");
}

#[test]
fn what_is_stuck_goes_on_when_its_part_is_seen_after_all() {
    let case = resized();
    let send = case.sends(STOP);
    let case = case.accepted(send, "19:00:02");
    let case = case.record(|record| {
        let transition = record.in_flight().unwrap().clone();
        record.phase =
            Phase::Stuck { transition, since: at("19:10"), reason: "not seen".to_owned() };
    });
    let off = case.off().at("19:30").followed();
    assert!(off.record.wants_next_step());
    assert_eq!(off.sends(STOP).step(), resize_to(SMALL));
}

#[test]
fn a_stop_under_way_keeps_the_plan_with_which_it_began() {
    let case = resized();
    let mut off = case.switched_off();
    off.target = Some(SavedState::Machine(size("s-1vcpu-2gb")));
    assert_eq!(off.sends(STOP).step(), resize_to(SMALL));
}

#[test]
fn on_its_small_plan_a_machine_is_only_switched_off_and_its_own_stays_saved() {
    let case = resized().small().seen(Power::Running);
    let mut case = case.handled("08:00", RUNNING).at("19:00");
    case.target = None;
    let send = case.sends(STOP);
    assert_eq!(send.step(), SHUTDOWN);
    let off = case.accepted(send, "19:00:02").off().at("19:00:30");
    let night = off.records().record;
    assert!(is_settled(&night, Power::Stopped));
    assert_eq!(night.saved, Some(saved()));
    let mut morning = off.at("tue 08:00");
    morning.record = night;
    assert_eq!(morning.sends(START).step(), resize_to(OWN));
}

#[test]
fn what_is_saved_stays_when_a_later_stop_leads_to_another_small_plan() {
    let case = resized().small().seen(Power::Running);
    let mut case = case.handled("08:00", RUNNING).at("19:00");
    if let Size::Machine(machine) = &mut case.resource.size {
        // Cheaper, and with more memory than the machine's own plan.
        machine.memory_mib = 32_768;
    }
    case.target = Some(SavedState::Machine(size("s-1vcpu-512mb-10gb")));
    let off = case.switched_off();
    let send = off.sends(STOP);
    assert_eq!(send.step(), resize_to("s-1vcpu-512mb-10gb"));
    assert_eq!(send.record.saved, Some(saved()));
    assert_eq!(send.record.small_plans.len(), 2, "it may be on either");
    // It is ours, and no plan of a person's that would be given up.
    assert_eq!((send.history, send.events.len()), (None, 0));
}
