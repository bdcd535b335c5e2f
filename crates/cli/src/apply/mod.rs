//! What applying a configuration would change: computed as data, printed, and only then done.

pub(crate) mod difference;
pub(crate) mod loosening;
pub(crate) mod moves;
pub(crate) mod trials;
