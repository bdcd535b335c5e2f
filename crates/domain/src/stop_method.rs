//! The ways to stop a resource.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    ResourceKind,
    configuration::{DatabaseMethod, DropletMethod, Policy, ServerMethod},
    resource::SavedState,
};

/// How a resource is stopped, and with that how it is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StopMethod {
    /// Cuts a machine's power, as pulling its cord would.
    PowerOff,
    /// Asks a machine's guest to shut down, and cuts the power 60 s later; over SSH by the
    /// machine's own commands, the cut only where it has one.
    Graceful,
    /// Powers a Droplet off, and moves it to a cheaper plan.
    Resize,
    /// Powers a server off, and changes it to a cheaper type.
    Rescale,
    /// Powers a machine off, keeps it as a snapshot, and deletes it.
    Hibernate,
    /// Moves a database to its smallest plan.
    SmallestPlan,
    /// Drops a database's standby nodes.
    Standbys,
    /// Scales a node pool to zero nodes.
    ZeroNodes,
}

impl StopMethod {
    /// How a policy has a kind of resource stopped.
    #[must_use]
    pub fn of(kind: ResourceKind, policy: &Policy) -> Self {
        let methods = policy.methods;
        match kind {
            ResourceKind::Droplet if methods.droplet == DropletMethod::Resize => Self::Resize,
            ResourceKind::Droplet if methods.droplet == DropletMethod::Hibernate => Self::Hibernate,
            ResourceKind::Server if methods.server == ServerMethod::Rescale => Self::Rescale,
            ResourceKind::Server if methods.server == ServerMethod::Hibernate => Self::Hibernate,
            ResourceKind::Droplet | ResourceKind::Server | ResourceKind::Machine => {
                Self::to_switch_off(kind, policy)
            }
            ResourceKind::Database => match methods.database {
                DatabaseMethod::SmallestPlan => Self::SmallestPlan,
                DatabaseMethod::Standbys => Self::Standbys,
            },
            ResourceKind::NodePool => Self::ZeroNodes,
        }
    }

    /// How a policy has a machine switched off, whether or not its plan is changed after that.
    #[must_use]
    pub fn to_switch_off(kind: ResourceKind, policy: &Policy) -> Self {
        if kind == ResourceKind::Droplet && !policy.graceful {
            Self::PowerOff
        } else {
            Self::Graceful
        }
    }

    /// How what is saved of a machine was made smaller; none where only its power was cut.
    #[must_use]
    pub fn that_left(kind: ResourceKind, saved: &SavedState) -> Option<Self> {
        match (kind, saved) {
            (ResourceKind::Droplet, SavedState::Machine(_)) => Some(Self::Resize),
            (ResourceKind::Server, SavedState::Machine(_)) => Some(Self::Rescale),
            _ => None,
        }
    }

    /// Whether it changes a machine's plan.
    #[must_use]
    pub fn changes_plan(self) -> bool {
        matches!(self, Self::Resize | Self::Rescale)
    }

    /// Whether it leaves a plan, or a standby.
    #[must_use]
    pub fn leaves_something(self) -> bool {
        self.changes_plan() || self == Self::Standbys
    }

    /// Whether it is one that a schedule has to ask for.
    #[must_use]
    pub fn is_chosen(self) -> bool {
        self.leaves_something() || self == Self::Hibernate
    }

    /// The name that configurations and programs use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PowerOff => "power-off",
            Self::Graceful => "graceful",
            Self::Resize => "resize",
            Self::Rescale => "rescale",
            Self::Hibernate => "hibernate",
            Self::SmallestPlan => "smallest-plan",
            Self::Standbys => "standbys",
            Self::ZeroNodes => "zero-nodes",
        }
    }
}

/// Whether a text can name a plan: a Droplet's size or a database's plan by its slug, or a server's
/// type.
#[must_use]
pub fn is_plan_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    !text.is_empty() && text.chars().all(fits)
}

impl fmt::Display for StopMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
