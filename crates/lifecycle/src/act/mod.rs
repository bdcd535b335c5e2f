//! Stop and start: what is due is claimed, sent, and the answer recorded.

mod batch;
pub mod command;
mod dry_run;
mod due;
mod pace;
mod send;

pub use due::act;
