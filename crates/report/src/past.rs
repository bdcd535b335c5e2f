//! What history shows of every resource: how each ran, and what was saved. History is read once, one
//! resource after another, and none of it is kept.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    AccountName, ResourceRef,
    account::AccountState,
    configuration::Configuration,
    history::HistoryEntry,
    prices::PriceList,
    record::{INVENTORY_INTERVAL, Record},
};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};

use crate::{
    history::{LastKnownState, Period, stopped_intervals},
    money::{Grouping, SavedCollector, SavedReport},
    strip::Course,
};

/// The age beyond which an account's listing is too old for its records to speak for the present:
/// three inventories.
const TOO_OLD: SignedDuration = SignedDuration::from_secs(3 * INVENTORY_INTERVAL.as_secs());

/// Accounts whose last complete listing is too old to speak for the present, with its instant.
#[must_use]
pub fn unseen_since(
    states: &BTreeMap<AccountName, AccountState>,
    now: Timestamp,
) -> BTreeMap<AccountName, Timestamp> {
    let listed = states.iter().filter_map(|(account, state)| Some((account, state.listed_at?)));
    let old = listed.filter(|(_, at)| now.duration_since(*at) > TOO_OLD);
    old.map(|(account, at)| (account.clone(), at)).collect()
}

/// The history of a resource came in several pieces, so that nothing counted from it is true.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the history of {0} could not be read in one piece")]
pub struct InPieces(pub ResourceRef);

/// Visits each resource once, with all of its history and its record.
#[derive(Debug)]
pub struct Walk<'a, V> {
    visit: V,
    configuration: &'a Configuration,
    records: BTreeMap<&'a ResourceRef, &'a Record>,
    entries: Vec<HistoryEntry>,
    /// What is known of the resources of renamed accounts, under either name.
    renamed: BTreeMap<ResourceRef, Vec<HistoryEntry>>,
    visited: BTreeSet<ResourceRef>,
}

