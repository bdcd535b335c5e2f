//! What the tests of several crates share: a wire between a store and its engine that can be cut,
//! histories that read as sentences, and a real SSH server.

#![expect(
    clippy::unwrap_used,
    reason = "the exception for tests does not reach their helper crate"
)]

pub mod history;
pub mod sshd;
#[cfg(feature = "wire")]
mod wire;

#[cfg(feature = "wire")]
pub use wire::{Fate, Sent, Wire};
