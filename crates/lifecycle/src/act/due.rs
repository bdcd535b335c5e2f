//! Stop and start: re-read, look, claim, send, record.

use std::collections::BTreeSet;

use domain::{
    ResourceRef,
    decision::{Decision, judge},
    membership::Subject,
    order::Order,
    record::{Ask, Direction, Record},
};
use futures_util::{StreamExt as _, stream};
use jiff::Timestamp;
use provider::{AT_ONCE, Client};
use transition::{methods::Basis, view::Plan};

use crate::{
    Context, Error,
    account::by_account,
    act::{
        batch::Batch,
        pace::{Pace, Room, may_read},
    },
    budget::Budget,
    event::Occurrence,
    failure::ObservationError,
    observe::{
        look::{Looks, SharedLists},
        stop_target::Plans,
    },
    report::Report,
};

/// Carries out in one direction what is due for these resources. The list is a hint: what is due is
/// decided again for each, so an event that comes twice, late or stale does no harm.
pub async fn act(
    context: Context<'_>,
    direction: Direction,
    references: &[ResourceRef],
) -> Result<Report, Error> {
    act_within(Budget::begin(context.clock), context, direction, references).await
}

/// Does the same as [`act`], in what is left of an invocation's time.
pub(crate) async fn act_within(
    budget: Budget<'_>,
    context: Context<'_>,
    direction: Direction,
    references: &[ResourceRef],
) -> Result<Report, Error> {
    if references.is_empty() {
        return Ok(Report::default());
    }
    let mut named = BTreeSet::new();
    let references = references.iter().filter(|reference| named.insert(*reference));
    let references: Vec<_> = references.cloned().collect();
    let mut report = Report::default();
    let records = report.readable(context.store.records(&references).await?);
    let in_force = context.store.in_force().await?;
    let now = context.clock.now();
    let rules = in_force.rules();
    let needed = records.into_iter();
    let needed = needed.filter(|record| may_need(record, direction, rules, now));
    let needed: Vec<_> = needed.collect();
    let others = context.store.in_order_with(&needed, &in_force).await?;
    let order = Order::of(&others, rules);
    for (account, records) in by_account(needed) {
        let batch = Batch {
            context,
            budget,
            direction,
            in_force: &in_force,
            order: &order,
            account: &account,
            plans: Plans::default(),
            shared: SharedLists::default(),
        };
        report.outcomes.extend(batch.act(records).await);
    }
    Ok(report)
}

/// How many are acted on before the looks at the rest are repeated, if too old by then.
const AT_A_TIME: usize = 100;

/// The result of acting on some records.
#[derive(Default)]
struct Done {
    outcomes: Vec<Occurrence>,
    /// The records that there was no time left to start on.
    left: Vec<Record>,
}

/// Reports whether a look is worth it, judging by the record alone.
fn may_need(
    record: &Record,
    direction: Direction,
    rules: domain::decision::Rules<'_>,
    now: Timestamp,
) -> bool {
    if record.permit_is_open(now) {
        return false;
    }
    match judge(record, Subject::recorded(record), rules, now).decision {
        Decision::Act(due) => due.direction == direction,
        Decision::AskAgain(towards) => towards == direction,
        // The hard cut: everything about it is judged by the look.
        Decision::Leave(_) => {
            record.under_way_towards(direction).is_some()
                && rules.configuration.has_power_cut(&record.reference)
                && record.request.as_ref().is_some_and(|request| {
                    request.is_graceful() && matches!(request.ask, Ask::Accepted { .. })
                })
        }
    }
}

