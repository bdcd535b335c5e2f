//! The checks that apply once faults have ended and everything has had time to settle.

use std::sync::Arc;

use domain::{
    ResourceKind, ResourceRef, ScheduleName,
    configuration::{
        Adopt, DropletMethod, Override, OverrideTarget, Overrides, Rule, ServerMethod,
    },
    left_behind::left_behind,
    record::{Cause, Direction, Ending, Phase, Record},
    resource::Power,
    schedule::Desired,
};
use environment::Metric;
use jiff::{SignedDuration, Timestamp};
use lifecycle::report::health::Health;
use serde_json::Value;
use store::InForce;

use super::{
    ResourceSize, SLACK, State, TrackedResource,
    disks::does_not_boot,
    evaluator::{self, Turn},
    history::had_no_standby,
    rules,
    size::plan_of,
};
use crate::night::Setup;

/// The time within which everything settles: the longest watch-out, which is a database's, with the
/// permit before it and the retry of a refused start after it.
pub(super) const SETTLE_TIME: SignedDuration = SignedDuration::from_mins(75);

/// The most time before its edge that a start may begin.
pub(super) const MOST_LEAD: SignedDuration = SignedDuration::from_hours(1);

/// How far back the latest edge of a schedule is looked for: longer than any night.
pub(super) const CONSIDERED: SignedDuration = SignedDuration::from_hours(20 * 24);

/// What needs a person. A pause and a stop that is in order are counted as well, and need none.
const NEEDS_A_PERSON: [Metric; 7] = [
    Metric::Failed,
    Metric::Overdue,
    Metric::Refused,
    Metric::Stuck,
    Metric::Held,
    Metric::Orphaned,
    Metric::Conflicts,
];

/// Returns the time within which a resource settles. A machine may have to move to another host
/// with its disk, which takes longer the larger the disk is.
fn settle_time(state: &Value) -> SignedDuration {
    let disk = plan_of(state).and(state["disk"].as_i64());
    SETTLE_TIME + SignedDuration::from_mins(disk.unwrap_or_default())
}

impl State {
    pub(super) fn check_settled(&mut self) {
        let now = self.time.now();
        let records: Vec<_> = self.records.values().cloned().collect();
        let is_away = |record: &&Record| self.away.contains_key(&record.reference.account);
        let (away, records): (Vec<_>, Vec<_>) = records.iter().partition(is_away);
        for record in away {
            self.check_away(record, now);
        }
        for record in records {
            if self.is_shared(record) {
                self.check_shared_reported(record, now);
                continue;
            }
            self.check_without(record, now);
            self.check_held(record);
            self.check_back(record);
            let last = || self.last_of_deleted(record);
            let Some(state) = self.state_of(&record.reference).or_else(last) else {
                self.check_lost(record, now);
                continue;
            };
            let problem = self.not_settled(record, &state, now);
            if let Some(problem) = problem.or_else(|| self.left_stopped(record, &state, now)) {
                self.violated(format!("{}: {problem}", record.reference));
            }
        }
        for (reference, _) in self.simulator.resources() {
            self.check_known(&reference, now);
        }
        self.check_machines_known(now);
        self.check_explained(now);
    }

    /// Checks that newcomers are held only where each of them is.
    fn check_held(&mut self, record: &Record) {
        if record.held {
            self.count("a newcomer is held at an inspection");
        }
        if record.held && self.setup.settings.max_new > 20 {
            self.violated(format!("{} is held, and few have joined", record.reference));
        }
    }

    /// Checks that status names what is not whole in an account that is not configured: a machine
    /// that only its snapshots hold, and a size that is owed.
    fn check_away(&mut self, record: &Record, now: Timestamp) {
        let reference = &record.reference;
        let owed = self.resources.get(reference).is_some_and(|tracked| tracked.owed.is_some());
        let asleep = self.state_of(reference).is_none() && self.last_of_deleted(record).is_some();
        let in_force = self.in_force();
        if (owed || asleep) && left_behind(record, in_force.rules(), now).is_none() {
            self.violated(format!("{reference} is not whole, and nothing says so"));
        }
    }

