//! Days on which nothing begins.

use jiff::civil::Date;

use super::{clock::Reading, days::Day, definition::each};

/// Holidays, of specific years and of every year.
#[derive(Debug, Clone, Default)]
pub(super) struct Holidays {
    /// First and last day of each range, as numbers of days since 1970-01-01; sorted.
    once: Vec<(i64, i64)>,
    /// For each month, bit `d` for day `d`.
    yearly: [u32; 12],
}

/// One entry: a day, or an inclusive range.
#[derive(Debug, Clone, Copy)]
enum Entry {
    Once(Date, Date),
    /// As month and day; the last may come before the first.
    Yearly((u32, u32), (u32, u32)),
}

impl Holidays {
    pub(super) fn is_empty(&self) -> bool {
        self.once.is_empty() && self.yearly == [0; 12]
    }

    pub(super) fn contains(&self, day: Day) -> bool {
        let month = self.yearly.iter().zip(1..).find(|(_, month)| *month == day.month);
        let yearly = month.is_some_and(|(days, _)| days >> day.monthday & 1 == 1);
        yearly || self.contains_once(day.number)
    }

    /// Ranges are merged, so only the last one that begins by then can contain the day.
    fn contains_once(&self, number: i64) -> bool {
        let begun = self.once.partition_point(|(first, _)| *first <= number);
        let range = begun.checked_sub(1).and_then(|index| self.once.get(index));
        range.is_some_and(|(_, last)| number <= *last)
    }

    /// Parses one text of the list and adds its days.
    pub(super) fn add(&mut self, text: &str) -> Result<(), Vec<String>> {
        for entry in each(&[text.to_owned()], parse)? {
            match entry {
                Entry::Once(first, last) => self.once.push((number(first), number(last))),
                Entry::Yearly(first, last) => self.add_yearly(first, last),
            }
        }
        self.merge();
        Ok(())
    }

    fn add_yearly(&mut self, first: (u32, u32), last: (u32, u32)) {
        for (month, days) in (1..).zip(&mut self.yearly) {
            for day in 1..=31 {
                let (begun, ended) = (first <= (month, day), last < (month, day));
                let inside = if first <= last { begun && !ended } else { begun || !ended };
                *days |= u32::from(inside) << day;
            }
        }
    }

    fn merge(&mut self) {
        self.once.sort_unstable();
        self.once.dedup_by(|next, range| {
            let touches = next.0 <= range.1 + 1;
            if touches {
                range.1 = range.1.max(next.1);
            }
            touches
        });
    }
}

fn number(date: Date) -> i64 {
    Reading::of(date.at(0, 0, 0, 0)).day()
}

fn parse(entry: &str) -> Result<Entry, String> {
    let (first, last) = entry.split_once("..").unwrap_or((entry, entry));
    match (one_day(entry, first)?, one_day(entry, last)?) {
        (Entry::Once(first, _), Entry::Once(last, _)) if first > last => Err(format!(
            "`{entry}` ends before it begins; write `{last}..{first}`, or leave the years out for a \
             range of every year"
        )),
        (Entry::Once(first, _), Entry::Once(last, _)) => Ok(Entry::Once(first, last)),
        (Entry::Yearly(first, _), Entry::Yearly(last, _)) => Ok(Entry::Yearly(first, last)),
        (Entry::Once(..), Entry::Yearly(..)) | (Entry::Yearly(..), Entry::Once(..)) => Err(
            format!("`{entry}` has a year at one end only; write it at both ends or at neither"),
        ),
    }
}

