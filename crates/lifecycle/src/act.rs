//! Stop and start: re-read, look, claim, send, note.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    AccountName, ResourceKind, ResourceRef,
    decision::{Decision, due_at, judge},
    membership::Subject,
    record::{Ask, Direction, Record, SEND_WINDOW},
    resource::Look,
};
use environment::in_words;
use futures_util::{StreamExt as _, stream};
use jiff::Timestamp;
use provider::{AT_ONCE, ChangeError, Client};
use store::StoreError;

use crate::{
    Context, Error, backoff,
    budget::Budget,
    looks::{self, ListRequests, Looks, NoLook, Plans},
    note::{self, Noted},
    outcome::{Answer, Event, Outcome, Report},
    plan::{Cut, Seen, Send, Setting, Step, Write, log_since, manner, plan},
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

/// Says what acting on these records would send, from a fresh look at each, and sends nothing.
pub(crate) async fn rehearse(
    budget: Budget<'_>,
    context: Context<'_>,
    direction: Direction,
    records: Vec<Record>,
    in_force: &store::InForce,
) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    for (account, records) in by_account(records) {
        let batch = Batch {
            context,
            budget,
            direction,
            in_force,
            account: &account,
            plans: Plans::default(),
        };
        outcomes.extend(batch.rehearse(records).await);
    }
    outcomes
}

pub(crate) fn by_account(
    records: impl IntoIterator<Item = Record>,
) -> BTreeMap<AccountName, Vec<Record>> {
    let mut by_account = BTreeMap::<AccountName, Vec<Record>>::new();
    for record in records {
        by_account
            .entry(record.reference.account.clone())
            .or_default()
            .push(record);
    }
    by_account
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
            direction == Direction::Stop
                && record.in_flight().is_some_and(|t| t.direction == direction)
                && record.request.as_ref().is_some_and(|request| {
                    request.graceful && matches!(request.ask, Ask::Accepted { .. })
                })
        }
    }
}

