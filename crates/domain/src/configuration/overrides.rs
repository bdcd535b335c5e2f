//! Overrides: desired states that persons have set for a limited time.

use std::{collections::BTreeMap, fmt};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Pause, PauseScope};
use crate::{
    reference::{ResourceRef, ScheduleName},
    schedule::Desired,
    text,
};

/// A desired state that a person has set for a limited time. It takes precedence over schedules
/// until it ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Override {
    /// The resource or schedule that it applies to.
    pub target: OverrideTarget,
    /// The desired state.
    pub desired: Desired,
    /// When it was set; it applies from then on.
    pub set_at: Timestamp,
    /// When it ends, exclusive.
    pub ends_at: Timestamp,
    /// Who set it.
    #[serde(deserialize_with = "text::line")]
    pub by: String,
    /// Why it was set; absent if no reason was given.
    #[serde(
        default,
        deserialize_with = "text::optional_line",
        skip_serializing_if = "Option::is_none"
    )]
    pub why: Option<String>,
    /// The one in whose place it was set before it was to begin, and whose end may still have to be
    /// carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Box<Self>>,
}

impl Override {
    /// Returns what one that begins later than now and takes this one's place is to remember.
    #[must_use]
    pub fn to_remember(&self, now: Timestamp) -> Option<Box<Self>> {
        if self.set_at > now || self.set_at >= self.ends_at {
            return self.before.clone();
        }
        Some(Box::new(Self { before: None, ..self.clone() }))
    }

    /// Reports whether the override wins at this instant.
    #[must_use]
    pub fn is_active(&self, at: Timestamp) -> bool {
        self.set_at <= at && at < self.ends_at && self.counts()
    }

    /// Reports whether it was meant to hold for any time. One that was cleared in the first second
    /// of its life is as good as never set: by a clock of whole seconds, it still holds. Its end is
    /// an edge all the same, because a function may have followed it meanwhile.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.ends_at.duration_since(self.set_at) >= SignedDuration::from_secs(1)
    }
}

/// What an override applies to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum OverrideTarget {
    /// One resource.
    Resource(ResourceRef),
    /// Every resource that follows a schedule.
    Schedule(ScheduleName),
}

impl fmt::Display for OverrideTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resource(reference) => reference.fmt(f),
            Self::Schedule(name) => write!(f, "schedule {name}"),
        }
    }
}

/// All stored overrides and pauses, including those that have ended, because an end is an edge. At
/// most one per target and scope.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    by_target: BTreeMap<OverrideTarget, Override>,
    pauses: BTreeMap<PauseScope, Pause>,
}

impl Overrides {
    /// Returns the override of this target, active or not.
    #[must_use]
    pub fn get(&self, target: &OverrideTarget) -> Option<&Override> {
        self.by_target.get(target)
    }

    /// Iterates over all overrides.
    pub fn iter(&self) -> impl Iterator<Item = &Override> {
        self.by_target.values()
    }

    /// Adds pauses.
    #[must_use]
    pub fn with_pauses(mut self, pauses: impl IntoIterator<Item = Pause>) -> Self {
        self.pauses.extend(pauses.into_iter().map(|one| (one.scope.clone(), one)));
        self
    }

    /// Iterates over all pauses, in force or not.
    pub fn pauses(&self) -> impl Iterator<Item = &Pause> {
        self.pauses.values()
    }
}

impl FromIterator<Override> for Overrides {
    fn from_iter<I: IntoIterator<Item = Override>>(overrides: I) -> Self {
        let by_target = overrides.into_iter().map(|one| (one.target.clone(), one)).collect();
        Self { by_target, pauses: BTreeMap::new() }
    }
}
