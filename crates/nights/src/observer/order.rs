//! Checks the order of groups: nothing is begun by its schedule while what goes before it is on its
//! way to the same state, or while the check of a group that runs does not pass.

use std::collections::BTreeMap;

use domain::{
    GroupName, ResourceRef,
    configuration::{Check, Followed, Group, OverrideTarget, Rule},
    record::{Cause, Direction, Ending, Phase, Rank, Record},
    resource::Power,
};
use jiff::{SignedDuration, Timestamp};

use super::{
    SLACK, State,
    requests::OBSERVE_AND_SEND,
    rules,
    settled::{MOST_LEAD, SETTLE_TIME, is_early, wanted_by},
};

/// The longest time from a tick of dispatch to the first request that it leads to.
const HANDED_OUT: SignedDuration = SignedDuration::from_mins(2);

/// A start that ends so soon was on its way from when it was begun, and never stuck.
const SHORT: SignedDuration = SignedDuration::from_mins(5);

type Groups = BTreeMap<GroupName, Group>;

impl State {
    /// Checks that a transition is not begun before what goes first. Resources that a person, an
    /// override or a pause may have changed around the edge are ignored.
    pub(super) fn check_order(&mut self, resource: &ResourceRef, path: &str) {
        let now = self.time.now();
        let groups = &self.setup.settings.groups;
        let Some(record) = self.records.get(resource) else {
            return;
        };
        let Some((transition, handled)) = record.in_flight().zip(record.handled.as_ref()) else {
            return;
        };
        let edge = handled.key.instant;
        let has_just_begun = now.duration_since(transition.claimed_at) < OBSERVE_AND_SEND;
        let by_schedule = handled.key.rank == Rank::Schedule && transition.cause == Cause::Schedule;
        // The shortest wait is over first.
        let shortest = groups.values().map(Group::patience).min().unwrap_or_default();
        let waits = edge <= now && now < edge + shortest - SLACK;
        if !has_just_begun || !by_schedule || !waits || self.applied_at + SETTLE_TIME > edge {
            return;
        }
        let direction = transition.direction;
        let was_tried = record.failing == Some(handled.key);
        let goes_first = |other: &&Record| match direction {
            Direction::Start => follows(groups, resource, &other.reference),
            Direction::Stop => follows(groups, &other.reference, resource),
        };
        let first = self.records.values().filter(goes_first);
        let mut on_its_way = first.filter(|other| self.is_on_its_way(other, direction, edge));
        let overtaken = on_its_way.next().map(|other| other.reference.clone());
        self.count("a member of a group is begun within its wait");
        if let Some(other) = overtaken {
            self.violated(format!(
                "{path} is sent for {resource} before {other}, which goes first"
            ));
        }
        if direction == Direction::Start && !was_tried {
            self.check_checks(resource, edge, path);
        }
    }

    /// Checks that a start is not begun while the check of a group that it follows does not pass.
    fn check_checks(&mut self, resource: &ResourceRef, edge: Timestamp, path: &str) {
        let groups = &self.setup.settings.groups;
        let followed =
            followed(groups, resource).into_iter().filter_map(|followed| match followed {
                Followed::Group(name) => Some((name, &groups[name])),
                Followed::Resource(_) => None,
            });
        let not_passing = followed.filter(|(_, group)| {
            let runs =
                |record: &Record| is_member(group, &record.reference) && self.has_run(record, edge);
            group.check.as_ref().is_some_and(|check| self.has_been_down(check))
                && self.records.values().any(runs)
        });
        let name = not_passing.map(|(name, _)| name.clone()).next();
        self.count("a start is held to the checks before it");
        if let Some(name) = name {
            self.violated(format!("{path} is sent for {resource}, and the check of {name} fails"));
        }
    }

    /// Reports whether an address has not answered since before what is sent now was handed out.
    fn has_been_down(&self, check: &Check) -> bool {
        let now = self.time.now();
        let since = self.addresses.down_since(check, now);
        since.is_some_and(|since| since + HANDED_OUT < now)
    }

    /// Reports whether a resource ran, or was on its way there, when what is sent now was handed out.
    fn has_run(&self, record: &Record, edge: Timestamp) -> bool {
        let is_running = matches!(&record.phase, Phase::Settled { at: Power::Running });
        let before = self.time.now() - HANDED_OUT;
        let waits_or_runs = record.last.as_ref().is_some_and(|last| {
            let is_short = last.finished_at < last.claimed_at + SHORT;
            last.finished_at < before || last.ending == Ending::Seen && is_short
        });
        is_running && waits_or_runs && self.undisturbed(record, Direction::Start, edge).is_some()
    }

