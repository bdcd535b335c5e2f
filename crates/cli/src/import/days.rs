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

/// Weekdays: the numbers of AWS Instance Scheduler, which count from Monday as 0, become names.
pub(super) fn weekdays(entry: &str) -> String {
    let entry = entry.to_lowercase();
    let (days, more) = entry.split_at(entry.find(['#', '/']).unwrap_or(entry.len()));
    let numbered =
        |text: &str| WEEKDAYS.get(text.parse::<usize>().ok().filter(|_| text.len() == 1)?);
    let short = |text: &str| short(numbered(text.trim()).copied().unwrap_or(text), &WEEKDAYS);
    let day = |text: &str| match text.strip_suffix('l').filter(|day| !day.is_empty()) {
        Some(day) => short(day) + "L",
        None => short(text),
    };
    days.split('-').map(day).collect::<Vec<_>>().join("-") + more
}

/// Months: names are shortened.
pub(super) fn months(entry: &str) -> String {
    let entry = entry.to_lowercase();
    let (months, step) = entry.split_at(entry.find('/').unwrap_or(entry.len()));
    let months: Vec<_> = months.split('-').map(|text| short(text, &MONTHS)).collect();
    months.join("-") + &step.replace(' ', "")
}

/// Reports whether days of the month end before they begin. They never do at AWS, and here go on
/// into the next month.
pub(super) fn wraps(monthdays: &str) -> bool {
    let range = monthdays.split('/').next().and_then(|range| range.split_once('-'));
    let day = |text: &str| text.trim().parse::<u8>().ok();
    range.is_some_and(|(first, last)| {
        day(first).zip(day(last)).is_some_and(|(first, last)| first > last)
    })
}

/// Writes `9:00` as `09:00`.
pub(super) fn time(text: &str) -> String {
    text.split(':').map(|digits| format!("{digits:0>2}")).collect::<Vec<_>>().join(":")
}

/// The first three letters of a name, which is in full or cut after three or more; any other text as
/// it is. Earlier releases of AWS Instance Scheduler compared the first three only, as in `sept` and
/// `thurs`: ISAWS.
fn short(text: &str, names: &[&str]) -> String {
    let word = text.trim();
    let is_name = |name: &&&str| word.len() >= 3 && name.starts_with(word);
    names.iter().find(is_name).map_or(text, |name| &name[..3]).to_owned()
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
    fn weekdays_have_names_here() {
        for (theirs, ours) in [
            ("mon", "mon"),
            ("Monday", "mon"),
            ("Tues", "tue"),
            ("thurs-sat", "thu-sat"),
            ("fril", "friL"),
            ("0", "mon"),
            ("0-4", "mon-fri"),
            ("Fri - 0", "fri-mon"),
            ("mon#1", "mon#1"),
            ("4#2", "fri#2"),
            ("4L", "friL"),
        ] {
            assert_eq!(weekdays(theirs), ours, "{theirs}");
            assert!(is_accepted(on_weekdays(theirs)), "{theirs}");
        }
        // Words that begin with a weekday are not that weekday.
        let refused = "7;8-9;fry;mon-;;mon-fri/2;L;-1;é;tue-wed-sat;mon-fri#1;mon#1-3;mon to fri;monthly;\
                       friday-l;fri-L;+1;mo";
        for text in refused.split(';') {
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
