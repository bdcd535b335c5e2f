//! The simulator as a program.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use anyhow::Context;
use clap::Parser;
use cloud_simulator::{Fleet, HeldClock, Prices, Simulator};
use jiff::Timestamp;
use tokio::net::TcpListener;

#[derive(Parser)]
#[command(
    version,
    about = "Simulates DigitalOcean (under /v2) and Hetzner Cloud (under /v1) on one address",
    long_about = None,
    after_help = "\
When it is ready, the program prints one line: its address.

With --at, the clock stands still until it is moved:
  curl -d '{\"now\": \"2026-11-23T18:00:00Z\"}' -H 'content-type: application/json' \\
    http://127.0.0.1:8100/_simulator/clock"
)]
struct Arguments {
    /// What the clouds hold: a TOML file with accounts, droplets, databases, clusters, servers
    #[arg(long, value_name = "FILE")]
    fleet: PathBuf,

    /// Where to listen; port 0 takes any free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8100")]
    listen: SocketAddr,

    /// Hold the clock at this instant (RFC 3339) instead of following the machine's
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    at: Option<Timestamp>,

    /// What the clouds charge: a TOML file in the form of the simulator's own prices.toml
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
}

fn instant(text: &str) -> Result<Timestamp, &'static str> {
    text.parse().map_err(|_| "write an instant, such as 2026-11-23T06:00:00Z")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let path = arguments.fleet.display();
    let text = fs::read_to_string(&arguments.fleet).with_context(|| format!("reading {path}"))?;
    let fleet: Fleet = text.parse().with_context(|| format!("reading {path}"))?;
    let simulator = if let Some(at) = arguments.at {
        Simulator::with_held_clock(&fleet, HeldClock::at(at))
    } else {
        let clock = environment::Clock::machine();
        Simulator::new(&fleet, Arc::new(move || clock.now()))
    };
    if let Some(path) = &arguments.prices {
        simulator.set_prices(prices(path)?);
    }
    let listener = TcpListener::bind(arguments.listen)
        .await
        .with_context(|| format!("listening on {}", arguments.listen))?;
    let address = listener.local_addr()?;
    announce(address);
    simulator.serve(listener).await?;
    Ok(())
}

fn prices(path: &Path) -> anyhow::Result<Prices> {
    let reading = || format!("reading {}", path.display());
    let text = fs::read_to_string(path).with_context(reading)?;
    text.parse().with_context(reading)
}

#[expect(clippy::print_stdout, reason = "the line says that the program is ready, and where")]
fn announce(address: SocketAddr) {
    println!("http://{address}");
}

#[expect(clippy::print_stderr, reason = "a program reports its errors there")]
fn report(error: &anyhow::Error) {
    eprintln!("error: {error:#}");
}
