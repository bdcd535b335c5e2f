//! Two ways to access the tables on an embedded engine: through the store, and bypassing it.

use std::net::SocketAddr;

use aws_sdk_dynamodb::Client;
use environment::aws::{SdkConfig, local_config};
use store::{Store, Tables};

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
