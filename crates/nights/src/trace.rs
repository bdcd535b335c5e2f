//! A readable log of a night: one line per event, one column per actor.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use domain::record::{Ask, Forced, Phase, Record};
use jiff::Timestamp;

use crate::night::Function;

/// The actor behind a line of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Actor {
    Timer,
    Function(Function),
    Cloud,
    Person,
    Fault,
    Observer,
}

/// The columns, from left to right.
const COLUMNS: [(&str, Actor); 9] = [
    ("timer", Actor::Timer),
    ("dispatch", Actor::Function(Function::Dispatch)),
    ("poll-status", Actor::Function(Function::PollStatus)),
    ("stop", Actor::Function(Function::Stop)),
    ("start", Actor::Function(Function::Start)),
    ("cloud", Actor::Cloud),
    ("person", Actor::Person),
    ("fault", Actor::Fault),
    ("observer", Actor::Observer),
];

/// The width of a column, in characters.
const WIDTH: usize = 12;

/// The events so far, if they are recorded. Clones share the same trace.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    lines: Option<Arc<Mutex<Vec<Line>>>>,
    has_reads: bool,
}

#[derive(Debug)]
struct Line {
    at: Timestamp,
    actor: Actor,
    text: String,
}

impl Trace {
    /// Returns a trace that records events.
    #[must_use]
    pub fn recording() -> Self {
        Self { lines: Some(Arc::default()), has_reads: false }
    }

    /// Returns a trace that also records reads from the clouds.
    #[must_use]
    pub fn with_reads() -> Self {
        Self { has_reads: true, ..Self::recording() }
    }

    pub(crate) fn has_reads(&self) -> bool {
        self.has_reads
    }

    /// Adds a line. Its text is built only if the trace is recorded.
    pub(crate) fn add(&self, at: Timestamp, actor: Actor, text: impl FnOnce() -> String) {
        if let Some(lines) = &self.lines {
            let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
            lines.push(Line { at, actor, text: text() });
        }
    }
}

impl Trace {
    /// Returns the header and the last `most` lines.
    #[must_use]
    pub fn tail(&self, most: usize) -> String {
        let text = self.to_string();
        let lines: Vec<_> = text.lines().collect();
        let from = lines.len().saturating_sub(most).max(1);
        let shown = lines.first().into_iter().chain(lines.get(from..).into_iter().flatten());
        shown.copied().collect::<Vec<_>>().join("\n")
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(lines) = &self.lines else {
            return Ok(());
        };
        write!(f, "{:24}", "")?;
        for (name, _) in COLUMNS {
            write!(f, "{name:WIDTH$}")?;
        }
        writeln!(f)?;
        let lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        for Line { at, actor, text } in lines.iter() {
            let place = COLUMNS.iter().position(|(_, of)| of == actor);
            let indent = place.unwrap_or_default() * WIDTH;
            let at = at.strftime("%a %m-%d %H:%M:%S%.3f").to_string();
            writeln!(f, "{at:24}{:indent$}{text}", "")?;
        }
        Ok(())
    }
}

/// Summarizes a record, as far as it affects what happens next.
pub(crate) fn record_in_a_line(record: &Record) -> String {
    let phase = match &record.phase {
        Phase::Settled { at } => format!("settled {at}"),
        Phase::InFlight { transition } => format!("in flight {}", transition.direction),
        Phase::Refused { reason, .. } => format!("refused ({reason})"),
        Phase::Stuck { reason, .. } => format!("stuck ({reason})"),
        Phase::Gone { .. } => "gone".to_owned(),
    };
    let request = record.request.as_ref().map(|request| {
        let ask = match request.ask {
            Ask::Open => "open",
            Ask::Accepted { .. } => "accepted",
            Ask::Failed { .. } => "failed",
            Ask::Done { .. } => "done",
        };
        let forced = match request.forced {
            Forced::No => "",
            Forced::Intended => ", cut intended",
            Forced::Accepted => ", cut accepted",
        };
        let unknown = if request.earlier_unanswered { ", one unknown" } else { "" };
        format!("; {} {}: {ask}{forced}{unknown}", request.direction, request.step)
    });
    let saved = record.saved.as_ref().map(|saved| {
        let shrunk = if record.may_have_shrunk { ", may have shrunk" } else { "" };
        format!("; saved {saved}{shrunk}")
    });
    let permit = record.permit.as_ref().map(|_| "; permit");
    let due = record.due_at.map(|due| format!("; due {}", due.strftime("%a %H:%M:%S")));
    let follows = match &record.schedule {
        Some(schedule) if record.held => format!("; held, {schedule}"),
        Some(schedule) if record.opted_in => format!("; {schedule}"),
        Some(schedule) => format!("; not {schedule}"),
        None => String::new(),
    };
    format!(
        "writes {} r{}: {phase}{follows}{}{}{}{}",
        record.reference,
        record.revision.0,
        request.unwrap_or_default(),
        saved.unwrap_or_default(),
        permit.unwrap_or_default(),
        due.unwrap_or_default(),
    )
}
