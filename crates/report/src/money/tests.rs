//! What a month costs and what each method saves in it, checked against months counted manually.

mod past;
mod saved;

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    ResourceKind,
    configuration::{Policy, Provider},
    money::{Currency, Money},
    plan::{Catalog, MachinePlan, Offer},
    prices::{OwnPrices, Price, PriceList, Prices},
    resource::{
        AutoscaleBounds, Cluster, DatabaseSize, MachineFacts, MachineSize, NodePoolSize, Power,
        Resource, Size,
    },
    schedule::{Definition, PeriodDefinition, Schedule},
    stop_method::StopMethod,
};
use jiff::Timestamp;
use testing::history::machine;

use super::*;
use crate::history::Period;

/// A schedule of one window, in UTC.
fn schedule(weekdays: &str, begin: &str, end: &str) -> Schedule {
    let period = PeriodDefinition {
        weekdays: vec![weekdays.to_owned()],
        begin: Some(begin.to_owned()),
        end: Some(end.to_owned()),
        ..PeriodDefinition::default()
    };
    let definition =
        Definition { timezone: "UTC".to_owned(), periods: vec![period], ..Definition::default() };
    Schedule::new(&definition).unwrap()
}

fn instant(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// November 2026, which has 720 hours, 21 working days, and begins and ends off.
fn november() -> Month {
    Month::Calendar(Period {
        from: instant("2026-11-01T00:00:00Z"),
        until: instant("2026-12-01T00:00:00Z"),
    })
}

const HOUR: u64 = 3600;

#[test]
fn an_average_month_has_its_share_of_a_week() {
    let month = Month::Average(instant("2026-11-23T16:40:00Z"));
    let off = month.times_off(&schedule("mon-fri", "08:00", "19:00"));
    assert_eq!(off.seconds, 730 * HOUR + HOUR / 2);
    // 55 of 168 hours.
    assert_eq!(off.seconds - off.off(), 860_947);
    // One hour of each of the five times off in a week.
    let lost = off.off() - off.billed_off(ResourceKind::Server, None);
    assert_eq!(lost, 78_268);
}

#[test]
fn a_calendar_month_is_counted_as_it_is() {
    let off = november().times_off(&schedule("mon-fri", "08:00", "19:00"));
    assert_eq!(off.seconds, 720 * HOUR);
    assert_eq!(off.seconds - off.off(), 21 * 11 * HOUR);
    // The time off at the beginning of the month lost its hour before.
    assert_eq!(off.off() - off.billed_off(ResourceKind::Server, None), 21 * HOUR);
}

#[test]
fn a_servers_hours_are_counted_from_its_creation() {
    let whole_hours = |begin: &str, end: &str, created_at: &str| {
        let off = november().times_off(&schedule("mon-fri", begin, end));
        off.billed_off(ResourceKind::Server, Some(instant(created_at))) / HOUR
    };
    let (full, half) = ("2026-09-01T08:00:00Z", "2026-09-01T08:30:00Z");
    // November begins and ends off. In between are 16 nights and four weekends.
    let hours =
        |begin: u64, nights: u64, weekends: u64, end: u64| begin + 16 * nights + 4 * weekends + end;
    let counted = whole_hours("08:00", "19:00", full);
    assert_eq!(counted, hours(32, 12, 60, 4));
    let counted = whole_hours("08:00", "19:00", half);
    assert_eq!(counted, hours(31, 12, 60, 4));
    let counted = whole_hours("08:30", "19:00", full);
    assert_eq!(counted, hours(32, 12, 60, 4));
    let counted = whole_hours("08:30", "19:00", half);
    assert_eq!(counted, hours(32, 13, 61, 4));
}

#[test]
fn where_either_state_will_do_a_stop_stands_until_the_next_start() {
    let one_sided = |begin: Option<&str>, end: Option<&str>| {
        let period = PeriodDefinition {
            begin: begin.map(str::to_owned),
            end: end.map(str::to_owned),
            ..PeriodDefinition::default()
        };
        let definition = Definition {
            timezone: "UTC".to_owned(),
            periods: vec![period],
            ..Definition::default()
        };
        let off = november().times_off(&Schedule::new(&definition).unwrap());
        off.off()
    };
    assert_eq!(one_sided(Some("08:00"), None), 0);
    assert_eq!(one_sided(None, Some("19:00")), 720 * HOUR);
}

fn offer(hourly: &str, monthly: &str, currency: Currency) -> Offer {
    let money = |text| Money::parse(text, currency).unwrap();
    Offer { orderable: true, deprecated: false, monthly: money(monthly), hourly: money(hourly) }
}

fn plan(slug: &str, disk_gib: u64, offer: Offer) -> MachinePlan {
    MachinePlan {
        slug: slug.to_owned(),
        vcpus: 1,
        memory_mib: 1024,
        disk_gib,
        architecture: None,
        network_storage: false,
        gpu: false,
        offers: BTreeMap::from([("fra1".to_owned(), offer)]),
    }
}

fn catalog() -> Catalog {
    let usd = |hourly, monthly| offer(hourly, monthly, Currency::Usd);
    let eur = |hourly, monthly| offer(hourly, monthly, Currency::Eur);
    [
        plan("g-2vcpu-8gb", 25, usd("0.09375", "63")),
        plan("s-1vcpu-1gb", 25, usd("0.00893", "6")),
        plan("cpx22", 80, eur("0.0312", "19.49")),
        plan("cx23", 80, eur("0.0088", "5.49")),
    ]
    .into_iter()
    .collect()
}

fn provider_of(kind: ResourceKind) -> Provider {
    if kind == ResourceKind::Server { Provider::Hetzner } else { Provider::DigitalOcean }
}

/// The prices of all plans of [`catalog`] that a provider sells.
fn price_list(provider: Provider, snapshot: Option<Money>) -> PriceList {
    let currency = provider.facts().currency;
    let mut list = PriceList::new(currency, instant("2026-11-01T00:00:00Z"), snapshot);
    for plan in catalog().plans() {
        let offer = plan.offers["fra1"].rate();
        if offer.hourly.currency() == currency {
            list.add(&plan.slug, None, offer);
        }
    }
    list
}

/// A resource, and what else is known about it.
struct Case {
    resource: Resource,
    month: Month,
    schedule: Option<Schedule>,
    policy: Policy,
    autoscaled: bool,
    accepts_new_prices: bool,
    barred: Option<&'static str>,
    own: OwnPrices,
    snapshot_price: Option<Money>,
}

impl Case {
    fn of(id: &str, size: Size) -> Self {
        Self {
            resource: Resource {
                region: "fra1".to_owned(),
                name: "one".to_owned(),
                size,
                facts: MachineFacts {
                    created_at: Some(instant("2026-07-01T00:00:00Z")),
                    ..MachineFacts::default()
                },
                ..machine(&id.parse().unwrap(), Power::Running)
            },
            month: november(),
            schedule: Some(schedule("mon-fri", "08:00", "19:00")),
            policy: Policy::default(),
            autoscaled: false,
            accepts_new_prices: false,
            barred: None,
            own: OwnPrices::default(),
            snapshot_price: None,
        }
    }

    fn machine(id: &str, plan: &str, disk_gib: u64) -> Self {
        let size = MachineSize { plan: plan.to_owned(), disk_gib, ..MachineSize::default() };
        Self::of(id, Size::Machine(size))
    }

    fn pool(count: u32, autoscale: Option<AutoscaleBounds>) -> Self {
        let size = NodePoolSize {
            plan: "g-2vcpu-8gb".to_owned(),
            count,
            autoscale,
            present: count,
            ready: count,
            labels: "{}".to_owned(),
            taints: "[]".to_owned(),
        };
        let mut case = Self::of("node-pool/c1/p1", Size::NodePool(size));
        case.resource.cluster = Some(Cluster { name: "staging".to_owned(), tags: BTreeSet::new() });
        case
    }

    fn database(engine: &str, nodes: u32) -> Self {
        let size = DatabaseSize {
            engine: engine.to_owned(),
            plan: "db-s-4vcpu-8gb".to_owned(),
            nodes,
            storage_mib: None,
        };
        let mut case = Self::of("database/9cc10173", Size::Database(size));
        for (size, price) in
            [("2 x db-s-4vcpu-8gb", "240"), ("db-s-4vcpu-8gb", "120"), ("2 x db-s-1vcpu-2gb", "60")]
        {
            case.own.database_month.insert(size.to_owned(), Price::parse(price).unwrap());
        }
        case
    }

    fn provider(&self) -> Provider {
        provider_of(self.resource.kind())
    }

    fn row(&self) -> Row {
        let mut report = self.report();
        report.resources.remove(0)
    }

    fn report(&self) -> Report {
        let mut collector = Collector::new(self.month);
        self.add(&mut collector);
        collector.report(None, None)
    }

    fn add(&self, collector: &mut Collector) {
        let reference = format!("main/{}", self.resource.id).parse().unwrap();
        let month = self.schedule.as_ref();
        let catalog = catalog();
        let off = month.map(|schedule| self.month.times_off(schedule));
        let list = price_list(self.provider(), self.snapshot_price);
        let prices = Prices { provider: self.provider(), list: Some(&list), own: &self.own };
        collector.add(
            &reference,
            Candidate {
                resource: &self.resource,
                schedule: None,
                off: off.as_ref(),
                barred: self.barred,
                policy: &self.policy,
                autoscaled: self.autoscaled,
                accepts_new_prices: self.accepts_new_prices,
                catalog: &catalog,
                smallest_database_plan: Some("db-s-1vcpu-2gb"),
                prices,
            },
        );
    }
}

/// What a resource costs and what its best method saves.
fn figures(row: &Row) -> (Option<f64>, Option<f64>) {
    (row.monthly.map(amount), row.saved.map(amount))
}

/// Each method as a table shows it: what it leads to, what it saves, and why. Hibernation has tests
/// of its own.
fn shown(row: &Row) -> Vec<(String, Option<f64>, Option<&str>)> {
    let named = |method: &MethodSaving| {
        let what = match &method.to {
            Some(to) => format!("{} to {to}", method.method),
            None => method.method.to_string(),
        };
        assert!(method.fits || method.saved.is_none());
        assert!(method.remedy.is_none() || !method.fits);
        what
    };
    let methods = row.methods.iter();
    methods
        .filter(|method| method.method != StopMethod::Hibernate)
        .map(|method| (named(method), method.saved.map(amount), method.why.as_deref()))
        .collect()
}

const FULL: (&str, Option<f64>, Option<&str>) =
    ("power-off", Some(0.0), Some("billed in full while off"));

#[track_caller]
fn check(case: &Case, expected: &[(&str, Option<f64>, Option<&str>)]) -> Row {
    let row = case.row();
    let shown = shown(&row);
    let shown: Vec<_> =
        shown.iter().map(|(what, saved, why)| (what.as_str(), *saved, *why)).collect();
    assert_eq!(shown, expected);
    row
}

#[test]
fn a_resized_droplet_is_billed_for_its_dearest_672_hours() {
    let case = Case::machine("droplet/1", "g-2vcpu-8gb", 25);
    // 231 hours on; of the 489 off, 441 are billed: 672 x 0.09375 - 231 x 0.09375 - 441 x 0.00893.
    let expected = [("resize to s-1vcpu-1gb", Some(37.41), None), FULL];
    let row = check(&case, &expected);
    assert_eq!(figures(&row), (Some(63.0), Some(37.41)));
    assert_eq!(row.best, Some(StopMethod::Resize));
    assert_eq!(row.off_hours, Some(489.0));
}

#[test]
fn what_is_off_for_less_than_the_hours_above_672_saves_nothing() {
    let mut case = Case::machine("droplet/1", "g-2vcpu-8gb", 25);
    // Off on Sundays, of which there are five, the first from noon on.
    case.schedule = Some(schedule("mon-sat", "00:00", "24:00"));
    case.month = Month::Calendar(Period {
        from: instant("2026-11-01T12:00:00Z"),
        until: instant("2026-12-01T00:00:00Z"),
    });
    let off = case.month.times_off(case.schedule.as_ref().unwrap());
    assert_eq!(off.off(), (12 + 4 * 24) * HOUR);
    // 708 - 108 = 600 hours on: the 36 above 672 are billed at neither plan.
    let row = case.row();
    assert_eq!(figures(&row).1, Some(6.11));
    // Hibernating it saves nothing either: an hour is too short for that.
    case = with_snapshots(case, "0.06", Currency::Usd);
    case.schedule = Some(schedule("sun-sat", "01:00", "24:00"));
    // 679 hours on.
    let because = "off too little: a month's hours above 672 are not billed anyway";
    let row = check(&case, &[FULL, ("resize to s-1vcpu-1gb", Some(0.0), Some(because))]);
    assert_eq!((row.best, figures(&row).1), (None, Some(0.0)));
}

#[test]
fn a_rescaled_server_loses_an_hour_of_each_time_off() {
    let case = Case::machine("server/1", "cpx22", 80);
    // Of 489 hours off 468 are billed as off: 19.49 - 252 x 0.0312 - 468 x 0.0088.
    let row = check(&case, &[("rescale to cx23", Some(7.51), None), FULL]);
    assert_eq!((figures(&row).0, row.currency), (Some(19.49), Some("EUR")));
    let mut short = case;
    short.schedule = Some(schedule("sun-sat", "01:00", "24:00"));
    // By the hour it would be 22.46: more than the month.
    let because = "off too little: a month's hours above 672 are not billed anyway";
    let row = check(&short, &[FULL, ("rescale to cx23", Some(0.0), Some(because))]);
    assert_eq!(row.best, None);
}

#[test]
fn what_a_server_with_an_old_price_saves_is_unknown() {
    let mut case = Case::machine("server/1", "cpx22", 80);
    case.resource.facts.created_at = Some(instant("2026-01-30T23:55:00Z"));
    let refusal =
        "it was created before 2026-06-15 and may have an old price, which a move ends for good";
    let row = check(&case, &[FULL, ("rescale", None, Some(refusal))]);
    assert_eq!(figures(&row), (None, Some(0.0)));
    let why = "it was created before 2026-06-15: its own price is not in the API";
    assert_eq!(row.why.as_deref(), Some(why));
    assert!(row.methods[1].remedy.unwrap().contains("invoice"));
    case.accepts_new_prices = true;
    let why = "its own price is not in the API; of the list's price it would save 7.49 EUR";
    let row = check(&case, &[FULL, ("rescale to cx23", None, Some(why))]);
    assert_eq!((row.best, row.saved), (None, None));
}

#[test]
fn what_does_not_fit_has_its_reason() {
    let case = Case::machine("droplet/1", "g-2vcpu-8gb", 26);
    let why = "its disk of 26 GB is larger than that of every cheaper plan in fra1";
    check(&case, &[FULL, ("resize", None, Some(why))]);
    let case = Case::machine("droplet/1", "gone", 26);
    let why = "its plan gone is no longer listed, so that it could not come back";
    let row = check(&case, &[FULL, ("resize", None, Some(why))]);
    assert_eq!(figures(&row), (None, Some(0.0)));
    let why = "its provider lists no price of gone in fra1";
    assert_eq!(row.why.as_deref(), Some(why));
}

#[test]
fn a_plan_that_is_asked_for_is_the_one_that_is_counted() {
    let mut case = Case::machine("droplet/1", "g-2vcpu-8gb", 25);
    case.policy.resize_to = Some("s-1vcpu-2gb".to_owned());
    let why = "unknown plan `s-1vcpu-2gb`; did you mean `s-1vcpu-1gb`?";
    check(&case, &[FULL, ("resize", None, Some(why))]);
}

#[test]
fn a_pool_at_zero_saves_the_hours_of_its_nodes_below_the_cap() {
    // 3 x 0.09375 x (672 - 231).
    let case = Case::pool(3, None);
    let row = check(&case, &[("zero-nodes", Some(124.03), None)]);
    assert_eq!(figures(&row).0, Some(189.0));
    assert_eq!(row.size, "3 x g-2vcpu-8gb");
    let bounds = AutoscaleBounds { min: 1, max: 5 };
    let why = "estimate: takes the autoscaled nodes as they are now";
    check(&Case::pool(3, Some(bounds)), &[("zero-nodes", Some(124.03), Some(why))]);
    let none = [("zero-nodes", None, Some("it has no nodes now"))];
    check(&Case::pool(0, None), &none);
}

#[test]
fn a_database_saves_the_difference_of_its_plans_for_the_billed_hours_off() {
    let case = Case::database("pg", 2);
    // 441 of 672 hours.
    let refused = "DigitalOcean may refuse to make a plan smaller";
    let row = check(
        &case,
        &[
            ("smallest-plan to 2 x db-s-1vcpu-2gb", Some(118.13), Some(refused)),
            ("standbys to 1 x db-s-4vcpu-8gb", Some(78.75), None),
        ],
    );
    assert_eq!(figures(&row), (Some(240.0), Some(118.13)));
    let report = case.report();
    let [total] = &report.totals.totals[..] else {
        panic!("{:?}", report.totals);
    };
    assert_eq!((total.saved.map(amount), amount(total.uncertain)), (Some(118.13), 118.13));
}

#[test]
fn databases_without_prices_or_standbys_say_so() {
    let mut case = Case::database("pg", 1);
    case.own = OwnPrices::default();
    let unknown = "price not in the API: [prices.database-month] \"db-s-4vcpu-8gb\"";
    let row = check(
        &case,
        &[
            ("smallest-plan to 1 x db-s-1vcpu-2gb", None, Some(unknown)),
            ("standbys", None, Some("it is no larger than that already")),
        ],
    );
    assert_eq!((row.monthly, row.saved, row.currency), (None, None, None));
    case = Case::database("mongodb", 3);
    case.policy.stop_nodes = Some(2);
    let missing = "price not in the API: [prices.database-month] \"3 x db-s-4vcpu-8gb\"";
    check(
        &case,
        &[
            ("smallest-plan to 2 x db-s-1vcpu-2gb", None, Some(missing)),
            ("standbys", None, Some("nodes of mongodb cannot be taken away")),
        ],
    );
    let mut small = Case::database("pg", 2);
    small.policy.stop_size = Some("db-s-4vcpu-8gb".to_owned());
    let row = small.row();
    let smallest = row.methods.iter().find(|one| !one.fits).unwrap();
    let why = smallest.why.as_deref();
    assert_eq!(why, Some("it is no larger than that already"));
}

#[test]
fn what_follows_no_schedule_says_what_to_give() {
    let mut case = Case::machine("droplet/1", "g-2vcpu-8gb", 25);
    case.schedule = None;
    let why = "it follows no schedule: --hours says what to assume";
    let row = check(&case, &[FULL, ("resize to s-1vcpu-1gb", None, Some(why))]);
    assert_eq!((row.saved, row.off_hours), (None, None));
}

#[test]
fn each_currency_has_its_own_sum_and_what_is_never_stopped_has_no_part_in_it() {
    let mut collector = Collector::new(november());
    for case in [
        Case::machine("droplet/1", "g-2vcpu-8gb", 25),
        Case::machine("droplet/2", "g-2vcpu-8gb", 25),
        Case::machine("server/1", "cpx22", 80),
        Case::database("mongodb", 1),
    ] {
        case.add(&mut collector);
    }
    let mut protected = Case::machine("droplet/3", "g-2vcpu-8gb", 25);
    protected.barred = Some("protected by `name:one`");
    protected.add(&mut collector);
    let report = collector.report(Some("2026-11".to_owned()), None);
    let totals: Vec<_> = report
        .totals
        .totals
        .iter()
        .map(|total| {
            let [full, saved] = [total.full, total.saved].map(|sum| amount(sum.unwrap()));
            (total.currency, full, saved, total.known)
        })
        .collect();
    // Added up exactly, then rounded: 37.40544 each.
    assert_eq!(totals, [("EUR", 19.49, 7.51, 1), ("USD", 246.0, 74.81, 2)]);
    assert_eq!((report.totals.known, report.totals.of), (3, 4));
    let last = report.resources.iter().find(|row| row.methods.is_empty());
    let last = last.unwrap();
    assert_eq!(figures(last), (Some(63.0), None));
    assert_eq!(last.off_hours, None);
    assert!((report.month_hours - 720.0).abs() < 1e-9);
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["totals"][0]["saved"], 7.51);
    assert_eq!(json["resources"][0]["methods"][0]["method"], "resize");
}

