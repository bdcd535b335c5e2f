//! What the record keeps of a machine that is, or was, hibernated.

use domain::{
    decision::next_start,
    hibernation::{Hibernation, HibernationState, KeptSnapshot, Mark},
    record::{Ask, Direction, Phase, Record, Request, Transition},
    resource::{Power, Size},
    step::Step,
    stop_method::StopMethod,
};
use jiff::Timestamp;

use super::{WORTH_IT, is_deleting, problem_of, withheld};
use crate::{
    failure::{Answered, Failure, FailureKind},
    methods::rules,
    view::{Observation, View},
};

/// Returns the record for another start: what its cloud did not give back in the one before is
/// tried again.
pub(in crate::methods) fn trying_again(record: &Record) -> Option<Record> {
    let kept = record.hibernation.as_ref()?;
    (!kept.refused.is_empty()).then(|| {
        let mut kept = kept.clone();
        kept.refused.clear();
        Record { hibernation: Some(kept), ..record.clone() }
    })
}

/// Returns the record after adopting the machine that we asked for as its resource, if that machine
/// is there. This comes before any other decision.
#[must_use]
pub fn adopted(record: &Record, seen: Observation<'_>) -> Option<Record> {
    let kept = record.hibernation.as_deref()?;
    let HibernationState::Created(machine) = seen.sight?.hibernation_state(kept) else {
        return None;
    };
    let mut record = record.clone();
    record.hibernation.as_deref_mut()?.adopt(machine.resource.id.clone());
    if let Some(request) = &mut record.request
        && matches!(request.step, Step::Create { .. })
    {
        request.ask = Ask::Done { at: seen.requested_at };
        request.problem = None;
    }
    record.missing_since = None;
    record.retry_at = None;
    record.last_error = None;
    Some(record)
}

/// Reports whether there is no machine because we have deleted it.
pub(in crate::methods) fn is_hibernated(view: View<'_>) -> bool {
    let kept = view.record.hibernation.as_deref();
    let seen = kept.zip(view.seen.sight);
    seen.is_some_and(|(kept, sight)| {
        matches!(sight.hibernation_state(kept), HibernationState::Hibernated(_))
    })
}

