//! What a person has just changed with a command, which may write no record.

use domain::activity::Activity;

use crate::{Context, Error, Report};

/// Publishes the change, and makes due what an override concerns.
pub async fn changed(context: Context<'_>, activity: &Activity) -> Result<Report, Error> {
    context.listener.changed(activity);
    if let Some(target) = activity.action.overridden() {
        let now = context.clock.now();
        context.store.make_target_due(target, now).await?;
    }
    Ok(Report::default())
}
