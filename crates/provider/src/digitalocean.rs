//! `DigitalOcean`: Droplets, managed databases and Kubernetes node pools.

use std::{collections::BTreeMap, sync::Arc};

use domain::{
    ClusterId, DatabaseId, DropletId, PoolId, ResourceId, ResourceKind,
    resource::{
        ActionEffect, ActionId, ActionState, Cluster, DatabaseSize, LoggedAction, Look,
        NodePoolSize, PlanCapacity, Power, Resource, Size,
    },
};
use jiff::Timestamp;
use secrecy::SecretString;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};

use crate::{
    change::{Accepted, Change},
    endpoint::Base,
    error::ProviderError,
    http::{Http, Request, parse},
    pacing::RateLimit,
    pages::{self, Listed, Page, Read, Reading},
    service::{KUBERNETES_WORKER, unsupported_engine},
};

/// The most that one page holds (DODESC).
const PER_PAGE: u32 = 200;

/// Where the plans for databases are listed.
const OPTIONS: &str = "/v2/databases/options";

/// The plans that are offered for databases, by engine; only an engine that is asked about is read
/// further.
#[derive(Debug, Clone, Default)]
pub struct DatabasePlans(BTreeMap<String, Value>);

impl DatabasePlans {
    /// The slug of the smallest plan for a database's engine and number of nodes in a region:
    /// least memory, then fewest vCPUs. None where none is offered.
    pub fn smallest(
        &self,
        size: &DatabaseSize,
        region: &str,
    ) -> Result<Option<String>, ProviderError> {
        let Some(engine) = self.0.get(&size.engine) else {
            return Ok(None);
        };
        let engine: schema::EngineOptions =
            serde_json::from_value(engine.clone()).map_err(|_| {
                let reason = format!("unexpected {} options", size.engine);
                Request::get(OPTIONS).not_understood(reason)
            })?;
        if !engine.regions.iter().any(|offered| offered == region) {
            return Ok(None);
        }
        Ok(engine
            .layouts
            .into_iter()
            .filter(|layout| layout.num_nodes == size.nodes)
            .flat_map(|layout| layout.sizes)
            .filter_map(|plan| Some((PlanCapacity::of_plan(&plan)?, plan.len(), plan)))
            // Of equal plans the one with the plainest name: `db-s-…` before `db-amd-…`.
            .min()
            .map(|(_, _, plan)| plan))
    }
}

/// A client for one account.
#[derive(Debug, Clone)]
pub struct Client {
    http: Arc<Http>,
}

impl Client {
    pub(crate) fn new(base: Base, token: SecretString, http: reqwest::Client) -> Self {
        let http = Http::new(http, base, token, schema::read_error);
        Self {
            http: Arc::new(http),
        }
    }

    pub(crate) fn rate(&self) -> Option<RateLimit> {
        self.http.rate()
    }

    pub(crate) fn requests(&self) -> u64 {
        self.http.requests()
    }

    pub(crate) async fn list(
        &self,
        kinds: &[ResourceKind],
        reading: Reading<'_>,
    ) -> Result<Listed, ProviderError> {
        let mut listed = Listed::default();
        if kinds.contains(&ResourceKind::Droplet) {
            let page = |number| self.page("/v2/droplets", number);
            let droplets = pages::all(reading, page).await?;
            let requests = droplets.requests;
            listed.add(ResourceKind::Droplet, droplets.looks(droplet), requests);
        }
        if kinds.contains(&ResourceKind::Database) {
            let databases = self.databases(reading).await?;
            let requests = databases.requests;
            listed.add(ResourceKind::Database, databases.looks(database), requests);
        }
        if kinds.contains(&ResourceKind::NodePool) {
            let (pools, requests) = self.node_pools(reading).await?;
            listed.add(ResourceKind::NodePool, pools, requests);
        }
        Ok(listed)
    }

