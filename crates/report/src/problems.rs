//! What is wrong with a resource, and what to do about it: worded once, wherever it is shown.

use domain::{
    ResourceKind, ScheduleName,
    configuration::Otherwise,
    decision::{Decision, InForce, LeaveReason, Rules, Verdict},
    hibernation::{Hibernation, MAX_SNAPSHOTS, OF_LABEL, of_label},
    left_behind::{LeftBehind, barrier, left_behind},
    membership::{Exclusion, Membership},
    overdue::{Overdue, judged_overdue},
    reason::Reason,
    record::{self, Ask, Direction, Phase, Record},
    resource::SavedState,
    stop_method::StopMethod,
    until,
};
use jiff::{Timestamp, tz::TimeZone};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    count,
    nearest::advice,
    time::{ago, length, short},
};

/// A resource is reported once it has failed this many times in a row.
const ATTEMPTS: u32 = 5;

/// Something about a resource that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Problem {
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
    /// Whether it is left to you; false if it may still clear by itself.
    pub needs_person: bool,
}

impl Problem {
    fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: remedy.into(), needs_person: true }
    }

    fn warning(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { needs_person: false, ..Self::new(what, remedy) }
    }
}

/// Returns what is wrong with a resource, the gravest first.
#[must_use]
pub fn problems(
    record: &Record,
    verdict: &Verdict,
    in_force: &InForce,
    zone: &TimeZone,
    now: Timestamp,
) -> Vec<Problem> {
    let rules = in_force.rules();
    let left = left_behind(record, rules, now);
    if let Some(left @ (LeftBehind::Unreachable | LeftBehind::Gone)) = left {
        return vec![bring_back(record, rules, left)];
    }
    let is_gone = matches!(record.phase, Phase::Gone { .. });
    if is_gone || !rules.configuration.accounts.contains_key(&record.reference.account) {
        return Vec::new();
    }
    let overdue = judged_overdue(record, verdict, rules, in_force.since, now);
    let late = match overdue {
        // What keeps it is said already.
        Some(_) if reported(record).is_some() => [None, None],
        // It covers a transition in progress and its failures as well.
        Some(overdue) => [Some(late(record, overdue, zone, now)), None],
        // It waits.
        None if matches!(verdict.decision, Decision::Leave(LeaveReason::Paused(_))) => [None, None],
        None => [lasting(record, now), failing(record, now)],
    };
    let found = [
        // A start that nothing asks for any more is not sent again.
        ended(record, may_start_small(record, verdict, rules))
            .filter(|_| left.is_none() || reported(record).is_none()),
        unresolved(record),
        held(record),
        left.map(|left| bring_back(record, rules, left)),
        handled_ahead(record, zone, now),
        unlike_saved(record),
        attached(record, verdict, in_force),
        badly_tagged(record, verdict),
        too_many_snapshots(record),
    ];
    let mut found: Vec<_> = found
        .into_iter()
        .chain(late)
        .chain([cut_off(record, now), unrehearsed(record, verdict, rules)])
        .flatten()
        .collect();
    found.sort_by_key(|problem| !problem.needs_person);
    found
}

/// What poll-status reported of a transition that still goes on.
#[must_use]
pub fn reported(record: &Record) -> Option<&Reason> {
    record.in_flight()?;
    record.request.as_ref()?.problem.as_ref()
}

/// Reports whether the machine is owed a plan, and could be started on the small one meanwhile.
fn may_start_small(record: &Record, verdict: &Verdict, rules: Rules<'_>) -> bool {
    let is_moved = matches!(record.saved, Some(SavedState::Machine(_)));
    is_moved && !verdict.membership.policy(rules.configuration).start_small
}

