//! A machine that is kept as a snapshot while it is stopped: shut down, copied, deleted, and
//! recreated. The next request is derived from what is there, not remembered; only the result of
//! the last one is, because no other leaves before that is known.

use domain::{
    ResourceId,
    hibernation::{
        Attachment, Hibernation, HibernationState, KEPT_FOR, KeptSnapshot, Label, Log,
        MAX_SNAPSHOTS, Manifest, Mark, OF_LABEL, ObservedMachine, SNAPSHOTS_TO_KEEP, SeenSnapshot,
        Sight, SnapshotState, Unrecorded,
    },
    record::{Ask, Direction, PERMIT, Record, Request, SKEW},
    resource::{ActionState, Busy, Power, Resource, SavedState, Size},
    step::{Step, UNLISTED},
};
use jiff::{SignedDuration, Timestamp};

use super::{
    Method, Next, Outcome,
    smaller_plan::{off, on},
};
use crate::view::{Observation, View};

/// A machine that is to run again this soon is not deleted.
pub const CLEAR_OF_START: SignedDuration = SignedDuration::from_hours(1);

/// A machine that is to run again this soon is not hibernated.
pub const WORTH_IT: SignedDuration = SignedDuration::from_hours(4);

/// This many failed snapshots in one stop need a person.
const TRIES: usize = 3;

/// Deleted, and kept as a snapshot.
pub struct Hibernate;

impl Method for Hibernate {
    fn next(&self, view: View<'_>, direction: Direction) -> Next {
        let next = next(view, direction);
        next.unwrap_or_else(|| Next::Wait("its snapshots were not read".to_owned()))
    }

    fn reached(&self, view: View<'_>, direction: Direction, _: Option<&SavedState>) -> bool {
        view.seen.sight.is_some_and(|sight| reached(direction, view.record, sight))
    }

    fn outcome(&self, view: View<'_>, request: &Request) -> Option<Outcome> {
        outcome(view, request)
    }

    fn always_yields(&self) -> bool {
        true
    }
}

/// Returns the next request of a transition.
fn next(view: View<'_>, direction: Direction) -> Option<Next> {
    let sight = view.seen.sight?;
    let Some(kept) = view.record.hibernation.as_deref() else {
        return Some(Next::Ask(off(view.switch_off())));
    };
    Some(match (direction, sight.hibernation_state(kept)) {
        (
            _,
            state @ (HibernationState::SnapshotLost
            | HibernationState::Duplicated
            | HibernationState::NameTaken(_)
            | HibernationState::Outdated(_)),
        ) => Next::Person(problem(state)),
        (_, HibernationState::BeingCreated(_)) => Next::Wait("it is being made".to_owned()),
        (_, HibernationState::Created(_)) => Next::Wait("it was just made".to_owned()),
        (_, HibernationState::Gone) => Next::Wait("the provider answers 404".to_owned()),
        (Direction::Stop, HibernationState::Hibernated(_)) => {
            Next::Wait("it is hibernated".to_owned())
        }
        (Direction::Start, HibernationState::Hibernated(snapshot)) => create(view, kept, snapshot),
        (Direction::Stop, HibernationState::Present(machine)) => {
            hibernate(view, kept, sight, machine)
        }
        (Direction::Start, HibernationState::Present(machine)) => wake(view.record, kept, machine),
    })
}

fn hibernate(view: View<'_>, kept: &Hibernation, sight: &Sight, machine: &ObservedMachine) -> Next {
    let record = view.record;
    if machine.resource.power != Power::Stopped {
        return Next::Ask(off(view.switch_off()));
    }
    if record.saved.is_some() {
        let reason = "it is owed its own plan, and was only powered off";
        return Next::StayOff(reason.to_owned());
    }
    let too_near = |start: Timestamp| start.duration_since(view.now) < CLEAR_OF_START;
    if view.next_start().is_some_and(too_near) {
        let reason = "it is to run again within the hour, and was only powered off";
        return Next::StayOff(reason.to_owned());
    }
    if record.not_before().is_some_and(|until| view.now < until) {
        return Next::Wait("an earlier start may still act".to_owned());
    }
    let copy = sight.whole_copy(kept, view.seen.whole_log());
    if let Some(removal) = removal(view, kept, sight, copy.is_none()) {
        return Next::Ask(removal);
    }
    if let Some(address) = machine.unkept.first() {
        return Next::Ask(Step::KeepAddress(address.clone()));
    }
    match copy {
        Some((_, seen)) if seen.protected == Some(false) => {
            Next::Ask(Step::Protect { snapshot: seen.id, on: true })
        }
        Some(_) => Next::Ask(Step::Delete),
        None => snapshot(record, kept, sight),
    }
}

