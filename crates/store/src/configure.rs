//! Applying a configuration: a new generation beside the old, then one write that makes it hold.

use aws_sdk_dynamodb::{operation::put_item::PutItemError, types::AttributeValue};
use domain::{
    AccountName,
    configuration::{Configuration, Generation, Override},
    decision,
};
use jiff::Timestamp;

use crate::{
    Store, StoreError, failed,
    item::{self, ConfigurationItem, Head, Item},
    read::InForce,
};

/// A configuration that was not applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Somebody else applied one meanwhile: compare again.
    #[error("somebody else applied another configuration meanwhile")]
    Overtaken,
    /// The store failed; the old configuration holds.
    #[error("failed to apply the configuration")]
    Store(#[from] StoreError),
}

impl Store {
    /// Writes `configuration` as the generation after `configuration.generation` and makes it
    /// hold, all or nothing; then makes every record due that it concerns.
    ///
    /// Returns the new generation. A crash between the two steps is mended by the next inventory.
    pub async fn apply(
        &self,
        configuration: &Configuration,
        author: &str,
        now: Timestamp,
    ) -> Result<Generation, ApplyError> {
        let replaces = configuration.generation;
        let generation = Generation(replaces.0 + 1);
        self.write_generation(generation, configuration).await?;
        let head = Head {
            generation,
            author: author.to_owned(),
            applied_at: Some(now),
        };
        self.move_head(&head, replaces).await?;
        self.touch(configuration.accounts.keys(), now).await?;
        Ok(generation)
    }

    async fn write_generation(
        &self,
        generation: Generation,
        configuration: &Configuration,
    ) -> Result<(), StoreError> {
        let settings = ConfigurationItem::Settings(configuration.settings.clone());
        let schedules =
            configuration
                .schedules
                .iter()
                .map(|(name, rule)| ConfigurationItem::Schedule {
                    schedule: name.clone(),
                    rule: Box::new(rule.clone()),
                });
        for one in std::iter::once(settings).chain(schedules) {
            let item = item::of_configuration_item(generation, &one)?;
            self.put(&self.tables.schedules, item).await?;
        }
        for (name, account) in &configuration.accounts {
            let item = item::of_account(generation, name, account)?;
            self.put(&self.tables.accounts, item).await?;
        }
        Ok(())
    }

    /// The only commit point.
    async fn move_head(&self, head: &Head, replaces: Generation) -> Result<(), ApplyError> {
        let put = self
            .client
            .put_item()
            .table_name(&self.tables.schedules)
            .set_item(Some(item::of_head(head)?));
        let put = if replaces == Generation::default() {
            put.condition_expression("attribute_not_exists(generation_key)")
        } else {
            put.condition_expression("generation = :replaces")
                .expression_attribute_values(":replaces", AttributeValue::N(replaces.0.to_string()))
        };
        match put.send().await {
            Ok(_) => Ok(()),
            Err(error) => match error.as_service_error() {
                Some(PutItemError::ConditionalCheckFailedException(_)) => {
                    Err(ApplyError::Overtaken)
                }
                Some(_) | None => Err(failed("move the configuration's head")(error).into()),
            },
        }
    }

    /// Sets an override, or replaces the one of its target, and makes the records due.
    pub async fn set_override(&self, one: &Override, now: Timestamp) -> Result<(), StoreError> {
        let item = item::of_override(one)?;
        self.put(&self.tables.schedules, item).await?;
        let in_force = self.in_force().await?;
        self.touch(in_force.configuration.accounts.keys(), now)
            .await
    }

    /// Recomputes when each record of these accounts is due, under what holds now.
    ///
    /// A record that somebody else writes at the same time is left to him: he reads the new
    /// configuration, and the inventory mends what he did not.
    async fn touch(
        &self,
        accounts: impl Iterator<Item = &AccountName>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        for account in accounts {
            let records = self.records_of(account).await?;
            let in_force: InForce = self.in_force().await?;
            for mut record in records {
                let due_at = decision::due_at(&record, in_force.rules(), now);
                if due_at == record.due_at {
                    continue;
                }
                record.due_at = due_at;
                match self.save(record).await {
                    Ok(_) | Err(StoreError::Stale { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
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
