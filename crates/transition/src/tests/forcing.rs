//! The hard cut: five guards, by stop on its own look and by poll-status before it invokes stop.

use super::*;

/// A shutdown accepted at 19:00:10, and a guest that ignores it; the grace ends at 19:01:15.
fn ignored() -> Case {
    server().asked(STOP, "19:00", accepted("19:00:10")).at("19:01:15")
}

#[track_caller]
fn cuts(case: &Case) -> Send {
    let follow = case.follow();
    assert!(matches!(follow, Follow::Force), "no force: {follow:#?}");
    let send = case.sends(STOP);
    assert_eq!(send.record.request.as_ref().unwrap().forced, Forced::Intended);
    assert_eq!((send.step(), &send.resource.id), (CUT, &case.id()));
    *Box::new(send)
}

#[track_caller]
fn spares(case: &Case) {
    let follow = case.follow();
    assert!(!matches!(follow, Follow::Force), "forces");
    match case.plan(STOP) {
        Plan::Send(send) => assert_eq!(send.record.request.unwrap().forced, Forced::No),
        Plan::Leave | Plan::Postpone(_) | Plan::Write(_) | Plan::Withhold(_) => {}
    }
}

#[test]
fn an_ignored_shutdown_is_followed_by_the_cut_under_a_permit() {
    let case = ignored();
    let record = cuts(&case).record;
    let request = record.request.as_ref().unwrap();
    assert_eq!(request.forced, Forced::Intended);
    assert_eq!(request.ask, accepted("19:00:10"));
    let permit = record.permit.unwrap();
    assert_eq!((permit.until, permit.writer), (at("19:03:15"), us()));
    assert_eq!(record.phase, case.record.phase);
    let quiet_at = request.quiet_at(ResourceKind::Server);
    assert_eq!(quiet_at, at("19:13:20"), "the cut may act as late as any request");
}

#[test]
fn the_grace_counts_from_the_noted_acceptance() {
    spares(&ignored().at("19:01:14"));
    let late_answer = server().asked(STOP, "18:40", accepted("19:00:10"));
    spares(&late_answer.clone().handled("19:00", STOPPED).at("19:01:14"));
    cuts(&late_answer.handled("19:00", STOPPED).at("19:01:15"));
}

#[test]
fn an_unanswered_shutdown_is_never_forced() {
    let open = server().asked(STOP, "19:00", Ask::Open).at("19:30");
    spares(&open);
    assert_eq!(open.sends(STOP).step(), SHUTDOWN, "it is asked again first");
    spares(&server().asked(STOP, "19:00", failed("19:10")).at("19:30"));
}

#[test]
fn it_must_still_be_desired_stopped() {
    spares(&ignored().overridden(RUNNING, "19:01", "22:00"));
    let turned_meanwhile = ignored().handled("19:01", RUNNING).record(|record| {
        record.handled.as_mut().unwrap().key.rank = Rank::OverrideSet;
    });
    spares(&turned_meanwhile.overridden(RUNNING, "19:01", "22:00"));
    cuts(&ignored().overridden(STOPPED, "18:00", "22:00"));
    let removed = ignored().record(|record| record.handled = None);
    let mut nothing_desired = removed.untagged();
    nothing_desired.configuration.schedules.clear();
    spares(&nothing_desired);
}

#[test]
fn it_must_still_be_opted_in_by_the_look() {
    spares(&ignored().untagged());
    let mut protected = ignored();
    let pattern = "name:web".parse().unwrap();
    protected.configuration.settings.protect.push(pattern);
    spares(&protected);
}

#[test]
fn a_cut_that_was_not_accepted_is_sent_again_after_a_while() {
    let failed = |attempts, now| {
        let case = ignored().at(now).record(|record| record.attempts = attempts);
        case.request(|request| request.asked_at = at("19:01:15"))
    };
    spares(&failed(1, "19:01:19"));
    cuts(&failed(1, "19:01:20"));
    spares(&failed(7, "19:04:59"));
    cuts(&failed(7, "19:05"));
}

#[test]
fn it_must_be_on_and_not_locked() {
    spares(&ignored().busy());
    spares(&ignored().off());
}

