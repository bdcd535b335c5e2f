//! Overrides: one item per target beside the head, kept after its end until it is replaced.

use domain::{
    ResourceRef, ScheduleName,
    configuration::{Override, Target},
    membership::{Membership, Subject},
};
use jiff::Timestamp;

use crate::{Store, StoreError, item::Stored as _, write::Expected};

/// Why an override was not set, or not completely.
#[derive(Debug, thiserror::Error)]
pub enum OverrideError {
    /// Another person set or cleared the same target's override meanwhile: read it again.
    #[error("the override of {0} was changed meanwhile")]
    Overtaken(Target),
    /// The store failed. Nothing has changed, unless only the last response was lost: read again.
    #[error("failed to write the override")]
    Store(#[from] StoreError),
    /// It is in force, but not all records are marked due under it yet; the next inventory does so.
    #[error("the override is written, but failed to make all that it concerns due at once")]
    NotYetDue(#[source] StoreError),
}

impl Store {
    /// Sets an override in place of any that its target has, and marks due what it concerns.
    pub async fn set_override(&self, one: &Override, now: Timestamp) -> Result<(), OverrideError> {
        let overrides = self.head_and_overrides().await?.overrides;
        self.replace_override(one, overrides.of(&one.target), now)
            .await
    }

    /// Sets an override in place of the one that its target is known to have, and marks due what it
    /// concerns: the resource, or everything that follows the schedule.
    ///
    /// A crash between the two steps is repaired by the next inventory.
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
        let item = one.to_item()?;
        let expected = match replaces {
            None => Expected::nothing(),
            Some(known) => {
                let mut known = known.to_item()?;
                let instants =
                    ["set_at", "ends_at"].map(|name| (format!(":{name}"), known.remove(name)));
                let instants = instants
                    .into_iter()
                    .filter_map(|(name, at)| Some((name, at?)));
                Expected::item(
                    "set_at = :set_at AND ends_at = :ends_at",
                    instants.collect(),
                )
            }
        };
        let put = expected.put(&self.tables.schedules, item.clone());
        match self.write("write an override", put).await? {
            None => Ok(()),
            Some(refused) if refused.is_for(&item) => Ok(()),
            Some(_) => Err(OverrideError::Overtaken(one.target.clone())),
        }
    }

    async fn touch_one(&self, reference: &ResourceRef, now: Timestamp) -> Result<(), StoreError> {
        let record = match self.record(reference).await {
            // It is left to the newer program that wrote it.
            Err(error) if error.is_unreadable() => None,
            read => read?,
        };
        let Some(record) = record else { return Ok(()) };
        let in_force = self.in_force().await?;
        self.make_due(record.clone(), &record, &in_force, now).await
    }

    async fn touch_members(
        &self,
        schedule: &ScheduleName,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        for account in self.in_force().await?.configuration.accounts.keys() {
            let records = self.records_of(account).await?.read;
            let in_force = self.in_force().await?;
            for record in records {
                let of = Membership::of(Subject::recorded(&record), &in_force.configuration);
                if [record.schedule.as_ref(), of.schedule()].contains(&Some(schedule)) {
                    self.make_due(record.clone(), &record, &in_force, now)
                        .await?;
                }
            }
        }
        Ok(())
    }
}
