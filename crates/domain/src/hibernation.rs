//! Whether a machine can be hibernated: shut down, kept as a snapshot, deleted, and recreated from
//! it. Pure: everything is decided from data that was already read.

use std::collections::BTreeSet;

use crate::{
    ResourceKind,
    money::Money,
    plan::{Catalog, Machine, MoveRefusal, obstacles_to_a_plan},
    resource::{MachineSize, Resource},
    text::{LONGEST_MESSAGE, one_line},
};
use jiff::SignedDuration;

mod attachment;
mod manifest;
mod mark;
mod origin;
mod request;
mod sight;
mod state;

pub use crate::configuration::Risk;
pub use attachment::*;
pub use manifest::*;
pub use mark::*;
pub use origin::*;
pub use request::*;
pub use sight::*;
pub use state::*;

use state::LONGEST_LEAD;

/// The price of a reserved IPv4 address for an hour in which no Droplet has it, and for a month at
/// most (DOSNAPSHOTS).
pub const IDLE_ADDRESS: (&str, &str) = ("0.01", "5");

/// How many snapshots of a machine are kept.
pub const SNAPSHOTS_TO_KEEP: u64 = 2;

/// The longest time a snapshot takes for each GB of the disk. `DigitalOcean` documents two minutes
/// for each GB used (DOSNAPSHOTS); Hetzner documents no time.
const SNAPSHOT_PER_GB: SignedDuration = SignedDuration::from_mins(2);

/// How long a machine must run to prove its snapshot: its inventory takes a look every five minutes.
const RUN_TO_PROVE: SignedDuration = SignedDuration::from_mins(PROVEN_AFTER.as_mins() + 5);

/// A snapshot may take at most one part in this many of the time for which its machine is off.
const PARTS_OFF: i32 = 3;

/// The lead of a machine's first start: a fixed part, and more for each GB.
const LEAD: SignedDuration = SignedDuration::from_mins(20);
const LEAD_PER_GB: SignedDuration = SignedDuration::from_secs(15);

/// A machine's surroundings at its cloud: what would have to be put back, and what refers to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// Its public addresses.
    pub addresses: Vec<Address>,
    /// Its own public addresses behind those that can be kept: its outgoing traffic comes from them,
    /// and the new machine has others.
    pub outgoing: Vec<String>,
    /// Its addresses in private networks.
    pub private: Vec<PrivateAddress>,
    /// Attached resources that would be reattached, each in words: `volume data`.
    pub attached: Vec<String>,
    /// What refers to it elsewhere by its id or private address, each in words: `firewall web`.
    pub named_by: Vec<String>,
    /// Whether it has backups, which are deleted with it.
    pub backups: bool,
    /// Whether it was created from a custom image, which may not boot again.
    pub custom_image: bool,
    /// Whether firewalls would be applied only once it runs again, and none before.
    pub open_at_first: bool,
    pub ssh_keys: Vec<SshKey>,
    /// The account's limit on machines, if its cloud reports one.
    pub room: Option<MachineLimit>,
    /// What the token may not read about the machine: `its tags`.
    pub unreadable: Vec<&'static str>,
    /// Why the account may not create machines, in its cloud's words.
    pub account_problem: Option<String>,
}

/// A public SSH key of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshKey {
    pub name: String,
    /// How a request to create a machine refers to it.
    pub sent_as: String,
}

/// An account's limit on machines, and how many it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineLimit {
    /// The most machines that the account may have.
    pub most: u64,
    /// The machines that it has now.
    pub present: u64,
}

impl Surroundings {
    /// Makes a printable line of every text that is shown.
    #[must_use]
    pub fn printable(mut self) -> Self {
        let words = self.attached.iter_mut().chain(&mut self.named_by);
        let words = words.chain(&mut self.account_problem);
        for text in words.chain(self.ssh_keys.iter_mut().map(|key| &mut key.name)) {
            *text = one_line(text, LONGEST_MESSAGE).into_owned();
        }
        self
    }

    #[must_use]
    pub fn ssh_key(&self, name: &str) -> Option<&SshKey> {
        self.ssh_keys.iter().find(|key| key.name == name)
    }

