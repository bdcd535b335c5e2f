//! Hours stopped, according to Offhours' own history: pure, so that the counting can be tested.
//!
//! A *stopped* interval begins when the end of a stop was seen, and ends when the next start was
//! claimed, which is just before it was requested: both err towards fewer hours. What each ending
//! means:
//!
//! | ending | of a stop | of a start |
//! |---|---|---|
//! | seen | begins an interval | ends it |
//! | reversed, superseded, released, refused, stuck | begins none: not seen | ends it: it may run |
//! | gone, forgotten | begins none | ends it: nothing is known from then on |
//! | resized | | ends it: a person had made it larger |
//! | would have | begins a *would have* interval | ends only such an interval: nothing was sent |
//!
//! A database or a pool is stopped while it is at its small size. If a stop was needed although
//! Offhours started nothing in between, a person had started the resource at an unknown time: that
//! time is *unclear* and counts for nothing. So does the time since an account was last listed, if
//! it can no longer be listed.

use std::collections::BTreeMap;

use domain::{
    ScheduleName,
    configuration::Rule,
    history::{HISTORY_DAYS, HistoryEntry},
    record::{Direction, Ending, Phase, Record},
    resource::{Power, SavedState},
    schedule::Desired,
    stop_method::StopMethod,
};
use jiff::{SignedDuration, Timestamp, ToSpan as _, civil::Date, tz::TimeZone};
use schemars::JsonSchema;
use serde::Serialize;

/// A half-open time range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Period {
    /// Start of the range, inclusive.
    pub from: Timestamp,
    /// End of the range, exclusive.
    pub until: Timestamp,
}

impl Period {
    /// The calendar month of a day, in UTC as both clouds bill.
    pub fn month(day: Date) -> Result<Self, jiff::Error> {
        let midnight =
            |date: Date| date.to_zoned(TimeZone::UTC).map(|midnight| midnight.timestamp());
        let first = day.first_of_month();
        Ok(Self { from: midnight(first)?, until: midnight(first.checked_add(1.month())?)? })
    }

    /// The calendar month in UTC that contains an instant, until then.
    #[must_use]
    pub fn month_of(now: Timestamp) -> Self {
        let month = Self::month(now.to_zoned(TimeZone::UTC).date());
        Self { from: month.map_or(now, |month| month.from), until: now }
    }

    #[must_use]
    pub fn length(self) -> SignedDuration {
        self.until.duration_since(self.from)
    }

    #[must_use]
    pub fn seconds(self) -> u64 {
        self.length().as_secs().unsigned_abs()
    }

    /// Returns the overlap of both, or `None` if they do not overlap.
    #[must_use]
    pub fn within(self, other: Self) -> Option<Self> {
        let both = Self { from: self.from.max(other.from), until: self.until.min(other.until) };
        (both.from < both.until).then_some(both)
    }
}

/// Returns the instant since which history is kept.
#[must_use]
pub fn kept_since(now: Timestamp) -> Timestamp {
    now - SignedDuration::from_hours(24 * HISTORY_DAYS)
}

/// A time interval in which a resource was, or would have been, stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoppedInterval {
    /// The time it covers.
    pub period: Period,
    /// What is known about it.
    pub kind: Kind,
    /// The schedule that was followed when it began, if any.
    pub schedule: Option<ScheduleName>,
    /// The size before the stop, for sized kinds.
    pub before: Option<SavedState>,
    /// The size that was seen at the stop's end, for sized kinds.
    pub after: Option<SavedState>,
    /// Whether the machine did not exist during that time.
    pub hibernated: bool,
}

/// What is known about an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Stopped,
    /// Stopped by Offhours, and started by a person at an unknown instant.
    Unclear,
    /// Observe mode: it would have been stopped.
    WouldHave,
}

/// The current schedules: they determine when a stop would have ended.
pub type Schedules = BTreeMap<ScheduleName, Rule>;