impl Batch<'_> {
    async fn act(&self, records: Vec<Record>) -> Vec<Occurrence> {
        let configuration = &self.in_force.configuration;
        let client = self.context.providers.client(self.account, configuration);
        let client = match client.await {
            Ok(client) => client.counting(),
            Err(error) => {
                return self.postpone_all(records, &ObservationError::from(&error)).await;
            }
        };
        let (outcomes, left) = self.act_in_turn(&client, records).await;
        if left > 0 {
            let account = self.account;
            tracing::warn!(
                account = %account,
                "Left {left} of {account} to the next tick: the provider allows no more, or answers \
                 too slowly"
            );
        }
        outcomes
    }

    /// Acts on as many as time and the account's rate limit permit; returns how many are left.
    async fn act_in_turn(
        &self,
        client: &Client,
        mut records: Vec<Record>,
    ) -> (Vec<Occurrence>, usize) {
        let (context, configuration) = (self.context, &self.in_force.configuration);
        let pace = Pace::begin(context, self.account, configuration, self.direction, &records);
        let mut pace = pace.await;
        let sent = || client.requests();
        let lists = pace.state().lists().cloned().unwrap_or_default();
        let mut outcomes = Vec::new();
        let mut looks = None::<Looks<'_>>;
        pace.sort(&mut records);
        while !records.is_empty() && !self.budget.is_over() {
            let now = context.clock.now();
            pace.measure(client, sent(), now);
            let count = match pace.room(&records, client, sent(), now) {
                Room::For(count) => count.min(AT_A_TIME),
                Room::From(at) if at < self.budget.until() => {
                    let wait = at.duration_since(now).unsigned_abs();
                    context.clock.sleep(wait).await;
                    continue;
                }
                Room::From(_) | Room::None => break,
            };
            if !pace.plan(&records[..count], sent(), self.budget).await {
                continue;
            }
            if looks.as_ref().is_none_or(|looks| looks.are_old(now)) {
                let taken = self.looks_by(&lists, client, &records).await;
                records = taken.in_order(records);
                pace.sort(&mut records);
                looks = Some(taken);
                // The looks have shown what others take.
                continue;
            }
            let Some(looks) = &looks else { break };
            let rest = records.split_off(count);
            let now_on = std::mem::replace(&mut records, rest);
            let done = self.act_at_once(client, now_on, looks).await;
            records.splice(..0, done.left);
            outcomes.extend(done.outcomes);
            if !records.is_empty() {
                // The next tick may come before the end.
                pace.note(client, sent()).await;
            }
        }
        if sent() > 0 {
            pace.note(client, sent()).await;
        }
        (outcomes, records.len())
    }

    /// Acts on these records, several at a time.
    async fn act_at_once(&self, client: &Client, records: Vec<Record>, looks: &Looks<'_>) -> Done {
        let mut done = Done::default();
        let steps = stream::iter(records)
            .map(|record| async {
                let left = record.clone();
                let acted = self.act_on(client, record, looks).await;
                let failed = |error| Some(self.context.report_failure(&left, &error));
                acted.unwrap_or_else(failed).ok_or(left)
            })
            .buffer_unordered(AT_ONCE);
        let mut steps = std::pin::pin!(steps);
        while let Some(step) = steps.next().await {
            match step {
                Ok(outcomes) => done.outcomes.extend(outcomes),
                Err(left) => done.left.push(left),
            }
        }
        done
    }

    /// Acts on one record. Returns `None` if there is no time left to start.
    async fn act_on(
        &self,
        client: &Client,
        record: Record,
        looks: &Looks<'_>,
    ) -> Result<Option<Vec<Occurrence>>, Error> {
        if self.budget.is_over() {
            return Ok(None);
        }
        // Before the look, which only gets older.
        let reads = may_read(&record, self.direction, &self.in_force.configuration);
        if reads.basis != Basis::Itself {
            self.plans.ask(client, record.kind()).await;
        }
        let acted = match looks.of(&record, reads).await {
            Ok(Some(look)) => match self.plan(client, &record, &look).await {
                Ok(plan) => self.carry_out(client, record, plan).await,
                Err(failure) => self.postpone(record, &failure).await,
            },
            Ok(None) => {
                // The token may be another project's, and its own be in its place by now.
                self.context.providers.forget(self.account);
                let missing = ObservationError::of("the provider answers 404");
                self.postpone(record, &missing).await
            }
            Err(failure) => {
                if failure.token_refused() {
                    self.context.providers.forget(self.account);
                }
                self.postpone(record, &failure).await
            }
        };
        acted.map(Some)
    }

    async fn carry_out(
        &self,
        client: &Client,
        record: Record,
        plan: Plan,
    ) -> Result<Vec<Occurrence>, Error> {
        let now = self.context.clock.now();
        match plan {
            Plan::Leave => Ok(Vec::new()),
            Plan::Postpone(words) => self.postpone(record, &ObservationError::of(words)).await,
            Plan::Write(write) => self.write(*write, now).await,
            Plan::Withhold(withheld) => self.withhold(client, *withheld, now).await,
            Plan::Send(send) => self.send(client, *send).await,
        }
    }
}
