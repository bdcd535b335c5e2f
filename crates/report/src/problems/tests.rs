//! What is found wrong with records, and its wording.

use std::collections::BTreeSet;

use domain::{
    configuration::Generation,
    decision::judge,
    hibernation::Attachment,
    membership::Subject,
    record::UntilTag,
    record::{EdgeKey, Handled, Permit, Rank, Request, Writer},
    resource::{MachineSize, Power},
    schedule::Desired,
};
use jiff::SignedDuration;

use super::*;
use crate::scene::{
    OFFICE, asleep, database, in_force, machine, monday, orphan, request, saved, transition, web,
};

fn now() -> Timestamp {
    monday("10:00:00")
}

fn before(minutes: i64) -> Timestamp {
    now() - SignedDuration::from_mins(minutes)
}

fn found_at(record: &Record, configuration: &str, now: Timestamp) -> Vec<Problem> {
    let in_force = in_force(configuration);
    let verdict = judge(record, Subject::recorded(record), in_force.rules(), now);
    problems(record, &verdict, &in_force, &TimeZone::UTC, now)
}

fn found(record: &Record) -> Vec<Problem> {
    found_at(record, OFFICE, now())
}

/// Checks the only problem, its remedy by the command or word that it names.
#[track_caller]
fn check(record: &Record, needs_person: bool, what: &str, remedy: &str) {
    let found = found(record);
    let [problem] = found.as_slice() else { panic!("{found:#?}") };
    assert_eq!((problem.needs_person, problem.what.as_str()), (needs_person, what));
    assert!(problem.remedy.contains(remedy), "{problem:?}");
}

fn stopping(since: Timestamp, ask: Ask) -> Record {
    let mut record = web();
    record.phase = Phase::InFlight { transition: transition(Direction::Stop, since) };
    record.request = Some(request(since, ask));
    record
}

#[test]
fn what_a_clock_that_was_ahead_has_handled_is_left_to_a_person() {
    let ahead = |seconds: i64| {
        let instant = now() + SignedDuration::from_secs(seconds);
        let key = EdgeKey { instant, rank: Rank::Schedule };
        let desired = Some(Desired::Stopped);
        let handled = Handled { generation: Generation(1), key, desired, schedule: None };
        Record { handled: Some(handled), ..web() }
    };
    assert_eq!(found(&ahead(6)), []);
    let what =
        "left alone until Mon 12:00 UTC: a clock that was ahead has handled its edges until then";
    check(&ahead(7_200), true, what, "`offhours start ");
}

#[test]
fn a_healthy_record_and_a_gone_one_are_in_order() {
    assert_eq!(found(&web()), []);
    assert_eq!(found(&Record { phase: Phase::Gone { since: before(5) }, ..web() }), []);
}

#[test]
fn what_is_gone_and_owed_a_size_is_not_simply_forgotten() {
    let gone = Record {
        phase: Phase::Gone { since: before(5) },
        saved: Some(saved()),
        ..database("do-main/database/d", "orders", &["offhours:office"])
    };
    let what = "gone at the provider, and owed 2 x db-s-4vcpu-8gb";
    check(&gone, true, what, "`offhours forget --anyway do-main/database/d`");
}

#[test]
fn stuck_and_refused_name_the_command_that_asks_again() {
    let stuck = Phase::Stuck {
        transition: transition(Direction::Stop, before(30)),
        since: before(20),
        reason: "not seen".to_owned(),
    };
    let stop = "`offhours stop do-main/droplet/1`";
    check(&Record { phase: stuck, ..web() }, true, "not seen", stop);
    let refused = Phase::Refused {
        transition: transition(Direction::Start, before(30)),
        reason: "422 no".to_owned(),
    };
    let start = "`offhours start do-main/droplet/1`";
    check(&Record { phase: refused, ..web() }, true, "422 no", start);
}

#[test]
fn held_and_orphaned_records_name_the_command_that_helps() {
    let held = Record { held: true, ..web() };
    let what = "held: too many joined schedules at once";
    check(&held, true, what, "`offhours approve do-main/droplet/1`");
    let owed = Record { saved: Some(saved()), ..orphan() };
    let what = "orphaned: no schedule covers it any more; 2 x db-s-4vcpu-8gb to be restored";
    check(&owed, true, what, "`offhours start do-main/droplet/8`");
}

