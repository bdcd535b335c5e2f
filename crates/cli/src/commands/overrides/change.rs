//! Changes to the overrides, worked out in full before anything is written.

use std::collections::BTreeSet;

use domain::{
    activity::{Action, Author},
    configuration::{Override, OverrideTarget, Overrides, Rule},
    decision::{Decision, LeaveReason, judge},
    invocation::CommandTarget,
    membership::{Membership, Subject},
    record::{CLOCKS_DIFFER, Phase, Record},
    schedule::Desired,
};
use jiff::{SignedDuration, Timestamp};
use report::time::local;
use store::InForce;

use super::SetArgs;
use crate::{
    commands::{manual, targets::Selected},
    context::Context,
    exit::UsageError,
    names::record_of,
    print::Screen,
    time::{Asked, Length, NotAWhen, Reader, When},
};

/// A longer override needs confirmation: a slip, or a sign that the schedule should change.
const LONG: SignedDuration = SignedDuration::from_hours(30 * 24);

/// One that ends or begins later than this is a slip.
const AT_MOST: SignedDuration = SignedDuration::from_hours(10 * 366 * 24);

/// Overrides as a person requests them.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) args: &'a SetArgs,
    pub(super) desired: Desired,
    pub(super) until: When,
    pub(super) author: Author,
}

/// A change to one target's override.
#[derive(Debug)]
pub(super) struct Change {
    /// The override to write. One that is cleared ends now.
    pub(super) one: Override,
    /// The override of the same target that it replaces, ended or not.
    pub(super) replaces: Option<Override>,
    pub(super) clears: bool,
}

impl Change {
    pub(super) fn action(&self) -> Action {
        if self.clears {
            Action::OverrideCleared { target: self.one.target.clone() }
        } else {
            Action::set(&self.one)
        }
    }

    fn from(&self) -> Timestamp {
        if self.clears { self.one.ends_at } else { self.one.set_at }
    }
}

impl Request<'_> {
    /// Works out the changes to write.
    ///
    /// # Errors
    /// [`UsageError`] for a resource that is never touched, for an invalid end, and if nothing is
    /// left to override. A resource that only a pattern or an account names is left out instead.
    pub(super) fn changes(
        &self,
        selected: &Selected,
        context: &Context,
        now: Timestamp,
    ) -> Result<Vec<Change>, UsageError> {
        let (mut changes, mut excluded) = (Vec::new(), None);
        for target in &selected.overridden {
            let record = selected.record(target);
            match record.and_then(|record| exclusion(record, &selected.in_force)) {
                None => changes.push(self.change(target, selected, context, now)?),
                Some(reason) => {
                    let refused = UsageError(format!("{target}: {reason}; nothing was set"));
                    if record.is_some_and(|record| self.args.targets.name_exactly(record)) {
                        return Err(refused);
                    }
                    excluded = Some(refused);
                }
            }
        }
        match excluded {
            _ if !changes.is_empty() => Ok(changes),
            Some(refused) => Err(refused),
            None => bail_usage!("nothing follows a schedule there: nothing was set"),
        }
    }

    fn change(
        &self,
        target: &OverrideTarget,
        selected: &Selected,
        context: &Context,
        now: Timestamp,
    ) -> Result<Change, UsageError> {
        let schedule = selected.rule(target).map(|rule| &rule.schedule);
        let zone = context.zone(&*selected.in_force.configuration);
        let reader = Reader { now, zone: &zone, schedule };
        let checked = |when: &When, at: Result<Timestamp, NotAWhen>, now| {
            let at = at.map_err(|error| UsageError(format!("{target}: {error}")))?;
            if at.duration_since(now) > AT_MOST {
                bail_usage!("{target}: `{when}` is more than ten years away");
            }
            if at > now {
                return Ok(at);
            }
            let (at, now) = (local(at, &zone), local(now, &zone));
            bail_usage!("{target}: `{when}` is {at}, which is not after {now}")
        };
        let replaces = selected.in_force.overrides.get(target);
        let from = self.args.from.as_ref();
        let begin = from.map(|from| checked(from, from.resolve(Asked::Begin, reader), now));
        let begin = begin.transpose()?;
        let standing = replaces.filter(|one| has_not_ended(one, now));
        if let Some(coming) = standing.filter(|one| begins_later(one, now)) {
            let [begin, end] = [coming.set_at, coming.ends_at].map(|at| local(at, &zone));
            let instead = match target {
                OverrideTarget::Schedule(_) => ", or override resources of it by name",
                OverrideTarget::Resource(_) => "",
            };
            bail_usage!(
                "{target}: {} has it {} from {begin} until {end}, and the new override would take \
                 the place of that: `offhours override clear` it first{instead}",
                coming.by,
                coming.desired
            );
        }
        if let (Some(_), Some(active)) = (begin, standing) {
            bail_usage!(
                "{target}: it is overridden until {}, and the new override would end that now: \
                 `offhours override clear` it first, or set the new one later",
                local(active.ends_at, &zone)
            );
        }
        let from = begin.unwrap_or(now);
        let ends_at = checked(&self.until, self.until.resolve_end(from, reader), from)?;
        let set_at = begin.unwrap_or_else(|| edge_at(now, &selected.concerned(target), replaces));
        let one = Override {
            target: target.clone(),
            desired: self.desired,
            set_at,
            // A shorter one was never in force.
            ends_at: ends_at.max(set_at + SignedDuration::from_secs(1)),
            by: self.author.by.to_string(),
            why: self.author.why.clone(),
            before: begin.and(replaces).and_then(|known| known.to_remember(now)),
        };
        Ok(Change { one, replaces: replaces.cloned(), clears: false })
    }
}

