//! Overrides: one item per target beside the head, kept after its end until it is replaced.

use aws_sdk_dynamodb::{
    operation::put_item::PutItemError, types::ReturnValuesOnConditionCheckFailure,
};
use domain::{
    ResourceRef, ScheduleName,
    configuration::{Configuration, Override, Target},
    membership::{Membership, Subject},
    record::Record,
};
use jiff::Timestamp;

use crate::{Store, StoreError, failed, item};

/// An override that was not set, or not wholly.
#[derive(Debug, thiserror::Error)]
pub enum OverrideError {
    /// Somebody else set or cleared that of the same target meanwhile: look again.
    #[error("somebody else changed the override of {0} meanwhile")]
    Overtaken(Target),
    /// The store failed. What held still holds, unless only the last answer was lost: look again.
    #[error("failed to write the override")]
    Store(#[from] StoreError),
    /// It holds, but some records are not due by it yet; the next inventory makes them so.
    #[error("the override is written, but failed to make all that it concerns due at once")]
    NotYetDue(#[source] StoreError),
}

impl Store {
    /// Sets an override in place of whichever its target has, and makes due what it concerns.
    pub async fn set_override(&self, one: &Override, now: Timestamp) -> Result<(), OverrideError> {
        let overrides = self.present().await?.overrides;
        self.replace_override(one, overrides.of(&one.target), now)
            .await
    }

    /// Sets an override in place of the one that its target is known to have, and makes due what
    /// it concerns: the resource, or all that follows the schedule.
    ///
    /// A crash between the two steps is mended by the next inventory.
    pub async fn replace_override(
        &self,
        one: &Override,
        replaces: Option<&Override>,
        now: Timestamp,
    ) -> Result<(), OverrideError> {
        self.put_override(one, replaces).await?;
        let made_due = match &one.target {
            Target::Resource(reference) => self.touch_one(reference, now).await,
            Target::Schedule(name) => self.touch_members(name, now).await,
        };
        made_due.map_err(OverrideError::NotYetDue)
    }

    pub(crate) async fn put_override(
        &self,
        one: &Override,
        replaces: Option<&Override>,
    ) -> Result<(), OverrideError> {
        let item = item::of_override(one)?;
        let put = self
            .client
            .put_item()
            .table_name(&self.tables.schedules)
            .set_item(Some(item.clone()))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let put = match replaces {
            None => put.condition_expression("attribute_not_exists(generation_key)"),
            Some(known) => {
                let mut known = item::of_override(known)?;
                let mut put = put.condition_expression("set_at = :set_at AND ends_at = :ends_at");
                for name in ["set_at", "ends_at"] {
                    if let Some(value) = known.remove(name) {
                        put = put.expression_attribute_values(format!(":{name}"), value);
                    }
                }
                put
            }
        };
        match put.send().await {
            Ok(_) => Ok(()),
            Err(error) => match error.as_service_error() {
                // The answer to an earlier try of this very write may have been lost.
                Some(PutItemError::ConditionalCheckFailedException(refused))
                    if refused.item.as_ref() == Some(&item) =>
                {
                    Ok(())
                }
                Some(PutItemError::ConditionalCheckFailedException(_)) => {
                    Err(OverrideError::Overtaken(one.target.clone()))
                }
                Some(_) | None => Err(failed("write an override")(error).into()),
            },
        }
    }

    async fn touch_one(&self, reference: &ResourceRef, now: Timestamp) -> Result<(), StoreError> {
        let record = match self.record(reference).await {
            // A newer program wrote it, and sees to it.
            Err(error) if error.is_unreadable() => None,
            read => read?,
        };
        let in_force = self.in_force().await?;
        self.make_due(record, &in_force, now).await
    }

    async fn touch_members(
        &self,
        schedule: &ScheduleName,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let accounts = &self.in_force().await?.configuration.accounts;
        let concerns = |record: &Record, configuration: &Configuration| {
            let membership = Membership::of(Subject::recorded(record), configuration);
            [record.schedule.as_ref(), membership.schedule()].contains(&Some(schedule))
        };
        self.touch(accounts.keys(), concerns, now).await
    }
}
