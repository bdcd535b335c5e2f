//! An observation of a resource.

use jiff::Timestamp;

use crate::{hibernation::Sight, resource::Resource};

/// An observation of a resource, and when it was requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// When the request was sent; the observation's age counts from here.
    pub requested_at: Timestamp,
    /// What the response showed.
    pub resource: Resource,
    /// What else was seen of a machine that may be hibernated. While there is no machine,
    /// `resource` stands in for it.
    pub sight: Option<Box<Sight>>,
}
