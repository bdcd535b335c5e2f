//! An address at which a probe asks whether the service works, and a monitor what it counted.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use anyhow::Context as _;
use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
    routing::get,
};
use environment::in_words;
use tokio::net::TcpListener;

use crate::{metrics::CONTENT_TYPE, service::Service};

/// Answers `GET /healthz` and `GET /metrics` at an address, in the background. Returns the address,
/// with the port that was found for port 0.
pub async fn listen(address: SocketAddr, service: &Arc<Service>) -> anyhow::Result<SocketAddr> {
    let cannot = || format!("cannot listen on {address}");
    let listener = TcpListener::bind(address).await.with_context(cannot)?;
    let router = Router::new()
        .route("/healthz", get(health))
        .route("/metrics", get(metrics))
        .layer(middleware::from_fn(only_probes))
        .with_state(Arc::clone(service));
    let address = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(address)
}

/// 200 while both timers work, otherwise 503.
async fn health(State(service): State<Arc<Service>>) -> Response {
    if service.is_healthy() {
        (StatusCode::OK, "both timers work\n").into_response()
    } else {
        let text = "a timer has not ended well for three minutes\n";
        (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
    }
}

async fn metrics(State(service): State<Arc<Service>>) -> Response {
    match service.metrics().await {
        Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(error) => {
            tracing::error!("Could not show the metrics: {}", in_words(error.as_ref()));
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
