//! Sends the stops that are due, or that a person asks for.

use domain::{invocation::Invocation, record::Direction};
use lifecycle::{Context, Error, Report, act::command};

/// One invocation: a hint from dispatch, or a person's command.
pub async fn handle(context: Context<'_>, invocation: Invocation) -> Result<Report, Error> {
    command::handle(context, Direction::Stop, invocation).await
}
