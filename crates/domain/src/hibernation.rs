//! Whether a machine could be hibernated: shut down, kept as a snapshot, deleted, and made again from
//! it. Pure: everything is decided from what was read.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use crate::{
    ResourceKind,
    money::Money,
    plan::{Catalog, Machine, Unfit, obstacles_to_a_plan},
    resource::{MachineSize, Resource},
};

mod kept;
mod sight;

pub use kept::*;
pub use sight::*;

use kept::LONGEST_LEAD;

/// How many snapshots of a machine are kept.
pub const KEPT: u64 = 2;

/// How long a snapshot takes at most, for each GB of the disk: `DigitalOcean` names two minutes for
/// each that is used (DOSNAPSHOTS), and Hetzner no time.
const SNAPSHOT_PER_GB: SignedDuration = SignedDuration::from_mins(2);

/// A snapshot may take one part in so many of the time for which its machine is off.
const PARTS_OFF: i32 = 3;

/// How long before its instant a start is begun at least, and how much longer for each GB.
const LEAD: SignedDuration = SignedDuration::from_mins(20);
const LEAD_PER_GB: SignedDuration = SignedDuration::from_secs(15);

/// What is around a machine at its cloud: what would have to be put back, and what names it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// Its public addresses.
    pub addresses: Vec<Address>,
    /// Its addresses in private networks.
    pub private: Vec<PrivateAddress>,
    /// What is attached to it and would be attached again, each in words: `volume data`.
    pub attached: Vec<String>,
    /// What names it by its id or private address elsewhere, each in words: `firewall web`.
    pub named_by: Vec<String>,
    /// Whether it has backups, which go with it.
    pub backups: bool,
    /// Whether it was made from an image of its owner's own, which may not boot again.
    pub custom_image: bool,
    /// Whether a firewall would be applied only after it runs again, and none before.
    pub open_at_first: bool,
    /// The account's SSH keys.
    pub ssh_keys: Vec<SshKey>,
    /// How many machines the account may have, where its cloud says so.
    pub room: Option<Room>,
    /// What the token may not read of the machine: `its tags`.
    pub unreadable: Vec<&'static str>,
    /// Why the account may create no machines, in its cloud's words.
    pub account_problem: Option<String>,
}

/// A public SSH key of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshKey {
    /// What it is called.
    pub name: String,
    /// How a request for a machine names it.
    pub sent_as: String,
}

/// How many machines an account may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// At most.
    pub most: u64,
    /// How many there are now.
    pub present: u64,
}

impl Surroundings {
    /// A key of the account, by its name.
    #[must_use]
    pub fn ssh_key(&self, name: &str) -> Option<&SshKey> {
        self.ssh_keys.iter().find(|key| key.name == name)
    }

    /// Whether it has an address that costs while no machine has it: a reserved IPv4 address does at
    /// `DigitalOcean` (DOSNAPSHOTS), and Hetzner's primary ones cost the same either way (HZPRICES).
    #[must_use]
    pub fn address_costs(&self, kind: ResourceKind) -> bool {
        let is_v4 = |address: &Address| address.stays && address.ip.contains('.');
        kind == ResourceKind::Droplet && self.addresses.iter().any(is_v4)
    }
}

/// A public address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The address, or the network.
    pub ip: String,
    /// Whether it can be kept while there is no machine, and be given to the new one.
    pub stays: bool,
    /// Whether its cloud has blocked it.
    pub blocked: bool,
}

/// An address in a private network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateAddress {
    /// The address.
    pub ip: String,
    /// Whether the new machine can have it.
    pub stays: bool,
}

/// What the owner of a machine has decided about it, and what is around its stop.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terms {
    /// What is accepted.
    pub accepted: BTreeSet<Risk>,
    /// Whether the machine needs its private address, where its cloud cannot keep that.
    pub needs_private_ip: bool,
    /// The key that a new machine is made with, by its name in the account.
    pub ssh_key: Option<String>,
    /// How many machines of the account are hibernated, each of which needs its place again.
    pub hibernated: u64,
    /// The stop that is in question; none where its length does not matter, or it has no end.
    pub stretch: Option<Stretch>,
}

