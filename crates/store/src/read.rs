//! Reading: all reads are strongly consistent except those of the index, which are hints, and those
//! of all history, which people look at.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use aws_config::SdkConfig;
use aws_sdk_dynamodb::{
    Client, config::AsyncSleep as _, operation::query::builders::QueryFluentBuilder,
    types::KeysAndAttributes,
};
use domain::{
    AccountName, ResourceRef,
    configuration::{
        Configuration, Floor, Generation, Override, Overrides, Pause, Schedules, Settings,
    },
    order::Graph,
    record::Record,
};
use jiff::Timestamp;

use crate::{
    AccountPrices, AccountState, Coverage, InForce, ReadItems, StoreError, Tables, Unreadable,
    failed,
    item::{self, AccountPart, ConfigurationItem, ConfigurationPart, Head, Item, LogEntry, Stored},
};

/// DynamoDB's limit on the keys of one `BatchGetItem`.
const BATCH_KEYS: usize = 100;

/// A batch is given up after this many responses in a row that do nothing of it. With the pauses
/// between them they take a second and a half.
pub(crate) const FUTILE_TRIES: u32 = 5;

/// What was learned about accounts, by name.
pub type AccountStates = BTreeMap<AccountName, AccountState>;

/// Reads, and cannot write.
#[derive(Debug, Clone)]
pub struct Reader {
    pub(crate) client: Client,
    pub(crate) tables: Tables,
    /// The configuration read last. A generation never changes, so it is read once; but after the
    /// table is restored from a backup, its number may be given to another one.
    cached: Arc<Mutex<Option<Cached>>>,
    /// The guard rails of this deployment.
    floor: Floor,
}

/// A configuration in memory.
#[derive(Debug)]
struct Cached {
    /// The head that names it.
    head: Head,
    configuration: Arc<Configuration>,
    /// Whether the log has shown, under this head, that no other configuration was applied since.
    is_applied_last: bool,
}

/// The head, the overrides and the pauses, as read together.
#[derive(Debug, Clone, Default)]
pub struct HeadAndOverrides {
    /// Which generation is in force.
    pub head: Head,
    /// The overrides and pauses in force, and those that have ended.
    pub overrides: Overrides,
}

impl HeadAndOverrides {
    /// Adds the configuration that the head names.
    #[must_use]
    pub fn with_configuration(self, configuration: Arc<Configuration>) -> InForce {
        InForce { configuration, overrides: self.overrides, since: self.head.applied_at }
    }
}

impl Reader {
    #[must_use]
    pub fn new(client: Client, tables: Tables) -> Self {
        Self { client, tables, cached: Arc::default(), floor: Floor::default() }
    }

    /// Reads every configuration that is in force under these guard rails.
    #[must_use]
    pub fn under(self, floor: Floor) -> Self {
        Self { floor, ..self }
    }

    /// The guard rails of this deployment.
    #[must_use]
    pub fn floor(&self) -> &Floor {
        &self.floor
    }

    /// Creates a reader of these tables, at the address and with the credentials of `config`.
    #[must_use]
    pub fn connect(config: &SdkConfig, tables: Tables) -> Self {
        Self::new(Client::new(config), tables)
    }

    /// Reads the head, the overrides and the pauses, with two concurrent requests.
    pub async fn head_and_overrides(&self) -> Result<HeadAndOverrides, StoreError> {
        let (head, overrides) =
            tokio::try_join!(self.head(), self.partition(&self.tables.schedules, item::OVERRIDE))?;
        let (pauses, overrides): (Vec<_>, Vec<_>) = overrides.into_iter().partition(item::is_pause);
        let pauses = pauses.into_iter().map(|item| whole(item, Pause::of_item));
        let pauses: Vec<_> = pauses.collect::<Result<_, _>>()?;
        let overrides = overrides.into_iter().map(|item| whole(item, Override::of_item));
        let overrides: Overrides = overrides.collect::<Result<_, _>>()?;
        Ok(HeadAndOverrides { head, overrides: overrides.with_pauses(pauses) })
    }

    /// Reads which generation is in force.
    pub async fn head(&self) -> Result<Head, StoreError> {
        let found = self.partition(&self.tables.schedules, item::HEAD).await?.pop();
        found.map_or_else(|| Ok(Head::default()), |item| whole(item, Head::of_item))
    }

