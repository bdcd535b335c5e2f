//! Stop and start: re-read, look, claim, send, note.

use std::collections::BTreeSet;

use domain::{
    ResourceRef,
    decision::{Decision, judge},
    membership::Subject,
    record::{Ask, Direction, Record},
};
use futures_util::{StreamExt as _, stream};
use jiff::Timestamp;
use provider::{AT_ONCE, Client};

use crate::{
    Context, Error,
    account::{by_account, save_rate},
    act::batch::Batch,
    budget::Budget,
    event::Outcome,
    failure::NoLook,
    observe::{look::Looks, stop_target::Plans},
    report::Report,
    transition::step::Step,
};

/// Does in one direction what is due for these resources. The list is a hint: what is due is
/// decided anew for each, so that an event that comes twice, late or stale does no harm.
pub async fn act(
    context: Context<'_>,
    direction: Direction,
    references: &[ResourceRef],
) -> Result<Report, Error> {
    act_within(Budget::begin(context.clock), context, direction, references).await
}

/// [`act`], in what is left of an invocation's time.
pub(crate) async fn act_within(
    budget: Budget<'_>,
    context: Context<'_>,
    direction: Direction,
    references: &[ResourceRef],
) -> Result<Report, Error> {
    let references: BTreeSet<_> = references.iter().cloned().collect();
    let references: Vec<_> = references.into_iter().collect();
    let mut report = Report::default();
    let records = report.readable(context.store.records(&references).await?);
    let in_force = context.store.in_force().await?;
    let now = context.clock.now();
    let rules = in_force.rules();
    let needed = records.into_iter();
    let needed = needed.filter(|record| may_need(record, direction, rules, now));
    for (account, records) in by_account(needed) {
        let batch = Batch {
            context,
            budget,
            direction,
            in_force: &in_force,
            account: &account,
            plans: Plans::default(),
        };
        report.outcomes.extend(batch.act(records).await);
    }
    Ok(report)
}

/// Whether a look is worth it, by the record alone.
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
        // The hard cut: everything about it is judged on the look.
        Decision::Leave(_) => {
            record.under_way_towards(direction).is_some()
                && record.request.as_ref().is_some_and(|request| {
                    request.graceful && matches!(request.ask, Ask::Accepted { .. })
                })
        }
    }
}

impl Batch<'_> {
    async fn act(&self, records: Vec<Record>) -> Vec<Outcome> {
        let configuration = &self.in_force.configuration;
        let client = self.context.providers.client(self.account, configuration);
        let client = match client.await {
            Ok(client) => client,
            Err(error) => {
                return self.postpone_all(records, &NoLook::from(&error)).await;
            }
        };
        let looks = self.looks(&client, &records).await;
        let steps: Vec<_> = stream::iter(looks.in_order(records))
            .map(|record| async {
                let left = record.clone();
                let acted = self.act_on(&client, record, &looks).await;
                acted.unwrap_or_else(|error| Some(self.context.failed(&left, &error)))
            })
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        save_rate(&self.context, self.account, &client).await;
        let left = steps.iter().filter(|step| step.is_none()).count();
        if left > 0 {
            let account = self.account;
            tracing::warn!(
                account = %account,
                "Left {left} of {account} to the next tick: the provider answers too slowly for more"
            );
        }
        steps.into_iter().flatten().flatten().collect()
    }

    /// Acts on one record; none if there is no time left to begin with it.
    async fn act_on(
        &self,
        client: &Client,
        record: Record,
        looks: &Looks<'_>,
    ) -> Result<Option<Vec<Outcome>>, Error> {
        if self.budget.is_over() {
            return Ok(None);
        }
        if self.direction == Direction::Stop {
            // Before the look, which does not get younger.
            let configuration = &self.in_force.configuration;
            self.plans.ask(client, record.kind(), configuration).await;
        }
        let acted = match looks.of(&record.reference.id).await {
            Ok(Some(look)) => match self.step(client, &record, &look).await {
                Ok(step) => self.carry_out(client, record, step).await,
                Err(no_look) => self.postpone(record, &no_look).await,
            },
            Ok(None) => {
                let missing = NoLook::of("the provider answers 404");
                self.postpone(record, &missing).await
            }
            Err(no_look) => {
                if no_look.token_refused {
                    self.context.providers.forget(self.account);
                }
                self.postpone(record, &no_look).await
            }
        };
        acted.map(Some)
    }

    async fn carry_out(
        &self,
        client: &Client,
        record: Record,
        step: Step,
    ) -> Result<Vec<Outcome>, Error> {
        match step {
            Step::Leave => Ok(Vec::new()),
            Step::Postpone(words) => self.postpone(record, &NoLook::of(words)).await,
            Step::Write(write) => self.write(*write, self.context.clock.now()).await,
            Step::Send(send) => self.send(client, *send).await,
        }
    }
}
