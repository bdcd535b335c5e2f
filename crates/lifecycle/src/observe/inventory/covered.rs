//! Which resources the accounts of one provider cover, so that a resource that two of them reach is
//! scheduled by neither.

use std::{
    collections::{BTreeMap, HashMap},
    iter,
};

use domain::{
    AccountName, ResourceId, ResourceRef,
    configuration::{Account, Configuration},
    hibernation::of_label,
    record::{Phase, Record},
};
use futures_util::{StreamExt as _, stream};
use provider::AT_ONCE;
use store::Coverage;

use super::references;
use crate::{Context, Error, report::Report};

/// What accounts cover, as one invocation has read it. Each inventory needs this for all other
/// accounts at its provider, and would otherwise read it again.
#[derive(Debug, Default)]
pub(super) struct Covered(BTreeMap<AccountName, HashMap<ResourceId, ResourceRef>>);

impl Covered {
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
        let unknown = others(account, configuration).filter(|other| !self.0.contains_key(*other));
        let unknown: Vec<_> = unknown.collect();
        let read = async |other| (other, context.store.coverage_of(other).await);
        let mut read = stream::iter(unknown).map(read).buffered(AT_ONCE);
        while let Some((other, found)) = read.next().await {
            let found = found?;
            let unreadable = references(&found.unreadable);
            let recorded = report.readable(found);
            let account = &configuration.accounts[other];
            let covered = recorded.into_iter().filter(|one| covers(account, one));
            let covered = covered.flat_map(|one| {
                let recreated = one.hibernation.and_then(|machine| machine.present);
                let ids = iter::once(one.reference.id.clone()).chain(recreated);
                ids.map(move |id| (id, one.reference.clone()))
            });
            // The key of an unreadable record says which resource is reached.
            let unreadable = unreadable.into_iter().map(|one| (one.id.clone(), one));
            self.0.insert(other.clone(), unreadable.chain(covered).collect());
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
fn covers(account: &Account, of: &Coverage) -> bool {
    let is_there = !matches!(of.phase, Phase::Gone { .. }) && of.missing_since.is_none();
    let is_within = account.cloud().is_none_or(|cloud| cloud.covers(&of.region));
    is_there && is_within && of.unsupported.is_none()
}

/// Returns the id under which a list shows a record's resource.
pub(super) fn present_id(record: &Record) -> ResourceId {
    record.present().unwrap_or(&record.reference.id).clone()
}
