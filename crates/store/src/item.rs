//! The layout of every item, in one place: keys, the index, the format's version.
//!
//! What is stored outlives the code that stored it. Before a change here: an older function may
//! read what a newer one wrote, and the reverse. New fields are optional, and a change that an
//! older reader must not touch raises [`FORMAT`].

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use domain::{
    AccountName, ResourceRef, ScheduleName,
    configuration::{Account, Generation, Override, Rule, Settings},
    record::Record,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_dynamo::{from_item, to_item};

use crate::{AccountState, HistoryEntry, StoreError};

/// The version of the format that this code writes, and the latest that it reads.
pub const FORMAT: u32 = 1;

/// The index of what is due: one partition, ordered by `due_ms`; only records with a due instant.
pub const DUE_INDEX: &str = "due";

/// The partition of the configuration's head and the overrides.
pub const HEAD: &str = "head";

/// The partition of the accounts' states.
pub const STATE: &str = "state";

/// The partition of which edge of each schedule was told of last. It is in the table `accounts`:
/// no function writes the table of the schedules.
pub const DIGEST: &str = "digest";

/// The partition of what was applied when, and by whom.
pub const LOG: &str = "log";

/// For how many days a history item is kept.
///
/// Reading history by time rests on it: items written under another value would be found as far
/// off as the values differ.
pub const HISTORY_DAYS: i64 = 90;

/// An item as DynamoDB has it.
pub type Item = HashMap<String, AttributeValue>;

/// The key of a record.
#[must_use]
pub fn record_key(reference: &ResourceRef) -> Item {
    key([
        ("account", reference.account.to_string()),
        ("resource", reference.id.to_string()),
    ])
}

/// A record as it is stored.
pub fn of_record(record: &Record) -> Result<Item, StoreError> {
    let mut item: Item = to_item(record)?;
    item.extend(record_key(&record.reference));
    stamp(&mut item);
    if let Some(due_at) = record.due_at {
        item.insert("due".to_owned(), text(DUE_INDEX));
        item.insert("due_ms".to_owned(), milliseconds(due_at));
    }
    Ok(item)
}

/// A stored record.
pub fn to_record(item: Item) -> Result<Record, StoreError> {
    read(item)
}

/// The partition of one generation's items.
#[must_use]
pub fn generation_key(generation: Generation) -> String {
    // Padded, so that generations sort as numbers do.
    format!("generation#{:012}", generation.0)
}

/// The head: which generation is in force.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The generation in force.
    pub generation: Generation,
    /// Who applied it.
    pub author: String,
    /// When.
    pub applied_at: Option<Timestamp>,
}

/// The head as it is stored.
pub fn of_head(head: &Head) -> Result<Item, StoreError> {
    keyed(
        head,
        [
            ("generation_key", HEAD.to_owned()),
            ("name", HEAD.to_owned()),
        ],
    )
}

/// A configuration that came into force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// Its generation.
    pub generation: Generation,
    /// Who applied it.
    pub author: String,
    /// When.
    pub applied_at: Timestamp,
    /// For a rollback: the generation whose content it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Generation>,
}

/// A log entry as it is stored; entries sort by generation.
pub fn of_log_entry(entry: &LogEntry) -> Result<Item, StoreError> {
    keyed(
        entry,
        [
            ("generation_key", LOG.to_owned()),
            ("name", generation_key(entry.generation)),
        ],
    )
}

/// A stored log entry.
pub fn to_log_entry(item: Item) -> Result<LogEntry, StoreError> {
    read(item)
}

/// An override as it is stored, beside the head: one query reads both.
pub fn of_override(one: &Override) -> Result<Item, StoreError> {
    keyed(
        one,
        [
            ("generation_key", HEAD.to_owned()),
            ("name", override_name(one)),
        ],
    )
}

fn override_name(one: &Override) -> String {
    format!("override#{}", one.target)
}

/// What stands in the partition of the head.
#[derive(Debug)]
pub enum HeadItem {
    /// The head itself.
    Head(Head),
    /// An override.
    Override(Override),
}

/// An item of the head's partition.
pub fn to_head_item(item: Item) -> Result<HeadItem, StoreError> {
    if item.get("name") == Some(&text(HEAD)) {
        Ok(HeadItem::Head(read(item)?))
    } else {
        Ok(HeadItem::Override(read(item)?))
    }
}

/// A schedule, or the settings, of one generation.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConfigurationItem {
    /// What holds for the whole service.
    Settings(Settings),
    /// A schedule.
    Schedule {
        /// Its name.
        schedule: ScheduleName,
        /// What it says.
        rule: Box<Rule>,
    },
}

/// A schedule or the settings as they are stored.
pub fn of_configuration_item(
    generation: Generation,
    one: &ConfigurationItem,
) -> Result<Item, StoreError> {
    let name = match one {
        ConfigurationItem::Settings(_) => "settings".to_owned(),
        ConfigurationItem::Schedule { schedule, .. } => format!("schedule#{schedule}"),
    };
    keyed(
        &Body { body: one },
        [
            ("generation_key", generation_key(generation)),
            ("name", name),
        ],
    )
}

