//! What holds once faults have ended, and everything has had the time to settle.

use domain::{
    ResourceKind, ResourceRef,
    configuration::{Override, Rule, Target},
    record::{Phase, Record},
    resource::Power,
    schedule::Desired,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{State, Whole, rules};

/// Everything settles within so many ticks: the longest watch-out, which is a database's, with the
/// permit before it and a refused start's next try after it.
const TICKS: SignedDuration = SignedDuration::from_mins(75);

impl State {
    pub(super) fn check_settled(&mut self) {
        let now = self.time.now();
        let records: Vec<_> = self.records.values().cloned().collect();
        for record in &records {
            let Some(state) = self.simulator.resource(&record.reference) else {
                continue;
            };
            if let Some(problem) = self.not_settled(record, &state, now) {
                self.violated(format!("{}: {problem}", record.reference));
            }
        }
        for (reference, _) in self.simulator.resources() {
            self.check_known(&reference, now);
        }
        self.check_explained(now);
    }

    /// What is there has a record, but for what belongs to something else.
    fn check_known(&mut self, reference: &str, now: Timestamp) {
        let Ok(reference) = reference.parse::<ResourceRef>() else {
            return;
        };
        let is_worker = self
            .simulator
            .resource(&reference)
            .is_some_and(|state| !state["worker_of"].is_null());
        let watched = self.resources.get(&reference);
        let is_new = watched
            .and_then(|watched| watched.person_at)
            .is_some_and(|at| now.duration_since(at) < TICKS);
        if !is_worker && !is_new && !self.records.contains_key(&reference) {
            self.violated(format!("{reference} has no record"));
        }
    }

    /// What the clouds took is in history, or of a transition that has not ended.
    fn check_explained(&mut self, now: Timestamp) {
        let mut missing = None;
        for taken in &self.unexplained {
            let ended = self
                .records
                .get(&taken.resource)
                .is_some_and(|record| matches!(record.phase, Phase::Settled { .. }));
            if ended && now.duration_since(taken.at) > TICKS {
                missing = Some(taken.clone());
            }
        }
        if let Some(taken) = missing {
            let (at, what) = (taken.at, taken.described);
            self.violated(format!(
                "history does not show {what}, which was taken at {at}"
            ));
        }
    }

    /// Why a resource is not where it should be.
    fn not_settled(&self, record: &Record, state: &Value, now: Timestamp) -> Option<String> {
        let reference = &record.reference;
        let schedule = rules::schedule_of(reference, state, &self.setup)?;
        let rule = self.setup.schedules.get(&schedule)?;
        if rules::barred(reference, state, &self.setup) {
            return None;
        }
        let (desired, since) = self.desired(reference, &schedule, rule, now)?;
        let watched = self.resources.get(reference)?;
        let by_person = watched.person_at.max(watched.commanded_at);
        let left_alone = by_person.is_some_and(|at| at + TICKS > since);
        let retained = watched.retained && desired == Desired::Stopped;
        let since = since
            .max(self.applied_at)
            .max(record.joined_at.unwrap_or(now));
        if left_alone || now.duration_since(since) < TICKS || record.held || retained {
            return None;
        }
        if record.handled.is_none() {
            return Some(format!(
                "nothing was ever handled, and it should be {desired:?}"
            ));
        }
        let needs_a_person = matches!(record.phase, Phase::Stuck { .. } | Phase::Refused { .. })
            || record
                .request
                .as_ref()
                .is_some_and(|request| request.problem.is_some());
        if needs_a_person {
            return None;
        }
        let is_there = match desired {
            // A pool that a person has emptied has no size to go back to.
            Desired::Running if watched.owed.is_none() && record.saved.is_none() => {
                runs(reference, state) || reference.kind() == ResourceKind::NodePool
            }
            Desired::Running => runs(reference, state) && self.is_whole(reference, state),
            Desired::Stopped => {
                matches!(record.phase, Phase::Settled { at: Power::Stopped })
                    && (reference.kind() == ResourceKind::Database || !runs(reference, state))
            }
        };
        (!is_there).then(|| {
            let phase = crate::trace::record_in_a_line(record);
            format!("should be {desired:?} since {since}; {phase}; {state}")
        })
    }

    fn is_whole(&self, reference: &ResourceRef, state: &Value) -> bool {
        let owed = self
            .resources
            .get(reference)
            .and_then(|watched| watched.owed.as_ref());
        owed.is_none_or(|owed| Whole::of(reference, state).is_none_or(|now| now.covers(owed)))
    }

    /// What is desired, and since when at the latest.
    fn desired(
        &self,
        reference: &ResourceRef,
        schedule: &domain::ScheduleName,
        rule: &Rule,
        now: Timestamp,
    ) -> Option<(Desired, Timestamp)> {
        let of = |target: Target| self.overrides.get(&target);
        let overrides = [
            of(Target::Resource(reference.clone())),
            of(Target::Schedule(schedule.clone())),
        ];
        let edge = rule.schedule.latest_edge(now);
        let active = overrides
            .into_iter()
            .flatten()
            .find(|one| one.is_active(now));
        let desired = match active {
            Some(one) => Some(one.desired),
            None => edge.desired,
        }?;
        // The end of an override is an edge only where the desired state changes.
        let turns = |one: &Override| {
            let end = (one.desired != desired).then_some(one.ends_at);
            [Some(one.set_at), end]
        };
        let turns = overrides.into_iter().flatten().flat_map(turns).flatten();
        let latest_turn = turns.filter(|at| *at <= now).max();
        let since = edge.since.max(latest_turn)?;
        Some((desired, since))
    }
}

fn runs(reference: &ResourceRef, state: &Value) -> bool {
    match reference.kind() {
        ResourceKind::Droplet => state["powered"] == true,
        ResourceKind::Server => state["status"] == "running",
        ResourceKind::NodePool => state["count"] != 0,
        ResourceKind::Database | ResourceKind::Machine => true,
    }
}
