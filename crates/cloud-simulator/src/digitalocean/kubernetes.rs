//! How the nodes of a Kubernetes pool, and the Droplets under them, follow its count.

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    account::{Account, Timeline},
    answer::Refusal,
    droplets::{Droplet, DropletStatus},
    kubernetes::{Cluster, ClusterStatus, Node, NodeState, PoolPath, Update, meter},
    ledger::{Life, Meter},
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
    let Some(pool) = account.clusters.get_mut(path.0).and_then(|cluster| cluster.pool_mut(path.1))
    else {
        return;
    };
    let wanted = pool.count as usize;
    let staying = pool.nodes.iter().filter(|node| node.stays()).count();
    let (scale_up, scale_down) = (pool.scale_up, pool.scale_down);
    let leaving = pool.nodes.iter_mut().rev().filter(|node| node.stays());
    for node in leaving.take(staying.saturating_sub(wanted)) {
        node.set_state(NodeState::Draining, now);
        let worker = node.droplet;
        timeline.after(owner, scale_down * 2 / 3, move |account, timeline| {
            if let Some((_, node)) = node_of(account, worker) {
                node.set_state(NodeState::Deleting, timeline.now());
            }
        });
        timeline.after(owner, scale_down, move |account, timeline| {
            remove(account, worker, timeline.now());
        });
    }
    for _ in staying..wanted {
        let worker = add_node(account, timeline, path, NodeState::Provisioning);
        timeline.after(owner, scale_up, move |account, timeline| {
            run(account, worker, timeline.now());
        });
    }
}

/// The node on a Droplet, and its pool's meter.
fn node_of(account: &mut Account, worker: u64) -> Option<(Meter, &mut Node)> {
    account.clusters.iter_mut().find_map(|(cluster, Cluster { pools, .. })| {
        pools.iter_mut().find_map(|pool| {
            let node = pool.nodes.iter_mut().find(|node| node.droplet == worker)?;
            Some((meter((cluster, &pool.id), worker), node))
        })
    })
}

/// Marks a node as running, unless it has been drained before.
fn run(account: &mut Account, worker: u64, now: Timestamp) {
    if let Some((_, node)) = node_of(account, worker)
        && node.state == NodeState::Provisioning
    {
        node.set_state(NodeState::Running, now);
        if let Some(droplet) = account.droplet(worker) {
            droplet.set_status(DropletStatus::Active);
        }
    }
}

/// Removes a node and its Droplet, and stops billing it.
fn remove(account: &mut Account, worker: u64, now: Timestamp) {
    if let Some((meter, _)) = node_of(account, worker) {
        account.droplets.remove(&worker);
        account.detach_all(worker, now);
        account.ledger.end(&meter, now);
    }
    for pool in account.clusters.values_mut().flat_map(|cluster| &mut cluster.pools) {
        pool.nodes.retain(|node| node.droplet != worker);
    }
}

/// Adds a node and its Droplet, and returns the Droplet's id.
fn add_node(
    account: &mut Account,
    timeline: &mut Timeline,
    (cluster_id, pool_id): PoolPath<'_>,
    state: NodeState,
) -> u64 {
    let (id, droplet, now) = (timeline.uuid(), timeline.number(), timeline.now());
    let Some(cluster) = account.clusters.get_mut(cluster_id) else {
        return droplet;
    };
    let region = cluster.region.clone();
    let Some(pool) = cluster.pool_mut(pool_id) else {
        return droplet;
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
    pool.nodes.push(Node { id, name, state, droplet, created: now, updated: now });
    droplet
}
