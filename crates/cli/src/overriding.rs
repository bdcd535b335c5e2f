//! Sets and clears overrides and pauses, and has poll-status publish what a person did.

use anyhow::Context as _;
use domain::{activity::Activity, configuration::Pause, invocation::Question};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use store::{OVERRIDES_AT_ONCE, OverrideChange};

use crate::{connection::Session, output};

/// How many changes are passed to poll-status concurrently.
const ASKED_AT_ONCE: usize = 8;

/// The override or pause is written, but poll-status could not be asked to make due what it concerns.
#[derive(Debug, thiserror::Error)]
#[error(
    "it is written, but failed to make all that it concerns due at once: the next \
     inventory does, within five minutes"
)]
pub(crate) struct NotYetDue;

/// Writes overrides, each with its entry in the activity log, and asks poll-status to make due what
/// they concern and to publish them. All or none are written, unless there are very many: then the
/// error says how many were.
///
/// # Errors
/// [`NotYetDue`] as the context of an error after which the overrides are in force all the same.
pub(crate) async fn replace_overrides(
    session: &Session,
    changes: &[OverrideChange],
) -> anyhow::Result<()> {
    let mut written = 0;
    let mut failure = None;
    for some in changes.chunks(OVERRIDES_AT_ONCE) {
        if let Err(error) = session.store.replace_overrides(some).await {
            failure = Some(anyhow::Error::new(error));
            break;
        }
        written += some.len();
    }
    let asked = async {
        let functions = session.functions()?;
        let activities = changes[..written].iter().map(|change| change.activity.clone());
        let questions = activities.map(|activity| Question::Changed(Box::new(activity)));
        let asked = stream::iter(questions.map(|question| functions.ask(question)));
        asked.buffer_unordered(ASKED_AT_ONCE).try_collect::<Vec<_>>().await
    };
    let asked = if written == 0 { Ok(Vec::new()) } else { asked.await };
    match failure {
        Some(error) if written == 0 => Err(error),
        Some(error) => {
            let (last, all) = (&changes[written - 1].one.target, changes.len());
            let context = format!("only {written} of {all} overrides are written, up to {last}");
            Err(error).context(context)
        }
        None => asked.map(drop).context(NotYetDue),
    }
}

/// Sets or ends a pause, and asks poll-status to make due what that concerns and to publish it.
///
/// # Errors
/// [`NotYetDue`] as the context of an error after which it is written all the same.
pub(crate) async fn replace_pause(
    session: &Session,
    pause: &Pause,
    replaces: Option<&Pause>,
    activity: Activity,
) -> anyhow::Result<()> {
    session.store.replace_pause(pause, replaces, &activity).await?;
    report(session, activity).await.context(NotYetDue)
}

/// Asks poll-status to publish what was done. Publishing is best effort: a failure is reported and
/// nothing else.
pub(crate) async fn publish(session: &Session, activity: Activity) {
    if let Err(error) = report(session, activity).await {
        output::warn(&*error.context("no event was published"));
    }
}

async fn report(session: &Session, activity: Activity) -> anyhow::Result<()> {
    let question = Question::Changed(Box::new(activity));
    session.functions()?.ask(question).await.map(drop)
}
