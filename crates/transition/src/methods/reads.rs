//! What is read of a resource besides its own state: decided once, for the reading and for the count
//! of its requests.

use domain::{
    configuration::Policy,
    hibernation::Hibernation,
    record::{Direction, Record},
};
use jiff::Timestamp;

use super::{expected, hibernate, rules};
use crate::view::View;

/// What is read of a resource besides its own state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reads {
    /// When a machine is seen with its snapshots, and with whatever might be it.
    pub sight: Sighted,
    /// How much that shows.
    pub extent: Extent,
    /// The instant from which the action log is read; `None` if it is not.
    pub log: Option<Timestamp>,
    /// What decides where the step leads.
    pub basis: Basis,
    /// Whether it is read what of a machine that could not be recreated is still there.
    pub remains: bool,
}

/// When a machine is seen with its snapshots, and with whatever might be it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sighted {
    Never,
    /// If its cloud does not know it: its record may be older than its cloud.
    IfMissing,
    /// Always: the machine alone does not show its state.
    Always,
}

/// How much is read of a machine that is seen with its snapshots. Each includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Extent {
    /// The machine and its snapshots: a stop is being followed.
    Progress,
    /// What is attached to it: it was recreated.
    Attached,
    /// What may stand in its way: it may be deleted.
    Obstacles,
}

/// What decides where a step leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// Nothing but the resource, its record and the configuration.
    Itself,
    /// The plans that are for sale.
    Plans,
    /// Those, and everything that could keep a machine from being recreated: it is seen once more,
    /// if the look has not shown that.
    Surroundings,
}

impl Reads {
    /// Returns what any look at the resource of a record reads.
    #[must_use]
    pub fn of(record: &Record) -> Self {
        let given_up = record.hibernation.as_deref().is_some_and(Hibernation::has_given_up);
        let hidden = record.is_irreplaceable() || given_up || record.is_hibernating();
        Self {
            sight: match &record.hibernation {
                _ if hidden => Sighted::Always,
                Some(_) => Sighted::IfMissing,
                None => Sighted::Never,
            },
            extent: match record.under_way_towards(Direction::Stop) {
                Some(_) => Extent::Progress,
                None => Extent::Attached,
            },
            log: None,
            basis: Basis::Itself,
            remains: false,
        }
    }

    /// Reports whether the machine may be seen with its snapshots.
    #[must_use]
    pub fn may_sight(self) -> bool {
        self.basis == Basis::Surroundings || self.sight != Sighted::Never
    }
}

/// The next step in a direction, before its resource is seen, or after.
#[derive(Debug, Clone, Copy)]
pub struct NextStep<'a> {
    pub record: &'a Record,
    pub policy: &'a Policy,
    pub direction: Direction,
    /// What a look shows; `None` before it, when everything counts that may be read.
    pub seen: Option<View<'a>>,
}

impl<'a> NextStep<'a> {
    /// Returns the next step that a look is about.
    #[must_use]
    pub fn of(view: View<'a>, direction: Direction) -> Self {
        Self { record: view.record, policy: view.policy, direction, seen: Some(view) }
    }

    /// Returns what is read before it.
    #[must_use]
    pub fn reads(self) -> Reads {
        let rules = rules(expected(self.record, self.policy, self.direction));
        let sight = self.seen.and_then(|view| view.seen.sight);
        let is_there = sight.is_none_or(|sight| sight.machine.is_some());
        let starts = self.direction == Direction::Start;
        Reads {
            log: rules.log_from(self.record).filter(|_| is_there),
            remains: starts && hibernate::refused_creation(self.record).is_some(),
            ..rules.reads(self)
        }
    }
}
