//! The report: each resource's hours under each schedule, and their totals.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    AccountName, ResourceRef, ScheduleName,
    history::HistoryEntry,
    record::{Phase, Record},
};
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    Kind, LastKnownState, Period, Prices, SavedAmount, Schedules, StoppedInterval, known_since,
    saved, stopped_intervals,
};

/// How rows are grouped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Grouping {
    /// A row for each schedule.
    Schedule,
    /// A row for each resource under each schedule.
    #[default]
    Resource,
}

/// The hours stopped over a time range.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Report {
    /// The time range.
    #[serde(flatten)]
    pub period: Period,
    /// How the rows are grouped.
    pub by: Grouping,
    /// The currency of all amounts; null if no prices were given.
    pub currency: Option<String>,
    /// The rows, sorted by schedule and name.
    pub rows: Vec<Row>,
    /// The totals over all rows.
    pub total: Total,
    /// Number of history items that could not be read.
    pub unreadable: usize,
}

/// One resource under one schedule, or all resources under one schedule.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Row {
    /// The instant from which everything is known: the start of the range, or when the resource was
    /// first seen, or later.
    pub since: Timestamp,
    /// The schedule that was followed at the time of the stops; null for stops without one.
    pub schedule: Option<ScheduleName>,
    /// The resource's reference, `ACCOUNT/KIND/ID`; null if rows are grouped by schedule.
    pub resource: Option<ResourceRef>,
    /// The resource's name; null if rows are grouped by schedule.
    pub name: Option<String>,
    /// Number of resources that the row covers.
    pub resources: usize,
    /// Hours stopped.
    pub stopped_hours: f64,
    /// Fraction of the time after `since` in which it was stopped, from 0 to 1. Earlier time is not
    /// counted.
    pub share: f64,
    /// Hours after a stop in which a person started it at an unknown instant.
    pub unclear_hours: f64,
    /// Hours for which it would have been stopped if not for observe mode.
    pub would_have_hours: f64,
    /// The amount that was saved; null if it is not known for any resource.
    pub saved: Option<f64>,
    /// Number of resources for which an amount is known.
    pub figures: usize,
    /// Whether the amount is an estimate, which rests on something unknown.
    pub estimate: bool,
    /// Why there is no amount, why it is only zero, or what an estimate rests on.
    pub reasons: Vec<String>,
}

/// The totals over all rows.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Total {
    /// Number of resources.
    pub resources: usize,
    /// Hours stopped.
    pub stopped_hours: f64,
    /// Hours for which they would have been stopped if not for observe mode.
    pub would_have_hours: f64,
    /// The amount saved by the resources for which it is known; null if it is known for none.
    pub saved: Option<f64>,
    /// Whether the amount is an estimate, which rests on something unknown.
    pub estimate: bool,
    /// Number of rows by resource that have an amount.
    pub figures: usize,
    /// Number of rows by resource.
    pub of: usize,
}

/// A builder of reports that counts one resource after another, without keeping their history.
#[derive(Debug)]
pub struct Collector<'a> {
    /// The period to report on.
    pub period: Period,
    /// The current instant.
    pub now: Timestamp,
    /// The current schedules.
    pub schedules: &'a Schedules,
    /// The operator's prices, if given.
    pub prices: Option<&'a Prices>,
    /// The accounts that were not listed recently, and when they last were.
    pub unseen_since: BTreeMap<AccountName, Timestamp>,
    /// The only schedule that counts, if one is given.
    pub only: Option<&'a ScheduleName>,
    counted: Vec<UnroundedRow>,
}

/// One resource under one schedule, without rounding.
#[derive(Debug)]
struct UnroundedRow {
    since: Timestamp,
    schedule: Option<ScheduleName>,
    resource: ResourceRef,
    name: String,
    hours: Hours,
    money: SavedAmount,
}

#[derive(Debug, Clone, Copy, Default)]
struct Hours {
    stopped: SignedDuration,
    unclear: SignedDuration,
    would_have: SignedDuration,
}

impl Hours {
    fn of(intervals: &[StoppedInterval], period: Period) -> Self {
        let mut hours = Self::default();
        for interval in intervals {
            let Some(within) = interval.period.within(period) else {
                continue;
            };
            let sum = match interval.kind {
                Kind::Stopped => &mut hours.stopped,
                Kind::Unclear => &mut hours.unclear,
                Kind::WouldHave => &mut hours.would_have,
            };
            *sum += within.length();
        }
        hours
    }

    fn add(&mut self, other: Self) {
        self.stopped += other.stopped;
        self.unclear += other.unclear;
        self.would_have += other.would_have;
    }
}

impl<'a> Collector<'a> {
    /// Creates a collector for a period.
    #[must_use]
    pub fn new(period: Period, now: Timestamp, schedules: &'a Schedules) -> Self {
        Self {
            period,
            now,
            schedules,
            prices: None,
            unseen_since: BTreeMap::new(),
            only: None,
            counted: Vec::new(),
        }
    }

