//! The days on which a period's windows begin: weekdays, days of the month and months.

use jiff::civil::Date;

use super::{clock::Reading, definition::each};

/// The names of the weekdays, from Monday on.
pub const WEEKDAYS: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

pub const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

const SATURDAY: u32 = 5;
const SUNDAY: u32 = 6;

/// A calendar day, with the properties that the fields test.
#[derive(Debug, Clone, Copy)]
pub(super) struct Day {
    /// Days since 1970-01-01.
    pub(super) number: i64,
    /// The month, 1 to 12.
    pub(super) month: u32,
    /// The day of the month, 1 to 31.
    pub(super) monthday: u32,
    /// The number of days in the month.
    length: u32,
    /// The weekday, 0 to 6 from Monday.
    weekday: u32,
}

impl Day {
    pub(super) fn new(number: i64) -> Self {
        let date = Reading::midnight(number).civil().date();
        Self {
            number,
            month: date.month().unsigned_abs().into(),
            monthday: date.day().unsigned_abs().into(),
            length: date.days_in_month().unsigned_abs().into(),
            weekday: date.weekday().to_monday_zero_offset().unsigned_abs().into(),
        }
    }

    pub(super) fn date(self) -> Date {
        self.midnight().civil().date()
    }

    /// The day on which the clock shows a reading.
    pub(super) fn of(reading: Reading) -> Self {
        Self::new(reading.day())
    }

    pub(super) fn midnight(self) -> Reading {
        Reading::midnight(self.number)
    }
}

/// The part of a period that does not match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Miss {
    /// The day of the week.
    Weekday,
    /// The day of the month.
    Monthday,
    Month,
    /// The day is before the period's `from` or after its `until`.
    Date,
    /// The day is a holiday, on which nothing begins.
    Holiday,
    /// The time of day has not come yet.
    NotBegun,
    /// The time of day has passed.
    Over,
}

/// A set of days: those that all fields contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Days {
    pub(super) dates: Dates,
    pub(super) weekdays: Weekdays,
    pub(super) monthdays: Monthdays,
    pub(super) months: Months,
}

impl Days {
    pub(super) fn contains(&self, day: Day) -> bool {
        self.dates.contains(day)
            && self.months.contains(day)
            && self.weekdays.contains(day)
            && self.monthdays.contains(day)
    }

    /// Returns the fields that do not contain a day.
    pub(super) fn missing(&self, day: Day) -> impl Iterator<Item = Miss> {
        [
            (Miss::Weekday, self.weekdays.contains(day)),
            (Miss::Monthday, self.monthdays.contains(day)),
            (Miss::Month, self.months.contains(day)),
            (Miss::Date, self.dates.contains(day)),
        ]
        .into_iter()
        .filter_map(|(miss, contains)| (!contains).then_some(miss))
    }

    pub(super) fn contains_all(&self) -> bool {
        self.dates == Dates::default()
            && self.weekdays == Weekdays::ALL
            && self.monthdays == Monthdays::ALL
            && self.months == Months::ALL
    }

    /// Reports whether any such day exists: dates and weekdays repeat after 400 years.
    pub(super) fn ever_occur(&self) -> bool {
        const FOUR_CENTURIES: i64 = 146_097;
        (0..FOUR_CENTURIES).any(|number| self.contains(Day::new(number)))
    }
}

/// The days from one to another, both included and either absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Dates {
    pub(super) from: Option<Date>,
    pub(super) until: Option<Date>,
}

impl Dates {
    fn contains(self, day: Day) -> bool {
        if self == Self::default() {
            return true;
        }
        let date = day.date();
        self.from.is_none_or(|from| from <= date) && self.until.is_none_or(|until| date <= until)
    }
}

/// Parses a date of one year.
pub(super) fn date(text: &str) -> Result<Date, String> {
    let is_plain = text.len() == "2026-12-24".len();
    let date = text.parse().ok().filter(|_| is_plain);
    date.ok_or_else(|| format!("invalid date `{text}`: expected YYYY-MM-DD, as in 2026-12-24"))
}

/// A set of weekdays, each at every occurrence within the month or only at certain ones.
///
/// Bit `7 * (n - 1) + w` stands for the weekday `w` at its `n`-th occurrence, bit `35 + w` for its
/// last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Weekdays(u64);

impl Weekdays {
    pub(super) const ALL: Self = Self((1 << 35) - 1);

