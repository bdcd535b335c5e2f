//! What counts as stopped. Everything happens in the week of Monday, 15 June 2026, in UTC.

mod counting;
mod properties;

use domain::{
    record::{Direction, Observed, Phase, Record},
    resource::{Power, SavedState},
};
use jiff::Timestamp;

use super::{Kind, Period, Schedules, StoppedInterval};
use testing::history::*;

fn schedules() -> Schedules {
    let text = r#"
[office.schedule]
timezone = "UTC"
periods = [{ weekdays = "mon-fri", begin = "08:00", end = "19:00" }]
[never.schedule]
timezone = "UTC"
start = "0 8 1 1 *"
stop = "0 19 * * *"
"#;
    toml::from_str(text).unwrap()
}

/// Renders intervals as `stopped 15 19:01 to 16 08:00`, one per line.
fn shown(intervals: &[StoppedInterval]) -> Vec<String> {
    let short = |at: Timestamp| at.strftime("%d %H:%M").to_string();
    let line = |interval: &StoppedInterval| {
        let Period { from, until } = interval.period;
        let kind = match interval.kind {
            Kind::Stopped => "stopped",
            Kind::Unclear => "unclear",
            Kind::WouldHave => "would have",
        };
        format!("{kind} {} to {}", short(from), short(until))
    };
    intervals.iter().map(line).collect()
}
