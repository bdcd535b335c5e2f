//! The clouds, and the facts about each in one table.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{money::Currency, reference::ResourceKind};

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
pub struct Facts {
    /// Its name in a configuration.
    pub word: &'static str,
    pub kinds: &'static [ResourceKind],
    /// Its public address, before the version of the API.
    pub endpoint: &'static str,
    /// The setting that overrides the address.
    pub endpoint_setting: &'static str,
    /// The currency of its prices where it names none.
    pub currency: Currency,
    /// Requests allowed per hour (DODESC: per token; HZSPEC: per project).
    pub requests_per_hour: u64,
    /// Requests allowed per minute, if it has such a limit (DODESC).
    pub requests_per_minute: Option<u64>,
    /// Whether an account can be restricted to certain datacenters.
    pub has_datacenters: bool,
    /// What to do if a token is invalid, or lacks a permission.
    pub token_remedy: &'static str,
}

const DIGITALOCEAN: Facts = Facts {
    word: "digitalocean",
    kinds: &[ResourceKind::Droplet, ResourceKind::Database, ResourceKind::NodePool],
    endpoint: "https://api.digitalocean.com",
    endpoint_setting: "OFFHOURS_DIGITALOCEAN_URL",
    currency: Currency::Usd,
    requests_per_hour: 5000,
    requests_per_minute: Some(250),
    has_datacenters: false,
    token_remedy: "give the account a valid token with the scopes droplet:read, database:read, \
                   kubernetes:read and tag:read, and to stop and start droplet:update, \
                   database:update and kubernetes:update; to resize Droplets also \
                   droplet:create, sizes:read and regions:read",
};

const HETZNER: Facts = Facts {
    word: "hetzner",
    kinds: &[ResourceKind::Server],
    endpoint: "https://api.hetzner.cloud",
    endpoint_setting: "OFFHOURS_HETZNER_URL",
    currency: Currency::Eur,
    requests_per_hour: 3600,
    requests_per_minute: None,
    has_datacenters: true,
    token_remedy: "give the account a valid token of its project, which may read, and to stop and \
                   start also write",
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
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.facts().word)
    }
}
