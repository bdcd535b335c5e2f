//! The pace at which stop or start sends what it was handed.
//!
//! If a provider counts requests per minute, that many may leave at once, and more only as requests
//! of other invocations drop out of the count.

use std::collections::BTreeMap;

use domain::{
    AccountName, ResourceRef,
    configuration::Configuration,
    membership::{Membership, Subject},
    pacing::{
        Allowance, Counted, Others, RateLimit, SightRequests, requests_each, requests_to_act,
    },
    record::{Direction, Record},
};
use jiff::Timestamp;
use provider::Client;
use store::AccountState;
use transition::methods::{Basis, NextStep, Reads};

use crate::{Context, account, budget::Budget, ledger::Ledger};

/// The requests for the lists of plans, which are read once for all that need them.
const PLANS: u64 = 3;

/// How many of the remaining records may be acted on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// This many of them, now.
    For(usize),
    /// None before this instant.
    From(Timestamp),
    /// None in this invocation.
    None,
}

/// How one invocation spends an account's rate limit.
pub(super) struct Pace<'a> {
    context: Context<'a>,
    ledger: Ledger,
    direction: Direction,
    /// What may be read of each record besides its own state.
    reads: BTreeMap<ResourceRef, Reads>,
    /// What others take, as measured in this invocation.
    others: Option<Others>,
}

impl<'a> Pace<'a> {
    pub(super) async fn begin(
        context: Context<'a>,
        account: &AccountName,
        configuration: &Configuration,
        direction: Direction,
        records: &[Record],
    ) -> Self {
        let mut ledger = Ledger::unread(account, configuration, false);
        let reads = records.iter().map(|record| {
            let reads = may_read(record, direction, configuration);
            (record.reference.clone(), reads)
        });
        let reads: BTreeMap<_, _> = reads.collect();
        // Where no minute is counted, one alone needs no list and exceeds no limit, unless much has
        // to be read about it.
        let much = reads.values().any(|reads| reads.may_sight());
        if ledger.counts_minutes() || records.len() > 1 || much {
            ledger.read(context).await;
        }
        Self { context, ledger, direction, reads, others: None }
    }

    /// Puts what is in flight first, beginning with what needs no room. What has failed before does
    /// not hold up the rest.
    pub(super) fn sort(&self, records: &mut [Record]) {
        records.sort_by_key(|record| {
            let waits = record.in_flight().is_none();
            (waits, !waits && self.cost().may_sight(record), record.attempts)
        });
    }

    /// Returns what is known of the account.
    pub(super) fn state(&self) -> &AccountState {
        self.ledger.state()
    }

    /// Measures what others take of the rate limit, once there is an answer.
    pub(super) fn measure(&mut self, client: &Client, requests: u64, now: Timestamp) {
        if self.others.is_some() || requests == 0 {
            return;
        }
        if let Some(latest) = client.rate() {
            self.others = self.state().others(latest.remaining, now, requests);
        }
    }

    /// Returns how many of these there is room for, once this invocation has sent `requests`
    /// requests.
    pub(super) fn room(
        &self,
        left: &[Record],
        client: &Client,
        requests: u64,
        now: Timestamp,
    ) -> Room {
        let (state, Some(facts)) = (self.state(), self.ledger.facts()) else {
            return Room::For(left.len());
        };
        // Until there is an answer, the plan is all that is known.
        let latest = client.rate().filter(|_| requests > 0);
        let rate = state.rate.map(|rate| RateLimit { others: self.others.or(rate.others), ..rate });
        let mut allowance = Allowance::of(facts, rate, state.lists(), now);
        let cost = self.cost();
        if left.iter().any(|record| cost.may_sight(record)) {
            // poll-status looks at them as well.
            allowance.observing += allowance.to_follow();
        }
        if let Some(latest) = latest {
            (allowance.remaining, allowance.per_hour) = (Some(latest.remaining), latest.limit);
        } else {
            allowance.remaining = None;
        }
        let taken = requests + self.plans();
        let minute = |counted| allowance.left_to_act(counted).saturating_sub(taken);
        let most = minute(Counted::default());
        let room = |counted| {
            let room = minute(counted).min(allowance.in_the_hour());
            cost.fitting(left, room, most)
        };
        match room(state.counted(now)) {
            0 if room(Counted::default()) > 0 => {
                let at = state.counts_fewer_at(now);
                at.map_or(Room::None, Room::From)
            }
            0 => Room::None,
            count => Room::For(count),
        }
    }

    /// Stores that these records are about to be acted on, after `requests` requests. Returns whether
    /// they may be: otherwise another invocation has stored its plan meanwhile, which is now read.
    pub(super) async fn plan(
        &mut self,
        records: &[Record],
        requests: u64,
        budget: Budget<'_>,
    ) -> bool {
        let planned = requests + self.plans() + self.cost().of(records, self.state());
        self.ledger.plan(self.context, planned, budget.until()).await
    }

    fn plans(&self) -> u64 {
        let reads = self.reads.values().any(|reads| reads.basis != Basis::Itself);
        if reads { PLANS } else { 0 }
    }

    fn cost(&self) -> Cost<'_> {
        Cost { reads: &self.reads, sight: sight(self.state(), self.direction) }
    }

    /// Stores what this invocation has spent, and what the provider says is left. Both are hints.
    pub(super) async fn note(&mut self, client: &Client, requests: u64) {
        let others = self.others.or_else(|| self.state().rate?.others);
        let rate = account::rate(client, self.context.clock.now(), others);
        self.ledger.store(self.context, requests, rate).await;
    }
}

/// Returns how many requests it takes to see machines that are or were hibernated.
fn sight(state: &AccountState, direction: Direction) -> SightRequests {
    let acting = SightRequests::acting(direction);
    match direction {
        Direction::Start => acting,
        Direction::Stop => {
            let databases = state.cost.as_ref().map_or(0, |cost| cost.databases);
            SightRequests { around: acting.around + u64::from(databases), ..acting }
        }
    }
}