fn one_day(entry: &str, text: &str) -> Result<Entry, String> {
    const ANY_LEAP_YEAR: i16 = 2000;
    let malformed = || {
        format!(
            "`{entry}`: invalid day `{text}`: expected 2026-12-24, or 12-24 for every year, or two \
             of the same form with .. between them"
        )
    };
    let no_such_day = || format!("`{entry}`: no such day: {text}; check month and day");
    let text = text.trim();
    let digits = |part: &str, length: usize| {
        let plain = part.len() == length && part.bytes().all(|c| c.is_ascii_digit());
        part.parse().ok().filter(|_| plain).ok_or_else(malformed)
    };
    let (year, month, day) = match text.split('-').collect::<Vec<_>>().as_slice() {
        [year, month, day] => (Some(digits(year, 4)?), digits(month, 2)?, digits(day, 2)?),
        [month, day] => (None, digits(month, 2)?, digits(day, 2)?),
        _ => return Err(malformed()),
    };
    let date = i8::try_from(month)
        .and_then(|month| i8::try_from(day).map(|day| (month, day)))
        .ok()
        .and_then(|(month, day)| Date::new(year.unwrap_or(ANY_LEAP_YEAR), month, day).ok())
        .ok_or_else(no_such_day)?;
    let yearly = (date.month().unsigned_abs().into(), date.day().unsigned_abs().into());
    Ok(match year {
        Some(_) => Entry::Once(date, date),
        None => Entry::Yearly(yearly, yearly),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holidays(texts: &[&str]) -> Holidays {
        let mut holidays = Holidays::default();
        for text in texts {
            holidays.add(text).unwrap();
        }
        holidays
    }

    #[track_caller]
    fn check(texts: &[&str], inside: &[&str], outside: &[&str]) {
        let holidays = holidays(texts);
        let contains = |day: &&&str| holidays.contains(Day::new(number(day.parse().unwrap())));
        assert_eq!(inside.iter().find(|day| !contains(day)), None, "not inside");
        assert_eq!(outside.iter().find(contains), None, "not outside");
    }

    #[test]
    fn one_day_is_that_day_alone() {
        check(
            &["2026-12-24"],
            &["2026-12-24"],
            &["2026-12-23", "2026-12-25", "2025-12-24", "2027-12-24"],
        );
    }

    #[test]
    fn a_range_has_both_its_ends() {
        check(
            &["2026-12-24..2027-01-01"],
            &["2026-12-24", "2026-12-31", "2027-01-01"],
            &["2026-12-23", "2027-01-02", "2027-12-24"],
        );
    }

    #[test]
    fn ranges_may_touch_overlap_and_contain_each_other() {
        check(
            &["2026-05-01..2026-05-31", "2026-05-10", "2026-06-01 .. 2026-06-02, 2026-04-30"],
            &["2026-04-30", "2026-05-01", "2026-05-10", "2026-05-20", "2026-06-02"],
            &["2026-04-29", "2026-06-03"],
        );
    }

    #[test]
    fn a_day_without_year_returns_every_year() {
        check(
            &["01-01", "02-29"],
            &["2026-01-01", "2027-01-01", "2028-02-29"],
            &["2026-01-02", "2027-02-28", "2027-03-01", "2026-12-31"],
        );
    }

    #[test]
    fn a_range_without_years_may_wrap() {
        check(
            &["12-24..01-02"],
            &["2026-12-24", "2026-12-31", "2027-01-01", "2030-01-02"],
            &["2026-12-23", "2027-01-03", "2027-06-01"],
        );
        check(
            &["04-03..05-01"],
            &["2026-04-03", "2026-04-30", "2026-05-01"],
            &["2026-04-02", "2026-05-02", "2026-01-01"],
        );
    }

    #[test]
    fn an_invalid_day_is_refused_with_its_text() {
        for text in [
            "",
            "christmas",
            "2026",
            "2026-12",
            "2026-1-1",
            "26-12-24",
            "1-1",
            "2026-02-30",
            "2027-02-29",
            "02-30",
            "13-01",
            "00-10",
            "2026-00-10",
            "2026-01-00",
            "999-01-01",
            "2026-12-26..2026-12-24",
            "2026-12-24..12-26",
            "12-24..2026-12-26",
            "01-01..",
            "..01-01",
            "01-01...01-02",
            "+1-01",
            "2026-12-24,x",
        ] {
            let messages = Holidays::default().add(text).unwrap_err();
            let last = text.rsplit(',').next().unwrap();
            assert!(messages.iter().all(|message| message.contains(last)), "{messages:?}");
        }
    }
}