    /// Returns what is in force, for what the service says about a record.
    fn in_force(&self) -> InForce {
        let pauses = self.pauses.values().cloned();
        InForce {
            configuration: Arc::new(self.setup.after(self.generation)),
            overrides: self.overrides.values().cloned().collect::<Overrides>().with_pauses(pauses),
            since: Some(self.applied_at),
        }
    }

    /// Reports whether the record of a resource counts as one that needs a person: status shows it,
    /// and an alarm reports it.
    pub(super) fn is_reported(&self, record: &Record, now: Timestamp) -> bool {
        let mut health = Health::default();
        health.count(record, &self.in_force(), now);
        NEEDS_A_PERSON.iter().any(|metric| health.gauge(*metric) > 0)
    }

    /// Checks that every resource has a record, except for what belongs to something else.
    pub(super) fn check_known(&mut self, reference: &str, now: Timestamp) {
        let Ok(reference) = reference.parse::<ResourceRef>() else {
            return;
        };
        let is_worker =
            self.state_of(&reference).is_some_and(|state| !state["worker_of"].is_null());
        let reference = self.original(reference);
        let tracked = self.resources.get(&reference);
        let is_new = tracked
            .and_then(|tracked| tracked.person_at)
            .is_some_and(|at| now.duration_since(at) < SETTLE_TIME);
        let is_away = self.away.contains_key(&reference.account);
        let is_new = is_new || is_away || now.duration_since(self.applied_at) < SETTLE_TIME;
        // A list that shows nothing of what was there before is not believed, and a person is told.
        let account = self.accounts.get(reference.account.as_str());
        let is_doubted = account.is_some_and(|account| account.has_error);
        if !is_worker && !is_new && !is_doubted && !self.records.contains_key(&reference) {
            self.violated(format!("{reference} has no record"));
        }
    }

    /// Checks that what the clouds accepted is in history, or belongs to an unfinished transition.
    fn check_explained(&mut self, now: Timestamp) {
        let mut missing = None;
        for change in &self.unexplained {
            let ended = self
                .records
                .get(&change.resource)
                .is_some_and(|record| matches!(record.phase, Phase::Settled { .. }));
            if ended && now.duration_since(change.at) > SETTLE_TIME {
                missing = Some(change.clone());
            }
        }
        if let Some(change) = missing {
            let (at, what) = (change.at, change.described);
            self.violated(format!("history does not show {what}, which was taken at {at}"));
        }
    }

    /// Reports whether `retain_running` left a resource running: that of its schedule, or of another
    /// one that it followed in the same state.
    fn is_retained(&self, record: &Record, schedule: &ScheduleName) -> bool {
        let of = record.handled.as_ref().and_then(|handled| handled.schedule.as_ref());
        let retains = |setup: &Setup| {
            let rules = [Some(schedule), of].into_iter().flatten();
            let mut rules = rules.filter_map(|name| setup.schedules.get(name));
            rules.any(|rule| rule.policy.retain_running)
        };
        let tracked = self.resources.get(&record.reference);
        tracked.is_some_and(|tracked| tracked.retained)
            && (retains(&self.setup) || retains(&self.before))
    }

    /// Reports whether it may run before its next start. A start of this hour may have been early by a
    /// lead that is shorter since.
    fn runs_early(&self, record: &Record, rule: &Rule, now: Timestamp) -> bool {
        let start = self
            .history
            .get(&record.reference)
            .filter(|entry| entry.direction == Direction::Start && entry.ending == Ending::Seen);
        let latest = start.map(|entry| entry.claimed_at + MOST_LEAD).filter(|at| now < *at);
        is_early(record, rule, now) || latest.is_some_and(|latest| runs_at(rule, latest))
    }

