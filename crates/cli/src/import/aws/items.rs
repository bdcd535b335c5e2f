//! The forms in which schedules and periods leave AWS Instance Scheduler: a scan of its `DynamoDB`
//! table, and the output of its `scheduler-cli`.

use std::{collections::BTreeMap, slice};

use serde_json::Value;

use crate::{exit::UsageError, import::Source};

const SCAN: &str = "write the table as JSON, `aws dynamodb scan --table-name TABLE --output json > \
                    table.json`";

/// A schedule, a period or a setting.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    /// `schedule`, `period`, `config`, or any other type.
    pub(super) kind: String,
    pub(super) name: String,
    /// The original name and the value of each field that has one. The key is the name in lower case
    /// without separators, so that `begin_time` and `BeginTime` are the same.
    fields: BTreeMap<String, (String, Value)>,
}

/// Reads all items of a file: one JSON document, or several in a row.
pub(super) fn read(source: &Source) -> Result<Vec<Item>, UsageError> {
    let file = &source.name;
    // Windows marks UTF-8 text by this character.
    let text = source.text.trim_start_matches('\u{feff}').trim_start();
    if !text.is_empty() && !text.starts_with(['{', '[']) {
        return Err(UsageError(format!(
            "{file} is not JSON: a CSV file from DynamoDB's console, for example, cannot be read; \
             {SCAN}"
        )));
    }
    let mut items = Vec::new();
    for document in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        let document =
            document.map_err(|error| UsageError(format!("{file} is not JSON: {error}")))?;
        collect(&document, &mut items)
            .map_err(|message| UsageError(format!("{file}: {message}")))?;
    }
    Ok(items)
}

fn collect(document: &Value, items: &mut Vec<Item>) -> Result<(), String> {
    if let Some(error) = document.get("Error") {
        return Err(format!("holds an error of scheduler-cli: {error}"));
    }
    let mut is_known = false;
    for (key, kind) in [
        ("Items", None),
        ("Schedules", Some("schedule")),
        ("Schedule", Some("schedule")),
        ("Periods", Some("period")),
        ("Period", Some("period")),
    ] {
        let values = match document.get(key) {
            Some(Value::Array(values)) => values.as_slice(),
            Some(value) => slice::from_ref(value),
            None => continue,
        };
        is_known = true;
        for value in values {
            items.push(item(value, kind)?);
        }
    }
    let unknown = || {
        format!(
            "is neither a scan of the scheduler's DynamoDB table nor output of scheduler-cli; {SCAN}"
        )
    };
    is_known.then_some(()).ok_or_else(unknown)
}

fn item(value: &Value, kind: Option<&str>) -> Result<Item, String> {
    let fields = value.as_object().into_iter().flatten();
    let fields = fields.map(|(key, value)| (plain(key), (key.clone(), untyped(value))));
    let fields = fields.filter(|(_, (_, value))| !is_empty(value)).collect();
    let mut item = Item { kind: String::new(), name: String::new(), fields };
    let own_kind = item.text("type")?.map(|kind| kind.to_lowercase());
    item.kind = own_kind.or_else(|| kind.map(str::to_owned)).ok_or("an item has no `type`")?;
    item.name = item.text("name")?.ok_or("an item has no `name`")?;
    Ok(item)
}

fn plain(key: &str) -> String {
    key.replace(['_', '-'], "").to_lowercase()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Object(object) => object.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A value without the type with which `DynamoDB` wraps it.
fn untyped(value: &Value) -> Value {
    let single = value.as_object().filter(|object| object.len() == 1);
    let Some((kind, inner)) = single.and_then(|object| object.iter().next()) else {
        return value.clone();
    };
    match (kind.as_str(), inner) {
        ("NULL", _) => Value::Null,
        ("L", Value::Array(values)) => values.iter().map(untyped).collect(),
        ("S" | "N" | "BOOL" | "SS" | "NS", inner) => inner.clone(),
        _ => value.clone(),
    }
}

impl Item {
    /// The item's name in messages.
    pub(super) fn about(&self) -> String {
        format!("{} {}", self.kind, self.name)
    }

    /// A string. `None` if it is absent or empty.
    pub(super) fn text(&self, key: &str) -> Result<Option<String>, String> {
        match self.fields.get(key) {
            None => Ok(None),
            Some((_, Value::String(text))) => Ok(Some(text.trim().to_owned())),
            Some((name, _)) => Err(format!("`{name}` is not a string")),
        }
    }

    /// A boolean, in either spelling. `None` if it is absent.
    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, String> {
        let Some((name, value)) = self.fields.get(key) else {
            return Ok(None);
        };
        let flag = value.as_bool().or_else(|| value.as_str()?.to_lowercase().parse().ok());
        flag.map(Some).ok_or_else(|| format!("`{name}` is neither true nor false"))
    }

    /// The entries of a list, or of a comma-separated string.
    pub(super) fn list(&self, key: &str) -> Result<Vec<String>, String> {
        let Some((name, value)) = self.fields.get(key) else {
            return Ok(Vec::new());
        };
        let values = value.as_array().map_or(slice::from_ref(value), Vec::as_slice);
        let mut entries = Vec::new();
        for value in values {
            match value {
                Value::String(text) => entries.extend(text.split(',').map(|e| e.trim().to_owned())),
                Value::Number(number) => entries.push(number.to_string()),
                Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                    return Err(format!("`{name}` is not a list of strings"));
                }
            }
        }
        Ok(entries)
    }

    /// The names of fields that are not among `known`, which are separated by spaces, and that are
    /// not off.
    pub(super) fn others(&self, known: &str) -> Vec<String> {
        let is_other = |key: &str| {
            !known.split(' ').any(|one| one == key) && self.flag(key) != Ok(Some(false))
        };
        let others = self.fields.iter().filter(|(key, _)| is_other(key));
        others.map(|(_, (name, _))| format!("`{name}`")).collect()
    }
}
