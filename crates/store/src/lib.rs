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

use std::ops::Deref;

use aws_config::SdkConfig;
use aws_sdk_dynamodb::Client;
use domain::{
    configuration::{Floor, Generation},
    record::Record,
};

pub use backup::{StoredItem, Table};
pub use condition::{TableCondition, TableProblem};
pub use configure::{ApplyError, Applying};
pub use domain::{
    account::{AccountState, ListCost},
    decision::InForce,
};
pub use item::{
    AccountPrices, EdgeReport, FailingTarget, Head, LogEntry, ReportedEdge, WaitingEvent,
};
pub use overrides::{OVERRIDES_AT_ONCE, OverrideChange, OverrideError};
pub use pages::{ActivityPage, ActivityPages, HistoryPage, HistoryPages, HistoryQuery};
pub use read::{AccountStates, HeadAndOverrides, Reader};
pub use records::{Coverage, ReadItems, Unreadable};

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
