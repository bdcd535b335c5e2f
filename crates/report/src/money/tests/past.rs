//! What was saved: when there is a figure, and when there must be none.

use domain::{
    ResourceId,
    hibernation::{Hibernation, KeptSnapshot, Mark},
    prices::{PriceList, Prices, Rate},
    record::Record,
    resource::{AutoscaleBounds, SavedState},
};
use jiff::SignedDuration;
use testing::history::{at, record};

use super::*;
use crate::{
    history::{Kind, StoppedInterval},
    money::past::{Billed, MonthsBill},
};

fn period(from: &str, until: &str) -> Period {
    Period { from: at(from), until: at(until) }
}

/// All of June: 720 hours.
fn june() -> Period {
    Period { from: instant("2026-06-01T00:00:00Z"), until: instant("2026-07-01T00:00:00Z") }
}

/// What the clouds list.
fn list(provider: Provider) -> PriceList {
    let currency = provider.facts().currency;
    let money = |text| Money::parse(text, currency).unwrap();
    let (snapshot, plans) = match provider {
        Provider::Hetzner => ("0.0143", [("cpx22", "0.0312", "19.49"), ("cx23", "0.0088", "5.49")]),
        Provider::DigitalOcean => {
            ("0.06", [("g-2vcpu-8gb", "0.09375", "63"), ("s-1vcpu-1gb", "0.00893", "6")])
        }
    };
    let mut list = PriceList::new(currency, at("15 00:00"), Some(money(snapshot)));
    for (plan, hourly, monthly) in plans {
        list.add(plan, None, Rate { hourly: money(hourly), monthly: money(monthly) });
    }
    list
}

/// A resource whose bills are worked out, after June.
struct Past {
    record: Record,
    intervals: Vec<StoppedInterval>,
    own: OwnPrices,
}

impl Past {
    fn of(reference: &str, plan: &str, intervals: &[StoppedInterval]) -> Self {
        let created_at =
            Some(instant("2026-06-15T00:00:00Z") - SignedDuration::from_hours(24 * 80));
        let record = Record {
            plan: Some(plan.to_owned()),
            created_at,
            ..record(reference, Power::Running, "30 12:00")
        };
        let mut own = OwnPrices::default();
        let price = |text| Price::parse(text).unwrap();
        own.node_hour.insert("s-2vcpu-4gb".to_owned(), price("0.5"));
        // Otherwise the price of a server of that age is unknown.
        own.machine_hour.insert("cpx22".to_owned(), price("0.0312"));
        for (size, month) in
            [("db-s-4vcpu-8gb", "120"), ("db-s-1vcpu-1gb", "15"), ("2 x db-s-4vcpu-8gb", "200")]
        {
            own.database_month.insert(size.to_owned(), price(month));
        }
        Self { record, intervals: intervals.to_vec(), own }
    }

    fn pool(intervals: &[StoppedInterval]) -> Self {
        Self::of("do-main/node-pool/c/p", "s-2vcpu-4gb", intervals)
    }

    fn droplet(intervals: &[StoppedInterval]) -> Self {
        Self::of("do-main/droplet/1", "g-2vcpu-8gb", intervals)
    }

    fn server(intervals: &[StoppedInterval]) -> Self {
        Self::of("hz-eu/server/1", "cpx22", intervals)
    }

    fn database(before: SavedState, after: SavedState) -> Self {
        let interval = stopped(period("15 00:00", "18 00:00"), before, after);
        Self::of("do-main/database/d", "", &[interval])
    }

    /// The bills of a period, at an instant after it.
    fn bills(&self, within: Period, now: Timestamp) -> Vec<MonthsBill> {
        let provider = provider_of(self.record.kind());
        let list = list(provider);
        let billed = Billed {
            kind: self.record.kind(),
            record: Some(&self.record),
            known_since: within.from,
            prices: Some(Prices { provider, list: Some(&list), own: &self.own }),
            intervals: &self.intervals,
            now,
        };
        billed.bills(within)
    }

    /// The bill of June.
    fn june(&self) -> MonthsBill {
        self.bills(june(), june().until).remove(0)
    }
}

fn nodes(count: u32) -> SavedState {
    SavedState::NodePool { count, autoscale: None }
}

