//! Droplets: how a fleet describes one, and its state.

use std::collections::BTreeSet;

use domain::{AccountName, DropletId, ResourceId};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{catalog, defaults, guest::Guest, kubernetes, ledger::Meter};

/// A Droplet: its description in a fleet, then its state.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Droplet {
    /// May be left out if its cloud has only one account.
    #[serde(skip_serializing)]
    pub(crate) account: Option<AccountName>,
    pub(crate) id: u64,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    #[serde(default = "defaults::region")]
    pub(crate) region: String,
    #[serde(default = "defaults::droplet_size")]
    pub(crate) size: String,
    /// The status that the API shows, which lags a little.
    #[serde(default)]
    pub(crate) status: DropletStatus,
    #[serde(default)]
    pub(crate) ignores_shutdown: bool,
    /// How long a shutdown that the guest ignores blocks other actions before it ends in an error;
    /// `None` if it completes as soon as the signal is delivered.
    #[serde(skip_serializing)]
    pub(crate) shutdown_error: Option<SignedDuration>,
    /// Its own disk in GB, which a resize without the disk leaves unchanged; defaults to its size's
    /// disk.
    #[serde(default)]
    pub(crate) disk: u64,
    /// The kind of image that it was made from.
    #[serde(default)]
    pub(crate) image_type: ImageType,
    /// Its GPUs. A Droplet with GPUs is listed only under the type `gpus`.
    pub(crate) gpu: Option<Gpu>,
    /// The id of the autoscale pool that it belongs to.
    pub(crate) autoscale_pool: Option<String>,
    /// How many resizes are refused because the Droplet's host has no room.
    #[serde(default)]
    pub(crate) resize_refusals: u32,
    /// How many resizes after these are accepted and then fail.
    #[serde(default)]
    pub(crate) resize_failures: u32,
    #[serde(default = "defaults::seconds::<60>", skip_serializing)]
    pub(crate) resize: SignedDuration,
    #[serde(default = "defaults::seconds::<10>", skip_serializing)]
    pub(crate) power_action: SignedDuration,
    /// How long the guest takes from the shutdown request until it is off.
    #[serde(default = "defaults::seconds::<20>", skip_serializing)]
    pub(crate) shutdown: SignedDuration,
    #[serde(default = "defaults::seconds::<300>", skip_serializing)]
    pub(crate) snapshot: SignedDuration,
    /// How long after that the snapshot appears.
    #[serde(default = "defaults::seconds::<30>", skip_serializing)]
    pub(crate) snapshot_lag: SignedDuration,
    /// The storage that a snapshot of it takes at the provider, in GB.
    #[serde(default = "defaults::snapshot_gb")]
    pub(crate) snapshot_gb: f64,
    /// How many of its snapshots are accepted and then fail.
    #[serde(default)]
    pub(crate) snapshot_failures: u32,
    /// How many snapshots after these complete but never appear.
    #[serde(default)]
    pub(crate) snapshots_unlisted: u32,
    /// How long it takes to create a Droplet from one of its snapshots.
    #[serde(default = "defaults::seconds::<60>", skip_serializing)]
    pub(crate) creation: SignedDuration,
    /// How many Droplets from its snapshots are accepted and then vanish because there is no room.
    #[serde(default)]
    pub(crate) creation_failures: u32,
    /// Whether Droplets from snapshots that are taken from now on fail to boot.
    #[serde(default)]
    pub(crate) copies_break: bool,
    /// How long it is still shown after its deletion.
    #[serde(default = "defaults::seconds::<2>", skip_serializing)]
    pub(crate) deletion: SignedDuration,
    #[serde(default)]
    pub(crate) has: BTreeSet<Extra>,
    /// Its VPC; defaults to the region's default one.
    pub(crate) vpc: Option<String>,
    /// When its backups are made; defaults to weekly.
    pub(crate) backup_policy: Option<Value>,

    #[serde(flatten, skip_deserializing)]
    pub(crate) guest: Guest,
    #[serde(skip_deserializing)]
    pub(crate) created: Timestamp,
    /// For a Kubernetes node: its cluster and pool.
    #[serde(skip_deserializing)]
    pub(crate) worker_of: Option<(String, String)>,
}

/// A Droplet's status, in the provider's words (DOSPEC).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DropletStatus {
    New,
    #[default]
    Active,
    Off,
    Archive,
}

/// The kind of an image (DOSPEC).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ImageType {
    #[default]
    Base,
    Snapshot,
    Backup,
    Custom,
    Admin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Extra {
    Backups,
    Ipv6,
    Monitoring,
    /// A second disk, whose contents are not part of a snapshot.
    Scratch,
}

impl Extra {
    /// Its name in `features`, if it is listed there.
    pub(crate) fn feature(self) -> Option<&'static str> {
        match self {
            Self::Backups => Some("backups"),
            Self::Ipv6 => Some("ipv6"),
            Self::Monitoring => Some("monitoring"),
            Self::Scratch => None,
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Gpu {
    pub(crate) count: u32,
    pub(crate) model: String,
    pub(crate) vram_gib: u32,
}

impl Droplet {
    /// A Droplet with the defaults for everything else that a fleet may describe.
    pub(crate) fn named(id: u64, name: &str) -> Self {
        let described = json!({"id": id, "name": name});
        Self::deserialize(described).expect("everything else may be left out")
    }

    /// Initializes its state from the fleet's description.
    pub(crate) fn created_at(mut self, now: Timestamp) -> Self {
        self.created = now;
        self.guest = Guest::new(self.id);
        self.guest.powered = self.status == DropletStatus::Active;
        if self.disk == 0 {
            self.disk = disk_of(&self.size);
        }
        self
    }

    /// The meter it is billed under: a worker is a part of its pool.
    pub(crate) fn meter(&self) -> Meter {
        match &self.worker_of {
            None => meter(self.id),
            Some((cluster, pool)) => kubernetes::meter((cluster, pool), self.id),
        }
    }

    /// Reports whether it has a tag, ignoring case.
    pub(crate) fn has_tag(&self, tag: &str) -> bool {
        self.tags.iter().any(|own| own.eq_ignore_ascii_case(tag))
    }

    /// Sets the status that the API shows, and the power state that goes with it.
    pub(crate) fn set_status(&mut self, status: DropletStatus) {
        self.status = status;
        self.guest.set_power(status == DropletStatus::Active);
    }
}

pub(crate) fn meter(id: u64) -> Meter {
    (ResourceId::Droplet(DropletId(id)), 0)
}

/// The disk that comes with a size, in GB.
pub(crate) fn disk_of(slug: &str) -> u64 {
    let size = catalog::droplet_size(slug);
    size.and_then(|size| size["disk"].as_u64()).unwrap_or_default()
}
