//! The clouds that the service works with: real ones, simulated ones in this process, or a
//! simulator that runs as its own program.

use std::{net::SocketAddr, sync::Arc};

use anyhow::{Context as _, bail};
use cloud_simulator::{Fleet, Simulator};
use domain::{AccountName, configuration::Account};
use environment::{Clock, Tokens};
use jiff::Timestamp;
use provider::{Base, Endpoints};
use secrecy::SecretString;
use serde::Deserialize;
use tokio::net::TcpListener;

#[derive(Debug)]
pub enum Clouds {
    /// The providers themselves, or whatever their environment variables point to.
    Real,
    Simulated {
        /// What they hold at the start.
        fleet: Box<Fleet>,
        /// Where they listen; port 0 for any.
        address: SocketAddr,
        /// The accounts' tokens, from the fleet.
        tokens: Vec<(domain::configuration::TokenReference, SecretString)>,
    },
    /// Simulated in this process, and listening.
    Listening {
        simulator: Simulator,
        url: Base,
        /// The accounts' tokens, from the fleet.
        tokens: Vec<(domain::configuration::TokenReference, SecretString)>,
    },
    /// A simulator in another process, whose clock this one moves.
    Elsewhere {
        url: Base,
        /// The HTTP client for its control API.
        http: reqwest::Client,
        /// Whether its clock is held, so that it has to be moved.
        held: bool,
    },
}

#[derive(Deserialize)]
struct SimulatorClock {
    now: Timestamp,
    #[serde(default)]
    held: bool,
}

impl Clouds {
    /// Creates simulated clouds that hold `fleet`, for these accounts.
    pub fn simulated<'a>(
        fleet: Fleet,
        accounts: impl IntoIterator<Item = (&'a AccountName, &'a Account)>,
        address: SocketAddr,
    ) -> anyhow::Result<Self> {
        let mut tokens = Vec::new();
        for (name, account) in accounts {
            // An account over SSH is not simulated: its real host is contacted.
            let Some(account) = account.cloud() else {
                continue;
            };
            let Some(token) = fleet.token_of(name) else {
                bail!("the simulated fleet has no account `{name}`; the configuration has");
            };
            tokens.push((account.token.clone(), SecretString::from(token)));
            if let Some(reference) = &account.read_token {
                let Some(token) = fleet.read_token_of(name) else {
                    bail!(
                        "the simulated account `{name}` has no read_token; the configuration's has"
                    );
                };
                tokens.push((reference.clone(), SecretString::from(token)));
            }
        }
        Ok(Self::Simulated { fleet: Box::new(fleet), address, tokens })
    }

    /// Connects to a simulator that runs as its own program. Also returns what its clock shows, if
    /// it is held.
    pub async fn elsewhere(url: &str) -> anyhow::Result<(Self, Option<Timestamp>)> {
        let url: Base = url.parse()?;
        let http = provider::http_client()?;
        let clock: SimulatorClock = ask(http.get(url.join("_simulator/clock")?)).await?;
        let clouds = Self::Elsewhere { url, http, held: clock.held };
        Ok((clouds, clock.held.then_some(clock.now)))
    }

    /// Starts serving simulated clouds in this process.
    pub async fn start(self, clock: &Clock) -> anyhow::Result<Self> {
        let Self::Simulated { fleet, address, tokens } = self else {
            return Ok(self);
        };
        let now = clock.clone();
        let mut simulator = Simulator::new(&fleet, Arc::new(move || now.now()));
        if let Some(stepped) = clock.stepped().cloned() {
            simulator = simulator.passing(Arc::new(move |to| stepped.advance_to(to)));
        }
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("cannot listen on {address}"))?;
        let url = format!("http://{}", listener.local_addr()?).parse()?;
        let serving = simulator.clone();
        tokio::spawn(async move { serving.serve(listener).await });
        Ok(Self::Listening { simulator, url, tokens })
    }

    /// Returns where simulated clouds listen.
    #[must_use]
    pub fn url(&self) -> Option<&Base> {
        match self {
            Self::Real | Self::Simulated { .. } => None,
            Self::Listening { url, .. } | Self::Elsewhere { url, .. } => Some(url),
        }
    }

    /// Returns the simulated clouds in this process.
    #[must_use]
    pub fn simulator(&self) -> Option<&Simulator> {
        match self {
            Self::Listening { simulator, .. } => Some(simulator),
            Self::Real | Self::Simulated { .. } | Self::Elsewhere { .. } => None,
        }
    }

    pub fn endpoints(&self) -> anyhow::Result<Endpoints> {
        match self.url() {
            Some(url) => Ok(Endpoints::all_at(url)),
            None => Ok(super::real_clouds()?.1),
        }
    }

    /// Returns the accounts' tokens: the fleet's, or the environment's.
    pub fn tokens(&self) -> anyhow::Result<Tokens> {
        match self {
            Self::Listening { tokens, .. } => Ok(Tokens::fixed(tokens.iter().cloned())),
            Self::Real | Self::Simulated { .. } | Self::Elsewhere { .. } => {
                Ok(super::real_clouds()?.0)
            }
        }
    }

    /// Returns what the clock of a simulator in another process shows, if it is held.
    pub(crate) async fn clock(&self) -> anyhow::Result<Option<Timestamp>> {
        let Self::Elsewhere { url, http, held: true } = self else {
            return Ok(None);
        };
        let clock: SimulatorClock = ask(http.get(url.join("_simulator/clock")?)).await?;
        Ok(Some(clock.now))
    }

    /// Moves the clock of a simulator in another process; one in this process reads ours.
    pub(crate) async fn advance_to(&self, now: Timestamp) -> anyhow::Result<()> {
        if let Self::Elsewhere { url, http, held: true } = self {
            let body = serde_json::json!({ "now": now }).to_string();
            let url = url.join("_simulator/clock")?;
            let request = http.post(url).header("content-type", "application/json").body(body);
            ask::<serde_json::Value>(request).await?;
        }
        Ok(())
    }
}

/// Sends a request to the simulator's control API.
async fn ask<T: serde::de::DeserializeOwned>(
    request: reqwest::RequestBuilder,
) -> anyhow::Result<T> {
    let answer = request
        .send()
        .await
        .context("the simulator does not answer; is it running?")?
        .error_for_status()
        .context("the simulator refuses")?;
    Ok(serde_json::from_slice(&answer.bytes().await?)?)
}