/// Whether an override begins later than now. The edge of one that begins now may be a moment later.
pub(super) fn begins_later(one: &Override, now: Timestamp) -> bool {
    one.set_at > latest_edge(now)
}

/// Works out the changes that end these overrides later.
pub(super) fn extended(
    active: &[Override],
    length: Length,
    author: &Author,
) -> Result<Vec<Change>, UsageError> {
    let extended = |one: &Override| {
        let ends_at = one.ends_at.checked_add(length.duration()).ok()?;
        let why = author.why.clone().or_else(|| one.why.clone());
        let longer = Override { ends_at, by: author.by.to_string(), why, ..one.clone() };
        Some(Change { one: longer, replaces: Some(one.clone()), clears: false })
    };
    let changes = active.iter().map(extended).collect::<Option<_>>();
    changes.ok_or_else(|| UsageError("that is beyond the end of the calendar".to_owned()))
}

/// Works out the changes that end these overrides now.
pub(super) fn cleared(active: &[Override], selected: &Selected, now: Timestamp) -> Vec<Change> {
    let cleared = |one: &Override| {
        let ends_at = edge_at(now, &selected.concerned(&one.target), Some(one));
        let ended = Override { ends_at, ..one.clone() };
        Change { one: ended, replaces: Some(one.clone()), clears: true }
    };
    active.iter().map(cleared).collect()
}

/// Reports whether an override has yet to end.
///
/// The store's clock has whole seconds, so one that ends within this second is over.
pub(super) fn has_not_ended(one: &Override, now: Timestamp) -> bool {
    now.as_second() < one.ends_at.as_second() && one.counts()
}

fn exclusion(record: &Record, in_force: &InForce) -> Option<String> {
    let membership = Membership::of(Subject::recorded(record), &in_force.configuration);
    match (&record.phase, membership) {
        (Phase::Gone { .. }, _) => Some("it is gone at the provider".to_owned()),
        (_, Membership::Excluded(exclusion)) => Some(exclusion.to_string()),
        (_, Membership::Member { .. } | Membership::Unknown { .. } | Membership::Unnamed) => None,
    }
}

impl Selected {
    /// What these overrides concern.
    pub(super) fn overridden(
        overrides: &[Override],
        in_force: InForce,
        records: Vec<Record>,
    ) -> Self {
        let command = CommandTarget::Resources(Vec::new());
        let overridden: Vec<_> = overrides.iter().map(|one| one.target.clone()).collect();
        let mut all = Self { command, overridden, records, in_force };
        let concerned = all.overridden.iter().flat_map(|target| all.concerned(target));
        let concerned: BTreeSet<_> = concerned.map(|record| record.reference.clone()).collect();
        all.records.retain(|record| concerned.contains(&record.reference));
        all
    }

