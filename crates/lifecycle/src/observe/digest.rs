//! The digest of an edge: counted when the last of the edge's followers has ended, or at the
//! deadline, and reported once.
//!
//! Cost follows the work: nothing is read from the store unless an edge is recent and this process
//! has not reported it, and the records are not read while the index shows that some are in
//! progress.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    AccountName, ScheduleName,
    configuration::Configuration,
    decision::Rules,
    digest::{Digest, deadline, edge_within_window},
    membership::{Membership, Subject},
    prices::PriceList,
    record::Record,
    schedule::{Desired, Edge},
};
use jiff::Timestamp;
use store::{EdgeReport, ReportedEdge, Store};

use crate::{Context, Error, report::Report};

/// Reports every edge that is ready. `waiting` holds the schedules with something due or in flight:
/// a hint.
pub(crate) async fn report_due(
    context: Context<'_>,
    configuration: &Configuration,
    waiting: &BTreeSet<ScheduleName>,
    report: &mut Report,
) -> Result<(), Error> {
    let now = context.clock.now();
    let mut young = young_edges(context.store, configuration, now);
    young.retain(|name, edge| {
        let at_work = waiting.contains(name);
        !at_work || is_at_deadline(configuration, name, *edge, now)
    });
    if young.is_empty() {
        return Ok(());
    }
    drop_reported(context.store, &mut young, report).await?;
    if young.is_empty() {
        return Ok(());
    }
    let records = context.store.records_of_all(configuration.accounts.keys()).await?;
    let records = report.readable(records);
    // Records first, configuration second.
    let in_force = context.store.in_force().await?;
    let followers = Followers::of(&records, &in_force.configuration);
    let mut prices = BTreeMap::new();
    if young.values().any(|edge| edge.desired == Some(Desired::Stopped)) {
        let read = report.readable(context.store.prices().await?);
        prices.extend(read.into_iter().map(|(account, prices)| (account, prices.list)));
    }
    for (name, edge) in young {
        let rules = in_force.rules();
        let ready = ready(context.store, &followers, rules, &prices, &name, edge, now);
        let Some(digest) = ready else {
            continue;
        };
        let claim = ReportedEdge {
            report: EdgeReport::Digest,
            schedule: name,
            edge: edge.at,
            turn: 0,
            by: format!("{} at {now}", context.writer.0),
        };
        if context.store.claim_report(&claim).await? {
            context.listener.edge_completed(&digest);
            report.digests.push(digest);
        }
    }
    Ok(())
}

/// Returns the latest edge of each schedule, if it is recent and this process has not reported it.
fn young_edges(
    store: &Store,
    configuration: &Configuration,
    now: Timestamp,
) -> BTreeMap<ScheduleName, Edge> {
    let schedules = configuration.schedules.iter();
    let edges = schedules.filter_map(|(name, rule)| {
        let edge = edge_within_window(&rule.schedule, now)?;
        let may_be_due = store.digest_may_be_due(name, edge.at, now);
        may_be_due.then(|| (name.clone(), edge))
    });
    edges.collect()
}

/// Leaves out the edges that another process has reported, and those whose entry a newer program
/// wrote.
async fn drop_reported(
    store: &Store,
    young: &mut BTreeMap<ScheduleName, Edge>,
    report: &mut Report,
) -> Result<(), Error> {
    let digested = store.reported_edges(EdgeReport::Digest).await?;
    let newer: BTreeSet<_> = digested.unreadable.iter().map(|o| o.reference.clone()).collect();
    let digested = report.readable(digested);
    young.retain(|name, edge| {
        let known = digested.get(name).is_some_and(|digested| digested.edge >= edge.at);
        let is_reported = known || newer.contains(name.as_str());
        if is_reported {
            store.postpone_digest(name, edge.at, Timestamp::MAX);
        }
        !is_reported
    });
    Ok(())
}

/// The records that follow each schedule, collected in one pass for all schedules.
#[derive(Debug, Default)]
struct Followers<'r> {
    records: BTreeMap<ScheduleName, Vec<&'r Record>>,
    /// When the first of the recorded followers is due next.
    due: BTreeMap<&'r ScheduleName, Timestamp>,
}

impl<'r> Followers<'r> {
    fn of(records: &'r [Record], configuration: &Configuration) -> Self {
        let mut followers = Self::default();
        for record in records {
            let membership = Membership::of(Subject::recorded(record), configuration);
            if let Membership::Member { schedule, .. } = membership {
                followers.records.entry(schedule).or_default().push(record);
            }
            if let (Some(schedule), Some(due_at)) = (&record.schedule, record.due_at) {
                let due = followers.due.entry(schedule).or_insert(due_at);
                *due = due_at.min(*due);
            }
        }
        followers
    }
}

/// Returns the digest of an edge if it is ready; if not, this process skips the edge until then.
fn ready(
    store: &Store,
    followers: &Followers<'_>,
    rules: Rules<'_>,
    prices: &BTreeMap<AccountName, PriceList>,
    name: &ScheduleName,
    edge: Edge,
    now: Timestamp,
) -> Option<Digest> {
    let late = is_at_deadline(rules.configuration, name, edge, now);
    let records = followers.records.get(name).into_iter().flatten();
    match Digest::of(records.copied(), rules, prices, name, edge, now) {
        Some(digest) if late || digest.is_complete() => Some(digest),
        Some(_) => {
            // At the next tick, unless everything unfinished waits for something later.
            let next = followers.due.get(name).copied();
            let latest = latest(rules.configuration, name, edge);
            let until = next.zip(latest).map(|(next, latest)| next.min(latest));
            store.postpone_digest(name, edge.at, until.unwrap_or(now));
            None
        }
        None => {
            let latest = latest(rules.configuration, name, edge);
            let until = latest.filter(|_| !late).unwrap_or(Timestamp::MAX);
            store.postpone_digest(name, edge.at, until);
            None
        }
    }
}

fn is_at_deadline(
    configuration: &Configuration,
    name: &ScheduleName,
    edge: Edge,
    now: Timestamp,
) -> bool {
    latest(configuration, name, edge).is_none_or(|latest| latest <= now)
}

/// Returns the instant at which an edge is reported, whatever is unfinished.
fn latest(configuration: &Configuration, name: &ScheduleName, edge: Edge) -> Option<Timestamp> {
    let rule = configuration.schedules.get(name)?;
    Some(deadline(&rule.schedule, edge))
}
