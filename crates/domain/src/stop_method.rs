//! The ways to stop a resource.

use serde::{Deserialize, Serialize};

use crate::{
    ResourceKind,
    configuration::{Configuration, DatabaseMethod, DropletMethod, Policy, ServerMethod},
    resource::SavedState,
};

/// How a resource is stopped, and therefore how it is started again.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::Display,
)]
#[strum(serialize_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StopMethod {
    /// Cuts a machine's power, like pulling its plug.
    PowerOff,
    /// Asks a machine's guest to shut down, and cuts the power 60 s later. Over SSH, runs the
    /// machine's own commands, and cuts the power only if it has a command for that.
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

impl From<DatabaseMethod> for StopMethod {
    fn from(method: DatabaseMethod) -> Self {
        match method {
            DatabaseMethod::SmallestPlan => Self::SmallestPlan,
            DatabaseMethod::Standbys => Self::Standbys,
        }
    }
}

impl StopMethod {
    /// Returns the methods of all schedules, for the kinds that the accounts may have.
    pub fn all_in(configuration: &Configuration) -> impl Iterator<Item = Self> {
        let kinds = configuration.accounts.values().flat_map(|account| account.kind().kinds());
        kinds.flat_map(|&kind| {
            let rules = configuration.schedules.values();
            rules.map(move |rule| Self::of(kind, &rule.policy))
        })
    }

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
            ResourceKind::Database => methods.database.into(),
            ResourceKind::NodePool => Self::ZeroNodes,
        }
    }

    /// Returns how a policy switches a machine off, whether or not its plan is changed after that.
    #[must_use]
    pub fn to_switch_off(kind: ResourceKind, policy: &Policy) -> Self {
        if kind == ResourceKind::Droplet && !policy.graceful {
            Self::PowerOff
        } else {
            Self::Graceful
        }
    }

    /// Returns the method that made a machine smaller, judged by its saved state; `None` if only
    /// its power was cut.
    #[must_use]
    pub fn from_saved(kind: ResourceKind, saved: &SavedState) -> Option<Self> {
        Self::to_smaller_plan(kind).filter(|_| matches!(saved, SavedState::Machine(_)))
    }

    /// Returns the method that moves a machine of a kind to a smaller plan.
    #[must_use]
    pub fn to_smaller_plan(kind: ResourceKind) -> Option<Self> {
        match kind {
            ResourceKind::Droplet => Some(Self::Resize),
            ResourceKind::Server => Some(Self::Rescale),
            ResourceKind::Database | ResourceKind::NodePool | ResourceKind::Machine => None,
        }
    }

    /// Returns the plan that a policy names for machines that move to a smaller one; `None` for other
    /// kinds.
    pub(crate) fn smaller_plan(kind: ResourceKind, policy: &Policy) -> Option<&Option<String>> {
        match kind {
            ResourceKind::Droplet => Some(&policy.resize_to),
            ResourceKind::Server => Some(&policy.rescale_to),
            ResourceKind::Database | ResourceKind::NodePool | ResourceKind::Machine => None,
        }
    }

    #[must_use]
    pub fn changes_plan(self) -> bool {
        matches!(self, Self::Resize | Self::Rescale)
    }

    /// Reports whether it takes several requests, one after another.
    #[must_use]
    pub fn has_parts(self) -> bool {
        self.changes_plan() || self == Self::Hibernate
    }

    /// Reports whether it gives up a plan or a standby node.
    #[must_use]
    pub fn gives_up_capacity(self) -> bool {
        self.changes_plan() || self == Self::Standbys
    }

    /// Reports whether a schedule has to choose it explicitly.
    #[must_use]
    pub fn is_chosen(self) -> bool {
        self.gives_up_capacity() || self == Self::Hibernate
    }
}

/// Reports whether a text can name a plan: the slug of a Droplet's size or a database's plan, or a
/// server's type.
#[must_use]
pub fn is_plan_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    !text.is_empty() && text.chars().all(fits)
}
