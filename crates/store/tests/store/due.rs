use domain::record::Record;
use jiff::{SignedDuration, Timestamp};
use store::Store;

use crate::{
    fixtures::{due_server, large, monday, server},
    world::World,
};

/// Reads the numbers of the servers that are due, in the index's order.
async fn due(store: &Store, now: Timestamp) -> Vec<String> {
    let records = store.due(now).await.unwrap().read;
    let ids = records.into_iter().map(|record| record.reference.id.provider_id());
    ids.collect()
}

fn seconds(seconds: i64) -> SignedDuration {
    SignedDuration::from_secs(seconds)
}

#[tokio::test]
async fn only_records_with_a_due_instant_are_in_the_index() {
    let store = World::new().await.store();
    store.save(server(1)).await.unwrap();
    let second = store.save(due_server(2, monday())).await.unwrap();
    assert_eq!(due(&store, Timestamp::MAX).await, ["2"]);

    let second = Record { due_at: None, ..second };
    let second = store.save(second).await.unwrap();
    assert_eq!(due(&store, Timestamp::MAX).await, [""; 0]);

    let second = Record { due_at: Some(monday()), ..second };
    let second = store.save(second).await.unwrap();
    assert_eq!(store.due(monday()).await.unwrap().read, [second]);
}

#[tokio::test]
async fn a_record_is_due_from_its_instant_on() {
    let store = World::new().await.store();
    let due_at = monday() + SignedDuration::from_millis(250);
    store.save(due_server(1, due_at)).await.unwrap();
    let millisecond = SignedDuration::from_millis(1);
    assert_eq!(due(&store, due_at - millisecond).await, [""; 0]);
    assert_eq!(due(&store, due_at).await, ["1"]);
    assert_eq!(due(&store, due_at + millisecond).await, ["1"]);
}

#[tokio::test]
async fn a_record_moves_in_the_index_with_its_instant() {
    let store = World::new().await.store();
    let record = store.save(due_server(1, monday())).await.unwrap();
    let later = Record { due_at: Some(monday() + seconds(60)), ..record };
    store.save(later).await.unwrap();
    assert_eq!(due(&store, monday() + seconds(59)).await, [""; 0]);
    assert_eq!(due(&store, monday() + seconds(60)).await, ["1"]);
}

#[tokio::test]
async fn what_is_due_comes_earliest_first() {
    let store = World::new().await.store();
    // Written in another order than the index's, with instants of different numbers of digits.
    for (number, due_at) in [
        (1, monday()),
        (2, monday() - seconds(1)),
        (3, Timestamp::UNIX_EPOCH),
        (4, monday() + seconds(1)),
        (5, "2001-09-09T01:46:39Z".parse().unwrap()),
    ] {
        store.save(due_server(number, due_at)).await.unwrap();
    }
    assert_eq!(due(&store, monday()).await, ["3", "5", "2", "1"]);
}

#[tokio::test]
async fn what_is_due_on_many_pages_is_read_whole_and_in_order() {
    let world = World::new().await;
    let (store, wire) = world.process();
    for number in (0..5).rev() {
        let due_at = monday() + seconds(i64::try_from(number).unwrap());
        let record = large(due_server(number, due_at), 300_000);
        store.save(record).await.unwrap();
    }
    wire.sent();
    let all: Vec<_> = (0..5).map(|number| number.to_string()).collect();
    assert_eq!(due(&store, monday() + seconds(4)).await, all);
    assert!(wire.operations().len() > 1);
}
