//! The report on what was saved: each resource's hours and money, and their totals.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    AccountName, ResourceRef, ScheduleName,
    configuration::Configuration,
    history::HistoryEntry,
    money::{Currency, Money},
    prices::{PriceList, Prices},
    record::{Phase, Record},
};
use jiff::{SignedDuration, Timestamp, ToSpan as _, civil::Date, tz::TimeZone};
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    Sums, Total, Totals, added, known_cents,
    past::{Billed, MonthsBill},
};
use crate::{
    count,
    history::{Kind, LastKnownState, Period, StoppedInterval, stopped_intervals},
    strip::days,
};

/// How rows are grouped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Grouping {
    /// A row for each resource.
    #[default]
    Resource,
    /// A row for each schedule.
    Schedule,
    /// A row for each day.
    Day,
    /// A row for each week, by its Monday.
    Week,
    /// A row for each value of a tag `KEY:VALUE` or a label `KEY=VALUE`.
    Tag(String),
}

/// What was saved over a time range.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SavedReport {
    /// The time range.
    #[serde(flatten)]
    pub period: Period,
    /// How the rows are grouped.
    pub by: Grouping,
    /// The rows, in the order of their groups.
    pub rows: Vec<SavedRow>,
    /// The totals.
    #[serde(flatten)]
    pub totals: Totals,
    /// Hours off, of all resources.
    pub off_hours: f64,
    /// Number of history items that could not be read.
    pub unreadable: usize,
}

impl SavedReport {
    /// The totals: the money covers only resources whose saving is known, and says how many those are.
    #[must_use]
    pub fn in_words(&self) -> String {
        let Totals { totals, known, of } = &self.totals;
        let off = format!("Off for {} in total.", hours_in_words(self.off_hours));
        let saved: Vec<_> = totals
            .iter()
            .filter_map(|Total { currency, full, saved, .. }| {
                let saved = (*saved)?;
                let mut rows = self.rows.iter().filter(|row| row.currency == Some(*currency));
                let full = full.filter(|_| rows.all(|row| row.full.is_some()));
                Some(match full {
                    _ if saved.is_negative() => {
                        format!("{} more spent than without stops", saved.magnitude())
                    }
                    Some(full) => format!("{saved} of {full} saved"),
                    None => format!("{saved} saved"),
                })
            })
            .collect();
        let known = format!("known for {known} of {}", count(*of, "resource"));
        if saved.is_empty() {
            return format!("{off} What that saved is {known}.");
        }
        format!("{off} {}, {known}.", saved.join(" and "))
    }
}

/// `22 min` or `13.5 h`.
#[must_use]
pub fn hours_in_words(hours: f64) -> String {
    if hours > 0.0 && hours < 1.0 {
        format!("{:.0} min", hours * 60.0)
    } else {
        format!("{hours:.1} h")
    }
}

/// One group, as far as it is billed in one currency.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SavedRow {
    /// The resource's name, the schedule, the day, the Monday of the week, or the tag's value; null
    /// for what has none.
    pub group: Option<String>,
    /// The resource's reference, `ACCOUNT/KIND/ID`; null unless rows are grouped by resource.
    pub resource: Option<ResourceRef>,
    /// Number of resources that the row covers.
    pub resources: usize,
    /// Hours off.
    pub off_hours: f64,
    /// Hours after a stop in which a person started it at an unknown instant.
    pub unclear_hours: f64,
    /// Hours for which it would have been stopped if not for observe mode.
    pub would_have_hours: f64,
    /// The currency of the amounts; null if its resources have no bill.
    pub currency: Option<&'static str>,
    /// What would have been billed without any stop; null if that is not known for any resource.
    #[serde(serialize_with = "known_cents")]
    #[schemars(with = "Option<f64>")]
    pub full: Option<Money>,
    /// What was saved; null if that is not known for any resource.
    #[serde(serialize_with = "known_cents")]
    #[schemars(with = "Option<f64>")]
    pub saved: Option<Money>,
    /// Number of resources whose saving is unknown, and that `saved` leaves out.
    pub unknown: usize,
    /// Why an amount is unknown or zero, or what it rests on.
    pub why: Vec<String>,
}

/// A builder of reports that counts one resource after another, without keeping their history.
#[derive(Debug)]
pub struct SavedCollector<'a> {
    pub period: Period,
    /// The current instant.
    pub now: Timestamp,
    pub configuration: &'a Configuration,
    pub prices: &'a BTreeMap<AccountName, PriceList>,
    /// The accounts that were not listed recently, and when they last were.
    pub unseen_since: BTreeMap<AccountName, Timestamp>,
    /// The only schedule that counts, if one is given.
    pub only: Option<&'a ScheduleName>,
    pub by: Grouping,
    /// The zone of days and weeks.
    pub zone: TimeZone,
    groups: BTreeMap<Key, Group>,
    totals: Sums,
    off: SignedDuration,
}

