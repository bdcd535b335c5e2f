//! History and records that read as sentences, for tests. All happens in June 2026, in UTC.

use std::collections::BTreeSet;

use domain::{
    ResourceRef,
    record::{Ask, Cause, Direction, Forced, Observed, Phase, Record, Request, Transition},
    resource::{Power, Resource, SavedState, Size},
};
use environment::aws;
use jiff::Timestamp;
use local::engine;
use store::{Ending, HistoryEntry, Store, Tables};

use crate::configuration_file;

/// `15 19:00`: a day of June and a time.
pub(crate) fn at(text: &str) -> Timestamp {
    let (day, time) = text.split_once(' ').unwrap();
    format!("2026-06-{day}T{time}:00Z").parse().unwrap()
}

pub(crate) fn reference(text: &str) -> ResourceRef {
    text.parse().unwrap()
}

pub(crate) fn web() -> ResourceRef {
    reference("hz-eu/server/1")
}

/// A transition of the server `web` under `office`, claimed and asked for at one instant, and
/// seen at another.
pub(crate) fn entry(direction: Direction, claimed: &str, finished: &str) -> HistoryEntry {
    HistoryEntry {
        reference: web(),
        name: "web".to_owned(),
        direction,
        cause: Cause::Schedule,
        schedule: Some("office".parse().unwrap()),
        claimed_at: at(claimed),
        asked_at: Some(at(claimed)),
        accepted_at: Some(at(claimed)),
        finished_at: at(finished),
        ending: Ending::Seen,
        forced: false,
        saved: None,
        seen: None,
    }
}

pub(crate) fn stop(claimed: &str, finished: &str) -> HistoryEntry {
    entry(Direction::Stop, claimed, finished)
}

pub(crate) fn start(claimed: &str, finished: &str) -> HistoryEntry {
    entry(Direction::Start, claimed, finished)
}

/// What others add to an entry.
pub(crate) trait But {
    fn ending(self, ending: Ending) -> Self;
    fn unasked(self) -> Self;
    fn of(self, reference: &str) -> Self;
    fn sized(self, before: SavedState, after: SavedState) -> Self;
}

impl But for HistoryEntry {
    fn ending(self, ending: Ending) -> Self {
        Self { ending, ..self }
    }

    fn unasked(self) -> Self {
        Self {
            asked_at: None,
            accepted_at: None,
            ..self
        }
    }

    fn of(self, reference: &str) -> Self {
        Self {
            reference: reference.parse().unwrap(),
            ..self
        }
    }

    fn sized(self, before: SavedState, after: SavedState) -> Self {
        Self {
            saved: Some(before),
            seen: Some(after),
            ..self
        }
    }
}

/// The record of a resource that follows `office` and was seen at an end since an instant.
pub(crate) fn record(of: &str, power: Power, since: &str) -> Record {
    let reference = reference(of);
    let resource = Resource {
        id: reference.id.clone(),
        name: "web".to_owned(),
        cluster: None,
        tags: BTreeSet::new(),
        region: "fsn1".to_owned(),
        power,
        busy: None,
        size: Size::Machine {
            plan: "cx22".to_owned(),
        },
        unsupported: None,
    };
    Record {
        schedule: Some("office".parse().unwrap()),
        opted_in: true,
        observed: Some(Observed {
            power,
            size: None,
            busy: None,
            at: at(since),
        }),
        ..Record::first_seen(reference, &resource)
    }
}

pub(crate) fn web_record(power: Power, since: &str) -> Record {
    record("hz-eu/server/1", power, since)
}

pub(crate) fn transition(direction: Direction, claimed: &str) -> Transition {
    Transition {
        direction,
        claimed_at: at(claimed),
        cause: Cause::Schedule,
        schedule: Some("office".parse().unwrap()),
    }
}

pub(crate) fn request(direction: Direction, asked: &str) -> Request {
    Request {
        direction,
        asked_at: at(asked),
        looked_at: at(asked),
        ask: Ask::Open,
        unknown: false,
        forced: Forced::No,
        graceful: true,
        target: None,
        first_accepted_at: None,
        problem: None,
    }
}

/// The server in flight, its request sent.
pub(crate) fn in_flight(direction: Direction, claimed: &str) -> Record {
    Record {
        phase: Phase::InFlight {
            transition: transition(direction, claimed),
        },
        request: Some(request(direction, claimed)),
        ..web_record(Power::Stopped, claimed)
    }
}

/// A store of its own, in which nothing was applied yet.
pub(crate) async fn empty_store() -> Store {
    let address = engine::serve(None, ([127, 0, 0, 1], 0).into())
        .await
        .unwrap();
    let config = aws::local_config(&format!("http://{address}"));
    let store = Store::connect(&config, Tables::prefixed("t-"));
    store.create_tables().await.unwrap();
    store
}

/// A store of its own, with a configuration in force.
pub(crate) async fn store_with(configuration: &str) -> Store {
    let store = empty_store().await;
    let parsed = configuration_file::parse(configuration, "test").unwrap();
    let configuration = parsed.configuration;
    store
        .apply(&configuration, "ada", at("01 00:00"))
        .await
        .unwrap();
    store
}

/// Writes what a resource's history has, and its record at last.
pub(crate) async fn remember(store: &Store, record: Record, entries: &[HistoryEntry]) {
    let mut record = store.save(record).await.unwrap();
    for entry in entries {
        record = store.commit(record, Some(entry)).await.unwrap();
    }
}