/// A stored schedule, or the settings.
pub fn to_configuration_item(item: Item) -> Result<ConfigurationItem, StoreError> {
    read::<Body<ConfigurationItem>>(item).map(|one| one.body)
}

/// An account of one generation as it is stored.
pub fn of_account(
    generation: Generation,
    name: &AccountName,
    account: &Account,
) -> Result<Item, StoreError> {
    keyed(
        &Body { body: account },
        [
            ("generation_key", generation_key(generation)),
            ("name", name.to_string()),
        ],
    )
}

/// A stored account.
pub fn to_account(item: Item) -> Result<(AccountName, Account), StoreError> {
    #[derive(Deserialize)]
    struct Named {
        name: AccountName,
        body: Account,
    }
    read::<Named>(item).map(|one| (one.name, one.body))
}

/// The key of an account's state.
#[must_use]
pub fn account_state_key(account: &AccountName) -> Item {
    key([
        ("generation_key", STATE.to_owned()),
        ("name", account.to_string()),
    ])
}

/// The format's version, as every item carries it.
#[must_use]
pub fn format() -> AttributeValue {
    AttributeValue::N(FORMAT.to_string())
}

/// An account's state as it is stored.
pub fn of_account_state(state: &AccountState) -> Result<Item, StoreError> {
    keyed(
        state,
        [
            ("generation_key", STATE.to_owned()),
            ("name", state.account.to_string()),
        ],
    )
}

/// A stored account's state.
pub fn to_account_state(item: Item) -> Result<AccountState, StoreError> {
    read(item)
}

/// Which edge of a schedule was told of last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digested {
    /// Which schedule.
    pub schedule: ScheduleName,
    /// When its wish changed.
    pub edge: Timestamp,
    /// Who told of it: one invocation, at one instant.
    pub by: String,
}

/// The key of what was told of a schedule.
#[must_use]
pub fn digest_key(schedule: &ScheduleName) -> Item {
    key([
        ("generation_key", DIGEST.to_owned()),
        ("name", schedule.to_string()),
    ])
}

/// What was told of a schedule, as it is stored. Edges are compared by `edge_ms`.
pub fn of_digested(one: &Digested) -> Result<Item, StoreError> {
    let mut item = keyed(
        one,
        [
            ("generation_key", DIGEST.to_owned()),
            ("name", one.schedule.to_string()),
        ],
    )?;
    item.insert("edge_ms".to_owned(), milliseconds(one.edge));
    Ok(item)
}

/// What is stored of what was told of a schedule.
pub fn to_digested(item: Item) -> Result<Digested, StoreError> {
    read(item)
}

/// A finished transition as it is stored. Its key makes writing it twice the same as once.
pub fn of_history(entry: &HistoryEntry) -> Result<Item, StoreError> {
    let mut item = keyed(
        entry,
        [
            ("reference", entry.reference.to_string()),
            ("transition", entry.transition_key()),
        ],
    )?;
    item.insert("expires_at".to_owned(), expires_at(entry.finished_at));
    Ok(item)
}

/// When a history item expires whose transition ended at an instant: seconds since 1970.
#[must_use]
pub fn expires_at(finished_at: Timestamp) -> AttributeValue {
    let seconds = finished_at.as_second() + HISTORY_DAYS * 24 * 60 * 60;
    AttributeValue::N(seconds.to_string())
}

/// A stored history item.
pub fn to_history(item: Item) -> Result<HistoryEntry, StoreError> {
    read(item)
}

/// A body apart from the keys, whose names it may share.
#[derive(Serialize, Deserialize)]
struct Body<T> {
    body: T,
}

/// A string attribute.
#[must_use]
pub fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.to_owned())
}

/// The name of an item of the tables `schedules` and `accounts`, by its key; empty if it has none.
#[must_use]
pub fn name(item: &Item) -> String {
    let name = item.get("name").and_then(|name| name.as_s().ok());
    name.cloned().unwrap_or_default()
}

/// An instant as the index orders it: milliseconds since 1970, rounded down.
#[must_use]
pub fn milliseconds(at: Timestamp) -> AttributeValue {
    AttributeValue::N(at.as_millisecond().to_string())
}

fn key<const N: usize>(parts: [(&str, String); N]) -> Item {
    parts
        .into_iter()
        .map(|(name, value)| (name.to_owned(), AttributeValue::S(value)))
        .collect()
}

fn stamp(item: &mut Item) {
    item.insert("format".to_owned(), format());
}

fn keyed<const N: usize>(
    value: &impl Serialize,
    parts: [(&str, String); N],
) -> Result<Item, StoreError> {
    let mut item: Item = to_item(value)?;
    item.extend(key(parts));
    stamp(&mut item);
    Ok(item)
}

/// Reads an item of a format that this code knows.
fn read<T: DeserializeOwned>(item: Item) -> Result<T, StoreError> {
    check_format(&item)?;
    Ok(from_item(item)?)
}

/// Refuses an item of a format that this code does not know.
pub fn check_format(item: &Item) -> Result<(), StoreError> {
    let format = item
        .get("format")
        .and_then(|format| format.as_n().ok()?.parse().ok());
    match format {
        Some(1..=FORMAT) => Ok(()),
        other => Err(StoreError::Format(other)),
    }
}
