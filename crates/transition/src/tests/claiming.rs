//! From rest: claim, acknowledge, observe, or leave alone.

use domain::history::HistoryEntry;

use super::*;

#[test]
fn an_end_edge_claims_the_record_and_permits_one_request() {
    let case = droplet().record(|record| {
        record.attempts = 2;
        record.last_error = Some("busy".into());
        record.retry_at = Some(at("19:05"));
    });
    let send = case.sends(STOP);
    is_claimed(&send, STOP, at("19:00"));
    let record = &send.record;
    assert_eq!((record.attempts, &record.last_error), (0, &None));
    let handled = record.handled.as_ref().unwrap();
    assert_eq!((handled.key.instant, handled.desired), (at("19:00"), Some(STOPPED)));
    assert_eq!((record.not_before(), record.may_have_shrunk), (None, false));
    assert!(!record.request.as_ref().unwrap().earlier_unanswered);
    assert_eq!(record.due_at, Some(at("19:00:05")));
    assert_eq!(send.step(), CUT);
    assert_eq!(record.revision, case.record.revision, "the store raises it");
}

#[test]
fn a_begin_edge_claims_in_the_other_direction() {
    let case = server().settled(Power::Stopped).off();
    let case = case.handled("sun 19:00", STOPPED).at("08:00");
    let send = case.sends(START);
    is_claimed(&send, START, at("08:00"));
    assert_eq!(send.step(), ON);
}

#[test]
fn nothing_is_claimed_before_its_edge_or_twice() {
    droplet().at("18:59:59").leaves(STOP);
    let case = droplet();
    let claimed = case.sends(STOP).record;
    let again = case.record(|record| *record = claimed);
    again.leaves(STOP);
    again.at("19:03").settled(Power::Stopped).leaves(STOP);
}

#[test]
fn each_function_acts_in_its_own_direction_only() {
    droplet().leaves(START);
    let stopped = droplet().settled(Power::Stopped).off();
    stopped.handled("sun 19:00", STOPPED).at("08:00").leaves(STOP);
}

#[test]
fn the_look_decides_who_is_opted_in_and_not_the_record() {
    droplet().untagged().postpones(STOP, "no schedule names it");
    let joined = droplet().record(|record| {
        record.opted_in = false;
        record.tags.clear();
    });
    joined.sends(STOP);
    let mut opted_out = droplet();
    opted_out.resource.tags.insert("offhours:off".to_owned());
    opted_out.postpones(STOP, "opted out");
}

#[test]
fn what_offhours_holds_stopped_is_restored_by_name_though_it_has_opted_out() {
    let opted_out = |mut case: Case| {
        case.resource.tags.insert("offhours:off".to_owned());
        case.record.tags.clone_from(&case.resource.tags);
        case.at("21:00").commanded(RUNNING, "21:00")
    };
    let stopped = || droplet().off().settled(Power::Stopped);
    let ours = opted_out(stopped().handled("19:00", STOPPED));
    let send = ours.sends(START);
    assert!(send.record.due_at.is_some());
    // Once it runs, it is let alone again.
    let runs = opted_out(droplet().handled("19:00", STOPPED));
    runs.postpones(START, "opted out");
    // What a person switched off after its start is theirs.
    let theirs = opted_out(stopped().handled("08:00", RUNNING));
    theirs.postpones(START, "opted out");
    let mut unsupported = ours;
    unsupported.resource.unsupported = Some("a GPU Droplet".to_owned());
    unsupported.postpones(START, "a GPU Droplet");
}

#[test]
fn enforce_has_nothing_to_put_back_in_a_pool_that_a_person_emptied() {
    let enforced = |case: Case| {
        let case = case.following(|policy| policy.enforce = true);
        case.off().settled(Power::Stopped).at("10:00")
    };
    enforced(pool().nodes(0, 0, 0)).leaves(START);
    assert!(enforced(droplet()).sends(START).record.due_at.is_some());
    // What it is owed is put back.
    let owed = enforced(pool().nodes(0, 0, 0).saved(pool_of(3)).used());
    assert!(matches!(
        owed.sends(START).step(),
        Step::Resize(SavedState::NodePool { count: 3, .. })
    ));
}