/// Writes into a record what a request that is about to leave may make of it, and gives the request
/// its mark. Returns false if a deletion cannot rest on a look that did not read enough.
pub(super) fn permit(record: &mut Record, view: View<'_>, mark: &Mark) -> bool {
    let View { seen, now, .. } = view;
    let claimed = record.in_flight().filter(|now_on| now_on.claimed_at == now).cloned();
    if let Some(transition) = claimed {
        begin(record, view, &transition);
    }
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
            let entry = KeptSnapshot { looked_at, ..KeptSnapshot::of(from, mark.clone(), now) };
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
            kept.wakes.push(mark.clone());
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

/// Fixes, at the claim of a stop, how long before its start the machine is woken. No start is
/// near then, so that no edge that was handled counts at another instant afterwards.
fn begin(record: &mut Record, view: View<'_>, transition: &Transition) {
    if transition.direction == Direction::Start {
        return;
    }
    let hibernates = transition.method == StopMethod::Hibernate;
    if hibernates && record.hibernation.is_none() {
        let machine = Hibernation::of(record.reference.id.clone());
        record.hibernation = Some(Box::new(machine));
    }
    let start = next_start(record, view.rules, view.now);
    let near = |start: Timestamp| start.duration_since(view.now) < WORTH_IT;
    let size = match &view.seen.resource.size {
        Size::Machine(size) => size,
        Size::Database(_) | Size::NodePool(_) => return,
    };
    if let Some(kept) = record.hibernation.as_deref_mut()
        && !start.is_some_and(near)
    {
        kept.lead = hibernates.then(|| kept.next_lead(size));
        kept.failed = 0;
    }
}

/// Updates what is kept of a machine with what a look shows.
pub(super) fn learn(record: &mut Record, seen: Observation<'_>) {
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

/// Updates what is kept of a machine with what an inventory shows.
pub fn take_stock(record: &mut Record, seen: Observation<'_>) {
    let power = seen.resource.power;
    let resolved = !record.request.as_ref().is_some_and(Request::is_unresolved);
    let settled = matches!(record.phase, Phase::Settled { .. });
    if seen.sight.is_some() {
        // A record from before the first hibernation keeps nothing that could hold its problem.
        let of = &record.reference.id;
        record.hibernation.get_or_insert_with(|| Box::new(Hibernation::of(of.clone())));
    }
    let kept = record.hibernation.as_deref();
    let problem = kept.and_then(|kept| problem_of(kept, seen.sight));
    learn(record, seen);
    let Some(kept) = record.hibernation.as_deref_mut() else {
        return;
    };
    kept.problem = problem;
    if let Some(sight) = seen.sight
        && settled
        && let HibernationState::Created(machine) = sight.hibernation_state(kept)
    {
        kept.adopt(machine.resource.id.clone());
    }
    if power == Power::Stopped {
        kept.record_off();
    }
    if power == Power::Running && resolved && settled {
        kept.record_running(seen.requested_at);
    }
}

/// Updates what is kept of the machine at the end of the transition. Returns what a woken
/// machine lacks, in words.
pub(super) fn settle(
    record: &mut Record,
    view: View<'_>,
    transition: Option<&Transition>,
) -> Option<String> {
    let started = transition.filter(|now| now.direction == Direction::Start);
    let woken = started.filter(|now| now.method == StopMethod::Hibernate);
    let asleep = view.seen.sight.is_some_and(|sight| sight.machine.is_none());
    let kept = record.hibernation.as_deref_mut()?;
    if asleep {
        kept.record_deletion();
    } else if started.is_some() {
        if let (Some(woken), Some(sight)) = (woken, view.seen.sight) {
            let machine = sight.machine.as_ref();
            kept.refused = machine.map_or_else(Vec::new, |machine| withheld(kept, machine));
            kept.incomplete = !kept.refused.is_empty();
            kept.problem = problem_of(kept, Some(sight));
            kept.record_wake(view.now.duration_since(woken.claimed_at));
        }
        kept.record_off();
        kept.record_running(view.seen.requested_at);
    }
    kept.problem.clone().filter(|_| woken.is_some() && !asleep)
}

/// Returns why a machine that has everything that it had when it was hibernated lacks its own plan:
/// another stop moved it before it was complete.
pub(super) fn woke_small(view: View<'_>) -> Option<String> {
    let saved = view.record.saved.as_ref()?;
    let is_small = !rules(StopMethod::Rescale).reached(view, Direction::Start, None);
    is_small.then(|| format!("on its small plan: its next start puts {saved} back"))
}

/// Records what an answer says about what the request was to make. Returns true if the transition
/// goes on without that, though the request was refused.
pub fn answered(record: &mut Record, answer: &Answered) -> bool {
    note(record, answer);
    answer.as_ref().is_err_and(|failure| goes_on_without(record, failure))
}

/// Records what an answer says about what a hibernation request was to make. What was certainly not
/// accepted has deleted and made nothing; a 404 may be our own deletion.
fn note(record: &mut Record, answer: &Answered) {
    let Some(request) = &mut record.request else {
        return;
    };
    let number = answer.as_ref().ok().and_then(|accepted| accepted.made);
    let of = &record.reference.id;
    if matches!(request.step, Step::Create { .. }) {
        request.created_machine = number.and_then(|number| of.with_number(number));
    }
    let Some(kept) = record.hibernation.as_deref_mut() else {
        return;
    };
    let newest = kept.snapshots.first_mut();
    match (&request.step, answer.as_ref().map_err(Box::as_ref)) {
        (Step::Snapshot(_), Ok(_)) => {
            if let (Some(newest), Some(_)) = (newest, number) {
                newest.id = number;
            }
        }
        (
            Step::Snapshot(_) | Step::Delete,
            Err(Failure { kind: FailureKind::NotFound | FailureKind::Unknown, .. }),
        ) => {}
        (Step::Snapshot(_), Err(_)) => {
            kept.snapshots.remove(0);
        }
        (Step::Delete, Err(_)) => kept.delete_asked = false,
        (_, _) => {}
    }
}

/// How many times something is asked for that is in use. An address is free some seconds after its
/// server is gone (HTF); one that is still in use after two minutes belongs to another.
const TRIES_TO_BE_FREE: u32 = 6;

/// Reports whether a transition goes on though its request certainly had no effect. A failed removal
/// holds nothing up, and a machine runs without what its cloud no longer has, or has given to
/// another, which is recorded.
fn goes_on_without(record: &mut Record, failure: &Failure) -> bool {
    let Some(Request { step, .. }) = &record.request else {
        return false;
    };
    let is_taken = failure.kind == FailureKind::Busy && record.attempts + 1 >= TRIES_TO_BE_FREE;
    match (step, &failure.kind) {
        (Step::Attach(what), kind)
            if is_taken || matches!(kind, FailureKind::Refused(_) | FailureKind::NotFound) =>
        {
            record.attempts = 0;
            if let Some(kept) = record.hibernation.as_deref_mut() {
                kept.refused.push(what.clone());
            }
            true
        }
        (step, FailureKind::Refused(_)) => step.removes(),
        (_, _) => false,
    }
}
