//! Reads the bodies of changes.

use domain::configuration::Provider;
use serde_json::{Map, Value, json};

use super::Result;
use crate::{
    answer::Refusal,
    labels::{self, Labels},
    routes::Call,
};

pub(super) fn invalid(message: impl Into<String>) -> Refusal {
    Refusal::new(422, "invalid_input", message)
}

/// Parses the body of a change, which may have no keys other than these: Hetzner refuses unknown
/// ones.
pub(super) fn body(call: &Call<'_>, keys: &str) -> Result<Map<String, Value>> {
    let parsed = serde_json::from_str(&call.incoming.request.body);
    let Ok(Value::Object(body)) = parsed else {
        return Err(Refusal::of_status(Provider::Hetzner, 400));
    };
    if let Some(key) = body.keys().find(|key| !keys.split(' ').any(|known| known == *key)) {
        return Err(invalid(format!("unknown field \"{key}\"")));
    }
    Ok(body)
}

pub(super) fn number(body: &Map<String, Value>, key: &str) -> Result<u64> {
    let value = body.get(key).and_then(Value::as_u64);
    value.ok_or_else(|| missing(key))
}

pub(super) fn missing(key: &str) -> Refusal {
    Refusal {
        details: json!({"fields": [{"name": key, "messages": ["is required"]}]}),
        ..Refusal::of_status(Provider::Hetzner, 422)
    }
}

/// Reads a list of numbers that may be left out.
pub(super) fn numbers(body: &Map<String, Value>, key: &str) -> Vec<u64> {
    let list = body.get(key).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_u64).collect()
}

pub(super) fn text(body: &Map<String, Value>, key: &str) -> Option<String> {
    match body.get(key)? {
        Value::String(text) => Some(text.clone()),
        // Hetzner's own clients send an id as a number, which HZSPEC does not allow.
        Value::Number(id) => Some(id.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

pub(super) fn flag(body: &Map<String, Value>, key: &str, usual: bool) -> bool {
    body.get(key).and_then(Value::as_bool).unwrap_or(usual)
}

/// Parses labels, which replace all of the current ones (HZSPEC).
pub(super) fn labels(body: &Map<String, Value>) -> Result<Option<Labels>> {
    let Some(given) = body.get("labels") else {
        return Ok(None);
    };
    let labels: Labels = serde_json::from_value(given.clone()).map_err(|_| missing("labels"))?;
    let fits = |(key, value): (&String, &String)| labels::is_key(key) && labels::is_value(value);
    invalid("invalid label").when(!labels.iter().all(fits))?;
    Ok(Some(labels))
}
