//! What a person does at a provider's own console, past every client.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "an act that does not fit a kind of resource is refused, a new act included"
)]

use std::collections::BTreeMap;

use domain::{AccountName, ResourceId, ResourceRef};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    answer::Refusal,
    databases::{self, Wanted},
    droplets::{self, Order},
    kubernetes::{self, Autoscale, Update},
    servers::{self, Command},
    world::{Account, Timeline, World},
};

/// A person's own action. It takes as long as the same request through the API.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Act {
    /// Powers on a Droplet or server.
    PowerOn,
    /// Cuts the power of a Droplet or server.
    PowerOff,
    /// Sends the shutdown signal to a Droplet or server.
    Shutdown,
    /// Reboots a Droplet or server.
    Reboot,
    /// Resizes a database cluster.
    Resize {
        /// The plan's slug.
        plan: String,
        /// Primary and standby nodes together.
        nodes: u32,
        /// Disk, in MiB, where it is to differ from the plan's own.
        #[serde(default)]
        storage_mib: Option<u64>,
    },
    /// Scales a node pool.
    Scale {
        /// How many nodes.
        count: u32,
        /// The autoscaler's least and most nodes; off when left out.
        #[serde(default)]
        autoscale: Option<(u32, u32)>,
    },
    /// Replaces all tags; for a server its labels, each as `key=value`.
    Retag {
        /// The new ones.
        tags: Vec<String>,
    },
    /// Replaces all tags of a node pool's cluster.
    RetagCluster {
        /// The new ones.
        tags: Vec<String>,
    },
    /// Gives another name.
    Rename {
        /// The new one.
        name: String,
    },
    /// Puts the resource (for a node pool its cluster) into a status, at once: a migration, an
    /// upgrade.
    SetStatus {
        /// The provider's word.
        status: String,
    },
    /// Deletes the resource, at once; a node pool with its nodes.
    Delete,
}

/// Why a person's action had no effect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PersonError {
    /// There is no such account or resource.
    #[error("there is no {0}")]
    Unknown(ResourceRef),
    /// The provider refuses it.
    #[error("{status}: {message}")]
    Refused {
        /// The status that the API would have answered.
        status: u16,
        /// The provider's words.
        message: String,
    },
    /// The act does not fit the kind of resource.
    #[error("{act} does not fit {resource}")]
    DoesNotFit {
        /// The act.
        act: String,
        /// The resource.
        resource: ResourceRef,
    },
}

impl From<Refusal> for PersonError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused {
            status: refusal.status,
            message: refusal.message,
        }
    }
}

/// Does what a person asks for.
pub(crate) fn act(world: &mut World, resource: &ResourceRef, act: Act) -> Result<(), PersonError> {
    let unknown = || PersonError::Unknown(resource.clone());
    let misfit = |act: &Act| PersonError::DoesNotFit {
        act: format!("{act:?}"),
        resource: resource.clone(),
    };
    let index = index_of(world, &resource.account).ok_or_else(unknown)?;
    let (account, timeline) = world.account(index);
    match &resource.id {
        ResourceId::Droplet(id) => {
            account.droplets.get(&id.0).ok_or_else(unknown)?;
            on_droplet(account, timeline, id.0, act, misfit)
        }
        ResourceId::Database(id) => {
            account.databases.get(&id.0).ok_or_else(unknown)?;
            on_database(account, timeline, &id.0, act, misfit)
        }
        ResourceId::NodePool(cluster, pool) => {
            let found = account.clusters.get(&cluster.0);
            found
                .and_then(|found| found.pool(&pool.0))
                .ok_or_else(unknown)?;
            on_node_pool(account, timeline, (&cluster.0, &pool.0), act, misfit)
        }
        ResourceId::Server(id) => {
            account.servers.get(&id.0).ok_or_else(unknown)?;
            on_server(account, timeline, id.0, act, misfit)
        }
    }
}

fn index_of(world: &World, name: &AccountName) -> Option<usize> {
    world
        .accounts
        .iter()
        .position(|account| account.name == *name)
}

/// A provider's word for a status.
fn status<T: DeserializeOwned>(word: &str) -> Result<T, PersonError> {
    serde_json::from_value(Value::from(word)).map_err(|_| PersonError::Refused {
        status: 422,
        message: format!("unknown status `{word}`"),
    })
}