    /// Reads the configuration that a head names; from memory if it was the last one read.
    pub async fn configuration_of(&self, head: &Head) -> Result<Arc<Configuration>, StoreError> {
        if let Some(cached) = self.lock_cached().as_ref()
            && cached.head == *head
        {
            return Ok(cached.configuration.clone());
        }
        let configuration = Arc::new(Configuration {
            floor: self.floor.clone(),
            ..self.configuration(head.generation).await?
        });
        *self.lock_cached() = Some(Cached {
            head: head.clone(),
            configuration: configuration.clone(),
            is_applied_last: false,
        });
        Ok(configuration)
    }

    pub async fn configuration(&self, generation: Generation) -> Result<Configuration, StoreError> {
        let mut configuration = says_nothing(generation);
        let key = item::generation_key(generation);
        let items = self.partition(&self.tables.schedules, &key).await?;
        // Each generation has settings; zero stands for none.
        if items.is_empty() && generation != Generation::default() {
            return Err(StoreError::NoGeneration(generation));
        }
        for item in items {
            match whole(item, ConfigurationPart::of_item)?.body {
                ConfigurationItem::Settings(settings) => configuration.settings = *settings,
                ConfigurationItem::Schedule { schedule, rule } => {
                    configuration.schedules.insert(schedule, *rule);
                }
            }
        }
        for item in self.partition(&self.tables.accounts, &key).await? {
            let account = whole(item, AccountPart::of_item)?;
            configuration.accounts.insert(account.name, account.body);
        }
        Ok(configuration)
    }

    /// Like [`Self::configuration`], but empty if it cannot be read.
    pub(crate) async fn configuration_if_known(
        &self,
        generation: Generation,
    ) -> Result<Configuration, StoreError> {
        match self.configuration(generation).await {
            Err(error) if error.hides_configuration() => Ok(says_nothing(generation)),
            read => read,
        }
    }

    /// Like [`Self::in_force`], for when the configuration cannot be read: it is empty here.
    pub async fn in_force_without_configuration(&self) -> Result<InForce, StoreError> {
        let present = self.head_and_overrides().await?;
        let configuration = Arc::new(says_nothing(present.head.generation));
        Ok(present.with_configuration(configuration))
    }

    /// Reads what is in force: the configuration and the overrides.
    pub async fn in_force(&self) -> Result<InForce, StoreError> {
        let present = self.head_and_overrides().await?;
        let configuration = self.configuration_of(&present.head).await?;
        Ok(present.with_configuration(configuration))
    }

    /// Reads the records that the index says are due, earliest first. Hints: the index lags.
    pub async fn due(&self, now: Timestamp) -> Result<ReadItems<Vec<Record>>, StoreError> {
        let due = self
            .client
            .query()
            .table_name(&self.tables.resources)
            .index_name(item::DUE_INDEX)
            .key_condition_expression("#due = :due AND due_ms <= :now")
            .expression_attribute_names("#due", "due")
            .expression_attribute_values(":due", item::text(item::DUE_INDEX))
            .expression_attribute_values(":now", item::milliseconds(now));
        let mut found = ReadItems::default();
        each(due, "read what is due", |item| found.add(item)).await?;
        Ok(found)
    }

    pub async fn record(&self, reference: &ResourceRef) -> Result<Option<Record>, StoreError> {
        let item = self.record_item(item::record_key(reference)).await?;
        item.map(Record::of_item).transpose()
    }

    pub(crate) async fn record_item(&self, key: Item) -> Result<Option<Item>, StoreError> {
        let answer = self
            .client
            .get_item()
            .table_name(&self.tables.resources)
            .set_key(Some(key))
            .consistent_read(true)
            .send()
            .await
            .map_err(failed("read a record"))?;
        Ok(answer.item)
    }

    /// Reads several records, in no order; those that do not exist are missing from the result.
    pub async fn records(
        &self,
        references: &[ResourceRef],
    ) -> Result<ReadItems<Vec<Record>>, StoreError> {
        // DynamoDB refuses a whole batch in which a key occurs twice.
        let references: BTreeSet<_> = references.iter().collect();
        let references: Vec<_> = references.into_iter().collect();
        let mut found = ReadItems::default();
        for chunk in references.chunks(BATCH_KEYS) {
            let mut keys: Vec<Item> = chunk.iter().copied().map(item::record_key).collect();
            let mut futile = 0;
            // Keys for which a response had no room or no time come back as unprocessed.
            while !keys.is_empty() {
                let wanted = keys.len();
                keys = self.read_batch(keys, &mut found).await?;
                futile = if keys.len() < wanted { 0 } else { futile + 1 };
                if futile == FUTILE_TRIES {
                    return Err(StoreError::Throttled { left: keys.len() });
                }
                if !keys.is_empty() {
                    self.pause(futile).await;
                }
            }
        }
        Ok(found)
    }

