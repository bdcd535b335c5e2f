//! Trying an account before it is applied: one list call with each of its tokens, and nothing is
//! stored.

use std::collections::BTreeMap;

use domain::{
    AccountName, ResourceRef,
    configuration::{Account, CloudAccount, Configuration, Floor, Generation, Schedules, Settings},
    look::Look,
    record::Record,
};
use environment::in_words;

use crate::{
    Access, Context, Error,
    budget::Budget,
    failure::ObservationError,
    observe::{inventory::kinds, look, poll::observed},
    report::Trial,
};

/// Why an account is not asked before it is applied.
pub(crate) const NOT_ASKED: &str =
    "an account over SSH, or with a new address of its own, is not asked before it is applied";

/// Lists each account, in all datacenters: choosing some requires seeing the others.
pub async fn trials(
    context: Context<'_>,
    accounts: &BTreeMap<AccountName, Account>,
) -> Result<Vec<Trial>, Error> {
    let in_force = match context.store.in_force().await {
        // An apply replaces it, and until then no address is in force.
        Err(error) if error.hides_configuration() => {
            context.store.in_force_without_configuration().await?
        }
        read => read?,
    };
    let in_force = in_force.configuration;
    let budget = Budget::begin(context.clock);
    let everywhere = |account: &Account| match account {
        Account::Cloud(cloud) => {
            Account::Cloud(CloudAccount { datacenters: Vec::new(), ..cloud.clone() })
        }
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
        floor: Floor::default(),
    };
    let mut trials = Vec::new();
    for (name, account) in accounts {
        let listed = if account.may_be_asked(in_force.accounts.get(name)) {
            list_with_all(context, budget, name, &configuration).await
        } else {
            Err(NOT_ASKED.to_owned())
        };
        let (found, error) = match listed {
            Ok(found) => (found, None),
            Err(words) => (Found::default(), Some(words)),
        };
        trials.push(Trial {
            account: name.clone(),
            error,
            found: found.records,
            unread: found.unread,
        });
    }
    Ok(trials)
}

/// What a list shows, and what it could not show, in words.
#[derive(Default)]
struct Found {
    records: Vec<Record>,
    unread: Vec<String>,
}

/// Lists an account with each of its tokens, all of which have to be accepted. Returns what the one
/// that only reads shows. A token that poll-status cannot read is not tried.
async fn list_with_all(
    context: Context<'_>,
    budget: Budget<'_>,
    name: &AccountName,
    configuration: &Configuration,
) -> Result<Found, String> {
    let cloud = configuration.accounts.get(name).and_then(Account::cloud);
    if cloud.is_none_or(|cloud| cloud.read_token.is_none()) {
        return list(context, budget, Access::Change, name, configuration).await;
    }
    if cloud.is_some_and(CloudAccount::keeps_token_from_poll_status) {
        return list(context, budget, Access::Read, name, configuration).await;
    }
    let mut found = Found::default();
    let mut failures = Vec::new();
    for (access, key) in [(Access::Change, "token"), (Access::Read, "read_token")] {
        match list(context, budget, access, name, configuration).await {
            Ok(listed) => found = listed,
            Err(words) => failures.push(format!("with its {key}: {words}")),
        }
    }
    if failures.is_empty() { Ok(found) } else { Err(failures.join("; ")) }
}

async fn list(
    context: Context<'_>,
    budget: Budget<'_>,
    access: Access,
    account: &AccountName,
    configuration: &Configuration,
) -> Result<Found, String> {
    let client = context.providers.client_to(access, account, configuration);
    let client = client.await.map_err(|error| in_words(&error))?;
    let listed = look::list(&client, budget, kinds(account, configuration)).await;
    let listed = listed.map_err(|error| {
        if ObservationError::from(&error).token_refused() {
            // The next trial reads the token again.
            context.providers.forget_to(access, account);
        }
        in_words(&error)
    })?;
    let first_seen = |look: &Look| {
        let reference = ResourceRef { account: account.clone(), id: look.resource.id.clone() };
        let mut record = Record::first_seen(reference, &look.resource);
        record.observed = Some(observed(&record, look));
        record
    };
    Ok(Found {
        records: listed.looks.iter().map(first_seen).collect(),
        unread: listed.unread.iter().map(|one| in_words(one)).collect(),
    })
}
