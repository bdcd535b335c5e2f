//! How many requests stop and start may send to an account: as many as its provider allows in an
//! hour, and in a minute where it says so, less what others take and what observing needs.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{
    ResourceKind,
    provider::Facts,
    record::{Direction, INVENTORY_INTERVAL, SKEW},
};

/// For how long a provider that has a limit for a minute counts a request. A second more than it
/// says: a request arrives later than it was sent.
const MINUTE: SignedDuration = SignedDuration::from_secs(61);

/// From what is shorter, nothing is concluded about others: a single burst of theirs would look like
/// a habit.
const SHORTEST: SignedDuration = SignedDuration::from_secs(30);

/// The rate is noted by every inventory, and by all requests in between; older than this, it says
/// nothing. The tick before an inventory, and one that is late, still pace by the last one.
pub const RATE_AGE: SignedDuration =
    SignedDuration::from_secs(INVENTORY_INTERVAL.as_secs() + SKEW.as_secs() + 60);

/// How much of an hour's limit is never planned for: what others do is only known once it is done.
#[must_use]
pub fn kept_back(per_hour: u64) -> u64 {
    per_hour / 20
}

/// How many requests the list of each kind takes.
pub type ListRequests = BTreeMap<ResourceKind, u32>;

/// A provider's rate limit as its headers last showed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// Requests left.
    pub remaining: u64,
    /// When that was said.
    pub at: Timestamp,
    /// How many are allowed in an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// What other users of the token took, when that was last measured.
    #[serde(default, rename = "measured", skip_serializing_if = "Option::is_none")]
    pub others: Option<Others>,
}

/// What other users of a token take, as it was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Others {
    /// How many requests a minute.
    pub a_minute: u64,
    /// When that was measured.
    pub at: Timestamp,
}

impl Rate {
    /// What others took between this and a later rate, of which so many were our own; none where
    /// that was too short, or long ago.
    #[must_use]
    pub fn others_until(&self, remaining: u64, now: Timestamp, ours: u64) -> Option<Others> {
        let passed = now.duration_since(self.at);
        if passed < SHORTEST || passed > RATE_AGE {
            return None;
        }
        let used = self.remaining.saturating_sub(remaining);
        let theirs = used.saturating_sub(ours).saturating_mul(60);
        Some(Others {
            a_minute: theirs.div_ceil(passed.as_secs().unsigned_abs()),
            at: now,
        })
    }
}

/// What stop or start last spent of an account's allowance, without a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// When the first request left.
    pub began: Timestamp,
    /// When the last one was answered.
    pub ended: Timestamp,
    /// How many there were.
    pub requests: u64,
}

impl Spent {
    /// How many of these were sent after an instant, taken to be spread evenly.
    #[must_use]
    pub fn since(&self, instant: Timestamp) -> u64 {
        if instant < self.began {
            return self.requests;
        }
        let (whole, left) = (
            self.ended.duration_since(self.began).as_millis(),
            self.ended.duration_since(instant).as_millis(),
        );
        if left <= 0 {
            return 0;
        }
        let share = i128::from(self.requests) * left / whole.max(1);
        u64::try_from(share + 1)
            .unwrap_or(u64::MAX)
            .min(self.requests)
    }

    /// How many the provider still counts in its minute.
    #[must_use]
    pub fn counted(&self, now: Timestamp) -> u64 {
        self.since(now - MINUTE)
    }

    /// When it counts fewer of them; none if it counts none.
    #[must_use]
    pub fn counts_fewer_at(&self, now: Timestamp) -> Option<Timestamp> {
        let next = (self.began + MINUTE).max(now + SignedDuration::from_secs(1));
        (self.counted(now) > 0).then_some(next)
    }

    /// With what was spent before and is still counted.
    #[must_use]
    pub fn after(self, before: Option<Self>) -> Self {
        let Some(before) = before.filter(|before| before.counted(self.ended) > 0) else {
            return self;
        };
        Self {
            began: before.began.max(self.ended - MINUTE).min(self.began),
            ended: self.ended.max(before.ended),
            requests: self.requests + before.counted(self.ended),
        }
    }
}

/// What an account's provider allows, and what of it is for others and for observing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// How many requests it allows in an hour.
    pub per_hour: u64,
    /// How many it allows in a minute, if it counts those.
    pub per_minute: Option<u64>,
    /// How many of the hour's are left; none if that is unknown.
    pub remaining: Option<u64>,
    /// How many others take in a minute.
    pub others: u64,
    /// How many an inventory and one look take.
    pub observing: u64,
}

