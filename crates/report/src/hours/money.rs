//! Money, only where the amount can be justified: most of what is stopped is billed in full.

use std::{cmp::Ordering, collections::BTreeSet};

use domain::{ResourceKind, hibernation::Hibernation, resource::SavedState};
use jiff::{Timestamp, ToSpan as _, civil::Date, tz::TimeZone};

use super::{Kind, Period, Prices, StoppedInterval, machines};

/// The most hours of a calendar month for which a node or a database is billed. In a longer month,
/// the first hours for which it is stopped save nothing.
const CAP_HOURS: f64 = 672.0;

/// Why a node's stopped hours save nothing if the hours it ran do not fall below the cap.
const NOTHING_BELOW_CAP: &str = "a month's hours above 672 are not billed anyway";

/// What stopping saved.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedAmount {
    /// How much, in the currency of the prices. `None` if that cannot be known.
    pub amount: Option<f64>,
    /// Whether the figure rests on something that is not known. `reason` says on what.
    pub estimate: bool,
    /// Why there is no figure, or only zero, or on what an estimate rests.
    pub reason: Option<String>,
}

impl SavedAmount {
    fn nothing(reason: &str) -> Self {
        Self { amount: Some(0.0), estimate: false, reason: Some(reason.to_owned()) }
    }

    /// Returns an amount that rests on these assumptions.
    pub(super) fn assuming(amount: f64, assumed: &[&str]) -> Self {
        Self {
            amount: Some(amount),
            estimate: !assumed.is_empty(),
            reason: (!assumed.is_empty()).then(|| format!("estimate: {}", assumed.join(", "))),
        }
    }

    fn unknown(reason: impl Into<String>) -> Self {
        Self { amount: None, estimate: false, reason: Some(reason.into()) }
    }
}

/// Returns what a resource's intervals saved within a period. `plan` is that of a pool's nodes or
/// of a machine; `kept` is what is kept of a hibernated machine.
#[must_use]
pub fn saved(
    kind: ResourceKind,
    (plan, kept): (Option<&str>, Option<&Hibernation>),
    intervals: &[StoppedInterval],
    period: Period,
    prices: Option<&Prices>,
) -> SavedAmount {
    let stopped: Vec<StoppedInPeriod<'_>> = intervals
        .iter()
        .filter(|interval| interval.kind == Kind::Stopped)
        .filter_map(|interval| {
            let period = interval.period.within(period)?;
            Some(StoppedInPeriod { interval, period })
        })
        .collect();
    let unclear = intervals
        .iter()
        .any(|interval| interval.kind == Kind::Unclear && interval.period.within(period).is_some());
    let mut assumed = Vec::new();
    if unclear {
        assumed.push("leaves out what is unclear");
    }
    let hibernated = stopped.iter().any(|one| one.interval.hibernated);
    let figure = match (kind, prices) {
        (ResourceKind::Droplet | ResourceKind::Server, Some(prices)) if hibernated => {
            let machine = (kind, plan, kept);
            machines::saved_by_hibernating(machine, &stopped, period, prices, assumed)
        }
        (ResourceKind::Droplet | ResourceKind::Server, None) if hibernated => {
            return SavedAmount::unknown("no prices given: --prices FILE");
        }
        (ResourceKind::Droplet | ResourceKind::Server, _) if !machines::were_moved(&stopped) => {
            return SavedAmount::nothing("billed in full while off");
        }
        (ResourceKind::Machine, _) => {
            return SavedAmount::nothing("Offhours knows no price of a machine over SSH");
        }
        (ResourceKind::NodePool | ResourceKind::Database, _) if stopped.is_empty() => {
            return if unclear {
                SavedAmount::unknown("whether it was stopped is unclear")
            } else {
                SavedAmount::nothing("not stopped in this period")
            };
        }
        (_, None) => return SavedAmount::unknown("no prices given: --prices FILE"),
        (ResourceKind::Droplet | ResourceKind::Server, Some(prices)) => {
            machines::saved(kind, &stopped, period, prices, assumed)
        }
        (ResourceKind::NodePool, Some(prices)) => pool(plan, &stopped, period, prices, assumed),
        (ResourceKind::Database, Some(prices)) => database(&stopped, period, prices, assumed),
    };
    figure.unwrap_or_else(SavedAmount::unknown)
}

/// An interval, and the part of it that lies within the period.
pub(super) struct StoppedInPeriod<'s> {
    pub(super) interval: &'s StoppedInterval,
    pub(super) period: Period,
}

