//! A machine that is kept as a snapshot while it is stopped: shut down, copied, deleted, and
//! recreated. The next request is derived from what is there, not remembered; only the result of
//! the last one is, because no other leaves before that is known.

use domain::{
    configuration::{Account, Otherwise},
    decision::next_start,
    hibernation::{
        self, Attachment, Hibernation, HibernationState, HibernationTerms, KEPT_FOR, KeptSnapshot,
        Label, MAX_SNAPSHOTS, Mark, ObservedMachine, OffPeriod, SNAPSHOTS_TO_KEEP, SeenSnapshot,
        Sight, SnapshotState, preflight,
    },
    record::{Ask, Direction, Record, Request, Transition},
    resource::{ActionEffect, ActionState, LoggedAction, Power, SavedState, Size},
    step::Step,
};
use jiff::{SignedDuration, Timestamp};

use super::{
    Basis, Destination, Displaced, Extent, Grounds, Method, Next, NextStep, Outcome, Reads,
    Sighted, StopObstacle,
    smaller_plan::{off, on, runs_without_its_own},
};
use crate::{
    log::log_from,
    view::{Observation, View},
};

mod outcome;
mod shown;
mod state;

pub use shown::{problem, problem_of, refused_creation, shown, withheld};
pub(super) use state::is_hibernated;
pub(super) use state::trying_again;
pub use state::{adopted, answered, take_stock};

use outcome::{give_up, is_deleting, outcome, void};

/// A machine that is to run again this soon is not deleted.
pub const CLEAR_OF_START: SignedDuration = SignedDuration::from_hours(1);

/// A machine that is to run again this soon is not hibernated.
pub const WORTH_IT: SignedDuration = SignedDuration::from_hours(4);

/// This many failed snapshots in one stop need a person.
const TRIES: usize = 3;

/// Deleted, and kept as a snapshot.
pub struct Hibernate;

impl Method for Hibernate {
    fn reads(&self, next: NextStep<'_>) -> Reads {
        let NextStep { record, direction, seen, .. } = next;
        let reads = Reads::of(record);
        if direction == Direction::Start {
            return reads;
        }
        let around = seen.is_none_or(|view| !goes_on(view) && !is_too_near(view));
        // The next step may bring the machine nearer to its deletion: not while it is still switched
        // off.
        let begun = record.under_way_towards(Direction::Stop).is_some();
        let is_seen_whole = reads.sight == Sighted::Always && record.present().is_some();
        let may_delete = is_seen_whole && (record.wants_next_step() || !begun);
        Reads {
            extent: if may_delete { Extent::Obstacles } else { reads.extent },
            basis: if around { Basis::Surroundings } else { Basis::Itself },
            ..reads
        }
    }

    fn judge<'a>(&self, view: View<'_>, by: &Grounds<'a>) -> Destination<'a> {
        judge(view, by)
    }

    fn log_from(&self, record: &Record) -> Option<Timestamp> {
        let kept = record.hibernation.as_deref();
        let copies = kept.into_iter().flat_map(|kept| &kept.snapshots);
        let copies = copies.filter(|one| Some(&one.from) == record.present());
        copies.map(KeptSnapshot::off_since).chain(log_from(record)).min()
    }

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

    fn still_owes(&self, view: View<'_>) -> Option<String> {
        state::woke_small(view).or_else(|| runs_without_its_own(view.record))
    }

    fn void(
        &self,
        record: &mut Record,
        view: View<'_>,
        request: &Request,
        outcome: Outcome,
    ) -> Option<&'static str> {
        match outcome {
            Outcome::GivenUp => Some(give_up(record)),
            Outcome::Open | Outcome::Done | Outcome::Void | Outcome::Overdue => {
                void(record, view, request)
            }
        }
    }

    fn permit(&self, record: &mut Record, view: View<'_>, mark: &Mark) -> Option<Displaced> {
        state::permit(record, view, mark).then(Displaced::default)
    }

    fn learn(&self, record: &mut Record, seen: Observation<'_>) {
        state::learn(record, seen);
    }

    fn settle(
        &self,
        record: &mut Record,
        view: View<'_>,
        transition: Option<&Transition>,
    ) -> Option<String> {
        state::settle(record, view, transition)
    }
}

