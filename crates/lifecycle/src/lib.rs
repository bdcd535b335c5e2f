//! Claim, ask, confirm: the only code that moves a record's phase.
//!
//! Every step follows the same order: read the record, read the configuration, look at the
//! provider, and write last, under the revision of the first step. No request leaves without a
//! permit written just before it, and only the resource's own status ends a transition.

mod account;
pub mod act;
mod budget;
mod failure;
#[cfg(feature = "lambda")]
pub mod lambda;
mod ledger;
pub mod observe;
mod providers;
pub mod report;

use domain::record::{Record, Writer};
use environment::{Clock, in_words};
use store::Store;

pub use providers::{Access, Providers, ProvidersError};
pub use report::{Listener, Report};
pub use transition::event::{self, Event, Occurrence};

/// The dependencies of a handler, passed to every step.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Records, configuration, history.
    pub store: &'a Store,
    /// The accounts' clients.
    pub providers: &'a Providers,
    /// The source of the current time.
    pub clock: &'a Clock,
    pub writer: &'a Writer,
    /// Receives each event as it happens; the report is ready only at the end.
    pub listener: &'a dyn Listener,
}

impl Context<'_> {
    /// Passes outcomes to the listener as they happen, and returns them for the report.
    fn report(self, outcomes: Vec<Occurrence>) -> Vec<Occurrence> {
        for outcome in &outcomes {
            self.listener.happened(outcome);
        }
        outcomes
    }

    /// Reports that one record could not be read or written. It is left for the next tick and does
    /// not hold up the others.
    fn report_failure(self, record: &Record, error: &dyn std::error::Error) -> Vec<Occurrence> {
        let event = Event::postponed(in_words(error));
        self.report(vec![Occurrence::of(record, self.clock.now(), event)])
    }
}

/// An error that ends the whole invocation; what concerns one resource or account is in the report.
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
        /// The name that the command gives.
        name: String,
        /// The configured names.
        known: Vec<String>,
    },
}

impl Error {
    /// Builds the error for a name that is not configured, listing those that are.
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

    /// Returns the kind of error, as AWS shows it for a failed invocation.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Store(_) => "StoreFailed",
            Self::Unknown { .. } => "UnknownTarget",
        }
    }
}
