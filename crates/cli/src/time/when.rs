//! Instants as people write them.

use std::{fmt, str::FromStr};

use jiff::{
    Timestamp, ToSpan as _, Zoned,
    civil::{Date, DateTime},
    tz::TimeZone,
};

use super::Length;

/// An instant, as a person writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// An exact instant.
    Instant(Timestamp),
    /// A local time, in a zone that depends on the subject.
    Local(DateTime),
}

/// Not a valid instant.
#[derive(Debug, thiserror::Error)]
#[error(
    "write an instant such as 2026-06-15T07:00:00Z, or a local time such as \"2026-06-15 09:00\""
)]
pub struct NotAnInstant;

impl FromStr for When {
    type Err = NotAnInstant;

    fn from_str(text: &str) -> Result<Self, NotAnInstant> {
        let instant =
            text.parse().or_else(|_| text.parse::<Zoned>().map(|zoned| zoned.timestamp()));
        match instant {
            Ok(instant) => Ok(Self::Instant(instant)),
            Err(_) => text.parse().map(Self::Local).map_err(|_| NotAnInstant),
        }
    }
}

impl When {
    /// The instant. A local time is taken in `zone`.
    pub fn instant(self, zone: &TimeZone) -> Result<Timestamp, jiff::Error> {
        match self {
            Self::Instant(instant) => Ok(instant),
            Self::Local(local) => Ok(local.to_zoned(zone.clone())?.timestamp()),
        }
    }
}

/// An instant in the past, as a person writes it.
#[derive(Debug, Clone, Copy)]
pub enum Moment {
    /// This long ago.
    Ago(Length),
    /// At this time.
    When(When),
}

/// Not a valid instant in the past.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "write how long ago, such as 36h or 7d, a day or local time such as 2026-10-01 or \
     \"2026-10-01 09:00\", or an instant such as 2026-10-01T07:00:00Z"
)]
pub struct NotAMoment;

impl FromStr for Moment {
    type Err = NotAMoment;

    fn from_str(text: &str) -> Result<Self, NotAMoment> {
        let when = text.parse().map(Self::When);
        when.or_else(|_| text.parse().map(Self::Ago).map_err(|_| NotAMoment))
    }
}

impl Moment {
    /// The instant, relative to `now`. A local time is taken in `zone`.
    pub fn instant(self, zone: &TimeZone, now: Timestamp) -> Result<Timestamp, jiff::Error> {
        match self {
            Self::Ago(length) => now.checked_sub(length.duration()),
            Self::When(when) => when.instant(zone),
        }
    }
}

/// A calendar month, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Month(Date);

/// Not a valid month.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write a month such as 2026-10")]
pub struct NotAMonth;

impl FromStr for Month {
    type Err = NotAMonth;

    fn from_str(text: &str) -> Result<Self, NotAMonth> {
        let shape = text.len() == "2026-10".len();
        let first = format!("{text}-01").parse();
        first.ok().filter(|_| shape).map(Self).ok_or(NotAMonth)
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.strftime("%Y-%m"))
    }
}

impl Month {
    /// The beginning of the month and of the next one.
    pub fn bounds(self) -> Result<[Timestamp; 2], jiff::Error> {
        let first = |date: Date| date.to_zoned(TimeZone::UTC).map(|midnight| midnight.timestamp());
        Ok([first(self.0)?, first(self.0.checked_add(1.month())?)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_and_local_times_are_distinguished() {
        for text in [
            "2026-06-15T07:00:00Z",
            "2026-06-15 07:00:00Z",
            "2026-06-15T09:00:00+02:00",
            "2026-06-15T09:00[Europe/Berlin]",
        ] {
            let expected = When::Instant("2026-06-15T07:00:00Z".parse().unwrap());
            assert_eq!(text.parse::<When>().unwrap(), expected, "{text}");
        }
        for text in ["2026-06-15 09:00", "2026-06-15T09:00", "2026-06-15T09:00:00"] {
            let expected = When::Local("2026-06-15T09:00".parse().unwrap());
            assert_eq!(text.parse::<When>().unwrap(), expected, "{text}");
        }
        for text in ["", "09:00", "tomorrow", "2026-02-30", "15.06.2026"] {
            assert!(text.parse::<When>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_names_no_moment_or_month_is_refused() {
        for text in ["", "7", "-7d", "0s", "yesterday", "2026-10", "2026-02-30"] {
            assert!(text.parse::<Moment>().is_err(), "{text}");
        }
        for text in ["", "2026", "2026-13", "2026-1", "2026-10-01", "10-2026"] {
            assert_eq!(text.parse::<Month>(), Err(NotAMonth), "{text}");
        }
    }
}
