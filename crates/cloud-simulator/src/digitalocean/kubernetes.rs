//! How the nodes of a Kubernetes pool, and the Droplets under them, follow its count.

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    account::{Account, Timeline},
    answer::Refusal,
    droplets::{Droplet, DropletStatus},
    kubernetes::{Cluster, ClusterStatus, Node, NodeState, Pool, PoolPath, Update, meter},
    ledger::Life,
};

/// Adds a cluster whose nodes are running.
pub(crate) fn create(account: &mut Account, timeline: &mut Timeline, mut cluster: Cluster) {
    cluster.created = timeline.now();
    let pools = cluster.pools.iter();
    let counts: Vec<_> = pools.map(|pool| (pool.id.clone(), pool.count)).collect();
    let id = cluster.id.clone();
    account.clusters.insert(id.clone(), cluster);
    for (pool, count) in counts {
        for _ in 0..count {
            add_node(account, timeline, (&id, &pool), NodeState::Running);
        }
    }
}

/// Updates a pool. Its nodes follow over time.
pub(crate) fn update(
    account: &mut Account,
    timeline: &mut Timeline,
    (cluster_id, pool_id): PoolPath<'_>,
    update: Update,
) -> Result<Value, Refusal> {
    let cluster = account.clusters.get_mut(cluster_id);
    let cluster = cluster.ok_or_else(Refusal::not_found)?;
    let status = cluster.status;
    let pool = cluster.pool_mut(pool_id).ok_or_else(Refusal::not_found)?;
    // Which states refuse a change, and with which status, is an assumption.
    Refusal::new(409, "conflict", "the cluster is being changed")
        .when(!matches!(status, ClusterStatus::Running | ClusterStatus::Degraded))?;
    pool.change(update)?;
    follow_count(account, timeline, (cluster_id, pool_id));
    let Account { clusters, droplets, .. } = account;
    let cluster = clusters.get(cluster_id).ok_or_else(Refusal::not_found)?;
    let pool = cluster.pool(pool_id).ok_or_else(Refusal::not_found)?;
    for node in &pool.nodes {
        if let Some(worker) = droplets.get_mut(&node.droplet) {
            worker.guest.invalidate_cache();
            worker.tags = pool.all_tags(cluster_id);
        }
    }
    Ok(pool.to_json(cluster_id))
}

/// Adds or drains nodes until there are as many as the count says.
fn follow_count(account: &mut Account, timeline: &mut Timeline, path: PoolPath<'_>) {
    let (owner, now) = (account.index, timeline.now());
    let Some(pool) = pool_of(account, path) else {
        return;
    };
    let wanted = pool.count as usize;
    let staying = pool.nodes.iter().filter(|node| node.stays()).count();
    let (scale_up, scale_down) = (pool.scale_up, pool.scale_down);
    let leaving = pool.nodes.iter_mut().rev().filter(|node| node.stays());
    for node in leaving.take(staying.saturating_sub(wanted)) {
        node.set_state(NodeState::Draining, now);
        let place = Place::of(path, &node.id);
        let gone = place.clone();
        timeline.after(owner, scale_down * 2 / 3, move |account, timeline| {
            if let Some(node) = place.node(account) {
                node.set_state(NodeState::Deleting, timeline.now());
            }
        });
        timeline.after(owner, scale_down, move |account, timeline| {
            gone.remove(account, timeline.now());
        });
    }
    for _ in staying..wanted {
        let id = add_node(account, timeline, path, NodeState::Provisioning);
        let place = Place::of(path, &id);
        timeline.after(owner, scale_up, move |account, timeline| {
            place.run(account, timeline.now());
        });
    }
}

fn pool_of<'a>(account: &'a mut Account, path: PoolPath<'_>) -> Option<&'a mut Pool> {
    account.clusters.get_mut(path.0)?.pool_mut(path.1)
}

/// Finds a node again once a scheduled effect is due.
#[derive(Debug, Clone)]
struct Place {
    cluster: String,
    pool: String,
    node: String,
}

impl Place {
    fn of((cluster, pool): PoolPath<'_>, node: &str) -> Self {
        Self { cluster: cluster.to_owned(), pool: pool.to_owned(), node: node.to_owned() }
    }

    fn node<'a>(&self, account: &'a mut Account) -> Option<&'a mut Node> {
        let pool = pool_of(account, (&self.cluster, &self.pool))?;
        pool.nodes.iter_mut().find(|node| node.id == self.node)
    }

    /// Marks the node as running, unless it has been drained before.
    fn run(&self, account: &mut Account, now: Timestamp) {
        let node = self.node(account);
        let Some(node) = node.filter(|node| node.state == NodeState::Provisioning) else {
            return;
        };
        node.set_state(NodeState::Running, now);
        let worker = node.droplet;
        if let Some(droplet) = account.droplet(worker) {
            droplet.set_status(DropletStatus::Active);
        }
    }

    fn remove(&self, account: &mut Account, now: Timestamp) {
        if let Some(worker) = self.node(account).map(|node| node.droplet) {
            account.droplets.remove(&worker);
            account.detach_all(worker, now);
            let meter = meter((&self.cluster, &self.pool), worker);
            account.ledger.end(&meter, now);
        }
        if let Some(pool) = pool_of(account, (&self.cluster, &self.pool)) {
            pool.nodes.retain(|node| node.id != self.node);
        }
    }
}

/// Adds a node and its Droplet, and returns the node's id.
fn add_node(
    account: &mut Account,
    timeline: &mut Timeline,
    (cluster_id, pool_id): PoolPath<'_>,
    state: NodeState,
) -> String {
    let (id, droplet, now) = (timeline.uuid(), timeline.number(), timeline.now());
    let Some(cluster) = account.clusters.get_mut(cluster_id) else {
        return id;
    };
    let region = cluster.region.clone();
    let Some(pool) = cluster.pool_mut(pool_id) else {
        return id;
    };
    let name = format!("{}-{}", pool.name, &id[id.len() - 5..]);
    let is_new = state == NodeState::Provisioning;
    let worker = Droplet {
        tags: pool.all_tags(cluster_id),
        region,
        size: pool.size.clone(),
        status: if is_new { DropletStatus::New } else { DropletStatus::Active },
        worker_of: Some((cluster_id.to_owned(), pool_id.to_owned())),
        ..Droplet::named(droplet, &name)
    };
    let life = Life::of_size(now, &worker.size);
    let life = if is_new { life.added_later() } else { life };
    account.ledger.open(meter((cluster_id, pool_id), droplet), life);
    account.droplets.insert(droplet, worker.created_at(now));
    account.things.place_in_projects([&droplet].into_iter());
    pool.nodes.push(Node { id: id.clone(), name, state, droplet, created: now, updated: now });
    id
}
