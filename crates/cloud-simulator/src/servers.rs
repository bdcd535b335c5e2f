//! Hetzner servers: how a fleet describes one, and its state.

use std::collections::BTreeSet;

use domain::{AccountName, ResourceId, ServerId, configuration::Provider};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    answer::Refusal, catalog, defaults, guest::Guest, labels::Labels, ledger::Meter, things::Thing,
};

/// A server: its description in a fleet, then its state.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[expect(clippy::struct_field_names, reason = "`server_type` is the provider's word")]
#[serde(deny_unknown_fields)]
pub(crate) struct Server {
    /// May be left out if its cloud has only one account.
    #[serde(skip_serializing)]
    pub(crate) account: Option<AccountName>,
    pub(crate) id: u64,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) labels: Labels,
    #[serde(default = "defaults::location")]
    pub(crate) location: String,
    #[serde(default = "defaults::server_type")]
    pub(crate) server_type: String,
    #[serde(default)]
    pub(crate) status: ServerStatus,
    #[serde(default)]
    pub(crate) ignores_shutdown: bool,
    /// How long the guest takes from the shutdown request until it is off.
    #[serde(default = "defaults::seconds::<15>", skip_serializing)]
    pub(crate) shutdown: SignedDuration,
    /// How long it takes to cut the power.
    #[serde(default = "defaults::seconds::<4>", skip_serializing)]
    pub(crate) poweroff: SignedDuration,
    /// Its own disk in GB, which a change of type may leave unchanged; defaults to its type's disk.
    #[serde(default)]
    pub(crate) disk: u64,
    /// How many changes of type are refused because the location has no room.
    #[serde(default)]
    pub(crate) change_type_refusals: u32,
    /// How many changes of type after these are accepted and then fail.
    #[serde(default)]
    pub(crate) change_type_failures: u32,
    /// Whether a change of type leaves it off; normally it starts again (HZSPEC).
    #[serde(default)]
    pub(crate) stays_off_after_change: bool,
    #[serde(default = "defaults::seconds::<90>", skip_serializing)]
    pub(crate) change_type: SignedDuration,
    /// How long it takes to power on.
    #[serde(default = "defaults::seconds::<10>", skip_serializing)]
    pub(crate) poweron: SignedDuration,
    /// How long an image of it takes.
    #[serde(default = "defaults::seconds::<120>", skip_serializing)]
    pub(crate) snapshot: SignedDuration,
    /// The storage that an image of it takes at the provider, in GB.
    #[serde(default = "defaults::snapshot_gb")]
    pub(crate) snapshot_gb: f64,
    /// How many of its images are accepted and then fail.
    #[serde(default)]
    pub(crate) snapshot_failures: u32,
    /// How long it takes to create a server from one of its images, until it may be powered on.
    #[serde(default = "defaults::seconds::<20>", skip_serializing)]
    pub(crate) creation: SignedDuration,
    /// How many servers from its images are accepted and then fail.
    #[serde(default)]
    pub(crate) creation_failures: u32,
    /// Whether servers from images that are taken from now on fail to boot.
    #[serde(default)]
    pub(crate) copies_break: bool,
    /// How long it takes to delete it.
    #[serde(default = "defaults::seconds::<5>", skip_serializing)]
    pub(crate) deletion: SignedDuration,
    /// How long after that its addresses in networks stay taken.
    #[serde(default = "defaults::seconds::<5>", skip_serializing)]
    pub(crate) release: SignedDuration,
    #[serde(default)]
    pub(crate) has: BTreeSet<Extra>,
    /// The families of its initial public addresses.
    #[serde(default = "addresses", skip_serializing)]
    pub(crate) addresses: BTreeSet<Family>,

    /// The ids of its primary IPs.
    #[serde(skip_deserializing)]
    pub(crate) ipv4: Option<u64>,
    #[serde(skip_deserializing)]
    pub(crate) ipv6: Option<u64>,
    #[serde(flatten, skip_deserializing)]
    pub(crate) guest: Guest,
    /// Defaults to the instant at which it joins the simulation.
    #[serde(default)]
    pub(crate) created: Timestamp,
}

/// A server's status, in the provider's words (HZSPEC).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ServerStatus {
    #[default]
    Running,
    Initializing,
    Starting,
    Stopping,
    Off,
    Deleting,
    Migrating,
    Rebuilding,
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Extra {
    Backups,
    Iso,
    /// It is protected from deletion and from being rebuilt.
    Protection,
    /// It boots into the rescue system next.
    Rescue,
}

fn addresses() -> BTreeSet<Family> {
    BTreeSet::from([Family::Ipv4])
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Family {
    Ipv4,
    Ipv6,
}

impl Family {
    pub(crate) fn of(ip: &Thing) -> Self {
        if ip.is_ipv6() { Self::Ipv6 } else { Self::Ipv4 }
    }
}

impl Server {
    /// Initializes its state from the fleet's description.
    pub(crate) fn created_at(mut self, now: Timestamp) -> Self {
        if self.created == Timestamp::default() {
            self.created = now;
        }
        if self.disk == 0 {
            let server_type = catalog::entry(&catalog::SERVER_TYPES, "name", &self.server_type);
            self.disk = server_type.map_or(0, disk_of);
        }
        self.guest = Guest::new(self.id);
        self.guest.powered = self.status == ServerStatus::Running;
        self
    }

    pub(crate) fn address_mut(&mut self, family: Family) -> &mut Option<u64> {
        match family {
            Family::Ipv4 => &mut self.ipv4,
            Family::Ipv6 => &mut self.ipv6,
        }
    }

    pub(crate) fn is_off(&self) -> bool {
        self.status == ServerStatus::Off
    }

    /// Refuses every action while another runs, or while the server is in transition.
    pub(crate) fn check_unlocked(&self) -> Result<(), Refusal> {
        use ServerStatus::{Deleting, Initializing, Migrating, Rebuilding};
        let is_busy = matches!(self.status, Initializing | Deleting | Migrating | Rebuilding);
        Refusal::of_status(Provider::Hetzner, 423).when(self.guest.action.is_some() || is_busy)
    }

    /// Sets the status that the API shows, and the power state that goes with it.
    pub(crate) fn set_status(&mut self, status: ServerStatus) {
        self.status = status;
        self.guest.set_power(matches!(status, ServerStatus::Running | ServerStatus::Starting));
        self.guest.powered = status == ServerStatus::Running;
    }
}

pub(crate) fn meter(id: u64) -> Meter {
    (ResourceId::Server(ServerId(id)), 0)
}

/// The disk that comes with a server type, in GB.
pub(crate) fn disk_of(server_type: &Value) -> u64 {
    server_type["disk"].as_u64().unwrap_or_default()
}

pub(crate) fn not_found() -> Refusal {
    Refusal::of_status(Provider::Hetzner, 404)
}
