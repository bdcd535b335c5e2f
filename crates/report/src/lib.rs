//! What the command works out before it prints: what a configuration leads to, and how long
//! resources were stopped. Pure, with no I/O and no async, so that its tests take seconds.

pub mod consequences;
pub mod hours;
pub mod savings;
