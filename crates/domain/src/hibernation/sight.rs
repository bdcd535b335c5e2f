//! What one observation shows of a machine that is hibernated or about to be, and what can be
//! concluded from it.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{Hibernation, KeptSnapshot, Manifest, Mark, Surroundings};
use crate::{
    reference::ResourceId,
    resource::{ActionEffect, ActionState, Busy, LoggedAction, Power, Resource, Size},
    timing::SKEW,
};

/// A machine, its snapshots, and other machines that carry its label or name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sight {
    /// The machine with its current id; `None` if that returned 404, or if no id is known.
    pub machine: Option<ObservedMachine>,
    /// All snapshots that carry its label.
    pub snapshots: Vec<SeenSnapshot>,
    /// All other machines that carry its label; if there is no machine, also those with its name.
    pub others: Vec<ObservedMachine>,
    /// Whether the latest request to create the machine has failed, according to its cloud.
    pub create_failed: bool,
}

impl Sight {
    /// Makes a printable line of every text that is shown.
    #[must_use]
    pub fn printable(self) -> Self {
        Self {
            machine: self.machine.map(ObservedMachine::printable),
            others: self.others.into_iter().map(ObservedMachine::printable).collect(),
            ..self
        }
    }
}

impl ObservedMachine {
    /// Makes a printable line of every text that is shown.
    #[must_use]
    pub fn printable(self) -> Self {
        Self {
            resource: self.resource.printable(),
            around: self.around.map(Surroundings::printable),
            ..self
        }
    }
}

/// A machine and its attached resources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedMachine {
    pub resource: Resource,
    /// The mark of the request that created it, if that was one of ours.
    pub mark: Option<Mark>,
    /// The image that it was created from.
    pub made_from: Option<u64>,
    /// What is needed to recreate it; `None` if that was not read.
    pub manifest: Option<Manifest>,
    /// What would be restored and lost, and what refers to it; `None` if that was not read.
    pub around: Option<Surroundings>,
    /// Public addresses that would be deleted with it.
    pub unkept: Vec<String>,
    /// Whether something is still being attached to it.
    pub settling: bool,
}

/// A snapshot as its cloud shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenSnapshot {
    pub id: u64,
    /// The mark of the request that created it.
    pub mark: Option<Mark>,
    /// The machine that it is a copy of.
    pub from: Option<ResourceId>,
    pub state: SnapshotState,
    /// When its cloud began it; `None` if only the machine's log says that.
    pub created_at: Option<Timestamp>,
    /// Its size, in hundredths of a GB; 0 until it is complete.
    pub centi_gb: u64,
    /// The disk that a machine created from it needs, in GB.
    pub disk_gib: u64,
    /// The processor architecture that it runs on, if its cloud has several.
    pub architecture: Option<String>,
    /// The regions in which machines can be created from it; `None` if it is available everywhere.
    pub regions: Option<BTreeSet<String>>,
    /// Whether it is protected from deletion; `None` if its cloud offers no protection.
    pub protected: Option<bool>,
    /// Whether it carries the opt-out label.
    pub opted_out: bool,
}

/// A machine's own action log, as far back as it was read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Log<'a> {
    pub actions: &'a [LoggedAction],
    /// The start of what was read; `None` if it was not read.
    pub from: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotState {
    Creating,
    Available,
    /// Its cloud says that it is unusable.
    Failed,
    /// Its cloud says something else, which is no reason to rely on it or to remove it.
    Unknown,
}

