//! A local store as a command uses it: with its clouds and its clock, and with the functions in the
//! command's own process.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::Context as _;
use environment::{Clock, SteppedClock, settings};
use jiff::Timestamp;
use lifecycle::{Access, Providers};
use store::{Store, Tables};
use tokio::sync::mpsc;

use crate::{
    clouds::Clouds,
    engine::Engine,
    file::{DataFile, Purpose},
    service::{Clients, Service, ServiceEvent},
};

#[derive(Debug)]
pub struct LocalStore {
    store: Store,
    clock: Clock,
    clouds: Arc<Clouds>,
    /// The clock that follows a simulator's, if that one is held.
    stepped: Option<SteppedClock>,
    /// The store's file, or its copy, which exists for as long as this does.
    file: DataFile,
}

impl LocalStore {
    /// Opens the store in a file. The clouds are real, or a simulator at an address.
    pub async fn open(
        path: &Path,
        purpose: Purpose,
        simulator: Option<&str>,
        tables: Tables,
    ) -> anyhow::Result<Self> {
        let (clouds, simulated) = match simulator {
            Some(url) => Clouds::elsewhere(url).await?,
            None => (Clouds::Real, None),
        };
        let stepped = simulated.map(SteppedClock::at);
        let file = DataFile::open(path, purpose)?;
        let store = Engine::on_file(&file.path())?.store(tables);
        let store = store.under(settings::floor()?);
        let made = store.create_tables().await;
        made.with_context(|| format!("cannot use the store at {}", file.path().display()))?;
        Ok(Self {
            store,
            clock: stepped.clone().map_or_else(Clock::machine, Clock::from),
            clouds: Arc::new(clouds),
            stepped,
            file,
        })
    }

    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The clock of this process, or a simulator's.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    #[must_use]
    pub fn file(&self) -> &DataFile {
        &self.file
    }

    /// Reports whether a simulator's clock gives the time.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        self.stepped.is_some()
    }

    /// Returns the functions in this process, and a channel with what happens while they work. When
    /// they wait, a simulator's clock is moved.
    pub fn functions(
        &self,
    ) -> anyhow::Result<(Arc<Service>, mpsc::UnboundedReceiver<ServiceEvent>)> {
        let (sender, events) = mpsc::unbounded_channel();
        if let Some(stepped) = self.stepped.clone() {
            tokio::spawn(wake_sleepers(stepped, Arc::clone(&self.clouds)));
        }
        let service = Service::new(
            self.store.clone(),
            Clients::of(&self.clouds)?,
            self.clock.clone(),
            self.stepped.clone(),
            Some(sender),
        )?;
        Ok((service, events))
    }

    /// Creates read-only clients for the accounts.
    pub fn providers(&self) -> anyhow::Result<Providers> {
        Ok(Providers::new(
            Access::Read,
            self.clouds.tokens()?,
            self.clouds.endpoints()?,
            provider::http_client()?,
        ))
    }

    /// Returns what a simulator's clock shows now, if it gives the time.
    pub async fn simulated_now(&self) -> anyhow::Result<Option<Timestamp>> {
        let (Some(stepped), Some(now)) = (&self.stepped, self.clouds.clock().await?) else {
            return Ok(None);
        };
        stepped.advance_to(now);
        Ok(Some(stepped.now()))
    }

    /// Lets time pass: real time, or that of a simulator whose clock is held.
    pub async fn wait(&self, duration: Duration) -> anyhow::Result<()> {
        match &self.stepped {
            None => self.clock.sleep(duration).await,
            Some(stepped) => {
                let to = self.clock.now() + duration;
                self.clouds.advance_to(to).await?;
                stepped.advance_to(to);
            }
        }
        Ok(())
    }
}

/// Moves a simulator's clock, each time that all participants wait, to when the first of them
/// wakes.
async fn wake_sleepers(stepped: SteppedClock, clouds: Arc<Clouds>) {
    loop {
        let wake = stepped.first_wake().await;
        // If the simulator is gone, the sleeper's next request fails and says so.
        clouds.advance_to(wake).await.ok();
        stepped.advance_to(wake);
    }
}
