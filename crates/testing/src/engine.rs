//! Two ways to access the tables on an embedded engine: through the store, and bypassing it; and
//! what a person's command does with them.

use std::net::SocketAddr;

use aws_sdk_dynamodb::Client;
use domain::{
    activity::{Action, Author},
    configuration::Override,
};
use environment::aws::{SdkConfig, local_config};
use jiff::Timestamp;
use store::{OverrideError, Store, Tables};

/// The store on an engine.
#[must_use]
pub fn store_on(engine: SocketAddr, tables: Tables) -> Store {
    Store::connect(&config(engine), tables)
}

/// A client of the engine itself, bypassing the store.
#[must_use]
pub fn client_of(engine: SocketAddr) -> Client {
    Client::new(&config(engine))
}

pub(crate) fn config(engine: SocketAddr) -> SdkConfig {
    local_config(&format!("http://{engine}"))
}

/// Sets an override in place of any that its target has, and makes due what it concerns.
pub async fn set_override(
    store: &Store,
    one: &Override,
    now: Timestamp,
) -> Result<(), OverrideError> {
    let overrides = store.head_and_overrides().await?.overrides;
    let set = Author::from(&*one.by).does(Action::set(one), now);
    store
        .replace_override(one, overrides.of(&one.target), &set)
        .await?;
    Ok(store.make_target_due(&one.target, now).await?)
}
