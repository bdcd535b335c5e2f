//! Resources that Offhours stopped, owes a size, or alone can recreate, and that nothing in force
//! starts again.

use jiff::{SignedDuration, Timestamp};

use crate::{
    configuration::Configuration,
    decision::{Observer, Rules, Verdict, judge, observer, override_of},
    membership::{Exclusion, Membership, Subject},
    record::{Phase, Rank, Record},
    schedule::Desired,
};

/// How long a resource that is gone is still shown and found by its name.
pub const GONE_FOR_GOOD: SignedDuration = SignedDuration::from_hours(3 * 24);

/// Why a person has to bring a resource back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftBehind {
    /// No schedule starts it again; a person can.
    Orphaned,
    /// It is owed a size, or only its record describes it, and Offhours can do nothing about either
    /// without its account.
    Unreachable,
    /// The provider no longer has it, or its account's token no longer sees it.
    Gone,
}

/// Whether anything starts a resource again: the schedule that it follows, or what a person wants
/// of it now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Coverage {
    Nothing,
    /// Something would, but observe mode sends nothing.
    Observed,
    /// Something does.
    Full,
}

/// What has to end before a person can bring a resource back with Offhours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Barrier {
    /// It must not be touched.
    #[error("{0}")]
    Excluded(Exclusion),
    /// Nothing is sent.
    #[error("{0} only observes")]
    Observed(Observer),
}

/// Returns what has to end before a person can bring a resource back with Offhours, if anything.
#[must_use]
pub fn barrier(record: &Record, configuration: &Configuration) -> Option<Barrier> {
    let membership = Membership::of(Subject::recorded(record), configuration);
    if let Membership::Excluded(exclusion) = &membership
        && !exclusion.yields_to_a_start()
    {
        return Some(Barrier::Excluded(exclusion.clone()));
    }
    let policy = membership.policy(configuration);
    observer(record, &policy, configuration).map(Barrier::Observed)
}

/// Returns why a resource is left behind under these rules, or `None` if it is not.
///
/// An override stands until it ends: a resource that one stops is not left behind. Nor is a machine
/// that a person stopped while no schedule covered it, because that was meant to last. An owed size
/// is never meant to last, and nothing is while its account is not configured. What observe mode
/// keeps stopped is left behind once it should run.
#[must_use]
pub fn left_behind(record: &Record, rules: Rules<'_>, now: Timestamp) -> Option<LeftBehind> {
    let is_gone = matches!(record.phase, Phase::Gone { .. });
    let account = &record.reference.account;
    if !rules.configuration.accounts.contains_key(account) {
        return is_owed(record).then_some(LeftBehind::Unreachable);
    }
    let is_off = record.was_stopped() || record.is_irreplaceable();
    let ours = record.saved.is_some() || is_off && !was_meant_to_last(record);
    if is_gone {
        let is_past = is_ghost(record, rules.configuration, now);
        return (ours && !is_past).then_some(LeftBehind::Gone);
    }
    let stopped_by_override =
        || override_of(record, rules, now).is_some_and(|one| one.desired == Desired::Stopped);
    let is_as_wanted = || {
        let verdict = judge(record, Subject::recorded(record), rules, now);
        match covered_by(record, &verdict, rules) {
            Coverage::Nothing => false,
            Coverage::Observed => verdict.desired != Some(Desired::Running),
            Coverage::Full => true,
        }
    };
    (ours && !stopped_by_override() && !is_as_wanted()).then_some(LeftBehind::Orphaned)
}

/// Reports whether a record is all that is left of a resource: nothing is owed to it, and its account
/// is not configured or it has been gone for [`GONE_FOR_GOOD`].
#[must_use]
pub fn is_ghost(record: &Record, configuration: &Configuration, now: Timestamp) -> bool {
    let account = &record.reference.account;
    if !configuration.accounts.contains_key(account) {
        return !is_owed(record);
    }
    let Phase::Gone { since } = record.phase else {
        return false;
    };
    let is_past = now.duration_since(since) >= GONE_FOR_GOOD;
    is_past && record.saved.is_none() && !record.is_irreplaceable()
}

/// Reports whether a size is owed to a resource, or only its record describes it.
fn is_owed(record: &Record) -> bool {
    let is_gone = matches!(record.phase, Phase::Gone { .. });
    record.is_irreplaceable() || record.saved.is_some() && !is_gone
}

/// Returns whether anything starts a resource again under these rules.
#[must_use]
pub fn coverage(record: &Record, rules: Rules<'_>, now: Timestamp) -> Coverage {
    let verdict = judge(record, Subject::recorded(record), rules, now);
    covered_by(record, &verdict, rules)
}

fn covered_by(record: &Record, verdict: &Verdict, rules: Rules<'_>) -> Coverage {
    let starts = match verdict.membership {
        Membership::Excluded(_) => false,
        Membership::Member { .. } => true,
        Membership::Unknown { .. } | Membership::Unnamed => {
            verdict.opted_in && verdict.desired == Some(Desired::Running)
        }
    };
    let policy = verdict.membership.policy(rules.configuration);
    match (starts, observer(record, &policy, rules.configuration)) {
        (false, _) => Coverage::Nothing,
        (true, Some(_)) => Coverage::Observed,
        (true, None) => Coverage::Full,
    }
}

/// Reports whether a person stopped it while no schedule would start it again.
fn was_meant_to_last(record: &Record) -> bool {
    let handled = record.handled.as_ref();
    let command = record.manual_command.as_ref();
    handled.is_some_and(|handled| handled.key.rank == Rank::Manual && handled.schedule.is_none())
        && command.is_some_and(|command| command.desired == Desired::Stopped)
}

#[cfg(test)]
mod tests;
