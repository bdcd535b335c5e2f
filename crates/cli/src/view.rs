//! Shows events as they happen: lines for people, JSON lines for programs.

pub(crate) mod bill;
pub mod summary;

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal as _},
};

use domain::{ResourceRef, digest::Digest, notice::StopNotice};
use indicatif::{MultiProgress, ProgressBar};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use lifecycle::{
    Occurrence,
    event::{Course, Severity, Subject},
};
use local::service::ServiceEvent;
use report::time::{length, local};
use schemars::JsonSchema;
use serde::Serialize;

use summary::Summary;

use crate::{
    Exit,
    output::{self, Format},
    progress::{bars, forget_echo},
};

const NAME_WIDTH: usize = 18;

/// Where events are shown, and which.
#[derive(Debug)]
pub struct View {
    form: Form,
    zone: TimeZone,
    /// Whether to show every event, not only edges and what needs attention.
    all: bool,
    /// How the time of an event is shown.
    time: &'static str,
    /// Whether anything was not done.
    not_done: bool,
    /// Whether anything needs a person.
    needs_person: bool,
}

/// A time among those of a day or two.
const BRIEF: &str = "%a %H:%M:%S";

/// A time in a log that goes on for months.
const DATED: &str = "%Y-%m-%d %H:%M:%S %Z";

#[derive(Debug)]
enum Form {
    /// One JSON object per line on standard output.
    Json,
    /// One plain line per event on standard output.
    Plain,
    /// Lines, with the time below them and the names of what is under way.
    Terminal { bars: MultiProgress, line: ProgressBar, under_way: BTreeMap<ResourceRef, String> },
}

/// Shown when a person presses Ctrl-C.
pub(crate) const GOES_ON: &str = "What was asked for goes on; `offhours status` shows it.";

/// The same for a dry run.
pub(crate) const NOTHING_ASKED: &str = "Interrupted: nothing was asked for.";

impl View {
    /// Shows every event, or only edges and what needs attention. `left` is printed if Ctrl-C ends
    /// the command.
    pub(crate) fn of(format: Format, zone: TimeZone, all: bool, left: &'static str) -> Self {
        let form = match format {
            Format::Json | Format::Csv => Form::Json,
            Format::Table if io::stdout().is_terminal() => {
                let bars = bars(left);
                let line = bars.add(ProgressBar::new_spinner());
                Form::Terminal { bars, line, under_way: BTreeMap::new() }
            }
            Format::Table => Form::Plain,
        };
        Self { form, zone, all, time: BRIEF, not_done: false, needs_person: false }
    }

    /// Writes every event as a line of a log.
    pub(crate) fn log(format: Format, zone: TimeZone) -> Self {
        let form = match format {
            Format::Json | Format::Csv => Form::Json,
            Format::Table => Form::Plain,
        };
        Self { form, zone, all: true, time: DATED, not_done: false, needs_person: false }
    }

    pub fn show(&mut self, outcome: &Occurrence) -> anyhow::Result<()> {
        let severity = outcome.event.class().severity;
        // A reason that is repeated was shown already, and `status` and `why` show it, too.
        let is_shown = severity == Severity::Warning || self.all && severity == Severity::Usual;
        self.put_outcome(outcome, is_shown)
    }

    /// Shows the answer to a command: why nothing was done, even if the log has it already.
    pub(crate) fn answer(&mut self, outcome: &Occurrence) -> anyhow::Result<()> {
        self.put_outcome(outcome, true)
    }

    fn put_outcome(&mut self, outcome: &Occurrence, is_shown: bool) -> anyhow::Result<()> {
        let line = is_shown.then(|| self.outcome_line(outcome));
        self.put(line.as_deref(), outcome)?;
        let course = outcome.event.class().course;
        self.not_done |= course == Course::NotDone;
        self.needs_person |= course == Course::NeedsPerson;
        if let (Form::Terminal { under_way, .. }, Subject::Resource { resource, name, .. }) =
            (&mut self.form, &outcome.subject)
        {
            match course {
                Course::UnderWay => _ = under_way.insert(resource.clone(), name.clone()),
                Course::Ended | Course::NeedsPerson => _ = under_way.remove(resource),
                Course::NotDone | Course::Unrelated => {}
            }
        }
        Ok(())
    }

    /// The exit status of a command that ends with what was shown.
    pub(crate) fn exit(&self) -> Exit {
        Exit::after(self.not_done, self.needs_person)
    }

