//! Pacing: how many requests stop and start may send per account. That is the provider's hourly
//! limit, and its per-minute limit if it has one, less what other users of the token consume and
//! what observing needs.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{
    ResourceKind,
    provider::Facts,
    record::{Direction, INVENTORY_INTERVAL, SKEW, Writer},
    stop_method::StopMethod,
};

/// How long a provider with a per-minute limit counts a request. One second more than documented,
/// because a request arrives later than it was sent.
const MINUTE: SignedDuration = SignedDuration::from_secs(61);

/// The shortest interval from which the usage of others is estimated. Over a shorter one, a single
/// burst of theirs would look like a habit.
const SHORTEST: SignedDuration = SignedDuration::from_secs(30);

/// The age beyond which a recorded rate is ignored. Every inventory records the rate, and so does
/// each tick with requests in between. The tick before an inventory, and a late one, still pace by
/// the last rate.
pub const RATE_AGE: SignedDuration =
    SignedDuration::from_secs(INVENTORY_INTERVAL.as_secs() + SKEW.as_secs() + 60);

/// Returns the part of the hourly limit that is never planned for: what others use is only known
/// afterward.
#[must_use]
pub fn kept_back(per_hour: u64) -> u64 {
    per_hour / 20
}

/// The number of requests that it takes to list each kind.
pub type ListRequests = BTreeMap<ResourceKind, u32>;

/// A provider's rate limit, as its headers last reported it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimit {
    /// Requests left.
    pub remaining: u64,
    /// When the headers reported it.
    pub at: Timestamp,
    /// Requests allowed per hour; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// The usage of the token's other users, as last measured.
    #[serde(default, rename = "measured", skip_serializing_if = "Option::is_none")]
    pub others: Option<Others>,
}

/// The measured usage of a token's other users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Others {
    /// Requests per minute.
    pub a_minute: u64,
    /// When it was measured.
    pub at: Timestamp,
}

impl RateLimit {
    /// Returns what others used between this rate and a later one, given how many of the requests
    /// were our own. `None` if too little time has passed, or too much.
    #[must_use]
    pub fn others_until(&self, remaining: u64, now: Timestamp, ours: u64) -> Option<Others> {
        let passed = now.duration_since(self.at);
        if passed < SHORTEST || passed > RATE_AGE {
            return None;
        }
        let used = self.remaining.saturating_sub(remaining);
        let theirs = used.saturating_sub(ours).saturating_mul(60);
        Some(Others { a_minute: theirs.div_ceil(passed.as_secs().unsigned_abs()), at: now })
    }
}

/// What one invocation sends of an account's requests, all of them or a part. It is stored before
/// the first of them is sent, and corrected once they are known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// The invocation.
    pub by: Writer,
    /// Whether the invocation is poll-status, which observes.
    #[serde(default, skip_serializing_if = "is_false")]
    pub observes: bool,
    /// When the first request was sent.
    pub began: Timestamp,
    /// When the last one was answered, or will have been.
    pub ended: Timestamp,
    /// The number of requests.
    pub requests: u64,
}

impl Spent {
    /// Returns how many of these were sent after an instant, assuming that they were spread evenly.
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
        u64::try_from(share + 1).unwrap_or(u64::MAX).min(self.requests)
    }

    /// Returns how many of these the provider may still count against its per-minute limit: any of
    /// them may have been the last one.
    #[must_use]
    pub fn counted(&self, now: Timestamp) -> u64 {
        if now < self.uncounted_at() { self.requests } else { 0 }
    }

    /// Returns from when on the provider counts none of them.
    #[must_use]
    pub fn uncounted_at(&self) -> Timestamp {
        self.ended + MINUTE
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// How many requests a provider still counts against its per-minute limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// Those of stop and start.
    pub acting: u64,
    /// Those of poll-status.
    pub observing: u64,
}

impl Counted {
    /// Counts what invocations have sent or are about to send.
    #[must_use]
    pub fn of(spent: &[Spent], now: Timestamp) -> Self {
        let of = |observes| {
            let spent = spent.iter().filter(|spent| spent.observes == observes);
            spent.map(|spent| spent.counted(now)).sum()
        };
        Self { acting: of(false), observing: of(true) }
    }
}

