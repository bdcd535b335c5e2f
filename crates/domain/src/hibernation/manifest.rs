//! What is needed to recreate a machine.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Attachment, AttachmentKind, AttachmentName};
use crate::{ResourceKind, resource::MachineSize};

/// What is needed to recreate a machine. Ids and addresses are text, as its cloud writes them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Manifest {
    /// Its name.
    pub name: String,
    /// Region or location.
    pub region: String,
    /// Tags, or labels as `key=value`, without our own.
    pub tags: BTreeSet<String>,
    /// Its plan and size.
    pub size: MachineSize,
    /// The SSH key to create it with, by its name in the account.
    pub ssh_key: String,
    /// Its public addresses that are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<KeptAddress>,
    /// Its addresses in private networks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub networks: Vec<NetworkAddress>,
    /// Its volumes.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub volumes: BTreeSet<String>,
    /// The firewalls that apply to it by its id.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub firewalls: BTreeSet<String>,
    /// The load balancers that target it by its id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load_balancers: Vec<Balanced>,
    /// Addresses that move between machines.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub floating_ips: BTreeSet<String>,
    /// The placement group that keeps it apart from other machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_group: Option<String>,
    /// Whether it has backups.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub backups: bool,
    /// When backups are made, if its cloud lets that be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup_policy: Option<BackupPolicy>,
    /// The private network in which its cloud chooses its address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vpc: Option<String>,
    /// The project that it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The features that its cloud has enabled for it: `ipv6`, `monitoring`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub features: BTreeSet<String>,
    /// Whether it has no public address at all, if that is chosen at creation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private_only: bool,
    /// Whether it gets new public addresses, because those that it had are not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub new_addresses: bool,
}

/// When a machine's backups are made, in its cloud's words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BackupPolicy {
    /// How often they are made.
    pub plan: String,
    /// The day of the week; `None` if they are made every day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weekday: Option<String>,
    /// The earliest hour at which they are made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hour: Option<u8>,
}

/// A public address that is kept while there is no machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KeptAddress {
    /// Its id at the cloud; empty in a creation that takes a new one, because it is gone.
    pub id: String,
    /// The address.
    pub ip: String,
    /// Whether it is an IPv6 address.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_ipv6: bool,
}

/// An address in a private network.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NetworkAddress {
    /// The network.
    pub network: String,
    /// The address.
    pub ip: String,
    /// Additional addresses in the network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alias_ips: Vec<String>,
}

/// A load balancer that targets a machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Balanced {
    /// The load balancer.
    pub id: String,
    /// Whether it reaches the machine at its private address.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub privately: bool,
}

impl Manifest {
    /// Returns what of this manifest a machine lacks, in the order in which things are given back:
    /// firewalls first, because the machine may already be running, and networks before what
    /// reaches the machine through them.
    #[must_use]
    pub fn missing_in(&self, seen: &Self) -> Vec<Attachment> {
        let group = self.placement_group.clone();
        let group = group.filter(|_| self.placement_group != seen.placement_group);
        let networks = self.networks.iter().cloned();
        let networks = networks.filter(|one| !seen.networks.contains(one));
        let balanced = self.load_balancers.iter().cloned();
        let balanced = balanced.filter(|one| !seen.load_balancers.contains(one));
        let floating_ips = lacks(&self.floating_ips, &seen.floating_ips);
        let project = self.project.clone();
        let project = project.filter(|_| self.project != seen.project);
        let lacks_backups = self.backups && !seen.backups;
        let backups = lacks_backups.then(|| Attachment::Backups(self.backup_policy.clone()));
        let firewalls = lacks(&self.firewalls, &seen.firewalls).map(Attachment::Firewall);
        let addresses = self.addresses.iter().cloned();
        let addresses = addresses.filter(|one| !seen.addresses.contains(one));
        let vpc = self.vpc.clone().filter(|_| self.vpc != seen.vpc);
        firewalls
            .chain(group.map(Attachment::PlacementGroup))
            .chain(networks.map(Attachment::Network))
            .chain(lacks(&self.volumes, &seen.volumes).map(Attachment::Volume))
            .chain(balanced.map(Attachment::LoadBalancer))
            .chain(floating_ips.map(Attachment::FloatingIp))
            .chain(project.map(Attachment::Project))
            .chain(backups)
            .chain(addresses.map(Attachment::Address))
            .chain(vpc.map(Attachment::Vpc))
            .collect()
    }

