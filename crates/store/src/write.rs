//! Writing: each write names what it replaces, and reports which other writer was in its way.

use aws_sdk_dynamodb::{
    operation::{
        put_item::PutItemError, transact_write_items::TransactWriteItemsError,
        update_item::UpdateItemError,
    },
    types::{AttributeValue, Delete, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem},
};
use domain::{
    AccountName,
    activity::Activity,
    history::HistoryEntry,
    pacing::{RateLimit, Spent},
    record::{Record, Revision},
};

use crate::{
    AccountPrices, AccountState, Store, StoreError, failed,
    item::{self, Item, Stored},
};

/// What a write expects to find under its key.
#[derive(Debug)]
pub(crate) struct Expected {
    condition: Option<&'static str>,
    values: Option<Item>,
}

impl Expected {
    /// Expects anything, or nothing.
    pub(crate) fn anything() -> Self {
        Self { condition: None, values: None }
    }

    /// Expects no item of the configuration.
    pub(crate) fn nothing() -> Self {
        Self { condition: Some("attribute_not_exists(generation_key)"), values: None }
    }

    /// Expects no entry of the activity log: none is ever overwritten.
    fn no_entry() -> Self {
        Self { condition: Some("attribute_not_exists(expires_at)"), values: None }
    }

    /// Expects an item that satisfies `condition`; `values` are those that the condition names.
    pub(crate) fn item(condition: &'static str, values: Item) -> Self {
        Self { condition: Some(condition), values: Some(values) }
    }

    /// Expects the record with this revision; zero means no record.
    fn record(revision: Revision) -> Self {
        match revision {
            Revision(0) => Self { condition: Some("attribute_not_exists(account)"), values: None },
            Revision(replaces) => {
                let replaces = AttributeValue::N(replaces.to_string());
                Self::item("revision = :replaces", Item::from([(":replaces".to_owned(), replaces)]))
            }
        }
    }

    /// Builds the write of an item in place of what is expected.
    pub(crate) fn put(self, table: &str, item: Item) -> Put {
        Put::builder()
            .table_name(table)
            .set_item(Some(item))
            .set_return_values_on_condition_check_failure(
                self.condition.map(|_| ReturnValuesOnConditionCheckFailure::AllOld),
            )
            .set_condition_expression(self.condition.map(str::to_owned))
            .set_expression_attribute_values(self.values)
            .build()
            .expect("a put has a table and an item")
    }

    fn delete(self, table: &str, key: Item) -> Delete {
        Delete::builder()
            .table_name(table)
            .set_key(Some(key))
            .set_condition_expression(self.condition.map(str::to_owned))
            .set_expression_attribute_values(self.values)
            .build()
            .expect("a deletion has a table and a key")
    }
}

/// The condition that no other invocation has written what it spends since it was read.
const NEXT_SPENT: &str =
    "(attribute_not_exists(#spent_revision) OR #spent_revision < :spent_revision)";

/// The condition that no later rate of the account is stored.
const LATEST_RATE: &str = "(attribute_not_exists(#rate_ms) OR #rate_ms <= :rate_ms)";