fn on_droplet(
    account: &mut Account,
    timeline: &mut Timeline,
    id: u64,
    act: Act,
    misfit: impl Fn(&Act) -> PersonError,
) -> Result<(), PersonError> {
    let order = match &act {
        Act::PowerOn => Some(Order::PowerOn),
        Act::PowerOff => Some(Order::PowerOff),
        Act::Shutdown => Some(Order::Shutdown),
        Act::Reboot => Some(Order::Reboot),
        Act::Rename { name } => Some(Order::Rename(name.clone())),
        _ => None,
    };
    if let Some(order) = order {
        droplets::begin(account, timeline, id, order)?;
        return Ok(());
    }
    let Some(droplet) = account.droplets.get_mut(&id) else {
        return Ok(());
    };
    match act {
        Act::Retag { tags } => droplet.description.tags = tags,
        Act::SetStatus { status: word } => droplet.set_status(status(&word)?),
        // A worker goes with its node.
        Act::Delete if droplet.worker_of.is_none() => {
            account.droplets.remove(&id);
        }
        other => return Err(misfit(&other)),
    }
    Ok(())
}

fn on_database(
    account: &mut Account,
    timeline: &mut Timeline,
    id: &str,
    act: Act,
    misfit: impl Fn(&Act) -> PersonError,
) -> Result<(), PersonError> {
    if let Act::Resize {
        plan,
        nodes,
        storage_mib,
    } = act
    {
        databases::resize(
            account,
            timeline,
            id,
            &Wanted {
                plan,
                nodes,
                storage_mib,
            },
        )?;
        return Ok(());
    }
    let Some(database) = account.databases.get_mut(id) else {
        return Ok(());
    };
    match act {
        Act::Retag { tags } => database.description.tags = tags,
        Act::Rename { name } => database.description.name = name,
        Act::SetStatus { status: word } => database.description.status = status(&word)?,
        Act::Delete => {
            account.databases.remove(id);
        }
        other => return Err(misfit(&other)),
    }
    Ok(())
}

fn on_node_pool(
    account: &mut Account,
    timeline: &mut Timeline,
    (cluster_id, pool_id): (&str, &str),
    act: Act,
    misfit: impl Fn(&Act) -> PersonError,
) -> Result<(), PersonError> {
    let Account {
        clusters, droplets, ..
    } = account;
    let Some(cluster) = clusters.get_mut(cluster_id) else {
        return Ok(());
    };
    let Some(pool) = cluster.pool_mut(pool_id) else {
        return Ok(());
    };
    let mut update = Update {
        name: pool.description.name.clone(),
        count: pool.description.count,
        autoscale: Autoscale::Keep,
        tags: pool.description.tags.clone(),
        labels: pool.description.labels.clone(),
        taints: pool.description.taints.clone(),
    };
    match act {
        Act::Scale { count, autoscale } => {
            update.count = count;
            update.autoscale = autoscale.map_or(Autoscale::Off, |(min, max)| Autoscale::On {
                min: Some(min),
                max: Some(max),
            });
        }
        Act::Retag { tags } => update.tags = tags,
        Act::Rename { name } => update.name = name,
        Act::RetagCluster { tags } => {
            cluster.description.tags = tags;
            return Ok(());
        }
        Act::SetStatus { status: word } => {
            cluster.description.status = status(&word)?;
            return Ok(());
        }
        Act::Delete => {
            for node in &pool.nodes {
                droplets.remove(&node.droplet);
            }
            cluster.pools.retain(|pool| pool.description.id != pool_id);
            return Ok(());
        }
        other => return Err(misfit(&other)),
    }
    kubernetes::update(account, timeline, (cluster_id, pool_id), update)?;
    Ok(())
}

fn on_server(
    account: &mut Account,
    timeline: &mut Timeline,
    id: u64,
    act: Act,
    misfit: impl Fn(&Act) -> PersonError,
) -> Result<(), PersonError> {
    let command = match act {
        Act::PowerOn => Some(Command::PowerOn),
        Act::PowerOff => Some(Command::PowerOff),
        Act::Shutdown => Some(Command::Shutdown),
        Act::Reboot => Some(Command::Reboot),
        _ => None,
    };
    if let Some(command) = command {
        servers::begin(account, timeline, id, command)?;
        return Ok(());
    }
    let Some(server) = account.servers.get_mut(&id) else {
        return Ok(());
    };
    match act {
        Act::Retag { tags } => server.description.labels = labels(&tags),
        Act::Rename { name } => server.description.name = name,
        Act::SetStatus { status: word } => server.set_status(status(&word)?),
        Act::Delete => {
            account.servers.remove(&id);
        }
        other => return Err(misfit(&other)),
    }
    Ok(())
}

fn labels(tags: &[String]) -> BTreeMap<String, String> {
    let label = |tag: &String| {
        let (key, value) = tag.split_once('=').unwrap_or((tag, ""));
        (key.to_owned(), value.to_owned())
    };
    tags.iter().map(label).collect()
}
