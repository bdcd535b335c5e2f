//! The report: rows, groups and totals.

use domain::{
    AccountName,
    configuration::{
        Account, CloudAccount, Configuration, Floor, Generation, Mode, Schedules, Settings,
    },
    history::HistoryEntry,
    prices::{Price, PriceList},
    record::{Cause, Phase, Record},
    resource::SavedState,
    schedule::Desired,
};
use testing::history::*;

use super::*;

const WEB: &str = "hz-eu/server/1";
const POOL: &str = "do-main/node-pool/c/p";
const DATABASE: &str = "do-main/database/d";

fn nodes(count: u32) -> SavedState {
    SavedState::NodePool { count, autoscale: None }
}

fn period(from: &str, until: &str) -> Period {
    Period { from: at(from), until: at(until) }
}

fn june() -> Period {
    Period { from: instant("2026-06-01T00:00:00Z"), until: instant("2026-07-01T00:00:00Z") }
}

/// Two accounts, and the price of a pool's node.
fn configuration() -> Configuration {
    let schedules: Schedules = toml::from_str(
        r#"
[office.schedule]
timezone = "UTC"
periods = [{ weekdays = "mon-fri", begin = "08:00", end = "19:00" }]
"#,
    )
    .unwrap();
    let account = |provider| {
        Account::from(CloudAccount {
            provider,
            was: None,
            token: "env:T".parse().unwrap(),
            read_token: None,
            datacenters: Vec::new(),
            mode: Mode::Act,
            url: None,
            accept_new_prices: false,
            ssh_key: None,
        })
    };
    let mut settings = Settings::default();
    settings.prices.node_hour.insert("s-1".to_owned(), Price::parse("1").unwrap());
    Configuration {
        generation: Generation::default(),
        settings,
        accounts: [
            ("do-main".parse().unwrap(), account(Provider::DigitalOcean)),
            ("hz-eu".parse().unwrap(), account(Provider::Hetzner)),
        ]
        .into(),
        schedules,
        floor: Floor::default(),
    }
}

/// A server, a pool and a database that were stopped from Monday to Thursday evening, and a server
/// that was not.
fn fleet(by: Grouping) -> SavedReport {
    let configuration = configuration();
    let prices = BTreeMap::<AccountName, PriceList>::new();
    let mut collector = SavedCollector::new(june(), june().until, &configuration, &prices);
    collector.by = by;
    let pool = Record {
        plan: Some("s-1".to_owned()),
        tags: ["team:web".to_owned()].into(),
        created_at: Some(instant("2026-01-01T00:00:00Z")),
        ..record(POOL, Power::Running, "18 19:00")
    };
    let both =
        |of: &str| [stop("15 19:00", "15 19:00").of(of), start("18 19:00", "18 19:05").of(of)];
    let [stopped, started] = both(POOL);
    let stopped = [stopped.sized(nodes(2), nodes(0)), started];
    collector.count(&reference(POOL), &stopped, Some(&pool));
    let running =
        Record { tags: ["team=data".to_owned()].into(), ..record(WEB, Power::Running, "18 19:00") };
    collector.count(&web(), &both(WEB), Some(&running));
    let database = record(DATABASE, Power::Running, "18 19:00");
    collector.count(&reference(DATABASE), &both(DATABASE), Some(&database));
    let idle = record("hz-eu/server/2", Power::Running, "01 00:00");
    collector.count(&reference("hz-eu/server/2"), &[], Some(&idle));
    collector.report(2)
}

/// Each row as its group, its hours off, its amounts and its reasons.
fn lines(report: &SavedReport) -> Vec<String> {
    let line = |row: &SavedRow| {
        let group = match &row.resource {
            Some(resource) => resource.to_string(),
            None => row.group.clone().unwrap_or_default(),
        };
        let amount = |amount: Option<Money>| amount.map_or("?".to_owned(), |one| one.to_string());
        let (full, saved, why) = (amount(row.full), amount(row.saved), row.why.join("; "));
        let (off, unknown) = (row.off_hours, row.unknown);
        let line = format!("{group}: {off} h, {saved} of {full}, {unknown} unknown: {why}");
        line.trim_end().to_owned()
    };
    report.rows.iter().map(line).collect()
}

