//! Responses, and how each cloud words a refusal.

use std::collections::BTreeMap;

use domain::configuration::Provider;
use jiff::Timestamp;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::catalog;

/// Formats an instant as both clouds do: to the second.
pub(crate) fn timestamp(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A cloud's response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    pub status: u16,
    /// The headers, such as content type, rate limit and links, by lowercase name.
    pub headers: BTreeMap<String, String>,
    /// The body; empty if there was none.
    pub body: String,
}

impl Answer {
    pub(crate) fn empty(status: u16) -> Self {
        Self { status, headers: BTreeMap::new(), body: String::new() }
    }

    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::text(status, body.to_string())
    }

    /// A response whose body is sent as JSON.
    pub(crate) fn text(status: u16, body: String) -> Self {
        Self { body, ..Self::empty(status).with("content-type", &"application/json") }
    }

    pub(crate) fn with(mut self, name: &str, value: &impl ToString) -> Self {
        let name = name.to_ascii_lowercase();
        self.headers.insert(name, value.to_string());
        self
    }
}

/// Why a cloud refuses a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    /// `DigitalOcean`'s `id`, Hetzner's `code`.
    pub(crate) code: &'static str,
    pub(crate) message: String,
    /// Hetzner's `details`.
    pub(crate) details: Value,
    /// `DigitalOcean`'s `retry-after`, in seconds.
    pub(crate) retry_after: Option<i64>,
}

impl Refusal {
    pub(crate) fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), details: Value::Null, retry_after: None }
    }

    pub(crate) fn when(self, is_so: bool) -> Result<(), Self> {
        if is_so { Err(self) } else { Ok(()) }
    }

    /// `DigitalOcean`'s refusal of a request that it understands but will not carry out.
    pub(crate) fn unprocessable(message: impl Into<String>) -> Self {
        Self::new(422, "unprocessable_entity", message)
    }

    /// Parses a body, or a part of one, as `DigitalOcean` does. The wording for missing or
    /// malformed values is an assumption.
    pub(crate) fn parse<T: DeserializeOwned>(body: &Value) -> Result<T, Self> {
        T::deserialize(body).map_err(|error| Self::unprocessable(error.to_string()))
    }

    /// `DigitalOcean`'s refusal of an unknown id.
    pub(crate) fn not_found() -> Self {
        Self::of_status(Provider::DigitalOcean, 404)
    }

    /// The refusal with the cloud's usual code and message for a status.
    pub(crate) fn of_status(provider: Provider, status: u16) -> Self {
        let words = &catalog::REFUSALS[provider.to_string()];
        let words = words.get(status.to_string()).unwrap_or(&words["500"]);
        let word = |index: usize| words[index].as_str().unwrap_or_default();
        Self::new(status, word(0), word(1))
    }

    /// The response in the cloud's format. Only `DigitalOcean` includes `request_id`.
    pub(crate) fn answer(&self, provider: Provider, request_id: &str) -> Answer {
        let body = match provider {
            Provider::DigitalOcean => json!({
                "id": self.code,
                "message": self.message,
                "request_id": request_id,
            }),
            Provider::Hetzner => json!({"error": {
                "code": self.code,
                "message": self.message,
                "details": self.details,
            }}),
        };
        let answer = Answer::json(self.status, &body);
        match self.retry_after {
            Some(seconds) => answer.with("retry-after", &seconds),
            None => answer,
        }
    }
}
