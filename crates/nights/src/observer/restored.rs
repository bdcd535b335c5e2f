//! What follows from a table of resources that is older than what the clouds show.

use domain::{ResourceKind, record::Record, schedule::Desired};
use serde_json::Value;

use super::{Observer, ResourceSize, settled::runs, writes};

impl Observer {
    /// Records that the table of resources holds these items again. What was recorded since they
    /// were backed up is not known anymore: a size that was saved since then, an edge that was
    /// handled, and how a transition ended.
    pub(crate) fn restored(&self, items: &[Value]) {
        let mut state = self.lock();
        let now = state.time.now();
        // That two accounts reach something is found anew.
        state.shared.clear();
        for record in items.iter().filter_map(writes::read::<Record>) {
            let reference = record.reference.clone();
            if state.records.get(&reference) == Some(&record) {
                continue;
            }
            state.count("a record is older than its cloud");
            state.newer.remove(&reference);
            state.history.remove(&reference);
            state.unexplained.retain(|change| change.resource != reference);
            let runs = state.state_of(&reference).is_some_and(|shown| runs(&reference, &shown));
            let shown = if runs { Desired::Running } else { Desired::Stopped };
            let handled = record.handled.as_ref().and_then(|handled| handled.desired);
            let tracked = state.tracked(&reference);
            // A database runs in both states.
            let tells = reference.kind() != ResourceKind::Database;
            let misread = tells && handled.is_some_and(|one| one != shown);
            tracked.misread_at = misread.then_some(now);
            tracked.restored_at = Some(now);
            tracked.switched_on_at = None;
            tracked.without.clear();
            tracked.retained = record.retained;
            let saved = record.saved.as_ref().and_then(ResourceSize::of_saved);
            let owed = tracked.owed.as_ref();
            let is_known =
                owed.is_none_or(|owed| saved.is_some_and(|saved| tracked.will_do(&saved, owed)));
            if !is_known {
                tracked.clear_owed();
                state.count("a size is not known after a restore");
            }
            state.records.insert(reference, record);
        }
        drop(state);
        self.changed();
    }
}
