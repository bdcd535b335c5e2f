//! What a record keeps of a machine that is or was hibernated: enough to find everything that we
//! may have created for it, and to recreate it.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Attachment, AttachmentName, Manifest, Mark, Sight, SnapshotState};
use crate::{
    money::Money,
    reference::ResourceId,
    resource::MachineSize,
    stored::is_default,
    timing::{LOOK_AGE, PERMIT, SKEW},
};

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

    /// Returns what the kept snapshots cost in a month. `None` while no size of them is known.
    #[must_use]
    pub fn snapshots_month(&self, per_gb_month: Money) -> Option<Money> {
        let mut sizes = self.seen_snapshots().filter_map(|one| one.centi_gb);
        let first = sizes.next()?;
        Some(per_gb_month.share(first + sizes.sum::<u64>(), 100))
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
