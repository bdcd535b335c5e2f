//! What hibernating a machine saves.

use domain::{
    ResourceKind,
    hibernation::{
        Hibernation, IDLE_ADDRESS, KEPT_FOR, MAX_SNAPSHOTS, first_lead, first_snapshot,
        snapshots_at_most,
    },
    money::{Currency, Money},
    prices::Rate,
    resource::MachineSize,
};
use jiff::{SignedDuration, Timestamp};

use super::{bill, month::TimesOff};
use crate::history::Period;

/// How long a machine takes to shut down before its snapshot begins.
const SHUTDOWN: SignedDuration = SignedDuration::from_mins(10);

/// How many newer snapshots there are before one may be removed.
const NEWER: usize = 2;

/// Returns what hibernation saves in a month at least: its snapshots take as long and are as large
/// as its disk allows. Negative if hibernation costs more; `None` if the prices are in several
/// currencies.
#[must_use]
pub fn hibernated_month(
    (kind, size): (ResourceKind, &MachineSize),
    own: Rate,
    off: &TimesOff,
    (per_gb_month, address_costs): (Money, bool),
) -> Option<Money> {
    let gone = off.shortened(SHUTDOWN + first_snapshot(size), first_lead(size));
    saved(kind, own, &gone, (snapshots_at_most(size, per_gb_month), address_costs))
}

/// Returns what is saved by a machine that does not exist at times, less its snapshots and its
/// reserved address.
///
/// Each recreated machine is billed as a new one: the hours of a server are counted from its
/// creation, and a cloud's monthly maximum applies to each machine by itself. In an average month,
/// none is assumed to exist long enough to reach it.
pub(super) fn saved(
    kind: ResourceKind,
    own: Rate,
    gone: &TimesOff,
    (snapshots, address_costs): (Money, bool),
) -> Option<Money> {
    let now = bill::cost(kind, &[(own, gone.seconds)])?;
    let lives = gone.lives(kind);
    let then = if gone.off() == 0 {
        now
    } else if gone.is_exact() {
        let mut bills = lives.into_iter().map(|life| bill::cost(kind, &[(own, life)]));
        bills.try_fold(Money::zero(now.currency()), |sum, bill| sum.plus(bill?))?
    } else {
        let seconds = i64::try_from(lives.into_iter().sum::<u64>()).unwrap_or(i64::MAX);
        own.hourly.for_seconds(gone.share(seconds))
    };
    let address = reserved(address_costs, gone.off(), now.currency());
    now.minus(then)?.minus(snapshots)?.minus(address)
}

/// Returns what snapshots taken at these instants cost in a part of a month, each as large as the
/// largest that is known and kept as Offhours keeps them. `None` if no size is known.
pub(super) fn snapshots_of(
    taken: &[Timestamp],
    hibernation: &Hibernation,
    (counted, month): (Period, Period),
    per_gb_month: Money,
) -> Option<Money> {
    let largest = hibernation.snapshots.iter().filter_map(|one| one.centi_gb).max()?;
    let kept_for = taken.iter().enumerate().map(|(number, &at)| {
        let nth = |newer: usize| taken.get(number + newer).copied().unwrap_or(Timestamp::MAX);
        let until = nth(NEWER).max(at + KEPT_FOR).min(nth(MAX_SNAPSHOTS));
        Period { from: at, until }.within(counted).map_or(0, Period::seconds)
    });
    let each = per_gb_month.share(largest, 100);
    Some(each.share(kept_for.sum(), month.seconds().into()))
}

fn reserved(is_there: bool, seconds: u64, currency: Currency) -> Money {
    let nothing = Money::zero(currency);
    let amount = |text| Money::parse(text, Currency::Usd).unwrap_or(nothing);
    let (hourly, monthly) = (amount(IDLE_ADDRESS.0), amount(IDLE_ADDRESS.1));
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
    use crate::money::Month;

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

    fn rate(hourly: &str, monthly: &str, currency: Currency) -> Rate {
        let money = |text| Money::parse(text, currency).unwrap();
        Rate { hourly: money(hourly), monthly: money(monthly) }
    }

    #[test]
    fn a_full_disk_saves_the_least() {
        let price = Money::parse("0.06", Currency::Usd).unwrap();
        let droplet = (ResourceKind::Droplet, &size("g-2vcpu-8gb", 25));
        let own = rate("0.09375", "63", Currency::Usd);
        // Off 491.3 h; each of the 21.7 stops takes 60 min, and each start begins 26 min early:
        // 460 h are left, and two snapshots cost 3.00 USD.
        let found = hibernated_month(droplet, own, &off(), (price, false)).unwrap();
        assert_eq!(found.to_string(), "34.65 USD");
        let with_address = hibernated_month(droplet, own, &off(), (price, true)).unwrap();
        assert_eq!(found.minus(with_address).unwrap().to_string(), "4.60 USD");
    }

    #[test]
    fn what_is_hardly_ever_gone_costs_more_than_it_saves() {
        let price = Money::parse("0.06", Currency::Usd).unwrap();
        let droplet = (ResourceKind::Droplet, &size("s-8vcpu-16gb", 320));
        let own = rate("0.14286", "96", Currency::Usd);
        let found = hibernated_month(droplet, own, &off(), (price, true)).unwrap();
        // A snapshot that takes up to 10.7 h leaves almost nothing of a night.
        assert!(found.is_negative());
    }

    #[test]
    fn the_hours_of_each_server_that_is_made_again_are_begun_anew() {
        let price = Money::parse("0.0143", Currency::Eur).unwrap();
        let server = (ResourceKind::Server, &size("ccx13", 80));
        let own = rate("0.0689", "42.99", Currency::Eur);
        let saved = hibernated_month(server, own, &off(), (price, false)).unwrap();
        // Each of 21.7 servers exists for 14.5 h, from 07:20 to 21:50, and is billed for 15 h; two
        // snapshots cost 2.29 EUR.
        let eur = |text| Money::parse(text, Currency::Eur).unwrap();
        let then = eur("42.99").minus(saved).unwrap().minus(eur("2.288")).unwrap();
        assert_eq!(then.to_string(), "22.47 EUR");
    }

    #[test]
    fn a_snapshot_is_kept_for_three_days_and_until_two_newer_ones_are_there() {
        let at = |day: i64| Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * day);
        let machine: domain::ResourceId = "server/1".parse().unwrap();
        let snapshot = domain::hibernation::KeptSnapshot {
            centi_gb: Some(1_000),
            ..domain::hibernation::KeptSnapshot::of(
                machine.clone(),
                domain::hibernation::Mark::default(),
                at(0),
            )
        };
        let hibernation = Hibernation { snapshots: vec![snapshot], ..Hibernation::of(machine) };
        let month = Period { from: at(0), until: at(30) };
        let price = Money::parse("0.3", Currency::Eur).unwrap();
        // A snapshot of 10 GB costs 0.10 a day.
        for (days, expected) in [
            // The last two stay.
            (&[0, 1, 2, 3, 4][..], "6.20 EUR"),
            (&[10], "2.00 EUR"),
            (&[0, 10, 20], "5.00 EUR"),
        ] {
            let taken: Vec<_> = days.iter().map(|&day| at(day)).collect();
            let cost = snapshots_of(&taken, &hibernation, (month, month), price).unwrap();
            assert_eq!(cost.to_string(), expected, "{days:?}");
        }
    }
}
