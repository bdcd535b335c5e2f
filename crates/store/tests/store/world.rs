//! An engine, and processes that use it; each process's wire is recorded and can be cut.

use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use domain::record::Record;
use local::engine::Engine;
use store::{
    Store, Tables,
    item::{self, Item},
};
use testing::Wire;

/// An engine with the four tables, initially empty.
pub(crate) struct World {
    engine: Engine,
}

impl World {
    pub(crate) async fn new() -> Self {
        let world = Self { engine: Engine::in_memory().unwrap() };
        world.store().create_tables().await.unwrap();
        world
    }

    pub(crate) fn tables() -> Tables {
        Tables::prefixed("t-")
    }

    /// One process's store, with the wire between it and the engine.
    pub(crate) fn process(&self) -> (Store, Arc<Wire>) {
        Wire::to(&self.engine, Self::tables())
    }

    pub(crate) fn store(&self) -> Store {
        self.engine.store(Self::tables())
    }

    /// A client of the engine itself, bypassing the store.
    pub(crate) fn engine(&self) -> Client {
        self.engine.client()
    }

    pub(crate) async fn put(&self, table: &str, item: Item) {
        let put = self.engine().put_item().table_name(table);
        put.set_item(Some(item)).send().await.unwrap();
    }

    /// Reads all items of a table, as they are stored.
    pub(crate) async fn items(&self, table: &str) -> Vec<Item> {
        let scan = self.engine().scan().table_name(table);
        scan.send().await.unwrap().items.unwrap_or_default()
    }

    /// Restores a table from a backup: it then contains these items and no others.
    pub(crate) async fn restore(&self, table: &str, backup: Vec<Item>) {
        for mut item in self.items(table).await {
            item.retain(|name, _| ["generation_key", "name"].contains(&name.as_str()));
            let delete = self.engine().delete_item().table_name(table);
            delete.set_key(Some(item)).send().await.unwrap();
        }
        for item in backup {
            self.put(table, item).await;
        }
    }

    /// Reads a record's item as it is stored.
    pub(crate) async fn stored(&self, record: &Record) -> Item {
        let get = self.engine().get_item().table_name(Self::tables().resources);
        let answer = get.set_key(Some(item::record_key(&record.reference))).send().await;
        answer.unwrap().item.unwrap()
    }
}
