//! How many records of an account need somebody, as an inventory leaves them.

use std::ops::AddAssign;

use domain::{
    left_behind::{LeftBehind, left_behind},
    membership::{Membership, Subject},
    overdue::overdue,
    record::{Phase, Record},
};
use jiff::Timestamp;
use store::InForce;

/// How many records of one account are so now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Census {
    /// Their last try failed and another is to come; plus one if the listing failed.
    pub failed: u64,
    /// Not as wanted for longer than their kind's usual time.
    pub overdue: u64,
    /// Refused by the provider.
    pub refused: u64,
    /// Not seen by the deadline.
    pub stuck: u64,
    /// Held until a person approves.
    pub held: u64,
    /// Stopped, or owed a size, and under no schedule.
    pub orphaned: u64,
    /// Under two schedules, or reached through two accounts.
    pub conflicts: u64,
    /// One if the listing was refused for its token.
    pub tokens_refused: u64,
}

impl AddAssign for Census {
    fn add_assign(&mut self, other: Self) {
        let Self {
            failed,
            overdue,
            refused,
            stuck,
            held,
            orphaned,
            conflicts,
            tokens_refused,
        } = other;
        self.failed += failed;
        self.overdue += overdue;
        self.refused += refused;
        self.stuck += stuck;
        self.held += held;
        self.orphaned += orphaned;
        self.conflicts += conflicts;
        self.tokens_refused += tokens_refused;
    }
}

impl Census {
    /// Counts one more record.
    pub fn count(&mut self, record: &Record, in_force: &InForce, now: Timestamp) {
        let membership = Membership::of(Subject::recorded(record), &in_force.configuration);
        let conflict = matches!(&membership, Membership::Barred(bar) if bar.is_conflict());
        let gone = matches!(record.phase, Phase::Gone { .. });
        let overdue = overdue(record, in_force.rules(), in_force.since, now);
        self.failed += u64::from(fails(record, now));
        // A start that goes on being asked for is refused, or ends in an error each time.
        let asked_again = record.in_flight().and(record.request.as_ref());
        let asked_again = asked_again.filter(|request| request.problem.is_some());
        let errored = asked_again.is_some_and(|request| request.first_accepted_at.is_some());
        let refused = matches!(record.phase, Phase::Refused { .. });
        let stuck = matches!(record.phase, Phase::Stuck { .. });
        self.refused += u64::from(refused || asked_again.is_some() && !errored);
        self.stuck += u64::from(stuck || errored);
        self.overdue += u64::from(overdue.is_some());
        self.held += u64::from(record.held && !gone);
        let orphaned = left_behind(record, in_force.rules(), now) == Some(LeftBehind::Orphaned);
        self.orphaned += u64::from(orphaned);
        self.conflicts += u64::from(conflict && !gone);
    }
}

/// Whether the last try failed and another is to come: what is no longer wished is no trouble.
fn fails(record: &Record, now: Timestamp) -> bool {
    let comes_again = || {
        record.retry_at.is_some_and(|retry_at| {
            let due_at = record.due_at;
            due_at.is_some_and(|due_at| due_at <= retry_at.max(now))
        })
    };
    match record.phase {
        // Forgotten as soon as a request is accepted.
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
        resource::Power,
    };
    use jiff::SignedDuration;

    use super::*;
    use crate::tests::{Case, at, database_of, droplet};

    fn census(case: &Case, change: impl FnOnce(&mut Record)) -> Census {
        let mut record = case.record.clone();
        change(&mut record);
        let in_force = InForce {
            configuration: Arc::new(case.configuration.clone()),
            overrides: case.overrides.clone(),
            since: None,
        };
        let mut census = Census::default();
        census.count(&record, &in_force, case.now);
        census
    }

    fn transition() -> Transition {
        Transition {
            direction: Direction::Stop,
            claimed_at: at("19:00"),
            cause: domain::record::Cause::Schedule,
            schedule: None,
        }
    }

    #[test]
    fn what_needs_nobody_counts_for_nothing() {
        assert_eq!(census(&droplet(), |_| ()), Census::default());
    }

    #[test]
    fn each_trouble_is_counted_under_its_name_alone() {
        let reason = || "why".to_owned();
        let count = |change: fn(&mut Record)| census(&droplet(), change);
        let refused = census(&droplet(), |record| {
            record.phase = Phase::Refused {
                transition: transition(),
                reason: reason(),
            };
        });
        assert_eq!(
            refused,
            Census {
                refused: 1,
                ..Census::default()
            }
        );
        let stuck = census(&droplet(), |record| {
            record.phase = Phase::Stuck {
                transition: transition(),
                since: at("19:10"),
                reason: reason(),
            };
            record.last_error = Some(reason());
        });
        assert_eq!(
            stuck,
            Census {
                stuck: 1,
                ..Census::default()
            }
        );
        let held = count(|record| record.held = true);
        assert_eq!(
            held,
            Census {
                held: 1,
                ..Census::default()
            }
        );
        let orphaned = count(|record| {
            record.tags.clear();
            record.saved = Some(database_of("db-s-2vcpu-4gb", 1));
        });
        assert_eq!(
            orphaned,
            Census {
                orphaned: 1,
                ..Census::default()
            }
        );
        let conflict = count(|record| {
            record.doubled_by = Some("do-other/droplet/1".parse().unwrap());
        });
        assert_eq!(
            conflict,
            Census {
                conflicts: 1,
                ..Census::default()
            }
        );
    }

    #[test]
    fn what_is_not_as_wanted_for_too_long_is_overdue_whatever_else_it_is() {
        // Wanted stopped since 19:00, and running.
        let overdue = |case: &Case| census(case, |_| ());
        assert_eq!(overdue(&droplet().at("19:15")), Census::default());
        let late = Census {
            overdue: 1,
            ..Census::default()
        };
        assert_eq!(overdue(&droplet().at("19:16")), late);
        let retry_at = at("19:30");
        let failing = census(&droplet().at("19:16"), |record| {
            record.attempts = 4;
            record.retry_at = Some(retry_at);
            record.due_at = Some(retry_at);
        });
        assert_eq!(failing, Census { failed: 1, ..late });
    }

    #[test]
    fn a_failure_counts_until_it_is_cured_or_no_longer_wished() {
        let case = droplet();
        let retry_at = case.now + SignedDuration::from_mins(2);
        let failed = |due_at| {
            census(&case, |record| {
                record.attempts = 2;
                record.last_error = Some("busy".to_owned());
                record.retry_at = Some(retry_at);
                record.due_at = due_at;
            })
            .failed
        };
        assert_eq!(failed(Some(retry_at)), 1);
        assert_eq!(failed(None), 0, "opted out");
        assert_eq!(failed(Some(at("tue 08:00"))), 0, "nothing is wished now");
        let in_flight = census(&case, |record| {
            record.phase = Phase::InFlight {
                transition: transition(),
            };
            record.last_error = Some("no answer".to_owned());
        });
        assert_eq!(in_flight.failed, 1);
        let gone = census(&case, |record| {
            record.phase = Phase::Gone { since: at("18:00") };
            record.held = true;
            record.attempts = 2;
        });
        assert_eq!(gone, Census::default());
        let settled = census(&case, |record| {
            record.phase = Phase::Settled { at: Power::Running };
        });
        assert_eq!(settled, Census::default());
    }
}
