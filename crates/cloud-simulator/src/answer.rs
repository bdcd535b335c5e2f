//! Answers, and how each cloud words a refusal.

use domain::configuration::Provider;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// An instant as both clouds write it: to the second.
pub(crate) fn timestamp(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// An answer before it is sent.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<String>,
    pub(crate) content_type: &'static str,
}

impl Answer {
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::text(status, body.to_string(), "application/json")
    }

    pub(crate) fn text(status: u16, body: String, content_type: &'static str) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Some(body),
            content_type,
        }
    }

    pub(crate) fn empty(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: None,
            content_type: "application/json",
        }
    }

    pub(crate) fn with(mut self, name: &str, value: &impl ToString) -> Self {
        self.headers.push((name.to_owned(), value.to_string()));
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
}

impl Refusal {
    pub(crate) fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            details: Value::Null,
        }
    }

    /// `DigitalOcean`'s answer to what it understands and will not do.
    pub(crate) fn unprocessable(message: impl Into<String>) -> Self {
        Self::new(422, "unprocessable_entity", message)
    }

    /// A body or part of it, as `DigitalOcean` understands it; what it refuses and how is an
    /// assumption.
    pub(crate) fn parse<T: DeserializeOwned>(body: &Value) -> Result<T, Self> {
        T::deserialize(body).map_err(|error| Self::unprocessable(error.to_string()))
    }

    /// `DigitalOcean`'s answer to an id that it does not know.
    pub(crate) fn not_found() -> Self {
        Self::of_status(Provider::DigitalOcean, 404)
    }

    /// Each cloud's usual words for a status.
    pub(crate) fn of_status(provider: Provider, status: u16) -> Self {
        let (code, message) = match provider {
            Provider::DigitalOcean => digitalocean_words(status),
            Provider::Hetzner => hetzner_words(status),
        };
        Self::new(status, code, message)
    }

    /// The answer in the cloud's form. `request_id` is `DigitalOcean`'s.
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
        Answer::json(self.status, &body)
    }
}

/// The `id`s of DOSPEC where it names them; the others are assumptions.
fn digitalocean_words(status: u16) -> (&'static str, &'static str) {
    match status {
        400 => ("bad_request", "The request could not be understood."),
        401 => ("unauthorized", "Unable to authenticate you."),
        403 => (
            "forbidden",
            "You do not have access for the attempted action.",
        ),
        404 => (
            "not_found",
            "The resource you requested could not be found.",
        ),
        405 => (
            "method_not_allowed",
            "The method is not allowed for this resource.",
        ),
        409 => (
            "conflict",
            "The resource is being changed by another request.",
        ),
        412 => (
            "precondition_failed",
            "The resource is not in a state that allows this.",
        ),
        415 => (
            "unsupported_media_type",
            "The body must be sent as application/json.",
        ),
        422 => ("unprocessable_entity", "request payload validation failed"),
        429 => ("too_many_requests", "API rate limit exceeded."),
        503 => (
            "service_unavailable",
            "The service is temporarily unavailable.",
        ),
        _ => ("server_error", "Unexpected server-side error"),
    }
}

/// The codes of HZSPEC2's table; 415 is an assumption.
fn hetzner_words(status: u16) -> (&'static str, &'static str) {
    match status {
        400 => ("json_error", "the body is not valid JSON"),
        401 => ("unauthorized", "unable to authenticate"),
        403 => ("forbidden", "insufficient permissions for this request"),
        404 => ("not_found", "resource not found"),
        405 => ("method_not_allowed", "method not allowed"),
        409 => (
            "conflict",
            "the resource has changed during the request, please retry",
        ),
        410 => ("deprecated_api_endpoint", "API functionality was removed"),
        412 => (
            "resource_unavailable",
            "the requested resource is currently unavailable",
        ),
        415 => ("unsupported_media_type", "this request takes no body"),
        422 => ("invalid_input", "invalid input"),
        423 => (
            "locked",
            "cannot perform operation because resource is locked",
        ),
        429 => ("rate_limit_exceeded", "limit of requests per hour reached"),
        502 => ("bad_gateway", "bad gateway"),
        503 => ("unavailable", "service unavailable"),
        504 => ("timeout", "request timeout"),
        _ => ("server_error", "an error occurred"),
    }
}
