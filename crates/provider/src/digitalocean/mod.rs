//! `DigitalOcean`: Droplets, managed databases and Kubernetes node pools.

mod hibernation;
mod schema;
mod scopes;
mod step;
mod surroundings;

use std::collections::BTreeSet;

use domain::{
    ClusterId, DatabaseId, DropletId, PoolId, ResourceId, ResourceKind,
    configuration::{AccountKind, Provider},
    hibernation::Attachment,
    money::{Currency, Money, NotAnAmount},
    plan::{Catalog, MachinePlan, Offer},
    prices::{PriceList, Rate},
    resource::{
        ActionEffect, ActionId, ActionState, Busy, Cluster, DatabaseSize, LoggedAction,
        MachineFacts, MachineSize, NodePoolSize, Power, Resource, Size,
    },
    step::{Accepted, Step},
};
use futures_util::future::join_all;
use jiff::Timestamp;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};

use self::surroundings::ReservedIp;
use crate::{
    attachments::leave_to_another,
    cloud::Cloud,
    database_plans::{DatabasePlans, OPTIONS},
    error::{ChangeError, ProviderError},
    http::{Http, Login, Request},
    pages::{self, AT_ONCE, Element, Listed, Page, Read, Reading, Unread},
    service::{KUBERNETES_WORKER, unsupported_engine},
};

/// The maximum page size (DODESC).
const PER_PAGE: u32 = 200;

/// The path that lists the plans for Droplets and for the nodes of pools.
const SIZES: &str = "/v2/sizes";

/// The path that lists databases.
const DATABASES: &str = "/v2/databases";

#[derive(Debug, Clone)]
pub(crate) struct Api(Http);

/// The list of one kind.
type ResourcesRead = Read<Result<Resource, Box<Unread>>>;

impl Cloud for Api {
    fn kind(&self) -> AccountKind {
        AccountKind::Cloud(Provider::DigitalOcean)
    }

    fn http(&self) -> Option<&Http> {
        Some(&self.0)
    }

    fn http_mut(&mut self) -> Option<&mut Http> {
        Some(&mut self.0)
    }

    async fn list(
        &self,
        kinds: &[ResourceKind],
        reading: Reading<'_>,
    ) -> Result<Listed, ProviderError> {
        let lists = kinds.iter().map(async |&kind| {
            let read = match kind {
                ResourceKind::Droplet => self.droplets(reading).await,
                ResourceKind::Database => self.databases(reading).await,
                ResourceKind::NodePool => self.node_pools(reading).await,
                ResourceKind::Server | ResourceKind::Machine => return None,
            };
            Some((kind, read.map_err(|error| error.needing(scopes::to_read(kind)))))
        });
        let mut listed = Listed::default();
        for (kind, read) in join_all(lists).await.into_iter().flatten() {
            listed.add(kind, read)?;
        }
        listed.or_error()
    }

    async fn try_reading(&self, kind: ResourceKind) -> Result<(), ProviderError> {
        let path = match kind {
            ResourceKind::Droplet => "/v2/droplets?per_page=1",
            // The list is not paginated (DOSPEC), and its rows are few.
            ResourceKind::Database => DATABASES,
            ResourceKind::NodePool => "/v2/kubernetes/clusters?per_page=1",
            ResourceKind::Server | ResourceKind::Machine => return Ok(()),
        };
        self.0.read::<IgnoredAny>(&Request::get(path)).await?;
        Ok(())
    }

    async fn status(&self, id: &ResourceId) -> Result<Option<Resource>, ProviderError> {
        match id {
            ResourceId::Droplet(DropletId(id)) => {
                let request = Request::get(format!("/v2/droplets/{id}"));
                let found: schema::Droplet = self.one(&request).await?;
                request.about(id, &found.id)?;
                Ok(Some(droplet(found)))
            }
            ResourceId::Database(DatabaseId(id)) => {
                let request = Request::get(format!("/v2/databases/{id}"));
                let found: schema::Database = self.one(&request).await?;
                request.about(id, &found.id.0)?;
                Ok(Some(database(found)))
            }
            ResourceId::NodePool(ClusterId(id), PoolId(pool)) => {
                let request = Request::get(format!("/v2/kubernetes/clusters/{id}"));
                let mut cluster: schema::Cluster = self.one(&request).await?;
                request.about(id, &cluster.id.0)?;
                let pools = cluster.node_pools.take();
                let pools = pools
                    .ok_or_else(|| request.not_understood("a cluster without its node pools"))?;
                let pool = pools.into_iter().find(|one| one.has_id(pool, |pool| &pool.id.0));
                match pool {
                    Some(Element::Read(pool)) => Ok(Some(node_pool(&cluster, pool))),
                    Some(Element::Unread(_)) => {
                        Err(request.not_understood("unexpected content of the node pool"))
                    }
                    None => Ok(None),
                }
            }
            ResourceId::Server(_) | ResourceId::Machine(_) => Err(ProviderError::foreign(id)),
        }
    }

