//! A configuration for tests, of this crate and of those above it.

#![expect(clippy::unwrap_used, reason = "the exception for tests does not reach it")]

use std::collections::BTreeMap;

use crate::configuration::{
    Account, CloudAccount, Configuration, Floor, Generation, Mode, Provider, Schedules, Settings,
};

/// An account at a cloud that acts, with a token in the environment.
#[must_use]
pub fn account(provider: Provider) -> CloudAccount {
    CloudAccount {
        provider,
        was: None,
        token: "env:TOKEN".parse().unwrap(),
        read_token: None,
        datacenters: Vec::new(),
        accept_new_prices: false,
        ssh_key: None,
        mode: Mode::Act,
        url: None,
    }
}

/// The first generation, with the accounts `do-main` and `hz-eu` and no schedule.
#[must_use]
pub fn configuration() -> Configuration {
    let account = |name: &str, provider| (name.parse().unwrap(), Account::from(account(provider)));
    Configuration {
        generation: Generation(1),
        settings: Settings::default(),
        accounts: BTreeMap::from([
            account("do-main", Provider::DigitalOcean),
            account("hz-eu", Provider::Hetzner),
        ]),
        schedules: Schedules::default(),
        floor: Floor::default(),
    }
}
