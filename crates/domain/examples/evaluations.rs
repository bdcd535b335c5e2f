//! `evaluations ZONE COUNT`: evaluates a schedule of three periods at so many instants, and prints
//! how many nanoseconds each took, and at how many of them the schedule wants its resources to run.
//!
//! `make bench` evaluates the same schedule, at the same instants, the way that AWS Instance
//! Scheduler does.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program that measures, and prints its result"
)]

use std::{error::Error, time::Instant};

use domain::schedule::{Definition, Desired, PeriodDefinition, Schedule};
use jiff::{SignedDuration, Timestamp};

/// Seconds between two instants: among thousands of them are all times of the day and of the year.
const STEP: i64 = 24 * 60 * 60 + 3607;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [zone, count] = &arguments[..] else {
        return Err("usage: evaluations ZONE COUNT".into());
    };
    let count: u32 = count.parse()?;
    let schedule = schedule(zone)?;
    let start: Timestamp = "2026-01-01T00:00:00Z".parse()?;
    // Over ten years and again.
    let instants: Vec<_> = (0..i64::from(count))
        .map(|index| start + SignedDuration::from_secs(index * STEP % (3_652 * 24 * 60 * 60)))
        .collect();
    let began = Instant::now();
    let running = instants
        .iter()
        .filter(|instant| schedule.desired_at(**instant) == Some(Desired::Running))
        .count();
    let nanoseconds = began.elapsed().as_secs_f64() * 1e9 / f64::from(count);
    println!("{{\"nanoseconds\": {nanoseconds:.1}, \"running\": {running}}}");
    Ok(())
}

/// Office hours, Saturdays but in summer, and evenings at the end of a month: what both can express.
fn schedule(zone: &str) -> Result<Schedule, Box<dyn Error>> {
    let period =
        |weekdays: &[&str], monthdays: &[&str], months: &[&str], begin: &str, end: &str| {
            let owned = |fields: &[&str]| fields.iter().map(|&field| field.to_owned()).collect();
            PeriodDefinition {
                weekdays: owned(weekdays),
                monthdays: owned(monthdays),
                months: owned(months),
                begin: Some(begin.to_owned()),
                end: Some(end.to_owned()),
                ..PeriodDefinition::default()
            }
        };
    let schedule = Schedule::new(&Definition {
        timezone: zone.to_owned(),
        periods: vec![
            period(&["mon-fri"], &[], &[], "08:00", "19:00"),
            period(&["sat"], &[], &["sep-jun"], "10:00", "14:00"),
            period(&[], &["28-31"], &[], "20:00", "23:00"),
        ],
        ..Definition::default()
    });
    schedule.map_err(|problems| format!("{problems:?}").into())
}
