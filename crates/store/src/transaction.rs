//! One transaction on records and their history: all of it is written, or none.

use aws_sdk_dynamodb::{
    error::BuildError,
    operation::transact_write_items::TransactWriteItemsError,
    types::{AttributeValue, Delete, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem},
};
use domain::{ResourceRef, record::Revision};

use crate::{
    HistoryEntry, Store, StoreError, failed,
    item::{self, Item},
};

/// The condition that the stored record has the revision that the writer read.
pub(crate) const UNCHANGED: &str = "revision = :replaces";

/// The condition that there is no record yet.
pub(crate) const ABSENT: &str = "attribute_not_exists(account)";

/// A revision as it is stored.
pub(crate) fn revision(revision: Revision) -> AttributeValue {
    AttributeValue::N(revision.0.to_string())
}

/// What is to be written together.
pub(crate) struct Transaction<'s> {
    store: &'s Store,
    /// In words, for errors.
    what: &'static str,
    items: Vec<TransactWriteItem>,
}

impl Store {
    /// An empty transaction; `what` it does is for errors.
    pub(crate) fn transaction(&self, what: &'static str) -> Transaction<'_> {
        Transaction {
            store: self,
            what,
            items: Vec::new(),
        }
    }
}

impl Transaction<'_> {
    /// Writes a record in place of the one with a revision; zero: where there is none.
    pub(crate) fn put_record(mut self, item: Item, replaces: Revision) -> Result<Self, StoreError> {
        let put = Put::builder()
            .table_name(&self.store.tables.resources)
            .set_item(Some(item))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let put = match replaces {
            Revision(0) => put.condition_expression(ABSENT),
            replaces => put
                .condition_expression(UNCHANGED)
                .expression_attribute_values(":replaces", revision(replaces)),
        };
        let put = put.build().map_err(|error| self.unbuilt(error))?;
        self.items
            .push(TransactWriteItem::builder().put(put).build());
        Ok(self)
    }

    /// Deletes the record with a revision.
    pub(crate) fn delete_record(
        mut self,
        reference: &ResourceRef,
        read: Revision,
    ) -> Result<Self, StoreError> {
        let delete = Delete::builder()
            .table_name(&self.store.tables.resources)
            .set_key(Some(item::record_key(reference)))
            .condition_expression(UNCHANGED)
            .expression_attribute_values(":replaces", revision(read));
        let delete = delete.build().map_err(|error| self.unbuilt(error))?;
        let delete = TransactWriteItem::builder().delete(delete);
        self.items.push(delete.build());
        Ok(self)
    }

    /// Writes a history item.
    pub(crate) fn put_history(mut self, entry: &HistoryEntry) -> Result<Self, StoreError> {
        let put = Put::builder()
            .table_name(&self.store.tables.history)
            .set_item(Some(item::of_history(entry)?));
        let put = put.build().map_err(|error| self.unbuilt(error))?;
        self.items
            .push(TransactWriteItem::builder().put(put).build());
        Ok(self)
    }

    /// Writes all of it; or says which other writer was in the way, and wrote nothing.
    pub(crate) async fn commit(self) -> Result<Option<Refused>, StoreError> {
        let request = self.store.client.transact_write_items();
        match request.set_transact_items(Some(self.items)).send().await {
            Ok(_) => Ok(None),
            Err(error) => match error.as_service_error().and_then(Refused::of_transaction) {
                Some(refused) => Ok(Some(refused)),
                None => Err(failed(self.what)(error)),
            },
        }
    }

    fn unbuilt(&self, error: BuildError) -> StoreError {
        StoreError::Dynamo(self.what, Box::new(error.into()))
    }
}

/// A write that was refused because of another writer.
pub(crate) enum Refused {
    /// Another writer's item stands there: this one, where the answer carries it.
    Replaced(Option<Item>),
    /// Another writer's transaction was under way.
    Conflict,
}

impl Refused {
    /// Why a transaction was cancelled, where another writer is the reason.
    pub(crate) fn of_transaction(error: &TransactWriteItemsError) -> Option<Self> {
        let TransactWriteItemsError::TransactionCanceledException(cancelled) = error else {
            return None;
        };
        let because = |code| {
            let mut reasons = cancelled.cancellation_reasons().iter();
            reasons.find(|reason| reason.code() == Some(code))
        };
        if let Some(reason) = because("ConditionalCheckFailed") {
            return Some(Self::Replaced(reason.item.clone()));
        }
        because("TransactionConflict").map(|_| Self::Conflict)
    }
}
