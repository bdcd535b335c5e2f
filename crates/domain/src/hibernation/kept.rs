//! What a record keeps of a machine that is hibernated, or was: enough to find whatever we may have
//! made of it, and to make it again.

use std::{
    collections::BTreeSet,
    fmt,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{
    record::{Revision, Writer},
    reference::{ResourceId, ResourceRef},
    resource::MachineSize,
};

/// The label of whatever we make: the mark of the request that made it.
pub const MARK_LABEL: &str = "offhours-mark";

/// The label of whatever we make: the resource that it is, or is a copy of, by its first id.
pub const OF_LABEL: &str = "offhours-of";

/// A snapshot that has proved nothing better is kept until so many newer ones stand beside it.
pub const MOST_SNAPSHOTS: usize = 4;

/// A snapshot is kept for at least so long.
pub const KEPT_FOR: SignedDuration = SignedDuration::from_hours(3 * 24);

/// A machine must have run for so long to prove the snapshot that it was made from.
pub const PROVEN_AFTER: SignedDuration = SignedDuration::from_mins(10);

/// How many waking times are remembered.
const WAKES: usize = 5;

/// From how long to how long before its instant a start is begun.
const SHORTEST_LEAD: SignedDuration = SignedDuration::from_mins(10);
pub(super) const LONGEST_LEAD: SignedDuration = SignedDuration::from_mins(60);

/// What tells one thing that we asked for from all others: written before its request leaves, and
/// never used for another.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Mark(pub String);

impl Mark {
    /// The mark of the request that a write permits. Of all writers under one revision only one
    /// succeeds, so that no two requests share a mark; a writer and an instant come in because the
    /// revisions of a record that was forgotten begin again.
    #[must_use]
    pub fn of(
        reference: &ResourceRef,
        revision: Revision,
        writer: &Writer,
        now: Timestamp,
    ) -> Self {
        let half = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            (salt, reference, revision, writer, now).hash(&mut hasher);
            let mut rest = hasher.finish();
            std::iter::repeat_with(move || {
                let digit = u32::try_from(rest % 36).unwrap_or_default();
                rest /= 36;
                char::from_digit(digit, 36).unwrap_or_default()
            })
            .take(8)
        };
        Self(half(1).chain(half(2)).collect())
    }
}

impl Mark {
    /// The mark that tags, or labels as `key=value`, carry.
    #[must_use]
    pub fn in_tags(tags: &BTreeSet<String>) -> Option<Self> {
        let mut pairs = tags.iter().filter_map(|tag| tag.split_once(['=', ':']));
        let mark = pairs.find(|(key, _)| *key == MARK_LABEL);
        mark.map(|(_, mark)| Self(mark.to_owned()))
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What [`OF_LABEL`] says of a resource: `server.42`, for a label's value may hold no `/`.
#[must_use]
pub fn of_label(id: &ResourceId) -> String {
    id.to_string().replace('/', ".")
}

/// What a record keeps of hibernation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hibernation {
    /// The machine as its cloud knows it now; none while there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub present: Option<ResourceId>,
    /// A 404 of the machine may be our own deletion.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delete_asked: bool,
    /// The snapshot on which the latest deletion rested: what the machine is made again from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake_from: Option<Mark>,
    /// What the machine was like then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Manifest>,
    /// Its snapshots that we asked for, newest first.
    #[serde(default)]
    pub snapshots: Vec<KeptSnapshot>,
    /// The marks of the machines that were asked for since the latest deletion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wakes: Vec<Mark>,
    /// How long before its instant a start counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead: Option<SignedDuration>,
    /// How long its latest wakes took, latest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub took: Vec<SignedDuration>,
    /// How many snapshots of the latest stop came to nothing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed: usize,
    /// When the machine that was made last was first seen to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running_since: Option<Timestamp>,
    /// The machine that was made last has not been seen with all that it had.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(value: &usize) -> bool {
    *value == 0
}

/// A snapshot that we asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptSnapshot {
    /// Its mark: by it, it is found.
    pub mark: Mark,
    /// Its cloud's id for it, once that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// The machine that it is a copy of.
    pub from: ResourceId,
    /// When it was asked for.
    pub asked_at: Timestamp,
    /// Its size, in hundredths of a GB, once it is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub centi_gb: Option<u64>,
    /// When a machine made from it had run long enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proven_at: Option<Timestamp>,
    /// When its removal was asked for: from then on nothing is made from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remove_asked_at: Option<Timestamp>,
}

