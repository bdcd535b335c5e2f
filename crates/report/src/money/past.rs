//! What the times off of one resource saved on its bills so far, by its history.

use std::{cmp::Ordering, collections::BTreeSet};

use domain::{
    Family, ResourceKind,
    money::Money,
    plan::may_have_kept_price,
    prices::{Prices, Rate},
    record::{Phase, Record},
    resource::SavedState,
};
use jiff::Timestamp;

use super::{
    bill::{self, NOTHING_BELOW_CAP},
    hibernation,
    month::{TimesOff, months},
};
use crate::history::{Kind, Period, StoppedInterval};

/// The reason given for a machine whose own price is in no API.
pub(super) const KEPT_PRICE: &str =
    "it was created before 2026-06-15: its own price is not in the API";

/// The reason given for a machine that is only switched off.
pub(super) const BILLED_IN_FULL: &str = "billed in full while off";

/// A resource whose bill is worked out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Billed<'a> {
    pub(super) kind: ResourceKind,
    pub(super) record: Option<&'a Record>,
    /// When it was first known.
    pub(super) known_since: Timestamp,
    pub(super) prices: Option<Prices<'a>>,
    /// All of its times off, in order.
    pub(super) intervals: &'a [StoppedInterval],
    pub(super) now: Timestamp,
}

/// What was saved, with why that is nothing; or why it is unknown.
type SavedBecause = Result<(Money, Option<&'static str>), String>;

/// A resource's bill of one calendar month so far.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MonthsBill {
    /// The part of the month in which it existed, until now.
    pub(super) counted: Period,
    /// What would have been billed if it had run throughout.
    pub(super) full: Result<Money, String>,
    pub(super) saved: SavedBecause,
    /// What the figures rest on.
    pub(super) assumed: BTreeSet<&'static str>,
}

impl<'a> Billed<'a> {
    pub(super) fn bills(&self, period: Period) -> Vec<MonthsBill> {
        let record = self.record;
        let created_at = record.and_then(|record| record.created_at);
        // Without its creation, a resource is taken to have existed since the month began.
        let since = created_at.map_or(Timestamp::MIN, |at| at.min(self.known_since));
        let until = record.and_then(|record| {
            let Phase::Gone { since } = record.phase else { return None };
            Some(record.missing_since.unwrap_or(since))
        });
        let existed = Period { from: since, until: until.unwrap_or(self.now).min(self.now) };
        let months = months(period).into_iter();
        months.filter_map(|month| Some(self.bill(month, month.within(existed)?))).collect()
    }

    fn bill(&self, month: Period, counted: Period) -> MonthsBill {
        let within: Vec<_> = self
            .intervals
            .iter()
            .filter(|interval| interval.period.within(counted).is_some())
            .collect();
        // Where a stop alone changes nothing about a bill, it does not matter that it is unclear.
        let unclear = within.iter().any(|interval| {
            let is_machine = self.kind.family() == Family::CloudMachine;
            let matters = !is_machine || interval.hibernated || was_moved(interval);
            interval.kind == Kind::Unclear && matters
        });
        let stopped: Vec<_> =
            within.into_iter().filter(|interval| interval.kind == Kind::Stopped).collect();
        let mut bill = Bill { of: self, month, counted, stopped, assumed: BTreeSet::new() };
        if unclear {
            bill.assumed.insert("leaves out what is unclear");
        }
        let full = bill.full();
        let saved = match (self.kind.family(), bill.stopped.is_empty()) {
            (Family::OwnMachine, _) => full.clone().map(|zero| (zero, None)),
            (_, true) if unclear => Err("whether it was stopped is unclear".to_owned()),
            (_, true) => self.nothing(None),
            (_, false) => bill.saved(),
        };
        MonthsBill { counted, full, saved, assumed: bill.assumed }
    }

    fn nothing(&self, why: Option<&'static str>) -> SavedBecause {
        Ok((Money::zero(self.prices()?.currency()), why))
    }

    /// Returns what a machine or a node costs by its own plan.
    fn rate(&self, plan: Option<&str>) -> Result<Rate, String> {
        let record = self.record.ok_or("it is not recorded any more")?;
        let plan = plan.or(record.plan.as_deref());
        let plan = plan.ok_or("its plan is not known: the next inventory shows it")?;
        self.prices()?.of_plan(self.kind, plan, &record.region)
    }