    /// Reads the records of these keys; returns those that were left unread.
    async fn read_batch(
        &self,
        keys: Vec<Item>,
        found: &mut ReadItems<Vec<Record>>,
    ) -> Result<Vec<Item>, StoreError> {
        let table = &self.tables.resources;
        let wanted = KeysAndAttributes::builder()
            .set_keys(Some(keys))
            .consistent_read(true)
            .build()
            .expect("a batch has keys");
        let request = self.client.batch_get_item().request_items(table, wanted);
        let answer = request.send().await.map_err(failed("read records"))?;
        let items = answer.responses.and_then(|mut read| read.remove(table));
        items.into_iter().flatten().for_each(|item| found.add(item));
        let left = answer.unprocessed_keys.and_then(|mut left| left.remove(table));
        Ok(left.map(|left| left.keys).unwrap_or_default())
    }

    pub async fn records_of(
        &self,
        account: &AccountName,
    ) -> Result<ReadItems<Vec<Record>>, StoreError> {
        let records = self.query(&self.tables.resources, "account", account.as_str());
        let mut found = ReadItems::default();
        each(records, "read an account's records", |item| found.add(item)).await?;
        Ok(found)
    }

    /// Reads what an account covers: a fraction of its records, to be parsed in a fraction of the time.
    pub async fn coverage_of(
        &self,
        account: &AccountName,
    ) -> Result<ReadItems<Vec<Coverage>>, StoreError> {
        let mut query = self.query(&self.tables.resources, "account", account.as_str());
        for name in Coverage::ATTRIBUTES.split(' ') {
            query = query.expression_attribute_names(format!("#{name}"), name);
        }
        let names = Coverage::ATTRIBUTES.replace(' ', ", #");
        let query = query.projection_expression(format!("#key, #{names}"));
        let mut found = ReadItems::default();
        each(query, "read what an account covers", |item| found.add(item)).await?;
        Ok(found)
    }

    /// Reads the records that these may have to wait for in the order of groups: none unless one of
    /// these is in an order.
    pub async fn in_order_with(
        &self,
        records: &[Record],
        in_force: &InForce,
    ) -> Result<Vec<Record>, StoreError> {
        let configuration = &in_force.configuration;
        if !Graph::of(&configuration.settings.groups).concerns(records) {
            return Ok(Vec::new());
        }
        Ok(self.records_of_all(configuration.accounts.keys()).await?.read)
    }

    /// Reads all records, including those of accounts that are no longer configured.
    pub async fn all_records(&self) -> Result<ReadItems<Vec<Record>>, StoreError> {
        self.records_of_all(&self.accounts().await?).await
    }

    /// Reads the records of several accounts.
    pub async fn records_of_all(
        &self,
        accounts: impl IntoIterator<Item = &AccountName>,
    ) -> Result<ReadItems<Vec<Record>>, StoreError> {
        let mut found = ReadItems::<Vec<Record>>::default();
        for account in accounts {
            let of_account = self.records_of(account).await?;
            found.read.extend(of_account.read);
            found.unreadable.extend(of_account.unreadable);
        }
        Ok(found)
    }

    /// Reads at most `most` log entries of what came into force, newest first.
    pub async fn log(&self, most: usize) -> Result<Vec<LogEntry>, StoreError> {
        let log = self.query(&self.tables.schedules, "generation_key", item::LOG);
        let log = log.scan_index_forward(false);
        let log = log.set_limit(i32::try_from(most).ok());
        let mut items = log.into_paginator().items().send();
        let mut entries = Vec::new();
        while entries.len() < most
            && let Some(item) = items.next().await
        {
            let item = item.map_err(failed("read what was applied"))?;
            entries.push(LogEntry::of_item(item)?);
        }
        Ok(entries)
    }

    /// Returns the configuration that was applied last, if this other one is in force instead. An
    /// apply writes the head too: while that stays the same, the log is read once.
    pub async fn applied_instead(
        &self,
        in_force: Generation,
    ) -> Result<Option<LogEntry>, StoreError> {
        if self.cached_of(in_force, |cached| cached.is_applied_last) == Some(true) {
            return Ok(None);
        }
        let last = self.log(1).await?.pop();
        let Some(last) = last.filter(|last| last.generation != in_force) else {
            self.cached_of(in_force, |cached| cached.is_applied_last = true);
            return Ok(None);
        };
        // It may have been applied since the head was read.
        let head = self.head().await?;
        Ok((head.generation == in_force).then_some(last))
    }

