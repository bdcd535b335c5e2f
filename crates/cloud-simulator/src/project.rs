//! What a Hetzner project holds besides its servers: images, addresses, networks, volumes,
//! firewalls, placement groups, load balancers, floating IPs and SSH keys.
//!
//! An attachment is stored on what is attached, not on the server. A server stores only the ids of
//! its own addresses, since there are as many of them as servers.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::Ipv4Addr,
};

use domain::AccountName;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{answer::timestamp, catalog, defaults, labels::Selector, servers::Server};

pub(crate) type Labels = BTreeMap<String, String>;

/// Everything but the servers, by id.
#[derive(Debug, Clone, Default)]
pub(crate) struct Project {
    pub(crate) images: BTreeMap<u64, Image>,
    pub(crate) primary_ips: BTreeMap<u64, PrimaryIp>,
    pub(crate) networks: BTreeMap<u64, Network>,
    pub(crate) volumes: BTreeMap<u64, Volume>,
    pub(crate) firewalls: BTreeMap<u64, Firewall>,
    pub(crate) placement_groups: BTreeMap<u64, PlacementGroup>,
    pub(crate) load_balancers: BTreeMap<u64, LoadBalancer>,
    pub(crate) floating_ips: BTreeMap<u64, FloatingIp>,
    pub(crate) ssh_keys: BTreeMap<u64, SshKey>,
}

/// What a project holds besides its servers, by kind: most of it can be attached to them.
pub(crate) trait Attachable: Sized {
    /// The provider's word for the kind.
    const KIND: &'static str;

    /// Everything of this kind, by id.
    fn all(project: &Project) -> &BTreeMap<u64, Self>;

    /// The same, to delete one.
    fn all_mut(project: &mut Project) -> &mut BTreeMap<u64, Self>;

    /// The object as the API shows it, given the project's servers.
    fn shown(&self, servers: &BTreeMap<u64, Server>) -> Value;
}

/// Implements [`Attachable`] for what a [`Project`] stores in one of its fields.
macro_rules! attachable {
    ($($object:ty, $field:ident, $kind:literal, $shown:expr;)*) => {$(
        impl Attachable for $object {
            const KIND: &'static str = $kind;

            fn all(project: &Project) -> &BTreeMap<u64, Self> {
                &project.$field
            }

            fn all_mut(project: &mut Project) -> &mut BTreeMap<u64, Self> {
                &mut project.$field
            }

            fn shown(&self, servers: &BTreeMap<u64, Server>) -> Value {
                let shown: fn(&Self, &BTreeMap<u64, Server>) -> Value = $shown;
                shown(self, servers)
            }
        }
    )*};
}

attachable! {
    Image, images, "image", |image, _| image.to_json();
    PrimaryIp, primary_ips, "primary_ip", |ip, _| ip.to_json();
    Network, networks, "network", |network, _| network.to_json();
    Volume, volumes, "volume", |volume, _| volume.to_json();
    Firewall, firewalls, "firewall", |firewall, servers| firewall.to_json(servers.values());
    PlacementGroup, placement_groups, "placement_group", |group, _| group.to_json();
    LoadBalancer, load_balancers, "load_balancer", |one, servers| one.to_json(servers.values());
    FloatingIp, floating_ips, "floating_ip", |ip, _| ip.to_json();
    SshKey, ssh_keys, "ssh_key", |key, _| key.to_json();
}

/// An image: a snapshot or a backup of a server.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Image {
    pub(crate) id: u64,
    pub(crate) kind: ImageKind,
    pub(crate) status: ImageStatus,
    /// The word that responses have for its status, if not that of the status itself.
    #[serde(skip)]
    pub(crate) shown_as: Option<String>,
    pub(crate) description: String,
    pub(crate) labels: Labels,
    pub(crate) protected: bool,
    pub(crate) created: Timestamp,
    /// The storage that it takes at the provider, in GB, once it is complete.
    pub(crate) size_gb: f64,
    /// The server that it was made from, as it was then. Servers created from the image behave like
    /// it.
    #[serde(serialize_with = "number_of")]
    pub(crate) of: Server,
    /// The contents of its disk, as in [`Server::contents`].
    pub(crate) contents: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ImageKind {
    Snapshot,
    /// Deleted with its server.
    Backup,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ImageStatus {
    Creating,
    Available,
    /// Its creation failed.
    Unavailable,
}

/// A public address. It outlives its server, unless `auto_delete` is set.
#[derive(Debug, Clone)]
pub(crate) struct PrimaryIp {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) ip: String,
    pub(crate) is_ipv6: bool,
    pub(crate) location: String,
    pub(crate) server: Option<u64>,
    /// Whether it is deleted with its server.
    pub(crate) auto_delete: bool,
    pub(crate) labels: Labels,
    pub(crate) created: Timestamp,
}