fn database(plan: &str, nodes: u32) -> SavedState {
    SavedState::Database { plan: plan.to_owned(), nodes, storage_mib: None }
}

fn stopped(period: Period, before: SavedState, after: SavedState) -> StoppedInterval {
    StoppedInterval {
        period,
        kind: Kind::Stopped,
        schedule: None,
        before: Some(before),
        after: Some(after),
        hibernated: false,
    }
}

/// A time at which a machine is only off.
fn off(period: Period) -> StoppedInterval {
    StoppedInterval { before: None, after: None, ..stopped(period, nodes(1), nodes(0)) }
}

/// A time at which a machine is on another plan.
fn moved(period: Period, own: &str, small: &str) -> StoppedInterval {
    let size = |plan: &str| {
        SavedState::Machine(MachineSize { plan: plan.to_owned(), ..MachineSize::default() })
    };
    stopped(period, size(own), size(small))
}

#[track_caller]
fn check(bill: &MonthsBill, saved: f64, why: Option<&str>) {
    let (found, because) = bill.saved.clone().unwrap();
    assert!((amount(found) - saved).abs() < 0.006, "{found}, not {saved}");
    assert_eq!(because, why);
}

#[track_caller]
fn check_unknown(bill: &MonthsBill, reason: &str) {
    assert_eq!(bill.saved, Err(reason.to_owned()));
}

const CAPPED: Option<&str> =
    Some("off too little: a month's hours above 672 are not billed anyway");

#[test]
fn a_machine_that_is_only_off_saves_nothing_whatever_it_costs() {
    let nights = [off(period("15 00:00", "17 00:00"))];
    for past in [Past::droplet(&nights), Past::of("hz-eu/server/1", "unlisted", &nights)] {
        check(&past.june(), 0.0, Some("billed in full while off"));
    }
    assert_eq!(Past::droplet(&nights).june().full.unwrap().to_string(), "63.00 USD");
    let unlisted = Past::of("hz-eu/server/1", "unlisted", &nights).june();
    let why = "its provider lists no price of unlisted in fra1";
    assert!(unlisted.full.unwrap_err().starts_with(&why[..why.len() - 4]));
}

#[test]
fn a_machine_on_a_smaller_plan_saves_what_its_months_are_billed_less() {
    let ten_days = |own, small| [moved(period("15 00:00", "25 00:00"), own, small)];
    // 672 x 0.09375 - 480 x 0.09375 - 192 x 0.00893.
    check(&Past::droplet(&ten_days("g-2vcpu-8gb", "s-1vcpu-1gb")).june(), 16.29, None);
    // The first of its hours is billed as running: 19.49 - 481 x 0.0312 - 239 x 0.0088.
    let server = Past::server(&ten_days("cpx22", "cx23"));
    check(&server.june(), 2.38, None);
    assert!(server.june().assumed.is_empty());
    // Off, and on its own plan.
    let same = Past::server(&ten_days("cpx22", "cpx22"));
    check(&same.june(), 0.0, Some("billed in full while off"));
}

#[test]
fn what_a_smaller_plan_saved_is_unknown_without_prices_and_where_both_plans_changed() {
    let interval = moved(period("15 00:00", "16 00:00"), "c-4", "s-1vcpu-1gb");
    let unlisted = Past::droplet(std::slice::from_ref(&interval)).june().saved.unwrap_err();
    assert!(unlisted.starts_with("its provider lists no price of c-4 in "), "{unlisted}");
    let other = moved(period("17 00:00", "18 00:00"), "g-2vcpu-8gb", "s-1vcpu-1gb");
    check_unknown(
        &Past::droplet(&[interval.clone(), other]).june(),
        "its own plan changed within a month",
    );
    let mut old = Past::server(&[moved(period("15 00:00", "16 00:00"), "cpx22", "cx23")]);
    old.own = OwnPrices::default();
    check_unknown(&old.june(), "it was created before 2026-06-15: its own price is not in the API");
}

