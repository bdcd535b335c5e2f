//! A request as it arrived.

use axum::{
    body::Bytes,
    http::{header, request::Parts},
};
use domain::configuration::Provider;
use serde::Serialize;

/// A request as the client sent it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Request {
    /// The method, in uppercase.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The raw query, without the question mark.
    pub query: String,
    /// The `Content-Type` header.
    pub content_type: Option<String>,
    /// Whether it carried a bearer token.
    pub authorization: bool,
    /// The body; empty if there was none.
    pub body: String,
}

/// A request to one of the clouds, with the parts that are not logged.
#[derive(Clone)]
pub(crate) struct IncomingRequest {
    pub(crate) request: Request,
    /// The scheme and host that the client used, for building links.
    pub(crate) origin: String,
    /// The bearer token, if the request carries one.
    pub(crate) token: Option<String>,
}

impl IncomingRequest {
    pub(crate) fn new(parts: &Parts, body: &Bytes) -> Self {
        let text = |name| {
            let value = parts.headers.get::<header::HeaderName>(name)?.to_str();
            value.ok().map(str::to_owned)
        };
        let token = text(header::AUTHORIZATION)
            .and_then(|value| value.strip_prefix("Bearer ").map(str::to_owned));
        Self {
            request: Request {
                method: parts.method.to_string(),
                path: parts.uri.path().to_owned(),
                query: parts.uri.query().unwrap_or_default().to_owned(),
                content_type: text(header::CONTENT_TYPE),
                authorization: token.is_some(),
                body: String::from_utf8_lossy(body).into_owned(),
            },
            origin: format!("http://{}", text(header::HOST).unwrap_or_default()),
            token,
        }
    }
}

impl Request {
    /// The cloud that the path belongs to.
    pub(crate) fn provider(&self) -> Provider {
        if self.path == "/v1" || self.path.starts_with("/v1/") {
            Provider::Hetzner
        } else {
            Provider::DigitalOcean
        }
    }

    /// The path segments after the version: `["droplets", "1"]`.
    pub(crate) fn segments(&self) -> Vec<&str> {
        self.path.split('/').skip(2).collect()
    }

    pub(crate) fn is_change(&self) -> bool {
        self.method != "GET" && self.method != "HEAD"
    }

    pub(crate) fn pairs(&self) -> Vec<(String, String)> {
        form_urlencoded::parse(self.query.as_bytes()).into_owned().collect()
    }

    pub(crate) fn parameter(&self, name: &str) -> Option<String> {
        self.parameters(name).into_iter().next()
    }

    pub(crate) fn parameters(&self, name: &str) -> Vec<String> {
        let of_name = |(key, value): (String, String)| (key == name).then_some(value);
        self.pairs().into_iter().filter_map(of_name).collect()
    }
}
