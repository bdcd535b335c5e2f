//! The forms in which schedules and periods leave AWS Instance Scheduler: its `DynamoDB` table,
//! exported to S3 or scanned, and the output of its `scheduler-cli`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{exit::UsageError, import::Source};

/// A schedule, a period or a setting.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    /// `schedule`, `period`, `config`, or any other type.
    pub(super) kind: String,
    pub(super) name: String,
    /// The original name and the value of each field. The key is the name in lower case without
    /// separators, so that `begin_time` and `BeginTime` are the same.
    fields: BTreeMap<String, (String, Value)>,
}

/// Reads all items of a file: one JSON document, or several in a row.
pub(super) fn read(source: &Source) -> Result<Vec<Item>, UsageError> {
    let file = &source.name;
    // Windows marks UTF-8 text by this character.
    let text = source.text.trim_start_matches('\u{feff}');
    if !text.trim_start().is_empty() && !text.trim_start().starts_with(['{', '[']) {
        return Err(UsageError(format!(
            "{file} is not JSON: a CSV file from DynamoDB's console, for example, cannot be read; \
             write the table as JSON, `aws dynamodb scan --table-name TABLE --output json > \
             table.json`"
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
    const EXPECTED: &str = "is neither an export or scan of the scheduler's DynamoDB table nor \
                            output of scheduler-cli";
    let object = match document {
        Value::Array(documents) => {
            return documents.iter().try_for_each(|one| collect(one, items));
        }
        Value::Object(object) => object,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return Err(EXPECTED.to_owned());
        }
    };
    if let Some(error) = object.get("Error") {
        return Err(format!("holds an error of scheduler-cli: {error}"));
    }
    let found = items.len();
    // Items from a table carry their attribute types; those from the CLI do not.
    for (key, kind) in [
        ("Item", None),
        ("Items", None),
        ("Schedules", Some("schedule")),
        ("Schedule", Some("schedule")),
        ("Periods", Some("period")),
        ("Period", Some("period")),
    ] {
        match object.get(key) {
            Some(Value::Array(values)) => {
                for value in values.iter().filter_map(Value::as_object) {
                    items.push(item(value, kind)?);
                }
            }
            Some(Value::Object(value)) => items.push(item(value, kind)?),
            Some(_) | None => {}
        }
    }
    // An empty list is valid, too.
    let is_list = ["Items", "Schedules", "Periods"]
        .iter()
        .any(|key| object.get(*key).is_some_and(Value::is_array));
    if items.len() > found || is_list {
        return Ok(());
    }
    if object.contains_key("type") {
        items.push(item(object, None)?);
        return Ok(());
    }
    Err(EXPECTED.to_owned())
}

fn item(object: &Map<String, Value>, kind: Option<&str>) -> Result<Item, String> {
    let fields =
        object.iter().map(|(key, value)| (plain(key), (key.clone(), untyped(value)))).collect();
    let mut item = Item { kind: String::new(), name: String::new(), fields };
    let own_kind = item.text("type")?.map(|kind| kind.to_lowercase());
    item.kind = own_kind.or_else(|| kind.map(str::to_owned)).ok_or("an item has no `type`")?;
    item.name = item.text("name")?.ok_or("an item has no `name`")?;
    Ok(item)
}

fn plain(key: &str) -> String {
    let letters = key.chars().filter(|c| !matches!(c, '_' | '-'));
    letters.collect::<String>().to_lowercase()
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
        ("M", Value::Object(map)) => map.iter().map(|(k, v)| (k.clone(), untyped(v))).collect(),
        ("S" | "N" | "BOOL" | "SS" | "NS" | "B" | "BS", inner) => inner.clone(),
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
        match self.value(key) {
            None => Ok(None),
            Some((_, Value::String(text))) => Ok(Some(text.trim().to_owned())),
            Some((name, _)) => Err(format!("`{name}` is not a string")),
        }
    }

    /// A boolean, in either spelling. `None` if it is absent.
    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, String> {
        let Some((name, value)) = self.value(key) else {
            return Ok(None);
        };
        let text = value.as_str().map(str::to_lowercase);
        match (value, text.as_deref()) {
            (Value::Bool(flag), _) => Ok(Some(*flag)),
            (_, Some("true")) => Ok(Some(true)),
            (_, Some("false")) => Ok(Some(false)),
            _ => Err(format!("`{name}` is neither true nor false")),
        }
    }

    /// The entries of a list, or of a comma-separated string. `None` if it is absent or empty.
    pub(super) fn list(&self, key: &str) -> Result<Option<Vec<String>>, String> {
        let Some((name, value)) = self.value(key) else {
            return Ok(None);
        };
        let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
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
        Ok(Some(entries))
    }

    /// The names of fields that have a value and are not among `known`.
    pub(super) fn others<'i>(&'i self, known: &'i [&str]) -> impl Iterator<Item = &'i str> {
        let keys = self.fields.keys().filter(|key| !known.contains(&key.as_str()));
        keys.filter_map(|key| Some(self.value(key)?.0))
    }

    /// The original name, and the value if it is not empty.
    fn value(&self, key: &str) -> Option<(&str, &Value)> {
        let (name, value) = self.fields.get(key)?;
        let says_nothing = match value {
            Value::Null => true,
            Value::String(text) => text.trim().is_empty(),
            Value::Array(values) => values.is_empty(),
            Value::Object(object) => object.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        };
        (!says_nothing).then_some((name, value))
    }
}