#[test]
fn the_first_48_hours_of_a_node_save_nothing_in_a_month_of_30_days() {
    let hours = |from, until| [stopped(period(from, until), nodes(3), nodes(0))];
    check(&Past::pool(&hours("15 00:00", "16 00:00")).june(), 0.0, CAPPED);
    check(&Past::pool(&hours("15 00:00", "17 00:00")).june(), 0.0, CAPPED);
    // One hour more, for three nodes at 0.5 each.
    check(&Past::pool(&hours("15 00:00", "17 01:00")).june(), 1.5, None);
    // All of the month: 672 hours would have been billed.
    let whole = StoppedInterval { period: june(), ..hours("15 00:00", "16 00:00")[0].clone() };
    let bill = Past::pool(&[whole]).june();
    check(&bill, 3.0 * 672.0 * 0.5, None);
    assert_eq!(bill.full.unwrap().to_string(), "1008.00 USD");
}

#[test]
fn a_month_counts_so_far_and_from_the_creation_on() {
    let night = stopped(period("15 00:00", "16 00:00"), nodes(1), nodes(0));
    let mut past = Past::pool(&[night]);
    // On the 20th, 456 hours of June are over: the limit is not reached.
    let bill = past.bills(june(), at("20 00:00")).remove(0);
    check(&bill, 12.0, None);
    assert_eq!(bill.full.unwrap().to_string(), "228.00 USD");
    // Created on the 10th, it is never billed for 672 hours of June.
    past.record.created_at = Some(at("10 00:00"));
    let bills = past.bills(Period { from: at("10 00:00"), ..june() }, june().until);
    check(&bills[0], 12.0, None);
    assert_eq!(bills[0].counted.from, at("10 00:00"));
}

#[test]
fn each_calendar_month_has_a_cap_of_its_own() {
    let both =
        Period { from: instant("2026-04-01T00:00:00Z"), until: instant("2026-06-01T00:00:00Z") };
    // 60 hours in April, of which 48 are free of charge, and 60 in May, of which 72 are.
    let across =
        Period { from: instant("2026-04-28T12:00:00Z"), until: instant("2026-05-03T12:00:00Z") };
    let past = Past::pool(&[stopped(across, nodes(1), nodes(0))]);
    let bills = past.bills(both, june().until);
    check(&bills[0], 12.0 * 0.5, None);
    check(&bills[1], 0.0, CAPPED);
}

#[test]
fn nodes_that_were_stopped_only_at_times_have_their_own_first_hours() {
    let intervals = [
        stopped(period("01 00:00", "04 00:00"), nodes(1), nodes(0)),
        stopped(period("10 00:00", "13 00:00"), nodes(3), nodes(0)),
    ];
    // One node for 144 hours, two for 72.
    check(&Past::pool(&intervals).june(), 0.5 * (96.0 + 2.0 * 24.0), None);
}

#[test]
fn autoscaled_nodes_are_an_estimate() {
    let autoscaled =
        SavedState::NodePool { count: 2, autoscale: Some(AutoscaleBounds { min: 1, max: 4 }) };
    let bill = Past::pool(&[stopped(period("15 00:00", "18 00:00"), autoscaled, nodes(0))]).june();
    check(&bill, 2.0 * 24.0 * 0.5, None);
    assert!(bill.assumed.contains("takes the autoscaled nodes as they were at each stop"));
}

#[test]
fn a_pool_has_no_figure_where_something_is_not_known() {
    let known = stopped(period("15 00:00", "18 00:00"), nodes(1), nodes(0));
    check(&Past::pool(&[]).june(), 0.0, None);
    let mut past = Past::pool(std::slice::from_ref(&known));
    past.record.plan = None;
    check_unknown(&past.june(), "its plan is not known: the next inventory shows it");
    let unsaved = StoppedInterval { before: None, ..known.clone() };
    check_unknown(
        &Past::pool(&[known, unsaved]).june(),
        "history does not show how many nodes were stopped",
    );
}

#[test]
fn unclear_and_would_have_hours_save_nothing() {
    let stopped = stopped(period("15 00:00", "18 00:00"), nodes(1), nodes(0));
    let [unclear, would_have] = [Kind::Unclear, Kind::WouldHave].map(|kind| StoppedInterval {
        kind,
        period: period("20 00:00", "25 00:00"),
        ..stopped.clone()
    });
    check(&Past::pool(std::slice::from_ref(&would_have)).june(), 0.0, None);
    let alone = Past::pool(std::slice::from_ref(&unclear)).june();
    check_unknown(&alone, "whether it was stopped is unclear");
    let besides = Past::pool(&[stopped, unclear, would_have]).june();
    check(&besides, 24.0 * 0.5, None);
    assert!(besides.assumed.contains("leaves out what is unclear"));
}