#[test]
fn no_person_must_have_started_it_since() {
    for effect in [ActionEffect::Start, ActionEffect::Reboot] {
        spares(&ignored().logged(effect, "19:00:30"));
        // Not even if it was shut down again: the log does not say by whom.
        let again = ignored().logged(effect, "19:00:30");
        spares(&again.logged(ActionEffect::Shutdown, "19:00:40"));
        cuts(&ignored().logged(effect, "18:59"));
        cuts(&ignored().logged(effect, "19:00"));
    }
    cuts(&ignored().logged(ActionEffect::Other, "19:00:30"));
}

#[test]
fn it_is_cut_once() {
    spares(&ignored().request(|request| request.forced = Forced::Accepted));
    let intended = ignored().request(|request| request.forced = Forced::Intended);
    spares(&intended.clone().permitted_until("19:01:16", "other"));
    cuts(&intended.permitted_until("19:01:15", "other"));
}

#[test]
fn a_cut_that_was_never_answered_is_remembered_by_the_next_one() {
    let first = cuts(&ignored());
    assert!(!first.record.request.unwrap().earlier_unanswered);
    let unanswered = ignored().request(|request| request.forced = Forced::Intended);
    let second = cuts(&unanswered.permitted_until("19:01:15", "other"));
    assert!(second.record.request.unwrap().earlier_unanswered);
}

#[test]
fn only_what_was_asked_to_shut_down_is_cut() {
    let droplet = || droplet().asked(STOP, "19:00", accepted("19:00:10")).at("19:01:15");
    spares(&droplet());
    cuts(&droplet().request(|request| request.step = SHUTDOWN));
    let starting = server().asked(START, "08:00", accepted("08:00:10")).at("08:02");
    spares(&starting.request(|request| request.step = SHUTDOWN));
}

/// The shutdown of [`ignored`], whose action ended in an error.
fn errored() -> Case {
    let mut case = ignored().logged(ActionEffect::Shutdown, "19:00:05");
    case.log[0].id = ActionId(7);
    case.log[0].state = ActionState::Failed;
    case
}

#[test]
fn a_shutdown_whose_action_ended_in_an_error_is_followed_by_the_cut() {
    errored().at("19:01:14").goes_on();
    cuts(&errored());
    errored().request(|request| request.forced = Forced::Accepted).goes_on();
    // Without it, the guest can only be asked again.
    let asked_again = errored().following(|policy| policy.force = false).records();
    assert_eq!(asked_again.record.request.unwrap().ask, failed("19:02"));
}

#[test]
fn a_cut_that_is_refused_past_the_deadline_of_its_shutdown_is_sent_again() {
    let refused = |now| {
        let case = errored().at(now).record(|record| record.attempts = 8);
        case.request(|request| request.asked_at = at("19:09:30"))
    };
    refused("19:10:30").goes_on();
    cuts(&refused("19:17:30"));
    // What is never accepted is stuck in the end.
    let last = refused("19:19:30").record(|record| record.attempts = 9);
    assert!(matches!(last.records().record.phase, Phase::Stuck { .. }));
}

#[test]
fn without_force_it_is_stuck_instead() {
    let case = ignored().following(|policy| policy.force = false);
    case.leaves(STOP);
    let write = case.records();
    assert!(matches!(
        &write.record.phase,
        Phase::Stuck { reason, since, .. }
            if reason.contains("force = false") && *since == at("19:01:15")
    ));
    case.at("19:01:14").goes_on();
}

#[test]
fn nothing_is_cut_in_observe_mode() {
    spares(&ignored().observing());
    let stuck = ignored().observing().at("19:10:10").records();
    assert!(matches!(stuck.record.phase, Phase::Stuck { .. }));
}

#[test]
fn a_stale_reader_cuts_nothing() {
    spares(&ignored().handled("19:01:18", STOPPED));
    let newer = ignored().record(|record| {
        record.handled.as_mut().unwrap().generation = Generation(2);
    });
    spares(&newer);
    spares(&ignored().looked_at("19:00:44"));
}

#[test]
fn what_is_held_is_not_cut_by_a_schedule() {
    spares(&ignored().record(|record| record.held = true));
}

#[test]
fn the_start_function_never_cuts() {
    ignored().leaves(START);
}

#[test]
fn a_tag_that_only_the_look_shows_spares_the_guest() {
    spares(&ignored().tagged("offhours-until=2h"));
}
