//! `engine PORT`: an empty DynamoDB engine in memory, on that port of the loopback interface.
//!
//! `make stack EMULATOR=localstack` runs it in place of AWS's engine for a single machine, which
//! needs Java and a download.

use std::{error::Error, net::Ipv4Addr};

use dynoxide::Database;
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let port: u16 = std::env::args()
        .nth(1)
        .ok_or("usage: engine PORT")?
        .parse()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    dynoxide::server::serve_on(listener, Database::memory()?).await;
    Ok(())
}