    pub(crate) async fn try_reading(&self, kind: ResourceKind) -> Result<(), ProviderError> {
        let path = match kind {
            ResourceKind::Droplet => "/v2/droplets?per_page=1",
            // The list takes no page (DOSPEC), and its rows are few.
            ResourceKind::Database => "/v2/databases",
            ResourceKind::NodePool => "/v2/kubernetes/clusters?per_page=1",
            ResourceKind::Server => return Ok(()),
        };
        self.http.read::<IgnoredAny>(&Request::get(path)).await?;
        Ok(())
    }

    pub(crate) fn date(&self) -> Option<Timestamp> {
        self.http.date()
    }

    /// The list comes whole and takes no page (DOSPEC). One that has pages all the same is read
    /// page by page.
    async fn databases(
        &self,
        reading: Reading<'_>,
    ) -> Result<Read<schema::Database>, ProviderError> {
        let path = "/v2/databases";
        let requested_at = reading
            .begin()
            .ok_or(ProviderError::OutOfTime { read: 0, of: None })?;
        let whole: schema::Page<schema::Database> = self.http.read(&Request::get(path)).await?;
        let (next, _) = whole
            .links
            .map(schema::Links::next_and_last)
            .unwrap_or_default();
        if next.is_some() {
            let page = |number| self.page(path, number);
            let mut pages = pages::all(reading, page).await?;
            pages.requests += 1;
            return Ok(pages);
        }
        (reading.read)(whole.items.len());
        let items = whole.items.into_iter();
        Ok(Read {
            items: items.map(|item| (requested_at, item)).collect(),
            requests: 1,
        })
    }

    /// A cluster that is deleted between its list and its pools has no pools.
    async fn node_pools(&self, reading: Reading<'_>) -> Result<(Vec<Look>, u32), ProviderError> {
        let clusters = Reading {
            read: &|_| (),
            ..reading
        };
        let page = |number| self.page("/v2/kubernetes/clusters", number);
        let clusters = pages::all(clusters, page).await?;
        let of_clusters = clusters.requests;
        let clusters = clusters.items.into_iter().map(|(_, cluster)| cluster);
        let pools = pages::each(reading, clusters, |cluster: schema::Cluster| async move {
            let path = format!("/v2/kubernetes/clusters/{}/node_pools", cluster.id.0);
            match self.http.read(&Request::get(path)).await {
                Ok(schema::NodePools { node_pools }) => {
                    let pools = node_pools.into_iter();
                    Ok(pools.map(|pool| node_pool(&cluster, pool)).collect())
                }
                Err(ProviderError::NotFound(_)) => Ok(Vec::new()),
                Err(error) => Err(error),
            }
        });
        let pools = pools.await?;
        let requests = of_clusters + pools.requests;
        Ok((pools.looks(|pool| pool), requests))
    }

    pub(crate) async fn status(&self, id: &ResourceId) -> Result<Option<Resource>, ProviderError> {
        match id {
            ResourceId::Droplet(id) => {
                let request = Request::get(format!("/v2/droplets/{id}"));
                let found: schema::Found<_> = self.http.read(&request).await?;
                Ok(Some(droplet(found.item)))
            }
            ResourceId::Database(id) => {
                let request = Request::get(format!("/v2/databases/{id}"));
                let found: schema::Found<_> = self.http.read(&request).await?;
                Ok(Some(database(found.item)))
            }
            ResourceId::NodePool(cluster, pool) => {
                let request = Request::get(format!("/v2/kubernetes/clusters/{cluster}"));
                let found: schema::Found<schema::Cluster> = self.http.read(&request).await?;
                let mut cluster = found.item;
                let pools = cluster
                    .node_pools
                    .take()
                    .ok_or_else(|| request.not_understood("a cluster without its node pools"))?;
                let pool = pools.into_iter().find(|one| one.id.0 == pool.0);
                Ok(pool.map(|pool| node_pool(&cluster, pool)))
            }
            ResourceId::Server(_) => Err(foreign(id)),
        }
    }

