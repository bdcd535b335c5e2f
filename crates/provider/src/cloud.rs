//! What the client asks of a cloud, or of a host that runs commands.

use std::collections::BTreeSet;

use domain::{
    ResourceId, ResourceKind,
    configuration::AccountKind,
    hibernation::{Manifest, ObservedMachine, Sight},
    money::{Currency, Money},
    plan::Catalog,
    prices::PriceList,
    resource::{LoggedAction, Resource},
    step::{Accepted, Step},
};
use jiff::Timestamp;

use crate::{
    attachments::{Attachments, Preflight},
    database_plans::DatabasePlans,
    error::{ChangeError, ProviderError},
    hibernation_lookup::{HibernationLookup, ListedSnapshots, Lists},
    http::Http,
    pages::{Listed, Reading},
};

/// One login at a cloud, or at a host. What it lacks, it leaves to the defaults. The client says what
/// each function promises.
pub(crate) trait Cloud {
    fn kind(&self) -> AccountKind;

    /// `None` over SSH.
    fn http(&self) -> Option<&Http> {
        None
    }

    fn http_mut(&mut self) -> Option<&mut Http> {
        None
    }

    async fn list(
        &self,
        kinds: &[ResourceKind],
        reading: Reading<'_>,
    ) -> Result<Listed, ProviderError>;

    async fn try_reading(&self, kind: ResourceKind) -> Result<(), ProviderError>;

    /// A 404 is an error with the cloud's words.
    async fn status(&self, id: &ResourceId) -> Result<Option<Resource>, ProviderError>;

    async fn send(&self, resource: &Resource, step: &Step) -> Result<Accepted, ChangeError>;

    fn shown(&self, resource: &Resource, step: &Step) -> Result<String, ProviderError>;

    /// Returns the permission that reading a kind of resource needs, if it has a name.
    fn to_read(&self, _kind: ResourceKind) -> Option<&'static str> {
        None
    }

    /// Reads at least as far back as `since`, in any order.
    async fn actions(
        &self,
        _id: &ResourceId,
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

    async fn plans_and_prices(
        &self,
        now: Timestamp,
    ) -> Result<(Catalog, Option<PriceList>), ProviderError> {
        Ok((self.machine_plans().await?, self.prices(now).await?))
    }

    async fn currency(&self) -> Result<Option<Currency>, ProviderError> {
        Ok(None)
    }

    async fn snapshot_price(&self) -> Result<Option<Money>, ProviderError> {
        Ok(match self.kind() {
            AccountKind::Cloud(cloud) => cloud.snapshot_price(),
            AccountKind::Ssh => None,
        })
    }

    async fn autoscaled(&self) -> Result<BTreeSet<ResourceId>, ProviderError> {
        Ok(BTreeSet::new())
    }
}

/// What the client asks of a cloud about machines that are hibernated. Where none can be, all of it
/// is left to the defaults.
pub(crate) trait Hibernates {
    async fn snapshots(&self) -> Result<ListedSnapshots, ProviderError> {
        Ok(ListedSnapshots::default())
    }

    async fn attachments(&self) -> Result<Attachments, ProviderError> {
        Ok(Attachments::default())
    }

    async fn preflight(&self) -> Result<Preflight, ProviderError> {
        Ok(Preflight::default())
    }

    async fn machine(
        &self,
        id: &ResourceId,
        _lists: Lists<'_>,
    ) -> Result<Option<ObservedMachine>, ProviderError> {
        Err(ProviderError::foreign(id))
    }

    async fn inspect(&self, lookup: HibernationLookup<'_>) -> Result<Sight, ProviderError> {
        Err(ProviderError::foreign(lookup.of))
    }

    /// Drops from a machine to be created what its account no longer has.
    async fn drop_missing(
        &self,
        _made: &mut Manifest,
        _ssh_key: Option<&str>,
    ) -> Result<(), ProviderError> {
        Ok(())
    }

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