/// A private network.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Network {
    pub(crate) account: Option<AccountName>,
    pub(crate) id: u64,
    pub(crate) name: String,
    #[serde(default = "ip_range")]
    pub(crate) ip_range: String,
    /// The servers in it and their addresses. An address stays taken for some seconds after its
    /// server is deleted.
    #[serde(default)]
    pub(crate) members: Vec<Member>,
    #[serde(skip_deserializing)]
    pub(crate) created: Timestamp,
}

/// A server in a network.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Member {
    pub(crate) server: u64,
    pub(crate) ip: String,
    #[serde(default)]
    pub(crate) alias_ips: Vec<String>,
}

/// A volume.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Volume {
    pub(crate) account: Option<AccountName>,
    pub(crate) id: u64,
    pub(crate) name: String,
    #[serde(default = "volume_size")]
    pub(crate) size: u64,
    #[serde(default = "defaults::location")]
    pub(crate) location: String,
    #[serde(default)]
    pub(crate) server: Option<u64>,
    #[serde(skip_deserializing)]
    pub(crate) created: Timestamp,
}

/// A firewall.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Firewall {
    pub(crate) account: Option<AccountName>,
    pub(crate) id: u64,
    pub(crate) name: String,
    /// The servers that it was applied to by id.
    #[serde(default)]
    pub(crate) servers: BTreeSet<u64>,
    /// The label selector by which it applies to others.
    #[serde(default)]
    pub(crate) selector: Option<String>,
    /// How long it takes to apply it to a server.
    #[serde(default = "defaults::seconds::<3>")]
    pub(crate) applies: SignedDuration,
    /// The servers that it is still being applied to.
    #[serde(skip)]
    pub(crate) pending: BTreeSet<u64>,
    #[serde(skip_deserializing)]
    pub(crate) created: Timestamp,
}

/// A placement group.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlacementGroup {
    pub(crate) account: Option<AccountName>,
    pub(crate) id: u64,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) servers: BTreeSet<u64>,
    #[serde(skip_deserializing)]
    pub(crate) created: Timestamp,
}

/// A load balancer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LoadBalancer {
    pub(crate) account: Option<AccountName>,
    pub(crate) id: u64,
    pub(crate) name: String,
    #[serde(default = "defaults::location")]
    pub(crate) location: String,
    /// Its targets by id, and whether it reaches each one at its private address.
    #[serde(default)]
    pub(crate) targets: Vec<Target>,
    /// The label selector by which others are its targets.
    #[serde(default)]
    pub(crate) selector: Option<String>,
    #[serde(skip_deserializing)]
    pub(crate) created: Timestamp,
}

/// A server behind a load balancer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Target {
    pub(crate) server: u64,
    #[serde(default)]
    pub(crate) use_private_ip: bool,
}

/// A floating IPv4 address.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FloatingIp {
    pub(crate) account: Option<AccountName>,
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) ip: String,
    #[serde(default = "defaults::location")]
    pub(crate) location: String,
    #[serde(default)]
    pub(crate) server: Option<u64>,
    #[serde(skip_deserializing)]
    pub(crate) created: Timestamp,
}

/// A public key.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SshKey {
    pub(crate) account: Option<AccountName>,
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) public_key: String,
    #[serde(skip_deserializing)]
    pub(crate) created: Timestamp,
}

fn number_of<S: serde::Serializer>(server: &Server, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(server.id)
}

fn ip_range() -> String {
    "10.0.0.0/16".to_owned()
}

fn volume_size() -> u64 {
    10
}

/// An address from the range reserved for benchmarking (RFC 2544).
fn address_of(number: u64) -> String {
    let host = u32::try_from(number % (1 << 17)).unwrap_or_default();
    Ipv4Addr::from_bits(Ipv4Addr::new(198, 18, 0, 0).to_bits() + host).to_string()
}

/// A server's public IPv4 address, or IPv6 network.
pub(crate) fn public_address(number: u64, is_ipv6: bool) -> String {
    if is_ipv6 { format!("2001:db8:{:x}::/64", number % 0x1_0000) } else { address_of(number) }
}

fn place(location: &str) -> Option<&'static Value> {
    catalog::entry(&catalog::LOCATIONS, "name", location)
}

