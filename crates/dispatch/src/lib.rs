//! Decides what is due and hands it to stop and start. Reads only: it holds no token, links no
//! provider client, and is given a store that cannot write.

pub mod journal;

use std::collections::{BTreeMap, BTreeSet};

use aws_lambda_events::eventbridge::EventBridgeEvent;
use domain::{
    AccountName, ResourceRef,
    configuration::{Account, Check, Configuration},
    decision::{Decision, judge},
    invocation::Invocation,
    membership::Subject,
    order::Order,
    pacing::{Allowance, ListRequests, requests_to_act},
    record::{Direction, OBSERVATION_AGE, Record, SKEW},
    stored::is_default,
};
use environment::{Invoke, left_alone};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use store::{AccountState, InForce, ReadItems, Reader, StoreError};

/// The most references in one event: as many as one invocation has time for. Everything that an
/// account gets in one tick and direction goes to one invocation, because a list read by one is of
/// no use to another.
const BATCH: usize = 1000;

/// When starts need more than an account allows, one part in this many is left for its stops.
const FOR_STOPS: u64 = 4;

/// What one tick handed out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DispatchReport {
    pub starts: Vec<ResourceRef>,
    pub stops: Vec<ResourceRef>,
    /// Due, but left for the next tick by the rate limit or by `max_stops`.
    pub postponed: usize,
    /// Stops due in accounts that have not been listed for a quarter of an hour.
    pub unobserved: usize,
    /// Due, but not delivered because stop or start could not be invoked.
    #[serde(default, skip_serializing_if = "is_default")]
    pub undelivered: usize,
    /// What is due and was not handed out, by account.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub withheld: BTreeMap<AccountName, Withheld>,
}

/// What is due in one account and was not handed out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Withheld {
    /// Left for the next tick by the rate limit or by `max_stops`.
    pub postponed: usize,
    /// Stops due while the account has not been listed for a quarter of an hour.
    pub unobserved: usize,
    /// Handled under a later generation than the one in force: the table `schedules` was restored
    /// from a backup, and nothing is done about them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ahead: usize,
}

/// Runs one tick; `passed` tries the checks of groups, and returns those that pass.
pub async fn handle(
    store: &Reader,
    invoke: &impl Invoke,
    passed: impl AsyncFnOnce(BTreeSet<&Check>) -> BTreeSet<Check>,
    _timer: EventBridgeEvent,
    now: Timestamp,
) -> Result<DispatchReport, StoreError> {
    let due = readable(store.due(now).await?);
    if due.is_empty() {
        return Ok(DispatchReport::default());
    }
    // Records first, configuration second.
    let in_force = store.in_force().await?;
    let mut dispatched = DispatchReport { withheld: ahead(&due, &in_force), ..Default::default() };
    let others = store.in_order_with(&due, &in_force).await?;
    let order = Order::of(&others, in_force.rules());
    let checks = order.checks(&due, now);
    let order = order.with_passed(passed(checks).await);
    let by_account = by_account(&due, &order, &in_force, now);
    if by_account.is_empty() {
        return Ok(dispatched);
    }
    let states = readable(store.account_states().await?);
    for (account, due) in by_account {
        let configured = in_force.configuration.accounts.get(&account);
        let hand_out = HandOut::of(due, configured, states.get(&account), &in_force, now);
        dispatched.postponed += hand_out.postponed;
        dispatched.unobserved += hand_out.unobserved;
        if hand_out.postponed + hand_out.unobserved > 0 {
            let withheld = dispatched.withheld.entry(account).or_default();
            withheld.postponed = hand_out.postponed;
            withheld.unobserved = hand_out.unobserved;
        }
        for (direction, batch) in
            [(Direction::Start, hand_out.starts), (Direction::Stop, hand_out.stops)]
        {
            if batch.is_empty() {
                continue;
            }
            if hand(invoke, direction, &batch).await {
                match direction {
                    Direction::Start => dispatched.starts.extend(batch),
                    Direction::Stop => dispatched.stops.extend(batch),
                }
            } else {
                dispatched.undelivered += batch.len();
            }
        }
    }
    Ok(dispatched)
}

/// Returns what could be read. What a newer version wrote is left alone, and logged.
fn readable<T>(found: ReadItems<T>) -> T {
    for one in &found.unreadable {
        left_alone(&one.reference, &one.source);
    }
    found.read
}

/// Counts the records of each account that were handled under a later generation than the one in
/// force.
fn ahead(due: &[Record], in_force: &InForce) -> BTreeMap<AccountName, Withheld> {
    let generation = in_force.configuration.generation;
    let mut ahead = BTreeMap::<_, Withheld>::new();
    for record in due.iter().filter(|r| r.is_ahead_of(generation)) {
        let account = record.reference.account.clone();
        ahead.entry(account).or_default().ahead += 1;
    }
    ahead
}

/// What is due in one account, in the order in which it is handed out.
#[derive(Debug, Default)]
struct Due {
    starts: Vec<ResourceRef>,
    stops: Vec<ResourceRef>,
    /// Transitions in flight that may need another request: the forced power-off, or the next part.
    going_on: u64,
}

