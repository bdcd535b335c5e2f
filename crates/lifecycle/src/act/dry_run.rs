//! What a command would send, without sending it.

use domain::{
    order::Order,
    record::{Direction, Record, Request},
};
use environment::in_words;
use futures_util::{StreamExt as _, stream};
use provider::{AT_ONCE, Client};
use transition::view::{Plan, Withheld};

use crate::{
    Context, Error,
    account::by_account,
    act::{
        batch::{Batch, outcomes},
        pace::may_read,
    },
    budget::Budget,
    event::{Event, Occurrence},
    observe::{
        look::{Looks, SharedLists},
        stop_target::Plans,
    },
};

/// Reports what acting on these records would send, from a fresh look at each, and sends nothing.
pub(crate) async fn dry_run(
    budget: Budget<'_>,
    context: Context<'_>,
    direction: Direction,
    records: Vec<Record>,
    in_force: &store::InForce,
) -> Result<Vec<Occurrence>, Error> {
    let mut outcomes = Vec::new();
    let others = context.store.in_order_with(&records, in_force).await?;
    let order = Order::of(&others, in_force.rules());
    for (account, records) in by_account(records) {
        let batch = Batch {
            context,
            budget,
            direction,
            in_force,
            order: &order,
            account: &account,
            plans: Plans::default(),
            shared: SharedLists::default(),
        };
        outcomes.extend(batch.dry_run(records).await);
    }
    Ok(outcomes)
}

impl Batch<'_> {
    async fn dry_run(&self, records: Vec<Record>) -> Vec<Occurrence> {
        let configuration = &self.in_force.configuration;
        let client = self.context.providers.client(self.account, configuration);
        let client = match client.await {
            Ok(client) => client,
            Err(error) => {
                let reason = in_words(&error);
                let now = self.context.clock.now();
                let later = |record| outcomes(record, now, vec![Event::postponed(&*reason)]);
                return records.iter().flat_map(later).collect();
            }
        };
        let looks = self.looks(&client, &records).await;
        let shown = stream::iter(records)
            .map(|record| self.dry_run_one(&client, record, &looks))
            .buffered(AT_ONCE)
            .collect::<Vec<_>>();
        shown.await.into_iter().flatten().collect()
    }

    async fn dry_run_one(
        &self,
        client: &Client,
        record: Record,
        looks: &Looks<'_>,
    ) -> Vec<Occurrence> {
        let reads = may_read(&record, self.direction, &self.in_force.configuration);
        let events = match looks.of(&record, reads).await {
            Ok(Some(look)) => match self.plan(client, &record, &look).await {
                Ok(plan) => self.foresee(client, plan),
                Err(failure) => vec![Event::postponed(failure.reason)],
            },
            Ok(None) => vec![Event::postponed("the provider answers 404")],
            Err(failure) => vec![Event::postponed(failure.reason)],
        };
        outcomes(&record, self.context.clock.now(), events)
    }

    /// Returns what a plan would lead to, as events that promise nothing.
    fn foresee(&self, client: &Client, plan: Plan) -> Vec<Event> {
        match plan {
            Plan::Leave => vec![Event::postponed("something is under way already")],
            Plan::Postpone(words) => vec![Event::postponed(words)],
            Plan::Write(write) => write.events,
            Plan::Withhold(withheld) => {
                let Withheld { write, resource, step, saved } = *withheld;
                let would = self.would(client, &resource, &step, saved);
                write.events.into_iter().chain([would]).collect()
            }
            Plan::Send(send) => {
                let step = send.record.request.as_ref().map(Request::permitted);
                let saved = send.record.saved.clone();
                let would = step.map(|step| self.would(client, &send.resource, step, saved));
                send.events.into_iter().chain(would).collect()
            }
        }
    }
}
