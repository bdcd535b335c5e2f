//! What became of a request that hibernates or wakes a machine.

use domain::{
    hibernation::{HibernationState, Log, Mark, SnapshotState},
    record::{Ask, PERMIT, Record, Request, SKEW},
    resource::{ActionState, Busy, Resource},
    step::{Step, UNLISTED},
};
use jiff::{SignedDuration, Timestamp};

use super::next;
use crate::{
    methods::{Next, Outcome},
    view::View,
};

/// Why a snapshot is not waited for any more.
const GIVEN_UP: &str = "its snapshot has not ended in the longest time that it may take, and is not waited for any more";

/// A start that has waited this long for a machine to be created is reported.
const NO_ROOM_FOR: SignedDuration = SignedDuration::from_mins(10);

/// A machine runs without what it was not given back after this many requests that its cloud took,
/// or this many that it did not answer.
const TRIES_TO_ATTACH: u32 = 3;
const UNANSWERED_TRIES_TO_ATTACH: u32 = 6;

/// Returns the result of the last request, as far as it is seen; only for those of hibernation.
pub(super) fn outcome(view: View<'_>, request: &Request) -> Option<Outcome> {
    let (record, seen_at) = (view.record, view.seen.requested_at);
    let sight = view.seen.sight?;
    let Some(kept) = record.hibernation.as_deref() else {
        return Some(Outcome::Void);
    };
    let quiet = seen_at >= request.quiet_at(record.kind());
    let unheard = request.ask == Ask::Open && seen_at >= request.asked_at + PERMIT + SKEW;
    let void_if = |void| if void { Outcome::Void } else { Outcome::Open };
    let open = if quiet { Outcome::Overdue } else { Outcome::Open };
    let unfinished = if quiet { Outcome::GivenUp } else { Outcome::Open };
    Some(match &request.step {
        Step::Snapshot(_) => {
            let newest = kept.snapshots.first();
            let seen = newest.and_then(|one| sight.snapshot(&one.mark));
            match seen.map(|seen| seen.state) {
                Some(SnapshotState::Available) => Outcome::Done,
                Some(SnapshotState::Creating | SnapshotState::Unknown) => unfinished,
                Some(SnapshotState::Failed) => Outcome::Void,
                None => {
                    let passed = quiet || unheard;
                    unlisted(request, seen_at, view.seen.whole_log(), passed).unwrap_or(unfinished)
                }
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
/// was made: until then the machine's log alone shows that it is coming (DOLISTS). `None` if it is
/// being made.
fn unlisted(request: &Request, seen_at: Timestamp, log: Log<'_>, passed: bool) -> Option<Outcome> {
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
        Some((ActionState::Running, _)) => return None,
        Some((ActionState::Failed, _)) => true,
        Some((ActionState::Done, Some(ended_at))) => seen_at >= ended_at + UNLISTED,
        Some((ActionState::Done, None)) => passed,
        None => read && passed,
    };
    Some(if void { Outcome::Void } else { Outcome::Open })
}

pub(super) fn is_deleting(resource: &Resource) -> bool {
    resource.busy == Some(Busy::Deleting)
}

/// Updates the record after a request that had no effect, and can no longer have any. Returns what a
/// person has to look at meanwhile, if anything.
pub(super) fn void(record: &mut Record, view: View<'_>, request: &Request) -> Option<&'static str> {
    if let Some(kept) = record.hibernation.as_deref_mut()
        && matches!(request.step, Step::Snapshot(_))
    {
        let listed =
            |mark: &Mark| view.seen.sight.is_some_and(|sight| sight.snapshot(mark).is_some());
        kept.failed += 1;
        if kept.snapshots.first().is_some_and(|one| !listed(&one.mark)) {
            kept.snapshots.remove(0);
        }
    }
    if let Some(request) = &mut record.request {
        request.created_machine = None;
    }
    let accepted = matches!(request.ask, Ask::Accepted { .. });
    let tries = if accepted { TRIES_TO_ATTACH } else { UNANSWERED_TRIES_TO_ATTACH };
    if record.attempts >= tries
        && let Some(Next::Ask(Step::Attach(what))) = next(view, request.direction)
        && let Some(kept) = record.hibernation.as_deref_mut()
    {
        kept.refused.push(what);
    }
    let is_told = request.problem.is_some();
    let claimed_at = record.transition().map(|now| now.claimed_at);
    let waited = claimed_at.is_some_and(|at| view.now.duration_since(at) >= NO_ROOM_FOR);
    let waits = waited && !is_told;
    match (&request.step, accepted) {
        (Step::Create { .. }, true) if waits => {
            Some("its cloud accepts the request, but creates no machine: it may be out of capacity")
        }
        (Step::Create { .. }, false) if waits => {
            Some("its cloud does not answer the request, and creates no machine")
        }
        // One is lost now and then.
        (Step::Delete, _) if record.attempts > 1 && !is_told => {
            Some("it is not deleted, however often that is asked for")
        }
        (_, _) => None,
    }
}

/// Records that the newest snapshot is not waited for any more: the machine stays off, and may be
/// switched on.
pub(super) fn give_up(record: &mut Record) -> &'static str {
    record.last_error = Some(GIVEN_UP.into());
    if let Some(kept) = record.hibernation.as_deref_mut() {
        kept.failed += 1;
        if let Some(newest) = kept.snapshots.first_mut() {
            newest.given_up = true;
        }
    }
    GIVEN_UP
}
