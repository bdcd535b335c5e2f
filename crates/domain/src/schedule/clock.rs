//! What a zone's clock has shown up to an instant, and what it will show again.
//!
//! A clock that is set forward skips readings, one that is set back repeats them. Two questions
//! settle both cases without any search for the change itself: which reading has been *reached*,
//! and which is *over* and will not be shown again? A skipped reading is reached, and over, at the
//! jump; a repeated one is reached at its first occurrence and over at its last.
//!
//! A [`Reading`] is what the clock shows, an [`Instant`] is a moment; only this module turns one into
//! the other. Both are whole seconds.

use std::ops::{Add, Sub};

use jiff::{
    SignedDuration, Timestamp,
    civil::DateTime,
    tz::{AmbiguousOffset, Offset, TimeZone},
};

pub(super) const MINUTE: i64 = 60;
pub(super) const DAY: i64 = 24 * 60 * MINUTE;
/// How long what begins at midnight, and has no end of its own, lasts: until 06:00. This is more than
/// a clock skips, and leaves room for another such midnight a day later.
pub(super) const NIGHT: i64 = 6 * 60 * MINUTE;

/// A change further away than this has no effect on a reading: no clock was ever moved by more than
/// a day, and an hour is left for looking at neighboring minutes.
const REACH: i64 = DAY + 60 * MINUTE;

/// What a clock shows, in seconds since it showed 1970-01-01 00:00.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reading(i64);

/// A moment, in seconds since 1970-01-01 00:00 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Instant(i64);

/// Adds and subtracts seconds, and gives the difference of two values in seconds.
macro_rules! seconds_apart {
    ($($name:ident),*) => {$(
        impl Add<i64> for $name {
            type Output = Self;

            fn add(self, seconds: i64) -> Self {
                Self(self.0 + seconds)
            }
        }

        impl Sub<i64> for $name {
            type Output = Self;

            fn sub(self, seconds: i64) -> Self {
                Self(self.0 - seconds)
            }
        }

        impl Sub for $name {
            type Output = i64;

            fn sub(self, other: Self) -> i64 {
                self.0 - other.0
            }
        }
    )*};
}
seconds_apart!(Reading, Instant);

/// What a clock change does to a local time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// The clock skips this time: it happens at the jump.
    Skipped,
    /// The clock shows this time twice: a begin happens at the first, an end at the last.
    Repeated,
}

/// A zone's clock at an instant.
///
/// Something that begins at the reading `b` and ends at `e` is under way if `b <= reached` and
/// `over < e`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Clock {
    /// The furthest reading that has been shown or skipped.
    pub(super) reached: Reading,
    /// The furthest reading that will not be shown after this instant.
    pub(super) over: Reading,
    /// Whether the clock runs evenly through the neighboring hours, so that both are equal.
    pub(super) even: bool,
}

impl Clock {
    pub(super) fn at(zone: &TimeZone, instant: Instant) -> Self {
        let before = offset(zone, instant - REACH);
        if before == offset(zone, instant + REACH) {
            // No zone changes its clock and changes it back within so short a time; see the tests.
            let reading = Reading(instant.0 + before);
            return Self { reached: reading, over: reading, even: true };
        }
        Self::near_change(zone, instant)
    }

    /// Computes the same as `at` for any instant, by examining every change within reach.
    pub(super) fn near_change(zone: &TimeZone, instant: Instant) -> Self {
        let reading = shown(zone, instant);
        let reached = zone
            .preceding((instant + 1).timestamp())
            .map(|change| Instant::of(change.timestamp()))
            .take_while(|change| instant - *change <= REACH)
            .map(|change| shown(zone, change - 1));
        let over = zone
            .following(instant.timestamp())
            .map(|change| Instant::of(change.timestamp()))
            .take_while(|change| *change - instant <= REACH)
            .map(|change| shown(zone, change) - 1);
        Self {
            reached: reached.fold(reading, Reading::max),
            over: over.fold(reading, Reading::min),
            even: false,
        }
    }

    /// Returns the clock some seconds later, at most an hour. Only valid for an even clock.
    pub(super) fn later(self, seconds: i64) -> Self {
        Self { reached: self.reached + seconds, over: self.over + seconds, even: self.even }
    }
}

