//! Our requests to a provider, and what became of each.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{
    edge::Direction,
    reason::Reason,
    reference::{ResourceId, ResourceKind},
    resource::ActionId,
    step::Step,
    stored::is_default,
    timing::{PERMIT, SKEW, effect_timeout},
};

/// One of our requests to a provider, as far as we know about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Stop or start.
    pub direction: Direction,
    /// What it does of the transition.
    pub step: Step,
    /// When the write that permitted it was made or, later, the one that permitted the forced
    /// power-off after it.
    pub asked_at: Timestamp,
    /// When the observation that it is based on was requested.
    pub looked_at: Timestamp,
    /// What became of it.
    pub ask: Ask,
    /// Whether an earlier ask of this transition never got a response.
    #[serde(default, skip_serializing_if = "is_default")]
    pub earlier_unanswered: bool,
    /// The forced power-off that follows a shutdown.
    #[serde(default)]
    pub forced: Forced,
    /// How long it may take to show its effect, if its account sets that; otherwise
    /// [`effect_timeout`] decides by kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect_timeout: Option<SignedDuration>,
    /// When an ask of this transition was first accepted. An ask whose action ended in an error is
    /// repeated, and the deadline counts from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_accepted_at: Option<Timestamp>,
    /// The machine that the cloud reported it has begun to create.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_machine: Option<ResourceId>,
    /// What a person has to look at while the transition goes on: the provider's refusal of a start,
    /// an action that ends in an error every time, or a request of a hibernation that does not end
    /// or has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Reason>,
}

impl Request {
    /// Returns the time from acceptance to *stuck*: how long it may take to show its effect.
    #[must_use]
    pub fn deadline(&self, kind: ResourceKind) -> SignedDuration {
        self.effect_timeout.unwrap_or_else(|| effect_timeout(kind))
    }

    /// Returns until when an effect of this request, or of the forced power-off after it, may still
    /// appear.
    #[must_use]
    pub fn quiet_at(&self, kind: ResourceKind) -> Timestamp {
        let from = match (&self.ask, self.forced) {
            // An unanswered earlier ask could arrive until its permit expired, and this one was
            // permitted only after that, so its acceptance bounds both.
            (Ask::Accepted { at, .. }, Forced::No) => *at,
            (Ask::Accepted { .. }, Forced::Intended | Forced::Accepted)
            | (Ask::Open | Ask::Failed { .. } | Ask::Done { .. }, _) => self.asked_at + PERMIT,
        };
        from + self.deadline(kind) + SKEW
    }

    /// Reports whether the provider may have accepted it: it was accepted, or never answered.
    #[must_use]
    pub fn may_act(&self) -> bool {
        self.earlier_unanswered
            || self.forced != Forced::No
            || match self.ask {
                Ask::Open | Ask::Accepted { .. } => true,
                Ask::Failed { .. } | Ask::Done { .. } => false,
            }
    }

    /// Reports whether its effect makes a resource smaller.
    #[must_use]
    pub fn is_shrink(&self) -> bool {
        self.step.target().is_some() && self.direction == Direction::Stop
    }

    /// Reports whether its outcome has to be known before any other request leaves, and is not.
    #[must_use]
    pub fn is_unresolved(&self) -> bool {
        let known = matches!(self.ask, Ask::Failed { .. } | Ask::Done { .. });
        self.step.facts().exclusive && !known
    }

    /// Returns the direction in which it moves the machine.
    #[must_use]
    pub fn towards(&self) -> Direction {
        self.step.facts().towards.unwrap_or(self.direction)
    }

    /// Reports whether the machine's guest was asked to shut down, so that the power may be cut if
    /// it does not react.
    #[must_use]
    pub fn is_graceful(&self) -> bool {
        self.step == Step::Off { gracefully: true }
    }

    /// Returns what its permit is for: the step, or the hard cut after it.
    #[must_use]
    pub fn permitted(&self) -> &Step {
        if self.forced == Forced::Intended { &Step::CUT } else { &self.step }
    }
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum Ask {
    /// Permitted; the outcome is unknown.
    Open,
    /// The provider accepted it.
    Accepted {
        /// When the response was recorded.
        at: Timestamp,
        /// The provider's action; `None` if it names none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        action: Option<ActionId>,
    },
    /// It was definitely not accepted, or ended in an error.
    Failed {
        /// When to retry.
        retry_at: Timestamp,
    },
    /// Its effect was seen, and the transition has another part to come.
    Done {
        /// When the observation that showed it was requested.
        at: Timestamp,
    },
}

/// The forced power-off that follows an accepted shutdown without effect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Forced {
    /// Not needed so far.
    #[default]
    No,
    /// Permitted; the outcome is unknown.
    Intended,
    /// The provider accepted it.
    Accepted,
}
