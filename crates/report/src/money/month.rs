//! A month, and the times in it at which something is off: by a schedule, or by history.

use std::iter;

use domain::{
    ResourceKind,
    provider::Billing,
    schedule::{Desired, Schedule},
};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};

use crate::history::Period;

const HOUR: i64 = 3600;

/// A twelfth of a year of 365.25 days: 730.5 hours.
const AVERAGE_SECONDS: i64 = 730 * HOUR + HOUR / 2;

/// The time counted for an average month: whole weeks, so that each weekday has its share; nearly a
/// year, so that holidays have theirs.
const COUNTED: SignedDuration = SignedDuration::from_hours(52 * 7 * 24);

/// How far before a month its first state is looked up: where either state will do, resources stay
/// as they were.
const BEFORE: SignedDuration = SignedDuration::from_hours(31 * 24);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Month {
    /// An average month of 730.5 hours, with its share of the 52 weeks after an instant.
    Average(Timestamp),
    /// A calendar month.
    Calendar(Period),
}

impl Month {
    #[must_use]
    pub fn seconds(self) -> u64 {
        match self {
            Self::Average(_) => AVERAGE_SECONDS.unsigned_abs(),
            Self::Calendar(period) => period.seconds(),
        }
    }

    /// Returns the times in it at which a schedule keeps resources off.
    #[must_use]
    pub fn times_off(self, schedule: &Schedule) -> TimesOff {
        let counted = match self {
            Self::Average(from) => Period { from, until: from + COUNTED },
            Self::Calendar(period) => period,
        };
        TimesOff { seconds: self.seconds(), counted, stretches: off_stretches(schedule, counted) }
    }
}

/// Returns the calendar months, in UTC, that a period touches.
pub(super) fn months(period: Period) -> Vec<Period> {
    let month = |at: Timestamp| Period::month(at.to_zoned(TimeZone::UTC).date()).ok();
    let months = iter::successors(month(period.from), |last| month(last.until));
    months.take_while(|month| month.from < period.until).collect()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimesOff {
    /// How long the month is, in seconds.
    pub(super) seconds: u64,
    /// The time in which the stretches lie, and of which the month has its share.
    counted: Period,
    stretches: Vec<Period>,
}

impl TimesOff {
    /// The times off within a period, in order, as history shows them.
    pub(super) fn within(counted: Period, stretches: impl Iterator<Item = Period>) -> Self {
        let stretches = stretches.filter_map(|stretch| stretch.within(counted)).collect();
        Self { seconds: counted.seconds(), counted, stretches }
    }

    /// Returns how long it is off, in seconds.
    #[must_use]
    pub fn off(&self) -> u64 {
        self.share(self.stretches.iter().map(|stretch| stretch.length().as_secs()).sum())
    }

    /// Returns how much of that is billed as off, in seconds. An hour of a server in which a time
    /// off begins or ends is billed as running; its hours are counted from its creation.
    #[must_use]
    pub fn billed_off(&self, kind: ResourceKind, created_at: Option<Timestamp>) -> u64 {
        if kind.billing() == Billing::Seconds {
            return self.off();
        }
        let whole = self.stretches.iter().map(|stretch| {
            let begins = stretch.from > self.counted.from;
            whole_hours(*stretch, begins, created_at.unwrap_or_default())
        });
        self.share(whole.sum())
    }

    /// Returns for how long each of the machines is billed that are recreated after each time off, in
    /// seconds of the counted time. The hours of each server are counted from its creation.
    pub(super) fn lives(&self, kind: ResourceKind) -> Vec<u64> {
        let mut since = self.counted.from;
        let mut lives = Vec::new();
        let until = |since: Timestamp, until: Timestamp| {
            let seconds = until.duration_since(since).as_secs().max(0);
            let begun = (seconds + HOUR - 1).div_euclid(HOUR) * HOUR;
            match kind.billing() {
                Billing::Seconds => seconds,
                Billing::Hours => begun,
            }
            .unsigned_abs()
        };
        for stretch in &self.stretches {
            lives.push(until(since, stretch.from));
            since = stretch.until;
        }
        lives.push(until(since, self.counted.until));
        lives
    }

    /// Whether the counted time is the month itself.
    pub(super) fn is_exact(&self) -> bool {
        self.counted.seconds() == self.seconds
    }

    /// Returns the month's share of a number of seconds of the counted time.
    pub(super) fn share(&self, seconds: i64) -> u64 {
        let whole = i128::from(self.counted.seconds()).max(1);
        let share = i128::from(seconds) * i128::from(self.seconds) / whole;
        u64::try_from(share).unwrap_or_default()
    }

    /// Returns the same times off, each beginning `after` later and ending `before` earlier.
    #[must_use]
    pub fn shortened(&self, after: SignedDuration, before: SignedDuration) -> Self {
        let Period { from, until } = self.counted;
        let shorter = |stretch: &Period| Period {
            // What has been off since before the month needs no time to stop.
            from: if stretch.from > from { stretch.from + after } else { from },
            // What is off at the end of the month stays off.
            until: if stretch.until < until { stretch.until - before } else { until },
        };
        let stretches = self.stretches.iter().map(shorter);
        Self { stretches: stretches.filter(|one| one.from < one.until).collect(), ..*self }
    }
}

/// Returns how much of a time off is in whole hours, in seconds, with hours counted from
/// `hours_since`. A stop takes time, so that no whole hour begins with it.
fn whole_hours(off: Period, begins: bool, hours_since: Timestamp) -> i64 {
    let since = |at: Timestamp| at.duration_since(hours_since).as_secs();
    let (from, until) = (since(off.from) + i64::from(begins), since(off.until));
    let first = (from + HOUR - 1).div_euclid(HOUR);
    (until.div_euclid(HOUR) - first).max(0) * HOUR
}

/// Returns the stretches of a period in which a schedule keeps resources off: a stop lasts until
/// the next start, even where either state would do.
fn off_stretches(schedule: &Schedule, period: Period) -> Vec<Period> {
    let begin = period.from - BEFORE;
    let is_off = schedule.desired_at(begin) == Some(Desired::Stopped);
    let mut off_since = is_off.then_some(begin);
    let mut stretches = Vec::new();
    let edges = schedule.edges(begin);
    for edge in edges.take_while(|edge| edge.at < period.until) {
        match (edge.desired, off_since) {
            (Some(Desired::Stopped), None) => off_since = Some(edge.at),
            (Some(Desired::Running), Some(from)) => {
                stretches.push(Period { from, until: edge.at });
                off_since = None;
            }
            (Some(Desired::Stopped), Some(_)) | (Some(Desired::Running), None) | (None, _) => {}
        }
    }
    stretches.extend(off_since.map(|from| Period { from, until: period.until }));
    let within = stretches.into_iter();
    within.filter_map(|stretch| stretch.within(period)).collect()
}
