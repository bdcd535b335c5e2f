//! The pace at which stop or start sends what it was handed.
//!
//! If a provider counts requests per minute, that many may leave at once, and more only as requests
//! of earlier invocations drop out of the count: each invocation records what it has spent. What
//! was handed to an invocation is its share. Start and stop running concurrently each keep to
//! theirs; what the other has spent lately shows that it is running too.

use domain::{
    AccountName,
    configuration::Configuration,
    pacing::{Allowance, Others, Rate, SightRequests, Spent, requests_each, requests_to_act},
    provider::Facts,
    record::{Direction, Record},
};
use environment::in_words;
use jiff::{SignedDuration, Timestamp};
use provider::Client;
use store::AccountState;

use crate::{Context, account, transition::log::log_from};

/// How long after its last request start counts as running beside stop, and vice versa.
const AT_WORK: SignedDuration = SignedDuration::from_mins(2);

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
pub(super) struct Pace {
    state: AccountState,
    /// `None` over SSH, where nothing is counted.
    facts: Option<&'static Facts>,
    direction: Direction,
    began: Timestamp,
    /// The most requests that the records handed over take.
    share: u64,
    /// What others take, as measured in this invocation.
    others: Option<Others>,
}

impl Pace {
    pub(super) async fn begin(
        context: Context<'_>,
        account: &AccountName,
        configuration: &Configuration,
        direction: Direction,
        records: &[Record],
    ) -> Self {
        let configured = configuration.accounts.get(account);
        let cloud = configured.and_then(|account| account.cloud());
        // One alone needs no list and exceeds no limit, unless much has to be read about it.
        let state = if records.len() > 1 || records.iter().any(is_sighted) {
            account::state(context, account).await
        } else {
            AccountState::unknown(account.clone())
        };
        Self {
            share: cost(records, &state, sight(&state, direction)),
            facts: cloud.map(|account| account.provider.facts()),
            state,
            direction,
            began: context.clock.now(),
            others: None,
        }
    }

    /// Returns what was known of the account before this invocation.
    pub(super) fn state(&self) -> &AccountState {
        &self.state
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
        let first = left.first().map_or(0, |first| first_cost(first, sight));
        let room = |before| {
            let most = allowance.in_a_minute();
            let whole = most.saturating_sub(before).saturating_sub(requests);
            let minute = self.in_the_minute(most, before, now);
            // Room for only a part of one record is of no use.
            let room = minute.saturating_sub(requests).max(first.min(whole));
            fitting(left, room.min(allowance.in_the_hour()), sight)
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

    /// Returns how many requests fit in a minute in which `before` earlier ones still count.
    fn in_the_minute(&self, most: u64, before: u64, now: Timestamp) -> u64 {
        let other = self.state.spent(match self.direction {
            Direction::Start => Direction::Stop,
            Direction::Stop => Direction::Start,
        });
        if other.is_some_and(|spent| now.duration_since(spent.ended) < AT_WORK) {
            part(most, self.share, before)
        } else {
            self.share.min(most.saturating_sub(before))
        }
    }

    /// Records what this invocation has spent, and what the provider says is left. Both are hints.
    pub(super) async fn note(&self, context: Context<'_>, client: &Client, requests: u64) {
        let (account, now) = (&self.state.account, context.clock.now());
        let others = self.others.or_else(|| self.state.rate?.others);
        let rate = account::rate(client, now, others);
        account::save_rates(&context, rate.map(|rate| (account.clone(), rate))).await;
        let counts = self.facts.and_then(|facts| facts.requests_per_minute);
        if counts.is_none() {
            return;
        }
        let spent = Spent { began: self.began, ended: now, requests };
        let spent = spent.after(self.state.spent(self.direction));
        let saved = context.store.save_spent(account, self.direction, spent);
        if let Err(error) = saved.await {
            let reason = in_words(&error);
            tracing::warn!(account = %account, "Could not keep what {account} has spent: {reason}");
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

/// Returns a share's part of a minute in which `before` earlier requests still count, if it is not
/// the only share: each gets the same fraction.
fn part(most: u64, share: u64, before: u64) -> u64 {
    if most == u64::MAX {
        return u64::MAX;
    }
    let room = u128::from(share.min(most)) * u128::from(most.saturating_sub(before));
    u64::try_from(room / u128::from(most.max(1))).unwrap_or(u64::MAX)
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
    fn each_invocation_has_its_part_of_what_is_forgotten() {
        let (starts, stops) = (60, 180);
        let most = 240;
        for before in [0, 1, 100, 239, 240, 300] {
            let room = |share| part(most, share, before);
            assert!(before >= most || room(starts) + room(stops) + before <= most);
        }
        assert_eq!([0, 120, 240].map(|before| part(240, 60, before)), [60, 30, 0]);
        // The records handed over take more than there is room for.
        assert_eq!(part(100, 240, 0), 100);
        assert_eq!(part(u64::MAX, 1, 1000), u64::MAX);
    }

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
