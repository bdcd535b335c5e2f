//! What a provider says when it accepts a step.

use domain::resource::ActionId;

/// A provider's confirmation that it accepted a step: no proof of any effect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accepted {
    /// The provider's id for the action that it began, if it gives one (Droplets and servers).
    pub action: Option<ActionId>,
    /// The provider's id for the machine or snapshot that it began to create, if any.
    pub made: Option<u64>,
}

impl Accepted {
    pub(crate) fn action(id: u64) -> Self {
        Self { action: Some(ActionId(id)), made: None }
    }
}