#[test]
fn a_busy_resource_is_left_for_later() {
    droplet().busy().postpones(STOP, "busy: locked");
    droplet().busy().off().postpones(STOP, "busy: locked");
}

#[test]
fn while_one_writer_holds_a_permit_no_other_claims() {
    droplet().permitted_until("19:00:01", "other").leaves(STOP);
    droplet().permitted_until("19:00:01", "us").leaves(STOP);
    droplet().permitted_until("19:00", "other").sends(STOP);
}

#[test]
fn a_look_older_than_half_a_minute_supports_nothing() {
    let case = droplet().at("19:01");
    case.clone().looked_at("19:00:30").sends(STOP);
    case.clone().looked_at("19:00:29").leaves(STOP);
    case.off().looked_at("19:00:29").leaves(STOP);
    assert_eq!(LOOK_AGE, SignedDuration::from_secs(30));
}

#[test]
fn a_stale_reader_claims_nothing() {
    let newer = droplet().record(|record| {
        record.handled.as_mut().unwrap().generation = Generation(2);
    });
    newer.leaves(STOP);
    newer.clone().in_generation(2).sends(STOP);
    droplet().handled("19:00:03", RUNNING).leaves(STOP);
}

#[test]
fn what_was_refused_or_stuck_is_claimed_at_the_next_edge_and_not_before() {
    for case in [droplet().refused(START, "08:00"), droplet().stuck(START, "08:00")] {
        case.clone().off().at("18:59").leaves(START);
        case.clone().off().at("18:59").leaves(STOP);
        is_claimed(&case.sends(STOP), STOP, at("19:00"));
    }
}

#[test]
fn what_is_held_is_left_alone() {
    let held = droplet().record(|record| record.held = true);
    held.leaves(STOP);
    held.commanded(STOPPED, "19:00").sends(STOP);
}

#[test]
fn what_is_gone_is_left_alone() {
    let gone = Phase::Gone { since: at("12:00") };
    droplet().record(|record| record.phase = gone).leaves(STOP);
}

#[test]
fn drift_is_claimed_where_enforced() {
    let started = droplet().handled("19:00", STOPPED).at("21:00");
    started.leaves(STOP);
    let enforced = started.following(|policy| policy.enforce = true);
    is_claimed(&enforced.sends(STOP), STOP, at("21:00"));
    enforced.off().settled(Power::Stopped).leaves(STOP);
}

#[test]
fn a_command_is_claimed_with_its_cause() {
    let send = droplet().at("12:00").commanded(STOPPED, "12:00").sends(STOP);
    let by = "ada".to_owned();
    assert_eq!(send.record.in_flight().unwrap().cause, Cause::Manual { by });
    // Only the command names it.
    let mut unnamed = droplet().at("12:00").commanded(STOPPED, "12:00").untagged();
    unnamed.sends(STOP);
    unnamed.resource.tags.insert("offhours:off".to_owned());
    unnamed.postpones(STOP, "opted out");
}

/// AWS may deliver an invocation twice, and a run that finds a record equal to its own takes it for
/// its own write whose answer was lost.
#[test]
fn two_runs_of_one_invocation_never_write_the_same_claim() {
    let case = droplet();
    let [first, second] = [1, 2].map(|run| Writer::of("request-7", run));
    assert_eq!((first.invocation(), second.invocation()), ("request-7", "request-7"));
    let claim = |writer| {
        let plan = case.with(|seen, context| {
            plan(STOP, &case.record, seen, PlanContext { writer, ..context })
        });
        let Plan::Send(send) = plan else {
            panic!("sends nothing: {plan:#?}");
        };
        send.record
    };
    assert_ne!(claim(&first), claim(&second));
}

#[test]
fn what_is_already_at_the_end_is_acknowledged_and_nothing_is_sent() {
    let write = droplet().off().writes(STOP);
    assert!(is_settled(&write.record, Power::Stopped));
    assert_eq!(write.record.handled.unwrap().key.instant, at("19:00"));
    assert_eq!((write.record.request, write.record.permit), (None, None));
    assert_eq!(write.record.due_at, Some(at("tue 08:00")));
    assert_eq!(
        write.events,
        [Event::AlreadyThere { direction: STOP, reason: "already off".to_owned() }]
    );
}