    /// Reports whether an earlier configuration could take nothing from a database. Another one takes
    /// nothing before its next stop.
    fn took_nothing(&self, record: &Record, state: &Value) -> bool {
        let is_database = record.reference.kind() == ResourceKind::Database;
        record.last.as_ref().filter(|_| is_database).is_some_and(|last| {
            let was_whole =
                last.ending == Ending::AlreadyThere || had_no_standby(last.method, record, state);
            was_whole && last.finished_at < self.applied_at
        })
    }

    /// Returns why a resource is not where it should be. `None` if nothing is wrong.
    fn not_settled(&self, record: &Record, state: &Value, now: Timestamp) -> Option<String> {
        let reference = &record.reference;
        let schedule = rules::schedule_of(reference, state, &self.setup)?;
        let rule = self.setup.schedules.get(&schedule)?;
        if rules::barred(reference, state, &self.setup) {
            return None;
        }
        // A list that is not believed shows no tag either, and its account is reported.
        let account = self.accounts.get(reference.account.as_str());
        let is_doubted = account.is_some_and(|account| account.has_error);
        if !is_doubted && let Some(difference) = self.until_differs(record, now) {
            return Some(difference);
        }
        let (desired, since) = self.desired(reference, &schedule, rule, now)?;
        if desired == Desired::Stopped && self.runs_early(record, rule, now) {
            return None;
        }
        let settle_time = settle_time(state);
        let joined_at = record.joined_at.unwrap_or(now);
        if rule.policy.adopt == Adopt::NextEdge && record.handled.is_none() && since <= joined_at {
            return None;
        }
        let tracked = self.resources.get(reference)?;
        let direction = Direction::towards(desired);
        let handled_from = self.handled_from(reference, direction, since);
        // A machine whose silence means off seems to be started by a person when it answers again.
        let heard_again = tracked.cut_off_at.filter(|_| self.silence_means_off(reference));
        let by_person = tracked.person_at.max(heard_again).max(tracked.misread_at);
        // A command counts from when it was given, also where a pause puts off an earlier edge.
        let left_alone = by_person.is_some_and(|at| at + settle_time > handled_from)
            || tracked.commanded_at.is_some_and(|at| at + settle_time > since);
        let retained = desired == Desired::Stopped && self.is_retained(record, &schedule);
        let edge = since;
        let restored_at = tracked.restored_at.unwrap_or(since);
        let paused_until = self.paused_until(reference, direction).unwrap_or(since);
        let since = since.max(self.applied_at).max(joined_at).max(restored_at).max(paused_until);
        if left_alone || now.duration_since(since) < settle_time || record.held || retained {
            return None;
        }
        // An action that never ends keeps a machine busy at its cloud.
        let is_busy = !state["action"].is_null();
        let is_stuck = matches!(record.phase, Phase::Stuck { .. } | Phase::Refused { .. })
            || record.request.as_ref().is_some_and(|request| request.problem.is_some());
        let needs_a_person = is_stuck || tracked.has_older(record);
        if record.handled.is_none() && !is_busy && !needs_a_person {
            return Some(format!("nothing was ever handled, and it should be {desired:?}"));
        }
        let is_there = self.state_of(reference).is_some();
        let is_off = !(is_there && runs(reference, state));
        let line = || crate::trace::record_in_a_line(record);
        let left_off = tracked.moved_at.is_some_and(|at| at + settle_time < now);
        let by_other = tracked.powered_at.is_some_and(|at| tracked.moved_at <= Some(at));
        let is_moved = is_there && is_off && left_off && !does_not_boot(state);
        if desired == Desired::Running && is_moved && !by_other && !is_busy {
            return Some(format!("a start has switched it off, and left it so: {}", line()));
        }
        if (needs_a_person || is_busy && is_off && desired == Desired::Running)
            && !self.is_reported(record, now)
        {
            return Some(format!("it needs a person, and nothing reports it: {}", line()));
        }
        if is_stuck && !is_busy && !self.has_cause(record, state, rule, edge) {
            return Some(format!("nothing keeps it from its end: {}; {state}", line()));
        }
        if needs_a_person || is_busy || self.is_left_running(record, tracked) {
            return None;
        }
        // It was seen running, and what it does after that does not matter.
        let is_settled = matches!(record.phase, Phase::Settled { .. });
        let started = self.history.get(reference).is_some_and(|entry| {
            let is_start = entry.direction == Direction::Start && entry.ending == Ending::Seen;
            // A start may begin, and end, some time before its edge.
            is_start && entry.finished_at + SETTLE_TIME >= edge
        });
        let ran = does_not_boot(state) && is_settled && started;
        let is_settled = match desired {
            // A pool that a person has emptied has no size to go back to.
            Desired::Running if tracked.owed.is_none() && record.saved.is_none() => {
                let restored = self.is_restored(reference, state);
                is_there && (ran || runs(reference, state)) && restored
                    || reference.kind() == ResourceKind::NodePool
            }
            Desired::Running => {
                let restored = self.is_restored(reference, state);
                is_there
                    && (ran || runs(reference, state))
                    && (restored || self.is_said_to_be_small(record, edge))
            }
            Desired::Stopped => {
                let small = plan_of(state).is_some_and(|plan| tracked.small.contains(plan));
                let off = !is_there || !runs(reference, state) || small && record.small_runs;
                let is_shrunk = || {
                    let size = ResourceSize::of(reference, state);
                    size.is_some_and(|size| size.is_shrunk(tracked.owed.as_ref(), &rule.policy))
                };
                // What was for sale at the edge, and what was configured then, is known only if
                // neither has changed since.
                let before = edge - SETTLE_TIME;
                let known = self.offered_at < before && self.applied_at < before;
                let must_shrink = known && rules::must_shrink(reference, state, rule, &self.setup);
                // A machine that sleeps was stopped by another method.
                matches!(record.phase, Phase::Settled { at: Power::Stopped })
                    && (off || self.took_nothing(record, state) || is_shrunk())
                    && (small || !is_there || !must_shrink)
            }
        };
        (!is_settled).then(|| format!("should be {desired:?} since {since}; {}; {state}", line()))
    }

