//! A Droplet's surroundings. The Droplet itself shows few of them: whatever else is attached to it
//! or refers to it is found in the lists of such resources (DOSPEC).

use std::collections::BTreeSet;

use domain::hibernation::{Address, Attachment, Balanced, PrivateAddress, SshKey, Surroundings};
use serde::Deserialize;
use tokio::sync::OnceCell;

use super::schema::{self, DropletWithAttachments, Numbered, Uuid, ips};
use crate::{
    attachments::{Attachments, Preflight, Project, Reference, Thing},
    http::null_is_empty,
};

#[derive(Deserialize)]
pub(super) struct ReservedIp {
    ip: String,
    pub(super) droplet: Option<Numbered>,
}

impl From<ReservedIp> for Thing {
    fn from(reserved: ReservedIp) -> Self {
        let machines = reserved.droplet.iter().map(|droplet| droplet.id).collect();
        Self { what: Attachment::FloatingIp(reserved.ip), words: None, machines }
    }
}

#[derive(Deserialize)]
pub(super) struct Firewall {
    id: Uuid,
    name: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    droplet_ids: BTreeSet<u64>,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub(super) tags: BTreeSet<String>,
    #[serde(default, deserialize_with = "null_is_empty")]
    inbound_rules: Vec<Inbound>,
    #[serde(default, deserialize_with = "null_is_empty")]
    outbound_rules: Vec<Outbound>,
}

#[derive(Deserialize)]
struct Inbound {
    sources: RuleEndpoints,
}

#[derive(Deserialize)]
struct Outbound {
    destinations: RuleEndpoints,
}

/// The sources or destinations that a rule names.
#[derive(Deserialize)]
struct RuleEndpoints {
    #[serde(default, deserialize_with = "null_is_empty")]
    addresses: Vec<String>,
    #[serde(default, deserialize_with = "null_is_empty")]
    droplet_ids: Vec<u64>,
}

impl Firewall {
    /// Returns what its rules refer to.
    pub(super) fn reference(&self) -> Reference {
        let sources = self.inbound_rules.iter().map(|rule| &rule.sources);
        let destinations = self.outbound_rules.iter().map(|rule| &rule.destinations);
        let endpoints = || sources.clone().chain(destinations.clone());
        Reference {
            by: format!("a rule of firewall {}", self.name),
            machines: endpoints().flat_map(|one| &one.droplet_ids).copied().collect(),
            addresses: endpoints().flat_map(|one| &one.addresses).cloned().collect(),
        }
    }
}

impl From<Firewall> for Thing {
    fn from(firewall: Firewall) -> Self {
        Self {
            what: Attachment::Firewall(firewall.id.0),
            words: Some(format!("firewall {}", firewall.name)),
            machines: firewall.droplet_ids,
        }
    }
}

#[derive(Deserialize)]
pub(super) struct LoadBalancer {
    id: Uuid,
    name: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    droplet_ids: BTreeSet<u64>,
    tag: Option<String>,
    firewall: Option<BalancerFirewall>,
}

/// What a load balancer lets in and keeps out: `ip:ADDRESS` and `cidr:NETWORK`.
#[derive(Deserialize)]
struct BalancerFirewall {
    #[serde(default, deserialize_with = "null_is_empty")]
    allow: Vec<String>,
    #[serde(default, deserialize_with = "null_is_empty")]
    deny: Vec<String>,
}

impl LoadBalancer {
    /// Returns what its own firewall refers to.
    pub(super) fn reference(&self) -> Reference {
        let rules = self.firewall.iter();
        let rules = rules.flat_map(|firewall| firewall.allow.iter().chain(&firewall.deny));
        let addresses = rules.filter_map(|rule| rule.split_once(':'));
        Reference {
            by: format!("the firewall of load balancer {}", self.name),
            machines: BTreeSet::new(),
            addresses: addresses.map(|(_, address)| address.to_owned()).collect(),
        }
    }
}

/// With a tag, a load balancer lists the Droplets that have the tag: it is attached to none by its
/// number.
impl From<LoadBalancer> for Thing {
    fn from(balancer: LoadBalancer) -> Self {
        let by_tag = balancer.tag.is_some_and(|tag| !tag.is_empty());
        let machines = if by_tag { BTreeSet::new() } else { balancer.droplet_ids };
        Self {
            what: Attachment::LoadBalancer(Balanced { id: balancer.id.0, privately: false }),
            words: Some(format!("load balancer {}", balancer.name)),
            machines,
        }
    }
}

impl From<schema::Project> for Project {
    fn from(project: schema::Project) -> Self {
        Self { id: project.id.0, name: project.name, machines: OnceCell::new() }
    }
}

impl schema::Resource {
    /// Returns the number of a Droplet; `None` for what is none.
    pub(super) fn droplet(&self) -> Option<u64> {
        self.urn.strip_prefix("do:droplet:")?.parse().ok()
    }
}

#[derive(Deserialize)]
pub(super) struct Policy {
    description: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    entities: Vec<String>,
}

impl From<Policy> for Reference {
    fn from(policy: Policy) -> Self {
        let machines = policy.entities.iter().filter_map(|entity| entity.parse().ok());
        Self {
            by: format!("alert policy {}", policy.description),
            machines: machines.collect(),
            addresses: Vec::new(),
        }
    }
}

#[derive(Deserialize)]
pub(super) struct Key {
    name: String,
    fingerprint: String,
}

impl From<Key> for SshKey {
    fn from(key: Key) -> Self {
        Self { name: key.name, sent_as: key.fingerprint }
    }
}

#[derive(Deserialize)]
pub(super) struct DatabaseName {
    pub(super) id: Uuid,
    name: String,
}