/// Judges whether a machine may be hibernated. A hibernation under way continues only while nothing
/// stands in its way.
fn judge<'a>(view: View<'_>, by: &Grounds<'a>) -> Destination<'a> {
    let View { record, policy, .. } = view;
    let account = view.rules.configuration.accounts.get(&record.reference.account);
    let ssh_key = account.and_then(Account::cloud).and_then(|cloud| cloud.ssh_key.clone());
    if goes_on(view) {
        return Destination::Snapshot { ssh_key: ssh_key.unwrap_or_default() };
    }
    let (Size::Machine(size), Some(around)) = (&view.seen.resource.size, by.around) else {
        return Destination::Off(Vec::new());
    };
    let kept = record.hibernation.as_deref();
    let latest = kept.and_then(Hibernation::latest_centi_gb);
    let terms = HibernationTerms {
        accepted: policy.accept.clone(),
        needs_private_ip: policy.needs_private_ip,
        hibernated: by.hibernated,
        off_period: by.off.map(|off| OffPeriod { off, latest }),
        longest_run: by.longest_run,
        ssh_key,
    };
    let mut obstacles = preflight(by.machine(view, size), around, by.catalog, &terms);
    if by.must_be_rehearsed && !kept.is_some_and(Hibernation::is_rehearsed) {
        obstacles.push(hibernation::Obstacle::NotRehearsed);
    }
    let obstacles: Vec<_> = obstacles.iter().map(StopObstacle::from).collect();
    let begun = record.under_way_towards(Direction::Stop).is_some();
    match policy.otherwise {
        _ if obstacles.is_empty() => {
            let key = terms.ssh_key.as_deref().and_then(|key| around.ssh_key(key));
            Destination::Snapshot {
                ssh_key: key.map(|key| key.sent_as.clone()).unwrap_or_default(),
            }
        }
        Otherwise::PowerOff if !begun => Destination::Off(obstacles),
        Otherwise::PowerOff | Otherwise::Refuse => Destination::Refused(obstacles),
    }
}

/// Reports whether a stop to hibernation is past what could keep the machine from being recreated:
/// the machine is not there, or is still being switched off.
fn goes_on(view: View<'_>) -> bool {
    let asleep = view.seen.sight.is_some_and(|sight| sight.machine.is_none());
    let begun = view.record.under_way_towards(Direction::Stop).is_some();
    asleep || begun && view.seen.resource.power != Power::Stopped
}

/// Reports whether the next start comes too soon for a stop to hibernation to begin.
fn is_too_near(view: View<'_>) -> bool {
    let looked_at = view.seen.requested_at;
    let start = next_start(view.record, view.rules, looked_at);
    let near = start.is_some_and(|start| start.duration_since(looked_at) < WORTH_IT);
    near && view.record.under_way_towards(Direction::Stop).is_none()
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
    // While something else is done to it, such as a backup, no snapshot of it counts as whole. One
    // that does not end holds nothing up.
    let holds = |action: &LoggedAction| {
        action.state == ActionState::Running && action.effect != ActionEffect::Snapshot
    };
    if view.seen.log.iter().any(holds) {
        return Next::Wait("an action of it is still under way".to_owned());
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
    if has_most(sight) {
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
    let needs_room = adds_another && has_most(sight);
    let (_, removed) = useless.or_else(|| unneeded(kept, &seen, needs_room, view.now))?;
    let snapshot = removed.id;
    Some(match removed.protected {
        Some(true) => Step::Protect { snapshot, on: false },
        Some(false) | None => Step::RemoveSnapshot(snapshot),
    })
}

/// Reports whether there are as many snapshots of ours as may be: a restored record may know fewer.
fn has_most(sight: &Sight) -> bool {
    sight.snapshots.iter().filter(|one| one.mark.is_some()).count() >= MAX_SNAPSHOTS
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
    // A deletion that came to nothing has left the machine as it was, perhaps incomplete.
    let woken = !kept.wakes.is_empty() || kept.incomplete;
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