    fn contains(self, day: Day) -> bool {
        let nth = (day.monthday - 1) / 7;
        let is_last = day.monthday + 7 > day.length;
        self.0 >> (7 * nth + day.weekday) & 1 == 1
            || is_last && self.0 >> (35 + day.weekday) & 1 == 1
    }

    /// Parses `mon-fri`, `sat#1`, `friL` and lists of them; an empty list means every day.
    pub(super) fn parse(list: &[String]) -> Result<Self, Vec<String>> {
        if list.is_empty() {
            return Ok(Self::ALL);
        }
        let bits = each(list, weekdays_entry)?;
        Ok(Self(bits.into_iter().fold(0, |all, more| all | more)))
    }
}

fn weekdays_entry(entry: &str) -> Result<u64, String> {
    let lower = entry.to_lowercase();
    if lower.contains('/') {
        return Err(format!("`{entry}`: weekdays have no steps; list the days, as in mon,wed,fri"));
    }
    if lower.chars().any(|c| c.is_ascii_digit()) && !lower.contains('#') {
        return Err(format!(
            "`{entry}`: weekdays are written as names (mon, tue, …), because tools disagree on \
             which day the number 0 or 1 is; days of the month go in monthdays"
        ));
    }
    if let Some((name, nth)) = lower.split_once('#') {
        let weekday = weekday(entry, name)?;
        return match nth.parse::<u32>() {
            Ok(nth @ 1..=5) if !name.is_empty() => Ok(1 << (7 * (nth - 1) + weekday)),
            Ok(_) | Err(_) => Err(format!(
                "`{entry}`: expected 1 to 5 after #, as in mon#1; the last of the month is monL"
            )),
        };
    }
    let every_occurrence = |weekday: u32| (1 | 1 << 7 | 1 << 14 | 1 << 21 | 1 << 28) << weekday;
    if let Some((first, last)) = lower.split_once('-') {
        let (first, last) = (weekday(entry, first)?, weekday(entry, last)?);
        let length = (last + 7 - first) % 7;
        let days = (0..=length).map(|step| every_occurrence((first + step) % 7));
        return Ok(days.fold(0, |bits, bit| bits | bit));
    }
    match lower.strip_suffix('l') {
        Some(name) => Ok(1 << (35 + weekday(entry, name)?)),
        None => weekday(entry, &lower).map(every_occurrence),
    }
}

fn weekday(entry: &str, name: &str) -> Result<u32, String> {
    position(&WEEKDAYS, name).ok_or_else(|| {
        format!(
            "`{entry}`: unknown weekday `{name}`: expected mon, tue, wed, thu, fri, sat or sun, a range \
             such as mon-fri, sat#1 for the first of the month or friL for the last"
        )
    })
}

/// Returns the index of a name, given in full or by its first three letters.
pub(super) fn position(names: &[&str], name: &str) -> Option<u32> {
    let name = name.trim();
    let found = names.iter().position(|&full| name == full || name == &full[..3])?;
    u32::try_from(found).ok()
}

/// Days of the month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Monthdays {
    /// Bit `d` stands for day `d`.
    days: u32,
    /// Bit `d` stands for the weekday nearest to day `d`.
    nearest_weekday: u32,
    /// The last day, whatever its number.
    last: bool,
}

impl Monthdays {
    pub(super) const ALL: Self = Self { days: 0xffff_fffe, nearest_weekday: 0, last: false };

    const NONE: Self = Self { days: 0, nearest_weekday: 0, last: false };

    fn contains(self, day: Day) -> bool {
        self.days >> day.monthday & 1 == 1
            || self.last && day.monthday == day.length
            || self.nearest_weekday != 0 && self.contains_nearest(day)
    }

    fn contains_nearest(self, day: Day) -> bool {
        let (first, last) =
            (day.monthday.saturating_sub(2).max(1), (day.monthday + 2).min(day.length));
        (first..=last).any(|target| {
            self.nearest_weekday >> target & 1 == 1 && nearest_weekday(target, day) == day.monthday
        })
    }

    /// Parses `1-7`, `28-5`, `28-L`, `1/10`, `5-20/3`, `L`, `15W` and lists of them; an empty list
    /// means every day.
    pub(super) fn parse(list: &[String]) -> Result<Self, Vec<String>> {
        if list.is_empty() {
            return Ok(Self::ALL);
        }
        let parts = each(list, monthdays_entry)?;
        Ok(parts.into_iter().fold(Self::NONE, |all, more| Self {
            days: all.days | more.days,
            nearest_weekday: all.nearest_weekday | more.nearest_weekday,
            last: all.last | more.last,
        }))
    }
}

