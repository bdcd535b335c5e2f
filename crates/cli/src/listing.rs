//! What is shown while accounts are listed, and of those that could not be.

use std::{collections::BTreeMap, time::Duration};

use domain::{AccountName, ResourceId, ResourceRef, record::Record};
use indicatif::ProgressBar;
use lifecycle::{
    Occurrence, Report,
    event::{Event, Subject},
};

use crate::{output, progress::bars};

/// The interval at which the spinner turns.
const TURN: Duration = Duration::from_millis(100);

/// An account that could not be listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub account: AccountName,
    /// Why it could not be listed.
    pub error: String,
    pub remedy: String,
}

impl Failure {
    pub(crate) fn print(&self) {
        let Self { account, error, remedy } = self;
        output::remark(&format!("error: account {account}: {error}\n  {remedy}\n"));
    }
}

/// The accounts whose inventory was requested but failed.
pub(crate) fn not_listed(report: &Report) -> Vec<Failure> {
    let failure = |outcome: &Occurrence| {
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

/// Shows a line on standard error while accounts are asked, if that is a terminal.
pub(crate) async fn while_asking<T>(accounts: &[AccountName], asked: impl Future<Output = T>) -> T {
    let names: Vec<_> = accounts.iter().map(AccountName::as_str).collect();
    let bar = bars("Nothing was changed.").add(ProgressBar::new_spinner());
    bar.set_message(format!("asking {}", names.join(", ")));
    bar.enable_steady_tick(TURN);
    let answer = asked.await;
    bar.finish_and_clear();
    answer
}