    async fn send(&self, resource: &Resource, step: &Step) -> Result<Accepted, ChangeError> {
        if let Step::Attach(Attachment::FloatingIp(ip)) = step {
            let request = Request::get(step::reserved(ip));
            let found = self.one::<ReservedIp>(&request).await;
            let holder = found.map_err(ChangeError::NotAccepted)?.droplet;
            let holder = holder.map(|one| ResourceId::Droplet(DropletId(one.id)));
            leave_to_another(ip, holder, &resource.id)?;
        }
        let accepted = |request: &_, answer: &_| step::accepted(step, request, answer);
        let sent = self.0.send(step::request(resource, step), accepted).await;
        sent.map_err(|error| error.needing(scopes::to_send(step)).into())
    }

    fn shown(&self, resource: &Resource, step: &Step) -> Result<String, ProviderError> {
        Ok(step::request(resource, step)?.in_full())
    }

    fn to_read(&self, kind: ResourceKind) -> Option<&'static str> {
        Some(scopes::to_read(kind))
    }

    async fn actions(
        &self,
        id: &ResourceId,
        since: Timestamp,
    ) -> Result<Vec<LoggedAction>, ProviderError> {
        let ResourceId::Droplet(droplet) = id else {
            return Err(ProviderError::foreign(id));
        };
        let path = format!("/v2/droplets/{droplet}/actions");
        pages::log(since, async |number| {
            let page = self.page::<schema::Action>(&path, number).await?;
            Ok(page.map(logged))
        })
        .await
    }

    async fn database_plans(&self) -> Result<DatabasePlans, ProviderError> {
        let request = Request::get(OPTIONS);
        let schema::Options { options } = self.0.read(&request).await?;
        Ok(DatabasePlans::new(options))
    }

    async fn machine_plans(&self) -> Result<Catalog, ProviderError> {
        catalog(self.things(SIZES).await?).map_err(|error| unexpected_size(&error))
    }

    async fn prices(&self, now: Timestamp) -> Result<Option<PriceList>, ProviderError> {
        let list = price_list(&self.things(SIZES).await?, now);
        list.map(Some).map_err(|error| unexpected_size(&error))
    }

    async fn plans_and_prices(
        &self,
        now: Timestamp,
    ) -> Result<(Catalog, Option<PriceList>), ProviderError> {
        let sizes: Vec<schema::PlanSize> = self.things(SIZES).await?;
        let list = price_list(&sizes, now).map_err(|error| unexpected_size(&error))?;
        Ok((catalog(sizes).map_err(|error| unexpected_size(&error))?, Some(list)))
    }

    async fn currency(&self) -> Result<Option<Currency>, ProviderError> {
        Ok(Some(Currency::Usd))
    }

    /// Nothing on a Droplet says that an autoscale pool created it (DOSPEC).
    async fn autoscaled(&self) -> Result<BTreeSet<ResourceId>, ProviderError> {
        let path = "/v2/droplets/autoscale";
        let pools = self.all::<schema::AutoscalePool>(path, Reading::UNTIMED);
        let mut members = BTreeSet::new();
        for (_, pool) in pools.await?.items {
            let path = format!("{path}/{}/members", pool.id.0);
            let of_pool = self.all::<schema::AutoscaleMember>(&path, Reading::UNTIMED);
            match of_pool.await {
                Ok(of_pool) => {
                    let ids = of_pool.items.iter().map(|(_, member)| member.droplet_id);
                    members.extend(ids.map(|id| ResourceId::Droplet(DropletId(id))));
                }
                // Deleted since the list was read, along with its members.
                Err(ProviderError::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(members)
    }
}

impl Api {
    pub(crate) fn new(login: Login) -> Self {
        Self(Http::new(login, schema::read_error))
    }

    /// GPU Droplets are listed only if their type is asked for (DOSPEC). The others do not depend on
    /// that list.
    async fn droplets(&self, reading: Reading<'_>) -> Result<ResourcesRead, ProviderError> {
        let kind = ResourceKind::Droplet;
        let read = async |path| -> Result<ResourcesRead, ProviderError> {
            let droplets = self.all::<Element<schema::Droplet>>(path, reading).await?;
            Ok(droplets.map(|one| one.of_kind(kind, path).map(droplet)))
        };
        let (droplets, gpus) = tokio::join!(read("/v2/droplets"), read("/v2/droplets?type=gpus"));
        let mut droplets = droplets?;
        match gpus {
            Ok(gpus) => {
                droplets.requests += gpus.requests;
                droplets.items.extend(gpus.items);
            }
            Err(error) if error.is_of_account() => return Err(error),
            Err(error) => {
                let unread = Unread { kind, name: Some("with GPUs".to_owned()), error };
                droplets.items.push(((reading.now)(), Err(Box::new(unread))));
            }
        }
        Ok(droplets)
    }

    async fn databases(&self, reading: Reading<'_>) -> Result<ResourcesRead, ProviderError> {
        let read = self.all_databases::<Element<schema::Database>>(reading).await?;
        Ok(read.map(|one| one.of_kind(ResourceKind::Database, DATABASES).map(database)))
    }

    /// A cluster that is deleted after the list was read counts as having no pools.
    async fn node_pools(&self, reading: Reading<'_>) -> Result<ResourcesRead, ProviderError> {
        let kind = ResourceKind::NodePool;
        let path = "/v2/kubernetes/clusters";
        let of_clusters = Reading { read: &|_| (), ..reading };
        let clusters = self.all::<Element<_>>(path, of_clusters).await?;
        let requests = clusters.requests;
        let (clusters, unread): (Vec<_>, Vec<_>) = clusters
            .items
            .into_iter()
            .map(|(at, cluster)| (at, cluster.of_kind(kind, path)))
            .partition(|(_, cluster)| cluster.is_ok());
        let clusters = clusters.into_iter().filter_map(|(_, cluster)| cluster.ok());
        let pools = pages::each(reading, AT_ONCE, clusters, async |cluster: schema::Cluster| {
            let path = format!("{path}/{}/node_pools", cluster.id.0);
            match self.0.read(&Request::get(path.as_str())).await {
                Ok(schema::NodePools { node_pools }) => {
                    let pools = node_pools.into_iter();
                    let pools = pools.map(|pool| pool.of_kind(kind, &path));
                    let pools = pools.map(|pool| Ok(node_pool(&cluster, pool?)));
                    Ok(pools.collect())
                }
                Err(ProviderError::NotFound(_)) => Ok(Vec::new()),
                Err(error) if error.is_of_account() => Err(error),
                Err(error) => Ok(vec![Err(Box::new(unread_pools(&cluster.name, error)))]),
            }
        });
        let mut pools = pools.await?;
        pools.requests += requests;
        let unread = unread.into_iter().filter_map(|(at, cluster)| {
            let unread = cluster.err()?;
            let name = unread.name.unwrap_or_default();
            Some((at, Err(Box::new(unread_pools(&name, unread.error)))))
        });
        pools.items.extend(unread);
        Ok(pools)
    }

    async fn one<T: DeserializeOwned>(&self, request: &Request) -> Result<T, ProviderError> {
        let found: schema::ItemResponse<_> = self.0.read(request).await?;
        Ok(found.item)
    }

    async fn all<T: DeserializeOwned>(
        &self,
        path: &str,
        reading: Reading<'_>,
    ) -> Result<Read<T>, ProviderError> {
        pages::all(reading, async |number| self.page(path, number).await).await
    }

    /// The list of databases is not paginated (DOSPEC). If it comes in pages all the same, all pages
    /// are read.
    async fn all_databases<T: DeserializeOwned>(
        &self,
        reading: Reading<'_>,
    ) -> Result<Read<T>, ProviderError> {
        let requested_at = reading.begin().ok_or(ProviderError::OutOfTime { read: 0, of: None })?;
        let whole: schema::Page<T> = self.0.read(&Request::get(DATABASES)).await?;
        let mut databases = Read::nothing();
        if whole.next_and_last().0.is_some() {
            databases = self.all(DATABASES, reading).await?;
            databases.requests += 1;
        } else {
            databases.add(reading, requested_at, whole.items);
        }
        Ok(databases)
    }

    /// Reads a whole list whose rows have no age of their own.
    async fn things<T: DeserializeOwned>(&self, path: &str) -> Result<Vec<T>, ProviderError> {
        let things = self.all::<T>(path, Reading::UNTIMED).await?;
        Ok(things.items.into_iter().map(|(_, thing)| thing).collect())
    }

    async fn page<T: DeserializeOwned>(
        &self,
        path: &str,
        number: u32,
    ) -> Result<Page<T>, ProviderError> {
        let and = if path.contains('?') { '&' } else { '?' };
        let request = Request::get(format!("{path}{and}per_page={PER_PAGE}&page={number}"));
        let page: schema::Page<T> = self.0.read(&request).await?;
        let (next, last) = page.next_and_last();
        // The links are full URLs; only the page numbers are used, so that the token goes nowhere
        // else. A link without a number becomes page 0, which follows no other page.
        let next = next.map(|link| page_number(link).unwrap_or_default());
        let last = last.and_then(page_number);
        Page::new(&request, number, page.items, next, last)
    }
}

fn catalog(sizes: Vec<schema::PlanSize>) -> Result<Catalog, NotAnAmount> {
    sizes.into_iter().map(plan).collect()
}

fn price_list(sizes: &[schema::PlanSize], now: Timestamp) -> Result<PriceList, NotAnAmount> {
    let mut list = PriceList::new(Currency::Usd, now, Provider::DigitalOcean.snapshot_price());
    for size in sizes {
        list.add(&size.slug, None, rate(size)?);
    }
    Ok(list)
}

fn unexpected_size(error: &NotAnAmount) -> ProviderError {
    Request::get(SIZES).not_understood(error.to_string())
}

fn unread_pools(cluster: &str, error: ProviderError) -> Unread {
    Unread { kind: ResourceKind::NodePool, name: Some(format!("of the cluster {cluster}")), error }
}

fn page_number(link: &str) -> Option<u32> {
    let (_, query) = link.split_once('?')?;
    query.split('&').find_map(|pair| pair.strip_prefix("page="))?.parse().ok()
}

fn droplet(droplet: schema::Droplet) -> Resource {
    let (power, busy) = match droplet.status.as_str() {
        "active" => (Power::Running, None),
        "off" => (Power::Stopped, None),
        "new" => (Power::Between, Some(Busy::Creating)),
        other => (Power::Between, Some(Busy::Other(format!("status is {other}")))),
    };
    let tags = droplet.tags.unwrap_or_default();
    let is_worker = tags.iter().any(|tag| is_worker_tag(tag));
    Resource {
        id: ResourceId::Droplet(DropletId(droplet.id)),
        name: droplet.name,
        cluster: None,
        tags,
        region: droplet.region.slug,
        power,
        busy: busy.or_else(|| droplet.locked.then(|| Busy::Other("locked".to_owned()))),
        size: Size::Machine(MachineSize {
            plan: droplet.size_slug,
            vcpus: droplet.vcpus,
            memory_mib: droplet.memory,
            disk_gib: droplet.disk,
            ..MachineSize::default()
        }),
        facts: MachineFacts {
            created_at: droplet.created_at,
            kubernetes_worker: is_worker,
            gpu: droplet.gpu_info.is_some(),
            scratch_disk: droplet.disk_info.iter().any(|disk| disk.kind == "scratch"),
            ..MachineFacts::default()
        },
        unsupported: is_worker.then(|| KUBERNETES_WORKER.to_owned()),
    }
}

/// A size costs the same in every region.
fn rate(size: &schema::PlanSize) -> Result<Rate, NotAnAmount> {
    let money = |price: f32| Money::parse(&price.to_string(), Currency::Usd);
    Ok(Rate { hourly: money(size.price_hourly)?, monthly: money(size.price_monthly)? })
}

fn plan(size: schema::PlanSize) -> Result<MachinePlan, NotAnAmount> {
    let Rate { hourly, monthly } = rate(&size)?;
    let offer = Offer { orderable: size.available, deprecated: false, monthly, hourly };
    let regions = size.regions.into_iter();
    Ok(MachinePlan {
        gpu: size.gpu_info.is_some() || size.slug.starts_with("gpu-"),
        slug: size.slug,
        vcpus: size.vcpus,
        memory_mib: size.memory,
        disk_gib: size.disk,
        architecture: None,
        network_storage: false,
        offers: regions.map(|region| (region, offer.clone())).collect(),
    })
}

fn database(database: schema::Database) -> Resource {
    // Both words are in use (DOSPEC, DOACTIVE).
    let is_idle = matches!(database.status.as_str(), "online" | "active");
    Resource {
        id: ResourceId::Database(DatabaseId(database.id.0)),
        name: database.name,
        cluster: None,
        tags: database.tags,
        region: database.region,
        power: Power::Running,
        busy: (!is_idle).then(|| Busy::Other(format!("status is {}", database.status))),
        facts: MachineFacts { created_at: database.created_at, ..MachineFacts::default() },
        unsupported: unsupported_engine(&database.engine),
        size: Size::Database(DatabaseSize {
            engine: database.engine,
            plan: database.size,
            nodes: database.num_nodes,
            storage_mib: database.storage_size_mib,
        }),
    }
}

fn node_pool(cluster: &schema::Cluster, pool: schema::NodePool) -> Resource {
    let busy = match cluster.status.state.as_str() {
        "running" | "degraded" | "error" => None,
        other => Some(Busy::Other(format!("cluster is {other}"))),
    };
    // An update replaces all tags: those that the token cannot read would be lost.
    let unreadable = pool.tags.is_none().then(|| {
        "the token may not read the pool's tags (scope tag:read), and an update would remove them"
            .to_owned()
    });
    let count = pool.count;
    let nodes = |fits: fn(&schema::Node) -> bool| {
        let counted = pool.nodes.iter().filter(|node| fits(node)).count();
        u32::try_from(counted).unwrap_or(u32::MAX)
    };
    let present = nodes(|_| true);
    let ready = nodes(|node| node.status.state == "running");
    let power = if present == 0 && count == 0 {
        Power::Stopped
    } else if present == count && ready == count {
        Power::Running
    } else {
        Power::Between
    };
    let cluster_id = ClusterId(cluster.id.0.clone());
    let mut tags = pool.tags.unwrap_or_default();
    tags.retain(|tag| !is_service_tag(tag, &cluster_id));
    Resource {
        id: ResourceId::NodePool(cluster_id, PoolId(pool.id.0)),
        name: pool.name,
        cluster: Some(Cluster { name: cluster.name.clone(), tags: cluster.tags.clone() }),
        tags,
        region: cluster.region.clone(),
        power,
        busy,
        size: Size::NodePool(NodePoolSize {
            plan: pool.size,
            count,
            autoscale: pool.autoscale.0,
            present,
            ready,
            labels: or_empty(pool.labels, json!({})),
            taints: or_empty(pool.taints, json!([])),
        }),
        // No earlier than its cluster, whose age is all that is listed.
        facts: MachineFacts { created_at: cluster.created_at, ..MachineFacts::default() },
        unsupported: unreadable,
    }
}

fn or_empty(value: Value, empty: Value) -> String {
    if value.is_null() { empty } else { value }.to_string()
}

/// Reports whether a tag is one that the service itself sets on every worker (DOSPEC).
fn is_worker_tag(tag: &str) -> bool {
    matches!(tag, "k8s" | "k8s-worker" | "k8s:worker")
        || tag.strip_prefix("k8s:").is_some_and(is_cluster_id)
}

/// Reports whether a tag is one that the service itself sets on every pool of the cluster (DOSPEC).
fn is_service_tag(tag: &str, cluster: &ClusterId) -> bool {
    is_worker_tag(tag) || tag.strip_prefix("k8s:") == Some(cluster.0.as_str())
}

/// Reports whether a text may be the id of a cluster: hexadecimal digits and hyphens.
fn is_cluster_id(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}

/// An unknown status does not prove that the action has ended: it counts as in progress.
fn logged(action: &schema::Action) -> LoggedAction {
    LoggedAction {
        id: ActionId(action.id),
        effect: match action.kind.as_str() {
            "power_on" => ActionEffect::Start,
            "shutdown" => ActionEffect::Shutdown,
            "power_off" => ActionEffect::PowerOff,
            "reboot" | "power_cycle" => ActionEffect::Reboot,
            "resize" => ActionEffect::Resize,
            // A new root password is written to the disk.
            "rebuild" | "restore" | "password_reset" => ActionEffect::Rebuild,
            "snapshot" => ActionEffect::Snapshot,
            _ => ActionEffect::Other,
        },
        state: match action.status {
            schema::ActionStatus::InProgress | schema::ActionStatus::Unknown => {
                ActionState::Running
            }
            schema::ActionStatus::Completed => ActionState::Done,
            schema::ActionStatus::Errored => ActionState::Failed,
        },
        started_at: action.started_at,
        ended_at: action.completed_at,
    }
}
