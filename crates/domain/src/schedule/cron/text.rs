//! Cron expressions as people write them: names, ranges that wrap, and numbers of weekdays, which
//! other tools read differently.

use std::{fmt::Display, ops::RangeInclusive};

use crate::schedule::days::{MONTHS, WEEKDAYS, position};

const EXPECTED: &str = "minute, hour, day of month, month and day of week, as in 0 8 * * mon-fri";

/// One of the five fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Minute,
    Hour,
    Monthday,
    Month,
    Weekday,
}

const FIELDS: [Field; 5] =
    [Field::Minute, Field::Hour, Field::Monthday, Field::Month, Field::Weekday];

impl Field {
    fn name(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Monthday => "day of month",
            Self::Month => "month",
            Self::Weekday => "weekday",
        }
    }

    /// The numbers that it takes.
    fn numbers(self) -> RangeInclusive<u32> {
        match self {
            Self::Minute => 0..=59,
            Self::Hour => 0..=23,
            Self::Monthday => 1..=31,
            Self::Month => 1..=12,
            Self::Weekday => 0..=7,
        }
    }

    /// Returns the number for a text: digits, or a name.
    fn number(self, text: &str) -> Option<u32> {
        let lower = text.to_lowercase();
        let named = match self {
            Self::Minute | Self::Hour | Self::Monthday => None,
            Self::Month => position(&MONTHS, &lower).map(|index| index + 1),
            Self::Weekday => position(&WEEKDAYS, &lower).map(|index| (index + 1) % 7),
        };
        let is_plain = text.bytes().all(|c| c.is_ascii_digit());
        let number = named.or_else(|| text.parse().ok().filter(|_| is_plain))?;
        self.numbers().contains(&number).then_some(number)
    }

    /// Rewrites one entry of a list.
    fn entry(self, entry: &str) -> Result<String, String> {
        let upper = entry.to_uppercase();
        match self {
            Self::Monthday if upper.ends_with(['L', 'W']) => return Ok(upper),
            Self::Weekday => {
                if let Some((days, nth)) = entry.split_once('#') {
                    return Ok(format!("{}#{nth}", self.range(entry, days, None)?));
                }
                if let Some(day) = upper.strip_suffix('L') {
                    return Ok(format!("{}L", self.range(entry, day, None)?));
                }
            }
            Self::Minute | Self::Hour | Self::Monthday | Self::Month => {}
        }
        match entry.split_once('/') {
            Some((range, step)) => self.range(entry, range, Some(step)),
            None => self.range(entry, entry, None),
        }
    }

    /// Rewrites a range or a single value. A range that wraps becomes a list.
    fn range(self, entry: &str, range: &str, step: Option<&str>) -> Result<String, String> {
        let parse = |text: &str| {
            self.number(text)
                .ok_or_else(|| format!("unknown {} `{text}` in `{entry}`", self.name()))
        };
        let suffix = step.map_or_else(String::new, |step| format!("/{step}"));
        let Some((first, last)) = range.split_once('-') else {
            let single = match range {
                "" | "*" | "?" => range.to_owned(),
                number => parse(number)?.to_string(),
            };
            return Ok(single + &suffix);
        };
        let (first, last) = (parse(first)?, parse(last)?);
        if first <= last {
            return Ok(format!("{first}-{last}{suffix}"));
        }
        let step = step.map_or(Ok(1), str::parse).unwrap_or_default();
        if step == 0 || entry.contains('#') {
            return Err(format!("`{entry}` cannot be read; list its days"));
        }
        let (lowest, highest) = self.numbers().into_inner();
        // Sunday has two numbers.
        let size = highest - lowest + 1 - u32::from(self == Self::Weekday);
        let length = (size + last - first) % size;
        let wrapped = (0..=length).step_by(step);
        let numbers = wrapped.map(|far| ((first - lowest + far) % size + lowest).to_string());
        Ok(numbers.collect::<Vec<_>>().join(","))
    }
}

/// Returns an expression with numbers in place of names, and with lists in place of ranges that
/// wrap. The error says what to write instead.
pub(super) fn plain(text: &str) -> Result<String, String> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.first().is_some_and(|first| first.starts_with('@')) {
        return Ok(text.to_owned());
    }
    if let Some((_, zone)) = fields.first().and_then(|first| first.split_once('=')) {
        let rest = fields[1..].join(" ");
        return Err(format!(
            "`{text}` names a time zone; write timezone = \"{zone}\" in the schedule, and `{rest}` \
             here"
        ));
    }
    let number = fields.len();
    let Ok([.., weekdays]) = <[&str; 5]>::try_from(fields.as_slice()) else {
        let aws = match number {
            6 => {
                "; there are no seconds and no years here, and weekdays are best written as names, \
                 because AWS counts them from 1 for Sunday"
            }
            _ => "",
        };
        return Err(format!(
            "`{text}` has {number} fields; a cron expression here has five: {EXPECTED}{aws}"
        ));
    };
    if let (true, Some(here)) = (text.contains('?'), named(weekdays, 0)) {
        let there = named(weekdays, 1).unwrap_or_default();
        return Err(format!(
            "`{weekdays}` beside ? is {there} at AWS, which counts weekdays from 1 for Sunday, and \
             {here} in cron; write the names"
        ));
    }
    let plain: Result<Vec<String>, String> = fields
        .iter()
        .zip(FIELDS)
        .map(|(field, kind)| {
            let (and, list) = match field.strip_prefix('+') {
                Some(list) if kind == Field::Weekday => ("+", list),
                Some(_) | None => ("", *field),
            };
            let entries: Result<Vec<_>, _> = list.split(',').map(|one| kind.entry(one)).collect();
            Ok(format!("{and}{}", entries?.join(",")))
        })
        .collect();
    let plain = plain.map_err(|message| {
        format!("invalid cron expression `{text}` ({message}): expected {EXPECTED}")
    })?;
    Ok(plain.join(" "))
}

