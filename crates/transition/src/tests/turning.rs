//! A newer edge while something is under way: renew, turn, watch out.

use super::*;

/// A stop in flight since 19:00; at 19:03 an override wants the machine running.
fn turned(case: Case, ask: Ask) -> Case {
    let case = case.asked(STOP, "19:00", ask).at("19:03");
    case.overridden(RUNNING, "19:02", "22:00")
}

/// A stop in flight since 19:00; at 19:03 an override wants the machine stopped too.
fn renewed(case: Case, ask: Ask) -> Case {
    let case = case.asked(STOP, "19:00", ask).at("19:03");
    case.overridden(STOPPED, "19:02", "22:00")
}

#[test]
fn a_newer_edge_in_the_same_direction_is_only_recorded() {
    for ask in [accepted("19:00:10"), Ask::Open] {
        let case = renewed(server(), ask);
        let write = case.writes(STOP);
        assert_eq!(write.record.handled.as_ref().unwrap().key.instant, at("19:02"));
        assert_eq!(write.record.request, case.record.request);
        assert_eq!(write.record.phase, case.record.phase);
        assert_eq!(write.history, None);
    }
}

#[test]
fn a_newer_edge_claims_anew_where_no_request_is_under_way() {
    let case = renewed(server(), failed("19:30"));
    is_claimed(&case.sends(STOP), STOP, at("19:03"));
    assert!(case.clone().off().writes(STOP).record.in_flight().is_some());
    assert!(case.busy().writes(STOP).record.in_flight().is_some());
    let watching = renewed(server(), Ask::Open).not_before("19:10");
    let watching = watching.record(|record| record.request = None);
    let send = watching.sends(STOP);
    is_claimed(&send, STOP, at("19:03"));
    assert_eq!(send.record.not_before(), Some(at("19:10")));
}

#[test]
fn a_newer_edge_claims_anew_where_a_person_acted_since() {
    let started = renewed(server(), accepted("19:00:10")).logged(ActionEffect::Start, "19:01");
    is_claimed(&started.sends(STOP), STOP, at("19:03"));
    // While the machine is busy with that, the edge stays due.
    started.clone().busy().leaves(STOP);
    let before = renewed(server(), accepted("19:00:10")).logged(ActionEffect::Start, "18:59");
    assert_eq!(before.writes(STOP).record.request, before.record.request);
    let overtaken_again = started.logged(ActionEffect::Shutdown, "19:02");
    overtaken_again.writes(STOP);
}

#[test]
fn renewing_sends_nothing_in_observe_mode() {
    let case = renewed(server(), failed("19:30")).observing();
    assert_eq!(case.writes(STOP).record.request, case.record.request);
}

#[test]
fn a_turn_at_the_other_end_claims_in_one_write() {
    let case = turned(server(), accepted("19:00:10")).off();
    let send = case.sends(START);
    is_claimed(&send, START, at("19:03"));
    assert_eq!(send.step(), ON);
    let history = send.history.unwrap();
    assert_eq!((history.ending, history.direction), (Ending::Reversed, STOP));
    assert_eq!(history.claimed_at, at("19:00"));
}

#[test]
fn a_turn_waits_for_nothing_once_the_only_request_has_acted() {
    let not_before = |case: Case| case.sends(START).record.not_before();
    let off = |ask| turned(server(), ask).off();
    assert_eq!(not_before(off(accepted("19:00:10"))), None);
    let cut = off(accepted("18:55")).request(|request| {
        request.forced = Forced::Accepted;
        request.asked_at = at("19:01");
    });
    assert_eq!(not_before(cut), None);
    let original = database_of("db-s-2vcpu-4gb", 2);
    let small = turned(database().saved(original), accepted("19:00:10"));
    assert_eq!(not_before(small.smallest()), None);
    let empty = turned(pool().saved(pool_of(3)), accepted("19:00:10"));
    assert_eq!(not_before(empty.nodes(0, 0, 0)), None);
}

#[test]
fn a_turn_waits_for_what_may_still_act_although_the_old_end_is_seen() {
    let not_before = |case: Case| case.sends(START).record.not_before();
    let off = |ask| turned(server(), ask).off();
    assert_eq!(not_before(off(Ask::Open)), Some(at("19:12:05")));
    let unknown = off(accepted("19:00:10")).unknown();
    assert_eq!(not_before(unknown), Some(at("19:10:15")));
    let intended = off(accepted("18:55")).request(|request| {
        request.forced = Forced::Intended;
        request.asked_at = at("19:01");
    });
    assert_eq!(not_before(intended), Some(at("19:13:05")));
    let watching = off(accepted("19:00:10")).not_before("19:10");
    let watching = watching.record(|record| record.request = None);
    assert_eq!(not_before(watching), Some(at("19:10")));
}

