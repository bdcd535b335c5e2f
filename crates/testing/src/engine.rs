//! An embedded engine that other processes reach.

use std::net::SocketAddr;

use axum::{
    Router,
    body::Bytes,
    extract::DefaultBodyLimit,
    http::{HeaderMap, StatusCode},
};
use local::engine::{Engine, operation};
use tokio::net::TcpListener;

/// Serves an engine on loopback in the background, and returns the address.
pub async fn serve(engine: Engine) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().fallback(async move |headers: HeaderMap, body: String| {
        // Other services of AWS are not here.
        let Some(target) = headers.get("x-amz-target") else {
            return (StatusCode::NOT_FOUND, Bytes::new());
        };
        let (status, body) = engine.answer(operation(target.to_str().unwrap()), &body);
        (StatusCode::from_u16(status).unwrap(), body)
    });
    let router = router.layer(DefaultBodyLimit::disable());
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}
