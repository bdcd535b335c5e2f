//! A schedule as its author wrote it, and what may be wrong with it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A schedule as its author wrote it; what is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// The zone in which days and times are judged, by its IANA name.
    pub timezone: String,
    /// When to run. Excludes `start` and `stop`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub periods: Vec<PeriodDefinition>,
    /// Days on which nothing begins: `2026-12-24`, `2026-12-24..2026-12-26`, `01-01` (every year),
    /// `12-24..01-02`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holidays: Vec<String>,
    /// When to start: a five-field cron expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// When to stop: a five-field cron expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
}

/// One period of a schedule. All given fields must match; an empty one matches every day.
///
/// Each text of a list may itself be a list, separated by commas.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeriodDefinition {
    /// `mon-fri`, `sat#1`, `friL`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weekdays: Vec<String>,
    /// `1-7`, `1/10`, `15W`, `L`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub monthdays: Vec<String>,
    /// `nov-feb`, `1/3`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub months: Vec<String>,
    /// The time at which it begins, `HH:MM`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin: Option<String>,
    /// The time at which it ends, `HH:MM`; at or before `begin`: on the next day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
}

/// Something wrong with a definition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// What is wrong, and what to write instead.
    pub message: String,
}

/// A place in a definition; indices count from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// The schedule as a whole.
    Schedule,
    /// `timezone`
    Timezone,
    /// One of the periods as a whole.
    Period(usize),
    /// A field of one of the periods.
    PeriodField(usize, PeriodField),
    /// One of the entries of `holidays`.
    Holiday(usize),
    /// `start`
    Start,
    /// `stop`
    Stop,
}

/// A field of a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is the field of this name")]
pub enum PeriodField {
    Weekdays,
    Monthdays,
    Months,
    Begin,
    End,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Schedule => f.write_str("schedule"),
            Self::Timezone => f.write_str("timezone"),
            Self::Period(index) => write!(f, "periods[{index}]"),
            Self::PeriodField(index, field) => write!(f, "periods[{index}].{field}"),
            Self::Holiday(index) => write!(f, "holidays[{index}]"),
            Self::Start => f.write_str("start"),
            Self::Stop => f.write_str("stop"),
        }
    }
}

impl fmt::Display for PeriodField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Weekdays => "weekdays",
            Self::Monthdays => "monthdays",
            Self::Months => "months",
            Self::Begin => "begin",
            Self::End => "end",
        })
    }
}

/// The problems found so far: all of them are reported at once.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<Problem>);

impl Problems {
    pub(super) fn note(&mut self, place: Place, message: impl Into<String>) {
        self.0.push(Problem {
            place,
            message: message.into(),
        });
    }

    /// The value, or none after noting what is wrong with it.
    pub(super) fn take<T>(&mut self, place: Place, result: Result<T, String>) -> Option<T> {
        result.map_err(|message| self.note(place, message)).ok()
    }

    /// The same for a list, whose entries may each be wrong.
    pub(super) fn take_all<T>(
        &mut self,
        place: Place,
        result: Result<T, Vec<String>>,
    ) -> Option<T> {
        let messages = match result {
            Ok(value) => return Some(value),
            Err(messages) => messages,
        };
        for message in messages {
            self.note(place, message);
        }
        None
    }

    pub(super) fn into_list(self) -> Vec<Problem> {
        self.0
    }
}

/// Parses every entry of a list of comma-separated lists.
pub(super) fn each<T>(
    list: &[String],
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, Vec<String>> {
    let mut values = Vec::new();
    let mut messages = Vec::new();
    for entry in list.iter().flat_map(|text| text.split(',')).map(str::trim) {
        if entry.is_empty() {
            messages.push("an entry is empty; fill it, or remove its comma".to_owned());
            continue;
        }
        match parse(entry) {
            Ok(value) => values.push(value),
            Err(message) => messages.push(message),
        }
    }
    if messages.is_empty() {
        Ok(values)
    } else {
        Err(messages)
    }
}
