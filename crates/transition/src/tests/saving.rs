//! The saved state: written before a shrink, never by a reduced one, cleared only after a restore.

use super::*;

/// Checks what a stop of this case saves, and whether anything may have shrunk it.
#[track_caller]
fn stop_saves(case: &Case, expected: SavedState, used: bool) -> Send {
    let send = case.sends(STOP);
    assert_eq!((&send.record.saved, send.record.may_have_shrunk), (&Some(expected), used));
    send
}

/// This many nodes, autoscaled between 1 and 5.
fn autoscaled(count: u32) -> SavedState {
    SavedState::NodePool { count, autoscale: Some(AutoscaleBounds { min: 1, max: 5 }) }
}

fn original() -> SavedState {
    SavedState::Database { plan: "db-s-2vcpu-4gb".to_owned(), nodes: 2, storage_mib: Some(61_440) }
}

#[test]
fn the_first_stop_saves_what_it_sees() {
    stop_saves(&database(), original(), false);
    stop_saves(&pool(), pool_of(3), false);
    stop_saves(&pool().used(), pool_of(3), false);
    let mut autoscaled = pool();
    let bounds = AutoscaleBounds { min: 2, max: 6 };
    if let Size::NodePool(size) = &mut autoscaled.resource.size {
        size.autoscale = Some(bounds);
    }
    let saved = SavedState::NodePool { count: 3, autoscale: Some(bounds) };
    stop_saves(&autoscaled, saved, false);
}

#[test]
fn machines_have_nothing_to_save() {
    assert_eq!(droplet().sends(STOP).record.saved, None);
    assert_eq!(server().sends(STOP).record.saved, None);
}

#[test]
fn what_no_shrink_can_have_touched_is_saved_anew() {
    let case = database().saved(database_of("db-s-8vcpu-16gb", 3));
    stop_saves(&case, original(), false);
}

#[test]
fn what_a_person_leaves_after_an_unanswered_shrink_replaces_no_larger_original() {
    // Count 0 is asked, answered 504, and lands; a person scales to 1; then it is asked again.
    let case = pool().saved(autoscaled(3)).asked(STOP, "19:00", Ask::Open);
    stop_saves(&case.nodes(1, 1, 1).at("19:02"), autoscaled(3), true);
    let large = database_of("db-s-8vcpu-16gb", 2);
    let case = database().saved(large.clone());
    let case = case.asked(STOP, "19:00", Ask::Open);
    stop_saves(&case.sized("db-s-1vcpu-2gb", 2).at("19:40"), large, true);
}

#[test]
fn storage_that_a_person_adds_after_an_unanswered_shrink_belongs_to_the_original() {
    let with = |storage_mib| SavedState::Database {
        plan: "db-s-2vcpu-4gb".to_owned(),
        nodes: 2,
        storage_mib: Some(storage_mib),
    };
    // It has 60 GiB now.
    let case = database().saved(with(40_960));
    let case = case.asked(STOP, "19:00", Ask::Open).at("19:02");
    stop_saves(&case, with(61_440), true);
    let case = database().saved(with(81_920));
    let case = case.asked(STOP, "19:00", Ask::Open).at("19:02");
    stop_saves(&case, with(81_920), true);
}

#[test]
fn a_start_takes_no_storage_that_a_person_added_at_night() {
    let saved = SavedState::Database {
        plan: "db-s-2vcpu-4gb".to_owned(),
        nodes: 2,
        storage_mib: Some(40_960),
    };
    // It has 60 GiB now.
    let case = database().saved(saved).used().sized("db-s-1vcpu-2gb", 1).at("tue 08:00");
    assert_eq!(case.sends(START).step(), Step::Resize(original()));
}

#[test]
fn what_a_person_enlarges_after_an_unanswered_shrink_is_the_new_original() {
    let case = database().saved(database_of("db-s-1vcpu-2gb", 2));
    let case = case.asked(STOP, "19:00", Ask::Open).at("19:02");
    stop_saves(&case, original(), true);
}

#[test]
fn what_was_certainly_not_accepted_is_saved_anew() {
    let case = database().saved(database_of("db-s-8vcpu-16gb", 3));
    let case = case.asked(STOP, "19:00", failed("19:01")).at("19:02");
    stop_saves(&case, original(), false);
}

