//! The records of one account that stop or start works on together.

use std::collections::BTreeSet;

use domain::{
    AccountName,
    configuration::Account,
    decision::{Decision, Due, judge},
    look::Look,
    membership::Subject,
    order::Order,
    pacing::ListRequests,
    record::{Direction, Rank, Record},
};
use jiff::Timestamp;
use provider::Client;
use transition::{
    methods::{Basis, Extent, NextStep, Reads, Sighted},
    plan::plan,
    view::{Observation, Plan, PlanContext, View},
};

use crate::{
    Context, account,
    budget::Budget,
    event::{Event, Occurrence},
    failure::ObservationError,
    observe::{
        look::{Looks, SharedLists},
        stop_target::Plans,
    },
};

/// What the records of one account are worked on with, together.
pub(super) struct Batch<'a> {
    pub(super) context: Context<'a>,
    pub(super) budget: Budget<'a>,
    pub(super) direction: Direction,
    pub(super) in_force: &'a store::InForce,
    /// What may have to go before these.
    pub(super) order: &'a Order<'a>,
    pub(super) account: &'a AccountName,
    pub(super) plans: Plans,
    pub(super) shared: SharedLists,
}

impl Batch<'_> {
    /// Looks at these records' resources, by a list if that is cheaper.
    pub(super) async fn looks<'c>(&'c self, client: &'c Client, records: &[Record]) -> Looks<'c> {
        // A single record is never worth a list.
        let lists = if records.len() > 1 {
            let state = account::state(self.context, self.account).await;
            state.lists().cloned().unwrap_or_default()
        } else {
            ListRequests::new()
        };
        self.looks_by(&lists, client, records).await
    }

    /// Does the same as [`Self::looks`], given what the lists take.
    pub(super) async fn looks_by<'c>(
        &'c self,
        lists: &ListRequests,
        client: &'c Client,
        records: &[Record],
    ) -> Looks<'c> {
        let listed = records.iter().filter(|one| Reads::of(one).sight != Sighted::Always);
        let ids: BTreeSet<_> = listed.filter_map(Record::present).cloned().collect();
        Looks::to_act(client, self.budget, &self.shared, &ids, lists).await
    }

    /// Reads what the plan needs besides the look, and plans the next step.
    pub(super) async fn plan(
        &self,
        client: &Client,
        record: &Record,
        look: &Look,
    ) -> Result<Plan, ObservationError> {
        let rules = self.in_force.rules();
        let now = self.context.clock.now();
        let verdict = judge(record, Subject::seen(record, &look.resource), rules, now);
        let policy = verdict.membership.policy(rules.configuration);
        let view = |look| View::new(record, Observation::of(look), &policy, self.plan_context());
        let reads = |look| NextStep::of(view(look), self.direction).reads();
        let mut inspected = None;
        let target = match self.direction {
            Direction::Stop => {
                if reads(look).basis == Basis::Surroundings && !shows_obstacles(look) {
                    let extent = Extent::Obstacles;
                    inspected = self.shared.sight(client, self.budget, record, extent).await?;
                }
                let view = view(inspected.as_ref().unwrap_or(look));
                self.plans.stop_target(client, self.context.store, view, &verdict).await?
            }
            Direction::Start => self.plans.way_back(client, record, &look.resource).await?,
        };
        let look = inspected.as_ref().unwrap_or(look);
        let reads = reads(look);
        let log = match reads.log {
            Some(since) => {
                let log = client.actions(&look.resource.id, since).await;
                log.map_err(|error| ObservationError::from(&error))?
            }
            None => Vec::new(),
        };
        let kept = record.hibernation.as_deref().filter(|_| reads.remains);
        let creates = match kept.and_then(|kept| kept.manifest.as_ref()) {
            Some(manifest) => {
                let account = rules.configuration.accounts.get(self.account);
                let key = account.and_then(Account::cloud);
                let key = key.and_then(|cloud| cloud.ssh_key.as_deref());
                let there = client.still_there(manifest, key).await;
                Some(there.map_err(|error| ObservationError::from(&error))?)
            }
            None => None,
        };
        let seen = Observation {
            refusal: target.refusal.as_deref(),
            log: &log,
            log_from: reads.log,
            target: target.size.as_ref(),
            ssh_key: target.ssh_key.as_deref(),
            creates: creates.as_ref(),
            ..Observation::of(look)
        };
        let plan_context = self.plan_context();
        // Reading the log and the plans took longer than a look is good for.
        if let Some(too_old) = ObservationError::too_old(look, plan_context.now) {
            return Err(too_old);
        }
        let mut plan = plan(self.direction, record, seen, plan_context);
        if let (Plan::Send(send), Decision::Act(due)) = (&mut plan, &verdict.decision) {
            send.events.extend(self.order_not_kept(record, due, plan_context.now));
        }
        Ok(plan)
    }

    /// Returns the event for a record that goes before what is to go first.
    fn order_not_kept(&self, record: &Record, due: &Due, now: Timestamp) -> Option<Event> {
        let overtaken = self.order.overtaken(record, due, now)?;
        Some(Event::OrderNotKept {
            direction: due.direction,
            reason: overtaken.in_words(now),
            commanded: due.handled.key.rank == Rank::Manual,
        })
    }

    fn plan_context(&self) -> PlanContext<'_> {
        PlanContext {
            rules: self.in_force.rules(),
            writer: self.context.writer,
            now: self.context.clock.now(),
        }
    }
}

/// Reports whether a look has shown what may be in the way of a deletion.
fn shows_obstacles(look: &Look) -> bool {
    let sight = look.sight.as_ref();
    let machine = sight.and_then(|sight| sight.machine.as_ref());
    machine.is_some_and(|machine| machine.around.is_some())
}

pub(super) fn outcomes(record: &Record, now: Timestamp, events: Vec<Event>) -> Vec<Occurrence> {
    events.into_iter().map(|event| Occurrence::of(record, now, event)).collect()
}
