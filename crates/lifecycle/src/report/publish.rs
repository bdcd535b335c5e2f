//! Who hears of an invocation of a function: the log, the metrics and the bus.

use std::cell::RefCell;

use domain::{AccountName, digest::Digest};
use environment::{BusEvent, Metric, Metrics, Publish, bus};
use futures_util::{FutureExt as _, future::join};
use tokio::sync::mpsc;

use crate::{
    event::{Answer, Event, Outcome, Subject},
    report::{
        Tell,
        bus_event::{EdgeCompleted, Notice},
        health::Census,
    },
};

/// Does a piece of work and tells of it: log lines at once, events as soon as the bus takes them,
/// beside the work. Returns when all is told, with what was counted.
///
/// Nothing that was told is lost when the work fails, and the work does not fail when nothing can
/// be told.
pub async fn telling<T>(
    bus: &impl Publish,
    stack: &str,
    work: impl AsyncFnOnce(&dyn Tell) -> T,
) -> (T, Metrics) {
    let (events, received) = mpsc::unbounded_channel();
    let work = async move {
        let teller = Teller {
            stack,
            events,
            metrics: RefCell::default(),
        };
        // Of a type without depth: a handler nests futures nearly as deep as a compiler looks.
        let result = work(&teller).boxed_local().await;
        // With the teller ends the channel, and with that what waits for events.
        (result, teller.metrics.into_inner())
    };
    let (ended, ()) = join(work, bus::deliver(received, bus)).await;
    ended
}

struct Teller<'a> {
    stack: &'a str,
    events: mpsc::UnboundedSender<BusEvent>,
    metrics: RefCell<Metrics>,
}

impl Teller<'_> {
    fn send(&self, notice: &Notice) {
        let event = serde_json::to_string(notice).map(|detail| BusEvent {
            at: notice.at(),
            detail_type: notice.detail_type(),
            detail,
        });
        match event {
            // Whoever delivers outlives this.
            Ok(event) => drop(self.events.send(event)),
            Err(error) => tracing::error!("Could not write an event: {error}"),
        }
    }
}

impl Tell for Teller<'_> {
    fn happened(&self, outcome: &Outcome) {
        log(outcome);
        count(outcome, &mut self.metrics.borrow_mut());
        if let Some(notice) = Notice::of(self.stack, outcome) {
            self.send(&notice);
        }
    }

    fn answered(&self, outcome: &Outcome) {
        log(outcome);
    }

    fn edge_completed(&self, digest: &Digest) {
        tracing::info!(schedule = %digest.schedule, "{digest}");
        self.send(&Notice::EdgeCompleted(EdgeCompleted::of(
            self.stack, digest,
        )));
    }

    fn counted(&self, _account: &AccountName, census: Census) {
        let Census {
            failed,
            overdue,
            refused,
            stuck,
            held,
            orphaned,
            conflicts,
            tokens_refused,
        } = census;
        let mut metrics = self.metrics.borrow_mut();
        for (metric, value) in [
            (Metric::Failed, failed),
            (Metric::Overdue, overdue),
            (Metric::Refused, refused),
            (Metric::Stuck, stuck),
            (Metric::Held, held),
            (Metric::Orphaned, orphaned),
            (Metric::Conflicts, conflicts),
            (Metric::TokensRefused, tokens_refused),
        ] {
            metrics.measure(metric, value);
        }
    }
}

/// Counts what happened; trouble shows at once, and not only at the next inventory.
fn count(outcome: &Outcome, metrics: &mut Metrics) {
    match &outcome.event {
        Event::Asked { answer, .. } => {
            metrics.add(Metric::Asked, 1);
            match answer {
                Answer::Accepted => {}
                Answer::TokenRefused(_) => {
                    metrics.raise(Metric::Failed);
                    metrics.raise(Metric::TokensRefused);
                }
                Answer::Busy(_) | Answer::NotAccepted(_) | Answer::Unknown(_) => {
                    metrics.raise(Metric::Failed);
                }
            }
        }
        Event::Seen { .. } => metrics.add(Metric::Seen, 1),
        Event::Refused { .. } => metrics.raise(Metric::Refused),
        Event::Stuck { .. } => metrics.raise(Metric::Stuck),
        Event::Held { .. } => metrics.raise(Metric::Held),
        Event::Orphaned => metrics.raise(Metric::Orphaned),
        Event::Conflict { .. } => metrics.raise(Metric::Conflicts),
        Event::Postponed { token_refused, .. } => {
            metrics.raise(Metric::Failed);
            if *token_refused {
                metrics.raise(Metric::TokensRefused);
            }
        }
        Event::Forced { .. }
        | Event::AlreadyThere { .. }
        | Event::WouldAsk { .. }
        | Event::Overtaken { .. }
        | Event::LetGo { .. }
        | Event::Joined { .. }
        | Event::UnknownSchedule { .. }
        | Event::Gone { .. }
        | Event::Replaced { .. }
        | Event::Awaiting { .. }
        | Event::Watching { .. }
        | Event::Declined { .. }
        | Event::Status { .. } => {}
    }
}

/// A log line of an outcome, at a level.
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

/// One line per thing that happened. What is repeated is for who looks for it.
fn log(outcome: &Outcome) {
    match gravity(&outcome.event) {
        Gravity::Trouble => line!(WARN, outcome),
        Gravity::Usual => line!(INFO, outcome),
        Gravity::Repeated => line!(DEBUG, outcome),
    }
}

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gravity {
    Trouble,
    Usual,
    Repeated,
}

fn gravity(event: &Event) -> Gravity {
    match event {
        Event::Postponed { repeated: true, .. } => Gravity::Repeated,
        Event::Asked { answer, .. } if *answer != Answer::Accepted => Gravity::Trouble,
        Event::Postponed { .. }
        | Event::Refused { .. }
        | Event::Stuck { .. }
        | Event::Held { .. }
        | Event::Orphaned
        | Event::Conflict { .. }
        | Event::UnknownSchedule { .. }
        | Event::Gone { saved: Some(_) }
        | Event::Replaced { .. } => Gravity::Trouble,
        Event::Asked { .. }
        | Event::Forced { .. }
        | Event::AlreadyThere { .. }
        | Event::WouldAsk { .. }
        | Event::Seen { .. }
        | Event::Overtaken { .. }
        | Event::LetGo { .. }
        | Event::Joined { .. }
        | Event::Gone { saved: None }
        | Event::Awaiting { .. }
        | Event::Watching { .. }
        | Event::Declined { .. }
        | Event::Status { .. } => Gravity::Usual,
    }
}
