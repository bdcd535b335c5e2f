//! The acts of a person in a provider's own console, without any client.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "an act that does not fit a kind of resource is refused, and so is a new act"
)]

use domain::{ResourceId, ResourceRef};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    account::{Account, Timeline},
    answer::Refusal,
    databases::Resize,
    digitalocean::{
        self, databases,
        droplets::{ActionKind, Order},
        kubernetes,
    },
    droplets,
    hetzner::{
        self, create,
        images::{self, ImageOrder},
        servers::{Command, TypeChange},
    },
    images::ImageKind,
    labels::Labels,
    servers,
    world::World,
};

/// An act of a person. It takes as long as the same request through the API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
        plan: String,
        /// Primary and standby nodes together.
        nodes: u32,
        /// The disk in MiB, if it is to differ from the plan's own.
        #[serde(default)]
        storage_mib: Option<u64>,
    },
    /// Resizes a Droplet, or changes a server's type.
    ChangePlan {
        /// The size or type.
        plan: String,
        /// Whether the disk also grows, permanently.
        #[serde(default)]
        disk: bool,
    },
    /// Takes up the room for another size on a Droplet's host, or in a server's location.
    TakeRoom {
        /// How many of the next resizes are refused immediately.
        #[serde(default)]
        refusals: u32,
        /// How many after these are accepted and then fail.
        #[serde(default)]
        failures: u32,
    },
    /// Changes a Droplet or server so that copies from its later snapshots fail to boot, or repairs
    /// this, and the machine itself.
    BreakCopies { breaks: bool },
    /// Makes a snapshot of a Droplet or server.
    Snapshot {
        /// The snapshot's name; for a server, its description.
        name: String,
    },
    /// Scales a node pool.
    Scale {
        /// The number of nodes.
        count: u32,
        /// The autoscaler's minimum and maximum number of nodes; off if left out.
        #[serde(default)]
        autoscale: Option<(u32, u32)>,
    },
    /// Replaces all tags; for a server, its labels, each as `key=value`.
    Retag {
        /// The new tags.
        tags: Vec<String>,
    },
    /// Replaces all tags of a node pool's cluster.
    RetagCluster {
        /// The new tags.
        tags: Vec<String>,
    },
    Rename {
        /// The new name.
        name: String,
    },
    /// Puts the resource (for a node pool, its cluster) into a status immediately, such as that of
    /// a migration or an upgrade.
    SetStatus {
        /// The provider's word for the status.
        status: String,
    },
    /// Deletes the resource immediately; a node pool with its nodes.
    Delete,
}

/// Why a person's act had no effect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PersonError {
    #[error("there is no {0}")]
    Unknown(ResourceRef),
    #[error("{status}: {message}")]
    Refused {
        /// The HTTP status that the API would have sent.
        status: u16,
        /// The provider's words.
        message: String,
    },
    #[error("{act} does not fit {resource}")]
    DoesNotFit { act: String, resource: ResourceRef },
}

impl From<Refusal> for PersonError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused { status: refusal.status, message: refusal.message }
    }
}

pub(crate) fn act(world: &mut World, resource: &ResourceRef, act: Act) -> Result<(), PersonError> {
    let mut accounts = world.accounts.iter_mut();
    let account = accounts
        .find(|account| account.login.name == resource.account && account.holds(&resource.id))
        .ok_or_else(|| PersonError::Unknown(resource.clone()))?;
    let timeline = &mut world.timeline;
    let described = format!("{act:?}");
    let deletes = act == Act::Delete;
    let fits = match &resource.id {
        ResourceId::Droplet(id) => on_droplet(account, timeline, id.0, act),
        ResourceId::Database(id) => on_database(account, timeline, &id.0, act),
        ResourceId::NodePool(cluster, pool) => {
            on_node_pool(account, timeline, (&cluster.0, &pool.0), act)
        }
        ResourceId::Server(id) => on_server(account, timeline, id.0, act),
        ResourceId::Machine(_) => Ok(None),
    }?;
    if deletes && fits.is_some() {
        account.ledger.delete(&resource.id, timeline.now());
    }
    fits.ok_or_else(|| PersonError::DoesNotFit { act: described, resource: resource.clone() })
}

/// The outcome of an act: `None` if it does not fit the kind of resource.
type Done = Result<Option<()>, PersonError>;

const DONE: Done = Ok(Some(()));

fn status<T: DeserializeOwned>(word: &str) -> Result<T, PersonError> {
    serde_json::from_value(Value::from(word)).map_err(|_| PersonError::Refused {
        status: 422,
        message: format!("unknown status `{word}`"),
    })
}

