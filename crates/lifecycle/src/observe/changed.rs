//! What a person has just changed with a command, which may write no record.

use domain::activity::Activity;

use crate::{Context, Error, Report};

/// Publishes the change, and makes due what an override or a pause concerns.
pub async fn changed(context: Context<'_>, activity: &Activity) -> Result<Report, Error> {
    context.listener.changed(activity);
    let now = context.clock.now();
    if let Some(target) = activity.action.overridden() {
        context.store.make_target_due(target, now).await?;
    }
    if let Some(scope) = activity.action.pause_scope() {
        context.store.make_scope_due(scope, now).await?;
    }
    Ok(Report::default())
}