#[test]
fn a_turn_at_the_new_end_asks_nothing_and_watches_out() {
    let case = turned(server(), accepted("19:00:10"));
    let write = case.writes(START);
    let transition = write.record.in_flight().unwrap();
    assert_eq!((transition.direction, transition.claimed_at), (START, at("19:03")));
    assert_eq!((&write.record.request, &write.record.permit), (&None, &None));
    assert_eq!(write.record.not_before(), Some(at("19:10:15")));
    assert_eq!(ending(&write), Some(&Ending::Reversed));
    let handled = write.record.handled.unwrap();
    assert_eq!((handled.key.instant, handled.desired), (at("19:02"), Some(RUNNING)));
}

#[test]
fn a_turn_waits_for_what_an_unanswered_request_may_do() {
    let write = turned(server(), Ask::Open).writes(START);
    assert_eq!(write.record.not_before(), Some(at("19:12:05")));
}

#[test]
fn a_turn_waits_out_the_hard_cut() {
    let cut = turned(server(), accepted("18:55")).request(|request| {
        request.forced = Forced::Accepted;
        request.asked_at = at("19:01");
    });
    let write = cut.writes(START);
    assert_eq!(write.record.not_before(), Some(at("19:13:05")));
}

#[test]
fn a_turn_of_what_certainly_failed_settles_at_the_next_look() {
    let write = turned(server(), failed("19:30")).writes(START);
    assert_eq!(write.record.not_before(), Some(at("19:03")));
    let next = server().at("19:03:05").record(|record| *record = write.record);
    assert!(is_settled(&next.records().record, Power::Running));
}

#[test]
fn nothing_turns_while_busy_or_permitted() {
    let case = turned(server(), accepted("19:00:10"));
    case.clone().busy().leaves(START);
    case.clone().permitted_until("19:03:01", "other").leaves(START);
    case.clone().observing().leaves(START);
    case.writes(START);
}

#[test]
fn a_turn_remembers_that_a_shrink_was_asked() {
    let original = database_of("db-s-2vcpu-4gb", 2);
    let case = |ask| turned(database().saved(original.clone()), ask);
    for ask in [Ask::Open, accepted("19:00:10")] {
        let watching = case(ask.clone()).writes(START).record;
        assert!(watching.may_have_shrunk);
        assert_eq!(watching.saved, Some(original.clone()));
        let opposite = watching.opposite.unwrap();
        assert_eq!(opposite.may_become, Some(database_of(SMALLEST, 1)));
        let claimed = case(ask).smallest().sends(START).record;
        assert!(claimed.may_have_shrunk);
    }
    assert!(!case(failed("19:30")).writes(START).record.may_have_shrunk);
    assert!(case(failed("19:30")).unknown().writes(START).record.may_have_shrunk);
}

#[test]
fn a_pool_that_still_drains_is_turned_back_at_once() {
    let case = turned(pool().saved(pool_of(3)).used(), accepted("19:00:10"));
    let send = case.nodes(0, 2, 2).sends(START);
    assert!(matches!(send.step(), Step::Resize(SavedState::NodePool { count: 3, .. })));
}

/// A start at 08:00 that found the machine running, while a stop of 07:59 may still act.
fn watching(case: Case) -> Case {
    let case = case.in_flight(START, "08:00").not_before("08:10");
    case.at("08:03")
}

#[test]
fn a_watch_out_asks_as_soon_as_the_late_stop_has_acted() {
    let case = watching(server()).off().observed(Power::Stopped);
    let send = case.sends(START);
    is_asked(&send, START, at("08:03"));
    assert_eq!(send.record.not_before(), Some(at("08:10")));
    assert!(!send.record.request.unwrap().earlier_unanswered);
    watching(server()).observed(Power::Stopped).leaves(START);
}

#[test]
fn a_watch_out_yields_to_a_person() {
    let off = watching(server()).off().observed(Power::Stopped);
    let overtaken = off.clone().logged(ActionEffect::PowerOff, "08:02");
    for write in [overtaken.writes(START), overtaken.records()] {
        assert!(is_settled(&write.record, Power::Stopped));
        assert_eq!(write.record.not_before(), Some(at("08:10")));
        assert_eq!(ending(&write), Some(&Ending::Superseded));
    }
    // Our own late stop is in the log too.
    let ours = off.logged(ActionEffect::Shutdown, "07:59");
    ours.goes_on();
    ours.sends(START);
}

fn watching_database() -> Case {
    let case = database().saved(database_of("db-s-2vcpu-4gb", 2)).used();
    watching(case).record(|record| {
        record.opposite.as_mut().unwrap().may_become = Some(database_of(SMALLEST, 1));
    })
}

