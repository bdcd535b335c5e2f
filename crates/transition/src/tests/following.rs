//! Following a transition until it is seen, or ends otherwise.

use domain::left_behind::{LeftBehind, left_behind};

use super::*;
use crate::follow::needs_log;

fn stopping(case: Case) -> Case {
    case.asked(STOP, "19:00", accepted("19:00:10")).at("19:00:40")
}

fn starting(case: Case) -> Case {
    let case = case.asked(START, "08:00", accepted("08:00:10"));
    case.at("08:00:40")
}

#[test]
fn a_stop_is_settled_only_once_the_cloud_reports_off() {
    stopping(server()).goes_on();
    stopping(server()).seen(Power::Between).goes_on();
    let write = stopping(server()).off().records();
    assert!(is_settled(&write.record, Power::Stopped));
    assert_eq!(write.record.request, None);
    assert_eq!(write.record.due_at, Some(at("tue 08:00")));
    let entry = write.history.unwrap();
    assert_eq!((entry.ending, entry.direction), (Ending::Seen, STOP));
    assert_eq!(entry.claimed_at, at("19:00"));
    assert_eq!(entry.accepted_at, Some(at("19:00:10")));
    assert_eq!(entry.finished_at, at("19:00:40"));
    assert!(matches!(write.events[..], [Event::Seen { seconds: 40, forced: false, .. }]));
}

#[test]
fn a_start_is_settled_only_once_the_cloud_reports_it_running() {
    starting(server()).off().goes_on();
    assert!(is_settled(&starting(server()).records().record, Power::Running));
}

#[test]
fn an_unanswered_request_settles_as_well_once_its_permit_is_over() {
    let case = server().asked(STOP, "19:00", Ask::Open).off().at("19:02");
    case.clone().permitted_until("19:02:01", "other").waits();
    assert!(is_settled(&case.records().record, Power::Stopped));
}

#[test]
fn with_the_end_the_failures_before_it_are_forgotten() {
    let case = stopping(server()).off().not_before("19:00:30");
    let record = case.record(|record| {
        record.attempts = 2;
        record.retry_at = Some(at("19:05"));
        record.last_error = Some("busy".into());
    });
    let record = record.records().record;
    assert_eq!((record.attempts, record.retry_at), (0, None));
    assert_eq!((record.last_error.as_ref(), record.not_before()), (None, None));
}

#[test]
fn nothing_settles_while_busy() {
    stopping(server()).off().busy().goes_on();
    stopping(database()).smallest().busy().goes_on();
}

#[test]
fn nothing_settles_on_a_look_before_its_time() {
    let case = starting(server()).not_before("08:10");
    let write = case.clone().at("08:09:59").records();
    assert_eq!(write.record.phase, case.record.phase);
    let watching = Event::Watching { direction: START, until: at("08:10") };
    assert_eq!(write.events, [watching], "said once, when it is seen first");
    let seen = case.clone().record(|record| *record = write.record.clone());
    seen.at("08:09:59").waits();
    let earlier_look = case.clone().at("08:10:05").looked_at("08:09:59");
    assert!(earlier_look.records().record.in_flight().is_some());
    assert!(is_settled(&case.at("08:10").records().record, Power::Running));
}

#[test]
fn a_look_older_than_half_a_minute_settles_nothing() {
    let case = stopping(server()).off();
    case.clone().looked_at("19:00:09").waits();
    case.looked_at("19:00:10").records();
}

#[test]
fn a_database_that_answered_but_has_not_moved_is_not_done() {
    // It may still read "online" just after the resize was accepted.
    let saved = database_of("db-s-2vcpu-4gb", 2);
    stopping(database().saved(saved.clone())).goes_on();
    let starting = starting(database().saved(saved).used());
    starting.clone().smallest().goes_on();
    assert!(is_settled(&starting.records().record, Power::Running));
}

#[test]
fn a_pool_is_stopped_only_when_its_last_node_has_gone() {
    let case = stopping(pool().saved(pool_of(3)));
    case.clone().nodes(0, 1, 0).goes_on();
    assert!(is_settled(&case.nodes(0, 0, 0).records().record, Power::Stopped));
}