    /// Returns what is restored when the machine is recreated.
    #[must_use]
    pub fn put_back(&self) -> Vec<String> {
        let stays = self.addresses.iter().filter(|address| address.stays);
        let private = self.private.iter().filter(|private| private.stays);
        let own = ["its name", "its tags", "its plan and disk"].map(str::to_owned);
        own.into_iter()
            .chain(stays.map(|address| format!("address {}", address.ip)))
            .chain(private.map(|private| format!("private address {}", private.ip)))
            .chain(self.attached.iter().cloned())
            .collect()
    }

    /// Returns what is lost when the machine is recreated.
    #[must_use]
    pub fn lost(&self, resource: &Resource) -> Vec<String> {
        let lost = self.addresses.iter().filter(|address| !address.stays);
        let always_lost = resource.kind().cloud_facts().map(|cloud| cloud.always_lost);
        let outgoing = self.outgoing.iter();
        let outgoing =
            outgoing.map(|ip| format!("address {ip}, from which its outgoing traffic comes"));
        lost.map(|address| format!("address {}", address.ip))
            .chain(outgoing)
            .chain(always_lost.into_iter().flatten().map(|&what| what.to_owned()))
            .collect()
    }

    /// Reports whether the machine has an address that costs money while it is unassigned.
    #[must_use]
    pub fn address_costs(&self, kind: ResourceKind) -> bool {
        let is_v4 = |address: &Address| address.stays && address.ip.contains('.');
        kind.cloud_facts().is_some_and(|cloud| cloud.idle_addresses_cost)
            && self.addresses.iter().any(is_v4)
    }
}

/// A public address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The address, or the network.
    pub ip: String,
    /// Whether it can be kept while there is no machine, and assigned to the new one.
    pub stays: bool,
    pub blocked: bool,
}

/// An address in a private network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateAddress {
    pub ip: String,
    /// Whether the new machine can have it.
    pub stays: bool,
}

/// What the owner of a machine has decided about hibernating it, and the circumstances of its stop.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HibernationTerms {
    pub accepted: BTreeSet<Risk>,
    /// Whether it is an obstacle that the cloud cannot keep the machine's private address.
    pub needs_private_ip: bool,
    /// The SSH key to create the new machine with, by its name in the account.
    pub ssh_key: Option<String>,
    /// How many machines of the account are hibernated. Each of them needs its place again.
    pub hibernated: u64,
    /// The stop in question; `None` if its length does not matter, or if it has no end.
    pub off_period: Option<OffPeriod>,
    /// The longest time for which the machine's schedule runs it; `None` if that does not matter, or
    /// if it has no end.
    pub longest_run: Option<SignedDuration>,
}

/// How long a machine would be off, and how large a snapshot of it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffPeriod {
    /// The time until its next start.
    pub off: SignedDuration,
    /// The size of its latest snapshot, in hundredths of a GB. If `None`, there is none yet, and
    /// the whole disk counts as full.
    pub latest: Option<u64>,
}

