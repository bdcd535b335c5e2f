//! The writes of stop and start, and the requests that they permit: claim, send, record the answer.

use domain::{
    decision::{Rules, due_at, judge},
    membership::Subject,
    record::{Forced, Record, Writer},
    resource::{Resource, SavedState},
    step::Step,
};
use jiff::Timestamp;
use provider::{ChangeError, Client};
use store::{Store, StoreError};
use transition::{
    answer::{AnswerEffect, apply, effect_of},
    backoff,
    failure::Answered,
    view::{Send, Withheld, Write},
};

use crate::{
    Error,
    act::batch::{Batch, outcomes},
    event::{Answer, Event, Occurrence},
    failure::{ObservationError, of_step},
    report::reread,
};

/// How many times an answer is applied to a record that others change meanwhile.
const TRIES: usize = 5;

impl Batch<'_> {
    pub(super) async fn write(
        &self,
        write: Write,
        now: Timestamp,
    ) -> Result<Vec<Occurrence>, Error> {
        let store = self.context.store;
        match store.commit(write.record, write.history.as_ref()).await {
            Ok(record) => Ok(self.context.report(outcomes(&record, now, write.events))),
            // Another writer was first: what is still due is decided again at the next tick.
            Err(StoreError::Stale { .. }) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes what observe mode does, and reports what would be sent.
    pub(super) async fn withhold(
        &self,
        client: &Client,
        withheld: Withheld,
        now: Timestamp,
    ) -> Result<Vec<Occurrence>, Error> {
        let Withheld { mut write, resource, step, saved } = withheld;
        write.events.push(self.would(client, &resource, &step, saved));
        self.write(write, now).await
    }

    /// Returns what would be sent, as an event that promises nothing.
    pub(super) fn would(
        &self,
        client: &Client,
        resource: &Resource,
        step: &Step,
        saved: Option<SavedState>,
    ) -> Event {
        Event::WouldAsk { direction: self.direction, request: client.shown(resource, step), saved }
    }

    /// Claims, sends, and records the answer: in this order, each only after the one before.
    pub(super) async fn send(&self, client: &Client, send: Send) -> Result<Vec<Occurrence>, Error> {
        let Some(record) = self.claim(send.record, send.history.as_ref()).await? else {
            return Ok(Vec::new());
        };
        let now = self.context.clock.now();
        let Some(request) = record.request.as_ref() else { return Ok(Vec::new()) };
        let step = request.permitted().clone();
        let permitted_at =
            record.permit.as_ref().map_or(now, |permit| permit.until - domain::record::PERMIT);
        if now.duration_since(permitted_at) > step.facts().fresh_for {
            return Ok(Vec::new());
        }
        let mut shown = self.context.report(outcomes(&record, now, send.events));
        let answer = client.send(&send.resource, &step).await;
        let now = self.context.clock.now();
        if answer.as_ref().is_err_and(ChangeError::is_about_token) {
            self.context.providers.forget(self.account);
        }
        let answer = answer.map_err(|error| Box::new(of_step(&error)));
        let event = match effect_of(&record, &answer) {
            AnswerEffect::Refused(reason) => Event::Refused {
                direction: self.direction,
                cause: record.in_flight().map(|transition| transition.cause.clone()),
                reason,
            },
            AnswerEffect::Answer(answer) => {
                self.asked(&record, client.shown(&send.resource, &step), answer)
            }
        };
        let answered = Occurrence::of(&record, now, event);
        let claimed = record.clone();
        let noted = write(
            self.context.store,
            record,
            &answer,
            self.in_force.rules(),
            self.context.writer,
            now,
        );
        let noted = noted.await;
        shown.extend(self.context.report(vec![answered]));
        if let Err(error) = noted {
            shown.extend(self.context.report_failure(&claimed, &error));
        }
        Ok(shown)
    }

    fn asked(&self, record: &Record, request: String, answer: Answer) -> Event {
        let cuts = record.request.as_ref().is_some_and(|one| one.forced == Forced::Intended);
        match record.in_flight().filter(|_| !cuts) {
            Some(transition) => Event::Asked {
                direction: self.direction,
                cause: transition.cause.clone(),
                request,
                answer,
                saved: record.saved.clone(),
            },
            None => Event::Forced { request, answer },
        }
    }

    /// Writes the permit; `None` if another writer was first.
    async fn claim(
        &self,
        record: Record,
        ended: Option<&domain::history::HistoryEntry>,
    ) -> Result<Option<Record>, Error> {
        match self.context.store.commit(record, ended).await {
            Ok(record) => Ok(Some(record)),
            Err(StoreError::Stale { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) async fn postpone_all(
        &self,
        records: Vec<Record>,
        reason: &ObservationError,
    ) -> Vec<Occurrence> {
        let mut outcomes = Vec::new();
        for record in records {
            let left = record.clone();
            let done = self.postpone(record, reason).await;
            outcomes
                .extend(done.unwrap_or_else(|error| self.context.report_failure(&left, &error)));
        }
        outcomes
    }

    /// Handles a failure before any request: due again later. What is in flight is looked at anyway,
    /// and its next request waits.
    pub(super) async fn postpone(
        &self,
        mut record: Record,
        failure: &ObservationError,
    ) -> Result<Vec<Occurrence>, Error> {
        let now = self.context.clock.now();
        let last = record.last_error.as_ref();
        let repeated = last.is_some_and(|last| last.eq_ignoring_request(&failure.reason));
        let rules = self.in_force.rules();
        let edge = judge(&record, Subject::recorded(&record), rules, now).edge;
        let edge = edge.map(|edge| edge.key);
        if record.failing != edge {
            record.failing = edge;
            record.attempts = 0;
        }
        record.attempts += 1;
        let attempts = if failure.ends_soon() { 1 } else { record.attempts };
        record.retry_at = Some(backoff::retry_at(now, attempts, failure.retry_after));
        record.last_error = Some(failure.reason.clone());
        record.due_at = due_at(&record, self.in_force.rules(), now);
        let event = Event::Postponed {
            reason: failure.reason.clone(),
            token_refused: failure.login_refused(),
            repeated,
        };
        let write = Write { record, history: None, events: vec![event] };
        self.write(write, now).await
    }
}

/// Writes an answer into the record that was `claimed` for it, as long as the permit still belongs
/// to its writer.
pub(crate) async fn write(
    store: &Store,
    claimed: Record,
    answer: &Answered,
    rules: Rules<'_>,
    writer: &Writer,
    now: Timestamp,
) -> Result<(), StoreError> {
    let reference = claimed.reference.clone();
    let mut base = Some(claimed);
    for _ in 0..TRIES {
        let Some(mut record) = base.filter(|record| permits(record, writer)) else {
            return Ok(());
        };
        let ended = apply(&mut record, answer, now);
        record.due_at = due_at(&record, rules, now);
        match store.commit(record, ended.as_ref()).await {
            Ok(_) => return Ok(()),
            Err(StoreError::Stale { .. }) => base = reread(store, &reference).await?,
            Err(error) => return Err(error),
        }
    }
    tracing::warn!(%reference, "did not record an answer: the record changed at every try");
    Ok(())
}

fn permits(record: &Record, writer: &Writer) -> bool {
    record.permit.as_ref().is_some_and(|permit| permit.writer == *writer)
}
