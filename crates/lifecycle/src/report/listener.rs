//! Hearing of everything as it happens; a report comes only at the end, and not if that fails.

use domain::{AccountName, digest::Digest};

use crate::{Outcome, report::health::Census};

/// Whoever hears of what an invocation does, each thing after the write that it tells of.
pub trait Tell {
    /// Something happened.
    fn happened(&self, outcome: &Outcome);

    /// Nothing happened: what somebody asked about would, or is.
    fn answered(&self, outcome: &Outcome) {
        self.happened(outcome);
    }

    /// All that follow a schedule are through with an edge, or should be.
    fn edge_completed(&self, _digest: &Digest) {}

    /// An inventory ended: so many of an account's records need somebody now.
    fn counted(&self, _account: &AccountName, _census: Census) {}
}

impl<F: Fn(&Outcome)> Tell for F {
    fn happened(&self, outcome: &Outcome) {
        self(outcome);
    }
}
