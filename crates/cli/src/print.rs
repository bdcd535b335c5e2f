//! What is printed in rows: for people as a table, for programs as JSON or CSV of the same value.

use indexmap::IndexMap;
use jiff::{Timestamp, tz::TimeZone};
use report::time::{local, short};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::{
    output::{self, Format, Style},
    table::{Cell, Column, table},
};

/// A type that is printed in rows.
pub(crate) trait Row: Serialize + JsonSchema {
    /// The columns of its table, in the order of the cells.
    const COLUMNS: &'static [Column];

    fn cells(&self, screen: &Screen) -> Vec<Cell>;
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

    /// Prints rows; for people, `nothing` in place of an empty table.
    pub(crate) fn rows<R: Row>(&self, rows: &[R], nothing: &str) -> anyhow::Result<()> {
        match self.format {
            Format::Json => output::print_json(rows),
            Format::Csv => Ok(output::print(&csv(rows)?)?),
            Format::Table if rows.is_empty() => Ok(output::print(&format!("{nothing}\n"))?),
            Format::Table => Ok(output::print(&self.table(rows))?),
        }
    }

    /// Renders rows as a table for people.
    pub(crate) fn table<R: Row>(&self, rows: &[R]) -> String {
        let cells: Vec<_> = rows.iter().map(|row| row.cells(self)).collect();
        table(self.style, R::COLUMNS, &cells)
    }
}

/// Renders rows as CSV: a column for each key of their JSON, and JSON where a value has parts.
pub(crate) fn csv(rows: &[impl Serialize]) -> anyhow::Result<String> {
    let mut records = Vec::new();
    for row in rows {
        let text = serde_json::to_string(row)?;
        records.push(serde_json::from_str::<IndexMap<String, Value>>(&text)?);
    }
    let mut keys: Vec<&String> = Vec::new();
    for key in records.iter().flat_map(IndexMap::keys) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    if !keys.is_empty() {
        writer.write_record(&keys)?;
    }
    for record in &records {
        let value = |key: &&String| match record.get(*key) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        };
        writer.write_record(keys.iter().map(value))?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

/// The word for a value of an enumeration, as programs read it.
pub(crate) fn word(value: &impl Serialize) -> String {
    let word = serde_json::to_value(value).unwrap_or_default();
    word.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Line {
        name: &'static str,
        until: Option<&'static str>,
        tags: Vec<&'static str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        more: Option<u32>,
    }

    #[test]
    fn csv_has_a_column_for_every_key_in_its_order() {
        let line = |name, more| Line { name, until: None, tags: vec!["a", "b\"c"], more };
        let text = csv(&[line("web, 1", None), line("two\nlines", Some(7))]).unwrap();
        insta::assert_snapshot!(text, @r#"
        name,until,tags,more
        "web, 1",,"[""a"",""b\""c""]",
        "two
        lines",,"[""a"",""b\""c""]",7
        "#);
        assert_eq!(csv(&Vec::<Line>::new()).unwrap(), "");
    }
}
