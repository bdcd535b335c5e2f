//! Adds pauses to some nights.

use domain::configuration::PauseScope;
use fastrand::Rng;
use jiff::{SignedDuration, Timestamp};

use super::{EventGenerator, rough_times};
use crate::night::EventKind;

const PAUSES: u64 = 0x0070_6175_7365_7321;

/// One night in this many has pauses.
const ONE_IN: u8 = 4;

/// Tags, one of which no resource has.
const TAGS: [&str; 5] =
    ["tag:team*", "tag:offhours:office", "tag:offhours=lab", "tag:offhours:n*", "tag:prod*"];

impl EventGenerator {
    /// Adds pauses, from a stream of their own.
    pub(super) fn pauses(&mut self, seed: u64) {
        self.chance = Rng::with_seed(seed ^ PAUSES);
        if self.chance.u8(..ONE_IN) > 0 {
            return;
        }
        for (from, until) in rough_times(self.begins, &self.happenings) {
            let edges = self.edges(from, until);
            for _ in 0..self.chance.u8(1..4) {
                let at = self.near(&edges, from, until);
                let before = SignedDuration::from_mins(self.chance.i64(0..240));
                self.pause((at - before).max(from), until);
            }
        }
    }

    /// Lets a person pause something, often change or end the pause, and act meanwhile.
    fn pause(&mut self, at: Timestamp, until: Timestamp) {
        let minutes = [5, 30, 300, 900, 1500][self.chance.usize(..5)];
        let minutes = minutes.min(until.duration_since(at).as_mins());
        if minutes < 1 {
            return;
        }
        let scope = self.scope();
        let starts = self.chance.u8(..3) == 0;
        self.add(at, EventKind::Pause { scope: scope.clone(), starts, minutes });
        let end = at + SignedDuration::from_mins(minutes);
        if self.chance.u8(..4) == 0 {
            let again = self.instant(at, end);
            let minutes = self.chance.i64(1..=minutes);
            let minutes = minutes.min(until.duration_since(again).as_mins());
            let starts = self.chance.bool();
            self.add(again, EventKind::Pause { scope: scope.clone(), starts, minutes });
        }
        if self.chance.u8(..3) == 0 {
            let ended = self.instant(at, end);
            self.add(ended, EventKind::Resume { scope });
        }
        if self.chance.bool() {
            let meanwhile = self.instant(at, end);
            let what = if self.chance.u8(..3) == 0 {
                self.override_or_command()
            } else {
                let place = self.chance.usize(..self.fleet.members.len());
                let member = self.fleet.members[place].clone();
                let act = member.act(&mut self.chance);
                EventKind::Person { resource: member.reference, act }
            };
            self.add(meanwhile, what);
        }
    }

    fn scope(&mut self) -> PauseScope {
        match self.chance.u8(..5) {
            0..=1 => PauseScope::Everything,
            2 => {
                let name = ["do-main", "hz-eu", "lab"][self.chance.usize(..3)];
                PauseScope::Account(name.parse().expect("an account's name"))
            }
            3 => PauseScope::Schedule(self.schedule()),
            _ => PauseScope::Tag(TAGS[self.chance.usize(..5)].parse().expect("a pattern")),
        }
    }
}
