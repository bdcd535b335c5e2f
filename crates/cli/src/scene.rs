//! Readable builders of records, configurations and clouds for tests.
//!
//! Everything happens around Monday, 23 November 2026.

use std::{collections::BTreeMap, sync::Arc};

use cloud_simulator::Simulator;
use domain::{
    configuration::{Configuration, Generation, Override, Overrides},
    record::Record,
};
use environment::{Clock, SteppedClock};
use jiff::Timestamp;
use lifecycle::{Access, Providers};
use local::clouds::Clouds;
use store::{Head, InForce};

use crate::{configuration_file, doctor::store::StoreContents};

pub(crate) use testing::scene::*;

/// Two accounts, and the schedule `office`: Monday to Friday, 08:00 to 18:00 UTC.
pub(crate) const OFFICE: &str = r#"
protect = ["name:*prod*"]
accounts.do-main = { provider = "digitalocean", token = "env:DO" }
accounts.hz-eu = { provider = "hetzner", token = "env:HZ" }
[schedules.office]
timezone = "UTC"
periods = [{ weekdays = "mon-fri", begin = "08:00", end = "18:00" }]
"#;

pub(crate) fn configuration(toml: &str) -> Configuration {
    let mut parsed = configuration_file::parse(toml, "test.toml").unwrap();
    parsed.configuration.generation = Generation(1);
    parsed.configuration
}

pub(crate) fn in_force(toml: &str) -> InForce {
    InForce {
        configuration: Arc::new(configuration(toml)),
        overrides: Overrides::default(),
        since: None,
    }
}

pub(crate) fn with_overrides(toml: &str, overrides: impl IntoIterator<Item = Override>) -> InForce {
    InForce { overrides: overrides.into_iter().collect(), ..in_force(toml) }
}

/// Simulated clouds that listen, and clients for them. The clock does not advance.
pub(crate) struct SimulatedClouds {
    pub(crate) simulator: Simulator,
    pub(crate) providers: Providers,
    pub(crate) clock: Clock,
    /// The address on which the clouds listen.
    pub(crate) url: provider::Base,
}

/// Both accounts, to prepend to a fleet.
pub(crate) const ACCOUNTS: &str = r#"
accounts = [
    { name = "do-main", provider = "digitalocean", token = "secret-do" },
    { name = "hz-eu", provider = "hetzner", token = "secret-hz" },
]
"#;

pub(crate) async fn simulated_clouds(
    configuration: &Configuration,
    fleet: &str,
    now: Timestamp,
) -> SimulatedClouds {
    simulated_clouds_from(configuration, &format!("{ACCOUNTS}{fleet}"), now).await
}

/// Like [`simulated_clouds`], but the fleet defines its own accounts.
pub(crate) async fn simulated_clouds_from(
    configuration: &Configuration,
    fleet: &str,
    now: Timestamp,
) -> SimulatedClouds {
    let clock = Clock::from(SteppedClock::at(now));
    let address = ([127, 0, 0, 1], 0).into();
    let clouds =
        Clouds::simulated(fleet.parse().unwrap(), &configuration.accounts, address).unwrap();
    let clouds = clouds.start(&clock).await.unwrap();
    let tokens = clouds.tokens().unwrap();
    let http = provider::http_client().unwrap();
    SimulatedClouds {
        simulator: clouds.simulator().unwrap().clone(),
        providers: Providers::new(Access::Read, tokens, clouds.endpoints().unwrap(), http),
        clock,
        url: clouds.url().unwrap().clone(),
    }
}

/// What the doctor reads from a store with these records, in which no inventory is recorded.
pub(crate) fn store_contents(
    in_force: InForce,
    records: impl IntoIterator<Item = Record>,
) -> StoreContents {
    StoreContents {
        applied_instead: None,
        head: Head::default(),
        in_force,
        states: BTreeMap::new(),
        records: records.into_iter().collect(),
        unreadable: Vec::new(),
    }
}
