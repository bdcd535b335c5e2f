//! Money: when there is a figure, and when there must be none.

use domain::{
    ResourceId, ResourceKind,
    hibernation::{Hibernation, KeptSnapshot, Mark},
    resource::{AutoscaleBounds, MachineSize},
};

use super::*;
use crate::hours::{Prices, SavedAmount, saved};

fn prices() -> Prices {
    let text = r#"
        currency = "USD"
        [node-hour]
        "s-2vcpu-4gb" = 0.5
        [machine-hour]
        "g-2vcpu-8gb" = 0.09375
        "s-1vcpu-1gb" = 0.00893
        "cpx22" = 0.0312
        "cx23" = 0.0088
        [machine-month]
        "cpx22" = 19.49
        "cx23" = 5.49
        [snapshot-gb-month]
        hetzner = 0.0143
        digitalocean = 0.06
        [database-month]
        "db-s-4vcpu-8gb" = 120.0
        "db-s-1vcpu-1gb" = 15.0
        "2 x db-s-4vcpu-8gb" = 200.0
    "#;
    Prices::parse(text).unwrap()
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

/// All of June: 720 hours.
fn june() -> Period {
    Period {
        from: "2026-06-01T00:00:00Z".parse().unwrap(),
        until: "2026-07-01T00:00:00Z".parse().unwrap(),
    }
}

fn pool(intervals: &[StoppedInterval], period: Period) -> SavedAmount {
    let plan = Some("s-2vcpu-4gb");
    saved(ResourceKind::NodePool, (plan, None), intervals, period, Some(&prices()))
}

#[track_caller]
fn check(money: &SavedAmount, amount: f64) {
    let found = money.amount.unwrap();
    assert!((found - amount).abs() < 1e-9, "{found}, not {amount}");
}

#[track_caller]
fn check_unknown(money: &SavedAmount, reason: &str) {
    assert_eq!(money.amount, None);
    assert_eq!(money.reason.as_deref(), Some(reason));
}

#[test]
fn machines_save_nothing_and_the_reason_says_so() {
    for kind in [ResourceKind::Droplet, ResourceKind::Server] {
        let interval = StoppedInterval {
            before: None,
            after: None,
            ..stopped(period("15 00:00", "17 00:00"), nodes(1), nodes(0))
        };
        for prices in [None, Some(&prices())] {
            let money =
                saved(kind, (Some("cx22"), None), std::slice::from_ref(&interval), june(), prices);
            assert_eq!(money.amount, Some(0.0));
            assert_eq!(money.reason.as_deref(), Some("billed in full while off"));
            assert!(!money.estimate);
        }
    }
}

/// An interval of a machine that is on another plan while it is off.
fn moved(period: Period, own: &str, small: &str) -> StoppedInterval {
    let size = |plan: &str| {
        SavedState::Machine(MachineSize { plan: plan.to_owned(), ..MachineSize::default() })
    };
    stopped(period, size(own), size(small))
}

fn machine(kind: ResourceKind, intervals: &[StoppedInterval]) -> SavedAmount {
    saved(kind, (None, None), intervals, june(), Some(&prices()))
}

#[test]
fn a_machine_on_a_smaller_plan_saves_what_its_months_are_billed_less() {
    let ten_days = |own, small| [moved(period("15 00:00", "25 00:00"), own, small)];
    // 672 x 0.09375 - 480 x 0.09375 - 192 x 0.00893.
    let droplet = ten_days("g-2vcpu-8gb", "s-1vcpu-1gb");
    let money = machine(ResourceKind::Droplet, &droplet);
    check(&money, 16.29);
    assert_eq!(money.reason, None);
    // 19.49 - 481 x 0.0312 - 239 x 0.0088.
    let money = machine(ResourceKind::Server, &ten_days("cpx22", "cx23"));
    check(&money, 2.38);
    let reason = "estimate: takes an hour of each time off as running";
    assert_eq!(money.reason.as_deref(), Some(reason));
    // Off, and on its own plan.
    let same = ten_days("cpx22", "cpx22");
    let money = machine(ResourceKind::Server, &same);
    assert_eq!(money.reason.as_deref(), Some("billed in full while off"));
}

#[test]
fn what_a_smaller_plan_saved_is_unknown_without_prices_and_where_both_plans_changed() {
    let interval = moved(period("15 00:00", "16 00:00"), "c-4", "s-1vcpu-1gb");
    let money =
        saved(ResourceKind::Droplet, (None, None), std::slice::from_ref(&interval), june(), None);
    check_unknown(&money, "no prices given: --prices FILE");
    let missing = machine(ResourceKind::Droplet, std::slice::from_ref(&interval));
    check_unknown(&missing, "no price \"c-4\" under [machine-hour]");
    let other = moved(period("17 00:00", "18 00:00"), "g-2vcpu-8gb", "s-1vcpu-1gb");
    let changed = machine(ResourceKind::Droplet, &[interval, other]);
    check_unknown(&changed, "its own plan changed within a month");
}

#[test]
fn the_first_48_hours_of_a_node_save_nothing_in_a_month_of_30_days() {
    let hours = |from, until| [stopped(period(from, until), nodes(3), nodes(0))];
    check(&pool(&hours("15 00:00", "16 00:00"), june()), 0.0);
    let nothing = pool(&hours("15 00:00", "17 00:00"), june());
    check(&nothing, 0.0);
    let reason = "a month's hours above 672 are not billed anyway";
    assert_eq!(nothing.reason.as_deref(), Some(reason));
    // One hour more, for three nodes at 0.5 each.
    let money = pool(&hours("15 00:00", "17 01:00"), june());
    check(&money, 1.5);
    assert_eq!((money.estimate, money.reason), (false, None));
    // All of the month: 672 hours would have been billed.
    let whole = StoppedInterval { period: june(), ..hours("15 00:00", "16 00:00")[0].clone() };
    check(&pool(&[whole], june()), 3.0 * 672.0 * 0.5);
}

#[test]
fn each_calendar_month_has_a_cap_of_its_own() {
    let year = |text: &str| -> Timestamp { text.parse().unwrap() };
    let both = Period { from: year("2026-02-01T00:00:00Z"), until: year("2026-04-01T00:00:00Z") };
    // 60 hours in February, which has just 672, and 60 in March, of which 72 are free of charge.
    let across = Period { from: year("2026-02-26T12:00:00Z"), until: year("2026-03-03T12:00:00Z") };
    let money = pool(&[stopped(across, nodes(1), nodes(0))], both);
    check(&money, 60.0 * 0.5);
    assert!(!money.estimate);
}

#[test]
fn a_part_of_a_month_is_an_estimate_that_takes_the_rest_as_running() {
    let interval = stopped(period("15 00:00", "18 00:00"), nodes(1), nodes(0));
    let money = pool(&[interval], period("10 00:00", "17 12:00"));
    check(&money, 12.0 * 0.5);
    assert!(money.estimate);
    let reason = money.reason.unwrap();
    assert_eq!(reason, "estimate: takes the rest of each month as running");
}

#[test]
fn nodes_that_were_stopped_only_at_times_have_their_own_first_hours() {
    let intervals = [
        stopped(period("01 00:00", "04 00:00"), nodes(1), nodes(0)),
        stopped(period("10 00:00", "13 00:00"), nodes(3), nodes(0)),
    ];
    // One node for 144 hours, two for 72.
    check(&pool(&intervals, june()), 0.5 * (96.0 + 2.0 * 24.0));
}

#[test]
fn autoscaled_nodes_are_an_estimate() {
    let autoscaled =
        SavedState::NodePool { count: 2, autoscale: Some(AutoscaleBounds { min: 1, max: 4 }) };
    let interval = stopped(period("15 00:00", "18 00:00"), autoscaled, nodes(0));
    let money = pool(&[interval], june());
    check(&money, 2.0 * 24.0 * 0.5);
    assert!(money.estimate);
    assert!(money.reason.unwrap().contains("autoscaled"));
}

#[test]
fn a_pool_has_no_figure_where_something_is_not_known() {
    let known = [stopped(period("15 00:00", "18 00:00"), nodes(1), nodes(0))];
    let of = |plan, intervals: &[StoppedInterval], prices| {
        saved(ResourceKind::NodePool, (plan, None), intervals, june(), prices)
    };
    let (plan, prices) = (Some("s-2vcpu-4gb"), Some(&prices()));
    let nothing = of(plan, &[], None);
    check(&nothing, 0.0);
    assert_eq!(nothing.reason.as_deref(), Some("not stopped in this period"));
    check_unknown(&of(plan, &known, None), "no prices given: --prices FILE");
    check_unknown(
        &of(None, &known, prices),
        "the plan of its nodes is not known: the next inventory shows it",
    );
    check_unknown(
        &of(Some("s-8vcpu-16gb"), &known, prices),
        "no price \"s-8vcpu-16gb\" under [node-hour]",
    );
    let unsaved = StoppedInterval { before: None, ..known[0].clone() };
    check_unknown(
        &of(plan, &[known[0].clone(), unsaved], prices),
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
    check(&pool(std::slice::from_ref(&would_have), june()), 0.0);
    let alone = pool(std::slice::from_ref(&unclear), june());
    check_unknown(&alone, "whether it was stopped is unclear");
    let besides = pool(&[stopped, unclear, would_have], june());
    check(&besides, 24.0 * 0.5);
    let reason = "estimate: leaves out what is unclear";
    assert_eq!(besides.reason.as_deref(), Some(reason));
}

#[test]
fn a_smaller_database_saves_the_difference_of_both_plans() {
    let small = database("db-s-1vcpu-1gb", 1);
    let of = |before: SavedState, after: SavedState| {
        let interval = stopped(period("15 00:00", "18 00:00"), before, after);
        saved(ResourceKind::Database, (None, None), &[interval], june(), Some(&prices()))
    };
    let money = of(database("db-s-4vcpu-8gb", 1), small.clone());
    // It ran for 648 of the 672 hours that are billed.
    check(&money, (120.0 - 15.0) * 24.0 / 672.0);
    assert!(money.estimate, "storage may cost extra");
    let two = of(database("db-s-4vcpu-8gb", 2), small.clone());
    check(&two, (200.0 - 15.0) * 24.0 / 672.0);
    check_unknown(
        &of(database("db-s-4vcpu-8gb", 3), small.clone()),
        "no price \"3 x db-s-4vcpu-8gb\" under [database-month]",
    );
    check_unknown(
        &of(small.clone(), small.clone()),
        "1 x db-s-1vcpu-1gb was not seen to be smaller than 1 x db-s-1vcpu-1gb",
    );
    let dear = of(database("db-s-4vcpu-8gb", 2), database("db-s-4vcpu-8gb", 1));
    check(&dear, 80.0 * 24.0 / 672.0);
}

#[test]
fn a_database_that_costs_more_when_small_has_no_figure() {
    let text = "currency = \"USD\"\n[database-month]\n\"a-2vcpu-4gb\" = 10\n\"a-1vcpu-1gb\" = 11";
    let prices = Prices::parse(text).unwrap();
    let interval = stopped(
        period("15 00:00", "18 00:00"),
        database("a-2vcpu-4gb", 1),
        database("a-1vcpu-1gb", 1),
    );
    let money = saved(ResourceKind::Database, (None, None), &[interval], june(), Some(&prices));
    check_unknown(&money, "by these prices 1 x a-1vcpu-1gb costs more than 1 x a-2vcpu-4gb");
}

/// An interval in which a machine did not exist.
fn without(period: Period) -> StoppedInterval {
    StoppedInterval {
        before: None,
        after: None,
        hibernated: true,
        ..stopped(period, nodes(1), nodes(0))
    }
}

/// This many snapshots, the largest of 20 GB.
fn snapshots(count: usize) -> Hibernation {
    let machine: ResourceId = "server/1".parse().unwrap();
    let snapshot = |number: usize| KeptSnapshot {
        id: Some(1),
        centi_gb: Some(if number == 0 { 2_000 } else { 1_000 }),
        ..KeptSnapshot::of(
            machine.clone(),
            Mark(number.to_string()),
            period("10 19:00", "10 20:00").from,
        )
    };
    Hibernation {
        snapshots: (0..count).map(snapshot).collect(),
        ..Hibernation::of(machine.clone())
    }
}

fn hibernated(
    kind: ResourceKind,
    plan: &str,
    intervals: &[StoppedInterval],
    kept: &Hibernation,
) -> SavedAmount {
    let known = (Some(plan), Some(kept));
    saved(kind, known, intervals, june(), Some(&prices()))
}

#[test]
fn a_machine_is_not_billed_while_it_does_not_exist_and_its_snapshots_are() {
    let nights = [without(period("11 20:30", "12 07:30")), without(period("12 20:30", "13 07:30"))];
    // June has 720 hours, of which the machine is gone for two times 11. The hours of each server
    // start anew: 260.5, 13 and 424.5 are billed as 261, 13 and 425. Two snapshots of 20 GB exist
    // from the 10th at 19:00 on, for 485 of 720 hours.
    let money = hibernated(ResourceKind::Server, "cpx22", &nights, &snapshots(1));
    let snapshots_cost: f64 = 40.0 * 0.0143 * 485.0 / 720.0;
    let expected = 19.49 - 699.0 * 0.0312 - snapshots_cost;
    let found = money.amount.unwrap();
    assert!((found - expected).abs() < 0.005, "{found}, not {expected}");
    assert!(money.estimate);
    // A Droplet is billed by the second, and here no more than 672 hours of it were.
    let money = hibernated(ResourceKind::Droplet, "g-2vcpu-8gb", &nights, &snapshots(3));
    let expected = 63.0 - 698.0 * 0.09375 - 60.0 * 0.06 * 485.0 / 720.0;
    let found = money.amount.unwrap();
    assert!((found - expected).abs() < 0.005, "{found}, not {expected}");
}

#[test]
fn what_was_only_powered_off_beside_it_is_billed_in_full() {
    let off = StoppedInterval { hibernated: false, ..without(period("20 20:30", "21 07:30")) };
    let night = without(period("11 20:30", "12 07:30"));
    let one =
        hibernated(ResourceKind::Server, "cpx22", std::slice::from_ref(&night), &snapshots(1));
    let both = hibernated(ResourceKind::Server, "cpx22", &[night, off], &snapshots(1));
    assert_eq!(one.amount, both.amount);
}

#[test]
fn what_hibernating_saved_is_unknown_without_a_price_or_a_size() {
    let night = [without(period("11 20:30", "12 07:30"))];
    let unsized_ones = hibernated(ResourceKind::Server, "cpx22", &night, &snapshots(0));
    check_unknown(&unsized_ones, "the size of its snapshots is not known");
    let kept = snapshots(1);
    let known = (Some("cpx22"), Some(&kept));
    let money = saved(ResourceKind::Server, known, &night, june(), None);
    check_unknown(&money, "no prices given: --prices FILE");
    let other = hibernated(ResourceKind::Server, "cax11", &night, &kept);
    check_unknown(&other, "no price \"cax11\" under [machine-hour]");
}
