//! The observer's own reading of schedules. It is written from their description in
//! `docs/schedules.md`, shares no code with the service's, and knows as much of the grammar as nights
//! use.

use std::collections::BTreeMap;

use domain::schedule::{Definition, Desired, PeriodDefinition};
use jiff::{
    SignedDuration, Timestamp,
    civil::Date,
    tz::{AmbiguousOffset, TimeZone},
};

const MINUTE: SignedDuration = SignedDuration::from_mins(1);
const DAY: i64 = 24 * 60;

/// How long a stop at midnight is desired, in minutes.
const NIGHT: i64 = 6 * 60;

const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// The desired state from an instant on; `None` if either will do.
pub(super) type Turn = (Timestamp, Option<Desired>);

/// Returns the state that a schedule wants at an instant, and each change of it until another one.
pub(super) fn turns(definition: &Definition, from: Timestamp, until: Timestamp) -> Vec<Turn> {
    let zone = TimeZone::get(&definition.timezone).expect("a time zone of the generator's");
    let day_of = |at: Timestamp| at.to_zoned(zone.clone()).date();
    let days = |before: i64| {
        let first = day_of(from - SignedDuration::from_hours(before * 24));
        let last = day_of(until + SignedDuration::from_hours(48));
        first.series(jiff::Span::new().days(1)).take_while(move |day| *day <= last)
    };
    let mut all = match (&definition.start, &definition.stop) {
        (Some(start), Some(stop)) => of_cron(definition, &zone, days(40), start, stop),
        // A window that reaches into the time begins a day earlier at most.
        _ => of_periods(definition, &zone, days(2)),
    };
    all.dedup_by_key(|(_, desired)| *desired);
    let begun = all.iter().rposition(|(at, _)| *at <= from);
    let mut turns = all.split_off(begun.unwrap_or_default());
    turns.retain(|(at, _)| *at <= until);
    if let Some(first) = turns.first_mut() {
        first.0 = first.0.max(from);
    }
    turns
}

fn of_cron<'d>(
    definition: &Definition,
    zone: &TimeZone,
    days: impl Iterator<Item = Date>,
    start: &'d str,
    stop: &'d str,
) -> Vec<Turn> {
    let fields = |expression: &'d str| expression.split_whitespace().collect::<Vec<_>>();
    let [start, stop] = [start, stop].map(fields);
    let [starts, stops] = [&start, &stop].map(|fields| minutes_of_firings(fields));
    let mut firings = Vec::new();
    for day in days {
        if fires_on(&stop, day) {
            let at = |minute| instant(zone, day, minute, Occurrence::Last);
            firings.extend(stops.iter().map(|&minute| (at(minute), day, minute, false)));
        }
        if fires_on(&start, day) && !is_holiday(definition, day) {
            let at = |minute| instant(zone, day, minute, Occurrence::First);
            firings.extend(starts.iter().map(|&minute| (at(minute), day, minute, true)));
        }
    }
    // At one instant, the later time counts; of a stop and a start at one time, the start.
    firings.sort_unstable();
    let desired = |starts| if starts { Desired::Running } else { Desired::Stopped };
    let turns = firings.into_iter().map(|(at, _, _, starts)| (at, Some(desired(starts))));
    turns.collect::<BTreeMap<_, _>>().into_iter().collect()
}

/// Returns the minutes of a day, on a day on which an expression fires.
fn minutes_of_firings(fields: &[&str]) -> Vec<i64> {
    let matching =
        |field, size| (0..size).filter(move |value| number_matches(field, *value, 0, size - 1, 0));
    let minutes: Vec<_> = matching(fields[0], 60).collect();
    matching(fields[1], 24)
        .flat_map(|hour| minutes.iter().map(move |minute| hour * 60 + minute))
        .collect()
}

fn fires_on(fields: &[&str], day: Date) -> bool {
    let length = i64::from(day.days_in_month());
    let of_month = number_matches(fields[2], i64::from(day.day()), 1, 31, length);
    let of_week = weekday_matches(fields[4], day);
    let either = fields[2] != "*" && fields[4] != "*";
    month_matches(fields[3], day) && if either { of_month || of_week } else { of_month && of_week }
}

/// What a period says, the strongest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Says {
    Running,
    StoppedAtMidnight,
    Any,
    Stopped,
}

/// What a period says from an instant until another one.
type Saying = (Timestamp, Timestamp, Says);