/// Why a machine is not hibernated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// Its plan or its kind rules it out, as either would rule out a move to another plan.
    #[error("{0}")]
    Plan(#[from] MoveRefusal),
    /// Its disk is smaller than its plan's, and the new machine's would not be.
    #[error(
        "its disk has {disk_gib} GB and its plan {plan_gib} GB: recreated, it would keep the larger \
         disk"
    )]
    DiskWouldGrow {
        disk_gib: u64,
        /// The size of its plan's disk.
        plan_gib: u64,
    },
    #[error("its public address {ip} would be lost")]
    AddressLost { ip: String },
    #[error("its public address {ip} is blocked by its cloud")]
    AddressBlocked { ip: String },
    #[error("its private address {ip} would be lost: its cloud assigns another one each time")]
    PrivateAddressLost { ip: String },
    /// Something else refers to it by its id or an address, which would change.
    #[error("{by} refers to it by its id or an address, which would change")]
    Named {
        /// What refers to it, in words.
        by: String,
    },
    #[error("its backups would be deleted with it")]
    Backups,
    #[error("it was created from a custom image, which may not boot again")]
    CustomImage,
    /// It would be reachable without a firewall for a moment.
    #[error(
        "no firewall applies to it by a tag: recreated, it would be open until one is reattached"
    )]
    OpenAtFirst,
    /// No SSH key is named. Without one, each new machine gets a random root password that has
    /// expired.
    #[error("no SSH key is named to recreate it with")]
    NoKey,
    #[error("the account has no SSH key `{key}`")]
    UnknownKey { key: String },
    #[error("its account may not create machines: {0}")]
    Account(String),
    #[error(
        "its account's limit of {most} machines leaves no room to recreate it: with those that are \
         hibernated, it has {needed}"
    )]
    NoRoom {
        /// The most machines that the account may have.
        most: u64,
        /// The machines that it has, including those that are hibernated.
        needed: u64,
    },
    /// Its snapshot would take too much of the time for which it would be off.
    #[error(
        "its snapshot of {gb} GB may take {minutes} min, more than a third of the {off_minutes} min \
         for which it would be off"
    )]
    SlowSnapshot {
        /// How large the snapshot may be.
        gb: u64,
        /// How long the snapshot may take.
        minutes: i64,
        /// How long the machine would be off.
        off_minutes: i64,
        /// Whether the size is that of an earlier snapshot, rather than of the whole disk.
        measured: bool,
    },
    /// No machine created from its snapshots would run long enough to prove them, so that none of
    /// them could be removed.
    #[error(
        "it runs for {minutes} min at most, too short to prove that a snapshot boots: after {MAX_SNAPSHOTS} \
         snapshots it would no longer be hibernated"
    )]
    ShortRun {
        /// How long it runs.
        minutes: i64,
    },
    /// No machine created from one of its snapshots has been seen running.
    #[error("no snapshot of it is known to boot")]
    NotRehearsed,
    /// The token may not read something, which would therefore not be put back.
    #[error("the token may not read {0}, which would not be put back")]
    Unreadable(&'static str),
}

impl Obstacle {
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Plan(refusal) => refusal.remedy(),
            Self::DiskWouldGrow { .. } => {
                "move it to a plan whose disk is as large as its own, or stop it by resize or rescale"
            }
            Self::AddressLost { .. } => {
                "reserve an address and assign it to the Droplet, or accept another one each time \
                 (accept = [\"new-ip\"])"
            }
            Self::AddressBlocked { .. } => "settle the block with the cloud first",
            Self::PrivateAddressLost { .. } => {
                "let others reach it by a name or a reserved address, so that it needs none of its \
                 own (without needs_private_ip)"
            }
            Self::Named { .. } => "refer to it there by a tag, which the new machine has as well",
            Self::Backups => {
                "convert the backups that you need to snapshots, and accept the loss of the others \
                 (accept = [\"lost-backups\"])"
            }
            Self::CustomImage => {
                "create a machine from a snapshot of it, check that it boots, and accept the image \
                 (accept = [\"custom-image\"])"
            }
            Self::OpenAtFirst => "let one of its firewalls apply to it by a tag",
            Self::NoKey => "name one of the account's keys (ssh_key in its account)",
            Self::UnknownKey { .. } => "name one that it has (ssh_key in its account)",
            Self::Account(_) => "settle that with the cloud first",
            Self::NoRoom { .. } => "have the cloud raise the account's limit, or delete a machine",
            Self::SlowSnapshot { measured: true, .. } => {
                "let it be off for longer at a time, or stop it by another method"
            }
            Self::SlowSnapshot { .. } => {
                "see how much of its disk is used: with otherwise = \"power-off\", `offhours rehearse \
                 REF` makes a first snapshot, whose size counts from then on; or stop it by \
                 another method"
            }
            Self::ShortRun { .. } => {
                "let it run for at least a quarter of an hour at a time, or stop it by another method"
            }
            Self::NotRehearsed => "rehearse it first: `offhours rehearse REF`",
            Self::Unreadable(_) => "give the token the scope for it",
        }
    }
}

