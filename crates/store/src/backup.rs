//! Everything that is stored, item by item, and a store made from that.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::{PutRequest, WriteRequest};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    Reader, Store, StoreError, Tables, failed,
    item::{self, Item},
    read::FUTILE_TRIES,
};

/// DynamoDB's limit on the items of one `BatchWriteItem`.
const BATCH_ITEMS: usize = 25;

/// One of the four tables. They are read in this order: no item refers to one of a later table that a
/// writer may have added meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Table {
    Resources,
    History,
    Schedules,
    Accounts,
}

impl Table {
    const ALL: [Self; 4] = [Self::Resources, Self::History, Self::Schedules, Self::Accounts];

    fn name(self, tables: &Tables) -> &str {
        match self {
            Self::Resources => &tables.resources,
            Self::History => &tables.history,
            Self::Schedules => &tables.schedules,
            Self::Accounts => &tables.accounts,
        }
    }
}

/// An item of any table, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredItem {
    pub table: Table,
    pub item: Map<String, Value>,
}

impl StoredItem {
    fn is_head(&self) -> bool {
        let partition = self.item.get("generation_key").and_then(Value::as_str);
        self.table == Table::Schedules && partition == Some(item::HEAD)
    }
}

impl Reader {
    /// Passes every stored item to `add`, those that this program cannot read included.
    pub async fn each_item<E: From<StoreError>>(
        &self,
        mut add: impl FnMut(StoredItem) -> Result<(), E>,
    ) -> Result<(), E> {
        for table in Table::ALL {
            let scan = self.client.scan().table_name(table.name(&self.tables));
            let mut items = scan.consistent_read(true).into_paginator().items().send();
            while let Some(item) = items.next().await {
                let item = item.map_err(failed("read everything"))?;
                let item = serde_dynamo::from_item(item).map_err(StoreError::from)?;
                add(StoredItem { table, item })?;
            }
        }
        Ok(())
    }
}

impl Store {
    /// Writes items into a store in which no configuration is in force. The head comes last: until
    /// then nothing is in force, and a restore that was interrupted can be repeated.
    pub async fn restore<E: From<StoreError>>(
        &self,
        items: impl Iterator<Item = Result<StoredItem, E>>,
    ) -> Result<(), E> {
        let (mut batch, mut heads) = (Vec::new(), Vec::new());
        for item in items {
            let item = item?;
            let to = if item.is_head() { &mut heads } else { &mut batch };
            to.push(item);
            if batch.len() == BATCH_ITEMS {
                self.put_all(std::mem::take(&mut batch)).await?;
            }
        }
        self.put_all(batch).await?;
        self.put_all(heads).await?;
        Ok(())
    }

    async fn put_all(&self, items: Vec<StoredItem>) -> Result<(), StoreError> {
        let mut left = HashMap::<String, Vec<WriteRequest>>::new();
        for StoredItem { table, item } in items {
            let item: Item = serde_dynamo::to_item(item)?;
            let put = PutRequest::builder().set_item(Some(item)).build();
            let put = put.expect("a put has an item");
            let of_table = left.entry(table.name(&self.tables).to_owned()).or_default();
            of_table.push(WriteRequest::builder().put_request(put).build());
        }
        let mut futile = 0;
        while !left.is_empty() {
            let before: usize = left.values().map(Vec::len).sum();
            let request = self.client.batch_write_item().set_request_items(Some(left));
            let written = request.send().await.map_err(failed("restore items"))?;
            left = written.unprocessed_items.unwrap_or_default();
            let remaining: usize = left.values().map(Vec::len).sum();
            futile = if remaining < before { 0 } else { futile + 1 };
            if futile == FUTILE_TRIES {
                return Err(StoreError::Throttled { left: remaining });
            }
            if remaining > 0 {
                self.pause(futile).await;
            }
        }
        Ok(())
    }
}
