//! Kubernetes clusters: how a fleet describes one, and the state of its node pools and their nodes.

use std::collections::BTreeMap;

use domain::{AccountName, ClusterId, PoolId, ResourceId};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    answer::{Refusal, timestamp},
    catalog, defaults,
    ledger::Meter,
};

/// A cluster: its description in a fleet, then its state.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cluster {
    /// May be left out if its cloud has only one account.
    #[serde(skip_serializing)]
    pub(crate) account: Option<AccountName>,
    pub(crate) id: String,
    pub(crate) name: String,
    #[serde(default = "defaults::region")]
    pub(crate) region: String,
    /// Defaults to the newest.
    version: Option<String>,
    /// Its tags, without those that the service adds.
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    /// Whether its control plane is highly available.
    #[serde(default)]
    ha: bool,
    #[serde(default)]
    pub(crate) status: ClusterStatus,
    #[serde(default, skip_serializing)]
    pub(crate) pools: Vec<Pool>,

    #[serde(skip_deserializing)]
    pub(crate) created: Timestamp,
}

/// A cluster's status, in the provider's words (DOSPEC).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ClusterStatus {
    #[default]
    Running,
    Provisioning,
    Degraded,
    Error,
    Deleted,
    Upgrading,
    Deleting,
}

/// A node pool: its description in a fleet, then its nodes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pool {
    pub(crate) id: String,
    pub(crate) name: String,
    #[serde(default = "defaults::node_size")]
    pub(crate) size: String,
    /// The desired number of nodes.
    pub(crate) count: u32,
    /// The autoscaler's bounds; `None` if it is off.
    pub(crate) autoscale: Option<Bounds>,
    /// Its tags, without those that the service adds.
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) taints: Vec<Taint>,
    #[serde(default)]
    refuses_zero: bool,
    /// How long a new node takes until it runs.
    #[serde(default = "defaults::seconds::<180>", skip_serializing)]
    pub(crate) scale_up: SignedDuration,
    /// How long it takes to remove a node; two thirds of it is draining.
    #[serde(default = "defaults::seconds::<90>", skip_serializing)]
    pub(crate) scale_down: SignedDuration,

    /// Oldest first.
    #[serde(skip_deserializing)]
    pub(crate) nodes: Vec<Node>,
}

/// The bounds within which a pool is autoscaled.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bounds {
    pub(crate) min: u32,
    pub(crate) max: u32,
}

/// A taint on a pool's nodes (DOSPEC).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Taint {
    key: String,
    #[serde(default)]
    value: String,
    effect: TaintEffect,
}

/// What a taint does to pods that do not tolerate it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum TaintEffect {
    NoSchedule,
    PreferNoSchedule,
    NoExecute,
}

/// A node; its id is never reused.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Node {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) state: NodeState,
    pub(crate) droplet: u64,
    pub(crate) created: Timestamp,
    pub(crate) updated: Timestamp,
}

/// A node's state, in the provider's words (DOSPEC).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum NodeState {
    Provisioning,
    Running,
    Draining,
    Deleting,
}

/// An update of a pool: the body of its request. `name` and `count` are required (DOSPEC). If
/// `tags`, `labels` or `taints` are left out or null, they are removed (DOCTL). If `auto_scale` or
/// a bound is left out, it stays unchanged, which is an assumption.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Update {
    pub(crate) name: String,
    pub(crate) count: u32,
    pub(crate) auto_scale: Option<bool>,
    pub(crate) min_nodes: Option<u32>,
    pub(crate) max_nodes: Option<u32>,
    pub(crate) tags: Option<Vec<String>>,
    pub(crate) labels: Option<BTreeMap<String, String>>,
    pub(crate) taints: Option<Vec<Taint>>,
}

impl Node {
    pub(crate) fn set_state(&mut self, state: NodeState, now: Timestamp) {
        self.state = state;
        self.updated = now;
    }

