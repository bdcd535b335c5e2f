//! An embedded DynamoDB engine, spoken to over its protocol like the real one.

use std::{net::SocketAddr, path::Path};

use anyhow::Context as _;
use dynoxide::Database;
use tokio::net::TcpListener;

/// Serves the engine in the background and says where it listens. Without a file, what it holds
/// ends with the process.
pub async fn serve(data: Option<&Path>, address: SocketAddr) -> anyhow::Result<SocketAddr> {
    let database = match data {
        None => Database::memory().context("cannot start the embedded store")?,
        Some(path) => {
            let name = path.to_str().context("the data file's name is not UTF-8")?;
            Database::new(name)
                .with_context(|| format!("cannot open the data file {}", path.display()))?
        }
    };
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address}"))?;
    let address = listener.local_addr()?;
    tokio::spawn(dynoxide::server::serve_on(listener, database));
    Ok(address)
}
