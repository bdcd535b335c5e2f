//! Sets and clears overrides, and has poll-status publish what a person did.

use domain::{activity::Activity, configuration::Override, invocation::Question};

use crate::{connection::Session, output};

/// The override is written, but poll-status could not be asked to make due what it concerns.
#[derive(Debug, thiserror::Error)]
#[error(
    "the override is written, but failed to make all that it concerns due at once: the next \
     inventory does, within five minutes"
)]
pub(crate) struct NotYetDue;

/// Writes an override in place of the one that its target is known to have, with the entry in the
/// activity log, and asks poll-status to make due what it concerns and to publish it.
///
/// # Errors
/// [`NotYetDue`] as the context of an error after which the override is in force all the same.
pub(crate) async fn replace_override(
    session: &Session,
    one: &Override,
    replaces: Option<&Override>,
    activity: Activity,
) -> anyhow::Result<()> {
    let store = &session.store;
    store.replace_override(one, replaces, &activity).await?;
    let asked = async {
        let question = Question::Changed(Box::new(activity));
        session.functions()?.ask(question).await
    };
    match asked.await {
        Ok(_) => Ok(()),
        Err(error) => Err(error.context(NotYetDue)),
    }
}

/// Asks poll-status to publish what was done, where there is a bus. Publishing is best effort: a
/// failure is reported and nothing else.
pub(crate) async fn publish(session: &Session, activity: Activity) {
    let asked = async {
        let functions = session.functions()?;
        match functions.lambda() {
            Some(_) => functions.ask(Question::Changed(Box::new(activity))).await.map(drop),
            None => Ok(()),
        }
    };
    if let Err(error) = asked.await {
        output::warn(&*error.context("no event was published"));
    }
}