impl Allowance {
    /// What is known of an account at a provider.
    #[must_use]
    pub fn of(
        facts: &Facts,
        rate: Option<Rate>,
        lists: Option<&ListRequests>,
        now: Timestamp,
    ) -> Self {
        let rate = rate.filter(|rate| now.duration_since(rate.at) <= RATE_AGE);
        let per_hour = rate.and_then(|rate| rate.limit);
        let per_hour = per_hour.unwrap_or(facts.requests_per_hour);
        let remaining = rate.map(|rate| rate.remaining);
        // What is forgotten after an hour was taken evenly, for all that is known.
        let in_the_hour = remaining.map(|left| per_hour.saturating_sub(left).div_ceil(60));
        let measured = rate.and_then(|rate| rate.others);
        let lately = measured.filter(|others| now.duration_since(others.at) <= RATE_AGE);
        let others = match (facts.requests_per_minute, lately) {
            (Some(_), Some(others)) => others.a_minute,
            // A burst is over by now. Were it still counted, we would send nothing, and never measure
            // anew.
            (Some(_), None) => {
                let measured = measured.map(|others| others.a_minute);
                let least = [in_the_hour, measured].into_iter().flatten().min();
                least.unwrap_or_default()
            }
            // A bucket's level shows what others take.
            (None, _) => 0,
        };
        let lists = lists.map(|lists| lists.values().map(|&requests| u64::from(requests)));
        let (all, largest) = lists.map_or((0, 0), |lists| {
            lists.fold((0, 0), |(all, largest), list| {
                (all + list, list.max(largest))
            })
        });
        Self {
            per_hour,
            per_minute: facts.requests_per_minute,
            remaining,
            others,
            observing: all + largest,
        }
    }

    /// How many requests may be sent within one minute, by the limit for a minute. A hundredth is
    /// left over, for what is sent at one instant arrives at another.
    #[must_use]
    pub fn in_a_minute(&self) -> u64 {
        self.per_minute.map_or(u64::MAX, |most| {
            most.saturating_sub(most / 100 + self.others + self.observing)
        })
    }

    /// How many may be sent now, by the limit for an hour.
    #[must_use]
    pub fn in_the_hour(&self) -> u64 {
        self.remaining.map_or(u64::MAX, |remaining| {
            let kept = kept_back(self.per_hour) + self.others + self.observing;
            remaining.saturating_sub(kept)
        })
    }

    /// How many may be planned for at a tick.
    #[must_use]
    pub fn at_a_tick(&self) -> u64 {
        self.in_a_minute().min(self.in_the_hour())
    }
}

/// How many requests it takes to look at resources of these kinds, and to change each of them.
#[must_use]
pub fn acting(kinds: impl IntoIterator<Item = ResourceKind>, lists: Option<&ListRequests>) -> u64 {
    let mut of_kind = BTreeMap::<_, u64>::new();
    for kind in kinds {
        *of_kind.entry(kind).or_default() += 1;
    }
    let of_kind = of_kind.into_iter();
    of_kind
        .map(|(kind, count)| looking(kind, count, lists) + count * requests_each(kind))
        .sum()
}

/// How many requests it takes to look at one of a kind and to change it, apart from lists: of a
/// machine a list shows enough, what has a size is read by itself.
#[must_use]
pub fn requests_each(kind: ResourceKind) -> u64 {
    if kind.is_sized() { 2 } else { 1 }
}

/// How many requests it takes at most to see machines that are hibernated: at `DigitalOcean`, where
/// each kind of thing around them is a list of its own, with a few projects and databases.
#[derive(Debug, Clone, Copy)]
pub struct SightRequests {
    /// To see what is around all of them.
    pub around: u64,
    /// To see each of them.
    pub each: u64,
}

impl SightRequests {
    /// Those of following what is under way.
    pub const FOLLOWING: Self = Self { around: 8, each: 6 };

    /// Those of acting. Before a deletion, what could keep a machine from being made again is read
    /// as well, and then all of it again.
    #[must_use]
    pub const fn acting(direction: Direction) -> Self {
        match direction {
            Direction::Start => Self {
                around: 10,
                each: 7,
            },
            Direction::Stop => Self {
                around: 32,
                each: 14,
            },
        }
    }

    /// How many it takes to see so many machines.
    #[must_use]
    pub fn for_machines(self, machines: u64) -> u64 {
        match machines {
            0 => 0,
            machines => self.around + machines * self.each,
        }
    }

    /// How many machines can be seen with so many.
    #[must_use]
    pub fn machines_in(self, room: u64) -> u64 {
        room.saturating_sub(self.around) / self.each
    }
}