fn chooses(selector: Option<&str>, labels: &Labels) -> bool {
    let selector = selector.and_then(Selector::parse);
    selector.is_some_and(|selector| selector.chooses(labels))
}

impl Project {
    /// A description of each thing that is attached to a server.
    pub(crate) fn attached_to(&self, server: u64) -> BTreeSet<String> {
        let mut attached = BTreeSet::new();
        for network in self.networks.values() {
            let members = network.members.iter().filter(|one| one.server == server);
            let addresses = members.map(|one| format!("{} {:?}", one.ip, one.alias_ips));
            attached.extend(addresses.map(|at| format!("network {} {at}", network.id)));
        }
        let mut add = |kind: &str, id: u64, is_attached: bool| {
            attached.extend(is_attached.then(|| format!("{kind} {id}")));
        };
        for one in self.volumes.values() {
            add("volume", one.id, one.server == Some(server));
        }
        for one in self.floating_ips.values() {
            add("floating IP", one.id, one.server == Some(server));
        }
        for one in self.firewalls.values() {
            add("firewall", one.id, one.servers.contains(&server));
        }
        for one in self.placement_groups.values() {
            add("placement group", one.id, one.servers.contains(&server));
        }
        for one in self.load_balancers.values() {
            let privately = |wanted| {
                let mut targets = one.targets.iter();
                targets.any(|one| one.server == server && one.use_private_ip == wanted)
            };
            add("load balancer", one.id, privately(false));
            add("load balancer, privately,", one.id, privately(true));
        }
        attached
    }

    /// Detaches everything from a deleted server. Its backups are deleted, and so are its addresses
    /// with `auto_delete`, which are returned. Its addresses in networks are not freed yet.
    pub(crate) fn detach_server(&mut self, server: u64) -> Vec<PrimaryIp> {
        let gone = |ip: &PrimaryIp| ip.server == Some(server) && ip.auto_delete;
        let deleted = self.primary_ips.values().filter(|ip| gone(ip)).cloned();
        let deleted: Vec<_> = deleted.collect();
        self.primary_ips.retain(|_, ip| !gone(ip));
        for ip in self.primary_ips.values_mut() {
            ip.server = ip.server.filter(|own| *own != server);
        }
        for volume in self.volumes.values_mut() {
            volume.server = volume.server.filter(|own| *own != server);
        }
        for floating in self.floating_ips.values_mut() {
            floating.server = floating.server.filter(|own| *own != server);
        }
        for firewall in self.firewalls.values_mut() {
            firewall.servers.remove(&server);
            firewall.pending.remove(&server);
        }
        for group in self.placement_groups.values_mut() {
            group.servers.remove(&server);
        }
        for balancer in self.load_balancers.values_mut() {
            balancer.targets.retain(|target| target.server != server);
        }
        let is_its_backup =
            |image: &Image| image.kind == ImageKind::Backup && image.of.id == server;
        self.images.retain(|_, image| !is_its_backup(image));
        deleted
    }

    /// Frees a deleted server's addresses in its networks.
    pub(crate) fn free_private_addresses(&mut self, server: u64) {
        for network in self.networks.values_mut() {
            network.members.retain(|member| member.server != server);
        }
    }

    /// The firewalls that apply to a server, by id or by its labels.
    pub(crate) fn firewalls_of(&self, server: &Server) -> impl Iterator<Item = &Firewall> {
        self.firewalls.values().filter(|firewall| firewall.is_of(server))
    }

    /// The fields of a server's response that show all these.
    pub(crate) fn server_fields(&self, server: &Server) -> Value {
        let of = |own: Option<u64>| own == Some(server.id);
        let ip = |id: Option<u64>| self.primary_ips.get(&id?).map(PrimaryIp::on_server);
        let floating = self.floating_ips.values().filter(|ip| of(ip.server));
        let volumes = self.volumes.values().filter(|volume| of(volume.server));
        let firewalls = self.firewalls_of(server).map(|firewall| {
            let pending = firewall.pending.contains(&server.id);
            json!({"id": firewall.id, "status": if pending { "pending" } else { "applied" }})
        });
        let private = self.networks.values().flat_map(|network| {
            let own = network.members.iter();
            let own = own.filter(|member| member.server == server.id);
            own.map(|member| member.on_server(network.id))
        });
        let group = self.placement_groups.values();
        let mut group = group.filter(|group| group.servers.contains(&server.id));
        let balancers = self.load_balancers.values();
        let balancers = balancers.filter(|balancer| {
            let mut targets = balancer.targets.iter();
            targets.any(|target| target.server == server.id)
        });
        let image = server.image.and_then(|id| self.images.get(&id));
        json!({
            "public_net": {
                "ipv4": ip(server.ipv4),
                "ipv6": ip(server.ipv6),
                "floating_ips": floating.map(|ip| ip.id).collect::<Vec<_>>(),
                "firewalls": firewalls.collect::<Vec<_>>(),
            },
            "private_net": private.collect::<Vec<_>>(),
            "volumes": volumes.map(|volume| volume.id).collect::<Vec<_>>(),
            "placement_group": group.next().map(PlacementGroup::to_json),
            "load_balancers": balancers.map(|balancer| balancer.id).collect::<Vec<_>>(),
            "image": image.map(Image::to_json),
        })
    }
}

