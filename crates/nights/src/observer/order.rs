//! Checks the order of groups: nothing is begun by its schedule while what goes before it is on its
//! way to the same state.

use std::collections::BTreeMap;

use domain::{
    GroupName, ResourceRef,
    configuration::{Followed, Group, OverrideTarget},
    record::{Cause, Direction, Phase, Rank, Record},
};
use jiff::Timestamp;

use super::{
    SLACK, State,
    requests::OBSERVE_AND_SEND,
    rules,
    settled::{MOST_LEAD, SETTLE_TIME, is_early, wanted_by},
};

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
    }

    /// Reports whether a resource has been on its way to a state since an edge of another, for certain.
    fn is_on_its_way(&self, record: &Record, direction: Direction, edge: Timestamp) -> bool {
        let (reference, now) = (&record.reference, self.time.now());
        let last = || self.last_of_deleted(record);
        let Some(state) = self.state_of(reference).or_else(last) else {
            return false;
        };
        let schedule = rules::schedule_of(reference, &state, &self.setup);
        let rule = schedule.as_ref().and_then(|name| self.setup.schedules.get(name));
        let (Some(tracked), Some(schedule), Some(rule)) =
            (self.resources.get(reference), schedule, rule)
        else {
            return false;
        };
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
        if is_disturbed || rules::barred(reference, &state, &self.setup) {
            return false;
        }
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
        let is_waiting = record.handled.as_ref().is_some_and(|one| one.key.instant < turned_at);
        desired == direction.desired()
            && match &record.phase {
                Phase::InFlight { transition } => {
                    transition.direction == direction && transition.claimed_at >= turned_at
                }
                Phase::Settled { at } => is_waiting && *at != direction.target_state(),
                Phase::Stuck { .. } | Phase::Refused { .. } | Phase::Gone { .. } => false,
            }
    }
}

/// Reports whether one resource follows another, by itself or through groups between them.
fn follows(groups: &Groups, later: &ResourceRef, earlier: &ResourceRef) -> bool {
    let with = |reference: &ResourceRef| -> Vec<&Group> {
        groups.values().filter(|group| is_member(group, reference)).collect()
    };
    let mut open = with(later);
    while let Some(group) = open.pop() {
        for followed in &group.after {
            match followed {
                Followed::Group(name) if is_member(&groups[name], earlier) => return true,
                Followed::Group(name) => open.push(&groups[name]),
                Followed::Resource(resource) if resource == earlier => return true,
                Followed::Resource(resource) => open.extend(with(resource)),
            }
        }
    }
    false
}

/// Reports whether a group lists a resource. Nights only have patterns of kinds: `*/droplet/*`.
fn is_member(group: &Group, reference: &ResourceRef) -> bool {
    let kind = format!("*/{}/*", reference.kind());
    group.resources.iter().any(|pattern| pattern.to_string() == kind)
}
