//! `offhours hours`: how long resources were stopped, and what that saved where it can be known.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use anyhow::bail;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser as _};
use domain::{
    AccountName, ResourceRef, ScheduleName,
    history::HistoryEntry,
    record::{INVENTORY_INTERVAL, Record},
};
use environment::file::{self, LONGEST_TEXT};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use report::hours::{Collector, Grouping, Period, Prices, Report, Row};
use store::{HistoryQuery, InForce, Store};

use super::Format;
use crate::{
    Exit, candidates,
    connection::{Session, all_records, readable},
    context::Context,
    exit::UsageError,
    names::{Names, check_schedule, history::report_unreadable},
    output,
    print::{self, Screen},
    table::{Cell, Column},
    time::{Month, When},
    time_range::RequestedRange,
};

/// The age beyond which an account's listing is too old for its records to speak for the present:
/// three inventories.
const TOO_OLD: SignedDuration = SignedDuration::from_secs(3 * INVENTORY_INTERVAL.as_secs());

/// Show how long resources were stopped, and what that saved.
///
/// The hours come from Offhours' own history, which is kept for 90 days. They count from the
/// instant at which the end of a stop was seen until the next start began, or until now if the
/// resource was stopped at the latest inventory. A database counts while it is on its small plan, a
/// node pool while it has no nodes.
///
/// If a person started a resource in between, the hours count until that was first seen; if that
/// instant is unknown, the time is "unclear" and is not counted. Time that a resource was off
/// before Offhours stopped it is not counted.
///
/// "Would have" is observe mode: the time from a stop that was only reported until the schedule, as
/// it is now, wants otherwise.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours hours
  offhours hours --month 2026-10 --by schedule
  offhours hours --schedule office-hours --since 2026-10-01 --until 2026-10-31
  offhours hours web-1 --since 90d
  offhours hours --month 2026-10 --prices prices.toml -o json | jq .total

Money: what is powered off is billed in full; a smaller plan, zero nodes or
hibernating save, less snapshots and begun hours (docs/stopping.md). `~` marks
an estimate. Give the prices yourself, since no API lists them all:

  currency = \"USD\"
  [node-hour]           # a pool's node, by its plan
  \"s-2vcpu-4gb\" = 0.03571
  [machine-hour]        # a Droplet or a server, by its plan
  \"g-2vcpu-8gb\" = 0.09375
  [machine-month]       # a server's most for a month, by its type
  \"cpx22\" = 19.49
  [snapshot-gb-month]   # a GB of a snapshot, by the provider
  hetzner = 0.0143
  [database-month]      # a cluster, by its plan and number of nodes
  \"db-s-1vcpu-2gb\" = 30.0
  \"2 x db-s-4vcpu-8gb\" = 240.0")]
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
    /// Calendar month, in UTC, as the time range.
    #[arg(long, value_name = "YYYY-MM", conflicts_with_all = ["since", "until"])]
    month: Option<Month>,
    /// How to group the rows.
    #[arg(long, default_value = "resource", value_parser = grouping())]
    by: Grouping,
    /// File with prices, in TOML.
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
}

/// Parses how rows are grouped.
fn grouping() -> impl clap::builder::TypedValueParser<Value = Grouping> {
    let schedule = PossibleValue::new("schedule").help("A row for each schedule");
    let resource = PossibleValue::new("resource");
    let resource = resource.help("A row for each resource under each schedule");
    PossibleValuesParser::new([schedule, resource]).map(|word| match word.as_str() {
        "schedule" => Grouping::Schedule,
        _ => Grouping::Resource,
    })
}

/// Reads the prices from a file.
pub(super) fn prices(path: &Path) -> anyhow::Result<Prices> {
    let file = path.display();
    let text = file::read_text(path, LONGEST_TEXT)
        .map_err(|error| UsageError(format!("cannot read the prices in {file}: {error}")))?;
    Ok(Prices::parse(&text).map_err(|error| UsageError(format!("{file}: {error}")))?)
}

