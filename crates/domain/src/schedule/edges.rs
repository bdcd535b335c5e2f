//! The search for the instants at which a schedule's desired state changes.
//!
//! The desired state of periods can change only where one of their windows begins or ends. So those
//! instants are collected, stretch by stretch, and the desired state is evaluated at each.

use std::vec;

use jiff::Timestamp;

use super::{
    Desired, Edge, Schedule,
    clock::{self, Clock, DAY, Instant},
    period::Periods,
};

/// How far to search for an edge of periods, in seconds: nine years, because from 29 February 2096
/// to the next one it is eight.
const HORIZON: i64 = 9 * 366 * DAY;

/// The longest stretch that is collected at once, in seconds. The first one is a day long and each
/// further one twice as long, because the edge is usually near.
const LONGEST_STRETCH: i64 = 32 * DAY;

/// The edges of a schedule of periods, in order.
pub(super) struct Edges<'a> {
    schedule: &'a Schedule,
    periods: &'a [Periods],
    /// The desired state before the next edge.
    desired: Option<Desired>,
    /// The instants that are collected but not yet evaluated.
    pending: vec::IntoIter<Instant>,
    /// The end of the stretch that is collected.
    until: Instant,
    stretch: i64,
    /// The instant at which the search for the next edge ends.
    horizon: Instant,
}

impl<'a> Edges<'a> {
    pub(super) fn new(schedule: &'a Schedule, periods: &'a [Periods], after: Instant) -> Self {
        Self {
            schedule,
            periods,
            desired: schedule.desired(after),
            pending: Vec::new().into_iter(),
            until: after,
            stretch: DAY,
            horizon: if periods.iter().any(Periods::always_run) { after } else { horizon(after) },
        }
    }
}

impl Iterator for Edges<'_> {
    type Item = Edge;

    fn next(&mut self) -> Option<Edge> {
        loop {
            for at in self.pending.by_ref() {
                let desired = self.schedule.desired(at);
                if desired != self.desired {
                    self.desired = desired;
                    self.horizon = horizon(at);
                    return Some(Edge { at: at.timestamp(), desired });
                }
            }
            if self.until >= self.horizon {
                return None;
            }
            let from = self.until;
            self.until = self.horizon.min(self.until + self.stretch);
            self.stretch = LONGEST_STRETCH.min(2 * self.stretch);
            self.pending = turns(self.periods, from, self.until).into_iter();
        }
    }
}

fn horizon(instant: Instant) -> Instant {
    (instant + HORIZON).min(Instant::of(Timestamp::MAX))
}

/// Returns the last instant up to `until` at which the desired state changed.
pub(super) fn latest_turn(
    schedule: &Schedule,
    periods: &[Periods],
    until: Instant,
) -> Option<Instant> {
    if periods.iter().any(Periods::always_run) {
        return None;
    }
    let desired = schedule.desired(until);
    let (mut end, mut stretch) = (until, DAY);
    while until - end < HORIZON {
        let begin = end - stretch;
        let turns = turns(periods, begin, end);
        let changed = |turn: &Instant| schedule.desired(*turn - 1) != desired;
        if let Some(turn) = turns.into_iter().rev().find(changed) {
            return Some(turn);
        }
        (end, stretch) = (begin, LONGEST_STRETCH.min(2 * stretch));
    }
    None
}

/// Returns the instants after `after`, up to `until`, at which a window begins or ends; sorted.
fn turns(periods: &[Periods], after: Instant, until: Instant) -> Vec<Instant> {
    let mut instants = Vec::new();
    for group in periods {
        let zone = &group.zone;
        let (from, to) = (Clock::at(zone, after), Clock::at(zone, until));
        // A window that ends within the stretch may have begun the day before.
        let days = from.over.day() - 1..=to.reached.day();
        let turns = group.turns(days);
        for reading in turns.begins {
            if from.reached < reading && reading <= to.reached {
                instants.push(clock::reached_at(zone, reading));
            }
        }
        for reading in turns.ends {
            if from.over < reading && reading <= to.over {
                instants.push(clock::over_at(zone, reading));
            }
        }
    }
    instants.sort_unstable();
    instants.dedup();
    instants
}
