//! One client for every account: whether it talks to a cloud, and which, or over SSH is data.

use std::{cmp::Reverse, collections::BTreeSet, sync::Arc};

use domain::{
    ResourceId, ResourceKind,
    configuration::CloudAccount,
    hibernation::{Manifest, ObservedMachine, Sight},
    money::{Currency, Money},
    plan::Catalog,
    prices::PriceList,
    resource::{LoggedAction, Resource},
    ssh::SshLogin,
    step::{Accepted, Step},
};
use jiff::Timestamp;
use secrecy::SecretString;

use crate::{
    api::{Api, each},
    attachments::{Attachments, Preflight},
    cloud::{Cloud as _, Hibernates as _, MissingScope},
    database_plans::DatabasePlans,
    endpoint::Base,
    error::{ChangeError, ProviderError},
    hibernation_lookup::{HibernationLookup, ListedSnapshots, Lists},
    http::{Http, Login},
    pacing::RateLimit,
    pages::{Listed, Reading},
    ssh,
    transport::Transport,
};

/// A client for one account. Clones share the token's allowance and are cheap.
#[derive(Debug, Clone)]
pub struct Client(Api);

impl Client {
    /// Creates a client for the account at a cloud that the token belongs to.
    #[must_use]
    pub fn at(
        account: &CloudAccount,
        base: Base,
        token: SecretString,
        transport: impl Into<Transport>,
    ) -> Self {
        Self(Api::at(account, Login { transport: transport.into(), base, token }))
    }

    /// Creates a client for the machines of an SSH login, with its private key.
    pub fn ssh(
        login: SshLogin,
        key: SecretString,
        transport: impl Into<Transport>,
    ) -> Result<Self, ssh::SetupError> {
        let api = ssh::Api::new(Arc::new(login), key)?;
        Ok(Self(Api::Ssh(api.over(&transport.into()))))
    }

    /// Returns a client of the same account that counts its requests separately.
    #[must_use]
    pub fn counting(&self) -> Self {
        self.by(Http::counting)
    }

    /// Returns a client of the same account that no 429 holds back yet. Once a cloud has answered
    /// 429, a client sends nothing more: how long to wait is in its errors.
    #[must_use]
    pub fn released(&self) -> Self {
        self.by(Http::released)
    }

    /// Returns a client of the same account that sends no more than this many requests from now on,
    /// however many it is asked for. Those of its clones count as well.
    #[must_use]
    pub fn sending_at_most(&self, requests: u64) -> Self {
        self.by(|http| http.sending_at_most(requests))
    }

    fn by(&self, connection: impl Fn(&Http) -> Http) -> Self {
        let mut client = self.clone();
        if let Some(http) = each!(&mut client.0, cloud => cloud.http_mut()) {
            *http = connection(http);
        }
        client
    }