/// Shows the hours of the period.
pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    // Errors in the prices are reported before anything is read.
    let prices = args.prices.as_deref().map(prices).transpose()?;
    let Session { store, now, .. } = context.connection.open().await?;
    let in_force = store.in_force().await?;
    let zone = context.zone(&*in_force.configuration, args.schedule.as_ref());
    let query = args.query(&zone, prices.as_ref(), now)?;
    let report = query.report(&store, &in_force, now).await?;
    let screen = context.screen(&*in_force.configuration, args.schedule.as_ref(), now);
    match context.format {
        Format::Json => output::print_json(&report)?,
        Format::Csv => screen.rows(&report.rows, "")?,
        Format::Table => output::print(&render(&report, &screen))?,
    }
    report_unreadable(report.unreadable);
    Ok(Exit::Done)
}

impl Args {
    fn query<'a>(
        &'a self,
        zone: &TimeZone,
        prices: Option<&'a Prices>,
        now: Timestamp,
    ) -> anyhow::Result<HoursQuery<'a>> {
        let asked = match self.month {
            Some(month) => RequestedRange::Month(month),
            None => RequestedRange::Between(&self.since, self.until.as_ref()),
        };
        Ok(HoursQuery {
            resources: &self.resources,
            schedule: self.schedule.as_ref(),
            period: asked.period(zone, now)?,
            by: self.by,
            prices,
        })
    }
}

/// What to count.
struct HoursQuery<'a> {
    /// Only these resources, by reference or by name; empty for all.
    resources: &'a [String],
    /// Only stops under this schedule.
    schedule: Option<&'a ScheduleName>,
    period: Period,
    by: Grouping,
    prices: Option<&'a Prices>,
}

impl HoursQuery<'_> {
    /// Reports how long resources were stopped, by a store's history, and what that saved.
    async fn report(
        &self,
        store: &Store,
        in_force: &InForce,
        now: Timestamp,
    ) -> anyhow::Result<Report> {
        let configuration = &in_force.configuration;
        let names = Names::new(in_force.clone(), all_records(store).await?, now);
        let mut selection = names.in_history(self.resources);
        let mut collector = Collector::new(self.period, now, &configuration.schedules);
        collector.prices = self.prices;
        collector.only = self.schedule;
        collector.unseen_since = unseen_since(store, now).await?;
        let mut walk = Walk::new(collector, &names.records);
        // Stops that began before the period, or ended after it, matter as well.
        let all = HistoryQuery { since: Timestamp::MIN, until: Timestamp::MAX, schedule: None };
        let unreadable = selection.read(store, all, |entry| walk.pass(entry)).await?;
        output::remarks(&selection.unknown());
        walk.finish_one()?;
        for record in names.records.iter().filter(|record| selection.includes_record(record)) {
            if !walk.counted.contains(&record.reference) {
                walk.collector.count(&record.reference, &[], Some(record));
            }
        }
        let report = walk.collector.report(self.by, unreadable);
        if let (true, Some(name)) = (report.rows.is_empty(), self.schedule) {
            check_schedule(name, configuration)?;
        }
        Ok(report)
    }
}

/// Accounts whose last complete listing is too old to speak for the present, with its instant.
async fn unseen_since(
    store: &Store,
    now: Timestamp,
) -> anyhow::Result<BTreeMap<AccountName, Timestamp>> {
    let states = readable(store.account_states().await?).into_iter();
    let listed = states.filter_map(|(account, state)| Some((account, state.listed_at?)));
    let old = listed.filter(|(_, at)| now.duration_since(*at) > TOO_OLD);
    Ok(old.collect())
}

/// Collects the history of one resource at a time, and keeps no more than that.
struct Walk<'a> {
    collector: Collector<'a>,
    records: BTreeMap<&'a ResourceRef, &'a Record>,
    entries: Vec<HistoryEntry>,
    counted: BTreeSet<ResourceRef>,
}

impl<'a> Walk<'a> {
    fn new(collector: Collector<'a>, records: &'a [Record]) -> Self {
        let by_reference = records.iter().map(|record| (&record.reference, record));
        Self {
            collector,
            records: by_reference.collect(),
            entries: Vec::new(),
            counted: BTreeSet::new(),
        }
    }

    fn pass(&mut self, entry: HistoryEntry) -> anyhow::Result<()> {
        let last = self.entries.last();
        if last.is_some_and(|last| last.reference != entry.reference) {
            self.finish_one()?;
        }
        self.entries.push(entry);
        Ok(())
    }

