//! What a record keeps of a machine that is or was hibernated: enough to find everything that we
//! may have created for it, and to recreate it.

use std::{
    collections::BTreeSet,
    fmt,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Attachment, AttachmentKind, AttachmentName, Sight, SnapshotState};
use crate::{
    reference::{ResourceId, ResourceRef},
    resource::MachineSize,
    stored::is_default,
    timing::{LOOK_AGE, PERMIT, SKEW},
    writer::{Revision, Writer},
};

/// The label on everything we create: the mark of the request that created it.
pub const MARK_LABEL: &str = "offhours-mark";

/// The label on everything we create: the resource that it is, or is a copy of, by its first id.
pub const OF_LABEL: &str = "offhours-of";

/// The most snapshots of a machine. With this many, a stop takes no further one, and needs a
/// person.
pub const MAX_SNAPSHOTS: usize = 4;

/// The shortest time for which a complete snapshot is kept.
pub const KEPT_FOR: SignedDuration = SignedDuration::from_hours(3 * 24);

/// How long a machine must have run to prove the snapshot that it was created from.
pub const PROVEN_AFTER: SignedDuration = SignedDuration::from_mins(10);

/// How long a snapshot must have been missing to be gone: a list may leave one out.
const GONE_AFTER: SignedDuration = SignedDuration::from_mins(10);

/// How many wake durations are remembered.
const WAKES: usize = 5;

/// The bounds of how long before its instant a start begins.
const SHORTEST_LEAD: SignedDuration = SignedDuration::from_mins(10);
pub(super) const LONGEST_LEAD: SignedDuration = SignedDuration::from_mins(60);

/// A unique id of one thing that we request: written before its request leaves, and never reused.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Mark(pub String);

impl Mark {
    /// Returns the mark of the request that a write permits. Of all writers of one revision only
    /// one succeeds, so no two requests share a mark. The writer and the instant are included
    /// because the revisions of a forgotten record start over.
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
    /// Returns the mark that tags, or labels as `key=value`, carry.
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

/// Returns the value of [`OF_LABEL`] for a resource: `server.42`, because a label's value may not
/// contain `/`.
#[must_use]
pub fn of_label(id: &ResourceId) -> String {
    id.to_string().replace('/', ".")
}

/// The persisted state of a machine's hibernation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hibernation {
    /// The machine's current id at its cloud; `None` while there is no machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub present: Option<ResourceId>,
    /// Whether a 404 for the machine may be our own deletion.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delete_asked: bool,
    /// The snapshot that the latest deletion relied on. The machine is recreated from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake_from: Option<Mark>,
    /// What the machine was like at that deletion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Manifest>,
    /// Its snapshots that we requested, newest first.
    #[serde(default)]
    pub snapshots: Vec<KeptSnapshot>,
    /// The marks of the machines that were requested since the latest deletion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wakes: Vec<Mark>,
    /// How long before its instant a start is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead: Option<SignedDuration>,
    /// How long its latest wakes took, latest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub took: Vec<SignedDuration>,
    /// How many snapshots of the latest stop came to nothing.
    #[serde(default, skip_serializing_if = "is_default")]
    pub failed: usize,
    /// When the machine that was created last was first seen running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running_since: Option<Timestamp>,
    /// Whether the machine that was created last has not been seen with everything that it had.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
    /// What its cloud has refused to give back to that machine in the latest start: the start is
    /// not held up by it, and the next one tries it again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Attachment>,
    /// What a person has to resolve while nothing is in flight, as the latest inventory found it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A snapshot that we requested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KeptSnapshot {
    /// Its mark, by which it is found.
    pub mark: Mark,
    /// Its id at the cloud, once that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// The machine that it is a copy of.
    pub from: ResourceId,
    /// When it was requested.
    pub asked_at: Timestamp,
    /// When the observation began that its request rests on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looked_at: Option<Timestamp>,
    /// Its size, in hundredths of a GB, once it is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub centi_gb: Option<u64>,
    /// When a machine created from it had run long enough to prove it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proven_at: Option<Timestamp>,
    /// When its removal was requested. From then on, nothing is created from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remove_asked_at: Option<Timestamp>,
    /// When it was first missing, though something else of ours was seen; `None` while it is seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent_at: Option<Timestamp>,
    /// Whether it did not end in the longest time that it may take. It is not waited for any more,
    /// but may still be completed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub given_up: bool,
}

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

impl KeptSnapshot {
    /// Returns a snapshot of which only its request is known.
    #[must_use]
    pub fn of(from: ResourceId, mark: Mark, asked_at: Timestamp) -> Self {
        Self {
            mark,
            id: None,
            from,
            asked_at,
            looked_at: None,
            centi_gb: None,
            proven_at: None,
            remove_asked_at: None,
            absent_at: None,
            given_up: false,
        }
    }

    /// Returns the instant since which nothing may have switched its machine on: the observation
    /// that showed the machine off, by clocks that may differ. An older record does not have that
    /// instant; its request may have arrived as late as its permit ended.
    #[must_use]
    pub fn off_since(&self) -> Timestamp {
        let at_the_earliest = self.asked_at - SKEW - PERMIT - LOOK_AGE;
        self.looked_at.unwrap_or(at_the_earliest) - SKEW
    }

    /// Returns its size in GB, once it is complete.
    #[must_use]
    pub fn gb(&self) -> Option<f64> {
        // Disks have far fewer GB than an `f64` represents exactly.
        #[expect(clippy::cast_precision_loss, reason = "as said")]
        let gb = |centi: u64| centi as f64 / 100.0;
        self.centi_gb.map(gb)
    }
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