impl Image {
    pub(crate) fn to_json(&self) -> Value {
        let is_backup = self.kind == ImageKind::Backup;
        let is_complete = self.status == ImageStatus::Available;
        json!({
            "id": self.id,
            "type": self.kind,
            "status": self.shown_as.as_ref().map_or(json!(self.status), |word| json!(word)),
            "name": null,
            "description": self.description,
            "image_size": is_complete.then_some(self.size_gb),
            "disk_size": self.of.disk,
            "created": timestamp(self.created),
            "created_from": {"id": self.of.id, "name": self.of.name},
            "bound_to": is_backup.then_some(self.of.id),
            "os_flavor": "debian",
            "os_version": "12",
            "rapid_deploy": false,
            "protection": {"delete": self.protected},
            "deprecated": null,
            "deleted": null,
            "labels": self.labels,
            "architecture": self.architecture(),
        })
    }

    pub(crate) fn architecture(&self) -> &'static Value {
        let entry = catalog::entry(&catalog::SERVER_TYPES, "name", &self.of.server_type);
        entry.map_or(&Value::Null, |entry| &entry["architecture"])
    }
}

impl PrimaryIp {
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "name": self.name,
            "ip": self.ip,
            "type": if self.is_ipv6 { "ipv6" } else { "ipv4" },
            "location": place(&self.location),
            "assignee_type": if self.server.is_some() { "server" } else { "unassigned" },
            "assignee_id": self.server,
            "auto_delete": self.auto_delete,
            "blocked": false,
            "dns_ptr": if self.is_ipv6 { json!([]) } else {
                json!([{"ip": self.ip, "dns_ptr": self.pointer()}])
            },
            "labels": self.labels,
            "protection": {"delete": false},
            "created": timestamp(self.created),
        })
    }

    fn pointer(&self) -> String {
        format!("static.{}.example.com", self.ip)
    }

    fn on_server(&self) -> Value {
        json!({
            "id": self.id,
            "ip": self.ip,
            "blocked": false,
            "dns_ptr": if self.is_ipv6 { json!([]) } else { json!(self.pointer()) },
        })
    }
}

impl Member {
    /// The network interface. Its MAC address depends on the network and the server, so a recreated
    /// server gets another one.
    fn on_server(&self, network: u64) -> Value {
        let (high, low) = (self.server / 256 % 256, self.server % 256);
        json!({
            "network": network,
            "ip": self.ip,
            "alias_ips": self.alias_ips,
            "mac_address": format!("86:00:00:{:02x}:{high:02x}:{low:02x}", network % 256),
        })
    }
}

impl Network {
    pub(crate) fn to_json(&self) -> Value {
        let servers: BTreeSet<_> = self.members.iter().map(|member| member.server).collect();
        json!({
            "id": self.id,
            "name": self.name,
            "ip_range": self.ip_range,
            "subnets": [{
                "type": "cloud",
                "ip_range": self.ip_range,
                "network_zone": "eu-central",
                "gateway": "10.0.0.1",
            }],
            "routes": [],
            "servers": servers,
            "load_balancers": [],
            "protection": {"delete": false},
            "labels": {},
            "created": timestamp(self.created),
            "expose_routes_to_vswitch": false,
        })
    }

    /// Reports whether an address in the network is taken.
    pub(crate) fn has(&self, ip: &str) -> bool {
        self.members
            .iter()
            .any(|member| member.ip == ip || member.alias_ips.iter().any(|alias| alias == ip))
    }

    /// Adds a server to the network.
    pub(crate) fn join(&mut self, server: u64, ip: String, alias_ips: Vec<String>) {
        self.members.push(Member { server, ip, alias_ips });
    }

    /// The first free address. The first one in the range is the gateway's.
    pub(crate) fn free_ip(&self) -> Option<String> {
        let first: Ipv4Addr = self.ip_range.split('/').next()?.parse().ok()?;
        (2..250)
            .map(|host| Ipv4Addr::from_bits(first.to_bits() + host).to_string())
            .find(|ip| !self.has(ip))
    }
}

