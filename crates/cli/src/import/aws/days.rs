//! Writes the days of AWS Instance Scheduler as ours, where theirs differ; whether they are days at
//! all is for the schedule to say.

use domain::schedule::{MONTHS, WEEKDAYS};

/// Translates the entries of a field. The result is empty if the field matches all days.
pub(super) fn field(entries: &[String], translate: fn(&str) -> String) -> Vec<String> {
    if entries.is_empty() || entries.iter().any(|entry| entry == "*" || entry == "?") {
        return Vec::new();
    }
    let entries: Vec<_> = entries.iter().map(|entry| translate(entry)).collect();
    vec![entries.join(", ")]
}

/// Weekdays: the numbers of AWS Instance Scheduler, which count from Monday as 0, become names, and
/// a step becomes a list of days.
pub(super) fn weekdays(entry: &str) -> String {
    let entry = entry.to_lowercase();
    if entry == "l" {
        return "sun".to_owned();
    }
    let (days, more) = entry.split_at(entry.find(['#', '/']).unwrap_or(entry.len()));
    if let Some(step) = more.strip_prefix('/').and_then(|step| number(step.trim(), 1, 7)) {
        let (first, last) = days.split_once('-').unwrap_or((days, "sun"));
        if let (Some(first), Some(last)) = (weekday(first), weekday(last)) {
            let days = (first..=first + (last + 7 - first) % 7).step_by(step);
            return days.map(|day| &WEEKDAYS[day % 7][..3]).collect::<Vec<_>>().join(", ");
        }
    }
    let day = |text: &str| match last_of_month(text) {
        Some(day) => short(day, weekday(day), &WEEKDAYS) + "L",
        None => short(text, weekday(text), &WEEKDAYS),
    };
    days.split('-').map(day).collect::<Vec<_>>().join("-") + more
}

/// The weekday whose last occurrence in the month an entry stands for: `friL`, and `fril` too.
pub(super) fn last_of_month(entry: &str) -> Option<&str> {
    entry.strip_suffix(['L', 'l']).filter(|day| !day.is_empty())
}

/// Months: names are shortened.
pub(super) fn months(entry: &str) -> String {
    let entry = entry.to_lowercase();
    let (months, step) = entry.split_at(entry.find('/').unwrap_or(entry.len()));
    let month = |text: &str| short(text, named(&MONTHS, text), &MONTHS);
    months.split('-').map(month).collect::<Vec<_>>().join("-") + &step.replace(' ', "")
}

/// Reports whether days of the month end before they begin. They never do at AWS, and here go on
/// into the next month.
pub(super) fn wraps(monthdays: &str) -> bool {
    let range = monthdays.split('/').next().and_then(|range| range.split_once('-'));
    let day = |text: &str| number(text.trim(), 1, 31);
    range.is_some_and(|(first, last)| {
        day(first).zip(day(last)).is_some_and(|(first, last)| first > last)
    })
}

/// Writes `9:00` as `09:00`.
pub(super) fn time(text: &str) -> String {
    text.split(':').map(|digits| format!("{digits:0>2}")).collect::<Vec<_>>().join(":")
}

fn weekday(text: &str) -> Option<usize> {
    named(&WEEKDAYS, text).or_else(|| number(text.trim(), 0, 6))
}

/// The index of a name in full or by its first letters, at least three. Earlier releases of AWS
/// Instance Scheduler compared the first three only, as in `sept` and `thurs`: ISAWS.
fn named(names: &[&str], text: &str) -> Option<usize> {
    let text = text.trim();
    names.iter().position(|name| text.len() >= 3 && name.starts_with(text))
}

/// The first three letters of a name, or the whole text if it is not a name.
fn short(text: &str, index: Option<usize>, names: &[&str]) -> String {
    index.map_or(text, |index| &names[index][..3]).to_owned()
}