#[test]
fn a_pool_is_running_only_when_all_its_nodes_are() {
    let case = starting(pool().saved(pool_of(3)).used());
    case.clone().nodes(3, 3, 2).goes_on();
    case.clone().nodes(2, 2, 2).goes_on();
    assert!(is_settled(&case.nodes(3, 3, 3).records().record, Power::Running));
}

#[test]
fn movement_shows_that_an_unanswered_request_was_accepted() {
    let lost = |case: Case| case.asked(STOP, "19:00", Ask::Open).at("19:02");
    let saved = database_of("db-s-2vcpu-4gb", 2);
    for case in [
        lost(pool().saved(pool_of(3))).nodes(0, 2, 2),
        lost(database().saved(saved.clone())).busy(),
    ] {
        let record = case.records().record;
        let noted = record.request.unwrap().ask;
        assert!(matches!(noted, Ask::Accepted { at: noted, .. } if noted == at("19:02")));
        assert!(record.may_have_shrunk, "from here on a shrink may have happened");
    }
    lost(server()).busy().goes_on();
    lost(pool().saved(pool_of(3))).nodes(2, 3, 3).goes_on();
    let failed = database().saved(saved).asked(STOP, "19:00", failed("19:05"));
    failed.at("19:02").busy().goes_on();
}

#[test]
fn what_is_seen_is_written_once() {
    let write = stopping(server()).seen(Power::Between).records();
    let observed = write.record.observed.clone().unwrap();
    assert_eq!((observed.power, observed.at), (Power::Between, at("19:00:40")));
    let again = stopping(server()).seen(Power::Between);
    let again = again.record(|record| *record = write.record);
    again.at("19:00:50").waits();
}

#[test]
fn whatever_else_a_look_shows_is_written() {
    let case = stopping(database().saved(database_of("db-s-2vcpu-4gb", 2)));
    let known = case.records().record;
    let case = case.record(|record| *record = known);
    case.waits();
    for changed in [
        case.clone().sized("db-s-4vcpu-8gb", 2),
        case.clone().busy(),
        case.sized("db-s-2vcpu-4gb", 3),
    ] {
        let observed = changed.records().record.observed.unwrap();
        assert_eq!(observed.size, changed.resource.size.to_save());
        assert_eq!(observed.busy, changed.resource.busy.map(|busy| busy.to_string()));
    }
}

#[test]
fn a_persons_opposite_action_overtakes() {
    for effect in [ActionEffect::Start, ActionEffect::Reboot] {
        let case = stopping(server()).logged(effect, "19:00:30");
        let write = case.records();
        assert!(is_settled(&write.record, Power::Running));
        assert_eq!(ending(&write), Some(&Ending::Superseded));
        assert_eq!(write.record.handled, case.record.handled);
        assert_eq!(write.record.request, case.record.request, "it may still act");
    }
    for effect in [ActionEffect::PowerOff, ActionEffect::Shutdown] {
        let case = starting(server()).off().logged(effect, "08:00:30");
        assert!(is_settled(&case.records().record, Power::Stopped));
    }
}

#[test]
fn only_the_last_opposite_action_since_the_look_overtakes() {
    let case = stopping(server());
    case.clone().logged(ActionEffect::Start, "18:59:59").goes_on();
    case.clone().logged(ActionEffect::Other, "19:00:30").goes_on();
    case.clone().logged(ActionEffect::PowerOff, "19:00:30").goes_on();
    let ours_last = case.logged(ActionEffect::Start, "19:00:01");
    ours_last.logged(ActionEffect::Shutdown, "19:00:10").goes_on();
}

#[test]
fn a_person_who_acts_while_it_is_busy_is_seen_later() {
    stopping(server()).busy().logged(ActionEffect::Start, "19:00:30").goes_on();
}

#[test]
fn a_manual_resize_does_not_overtake_a_request_of_ours() {
    let case = stopping(database().saved(database_of("db-s-2vcpu-4gb", 2)));
    case.sized("db-s-4vcpu-8gb", 2).goes_on();
}

