//! Checks for records that need a person or do not make progress.

use std::collections::BTreeMap;

use domain::{
    AccountName, ScheduleName,
    configuration::{Configuration, Otherwise},
    decision::{Rules, judge},
    hibernation::{Hibernation, MAX_SNAPSHOTS, OF_LABEL, of_label},
    left_behind::{LeftBehind, barrier, left_behind},
    membership::{Exclusion, Membership, Subject},
    overdue::{Overdue, overdue, usual_time},
    reason::Reason,
    record::{self, Ask, Direction, Phase, Record},
    stop_method::StopMethod,
};
use environment::in_words;
use jiff::Timestamp;

use super::{Check, Finding, or_ok, store::StoreContents};
use crate::{
    configuration_file::count,
    resolve::nearest::advice,
    state::{gone_and_ours, problem},
    time::{ago, length},
};

/// A record is reported once it has failed this many times in a row.
const ATTEMPTS: u32 = 5;

/// Runs all checks of the records.
pub(crate) fn check(contents: &StoreContents, now: Timestamp) -> Vec<Finding> {
    let configuration = &contents.in_force.configuration;
    let (gone, present): (Vec<_>, Vec<_>) =
        contents.records.iter().partition(|record| matches!(record.phase, Phase::Gone { .. }));
    let (of_accounts, left): (Vec<_>, Vec<_>) = present
        .into_iter()
        .partition(|record| configuration.accounts.contains_key(&record.reference.account));
    let rules = contents.in_force.rules();
    let mut findings = Vec::new();
    for record in gone {
        findings.extend(gone_while_stopped(record, rules, now).map(|f| f.of(&subject(record))));
    }
    for record in &of_accounts {
        let overdue = overdue(record, rules, contents.in_force.since, now);
        let found = [
            ended(record, now),
            held(record),
            orphaned(record, rules, now),
            attached(record, configuration),
            permit(record, now),
            unresolved(record),
            too_many_snapshots(record),
            unrehearsed(record, rules, now),
        ];
        // The overdue finding also covers a transition in flight and its failures.
        let found = found.into_iter().chain(match overdue {
            Some(overdue) => [Some(late(record, overdue, configuration, now)), None],
            None => [lasting(record, now), failing(record, now)],
        });
        findings.extend(found.flatten().map(|f| f.of(&subject(record))));
    }
    findings.extend(of_removed_accounts(&left));
    let ok = format!("{}: none needs a person", count(of_accounts.len(), "record"));
    or_ok(findings, Check::Records, ok)
}

fn subject(record: &Record) -> String {
    format!("{} ({})", record.reference, record.name)
}

/// Gone, and stopped by Offhours or owed a size.
fn gone_while_stopped(record: &Record, rules: Rules<'_>, now: Timestamp) -> Option<Finding> {
    let left = left_behind(record, rules, now) == Some(LeftBehind::Gone);
    left.then(|| {
        let found = "gone at the provider while stopped by Offhours";
        Finding::problem(Check::Records, found, gone_and_ours(record))
    })
}

/// Stuck, or refused by the provider.
fn ended(record: &Record, now: Timestamp) -> Option<Finding> {
    let (found, remedy) = match &record.phase {
        Phase::Stuck { transition, since, reason } => (
            format!("{} stuck since {}: {reason}", transition.direction, ago(*since, now)),
            format!(
                "look at it in the provider's console; it settles by itself once seen, and \
                 `offhours {} {}` asks again",
                transition.direction, record.reference
            ),
        ),
        Phase::Refused { transition, reason } => (
            format!("{} refused by the provider: {reason}", transition.direction),
            format!(
                "it is not tried again until the next edge; once the cause is gone, `offhours {} \
                 {}` tries now, and the tag offhours:off (label offhours=off) ends it",
                transition.direction, record.reference
            ),
        ),
        Phase::InFlight { transition } if transition.direction == Direction::Stop => (
            format!("stop not over: {}", problem(record)?),
            "look at it in the provider's console; it goes on by itself".to_owned(),
        ),
        Phase::InFlight { .. } => {
            let problem = problem(record)?;
            (
                format!("start refused by the provider, or ended in an error: {problem}"),
                format!(
                    "it is asked again every 15 minutes; once the cause is gone, `offhours start \
                     {}` tries now",
                    record.reference
                ),
            )
        }
        Phase::Settled { .. } | Phase::Gone { .. } => return None,
    };
    Some(Finding::problem(Check::Records, found, remedy))
}

