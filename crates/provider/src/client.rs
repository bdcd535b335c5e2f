//! One client for either cloud: which one it is, is data.

use std::cmp::Reverse;

use domain::{
    ResourceId, ResourceKind,
    configuration::Provider,
    resource::{LoggedAction, Resource},
};
use jiff::Timestamp;
use secrecy::SecretString;

use crate::{
    change::{Accepted, Change},
    digitalocean::{self, DatabasePlans},
    endpoint::Base,
    error::{ChangeError, ProviderError},
    hetzner,
    pacing::RateLimit,
    pages::{Listed, Reading},
};

/// A client for one account. Clones share the token's allowance and cost nothing.
#[derive(Debug, Clone)]
pub enum Client {
    /// A `DigitalOcean` account.
    DigitalOcean(digitalocean::Client),
    /// A Hetzner Cloud project.
    Hetzner(hetzner::Client),
}

impl Client {
    /// A client for the `DigitalOcean` account that the token belongs to.
    #[must_use]
    pub fn digitalocean(base: Base, token: SecretString, http: reqwest::Client) -> Self {
        Self::DigitalOcean(digitalocean::Client::new(base, token, http))
    }

    /// A client for the Hetzner Cloud project that the token belongs to, and of it for the
    /// locations named; none named means all.
    #[must_use]
    pub fn hetzner(
        base: Base,
        token: SecretString,
        http: reqwest::Client,
        locations: Vec<String>,
    ) -> Self {
        Self::Hetzner(hetzner::Client::new(base, token, http, locations))
    }

    /// Which cloud.
    #[must_use]
    pub fn provider(&self) -> Provider {
        match self {
            Self::DigitalOcean(_) => Provider::DigitalOcean,
            Self::Hetzner(_) => Provider::Hetzner,
        }
    }

    /// Every resource of the kinds asked for, all pages; kinds of the other provider have none.
    /// A list that could not be read whole is an error.
    pub async fn list(
        &self,
        kinds: &[ResourceKind],
        reading: Reading<'_>,
    ) -> Result<Listed, ProviderError> {
        let listed = match self {
            Self::DigitalOcean(client) => client.list(kinds, reading).await?,
            Self::Hetzner(client) => client.list(kinds, reading).await?,
        };
        Ok(listed.sorted())
    }

    /// Tries whether the token may read a kind of resource, by one small request; kinds of the
    /// other provider need none.
    pub async fn try_reading(&self, kind: ResourceKind) -> Result<(), ProviderError> {
        match self {
            Self::DigitalOcean(client) => client.try_reading(kind).await,
            Self::Hetzner(client) => client.try_reading(kind).await,
        }
    }

    /// What the resource's own Status operation says; none if there is no such resource.
    pub async fn status(&self, id: &ResourceId) -> Result<Option<Resource>, ProviderError> {
        let found = match self {
            Self::DigitalOcean(client) => client.status(id).await,
            Self::Hetzner(client) => client.status(id).await,
        };
        match found {
            Err(ProviderError::NotFound(_)) => Ok(None),
            found => found,
        }
    }

    /// A machine's own action log since an instant, newest first. The providers write whole
    /// seconds, so that an action within the instant's second counts.
    pub async fn actions(
        &self,
        id: &ResourceId,
        since: Timestamp,
    ) -> Result<Vec<LoggedAction>, ProviderError> {
        let mut actions = match self {
            Self::DigitalOcean(client) => client.actions(id, since).await?,
            Self::Hetzner(client) => client.actions(id, since).await?,
        };
        actions.retain(|action| action.started_at.as_second() >= since.as_second());
        actions.sort_by_key(|action| Reverse((action.started_at, action.id)));
        actions.dedup_by_key(|action| action.id);
        Ok(actions)
    }

    /// The plans that the provider offers for databases: one request, however many databases are
    /// asked about afterwards.
    pub async fn database_plans(&self) -> Result<DatabasePlans, ProviderError> {
        match self {
            Self::DigitalOcean(client) => client.database_plans().await,
            Self::Hetzner(_) => Ok(DatabasePlans::default()),
        }
    }

    /// Sends one change as one request, and never repeats it.
    pub async fn send(&self, change: &Change) -> Result<Accepted, ChangeError> {
        let sent = match self {
            Self::DigitalOcean(client) => client.send(change).await,
            Self::Hetzner(client) => client.send(change).await,
        };
        sent.map_err(ChangeError::from)
    }

    /// What the provider's headers said last; none before the first answer.
    #[must_use]
    pub fn rate(&self) -> Option<RateLimit> {
        match self {
            Self::DigitalOcean(client) => client.rate(),
            Self::Hetzner(client) => client.rate(),
        }
    }

    /// How many requests have left so far.
    #[must_use]
    pub fn requests(&self) -> u64 {
        match self {
            Self::DigitalOcean(client) => client.requests(),
            Self::Hetzner(client) => client.requests(),
        }
    }

    /// The provider's clock, to the second: the `Date` of its latest answer.
    #[must_use]
    pub fn date(&self) -> Option<Timestamp> {
        match self {
            Self::DigitalOcean(client) => client.date(),
            Self::Hetzner(client) => client.date(),
        }
    }
}
