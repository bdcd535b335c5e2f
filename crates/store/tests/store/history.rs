use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;
use domain::{
    ResourceRef, ScheduleName,
    history::HistoryEntry,
    record::{Direction, Ending, Record},
};
use jiff::{SignedDuration, Timestamp};
use store::{
    HistoryPage, HistoryPages, HistoryQuery, StoreError,
    item::{self, FORMAT, Stored as _},
};

use crate::{
    fixtures::{at, ended, history, office_hours_name, server},
    world::World,
};

fn between(since: Timestamp, until: Timestamp) -> HistoryQuery {
    HistoryQuery { since, until, schedule: None }
}

fn all() -> HistoryQuery {
    between(Timestamp::MIN, Timestamp::MAX)
}

/// Merges all pages into one, and counts them.
async fn whole(mut pages: HistoryPages) -> (HistoryPage, usize) {
    let (mut whole, mut count) = (HistoryPage::default(), 0);
    while let Some(page) = pages.next().await.unwrap() {
        whole.entries.extend(page.entries);
        whole.unreadable += page.unreadable;
        count += 1;
    }
    (whole, count)
}

/// Writes entries without records, bypassing the store.
async fn put(world: &World, entries: &[HistoryEntry]) {
    for entry in entries {
        let item = entry.to_item().unwrap();
        world.put(&World::tables().history, item).await;
    }
}

#[tokio::test]
async fn a_stale_write_leaves_no_history() {
    let store = World::new().await.store();
    let old = store.save(server(1)).await.unwrap();
    let renamed = Record { name: "renamed".to_owned(), ..old.clone() };
    let present = store.save(renamed).await.unwrap();
    let entry = ended(&old.reference, 0);
    match store.commit(old, Some(&entry)).await {
        Err(StoreError::Stale { current }) => assert_eq!(current.as_deref(), Some(&present)),
        other => panic!("not stale, but {other:?}"),
    }
    assert_eq!(history(&store, &present.reference).await, []);
    assert_eq!(store.record(&present.reference).await.unwrap(), Some(present));
}

#[tokio::test]
async fn a_record_is_not_written_without_its_history() {
    let store = World::new().await.store();
    let record = store.save(server(1)).await.unwrap();
    let unwritable = HistoryEntry { name: "x".repeat(500_000), ..ended(&record.reference, 0) };
    let result = store.commit(record.clone(), Some(&unwritable)).await;
    assert!(matches!(result, Err(StoreError::Dynamo(..))), "{result:?}");
    assert_eq!(store.record(&record.reference).await.unwrap(), Some(record));
}

#[tokio::test]
async fn a_new_record_may_come_with_history() {
    let store = World::new().await.store();
    let entry = ended(&server(1).reference, 0);
    let record = store.commit(server(1), Some(&entry)).await.unwrap();
    assert_eq!(history(&store, &record.reference).await, [entry]);
    assert_eq!(store.record(&record.reference).await.unwrap(), Some(record));
}

#[tokio::test]
async fn a_transition_that_is_written_twice_stands_there_once() {
    let store = World::new().await.store();
    let record = store.save(server(1)).await.unwrap();
    let entry = ended(&record.reference, 0);
    let record = store.commit(record, Some(&entry)).await.unwrap();
    let again = HistoryEntry { ending: Ending::Superseded, ..entry };
    let record = store.commit(record, Some(&again)).await.unwrap();
    assert_eq!(history(&store, &record.reference).await, [again]);
}

#[tokio::test]
async fn an_answer_that_is_lost_does_not_make_the_write_stale() {
    let world = World::new().await;
    let (store, wire) = world.process();
    wire.lose_answer_after(0);
    let entry = ended(&server(1).reference, 0);
    let saved = store.commit(server(1), Some(&entry)).await.unwrap();
    assert_eq!(wire.operations(), ["TransactWriteItems"; 2]);
    assert_eq!(store.record(&saved.reference).await.unwrap(), Some(saved));
}

#[tokio::test]
async fn history_is_read_newest_first_and_of_one_resource() {
    let store = World::new().await.store();
    let mut record = store.save(server(1)).await.unwrap();
    let mut other = store.save(server(10)).await.unwrap();
    let stop = ended(&record.reference, 1);
    let start = HistoryEntry { direction: Direction::Start, ..stop.clone() };
    let (early, late) = (ended(&record.reference, 0), ended(&record.reference, 20));
    for entry in [&stop, &late, &start, &early] {
        record = store.commit(record, Some(entry)).await.unwrap();
        let of_other = HistoryEntry { reference: other.reference.clone(), ..entry.clone() };
        other = store.commit(other, Some(&of_other)).await.unwrap();
    }
    let read = history(&store, &record.reference).await;
    assert_eq!(read, [late, stop, start, early]);
}

#[tokio::test]
async fn history_of_many_pages_is_read_whole() {
    let world = World::new().await;
    let (store, wire) = world.process();
    let mut record: Record = store.save(server(1)).await.unwrap();
    for number in 0..5 {
        let entry = HistoryEntry { name: "x".repeat(300_000), ..ended(&record.reference, number) };
        record = store.commit(record, Some(&entry)).await.unwrap();
    }
    wire.sent();
    assert_eq!(history(&store, &record.reference).await.len(), 5);
    assert!(wire.operations().len() > 1);
}

