//! Claim, ask, confirm: the only code that moves a record's phase.
//!
//! Every step keeps one order: the record is read first, the configuration second, the provider
//! is looked at third, and the write comes last, under the revision of the first step. No request
//! leaves without a permit written just before it, and only the resource's own status ends a
//! transition.

mod account;
pub mod act;
mod backoff;
mod budget;
pub mod event;
mod failure;
#[cfg(feature = "lambda")]
pub mod lambda;
pub mod observe;
mod providers;
pub mod report;
mod transition;

use domain::record::{Record, Writer};
use environment::{Clock, in_words};
use store::Store;

pub use event::{Event, Outcome};
pub use providers::{Access, Providers, ProvidersError};
pub use report::{Listener, Report};

/// What a handler works with; lent to every step.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Records, configuration, history.
    pub store: &'a Store,
    /// The clients of the accounts.
    pub providers: &'a Providers,
    /// The time.
    pub clock: &'a Clock,
    /// This invocation.
    pub writer: &'a Writer,
    /// Receives each event as it happens; the report comes only at the end.
    pub listener: &'a dyn Listener,
}

impl Context<'_> {
    /// Passes on what has just happened, and returns it for the report.
    fn reported(self, outcomes: Vec<Outcome>) -> Vec<Outcome> {
        for outcome in &outcomes {
            self.listener.happened(outcome);
        }
        outcomes
    }

    /// What could not be read or written of one record is left for the next tick, and does not hold
    /// up the others.
    fn failed(self, record: &Record, error: &dyn std::error::Error) -> Vec<Outcome> {
        let event = Event::postponed(in_words(error));
        self.reported(vec![Outcome::of(record, self.clock.now(), event)])
    }
}

/// What ends a whole invocation; what concerns one resource or account is in the report instead.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store failed: repeat the invocation.
    #[error("failed to work with the store")]
    Store(#[from] store::StoreError),
    /// A command names something that is not configured: give another one.
    #[error(
        "no {what} `{name}` is configured; {}",
        match .known.as_slice() {
            [] => format!("there are no {what}s"),
            known => format!("the {what}s are {}", known.join(", ")),
        }
    )]
    Unknown {
        /// Schedule or account.
        what: &'static str,
        /// What the command calls it.
        name: String,
        /// The configured names.
        known: Vec<String>,
    },
}

impl Error {
    /// A name that is not configured, and those that are.
    pub(crate) fn unknown<N: ToString>(
        what: &'static str,
        name: &N,
        known: impl IntoIterator<Item = impl ToString>,
    ) -> Self {
        Self::Unknown {
            what,
            name: name.to_string(),
            known: known.into_iter().map(|name| name.to_string()).collect(),
        }
    }

    /// The kind of error, as AWS shows it of a failed invocation.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Store(_) => "StoreFailed",
            Self::Unknown { .. } => "UnknownTarget",
        }
    }
}

#[cfg(test)]
mod tests;
