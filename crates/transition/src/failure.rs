//! How a provider answers a step.

use std::time::Duration;

use domain::{
    reason::{Reason, Refusal},
    step::Accepted,
};

/// How a provider answers a step.
pub type Answered = Result<Accepted, Box<Failure>>;

/// Why a step is not known to be accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What that means for the transition.
    pub kind: FailureKind,
    /// The failure, for a record.
    pub reason: Reason,
    /// The failure, for an event.
    pub words: String,
    /// How long the provider asks to wait; `None` if it does not say.
    pub retry_after: Option<Duration>,
}

/// What a failure means for a transition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailureKind {
    /// Definite, and about this resource: no retry can cure it.
    Refused(Refusal),
    /// Not accepted, because the resource is locked, busy, or already in the target state.
    Busy,
    /// Certainly not accepted: the provider does not know what the step is about.
    NotFound,
    /// Certainly not accepted: the account's token is invalid.
    TokenRefused,
    /// Certainly not accepted: the token is valid and may not do this.
    NotPermitted,
    /// Certainly not accepted, for another reason that does not lie with the resource.
    NotAccepted,
    /// No usable response: the step may have been accepted, and may still take effect.
    Unknown,
}
