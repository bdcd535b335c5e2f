//! What the clouds charge for what they hold.
//!
//! - Droplets and the nodes of Kubernetes pools are charged by the second, for at least 60 s and a
//!   cent per id. Of a calendar month (UTC), at most the 672 most expensive hours are charged
//!   (DODROPLETS).
//! - Databases are charged in the same way, which is an assumption, at the price of their plan and
//!   number of nodes together.
//! - Reserved IPv4 addresses are charged by the started hour without a Droplet, up to their monthly
//!   price. The waiver of less than a dollar of this is not simulated.
//! - Servers and their IPv4 addresses are charged by the started hour of their life, up to their
//!   monthly price (HZPRICES).
//! - Snapshots are charged by their size for as long as they exist. Both clouds name a monthly
//!   price; that it is charged by the started hour, 730 of which make a month, is an assumption.
//!
//! All of them cost the same without power. Traffic, backups, volumes, and a database's replicas
//! and extra storage are not charged, since no stop changes these.

use std::{cmp::Reverse, collections::BTreeMap};

use domain::{AccountName, ResourceId, ResourceRef};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use serde::{Deserialize, Serialize};

use crate::{
    amount::Amount,
    ledger::{BilledItem, History, Life, UsageInterval},
    prices::{Price, Prices},
    world::World,
};

/// The maximum number of seconds of a month that `DigitalOcean` charges.
const CAP_SECONDS: u64 = 672 * 3600;
/// The shortest time that `DigitalOcean` charges.
const LEAST_SECONDS: SignedDuration = SignedDuration::from_secs(60);
/// How many hours of storage cost the price of a month.
const HOURS_A_MONTH: u64 = 730;
const HOUR: SignedDuration = SignedDuration::from_secs(3600);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BillQuery {
    /// Start of the time range, inclusive; defaults to the beginning of the simulation. An hour of
    /// a server that began before it is not charged again. Monthly limits apply to the part of a
    /// month that is charged.
    pub since: Option<Timestamp>,
    /// End of the time range, exclusive; defaults to now, and is never later.
    pub until: Option<Timestamp>,
    /// Whether to charge what would have been due without any stop or resize: each resource at the
    /// size at which it was first seen, from its creation until it was deleted.
    pub left_running: bool,
}

/// What the clouds charge for a time range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bill {
    /// Start of the time range.
    pub since: Timestamp,
    /// End of the time range.
    pub until: Timestamp,
    /// The items, by resource and then by item.
    pub lines: Vec<BillLine>,
}

/// An item of a bill. The amount is the quantity times the unit's price, divided by `per`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BillLine {
    /// The charged resource; for a pool, all of its nodes together.
    pub resource: ResourceRef,
    /// Its plan: `s-2vcpu-4gb`, `2 x db-s-2vcpu-4gb`, `cpx22`; or `primary-ipv4`, `reserved-ipv4`, `snapshot`.
    pub item: String,
    pub quantity: u64,
    pub unit: Unit,
    /// The price of `per` units.
    pub unit_price: Amount,
    /// How many units the price is for: 3600 seconds, 730,000 hours of one MB, or 1 of the others.
    pub per: u64,
    pub amount: Amount,
    /// The currency of the price and the amount.
    pub currency: String,
}

/// The unit in which something is charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// By time, at an hourly price.
    Second,
    Hour,
    /// Months in which the monthly price is less than that of the hours.
    Month,
    Minimum,
    /// Started hours of one MB, at the price of a GB per month.
    MegabyteHour,
}

impl Unit {
    fn per(self) -> u64 {
        match self {
            Self::Second => 3600,
            Self::MegabyteHour => 1000 * HOURS_A_MONTH,
            Self::Hour | Self::Month | Self::Minimum => 1,
        }
    }
}

impl Bill {
    /// The sum of the lines in each currency.
    #[must_use]
    pub fn totals(&self) -> BTreeMap<String, Amount> {
        let mut totals = BTreeMap::new();
        for line in &self.lines {
            *totals.entry(line.currency.clone()).or_default() += line.amount;
        }
        totals
    }
}

pub(crate) fn bill(world: &World, query: &BillQuery) -> Bill {
    let now = world.timeline.now();
    let until = query.until.unwrap_or(now).min(now);
    let since = query.since.unwrap_or(world.began);
    let history = if query.left_running { History::LeftRunning } else { History::Real };
    let prices = world.prices();
    let mut lines = Vec::new();
    for account in &world.accounts {
        let mut charges = Charges::default();
        for (id, life) in account.ledger.lives() {
            charges.resource = Some(id.clone());
            let period = Period { since, until, history };
            match id {
                _ if life.billed != BilledItem::Size => {
                    let is_server = matches!(id, ResourceId::Server(_));
                    charges.part(life, &period, prices, is_server);
                }
                ResourceId::Droplet(_) | ResourceId::NodePool(..) | ResourceId::Database(_) => {
                    charges.by_the_second(life, &period, |size| {
                        let prices = &prices.digitalocean;
                        let price = prices.sizes.get(size);
                        let price = price.or_else(|| prices.databases.get(size));
                        price.expect("a price list has a price for every plan").hourly
                    });
                }
                ResourceId::Server(_) => charges.server(life, &period, prices),
                ResourceId::Machine(_) => {}
            }
        }
        lines.extend(charges.lines(&account.login.name, prices));
    }
    Bill { since, until, lines }
}