    /// Reads what was learned about the accounts.
    pub async fn account_states(&self) -> Result<ReadItems<AccountStates>, StoreError> {
        self.by_name(item::STATE, |state: &AccountState| state.account.clone()).await
    }

    /// Returns all accounts that may have records: those that are configured, and those that once
    /// were. If the configuration in force cannot be read, only those with a stored state.
    pub async fn accounts(&self) -> Result<BTreeSet<AccountName>, StoreError> {
        let configured = match self.in_force().await {
            Err(error) if error.hides_configuration() => {
                self.in_force_without_configuration().await?
            }
            read => read?,
        };
        let configured = configured.configuration;
        let known = self.account_states().await?;
        let newer = known.unreadable.iter().filter_map(Unreadable::account);
        Ok(configured.accounts.keys().chain(known.read.keys()).cloned().chain(newer).collect())
    }

    pub async fn prices(
        &self,
    ) -> Result<ReadItems<BTreeMap<AccountName, AccountPrices>>, StoreError> {
        self.by_name(item::PRICES, |prices: &AccountPrices| prices.account.clone()).await
    }

    /// Reads a partition of the table `accounts`.
    pub(crate) async fn by_name<N: Ord, T: Stored>(
        &self,
        partition: &str,
        name: impl Fn(&T) -> N,
    ) -> Result<ReadItems<BTreeMap<N, T>>, StoreError> {
        let mut found = ReadItems::<BTreeMap<N, T>>::default();
        for item in self.partition(&self.tables.accounts, partition).await? {
            let reference = item::name(&item);
            match T::of_item(item) {
                Ok(one) => {
                    found.read.insert(name(&one), one);
                }
                Err(source) => found.unreadable.push(Unreadable { reference, source }),
            }
        }
        Ok(found)
    }

    /// Waits before unread keys are requested again: at first a small part of the client's own
    /// initial backoff, and twice as long after each futile read.
    pub(crate) async fn pause(&self, futile: u32) {
        let config = self.client.config();
        if let (Some(sleep), Some(retries)) = (config.sleep_impl(), config.retry_config()) {
            sleep.sleep(retries.initial_backoff() / 20 * 2_u32.pow(futile)).await;
        }
    }

    pub(crate) async fn partition(&self, table: &str, key: &str) -> Result<Vec<Item>, StoreError> {
        let mut items = Vec::new();
        let query = self.query(table, "generation_key", key);
        each(query, "read the configuration", |item| items.push(item)).await?;
        Ok(items)
    }

    /// Builds a strongly consistent query for everything that a table has under one key.
    pub(crate) fn query(&self, table: &str, key: &str, value: &str) -> QueryFluentBuilder {
        self.client
            .query()
            .table_name(table)
            .key_condition_expression("#key = :key")
            .expression_attribute_names("#key", key)
            .expression_attribute_values(":key", item::text(value))
            .consistent_read(true)
    }

    /// Calls `then` with what is in memory, if that is this generation.
    fn cached_of<T>(&self, of: Generation, then: impl FnOnce(&mut Cached) -> T) -> Option<T> {
        self.lock_cached().as_mut().filter(|cached| cached.head.generation == of).map(then)
    }

    fn lock_cached(&self) -> MutexGuard<'_, Option<Cached>> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Passes each item that a query finds to `take`, however many pages they fill.
async fn each(
    query: QueryFluentBuilder,
    what: &'static str,
    mut take: impl FnMut(Item),
) -> Result<(), StoreError> {
    let mut items = query.into_paginator().items().send();
    while let Some(item) = items.next().await {
        take(item.map_err(failed(what))?);
    }
    Ok(())
}

/// Reads an item without which the configuration would be incomplete.
fn whole<T>(item: Item, read: impl FnOnce(Item) -> Result<T, StoreError>) -> Result<T, StoreError> {
    let name = item::name(&item);
    read(item).map_err(|source| StoreError::Configuration { item: name, source: Box::new(source) })
}

fn says_nothing(generation: Generation) -> Configuration {
    Configuration {
        generation,
        settings: Settings::default(),
        accounts: BTreeMap::new(),
        schedules: Schedules::default(),
        floor: Floor::default(),
    }
}
