//! What a stop leads to: what the provider offers, and which of it fits.

use std::collections::BTreeSet;

use domain::{
    AccountName, ResourceId, ResourceKind,
    configuration::Policy,
    decision::{Verdict, next_start},
    plan::{Catalog, stop_nodes},
    record::{Direction, Rank, Record},
    resource::{DatabaseSize, Resource, SavedState, Size},
};
use environment::in_words;
use provider::{Client, DatabasePlans};
use store::Store;
use tokio::sync::OnceCell;
use transition::{
    methods::{Basis, Destination, Grounds, NextStep, judge, runs_small},
    view::View,
};

use crate::failure::ObservationError;

/// What a stop leads to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct StopTarget {
    /// The size; `None` if nothing gets smaller, or if the provider lists nothing smaller.
    pub size: Option<SavedState>,
    /// Why the stop that its schedule asks for must not be made, or a start leaves it as it runs.
    pub refusal: Option<String>,
    /// The SSH key that the machine is recreated with, if it is to be hibernated.
    pub ssh_key: Option<String>,
}

impl From<Destination<'_>> for StopTarget {
    fn from(target: Destination<'_>) -> Self {
        match target {
            Destination::Off(_) => Self::default(),
            Destination::Smaller { size, .. } | Destination::Size(size) => {
                Self { size: Some(size), ..Self::default() }
            }
            Destination::Snapshot { ssh_key } => Self { ssh_key: Some(ssh_key), ..Self::default() },
            Destination::Refused(obstacles) => {
                let refusal = obstacles.first().map(ToString::to_string);
                Self { refusal, ..Self::default() }
            }
        }
    }
}

/// The plans that a provider offers: fetched once, however many resources are about to stop, and
/// only if one is.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    databases: OnceCell<Result<DatabasePlans, ObservationError>>,
    machines: OnceCell<Result<Catalog, ObservationError>>,
    autoscaled: OnceCell<Result<BTreeSet<ResourceId>, ObservationError>>,
    hibernated: OnceCell<Result<u64, ObservationError>>,
}

impl Plans {
    /// Reads what a stop is judged by, and judges where it leads.
    pub(crate) async fn stop_target(
        &self,
        client: &Client,
        store: &Store,
        view: View<'_>,
        verdict: &Verdict,
    ) -> Result<StopTarget, ObservationError> {
        let (record, resource) = (view.record, view.seen.resource);
        let smallest;
        let basis = NextStep::of(view, Direction::Stop).reads().basis;
        let by = match (basis, &resource.size) {
            (Basis::Itself, _) | (_, Size::NodePool(_)) => Grounds::default(),
            (_, Size::Database(seen)) => {
                smallest = self.smallest(client, resource, seen, view.policy).await?;
                Grounds { smallest: smallest.as_deref(), ..Grounds::default() }
            }
            (Basis::Plans, Size::Machine(_)) => self.for_sale(client, resource).await?,
            (Basis::Surroundings, Size::Machine(_)) => {
                let machine = view.seen.sight.and_then(|sight| sight.machine.as_ref());
                let Some(around) = machine.and_then(|machine| machine.around.as_ref()) else {
                    return Err(ObservationError::of("what is around it was not read"));
                };
                let hibernated = match around.room {
                    Some(_) => self.hibernated(store, &record.reference.account).await?,
                    None => 0,
                };
                let begun = record.under_way_towards(Direction::Stop).is_some();
                // A rehearsal shows how long a snapshot takes, and ends before the next start.
                let must_be_rehearsed = !begun && !is_rehearsal(record, verdict);
                let looked_at = view.seen.requested_at;
                let start = next_start(record, view.rules, looked_at).filter(|_| must_be_rehearsed);
                Grounds {
                    around: Some(around),
                    hibernated,
                    off: start.map(|start| start.duration_since(looked_at)),
                    must_be_rehearsed,
                    ..self.for_sale(client, resource).await?
                }
            }
        };
        Ok(judge(view, &by).into())
    }

