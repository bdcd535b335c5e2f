//! What a month costs at each cloud, as this program reads their pages.
//!
//! At `DigitalOcean` each second is billed, and of a month at most 672 hours of one Droplet or node
//! (DOPRICES). Which hours these are for a Droplet that was resized no page says: the dearest are
//! taken, as the page on node pools has it.
//!
//! At Hetzner each hour is billed that was begun, at the dearest type that the server has in it, and
//! of a month at most the price for a month of its dearest type (HZPRICES).

use std::cmp::Ordering;

use domain::{ResourceKind, money::Money, plan::Offer};

/// The most that `DigitalOcean` bills of a month, in seconds.
const CAP_SECONDS: u64 = 672 * 3600;

/// So many seconds of a month on a plan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span<'c> {
    pub(crate) offer: &'c Offer,
    pub(crate) seconds: u64,
}

/// What a machine costs, where it is billed by its kind; none of prices in several currencies.
pub(crate) fn of_machine(kind: ResourceKind, spans: &[Span<'_>]) -> Option<Money> {
    match kind {
        ResourceKind::Server => hetzner(spans),
        ResourceKind::Droplet
        | ResourceKind::Database
        | ResourceKind::NodePool
        | ResourceKind::Machine => digitalocean(spans),
    }
}

/// A Droplet or a node; none of prices in several currencies.
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

/// What is left of a difference between the prices of two plans for a month, of a database that is
/// on the smaller one while it is off: databases are billed as Droplets are.
pub(super) fn share_on_smaller_plan(difference: Money, on: u64, off: u64) -> Money {
    let billed = CAP_SECONDS.saturating_sub(on).min(off);
    difference.share(billed, i128::from(CAP_SECONDS))
}

/// A server; none of prices in several currencies.
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
