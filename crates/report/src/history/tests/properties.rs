//! Properties that hold for any history.

use domain::{
    configuration::Generation,
    history::HistoryEntry,
    record::{EdgeKey, Ending, Handled, Rank, Transition},
    schedule::Desired,
};
use jiff::{SignedDuration, ToSpan as _};
use proptest::{prelude::*, sample::select};

use super::*;
use crate::history::{LastKnownState, stopped_intervals};

fn now() -> Timestamp {
    at("17 12:00")
}

/// Instants up to about twelve days before now. Some are ahead of the reader's clock.
fn instant() -> impl Strategy<Value = Timestamp> {
    let seconds = prop_oneof![-1_000_000_i64..0, -40_000_i64..0, -300_i64..300];
    seconds.prop_map(|seconds| now() + seconds.seconds())
}

fn ending() -> impl Strategy<Value = Ending> {
    select(vec![
        Ending::Seen,
        Ending::Seen,
        Ending::Seen,
        Ending::WouldHave,
        Ending::Refused,
        Ending::Superseded,
        Ending::Released,
        Ending::Reversed,
        Ending::Resized,
        Ending::Gone,
        Ending::Forgotten,
    ])
}

fn any_entry() -> impl Strategy<Value = HistoryEntry> {
    let directions = select(vec![Direction::Stop, Direction::Start]);
    let schedule = select(vec![None, Some("office"), Some("never"), Some("removed")]);
    (instant(), 0..90_000_i64, directions, ending(), any::<bool>(), schedule).prop_map(
        |(claimed_at, took, direction, ending, asked, schedule)| HistoryEntry {
            claimed_at,
            asked_at: asked.then_some(claimed_at),
            finished_at: claimed_at + took.seconds(),
            ending,
            schedule: schedule.map(|name| name.parse().unwrap()),
            ..entry(direction, "15 00:00", "15 00:00")
        },
    )
}

fn any_record() -> impl Strategy<Value = Record> {
    let power = || select(vec![Power::Running, Power::Stopped, Power::Between]);
    let direction = select(vec![Direction::Stop, Direction::Start]);
    (power(), power(), instant(), instant(), direction, any::<bool>(), 0..5).prop_map(
        |(at_end, seen, seen_at, since, direction, asked, phase)| {
            let transition = Transition { claimed_at: since, ..transition(direction, "15 00:00") };
            let reason = "because".to_owned();
            let phase = match phase {
                0 => Phase::Settled { at: at_end },
                1 => Phase::InFlight { transition },
                2 => Phase::Refused { transition, reason },
                3 => Phase::Stuck { transition, since, reason },
                _ => Phase::Gone { since },
            };
            let edge = EdgeKey { instant: since, rank: Rank::Schedule };
            Record {
                phase,
                observed: Some(Observed { power: seen, size: None, busy: None, at: seen_at }),
                request: asked.then(|| request(direction, "15 00:00")),
                handled: Some(Handled {
                    generation: Generation(1),
                    key: edge,
                    desired: Some(Desired::Stopped),
                    schedule: None,
                }),
                ..web_record(at_end, "15 00:00")
            }
        },
    )
}

/// The hours of a period that are stopped, unclear, and would have been stopped.
fn sums(entries: &[HistoryEntry], record: Option<&Record>, period: Period) -> [f64; 3] {
    let known = LastKnownState { record, unseen_since: None };
    let found = stopped_intervals(entries, known, &schedules(), now());
    [Kind::Stopped, Kind::Unclear, Kind::WouldHave].map(|kind| {
        let of_kind = found.iter().filter(|interval| interval.kind == kind);
        let within = of_kind.filter_map(|interval| interval.period.within(period));
        within.map(|within| within.length().as_secs_f64() / 3600.0).sum()
    })
}

proptest! {
    #[test]
    fn stretches_are_in_order_apart_and_over(
        entries in prop::collection::vec(any_entry(), 0..12),
        record in prop::option::of(any_record()),
        unseen_since in prop::option::of(instant()),
    ) {
        let known = LastKnownState { record: record.as_ref(), unseen_since };
        let found = stopped_intervals(&entries, known, &schedules(), now());
        for interval in &found {
            prop_assert!(interval.period.from < interval.period.until);
            prop_assert!(interval.period.until <= now());
        }
        for pair in found.windows(2) {
            prop_assert!(pair[0].period.until <= pair[1].period.from, "{:?}", shown(&found));
        }
    }

    #[test]
    fn two_halves_have_the_hours_of_the_whole_and_these_fit_it(
        entries in prop::collection::vec(any_entry(), 0..12),
        record in prop::option::of(any_record()),
        from in instant(),
        first in 1..300_000_i64,
        second in 1..300_000_i64,
    ) {
        let middle = from + first.seconds();
        let until = middle + second.seconds();
        let of = |from, until| sums(&entries, record.as_ref(), Period { from, until });
        let whole = of(from, until);
        let most = SignedDuration::from_secs(first + second).as_secs_f64() / 3600.0;
        prop_assert!(whole.iter().sum::<f64>() <= most + 1e-6, "{whole:?} of {most}");
        let (left, right) = (of(from, middle), of(middle, until));
        for ((whole, left), right) in whole.iter().zip(left).zip(right) {
            prop_assert!((whole - left - right).abs() <= 1e-6, "{whole}, {left}, {right}");
        }
    }
}
