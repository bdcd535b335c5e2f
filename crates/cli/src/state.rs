//! A record's state in words, for everything that shows it.

use domain::{
    decision::{Decision, LeaveReason, Rules, Verdict},
    left_behind::{LeftBehind, left_behind},
    membership::Membership,
    record::{Direction, Phase, Record},
    resource::Power,
};
use jiff::Timestamp;
use lifecycle::outcome::watching;

/// Where in its life a resource is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    /// The phase, as a word for programs.
    pub(crate) phase: &'static str,
    /// In a word or two: `running`, `stopping`, `stop stuck`.
    pub(crate) words: String,
    /// When the phase began, as far as the record tells.
    pub(crate) since: Option<Timestamp>,
}

impl State {
    pub(crate) fn of(record: &Record) -> Self {
        let (phase, words, since) = match &record.phase {
            Phase::Settled { at } => ("settled", power(*at).to_owned(), seen_since(record, *at)),
            Phase::InFlight { transition } if record.watched_until().is_some() => {
                let at = transition.direction.end();
                ("in-flight", power(at).to_owned(), seen_since(record, at))
            }
            Phase::InFlight { transition } => {
                let words = match (transition.direction, problem(record)) {
                    (Direction::Stop, _) => "stopping",
                    (Direction::Start, None) => "starting",
                    (Direction::Start, Some(_)) => "start failing",
                };
                ("in-flight", words.to_owned(), Some(transition.claimed_at))
            }
            Phase::Refused { transition, .. } => {
                let words = format!("{} refused", transition.direction);
                ("refused", words, Some(transition.claimed_at))
            }
            Phase::Stuck {
                transition, since, ..
            } => {
                let words = format!("{} stuck", transition.direction);
                ("stuck", words, Some(*since))
            }
            Phase::Gone { since } => ("gone", "gone at the provider".to_owned(), Some(*since)),
        };
        Self {
            phase,
            words,
            since,
        }
    }
}

/// The same as the beginning of a sentence.
pub(crate) fn sentence(record: &Record) -> String {
    match &record.phase {
        Phase::Refused { transition, .. } => format!("Its {} was refused", transition.direction),
        Phase::Stuck { transition, .. } => format!("Its {} is stuck", transition.direction),
        Phase::InFlight { transition } => {
            let watched = record.watched_until();
            let watched = watched.map(|until| watching(transition.direction, until));
            format!("It is {}", watched.unwrap_or(State::of(record).words))
        }
        Phase::Settled { .. } | Phase::Gone { .. } => {
            format!("It is {}", State::of(record).words)
        }
    }
}

/// Whether something runs, in a word.
fn power(power: Power) -> &'static str {
    match power {
        Power::Running => "running",
        Power::Stopped => "stopped",
        Power::Between => "between",
    }
}

/// Since when it has been seen as it was settled. A database's power says nothing of its size, and
/// what is seen of it changes with either.
fn seen_since(record: &Record, at: Power) -> Option<Timestamp> {
    let observed = record.observed.as_ref()?;
    let is_that = record.kind().is_sized() || observed.power == at;
    is_that.then_some(observed.at)
}

/// What a person has to mend while a start goes on being asked for.
pub(crate) fn problem(record: &Record) -> Option<&str> {
    record.in_flight()?;
    record.request.as_ref()?.problem.as_deref()
}

/// What only a person can settle, and how.
pub(crate) fn needs_person(
    record: &Record,
    verdict: &Verdict,
    rules: Rules<'_>,
    now: Timestamp,
) -> Option<String> {
    match &record.phase {
        Phase::Stuck { reason, .. } | Phase::Refused { reason, .. } => {
            return Some(reason.clone());
        }
        Phase::Settled { .. } | Phase::InFlight { .. } | Phase::Gone { .. } => {}
    }
    if let Some(problem) = problem(record) {
        return Some(format!("asked again every 15 minutes: {problem}"));
    }
    if record.held {
        return Some("held: `offhours approve` lets go of it".to_owned());
    }
    if let Some(left) = left_behind(record, rules, now) {
        return Some(bring_back(record, verdict, left));
    }
    match &verdict.decision {
        Decision::Leave(reason) => {
            let conflict =
                matches!(&verdict.membership, Membership::Barred(bar) if bar.is_conflict());
            let unknown = matches!(reason, LeaveReason::UnknownSchedule(_));
            (conflict || unknown).then(|| reason.to_string())
        }
        Decision::Act(_) | Decision::AskAgain(_) => None,
    }
}

/// How a person brings back what nothing else will.
fn bring_back(record: &Record, verdict: &Verdict, left: LeftBehind) -> String {
    match (left, &verdict.membership) {
        (LeftBehind::Orphaned, Membership::Barred(bar)) => {
            format!("orphaned: {bar}; once that is gone, `offhours start` restores it")
        }
        (LeftBehind::Orphaned, _) => "orphaned: `offhours start` restores it".to_owned(),
        (LeftBehind::Unreachable, _) => {
            let account = &record.reference.account;
            let saved = record.saved.as_ref();
            let owed = saved.map_or_else(|| "a size".to_owned(), ToString::to_string);
            format!("owed {owed}, and its account {account} is not configured: configure it again")
        }
    }
}

#[cfg(test)]
pub(crate) mod fixtures;
