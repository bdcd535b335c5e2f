//! What there is to look at, read from the tables.

use std::collections::BTreeSet;

use domain::{
    membership::{Membership, Subject},
    record::Record,
};
use jiff::{Timestamp, tz::TimeZone};
use page::Input;
use report::{
    history::Period,
    past::{PastCollector, Walk},
};
use store::{HistoryQuery, InForce, Reader};

use crate::Error;

/// How many entries of the activity log are read.
const ENTRIES: usize = 30;

/// Reads what is shown, with the money of a period, and renders it: of all resources, or of those of
/// an owner. Also returns how many items cannot be read.
pub async fn show<R>(
    store: &Reader,
    in_force: &InForce,
    owner: Option<&str>,
    period: Period,
    zone: &TimeZone,
    now: Timestamp,
    render: impl FnOnce(&Input<'_>) -> R,
) -> Result<(R, usize), Error> {
    let accounts = store.account_states().await?;
    let prices = store.prices().await?;
    let mut unreadable = accounts.unreadable.len() + prices.unreadable.len();
    let accounts = accounts.read;
    let prices = prices.read.into_iter().map(|(account, prices)| (account, prices.list)).collect();
    let records = store.all_records().await?;
    unreadable += records.unreadable.len();
    let mut records = records.read;
    let configuration = &in_force.configuration;
    let tag = configuration.settings.owner_tag.as_deref().unwrap_or_default();
    records.retain(|one| owner.is_none() || one.tag_value(tag) == owner);
    let mut past = PastCollector::new(period, configuration, &prices, &accounts, zone, now);
    let mut walk = Walk::new(&records, configuration, |reference, entries, record| {
        // Whose a forgotten resource was is not known.
        if owner.is_none() || record.is_some() {
            past.count(reference, entries, record);
        }
    });
    // Stops that began before the period matter as well.
    let all = HistoryQuery { since: Timestamp::MIN, until: Timestamp::MAX, schedule: None };
    let mut pages = store.history_between(all);
    while let Some(page) = pages.next().await? {
        unreadable += page.unreadable;
        page.entries.into_iter().try_for_each(|entry| walk.pass(entry))?;
    }
    walk.finish(|_| true)?;
    let names = |record: &Record| {
        let membership = Membership::of(Subject::recorded(record), configuration);
        let schedule = membership.schedule().map(|name| format!("schedule {name}"));
        [Some(record.reference.to_string()), schedule]
    };
    let theirs: BTreeSet<_> = records.iter().flat_map(names).flatten().collect();
    let mut activity = Vec::new();
    let mut pages = store.activity_between(Timestamp::UNIX_EPOCH, Timestamp::MAX);
    while activity.len() < ENTRIES
        && let Some(page) = pages.next().await?
    {
        unreadable += page.unreadable;
        activity.extend(page.entries.into_iter().filter(|one| {
            owner.is_none() || one.action.targets().iter().any(|target| theirs.contains(target))
        }));
    }
    let past = past.finish(unreadable);
    let (activity, accounts, records) = (&activity, &accounts, &records);
    let input = Input { in_force, owner, records, past: &past, activity, accounts, zone, now };
    Ok((render(&input), unreadable))
}
