//! The commands, a file each: an `Args` of what may be written after its name, and a `run`.

pub mod apply;
pub mod approve;
pub mod completions;
pub mod cost;
pub mod doctor;
pub mod export;
pub mod forget;
pub mod history;
pub mod hours;
pub mod import;
pub mod list;
#[cfg(feature = "local")]
pub mod local;
pub mod log;
pub mod manual;
pub mod overrides;
pub mod preview;
pub mod rehearse;
pub mod savings;
pub mod schema;
pub mod status;
pub mod validate;
pub mod why;

/// The form of the result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Table,
    /// For programs.
    Json,
}