fn snapshot(record: &Record, kept: &Hibernation, sight: &Sight) -> Next {
    let claimed_at = record.in_flight().map(|now| now.claimed_at);
    let is_of_this = |one: &&KeptSnapshot| {
        one.centi_gb.is_some() && claimed_at.is_some_and(|at| one.asked_at >= at)
    };
    let of_this = kept.snapshots.iter().filter(is_of_this).count();
    if of_this + kept.failed >= TRIES {
        let reason = format!("{TRIES} snapshots of it failed, or hold less than the one before");
        return Next::Person(reason);
    }
    if seen(kept, sight).len() >= MAX_SNAPSHOTS {
        let reason = format!("{MAX_SNAPSHOTS} snapshots of it are kept, and none may be removed");
        return Next::Person(reason);
    }
    Next::Ask(Step::Snapshot(Label {
        of: record.reference.id.clone(),
        // A placeholder: the write that permits the request sets the mark.
        mark: Mark::default(),
    }))
}

/// Returns what a stop removes before it adds another snapshot: one that failed, or an old one that
/// is not needed, because a newer one has proved itself and is seen now, and more than are to be
/// kept are there. One that is not old yet goes only to make room for another one. What could not
/// be removed once in this stop is left to the next.
fn removal(view: View<'_>, kept: &Hibernation, sight: &Sight, adds_another: bool) -> Option<Step> {
    let request = view.record.request.as_ref();
    let failed =
        |request: &Request| request.step.removes() && matches!(request.ask, Ask::Failed { .. });
    if request.is_some_and(failed) {
        return None;
    }
    let seen = seen(kept, sight);
    // A cloud may show any word for a while, even of a snapshot that was complete.
    let useless = seen.iter().find(|(one, seen)| {
        let wakes = kept.wake_from.as_ref() == Some(&one.mark);
        seen.state == SnapshotState::Failed && one.centi_gb.is_none() && !wakes
    });
    let needs_room = adds_another && seen.len() >= MAX_SNAPSHOTS;
    let (_, removed) = useless.or_else(|| unneeded(kept, &seen, needs_room, view.now))?;
    let snapshot = removed.id;
    Some(match removed.protected {
        Some(true) => Step::Protect { snapshot, on: false },
        Some(false) | None => Step::RemoveSnapshot(snapshot),
    })
}

/// A snapshot that is kept, with how it is seen.
type Found<'a> = (&'a KeptSnapshot, &'a SeenSnapshot);

/// Returns the snapshots that are kept and seen, newest first.
fn seen<'a>(kept: &'a Hibernation, sight: &'a Sight) -> Vec<Found<'a>> {
    let all = kept.snapshots.iter();
    all.filter_map(|one| Some((one, sight.snapshot(&one.mark)?))).collect()
}

fn unneeded<'a, 'f>(
    kept: &Hibernation,
    seen: &'f [Found<'a>],
    needs_room: bool,
    now: Timestamp,
) -> Option<&'f Found<'a>> {
    let is_complete = |found: &&Found<'_>| found.1.state == SnapshotState::Available;
    let complete: Vec<_> = seen.iter().filter(is_complete).collect();
    let (oldest, newer) = complete.split_last()?;
    let (one, _) = oldest;
    let proven = newer.iter().any(|(one, _)| one.proven_at.is_some());
    let enough = newer.len() >= usize::try_from(SNAPSHOTS_TO_KEEP).unwrap_or(usize::MAX);
    let is_old = now.duration_since(one.asked_at) > KEPT_FOR;
    let wakes = kept.wake_from.as_ref() == Some(&one.mark);
    (proven && enough && (is_old || needs_room) && !wakes).then_some(*oldest)
}

