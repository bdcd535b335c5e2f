//! What is done with the records of an account, and what was learnt of it.

use std::collections::BTreeMap;

use domain::{AccountName, ResourceKind, record::Record};
use environment::in_words;
use provider::Client;

use crate::Context;

/// How many requests the list of each kind took the last time. It is a hint: an unknown list counts
/// as one page.
pub(crate) type ListRequests = BTreeMap<ResourceKind, u32>;

/// Records by account.
pub(crate) fn by_account(
    records: impl IntoIterator<Item = Record>,
) -> BTreeMap<AccountName, Vec<Record>> {
    let mut by_account = BTreeMap::<AccountName, Vec<Record>>::new();
    for record in records {
        by_account
            .entry(record.reference.account.clone())
            .or_default()
            .push(record);
    }
    by_account
}

/// How many requests the lists of an account took the last time.
pub(crate) async fn list_requests(context: Context<'_>, account: &AccountName) -> ListRequests {
    match context.store.account_states().await {
        Ok(mut states) => {
            let cost = states.read.remove(account).and_then(|state| state.cost);
            cost.map(|cost| cost.requests).unwrap_or_default()
        }
        Err(error) => {
            let reason = in_words(&error);
            tracing::warn!(account = %account, "What a list of {account} costs is unknown: {reason}");
            ListRequests::new()
        }
    }
}

/// Keeps what the provider said of the account's allowance, for dispatch to pace by. It is a hint:
/// a failure never fails the caller.
pub(crate) async fn save_rate(context: &Context<'_>, account: &AccountName, client: &Client) {
    let Some(rate) = client.rate() else {
        return;
    };
    let rate = store::Rate {
        remaining: rate.remaining,
        at: context.clock.now(),
    };
    if let Err(error) = context.store.save_rate(account, rate).await {
        let reason = in_words(&error);
        tracing::warn!(account = %account, "Could not keep the rate of {account}: {reason}");
    }
}
