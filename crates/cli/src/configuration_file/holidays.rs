//! Holidays in a file beside the configuration: days and ranges of days, one on each line, or the
//! all-day events of a calendar in the format of RFC 5545.

use std::{collections::BTreeMap, path::Path};

use domain::schedule::check_holidays;
use environment::file::{self, LONGEST_TEXT};
use jiff::{ToSpan as _, civil::Date};

/// Stands before the name of such a file in a list of holidays.
pub(super) const FILE: &str = "file:";

const BYTE_ORDER_MARK: char = '\u{feff}';

/// Reads the holidays of a file, as they are written in a list of holidays.
pub(super) fn read(name: &str, folder: &Path) -> Result<Vec<String>, String> {
    if name.is_empty() || name.contains(['/', '\\']) || name == ".." {
        return Err(format!(
            "`{FILE}{name}`: name a file beside this one, such as {FILE}holidays.ics"
        ));
    }
    let bytes = file::read(&folder.join(name), LONGEST_TEXT)
        .map_err(|error| format!("cannot read {name}: {error}"))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{name} is not UTF-8 text"))?;
    let text = text.trim_start_matches(BYTE_ORDER_MARK);
    let found = if text.starts_with("BEGIN:VCALENDAR") { events(text) } else { days(text) };
    match found {
        Ok(days) if days.is_empty() => Err(format!("{name} has no days and no all-day events")),
        Ok(days) => Ok(days),
        Err((line, message)) => Err(format!("{name}:{line}: {message}")),
    }
}

/// What is wrong on a line, which is counted from 1.
type LineError = (usize, String);

/// Reads a day or a range on each line; `#` begins a comment.
fn days(text: &str) -> Result<Vec<String>, LineError> {
    let mut days = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let day = line.split('#').next().unwrap_or_default().trim();
        if !day.is_empty() {
            check_holidays(day).map_err(|message| (number, message))?;
            days.push(day.to_owned());
        }
    }
    Ok(days)
}

/// The properties of an event by their names.
type Event = BTreeMap<String, String>;

/// Reads the all-day events of a calendar; other events are no holidays.
fn events(text: &str) -> Result<Vec<String>, LineError> {
    let mut days = Vec::new();
    let mut event: Option<(usize, Event)> = None;
    for (line, content) in unfolded(text) {
        let Some((name, value)) = content.split_once(':') else {
            continue;
        };
        let name = name.split(';').next().unwrap_or_default().to_uppercase();
        let value = value.trim().to_uppercase();
        match (name.as_str(), value.as_str()) {
            ("BEGIN", "VEVENT") => event = Some((line, Event::new())),
            ("END", "VEVENT") => {
                if let Some((line, event)) = event.take() {
                    days.extend(days_of(&event).map_err(|message| (line, message))?);
                }
            }
            (_, _) => {
                // An alarm follows all properties of its event, and has some of the same names.
                if let Some((_, event)) = &mut event
                    && !event.contains_key("BEGIN")
                {
                    event.insert(name, value);
                }
            }
        }
    }
    match event {
        Some((line, _)) => Err((line, "this event has no end".to_owned())),
        None => Ok(days),
    }
}

/// Returns the lines with their numbers; a line that begins with a blank continues the one before.
fn unfolded(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        match (line.strip_prefix([' ', '\t']), lines.last_mut()) {
            (Some(rest), Some((_, last))) => last.push_str(rest),
            (_, _) => lines.push((number, line.to_owned())),
        }
    }
    lines
}

/// The days of an event, as one entry of a list; none if it is not an all-day event.
fn days_of(event: &Event) -> Result<Option<String>, String> {
    let property = |name: &str| event.get(name).map(String::as_str);
    let begins = property("DTSTART");
    let first = begins.and_then(date);
    if let Some(begins) = begins.filter(|begins| begins.len() == 8 && first.is_none()) {
        return Err(format!("{begins} is not a date"));
    }
    let Some(first) = first.filter(|_| property("STATUS") != Some("CANCELLED")) else {
        return Ok(None);
    };
    let wrong = |what: &str| format!("cannot read {what} of the event on {first}");
    let length = match (property("DTEND"), property("DURATION")) {
        (Some(ends), _) => {
            let ends = date(ends).ok_or_else(|| wrong("the end"))?;
            (ends - first).get_days()
        }
        (None, Some(lasts)) => length(lasts).ok_or_else(|| wrong("the duration"))?,
        (None, None) => 1,
    };
    // An end is the day after the last one; some programs write the last one.
    let last = first.checked_add((length - 1).max(0).days()).map_err(|_| wrong("the end"))?;
    let odd = ["RDATE", "EXDATE", "EXRULE", "RECURRENCE-ID"]
        .into_iter()
        .find(|name| event.contains_key(*name));
    let format = match (property("RRULE"), odd) {
        (None, None) => "%Y-%m-%d",
        (Some(rule), None) if is_yearly(rule, first) => "%m-%d",
        (rule, odd) => {
            let how = odd.or(rule).unwrap_or_default();
            return Err(format!(
                "the event on {first} repeats by {how}, which is not supported; write its days"
            ));
        }
    };
    let (begin, end) = (first.strftime(format), last.strftime(format));
    Ok(Some(if first == last { begin.to_string() } else { format!("{begin}..{end}") }))
}

fn date(text: &str) -> Option<Date> {
    let is_date = text.len() == 8;
    Date::strptime("%Y%m%d", text).ok().filter(|_| is_date)
}

