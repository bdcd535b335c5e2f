//! An address at which a container's or a monitor's probe asks whether the service works.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use anyhow::Context as _;
use axum::{
    Router,
    http::{HeaderMap, StatusCode, header},
    routing::get,
};
use tokio::net::TcpListener;

use crate::service::Service;

/// Answers `GET /healthz` at an address, in the background: 200 while both timers work, otherwise
/// 503. Returns the address, with the port that was found for port 0.
pub async fn listen(address: SocketAddr, service: &Arc<Service>) -> anyhow::Result<SocketAddr> {
    let cannot = || format!("cannot listen on {address}");
    let listener = TcpListener::bind(address).await.with_context(cannot)?;
    let service = Arc::clone(service);
    let answer = async move |headers: HeaderMap| {
        if !is_probe(&headers) {
            (StatusCode::FORBIDDEN, "ask for an address, and from no web page\n")
        } else if service.is_healthy() {
            (StatusCode::OK, "both timers work\n")
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, "a timer has not ended well for three minutes\n")
        }
    };
    let router = Router::new().route("/healthz", get(answer));
    let address = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(address)
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
