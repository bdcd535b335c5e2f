//! What the explanation says about each part of a schedule.

use serde_json::{Value, json};

use super::{at, schedule};
use crate::schedule::{FiringExplanation, Moved, PeriodExplanation};

/// Checks each period as `SAYS DAY: what does not match`.
#[track_caller]
fn check(definition: Value, instant: &str, expected: &[&str]) {
    let explained = schedule(definition).explain(at(instant));
    let line = |period: &PeriodExplanation| {
        let misses: Vec<_> = period.misses.iter().map(|miss| format!("{miss:?}")).collect();
        let says = period.says.map_or("no say", crate::schedule::PeriodSays::as_str);
        format!("{says} {}: {}", period.day, misses.join(" "))
    };
    let lines: Vec<_> = explained.periods.iter().map(line).collect();
    assert_eq!(lines, expected);
}

fn berlin(periods: Value) -> Value {
    json!({"timezone": "Europe/Berlin", "periods": periods, "holidays": ["2026-12-24"]})
}

#[test]
fn each_field_that_does_not_match_is_named() {
    let period = |begin: &str, end: &str| {
        berlin(json!([
            {"weekdays": ["mon-fri"], "months": ["jan"], "begin": begin, "end": end},
            {"monthdays": ["1-7"], "begin": begin, "end": end},
        ]))
    };
    // A Saturday in June, at 18:00 in Berlin.
    let instant = "2026-06-20T16:00:00Z";
    check(
        period("08:00", "19:00"),
        instant,
        &["stopped 2026-06-20: Weekday Month", "stopped 2026-06-20: Monthday"],
    );
    check(
        period("18:01", "19:00"),
        instant,
        &["stopped 2026-06-20: Weekday Month NotBegun", "stopped 2026-06-20: Monthday NotBegun"],
    );
    check(
        berlin(json!([{"begin": "08:00", "end": "18:00"}, {"begin": "18:00", "end": "18:01"}])),
        instant,
        &["stopped 2026-06-20: Over", "running 2026-06-20: "],
    );
}

#[test]
fn a_window_across_midnight_is_judged_by_the_day_on_which_it_began() {
    let nights = berlin(json!([{"weekdays": ["fri"], "begin": "22:00", "end": "06:00"}]));
    let hours = [
        ("2026-06-19T21:00:00Z", "running 2026-06-19: "),
        ("2026-06-20T01:00:00Z", "running 2026-06-19: "),
        ("2026-06-20T05:00:00Z", "stopped 2026-06-20: Weekday NotBegun"),
        ("2026-06-21T01:00:00Z", "stopped 2026-06-20: Weekday"),
    ];
    for (instant, expected) in hours {
        check(nights.clone(), instant, &[expected]);
    }
}

#[test]
fn on_a_holiday_windows_miss_and_an_end_alone_does_not() {
    let periods = json!([{}, {"begin": "08:00"}, {"end": "12:00"}]);
    check(
        berlin(periods),
        "2026-12-24T12:00:00Z",
        &["stopped 2026-12-24: Holiday", "no say 2026-12-24: Holiday", "stopped 2026-12-24: "],
    );
    let periods = berlin(json!([{}]));
    assert!(schedule(periods.clone()).explain(at("2026-12-24T12:00:00Z")).holiday);
    assert!(!schedule(periods).explain(at("2026-12-24T23:00:00Z")).holiday);
}

#[test]
fn a_minute_between_two_windows_is_said_to_be_bridged() {
    let schedule = schedule(berlin(json!([
        {"begin": "08:00", "end": "11:59"}, {"begin": "12:00", "end": "18:00"},
    ])));
    assert!(schedule.explain(at("2026-06-20T09:59:30Z")).bridged);
    assert!(!schedule.explain(at("2026-06-20T10:00:00Z")).bridged);
}

#[test]
fn a_change_of_the_clock_is_named_with_what_it_moves() {
    let nights = schedule(berlin(json!([{"begin": "22:00", "end": "02:30"}])));
    let check = |instant: &str, change: Option<[&str; 3]>, ends: &str, moved| {
        let explained = nights.explain(at(instant));
        let shown = explained
            .clock_change
            .map(|change| [change.at.to_string(), change.from.to_string(), change.to.to_string()]);
        assert_eq!(shown, change.map(|three| three.map(str::to_owned)));
        let end = explained.periods[0].ends.unwrap();
        assert_eq!((end.at.to_string().as_str(), end.moved), (ends, moved));
    };
    check(
        "2026-03-29T00:30:00Z",
        Some(["2026-03-29T01:00:00Z", "2026-03-29T02:00:00", "2026-03-29T03:00:00"]),
        "2026-03-29T01:00:00Z",
        Some(Moved::Skipped),
    );
    check(
        "2026-10-24T22:00:00Z",
        Some(["2026-10-25T01:00:00Z", "2026-10-25T03:00:00", "2026-10-25T02:00:00"]),
        "2026-10-25T01:30:00Z",
        Some(Moved::Repeated),
    );
    check("2026-06-20T00:00:00Z", None, "2026-06-20T00:30:00Z", None);
}

#[test]
fn a_cron_expression_shows_its_firings_and_the_holiday_that_it_passed_over() {
    let explained = schedule(json!({
        "timezone": "Europe/Berlin",
        "start": "0 8 * * *",
        "stop": "0 19 * * *",
        "holidays": ["2026-12-24"],
    }))
    .explain(at("2026-12-24T10:00:00Z"));
    let line = |firing: &FiringExplanation| {
        let reading = |turn: Option<crate::schedule::Turn>| turn.unwrap().reading;
        (
            firing.expression.clone(),
            [reading(firing.last), reading(firing.next)].map(|at| at.to_string()),
            firing.passed_over.map(|at| at.to_string()),
        )
    };
    let lines: Vec<_> = explained.firings.iter().map(line).collect();
    let text = |text: &str| text.to_owned();
    assert_eq!(
        lines,
        [
            (
                text("0 8 * * *"),
                ["2026-12-23T08:00:00", "2026-12-25T08:00:00"].map(text),
                Some(text("2026-12-24T08:00:00")),
            ),
            (text("0 19 * * *"), ["2026-12-23T19:00:00", "2026-12-24T19:00:00"].map(text), None,),
        ]
    );
    assert!(explained.holiday);
}
