//! What a machine saved that was moved to a smaller plan while it was off, by the operator's prices.

use domain::{
    ResourceKind,
    plan::Offer,
    resource::{MachineSize, SavedState},
};

use super::{
    Period, Prices,
    money::{Money, Stopped, months},
};
use crate::savings::bill::{self, Span};

const HOUR: u64 = 3600;

/// A time off on another plan than the machine's own.
struct Moved<'s> {
    period: Period,
    own: &'s str,
    small: &'s str,
}

impl<'s> Moved<'s> {
    /// None where it kept its plan.
    fn of(stopped: &Stopped<'s>) -> Option<Self> {
        let plan = |size: &'s Option<SavedState>| match size {
            Some(SavedState::Machine(MachineSize { plan, .. })) => Some(plan.as_str()),
            Some(SavedState::Database { .. } | SavedState::NodePool { .. }) | None => None,
        };
        let own = plan(&stopped.stretch.before)?;
        let small = plan(&stopped.stretch.after)?;
        let period = stopped.period;
        (own != small).then_some(Self { period, own, small })
    }
}

/// Whether a machine was on a smaller plan in any of these.
pub(super) fn were_moved(stopped: &[Stopped<'_>]) -> bool {
    stopped.iter().any(|one| Moved::of(one).is_some())
}

/// What the months' bills lack. Outside of the times off it is taken to have run on its own plan.
pub(super) fn saved(
    kind: ResourceKind,
    stopped: &[Stopped<'_>],
    period: Period,
    prices: &Prices,
    mut assumed: Vec<&str>,
) -> Result<Money, String> {
    let moved: Vec<_> = stopped.iter().filter_map(Moved::of).collect();
    let months = months(period);
    let mut amount = 0.0;
    for month in &months {
        amount += in_month(kind, &moved, *month, prices)?;
    }
    let is_part = |month: &Period| month.within(period) != Some(*month);
    if months.iter().any(is_part) {
        assumed.push("takes the rest of each month as running");
    }
    if kind == ResourceKind::Server {
        assumed.push("takes an hour of each time off as running");
    }
    Ok(Money::assuming(amount, &assumed))
}

fn in_month(
    kind: ResourceKind,
    moved: &[Moved<'_>],
    month: Period,
    prices: &Prices,
) -> Result<f64, String> {
    let within = moved
        .iter()
        .filter_map(|moved| Some((moved, seconds(moved.period.within(month)?))));
    let within: Vec<_> = within.collect();
    let Some((first, _)) = within.first() else {
        return Ok(0.0);
    };
    if within.iter().any(|(moved, _)| moved.own != first.own) {
        return Err("its own plan changed within a month".to_owned());
    }
    let own = offer(kind, first.own, prices)?;
    let mut small = Vec::new();
    for (moved, seconds) in within {
        // Each time off begins within an hour that is billed at the dearer type.
        let lost = match kind {
            ResourceKind::Server => HOUR,
            ResourceKind::Droplet
            | ResourceKind::Database
            | ResourceKind::NodePool
            | ResourceKind::Machine => 0,
        };
        small.push((
            offer(kind, moved.small, prices)?,
            seconds.saturating_sub(lost),
        ));
    }
    let whole = seconds(month);
    let off: u64 = small.iter().map(|(_, seconds)| seconds).sum();
    let span = |offer, seconds| Span { offer, seconds };
    let mut spans = vec![span(&own, whole.saturating_sub(off))];
    spans.extend(small.iter().map(|(offer, seconds)| span(offer, *seconds)));
    let now = bill::of_machine(kind, &[span(&own, whole)]);
    let then = bill::of_machine(kind, &spans);
    let saved = now.zip(then).and_then(|(now, then)| now.minus(then));
    saved
        .and_then(|saved| saved.to_cents().parse().ok())
        .ok_or_else(|| "these prices cannot be compared".to_owned())
}

/// Only Hetzner's months are limited by a price of their own.
fn offer(kind: ResourceKind, plan: &str, prices: &Prices) -> Result<Offer, String> {
    let hourly = prices.machine_hour(plan)?;
    let monthly = match kind {
        ResourceKind::Server => prices.machine_month(plan)?,
        ResourceKind::Droplet
        | ResourceKind::Database
        | ResourceKind::NodePool
        | ResourceKind::Machine => hourly,
    };
    Ok(Offer {
        orderable: true,
        deprecated: false,
        monthly,
        hourly,
    })
}

fn seconds(period: Period) -> u64 {
    period.length().as_secs().unsigned_abs()
}
