//! Which resources the accounts of one provider cover, so that a resource that two of them reach is
//! scheduled by neither.

use std::collections::{BTreeMap, HashMap};

use domain::{
    AccountName, ResourceId, ResourceRef,
    configuration::{Account, Configuration},
    hibernation::of_label,
    record::{Phase, Record},
};

use super::references;
use crate::{Context, Error, report::Report};

/// What accounts cover, as one invocation has read it. Each inventory needs this for all other
/// accounts at its provider, and would otherwise read it again.
#[derive(Debug, Default)]
pub(super) struct Covered(BTreeMap<AccountName, HashMap<ResourceId, ResourceRef>>);

impl Covered {
    pub(super) fn note(
        &mut self,
        account: &AccountName,
        configuration: &Configuration,
        unreadable: &[ResourceRef],
        records: &[Record],
    ) {
        let Some(of) = configuration.accounts.get(account) else {
            return;
        };
        let covered = records.iter().filter(|record| covers(of, record));
        let covered = covered.map(|record| &record.reference);
        // The key of an unreadable record says which resource is reached.
        let all = unreadable.iter().chain(covered);
        let all = all.map(|reference| (reference.id.clone(), reference.clone()));
        let present = records.iter().filter(|record| covers(of, record));
        let present = present.map(|record| (present_id(record), record.reference.clone()));
        self.0.insert(account.clone(), all.chain(present).collect());
    }

    /// Forgets what an account covers, because its records were written since.
    pub(super) fn forget(&mut self, account: &AccountName) {
        self.0.remove(account);
    }

    /// Reads what the other accounts at an account's provider cover, unless it is known.
    pub(super) async fn read(
        &mut self,
        context: Context<'_>,
        account: &AccountName,
        configuration: &Configuration,
        report: &mut Report,
    ) -> Result<(), Error> {
        for other in others(account, configuration) {
            if self.0.contains_key(other) {
                continue;
            }
            let found = context.store.records_of(other).await?;
            let unreadable = references(&found.unreadable);
            let records = report.readable(found);
            self.note(other, configuration, &unreadable, &records);
        }
        Ok(())
    }

    /// Returns what the other accounts at an account's provider cover.
    pub(super) fn elsewhere(
        &self,
        account: &AccountName,
        configuration: &Configuration,
    ) -> Elsewhere<'_> {
        let others = others(account, configuration);
        Elsewhere(others.filter_map(|other| self.0.get(other)).collect())
    }
}

/// What the other accounts at the same provider cover, by id.
#[derive(Debug, Default)]
pub(super) struct Elsewhere<'a>(pub(super) Vec<&'a HashMap<ResourceId, ResourceRef>>);

impl Elsewhere<'_> {
    /// Returns the same resource, as recorded by the last of the others that cover it.
    pub(super) fn get(&self, id: &ResourceId) -> Option<&ResourceRef> {
        self.0.iter().rev().find_map(|other| other.get(id))
    }

    /// Reports whether one of the others covers the resource with this label.
    pub(super) fn has(&self, of: &str) -> bool {
        let mut all = self.0.iter().flat_map(|other| other.values());
        all.any(|reference| of_label(&reference.id) == of)
    }
}

fn others<'c>(
    account: &AccountName,
    configuration: &'c Configuration,
) -> impl Iterator<Item = &'c AccountName> {
    // Names of machines over SSH are local to the account: two equal ones say nothing.
    let cloud = |account: &Account| account.cloud().map(|cloud| cloud.provider);
    let provider = configuration.accounts.get(account).and_then(cloud);
    let others = configuration.accounts.iter();
    others
        .filter(move |(other, of)| *other != account && provider.is_some() && cloud(of) == provider)
        .map(|(other, _)| other)
}

/// Reports whether a recorded resource still exists, and is still the account's to handle: its
/// datacenters may have changed since.
fn covers(account: &Account, record: &Record) -> bool {
    let is_there = !matches!(record.phase, Phase::Gone { .. }) && record.missing_since.is_none();
    let is_within = account.cloud().is_none_or(|cloud| cloud.covers(&record.region));
    is_there && is_within && record.unsupported.is_none()
}

/// Returns the id under which a list shows a record's resource.
pub(super) fn present_id(record: &Record) -> ResourceId {
    record.present().unwrap_or(&record.reference.id).clone()
}
