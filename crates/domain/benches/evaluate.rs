//! How fast schedules answer: `cargo bench -p domain --bench evaluate`.
//!
//! Each sample gets instants of its own, spread over ten years and never used twice, so that no
//! answer can come from a cache or a well-trained branch.

use std::hint::black_box;

use divan::{Bencher, counter::ItemsCount};
use domain::schedule::{Definition, Desired, PeriodDefinition, Schedule};
use jiff::{SignedDuration, Timestamp};

const ZONES: [&str; 4] =
    ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"];

const INSTANTS_PER_SAMPLE: usize = 10_000;

fn main() {
    divan::main();
}

/// Seconds from 2026 to 2036 in an order that looks random: multiples of a number that has no
/// factor in common with their count.
struct Instants {
    position: i64,
}

impl Instants {
    const TEN_YEARS: i64 = 3_652 * 24 * 60 * 60;
    const STEP: i64 = 195_025_397;

    fn take(&mut self, count: usize) -> Vec<Timestamp> {
        let start: Timestamp = "2026-01-01T00:00Z".parse().expect("a valid instant");
        let next = || {
            self.position = (self.position + Self::STEP) % Self::TEN_YEARS;
            start + SignedDuration::from_secs(self.position)
        };
        std::iter::repeat_with(next).take(count).collect()
    }
}

fn period(
    weekdays: &str,
    monthdays: &str,
    months: &str,
    begin: &str,
    end: &str,
) -> PeriodDefinition {
    let field = |text: &str| match text {
        "" => Vec::new(),
        text => vec![text.to_owned()],
    };
    let time = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    PeriodDefinition {
        weekdays: field(weekdays),
        monthdays: field(monthdays),
        months: field(months),
        begin: time(begin),
        end: time(end),
        ..PeriodDefinition::default()
    }
}

/// Office hours, a Saturday, nights at the end of the month, and a daily job.
fn four_periods(zone: &str) -> Schedule {
    checked(&Definition {
        timezone: zone.to_owned(),
        periods: vec![
            period("mon-fri", "", "", "08:00", "19:00"),
            period("sat#1", "", "sep-jun", "10:00", "14:00"),
            period("", "28-L,15W", "", "22:00", "04:00"),
            period("mon,wed,friL", "", "jan/3", "20:15", "20:45"),
        ],
        holidays: vec!["2026-12-24..2026-12-26".to_owned(), "12-24..01-02".to_owned()],
        ..Definition::default()
    })
}

fn office_hours_as_cron(zone: &str) -> Schedule {
    checked(&Definition {
        timezone: zone.to_owned(),
        holidays: vec!["12-24..01-02".to_owned()],
        start: Some("0 8 * * mon-fri".to_owned()),
        stop: Some("0 19 * * *".to_owned()),
        ..Definition::default()
    })
}

fn checked(definition: &Definition) -> Schedule {
    Schedule::new(definition).expect("the definition is right")
}

/// Evaluates every schedule at instants of its own.
fn evaluate(
    bencher: Bencher,
    schedule: impl Fn(&str) -> Schedule,
    answer: impl Fn(&Schedule, Timestamp) -> bool,
) {
    let schedules = ZONES.map(schedule);
    let mut instants = Instants { position: 0 };
    bencher
        .counter(ItemsCount::new(INSTANTS_PER_SAMPLE))
        .with_inputs(|| instants.take(INSTANTS_PER_SAMPLE))
        .bench_local_refs(|instants| {
            let pairs = instants.iter().zip(schedules.iter().cycle());
            pairs.filter(|(at, schedule)| answer(schedule, black_box(**at))).count()
        });
}

#[divan::bench]
fn desired_of_four_periods(bencher: Bencher) {
    evaluate(bencher, four_periods, |schedule, at| {
        schedule.desired_at(at) == Some(Desired::Running)
    });
}

#[divan::bench]
fn desired_of_cron(bencher: Bencher) {
    evaluate(bencher, office_hours_as_cron, |schedule, at| {
        schedule.desired_at(at) == Some(Desired::Running)
    });
}

#[divan::bench(sample_count = 20)]
fn next_edge_of_four_periods(bencher: Bencher) {
    evaluate(bencher, four_periods, |schedule, at| schedule.next_edge(at).is_some());
}

#[divan::bench(sample_count = 20)]
fn latest_edge_of_four_periods(bencher: Bencher) {
    evaluate(bencher, four_periods, |schedule, at| schedule.latest_edge(at).since.is_some());
}

/// All edges of a year: a preview of one schedule.
#[divan::bench(args = ZONES)]
fn edges_of_a_year(bencher: Bencher, zone: &str) {
    let schedule = four_periods(zone);
    let mut instants = Instants { position: 0 };
    bencher.counter(ItemsCount::new(1_usize)).with_inputs(|| instants.take(1)).bench_local_refs(
        |instants| {
            let start = instants[0];
            let end = start + SignedDuration::from_hours(365 * 24);
            schedule.edges(start).take_while(|edge| edge.at < end).count()
        },
    );
}

/// A definition, checked.
#[divan::bench]
fn parse_four_periods(bencher: Bencher) {
    let definition = four_periods("Europe/Berlin").definition().clone();
    bencher.bench_local(|| checked(black_box(&definition)));
}
