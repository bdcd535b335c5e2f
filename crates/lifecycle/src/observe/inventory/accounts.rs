//! Which accounts are due for an inventory, judging by what is known of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use domain::{
    AccountName,
    configuration::{Account, Configuration},
    pacing::{Allowance, ListRequests, Others},
    reason::Reason,
    record::{INVENTORY_INTERVAL, SKEW},
};
use environment::Invoke;
use jiff::{SignedDuration, Timestamp};
use provider::{Client, ProviderError};
use store::{AccountState, AccountStates};

use super::{InventoryTrigger, Known, covered::Covered, kinds, names, take};
use crate::{
    Context, Error,
    budget::Budget,
    failure::ObservationError,
    observe::{asked::Asked, in_flight::ReportedErrors},
    report::Report,
};

pub(crate) struct Accounts {
    pub configuration: Arc<Configuration>,
    states: AccountStates,
    /// The accounts whose states a newer program wrote.
    newer: BTreeSet<String>,
}

impl Accounts {
    pub(crate) async fn read(context: Context<'_>, report: &mut Report) -> Result<Self, Error> {
        let head = context.store.head().await?;
        let configuration = context.store.configuration_of(&head).await?;
        let states = context.store.account_states().await?;
        let newer = names(&states.unreadable);
        Ok(Self { configuration, states: report.readable(states), newer })
    }

    /// Returns why accounts could not be listed the last time, which was reported then.
    pub(crate) fn reported_errors(&self) -> ReportedErrors {
        let reported_errors = ReportedErrors::default();
        for (account, state) in &self.states {
            if let Some(error) = &state.error {
                reported_errors.record(account, error);
            }
        }
        reported_errors
    }

    /// Returns how many requests the lists of an account took.
    pub(crate) fn list_requests(&self, account: &AccountName) -> ListRequests {
        let lists = self.states.get(account).and_then(AccountState::lists);
        lists.cloned().unwrap_or_default()
    }

    /// Reports whether less of an account's hourly limit is left than recovers in a minute, apart
    /// from what is reserved for others.
    pub(crate) fn is_short(&self, account: &AccountName, now: Timestamp) -> bool {
        let configured = self.configuration.accounts.get(account);
        let Some(cloud) = configured.and_then(Account::cloud) else {
            return false;
        };
        let state = self.states.get(account);
        let rate = state.and_then(|state| state.rate);
        let lists = state.and_then(AccountState::lists);
        let allowance = Allowance::of(cloud.provider.facts(), rate, lists, now);
        allowance.in_the_hour() < allowance.to_follow()
    }

    pub(crate) fn ask(&self, account: &AccountName, client: Client) -> Asked {
        let state = self.states.get(account).cloned();
        let state = state.unwrap_or_else(|| AccountState::unknown(account.clone()));
        Asked::begin(state, &self.configuration, client)
    }

    /// Returns what others take of an account's rate limit, as last measured.
    pub(crate) fn others(&self, account: &AccountName) -> Option<Others> {
        self.states.get(account)?.rate?.others
    }

    /// Returns the accounts whose inventory is due, the one tried longest ago first, so that a slow
    /// one does not keep the others from their turn. One whose token failed is due at every tick,
    /// because the token may have been replaced.
    pub(crate) fn due(&self, now: Timestamp) -> Vec<AccountName> {
        let is_due = |account: &&AccountName| {
            let state = self.states.get(*account);
            let token_fails = state.is_some_and(|state| state.token_fails);
            let newer = self.newer.contains(account.as_str());
            !newer && (token_fails || self.interval_is_over(account, now))
        };
        let mut due: Vec<_> = self.configuration.accounts.keys().filter(is_due).collect();
        due.sort_by_key(|account| self.tried_at(account));
        due.into_iter().cloned().collect()
    }

    fn tried_at(&self, account: &AccountName) -> Option<Timestamp> {
        self.states.get(account)?.tried_at
    }

    fn interval_is_over(&self, account: &AccountName, now: Timestamp) -> bool {
        // A slightly early tick is as good: timers are not exact to the second. An inventory in the
        // future was taken by a clock that was ahead.
        let is_over = |since: SignedDuration| since + SKEW >= INVENTORY_INTERVAL || since < -SKEW;
        self.tried_at(account).is_none_or(|at| is_over(now.duration_since(at)))
    }

    /// Takes inventories until the tick's time is used up; the remaining accounts stay due. Returns
    /// why accounts could not be listed, and adds to what the accounts were asked in this tick.
    pub(crate) async fn take(
        &self,
        due: &[AccountName],
        asked: &mut BTreeMap<AccountName, Asked>,
        budget: Budget<'_>,
        context: Context<'_>,
        invoke: &impl Invoke,
        report: &mut Report,
    ) -> Result<Vec<(AccountName, Reason)>, Error> {
        let mut errors = Vec::new();
        let mut covered = Covered::default();
        let now = budget.now();
        for (place, account) in due.iter().enumerate() {
            let known = Known::of(account, &self.configuration, &self.states);
            if !self.interval_is_over(account, now)
                && !token_is_accepted(context, account, &self.configuration).await
            {
                continue;
            }
            if place > 0 && !known.fits(budget) {
                tracing::info!(account = %account, "No time for the inventory of {account} in this tick");
                continue;
            }
            let known = Known { asked: asked.remove(account), ..known };
            let trigger = InventoryTrigger::ByTimer;
            let take = take(context, budget, invoke, known, trigger, &mut covered, report);
            let (error, taken) = take.await?;
            errors.extend(error.map(|error| (account.clone(), error)));
            asked.extend(taken.map(|taken| (account.clone(), taken)));
        }
        Ok(errors)
    }
}

/// Tries a token that failed, with small requests: what it held up resumes within a minute of a
/// working token, and until then no inventory is spent on it.
async fn token_is_accepted(
    context: Context<'_>,
    account: &AccountName,
    configuration: &Configuration,
) -> bool {
    let client = context.providers.client(account, configuration);
    let Ok(client) = client.await else {
        return false;
    };
    for kind in kinds(account, configuration) {
        match client.try_reading(*kind).await {
            Ok(()) => return true,
            // A token need not read every kind.
            Err(ProviderError::NotPermitted { .. }) => context.providers.forget(account),
            Err(error) => {
                if ObservationError::from(&error).token_refused() {
                    context.providers.forget(account);
                }
                return false;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use transition::tests::{at, droplet};

    #[test]
    fn an_inventory_by_a_clock_that_was_ahead_keeps_none_from_being_due() {
        let case = droplet();
        let account = &case.record.reference.account;
        let due = |tried_at: &str| {
            let tried = Some(at(tried_at));
            let state = AccountState { tried_at: tried, ..AccountState::unknown(account.clone()) };
            let configuration = Arc::new(case.configuration.clone());
            let states = AccountStates::from([(account.clone(), state)]);
            let accounts = Accounts { configuration, states, newer: BTreeSet::new() };
            accounts.due(at("12:00")).contains(account)
        };
        let tried = ["11:54", "11:58", "12:00", "14:00"];
        assert_eq!(tried.map(due), [true, false, false, true]);
    }
}