    /// Returns what is wrong with a resource that a schedule stopped and that nothing may start again;
    /// `None` if it is reported.
    fn left_stopped(&self, record: &Record, state: &Value, now: Timestamp) -> Option<String> {
        let reference = &record.reference;
        let tracked = self.resources.get(reference)?;
        let barred_since = tracked.barred_since?;
        let stop = self.history.get(reference).filter(|entry| {
            entry.direction == Direction::Stop
                && entry.ending == Ending::Seen
                && entry.cause == Cause::Schedule
        })?;
        // A pool that a person has emptied has no size to go back to.
        let is_pool = reference.kind() == ResourceKind::NodePool;
        if is_pool && tracked.owed.is_none() && record.saved.is_none() {
            return None;
        }
        let schedule = rules::schedule_of(reference, state, &self.setup);
        let rule = schedule.as_ref().and_then(|name| Some((name, self.setup.schedules.get(name)?)));
        let is_stopped_by_command = |since| {
            let command = record.manual_command.as_ref();
            command.is_some_and(|one| one.desired == Desired::Stopped && one.instant >= since)
        };
        let should_run = match rule.filter(|_| !rules::is_excluded(state, &self.setup)) {
            // It is observed: what it misses is its next start.
            Some((name, rule)) => {
                let desired = self.desired(reference, name, rule, now);
                desired.is_some_and(|(desired, since)| {
                    let is_due = desired == Desired::Running && since + SETTLE_TIME < now;
                    is_due && !is_stopped_by_command(since)
                })
            }
            None => true,
        };
        let own = self.overrides.get(&OverrideTarget::Resource(reference.clone()));
        let is_overridden =
            own.is_some_and(|one| one.set_at <= now && one.ends_at + SETTLE_TIME > now);
        let is_settled = [Some(barred_since), tracked.restored_at, tracked.commanded_at]
            .into_iter()
            .flatten()
            .chain([self.applied_at])
            .all(|at| at + SETTLE_TIME < now);
        let by_person = tracked.powered_at.is_some_and(|at| at + SETTLE_TIME > stop.claimed_at);
        // What a person has stopped again under no schedule is meant to stay off, unless it is owed a
        // size.
        let by_command = tracked.owed.is_none() && is_stopped_by_command(barred_since);
        let account = self.accounts.get(reference.account.as_str());
        let is_doubted = account.is_some_and(|account| account.has_error);
        let is_off = self.state_of(reference).is_none() || !runs(reference, state);
        let is_left =
            is_off && should_run && is_settled && !by_person && !by_command && !is_overridden;
        let is_read = !is_doubted && !self.newer.contains_key(reference);
        (is_left && is_read && !self.is_reported(record, now)).then(|| {
            let phase = crate::trace::record_in_a_line(record);
            format!("it was stopped, must not be touched, and nothing reports it: {phase}; {state}")
        })
    }

