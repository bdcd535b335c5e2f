//! What is shown while accounts are listed, and of those that could not be.

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

/// Marks resources that several accounts reach.
pub(crate) fn mark_doubles(records: &mut [Record]) {
    let mut reached = BTreeMap::<ResourceId, Vec<ResourceRef>>::new();
    // A resource outside an account's datacenters belongs to another account.
    for record in records.iter().filter(|r| r.unsupported.is_none()) {
        let references = reached.entry(record.reference.id.clone()).or_default();
        references.push(record.reference.clone());
    }
    for record in records.iter_mut().filter(|record| record.unsupported.is_none()) {
        let mut reached = reached.get(&record.reference.id).into_iter().flatten();
        let other = reached.find(|reference| reference.account != record.reference.account);
        record.duplicate_of = other.cloned();
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

    #[test]
    fn what_two_accounts_reach_is_doubled() {
        let one = |reference| machine(reference, "ci", &[]);
        let mut elsewhere = one("c/server/1");
        elsewhere.unsupported = Some("outside the account's datacenters".to_owned());
        let mut records = [one("a/server/1"), one("b/server/1"), one("b/server/2"), elsewhere];
        mark_doubles(&mut records);
        let doubles = records.map(|record| record.duplicate_of.map(|other| other.to_string()));
        let expected = [Some("b/server/1"), Some("a/server/1"), None, None];
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
