//! Checks on every history item and every report.

use domain::{
    ResourceKind, ResourceRef,
    history::HistoryEntry,
    record::{Direction, Ending, Record},
    stop_method::StopMethod,
};
use jiff::SignedDuration;
use lifecycle::{Event, Occurrence, event::Subject};
use serde_json::Value;

use super::{ResourceSize, SLACK, State, disks::does_not_boot};
use crate::names;

/// How long a person's change may be missing from an observation.
const CROSSES: SignedDuration = SignedDuration::from_secs(120);

impl State {
    pub(super) fn process_history(&mut self, entry: HistoryEntry) {
        let reference = entry.reference.clone();
        if let Some(before) = self.history.get(&reference)
            && before.claimed_at != entry.claimed_at
            && entry.claimed_at + SLACK < before.finished_at
        {
            let (first, second) = (before.finished_at, entry.claimed_at);
            self.violated(format!(
                "two transitions of {reference} overlap: one ended at {first}, the next began at {second}"
            ));
        }
        if entry.ending == Ending::Seen {
            self.check_seen(&entry);
        }
        let within = |change: &super::AcceptedChange| {
            change.resource == reference && change.at <= entry.finished_at + SLACK
        };
        self.unexplained.retain(|change| !within(change));
        // `Kept` and `WouldHave` are moments within the transition that found them.
        if !matches!(entry.ending, Ending::Resized | Ending::WouldHave) {
            self.history.insert(reference, entry);
        }
    }

    /// Done means seen: checks that a transition recorded as seen has reached its target state.
    fn check_seen(&mut self, entry: &HistoryEntry) {
        let now = self.time.now();
        let reference = &entry.reference;
        let person_at = self.resources.get(reference).and_then(|tracked| tracked.person_at);
        let crossed = person_at.is_some_and(|at| now.duration_since(at) < CROSSES);
        let Some(state) = self.state_of(reference).filter(|_| !crossed) else {
            return;
        };
        if self.is_silent(entry) {
            return;
        }
        self.check_attached(entry, &state);
        // A machine that does not boot may be off again by the time this is written.
        let was_on = does_not_boot(&state) && entry.direction == Direction::Start;
        let record = self.records.get(reference);
        let took_nothing = entry.direction == Direction::Stop
            && record.is_some_and(|record| had_no_standby(entry.method, record, &state));
        let is_there = was_on || took_nothing || is_at_end(entry, &state);
        if !is_there || !self.has_its_plan(entry, &state) {
            let direction = entry.direction;
            self.violated(format!("the {direction} of {reference} is said to be seen: {state}"));
        }
    }

    /// Reports whether a started machine is on a plan of its own, or history says that it is not.
    fn has_its_plan(&self, entry: &HistoryEntry, state: &Value) -> bool {
        let tracked = self.resources.get(&entry.reference);
        let owed = tracked.and_then(|tracked| Some((tracked, tracked.owed.as_ref()?)));
        let (Some((tracked, owed)), Some(size)) = (owed, ResourceSize::of(&entry.reference, state))
        else {
            return true;
        };
        let is_machine = size.plan().is_some() && entry.direction == Direction::Start;
        !is_machine || entry.reason.is_some() || tracked.will_do(&size, owed)
    }

    /// Checks that a report contains no token, and that an end reported as seen is in history.
    pub(super) fn check_report(&mut self, outcome: &Occurrence) {
        let said = format!("{outcome:?}");
        if said.contains("secret-of-") || said.contains("PRIVATE KEY") {
            self.violated("a token was reported");
        }
        let (Subject::Resource { resource, .. }, Event::Seen { direction, .. }) =
            (&outcome.subject, &outcome.event)
        else {
            return;
        };
        let resource = names::first(&resource.to_string()).parse();
        let resource: ResourceRef = resource.expect("a reference");
        let known = self.history.get(&resource);
        if !known.is_some_and(|entry| entry.direction == *direction && entry.ending == Ending::Seen)
        {
            self.violated(format!("{resource} is reported as seen, and history says {known:?}"));
        }
    }
}

/// Reports whether a stop whose method had changed found one node with all that was saved: nothing to
/// take.
pub(super) fn had_no_standby(method: Option<StopMethod>, record: &Record, state: &Value) -> bool {
    method == Some(StopMethod::Standbys) && state["nodes"] == 1 && record.saved.is_none()
}

/// Reports whether a resource is in the target state of its transition.
fn is_at_end(entry: &HistoryEntry, state: &Value) -> bool {
    let runs = match entry.reference.kind() {
        ResourceKind::Droplet => state["powered"] == true,
        // It may have been left running on its small type.
        ResourceKind::Machine => state["status"] == "running",
        ResourceKind::Server => {
            let left = entry.method == Some(StopMethod::Rescale) && entry.saved.is_some();
            let stopped = left && entry.direction == Direction::Stop;
            state["status"] == "running" && !stopped
        }
        ResourceKind::NodePool => state["count"] != 0,
        ResourceKind::Database => {
            let saved = entry.saved.as_ref().and_then(ResourceSize::of_saved);
            let size = ResourceSize::of(&entry.reference, state);
            return saved.zip(size).is_none_or(|(saved, size)| {
                // Only a person makes it smaller in one respect and larger in another.
                let is_mixed = !size.covers(&saved) && !saved.covers(&size);
                match entry.direction {
                    Direction::Stop => !size.covers(&saved),
                    Direction::Start => size.covers(&saved) || is_mixed,
                }
            });
        }
    };
    runs == (entry.direction == Direction::Start)
}