/// What a row is about.
type Key = (Option<String>, Option<ResourceRef>, Option<Currency>);

/// What is added up in a row.
#[derive(Debug, Default)]
struct Group {
    resources: BTreeSet<ResourceRef>,
    off: SignedDuration,
    unclear: SignedDuration,
    would_have: SignedDuration,
    full: Option<Money>,
    saved: Option<Money>,
    unknown: BTreeSet<ResourceRef>,
    why: BTreeSet<String>,
}

struct Counted<'a> {
    reference: &'a ResourceRef,
    name: String,
    currency: Option<Currency>,
    record: Option<&'a Record>,
    intervals: Vec<StoppedInterval>,
    bills: Vec<MonthsBill>,
}

impl<'a> SavedCollector<'a> {
    #[must_use]
    pub fn new(
        period: Period,
        now: Timestamp,
        configuration: &'a Configuration,
        prices: &'a BTreeMap<AccountName, PriceList>,
    ) -> Self {
        Self {
            period,
            now,
            configuration,
            prices,
            unseen_since: BTreeMap::new(),
            only: None,
            by: Grouping::default(),
            zone: TimeZone::UTC,
            groups: BTreeMap::new(),
            totals: Sums::default(),
            off: SignedDuration::ZERO,
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
        let schedules = &self.configuration.schedules;
        let intervals = stopped_intervals(entries, known, schedules, self.now);
        let present = record.filter(|record| !matches!(record.phase, Phase::Gone { .. }));
        let follows = present.and_then(|record| record.schedule.as_ref());
        let counts = |interval: &StoppedInterval| {
            let is_meant = self.only.is_none() || self.only == interval.schedule.as_ref();
            is_meant && interval.period.within(self.period).is_some()
        };
        let is_meant = follows.is_some_and(|name| self.only.is_none_or(|only| only == name));
        if !is_meant && !intervals.iter().any(counts) {
            return;
        }
        let latest = entries.iter().max_by_key(|entry| entry.finished_at);
        let name = record.map(|record| &record.name).or(latest.map(|entry| &entry.name));
        let first_seen_at = record.and_then(|record| record.first_seen_at);
        let first = entries.iter().map(|entry| entry.claimed_at).chain(first_seen_at).min();
        let prices = Prices::of_account(&reference.account, self.configuration, self.prices);
        let billed = Billed {
            kind: reference.kind(),
            record,
            known_since: first.unwrap_or(self.now),
            prices,
            intervals: &intervals,
            now: self.now,
        };
        let counted = Counted {
            reference,
            name: name.cloned().unwrap_or_default(),
            currency: prices.map(|prices| prices.currency()),
            record,
            bills: billed.bills(self.period),
            intervals,
        };
        self.add(&counted);
    }

    /// Adds one resource to the groups that it belongs to.
    fn add(&mut self, counted: &Counted<'_>) {
        let follows = counted.record.and_then(|record| record.schedule.clone());
        let schedules: BTreeSet<_> = match self.by {
            // Its bill belongs to the schedule that it follows, and each time off to its own.
            Grouping::Schedule => {
                let intervals = counted.intervals.iter();
                let within = intervals.filter(|one| one.period.within(self.period).is_some());
                let all = within.map(|one| one.schedule.clone()).chain([follows.clone()]);
                all.filter(|one| self.only.is_none() || self.only == one.as_ref()).collect()
            }
            Grouping::Resource | Grouping::Day | Grouping::Week | Grouping::Tag(_) => [None].into(),
        };
        let mut whole = Group::default();
        for (begin, slice) in self.slices() {
            for schedule in &schedules {
                let is_meant = |interval: &StoppedInterval| {
                    let only = self.only.is_none() || self.only == interval.schedule.as_ref();
                    only && (self.by != Grouping::Schedule || interval.schedule == *schedule)
                };
                let has_bill = self.by != Grouping::Schedule || *schedule == follows;
                let part = counted.part(slice, is_meant, has_bill);
                let group = match &self.by {
                    Grouping::Resource => Some(counted.name.clone()),
                    Grouping::Schedule => schedule.as_ref().map(ToString::to_string),
                    Grouping::Day | Grouping::Week => begin.map(|date| date.to_string()),
                    Grouping::Tag(key) => {
                        counted.record.and_then(|one| one.tag_value(key)).map(str::to_owned)
                    }
                };
                let resource = (self.by == Grouping::Resource).then(|| counted.reference.clone());
                whole.merge(&part);
                let key = (group, resource, counted.currency);
                self.groups.entry(key).or_default().merge(&part);
            }
        }
        self.off += whole.off;
        let is_known = whole.saved.is_some() && whole.unknown.is_empty();
        self.totals.add((whole.full, whole.known_saved()), (is_known, false));
    }

    /// The parts of the period that have rows of their own, and the day on which each begins.
    fn slices(&self) -> Vec<(Option<Date>, Period)> {
        let is_week = match self.by {
            Grouping::Day => false,
            Grouping::Week => true,
            Grouping::Resource | Grouping::Schedule | Grouping::Tag(_) => {
                return vec![(None, self.period)];
            }
        };
        let mut slices: Vec<(Option<Date>, Period)> = Vec::new();
        for (date, day) in days(self.period, &self.zone) {
            let back = if is_week { date.weekday().to_monday_zero_offset() } else { 0 };
            let first = date.checked_sub(i64::from(back).days()).ok();
            match slices.last_mut().filter(|(last, _)| *last == first) {
                Some((_, slice)) => slice.until = day.until,
                None => slices.push((first, day)),
            }
        }
        slices
    }

    /// Returns the report on everything that was counted.
    #[must_use]
    pub fn report(self, unreadable: usize) -> SavedReport {
        let row = |((group, resource, currency), sum): (Key, Group)| SavedRow {
            group,
            resource,
            resources: sum.resources.len(),
            off_hours: hours(sum.off),
            unclear_hours: hours(sum.unclear),
            would_have_hours: hours(sum.would_have),
            currency: currency.map(Currency::code),
            full: sum.full,
            saved: sum.known_saved(),
            unknown: sum.unknown.len(),
            why: sum.why.into_iter().collect(),
        };
        SavedReport {
            period: self.period,
            by: self.by,
            rows: self.groups.into_iter().map(row).collect(),
            totals: self.totals.totals(),
            off_hours: hours(self.off),
            unreadable,
        }
    }
}

impl Counted<'_> {
    /// Returns what falls into a slice. What a month's bill saved is spread over the time off in it.
    fn part(
        &self,
        slice: Period,
        is_meant: impl Fn(&StoppedInterval) -> bool,
        has_bill: bool,
    ) -> Group {
        let mut part = Group { resources: [self.reference.clone()].into(), ..Group::default() };
        for interval in self.intervals.iter().filter(|interval| is_meant(interval)) {
            let sum = match interval.kind {
                Kind::Stopped => &mut part.off,
                Kind::Unclear => &mut part.unclear,
                Kind::WouldHave => &mut part.would_have,
            };
            *sum += interval.period.within(slice).map_or(SignedDuration::ZERO, Period::length);
        }
        let off = |within: Period, meant: bool| -> u64 {
            let stopped = self.intervals.iter().filter(|one| one.kind == Kind::Stopped);
            let stopped = stopped.filter(|interval| !meant || is_meant(interval));
            stopped.filter_map(|one| one.period.within(within)).map(Period::seconds).sum()
        };
        for bill in &self.bills {
            let Some(within) = bill.counted.within(slice) else {
                continue;
            };
            match &bill.full {
                Ok(full) if has_bill => {
                    let full = full.share(within.seconds(), bill.counted.seconds().into());
                    part.full = added(part.full, Some(full));
                }
                Err(why) if has_bill => _ = part.why.insert(why.clone()),
                Ok(_) | Err(_) => {}
            }
            match &bill.saved {
                Ok((saved, why)) => {
                    let all = off(bill.counted, false);
                    let saved = saved.share(off(within, true), all.into());
                    part.saved = added(part.saved, Some(saved));
                    part.why.extend(why.map(str::to_owned));
                    part.why.extend(bill.assumed.iter().map(|one| format!("estimate: {one}")));
                }
                Err(_) if part.off.is_zero() && part.unclear.is_zero() => {
                    part.saved = added(part.saved, self.currency.map(Money::zero));
                }
                Err(why) => {
                    part.unknown.insert(self.reference.clone());
                    part.why.insert(why.clone());
                }
            }
        }
        part
    }
}

impl Group {
    /// Returns what was saved. Where it is unknown of every resource in one month, that another month
    /// has no stop is no amount.
    fn known_saved(&self) -> Option<Money> {
        let is_unknown = !self.unknown.is_empty() && self.unknown == self.resources;
        self.saved.filter(|saved| !(is_unknown && saved.is_zero()))
    }

    fn merge(&mut self, part: &Self) {
        self.resources.extend(part.resources.iter().cloned());
        self.off += part.off;
        self.unclear += part.unclear;
        self.would_have += part.would_have;
        self.full = added(self.full, part.full);
        self.saved = added(self.saved, part.saved);
        self.unknown.extend(part.unknown.iter().cloned());
        self.why.extend(part.why.iter().cloned());
    }
}

fn hours(duration: SignedDuration) -> f64 {
    super::hours(duration.as_secs().unsigned_abs())
}
