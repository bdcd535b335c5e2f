//! What applying a configuration would change: computed as data, printed, and only then done.

pub mod difference;
pub mod loosening;
pub mod moves;
pub mod trials;
