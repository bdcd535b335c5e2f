use aws_sdk_dynamodb::types::AttributeValue;
use domain::record::{Direction, Record};
use store::{Ending, HistoryEntry, StoreError};

use crate::{
    fixtures::{at, ended, server},
    world::World,
};

#[tokio::test]
async fn a_stale_write_leaves_no_history() {
    let store = World::new().await.store();
    let old = store.save(server(1)).await.unwrap();
    let present = store.save(old.clone()).await.unwrap();
    let entry = ended(&old.reference, 0);
    match store.save_with_history(old, &entry).await {
        Err(StoreError::Stale { current }) => assert_eq!(current.as_deref(), Some(&present)),
        other => panic!("not stale, but {other:?}"),
    }
    assert_eq!(store.history(&present.reference).await.unwrap(), []);
    assert_eq!(
        store.record(&present.reference).await.unwrap(),
        Some(present)
    );
}

#[tokio::test]
async fn a_record_is_not_written_without_its_history() {
    let store = World::new().await.store();
    let record = store.save(server(1)).await.unwrap();
    let unwritable = HistoryEntry {
        name: "x".repeat(500_000),
        ..ended(&record.reference, 0)
    };
    let result = store.save_with_history(record.clone(), &unwritable).await;
    assert!(matches!(result, Err(StoreError::Dynamo(..))), "{result:?}");
    assert_eq!(store.record(&record.reference).await.unwrap(), Some(record));
}

#[tokio::test]
async fn a_new_record_may_come_with_history() {
    let store = World::new().await.store();
    let entry = ended(&server(1).reference, 0);
    let record = store.save_with_history(server(1), &entry).await.unwrap();
    assert_eq!(store.history(&record.reference).await.unwrap(), [entry]);
    assert_eq!(store.record(&record.reference).await.unwrap(), Some(record));
}

#[tokio::test]
async fn a_transition_that_is_written_twice_stands_there_once() {
    let store = World::new().await.store();
    let record = store.save(server(1)).await.unwrap();
    let entry = ended(&record.reference, 0);
    let record = store.save_with_history(record, &entry).await.unwrap();
    let again = HistoryEntry {
        ending: Ending::Overtaken,
        ..entry
    };
    let record = store.save_with_history(record, &again).await.unwrap();
    assert_eq!(store.history(&record.reference).await.unwrap(), [again]);
}

#[tokio::test]
async fn an_answer_that_is_lost_does_not_make_the_write_stale() {
    let world = World::new().await;
    let (store, wire) = world.process();
    wire.lose_answer_after(0);
    let entry = ended(&server(1).reference, 0);
    let saved = store.save_with_history(server(1), &entry).await.unwrap();
    assert_eq!(wire.operations(), ["TransactWriteItems"; 2]);
    assert_eq!(store.record(&saved.reference).await.unwrap(), Some(saved));
}

#[tokio::test]
async fn history_is_read_newest_first_and_of_one_resource() {
    let store = World::new().await.store();
    let mut record = store.save(server(1)).await.unwrap();
    let mut other = store.save(server(10)).await.unwrap();
    let stop = ended(&record.reference, 1);
    let start = HistoryEntry {
        direction: Direction::Start,
        ..stop.clone()
    };
    let (early, late) = (ended(&record.reference, 0), ended(&record.reference, 20));
    for entry in [&stop, &late, &start, &early] {
        record = store.save_with_history(record, entry).await.unwrap();
        let of_other = HistoryEntry {
            reference: other.reference.clone(),
            ..entry.clone()
        };
        other = store.save_with_history(other, &of_other).await.unwrap();
    }
    let read = store.history(&record.reference).await.unwrap();
    assert_eq!(read, [late, stop, start, early]);
}

#[tokio::test]
async fn history_of_many_pages_is_read_whole() {
    let world = World::new().await;
    let (store, wire) = world.process();
    let mut record: Record = store.save(server(1)).await.unwrap();
    for number in 0..5 {
        let entry = HistoryEntry {
            name: "x".repeat(300_000),
            ..ended(&record.reference, number)
        };
        record = store.save_with_history(record, &entry).await.unwrap();
    }
    wire.sent();
    assert_eq!(store.history(&record.reference).await.unwrap().len(), 5);
    assert!(wire.operations().len() > 1);
}

#[tokio::test]
async fn history_expires_ninety_days_after_the_end_in_epoch_seconds() {
    let world = World::new().await;
    let entry = HistoryEntry {
        finished_at: at("2026-06-15T19:00:00.9Z"),
        ..ended(&server(1).reference, 0)
    };
    let saved = world.store().save_with_history(server(1), &entry).await;
    saved.unwrap();
    let items = world.items(&World::tables().history).await;
    let expires_at = at("2026-09-13T19:00:00Z").as_second().to_string();
    assert_eq!(items[0]["expires_at"], AttributeValue::N(expires_at));
    assert_eq!(items.len(), 1);
}
