//! What to do next about one record, and what an observation or an answer means for it.
//!
//! Every function is pure: a record, what was seen and the current instant go in, a new record and
//! a request come out, so that each guard has a test. Only this crate and the one that calls it move
//! a record's phase.

pub mod answer;
pub mod backoff;
pub mod event;
pub mod failure;
pub mod follow;
pub mod log;
pub mod methods;
pub mod plan;
#[cfg(any(test, feature = "fixtures"))]
pub mod tests;
pub mod view;