/// The records of one account, worked on together.
struct Batch<'a> {
    context: Context<'a>,
    budget: Budget<'a>,
    direction: Direction,
    in_force: &'a store::InForce,
    account: &'a AccountName,
    plans: Plans,
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

    async fn rehearse(&self, records: Vec<Record>) -> Vec<Outcome> {
        let configuration = &self.in_force.configuration;
        let client = self.context.providers.client(self.account, configuration);
        let client = match client.await {
            Ok(client) => client,
            Err(error) => {
                let reason = in_words(&error);
                let now = self.context.clock.now();
                let later = |record| outcomes(record, now, vec![later(&reason)]);
                return records.iter().flat_map(later).collect();
            }
        };
        let looks = self.looks(&client, &records).await;
        let told = stream::iter(records)
            .map(|record| self.rehearse_one(&client, record, &looks))
            .buffered(AT_ONCE)
            .collect::<Vec<_>>();
        told.await.into_iter().flatten().collect()
    }

    async fn rehearse_one(
        &self,
        client: &Client,
        record: Record,
        looks: &Looks<'_>,
    ) -> Vec<Outcome> {
        let events = match looks.of(&record.reference.id).await {
            Ok(Some(look)) => match self.step(client, &record, &look).await {
                Ok(step) => would(self.direction, step),
                Err(no_look) => vec![later(&no_look.words)],
            },
            Ok(None) => vec![later("the provider answers 404")],
            Err(no_look) => vec![later(&no_look.words)],
        };
        outcomes(&record, self.context.clock.now(), events)
    }

    /// Looks at these records' resources, by a list if that is the cheaper way.
    async fn looks<'c>(&'c self, client: &'c Client, records: &[Record]) -> Looks<'c> {
        let ids: BTreeSet<_> = records.iter().map(|r| r.reference.id.clone()).collect();
        // One alone is never worth a list.
        let requests = if ids.len() > 1 {
            list_requests(self.context, self.account).await
        } else {
            ListRequests::new()
        };
        Looks::to_act(client, self.budget, &ids, &requests).await
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
        if self.direction == Direction::Stop && record.kind() == ResourceKind::Database {
            // Before the look, which does not get younger.
            self.plans.ask(client).await;
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

    /// Reads what the plan needs besides the look, and plans.
    async fn step(&self, client: &Client, record: &Record, look: &Look) -> Result<Step, NoLook> {
        let rules = self.in_force.rules();
        let resource = &look.resource;
        let log = match log_since(record) {
            Some(since) => client
                .actions(&record.reference.id, since)
                .await
                .map_err(|error| NoLook::from(&error))?,
            None => Vec::new(),
        };
        let verdict = judge(
            record,
            Subject::seen(record, resource),
            rules,
            self.context.clock.now(),
        );
        let target = match self.direction {
            Direction::Stop => {
                let manner = manner(&verdict, rules);
                self.plans.stop_target(client, resource, &manner).await?
            }
            Direction::Start => None,
        };
        let seen = Seen {
            resource,
            requested_at: look.requested_at,
            log: &log,
            target: target.as_ref(),
        };
        let setting = Setting {
            rules,
            writer: self.context.writer,
            now: self.context.clock.now(),
        };
        // The log and the plans took longer than a look lasts.
        match NoLook::too_old(look, setting.now) {
            Some(too_old) => Err(too_old),
            None => Ok(plan(self.direction, record, seen, setting)),
        }
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

    async fn write(&self, write: Write, now: Timestamp) -> Result<Vec<Outcome>, Error> {
        let store = self.context.store;
        match store.commit(write.record, write.history.as_ref()).await {
            Ok(record) => Ok(self.context.told(outcomes(&record, now, write.events))),
            // Somebody else has it: what is still due is decided again at the next tick.
            Err(StoreError::Stale { .. }) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// The claim, the request, the note: in this order, each only after the one before.
    async fn send(&self, client: &Client, send: Send) -> Result<Vec<Outcome>, Error> {
        let Some(record) = self.claim(send.record, send.history.as_ref()).await? else {
            return Ok(Vec::new());
        };
        let now = self.context.clock.now();
        let permitted_at = record
            .permit
            .as_ref()
            .map_or(now, |permit| permit.until - domain::record::PERMIT);
        if now.duration_since(permitted_at) > SEND_WINDOW {
            return Ok(Vec::new());
        }
        let mut told = self.context.told(outcomes(&record, now, send.events));
        let answer = client.send(&send.change).await;
        let now = self.context.clock.now();
        if answer.as_ref().is_err_and(ChangeError::is_refused_token) {
            self.context.providers.forget(self.account);
        }
        let event = match note::meaning(&record, &answer) {
            Noted::Refused(reason) => Event::Refused {
                direction: self.direction,
                cause: record
                    .in_flight()
                    .map(|transition| transition.cause.clone()),
                reason,
            },
            Noted::Answer(answer) => self.asked(&record, &send.change, send.cut, answer),
        };
        let answered = Outcome::of(&record, now, event);
        let claimed = record.clone();
        let noted = note::write(
            self.context.store,
            record,
            send.cut,
            &answer,
            self.in_force.rules(),
            self.context.writer,
            now,
        );
        let noted = noted.await;
        told.extend(self.context.told(vec![answered]));
        if let Err(error) = noted {
            told.extend(self.context.failed(&claimed, &error));
        }
        Ok(told)
    }

    fn asked(&self, record: &Record, change: &provider::Change, cut: Cut, answer: Answer) -> Event {
        let request = change.to_string();
        match (cut, record.in_flight()) {
            (Cut::No, Some(transition)) => Event::Asked {
                direction: self.direction,
                cause: transition.cause.clone(),
                request,
                answer,
                saved: record.saved.clone(),
            },
            (Cut::Yes, _) | (Cut::No, None) => Event::Forced { request, answer },
        }
    }

    /// Writes the permit; none if another writer was there first.
    async fn claim(
        &self,
        record: Record,
        ended: Option<&store::HistoryEntry>,
    ) -> Result<Option<Record>, Error> {
        match self.context.store.commit(record, ended).await {
            Ok(record) => Ok(Some(record)),
            Err(StoreError::Stale { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn postpone_all(&self, records: Vec<Record>, reason: &NoLook) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        for record in records {
            let left = record.clone();
            let done = self.postpone(record, reason).await;
            outcomes.extend(done.unwrap_or_else(|error| self.context.failed(&left, &error)));
        }
        outcomes
    }

    /// A failure before any claim: due again later. A transition under way is looked at anyway.
    async fn postpone(&self, mut record: Record, reason: &NoLook) -> Result<Vec<Outcome>, Error> {
        let now = self.context.clock.now();
        if record.in_flight().is_some() {
            let (reference, words) = (&record.reference, &reason.words);
            tracing::warn!(resource.id = %reference, "Did nothing about {reference}: {words}");
            return Ok(Vec::new());
        }
        let repeated = record
            .last_error
            .as_deref()
            .is_some_and(|last| looks::is_same(last, &reason.words));
        let rules = self.in_force.rules();
        let edge = judge(&record, Subject::recorded(&record), rules, now).edge;
        let edge = edge.map(|edge| edge.key);
        if record.failing != edge {
            record.failing = edge;
            record.attempts = 0;
        }
        record.attempts += 1;
        // A token may be replaced at any minute.
        let attempts = if reason.token_refused || reason.no_token {
            1
        } else {
            record.attempts
        };
        record.retry_at = Some(backoff::retry_at(now, attempts, reason.retry_after));
        record.last_error = Some(reason.words.clone());
        record.due_at = due_at(&record, self.in_force.rules(), now);
        let event = Event::Postponed {
            reason: reason.words.clone(),
            token_refused: reason.token_refused,
            repeated,
        };
        let write = Write {
            record,
            history: None,
            events: vec![event],
        };
        self.write(write, now).await
    }
}

/// What a step would lead to, in events that promise nothing.
fn would(direction: Direction, step: Step) -> Vec<Event> {
    match step {
        Step::Leave => vec![later("something is under way already")],
        Step::Postpone(words) => vec![later(&words)],
        Step::Write(write) => write.events,
        Step::Send(send) => {
            let would = Event::WouldAsk {
                direction,
                request: send.change.to_string(),
                saved: send.record.saved,
            };
            send.events.into_iter().chain([would]).collect()
        }
    }
}

fn later(reason: &str) -> Event {
    Event::postponed(reason)
}

fn outcomes(record: &Record, now: Timestamp, events: Vec<Event>) -> Vec<Outcome> {
    events
        .into_iter()
        .map(|event| Outcome::of(record, now, event))
        .collect()
}

/// How many requests the lists of an account took the last time. It is a hint: a list of which
/// nothing is known counts as one page.
pub(crate) async fn list_requests(context: Context<'_>, account: &AccountName) -> ListRequests {
    match context.store.account_states().await {
        Ok(mut states) => {
            let cost = states.read.remove(account).and_then(|state| state.cost);
            cost.map(|cost| cost.requests).unwrap_or_default()
        }
        Err(error) => {
            let reason = in_words(&error);
            tracing::warn!(account = %account, "What a list of {account} costs is unknown: {reason}");
            ListRequests::new()
        }
    }
}

/// Keeps what the provider said of the account's allowance, for dispatch to pace by. It is a hint:
/// what it is about does not fail with it.
pub(crate) async fn save_rate(context: &Context<'_>, account: &AccountName, client: &Client) {
    let Some(rate) = client.rate() else {
        return;
    };
    let rate = store::Rate {
        remaining: rate.remaining,
        at: context.clock.now(),
    };
    if let Err(error) = context.store.save_rate(account, rate).await {
        let reason = in_words(&error);
        tracing::warn!(account = %account, "Left the rate of {account} alone: {reason}");
    }
}
