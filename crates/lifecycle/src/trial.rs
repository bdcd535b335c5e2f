//! Trying an account before it is applied: one list call with its token, and nothing is kept.

use std::collections::BTreeMap;

use domain::{
    AccountName, ResourceRef,
    configuration::{Account, Configuration, Generation, Settings},
    record::Record,
};
use environment::in_words;
use serde::{Deserialize, Serialize};

use crate::{Context, inventory::kinds};

/// What one list call with an account's token showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Which account.
    pub account: AccountName,
    /// Why it could not be listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// All that was listed, in every location, as first seen.
    #[serde(default)]
    pub found: Vec<Record>,
}

/// Lists each account once, its datacenters left aside: who chooses some wants to see the others.
pub async fn trials(context: Context<'_>, accounts: &BTreeMap<AccountName, Account>) -> Vec<Trial> {
    let everywhere = |account: &Account| Account {
        datacenters: Vec::new(),
        ..account.clone()
    };
    let configuration = Configuration {
        generation: Generation::default(),
        settings: Settings::default(),
        accounts: accounts
            .iter()
            .map(|(name, account)| (name.clone(), everywhere(account)))
            .collect(),
        schedules: BTreeMap::new(),
    };
    let mut trials = Vec::new();
    for name in accounts.keys() {
        let (found, error) = match list(context, name, &configuration).await {
            Ok(found) => (found, None),
            Err(words) => (Vec::new(), Some(words)),
        };
        trials.push(Trial {
            account: name.clone(),
            error,
            found,
        });
    }
    trials
}

async fn list(
    context: Context<'_>,
    account: &AccountName,
    configuration: &Configuration,
) -> Result<Vec<Record>, String> {
    let client = context.providers.client(account, configuration).await;
    let client = client.map_err(|error| in_words(&error))?;
    let listed = client.list(kinds(account, configuration)).await;
    let resources = listed.map_err(|error| in_words(&error))?;
    let first_seen = |resource: &domain::resource::Resource| {
        let reference = ResourceRef {
            account: account.clone(),
            id: resource.id.clone(),
        };
        Record::first_seen(reference, resource)
    };
    Ok(resources.iter().map(first_seen).collect())
}
