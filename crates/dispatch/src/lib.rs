//! Decides what is due and hands it to stop and start. Reads only: it holds no token, links no
//! provider client, and is given a store that cannot write.

pub mod journal;

use std::collections::BTreeMap;

use aws_lambda_events::eventbridge::EventBridgeEvent;
use domain::{
    AccountName, ResourceRef,
    decision::{Decision, judge},
    invocation::Invocation,
    membership::Subject,
    provider::share_of,
    record::{Direction, INVENTORY_INTERVAL, OBSERVATION_AGE, Record, SKEW},
};
use environment::{Invoke, left_alone};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use store::{AccountState, Found, Head, InForce, Reader, StoreError};

/// The most references in one event.
const BATCH: usize = 100;

/// Requests that one hand-out costs: a look and a change. A batch of databases takes one more, for
/// the plans.
const REQUESTS_EACH: u64 = 2;

/// The rate is noted by every inventory, and by all requests in between; older than this, it says
/// nothing. The tick before an inventory, and one that is late, still pace by the last one.
const RATE_AGE: SignedDuration =
    SignedDuration::from_secs(INVENTORY_INTERVAL.as_secs() + SKEW.as_secs() + 60);

/// What one tick handed out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dispatched {
    /// Handed to start.
    pub starts: Vec<ResourceRef>,
    /// Handed to stop.
    pub stops: Vec<ResourceRef>,
    /// Due, and left for the next tick: by the rate limit or by `max_stops`.
    pub postponed: usize,
    /// Stops due in accounts that were not listed for a quarter of an hour.
    pub unobserved: usize,
    /// Due, and not taken by stop or start: those could not be invoked.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub undelivered: usize,
    /// What is due and was not handed out, by account.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub withheld: BTreeMap<AccountName, Withheld>,
}

/// What is due in one account and was not handed out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Withheld {
    /// Left for the next tick, by the rate limit or by `max_stops`.
    pub postponed: usize,
    /// Stops due while the account was not listed for a quarter of an hour.
    pub unobserved: usize,
    /// Handled under a later generation than the one in force: the table `schedules` was restored
    /// from a backup, and nothing is done about them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ahead: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(value: &usize) -> bool {
    *value == 0
}

/// One tick of the timer.
pub async fn handle(
    store: &Reader,
    invoke: &impl Invoke,
    _timer: EventBridgeEvent,
    now: Timestamp,
) -> Result<Dispatched, StoreError> {
    let present = store.present().await?;
    let due = readable(store.due(now).await?);
    if due.is_empty() {
        return Ok(Dispatched::default());
    }
    let head = present.head.clone();
    let in_force = present.under(store.configuration_of(&head).await?);
    let states = readable(store.account_states().await?);
    let mut dispatched = Dispatched {
        withheld: ahead(store, &due, &head).await?,
        ..Dispatched::default()
    };
    for (account, due) in by_account(&due, &in_force, now) {
        let hand_out = HandOut::of(due, states.get(&account), &in_force, now);
        dispatched.postponed += hand_out.postponed;
        dispatched.unobserved += hand_out.unobserved;
        if hand_out.postponed + hand_out.unobserved > 0 {
            let withheld = dispatched.withheld.entry(account).or_default();
            withheld.postponed = hand_out.postponed;
            withheld.unobserved = hand_out.unobserved;
        }
        for (direction, references) in [
            (Direction::Start, hand_out.starts),
            (Direction::Stop, hand_out.stops),
        ] {
            for batch in references.chunks(BATCH) {
                if hand(invoke, direction, batch).await {
                    match direction {
                        Direction::Start => dispatched.starts.extend_from_slice(batch),
                        Direction::Stop => dispatched.stops.extend_from_slice(batch),
                    }
                } else {
                    dispatched.undelivered += batch.len();
                }
            }
        }
    }
    Ok(dispatched)
}

/// What could be read. What a newer program wrote is left alone, and logged.
fn readable<T>(found: Found<T>) -> T {
    for one in &found.unreadable {
        left_alone(&one.reference, &one.source);
    }
    found.read
}

/// How much of each account was handled under a later generation than the one in force.
async fn ahead(
    store: &Reader,
    due: &[Record],
    head: &Head,
) -> Result<BTreeMap<AccountName, Withheld>, StoreError> {
    let mut ahead = BTreeMap::<_, Withheld>::new();
    for record in due.iter().filter(|r| r.is_ahead_of(head.generation)) {
        let account = record.reference.account.clone();
        ahead.entry(account).or_default().ahead += 1;
    }
    // What was applied since the head was read may have been acted on already.
    if !ahead.is_empty() && store.present().await?.head != *head {
        ahead.clear();
    }
    Ok(ahead)
}

/// What is due, by account, in the order of its instants.
fn by_account(
    records: &[Record],
    in_force: &InForce,
    now: Timestamp,
) -> BTreeMap<AccountName, Vec<(Direction, ResourceRef)>> {
    let mut by_account = BTreeMap::<_, Vec<_>>::new();
    for record in records {
        let verdict = judge(record, Subject::recorded(record), in_force.rules(), now);
        let direction = match verdict.decision {
            Decision::Act(due) => due.direction,
            Decision::AskAgain(direction) => direction,
            Decision::Leave(reason) => {
                tracing::debug!(resource.id = %record.reference, "Left {}: {reason}", record.reference);
                continue;
            }
        };
        by_account
            .entry(record.reference.account.clone())
            .or_default()
            .push((direction, record.reference.clone()));
    }
    by_account
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
    /// Starts before stops, within the rate that is left and within `max_stops`.
    fn of(
        due: Vec<(Direction, ResourceRef)>,
        state: Option<&AccountState>,
        in_force: &InForce,
        now: Timestamp,
    ) -> Self {
        let (starts, stops): (Vec<_>, Vec<_>) = due
            .into_iter()
            .partition(|(direction, _)| *direction == Direction::Start);
        let references = |list: Vec<(Direction, ResourceRef)>| -> Vec<_> {
            list.into_iter().map(|(_, reference)| reference).collect()
        };
        let mut out = Self {
            starts: references(starts),
            stops: references(stops),
            postponed: 0,
            unobserved: 0,
        };
        let observed = state
            .and_then(|state| state.listed_at)
            .is_some_and(|at| now.duration_since(at) <= OBSERVATION_AGE + SKEW);
        if !observed {
            out.unobserved = out.stops.len();
            out.stops.clear();
        }
        let max_stops = in_force.configuration.settings.max_stops as usize;
        let allowance = allowance(state, now);
        out.postponed += truncate(&mut out.starts, allowance);
        out.postponed += truncate(&mut out.stops, max_stops.min(allowance - out.starts.len()));
        out
    }
}

fn truncate(references: &mut Vec<ResourceRef>, most: usize) -> usize {
    let cut = references.len().saturating_sub(most);
    references.truncate(most);
    cut
}

/// How many references the account's rate limit allows in this tick: half of what is left, for
/// other tools share the token.
fn allowance(state: Option<&AccountState>, now: Timestamp) -> usize {
    let fresh = state
        .and_then(|state| state.rate)
        .filter(|rate| now.duration_since(rate.at) <= RATE_AGE);
    match fresh {
        Some(rate) => {
            usize::try_from(share_of(rate.remaining) / REQUESTS_EACH).unwrap_or(usize::MAX)
        }
        None => usize::MAX,
    }
}

/// Hands a batch over. What could not be handed over is still due at the next tick.
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
