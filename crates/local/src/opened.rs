//! A local store as a command works with it: the clouds and the clock that go with it, and the
//! functions in the command's own process.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::Context as _;
use environment::{Clock, SteppedClock, aws};
use jiff::Timestamp;
use lifecycle::{Access, Providers};
use store::{Store, Tables};
use tokio::sync::mpsc;

use crate::{
    clouds::Clouds,
    engine,
    file::{DataFile, Purpose},
    service::{Clients, News, Service},
};

/// A local store that is open.
#[derive(Debug)]
pub struct Opened {
    store: Store,
    clock: Clock,
    clouds: Arc<Clouds>,
    /// The clock of a simulator that is moved.
    stepped: Option<SteppedClock>,
    /// The store's file, or its copy, which is there for as long as this is.
    file: DataFile,
}

impl Opened {
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
        let address = engine::serve(Some(&file.path()), ([127, 0, 0, 1], 0).into()).await?;
        let store = Store::connect(&aws::local_config(&format!("http://{address}")), tables);
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

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The clock of this process, or a simulator's.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Whether a copy is shown, for the file may only be read.
    #[must_use]
    pub fn is_copy(&self) -> bool {
        self.file.is_copy()
    }

    /// Whether a simulator's clock gives the time.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        self.stepped.is_some()
    }

    /// The functions in this process, and what happens while they work. Where they wait, a simulator's
    /// clock is moved.
    pub fn functions(&self) -> anyhow::Result<(Arc<Service>, mpsc::UnboundedReceiver<News>)> {
        let (sender, news) = mpsc::unbounded_channel();
        if let Some(stepped) = self.stepped.clone() {
            tokio::spawn(wake_sleepers(stepped, Arc::clone(&self.clouds)));
        }
        let service = Service::new(
            self.store.clone(),
            Clients::of(&self.clouds)?,
            self.clock.clone(),
            self.stepped.clone(),
            Some(sender),
        );
        Ok((service, news))
    }

    /// Clients for the accounts, which only read.
    pub fn providers(&self) -> anyhow::Result<Providers> {
        Ok(Providers::new(
            Access::Read,
            self.clouds.tokens()?,
            self.clouds.endpoints()?,
            provider::http_client()?,
        ))
    }

    /// What a simulator's clock shows now, where it gives the time.
    pub async fn simulated_now(&self) -> anyhow::Result<Option<Timestamp>> {
        let (Some(stepped), Some(now)) = (&self.stepped, self.clouds.clock().await?) else {
            return Ok(None);
        };
        stepped.advance_to(now);
        Ok(Some(stepped.now()))
    }

    /// Lets time pass: real time, or that of a simulator whose clock is moved.
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

/// Moves a simulator's clock on, each time that all who work by it wait, to where the first goes on.
async fn wake_sleepers(stepped: SteppedClock, clouds: Arc<Clouds>) {
    loop {
        let wake = stepped.first_wake().await;
        // A simulator that is gone fails the sleeper's next request, which says so.
        clouds.advance_to(wake).await.ok();
        stepped.advance_to(wake);
    }
}
