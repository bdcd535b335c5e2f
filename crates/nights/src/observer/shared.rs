//! Checks on what two accounts reach: nothing is sent for it, and an alarm reports it.

use domain::{
    ResourceRef,
    record::{Phase, Record},
};
use jiff::{SignedDuration, Timestamp};

use super::State;
use crate::elsewhere::Elsewhere;

/// How long two accounts may both have a record of something before each knows of the other: three
/// inventories, of which faults may spoil two, and the time to send what was permitted before.
const NOTICED: SignedDuration = SignedDuration::from_mins(18);

impl State {
    /// Updates what two accounts reach.
    pub(super) fn note_shared(&mut self) {
        let accounts = &self.setup.accounts;
        if !accounts.keys().any(Elsewhere::is_second) {
            self.shared.clear();
            return;
        }
        let is_there = |record: &&Record| {
            let is_gone = matches!(record.phase, Phase::Gone { .. });
            accounts.contains_key(&record.reference.account) && !is_gone
        };
        let mut ids: Vec<_> =
            self.records.values().filter(is_there).map(|one| one.reference.id.clone()).collect();
        ids.sort();
        let (now, mut found) = (self.time.now(), 0);
        let twice: Vec<_> =
            ids.windows(2).filter(|two| two[0] == two[1]).map(|two| two[0].clone()).collect();
        self.shared.retain(|id, _| twice.contains(id));
        for id in twice {
            self.shared.entry(id).or_insert_with(|| {
                found += 1;
                now
            });
        }
        for _ in 0..found {
            self.count("two accounts reach a resource");
        }
    }

    /// Reports whether two accounts have reached something for so long that each must know.
    pub(super) fn is_shared(&self, record: &Record) -> bool {
        self.shared_since(&record.reference).is_some()
    }

    fn shared_since(&self, resource: &ResourceRef) -> Option<Timestamp> {
        let since = self.shared.get(&resource.id)?;
        (self.time.now().duration_since(*since) > NOTICED).then_some(*since)
    }

    /// Checks that nothing is sent for what two accounts reach.
    pub(super) fn check_shared(&mut self, resource: &ResourceRef, path: &str) {
        if let Some(since) = self.shared_since(resource) {
            self.violated(format!(
                "{path} is sent for {resource}, which two accounts reach since {since}"
            ));
        }
    }

    /// Checks that an alarm reports what two accounts reach.
    pub(super) fn check_shared_reported(&mut self, record: &Record, now: Timestamp) {
        self.count("two accounts reach a resource at an inspection");
        if !self.is_reported(record, now) {
            self.violated(format!(
                "two accounts reach {}, and nothing reports it",
                record.reference
            ));
        }
    }
}
