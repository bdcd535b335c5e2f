//! What every command gets: where the service is, and the form of its output.

use crate::{commands::Format, connection::Connection};

/// The options of every command.
#[derive(Debug, Clone, clap::Args)]
pub struct Context {
    /// Form of the output.
    #[arg(
        long = "output",
        short = 'o',
        value_name = "FORM",
        global = true,
        value_enum,
        default_value_t
    )]
    pub format: Format,
    /// Skip the confirmation.
    #[arg(long, short, global = true)]
    pub yes: bool,
    /// Where the service is.
    #[command(flatten)]
    pub connection: Connection,
}
