//! The effect of an override on each resource, worked out from the stored state before anything is
//! written.

use domain::{
    ResourceRef, ScheduleName,
    configuration::{Configuration, Mode, Override, Overrides, Rule, Target},
    decision::{Decision, Due, LeaveReason, Rules, judge},
    membership::{Membership, Subject},
    reason::Reason,
    record::{Direction, Phase, Record, SKEW},
    schedule::Desired,
};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{state::State, time::local};

/// The stored state that an override may concern.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredState<'k> {
    pub(super) configuration: &'k Configuration,
    pub(super) overrides: &'k Overrides,
    /// At least the records of the resources in question.
    pub(super) records: &'k [Record],
}

/// What governs a target at an instant, apart from the target's own override.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "by")]
pub(super) enum Governor {
    /// The schedule that the target follows, or is.
    Schedule {
        /// The schedule's name.
        schedule: ScheduleName,
        /// The schedule's desired state at that instant; null if either state will do.
        desired: Option<Desired>,
    },
    /// For a resource: an override of the schedule that it follows.
    Override {
        /// The schedule's name.
        schedule: ScheduleName,
        /// The desired state.
        desired: Desired,
        /// When the override ends, exclusive.
        until: Timestamp,
    },
    /// Nothing: the target stays as it is.
    Nothing,
}

/// What happens to a resource when an override is set or cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Effect {
    /// It will be started.
    Starts,
    /// It will be stopped.
    Stops,
    /// It would be started, but observe mode sends nothing.
    WouldStart,
    /// It would be stopped, but observe mode sends nothing.
    WouldStop,
    /// It is in the desired state already.
    AlreadyThere,
    /// A transition to the desired state is in progress.
    UnderWay,
    /// Nothing is due: the desired state was acted on already, or there is none.
    Unchanged,
    /// Its own override wins.
    OwnOverride,
    /// It is left untouched.
    LeftAlone,
}

/// A resource that an override concerns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Concerned {
    /// The resource.
    pub(super) resource: ResourceRef,
    /// Its name.
    pub(super) name: String,
    /// Its state in a word or two: `running`, `stopping`, `stop stuck`.
    pub(super) state: String,
    /// What happens to it now.
    pub(super) effect: Effect,
    /// Why, if the effect alone does not say; null otherwise.
    pub(super) why: Option<String>,
    /// Whether it waits for a person's approval.
    #[serde(skip)]
    pub(super) held: bool,
}

