//! The outcome for each resource, counted from events.

use std::collections::BTreeMap;

use domain::{
    AccountName, ResourceRef,
    decision::{Decision, judge},
    membership::Subject as Judged,
    record::{Direction, Record},
    resource::SavedState,
};
use jiff::Timestamp;
use lifecycle::{
    Outcome,
    event::{Event, Subject},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::Store;

use super::bill::Charge;
use crate::connection::readable;

/// What happened to one resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    /// Its name.
    pub name: String,
    /// Number of stops whose end was seen.
    pub stopped: u32,
    /// Number of starts whose end was seen.
    pub started: u32,
    /// The size that the latest stop saved; null if none did.
    pub saved: Option<SavedState>,
    /// Number of starts that restored a saved size.
    pub restored: u32,
    /// Number of stops whose power was cut after an unanswered shutdown.
    pub forced: u32,
    /// The requests that the provider refused, in its words.
    pub refused: Vec<String>,
    /// The edges at which there was nothing to do, and why.
    pub already: Vec<String>,
    /// Why nothing was done, or what else a person should know.
    pub notes: Vec<String>,
}

/// The outcome for each resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// The resources, by reference.
    pub resources: BTreeMap<String, Tally>,
    /// What the simulated clouds charge, by account; omitted if there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bill: BTreeMap<AccountName, Charge>,
    /// The invocations of each function, by its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub invocations: BTreeMap<String, Invocations>,
}

/// The invocations of one function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Invocations {
    /// Number of invocations.
    pub count: u64,
    /// Their total duration, in seconds. A simulation's clock stands still while a function works;
    /// there, it is how long the functions waited.
    pub seconds: u64,
}

impl Summary {
    /// Adds one outcome to the counts.
    pub fn count(&mut self, outcome: &Outcome) {
        let Subject::Resource { resource, name, .. } = &outcome.subject else {
            return;
        };
        let tally = self.tally(resource, name);
        match &outcome.event {
            Event::Asked { direction: Direction::Stop, saved: Some(saved), .. } => {
                tally.saved = Some(saved.clone());
            }
            Event::Seen { direction: Direction::Stop, forced, .. } => {
                tally.stopped += 1;
                tally.forced += u32::from(*forced);
            }
            Event::Seen { direction: Direction::Start, saved, .. } => {
                tally.started += 1;
                tally.restored += u32::from(saved.is_some());
            }
            Event::Refused { reason, .. } => tally.refused.push(reason.words()),
            Event::AlreadyThere { direction, reason } => {
                tally.already.push(format!("{direction}: {reason}"));
            }
            Event::Stuck { .. }
            | Event::Conflict { .. }
            | Event::UnknownSchedule { .. }
            | Event::Orphaned { .. }
            | Event::Approved
            | Event::Gone { .. }
            | Event::WouldAsk { .. }
            | Event::Overtaken { .. } => tally.notes.push(outcome.event.to_string()),
            Event::Asked { .. }
            | Event::Forced { .. }
            | Event::LetGo { .. }
            | Event::Joined { .. }
            | Event::Held { .. }
            | Event::UnlikePlans { .. }
            | Event::ConfigurationOverruled { .. }
            | Event::Postponed { .. }
            | Event::Awaiting { .. }
            | Event::Watching { .. }
            | Event::Declined { .. }
            | Event::Status { .. } => {}
        }
    }

    /// Adds the resources that were left untouched, and why.
    pub async fn add_untouched(&mut self, store: &Store, now: Timestamp) -> anyhow::Result<()> {
        let in_force = store.in_force().await?;
        for account in in_force.configuration.accounts.keys() {
            for record in readable(store.records_of(account).await?) {
                let judged = Judged::recorded(&record);
                let verdict = judge(&record, judged, in_force.rules(), now);
                if verdict.opted_in {
                    continue;
                }
                if let Decision::Leave(reason) = verdict.decision {
                    self.note(&record, format!("untouched: {reason}"));
                }
            }
        }
        Ok(())
    }

    fn note(&mut self, record: &Record, note: String) {
        let tally = self.tally(&record.reference, &record.name);
        if !tally.notes.contains(&note) {
            tally.notes.push(note);
        }
    }

    fn tally(&mut self, resource: &ResourceRef, name: &str) -> &mut Tally {
        let tally = self.resources.entry(resource.to_string()).or_default();
        if tally.name.is_empty() {
            name.clone_into(&mut tally.name);
        }
        tally
    }
}
