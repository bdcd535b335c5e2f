//! What the tokens of new and changed accounts show, before anything is applied.

use std::collections::BTreeMap;

use domain::{
    AccountName, ResourceKind,
    configuration::{Account, Configuration},
    invocation::Question,
    record::Record,
};
use lifecycle::report::Trial;
use report::count;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    connection::{Session, readable},
    listing::not_listed,
};

/// What listing one account showed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct AccountTrial {
    pub account: AccountName,
    /// Why it could not be listed; null if it could.
    pub error: Option<String>,
    /// Number of resources by region or location and kind, and whether the account's datacenters
    /// include them.
    pub places: Vec<Place>,
    /// What could not be read, and why.
    pub unread: Vec<String>,
    /// The resources that would be managed, as first seen.
    #[serde(skip)]
    pub found: Vec<Record>,
}

/// Number of resources of a kind in one region or location.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Place {
    /// The region or location.
    pub region: String,
    /// The kind of resources.
    pub kind: ResourceKind,
    /// How many there are.
    pub resources: usize,
    /// Whether the account's datacenters include the region or location.
    pub chosen: bool,
}

/// Tries the accounts that are new or changed in a configuration. Also returns those that can only
/// be tried once they are in force, because their token or key has not been sent to its address or
/// host before.
pub(crate) async fn try_accounts(
    session: &Session,
    old: &Configuration,
    new: &Configuration,
) -> anyhow::Result<(Vec<AccountTrial>, Vec<AccountName>)> {
    let accounts = new.accounts.iter();
    let changed = accounts.filter(|(name, account)| old.accounts.get(*name) != Some(account));
    let (tried, later): (Vec<_>, Vec<_>) =
        changed.partition(|(name, account)| account.may_be_asked(old.accounts.get(*name)));
    let later = later.into_iter().map(|(name, _)| name.clone()).collect();
    if tried.is_empty() {
        return Ok((Vec::new(), later));
    }
    let tried = tried.into_iter().map(|(name, account)| (name.clone(), account.clone()));
    let report = session.functions()?.ask(Question::Try(tried.collect())).await?;
    Ok((summed(report.trials, new), later))
}

/// Tries, by an inventory, the accounts that could not be tried before they were in force.
pub(crate) async fn try_applied(
    session: &Session,
    later: &[AccountName],
    applied: &Configuration,
) -> Vec<AccountTrial> {
    if later.is_empty() {
        return Vec::new();
    }
    let failed = |error: anyhow::Error| {
        let error = format!("{error:#}");
        let trial = |account: &AccountName| Trial {
            account: account.clone(),
            error: Some(error.clone()),
            found: Vec::new(),
            unread: Vec::new(),
        };
        later.iter().map(trial).collect()
    };
    summed(inventory(session, later).await.unwrap_or_else(failed), applied)
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
    let place = |((region, kind, chosen), resources)| Place { region, kind, resources, chosen };
    AccountTrial {
        account: trial.account,
        error: trial.error,
        places: counts.into_iter().map(place).collect(),
        unread: trial.unread.into_iter().chain(trial.found.iter().filter_map(unknown)).collect(),
        found: trial.found.into_iter().filter(chosen).collect(),
    }
}

/// Says that the state of a machine over SSH is unknown.
fn unknown(record: &Record) -> Option<String> {
    let reason = record.observed.as_ref()?.busy.as_ref()?;
    let reference = &record.reference;
    (record.kind() == ResourceKind::Machine).then(|| {
        format!(
            "the state of {reference} is unknown ({reason}): until it is known, the machine is \
             neither stopped nor started"
        )
    })
}

/// What an account is tried with: its token, its `read_token` alone, or its key.
pub(crate) fn login(account: &Account) -> &'static str {
    match account {
        Account::Cloud(cloud) if cloud.keeps_token_from_poll_status() => "read_token",
        Account::Cloud(_) => "token",
        Account::Ssh(_) => "key",
    }
}

impl AccountTrial {
    /// `The token of do-main works: 3 droplets in fra1, 2 servers in nbg1 (not chosen)`; empty if
    /// the account could not be listed.
    pub(crate) fn found(&self, account: &Account) -> String {
        if self.error.is_some() {
            return String::new();
        }
        let place = |Place { region, kind, resources, chosen }: &Place| {
            let number = count(*resources, kind.as_str());
            let chosen = if *chosen { "" } else { " (not chosen)" };
            // Machines over SSH have no region.
            if region.is_empty() { number } else { format!("{number} in {region}{chosen}") }
        };
        let places: Vec<_> = self.places.iter().map(place).collect();
        let found = match places.as_slice() {
            [] => "nothing that Offhours could stop".to_owned(),
            places => places.join(", "),
        };
        let (name, login) = (&self.account, login(account));
        let untried = match login {
            "read_token" => "; only stop and start can try its token",
            _ => "",
        };
        format!("The {login} of {name} works: {found}{untried}\n")
    }

    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        let name = &self.account;
        let error = self.error.iter();
        let failed = error.map(move |error| format!("account {name} could not be listed: {error}"));
        failed.chain(self.unread.iter().map(move |unread| format!("account {name}: {unread}")))
    }
}
