//! What the tests of several crates share: a wire between a store and its engine that can be cut, and
//! histories that read as sentences.

#![expect(
    clippy::unwrap_used,
    reason = "the exception for tests does not reach their helper crate"
)]

pub mod history;
mod wire;

pub use wire::{Fate, Sent, Wire};
