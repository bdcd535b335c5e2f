//! What the tests of several crates share: an engine that listens, a wire between one and a store
//! that can be cut, builders of records and histories that read as sentences, and a real SSH server.

#![expect(
    clippy::unwrap_used,
    reason = "the exception for tests does not reach their helper crate"
)]

#[cfg(feature = "wire")]
mod engine;
pub mod history;
mod resource;
pub mod scene;
pub mod sshd;
#[cfg(feature = "wire")]
mod wire;

pub use resource::seen;

#[cfg(feature = "wire")]
pub use engine::{serve, set_override};
#[cfg(feature = "wire")]
pub use wire::{Fate, Sent, Wire};

/// Everything that an error says: its own text, that of its sources, and their debug form.
#[must_use]
pub fn everything(error: &dyn std::error::Error) -> String {
    let mut text = format!("{error} {error:?}");
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text} {error} {error:?}");
        source = error.source();
    }
    text
}