fn length(text: &str) -> Option<i32> {
    let span = text.strip_prefix('P')?;
    let (number, days) = match span.strip_suffix('W') {
        Some(weeks) => (weeks, 7),
        None => (span.strip_suffix('D')?, 1),
    };
    let number = number.parse::<i32>().ok().filter(|number| (1..=366).contains(number))?;
    Some(days * number)
}

/// Reports whether a rule repeats its first day every year, without an end.
fn is_yearly(rule: &str, first: Date) -> bool {
    let is_same = |value: &str, own: i8| value.parse() == Ok(own);
    rule.split(';').any(|part| part == "FREQ=YEARLY")
        && rule.split(';').all(|part| match part.split_once('=') {
            Some(("FREQ" | "WKST", _)) => true,
            Some(("INTERVAL", every)) => every == "1",
            Some(("BYMONTH", month)) => is_same(month, first.month()),
            Some(("BYMONTHDAY", day)) => is_same(day, first.day()),
            _ => part.is_empty(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calendar(events: &str) -> Result<Vec<String>, LineError> {
        super::events(&format!("BEGIN:VCALENDAR\r\n{events}END:VCALENDAR\r\n"))
    }

    fn event(properties: &str) -> String {
        format!("BEGIN:VEVENT\r\n{properties}\r\nSUMMARY:Holiday\r\nEND:VEVENT\r\n")
    }

    #[track_caller]
    fn check(properties: &str, expected: &[&str]) {
        let expected = expected.iter().map(ToString::to_string).collect();
        assert_eq!(calendar(&event(properties)), Ok(expected), "{properties}");
    }

    #[test]
    fn all_day_events_are_days_and_ranges() {
        check("DTSTART;VALUE=DATE:20261225\r\nDTEND;VALUE=DATE:20261226", &["2026-12-25"]);
        check(
            "DTSTART;VALUE=DATE:20261224\r\nDTEND;VALUE=DATE:20261227",
            &["2026-12-24..2026-12-26"],
        );
        check("DTSTART;VALUE=DATE:20261224", &["2026-12-24"]);
        check("DTSTART;VALUE=DATE:20261224\r\nDURATION:P2D", &["2026-12-24..2026-12-25"]);
        check("DTSTART;VALUE=DATE:20261225\r\nDTEND;VALUE=DATE:20261225", &["2026-12-25"]);
        check(
            "DTSTART;VALUE=DATE:20261224\r\nBEGIN:VALARM\r\nDURATION:PT15M\r\nEND:VALARM",
            &["2026-12-24"],
        );
        // A long line is folded.
        check("DTSTART;VALUE=DA\r\n TE:2026\r\n\t1224", &["2026-12-24"]);
    }

    #[test]
    fn yearly_events_are_yearly_days() {
        check("DTSTART;VALUE=DATE:20200101\r\nRRULE:FREQ=YEARLY", &["01-01"]);
        check(
            "DTSTART;VALUE=DATE:20201224\r\nDTEND;VALUE=DATE:20201227\r\n\
             RRULE:FREQ=YEARLY;INTERVAL=1;BYMONTH=12;BYMONTHDAY=24",
            &["12-24..12-26"],
        );
        for rule in ["FREQ=YEARLY;BYDAY=4TH;BYMONTH=11", "FREQ=YEARLY;COUNT=3", "FREQ=WEEKLY"] {
            let text = event(&format!("DTSTART;VALUE=DATE:20261126\r\nRRULE:{rule}"));
            let (line, message) = calendar(&text).unwrap_err();
            assert_eq!(line, 2);
            assert!(message.contains(rule), "{message}");
        }
        let text = "DTSTART;VALUE=DATE:20200101\r\nRRULE:FREQ=YEARLY\r\nEXDATE;VALUE=DATE:20260101";
        assert!(calendar(&event(text)).unwrap_err().1.contains("EXDATE"));
        let more = "DTSTART;VALUE=DATE:20261225\r\nRDATE;VALUE=DATE:20261228";
        assert!(calendar(&event(more)).unwrap_err().1.contains("repeats by RDATE"));
        let moved = "DTSTART;VALUE=DATE:20261225\r\nRECURRENCE-ID;VALUE=DATE:20261224";
        assert!(calendar(&event(moved)).unwrap_err().1.contains("RECURRENCE-ID"));
        let no_day = event("DTSTART;VALUE=DATE:20261325");
        assert_eq!(calendar(&no_day), Err((2, "20261325 is not a date".to_owned())));
        let endless = "BEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20261225\r\n";
        assert_eq!(calendar(endless), Err((2, "this event has no end".to_owned())));
    }

    #[test]
    fn timed_and_cancelled_events_are_no_holidays() {
        check("DTSTART;TZID=Europe/Berlin:20261224T180000\r\nDTEND:20261224T190000Z", &[]);
        check("DTSTART;VALUE=DATE:20261225\r\nSTATUS:CANCELLED", &[]);
    }

    #[test]
    fn a_list_has_a_day_or_a_range_on_each_line() {
        let text = "# Closed\n2026-12-24..2026-12-26  # Christmas\r\n\n01-01\n";
        assert_eq!(days(text), Ok(vec!["2026-12-24..2026-12-26".to_owned(), "01-01".to_owned()]));
        let (line, message) = days("01-01\n2026-02-30\n").unwrap_err();
        assert_eq!(line, 2);
        assert!(message.contains("no such day"), "{message}");
    }
}