#[test]
fn our_action_that_ended_in_an_error_is_to_be_asked_again() {
    let with_state = |id, state| {
        let mut case = stopping(droplet()).unknown().logged(ActionEffect::PowerOff, "19:00:05");
        case.log[0].id = ActionId(id);
        case.log[0].state = state;
        case
    };
    let record = with_state(7, ActionState::Failed).records().record;
    let request = record.request.unwrap();
    assert_eq!(request.ask, failed("19:02"));
    assert!(!request.earlier_unanswered);
    assert!(record.last_error.is_some());
    assert_eq!(record.attempts, 1);
    with_state(8, ActionState::Failed).goes_on();
    with_state(7, ActionState::Done).goes_on();
    with_state(7, ActionState::Running).goes_on();
}

/// Our third accepted request, whose action ended in an error like the two before it.
fn erring(case: Case, direction: Direction, now: &str) -> Case {
    let mut case = case.asked(direction, "19:00", accepted("19:08:10")).at(now);
    case = case.request(|request| request.first_accepted_at = Some(at("19:00:10")));
    case = case.record(|record| record.attempts = 2);
    case = case.logged(ActionEffect::Start, "19:08:05");
    case.log[0].id = ActionId(7);
    case.log[0].state = ActionState::Failed;
    case.log[0].effect = match direction {
        Direction::Stop => ActionEffect::PowerOff,
        Direction::Start => ActionEffect::Start,
    };
    case
}

#[test]
fn an_action_that_ends_in_an_error_each_time_is_asked_for_less_and_less_often() {
    let write = erring(droplet(), STOP, "19:08:40").records();
    assert_eq!(write.record.request.unwrap().ask, failed("19:12"));
    assert_eq!((write.record.attempts, write.events), (3, Vec::new()));
}

#[test]
fn a_stop_whose_action_always_ends_in_an_error_is_stuck_after_its_first_deadline() {
    let write = erring(droplet(), STOP, "19:10:10").records();
    assert!(
        matches!(&write.record.phase, Phase::Stuck { reason, .. } if reason.contains("3 times"))
    );
    assert!(matches!(write.events[..], [Event::Stuck { .. }]));
    assert!(!write.record.request.unwrap().may_act());
}

#[test]
fn a_start_whose_action_always_ends_in_an_error_is_reported_once_and_asked_for_again() {
    let case = erring(server().off(), START, "19:10:10");
    let case = case.overridden(RUNNING, "19:00", "22:00");
    let write = case.records();
    let request = write.record.request.clone().unwrap();
    assert_eq!(request.ask, failed("19:14"));
    assert!(request.problem.unwrap().what().contains("3 times"));
    assert!(write.record.in_flight().is_some());
    assert!(matches!(write.events[..], [Event::Stuck { .. }]));
    let again = case.record(|record| {
        record.request.as_mut().unwrap().problem = write.record.last_error;
    });
    assert_eq!(again.records().events, []);
}

#[test]
fn what_is_no_longer_wanted_is_left_where_it_stands_once_nothing_can_act() {
    // A schedule that wants something only from 08:00 until midnight.
    let silent = |case: Case| {
        let definition = serde_json::json!({
            "timezone": "UTC",
            "periods": [{"begin": "08:00"}],
        });
        let mut case = case.at("tue 00:00:30");
        let rule = case.configuration.schedules.get_mut(&office()).unwrap();
        rule.schedule = Schedule::new(&serde_json::from_value(definition).unwrap()).unwrap();
        case
    };
    let failing = |ask| silent(server().off().asked(START, "08:00", ask));
    let write = failing(failed("tue 00:10")).records();
    assert!(is_settled(&write.record, Power::Stopped));
    assert_eq!(ending(&write), Some(&Ending::Released));
    assert!(write.record.due_at.is_some_and(|due_at| due_at >= at("tue 08:00")));
    failing(failed("tue 00:10")).unknown().at("08:12:04").goes_on();
}

#[test]
fn what_is_only_observed_now_is_left_where_it_stands_once_nothing_can_act() {
    let open = server().asked(STOP, "19:00", Ask::Open).observing();
    open.clone().at("19:12:04").goes_on();
    let write = open.at("19:12:05").records();
    assert!(is_settled(&write.record, Power::Running));
    assert_eq!(ending(&write), Some(&Ending::Released));
}