#[test]
fn a_database_that_shrinks_late_is_restored() {
    let shrunk = watching_database().smallest().observed(Power::Stopped);
    shrunk.goes_on();
    let send = shrunk.sends(START);
    assert!(matches!(send.step(), Step::Resize(SavedState::Database { nodes: 2, .. })));
    assert_eq!(send.record.saved, Some(database_of("db-s-2vcpu-4gb", 2)));
}

#[test]
fn a_late_shrink_is_known_even_if_no_look_saw_it_move() {
    // The last look showed it at its full size.
    let whole = watching_database().observed(Power::Running);
    whole.smallest().goes_on();
}

#[test]
fn a_database_that_a_person_resizes_in_a_watch_out_is_left_to_them() {
    let resized = watching_database().sized("db-s-1vcpu-2gb", 1).observed(Power::Stopped);
    for write in [resized.writes(START), resized.records()] {
        assert!(matches!(write.record.phase, Phase::Settled { .. }));
        assert_eq!(ending(&write), Some(&Ending::Superseded));
        assert_eq!(write.record.saved, Some(database_of("db-s-2vcpu-4gb", 2)));
        assert_eq!(write.record.not_before(), Some(at("08:10")));
    }
    resized.busy().goes_on();
}

#[test]
fn a_stop_that_watches_out_ends_smaller_than_saved() {
    let case = database().saved(database_of("db-s-2vcpu-4gb", 2)).used();
    let case = case.in_flight(STOP, "19:00").not_before("19:30").at("19:30");
    let seen = case.clone().smallest().records();
    assert!(is_settled(&seen.record, Power::Stopped));
    case.goes_on();
}

#[test]
fn a_stop_that_finds_nothing_to_drop_ends_where_the_database_stands() {
    // Restored by a start that was accepted, under a method that leaves it its only node.
    let own = database_of("db-s-2vcpu-4gb", 1);
    let case = database().sized("db-s-2vcpu-4gb", 1).saved(own).used();
    let case = case.asked(START, "19:00", accepted("19:00:10")).stopping_at("db-s-2vcpu-4gb", 1);
    let case = case.at("19:06");
    let write = case.clone().overridden(STOPPED, "19:05", "22:00").writes(STOP);
    let watching = case.record(|record| *record = write.record.clone());
    let settled = watching.clone().records();
    assert!(is_settled(&settled.record, Power::Stopped));
    assert_eq!(settled.record.saved, None);
    assert!(matches!(settled.events[..], [Event::Seen { saved: None, .. }]));
    // Once a request was sent, that says where the stop leads.
    let target = write.record.in_flight().unwrap().target.clone();
    let asked = watching.asked(STOP, "19:06", accepted("19:06:10")).at("19:07");
    let asked = asked.record(|record| {
        if let Phase::InFlight { transition } = &mut record.phase {
            transition.target = target;
        }
    });
    asked.goes_on();
}

#[test]
fn a_request_of_our_own_is_followed_to_its_end_though_settling_must_wait() {
    let case = database().saved(database_of("db-s-2vcpu-4gb", 2)).used();
    let case = case.asked(START, "08:00", accepted("08:00:10")).not_before("08:20");
    case.at("08:05").smallest().goes_on();
}

#[test]
fn what_a_watch_out_looked_for_is_forgotten_with_it() {
    let whole = watching_database();
    let settled = whole.clone().at("08:10").records().record;
    let let_go = whole.clone().smallest().untagged().at("08:10").records();
    let missing = whole.clone().record(|r| r.missing_since = Some(at("08:01")));
    let gone = recorded(missing.unlisted()).record;
    let later = whole.clone().settled(Power::Running).at("08:10");
    let later = later.overridden(RUNNING, "08:05", "12:00");
    let acknowledged = later.writes(START).record;
    let newer = whole.handled("sun 19:00", STOPPED).smallest();
    let claimed = newer.sends(START).record;
    for record in [settled, let_go.record, gone, acknowledged, claimed] {
        let left = record.opposite.and_then(|opposite| opposite.may_become);
        assert_eq!(left, None, "{:?}", record.phase);
    }
}

#[test]
fn a_late_restore_in_a_watch_out_is_taken_for_our_own() {
    let case = database().saved(database_of("db-s-2vcpu-4gb", 2)).used();
    let case = case.in_flight(STOP, "19:00").not_before("19:30").at("19:10");
    case.clone().observed(Power::Running).goes_on();
    case.observed(Power::Running).sends(STOP);
}

#[test]
fn a_pool_in_a_watch_out_is_judged_by_its_count() {
    let case = watching(pool().saved(pool_of(3)).used())
        .record(|record| record.opposite.as_mut().unwrap().may_become = Some(pool_of(0)));
    case.clone().nodes(0, 2, 2).goes_on();
    case.clone().nodes(3, 3, 2).goes_on();
    let resized = case.nodes(1, 1, 1).records();
    assert_eq!(ending(&resized), Some(&Ending::Superseded));
}
