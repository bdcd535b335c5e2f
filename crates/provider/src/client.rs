//! One client for every account: at which cloud it is, or over SSH, is data.

use std::{cmp::Reverse, collections::BTreeSet, sync::Arc};

use domain::{
    ResourceId, ResourceKind,
    configuration::{AccountKind, Provider},
    hibernation::{Sight, Surroundings},
    machine::SshLogin,
    money::{Currency, Money},
    plan::Catalog,
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
    http::Http,
    pacing::RateLimit,
    pages::{Listed, Reading},
    sighting::Sighting,
    ssh,
    transport::Transport,
};

/// A client for one account. Clones share the token's allowance and cost nothing.
#[derive(Debug, Clone)]
pub struct Client {
    /// None over SSH.
    http: Option<Http>,
    api: Api,
}

#[derive(Debug, Clone)]
enum Api {
    DigitalOcean(digitalocean::Api),
    Hetzner(hetzner::Api),
    Ssh(ssh::Api),
}

impl Client {
    /// A client for the `DigitalOcean` account that the token belongs to.
    #[must_use]
    pub fn digitalocean(base: Base, token: SecretString, transport: impl Into<Transport>) -> Self {
        let http = Http::new(transport.into(), base, token, digitalocean::read_error);
        let api = Api::DigitalOcean(digitalocean::Api(http.clone()));
        Self {
            http: Some(http),
            api,
        }
    }

    /// A client for the Hetzner Cloud project that the token belongs to, or for the named locations
    /// of it; none named means all.
    #[must_use]
    pub fn hetzner(
        base: Base,
        token: SecretString,
        transport: impl Into<Transport>,
        locations: Vec<String>,
    ) -> Self {
        let http = Http::new(transport.into(), base, token, hetzner::read_error);
        let api = Api::Hetzner(hetzner::Api::new(http.clone(), locations));
        Self {
            http: Some(http),
            api,
        }
    }

    /// A client for the machines of a login over SSH, with its private key.
    pub fn ssh(login: SshLogin, key: SecretString) -> Result<Self, ssh::SetupError> {
        let api = ssh::Api::new(Arc::new(login), key)?;
        Ok(Self {
            http: None,
            api: Api::Ssh(api),
        })
    }

    /// The same account for looks that are taken within seconds of each other: what is around several
    /// machines is read once for all of them, and is as old as this client. A machine's own state is
    /// read each time.
    #[must_use]
    pub fn sharing(&self) -> Self {
        self.by(Http::sharing)
    }

    /// The same account for a piece of work whose requests are counted by themselves.
    #[must_use]
    pub fn counting(&self) -> Self {
        self.by(Http::counting)
    }

    fn by(&self, connection: impl Fn(&Http) -> Http) -> Self {
        let http = self.http.as_ref().map(connection);
        let api = match (&self.api, &http) {
            (Api::DigitalOcean(_), Some(http)) => {
                Api::DigitalOcean(digitalocean::Api(http.clone()))
            }
            (Api::Hetzner(api), Some(http)) => Api::Hetzner(api.with(http.clone())),
            (api, _) => api.clone(),
        };
        Self { http, api }
    }

