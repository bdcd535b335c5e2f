//! Notice of stops: announced once within the notice period of a schedule, and called off if nothing
//! of it is to be stopped after all. A stop that was called off and is to come again is announced
//! again.
//!
//! Where no schedule has a notice period, nothing is read from the store.

use std::cmp::Ordering;

use domain::{
    configuration::Configuration,
    notice::{StopNotice, announced, still_stops},
    record::Record,
};
use jiff::SignedDuration;
use store::{EdgeReport, ReportedEdge};

use crate::{Context, Error, report::Report};

/// How long after an edge its stop may be called off: what a person did just before it is seen by the
/// first tick after it.
const AFTER_EDGE: SignedDuration = SignedDuration::from_secs(90);

/// Announces the stops that are near, and calls off those that will not come.
pub(crate) async fn report_due(
    context: Context<'_>,
    configuration: &Configuration,
    report: &mut Report,
) -> Result<(), Error> {
    let periods = configuration.schedules.values().filter_map(|rule| rule.policy.notice);
    let Some(longest) = periods.max() else {
        return Ok(());
    };
    let now = context.clock.now();
    let reported = context.store.reported_edges(EdgeReport::Notice).await?;
    let reported = report.readable(reported);
    // Records first, configuration second.
    let hints = report.readable(context.store.due(now + longest.get()).await?);
    let in_force = context.store.in_force().await?;
    let rules = in_force.rules();
    let mut notices = Vec::new();
    for one in reported.values().filter(|one| is_announced(one) && now < one.edge + AFTER_EDGE) {
        let stops = |record: &Record| still_stops(record, rules, &one.schedule, one.edge, now);
        let rule = in_force.configuration.schedules.get(&one.schedule);
        let Some(rule) = rule.filter(|rule| rule.policy.notice.is_some()) else {
            continue;
        };
        // The index lags, and need not have what was stopped.
        if hints.iter().any(stops) || any_record(context, rules.configuration, stops).await? {
            continue;
        }
        let notice = StopNotice::of(&one.schedule, rule, one.edge, Vec::new(), now);
        notices.push((notice, one.turn + 1));
    }
    for ((edge, schedule), resources) in announced(&hints, rules, now) {
        let before = reported.get(&schedule);
        let turn = match before.map(|before| (before, before.edge.cmp(&edge))) {
            None | Some((_, Ordering::Less)) => 0,
            Some((before, Ordering::Equal)) if !is_announced(before) => before.turn + 1,
            Some((_, Ordering::Equal | Ordering::Greater)) => continue,
        };
        let Some(rule) = in_force.configuration.schedules.get(&schedule) else {
            continue;
        };
        notices.push((StopNotice::of(&schedule, rule, edge, resources, now), turn));
    }
    for (notice, turn) in notices {
        let claim = ReportedEdge {
            report: EdgeReport::Notice,
            schedule: notice.schedule.clone(),
            edge: notice.edge,
            turn,
            by: format!("{} at {now}", context.writer.0),
        };
        if context.store.claim_report(&claim).await? {
            context.listener.stop_noticed(&notice);
            report.notices.push(notice);
        }
    }
    Ok(())
}

/// Reports whether the latest turn announced the stop: each other one calls it off.
fn is_announced(reported: &ReportedEdge) -> bool {
    reported.turn.is_multiple_of(2)
}

/// Reports whether any record satisfies a condition, or may do so because it cannot be read.
async fn any_record(
    context: Context<'_>,
    configuration: &Configuration,
    condition: impl Fn(&Record) -> bool + Copy,
) -> Result<bool, Error> {
    for account in configuration.accounts.keys() {
        let found = context.store.records_of(account).await?;
        if !found.unreadable.is_empty() || found.read.iter().any(condition) {
            return Ok(true);
        }
    }
    Ok(false)
}
