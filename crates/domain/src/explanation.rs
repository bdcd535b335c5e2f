//! What people are shown of the rules: which manual command stands, and which edges come.

use std::iter;

use jiff::Timestamp;
use serde::Serialize;

use crate::{
    configuration::Pause,
    decision::{
        Decision, DesiredEdge, LeaveReason, Rules, Verdict, coming_edges, judge, next_change,
        pause_of,
    },
    left_running::is_left_running,
    membership::Subject,
    record::{Cause, Direction, EdgeKey, Phase, Rank, Record},
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
    let wanting = coming(record, rules, at).find(|edge| edge.desired.is_some());
    wanting.filter(|_| follows).as_ref().map(edge)
}

/// Returns the coming edges of the effective desired state after an instant. One that a pause puts off
/// comes again at the end of the pause.
pub fn coming<'a>(
    record: &'a Record,
    rules: Rules<'a>,
    after: Timestamp,
) -> impl Iterator<Item = DesiredEdge> + 'a {
    let verdict = judge(record, Subject::recorded(record), rules, after);
    let is_put_off = matches!(verdict.decision, Decision::Leave(LeaveReason::Paused(_)));
    let under_way = record.in_flight().map(|transition| transition.direction.desired());
    let due = verdict.edge.filter(|edge| is_put_off && edge.desired != under_way);
    let put_off_until = move |edge: &DesiredEdge, at| {
        let direction = Direction::towards(edge.desired?);
        let end = end_of_pauses(at, |at| pause_of(record, rules, direction, at))?;
        (!is_left_running(record, rules, edge, end)).then_some(end)
    };
    with_put_off(due.map(|edge| (edge, after)), coming_edges(record, rules, after), put_off_until)
}

/// Adds to edges, the first of which may be due at an instant, each that is put off, unless a later
/// one comes before the end.
pub fn with_put_off(
    due: Option<(DesiredEdge, Timestamp)>,
    edges: impl Iterator<Item = DesiredEdge>,
    put_off_until: impl Fn(&DesiredEdge, Timestamp) -> Option<Timestamp>,
) -> impl Iterator<Item = DesiredEdge> {
    let again = move |edge: DesiredEdge, at| {
        let key = EdgeKey { instant: put_off_until(&edge, at)?, ..edge.key };
        Some(DesiredEdge { key, ..edge })
    };
    let mut edges = edges.peekable();
    let mut waiting = due.and_then(|(edge, at)| again(edge, at));
    iter::from_fn(move || {
        let next = edges.peek().map(|edge| edge.key.instant);
        let is_first = |edge: &mut DesiredEdge| next.is_none_or(|next| edge.key.instant < next);
        if let Some(edge) = waiting.take_if(is_first) {
            return Some(edge);
        }
        let edge = edges.next()?;
        waiting = again(edge.clone(), edge.key.instant);
        Some(edge)
    })
}

/// Returns when the pauses end that apply at an instant, of which one may follow another; `None` if
/// there is none.
pub fn end_of_pauses<'a>(
    at: Timestamp,
    pause: impl Fn(Timestamp) -> Option<&'a Pause>,
) -> Option<Timestamp> {
    let end = |at: Timestamp| Some(pause(at)?.ends_at);
    iter::successors(end(at), |at| end(*at)).last()
}

#[cfg(test)]
mod tests;
