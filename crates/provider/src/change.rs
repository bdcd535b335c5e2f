//! Changes to request from a provider, as data: printed for people, sent by a client.

use std::{collections::BTreeSet, fmt};

use domain::{
    ClusterId, DatabaseId, PoolId, ResourceId,
    hibernation::{Attachment, Hibernate},
    resource::{ActionId, AutoscaleBounds, MachineSize},
};

/// One change, sent as exactly one request.
///
/// `Display` shows that request for people: `POST /v2/droplets/3164444/actions power_off`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Powers a machine on.
    PowerOn(ResourceId),
    /// Signals a machine's guest to shut down; the guest may ignore it.
    Shutdown(ResourceId),
    /// Cuts a machine's power, like pulling the plug.
    PowerOff(ResourceId),
    /// Moves a powered-off Droplet or server to another plan and leaves its disk as it is: a disk
    /// that has grown no longer fits a smaller plan.
    ResizeMachine {
        /// The machine.
        id: ResourceId,
        /// The size to move to.
        to: MachineSize,
    },
    /// Sends one of the several requests that hibernate or wake a machine.
    Hibernate {
        /// The machine that is there, by its present id; otherwise the resource to create it for.
        id: ResourceId,
        /// The request.
        what: Hibernate,
    },
    /// Moves a database cluster to another plan or number of nodes.
    ResizeDatabase {
        /// The cluster.
        id: DatabaseId,
        /// The plan's slug.
        plan: String,
        /// Primary and standby nodes together.
        nodes: u32,
        /// Disk in MiB, if it must change; `None` leaves it to the plan.
        storage_mib: Option<u64>,
    },
    /// Sets the node count of a pool. The provider removes whatever an update leaves out, so
    /// everything is sent again.
    ScaleNodePool {
        /// The cluster around the pool.
        cluster: ClusterId,
        /// The pool.
        pool: PoolId,
        /// The pool's current name.
        name: String,
        /// The desired number of nodes.
        count: u32,
        /// The autoscaler's bounds; `None` turns it off.
        autoscale: Option<AutoscaleBounds>,
        /// The pool's current tags; those that the service itself sets are not sent.
        tags: BTreeSet<String>,
        /// The pool's current labels (JSON text).
        labels: String,
        /// The pool's current taints (JSON text).
        taints: String,
    },
}

/// A provider's confirmation that it accepted a change: no proof of any effect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accepted {
    /// The provider's id for the action that it began, if it gives one (Droplets and servers).
    pub action: Option<ActionId>,
    /// The provider's id for the machine or snapshot that it began to create, if any.
    pub made: Option<u64>,
}

impl Accepted {
    pub(crate) fn action(id: u64) -> Self {
        Self { action: Some(ActionId(id)), made: None }
    }
}

impl Change {
    /// The resource that the change is about.
    #[must_use]
    pub fn resource(&self) -> ResourceId {
        match self {
            Self::PowerOn(id)
            | Self::Shutdown(id)
            | Self::PowerOff(id)
            | Self::ResizeMachine { id, .. }
            | Self::Hibernate { id, .. } => id.clone(),
            Self::ResizeDatabase { id, .. } => ResourceId::Database(id.clone()),
            Self::ScaleNodePool { cluster, pool, .. } => {
                ResourceId::NodePool(cluster.clone(), pool.clone())
            }
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PowerOn(id) => power(f, id, ["power_on", "poweron", "start"]),
            Self::Shutdown(id) => power(f, id, ["shutdown", "shutdown", "stop"]),
            Self::PowerOff(id) => power(f, id, ["power_off", "poweroff", "force"]),
            Self::ResizeMachine { id, to } => {
                power(f, id, ["resize", "change_type", "resize"])?;
                if matches!(id, ResourceId::Server(_)) {
                    write!(f, " server_type={} upgrade_disk=false", to.plan)
                } else {
                    write!(f, " size={} disk=false", to.plan)
                }
            }
            Self::Hibernate { id, what } => hibernate(f, id, what),
            Self::ResizeDatabase { id, plan, nodes, storage_mib } => {
                write!(f, "PUT /v2/databases/{id}/resize size={plan} num_nodes={nodes}")?;
                match storage_mib {
                    Some(mib) => write!(f, " storage_size_mib={mib}"),
                    None => Ok(()),
                }
            }
            Self::ScaleNodePool { cluster, pool, count, autoscale, .. } => {
                let path = format!("/v2/kubernetes/clusters/{cluster}/node_pools/{pool}");
                write!(f, "PUT {path} count={count} auto_scale={}", autoscale.is_some())?;
                match autoscale {
                    Some(AutoscaleBounds { min, max }) => {
                        write!(f, " min_nodes={min} max_nodes={max}")
                    }
                    None => Ok(()),
                }
            }
        }
    }
}