/// Groups what is due by account, in the order of its instants. Records that have failed come after
/// those with fewer attempts, so that they do not keep their place at the head. What waits for
/// others in the order of groups is left for a later tick.
fn by_account(
    records: &[Record],
    order: &Order<'_>,
    in_force: &InForce,
    now: Timestamp,
) -> BTreeMap<AccountName, Due> {
    let mut by_account = BTreeMap::<_, Due>::new();
    let mut records: Vec<_> = records.iter().collect();
    records.sort_by_key(|record| record.attempts);
    for record in records {
        let verdict = judge(record, Subject::recorded(record), in_force.rules(), now);
        let account = record.reference.account.clone();
        let direction = match verdict.decision {
            Decision::Act(due) => {
                if let Some(wait) = order.wait(record, &due, now) {
                    let (reference, others) = (&record.reference, wait.in_words(now));
                    tracing::debug!(resource.id = %reference, "{reference} waits for {others}");
                    continue;
                }
                due.direction
            }
            Decision::AskAgain(direction) => direction,
            Decision::Leave(reason) => {
                tracing::debug!(resource.id = %record.reference, "Left {}: {reason}", record.reference);
                if goes_on(record, &in_force.configuration) {
                    by_account.entry(account).or_default().going_on += 1;
                }
                continue;
            }
        };
        let due = by_account.entry(account).or_default();
        match direction {
            Direction::Start => due.starts.push(record.reference.clone()),
            Direction::Stop => due.stops.push(record.reference.clone()),
        }
    }
    by_account.retain(|_, due| !(due.starts.is_empty() && due.stops.is_empty()));
    by_account
}

/// Reports whether a transition in flight may need another request than the one that was sent.
fn goes_on(record: &Record, configuration: &Configuration) -> bool {
    let Some((request, transition)) = record.request.as_ref().zip(record.in_flight()) else {
        return false;
    };
    let may_be_cut = request.is_graceful() && configuration.has_power_cut(&record.reference);
    may_be_cut || transition.method.has_parts()
}

/// What one account gets in one tick.
#[derive(Debug, Default)]
struct HandOut {
    starts: Vec<ResourceRef>,
    stops: Vec<ResourceRef>,
    postponed: usize,
    unobserved: usize,
}

impl HandOut {
    /// Selects starts before stops, within what the account allows and within `max_stops`.
    fn of(
        due: Due,
        account: Option<&Account>,
        state: Option<&AccountState>,
        in_force: &InForce,
        now: Timestamp,
    ) -> Self {
        let mut out = Self { starts: due.starts, stops: due.stops, postponed: 0, unobserved: 0 };
        let observed = state
            .and_then(|state| state.listed_at)
            .is_some_and(|at| now.duration_since(at) <= OBSERVATION_AGE + SKEW);
        if !observed {
            out.unobserved = out.stops.len();
            out.stops.clear();
        }
        let max_stops = in_force.configuration.settings.max_stops as usize;
        out.postponed += truncate(&mut out.stops, max_stops.min(BATCH));
        out.postponed += truncate(&mut out.starts, BATCH);
        let lists = state.and_then(AccountState::lists);
        let allowance = allowance(account, state, now);
        let allowance = allowance - due.going_on.min(allowance / FOR_STOPS);
        // Stops get what starts leave, but always at least their share, however many starts there
        // are.
        let for_stops = cost(&out.stops, lists).min(allowance / FOR_STOPS);
        out.postponed += fit(&mut out.starts, lists, allowance - for_stops);
        let left = allowance - cost(&out.starts, lists);
        out.postponed += fit(&mut out.stops, lists, left);
        out
    }
}

fn truncate(references: &mut Vec<ResourceRef>, most: usize) -> usize {
    let cut = references.len().saturating_sub(most);
    references.truncate(most);
    cut
}

/// Keeps as many references as the allowance is enough for. Returns how many were cut.
fn fit(references: &mut Vec<ResourceRef>, lists: Option<&ListRequests>, allowance: u64) -> usize {
    let all = references.len();
    // The cost of a list is included, however few references are left.
    let mut needed = cost(references, lists);
    while needed > allowance {
        let over = usize::try_from((needed - allowance).div_ceil(2)).unwrap_or(usize::MAX);
        references.truncate(references.len().saturating_sub(over));
        needed = cost(references, lists);
    }
    all - references.len()
}

/// Returns how many requests it takes to observe these and to change them.
fn cost(references: &[ResourceRef], lists: Option<&ListRequests>) -> u64 {
    requests_to_act(references.iter().map(ResourceRef::kind), lists)
}

/// Returns how many requests the account's rate limit allows in this tick.
fn allowance(account: Option<&Account>, state: Option<&AccountState>, now: Timestamp) -> u64 {
    let Some(cloud) = account.and_then(Account::cloud) else {
        return u64::MAX;
    };
    let rate = state.and_then(|state| state.rate);
    let lists = state.and_then(AccountState::lists);
    Allowance::of(cloud.provider.facts(), rate, lists, now).at_a_tick()
}

/// Hands a batch over and reports whether that succeeded. If not, it is still due at the next tick.
async fn hand(invoke: &impl Invoke, direction: Direction, batch: &[ResourceRef]) -> bool {
    let hint = Invocation::Due(batch.to_vec());
    match invoke.invoke(direction, hint).await {
        Ok(()) => {
            tracing::info!(
                function = %direction,
                resources = batch.len(),
                "Handed {} to {direction}", batch.len()
            );
            true
        }
        Err(error) => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "Could not hand {} to {direction}",
                batch.len()
            );
            false
        }
    }
}