/// Returns what a pool saved. A pool at zero costs nothing, but a node's hours are capped in each
/// month.
fn pool(
    plan: Option<&str>,
    stopped: &[StoppedInPeriod<'_>],
    period: Period,
    prices: &Prices,
    mut assumed: Vec<&str>,
) -> Result<SavedAmount, String> {
    let plan = plan.ok_or("the plan of its nodes is not known: the next inventory shows it")?;
    let price = prices.node_hour(plan)?;
    let pools: Vec<PoolAtZero> = stopped.iter().map(PoolAtZero::of).collect::<Result<_, _>>()?;
    let months = months(period);
    let node_hours: f64 = months.iter().map(|month| node_hours(&pools, *month)).sum();
    if months.iter().any(|month| month.within(period) != Some(*month)) {
        assumed.push("takes the rest of each month as running");
    }
    if pools.iter().any(|pool| pool.autoscaled) {
        assumed.push("takes the autoscaled nodes as they were at each stop");
    }
    if node_hours <= 0.0 {
        if assumed.is_empty() {
            return Ok(SavedAmount::nothing(NOTHING_BELOW_CAP));
        }
        assumed.push(NOTHING_BELOW_CAP);
    }
    Ok(SavedAmount::assuming(price * node_hours, &assumed))
}

struct PoolAtZero {
    period: Period,
    nodes: u32,
    autoscaled: bool,
}

impl PoolAtZero {
    fn of(stopped: &StoppedInPeriod<'_>) -> Result<Self, String> {
        match &stopped.interval.before {
            Some(SavedState::NodePool { count, autoscale }) => {
                Ok(Self { period: stopped.period, nodes: *count, autoscaled: autoscale.is_some() })
            }
            Some(SavedState::Database { .. } | SavedState::Machine(_)) | None => {
                Err("history does not show how many nodes were stopped".to_owned())
            }
        }
    }
}

/// Returns the node-hours saved on a month's bill: each node of the largest count that was stopped
/// is assumed to have run whenever it was not.
fn node_hours(pools: &[PoolAtZero], month: Period) -> f64 {
    let whole = hours(month);
    let counts: BTreeSet<u32> = pools.iter().map(|pool| pool.nodes).collect();
    let mut below = 0;
    let mut saved = 0.0;
    for count in counts {
        let stopped: f64 = pools
            .iter()
            .filter(|pool| pool.nodes >= count)
            .filter_map(|pool| pool.period.within(month))
            .map(hours)
            .sum();
        let each = whole.min(CAP_HOURS) - (whole - stopped).min(CAP_HOURS);
        saved += f64::from(count - below) * each;
        below = count;
    }
    saved
}

/// Returns what a database saved on a smaller plan, provided that the shrink was seen.
fn database(
    stopped: &[StoppedInPeriod<'_>],
    period: Period,
    prices: &Prices,
    mut assumed: Vec<&str>,
) -> Result<SavedAmount, String> {
    let months = months(period);
    let rates: Vec<_> = months.iter().map(|month| (month, rate(stopped, *month))).collect();
    let mut amount = 0.0;
    for one in stopped {
        let (Some(before), Some(after)) = (&one.interval.before, &one.interval.after) else {
            return Err("history does not show both of its sizes".to_owned());
        };
        if after.compare(before) != Some(Ordering::Less) {
            return Err(format!("{after} was not seen to be smaller than {before}"));
        }
        let difference = prices.database_month(before)? - prices.database_month(after)?;
        if difference < 0.0 {
            return Err(format!("by these prices {after} costs more than {before}"));
        }
        let share = |(month, rate): &(&Period, f64)| {
            let stopped = one.period.within(**month).map_or(0.0, hours);
            stopped * rate
        };
        amount += difference * rates.iter().map(share).sum::<f64>();
    }
    if months.iter().any(|month| month.within(period) != Some(*month)) {
        assumed.push("takes the rest of each month as running");
    }
    assumed.push("compares plans alone, without storage");
    Ok(SavedAmount::assuming(amount, &assumed))
}

/// Returns the share of a month's price that each stopped hour in it stands for. Only the dearest
/// hours up to the cap are billed, so that some of the stopped ones may not be.
fn rate(stopped: &[StoppedInPeriod<'_>], month: Period) -> f64 {
    let within = stopped.iter().filter_map(|one| one.period.within(month));
    let off: f64 = within.map(hours).sum();
    if off <= 0.0 {
        return 0.0;
    }
    let billed = (CAP_HOURS - (hours(month) - off)).clamp(0.0, off);
    billed / off / CAP_HOURS
}

/// Returns the calendar months, in UTC, that a period touches.
pub(super) fn months(period: Period) -> Vec<Period> {
    let first = |at: Timestamp| at.to_zoned(TimeZone::UTC).date().first_of_month();
    let mut months = Vec::new();
    let mut begin = first(period.from);
    while let Some((month, next)) = month(begin)
        && month.from < period.until
    {
        months.push(month);
        begin = next;
    }
    months
}

/// Returns the month that begins on a day, and the day on which the next one begins.
fn month(begin: Date) -> Option<(Period, Date)> {
    let next = begin.checked_add(1.month()).ok()?;
    let midnight = |date: Date| Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp());
    let month = Period { from: midnight(begin)?, until: midnight(next)? };
    Some((month, next))
}

fn hours(period: Period) -> f64 {
    period.length().as_secs_f64() / 3600.0
}