/// Returns what is said about hibernating a machine.
fn hibernated_of(case: &Case) -> MethodSaving {
    let methods = case.row().methods.into_iter();
    let mut of = methods.filter(|method| method.method == StopMethod::Hibernate);
    of.next().unwrap()
}

fn with_snapshots(case: Case, price: &str, currency: Currency) -> Case {
    Case { snapshot_price: Some(Money::parse(price, currency).unwrap()), ..case }
}

#[test]
fn a_hibernated_machine_is_paid_while_it_is_there_and_its_snapshots_always() {
    let droplet = Case::machine("droplet/1", "g-2vcpu-8gb", 25);
    let case = with_snapshots(droplet, "0.06", Currency::Usd);
    let said = hibernated_of(&case);
    // On 21 days from 07:33:45 to 20:00, and two snapshots of 25 GB:
    // 63 - 261.1875 x 0.09375 - 3.
    assert_eq!(said.saved.map(amount), Some(35.51));
    assert_eq!(said.why.as_deref(), Some("at least, after `offhours rehearse`"));
    assert_eq!(case.row().best, Some(StopMethod::Resize));

    let server = Case::machine("server/1", "cpx22", 80);
    let case = with_snapshots(server, "0.0143", Currency::Eur);
    // On 21 days 15 begun hours, and two snapshots of 80 GB: 19.49 - 315 x 0.0312 - 2.29.
    assert_eq!(hibernated_of(&case).saved.map(amount), Some(7.37));
}

#[test]
fn what_hibernating_saves_is_unknown_without_hours_or_a_price() {
    let case = Case::machine("droplet/1", "g-2vcpu-8gb", 25);
    let said = hibernated_of(&case);
    assert_eq!((said.fits, said.saved), (true, None));
    assert_eq!(said.why.as_deref(), Some("what its snapshots cost is not known"));
    let without = Case { schedule: None, ..with_snapshots(case, "0.06", Currency::Usd) };
    assert!(hibernated_of(&without).why.unwrap().contains("--hours"));
}

#[test]
fn what_cannot_be_ordered_again_or_would_grow_is_not_hibernated() {
    let grows = Case::machine("droplet/1", "g-2vcpu-8gb", 20);
    let said = hibernated_of(&with_snapshots(grows, "0.06", Currency::Usd));
    assert!(!said.fits && said.remedy.is_some(), "{said:?}");
    let autoscaled = Case { autoscaled: true, ..Case::machine("droplet/1", "g-2vcpu-8gb", 25) };
    let said = hibernated_of(&with_snapshots(autoscaled, "0.06", Currency::Usd));
    assert!(said.why.unwrap().contains("autoscale"));
}
