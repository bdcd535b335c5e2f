//! Following what is in flight in one account, one observation of each resource at a time.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use domain::{
    AccountName, ResourceId, ResourceRef, ScheduleName,
    invocation::Invocation,
    look::Look,
    pacing::{ListRequests, SightRequests},
    reason::Reason,
    record::{Direction, Record},
    resource::LoggedAction,
};
use environment::{Invoke, in_words};
use futures_util::{StreamExt as _, stream};
use jiff::Timestamp;
use provider::{AT_ONCE, Client};
use store::{InForce, StoreError};
use transition::{
    follow::{self, Follow},
    methods::{Reads, Sighted},
    view::{Observation, PlanContext, Write},
};

use crate::{
    Context,
    budget::Budget,
    event::Occurrence,
    failure::ObservationError,
    observe::look::{LookResult, Looks, SharedLists, requests_to_follow},
};

/// As soon as this many resources are handed over, stop or start is invoked: looking at the rest
/// may take too long.
const HANDOFF_BATCH: usize = 25;

/// The reasons reported so far for accounts that could not be asked: each is reported once.
#[derive(Debug, Default)]
pub(crate) struct ReportedErrors(RefCell<BTreeMap<AccountName, Reason>>);

impl ReportedErrors {
    /// Records a reason that was reported before, or is now.
    pub(crate) fn record(&self, account: &AccountName, reason: &Reason) {
        self.0.borrow_mut().insert(account.clone(), reason.clone());
    }

    /// Records a reason, and reports whether it differs from the last one.
    pub(crate) fn is_new(&self, account: &AccountName, reason: &Reason) -> bool {
        let new = {
            let known = self.0.borrow();
            let known = known.get(account);
            !known.is_some_and(|known| known.eq_ignoring_request(reason))
        };
        self.record(account, reason);
        new
    }

    /// Logs why a resource could not be observed, once per account and reason: the next look is
    /// seconds away.
    fn log_once(&self, record: &Record, failure: &ObservationError) {
        let (reference, reason) = (&record.reference, &failure.reason);
        if self.is_new(&reference.account, reason) {
            tracing::warn!(resource.id = %reference, "Could not look at {reference}: {reason}");
        }
    }
}

/// A machine's log as far as it was read.
#[derive(Default)]
struct ReadLog {
    actions: Vec<LoggedAction>,
    /// The instant from which it was read; `None` if it was not.
    from: Option<Timestamp>,
}

/// The result of one round of looks at an account's transitions.
#[derive(Debug, Default)]
pub(crate) struct Round {
    pub outcomes: Vec<Occurrence>,
    /// How many are still in flight.
    pub in_flight: usize,
    /// The schedules of those in flight.
    pub waiting: BTreeSet<ScheduleName>,
}

/// Follows transitions of one account.
pub(crate) struct AccountFollower<'a> {
    pub context: Context<'a>,
    pub budget: Budget<'a>,
    pub client: &'a Client,
    pub in_force: &'a InForce,
    pub reported_errors: &'a ReportedErrors,
}

