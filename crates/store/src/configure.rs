//! Applying a configuration: a new generation beside the old, then one write that makes it hold.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::{
    operation::put_item::PutItemError,
    types::{AttributeValue, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem},
};
use domain::{
    AccountName,
    configuration::{Configuration, Generation, Override, Settings},
    decision, joining,
    record::Record,
};
use jiff::Timestamp;

use crate::{
    Store, StoreError, failed,
    item::{self, ConfigurationItem, Head, Item, LogEntry},
    read::InForce,
    transaction::Refused,
};

/// A configuration that was not applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Somebody else applied one meanwhile: compare again.
    #[error("somebody else applied another configuration meanwhile")]
    Overtaken,
    /// The store failed. The old configuration holds, unless only the last answer was lost:
    /// compare again.
    #[error("failed to apply the configuration")]
    Store(#[from] StoreError),
    /// It holds, but some records are not due by it yet; the next inventory makes them so.
    #[error("applied as generation {generation}, but failed to make all its records due at once")]
    NotYetDue {
        /// The generation that holds now.
        generation: Generation,
        /// What failed.
        #[source]
        source: StoreError,
    },
}

impl Store {
    /// Writes `configuration` as a generation after `configuration.generation` and makes it hold,
    /// all or nothing; then makes every record due that it concerns. One that a newer program wrote
    /// is replaced like any other: so an older release comes back to work.
    ///
    /// Returns the new generation: the next number, or a later one if an apply that did not
    /// succeed has taken that, or if a record was handled under it before the table was restored
    /// from a backup. A crash between the two steps is mended by the next inventory.
    pub async fn apply(
        &self,
        configuration: &Configuration,
        author: &str,
        now: Timestamp,
    ) -> Result<Generation, ApplyError> {
        self.bring_into_force(configuration, (author, None), now)
            .await
    }

    /// Applies again what an earlier generation said, as a generation after `replaces`.
    pub async fn roll_back(
        &self,
        to: Generation,
        replaces: Generation,
        author: &str,
        now: Timestamp,
    ) -> Result<Generation, ApplyError> {
        let mut configuration = self.configuration(to).await?;
        configuration.take_back_renames(&self.configuration_if_known(replaces).await?);
        configuration.generation = replaces;
        self.bring_into_force(&configuration, (author, Some(to)), now)
            .await
    }

    async fn bring_into_force(
        &self,
        configuration: &Configuration,
        (author, repeats): (&str, Option<Generation>),
        now: Timestamp,
    ) -> Result<Generation, ApplyError> {
        let replaces = configuration.generation;
        // Moving the head decides. This spares a number where it is known to fail.
        if self.present().await?.head.generation != replaces {
            return Err(ApplyError::Overtaken);
        }
        let before = self.configuration_if_known(replaces).await?;
        // What an earlier apply did not carry over: this one may give the account a third name.
        self.carry_over_all(&before, now).await?;
        let accounts = before.accounts.keys().chain(configuration.accounts.keys());
        let accounts: BTreeSet<_> = accounts.collect();
        let last = self.last_handled(&accounts).await?.max(replaces);
        // Beforehand, when nothing looks for them there yet: so that none is ever missing.
        let copied = self.copy_overrides(configuration, &before).await?;
        let generation = self.write_generation(configuration, last).await?;
        let entry = LogEntry {
            generation,
            author: author.to_owned(),
            applied_at: now,
            repeats,
        };
        self.move_head(&entry, replaces).await?;
        self.follow_up(configuration, &accounts, &copied, now)
            .await
            .map_err(|source| ApplyError::NotYetDue { generation, source })?;
        Ok(generation)
    }

    /// The latest generation under which an edge was handled of anything in these accounts: later
    /// than the one in force where the table was restored from a backup.
    async fn last_handled(
        &self,
        accounts: &BTreeSet<&AccountName>,
    ) -> Result<Generation, StoreError> {
        let mut last = Generation::default();
        for account in accounts {
            let records = self.records_of(account).await?.read;
            let handled = records.iter().filter_map(|record| record.handled.as_ref());
            last = handled.fold(last, |last, handled| last.max(handled.generation));
        }
        Ok(last)
    }

    /// Does at once what the next inventories would do otherwise.
    async fn follow_up(
        &self,
        configuration: &Configuration,
        accounts: &BTreeSet<&AccountName>,
        copied: &[Override],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.carry_over_all(configuration, now).await?;
        self.end_copied_overrides(configuration, copied, now)
            .await?;
        self.touch_all(accounts, now).await
    }

    async fn carry_over_all(
        &self,
        configuration: &Configuration,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        for (was, account) in configuration.renames() {
            self.carry_over(was, account, now).await?;
        }
        Ok(())
    }

    async fn write_generation(
        &self,
        configuration: &Configuration,
        last: Generation,
    ) -> Result<Generation, StoreError> {
        let generation = self.take_generation(last, &configuration.settings).await?;
        for (name, rule) in &configuration.schedules {
            let schedule = ConfigurationItem::Schedule {
                schedule: name.clone(),
                rule: Box::new(rule.clone()),
            };
            let item = item::of_configuration_item(generation, &schedule)?;
            self.put(&self.tables.schedules, item).await?;
        }
        for (name, account) in &configuration.accounts {
            let item = item::of_account(generation, name, account)?;
            self.put(&self.tables.accounts, item).await?;
        }
        Ok(generation)
    }

