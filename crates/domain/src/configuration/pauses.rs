//! Pauses: times in which nothing is sent.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Pattern;
use crate::{
    edge::Direction,
    reference::{AccountName, ScheduleName},
    text,
};

/// A time in which nothing is sent. What should have been stopped or started meanwhile is handled
/// after it, as after an outage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pause {
    /// The resources that it applies to.
    pub scope: PauseScope,
    /// Whether starts are sent all the same.
    #[serde(default)]
    pub starts: bool,
    /// When it was set; it applies from then on.
    pub set_at: Timestamp,
    /// When it ends, exclusive.
    pub ends_at: Timestamp,
    /// Who set it.
    #[serde(deserialize_with = "text::line")]
    pub by: String,
    /// Why it was set.
    #[serde(deserialize_with = "text::line")]
    pub why: String,
}

impl Pause {
    /// Reports whether it is in force at this instant.
    #[must_use]
    pub fn is_active(&self, at: Timestamp) -> bool {
        self.set_at <= at && at < self.ends_at
    }

    /// Reports whether it keeps requests in this direction from being sent.
    #[must_use]
    pub fn bars(&self, direction: Direction) -> bool {
        direction == Direction::Stop || !self.starts
    }
}

/// `paused until Tue 2026-11-24 21:00 UTC by ada (release night)`
impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "paused until {} by {} ({})", text::in_utc(self.ends_at), self.by, self.why)
    }
}

/// What a pause applies to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum PauseScope {
    /// Every resource.
    Everything,
    /// Every resource of an account.
    Account(AccountName),
    /// Every resource that follows a schedule.
    Schedule(ScheduleName),
    /// Every resource with such a tag, on itself or on its cluster.
    Tag(Pattern),
}

impl PauseScope {
    /// Returns the option of `offhours pause` and `resume` that means this scope, after a space; empty
    /// for everything.
    #[must_use]
    pub fn option(&self) -> String {
        match self {
            Self::Everything => String::new(),
            Self::Account(_) | Self::Schedule(_) => format!(" --{self}"),
            Self::Tag(pattern) => format!(" --tag {}", pattern.glob()),
        }
    }
}

/// `everything`, `account hz-eu`, `schedule office` or `tag:production`.
impl fmt::Display for PauseScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everything => f.write_str("everything"),
            Self::Account(name) => write!(f, "account {name}"),
            Self::Schedule(name) => write!(f, "schedule {name}"),
            Self::Tag(pattern) => pattern.fmt(f),
        }
    }
}