    fn is_restored(&self, reference: &ResourceRef, state: &Value) -> bool {
        let tracked = self.resources.get(reference);
        let owed = tracked.and_then(|tracked| Some((tracked, tracked.owed.as_ref()?)));
        let Some((tracked, owed)) = owed else {
            return true;
        };
        ResourceSize::of(reference, state).is_none_or(|now| tracked.will_do(&now, owed))
    }

    /// Reports whether history says that a machine was started on its small plan, or its record that
    /// a start left it running there, and its cloud or a person may have been the reason.
    fn is_said_to_be_small(&self, record: &Record, edge: Timestamp) -> bool {
        let entry = self.history.get(&record.reference);
        let started = entry.is_some_and(|entry| entry.reason.is_some());
        let last = record.last.as_ref().map(|last| last.ending);
        let tracked = self.resources.get(&record.reference);
        let begun = edge - MOST_LEAD - SETTLE_TIME;
        let is_machine = record.reference.kind() != ResourceKind::Database;
        let had_no_plan = is_machine && self.offered_at > Timestamp::MIN
            || tracked.is_some_and(|tracked| {
                let is_recent = |at: Option<Timestamp>| at.is_some_and(|at| at > begun);
                tracked.had_no_room || is_recent(tracked.refused_at) || is_recent(tracked.person_at)
            });
        let is_said = started || last == Some(Ending::AlreadyThere);
        record.saved.is_some() && is_said && had_no_plan
    }

    /// Reports whether anything may keep a resource from the end of its transition. What becomes of a
    /// machine that is moved or hibernated depends on more than is known here.
    fn has_cause(&self, record: &Record, state: &Value, rule: &Rule, edge: Timestamp) -> bool {
        let reference = &record.reference;
        let Some(tracked) = self.resources.get(reference) else {
            return true;
        };
        let (droplet, server) = (rule.policy.methods.droplet, rule.policy.methods.server);
        let is_simple = match reference.kind() {
            ResourceKind::Droplet => droplet == DropletMethod::PowerOff,
            ResourceKind::Server => server == ServerMethod::PowerOff,
            ResourceKind::NodePool => true,
            ResourceKind::Database | ResourceKind::Machine => false,
        };
        let is_moved = record.hibernation.is_some() || tracked.owed.is_some() && is_machine(state);
        let since = edge.min(record.transition().map_or(edge, |one| one.claimed_at));
        let was_refused = tracked.refused_at.is_some_and(|at| at + SLACK >= since);
        let was_busy = tracked.busied_at.is_some_and(|at| at + SETTLE_TIME > since);
        let is_deaf = state["ignores_shutdown"] == true && !rule.policy.force;
        let has_changed = self.applied_at > since;
        !is_simple
            || is_moved
            || was_refused
            || was_busy
            || is_deaf
            || has_changed
            || does_not_boot(state)
    }

