//! Calendar months as people write them.

use std::{fmt, str::FromStr};

use jiff::{Timestamp, ToSpan as _, civil::Date, tz::TimeZone};

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
    fn what_names_no_month_is_refused() {
        for text in ["", "2026", "2026-13", "2026-1", "2026-10-01", "10-2026"] {
            assert_eq!(text.parse::<Month>(), Err(NotAMonth), "{text}");
        }
    }
}