/// Returns the weekday nearest to day `target` of the month that `day` belongs to.
fn nearest_weekday(target: u32, day: Day) -> u32 {
    match (day.weekday + 35 + target - day.monthday) % 7 {
        SATURDAY if target == 1 => target + 2,
        SATURDAY => target - 1,
        SUNDAY if target == day.length => target - 2,
        SUNDAY => target + 1,
        _ => target,
    }
}

fn monthdays_entry(entry: &str) -> Result<Monthdays, String> {
    let upper = entry.to_uppercase();
    let day = |text: &str| {
        number(text, 31).ok_or_else(|| {
            format!(
                "`{entry}`: invalid day of the month `{text}`: expected 1 to 31, a range such as 25-31 \
                 or 28-L, steps such as 1/10, L for the last day or 15W for the weekday nearest to \
                 the 15th"
            )
        })
    };
    let mut monthdays = Monthdays::NONE;
    if upper == "L" {
        monthdays.last = true;
    } else if let Some(target) = upper.strip_suffix('W') {
        monthdays.nearest_weekday = 1 << day(target)?;
    } else {
        let (range, step) = stepped(entry, &upper)?;
        let (first, last) = match range.split_once('-') {
            Some((first, last)) if last.trim() == "L" => (day(first)?, 31),
            Some((first, last)) => (day(first)?, day(last)?),
            None if step.is_some() => (day(range)?, 31),
            None => (day(range)?, day(range)?),
        };
        monthdays.days = ring(first, last, step.unwrap_or(1), 31);
    }
    Ok(monthdays)
}

/// Months: bit `m` stands for month `m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Months(u32);

impl Months {
    pub(super) const ALL: Self = Self(0x1ffe);

    fn contains(self, day: Day) -> bool {
        self.0 >> day.month & 1 == 1
    }

    /// Parses `jan`, `11`, `nov-feb`, `jan/3`, `feb-nov/2` and lists of them; an empty list means
    /// every month.
    pub(super) fn parse(list: &[String]) -> Result<Self, Vec<String>> {
        if list.is_empty() {
            return Ok(Self::ALL);
        }
        let bits = each(list, months_entry)?;
        Ok(Self(bits.into_iter().fold(0, |all, more| all | more)))
    }
}

fn months_entry(entry: &str) -> Result<u32, String> {
    let lower = entry.to_lowercase();
    let month = |text: &str| {
        let named = position(&MONTHS, text).map(|index| index + 1);
        named.or_else(|| number(text, 12)).ok_or_else(|| {
            format!(
                "`{entry}`: unknown month `{text}`: expected jan to dec or 1 to 12, a range such as \
                 nov-feb, or steps such as jan/3"
            )
        })
    };
    let (range, step) = stepped(entry, &lower)?;
    let (first, last) = match range.split_once('-') {
        Some((first, last)) => (month(first)?, month(last)?),
        None if step.is_some() => (month(range)?, 12),
        None => (month(range)?, month(range)?),
    };
    Ok(ring(first, last, step.unwrap_or(1), 12))
}

/// Splits `RANGE/STEP`.
fn stepped<'a>(entry: &str, text: &'a str) -> Result<(&'a str, Option<u32>), String> {
    match text.split_once('/') {
        None => Ok((text, None)),
        Some((range, step)) => match number(step, 31) {
            Some(step) => Ok((range, Some(step))),
            None => Err(format!(
                "`{entry}`: invalid step `{step}`: expected a number from 1, as in 1/10"
            )),
        },
    }
}

/// Parses a number from 1 to `most`, written in digits only.
fn number(text: &str, most: u32) -> Option<u32> {
    let text = text.trim();
    let plain = text.bytes().all(|c| c.is_ascii_digit());
    let number = text.parse().ok().filter(|_| plain)?;
    (1..=most).contains(&number).then_some(number)
}

/// Returns the bits of every `step`-th number from `first` to `last`, where 1 follows `size`.
fn ring(first: u32, last: u32, step: u32, size: u32) -> u32 {
    let length = (last + size - first) % size;
    (0..=length)
        .step_by(usize::try_from(step).unwrap_or(usize::MAX))
        .map(|steps| (first - 1 + steps) % size + 1)
        .fold(0, |bits, number| bits | 1 << number)
}
