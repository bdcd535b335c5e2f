//! Translates the days and times of AWS Instance Scheduler into ours.

use domain::schedule::{MONTHS, WEEKDAYS};

/// Writes `9:00` as `09:00`.
pub(super) fn time(text: &str) -> Result<String, String> {
    let malformed = || format!("invalid time `{text}`");
    let (hour, minute) = text.split_once(':').ok_or_else(malformed)?;
    let digits = |text: &str, most| number(text, 0, most).filter(|_| text.len() <= 2);
    match (digits(hour, 23), digits(minute, 59)) {
        (Some(hour), Some(minute)) => Ok(format!("{hour:02}:{minute:02}")),
        _ => Err(malformed()),
    }
}

/// Translates the entries of a field. The result is empty if the field matches all days.
pub(super) fn field(
    entries: Option<Vec<String>>,
    translate: fn(&str) -> Result<String, String>,
) -> Result<Vec<String>, String> {
    let entries = entries.unwrap_or_default();
    if entries.iter().any(|entry| entry == "*" || entry == "?") {
        return Ok(Vec::new());
    }
    let translated: Vec<_> =
        entries.iter().map(|entry| translate(entry)).collect::<Result<_, _>>()?;
    Ok(if translated.is_empty() { Vec::new() } else { vec![translated.join(", ")] })
}

/// Translates weekdays: the numbers of AWS Instance Scheduler, which count from Monday as 0, become
/// names. A step becomes a list of days.
pub(super) fn weekdays(entry: &str) -> Result<String, String> {
    let day = |text: &str| weekday(entry, text);
    let name = |text: &str| Ok(short(&WEEKDAYS, day(text)?));
    let lower = entry.to_lowercase();
    if lower == "l" {
        return Ok("sun".to_owned());
    }
    if let Some((text, occurrence)) = lower.split_once('#') {
        let occurrence = number(occurrence, 1, 5);
        let occurrence = occurrence.ok_or_else(|| format!("`{entry}` has no 1 to 5 after #"))?;
        return Ok(format!("{}#{occurrence}", name(text)?));
    }
    if let Some((range, step)) = lower.split_once('/') {
        let (first, last) = range.split_once('-').unwrap_or((range, "sun"));
        let (first, last) = (day(first)?, day(last)?);
        let step = number(step.trim(), 1, usize::MAX);
        let step = step.ok_or_else(|| format!("`{entry}` has no step"))?;
        let days = (first..=first + (last + 7 - first) % 7).step_by(step);
        let days: Vec<_> = days.map(|day| short(&WEEKDAYS, day % 7)).collect();
        return Ok(days.join(", "));
    }
    if let Some((first, last)) = lower.split_once('-') {
        return Ok(format!("{}-{}", name(first)?, name(last)?));
    }
    match last_of_month(&lower) {
        Some(text) => Ok(format!("{}L", name(text)?)),
        None => name(&lower),
    }
}

/// The weekday whose last occurrence in the month an entry stands for: `friL`, and `fril` too.
pub(super) fn last_of_month(entry: &str) -> Option<&str> {
    entry.strip_suffix(['L', 'l']).filter(|day| !day.is_empty())
}

fn weekday(entry: &str, text: &str) -> Result<usize, String> {
    let text = text.trim();
    position(&WEEKDAYS, text)
        .or_else(|| number(text, 0, 6))
        .ok_or_else(|| format!("unknown weekday `{text}` in `{entry}`"))
}

/// The index of a name in full or by its first letters, at least three. Earlier releases of AWS
/// Instance Scheduler compared the first three only, as in `sept` and `thurs`: ISAWS.
fn position(names: &[&str], text: &str) -> Option<usize> {
    let stands_for = |name: &&str| text.len() >= 3 && name.starts_with(text);
    names.iter().position(stands_for)
}

fn short(names: &[&str], index: usize) -> String {
    names[index][..3].to_owned()
}

fn number(text: &str, least: usize, most: usize) -> Option<usize> {
    let plain = text.bytes().all(|c| c.is_ascii_digit());
    let number = text.parse().ok().filter(|_| plain)?;
    (least..=most).contains(&number).then_some(number)
}

/// Days of the month are written the same, except that ranges do not wrap at AWS.
pub(super) fn monthdays(entry: &str) -> Result<String, String> {
    let upper = entry.to_uppercase();
    let range = upper.split('/').next().unwrap_or_default();
    if let Some((first, last)) = range.split_once('-')
        && let (Ok(first), Ok(last)) = (first.trim().parse::<u32>(), last.trim().parse::<u32>())
        && first > last
    {
        return Err(format!("`{entry}` ends before it begins"));
    }
    Ok(upper)
}

/// Months are written the same, except that names are shortened.
pub(super) fn months(entry: &str) -> Result<String, String> {
    let month = |text: &str| {
        let text = text.trim();
        let named = position(&MONTHS, text).map(|index| short(&MONTHS, index));
        let numbered = || number(text, 1, 12).map(|month| month.to_string());
        named.or_else(numbered).ok_or_else(|| format!("unknown month `{text}` in `{entry}`"))
    };
    let lower = entry.to_lowercase();
    let (range, step) = match lower.split_once('/') {
        Some((range, step)) => (range, format!("/{}", step.trim())),
        None => (lower.as_str(), String::new()),
    };
    Ok(match range.split_once('-') {
        Some((first, last)) => format!("{}-{}{step}", month(first)?, month(last)?),
        None => format!("{}{step}", month(range)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(translate: fn(&str) -> Result<String, String>, table: &[(&str, &str)]) {
        for (theirs, ours) in table {
            assert_eq!(translate(theirs).as_deref(), Ok(*ours), "{theirs}");
        }
    }

    #[test]
    fn weekdays_have_names_here_and_steps_are_counted_out() {
        check(
            weekdays,
            &[
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
            ],
        );
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
            assert!(weekdays(text).is_err(), "{text}");
        }
    }

    #[test]
    fn days_months_and_times_are_tidied() {
        check(monthdays, &[("15w", "15W"), ("28-l", "28-L"), ("1/10", "1/10"), ("l", "L")]);
        assert!(monthdays("25-5").is_err());
        check(
            months,
            &[
                ("Jan/3", "jan/3"),
                ("11-2", "11-2"),
                ("sept", "sep"),
                ("June - Sept / 2", "jun-sep/2"),
            ],
        );
        for text in ["jan-mar-may", "jan to mar", "13", "0", "l", "*/2", "ju", ""] {
            assert!(months(text).is_err(), "{text}");
        }
        check(time, &[("9:00", "09:00"), ("23:59", "23:59"), ("09:5", "09:05")]);
        for text in ["", "9", "24:00", "12:60", "+9:00", "9:00:00", "123:00"] {
            assert!(time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_field_that_matches_all_days_is_left_out() {
        let list = |entries: &[&str]| Some(entries.iter().map(ToString::to_string).collect());
        assert_eq!(field(None, weekdays), Ok(vec![]));
        assert_eq!(field(list(&["mon", "*"]), weekdays), Ok(vec![]));
        assert_eq!(field(list(&["?"]), monthdays), Ok(vec![]));
        let several = field(list(&["1", "3-4"]), weekdays);
        assert_eq!(several, Ok(vec!["tue, thu-fri".to_owned()]));
    }
}