fn ended(record: &Record, may_start_small: bool) -> Option<Problem> {
    let reference = &record.reference;
    Some(match &record.phase {
        Phase::Stuck { transition, reason, .. } => Problem::new(
            reason,
            format!(
                "look at it in the provider's console; `offhours {} {reference}` asks again",
                transition.direction
            ),
        ),
        Phase::Refused { transition, reason } => Problem::new(
            reason,
            format!(
                "once the cause is gone, `offhours {} {reference}` asks again; otherwise the next \
                 edge does",
                transition.direction
            ),
        ),
        Phase::InFlight { transition } => {
            let problem = reported(record)?.to_string();
            match transition.direction {
                Direction::Stop => Problem::new(
                    problem,
                    "look at it in the provider's console; the stop goes on by itself",
                ),
                Direction::Start => Problem::new(
                    problem,
                    format!(
                        "it is asked for again every 15 minutes, and at once by `offhours start \
                         {reference}`{}",
                        if may_start_small {
                            "; if there is no room for its own plan, `start_small = true` in its \
                             schedule starts it on the small one"
                        } else {
                            ""
                        }
                    ),
                ),
            }
        }
        Phase::Settled { .. } | Phase::Gone { .. } => return None,
    })
}

/// Something about a machine that is or was hibernated has to be resolved first.
fn unresolved(record: &Record) -> Option<Problem> {
    let problem = record.hibernation_problem()?;
    let reference = &record.reference;
    let of = of_label(&reference.id);
    let ours = if reference.kind() == ResourceKind::Droplet {
        let tag = of.replace('.', "-");
        format!("machines tagged {OF_LABEL}:{tag} and snapshots named offhours.{of}…")
    } else {
        format!("machines and snapshots labelled {OF_LABEL}={of}")
    };
    let hibernation = record.hibernation.as_deref();
    let is_refused = hibernation
        .is_some_and(|hibernation| !record.is_hibernated() && !hibernation.refused.is_empty());
    Some(Problem::new(
        problem,
        if is_refused {
            format!(
                "make it anew at the provider and attach it, or free what is in use elsewhere; \
                 then `offhours start {reference}`. To go without it: `offhours start {reference} \
                 --without ...` with its name"
            )
        } else {
            format!(
                "look at the provider for {ours}, and whether the account's token is of their project; \
                 restore a newer backup of the record if it came from one. `offhours forget {reference} --anyway` gives it up, and \
                 `offhours rebuild` makes a new one of what the provider shows"
            )
        },
    ))
}

fn held(record: &Record) -> Option<Problem> {
    let approve = format!("`offhours approve {}` releases it", record.reference);
    record.held.then(|| match record.lost_storage {
        Some(lost) => Problem::new(
            format!("held: after its latest start it had {lost}"),
            format!("add storage at the provider; or {approve}, and stops may lose it again"),
        ),
        None => Problem::new("held: too many joined schedules at once", approve),
    })
}

/// Why the record of a machine that may be hibernated is kept.
pub const ONLY_RECORDED: &str = "only its record says how to recreate it";

/// What a person restores because nothing else does.
fn bring_back(record: &Record, rules: Rules<'_>, left: LeftBehind) -> Problem {
    let reference = &record.reference;
    let owed = record.saved.as_ref();
    match left {
        LeftBehind::Orphaned => {
            let owed = owed.map_or_else(String::new, |saved| format!("; {saved} to be restored"));
            let barrier = barrier(record, rules.configuration);
            let start = format!("`offhours start {reference}` restores it");
            let (why, remedy) = match &barrier {
                Some(barrier) => (barrier.to_string(), format!("once that ends, {start}")),
                None => (
                    "no schedule covers it any more".to_owned(),
                    format!("{start}; or let a schedule cover it again"),
                ),
            };
            Problem::new(format!("orphaned: {why}{owed}"), remedy)
        }
        LeftBehind::Unreachable => {
            let account = &reference.account;
            let owed = match owed {
                Some(saved) if !record.is_irreplaceable() => format!("owed {saved}"),
                Some(_) | None => ONLY_RECORDED.to_owned(),
            };
            let or = if record.is_irreplaceable() {
                String::new()
            } else {
                format!(", or give the size up with `offhours forget {reference}`")
            };
            Problem::new(
                format!("{owed}, and its account {account} is not configured"),
                format!("configure the account again{or}"),
            )
        }
        LeftBehind::Gone => {
            let [what, remedy] = gone(record);
            Problem::new(format!("gone at the provider, and {what}"), remedy)
        }
    }
}

