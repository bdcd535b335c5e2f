//! Renamed accounts: which records, sizes and overrides belong to which name.

use std::cmp::Ordering;

use crate::{
    configuration::{Configuration, Override, Overrides, Target},
    record::{Record, Revision},
    reference::{AccountName, ResourceRef},
    resource::SavedState,
};

impl Configuration {
    /// The accounts that had another name before: that one, and the present one.
    pub fn renames(&self) -> impl Iterator<Item = (&AccountName, &AccountName)> {
        let accounts = self.accounts.iter();
        accounts.filter_map(|(name, account)| Some((account.was()?, name)))
    }

    /// The present name of an account. A name that is configured is its own account's.
    #[must_use]
    pub fn present_name<'n>(&'n self, account: &'n AccountName) -> &'n AccountName {
        let mut renames = self.renames();
        match renames.find(|(was, _)| *was == account) {
            Some((_, present)) if !self.accounts.contains_key(account) => present,
            Some(_) | None => account,
        }
    }

    /// The present reference of a resource whose account may have had another name.
    #[must_use]
    pub fn renamed(&self, reference: &ResourceRef) -> ResourceRef {
        ResourceRef {
            account: self.present_name(&reference.account).clone(),
            id: reference.id.clone(),
        }
    }

    /// Takes back the renames of the configuration in force, where this earlier one has an account
    /// under its former name alone: a rollback carries its records back.
    pub fn take_back_renames(&mut self, in_force: &Configuration) {
        for (was, present) in in_force.renames() {
            if self.accounts.contains_key(present) {
                continue;
            }
            if let Some(account) = self.accounts.get_mut(was) {
                account.set_was(present.clone());
            }
        }
    }
}

impl Overrides {
    /// All of them as they stand when the accounts of a configuration have their present names. Of
    /// two for one resource the later one stands.
    #[must_use]
    pub fn renamed(&self, configuration: &Configuration) -> Self {
        let mut all: Vec<_> = self.iter().map(|one| one.renamed(configuration)).collect();
        // Where two collide, the last one collected stays.
        all.sort_by_key(|one| one.set_at);
        all.into_iter().collect()
    }
}

impl Override {
    /// The same override of the resource under its present reference.
    #[must_use]
    pub fn renamed(&self, configuration: &Configuration) -> Self {
        let target = match &self.target {
            Target::Resource(reference) => Target::Resource(configuration.renamed(reference)),
            Target::Schedule(_) => self.target.clone(),
        };
        Self {
            target,
            ..self.clone()
        }
    }
}

/// The record of a resource under its present reference, and a size that it no longer keeps.
///
/// `old` is the record under the former name of the account, `new` the one under the present name,
/// if there is one. The new one goes on, unless only the old one was acted on; it takes over the
/// size that the old one is owed.
#[must_use]
pub fn joined(
    old: &Record,
    new: Option<&Record>,
    reference: ResourceRef,
) -> (Record, Option<SavedState>) {
    let revision = new.map_or(old.revision, |new| new.revision.max(old.revision));
    let (mut record, dropped) = match new {
        Some(new) if !new.is_untouched() || old.is_untouched() => {
            let mut record = new.clone();
            let dropped = inherit(&mut record, old);
            (record, dropped)
        }
        Some(_) | None => (old.clone(), None),
    };
    record.reference = reference;
    record.revision = Revision(revision.0 + 1);
    (record, dropped)
}

/// Takes over the size that an older record of the same resource is owed. Returns the size that is
/// dropped, if one is.
fn inherit(record: &mut Record, older: &Record) -> Option<SavedState> {
    let owed = older.saved.clone()?;
    // Nothing followed the older record meanwhile: its shrink may have been accepted.
    record.used = true;
    let Some(own) = record.saved.take() else {
        record.saved = Some(owed);
        return None;
    };
    let (kept, dropped) = match owed.compare(&own) {
        Some(Ordering::Greater) => (owed, own),
        Some(Ordering::Less | Ordering::Equal) | None => (own, owed),
    };
    record.saved = Some(kept.with_bounds_of(&dropped));
    (record.saved.as_ref() != Some(&dropped)).then_some(dropped)
}

#[cfg(test)]
mod tests;
