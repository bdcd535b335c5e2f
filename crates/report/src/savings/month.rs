//! A month, and how much of it a schedule keeps resources off.

use domain::schedule::{Desired, Schedule};
use jiff::{SignedDuration, Timestamp};

use crate::hours::Period;

const HOUR: i64 = 3600;

/// A twelfth of a year of 365.25 days: 730.5 hours.
const AVERAGE_SECONDS: i64 = 730 * HOUR + HOUR / 2;

/// The time counted for an average month: whole weeks, so that each weekday has its share; nearly a
/// year, so that holidays have theirs.
const COUNTED: SignedDuration = SignedDuration::from_hours(52 * 7 * 24);

/// How far before a month its first state is looked up: where either state will do, resources stay
/// as they were.
const BEFORE: SignedDuration = SignedDuration::from_hours(31 * 24);

/// The month that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Month {
    /// An average month of 730.5 hours, with its share of the 52 weeks after an instant.
    Average(Timestamp),
    /// A calendar month, in UTC as both clouds bill.
    Calendar(Period),
}

impl Month {
    /// Returns its length, in seconds.
    #[must_use]
    pub fn seconds(self) -> u64 {
        let seconds = match self {
            Self::Average(_) => AVERAGE_SECONDS,
            Self::Calendar(period) => period.length().as_secs(),
        };
        seconds.unsigned_abs()
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

/// The times at which resources are off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimesOff {
    /// How long the month is, in seconds.
    seconds: u64,
    /// The time in which the stretches lie, and of which the month has its share.
    counted: Period,
    stretches: Vec<Period>,
}

impl TimesOff {
    /// Returns how much of the month is off, for a resource that was created at an instant: Hetzner
    /// counts the hours of a server from its creation.
    #[must_use]
    pub fn division(&self, created_at: Option<Timestamp>) -> Division {
        let (mut off, mut off_in_whole_hours) = (0, 0);
        for &stretch in &self.stretches {
            off += stretch.length().as_secs();
            let begins = stretch.from > self.counted.from;
            off_in_whole_hours += whole_hours(stretch, begins, created_at.unwrap_or_default());
        }
        self.share(off, off_in_whole_hours)
    }

    /// Like [`Self::division`], for a resource that is recreated after each time off: the hours of
    /// each are counted from the end of the time off before it.
    #[must_use]
    pub fn division_anew(&self) -> Division {
        let (mut off, mut on_in_begun_hours) = (0, 0);
        let mut since = self.counted.from;
        for stretch in &self.stretches {
            off += stretch.length().as_secs();
            on_in_begun_hours += begun_hours(stretch.from.duration_since(since));
            since = stretch.until;
        }
        on_in_begun_hours += begun_hours(self.counted.until.duration_since(since));
        let whole = self.counted.length().as_secs();
        self.share(off, (whole - on_in_begun_hours).max(0))
    }

    fn share(&self, off: i64, off_in_whole_hours: i64) -> Division {
        let whole = self.counted.length().as_secs().max(1);
        let share = |part: i64| {
            let part = i128::from(part) * i128::from(self.seconds) / i128::from(whole);
            u64::try_from(part).unwrap_or_default()
        };
        Division {
            seconds: self.seconds,
            off: share(off),
            off_in_whole_hours: share(off_in_whole_hours),
        }
    }
}

/// Rounds a length up to whole hours, as it is billed where begun hours count, and returns it in
/// seconds.
fn begun_hours(length: SignedDuration) -> i64 {
    (length.as_secs() + HOUR - 1).div_euclid(HOUR).max(0) * HOUR
}

impl TimesOff {
    /// Returns the same times off, each beginning `after` later and ending `before` earlier.
    #[must_use]
    pub fn shortened(&self, after: SignedDuration, before: SignedDuration) -> Self {
        let shorter = |stretch: &Period| Period {
            // What has been off since before the month needs no time to stop.
            from: if stretch.from > self.counted.from {
                stretch.from + after
            } else {
                stretch.from
            },
            // What is off at the end of the month stays off.
            until: if stretch.until < self.counted.until {
                stretch.until - before
            } else {
                stretch.until
            },
        };
        let stretches = self.stretches.iter().map(shorter);
        Self { stretches: stretches.filter(|one| one.from < one.until).collect(), ..*self }
    }
}

/// A month, divided into time on and time off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Division {
    /// How long the month is, in seconds.
    pub seconds: u64,
    /// How long resources are off, in seconds.
    pub off: u64,
    /// How much of that is in billed hours in which they never run, in seconds. An hour in which a
    /// time off begins or ends is billed as if they had run all of it.
    pub off_in_whole_hours: u64,
}

impl Division {
    /// Returns how long resources run, in seconds.
    #[must_use]
    pub fn on(self) -> u64 {
        self.seconds.saturating_sub(self.off)
    }

    /// Returns how long they run, in seconds, where each hour counts in which they run at all.
    #[must_use]
    pub fn on_in_begun_hours(self) -> u64 {
        self.seconds.saturating_sub(self.off_in_whole_hours)
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
