//! Offhours' persisted state, in DynamoDB; every write names the revision it replaces.
//!
//! Four tables: `schedules` (the head, the overrides, and each generation's schedules), `accounts`
//! (each generation's accounts, what was learned about them, which edges were reported, and events
//! that wait to be sent),
//! `resources` (one record each) and `history`. [`Reader`] cannot write: the function that runs
//! most often gets only that.

mod backup;
mod clock;
mod condition;
mod configure;
mod digests;
mod forgetting;
pub mod item;
mod outbox;
mod overrides;
mod pages;
mod read;
mod records;
mod renaming;
mod tables;
mod write;

use std::{collections::BTreeMap, ops::Deref};

use aws_config::SdkConfig;
use aws_sdk_dynamodb::Client;
use domain::{
    AccountName,
    configuration::{Floor, Generation},
    pacing::{Counted, ListRequests, Others, RateLimit, Spent},
    reason::Reason,
    record::Record,
    stored::is_default,
};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

pub use backup::{StoredItem, Table};
pub use condition::{TableCondition, TableProblem};
pub use configure::{ApplyError, Applying};
pub use item::{AccountPrices, FailingTarget, Head, LogEntry, ReportedEdge, WaitingEvent};
pub use overrides::{OVERRIDES_AT_ONCE, OverrideChange, OverrideError};
pub use pages::{ActivityPage, ActivityPages, HistoryPage, HistoryPages, HistoryQuery};
pub use read::{AccountStates, HeadAndOverrides, InForce, Reader};
pub use records::{ReadItems, Unreadable};

/// What went wrong with the store; variants differ in what the caller does next.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another writer was first, or is writing at this moment: read again and decide again.
    #[error("another writer changed the record meanwhile")]
    Stale {
        /// The record stored now; `None` if there is none, it cannot be read, or it was not looked
        /// up. While another writer's transaction is in flight, it may still be the one to replace.
        current: Option<Box<Record>>,
    },
    /// DynamoDB did not respond, or refused: nothing is known, retry at the next tick.
    #[error("failed to {0}")]
    Dynamo(&'static str, #[source] Box<aws_sdk_dynamodb::Error>),
    /// DynamoDB responds but does nothing: retry at the next tick.
    #[error("DynamoDB is throttled and keeps leaving {left} items of a request undone")]
    Throttled {
        /// How many items were not read or not written.
        left: usize,
    },
    /// An item has a format that this code does not know, and is left alone.
    #[error(
        "an item has the format {}, newer than this program knows; update it",
        .0.map_or_else(|| "(none)".to_owned(), |format| format.to_string())
    )]
    Format(Option<u32>),
    /// An item cannot be read.
    #[error("an item does not have the form that its format promises")]
    Malformed(#[from] serde_dynamo::Error),
    /// The configuration that is asked for is not there.
    #[error("generation {0} is not stored")]
    NoGeneration(Generation),
    #[error("cannot read `{item}`, and nothing is done on half a configuration")]
    Configuration {
        /// Its name within its partition.
        item: String,
        /// Why it cannot be read.
        #[source]
        source: Box<StoreError>,
    },
}

impl StoreError {
    /// Reports whether an item exists that this program cannot read and has to leave alone.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        matches!(self, Self::Format(_) | Self::Malformed(_))
    }

    /// Reports whether a newer program wrote what cannot be read.
    #[must_use]
    pub fn is_newer(&self) -> bool {
        let is_within = matches!(self, Self::Configuration { source, .. } if source.is_newer());
        is_within || matches!(self, Self::Format(_))
    }

    /// Reports whether the configuration in force cannot be read, because a newer program wrote it
    /// or because it is not stored: an apply replaces it without a comparison.
    #[must_use]
    pub fn hides_configuration(&self) -> bool {
        self.is_newer() || matches!(self, Self::NoGeneration(_))
    }

    /// Reports whether the table does not exist: nothing was set up there.
    #[must_use]
    pub fn is_missing_table(&self) -> bool {
        matches!(self, Self::Dynamo(_, source)
            if matches!(**source, aws_sdk_dynamodb::Error::ResourceNotFoundException(_)))
    }
}