impl AccountFollower<'_> {
    /// Looks at each record, starting with a different one each minute. Machines that are
    /// hibernated or woken are included only as far as there is room for the requests that they
    /// take beside the others. The client sends no more than there is room for.
    pub(crate) async fn follow(
        &self,
        mut records: Vec<Record>,
        requests: &ListRequests,
        is_busy: bool,
        room: u64,
        invoke: &impl Invoke,
    ) -> Round {
        let now = self.budget.now();
        let first = turn(now, records.len());
        records.rotate_left(first);
        // Where there is no room for each of a few, they are read by a list, too.
        let is_busy = is_busy || LookCost::of(&records, requests, is_busy, now).others > room;
        let cost = LookCost::of(&records, requests, is_busy, now);
        let (records, left) = fitting(records, room.saturating_sub(cost.others));
        let ids = ids(&records);
        let shared = SharedLists::default();
        let looks =
            Looks::to_follow(self.client, self.budget, &shared, &ids, requests, is_busy).await;
        let mut round = Round {
            in_flight: left.len(),
            waiting: left.into_iter().filter_map(|one| one.schedule).collect(),
            ..Round::default()
        };
        let mut handoffs = Handoffs::default();
        let followed = stream::iter(looks.in_order(records))
            .map(|record| self.follow_one(record, &looks))
            .buffer_unordered(AT_ONCE);
        let mut followed = std::pin::pin!(followed);
        while let Some(one) = followed.next().await {
            if !one.followed.ended {
                round.in_flight += 1;
                round.waiting.extend(one.schedule);
            }
            round.outcomes.extend(one.followed.outcomes);
            handoffs.extend(one.handoffs);
            if handoffs.len() >= HANDOFF_BATCH {
                self.invoke_next(std::mem::take(&mut handoffs), invoke).await;
            }
        }
        self.invoke_next(handoffs, invoke).await;
        round
    }

    async fn follow_one(&self, record: Record, looks: &Looks<'_>) -> One {
        let looked = looks.of(&record, Reads::of(&record)).await;
        if let Err(failure) = &looked {
            self.reported_errors.log_once(&record, failure);
        }
        let (reference, schedule) = (record.reference.clone(), record.schedule.clone());
        let follow = self.decide(&record, &looked).await;
        let mut handoffs = Handoffs::default();
        let followed = self.carry_out(record, follow, &mut handoffs).await;
        tracing::debug!(resource.id = %reference, "Looked at {reference}");
        One { schedule, followed, handoffs }
    }

    /// Decides what follows from one look.
    pub(crate) async fn decide(&self, record: &Record, looked: &LookResult) -> Follow {
        let look = match looked {
            Ok(Some(look)) => look,
            Ok(None) => return follow::missing(record, self.plan_context()),
            Err(failure) => {
                if failure.token_refused() {
                    self.context.providers.forget(&record.reference.account);
                }
                return Follow::Wait;
            }
        };
        match self.log(record, look).await {
            Ok(log) => {
                let seen =
                    Observation { log: &log.actions, log_from: log.from, ..Observation::of(look) };
                follow::follow(record, seen, self.plan_context())
            }
            // Without the log nothing may be concluded from the status alone.
            Err(failure) => {
                self.reported_errors.log_once(record, &failure);
                Follow::Wait
            }
        }
    }

    /// Reads the machine's log if it can show something that the observation does not. A look that
    /// has meanwhile become too old supports nothing.
    async fn log(&self, record: &Record, look: &Look) -> Result<ReadLog, ObservationError> {
        let too_old = |now| ObservationError::too_old(look, now).map_or(Ok(()), Err);
        let now = self.context.clock.now();
        too_old(now)?;
        let needed = follow::needs_log(record, Observation::of(look), now);
        let Some(since) = follow::reads(record, now).log.filter(|_| needed) else {
            return Ok(ReadLog::default());
        };
        if self.budget.is_over() {
            return Err(ObservationError::of("there was no time left to read its log"));
        }
        let log = self.client.actions(&look.resource.id, since).await;
        let log = log.map_err(|error| ObservationError::from(&error))?;
        too_old(self.context.clock.now())?;
        Ok(ReadLog { actions: log, from: Some(since) })
    }

    /// Carries out what following a record led to.
    pub(crate) async fn carry_out(
        &self,
        record: Record,
        follow: Follow,
        handoffs: &mut Handoffs,
    ) -> FollowResult {
        match follow {
            Follow::Wait => FollowResult::default(),
            Follow::Force => {
                handoffs.extend(Handoff::of(&record));
                FollowResult::default()
            }
            Follow::Write(write) => {
                let followed = self.write(*write).await;
                let next = followed.record.as_ref().filter(|r| r.wants_next_step());
                handoffs.extend(next.and_then(Handoff::of));
                followed
            }
        }
    }

    async fn write(&self, write: Write) -> FollowResult {
        let now = self.context.clock.now();
        let store = self.context.store;
        let left = write.record.clone();
        match store.commit(write.record, write.history.as_ref()).await {
            Ok(record) => {
                let events = write.events.into_iter();
                let outcomes = events.map(|event| Occurrence::of(&record, now, event));
                FollowResult {
                    ended: record.in_flight().is_none(),
                    outcomes: self.context.report(outcomes.collect()),
                    record: Some(record),
                }
            }
            // Another writer changed it: it is looked at again.
            Err(StoreError::Stale { .. }) => FollowResult::default(),
            Err(error) => FollowResult {
                outcomes: self.context.report_failure(&left, &error),
                ..FollowResult::default()
            },
        }
    }

    /// Invokes stop and start, which look again before they cut the power or send the next part. A
    /// lost invocation costs one tick.
    pub(crate) async fn invoke_next(&self, handoffs: Handoffs, invoke: &impl Invoke) {
        for direction in [Direction::Start, Direction::Stop] {
            let of_this = handoffs.iter().filter(|one| one.direction == direction);
            let references: Vec<_> = of_this.map(|one| one.reference.clone()).collect();
            if references.is_empty() {
                continue;
            }
            let hint = Invocation::Due(references);
            if let Err(error) = invoke.invoke(direction, hint).await {
                tracing::error!("{}", in_words(&error));
            }
        }
    }

    pub(crate) fn plan_context(&self) -> PlanContext<'_> {
        PlanContext {
            rules: self.in_force.rules(),
            writer: self.context.writer,
            now: self.context.clock.now(),
        }
    }
}

/// The most requests that one look at records in flight takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LookCost {
    /// Those for machines that are hibernated or woken.
    sights: u64,
    /// Those for all others, with the logs of machines whose end is long in coming.
    others: u64,
}

