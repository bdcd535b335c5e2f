//! What an invocation did: for its caller, for the log, for the metrics and for the event bus.

pub mod bus_event;
pub mod health;
mod listener;
mod publish;
mod unreadable;

use domain::{AccountName, digest::Digest, record::Record};
use serde::{Deserialize, Serialize};

use crate::{Context, Outcome};

pub use listener::Tell;
pub use publish::telling;
pub use unreadable::LeftAlone;
pub(crate) use unreadable::reread;

/// All that one invocation did, or found worth saying.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// In the order in which it happened.
    pub outcomes: Vec<Outcome>,
    /// Transitions looked at that are still under way.
    #[serde(default)]
    pub in_flight: usize,
    /// What accounts showed that were tried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trials: Vec<Trial>,
    /// What became of edges of schedules, each told once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub digests: Vec<Digest>,
    /// What a newer program wrote, and this one left alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_alone: Vec<LeftAlone>,
}

impl Report {
    /// Adds what a part of the invocation did, and tells it.
    pub fn add(&mut self, context: Context<'_>, outcomes: impl IntoIterator<Item = Outcome>) {
        for outcome in outcomes {
            context.tell.happened(&outcome);
            self.outcomes.push(outcome);
        }
    }

    /// Adds what somebody asked about and did not happen, and tells it.
    pub(crate) fn answer(
        &mut self,
        context: Context<'_>,
        outcomes: impl IntoIterator<Item = Outcome>,
    ) {
        for outcome in outcomes {
            context.tell.answered(&outcome);
            self.outcomes.push(outcome);
        }
    }
}

/// What one list call with an account's token, or with each of two, showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Which account.
    pub account: AccountName,
    /// Why it could not be listed, and with which token if it has two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// All that was listed, in every location, as first seen.
    #[serde(default)]
    pub found: Vec<Record>,
}