/// What a gone resource is still owed, and what to decide about it.
#[must_use]
pub fn gone(record: &Record) -> [String; 2] {
    let saved = record.saved.as_ref();
    let owed =
        saved.map_or_else(|| "stopped by Offhours".to_owned(), |saved| format!("owed {saved}"));
    let remedy = format!(
        "check that the account's token is of its project; if it was deleted, `offhours forget \
         --anyway {}`",
        record.reference
    );
    [owed, remedy]
}

fn unlike_saved(record: &Record) -> Option<Problem> {
    let saved = record.unlike_saved()?;
    Some(Problem::new(
        format!("its plan does not compare with the saved {saved}"),
        format!("resize it, or give that up with `offhours forget --anyway {}`", record.reference),
    ))
}

/// In conflict, or tagged with a schedule that does not exist.
fn attached(record: &Record, verdict: &Verdict, in_force: &InForce) -> Option<Problem> {
    match &verdict.membership {
        Membership::Excluded(exclusion @ Exclusion::TwoSchedules { via, .. }) => Some(
            Problem::new(exclusion.to_string(), format!("let only one schedule have it by {via}")),
        ),
        Membership::Excluded(exclusion @ Exclusion::TwoAccounts(other)) => Some(Problem::new(
            exclusion.to_string(),
            if other.account == record.reference.account {
                "two records have this machine, and neither is acted on: see with `offhours why` \
                 which one has its snapshots, and `offhours forget --anyway` the other"
            } else {
                "remove one of the accounts, or give each its own datacenters"
            },
        )),
        Membership::Unknown { word, via } => {
            let known = in_force.configuration.schedules.keys().map(ScheduleName::as_str);
            let advice = advice(word, "schedules", known);
            Some(Problem {
                what: format!("its {via} names the schedule `{word}`, which does not exist"),
                remedy: format!("correct the tag, or add the schedule ({advice})"),
                // For now an override or a command covers it.
                needs_person: !verdict.opted_in,
            })
        }
        Membership::Excluded(_) | Membership::Member { .. } | Membership::Unnamed => None,
    }
}

/// Tagged to run until something that is not a time, or without a schedule.
fn badly_tagged(record: &Record, verdict: &Verdict) -> Option<Problem> {
    match verdict.membership {
        Membership::Member { .. } => {
            let invalid = until::invalid(record)?;
            Some(Problem::new(invalid.to_string(), invalid.instead()))
        }
        Membership::Unnamed if record.until_tags.iter().any(|tag| tag.gone_at.is_none()) => {
            Some(Problem::warning(
                "its tag offhours-until has no effect, because no schedule names it",
                "tag it for a schedule, or use `offhours override`",
            ))
        }
        Membership::Excluded(_) | Membership::Unknown { .. } | Membership::Unnamed => None,
    }
}

/// The maximum number of snapshots, with none of the newer ones seen to boot.
fn too_many_snapshots(record: &Record) -> Option<Problem> {
    let hibernation = record.hibernation.as_deref()?;
    let seen: Vec<_> = hibernation.seen_snapshots().collect();
    let (_, newer) = seen.split_last()?;
    let proven = newer.iter().any(|one| one.proven_at.is_some());
    if seen.len() < MAX_SNAPSHOTS || proven {
        // The next stop removes the oldest one.
        return None;
    }
    Some(Problem::new(
        format!(
            "not hibernated any more: it has {}, and none of the newer ones was seen to boot",
            count(seen.len(), "snapshot")
        ),
        format!(
            "let it run for ten minutes, or delete at the provider those that are not needed: \
             `offhours why {} --full` lists them",
            record.reference
        ),
    ))
}

