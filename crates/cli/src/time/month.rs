//! Calendar months as people write them.

use std::str::FromStr;

use domain::schedule::MONTHS;
use jiff::{Timestamp, civil::Date, tz::TimeZone};
use report::history::Period;

use super::Asked;

/// A calendar month, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Month {
    /// `2026-10`, by its first day.
    Of(Date),
    /// `november`, by its number.
    Named(i8),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write a month such as 2026-10 or october")]
pub struct NotAMonth;

impl FromStr for Month {
    type Err = NotAMonth;

    fn from_str(text: &str) -> Result<Self, NotAMonth> {
        let word = text.to_lowercase();
        if let Some(number) = (1..)
            .zip(MONTHS)
            .find_map(|(number, name)| (word == name || word == name[..3]).then_some(number))
        {
            return Ok(Self::Named(number));
        }
        let shape = text.len() == "2026-10".len();
        let first = format!("{text}-01").parse();
        first.ok().filter(|_| shape).map(Self::Of).ok_or(NotAMonth)
    }
}

impl Month {
    /// The whole month. Of a name it is the latest month that has begun, or, of a time to come, the
    /// first that has not ended.
    pub fn period(self, asked: Asked, now: Timestamp) -> Result<Period, jiff::Error> {
        let first = match self {
            Self::Of(first) => first,
            Self::Named(month) => {
                let today = now.to_zoned(TimeZone::UTC).date();
                let year = match asked {
                    Asked::PastBegin | Asked::PastEnd => {
                        today.year() - i16::from(month > today.month())
                    }
                    Asked::Begin | Asked::End => today.year() + i16::from(month < today.month()),
                };
                Date::new(year, month, 1)?
            }
        };
        Period::month(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_no_month_is_refused() {
        for text in ["", "2026", "2026-13", "2026-1", "2026-10-01", "10-2026", "octember"] {
            assert_eq!(text.parse::<Month>(), Err(NotAMonth), "{text}");
        }
    }

    #[test]
    fn a_name_is_the_nearest_month_in_its_direction() {
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let first = |text: &str, asked| {
            let month: Month = text.parse().unwrap();
            month.period(asked, now).unwrap().from.strftime("%Y-%m").to_string()
        };
        for (text, past, ahead) in [
            ("November", "2026-11", "2026-11"),
            ("oct", "2026-10", "2027-10"),
            ("december", "2025-12", "2026-12"),
            ("2026-02", "2026-02", "2026-02"),
        ] {
            assert_eq!(
                (first(text, Asked::PastBegin), first(text, Asked::Begin)),
                (past.into(), ahead.into())
            );
        }
    }
}
