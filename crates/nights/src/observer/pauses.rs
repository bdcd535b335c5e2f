//! Pauses: which resources they cover, read here from their description in `docs/using.md`. Nothing
//! is sent for what is paused, and afterward the latest edge that was missed counts.

use domain::{
    ResourceRef,
    configuration::{Pause, PauseScope},
    record::Direction,
};
use jiff::Timestamp;
use serde_json::Value;

use super::{
    SLACK, State,
    requests::OBSERVE_AND_SEND,
    rules,
    settled::{MOST_LEAD, SETTLE_TIME},
};

/// A time in which a pause covers a resource.
#[derive(Debug, Clone)]
pub(super) struct Paused {
    scope: PauseScope,
    starts: bool,
    from: Timestamp,
    until: Timestamp,
}

impl Paused {
    fn bars(&self, direction: Direction) -> bool {
        direction == Direction::Stop || !self.starts
    }
}

impl State {
    /// Records that a person has paused something, changed a pause, or ended it.
    pub(super) fn process_pause(&mut self, pause: Pause) {
        self.pauses.insert(pause.scope.clone(), pause);
        self.observe_all();
    }

    /// Updates which pauses cover a resource.
    pub(super) fn observe_pauses(&mut self, reference: &ResourceRef, state: &Value) {
        let now = self.time.now();
        let in_force = self.pauses.values().filter(|one| one.set_at <= now && now < one.ends_at);
        let covering: Vec<_> = in_force
            .filter(|one| self.is_covered(&one.scope, reference, state))
            .map(|one| Paused {
                scope: one.scope.clone(),
                starts: one.starts,
                from: now,
                until: one.ends_at,
            })
            .collect();
        let paused = &mut self.tracked(reference).paused;
        let mut begun = covering;
        for known in paused.iter_mut().filter(|known| now < known.until) {
            let same =
                begun.iter().position(|one| one.scope == known.scope && one.starts == known.starts);
            known.until = same.map_or(now, |place| begun.swap_remove(place).until);
        }
        paused.extend(begun);
    }

    fn is_covered(&self, scope: &PauseScope, reference: &ResourceRef, state: &Value) -> bool {
        match scope {
            PauseScope::Everything => true,
            PauseScope::Account(name) => reference.account == *name,
            PauseScope::Schedule(name) => {
                let schedule = rules::schedule_of(reference, state, &self.setup);
                schedule.as_ref() == Some(name) && !rules::is_excluded(state, &self.setup)
            }
            PauseScope::Tag(pattern) => has_tag(state, pattern.glob()),
        }
    }

    /// Checks that nothing is sent for what is paused.
    pub(super) fn check_paused(&mut self, resource: &ResourceRef, path: &str) {
        let now = self.time.now();
        let in_flight = self.records.get(resource).and_then(|record| record.in_flight());
        let direction = in_flight.map_or(Direction::Stop, |transition| transition.direction);
        let Some(tracked) = self.resources.get(resource) else {
            return;
        };
        let is_in_force = |one: &&Paused| {
            let began = one.from + OBSERVE_AND_SEND + SLACK;
            one.bars(direction) && began < now && now + SLACK < one.until
        };
        if let Some(one) = tracked.paused.iter().find(is_in_force) {
            let Paused { scope, from, until, .. } = one;
            let what = format!("{path} is sent, and {scope} is paused from {from} until {until}");
            self.violated(what);
        }
    }

    /// Returns when the last pause ends that keeps a resource from being brought to a state.
    pub(super) fn paused_until(
        &self,
        resource: &ResourceRef,
        direction: Direction,
    ) -> Option<Timestamp> {
        let tracked = self.resources.get(resource)?;
        let barring = tracked.paused.iter().filter(|one| one.bars(direction));
        barring.map(|one| one.until).max()
    }

    /// Returns when an edge that a pause covers is handled, or the edge itself if none does. An edge
    /// that comes soon after the beginning of a pause may have been handled before it.
    pub(super) fn handled_from(
        &self,
        resource: &ResourceRef,
        direction: Direction,
        edge: Timestamp,
    ) -> Timestamp {
        let Some(tracked) = self.resources.get(resource) else {
            return edge;
        };
        let soon = MOST_LEAD + SETTLE_TIME;
        let covers =
            |one: &&Paused| one.bars(direction) && one.from + soon < edge && edge < one.until;
        tracked.paused.iter().filter(covers).map(|one| one.until).fold(edge, Timestamp::max)
    }
}

/// Reports whether a resource has a tag that matches a pattern: `*` stands for any text, at its end.
fn has_tag(state: &Value, pattern: &str) -> bool {
    let pattern = pattern.replace('=', ":").to_lowercase();
    let matches = |tag: String| {
        let tag = tag.to_lowercase();
        pattern.strip_suffix('*').map_or(tag == pattern, |begin| tag.starts_with(begin))
    };
    let tags = state["tags"].as_array().into_iter().flatten();
    let tags = tags.filter_map(Value::as_str).map(str::to_owned);
    // The labels of a pool's nodes say nothing of the pool.
    let labels = state["labels"].as_object().filter(|_| state["cluster"].is_null());
    let labels = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}:{}", value.as_str().unwrap_or_default()));
    tags.chain(labels).any(matches)
}
