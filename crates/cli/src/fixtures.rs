//! Separate stores for tests; their contents come from [`testing::history`].

use domain::{history::HistoryEntry, record::Record};
use local::engine::Engine;
use store::{Store, Tables};

use crate::configuration_file;

pub(crate) use testing::history::*;

/// A new engine without tables, and the store on it.
pub(crate) fn new_engine() -> (Engine, Store) {
    let engine = Engine::in_memory().unwrap();
    let store = engine.store(Tables::prefixed("t-"));
    (engine, store)
}

/// A new store to which nothing has been applied.
pub(crate) async fn empty_store() -> Store {
    let (_, store) = new_engine();
    store.create_tables().await.unwrap();
    store
}

/// A new store with a configuration in force.
pub(crate) async fn store_with(configuration: &str) -> Store {
    let store = empty_store().await;
    let parsed = configuration_file::parse(configuration, "test").unwrap();
    let configuration = parsed.configuration;
    store.apply(&configuration, "ada", at("01 00:00")).await.unwrap();
    store
}

/// Writes a resource's record, and then its history.
pub(crate) async fn remember(store: &Store, record: Record, entries: &[HistoryEntry]) {
    let mut record = store.save(record).await.unwrap();
    for entry in entries {
        record = store.commit(record, Some(entry)).await.unwrap();
    }
}
