//! What a record may forget: nothing is taken for gone while its cloud has it, and what was done
//! already is forgotten only by a resource that leaves its schedule and joins again.

use domain::{
    ResourceRef,
    record::{Phase, Record},
};
use jiff::{SignedDuration, Timestamp};

use super::{State, settled::SETTLE_TIME};
use crate::trace::Actor;

/// How long a list may still show what was there before.
const LISTED: SignedDuration = SignedDuration::from_mins(2);

/// How long before the last complete list a change may be that the list did not show: two more may
/// have failed or been late.
const NOTICED: SignedDuration = SignedDuration::from_mins(15);

fn is_gone(record: &Record) -> bool {
    matches!(record.phase, Phase::Gone { .. })
}

impl State {
    /// Checks that nothing is taken for gone that its cloud has.
    pub(super) fn check_there(&mut self, before: Option<&Record>, after: &Record) {
        if is_gone(after) && !before.is_some_and(is_gone) && self.has_been_there(after, LISTED) {
            self.violated(format!("{} is taken for gone, and its cloud has it", after.reference));
        }
    }

    /// Checks that what came back is not still taken for gone, a while later.
    pub(super) fn check_back(&mut self, record: &Record) {
        let account = self.accounts.get(record.reference.account.as_str());
        let is_doubted = account.is_some_and(|account| account.has_error);
        let is_left_alone = is_doubted || self.newer.contains_key(&record.reference);
        if is_gone(record) && !is_left_alone && self.has_been_there(record, SETTLE_TIME) {
            self.violated(format!(
                "{} is still taken for gone, and its cloud has it",
                record.reference
            ));
        }
    }

    /// Reports whether a cloud has a resource, and has had it for so long.
    fn has_been_there(&self, record: &Record, so_long: SignedDuration) -> bool {
        let reference = &record.reference;
        let state = self.state_of(reference);
        let is_there = state.is_some_and(|state| state["status"] != "deleting");
        let tracked = self.resources.get(reference);
        let changed_at = tracked.and_then(|tracked| tracked.person_at.max(tracked.restored_at));
        let changed_at = changed_at.max(Some(self.applied_at));
        let is_new = changed_at.is_some_and(|at| self.time.now().duration_since(at) < so_long);
        is_there && !is_new
    }

    /// Checks that a resource forgets its handled edge, or joins anew, only after a change of its tags,
    /// its name or the configuration.
    pub(super) fn check_joins(&mut self, before: &Record, after: &Record) {
        let forgets = before.handled.is_some() && after.handled.is_none();
        let joins = after.joined_at.is_some() && after.joined_at != before.joined_at;
        let is_approved = before.held && !after.held;
        // An inventory that another writer crossed leaves it to the next one to see what changed.
        let moves = before.schedule != after.schedule;
        let may_join = is_gone(before) || is_gone(after) || is_approved || moves;
        if !(forgets || joins) || may_join || self.may_have_joined(&after.reference) {
            return;
        }
        let (old, new) = ((before.joined_at, &before.handled), (after.joined_at, &after.handled));
        self.violated(format!(
            "{} joins anew, and nothing has changed: {old:?}, then {new:?}",
            after.reference
        ));
    }

    /// Reports whether anything has changed since the last list but one by which a resource may join.
    fn may_have_joined(&self, reference: &ResourceRef) -> bool {
        let account = self.accounts.get(reference.account.as_str());
        let Some(listed_at) = account.and_then(|account| account.listed_at) else {
            return true;
        };
        let tracked = self.resources.get(reference);
        let changes = tracked.map(|tracked| {
            let named = self.newer.get(reference).map(|_| Timestamp::MAX);
            [tracked.created_at, tracked.tagged_at, tracked.restored_at, named]
        });
        let changes = changes.into_iter().flatten().chain([self.recreated_at(reference)]);
        let changed_at = changes.flatten().fold(self.applied_at, Ord::max);
        changed_at + NOTICED > listed_at
    }

