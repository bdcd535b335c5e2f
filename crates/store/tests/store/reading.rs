use std::{collections::BTreeSet, slice};

use domain::{AccountName, ResourceRef, record::Record};
use jiff::Timestamp;
use serde_json::{Value, json};
use store::{HistoryQuery, StoreError};
use testing::Fate;

use crate::{
    fixtures::{due_server, history, large, monday, record, reference, server},
    world::World,
};

fn references(records: &[Record]) -> BTreeSet<ResourceRef> {
    records.iter().map(|r| r.reference.clone()).collect()
}

#[tokio::test]
async fn more_records_than_one_request_may_name_are_read_whole() {
    let world = World::new().await;
    let (store, wire) = world.process();
    let mut wanted = Vec::new();
    for number in 0..230 {
        wanted.push(store.save(server(number)).await.unwrap().reference);
    }
    wire.sent();
    let read = store.records(&wanted).await.unwrap().read;
    assert_eq!(wire.operations(), ["BatchGetItem"; 3]);
    assert_eq!(read.len(), 230);
    assert_eq!(references(&read), wanted.into_iter().collect());
}

#[tokio::test]
async fn records_for_which_one_answer_has_no_room_are_asked_for_again() {
    let world = World::new().await;
    let (store, wire) = world.process();
    let mut wanted = Vec::new();
    for number in 0..46 {
        let record = large(server(number), 380_000);
        wanted.push(store.save(record).await.unwrap().reference);
    }
    wire.sent();
    let read = store.records(&wanted).await.unwrap().read;
    let operations = wire.operations();
    assert!(operations.len() > 1, "one answer had room for 16 MiB");
    assert_eq!(read.len(), 46);
    assert_eq!(references(&read), wanted.into_iter().collect());
}

/// An answer that leaves these records unread.
fn unread(records: &[Record]) -> Fate {
    let keys = records.iter().map(|record| {
        let reference = record.reference.to_string();
        let (account, resource) = reference.split_once('/').unwrap();
        json!({ "account": { "S": account }, "resource": { "S": resource } })
    });
    let table = World::tables().resources;
    Fate::Answered(json!({
        "Responses": {},
        "UnprocessedKeys": { table: { "Keys": keys.collect::<Vec<_>>() } },
    }))
}

#[tokio::test]
async fn what_is_left_unread_is_asked_for_again_and_not_for_ever() {
    let world = World::new().await;
    let (store, wire) = world.process();
    let mut saved = Vec::new();
    for number in 0..3 {
        saved.push(store.save(server(number)).await.unwrap());
    }
    let wanted: Vec<_> = saved.iter().map(|r| r.reference.clone()).collect();
    wire.sent();
    for left in [&saved[..], &saved, &saved[1..], &saved[1..]] {
        wire.plan(|_| true, unread(left));
    }
    let read = store.records(&wanted).await.unwrap().read;
    assert_eq!(wire.operations(), ["BatchGetItem"; 5]);
    // The record that the made-up answers treated as read is missing.
    assert_eq!(references(&read), references(&saved[1..]));

    for _ in 0..50 {
        wire.plan(|_| true, unread(&saved));
    }
    let error = store.records(&wanted).await.unwrap_err();
    assert!(matches!(error, StoreError::Throttled { left: 3 }), "{error:?}");
    assert_eq!(wire.operations(), ["BatchGetItem"; 5]);
}

#[tokio::test]
async fn a_reference_given_twice_is_read_once_and_an_unknown_one_is_missing() {
    let store = World::new().await.store();
    let saved = store.save(server(1)).await.unwrap();
    let wanted = [1, 2, 1].map(|number| server(number).reference);
    assert_eq!(store.records(&wanted).await.unwrap().read, [saved]);
    assert_eq!(store.records(&[]).await.unwrap().read, []);
}