#[test]
fn an_acknowledgement_ends_refused_and_stuck_and_their_back_off() {
    let case = droplet().stuck(START, "08:00").off().record(|record| {
        record.attempts = 3;
        record.retry_at = Some(at("19:10"));
        record.last_error = Some("no".into());
    });
    let record = case.writes(STOP).record;
    assert!(is_settled(&record, Power::Stopped));
    assert_eq!((record.attempts, record.retry_at, record.last_error), (0, None, None));
}

#[test]
fn what_was_stuck_is_in_history_once_a_newer_edge_has_come() {
    let of = |write: Option<HistoryEntry>| {
        let entry = write.expect("the transition that was stuck");
        (entry.direction, entry.ending, entry.reason)
    };
    let stuck = (START, Ending::Stuck, Some("not seen".to_owned()));
    let case = droplet().stuck(START, "08:00");
    assert_eq!(of(case.clone().off().writes(STOP).history), stuck);
    assert_eq!(of(case.sends(STOP).history), stuck);
}

#[test]
fn a_database_that_is_as_small_as_it_gets_is_acknowledged_and_nothing_is_saved() {
    let write = database().smallest().writes(STOP);
    assert!(is_settled(&write.record, Power::Stopped));
    assert_eq!((write.record.saved, write.record.may_have_shrunk), (None, false));
    assert!(matches!(
        &write.events[..],
        [Event::AlreadyThere { reason, .. }] if reason == "already smallest"
    ));
    database().sized(SMALLEST, 2).sends(STOP);
}

#[test]
fn a_database_that_a_person_enlarged_beyond_shrinking_is_owed_nothing() {
    let enlarged = database()
        .sized("db-s-6vcpu-16gb", 2)
        .stopping_at("db-s-6vcpu-16gb", 2)
        .saved(database_of("db-s-2vcpu-4gb", 2))
        .used();
    let write = enlarged.clone().writes(STOP);
    assert!(is_settled(&write.record, Power::Stopped));
    assert_eq!((write.record.saved, write.record.may_have_shrunk), (None, false));
    // A request that was never answered may still shrink it.
    let asked = enlarged.asked(STOP, "18:00", Ask::Open).settled(Power::Running);
    assert!(asked.writes(STOP).record.saved.is_some());
}

#[test]
fn a_database_that_has_its_plan_back_and_less_storage_is_owed_that() {
    let given_back = |storage_mib| {
        let saved = SavedState::Database {
            plan: "db-s-2vcpu-4gb".to_owned(),
            nodes: 2,
            storage_mib: Some(143_360),
        };
        let mut case = database().saved(saved).used().at("tue 07:40");
        if let Size::Database(size) = &mut case.resource.size {
            size.storage_mib = Some(storage_mib);
        }
        case.writes(STOP).record
    };
    let record = given_back(61_440);
    assert_eq!(record.last.unwrap().ending, Ending::TooLate);
    assert!(record.saved.is_some());
    assert_eq!(given_back(143_360).saved, None);
}

#[test]
fn a_pool_is_at_its_end_at_zero_and_nowhere_before() {
    let write = pool().nodes(0, 0, 0).writes(STOP);
    assert!(is_settled(&write.record, Power::Stopped));
    assert_eq!(write.record.saved, None);
    is_claimed(&pool().nodes(3, 3, 2).sends(STOP), STOP, at("19:00"));
}

#[test]
fn a_database_without_a_plan_to_shrink_to_is_left_for_later() {
    let mut case = database();
    case.target = None;
    case.postpones(STOP, "lists no plan");
    // In observe mode a command ends all the same.
    case.clone().observing().postpones(STOP, "lists no plan");
    let write = case.commanded(STOPPED, "19:00").observing().writes(STOP);
    assert!(matches!(write.events[..], [Event::Declined { .. }]));
}

#[test]
fn a_begin_edge_with_nothing_saved_has_nothing_to_put_back() {
    for case in [database().smallest(), pool().nodes(0, 0, 0)] {
        let case = case.settled(Power::Stopped).handled("sun 19:00", STOPPED);
        let write = case.at("08:00").writes(START);
        assert!(is_settled(&write.record, Power::Running));
        assert_eq!(write.history, None);
    }
}

