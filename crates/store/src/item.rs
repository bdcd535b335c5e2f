//! The layout of every item, in one place: keys, the index, the format's version.
//!
//! What is stored outlives the code that stored it. Before changing anything here, consider that an
//! older function may read what a newer one wrote, and the reverse. New fields are optional, and a
//! change that an older reader must not touch raises [`FORMAT`].

use std::{collections::HashMap, fmt};

use aws_sdk_dynamodb::types::AttributeValue;
use domain::{
    AccountName, ResourceRef, ScheduleName, TargetName,
    activity::Activity,
    configuration::{Account, Generation, Override, Pause, Rule, Settings},
    event_type::EventType,
    history::{HISTORY_DAYS, HistoryEntry},
    prices::PriceList,
    record::Record,
    text::line,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{AccountState, StoreError};

/// The latest version of the format that this code reads and writes.
pub const FORMAT: u32 = 3;

/// The version that most items are written in.
const USUAL: u32 = 1;

/// The version of records of machines that are or were hibernated. An older program knows neither
/// that such a machine has another id, nor that it may be absent.
const HIBERNATION: u32 = 2;

/// The version of pauses. An older program would send what they bar.
const PAUSE: u32 = 3;

/// The index of due records: one partition, ordered by `due_ms`; only records with a due instant.
pub const DUE_INDEX: &str = "due";

/// The partition of the configuration's head, which only an admin may write. Earlier versions kept
/// the overrides in it, too.
pub const HEAD: &str = "head";

/// The partition of the overrides and pauses, the only one of its table that an operator may write.
pub const OVERRIDE: &str = "override";

/// The partition of the accounts' states.
pub const STATE: &str = "state";

/// The partition of the prices that were read in each account.
pub const PRICES: &str = "prices";

/// The partition of the events that wait to be accepted by the targets of `[notify]`.
pub const OUTBOX: &str = "outbox";

/// The partition of the targets that fail.
pub const TARGET: &str = "target";

/// The partition of the log of what was applied, when and by whom.
pub const LOG: &str = "log";

/// The partition of the activity log. It is in the table `history`, whose items expire.
pub const ACTIVITY: &str = "activity";

pub type Item = HashMap<String, AttributeValue>;

/// A value that is stored as an item of its own.
pub trait Stored: Serialize + DeserializeOwned {
    fn key(&self) -> Item;

    /// Attributes besides the value itself, for indexes and conditions: numbers that order as
    /// instants do.
    fn index(&self) -> Item {
        Item::new()
    }

    /// The version of the format that its readers must know.
    fn needs(&self) -> u32 {
        USUAL
    }

    fn to_item(&self) -> Result<Item, StoreError> {
        let mut item: Item = serde_dynamo::to_item(self)?;
        item.extend(self.key());
        item.extend(self.index());
        item.insert("format".to_owned(), format(self.needs()));
        Ok(item)
    }

    /// Parses a stored item, if its format is one that this code knows.
    fn of_item(item: Item) -> Result<Self, StoreError> {
        parse(item)
    }
}

impl Stored for Record {
    fn key(&self) -> Item {
        record_key(&self.reference)
    }

    fn needs(&self) -> u32 {
        if self.hibernation.is_some() { HIBERNATION } else { USUAL }
    }

    fn index(&self) -> Item {
        self.due_at.map_or_else(Item::new, |due_at| {
            Item::from([
                ("due".to_owned(), text(DUE_INDEX)),
                ("due_ms".to_owned(), milliseconds(due_at)),
            ])
        })
    }
}

#[must_use]
pub fn record_key(reference: &ResourceRef) -> Item {
    Item::from([
        ("account".to_owned(), text(reference.account.as_str())),
        ("resource".to_owned(), text(&reference.id.to_string())),
    ])
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
    pub generation: Generation,
    #[serde(deserialize_with = "line")]
    pub author: String,
    /// When it was applied; `None` if nothing has been applied yet.
    pub applied_at: Option<Timestamp>,
}

impl Stored for Head {
    fn key(&self) -> Item {
        named(HEAD, HEAD)
    }
}

/// A configuration that came into force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    pub generation: Generation,
    #[serde(deserialize_with = "line")]
    pub author: String,
    pub applied_at: Timestamp,
    /// For a rollback: the generation whose content it repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Generation>,
}