impl Volume {
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "name": self.name,
            "size": self.size,
            "server": self.server,
            "location": place(&self.location),
            "linux_device": format!("/dev/disk/by-id/scsi-0HC_Volume_{}", self.id),
            "protection": {"delete": false},
            "labels": {},
            "status": "available",
            "format": "ext4",
            "created": timestamp(self.created),
        })
    }
}

impl Firewall {
    /// Reports whether it is applied to a server, by id or by labels, or is about to be.
    pub(crate) fn is_of(&self, server: &Server) -> bool {
        self.servers.contains(&server.id) || chooses(self.selector.as_deref(), &server.labels)
    }

    pub(crate) fn to_json<'a>(&self, servers: impl Iterator<Item = &'a Server>) -> Value {
        let by_number = self.servers.iter();
        let mut applied: Vec<_> =
            by_number.map(|id| json!({"type": "server", "server": {"id": id}})).collect();
        if let Some(selector) = &self.selector {
            let chosen = servers.filter(|server| chooses(Some(selector), &server.labels));
            let chosen =
                chosen.map(|server| json!({"type": "server", "server": {"id": server.id}}));
            applied.push(json!({
                "type": "label_selector",
                "label_selector": {"selector": selector},
                "applied_to_resources": chosen.collect::<Vec<_>>(),
            }));
        }
        json!({
            "id": self.id,
            "name": self.name,
            "labels": {},
            "created": timestamp(self.created),
            "rules": [{
                "direction": "in",
                "source_ips": ["0.0.0.0/0", "::/0"],
                "destination_ips": [],
                "protocol": "tcp",
                "port": "22",
                "description": null,
            }],
            "applied_to": applied,
        })
    }
}

impl PlacementGroup {
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "name": self.name,
            "labels": {},
            "type": "spread",
            "created": timestamp(self.created),
            "servers": self.servers,
        })
    }
}

impl LoadBalancer {
    pub(crate) fn to_json<'a>(&self, servers: impl Iterator<Item = &'a Server>) -> Value {
        let target = |id: u64, private: bool| {
            json!({
                "type": "server",
                "server": {"id": id, "ip": address_of(id)},
                "health_status": [],
                "use_private_ip": private,
            })
        };
        let by_number = self.targets.iter();
        let mut targets: Vec<_> =
            by_number.map(|own| target(own.server, own.use_private_ip)).collect();
        if let Some(selector) = &self.selector {
            let chosen = servers.filter(|server| chooses(Some(selector), &server.labels));
            targets.push(json!({
                "type": "label_selector",
                "label_selector": {"selector": selector},
                "targets": chosen.map(|server| target(server.id, false)).collect::<Vec<_>>(),
                "use_private_ip": false,
            }));
        }
        json!({
            "id": self.id,
            "name": self.name,
            "public_net": {
                "enabled": true,
                "ipv4": {"ip": address_of(self.id), "dns_ptr": "lb.example.com"},
                "ipv6": {"ip": "2001:db8::1", "dns_ptr": "lb.example.com"},
            },
            "private_net": [],
            "location": place(&self.location),
            "load_balancer_type": {
                "id": 1,
                "name": "lb11",
                "description": "LB11",
                "max_connections": 10_000,
                "max_services": 5,
                "max_targets": 25,
                "max_assigned_certificates": 10,
                "deprecated": null,
                "deprecation": null,
                "prices": [],
            },
            "protection": {"delete": false},
            "labels": {},
            "created": timestamp(self.created),
            "services": [],
            "targets": targets,
            "algorithm": {"type": "round_robin"},
            "outgoing_traffic": 0,
            "ingoing_traffic": 0,
            "included_traffic": 0,
        })
    }
}

impl FloatingIp {
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "name": self.name,
            "description": null,
            "ip": self.ip,
            "type": "ipv4",
            "server": self.server,
            "dns_ptr": [{"ip": self.ip, "dns_ptr": "floating.example.com"}],
            "home_location": place(&self.location),
            "blocked": false,
            "protection": {"delete": false},
            "labels": {},
            "created": timestamp(self.created),
        })
    }
}

impl SshKey {
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "name": self.name,
            "fingerprint": "b7:2f:30:a0:2f:6c:58:6c:21:04:58:61:ba:06:3b:2f",
            "public_key": self.public_key,
            "labels": {},
            "created": timestamp(self.created),
        })
    }
}
