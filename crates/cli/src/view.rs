//! Shows events as they happen: lines and bars for people, JSON lines for programs.

pub(crate) mod bill;
pub mod summary;

use std::{collections::HashMap, io};

use domain::{ResourceRef, digest::Digest, record::Direction};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use jiff::{SignedDuration, Timestamp};
use lifecycle::{
    Outcome,
    event::{Course, Event, Severity, Subject},
};
use schemars::JsonSchema;
use serde::Serialize;

use summary::Summary;

use crate::{
    output,
    progress::{bars, forget_echo},
};

/// The width of the column before the name.
const REFERENCE_WIDTH: usize = 24;

/// Where events are shown.
#[derive(Debug)]
pub enum View {
    /// Nowhere.
    None,
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
    /// Lines with bars below them. `left` is printed if Ctrl-C ends the command.
    #[must_use]
    pub fn terminal(left: &'static str) -> Self {
        let all = bars(left);
        let time = all.add(ProgressBar::new_spinner());
        time.set_style(style("{spinner:.cyan} {msg}"));
        Self::Terminal(Box::new(Bars { all, time, under_way: HashMap::new() }))
    }

    /// Shows one outcome.
    pub fn show(&mut self, outcome: &Outcome) -> anyhow::Result<()> {
        match self {
            Self::None => {}
            Self::Json => {
                let mut line = serde_json::to_string(outcome)?;
                line.push('\n');
                output::print(&line)?;
            }
            // The reason has been shown already, and `status` and `why` show it, too.
            Self::Plain | Self::Terminal(_)
                if outcome.event.class().severity == Severity::Repeated => {}
            Self::Plain => output::print(&format!("{}\n", line(outcome)))?,
            Self::Terminal(bars) => bars.show(outcome)?,
        }
        Ok(())
    }

    /// Shows the outcome of a schedule's edge.
    pub fn show_digest(&mut self, digest: &Digest) -> anyhow::Result<()> {
        match self {
            Self::None => {}
            Self::Json => {
                let line = DigestLine { event: EDGE_COMPLETED, digest: digest.clone() };
                let mut line = serde_json::to_string(&line)?;
                line.push('\n');
                output::print(&line)?;
            }
            Self::Plain => output::print(&format!("{}\n", digest_line(digest)))?,
            Self::Terminal(bars) => bars.all.println(output::printable(&digest_line(digest)))?,
        }
        Ok(())
    }

    /// Shows that time has passed.
    pub fn passed(&mut self, now: Timestamp) {
        if let Self::Terminal(bars) = self {
            bars.passed(now);
        }
    }

    /// Clears temporary output after Ctrl-C.
    pub fn interrupted(&mut self) {
        if let Self::Terminal(bars) = self {
            forget_echo(&bars.all);
        }
        self.finish();
    }

    /// Clears temporary output.
    pub fn finish(&mut self) {
        if let Self::Terminal(bars) = self {
            bars.all.clear().ok();
        }
    }
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
    fn show(&mut self, outcome: &Outcome) -> io::Result<()> {
        self.all.println(output::printable(&line(outcome)))?;
        let Subject::Resource { resource, name, .. } = &outcome.subject else {
            return Ok(());
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
        Ok(())
    }

    fn passed(&self, now: Timestamp) {
        for Bar { bar, since } in self.under_way.values() {
            bar.set_position(now.duration_since(*since).as_secs().unsigned_abs());
        }
        let time = now.strftime("%a %Y-%m-%d %H:%M UTC");
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

/// One line for people: the time, the subject, and what happened.
fn line(outcome: &Outcome) -> String {
    let when = outcome.at.strftime("%a %H:%M:%SZ");
    let event = output::shortened(&outcome.event.to_string());
    match &outcome.subject {
        Subject::Resource { resource, name, .. } => {
            let kind = format!("{}/{}", resource.account, resource.kind());
            format!("{when}  {kind:<REFERENCE_WIDTH$} {name:<20} {event}")
        }
        Subject::Account { account } => {
            format!("{when}  {account:<REFERENCE_WIDTH$} {:<20} {event}", "")
        }
    }
}

/// Like [`line`], for a schedule's edge.
fn digest_line(digest: &Digest) -> String {
    let when = digest.at.strftime("%a %H:%M:%SZ");
    let schedule = digest.schedule.to_string();
    let text = digest.to_string();
    let text = text.strip_prefix(&format!("{schedule}: ")).unwrap_or(&text);
    format!("{when}  {:<REFERENCE_WIDTH$} {schedule:<20} {text}", "schedule")
}