#[test]
fn a_lost_request_that_the_log_shows_is_accepted() {
    let lost = server().asked(STOP, "19:00", Ask::Open).at("19:02");
    let write = lost.clone().logged(ActionEffect::Shutdown, "19:00:03").records();
    let noted = write.record.request.unwrap().ask;
    assert!(matches!(noted, Ask::Accepted { action: Some(ActionId(100)), .. }));
    lost.logged(ActionEffect::Shutdown, "18:59").goes_on();
}

#[test]
fn what_opts_out_is_released_once_nothing_can_act_any_more() {
    let accepted = stopping(server()).untagged();
    accepted.clone().at("19:10:14").goes_on();
    let write = accepted.at("19:10:15").records();
    assert!(is_settled(&write.record, Power::Running));
    assert_eq!(ending(&write), Some(&Ending::Released));
    assert_eq!(write.record.request, None);
    let let_go = Event::LetGo { direction: STOP, cause: Some(Cause::Schedule) };
    assert_eq!(write.events, [let_go]);
    let open = server().asked(STOP, "19:00", Ask::Open).untagged();
    open.clone().at("19:12:04").goes_on();
    open.at("19:12:05").records();
}

#[test]
fn what_opts_out_is_released_at_once_if_nothing_was_asked() {
    let failed = server().asked(STOP, "19:00", failed("19:05")).untagged();
    assert_eq!(ending(&failed.clone().at("19:01").records()), Some(&Ending::Released));
    failed.unknown().at("19:01").goes_on();
}

#[test]
fn a_start_that_is_given_up_leaves_the_resource_stopped_by_us() {
    let failing = server().off().asked(START, "08:00", failed("08:15"));
    let mut released = failing.untagged().at("08:01").records().record;
    released.tags.clear();
    assert!(released.is_held_stopped());
    let left = left_behind(&released, server().rules(), at("08:05"));
    assert_eq!(left, Some(LeftBehind::Orphaned));
}

#[test]
fn a_start_that_was_given_up_is_sent_once_its_schedule_covers_it_again() {
    let failing = server().off().handled("08:00", RUNNING).asked(START, "08:00", failed("08:15"));
    let released = failing.clone().untagged().at("08:16").records().record;
    let again = failing.record(|record| *record = released).at("08:40");
    again.clone().observing().leaves(START);
    again.sends(START);
}

#[test]
fn what_opts_out_in_a_watch_out_is_released_after_it() {
    let watching = server().in_flight(START, "08:00").not_before("08:10");
    let watching = watching.off().untagged();
    watching.clone().at("08:09:59").goes_on();
    let write = watching.at("08:10").records();
    assert_eq!((ending(&write), write.record.not_before()), (Some(&Ending::Released), None));
}

#[test]
fn what_opts_out_and_reaches_its_end_is_simply_seen() {
    let write = stopping(server()).untagged().off().records();
    assert_eq!(ending(&write), Some(&Ending::Seen));
}

#[test]
fn past_its_deadline_a_start_without_effect_needs_a_person_and_is_sent_again() {
    let off = || server().off().asked(START, "08:00", accepted("08:00:10"));
    let off = || off().request(|request| request.first_accepted_at = Some(at("08:00:10")));
    off().at("08:10:09").goes_on();
    let write = off().at("08:10:10").records();
    let request = write.record.request.clone().unwrap();
    assert_eq!(request.ask, failed("08:11"));
    assert!(request.earlier_unanswered, "it may still take effect");
    assert!(request.problem.is_some() && write.record.last_error.is_some());
    assert!(matches!(write.events[..], [Event::Stuck { direction: START, .. }]));
    // Sent again, it is reported no more, and waits longer each time.
    let mut again = off().at("08:11");
    again.record = write.record;
    let mut taken = again.sends(START).record;
    let request = taken.request.as_mut().unwrap();
    assert!(request.problem.is_some() && request.first_accepted_at.is_some());
    request.ask = accepted("08:11:10");
    taken.permit = None;
    again.record = taken;
    let write = again.at("08:21:10").records();
    assert_eq!(write.record.request.unwrap().ask, failed("08:23"));
    assert_eq!(write.events, []);
}

