//! The state of a record in words, wherever it is shown.

use domain::{
    ScheduleName,
    account::AccountState,
    explanation::StandingCommand,
    record::{Cause, Direction, OBSERVATION_AGE, Phase, Record},
    resource::Power,
    schedule::Desired,
};
use jiff::{Timestamp, tz::TimeZone};
use schemars::JsonSchema;
use serde::Serialize;
use transition::event::watching;

use crate::{
    problems::reported,
    time::{length, short},
};

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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    pub phase: PhaseName,
    /// A word or two: `running`, `stopping`, `stop stuck`.
    pub words: String,
    /// When the phase began, as far as the record shows.
    pub since: Option<Timestamp>,
    /// Whether it runs or is stopped; `Between` unless that is settled.
    pub power: Power,
}

impl State {
    #[must_use]
    pub fn of(record: &Record) -> Self {
        let mut power = Power::Between;
        let (phase, words, since) = match &record.phase {
            Phase::Settled { .. } if record.is_hibernated() => {
                power = Power::Stopped;
                let since = record.last.as_ref().map(|last| last.finished_at);
                (PhaseName::Settled, "hibernated".to_owned(), since)
            }
            Phase::Settled { at } => {
                power = *at;
                (PhaseName::Settled, at.in_a_word(record.kind()), seen_since(record, *at))
            }
            Phase::InFlight { transition } if record.watched_until().is_some() => {
                let at = transition.direction.target_state();
                (PhaseName::InFlight, at.to_string(), seen_since(record, at))
            }
            Phase::InFlight { transition } => {
                let words = match (transition.direction, reported(record)) {
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
        Self { phase, words, since, power }
    }
}

/// The state as the beginning of a sentence.
#[must_use]
pub fn sentence(record: &Record) -> String {
    let it_is = || format!("It is {}", State::of(record).words);
    match &record.phase {
        Phase::Refused { transition, .. } => format!("Its {} was refused", transition.direction),
        Phase::Stuck { transition, .. } => format!("Its {} is stuck", transition.direction),
        Phase::InFlight { transition } => {
            match (record.watched_until(), transition.direction, reported(record)) {
                (Some(until), direction, _) => format!("It is {}", watching(direction, until)),
                (None, Direction::Start, Some(_)) => "Its start is failing".to_owned(),
                (None, Direction::Stop | Direction::Start, _) => it_is(),
            }
        }
        Phase::Settled { .. } | Phase::Gone { .. } => it_is(),
    }
}

/// Until when a manual command stands, and what changes the resource then.
#[must_use]
pub fn stands_until(
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
/// either. What was as small as it gets before it was stopped has been stopped since its edge.
fn seen_since(record: &Record, at: Power) -> Option<Timestamp> {
    let observed = record.observed.as_ref()?;
    let is_that = record.kind().is_sized() || observed.power == at;
    let unchanged = record.kind().is_sized() && at == Power::Stopped && record.saved.is_none();
    let handled = record.handled.as_ref().filter(|_| unchanged).map(|edge| edge.key.instant);
    is_that.then(|| handled.map_or(observed.at, |edge| edge.max(observed.at)))
}

/// Why nothing can be done in an account until a person intervenes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountFailure {
    /// In a few words.
    pub brief: String,
    pub whole: String,
}

impl AccountFailure {
    /// Returns a failure if the token fails, or if the last listing is so old that nothing is
    /// stopped any more. For an account that was never listed, that time counts from the apply.
    pub fn of(
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
