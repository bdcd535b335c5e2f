//! Renamed accounts: which records, sizes and overrides belong to which name.
//!
//! The configuration has to declare a new name: two accounts may reach the same resource, and a token
//! does not say which account it belongs to. The name is part of every key: a record is written under
//! the new name and deleted under the old one in one transaction, so that exactly one of the two exists
//! at any instant. Overrides are copied before the configuration takes effect and ended after it.

use std::{cmp::Ordering, collections::BTreeMap};

use crate::{
    account::AccountState,
    configuration::{Account, Configuration, Override, OverrideTarget, Overrides},
    record::{Record, Revision},
    reference::{AccountName, ResourceRef},
    resource::SavedState,
};

impl Configuration {
    /// Returns the renamed accounts, each with its former name and its current one.
    pub fn renames(&self) -> impl Iterator<Item = (&AccountName, &AccountName)> {
        let accounts = self.accounts.iter();
        accounts.filter_map(|(name, account)| Some((account.was()?, name)))
    }

    /// Returns the current name of an account. A name that is configured always means its own
    /// account.
    #[must_use]
    pub fn present_name<'n>(&'n self, account: &'n AccountName) -> &'n AccountName {
        let mut renames = self.renames();
        match renames.find(|(was, _)| *was == account) {
            Some((_, present)) if !self.accounts.contains_key(account) => present,
            Some(_) | None => account,
        }
    }

    /// Returns the current reference of a resource whose account may have been renamed.
    #[must_use]
    pub fn renamed(&self, reference: &ResourceRef) -> ResourceRef {
        ResourceRef {
            account: self.present_name(&reference.account).clone(),
            id: reference.id.clone(),
        }
    }

    /// Reports whether an account was ever listed completely, under either name.
    #[must_use]
    pub fn was_listed(
        &self,
        account: &AccountName,
        states: &BTreeMap<AccountName, AccountState>,
    ) -> bool {
        let was = self.accounts.get(account).and_then(Account::was);
        let names = [Some(account), was].into_iter().flatten();
        names.filter_map(|name| states.get(name)).any(|state| state.listed_at.is_some())
    }

    /// Reverts the renames of the configuration in force where this earlier one has the account
    /// under its former name only, so that a rollback carries its records back.
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
    /// Returns all overrides, with the accounts under their current names in a configuration that is
    /// to replace `before`.
    #[must_use]
    pub fn renamed(&self, configuration: &Configuration, before: &Configuration) -> Self {
        let mut all: Vec<_> = self.iter().collect();
        // If two collide, the last one collected wins.
        all.sort_by_key(|one| one.standing(configuration, before));
        let renamed = all.into_iter().map(|one| one.renamed(configuration));
        renamed.collect::<Self>().with_pauses(self.pauses().cloned())
    }
}

impl Override {
    /// Returns what decides which override of a resource stands, where it has one under each name of
    /// its account: the greatest does. That is the one under the name that is configured until now,
    /// because people may have set or changed that. If neither is, it is the later one of those that
    /// were to hold at all: a rename ends what has yet to begin as if it had been set for no time.
    #[must_use]
    pub fn standing(
        &self,
        configuration: &Configuration,
        before: &Configuration,
    ) -> impl Ord + use<> {
        let is_configured = match &self.target {
            OverrideTarget::Resource(one) => before.accounts.contains_key(&one.account),
            OverrideTarget::Schedule(_) => true,
        };
        let is_present = self.renamed(configuration).target == self.target;
        (is_configured, self.counts(), self.set_at, is_present)
    }

    /// Returns the same override, with the resource under its current reference.
    #[must_use]
    pub fn renamed(&self, configuration: &Configuration) -> Self {
        let target = match &self.target {
            OverrideTarget::Resource(reference) => {
                OverrideTarget::Resource(configuration.renamed(reference))
            }
            OverrideTarget::Schedule(_) => self.target.clone(),
        };
        Self { target, ..self.clone() }
    }
}

/// Merges the records of a resource into one under its current reference. Also returns the size
/// that the result no longer keeps, if any.
///
/// `old` is the record under the account's former name, `new` the one under its current name, if
/// there is one. The one that was acted on last is kept: a rename without `was` leaves records behind,
/// which are those under the current name once it is taken back. But above all, the one that has the
/// only description of a machine is kept. It inherits the size that the other one is owed.
#[must_use]
pub fn joined(
    old: &Record,
    new: Option<&Record>,
    reference: ResourceRef,
) -> (Record, Option<SavedState>) {
    let revision = new.map_or(old.revision, |new| new.revision.max(old.revision));
    let acted_on = |one: &Record| {
        let handled = one.handled.as_ref().map(|handled| (handled.generation, handled.key));
        let acted = (!one.is_untouched()).then(|| (one.in_flight().is_some(), handled));
        (one.is_irreplaceable(), acted)
    };
    let (record, other) = match new {
        Some(new) if acted_on(new) >= acted_on(old) => (new, Some(old)),
        new => (old, new),
    };
    let mut record = record.clone();
    let dropped = other.and_then(|other| inherit(&mut record, other));
    record.reference = reference;
    record.revision = Revision(revision.0 + 1);
    (record, dropped)
}

/// Inherits the size that another record of the same resource is owed, and what it knows of small
/// plans. Returns the size that is dropped, if any.
fn inherit(record: &mut Record, other: &Record) -> Option<SavedState> {
    let owed = other.saved.clone()?;
    // Nothing tracked the other record meanwhile, so its shrink may have been accepted.
    record.may_have_shrunk = true;
    record.small_plans.extend(other.small_plans.iter().cloned());
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
