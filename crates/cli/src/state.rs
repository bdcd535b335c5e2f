//! The state of a record in words, wherever it is shown.

use domain::{
    ScheduleName,
    decision::{Decision, LeaveReason, Rules, Verdict},
    explanation::StandingCommand,
    left_behind::{LeftBehind, barrier, left_behind},
    membership::Membership,
    overdue::Overdue,
    reason::Reason,
    record::{Ask, Cause, Direction, OBSERVATION_AGE, Phase, Record},
    resource::Power,
    schedule::Desired,
};
use jiff::{Timestamp, tz::TimeZone};
use lifecycle::event::watching;
use schemars::JsonSchema;
use serde::Serialize;
use store::AccountState;

use crate::time::{length, short};

/// The phase of a resource, as a word for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseName {
    /// Nothing is in progress: it is running or stopped.
    Settled,
    /// It is being stopped or started.
    InFlight,
    /// The provider refused to stop or start it.
    Refused,
    /// It was not seen in its target state in time.
    Stuck,
    /// The provider no longer has it.
    Gone,
}

/// The state of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) phase: PhaseName,
    /// A word or two: `running`, `stopping`, `stop stuck`.
    pub(crate) words: String,
    /// When the phase began, as far as the record shows.
    pub(crate) since: Option<Timestamp>,
}

impl State {
    pub(crate) fn of(record: &Record) -> Self {
        let (phase, words, since) = match &record.phase {
            Phase::Settled { .. } if record.is_hibernated() => {
                let since = record.last.as_ref().map(|last| last.finished_at);
                (PhaseName::Settled, "hibernated".to_owned(), since)
            }
            Phase::Settled { at } => {
                let words = at.in_a_word(record.kind());
                (PhaseName::Settled, words, seen_since(record, *at))
            }
            Phase::InFlight { transition } if record.watched_until().is_some() => {
                let at = transition.direction.target_state();
                (PhaseName::InFlight, at.to_string(), seen_since(record, at))
            }
            Phase::InFlight { transition } => {
                let words = match (transition.direction, problem(record)) {
                    (Direction::Stop, _) => "stopping",
                    (Direction::Start, None) => "starting",
                    (Direction::Start, Some(_)) => "start failing",
                };
                (PhaseName::InFlight, words.to_owned(), Some(transition.claimed_at))
            }
            Phase::Refused { transition, .. } => {
                let words = format!("{} refused", transition.direction);
                (PhaseName::Refused, words, Some(transition.claimed_at))
            }
            Phase::Stuck { transition, since, .. } => {
                let words = format!("{} stuck", transition.direction);
                (PhaseName::Stuck, words, Some(*since))
            }
            Phase::Gone { since } => {
                (PhaseName::Gone, "gone at the provider".to_owned(), Some(*since))
            }
        };
        Self { phase, words, since }
    }
}

/// The state as the beginning of a sentence.
pub(crate) fn sentence(record: &Record) -> String {
    match &record.phase {
        Phase::Refused { transition, .. } => format!("Its {} was refused", transition.direction),
        Phase::Stuck { transition, .. } => format!("Its {} is stuck", transition.direction),
        Phase::InFlight { transition } => {
            let watched = record.watched_until();
            match (watched, transition.direction, problem(record)) {
                (Some(until), direction, _) => format!("It is {}", watching(direction, until)),
                (None, Direction::Start, Some(_)) => "Its start is failing".to_owned(),
                (None, Direction::Stop | Direction::Start, _) => {
                    format!("It is {}", State::of(record).words)
                }
            }
        }
        Phase::Settled { .. } | Phase::Gone { .. } => {
            format!("It is {}", State::of(record).words)
        }
    }
}

/// Until when a manual command stands, and what changes the resource then.
pub(crate) fn stands_until(
    command: &StandingCommand,
    schedule: Option<&ScheduleName>,
    zone: &TimeZone,
    now: Timestamp,
) -> String {
    let next = command.until.as_ref();
    let Some((at, edge)) = next.and_then(|edge| Some((edge.at?, edge))) else {
        return match command.desired {
            Desired::Running => "until a person stops it".to_owned(),
            Desired::Stopped => "until a person starts it".to_owned(),
        };
    };
    let then = match (&edge.cause, schedule) {
        (Cause::Schedule, Some(schedule)) => format!(", then {schedule}"),
        (Cause::OverrideEnded, _) => ", when an override ends".to_owned(),
        (Cause::OverrideSet, _) => ", when an override begins".to_owned(),
        (Cause::Schedule, None) | (Cause::Manual { .. }, _) => String::new(),
    };
    format!("until {}{then}", short(at, zone, now))
}

/// Since when the resource has been observed in its settled state. The power of a sized resource
/// says nothing about its size, so it is not compared: the time of the observation changes with
/// either.
fn seen_since(record: &Record, at: Power) -> Option<Timestamp> {
    let observed = record.observed.as_ref()?;
    let is_that = record.kind().is_sized() || observed.power == at;
    is_that.then_some(observed.at)
}

/// What a person has to look at while a transition goes on.
pub(crate) fn problem(record: &Record) -> Option<&Reason> {
    record.in_flight()?;
    record.request.as_ref()?.problem.as_ref()
}

