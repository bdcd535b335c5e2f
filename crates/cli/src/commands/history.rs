//! `offhours history`: what was done, newest first.

use std::{cmp::Reverse, collections::BTreeMap};

use domain::{
    ScheduleName,
    history::HistoryEntry,
    record::{Cause, Direction, Ending},
};
use jiff::Timestamp;
use report::{history::Period, joined, time::length};
use store::{HistoryQuery, InForce, Store};

use crate::{
    Exit, candidates,
    connection::{Session, all_records},
    context::Context,
    names::{Names, check_schedule, history::report_unreadable},
    output,
    print::{self, Cell, Column},
    time_range::{self, TimeRange},
};

/// Show every finished stop and start, newest first.
///
/// For each one: when it ended, what asked for it, how long it took, how it ended, what was saved
/// before a stop, and what was restored by a start. History is kept for 90 days, also for resources
/// that are gone: name these by their reference, or by the name that they had. For a hibernated
/// machine whose record was deleted, -o json also shows what it is recreated from.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours history
  offhours history web-1 --since 30d
  offhours history --schedule office-hours --since 2026-10-01 --until 2026-10-31
  offhours history -n 20
  offhours history -o json | jq '.[] | select(.ending == \"refused\") | .reason'

Endings: seen (done, and confirmed), would have (observe mode: nothing was
sent), refused, stuck (did not finish, and needs attention), superseded (a
person did the opposite meanwhile), released (opted out meanwhile), reversed
(the opposite was desired meanwhile), resized (a person's size was kept), gone
(deleted at the provider), forgotten (by `offhours forget`).")]
pub struct Args {
    /// Only these resources: references, names, or patterns with `*` and `?`.
    #[arg(value_name = "RESOURCE", add = candidates::resources())]
    resources: Vec<String>,
    /// Only stops and starts under this schedule.
    #[arg(long, value_name = "NAME", add = candidates::schedules())]
    schedule: Option<ScheduleName>,
    #[command(flatten)]
    range: TimeRange,
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    let Session { store, now, .. } = context.connection.open().await?;
    let in_force = store.in_force().await?;
    let screen = context.screen(&*in_force.configuration, now);
    let period = args.range.period(&screen)?;
    let found = find(args, &store, &in_force, period, now).await?;
    let period = time_range::shown(period, &screen.zone);
    screen.rows(&found.entries, &format!("No stop or start found {period}."))?;
    output::remarks(&found.unknown);
    if found.left_out > 0 {
        output::remark(&format!("and {} older\n", found.left_out));
    }
    report_unreadable(found.unreadable);
    Ok(Exit::Done)
}

#[derive(Debug, Default)]
struct SearchResult {
    /// Newest first.
    entries: Vec<HistoryEntry>,
    /// The number of entries beyond the limit.
    left_out: usize,
    unreadable: usize,
    unknown: Vec<String>,
}

async fn find(
    args: &Args,
    store: &Store,
    in_force: &InForce,
    period: Period,
    now: Timestamp,
) -> anyhow::Result<SearchResult> {
    let records = match args.resources.as_slice() {
        [] => Vec::new(),
        _ => all_records(store).await?,
    };
    let names = Names { in_force: in_force.clone(), records, now };
    let mut selection = names.in_history(&args.resources);
    let Period { from: since, until } = args.range.searched(period);
    let finished = HistoryQuery { since, until, schedule: args.schedule.clone() };
    let limit = args.range.limit();
    let (mut newest, mut all) = (BTreeMap::new(), 0);
    let unreadable = selection
        .read(store, finished, |entry| {
            let when = Reverse((entry.finished_at, entry.transition_key()));
            newest.insert((when, entry.reference.clone()), entry);
            all += 1;
            if newest.len() > limit {
                newest.pop_last();
            }
            Ok(())
        })
        .await?;
    // History may have what is configured no more.
    if all == 0 {
        check_schedule(&args.schedule, &in_force.configuration)?;
    }
    let entries: Vec<_> = newest.into_values().collect();
    let unknown = selection.unknown();
    Ok(SearchResult { left_out: all - entries.len(), entries, unreadable, unknown })
}

impl print::Row for HistoryEntry {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::Time("Ended", |row, screen| Cell::new(screen.date(row.finished_at))),
        Column::Wide("Resource", |row, _| {
            Cell::new(format!("{}/{}", row.reference.account, row.reference.kind()))
        }),
        Column::Fixed("Name", |row, _| Cell::new(&row.name)),
        Column::Fixed("What", |row, _| {
            let forced = if row.forced { ", forced" } else { "" };
            let stops = row.direction == Direction::Stop;
            let method = row.method.filter(|method| stops && method.is_chosen());
            let method = method.map_or_else(String::new, |method| format!(" by {method}"));
            Cell::new(format!("{}{method}{forced}", row.direction))
        }),
        Column::Wide("Cause", |row, _| Cell::new(cause(row))),
        Column::Number("Took", |row, _| {
            Cell::new(length(row.finished_at.duration_since(row.claimed_at)))
        }),
        Column::Text("Ending", |row, _| {
            let ended = [row.ended(), size(row)];
            Cell::new(joined(ended.into_iter().filter(|words| !words.is_empty()), "; "))
        }),
    ];
}

