//! Where a function's events go: the log, the metrics and the bus.

use std::cell::RefCell;

use domain::{AccountName, activity::Activity, digest::Digest, notice::StopNotice};
use environment::{BusEvent, Metric, Metrics, Publish, bus};
use futures_util::future::join;
use tokio::sync::mpsc;

use crate::{
    event::{Occurrence, Severity, Subject},
    report::{Listener, bus_event, health::Health},
};

/// Runs a piece of work and publishes its events, concurrently with the work, as soon as the bus takes
/// them; `also` hears of each at once. Returns once everything is delivered, with the metrics.
///
/// Events are delivered even if the work fails. Publishing is best effort: a failure never fails
/// the work.
pub async fn publishing<T>(
    bus: &impl Publish,
    stack: &str,
    also: &dyn Listener,
    work: impl AsyncFnOnce(&dyn Listener) -> T,
) -> (T, Metrics) {
    let (events, received) = mpsc::unbounded_channel();
    let work = async move {
        let (alerts, metrics) = (RefCell::default(), RefCell::default());
        let publisher = Publisher { stack, also, events, alerts, metrics };
        let result = work(&publisher).await;
        for event in publisher.alerts.borrow().of_folded(stack) {
            publisher.send(Some(event));
        }
        // Dropping the publisher closes the channel, which ends the delivery.
        (result, publisher.metrics.into_inner())
    };
    let (ended, ()) = join(work, bus::deliver(received, bus)).await;
    ended
}

struct Publisher<'a> {
    stack: &'a str,
    also: &'a dyn Listener,
    events: mpsc::UnboundedSender<BusEvent>,
    alerts: RefCell<bus_event::Events>,
    metrics: RefCell<Metrics>,
}

impl Publisher<'_> {
    fn send(&self, event: Option<BusEvent>) {
        if let Some(event) = event {
            // The delivery outlives the publisher.
            drop(self.events.send(event));
        }
    }
}

impl Listener for Publisher<'_> {
    fn happened(&self, outcome: &Occurrence) {
        self.also.happened(outcome);
        let mut metrics = self.metrics.borrow_mut();
        for metric in outcome.event.class().metrics {
            metrics.record(*metric);
        }
        let event = self.alerts.borrow_mut().of_outcome(self.stack, outcome);
        self.send(event);
    }

    fn answered(&self, outcome: &Occurrence) {
        self.also.answered(outcome);
    }

    fn edge_completed(&self, digest: &Digest) {
        self.also.edge_completed(digest);
        self.send(bus_event::of_digest(self.stack, digest));
    }

    fn stop_noticed(&self, notice: &StopNotice) {
        self.also.stop_noticed(notice);
        self.send(bus_event::of_notice(self.stack, notice));
    }

    fn changed(&self, activity: &Activity) {
        self.also.changed(activity);
        self.send(bus_event::of_activity(self.stack, activity));
    }

    fn counted(&self, account: &AccountName, health: &Health) {
        self.also.counted(account, health);
        let mut metrics = self.metrics.borrow_mut();
        for metric in Metric::GAUGES {
            metrics.measure(metric, health.gauge(metric));
        }
    }
}

/// Writes a log line for each event.
#[derive(Debug)]
pub struct Log;

impl Listener for Log {
    fn happened(&self, outcome: &Occurrence) {
        log(outcome);
    }

    fn edge_completed(&self, digest: &Digest) {
        tracing::info!(schedule = %digest.schedule, "{digest}");
    }

    fn stop_noticed(&self, notice: &StopNotice) {
        tracing::info!(schedule = %notice.schedule, "{notice}");
    }

    fn changed(&self, activity: &Activity) {
        tracing::info!("{activity}");
    }
}

/// Logs an outcome at a level.
macro_rules! line {
    ($level:ident, $outcome:expr) => {
        match &$outcome.subject {
            Subject::Resource { resource, name, .. } => tracing::event!(
                tracing::Level::$level,
                resource.id = %resource,
                resource.name = name,
                "{name}: {}",
                $outcome.event
            ),
            Subject::Account { account } => tracing::event!(
                tracing::Level::$level,
                account = %account,
                "{account}: {}",
                $outcome.event
            ),
        }
    };
}

/// Logs one line per event. Repetitions are for debugging.
fn log(outcome: &Occurrence) {
    match outcome.event.class().severity {
        Severity::Warning => line!(WARN, outcome),
        Severity::Usual => line!(INFO, outcome),
        Severity::Repeated => line!(DEBUG, outcome),
    }
}
