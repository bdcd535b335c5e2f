//! End times as people write them, such as `--for 2h` or `--until friday`, and the instants they
//! mean.
//!
//! Nothing here reads a clock or knows a zone: an [`End`] is what was written, and
//! [`End::resolve`] turns it into an instant, for a person in a zone at a given time.

use std::str::FromStr;

use domain::schedule::{self, Schedule};
use jiff::{
    SignedDuration, Timestamp, ToSpan as _, Zoned,
    civil::{Date, DateTime, Weekday},
    tz::{AmbiguousOffset, TimeZone},
};

use crate::{
    resolve::nearest::nearest,
    time::{Length, When, local},
};

/// Words for days. Weekdays may be shortened to three letters.
const DAYS: [(&str, Day); 9] = [
    ("today", Day::Today),
    ("tomorrow", Day::Tomorrow),
    ("monday", Day::Next(Weekday::Monday)),
    ("tuesday", Day::Next(Weekday::Tuesday)),
    ("wednesday", Day::Next(Weekday::Wednesday)),
    ("thursday", Day::Next(Weekday::Thursday)),
    ("friday", Day::Next(Weekday::Friday)),
    ("saturday", Day::Next(Weekday::Saturday)),
    ("sunday", Day::Next(Weekday::Sunday)),
];

/// The word for the schedule's next edge.
const NEXT_EDGE: &str = "next-edge";

/// Anything further away is taken for a typo.
const AT_MOST_YEARS: i64 = 10;

/// An end time, as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// This long after now.
    After(SignedDuration),
    /// At this instant.
    At(Timestamp),
    /// When the clock next shows this time.
    Clock(TimeOfDay),
    /// On a day, at a time. Without a time, at the end of the day.
    On(Day, Option<TimeOfDay>),
    /// When the schedule next starts or stops something.
    NextEdge,
}

/// A day, as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Day {
    /// The current day.
    Today,
    /// The day after.
    Tomorrow,
    /// The next day with this name. Today, if it has that name.
    Next(Weekday),
    /// A calendar date.
    Date(Date),
}

/// A clock reading, in seconds from midnight. 24:00 is the end of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeOfDay(i64);

impl From<Length> for End {
    fn from(length: Length) -> Self {
        Self::After(length.duration())
    }
}

/// Not a valid end time; `near` is what was probably meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", match .near {
    Some(near) => format!("did you mean `{near}`?"),
    None => "write a time such as 22:00, a day such as friday, tomorrow or 2026-11-24, both as in \
             \"friday 22:00\", an instant such as 2026-11-24T21:00:00Z, or next-edge".to_owned(),
})]
pub struct NotAnEnd {
    near: Option<&'static str>,
}

impl FromStr for End {
    type Err = NotAnEnd;

    fn from_str(text: &str) -> Result<Self, NotAnEnd> {
        let text = text.trim();
        if text.eq_ignore_ascii_case(NEXT_EDGE) {
            return Ok(Self::NextEdge);
        }
        if let Some(time) = TimeOfDay::parse(text) {
            return Ok(Self::Clock(time));
        }
        if let Ok(When::Instant(at)) = text.parse() {
            return Ok(Self::At(at));
        }
        let (day, time) = match text.split_once(char::is_whitespace) {
            Some((day, time)) => (day, Some(time)),
            None => match text.split_once('T') {
                Some((date, time)) if parse_date(date).is_some() => (date, Some(time)),
                Some(_) | None => (text, None),
            },
        };
        let known = Day::parse(day)?;
        let time = time.map(|time| TimeOfDay::parse(time).ok_or(NotAnEnd { near: None }));
        Ok(Self::On(known, time.transpose()?))
    }
}