/// What is known about a resource apart from its history.
#[derive(Debug, Clone, Copy, Default)]
pub struct LastKnownState<'a> {
    /// Its record. `None` if it has none that can be read.
    pub record: Option<&'a Record>,
    /// When its account was last listed completely, if that is too long ago to describe the
    /// present.
    pub unseen_since: Option<Timestamp>,
}

/// Returns the intervals of one resource up to now, in order and without overlaps.
#[must_use]
pub fn stopped_intervals(
    entries: &[HistoryEntry],
    known: LastKnownState<'_>,
    schedules: &Schedules,
    now: Timestamp,
) -> Vec<StoppedInterval> {
    if entries.is_empty() {
        let held = known.record.and_then(|record| held_without_history(record, now));
        return held.into_iter().collect();
    }
    let mut entries: Vec<_> = entries.iter().collect();
    entries.sort_by_key(|entry| entry.transition_key());
    let mut walk = Walk { schedules, now, open: None, closed: Vec::new() };
    for entry in entries {
        walk.pass(entry);
    }
    walk.end(known);
    walk.closed
}

/// Returns the interval of a resource that is stopped since a stop that history no longer has.
fn held_without_history(record: &Record, now: Timestamp) -> Option<StoppedInterval> {
    let desired_before = record.handled.as_ref().and_then(|handled| handled.desired);
    // A sized resource with nothing saved was as small before.
    let ours = if record.kind().is_sized() {
        record.saved.is_some()
    } else {
        desired_before == Some(Desired::Stopped)
    };
    let stopped = matches!(record.phase, Phase::Settled { at: Power::Stopped });
    let observed = record.observed.as_ref()?;
    let period = Period { from: observed.at.max(kept_since(now)), until: now };
    (ours && stopped && period.from < now).then(|| StoppedInterval {
        period,
        kind: Kind::Unclear,
        schedule: record.schedule.clone(),
        before: record.saved.clone(),
        after: observed.size.clone(),
        hibernated: record.is_hibernated(),
    })
}

/// One resource's history, walked from its oldest entry on.
struct Walk<'a> {
    schedules: &'a Schedules,
    now: Timestamp,
    /// The interval that the latest entry began. Its end is the latest possible one.
    open: Option<StoppedInterval>,
    closed: Vec<StoppedInterval>,
}