    /// The kinds of resource that it reaches.
    #[must_use]
    pub fn kinds(&self) -> &'static [ResourceKind] {
        match self.api {
            Api::DigitalOcean(_) => Provider::DigitalOcean.kinds(),
            Api::Hetzner(_) => Provider::Hetzner.kinds(),
            Api::Ssh(_) => AccountKind::Ssh.kinds(),
        }
    }

    /// Every resource of the kinds asked for, all pages; kinds of the other provider have none.
    /// A list that could not be read whole is an error.
    pub async fn list(
        &self,
        kinds: &[ResourceKind],
        reading: Reading<'_>,
    ) -> Result<Listed, ProviderError> {
        let listed = match &self.api {
            Api::DigitalOcean(api) => api.list(kinds, reading).await?,
            Api::Hetzner(api) => api.list(kinds, reading).await?,
            Api::Ssh(api) => api.resources(kinds, reading).await?,
        };
        Ok(listed.sorted())
    }

    /// Tries whether the token may read a kind of resource, by one small request; kinds of the
    /// other provider need none.
    pub async fn try_reading(&self, kind: ResourceKind) -> Result<(), ProviderError> {
        match &self.api {
            Api::DigitalOcean(api) => api.try_reading(kind).await,
            Api::Hetzner(api) => api.try_reading(kind).await,
            Api::Ssh(api) => api.try_reading(kind).await,
        }
    }

    /// What the resource's own Status operation says; `None` if the provider does not know it.
    pub async fn status(&self, id: &ResourceId) -> Result<Option<Resource>, ProviderError> {
        match self.look(id).await {
            Err(ProviderError::NotFound(_)) => Ok(None),
            found => found,
        }
    }

    /// [`Self::status`], with the provider's words where it does not know the resource.
    pub(crate) async fn look(&self, id: &ResourceId) -> Result<Option<Resource>, ProviderError> {
        match &self.api {
            Api::DigitalOcean(api) => api.status(id).await,
            Api::Hetzner(api) => api.status(id).await,
            Api::Ssh(api) => api.look(id).await,
        }
    }

    /// A machine's own action log since an instant, newest first. The providers write whole
    /// seconds, so that an action within the instant's second counts.
    pub async fn actions(
        &self,
        id: &ResourceId,
        since: Timestamp,
    ) -> Result<Vec<LoggedAction>, ProviderError> {
        let mut actions = match &self.api {
            Api::DigitalOcean(api) => api.actions(id, since).await?,
            Api::Hetzner(api) => api.actions(id, since).await?,
            // A host keeps no log of what its commands did.
            Api::Ssh(_) => Vec::new(),
        };
        actions.retain(|action| action.started_at.as_second() >= since.as_second());
        actions.sort_by_key(|action| Reverse((action.started_at, action.id)));
        actions.dedup_by_key(|action| action.id);
        Ok(actions)
    }

    /// The plans that the provider offers for databases: one request, however many databases are
    /// asked about afterwards.
    pub async fn database_plans(&self) -> Result<DatabasePlans, ProviderError> {
        match &self.api {
            Api::DigitalOcean(api) => api.database_plans().await,
            Api::Hetzner(_) | Api::Ssh(_) => Ok(DatabasePlans::default()),
        }
    }

    /// The plans that the provider offers for machines, with what they cost and where they are sold.
    /// Hetzner's are taken to be in euros: [`Self::currency`] says what they are in.
    pub async fn machine_plans(&self) -> Result<Catalog, ProviderError> {
        match &self.api {
            Api::DigitalOcean(api) => api.machine_plans().await,
            Api::Hetzner(api) => api.machine_plans().await,
            Api::Ssh(_) => Ok(Catalog::default()),
        }
    }

    /// The currency of the provider's prices; none where it has no prices.
    pub async fn currency(&self) -> Result<Option<Currency>, ProviderError> {
        match &self.api {
            Api::DigitalOcean(_) => Ok(Some(Currency::Usd)),
            Api::Hetzner(api) => api.currency().await.map(Some),
            Api::Ssh(_) => Ok(None),
        }
    }

    /// The Droplets that autoscale pools have made: nothing on a Droplet says so (DOSPEC).
    pub async fn autoscaled(&self) -> Result<BTreeSet<ResourceId>, ProviderError> {
        match &self.api {
            Api::DigitalOcean(api) => api.autoscaled().await,
            Api::Hetzner(_) | Api::Ssh(_) => Ok(BTreeSet::new()),
        }
    }

    /// What is around a machine: what would have to be put back if it were made again, and what
    /// names it elsewhere. Several requests, at `DigitalOcean` one more for each database.
    pub async fn surroundings(&self, id: &ResourceId) -> Result<Surroundings, ProviderError> {
        match &self.api {
            Api::DigitalOcean(api) => api.surroundings(id).await,
            Api::Hetzner(api) => api.surroundings(id).await,
            Api::Ssh(_) => Err(ProviderError::foreign(id)),
        }
    }

    /// One look at a machine that is hibernated, or is about to be: several requests.
    pub async fn sight(&self, of: Sighting<'_>) -> Result<Sight, ProviderError> {
        match &self.api {
            Api::DigitalOcean(api) => api.sight(of).await,
            Api::Hetzner(api) => api.sight(of).await,
            Api::Ssh(_) => Err(ProviderError::foreign(of.of)),
        }
    }

    /// Which scopes the token lacks for hibernating machines, as far as reading shows it: at
    /// `DigitalOcean` a small request for each, and elsewhere tokens have none.
    pub async fn missing_scopes(&self) -> Result<Vec<digitalocean::MissingScope>, ProviderError> {
        match &self.api {
            Api::DigitalOcean(api) => api.missing_scopes().await,
            Api::Hetzner(_) | Api::Ssh(_) => Ok(Vec::new()),
        }
    }

    /// What a GB of a snapshot costs in a month; none over SSH.
    pub async fn snapshot_price(&self) -> Result<Option<Money>, ProviderError> {
        match &self.api {
            Api::DigitalOcean(_) => Ok(Some(digitalocean::snapshot_price())),
            Api::Hetzner(api) => api.snapshot_price().await.map(Some),
            Api::Ssh(_) => Ok(None),
        }
    }

    /// Sends one change as one request, and never repeats it.
    pub async fn send(&self, change: &Change) -> Result<Accepted, ChangeError> {
        let sent = match &self.api {
            Api::DigitalOcean(api) => api.send(change).await,
            Api::Hetzner(api) => api.send(change).await,
            Api::Ssh(api) => return api.change(change).await,
        };
        sent.map_err(ChangeError::from)
    }

    /// What the provider's headers said last; none before the first answer.
    #[must_use]
    pub fn rate(&self) -> Option<RateLimit> {
        self.http.as_ref()?.rate()
    }

    /// How many requests have left so far by this client, its clones and those that share with it.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.http.as_ref().map_or(0, Http::requests)
    }

    /// The provider's clock, to the second: the `Date` of its latest answer.
    #[must_use]
    pub fn date(&self) -> Option<Timestamp> {
        self.http.as_ref()?.date()
    }
}