fn of_periods(
    definition: &Definition,
    zone: &TimeZone,
    days: impl Iterator<Item = Date>,
) -> Vec<Turn> {
    let mut said = Vec::new();
    for day in days {
        for period in definition.periods.iter().filter(|period| begins_on(period, day)) {
            said.extend(sayings(period, zone, day, is_holiday(definition, day)));
        }
    }
    let said = bridged(said);
    let one_sided = |period: &PeriodDefinition| period.begin.is_some() != period.end.is_some();
    let otherwise = (!definition.periods.iter().all(one_sided)).then_some(Desired::Stopped);
    let mut instants: Vec<_> = said.iter().flat_map(|(from, until, _)| [*from, *until]).collect();
    instants.sort_unstable();
    instants.dedup();
    let turns = instants.into_iter().map(|at| {
        let now = said.iter().filter(|(from, until, _)| *from <= at && at < *until);
        let desired = match now.map(|(.., says)| *says).min() {
            Some(Says::Running) => Some(Desired::Running),
            Some(Says::StoppedAtMidnight | Says::Stopped) => Some(Desired::Stopped),
            Some(Says::Any) => None,
            None => otherwise,
        };
        (at, desired)
    });
    [(Timestamp::MIN, otherwise)].into_iter().chain(turns).collect()
}

/// Returns what a period says about a day on which it applies.
fn sayings(period: &PeriodDefinition, zone: &TimeZone, day: Date, holiday: bool) -> Vec<Saying> {
    let first = |minute| instant(zone, day, minute, Occurrence::First);
    let last = |minute| instant(zone, day, minute, Occurrence::Last);
    let begin = period.begin.as_deref().map(minute_of_day);
    let end = period.end.as_deref().map(minute_of_day).map(|at| if at == 0 { DAY } else { at });
    match (begin, end) {
        (None, Some(DAY)) => vec![
            (first(0), last(DAY), Says::Any),
            (last(DAY), last(DAY + NIGHT), Says::StoppedAtMidnight),
        ],
        (None, Some(end)) => {
            vec![(first(0), last(end), Says::Any), (last(end), last(DAY), Says::Stopped)]
        }
        // Nothing starts on a holiday.
        _ if holiday => Vec::new(),
        (Some(begin), None) => {
            vec![(first(0), first(begin), Says::Any), (first(begin), last(DAY), Says::Running)]
        }
        (begin, end) => {
            let (begin, end) = (begin.unwrap_or(0), end.unwrap_or(DAY));
            let end = if end <= begin { end + DAY } else { end };
            vec![(first(begin), last(end), Says::Running)]
        }
    }
}

/// Joins windows with a gap of at most a minute between them.
fn bridged(said: Vec<Saying>) -> Vec<Saying> {
    let is_window = |one: &Saying| one.2 == Says::Running;
    let (mut windows, rest): (Vec<_>, Vec<_>) = said.into_iter().partition(is_window);
    windows.retain(|(from, until, _)| from < until);
    windows.sort_unstable();
    windows.dedup_by(|next, window| {
        let joins = next.0 <= window.1 + MINUTE;
        window.1 = if joins { window.1.max(next.1) } else { window.1 };
        joins
    });
    windows.into_iter().chain(rest).collect()
}

fn begins_on(period: &PeriodDefinition, day: Date) -> bool {
    let (number, length) = (i64::from(day.day()), i64::from(day.days_in_month()));
    let field = |list: &[String], matches: &dyn Fn(&str) -> bool| {
        list.is_empty() || list.iter().flat_map(|text| text.split(',')).any(matches)
    };
    field(&period.weekdays, &|text| weekday_matches(text, day))
        && field(&period.months, &|text| month_matches(text, day))
        && field(&period.monthdays, &|text| match text.strip_suffix('W') {
            Some(near) => is_nearest(near, day),
            None => number_matches(text, number, 1, 31, length),
        })
}

/// Reports whether a day is the weekday nearest to a day of its month, within the month.
fn is_nearest(text: &str, day: Date) -> bool {
    let Ok(near) = text.parse::<i8>().map(|near| day.first_of_month().with().day(near).build())
    else {
        return false;
    };
    let Ok(near) = near else { return false };
    let moves = match near.weekday().to_monday_zero_offset() {
        5 if near.day() == 1 => 2,
        5 => -1,
        6 if near.day() == near.days_in_month() => -2,
        6 => 1,
        _ => 0,
    };
    near.day() + moves == day.day()
}

fn weekday_matches(text: &str, day: Date) -> bool {
    let (today, number) = (i64::from(day.weekday().to_monday_zero_offset()), day.day());
    text.split(',').any(|text| {
        if let Some((name, nth)) = text.split_once('#') {
            return place(name) == today && nth == ((number - 1) / 7 + 1).to_string();
        }
        if let Some(name) = text.strip_suffix('L') {
            return place(name) == today && number + 7 > day.days_in_month();
        }
        number_matches(text, today, 0, 6, 6)
    })
}

