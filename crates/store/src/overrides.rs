//! Overrides: one item per target, kept after its end until it is replaced.

use domain::{
    ResourceRef, ScheduleName,
    activity::Activity,
    configuration::{Override, Target},
    membership::{Membership, Subject},
};
use jiff::Timestamp;

use crate::{
    HeadAndOverrides, Store, StoreError, failed,
    item::{self, Stored as _},
    write::Expected,
};

/// Why an override was not set.
#[derive(Debug, thiserror::Error)]
pub enum OverrideError {
    /// Another person set or cleared the same target's override meanwhile: read it again.
    #[error("the override of {0} was changed meanwhile")]
    Overtaken(Target),
    /// The store failed. Nothing has changed, unless only the last response was lost: read again.
    #[error("failed to write the override")]
    Store(#[from] StoreError),
}

impl Store {
    /// Sets an override in place of the one that its target is known to have. What it concerns is
    /// due at the next inventory, or once it is [made due](Self::make_target_due).
    ///
    /// The entry in the activity log is written with it, both or neither.
    pub async fn replace_override(
        &self,
        one: &Override,
        replaces: Option<&Override>,
        activity: &Activity,
    ) -> Result<(), OverrideError> {
        self.put_override(one, replaces, Some(activity)).await
    }

    pub(crate) async fn put_override(
        &self,
        one: &Override,
        replaces: Option<&Override>,
        activity: Option<&Activity>,
    ) -> Result<(), OverrideError> {
        let item = one.to_item()?;
        let expected = match replaces {
            None => Expected::nothing(),
            Some(known) => {
                let mut known = known.to_item()?;
                let instants =
                    ["set_at", "ends_at"].map(|name| (format!(":{name}"), known.remove(name)));
                let instants = instants.into_iter().filter_map(|(name, at)| Some((name, at?)));
                // No override is there if the known one is still where earlier versions kept it.
                Expected::item(
                    "attribute_not_exists(generation_key) \
                     OR (set_at = :set_at AND ends_at = :ends_at)",
                    instants.collect(),
                )
            }
        };
        let put = expected.put(&self.tables.schedules, item.clone());
        let what = "write an override";
        let refused = match activity {
            Some(activity) => {
                let both = vec![put, self.put_activity(activity)?];
                self.write_all(what, both, None).await?
            }
            None => self.write(what, put).await?,
        };
        match refused {
            None => Ok(()),
            Some(refused) if refused.is_for(&item) => Ok(()),
            Some(_) => Err(OverrideError::Overtaken(one.target.clone())),
        }
    }

    /// Moves the overrides that earlier versions stored beside the head: deletes those that are
    /// replaced, and copies the others. An override is never copied and deleted by the same call,
    /// so that no reader, who reads both places concurrently, misses it.
    pub(crate) async fn move_former_overrides(
        &self,
        present: &HeadAndOverrides,
    ) -> Result<(), StoreError> {
        for target in &present.replaced {
            let key = item::former_override_key(target);
            let delete = self.client.delete_item().table_name(&self.tables.schedules);
            let deleted = delete.set_key(Some(key)).send().await;
            deleted.map_err(failed("delete a former override"))?;
        }
        for one in &present.former {
            match self.put_override(one, None, None).await {
                // Another writer replaced it first.
                Ok(()) | Err(OverrideError::Overtaken(_)) => {}
                Err(OverrideError::Store(error)) => return Err(error),
            }
        }
        Ok(())
    }

    /// Marks due what an override of this target concerns: the resource, or everything that follows
    /// the schedule.
    pub async fn make_target_due(&self, target: &Target, now: Timestamp) -> Result<(), StoreError> {
        match target {
            Target::Resource(reference) => self.touch_one(reference, now).await,
            Target::Schedule(name) => self.touch_members(name, now).await,
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
                    self.make_due(record.clone(), &record, &in_force, now).await?;
                }
            }
        }
        Ok(())
    }
}
