//! A schedule whose starts count early, because starting takes time.

use jiff::{SignedDuration, Timestamp};

use super::{Desired, Edge, LatestEdge, Schedule};

/// How many edges to search for one that is not swallowed by a start soon after it.
const SEARCHED: usize = 512;

/// The resolution of timestamps.
const INSTANT: SignedDuration = SignedDuration::from_nanos(1);

/// A schedule that says "running" as soon as the original will say so within `lead`. Its edges are
/// shifted accordingly, so that none of them lies in the future when it is acted on.
///
/// A stop that is followed by a start within `lead` is not an edge: the machine keeps running. That
/// start counts at its own instant, so that it brings back what a person has stopped.
#[derive(Debug, Clone, Copy)]
pub struct Early<'a> {
    /// The schedule as its author wrote it.
    pub schedule: &'a Schedule,
    /// How long before its instant a start counts.
    pub lead: SignedDuration,
}

impl Early<'_> {
    /// Returns the desired state at an instant.
    #[must_use]
    pub fn desired_at(self, at: Timestamp) -> Option<Desired> {
        let desired = self.schedule.desired_at(at);
        if desired == Some(Desired::Running) || self.lead.is_zero() {
            return desired;
        }
        let mut soon = self.schedule.edges(at);
        let soon = soon.by_ref().take_while(|edge| edge.at <= at + self.lead);
        if soon.take(SEARCHED).any(is_start) { Some(Desired::Running) } else { desired }
    }

    /// Returns the latest edge at or before an instant.
    #[must_use]
    pub fn latest_edge(self, at: Timestamp) -> LatestEdge {
        if self.lead.is_zero() {
            return self.schedule.latest_edge(at);
        }
        let desired = self.desired_at(at);
        let mut until = at + self.lead;
        for _ in 0..SEARCHED {
            let found = self.schedule.latest_edge(until);
            let Some(at_most) = found.since else { break };
            let counts_at = self.counts_at(Edge { at: at_most, desired: found.desired });
            if counts_at.is_some_and(|instant| instant <= at) {
                return LatestEdge { since: counts_at, desired };
            }
            until = at_most - INSTANT;
        }
        LatestEdge { since: None, desired }
    }

    /// Returns the first edge after an instant.
    #[must_use]
    pub fn next_edge(self, after: Timestamp) -> Option<Edge> {
        if self.lead.is_zero() {
            return self.schedule.next_edge(after);
        }
        let edges = self.schedule.edges(after).take(SEARCHED);
        let mut instants = edges.filter_map(|edge| self.counts_at(edge));
        let at = instants.find(|&at| at > after)?;
        Some(Edge { at, desired: self.desired_at(at) })
    }

    /// Returns when an edge of the schedule counts; `None` if it is no edge of the early schedule.
    fn counts_at(self, edge: Edge) -> Option<Timestamp> {
        let early = edge.at - self.lead;
        if is_start(edge) && self.changes_at(early) {
            Some(early)
        } else {
            (is_start(edge) || self.changes_at(edge.at)).then_some(edge.at)
        }
    }

    fn changes_at(self, at: Timestamp) -> bool {
        self.desired_at(at) != self.desired_at(at - INSTANT)
    }
}

fn is_start(edge: Edge) -> bool {
    edge.desired == Some(Desired::Running)
}