#[test]
fn past_its_deadline_a_stop_is_stuck() {
    let saved = || database().saved(database_of("db-s-2vcpu-4gb", 2));
    for (case, before, deadline) in [
        (stopping(droplet()), "19:10:09", "19:10:10"),
        (stopping(pool().saved(pool_of(3))), "19:15:09", "19:15:10"),
        (stopping(saved()), "19:30:09", "19:30:10"),
    ] {
        case.clone().at(before).goes_on();
        let write = case.clone().at(deadline).records();
        assert!(matches!(
            &write.record.phase,
            Phase::Stuck { since, transition, .. }
                if *since == at(deadline) && transition.claimed_at == at("19:00")
        ));
        assert!(matches!(write.events[..], [Event::Stuck { direction: STOP, .. }]));
        assert!(write.record.last_error.is_some());
        assert_eq!(write.record.due_at, Some(at("tue 08:00")));
        case.busy().at(deadline).goes_on();
    }
}

#[test]
fn the_deadline_counts_from_the_acceptance_and_nothing_unanswered_is_stuck() {
    let late = droplet().asked(STOP, "18:00", accepted("19:00"));
    let late = late.handled("19:00", STOPPED);
    late.clone().at("19:09:59").goes_on();
    late.at("19:10").records();
    droplet().asked(STOP, "19:00", Ask::Open).at("23:00").goes_on();
    droplet().asked(STOP, "19:00", failed("19:05")).at("23:00").goes_on();
}

#[test]
fn what_is_stuck_settles_when_the_end_is_seen_later() {
    let stuck = stopping(server()).stuck(STOP, "19:00").at("22:00");
    stuck.goes_on();
    stuck.clone().logged(ActionEffect::Start, "21:00").goes_on();
    stuck.clone().off().busy().goes_on();
    let write = stuck.off().records();
    assert!(is_settled(&write.record, Power::Stopped));
    assert_eq!(ending(&write), Some(&Ending::Seen));
}

#[test]
fn there_is_nothing_to_follow_at_rest() {
    droplet().waits();
    droplet().off().waits();
    droplet().refused(STOP, "19:00").off().waits();
}

#[test]
fn the_log_is_read_only_where_it_can_show_something() {
    #[track_caller]
    fn check(case: &Case, expected: bool) {
        let needed = case.with(|seen, context| needs_log(&case.record, seen, context.now));
        assert_eq!(needed, expected);
    }
    let waited = || stopping(server()).at("19:00:30");
    check(&waited(), true);
    check(&waited().at("19:00:29"), false);
    check(&waited().off(), false);
    check(&waited().busy(), false);
    check(&server(), false);
    check(&stopping(database().saved(pool_of(1))).at("19:10"), false);
    let watching = server().in_flight(START, "08:00").not_before("08:10").at("08:00:05");
    check(&watching, false);
    check(&watching.off(), true);
}

#[test]
fn gone_takes_two_answers_of_404_in_two_ticks() {
    let case = server().at("12:00");
    let first = recorded(case.unlisted());
    assert_eq!(first.record.missing_since, Some(at("12:00")));
    assert!(is_settled(&first.record, Power::Running));
    assert_eq!(first.events, []);
    let case = case.record(|record| *record = first.record);
    // One tick looks for up to 50 s.
    let within_one_tick = case.clone().at("12:00:49").unlisted();
    assert!(matches!(within_one_tick, Follow::Wait));
    let write = recorded(case.at("12:00:50").unlisted());
    assert_eq!(write.record.phase, Phase::Gone { since: at("12:00:50") });
    assert!(!write.record.opted_in && write.record.handled.is_some());
    assert_eq!(write.record.due_at, None);
    assert_eq!(write.events, [Event::Gone { saved: None }]);
}