/// Returns the first instant at which a reading is shown, or the jump that skips it.
pub(super) fn reached_at(zone: &TimeZone, reading: Reading) -> Instant {
    match zone.to_ambiguous_timestamp(reading.civil()).offset() {
        AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { before: offset, .. } => {
            shown_at(reading, offset)
        }
        AmbiguousOffset::Gap { after, .. } => jump(zone, reading, after),
    }
}

/// Returns the last instant at which a reading is shown, or the jump that skips it.
pub(super) fn over_at(zone: &TimeZone, reading: Reading) -> Instant {
    match zone.to_ambiguous_timestamp(reading.civil()).offset() {
        AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { after: offset, .. } => {
            shown_at(reading, offset)
        }
        AmbiguousOffset::Gap { after, .. } => jump(zone, reading, after),
    }
}

/// Returns the instant at which the clock is set forward over a reading, to the offset `after`.
fn jump(zone: &TimeZone, reading: Reading, after: Offset) -> Instant {
    let change = zone
        .following(shown_at(reading, after).timestamp())
        .find(|change| change.offset() == after)
        .expect("a reading is skipped only by a change of the clock");
    Instant::of(change.timestamp())
}

/// Returns when a clock that is ahead of UTC by an offset shows a reading.
fn shown_at(reading: Reading, offset: Offset) -> Instant {
    Instant(reading.0 - i64::from(offset.seconds()))
}

/// Returns what a change of the clock does to a reading, if anything.
pub(super) fn moved(zone: &TimeZone, reading: Reading) -> Option<Moved> {
    match zone.to_ambiguous_timestamp(reading.civil()).offset() {
        AmbiguousOffset::Unambiguous { .. } => None,
        AmbiguousOffset::Gap { .. } => Some(Moved::Skipped),
        AmbiguousOffset::Fold { .. } => Some(Moved::Repeated),
    }
}

/// Returns what the clock shows.
pub(super) fn shown(zone: &TimeZone, instant: Instant) -> Reading {
    Reading(instant.0 + offset(zone, instant))
}

/// Returns the instant of the clock change within a day of another instant; of several, the
/// nearest.
pub(super) fn change_near(zone: &TimeZone, instant: Instant) -> Option<Instant> {
    let changes = |at: &Instant| offset(zone, *at - 1) != offset(zone, *at);
    let before = zone.preceding((instant + 1).timestamp());
    let after = zone.following(instant.timestamp());
    let near = |at: &Instant| (*at - instant).abs() <= DAY;
    let at = |change: jiff::tz::TimeZoneTransition<'_>| Instant::of(change.timestamp());
    (before.map(at).take_while(near))
        .chain(after.map(at).take_while(near))
        .filter(changes)
        .min_by_key(|at| (*at - instant).abs())
}

/// Returns the seconds by which the clock is ahead of UTC.
fn offset(zone: &TimeZone, instant: Instant) -> i64 {
    i64::from(zone.to_offset(instant.timestamp()).seconds())
}

impl Reading {
    /// Converts a date and time; fractions of a second are cut off.
    pub(super) fn of(civil: DateTime) -> Self {
        let epoch = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
        Self(civil.duration_since(epoch).as_secs())
    }

    /// Returns the midnight at which a day begins, given its number since 1970-01-01.
    pub(super) fn midnight(day: i64) -> Self {
        Self(day * DAY)
    }

    /// Returns the number of its day since 1970-01-01.
    pub(super) fn day(self) -> i64 {
        self.0.div_euclid(DAY)
    }

    /// Converts to a date and time, clamped to jiff's range.
    pub(super) fn civil(self) -> DateTime {
        Offset::UTC.to_datetime(Instant(self.0).timestamp())
    }
}

impl Instant {
    /// Returns the last whole second at or before a timestamp.
    pub(super) fn of(at: Timestamp) -> Self {
        let second = at.as_second();
        let below = at.duration_since(Timestamp::constant(second, 0)) < SignedDuration::ZERO;
        Self(second - i64::from(below))
    }

    /// Converts to a timestamp, clamped to jiff's range.
    pub(super) fn timestamp(self) -> Timestamp {
        let seconds = (self.0).clamp(Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
        Timestamp::from_second(seconds).expect("it was just brought into range")
    }
}
