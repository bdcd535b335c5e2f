//! The report: each resource's hours under each schedule, and what they sum up to.

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
    Kind, Known, Money, Period, Prices, Schedules, Stretch, known_since, saved, stretches,
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

/// Hours stopped over a period, as programs read them.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Report {
    /// The period.
    #[serde(flatten)]
    pub period: Period,
    /// How its rows are grouped.
    pub by: Grouping,
    /// The currency of all amounts; null without prices.
    pub currency: Option<String>,
    /// The rows, by schedule and name.
    pub rows: Vec<Row>,
    /// What can be summed up of them.
    pub total: Total,
    /// How many items of history could not be read.
    pub unreadable: usize,
}

/// One resource under one schedule, or all that is under one schedule.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Row {
    /// Since when all is known about it: the period's begin, or when it was first seen, or later.
    pub since: Timestamp,
    /// The schedule that was followed at the stops; null for those without one.
    pub schedule: Option<ScheduleName>,
    /// Which resource; null by schedule.
    pub resource: Option<ResourceRef>,
    /// Its name; null by schedule.
    pub name: Option<String>,
    /// How many resources the row sums up.
    pub resources: usize,
    /// Hours stopped.
    pub stopped_hours: f64,
    /// Their share of the time since then, 0 to 1. Time before that is not counted.
    pub share: f64,
    /// Hours after a stop in which a person started it, at an unknown instant.
    pub unclear_hours: f64,
    /// Hours that it would have been stopped, in observe mode.
    pub would_have_hours: f64,
    /// What that saved; null where nothing is known.
    pub saved: Option<f64>,
    /// Of how many resources that is known.
    pub figures: usize,
    /// Whether the amount rests on something that is not known.
    pub estimate: bool,
    /// Why there is no amount, or only zero, or on what an estimate rests.
    pub reasons: Vec<String>,
}

/// What can be summed up.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Total {
    /// How many resources.
    pub resources: usize,
    /// Their hours stopped.
    pub stopped_hours: f64,
    /// Hours that they would have been stopped, in observe mode.
    pub would_have_hours: f64,
    /// What was saved by those of which that is known; null if it is known of none.
    pub saved: Option<f64>,
    /// Whether that rests on something that is not known.
    pub estimate: bool,
    /// How many rows by resource have an amount.
    pub figures: usize,
    /// How many rows by resource there are.
    pub of: usize,
}

/// Counts one resource after another, without keeping their history.
#[derive(Debug)]
pub struct Collector<'a> {
    /// The period to report on.
    pub period: Period,
    /// The present.
    pub now: Timestamp,
    /// The present schedules.
    pub schedules: &'a Schedules,
    /// The operator's prices, where given.
    pub prices: Option<&'a Prices>,
    /// The accounts that were not listed lately, and when they last were.
    pub unseen_since: BTreeMap<AccountName, Timestamp>,
    /// The only schedule that counts, where one is given.
    pub only: Option<&'a ScheduleName>,
    counted: Vec<Counted>,
}

/// One resource under one schedule, exactly.
#[derive(Debug)]
struct Counted {
    since: Timestamp,
    schedule: Option<ScheduleName>,
    resource: ResourceRef,
    name: String,
    hours: Hours,
    money: Money,
}

#[derive(Debug, Clone, Copy, Default)]
struct Hours {
    stopped: SignedDuration,
    unclear: SignedDuration,
    would_have: SignedDuration,
}

impl Hours {
    fn of(stretches: &[Stretch], period: Period) -> Self {
        let mut hours = Self::default();
        for stretch in stretches {
            let Some(within) = stretch.period.within(period) else {
                continue;
            };
            let sum = match stretch.kind {
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
    /// A collector for a period.
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

    /// Counts one resource, by all of its history and its present record.
    pub fn count(
        &mut self,
        reference: &ResourceRef,
        entries: &[HistoryEntry],
        record: Option<&Record>,
    ) {
        let known = Known {
            record,
            unseen_since: self.unseen_since.get(&reference.account).copied(),
        };
        let all = stretches(entries, known, self.schedules, self.now);
        let mut by_schedule: BTreeMap<Option<ScheduleName>, Vec<Stretch>> = BTreeMap::new();
        for stretch in all {
            if stretch.period.within(self.period).is_some() {
                let under = by_schedule.entry(stretch.schedule.clone()).or_default();
                under.push(stretch);
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
            self.counted.push(Counted {
                since: known_since(entries, record, self.period.from),
                schedule,
                resource: reference.clone(),
                name: name.clone().unwrap_or_default(),
                hours: Hours::of(&under, self.period),
                money: saved(
                    reference.kind(),
                    (plan, kept),
                    &under,
                    self.period,
                    self.prices,
                ),
            });
        }
    }

    /// The report on all that was counted.
    #[must_use]
    pub fn report(mut self, by: Grouping, unreadable: usize) -> Report {
        self.counted.sort_by(|a, b| {
            let key = |one: &Counted| (one.schedule.is_none(), one.schedule.clone());
            (key(a), &a.name, &a.resource).cmp(&(key(b), &b.name, &b.resource))
        });
        let same = |a: &Counted, b: &Counted| match by {
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

    fn row(&self, group: &[Counted], by: Grouping) -> Row {
        let one = group.first().filter(|_| by == Grouping::Resource);
        let sum = Sum::of(group);
        let known = |one: &Counted| {
            self.period
                .until
                .duration_since(one.since.min(self.period.until))
        };
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

/// Several, added up; amounts where they are known.
#[derive(Default)]
struct Sum {
    hours: Hours,
    amount: f64,
    estimate: bool,
    figures: usize,
    reasons: BTreeSet<String>,
}

impl Sum {
    fn of(counted: &[Counted]) -> Self {
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

/// To four digits: a hundredth of a per cent.
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