/// What makes a machine the same again: ids and addresses as text, each as its cloud writes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Its name.
    pub name: String,
    /// Region or location.
    pub region: String,
    /// Tags, or labels as `key=value`; our own are left out.
    pub tags: BTreeSet<String>,
    /// Its plan, and what that gives.
    pub size: MachineSize,
    /// The SSH key with which it is made, by its name in the account.
    pub ssh_key: String,
    /// Its public addresses that stay.
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
    /// The load balancers that name it by its id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load_balancers: Vec<Balanced>,
    /// Addresses that move between machines.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub floating_ips: BTreeSet<String>,
    /// The group that keeps it apart from others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_group: Option<String>,
    /// Whether it has backups.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub backups: bool,
    /// When these are made, where its cloud lets that be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup_policy: Option<BackupPolicy>,
    /// The private network in which its cloud chooses its address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vpc: Option<String>,
    /// The project that it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// What its cloud has switched on for it: `ipv6`, `monitoring`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub features: BTreeSet<String>,
    /// Whether it has no public address at all, where that is chosen when it is made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private_only: bool,
}

/// When a machine's backups are made, in its cloud's words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupPolicy {
    /// How often.
    pub plan: String,
    /// On which day, if not on all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weekday: Option<String>,
    /// From which hour on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hour: Option<u8>,
}

/// A public address that stays while there is no machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct KeptAddress {
    /// Its cloud's id for it.
    pub id: String,
    /// The address.
    pub ip: String,
    /// Whether it is of IPv6.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_ipv6: bool,
}

/// An address in a private network.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NetworkAddress {
    /// The network.
    pub network: String,
    /// The address.
    pub ip: String,
    /// Further addresses in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alias_ips: Vec<String>,
}

/// A load balancer that names a machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Balanced {
    /// The load balancer.
    pub id: String,
    /// Whether it reaches the machine by its private address.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub privately: bool,
}

/// One thing to give back to a machine that was made again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attachment {
    /// Its addresses in a private network.
    Network(NetworkAddress),
    /// A volume.
    Volume(String),
    /// A firewall.
    Firewall(String),
    /// A load balancer's target.
    LoadBalancer(Balanced),
    /// An address that moves between machines.
    FloatingIp(String),
    /// Its place in a project.
    Project(String),
    /// Backups.
    Backups(Option<BackupPolicy>),
}

impl KeptSnapshot {
    /// Its size in GB, once it is complete.
    #[must_use]
    pub fn gb(&self) -> Option<f64> {
        // Disks have far fewer GB than an `f64` counts exactly.
        #[expect(clippy::cast_precision_loss, reason = "as said")]
        let gb = |centi: u64| centi as f64 / 100.0;
        self.centi_gb.map(gb)
    }
}

impl Manifest {
    /// What a machine lacks of this, in the order in which it is given back: firewalls first, for it
    /// may run already, and networks before what reaches the machine through them.
    #[must_use]
    pub fn missing_in(&self, seen: &Self) -> Option<Attachment> {
        let network = self
            .networks
            .iter()
            .find(|one| !seen.networks.contains(one));
        let lacks =
            |own: &BTreeSet<String>, seen: &BTreeSet<String>| own.difference(seen).next().cloned();
        let volume = lacks(&self.volumes, &seen.volumes).map(Attachment::Volume);
        let firewall = lacks(&self.firewalls, &seen.firewalls).map(Attachment::Firewall);
        let floating_ip = lacks(&self.floating_ips, &seen.floating_ips);
        let balanced = &mut self.load_balancers.iter();
        let balanced = balanced.find(|one| !seen.load_balancers.contains(one));
        let project = self.project.clone();
        let project = project.filter(|_| self.project != seen.project);
        firewall
            .or_else(|| network.cloned().map(Attachment::Network))
            .or(volume)
            .or_else(|| balanced.cloned().map(Attachment::LoadBalancer))
            .or(floating_ip.map(Attachment::FloatingIp))
            .or(project.map(Attachment::Project))
            .or_else(|| {
                let backups = Attachment::Backups(self.backup_policy.clone());
                (self.backups && !seen.backups).then_some(backups)
            })
    }

