//! The ways to stop a resource.

use crate::{ResourceKind, configuration::Policy};

/// How a resource is stopped, and with that how it is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StopMethod {
    /// Cuts a machine's power, as pulling its cord would.
    PowerOff,
    /// Asks a machine's guest to shut down, and cuts the power 60 s later; over SSH by the
    /// machine's own commands, the cut only where it has one.
    Graceful,
    /// Moves a database to its smallest plan.
    SmallestPlan,
    /// Scales a node pool to zero nodes.
    ZeroNodes,
}

impl StopMethod {
    /// How a policy has a kind of resource stopped.
    #[must_use]
    pub fn of(kind: ResourceKind, policy: &Policy) -> Self {
        match kind {
            ResourceKind::Droplet if !policy.graceful => Self::PowerOff,
            ResourceKind::Droplet | ResourceKind::Server | ResourceKind::Machine => Self::Graceful,
            ResourceKind::Database => Self::SmallestPlan,
            ResourceKind::NodePool => Self::ZeroNodes,
        }
    }
}