    /// Reports whether the latest stop came too late to be worth it, and the start that it came too
    /// close to was put off since.
    fn is_left_running(&self, record: &Record, tracked: &TrackedResource) -> bool {
        let last = record.last.as_ref().zip(record.handled.as_ref());
        let left = last.filter(|(last, handled)| last.key == handled.key);
        let left = left.filter(|(last, _)| last.ending == Ending::TooLate);
        let Some((last, _)) = left.filter(|_| record.kind().is_sized()) else {
            return false;
        };
        let mut overrides = self.overrides.values();
        overrides.any(|one| one.set_at > last.finished_at || one.ends_at > last.finished_at)
            || self.applied_at > last.finished_at
            || !tracked.until.is_empty()
    }

    /// Returns the desired state and since when it has applied, at the latest.
    fn desired(
        &self,
        reference: &ResourceRef,
        schedule: &domain::ScheduleName,
        rule: &Rule,
        now: Timestamp,
    ) -> Option<(Desired, Timestamp)> {
        let record = self.records.get(reference);
        let overrides = self.overrides_of(reference, schedule, rule);
        let (edge_at, by_schedule) = wanted_by(rule, now)?;
        let active = overrides.iter().find(|one| stands(one, now));
        let desired = match active {
            Some(one) => Some(one.desired),
            None => by_schedule,
        }?;
        // The end of an override is an edge only where the desired state changes.
        // What a stronger override covers is no edge.
        let turns = |(place, one): (usize, &Override)| {
            let end = (one.desired != desired).then_some(one.ends_at);
            let stronger = &overrides[..place];
            let is_seen = |at: &Timestamp| !stronger.iter().any(|other| stands(other, *at));
            [Some(one.set_at), end].map(|at| at.filter(is_seen))
        };
        let turns = overrides.iter().enumerate().flat_map(turns).flatten();
        let latest_turn = turns.filter(|at| *at <= now).max();
        // An edge of the schedule changes nothing while an override stands, and a start none that
        // begins before such an override has ended.
        let lead = record.and_then(most_lead).unwrap_or_default();
        let leads = |one: &Override| {
            let starts = [Some(one.desired), by_schedule] == [Some(Desired::Running); 2];
            starts && one.set_at <= edge_at && edge_at <= one.ends_at + lead
        };
        let is_masked = overrides.iter().any(|one| stands(one, edge_at) || leads(one));
        let edge_at = (!is_masked).then_some(edge_at);
        let since = edge_at.max(latest_turn)?;
        Some((desired, since))
    }
}

fn is_machine(state: &Value) -> bool {
    plan_of(state).is_some()
}

/// Reports whether it is time to recreate a machine for an upcoming start.
pub(super) fn is_early(record: &Record, rule: &Rule, now: Timestamp) -> bool {
    most_lead(record).is_some_and(|lead| runs_at(rule, now + lead))
}

fn runs_at(rule: &Rule, at: Timestamp) -> bool {
    wanted_by(rule, at).is_some_and(|(_, desired)| desired == Some(Desired::Running))
}

/// Returns how long before its edge the next start may begin.
fn most_lead(record: &Record) -> Option<SignedDuration> {
    let kept = record.hibernation.as_deref();
    Some(kept?.lead?.min(MOST_LEAD))
}

/// Returns what a schedule wants at an instant, and since when: at least since the beginning of the
/// time that is considered.
pub(super) fn wanted_by(rule: &Rule, at: Timestamp) -> Option<Turn> {
    evaluator::turns(rule.schedule.definition(), at - CONSIDERED, at).pop()
}

/// Reports whether an override is in force at an instant.
pub(super) fn stands(one: &Override, at: Timestamp) -> bool {
    one.set_at <= at && at < one.ends_at
}

pub(super) fn runs(reference: &ResourceRef, state: &Value) -> bool {
    match reference.kind() {
        ResourceKind::Droplet => state["powered"] == true,
        ResourceKind::Server | ResourceKind::Machine => state["status"] == "running",
        ResourceKind::NodePool => state["count"] != 0,
        ResourceKind::Database => true,
    }
}

