//! What is planned for one record, and what it is planned from.

use domain::{
    configuration::Policy,
    decision::{Rules, due_at, next_start},
    hibernation::{Log, Manifest, Sight},
    history::HistoryEntry,
    left_running::is_late,
    look::Look,
    record::{Direction, Record, Writer},
    resource::{LoggedAction, Resource, SavedState},
    step::Step,
    stop_method::StopMethod,
};
use jiff::{SignedDuration, Timestamp};

use crate::event::Event;

/// What is known of a resource when a step is planned.
#[derive(Debug, Clone, Copy)]
pub struct Observation<'a> {
    /// The resource as the look showed it.
    pub resource: &'a Resource,
    /// When that look was requested.
    pub requested_at: Timestamp,
    /// The machine's action log since the request's look, if it was read.
    pub log: &'a [LoggedAction],
    /// For a stop that makes it smaller: the size that it leads to.
    pub target: Option<&'a SavedState>,
    /// Why a stop must not be made, or a start leaves the machine running on less than is saved.
    pub refusal: Option<&'a str>,
    /// The instant from which that log was read; `None` if it was not.
    pub log_from: Option<Timestamp>,
    /// What else was seen of a machine that may be hibernated.
    pub sight: Option<&'a Sight>,
    /// For a stop that is to hibernate: the key that the machine is recreated with; `None` if it
    /// must not be hibernated now.
    pub ssh_key: Option<&'a str>,
    /// For a start whose creation was refused: the machine without what its account no longer has.
    pub creates: Option<&'a Manifest>,
}

/// Who plans, under which rules, and when.
#[derive(Debug, Clone, Copy)]
pub struct PlanContext<'a> {
    /// The configuration and the overrides.
    pub rules: Rules<'a>,
    /// This invocation.
    pub writer: &'a Writer,
    /// The current time.
    pub now: Timestamp,
}

/// Everything that a decision about one record rests on.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The record.
    pub record: &'a Record,
    /// What was seen of its resource.
    pub seen: Observation<'a>,
    /// How its schedule treats it.
    pub policy: &'a Policy,
    /// The configuration and the overrides.
    pub rules: Rules<'a>,
    /// This invocation.
    pub writer: &'a Writer,
    /// The current time.
    pub now: Timestamp,
}

impl<'a> View<'a> {
    /// Puts together what a decision rests on.
    #[must_use]
    pub fn new(
        record: &'a Record,
        seen: Observation<'a>,
        policy: &'a Policy,
        context: PlanContext<'a>,
    ) -> Self {
        let PlanContext { rules, writer, now } = context;
        Self { record, seen, policy, rules, writer, now }
    }

    /// How a machine is switched off, whether or not more is done to it then.
    pub(crate) fn switch_off(self) -> StopMethod {
        StopMethod::to_switch_off(self.record.kind(), self.policy)
    }

    /// When the resource is to run next.
    pub(crate) fn next_start(self) -> Option<Timestamp> {
        next_start(self.record, self.rules, self.now)
    }

    /// Reports whether a stop for an edge comes too late to be undone before the next start.
    pub(crate) fn is_late(self, edge: Timestamp, both: SignedDuration) -> bool {
        is_late(self.record, self.rules, edge, both, self.now)
    }

    /// The size that a stop leads to: fixed by its claim if that changes a machine's plan.
    pub(crate) fn target(self, direction: Direction) -> Option<&'a SavedState> {
        match self.record.under_way_towards(direction) {
            Some(now) if now.method.changes_plan() => now.target.as_ref(),
            Some(_) | None => self.seen.target,
        }
    }

    /// Returns the record with the instant at which it is due next.
    pub(crate) fn dated(self, mut record: Record) -> Record {
        record.due_at = due_at(&record, self.rules, self.now);
        record
    }
}

impl<'a> Observation<'a> {
    /// Returns what a look shows, without a log.
    #[must_use]
    pub fn of(look: &'a Look) -> Self {
        Self {
            resource: &look.resource,
            requested_at: look.requested_at,
            log: &[],
            target: None,
            refusal: None,
            log_from: None,
            sight: look.sight.as_deref(),
            ssh_key: None,
            creates: None,
        }
    }

    /// Returns the machine's log, as far back as it was read.
    #[must_use]
    pub fn whole_log(self) -> Log<'a> {
        Log { actions: self.log, from: self.log_from }
    }
}

/// What is to be done next about one record.
#[derive(Debug)]
pub enum Plan {
    /// Nothing to do, and nothing to report.
    Leave,
    /// Not now: retried after a while.
    Postpone(String),
    /// One write, and no request.
    Write(Box<Write>),
    /// One write that permits one request, and that request.
    Send(Box<Send>),
    /// One write, and the request that is not sent in observe mode.
    Withhold(Box<Withheld>),
}

/// A write without a request.
#[derive(Debug)]
pub struct Write {
    /// The record to write.
    pub record: Record,
    /// The entry for what this ends, if anything.
    pub history: Option<HistoryEntry>,
    /// What to report.
    pub events: Vec<Event>,
}

/// A write that permits a request: that of its record.
#[derive(Debug)]
pub struct Send {
    /// The record to write, with the permit.
    pub record: Record,
    /// The resource, as it was seen.
    pub resource: Resource,
    /// The entry for what this ends, if anything: the transition that is turned around.
    pub history: Option<HistoryEntry>,
    /// What to report besides the request.
    pub events: Vec<Event>,
}

/// What would be sent if its schedule were not only observed.
#[derive(Debug)]
pub struct Withheld {
    /// The write.
    pub write: Write,
    /// The resource, as it was seen.
    pub resource: Resource,
    /// The request.
    pub step: Step,
    /// What would be saved, or restored.
    pub saved: Option<SavedState>,
}
