use domain::record::{Record, Revision};
use store::StoreError;
use testing::{Fate, Sent};
use tokio::task::JoinSet;

use crate::{
    fixtures::{ended, history, pool_in_flight, server},
    world::World,
};

#[track_caller]
fn stale(result: Result<Record, StoreError>) -> Option<Record> {
    match result {
        Err(StoreError::Stale { current }) => current.map(|record| *record),
        other => panic!("not stale, but {other:?}"),
    }
}

#[tokio::test]
async fn a_record_comes_back_as_it_was_saved() {
    let world = World::new().await;
    for record in [server(1), pool_in_flight()] {
        let saved = world.store().save(record).await.unwrap();
        let read = world.store().record(&saved.reference).await.unwrap();
        assert_eq!(read, Some(saved));
    }
    let absent = world.store().record(&server(2).reference).await.unwrap();
    assert_eq!(absent, None);
}

#[tokio::test]
async fn every_write_raises_the_revision_by_one() {
    let store = World::new().await.store();
    let first = store.save(server(1)).await.unwrap();
    assert_eq!(first.revision, Revision(1));
    let second = store.save(first).await.unwrap();
    assert_eq!(second.revision, Revision(2));
    let entry = ended(&second.reference, 0);
    let third = store.commit(second, Some(&entry)).await.unwrap();
    assert_eq!(third.revision, Revision(3));
    assert_eq!(store.record(&third.reference).await.unwrap(), Some(third));
}

#[tokio::test]
async fn a_new_record_does_not_replace_one_that_stands_there() {
    let store = World::new().await.store();
    let first = store.save(server(1)).await.unwrap();
    let another = Record { name: "another".to_owned(), ..server(1) };
    assert_eq!(stale(store.save(another).await), Some(first.clone()));
    assert_eq!(store.record(&first.reference).await.unwrap(), Some(first));
}

#[tokio::test]
async fn a_write_that_replaces_an_older_revision_is_refused_with_the_present_record() {
    let store = World::new().await.store();
    let old = store.save(server(1)).await.unwrap();
    let renamed = Record { name: "renamed".to_owned(), ..old.clone() };
    let present = store.save(renamed).await.unwrap();
    assert_eq!(stale(store.save(old).await), Some(present.clone()));
    assert_eq!(store.record(&present.reference).await.unwrap(), Some(present));
}

#[tokio::test]
async fn a_record_that_is_absent_is_not_made_by_a_write_that_replaces_one() {
    let store = World::new().await.store();
    let removed = Record { revision: Revision(3), ..server(1) };
    let reference = removed.reference.clone();
    assert_eq!(stale(store.save(removed).await), None);
    assert_eq!(store.record(&reference).await.unwrap(), None);
}

#[tokio::test]
async fn of_twenty_writers_at_once_one_wins() {
    let world = World::new().await;
    let base = world.store().save(server(1)).await.unwrap();
    let mut writers = JoinSet::new();
    for number in 0..20 {
        let store = world.store();
        let record = Record { name: format!("writer {number}"), ..base.clone() };
        writers.spawn(async move { store.save(record).await });
    }
    let (won, lost): (Vec<_>, Vec<_>) =
        writers.join_all().await.into_iter().partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 19));
    let winner = won.into_iter().next().unwrap().unwrap();
    for refused in lost {
        assert_eq!(stale(refused), Some(winner.clone()));
    }
    let read = world.store().record(&base.reference).await.unwrap();
    assert_eq!(read, Some(winner));
}

#[tokio::test]
async fn a_write_whose_answer_is_lost_has_succeeded() {
    let world = World::new().await;
    let (store, wire) = world.process();
    for replaced in [server(1), pool_in_flight()] {
        wire.lose_answer_after(0);
        let saved = store.save(replaced.clone()).await.unwrap();
        assert_eq!(wire.operations(), ["PutItem"; 2]);
        let ours = Record { revision: Revision(1), ..replaced };
        assert_eq!(saved, ours);
    }
}

#[tokio::test]
async fn what_another_wrote_while_an_answer_was_lost_is_not_ours() {
    let world = World::new().await;
    let (store, wire) = world.process();
    let base = store.save(server(1)).await.unwrap();
    let of_another = Record { name: "another".to_owned(), ..base.clone() };
    let present = world.store().save(of_another).await.unwrap();
    wire.lose_answer_after(0);
    assert_eq!(stale(store.save(base).await), Some(present));
}

fn any(_: &Sent) -> bool {
    true
}

#[tokio::test]
async fn a_write_that_meets_a_transaction_is_stale_with_what_stands_there() {
    let world = World::new().await;
    let (store, wire) = world.process();
    let present = store.save(server(1)).await.unwrap();
    wire.operations();
    let conflict = "TransactionConflictException";
    wire.plan(any, Fate::error(conflict));
    assert_eq!(stale(store.save(present.clone()).await), Some(present));
    assert_eq!(wire.operations(), ["PutItem", "GetItem"]);

    wire.plan(any, Fate::error(conflict));
    assert_eq!(stale(store.save(server(2)).await), None);
}

#[tokio::test]
async fn a_transaction_that_meets_another_is_stale_and_leaves_nothing() {
    let world = World::new().await;
    let (store, wire) = world.process();
    let present = store.save(server(1)).await.unwrap();
    let entry = ended(&present.reference, 0);
    for codes in [["TransactionConflict", "None"], ["None", "TransactionConflict"]] {
        wire.plan(any, Fate::cancelled(&codes));
        let refused = store.commit(present.clone(), Some(&entry)).await;
        assert_eq!(stale(refused), Some(present.clone()), "{codes:?}");
    }
    assert_eq!(history(&store, &present.reference).await, []);
}

#[tokio::test]
async fn a_write_that_arrived_before_the_conflict_of_its_second_try_has_succeeded() {
    let world = World::new().await;
    let (store, wire) = world.process();
    wire.plan(any, Fate::AnswerLost);
    wire.plan(any, Fate::error("TransactionConflictException"));
    let saved = store.save(server(1)).await.unwrap();
    assert_eq!(wire.operations(), ["PutItem", "PutItem", "GetItem"]);
    assert_eq!(store.record(&saved.reference).await.unwrap(), Some(saved));
}

#[tokio::test]
async fn a_transaction_that_is_throttled_is_a_failure_of_the_store() {
    let world = World::new().await;
    let (store, wire) = world.process();
    for code in ["ThrottlingError", "ProvisionedThroughputExceeded"] {
        wire.plan(any, Fate::cancelled(&["None", code]));
        let entry = ended(&server(1).reference, 0);
        let failed = store.commit(server(1), Some(&entry)).await;
        assert!(matches!(failed, Err(StoreError::Dynamo(..))), "{failed:?}");
    }
}
