//! Events, sent to the targets of `[notify]`: each waits in the store until its target has accepted
//! it, for a day at most. And the heartbeat.

mod mail;
mod message;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use domain::{
    ResourceRef, ScheduleName, TargetName,
    configuration::{
        TokenReference,
        notify::{NotifyTarget, TargetKind},
    },
    text::one_line,
};
use environment::{
    BusEvent, Clock, Publish, Tokens,
    bus::{PublishError, Refusal},
    in_words,
};
use jiff::{SignedDuration, Timestamp};
use provider::secret_address;
use reqwest::{RequestBuilder, StatusCode, Url};
use secrecy::ExposeSecret as _;
use serde::Deserialize;
use standardwebhooks::Webhook;
use store::{FailingTarget, Store, StoreError, WaitingEvent};

use message::{Message, body};

/// For how long an event is sent again.
const SENT_FOR: SignedDuration = SignedDuration::from_hours(24);

/// How long a target may take to answer. It is less than the time in which the process has to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long an event waits after its first try. The wait doubles with each further one.
const FIRST_WAIT: SignedDuration = SignedDuration::from_mins(1);

/// How many times the wait doubles, up to about an hour.
const DOUBLINGS: u32 = 6;

/// The longest description of a failure, in characters.
const LONGEST_ERROR: usize = 300;

/// Why a target did not accept an event.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// It has ended: nothing more is sent to it.
    #[error("answered 410: it is gone for good")]
    Gone,
    /// The event is sent again.
    #[error("{0}")]
    NotAccepted(String),
}

impl SendError {
    fn of(what: &str, error: &(dyn std::error::Error + 'static)) -> Self {
        let words = format!("{what}: {}", in_words(error));
        Self::NotAccepted(one_line(&words, LONGEST_ERROR).into_owned())
    }
}

/// Sends events from the store.
#[derive(Debug)]
pub struct Notifier {
    store: Store,
    tokens: Tokens,
    http: reqwest::Client,
    /// Held while the events that wait are sent.
    at_work: tokio::sync::Mutex<()>,
    /// Whether the monitor did not accept the latest call.
    is_unheard: AtomicBool,
}

/// What the published form of an event says to this module.
#[derive(Deserialize)]
struct Published {
    #[serde(default)]
    schedule: Option<ScheduleName>,
    #[serde(default)]
    folded: bool,
    #[serde(default)]
    resource: Option<ResourceRef>,
    #[serde(default)]
    resources: Vec<serde_json::Value>,
    /// Of the resources, of which only the first are named.
    #[serde(default)]
    count: usize,
}

/// Adds events to those that wait, for each target that receives them.
impl Publish for Notifier {
    async fn publish(&self, events: &[BusEvent]) -> Result<Vec<Refusal>, PublishError> {
        let in_force = self.store.in_force().await.map_err(|error| PublishError(error.into()))?;
        let targets = &in_force.configuration.settings.notify;
        for event in events.iter().filter(|_| !targets.is_empty()) {
            let published: Published =
                serde_json::from_str(&event.detail).map_err(|error| PublishError(error.into()))?;
            let id = format!("evt_{}", uuid::Uuid::new_v4().simple());
            let owner_tag = in_force.configuration.settings.owner_tag.as_deref();
            let owners = self.owners(owner_tag, &published).await;
            let owners = owners.map_err(|error| PublishError(error.into()))?;
            for (name, target) in targets {
                let schedule = published.schedule.as_ref();
                let is_received = target.receives(event.event_type, schedule, owners.as_ref());
                if published.folded || !is_received {
                    continue;
                }
                let waiting = WaitingEvent {
                    target: name.clone(),
                    id: id.clone(),
                    at: event.at,
                    event_type: event.event_type,
                    detail: event.detail.clone(),
                    tries: 0,
                    retry_at: event.at,
                };
                let saved = self.store.save_waiting_event(&waiting).await;
                saved.map_err(|error| PublishError(error.into()))?;
            }
        }
        Ok(Vec::new())
    }
}

impl Notifier {
    pub fn new(store: Store) -> anyhow::Result<Self> {
        Ok(Self {
            store,
            tokens: Tokens::from_variables(),
            http: provider::http_client()?,
            at_work: tokio::sync::Mutex::default(),
            is_unheard: AtomicBool::default(),
        })
    }

