//! Rows as CSV.

use indexmap::IndexMap;
use serde::Serialize;
use serde_json::Value;

/// Why rows could not be rendered.
#[derive(Debug, thiserror::Error)]
#[error("cannot render rows as CSV")]
pub struct CsvError(#[source] Box<dyn std::error::Error + Send + Sync>);

/// Renders rows: a column for each key of their JSON, and JSON where a value has parts.
pub fn csv(rows: &[impl Serialize]) -> Result<String, CsvError> {
    write(rows).map_err(CsvError)
}

fn write(rows: &[impl Serialize]) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
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
