//! The activity log: who changed what, when and why.

use aws_sdk_dynamodb::types::AttributeValue;
use domain::{
    activity::{Action, Activity, Author},
    configuration::{Generation, Override, OverrideTarget},
    record::Direction,
    schedule::Desired,
};
use insta::assert_snapshot;
use jiff::{SignedDuration, Timestamp};
use store::{
    ActivityPage, Applying, HistoryQuery, OverrideError, Store,
    item::{self, Item},
};
use testing::Fate;

use crate::{
    fixtures::{apply_office_hours, ended, monday, reference, server, setting, with_office_hours},
    world::World,
};

async fn all(store: &Store) -> Vec<Activity> {
    let mut pages = store.activity_between(Timestamp::UNIX_EPOCH, Timestamp::MAX);
    let mut found = Vec::new();
    while let Some(ActivityPage { entries, unreadable }) = pages.next().await.unwrap() {
        assert_eq!(unreadable, 0);
        found.extend(entries);
    }
    found
}

fn stop(server: &str, at: Timestamp) -> Activity {
    let target = domain::invocation::CommandTarget::Resources(vec![reference(server)]);
    let action = Action::Command { direction: Direction::Stop, target };
    Author::from("ada").does(action, at)
}

fn override_of_a_server() -> Override {
    Override {
        target: OverrideTarget::Resource(reference("hz-eu/server/1")),
        desired: Desired::Running,
        set_at: monday(),
        ends_at: monday() + SignedDuration::from_hours(1),
        by: "ada".to_owned(),
        why: None,
        before: None,
    }
}

async fn entries(world: &World) -> Vec<Item> {
    let items = world.items(&World::tables().history).await.into_iter();
    items.filter(item::is_activity).collect()
}

#[tokio::test]
async fn each_change_is_an_entry_with_who_and_why() {
    let store = World::new().await.store();
    let ada = || Author { by: "ada".into(), why: Some("release night".to_owned()) };
    let applying =
        Applying { author: ada(), changes: vec!["schedule office-hours added".to_owned()] };
    let configuration = with_office_hours();
    let applied = store.apply(&configuration, applying.clone(), monday());
    let first = applied.await.unwrap();
    let one = override_of_a_server();
    let later = |minutes| monday() + SignedDuration::from_mins(minutes);
    let set = ada().does(Action::set(&one), later(1));
    store.replace_override(&one, None, &set).await.unwrap();
    let record = store.save(server(1)).await.unwrap();
    store.forget(&record, ada(), later(2)).await.unwrap();
    let back = store.roll_back(first, first, "eve", later(3)).await;
    let resource = record.reference.clone();
    let expected = [
        Applying::from("eve").activity(back.unwrap(), Some(first), later(3)),
        ada().does(Action::Forgotten { resource }, later(2)),
        set,
        applying.activity(first, None, monday()),
    ];
    assert_eq!(all(&store).await, expected);
    let mut pages = store.activity_between(later(1), later(3));
    let page = pages.next().await.unwrap().unwrap();
    assert_eq!(page.entries, expected[1..3]);
}

#[tokio::test]
async fn a_change_that_is_not_made_leaves_no_entry() {
    let world = World::new().await;
    let store = world.store();
    apply_office_hours(&store).await;
    let stale = Generation(7);
    let refused = store.roll_back(Generation(1), stale, "eve", monday()).await;
    refused.unwrap_err();
    let one = override_of_a_server();
    let written = store.replace_override(&one, None, &setting(&one)).await;
    written.unwrap();
    let again = store.replace_override(&one, None, &setting(&one)).await;
    // Its own item stands there, as after a lost answer.
    again.unwrap();
    let other = Override { by: "eve".to_owned(), ..one.clone() };
    let refused = store.replace_override(&other, None, &setting(&other)).await;
    assert!(matches!(refused, Err(OverrideError::Overtaken(_))));
    assert_eq!(entries(&world).await.len(), 2);
}

#[tokio::test]
async fn a_change_whose_entry_cannot_be_written_is_not_made() {
    let world = World::new().await;
    let (store, wire) = world.process();
    let one = override_of_a_server();
    let cancelled = Fate::cancelled(&["None", "ConditionalCheckFailed"]);
    wire.plan(|sent| sent.operation == "TransactWriteItems", cancelled);
    let refused = store.replace_override(&one, None, &setting(&one)).await;
    refused.unwrap_err();
    let overrides = store.head_and_overrides().await.unwrap().overrides;
    assert_eq!(overrides.iter().count(), 0);
}

#[tokio::test]
async fn entries_of_one_instant_are_kept_apart_and_a_lost_answer_makes_no_second_one() {
    let world = World::new().await;
    let (store, wire) = world.process();
    let one = stop("hz-eu/server/1", monday());
    for _ in 0..2 {
        store.record_activity(&one).await.unwrap();
    }
    wire.lose_answer_after(0);
    store.record_activity(&one).await.unwrap();
    assert_eq!(all(&store).await, [one.clone(), one.clone(), one]);
    assert!(wire.sent().iter().all(|sent| {
        sent.operation != "PutItem"
            || sent.body["ConditionExpression"] == "attribute_not_exists(expires_at)"
    }));
}

#[tokio::test]
async fn history_and_the_activity_log_do_not_read_each_others_items() {
    let world = World::new().await;
    let (store, wire) = world.process();
    let record = store.save(server(1)).await.unwrap();
    let done = ended(&record.reference, 1);
    store.commit(record, Some(&done)).await.unwrap();
    let one = stop("hz-eu/server/1", monday());
    store.record_activity(&one).await.unwrap();
    wire.sent();
    assert_eq!(all(&store).await, [one]);
    assert_eq!(wire.operations(), ["Query"]);
    let mut pages = store.history_between(HistoryQuery {
        since: Timestamp::UNIX_EPOCH,
        until: Timestamp::MAX - SignedDuration::from_hours(24 * 365),
        schedule: None,
    });
    let page = pages.next().await.unwrap().unwrap();
    assert_eq!((page.entries.as_slice(), page.unreadable), (&[done][..], 0));
}

#[tokio::test]
async fn the_form_of_an_entry() {
    let item = item::activity_item(&stop("hz-eu/server/1", monday())).unwrap();
    let AttributeValue::S(key) = &item["transition"] else {
        panic!("a sort key is a string");
    };
    assert!(key.starts_with(&format!("{}#", item::activity_key(monday()))));
    let mut shown = item.clone();
    shown.remove("transition");
    let shown: serde_json::Value = serde_dynamo::from_item(shown).unwrap();
    assert_snapshot!(shown, @r#"{"action":{"command":{"direction":"stop","target":{"resources":["hz-eu/server/1"]}}},"at":"2026-06-15T07:00:00Z","by":{"name":"ada"},"expires_at":1789282800,"format":1,"reference":"activity"}"#);
}
