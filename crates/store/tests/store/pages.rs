use aws_sdk_dynamodb::types::AttributeValue;
use domain::AccountName;
use store::{Store, StoreError};

use crate::{
    fixtures::{large, monday, server, with_office_hours},
    world::World,
};

fn account() -> AccountName {
    "hz-eu".parse().unwrap()
}

/// The references on each page, in order, and those that could not be read.
async fn pages(store: &Store) -> (Vec<Vec<String>>, Vec<String>) {
    let (mut read, mut unreadable) = (Vec::new(), Vec::new());
    let mut pages = store.record_pages(&account());
    while let Some(page) = pages.next().await.unwrap() {
        let mut references = Vec::new();
        for record in page {
            match record {
                Ok(record) => references.push(record.reference.to_string()),
                Err(error) => {
                    assert!(matches!(error.source, StoreError::Format(Some(2))));
                    unreadable.push(error.reference);
                }
            }
        }
        read.push(references);
    }
    (read, unreadable)
}

#[tokio::test]
async fn records_of_many_pages_come_page_by_page_and_in_order() {
    let world = World::new().await;
    let (store, wire) = world.process();
    for number in 1..=5 {
        let record = large(server(number), 380_000);
        store.save(record).await.unwrap();
    }
    wire.sent();
    let (read, unreadable) = pages(&store).await;
    assert!(read.len() > 1, "one page had room for 1.9 MB");
    assert_eq!(wire.operations().len(), read.len());
    let expected: Vec<_> = (1..=5).map(|n| format!("hz-eu/server/{n}")).collect();
    assert_eq!(read.concat(), expected);
    assert_eq!(unreadable, [""; 0]);
}

#[tokio::test]
async fn a_record_of_a_newer_format_is_named_and_the_others_are_read() {
    let world = World::new().await;
    let store = world.store();
    for number in 1..=3 {
        store.save(server(number)).await.unwrap();
    }
    let mut newer = world.stored(&server(2)).await;
    newer.insert("format".to_owned(), AttributeValue::N("2".to_owned()));
    world.put(&World::tables().resources, newer).await;
    let (read, unreadable) = pages(&store).await;
    assert_eq!(read.concat(), ["hz-eu/server/1", "hz-eu/server/3"]);
    assert_eq!(unreadable, ["hz-eu/server/2"]);
}

#[tokio::test]
async fn accounts_that_were_configured_once_are_remembered() {
    let store = World::new().await.store();
    store
        .apply(&with_office_hours(), "ada", monday())
        .await
        .unwrap();
    let gone: AccountName = "gone".parse().unwrap();
    let state = store::AccountState::unknown(gone.clone());
    store.save_account_state(&state).await.unwrap();
    let accounts = store.accounts().await.unwrap();
    assert!(accounts.contains(&gone), "{accounts:?}");
    assert!(accounts.contains(&account()), "{accounts:?}");
}

#[tokio::test]
async fn the_store_tells_the_time_before_anything_was_applied() {
    let store = World::new().await.store();
    let told = store.clock().await.unwrap().unwrap();
    let machine = environment::Clock::machine().now();
    assert!(machine.duration_since(told).abs() < jiff::SignedDuration::from_mins(1));
}