/// What an account's provider allows, and how much of that is for others and for observing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// Requests allowed per hour.
    pub per_hour: u64,
    /// Requests allowed per minute; `None` if the provider has no such limit.
    pub per_minute: Option<u64>,
    /// Requests left in the hour; `None` if unknown.
    pub remaining: Option<u64>,
    /// Requests per minute that others use.
    pub others: u64,
    /// Requests that the lists of an inventory take. They are counted nowhere else.
    pub inventory: u64,
    /// Requests per minute that stop and start leave to poll-status besides an inventory: one
    /// observation.
    pub observing: u64,
}

impl Allowance {
    /// Returns the allowance of an account, from what is known about it and its provider.
    #[must_use]
    pub fn of(
        facts: &Facts,
        rate: Option<RateLimit>,
        lists: Option<&ListRequests>,
        now: Timestamp,
    ) -> Self {
        let rate = rate.filter(|rate| now.duration_since(rate.at) <= RATE_AGE);
        let per_hour = rate.and_then(|rate| rate.limit);
        let per_hour = per_hour.unwrap_or(facts.requests_per_hour);
        let remaining = rate.map(|rate| rate.remaining);
        // For lack of better knowledge, the hour's usage counts as spread evenly.
        let in_the_hour = remaining.map(|left| per_hour.saturating_sub(left).div_ceil(60));
        let measured = rate.and_then(|rate| rate.others);
        let lately = measured.filter(|others| now.duration_since(others.at) <= RATE_AGE);
        let others = match (facts.requests_per_minute, lately) {
            (Some(_), Some(others)) => others.a_minute,
            // A burst is over by now. If it still counted, we would send nothing, and never measure
            // again.
            (Some(_), None) => {
                let measured = measured.map(|others| others.a_minute);
                let least = [in_the_hour, measured].into_iter().flatten().min();
                least.unwrap_or_default()
            }
            // The level of a token bucket already reflects what others use.
            (None, _) => 0,
        };
        let lists = lists.map(|lists| lists.values().map(|&requests| u64::from(requests)));
        let (all, largest) = lists.map_or((0, 0), |lists| {
            lists.fold((0, 0), |(all, largest), list| (all + list, list.max(largest)))
        });
        Self {
            per_hour,
            per_minute: facts.requests_per_minute,
            remaining,
            others,
            inventory: all,
            observing: largest,
        }
    }

    /// Returns how many requests stop and start may still send under the per-minute limit, given
    /// what is counted already. One percent is left unused, because requests do not arrive at the
    /// instant they are sent.
    #[must_use]
    pub fn left_to_act(&self, counted: Counted) -> u64 {
        let following = self.observing.max(counted.observing);
        self.left(counted.acting + self.inventory + following)
    }

    /// Returns how many requests poll-status may still send under the per-minute limit to follow
    /// what is in flight: all that is left, apart from an inventory.
    #[must_use]
    pub fn left_to_follow(&self, counted: Counted) -> u64 {
        self.left(counted.acting + counted.observing + self.inventory)
    }

    fn left(&self, taken: u64) -> u64 {
        let left = |most: u64| most.saturating_sub(most / 100 + self.others + taken);
        self.per_minute.map_or(u64::MAX, left)
    }

    /// Returns the most requests that poll-status sends per minute to follow what is in flight: as
    /// many as the hourly limit regains in that time.
    #[must_use]
    pub fn to_follow(&self) -> u64 {
        self.per_hour / 60
    }

    /// Returns how many requests stop and start may send now under the hourly limit.
    #[must_use]
    pub fn in_the_hour(&self) -> u64 {
        self.remaining.map_or(u64::MAX, |remaining| {
            let kept = kept_back(self.per_hour).max(self.inventories());
            remaining.saturating_sub(kept + self.others + self.inventory + self.observing)
        })
    }

    /// Returns how many requests poll-status may send now under the hourly limit to follow what is
    /// in flight: all that others and inventories leave.
    #[must_use]
    pub fn in_the_hour_to_follow(&self) -> u64 {
        self.remaining.map_or(u64::MAX, |remaining| {
            remaining.saturating_sub(self.others + self.inventories())
        })
    }

    /// Returns how many requests inventories take until the hourly limit recovers. A token bucket
    /// recovers at once; a limit that slides may not for an hour.
    fn inventories(&self) -> u64 {
        if self.per_minute.is_some() { hourly(self.inventory) } else { self.inventory }
    }

