//! Finds the resources a person names in history: those that are gone are known only from there.

use std::collections::BTreeSet;

use anyhow::Context as _;
use domain::{
    ResourceRef, ScheduleName, configuration::Configuration, history::HistoryEntry,
    left_behind::is_ghost, record::Record,
};
use jiff::Timestamp;
use store::{HistoryPages, HistoryQuery, Store};

use super::{
    named,
    nearest::{advice, nearest},
};
use crate::{exit::UsageError, output};

/// Refuses a schedule that is neither configured nor known from `seen`.
pub(crate) fn check_schedule(
    schedule: Option<&ScheduleName>,
    configuration: &Configuration,
    seen: bool,
) -> anyhow::Result<()> {
    let Some(name) = schedule.filter(|name| !seen && !configuration.schedules.contains_key(*name))
    else {
        return Ok(());
    };
    let names = configuration.schedules.keys().map(ScheduleName::as_str);
    let advice = advice(name.as_str(), "schedules", names);
    let message = format!("there is no schedule `{name}`, and history has none; {advice}");
    Err(UsageError(message).into())
}

/// The resources that a person names. Those that are gone are known only from history.
#[derive(Debug, Default)]
pub(crate) struct HistorySelection {
    references: BTreeSet<ResourceRef>,
    /// Their references before their accounts were renamed.
    former: BTreeSet<ResourceRef>,
    /// Names that no record has.
    names: BTreeSet<String>,
    /// The references and names that were found.
    found: BTreeSet<String>,
    /// Other names in history, from which the nearest is suggested.
    other_names: BTreeSet<String>,
    all: bool,
}

impl HistorySelection {
    /// The resources that the targets name, by reference or by name. All resources if there are no
    /// targets.
    pub(crate) fn of(
        targets: &[String],
        records: &[Record],
        configuration: &Configuration,
        now: Timestamp,
    ) -> anyhow::Result<Self> {
        let mut selection = Self { all: targets.is_empty(), ..Self::default() };
        for target in targets {
            if let Ok(reference) = target.parse::<ResourceRef>() {
                if records.iter().any(|record| record.reference == reference) {
                    selection.found.insert(reference.to_string());
                }
                selection.references.insert(reference);
            } else if records
                .iter()
                .any(|record| record.name == *target && !is_ghost(record, configuration, now))
            {
                let reference = &named(target, records, configuration, now)?.reference;
                selection.found.insert(reference.to_string());
                selection.references.insert(reference.clone());
            } else {
                selection.names.insert(target.clone());
            }
        }
        let names = records.iter().map(|record| record.name.clone());
        selection.other_names.extend(names);
        Ok(selection)
    }

    /// Adds the references that the resources had under the accounts' former names.
    pub(crate) fn with_former_names(mut self, configuration: &Configuration) -> Self {
        for (was, present) in configuration.renames() {
            let references = self.references.iter();
            let renamed = references.filter(|reference| reference.account == *present);
            self.former.extend(
                renamed.map(|reference| ResourceRef {
                    account: was.clone(),
                    id: reference.id.clone(),
                }),
            );
        }
        self
    }

    /// Whether a record's resource is selected.
    pub(crate) fn includes_record(&self, record: &Record) -> bool {
        self.all || self.references.contains(&record.reference)
    }

    /// Whether a finished transition belongs to a selected resource.
    fn includes(&mut self, entry: &HistoryEntry) -> bool {
        if self.all {
            return true;
        }
        if self.references.contains(&entry.reference) {
            self.found.insert(entry.reference.to_string());
            return true;
        }
        if self.former.contains(&entry.reference) {
            return true;
        }
        if self.names.contains(&entry.name) {
            self.found.insert(entry.name.clone());
            return true;
        }
        if !self.names.is_empty() && !self.other_names.contains(&entry.name) {
            self.other_names.insert(entry.name.clone());
        }
        false
    }

    /// Refuses targets that are in neither the records nor the history that was read.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let references = self.references.iter().map(ToString::to_string);
        let mut targets = references.chain(self.names.iter().cloned());
        let Some(unknown) = targets.find(|target| !self.found.contains(target)) else {
            return Ok(());
        };
        let names = self.other_names.iter().map(String::as_str);
        let advice = match nearest(&unknown, names) {
            Some(name) => format!("did you mean `{name}`?"),
            None => "`offhours status` lists those that are known".to_owned(),
        };
        let message = format!("no resource `{unknown}`, and history has none; {advice}");
        Err(UsageError(message).into())
    }

    /// Reads the finished transitions of the selected resources, and returns how many could not be
    /// read. Those of one resource come together.
    pub(crate) async fn read(
        &mut self,
        store: &Store,
        finished: HistoryQuery,
        mut take: impl FnMut(HistoryEntry) -> anyhow::Result<()>,
    ) -> anyhow::Result<usize> {
        let sources: Vec<HistoryPages> = if self.all || !self.names.is_empty() {
            vec![store.history_between(finished)]
        } else {
            let of = |reference| store.history_of(reference, finished.clone());
            let former = self.former.difference(&self.references);
            self.references.iter().chain(former).map(of).collect()
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
