//! What hibernating a machine would save.

use domain::{
    ResourceKind,
    hibernation::{Hibernation, first_lead, first_snapshot, snapshots_at_most},
    money::{Currency, Money},
    plan::Offer,
    resource::MachineSize,
};
use jiff::SignedDuration;

use super::{
    bill::{self, Span},
    month::TimesOff,
};

/// How long a machine takes to shut down before its snapshot begins.
const SHUTDOWN: SignedDuration = SignedDuration::from_mins(10);

/// The price of a reserved IPv4 address for an hour in which no Droplet has it, and for a month at
/// most (DOSNAPSHOTS).
const RESERVED: (&str, &str) = ("0.01", "5");

/// What hibernation makes of a machine's month, at worst: its snapshots take as long and are as
/// large as its disk allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HibernatedMonth {
    /// How long in the month the machine does not exist, in seconds.
    pub gone: u64,
    /// What its snapshots cost.
    pub snapshots: Money,
    /// What its reserved address costs while no Droplet has it.
    pub address: Money,
    /// What is saved, at least. Negative if hibernation costs more.
    pub saved: Money,
}

/// Returns what hibernation makes of a machine's month. `None` if the prices are in several
/// currencies.
///
/// Each recreated machine is billed as a new one: the hours of a server are counted from its
/// creation, and a cloud's monthly maximum applies to each machine by itself. None is assumed to
/// exist long enough to reach it, so the maximum is left out.
#[must_use]
pub fn hibernated_month(
    (kind, size): (ResourceKind, &MachineSize),
    offer: &Offer,
    off: &TimesOff,
    (per_gb_month, address_costs): (Money, bool),
) -> Option<HibernatedMonth> {
    let gone = off.shortened(SHUTDOWN + first_snapshot(size), first_lead(size));
    let month = gone.division_anew();
    let seconds = month.seconds;
    let now = bill::of_machine(kind, &[Span { offer, seconds }])?;
    let there = match kind {
        ResourceKind::Server => month.on_in_begun_hours(),
        ResourceKind::Droplet
        | ResourceKind::Database
        | ResourceKind::NodePool
        | ResourceKind::Machine => month.on(),
    };
    let then = match month.off {
        0 => now,
        _ => offer.hourly.for_seconds(there),
    };
    let snapshots = snapshots_at_most(size, per_gb_month);
    let address = reserved(address_costs, month.off, now.currency());
    let saved = now.minus(then)?.minus(snapshots)?.minus(address)?;
    Some(HibernatedMonth { gone: month.off, snapshots, address, saved })
}

/// Returns what the kept snapshots cost in a month. `None` while no size of them is known.
#[must_use]
pub fn snapshots_month(kept: &Hibernation, per_gb_month: Money) -> Option<Money> {
    let mut sizes = kept.seen_snapshots().filter_map(|one| one.centi_gb);
    let first = sizes.next()?;
    Some(per_gb_month.share(first + sizes.sum::<u64>(), 100))
}

fn reserved(is_there: bool, seconds: u64, currency: Currency) -> Money {
    let nothing = Money::zero(currency);
    let amount = |text| Money::parse(text, Currency::Usd).unwrap_or(nothing);
    let (hourly, monthly) = (amount(RESERVED.0), amount(RESERVED.1));
    let by_the_hour = hourly.for_seconds(seconds);
    match by_the_hour.compare(monthly) {
        _ if !is_there => nothing,
        Some(std::cmp::Ordering::Greater) => monthly,
        Some(_) | None => by_the_hour,
    }
}

#[cfg(test)]
mod tests {
    use domain::schedule::{Definition, PeriodDefinition, Schedule};

    use super::*;
    use crate::savings::Month;

    /// The times off of a schedule on weekdays 08:00 to 19:00, in a month of 730.5 hours.
    fn off() -> TimesOff {
        let period = PeriodDefinition {
            weekdays: ["mon-fri".to_owned()].into_iter().collect(),
            begin: Some("08:00".to_owned()),
            end: Some("19:00".to_owned()),
            ..PeriodDefinition::default()
        };
        let schedule = Schedule::new(&Definition {
            timezone: "UTC".to_owned(),
            periods: vec![period],
            ..Definition::default()
        });
        let monday = "2026-11-23T00:00:00Z".parse().unwrap();
        Month::Average(monday).times_off(&schedule.unwrap())
    }

    fn size(plan: &str, disk_gib: u64) -> MachineSize {
        MachineSize { plan: plan.to_owned(), disk_gib, ..MachineSize::default() }
    }

    fn offer(hourly: &str, monthly: &str, currency: Currency) -> Offer {
        let money = |text| Money::parse(text, currency).unwrap();
        Offer { orderable: true, deprecated: false, monthly: money(monthly), hourly: money(hourly) }
    }

    fn hours(seconds: u64) -> u64 {
        (seconds + 1800) / 3600
    }

    #[test]
    fn a_full_disk_saves_the_least() {
        let price = Money::parse("0.06", Currency::Usd).unwrap();
        let droplet = (ResourceKind::Droplet, &size("g-2vcpu-8gb", 25));
        let offer = offer("0.09375", "63", Currency::Usd);
        let found = hibernated_month(droplet, &offer, &off(), (price, false)).unwrap();
        // Off 491.3 h; each of the 21.7 stops takes 60 min, and each start begins 26 min early.
        assert_eq!(hours(found.gone), 460);
        assert_eq!(found.snapshots.to_string(), "3.00 USD");
        assert_eq!(found.address, Money::zero(Currency::Usd));
        assert_eq!(found.saved.to_string(), "34.65 USD");
        let with_address = hibernated_month(droplet, &offer, &off(), (price, true)).unwrap();
        assert_eq!(with_address.address.to_string(), "4.60 USD");
        assert_eq!(found.saved.minus(with_address.address), Some(with_address.saved));
    }

    #[test]
    fn what_is_hardly_ever_gone_costs_more_than_it_saves() {
        let price = Money::parse("0.06", Currency::Usd).unwrap();
        let droplet = (ResourceKind::Droplet, &size("s-8vcpu-16gb", 320));
        let offer = offer("0.14286", "96", Currency::Usd);
        let found = hibernated_month(droplet, &offer, &off(), (price, true)).unwrap();
        // A snapshot that takes up to 10.7 h leaves almost nothing of a night.
        assert_eq!(found.saved.compare(Money::zero(Currency::Usd)), Some(std::cmp::Ordering::Less));
    }

    #[test]
    fn the_hours_of_each_server_that_is_made_again_are_begun_anew() {
        let price = Money::parse("0.0143", Currency::Eur).unwrap();
        let of = |kind| {
            let machine = (kind, &size("ccx13", 80));
            let offer = offer("0.0689", "42.99", Currency::Eur);
            hibernated_month(machine, &offer, &off(), (price, false)).unwrap()
        };
        let (server, droplet) = (of(ResourceKind::Server), of(ResourceKind::Droplet));
        assert_eq!(server.gone, droplet.gone);
        assert_eq!(server.snapshots.to_string(), "2.29 EUR");
        // Each of 21.7 servers exists for 14.5 h, from 07:20 to 21:50, and is billed for 15 h.
        let paid = Money::parse("42.99", Currency::Eur).unwrap();
        let then = paid.minus(server.saved).unwrap();
        let then = then.minus(server.snapshots).unwrap();
        assert_eq!(then.to_string(), "22.47 EUR");
    }
}