/// The attributes of a rate in an account's state.
fn of_rate(rate: RateLimit) -> Result<[(&'static str, Option<AttributeValue>); 2], StoreError> {
    Ok([
        ("rate", Some(serde_dynamo::to_attribute_value(rate)?)),
        ("rate_ms", Some(item::milliseconds(rate.at))),
    ])
}

/// Why a write was refused because of another writer.
#[derive(Debug)]
pub(crate) enum WriteRefusal {
    /// Another writer's item is stored there: this one, if the response includes it.
    Replaced(Option<Item>),
    /// Another writer's transaction was in flight.
    Conflict,
}

impl WriteRefusal {
    /// Reports whether this very item is stored: then it was written, and the response was lost.
    pub(crate) fn is_for(&self, item: &Item) -> bool {
        matches!(self, Self::Replaced(Some(standing)) if standing == item)
    }

    /// Reports whether another item of this one's name, in the same partition, is stored.
    pub(crate) fn is_in_place_of(&self, item: &Item) -> bool {
        matches!(self, Self::Replaced(Some(standing)) if standing.get("name") == item.get("name"))
    }
}

impl Store {
    /// [`Self::commit`] without a history item.
    pub async fn save(&self, record: Record) -> Result<Record, StoreError> {
        self.commit(record, None).await
    }

    /// Replaces the record whose revision `record` carries, and returns `record` with the next one.
    /// The history item of what has `ended` is written with it, both or neither.
    ///
    /// Revision zero means that there must be no record yet. A write whose earlier response was
    /// lost finds its own record there, and has succeeded.
    ///
    /// # Errors
    /// [`StoreError::Stale`] if another writer's record is stored there, or its transaction is in
    /// flight.
    pub async fn commit(
        &self,
        mut record: Record,
        ended: Option<&HistoryEntry>,
    ) -> Result<Record, StoreError> {
        let replaces = record.revision;
        record.revision = Revision(replaces.0 + 1);
        let item = record.to_item()?;
        let put = Expected::record(replaces).put(&self.tables.resources, item.clone());
        // Boxed: a request's future is large, and every handler holds this one many times over.
        let refused = match ended {
            Some(entry) => {
                let both = vec![put, self.put_history(entry)?];
                let both = self.write_all("write a record and its history", both, None);
                Box::pin(both).await?
            }
            None => Box::pin(self.write("write a record", put)).await?,
        };
        let current = match refused {
            None => return Ok(record),
            Some(WriteRefusal::Replaced(current)) => current,
            // The response does not include the stored item.
            Some(WriteRefusal::Conflict) => Box::pin(self.record_item(record.key())).await?,
        };
        if current.as_ref() == Some(&item) {
            return Ok(record);
        }
        let current = current.and_then(|item| Record::of_item(item).ok());
        Err(StoreError::Stale { current: current.map(Box::new) })
    }

    /// Builds the write of a record in place of the one with a revision; zero means no record.
    pub(crate) fn put_record(
        &self,
        record: &Record,
        replaces: Revision,
    ) -> Result<Put, StoreError> {
        let item = record.to_item()?;
        Ok(Expected::record(replaces).put(&self.tables.resources, item))
    }

    /// Builds the write of a history item.
    pub(crate) fn put_history(&self, entry: &HistoryEntry) -> Result<Put, StoreError> {
        Ok(Expected::anything().put(&self.tables.history, entry.to_item()?))
    }

    /// Builds the write of an entry of the activity log.
    pub(crate) fn put_activity(&self, activity: &Activity) -> Result<Put, StoreError> {
        let item = item::activity_item(activity)?;
        Ok(Expected::no_entry().put(&self.tables.history, item))
    }

    /// Adds an entry to the activity log.
    pub async fn record_activity(&self, activity: &Activity) -> Result<(), StoreError> {
        let put = self.put_activity(activity)?;
        let item = put.item().clone();
        match self.write("write the activity log", put).await? {
            None => Ok(()),
            // The response to an earlier try was lost.
            Some(refused) if refused.is_for(&item) => Ok(()),
            Some(_) => Err(StoreError::Stale { current: None }),
        }
    }

    /// Builds the deletion of a record that is unchanged since it was read.
    pub(crate) fn delete_record(&self, read: &Record) -> Delete {
        Expected::record(read.revision).delete(&self.tables.resources, read.key())
    }

    /// Writes one item, or reports which other writer was in the way.
    pub(crate) async fn write(
        &self,
        what: &'static str,
        put: Put,
    ) -> Result<Option<WriteRefusal>, StoreError> {
        let sent = self
            .client
            .put_item()
            .table_name(put.table_name)
            .set_item(Some(put.item))
            .set_condition_expression(put.condition_expression)
            .set_expression_attribute_values(put.expression_attribute_values)
            .set_return_values_on_condition_check_failure(
                put.return_values_on_condition_check_failure,
            )
            .send()
            .await;
        match sent {
            Ok(_) => Ok(None),
            Err(error) => match error.as_service_error() {
                Some(PutItemError::ConditionalCheckFailedException(refused)) => {
                    Ok(Some(WriteRefusal::Replaced(refused.item.clone())))
                }
                Some(PutItemError::TransactionConflictException(_)) => {
                    Ok(Some(WriteRefusal::Conflict))
                }
                Some(_) | None => Err(failed(what)(error)),
            },
        }
    }

    /// Writes and deletes in one transaction; or does none of it, and reports which other writer
    /// was in the way.
    pub(crate) async fn write_all(
        &self,
        what: &'static str,
        puts: Vec<Put>,
        delete: Option<Delete>,
    ) -> Result<Option<WriteRefusal>, StoreError> {
        let puts = puts.into_iter().map(|put| TransactWriteItem::builder().put(put).build());
        let delete = delete.map(|delete| TransactWriteItem::builder().delete(delete).build());
        let request = self.client.transact_write_items();
        let all = puts.chain(delete).collect();
        match request.set_transact_items(Some(all)).send().await {
            Ok(_) => Ok(None),
            Err(error) => match error.as_service_error().and_then(cancelled) {
                Some(refused) => Ok(Some(refused)),
                None => Err(failed(what)(error)),
            },
        }
    }

    /// Stores what a provider reported about an account's allowance, and nothing else of its state,
    /// unless a later rate is stored.
    pub async fn save_rate(
        &self,
        account: &AccountName,
        rate: RateLimit,
    ) -> Result<(), StoreError> {
        let name = ("account", Some(item::text(account.as_str())));
        let learnt = [name].into_iter().chain(of_rate(rate)?);
        self.note_of_account(account, learnt, &[LATEST_RATE]).await?;
        Ok(())
    }

    /// Stores what invocations have sent of an account's requests, or are about to, with a rate if
    /// there is one, and nothing else of its state. Returns whether it replaced what was stored at
    /// `revision`, and no later rate is stored: otherwise another invocation was first.
    pub async fn save_spent(
        &self,
        account: &AccountName,
        spent: &[Spent],
        revision: u64,
        rate: Option<RateLimit>,
    ) -> Result<bool, StoreError> {
        let latest = rate.map(|_| LATEST_RATE);
        let conditions: Vec<_> = [NEXT_SPENT].into_iter().chain(latest).collect();
        let rate = rate.map(of_rate).transpose()?;
        let learnt = [
            ("account", Some(item::text(account.as_str()))),
            ("spent", Some(serde_dynamo::to_attribute_value(spent)?)),
            ("spent_revision", Some(serde_dynamo::to_attribute_value(revision + 1)?)),
        ];
        let learnt = learnt.into_iter().chain(rate.into_iter().flatten());
        self.note_of_account(account, learnt, &conditions).await
    }

    /// Stores what was learned about an account. The latest writer wins, because it is a hint; but
    /// a rate does not replace a later one, and a state without a rate keeps the one that is
    /// stored.
    pub async fn save_account_state(&self, state: &AccountState) -> Result<(), StoreError> {
        let mut item = state.to_item()?;
        let names = [
            "account",
            "listed_at",
            "tried_at",
            "error",
            "token_fails",
            "tagless_since",
            "cost",
            "prices_due_at",
        ];
        let learnt = names.map(|name| (name, item.remove(name)));
        if let Some(rate) = state.rate {
            let learnt = learnt.clone().into_iter().chain(of_rate(rate)?);
            let noted = self.note_of_account(&state.account, learnt, &[LATEST_RATE]);
            if noted.await? {
                return Ok(());
            }
        }
        self.note_of_account(&state.account, learnt, &[]).await?;
        Ok(())
    }

    /// Stores the prices of an account in place of older ones, unless a newer program wrote those.
    pub async fn save_prices(&self, prices: &AccountPrices) -> Result<(), StoreError> {
        let mut item = prices.to_item()?;
        let attributes = ["account", "list"].map(|name| (name, item.remove(name)));
        self.update("write the prices of an account", prices.key(), attributes, &[]).await?;
        Ok(())
    }

    /// Sets these attributes of an account's state if the given conditions hold, and returns
    /// whether they did. If not, nothing is written, because what is stored is newer.
    async fn note_of_account<'n>(
        &self,
        account: &AccountName,
        learnt: impl IntoIterator<Item = (&'n str, Option<AttributeValue>)>,
        conditions: &[&str],
    ) -> Result<bool, StoreError> {
        let what = "write an account's state";
        let key = item::account_state_key(account);
        match self.update(what, key, learnt, conditions).await? {
            Some(WriteRefusal::Replaced(Some(standing))) => {
                item::check_format(&standing)?;
                Ok(false)
            }
            Some(WriteRefusal::Replaced(None) | WriteRefusal::Conflict) => Ok(false),
            None => Ok(true),
        }
    }

    /// Sets these attributes of an item of the table `accounts`, and removes those without a value,
    /// if `conditions` hold and no newer program wrote the item.
    pub(crate) async fn update<'n>(
        &self,
        what: &'static str,
        key: Item,
        attributes: impl IntoIterator<Item = (&'n str, Option<AttributeValue>)>,
        conditions: &[&str],
    ) -> Result<Option<WriteRefusal>, StoreError> {
        let known = "(attribute_not_exists(#format) OR #format <= :format)";
        let mut update = self
            .client
            .update_item()
            .table_name(&self.tables.accounts)
            .set_key(Some(key))
            .condition_expression([&[known], conditions].concat().join(" AND "))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let (mut set, mut remove) = (Vec::new(), Vec::new());
        let format = [("format", Some(item::usual_format()))];
        for (name, value) in attributes.into_iter().chain(format) {
            update = update.expression_attribute_names(format!("#{name}"), name);
            match value {
                Some(value) => {
                    set.push(format!("#{name} = :{name}"));
                    update = update.expression_attribute_values(format!(":{name}"), value);
                }
                None => remove.push(format!("#{name}")),
            }
        }
        let set = format!("SET {}", set.join(", "));
        let remove = (!remove.is_empty()).then(|| format!(" REMOVE {}", remove.join(", ")));
        let expression = set + &remove.unwrap_or_default();
        match update.update_expression(expression).send().await {
            Ok(_) => Ok(None),
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(refused)) => {
                    Ok(Some(WriteRefusal::Replaced(refused.item.clone())))
                }
                Some(_) | None => Err(failed(what)(error)),
            },
        }
    }
}

/// Returns why a transaction was canceled, if another writer is the reason.
fn cancelled(error: &TransactWriteItemsError) -> Option<WriteRefusal> {
    let TransactWriteItemsError::TransactionCanceledException(cancelled) = error else {
        return None;
    };
    let because = |code| {
        let mut reasons = cancelled.cancellation_reasons().iter();
        reasons.find(|reason| reason.code() == Some(code))
    };
    if let Some(reason) = because("ConditionalCheckFailed") {
        return Some(WriteRefusal::Replaced(reason.item.clone()));
    }
    because("TransactionConflict").map(|_| WriteRefusal::Conflict)
}