    pub(crate) async fn actions(
        &self,
        id: &ResourceId,
        since: Timestamp,
    ) -> Result<Vec<LoggedAction>, ProviderError> {
        let ResourceId::Droplet(droplet) = id else {
            return Err(foreign(id));
        };
        let path = format!("/v2/droplets/{droplet}/actions");
        // No order is promised: reading stops early only on a page that is newest first.
        let is_enough = |page: &[schema::Action]| {
            let falls = page.is_sorted_by(|one, next| one.started_at >= next.started_at);
            let is_older =
                |action: &schema::Action| action.started_at.as_second() < since.as_second();
            falls && page.last().is_some_and(is_older)
        };
        let actions = self.pages(&path, is_enough).await?;
        Ok(actions.iter().map(logged).collect())
    }

    pub(crate) async fn database_plans(&self) -> Result<DatabasePlans, ProviderError> {
        let request = Request::get(OPTIONS);
        let schema::Options { options } = self.http.read(&request).await?;
        Ok(DatabasePlans(options))
    }

    pub(crate) async fn send(&self, change: &Change) -> Result<Accepted, ProviderError> {
        match change {
            Change::PowerOn(id) => self.act(id, "power_on").await,
            Change::Shutdown(id) => self.act(id, "shutdown").await,
            Change::PowerOff(id) => self.act(id, "power_off").await,
            Change::ResizeDatabase {
                id,
                plan,
                nodes,
                storage_mib,
            } => {
                let body = schema::Resize {
                    size: plan,
                    num_nodes: *nodes,
                    storage_size_mib: *storage_mib,
                };
                let request = Request::put(format!("/v2/databases/{id}/resize"), &body);
                let answer = self.http.send(&request).await?;
                // 202 without a body (DOSPEC); a page of HTML would be somebody else's answer.
                if !answer.is_empty() {
                    parse::<Value>(&request, &answer)?;
                }
                Ok(Accepted { action: None })
            }
            Change::ScaleNodePool { cluster, pool, .. } => {
                let path = format!("/v2/kubernetes/clusters/{cluster}/node_pools/{pool}");
                let body = pool_update(change).ok_or_else(|| foreign(&change.resource()))?;
                let request = Request::put(path, &body);
                let answer = self.http.send(&request).await?;
                parse::<schema::UpdatedPool>(&request, &answer)?;
                Ok(Accepted { action: None })
            }
        }
    }

    async fn act(&self, id: &ResourceId, word: &str) -> Result<Accepted, ProviderError> {
        let ResourceId::Droplet(droplet) = id else {
            return Err(foreign(id));
        };
        let path = format!("/v2/droplets/{droplet}/actions");
        let request = Request::post_json(path, &schema::Act { kind: word });
        let answer = self.http.send(&request).await?;
        let schema::Begun { action } = parse(&request, &answer)?;
        Ok(Accepted {
            action: Some(ActionId(action.id)),
        })
    }

    /// Reads pages until the last one, or until one that is enough.
    async fn pages<T: DeserializeOwned>(
        &self,
        path: &str,
        is_enough: impl Fn(&[T]) -> bool,
    ) -> Result<Vec<T>, ProviderError> {
        let mut items = Vec::new();
        let mut number = 1;
        loop {
            let page = self.page(path, number).await?;
            let is_last = is_enough(&page.items);
            items.extend(page.items);
            match page.next {
                Some(next) if !is_last => number = next,
                Some(_) | None => return Ok(items),
            }
        }
    }

    async fn page<T: DeserializeOwned>(
        &self,
        path: &str,
        number: u32,
    ) -> Result<Page<T>, ProviderError> {
        let request = Request::get(format!("{path}?per_page={PER_PAGE}&page={number}"));
        let page: schema::Page<T> = self.http.read(&request).await?;
        let (next, last) = page
            .links
            .map(schema::Links::next_and_last)
            .unwrap_or_default();
        // The links are whole addresses; only the numbers are taken, for the token goes nowhere
        // else. A number that does not grow would never end.
        let next = next.map(|link| {
            page_number(&link)
                .filter(|next| *next > number)
                .ok_or_else(|| request.not_understood("a next page that does not follow"))
        });
        Ok(Page {
            items: page.items,
            next: next.transpose()?,
            last: last.as_deref().and_then(page_number),
        })
    }
}