fn create(view: View<'_>, kept: &Hibernation, snapshot: &SeenSnapshot) -> Next {
    match view.seen.creates.or(kept.manifest.as_ref()) {
        Some(manifest) => Next::Ask(Step::Create {
            label: Label { of: view.record.reference.id.clone(), mark: Mark::default() },
            snapshot: snapshot.id,
            manifest: Box::new(manifest.clone()),
        }),
        None => Next::Person("what it was like is not recorded".to_owned()),
    }
}

fn wake(record: &Record, kept: &Hibernation, machine: &ObservedMachine) -> Next {
    match lacks(kept, machine) {
        Lacks::Unknown => Next::Wait("what is attached to it was not read".to_owned()),
        Lacks::One(what) => Next::Ask(Step::Attach(what)),
        Lacks::Nothing if machine.settling => {
            Next::Wait("its firewalls are not applied yet".to_owned())
        }
        Lacks::Nothing => Next::Ask(on(&machine.resource, record)),
    }
}

/// What a machine that we created lacks of what it had.
#[derive(Debug, PartialEq, Eq)]
enum Lacks {
    /// Nothing, which includes a machine that was never deleted.
    Nothing,
    /// This, and perhaps more.
    One(Attachment),
    /// What it has was not read.
    Unknown,
}

fn lacks(kept: &Hibernation, machine: &ObservedMachine) -> Lacks {
    let woken = !kept.wakes.is_empty();
    let Some(had) = kept.manifest.as_ref().filter(|_| woken) else {
        return Lacks::Nothing;
    };
    match &machine.manifest {
        None => Lacks::Unknown,
        Some(has) => {
            let mut missing = had.missing_in(has).into_iter();
            let first =
                missing.find(|one| !one.is_given_at_creation() && !kept.refused.contains(one));
            first.map_or(Lacks::Nothing, Lacks::One)
        }
    }
}

/// Returns what a machine that we created lacks because its cloud did not give it back.
#[must_use]
pub fn withheld(kept: &Hibernation, machine: &ObservedMachine) -> Vec<Attachment> {
    let (Some(had), Some(has)) = (&kept.manifest, &machine.manifest) else {
        return kept.refused.clone();
    };
    let missing = had.missing_in(has).into_iter();
    missing.filter(|one| kept.refused.contains(one)).collect()
}

/// Returns what a machine is to be created from anew, if its creation was refused.
#[must_use]
pub fn refused_creation(record: &Record) -> Option<&Manifest> {
    let request = record.request_towards(Direction::Start)?;
    let creates = matches!(request.step, Step::Create { .. });
    let failed = creates && matches!(request.ask, Ask::Failed { .. });
    let kept = record.hibernation.as_deref()?;
    let manifest = kept.manifest.as_ref();
    manifest.filter(|_| failed && request.problem.is_some())
}

/// A record that was restored from a backup.
const OLDER: &str = "the record is older than the cloud";

/// Says why a person is needed, if one is. A machine that was listed is seen without a sight.
#[must_use]
pub fn problem_of(kept: &Hibernation, sight: Option<&Sight>) -> Option<String> {
    let Some(sight) = sight else {
        return incomplete(&kept.refused);
    };
    let state = sight.hibernation_state(kept);
    match state {
        HibernationState::SnapshotLost
        | HibernationState::Duplicated
        | HibernationState::NameTaken(_)
        | HibernationState::Outdated(_) => Some(problem(state)),
        HibernationState::Present(machine) => incomplete(&withheld(kept, machine)),
        HibernationState::Hibernated(_)
        | HibernationState::BeingCreated(_)
        | HibernationState::Created(_)
        | HibernationState::Gone => None,
    }
}

