//! Shows events as they happen: lines and bars for people, JSON lines for programs.

pub(crate) mod bill;
pub mod summary;

use std::{
    collections::HashMap,
    io::{self, IsTerminal as _},
};

use domain::{ResourceRef, digest::Digest, record::Direction};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use lifecycle::{
    Outcome,
    event::{Course, Event, Severity, Subject},
};
use schemars::JsonSchema;
use serde::Serialize;

use summary::Summary;

use crate::{
    commands::Format,
    output,
    progress::{bars, forget_echo},
    time::{length, local},
};

/// The width of the column of names.
const NAME_WIDTH: usize = 18;

/// Where events are shown, and which.
#[derive(Debug)]
pub struct View {
    form: Form,
    /// The zone of all times.
    zone: TimeZone,
    /// Whether to show every event, not only edges and what needs attention.
    all: bool,
}

#[derive(Debug)]
enum Form {
    /// Nowhere.
    Nowhere,
    /// One JSON object per line on standard output.
    Json,
    /// One plain line per event on standard output.
    Plain,
    /// Lines, with a bar below them for each transition in flight.
    Terminal(Box<Bars>),
}

/// Shown when a person presses Ctrl-C.
pub(crate) const GOES_ON: &str = "What was asked for goes on; `offhours status` shows it.";

/// The same for a dry run.
pub(crate) const NOTHING_ASKED: &str = "Interrupted: nothing was asked for.";

/// A bar for each transition in flight, and a line with the time.
#[derive(Debug)]
pub struct Bars {
    all: MultiProgress,
    time: ProgressBar,
    under_way: HashMap<ResourceRef, Bar>,
}

#[derive(Debug)]
struct Bar {
    bar: ProgressBar,
    since: Timestamp,
}

impl View {
    /// Shows every event, or only edges and what needs attention. `left` is printed if Ctrl-C ends
    /// the command.
    pub(crate) fn of(format: Format, zone: TimeZone, all: bool, left: &'static str) -> Self {
        let form = match format {
            Format::Json | Format::Csv => Form::Json,
            Format::Table if io::stdout().is_terminal() => {
                let all = bars(left);
                let time = all.add(ProgressBar::new_spinner());
                time.set_style(style("{spinner:.cyan} {msg}"));
                Form::Terminal(Box::new(Bars { all, time, under_way: HashMap::new() }))
            }
            Format::Table => Form::Plain,
        };
        Self { form, zone, all }
    }

    /// Shows nothing.
    pub(crate) fn nowhere() -> Self {
        Self { form: Form::Nowhere, zone: TimeZone::UTC, all: false }
    }

    /// Shows one outcome.
    pub fn show(&mut self, outcome: &Outcome) -> anyhow::Result<()> {
        let severity = outcome.event.class().severity;
        // A reason that is repeated was shown already, and `status` and `why` show it, too.
        let is_shown = severity == Severity::Warning || self.all && severity == Severity::Usual;
        let line = is_shown.then(|| line(outcome, &self.zone));
        match &mut self.form {
            Form::Nowhere => Ok(()),
            Form::Json => print_json_line(outcome),
            Form::Plain => Ok(line.map_or(Ok(()), |line| output::print(&format!("{line}\n")))?),
            Form::Terminal(bars) => {
                if let Some(line) = line {
                    bars.all.println(output::printable(&line))?;
                }
                bars.follow(outcome);
                Ok(())
            }
        }
    }

    /// Shows the outcome of a schedule's edge.
    pub fn show_digest(&mut self, digest: &Digest) -> anyhow::Result<()> {
        let line = digest_line(digest, &self.zone);
        match &self.form {
            Form::Nowhere => {}
            Form::Json => {
                print_json_line(&DigestLine { event: EDGE_COMPLETED, digest: digest.clone() })?;
            }
            Form::Plain => output::print(&format!("{line}\n"))?,
            Form::Terminal(bars) => bars.all.println(output::printable(&line))?,
        }
        Ok(())
    }

    /// Shows that time has passed.
    pub fn passed(&mut self, now: Timestamp) {
        if let Form::Terminal(bars) = &self.form {
            bars.passed(now, &self.zone);
        }
    }

    /// Clears temporary output after Ctrl-C.
    pub fn interrupted(&mut self) {
        if let Form::Terminal(bars) = &self.form {
            forget_echo(&bars.all);
        }
        self.finish();
    }

