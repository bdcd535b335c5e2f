//! Trying an account before it is applied: one list call with each of its tokens, and nothing is
//! stored.

use std::collections::BTreeMap;

use domain::{
    AccountName, ResourceRef,
    configuration::{Account, CloudAccount, Configuration, Generation, Schedules, Settings},
    record::Record,
    resource::Look,
};
use environment::in_words;

use crate::{
    Access, Context,
    budget::Budget,
    failure::ObservationError,
    observe::{inventory::kinds, look, poll::observed},
    report::Trial,
};

/// Lists each account, in all datacenters: choosing some requires seeing the others.
pub async fn trials(context: Context<'_>, accounts: &BTreeMap<AccountName, Account>) -> Vec<Trial> {
    let budget = Budget::begin(context.clock);
    let everywhere = |account: &Account| match account {
        Account::Cloud(cloud) => Account::Cloud(CloudAccount {
            datacenters: Vec::new(),
            ..cloud.clone()
        }),
        Account::Ssh(_) => account.clone(),
    };
    let configuration = Configuration {
        generation: Generation::default(),
        settings: Settings::default(),
        accounts: accounts
            .iter()
            .map(|(name, account)| (name.clone(), everywhere(account)))
            .collect(),
        schedules: Schedules::default(),
    };
    let mut trials = Vec::new();
    for name in accounts.keys() {
        let (found, error) = match list_with_all((context, budget), name, &configuration).await {
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

/// Lists an account with each of its tokens or keys, all of which have to be accepted. Returns what
/// the one that only reads shows.
async fn list_with_all(
    asking: (Context<'_>, Budget<'_>),
    name: &AccountName,
    configuration: &Configuration,
) -> Result<Vec<Record>, String> {
    let (to_change, to_read) = match configuration.accounts.get(name) {
        Some(Account::Cloud(cloud)) if cloud.read_token.is_some() => ("token", "read_token"),
        Some(Account::Ssh(ssh)) if ssh.login.read_key.is_some() => ("key", "read_key"),
        Some(Account::Cloud(_) | Account::Ssh(_)) | None => {
            return list(asking, Access::Change, name, configuration).await;
        }
    };
    let mut found = Vec::new();
    let mut failures = Vec::new();
    for (access, key) in [(Access::Change, to_change), (Access::Read, to_read)] {
        match list(asking, access, name, configuration).await {
            Ok(records) => found = records,
            Err(words) => failures.push(format!("with its {key}: {words}")),
        }
    }
    if failures.is_empty() {
        Ok(found)
    } else {
        Err(failures.join("; "))
    }
}

async fn list(
    (context, budget): (Context<'_>, Budget<'_>),
    access: Access,
    account: &AccountName,
    configuration: &Configuration,
) -> Result<Vec<Record>, String> {
    let client = context.providers.client_to(access, account, configuration);
    let client = client.await.map_err(|error| in_words(&error))?;
    let listed = look::list(&client, budget, kinds(account, configuration)).await;
    let listed = listed.map_err(|error| {
        if ObservationError::from(&error).token_refused {
            // The next trial reads the token again.
            context.providers.forget_to(access, account);
        }
        in_words(&error)
    })?;
    let first_seen = |look: &Look| {
        let reference = ResourceRef {
            account: account.clone(),
            id: look.resource.id.clone(),
        };
        let mut record = Record::first_seen(reference, &look.resource);
        record.observed = Some(observed(&record, look));
        record
    };
    Ok(listed.looks.iter().map(first_seen).collect())
}
