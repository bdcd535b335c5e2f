//! What a zone's clock has shown up to an instant, and what it will show again.
//!
//! A clock that is set forward skips readings, one that is set back repeats them. Two questions
//! settle both cases without any search for the change itself: which reading has been *reached*,
//! and which is *over* and will not be shown again? A skipped reading is reached, and over, at the
//! jump; a repeated one is reached at its first occurrence and over at its last.
//!
//! Readings and instants are whole seconds: a reading counts them from 1970-01-01 00:00 on the
//! clock, an instant from the same moment in UTC.

use jiff::{
    SignedDuration, Timestamp,
    civil::DateTime,
    tz::{AmbiguousOffset, Offset, TimeZone},
};

use super::explain::Moved;

pub(super) const MINUTE: i64 = 60;
pub(super) const DAY: i64 = 24 * 60 * MINUTE;

/// A change further away than this has no effect on a reading: no clock was ever moved by more
/// than a day, and an hour is left for looking at neighbouring minutes.
const REACH: i64 = DAY + 60 * MINUTE;

/// A zone's clock at an instant.
///
/// Something that begins at the reading `b` and ends at `e` is under way if `b <= reached` and
/// `over < e`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Clock {
    /// The furthest reading that has been shown or skipped.
    pub(super) reached: i64,
    /// The furthest reading that will not be shown after this instant.
    pub(super) over: i64,
    /// Whether the clock runs evenly through the neighbouring hours, so that both are equal.
    pub(super) even: bool,
}

impl Clock {
    pub(super) fn at(zone: &TimeZone, instant: i64) -> Self {
        let before = offset(zone, instant - REACH);
        if before == offset(zone, instant + REACH) {
            // No zone moves its clock and moves it back within so short a time, see the tests.
            let reading = instant + before;
            return Self {
                reached: reading,
                over: reading,
                even: true,
            };
        }
        Self::near_change(zone, instant)
    }

    /// The same as `at`, for any instant, by looking at every change within reach.
    pub(super) fn near_change(zone: &TimeZone, instant: i64) -> Self {
        let reading = instant + offset(zone, instant);
        let reached = zone
            .preceding(timestamp(instant + 1))
            .map(|change| change.timestamp().as_second())
            .take_while(|change| instant - change <= REACH)
            .map(|change| change + offset(zone, change - 1) - 1);
        let over = zone
            .following(timestamp(instant))
            .map(|change| change.timestamp().as_second())
            .take_while(|change| change - instant <= REACH)
            .map(|change| change + offset(zone, change) - 1);
        Self {
            reached: reached.fold(reading, i64::max),
            over: over.fold(reading, i64::min),
            even: false,
        }
    }

    /// The clock some seconds later, at most an hour, if it is even.
    pub(super) fn later(self, seconds: i64) -> Self {
        Self {
            reached: self.reached + seconds,
            over: self.over + seconds,
            even: self.even,
        }
    }
}

/// The first instant at which a reading is shown, or the jump that skips it.
pub(super) fn reached_at(zone: &TimeZone, reading: i64) -> i64 {
    match zone.to_ambiguous_timestamp(civil(reading)).offset() {
        AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { before: offset, .. } => {
            reading - seconds(offset)
        }
        AmbiguousOffset::Gap { after, .. } => jump(zone, reading, after),
    }
}

/// The last instant at which a reading is shown, or the jump that skips it.
pub(super) fn over_at(zone: &TimeZone, reading: i64) -> i64 {
    match zone.to_ambiguous_timestamp(civil(reading)).offset() {
        AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { after: offset, .. } => {
            reading - seconds(offset)
        }
        AmbiguousOffset::Gap { after, .. } => jump(zone, reading, after),
    }
}

/// The instant at which the clock is set forward over a reading, to the offset `after`.
fn jump(zone: &TimeZone, reading: i64, after: Offset) -> i64 {
    zone.following(timestamp(reading - seconds(after)))
        .find(|change| change.offset() == after)
        .expect("a reading is skipped only by a change of the clock")
        .timestamp()
        .as_second()
}