    /// Returns the rule that a resource has followed since before an edge of another, for certain.
    fn undisturbed(&self, record: &Record, direction: Direction, edge: Timestamp) -> Option<&Rule> {
        let reference = &record.reference;
        let last = || self.last_of_deleted(record);
        let state = self.state_of(reference).or_else(last)?;
        let schedule = rules::schedule_of(reference, &state, &self.setup)?;
        let rule = self.setup.schedules.get(&schedule)?;
        let tracked = self.resources.get(reference)?;
        let quiet_since = edge - SETTLE_TIME;
        let is_recent = |at: Option<Timestamp>| at.is_some_and(|at| at > quiet_since);
        let targets =
            [OverrideTarget::Resource(reference.clone()), OverrideTarget::Schedule(schedule)];
        let is_overridden = targets
            .iter()
            .any(|target| self.overrides.get(target).is_some_and(|one| one.ends_at > quiet_since));
        let is_disturbed = is_recent(tracked.person_at)
            || is_recent(tracked.commanded_at)
            || is_recent(record.joined_at)
            || tracked.restored_at.is_some()
            || tracked.barred_since.is_some()
            || !tracked.until.is_empty()
            || is_overridden
            || is_recent(self.paused_until(reference, direction))
            || record.held
            || rule.policy.retain_running
            || rule.policy.enforce
            || self.newer.contains_key(reference)
            || self.is_shared(record)
            || !self.is_configured(&reference.account);
        let is_barred = rules::barred(reference, &state, &self.setup);
        (!is_disturbed && !is_barred).then_some(rule)
    }

    /// Reports whether a resource has been on its way to a state since an edge of another, for certain.
    fn is_on_its_way(&self, record: &Record, direction: Direction, edge: Timestamp) -> bool {
        let Some(rule) = self.undisturbed(record, direction, edge) else {
            return false;
        };
        let now = self.time.now();
        let turn = wanted_by(rule, edge);
        let Some((turned_at, Some(desired))) = turn.filter(|_| wanted_by(rule, now) == turn) else {
            return false;
        };
        // A stop that is shorter than its lead is none.
        if direction == Direction::Stop && is_early(record, rule, now) {
            return false;
        }
        // It may have been there, and left again. A start may end some time before its edge.
        let last = record.last.as_ref();
        if last.is_some_and(|last| last.finished_at + MOST_LEAD >= turned_at) {
            return false;
        }
        // What is off already is not waited for while its plan is changed.
        let last_settled = self.resources.get(&record.reference).and_then(|one| one.last_settled);
        if last_settled == Some(direction.target_state()) {
            return false;
        }
        let is_waiting = record.handled.as_ref().is_some_and(|one| one.key.instant < turned_at);
        desired == direction.desired()
            && match &record.phase {
                Phase::InFlight { transition } => {
                    transition.direction == direction && transition.claimed_at >= turned_at
                }
                Phase::Settled { .. } => is_waiting,
                Phase::Stuck { .. } | Phase::Refused { .. } | Phase::Gone { .. } => false,
            }
    }
}

/// Reports whether one resource follows another, by itself or through groups between them.
fn follows(groups: &Groups, later: &ResourceRef, earlier: &ResourceRef) -> bool {
    followed(groups, later).into_iter().any(|followed| match followed {
        Followed::Group(name) => is_member(&groups[name], earlier),
        Followed::Resource(resource) => resource == earlier,
    })
}

/// Returns everything that a resource follows, by itself or through groups between them.
fn followed<'a>(groups: &'a Groups, later: &ResourceRef) -> Vec<&'a Followed> {
    let with = |reference: &ResourceRef| -> Vec<&Group> {
        groups.values().filter(|group| is_member(group, reference)).collect()
    };
    let (mut open, mut all) = (with(later), Vec::new());
    while let Some(group) = open.pop() {
        for followed in &group.after {
            match followed {
                Followed::Group(name) => open.push(&groups[name]),
                Followed::Resource(resource) => open.extend(with(resource)),
            }
            all.push(followed);
        }
    }
    all
}

/// Reports whether a group lists a resource. Nights only have patterns of kinds: `*/droplet/*`.
fn is_member(group: &Group, reference: &ResourceRef) -> bool {
    let kind = format!("*/{}/*", reference.kind());
    group.resources.iter().any(|pattern| pattern.to_string() == kind)
}