    /// Returns why a machine that runs on less than is saved is not switched off by a start: its own
    /// plan cannot be ordered now.
    pub(crate) async fn way_back(
        &self,
        client: &Client,
        record: &Record,
        resource: &Resource,
    ) -> Result<StopTarget, ObservationError> {
        let small = runs_small(resource, record);
        let Some(SavedState::Machine(saved)) = record.saved.as_ref().filter(|_| small) else {
            return Ok(StopTarget::default());
        };
        let catalog = self.machines(client).await.as_ref().map_err(Clone::clone)?;
        let (own, region) = (&saved.plan, &resource.region);
        let offer = catalog.offer(own, region);
        if offer.is_some_and(|offer| offer.orderable) {
            return Ok(StopTarget::default());
        }
        let small = resource.size.plan();
        let reason =
            format!("stays on {small}: its own plan {own} cannot be ordered in {region} now");
        Ok(StopTarget { refusal: Some(reason), ..StopTarget::default() })
    }

    /// Returns the smallest plan for sale that a stop may leave to a database.
    async fn smallest(
        &self,
        client: &Client,
        resource: &Resource,
        seen: &DatabaseSize,
        policy: &Policy,
    ) -> Result<Option<String>, ObservationError> {
        let nodes = stop_nodes(seen, policy.methods.database, policy);
        let wanted = DatabaseSize { nodes, ..seen.clone() };
        let plans = self.databases(client).await.as_ref().map_err(Clone::clone)?;
        let smallest = plans.smallest(&wanted, &resource.region);
        smallest.map_err(|error| ObservationError::from(&error))
    }

    /// Returns the plans that are for sale for a machine.
    async fn for_sale(
        &self,
        client: &Client,
        resource: &Resource,
    ) -> Result<Grounds<'_>, ObservationError> {
        let autoscaled = self.autoscaled(client).await.as_ref().map_err(Clone::clone)?;
        let catalog = self.machines(client).await.as_ref().map_err(Clone::clone)?;
        let autoscaled = autoscaled.contains(&resource.id);
        Ok(Grounds { catalog, autoscaled, ..Grounds::default() })
    }

    /// Returns how many machines of an account are hibernated.
    async fn hibernated(
        &self,
        store: &Store,
        account: &AccountName,
    ) -> Result<u64, ObservationError> {
        let count = || async {
            let found = store.records_of(account).await;
            let found = found.map_err(|error| ObservationError::of(in_words(&error)))?;
            let hibernated = found.read.iter().filter(|record| record.is_hibernated());
            Ok(u64::try_from(hibernated.count()).unwrap_or(u64::MAX))
        };
        let counted = self.hibernated.get_or_init(count).await;
        counted.clone()
    }

    /// Fetches the plans for a kind, unless that has been done already.
    pub(crate) async fn ask(&self, client: &Client, kind: ResourceKind) {
        if kind == ResourceKind::Database {
            self.databases(client).await;
        } else {
            self.machines(client).await;
            self.autoscaled(client).await;
        }
    }

    async fn databases(&self, client: &Client) -> &Result<DatabasePlans, ObservationError> {
        let ask = || async {
            let plans = client.database_plans().await;
            plans.map_err(|error| ObservationError::from(&error))
        };
        self.databases.get_or_init(ask).await
    }

    async fn machines(&self, client: &Client) -> &Result<Catalog, ObservationError> {
        let ask = || async {
            let plans = client.machine_plans().await;
            plans.map_err(|error| ObservationError::from(&error))
        };
        self.machines.get_or_init(ask).await
    }

    async fn autoscaled(&self, client: &Client) -> &Result<BTreeSet<ResourceId>, ObservationError> {
        let ask = || async {
            let autoscaled = client.autoscaled().await;
            autoscaled.map_err(|error| ObservationError::from(&error))
        };
        self.autoscaled.get_or_init(ask).await
    }
}

/// Reports whether the due edge is the command that begins a rehearsal.
fn is_rehearsal(record: &Record, verdict: &Verdict) -> bool {
    let manual = record.manual_command.as_ref().filter(|manual| manual.rehearsal);
    let edge = verdict.edge.as_ref();
    manual.zip(edge).is_some_and(|(manual, edge)| {
        edge.key.rank == Rank::Manual && edge.key.instant == manual.instant
    })
}