fn number(text: &str, least: usize, most: usize) -> Option<usize> {
    let is_plain = text.bytes().all(|c| c.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_plain)?;
    (least..=most).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use domain::schedule::{Definition, PeriodDefinition, Schedule};

    use super::*;

    /// Reports whether a schedule can have such a period.
    fn is_accepted(period: PeriodDefinition) -> bool {
        let definition = Definition {
            timezone: "UTC".to_owned(),
            periods: vec![period],
            ..Definition::default()
        };
        Schedule::new(&definition).is_ok()
    }

    fn on_weekdays(entry: &str) -> PeriodDefinition {
        PeriodDefinition { weekdays: vec![weekdays(entry)], ..PeriodDefinition::default() }
    }

    fn in_months(entry: &str) -> PeriodDefinition {
        PeriodDefinition { months: vec![months(entry)], ..PeriodDefinition::default() }
    }

    #[test]
    fn weekdays_have_names_here_and_steps_are_counted_out() {
        for (theirs, ours) in [
            ("mon", "mon"),
            ("Monday", "mon"),
            ("Tues", "tue"),
            ("thurs-sat", "thu-sat"),
            ("fril", "friL"),
            ("0", "mon"),
            ("6", "sun"),
            ("0-4", "mon-fri"),
            ("Fri - 0", "fri-mon"),
            ("mon-fri/2", "mon, wed, fri"),
            ("fri-mon/2", "fri, sun"),
            ("1/3", "tue, fri"),
            ("mon#1", "mon#1"),
            ("4#2", "fri#2"),
            ("friL", "friL"),
            ("4l", "friL"),
            ("L", "sun"),
        ] {
            assert_eq!(weekdays(theirs), ours, "{theirs}");
            assert!(is_accepted(on_weekdays(theirs)), "{theirs}");
        }
        for text in [
            "7",
            "8-9",
            "fry",
            "mon-",
            "",
            "mon/0",
            "mon/x",
            "-1",
            "é",
            // Words that begin with a weekday are not that weekday.
            "tue-wed-sat",
            "mon-fri#1",
            "mon#1-3",
            "mon to fri",
            "mon;fri",
            "monthly",
            "friday-l",
            "fri-L",
            "mon-fri/2/3",
            "mon/+2",
            "+1",
            "mo",
        ] {
            assert!(!is_accepted(on_weekdays(text)), "{text}");
        }
    }

    #[test]
    fn days_months_and_times_are_tidied() {
        for (theirs, ours) in [
            ("Jan/3", "jan/3"),
            ("11-2", "11-2"),
            ("sept", "sep"),
            ("June - Sept / 2", "jun-sep/2"),
        ] {
            assert_eq!(months(theirs), ours, "{theirs}");
            assert!(is_accepted(in_months(theirs)), "{theirs}");
        }
        for text in ["jan-mar-may", "jan to mar", "13", "0", "l", "*/2", "ju", ""] {
            assert!(!is_accepted(in_months(text)), "{text}");
        }
        assert!(wraps("25-5") && !wraps("5-25") && !wraps("28-L") && !wraps("1/10"));
        for (theirs, ours) in [("9:00", "09:00"), ("23:59", "23:59"), ("09:5", "09:05")] {
            assert_eq!(time(theirs), ours);
        }
        for text in ["", "9", "12:60", "+9:00", "9:00:00", "123:00"] {
            let period =
                PeriodDefinition { begin: Some(time(text)), ..PeriodDefinition::default() };
            assert!(!is_accepted(period), "{text}");
        }
    }

    #[test]
    fn a_field_that_matches_all_days_is_left_out() {
        let list = |entries: &[&str]| entries.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(field(&[], weekdays).is_empty());
        assert!(field(&list(&["mon", "*"]), weekdays).is_empty());
        assert!(field(&list(&["?"]), str::to_uppercase).is_empty());
        assert_eq!(field(&list(&["1", "3-4"]), weekdays), ["tue, thu-fri"]);
    }
}
