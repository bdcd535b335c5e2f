//! The edges of the desired state: what causes one, how edges are ordered, and which one was
//! handled last.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    reference::ScheduleName, resource::Power, schedule::Desired, stored::is_default, text,
};

/// The number of an applied configuration. Each `apply` increases it; zero means that nothing has
/// been applied.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Generation(pub u64);

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The direction of a transition.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::Display,
)]
#[strum(serialize_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Towards stopped.
    Stop,
    /// Towards running.
    Start,
}

impl Direction {
    /// Returns the desired state that this direction fulfills.
    #[must_use]
    pub fn desired(self) -> Desired {
        match self {
            Self::Stop => Desired::Stopped,
            Self::Start => Desired::Running,
        }
    }

    /// Returns the direction that fulfills a desired state.
    #[must_use]
    pub fn towards(desired: Desired) -> Self {
        match desired {
            Desired::Stopped => Self::Stop,
            Desired::Running => Self::Start,
        }
    }

    #[must_use]
    pub fn target_state(self) -> Power {
        match self {
            Self::Stop => Power::Stopped,
            Self::Start => Power::Running,
        }
    }
}

/// What asked for a transition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// An edge of the schedule.
    Schedule,
    /// An override was set.
    OverrideSet,
    /// An override ended.
    OverrideEnded,
    /// A person's command.
    Manual {
        /// Who gave the command.
        #[serde(deserialize_with = "text::line")]
        by: String,
    },
}

impl Cause {
    #[must_use]
    pub fn rank(&self) -> Rank {
        match self {
            Self::Schedule => Rank::Schedule,
            Self::OverrideEnded => Rank::OverrideEnded,
            Self::OverrideSet => Rank::OverrideSet,
            Self::Manual { .. } => Rank::Manual,
        }
    }

    /// Returns the machine-readable name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.into()
    }

    /// Returns who gave the command; `None` if it was none.
    #[must_use]
    pub fn by(&self) -> Option<&str> {
        match self {
            Self::Manual { by } => Some(by),
            Self::Schedule | Self::OverrideSet | Self::OverrideEnded => None,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Schedule => f.write_str("schedule"),
            Self::OverrideSet => f.write_str("override"),
            Self::OverrideEnded => f.write_str("end of override"),
            Self::Manual { by } => write!(f, "{by}"),
        }
    }
}

/// Breaks ties between edges at the same instant: the later value wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Rank {
    /// An edge of the schedule itself.
    Schedule,
    /// The end of an override.
    OverrideEnded,
    /// The beginning of an override.
    OverrideSet,
    /// A person's command.
    Manual,
}

/// Identifies an edge within a generation: by its instant, and by its rank among edges at that
/// instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EdgeKey {
    /// The instant of the edge.
    pub instant: Timestamp,
    /// The rank of the edge among several at that instant.
    pub rank: Rank,
}

/// The last edge that was acted on or acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Handled {
    /// The generation of the configuration under which the edge was judged.
    pub generation: Generation,
    /// The edge's instant and rank.
    pub key: EdgeKey,
    /// The state that the edge desired; *stopped* if it was a start that was given up, or that was
    /// only observed while Offhours held the resource stopped. Absent if nothing else was done about
    /// it (observe mode), so that Offhours acts as soon as it is allowed to; a person's command does
    /// not act later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired: Option<Desired>,
    /// The schedule followed at that time; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleName>,
}

/// A manual stop or start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ManualCommand {
    /// When the command was given, at the earliest just after the handled edge.
    pub instant: Timestamp,
    /// The state that the command asks for.
    pub desired: Desired,
    /// Who gave the command.
    #[serde(deserialize_with = "text::line")]
    pub by: String,
    /// The id of the invocation that brought the command. The same invocation delivered twice is
    /// one command.
    pub request_id: String,
    /// The ids of the invocations of a few earlier commands, latest first. None of these commands
    /// acts again if its event is redelivered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<String>,
    /// Whether the command begins a rehearsal: the machine is hibernated although none of its
    /// snapshots has proved itself yet.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rehearsal: bool,
}

/// How many earlier commands are remembered.
const EARLIER: usize = 8;

impl ManualCommand {
    /// Reports whether an invocation gave this command, or one of those before it.
    #[must_use]
    pub fn knows(&self, request_id: &str) -> bool {
        self.request_id == request_id || self.earlier.iter().any(|id| id == request_id)
    }

    /// Returns the invocations of this command and of those before it, as a newer command stores
    /// them.
    #[must_use]
    pub fn invocations(&self) -> Vec<String> {
        let all = std::iter::once(&self.request_id).chain(&self.earlier);
        all.take(EARLIER).cloned().collect()
    }
}
