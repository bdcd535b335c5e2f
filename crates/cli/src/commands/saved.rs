//! `offhours saved`: how long resources were off, and what that saved where it can be known.

use std::str::FromStr;

use domain::ScheduleName;
use jiff::Timestamp;
use report::{
    history::Period,
    money::{Grouping, SavedCollector, SavedReport, SavedRow, hours_in_words},
    past::{Walk, unseen_since},
};
use store::{HistoryQuery, InForce, Store};

use crate::{
    Exit, candidates,
    connection::{Session, all_records, readable},
    context::Context,
    names::{Names, check_schedule, history::report_unreadable, owner_tag},
    output::{self, Format},
    print::{self, Cell, Column, Screen},
    time::{Month, When},
    time_range,
};

/// Show how long resources were off, and what that saved.
///
/// The hours come from Offhours' own history, which is kept for 90 days. They count from the end of
/// a stop until the next start began, or until now. Time that cannot be known is shown as unclear,
/// and what observe mode would have stopped as such; neither is counted.
///
/// The money is what the bill of each calendar month, in UTC, is lower by so far, spread over the
/// hours off. Prices are those that the service reads once a day; `[prices]` in the configuration
/// overrides them and gives those of databases, which no API has. What is unknown is named, and
/// left out of the sums.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours saved
  offhours saved --month 2026-10 --by schedule
  offhours saved --since 7d --by day
  offhours saved --by tag:team -o csv
  offhours saved web-1 --since 90d
  offhours saved --month 2026-10 -o json | jq .totals")]
pub struct Args {
    /// Only these resources, by reference or by name.
    #[arg(value_name = "RESOURCE", add = candidates::resources())]
    resources: Vec<String>,
    /// Only stops under this schedule.
    #[arg(long, value_name = "NAME", add = candidates::schedules())]
    schedule: Option<ScheduleName>,
    /// Start of the time range: 36h, 30d, monday, 2026-10-01, "2026-10-01 09:00" or an instant, in
    /// the zone of the output (see --tz).
    #[arg(long, value_name = "WHEN", default_value = "30d")]
    since: When,
    /// End of the time range; a day is included [default: now].
    #[arg(long, value_name = "WHEN")]
    until: Option<When>,
    /// Calendar month, in UTC, as the time range: 2026-10, october.
    #[arg(long, value_name = "MONTH", conflicts_with_all = ["since", "until"])]
    month: Option<Month>,
    /// What each row is about: resource, schedule, day, week, tag:KEY for the values of a tag
    /// KEY:VALUE or a label KEY=VALUE, or owner for those of the `owner_tag`.
    #[arg(long, value_name = "WHAT", default_value = "resource")]
    by: By,
}

/// What each row is about.
#[derive(Debug, Clone, PartialEq, Eq)]
enum By {
    Grouping(Grouping),
    /// By the values of the tag that the configuration names.
    Owner,
}

impl FromStr for By {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Self::Grouping(match (text, text.split_once(':')) {
            ("owner", _) => return Ok(Self::Owner),
            ("resource", _) => Grouping::Resource,
            ("schedule", _) => Grouping::Schedule,
            ("day", _) => Grouping::Day,
            ("week", _) => Grouping::Week,
            (_, Some(("tag", key))) if !key.is_empty() => Grouping::Tag(key.to_owned()),
            _ => return Err("expected resource, schedule, day, week, owner or tag:KEY".to_owned()),
        }))
    }
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    let Session { store, now, .. } = context.connection.open().await?;
    let in_force = store.in_force().await?;
    let screen = context.screen(&*in_force.configuration, now);
    let report = report(args, &screen, &store, &in_force).await?;
    match context.format {
        Format::Json => output::print_json(&report)?,
        Format::Csv => screen.rows(&report.rows, "")?,
        Format::Table => output::print(&render(&report, &screen))?,
    }
    report_unreadable(report.unreadable);
    Ok(Exit::Done)
}