/// Returns what may be read of a resource, besides its own state, before the next step is planned.
pub(super) fn may_read(
    record: &Record,
    direction: Direction,
    configuration: &Configuration,
) -> Reads {
    let membership = Membership::of(Subject::recorded(record), configuration);
    let policy = &membership.policy(configuration);
    NextStep { record, policy, direction, seen: None }.reads()
}

/// What acting costs.
#[derive(Clone, Copy)]
struct Cost<'a> {
    reads: &'a BTreeMap<ResourceRef, Reads>,
    /// The requests for machines that are seen with their snapshots.
    sight: SightRequests,
}

impl Cost<'_> {
    /// Returns how many requests acting on these takes at most.
    fn of(self, records: &[Record], state: &AccountState) -> u64 {
        let sighted = records.iter().map(|record| u64::from(self.may_sight(record))).sum();
        let logs: u64 = records.iter().map(|record| self.log(record)).sum();
        requests_to_act(records.iter().map(Record::kind), state.lists())
            + logs
            + self.sight.for_machines(sighted)
    }

    /// Returns how many of the first there is room for. What is in flight continues in any case,
    /// since half a transition is worse than a refusal; but the next part of a hibernation can wait.
    /// What takes more than `most`, which an empty minute has room for, has the minute to itself.
    fn fitting(self, records: &[Record], room: u64, most: u64) -> usize {
        let mut left = room;
        let mut machines = 0;
        let fits = |record: &&Record| {
            let is_sighted = self.may_sight(record);
            if record.in_flight().is_some() && !is_sighted {
                return true;
            }
            let before = self.sight.for_machines(machines);
            machines += u64::from(is_sighted);
            let sight = self.sight.for_machines(machines) - before;
            let cost = requests_each(record.kind()) + self.log(record) + sight;
            let rest = left.checked_sub(cost.min(most.max(1)));
            left = rest.unwrap_or(left);
            rest.is_some()
        };
        records.iter().take_while(fits).count()
    }

    fn may_sight(self, record: &Record) -> bool {
        self.reads.get(&record.reference).is_some_and(|reads| reads.may_sight())
    }

    /// Returns how many requests it takes to read what has happened to a record since its request.
    fn log(self, record: &Record) -> u64 {
        self.reads.get(&record.reference).map_or(0, |reads| u64::from(reads.log.is_some()))
    }
}

#[cfg(test)]
mod tests {
    use domain::{configuration::DropletMethod, hibernation::Hibernation};

    use super::*;
    use transition::tests::{Case, droplet};

    #[test]
    fn a_stop_of_a_hibernated_machine_asks_each_database_whom_it_lets_in() {
        let mut state = AccountState::unknown("do-main".parse().unwrap());
        let around = |state: &AccountState, direction| sight(state, direction).around;
        let before = [Direction::Stop, Direction::Start].map(|way| around(&state, way));
        state.cost = Some(store::ListCost { databases: 24, ..store::ListCost::default() });
        let after = [Direction::Stop, Direction::Start].map(|way| around(&state, way));
        assert_eq!(after, [before[0] + 24, before[1]]);
    }

    #[test]
    fn the_next_part_of_a_hibernation_waits_for_room() {
        let mut part = droplet().in_flight(Direction::Stop, "19:00").record;
        part.hibernation = Some(Box::new(Hibernation::of(part.reference.id.clone())));
        let parts = vec![part; 3];
        let reads = may_read(&parts[0], Direction::Stop, &droplet().configuration);
        let reads = BTreeMap::from([(parts[0].reference.clone(), reads)]);
        let sight = SightRequests::acting(Direction::Stop);
        let cost = Cost { reads: &reads, sight };
        // Each is read with its log, and changed.
        let (first, each) = (sight.around + sight.each + 2, sight.each + 2);
        let room = |of: u64| cost.fitting(&parts, of, u64::MAX);
        assert_eq!([first - 1, first, first + each, first + 2 * each].map(room), [0, 1, 2, 3]);
        // It takes more than there ever is.
        let alone = |of: u64| cost.fitting(&parts, of, first - 1);
        assert_eq!([first - 2, first - 1].map(alone), [0, 1]);
    }

    #[test]
    fn much_is_read_of_a_machine_before_its_first_hibernation_and_nothing_to_start_it() {
        let hibernating = droplet().following(|policy| {
            policy.methods.droplet = DropletMethod::Hibernate;
        });
        let sighted = |case: &Case, direction| {
            may_read(&case.record, direction, &case.configuration).may_sight()
        };
        let directions = [Direction::Stop, Direction::Start];
        assert_eq!(directions.map(|direction| sighted(&hibernating, direction)), [true, false]);
        assert_eq!(directions.map(|direction| sighted(&droplet(), direction)), [false, false]);
    }

    #[test]
    fn what_is_under_way_needs_no_room() {
        let waiting = droplet().record;
        let under_way = droplet().in_flight(Direction::Stop, "19:00").record;
        let records = |under_way_first: bool| {
            let waiting = vec![waiting.clone(); 3];
            let under_way = vec![under_way.clone(); 2];
            if under_way_first { [under_way, waiting].concat() } else { waiting }
        };
        let cost = Cost { reads: &BTreeMap::new(), sight: SightRequests::acting(Direction::Stop) };
        let fitting = |first, room| cost.fitting(&records(first), room, u64::MAX);
        assert_eq!([0, 2, 9].map(|room| fitting(true, room)), [2, 4, 5]);
        assert_eq!([0, 2, 9].map(|room| fitting(false, room)), [0, 2, 3]);
    }
}
