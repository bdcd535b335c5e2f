//! Sends the starts that are due, or that somebody asks for.

use domain::{invocation::Invocation, record::Direction};
use lifecycle::{Context, Error, Report, by_hand};

/// One invocation: a hint from dispatch, or a command by hand.
pub async fn handle(context: Context<'_>, invocation: Invocation) -> Result<Report, Error> {
    by_hand::handle(context, Direction::Start, invocation).await
}
