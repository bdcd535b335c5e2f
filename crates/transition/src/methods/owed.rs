//! The size that a stop takes away, and that the next start owes: saved before the request that
//! shrinks anything leaves, and never replaced by a reduced one.

use domain::{
    history::HistoryEntry,
    record::{Cause, Ending, Record, Request},
    resource::SavedState,
};

use super::{Displaced, hibernate};
use crate::{event::Event, view::View};

/// Returns the record for a start that is due, if that differs: what its cloud did not give back in
/// the one before is tried again, and a size that no stop took away is not put back. A person may
/// have given it another one since.
#[must_use]
pub fn for_start(record: &Record) -> Option<Record> {
    let mut start = hibernate::trying_again(record).unwrap_or_else(|| record.clone());
    start.clear_untaken();
    (start != *record).then_some(start)
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