    /// Returns how many requests may be planned for one tick.
    #[must_use]
    pub fn at_a_tick(&self) -> u64 {
        self.left_to_act(Counted::default()).min(self.in_the_hour())
    }
}

/// Returns how many requests it takes to observe resources of these kinds and to change each of
/// them.
#[must_use]
pub fn requests_to_act(
    kinds: impl IntoIterator<Item = ResourceKind>,
    lists: Option<&ListRequests>,
) -> u64 {
    let mut of_kind = BTreeMap::<_, u64>::new();
    for kind in kinds {
        *of_kind.entry(kind).or_default() += 1;
    }
    let of_kind = of_kind.into_iter();
    of_kind
        .map(|(kind, count)| requests_to_observe(kind, count, lists) + count * requests_each(kind))
        .sum()
}

/// Returns about how many requests it takes to stop resources by these methods, or to start them
/// again, until all are seen to be done. What poll-status lists meanwhile is left out: one list shows
/// all of them.
#[must_use]
pub fn requests_to_finish(
    direction: Direction,
    resources: &[(ResourceKind, StopMethod)],
    lists: Option<&ListRequests>,
) -> u64 {
    let (hibernated, others): (Vec<_>, Vec<_>) =
        resources.iter().partition(|(_, method)| *method == StopMethod::Hibernate);
    // The power and the plan are changed one after the other.
    let again = others.iter().filter(|(_, method)| method.changes_plan());
    let steps = others.iter().chain(again).map(|(kind, _)| *kind);
    let machines = u64::try_from(hibernated.len()).unwrap_or(u64::MAX);
    requests_to_act(steps, lists) + SightRequests::to_finish(direction, machines)
}

/// Returns how many requests an hourly limit leaves for stops and starts in a time, after what is
/// kept back and what the inventories take.
#[must_use]
pub fn carried(per_hour: u64, lists: Option<&ListRequests>, time: SignedDuration) -> u64 {
    let lists = lists.into_iter().flat_map(BTreeMap::values);
    let inventory = lists.map(|&requests| u64::from(requests)).sum();
    let left = per_hour.saturating_sub(kept_back(per_hour) + hourly(inventory));
    left.saturating_mul(time.as_mins().unsigned_abs()) / 60
}

/// Returns how many requests the inventories of an hour take, given those of one.
fn hourly(inventory: u64) -> u64 {
    inventory * SignedDuration::from_hours(1).as_secs().unsigned_abs()
        / INVENTORY_INTERVAL.as_secs().unsigned_abs()
}

/// Returns how many requests it takes to observe and change one resource of a kind, apart from
/// lists. For a machine, the list shows enough; a sized resource is read individually.
#[must_use]
pub fn requests_each(kind: ResourceKind) -> u64 {
    if kind.is_sized() { 2 } else { 1 }
}

/// The most requests that it takes to see hibernated machines. The numbers are for `DigitalOcean`,
/// where each kind of attached resource has its own list, with a few projects. Before a stop, each
/// database takes one more.
#[derive(Debug, Clone, Copy)]
pub struct SightRequests {
    /// Requests for the attached resources of all machines that are seen at a time.
    pub around: u64,
    /// Requests for each machine.
    pub each: u64,
}

impl SightRequests {
    /// How many machines are seen at a time. What is around them is read anew for the next ones.
    pub const AT_A_TIME: u64 = 8;

    /// The requests for following a transition in flight.
    pub const FOLLOWING: Self = Self { around: 8, each: 6 };

    /// Returns the requests for acting. Before a deletion, whatever could keep a machine from being
    /// recreated is read as well, and before an address is assigned, who has it. Where a look shows that the machine was just switched off, that is
    /// read with the machine once more.
    #[must_use]
    pub const fn acting(direction: Direction) -> Self {
        match direction {
            Direction::Start => Self { around: 10, each: 8 },
            Direction::Stop => Self { around: 16, each: 13 },
        }
    }

    /// Returns about how many requests it takes to hibernate or recreate this many machines. After
    /// the first minutes, each is looked at once a minute.
    fn to_finish(direction: Direction, machines: u64) -> u64 {
        let (steps, minutes) = match direction {
            // The power, the snapshot, the deletion of the machine, that of an older snapshot.
            Direction::Stop => (4, 30),
            // The creation, what is reattached, the power.
            Direction::Start => (3, 20),
        };
        let step = Self::acting(direction).for_machines(machines) + machines;
        steps * step + minutes * Self::FOLLOWING.for_machines(machines)
    }

