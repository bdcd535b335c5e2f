//! Asking again: only for what may be lost, and only after the log or a look.

use super::*;
use crate::log::log_from;

/// A stop requested at 19:00 whose answer never came.
fn lost(case: Case) -> Case {
    case.asked(STOP, "19:00", Ask::Open).at("19:02")
}

#[test]
fn a_lost_request_is_asked_again() {
    let send = lost(server()).sends(STOP);
    is_asked(&send, STOP, at("19:02"));
    assert!(send.record.request.as_ref().unwrap().earlier_unanswered);
    let transition = send.record.in_flight().unwrap();
    assert_eq!(transition.claimed_at, at("19:00"), "it is still the same transition");
    assert_eq!(send.history, None);
}

#[test]
fn nothing_is_asked_again_while_the_permit_stands() {
    let case = lost(server());
    case.clone().permitted_until("19:02:01", "us").leaves(STOP);
    case.permitted_until("19:02", "us").sends(STOP);
}

#[test]
fn what_is_asked_again_keeps_its_first_acceptance_and_the_problem_that_was_reported() {
    let failing = server().asked(STOP, "19:00", failed("19:04"));
    let failing = failing.request(|request| {
        request.first_accepted_at = Some(at("19:00:10"));
        request.problem = Some("the action ended in an error".into());
    });
    let request = failing.at("19:04").sends(STOP).record.request.unwrap();
    assert_eq!(request.first_accepted_at, Some(at("19:00:10")));
    assert!(request.problem.is_some());
}

#[test]
fn an_accepted_request_is_never_repeated() {
    let case = droplet().asked(STOP, "19:00", accepted("19:00:10"));
    case.at("23:00").leaves(STOP);
}

#[test]
fn a_request_that_the_log_shows_is_accepted_and_not_repeated() {
    let case = lost(server());
    let write = case.clone().logged(ActionEffect::Shutdown, "19:00:03").writes(STOP);
    let request = write.record.request.unwrap();
    let noted = Ask::Accepted { at: at("19:02"), action: Some(ActionId(100)) };
    assert_eq!(request.ask, noted);
    // Clocks may differ by five seconds, and no more.
    case.clone().logged(ActionEffect::Shutdown, "18:59:55").writes(STOP);
    case.clone().logged(ActionEffect::Shutdown, "18:59:54").sends(STOP);
    // The log is read from that early on.
    assert_eq!(log_from(&case.record), Some(at("18:59:55")));
    case.logged(ActionEffect::Other, "19:00:03").sends(STOP);
}

#[test]
fn a_persons_opposite_action_ends_a_lost_request() {
    for effect in [ActionEffect::Start, ActionEffect::Reboot] {
        let case = lost(server()).logged(effect, "19:01");
        let write = case.writes(STOP);
        assert!(is_settled(&write.record, Power::Running));
        assert_eq!(ending(&write), Some(&Ending::Superseded));
        let overtaken = Event::Overtaken { direction: STOP, cause: Some(Cause::Schedule) };
        assert_eq!(write.events, [overtaken]);
        assert_eq!(write.record.request, case.record.request, "it may still act");
        assert_eq!(write.record.handled, case.record.handled);
    }
    lost(server()).logged(ActionEffect::Start, "18:59").sends(STOP);
}

#[test]
fn what_stands_in_the_log_since_before_the_look_is_neither_ours_nor_a_persons() {
    for effect in [ActionEffect::Start, ActionEffect::Reboot] {
        lost(server()).logged(effect, "18:59:57").sends(STOP);
        lost(server()).logged(effect, "19:00").sends(STOP);
    }
}

#[test]
fn a_reboot_in_the_log_is_not_our_start() {
    let case = server().off().asked(START, "08:00", Ask::Open).at("08:02");
    case.clone().logged(ActionEffect::Start, "08:00:03").writes(START);
    case.logged(ActionEffect::Reboot, "08:00:03").sends(START);
}

#[test]
fn the_last_word_in_the_log_counts() {
    let both = lost(server()).logged(ActionEffect::Start, "19:00:30");
    let write = both.logged(ActionEffect::Shutdown, "19:01").writes(STOP);
    assert!(write.record.in_flight().is_some());
    let both = lost(server()).logged(ActionEffect::Shutdown, "19:00:03");
    let write = both.logged(ActionEffect::Start, "19:01").writes(STOP);
    assert!(is_settled(&write.record, Power::Running));
    // An action that is not about power says nothing about it.
    let both = lost(server()).logged(ActionEffect::Start, "19:00:30");
    let write = both.logged(ActionEffect::Other, "19:01").writes(STOP);
    assert!(is_settled(&write.record, Power::Running));
}

#[test]
fn what_failed_is_asked_again_when_its_time_has_come() {
    let case = droplet().asked(STOP, "19:00", failed("19:05"));
    case.clone().at("19:04:59").leaves(STOP);
    let send = case.clone().at("19:05").sends(STOP);
    assert!(!send.record.request.unwrap().earlier_unanswered, "no answer is missing");
    let send = case.unknown().at("19:05").sends(STOP);
    assert!(send.record.request.unwrap().earlier_unanswered, "once unknown, always unknown");
}

#[test]
fn nothing_is_asked_at_the_end_or_while_busy() {
    lost(server()).off().leaves(STOP);
    lost(server()).busy().leaves(STOP);
    lost(database()).smallest().leaves(STOP);
    lost(database()).busy().leaves(STOP);
}

#[test]
fn a_pool_on_its_way_is_not_asked_again() {
    lost(pool().saved(pool_of(3))).nodes(0, 2, 2).leaves(STOP);
    lost(pool().saved(pool_of(3))).nodes(3, 3, 3).sends(STOP);
    let starting = pool().saved(pool_of(3)).used();
    let starting = starting.asked(START, "08:00", Ask::Open).at("08:02");
    starting.clone().nodes(3, 1, 0).leaves(START);
    starting.nodes(0, 0, 0).sends(START);
}

#[test]
fn nothing_is_asked_again_that_is_no_longer_desired_or_opted_in() {
    lost(server()).untagged().leaves(STOP);
    let any = lost(server()).handled("19:00", STOPPED).at("tue 08:00");
    any.leaves(STOP);
}

#[test]
fn nothing_is_asked_again_in_observe_mode() {
    lost(server()).observing().leaves(STOP);
    let mut account = lost(server());
    for (name, one) in &mut account.configuration.accounts {
        if let Account::Cloud(one) = one
            && name.as_str() == "hz-eu"
        {
            one.mode = Mode::Observe;
        }
    }
    account.leaves(STOP);
    let mut service = lost(server());
    service.configuration.settings.mode = Mode::Observe;
    service.leaves(STOP);
    let failed = droplet().asked(STOP, "19:00", failed("19:05"));
    failed.observing().at("19:05").leaves(STOP);
}

#[test]
fn what_must_not_settle_yet_must_not_after_asking_again() {
    let send = lost(server()).not_before("19:08").sends(STOP);
    assert_eq!(send.record.not_before(), Some(at("19:08")));
}