#[test]
fn observe_mode_records_and_reports_but_sends_nothing() {
    let case = droplet().observing();
    let withheld = case.withholds(STOP);
    assert_eq!((withheld.step, withheld.saved), (CUT, None));
    let write = withheld.write;
    assert!(is_settled(&write.record, Power::Running));
    assert_eq!((write.record.request.as_ref(), &write.record.permit), (None, &None));
    assert_eq!(ending(&write), Some(&Ending::WouldHave));
    assert_eq!(write.events, []);
    let observed = droplet().observing().record(|record| *record = write.record);
    observed.leaves(STOP);
    let acting = observed.following(|policy| policy.mode = Mode::Act);
    acting.leaves(STOP);
    acting.in_generation(2).sends(STOP);
}

#[test]
fn what_was_held_stopped_before_observe_mode_stays_so() {
    let desired = |write: &Write| write.record.handled.as_ref().unwrap().desired;
    let off = || server().off().settled(Power::Stopped);
    let held = off().handled("sun 19:00", STOPPED);
    let held = held.observing();
    let write = held.at("08:00").withholds(START).write;
    assert_eq!(ending(&write), Some(&Ending::WouldHave));
    assert_eq!(desired(&write), Some(STOPPED));
    let stays = off().record(|record| *record = write.record);
    // The deployment acts again, under the same configuration.
    stays.clone().at("08:30").sends(START);
    let observed = stays.observing().at("19:00");
    assert_eq!(desired(&observed.writes(STOP)), Some(STOPPED));
    // It was not known for a moment.
    let again = observed.settled(Power::Between);
    assert_eq!(desired(&again.writes(STOP)), Some(STOPPED));
    // A person switched this one off.
    let write = off().observing().at("19:00").writes(STOP);
    assert_eq!(desired(&write), None);
}

#[test]
fn what_a_person_started_in_observe_mode_is_stopped_once_it_acts() {
    let owed = pool().saved(pool_of(3)).used().handled("sun 19:00", STOPPED);
    let scaled = owed.nodes(1, 1, 1).settled(Power::Running).at("19:00");
    let write = scaled.clone().observing().withholds(STOP).write;
    assert_eq!(write.record.handled.as_ref().unwrap().desired, None);
    let acting = scaled.record(|record| *record = write.record).at("19:05");
    acting.in_generation(2).sends(STOP);
}

#[test]
fn observe_mode_saves_no_size() {
    let write = database().observing().withholds(STOP).write;
    assert_eq!(write.record.saved, None);
}

fn retaining() -> Case {
    retaining_of(droplet())
}

fn retaining_of(case: Case) -> Case {
    let case = case.following(|policy| policy.retain_running = true);
    case.settled(Power::Stopped).handled("sun 19:00", STOPPED).at("08:00")
}

/// Lets the stop of Sunday evening end like this.
fn ended_as(ending: Ending, case: Case) -> Case {
    case.record(|record| {
        let entry = HistoryEntry::unasked(record, Cause::Schedule, ending, at("sun 19:00"));
        record.last = entry.last(record);
    })
}

#[test]
fn what_runs_already_at_its_begin_edge_is_retained_where_desired() {
    assert!(retaining().writes(START).record.retained);
    let not_desired = retaining().following(|policy| policy.retain_running = false);
    assert!(!not_desired.writes(START).record.retained);
}

#[test]
fn what_is_seen_for_the_first_time_is_not_retained() {
    let first = retaining().record(|record| record.handled = None);
    assert!(!first.writes(START).record.retained);
}

#[test]
fn what_our_own_start_left_running_is_not_retained() {
    let send = retaining().off().sends(START);
    assert!(!send.record.retained);
    // An override for the same state finds it running because of that start.
    let running = retaining().settled(Power::Running).handled("08:00", RUNNING);
    let overridden = running.overridden(RUNNING, "10:00", "14:00").at("10:00");
    let write = overridden.writes(START);
    assert!(!write.record.retained);
    // What was retained before stays retained.
    let retained = overridden.record(|record| record.retained = true);
    assert!(retained.writes(START).record.retained);
}