/// The state of a hibernated machine, as concluded from one observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HibernationState<'a> {
    Present(&'a ObservedMachine),
    /// We deleted the machine, and the snapshot that it is recreated from exists.
    Hibernated(&'a SeenSnapshot),
    BeingCreated(&'a ObservedMachine),
    /// The machine that we requested exists.
    Created(&'a ObservedMachine),
    /// There is no machine and no snapshot, or the token shows neither.
    SnapshotLost,
    /// Two machines were created.
    Duplicated,
    /// Another machine has its name, or its label.
    NameTaken(&'a ObservedMachine),
    /// There is no machine, and the record is older than the cloud: it was restored from a backup.
    Outdated(Unrecorded<'a>),
    /// There is no machine, and we did not delete it.
    Gone,
}

/// What we made, according to its labels, and what the record does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unrecorded<'a> {
    Snapshot(&'a SeenSnapshot),
    Machine(&'a ObservedMachine),
    /// The deletion of the machine that a snapshot holds.
    Deletion(&'a SeenSnapshot),
}

impl Sight {
    /// Keeps each machine once.
    #[must_use]
    pub fn distinct(mut self) -> Self {
        let own = self.machine.iter().map(|machine| machine.resource.id.clone());
        let mut known: BTreeSet<_> = own.collect();
        self.others.retain(|one| known.insert(one.resource.id.clone()));
        self
    }

    /// Concludes the state from this observation and from what the record keeps.
    #[must_use]
    pub fn hibernation_state<'a>(&'a self, hibernation: &Hibernation) -> HibernationState<'a> {
        let is_ours = |machine: &&ObservedMachine| {
            machine.mark.as_ref().is_some_and(|mark| hibernation.wakes.contains(mark))
        };
        let mut ours = self.others.iter().filter(is_ours);
        let (made, second) = (ours.next(), ours.next());
        if let Some(machine) = &self.machine {
            return match made {
                Some(_) => HibernationState::Duplicated,
                None => HibernationState::Present(machine),
            };
        }
        if let Some(unrecorded) = self.unrecorded(hibernation) {
            return HibernationState::Outdated(unrecorded);
        }
        if !hibernation.may_be_hibernated() {
            return HibernationState::Gone;
        }
        let snapshot = self.waking_snapshot(hibernation);
        let image = snapshot.map(|one| one.id);
        let image = image.or_else(|| hibernation.waking_snapshot()?.id);
        match (made, second) {
            (Some(_), Some(_)) => return HibernationState::Duplicated,
            (Some(made), None) if made.made_from == image && image.is_some() => {
                return if made.resource.busy == Some(Busy::Creating) {
                    HibernationState::BeingCreated(made)
                } else {
                    HibernationState::Created(made)
                };
            }
            (Some(_), None) | (None, _) => {}
        }
        match (self.others.first(), snapshot) {
            (Some(other), _) => HibernationState::NameTaken(other),
            // It was complete when its machine was deleted, whatever its cloud calls it now.
            (None, Some(snapshot)) => HibernationState::Hibernated(snapshot),
            (None, None) => HibernationState::SnapshotLost,
        }
    }

    /// Returns what shows that the record is older than its cloud, if anything: a machine with a mark
    /// of ours, or a snapshot, neither of which the record can explain.
    fn unrecorded(&self, hibernation: &Hibernation) -> Option<Unrecorded<'_>> {
        let knows_image = |id: u64| hibernation.snapshots.iter().any(|one| one.id == Some(id));
        let is_new = |machine: &&ObservedMachine| {
            let mark = machine.mark.as_ref();
            mark.is_some_and(|mark| !hibernation.wakes.contains(mark))
                && !machine.made_from.is_some_and(knows_image)
        };
        let machine = self.others.iter().find(is_new);
        let waking = hibernation.waking_snapshot().and_then(|one| one.id);
        // A copy that was listed only after it was given up is not in the record either. It is of a
        // machine that the record knows, or older than the copy that it is woken from: both clouds
        // number snapshots in the order in which they are made.
        let is_later = |one: &SeenSnapshot| {
            let from = one.from.as_ref();
            let known = |from: &ResourceId| {
                Some(from) == hibernation.present.as_ref()
                    || hibernation.snapshots.iter().any(|one| one.from == *from)
            };
            from.is_some_and(|from| !known(from)) && waking.is_none_or(|waking| one.id > waking)
        };
        let is_new = |one: &&SeenSnapshot| {
            let unknown =
                one.mark.as_ref().is_some_and(|mark| hibernation.snapshot(mark).is_none());
            unknown && (!hibernation.may_be_hibernated() || is_later(one))
        };
        let snapshot = self.snapshots.iter().find(is_new);
        let machine = machine.map(Unrecorded::Machine);
        let known = machine.or_else(|| snapshot.map(Unrecorded::Snapshot));
        known.or_else(|| self.only_copy(hibernation).map(Unrecorded::Deletion))
    }

    /// Returns a whole snapshot of the machine that is missing and that we did not delete. A person
    /// may have deleted it, or we did after the record was backed up.
    fn only_copy(&self, hibernation: &Hibernation) -> Option<&SeenSnapshot> {
        let is_kept = |one: &KeptSnapshot| {
            Some(&one.from) == hibernation.present.as_ref() && one.remove_asked_at.is_none()
        };
        let mut snapshots = self.snapshots.iter();
        snapshots.find(|one| {
            let kept = one.mark.as_ref().and_then(|mark| hibernation.snapshot(mark));
            one.state == SnapshotState::Available
                && !hibernation.may_be_hibernated()
                && kept.is_some_and(is_kept)
        })
    }

    /// Reports whether our deletion is seen: the machine is gone and its snapshot is there, so this
    /// is not another project.
    #[must_use]
    pub fn is_deleted(&self, hibernation: &Hibernation) -> bool {
        let snapshot = self.waking_snapshot(hibernation);
        self.machine.is_none() && hibernation.may_be_hibernated() && snapshot.is_some()
    }

    /// Returns the snapshot that the machine is recreated from.
    fn waking_snapshot(&self, hibernation: &Hibernation) -> Option<&SeenSnapshot> {
        self.snapshot(hibernation.wake_from.as_ref()?)
    }

    #[must_use]
    pub fn snapshot(&self, mark: &Mark) -> Option<&SeenSnapshot> {
        let mut all = self.snapshots.iter();
        all.find(|one| one.mark.as_ref() == Some(mark))
    }

    /// Returns the newest snapshot that holds everything the machine holds now, so that the machine
    /// may be deleted. A snapshot does not count if the log does not reach back to the observation
    /// on which its request rests: it began later, and the machine may have run in between.
    #[must_use]
    pub fn whole_copy<'k>(
        &self,
        hibernation: &'k Hibernation,
        log: Log<'_>,
    ) -> Option<(&'k KeptSnapshot, &SeenSnapshot)> {
        let machine = self.machine.as_ref()?;
        let Size::Machine(size) = &machine.resource.size else {
            return None;
        };
        let is_off = machine.resource.power == Power::Stopped && machine.resource.busy.is_none();
        let idle = log.actions.iter().all(|one| one.state != ActionState::Running);
        if !is_off || !idle {
            return None;
        }
        let mut copies = hibernation.snapshots.iter().enumerate();
        copies.find_map(|(place, one)| {
            let seen = self.snapshot(&one.mark)?;
            let older = &hibernation.snapshots[place + 1..];
            let before = older.iter().find_map(|one| one.centi_gb);
            let fits = one.remove_asked_at.is_none()
                && log.from.is_some_and(|from| from <= one.off_since())
                && Some(&one.from) == hibernation.present.as_ref()
                && seen.from.as_ref().is_none_or(|from| *from == one.from)
                && seen.state == SnapshotState::Available
                && seen.centi_gb > 0
                && before.is_none_or(|before| seen.centi_gb * 2 >= before)
                && seen.disk_gib <= size.disk_gib
                && seen.architecture == size.architecture
                && seen.is_in(&machine.resource.region);
            // Instants are compared in whole seconds.
            let begun = seen.created_at.or_else(|| log.snapshot_begun(one.asked_at));
            let begun = begun?.as_second();
            let untouched = !log.actions.iter().any(|action| match power_after(action.effect) {
                Some(Power::Running) => !action.is_over_before(one.off_since()),
                Some(_) => action.started_at.as_second() >= begun,
                None => false,
            });
            (fits && untouched).then_some((one, seen))
        })
    }
}

/// Returns the power state to which an action may lead; `None` if it changes neither that nor the
/// disk.
fn power_after(effect: ActionEffect) -> Option<Power> {
    match effect {
        ActionEffect::Start
        | ActionEffect::Reboot
        | ActionEffect::Rebuild
        | ActionEffect::Resize => Some(Power::Running),
        ActionEffect::Shutdown | ActionEffect::PowerOff => Some(Power::Stopped),
        ActionEffect::Snapshot | ActionEffect::Other => None,
    }
}

impl SeenSnapshot {
    /// Reports whether a machine can be created from it in a region.
    #[must_use]
    pub fn is_in(&self, region: &str) -> bool {
        let regions = self.regions.as_ref();
        regions.is_none_or(|regions| regions.contains(region))
    }
}

impl<'a> Log<'a> {
    /// Returns the first snapshot that began since one was requested. It began no later than ours.
    #[must_use]
    pub fn snapshot_since(&self, asked_at: Timestamp) -> Option<&'a LoggedAction> {
        let is_ours = |action: &&LoggedAction| {
            action.effect == ActionEffect::Snapshot && action.started_at >= asked_at - SKEW
        };
        let snapshots = self.actions.iter().filter(is_ours);
        snapshots.min_by_key(|action| (action.started_at, action.id))
    }

    fn snapshot_begun(&self, asked_at: Timestamp) -> Option<Timestamp> {
        let action = self.snapshot_since(asked_at)?;
        Some(action.started_at)
    }
}
