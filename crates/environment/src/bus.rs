//! Events, published to a bus. Publishing is best effort: a failure never fails the caller.

use domain::event_type::EventType;
use jiff::Timestamp;
use tokio::sync::mpsc;

/// The source of all our events, which rules on the bus match.
pub const SOURCE: &str = "offhours";

/// The most events in one request.
const BATCH: usize = 10;

/// The most bytes in one request, counted as EventBridge counts them.
const BATCH_BYTES: usize = 256 * 1024;

/// The bytes that an event's time counts for.
const TIME_BYTES: usize = 14;

/// After this many consecutive requests without a response, the bus is left alone for the rest of
/// an invocation, which has to end.
const GIVE_UP_AFTER: u32 = 2;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusEvent {
    pub at: Timestamp,
    pub event_type: EventType,
    /// What happened, as a JSON object.
    pub detail: String,
}

impl BusEvent {
    fn bytes(&self) -> usize {
        TIME_BYTES + SOURCE.len() + self.event_type.detail_type().len() + self.detail.len()
    }
}

/// An event that the bus did not accept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub event: BusEvent,
    /// The bus's error code.
    pub code: String,
}

impl Refusal {
    /// Reports whether the bus may accept the event if it is sent again. The codes are those that
    /// the reference of `PutEvents` calls retryable.
    fn is_momentary(&self) -> bool {
        ["InternalException", "InternalFailure", "ThrottlingException"].contains(&&*self.code)
    }
}

/// A request to the bus without a usable answer.
#[derive(Debug, thiserror::Error)]
#[error("the event bus gave no usable answer")]
pub struct PublishError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// A sink for events.
pub trait Publish {
    /// Puts at most ten events on the bus; returns those that it did not accept.
    fn publish(
        &self,
        events: &[BusEvent],
    ) -> impl Future<Output = Result<Vec<Refusal>, PublishError>>;
}

/// Publishes events as they come, until the last sender is dropped. Events that cannot be published
/// are logged, and otherwise ignored.
pub async fn deliver(mut events: mpsc::UnboundedReceiver<BusEvent>, bus: &impl Publish) {
    let mut unanswered = 0;
    let mut received = Vec::with_capacity(BATCH);
    while events.recv_many(&mut received, BATCH).await > 0 {
        for batch in batches(std::mem::take(&mut received)) {
            if unanswered >= GIVE_UP_AFTER {
                lost(&batch, "the event bus does not answer");
                continue;
            }
            match put(&batch, bus).await {
                Ok(refusals) => {
                    unanswered = 0;
                    for Refusal { event, code } in refusals {
                        let event_type = event.event_type;
                        tracing::error!(
                            code,
                            "The event bus refused an event, {event_type}: {code}"
                        );
                    }
                }
                Err(error) => {
                    unanswered += 1;
                    lost(&batch, &crate::in_words(&error));
                }
            }
        }
    }
}

/// Publishes a batch, and once more what the bus could not accept at that moment.
async fn put(batch: &[BusEvent], bus: &impl Publish) -> Result<Vec<Refusal>, PublishError> {
    let refusals = bus.publish(batch).await?;
    let (again, mut refused): (Vec<_>, Vec<_>) =
        refusals.into_iter().partition(Refusal::is_momentary);
    if !again.is_empty() {
        let events: Vec<_> = again.iter().map(|one| one.event.clone()).collect();
        refused.extend(bus.publish(&events).await.unwrap_or(again));
    }
    Ok(refused)
}

fn lost(events: &[BusEvent], why: &str) {
    for event in events {
        tracing::error!("Could not publish an event, {}: {why}", event.event_type);
    }
}

/// Splits events into batches of a size that the bus accepts. An event that is too large by itself
/// is a batch of its own, for the bus to refuse.
fn batches(events: Vec<BusEvent>) -> Vec<Vec<BusEvent>> {
    let mut batches: Vec<Vec<BusEvent>> = Vec::new();
    let mut bytes = 0;
    for event in events {
        match batches.last_mut() {
            Some(batch) if batch.len() < BATCH && bytes + event.bytes() <= BATCH_BYTES => {
                bytes += event.bytes();
                batch.push(event);
            }
            Some(_) | None => {
                bytes = event.bytes();
                batches.push(vec![event]);
            }
        }
    }
    batches
}

#[cfg(feature = "aws")]
mod eventbridge {
    use std::time::Duration;

    use aws_config::{SdkConfig, timeout::TimeoutConfig};
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::{BusEvent, Publish, PublishError, Refusal, SOURCE};
    use crate::{
        service::{Service, Target},
        settings::{EVENT_BUS, SettingError, required},
    };

    /// How long one request may take, including retries: the invocation waits for it before it
    /// ends.
    const PATIENCE: Duration = Duration::from_secs(4);

    /// How long a request waits for a response before it is retried.
    const ATTEMPT: Duration = Duration::from_millis(1_500);

    /// The word for no bus, in place of a bus's name.
    const NO_BUS: &str = "none";

    /// A bus at Amazon EventBridge, or none.
    #[derive(Debug, Clone)]
    pub struct EventBus(Option<(Service, String)>);

    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct BusName(Option<String>);

    impl BusName {
        /// Reads the name from the environment, which must have one.
        pub fn from_settings() -> Result<Self, SettingError> {
            Self::new(&required(EVENT_BUS)?)
        }

