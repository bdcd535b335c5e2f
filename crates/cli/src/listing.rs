//! Lists the resources of the accounts: live from the providers, or as the last inventory saw them.

use std::{collections::BTreeMap, time::Duration};

use domain::{AccountName, ResourceId, ResourceRef, record::Record};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use lifecycle::{
    Outcome, Report,
    event::{Event, Subject},
};

use crate::progress::bars;

/// The interval at which the spinners turn.
const TURN: Duration = Duration::from_millis(100);

/// An account that could not be listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The account.
    pub account: AccountName,
    /// Why it could not be listed.
    pub error: String,
    /// What to do about it.
    pub remedy: String,
}

/// The accounts whose inventory was requested but failed.
pub(crate) fn not_listed(report: &Report) -> Vec<Failure> {
    let failure = |outcome: &Outcome| {
        let Subject::Account { account } = &outcome.subject else {
            return None;
        };
        let error = if let Event::Postponed { reason, .. } = &outcome.event {
            reason.to_string()
        } else if let Event::Declined { reason } = &outcome.event {
            reason.clone()
        } else {
            return None;
        };
        Some(Failure {
            account: account.clone(),
            error,
            remedy: "`offhours doctor` says more".to_owned(),
        })
    };
    report.outcomes.iter().filter_map(failure).collect()
}

/// Marks resources that several of the listed accounts reach. For accounts that were not listed,
/// the result of the last inventory is kept.
pub(crate) fn mark_doubles(records: &mut [Record], listed: &[&AccountName]) {
    let mut reached = BTreeMap::<ResourceId, Vec<ResourceRef>>::new();
    // A resource outside an account's datacenters belongs to another account.
    for record in records.iter().filter(|r| r.unsupported.is_none()) {
        let references = reached.entry(record.reference.id.clone()).or_default();
        references.push(record.reference.clone());
    }
    for record in records {
        let reached = reached.get(&record.reference.id).into_iter().flatten();
        let other = reached
            .filter(|_| record.unsupported.is_none())
            .find(|reference| reference.account != record.reference.account);
        let is_over = |double: &ResourceRef| listed.contains(&&double.account);
        record.duplicate_of = match (other, record.duplicate_of.take()) {
            (Some(other), _) => Some(other.clone()),
            (None, Some(before)) if !is_over(&before) => Some(before),
            (None, _) => None,
        };
    }
}

/// A spinner per account on standard error, if that is a terminal.
#[derive(Debug)]
pub(crate) struct Spinners {
    all: MultiProgress,
    by_account: BTreeMap<AccountName, ProgressBar>,
}

impl Spinners {
    /// Spinners that count the resources read.
    pub(crate) fn of(accounts: &[AccountName]) -> Self {
        Self::with(accounts, "{spinner:.cyan} {prefix}: {pos} resources")
    }

    /// Spinners shown while another invocation takes the inventory.
    pub(crate) fn waiting(accounts: &[AccountName]) -> Self {
        Self::with(accounts, "{spinner:.cyan} {prefix}: taking the inventory")
    }

    fn with(accounts: &[AccountName], template: &str) -> Self {
        let all = bars("Nothing was changed.");
        let spinner = |account: &AccountName| {
            let bar = all.add(ProgressBar::new_spinner());
            let style = ProgressStyle::with_template(template);
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar.set_prefix(account.to_string());
            bar.enable_steady_tick(TURN);
            (account.clone(), bar)
        };
        let by_account = accounts.iter().map(spinner).collect();
        Self { all, by_account }
    }

    /// Counts further resources of an account.
    pub(crate) fn read(&self, account: &AccountName, more: usize) {
        if let Some(bar) = self.by_account.get(account) {
            bar.inc(more as u64);
        }
    }

    /// Restores the terminal.
    pub(crate) fn finish(self) {
        for bar in self.by_account.values() {
            bar.finish_and_clear();
        }
        self.all.clear().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{machine, monday, web};

    fn names(names: &[&str]) -> Vec<AccountName> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn what_two_accounts_reach_is_doubled_and_what_was_not_listed_stays_as_it_was() {
        let one = |reference| machine(reference, "ci", &[]);
        let mut records =
            [one("a/server/1"), one("b/server/1"), one("b/server/2"), one("b/server/3")];
        records[2].duplicate_of = Some("a/server/2".parse().unwrap());
        records[3].duplicate_of = Some("z/server/3".parse().unwrap());
        let listed = names(&["a", "b"]);
        mark_doubles(&mut records, &listed.iter().collect::<Vec<_>>());
        let doubles = records.map(|record| record.duplicate_of.map(|other| other.to_string()));
        let expected = [Some("b/server/1"), Some("a/server/1"), None, Some("z/server/3")];
        assert_eq!(doubles, expected.map(|other| other.map(str::to_owned)));
    }

    #[test]
    fn an_inventory_that_was_asked_for_in_vain_is_a_failure_of_its_account_alone() {
        let at = monday("10:00:00");
        let account = |name: &str, event| Outcome::of_account(&name.parse().unwrap(), at, event);
        let reason = "token refused".to_owned();
        let report = Report {
            outcomes: vec![
                account("do-main", Event::Status { state: "listed whole".to_owned() }),
                account("hz-eu", Event::postponed(reason.clone())),
                // A resource's own failure is not the account's.
                Outcome::of(&web(), at, Event::postponed(reason)),
            ],
            ..Report::default()
        };
        let failures = not_listed(&report);
        assert_eq!(failures.len(), 1);
        assert_eq!(failures[0].account.as_str(), "hz-eu");
        assert_eq!(failures[0].error, "token refused");
    }
}