    /// Takes the first free number after `last` by writing the settings under it, where there are
    /// none yet: two who apply at once must not write into one generation.
    async fn take_generation(
        &self,
        last: Generation,
        settings: &Settings,
    ) -> Result<Generation, StoreError> {
        let settings = ConfigurationItem::Settings(settings.clone());
        let mut generation = last;
        loop {
            generation.0 += 1;
            // Accounts that nothing names any more: of a generation whose schedules were set back.
            let key = item::generation_key(generation);
            if !self
                .partition(&self.tables.accounts, &key)
                .await?
                .is_empty()
            {
                continue;
            }
            let put = self
                .client
                .put_item()
                .table_name(&self.tables.schedules)
                .set_item(Some(item::of_configuration_item(generation, &settings)?))
                .condition_expression("attribute_not_exists(generation_key)");
            match put.send().await {
                Ok(_) => return Ok(generation),
                Err(error) => match error.as_service_error() {
                    Some(PutItemError::ConditionalCheckFailedException(_)) => {}
                    Some(_) | None => return Err(failed("write the configuration")(error)),
                },
            }
        }
    }

    /// The only commit point: the head, and its line in the log.
    async fn move_head(&self, entry: &LogEntry, replaces: Generation) -> Result<(), ApplyError> {
        let what = "move the configuration's head";
        let head = item::of_head(&Head {
            generation: entry.generation,
            author: entry.author.clone(),
            applied_at: Some(entry.applied_at),
        })?;
        let put = Put::builder()
            .table_name(&self.tables.schedules)
            .set_item(Some(head.clone()))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let put = if replaces == Generation::default() {
            put.condition_expression("attribute_not_exists(generation_key)")
        } else {
            put.condition_expression("generation = :replaces")
                .expression_attribute_values(":replaces", AttributeValue::N(replaces.0.to_string()))
        };
        let log = Put::builder()
            .table_name(&self.tables.schedules)
            .set_item(Some(item::of_log_entry(entry)?));
        let mut request = self.client.transact_write_items();
        for put in [put, log] {
            let put = put
                .build()
                .map_err(|error| StoreError::Dynamo(what, Box::new(error.into())))?;
            request = request.transact_items(TransactWriteItem::builder().put(put).build());
        }
        match request.send().await {
            Ok(_) => Ok(()),
            Err(error) => match error.as_service_error().and_then(Refused::of_transaction) {
                // The answer to an earlier try of this very write may have been lost.
                Some(Refused::Replaced(Some(standing))) if standing == head => Ok(()),
                Some(Refused::Replaced(_) | Refused::Conflict) => Err(ApplyError::Overtaken),
                None => Err(failed(what)(error).into()),
            },
        }
    }

    /// Lets join what the configuration in force makes join, and makes due what is due by it, in one
    /// write of each record of these accounts.
    async fn touch_all(
        &self,
        accounts: &BTreeSet<&AccountName>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        for account in accounts {
            let known = self.records_of(account).await?.read;
            let in_force = self.in_force().await?;
            let mut records = known.clone();
            joining::join_all(&mut records, in_force.rules(), now);
            for (mut record, known) in records.into_iter().zip(known) {
                record.due_at = decision::due_at(&record, in_force.rules(), now);
                if record != known {
                    self.save_unless_stale(record).await?;
                }
            }
        }
        Ok(())
    }

    /// Recomputes when each record of these accounts is due that `concerns` chooses.
    pub(crate) async fn touch(
        &self,
        accounts: impl Iterator<Item = &AccountName>,
        concerns: impl Fn(&Record, &Configuration) -> bool,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        for account in accounts {
            let mut records = self.records_of(account).await?.read;
            let in_force = self.in_force().await?;
            records.retain(|record| concerns(record, &in_force.configuration));
            self.make_due(records, &in_force, now).await?;
        }
        Ok(())
    }

    /// Recomputes when these records are due, under what holds now; they were read before it was.
    ///
    pub(crate) async fn make_due(
        &self,
        records: impl IntoIterator<Item = Record>,
        in_force: &InForce,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        for mut record in records {
            let due_at = decision::due_at(&record, in_force.rules(), now);
            if due_at == record.due_at {
                continue;
            }
            record.due_at = due_at;
            self.save_unless_stale(record).await?;
        }
        Ok(())
    }

    /// Writes a record, unless another writer was there first: that one reads the new configuration,
    /// and the inventory mends what it did not.
    async fn save_unless_stale(&self, record: Record) -> Result<(), StoreError> {
        match self.save(record).await {
            Ok(_) | Err(StoreError::Stale { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn put(&self, table: &str, item: Item) -> Result<(), StoreError> {
        self.client
            .put_item()
            .table_name(table)
            .set_item(Some(item))
            .send()
            .await
            .map_err(failed("write the configuration"))?;
        Ok(())
    }
}
