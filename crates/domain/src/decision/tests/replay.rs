//! Whole fortnights, minute by minute: exactly the schedule's edges are acted on, across clock
//! changes in three zones.

use jiff::SignedDuration;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::schedule::Edge;

const MINUTE: SignedDuration = SignedDuration::from_mins(1);
const FORTNIGHT: i64 = 14 * 24 * 60;

/// Zones whose clocks change on different days, in both halves of the year, and one without
/// changes.
const ZONES: [&str; 4] = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC"];

fn definitions(zone: &str) -> Vec<Value> {
    let periods = |periods: Value| json!({"timezone": zone, "periods": periods});
    vec![
        periods(json!([{"weekdays": ["mon-fri"], "begin": "08:00", "end": "19:00"}])),
        periods(json!([
            {"weekdays": ["fri"], "begin": "22:00", "end": "02:30"},
            {"weekdays": ["sun"], "begin": "01:30", "end": "03:00"},
        ])),
        periods(json!([{"begin": "02:15", "end": "02:45"}])),
        periods(json!([{"weekdays": ["mon-sat"], "begin": "07:30"}])),
        periods(json!([{"weekdays": ["tue", "thu"], "end": "20:00"}])),
        json!({"timezone": zone, "start": "0 8 * * 1-5", "stop": "30 1,2,19 * * *"}),
    ]
}

fn of_zone(zone: &str) -> Vec<World> {
    definitions(zone)
        .into_iter()
        .map(|definition| world().with_schedule("office", definition))
        .collect()
}

/// Returns the schedule's own edges after `from`, up to `until`, that have a desired state.
fn edges(world: &World, from: Timestamp, until: Timestamp) -> Vec<Edge> {
    let rule = &world.configuration.schedules[&schedule_name("office")];
    rule.schedule
        .edges(from)
        .take_while(|edge| edge.at <= until)
        .filter(|edge| edge.desired.is_some())
        .collect()
}

/// Returns a record that has handled everything up to an instant.
fn up_to_date(world: &World, now: Timestamp) -> Record {
    let mut record = office_droplet();
    if let Some(edge) = judge(&record, Subject::recorded(&record), world.rules(), now).edge {
        record.handled = Some(Handled {
            generation: world.configuration.generation,
            key: edge.key,
            desired: edge.desired,
            schedule: Some(schedule_name("office")),
        });
    }
    record
}

/// Judges a record, and immediately does what is due.
fn act(world: &World, record: &mut Record, now: Timestamp) -> Option<Edge> {
    let verdict = judge(record, Subject::recorded(record), world.rules(), now);
    let Decision::Act(due) = verdict.decision else {
        return None;
    };
    record.phase = Phase::Settled { at: due.direction.target_state() };
    let edge = Edge { at: due.handled.key.instant, desired: due.handled.desired };
    record.handled = Some(due.handled);
    record.due_at = due_at(record, world.rules(), now);
    Some(edge)
}

/// Ticks through a fortnight, asking the index (`due_at`) first if `indexed`.
fn replay(world: &World, from: Timestamp, indexed: bool) -> Vec<(Timestamp, Edge)> {
    let mut record = up_to_date(world, from);
    record.due_at = due_at(&record, world.rules(), from);
    (1..=FORTNIGHT)
        .filter_map(|minute| {
            let now = from + MINUTE * i32::try_from(minute).unwrap();
            let is_due = record.due_at.is_some_and(|at| at <= now);
            let edge = (is_due || !indexed).then(|| act(world, &mut record, now))?;
            Some((now, edge?))
        })
        .collect()
}

#[track_caller]
fn check(world: &World, from: Timestamp, indexed: bool) {
    let until = from + MINUTE * i32::try_from(FORTNIGHT).unwrap();
    let expected: Vec<_> =
        edges(world, from, until).into_iter().map(|edge| (edge.at, edge)).collect();
    assert_eq!(replay(world, from, indexed), expected, "from {from}");
}

#[test]
fn across_clock_changes_every_edge_is_acted_on_in_its_minute_and_once() {
    // These fortnights contain both clock changes of Berlin, New York and Lord Howe.
    for (zone, froms) in [
        ("Europe/Berlin", ["2026-03-20T00:00:00Z", "2026-10-18T00:00:00Z"]),
        ("America/New_York", ["2026-03-01T00:00:00Z", "2026-10-25T00:00:00Z"]),
        ("Australia/Lord_Howe", ["2026-03-29T00:00:00Z", "2026-09-27T00:00:00Z"]),
    ] {
        for world in of_zone(zone) {
            for from in froms {
                let from = from.parse().unwrap();
                check(&world, from, true);
                let expected = edges(&world, from, from + SignedDuration::from_hours(14 * 24));
                assert!(expected.len() >= 4, "{zone}: {expected:?}");
            }
        }
    }
}

#[test]
fn asking_every_minute_acts_on_the_same_edges_as_the_index() {
    for zone in ["Europe/Berlin", "America/New_York"] {
        let from = "2026-10-18T00:00:00Z".parse().unwrap();
        for world in of_zone(zone).into_iter().take(1) {
            check(&world, from, false);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_fortnight_acts_on_the_schedules_edges(
        zone in 0..ZONES.len(),
        which in 0..6_usize,
        minute in 0..525_600_i64,
    ) {
        let world = &of_zone(ZONES[zone])[which];
        let year: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        check(world, year + SignedDuration::from_mins(minute), true);
    }

    #[test]
    fn lost_ticks_cost_time_but_no_desired_state_and_no_edge_twice(
        zone in 0..ZONES.len(),
        which in 0..6_usize,
        ticks in proptest::collection::btree_set(1..FORTNIGHT, 1..60),
    ) {
        let world = &of_zone(ZONES[zone])[which];
        let from: Timestamp = "2026-10-18T00:00:00Z".parse().unwrap();
        let mut record = up_to_date(world, from);
        let mut last = from;
        for tick in ticks {
            let now = from + SignedDuration::from_mins(tick);
            let missed = edges(world, last, now);
            let acted = act(world, &mut record, now);
            // Only the latest missed edge counts, and none if its desired state has lapsed since.
            let desired = judge(&record, Subject::recorded(&record), world.rules(), now).desired;
            let expected = missed.last().filter(|_| desired.is_some());
            prop_assert_eq!(acted.as_ref(), expected);
            prop_assert_eq!(act(world, &mut record, now), None);
            last = now;
        }
    }
}
