//! Deleting a record that a person wants forgotten; what it is owed goes to history first.

use aws_sdk_dynamodb::{
    error::BuildError,
    types::{AttributeValue, Delete, Put, TransactWriteItem},
};
use domain::record::{Cause, Direction, Record};
use jiff::Timestamp;

use crate::{Ending, HistoryEntry, Store, StoreError, failed, item, write::Refused};

const WHAT: &str = "delete a record";

impl Store {
    /// Deletes a record that nothing has written since it was read, and writes to history what it
    /// is owed and `who` gave that up: both or none.
    ///
    /// # Errors
    /// [`StoreError::Stale`] if another writer was first.
    pub async fn forget(
        &self,
        record: &Record,
        who: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let build = |error: BuildError| StoreError::Dynamo(WHAT, Box::new(error.into()));
        let delete = Delete::builder()
            .table_name(&self.tables.resources)
            .set_key(Some(item::record_key(&record.reference)))
            .condition_expression("revision = :read")
            .expression_attribute_values(":read", AttributeValue::N(record.revision.0.to_string()));
        let delete = delete.build().map_err(build)?;
        let history = Put::builder()
            .table_name(&self.tables.history)
            .set_item(Some(item::of_history(&given_up(record, who, now))?));
        let history = history.build().map_err(build)?;
        let answer = self
            .client
            .transact_write_items()
            .transact_items(TransactWriteItem::builder().delete(delete).build())
            .transact_items(TransactWriteItem::builder().put(history).build())
            .send()
            .await;
        let Err(error) = answer else {
            return Ok(());
        };
        if error
            .as_service_error()
            .and_then(Refused::of_transaction)
            .is_none()
        {
            return Err(failed(WHAT)(error));
        }
        match self.record(&record.reference).await? {
            // The answer to an earlier try was lost, or another person was quicker.
            None => Ok(()),
            Some(current) => Err(StoreError::Stale {
                current: Some(Box::new(current)),
            }),
        }
    }
}

fn given_up(record: &Record, who: &str, now: Timestamp) -> HistoryEntry {
    HistoryEntry {
        reference: record.reference.clone(),
        name: record.name.clone(),
        direction: Direction::Start,
        cause: Cause::ByHand { by: who.to_owned() },
        schedule: None,
        claimed_at: now,
        asked_at: None,
        accepted_at: None,
        finished_at: now,
        ending: Ending::Forgotten,
        forced: false,
        saved: record.saved.clone(),
        seen: None,
    }
}