/// What only a person can resolve, and how.
pub(crate) fn needs_person(
    record: &Record,
    verdict: &Verdict,
    rules: Rules<'_>,
    now: Timestamp,
) -> Option<String> {
    let left = left_behind(record, rules, now);
    if let Some(left @ (LeftBehind::Unreachable | LeftBehind::Gone)) = left {
        return Some(bring_back(record, rules, left));
    }
    if matches!(record.phase, Phase::Gone { .. }) {
        return None;
    }
    match &record.phase {
        Phase::Stuck { reason, .. } | Phase::Refused { reason, .. } => {
            return Some(reason.clone());
        }
        Phase::Settled { .. } | Phase::InFlight { .. } | Phase::Gone { .. } => {}
    }
    if let Some(problem) = record.hibernation_problem() {
        return Some(problem.to_owned());
    }
    // A failing start that nothing asks for any more is not asked for again.
    if let Some(problem) = problem(record).filter(|_| left.is_none()) {
        let request = record.request.as_ref();
        let is_retried = request.is_some_and(|one| matches!(one.ask, Ask::Failed { .. }));
        return Some(if is_retried {
            format!("asked again every 15 minutes: {problem}")
        } else {
            problem.to_string()
        });
    }
    if record.held {
        let approve = "`offhours approve` releases it";
        return Some(match record.lost_storage {
            Some(lost) => format!("held: it came back with {lost}; add some, or {approve}"),
            None => format!("held: {approve}"),
        });
    }
    if let Some(left) = left {
        return Some(bring_back(record, rules, left));
    }
    if let Some(saved) = record.unlike_saved() {
        return Some(format!(
            "its plan does not compare with the saved {saved}: resize it, or give that up with \
             `offhours forget --anyway {}`",
            record.reference
        ));
    }
    match &verdict.decision {
        Decision::Leave(reason) => {
            let conflict = matches!(&verdict.membership, Membership::Excluded(exclusion) if exclusion.is_conflict());
            let unknown = matches!(reason, LeaveReason::UnknownSchedule(_));
            (conflict || unknown).then(|| reason.to_string())
        }
        Decision::Act(_) | Decision::AskAgain(_) => None,
    }
}

/// Why the record of a machine that may be hibernated is kept.
pub(crate) const ONLY_RECORDED: &str = "only its record says how to recreate it";

/// How a person restores a resource that nothing else restores.
fn bring_back(record: &Record, rules: Rules<'_>, left: LeftBehind) -> String {
    match (left, barrier(record, rules.configuration)) {
        (LeftBehind::Orphaned, Some(barrier)) => {
            format!("orphaned: {barrier}; once that ends, `offhours start` restores it")
        }
        (LeftBehind::Orphaned, None) => "orphaned: `offhours start` restores it".to_owned(),
        (LeftBehind::Unreachable, _) => {
            let account = &record.reference.account;
            if record.is_irreplaceable() {
                return format!(
                    "{ONLY_RECORDED}, and its account {account} is not configured: configure it \
                     again"
                );
            }
            let saved = record.saved.as_ref();
            let owed = saved.map_or_else(|| "a size".to_owned(), ToString::to_string);
            format!(
                "owed {owed}, and its account {account} is not configured: configure it again, or \
                 give that up with `offhours forget {}`",
                record.reference
            )
        }
        (LeftBehind::Gone, _) => format!("gone: {}", gone_and_ours(record)),
    }
}

/// What a person has to decide about a gone resource that was stopped by Offhours.
pub(crate) fn gone_and_ours(record: &Record) -> String {
    let saved = record.saved.as_ref();
    let lost =
        saved.map_or_else(|| "stopped by Offhours".to_owned(), |saved| format!("owed {saved}"));
    format!(
        "{lost}; check that the account's token is of its project, or, if it was deleted, \
         `offhours forget --anyway {}`",
        record.reference
    )
}

/// Says that a resource is overdue, since when in the zone's local time, and the last error.
pub(crate) fn is_overdue(
    record: &Record,
    overdue: Overdue,
    zone: &TimeZone,
    now: Timestamp,
) -> String {
    let Overdue { desired, since } = overdue;
    let error = record.last_error.as_ref();
    let error = error.map_or_else(String::new, |error| format!("; last error: {error}"));
    format!("overdue: should have been {desired} since {}{error}", short(since, zone, now))
}

/// Why nothing can be done in an account until a person intervenes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AccountFailure {
    /// In a few words.
    pub(crate) brief: String,
    /// With all details.
    pub(crate) whole: String,
}

impl AccountFailure {
    /// Returns a failure if the token fails, or if the last listing is so old that nothing is
    /// stopped any more. For an account that was never listed, that time counts from the apply.
    pub(crate) fn of(
        state: Option<&AccountState>,
        in_force_since: Option<Timestamp>,
        now: Timestamp,
    ) -> Option<Self> {
        let error = state.and_then(|state| state.error.as_ref());
        if let (Some(error), true) = (error, state.is_some_and(|state| state.token_fails)) {
            return Some(Self { brief: error.what().to_owned(), whole: error.to_string() });
        }
        let listed_at = state.and_then(|state| state.listed_at);
        let age = now.duration_since(listed_at.or(in_force_since)?);
        let brief = match listed_at {
            Some(_) => format!("not listed for {}", length(age)),
            None => "not listed yet".to_owned(),
        };
        let why = error.map_or_else(String::new, |error| format!(": {error}"));
        (age > OBSERVATION_AGE).then(|| Self { whole: format!("{brief}{why}"), brief })
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) mod fixtures;