    fn finish_one(&mut self) -> anyhow::Result<()> {
        let entries = std::mem::take(&mut self.entries);
        let Some(reference) = entries.last().map(|entry| entry.reference.clone()) else {
            return Ok(());
        };
        let record = self.records.get(&reference).copied();
        self.collector.count(&reference, &entries, record);
        if !self.counted.insert(reference.clone()) {
            bail!("the history of {reference} could not be read in one piece");
        }
        Ok(())
    }
}

fn render(report: &Report, screen: &Screen) -> String {
    let Period { from, until } = report.period;
    let days = report.period.length().as_secs_f64() / 86_400.0;
    let (from, until) = (screen.date(from), screen.date(until));
    let heading = format!("From {from} until {until}, {days:.1} days:\n");
    if report.rows.is_empty() {
        return format!("{heading}Nothing follows a schedule, and nothing was stopped.\n");
    }
    let total = screen.style.wrap(&format!("In total {}", total(report)));
    format!("{heading}{}{}\n", screen.table(&report.rows), total.trim_end())
}

impl print::Row for Row {
    const COLUMNS: &'static [Column] = &[
        Column::wide("Known since"),
        Column::of("Schedule"),
        Column::wide("Resource"),
        Column::of("Name"),
        Column::wide("Resources"),
        Column::number("Stopped"),
        Column::number("Share"),
        Column::number("Unclear"),
        Column::number("Would have"),
        Column::number("Saved"),
        Column::text("Why"),
    ];

    fn cells(&self, screen: &Screen) -> Vec<Cell> {
        let schedule = self.schedule.as_ref().map(ScheduleName::as_str);
        let resource = self.resource.as_ref();
        let saved = self.saved.map(|amount| {
            let money = money(amount, self.estimate, None);
            if amount < 0.0 { format!("cost {money} more") } else { money }
        });
        vec![
            Cell::new(self.since.to_zoned(screen.zone.clone()).strftime("%Y-%m-%d %H:%M")),
            Cell::new(schedule.unwrap_or("(none)")),
            Cell::any(resource.map(|one| format!("{}/{}", one.account, one.kind()))),
            Cell::any(self.name.as_ref()),
            Cell::any(resource.is_none().then_some(self.resources)),
            Cell::new(hours(self.stopped_hours)),
            Cell::new(format!("{:.1} %", self.share * 100.0)),
            Cell::new(some_hours(self.unclear_hours)),
            Cell::new(some_hours(self.would_have_hours)),
            Cell::any(saved),
            Cell::new(why(self)),
        ]
    }
}

/// The reasons; for a schedule, with the number of resources that have a figure unless all have
/// one.
fn why(row: &Row) -> String {
    let reasons = row.reasons.join("; ");
    if row.resource.is_some() || row.figures == row.resources {
        return reasons;
    }
    format!("{} of {}: {reasons}", row.figures, row.resources)
}

/// The totals. The money covers only resources with figures, and says how many those are.
fn total(report: &Report) -> String {
    let total = &report.total;
    let stopped = hours(total.stopped_hours);
    let would_have = match total.would_have_hours {
        none if none <= 0.0 => String::new(),
        some => format!(", {} would have been", hours(some)),
    };
    let saved = match total.saved {
        Some(amount) => {
            let (figures, of) = (total.figures, total.of);
            let money = money(amount, total.estimate, report.currency.as_deref());
            let what = if amount < 0.0 {
                format!("it cost {money} more than it saved")
            } else {
                format!("{money} saved")
            };
            format!("{what}, known for {figures} of {of}")
        }
        None => "the amount saved is not known".to_owned(),
    };
    format!("{stopped} stopped{would_have}; {saved}.")
}

/// Such as `~ 24.00 USD` for an estimate; a negative amount is shown without its sign.
fn money(amount: f64, estimate: bool, currency: Option<&str>) -> String {
    let sign = if estimate { "~ " } else { "" };
    let currency = currency.unwrap_or_default();
    let amount = amount.abs();
    let text = format!("{sign}{amount:.2} {currency}");
    text.trim_end().to_owned()
}