    /// Reports whether the machine has an address that costs money while it is unassigned.
    #[must_use]
    pub fn address_costs(&self, kind: ResourceKind) -> bool {
        kind.cloud_facts().is_some_and(|cloud| cloud.idle_addresses_cost)
            && self.addresses.iter().any(|address| !address.is_ipv6)
    }

    /// Adds one thing.
    pub fn add(&mut self, one: Attachment) {
        match one {
            Attachment::PlacementGroup(id) => self.placement_group = Some(id),
            Attachment::Network(one) => self.networks.push(one),
            Attachment::Volume(id) => self.volumes.extend([id]),
            Attachment::Firewall(id) => self.firewalls.extend([id]),
            Attachment::LoadBalancer(one) => self.load_balancers.push(one),
            Attachment::FloatingIp(ip) => self.floating_ips.extend([ip]),
            Attachment::Project(id) => self.project = Some(id),
            Attachment::Backups(policy) => (self.backups, self.backup_policy) = (true, policy),
            Attachment::Address(one) => self.addresses.push(one),
            Attachment::Vpc(id) => self.vpc = Some(id),
        }
    }

    pub(super) fn leave_out(&mut self, AttachmentName { kind, id }: &AttachmentName) {
        match kind {
            AttachmentKind::PlacementGroup => {
                self.placement_group.take_if(|group| group == id);
            }
            AttachmentKind::Network => self.networks.retain(|one| one.network != *id),
            AttachmentKind::Volume => {
                self.volumes.remove(id);
            }
            AttachmentKind::Firewall => {
                self.firewalls.remove(id);
            }
            AttachmentKind::LoadBalancer => self.load_balancers.retain(|one| one.id != *id),
            AttachmentKind::FloatingIp => {
                self.floating_ips.remove(id);
            }
            AttachmentKind::Project => {
                self.project.take_if(|project| project == id);
            }
            AttachmentKind::Backups => self.backups = false,
            AttachmentKind::Address => self.addresses.retain(|one| one.ip != *id),
            AttachmentKind::Vpc => {
                self.vpc.take_if(|vpc| vpc == id);
            }
        }
    }

    /// Returns what a creation from this manifest replaces: addresses, and the VPC.
    #[must_use]
    pub fn replaced_by(&self, creation: &Self) -> Vec<Attachment> {
        let own = self.addresses.iter().zip(&creation.addresses);
        let replaced = own.filter(|(_, ordered)| ordered.id.is_empty());
        let vpc = self.vpc.clone().filter(|_| creation.vpc.is_none());
        let replaced = replaced.map(|(one, _)| Attachment::Address(one.clone()));
        replaced.chain(vpc.map(Attachment::Vpc)).collect()
    }

    /// Returns this manifest with everything added that only an older one has: what a machine had
    /// before, if it was not given everything back.
    #[must_use]
    pub fn with_all_of(mut self, older: &Self) -> Self {
        let add = |own: &mut BTreeSet<String>, older: &BTreeSet<String>| {
            own.extend(older.iter().cloned());
        };
        add(&mut self.volumes, &older.volumes);
        add(&mut self.firewalls, &older.firewalls);
        add(&mut self.floating_ips, &older.floating_ips);
        let networks = older.networks.iter();
        let is_new = |one: &&NetworkAddress| {
            let mut own = self.networks.iter();
            !own.any(|own| own.network == one.network)
        };
        let networks: Vec<_> = networks.filter(is_new).cloned().collect();
        self.networks.extend(networks);
        let balancers = older.load_balancers.iter();
        let is_new = |one: &&Balanced| self.load_balancers.iter().all(|own| own.id != one.id);
        let balancers: Vec<_> = balancers.filter(is_new).cloned().collect();
        self.load_balancers.extend(balancers);
        if older.project.is_some() {
            self.project.clone_from(&older.project);
        }
        if older.placement_group.is_some() {
            self.placement_group.clone_from(&older.placement_group);
        }
        self.backups |= older.backups;
        self.backup_policy = self.backup_policy.or_else(|| older.backup_policy.clone());
        self
    }
}

fn lacks<'a>(
    own: &'a BTreeSet<String>,
    seen: &'a BTreeSet<String>,
) -> impl Iterator<Item = String> + 'a {
    own.difference(seen).cloned()
}