#[test]
fn what_opts_out_after_an_unanswered_shrink_keeps_its_original() {
    let case = pool().saved(pool_of(3)).asked(STOP, "19:00", Ask::Open);
    let released = case.untagged().nodes(1, 1, 1).at("19:17:05").records();
    assert_eq!(released.record.request, None);
    assert_eq!(released.record.saved, Some(pool_of(3)));
    assert!(released.record.may_have_shrunk, "the next stop would save the 1");
}

#[test]
fn what_disappears_after_an_unanswered_shrink_keeps_its_original() {
    let case = pool().saved(pool_of(3)).asked(STOP, "19:00", Ask::Open);
    let missing = case.record(|record| record.missing_since = Some(at("19:01")));
    let gone = recorded(missing.at("19:02").unlisted()).record;
    assert!(gone.may_have_shrunk && gone.saved == Some(pool_of(3)));
}

#[test]
fn what_a_shrink_may_have_touched_keeps_the_larger() {
    let larger = database_of("db-s-8vcpu-16gb", 3);
    stop_saves(&database().saved(larger.clone()).used(), larger, true);
    let smaller = database_of("db-s-1vcpu-2gb", 2);
    stop_saves(&database().saved(smaller).used(), original(), true);
    let equal = database_of("db-s-2vcpu-4gb", 2);
    stop_saves(&database().saved(equal.clone()).used(), equal, true);
    stop_saves(&pool().saved(pool_of(5)).used(), pool_of(5), true);
    stop_saves(&pool().saved(pool_of(2)).used(), pool_of(3), true);
}

#[test]
fn what_a_shrink_may_have_touched_keeps_the_larger_of_each_part() {
    let with = |plan: &str, nodes| SavedState::Database {
        plan: plan.to_owned(),
        nodes,
        storage_mib: Some(61_440),
    };
    // Two nodes of 2 vCPU are seen: one who adds a node at night leaves the small plan.
    let saved = database_of("db-s-1vcpu-2gb", 3);
    let expected = with("db-s-2vcpu-4gb", 3);
    stop_saves(&database().saved(saved).used(), expected, true);
    let saved = database_of("db-s-8vcpu-16gb", 1);
    let expected = database_of("db-s-8vcpu-16gb", 2);
    let send = stop_saves(&database().saved(saved).used(), expected, true);
    assert_eq!((send.events, send.history), (Vec::new(), None));
}

#[test]
fn of_two_plans_that_do_not_compare_the_saved_one_is_kept_and_the_other_goes_to_history() {
    let other = database_of("so-1vcpu-16gb", 3);
    let send = stop_saves(&database().saved(other.clone()).used(), other.clone(), true);
    let (saved, seen) = (other.clone(), original());
    assert_eq!(send.events, [Event::UnlikePlans { saved, seen }]);
    let entry = send.history.unwrap();
    assert_eq!((&entry.ending, &entry.saved), (&Ending::Resized, &Some(other)));
    assert_eq!(entry.seen, Some(original()));
    let transition = send.record.in_flight().unwrap();
    let stop = domain::history::HistoryEntry {
        claimed_at: transition.claimed_at,
        direction: transition.direction,
        ..entry.clone()
    };
    let keys = (entry.transition_key(), stop.transition_key());
    assert_ne!(keys.0, keys.1, "the stop's own entry must not replace it");
}

#[test]
fn a_request_that_may_have_been_accepted_counts_as_a_shrink() {
    // Refused in the end, but an earlier ask was never answered.
    let refused = database().saved(database_of("db-s-8vcpu-16gb", 3));
    let refused = refused.asked(STOP, "sun 19:00", Ask::Open).unknown();
    let refused = refused.refused(STOP, "sun 19:00").handled("08:00", RUNNING);
    stop_saves(&refused, database_of("db-s-8vcpu-16gb", 3), true);
}

#[test]
fn an_unanswered_shrink_that_landed_is_not_taken_for_the_original() {
    // Meanwhile the schedule was given an even smaller size to stop at.
    let large = database_of("db-s-8vcpu-16gb", 2);
    let case = database().saved(large.clone()).asked(STOP, "19:00", Ask::Open);
    let case = case.request(|r| r.step = Step::Resize(database_of("db-s-2vcpu-4gb", 2)));
    stop_saves(&case.at("19:02"), large, true);
}