impl Day {
    fn parse(text: &str) -> Result<Self, NotAnEnd> {
        if let Some(date) = parse_date(text) {
            return Ok(Self::Date(date));
        }
        let word = text.to_lowercase();
        let names = |name: &str, day: Self| {
            name == word || matches!(day, Self::Next(_)) && name.get(..3) == Some(&word)
        };
        let known = DAYS.into_iter().find(|&(name, day)| names(name, day));
        known.map(|(_, day)| day).ok_or_else(|| NotAnEnd {
            near: nearest(&word, DAYS.map(|(name, _)| name).into_iter().chain([NEXT_EDGE])),
        })
    }

    /// The calendar date meant, as seen from `today`. `None` past the end of the calendar.
    fn from(self, today: Date) -> Option<Date> {
        match self {
            Self::Today => Some(today),
            Self::Tomorrow => today.tomorrow().ok(),
            Self::Next(weekday) => {
                let days = today.weekday().until(weekday);
                today.checked_add(days.days()).ok()
            }
            Self::Date(date) => Some(date),
        }
    }
}

/// Reads `YYYY-MM-DD`, and no other date format.
fn parse_date(text: &str) -> Option<Date> {
    let plain = |(at, c): (usize, u8)| match at {
        4 | 7 => c == b'-',
        _ => c.is_ascii_digit(),
    };
    let plain = text.len() == 10 && text.bytes().enumerate().all(plain);
    text.parse().ok().filter(|_| plain)
}

impl TimeOfDay {
    const END_OF_DAY: Self = Self(24 * 60 * 60);

    /// Reads `HH:MM` or `HH:MM:SS`, up to 24:00.
    fn parse(text: &str) -> Option<Self> {
        let number = |part: &str, most: i64| {
            let plain = (1..=2).contains(&part.len()) && part.bytes().all(|c| c.is_ascii_digit());
            part.parse::<i64>().ok().filter(|&n| plain && n <= most)
        };
        let (hour, rest) = text.split_once(':')?;
        let (minute, second) = rest.split_once(':').unwrap_or((rest, "00"));
        if minute.len() != 2 || second.len() != 2 {
            return None;
        }
        let minutes = number(hour, 24)? * 60 + number(minute, 59)?;
        let time = Self(minutes * 60 + number(second, 59)?);
        (time.0 <= Self::END_OF_DAY.0).then_some(time)
    }

    /// The instant at which a zone's clock shows this time on a day: the last one, if it does so
    /// twice.
    fn on(self, date: Date, zone: &TimeZone) -> Option<ResolvedEnd> {
        let midnight = date.at(0, 0, 0, 0);
        let reading = midnight.checked_add(self.0.seconds()).ok()?;
        let clock = match zone.to_ambiguous_timestamp(reading).offset() {
            AmbiguousOffset::Unambiguous { .. } => ClockReading::Once,
            AmbiguousOffset::Gap { .. } => ClockReading::Skipped(reading),
            AmbiguousOffset::Fold { .. } => ClockReading::Repeated(reading),
        };
        Some(ResolvedEnd { at: schedule::ends_at(zone, reading), clock })
    }
}

/// The instant that was meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResolvedEnd {
    /// The instant.
    pub at: Timestamp,
    /// What the clock does at that time.
    pub clock: ClockReading,
}

/// What a clock does at a time that a person wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockReading {
    /// It shows the time once, or no time was written.
    Once,
    /// It is set forward past this reading.
    Skipped(DateTime),
    /// It is set back, and shows this reading twice.
    Repeated(DateTime),
}

impl ResolvedEnd {
    fn plainly(at: Timestamp) -> Self {
        Self { at, clock: ClockReading::Once }
    }

    /// Explains the reading if the clock changes in `zone`. `None` if it does not.
    #[must_use]
    pub fn remark(&self, zone: &TimeZone) -> Option<String> {
        let understood = local(self.at, zone);
        let written = |reading: DateTime| reading.strftime("%H:%M on %a %Y-%m-%d").to_string();
        match self.clock {
            ClockReading::Once => None,
            ClockReading::Skipped(reading) => Some(format!(
                "the clock skips {}: understood as the jump, {understood}",
                written(reading)
            )),
            ClockReading::Repeated(reading) => Some(format!(
                "the clock shows {} twice: understood as the last time, {understood}",
                written(reading)
            )),
        }
    }
}