/// What asked for the transition, and under which schedule.
fn cause(entry: &HistoryEntry) -> String {
    match (&entry.cause, &entry.schedule) {
        (cause, None) => cause.to_string(),
        (Cause::Schedule, Some(schedule)) => schedule.to_string(),
        (cause, Some(schedule)) => format!("{cause}, {schedule}"),
    }
}

/// What was saved or put back, and what was seen if that differs.
fn size(entry: &HistoryEntry) -> String {
    let starts = entry.direction == Direction::Start;
    let is_given_up = matches!(entry.ending, Ending::Resized | Ending::Gone | Ending::Forgotten);
    let done = match (starts, entry.ending == Ending::Seen) {
        (true, true) => "restored",
        (true, false) if is_given_up => "not restored:",
        (true | false, _) => "saved",
    };
    let saved = entry.saved.as_ref().map(ToString::to_string);
    let both = entry.saved.as_ref().zip(entry.seen.as_ref());
    let lost = both.filter(|_| entry.direction == Direction::Start);
    let lost = lost.and_then(|(saved, seen)| saved.lost_storage_in(seen));
    let seen = entry.seen.as_ref().map(ToString::to_string);
    let seen = seen.filter(|seen| saved.as_ref() != Some(seen));
    let seen = lost.map(|lost| lost.to_string()).or(seen);
    let saved = saved.map(|saved| format!("{done} {saved}"));
    let described = entry.hibernation.as_ref();
    let described = described.map(|_| "how to recreate it: -o json".to_owned());
    let seen = seen.map(|seen| format!("seen {seen}"));
    joined(saved.into_iter().chain(seen).chain(described), ", ")
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use domain::{
        resource::{Power, SavedState},
        stop_method::StopMethod,
    };
    use jiff::tz::TimeZone;
    use report::time::shared_zone;

    use super::*;
    use crate::{exit::UsageError, fixtures::*, print::Screen};

    const CONFIGURATION: &str = r#"
timezone = "Europe/Berlin"
accounts.hz-eu = { provider = "hetzner", token = "env:T" }
accounts.do-main = { provider = "digitalocean", token = "env:U" }
[schedules.office]
periods = [{ weekdays = "mon-fri", begin = "08:00", end = "19:00" }]
"#;

    const DATABASE: &str = "do-main/database/9cc10173";

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn database(plan: &str, nodes: u32) -> SavedState {
        SavedState::Database { plan: plan.to_owned(), nodes, storage_mib: None }
    }

    /// A server stopped and started, a database that is gone, and a refused start.
    fn done() -> Vec<HistoryEntry> {
        let saved = database("db-s-4vcpu-8gb", 2);
        let stopped =
            stop("15 17:00", "15 17:08").of(DATABASE).sized(saved, database("db-s-1vcpu-2gb", 2));
        let refused = start("16 06:00", "16 06:00").of(DATABASE).refused("no capacity");
        let manual = HistoryEntry {
            cause: Cause::Manual { by: "ada".to_owned() },
            schedule: None,
            forced: true,
            ..stop("16 12:00", "16 12:02")
        };
        let named =
            |name: &str, entry: HistoryEntry| HistoryEntry { name: name.to_owned(), ..entry };
        vec![
            stop("15 17:00", "15 17:01"),
            start("16 06:00", "16 06:01"),
            manual,
            named("orders", stopped),
            named("orders", refused),
        ]
    }

    fn drawn(entries: &[HistoryEntry], zone: &TimeZone) -> String {
        Screen::plain(zone, at("17 12:00")).table(entries)
    }

    async fn world() -> Store {
        let store = store_with(CONFIGURATION).await;
        remember(&store, web_record(Power::Stopped, "16 12:02"), &done()).await;
        store
    }

    /// The result of a command line at noon on Wednesday.
    async fn found(line: &str) -> anyhow::Result<SearchResult> {
        let words = std::iter::once("history").chain(line.split_whitespace());
        let args = Line::parse_from(words).args;
        let store = world().await;
        let in_force = store.in_force().await.unwrap();
        let zone = shared_zone(&in_force.configuration).unwrap();
        let now = at("17 12:00");
        let period = args.range.period(&Screen::plain(zone, now))?;
        find(&args, &store, &in_force, period, now).await
    }

    #[track_caller]
    fn lines(found: &SearchResult) -> Vec<String> {
        let line = |e: &HistoryEntry| format!("{} {} {}", e.finished_at, e.name, e.direction);
        found.entries.iter().map(line).collect()
    }

    #[tokio::test]
    async fn what_was_done_is_shown_newest_first_in_the_zone_of_all_schedules() {
        let store = world().await;
        let in_force = store.in_force().await.unwrap();
        let found = found("--since 2026-06-15").await.unwrap();
        let table = drawn(&found.entries, shared_zone(&in_force.configuration).unwrap());
        insta::assert_snapshot!(table, @"
        Ended                      Resource          Name    What          Cause   Took  Ending
        Tue 2026-06-16 14:02 CEST  hz-eu/server      web     stop, forced  ada       2m  seen
        Tue 2026-06-16 08:01 CEST  hz-eu/server      web     start         office    1m  seen
        Tue 2026-06-16 08:00 CEST  do-main/database  orders  start         office    0s  refused: no capacity
        Mon 2026-06-15 19:08 CEST  do-main/database  orders  stop          office    8m  seen; saved 2 x db-s-4vcpu-8gb, seen 2 x db-s-1vcpu-2gb
        Mon 2026-06-15 19:01 CEST  hz-eu/server      web     stop          office    1m  seen
        ");
    }

    #[test]
    fn a_machine_that_was_only_powered_off_was_not_stopped_by_hibernate() {
        let shown = |method| {
            let entry = HistoryEntry { method: Some(method), ..stop("15 17:00", "15 17:01") };
            drawn(&[entry], &TimeZone::UTC)
        };
        let hibernated = shown(StopMethod::Hibernate);
        assert!(hibernated.contains("stop by hibernate"), "{hibernated}");
        let powered_off = shown(StopMethod::Graceful);
        assert!(!powered_off.contains(" by "), "{powered_off}");
    }

    #[tokio::test]
    async fn what_is_gone_is_found_by_its_reference_and_by_its_name() {
        for target in [DATABASE, "orders"] {
            let found = found(target).await.unwrap();
            let expected =
                ["2026-06-16T06:00:00Z orders start", "2026-06-15T17:08:00Z orders stop"];
            assert_eq!(lines(&found), expected, "{target}");
        }
    }

    #[tokio::test]
    async fn filters_narrow_it_down_and_what_is_left_out_is_counted() {
        let newest = found("-n 2").await.unwrap();
        let expected = ["2026-06-16T12:02:00Z web stop", "2026-06-16T06:01:00Z web start"];
        assert_eq!(
            (lines(&newest).as_slice(), newest.left_out),
            (&expected.map(str::to_owned)[..], 3)
        );
        // Midnight in the office's zone is two hours before midnight UTC.
        let day = found("--schedule office --since 2026-06-16 --until 2026-06-16").await.unwrap();
        let expected = ["2026-06-16T06:01:00Z web start", "2026-06-16T06:00:00Z orders start"];
        assert_eq!(lines(&day), expected);
        assert_eq!(lines(&found("--since 1h").await.unwrap()), [""; 0]);
    }

    #[tokio::test]
    async fn an_unknown_schedule_and_an_empty_range_are_bad_usage() {
        for (line, expected) in [
            ("--schedule ofice", "did you mean `office`?"),
            ("--since 2h --until 3h", "before it begins"),
        ] {
            let error = found(line).await.unwrap_err();
            assert!(error.is::<UsageError>(), "{error:?}");
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[tokio::test]
    async fn what_history_does_not_have_in_this_time_is_said_and_no_mistake() {
        let unknown = async |line: &str| {
            let found = found(line).await.unwrap();
            assert_eq!(lines(&found), [""; 0], "{line}");
            found.unknown.join(" ")
        };
        for (line, near) in [("ordres", "orders"), ("wbe", "web")] {
            let unknown = unknown(line).await;
            assert!(unknown.ends_with(&format!("did you mean `{near}`?")), "{unknown}");
        }
        assert!(unknown("orders --since 1h").await.contains("nor has this time of history"));
        for known in ["web --since 1h", "hz-eu/server/7"] {
            assert_eq!(unknown(known).await, "");
        }
        let both = found("or* w?b").await.unwrap();
        assert_eq!((lines(&both).len(), both.unknown), (5, Vec::new()));
    }

    #[test]
    fn storage_that_did_not_come_back_is_shown() {
        let sized = |storage_mib| SavedState::Database {
            plan: "db-s-2vcpu-4gb".to_owned(),
            nodes: 1,
            storage_mib: Some(storage_mib),
        };
        let entry = start("16 08:00", "16 08:05").of(DATABASE).sized(sized(102_400), sized(61_440));
        let expected = "restored 1 x db-s-2vcpu-4gb, seen 60 GiB of storage instead of 100 GiB";
        assert_eq!(size(&entry), expected);
    }

    #[test]
    fn sizes_are_shown_as_what_became_of_them() {
        let large = database("db-s-4vcpu-8gb", 2);
        let sized = |entry: HistoryEntry, seen: &SavedState| {
            size(&entry.sized(large.clone(), seen.clone()))
        };
        let small = database("db-s-1vcpu-2gb", 2);
        let stop = || stop("15 17:00", "15 17:08");
        let start = || start("16 06:00", "16 06:08");
        assert_eq!(sized(stop(), &small), "saved 2 x db-s-4vcpu-8gb, seen 2 x db-s-1vcpu-2gb");
        assert_eq!(sized(start(), &large), "restored 2 x db-s-4vcpu-8gb");
        let kept = start().ending(Ending::Resized);
        let larger = database("db-s-8vcpu-16gb", 2);
        assert_eq!(
            sized(kept, &larger),
            "not restored: 2 x db-s-4vcpu-8gb, seen 2 x db-s-8vcpu-16gb"
        );
        assert_eq!(size(&stop()), "");
    }
}