impl LookCost {
    pub(crate) fn of(
        records: &[Record],
        requests: &ListRequests,
        is_busy: bool,
        now: Timestamp,
    ) -> Self {
        let reads = || records.iter().map(|record| follow::reads(record, now));
        let sighted = reads().map(|reads| u64::from(reads.sight == Sighted::Always)).sum();
        let others = reads().filter(|reads| reads.sight != Sighted::Always);
        let logs = others.map(|reads| u64::from(reads.log.is_some())).sum::<u64>();
        Self {
            sights: SightRequests::FOLLOWING.for_machines(sighted),
            others: requests_to_follow(&ids(records), requests, is_busy) + logs,
        }
    }

    /// Returns the requests for all of them.
    pub(crate) fn whole(self) -> u64 {
        self.sights + self.others
    }

    /// Returns the requests for one of the machines, and for the others.
    pub(crate) fn least(self) -> u64 {
        self.sights.min(SightRequests::FOLLOWING.for_machines(1)) + self.others
    }
}

/// Returns what is looked at by lists, or one by one.
fn ids(records: &[Record]) -> BTreeSet<ResourceId> {
    let others = records.iter().filter(|record| !is_sighted(record));
    others.filter_map(Record::present).cloned().collect()
}

/// Splits the records into those that a look has room for and those that it leaves out: machines that
/// are hibernated or woken.
fn fitting(records: Vec<Record>, room: u64) -> (Vec<Record>, Vec<Record>) {
    let mut sights = SightRequests::FOLLOWING.machines_in(room);
    records.into_iter().partition(|record| {
        let fits = !is_sighted(record) || sights > 0;
        sights -= u64::from(is_sighted(record) && fits);
        fits
    })
}

fn is_sighted(record: &Record) -> bool {
    Reads::of(record).sight == Sighted::Always
}

/// Returns the index that a look begins with: a different one each minute, so that when time is
/// short it is not always the same records that are left out.
fn turn(now: Timestamp, of: usize) -> usize {
    let minute = usize::try_from(now.as_second() / 60).unwrap_or_default();
    // A prime, so that the turns reach every index.
    minute.wrapping_mul(7919).checked_rem(of).unwrap_or_default()
}

/// The resources that stop or start is to continue with at once.
pub(crate) type Handoffs = Vec<Handoff>;

/// A resource whose transition needs a request that poll-status does not send.
pub(crate) struct Handoff {
    direction: Direction,
    reference: ResourceRef,
}

impl Handoff {
    fn of(record: &Record) -> Option<Self> {
        Some(Self { direction: record.in_flight()?.direction, reference: record.reference.clone() })
    }
}

/// One record that was followed.
struct One {
    schedule: Option<ScheduleName>,
    followed: FollowResult,
    handoffs: Handoffs,
}

/// The result of following one record.
#[derive(Debug, Default)]
pub(crate) struct FollowResult {
    /// Whether nothing is in flight any more.
    pub ended: bool,
    /// What was reported.
    pub outcomes: Vec<Occurrence>,
    /// The record, if it was written.
    pub record: Option<Record>,
}

#[cfg(test)]
mod tests {
    use domain::{
        ResourceKind,
        record::{Ask, Phase},
        stop_method::StopMethod,
    };

    use transition::tests::{at, droplet};

    use super::*;

    #[test]
    fn each_look_costs_requests_a_few_by_a_list_if_there_is_no_room_for_each() {
        let stopping = droplet().asked(Direction::Stop, "19:00", Ask::Open).record;
        let records = |count: usize| {
            let ids = (1..=count).map(|id| format!("droplet/{id}").parse().unwrap());
            ids.map(|id| Record {
                reference: ResourceRef { id, ..stopping.reference.clone() },
                ..stopping.clone()
            })
            .collect::<Vec<_>>()
        };
        let lists = ListRequests::from([(ResourceKind::Droplet, 3)]);
        let cost = |count, is_busy, now| LookCost::of(&records(count), &lists, is_busy, at(now));
        let others = [(2, false), (2, true), (10, false), (10, true), (11, false)]
            .map(|(count, is_busy)| cost(count, is_busy, "19:00:29").whole());
        assert_eq!(others, [2, 2, 10, 3, 3]);
        // Their logs may be needed as well.
        assert_eq!(cost(10, true, "19:00:30").whole(), 3 + 10);
    }

    #[test]
    fn of_machines_that_are_hibernated_a_look_sees_as_many_as_it_has_room_for() {
        let stopping = droplet().in_flight(Direction::Stop, "19:00").record;
        let mut hibernating = stopping.clone();
        if let Phase::InFlight { transition } = &mut hibernating.phase {
            transition.method = StopMethod::Hibernate;
        }
        assert!(is_sighted(&hibernating) && !is_sighted(&stopping));
        let three = vec![hibernating; 3];
        let records = [three, vec![stopping]].concat();
        let looked_at = |room| {
            let (fit, left) = fitting(records.clone(), room);
            assert_eq!(fit.len() + left.len(), records.len());
            fit.len()
        };
        let two = SightRequests::FOLLOWING.for_machines(2);
        let rooms = [0, two - 1, two, u64::MAX];
        assert_eq!(rooms.map(looked_at), [1, 2, 3, 4]);
    }
}
