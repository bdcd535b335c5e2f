//! Builders of history and records that read as sentences, for tests: all in June 2026, in UTC.

use std::collections::BTreeSet;

use domain::{
    ResourceId, ResourceRef,
    configuration::Generation,
    history::HistoryEntry,
    record::{
        Ask, Cause, Direction, EdgeKey, Ending, Forced, Handled, Observed, Phase, Rank, Record,
        Request, Transition,
    },
    resource::{MachineFacts, MachineSize, Power, Resource, SavedState, Size},
    schedule::Desired,
    step::Step,
    stop_method::StopMethod,
};
use jiff::Timestamp;

/// Parses a day of June and a time, such as `15 19:00`.
#[must_use]
pub fn at(text: &str) -> Timestamp {
    let (day, time) = text.split_once(' ').unwrap();
    format!("2026-06-{day}T{time}:00Z").parse().unwrap()
}

/// Parses a reference.
#[must_use]
pub fn reference(text: &str) -> ResourceRef {
    text.parse().unwrap()
}

/// The server `web`.
#[must_use]
pub fn web() -> ResourceRef {
    reference("hz-eu/server/1")
}

/// A transition of the server `web` under `office`, claimed, requested and accepted at one instant,
/// and seen at another.
#[must_use]
pub fn entry(direction: Direction, claimed: &str, finished: &str) -> HistoryEntry {
    HistoryEntry {
        method: None,
        reference: web(),
        name: "web".to_owned(),
        direction,
        cause: Cause::Schedule,
        schedule: Some("office".parse().unwrap()),
        claimed_at: at(claimed),
        asked_at: Some(at(claimed)),
        accepted_at: Some(at(claimed)),
        finished_at: at(finished),
        ending: Ending::Seen,
        reason: None,
        forced: false,
        saved: None,
        seen: None,
        hibernation: None,
    }
}

/// A stop of `web`: [`entry`].
#[must_use]
pub fn stop(claimed: &str, finished: &str) -> HistoryEntry {
    entry(Direction::Stop, claimed, finished)
}

/// A start of `web`: [`entry`].
#[must_use]
pub fn start(claimed: &str, finished: &str) -> HistoryEntry {
    entry(Direction::Start, claimed, finished)
}

/// What a test changes in an entry.
pub trait But {
    /// Changes the ending.
    #[must_use]
    fn ending(self, ending: Ending) -> Self;
    /// Has the provider refuse it, in these words.
    #[must_use]
    fn refused(self, reason: &str) -> Self;
    /// Makes it a transition for which nothing was sent.
    #[must_use]
    fn unasked(self) -> Self;
    /// Changes the resource.
    #[must_use]
    fn of(self, reference: &str) -> Self;
    /// Sets the sizes before and after.
    #[must_use]
    fn sized(self, before: SavedState, after: SavedState) -> Self;
}

impl But for HistoryEntry {
    fn refused(self, reason: &str) -> Self {
        Self { reason: Some(reason.to_owned()), ..self.ending(Ending::Refused) }
    }

    fn ending(self, ending: Ending) -> Self {
        Self { ending, ..self }
    }

    fn unasked(self) -> Self {
        Self { asked_at: None, accepted_at: None, ..self }
    }

    fn of(self, reference: &str) -> Self {
        Self { reference: reference.parse().unwrap(), ..self }
    }

    fn sized(self, before: SavedState, after: SavedState) -> Self {
        Self { saved: Some(before), seen: Some(after), ..self }
    }
}

/// A machine as a provider shows it: named `web`, and without tags.
#[must_use]
pub fn machine(id: &ResourceId, power: Power) -> Resource {
    Resource {
        id: id.clone(),
        name: "web".to_owned(),
        cluster: None,
        tags: BTreeSet::new(),
        region: "fsn1".to_owned(),
        power,
        busy: None,
        size: Size::Machine(MachineSize { plan: "cx22".to_owned(), ..MachineSize::default() }),
        facts: MachineFacts::default(),
        unsupported: None,
    }
}

/// The record of a resource that follows `office` and has had this power since an instant.
#[must_use]
pub fn record(of: &str, power: Power, since: &str) -> Record {
    let reference = reference(of);
    let resource = machine(&reference.id, power);
    Record {
        schedule: Some("office".parse().unwrap()),
        opted_in: true,
        observed: Some(Observed { power, size: None, busy: None, at: at(since) }),
        ..Record::first_seen(reference, &resource)
    }
}

/// An edge of a schedule in the first generation, as a record stores it.
#[must_use]
pub fn handled(instant: Timestamp, desired: Desired, schedule: &str) -> Handled {
    Handled {
        generation: Generation(1),
        key: EdgeKey { instant, rank: Rank::Schedule },
        desired: Some(desired),
        schedule: Some(schedule.parse().unwrap()),
    }
}

/// [`record`] of the server `web`.
#[must_use]
pub fn web_record(power: Power, since: &str) -> Record {
    record("hz-eu/server/1", power, since)
}

/// A transition by `office`.
#[must_use]
pub fn transition(direction: Direction, claimed: &str) -> Transition {
    Transition {
        target: None,
        method: StopMethod::Graceful,
        forced: false,
        was_running: false,
        direction,
        claimed_at: at(claimed),
        cause: Cause::Schedule,
        schedule: Some("office".parse().unwrap()),
    }
}

/// A request that was sent at an instant and not yet answered.
#[must_use]
pub fn request(direction: Direction, asked: &str) -> Request {
    Request {
        direction,
        asked_at: at(asked),
        looked_at: at(asked),
        ask: Ask::Open,
        earlier_unanswered: false,
        forced: Forced::No,
        effect_timeout: None,
        first_accepted_at: None,
        step: Step::Off { gracefully: true },
        created_machine: None,
        problem: None,
    }
}

/// The record of the server `web` with a transition in flight and its request sent.
#[must_use]
pub fn in_flight(direction: Direction, claimed: &str) -> Record {
    Record {
        phase: Phase::InFlight { transition: transition(direction, claimed) },
        request: Some(request(direction, claimed)),
        ..web_record(Power::Stopped, claimed)
    }
}