/// For how long a machine would be off, and how large a snapshot of it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Until its next start.
    pub off: SignedDuration,
    /// The size of its latest snapshot, in hundredths of a GB; none where there is none yet, so that
    /// its whole disk is taken to be full.
    pub latest: Option<u64>,
}

/// What the owner of a machine can accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Risk {
    /// Another public address after each start.
    NewIp,
    /// The loss of the machine's backups.
    LostBackups,
    /// That the machine's own kind of image boots again, of which there is no promise.
    CustomImage,
}

/// Why a machine is not hibernated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// Its plan or its kind forbids it, as it would forbid a move to another plan.
    #[error("{0}")]
    Plan(#[from] Unfit),
    /// Its disk is smaller than its plan's, and the new machine's would not be.
    #[error(
        "its disk has {disk_gib} GB and its plan {plan_gib} GB: made again, it would have the \
         larger one for good"
    )]
    DiskWouldGrow {
        /// Its own.
        disk_gib: u64,
        /// The plan's.
        plan_gib: u64,
    },
    /// A public address would be lost.
    #[error("its public address {ip} would be lost")]
    AddressLost {
        /// The address.
        ip: String,
    },
    /// A public address is blocked.
    #[error("its public address {ip} is blocked by its cloud")]
    AddressBlocked {
        /// The address.
        ip: String,
    },
    /// A private address would be lost.
    #[error("its private address {ip} would be lost: its cloud lets none be chosen")]
    PrivateAddressLost {
        /// The address.
        ip: String,
    },
    /// Something else names it by what changes.
    #[error("{by} names it by its id or an address, and these would change")]
    Named {
        /// What, in words.
        by: String,
    },
    /// Its backups would be deleted with it.
    #[error("its backups would be deleted with it")]
    Backups,
    /// Its image may not boot.
    #[error("it was made from an image of its own, and whether a copy boots is not known")]
    CustomImage,
    /// It would be reachable for a moment.
    #[error("no firewall applies to it by a tag: until one is applied again, it would be open")]
    OpenAtFirst,
    /// Without a key, each new machine gets a random root password that has expired.
    #[error("no SSH key is named with which it would be made again")]
    NoKey,
    /// The key is not in the account.
    #[error("the account has no SSH key `{key}`")]
    UnknownKey {
        /// The key that is named.
        key: String,
    },
    /// The account may not create machines.
    #[error("its account may create no machines: {0}")]
    Account(String),
    /// There would be no place in the account to make it again.
    #[error(
        "its account may have {most} machines, and has {needed} with those that are hibernated: there \
         may be no place to make it again"
    )]
    NoRoom {
        /// How many it may have.
        most: u64,
        /// How many it has, with those that are hibernated.
        needed: u64,
    },
    /// Its snapshot would take too much of the time that it is to save.
    #[error(
        "its snapshot of {gb} GB may take {minutes} min, more than a third of the {off_minutes} min \
         for which it would be off"
    )]
    SlowSnapshot {
        /// How large the snapshot may be.
        gb: u64,
        /// How long that may take.
        minutes: i64,
        /// For how long the machine would be off.
        off_minutes: i64,
        /// Whether the size is that of a snapshot, and not of the whole disk.
        measured: bool,
    },
    /// No machine made from one of its snapshots has been seen to run.
    #[error("no snapshot of it has been seen to boot")]
    NotRehearsed,
    /// What is not known would not be put back.
    #[error("the token may not read {0}, which would not be put back")]
    Unreadable(&'static str),
}