    fn leave_out(&mut self, AttachmentName { kind, id }: &AttachmentName) {
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

impl Hibernation {
    /// Returns the state of a machine that was never hibernated.
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
            refused: Vec::new(),
            problem: None,
        }
    }

    /// Reports whether there may be no machine: none is known, or its deletion was requested.
    #[must_use]
    pub fn may_be_hibernated(&self) -> bool {
        self.present.is_none() || self.delete_asked
    }

    /// Returns the snapshot with this mark.
    #[must_use]
    pub fn snapshot(&self, mark: &Mark) -> Option<&KeptSnapshot> {
        self.snapshots.iter().find(|one| one.mark == *mark)
    }

    /// Reports whether a snapshot of the machine that was given up may still keep it busy.
    #[must_use]
    pub fn has_given_up(&self) -> bool {
        let mut own = self.snapshots.iter();
        own.any(|one| {
            one.given_up && one.centi_gb.is_none() && Some(&one.from) == self.present.as_ref()
        })
    }

    /// Returns the snapshots that the latest observation showed, newest first.
    pub fn seen_snapshots(&self) -> impl Iterator<Item = &KeptSnapshot> {
        let is_seen = |one: &&KeptSnapshot| one.id.is_some() && one.absent_at.is_none();
        self.snapshots.iter().filter(is_seen)
    }

    /// Updates the snapshots with what an observation shows: their ids and sizes, and which are
    /// gone. That one is missing counts only if something else of ours is seen.
    pub fn record_snapshots(&mut self, sight: &Sight, seen_at: Timestamp) {
        let wake_from = self.wake_from.clone();
        let wakes = |one: &KeptSnapshot| wake_from.as_ref() == Some(&one.mark);
        let is_sighted = sight.machine.is_some()
            || wake_from.as_ref().is_some_and(|mark| sight.snapshot(mark).is_some());
        for one in &mut self.snapshots {
            if let Some(seen) = sight.snapshot(&one.mark) {
                one.id = Some(seen.id);
                one.absent_at = None;
                if seen.state == SnapshotState::Available && seen.centi_gb > 0 {
                    one.centi_gb = Some(seen.centi_gb);
                }
            } else if is_sighted {
                one.absent_at.get_or_insert(seen_at);
            }
        }
        self.snapshots.retain(|one| {
            let Some(since) = one.absent_at.filter(|_| is_sighted) else {
                return true;
            };
            let is_deleted = one.centi_gb.is_some() && !wakes(one);
            let is_late = seen_at.duration_since(since) >= GONE_AFTER;
            let is_removed = one.remove_asked_at.is_some();
            !(is_removed || is_deleted && is_late)
        });
    }

    /// Returns the snapshot that the machine is recreated from.
    #[must_use]
    pub fn waking_snapshot(&self) -> Option<&KeptSnapshot> {
        self.snapshot(self.wake_from.as_ref()?)
    }

    /// Returns the size of its latest complete snapshot, in hundredths of a GB.
    #[must_use]
    pub fn latest_centi_gb(&self) -> Option<u64> {
        self.snapshots.iter().find_map(|one| one.centi_gb)
    }

    /// Reports whether a machine created from one of its snapshots was seen to run long enough.
    #[must_use]
    pub fn is_rehearsed(&self) -> bool {
        self.snapshots.iter().any(|one| one.proven_at.is_some())
    }

    /// Returns what the machine is to be given back when it is recreated.
    #[must_use]
    pub fn owed(&self) -> Vec<AttachmentName> {
        let had = self.manifest.iter().flat_map(|had| had.missing_in(&Manifest::default()));
        had.map(|one| one.name()).collect()
    }

    /// Records that a person goes without an attachment from now on.
    pub fn waive(&mut self, name: &AttachmentName) {
        self.refused.retain(|one| one.name() != *name);
        if let Some(manifest) = &mut self.manifest {
            manifest.leave_out(name);
        }
    }

    /// Records that the machine that we requested exists, whatever became of the response.
    pub fn adopt(&mut self, machine: ResourceId) {
        self.present = Some(machine);
        self.delete_asked = false;
        self.running_since = None;
        self.incomplete = true;
    }

    /// Records that the deletion was seen.
    pub fn record_deletion(&mut self) {
        self.present = None;
        self.running_since = None;
    }

    /// Records how long a wake took, so that later starts begin early enough.
    pub fn record_wake(&mut self, took: SignedDuration) {
        self.took.insert(0, took);
        self.took.truncate(WAKES);
    }

    /// Returns how long before its instant the next start begins: one and a half times the longest
    /// of the latest wakes.
    #[must_use]
    pub fn next_lead(&self, size: &MachineSize) -> SignedDuration {
        match self.took.iter().max() {
            Some(&longest) => (longest + longest / 2).clamp(SHORTEST_LEAD, LONGEST_LEAD),
            None => super::first_lead(size),
        }
    }

    /// Records that the machine was seen off, or was switched on. Its running time counts anew from
    /// the next observation, because a machine that goes off again after each start proves nothing.
    pub fn record_off(&mut self) {
        self.running_since = None;
    }

    /// Records that the machine was seen running. If it was already seen running long enough ago,
    /// this proves the snapshot that it was created from. Returns whether anything changed.
    pub fn record_running(&mut self, seen_at: Timestamp) -> bool {
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