/// Reports how long resources were off, by a store's history, and what that saved.
async fn report(
    args: &Args,
    screen: &Screen,
    store: &Store,
    in_force: &InForce,
) -> anyhow::Result<SavedReport> {
    let now = screen.now;
    let period = match args.month {
        Some(month) => time_range::of_month(month, screen)?,
        None => time_range::between(&args.since, args.until.as_ref(), screen)?,
    };
    let configuration = &*in_force.configuration;
    let names = Names { in_force: in_force.clone(), records: all_records(store).await?, now };
    let prices = readable(store.prices().await?).into_iter();
    let prices = prices.map(|(account, prices)| (account, prices.list)).collect();
    let mut selection = names.in_history(&args.resources);
    let mut collector = SavedCollector::new(period, now, configuration, &prices);
    collector.only = args.schedule.as_ref();
    collector.unseen_since = unseen_since(&readable(store.account_states().await?), now);
    collector.by = match &args.by {
        By::Grouping(grouping) => grouping.clone(),
        By::Owner => Grouping::Tag(owner_tag(configuration)?.to_owned()),
    };
    collector.zone = screen.zone.clone();
    let mut walk = Walk::new(&names.records, configuration, |reference, entries, record| {
        collector.count(reference, entries, record);
    });
    // Stops that began before the period, or ended after it, matter as well.
    let all = HistoryQuery { since: Timestamp::MIN, until: Timestamp::MAX, schedule: None };
    let unreadable = selection.read(store, all, |entry| Ok(walk.pass(entry)?)).await?;
    output::remarks(&selection.unknown());
    walk.finish(|record| selection.includes_record(record))?;
    let report = collector.report(unreadable);
    if report.rows.is_empty() {
        check_schedule(&args.schedule, configuration)?;
    }
    Ok(report)
}

fn render(report: &SavedReport, screen: &Screen) -> String {
    let Period { from, until } = report.period;
    let days = report.period.length().as_secs_f64() / 86_400.0;
    let (from, until) = (screen.date(from), screen.date(until));
    let heading = screen.style.wrap(&format!("From {from} until {until}, {days:.1} days:\n"));
    if report.rows.is_empty() {
        return format!("{heading}Nothing found that follows a schedule or was stopped.\n");
    }
    let total = screen.style.wrap(&format!("{}\n", report.in_words()));
    format!("{heading}{}{total}", screen.table(&report.rows))
}

impl print::Row for SavedRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::Fixed("Name", |row, _| Cell::new(row.group.as_deref().unwrap_or("(none)"))),
        Column::Wide("Resources", |row, _| {
            Cell::any(row.resource.is_none().then_some(row.resources))
        }),
        Column::Number("Off", |row, _| Cell::new(hours_in_words(row.off_hours))),
        Column::Number("Unclear", |row, _| Cell::new(some_length(row.unclear_hours))),
        Column::Number("Would have", |row, _| Cell::new(some_length(row.would_have_hours))),
        Column::Number("Without stops", |row, _| {
            Cell::new(row.full.map_or("?".to_owned(), |full| full.to_string()))
        }),
        Column::Number("Saved", |row, _| match (row.saved, row.unknown) {
            (Some(saved), _) => Cell::new(saved),
            (None, 0) => Cell::default(),
            (None, _) => Cell::new("?"),
        }),
        Column::Text("Why", |row, _| {
            let why = row.why.join("; ");
            Cell::new(match row.unknown {
                0 => why,
                _ if row.resource.is_some() => why,
                unknown => format!("{} of {} unknown: {why}", unknown, row.resources),
            })
        }),
    ];
}

