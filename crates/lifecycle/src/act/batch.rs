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
    stop_method::StopMethod,
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
        look::{Extent, LookResult, Looks, SharedLists},
        stop_target::{Hibernates, Plans, is_to_hibernate},
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

    /// Looks at one resource before its next step is planned.
    pub(super) async fn look(
        &self,
        client: &Client,
        record: &Record,
        looks: &Looks<'_>,
    ) -> LookResult {
        let stop = record.under_way_towards(Direction::Stop);
        let hibernates = stop.is_some_and(|stop| stop.method == StopMethod::Hibernate);
        let may_delete = self.direction == Direction::Stop && record.wants_next_step();
        if hibernates && may_delete {
            self.inspected(client, record).await
        } else {
            looks.of(record).await
        }
    }

    /// Looks at a machine that may be deleted, with whatever may be in the way of that.
    async fn inspected(&self, client: &Client, record: &Record) -> LookResult {
        self.shared.sight(client, self.budget, record, Extent::Obstacles).await
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
        let mut inspected = None;
        let target = match self.direction {
            Direction::Stop => {
                let policy = verdict.membership.policy(rules.configuration);
                if is_to_hibernate(record, &policy) {
                    let whether = Hibernates::of(record, look, rules);
                    if whether == Hibernates::IfNothingIsInTheWay && !shows_obstacles(look) {
                        inspected = self.inspected(client, record).await?;
                    }
                    let target = self.plans.to_hibernate(
                        (client, self.context.store),
                        (record, inspected.as_ref().unwrap_or(look)),
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
        let look = inspected.as_ref().unwrap_or(look);
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

/// Reports whether a look has shown what may be in the way of a deletion.
fn shows_obstacles(look: &Look) -> bool {
    let sight = look.sight.as_ref();
    let machine = sight.and_then(|sight| sight.machine.as_ref());
    machine.is_some_and(|machine| machine.around.is_some())
}

/// Reports whether there is a machine whose log can be read.
fn is_there(look: &Look) -> bool {
    let sight = look.sight.as_ref();
    sight.is_none_or(|sight| sight.machine.is_some())
}

pub(super) fn outcomes(record: &Record, now: Timestamp, events: Vec<Event>) -> Vec<Outcome> {
    events.into_iter().map(|event| Outcome::of(record, now, event)).collect()
}