fn foreign(id: &ResourceId) -> ProviderError {
    ProviderError::Foreign {
        resource: id.clone(),
    }
}

fn page_number(link: &str) -> Option<u32> {
    let (_, query) = link.split_once('?')?;
    query
        .split('&')
        .find_map(|pair| pair.strip_prefix("page="))?
        .parse()
        .ok()
}

fn droplet(droplet: schema::Droplet) -> Resource {
    let (power, busy) = match droplet.status.as_str() {
        "active" => (Power::Running, None),
        "off" => (Power::Stopped, None),
        other => (Power::Between, Some(format!("status is {other}"))),
    };
    let is_worker = droplet.tags.iter().any(|tag| tag.starts_with("k8s"));
    Resource {
        id: ResourceId::Droplet(DropletId(droplet.id)),
        name: droplet.name,
        cluster: None,
        tags: droplet.tags,
        region: droplet.region.slug,
        power,
        busy: busy.or_else(|| droplet.locked.then(|| "locked".to_owned())),
        size: Size::Machine {
            plan: droplet.size_slug,
        },
        unsupported: is_worker.then(|| KUBERNETES_WORKER.to_owned()),
    }
}

fn database(database: schema::Database) -> Resource {
    let is_idle = database.status == "online";
    Resource {
        id: ResourceId::Database(DatabaseId(database.id.0)),
        name: database.name,
        cluster: None,
        tags: database.tags,
        region: database.region,
        power: Power::Running,
        busy: (!is_idle).then(|| format!("status is {}", database.status)),
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
        other => Some(format!("cluster is {other}")),
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
        cluster: Some(Cluster {
            name: cluster.name.clone(),
            tags: cluster.tags.clone(),
        }),
        tags,
        region: cluster.region.clone(),
        power,
        busy,
        size: Size::NodePool(NodePoolSize {
            plan: pool.size,
            count,
            autoscale: pool.autoscale,
            present,
            ready,
            labels: or_empty(pool.labels, json!({})),
            taints: or_empty(pool.taints, json!([])),
        }),
        unsupported: unreadable,
    }
}

fn or_empty(value: Value, empty: Value) -> String {
    if value.is_null() { empty } else { value }.to_string()
}

/// The tags that the service gives every pool of the cluster by itself (DOSPEC).
fn is_service_tag(tag: &str, cluster: &ClusterId) -> bool {
    matches!(tag, "k8s" | "k8s-worker" | "k8s:worker")
        || tag.strip_prefix("k8s:") == Some(cluster.0.as_str())
}

/// A pool's update, whole: what it leaves out would be removed (DOCTL), and a count of 0 or an
/// autoscaler that is off must be written to be understood (TFDO). None for other changes, and
/// for labels and taints that are not JSON.
fn pool_update(change: &Change) -> Option<schema::PoolUpdate<'_>> {
    let Change::ScaleNodePool {
        cluster,
        name,
        count,
        autoscale,
        tags,
        labels,
        taints,
        ..
    } = change
    else {
        return None;
    };
    Some(schema::PoolUpdate {
        name,
        count: *count,
        auto_scale: autoscale.is_some(),
        min_nodes: autoscale.map(|bounds| bounds.min),
        max_nodes: autoscale.map(|bounds| bounds.max),
        tags: tags
            .iter()
            .map(String::as_str)
            .filter(|tag| !is_service_tag(tag, cluster))
            .collect(),
        labels: serde_json::from_str(labels).ok()?,
        taints: serde_json::from_str(taints).ok()?,
    })
}

