//! Sends the starts that are due, or that somebody asks for.

use domain::record::Direction;
use lifecycle::{Context, Error, Report, event};

pub use lifecycle::event::Event;

/// One invocation: a hint from dispatch, or a command by hand.
pub async fn handle(context: Context<'_>, event: Event) -> Result<Report, Error> {
    event::handle(context, Direction::Start, event).await
}
