//! The commands, one file each: an `Args` for the command line after its name, and a `run`.

pub mod activity;
pub mod apply;
pub mod approve;
pub mod backup;
pub mod completions;
pub mod config;
pub mod doctor;
pub mod forget;
pub mod history;
pub mod import;
pub mod init;
pub mod local;
pub mod man;
pub mod manual;
pub mod notify;
pub mod overrides;
pub mod preview;
pub mod rebuild;
pub mod rehearse;
pub mod restore;
pub mod saved;
pub mod savings;
pub mod serve;
pub mod status;
mod targets;
pub mod validate;
pub mod why;
