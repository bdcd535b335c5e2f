//! What the tokens of new and changed accounts show, before anything is applied.

use std::collections::BTreeMap;

use domain::{
    AccountName,
    configuration::{Account, Configuration},
    invocation::Question,
    record::Record,
};
use lifecycle::report::Trial;
use schemars::JsonSchema;
use serde::Serialize;

use crate::connection::Session;

/// What one account's list showed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AccountTrial {
    /// Which account.
    pub account: AccountName,
    /// Why it could not be listed.
    pub error: Option<String>,
    /// Resources by region or location and kind, and whether the account's datacenters choose them.
    pub places: Vec<Place>,
    /// What would be looked after, as first seen.
    #[serde(skip)]
    pub found: Vec<Record>,
}

/// How many resources of a kind are in one region or location.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Place {
    /// The region or location.
    pub region: String,
    /// The kind of resource.
    pub kind: String,
    /// How many.
    pub resources: usize,
    /// Whether the account's datacenters choose it.
    pub chosen: bool,
}

/// Tries the accounts that are new in a configuration, or other than before.
pub async fn try_accounts(
    session: &Session,
    old: &Configuration,
    new: &Configuration,
) -> anyhow::Result<Vec<AccountTrial>> {
    let accounts: BTreeMap<_, _> = new
        .accounts
        .iter()
        .filter(|(name, account)| old.accounts.get(*name) != Some(account))
        .map(|(name, account)| (name.clone(), account.clone()))
        .collect();
    if accounts.is_empty() {
        return Ok(Vec::new());
    }
    let functions = session.functions()?;
    let (elsewhere, tried): (BTreeMap<_, _>, BTreeMap<_, _>) = accounts
        .clone()
        .into_iter()
        .partition(|(_, account)| functions.lambda().is_some() && account.url.is_some());
    let report = functions.ask(Question::Try(tried)).await?;
    let untried = elsewhere.into_keys().map(|account| Trial {
        account,
        error: Some("it has an address of its own: its first inventory tries its token".to_owned()),
        found: Vec::new(),
    });
    let trials = report.trials.into_iter().chain(untried);
    let summed = trials.filter_map(|trial| {
        let account = accounts.get(&trial.account)?;
        Some(sum_up(trial, account))
    });
    Ok(summed.collect())
}

fn sum_up(trial: Trial, account: &Account) -> AccountTrial {
    let chosen = |record: &Record| {
        let mut datacenters = account.datacenters.iter();
        account.datacenters.is_empty() || datacenters.any(|d| d.location() == record.region)
    };
    let mut counts = BTreeMap::new();
    for record in trial.found.iter().filter(|r| r.unsupported.is_none()) {
        let place = (record.region.clone(), record.kind(), chosen(record));
        *counts.entry(place).or_default() += 1;
    }
    let places = counts
        .into_iter()
        .map(|((region, kind, chosen), resources)| Place {
            region,
            kind: kind.to_string(),
            resources,
            chosen,
        });
    AccountTrial {
        account: trial.account,
        error: trial.error,
        places: places.collect(),
        found: trial.found.into_iter().filter(chosen).collect(),
    }
}
