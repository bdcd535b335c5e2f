//! How many records of an account need a person, as an inventory leaves them.

use std::{collections::BTreeMap, ops::AddAssign};

use domain::{
    decision::{judge, pause_of},
    left_behind::{LeftBehind, left_behind},
    membership::{Membership, Subject},
    overdue::judged_overdue,
    record::{Direction, Phase, Record},
    resource::Power,
};
use environment::Metric;
use jiff::Timestamp;
use store::InForce;

/// How many records of one account each metric counts now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Health(BTreeMap<Metric, u64>);

impl FromIterator<Metric> for Health {
    fn from_iter<I: IntoIterator<Item = Metric>>(metrics: I) -> Self {
        let mut health = Self::default();
        for metric in metrics {
            *health.0.entry(metric).or_default() += 1;
        }
        health
    }
}

impl AddAssign for Health {
    fn add_assign(&mut self, other: Self) {
        for (metric, more) in other.0 {
            *self.0.entry(metric).or_default() += more;
        }
    }
}

impl Health {
    /// Returns how many records a gauge counts.
    #[must_use]
    pub fn gauge(&self, metric: Metric) -> u64 {
        self.0.get(&metric).copied().unwrap_or_default()
    }

    /// Records that a gauge counts at least one record now.
    pub fn raise(&mut self, metric: Metric) {
        let count = self.0.entry(metric).or_default();
        *count = (*count).max(1);
    }

    /// Counts one more record.
    pub fn count(&mut self, record: &Record, in_force: &InForce, now: Timestamp) {
        let verdict = judge(record, Subject::recorded(record), in_force.rules(), now);
        let conflict = matches!(
            &verdict.membership,
            Membership::Excluded(exclusion) if exclusion.is_conflict()
        );
        let gone = matches!(record.phase, Phase::Gone { .. });
        // A start that is still being retried was refused, or ends in an error each time.
        let asked_again = record.in_flight().and(record.request.as_ref());
        let asked_again = asked_again.filter(|request| request.problem.is_some());
        let errored = asked_again.is_some_and(|request| request.first_accepted_at.is_some());
        let refused = matches!(record.phase, Phase::Refused { .. });
        let stuck = matches!(record.phase, Phase::Stuck { .. });
        let unresolved = record.hibernation_problem().is_some();
        let asleep = record.is_hibernated();
        let orphaned = left_behind(record, in_force.rules(), now) == Some(LeftBehind::Orphaned);
        let is_stopped = matches!(record.phase, Phase::Settled { at: Power::Stopped });
        let rules = in_force.rules();
        let is_paused = pause_of(record, rules, Direction::Stop, now).is_some();
        let overdue = judged_overdue(record, &verdict, rules, in_force.since, now);
        let facts = [
            (Metric::Failed, fails(record, now) && !is_paused),
            (Metric::Overdue, overdue.is_some()),
            (Metric::Refused, refused || asked_again.is_some() && !errored),
            (Metric::Stuck, stuck || errored || unresolved && asleep),
            (Metric::Held, record.held && !gone),
            (Metric::Orphaned, orphaned),
            (Metric::Conflicts, conflict && !gone || unresolved && !asleep),
            (Metric::Paused, verdict.opted_in && is_paused && !gone),
            (Metric::Stopped, verdict.opted_in && is_stopped),
        ];
        *self += facts.into_iter().filter(|(_, is_so)| *is_so).map(|(metric, _)| metric).collect();
    }
}