/// An end time that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndError {
    /// It is not in the future.
    #[error("that was understood as {understood}, which is not after now, {now}")]
    NotAfterNow {
        /// The instant that was understood, in a person's format.
        understood: String,
        /// The current time, in a person's format.
        now: String,
    },
    /// It is too far away to be intended.
    #[error("that is more than {AT_MOST_YEARS} years away")]
    TooFar,
    /// `next-edge`, but there is no schedule.
    #[error("`{NEXT_EDGE}` is an edge of a schedule, and it follows none: write a time or a span")]
    NoSchedule,
    /// `next-edge`, but the schedule has none.
    #[error("its schedule has no next edge: write a time or a span")]
    NoEdge,
}

impl End {
    /// The same as a begin: a day without a time begins at its midnight.
    #[must_use]
    pub fn as_begin(self) -> Self {
        match self {
            Self::On(day, None) => Self::On(day, Some(TimeOfDay(0))),
            Self::After(_) | Self::At(_) | Self::Clock(_) | Self::On(..) | Self::NextEdge => self,
        }
    }

    /// The instant meant by a person in `zone`, after `now`. `next-edge` means the next edge of
    /// `schedule`.
    pub fn resolve(
        self,
        now: Timestamp,
        zone: &TimeZone,
        schedule: Option<&Schedule>,
    ) -> Result<ResolvedEnd, EndError> {
        let here = now.to_zoned(zone.clone());
        let understood = match self {
            Self::After(lasting) => now.checked_add(lasting).ok().map(ResolvedEnd::plainly),
            Self::At(at) => Some(ResolvedEnd::plainly(at)),
            Self::Clock(time) => next_on(time, here.date(), now, zone),
            Self::On(day, time) => on(day, time, here.date(), now, zone),
            Self::NextEdge => Some(next_edge(schedule, now)?),
        };
        let latest = here.checked_add(AT_MOST_YEARS.years());
        let understood = understood.filter(|understood| {
            let near = |latest: &Zoned| understood.at <= latest.timestamp();
            latest.as_ref().map_or(true, near)
        });
        let understood = understood.ok_or(EndError::TooFar)?;
        if understood.at <= now {
            return Err(EndError::NotAfterNow {
                understood: local(understood.at, zone),
                now: local(now, zone),
            });
        }
        Ok(understood)
    }
}

/// When the clock next shows a time: today, or otherwise tomorrow.
fn next_on(time: TimeOfDay, today: Date, now: Timestamp, zone: &TimeZone) -> Option<ResolvedEnd> {
    let today_at = time.on(today, zone)?;
    if today_at.at > now { Some(today_at) } else { time.on(today.tomorrow().ok()?, zone) }
}

fn on(
    day: Day,
    time: Option<TimeOfDay>,
    today: Date,
    now: Timestamp,
    zone: &TimeZone,
) -> Option<ResolvedEnd> {
    let date = day.from(today)?;
    let understood = time.unwrap_or(TimeOfDay::END_OF_DAY).on(date, zone)?;
    match (day, time) {
        // `friday 18:00` on a Friday evening is a week away.
        (Day::Next(_), Some(time)) if understood.at <= now => {
            time.on(date.checked_add(1.week()).ok()?, zone)
        }
        _ => Some(understood),
    }
}

/// The next edge that starts or stops something. An edge to no desired state does neither.
fn next_edge(schedule: Option<&Schedule>, now: Timestamp) -> Result<ResolvedEnd, EndError> {
    let schedule = schedule.ok_or(EndError::NoSchedule)?;
    let edge = schedule.edges(now).find(|edge| edge.desired.is_some());
    edge.map(|edge| ResolvedEnd::plainly(edge.at)).ok_or(EndError::NoEdge)
}

#[cfg(test)]
mod tests;