/// The error for an expression that the parser refuses.
pub(super) fn refused(text: &str, error: &impl Display) -> String {
    format!("invalid cron expression `{text}` ({error}): expected {EXPECTED}")
}

/// Returns the field of weekdays as written and by names, if it has numbers.
pub(in crate::schedule) fn digit_days(text: &str) -> Option<(&str, String)> {
    let weekdays = text.split_whitespace().nth(4)?;
    Some((weekdays, named(weekdays, 0)?))
}

/// Returns a field of weekdays with names in place of numbers, the lowest of which is Sunday's.
/// `None` if it has no numbers.
fn named(weekdays: &str, sunday: u32) -> Option<String> {
    let mut is_numbered = false;
    let mut entries = Vec::new();
    for entry in weekdays.split(',') {
        let (days, suffix) = entry.split_at(entry.find(['#', '/']).unwrap_or(entry.len()));
        let days = days.split('-').map(|day| {
            let named = name(day, sunday);
            is_numbered |= named.is_some();
            named.unwrap_or_else(|| day.to_lowercase())
        });
        let days: Vec<_> = days.collect();
        entries.push(format!("{}{suffix}", days.join("-")));
    }
    is_numbered.then(|| entries.join(","))
}

/// Returns the name for a weekday's number, which an L may follow.
fn name(day: &str, sunday: u32) -> Option<String> {
    let number = day.trim_end_matches(['L', 'l']);
    let last = if number == day { "" } else { "L" };
    let number: u32 = number.parse().ok().filter(|number| *number <= 7)?;
    let index = usize::try_from((number + 13 - sunday) % 7).ok()?;
    Some(format!("{}{last}", &WEEKDAYS[index][..3]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(plain(text).as_deref(), Ok(expected), "{text}");
    }

    #[test]
    fn ranges_wrap_in_every_field() {
        check("0 8 * * fri-mon", "0 8 * * 5,6,0,1");
        check("0 8 * * 5-1", "0 8 * * 5,6,0,1");
        check("0 8 * * 7-2", "0 8 * * 0,1,2");
        check("0 8 * * Saturday-Sunday", "0 8 * * 6,0");
        check("0 8 * * fri-tue/2", "0 8 * * 5,0,2");
        check("0 22-2 * * *", "0 22,23,0,1,2 * * *");
        check("50-10/10 8 * * *", "50,0,10 8 * * *");
        check("0 8 30-2 nov-feb *", "0 8 30,31,1,2 11,12,1,2 *");
    }

    #[test]
    fn what_needs_no_change_stays() {
        for text in [
            "0 8 * * 1-5",
            "*/20 1-2,5 1/10 */3 0-7",
            "0 0 L * 5L",
            "0 0 15W,LW 1-12/2 1#2,3",
            "0 0 1 * +1",
            "@daily",
        ] {
            check(text, text);
        }
        check("0 8 ? * mon#1,friL", "0 8 ? * 1#1,5L");
        check("0 8 1 JAN,Feb-apr sun", "0 8 1 1,2-4 0");
    }

    #[test]
    fn numbers_of_weekdays_have_names() {
        let days = |text: &str| digit_days(text).map(|(_, named)| named);
        for (written, names) in [
            ("1-5", "mon-fri"),
            ("0,6", "sun,sat"),
            ("7", "sun"),
            ("1-5/2", "mon-fri/2"),
            ("5L", "friL"),
            ("1#2,fri", "mon#2,fri"),
        ] {
            let text = format!("0 8 * * {written}");
            assert_eq!(days(&text).as_deref(), Some(names), "{written}");
        }
        for text in ["0 8 * * mon-fri", "0 8 1 1 *", "0 8 * * */2", "0 8 * * mon#1", "@weekly"] {
            assert_eq!(days(text), None, "{text}");
        }
    }

    #[test]
    fn other_tools_words_are_refused_with_what_to_write() {
        for (text, expected) in [
            ("0 8 ? * 2-6", "`2-6` beside ? is mon-fri at AWS"),
            ("0 8 ? * 2-6", "and tue-sat in cron"),
            ("0 8 ? * 6L", "is friL at AWS"),
            ("0 8 ? * 2-6 *", "has 6 fields"),
            ("0 8 ? * 2-6 *", "from 1 for Sunday"),
            ("0 0 8 * * mon", "no seconds and no years"),
            ("CRON_TZ=Europe/Berlin 0 8 * * *", "timezone = \"Europe/Berlin\""),
            ("TZ=UTC 0 8 * * *", "and `0 8 * * *` here"),
            ("0 8 * * mon-thur", "unknown weekday `thur` in `mon-thur`"),
            ("0 8 * sept *", "unknown month `sept`"),
            ("0 mon * * *", "unknown hour `mon`"),
            ("0 8 * * fri-mon#1", "list its days"),
            ("0 8 * * fri-mon/0", "list its days"),
            ("0 8 * * mon-wed-fri", "unknown weekday `wed-fri`"),
        ] {
            let message = plain(text).unwrap_err();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}
