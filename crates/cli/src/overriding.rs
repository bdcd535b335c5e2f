//! Sets and clears overrides.

use domain::{configuration::Override, invocation::Question};

use crate::connection::Session;

/// The override is written, but poll-status could not be asked to make due what it concerns.
#[derive(Debug, thiserror::Error)]
#[error(
    "the override is written, but failed to make all that it concerns due at once: the next \
     inventory does, within five minutes"
)]
pub(crate) struct NotYetDue;

/// Writes an override in place of the one that its target is known to have, and asks poll-status to
/// make due what it concerns.
///
/// # Errors
/// [`NotYetDue`] as the context of an error after which the override is in force all the same.
pub(crate) async fn replace_override(
    session: &Session,
    one: &Override,
    replaces: Option<&Override>,
) -> anyhow::Result<()> {
    session.store.replace_override(one, replaces).await?;
    let asked = async {
        let question = Question::MakeDue(one.target.clone());
        session.functions()?.ask(question).await
    };
    match asked.await {
        Ok(_) => Ok(()),
        Err(error) => Err(error.context(NotYetDue)),
    }
}
