//! The size that a stop takes away, and that the next start owes: saved before the request that
//! shrinks anything leaves, and never replaced by a reduced one.

use domain::{
    history::HistoryEntry,
    record::{Cause, Ending, Record, Request},
    resource::{Resource, SavedState},
};

use super::{Displaced, hibernate, is_done};
use crate::{event::Event, view::View};

/// Returns the record for a start that is due, if that differs: what its cloud did not give back in
/// the one before is tried again, and a size that no stop took away is not put back. A person may
/// have given it another one since.
#[must_use]
pub fn for_start(record: &Record, seen: &Resource) -> Option<Record> {
    let mut start = hibernate::trying_again(record).unwrap_or_else(|| record.clone());
    clear_untaken(&mut start, seen);
    (start != *record).then_some(start)
}

/// Forgets the saved state if no request can have taken it away: it is not owed. What shows the
/// effect of a request that failed may have been made so all the same, if the record was restored.
pub fn clear_untaken(record: &mut Record, seen: &Resource) {
    let request = record.request.as_ref().filter(|request| request.is_shrink());
    record.may_have_shrunk |= request.is_some_and(|request| is_done(record, seen, request));
    if !record.may_be_smaller() {
        record.clear_saved();
    }
}

/// Saves the size that was seen, if the request of the record makes the resource smaller.
pub(super) fn save_before_shrink(record: &mut Record, view: View<'_>) -> Displaced {
    let shrinks = record.request.as_ref().is_some_and(Request::is_shrink);
    let Some(seen) = view.seen.resource.size.to_save().filter(|_| shrinks) else {
        return Displaced::default();
    };
    match record.saved.take() {
        None => {
            record.saved = Some(seen);
            record.may_have_shrunk = false;
            Displaced::default()
        }
        // Nothing can have shrunk it: what is there now is the original.
        Some(_) if !record.may_have_shrunk => {
            record.saved = Some(seen);
            Displaced::default()
        }
        // A part that a person made larger, such as storage, would shrink with the rest.
        Some(saved) => {
            let joined = saved.joined_with(&seen);
            record.saved = Some(joined.state);
            if !joined.unlike {
                return Displaced::default();
            }
            Displaced {
                history: Some(not_put_back(view, seen)),
                events: unlike_plans(view).into_iter().collect(),
            }
        }
    }
}

/// Returns the entry for a size that no start will put back. The stop now claimed writes an entry
/// of its own.
fn not_put_back(view: View<'_>, seen: SavedState) -> HistoryEntry {
    HistoryEntry {
        seen: Some(seen),
        ..HistoryEntry::unasked(view.record, Cause::Schedule, Ending::Resized, view.now)
    }
}

/// Reports that a plan of a person's does not compare with the saved one.
#[must_use]
pub fn unlike_plans(view: View<'_>) -> Option<Event> {
    Some(Event::UnlikePlans {
        saved: view.record.saved.clone()?,
        seen: view.seen.resource.size.to_save()?,
    })
}