/// Entries sort by generation.
impl Stored for LogEntry {
    fn key(&self) -> Item {
        named(LOG, &generation_key(self.generation))
    }
}

impl Stored for Override {
    fn key(&self) -> Item {
        named(OVERRIDE, &self.target.to_string())
    }
}

impl Stored for Pause {
    fn key(&self) -> Item {
        named(OVERRIDE, &format!("{PAUSED}{}", self.scope))
    }

    fn needs(&self) -> u32 {
        PAUSE
    }
}

/// What the names of pauses begin with. No target of an override has such a name.
const PAUSED: &str = "pause of ";

/// Reports whether an item of the partition of overrides is a pause.
pub(crate) fn is_pause(item: &Item) -> bool {
    name(item).starts_with(PAUSED)
}

/// The part of a generation that is stored under one name. The body is separate from the keys,
/// whose names it may share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part<N, B> {
    #[serde(skip)]
    pub generation: Generation,
    /// The name within its table.
    pub name: N,
    pub body: B,
}

pub type AccountPart = Part<AccountName, Account>;

/// A schedule of one generation, or its settings.
pub type ConfigurationPart = Part<String, ConfigurationItem>;

impl<N, B> Stored for Part<N, B>
where
    N: fmt::Display + Serialize + DeserializeOwned,
    B: Serialize + DeserializeOwned,
{
    fn key(&self) -> Item {
        named(&generation_key(self.generation), &self.name.to_string())
    }
}

/// A schedule, or the settings, of one generation.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConfigurationItem {
    /// The settings of the whole service.
    Settings(Box<Settings>),
    Schedule {
        schedule: ScheduleName,
        rule: Box<Rule>,
    },
}

impl ConfigurationItem {
    #[must_use]
    pub fn in_generation(self, generation: Generation) -> ConfigurationPart {
        let name = match &self {
            Self::Settings(_) => "settings".to_owned(),
            Self::Schedule { schedule, .. } => format!("schedule#{schedule}"),
        };
        Part { generation, name, body: self }
    }
}

impl Stored for AccountState {
    fn key(&self) -> Item {
        account_state_key(&self.account)
    }
}

#[must_use]
pub fn account_state_key(account: &AccountName) -> Item {
    named(STATE, account.as_str())
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountPrices {
    pub account: AccountName,
    pub list: PriceList,
}

impl Stored for AccountPrices {
    fn key(&self) -> Item {
        named(PRICES, self.account.as_str())
    }
}

/// What is reported of the edges of schedules. Each is a partition of the table `accounts`, because
/// no function writes the table `schedules`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EdgeReport {
    /// What became of an edge.
    Digest,
    /// That an edge will stop something.
    Notice,
}

impl EdgeReport {
    pub(crate) const fn partition(self) -> &'static str {
        match self {
            Self::Digest => "digest",
            Self::Notice => "notice",
        }
    }
}

/// Which edge of a schedule was reported last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedEdge {
    #[serde(rename = "generation_key")]
    pub report: EdgeReport,
    pub schedule: ScheduleName,
    /// When its desired state changes.
    pub edge: Timestamp,
    /// How often what was reported of this edge has changed since.
    #[serde(default)]
    pub turn: u32,
    /// Who reported it: one invocation, at one instant.
    pub by: String,
}

impl Stored for ReportedEdge {
    fn key(&self) -> Item {
        reported_edge_key(self.report, &self.schedule)
    }

    fn index(&self) -> Item {
        Item::from([("edge_ms".to_owned(), milliseconds(self.edge))])
    }
}

/// The key of the edge that was reported last for a schedule.
#[must_use]
pub fn reported_edge_key(report: EdgeReport, schedule: &ScheduleName) -> Item {
    named(report.partition(), schedule.as_str())
}

