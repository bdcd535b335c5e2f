//! What dispatch logs about its ticks: changes in what it withholds, and one line for a tick in
//! which nothing happened.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
};

use domain::AccountName;

use crate::{DispatchReport, Withheld};

/// What was last logged, so that it is not repeated each minute. It lives as long as the process.
#[derive(Debug, Default)]
pub struct Journal(Mutex<BTreeMap<AccountName, Withheld>>);

impl Journal {
    /// Logs what one tick did, except what was handed out, which has been logged already.
    pub fn log_tick(&self, dispatched: &DispatchReport) {
        let mut said = false;
        for (account, withheld) in self.news(dispatched) {
            said = true;
            log(&account, withheld);
        }
        let handed_out = dispatched.starts.len() + dispatched.stops.len();
        if handed_out + dispatched.undelivered == 0 && !said {
            tracing::info!(
                withheld = dispatched.postponed + dispatched.unobserved,
                "Nothing to hand out"
            );
        }
    }

    /// Returns the accounts whose reasons for withholding differ from the last tick's. How much is
    /// withheld may change from tick to tick without being news.
    fn news(&self, dispatched: &DispatchReport) -> Vec<(AccountName, Withheld)> {
        let now = &dispatched.withheld;
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let nothing = Withheld::default();
        let accounts: BTreeSet<_> = last.keys().chain(now.keys()).collect();
        let news = accounts.into_iter().filter_map(|account| {
            let was = last.get(account).unwrap_or(&nothing);
            let is = now.get(account).unwrap_or(&nothing);
            (reasons(*was) != reasons(*is)).then(|| (account.clone(), *is))
        });
        let news = news.collect();
        last.clone_from(now);
        news
    }
}

/// Returns which of the reasons for withholding apply.
fn reasons(withheld: Withheld) -> [bool; 3] {
    [withheld.postponed, withheld.unobserved, withheld.ahead].map(|count| count > 0)
}

fn log(account: &AccountName, withheld: Withheld) {
    let Withheld { postponed, unobserved, ahead } = withheld;
    if withheld == Withheld::default() {
        tracing::info!(account = %account, "{account}: nothing is withheld any more");
    }
    if postponed > 0 {
        tracing::warn!(
            account = %account,
            postponed,
            "{account}: {postponed} due are left for later ticks, by the rate limit or max_stops"
        );
    }
    if unobserved > 0 {
        tracing::warn!(
            account = %account,
            unobserved,
            "{account}: {unobserved} stops are due and withheld: the account was not listed for a \
             quarter of an hour"
        );
    }
    if ahead > 0 {
        tracing::error!(
            account = %account,
            ahead,
            "{account}: nothing is done about {ahead} that are due: a later generation than the one \
             in force has handled them. The table `schedules` was restored from a backup: \
             `offhours apply` again"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tick(withheld: &[(&str, usize, usize)]) -> DispatchReport {
        let withheld = withheld.iter().map(|&(account, postponed, unobserved)| {
            let withheld = Withheld { postponed, unobserved, ahead: 0 };
            (account.parse().unwrap(), withheld)
        });
        DispatchReport { withheld: withheld.collect(), ..DispatchReport::default() }
    }

    #[track_caller]
    fn check(journal: &Journal, withheld: &[(&str, usize, usize)], news: &[&str]) {
        let found = journal.news(&tick(withheld));
        let found: Vec<_> = found.iter().map(|(account, _)| account.as_str()).collect();
        assert_eq!(found, news);
    }

    #[test]
    fn what_is_withheld_is_logged_when_it_begins_changes_its_reason_or_ends() {
        let journal = Journal::default();
        check(&journal, &[], &[]);
        check(&journal, &[("do-main", 12, 0)], &["do-main"]);
        check(&journal, &[("do-main", 7, 0), ("hz-eu", 0, 3)], &["hz-eu"]);
        check(&journal, &[("do-main", 7, 1), ("hz-eu", 0, 3)], &["do-main"]);
        check(&journal, &[("hz-eu", 0, 2)], &["do-main"]);
        check(&journal, &[], &["hz-eu"]);
        check(&journal, &[], &[]);
    }

    #[test]
    fn what_a_later_generation_has_handled_is_logged_once() {
        let journal = Journal::default();
        let mut ahead = tick(&[("hz-eu", 0, 0)]);
        for withheld in ahead.withheld.values_mut() {
            withheld.ahead = 2;
        }
        assert_eq!(journal.news(&ahead).len(), 1);
        assert_eq!(journal.news(&ahead), []);
        check(&journal, &[], &["hz-eu"]);
    }
}
