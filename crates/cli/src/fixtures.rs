//! Separate stores for tests; their contents come from [`testing::history`].

use std::net::SocketAddr;

use domain::{history::HistoryEntry, record::Record};
use local::engine;
use store::{Store, Tables};
use testing::store_on;

use crate::configuration_file;

pub(crate) use testing::history::*;

/// A new engine without tables, and the store on it.
pub(crate) async fn new_engine() -> (SocketAddr, Store) {
    let engine = engine::serve(None, ([127, 0, 0, 1], 0).into());
    let engine = engine.await.unwrap();
    (engine, store_on(engine, Tables::prefixed("t-")))
}

/// A new store to which nothing has been applied.
pub(crate) async fn empty_store() -> Store {
    let (_, store) = new_engine().await;
    store.create_tables().await.unwrap();
    store
}

/// A new store with a configuration in force.
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

/// Writes a resource's record, and then its history.
pub(crate) async fn remember(store: &Store, record: Record, entries: &[HistoryEntry]) {
    let mut record = store.save(record).await.unwrap();
    for entry in entries {
        record = store.commit(record, Some(entry)).await.unwrap();
    }
}
