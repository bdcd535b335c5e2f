//! What a stop leads to: what the provider offers, and which of it fits.

use std::collections::BTreeSet;

use domain::{
    AccountName, ResourceId, ResourceKind,
    configuration::{Account, Configuration, DatabaseMethod, Otherwise, Policy},
    decision::{Rules, Verdict, next_start},
    hibernation::{self, Hibernation, HibernationTerms, OffPeriod},
    look::Look,
    plan::{self, Catalog, Machine, MoveRefusal, StopPlan},
    record::{Direction, Rank, Record},
    resource::{DatabaseSize, MachineSize, Power, Resource, SavedState, Size},
    step::Step,
    stop_method::StopMethod,
};
use environment::in_words;
use jiff::Timestamp;
use provider::{Client, DatabasePlans};
use store::Store;
use tokio::sync::OnceCell;
use transition::methods::{hibernate::WORTH_IT, runs_small};

use crate::{failure::ObservationError, report::Obstacle};

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

impl StopTarget {
    fn refused(refusal: impl Into<Obstacle>) -> Self {
        Self { refusal: Some(refusal.into().to_string()), ..Self::default() }
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
    /// Returns what a stop of this resource leads to.
    pub(crate) async fn stop_target(
        &self,
        client: &Client,
        record: &Record,
        resource: &Resource,
        (policy, configuration): (&Policy, &Configuration),
    ) -> Result<StopTarget, ObservationError> {
        match &resource.size {
            Size::Database(database) => self.of_database(client, resource, database, policy).await,
            // A machine already on its small plan needs no plan to be for sale.
            Size::Machine(seen)
                if changes_plan(record, policy) && record.small_plans.contains(&seen.plan) =>
            {
                Ok(StopTarget {
                    size: Some(SavedState::Machine(seen.clone())),
                    ..StopTarget::default()
                })
            }
            Size::Machine(machine) if changes_plan(record, policy) => {
                let wanted = match requested_plan(record, resource, policy) {
                    Ok(wanted) => wanted,
                    Err(refusal) => return Ok(StopTarget::refused(&refusal)),
                };
                let autoscaled = self.autoscaled(client).await;
                let autoscaled = autoscaled.as_ref().map_err(Clone::clone)?;
                let machine = Machine {
                    resource,
                    size: machine,
                    autoscaled: autoscaled.contains(&resource.id),
                    accepts_new_prices: accepts_new_prices(
                        &record.reference.account,
                        configuration,
                    ),
                };
                let catalog = self.machines(client).await;
                let catalog = catalog.as_ref().map_err(Clone::clone)?;
                Ok(of_machine(machine, catalog, wanted.as_deref()))
            }
            Size::Machine(_) | Size::NodePool(_) => Ok(StopTarget::default()),
        }
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

    async fn of_database(
        &self,
        client: &Client,
        resource: &Resource,
        database: &DatabaseSize,
        policy: &Policy,
    ) -> Result<StopTarget, ObservationError> {
        let mut wanted = database.clone();
        let standbys = policy.methods.database == DatabaseMethod::Standbys;
        if standbys {
            if let Some(refusal) = keeps_its_nodes(database) {
                return Ok(StopTarget::refused(refusal));
            }
            wanted.nodes = 1;
        } else if let Some(nodes) = policy.stop_nodes {
            // Never more than it has: a stop only shrinks.
            wanted.nodes = nodes.min(database.nodes);
        }
        let plan = match &policy.stop_size {
            Some(plan) => Some(plan.clone()),
            None if standbys => Some(database.plan.clone()),
            None => self
                .databases(client)
                .await
                .as_ref()
                .map_err(Clone::clone)?
                .smallest(&wanted, &resource.region)
                .map_err(|error| ObservationError::from(&error))?,
        };
        let size =
            plan.map(|plan| SavedState::Database { plan, nodes: wanted.nodes, storage_mib: None });
        Ok(StopTarget { size, ..StopTarget::default() })
    }

    /// Checks whether a machine may be hibernated. A hibernation under way continues only while
    /// nothing stands in its way.
    pub(crate) async fn to_hibernate(
        &self,
        (client, store): (&Client, &Store),
        (record, look): (&Record, &Look),
        verdict: &Verdict,
        rules: Rules<'_>,
    ) -> Result<StopTarget, ObservationError> {
        let policy = verdict.membership.policy(rules.configuration);
        let terms = terms(&record.reference.account, &policy, rules.configuration);
        match Hibernates::of(record, look, rules) {
            Hibernates::Not => return Ok(StopTarget::default()),
            Hibernates::Continues => {
                let ssh_key = Some(terms.ssh_key.unwrap_or_default());
                return Ok(StopTarget { ssh_key, ..StopTarget::default() });
            }
            Hibernates::IfNothingIsInTheWay => {}
        }
        let seen = look.sight.as_ref().and_then(|sight| sight.machine.as_ref());
        let around = seen.and_then(|machine| machine.around.as_ref());
        let (Size::Machine(size), Some(around)) = (&look.resource.size, around) else {
            return Err(ObservationError::of("what is around it was not read"));
        };
        let begun = record.under_way_towards(Direction::Stop).is_some();
        let start = next_start(record, rules, look.requested_at);
        let machine = Machine {
            resource: &look.resource,
            size,
            autoscaled: self.is_autoscaled(client, &look.resource).await?,
            accepts_new_prices: accepts_new_prices(&record.reference.account, rules.configuration),
        };
        let catalog = self.machines(client).await.as_ref().map_err(Clone::clone)?;
        let hibernated = match around.room {
            Some(_) => self.hibernated(store, &record.reference.account).await?,
            None => 0,
        };
        let sent_as = terms.ssh_key.as_ref().and_then(|key| around.ssh_key(key));
        let fits =
            StopTarget { ssh_key: sent_as.map(|key| key.sent_as.clone()), ..StopTarget::default() };
        let kept = record.hibernation.as_deref();
        // A rehearsal shows how long a snapshot takes, and ends before the next start.
        let in_question = !begun && !is_rehearsal(record, verdict);
        let off_period = start.filter(|_| in_question).map(|start| OffPeriod {
            off: start.duration_since(look.requested_at),
            latest: kept.and_then(Hibernation::latest_centi_gb),
        });
        let terms = HibernationTerms { hibernated, off_period, ..terms };
        let mut obstacles = hibernation::preflight(machine, around, catalog, &terms);
        let rehearsed = kept.is_some_and(Hibernation::is_rehearsed);
        if in_question && !rehearsed {
            obstacles.push(hibernation::Obstacle::NotRehearsed);
        }
        match (obstacles.first(), policy.otherwise) {
            (None, _) => Ok(fits),
            (Some(_), Otherwise::PowerOff) if !begun => Ok(StopTarget::default()),
            (Some(obstacle), _) => Ok(StopTarget::refused(Obstacle {
                reason: obstacle.to_string(),
                remedy: obstacle.remedy().to_owned(),
            })),
        }
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

    async fn is_autoscaled(
        &self,
        client: &Client,
        resource: &Resource,
    ) -> Result<bool, ObservationError> {
        let autoscaled = self.autoscaled(client).await;
        let autoscaled = autoscaled.as_ref().map_err(Clone::clone)?;
        Ok(autoscaled.contains(&resource.id))
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

/// Returns what a machine's owner has decided about hibernating it; the caller adds the rest.
pub(crate) fn terms(
    account: &AccountName,
    policy: &Policy,
    configuration: &Configuration,
) -> HibernationTerms {
    let account = configuration.accounts.get(account);
    let cloud = account.and_then(Account::cloud);
    HibernationTerms {
        accepted: policy.accept.clone(),
        needs_private_ip: policy.needs_private_ip,
        hibernated: 0,
        off_period: None,
        longest_run: None,
        ssh_key: cloud.and_then(|cloud| cloud.ssh_key.clone()),
    }
}

/// Reports whether a stop is to hibernate the machine. One under way keeps its claim's method.
pub(crate) fn is_to_hibernate(record: &Record, policy: &Policy) -> bool {
    let under_way = record.under_way_towards(Direction::Stop);
    let method = under_way.map(|now| now.method);
    let method = method.unwrap_or_else(|| StopMethod::of(record.kind(), policy));
    method == StopMethod::Hibernate
}

/// Whether a stop that is to hibernate a machine does so.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Hibernates {
    /// It is not a machine, or is to run again soon.
    Not,
    /// It is under way, and still switches the machine off or has deleted it.
    Continues,
    /// Whatever may be in the way has to be read.
    IfNothingIsInTheWay,
}

impl Hibernates {
    pub(crate) fn of(record: &Record, look: &Look, rules: Rules<'_>) -> Self {
        if !matches!(look.resource.size, Size::Machine(_)) {
            return Self::Not;
        }
        let begun = record.under_way_towards(Direction::Stop).is_some();
        let asleep = look.sight.as_ref().is_some_and(|sight| sight.machine.is_none());
        let switches_off = begun && look.resource.power != Power::Stopped;
        if asleep || switches_off {
            return Self::Continues;
        }
        let near = |start: Timestamp| start.duration_since(look.requested_at) < WORTH_IT;
        if !begun && next_start(record, rules, look.requested_at).is_some_and(near) {
            return Self::Not;
        }
        Self::IfNothingIsInTheWay
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

/// Reports whether the next part of a stop depends on the plans: not while the machine is still
/// being switched off, or if it is only to be switched off.
fn changes_plan(record: &Record, policy: &Policy) -> bool {
    let under_way = record.under_way_towards(Direction::Stop);
    let method = under_way.map(|now| now.method);
    let request = record.request_towards(Direction::Stop);
    let switches_off = under_way.is_some()
        && request.is_some_and(|request| matches!(request.step, Step::Off { .. }))
        && !record.wants_next_step();
    let method = method.unwrap_or_else(|| StopMethod::of(record.kind(), policy));
    method.changes_plan() && !switches_off
}

/// Returns the plan that is asked for; a stop under way keeps the one that it began with.
fn requested_plan(
    record: &Record,
    resource: &Resource,
    policy: &Policy,
) -> Result<Option<String>, MoveRefusal> {
    let under_way = record.under_way_towards(Direction::Stop);
    match under_way.and_then(|now| now.target.as_ref()) {
        Some(SavedState::Machine(MachineSize { plan, .. })) => Ok(Some(plan.clone())),
        Some(SavedState::Database { .. } | SavedState::NodePool { .. }) | None => {
            plan::requested_plan(resource.kind(), &resource.tags, policy)
        }
    }
}

/// Reports whether an account's owner accepts that a move ends an old price.
pub(crate) fn accepts_new_prices(account: &AccountName, configuration: &Configuration) -> bool {
    let account = configuration.accounts.get(account);
    account.is_some_and(|account| match account {
        Account::Cloud(cloud) => cloud.accept_new_prices,
        Account::Ssh(_) => false,
    })
}

/// Where a stop that is to move a machine to a smaller plan leads.
#[derive(Debug)]
pub(crate) enum SmallStop<'c> {
    /// To this plan.
    On(StopPlan<'c>),
    /// Nowhere: there is nothing to save, so the machine is only switched off.
    Off(MoveRefusal),
    /// The stop must not be made: the machine could not come back.
    Refused(MoveRefusal),
}

impl<'c> SmallStop<'c> {
    /// Judges a move of a machine to the plan that is asked for, or else to the cheapest that fits.
    pub(crate) fn of(machine: Machine<'_>, catalog: &'c Catalog, wanted: Option<&str>) -> Self {
        match plan::stop_plan(machine, catalog, wanted) {
            Ok(smaller) => Self::On(smaller),
            Err(
                refusal @ (MoveRefusal::AlreadyCheapest { .. } | MoveRefusal::DiskTooLarge { .. }),
            ) => Self::Off(refusal),
            Err(MoveRefusal::TargetNotCheaper { target, plan }) if target == plan => {
                Self::Off(MoveRefusal::TargetNotCheaper { target, plan })
            }
            Err(refusal) => Self::Refused(refusal),
        }
    }
}

fn of_machine(machine: Machine<'_>, catalog: &Catalog, wanted: Option<&str>) -> StopTarget {
    match SmallStop::of(machine, catalog, wanted) {
        SmallStop::On(smaller) => StopTarget {
            size: Some(SavedState::Machine(MachineSize {
                // The machine keeps its own disk.
                disk_gib: machine.size.disk_gib,
                ..smaller.plan.size()
            })),
            ..StopTarget::default()
        },
        SmallStop::Off(_) => StopTarget::default(),
        SmallStop::Refused(refusal) => StopTarget::refused(&refusal),
    }
}

/// Returns what prevents removing the standby nodes of a database that has some.
pub(crate) fn keeps_its_nodes(database: &DatabaseSize) -> Option<Obstacle> {
    let reason = database.keeps_its_nodes().filter(|_| database.nodes > 1)?;
    Some(Obstacle { reason, remedy: "set methods.database = \"smallest-plan\" for it".to_owned() })
}

#[cfg(test)]
mod tests {
    use domain::configuration::DropletMethod;
    use provider::{Base, http_client};

    use super::*;
    use transition::tests::{Case, database, database_of, droplet};

    async fn target(case: &Case, policy: &Policy) -> StopTarget {
        asked(case, policy).await.unwrap()
    }

    /// Returns where a stop of the case leads. No provider answers.
    async fn asked(case: &Case, policy: &Policy) -> Result<StopTarget, ObservationError> {
        let base: Base = "http://localhost:1".parse().unwrap();
        let client = Client::digitalocean(base, "token".into(), http_client().unwrap());
        let (record, resource) = (&case.record, &case.resource);
        let rules = (policy, &case.configuration);
        let target = Plans::default();
        let target = target.stop_target(&client, record, resource, rules);
        target.await
    }

    #[tokio::test]
    async fn a_stop_leads_to_as_many_nodes_as_its_schedule_says_and_never_to_more() {
        for (says, nodes) in [(None, 2), (Some(1), 1), (Some(2), 2), (Some(3), 2)] {
            let policy = Policy {
                stop_size: Some("db-s-1vcpu-1gb".to_owned()),
                stop_nodes: says,
                ..Policy::default()
            };
            let target = target(&database(), &policy).await;
            let expected = Some(database_of("db-s-1vcpu-1gb", nodes));
            assert_eq!((target.size, target.refusal), (expected, None), "{says:?}");
        }
    }

    #[tokio::test]
    async fn dropping_standbys_keeps_the_plan_unless_another_is_asked_for() {
        let mut policy = Policy::default();
        policy.methods.database = DatabaseMethod::Standbys;
        let size = target(&database(), &policy).await.size;
        assert_eq!(size, Some(database_of("db-s-2vcpu-4gb", 1)));
        policy.stop_size = Some("db-s-1vcpu-2gb".to_owned());
        let size = target(&database(), &policy).await.size;
        assert_eq!(size, Some(database_of("db-s-1vcpu-2gb", 1)));
    }

    #[tokio::test]
    async fn on_its_small_plan_a_machine_stops_there_whatever_is_sold() {
        let size = |plan: &str| MachineSize { plan: plan.to_owned(), ..MachineSize::default() };
        let mut policy = Policy::default();
        policy.methods.droplet = DropletMethod::Resize;
        let mut case = droplet();
        case.resource.size = Size::Machine(size("s-1vcpu-1gb"));
        case.record.saved = Some(SavedState::Machine(size("g-2vcpu-8gb")));
        case.record.small_plans.insert("s-1vcpu-1gb".to_owned());
        // The provider is not even asked.
        let here = Some(SavedState::Machine(size("s-1vcpu-1gb")));
        assert_eq!(target(&case, &policy).await.size, here);
        // On a plan that a person chose meanwhile it is moved, and its provider is asked.
        case.resource.size = Size::Machine(size("s-2vcpu-2gb"));
        assert!(asked(&case, &policy).await.is_err());
    }

    #[tokio::test]
    async fn an_engine_that_keeps_its_nodes_is_refused_by_name() {
        let mut policy = Policy::default();
        policy.methods.database = DatabaseMethod::Standbys;
        let mut case = database();
        let Size::Database(size) = &mut case.resource.size else {
            panic!("a database");
        };
        size.engine = "mongodb".to_owned();
        let refused = target(&case, &policy).await;
        assert_eq!(refused.size, None);
        assert!(refused.refusal.unwrap().contains("mongodb"));
        // With one node there is nothing to drop.
        let alone = case.sized("db-s-2vcpu-4gb", 1);
        assert_eq!(target(&alone, &policy).await.refusal, None);
    }
}
