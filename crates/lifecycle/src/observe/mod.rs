//! Poll-status: follows what is in flight until it is seen, and takes inventories. Sends no change.

pub mod approve;
mod asked;
pub mod changed;
mod digest;
mod in_flight;
mod inventory;
pub(crate) mod look;
mod notice;
pub mod poll;
pub mod remains;
pub mod stop_preview;

mod set_back;
pub(crate) mod stop_target;
pub mod token_check;
