//! Checks on what a newer program has written: it is left alone, and each inventory says so.

use domain::{ResourceRef, record::Revision};
use jiff::{SignedDuration, Timestamp};
use lifecycle::report::LeftAlone;

use super::{Observer, SLACK, State, requests::OBSERVE_AND_SEND};
use crate::names;

/// The time in which an inventory says what it leaves alone, unless its account cannot be listed.
const SAID: SignedDuration = SignedDuration::from_mins(15);

/// A record that only a newer program can read.
#[derive(Debug)]
pub(super) struct NewerRecord {
    since: Timestamp,
    is_said: bool,
}

impl Observer {
    /// Records that a newer program has written the record of a resource.
    pub(crate) fn is_newer(&self, resource: &ResourceRef) {
        let mut state = self.lock();
        let newer = NewerRecord { since: state.time.now(), is_said: false };
        state.newer.insert(resource.clone(), newer);
        state.rewritten(resource);
    }

    /// Records that a newer program has written it so that this one can read it again.
    pub(crate) fn is_known_again(&self, resource: &ResourceRef) {
        let mut state = self.lock();
        let now = state.time.now();
        let listed_at = state.accounts.get(resource.account.as_str()).and_then(|one| one.listed_at);
        if let Some(newer) = state.newer.remove(resource)
            && listed_at.is_some_and(|at| at > newer.since + SAID)
            && !newer.is_said
        {
            let since = newer.since;
            state.violated(format!("{resource} is left alone since {since}, and nothing says so"));
        }
        state.tracked(resource).restored_at = Some(now);
        state.rewritten(resource);
    }

    /// Records what a function reports to have left alone.
    pub(crate) fn left_alone(&self, left: &[LeftAlone]) {
        let mut state = self.lock();
        for one in left {
            let resource = names::first(&one.reference).parse::<ResourceRef>();
            if let Some(newer) = resource.ok().and_then(|resource| state.newer.get_mut(&resource)) {
                newer.is_said = true;
            }
        }
    }
}

impl State {
    fn rewritten(&mut self, resource: &ResourceRef) {
        self.last_change = self.time.now();
        if let Some(record) = self.records.get_mut(resource) {
            record.revision = Revision(record.revision.0 + 1);
        }
    }

    /// Checks that what a newer program wrote is neither replaced nor deleted.
    pub(super) fn check_newer_stays(&mut self, resource: &ResourceRef) {
        if let Some(newer) = self.newer.get(resource) {
            let since = newer.since;
            self.violated(format!(
                "{resource} is written over what a newer program wrote at {since}"
            ));
        }
    }

    /// Checks that nothing is sent for what only a newer program can read.
    pub(super) fn check_not_newer(&mut self, resource: &ResourceRef, path: &str) {
        let now = self.time.now();
        let since = self.newer.get(resource).map(|newer| newer.since);
        if let Some(since) = since.filter(|at| now.duration_since(*at) > OBSERVE_AND_SEND + SLACK) {
            self.violated(format!("{path} is sent for what a newer program wrote at {since}"));
        }
    }
}