impl<'a, V> Walk<'a, V>
where
    V: FnMut(&ResourceRef, &[HistoryEntry], Option<&'a Record>),
{
    pub fn new(records: &'a [Record], configuration: &'a Configuration, visit: V) -> Self {
        let by_reference = records.iter().map(|record| (&record.reference, record));
        Self {
            visit,
            configuration,
            records: by_reference.collect(),
            entries: Vec::new(),
            renamed: BTreeMap::new(),
            visited: BTreeSet::new(),
        }
    }

    /// Takes the next entry. Those of one resource come together, under each name of its account.
    pub fn pass(&mut self, mut entry: HistoryEntry) -> Result<(), InPieces> {
        let present = self.configuration.renamed(&entry.reference);
        let account = self.configuration.accounts.get(&present.account);
        if account.is_some_and(|account| account.was().is_some()) {
            entry.reference = present.clone();
            self.renamed.entry(present).or_default().push(entry);
            return Ok(());
        }
        let last = self.entries.last();
        if last.is_some_and(|last| last.reference != entry.reference) {
            self.finish_one()?;
        }
        self.entries.push(entry);
        Ok(())
    }

    /// Visits the rest, and then those without history whose records are meant.
    pub fn finish(mut self, is_meant: impl Fn(&Record) -> bool) -> Result<(), InPieces> {
        self.finish_one()?;
        for mut entries in std::mem::take(&mut self.renamed).into_values() {
            entries.sort_by_key(|entry| entry.claimed_at);
            self.entries = entries;
            self.finish_one()?;
        }
        for (reference, record) in self.records {
            if is_meant(record) && !self.visited.contains(reference) {
                (self.visit)(reference, &[], Some(record));
            }
        }
        Ok(())
    }

    fn finish_one(&mut self) -> Result<(), InPieces> {
        let entries = std::mem::take(&mut self.entries);
        let Some(reference) = entries.last().map(|entry| entry.reference.clone()) else {
            return Ok(());
        };
        let record = self.records.get(&reference).copied();
        (self.visit)(&reference, &entries, record);
        if self.visited.insert(reference.clone()) { Ok(()) } else { Err(InPieces(reference)) }
    }
}

/// How each resource ran, and what was saved in a time range.
#[derive(Debug)]
pub struct Past {
    pub courses: BTreeMap<ResourceRef, Course>,
    pub by_resource: SavedReport,
    pub by_schedule: SavedReport,
    pub by_day: SavedReport,
}

/// A builder of [`Past`], which is given all entries of history in the order of the store.
#[derive(Debug)]
pub struct PastCollector<'a> {
    saved: [SavedCollector<'a>; 3],
    courses: BTreeMap<ResourceRef, Course>,
}

impl<'a> PastCollector<'a> {
    /// Counts what was saved in a period, by days of this zone.
    #[must_use]
    pub fn new(
        period: Period,
        configuration: &'a Configuration,
        prices: &'a BTreeMap<AccountName, PriceList>,
        states: &BTreeMap<AccountName, AccountState>,
        zone: &TimeZone,
        now: Timestamp,
    ) -> Self {
        let saved = |by| {
            let mut collector = SavedCollector::new(period, now, configuration, prices);
            collector.unseen_since = unseen_since(states, now);
            collector.by = by;
            collector.zone = zone.clone();
            collector
        };
        let saved = [Grouping::Resource, Grouping::Schedule, Grouping::Day].map(saved);
        Self { saved, courses: BTreeMap::new() }
    }

    /// Counts one resource, from all of its history and its record.
    pub fn count(
        &mut self,
        reference: &ResourceRef,
        entries: &[HistoryEntry],
        record: Option<&Record>,
    ) {
        for saved in &mut self.saved {
            saved.count(reference, entries, record);
        }
        let [saved, ..] = &self.saved;
        let unseen_since = saved.unseen_since.get(&reference.account).copied();
        let known = LastKnownState { record, unseen_since };
        let intervals =
            stopped_intervals(entries, known, &saved.configuration.schedules, saved.now);
        if let Some(record) = record {
            let first = entries.iter().map(|entry| entry.claimed_at).min();
            let course = Course::of(record, first, &intervals, saved.now);
            self.courses.insert(reference.clone(), course);
        }
    }

    /// Returns what was counted. That many entries could not be read.
    #[must_use]
    pub fn finish(self, unreadable: usize) -> Past {
        let [by_resource, by_schedule, by_day] = self.saved.map(|one| one.report(unreadable));
        Past { courses: self.courses, by_resource, by_schedule, by_day }
    }
}

#[cfg(test)]
mod tests {
    use domain::resource::Power;
    use testing::history::*;

    use super::*;
    use crate::scene::{OFFICE, in_force};

    #[test]
    fn a_history_in_pieces_is_refused() {
        let in_force = in_force(OFFICE);
        let mut walk = Walk::new(&[], &in_force.configuration, |_, _, _| {});
        walk.pass(stop("15 01:00", "15 01:01")).unwrap();
        walk.pass(stop("15 01:00", "15 01:01").of("do-main/node-pool/c/p")).unwrap();
        walk.pass(stop("15 02:00", "15 02:01")).unwrap();
        let error = walk.finish(|_| true).unwrap_err();
        assert!(error.to_string().contains("hz-eu/server/1 could not be read"), "{error}");
    }

    #[test]
    fn each_resource_is_visited_once_with_its_history_or_without_any() {
        let records = [
            web_record(Power::Running, "16 08:00"),
            record("hz-eu/server/2", Power::Running, "01 00:00"),
            record("hz-eu/server/3", Power::Running, "01 00:00"),
        ];
        let mut visited = Vec::new();
        let in_force = in_force(OFFICE);
        let mut walk =
            Walk::new(&records, &in_force.configuration, |reference, entries, record| {
                visited.push((reference.to_string(), entries.len(), record.is_some()));
            });
        for entry in [stop("15 01:00", "15 01:01"), start("15 02:00", "15 02:01")] {
            walk.pass(entry).unwrap();
        }
        walk.pass(stop("15 01:00", "15 01:01").of("hz-eu/server/9")).unwrap();
        walk.finish(|record| record.reference != records[2].reference).unwrap();
        let expected = [("hz-eu/server/1", 2, true), ("hz-eu/server/9", 1, false)];
        let expected = expected.into_iter().chain([("hz-eu/server/2", 0, true)]);
        let expected = expected.map(|(name, entries, known)| (name.to_owned(), entries, known));
        assert_eq!(visited, expected.collect::<Vec<_>>());
    }

    #[test]
    fn what_an_account_did_under_its_former_name_belongs_to_its_resources() {
        let renamed = OFFICE.replace("token = \"env:HZ\"", "token = \"env:HZ\", was = \"old\"");
        let in_force = in_force(&renamed);
        let records = [web_record(Power::Running, "16 08:00")];
        let mut visited = Vec::new();
        let mut walk =
            Walk::new(&records, &in_force.configuration, |reference, entries, record| {
                let since: Vec<_> = entries.iter().map(|entry| entry.claimed_at).collect();
                visited.push((reference.to_string(), since, record.is_some()));
            });
        // In the order of the store, which is none of time.
        walk.pass(start("15 02:00", "15 02:01")).unwrap();
        walk.pass(stop("14 01:00", "14 01:01").of("do-main/node-pool/c/p")).unwrap();
        walk.pass(stop("15 01:00", "15 01:01").of("old/server/1")).unwrap();
        walk.finish(|_| true).unwrap();
        let times = vec![at("15 01:00"), at("15 02:00")];
        let pool = ("do-main/node-pool/c/p".to_owned(), vec![at("14 01:00")], false);
        assert_eq!(visited, [pool, ("hz-eu/server/1".to_owned(), times, true)]);
    }
}
