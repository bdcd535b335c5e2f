//! The pace at which stop or start sends what it was handed.
//!
//! If a provider counts requests per minute, that many may leave at once, and more only as requests
//! of other invocations drop out of the count. Before it sends anything, each invocation stores what
//! it is about to send, in place of what it has read of the others; if another one was first, it
//! reads again. So several that begin at one instant never spend the same requests.

use domain::{
    AccountName,
    configuration::Configuration,
    pacing::{
        Allowance, Others, RATE_AGE, Rate, SightRequests, Spent, requests_each, requests_to_act,
    },
    provider::Facts,
    record::{Direction, Record},
};
use environment::in_words;
use jiff::Timestamp;
use provider::Client;
use store::AccountState;

use crate::{Context, account, budget::Budget, transition::log::log_from};

/// How often in a row an invocation tries to store what it sends, while others store theirs. Then it
/// goes on without: what is stored is a hint.
const TRIES: usize = 5;

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
    /// What is known of the account, without what this invocation spends.
    state: AccountState,
    /// `None` over SSH, where nothing is counted.
    facts: Option<&'static Facts>,
    direction: Direction,
    began: Timestamp,
    /// The number of requests that this invocation has stored.
    planned: u64,
    /// How often in a row another one was first.
    missed: usize,
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
        let configured = configuration.accounts.get(account);
        let cloud = configured.and_then(|account| account.cloud());
        let facts = cloud.map(|account| account.provider.facts());
        let mut pace = Self {
            context,
            state: AccountState::unknown(account.clone()),
            facts,
            direction,
            began: context.clock.now(),
            planned: 0,
            missed: 0,
            others: None,
        };
        // Where no minute is counted, one alone needs no list and exceeds no limit, unless much has
        // to be read about it.
        if pace.counts_minutes() || records.len() > 1 || records.iter().any(is_sighted) {
            pace.read().await;
        }
        pace
    }

    /// Returns what is known of the account.
    pub(super) fn state(&self) -> &AccountState {
        &self.state
    }

    fn counts_minutes(&self) -> bool {
        self.facts.is_some_and(|facts| facts.requests_per_minute.is_some())
    }

    /// Reads what is known of the account, which other invocations may have changed.
    async fn read(&mut self) {
        let state = account::state(self.context, &self.state.account).await;
        self.state = state;
        self.state.spent.retain(|spent| spent.by != *self.context.writer);
    }

    /// Measures what others take of the rate limit, once there is an answer.
    pub(super) fn measure(&mut self, client: &Client, requests: u64, now: Timestamp) {
        if self.others.is_some() || requests == 0 {
            return;
        }
        if let Some(latest) = client.rate() {
            self.others = self.state.others(latest.remaining, now, requests);
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
        let Some(facts) = self.facts else {
            return Room::For(left.len());
        };
        // Until there is an answer, the plan is all that is known.
        let latest = client.rate().filter(|_| requests > 0);
        let rate = self.state.rate.map(|rate| Rate { others: self.others.or(rate.others), ..rate });
        let mut allowance = Allowance::of(facts, rate, self.state.lists(), now);
        if left.iter().any(is_sighted) {
            // poll-status looks at them as well, and takes its part of the hour for that.
            allowance.observing += allowance.per_hour / 60;
        }
        if let Some(latest) = latest {
            (allowance.remaining, allowance.per_hour) = (Some(latest.remaining), latest.limit);
        } else {
            allowance.remaining = None;
        }
        let sight = sight(&self.state, self.direction);
        let room = |before| {
            let minute = allowance.in_a_minute().saturating_sub(before).saturating_sub(requests);
            fitting(left, minute.min(allowance.in_the_hour()), sight)
        };
        match room(self.state.counted(now)) {
            0 if room(0) > 0 => {
                let at = self.state.counts_fewer_at(now);
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
        let sight = sight(&self.state, self.direction);
        let planned = requests + cost(records, &self.state, sight);
        if !self.counts_minutes() || planned <= self.planned {
            return true;
        }
        if self.save(planned, budget.until()).await {
            (self.planned, self.missed) = (planned, 0);
            return true;
        }
        self.missed += 1;
        self.read().await;
        self.missed >= TRIES
    }

    /// Stores how many requests this invocation sends, until an instant, beside those of others.
    /// Returns whether nothing else was stored since it read theirs. If it cannot
    /// be stored, the invocation acts all the same: it is a hint.
    async fn save(&mut self, requests: u64, ended: Timestamp) -> bool {
        let (account, now) = (&self.state.account, self.context.clock.now());
        let by = self.context.writer.clone();
        let mut spent = self.state.spent.clone();
        spent.retain(|spent| now.duration_since(spent.ended) <= RATE_AGE);
        spent.push(Spent { by, began: self.began, ended, requests });
        let store = self.context.store;
        match store.save_spent(account, &spent, self.state.spent_revision).await {
            Ok(is_stored) => {
                self.state.spent_revision += u64::from(is_stored);
                is_stored
            }
            Err(error) => {
                let reason = in_words(&error);
                tracing::warn!(account = %account, "Could not keep what {account} has spent: {reason}");
                true
            }
        }
    }

    /// Stores what this invocation has spent, and what the provider says is left. Both are hints.
    pub(super) async fn note(&mut self, client: &Client, requests: u64) {
        let now = self.context.clock.now();
        let others = self.others.or_else(|| self.state.rate?.others);
        let rate = account::rate(client, now, others);
        let rate = rate.map(|rate| (self.state.account.clone(), rate));
        account::save_rates(&self.context, rate).await;
        if !self.counts_minutes() {
            return;
        }
        for _ in 0..TRIES {
            if self.save(requests, now).await {
                self.planned = requests;
                return;
            }
            self.read().await;
        }
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

/// Returns how many requests acting on these takes at most.
fn cost(records: &[Record], state: &AccountState, sight: SightRequests) -> u64 {
    let sighted: u64 = records.iter().map(|record| u64::from(is_sighted(record))).sum();
    let logs: u64 = records.iter().map(log_of).sum();
    requests_to_act(records.iter().map(Record::kind), state.lists())
        + logs
        + sight.for_machines(sighted)
}

/// Returns how many requests acting on one takes, apart from a list and from what is around it.
fn cost_of(record: &Record, sight: SightRequests) -> u64 {
    let each = if is_sighted(record) { sight.each } else { 0 };
    requests_each(record.kind()) + log_of(record) + each
}

/// Returns how many requests acting on the first of several takes.
fn first_cost(record: &Record, sight: SightRequests) -> u64 {
    let around = if is_sighted(record) { sight.around } else { 0 };
    cost_of(record, sight) + around
}

/// Reports whether it is or was hibernated, so that more than its own state is read.
pub(super) fn is_sighted(record: &Record) -> bool {
    record.hibernation.is_some()
}

/// Returns how many requests it takes to read what has happened to a record since its request.
fn log_of(record: &Record) -> u64 {
    u64::from(log_from(record).is_some())
}

/// Returns how many of the first there is room for. What is in flight continues in any case, since
/// half a transition is worse than a refusal; but the next part of a hibernation can wait.
fn fitting(records: &[Record], room: u64, sight: SightRequests) -> usize {
    let mut left = room;
    let mut is_first = true;
    let fits = |record: &&Record| {
        if record.in_flight().is_some() && !is_sighted(record) {
            return true;
        }
        let is_first = is_sighted(record) && std::mem::take(&mut is_first);
        let cost = if is_first { first_cost } else { cost_of };
        let rest = left.checked_sub(cost(record, sight));
        left = rest.unwrap_or(left);
        rest.is_some()
    };
    records.iter().take_while(fits).count()
}

#[cfg(test)]
mod tests {
    use domain::hibernation::Hibernation;

    use super::*;
    use crate::tests::droplet;

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
        let sight = SightRequests::acting(Direction::Stop);
        let (first, each) = (first_cost(&parts[0], sight), cost_of(&parts[0], sight));
        let room = |of: u64| fitting(&parts, of, sight);
        assert_eq!([first - 1, first, first + each, first + 2 * each].map(room), [0, 1, 2, 3]);
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
        let sight = SightRequests::acting(Direction::Stop);
        assert_eq!([0, 2, 9].map(|room| fitting(&records(true), room, sight)), [2, 4, 5]);
        assert_eq!([0, 2, 9].map(|room| fitting(&records(false), room, sight)), [0, 2, 3]);
    }
}
