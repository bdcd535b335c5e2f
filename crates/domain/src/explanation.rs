//! What people are shown of the rules: which manual command stands, and which edge comes next.

use jiff::Timestamp;
use serde::Serialize;

use crate::{
    decision::{DesiredEdge, Rules, Verdict, coming_edges, next_change},
    record::{Cause, Direction, Phase, Rank, Record},
    schedule::Desired,
};

/// An edge of the desired state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EdgeExplanation {
    /// When the desired state changes; null if it has always been so.
    pub at: Option<Timestamp>,
    /// The desired state from then on; null if either state will do.
    pub to: Option<Desired>,
    /// What causes the edge.
    pub cause: Cause,
}

/// A manual stop or start that a resource follows until it changes again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StandingCommand {
    /// The state that the command asked for.
    pub desired: Desired,
    /// Who gave it.
    pub by: String,
    /// When it was given.
    pub at: Timestamp,
    /// The edge at which the resource next changes its state; null if none does.
    pub until: Option<EdgeExplanation>,
}

/// Returns the manual command that a resource follows at an instant, and until when. `None` if the
/// latest edge is no command, or if the resource is in another state all the same.
#[must_use]
pub fn standing_command(
    record: &Record,
    verdict: &Verdict,
    rules: Rules<'_>,
    at: Timestamp,
) -> Option<StandingCommand> {
    let latest = verdict.edge.as_ref().map(|edge| edge.key.rank);
    let is_followed = verdict.opted_in && latest == Some(Rank::Manual);
    let command = record.manual_command.as_ref().filter(|_| is_followed)?;
    let direction = Direction::towards(command.desired);
    let is_so = match &record.phase {
        Phase::Settled { at: power } => *power == direction.target_state(),
        Phase::InFlight { transition } => transition.direction == direction,
        Phase::Refused { .. } | Phase::Stuck { .. } | Phase::Gone { .. } => false,
    };
    is_so.then(|| StandingCommand {
        desired: command.desired,
        by: command.by.clone(),
        at: command.instant,
        until: next_change(record, rules, at, command.desired).as_ref().map(edge),
    })
}

fn edge(edge: &DesiredEdge) -> EdgeExplanation {
    EdgeExplanation {
        at: Some(edge.key.instant).filter(|&at| at > Timestamp::UNIX_EPOCH),
        to: edge.desired,
        cause: edge.cause.clone(),
    }
}

/// Returns the next edge to show: one with a desired state, or, while a manual command stands, with
/// another one.
#[must_use]
pub fn next_edge(
    record: &Record,
    verdict: &Verdict,
    manual: Option<&StandingCommand>,
    rules: Rules<'_>,
    at: Timestamp,
) -> Option<EdgeExplanation> {
    if let Some(command) = manual {
        return command.until.clone();
    }
    let follows = verdict.opted_in && !matches!(record.phase, Phase::Gone { .. });
    let wanting = coming_edges(record, rules, at).find(|edge| edge.desired.is_some());
    wanting.filter(|_| follows).as_ref().map(edge)
}

#[cfg(test)]
mod tests;
