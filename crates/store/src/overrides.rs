//! Overrides and pauses: one item per target or scope, kept after its end until it is replaced.

use aws_sdk_dynamodb::types::Put;
use domain::{
    ResourceRef, ScheduleName,
    activity::Activity,
    configuration::{Override, OverrideTarget, Pause, PauseScope},
    decision,
    membership::{Membership, Subject},
    record::Record,
};
use jiff::Timestamp;

use crate::{
    Store, StoreError,
    item::{Item, Stored},
    write::Expected,
};

/// How many overrides one transaction sets.
pub const OVERRIDES_AT_ONCE: usize = 50;

/// An override to set, what it replaces, and the entry in the activity log.
#[derive(Debug, Clone)]
pub struct OverrideChange {
    pub one: Override,
    /// The override that its target is known to have.
    pub replaces: Option<Override>,
    pub activity: Activity,
}

/// Why an override was not set.
#[derive(Debug, thiserror::Error)]
pub enum OverrideError {
    /// Another person set or cleared the same target's override meanwhile: read it again.
    #[error("the override of {0} was changed meanwhile")]
    Overtaken(OverrideTarget),
    /// Another person paused or resumed the same scope meanwhile: read it again.
    #[error("the pause of {0} was changed meanwhile")]
    PauseOvertaken(PauseScope),
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
        let change = OverrideChange {
            one: one.clone(),
            replaces: replaces.cloned(),
            activity: activity.clone(),
        };
        self.replace_overrides(&[change]).await
    }

    /// The same for several targets, all or none of them: at most [`OVERRIDES_AT_ONCE`].
    pub async fn replace_overrides(&self, changes: &[OverrideChange]) -> Result<(), OverrideError> {
        let (mut puts, mut items) = (Vec::new(), Vec::new());
        for OverrideChange { one, replaces, activity } in changes {
            let (item, put) = self.put_in_place(one, replaces.as_ref())?;
            puts.extend([put, self.put_activity(activity)?]);
            items.push((item, &one.target));
        }
        let refused = self.write_all("write an override", puts, None).await?;
        let Some((_, first)) = items.first() else { return Ok(()) };
        match refused {
            None => Ok(()),
            Some(refused) if items.iter().any(|(item, _)| refused.is_for(item)) => Ok(()),
            Some(refused) => {
                let of = items.iter().find(|(item, _)| refused.is_in_place_of(item));
                Err(OverrideError::Overtaken(of.map_or(*first, |(_, target)| *target).clone()))
            }
        }
    }

    /// Sets a pause in place of the one that its scope is known to have. What it concerns is due as it
    /// says at the next inventory, or once it is [made so](Self::make_scope_due).
    ///
    /// The entry in the activity log is written with it, both or neither.
    pub async fn replace_pause(
        &self,
        pause: &Pause,
        replaces: Option<&Pause>,
        activity: &Activity,
    ) -> Result<(), OverrideError> {
        let (item, put) = self.put_in_place(pause, replaces)?;
        let puts = vec![put, self.put_activity(activity)?];
        match self.write_all("write a pause", puts, None).await? {
            None => Ok(()),
            Some(refused) if refused.is_for(&item) => Ok(()),
            Some(_) => Err(OverrideError::PauseOvertaken(pause.scope.clone())),
        }
    }

    /// Builds the write of an override or a pause in place of the one that is known.
    fn put_in_place<T: Stored>(
        &self,
        one: &T,
        replaces: Option<&T>,
    ) -> Result<(Item, Put), StoreError> {
        let item = one.to_item()?;
        let expected = match replaces {
            None => Expected::nothing(),
            Some(known) => {
                let mut known = known.to_item()?;
                let instants =
                    ["set_at", "ends_at"].map(|name| (format!(":{name}"), known.remove(name)));
                let instants = instants.into_iter().filter_map(|(name, at)| Some((name, at?)));
                Expected::item("set_at = :set_at AND ends_at = :ends_at", instants.collect())
            }
        };
        let put = expected.put(&self.tables.schedules, item.clone());
        Ok((item, put))
    }

    /// Writes an override that no person sets.
    pub(crate) async fn put_override(
        &self,
        one: &Override,
        replaces: Option<&Override>,
    ) -> Result<(), OverrideError> {
        let (item, put) = self.put_in_place(one, replaces)?;
        match self.write("write an override", put).await? {
            None => Ok(()),
            Some(refused) if refused.is_for(&item) => Ok(()),
            Some(_) => Err(OverrideError::Overtaken(one.target.clone())),
        }
    }

    /// Marks due what an override of this target concerns: the resource, or everything that follows
    /// the schedule.
    pub async fn make_target_due(
        &self,
        target: &OverrideTarget,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        match target {
            OverrideTarget::Resource(reference) => self.touch_one(reference, now).await,
            OverrideTarget::Schedule(name) => self.touch_members(name, now).await,
        }
    }

    /// Brings forward or back when the resources are due to which a pause of this scope applies. Each
    /// that is in flight is written, so that no request follows from an earlier view.
    pub async fn make_scope_due(
        &self,
        scope: &PauseScope,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let accounts = self.in_force().await?;
        let accounts = accounts.configuration.accounts.keys().filter(|name| match scope {
            PauseScope::Account(account) => account == *name,
            PauseScope::Everything | PauseScope::Schedule(_) | PauseScope::Tag(_) => true,
        });
        for account in accounts {
            let records = self.records_of(account).await?.read;
            let in_force = self.in_force().await?;
            for known in records {
                let due_at = decision::due_at(&known, in_force.rules(), now);
                if due_at != known.due_at || known.in_flight().is_some() {
                    self.save_unless_stale(Record { due_at, ..known }).await?;
                }
            }
        }
        Ok(())
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
