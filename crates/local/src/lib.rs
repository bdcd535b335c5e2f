//! The whole service in one process: the four handlers on a timer, the store on an embedded
//! engine, the clouds real or simulated, the clock real or stepped. Prints nothing.
//!
//! The handlers get the same JSON events as on AWS, and reach the store over DynamoDB's protocol
//! and the clouds over HTTP: what runs here is what runs there. The store's requests stay inside the
//! process, and nothing listens but simulated clouds.

pub mod clouds;
pub mod door;
pub mod engine;
pub mod file;
pub mod health;
pub mod local_store;
mod metrics;
pub mod notify;
pub mod service;

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use domain::configuration::Floor;
use environment::{Clock, SteppedClock, Tokens};
use jiff::{SignedDuration, Timestamp};
use provider::Endpoints;
use store::{Store, Tables};
use tokio::sync::mpsc;

use clouds::Clouds;
use engine::Engine;
use file::DataFile;
use service::{Clients, Service, ServiceEvent};

pub use cloud_simulator::{Amount, BillLine, BillQuery, Fleet, Simulator};

/// A file or an address that cannot be used as given: what is wrong, and what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unusable(pub String);

/// The names of the service's tables.
#[must_use]
pub fn tables() -> Tables {
    Tables::prefixed(engine::PREFIX)
}

/// The options of the service in one process.
#[derive(Debug)]
pub struct Options {
    pub clouds: Clouds,
    /// Where the store keeps its data; `None` for in memory.
    pub data: Option<DataFile>,
    /// Where a stepped clock starts; `None` for the machine's clock.
    pub from: Option<Timestamp>,
    /// How many seconds pass on a stepped clock in one real second; `None` for as fast as possible.
    pub speed: Option<f64>,
    /// The guard rails that hold whatever the configuration says.
    pub floor: Floor,
}

/// The service, ready to run.
#[derive(Debug)]
pub struct Local {
    service: Arc<Service>,
    clouds: Clouds,
    stepped: Option<SteppedClock>,
    speed: Option<f64>,
    started: StartInstant,
}

/// The same instant by both clocks.
#[derive(Debug, Clone, Copy)]
struct StartInstant {
    simulated: Timestamp,
    real: Timestamp,
}

impl Local {
    /// Starts the engine and the simulated clouds. Later events are sent to `events`.
    pub async fn start(
        options: Options,
        events: mpsc::UnboundedSender<ServiceEvent>,
    ) -> anyhow::Result<Self> {
        let engine = match &options.data {
            Some(file) => Engine::on_file(&file.path())?,
            None => Engine::in_memory()?,
        };
        Self::start_on(engine.store(tables()), options, events).await
    }

    /// Like [`Self::start`], with a store elsewhere.
    pub async fn start_on(
        store: Store,
        options: Options,
        events: mpsc::UnboundedSender<ServiceEvent>,
    ) -> anyhow::Result<Self> {
        let stepped = options.from.map(SteppedClock::at);
        let clock = stepped.clone().map_or_else(Clock::machine, Clock::from);
        let started = StartInstant { simulated: clock.now(), real: Clock::machine().now() };
        let clouds = options.clouds.start(&clock).await?;
        let store = store.under(options.floor);
        store.create_tables().await.context("cannot create the tables")?;
        let clients = Clients::of(&clouds)?;
        Ok(Self {
            service: Service::new(store, clients, clock, stepped.clone(), Some(events))?,
            clouds,
            stepped,
            speed: options.speed,
            started,
        })
    }

    /// Returns the store, to inspect the outcome.
    #[must_use]
    pub fn store(&self) -> &Store {
        self.service.store()
    }

    /// Returns where simulated clouds listen.
    #[must_use]
    pub fn clouds_url(&self) -> Option<&provider::Base> {
        self.clouds.url()
    }

    /// The clouds simulated in this process.
    #[must_use]
    pub fn simulator(&self) -> Option<&cloud_simulator::Simulator> {
        self.clouds.simulator()
    }

    /// Returns the handlers, to invoke them directly.
    #[must_use]
    pub fn service(&self) -> &Arc<Service> {
        &self.service
    }

