//! The label of what Offhours creates.

use serde::{Deserialize, Serialize};

use super::Mark;
use crate::reference::ResourceId;

/// The label by which a machine or snapshot that Offhours creates is found again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// The resource that it is, or is a copy of, by its original id.
    pub of: ResourceId,
    /// The mark of the request.
    pub mark: Mark,
}