struct Period {
    since: Timestamp,
    until: Timestamp,
    history: History,
}

/// The charges of an account: the quantity of each item, by unit and price.
#[derive(Default)]
struct Charges {
    resource: Option<ResourceId>,
    quantities: BTreeMap<Charge, u64>,
}

/// The resource, the item, the unit and its price.
type Charge = (ResourceId, String, Unit, Amount);

impl Charges {
    fn add(&mut self, item: &str, unit: Unit, unit_price: Amount, quantity: u64) {
        if let Some(resource) = self.resource.clone() {
            let charge = (resource, item.to_owned(), unit, unit_price);
            *self.quantities.entry(charge).or_default() += quantity;
        }
    }

    fn lines(self, account: &AccountName, prices: &Prices) -> Vec<BillLine> {
        let line = |((id, item, unit, unit_price), quantity): (Charge, u64)| BillLine {
            currency: if matches!(id, ResourceId::Server(_)) {
                prices.hetzner.currency.clone()
            } else {
                prices.digitalocean.currency.clone()
            },
            resource: ResourceRef { account: account.clone(), id },
            item,
            quantity,
            unit,
            unit_price,
            per: unit.per(),
            amount: unit_price.of(quantity, unit.per()),
        };
        self.quantities.into_iter().map(line).collect()
    }

    /// Adds what `DigitalOcean` charges.
    fn by_the_second(&mut self, life: &Life, period: &Period, hourly: impl Fn(&str) -> Amount) {
        let charged = |period: &Period| -> Vec<(&str, u64)> {
            let months = seconds_by_month(life, period).into_iter();
            months.flat_map(|month| capped(month, &hourly)).collect()
        };
        // What has ended costs at least a cent. While it lasts, the minimum is not shown.
        if let Some(end) = life.end(period.history).filter(|end| *end <= period.until) {
            let whole = Period { since: Timestamp::MIN, ..*period };
            let whole = charged(&whole);
            let cost = whole.iter().map(|(size, seconds)| hourly(size).of(*seconds, 3600));
            if let Some((size, _)) = whole.first()
                && cost.sum::<Amount>() < Amount::CENT
            {
                if period.since < end {
                    self.add(size, Unit::Minimum, Amount::CENT, 1);
                }
                return;
            }
        }
        for (size, seconds) in charged(period) {
            self.add(size, Unit::Second, hourly(size), seconds);
        }
    }

    /// Adds what Hetzner charges for a server.
    fn server(&mut self, life: &Life, period: &Period, prices: &Prices) {
        let prices = &prices.hetzner;
        let location = life.location.as_deref().unwrap_or_default();
        self.by_the_hour(life, period, |interval| {
            let price = prices.of_server(interval.size, location, interval.from);
            let price = price.expect("a price list has a price for every server type");
            (interval.size.to_owned(), price)
        });
    }

    /// Adds what a cloud charges for an address or an image.
    fn part(&mut self, life: &Life, period: &Period, prices: &Prices, is_server: bool) {
        match life.billed {
            BilledItem::Size => {}
            BilledItem::Address if is_server => {
                let address = ("primary-ipv4".to_owned(), prices.hetzner.primary_ipv4);
                self.by_the_hour(life, period, |_| address.clone());
            }
            BilledItem::Address => {
                let address = ("reserved-ipv4".to_owned(), prices.digitalocean.reserved_ipv4);
                self.by_the_hour(life, period, |_| address.clone());
            }
            BilledItem::Image { megabytes } => {
                let price = if is_server {
                    prices.hetzner.snapshot_per_gb_month
                } else {
                    prices.digitalocean.snapshot_per_gb_month
                };
                let none = ("snapshot".to_owned(), Price::ZERO);
                let months = hours_by_month(life, period, |_| none.clone());
                let hours: u64 = months.iter().flat_map(BTreeMap::values).sum();
                if hours > 0 {
                    self.add("snapshot", Unit::MegabyteHour, price, megabytes * hours);
                }
            }
        }
    }