fn held(record: &Record) -> Option<Finding> {
    record.held.then(|| {
        let approve = format!("`offhours approve {}` releases it", record.reference);
        match record.lost_storage {
            Some(lost) => Finding::problem(
                Check::Records,
                format!("held: after its latest start it had {lost}"),
                format!("add storage at the provider; or {approve}, and stops may lose it again"),
            ),
            None => {
                Finding::problem(Check::Records, "held: too many joined schedules at once", approve)
            }
        }
    })
}

fn orphaned(record: &Record, rules: Rules<'_>, now: Timestamp) -> Option<Finding> {
    let orphaned = left_behind(record, rules, now) == Some(LeftBehind::Orphaned);
    orphaned.then(|| {
        let owed = record.saved.as_ref();
        let owed = owed.map_or_else(String::new, |saved| format!(", and is owed {saved}"));
        let start = format!("`offhours start {}` restores it", record.reference);
        let barrier = barrier(record, rules.configuration);
        let barrier = barrier.as_ref().map(|barrier| in_words(barrier));
        let remedy = match &barrier {
            Some(_) => format!("once that ends, {start}"),
            None => format!("{start}; or let a schedule cover it again"),
        };
        let why = barrier.unwrap_or_else(|| "no schedule covers it any more".to_owned());
        Finding::problem(
            Check::Records,
            format!("orphaned: stopped by Offhours, {why}{owed}"),
            remedy,
        )
    })
}

/// In conflict, or tagged with a schedule that does not exist.
fn attached(record: &Record, configuration: &Configuration) -> Option<Finding> {
    match Membership::of(Subject::recorded(record), configuration) {
        Membership::Excluded(exclusion) => {
            let remedy = match &exclusion {
                Exclusion::TwoSchedules { via, .. } => format!("leave one schedule by {via}"),
                Exclusion::TwoAccounts(other) if other.account == record.reference.account => {
                    "two records have this machine, and neither is acted on: see with `offhours \
                     why` which one has its snapshots, and `offhours forget --anyway` the other"
                        .to_owned()
                }
                Exclusion::TwoAccounts(_) => {
                    "remove one of the accounts, or give each its own datacenters".to_owned()
                }
                Exclusion::NoAccount(_)
                | Exclusion::NoMachine(_)
                | Exclusion::ProtectedByDeployment(_)
                | Exclusion::Protected(_)
                | Exclusion::OptedOut { .. }
                | Exclusion::Unsupported(_) => return None,
            };
            Some(Finding::problem(Check::Records, in_words(&exclusion), remedy))
        }
        Membership::Unknown { word, via } => {
            let known = configuration.schedules.keys().map(ScheduleName::as_str);
            let advice = advice(&word, "schedules", known);
            Some(Finding::problem(
                Check::Schedules,
                format!("its {via} names the schedule `{word}`, which does not exist"),
                format!("correct the tag, or add the schedule; {advice}"),
            ))
        }
        Membership::Member { .. } | Membership::Unnamed => None,
    }
}

/// Not in the desired state for longer than its kind usually takes.
fn late(
    record: &Record,
    overdue: Overdue,
    configuration: &Configuration,
    now: Timestamp,
) -> Finding {
    let Overdue { desired, since } = overdue;
    let usual = usual_time(record, Direction::towards(desired), configuration);
    let late = now.duration_since(since);
    let (late, usual, kind) = (length(late), length(usual), record.kind());
    let failed = match (record.attempts, &record.last_error) {
        (0 | 1, Some(error)) => format!("; last error: {error}"),
        (many, Some(error)) => format!("; failed {many} times in a row, last: {error}"),
        (_, None) => String::new(),
    };
    Finding::problem(
        Check::Records,
        format!(
            "overdue: should have been {desired} for {late}; a {kind} usually takes {usual} at \
             most{failed}"
        ),
        "it is tried again until it succeeds: see its last error, and the findings about its \
         account and the functions",
    )
}