    /// Returns when a machine was made again. From then on it has the tags that it had, whatever was
    /// on its snapshot.
    fn recreated_at(&self, reference: &ResourceRef) -> Option<Timestamp> {
        let is_recreated = self.present(reference) != *reference;
        let state = self.state_of(reference).filter(|_| is_recreated)?;
        state["created"].as_str()?.parse().ok()
    }

    /// Checks that no function removes a record.
    pub(super) fn check_removed(&mut self, reference: &ResourceRef, by: Actor) {
        if by != Actor::Person {
            self.violated(format!("the record of {reference} is removed by a function"));
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::{
        record::{EdgeKey, Handled, Rank, Revision},
        schedule::Desired,
    };

    use super::*;
    use crate::{
        clockwork::TaskId,
        observer::tests::{DROPLET, at, observed, record_of},
    };

    /// Writes a record in place of another, and returns what is wrong with that.
    fn written(before: Record, after: Record, prepare: impl FnOnce(&mut State)) -> Option<String> {
        let observer = observed("mon 12:00");
        let mut state = observer.lock();
        let account = state.accounts.entry("do-main".to_owned()).or_default();
        account.listed_at = Some(at("mon 11:55"));
        state.applied_at = at("mon 08:00");
        state.observe_all();
        let tracked = state.tracked(&before.reference);
        tracked.person_at = Some(at("mon 08:00"));
        tracked.created_at = Some(at("mon 08:00"));
        prepare(&mut state);
        state.records.insert(before.reference.clone(), before);
        let after = Record { revision: Revision(1), ..after };
        state.process_record(&after, TaskId::default());
        state.violation.clone()
    }

    fn handled() -> Record {
        let key = EdgeKey { instant: at("mon 08:00"), rank: Rank::Schedule };
        let handled = Handled {
            key,
            desired: Some(Desired::Running),
            generation: domain::configuration::Generation::default(),
            schedule: None,
        };
        Record { handled: Some(handled), joined_at: Some(at("mon 07:00")), ..record_of(DROPLET) }
    }

    fn gone() -> Record {
        Record { phase: Phase::Gone { since: at("mon 12:00") }, ..record_of(DROPLET) }
    }

    #[test]
    fn a_droplet_that_its_cloud_has_is_not_gone() {
        let found = written(record_of(DROPLET), gone(), |_| {}).unwrap_or_default();
        assert!(found.contains("its cloud has it"), "{found}");
        let deleted = |state: &mut State| {
            state.simulator.person(&gone().reference, cloud_simulator::Act::Delete).unwrap();
        };
        assert_eq!(written(record_of(DROPLET), gone(), deleted), None);
    }

    #[test]
    fn a_handled_edge_is_forgotten_only_after_a_change() {
        let forgetful = || Record { handled: None, ..handled() };
        let found = written(handled(), forgetful(), |_| {}).unwrap_or_default();
        assert!(found.contains("joins anew"), "{found}");
        let later = Record { joined_at: Some(at("mon 11:00")), ..handled() };
        let found = written(handled(), later, |_| {}).unwrap_or_default();
        assert!(found.contains("joins anew"), "{found}");
        let retag = |state: &mut State| {
            state.tracked(&gone().reference).tagged_at = Some(at("mon 11:50"));
        };
        assert_eq!(written(handled(), forgetful(), retag), None);
    }

    #[test]
    fn a_machine_that_was_just_made_again_may_join_anew() {
        let reference: ResourceRef = "do-main/droplet/9".parse().expect("a reference");
        let asleep = || Record { reference: reference.clone(), ..handled() };
        let forgetful = || Record { handled: None, ..asleep() };
        let found = written(asleep(), forgetful(), |_| {}).unwrap_or_default();
        assert!(found.contains("joins anew"), "{found}");
        let recreate = |state: &mut State| {
            state.recreated.insert(gone().reference, reference.clone());
        };
        assert_eq!(written(asleep(), forgetful(), recreate), None);
    }
}
