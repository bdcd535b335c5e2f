//! What is desired of a resource at an instant, overrides included, and the check that nothing is sent
//! towards the other state.

use domain::{
    ResourceRef, ScheduleName,
    configuration::{Override, OverrideTarget, Rule},
    record::{Cause, Direction},
    schedule::Desired,
};
use jiff::Timestamp;

use super::{
    SLACK, State, evaluator,
    requests::{COMMAND, OBSERVE_AND_SEND},
    rules,
    settled::{CONSIDERED, MOST_LEAD, stands},
    until,
};

impl State {
    /// Returns the overrides of a resource, the strongest first.
    pub(super) fn overrides_of(
        &self,
        reference: &ResourceRef,
        schedule: &ScheduleName,
        rule: &Rule,
    ) -> Vec<Override> {
        let of = |target: OverrideTarget| {
            let one = self.overrides.get(&target);
            // One that begins later remembers what was in its place.
            let before = one.and_then(|one| one.before.as_deref());
            one.into_iter().chain(before).cloned()
        };
        let record = self.records.get(reference);
        let by_tag = record.map(|record| until::recorded(record, rule)).unwrap_or_default();
        let by_command = of(OverrideTarget::Resource(reference.clone()));
        let of_schedule = of(OverrideTarget::Schedule(schedule.clone()));
        let all = by_command.chain(by_tag).chain(of_schedule);
        // One that was called off before it began never stands.
        all.filter(|one| one.set_at < one.ends_at).collect()
    }

    /// Checks that a request of a schedule or an override leads to the state that was desired when it
    /// was permitted, or where it was looked at for it.
    pub(super) fn check_desired(&mut self, resource: &ResourceRef, path: &str) {
        let now = self.time.now();
        let settled = OBSERVE_AND_SEND + SLACK;
        let Some(record) = self.records.get(resource) else {
            return;
        };
        let last = || self.last_of_deleted(record);
        let (Some(transition), Some(state), Some(tracked)) = (
            record.in_flight(),
            self.state_of(resource).or_else(last),
            self.resources.get(resource),
        ) else {
            return;
        };
        let schedule = rules::schedule_of(resource, &state, &self.setup);
        let Some(schedule) = schedule.filter(|name| record.schedule.as_ref() == Some(name)) else {
            return;
        };
        let Some(rule) = self.setup.schedules.get(&schedule) else {
            return;
        };
        let is_recent =
            |at: Option<Timestamp>| at.is_some_and(|at| now.duration_since(at) < settled);
        let is_commanded = matches!(transition.cause, Cause::Manual { .. })
            || tracked.commanded_at.is_some_and(|at| now.duration_since(at) < COMMAND);
        let has_changed = is_recent(Some(self.applied_at))
            || is_recent(self.overridden_at)
            || is_recent(tracked.tagged_at)
            || is_recent(tracked.restored_at);
        if is_commanded || has_changed {
            return;
        }
        let direction = transition.direction;
        // A machine is recreated some time before it has to run.
        let lead = if direction == Direction::Start { MOST_LEAD } else { SLACK };
        let (from, until) = (now - settled, now + lead);
        let overrides = self.overrides_of(resource, &schedule, rule);
        let turns = evaluator::turns(rule.schedule.definition(), from - CONSIDERED, until);
        let ends = overrides.iter().flat_map(|one| [one.set_at, one.ends_at]);
        let instants = turns.iter().map(|(at, _)| *at).chain(ends).chain([from, until]);
        let mut desired = instants
            .filter(|at| (from..=until).contains(at))
            .map(|at| desired_at(&overrides, &turns, at));
        let opposite = match direction.desired() {
            Desired::Running => Desired::Stopped,
            Desired::Stopped => Desired::Running,
        };
        if desired.all(|one| one == Some(opposite)) {
            self.violated(format!("{path} is sent, and {resource} is to be {opposite:?}"));
        }
    }
}

/// Returns what is desired at an instant, by the first override that stands or else by the schedule.
fn desired_at(overrides: &[Override], turns: &[evaluator::Turn], at: Timestamp) -> Option<Desired> {
    let standing = overrides.iter().find(|one| stands(one, at));
    let by_schedule = turns.iter().rev().find(|(turned_at, _)| *turned_at <= at);
    standing.map_or_else(|| by_schedule.and_then(|(_, desired)| *desired), |one| Some(one.desired))
}

#[cfg(test)]
mod tests {
    use domain::record::{EdgeKey, Handled, Phase, Rank, Record, Transition};

    use super::*;
    use crate::observer::tests::{DROPLET, at, observed, record_of};

    /// Returns what is wrong with a stop of the Droplet, sent at an instant.
    fn sent(now: &str, prepare: impl FnOnce(&mut State)) -> String {
        let observer = observed(now);
        let mut state = observer.lock();
        state.applied_at = at("mon 07:00");
        state.observe_all();
        let key = EdgeKey { instant: at("mon 19:00"), rank: Rank::Schedule };
        let transition = Transition {
            target: None,
            method: domain::stop_method::StopMethod::PowerOff,
            forced: false,
            was_running: true,
            direction: Direction::Stop,
            claimed_at: at(now),
            cause: Cause::Schedule,
            schedule: None,
        };
        let record = Record {
            phase: Phase::InFlight { transition },
            handled: Some(Handled {
                generation: domain::configuration::Generation::default(),
                key,
                desired: Some(Desired::Stopped),
                schedule: None,
            }),
            ..record_of(DROPLET)
        };
        let reference = record.reference.clone();
        state.records.insert(reference.clone(), record);
        prepare(&mut state);
        state.check_desired(&reference, "POST /v2/droplets/1/actions");
        state.violation.clone().unwrap_or_default()
    }

    /// Overrides the Droplet to running between two instants.
    fn overridden(from: &str, until: &str) -> impl FnOnce(&mut State) {
        let target = OverrideTarget::Resource(DROPLET.parse().unwrap());
        let one = Override {
            target: target.clone(),
            desired: Desired::Running,
            set_at: at(from),
            ends_at: at(until),
            by: String::new(),
            why: None,
            before: None,
        };
        |state| drop(state.overrides.insert(target, one))
    }

    #[test]
    fn a_stop_is_sent_only_while_stopped_is_desired() {
        assert_eq!(sent("mon 19:01", |_| {}), "");
        assert!(sent("mon 18:00", |_| {}).contains("is to be Running"));
    }

    #[test]
    fn an_override_to_running_keeps_a_stop_back_from_when_it_begins() {
        let overridden = || overridden("mon 20:00", "mon 22:00");
        assert_eq!(sent("mon 19:01", overridden()), "");
        assert!(sent("mon 20:10", overridden()).contains("is to be Running"));
        assert_eq!(sent("mon 22:01", overridden()), "");
    }

    #[test]
    fn an_override_that_was_called_off_is_none() {
        let observer = observed("mon 20:10");
        let mut state = observer.lock();
        let setup = state.setup.clone();
        let (schedule, rule) = setup.schedules.first_key_value().unwrap();
        let droplet = DROPLET.parse().unwrap();
        overridden("mon 20:00", "mon 21:00")(&mut state);
        assert_eq!(state.overrides_of(&droplet, schedule, rule).len(), 1);
        overridden("mon 20:00", "mon 19:00")(&mut state);
        assert_eq!(state.overrides_of(&droplet, schedule, rule).len(), 0);
    }
}