    /// Returns the owners of the resources that an event is about; `None` if it is about none, or does
    /// not name them all, or if no tag says whose they are.
    async fn owners(
        &self,
        owner_tag: Option<&str>,
        published: &Published,
    ) -> Result<Option<BTreeSet<String>>, StoreError> {
        let several = published.resources.iter().filter_map(|one| {
            let reference = one["resource"].as_str().or(one.as_str());
            reference?.parse().ok()
        });
        let references: Vec<_> = published.resource.clone().into_iter().chain(several).collect();
        let is_cut = published.count > published.resources.len();
        let Some(tag) = owner_tag.filter(|_| !references.is_empty() && !is_cut) else {
            return Ok(None);
        };
        let records = self.store.records(&references).await?.read;
        let owners = records.iter().filter_map(|one| one.tag_value(tag));
        Ok(Some(owners.map(str::to_owned).collect()))
    }

    /// Sends the events that wait, unless that is under way, or the process is about to end.
    pub async fn send_waiting(&self, clock: &Clock) {
        let Ok(_at_work) = self.at_work.try_lock() else {
            return;
        };
        if let Err(error) = self.send_all(clock).await {
            tracing::error!("Could not send what waits: {}", in_words(&error));
        }
    }

    async fn send_all(&self, clock: &Clock) -> Result<(), StoreError> {
        let configuration = self.store.in_force().await?.configuration;
        let targets = &configuration.settings.notify;
        if targets.is_empty() {
            return Ok(());
        }
        let mut failing = self.store.failing_targets().await?.read;
        let mut waiting = BTreeMap::<_, Vec<_>>::new();
        for event in self.store.waiting_events().await?.read.into_values() {
            waiting.entry(event.target.clone()).or_default().push(event);
        }
        for (name, events) in waiting {
            let failing = failing.remove(&name);
            match targets.get(&name) {
                Some(target) if failing.as_ref().is_none_or(|failing| !failing.is_gone) => {
                    self.send_to(target, events, failing, clock).await?;
                }
                Some(_) | None => self.delete(&events).await?,
            }
        }
        Ok(())
    }

    /// Sends a target's events, the oldest first. After a failure, the others wait until the next
    /// time, and after a success none of them does.
    async fn send_to(
        &self,
        target: &NotifyTarget,
        events: Vec<WaitingEvent>,
        mut failing: Option<FailingTarget>,
        clock: &Clock,
    ) -> Result<(), StoreError> {
        let mut is_open = false;
        for (index, event) in events.iter().enumerate() {
            let now = clock.now();
            if clock.is_ending() {
                break;
            }
            if now.duration_since(event.at) >= SENT_FOR {
                let (id, target) = (&event.id, &event.target);
                tracing::error!("{target} has not accepted {id} for a day: it is given up");
                self.store.delete_waiting_event(event).await?;
                continue;
            }
            if !is_open && now < event.retry_at {
                continue;
            }
            match self.send(target, &Message::of(event), now).await {
                Ok(()) => {
                    self.store.delete_waiting_event(event).await?;
                    is_open = true;
                    if failing.take().is_some() {
                        self.store.delete_failing_target(&event.target).await?;
                    }
                }
                Err(error) => {
                    self.record_failure(event, failing, &error, now).await?;
                    if matches!(error, SendError::Gone) {
                        self.delete(&events[index..]).await?;
                    }
                    break;
                }
            }
        }
        Ok(())
    }

    async fn record_failure(
        &self,
        event: &WaitingEvent,
        failing: Option<FailingTarget>,
        error: &SendError,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (target, is_gone) = (event.target.clone(), matches!(error, SendError::Gone));
        if is_gone || failing.is_none() {
            tracing::warn!("{target} does not accept events: {error}");
        }
        let since = failing.map_or(now, |failing| failing.since);
        let failing = FailingTarget { target, since, error: error.to_string(), is_gone };
        self.store.save_failing_target(&failing).await?;
        let wait = FIRST_WAIT * (1 << event.tries.min(DOUBLINGS));
        let (tries, retry_at) = (event.tries + 1, now + wait);
        self.store.save_waiting_event(&WaitingEvent { tries, retry_at, ..event.clone() }).await
    }