/// What a change of the clock does to a reading, if anything.
pub(super) fn moved(zone: &TimeZone, reading: i64) -> Option<Moved> {
    match zone.to_ambiguous_timestamp(civil(reading)).offset() {
        AmbiguousOffset::Unambiguous { .. } => None,
        AmbiguousOffset::Gap { .. } => Some(Moved::Skipped),
        AmbiguousOffset::Fold { .. } => Some(Moved::Repeated),
    }
}

/// What the clock shows.
pub(super) fn shown(zone: &TimeZone, instant: i64) -> i64 {
    instant + offset(zone, instant)
}

/// The instant of the change of the clock within a day of another instant; the nearest of several.
pub(super) fn change_near(zone: &TimeZone, instant: i64) -> Option<i64> {
    let changes = |at: &i64| offset(zone, at - 1) != offset(zone, *at);
    let before = zone.preceding(timestamp(instant + 1));
    let after = zone.following(timestamp(instant));
    let near = |at: &i64| (at - instant).abs() <= DAY;
    let at = |transition: jiff::tz::TimeZoneTransition<'_>| transition.timestamp().as_second();
    (before.map(at).take_while(near))
        .chain(after.map(at).take_while(near))
        .filter(changes)
        .min_by_key(|at| (at - instant).abs())
}

/// The seconds by which the clock is ahead of UTC.
fn offset(zone: &TimeZone, instant: i64) -> i64 {
    seconds(zone.to_offset(timestamp(instant)))
}

fn seconds(offset: Offset) -> i64 {
    i64::from(offset.seconds())
}

/// A reading as date and time.
pub(super) fn civil(reading: i64) -> DateTime {
    Offset::UTC.to_datetime(timestamp(reading))
}

/// A date and time as reading; below a second is cut off.
pub(super) fn reading(civil: DateTime) -> i64 {
    let epoch = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
    civil.duration_since(epoch).as_secs()
}

/// An instant as timestamp; beyond jiff's years it is their first or last.
pub(super) fn timestamp(instant: i64) -> Timestamp {
    let instant = instant.clamp(Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
    Timestamp::from_second(instant).expect("it was just brought into range")
}

/// The last whole second at or before a timestamp.
pub(super) fn instant(at: Timestamp) -> i64 {
    let second = at.as_second();
    let below = at.duration_since(Timestamp::constant(second, 0)) < SignedDuration::ZERO;
    second - i64::from(below)
}

/// The IANA zone of this name.
pub(super) fn zone(name: &str) -> Result<TimeZone, String> {
    match TimeZone::get(name) {
        Ok(zone) if !zone.is_unknown() => Ok(zone),
        Ok(_) | Err(_) => {
            let advice = match nearest_zones(name).as_slice() {
                [] => "write an IANA name such as Europe/Berlin".to_owned(),
                names => format!("did you mean {}?", names.join(", ")),
            };
            Err(format!("no time zone is called `{name}`; {advice}"))
        }
    }
}

/// At most three known names that look like this one, or whose city does; the likeliest first.
fn nearest_zones(name: &str) -> Vec<String> {
    const LIKE: f64 = 0.85;
    let city = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
    let given = name.trim().to_lowercase().replace(' ', "_");
    let mut likely: Vec<(f64, String)> = jiff::tz::db()
        .available()
        .map(|known| {
            let lower = known.as_str().to_lowercase();
            let whole = strsim::jaro_winkler(&given, &lower);
            let part = strsim::jaro_winkler(&city(&given), &city(&lower));
            (whole.max(part), known.as_str().to_owned())
        })
        .filter(|(likeness, _)| *likeness >= LIKE)
        .collect();
    likely.sort_by(|(a, a_name), (b, b_name)| b.total_cmp(a).then_with(|| a_name.cmp(b_name)));
    likely.into_iter().take(3).map(|(_, name)| name).collect()
}
