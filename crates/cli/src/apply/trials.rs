//! What the tokens of new and changed accounts show, before anything is applied.

use std::collections::BTreeMap;

use domain::{
    AccountName, ResourceKind, ResourceRef,
    configuration::{Account, Configuration},
    invocation::Question,
    record::Record,
};
use lifecycle::report::Trial;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    connection::{Session, readable},
    listing::not_listed,
};

/// What listing one account showed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AccountTrial {
    /// The account.
    pub account: AccountName,
    /// What it was tried with.
    #[serde(skip)]
    pub login: Login,
    /// Why it could not be listed; null if it could.
    pub error: Option<String>,
    /// Whether it is tried only once it is applied, because its token or key has not been sent to
    /// its address or host before.
    pub later: bool,
    /// Number of resources by region or location and kind, and whether the account's datacenters
    /// include them.
    pub places: Vec<Place>,
    /// Machines over SSH whose state is unknown, and why.
    pub unknown: Vec<UnknownState>,
    /// Kinds and resources that could not be read, and why.
    pub unread: Vec<String>,
    /// The resources that would be managed, as first seen.
    #[serde(skip)]
    pub found: Vec<Record>,
}

/// What an account is tried with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Login {
    /// Its token, or both of its tokens.
    Token,
    /// Its `read_token` alone: poll-status cannot read the other one.
    ReadToken,
    /// Its key.
    Key,
}

impl Login {
    fn of(account: &Account) -> Self {
        match account {
            Account::Cloud(cloud) if cloud.keeps_token_from_poll_status() => Self::ReadToken,
            Account::Cloud(_) => Self::Token,
            Account::Ssh(_) => Self::Key,
        }
    }
}

/// A machine whose state is unknown: it is neither stopped nor started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnknownState {
    /// The machine.
    pub resource: ResourceRef,
    /// Why its state is unknown.
    pub reason: String,
}

/// Number of resources of a kind in one region or location.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Place {
    /// The region or location.
    pub region: String,
    /// The kind of resource.
    pub kind: String,
    /// Number of resources.
    pub resources: usize,
    /// Whether the account's datacenters include the region or location.
    pub chosen: bool,
}

/// Tries the accounts that are new or changed in a configuration.
pub async fn try_accounts(
    session: &Session,
    old: &Configuration,
    new: &Configuration,
) -> anyhow::Result<Vec<AccountTrial>> {
    let accounts = new
        .accounts
        .iter()
        .filter(|(name, account)| old.accounts.get(*name) != Some(account))
        .map(|(name, account)| (name.clone(), account.clone()));
    let (tried, later): (BTreeMap<_, _>, BTreeMap<_, _>) =
        accounts.partition(|(name, account)| account.may_be_asked(old.accounts.get(name)));
    let mut trials = Vec::new();
    if !tried.is_empty() {
        let report = session.functions()?.ask(Question::Try(tried)).await?;
        trials = summed(report.trials, new);
    }
    trials.extend(later.into_iter().map(|(account, of)| AccountTrial {
        unread: Vec::new(),
        account,
        login: Login::of(&of),
        error: None,
        later: true,
        places: Vec::new(),
        unknown: Vec::new(),
        found: Vec::new(),
    }));
    Ok(trials)
}

/// Tries, by an inventory, the accounts that could not be tried before they were in force.
pub async fn try_applied(session: &Session, trials: &mut [AccountTrial], applied: &Configuration) {
    let later = || trials.iter().filter(|trial| trial.later);
    let names: Vec<_> = later().map(|trial| trial.account.clone()).collect();
    if names.is_empty() {
        return;
    }
    let seen = match inventory(session, &names).await {
        Ok(seen) => summed(seen, applied),
        Err(error) => {
            let error = format!("{error:#}");
            for trial in trials.iter_mut().filter(|trial| trial.later) {
                trial.error = Some(error.clone());
            }
            return;
        }
    };
    for trial in seen {
        if let Some(place) = trials.iter_mut().find(|one| one.account == trial.account) {
            *place = AccountTrial { later: true, ..trial };
        }
    }
}

async fn inventory(session: &Session, accounts: &[AccountName]) -> anyhow::Result<Vec<Trial>> {
    let question = Question::Inventory(accounts.to_vec());
    let report = session.functions()?.ask(question).await?;
    let failures = not_listed(&report);
    let mut trials = Vec::new();
    for account in accounts {
        let failure = failures.iter().find(|failure| failure.account == *account);
        trials.push(Trial {
            account: account.clone(),
            error: failure.map(|failure| failure.error.clone()),
            found: readable(session.store.records_of(account).await?),
            unread: Vec::new(),
        });
    }
    Ok(trials)
}

fn summed(trials: Vec<Trial>, configuration: &Configuration) -> Vec<AccountTrial> {
    let trials = trials.into_iter().filter_map(|trial| {
        let account = configuration.accounts.get(&trial.account)?;
        Some(sum_up(trial, account))
    });
    trials.collect()
}

fn sum_up(trial: Trial, account: &Account) -> AccountTrial {
    let chosen = |record: &Record| {
        let cloud = account.cloud();
        cloud.is_none_or(|cloud| cloud.covers(&record.region))
    };
    let mut counts = BTreeMap::new();
    for record in trial.found.iter().filter(|r| r.unsupported.is_none()) {
        let place = (record.region.clone(), record.kind(), chosen(record));
        *counts.entry(place).or_default() += 1;
    }
    let places = counts.into_iter().map(|((region, kind, chosen), resources)| Place {
        region,
        kind: kind.to_string(),
        resources,
        chosen,
    });
    AccountTrial {
        account: trial.account,
        login: Login::of(account),
        error: trial.error,
        later: false,
        places: places.collect(),
        unknown: trial.found.iter().filter_map(unknown_state).collect(),
        unread: trial.unread,
        found: trial.found.into_iter().filter(chosen).collect(),
    }
}

fn unknown_state(record: &Record) -> Option<UnknownState> {
    let busy = record.observed.as_ref()?.busy.as_ref()?;
    (record.kind() == ResourceKind::Machine)
        .then(|| UnknownState { resource: record.reference.clone(), reason: busy.clone() })
}
