//! Finished stops and starts, as stored in history.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    hibernation::Hibernation,
    record::{Ask, Cause, Direction, Ending, Forced, Last, Record, Transition},
    reference::{ResourceRef, ScheduleName},
    resource::SavedState,
    stop_method::StopMethod,
    text,
};

/// How many days a history item is kept.
///
/// History is queried by when its items expire: items written under another value would be found
/// off by the difference.
pub const HISTORY_DAYS: i64 = 90;

/// One finished transition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HistoryEntry {
    /// The resource.
    pub reference: ResourceRef,
    /// Its name at that time.
    #[serde(deserialize_with = "text::line")]
    pub name: String,
    /// Stop or start.
    pub direction: Direction,
    /// What asked for it.
    pub cause: Cause,
    /// The schedule followed at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleName>,
    /// When it was claimed.
    pub claimed_at: Timestamp,
    /// When the request was permitted; absent if none was needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<Timestamp>,
    /// When the provider's acceptance was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Timestamp,
    /// How it ended.
    pub ending: Ending,
    /// The provider's reason, if it refused.
    #[serde(
        default,
        deserialize_with = "text::optional_line",
        skip_serializing_if = "Option::is_none"
    )]
    pub reason: Option<String>,
    /// Whether the power was cut after a shutdown without effect.
    pub forced: bool,
    /// How it was stopped; for a start, the stop method that left something to put back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<StopMethod>,
    /// The saved state at the end, or what was put back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved: Option<SavedState>,
    /// What was seen at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<SavedState>,
    /// What a machine is recreated from whose record was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hibernation: Option<Box<Hibernation>>,
}

impl HistoryEntry {
    /// Returns the entry of a record's transition that ends now, with the record's request in the
    /// same direction.
    #[must_use]
    pub fn of(record: &Record, transition: &Transition, ending: Ending, now: Timestamp) -> Self {
        let request = record.request_towards(transition.direction);
        Self {
            asked_at: request.map(|request| request.asked_at),
            accepted_at: request.and_then(|request| match request.ask {
                Ask::Accepted { at, .. } => Some(at),
                Ask::Done { .. } => request.first_accepted_at,
                Ask::Open | Ask::Failed { .. } => None,
            }),
            forced: transition.forced
                || request.is_some_and(|request| request.forced == Forced::Accepted),
            method: Some(transition.method),
            claimed_at: transition.claimed_at,
            direction: transition.direction,
            schedule: transition.schedule.clone(),
            ..Self::unasked(record, transition.cause.clone(), ending, now)
        }
    }

    /// Returns the entry of a start that will never be requested. It names the saved state that is
    /// not put back.
    #[must_use]
    pub fn unasked(record: &Record, cause: Cause, ending: Ending, now: Timestamp) -> Self {
        Self {
            reference: record.reference.clone(),
            name: record.name.clone(),
            direction: Direction::Start,
            cause,
            schedule: record.schedule.clone(),
            claimed_at: now,
            asked_at: None,
            accepted_at: None,
            finished_at: now,
            ending,
            reason: None,
            forced: false,
            method: None,
            saved: record.saved.clone(),
            seen: None,
            hibernation: None,
        }
    }

    /// Returns the transition's identity within its resource.
    #[must_use]
    pub fn transition_key(&self) -> String {
        format!("{:020}#{}", self.claimed_at.as_millisecond(), self.direction)
    }

    /// Returns what the record keeps of it; `None` for a transition that no edge led to.
    #[must_use]
    pub fn last(&self, record: &Record) -> Option<Last> {
        Some(Last {
            key: record.handled.as_ref()?.key,
            claimed_at: self.claimed_at,
            asked_at: self.asked_at,
            finished_at: self.finished_at,
            ending: self.ending,
            method: self.method,
        })
    }

    /// Returns how it ended, and why, for people.
    #[must_use]
    pub fn ended(&self) -> String {
        match &self.reason {
            Some(reason) => format!("{}: {reason}", self.ending),
            None => self.ending.to_string(),
        }
    }
}
