//! What the clouds charge for what they hold.
//!
//! - Droplets, and the nodes of Kubernetes pools, by the second, for each id at least 60 s and a
//!   cent. Of a calendar month (UTC) at most 672 hours are charged, the dearest ones (DODROPLETS).
//! - Databases in the same way, which is an assumption, at the price of their plan and number of
//!   nodes together.
//! - Reserved IPv4 addresses by the started hour in which no Droplet has them, up to their monthly
//!   price. That less than a dollar of it is not charged is left out.
//! - Servers by the started hour of their life, and so are IPv4 addresses, up to their monthly
//!   price (HZPRICES).
//! - Snapshots by the size that they take, for as long as they are there. Both clouds name a price
//!   for a month; that it is charged by the started hour, 730 of which make a month, is an
//!   assumption.
//!
//! Without power all of them cost the same. Not charged are traffic, backups, volumes, and a
//! database's replicas and extra storage: no stop changes these.

use std::{cmp::Reverse, collections::BTreeMap};

use domain::{AccountName, ResourceId, ResourceRef};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use serde::{Deserialize, Serialize};

use crate::{
    amount::Amount,
    ledger::{Billed, History, Life, Stretch},
    prices::{Price, Prices},
    world::World,
};

/// `DigitalOcean` charges at most so many hours of a month.
const CAP_SECONDS: u64 = 672 * 3600;
/// It charges something for at least as long as this.
const LEAST_SECONDS: SignedDuration = SignedDuration::from_secs(60);
/// How many hours of storage are charged as a month.
const HOURS_A_MONTH: u64 = 730;
const HOUR: SignedDuration = SignedDuration::from_secs(3600);

/// What a bill is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BillQuery {
    /// From when on; left out, from the beginning of the simulation. An hour of a server that
    /// began before is not charged again. Monthly limits hold for the part of a month that is
    /// charged.
    pub since: Option<Timestamp>,
    /// Until when; left out, until now, and never later.
    pub until: Option<Timestamp>,
    /// Whether to charge what would have been without any stop or resize: each resource at the
    /// size at which it was first seen, from its creation until it was deleted.
    pub left_running: bool,
}

/// What the clouds charge for a time range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bill {
    /// Its beginning.
    pub since: Timestamp,
    /// Its end.
    pub until: Timestamp,
    /// By resource, then by item.
    pub lines: Vec<BillLine>,
}

/// An item of a bill. The amount is the quantity times the unit's price, divided by `per`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BillLine {
    /// What is charged; for a pool all of its nodes together.
    pub resource: ResourceRef,
    /// Its plan: `s-2vcpu-4gb`, `2 x db-s-2vcpu-4gb`, `cpx22`; or `primary-ipv4`, `reserved-ipv4`, `snapshot`.
    pub item: String,
    /// How much of it.
    pub quantity: u64,
    /// In which unit.
    pub unit: Unit,
    /// The price of `per` units.
    pub unit_price: Amount,
    /// How many units the price is for: 3600 seconds, 730,000 hours of a MB, or 1 of the others.
    pub per: u64,
    /// What it costs.
    pub amount: Amount,
    /// In which currency.
    pub currency: String,
}

/// The unit in which something is charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// By time, at an hourly price.
    Second,
    /// Started hours.
    Hour,
    /// Months in which the monthly price is less than the hours'.
    Month,
    /// The least that is charged at all.
    Minimum,
    /// Started hours of one MB, at the price of a GB and month.
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

/// Computes a bill.
pub(crate) fn bill(world: &World, query: &BillQuery) -> Bill {
    let now = world.timeline.now();
    let until = query.until.unwrap_or(now).min(now);
    let since = query.since.unwrap_or(world.began);
    let history = if query.left_running {
        History::LeftRunning
    } else {
        History::Real
    };
    let prices = world.prices();
    let mut lines = Vec::new();
    for account in &world.accounts {
        let mut charges = Charges::default();
        for (id, life) in account.ledger.lives() {
            charges.resource = Some(id.clone());
            let period = Period {
                since,
                until,
                history,
            };
            match id {
                _ if life.billed != Billed::Size => {
                    let is_server = matches!(id, ResourceId::Server(_));
                    charges.part(life, &period, prices, is_server);
                }
                ResourceId::Droplet(_) | ResourceId::NodePool(..) | ResourceId::Database(_) => {
                    charges.by_the_second(life, &period, |size| {
                        let prices = &prices.digitalocean;
                        let price = prices.sizes.get(size);
                        let price = price.or_else(|| prices.databases.get(size));
                        price
                            .expect("a price list has a price for every plan")
                            .hourly
                    });
                }
                ResourceId::Server(_) => charges.server(life, &period, prices),
                ResourceId::Machine(_) => {}
            }
        }
        lines.extend(charges.lines(&account.login.name, prices));
    }
    Bill {
        since,
        until,
        lines,
    }
}

/// Which part of which history is charged.
struct Period {
    since: Timestamp,
    until: Timestamp,
    history: History,
}

