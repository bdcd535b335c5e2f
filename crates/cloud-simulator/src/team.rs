//! What a DigitalOcean team holds besides Droplets, databases and clusters: snapshots, reserved
//! addresses, volumes, firewalls, load balancers, projects, alert policies and SSH keys.
//!
//! An attachment is stored on what is attached, not on the Droplet.

use std::collections::{BTreeMap, BTreeSet};

use domain::AccountName;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    answer::timestamp,
    catalog, defaults,
    droplets::Droplet,
    ledger::{BilledItem, Life, Meter},
    market::Market,
    project,
    world::Account,
};

/// Everything that a team holds besides its resources, by id or UUID; addresses by themselves.
#[derive(Debug, Clone, Default)]
pub(crate) struct Team {
    pub(crate) snapshots: BTreeMap<u64, Snapshot>,
    pub(crate) reserved_ips: BTreeMap<String, ReservedIp>,
    pub(crate) volumes: BTreeMap<String, Volume>,
    pub(crate) firewalls: BTreeMap<String, Firewall>,
    pub(crate) load_balancers: BTreeMap<String, LoadBalancer>,
    /// New Droplets are placed in the default one.
    pub(crate) projects: BTreeMap<String, Project>,
    pub(crate) alerts: BTreeMap<String, Alert>,
    pub(crate) ssh_keys: BTreeMap<u64, SshKey>,
}

/// A snapshot of a Droplet.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Snapshot {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) created: Timestamp,
    /// When lists and responses begin to show it: some time after its action reports that it is
    /// complete (`do-snapshot`, Gamocosm #113).
    pub(crate) listed: Timestamp,
    /// The word that responses have for its status as an image.
    #[serde(skip)]
    pub(crate) shown_as: Option<String>,
    pub(crate) size_gb: f64,
    pub(crate) region: String,
    pub(crate) tags: BTreeSet<String>,
    /// The Droplet that it was made from, as it was then. Droplets created from the snapshot behave
    /// like it.
    #[serde(serialize_with = "number_of")]
    pub(crate) of: Droplet,
    /// The contents of its disk, as in [`Droplet::contents`].
    pub(crate) contents: String,
}

/// A reserved address.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReservedIp {
    pub(crate) account: Option<AccountName>,
    pub(crate) ip: String,
    #[serde(default = "defaults::region")]
    pub(crate) region: String,
    pub(crate) droplet: Option<u64>,
    #[serde(skip_deserializing)]
    pub(crate) created: Timestamp,
    /// The meter it is billed under while it is not assigned.
    #[serde(skip)]
    meter: Option<Meter>,
}

/// A volume.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Volume {
    pub(crate) account: Option<AccountName>,
    pub(crate) id: String,
    pub(crate) name: String,
    #[serde(default = "defaults::region")]
    pub(crate) region: String,
    pub(crate) droplet: Option<u64>,
    #[serde(skip_deserializing)]
    pub(crate) created: Timestamp,
}

/// A firewall.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Firewall {
    pub(crate) account: Option<AccountName>,
    pub(crate) id: String,
    pub(crate) name: String,
    /// The Droplets that it applies to by id.
    #[serde(default)]
    pub(crate) droplets: BTreeSet<u64>,
    /// The tags by which it applies to others.
    #[serde(default)]
    pub(crate) tags: BTreeSet<String>,
    /// The Droplets that its rules name as sources.
    #[serde(default)]
    pub(crate) lets_in: BTreeSet<u64>,
    /// The addresses that its rules name as sources.
    #[serde(default)]
    pub(crate) lets_in_addresses: Vec<String>,
    #[serde(skip_deserializing)]
    pub(crate) created: Timestamp,
}

/// A load balancer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LoadBalancer {
    pub(crate) account: Option<AccountName>,
    pub(crate) id: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) droplets: BTreeSet<u64>,
    /// The tag that selects its Droplets, instead of their ids.
    pub(crate) tag: Option<String>,
    #[serde(skip_deserializing)]
    pub(crate) created: Timestamp,
}