/// Returns every obstacle to hibernating a machine, most serious first.
#[must_use]
pub fn preflight(
    machine: Machine<'_>,
    around: &Surroundings,
    catalog: &Catalog,
    terms: &HibernationTerms,
) -> Vec<Obstacle> {
    let accepts = |risk| terms.accepted.contains(&risk);
    let mut obstacles = obstacles_of_its_own(machine, catalog);
    obstacles.extend(around.account_problem.clone().map(Obstacle::Account));
    obstacles.extend(around.room.and_then(|room| no_room(room, terms.hibernated)));
    obstacles.extend(around.unreadable.iter().map(|what| Obstacle::Unreadable(what)));
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
        (around.backups && !accepts(Risk::LostBackups), Obstacle::Backups),
        (around.custom_image && !accepts(Risk::CustomImage), Obstacle::CustomImage),
        (around.open_at_first, Obstacle::OpenAtFirst),
    ];
    let apply = flags.into_iter().filter(|(applies, _)| *applies);
    obstacles.extend(apply.map(|(_, obstacle)| obstacle));
    obstacles.extend(key(around, terms));
    let off_period = terms.off_period;
    obstacles.extend(off_period.and_then(|off_period| slow_snapshot(machine, off_period)));
    let longest_run = terms.longest_run;
    let short_run = longest_run.filter(|&run| run < RUN_TO_PROVE);
    obstacles.extend(short_run.map(|run| Obstacle::ShortRun { minutes: run.as_mins() }));
    obstacles
}

/// Returns the obstacles that a list of machines shows, regardless of the machine's surroundings.
#[must_use]
pub fn obstacles_of_its_own(machine: Machine<'_>, catalog: &Catalog) -> Vec<Obstacle> {
    let plan = obstacles_to_a_plan(machine, catalog).into_iter();
    let plan = plan.map(Obstacle::from);
    plan.chain(disk(machine.size, catalog)).collect()
}

/// A new machine gets the disk of its plan: a smaller disk would grow, and so would the disk that
/// its next snapshot needs.
fn disk(size: &MachineSize, catalog: &Catalog) -> Option<Obstacle> {
    let plan_gib = catalog.plan(&size.plan)?.disk_gib;
    let disk_gib = size.disk_gib;
    (disk_gib < plan_gib).then_some(Obstacle::DiskWouldGrow { disk_gib, plan_gib })
}

fn no_room(room: MachineLimit, hibernated: u64) -> Option<Obstacle> {
    let MachineLimit { most, present } = room;
    let needed = present + hibernated;
    (needed > most).then_some(Obstacle::NoRoom { most, needed })
}

fn key(around: &Surroundings, terms: &HibernationTerms) -> Option<Obstacle> {
    match &terms.ssh_key {
        None => Some(Obstacle::NoKey),
        Some(key) if around.ssh_key(key).is_some() => None,
        Some(key) => Some(Obstacle::UnknownKey { key: key.clone() }),
    }
}

/// A snapshot that takes most of the night saves little, and may still be under way at the next
/// start.
fn slow_snapshot(machine: Machine<'_>, OffPeriod { off, latest }: OffPeriod) -> Option<Obstacle> {
    let gb = latest.map_or(machine.size.disk_gib, |centi_gb| centi_gb.div_ceil(100));
    let takes = snapshot_of(gb);
    let cloud = machine.resource.kind().cloud_facts();
    let is_slow = cloud.is_some_and(|cloud| cloud.has_snapshot_time) && takes * PARTS_OFF > off;
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

/// Returns the longest time that a stop takes for its first snapshot. It assumes that the disk is
/// full, and that Hetzner is no slower than `DigitalOcean`.
#[must_use]
pub fn first_snapshot(size: &MachineSize) -> SignedDuration {
    snapshot_of(size.disk_gib)
}

/// Returns how long before its instant a machine's first start begins. Later leads depend on how
/// long earlier starts took.
#[must_use]
pub fn first_lead(size: &MachineSize) -> SignedDuration {
    let gigabytes = i32::try_from(size.disk_gib).unwrap_or(i32::MAX);
    (LEAD + LEAD_PER_GB * gigabytes).min(LONGEST_LEAD)
}

/// Returns the most that the machine's snapshots cost in a month: as many as are kept, each as
/// large as the disk.
#[must_use]
pub fn snapshots_at_most(size: &MachineSize, per_gb_month: Money) -> Money {
    per_gb_month.share(size.disk_gib * SNAPSHOTS_TO_KEEP, 1)
}

#[cfg(test)]
mod tests;
