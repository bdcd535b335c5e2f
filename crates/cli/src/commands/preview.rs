//! `offhours preview`: what each schedule wants at an instant, and when that changes.

mod week;

use std::path::PathBuf;

use domain::{
    ScheduleName,
    configuration::Rule,
    schedule::{Desired, Schedule, desired_or_any},
};
use jiff::{Timestamp, tz::TimeZone};
#[cfg(feature = "local")]
use local::clouds::Clouds;
use schemars::JsonSchema;
use serde::Serialize;

use super::Format;
use crate::{
    Exit, candidates,
    configuration_file::{self, ListedResources},
    context::Context,
    exit::UsageError,
    output::{self, Style},
    resolve::nearest::exists,
    table::{Cell, Column, Table},
    time::{Length, NextEdge, When, local},
};

/// Show the desired state of each schedule at an instant, and when it changes.
///
/// Reads only the file, which needs no accounts for this, and uses the same evaluator as the
/// service. Times in the table are local to each schedule; in JSON they are UTC.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours preview
  offhours preview --schedule office-hours --for 4w
  offhours preview --week                          this week as a picture
  offhours preview --schedule office-hours --at \"2026-12-24 09:00\"
  offhours preview --at 2026-10-25T00:00:00Z --for 36h -o json")]
pub struct Args {
    /// Configuration file to read.
    #[arg(long, value_name = "FILE", default_value = "offhours.toml")]
    config: PathBuf,
    /// Only this schedule.
    #[arg(long, value_name = "NAME", add = candidates::schedules())]
    schedule: Option<String>,
    /// Instant to evaluate, such as 2026-06-15T07:00:00Z, or "2026-06-15 09:00" in the schedule's
    /// own time zone [default: now].
    #[arg(long, value_name = "INSTANT")]
    at: Option<When>,
    /// How far to look ahead, such as 36h, 7d or 2w.
    #[arg(long = "for", value_name = "SPAN", default_value = "7d")]
    ahead: Length,
    /// Draw the week that contains the instant, half hour by half hour.
    #[arg(long, conflicts_with = "ahead")]
    week: bool,
}

/// Prints what the schedules want at `args.at`, or now.
pub async fn run(args: &Args, context: &Context, now: Timestamp) -> anyhow::Result<Exit> {
    let parsed = configuration_file::load(&args.config, ListedResources::MayStandAlone)?;
    let schedules = &parsed.configuration.schedules;
    let chosen: Vec<(&ScheduleName, &Rule)> = match &args.schedule {
        None => schedules.iter().collect(),
        Some(wanted) => {
            let names = schedules.keys().map(ScheduleName::as_str);
            exists("schedule", wanted, names)?;
            let is_wanted = |(name, _): &(&ScheduleName, &Rule)| name.as_str() == wanted;
            schedules.iter().filter(is_wanted).collect()
        }
    };
    #[cfg(feature = "local")]
    let now = match context.connection.simulator() {
        Some(url) if args.at.is_none() => Clouds::elsewhere(url).await?.1.unwrap_or(now),
        Some(_) | None => now,
    };
    let at = instant(args.at, &chosen, now)?;
    let warn = || {
        for warning in parsed.advice(at) {
            output::remark(&format!("warning: {warning}\n"));
        }
    };
    if args.week {
        warn();
        for (number, (name, rule)) in chosen.into_iter().enumerate() {
            let drawn = week::draw(name, &rule.schedule, at, Style::of_stdout())?;
            let space = if number == 0 { "" } else { "\n" };
            output::print(&format!("{space}{drawn}"))?;
        }
        return Ok(Exit::Done);
    }
    let until = at
        .checked_add(args.ahead.duration())
        .map_err(|_| UsageError(format!("{at} is too far away to look ahead from")))?;
    warn();
    let preview = Preview {
        at,
        schedules: chosen
            .iter()
            .map(|(name, rule)| Outlook::of(name, &rule.schedule, at, until))
            .collect(),
    };
    match context.format {
        Format::Json => output::print_json(&preview)?,
        Format::Table => output::print(&preview.render(Style::of_stdout(), until))?,
    }
    Ok(Exit::Done)
}

/// The requested instant; now, to the second, if none is given.
fn instant(
    at: Option<When>,
    chosen: &[(&ScheduleName, &Rule)],
    now: Timestamp,
) -> anyhow::Result<Timestamp> {
    let local = match at {
        None => return Ok(Timestamp::from_second(now.as_second())?),
        Some(When::Instant(instant)) => return Ok(instant),
        Some(local @ When::Local(_)) => local,
    };
    let mut zones = chosen.iter().map(|(_, rule)| rule.schedule.timezone());
    let zone = zones.next();
    let (Some(zone), true) = (zone, zones.all(|other| Some(other) == zone)) else {
        let message = "a local time needs one time zone: name a --schedule, or write an instant \
                       such as 2026-06-15T07:00:00Z";
        return Err(UsageError(message.to_owned()).into());
    };
    Ok(local.instant(zone)?)
}