/// A project.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Project {
    pub(crate) account: Option<AccountName>,
    pub(crate) id: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) is_default: bool,
    #[serde(default)]
    pub(crate) droplets: BTreeSet<u64>,
    #[serde(skip_deserializing)]
    pub(crate) created: Timestamp,
}

/// An alert policy.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Alert {
    pub(crate) account: Option<AccountName>,
    pub(crate) id: String,
    /// The Droplets that it watches by id.
    #[serde(default)]
    pub(crate) droplets: BTreeSet<u64>,
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

fn number_of<S: serde::Serializer>(droplet: &Droplet, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(droplet.id)
}

impl Team {
    /// The snapshots that are listed by `now`.
    pub(crate) fn listed(&self, now: Timestamp) -> impl Iterator<Item = &Snapshot> {
        let snapshots = self.snapshots.values();
        snapshots.filter(move |snapshot| snapshot.listed <= now)
    }

    /// The firewalls that apply to a Droplet, by id or by its tags.
    pub(crate) fn firewalls_of(&self, droplet: &Droplet) -> impl Iterator<Item = &Firewall> {
        let firewalls = self.firewalls.values();
        firewalls.filter(|firewall| {
            let by_tag = firewall.tags.iter().any(|tag| droplet.has_tag(tag));
            by_tag || firewall.droplets.contains(&droplet.id)
        })
    }

    /// The volumes of a Droplet.
    pub(crate) fn volumes_of(&self, droplet: u64) -> impl Iterator<Item = &Volume> {
        let volumes = self.volumes.values();
        volumes.filter(move |volume| volume.droplet == Some(droplet))
    }

    /// A description of each thing that is attached to a Droplet by id, and of its VPC and project.
    pub(crate) fn attached_to(&self, droplet: &Droplet) -> BTreeSet<String> {
        let id = droplet.id;
        let mut attached = BTreeSet::new();
        let mut add = |kind: &str, name: &str, is_attached: bool| {
            attached.extend(is_attached.then(|| format!("{kind} {name}")));
        };
        for one in self.volumes.values() {
            add("volume", &one.id, one.droplet == Some(id));
        }
        for one in self.reserved_ips.values() {
            add("reserved IP", &one.ip, one.droplet == Some(id));
        }
        for one in self.firewalls.values() {
            add("firewall", &one.id, one.droplets.contains(&id));
        }
        for one in self.load_balancers.values() {
            add("load balancer", &one.id, one.droplets.contains(&id));
        }
        for one in self.projects.values() {
            add("project", &one.id, one.droplets.contains(&id));
        }
        let region = catalog::DROPLET["vpc_uuid"].as_str();
        if let Some(vpc) = droplet.vpc.as_deref().or(region) {
            add("VPC", vpc, true);
        }
        attached
    }

    /// Places the Droplets that no project names in the default one, if there is one.
    pub(crate) fn place_in_projects<'a>(&mut self, droplets: impl Iterator<Item = &'a u64>) {
        let placed: BTreeSet<_> =
            self.projects.values().flat_map(|project| project.droplets.iter().copied()).collect();
        let mut projects = self.projects.values_mut();
        if let Some(default) = projects.find(|project| project.is_default) {
            default.droplets.extend(droplets.filter(|id| !placed.contains(id)));
        }
    }

    /// Detaches everything from a deleted Droplet.
    fn detach_droplet(&mut self, droplet: u64) {
        for volume in self.volumes.values_mut() {
            volume.droplet = volume.droplet.filter(|own| *own != droplet);
        }
        for firewall in self.firewalls.values_mut() {
            firewall.droplets.remove(&droplet);
        }
        for balancer in self.load_balancers.values_mut() {
            balancer.droplets.remove(&droplet);
        }
        for project in self.projects.values_mut() {
            project.droplets.remove(&droplet);
        }
    }
}