fn power(
    f: &mut fmt::Formatter<'_>,
    id: &ResourceId,
    [droplet_word, server_word, machine_word]: [&str; 3],
) -> fmt::Result {
    match id {
        ResourceId::Droplet(id) => write!(f, "POST /v2/droplets/{id}/actions {droplet_word}"),
        ResourceId::Server(id) => write!(f, "POST /v1/servers/{id}/actions/{server_word}"),
        ResourceId::Machine(name) => write!(f, "ssh {machine_word} {name}"),
        ResourceId::Database(_) | ResourceId::NodePool(..) => write!(f, "{droplet_word} {id}"),
    }
}

/// Returns a machine's path at its provider.
fn path(id: &ResourceId) -> String {
    match id {
        ResourceId::Droplet(id) => format!("/v2/droplets/{id}"),
        ResourceId::Server(id) => format!("/v1/servers/{id}"),
        ResourceId::Machine(_) | ResourceId::Database(_) | ResourceId::NodePool(..) => {
            id.to_string()
        }
    }
}

fn hibernate(f: &mut fmt::Formatter<'_>, id: &ResourceId, what: &Hibernate) -> fmt::Result {
    let is_server = matches!(id, ResourceId::Server(_));
    match what {
        Hibernate::KeepAddress { address } => {
            write!(f, "PUT /v1/primary_ips/{address} auto_delete=false")
        }
        Hibernate::Snapshot(_) => {
            power(f, id, ["snapshot", "create_image", "snapshot"])?;
            f.write_str(if is_server { " type=snapshot" } else { "" })
        }
        Hibernate::Protect { snapshot, on } => {
            let path = format!("/v1/images/{snapshot}/actions/change_protection");
            write!(f, "POST {path} delete={on}")
        }
        Hibernate::Delete => write!(f, "DELETE {}", path(id)),
        Hibernate::Create { snapshot, manifest, .. } => {
            let all = path(id);
            let all = all.rsplit_once('/').map_or("", |(all, _)| all);
            let (name, plan) = (&manifest.name, &manifest.size.plan);
            write!(f, "POST {all} name={name} image={snapshot} plan={plan}")
        }
        Hibernate::Attach(what) => attach(f, id, what),
        Hibernate::DeleteSnapshot { snapshot } => {
            let all = if is_server { "/v1/images" } else { "/v2/snapshots" };
            write!(f, "DELETE {all}/{snapshot}")
        }
    }
}

