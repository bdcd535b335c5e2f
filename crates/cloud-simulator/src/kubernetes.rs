//! Kubernetes clusters: node pools, their nodes, and the Droplets under them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    answer::{Refusal, timestamp},
    catalog,
    droplets::Droplet,
    fleet::{self, Bounds, ClusterStatus, DropletStatus, Taint},
    request::given,
    world::{Account, Effect, Timeline},
};

/// A cluster as it is.
#[derive(Debug, Serialize)]
pub(crate) struct Cluster {
    #[serde(flatten)]
    pub(crate) description: fleet::Cluster,
    #[serde(skip)]
    pub(crate) pools: Vec<Pool>,
    pub(crate) created: Timestamp,
}

/// A node pool as it is.
#[derive(Debug, Serialize)]
pub(crate) struct Pool {
    #[serde(flatten)]
    pub(crate) description: fleet::Pool,
    /// Oldest first.
    pub(crate) nodes: Vec<Node>,
}

/// A node; its id is never used again.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Node {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) state: NodeState,
    pub(crate) droplet: u64,
    pub(crate) created: Timestamp,
    pub(crate) updated: Timestamp,
}

/// A node's state (DOSPEC).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum NodeState {
    Provisioning,
    Running,
    Draining,
    Deleting,
}

/// What happens to a node as time passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeStep {
    Runs,
    IsDeleted,
    IsGone,
}

/// What an update of a pool asks for. What is left out of `tags`, `labels` and `taints` is
/// removed (DOCTL); left out, `auto_scale` and its bounds stay as they are, which is an
/// assumption.
#[derive(Debug, Clone)]
pub(crate) struct Update {
    pub(crate) name: String,
    pub(crate) count: u32,
    pub(crate) autoscale: Autoscale,
    pub(crate) tags: Vec<String>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) taints: Vec<Taint>,
}

/// What an update says of the autoscaler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Autoscale {
    Keep,
    Off,
    On { min: Option<u32>, max: Option<u32> },
}

fn is_service_owned(tag: &str) -> bool {
    tag == "k8s" || tag.starts_with("k8s:")
}

impl Update {
    /// `name` and `count` must be there (DOSPEC). A `null` counts as left out.
    pub(crate) fn from_json(body: &Value) -> Result<Self, Refusal> {
        let refuse = |field: &str, why: &str| Refusal::unprocessable(format!("{field} {why}"));
        let number = |field: &str| {
            let number = given(body, field).map(|value| {
                let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
                number.ok_or_else(|| refuse(field, "must be a whole number from 0"))
            });
            number.transpose()
        };
        let name = body["name"].as_str().filter(|name| !name.is_empty());
        let name = name
            .ok_or_else(|| refuse("name", "is required"))?
            .to_owned();
        let count = number("count")?.ok_or_else(|| refuse("count", "is required"))?;
        let autoscale = match given(body, "auto_scale").map(Value::as_bool) {
            None => Autoscale::Keep,
            Some(Some(false)) => Autoscale::Off,
            Some(Some(true)) => Autoscale::On {
                min: number("min_nodes")?,
                max: number("max_nodes")?,
            },
            Some(None) => return Err(refuse("auto_scale", "must be true or false")),
        };
        let mut tags: Vec<String> = list(body, "tags")?;
        tags.retain(|tag| !is_service_owned(tag));
        let (labels, taints) = (list(body, "labels")?, list(body, "taints")?);
        Ok(Self {
            name,
            count,
            autoscale,
            tags,
            labels,
            taints,
        })
    }
}

/// A list or object of a body; empty where it is left out.
fn list<T: Default + serde::de::DeserializeOwned>(body: &Value, field: &str) -> Result<T, Refusal> {
    given(body, field).map_or(Ok(T::default()), |value| {
        serde_json::from_value(value.clone())
            .map_err(|_| Refusal::unprocessable(format!("{field} is malformed")))
    })
}

impl Node {
    fn stays(&self) -> bool {
        matches!(self.state, NodeState::Provisioning | NodeState::Running)
    }

    fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "name": self.name,
            "status": {"state": self.state},
            "droplet_id": self.droplet.to_string(),
            "created_at": timestamp(self.created),
            "updated_at": timestamp(self.updated),
        })
    }
}

impl Pool {
    /// The autoscaler's bounds after an update, or why not. The text about the least number is
    /// the one of doctl #1516; the one about a count of zero is an assumption.
    fn bounds_after(&self, update: &Update) -> Result<Option<Bounds>, Refusal> {
        let now = self.description.autoscale;
        let bounds = match update.autoscale {
            Autoscale::Keep => now,
            Autoscale::Off => None,
            Autoscale::On { min, max } => {
                let min = min.or(now.map(|now| now.min)).unwrap_or(1);
                let max = max.or(now.map(|now| now.max)).unwrap_or(0);
                if max == 0 || min > max {
                    let message = "max nodes must be greater than or equal to min nodes";
                    return Err(Refusal::unprocessable(message));
                }
                Some(Bounds { min, max })
            }
        };
        if self.description.refuses_zero {
            let zero = match bounds {
                Some(bounds) => (bounds.min == 0).then_some("min nodes"),
                None => (update.count == 0).then_some("count"),
            };
            if let Some(what) = zero {
                let message = format!("{what} must be greater than or equal to 1");
                return Err(Refusal::unprocessable(message));
            }
        }
        Ok(bounds)
    }