/// An unknown word proves no end: the action counts as under way.
fn logged(action: &schema::Action) -> LoggedAction {
    LoggedAction {
        id: ActionId(action.id),
        effect: match action.kind.as_str() {
            "power_on" => ActionEffect::Start,
            "shutdown" => ActionEffect::Shutdown,
            "power_off" => ActionEffect::PowerOff,
            "reboot" | "power_cycle" => ActionEffect::Reboot,
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
    }
}

/// What `DigitalOcean` writes, as far as we read it, and what we write to it (DOSPEC).
mod schema {
    use std::collections::{BTreeMap, BTreeSet};

    use domain::resource::AutoscaleBounds;
    use jiff::Timestamp;
    use serde::{Deserialize, Serialize};
    use serde_json::Value;

    use crate::http::{ErrorWords, null_is_empty};

    pub(super) fn read_error(body: &[u8]) -> Option<ErrorWords> {
        #[derive(Deserialize)]
        struct Error {
            id: String,
            message: String,
            request_id: Option<String>,
        }
        let error: Error = serde_json::from_slice(body).ok()?;
        Some(ErrorWords {
            code: error.id,
            message: error.message,
            request_id: error.request_id,
        })
    }

    #[derive(Deserialize)]
    pub(super) struct Page<T> {
        #[serde(
            alias = "droplets",
            alias = "databases",
            alias = "kubernetes_clusters",
            alias = "actions",
            deserialize_with = "null_is_empty",
            bound(deserialize = "T: Deserialize<'de>")
        )]
        pub(super) items: Vec<T>,
        pub(super) links: Option<Links>,
    }

    #[derive(Deserialize)]
    pub(super) struct Links {
        pages: Option<Pages>,
    }

    #[derive(Deserialize)]
    struct Pages {
        next: Option<String>,
        last: Option<String>,
    }

    impl Links {
        pub(super) fn next_and_last(self) -> (Option<String>, Option<String>) {
            self.pages
                .map(|pages| (pages.next, pages.last))
                .unwrap_or_default()
        }
    }

    #[derive(Deserialize)]
    pub(super) struct Found<T> {
        #[serde(alias = "droplet", alias = "database", alias = "kubernetes_cluster")]
        pub(super) item: T,
    }

    /// An id that can stand in a path as it is.
    #[derive(Deserialize)]
    #[serde(try_from = "String")]
    pub(super) struct Uuid(pub(super) String);

    impl TryFrom<String> for Uuid {
        type Error = &'static str;

        fn try_from(text: String) -> Result<Self, Self::Error> {
            let fits = |c: char| c.is_ascii_alphanumeric() || c == '-';
            if text.is_empty() || text.len() > 64 || !text.chars().all(fits) {
                return Err("not an id");
            }
            Ok(Self(text))
        }
    }

    #[derive(Deserialize)]
    pub(super) struct Droplet {
        pub(super) id: u64,
        pub(super) name: String,
        pub(super) status: String,
        pub(super) locked: bool,
        /// Absent without the scope `tag:read`.
        #[serde(default, deserialize_with = "null_is_empty")]
        pub(super) tags: BTreeSet<String>,
        pub(super) size_slug: String,
        pub(super) region: Region,
    }

    #[derive(Deserialize)]
    pub(super) struct Region {
        pub(super) slug: String,
    }

    #[derive(Deserialize)]
    pub(super) struct Database {
        pub(super) id: Uuid,
        pub(super) name: String,
        pub(super) engine: String,
        pub(super) num_nodes: u32,
        pub(super) size: String,
        pub(super) region: String,
        pub(super) status: String,
        pub(super) storage_size_mib: Option<u64>,
        #[serde(default, deserialize_with = "null_is_empty")]
        pub(super) tags: BTreeSet<String>,
    }

    #[derive(Deserialize)]
    pub(super) struct Options {
        /// By engine.
        pub(super) options: BTreeMap<String, Value>,
    }

    #[derive(Deserialize)]
    pub(super) struct EngineOptions {
        #[serde(default, deserialize_with = "null_is_empty")]
        pub(super) regions: Vec<String>,
        #[serde(default, deserialize_with = "null_is_empty")]
        pub(super) layouts: Vec<Layout>,
    }

    #[derive(Deserialize)]
    pub(super) struct Layout {
        pub(super) num_nodes: u32,
        #[serde(default, deserialize_with = "null_is_empty")]
        pub(super) sizes: Vec<String>,
    }

    #[derive(Deserialize)]
    pub(super) struct Cluster {
        pub(super) id: Uuid,
        pub(super) name: String,
        pub(super) region: String,
        #[serde(default, deserialize_with = "null_is_empty")]
        pub(super) tags: BTreeSet<String>,
        pub(super) status: State,
        pub(super) node_pools: Option<Vec<NodePool>>,
    }

    #[derive(Deserialize)]
    pub(super) struct State {
        pub(super) state: String,
    }

    #[derive(Deserialize)]
    pub(super) struct NodePools {
        #[serde(deserialize_with = "null_is_empty")]
        pub(super) node_pools: Vec<NodePool>,
    }

    #[derive(Deserialize)]
    #[serde(try_from = "WrittenPool")]
    pub(super) struct NodePool {
        pub(super) id: Uuid,
        pub(super) name: String,
        /// The slug of its nodes' plan.
        pub(super) size: String,
        pub(super) count: u32,
        pub(super) autoscale: Option<AutoscaleBounds>,
        /// None without the scope `tag:read`.
        pub(super) tags: Option<BTreeSet<String>>,
        pub(super) labels: Value,
        pub(super) taints: Value,
        pub(super) nodes: Vec<Node>,
    }

    #[derive(Deserialize)]
    struct WrittenPool {
        id: Uuid,
        name: String,
        #[serde(default)]
        size: String,
        count: u32,
        #[serde(default)]
        auto_scale: bool,
        min_nodes: Option<u32>,
        max_nodes: Option<u32>,
        tags: Option<BTreeSet<String>>,
        #[serde(default)]
        labels: Value,
        #[serde(default)]
        taints: Value,
        #[serde(default, deserialize_with = "null_is_empty")]
        nodes: Vec<Node>,
    }

    /// With the autoscaler on, bounds that are not written cannot be put back later.
    impl TryFrom<WrittenPool> for NodePool {
        type Error = &'static str;

        fn try_from(pool: WrittenPool) -> Result<Self, Self::Error> {
            let autoscale = match (pool.auto_scale, pool.min_nodes, pool.max_nodes) {
                (false, _, _) => None,
                (true, Some(min), Some(max)) => Some(AutoscaleBounds { min, max }),
                (true, _, _) => return Err("an autoscaler without bounds"),
            };
            Ok(Self {
                id: pool.id,
                name: pool.name,
                size: pool.size,
                count: pool.count,
                autoscale,
                tags: pool.tags,
                labels: pool.labels,
                taints: pool.taints,
                nodes: pool.nodes,
            })
        }
    }

    #[derive(Deserialize)]
    pub(super) struct Node {
        pub(super) status: State,
    }

    #[derive(Serialize)]
    pub(super) struct Act<'a> {
        #[serde(rename = "type")]
        pub(super) kind: &'a str,
    }

    #[derive(Serialize)]
    pub(super) struct Resize<'a> {
        pub(super) size: &'a str,
        pub(super) num_nodes: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub(super) storage_size_mib: Option<u64>,
    }

    #[derive(Serialize)]
    pub(super) struct PoolUpdate<'a> {
        pub(super) name: &'a str,
        pub(super) count: u32,
        pub(super) auto_scale: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub(super) min_nodes: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub(super) max_nodes: Option<u32>,
        pub(super) tags: Vec<&'a str>,
        pub(super) labels: Value,
        pub(super) taints: Value,
    }

    #[derive(Deserialize)]
    pub(super) struct UpdatedPool {
        #[expect(dead_code, reason = "its presence is what makes the answer usable")]
        node_pool: NodePool,
    }

    #[derive(Deserialize)]
    pub(super) struct Begun {
        pub(super) action: BegunAction,
    }

    #[derive(Deserialize)]
    pub(super) struct BegunAction {
        pub(super) id: u64,
    }

    #[derive(Deserialize)]
    pub(super) struct Action {
        pub(super) id: u64,
        #[serde(rename = "type")]
        pub(super) kind: String,
        pub(super) status: ActionStatus,
        pub(super) started_at: Timestamp,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub(super) enum ActionStatus {
        InProgress,
        Completed,
        Errored,
        #[serde(other)]
        Unknown,
    }
}