    /// Returns the current instant of the service.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.service.now()
    }

    /// Ticks once a minute until `until`, or forever, and publishes every instant.
    pub async fn run(&self, until: Option<Timestamp>) -> anyhow::Result<()> {
        // On the machine's clock, a person should see something before the next whole minute.
        let mut tick = match &self.stepped {
            Some(_) => next_tick(self.now()),
            None => self.now(),
        };
        while until.is_none_or(|until| tick <= until) {
            self.advance_to(tick).await?;
            self.service.tick().await;
            tick = match &self.stepped {
                Some(_) => tick_after(tick, tick),
                None => tick_after(tick, self.now()),
            };
        }
        if let Some(until) = until {
            self.advance_to(until).await?;
        }
        self.finish().await;
        Ok(())
    }

    /// Lets time pass until `at` without a tick, and then ticks: to skip quiet hours.
    pub async fn tick_at(&self, at: Timestamp) -> anyhow::Result<()> {
        self.advance_to(at).await?;
        self.service.tick().await;
        Ok(())
    }

    /// Observes, does what is due, follows it for up to a minute, and returns.
    pub async fn once(&self) -> anyhow::Result<()> {
        self.service.round().await
    }

    /// Waits until the handlers have finished.
    pub async fn finish(&self) {
        match &self.stepped {
            // A sleeper on a clock that is no longer moved would never wake.
            Some(stepped) => stepped.idle().await,
            None => self.service.finish().await,
        }
    }

    /// Begins nothing more from now on.
    pub fn end(&self) {
        self.service.end();
    }

    /// Waits until all that was sent is recorded, but no longer than `patience`. Returns whether it
    /// is: what is not is found out by the next process.
    pub async fn finish_within(&self, patience: Duration) -> bool {
        tokio::select! {
            () = self.finish() => true,
            () = self.service.pass(patience) => false,
        }
    }

    /// Lets time pass until `to`, waking sleepers on the way.
    async fn advance_to(&self, to: Timestamp) -> anyhow::Result<()> {
        let passed = |now| self.service.publish(ServiceEvent::Passed(now));
        let Some(stepped) = &self.stepped else {
            let wait = to.duration_since(self.now());
            let wait = Duration::try_from(wait).unwrap_or_default();
            self.service.pass(wait).await;
            passed(to);
            return Ok(());
        };
        loop {
            stepped.idle_or_past(to).await;
            if stepped.now() > to {
                // Slow clouds: the timer fires while the handlers are still at work, as on AWS.
                passed(stepped.now());
                return Ok(());
            }
            let next = stepped.next_wake().map_or(to, |wake| wake.min(to));
            self.pace(next).await;
            self.clouds.advance_to(next).await?;
            stepped.advance_to(next);
            passed(next);
            if next == to {
                return Ok(());
            }
        }
    }

    /// Waits until simulated time may reach `to`, by the machine's clock since the start.
    async fn pace(&self, to: Timestamp) {
        if let Some(speed) = self.speed {
            let machine = Clock::machine();
            let simulated = to.duration_since(self.started.simulated).as_secs_f64();
            let real = machine.now().duration_since(self.started.real).as_secs_f64();
            let wait = Duration::try_from_secs_f64(simulated / speed - real);
            machine.sleep(wait.unwrap_or_default()).await;
        }
    }
}

/// Returns the first whole minute at or after `now`.
fn next_tick(now: Timestamp) -> Timestamp {
    let past = now.as_second().rem_euclid(60);
    let whole = past == 0 && now.subsec_nanosecond() == 0;
    let seconds = now.as_second() - past + if whole { 0 } else { 60 };
    Timestamp::from_second(seconds).unwrap_or(now)
}

/// Returns the tick after the one at `tick`, if it is `now` when that has been fired. A clock that
/// was set back or forward meanwhile neither stops the timers nor makes up for what it left out.
fn tick_after(tick: Timestamp, now: Timestamp) -> Timestamp {
    // A timer may fire a little before its time.
    let is_on_time = now.duration_since(tick).abs() < SignedDuration::from_secs(30);
    let from = if is_on_time { tick } else { now };
    next_tick(from + SignedDuration::from_nanos(1))
}

fn real_clouds() -> anyhow::Result<(Tokens, Endpoints)> {
    let endpoints = Endpoints::given(|provider| {
        let address = environment::settings::optional(provider.facts().endpoint_setting);
        address.map(|text| text.parse()).transpose()
    })?;
    Ok((Tokens::from_variables(), endpoints))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_counts_as_working_while_both_timers_end_well() {
        let (sender, _events) = mpsc::unbounded_channel();
        let from = "2026-11-23T07:00:00Z".parse().unwrap();
        let options = Options {
            clouds: Clouds::Real,
            data: None,
            from: Some(from),
            speed: None,
            floor: Floor::default(),
        };
        let minutes = |minutes| Some(from + SignedDuration::from_mins(minutes));
        let works = async {
            let local = Local::start(options, sender).await.unwrap();
            let before = local.service.is_healthy();
            local.run(minutes(1)).await.unwrap();
            let after = local.service.is_healthy();
            // Its timers stand still.
            local.advance_to(minutes(5).unwrap()).await.unwrap();
            (before, after, local.service.is_healthy())
        };
        let works = tokio::task::LocalSet::new().run_until(works).await;
        assert_eq!(works, (false, true, false));
    }

    #[test]
    fn a_clock_that_is_set_neither_stops_the_timers_nor_fires_them_in_a_burst() {
        let at = |time: &str| format!("2026-11-23T{time}Z").parse::<Timestamp>().unwrap();
        for (tick, now, next) in [
            ("10:05:00", "10:04:59.9", "10:06:00"),
            ("10:05:00", "10:05:02", "10:06:00"),
            ("10:05:00", "08:05:00", "08:06:00"),
            ("02:12:00", "10:12:30", "10:13:00"),
        ] {
            assert_eq!(tick_after(at(tick), at(now)), at(next), "{tick}, {now}");
        }
    }

    #[test]
    fn ticks_fall_on_whole_minutes() {
        for (now, expected) in [
            ("2026-11-23T07:00:00Z", "2026-11-23T07:00:00Z"),
            ("2026-11-23T07:00:00.5Z", "2026-11-23T07:01:00Z"),
            ("2026-11-23T07:00:59Z", "2026-11-23T07:01:00Z"),
        ] {
            let now: Timestamp = now.parse().unwrap();
            assert_eq!(next_tick(now).to_string(), expected);
        }
    }
}