#[test]
fn each_resource_has_a_row_with_its_reason() {
    let report = fleet(Grouping::Resource);
    insta::assert_snapshot!(lines(&report).join("\n"), @"
    do-main/database/d: 72 h, ? of ?, 1 unknown: its size is not known
    do-main/node-pool/c/p: 72 h, 48.00 USD of 1344.00 USD, 0 unknown:
    hz-eu/server/1: 72 h, 0.00 EUR of ?, 0 unknown: billed in full while off; the prices of its account have not been read yet
    hz-eu/server/2: 0 h, 0.00 EUR of ?, 0 unknown: the prices of its account have not been read yet
    ");
    assert_eq!((report.totals.known, report.totals.of), (3, 4));
    let saved: Vec<_> =
        report.totals.totals.iter().map(|one| one.saved.unwrap().to_string()).collect();
    assert_eq!(saved, ["0.00 EUR", "48.00 USD"]);
    assert!((report.off_hours - 216.0).abs() < 1e-9);
    assert_eq!(report.unreadable, 2);
}

/// A pool at zero of whose stop there is no history: what it costs is known, and not for how long it
/// was stopped.
#[test]
fn a_currency_in_which_nothing_is_known_has_no_sum_of_zero() {
    let configuration = configuration();
    let prices = BTreeMap::<AccountName, PriceList>::new();
    let mut collector = SavedCollector::new(june(), june().until, &configuration, &prices);
    let pool = Record {
        plan: Some("s-1".to_owned()),
        saved: Some(nodes(2)),
        handled: Some(handled(at("15 19:00"), Desired::Stopped, "office")),
        created_at: Some(instant("2026-01-01T00:00:00Z")),
        ..record(POOL, Power::Stopped, "15 19:00")
    };
    collector.count(&reference(POOL), &[], Some(&pool));
    let report = collector.report(0);
    assert_eq!(
        lines(&report),
        [
            "do-main/node-pool/c/p: 0 h, ? of 1344.00 USD, 1 unknown: whether it was stopped is unclear"
        ]
    );
    let total = serde_json::to_value(&report).unwrap()["totals"][0].clone();
    assert_eq!((&total["full"], &total["saved"]), (&1344.0.into(), &serde_json::Value::Null));
    let words = "Off for 0.0 h in total. What that saved is known for 0 of 1 resource.";
    assert_eq!(report.in_words(), words);
}

#[test]
fn a_group_sums_up_its_resources_and_names_how_many_are_unknown() {
    insta::assert_snapshot!(lines(&fleet(Grouping::Schedule)).join("\n"), @"
    office: 72 h, 0.00 EUR of ?, 0 unknown: billed in full while off; the prices of its account have not been read yet
    office: 144 h, 48.00 USD of 1344.00 USD, 1 unknown: its size is not known
    ");
    insta::assert_snapshot!(lines(&fleet(Grouping::Tag("team".to_owned()))).join("\n"), @"
    : 0 h, 0.00 EUR of ?, 0 unknown: the prices of its account have not been read yet
    : 72 h, ? of ?, 1 unknown: its size is not known
    data: 72 h, 0.00 EUR of ?, 0 unknown: billed in full while off; the prices of its account have not been read yet
    web: 72 h, 48.00 USD of 1344.00 USD, 0 unknown:
    ");
    let json = serde_json::to_value(fleet(Grouping::Schedule)).unwrap();
    assert_eq!(json["by"], "schedule");
    assert_eq!(json["rows"][0]["currency"], "EUR");
    assert_eq!(json["totals"][1]["saved"], 48.0);
}

#[test]
fn days_and_weeks_share_what_a_month_saved_by_their_hours_off() {
    let off = |row: &&SavedRow| row.off_hours > 0.0 && row.currency == Some("USD");
    let of = |by| {
        let report = fleet(by);
        let rows = report.rows.iter().filter(off);
        let rows = rows.map(|row| {
            let saved = row.saved.map_or_else(String::new, |saved| saved.to_string());
            format!("{} {} {saved}", row.group.clone().unwrap_or_default(), row.off_hours)
        });
        rows.collect::<Vec<_>>()
    };
    // The pool and the database were off.
    assert_eq!(
        of(Grouping::Day),
        [
            "2026-06-15 10 3.33 USD",
            "2026-06-16 48 16.00 USD",
            "2026-06-17 48 16.00 USD",
            "2026-06-18 38 12.67 USD",
        ]
    );
    assert_eq!(of(Grouping::Week), ["2026-06-15 144 48.00 USD"]);
}

#[test]
fn what_is_gone_or_followed_no_schedule_is_not_listed_unless_it_was_stopped() {
    let (configuration, prices) = (configuration(), BTreeMap::new());
    let within = period("15 00:00", "17 00:00");
    let mut collector = SavedCollector::new(within, at("17 12:00"), &configuration, &prices);
    let gone = Record {
        phase: Phase::Gone { since: at("10 00:00") },
        ..web_record(Power::Stopped, "09 00:00")
    };
    let early = [stop("08 19:00", "08 19:02"), start("09 08:00", "09 08:02")];
    collector.count(&web(), &early, Some(&gone));
    let unscheduled = Record { schedule: None, ..web_record(Power::Running, "15 00:00") };
    collector.count(&web(), &[], Some(&unscheduled));
    assert!(collector.report(0).rows.is_empty());
}

#[test]
fn hours_belong_to_the_schedule_that_was_followed_at_the_stop() {
    let (configuration, prices) = (configuration(), BTreeMap::new());
    let manual = HistoryEntry {
        schedule: None,
        cause: Cause::Manual { by: "ada".to_owned() },
        ..stop("16 19:00", "16 19:00")
    };
    let entries = [
        stop("15 19:00", "15 20:00"),
        start("16 08:00", "16 08:02"),
        manual,
        start("16 21:00", "16 21:05"),
    ];
    let record = web_record(Power::Running, "16 21:05");
    let week = period("15 00:00", "17 00:00");
    let hours = |only: Option<&str>| {
        let only = only.map(|name| name.parse().unwrap());
        let mut collector = SavedCollector::new(week, at("17 12:00"), &configuration, &prices);
        collector.only = only.as_ref();
        collector.by = Grouping::Schedule;
        collector.count(&web(), &entries, Some(&record));
        let rows = collector.report(0).rows;
        rows.into_iter().map(|row| (row.group, row.off_hours)).collect::<Vec<_>>()
    };
    let office = (Some("office".to_owned()), 12.0);
    assert_eq!(hours(None), [(None, 2.0), office.clone()]);
    assert_eq!(hours(Some("office")), [office]);
    assert_eq!(hours(Some("never")), []);
}