    /// Counts one resource, from all of its history and its current record.
    pub fn count(
        &mut self,
        reference: &ResourceRef,
        entries: &[HistoryEntry],
        record: Option<&Record>,
    ) {
        let known = LastKnownState {
            record,
            unseen_since: self.unseen_since.get(&reference.account).copied(),
        };
        let all = stopped_intervals(entries, known, self.schedules, self.now);
        let mut by_schedule: BTreeMap<Option<ScheduleName>, Vec<StoppedInterval>> = BTreeMap::new();
        for interval in all {
            if interval.period.within(self.period).is_some() {
                let under = by_schedule.entry(interval.schedule.clone()).or_default();
                under.push(interval);
            }
        }
        let present = record.filter(|record| !matches!(record.phase, Phase::Gone { .. }));
        if let Some(schedule) = present.and_then(|record| record.schedule.clone()) {
            by_schedule.entry(Some(schedule)).or_default();
        }
        let latest = entries.iter().max_by_key(|entry| entry.finished_at);
        let name = record.map(|record| &record.name);
        let name = name.or(latest.map(|entry| &entry.name)).cloned();
        let plan = record.and_then(|record| record.plan.as_deref());
        let kept = record.and_then(|record| record.hibernation.as_deref());
        for (schedule, under) in by_schedule {
            if self.only.is_some() && self.only != schedule.as_ref() {
                continue;
            }
            self.counted.push(UnroundedRow {
                since: known_since(entries, record, self.period.from),
                schedule,
                resource: reference.clone(),
                name: name.clone().unwrap_or_default(),
                hours: Hours::of(&under, self.period),
                money: saved(reference.kind(), (plan, kept), &under, self.period, self.prices),
            });
        }
    }

    /// Returns the report on everything that was counted.
    #[must_use]
    pub fn report(mut self, by: Grouping, unreadable: usize) -> Report {
        self.counted.sort_by(|a, b| {
            let key = |one: &UnroundedRow| (one.schedule.is_none(), one.schedule.clone());
            (key(a), &a.name, &a.resource).cmp(&(key(b), &b.name, &b.resource))
        });
        let same = |a: &UnroundedRow, b: &UnroundedRow| match by {
            Grouping::Schedule => a.schedule == b.schedule,
            Grouping::Resource => false,
        };
        let groups = self.counted.chunk_by(same);
        let rows = groups.map(|group| self.row(group, by)).collect();
        Report {
            period: self.period,
            by,
            currency: self.prices.map(|prices| prices.currency.clone()),
            rows,
            total: self.total(),
            unreadable,
        }
    }

    fn row(&self, group: &[UnroundedRow], by: Grouping) -> Row {
        let one = group.first().filter(|_| by == Grouping::Resource);
        let sum = Sum::of(group);
        let known =
            |one: &UnroundedRow| self.period.until.duration_since(one.since.min(self.period.until));
        let known: SignedDuration = group.iter().map(known).sum();
        let since = group.iter().map(|one| one.since).max();
        Row {
            since: since.unwrap_or(self.period.from),
            schedule: group.first().and_then(|one| one.schedule.clone()),
            resource: one.map(|one| one.resource.clone()),
            name: one.map(|one| one.name.clone()),
            resources: group.len(),
            stopped_hours: in_hours(sum.hours.stopped),
            share: share(sum.hours.stopped, known),
            unclear_hours: in_hours(sum.hours.unclear),
            would_have_hours: in_hours(sum.hours.would_have),
            saved: sum.saved(),
            figures: sum.figures,
            estimate: sum.estimate,
            reasons: sum.reasons.into_iter().collect(),
        }
    }

    fn total(&self) -> Total {
        let sum = Sum::of(&self.counted);
        let resources: BTreeSet<_> = self.counted.iter().map(|one| &one.resource).collect();
        Total {
            resources: resources.len(),
            stopped_hours: in_hours(sum.hours.stopped),
            would_have_hours: in_hours(sum.hours.would_have),
            saved: sum.saved(),
            estimate: sum.estimate,
            figures: sum.figures,
            of: self.counted.len(),
        }
    }
}

/// A sum over several resources, with amounts where they are known.
#[derive(Default)]
struct Sum {
    hours: Hours,
    amount: f64,
    estimate: bool,
    figures: usize,
    reasons: BTreeSet<String>,
}

impl Sum {
    fn of(counted: &[UnroundedRow]) -> Self {
        let mut sum = Self::default();
        for one in counted {
            sum.hours.add(one.hours);
            if let Some(amount) = one.money.amount {
                sum.amount += amount;
                sum.figures += 1;
            }
            sum.estimate |= one.money.estimate;
            sum.reasons.extend(one.money.reason.clone());
        }
        sum
    }

    fn saved(&self) -> Option<f64> {
        (self.figures > 0).then(|| two_digits(self.amount))
    }
}

fn in_hours(duration: SignedDuration) -> f64 {
    two_digits(duration.as_secs_f64() / 3600.0)
}

/// Returns the share of a part in a whole, to four digits: a hundredth of a percent.
fn share(part: SignedDuration, whole: SignedDuration) -> f64 {
    if whole.is_zero() {
        return 0.0;
    }
    let share = part.as_secs_f64() / whole.as_secs_f64();
    (share * 10_000.0).round() / 10_000.0
}

fn two_digits(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}