    #[must_use]
    pub fn kinds(&self) -> &'static [ResourceKind] {
        each!(&self.0, cloud => cloud.kind()).kinds()
    }

    /// Lists every resource of the requested kinds, all pages; kinds of other providers have none.
    /// A kind, or an element, that could not be read is named; if no kind could, that is an error.
    pub async fn list(
        &self,
        kinds: &[ResourceKind],
        reading: Reading<'_>,
    ) -> Result<Listed, ProviderError> {
        let listed = each!(&self.0, cloud => cloud.list(kinds, reading).await)?;
        Ok(listed.sorted().printable())
    }

    /// Checks that the token may read a kind of resource, with one small request; kinds of other
    /// providers need none. Over SSH, runs every machine's status.
    pub async fn try_reading(&self, kind: ResourceKind) -> Result<(), ProviderError> {
        let tried = each!(&self.0, cloud => cloud.try_reading(kind).await);
        tried.map_err(|error| self.needing_to_read(kind, error))
    }

    /// Adds to an error the permission that reading a kind of resource needs.
    fn needing_to_read(&self, kind: ResourceKind, error: ProviderError) -> ProviderError {
        match each!(&self.0, cloud => cloud.to_read(kind)) {
            Some(permission) => error.needing(permission),
            None => error,
        }
    }

    /// Reads the resource's own Status operation; `None` if the provider does not know it.
    pub async fn status(&self, id: &ResourceId) -> Result<Option<Resource>, ProviderError> {
        Ok(ProviderError::found(self.look(id).await)?.flatten())
    }

    /// Like [`Self::status`], but a 404 is an error with the provider's words.
    pub(crate) async fn look(&self, id: &ResourceId) -> Result<Option<Resource>, ProviderError> {
        let found = each!(&self.0, cloud => cloud.status(id).await);
        let found = found.map_err(|error| self.needing_to_read(id.kind(), error))?;
        Ok(found.map(Resource::printable))
    }

    /// Reads a machine's own action log since an instant, newest first, with the actions that had not
    /// ended by then. The providers write whole seconds, so an action within the instant's second
    /// counts. A host keeps no log of what its commands did.
    pub async fn actions(
        &self,
        id: &ResourceId,
        since: Timestamp,
    ) -> Result<Vec<LoggedAction>, ProviderError> {
        let mut actions = each!(&self.0, cloud => cloud.actions(id, since).await)?;
        actions.retain(|action| !action.is_over_before(since));
        actions.sort_by_key(|action| Reverse((action.started_at, action.id)));
        actions.dedup_by_key(|action| action.id);
        Ok(actions)
    }

    /// Fetches the plans that the provider offers for databases, with one request however many
    /// databases are asked about afterwards.
    pub async fn database_plans(&self) -> Result<DatabasePlans, ProviderError> {
        each!(&self.0, cloud => cloud.database_plans().await)
    }

    /// Fetches the plans that the provider offers for machines, with their prices and where they
    /// are sold. Hetzner's prices are marked as euros; [`Self::currency`] returns the actual
    /// currency.
    pub async fn machine_plans(&self) -> Result<Catalog, ProviderError> {
        each!(&self.0, cloud => cloud.machine_plans().await)
    }

    /// Fetches all prices of the provider, with one request for each page of the list; `None` over
    /// SSH.
    pub async fn prices(&self, now: Timestamp) -> Result<Option<PriceList>, ProviderError> {
        each!(&self.0, cloud => cloud.prices(now).await)
    }

    /// Fetches the plans for machines and all prices, with as few requests as the provider needs.
    pub async fn plans_and_prices(
        &self,
        now: Timestamp,
    ) -> Result<(Catalog, Option<PriceList>), ProviderError> {
        each!(&self.0, cloud => cloud.plans_and_prices(now).await)
    }

    /// Returns the currency of the provider's prices; `None` if it has no prices.
    pub async fn currency(&self) -> Result<Option<Currency>, ProviderError> {
        each!(&self.0, cloud => cloud.currency().await)
    }

    /// Returns the machines that the provider itself creates and deletes: the members of autoscale
    /// pools.
    pub async fn autoscaled(&self) -> Result<BTreeSet<ResourceId>, ProviderError> {
        each!(&self.0, cloud => cloud.autoscaled().await)
    }

    /// Lists all snapshots of an account's machines.
    pub async fn snapshots(&self) -> Result<ListedSnapshots, ProviderError> {
        each!(&self.0, cloud => cloud.snapshots().await)
    }

    /// Reads what is attached to an account's machines and refers to them, with several requests.
    pub async fn attachments(&self) -> Result<Attachments, ProviderError> {
        each!(&self.0, cloud => cloud.attachments().await)
    }

    /// Reads what else an account shows that may keep a machine from being hibernated. At
    /// `DigitalOcean`, this takes one request for each database and several more.
    pub async fn preflight(&self) -> Result<Preflight, ProviderError> {
        each!(&self.0, cloud => cloud.preflight().await)
    }

    /// Inspects one machine, without its snapshots; `None` if the provider does not know it.
    pub async fn machine(
        &self,
        id: &ResourceId,
        lists: Lists<'_>,
    ) -> Result<Option<ObservedMachine>, ProviderError> {
        let machine = each!(&self.0, cloud => cloud.machine(id, lists).await)?;
        Ok(machine.map(ObservedMachine::printable))
    }

    /// Inspects a machine that is hibernated or about to be, with several requests.
    pub async fn inspect(&self, lookup: HibernationLookup<'_>) -> Result<Sight, ProviderError> {
        Ok(each!(&self.0, cloud => cloud.inspect(lookup).await)?.printable())
    }

    /// Returns a machine to be created, without what its account no longer has. The key of this name
    /// replaces one that was removed.
    pub async fn still_there(
        &self,
        manifest: &Manifest,
        ssh_key: Option<&str>,
    ) -> Result<Manifest, ProviderError> {
        let mut manifest = manifest.clone();
        each!(&self.0, cloud => cloud.drop_missing(&mut manifest, ssh_key).await)?;
        Ok(manifest)
    }

    /// Returns the scopes that the token lacks for hibernating machines, as far as reading shows:
    /// at `DigitalOcean` with a small request for each; elsewhere tokens have none.
    pub async fn missing_scopes(&self) -> Result<Vec<MissingScope>, ProviderError> {
        each!(&self.0, cloud => cloud.missing_scopes().await)
    }

    /// Returns the monthly price of one GB of a snapshot; `None` over SSH.
    pub async fn snapshot_price(&self) -> Result<Option<Money>, ProviderError> {
        each!(&self.0, cloud => cloud.snapshot_price().await)
    }

    /// Sends one step of a resource, as it was seen, as one request, and never retries it.
    pub async fn send(&self, resource: &Resource, step: &Step) -> Result<Accepted, ChangeError> {
        let sent = each!(&self.0, cloud => cloud.send(resource, step).await);
        sent.map_err(|error| error.answering(step))
    }

    /// Returns the request that a step is sent as, in one line:
    /// `POST /v2/droplets/3164444/actions power_off`.
    #[must_use]
    pub fn shown(&self, resource: &Resource, step: &Step) -> String {
        let shown = each!(&self.0, cloud => cloud.shown(resource, step));
        shown.unwrap_or_else(|error| error.to_string())
    }

    /// The rate limit in the provider's latest headers; `None` before the first response.
    #[must_use]
    pub fn rate(&self) -> Option<RateLimit> {
        self.http()?.rate()
    }

    /// The number of requests sent so far by this client and its clones.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.http().map_or(0, Http::requests)
    }

    /// The provider's clock, to the second: the `Date` of its latest response.
    #[must_use]
    pub fn date(&self) -> Option<Timestamp> {
        self.http()?.date()
    }

    /// `None` over SSH.
    fn http(&self) -> Option<&Http> {
        each!(&self.0, cloud => cloud.http())
    }
}