/// Not in the desired state for longer than its kind usually takes.
fn late(record: &Record, overdue: Overdue, zone: &TimeZone, now: Timestamp) -> Problem {
    let Overdue { desired, since } = overdue;
    let error = match (record.attempts, &record.last_error) {
        (0 | 1, Some(error)) => format!("; last error: {error}"),
        (many, Some(error)) => format!("; failed {many} times in a row, last error: {error}"),
        (_, None) => String::new(),
    };
    let since = short(since, zone, now);
    Problem::new(
        format!("overdue: should have been {desired} since {since}{error}"),
        "it is asked for again until it succeeds: `offhours doctor` checks its account and the \
         functions",
    )
}

fn handled_ahead(record: &Record, zone: &TimeZone, now: Timestamp) -> Option<Problem> {
    let until = short(record.handled_ahead(now)?, zone, now);
    let reference = &record.reference;
    Some(Problem::new(
        format!(
            "left alone until {until}: a clock that was ahead has handled its edges until then"
        ),
        format!(
            "`offhours start {reference}` or `offhours stop {reference}` puts it right at once"
        ),
    ))
}

fn lasting(record: &Record, now: Timestamp) -> Option<Problem> {
    let transition = record.in_flight()?;
    let request = record.request.as_ref();
    let allowed = request.map_or_else(
        || record::effect_timeout(record.kind()),
        |request| request.deadline(record.kind()),
    );
    let accepted_at = match record.request.as_ref().map(|request| &request.ask) {
        Some(Ask::Accepted { at, .. }) => Some(*at),
        Some(Ask::Open | Ask::Failed { .. } | Ask::Done { .. }) | None => None,
    };
    let since = accepted_at.unwrap_or(transition.claimed_at);
    if now.duration_since(since) <= allowed {
        return None;
    }
    let (direction, since, allowed) = (transition.direction, ago(since, now), length(allowed));
    Some(match accepted_at {
        Some(_) => Problem::new(
            format!(
                "{direction} accepted {since}, not seen, and not reported as stuck after {allowed}"
            ),
            "it is busy at the provider, or poll-status does not run: see `offhours doctor`, and \
             the provider's console",
        ),
        None => Problem::warning(
            format!("{direction} begun {since} and not accepted yet"),
            "it is asked for again while the desired state lasts",
        ),
    })
}

fn failing(record: &Record, now: Timestamp) -> Option<Problem> {
    (record.attempts >= ATTEMPTS).then(|| {
        let error = record.last_error.as_ref();
        let error = error.map_or_else(|| "no reason was recorded".to_owned(), Reason::to_string);
        let next = match record.retry_at {
            Some(at) if at > now => format!("; tried again in {}", length(at.duration_since(now))),
            Some(_) | None => String::new(),
        };
        Problem::warning(
            format!("failed {} times in a row{next}: {error}", record.attempts),
            "it is tried again while the desired state lasts; mend what the error names",
        )
    })
}

/// A writer was about to send a request and never recorded the outcome.
fn cut_off(record: &Record, now: Timestamp) -> Option<Problem> {
    let permit = record.permit.as_ref()?;
    (now > permit.until).then(|| {
        let until = ago(permit.until, now);
        Problem::warning(
            format!("a request was permitted until {until}, and its outcome was never recorded"),
            "a function or its answer was lost; each tick looks, and it is asked again once the \
             request can no longer have an effect",
        )
    })
}

/// Hibernated by its schedule, but never seen to come back.
fn unrehearsed(record: &Record, verdict: &Verdict, rules: Rules<'_>) -> Option<Problem> {
    let schedule = verdict.membership.schedule()?;
    let policy = verdict.membership.policy(rules.configuration);
    let hibernates = StopMethod::of(record.kind(), &policy) == StopMethod::Hibernate;
    let hibernation = record.hibernation.as_deref();
    if !hibernates || hibernation.is_some_and(Hibernation::is_rehearsed) {
        return None;
    }
    let instead = match policy.otherwise {
        Otherwise::Refuse => "it is left running",
        Otherwise::PowerOff => "it is only powered off",
    };
    Some(Problem::warning(
        format!("its schedule {schedule} hibernates, and it was never rehearsed: {instead}"),
        format!(
            "`offhours rehearse {}` hibernates and wakes it while you look on",
            record.reference
        ),
    ))
}

#[cfg(test)]
mod tests;
