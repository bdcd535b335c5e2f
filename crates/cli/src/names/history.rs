//! The resources that a person names, in history: those that are gone are known only from there.

use std::collections::BTreeSet;

use anyhow::Context as _;
use domain::{ResourceRef, history::HistoryEntry, record::Record};
use report::nearest::nearest;
use store::{HistoryPages, HistoryQuery, Store};
use wildmatch::WildMatch;

use super::Names;
use crate::output;

/// What a person names in history.
#[derive(Debug)]
pub(crate) struct HistorySelection<'n> {
    names: &'n Names,
    /// The resources that have a record, and those named by reference.
    pub(crate) references: BTreeSet<ResourceRef>,
    /// Names and patterns that fit no record.
    words: Vec<(&'n str, WildMatch)>,
    /// The names that were found in history instead.
    seen: BTreeSet<String>,
    is_read: bool,
    all: bool,
}

impl Names {
    /// The resources that the targets name; all of them if there are no targets.
    pub(crate) fn in_history<'n>(&'n self, targets: &'n [String]) -> HistorySelection<'n> {
        let (mut references, mut words) = (BTreeSet::new(), Vec::new());
        for target in targets {
            if let Ok(reference) = target.parse() {
                references.extend([self.configuration().renamed(&reference), reference]);
                continue;
            }
            let word = super::pattern(target).unwrap_or_else(|| WildMatch::new(target));
            // Of resources that are gone, too.
            let fits = |one: &&Record| super::fits(&word, &one.name, &one.reference);
            let meant = self.records.iter().filter(fits).map(|record| record.reference.clone());
            let meant: Vec<_> = meant.collect();
            if meant.is_empty() {
                words.push((target.as_str(), word));
            }
            references.extend(meant);
        }
        let (seen, all) = (BTreeSet::new(), targets.is_empty());
        HistorySelection { names: self, references, words, seen, is_read: false, all }
    }
}

impl HistorySelection<'_> {
    pub(crate) fn includes_record(&self, record: &Record) -> bool {
        self.all || self.references.contains(&record.reference)
    }

    /// Whether a finished transition belongs to a selected resource. Its account may have been
    /// renamed since.
    fn includes(&mut self, entry: &HistoryEntry) -> bool {
        let present = || self.names.configuration().renamed(&entry.reference);
        let named = |reference: &ResourceRef| self.references.contains(reference);
        if self.all || named(&entry.reference) || named(&present()) {
            return true;
        }
        if !self.words.is_empty() {
            self.seen.insert(entry.name.clone());
        }
        self.words.iter().any(|(_, word)| super::fits(word, &entry.name, &entry.reference))
    }

    /// Reads the finished transitions of the selected resources, and returns how many could not be
    /// read. Those of one resource come together.
    pub(crate) async fn read(
        &mut self,
        store: &Store,
        finished: HistoryQuery,
        mut take: impl FnMut(HistoryEntry) -> anyhow::Result<()>,
    ) -> anyhow::Result<usize> {
        self.is_read = true;
        let sources: Vec<HistoryPages> = if self.all || !self.words.is_empty() {
            vec![store.history_between(finished)]
        } else {
            let former = self.names.configuration().renames().flat_map(|(was, present)| {
                let renamed = self.references.iter().filter(|one| one.account == *present);
                renamed.map(|one| ResourceRef { account: was.clone(), id: one.id.clone() })
            });
            let all: BTreeSet<_> = former.chain(self.references.iter().cloned()).collect();
            all.iter().map(|reference| store.history_of(reference, finished.clone())).collect()
        };
        let mut unreadable = 0;
        for mut pages in sources {
            while let Some(page) = pages.next().await.context("cannot read the store")? {
                unreadable += page.unreadable;
                for entry in page.entries {
                    if self.includes(&entry) {
                        take(entry)?;
                    }
                }
            }
        }
        Ok(unreadable)
    }

    /// Says which names neither a record nor the history that was read, if any was, has, and what was
    /// probably meant.
    pub(crate) fn unknown(&self) -> Vec<String> {
        let missing = |(target, word): &(&str, WildMatch)| {
            if self.seen.iter().any(|name| word.matches(name)) {
                return None;
            }
            let records = self.names.records.iter().map(|record| record.name.as_str());
            let near = nearest(target, records.chain(self.seen.iter().map(String::as_str)));
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            let history = if self.is_read { ", nor has this time of history" } else { "" };
            Some(format!("no record has the name `{target}`{history}{near}"))
        };
        self.words.iter().filter_map(missing).collect()
    }
}

/// Reports how many history items could not be read.
pub(crate) fn report_unreadable(unreadable: usize) {
    if unreadable > 0 {
        output::remark(&format!(
            "warning: {unreadable} items of history cannot be read and are left out; \
             is this program older than the one that wrote them?\n"
        ));
    }
}