impl Walk<'_> {
    fn pass(&mut self, entry: &HistoryEntry) {
        let is_start = entry.direction == Direction::Start;
        match entry.ending {
            // Nothing is known about a forgotten resource from then on.
            Ending::Gone | Ending::Forgotten => self.close(entry.claimed_at, Kind::Stopped),
            Ending::WouldHave if is_start => {
                if self.is_open(Kind::WouldHave) {
                    self.close(entry.claimed_at, Kind::WouldHave);
                }
            }
            Ending::WouldHave => {
                self.close(entry.claimed_at, Kind::Unclear);
                if let Some(until) = self.would_last(entry) {
                    self.begin(entry, Kind::WouldHave, entry.claimed_at, until);
                }
            }
            Ending::Resized if is_start => self.close(entry.claimed_at, Kind::Unclear),
            Ending::Seen if !is_start => {
                if entry.asked_at.is_some() || !self.is_open(Kind::Stopped) {
                    self.close(entry.claimed_at, Kind::Unclear);
                    self.begin(entry, Kind::Stopped, entry.finished_at, self.now);
                }
            }
            Ending::Seen
            | Ending::Resized
            | Ending::AlreadyThere
            | Ending::LeftRunning
            | Ending::TooLate
            | Ending::Refused
            | Ending::Stuck
            | Ending::Superseded
            | Ending::Released
            | Ending::Reversed => {
                // A resource already in its target state needs no request.
                let was_stopped = entry.asked_at.is_some() == is_start;
                let kind = if was_stopped { Kind::Stopped } else { Kind::Unclear };
                self.close(entry.claimed_at, kind);
            }
        }
    }

    fn is_open(&self, kind: Kind) -> bool {
        self.open.as_ref().is_some_and(|open| open.kind == kind)
    }

    fn begin(&mut self, entry: &HistoryEntry, kind: Kind, from: Timestamp, until: Timestamp) {
        self.open = Some(StoppedInterval {
            period: Period { from, until },
            kind,
            schedule: entry.schedule.clone(),
            before: entry.saved.clone(),
            after: entry.seen.clone(),
            hibernated: entry.method == Some(StopMethod::Hibernate),
        });
    }

    /// Closes the open interval, if any. One that would have been stays so, however it ends.
    fn close(&mut self, at: Timestamp, kind: Kind) {
        let Some(mut interval) = self.open.take() else {
            return;
        };
        if interval.kind != Kind::WouldHave {
            interval.kind = kind;
        }
        let period = &mut interval.period;
        period.until = period.until.min(at).min(self.now);
        if period.from < period.until {
            self.closed.push(interval);
        }
    }

    /// Returns when a stop that was only observed would have ended: when its schedule, as it is
    /// now, desires anything but stopped. `None` if the schedule did not desire the stop or no
    /// longer exists.
    fn would_last(&self, entry: &HistoryEntry) -> Option<Timestamp> {
        let schedule = &self.schedules.get(entry.schedule.as_ref()?)?.schedule;
        if schedule.desired_at(entry.claimed_at) != Some(Desired::Stopped) {
            return None;
        }
        let end =
            schedule.edges(entry.claimed_at).find(|edge| edge.desired != Some(Desired::Stopped));
        Some(end.map_or(Timestamp::MAX, |edge| edge.at))
    }

    /// Closes the interval that is still open, by what is known about the resource now. It may have
    /// been started since it was last seen.
    fn end(&mut self, known: LastKnownState<'_>) {
        let Some(open) = self.open.clone() else {
            return;
        };
        let (at, kind) = match known.record {
            Some(record) => last_sign(record, open.period.from, self.now),
            None => (self.now, Kind::Unclear),
        };
        let unseen_since = known.unseen_since.map(|seen| seen.max(open.period.from));
        match unseen_since.filter(|&seen| seen < at && kind == Kind::Stopped) {
            None => self.close(at, kind),
            Some(seen) => {
                self.close(seen, Kind::Stopped);
                let period = Period { from: seen, until: at };
                self.open = Some(StoppedInterval { period, ..open });
                self.close(at, Kind::Unclear);
            }
        }
    }
}

/// Returns until when a resource that was stopped at `since` stayed stopped, and what is known
/// about that.
fn last_sign(record: &Record, since: Timestamp, now: Timestamp) -> (Timestamp, Kind) {
    let observed = record.observed.as_ref();
    let seen_up = observed.filter(|seen| seen.power != Power::Stopped && seen.at >= since);
    match &record.phase {
        Phase::Settled { at } => match (seen_up, at) {
            (Some(seen), _) => (seen.at, Kind::Stopped),
            (None, Power::Stopped) => (now, Kind::Stopped),
            (None, Power::Running | Power::Between) => (now, Kind::Unclear),
        },
        Phase::InFlight { transition }
        | Phase::Stuck { transition, .. }
        | Phase::Refused { transition, .. } => {
            let request = record.request.as_ref();
            let asked = request.is_some_and(|r| r.direction == transition.direction);
            match (transition.direction, asked) {
                (Direction::Start, true) => (transition.claimed_at, Kind::Stopped),
                // Already stopped when it was to be stopped again: it was never started in between.
                (Direction::Stop, false) if seen_up.is_none() => (now, Kind::Stopped),
                (Direction::Start, false) | (Direction::Stop, _) => {
                    (transition.claimed_at, Kind::Unclear)
                }
            }
        }
        Phase::Gone { since } => {
            let missing = record.missing_since.unwrap_or(*since);
            (missing.min(*since), Kind::Stopped)
        }
    }
}

#[cfg(test)]
mod tests;