#[test]
fn the_rest_of_a_draining_pool_is_never_saved() {
    let draining = pool().nodes(0, 2, 2);
    draining.postpones(STOP, "draining");
    let saved = draining.saved(pool_of(3));
    saved.postpones(STOP, "draining");
    // An unanswered ask takes effect late, after a second one has failed.
    let failed = saved.clone().asked(STOP, "19:00", failed("19:03")).unknown();
    failed.clone().at("19:03").leaves(STOP);
    let renewed = failed.clone().overridden(STOPPED, "19:02", "22:00").at("19:03");
    assert_eq!(renewed.writes(STOP).record.saved, Some(pool_of(3)));
    let turning = saved.asked(START, "18:59", accepted("18:59:10"));
    turning.handled("18:59", RUNNING).leaves(STOP);
}

#[test]
fn a_start_leaves_what_is_saved_until_the_restore_is_seen() {
    let stopped = database().saved(original()).used().smallest();
    let stopped = stopped.settled(Power::Stopped).handled("sun 19:00", STOPPED);
    let send = stopped.at("08:00").sends(START);
    assert_eq!((send.record.saved, send.record.may_have_shrunk), (Some(original()), true));
}

/// The night is over: the database as a person left it, at its begin edge.
fn morning(case: Case) -> Case {
    let case = case.saved(database_of("db-s-2vcpu-4gb", 2)).used();
    let case = case.settled(Power::Stopped).handled("sun 19:00", STOPPED);
    case.at("08:00")
}

#[test]
fn a_start_saves_nothing() {
    // A person has added a node at night.
    let send = morning(database().sized("db-s-1vcpu-2gb", 3)).sends(START);
    assert_eq!(send.record.saved, Some(database_of("db-s-2vcpu-4gb", 2)));
}

#[test]
fn a_start_puts_nothing_back_that_no_stop_took_away() {
    let fewer = pool().nodes(1, 1, 1).saved(pool_of(3));
    let write = fewer.at("tue 08:00").writes(START);
    assert_eq!(write.record.saved, None);
}

#[test]
fn at_the_begin_edge_what_is_smaller_than_saved_is_restored() {
    let send = morning(database().sized("db-s-1vcpu-2gb", 2)).sends(START);
    assert_eq!(send.step(), Step::Resize(database_of("db-s-2vcpu-4gb", 2)));
}

#[test]
fn at_the_begin_edge_what_a_person_left_at_least_as_large_is_kept() {
    let write = morning(database()).writes(START);
    assert_eq!((write.record.saved, write.record.may_have_shrunk), (None, false));
    assert_eq!(write.history, None, "the same size is no news");
    let write = morning(database().sized("db-s-4vcpu-8gb", 3)).writes(START);
    assert_eq!(write.record.saved, None);
    let entry = write.history.unwrap();
    assert_eq!(entry.ending, Ending::Resized);
    assert_eq!(entry.saved, Some(database_of("db-s-2vcpu-4gb", 2)));
}

#[test]
fn at_the_begin_edge_each_part_is_restored_that_is_smaller_than_saved() {
    for (plan, nodes, asked_plan, asked_nodes) in [
        // A node that a person added at night is no reason to lose the plan.
        ("db-s-1vcpu-2gb", 3, "db-s-2vcpu-4gb", 3),
        // A larger plan is no reason to lose the standby node.
        ("db-s-4vcpu-8gb", 1, "db-s-4vcpu-8gb", 2),
        // A plan that does not compare stays.
        ("so-1vcpu-16gb", 1, "so-1vcpu-16gb", 2),
    ] {
        let send = morning(database().sized(plan, nodes)).sends(START);
        assert_eq!(send.record.saved, Some(database_of("db-s-2vcpu-4gb", 2)));
        let Step::Resize(SavedState::Database { plan, nodes, .. }) = send.step() else {
            panic!("another step");
        };
        assert_eq!((plan.as_str(), nodes), (asked_plan, asked_nodes));
    }
}

#[test]
fn a_plan_that_does_not_compare_with_the_saved_one_stays_and_needs_a_person() {
    let saved = database_of("db-s-2vcpu-4gb", 2);
    let write = morning(database().sized("so-1vcpu-16gb", 2)).writes(START);
    assert_eq!(write.record.unlike_saved(), Some(&saved));
    assert!(write.record.may_have_shrunk, "the next stop would replace it");
    let unlike = |event: &Event| matches!(event, Event::UnlikePlans { .. });
    assert!(write.events.iter().any(unlike), "{:?}", write.events);
    let said = format!("{:?}", write.events);
    assert!(said.contains("does not compare with the saved one, and stays"), "{said}");
    // The same where its standby node had to be restored first.
    let starting = database().sized("so-1vcpu-16gb", 2).saved(saved.clone()).used();
    let restored =
        starting.asked(START, "08:00", accepted("08:00:10")).handled("08:00", RUNNING).at("08:12");
    let record = restored.records().record;
    assert_eq!((record.unlike_saved(), record.may_have_shrunk), (Some(&saved), true));
}

