//! What a month costs at each cloud, as this program reads their pages.
//!
//! `DigitalOcean` bills each second, but at most 672 hours of a month for one Droplet or node
//! (DOPRICES). No page says which hours these are for a Droplet that was resized: the dearest are
//! assumed, as the page on node pools says.
//!
//! Hetzner bills each hour that was begun, at the dearest type that the server has in it, but at
//! most the monthly price of its dearest type (HZPRICES).

use std::cmp::Ordering;

use domain::{ResourceKind, money::Money, plan::Offer};

/// The most that `DigitalOcean` bills of a month, in seconds.
const CAP_SECONDS: u64 = 672 * 3600;

/// A number of seconds of a month on a plan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span<'c> {
    pub(crate) offer: &'c Offer,
    pub(crate) seconds: u64,
}

/// Returns what a machine costs under the billing of its kind. `None` if the prices are in several
/// currencies.
pub(crate) fn of_machine(kind: ResourceKind, spans: &[Span<'_>]) -> Option<Money> {
    match kind {
        ResourceKind::Server => hetzner(spans),
        ResourceKind::Droplet
        | ResourceKind::Database
        | ResourceKind::NodePool
        | ResourceKind::Machine => digitalocean(spans),
    }
}

/// Returns what a Droplet or a node costs. `None` if the prices are in several currencies.
pub(super) fn digitalocean(spans: &[Span<'_>]) -> Option<Money> {
    let mut spans = spans.to_vec();
    spans.sort_by(|one, next| {
        let dearest_first = next.offer.hourly.compare(one.offer.hourly);
        dearest_first.unwrap_or(Ordering::Equal)
    });
    let mut left = CAP_SECONDS;
    sum(spans.iter().map(|span| {
        let seconds = span.seconds.min(left);
        left -= seconds;
        span.offer.hourly.for_seconds(seconds)
    }))
}

/// Returns the part of the monthly price difference of two plans that a database saves by being on
/// the smaller one while it is off. Databases are billed as Droplets are.
pub(super) fn share_on_smaller_plan(difference: Money, on: u64, off: u64) -> Money {
    let billed = CAP_SECONDS.saturating_sub(on).min(off);
    difference.share(billed, i128::from(CAP_SECONDS))
}

/// Returns what a server costs. `None` if the prices are in several currencies.
fn hetzner(spans: &[Span<'_>]) -> Option<Money> {
    let has_hours = |span: &&Span<'_>| span.seconds > 0;
    let spans = || spans.iter().filter(has_hours);
    let by_the_hour = sum(spans().map(|span| span.offer.hourly.for_seconds(span.seconds)))?;
    let at_most = spans()
        .map(|span| span.offer.monthly)
        .max_by(|one, next| one.compare(*next).unwrap_or(Ordering::Equal))?;
    match by_the_hour.compare(at_most)? {
        Ordering::Greater => Some(at_most),
        Ordering::Less | Ordering::Equal => Some(by_the_hour),
    }
}

fn sum(mut amounts: impl Iterator<Item = Money>) -> Option<Money> {
    let first = amounts.next()?;
    amounts.try_fold(first, Money::plus)
}