/// How many requests it takes to look at so many machines of a kind: a list where that takes fewer.
fn looking(kind: ResourceKind, count: u64, lists: Option<&ListRequests>) -> u64 {
    if kind.is_sized() {
        return 0;
    }
    let list = lists.and_then(|lists| lists.get(&kind)).copied();
    count.min(u64::from(list.unwrap_or(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::Provider;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_763_920_800 + seconds).unwrap()
    }

    fn rate(remaining: u64) -> Rate {
        Rate {
            remaining,
            at: at(0),
            limit: None,
            others: None,
        }
    }

    fn measured(a_minute: u64, seconds: i64) -> Others {
        Others {
            a_minute,
            at: at(seconds),
        }
    }

    fn spent(began: i64, ended: i64, requests: u64) -> Spent {
        Spent {
            began: at(began),
            ended: at(ended),
            requests,
        }
    }

    #[test]
    fn what_was_spent_is_forgotten_as_it_was_sent() {
        let spent = spent(0, 10, 100);
        let counted = [0, 61, 66, 70, 71].map(|now| spent.counted(at(now)));
        assert_eq!(counted, [100, 100, 51, 11, 0]);
        // All at one instant.
        let counted = [60, 61].map(|now| self::spent(0, 0, 100).counted(at(now)));
        assert_eq!(counted, [100, 0]);
    }

    #[test]
    fn what_was_spent_begins_to_be_forgotten_a_minute_after_its_beginning() {
        let spent = spent(0, 10, 100);
        let next = [0, 59, 60, 64, 70].map(|now| spent.counts_fewer_at(at(now)));
        let expected = [61, 61, 61, 65, 71].map(|seconds| Some(at(seconds)));
        assert_eq!(next, expected);
        assert_eq!(spent.counts_fewer_at(at(71)), None);
    }

    #[test]
    fn what_follows_within_a_minute_is_spent_together() {
        let (first, next) = (spent(0, 0, 100), spent(20, 30, 25));
        assert_eq!(next.after(Some(first)), spent(0, 30, 125));
        assert_eq!(next.after(None), next);
        let later = spent(80, 90, 25);
        assert_eq!(later.after(Some(first)), later);
    }

    #[test]
    fn others_are_measured_where_enough_time_has_passed() {
        let before = rate(5000);
        let others = |remaining, seconds, ours| {
            let others = before.others_until(remaining, at(seconds), ours)?;
            assert_eq!(others.at, at(seconds));
            Some(others.a_minute)
        };
        assert_eq!(others(4800, 120, 34), Some(83));
        assert_eq!(others(5000, 120, 3), Some(0));
        assert_eq!(others(4990, 29, 0), None);
        assert_eq!(others(4000, 600, 0), None);
    }

    #[test]
    fn a_minute_has_room_for_others_and_for_observing() {
        let facts = Provider::DigitalOcean.facts();
        let lists = ListRequests::from([
            (ResourceKind::Droplet, 3),
            (ResourceKind::Database, 1),
            (ResourceKind::NodePool, 1),
        ]);
        let alone = Allowance::of(facts, None, Some(&lists), at(0));
        assert_eq!(alone.at_a_tick(), 250 - 2 - 8);
        // A third of the hour's, evenly.
        let shared = Allowance::of(facts, Some(rate(5000 - 1667)), Some(&lists), at(60));
        assert_eq!(shared.at_a_tick(), 250 - 2 - 8 - 28);
        let measured = Rate {
            others: Some(measured(83, 0)),
            ..rate(5000)
        };
        let shared = Allowance::of(facts, Some(measured), Some(&lists), at(60));
        assert_eq!(shared.at_a_tick(), 250 - 2 - 8 - 83);
    }

    #[test]
    fn a_burst_of_others_is_not_held_against_us_for_long() {
        let facts = Provider::DigitalOcean.facts();
        let others = |a_minute, remaining, seconds| {
            let rate = Rate {
                others: Some(measured(a_minute, 0)),
                at: at(seconds),
                ..rate(remaining)
            };
            Allowance::of(facts, Some(rate), None, at(seconds)).others
        };
        let age = RATE_AGE.as_secs();
        assert_eq!([0, age].map(|seconds| others(364, 4400, seconds)), [364; 2]);
        // No more than evenly over the hour, and no more than was measured.
        assert_eq!(others(364, 4400, age + 1), 10);
        assert_eq!(others(3, 4400, age + 1), 3);
    }

    #[test]
    fn what_is_around_machines_is_seen_once_for_all_of_them() {
        let sight = SightRequests { around: 8, each: 6 };
        let requests = [0, 1, 3].map(|machines| sight.for_machines(machines));
        assert_eq!(requests, [0, 14, 26]);
        let machines = [0, 13, 14, 25, 26].map(|room| sight.machines_in(room));
        assert_eq!(machines, [0, 0, 1, 2, 3]);
    }

    #[test]
    fn a_twentieth_of_the_hour_is_kept_back() {
        let facts = Provider::Hetzner.facts();
        let at_a_tick = |rate| Allowance::of(facts, rate, None, at(60)).at_a_tick();
        assert_eq!(at_a_tick(None), u64::MAX);
        assert_eq!(at_a_tick(Some(rate(3600))), 3420);
        assert_eq!(at_a_tick(Some(rate(180))), 0);
        let smaller = Rate {
            limit: Some(200),
            ..rate(110)
        };
        assert_eq!(at_a_tick(Some(smaller)), 100);
        let old = Allowance::of(facts, Some(rate(0)), None, at(600));
        assert_eq!(old.at_a_tick(), u64::MAX);
    }
}