#[test]
fn a_database_is_not_stopped_at_a_size_that_its_start_would_not_recognise() {
    for (plan, nodes) in [("db-s-1vcpu-8gb", 1), ("mystery", 1), ("db-s-1vcpu-2gb", 3)] {
        let case = database().stopping_at(plan, nodes);
        case.postpones(STOP, "is not smaller in every respect");
        case.observing().postpones(STOP, "another stop_size");
    }
    database().stopping_at("db-s-2vcpu-4gb", 1).sends(STOP);
}

#[test]
fn at_the_begin_edge_an_autoscaler_that_our_stop_switched_off_comes_back() {
    let night = |count| {
        let case = pool().saved(autoscaled(3)).used().settled(Power::Stopped);
        case.handled("sun 19:00", STOPPED).nodes(count, count, count)
    };
    for (left, restored) in [(0, 3), (2, 3), (3, 3), (4, 4)] {
        let send = night(left).at("08:00").sends(START);
        let bounds = Some(AutoscaleBounds { min: 1, max: 5 });
        let size = SavedState::NodePool { count: restored, autoscale: bounds };
        assert_eq!(send.step(), Step::Resize(size), "{left}");
    }
}

#[test]
fn a_stop_that_sees_a_larger_pool_carries_the_autoscaler_over() {
    stop_saves(&pool().saved(autoscaled(2)).used(), autoscaled(3), true);
    stop_saves(&pool().saved(autoscaled(5)).used(), autoscaled(5), true);
    stop_saves(&pool().saved(autoscaled(3)).used(), autoscaled(3), true);
}

#[test]
fn an_acknowledged_stop_clears_nothing() {
    let case = database().saved(original()).used().smallest();
    let record = case.writes(STOP).record;
    assert_eq!((record.saved, record.may_have_shrunk), (Some(original()), true));
}

#[test]
fn an_acknowledged_stop_knows_that_an_unanswered_shrink_led_there() {
    let case = database().saved(original()).smallest();
    let case = case.asked(STOP, "sun 19:00", failed("sun 19:10")).unknown();
    let case = case.refused(STOP, "sun 19:00").handled("08:00", RUNNING);
    let record = case.writes(STOP).record;
    assert_eq!((record.may_have_shrunk, record.request), (true, None));
}

#[test]
fn what_is_seen_restored_is_cleared_and_what_is_seen_stopped_is_used() {
    let saved = database_of("db-s-2vcpu-4gb", 2);
    let starting = database().saved(saved.clone()).used();
    let restored = starting.asked(START, "08:00", accepted("08:00:10")).at("08:12");
    let record = restored.records().record;
    assert_eq!((record.saved, record.may_have_shrunk), (None, false));
    let stopping = database().saved(saved.clone()).asked(STOP, "19:00", Ask::Open);
    let record = stopping.smallest().at("19:12").records().record;
    assert_eq!((record.saved, record.may_have_shrunk), (Some(saved), true));
}

#[test]
fn what_is_seen_stopped_is_used_though_its_own_request_failed() {
    let failing = database().saved(original());
    let failing = failing.asked(STOP, "19:00", failed("19:30"));
    let record = failing.smallest().at("19:12").records().record;
    assert_eq!((record.saved, record.may_have_shrunk), (Some(original()), true));
}

#[test]
fn no_other_ending_clears_what_is_saved() {
    let stopping = || {
        let case = database().saved(original());
        case.asked(STOP, "19:00", accepted("19:00:10"))
    };
    let stuck = stopping().at("19:30:10").records().record;
    assert!(matches!(stuck.phase, Phase::Stuck { .. }));
    let let_go = stopping().untagged().at("19:30:15").records().record;
    assert!(matches!(let_go.phase, Phase::Settled { .. }));
    let missing = stopping().record(|record| record.missing_since = Some(at("19:00:30")));
    let gone = recorded(missing.at("19:02").unlisted()).record;
    assert!(matches!(gone.phase, Phase::Gone { .. }));
    for record in [stuck, let_go, gone] {
        assert_eq!(record.saved, Some(original()));
    }
}
