//! The records of one account that stop or start works on together.

use std::collections::BTreeSet;

use domain::{
    AccountName,
    configuration::Account,
    decision::judge,
    look::Look,
    membership::Subject,
    pacing::ListRequests,
    record::{Direction, Record},
};
use jiff::Timestamp;
use provider::Client;
use transition::{
    log::log_from,
    methods::hibernate,
    plan::plan,
    view::{Observation, Plan, PlanContext},
};

use crate::{
    Context, account,
    budget::Budget,
    event::{Event, Outcome},
    failure::ObservationError,
    observe::{
        look::{Attached, Looks, SharedLists},
        stop_target::{Plans, is_to_hibernate},
    },
};

/// What the records of one account are worked on with, together.
pub(super) struct Batch<'a> {
    pub(super) context: Context<'a>,
    pub(super) budget: Budget<'a>,
    pub(super) direction: Direction,
    pub(super) in_force: &'a store::InForce,
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
        let listed = records.iter().filter(|record| !record.needs_sight());
        let ids: BTreeSet<_> = listed.filter_map(Record::present).cloned().collect();
        Looks::to_act(client, (self.budget, &self.shared), &ids, lists).await
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
        let target = match self.direction {
            Direction::Stop => {
                let policy = verdict.membership.policy(rules.configuration);
                if is_to_hibernate(record, &policy) {
                    let (_, sharing) = self.shared.by(client, now);
                    let target = self.plans.to_hibernate(
                        (&sharing, self.context.store),
                        (record, look),
                        &verdict,
                        rules,
                    );
                    target.await?
                } else {
                    let rules = (&policy, rules.configuration);
                    let target = self.plans.stop_target(client, record, &look.resource, rules);
                    target.await?
                }
            }
            Direction::Start => self.plans.way_back(client, record, &look.resource).await?,
        };
        // A machine that is to be deleted is looked at again, last of all.
        let looked_again = if target.ssh_key.is_some() {
            let sight = self.shared.sight(client, self.budget, record, Attached::Read);
            sight.await?
        } else {
            None
        };
        let look = looked_again.as_ref().unwrap_or(look);
        let log_from = log_from(record).filter(|_| is_there(look));
        let log = match log_from {
            Some(since) => {
                let log = client.actions(&look.resource.id, since).await;
                log.map_err(|error| ObservationError::from(&error))?
            }
            None => Vec::new(),
        };
        let creates = match hibernate::refused_creation(record) {
            Some(manifest) if self.direction == Direction::Start => {
                let account = rules.configuration.accounts.get(self.account);
                let key = account.and_then(Account::cloud);
                let key = key.and_then(|cloud| cloud.ssh_key.as_deref());
                let there = client.still_there(manifest, key).await;
                Some(there.map_err(|error| ObservationError::from(&error))?)
            }
            Some(_) | None => None,
        };
        let seen = Observation {
            refusal: target.refusal.as_deref(),
            log: &log,
            log_from,
            target: target.size.as_ref(),
            ssh_key: target.ssh_key.as_deref(),
            creates: creates.as_ref(),
            ..Observation::of(look)
        };
        let plan_context =
            PlanContext { rules, writer: self.context.writer, now: self.context.clock.now() };
        // Reading the log and the plans took longer than a look is good for.
        match ObservationError::too_old(look, plan_context.now) {
            Some(too_old) => Err(too_old),
            None => Ok(plan(self.direction, record, seen, plan_context)),
        }
    }
}

/// Reports whether there is a machine whose log can be read.
fn is_there(look: &Look) -> bool {
    let sight = look.sight.as_ref();
    sight.is_none_or(|sight| sight.machine.is_some())
}

pub(super) fn outcomes(record: &Record, now: Timestamp, events: Vec<Event>) -> Vec<Outcome> {
    events.into_iter().map(|event| Outcome::of(record, now, event)).collect()
}