fn hours(hours: f64) -> String {
    format!("{hours:.2} h")
}

/// The hours, or an empty text if there are none.
fn some_hours(count: f64) -> String {
    if count > 0.0 { hours(count) } else { String::new() }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use domain::{
        hibernation::{Hibernation, KeptSnapshot, Mark},
        resource::{Power, SavedState},
        stop_method::StopMethod,
    };

    use super::*;
    use crate::{exit::UsageError, fixtures::*};

    const CONFIGURATION: &str = r#"
timezone = "UTC"
accounts.hz-eu = { provider = "hetzner", token = "env:T" }
accounts.do-main = { provider = "digitalocean", token = "env:U" }
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
    async fn reported(line: &str, prices: Option<&Prices>) -> anyhow::Result<Report> {
        let words = std::iter::once("hours").chain(line.split_whitespace());
        let args = Line::parse_from(words).args;
        let store = world().await;
        let in_force = store.in_force().await.unwrap();
        let now = at("30 12:00");
        let query = args.query(&TimeZone::UTC, prices, now)?;
        query.report(&store, &in_force, now).await
    }

    fn prices() -> Prices {
        let text = "currency = \"USD\"\nnode-hour.s-2vcpu-4gb = 0.5";
        Prices::parse(text).unwrap()
    }

    fn shown(report: &Report) -> String {
        render(report, &Screen::plain(&TimeZone::UTC, at("30 12:00")))
    }

    #[tokio::test]
    async fn each_resource_is_shown_with_its_hours_and_its_money_or_why_there_is_none() {
        let report = reported("--month 2026-06", Some(&prices())).await.unwrap();
        insta::assert_snapshot!(shown(&report), @"
        From Mon 2026-06-01 00:00 UTC until Tue 2026-06-30 12:00 UTC, 29.5 days:
        Known since       Schedule  Resource           Name     Stopped   Share  Would have    Saved  Why
        2026-06-01 00:00  office    hz-eu/server       gone      0.00 h   0.0 %     13.00 h     0.00  billed in full while off
        2026-06-01 00:00  office    hz-eu/server       idle      0.00 h   0.0 %                 0.00  billed in full while off
        2026-06-01 00:00  office    hz-eu/server       web      12.97 h   1.8 %                 0.00  billed in full while off
        2026-06-01 00:00  office    do-main/node-pool  workers  72.00 h  10.2 %              ~ 24.00  estimate: takes the rest of each month as running
        In total 84.97 h stopped, 13.00 h would have been; ~ 24.00 USD saved, known for 4 of 4.
        ");
        let report = reported("--month 2026-06", None).await.unwrap();
        let pool = &report.rows[3];
        assert_eq!(pool.saved, None);
        assert_eq!(pool.reasons, ["no prices given: --prices FILE"]);
    }

    #[tokio::test]
    async fn a_schedule_is_shown_with_the_share_of_all_its_resources() {
        let line = "--month 2026-06 --by schedule";
        let report = reported(line, Some(&prices())).await.unwrap();
        insta::assert_snapshot!(shown(&report), @"
        From Mon 2026-06-01 00:00 UTC until Tue 2026-06-30 12:00 UTC, 29.5 days:
        Known since       Schedule  Resources  Stopped  Share  Would have    Saved  Why
        2026-06-01 00:00  office    4          84.97 h  3.0 %     13.00 h  ~ 24.00  billed in full while off; estimate: takes the rest of each month as running
        In total 84.97 h stopped, 13.00 h would have been; ~ 24.00 USD saved, known for 4 of 4.
        ");
    }

    #[tokio::test]
    async fn what_began_before_the_period_or_ended_after_it_counts_within_it() {
        let line = "workers --since 2026-06-17 --until 2026-06-17";
        let report = reported(line, None).await.unwrap();
        assert_eq!(report.rows.len(), 1);
        assert!((report.rows[0].stopped_hours - 24.0).abs() < 1e-9);
        assert!((report.rows[0].share - 1.0).abs() < 1e-9);
    }

    #[tokio::test]
    async fn targets_and_schedules_narrow_it_down_or_are_refused_as_unknown() {
        let names = |report: Report| {
            let name = |row: &Row| row.name.clone().unwrap_or_default();
            report.rows.iter().map(name).collect::<Vec<_>>()
        };
        let of = async |line: &str| names(reported(line, None).await.unwrap());
        assert_eq!(of("").await, ["gone", "idle", "web", "workers"]);
        assert_eq!(of("gone").await, ["gone"]);
        assert_eq!(of("hz-eu/server/2 web").await, ["idle", "web"]);
        assert_eq!(of("wokers").await, [""; 0]);
        assert_eq!(of("--schedule office").await, ["gone", "idle", "web", "workers"]);
        for (line, expected) in [
            ("--schedule ofice", "did you mean `office`?"),
            ("--month 2026-07", "is in the future"),
        ] {
            let error = reported(line, None).await.unwrap_err();
            assert!(error.is::<UsageError>(), "{error:?}");
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[tokio::test]
    async fn what_an_account_has_not_shown_lately_is_unclear() {
        let store = store_with(CONFIGURATION).await;
        let stopped = [stop("15 19:00", "15 20:00")];
        remember(&store, web_record(Power::Stopped, "15 19:59"), &stopped).await;
        let args = Line::parse_from(["hours", "--since", "2026-06-15"]).args;
        let in_force = store.in_force().await.unwrap();
        let hours = async |listed_at: &str| {
            let state = store::AccountState {
                listed_at: Some(at(listed_at)),
                ..store::AccountState::unknown("hz-eu".parse().unwrap())
            };
            store.save_account_state(&state).await.unwrap();
            let now = at("16 20:00");
            let query = args.query(&TimeZone::UTC, None, now).unwrap();
            let report = query.report(&store, &in_force, now).await;
            let report = report.unwrap();
            let row = &report.rows[0];
            format!("{} {}", row.stopped_hours, row.unclear_hours)
        };
        assert_eq!(hours("16 02:00").await, "6 18");
        assert_eq!(hours("16 19:45").await, "24 0");
    }

    /// A server that was hibernated for one night of the month: once recreated, it is billed by the
    /// hour, and the monthly limit no longer helps.
    #[tokio::test]
    async fn what_cost_more_than_it_saved_is_said_in_words() {
        let store = store_with(CONFIGURATION).await;
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
        let prices = Prices::parse(
            "currency = \"EUR\"\nmachine-hour.cpx22 = 0.0312\nmachine-month.cpx22 = 19.49\n\
             snapshot-gb-month.hetzner = 0.0143",
        );
        let prices = prices.unwrap();
        let args = Line::parse_from(["hours", "--month", "2026-06"]).args;
        let in_force = store.in_force().await.unwrap();
        let now = at("30 12:00");
        let query = args.query(&TimeZone::UTC, Some(&prices), now).unwrap();
        let report = query.report(&store, &in_force, now).await.unwrap();
        assert!(report.total.saved.unwrap() < 0.0);
        let shown = shown(&report);
        assert!(shown.contains("cost ~ 2.88 EUR more"), "{shown}");
        let in_total = "; it cost ~ 2.88 EUR more than it saved, known for 1 of 1.";
        assert!(shown.contains(in_total), "{shown}");
    }

    #[test]
    fn a_month_excludes_other_periods() {
        let line = |words: &[&str]| Line::try_parse_from(words).is_ok();
        assert!(line(&["hours", "--month", "2026-06"]));
        assert!(!line(&["hours", "--month", "2026-06", "--since", "7d"]));
        assert!(!line(&["hours", "--month", "June"]));
    }

    #[test]
    fn a_history_in_pieces_is_refused() {
        let schedules = report::hours::Schedules::new();
        let period = Period { from: at("15 00:00"), until: at("16 00:00") };
        let mut walk = Walk::new(Collector::new(period, at("17 00:00"), &schedules), &[]);
        walk.pass(stop("15 01:00", "15 01:01")).unwrap();
        walk.pass(stop("15 01:00", "15 01:01").of(POOL)).unwrap();
        walk.pass(stop("15 02:00", "15 02:01")).unwrap();
        let error = walk.finish_one().unwrap_err();
        assert!(
            error.to_string().contains("hz-eu/server/1 could not be read in one piece"),
            "{error}"
        );
    }
}
