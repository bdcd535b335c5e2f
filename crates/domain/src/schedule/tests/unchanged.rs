//! Schedules of examples, documentation and tests have the edges that an earlier release computed.
//!
//! Each line of `before.jsonl` has a definition, the number of its edges in the 160 weeks after
//! 2026-01-01, and a sum over them.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use crate::schedule::{Definition, Desired, Edge, Schedule};

const BEFORE: &str = include_str!("before.jsonl");

#[derive(Deserialize)]
struct Before {
    definition: Definition,
    edges: usize,
    sum: i64,
}

#[test]
fn edges_are_those_of_an_earlier_release() {
    let from: Timestamp = "2026-01-01T00:00Z".parse().unwrap();
    let until = from + SignedDuration::from_hours(160 * 7 * 24);
    for line in BEFORE.lines() {
        let before: Before = serde_json::from_str(line).unwrap();
        let schedule = Schedule::new(&before.definition).expect(line);
        let edges: Vec<Edge> = schedule.edges(from).take_while(|edge| edge.at <= until).collect();
        let sum = edges.iter().fold(0, |sum: i64, edge| {
            let desired = match edge.desired {
                Some(Desired::Running) => 1,
                Some(Desired::Stopped) => 2,
                None => 3,
            };
            (31 * sum + edge.at.as_second() + desired) % (1 << 32)
        });
        assert_eq!((edges.len(), sum), (before.edges, before.sum), "{line}");
    }
}