impl Account {
    /// Detaches everything from a deleted Droplet. Its reserved addresses stay, and are billed from
    /// now on.
    pub(crate) fn detach_all(&mut self, droplet: u64, now: Timestamp) {
        self.team.detach_droplet(droplet);
        let ips = self.team.reserved_ips.values();
        let ips = ips.filter(|ip| ip.droplet == Some(droplet));
        let ips: Vec<_> = ips.map(|ip| ip.ip.clone()).collect();
        for ip in ips {
            self.assign(&ip, None, now);
        }
    }

    /// Assigns or unassigns a reserved address. Only an IPv4 address that is not assigned is
    /// billed.
    pub(crate) fn assign(&mut self, ip: &str, droplet: Option<u64>, now: Timestamp) {
        let number = self.team.reserved_ips.keys().position(|own| own == ip);
        let Some(reserved) = self.team.reserved_ips.get_mut(ip) else {
            return;
        };
        if let Some(meter) = reserved.meter.take() {
            self.ledger.end(&meter, now);
        }
        let before = std::mem::replace(&mut reserved.droplet, droplet);
        if let (None, Some(before), false) = (droplet, before, reserved.is_ipv6()) {
            let part = 1 + number.unwrap_or_default();
            let meter = (crate::droplets::meter(before).0, u64::try_from(part).unwrap_or(1));
            let life = Life::of(BilledItem::Address, now).added_later();
            self.ledger.open(meter.clone(), life);
            reserved.meter = Some(meter);
        }
    }
}

impl Snapshot {
    /// The snapshot as the list of a Droplet's snapshots shows it, with its id as a number.
    pub(crate) fn of_droplet_json(&self) -> Value {
        catalog::with(&self.common(), json!({"id": self.id, "type": "snapshot"}))
    }

    /// The snapshot as the list of all snapshots shows it, with its id as text.
    pub(crate) fn to_json(&self) -> Value {
        let fields = json!({
            "id": self.id.to_string(),
            "resource_id": self.of.id.to_string(),
            "resource_type": "droplet",
            "tags": self.tags,
        });
        catalog::with(&self.common(), fields)
    }

    fn common(&self) -> Value {
        json!({
            "name": self.name,
            "created_at": timestamp(self.created),
            "regions": [self.region],
            "min_disk_size": self.of.disk,
            "size_gigabytes": self.size_gb,
        })
    }

    /// The snapshot as an image, which has the same id.
    pub(crate) fn image_json(&self) -> Value {
        let fields = json!({
            "id": self.id,
            "type": "snapshot",
            "distribution": "Debian",
            "slug": null,
            "public": false,
            "description": "",
            "tags": self.tags,
            "status": self.shown_as.as_deref().unwrap_or("available"),
            "error_message": "",
        });
        catalog::with(&self.common(), fields)
    }

    /// The meter it is billed under: a part of the Droplet that it was made from.
    pub(crate) fn meter(&self) -> Meter {
        (crate::droplets::meter(self.of.id).0, self.id)
    }
}

impl ReservedIp {
    pub(crate) fn is_ipv6(&self) -> bool {
        self.ip.contains(':')
    }

    pub(crate) fn to_json(
        &self,
        droplets: &BTreeMap<u64, Droplet>,
        context: DropletContext<'_>,
    ) -> Value {
        let droplet = self.droplet.and_then(|id| droplets.get(&id));
        let droplet = droplet.map(|droplet| droplet.to_json(context));
        if self.is_ipv6() {
            return json!({
                "ip": self.ip,
                "region_slug": self.region,
                "reserved_at": timestamp(self.created),
                "droplet": droplet,
            });
        }
        json!({
            "ip": self.ip,
            "region": context.market.region(&self.region),
            "droplet": droplet,
            "locked": false,
            "project_id": project_uuid(),
        })
    }
}

