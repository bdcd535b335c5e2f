//! Applying a configuration: writes a new generation beside the old one, then puts that into force
//! with one write.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;
use domain::{
    AccountName,
    activity::{Action, Activity, Author},
    configuration::{Configuration, Generation, Override, Settings},
    decision::{self, InForce},
    joining,
    record::Record,
};
use jiff::Timestamp;

use crate::{
    Store, StoreError,
    item::{self, AccountPart, ConfigurationItem, Head, Item, LogEntry, Stored as _},
    write::Expected,
};

/// Why a configuration was not applied, or not completely.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Another person applied a configuration meanwhile: compare again.
    #[error("another configuration was applied meanwhile")]
    Overtaken,
    /// The store failed. The old configuration is in force, unless only the last response was lost:
    /// compare again.
    #[error("failed to apply the configuration")]
    Store(#[from] StoreError),
    /// It is in force, but not all records are marked due under it yet; the next inventory does so.
    #[error("applied as generation {generation}, but failed to make all its records due at once")]
    NotYetDue {
        /// The generation that is in force now.
        generation: Generation,
        #[source]
        source: StoreError,
    },
}

/// Who applies a configuration, and what that changes.
#[derive(Debug, Clone)]
pub struct Applying {
    /// Who applies it, and why.
    pub author: Author,
    /// What it changes, in a line for the settings and for each account and schedule.
    pub changes: Vec<String>,
}

impl Applying {
    /// Makes the entry of the activity log.
    #[must_use]
    pub fn activity(
        &self,
        generation: Generation,
        repeats: Option<Generation>,
        at: Timestamp,
    ) -> Activity {
        let applied = Action::Applied { generation, repeats, changes: self.changes.clone() };
        self.author.does(applied, at)
    }
}

/// A person who says neither why nor what changes.
impl From<&str> for Applying {
    fn from(name: &str) -> Self {
        Self { author: name.into(), changes: Vec::new() }
    }
}

impl Store {
    /// Writes `configuration` as a generation after `configuration.generation` and brings it into
    /// force, all or nothing; then marks every record due that it concerns. A generation that a
    /// newer program wrote is replaced like any other: this is how an older release resumes work.
    ///
    /// Returns the new generation: the next number, or a later one if an apply that did not
    /// succeed has taken that, or if a record was handled under it before the table was restored
    /// from a backup. A crash between the two steps is repaired by the next inventory.
    pub async fn apply(
        &self,
        configuration: &Configuration,
        by: impl Into<Applying>,
        now: Timestamp,
    ) -> Result<Generation, ApplyError> {
        self.bring_into_force(configuration, by.into(), None, now).await
    }

    /// Applies an earlier generation's configuration again, as a generation after `replaces`.
    pub async fn roll_back(
        &self,
        to: Generation,
        replaces: Generation,
        by: impl Into<Applying>,
        now: Timestamp,
    ) -> Result<Generation, ApplyError> {
        let mut configuration = self.configuration(to).await?;
        configuration.take_back_renames(&self.configuration_if_known(replaces).await?);
        configuration.generation = replaces;
        self.bring_into_force(&configuration, by.into(), Some(to), now).await
    }

    async fn bring_into_force(
        &self,
        configuration: &Configuration,
        applying: Applying,
        repeats: Option<Generation>,
        now: Timestamp,
    ) -> Result<Generation, ApplyError> {
        let replaces = configuration.generation;
        // Moving the head decides. This check saves a number when that is known to fail.
        let present = self.head_and_overrides().await?;
        if present.head.generation != replaces {
            return Err(ApplyError::Overtaken);
        }
        let before = self.configuration_if_known(replaces).await?;
        // Carries over what an earlier apply did not: this one may give the account a third name.
        self.carry_over_all(&before, now).await?;
        let accounts = before.accounts.keys().chain(configuration.accounts.keys());
        let accounts: BTreeSet<_> = accounts.collect();
        let last = self.last_handled(&accounts).await?.max(replaces);
        // Copies them before anything looks for them there, so that none is ever missing.
        let copied = self.copy_overrides(configuration, &before).await?;
        let generation = self.write_generation(configuration, last).await?;
        let entry = LogEntry {
            generation,
            author: applying.author.by.to_string(),
            applied_at: now,
            repeats,
        };
        let activity = applying.activity(generation, repeats, now);
        self.move_head(&entry, replaces, &activity).await?;
        let followed = self.follow_up(configuration, &before, &accounts, &copied, now).await;
        followed.map_err(|source| ApplyError::NotYetDue { generation, source })?;
        Ok(generation)
    }