impl<'k> StoredState<'k> {
    pub(super) fn rules(self) -> Rules<'k> {
        Rules { configuration: self.configuration, overrides: self.overrides }
    }

    /// The record of a resource; `None` for a schedule.
    pub(super) fn record(self, target: &Target) -> Option<&'k Record> {
        match target {
            Target::Resource(reference) => {
                let mut records = self.records.iter();
                records.find(|record| record.reference == *reference)
            }
            Target::Schedule(_) => None,
        }
    }

    /// The schedule that a target is, or follows.
    pub(super) fn schedule(self, target: &Target) -> Option<(&'k ScheduleName, &'k Rule)> {
        let schedules = &self.configuration.schedules;
        match target {
            Target::Resource(_) => {
                let membership = self.membership(self.record(target)?);
                schedules.get_key_value(membership.schedule()?)
            }
            Target::Schedule(name) => schedules.get_key_value(name),
        }
    }

    /// The zone in which the times of a target are read: its schedule's, or else `here`.
    pub(super) fn zone<'z>(self, target: &Target, here: &'z TimeZone) -> &'z TimeZone
    where
        'k: 'z,
    {
        self.schedule(target).map_or(here, |(_, rule)| rule.schedule.timezone())
    }

    /// The resources that an override of a target concerns.
    pub(super) fn concerned(self, target: &Target) -> Vec<&'k Record> {
        match target {
            Target::Resource(_) => self.record(target).into_iter().collect(),
            Target::Schedule(name) => self
                .records
                .iter()
                .filter(|record| !matches!(record.phase, Phase::Gone { .. }))
                .filter(|record| {
                    // Protected resources are included, and shown as left alone.
                    let subject = Subject::recorded(record);
                    Membership::named(subject, self.configuration).schedule() == Some(name)
                })
                .collect(),
        }
    }

    /// What governs a target at an instant, apart from its own override.
    pub(super) fn governor(self, target: &Target, at: Timestamp) -> Governor {
        let Some((name, rule)) = self.schedule(target) else {
            return Governor::Nothing;
        };
        let schedule = name.clone();
        let above = match target {
            Target::Resource(_) => self.overrides.of(&Target::Schedule(schedule.clone())),
            Target::Schedule(_) => None,
        };
        match above.filter(|one| one.is_active(at)) {
            Some(one) => Governor::Override { schedule, desired: one.desired, until: one.ends_at },
            None => Governor::Schedule { schedule, desired: rule.schedule.desired_at(at) },
        }
    }

    /// Why a resource cannot be overridden; `None` for a schedule, whose members are judged singly.
    pub(super) fn exclusion(self, target: &Target) -> Option<String> {
        let record = self.record(target)?;
        match (&record.phase, self.membership(record)) {
            (Phase::Gone { .. }, _) => Some("it is gone at the provider".to_owned()),
            (_, Membership::Excluded(exclusion)) => Some(exclusion.to_string()),
            (_, Membership::Member { .. } | Membership::Unknown { .. } | Membership::Unnamed) => {
                None
            }
        }
    }

    /// Works out what happens to the resources of `one` at an instant, once it is written.
    pub(super) fn effects(self, one: &Override, at: Timestamp) -> Vec<Concerned> {
        let overrides: Overrides = self.overrides.iter().chain([one]).cloned().collect();
        let stored = StoredState { overrides: &overrides, ..self };
        let concerned = self.concerned(&one.target).into_iter();
        concerned.map(|record| stored.effect(&one.target, record, at)).collect()
    }

    fn effect(self, target: &Target, record: &Record, at: Timestamp) -> Concerned {
        let own = match target {
            Target::Resource(_) => None,
            Target::Schedule(_) => {
                let own = Target::Resource(record.reference.clone());
                self.overrides.of(&own).filter(|one| one.is_active(at))
            }
        };
        let (effect, why) = match own {
            Some(own) => {
                let until = self.local(target, own.ends_at);
                let why = format!("{} until {until}, by {}", own.desired, own.by);
                (Effect::OwnOverride, Some(why))
            }
            None => self.judged(target, record, at),
        };
        Concerned {
            resource: record.reference.clone(),
            name: record.name.clone(),
            state: State::of(record).words,
            effect,
            why,
            held: record.held,
        }
    }

    fn judged(self, target: &Target, record: &Record, at: Timestamp) -> (Effect, Option<String>) {
        let verdict = judge(record, Subject::recorded(record), self.rules(), at);
        match verdict.decision {
            Decision::Act(due) => self.acted(target, record, &due, at),
            Decision::AskAgain(_) => (Effect::UnderWay, None),
            Decision::Leave(LeaveReason::Handled | LeaveReason::NothingDesired) => {
                let under_way = record.in_flight().is_some_and(|transition| {
                    Some(transition.direction.desired()) == verdict.desired
                });
                let effect = if under_way { Effect::UnderWay } else { Effect::Unchanged };
                (effect, None)
            }
            Decision::Leave(
                reason @ (LeaveReason::Excluded(_)
                | LeaveReason::UnknownSchedule(_)
                | LeaveReason::Unnamed
                | LeaveReason::Held
                | LeaveReason::Adopting
                | LeaveReason::Gone
                | LeaveReason::StaleReader),
            ) => (Effect::LeftAlone, Some(reason.to_string())),
        }
    }

    /// The effect on a record for which something is due, and why.
    fn acted(
        self,
        target: &Target,
        record: &Record,
        due: &Due,
        at: Timestamp,
    ) -> (Effect, Option<String>) {
        let opposite = match &record.phase {
            Phase::Settled { at } if *at == due.direction.target_state() => {
                return (Effect::AlreadyThere, None);
            }
            Phase::InFlight { transition } if transition.direction == due.direction => {
                return (Effect::UnderWay, None);
            }
            Phase::InFlight { transition } => Some(transition.direction),
            Phase::Settled { .. }
            | Phase::Refused { .. }
            | Phase::Stuck { .. }
            | Phase::Gone { .. } => None,
        };
        let effect = match (due.mode, due.direction) {
            (Mode::Act, Direction::Start) => Effect::Starts,
            (Mode::Act, Direction::Stop) => Effect::Stops,
            (Mode::Observe, Direction::Start) => Effect::WouldStart,
            (Mode::Observe, Direction::Stop) => Effect::WouldStop,
        };
        let why = match (opposite, record.retry_at.filter(|retry_at| *retry_at > at)) {
            (Some(opposite), _) => Some(format!("as soon as the {opposite} under way allows it")),
            (None, Some(retry_at)) => {
                let error = record.last_error.as_ref();
                let error =
                    error.map_or_else(|| "the last try failed".to_owned(), Reason::to_string);
                let retry_at = self.local(target, retry_at);
                Some(format!("not before {retry_at}: {error}"))
            }
            (None, None) => None,
        };
        (effect, why)
    }

    /// Formats an instant in the zone of a target.
    fn local(self, target: &Target, at: Timestamp) -> String {
        local(at, self.zone(target, &TimeZone::UTC))
    }

    fn membership(self, record: &Record) -> Membership {
        Membership::of(Subject::recorded(record), self.configuration)
    }
}

/// Returns the instant for an edge that a person makes now: just after everything handled and after
/// the edge of `replaced`, or it would never be the latest.
///
/// The store's clock has whole seconds, and other clocks may be ahead of it. An instant that is
/// further ahead than that is ignored.
pub(super) fn edge_at(
    now: Timestamp,
    concerned: &[&Record],
    replaced: Option<&Override>,
) -> Timestamp {
    let handled = concerned
        .iter()
        .filter_map(|record| record.handled.as_ref())
        .map(|handled| handled.key.instant);
    let ahead_at_most = now + SKEW + SignedDuration::from_secs(1);
    handled
        .chain(replaced.map(|one| one.set_at))
        .filter(|earlier| *earlier <= ahead_at_most)
        .map(|earlier| earlier + SignedDuration::from_millis(1))
        .fold(now, Timestamp::max)
}