#[test]
fn a_smaller_database_saves_the_difference_of_both_plans() {
    let small = || database("db-s-1vcpu-1gb", 1);
    let of = |before: SavedState, after: SavedState| Past::database(before, after).june();
    let bill = of(database("db-s-4vcpu-8gb", 1), small());
    // It ran for 648 of the 672 hours that are billed.
    check(&bill, (120.0 - 15.0) * 24.0 / 672.0, None);
    assert!(bill.assumed.contains("compares plans alone, without storage"));
    let two = of(database("db-s-4vcpu-8gb", 2), small());
    check(&two, (200.0 - 15.0) * 24.0 / 672.0, None);
    check_unknown(
        &of(database("db-s-4vcpu-8gb", 3), small()),
        "price not in the API: [prices.database-month] \"3 x db-s-4vcpu-8gb\"",
    );
    check_unknown(
        &of(small(), small()),
        "1 x db-s-1vcpu-1gb was not seen to be smaller than 1 x db-s-1vcpu-1gb",
    );
    let dear = of(database("db-s-4vcpu-8gb", 2), database("db-s-4vcpu-8gb", 1));
    check(&dear, 80.0 * 24.0 / 672.0, None);
}

#[test]
fn what_no_bill_shows_is_unknown_and_never_zero() {
    let machine = Past::of("lab/machine/m", "", &[off(period("15 00:00", "16 00:00"))]);
    check_unknown(&machine.june(), "Offhours knows no price of a machine over SSH");
}

/// A time at which a machine did not exist.
fn without(period: Period) -> StoppedInterval {
    StoppedInterval { hibernated: true, ..off(period) }
}

/// The same resource with snapshots, the largest of 20 GB.
fn with_snapshots(mut past: Past, count: usize) -> Past {
    let machine: ResourceId = past.record.reference.id.clone();
    let snapshot = |number: usize| KeptSnapshot {
        id: Some(1),
        centi_gb: Some(if number == 0 { 2_000 } else { 1_000 }),
        ..KeptSnapshot::of(machine.clone(), Mark(number.to_string()), at("10 19:00"))
    };
    let snapshots = (0..count).map(snapshot).collect();
    past.record.hibernation =
        Some(Box::new(Hibernation { snapshots, ..Hibernation::of(machine.clone()) }));
    past
}

#[test]
fn a_machine_is_not_billed_while_it_does_not_exist_and_its_snapshots_are() {
    let nights = [without(period("11 20:30", "12 07:30")), without(period("12 20:30", "13 07:30"))];
    // June has 720 hours, of which the machine is gone for two times 11. The hours of each server
    // start anew: 260.5, 13 and 424.5 are billed as 261, 13 and 425. Snapshots of 20 GB exist for
    // 459.5 and 435.5 of 720 hours.
    let snapshots = |price: f64| 20.0 * price * (459.5 + 435.5) / 720.0;
    let server = with_snapshots(Past::server(&nights), 1).june();
    check(&server, 19.49 - 699.0 * 0.0312 - snapshots(0.0143), None);
    assert!(server.assumed.contains("takes each snapshot to be as large as the largest"));
    // A Droplet is billed by the second, and here no more than 672 hours of it were.
    let droplet = with_snapshots(Past::droplet(&nights), 3).june();
    check(&droplet, 63.0 - 698.0 * 0.09375 - snapshots(0.06), None);
}

#[test]
fn what_was_only_powered_off_beside_it_is_billed_in_full() {
    let night = without(period("11 20:30", "12 07:30"));
    let powered_off = off(period("20 20:30", "21 07:30"));
    let one = with_snapshots(Past::server(std::slice::from_ref(&night)), 1).june();
    let both = with_snapshots(Past::server(&[night, powered_off]), 1).june();
    assert_eq!(one.saved, both.saved);
}

#[test]
fn what_hibernating_saved_is_unknown_without_a_price_or_a_size() {
    let night = [without(period("11 20:30", "12 07:30"))];
    let without_sizes = with_snapshots(Past::server(&night), 0);
    check_unknown(&without_sizes.june(), "the size of its snapshots is not known");
    check_unknown(&Past::server(&night).june(), "what snapshots of it are kept is not known");
}