/// The desired states of all chosen schedules at one instant.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Preview<'p> {
    /// The instant that is evaluated.
    at: Timestamp,
    /// The schedules, sorted by name.
    schedules: Vec<Outlook<'p>>,
}

/// The desired state of one schedule, and when it changes.
#[derive(Debug, Serialize, JsonSchema)]
struct Outlook<'p> {
    /// The schedule's name.
    name: &'p ScheduleName,
    /// The time zone in which the schedule is evaluated.
    timezone: &'p str,
    /// The desired state at the instant; null if either state will do.
    state: Option<Desired>,
    /// Since when that has been the desired state; null if always.
    since: Option<Timestamp>,
    /// The changes after the instant, in chronological order.
    next: Vec<NextEdge>,
    #[serde(skip)]
    zone: &'p TimeZone,
}

impl<'p> Outlook<'p> {
    /// The outlook at `at`, with the edges after it, up to and including `until`.
    fn of(name: &'p ScheduleName, schedule: &'p Schedule, at: Timestamp, until: Timestamp) -> Self {
        let latest = schedule.latest_edge(at);
        let edges = schedule.edges(at).take_while(|edge| edge.at <= until);
        Self {
            name,
            timezone: &schedule.definition().timezone,
            state: latest.desired,
            since: latest.since,
            next: edges.map(NextEdge::from).collect(),
            zone: schedule.timezone(),
        }
    }

    fn next_lines(&self, until: Timestamp) -> String {
        if self.next.is_empty() {
            return format!("nothing until {}", local(until, self.zone));
        }
        let edge =
            |edge: &NextEdge| format!("{}  {}", local(edge.at, self.zone), desired_or_any(edge.to));
        let lines: Vec<_> = self.next.iter().map(edge).collect();
        lines.join("\n")
    }
}

