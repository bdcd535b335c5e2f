//! A request as it arrived.

use std::fmt;

use axum::{
    body::Bytes,
    http::{HeaderMap, Method, header, request::Parts},
};
use domain::configuration::Provider;
use serde_json::Value;

/// A request to one of the clouds.
#[derive(Clone)]
pub(crate) struct Incoming {
    pub(crate) method: Method,
    pub(crate) path: String,
    /// The query as it was written.
    pub(crate) query: String,
    pub(crate) content_type: Option<String>,
    /// The scheme and host under which the simulator was called, for links.
    pub(crate) origin: String,
    pub(crate) body: Bytes,
    token: Option<String>,
}

// Without the token and the body.
impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}?{}", self.method, self.path, self.query)
    }
}

impl Incoming {
    pub(crate) fn new(parts: &Parts, body: Bytes) -> Self {
        let text = |name| text_of(&parts.headers, name);
        let token = text(header::AUTHORIZATION)
            .and_then(|value| value.strip_prefix("Bearer ").map(str::to_owned));
        Self {
            method: parts.method.clone(),
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            content_type: text(header::CONTENT_TYPE),
            origin: format!("http://{}", text(header::HOST).unwrap_or_default()),
            body,
            token,
        }
    }

    /// The cloud that the path belongs to.
    pub(crate) fn provider(&self) -> Provider {
        if self.path == "/v1" || self.path.starts_with("/v1/") {
            Provider::Hetzner
        } else {
            Provider::DigitalOcean
        }
    }

    /// The bearer token, if the request carries one.
    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// The path's parts after the version: `["droplets", "1"]`.
    pub(crate) fn segments(&self) -> Vec<&str> {
        self.path.split('/').skip(2).collect()
    }

    /// Whether it asks for a change.
    pub(crate) fn is_change(&self) -> bool {
        self.method != Method::GET && self.method != Method::HEAD
    }

    /// The body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Result<Value, serde_json::Error> {
        serde_json::from_slice(&self.body)
    }

    /// Every pair of the query, decoded.
    pub(crate) fn pairs(&self) -> Vec<(String, String)> {
        form_urlencoded::parse(self.query.as_bytes())
            .into_owned()
            .collect()
    }

    /// The first value of a query parameter.
    pub(crate) fn parameter(&self, name: &str) -> Option<String> {
        self.pairs()
            .into_iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value)
    }

    /// All values of a repeated query parameter.
    pub(crate) fn parameters(&self, name: &str) -> Vec<String> {
        let of_name = |(key, value): (String, String)| (key == name).then_some(value);
        self.pairs().into_iter().filter_map(of_name).collect()
    }
}

fn text_of(headers: &HeaderMap, name: header::HeaderName) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}
