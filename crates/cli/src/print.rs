//! What is printed in rows: for people as a table, for programs as JSON or CSV of the same value.

use domain::configuration::Overrides;
use jiff::{Timestamp, tz::TimeZone};
use report::{
    csv::csv,
    pausing,
    time::{local, short},
};
use schemars::JsonSchema;
use serde::Serialize;

pub(crate) use crate::table::Cell;
use crate::{
    exit::UsageError,
    output::{self, Format, Style},
    table::{self, table},
    time::{Asked, Reader, When},
};

pub(crate) type Column<R> = table::Column<R, Screen>;

/// A type that is printed in rows.
pub(crate) trait Row: Sized + Serialize + JsonSchema + 'static {
    const COLUMNS: &'static [Column<Self>];
}

/// How and when something is shown.
#[derive(Debug, Clone)]
pub(crate) struct Screen {
    pub(crate) format: Format,
    pub(crate) style: Style,
    pub(crate) zone: TimeZone,
    pub(crate) now: Timestamp,
}

impl Screen {
    #[cfg(test)]
    pub(crate) fn plain(zone: &TimeZone, now: Timestamp) -> Self {
        Self { format: Format::Table, style: Style::PLAIN, zone: zone.clone(), now }
    }

    /// An instant, as briefly as the present allows.
    pub(crate) fn time(&self, at: Timestamp) -> String {
        short(at, &self.zone, self.now)
    }

    pub(crate) fn date(&self, at: Timestamp) -> String {
        local(at, &self.zone)
    }

    pub(crate) fn instant(&self, when: &When, asked: Asked) -> Result<Timestamp, UsageError> {
        let reader = Reader { now: self.now, zone: &self.zone, schedule: None };
        when.resolve(asked, reader).map_err(|error| UsageError(error.to_string()))
    }

    /// Says, above what a command prints for people, what is paused.
    pub(crate) fn remark_on_pauses(&self, overrides: &Overrides) {
        if self.format == Format::Table {
            output::remarks(&pausing::lines(overrides, &self.zone, self.now));
        }
    }

    /// Prints rows; for people, `nothing` in place of an empty table.
    pub(crate) fn rows<R: Row>(&self, rows: &[R], nothing: &str) -> anyhow::Result<()> {
        match self.format {
            Format::Json => output::print_json(rows),
            Format::Csv => Ok(output::print(&csv(rows)?)?),
            Format::Table if rows.is_empty() => Ok(output::print(&format!("{nothing}\n"))?),
            Format::Table => Ok(output::print(&self.table(rows))?),
        }
    }

    pub(crate) fn table<R: Row>(&self, rows: &[R]) -> String {
        self.table_of(R::COLUMNS, rows)
    }

    pub(crate) fn table_of<R>(&self, columns: &[Column<R>], rows: &[R]) -> String {
        table(self.style, columns, rows, self)
    }
}

/// The word for a value of an enumeration, as programs read it.
pub(crate) fn word(value: &impl Serialize) -> String {
    let word = serde_json::to_value(value).unwrap_or_default();
    word.as_str().unwrap_or_default().to_owned()
}