    /// Its own tags and those that the service adds (DOSPEC).
    fn all_tags(&self, cluster_id: &str) -> Vec<String> {
        let service = [
            "k8s".to_owned(),
            format!("k8s:{cluster_id}"),
            "k8s:worker".to_owned(),
        ];
        self.description
            .tags
            .iter()
            .cloned()
            .chain(service)
            .collect()
    }

    /// The pool as the API shows it. Without the autoscaler its bounds read 0 (DOSPEC).
    pub(crate) fn to_json(&self, cluster_id: &str) -> Value {
        let fleet::Pool {
            id,
            name,
            size,
            count,
            autoscale,
            labels,
            taints,
            ..
        } = &self.description;
        json!({
            "id": id,
            "name": name,
            "size": size,
            "count": count,
            "tags": self.all_tags(cluster_id),
            "labels": if labels.is_empty() { Value::Null } else { json!(labels) },
            "taints": taints,
            "auto_scale": autoscale.is_some(),
            "min_nodes": autoscale.map_or(0, |bounds| bounds.min),
            "max_nodes": autoscale.map_or(0, |bounds| bounds.max),
            "nodes": self.nodes.iter().map(Node::to_json).collect::<Vec<_>>(),
        })
    }
}

impl Cluster {
    pub(crate) fn pool(&self, id: &str) -> Option<&Pool> {
        self.pools.iter().find(|pool| pool.description.id == id)
    }

    pub(crate) fn pool_mut(&mut self, id: &str) -> Option<&mut Pool> {
        self.pools.iter_mut().find(|pool| pool.description.id == id)
    }

    /// The cluster as the API shows it.
    pub(crate) fn to_json(&self) -> Value {
        let fleet::Cluster {
            id,
            name,
            region,
            version,
            tags,
            ha,
            status,
            ..
        } = &self.description;
        let service = ["k8s".to_owned(), format!("k8s:{id}")];
        let tags: Vec<_> = tags.iter().cloned().chain(service).collect();
        let mut fields = json!({
            "id": id,
            "name": name,
            "region": region,
            "tags": tags,
            "node_pools": self.pools.iter().map(|pool| pool.to_json(id)).collect::<Vec<_>>(),
            "status": {"state": status, "message": ""},
            "created_at": timestamp(self.created),
            "updated_at": timestamp(self.created),
            "ha": ha,
        });
        if let Some(version) = version {
            fields["version"] = json!(version);
        }
        catalog::with(&catalog::CLUSTER, fields)
    }
}

/// Adds a cluster whose nodes run.
pub(crate) fn create(account: &mut Account, timeline: &mut Timeline, mut fleet: fleet::Cluster) {
    let id = fleet.id.clone();
    let pools = std::mem::take(&mut fleet.pools);
    let pool_of = |description| Pool {
        description,
        nodes: Vec::new(),
    };
    let cluster = Cluster {
        description: fleet,
        pools: pools.into_iter().map(pool_of).collect(),
        created: timeline.now(),
    };
    let wanted: Vec<_> = cluster
        .pools
        .iter()
        .map(|pool| (pool.description.id.clone(), pool.description.count))
        .collect();
    account.clusters.insert(id.clone(), cluster);
    for (pool, count) in wanted {
        for _ in 0..count {
            add_node(account, timeline, (&id, &pool), NodeState::Running);
        }
    }
}

/// Changes a pool. Its nodes follow with time.
pub(crate) fn update(
    account: &mut Account,
    timeline: &mut Timeline,
    (cluster_id, pool_id): (&str, &str),
    update: Update,
) -> Result<Value, Refusal> {
    let cluster = account
        .clusters
        .get_mut(cluster_id)
        .ok_or_else(Refusal::not_found)?;
    let status = cluster.description.status;
    let pool = cluster.pool_mut(pool_id).ok_or_else(Refusal::not_found)?;
    // Which states take no change, and with which status, is an assumption.
    if !matches!(status, ClusterStatus::Running | ClusterStatus::Degraded) {
        return Err(Refusal::new(
            409,
            "conflict",
            "the cluster is being changed",
        ));
    }
    let bounds = pool.bounds_after(&update)?;
    let description = &mut pool.description;
    // With the autoscaler on, a count outside its bounds becomes the least (TFDO).
    description.count = match bounds {
        Some(bounds) if !(bounds.min..=bounds.max).contains(&update.count) => bounds.min,
        Some(_) | None => update.count,
    };
    description.autoscale = bounds;
    description.name = update.name;
    description.tags = update.tags;
    description.labels = update.labels;
    description.taints = update.taints;
    follow_count(account, timeline, (cluster_id, pool_id));
    retag_workers(account, cluster_id);
    let cluster = account.clusters.get(cluster_id);
    let pool = cluster
        .and_then(|cluster| cluster.pool(pool_id))
        .ok_or_else(Refusal::not_found)?;
    Ok(pool.to_json(cluster_id))
}