fn on_droplet(account: &mut Account, timeline: &mut Timeline, id: u64, act: Act) -> Done {
    let Some(droplet) = account.droplet(id) else {
        return Ok(None);
    };
    let order = match act {
        Act::PowerOn => Order::of(ActionKind::PowerOn),
        Act::PowerOff => Order::of(ActionKind::PowerOff),
        Act::Shutdown => Order::of(ActionKind::Shutdown),
        Act::Reboot => Order::of(ActionKind::Reboot),
        Act::Rename { name } => Order { name: Some(name), ..Order::of(ActionKind::Rename) },
        Act::ChangePlan { plan, disk } => {
            Order { size: Some(plan), disk, ..Order::of(ActionKind::Resize) }
        }
        Act::Snapshot { name } => Order { name: Some(name), ..Order::of(ActionKind::Snapshot) },
        // What follows has its effect at once.
        Act::TakeRoom { refusals, failures } => {
            (droplet.resize_refusals, droplet.resize_failures) = (refusals, failures);
            return DONE;
        }
        Act::BreakCopies { breaks } => {
            droplet.copies_break = breaks;
            droplet.guest.broken &= breaks;
            return DONE;
        }
        Act::Retag { tags } => {
            droplet.tags = tags;
            return DONE;
        }
        Act::SetStatus { status: word } => {
            droplet.set_status(status(&word)?);
            return DONE;
        }
        // A worker is deleted with its node.
        Act::Delete if droplet.worker_of.is_none() => {
            // A person who deletes a copy means the original machine.
            let origin = droplet.guest.origin;
            account.ledger.delete(&droplets::meter(origin).0, timeline.now());
            return Ok(digitalocean::create::remove(account, timeline, id));
        }
        _ => return Ok(None),
    };
    digitalocean::droplets::begin(account, timeline, id, order)?;
    DONE
}

fn on_database(account: &mut Account, timeline: &mut Timeline, id: &str, act: Act) -> Done {
    let Some(database) = account.databases.get_mut(id) else {
        return Ok(None);
    };
    match act {
        Act::Resize { plan, nodes, storage_mib } => {
            let resize = Resize { size: plan, num_nodes: nodes, storage_size_mib: storage_mib };
            databases::resize(account, timeline, id, resize)?;
        }
        Act::Retag { tags } => database.tags = tags,
        Act::Rename { name } => database.name = name,
        Act::SetStatus { status: word } => database.status = status(&word)?,
        Act::Delete => {
            account.databases.remove(id);
        }
        _ => return Ok(None),
    }
    DONE
}

fn on_node_pool(
    account: &mut Account,
    timeline: &mut Timeline,
    path: (&str, &str),
    act: Act,
) -> Done {
    let Some(cluster) = account.clusters.get_mut(path.0) else {
        return Ok(None);
    };
    let Some(pool) = cluster.pool_mut(path.1) else {
        return Ok(None);
    };
    let mut update = pool.as_update();
    match act {
        Act::Scale { count, autoscale } => {
            update.count = count;
            update.auto_scale = Some(autoscale.is_some());
            (update.min_nodes, update.max_nodes) = autoscale.unzip();
        }
        Act::Retag { tags } => update.tags = Some(tags),
        Act::Rename { name } => update.name = name,
        Act::RetagCluster { tags } => {
            cluster.tags = tags;
            return DONE;
        }
        Act::SetStatus { status: word } => {
            cluster.status = status(&word)?;
            return DONE;
        }
        Act::Delete => {
            for node in &pool.nodes {
                account.droplets.remove(&node.droplet);
            }
            cluster.pools.retain(|pool| pool.id != path.1);
            return DONE;
        }
        _ => return Ok(None),
    }
    kubernetes::update(account, timeline, path, update)?;
    DONE
}

fn on_server(account: &mut Account, timeline: &mut Timeline, id: u64, act: Act) -> Done {
    let Some(server) = account.server(id) else {
        return Ok(None);
    };
    let command = match act {
        Act::PowerOn => Command::PowerOn,
        Act::PowerOff => Command::PowerOff,
        Act::Shutdown => Command::Shutdown,
        Act::Reboot => Command::Reboot,
        Act::ChangePlan { plan, disk } => {
            let change = TypeChange { server_type: plan, upgrade_disk: disk };
            hetzner::servers::change_type(account, timeline, id, &change)?;
            return DONE;
        }
        Act::TakeRoom { refusals, failures } => {
            server.change_type_refusals = refusals;
            server.change_type_failures = failures;
            return DONE;
        }
        Act::BreakCopies { breaks } => {
            server.copies_break = breaks;
            server.guest.broken &= breaks;
            return DONE;
        }
        Act::Snapshot { name } => {
            let order =
                ImageOrder { kind: ImageKind::Snapshot, description: name, labels: Labels::new() };
            images::begin(account, timeline, id, order)?;
            return DONE;
        }
        Act::Retag { tags } => {
            server.labels = labels(&tags);
            return DONE;
        }
        Act::Rename { name } => {
            create::check_name(account, &name)?;
            if let Some(server) = account.server(id) {
                server.name = name;
            }
            return DONE;
        }
        Act::SetStatus { status: word } => {
            server.set_status(status(&word)?);
            return DONE;
        }
        Act::Delete => {
            // A person who deletes a copy means the original machine.
            let origin = server.guest.origin;
            account.ledger.delete(&servers::meter(origin).0, timeline.now());
            return Ok(create::remove(account, timeline, id));
        }
        _ => return Ok(None),
    };
    hetzner::servers::begin(account, timeline, id, command)?;
    DONE
}

fn labels(tags: &[String]) -> Labels {
    let label = |tag: &String| {
        let (key, value) = tag.split_once('=').unwrap_or((tag, ""));
        (key.to_owned(), value.to_owned())
    };
    tags.iter().map(label).collect()
}
