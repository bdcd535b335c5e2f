//! Schedules: periods, days, holidays, cron expressions and zones.
//!
//! An input has a key and its value on each line: `timezone`, `start`, `stop`, `state`, `holidays`,
//! and for the period that the latest line `period` began, `weekdays`, `monthdays`, `months`, `from`,
//! `until`, `begin` and `end`. `at` is the instant at which the schedule is evaluated.

use std::ops::RangeInclusive;

use domain::schedule::{
    Definition, Desired, Edge, PeriodDefinition, PeriodExplanation, PeriodSays, Place, Schedule,
};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};

use crate::check;

/// How many edges are checked.
const EDGES: usize = 6;

/// The years in which all results must agree.
const YEARS: RangeInclusive<i16> = 1900..=2500;

/// An accepted schedule has its edges in order, and each begins the desired state that it names.
pub(crate) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (definition, at) = definition(&text);
    check::json_round_trips(&definition);
    match Schedule::new(&definition) {
        Ok(schedule) if YEARS.contains(&at.to_zoned(TimeZone::UTC).year()) => {
            check_edges(&schedule, at);
            check_explained(&schedule, at);
        }
        // Near the ends of the calendar, only the desired state itself must agree.
        Ok(schedule) => {
            assert_eq!(schedule.explain(at).desired, schedule.desired_at(at));
            assert_eq!(schedule.latest_edge(at).desired, schedule.desired_at(at));
            assert!(schedule.edges(at).take(EDGES).count() <= EDGES);
        }
        Err(problems) => {
            assert!(!problems.is_empty());
            for problem in problems {
                check::has_message(&problem);
                let (count, index) = match problem.place {
                    Place::Period(index) | Place::PeriodField(index, _) => {
                        (definition.periods.len(), index)
                    }
                    Place::Holiday(index) => (definition.holidays.len(), index),
                    Place::Schedule | Place::Timezone | Place::Start | Place::Stop => continue,
                };
                assert!(index < count, "{problem}");
            }
        }
    }
}

/// Reads an input; unknown keys are ignored.
fn definition(text: &str) -> (Definition, Timestamp) {
    let mut definition = Definition::default();
    let mut at = Timestamp::UNIX_EPOCH;
    for line in text.lines() {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        let value = value.to_owned();
        match key {
            "timezone" if definition.periods.is_empty() => definition.timezone = value,
            "start" => definition.start = Some(value),
            "stop" => definition.stop = Some(value),
            "state" => definition.state = serde_json::from_value(value.into()).ok(),
            "holidays" => definition.holidays.push(value),
            "period" => definition.periods.push(PeriodDefinition::default()),
            "at" => at = value.parse().unwrap_or(at),
            key => {
                if let Some(period) = definition.periods.last_mut() {
                    set(period, key, value);
                }
            }
        }
    }
    (definition, at)
}

fn set(period: &mut PeriodDefinition, key: &str, value: String) {
    match key {
        "weekdays" => period.weekdays.push(value),
        "monthdays" => period.monthdays.push(value),
        "months" => period.months.push(value),
        "begin" => period.begin = Some(value),
        "end" => period.end = Some(value),
        "from" => period.from = Some(value),
        "until" => period.until = Some(value),
        "timezone" => period.timezone = Some(value),
        _ => {}
    }
}

fn check_edges(schedule: &Schedule, at: Timestamp) {
    let now = schedule.desired_at(at);
    let latest = schedule.latest_edge(at);
    assert_eq!(latest.desired, now, "the latest edge of {at}");
    if let Some(since) = latest.since {
        assert!(since <= at, "{since} is after {at}");
        assert_eq!(schedule.desired_at(since), now, "at {since}");
        assert_ne!(schedule.desired_at(before(since)), now, "before {since}");
    }
    let (mut previous, mut desired) = (at, now);
    for Edge { at, desired: next } in schedule.edges(at).take(EDGES) {
        assert!(at > previous, "{at} is not after {previous}");
        assert_ne!(next, desired, "no change at {at}");
        assert_eq!(schedule.desired_at(at), next, "at {at}");
        assert_eq!(schedule.desired_at(before(at)), desired, "before {at}");
        assert_eq!(schedule.latest_edge(at).since, Some(at));
        (previous, desired) = (at, next);
    }
}

/// A second before an instant: the desired state changes at whole seconds.
fn before(at: Timestamp) -> Timestamp {
    at - SignedDuration::from_secs(1)
}

fn check_explained(schedule: &Schedule, at: Timestamp) {
    let explained = schedule.explain(at);
    assert_eq!(explained.desired, schedule.desired_at(at));
    assert_eq!(explained.holiday, schedule.is_holiday(explained.reading.date()));
    let periods = &schedule.definition().periods;
    assert_eq!(explained.periods.len(), periods.len());
    let runs = |period: &PeriodExplanation| period.says == Some(PeriodSays::Running);
    if !periods.is_empty() {
        let is_running = explained.bridged || explained.periods.iter().any(runs);
        let desired = explained.desired == Some(Desired::Running);
        assert_eq!(is_running, desired, "{explained:?}");
    }
}