    /// Clears temporary output.
    pub fn finish(&mut self) {
        if let Form::Terminal(bars) = &self.form {
            bars.all.clear().ok();
        }
    }
}

fn print_json_line(value: &impl Serialize) -> anyhow::Result<()> {
    let mut line = serde_json::to_string(value)?;
    line.push('\n');
    Ok(output::print(&line)?)
}

/// One line of output for programs: an event, the outcome of a schedule's edge, or, as the last
/// line, the outcome for each resource.
#[derive(JsonSchema)]
#[serde(untagged)]
pub enum Line {
    /// Something that happened to a resource or an account.
    Outcome(Outcome),
    /// The outcome of a schedule's edge.
    EdgeCompleted(DigestLine),
    /// The outcome for each resource: the last line.
    Summary(Summary),
}

/// The outcome of a schedule's edge, with the name of its event.
#[derive(Serialize, JsonSchema)]
pub struct DigestLine {
    /// The name of the event.
    #[schemars(extend("const" = EDGE_COMPLETED))]
    event: &'static str,
    #[serde(flatten)]
    digest: Digest,
}

const EDGE_COMPLETED: &str = "edge-completed";

impl Bars {
    /// Shows a bar while something is under way.
    fn follow(&mut self, outcome: &Outcome) {
        let Subject::Resource { resource, name, .. } = &outcome.subject else {
            return;
        };
        if let Event::Asked { direction, .. } = &outcome.event {
            let what = match direction {
                Direction::Stop => "stopping",
                Direction::Start => "starting",
            };
            let expected = expected(resource).as_secs().unsigned_abs();
            let bar = ProgressBar::new(expected);
            let bar = self.all.insert_before(&self.time, bar);
            bar.set_style(style("  {msg:34!} {bar:30.cyan/blue} {pos:>4} s"));
            let message = format!("{what} {name}");
            bar.set_message(output::printable(&message).into_owned());
            let since = outcome.at;
            if let Some(old) = self.under_way.insert(resource.clone(), Bar { bar, since }) {
                old.bar.finish_and_clear();
            }
        }
        let course = outcome.event.class().course;
        if matches!(course, Course::Ended | Course::NeedsPerson)
            && let Some(Bar { bar, .. }) = self.under_way.remove(resource)
        {
            bar.finish_and_clear();
            self.all.remove(&bar);
        }
    }

    fn passed(&self, now: Timestamp, zone: &TimeZone) {
        for Bar { bar, since } in self.under_way.values() {
            bar.set_position(now.duration_since(*since).as_secs().unsigned_abs());
        }
        let time = local(now, zone);
        let under_way = self.under_way.len();
        self.time.set_message(format!("{time}, {under_way} under way"));
        self.time.tick();
    }
}

/// How long a transition of this kind usually takes.
fn expected(resource: &ResourceRef) -> SignedDuration {
    use domain::ResourceKind;
    match resource.kind() {
        ResourceKind::Droplet | ResourceKind::Server | ResourceKind::Machine => {
            SignedDuration::from_mins(1)
        }
        ResourceKind::NodePool => SignedDuration::from_mins(4),
        ResourceKind::Database => SignedDuration::from_mins(10),
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

fn clock(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%a %H:%M:%S").to_string()
}

/// One line for people: the time, the subject, and what happened.
fn line(outcome: &Outcome, zone: &TimeZone) -> String {
    let when = clock(outcome.at, zone);
    let event = output::shortened(&outcome.event.to_string());
    match &outcome.subject {
        Subject::Resource { name, .. } => format!("{when}  {name:<NAME_WIDTH$}  {event}"),
        Subject::Account { account } => {
            let account = format!("account {account}");
            format!("{when}  {account:<NAME_WIDTH$}  {event}")
        }
    }
}

/// Like [`line`], for a schedule's edge.
fn digest_line(digest: &Digest, zone: &TimeZone) -> String {
    let when = clock(digest.at, zone);
    let schedule = format!("{}:", digest.schedule);
    let took = digest.slowest.as_ref().map(|slowest| {
        let took = length(SignedDuration::from_secs(slowest.seconds));
        format!("; the last, {}, after {took}", slowest.name)
    });
    let counted = digest.counted();
    format!("{when}  {schedule:<NAME_WIDTH$}  {counted}{}", took.unwrap_or_default())
}
