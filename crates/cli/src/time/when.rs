//! Times as people write them: one grammar for every option that takes one.
//!
//! Nothing here reads a clock or knows a zone: a [`When`] is what was written, and [`When::resolve`]
//! turns it into an instant.

use std::{fmt, str::FromStr};

use domain::schedule::{self, Schedule};
use jiff::{
    Timestamp, ToSpan as _, Zoned,
    civil::{Date, Time, Weekday},
    tz::{AmbiguousOffset, TimeZone},
};
use report::nearest::nearest;

use super::Length;

/// Words for days. Weekdays may be shortened to three letters.
const DAYS: [(&str, Day); 10] = [
    ("today", Day::InDays(0)),
    ("tomorrow", Day::InDays(1)),
    ("yesterday", Day::InDays(-1)),
    ("monday", Day::Weekday(Weekday::Monday)),
    ("tuesday", Day::Weekday(Weekday::Tuesday)),
    ("wednesday", Day::Weekday(Weekday::Wednesday)),
    ("thursday", Day::Weekday(Weekday::Thursday)),
    ("friday", Day::Weekday(Weekday::Friday)),
    ("saturday", Day::Weekday(Weekday::Saturday)),
    ("sunday", Day::Weekday(Weekday::Sunday)),
];

/// The word for the schedule's next edge.
const NEXT_EDGE: &str = "next-edge";

/// A time, as a person writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct When {
    text: String,
    said: Said,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    /// `2h`: this far from now.
    Away(Length),
    /// `in 2h`: this long after now.
    Ahead(Length),
    At(Timestamp),
    Clock(TimeOfDay),
    /// On a day, at a time; the whole day without one.
    On(Day, Option<TimeOfDay>),
    NextEdge,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Day {
    InDays(i32),
    /// The nearest day of this name in the direction of the option.
    Weekday(Weekday),
    /// `next monday`: the first one after today.
    Next(Weekday),
    Date(Date),
}

/// A clock reading, in seconds from midnight. 24:00 is the end of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TimeOfDay(i64);

/// Which instant an option asks for. This decides what `2h`, `21:00` or `monday` is: ago or ahead,
/// and the first or the last instant of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// The beginning of a time that is over.
    PastBegin,
    /// The end of a time that is over.
    PastEnd,
    /// The beginning of a time to come.
    Begin,
    /// The end of a time to come.
    End,
}

impl Asked {
    fn is_past(self) -> bool {
        matches!(self, Self::PastBegin | Self::PastEnd)
    }

    fn is_end(self) -> bool {
        matches!(self, Self::PastEnd | Self::End)
    }

    /// Reports whether an instant lies in the direction that is asked for.
    fn has(self, at: Timestamp, now: Timestamp) -> bool {
        if self.is_past() { at < now } else { at > now }
    }
}

/// Not a valid time, or one that means no instant here: why, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}write a time such as 2h, 21:00 or \"friday 18:00\"")]
pub struct NotAWhen(String);