    pub(crate) fn stays(&self) -> bool {
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
    /// An update that changes nothing.
    pub(crate) fn as_update(&self) -> Update {
        Update {
            name: self.name.clone(),
            count: self.count,
            tags: Some(self.tags.clone()),
            labels: Some(self.labels.clone()),
            taints: Some(self.taints.clone()),
            ..Update::default()
        }
    }

    /// The autoscaler's bounds after an update, or why it is refused. The message about the minimum
    /// is the one of doctl #1516; the one about a count of zero is an assumption.
    fn bounds_after(&self, update: &Update) -> Result<Option<Bounds>, Refusal> {
        let now = self.autoscale;
        let bounds = match update.auto_scale {
            None => now,
            Some(false) => None,
            Some(true) => {
                let min = update.min_nodes.or(now.map(|now| now.min)).unwrap_or(1);
                let max = update.max_nodes.or(now.map(|now| now.max)).unwrap_or(0);
                Refusal::unprocessable("max nodes must be greater than or equal to min nodes")
                    .when(max == 0 || min > max)?;
                Some(Bounds { min, max })
            }
        };
        let (what, least) = match bounds {
            Some(bounds) => ("min nodes", bounds.min),
            None => ("count", update.count),
        };
        if self.refuses_zero && least == 0 {
            let message = format!("{what} must be greater than or equal to 1");
            return Err(Refusal::unprocessable(message));
        }
        Ok(bounds)
    }

    pub(crate) fn change(&mut self, update: Update) -> Result<(), Refusal> {
        Refusal::unprocessable("name is required").when(update.name.is_empty())?;
        let bounds = self.bounds_after(&update)?;
        // With the autoscaler on, a count outside its bounds becomes the minimum (TFDO).
        self.count = match bounds {
            Some(bounds) if !(bounds.min..=bounds.max).contains(&update.count) => bounds.min,
            Some(_) | None => update.count,
        };
        self.autoscale = bounds;
        self.name = update.name;
        self.tags = update.tags.unwrap_or_default();
        // Clients send the service's tags back along with their own.
        self.tags.retain(|tag| tag != "k8s" && !tag.starts_with("k8s:"));
        self.labels = update.labels.unwrap_or_default();
        self.taints = update.taints.unwrap_or_default();
        Ok(())
    }

    /// Its own tags and those that the service adds (DOSPEC).
    pub(crate) fn all_tags(&self, cluster_id: &str) -> Vec<String> {
        let mut tags = self.tags.clone();
        tags.extend(service_tags(cluster_id));
        tags.push("k8s:worker".to_owned());
        tags
    }

    /// The pool as the API shows it. Without the autoscaler, its bounds are 0 (DOSPEC).
    pub(crate) fn to_json(&self, cluster_id: &str) -> Value {
        json!({
            "id": self.id,
            "name": self.name,
            "size": self.size,
            "count": self.count,
            "tags": self.all_tags(cluster_id),
            "labels": if self.labels.is_empty() { Value::Null } else { json!(self.labels) },
            "taints": self.taints,
            "auto_scale": self.autoscale.is_some(),
            "min_nodes": self.autoscale.map_or(0, |bounds| bounds.min),
            "max_nodes": self.autoscale.map_or(0, |bounds| bounds.max),
            "nodes": self.nodes.iter().map(Node::to_json).collect::<Vec<_>>(),
        })
    }
}

fn service_tags(cluster_id: &str) -> [String; 2] {
    ["k8s".to_owned(), format!("k8s:{cluster_id}")]
}

impl Cluster {
    pub(crate) fn pool(&self, id: &str) -> Option<&Pool> {
        self.pools.iter().find(|pool| pool.id == id)
    }

    pub(crate) fn pool_mut(&mut self, id: &str) -> Option<&mut Pool> {
        self.pools.iter_mut().find(|pool| pool.id == id)
    }

    /// The cluster as the API shows it.
    pub(crate) fn to_json(&self) -> Value {
        let Self { id, pools, .. } = self;
        let mut tags = self.tags.clone();
        tags.extend(service_tags(id));
        let mut fields = json!({
            "id": id,
            "name": self.name,
            "region": self.region,
            "tags": tags,
            "node_pools": pools.iter().map(|pool| pool.to_json(id)).collect::<Vec<_>>(),
            "status": {"state": self.status, "message": ""},
            "created_at": timestamp(self.created),
            "updated_at": timestamp(self.created),
            "ha": self.ha,
        });
        if let Some(version) = &self.version {
            fields["version"] = json!(version);
        }
        catalog::with(&catalog::CLUSTER, fields)
    }
}

/// The ids of a cluster and of one of its pools.
pub(crate) type PoolPath<'a> = (&'a str, &'a str);

/// The meter a pool's node is billed under.
pub(crate) fn meter((cluster, pool): PoolPath<'_>, droplet: u64) -> Meter {
    let (cluster, pool) = (ClusterId(cluster.to_owned()), PoolId(pool.to_owned()));
    (ResourceId::NodePool(cluster, pool), droplet)
}