#[test]
fn what_a_person_asked_to_run_before_its_begin_edge_is_retained() {
    let asked = retaining().settled(Power::Running).record(|record| {
        let handled = record.handled.as_mut().unwrap();
        handled.key.rank = Rank::Manual;
        handled.desired = Some(RUNNING);
    });
    assert!(asked.writes(START).record.retained);
}

#[test]
fn what_is_retained_is_left_running_at_the_schedules_end_edge_once() {
    let retained = droplet()
        .following(|policy| policy.retain_running = true)
        .record(|record| record.retained = true);
    let write = retained.writes(STOP);
    assert!(is_settled(&write.record, Power::Running));
    assert!(!write.record.retained);
    assert!(matches!(
        &write.events[..],
        [Event::AlreadyThere { reason, .. }] if reason.contains("left running")
    ));
    retained.clone().following(|policy| policy.retain_running = false).sends(STOP);
    retained.clone().record(|record| record.retained = false).sends(STOP);
    let commanded = retained.at("12:00").commanded(STOPPED, "12:00");
    assert!(!commanded.sends(STOP).record.retained, "any stop ends it");
}

#[test]
fn a_stop_of_ours_that_came_to_nothing_retains_nothing() {
    let after = |ending| ended_as(ending, retaining()).writes(START).record.retained;
    for ending in
        [Ending::Refused, Ending::Stuck, Ending::WouldHave, Ending::TooLate, Ending::Released]
    {
        assert!(!after(ending), "{ending}");
    }
    // A person started it after it was stopped, or before the last end edge already.
    for ending in [Ending::Seen, Ending::Superseded, Ending::LeftRunning] {
        assert!(after(ending), "{ending}");
    }
}

#[test]
fn a_database_from_which_a_stop_had_nothing_to_take_is_not_retained() {
    let least = ended_as(Ending::AlreadyThere, retaining_of(database()));
    assert!(!least.writes(START).record.retained);
    let observed = least.clone().record(|record| record.handled.as_mut().unwrap().desired = None);
    assert!(!observed.writes(START).record.retained);
    // A person has given this one back what an earlier stop took.
    let whole = least.clone().saved(database_of("db-s-2vcpu-4gb", 2)).used();
    assert!(whole.writes(START).record.retained);
    let asked = least.record(|record| {
        let handled = record.handled.as_mut().unwrap();
        handled.key.rank = Rank::Manual;
        handled.desired = Some(RUNNING);
    });
    assert!(asked.writes(START).record.retained);
}

#[test]
fn a_pool_without_nodes_at_its_begin_edge_is_not_retained() {
    assert!(retaining_of(pool()).writes(START).record.retained);
    let emptied = retaining_of(pool().nodes(0, 0, 0)).record(|record| record.retained = true);
    assert!(!emptied.writes(START).record.retained);
}

#[test]
fn what_would_hardly_be_stopped_before_its_next_start_is_left_running() {
    let stopped = |case: Case, now: &str| {
        let opens = case.following(|policy| policy.enforce = true);
        matches!(opens.at(now).plan(STOP), Plan::Send(_))
    };
    // Monday's stop was missed: 60 minutes are what a database needs for both, 30 a node pool.
    assert!(stopped(database(), "tue 06:59"));
    assert!(!stopped(database(), "tue 07:01"));
    assert!(stopped(pool(), "tue 07:29"));
    assert!(!stopped(pool(), "tue 07:31"));
    assert!(stopped(droplet(), "tue 07:58"), "a machine is off at once");
    let commanded = database().commanded(STOPPED, "tue 07:40");
    assert!(stopped(commanded, "tue 07:41"), "a person asks for it");
    let write = database().at("tue 07:40").writes(STOP);
    assert!(is_settled(&write.record, Power::Running));
    assert_eq!(write.record.last.unwrap().ending, Ending::TooLate);
    assert_eq!(write.record.handled.unwrap().key.instant, at("19:00"));
    // What enforce finds afterwards is left as well, and not reported again.
    let drifted = database().following(|policy| policy.enforce = true);
    let drifted = drifted.handled("19:00", STOPPED).at("tue 07:50");
    drifted.leaves(STOP);
    // So is what was asked for all night and never accepted.
    let refused = database().asked(STOP, "19:00", failed("tue 06:50"));
    let refused = refused.saved(database_of("db-s-2vcpu-4gb", 2)).handled("19:00", STOPPED);
    assert!(matches!(refused.clone().at("tue 06:59").plan(STOP), Plan::Send(_)));
    let ended = refused.clone().at("tue 07:45").writes(STOP);
    assert!(is_settled(&ended.record, Power::Running));
    assert_eq!(ended.history.unwrap().ending, Ending::TooLate);
    assert_eq!(ended.record.saved, None, "nothing is owed");
    let shrunk = refused.record(|record| record.may_have_shrunk = true);
    assert!(matches!(shrunk.at("tue 07:45").plan(STOP), Plan::Send(_)));
    // A schedule that leaves no more time than that is followed all the same.
    let shut = database().open(&[("08:00", "12:00"), ("12:30", "19:00")]);
    assert!(stopped(shut, "tue 12:01"));
}