/// The length, or an empty text if there is none.
fn some_length(hours: f64) -> String {
    if hours > 0.0 { hours_in_words(hours) } else { String::new() }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use domain::{
        hibernation::{Hibernation, KeptSnapshot, Mark},
        history::HistoryEntry,
        record::Record,
        resource::{Power, SavedState},
        stop_method::StopMethod,
    };

    use jiff::tz::TimeZone;

    use super::*;
    use crate::{exit::UsageError, fixtures::*};

    const CONFIGURATION: &str = r#"
timezone = "UTC"
accounts.hz-eu = { provider = "hetzner", token = "env:T" }
accounts.do-main = { provider = "digitalocean", token = "env:U" }
prices.node-hour.s-2vcpu-4gb = 0.5
[schedules.office]
periods = [{ weekdays = "mon-fri", begin = "08:00", end = "19:00" }]
"#;

    const POOL: &str = "do-main/node-pool/c1/p1";

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    /// A server and a pool that were stopped on Monday evening, the pool for three days; a server
    /// to which nothing was done; and one that is gone and was only observed.
    async fn world() -> Store {
        let store = store_with(CONFIGURATION).await;
        let web = [stop("15 19:00", "15 19:02"), start("16 08:00", "16 08:02")];
        remember(&store, web_record(Power::Running, "16 08:02"), &web).await;
        let nodes = |count| SavedState::NodePool { count, autoscale: None };
        let pool = [
            stop("15 19:00", "15 20:00").of(POOL).sized(nodes(2), nodes(0)),
            start("18 20:00", "18 20:05").of(POOL),
        ];
        let record = Record {
            name: "workers".to_owned(),
            plan: Some("s-2vcpu-4gb".to_owned()),
            ..record(POOL, Power::Running, "18 20:05")
        };
        let gone = HistoryEntry {
            name: "gone".to_owned(),
            ..stop("18 19:00", "18 19:00")
                .of("hz-eu/server/9")
                .ending(domain::record::Ending::WouldHave)
        };
        let entries: Vec<_> = pool.into_iter().chain([gone]).collect();
        remember(&store, record, &entries).await;
        let idle = Record {
            name: "idle".to_owned(),
            ..crate::fixtures::record("hz-eu/server/2", Power::Running, "15 00:00")
        };
        store.save(idle).await.unwrap();
        store
    }

    /// The report of a command line at noon on 30 June.
    async fn reported(line: &str) -> anyhow::Result<SavedReport> {
        let words = std::iter::once("saved").chain(line.split_whitespace());
        let args = Line::parse_from(words).args;
        of_store(&args, &world().await, at("30 12:00")).await
    }

    async fn of_store(args: &Args, store: &Store, now: Timestamp) -> anyhow::Result<SavedReport> {
        let in_force = store.in_force().await.unwrap();
        report(args, &Screen::plain(&TimeZone::UTC, now), store, &in_force).await
    }

    fn shown(report: &SavedReport) -> String {
        render(report, &Screen::plain(&TimeZone::UTC, at("30 12:00")))
    }

    #[tokio::test]
    async fn each_resource_is_shown_with_its_hours_and_its_money_or_why_there_is_none() {
        let report = reported("--month 2026-06").await.unwrap();
        insta::assert_snapshot!(shown(&report), @"
        From Mon 2026-06-01 00:00 UTC until Tue 2026-06-30 12:00 UTC, 29.5 days:
        Name        Off  Would have  Without stops      Saved  Why
        gone      0.0 h      13.0 h              ?   0.00 EUR  it is not recorded any more
        idle      0.0 h                          ?   0.00 EUR  the prices of its account have not been read yet
        web      13.0 h                          ?   0.00 EUR  billed in full while off; the prices of its account have not been read yet
        workers  72.0 h                 672.00 USD  36.00 USD
        Off for 85.0 h in total. 0.00 EUR saved and 36.00 USD of 672.00 USD saved, known for 4 of 4 resources.
        ");
    }

    #[tokio::test]
    async fn a_schedule_is_shown_in_each_currency_with_how_many_are_unknown() {
        let report = reported("--month 2026-06 --by schedule").await.unwrap();
        insta::assert_snapshot!(shown(&report), @"
        From Mon 2026-06-01 00:00 UTC until Tue 2026-06-30 12:00 UTC, 29.5 days:
        Name    Resources     Off  Would have  Without stops      Saved  Why
        (none)  1           0.0 h                          ?   0.00 EUR  it is not recorded any more
        office  3          13.0 h      13.0 h              ?   0.00 EUR  billed in full while off; the prices of its account have not been read yet
        office  1          72.0 h                 672.00 USD  36.00 USD
        Off for 85.0 h in total. 0.00 EUR saved and 36.00 USD of 672.00 USD saved, known for 4 of 4 resources.
        ");
    }

    #[tokio::test]
    async fn what_is_unknown_of_one_month_is_not_zero_because_another_had_no_stop() {
        let store = store_with(CONFIGURATION).await;
        let orders = "do-main/database/9cc1";
        let stopped = stop("01 00:00", "01 00:09").of(orders);
        let record = record(orders, Power::Stopped, "01 00:09");
        remember(&store, record, &[stopped]).await;
        let args = Line::parse_from(["saved", "--since", "2026-05-20"]).args;
        let report = of_store(&args, &store, at("02 12:00")).await.unwrap();
        assert_eq!((report.rows[0].saved, report.rows[0].unknown), (None, 1), "{report:?}");
        assert!(report.in_words().ends_with("What that saved is known for 0 of 1 resource."));
    }

    #[tokio::test]
    async fn what_began_before_the_period_or_ended_after_it_counts_within_it() {
        let line = "workers --since 2026-06-17 --until 2026-06-17";
        let report = reported(line).await.unwrap();
        assert_eq!(report.rows.len(), 1);
        assert!((report.rows[0].off_hours - 24.0).abs() < 1e-9);
    }

    #[tokio::test]
    async fn targets_and_schedules_narrow_it_down_or_are_refused_as_unknown() {
        let names = |report: SavedReport| {
            let name = |row: &SavedRow| row.group.clone().unwrap_or_default();
            report.rows.iter().map(name).collect::<Vec<_>>()
        };
        let of = async |line: &str| names(reported(line).await.unwrap());
        assert_eq!(of("").await, ["gone", "idle", "web", "workers"]);
        assert_eq!(of("gone").await, ["gone"]);
        assert_eq!(of("hz-eu/server/2 web").await, ["idle", "web"]);
        assert_eq!(of("wokers").await, [""; 0]);
        assert_eq!(of("--schedule office").await, ["gone", "idle", "web", "workers"]);
        for (line, expected) in [
            ("--schedule ofice", "did you mean `office`?"),
            ("--month 2026-07", "is in the future: pass an earlier --month"),
        ] {
            let error = reported(line).await.unwrap_err();
            assert!(error.is::<UsageError>(), "{error:?}");
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[tokio::test]
    async fn what_an_account_has_not_shown_lately_is_unclear() {
        let store = store_with(CONFIGURATION).await;
        let stopped = [stop("15 19:00", "15 20:00")];
        remember(&store, web_record(Power::Stopped, "15 19:59"), &stopped).await;
        let args = Line::parse_from(["saved", "--since", "2026-06-15"]).args;
        let hours = async |listed_at: &str| {
            let state = store::AccountState {
                listed_at: Some(at(listed_at)),
                ..store::AccountState::unknown("hz-eu".parse().unwrap())
            };
            store.save_account_state(&state).await.unwrap();
            let now = at("16 20:00");
            let report = of_store(&args, &store, now).await.unwrap();
            let row = &report.rows[0];
            format!("{} {}", row.off_hours, row.unclear_hours)
        };
        assert_eq!(hours("16 02:00").await, "6 18");
        assert_eq!(hours("16 19:45").await, "24 0");
    }

    /// A server that was hibernated for one night of the month: once recreated, it is billed by the
    /// hour, and the monthly limit no longer helps.
    #[tokio::test]
    async fn what_cost_more_than_it_saved_is_said_in_words() {
        let store = store_with(&format!(
            "{CONFIGURATION}[prices.machine-hour]\ncpx22 = 0.0312\n[prices.machine-month]\n\
             cpx22 = 19.49\n[prices.snapshot-gb-month]\nhetzner = 0.0143\n"
        ))
        .await;
        let night = [
            HistoryEntry { method: Some(StopMethod::Hibernate), ..stop("15 19:00", "15 19:30") },
            start("16 08:00", "16 08:02"),
        ];
        let web = web_record(Power::Running, "16 08:02");
        let machine = web.reference.id.clone();
        let snapshot = KeptSnapshot {
            centi_gb: Some(2_000),
            ..KeptSnapshot::of(machine.clone(), Mark::default(), at("15 19:10"))
        };
        let web = Record {
            plan: Some("cpx22".to_owned()),
            hibernation: Some(Box::new(Hibernation {
                snapshots: vec![snapshot],
                ..Hibernation::of(machine)
            })),
            ..web
        };
        remember(&store, web, &night).await;
        let args = Line::parse_from(["saved", "--month", "2026-06"]).args;
        let report = of_store(&args, &store, at("30 12:00")).await.unwrap();
        let [total] = &report.totals.totals[..] else {
            panic!("{:?}", report.totals);
        };
        assert!(total.saved.unwrap().is_negative());
        insta::assert_snapshot!(shown(&report), @"
        From Mon 2026-06-01 00:00 UTC until Tue 2026-06-30 12:00 UTC, 29.5 days:
        Name     Off  Without stops      Saved  Why
        web   12.5 h      19.49 EUR  -2.37 EUR  estimate: takes each snapshot to be as large as the largest
        Off for 12.5 h in total. 2.37 EUR more spent than without stops, known for 1 of 1 resource.
        ");
    }

    #[test]
    fn rows_are_about_what_is_asked_for() {
        for (text, expected) in [
            ("resource", Grouping::Resource),
            ("schedule", Grouping::Schedule),
            ("day", Grouping::Day),
            ("week", Grouping::Week),
            ("tag:team", Grouping::Tag("team".to_owned())),
        ] {
            assert_eq!(text.parse::<By>().unwrap(), By::Grouping(expected));
        }
        assert_eq!("owner".parse::<By>().unwrap(), By::Owner);
        for text in ["month", "tag", "tag:"] {
            assert!(text.parse::<By>().unwrap_err().contains("tag:KEY"), "{text}");
        }
    }

    #[test]
    fn a_month_excludes_other_periods() {
        let line = |words: &[&str]| Line::try_parse_from(words).is_ok();
        assert!(line(&["saved", "--month", "2026-06"]));
        assert!(!line(&["saved", "--month", "2026-06", "--since", "7d"]));
        assert!(line(&["saved", "--month", "June"]));
        assert!(!line(&["saved", "--month", "Juno"]));
    }
}
