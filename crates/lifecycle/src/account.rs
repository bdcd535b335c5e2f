//! Grouping records by account, and what is known of an account.

use std::collections::BTreeMap;

use domain::{
    AccountName,
    pacing::{Others, RateLimit},
    record::Record,
};
use environment::in_words;
use jiff::Timestamp;
use provider::Client;
use store::AccountState;

use crate::Context;

pub(crate) fn by_account(
    records: impl IntoIterator<Item = Record>,
) -> BTreeMap<AccountName, Vec<Record>> {
    let mut by_account = BTreeMap::<AccountName, Vec<Record>>::new();
    for record in records {
        by_account.entry(record.reference.account.clone()).or_default().push(record);
    }
    by_account
}

/// Returns the stored state of an account. A hint only: an unreadable state counts as unknown.
pub(crate) async fn state(context: Context<'_>, account: &AccountName) -> AccountState {
    let state = match context.store.account_states().await {
        Ok(mut states) => states.read.remove(account),
        Err(error) => {
            let reason = in_words(&error);
            tracing::warn!(account = %account, "What a list of {account} costs is unknown: {reason}");
            None
        }
    };
    state.unwrap_or_else(|| AccountState::unknown(account.clone()))
}

/// Returns the account's rate as its provider last reported it; `None` if it has reported none yet.
/// `others` is the latest measurement of what other users of the account take.
pub(crate) fn rate(client: &Client, at: Timestamp, others: Option<Others>) -> Option<RateLimit> {
    let rate = client.rate()?;
    Some(RateLimit { remaining: rate.remaining, at, limit: Some(rate.limit), others })
}

/// Stores an account's rate for dispatch to pace by. Best effort: a failure never fails the caller.
pub(crate) async fn save_rate(context: Context<'_>, account: &AccountName, rate: RateLimit) {
    if let Err(error) = context.store.save_rate(account, rate).await {
        let reason = in_words(&error);
        tracing::warn!(account = %account, "Could not keep the rate of {account}: {reason}");
    }
}
