//! A thousand bad nights: the whole service, simulated deterministically under faults.
//!
//! The four real handlers run with the real provider clients over HTTP and the real store over the
//! DynamoDB protocol, against the cloud simulator and the embedded engine. Everything runs in one
//! thread, on one virtual clock, with one seed for all randomness: a night that fails once fails
//! every time. A night fails if the observer finds a promise of Offhours broken.
//!
//! Some nights have an SSH account. The real SSH client talks over a pipe to a server in memory, which
//! runs the account's commands on machines that are values.

mod addresses;
mod clockwork;
mod clouds;
mod elsewhere;
mod faults;
mod generate;
mod machines;
mod names;
pub mod night;
mod observer;
mod plans;
mod play;
pub mod run;
mod service;
pub mod shrink;
mod ssh_host;
mod ssh_keys;
mod tables;
mod trace;

pub use generate::night as of_seed;
pub use machines::Machine;
pub use night::Night;
pub use play::{Played, play};
pub use trace::Trace;
