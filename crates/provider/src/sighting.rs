//! What to look for of a machine that is hibernated, or is about to be.

use domain::ResourceId;

/// What to look for.
#[derive(Debug, Clone, Copy)]
pub struct Sighting<'a> {
    /// The resource by its first id, which all that we make of it is labelled with.
    pub of: &'a ResourceId,
    /// The machine by its present id, if there is one.
    pub present: Option<&'a ResourceId>,
    /// A machine that was begun to be made, as its answer named it.
    pub made: Option<&'a ResourceId>,
    /// The machine's name.
    pub name: &'a str,
}