fn incomplete(withheld: &[Attachment]) -> Option<String> {
    let named: Vec<_> = withheld.iter().map(Attachment::to_string).collect();
    (!named.is_empty()).then(|| {
        format!(
            "it was made again without {}, which its cloud did not give back: each start tries \
             again",
            named.join(", ")
        )
    })
}

/// Says why a person is needed.
#[must_use]
pub fn problem(state: HibernationState<'_>) -> String {
    match state {
        HibernationState::Duplicated => {
            "two machines were made of it: delete the one that is not needed".to_owned()
        }
        HibernationState::NameTaken(other) => format!(
            "{} has its name, or its tag or label `{OF_LABEL}`, and Offhours did not make it: rename \
             it, or remove the tag or label",
            other.resource.id
        ),
        HibernationState::Outdated(Unrecorded::Snapshot(snapshot)) => {
            format!("{OLDER}: snapshot {} is not in it", snapshot.id)
        }
        HibernationState::Outdated(Unrecorded::Machine(machine)) => {
            format!("{OLDER}: {} is not in it", machine.resource.id)
        }
        HibernationState::Present(_)
        | HibernationState::Hibernated(_)
        | HibernationState::BeingCreated(_)
        | HibernationState::Created(_)
        | HibernationState::SnapshotLost
        | HibernationState::Gone => {
            "the snapshot that it is made again from is missing, or the token is another project's"
                .to_owned()
        }
    }
}

/// Reports whether the machine is where `direction` leads: deleted with its snapshot there, or
/// running with all that it had.
fn reached(direction: Direction, record: &Record, sight: &Sight) -> bool {
    let Some(kept) = record.hibernation.as_deref() else {
        return false;
    };
    match (direction, sight.hibernation_state(kept)) {
        (Direction::Stop, HibernationState::Hibernated(_)) => true,
        (Direction::Start, HibernationState::Present(machine)) => {
            machine.resource.power == Power::Running && lacks(kept, machine) == Lacks::Nothing
        }
        (Direction::Stop | Direction::Start, _) => false,
    }
}

/// Returns what a look shows of a resource: the machine, or what stands for it while there is none.
///
/// `None` if it is gone and was not deleted by us.
#[must_use]
pub fn shown(record: &Record, sight: &Sight) -> Option<Resource> {
    let never = Hibernation::of(record.reference.id.clone());
    let kept = record.hibernation.as_deref().unwrap_or(&never);
    let state = sight.hibernation_state(kept);
    let busy = match state {
        HibernationState::Present(machine)
        | HibernationState::BeingCreated(machine)
        | HibernationState::Created(machine) => {
            let mut resource = machine.resource.clone();
            // A snapshot that was given up is not waited for: a cloud that is busy refuses.
            if kept.has_given_up() && resource.power != Power::Between {
                resource.busy = None;
            }
            return Some(resource);
        }
        HibernationState::Gone => return None,
        HibernationState::Hibernated(_) => None,
        HibernationState::SnapshotLost
        | HibernationState::Duplicated
        | HibernationState::NameTaken(_)
        | HibernationState::Outdated(_) => Some(Busy::Other(problem(state))),
    };
    let manifest = kept.manifest.clone();
    // A record that is older than its cloud may have none.
    let manifest = manifest.unwrap_or_else(|| Manifest {
        name: record.name.clone(),
        region: record.region.clone(),
        tags: record.tags.clone(),
        ..Manifest::default()
    });
    let mut tags = manifest.tags;
    if matches!(state, HibernationState::Hibernated(snapshot) if snapshot.opted_out) {
        tags.insert("offhours=off".to_owned());
    }
    Some(Resource {
        id: record.reference.id.clone(),
        name: manifest.name,
        cluster: None,
        tags,
        region: manifest.region,
        power: Power::Stopped,
        busy,
        size: Size::Machine(manifest.size),
        facts: domain::resource::MachineFacts::default(),
        unsupported: None,
    })
}

