//! Rows, groups and totals.

use super::*;
use crate::hours::{Collector, Grouping, Prices, Report};
use domain::history::HistoryEntry;

const WEB: &str = "hz-eu/server/1";
const POOL: &str = "do-main/node-pool/c/p";
const DATABASE: &str = "do-main/database/d";

fn nodes(count: u32) -> SavedState {
    SavedState::NodePool { count, autoscale: None }
}

/// A server, a pool and a database that were stopped from Monday to Thursday evening.
fn fleet(by: Grouping) -> Report {
    let schedules = schedules();
    let text = "currency = \"EUR\"\nnode-hour.s-1 = 1.0";
    let prices = Prices::parse(text).unwrap();
    let june = Period {
        from: "2026-06-01T00:00:00Z".parse().unwrap(),
        until: "2026-07-01T00:00:00Z".parse().unwrap(),
    };
    let mut collector = Collector::new(june, at("30 23:59"), &schedules);
    collector.prices = Some(&prices);
    let pool = Record { plan: Some("s-1".to_owned()), ..record(POOL, Power::Running, "18 19:00") };
    let both =
        |of: &str| [stop("15 19:00", "15 19:00").of(of), start("18 19:00", "18 19:05").of(of)];
    let [stopped, started] = both(POOL);
    let stopped = [stopped.sized(nodes(2), nodes(0)), started];
    collector.count(&reference(POOL), &stopped, Some(&pool));
    let running = record(WEB, Power::Running, "18 19:00");
    collector.count(&web(), &both(WEB), Some(&running));
    let database = record(DATABASE, Power::Running, "18 19:00");
    collector.count(&reference(DATABASE), &both(DATABASE), Some(&database));
    let idle = record("hz-eu/server/2", Power::Running, "01 00:00");
    collector.count(&reference("hz-eu/server/2"), &[], Some(&idle));
    collector.report(by, 2)
}

#[test]
fn each_resource_has_a_row_with_its_reason() {
    let report = fleet(Grouping::Resource);
    let line = |row: &crate::hours::Row| {
        let resource = row.resource.as_ref().unwrap();
        let reasons = row.reasons.join("; ");
        format!("{resource} {} {} {:?} {reasons}", row.stopped_hours, row.share, row.saved)
    };
    let lines: Vec<_> = report.rows.iter().map(line).collect();
    assert_eq!(
        lines,
        [
            "do-main/database/d 72 0.1 None history does not show both of its sizes",
            "do-main/node-pool/c/p 72 0.1 Some(48.0) ",
            "hz-eu/server/1 72 0.1 Some(0.0) billed in full while off",
            "hz-eu/server/2 0 0 Some(0.0) billed in full while off",
        ]
    );
    assert_eq!((report.total.figures, report.total.of), (3, 4));
    assert_eq!(report.total.saved, Some(48.0));
    assert!((report.total.stopped_hours - 216.0).abs() < 1e-9);
}

#[test]
fn what_was_before_a_resource_was_first_seen_is_in_no_share() {
    let schedules = schedules();
    let june = Period {
        from: "2026-06-01T00:00:00Z".parse().unwrap(),
        until: "2026-07-01T00:00:00Z".parse().unwrap(),
    };
    let mut collector = Collector::new(june, at("30 23:59"), &schedules);
    let seen = Record {
        first_seen_at: Some("2026-06-16T00:00:00Z".parse().unwrap()),
        ..record(WEB, Power::Running, "21 19:00")
    };
    let history = [stop("18 19:00", "18 19:00").of(WEB), start("21 19:00", "21 19:05").of(WEB)];
    collector.count(&web(), &history, Some(&seen));
    let report = collector.report(Grouping::Resource, 0);
    let row = &report.rows[0];
    assert_eq!(Some(row.since), seen.first_seen_at);
    assert!((row.stopped_hours - 72.0).abs() < 1e-9);
    assert!((row.share - 0.2).abs() < 1e-9, "{}", row.share);
}

#[test]
fn a_schedule_sums_up_its_resources_and_says_of_how_many_it_knows_the_money() {
    let report = fleet(Grouping::Schedule);
    let json = serde_json::to_string_pretty(&report).unwrap();
    insta::assert_snapshot!(json, @r#"
    {
      "from": "2026-06-01T00:00:00Z",
      "until": "2026-07-01T00:00:00Z",
      "by": "schedule",
      "currency": "EUR",
      "rows": [
        {
          "since": "2026-06-01T00:00:00Z",
          "schedule": "office",
          "resource": null,
          "name": null,
          "resources": 4,
          "stopped_hours": 216.0,
          "share": 0.075,
          "unclear_hours": 0.0,
          "would_have_hours": 0.0,
          "saved": 48.0,
          "figures": 3,
          "estimate": false,
          "reasons": [
            "billed in full while off",
            "history does not show both of its sizes"
          ]
        }
      ],
      "total": {
        "resources": 4,
        "stopped_hours": 216.0,
        "would_have_hours": 0.0,
        "saved": 48.0,
        "estimate": false,
        "figures": 3,
        "of": 4
      },
      "unreadable": 2
    }
    "#);
}

#[test]
fn what_is_gone_or_followed_no_schedule_is_not_listed_unless_it_was_stopped() {
    let schedules = schedules();
    let mut collector = Collector::new(period("15 00:00", "17 00:00"), at("17 12:00"), &schedules);
    let gone = Record {
        phase: Phase::Gone { since: at("10 00:00") },
        ..web_record(Power::Stopped, "09 00:00")
    };
    let early = [stop("08 19:00", "08 19:02"), start("09 08:00", "09 08:02")];
    collector.count(&web(), &early, Some(&gone));
    let unscheduled = Record { schedule: None, ..web_record(Power::Running, "15 00:00") };
    collector.count(&web(), &[], Some(&unscheduled));
    assert!(collector.report(Grouping::Resource, 0).rows.is_empty());
}

#[test]
fn hours_belong_to_the_schedule_that_was_followed_at_the_stop() {
    let schedules = schedules();
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
        let mut collector = Collector::new(week, at("17 12:00"), &schedules);
        collector.only = only.as_ref();
        collector.count(&web(), &entries, Some(&record));
        let rows = collector.report(Grouping::Schedule, 0).rows;
        let name = |row: &crate::hours::Row| row.schedule.as_ref().map(ToString::to_string);
        rows.iter().map(|row| (name(row), row.stopped_hours)).collect::<Vec<_>>()
    };
    let office = (Some("office".to_owned()), 12.0);
    assert_eq!(hours(None), [office.clone(), (None, 2.0)]);
    assert_eq!(hours(Some("office")), [office]);
    assert_eq!(hours(Some("never")), []);
}