/// In flight for longer than allowed.
fn lasting(record: &Record, now: Timestamp) -> Option<Finding> {
    let transition = record.in_flight()?;
    let request = record.request.as_ref();
    let allowed = request.map_or_else(
        || record::effect_timeout(record.kind()),
        |request| request.deadline(record.kind()),
    );
    let direction = transition.direction;
    let accepted_at = match record.request.as_ref().map(|request| &request.ask) {
        Some(Ask::Accepted { at, .. }) => Some(*at),
        Some(Ask::Open | Ask::Failed { .. } | Ask::Done { .. }) | None => None,
    };
    let since = accepted_at.unwrap_or(transition.claimed_at);
    if now.duration_since(since) <= allowed {
        return None;
    }
    let (since, allowed) = (ago(since, now), length(allowed));
    Some(match accepted_at {
        Some(_) => Finding::problem(
            Check::Records,
            format!(
                "{direction} accepted {since}, not seen, and not reported as stuck after {allowed}"
            ),
            "it is busy at the provider, or poll-status does not run: see the functions, and the \
             provider's console",
        ),
        None => Finding::warning(
            Check::Records,
            format!("{direction} begun {since} and not accepted yet"),
            "it is asked again while the desired state lasts; see its last error, and the findings \
             about its account",
        ),
    })
}

/// A writer was about to send a request and never recorded the outcome.
fn permit(record: &Record, now: Timestamp) -> Option<Finding> {
    let permit = record.permit.as_ref()?;
    (now > permit.until).then(|| {
        Finding::warning(
            Check::Records,
            format!(
                "a request was permitted until {}, and its outcome was never recorded",
                ago(permit.until, now)
            ),
            "a function was cut off; the next tick looks, and asks again if nothing came of it. If \
             this persists, see the functions",
        )
    })
}

/// Failing repeatedly.
fn failing(record: &Record, now: Timestamp) -> Option<Finding> {
    (record.attempts >= ATTEMPTS).then(|| {
        let error = record.last_error.as_ref();
        let error = error.map_or_else(|| "no reason was recorded".to_owned(), Reason::to_string);
        let next = match record.retry_at {
            Some(at) if at > now => format!("; tried again in {}", length(at.duration_since(now))),
            Some(_) | None => String::new(),
        };
        Finding::warning(
            Check::Records,
            format!("failed {} times in a row{next}: {error}", record.attempts),
            "it is tried again while the desired state lasts; a person must fix what the error \
             names",
        )
    })
}

/// Something about a machine that is or was hibernated has to be resolved first.
fn unresolved(record: &Record) -> Option<Finding> {
    let reference = &record.reference;
    let of = of_label(&reference.id);
    let problem = record.hibernation_problem()?;
    let found = if record.is_hibernated() {
        format!("hibernated, and {problem}")
    } else {
        problem.to_owned()
    };
    let kept = record.hibernation.as_deref();
    if kept.is_some_and(|kept| !record.is_hibernated() && !kept.refused.is_empty()) {
        return Some(Finding::problem(
            Check::Records,
            found,
            format!(
                "make it anew at the provider and attach it to the machine by hand, or free what is \
                 in use elsewhere, and then run `offhours start {reference}`. If the machine is to \
                 do without it, `offhours forget {reference} --anyway` while it runs gives up what \
                 it had: it then follows its own tags, and has to be rehearsed again"
            ),
        ));
    }
    Some(Finding::problem(
        Check::Records,
        found,
        format!(
            "look at the provider for machines and snapshots labelled {OF_LABEL}={of}, and whether \
             the account's token is that of their project; nothing is made, and nothing removed, \
             before that. If the record was restored from a backup, restore a newer one. If its \
             snapshots are gone, make the machine from a backup. `offhours forget {reference} \
             --anyway` gives the record up: a machine then follows its own tags"
        ),
    ))
}