#[tokio::test]
async fn all_records_of_one_account_are_read_whatever_their_number() {
    let world = World::new().await;
    let (store, wire) = world.process();
    let mut wanted = BTreeSet::new();
    for number in 0..5 {
        let record = large(server(number), 300_000);
        wanted.insert(store.save(record).await.unwrap().reference);
    }
    for other in ["hz/server/1", "hz-eu2/server/1"] {
        store.save(record(other)).await.unwrap();
    }
    wire.sent();
    let account: AccountName = "hz-eu".parse().unwrap();
    let read = store.records_of(&account).await.unwrap().read;
    assert!(wire.operations().len() > 1);
    assert_eq!(read.len(), 5);
    assert_eq!(references(&read), wanted);
    let nobody = "nobody".parse().unwrap();
    assert_eq!(store.records_of(&nobody).await.unwrap().read, []);
}

#[tokio::test]
async fn what_an_account_covers_is_read_without_the_rest_of_its_records() {
    let world = World::new().await;
    let (store, wire) = world.process();
    let mut plain = large(server(1), 10_000);
    (plain.region, plain.missing_since) = ("fsn1".to_owned(), Some(monday()));
    let plain = store.save(plain).await.unwrap();
    let machine = json!({ "present": "server/9" });
    let mut hibernated = server(2);
    hibernated.unsupported = Some("another datacenter".to_owned());
    hibernated.hibernation = serde_json::from_value(machine).unwrap();
    let hibernated = store.save(hibernated).await.unwrap();
    wire.sent();

    let read = store.coverage_of(&plain.reference.account).await.unwrap();
    assert!(read.unreadable.is_empty(), "{read:?}");
    let [query] = &wire.sent()[..] else { panic!("one page") };
    let names = query.body["ExpressionAttributeNames"].as_object().unwrap();
    assert!(query.body["ProjectionExpression"].is_string() && names.len() < 10, "{query:?}");
    let found = |of: &Record| read.read.iter().find(|one| one.reference == of.reference).unwrap();
    for of in [&plain, &hibernated] {
        let found = found(of);
        assert_eq!(found.region, of.region);
        assert_eq!(found.phase, of.phase);
        assert_eq!(found.unsupported, of.unsupported);
        assert_eq!(found.missing_since, of.missing_since);
        assert_eq!(found.hibernation, of.hibernation);
    }
}

#[tokio::test]
async fn resources_of_all_kinds_have_keys_of_their_own() {
    let store = World::new().await.store();
    let names = [
        "do-main/droplet/1",
        "do-main/database/1",
        "do-main/node-pool/1/1",
        "do-main/server/1",
        "do-two/droplet/1",
    ];
    for name in names {
        store.save(record(name)).await.unwrap();
    }
    for name in names {
        let read = store.record(&reference(name)).await.unwrap().unwrap();
        assert_eq!(read.reference.to_string(), name);
    }
}

#[tokio::test]
async fn every_read_but_those_of_the_index_and_of_all_history_is_strongly_consistent() {
    let world = World::new().await;
    let (store, wire) = world.process();
    let saved = store.save(due_server(1, monday())).await.unwrap();
    wire.sent();

    store.record(&saved.reference).await.unwrap();
    store.records(slice::from_ref(&saved.reference)).await.unwrap();
    store.records_of(&saved.reference.account).await.unwrap();
    store.coverage_of(&saved.reference.account).await.unwrap();
    history(&store, &saved.reference).await;
    store.in_force().await.unwrap();
    store.account_states().await.unwrap();
    let sent = wire.sent();
    assert_eq!(sent.len(), 10);
    for request in sent {
        let body = match request.operation.as_str() {
            "BatchGetItem" => &request.body["RequestItems"][World::tables().resources],
            _ => &request.body,
        };
        assert_eq!(body["ConsistentRead"], true, "{request:?}");
    }

    store.due(monday()).await.unwrap();
    assert_eq!(wire.sent()[0].body["IndexName"], "due");

    let all = HistoryQuery { since: Timestamp::MIN, until: Timestamp::MAX, schedule: None };
    store.history_between(all).next().await.unwrap();
    let [scan] = &wire.sent()[..] else { panic!("one page") };
    assert_eq!((scan.operation.as_str(), &scan.body["ConsistentRead"]), ("Scan", &Value::Null));
}

#[tokio::test]
async fn making_the_tables_again_leaves_what_is_in_them() {
    let store = World::new().await.store();
    let saved = store.save(server(1)).await.unwrap();
    store.create_tables().await.unwrap();
    assert_eq!(store.record(&saved.reference).await.unwrap(), Some(saved));
}
