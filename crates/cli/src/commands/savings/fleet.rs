//! What the accounts hold and what it costs, as the providers report it now.

use std::collections::BTreeSet;

use anyhow::Context as _;
use domain::{
    AccountName, ResourceId,
    configuration::{Account, AccountKind, Configuration, DatabaseMethod, Policy},
    look::Look,
    plan::{Catalog, stop_nodes},
    prices::PriceList,
    resource::{DatabaseSize, Size},
};
use environment::{Clock, Tokens, in_words};
use futures_util::future::join_all;
use jiff::Timestamp;
use lifecycle::{Access, Providers, ProvidersError};
use local::clouds::Clouds;
use provider::{Base, Client, DatabasePlans, EndpointError, ProviderError, Reading};

use crate::{
    listing::{Failure, while_asking},
    output, remedies,
};

/// Opens the real clouds, or a simulator at an address, whose clock then says what is now. No
/// configuration is in force here, so tokens are sent to no address of an account's own but the
/// trusted ones.
pub(super) async fn open(
    simulator: Option<&str>,
    trusted: &[Base],
    now: Timestamp,
) -> anyhow::Result<(Providers, Timestamp)> {
    let (endpoints, now) = match simulator {
        None => (Providers::endpoints_from_settings()?, now),
        Some(url) => {
            let (clouds, theirs) = Clouds::elsewhere(url).await?;
            (clouds.endpoints()?, theirs.unwrap_or(now))
        }
    };
    let transport = provider::http_client().context("cannot ask over HTTP")?;
    let tokens = Tokens::from_variables();
    let endpoints = endpoints.allowing(trusted.to_vec());
    Ok((Providers::new(Access::Read, tokens, endpoints, transport), now))
}

/// What one account holds, and what its provider sells.
#[derive(Debug)]
pub(super) struct Holdings {
    pub(super) account: AccountName,
    pub(super) looks: Vec<Look>,
    pub(super) catalog: Catalog,
    /// The machines that autoscale pools have created.
    pub(super) autoscaled: BTreeSet<ResourceId>,
    database_plans: DatabasePlans,
    pub(super) prices: Option<PriceList>,
}

impl Holdings {
    /// The smallest plan for a database; `None` if none is offered.
    pub(super) fn smallest(
        &self,
        size: &DatabaseSize,
        policy: &Policy,
        region: &str,
    ) -> Option<String> {
        let nodes = stop_nodes(size, DatabaseMethod::SmallestPlan, policy);
        let stopped = DatabaseSize { nodes, ..size.clone() };
        self.database_plans.smallest(&stopped, region).ok().flatten()
    }
}

/// Asks all cloud accounts concurrently.
pub(super) async fn ask(
    providers: &Providers,
    configuration: &Configuration,
) -> Vec<Result<Holdings, Failure>> {
    let at_clouds = configuration.accounts.iter();
    let at_clouds = at_clouds.filter(|(_, account)| account.cloud().is_some());
    let accounts: Vec<_> = at_clouds.map(|(name, _)| name.clone()).collect();
    let asked = accounts.iter().map(|account| one(providers, configuration, account));
    while_asking(&accounts, join_all(asked)).await
}

async fn one(
    providers: &Providers,
    configuration: &Configuration,
    account: &AccountName,
) -> Result<Holdings, Failure> {
    let failure = |error: &dyn std::error::Error, remedy| Failure {
        account: account.clone(),
        error: in_words(error),
        remedy,
    };
    let client = providers.client(account, configuration).await;
    let client =
        client.map_err(|error| failure(&error, remedy_of_client(&error, configuration)))?;
    holdings(&client, account).await.map_err(|error| {
        let kind = configuration.accounts[account].kind();
        failure(&error, remedy(&error, kind).to_owned())
    })
}

fn remedy_of_client(error: &ProvidersError, configuration: &Configuration) -> String {
    let ProvidersError::Endpoint { account, source: EndpointError::NotAllowed } = error else {
        return remedies::of_client(error);
    };
    let account = configuration.accounts.get(account);
    let url = account.and_then(Account::own_destination);
    format!("if its token belongs there, pass --trust {}", url.unwrap_or_default())
}

fn remedy(error: &ProviderError, kind: AccountKind) -> &'static str {
    match kind {
        AccountKind::Cloud(cloud) if error.is_about_token() => cloud.facts().reading_remedy,
        AccountKind::Cloud(_) | AccountKind::Ssh => remedies::of_provider(error, kind),
    }
}

/// Reads what an account holds, and plans and prices only for what is there.
async fn holdings(client: &Client, account: &AccountName) -> Result<Holdings, ProviderError> {
    let clock = Clock::machine();
    let reading = Reading { now: &|| clock.now(), until: None, read: &|_| {} };
    let listed = client.list(client.kinds(), reading).await?;
    for unread in &listed.unread {
        output::remark(&format!("warning: {account}: {}\n", in_words(unread)));
    }
    let looks = listed.looks;
    let has = |fits: fn(&Size) -> bool| looks.iter().any(|look| fits(&look.resource.size));
    let has_machines = has(|size| matches!(size, Size::Machine(_)));
    let (mut catalog, prices) = if has_machines || has(|size| matches!(size, Size::NodePool(_))) {
        client.plans_and_prices(clock.now()).await?
    } else {
        (Catalog::default(), client.prices(clock.now()).await?)
    };
    if let Some(prices) = &prices {
        catalog = catalog.in_currency(prices.currency);
    }
    let autoscaled = if has_machines { client.autoscaled().await? } else { BTreeSet::new() };
    let database_plans = if has(|size| matches!(size, Size::Database(_))) {
        client.database_plans().await?
    } else {
        DatabasePlans::default()
    };
    Ok(Holdings { account: account.clone(), looks, catalog, autoscaled, database_plans, prices })
}