impl Preview<'_> {
    fn render(&self, style: Style, until: Timestamp) -> String {
        if self.schedules.is_empty() {
            return "There are no schedules.\n".to_owned();
        }
        let columns = [
            Column::of("Schedule"),
            Column::of("Time zone").yields(1),
            Column::of("State"),
            Column::of("Since").yields(0),
            Column::of("Next"),
        ];
        let cells = |outlook: &Outlook<'_>| {
            let since = outlook
                .since
                .map_or_else(|| "always".to_owned(), |since| local(since, outlook.zone));
            vec![
                Cell::new(outlook.name),
                Cell::new(outlook.timezone),
                Cell::desired(outlook.state),
                Cell::new(since),
                Cell::new(outlook.next_lines(until)),
            ]
        };
        let rows: Vec<_> = self.schedules.iter().map(cells).collect();
        format!("At {}:\n{}", self.at, Table::whole(style, columns, &rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
timezone = "Europe/Berlin"
[schedules.office-hours]
periods = [
  { weekdays = "mon-fri", begin = "08:00", end = "19:00" },
  { weekdays = "sat#1", begin = "10:00", end = "14:00" },
]
[schedules.nights]
timezone = "America/New_York"
periods = [{ begin = "22:00", end = "02:30" }]
[schedules.morning-call]
periods = [{ weekdays = "mon", begin = "08:00" }]
[schedules.always]
periods = [{}]
"#;

    fn instant(text: &str) -> Timestamp {
        text.parse().expect("a test's instant")
    }

    /// The outlook for the schedule `name` of [`FILE`]: state, since, and each next edge.
    fn outlook(name: &str, at: &str, ahead: &str) -> Vec<String> {
        let parsed = configuration_file::parse(FILE, "FILE").expect("the file is in order");
        let name = name.parse().expect("a name");
        let schedule = &parsed.configuration.schedules[&name].schedule;
        let ahead: Length = ahead.parse().expect("a length");
        let until = instant(at) + ahead.duration();
        let outlook = Outlook::of(&name, schedule, instant(at), until);
        let since = outlook.since.map_or_else(|| "null".to_owned(), |at| at.to_string());
        let next =
            outlook.next.iter().map(|edge| format!("{} {}", edge.at, desired_or_any(edge.to)));
        std::iter::once(format!("{} {since}", desired_or_any(outlook.state))).chain(next).collect()
    }

    #[test]
    fn edges_lie_after_the_instant_and_up_to_and_including_the_end() {
        let begin = "2026-06-15T06:00:00Z";
        let whole = outlook("office-hours", begin, "11h");
        assert_eq!(whole, [format!("running {begin}"), "2026-06-15T17:00:00Z stopped".to_owned()]);
        let short = outlook("office-hours", begin, "10h59m59s");
        assert_eq!(short, [format!("running {begin}")]);
        let before = outlook("office-hours", "2026-06-15T05:59:59Z", "1s");
        assert_eq!(before, ["stopped 2026-06-12T17:00:00Z", "2026-06-15T06:00:00Z running"]);
    }

    #[test]
    fn local_times_keep_across_a_clock_change() {
        assert_eq!(
            outlook("office-hours", "2026-10-23T12:00:00Z", "4d"),
            [
                "running 2026-10-23T06:00:00Z",
                "2026-10-23T17:00:00Z stopped",
                "2026-10-26T07:00:00Z running",
                "2026-10-26T18:00:00Z stopped",
                "2026-10-27T07:00:00Z running",
            ]
        );
    }

    #[test]
    fn an_end_that_the_clock_skips_happens_at_the_jump_and_a_repeated_one_at_its_last() {
        // New York, 2026-03-08: 02:00 EST is 03:00 EDT, at 07:00 UTC.
        assert_eq!(
            outlook("nights", "2026-03-08T04:00:00Z", "6h"),
            ["running 2026-03-08T03:00:00Z", "2026-03-08T07:00:00Z stopped"]
        );
        // New York, 2026-11-01: 01:00 to 02:00 comes twice, 02:30 EST only once, at 07:30 UTC.
        assert_eq!(
            outlook("nights", "2026-11-01T03:00:00Z", "6h"),
            ["running 2026-11-01T02:00:00Z", "2026-11-01T07:30:00Z stopped"]
        );
    }

    #[test]
    fn a_begin_alone_leads_to_any_and_a_constant_desired_state_has_no_edges() {
        assert_eq!(
            outlook("morning-call", "2026-06-15T07:00:00Z", "7d"),
            [
                "running 2026-06-15T06:00:00Z",
                "2026-06-15T22:00:00Z any",
                "2026-06-22T06:00:00Z running",
            ]
        );
        assert_eq!(outlook("always", "2026-06-15T07:00:00Z", "52w"), ["running null"]);
    }

    #[test]
    fn the_table_shows_local_times() {
        let parsed = configuration_file::parse(FILE, "FILE").unwrap();
        let at = instant("2026-10-23T12:00:00Z");
        let until = instant("2026-10-30T12:00:00Z");
        let schedules = &parsed.configuration.schedules;
        let preview = Preview {
            at,
            schedules: schedules
                .iter()
                .map(|(name, rule)| Outlook::of(name, &rule.schedule, at, until))
                .collect(),
        };
        insta::assert_snapshot!(preview.render(Style::PLAIN, until), @"
        At 2026-10-23T12:00:00Z:
        Schedule      Time zone         State    Since                      Next
        ───────────────────────────────────────────────────────────────────────────────────────────────────────────
        always        Europe/Berlin     running  always                     nothing until Fri 2026-10-30 13:00 CET
        morning-call  Europe/Berlin     any      Tue 2026-10-20 00:00 CEST  Mon 2026-10-26 08:00 CET  running
                                                                            Tue 2026-10-27 00:00 CET  any
        nights        America/New_York  stopped  Fri 2026-10-23 02:30 EDT   Fri 2026-10-23 22:00 EDT  running
                                                                            Sat 2026-10-24 02:30 EDT  stopped
                                                                            Sat 2026-10-24 22:00 EDT  running
                                                                            Sun 2026-10-25 02:30 EDT  stopped
                                                                            Sun 2026-10-25 22:00 EDT  running
                                                                            Mon 2026-10-26 02:30 EDT  stopped
                                                                            Mon 2026-10-26 22:00 EDT  running
                                                                            Tue 2026-10-27 02:30 EDT  stopped
                                                                            Tue 2026-10-27 22:00 EDT  running
                                                                            Wed 2026-10-28 02:30 EDT  stopped
                                                                            Wed 2026-10-28 22:00 EDT  running
                                                                            Thu 2026-10-29 02:30 EDT  stopped
                                                                            Thu 2026-10-29 22:00 EDT  running
                                                                            Fri 2026-10-30 02:30 EDT  stopped
        office-hours  Europe/Berlin     running  Fri 2026-10-23 08:00 CEST  Fri 2026-10-23 19:00 CEST  stopped
                                                                            Mon 2026-10-26 08:00 CET  running
                                                                            Mon 2026-10-26 19:00 CET  stopped
                                                                            Tue 2026-10-27 08:00 CET  running
                                                                            Tue 2026-10-27 19:00 CET  stopped
                                                                            Wed 2026-10-28 08:00 CET  running
                                                                            Wed 2026-10-28 19:00 CET  stopped
                                                                            Thu 2026-10-29 08:00 CET  running
                                                                            Thu 2026-10-29 19:00 CET  stopped
                                                                            Fri 2026-10-30 08:00 CET  running
        ");
    }
}
