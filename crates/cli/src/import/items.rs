//! The forms in which schedules and periods leave AWS Instance Scheduler: a scan of its `DynamoDB`
//! table, and the output of its `scheduler-cli`.

use std::{collections::BTreeMap, slice};

use serde_json::Value;

use super::Source;
use crate::exit::UsageError;

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

pub(super) fn read(sources: &[Source]) -> Result<Vec<Item>, UsageError> {
    let mut all = Vec::<Item>::new();
    for source in sources {
        let refused = |message: String| UsageError(format!("{} {message}", source.name));
        for item in items(&source.text).map_err(refused)? {
            let is_same = |other: &&Item| (&other.kind, &other.name) == (&item.kind, &item.name);
            match all.iter().find(is_same) {
                None => all.push(item),
                Some(other) if *other == item => {}
                Some(_) => {
                    let about = item.about();
                    return Err(refused(format!("has another {about} than an earlier file")));
                }
            }
        }
    }
    Ok(all)
}

/// The items of one JSON document, or of several in a row.
fn items(text: &str) -> Result<Vec<Item>, String> {
    // Windows marks UTF-8 text by this character.
    let text = text.trim_start_matches('\u{feff}');
    let mut items = Vec::new();
    for document in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        let document = document.map_err(|error| format!("is not JSON: {error}; {SCAN}"))?;
        let mut is_known = false;
        for (key, kind) in [
            ("Items", None),
            ("Schedules", Some("schedule")),
            ("Schedule", Some("schedule")),
            ("Periods", Some("period")),
            ("Period", Some("period")),
        ] {
            let Some(values) = document.get(key) else { continue };
            is_known = true;
            let values = values.as_array().map_or(slice::from_ref(values), Vec::as_slice);
            for value in values {
                items.push(item(value, kind)?);
            }
        }
        if !is_known {
            return Err(format!(
                "is neither a scan of the scheduler's DynamoDB table nor output of scheduler-cli; \
                 {SCAN}"
            ));
        }
    }
    Ok(items)
}

fn item(value: &Value, kind: Option<&str>) -> Result<Item, String> {
    let plain = |key: &str| key.replace(['_', '-'], "").to_lowercase();
    let fields = value.as_object().into_iter().flatten();
    let fields = fields.map(|(key, value)| (plain(key), (key.clone(), untyped(value))));
    let fields = fields.filter(|(_, (_, value))| !is_empty(value)).collect();
    let mut item = Item { kind: String::new(), name: String::new(), fields };
    let own_kind = item.text("type")?.map(|kind| kind.to_lowercase());
    let kind = own_kind.or_else(|| kind.map(str::to_owned));
    item.kind = kind.ok_or("has an item without a `type`")?;
    item.name = item.text("name")?.ok_or("has an item without a `name`")?;
    Ok(item)
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