#[test]
fn conflicts_of_either_kind_are_problems() {
    let twice = machine("do-main/droplet/2", "twice", &["offhours:a", "offhours:b"]);
    let what = "conflict: a and b both name it by tag";
    check(&twice, true, what, "let only one schedule have it by tag");
    let duplicate_of = |text: &str| Some(text.parse().unwrap());
    let doubled = Record { duplicate_of: duplicate_of("do-two/droplet/1"), ..web() };
    let what = "conflict: also reached as do-two/droplet/1";
    check(&doubled, true, what, "remove one of the accounts");
    let doubled = Record { duplicate_of: duplicate_of("do-main/droplet/9"), ..web() };
    let what = "conflict: also reached as do-main/droplet/9";
    check(&doubled, true, what, "two records have this machine");
}

#[test]
fn a_tag_that_names_no_schedule_is_answered_with_the_nearest() {
    let typo = machine("do-main/droplet/2", "typo", &["offhours:ofice"]);
    let what = "its tag names the schedule `ofice`, which does not exist";
    check(&typo, true, what, "did you mean `office`?");
}

#[test]
fn what_is_under_way_for_longer_than_it_may_be_is_reported() {
    let accepted = |minutes| Ask::Accepted { at: before(minutes), action: None };
    // A Droplet has ten minutes from acceptance, a database thirty.
    assert_eq!(found(&stopping(before(60), accepted(10))), []);
    let what = "stop accepted 11m ago, not seen, and not reported as stuck after 10m";
    check(&stopping(before(60), accepted(11)), true, what, "poll-status");
    let Record { phase, request, .. } = stopping(before(29), accepted(29));
    let database = database("do-main/database/d", "orders", &["offhours:office"]);
    assert_eq!(found(&Record { phase, request, ..database }), []);
    let what = "stop begun 11m ago and not accepted yet";
    check(&stopping(before(11), Ask::Open), false, what, "asked for again");
}

#[test]
fn what_is_overdue_is_one_problem_with_all_that_is_known_of_it() {
    let off = Record { phase: Phase::Settled { at: Power::Stopped }, ..web() };
    let what = "overdue: should have been running since Mon 08:00 UTC";
    check(&off, true, what, "`offhours doctor` checks its account");
    let failing = Record { attempts: 9, last_error: Some("token refused: no".into()), ..off };
    let what = format!("{what}; failed 9 times in a row, last error: token refused: no");
    check(&failing, true, &what, "until it succeeds");
    let transition = transition(Direction::Start, before(120));
    let handled = Handled { desired: Some(Desired::Running), ..orphan().handled.unwrap() };
    let phase = Phase::InFlight { transition };
    let starting = Record { phase, handled: Some(handled), ..web() };
    assert!(found(&starting)[0].what.starts_with("overdue"));
}

#[test]
fn a_start_that_is_refused_again_and_again_is_one_problem_with_the_small_plan_as_a_way_out() {
    let since = before(120);
    let mut record = web();
    record.phase = Phase::InFlight { transition: transition(Direction::Start, since) };
    record.observed.as_mut().unwrap().power = Power::Stopped;
    record.saved =
        Some(SavedState::Machine(MachineSize { plan: "c-4".to_owned(), ..MachineSize::default() }));
    record.request = Some(Request {
        direction: Direction::Start,
        problem: Some("no room".to_owned().into()),
        ..request(since, Ask::Failed { retry_at: now() })
    });
    check(&record, true, "no room", "`start_small = true` in its schedule");
    let small = format!("{OFFICE}start_small = true\n");
    let found = found_at(&record, &small, now());
    assert!(!found[0].remedy.contains("start_small"), "{found:?}");
}

#[test]
fn a_permit_that_ran_out_is_reported_and_an_open_one_is_not() {
    let permitted = |until| {
        let permit = Some(Permit { until, writer: Writer("us".to_owned()) });
        Record { permit, ..stopping(before(3), Ask::Open) }
    };
    assert_eq!(found(&permitted(now())), []);
    let what = "a request was permitted until 1m ago, and its outcome was never recorded";
    check(&permitted(before(1)), false, what, "each tick looks");
}

#[test]
fn five_failures_in_a_row_are_reported_with_the_last_error() {
    let failing = |attempts| Record {
        attempts,
        last_error: Some("503".into()),
        retry_at: Some(now() + SignedDuration::from_mins(8)),
        ..web()
    };
    assert_eq!(found(&failing(4)), []);
    check(&failing(5), false, "failed 5 times in a row; tried again in 8m: 503", "mend");
}