/// Returns the result of the last request, as far as it is seen; only for those of hibernation.
fn outcome(view: View<'_>, request: &Request) -> Option<Outcome> {
    let (record, seen_at) = (view.record, view.seen.requested_at);
    let sight = view.seen.sight?;
    let Some(kept) = record.hibernation.as_deref() else {
        return Some(Outcome::Void);
    };
    let quiet = seen_at >= request.quiet_at(record.kind());
    let unheard = request.ask == Ask::Open && seen_at >= request.asked_at + PERMIT + SKEW;
    let void_if = |void| if void { Outcome::Void } else { Outcome::Open };
    let open = if quiet { Outcome::Overdue } else { Outcome::Open };
    Some(match &request.step {
        Step::Snapshot(_) => {
            let newest = kept.snapshots.first();
            let seen = newest.and_then(|one| sight.snapshot(&one.mark));
            match seen.map(|seen| seen.state) {
                Some(SnapshotState::Available) => Outcome::Done,
                Some(SnapshotState::Creating | SnapshotState::Unknown) => open,
                Some(SnapshotState::Failed) => Outcome::Void,
                None => unlisted(request, seen_at, view.seen.whole_log(), (open, quiet || unheard)),
            }
        }
        Step::Delete if sight.is_deleted(kept) => Outcome::Done,
        Step::Delete => match sight.hibernation_state(kept) {
            HibernationState::Present(machine) if is_deleting(&machine.resource) => open,
            // If neither the machine nor its snapshot is seen, a person is needed, once nothing can
            // change that any more.
            HibernationState::Present(_)
            | HibernationState::BeingCreated(_)
            | HibernationState::Created(_)
            | HibernationState::Hibernated(_)
            | HibernationState::SnapshotLost
            | HibernationState::Duplicated
            | HibernationState::NameTaken(_)
            | HibernationState::Outdated(_)
            | HibernationState::Gone => void_if(quiet),
        },
        Step::Create { .. } => match sight.hibernation_state(kept) {
            HibernationState::Present(_) | HibernationState::Duplicated => Outcome::Done,
            HibernationState::BeingCreated(_) | HibernationState::Created(_) => open,
            // A missing machine counts only while its snapshot is seen: without that, a person is
            // needed, and nothing is asked for.
            HibernationState::Hibernated(_) => void_if(quiet || sight.create_failed),
            HibernationState::NameTaken(_)
            | HibernationState::Outdated(_)
            | HibernationState::SnapshotLost
            | HibernationState::Gone => void_if(quiet),
        },
        // Its effect shows only in its no longer being needed.
        step @ (Step::KeepAddress(_)
        | Step::Protect { .. }
        | Step::Attach(_)
        | Step::RemoveSnapshot(_)) => match next(view, request.direction)? {
            Next::Ask(again) if again == *step => void_if(quiet || unheard),
            Next::Ask(_) | Next::Wait(_) | Next::StayOff(_) | Next::Person(_) => Outcome::Done,
        },
        Step::Off { .. } | Step::On { .. } | Step::Resize(_) => Outcome::Open,
    })
}

/// Returns the result of a snapshot that is not listed. A cloud may list it only some time after it
/// was made: until then the machine's log alone shows that it is coming (DOLISTS).
fn unlisted(
    request: &Request,
    seen_at: Timestamp,
    log: Log<'_>,
    (open, passed): (Outcome, bool),
) -> Outcome {
    let read = log.from.is_some_and(|from| from <= request.asked_at);
    let answered = match &request.ask {
        Ask::Accepted { action, .. } => *action,
        Ask::Open | Ask::Failed { .. } | Ask::Done { .. } => None,
    };
    let ours = match answered {
        Some(id) => log.actions.iter().find(|action| action.id == id),
        None => log.snapshot_since(request.asked_at),
    };
    let void = match ours.map(|action| (action.state, action.ended_at)) {
        Some((ActionState::Running, _)) => return open,
        Some((ActionState::Failed, _)) => true,
        Some((ActionState::Done, Some(ended_at))) => seen_at >= ended_at + UNLISTED,
        Some((ActionState::Done, None)) => passed,
        None => read && passed,
    };
    if void { Outcome::Void } else { Outcome::Open }
}

fn is_deleting(resource: &Resource) -> bool {
    resource.busy == Some(Busy::Deleting)
}