    /// The record of a resource; `None` for a schedule.
    fn record(&self, target: &OverrideTarget) -> Option<&Record> {
        record_of(target, &self.records)
    }

    /// The schedule that a target is, or follows.
    fn rule(&self, target: &OverrideTarget) -> Option<&Rule> {
        let configuration = &self.in_force.configuration;
        match target {
            OverrideTarget::Resource(_) => {
                let subject = Subject::recorded(self.record(target)?);
                let membership = Membership::of(subject, configuration);
                configuration.schedules.get(membership.schedule()?)
            }
            OverrideTarget::Schedule(name) => configuration.schedules.get(name),
        }
    }

    /// The resources that an override of a target concerns.
    fn concerned(&self, target: &OverrideTarget) -> Vec<&Record> {
        let OverrideTarget::Schedule(name) = target else {
            return self.record(target).into_iter().collect();
        };
        let follows = |record: &&Record| {
            let subject = Subject::recorded(record);
            let membership = Membership::of(subject, &self.in_force.configuration);
            !matches!(record.phase, Phase::Gone { .. }) && membership.schedule() == Some(name)
        };
        self.records.iter().filter(follows).collect()
    }
}

/// What is in force after the changes, and an instant at which those hold that begin now.
pub(super) fn after(
    changes: &[Change],
    in_force: &InForce,
    now: Timestamp,
) -> (InForce, Timestamp) {
    let all = in_force.overrides.iter().chain(changes.iter().map(|change| &change.one));
    let pauses = in_force.overrides.pauses().cloned();
    let overrides = all.cloned().collect::<Overrides>().with_pauses(pauses);
    let after = InForce { overrides, ..in_force.clone() };
    let begin = changes.iter().map(Change::from).filter(|at| *at <= latest_edge(now));
    (after, begin.fold(now, Timestamp::max))
}

/// Returns what to ask before overrides are set that stop much, or what nothing starts again, or that
/// last long.
pub(super) fn question(
    changes: &[Change],
    selected: &Selected,
    is_whole: bool,
    screen: &Screen,
) -> Option<String> {
    let now = screen.now;
    let end = changes.iter().map(|change| change.one.ends_at).max()?;
    let is_long = end.duration_since(now) > LONG;
    let end = screen.date(end);
    let long = is_long.then(|| format!("Longer than 30 days: until {end}."));
    let (after, _) = after(changes, &selected.in_force, now);
    let is_stopped = |record: &&Record| {
        let subject = Subject::recorded(record);
        let begin = changes.iter().map(Change::from).max().unwrap_or(now).max(now);
        let verdict = judge(record, subject, after.rules(), begin);
        let is_left = matches!(
            verdict.decision,
            Decision::Leave(LeaveReason::Excluded(_) | LeaveReason::Held | LeaveReason::Gone)
        );
        verdict.desired == Some(Desired::Stopped) && !is_left
    };
    let stops = changes.iter().any(|change| change.one.desired == Desired::Stopped);
    let stopped: Vec<_> = selected.records.iter().filter(is_stopped).filter(|_| stops).collect();
    let begin = changes.iter().find(|change| begins_later(&change.one, now));
    let begin = begin.map(|change| format!("from {} ", screen.date(change.one.set_at)));
    let time = format!(" {}until {end}", begin.unwrap_or_default());
    let stops = manual::question(&stopped, &after.configuration, is_whole, &time);
    let Some(long) = long else { return stops };
    Some(format!("{long} {}", stops.as_deref().unwrap_or("Continue?")))
}

/// Returns the instant for an edge that a person makes now: just after everything handled and after
/// the edge of `replaced`, or it would never be the latest.
fn edge_at(now: Timestamp, concerned: &[&Record], replaced: Option<&Override>) -> Timestamp {
    let handled = concerned.iter().filter_map(|record| record.handled.as_ref());
    let earlier = handled.map(|handled| handled.key.instant);
    let earlier = earlier.chain(replaced.map(|one| one.set_at));
    let earlier = earlier.filter(|earlier| *earlier <= latest_edge(now));
    earlier.map(|earlier| earlier + SignedDuration::from_millis(1)).fold(now, Timestamp::max)
}

/// The latest instant of an edge that was made now. One that is further ahead is ignored.
fn latest_edge(now: Timestamp) -> Timestamp {
    now + CLOCKS_DIFFER
}
