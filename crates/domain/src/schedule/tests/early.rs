//! Schedules whose starts count early.

use jiff::{SignedDuration, ToSpan as _};
use serde_json::{Value, json};

use super::{super::*, at, schedule};

/// Checks the edges of an early schedule for one day from midnight, each as `HH:MM desired`.
#[track_caller]
fn check(definition: Value, lead: SignedDuration, expected: &[&str]) {
    let schedule = schedule(definition);
    let early = Early { schedule: &schedule, lead };
    let midnight = at("2026-03-03T00:00Z");
    let mut edges = Vec::new();
    let mut after = midnight - 1.nanosecond();
    while let Some(edge) = early.next_edge(after).filter(|edge| edge.at < midnight + 24.hours()) {
        edges.push(edge);
        after = edge.at;
    }
    let shown: Vec<String> = edges
        .iter()
        .map(|edge| {
            format!(
                "{} {}",
                edge.at.to_zoned(jiff::tz::TimeZone::UTC).strftime("%H:%M"),
                desired_or_any(edge.desired)
            )
        })
        .collect();
    assert_eq!(shown, expected);
    for (edge, next) in edges.iter().zip(edges.iter().skip(1)) {
        for instant in [edge.at, edge.at + 1.second(), next.at - 1.nanosecond()] {
            let latest = LatestEdge { since: Some(edge.at), desired: edge.desired };
            assert_eq!(early.latest_edge(instant), latest, "{instant}");
            assert_eq!(early.desired_at(instant), edge.desired, "{instant}");
        }
    }
}

fn runs(periods: &[(&str, &str)]) -> Value {
    let periods = periods.iter().map(|(begin, end)| json!({"begin": begin, "end": end}));
    json!({"timezone": "UTC", "periods": periods.collect::<Value>()})
}

const LEAD: SignedDuration = SignedDuration::from_mins(40);

#[test]
fn a_start_counts_so_much_earlier_and_a_stop_at_its_instant() {
    check(runs(&[("08:00", "18:00")]), LEAD, &["07:20 running", "18:00 stopped"]);
    check(runs(&[("08:00", "18:00")]), SignedDuration::ZERO, &["08:00 running", "18:00 stopped"]);
}

#[test]
fn a_start_soon_after_a_stop_counts_at_its_own_instant_and_the_stop_does_not() {
    let day = runs(&[("08:00", "12:00"), ("12:30", "18:00")]);
    check(day, LEAD, &["07:20 running", "12:30 running", "18:00 stopped"]);
    // A stop that is exactly the lead away from the start.
    let day = runs(&[("08:00", "12:00"), ("12:40", "18:00")]);
    check(day, LEAD, &["07:20 running", "12:40 running", "18:00 stopped"]);
    let day = runs(&[("08:00", "12:00"), ("12:41", "18:00")]);
    let edges = ["07:20 running", "12:00 stopped", "12:01 running", "18:00 stopped"];
    check(day, LEAD, &edges);
}

#[test]
fn where_every_stop_is_soon_followed_by_a_start_each_start_is_an_edge() {
    check(runs(&[("02:00", "01:41")]), LEAD, &["02:00 running"]);
}