/// Writes into a record what a request that is about to leave may make of it, and gives the request
/// its mark. Returns false if a deletion cannot rest on a look that did not read enough.
pub fn permit(record: &mut Record, seen: Observation<'_>, mark: Mark, now: Timestamp) -> bool {
    let (Some(request), Some(kept)) = (&mut record.request, record.hibernation.as_deref_mut())
    else {
        return true;
    };
    let Request { step, looked_at, .. } = request;
    match step {
        Step::On { .. } => kept.delete_asked = false,
        Step::Snapshot(label) => {
            label.mark = mark.clone();
            let from = kept.present.clone();
            let from = from.unwrap_or_else(|| label.of.clone());
            let looked_at = Some(*looked_at);
            let entry = KeptSnapshot { looked_at, ..KeptSnapshot::of(from, mark, now) };
            kept.snapshots.insert(0, entry);
        }
        Step::Delete => {
            let machine = seen.sight.and_then(|sight| Some((sight, sight.machine.as_ref()?)));
            let Some((sight, Some(mut manifest))) =
                machine.map(|(sight, machine)| (sight, machine.manifest.clone()))
            else {
                return false;
            };
            let copy = sight.whole_copy(kept, seen.whole_log()).map(|(copy, _)| copy.mark.clone());
            // Its number identifies the snapshot when the machine is gone.
            kept.record_snapshots(sight, *looked_at);
            // A machine that we created and never saw complete is owed more than it has.
            if let Some(owed) = kept.manifest.take().filter(|_| kept.incomplete) {
                manifest = manifest.with_all_of(&owed);
            }
            seen.ssh_key.unwrap_or_default().clone_into(&mut manifest.ssh_key);
            kept.manifest = Some(manifest);
            kept.delete_asked = true;
            kept.wake_from = copy;
            kept.wakes.clear();
            kept.refused.clear();
            kept.running_since = None;
        }
        Step::Create { label, manifest, .. } => {
            label.mark = mark.clone();
            let own = kept.manifest.as_ref();
            let replaced = own.map(|own| own.replaced_by(manifest)).unwrap_or_default();
            kept.refused.retain(|one| !replaced.contains(one));
            kept.refused.extend(replaced);
            kept.wakes.push(mark);
        }
        Step::Protect { snapshot, on: false } | Step::RemoveSnapshot(snapshot) => {
            let mut all = kept.snapshots.iter_mut();
            if let Some(removed) = all.find(|one| one.id == Some(*snapshot)) {
                removed.remove_asked_at.get_or_insert(now);
            }
        }
        Step::Off { .. }
        | Step::Resize(_)
        | Step::KeepAddress(_)
        | Step::Protect { on: true, .. }
        | Step::Attach(_) => {}
    }
    true
}

/// Updates what is kept of a machine with what a look shows.
pub fn learn(record: &mut Record, seen: Observation<'_>) {
    let kind = record.kind();
    let request = record.request.as_ref();
    let may_delete = request.is_some_and(|request| {
        request.step == Step::Delete && seen.requested_at < request.quiet_at(kind)
    });
    let Some(kept) = record.hibernation.as_deref_mut() else {
        return;
    };
    if let Some(sight) = seen.sight {
        kept.record_snapshots(sight, seen.requested_at);
    }
    let is_there = seen.sight.is_none_or(|sight| sight.machine.is_some());
    if is_there && !may_delete && !is_deleting(seen.resource) {
        // What we asked for before did not delete it: whatever does from now on is not ours.
        kept.delete_asked = false;
    }
}

/// Returns the machine that an answer said it had begun to create.
#[must_use]
pub fn made(of: &ResourceId, number: u64) -> Option<ResourceId> {
    use domain::{DropletId, ServerId};
    match of {
        ResourceId::Server(_) => Some(ResourceId::Server(ServerId(number))),
        ResourceId::Droplet(_) => Some(ResourceId::Droplet(DropletId(number))),
        ResourceId::Database(_) | ResourceId::NodePool(..) | ResourceId::Machine(_) => None,
    }
}