impl Obstacle {
    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Plan(unfit) => unfit.remedy(),
            Self::DiskWouldGrow { .. } => {
                "move it to a plan whose disk is as large as its own, or stop it by resize or rescale"
            }
            Self::AddressLost { .. } => {
                "reserve an address and assign it to the Droplet, or accept another one each time \
                 (accept = [\"new-ip\"], --accept new-ip)"
            }
            Self::AddressBlocked { .. } => "settle the block with the cloud first",
            Self::PrivateAddressLost { .. } => {
                "let others reach it by a name or a reserved address, so that it needs none of its \
                 own (without needs_private_ip, --needs-private-ip)"
            }
            Self::Named { .. } => "name it there by a tag, which the new machine has as well",
            Self::Backups => {
                "convert the backups that you need to snapshots, and accept the loss of the others \
                 (accept = [\"lost-backups\"], --accept lost-backups)"
            }
            Self::CustomImage => {
                "make a machine from a snapshot of it by hand, look whether it boots, and accept \
                 the image (accept = [\"custom-image\"], --accept custom-image)"
            }
            Self::OpenAtFirst => "let one of its firewalls apply to it by a tag",
            Self::NoKey => "name one of the account's keys (ssh_key in its account, --key)",
            Self::UnknownKey { .. } => "name one that it has (ssh_key in its account, --key)",
            Self::Account(_) => "settle that with the cloud first",
            Self::NoRoom { .. } => "have the cloud raise the account's limit, or delete a machine",
            Self::SlowSnapshot { measured: true, .. } => {
                "let it be off for longer at a time, or stop it by another method"
            }
            Self::SlowSnapshot { .. } => {
                "see how much of its disk is used: with otherwise = \"power-off\", `offhours rehearse \
                 REF --cycle` makes a first snapshot, whose size counts from then on; or stop it by \
                 another method"
            }
            Self::NotRehearsed => "rehearse it while you look on: `offhours rehearse REF --cycle`",
            Self::Unreadable(_) => "give the token the scope for it",
        }
    }
}

/// Everything that stands in the way, most serious first.
#[must_use]
pub fn preflight(
    machine: Machine<'_>,
    around: &Surroundings,
    catalog: &Catalog,
    terms: &Terms,
) -> Vec<Obstacle> {
    let accepts = |risk| terms.accepted.contains(&risk);
    let mut obstacles = obstacles_of_its_own(machine, catalog);
    obstacles.extend(around.account_problem.clone().map(Obstacle::Account));
    obstacles.extend(around.room.and_then(|room| no_room(room, terms.hibernated)));
    obstacles.extend(
        around
            .unreadable
            .iter()
            .map(|what| Obstacle::Unreadable(what)),
    );
    for Address { ip, stays, blocked } in &around.addresses {
        let ip = ip.clone();
        if *blocked {
            obstacles.push(Obstacle::AddressBlocked { ip });
        } else if !stays && !accepts(Risk::NewIp) {
            obstacles.push(Obstacle::AddressLost { ip });
        }
    }
    let lost = around.private.iter().filter(|private| !private.stays);
    for PrivateAddress { ip, .. } in lost.filter(|_| terms.needs_private_ip) {
        obstacles.push(Obstacle::PrivateAddressLost { ip: ip.clone() });
    }
    let named = around.named_by.iter();
    obstacles.extend(named.map(|by| Obstacle::Named { by: by.clone() }));
    let flags = [
        (
            around.backups && !accepts(Risk::LostBackups),
            Obstacle::Backups,
        ),
        (
            around.custom_image && !accepts(Risk::CustomImage),
            Obstacle::CustomImage,
        ),
        (around.open_at_first, Obstacle::OpenAtFirst),
    ];
    let apply = flags.into_iter().filter(|(applies, _)| *applies);
    obstacles.extend(apply.map(|(_, obstacle)| obstacle));
    obstacles.extend(key(around, terms));
    let stretch = terms.stretch;
    obstacles.extend(stretch.and_then(|stretch| slow_snapshot(machine, stretch)));
    obstacles
}