    async fn delete(&self, events: &[WaitingEvent]) -> Result<(), StoreError> {
        for event in events {
            self.store.delete_waiting_event(event).await?;
        }
        Ok(())
    }

    /// Sends a test to a target. One that accepts it gets events again.
    pub async fn test(
        &self,
        name: &TargetName,
        target: &NotifyTarget,
        now: Timestamp,
    ) -> Result<Result<(), SendError>, StoreError> {
        let id = format!("evt_{}", uuid::Uuid::new_v4().simple());
        let sent = self.send(target, &Message::test(id, now), now).await;
        if sent.is_ok() {
            self.store.delete_failing_target(name).await?;
        }
        Ok(sent)
    }

    async fn send(
        &self,
        target: &NotifyTarget,
        message: &Message,
        now: Timestamp,
    ) -> Result<(), SendError> {
        if target.kind == TargetKind::Mail {
            let address = self.secret(&target.url).await?;
            return mail::send(address.expose_secret(), target, message).await;
        }
        let body = body(target.kind, message);
        let mut request = self.http.post(self.address(&target.url).await?);
        if let Some(secret) = &target.secret {
            let secret = self.secret(secret).await?;
            let what = "its secret is not one of Standard Webhooks (whsec_…)";
            let signature = Webhook::new(secret.expose_secret())
                .and_then(|key| key.sign(&message.id, now.as_second(), body.as_bytes()))
                .map_err(|_| SendError::NotAccepted(what.to_owned()))?;
            request = request
                .header("webhook-id", &message.id)
                .header("webhook-timestamp", now.as_second())
                .header("webhook-signature", signature);
        }
        answer(request.header("content-type", "application/json").body(body)).await
    }

    /// Calls the address of the monitor, if there is one, after a minute that was good or not.
    pub async fn beat(&self, is_good: bool) {
        let in_force = self.store.in_force().await;
        let heartbeat = in_force.map(|read| read.configuration.settings.heartbeat.clone());
        let Ok(Some(heartbeat)) = heartbeat else {
            return;
        };
        let called = self.call(&heartbeat, is_good).await;
        let was_unheard = self.is_unheard.swap(called.is_err(), Ordering::Relaxed);
        if let (Err(error), false) = (called, was_unheard) {
            tracing::warn!("The heartbeat is not accepted: {error}");
        }
    }

    async fn call(&self, heartbeat: &TokenReference, is_good: bool) -> Result<(), SendError> {
        let mut address = self.address(heartbeat).await?;
        if let (Ok(mut path), false) = (address.path_segments_mut(), is_good) {
            path.pop_if_empty().push("fail");
        }
        answer(self.http.get(address)).await
    }

    async fn address(&self, reference: &TokenReference) -> Result<Url, SendError> {
        let address = self.secret(reference).await?;
        let parsed = secret_address(address.expose_secret());
        parsed.map_err(|error| SendError::of("its address cannot be used", &error))
    }

    async fn secret(&self, reference: &TokenReference) -> Result<secrecy::SecretString, SendError> {
        let secret = self.tokens.token(reference).await;
        secret.map_err(|error| SendError::of("a secret cannot be read", &error))
    }
}

/// Sends a request. The address is left out of whatever goes wrong.
async fn answer(request: RequestBuilder) -> Result<(), SendError> {
    let answer = request.timeout(PATIENCE).send().await;
    match answer.map(|answer| answer.status()) {
        Ok(status) if status.is_success() => Ok(()),
        Ok(StatusCode::GONE) => Err(SendError::Gone),
        Ok(status) => Err(SendError::NotAccepted(format!("answered {}", status.as_u16()))),
        Err(error) => Err(SendError::of("no answer", &error.without_url())),
    }
}

#[cfg(test)]
mod tests;