/// The token may be another project's; an inventory knows whether the others are there.
#[test]
fn what_is_followed_is_gone_only_once_an_inventory_says_so() {
    let case = stopping(server());
    let first = recorded(case.clone().at("19:00:30").missing());
    assert_eq!(first.record.missing_since, Some(at("19:00:30")));
    let missing = case.record(|record| *record = first.record);
    assert!(matches!(missing.clone().at("19:09").missing(), Follow::Wait));
    let gone = recorded(missing.at("19:10").unlisted()).record;
    assert!(matches!(gone.phase, Phase::Gone { .. }));
    // Its edge was not carried out.
    assert_eq!(gone.handled, None);
}

#[test]
fn what_was_under_way_ends_with_the_resource() {
    let case = stopping(pool().saved(pool_of(3)));
    let case = case.record(|record| record.missing_since = Some(at("19:00")));
    let case = case.not_before("19:10");
    let write = recorded(case.at("19:01").unlisted());
    assert_eq!(ending(&write), Some(&Ending::Gone));
    assert_eq!((write.record.request.as_ref(), write.record.not_before()), (None, None));
    let saved = Some(pool_of(3));
    assert_eq!(write.events, [Event::Gone { saved }]);
}

#[test]
fn what_a_settled_resource_was_owed_goes_to_history_with_it() {
    let case = pool().saved(pool_of(3));
    let case = case.record(|record| record.missing_since = Some(at("19:00")));
    let write = recorded(case.at("19:01").unlisted());
    let entry = write.history.unwrap();
    assert_eq!((entry.ending, entry.saved), (Ending::Gone, Some(pool_of(3))));
    let nothing_owed = server().record(|record| record.missing_since = Some(at("19:00")));
    assert_eq!(recorded(nothing_owed.at("19:01").unlisted()).history, None);
}

#[test]
fn nothing_goes_while_a_writer_may_be_sending_and_nothing_goes_twice() {
    let missing = stopping(server()).record(|record| record.missing_since = Some(at("19:00")));
    let permitted = missing.permitted_until("19:01:31", "other").at("19:01:30");
    assert!(matches!(permitted.unlisted(), Follow::Wait));
    let gone = server().record(|record| record.phase = Phase::Gone { since: at("12:00") });
    assert!(matches!(gone.unlisted(), Follow::Wait));
}

#[test]
fn a_resource_that_answers_again_is_not_missing() {
    let case = stopping(server()).record(|record| record.missing_since = Some(at("19:00")));
    let write = case.at("19:01").records();
    assert_eq!(write.record.missing_since, None);
}

/// A start of a database of 60 GiB that has its plan back, and this much storage.
fn restored_with(engine: &str, storage_mib: u64) -> Case {
    let saved = SavedState::Database {
        plan: "db-s-2vcpu-4gb".to_owned(),
        nodes: 2,
        storage_mib: Some(61_440),
    };
    let mut case = starting(database().saved(saved).used());
    if let Size::Database(size) = &mut case.resource.size {
        engine.clone_into(&mut size.engine);
        size.storage_mib = Some(storage_mib);
    }
    case
}

#[test]
fn a_start_is_settled_only_once_the_storage_is_back_where_it_can_be_set() {
    restored_with("pg", 40_960).goes_on();
    for storage_mib in [61_440, 81_920] {
        let record = restored_with("pg", storage_mib).records().record;
        assert!(is_settled(&record, Power::Running));
        assert!(!record.held);
    }
}

#[test]
fn a_database_whose_storage_cannot_be_put_back_is_held_before_its_next_stop() {
    let write = restored_with("valkey", 40_960).records();
    assert!(is_settled(&write.record, Power::Running));
    assert!(write.record.held);
    let lost = write.record.lost_storage.unwrap();
    assert_eq!(lost.to_string(), "40 GiB of storage instead of 60 GiB");
    let seen = write.events[0].to_string();
    assert_eq!(
        seen,
        "running, seen after 40 s, restored 2 x db-s-2vcpu-4gb, but with 40 GiB of storage instead \
         of 60 GiB: held until `offhours approve`"
    );
    let whole = restored_with("valkey", 61_440).records().record;
    assert_eq!((whole.held, whole.lost_storage), (false, None));
}
