//! What a newer program wrote: left alone, and said once per invocation.

use domain::{ResourceRef, record::Record};
use environment::in_words;
use serde::{Deserialize, Serialize};
use store::{Found, Store, StoreError, Unreadable};

use crate::report::Report;

/// An item that this program cannot read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftAlone {
    /// Which resource's record, or which account's state.
    pub reference: String,
    /// Why not.
    pub reason: String,
}

impl Report {
    /// What could be read. What could not is said, unless this invocation has said so before.
    pub(crate) fn readable<T>(&mut self, found: Found<T>) -> T {
        for one in found.unreadable {
            self.leave_alone(&one);
        }
        found.read
    }

    fn leave_alone(&mut self, one: &Unreadable) {
        let reference = &one.reference;
        if self.left_alone.iter().any(|l| l.reference == *reference) {
            return;
        }
        let reason = in_words(&one.source);
        tracing::warn!(resource.id = %reference, "Left {reference} alone: {reason}");
        self.left_alone.push(LeftAlone {
            reference: reference.clone(),
            reason,
        });
    }
}

/// A record as it is now, after somebody else wrote it; none where that is to be left alone.
pub(crate) async fn reread(
    store: &Store,
    reference: &ResourceRef,
) -> Result<Option<Record>, StoreError> {
    match store.record(reference).await {
        Err(error) if error.is_unreadable() => {
            let reason = in_words(&error);
            tracing::warn!(resource.id = %reference, "Left {reference} alone: {reason}");
            Ok(None)
        }
        read => read,
    }
}
