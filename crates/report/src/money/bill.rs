//! What each cloud bills for a time, as this program reads their pages.
//!
//! `DigitalOcean` bills each second, but at most 672 hours of a month for one Droplet, node or
//! database (DOPRICES). No page says which hours these are for one that was resized: the most
//! expensive are assumed, as the page on node pools says.
//!
//! Hetzner bills each hour that was begun, at the most expensive type that the server has in it, but
//! at most the monthly price of its most expensive type (HZPRICES).

use std::cmp::Ordering;

use domain::{
    ResourceKind,
    money::Money,
    prices::{CAP_HOURS, Rate},
    provider::Billing,
};

/// The most that `DigitalOcean` bills of a month, in seconds.
const CAP_SECONDS: u64 = CAP_HOURS * 3600;

/// Why time off saves nothing that leaves more than 672 hours of a month.
pub(super) const NOTHING_BELOW_CAP: &str =
    "off too little: a month's hours above 672 are not billed anyway";

/// Why nothing is known of what rates in several currencies come to.
pub(super) const SEVERAL: &str = "its prices are in several currencies";

/// Returns what a time costs at one rate after another, each for a number of seconds. `None` if the
/// rates are in several currencies.
pub(super) fn cost(kind: ResourceKind, spans: &[(Rate, u64)]) -> Option<Money> {
    match kind.billing() {
        Billing::Seconds => by_the_second(spans),
        Billing::Hours => by_the_hour(spans),
    }
}

/// Returns what is saved in a number of seconds by what is at other rates, or at none, for some of
/// them. `None` if the rates are in several currencies.
pub(super) fn saved(
    kind: ResourceKind,
    own: Rate,
    seconds: u64,
    off: &[(Rate, u64)],
) -> Option<Money> {
    let away: u64 = off.iter().map(|(_, seconds)| seconds).sum();
    let mut then = vec![(own, seconds.saturating_sub(away))];
    then.extend(off);
    cost(kind, &[(own, seconds)])?.minus(cost(kind, &then)?)
}

fn by_the_second(spans: &[(Rate, u64)]) -> Option<Money> {
    let mut spans = spans.to_vec();
    let hourly = |(rate, _): &(Rate, u64)| rate.hourly;
    spans.sort_by(|one, next| hourly(next).compare(hourly(one)).unwrap_or(Ordering::Equal));
    let mut left = CAP_SECONDS;
    sum(spans.iter().map(|(rate, seconds)| {
        let billed = left.min(*seconds);
        left -= billed;
        rate.hourly.for_seconds(billed)
    }))
}

fn by_the_hour(spans: &[(Rate, u64)]) -> Option<Money> {
    let used = || spans.iter().filter(|(_, seconds)| *seconds > 0);
    let Some((first, _)) = used().next() else {
        return spans.first().map(|(rate, _)| Money::zero(rate.hourly.currency()));
    };
    let hours = sum(used().map(|(rate, seconds)| rate.hourly.for_seconds(*seconds)))?;
    let at_most = used().try_fold(first.monthly, |most, (rate, _)| {
        Some(if most.compare(rate.monthly)? == Ordering::Less { rate.monthly } else { most })
    })?;
    Some(if hours.compare(at_most)? == Ordering::Greater { at_most } else { hours })
}

fn sum(mut amounts: impl Iterator<Item = Money>) -> Option<Money> {
    let first = amounts.next()?;
    amounts.try_fold(first, Money::plus)
}