fn month_matches(text: &str, day: Date) -> bool {
    number_matches(text, i64::from(day.month()), 1, 12, 12)
}

/// Reports whether a number is in one of several ranges, which may wrap and take steps. `of_l` is what
/// `L` stands for.
fn number_matches(text: &str, value: i64, first: i64, last: i64, of_l: i64) -> bool {
    let number = |text: &str| if text == "L" { of_l } else { place(text) };
    text.split(',').any(|text| {
        let (range, step) = text.split_once('/').unwrap_or((text, "1"));
        let (from, to) = match range.split_once('-') {
            Some((from, to)) => (number(from), number(to)),
            None if range == "*" => (first, last),
            None if range.len() < text.len() => (number(range), last),
            None => (number(range), number(range)),
        };
        let size = last - first + 1;
        let [passed, length] = [value - from, to - from].map(|n| n.rem_euclid(size));
        passed <= length && passed % step.parse::<i64>().unwrap_or(1) == 0
    })
}

/// Returns the number that a text gives or names: weekdays count from zero, months from one.
fn place(text: &str) -> i64 {
    let weekday = WEEKDAYS.iter().position(|name| *name == text);
    let month = MONTHS.iter().position(|name| *name == text).map(|place| place + 1);
    let named = weekday.or(month).and_then(|place| i64::try_from(place).ok());
    named.or_else(|| text.parse().ok()).expect("a number, or a name")
}

fn is_holiday(definition: &Definition, day: Date) -> bool {
    let all = definition.holidays.iter().flat_map(|text| text.split(',')).map(str::trim);
    let (day, every_year) = (day.to_string(), &day.to_string()[5..]);
    all.into_iter().any(|text| match text.split_once("..") {
        Some((from, to)) => from <= &*day && &*day <= to,
        None => text == day || text == every_year,
    })
}

fn minute_of_day(text: &str) -> i64 {
    let (hour, minute) = text.split_once(':').unwrap_or((text, "0"));
    hour.parse::<i64>().unwrap_or(0) * 60 + minute.parse::<i64>().unwrap_or(0)
}

/// Which occurrence of a time in a repeated hour counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Occurrence {
    First,
    Last,
}

/// Returns when a minute ends, counted from a day's midnight: at its last occurrence.
pub(super) fn last_instant(zone: &TimeZone, day: Date, minute: i64) -> Timestamp {
    instant(zone, day, minute, Occurrence::Last)
}

/// Returns when a minute comes, counted from a day's midnight. One that the clock skips comes at the
/// jump.
fn instant(zone: &TimeZone, day: Date, minute: i64, which: Occurrence) -> Timestamp {
    let local = day.at(0, 0, 0, 0) + SignedDuration::from_mins(minute);
    let found = zone.to_ambiguous_timestamp(local);
    let is_skipped = matches!(found.offset(), AmbiguousOffset::Gap { .. });
    let at = if is_skipped || which == Occurrence::Last { found.later() } else { found.earlier() };
    let at = at.expect("an instant within the calendar");
    let jump = || zone.preceding(at + MINUTE).next().map(|jump| jump.timestamp());
    is_skipped.then(jump).flatten().unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use domain::schedule::Schedule;
    use fastrand::Rng;

    use super::*;
    use crate::generate::schedules::any;

    /// Two months each, from anywhere in these years.
    const YEARS: [&str; 3] = ["2026-01-01T00:00Z", "2027-01-01T00:00Z", "2028-01-01T00:00Z"];

    #[test]
    fn it_agrees_with_the_service_about_what_nights_generate() {
        let mut chance = Rng::with_seed(39);
        let (mut compared, mut edges) = (0, 0);
        while compared < 150 {
            let definition = any(&mut chance);
            let Ok(schedule) = Schedule::new(&definition) else { continue };
            let begin: Timestamp = YEARS[chance.usize(..3)].parse().unwrap();
            let from = begin + chance.i32(0..500_000) * MINUTE;
            let until = from + 60 * 24 * 60 * MINUTE;
            let theirs = schedule.edges(from).map(|edge| (edge.at, edge.desired));
            let theirs = theirs.take_while(|(at, _)| *at <= until);
            let first = (from, schedule.desired_at(from));
            let theirs: Vec<_> = [first].into_iter().chain(theirs).collect();
            let ours = turns(&definition, from, until);
            let differs = ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs);
            let lengths = [ours.len(), theirs.len()];
            assert!(ours == theirs, "{definition:?}: {lengths:?} {differs:?}");
            compared += 1;
            edges += theirs.len();
        }
        assert!(edges > 5_000, "{edges}");
    }
}