/// Reports whether the last attempt failed and another is to come: what is no longer desired does
/// not count.
fn fails(record: &Record, now: Timestamp) -> bool {
    let comes_again = || {
        record.retry_at.is_some_and(|retry_at| {
            let due_at = record.due_at;
            due_at.is_some_and(|due_at| due_at <= retry_at.max(now))
        })
    };
    match record.phase {
        // Cleared as soon as a request is accepted.
        Phase::InFlight { .. } => record.last_error.is_some(),
        Phase::Settled { .. } | Phase::Refused { .. } | Phase::Stuck { .. } => {
            record.attempts > 0 && comes_again()
        }
        Phase::Gone { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use domain::{
        record::{Direction, Transition},
        stop_method::StopMethod,
    };
    use jiff::SignedDuration;

    use super::*;
    use transition::tests::{Case, at, database_of, droplet};

    fn health(case: &Case, change: impl FnOnce(&mut Record)) -> Health {
        let mut record = case.record.clone();
        change(&mut record);
        let in_force = InForce {
            configuration: Arc::new(case.configuration.clone()),
            overrides: case.overrides.clone(),
            since: None,
        };
        let mut health = Health::default();
        health.count(&record, &in_force, case.now);
        health
    }

    fn transition() -> Transition {
        Transition {
            target: None,
            method: StopMethod::Graceful,
            forced: false,
            was_running: false,
            direction: Direction::Stop,
            claimed_at: at("19:00"),
            cause: domain::record::Cause::Schedule,
            schedule: None,
        }
    }

    #[test]
    fn what_needs_no_person_counts_for_nothing() {
        assert_eq!(health(&droplet(), |_| ()), Health::default());
    }

    #[test]
    fn each_failure_is_counted_under_its_name_alone() {
        let reason = || "why".to_owned();
        let count = |change: fn(&mut Record)| health(&droplet(), change);
        let refused = health(&droplet(), |record| {
            record.phase = Phase::Refused { transition: transition(), reason: reason() };
        });
        assert_eq!(refused, Health::from_iter([Metric::Refused]));
        let stuck = health(&droplet(), |record| {
            record.phase =
                Phase::Stuck { transition: transition(), since: at("19:10"), reason: reason() };
            record.last_error = Some(reason().into());
        });
        assert_eq!(stuck, Health::from_iter([Metric::Stuck]));
        let held = count(|record| record.held = true);
        assert_eq!(held, Health::from_iter([Metric::Held]));
        let orphaned = count(|record| {
            record.tags.clear();
            record.saved = Some(database_of("db-s-2vcpu-4gb", 1));
        });
        assert_eq!(orphaned, Health::from_iter([Metric::Orphaned]));
        let conflict = count(|record| {
            record.duplicate_of = Some("do-other/droplet/1".parse().unwrap());
        });
        assert_eq!(conflict, Health::from_iter([Metric::Conflicts]));
    }

    #[test]
    fn what_is_not_as_wanted_for_too_long_is_overdue_whatever_else_it_is() {
        // Desired stopped since 19:00, but running.
        let overdue = |case: &Case| health(case, |_| ());
        assert_eq!(overdue(&droplet().at("19:15")), Health::default());
        let late = Health::from_iter([Metric::Overdue]);
        assert_eq!(overdue(&droplet().at("19:16")), late);
        let retry_at = at("19:30");
        let failing = health(&droplet().at("19:16"), |record| {
            record.attempts = 4;
            record.retry_at = Some(retry_at);
            record.due_at = Some(retry_at);
        });
        assert_eq!(failing, Health::from_iter([Metric::Failed, Metric::Overdue]));
    }

    #[test]
    fn a_failure_counts_until_it_is_cured_or_no_longer_desired() {
        let case = droplet();
        let retry_at = case.now + SignedDuration::from_mins(2);
        let failed = |due_at| {
            health(&case, |record| {
                record.attempts = 2;
                record.last_error = Some("busy".into());
                record.retry_at = Some(retry_at);
                record.due_at = due_at;
            })
            .gauge(Metric::Failed)
        };
        assert_eq!(failed(Some(retry_at)), 1);
        assert_eq!(failed(None), 0, "opted out");
        assert_eq!(failed(Some(at("tue 08:00"))), 0, "nothing is desired now");
        let in_flight = health(&case, |record| {
            record.phase = Phase::InFlight { transition: transition() };
            record.last_error = Some("no answer".into());
        });
        assert_eq!(in_flight.gauge(Metric::Failed), 1);
        let gone = health(&case, |record| {
            record.phase = Phase::Gone { since: at("18:00") };
            record.held = true;
            record.attempts = 2;
        });
        assert_eq!(gone, Health::default());
        let settled = health(&case, |record| {
            record.phase = Phase::Settled { at: Power::Running };
        });
        assert_eq!(settled, Health::default());
    }
}