    /// Returns how many requests it takes to see this many machines.
    #[must_use]
    pub fn for_machines(self, machines: u64) -> u64 {
        machines.div_ceil(Self::AT_A_TIME) * self.around + machines * self.each
    }

    /// Returns how many machines can be seen with this many requests.
    #[must_use]
    pub fn machines_in(self, room: u64) -> u64 {
        let whole = self.for_machines(Self::AT_A_TIME);
        let rest = (room % whole).saturating_sub(self.around) / self.each;
        room / whole * Self::AT_A_TIME + rest
    }
}

/// Returns how many requests it takes to observe this many machines of a kind: by a list, where
/// that takes fewer.
fn requests_to_observe(kind: ResourceKind, count: u64, lists: Option<&ListRequests>) -> u64 {
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

    fn rate(remaining: u64) -> RateLimit {
        RateLimit { remaining, at: at(0), limit: None, others: None }
    }

    fn measured(a_minute: u64, seconds: i64) -> Others {
        Others { a_minute, at: at(seconds) }
    }

    fn spent(began: i64, ended: i64, requests: u64) -> Spent {
        let by = Writer("us".to_owned());
        Spent { by, observes: false, began: at(began), ended: at(ended), requests }
    }

    #[test]
    fn what_was_spent_counts_until_a_minute_after_its_end() {
        let spent = spent(0, 10, 100);
        let counted = [0, 10, 70, 71].map(|now| spent.counted(at(now)));
        assert_eq!(counted, [100, 100, 100, 0]);
        let since = [-1, 0, 5, 9, 10].map(|instant| spent.since(at(instant)));
        assert_eq!(since, [100, 100, 51, 11, 0]);
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
        // A third of the hourly limit, spread evenly.
        let shared = Allowance::of(facts, Some(rate(5000 - 1667)), Some(&lists), at(60));
        assert_eq!(shared.at_a_tick(), 250 - 2 - 8 - 28);
        let measured = RateLimit { others: Some(measured(83, 0)), ..rate(5000) };
        let shared = Allowance::of(facts, Some(measured), Some(&lists), at(60));
        assert_eq!(shared.at_a_tick(), 250 - 2 - 8 - 83);
    }

    #[test]
    fn whoever_acts_or_follows_leaves_what_the_other_has_sent_and_acting_the_part_of_following() {
        let facts = Provider::DigitalOcean.facts();
        let lists = ListRequests::from([(ResourceKind::Droplet, 3), (ResourceKind::Database, 1)]);
        let allowance = Allowance::of(facts, None, Some(&lists), at(0));
        let left = |acting, observing| {
            let counted = Counted { acting, observing };
            [allowance.left_to_act(counted), allowance.left_to_follow(counted)]
        };
        assert_eq!(left(0, 0), [250 - 2 - 4 - 3, 250 - 2 - 4]);
        // What has been sent to follow leaves room for an inventory all the same.
        assert_eq!(left(0, 7), [250 - 2 - 4 - 7, 250 - 2 - 4 - 7]);
        assert_eq!(left(100, 50), [250 - 2 - 4 - 150, 250 - 2 - 4 - 150]);
        // Following has its part, whatever acting takes, and an inventory has its own.
        assert_eq!(left(250 - 2 - 7, 0), [0, 3]);
        assert_eq!(left(250 - 2 - 7, 3), [0, 0]);
        let spent = [spent(0, 10, 100), Spent { observes: true, ..spent(50, 60, 7) }];
        let counted = [0, 71].map(|now| Counted::of(&spent, at(now)));
        let [first, later] = counted.map(|counted| [counted.acting, counted.observing]);
        assert_eq!([first, later], [[100, 7], [0, 7]]);
    }

    #[test]
    fn a_burst_of_others_is_not_held_against_us_for_long() {
        let facts = Provider::DigitalOcean.facts();
        let others = |a_minute, remaining, seconds| {
            let rate = RateLimit {
                others: Some(measured(a_minute, 0)),
                at: at(seconds),
                ..rate(remaining)
            };
            Allowance::of(facts, Some(rate), None, at(seconds)).others
        };
        let age = RATE_AGE.as_secs();
        assert_eq!([0, age].map(|seconds| others(364, 4400, seconds)), [364; 2]);
        // At most the hour's average, and at most what was measured.
        assert_eq!(others(364, 4400, age + 1), 10);
        assert_eq!(others(3, 4400, age + 1), 3);
    }

    #[test]
    fn what_is_around_machines_is_seen_once_for_those_that_are_seen_at_a_time() {
        let sight = SightRequests { around: 8, each: 6 };
        let requests = [0, 1, 3, 8, 9].map(|machines| sight.for_machines(machines));
        assert_eq!(requests, [0, 14, 26, 56, 70]);
        let machines = [0, 13, 14, 25, 26, 56, 69, 70].map(|room| sight.machines_in(room));
        assert_eq!(machines, [0, 0, 1, 2, 3, 8, 8, 9]);
    }

    #[test]
    fn each_machine_that_is_hibernated_takes_many_requests_and_others_few() {
        let hibernated = |machines| vec![(ResourceKind::Droplet, StopMethod::Hibernate); machines];
        let night = |machines| {
            [Direction::Stop, Direction::Start]
                .map(|direction| requests_to_finish(direction, &hibernated(machines), None))
        };
        assert_eq!(night(0), [0, 0]);
        assert_eq!(night(1), [540, 337]);
        // What is around them is seen once for eight of them.
        assert_eq!(night(60), [16_592, 10_340]);
        let lists = ListRequests::from([(ResourceKind::Droplet, 3)]);
        let others = [StopMethod::PowerOff, StopMethod::Resize];
        let others: Vec<_> = others.map(|method| (ResourceKind::Droplet, method)).into();
        let requests = requests_to_finish(Direction::Stop, &others, Some(&lists));
        assert_eq!(requests, 3 + 3);
    }

    #[test]
    fn an_hour_carries_what_inventories_and_others_leave_of_its_limit() {
        let lists = ListRequests::from([(ResourceKind::Droplet, 3), (ResourceKind::NodePool, 2)]);
        let carried = |minutes| {
            let time = SignedDuration::from_mins(minutes);
            super::carried(5000, Some(&lists), time)
        };
        assert_eq!([0, 30, 60].map(carried), [0, 2345, 4690]);
        assert_eq!(super::carried(40, Some(&lists), SignedDuration::from_hours(9)), 0);
    }

    #[test]
    fn what_is_in_flight_is_followed_until_only_the_inventories_are_left() {
        let lists = ListRequests::from([(ResourceKind::Droplet, 3), (ResourceKind::NodePool, 2)]);
        let allowance = |provider: Provider, remaining| {
            let rate = RateLimit { others: Some(measured(0, 0)), ..rate(remaining) };
            Allowance::of(provider.facts(), Some(rate), Some(&lists), at(60))
        };
        let left = |provider| {
            let of = |remaining| allowance(provider, remaining).in_the_hour_to_follow();
            [5, 6, 60, 61].map(of)
        };
        // Those of an hour, where the limit may not recover before.
        assert_eq!(left(Provider::DigitalOcean), [0, 0, 0, 1]);
        assert_eq!(left(Provider::Hetzner), [0, 1, 55, 56]);
        // Stops and starts leave that much in any case.
        let small = |per_hour| {
            let allowance = allowance(Provider::DigitalOcean, 200);
            Allowance { per_hour, ..allowance }.in_the_hour()
        };
        assert_eq!([0, 1200, 2400].map(small), [132, 132, 72]);
        let unknown = Allowance::of(Provider::DigitalOcean.facts(), None, Some(&lists), at(60));
        assert_eq!(unknown.in_the_hour_to_follow(), u64::MAX);
    }

    #[test]
    fn a_twentieth_of_the_hour_is_kept_back() {
        let facts = Provider::Hetzner.facts();
        let at_a_tick = |rate| Allowance::of(facts, rate, None, at(60)).at_a_tick();
        assert_eq!(at_a_tick(None), u64::MAX);
        assert_eq!(at_a_tick(Some(rate(3600))), 3420);
        assert_eq!(at_a_tick(Some(rate(180))), 0);
        let smaller = RateLimit { limit: Some(200), ..rate(110) };
        assert_eq!(at_a_tick(Some(smaller)), 100);
        let old = Allowance::of(facts, Some(rate(0)), None, at(600));
        assert_eq!(old.at_a_tick(), u64::MAX);
    }
}