    fn prices(&self) -> Result<Prices<'a>, String> {
        self.prices.ok_or_else(|| "its account is not configured any more".to_owned())
    }
}

/// One month's bill, as it is worked out.
struct Bill<'a> {
    of: &'a Billed<'a>,
    month: Period,
    counted: Period,
    stopped: Vec<&'a StoppedInterval>,
    assumed: BTreeSet<&'static str>,
}

impl<'a> Bill<'a> {
    /// Returns the resource's own size, to which it comes back from a stop.
    fn own(&self) -> Option<&'a SavedState> {
        let stopped = || self.stopped.last()?.before.as_ref();
        let record = self.of.record;
        let saved = || record?.saved.as_ref();
        let seen = || record?.observed.as_ref()?.size.as_ref();
        stopped().or_else(saved).or_else(seen)
    }

    fn full(&self) -> Result<Money, String> {
        let kind = self.of.kind;
        let (rate, count) = match kind.family() {
            Family::OwnMachine => {
                return Err("Offhours knows no price of a machine over SSH".to_owned());
            }
            Family::CloudMachine => (self.of_machine()?, 1),
            Family::NodePool => (self.of.rate(None)?, self.nodes()),
            Family::Database => {
                let size = self.own().ok_or("its size is not known")?;
                (self.of_database(size)?, 1)
            }
        };
        let cost = bill::cost(kind, &[(rate, self.counted.seconds())]);
        Ok(cost.ok_or(bill::SEVERAL)?.times(count))
    }

    fn saved(&mut self) -> SavedBecause {
        let kind = self.of.kind;
        let saved = match kind.family() {
            Family::OwnMachine => None,
            Family::NodePool => self.of_pool()?,
            Family::Database => {
                self.assumed.insert("compares plans alone, without storage");
                let own = self.own().ok_or("its size is not known")?;
                let own = (own, self.of_database(own)?);
                self.on_smaller(own, Self::of_database)?
            }
            Family::CloudMachine => {
                let hibernated = |interval: &&StoppedInterval| interval.hibernated;
                let moved = self.stopped.iter().any(|interval| was_moved(interval));
                match (self.stopped.iter().any(hibernated), moved) {
                    (true, true) => {
                        return Err("it was hibernated, and moved to another plan".to_owned());
                    }
                    (true, false) => self.hibernated()?,
                    (false, true) => {
                        let own = self.own().ok_or("its plan is not known")?;
                        let own = (own, self.of_machine()?);
                        self.on_smaller(own, |bill, size| bill.of.rate(plan(size)))?
                    }
                    (false, false) => return self.of.nothing(Some(BILLED_IN_FULL)),
                }
            }
        };
        let saved = saved.ok_or(bill::SEVERAL)?;
        Ok((saved, saved.is_zero().then_some(NOTHING_BELOW_CAP)))
    }

    /// Returns what the machine's own plan costs.
    fn of_machine(&self) -> Result<Rate, String> {
        let own = plan_of(self.own());
        let rate = self.of.rate(own)?;
        let record = self.of.record;
        let is_own = self.of.prices()?.is_own(own.or_else(|| record?.plan.as_deref()));
        let created_at = record.and_then(|record| record.created_at);
        if may_have_kept_price(self.of.kind, created_at) && !is_own {
            return Err(KEPT_PRICE.to_owned());
        }
        Ok(rate)
    }

    fn of_database(&self, size: &SavedState) -> Result<Rate, String> {
        self.of.prices()?.of_database(size)
    }

    /// Returns what was saved by being at smaller sizes.
    fn on_smaller(
        &self,
        (own, rate): (&SavedState, Rate),
        of: impl Fn(&Self, &SavedState) -> Result<Rate, String>,
    ) -> Result<Option<Money>, String> {
        let kind = self.of.kind;
        let mut off = Vec::new();
        for interval in &self.stopped {
            let (before, after) = match (&interval.before, &interval.after) {
                (Some(before), Some(after)) => (before, after),
                // A machine that kept its plan this time.
                _ if kind != ResourceKind::Database => continue,
                _ => return Err("history does not show both of its sizes".to_owned()),
            };
            if kind == ResourceKind::Database {
                if after.compare(before) != Some(Ordering::Less) {
                    return Err(format!("{after} was not seen to be smaller than {before}"));
                }
            } else if plan(before) != plan(own) {
                return Err("its own plan changed within a month".to_owned());
            }
            off.push((of(self, after)?, self.billed_off(interval)));
        }
        Ok(bill::saved(kind, rate, self.counted.seconds(), &off))
    }

    fn billed_off(&self, interval: &StoppedInterval) -> u64 {
        let created_at = self.of.record.and_then(|record| record.created_at);
        let off = TimesOff::within(self.counted, [interval.period].into_iter());
        off.billed_off(self.of.kind, created_at)
    }

    fn nodes(&self) -> u32 {
        let own = self.own().map_or(0, nodes);
        let stopped = self.stopped.iter().filter_map(|interval| interval.before.as_ref());
        stopped.map(nodes).max().unwrap_or(own)
    }

    /// Returns what a pool at zero saved: each node of the largest count that was stopped is taken
    /// to have run whenever it was not.
    fn of_pool(&mut self) -> Result<Option<Money>, String> {
        let rate = self.of.rate(None)?;
        let zero = Rate::zero(rate.hourly.currency());
        let counts: Option<Vec<_>> = self
            .stopped
            .iter()
            .map(|interval| Some((nodes(interval.before.as_ref()?), interval.period)))
            .collect();
        let counts = counts.ok_or("history does not show how many nodes were stopped")?;
        let autoscaled = |interval: &&StoppedInterval| {
            matches!(interval.before, Some(SavedState::NodePool { autoscale: Some(_), .. }))
        };
        if self.stopped.iter().any(autoscaled) {
            self.assumed.insert("takes the autoscaled nodes as they were at each stop");
        }
        let mut sum = Some(zero.hourly);
        let mut below = 0;
        let levels: BTreeSet<_> = counts.iter().map(|(count, _)| *count).collect();
        for level in levels {
            let off = counts.iter().filter(|(count, _)| *count >= level);
            let off = TimesOff::within(self.counted, off.map(|(_, period)| *period)).off();
            let each = bill::saved(self.of.kind, rate, self.counted.seconds(), &[(zero, off)]);
            sum = sum.zip(each).and_then(|(sum, each)| sum.plus(each.times(level - below)));
            below = level;
        }
        Ok(sum)
    }

    /// Returns what was saved by a machine that did not exist at times.
    fn hibernated(&mut self) -> Result<Option<Money>, String> {
        let rate = self.of_machine()?;
        let hibernation = self.of.record.and_then(|record| record.hibernation.as_deref());
        let hibernation = hibernation.ok_or("what snapshots of it are kept is not known")?;
        let per_gb_month = self.of.prices()?.of_snapshot()?;
        let gone = || self.of.intervals.iter().filter(|interval| interval.hibernated);
        let taken: Vec<_> = gone().map(|interval| interval.period.from).collect();
        let months = (self.counted, self.month);
        let snapshots = hibernation::snapshots_of(&taken, hibernation, months, per_gb_month);
        let snapshots = snapshots.ok_or("the size of its snapshots is not known")?;
        self.assumed.insert("takes each snapshot to be as large as the largest");
        let manifest = hibernation.manifest.as_ref();
        let address_costs = manifest.is_some_and(|manifest| manifest.address_costs(self.of.kind));
        let gone = gone().filter(|interval| interval.kind == Kind::Stopped);
        let gone = TimesOff::within(self.counted, gone.map(|interval| interval.period));
        Ok(hibernation::saved(self.of.kind, rate, &gone, (snapshots, address_costs)))
    }
}

fn was_moved(interval: &StoppedInterval) -> bool {
    let plans = plan_of(interval.before.as_ref()).zip(plan_of(interval.after.as_ref()));
    plans.is_some_and(|(own, small)| own != small)
}

fn plan_of(size: Option<&SavedState>) -> Option<&str> {
    size.and_then(plan)
}

fn plan(size: &SavedState) -> Option<&str> {
    size.machine().map(|machine| machine.plan.as_str())
}

fn nodes(size: &SavedState) -> u32 {
    match size {
        SavedState::NodePool { count, .. } => *count,
        SavedState::Database { .. } | SavedState::Machine(_) => 0,
    }
}