/// The maximum number of snapshots, with none of the newer ones seen to boot.
fn too_many_snapshots(record: &Record) -> Option<Finding> {
    let kept = record.hibernation.as_deref()?;
    let seen: Vec<_> = kept.seen_snapshots().collect();
    let (_, newer) = seen.split_last()?;
    let proven = newer.iter().any(|one| one.proven_at.is_some());
    if seen.len() < MAX_SNAPSHOTS || proven {
        // The next stop removes the oldest one.
        return None;
    }
    let found = format!("{} snapshots of it are kept", seen.len());
    Some(Finding::problem(
        Check::Records,
        format!(
            "{found}, and of the newer ones none was seen to boot: it is not hibernated any more"
        ),
        format!(
            "see with `offhours why {}` which there are; let it run for ten minutes, or delete at the provider \
             those that are not needed",
            record.reference
        ),
    ))
}

/// Hibernated by its schedule, but never seen to come back.
fn unrehearsed(record: &Record, rules: Rules<'_>, now: Timestamp) -> Option<Finding> {
    let verdict = judge(record, Subject::recorded(record), rules, now);
    let schedule = verdict.membership.schedule()?;
    let policy = verdict.membership.policy(rules.configuration);
    let hibernates = StopMethod::of(record.kind(), &policy) == StopMethod::Hibernate;
    let kept = record.hibernation.as_deref();
    if !hibernates || kept.is_some_and(Hibernation::is_rehearsed) {
        return None;
    }
    let instead = match policy.otherwise {
        Otherwise::Refuse => "it is left running",
        Otherwise::PowerOff => "it is only powered off",
    };
    Some(Finding::warning(
        Check::Records,
        format!("its schedule {schedule} hibernates, and it was never rehearsed: {instead}"),
        format!(
            "`offhours rehearse {} --cycle` hibernates it and wakes it while you look on",
            record.reference
        ),
    ))
}