/// Turns an SDK error into ours, with what was tried.
pub(crate) fn failed<E>(what: &'static str) -> impl FnOnce(E) -> StoreError
where
    aws_sdk_dynamodb::Error: From<E>,
{
    move |error| StoreError::Dynamo(what, Box::new(error.into()))
}

/// The names of the four tables.
#[derive(Debug, Clone)]
pub struct Tables {
    /// The head, the overrides, schedules by generation.
    pub schedules: String,
    /// Accounts by generation, their states, and which edge of each schedule was reported.
    pub accounts: String,
    pub resources: String,
    /// Finished transitions, and the activity log.
    pub history: String,
}

impl Tables {
    /// The four names with a prefix.
    #[must_use]
    pub fn prefixed(prefix: &str) -> Self {
        let name = |table| format!("{prefix}{table}");
        Self {
            schedules: name("schedules"),
            accounts: name("accounts"),
            resources: name("resources"),
            history: name("history"),
        }
    }
}

/// Reads and writes.
#[derive(Debug, Clone)]
pub struct Store {
    reader: Reader,
    digests: digests::Memory,
}

impl Store {
    #[must_use]
    pub fn new(client: Client, tables: Tables) -> Self {
        Self { reader: Reader::new(client, tables), digests: digests::Memory::default() }
    }

    /// Creates a store on these tables, at the address and with the credentials of `config`.
    #[must_use]
    pub fn connect(config: &SdkConfig, tables: Tables) -> Self {
        Self::new(Client::new(config), tables)
    }
}

impl Store {
    /// Reads every configuration that is in force under these guard rails.
    #[must_use]
    pub fn under(self, floor: Floor) -> Self {
        Self { reader: self.reader.under(floor), ..self }
    }
}

impl Deref for Store {
    type Target = Reader;

    fn deref(&self) -> &Reader {
        &self.reader
    }
}

/// What was learned about an account, for pacing and for people. A hint: the latest writer wins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountState {
    pub account: AccountName,
    /// When its resources were last listed completely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed_at: Option<Timestamp>,
    /// When listing was last tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried_at: Option<Timestamp>,
    /// Why the last listing failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Reason>,
    /// Whether it failed because of the account's token: refused, or not readable.
    #[serde(default, skip_serializing_if = "is_default")]
    pub token_fails: bool,
    /// Since when its lists have shown no tags, while its records have some. They are not believed
    /// at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tagless_since: Option<Timestamp>,
    /// What listing it last took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<ListCost>,
    /// The rate limit that the provider last reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateLimit>,
    /// When its prices are read next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices_due_at: Option<Timestamp>,
    /// What stop, start and poll-status have sent of its requests lately, or are about to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spent: Vec<Spent>,
    /// How often that was written: each write names the revision it replaces.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spent_revision: u64,
}

/// What listing an account took, which shows how large it is and how slow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListCost {
    /// How many requests each kind's list takes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: ListRequests,
    /// How many databases the account has: before a Droplet is deleted, each of them is asked whom it
    /// lets in.
    #[serde(default)]
    pub databases: u32,
    /// How long the last inventory took, even if it failed.
    pub took: SignedDuration,
}

impl AccountState {
    /// The state of an account that was never listed.
    #[must_use]
    pub fn unknown(account: AccountName) -> Self {
        Self {
            account,
            listed_at: None,
            tried_at: None,
            error: None,
            token_fails: false,
            tagless_since: None,
            cost: None,
            rate: None,
            prices_due_at: None,
            spent: Vec::new(),
            spent_revision: 0,
        }
    }

    /// What others take of the account's allowance, of which `remaining` is left now: the decrease
    /// since the rate was recorded, without what is known to be ours and without
    /// `unrecorded_requests`. If too little or too much time has passed since, the latest
    /// measurement.
    #[must_use]
    pub fn others(
        &self,
        remaining: u64,
        now: Timestamp,
        unrecorded_requests: u64,
    ) -> Option<Others> {
        let before = self.rate?;
        // poll-status may not send all that it has planned.
        let sent = self.spent.iter().filter(|spent| !spent.observes || spent.ended <= now);
        let ours: u64 = sent.map(|spent| spent.since(before.at)).sum();
        let ours = ours + unrecorded_requests;
        let measured = before.others_until(remaining, now, ours);
        measured.or(before.others)
    }

    /// How many of our requests the provider still counts in its minute.
    #[must_use]
    pub fn counted(&self, now: Timestamp) -> Counted {
        Counted::of(&self.spent, now)
    }

    /// When the provider counts fewer of them; `None` if it counts none.
    #[must_use]
    pub fn counts_fewer_at(&self, now: Timestamp) -> Option<Timestamp> {
        let counted = self.spent.iter().filter(|spent| spent.counted(now) > 0);
        counted.map(Spent::uncounted_at).min()
    }

    /// How many requests each kind's list last took.
    #[must_use]
    pub fn lists(&self) -> Option<&ListRequests> {
        self.cost.as_ref().map(|cost| &cost.requests)
    }
}