/// What a response about a Droplet needs besides the Droplet.
#[derive(Clone, Copy)]
pub(crate) struct DropletContext<'a> {
    pub(crate) market: &'a Market,
    pub(crate) team: &'a Team,
    pub(crate) now: Timestamp,
}

fn project_uuid() -> &'static str {
    "4e1bfbc3-dc3e-41f2-a18f-1b4d7ba71679"
}

impl Volume {
    pub(crate) fn to_json(&self, market: &Market) -> Value {
        json!({
            "id": self.id,
            "name": self.name,
            "description": "",
            "droplet_ids": self.droplet.into_iter().collect::<Vec<_>>(),
            "size_gigabytes": 10,
            "created_at": timestamp(self.created),
            "tags": [],
            "region": market.region(&self.region),
            "filesystem_type": "ext4",
            "filesystem_label": "",
        })
    }
}

impl Firewall {
    pub(crate) fn to_json(&self) -> Value {
        let sources = json!({
            "addresses": self.lets_in_addresses,
            "droplet_ids": self.lets_in,
        });
        json!({
            "id": self.id,
            "name": self.name,
            "status": "succeeded",
            "created_at": timestamp(self.created),
            "pending_changes": [],
            "droplet_ids": self.droplets,
            "tags": self.tags,
            "inbound_rules": [{"protocol": "tcp", "ports": "22", "sources": sources}],
            "outbound_rules": [{
                "protocol": "tcp",
                "ports": "all",
                "destinations": {"addresses": ["0.0.0.0/0", "::/0"]},
            }],
        })
    }
}

impl LoadBalancer {
    pub(crate) fn to_json(&self, market: &Market) -> Value {
        let mut shown = json!({
            "id": self.id,
            "name": self.name,
            "ip": project::public_address(7, false),
            "status": "active",
            "created_at": timestamp(self.created),
            "forwarding_rules": [{
                "entry_protocol": "http",
                "entry_port": 80,
                "target_protocol": "http",
                "target_port": 80,
            }],
            "region": market.region(&defaults::region()),
            "droplet_ids": self.droplets,
        });
        if let Some(tag) = &self.tag {
            shown["tag"] = json!(tag);
        }
        shown
    }
}

impl Project {
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "owner_uuid": "99525febec065ca37b2ffe4f852fd2b2581895e7",
            "owner_id": 258_992,
            "name": self.name,
            "description": "",
            "purpose": "Web Application",
            "environment": "Staging",
            "created_at": timestamp(self.created),
            "updated_at": timestamp(self.created),
            "is_default": self.is_default,
        })
    }

    /// A Droplet in the project, as the API shows it.
    pub(crate) fn resource_json(&self, droplet: u64, status: &str) -> Value {
        json!({
            "urn": format!("do:droplet:{droplet}"),
            "assigned_at": timestamp(self.created),
            "links": {"self": format!("https://api.digitalocean.com/v2/droplets/{droplet}")},
            "status": status,
        })
    }
}

impl Alert {
    pub(crate) fn to_json(&self) -> Value {
        let entities: Vec<_> = self.droplets.iter().map(u64::to_string).collect();
        json!({
            "uuid": self.id,
            "type": "v1/insights/droplet/cpu",
            "description": "busy",
            "compare": "GreaterThan",
            "value": 80,
            "window": "5m",
            "entities": entities,
            "tags": [],
            "alerts": {"email": ["ops@example.com"], "slack": []},
            "enabled": true,
        })
    }
}

impl SshKey {
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "fingerprint": format!("3b:16:bf:e4:8b:00:8b:b8:59:8c:a9:d3:f0:19:{:02x}:fa", self.id % 256),
            "public_key": self.public_key,
            "name": self.name,
        })
    }
}

/// How long it takes to assign a reserved address.
pub(crate) const ASSIGNS: SignedDuration = SignedDuration::from_secs(5);