        /// Parses a bus's name or its ARN, or `none`.
        pub fn new(name: &str) -> Result<Self, SettingError> {
            let fits = |c: char| c.is_ascii_alphanumeric() || "/.-_:".contains(c);
            if !name.chars().all(fits) {
                let problem = "is neither the name of an event bus nor `none`";
                return Err(SettingError::new(EVENT_BUS, problem));
            }
            Ok(Self(Some(name).filter(|&name| name != NO_BUS).map(str::to_owned)))
        }
    }

    impl EventBus {
        #[must_use]
        pub fn connect(config: &SdkConfig, name: BusName) -> Self {
            let timeouts = TimeoutConfig::builder()
                .operation_timeout(PATIENCE)
                .operation_attempt_timeout(ATTEMPT)
                .build();
            Self(name.0.map(|name| {
                let target = Target::new(config, "events", "EventBridge");
                (Service::connect(config, Target { timeouts, ..target }), name)
            }))
        }
    }

    impl Publish for EventBus {
        async fn publish(&self, events: &[BusEvent]) -> Result<Vec<Refusal>, PublishError> {
            let Some((service, name)) = &self.0 else {
                return Ok(Vec::new());
            };
            let entries: Vec<_> = events.iter().map(|event| entry(event, name)).collect();
            let answer: Answer = service
                .call("AWSEvents.PutEvents", &json!({ "Entries": entries }))
                .await
                .map_err(|error| PublishError(error.into()))?;
            // The response lists the events in the order of the request.
            let results = events.iter().zip(answer.entries);
            let refusals = results.filter_map(|(event, result)| {
                Some(Refusal { event: event.clone(), code: result.error_code? })
            });
            Ok(refusals.collect())
        }
    }

    fn entry(event: &BusEvent, bus: &str) -> Value {
        json!({
            "EventBusName": bus,
            "Source": SOURCE,
            "DetailType": event.event_type.detail_type(),
            "Detail": event.detail,
            "Time": event.at.as_second(),
        })
    }

    /// The answer to `PutEvents`.
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Answer {
        entries: Vec<Entry>,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Entry {
        error_code: Option<String>,
    }
}

#[cfg(feature = "aws")]
pub use eventbridge::{BusName, EventBus};

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn event(bytes: usize) -> BusEvent {
        let event = BusEvent {
            at: Timestamp::UNIX_EPOCH,
            event_type: EventType::TransitionStuck,
            detail: String::new(),
        };
        BusEvent { detail: "x".repeat(bytes - event.bytes()), ..event }
    }

    fn sizes(events: Vec<BusEvent>) -> Vec<usize> {
        batches(events).iter().map(Vec::len).collect()
    }

    #[test]
    fn a_request_holds_ten_events_and_no_more_bytes_than_the_bus_takes() {
        assert_eq!(sizes(vec![event(100); 21]), [10, 10, 1]);
        assert_eq!(sizes(vec![event(BATCH_BYTES / 2); 3]), [2, 1]);
        assert_eq!(sizes(vec![event(BATCH_BYTES / 2 + 1); 2]), [1, 1]);
        let large = vec![event(100), event(BATCH_BYTES + 1), event(100)];
        assert_eq!(sizes(large), [1, 1, 1]);
        assert_eq!(sizes(Vec::new()), [0; 0]);
    }

    /// A bus that never responds.
    #[derive(Default)]
    struct Silent(RefCell<usize>);

    impl Publish for Silent {
        async fn publish(&self, _: &[BusEvent]) -> Result<Vec<Refusal>, PublishError> {
            *self.0.borrow_mut() += 1;
            Err(PublishError("silence".into()))
        }
    }

    /// A bus that refuses the first event of each request at first.
    struct Refusing {
        code: &'static str,
        requests: RefCell<Vec<usize>>,
    }

    impl Publish for Refusing {
        async fn publish(&self, events: &[BusEvent]) -> Result<Vec<Refusal>, PublishError> {
            let mut requests = self.requests.borrow_mut();
            requests.push(events.len());
            let refused = events.first().filter(|_| requests.len() == 1).cloned();
            Ok(refused
                .map(|event| Refusal { event, code: self.code.to_owned() })
                .into_iter()
                .collect())
        }
    }

    #[tokio::test]
    async fn what_the_bus_cannot_accept_for_a_moment_is_published_once_more() {
        for (code, requests) in [("InternalFailure", vec![3, 1]), ("MalformedDetail", vec![3])] {
            let (sender, receiver) = mpsc::unbounded_channel();
            for _ in 0..3 {
                sender.send(event(100)).unwrap();
            }
            drop(sender);
            let bus = Refusing { code, requests: RefCell::default() };
            deliver(receiver, &bus).await;
            assert_eq!(bus.requests.into_inner(), requests);
        }
    }

    #[tokio::test]
    async fn a_silent_bus_is_left_alone_after_two_requests() {
        let (sender, receiver) = mpsc::unbounded_channel();
        for _ in 0..50 {
            sender.send(event(100)).unwrap();
        }
        drop(sender);
        let bus = Silent::default();
        deliver(receiver, &bus).await;
        assert_eq!(bus.0.into_inner(), 2);
    }
}