impl NotAWhen {
    fn near(word: &str) -> Self {
        let words = DAYS.map(|(name, _)| name).into_iter();
        let near = nearest(word, words.chain(["noon", "midnight", NEXT_EDGE]));
        Self(near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default())
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<Length> for When {
    fn from(length: Length) -> Self {
        Self { text: report::time::length(length.duration()), said: Said::Away(length) }
    }
}

impl FromStr for When {
    type Err = NotAWhen;

    fn from_str(text: &str) -> Result<Self, NotAWhen> {
        let text = text.trim().to_owned();
        let instant =
            text.parse().or_else(|_| text.parse::<Zoned>().map(|zoned| zoned.timestamp()));
        let said = match instant {
            Ok(at) => Said::At(at),
            Err(_) => Said::parse(&text.to_lowercase())?,
        };
        Ok(Self { text, said })
    }
}

impl Said {
    fn parse(text: &str) -> Result<Self, NotAWhen> {
        if text == NEXT_EDGE {
            return Ok(Self::NextEdge);
        }
        if let Some(time) = TimeOfDay::parse(text) {
            return Ok(Self::Clock(time));
        }
        if let Some(length) = text.strip_prefix('+').or_else(|| text.strip_prefix("in ")) {
            return length.parse().map(Self::Ahead).map_err(|_| NotAWhen::near(length));
        }
        if let Ok(length) = text.parse() {
            return Ok(Self::Away(length));
        }
        if text == "tonight" {
            return Err(NotAWhen("`tonight` has no hour; ".to_owned()));
        }
        let (is_next, text) = match text.strip_prefix("next ") {
            Some(rest) => (true, rest.trim_start()),
            None => (false, text),
        };
        let (day, time) = match text.split_once('t') {
            Some((date, time)) if parse_date(date).is_some() => (date, Some(time)),
            _ => match text.split_once(char::is_whitespace) {
                Some((day, time)) => (day, Some(time)),
                None => (text, None),
            },
        };
        let day = match (is_next, Day::parse(day)?) {
            (false, day) => day,
            (true, Day::Weekday(weekday)) => Day::Next(weekday),
            (true, Day::InDays(_) | Day::Next(_) | Day::Date(_)) => {
                return Err(NotAWhen("`next` is followed by a weekday; ".to_owned()));
            }
        };
        let Some(time) = time else { return Ok(Self::On(day, None)) };
        let time = time.trim();
        let time = time.strip_prefix("at ").unwrap_or(time);
        if time == "midnight" {
            return Err(NotAWhen("a day begins at 00:00 and ends at 24:00; ".to_owned()));
        }
        let time = TimeOfDay::parse(time).ok_or_else(|| NotAWhen::near(time))?;
        Ok(Self::On(day, Some(time)))
    }
}

impl Day {
    fn parse(word: &str) -> Result<Self, NotAWhen> {
        if let Some(date) = parse_date(word) {
            return Ok(Self::Date(date));
        }
        let names = |name: &str, day: Self| {
            name == word || matches!(day, Self::Weekday(_)) && name.get(..3) == Some(word)
        };
        let known = DAYS.into_iter().find(|&(name, day)| names(name, day));
        known.map(|(_, day)| day).ok_or_else(|| NotAWhen::near(word))
    }

    /// The calendar date, as seen from `today`. `None` past the end of the calendar.
    fn date(self, asked: Asked, today: Date) -> Option<Date> {
        let days = match self {
            Self::InDays(days) => days,
            Self::Date(date) => return Some(date),
            Self::Weekday(weekday) if asked.is_past() => -after_today(weekday, today.weekday()),
            Self::Weekday(weekday) | Self::Next(weekday) => after_today(today.weekday(), weekday),
        };
        today.checked_add(days.days()).ok()
    }
}

/// The days from one weekday to the next of a name: at least one.
fn after_today(from: Weekday, to: Weekday) -> i32 {
    match from.until(to) {
        0 => 7,
        days => i32::from(days),
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

    /// Reads `noon`, `midnight`, `9am`, `9:30pm`, and `HH:MM` or `HH:MM:SS` up to 24:00.
    fn parse(text: &str) -> Option<Self> {
        match text {
            "noon" => return Some(Self(12 * 60 * 60)),
            "midnight" => return Some(Self(0)),
            "24:00" => return Some(Self::END_OF_DAY),
            _ => {}
        }
        let digits = |part: &str| part.chars().take_while(char::is_ascii_digit).count();
        if text.split(':').skip(1).any(|part| digits(part) != 2) {
            return None;
        }
        let formats = ["%H:%M", "%H:%M:%S", "%I %p", "%I:%M %p"];
        let time = formats.iter().find_map(|format| Time::strptime(format, text).ok())?;
        Some(Self(time.duration_since(Time::midnight()).as_secs()))
    }

    /// The instant at which a zone's clock shows this time on a day. If it skips the time, that is
    /// the jump; if it shows it twice, the first one for a beginning and the last one for an end.
    fn on(self, date: Date, asked: Asked, zone: &TimeZone) -> Option<Timestamp> {
        let reading = date.at(0, 0, 0, 0).checked_add(self.0.seconds()).ok()?;
        let ambiguous = zone.to_ambiguous_timestamp(reading);
        match ambiguous.offset() {
            AmbiguousOffset::Fold { .. } if !asked.is_end() => ambiguous.earlier().ok(),
            AmbiguousOffset::Unambiguous { .. }
            | AmbiguousOffset::Gap { .. }
            | AmbiguousOffset::Fold { .. } => Some(schedule::ends_at(zone, reading)),
        }
    }
}

/// For whom and when a time is read.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    pub now: Timestamp,
    /// The zone of days and clock readings.
    pub zone: &'a TimeZone,
    /// The schedule of which `next-edge` is an edge.
    pub schedule: Option<&'a Schedule>,
}

impl When {
    /// The instant that is meant. Whether that is before or after now is left to the caller.
    pub fn resolve(&self, asked: Asked, reader: Reader<'_>) -> Result<Timestamp, NotAWhen> {
        let Reader { now, zone, schedule } = reader;
        let no = |why| NotAWhen(format!("`{}` {why}: ", self.text));
        let today = now.to_zoned(zone.clone()).date();
        let towards = if asked.is_past() { -1 } else { 1 };
        let on =
            |time: TimeOfDay, days: i32| time.on(today.checked_add(days.days()).ok()?, asked, zone);
        let at = match self.said {
            Said::At(at) => Some(at),
            Said::Away(length) if asked.is_past() => now.checked_sub(length.duration()).ok(),
            Said::Away(length) | Said::Ahead(length) => now.checked_add(length.duration()).ok(),
            Said::Clock(time) => nearest_day(asked, now, 0, towards, |days| on(time, days)),
            Said::On(Day::Weekday(weekday), Some(time)) => {
                // At ten on a Friday, `friday 18:00` is today.
                let first = if asked.is_past() {
                    -i32::from(weekday.until(today.weekday()))
                } else {
                    i32::from(today.weekday().until(weekday))
                };
                nearest_day(asked, now, first, 7 * towards, |days| on(time, days))
            }
            Said::On(day, time) => {
                let whole = if asked.is_end() { TimeOfDay::END_OF_DAY } else { TimeOfDay(0) };
                let date = day.date(asked, today);
                date.and_then(|date| time.unwrap_or(whole).on(date, asked, zone))
            }
            Said::NextEdge => {
                let schedule = schedule.ok_or_else(|| no("needs a schedule"))?;
                // An edge to no desired state neither starts nor stops anything.
                let edge = schedule.edges(now).find(|edge| edge.desired.is_some());
                Some(edge.ok_or_else(|| no("never comes: its schedule has no edges"))?.at)
            }
        };
        at.ok_or_else(|| no("is beyond the end of the calendar"))
    }

    /// The end that is meant of something that begins later. A length counts from its begin; a day or
    /// a time is the one that is meant now, unless that is before it.
    pub fn resolve_end(&self, begin: Timestamp, reader: Reader<'_>) -> Result<Timestamp, NotAWhen> {
        let is_length = matches!(self.said, Said::Away(_) | Said::Ahead(_));
        let by_now = self.resolve(Asked::End, reader).ok();
        match by_now.filter(|at| *at > begin && !is_length) {
            Some(at) => Ok(at),
            None => self.resolve(Asked::End, Reader { now: begin, ..reader }),
        }
    }
}

/// The instant on the first day if it lies in the direction that is asked for, or else the one so many
/// days away. A clock change may have that one be now, or still to come: then the one after it.
fn nearest_day(
    asked: Asked,
    now: Timestamp,
    first: i32,
    away: i32,
    on: impl Fn(i32) -> Option<Timestamp>,
) -> Option<Timestamp> {
    (0..3).find_map(|times| on(first + times * away).filter(|at| asked.has(*at, now)))
}

#[cfg(test)]
mod tests;