#[cfg(test)]
mod tests {
    use domain::record::{EdgeKey, Handled, Last, Rank, Transition};

    use super::*;
    use crate::observer::tests::{DATABASE, DROPLET, at, observed, record_of};

    #[test]
    fn a_stop_that_is_in_order_is_no_report() {
        let observer = observed("mon 22:00");
        let state = observer.lock();
        let mut record = record_of(DROPLET);
        record.phase = Phase::Settled { at: Power::Stopped };
        let mut health = Health::default();
        health.count(&record, &state.in_force(), at("mon 22:00"));
        assert_eq!(health.gauge(Metric::Stopped), 1);
        assert!(!state.is_reported(&record, at("mon 22:00")));
    }

    fn stuck() -> Record {
        let transition = Transition {
            target: None,
            method: domain::stop_method::StopMethod::PowerOff,
            forced: false,
            was_running: false,
            direction: Direction::Stop,
            claimed_at: at("mon 19:00"),
            cause: Cause::Schedule,
            schedule: None,
        };
        Record {
            phase: Phase::Stuck { transition, since: at("mon 19:10"), reason: String::new() },
            handled: Some(handled("mon 19:00")),
            joined_at: Some(at("mon 07:00")),
            ..record_of(DROPLET)
        }
    }

    fn handled(edge: &str) -> Handled {
        Handled {
            generation: domain::configuration::Generation::default(),
            key: EdgeKey { instant: at(edge), rank: Rank::Schedule },
            desired: Some(Desired::Stopped),
            schedule: None,
        }
    }

    /// Returns what an inspection in the night finds about a record.
    fn inspected(record: &Record, prepare: impl FnOnce(&mut State)) -> String {
        let observer = observed("tue 03:00");
        let mut state = observer.lock();
        state.applied_at = at("mon 07:00");
        state.observe_all();
        let reference = record.reference.clone();
        state.tracked(&reference).person_at = Some(at("mon 07:00"));
        state.records.insert(reference.clone(), record.clone());
        prepare(&mut state);
        let shown = state.state_of(&reference).unwrap();
        state.not_settled(record, &shown, at("tue 03:00")).unwrap_or_default()
    }

    #[test]
    fn what_is_stuck_is_reported() {
        let observer = observed("mon 22:00");
        assert!(observer.lock().is_reported(&stuck(), at("mon 22:00")));
    }

    #[test]
    fn a_stop_is_stuck_only_for_a_cause() {
        let found = inspected(&stuck(), |_| {});
        assert!(found.contains("nothing keeps it from its end"), "{found}");
        let refused = |state: &mut State| {
            state.tracked(&stuck().reference).refused_at = Some(at("mon 19:00"));
        };
        assert_eq!(inspected(&stuck(), refused), "");
    }

    #[test]
    fn a_stop_that_came_too_late_is_no_excuse_for_the_night() {
        let late = || Record {
            phase: Phase::Settled { at: Power::Running },
            handled: Some(handled("mon 19:00")),
            joined_at: Some(at("mon 07:00")),
            last: Some(Last {
                asked_at: None,
                key: handled("mon 19:00").key,
                ending: Ending::TooLate,
                claimed_at: at("mon 19:00"),
                finished_at: at("mon 19:00"),
                method: None,
            }),
            ..record_of(DATABASE)
        };
        let found = inspected(&late(), |_| {});
        assert!(found.contains("should be Stopped"), "{found}");
        assert_eq!(inspected(&late(), |state| state.applied_at = at("mon 20:00")), "");
    }

    #[test]
    fn a_database_is_not_stopped_on_its_own_plan() {
        let stopped = Record {
            phase: Phase::Settled { at: Power::Stopped },
            handled: Some(handled("mon 19:00")),
            joined_at: Some(at("mon 07:00")),
            ..record_of(DATABASE)
        };
        let found = inspected(&stopped, |_| {});
        assert!(found.contains("should be Stopped"), "{found}");
    }
}
