//! Renamed accounts: what is known about their resources goes with them.
//!
//! An account's name is part of every key, so each record is written anew and the old one deleted,
//! in one transaction: at any instant one of the two exists, and never both. A writer that holds
//! the old one finds it stale. A request whose answer can no longer be recorded counts as one whose
//! answer was lost.

use std::collections::{BTreeSet, HashMap};

use domain::{
    AccountName, ResourceRef,
    configuration::{Configuration, Override, Overrides},
    decision,
    history::HistoryEntry,
    record::{Cause, Ending, Record, Revision},
    renaming::joined,
    resource::SavedState,
};
use jiff::Timestamp;

use crate::{InForce, Store, StoreError, Unreadable, overrides::OverrideError};

/// How often to try to carry over a record that other writers keep changing.
const TRIES: usize = 5;

impl Store {
    /// Carries the records of `was` over to `account`, which is its present name. Returns the
    /// resources whose records stayed, because they cannot be read (a newer program wrote them) or
    /// because other writers are changing them.
    ///
    /// Idempotent: what one call leaves behind, the next one finds.
    pub async fn carry_over(
        &self,
        was: &AccountName,
        account: &AccountName,
        now: Timestamp,
    ) -> Result<Vec<ResourceRef>, StoreError> {
        let old = self.records_of(was).await?;
        let mut left = references(&old.unreadable);
        if old.read.is_empty() {
            return Ok(left);
        }
        let new = self.records_of(account).await?;
        let newer: BTreeSet<_> =
            references(&new.unreadable).into_iter().map(|reference| reference.id).collect();
        let mut new: HashMap<_, _> =
            new.read.into_iter().map(|record| (record.reference.id.clone(), record)).collect();
        // Read after the records, as everywhere.
        let in_force = self.in_force().await?;
        for old in old.read {
            let reference = old.reference.clone();
            let new = new.remove(&reference.id);
            let carried = !newer.contains(&reference.id)
                && self.carry_over_one(old, new, account, in_force.clone(), now).await?;
            if !carried {
                left.push(reference);
            }
        }
        Ok(left)
    }

    /// Carries one record over. Returns whether the old record is gone.
    async fn carry_over_one(
        &self,
        old: Record,
        mut new: Option<Record>,
        account: &AccountName,
        mut in_force: InForce,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let reference = old.reference.clone();
        let mut old = Some(old);
        for _ in 0..TRIES {
            let Some(present) = &old else {
                return Ok(true);
            };
            let renamed = in_force.configuration.renamed(&reference);
            if renamed.account != *account {
                return Ok(false);
            }
            let (mut record, dropped) = joined(present, new.as_ref(), renamed);
            record.due_at = decision::due_at(&record, in_force.rules(), now);
            let entry = dropped.map(|saved| no_longer_kept(&record, saved, now));
            match self.replace(record, new.as_ref(), present, entry.as_ref()).await {
                Ok(()) => return Ok(true),
                Err(StoreError::Stale { .. }) => {
                    let there = ResourceRef { account: account.clone(), id: reference.id.clone() };
                    let (Some(first), Some(second)) =
                        (self.reread(&reference).await?, self.reread(&there).await?)
                    else {
                        return Ok(false);
                    };
                    (old, new) = (first, second);
                    in_force = self.in_force().await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Reads a record again; the outer `None` means that it cannot be read.
    async fn reread(&self, reference: &ResourceRef) -> Result<Option<Option<Record>>, StoreError> {
        match self.record(reference).await {
            Err(error) if error.is_unreadable() => Ok(None),
            read => read.map(Some),
        }
    }

    /// Writes a record in place of `there`, if there is one, and deletes the old one.
    async fn replace(
        &self,
        record: Record,
        there: Option<&Record>,
        old: &Record,
        entry: Option<&HistoryEntry>,
    ) -> Result<(), StoreError> {
        let replaces = there.map_or(Revision(0), |there| there.revision);
        let mut puts = vec![self.put_record(&record, replaces)?];
        if let Some(entry) = entry {
            puts.push(self.put_history(entry)?);
        }
        let old = Some(self.delete_record(old));
        match self.write_all("carry a record over", puts, old).await? {
            None => Ok(()),
            // Another writer was first, or is writing now: both are read again.
            Some(_) => Err(StoreError::Stale { current: None }),
        }
    }

    /// Copies the overrides of resources whose accounts have another name in a configuration that
    /// is to replace `before`. Returns the copies.
    ///
    /// An override that the resource already has under its new name may [stand](Override::standing).
    pub(crate) async fn copy_overrides(
        &self,
        configuration: &Configuration,
        before: &Configuration,
    ) -> Result<Vec<Override>, StoreError> {
        if configuration.renames().next().is_none() {
            return Ok(Vec::new());
        }
        let overrides = self.head_and_overrides().await?.overrides;
        let mut copies = Vec::new();
        let standing = |one: &Override| one.standing(configuration, before);
        for old in of_renamed(configuration, &overrides) {
            let copy = old.renamed(configuration);
            let own = overrides.get(&copy.target);
            if own.is_none_or(|own| standing(own) < standing(old)) {
                if own != Some(&copy) {
                    written(self.put_override(&copy, own).await)?;
                }
                copies.push(copy);
            }
        }
        Ok(copies)
    }

    /// Ends the copied overrides under their old names, where nothing follows them any more. What
    /// was set or cleared there since they were copied is copied first, if it
    /// [stands](Override::standing).
    pub(crate) async fn end_copied_overrides(
        &self,
        configuration: &Configuration,
        before: &Configuration,
        copied: &[Override],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        if configuration.renames().next().is_none() {
            return Ok(());
        }
        let overrides = self.head_and_overrides().await?.overrides;
        let standing = |one: &Override| one.standing(configuration, before);
        for old in of_renamed(configuration, &overrides) {
            let copy = old.renamed(configuration);
            let own = overrides.get(&copy.target);
            let has_changed = !copied.contains(&copy);
            if has_changed && own.is_none_or(|own| standing(own) < standing(old)) {
                written(self.put_override(&copy, own).await)?;
            }
            if now < old.ends_at {
                let ended = Override { ends_at: now.max(old.set_at), ..old.clone() };
                written(self.put_override(&ended, Some(old)).await)?;
            }
        }
        Ok(())
    }
}

/// The overrides of resources that have another reference in a configuration.
fn of_renamed<'o>(
    configuration: &Configuration,
    overrides: &'o Overrides,
) -> impl Iterator<Item = &'o Override> {
    overrides.iter().filter(|one| one.renamed(configuration).target != one.target)
}

/// Accepts an override that a person changed meanwhile: it is as they want it.
fn written(result: Result<(), OverrideError>) -> Result<(), StoreError> {
    match result {
        Ok(()) | Err(OverrideError::Overtaken(_) | OverrideError::PauseOvertaken(_)) => Ok(()),
        Err(OverrideError::Store(error)) => Err(error),
    }
}

/// Builds the history entry for a size on which two records disagreed.
fn no_longer_kept(record: &Record, saved: SavedState, now: Timestamp) -> HistoryEntry {
    HistoryEntry {
        saved: Some(saved),
        ..HistoryEntry::unasked(record, Cause::Schedule, Ending::Resized, now)
    }
}

fn references(unreadable: &[Unreadable]) -> Vec<ResourceRef> {
    let parsed = unreadable.iter().map(|one| one.reference.parse());
    parsed.filter_map(Result::ok).collect()
}