/// The charges of an account: how much of an item, in which unit and at which price.
#[derive(Default)]
struct Charges {
    /// What is being charged.
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
            resource: ResourceRef {
                account: account.clone(),
                id,
            },
            item,
            quantity,
            unit,
            unit_price,
            per: unit.per(),
            amount: unit_price.of(quantity, unit.per()),
        };
        self.quantities.into_iter().map(line).collect()
    }

    /// What `DigitalOcean` charges.
    fn by_the_second(&mut self, life: &Life, period: &Period, hourly: impl Fn(&str) -> Amount) {
        let charged = |period: &Period| -> Vec<(&str, u64)> {
            let months = seconds_by_month(life, period).into_iter();
            months.flat_map(|month| capped(month, &hourly)).collect()
        };
        // What has ended has cost a cent, if its seconds cost less; while it lasts, nothing says so.
        if let Some(end) = life.end(period.history).filter(|end| *end <= period.until) {
            let whole = Period {
                since: Timestamp::MIN,
                ..*period
            };
            let whole = charged(&whole);
            let cost = whole
                .iter()
                .map(|(size, seconds)| hourly(size).of(*seconds, 3600));
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

    /// What Hetzner charges for a server.
    fn server(&mut self, life: &Life, period: &Period, prices: &Prices) {
        let prices = &prices.hetzner;
        let location = life.location.as_deref().unwrap_or_default();
        self.by_the_hour(life, period, |stretch| {
            let price = prices.of_server((stretch.size, location), stretch.from);
            let price = price.expect("a price list has a price for every server type");
            (stretch.size.to_owned(), price)
        });
    }

    /// What a cloud charges for an address, or for an image.
    fn part(&mut self, life: &Life, period: &Period, prices: &Prices, is_server: bool) {
        match life.billed {
            Billed::Size => {}
            Billed::Address if is_server => {
                let address = ("primary-ipv4".to_owned(), prices.hetzner.primary_ipv4);
                self.by_the_hour(life, period, |_| address.clone());
            }
            Billed::Address => {
                let address = (
                    "reserved-ipv4".to_owned(),
                    prices.digitalocean.reserved_ipv4,
                );
                self.by_the_hour(life, period, |_| address.clone());
            }
            Billed::Image { megabytes } => {
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
        priced: impl Fn(&Stretch<'_>) -> (String, Price),
    ) {
        for hours in hours_by_month(life, period, priced) {
            let of_hours =
                |(&(hourly, _, _), &count): (&(Amount, Amount, String), &u64)| hourly.of(count, 1);
            let cost: Amount = hours.iter().map(of_hours).sum();
            // Where the type has changed within a month, its limit is the dearest one's: which it
            // is, is not documented.
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

/// Of a month at most 672 hours, the dearest ones.
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

/// How long each size is charged, for each month.
fn seconds_by_month<'a>(life: &'a Life, period: &Period) -> Vec<Vec<(&'a str, u64)>> {
    let mut months: BTreeMap<Month, BTreeMap<&str, u64>> = BTreeMap::new();
    let mut stretches = life.stretches(period.history, period.until);
    if let (Some(first), Some(end)) = (stretches.first(), life.end(period.history)) {
        // Whatever has ended was charged for a minute at least.
        let least = first.from + LEAST_SECONDS;
        if let Some(last) = stretches.last_mut().filter(|_| end < least) {
            last.to = least.min(period.until).max(last.to);
        }
    }
    for stretch in stretches {
        let mut from = stretch.from.max(period.since);
        while from < stretch.to {
            let to = stretch.to.min(end_of_month(from));
            let seconds = to.as_second() - from.as_second();
            let month = months.entry(month(from)).or_default();
            *month.entry(stretch.size).or_default() += seconds.unsigned_abs();
            from = to;
        }
    }
    months
        .into_values()
        .map(|month| month.into_iter().collect())
        .collect()
}

/// How many started hours are charged in each month, by hourly price, monthly price and item.
///
/// An hour in which the type has changed is charged once, at the dearer type's price. Whether
/// Hetzner charges both types' hours, or which one, is not documented.
fn hours_by_month(
    life: &Life,
    period: &Period,
    priced: impl Fn(&Stretch<'_>) -> (String, Price),
) -> Vec<BTreeMap<(Amount, Amount, String), u64>> {
    let stretches = life.stretches(period.history, period.until);
    let (Some(first), Some(last)) = (stretches.first(), stretches.last()) else {
        return Vec::new();
    };
    if last.to <= period.since {
        return Vec::new();
    }
    let cost = |stretch| {
        let (item, price) = priced(stretch);
        (price.hourly, price.monthly, item)
    };
    let costs: Vec<_> = stretches.iter().map(cost).collect();
    // The hours of a life begin at its creation.
    let before = period.since.duration_since(first.from).as_secs().max(0);
    let skipped = (before + HOUR.as_secs() - 1) / HOUR.as_secs();
    let mut from = first.from + HOUR * i32::try_from(skipped).unwrap_or(i32::MAX);
    let mut months: BTreeMap<Month, BTreeMap<_, u64>> = BTreeMap::new();
    let mut past = 0;
    while from < last.to {
        let to = from + HOUR;
        past += stretches[past..]
            .iter()
            .take_while(|stretch| stretch.to <= from)
            .count();
        let within = stretches.iter().zip(&costs).skip(past);
        let within = within.take_while(|(stretch, _)| stretch.from < to);
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
    let next = last
        .tomorrow()
        .and_then(|first| first.to_zoned(TimeZone::UTC));
    next.map_or(Timestamp::MAX, |next| next.timestamp())
}
