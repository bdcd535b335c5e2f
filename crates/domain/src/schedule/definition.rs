//! A schedule as its author wrote it, and what may be wrong with it.

use std::fmt;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(feature = "schema")]
use crate::schema::{self, OneOrMore, OneOrSeveral};

use super::Desired;

/// A schedule as its author wrote it, which is also how it is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Definition {
    /// The IANA name of the time zone in which the schedule's days and times are judged. Default:
    /// the time zone at the top of the file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "schema::TimeZone", extend("examples" = ["Europe/Berlin", "UTC"])))]
    pub timezone: String,
    /// When to run: in any of these windows. Cannot be combined with `start`, `stop` and `state`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub periods: Vec<PeriodDefinition>,
    /// When to start, as a cron expression of five fields in the schedule's time zone: minute,
    /// hour, day of month, month, day of week. Used instead of `periods`, with `stop` or alone:
    /// then running is desired until midnight, and either state will do after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "schema::Cron", extend("examples" = ["0 8 * * mon-fri"])))]
    pub start: Option<String>,
    /// When to stop, as a cron expression of five fields in the schedule's time zone. Used with
    /// `start` or alone: then stopped is desired until midnight, and either state will do after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "schema::Cron", extend("examples" = ["0 19 * * *"])))]
    pub stop: Option<String>,
    /// The state that is always desired, instead of `periods`, `start` and `stop`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("examples" = ["stopped"])))]
    pub state: Option<Desired>,
    /// Days on which nothing starts, in addition to those at the top of the file: YYYY-MM-DD for one
    /// year, MM-DD for every year, with .. for ranges, or `file:NAME` for a list beside the
    /// configuration. An empty list leaves out those at the top as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "OneOrSeveral<schema::Holidays>", extend("examples" = [["2026-12-24..2026-12-26", "01-01"]])))]
    pub holidays: Vec<String>,
}

/// A window of time that begins on the days that match all given fields. An empty table, {}, is
/// every whole day.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(JsonSchema),
    schemars(rename = "period", deny_unknown_fields)
)]
pub struct PeriodDefinition {
    /// Days of the week: mon to sun, ranges that wrap (fri-mon), mon#1 (the first Monday of the
    /// month), friL (the last Friday). Separate several with commas, or use a list.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "one_or_several")]
    #[cfg_attr(feature = "schema", schemars(with = "OneOrMore<schema::Weekdays>", extend("examples" = ["mon-fri"])))]
    pub weekdays: Vec<String>,
    /// Days of the month: 1 to 31, ranges that wrap (25-31, 28-L), steps (1/10), L (the last day),
    /// 15W (the weekday nearest to the 15th). Separate several with commas, or use a list.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "one_or_several")]
    #[cfg_attr(feature = "schema", schemars(with = "OneOrMore<schema::Monthdays>", extend("examples" = ["1-7", "L"])))]
    pub monthdays: Vec<String>,
    /// Months: jan to dec or 1 to 12, ranges that wrap (nov-feb), steps (1/3). Separate several
    /// with commas, or use a list.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "one_or_several")]
    #[cfg_attr(feature = "schema", schemars(with = "OneOrMore<schema::Months>", extend("examples" = ["nov-feb"])))]
    pub months: Vec<String>,
    /// The first day on which the window may begin, as YYYY-MM-DD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "schema::Date", extend("examples" = ["2026-12-01"])))]
    pub from: Option<String>,
    /// The last day on which the window may begin, as YYYY-MM-DD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "schema::Date", extend("examples" = ["2027-02-28"])))]
    pub until: Option<String>,
    /// The IANA name of the time zone in which the period's days and times are judged. Default: the
    /// schedule's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "schema::TimeZone", extend("examples" = ["America/New_York"])))]
    pub timezone: Option<String>,
    /// When the window begins, as HH:MM. Without `end`, running is desired from then until
    /// midnight, and before it either state will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "schema::Begin", extend("examples" = ["08:00"])))]
    pub begin: Option<String>,
    /// When the window ends, as HH:MM up to 24:00; if not after `begin`, on the next day. Without
    /// `begin`, stopped is desired from then until midnight, and before it either state will do; at
    /// 24:00, until 06:00 of the next day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "schema::End", extend("examples" = ["19:00"])))]
    pub end: Option<String>,
}

impl Definition {
    /// Returns the name of the time zone that is at this place; `None` at any other.
    pub(super) fn zone_at(&self, place: Place) -> Option<&str> {
        match place {
            Place::Timezone => Some(&self.timezone),
            Place::PeriodField(index, PeriodField::Timezone) => {
                self.periods.get(index)?.timezone.as_deref()
            }
            Place::Schedule
            | Place::Period(_)
            | Place::PeriodField(..)
            | Place::Holiday(_)
            | Place::Start
            | Place::Stop => None,
        }
    }
}

/// Represents one text as it is, and several as a list.
mod one_or_several {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        texts: &[String],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match texts {
            [one] => one.serialize(serializer),
            several => several.serialize(serializer),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<String>, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Texts {
            One(String),
            Several(Vec<String>),
        }
        Ok(match Texts::deserialize(deserializer)? {
            Texts::One(one) => vec![one],
            Texts::Several(several) => several,
        })
    }
}

/// Something wrong with a definition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct Problem {
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
    PeriodField(usize, PeriodField),
    /// One of the entries of `holidays`.
    Holiday(usize),
    /// `start`
    Start,
    /// `stop`
    Stop,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum PeriodField {
    Weekdays,
    Monthdays,
    Months,
    From,
    Until,
    Timezone,
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

/// The problems found so far: all of them are reported at once.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<Problem>);

impl Problems {
    pub(super) fn note(&mut self, place: Place, message: impl Into<String>) {
        self.0.push(Problem { place, message: message.into() });
    }

    /// Returns the value, or `None` after recording what is wrong with it.
    pub(super) fn take<T>(&mut self, place: Place, result: Result<T, String>) -> Option<T> {
        result.map_err(|message| self.note(place, message)).ok()
    }

    /// Does the same for a list, whose entries may each be wrong.
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
    if messages.is_empty() { Ok(values) } else { Err(messages) }
}