#[derive(Deserialize)]
pub(super) struct TrustedSources {
    #[serde(default, deserialize_with = "null_is_empty")]
    pub(super) rules: Vec<TrustedSource>,
}

#[derive(Deserialize)]
pub(super) struct TrustedSource {
    #[serde(rename = "type")]
    kind: String,
    value: String,
}

impl DatabaseName {
    /// Returns whom the database lets in.
    pub(super) fn letting_in(self, sources: Vec<TrustedSource>) -> Reference {
        let mut reference = Reference {
            by: format!("database {}", self.name),
            machines: BTreeSet::new(),
            addresses: Vec::new(),
        };
        for source in sources {
            match source.kind.as_str() {
                "droplet" => reference.machines.extend(source.value.parse::<u64>()),
                "ip_addr" => reference.addresses.push(source.value),
                _ => {}
            }
        }
        reference
    }
}

#[derive(Deserialize)]
pub(super) struct AccountResponse {
    pub(super) account: AccountStatus,
}

#[derive(Deserialize)]
pub(super) struct AccountStatus {
    status: String,
    #[serde(default)]
    status_message: String,
    /// Absent without the scope `droplet:read`.
    pub(super) droplet_limit: Option<u64>,
}

impl AccountStatus {
    /// Returns why it may not create Droplets, if so.
    pub(super) fn problem(&self) -> Option<String> {
        let words = format!("{} {}", self.status, self.status_message);
        (self.status != "active").then(|| words.trim().to_owned())
    }
}

/// Returns the reserved addresses that a Droplet has.
fn reserved(attachments: &Attachments, droplet: u64) -> impl Iterator<Item = &String> {
    attachments.to(droplet).filter_map(|thing| {
        let Attachment::FloatingIp(ip) = &thing.what else { return None };
        Some(ip)
    })
}

impl DropletWithAttachments {
    /// Leaves only its own addresses: a reserved IPv4 address is shown among them
    /// (digitalocean/godo, issue 343).
    pub(super) fn hide_reserved(&mut self, attachments: &Attachments) {
        let reserved: BTreeSet<_> = reserved(attachments, self.droplet.id).collect();
        for family in [&mut self.networks.v4, &mut self.networks.v6] {
            family.retain(|network| !reserved.contains(&network.ip_address));
        }
    }

    pub(super) fn surroundings(
        &self,
        attachments: &Attachments,
        preflight: &Preflight,
        project: Option<&Project>,
    ) -> Surroundings {
        let (id, tags) = (self.droplet.id, self.droplet.tags.as_ref());
        let things = || attachments.to(id);
        let reserved = reserved(attachments, id).cloned();
        let (reserved_v6, reserved): (Vec<_>, Vec<_>) = reserved.partition(|ip| ip.contains(':'));
        let unreadable = [
            (tags.is_none(), "its tags"),
            (self.vpc_uuid.is_none(), "its VPC"),
            (project.is_none() && !attachments.projects.is_empty(), "its project"),
        ];
        let unreadable = unreadable.into_iter().filter(|(is_so, _)| *is_so);
        let volumes = self.volume_ids.iter().map(|volume| format!("volume {volume}"));
        let networks = self.networks.v4.iter().chain(&self.networks.v6);
        let ips_of_it = networks.filter_map(|network| network.ip_address.parse().ok());
        let ips_of_it: Vec<_> = ips_of_it.collect();
        let references = attachments.references.iter().chain(&preflight.references);
        let named_by = references.filter(|one| one.names(id, &ips_of_it));
        let by_number = things().any(|thing| matches!(thing.what, Attachment::Firewall(_)));
        let by_tag = tags.is_some_and(|tags| !attachments.firewall_tags.is_disjoint(tags));
        let image = self.image.as_ref().and_then(|image| image.kind.as_deref());
        Surroundings {
            addresses: self.addresses(&reserved, &reserved_v6),
            outgoing: self.outgoing(&reserved, &reserved_v6),
            private: ips(&self.networks.v4, "private")
                .map(|ip| PrivateAddress { ip: ip.to_owned(), stays: false })
                .collect(),
            attached: volumes
                .chain(things().filter_map(|thing| thing.words.clone()))
                .chain(project.map(|project| format!("project {}", project.name)))
                .collect(),
            named_by: named_by.map(|one| one.by.clone()).collect(),
            backups: self.features.contains("backups"),
            custom_image: image == Some("custom"),
            open_at_first: by_number && !by_tag,
            ssh_keys: preflight.ssh_keys.clone(),
            room: preflight.room,
            unreadable: unreadable.map(|(_, what)| what).collect(),
            account_problem: preflight.account_problem.clone(),
        }
    }

    /// Returns its own public addresses in the families in which it has a reserved one.
    fn outgoing(&self, reserved: &[String], reserved_v6: &[String]) -> Vec<String> {
        let families = [(reserved, &self.networks.v4), (reserved_v6, &self.networks.v6)];
        let behind = families.into_iter().filter(|(reserved, _)| !reserved.is_empty());
        behind.flat_map(|(_, own)| ips(own, "public")).map(str::to_owned).collect()
    }

    /// Returns the public addresses: in each family the reserved ones, or else the Droplet's own,
    /// which it always loses.
    fn addresses(&self, reserved: &[String], reserved_v6: &[String]) -> Vec<Address> {
        let families = [(reserved, &self.networks.v4), (reserved_v6, &self.networks.v6)];
        let of_family = |(reserved, own): (&[String], &Vec<schema::Network>)| {
            let stays = !reserved.is_empty();
            let addresses: Vec<_> = if stays {
                reserved.to_vec()
            } else {
                ips(own, "public").map(str::to_owned).collect()
            };
            addresses.into_iter().map(move |ip| Address { ip, stays, blocked: false })
        };
        families.into_iter().flat_map(of_family).collect()
    }
}