/// Adds or drains as many nodes as the count says.
fn follow_count(account: &mut Account, timeline: &mut Timeline, ids: (&str, &str)) {
    let (cluster_id, pool_id) = ids;
    let pool = account
        .clusters
        .get_mut(cluster_id)
        .and_then(|found| found.pool_mut(pool_id));
    let Some(pool) = pool else { return };
    let wanted = pool.description.count as usize;
    let staying = pool.nodes.iter().filter(|node| node.stays()).count();
    let (scale_up, scale_down) = (pool.description.scale_up, pool.description.scale_down);
    let now = timeline.now();
    let mut drained = Vec::new();
    let leaving = pool.nodes.iter_mut().rev().filter(|node| node.stays());
    for node in leaving.take(staying.saturating_sub(wanted)) {
        node.state = NodeState::Draining;
        node.updated = now;
        drained.push(node.id.clone());
    }
    let step = |node: String, step| Effect::Node {
        cluster: cluster_id.to_owned(),
        pool: pool_id.to_owned(),
        node,
        step,
    };
    for node in drained {
        timeline.after(
            account,
            scale_down * 2 / 3,
            step(node.clone(), NodeStep::IsDeleted),
        );
        timeline.after(account, scale_down, step(node, NodeStep::IsGone));
    }
    for _ in staying..wanted {
        let node = add_node(account, timeline, ids, NodeState::Provisioning);
        timeline.after(account, scale_up, step(node, NodeStep::Runs));
    }
}

/// Adds a node and its Droplet, and returns the node's id.
fn add_node(
    account: &mut Account,
    timeline: &mut Timeline,
    (cluster_id, pool_id): (&str, &str),
    state: NodeState,
) -> String {
    let (id, droplet_id, now) = (timeline.uuid(), timeline.number(), timeline.now());
    let cluster = account.clusters.get_mut(cluster_id);
    let Some(cluster) = cluster else { return id };
    let region = cluster.description.region.clone();
    let Some(pool) = cluster.pool_mut(pool_id) else {
        return id;
    };
    let name = format!("{}-{}", pool.description.name, &id[id.len() - 5..]);
    let status = match state {
        NodeState::Provisioning => DropletStatus::New,
        NodeState::Running | NodeState::Draining | NodeState::Deleting => DropletStatus::Active,
    };
    let description = fleet::Droplet {
        account: None,
        id: droplet_id,
        name: name.clone(),
        tags: pool.all_tags(cluster_id),
        region,
        size: pool.description.size.clone(),
        status,
        ignores_shutdown: false,
        power_action: jiff::SignedDuration::from_secs(10),
        shutdown: jiff::SignedDuration::from_secs(20),
    };
    let mut droplet = Droplet::new(description, now);
    droplet.worker_of = Some((cluster_id.to_owned(), pool_id.to_owned()));
    let node = Node {
        id: id.clone(),
        name,
        state,
        droplet: droplet_id,
        created: now,
        updated: now,
    };
    pool.nodes.push(node);
    account.droplets.insert(droplet_id, droplet);
    id
}

/// Gives every worker of a cluster its pool's tags.
pub(crate) fn retag_workers(account: &mut Account, cluster_id: &str) {
    let Account {
        clusters, droplets, ..
    } = account;
    let pools = clusters
        .get(cluster_id)
        .into_iter()
        .flat_map(|cluster| &cluster.pools);
    for pool in pools {
        for node in &pool.nodes {
            if let Some(droplet) = droplets.get_mut(&node.droplet) {
                droplet.description.tags = pool.all_tags(cluster_id);
            }
        }
    }
}

/// Time has passed for a node.
pub(crate) fn node_steps(
    account: &mut Account,
    now: Timestamp,
    (cluster_id, pool_id, node_id): (&str, &str, &str),
    step: NodeStep,
) {
    let Account {
        clusters, droplets, ..
    } = account;
    let pool = clusters
        .get_mut(cluster_id)
        .and_then(|cluster| cluster.pool_mut(pool_id));
    let Some(pool) = pool else { return };
    let Some(node) = pool.nodes.iter_mut().find(|node| node.id == node_id) else {
        return;
    };
    node.updated = now;
    match step {
        NodeStep::Runs if node.state == NodeState::Provisioning => {
            node.state = NodeState::Running;
            if let Some(droplet) = droplets.get_mut(&node.droplet) {
                droplet.set_status(DropletStatus::Active);
            }
        }
        // It was drained before it ran.
        NodeStep::Runs => {}
        NodeStep::IsDeleted => node.state = NodeState::Deleting,
        NodeStep::IsGone => {
            droplets.remove(&node.droplet);
            pool.nodes.retain(|node| node.id != node_id);
        }
    }
}