    pub(crate) fn show_of_service(&mut self, event: &ServiceEvent) -> anyhow::Result<()> {
        match event {
            ServiceEvent::Outcome(outcome) => self.show(outcome),
            ServiceEvent::Digest(digest) => {
                let json = EdgeLine::EdgeCompleted(Box::new(digest.clone()));
                self.put(Some(&self.digest_line(digest)), &json)
            }
            ServiceEvent::Notice(notice) => {
                let json = if notice.is_called_off() {
                    EdgeLine::StopCalledOff(notice.clone())
                } else {
                    EdgeLine::StopAnnounced(notice.clone())
                };
                self.put(Some(&self.notice_line(notice)), &json)
            }
            ServiceEvent::Passed(now) => {
                self.passed(*now);
                Ok(())
            }
        }
    }

    fn put(&self, line: Option<&str>, json: &impl Serialize) -> anyhow::Result<()> {
        match (&self.form, line) {
            (Form::Json, _) => print_json_line(json)?,
            (Form::Plain, Some(line)) => output::print(&format!("{line}\n"))?,
            (Form::Terminal { bars, .. }, Some(line)) => bars.println(output::printable(line))?,
            (Form::Plain | Form::Terminal { .. }, None) => {}
        }
        Ok(())
    }

    pub fn passed(&mut self, now: Timestamp) {
        if let Form::Terminal { line, under_way, .. } = &self.form {
            let names: Vec<_> = under_way.values().map(String::as_str).collect();
            let names = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
            let message = format!("{}, under way: {names}", local(now, &self.zone));
            line.set_message(output::printable(&message).into_owned());
            line.tick();
        }
    }

    /// Clears temporary output after Ctrl-C.
    pub fn interrupted(&mut self) {
        if let Form::Terminal { bars, .. } = &self.form {
            forget_echo(bars);
        }
        self.finish();
    }

    pub fn finish(&mut self) {
        if let Form::Terminal { bars, .. } = &self.form {
            bars.clear().ok();
        }
    }

    fn clock(&self, at: Timestamp) -> String {
        at.to_zoned(self.zone.clone()).strftime(self.time).to_string()
    }

    /// One line for people: the time, the subject, and what happened.
    fn line(&self, at: Timestamp, subject: &str, what: &str) -> String {
        format!("{}  {subject:<NAME_WIDTH$}  {what}", self.clock(at))
    }

    fn outcome_line(&self, outcome: &Occurrence) -> String {
        let event = output::shortened(&outcome.event.to_string());
        match &outcome.subject {
            Subject::Resource { name, .. } => self.line(outcome.at, name, &event),
            Subject::Account { account } => {
                self.line(outcome.at, &format!("account {account}"), &event)
            }
        }
    }

    fn notice_line(&self, notice: &StopNotice) -> String {
        let edge = self.clock(notice.edge);
        let what = if notice.is_called_off() {
            format!("nothing stops {edge} after all")
        } else {
            format!("{} {edge}: {}", notice.counted(), notice.named())
        };
        self.line(notice.at, &format!("{}:", notice.schedule), &what)
    }

    fn digest_line(&self, digest: &Digest) -> String {
        let took = digest.slowest.as_ref().map(|slowest| {
            let took = length(SignedDuration::from_secs(slowest.seconds));
            format!("; the last, {}, after {took}", slowest.name)
        });
        let what = digest.counted() + &took.unwrap_or_default();
        self.line(digest.at, &format!("{}:", digest.schedule), &what)
    }
}

pub(crate) fn print_json_line(value: &impl Serialize) -> anyhow::Result<()> {
    let mut line = serde_json::to_string(value)?;
    line.push('\n');
    Ok(output::print(&line)?)
}

/// One line of output for programs: an event, what is reported of a schedule's edge, or, as the last
/// line, what it all came to.
#[derive(JsonSchema)]
#[serde(untagged)]
pub enum Line {
    /// Something that happened to a resource or an account.
    Outcome(Occurrence),
    /// What is reported of a schedule's edge.
    Edge(EdgeLine),
    /// What it all came to: the last line.
    Summary(Summary),
}

/// What is reported of a schedule's edge, with the name of its event.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum EdgeLine {
    /// Its outcome.
    EdgeCompleted(Box<Digest>),
    /// It will soon stop resources.
    StopAnnounced(StopNotice),
    /// Nothing that was announced will be stopped.
    StopCalledOff(StopNotice),
}
