//! Rows as CSV.

use std::io;

pub use csv::Error;
use indexmap::IndexMap;
use serde::Serialize;
use serde_json::Value;

/// What makes a spreadsheet read a cell as a formula, if it comes first.
const BEFORE_FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// Renders rows: a column for each key of their JSON, and JSON where a value has parts. A text that a
/// spreadsheet would read as a formula begins with an apostrophe: names and reasons come from outside.
pub fn csv(rows: &[impl Serialize]) -> Result<String, Error> {
    let record = |row| -> serde_json::Result<IndexMap<String, Value>> {
        serde_json::from_str(&serde_json::to_string(row)?)
    };
    let records: Vec<_> =
        rows.iter().map(record).collect::<Result<_, _>>().map_err(io::Error::from)?;
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
            Some(Value::String(text)) if text.starts_with(BEFORE_FORMULA) => format!("'{text}"),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        };
        writer.write_record(keys.iter().map(value))?;
    }
    let written = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
    Ok(String::from_utf8(written).map_err(io::Error::other)?)
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
    fn no_text_is_a_formula() {
        let line = |name| Line { name, until: Some("web-1 = @"), tags: Vec::new(), more: None };
        let text = csv(&["=1+1", "+1", "-1", "@SUM(1)", "\tx", "'x"].map(line)).unwrap();
        let names: Vec<_> = text.lines().skip(1).filter_map(|row| row.split(',').next()).collect();
        assert_eq!(names, ["'=1+1", "'+1", "'-1", "'@SUM(1)", "'\tx", "'x"]);
        assert!(text.contains(",web-1 = @,"), "{text}");
        assert_eq!(csv(&[serde_json::json!({ "saved": -1.5 })]).unwrap(), "saved\n-1.5\n");
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
