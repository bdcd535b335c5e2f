//! What a transition was and how it ended, for history and for the record.

use domain::{
    record::{Ask, Forced, Last, LastEnding, Record, Request, Transition},
    resource::Resource,
};
use jiff::Timestamp;
use store::{Ending, HistoryEntry};

/// What a transition was and how it ended, for history.
pub(crate) fn history(
    record: &Record,
    transition: &Transition,
    ending: Ending,
    resource: Option<&Resource>,
    now: Timestamp,
) -> HistoryEntry {
    let request = request_of(record, transition);
    HistoryEntry {
        reference: record.reference.clone(),
        name: record.name.clone(),
        direction: transition.direction,
        cause: transition.cause.clone(),
        schedule: transition.schedule.clone(),
        claimed_at: transition.claimed_at,
        asked_at: request.map(|request| request.asked_at),
        accepted_at: request.and_then(accepted_at),
        finished_at: now,
        ending,
        forced: request.is_some_and(|request| request.forced == Forced::Accepted),
        saved: record.saved.clone(),
        seen: resource.and_then(|resource| resource.size.to_save()),
    }
}

/// [`history`] as the record itself keeps it, until the next edge ends; none for a transition that
/// no edge has led to.
pub(crate) fn last(
    record: &Record,
    transition: &Transition,
    ending: LastEnding,
    now: Timestamp,
) -> Option<Last> {
    let request = request_of(record, transition);
    Some(Last {
        key: record.handled.as_ref()?.key,
        direction: transition.direction,
        claimed_at: transition.claimed_at,
        asked_at: request.map(|request| request.asked_at),
        accepted_at: request.and_then(accepted_at),
        finished_at: now,
        ending,
    })
}

pub(crate) fn request_of<'r>(record: &'r Record, transition: &Transition) -> Option<&'r Request> {
    let request = record.request.as_ref();
    request.filter(|request| request.direction == transition.direction)
}

fn accepted_at(request: &Request) -> Option<Timestamp> {
    match request.ask {
        Ask::Accepted { at, .. } => Some(at),
        Ask::Open | Ask::Failed { .. } => None,
    }
}