#[tokio::test]
async fn history_expires_ninety_days_after_the_end_in_epoch_seconds() {
    let world = World::new().await;
    let entry = HistoryEntry {
        finished_at: at("2026-06-15T19:00:00.9Z"),
        ..ended(&server(1).reference, 0)
    };
    let saved = world.store().commit(server(1), Some(&entry)).await;
    saved.unwrap();
    let items = world.items(&World::tables().history).await;
    let expires_at = at("2026-09-13T19:00:00Z").as_second().to_string();
    assert_eq!(items[0]["expires_at"], AttributeValue::N(expires_at));
    assert_eq!(items.len(), 1);
}

#[tokio::test]
async fn history_between_two_instants_is_exact_however_they_are_written() {
    let world = World::new().await;
    let instants = [
        "2026-06-15T18:59:59.999999999Z",
        "2026-06-15T19:00:00Z",
        "2026-06-15T19:00:00.5Z",
        "2026-06-15T19:00:01.25Z",
        "2026-06-15T19:00:01.250000001Z",
    ];
    let entry = |(number, instant): (i32, &str)| HistoryEntry {
        finished_at: at(instant),
        ..ended(&server(1).reference, number)
    };
    let entries: Vec<_> = (0..).zip(instants).map(entry).collect();
    put(&world, &entries).await;
    let store = world.store();
    let some = between(at("2026-06-15T19:00:00Z"), at("2026-06-15T19:00:01.25Z"));
    let (scanned, _) = whole(store.history_between(some.clone())).await;
    assert_eq!(scanned.entries, entries[1..3]);
    let (queried, _) = whole(store.history_of(&server(1).reference, some)).await;
    assert_eq!(queried.entries, [entries[2].clone(), entries[1].clone()]);
}

#[tokio::test]
async fn history_of_all_resources_has_those_of_each_together_oldest_first() {
    let world = World::new().await;
    let servers = (0..3).cycle();
    let entries: Vec<_> = (0..30)
        .rev()
        .zip(servers)
        .map(|(number, of)| ended(&server(of).reference, number))
        .collect();
    put(&world, &entries).await;
    let (read, _) = whole(world.store().history_between(all())).await;
    assert_eq!(read.entries.len(), 30);
    let mut seen: BTreeSet<ResourceRef> = BTreeSet::new();
    for of_one in read.entries.chunk_by(|a, b| a.reference == b.reference) {
        assert!(seen.insert(of_one[0].reference.clone()), "apart");
        assert!(of_one.is_sorted_by_key(HistoryEntry::transition_key));
    }
}

#[tokio::test]
async fn history_under_one_schedule_is_kept_apart_from_the_rest() {
    let world = World::new().await;
    let scheduled =
        HistoryEntry { schedule: Some(office_hours_name()), ..ended(&server(1).reference, 0) };
    let other = HistoryEntry {
        schedule: Some("office-hours-2".parse::<ScheduleName>().unwrap()),
        ..ended(&server(1).reference, 1)
    };
    put(&world, &[scheduled.clone(), other, ended(&server(2).reference, 0)]).await;
    let wanted = HistoryQuery { schedule: Some(office_hours_name()), ..all() };
    let (read, _) = whole(world.store().history_between(wanted.clone())).await;
    assert_eq!(read.entries, [scheduled]);
    let pages = world.store().history_of(&server(2).reference, wanted);
    assert_eq!(whole(pages).await.0.entries, []);
}

#[tokio::test]
async fn history_by_time_comes_in_pages_that_are_not_read_ahead() {
    let world = World::new().await;
    // A page is a megabyte.
    let entries: Vec<_> = (0..400)
        .map(|number| HistoryEntry {
            name: "x".repeat(4_000),
            ..ended(&server(1).reference, number)
        })
        .collect();
    put(&world, &entries).await;
    let (store, wire) = world.process();
    let mut pages = store.history_between(all());
    let first = pages.next().await.unwrap().unwrap();
    assert!(!first.entries.is_empty() && first.entries.len() < 400);
    assert_eq!(wire.operations(), ["Scan"]);
    let (rest, _) = whole(pages).await;
    assert_eq!([first.entries, rest.entries].concat(), entries);

    let (of_one, count) = whole(store.history_of(&server(1).reference, all())).await;
    assert_eq!(of_one.entries.len(), 400);
    assert!(count > 1);
}

#[tokio::test]
async fn what_cannot_be_read_of_history_is_counted_and_passed_over() {
    let world = World::new().await;
    let good = ended(&server(1).reference, 0);
    put(&world, std::slice::from_ref(&good)).await;
    let newer = ended(&server(1).reference, 1).to_item().unwrap();
    let format = AttributeValue::N((FORMAT + 1).to_string());
    let newer = newer.into_iter().chain([("format".to_owned(), format)]);
    world.put(&World::tables().history, newer.collect()).await;
    let mut malformed = ended(&server(2).reference, 2).to_item().unwrap();
    malformed.remove("direction");
    world.put(&World::tables().history, malformed).await;
    let mut old = ended(&server(3).reference, 3).to_item().unwrap();
    old.insert("expires_at".to_owned(), item::expires_at(Timestamp::MIN));
    old.remove("direction");
    world.put(&World::tables().history, old).await;

    let recent = between(good.finished_at, good.finished_at + SignedDuration::from_hours(24));
    let (read, _) = whole(world.store().history_between(recent)).await;
    assert_eq!((read.entries, read.unreadable), (vec![good], 2));
}