    fn by_the_hour(
        &mut self,
        life: &Life,
        period: &Period,
        priced: impl Fn(&UsageInterval<'_>) -> (String, Price),
    ) {
        for hours in hours_by_month(life, period, priced) {
            let of_hours =
                |(&(hourly, _, _), &count): (&(Amount, Amount, String), &u64)| hourly.of(count, 1);
            let cost: Amount = hours.iter().map(of_hours).sum();
            // If the type has changed within a month, the highest of the limits applies here; which
            // one applies at Hetzner is not documented.
            let most = hours.keys().max_by_key(|(_, monthly, _)| *monthly);
            if let Some((_, monthly, item)) = most.filter(|(_, monthly, _)| *monthly < cost) {
                self.add(item, Unit::Month, *monthly, 1);
                continue;
            }
            for ((hourly, _, item), count) in &hours {
                self.add(item, Unit::Hour, *hourly, *count);
            }
        }
    }
}

/// Caps a month at 672 hours, the most expensive ones.
fn capped(mut month: Vec<(&str, u64)>, hourly: impl Fn(&str) -> Amount) -> Vec<(&str, u64)> {
    month.sort_by_key(|(size, _)| Reverse(hourly(size)));
    let mut left = CAP_SECONDS;
    for (_, seconds) in &mut month {
        *seconds = left.min(*seconds);
        left -= *seconds;
    }
    month.retain(|(_, seconds)| *seconds > 0);
    month
}

/// How many seconds each size is charged for in each month.
fn seconds_by_month<'a>(life: &'a Life, period: &Period) -> Vec<Vec<(&'a str, u64)>> {
    let mut months: BTreeMap<Month, BTreeMap<&str, u64>> = BTreeMap::new();
    let mut intervals = life.usage_intervals(period.history, period.until);
    if let (Some(first), Some(end)) = (intervals.first(), life.end(period.history)) {
        // What has ended is charged for at least a minute.
        let least = first.from + LEAST_SECONDS;
        if let Some(last) = intervals.last_mut().filter(|_| end < least) {
            last.to = least.min(period.until).max(last.to);
        }
    }
    for interval in intervals {
        let mut from = interval.from.max(period.since);
        while from < interval.to {
            let to = interval.to.min(end_of_month(from));
            let seconds = to.as_second() - from.as_second();
            let month = months.entry(month(from)).or_default();
            *month.entry(interval.size).or_default() += seconds.unsigned_abs();
            from = to;
        }
    }
    months.into_values().map(|month| month.into_iter().collect()).collect()
}

/// How many started hours are charged in each month, by hourly price, monthly price and item.
///
/// An hour in which the type has changed is charged once, at the more expensive type's price.
/// Whether Hetzner charges the hours of both types, or of which one, is not documented.
fn hours_by_month(
    life: &Life,
    period: &Period,
    priced: impl Fn(&UsageInterval<'_>) -> (String, Price),
) -> Vec<BTreeMap<(Amount, Amount, String), u64>> {
    let intervals = life.usage_intervals(period.history, period.until);
    let (Some(first), Some(last)) = (intervals.first(), intervals.last()) else {
        return Vec::new();
    };
    if last.to <= period.since {
        return Vec::new();
    }
    let cost = |interval| {
        let (item, price) = priced(interval);
        (price.hourly, price.monthly, item)
    };
    let costs: Vec<_> = intervals.iter().map(cost).collect();
    // The hours of a life begin at its creation.
    let before = period.since.duration_since(first.from).as_secs().max(0);
    let skipped = (before + HOUR.as_secs() - 1) / HOUR.as_secs();
    let mut from = first.from + HOUR * i32::try_from(skipped).unwrap_or(i32::MAX);
    let mut months: BTreeMap<Month, BTreeMap<_, u64>> = BTreeMap::new();
    let mut past = 0;
    while from < last.to {
        let to = from + HOUR;
        past += intervals[past..].iter().take_while(|interval| interval.to <= from).count();
        let within = intervals.iter().zip(&costs).skip(past);
        let within = within.take_while(|(interval, _)| interval.from < to);
        if let Some(dearest) = within.map(|(_, cost)| cost).max() {
            let month = months.entry(month(from)).or_default();
            *month.entry(dearest.clone()).or_default() += 1;
        }
        from = to;
    }
    months.into_values().collect()
}

/// A year and a month, in UTC.
type Month = (i16, i8);

fn month(at: Timestamp) -> Month {
    let date = at.to_zoned(TimeZone::UTC).date();
    (date.year(), date.month())
}

fn end_of_month(at: Timestamp) -> Timestamp {
    let last = at.to_zoned(TimeZone::UTC).date().last_of_month();
    let next = last.tomorrow().and_then(|first| first.to_zoned(TimeZone::UTC));
    next.map_or(Timestamp::MAX, |next| next.timestamp())
}
