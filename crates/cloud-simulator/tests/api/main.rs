//! The simulator over real HTTP, with a clock that the tests move.

#![expect(
    clippy::unwrap_used,
    reason = "the exception for tests does not reach their helper functions"
)]

mod bills;
mod client;
mod control;
mod databases;
mod droplets;
mod faults;
mod general;
mod images;
mod kubernetes;
mod plans;
mod prices;
mod resizes;
mod servers;
mod snapshots;
mod types;