#[test]
fn a_hibernated_machine_without_its_snapshot_is_a_problem() {
    let found = |record| found_at(&record, OFFICE, monday("07:00:00"));
    assert_eq!(found(asleep()), []);
    let mut lost = asleep();
    lost.hibernation.as_mut().unwrap().problem = Some("the snapshot is missing".to_owned());
    let all = found(lost);
    assert_eq!((all.len(), all[0].what.as_str()), (1, "the snapshot is missing"));
    assert!(all[0].remedy.contains("offhours-of=server.42"), "{all:?}");
}

#[test]
fn a_database_on_a_plan_that_does_not_compare_with_the_saved_one_needs_a_person() {
    let key = EdgeKey { instant: before(120), rank: Rank::Schedule };
    let desired = Some(Desired::Running);
    let record = Record {
        phase: Phase::Settled { at: Power::Running },
        saved: Some(saved()),
        handled: Some(Handled { generation: Generation(1), key, desired, schedule: None }),
        ..database("do-main/database/d", "orders", &["offhours:office"])
    };
    let what = "its plan does not compare with the saved 2 x db-s-4vcpu-8gb";
    check(&record, true, what, "resize it, or give that up with `offhours forget --anyway ");
}

#[test]
fn what_a_machine_was_not_given_back_is_a_problem_with_a_remedy() {
    let mut record = asleep();
    record.phase = Phase::Settled { at: Power::Running };
    let kept = record.hibernation.as_mut().unwrap();
    kept.present = Some(record.reference.id.clone());
    kept.refused = vec![Attachment::Volume("8".to_owned())];
    kept.problem = Some("it was recreated without volume 8".to_owned());
    let what = "it was recreated without volume 8";
    check(&record, true, what, "`offhours start hz-eu/server/42`");
}

#[test]
fn as_many_snapshots_as_are_kept_at_most_are_a_problem_where_none_may_go() {
    let has = |proven: bool| {
        let mut record = asleep();
        let kept = record.hibernation.as_mut().unwrap();
        kept.snapshots.extend(kept.snapshots.clone());
        for one in &mut kept.snapshots {
            one.proven_at = proven.then(|| monday("05:00:00"));
        }
        found(&record).iter().any(|one| one.needs_person && one.what.contains("it has 4 snapshots"))
    };
    assert!(has(false));
    assert!(!has(true));
}

#[test]
fn what_its_schedule_hibernates_is_reported_until_it_was_rehearsed() {
    let hibernating = format!("{OFFICE}methods = {{ server = \"hibernate\" }}\n");
    let said = |record, configuration: &str, words: &str| {
        let all = found_at(&record, configuration, monday("19:00:00"));
        all.iter().any(|one| one.what.contains("never rehearsed") && one.what.ends_with(words))
    };
    let never = || Record { hibernation: None, ..asleep() };
    assert!(said(never(), &hibernating, "it is left running"));
    let or_off = format!("{hibernating}otherwise = \"power-off\"\n");
    assert!(said(never(), &or_off, "it is only powered off"));
    assert!(!said(asleep(), &hibernating, ""));
    assert!(!said(never(), OFFICE, ""));
}

#[test]
fn of_a_removed_account_only_what_is_owed_is_a_problem_and_a_hibernated_machine_stays() {
    assert_eq!(found(&machine("do-old/droplet/1", "old", &[])), []);
    let owed = Record { saved: Some(saved()), ..machine("do-old/droplet/2", "old", &[]) };
    let what = "owed 2 x db-s-4vcpu-8gb, and its account do-old is not configured";
    check(&owed, true, what, "`offhours forget do-old/droplet/2`");
    let asleep = Record { reference: "hz-old/server/42".parse().unwrap(), ..asleep() };
    let what = "only its record says how to recreate it, and its account hz-old is not configured";
    check(&asleep, true, what, "configure the account again");
    assert!(!found(&asleep)[0].remedy.contains("forget"));
}

#[test]
fn a_tag_that_is_not_a_time_and_one_without_a_schedule() {
    let invalid = |tag: &str| Record {
        tags: BTreeSet::from(["offhours:office".to_owned(), tag.to_owned()]),
        ..web()
    };
    let what = "the value `soon` of its tag offhours-until is not a time";
    check(&invalid("offhours-until:soon"), true, what, "write offhours-until:21:00, :2h");
    assert_eq!(found(&invalid("offhours-until:2h")), []);
    let tag = UntilTag { text: "2h".to_owned(), seen_at: before(5), gone_at: None };
    let unnamed = Record { tags: BTreeSet::new(), until_tags: vec![tag], ..web() };
    let what = "its tag offhours-until has no effect, because no schedule names it";
    check(&unnamed, false, what, "tag it for a schedule");
}
