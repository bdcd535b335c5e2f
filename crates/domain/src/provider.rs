//! The clouds, and the facts about each in one table.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    money::{Currency, Money},
    reference::ResourceKind,
};

/// A cloud whose resources Offhours stops and starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// DigitalOcean: Droplets, managed databases, Kubernetes node pools.
    DigitalOcean,
    /// Hetzner Cloud: servers.
    Hetzner,
}

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Facts {
    /// Its name in a configuration.
    pub word: &'static str,
    /// Its name as it writes it itself.
    pub name: &'static str,
    pub kinds: &'static [ResourceKind],
    /// Its public address, before the version of the API.
    pub endpoint: &'static str,
    /// The setting that overrides the address.
    pub endpoint_setting: &'static str,
    /// The currency of its prices where it names none.
    pub currency: Currency,
    pub billing: Billing,
    /// Machines created before this keep an old price, which its API does not show, until they are
    /// moved to another plan.
    pub new_prices_since: Option<Timestamp>,
    /// What a GB of a snapshot costs per month, if no response contains that.
    pub snapshot_gb_month: Option<&'static str>,
    /// How many snapshots a customer may have by default, if there is a limit.
    pub most_snapshots: Option<usize>,
    /// Whether its documentation says how long a snapshot takes.
    pub has_snapshot_time: bool,
    /// Whether a reserved IPv4 address costs money while it is assigned to no machine.
    pub idle_addresses_cost: bool,
    /// Whether a machine that was moved to another plan is started by that.
    pub starts_what_it_moves: bool,
    /// What is lost however a machine is recreated.
    pub always_lost: &'static [&'static str],
    /// Requests allowed per hour (DODESC: per token; HZSPEC: per project).
    pub requests_per_hour: u64,
    /// Requests allowed per minute, if it has such a limit (DODESC).
    pub requests_per_minute: Option<u64>,
    /// Whether an account can be restricted to certain datacenters.
    pub has_datacenters: bool,
    /// The permission without which resources seem to have no tags.
    pub tag_permission: Option<&'static str>,
    /// The variable in which its own tools look for a token.
    pub token_variable: &'static str,
    /// What to do if a token is invalid, or lacks a permission.
    pub token_remedy: &'static str,
    /// What to do if a token lacks a permission for what is only read to find out what could be
    /// saved.
    pub reading_remedy: &'static str,
}

/// How a cloud bills what it has (DOPRICES, HZPRICES).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Billing {
    /// Each second, but at most 672 hours of a month.
    Seconds,
    /// Each hour that was begun, but at most a price for the month.
    Hours,
}

const DIGITALOCEAN: Facts = Facts {
    word: "digitalocean",
    name: "DigitalOcean",
    kinds: &[ResourceKind::Droplet, ResourceKind::Database, ResourceKind::NodePool],
    endpoint: "https://api.digitalocean.com",
    endpoint_setting: "OFFHOURS_DIGITALOCEAN_URL",
    currency: Currency::Usd,
    billing: Billing::Seconds,
    new_prices_since: None,
    // DOSNAPSHOTS, as are the next three.
    snapshot_gb_month: Some("0.06"),
    most_snapshots: None,
    has_snapshot_time: true,
    idle_addresses_cost: true,
    starts_what_it_moves: false,
    always_lost: &[
        "its id and creation date",
        "its actions and metrics",
        "its private and anchor addresses",
        "its own user data",
        "the free traffic of the hours in which it is not there",
        "its place in Terraform's state",
    ],
    requests_per_hour: 5000,
    requests_per_minute: Some(250),
    has_datacenters: false,
    token_remedy: "give the account a valid token with the scopes droplet:read, database:read, \
                   kubernetes:read and tag:read, and to stop and start droplet:update, \
                   database:update and kubernetes:update; to resize Droplets also \
                   droplet:create, sizes:read and regions:read",
    tag_permission: Some("tag:read"),
    token_variable: "DIGITALOCEAN_TOKEN",
    reading_remedy: "give the account a valid token with the scopes droplet:read, database:read, \
                     kubernetes:read, tag:read, sizes:read and regions:read",
};

const HETZNER: Facts = Facts {
    word: "hetzner",
    name: "Hetzner",
    kinds: &[ResourceKind::Server],
    endpoint: "https://api.hetzner.cloud",
    endpoint_setting: "OFFHOURS_HETZNER_URL",
    currency: Currency::Eur,
    billing: Billing::Hours,
    // 15 June 2026 (HZPRICES).
    new_prices_since: Some(Timestamp::constant(1_781_481_600, 0)),
    snapshot_gb_month: None,
    // HZLIMITS
    most_snapshots: Some(30),
    has_snapshot_time: false,
    // A primary address costs the same either way (HZPRICES).
    idle_addresses_cost: false,
    starts_what_it_moves: true,
    always_lost: &[
        "its id and creation date",
        "its actions and metrics",
        "its hardware address",
        "its own user data",
        "its counter of included traffic",
        "its place in Terraform's state",
    ],
    requests_per_hour: 3600,
    requests_per_minute: None,
    has_datacenters: true,
    tag_permission: None,
    token_variable: "HCLOUD_TOKEN",
    token_remedy: "give the account a valid token of its project, which may read, and to stop and \
                   start also write",
    reading_remedy: "give the account a valid token of its project, which may read",
};

impl Provider {
    pub const ALL: [Self; 2] = [Self::DigitalOcean, Self::Hetzner];

    #[must_use]
    pub fn facts(self) -> &'static Facts {
        match self {
            Self::DigitalOcean => &DIGITALOCEAN,
            Self::Hetzner => &HETZNER,
        }
    }

    #[must_use]
    pub fn kinds(self) -> &'static [ResourceKind] {
        self.facts().kinds
    }

    /// Returns what a GB of a snapshot costs per month, if no response contains that.
    #[must_use]
    pub fn snapshot_price(self) -> Option<Money> {
        let facts = self.facts();
        Money::parse(facts.snapshot_gb_month?, facts.currency).ok()
    }
}

impl ResourceKind {
    /// Returns the cloud that has it; `None` for a machine over SSH.
    #[must_use]
    pub fn cloud(self) -> Option<Provider> {
        Provider::ALL.into_iter().find(|cloud| cloud.kinds().contains(&self))
    }

    /// Returns the facts about the cloud that has it.
    #[must_use]
    pub fn cloud_facts(self) -> Option<&'static Facts> {
        self.cloud().map(Provider::facts)
    }

    /// Returns how it is billed.
    #[must_use]
    pub fn billing(self) -> Billing {
        self.cloud_facts().map_or(Billing::Seconds, |cloud| cloud.billing)
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.facts().word)
    }
}