#[test]
fn settling_waits_while_an_opposite_request_may_still_act() {
    // The start was accepted and then overtaken: a person switched the machine off.
    let overtaken = droplet()
        .asked(START, "18:55", accepted("18:55:10"))
        .handled("08:00", RUNNING)
        .settled(Power::Running);
    let send = overtaken.sends(STOP);
    assert_eq!(send.record.not_before(), Some(at("19:05:15")));
    let watching = overtaken.off().writes(STOP).record;
    assert_eq!(watching.in_flight().unwrap().direction, STOP);
    assert_eq!((watching.request.as_ref(), watching.not_before()), (None, Some(at("19:05:15"))));
}

#[test]
fn a_request_that_cannot_act_any_more_holds_nothing_up() {
    let case = |ask| {
        let case = droplet().asked(START, "18:45", ask).settled(Power::Running);
        case.handled("08:00", RUNNING)
    };
    assert_eq!(case(accepted("18:49:55")).sends(STOP).record.not_before(), None);
    assert_eq!(case(failed("18:59")).sends(STOP).record.not_before(), None);
    let unknown = case(failed("18:59")).unknown();
    assert_eq!(unknown.sends(STOP).record.not_before(), None, "its permit ended at 18:47");
    let unknown = unknown.request(|request| request.asked_at = at("18:50"));
    assert_eq!(unknown.sends(STOP).record.not_before(), Some(at("19:02:05")));
    assert!(is_settled(&case(failed("18:59")).off().writes(STOP).record, Power::Stopped));
}

#[test]
fn a_watch_out_that_a_person_overtook_is_still_waited_out() {
    // While a late stop was watched for, a person resized the database, and the watch-out ended.
    let case = database()
        .saved(database_of("db-s-2vcpu-4gb", 2))
        .used()
        .not_before("08:30")
        .handled("08:00", RUNNING)
        .overridden(RUNNING, "08:10", "12:00");
    let record = case.clone().at("08:10").writes(START).record;
    assert_eq!(record.in_flight().unwrap().direction, START);
    assert_eq!(record.not_before(), Some(at("08:30")));
    assert!(record.saved.is_some(), "the late stop may still act");
    let record = case.at("08:30").writes(START).record;
    assert!(is_settled(&record, Power::Running));
    assert_eq!((record.saved.as_ref(), record.not_before()), (None, None));
}

#[test]
fn a_tag_that_only_the_look_shows_keeps_it_running() {
    droplet().tagged("offhours-until:21:00").leaves(STOP);
    let over = droplet().tagged("offhours-until:21:00").kept_until("21:00", "18:30");
    let send = over.at("21:00").sends(STOP);
    assert_eq!(send.record.until_tags.len(), 1);
}

#[test]
fn a_tag_that_the_look_no_longer_shows_does_not_count() {
    let removed = droplet().kept_until("21:00", "18:30").at("20:00");
    let send = removed.sends(STOP);
    assert_eq!(send.record.until_tags[0].gone_at, Some(at("20:00")));
    let handled = send.record.handled.unwrap();
    assert_eq!(handled.key, EdgeKey { instant: at("20:00"), rank: Rank::OverrideEnded });
}