fn attach(f: &mut fmt::Formatter<'_>, id: &ResourceId, what: &Attachment) -> fmt::Result {
    let machine = id.provider_id();
    let is_server = matches!(id, ResourceId::Server(_));
    let (path, with) = match what {
        Attachment::Network(one) => (
            format!("{}/actions/attach_to_network", path(id)),
            format!(" network={} ip={}", one.network, one.ip),
        ),
        Attachment::PlacementGroup(group) => (
            format!("{}/actions/add_to_placement_group", path(id)),
            format!(" placement_group={group}"),
        ),
        Attachment::Backups(_) if is_server => {
            (format!("{}/actions/enable_backup", path(id)), String::new())
        }
        Attachment::Backups(_) => (format!("{}/actions", path(id)), " enable_backups".to_owned()),
        Attachment::Volume(volume) if is_server => {
            (format!("/v1/volumes/{volume}/actions/attach"), format!(" server={machine}"))
        }
        Attachment::Volume(volume) => {
            (format!("/v2/volumes/{volume}/actions"), format!(" attach droplet_id={machine}"))
        }
        Attachment::Firewall(firewall) if is_server => (
            format!("/v1/firewalls/{firewall}/actions/apply_to_resources"),
            format!(" server={machine}"),
        ),
        Attachment::Firewall(firewall) => {
            (format!("/v2/firewalls/{firewall}/droplets"), format!(" droplet_id={machine}"))
        }
        Attachment::LoadBalancer(one) if is_server => (
            format!("/v1/load_balancers/{}/actions/add_target", one.id),
            format!(" server={machine}"),
        ),
        Attachment::LoadBalancer(one) => {
            (format!("/v2/load_balancers/{}/droplets", one.id), format!(" droplet_id={machine}"))
        }
        Attachment::FloatingIp(ip) if is_server => {
            (format!("/v1/floating_ips/{ip}/actions/assign"), format!(" server={machine}"))
        }
        Attachment::FloatingIp(ip) => {
            let version = if ip.contains(':') { "ipv6" } else { "ips" };
            (
                format!("/v2/reserved_{version}/{ip}/actions"),
                format!(" assign droplet_id={machine}"),
            )
        }
        Attachment::Project(project) => {
            (format!("/v2/projects/{project}/resources"), format!(" do:droplet:{machine}"))
        }
        Attachment::Vpc(vpc) => (format!("{}/actions", path(id)), format!(" vpc_uuid={vpc}")),
        Attachment::Address(one) => {
            (format!("/v1/primary_ips/{}/actions/assign", one.id), format!(" server={machine}"))
        }
    };
    write!(f, "POST {path}{with}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(change: &Change, text: &str) {
        assert_eq!(change.to_string(), text);
    }

    #[test]
    fn every_change_prints_as_its_request() {
        let droplet: ResourceId = "droplet/3164444".parse().unwrap();
        let server: ResourceId = "server/42".parse().unwrap();
        check(&Change::PowerOff(droplet.clone()), "POST /v2/droplets/3164444/actions power_off");
        check(&Change::Shutdown(server.clone()), "POST /v1/servers/42/actions/shutdown");
        check(&Change::PowerOff(server.clone()), "POST /v1/servers/42/actions/poweroff");
        let to = MachineSize { plan: "s-1vcpu-1gb".to_owned(), ..MachineSize::default() };
        check(
            &Change::ResizeMachine { id: droplet.clone(), to: to.clone() },
            "POST /v2/droplets/3164444/actions resize size=s-1vcpu-1gb disk=false",
        );
        let plan = "cpx12".to_owned();
        check(
            &Change::ResizeMachine { id: server.clone(), to: MachineSize { plan, ..to } },
            "POST /v1/servers/42/actions/change_type server_type=cpx12 upgrade_disk=false",
        );
        check(&Change::PowerOn(droplet), "POST /v2/droplets/3164444/actions power_on");
        check(
            &Change::ResizeDatabase {
                id: DatabaseId("9cc1".to_owned()),
                plan: "db-s-2vcpu-4gb".to_owned(),
                nodes: 2,
                storage_mib: Some(61_440),
            },
            "PUT /v2/databases/9cc1/resize size=db-s-2vcpu-4gb num_nodes=2 storage_size_mib=61440",
        );
        check(
            &Change::ScaleNodePool {
                cluster: ClusterId("c1".to_owned()),
                pool: PoolId("p1".to_owned()),
                name: "backend".to_owned(),
                count: 0,
                autoscale: None,
                tags: BTreeSet::new(),
                labels: "{}".to_owned(),
                taints: "[]".to_owned(),
            },
            "PUT /v2/kubernetes/clusters/c1/node_pools/p1 count=0 auto_scale=false",
        );
    }
}
