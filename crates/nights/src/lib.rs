//! A thousand bad nights: the whole service, played from one seed under faults.
//!
//! The four real handlers work with the real provider clients over HTTP, and with the real store
//! over the DynamoDB protocol, against the cloud simulator and the embedded engine. All of it is in
//! one thread, on one virtual clock, and chance comes from one seed: a night that fails once fails
//! each time. What fails is what the observer finds broken of what Offhours promises.
//!
//! Machines over SSH are not among the resources of a night: what may go wrong with their
//! connections is tested against a real server.

mod clockwork;
mod clouds;
mod faults;
mod generate;
pub mod night;
mod observer;
mod plans;
mod play;
pub mod run;
mod service;
pub mod shrink;
mod tables;
mod trace;

pub use generate::night as of_seed;
pub use night::Night;
pub use play::{Played, play};
pub use trace::Trace;