/// An event that a target has not accepted yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingEvent {
    pub target: TargetName,
    /// The same for all targets, and for all tries.
    pub id: String,
    pub at: Timestamp,
    pub event_type: EventType,
    /// What happened, as a JSON object.
    pub detail: String,
    pub tries: u32,
    pub retry_at: Timestamp,
}

impl WaitingEvent {
    /// Its name within its partition, which sorts by target and instant.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}#{:020}#{}", self.target, self.at.as_millisecond(), self.id)
    }
}

impl Stored for WaitingEvent {
    fn key(&self) -> Item {
        named(OUTBOX, &self.name())
    }
}

/// A target that did not accept the latest event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailingTarget {
    pub target: TargetName,
    pub since: Timestamp,
    /// What went wrong with the latest try.
    #[serde(deserialize_with = "line")]
    pub error: String,
    /// Whether it has answered that it is gone for good, so that it gets nothing more.
    pub is_gone: bool,
}

impl Stored for FailingTarget {
    fn key(&self) -> Item {
        target_key(&self.target)
    }
}

pub(crate) fn target_key(target: &TargetName) -> Item {
    named(TARGET, target.as_str())
}

/// Its key makes writing it idempotent.
impl Stored for HistoryEntry {
    fn key(&self) -> Item {
        Item::from([
            ("reference".to_owned(), text(&self.reference.to_string())),
            ("transition".to_owned(), text(&self.transition_key())),
        ])
    }

    fn index(&self) -> Item {
        Item::from([("expires_at".to_owned(), expires_at(self.finished_at))])
    }
}

/// The item of an entry in the activity log. Its key is its own, and entries sort by instant.
pub fn activity_item(activity: &Activity) -> Result<Item, StoreError> {
    let mut item: Item = serde_dynamo::to_item(activity)?;
    let number = fastrand::u64(..);
    let key = format!("{}#{number:016x}", activity_key(activity.at));
    item.insert("reference".to_owned(), text(ACTIVITY));
    item.insert("transition".to_owned(), text(&key));
    item.insert("expires_at".to_owned(), expires_at(activity.at));
    item.insert("format".to_owned(), format(USUAL));
    Ok(item)
}

/// Parses a stored entry of the activity log.
pub fn activity_of(item: Item) -> Result<Activity, StoreError> {
    parse(item)
}

/// The first key that entries of an instant can have.
#[must_use]
pub fn activity_key(at: Timestamp) -> String {
    format!("{:020}", at.as_millisecond())
}

/// Reports whether an item of the table `history` is an entry of the activity log.
#[must_use]
pub fn is_activity(item: &Item) -> bool {
    item.get("reference") == Some(&text(ACTIVITY))
}

/// When the history item of a transition that ended at an instant expires: seconds since 1970.
#[must_use]
pub fn expires_at(finished_at: Timestamp) -> AttributeValue {
    let seconds = finished_at.as_second() + HISTORY_DAYS * 24 * 60 * 60;
    AttributeValue::N(seconds.to_string())
}

/// The version that an account's state is written in.
pub(crate) fn usual_format() -> AttributeValue {
    format(USUAL)
}

/// A version of the format, as every item carries it.
fn format(version: u32) -> AttributeValue {
    AttributeValue::N(version.to_string())
}

#[must_use]
pub fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.to_owned())
}

/// The name in the key of an item of the tables `schedules` and `accounts`; empty if it has none.
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

/// A key of the tables `schedules` and `accounts`.
fn named(partition: &str, name: &str) -> Item {
    Item::from([("generation_key".to_owned(), text(partition)), ("name".to_owned(), text(name))])
}

/// Parses an item, or what was read of it, if its format is one that this code knows.
pub(crate) fn parse<T: DeserializeOwned>(item: Item) -> Result<T, StoreError> {
    check_format(&item)?;
    Ok(serde_dynamo::from_item(item)?)
}

/// Rejects an item of a format that this code does not know.
pub fn check_format(item: &Item) -> Result<(), StoreError> {
    let format = item.get("format").and_then(|format| format.as_n().ok()?.parse().ok());
    match format {
        Some(1..=FORMAT) => Ok(()),
        other => Err(StoreError::Format(other)),
    }
}
