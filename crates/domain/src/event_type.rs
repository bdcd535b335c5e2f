//! The types of the events that are published.

use serde::{Deserialize, Serialize};

/// The type of a published event.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::Display,
    strum::IntoStaticStr,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "title_case")]
pub enum EventType {
    /// A stop or a start has ended.
    TransitionFinished,
    /// A machine ignored its shutdown, and its power was cut.
    TransitionForced,
    /// The provider refused a stop or a start.
    TransitionRefused,
    /// A request was accepted, and its effect was not seen in time.
    TransitionStuck,
    /// A resource was stopped or started before what goes first in the order of groups.
    OrderNotKept,
    /// A resource that is stopped follows no schedule any more.
    ResourceOrphaned,
    /// Two schedules, accounts or records claim a resource.
    ResourceInConflict,
    /// Too many resources joined schedules at once.
    ResourcesHeld,
    /// More alerts of one type, which are not sent one by one.
    AlertsFolded,
    /// A configuration came into force.
    ConfigurationApplied,
    /// A person set an override.
    OverrideSet,
    /// A person ended an override.
    OverrideCleared,
    /// A person paused resources.
    PauseSet,
    /// A person ended a pause.
    PauseEnded,
    /// What became of an edge of a schedule.
    EdgeCompleted,
    /// A schedule will soon stop resources.
    StopAnnounced,
    /// Nothing that was announced will be stopped.
    StopCalledOff,
}

impl EventType {
    /// Returns its name on the bus: `Transition Stuck`.
    #[must_use]
    pub fn detail_type(self) -> &'static str {
        self.into()
    }

    /// Reports whether it is sent to people who have not chosen which events they want.
    #[must_use]
    pub fn is_for_people(self) -> bool {
        match self {
            Self::TransitionFinished
            | Self::TransitionForced
            | Self::OverrideSet
            | Self::OverrideCleared => false,
            Self::TransitionRefused
            | Self::TransitionStuck
            | Self::OrderNotKept
            | Self::ResourceOrphaned
            | Self::ResourceInConflict
            | Self::ResourcesHeld
            | Self::AlertsFolded
            | Self::ConfigurationApplied
            | Self::PauseSet
            | Self::PauseEnded
            | Self::EdgeCompleted
            | Self::StopAnnounced
            | Self::StopCalledOff => true,
        }
    }
}