    /// Returns the latest generation under which an edge of any resource in these accounts was
    /// handled: later than the one in force if the table was restored from a backup.
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

    /// Does at once what the next inventories would otherwise do.
    async fn follow_up(
        &self,
        configuration: &Configuration,
        before: &Configuration,
        accounts: &BTreeSet<&AccountName>,
        copied: &[Override],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.carry_over_all(configuration, now).await?;
        self.end_copied_overrides(configuration, before, copied, now).await?;
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
            let item = schedule.in_generation(generation).to_item()?;
            self.write_part(&self.tables.schedules, item).await?;
        }
        for (name, account) in &configuration.accounts {
            let account = AccountPart { generation, name: name.clone(), body: account.clone() };
            self.write_part(&self.tables.accounts, account.to_item()?).await?;
        }
        Ok(generation)
    }

    /// Writes unconditionally: no other apply writes into a generation that was taken.
    async fn write_part(&self, table: &str, item: Item) -> Result<(), StoreError> {
        let put = Expected::anything().put(table, item);
        match self.write("write the configuration", put).await? {
            None => Ok(()),
            // Without this part, the generation would be incomplete.
            Some(_) => Err(StoreError::Stale { current: None }),
        }
    }

    /// Takes the first free number after `last` by writing the settings under it if there are none
    /// yet: two concurrent applies must not write into one generation.
    async fn take_generation(
        &self,
        last: Generation,
        settings: &Settings,
    ) -> Result<Generation, StoreError> {
        let mut generation = last;
        loop {
            generation.0 += 1;
            // Accounts may be left from a generation that was lost when `schedules` was restored.
            let key = item::generation_key(generation);
            let accounts = self.partition(&self.tables.accounts, &key).await?;
            if !accounts.is_empty() {
                continue;
            }
            let settings = ConfigurationItem::Settings(Box::new(settings.clone()));
            let item = settings.in_generation(generation).to_item()?;
            let put = Expected::nothing().put(&self.tables.schedules, item);
            if self.write("write the configuration", put).await?.is_none() {
                return Ok(generation);
            }
        }
    }

    /// Moves the head, and writes its log entry and that of the activity log: the only commit point.
    async fn move_head(
        &self,
        entry: &LogEntry,
        replaces: Generation,
        activity: &Activity,
    ) -> Result<(), ApplyError> {
        let head = Head {
            generation: entry.generation,
            author: entry.author.clone(),
            applied_at: Some(entry.applied_at),
        };
        let head = head.to_item()?;
        let expected = if replaces == Generation::default() {
            Expected::nothing()
        } else {
            let replaces = AttributeValue::N(replaces.0.to_string());
            Expected::item(
                "generation = :replaces",
                Item::from([(":replaces".to_owned(), replaces)]),
            )
        };
        let table = &self.tables.schedules;
        let all = vec![
            expected.put(table, head.clone()),
            Expected::anything().put(table, entry.to_item()?),
            self.put_activity(activity)?,
        ];
        let what = "move the configuration's head";
        match self.write_all(what, all, None).await? {
            None => Ok(()),
            // The response to an earlier try of this very write may have been lost.
            Some(refused) if refused.is_for(&head) => Ok(()),
            Some(_) => Err(ApplyError::Overtaken),
        }
    }

    /// Admits the resources that the configuration in force newly covers, and marks the affected
    /// records due, with at most one write to each record of these accounts.
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
            for (record, known) in records.into_iter().zip(known) {
                self.make_due(record, &known, &in_force, now).await?;
            }
        }
        Ok(())
    }

    /// Writes a record with the instant at which it is due under `in_force`, unless it is stored
    /// like that already: as `known`, which was read before `in_force`.
    pub(crate) async fn make_due(
        &self,
        mut record: Record,
        known: &Record,
        in_force: &InForce,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        record.due_at = decision::due_at(&record, in_force.rules(), now);
        if record == *known {
            return Ok(());
        }
        self.save_unless_stale(record).await
    }

    /// Writes a record, unless another writer was first.
    pub(crate) async fn save_unless_stale(&self, record: Record) -> Result<(), StoreError> {
        match self.save(record).await {
            // Another writer was first: it reads the new configuration, and the inventory repairs
            // what it did not.
            Ok(_) | Err(StoreError::Stale { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
