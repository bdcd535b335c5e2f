//! Writing records: each write names the revision it replaces, and raises it.

use aws_sdk_dynamodb::{
    operation::{
        put_item::PutItemError,
        update_item::{UpdateItemError, builders::UpdateItemFluentBuilder},
    },
    types::ReturnValuesOnConditionCheckFailure,
};
use domain::{
    AccountName,
    record::{Record, Revision},
};

use crate::{
    AccountState, HistoryEntry, Rate, Store, StoreError, failed,
    item::{self, Item},
    transaction::{ABSENT, Refused, UNCHANGED, revision},
};

/// What every update of an account's state sets.
const SET_ACCOUNT: &str = "SET account = :account, #format = :format";

/// The condition that no newer program wrote an item, for updates of a part of it.
pub(crate) const KNOWN_FORMAT: &str = "(attribute_not_exists(#format) OR #format <= :format)";

impl Store {
    /// [`Self::commit`] of a record with which nothing has ended.
    pub async fn save(&self, record: Record) -> Result<Record, StoreError> {
        self.commit(record, None).await
    }

    /// Replaces the record whose revision `record` carries, and returns it with the next one. The
    /// history item of what has `ended` is written with it, both or none.
    ///
    /// Revision zero means that there must be no record yet. A write whose earlier answer was lost
    /// finds its own record there, and has succeeded.
    ///
    /// # Errors
    /// [`StoreError::Stale`] if another writer's record stands there, or its transaction is under
    /// way.
    pub async fn commit(
        &self,
        mut record: Record,
        ended: Option<&HistoryEntry>,
    ) -> Result<Record, StoreError> {
        let replaces = next_revision(&mut record);
        let item = item::of_record(&record)?;
        // Boxed: a request's future is large, and every handler holds this one many times over.
        let refused = match ended {
            Some(entry) => {
                let both = self.transaction("write a record and its history");
                let both = both
                    .put_record(item.clone(), replaces)?
                    .put_history(entry)?;
                Box::pin(both.commit()).await?
            }
            None => Box::pin(self.put_record(&item, replaces)).await?,
        };
        let current = match refused {
            None => return Ok(record),
            Some(Refused::Replaced(current)) => current,
            // The answer does not say what stands there.
            Some(Refused::Conflict) => {
                let key = item::record_key(&record.reference);
                Box::pin(self.record_item(key)).await?
            }
        };
        if current.as_ref() == Some(&item) {
            return Ok(record);
        }
        let current = current.and_then(|item| item::to_record(item).ok());
        Err(StoreError::Stale {
            current: current.map(Box::new),
        })
    }

    async fn put_record(
        &self,
        item: &Item,
        replaces: Revision,
    ) -> Result<Option<Refused>, StoreError> {
        let put = self
            .client
            .put_item()
            .table_name(&self.tables.resources)
            .set_item(Some(item.clone()))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let put = match replaces {
            Revision(0) => put.condition_expression(ABSENT),
            replaces => put
                .condition_expression(UNCHANGED)
                .expression_attribute_values(":replaces", revision(replaces)),
        };
        match put.send().await {
            Ok(_) => Ok(None),
            Err(error) => match error.as_service_error() {
                Some(PutItemError::ConditionalCheckFailedException(refused)) => {
                    Ok(Some(Refused::Replaced(refused.item.clone())))
                }
                Some(PutItemError::TransactionConflictException(_)) => Ok(Some(Refused::Conflict)),
                Some(_) | None => Err(failed("write a record")(error)),
            },
        }
    }

    /// Notes what a provider said of an account's allowance, and nothing else of its state; unless
    /// something later is known.
    pub async fn save_rate(&self, account: &AccountName, rate: Rate) -> Result<(), StoreError> {
        let later = format!("{KNOWN_FORMAT} AND (attribute_not_exists(rate_ms) OR rate_ms <= :at)");
        let update = self
            .update_account_state(account)
            .update_expression(format!("{SET_ACCOUNT}, #rate = :rate, rate_ms = :at"))
            .condition_expression(later)
            .expression_attribute_names("#rate", "rate")
            .expression_attribute_values(":rate", serde_dynamo::to_attribute_value(rate)?)
            .expression_attribute_values(":at", item::milliseconds(rate.at));
        send(update, "write an account's rate").await
    }

    /// Notes what was learnt of an account. The latest writer wins, for it is a hint; but a rate
    /// does not replace a later one, and no rate replaces none.
    pub async fn save_account_state(&self, state: &AccountState) -> Result<(), StoreError> {
        let mut learnt = item::of_account_state(state)?;
        let mut update = self
            .update_account_state(&state.account)
            .condition_expression(KNOWN_FORMAT);
        let (mut set, mut remove) = (vec![SET_ACCOUNT.to_owned()], Vec::new());
        for name in ["listed_at", "tried_at", "error", "token_fails", "cost"] {
            let placeholder = format!("#{name}");
            match learnt.remove(name) {
                Some(value) => {
                    set.push(format!("{placeholder} = :{name}"));
                    update = update.expression_attribute_values(format!(":{name}"), value);
                }
                None => remove.push(placeholder.clone()),
            }
            update = update.expression_attribute_names(placeholder, name);
        }
        let mut expression = set.join(", ");
        if !remove.is_empty() {
            expression += " REMOVE ";
            expression += &remove.join(", ");
        }
        let update = update.update_expression(expression);
        send(update, "write an account's state").await?;
        match state.rate {
            Some(rate) => self.save_rate(&state.account, rate).await,
            None => Ok(()),
        }
    }

    fn update_account_state(&self, account: &AccountName) -> UpdateItemFluentBuilder {
        self.client
            .update_item()
            .table_name(&self.tables.accounts)
            .set_key(Some(item::account_state_key(account)))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .expression_attribute_names("#format", "format")
            .expression_attribute_values(":account", item::text(account.as_str()))
            .expression_attribute_values(":format", item::format())
    }
}

/// Sends an update of a hint. One that a condition refuses is left alone: what stands there is
/// newer.
async fn send(update: UpdateItemFluentBuilder, what: &'static str) -> Result<(), StoreError> {
    match update.send().await {
        Ok(_) => Ok(()),
        Err(error) => match error.as_service_error() {
            Some(UpdateItemError::ConditionalCheckFailedException(refused)) => {
                refused.item.as_ref().map_or(Ok(()), item::check_format)
            }
            Some(_) | None => Err(failed(what)(error)),
        },
    }
}

fn next_revision(record: &mut Record) -> Revision {
    let replaces = record.revision;
    record.revision = Revision(replaces.0 + 1);
    replaces
}
