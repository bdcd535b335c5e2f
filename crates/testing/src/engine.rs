//! An embedded engine that other processes reach, and what a person's command does with its tables.

use std::net::SocketAddr;

use axum::{
    Router,
    body::Bytes,
    extract::DefaultBodyLimit,
    http::{HeaderMap, StatusCode},
};
use domain::{
    activity::{Action, Author},
    configuration::Override,
};
use jiff::Timestamp;
use local::engine::{Engine, operation};
use store::{OverrideError, Store};
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

/// Sets an override in place of any that its target has, and makes due what it concerns.
pub async fn set_override(
    store: &Store,
    one: &Override,
    now: Timestamp,
) -> Result<(), OverrideError> {
    let overrides = store.head_and_overrides().await?.overrides;
    let set = Author::from(&*one.by).does(Action::set(one), now);
    store.replace_override(one, overrides.get(&one.target), &set).await?;
    Ok(store.make_target_due(&one.target, now).await?)
}
