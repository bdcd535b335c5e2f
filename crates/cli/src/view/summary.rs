//! What a run of the service came to.

use std::collections::BTreeMap;

use domain::{AccountName, history::HistoryEntry};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{HistoryQuery, Store};

use super::bill::Charge;

/// What a run of the service came to.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// The stops and starts that ended in it, as `offhours history` shows them.
    pub history: Vec<HistoryEntry>,
    /// What the simulated clouds charge, by account; omitted if there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bill: BTreeMap<AccountName, Charge>,
    /// The invocations of each function, by its name.
    pub invocations: BTreeMap<String, Invocations>,
}

/// The invocations of one function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Invocations {
    /// Number of invocations.
    pub count: u64,
    /// Their total duration, in seconds. A simulation's clock stands still while a function works;
    /// there, it is how long the functions waited.
    pub seconds: u64,
}

/// Reads the stops and starts that ended since an instant, the first to end first.
///
/// # Errors
/// That the store could not be read.
pub async fn finished_since(store: &Store, since: Timestamp) -> anyhow::Result<Vec<HistoryEntry>> {
    let query = HistoryQuery { since, until: Timestamp::MAX, schedule: None };
    let mut pages = store.history_between(query);
    let mut history = Vec::new();
    while let Some(page) = pages.next().await? {
        history.extend(page.entries);
    }
    history.sort_by_key(|entry| entry.finished_at);
    Ok(history)
}
