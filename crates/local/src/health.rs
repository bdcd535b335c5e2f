//! An address at which a probe asks whether the service works, and a monitor what it counted.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use anyhow::Context as _;
use axum::{
    Router,
    extract::{Path, Request, State},
    http::{HeaderMap, HeaderName, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
    routing::get,
};
use environment::in_words;
use page::Audience;
use tokio::net::TcpListener;

use crate::{metrics::CONTENT_TYPE, service::Service};

/// Answers `GET /`, `/healthz`, `/metrics` and `/calendar.ics` at an address, in the background.
/// Returns the address, with the port that was found for port 0. Who asks over a network gets the
/// public form of the page and of a calendar.
pub async fn listen(address: SocketAddr, service: &Arc<Service>) -> anyhow::Result<SocketAddr> {
    let cannot = || format!("cannot listen on {address}");
    let listener = TcpListener::bind(address).await.with_context(cannot)?;
    let address = listener.local_addr()?;
    let is_loopback = address.ip().is_loopback();
    let audience = if is_loopback { Audience::Operators } else { Audience::Public };
    let router = Router::new()
        .route("/", get(page))
        .route("/healthz", get(health))
        .route("/metrics", get(metrics))
        .route("/calendar.ics", get(calendar))
        .route("/calendar/{file}", get(calendar))
        .layer(middleware::from_fn(only_probes))
        .with_state((Arc::clone(service), audience));
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(address)
}

/// The service, and for whom it is shown.
type Shown = (Arc<Service>, Audience);

/// 200 while both timers work, otherwise 503.
async fn health(State((service, _)): State<Shown>) -> Response {
    if service.is_healthy() {
        (StatusCode::OK, "both timers work\n").into_response()
    } else {
        let text = "a timer has not ended well for three minutes\n";
        (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
    }
}

async fn metrics(State((service, _)): State<Shown>) -> Response {
    match service.metrics().await {
        Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(error) => {
            tracing::error!("Could not show the metrics: {}", in_words(error.as_ref()));
            StatusCode::SERVICE_UNAVAILABLE.into_response()
        }
    }
}

/// The page, which no browser or proxy keeps, and no search engine has.
async fn page(State((service, audience)): State<Shown>) -> Response {
    match service.page(audience).await {
        Ok(page) => {
            let headers = [
                (header::CONTENT_TYPE, "text/html; charset=utf-8"),
                (header::CONTENT_SECURITY_POLICY, page::POLICY),
                (header::CACHE_CONTROL, "no-store"),
                (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
                (HeaderName::from_static("x-robots-tag"), "noindex"),
            ];
            (headers, page).into_response()
        }
        Err(error) => {
            tracing::error!("Could not show the page: {}", in_words(error.as_ref()));
            StatusCode::SERVICE_UNAVAILABLE.into_response()
        }
    }
}

/// The calendar of all schedules, or of the one that the file is named after.
async fn calendar(
    State((service, audience)): State<Shown>,
    file: Option<Path<String>>,
) -> Response {
    let name = file.map(|Path(file)| file.strip_suffix(".ics").unwrap_or_default().parse());
    let Ok(only) = name.transpose() else {
        return StatusCode::NOT_FOUND.into_response();
    };
    match service.calendar(only.as_ref(), audience).await {
        Ok(Some(text)) => {
            ([(header::CONTENT_TYPE, "text/calendar; charset=utf-8")], text).into_response()
        }
        Ok(None) => StatusCode::NOT_FOUND.into_response(),
        Err(error) => {
            tracing::error!("Could not show a calendar: {}", in_words(error.as_ref()));
            StatusCode::SERVICE_UNAVAILABLE.into_response()
        }
    }
}

async fn only_probes(request: Request, next: Next) -> Response {
    if is_probe(request.headers()) {
        return next.run(request).await;
    }
    (StatusCode::FORBIDDEN, "ask for an address, and from no web page\n").into_response()
}

/// Whether a request comes from a probe: a page in a browser names its origin, and one that has a
/// name resolve to this machine sends that name.
fn is_probe(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let is_address = host.parse::<SocketAddr>().is_ok() || host.parse::<IpAddr>().is_ok();
    let is_local = host == "localhost" || host.starts_with("localhost:");
    !headers.contains_key(header::ORIGIN) && (is_address || is_local)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_probe_is_answered() {
        let asked = |host: &'static str, origin: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            is_probe(&headers)
        };
        for host in ["127.0.0.1:9464", "10.0.0.7", "[::1]:9464", "localhost:9464", "localhost"] {
            assert!(asked(host, None), "{host}");
        }
        assert!(!asked("rebound.example:9464", None));
        assert!(!asked("localhost.example", None));
        assert!(!asked("127.0.0.1:9464", Some("https://page.example")));
        assert!(!is_probe(&HeaderMap::new()));
    }
}
