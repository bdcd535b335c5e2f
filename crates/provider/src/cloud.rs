//! What the client asks of a cloud, or of a host that runs commands.

use std::collections::BTreeSet;

use domain::{
    ResourceId, ResourceKind,
    configuration::AccountKind,
    hibernation::{Manifest, Sight, Surroundings},
    money::{Currency, Money},
    plan::Catalog,
    prices::PriceList,
    resource::{LoggedAction, Resource},
    step::{Accepted, Step},
};
use jiff::Timestamp;

use crate::{
    database_plans::DatabasePlans,
    error::{ChangeError, ProviderError},
    hibernation_lookup::{HibernationLookup, ListedSnapshots},
    pages::{Listed, Reading},
};

/// One login at a cloud, or at a host. What it lacks, it leaves to the defaults.
pub(crate) trait Cloud {
    fn kind(&self) -> AccountKind;

    /// Lists every resource of the requested kinds; kinds of other clouds have none.
    async fn list(
        &self,
        kinds: &[ResourceKind],
        reading: Reading<'_>,
    ) -> Result<Listed, ProviderError>;

    /// Checks that the login may read a kind of resource, as cheaply as possible; kinds of other
    /// clouds need nothing.
    async fn try_reading(&self, kind: ResourceKind) -> Result<(), ProviderError>;

    /// Reads the resource's own Status operation. A 404 is an error with the cloud's words.
    async fn status(&self, id: &ResourceId) -> Result<Option<Resource>, ProviderError>;

    /// Sends one step as one request, and never retries it.
    async fn send(&self, resource: &Resource, step: &Step) -> Result<Accepted, ChangeError>;

    /// Returns the request that a step is sent as, in one line.
    fn shown(&self, resource: &Resource, step: &Step) -> Result<String, ProviderError>;

    /// Returns the permission that reading a kind of resource needs, if it has a name.
    fn to_read(&self, _: ResourceKind) -> Option<&'static str> {
        None
    }

    /// Reads a machine's own action log, at least as far back as this instant.
    async fn actions(
        &self,
        _: &ResourceId,
        _since: Timestamp,
    ) -> Result<Vec<LoggedAction>, ProviderError> {
        Ok(Vec::new())
    }

    async fn database_plans(&self) -> Result<DatabasePlans, ProviderError> {
        Ok(DatabasePlans::default())
    }

    async fn machine_plans(&self) -> Result<Catalog, ProviderError> {
        Ok(Catalog::default())
    }

    async fn prices(&self, _now: Timestamp) -> Result<Option<PriceList>, ProviderError> {
        Ok(None)
    }

    async fn currency(&self) -> Result<Option<Currency>, ProviderError> {
        Ok(None)
    }

    /// Returns the price of a GB of a snapshot for a month.
    async fn snapshot_price(&self) -> Result<Option<Money>, ProviderError> {
        Ok(None)
    }

    /// Returns the machines that the cloud itself creates and deletes.
    async fn autoscaled(&self) -> Result<BTreeSet<ResourceId>, ProviderError> {
        Ok(BTreeSet::new())
    }

    async fn surroundings(&self, id: &ResourceId) -> Result<Surroundings, ProviderError> {
        Err(ProviderError::foreign(id))
    }

    /// Lists all snapshots of the account's machines.
    async fn snapshots(&self) -> Result<ListedSnapshots, ProviderError> {
        Ok(ListedSnapshots::default())
    }

    async fn look_up_hibernation(
        &self,
        lookup: HibernationLookup<'_>,
    ) -> Result<Sight, ProviderError> {
        Err(ProviderError::foreign(lookup.of))
    }

    /// Drops from a machine to be created what its account no longer has. The key of this name
    /// replaces one that was removed.
    async fn drop_missing(
        &self,
        _: &mut Manifest,
        _key: Option<&str>,
    ) -> Result<(), ProviderError> {
        Ok(())
    }

    /// Returns the scopes that the token lacks for hibernating machines, as far as reading shows.
    async fn missing_scopes(&self) -> Result<Vec<MissingScope>, ProviderError> {
        Ok(Vec::new())
    }
}

/// A scope that a token lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingScope {
    /// Its name, such as `firewall:read`.
    pub scope: &'static str,
    /// What it lets the token read.
    pub reads: &'static str,
}