    /// This, with all that an older one has besides: of a machine to which not all was given back,
    /// that is what it had.
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
        self.backups |= older.backups;
        self.backup_policy = self.backup_policy.or_else(|| older.backup_policy.clone());
        self
    }
}

impl Hibernation {
    /// Of a machine that was never hibernated.
    #[must_use]
    pub fn of(machine: ResourceId) -> Self {
        Self {
            present: Some(machine),
            delete_asked: false,
            wake_from: None,
            manifest: None,
            snapshots: Vec::new(),
            wakes: Vec::new(),
            lead: None,
            took: Vec::new(),
            failed: 0,
            running_since: None,
            incomplete: false,
        }
    }

    /// Whether there may be no machine: none is known, or its deletion was asked for.
    #[must_use]
    pub fn may_be_asleep(&self) -> bool {
        self.present.is_none() || self.delete_asked
    }

    /// The snapshot of a mark.
    #[must_use]
    pub fn snapshot(&self, mark: &Mark) -> Option<&KeptSnapshot> {
        self.snapshots.iter().find(|one| one.mark == *mark)
    }

    /// The snapshot that the machine is made again from.
    #[must_use]
    pub fn waking_snapshot(&self) -> Option<&KeptSnapshot> {
        self.snapshot(self.wake_from.as_ref()?)
    }

    /// The size of its latest snapshot that is complete, in hundredths of a GB.
    #[must_use]
    pub fn latest_centi_gb(&self) -> Option<u64> {
        self.snapshots.iter().find_map(|one| one.centi_gb)
    }

    /// Whether a machine made from one of its snapshots was seen to run long enough.
    #[must_use]
    pub fn is_rehearsed(&self) -> bool {
        self.snapshots.iter().any(|one| one.proven_at.is_some())
    }

    /// The machine that we asked for is there, whatever became of the answer.
    pub fn adopt(&mut self, machine: ResourceId) {
        self.present = Some(machine);
        self.delete_asked = false;
        self.running_since = None;
        self.incomplete = true;
    }

    /// The deletion was seen.
    pub fn fall_asleep(&mut self) {
        self.present = None;
        self.running_since = None;
    }

    /// A wake has taken this long: later ones begin in time.
    pub fn note_wake(&mut self, took: SignedDuration) {
        self.took.insert(0, took);
        self.took.truncate(WAKES);
    }

    /// How long before its instant the next start is begun: as long as the longest of the latest
    /// wakes, and half of that again.
    #[must_use]
    pub fn next_lead(&self, size: &MachineSize) -> SignedDuration {
        match self.took.iter().max() {
            Some(&longest) => (longest + longest / 2).clamp(SHORTEST_LEAD, LONGEST_LEAD),
            None => super::first_lead(size),
        }
    }

    /// The machine was seen to be off, or was switched on: how long it runs counts anew from its next
    /// sight, for what goes off again after each start proves nothing.
    pub fn note_off(&mut self) {
        self.running_since = None;
    }

    /// The machine was seen to run: a machine that was seen so before, and long enough ago, proves
    /// the snapshot that it was made from. Whether anything changed.
    pub fn note_running(&mut self, seen_at: Timestamp) -> bool {
        let woken = self.present.is_some() && !self.wakes.is_empty();
        let mark = self.wake_from.clone().filter(|_| woken);
        let Some(mark) = mark else { return false };
        let unproven = |one: &&mut KeptSnapshot| one.mark == mark && one.proven_at.is_none();
        let Some(snapshot) = self.snapshots.iter_mut().find(unproven) else {
            return false;
        };
        match self.running_since {
            None => self.running_since = Some(seen_at),
            Some(since) if seen_at.duration_since(since) >= PROVEN_AFTER => {
                snapshot.proven_at = Some(seen_at);
            }
            Some(_) => return false,
        }
        true
    }
}
