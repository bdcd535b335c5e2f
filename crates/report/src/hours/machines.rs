//! What a machine saved that was on a smaller plan, or did not exist, while it was off, at the
//! operator's prices.

use domain::{
    ResourceKind,
    configuration::Provider,
    hibernation::{Hibernation, SNAPSHOTS_TO_KEEP},
    money::Money,
    plan::Offer,
    resource::{MachineSize, SavedState},
};

use super::{
    Period, Prices,
    money::{SavedAmount, StoppedInPeriod, months},
};
use crate::savings::bill::{self, Span};

const HOUR: u64 = 3600;

/// A time off on a plan other than the machine's own.
struct TimeOnOtherPlan<'s> {
    period: Period,
    own: &'s str,
    small: &'s str,
}

impl<'s> TimeOnOtherPlan<'s> {
    /// Returns `None` if the machine kept its plan.
    fn of(stopped: &StoppedInPeriod<'s>) -> Option<Self> {
        let plan = |size: &'s Option<SavedState>| match size {
            Some(SavedState::Machine(MachineSize { plan, .. })) => Some(plan.as_str()),
            Some(SavedState::Database { .. } | SavedState::NodePool { .. }) | None => None,
        };
        let own = plan(&stopped.interval.before)?;
        let small = plan(&stopped.interval.after)?;
        let period = stopped.period;
        (own != small).then_some(Self { period, own, small })
    }
}

/// Reports whether a machine was on another plan during any of these.
pub(super) fn were_moved(stopped: &[StoppedInPeriod<'_>]) -> bool {
    stopped.iter().any(|one| TimeOnOtherPlan::of(one).is_some())
}

/// Returns what was saved on the months' bills. Outside its times off, the machine is assumed to
/// have run on its own plan.
pub(super) fn saved(
    kind: ResourceKind,
    stopped: &[StoppedInPeriod<'_>],
    period: Period,
    prices: &Prices,
    mut assumed: Vec<&str>,
) -> Result<SavedAmount, String> {
    let moved: Vec<_> = stopped.iter().filter_map(TimeOnOtherPlan::of).collect();
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
    Ok(SavedAmount::assuming(amount, &assumed))
}

fn in_month(
    kind: ResourceKind,
    moved: &[TimeOnOtherPlan<'_>],
    month: Period,
    prices: &Prices,
) -> Result<f64, String> {
    let within =
        moved.iter().filter_map(|moved| Some((moved, seconds(moved.period.within(month)?))));
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
        small.push((offer(kind, moved.small, prices)?, seconds.saturating_sub(lost)));
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

/// Returns what was saved on the months' bills of a machine that did not exist at times, less what
/// its snapshots cost. Counts like [`hibernated_month`](crate::savings::hibernated_month).
pub(super) fn saved_by_hibernating(
    (kind, plan, kept): (ResourceKind, Option<&str>, Option<&Hibernation>),
    stopped: &[StoppedInPeriod<'_>],
    period: Period,
    prices: &Prices,
    mut assumed: Vec<&str>,
) -> Result<SavedAmount, String> {
    if were_moved(stopped) {
        return Err("it was hibernated, and moved to another plan".to_owned());
    }
    let plan = plan.ok_or("its plan is not known: the next inventory shows it")?;
    let own = offer(kind, plan, prices)?;
    let provider = match kind {
        ResourceKind::Server => Provider::Hetzner,
        ResourceKind::Droplet
        | ResourceKind::Database
        | ResourceKind::NodePool
        | ResourceKind::Machine => Provider::DigitalOcean,
    };
    let per_gb_month = prices.snapshot(provider)?;
    let kept = kept.ok_or("what snapshots of it are kept is not known")?;
    let largest = kept.snapshots.iter().filter_map(|one| one.centi_gb).max();
    let largest = largest.ok_or("the size of its snapshots is not known")?;
    let count = (kept.seen_snapshots().count() as u64).max(SNAPSHOTS_TO_KEEP);
    let gone: Vec<_> = stopped.iter().filter(|one| one.interval.hibernated).collect();
    let first = gone.iter().map(|one| one.period.from).min();
    let since = kept.snapshots.iter().map(|one| one.asked_at).chain(first).min();
    let since = since.unwrap_or(period.from);
    let months = months(period);
    let mut amount = 0.0;
    for month in &months {
        let within = gone.iter().filter_map(|one| one.period.within(*month));
        let span = |seconds| [Span { offer: &own, seconds }];
        let now = bill::of_machine(kind, &span(seconds(*month)));
        let lives = lives(kind, *month, within).into_iter();
        let bills = lives.map(|life| bill::of_machine(kind, &span(life)));
        let bills: Option<Vec<_>> = bills.collect();
        let nothing = Money::zero(own.hourly.currency());
        let then = bills.and_then(|all| all.into_iter().try_fold(nothing, Money::plus));
        let counted = Period { from: since, until: period.until };
        let counted = counted.within(*month).map_or(0, seconds);
        let month_of_all = per_gb_month.share(largest * count, 100);
        let snapshots = month_of_all.share(counted, i128::from(seconds(*month)));
        let saved = now.zip(then).and_then(|(now, then)| now.minus(then)?.minus(snapshots));
        let saved = saved.and_then(|saved| saved.to_cents().parse::<f64>().ok());
        amount += saved.ok_or("these prices cannot be compared")?;
    }
    if months.iter().any(|month| month.within(period) != Some(*month)) {
        assumed.push("takes the rest of each month as running");
    }
    assumed.push("takes as many snapshots as are kept, each as large as the largest");
    if amount < 0.0 {
        assumed.push("each machine that was made again has a month's limit of its own");
    }
    if kind == ResourceKind::Droplet {
        assumed.push("leaves out a reserved address");
    }
    Ok(SavedAmount::assuming(amount, &assumed))
}

/// Returns for how long, in seconds, each machine is billed in a month in which a new one is
/// created after each of these periods.
fn lives(kind: ResourceKind, month: Period, gone: impl Iterator<Item = Period>) -> Vec<u64> {
    let begun = |life: Period| match kind {
        ResourceKind::Server => seconds(life).div_ceil(HOUR) * HOUR,
        ResourceKind::Droplet
        | ResourceKind::Database
        | ResourceKind::NodePool
        | ResourceKind::Machine => seconds(life),
    };
    let mut from = month.from;
    let mut lives = Vec::new();
    for one in gone {
        lives.push(begun(Period { from, until: one.from }));
        from = one.until;
    }
    lives.push(begun(Period { from, until: month.until }));
    lives
}

/// Returns the offer for a plan. Only Hetzner has a separate price that caps a month.
fn offer(kind: ResourceKind, plan: &str, prices: &Prices) -> Result<Offer, String> {
    let hourly = prices.machine_hour(plan)?;
    let monthly = match kind {
        ResourceKind::Server => prices.machine_month(plan)?,
        ResourceKind::Droplet
        | ResourceKind::Database
        | ResourceKind::NodePool
        | ResourceKind::Machine => hourly,
    };
    Ok(Offer { orderable: true, deprecated: false, monthly, hourly })
}

fn seconds(period: Period) -> u64 {
    period.length().as_secs().unsigned_abs()
}