/// Records of accounts that are no longer configured.
fn of_removed_accounts(records: &[&Record]) -> Vec<Finding> {
    let mut by_account = BTreeMap::<&AccountName, Vec<&Record>>::new();
    for record in records {
        by_account.entry(&record.reference.account).or_default().push(record);
    }
    by_account
        .into_iter()
        .map(|(account, records)| {
            let records_words = count(records.len(), "record");
            let owed: Vec<_> = records
                .iter()
                .filter(|record| record.is_held_stopped() || record.in_flight().is_some())
                .map(|record| format!("{} ({})", record.reference, record.name))
                .collect();
            let found = format!("{records_words} of an account that is no longer configured");
            let otherwise = if records.iter().any(|record| record.is_irreplaceable()) {
                ". A hibernated machine cannot be started in the provider's console: only its \
                 record says how to recreate it"
            } else {
                "; or start them in the provider's console, and `offhours forget` them"
            };
            let finding = if owed.is_empty() {
                Finding::hint(Check::Records, found)
            } else {
                Finding::problem(
                    Check::Records,
                    format!("{found}; still stopped, or owed a size: {}", owed.join(", ")),
                    format!(
                        "configure the account again, start these, and remove it with `offhours \
                         apply --restore`{otherwise}"
                    ),
                )
            };
            finding.of(account)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use domain::{
        hibernation::Attachment,
        record::{Direction, Permit, Writer},
        resource::Power,
    };
    use jiff::SignedDuration;

    use super::*;
    use crate::{
        doctor::Verdict,
        scene::{
            OFFICE, asleep, database, in_force, machine, monday, orphan, request, saved,
            store_contents, transition, web,
        },
    };

    fn now() -> Timestamp {
        monday("10:00:00")
    }

    fn before(minutes: i64) -> Timestamp {
        now() - SignedDuration::from_mins(minutes)
    }

    fn found(record: Record) -> Vec<Finding> {
        check(&store_contents(in_force(OFFICE), [record]), now())
    }

    /// The only finding, as its verdict, text and remedy.
    #[track_caller]
    fn only(record: Record) -> (Verdict, String, String) {
        let mut found = found(record);
        assert_eq!(found.len(), 1, "{found:#?}");
        let one = found.remove(0);
        (one.verdict, one.found, one.remedy.unwrap_or_default())
    }

    fn stopping(since: Timestamp, ask: Ask) -> Record {
        let mut record = web();
        let transition = transition(Direction::Stop, since);
        record.phase = Phase::InFlight { transition };
        record.request = Some(request(since, ask));
        record
    }

    #[test]
    fn a_healthy_record_and_a_gone_one_are_in_order() {
        assert_eq!(only(web()).0, Verdict::Ok);
        let mut gone = web();
        gone.phase = Phase::Gone { since: before(5) };
        assert_eq!(
            only(gone),
            (Verdict::Ok, "0 records: none needs a person".to_owned(), String::new())
        );
    }

    #[test]
    fn what_is_gone_and_owed_a_size_needs_a_person_and_is_not_simply_forgotten() {
        let mut gone = database("do-main/database/d", "orders", &["offhours:office"]);
        gone.phase = Phase::Gone { since: before(5) };
        gone.saved = Some(saved());
        let (verdict, words, remedy) = only(gone);
        assert_eq!(
            (verdict, words.as_str()),
            (Verdict::Problem, "gone at the provider while stopped by Offhours")
        );
        assert!(remedy.starts_with("owed 2 x db-s-4vcpu-8gb; "), "{remedy}");
        assert!(remedy.contains("forget --anyway"), "{remedy}");
    }

    #[test]
    fn stuck_and_refused_name_the_command_that_asks_again() {
        let mut stuck = web();
        stuck.phase = Phase::Stuck {
            transition: transition(Direction::Stop, before(30)),
            since: before(20),
            reason: "not seen".to_owned(),
        };
        let (verdict, words, remedy) = only(stuck);
        assert_eq!(
            (verdict, words.as_str()),
            (Verdict::Problem, "stop stuck since 20m ago: not seen")
        );
        assert!(remedy.contains("`offhours stop do-main/droplet/1`"), "{remedy}");
        let mut refused = web();
        refused.phase = Phase::Refused {
            transition: transition(Direction::Start, before(30)),
            reason: "422 no".to_owned(),
        };
        let (verdict, words, remedy) = only(refused);
        assert_eq!(
            (verdict, words.as_str()),
            (Verdict::Problem, "start refused by the provider: 422 no")
        );
        assert!(remedy.contains("`offhours start do-main/droplet/1`"), "{remedy}");
    }

    #[test]
    fn held_and_orphaned_records_name_the_command_that_helps() {
        let mut held = web();
        held.held = true;
        let (verdict, _, remedy) = only(held);
        assert_eq!(verdict, Verdict::Problem);
        assert!(remedy.starts_with("`offhours approve do-main/droplet/1`"), "{remedy}");
        let mut owed = orphan();
        owed.saved = Some(saved());
        let (verdict, words, remedy) = only(owed);
        assert_eq!(verdict, Verdict::Problem);
        assert!(words.ends_with("is owed 2 x db-s-4vcpu-8gb"), "{words}");
        assert!(remedy.starts_with("`offhours start do-main/droplet/8`"), "{remedy}");
    }

    #[test]
    fn conflicts_of_either_kind_are_problems() {
        let twice = machine("do-main/droplet/2", "twice", &["offhours:a", "offhours:b"]);
        let (verdict, words, _) = only(twice);
        assert_eq!(
            (verdict, words.as_str()),
            (Verdict::Problem, "conflict: a and b both name it by tag")
        );
        let mut doubled = web();
        doubled.duplicate_of = Some("do-two/droplet/1".parse().unwrap());
        let (verdict, words, _) = only(doubled);
        assert_eq!(
            (verdict, words.as_str()),
            (Verdict::Problem, "conflict: also reached as do-two/droplet/1")
        );
    }

    #[test]
    fn a_tag_that_names_no_schedule_is_answered_with_the_nearest() {
        let typo = machine("do-main/droplet/2", "typo", &["offhours:ofice"]);
        let (verdict, words, remedy) = only(typo);
        assert_eq!(verdict, Verdict::Problem);
        assert_eq!(words, "its tag names the schedule `ofice`, which does not exist");
        assert!(remedy.ends_with("did you mean `office`?"), "{remedy}");
    }

    #[test]
    fn what_is_under_way_for_longer_than_it_may_be_is_reported() {
        let accepted = |minutes| Ask::Accepted { at: before(minutes), action: None };
        // A Droplet has ten minutes from acceptance, a database thirty.
        assert_eq!(only(stopping(before(60), accepted(10))).0, Verdict::Ok);
        assert_eq!(only(stopping(before(60), accepted(11))).0, Verdict::Problem);
        let mut slow = database("do-main/database/d", "orders", &["offhours:office"]);
        let flying = stopping(before(29), accepted(29));
        (slow.phase, slow.request) = (flying.phase, flying.request);
        assert_eq!(only(slow).0, Verdict::Ok);
        let (verdict, words, _) = only(stopping(before(11), Ask::Open));
        assert_eq!(
            (verdict, words.as_str()),
            (Verdict::Warning, "stop begun 11m ago and not accepted yet")
        );
    }

    #[test]
    fn what_is_overdue_is_one_problem_with_all_that_is_known_of_it() {
        let mut off = web();
        off.phase = Phase::Settled { at: Power::Stopped };
        let (verdict, words, _) = only(off.clone());
        assert_eq!(
            (verdict, words.as_str()),
            (
                Verdict::Problem,
                "overdue: should have been running for 2h; a droplet usually takes 15m at most"
            )
        );
        off.attempts = 9;
        off.last_error = Some("token refused: no".into());
        let (_, words, remedy) = only(off);
        assert!(words.ends_with("; failed 9 times in a row, last: token refused: no"), "{words}");
        assert!(remedy.contains("findings about its account"), "{remedy}");
        let mut starting = web();
        starting.phase = Phase::InFlight { transition: transition(Direction::Start, before(120)) };
        starting.handled = Some(domain::record::Handled {
            desired: Some(domain::schedule::Desired::Running),
            ..orphan().handled.unwrap()
        });
        assert_eq!(only(starting).0, Verdict::Problem);
    }

    #[test]
    fn a_permit_that_ran_out_is_reported_and_an_open_one_is_not() {
        let permitted = |until| {
            let mut record = stopping(before(3), Ask::Open);
            record.permit = Some(Permit { until, writer: Writer("us".to_owned()) });
            record
        };
        assert_eq!(only(permitted(now())).0, Verdict::Ok);
        let (verdict, words, _) = only(permitted(before(1)));
        assert_eq!(verdict, Verdict::Warning);
        assert!(words.contains("permitted until 1m ago"), "{words}");
    }

    #[test]
    fn five_failures_in_a_row_are_reported_with_the_last_error() {
        let failing = |attempts| {
            let mut record = web();
            record.attempts = attempts;
            record.last_error = Some("503".into());
            record.retry_at = Some(now() + SignedDuration::from_mins(8));
            record
        };
        assert_eq!(only(failing(4)).0, Verdict::Ok);
        let (verdict, words, _) = only(failing(5));
        assert_eq!(
            (verdict, words.as_str()),
            (Verdict::Warning, "failed 5 times in a row; tried again in 8m: 503")
        );
    }

    #[test]
    fn a_hibernated_machine_without_its_snapshot_is_a_problem() {
        let found = |record| check(&store_contents(in_force(OFFICE), [record]), monday("07:00:00"));
        assert_eq!(found(asleep())[0].verdict, Verdict::Ok);
        let mut lost = asleep();
        lost.hibernation.as_mut().unwrap().problem = Some("the snapshot is missing".to_owned());
        let all = found(lost);
        assert_eq!(all[0].verdict, Verdict::Problem);
        assert_eq!(all[0].found, "hibernated, and the snapshot is missing");
        let remedy = all[0].remedy.as_deref().unwrap();
        assert!(remedy.contains("offhours-of=server.42"), "{remedy}");
    }

    #[test]
    fn what_a_machine_was_not_given_back_is_a_problem_with_a_remedy() {
        let mut record = asleep();
        record.phase = Phase::Settled { at: Power::Running };
        let kept = record.hibernation.as_mut().unwrap();
        kept.present = Some(record.reference.id.clone());
        kept.refused = vec![Attachment::Volume("8".to_owned())];
        kept.problem = Some("it was made again without volume 8".to_owned());
        let all = found(record);
        let found = all.iter().find(|one| one.verdict == Verdict::Problem);
        let found = found.unwrap();
        assert_eq!(found.found, "it was made again without volume 8");
        let remedy = found.remedy.as_deref().unwrap();
        assert!(remedy.contains("`offhours start hz-eu/server/42`"), "{remedy}");
    }

    #[test]
    fn as_many_snapshots_as_are_kept_at_most_are_a_problem_where_none_may_go() {
        let snapshots = |proven: bool| {
            let mut record = asleep();
            let kept = record.hibernation.as_mut().unwrap();
            let all = &mut kept.snapshots;
            all.extend(all.clone());
            for one in all.iter_mut() {
                one.proven_at = proven.then(|| monday("05:00:00"));
            }
            found(record)
        };
        let has = |all: &[Finding]| {
            let mut of = all.iter().filter(|one| one.verdict == Verdict::Problem);
            of.any(|one| one.found.starts_with("4 snapshots of it are kept"))
        };
        assert!(has(&snapshots(false)));
        assert!(!has(&snapshots(true)));
    }

    #[test]
    fn what_its_schedule_hibernates_is_reported_until_it_was_rehearsed() {
        let hibernating = format!("{OFFICE}methods = {{ server = \"hibernate\" }}\n");
        let check_one = |record, configuration: &str| {
            check(&store_contents(in_force(configuration), [record]), monday("19:00:00"))
        };
        let never = || {
            let mut record = asleep();
            record.hibernation = None;
            record
        };
        let said = |all: &[Finding], words: &str| {
            let mut said = all.iter().filter(|one| one.found.contains("never rehearsed"));
            said.any(|one| one.found.ends_with(words))
        };
        assert!(said(&check_one(never(), &hibernating), "it is left running"));
        let or_off = format!("{hibernating}otherwise = \"power-off\"\n");
        assert!(said(&check_one(never(), &or_off), "it is only powered off"));
        assert!(!said(&check_one(asleep(), &hibernating), ""));
        assert!(!said(&check_one(never(), OFFICE), ""));
    }

    #[test]
    fn records_of_a_removed_account_are_reported_once() {
        let other = |id: u32| machine(&format!("do-old/droplet/{id}"), "old", &[]);
        let mut owed = other(2);
        owed.saved = Some(saved());
        let hint = check(&store_contents(in_force(OFFICE), [other(1)]), now());
        assert_eq!((hint.len(), hint[0].verdict), (1, Verdict::Hint));
        let problem = check(&store_contents(in_force(OFFICE), [other(1), owed]), now());
        assert_eq!((problem.len(), problem[0].verdict), (1, Verdict::Problem));
        assert_eq!(problem[0].subject.as_deref(), Some("do-old"));
        assert!(problem[0].found.ends_with("do-old/droplet/2 (old)"), "{problem:?}");
    }

    #[test]
    fn a_hibernated_machine_of_a_removed_account_is_not_to_be_forgotten() {
        let mut asleep = asleep();
        asleep.reference = "hz-old/server/42".parse().unwrap();
        let found = check(&store_contents(in_force(OFFICE), [asleep]), now());
        assert_eq!((found.len(), found[0].verdict), (1, Verdict::Problem));
        let remedy = found[0].remedy.as_deref().unwrap();
        assert!(remedy.starts_with("configure the account again"), "{remedy}");
        assert!(!remedy.contains("forget"), "{remedy}");
    }
}