/// What stands in the way of it by what a list shows of the machine, whatever is around it.
#[must_use]
pub fn obstacles_of_its_own(machine: Machine<'_>, catalog: &Catalog) -> Vec<Obstacle> {
    let plan = obstacles_to_a_plan(machine, catalog).into_iter();
    let plan = plan.map(Obstacle::from);
    plan.chain(disk(machine.size, catalog)).collect()
}

/// A new machine has the disk of its plan: a smaller one would grow, and so would what its next
/// snapshot needs.
fn disk(size: &MachineSize, catalog: &Catalog) -> Option<Obstacle> {
    let plan_gib = catalog.plan(&size.plan)?.disk_gib;
    let disk_gib = size.disk_gib;
    (disk_gib < plan_gib).then_some(Obstacle::DiskWouldGrow { disk_gib, plan_gib })
}

fn no_room(room: Room, hibernated: u64) -> Option<Obstacle> {
    let Room { most, present } = room;
    let needed = present + hibernated;
    (needed > most).then_some(Obstacle::NoRoom { most, needed })
}

fn key(around: &Surroundings, terms: &Terms) -> Option<Obstacle> {
    match &terms.ssh_key {
        None => Some(Obstacle::NoKey),
        Some(key) if around.ssh_key(key).is_some() => None,
        Some(key) => Some(Obstacle::UnknownKey { key: key.clone() }),
    }
}

/// A snapshot that takes most of the night saves little, and may still be under way at the next
/// start.
fn slow_snapshot(machine: Machine<'_>, Stretch { off, latest }: Stretch) -> Option<Obstacle> {
    let gb = latest.map_or(machine.size.disk_gib, |centi_gb| centi_gb.div_ceil(100));
    let takes = snapshot_of(gb);
    let is_slow = has_snapshot_time(machine.resource.kind()) && takes * PARTS_OFF > off;
    is_slow.then_some(Obstacle::SlowSnapshot {
        gb,
        minutes: takes.as_mins(),
        off_minutes: off.as_mins(),
        measured: latest.is_some(),
    })
}

fn snapshot_of(gigabytes: u64) -> SignedDuration {
    SNAPSHOT_PER_GB * i32::try_from(gigabytes).unwrap_or(i32::MAX)
}

/// Whether a machine's provider documents how long a snapshot takes. Hetzner does not.
#[must_use]
pub fn has_snapshot_time(kind: ResourceKind) -> bool {
    kind == ResourceKind::Droplet
}

/// How long a stop makes its first snapshot at most: the whole disk is taken to be full, and Hetzner
/// to be no slower than `DigitalOcean`.
#[must_use]
pub fn first_snapshot(size: &MachineSize) -> SignedDuration {
    snapshot_of(size.disk_gib)
}

/// How long before its instant a machine's first start begins. Later leads follow from how long
/// earlier starts took.
#[must_use]
pub fn first_lead(size: &MachineSize) -> SignedDuration {
    let gigabytes = i32::try_from(size.disk_gib).unwrap_or(i32::MAX);
    (LEAD + LEAD_PER_GB * gigabytes).min(LONGEST_LEAD)
}

/// What its snapshots cost in a month at most: as many as are kept, each as large as the disk.
#[must_use]
pub fn snapshots_at_most(size: &MachineSize, per_gb_month: Money) -> Money {
    per_gb_month.share(size.disk_gib * KEPT, 1)
}

/// What no way of making a machine again keeps.
#[must_use]
pub fn always_lost(resource: &Resource) -> &'static [&'static str] {
    if resource.kind() == ResourceKind::Server {
        &[
            "its id and creation date",
            "its actions and metrics",
            "its hardware address",
            "its counter of included traffic",
            "its place in Terraform's state",
        ]
    } else {
        &[
            "its id and creation date",
            "its actions and metrics",
            "its private and anchor addresses",
            "the free traffic of the hours in which it is not there",
            "its place in Terraform's state",
        ]
    }
}

#[cfg(test)]
mod tests;
