//! Droplets: power, actions, and their representation in the API.

pub(crate) mod create;
pub(crate) mod snapshots;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::OnceLock,
};

use domain::{AccountName, DropletId, ResourceId};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    answer::Refusal,
    catalog, defaults, kubernetes,
    ledger::Meter,
    market::{Market, is_sold_in},
    world::{Account, Timeline},
};

/// How long it takes to deliver the shutdown signal to the guest.
const SIGNAL: SignedDuration = SignedDuration::from_secs(3);
/// Why a resize is refused while the Droplet's host has no room.
const NO_ROOM: &str = "Size is too large to fit on your droplet's server";
/// How long a guest that fails to boot keeps trying.
pub(crate) const BROKEN: SignedDuration = SignedDuration::from_secs(40);
/// How long the status lags behind the end of an action (`droplet_kit` #50).
const LAG: SignedDuration = SignedDuration::from_secs(2);

/// A Droplet: its description in a fleet, then its state.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "a fleet file says each by itself")]
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
    /// How long a resize takes.
    #[serde(default = "defaults::seconds::<60>", skip_serializing)]
    pub(crate) resize: SignedDuration,
    /// How long a power action takes.
    #[serde(default = "defaults::seconds::<10>", skip_serializing)]
    pub(crate) power_action: SignedDuration,
    /// How long the guest takes from the shutdown request until it is off.
    #[serde(default = "defaults::seconds::<20>", skip_serializing)]
    pub(crate) shutdown: SignedDuration,
    /// How long a snapshot of it takes.
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
    /// The extras that it has.
    #[serde(default)]
    pub(crate) has: BTreeSet<Extra>,
    /// Its VPC; defaults to the region's default one.
    pub(crate) vpc: Option<String>,
    /// When its backups are made; defaults to weekly.
    pub(crate) backup_policy: Option<Value>,

    /// Whether it actually has power.
    #[serde(skip_deserializing)]
    pub(crate) powered: bool,
    /// Whether it fails to boot: it soon turns off again whenever it is powered on.
    #[serde(skip_deserializing)]
    pub(crate) broken: bool,
    /// Counts power changes and reboots, so that an old shutdown signal cannot turn off a later
    /// boot.
    #[serde(skip)]
    pub(crate) boot: u64,
    /// Identifies the contents of its disk: the Droplet that last wrote to it, and the number of
    /// that write. Equal values mean equal contents.
    #[serde(skip_deserializing)]
    pub(crate) contents: String,
    /// The contents of its disk when the Droplet was created.
    #[serde(skip_deserializing)]
    pub(crate) first_contents: String,
    /// How often the contents of its disk have changed.
    #[serde(skip)]
    pub(crate) written: u64,
    /// The snapshot that it was made from.
    #[serde(skip_deserializing)]
    pub(crate) made_from: Option<u64>,
    /// The original Droplet that it descends from through snapshots; its own id if there is none.
    #[serde(skip)]
    pub(crate) origin: u64,
    /// The running action, which locks the Droplet.
    #[serde(skip_deserializing)]
    pub(crate) action: Option<u64>,
    #[serde(skip_deserializing)]
    pub(crate) created: Timestamp,
    /// For a Kubernetes node: its cluster and pool.
    #[serde(skip_deserializing)]
    pub(crate) worker_of: Option<(String, String)>,
    /// The cached response about it.
    #[serde(skip)]
    pub(crate) cached_json: OnceLock<String>,
}

/// A Droplet's status, in the provider's words (DOSPEC).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DropletStatus {
    /// Being created.
    New,
    /// Powered on.
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

/// An extra that a Droplet may have.
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

/// A Droplet's GPUs.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Gpu {
    pub(crate) count: u32,
    pub(crate) model: String,
    pub(crate) vram_gib: u32,
}

/// An action to begin: the body of its request.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Order {
    #[serde(rename = "type")]
    pub(crate) kind: ActionKind,
    /// The new name of a rename.
    pub(crate) name: Option<String>,
    /// The new size of a resize.
    pub(crate) size: Option<String>,
    /// Whether a resize also grows the disk, permanently.
    #[serde(default)]
    pub(crate) disk: bool,
    /// When backups are made, once they are enabled.
    pub(crate) backup_policy: Option<Value>,
}

/// The types of actions (DOSPEC). Those from [`Self::ChangeBackupPolicy`] on have no effect here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ActionKind {
    PowerOn,
    PowerOff,
    Shutdown,
    Reboot,
    PowerCycle,
    Rename,
    Resize,
    Snapshot,
    EnableBackups,
    DisableBackups,
    ChangeBackupPolicy,
    Restore,
    PasswordReset,
    Rebuild,
    EnableIpv6,
}

impl Order {
    pub(crate) fn of(kind: ActionKind) -> Self {
        Self { kind, name: None, size: None, disk: false, backup_policy: None }
    }
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
        self.powered = self.status == DropletStatus::Active;
        if self.disk == 0 {
            self.disk = disk_of(&self.size);
        }
        self.origin = self.id;
        self.write();
        self
    }

    /// Simulates a write by the guest to its disk.
    pub(crate) fn write(&mut self) {
        self.written += 1;
        self.contents = format!("{}.{}", self.id, self.written);
    }

    /// The meter it is billed under: a worker is a part of its pool.
    fn meter(&self) -> Meter {
        match &self.worker_of {
            None => meter(self.id),
            Some((cluster, pool)) => kubernetes::meter((cluster, pool), self.id),
        }
    }

    /// Reports whether it has a tag, ignoring case.
    pub(crate) fn has_tag(&self, tag: &str) -> bool {
        self.tags.iter().any(|own| own.eq_ignore_ascii_case(tag))
    }

    pub(crate) fn has_gpu(&self) -> bool {
        self.gpu.is_some()
    }

    /// Returns a Droplet to be changed, and invalidates its cached JSON.
    pub(crate) fn of(droplets: &mut BTreeMap<u64, Self>, id: u64) -> Option<&mut Self> {
        let droplet = droplets.get_mut(&id)?;
        droplet.invalidate_cache();
        Some(droplet)
    }

    /// Sets the status that the API shows, and the power state that goes with it.
    pub(crate) fn set_status(&mut self, status: DropletStatus) {
        self.status = status;
        self.powered = status == DropletStatus::Active;
        self.boot += 1;
        if self.powered {
            self.write();
        }
    }

    /// If the Droplet is broken, schedules its guest to turn off again soon. How that shows is an
    /// assumption: it is only known that complete snapshots may fail to boot
    /// (gh2o/digitalocean-debian-to-arch #42).
    fn fail_to_boot(&self, owner: usize, timeline: &mut Timeline) {
        let (id, boot) = (self.id, self.boot);
        if self.broken && self.powered {
            timeline.after(owner, BROKEN, move |account, _| {
                guest_off(account, id, boot);
            });
        }
    }

    /// Why an order is refused. The messages for a Droplet in the wrong power state, other than
    /// those for `power_on` and `power_off`, are assumptions.
    fn refusal(&self, order: &Order, market: &Market) -> Option<&'static str> {
        use ActionKind::{PowerCycle, PowerOff, PowerOn, Reboot, Rename, Resize, Shutdown};
        let kind = order.kind;
        if self.action.is_some()
            || matches!(self.status, DropletStatus::New | DropletStatus::Archive)
        {
            Some("Droplet already has a pending event.")
        } else if kind == PowerOn && self.powered {
            Some("Droplet is already powered on.")
        } else if kind == PowerOff && !self.powered {
            Some("Droplet is already powered off.")
        } else if matches!(kind, Shutdown | Reboot | PowerCycle) && !self.powered {
            Some("Droplet is currently powered off. Please power it on to run this event.")
        } else if kind == Rename && order.name.is_none() {
            Some("You must specify a name.")
        } else if kind == Resize {
            self.resize_refusal(order, market)
        } else {
            None
        }
    }

    /// Why a resize is refused (DODROPLETS, DOSIZES). The messages for an unknown size and for the
    /// current one are assumptions. It is also an assumption that a size that the region lacks is
    /// refused with the same message as for a new Droplet.
    fn resize_refusal(&self, order: &Order, market: &Market) -> Option<&'static str> {
        let size = order.size.as_deref();
        let Some((slug, size)) = size.and_then(|slug| Some((slug, market.droplet_size(slug)?)))
        else {
            return Some("The size you specified is invalid.");
        };
        let disk = size["disk"].as_u64().unwrap_or_default();
        let changes_nothing = slug == self.size && (!order.disk || disk == self.disk);
        if self.powered {
            Some("Droplet is currently on. Please power it off to run this event.")
        } else if disk < self.disk {
            Some("Size can not be smaller than the Droplet's original size")
        } else if changes_nothing {
            Some("Droplet already has this size.")
        } else if !is_sold_in(size, &self.region) {
            Some("Size is not available in this region.")
        } else if self.resize_refusals > 0 {
            Some(NO_ROOM)
        } else {
            None
        }
    }

    /// Invalidates the cached JSON, after a change that it shows.
    pub(crate) fn invalidate_cache(&mut self) {
        self.cached_json.take();
    }
}

/// The meter a Droplet is billed under.
pub(crate) fn meter(id: u64) -> Meter {
    (ResourceId::Droplet(DropletId(id)), 0)
}

/// The disk that comes with a size, in GB.
pub(crate) fn disk_of(slug: &str) -> u64 {
    let size = catalog::droplet_size(slug);
    size.and_then(|size| size["disk"].as_u64()).unwrap_or_default()
}

/// Begins an action and returns its id.
pub(crate) fn begin(
    account: &mut Account,
    timeline: &mut Timeline,
    id: u64,
    order: Order,
) -> Result<u64, Refusal> {
    let droplet = account.droplets.get_mut(&id).ok_or_else(Refusal::not_found)?;
    if let Some(message) = droplet.refusal(&order, &account.market) {
        if message == NO_ROOM {
            droplet.resize_refusals -= 1;
        }
        return Err(Refusal::unprocessable(message));
    }
    let (boot, mut takes) = (droplet.boot, droplet.power_action);
    if order.kind == ActionKind::Resize {
        takes = droplet.resize;
    }
    if order.kind == ActionKind::Snapshot {
        takes = droplet.snapshot;
    }
    if order.kind == ActionKind::Shutdown {
        takes = SIGNAL;
        if !droplet.ignores_shutdown {
            timeline.after(account.index, droplet.shutdown, move |account, _| {
                guest_off(account, id, boot);
            });
        }
    }
    let action = account.begin_action(timeline, ("droplet", id), json!(order.kind));
    timeline.after(account.index, takes, move |account, timeline| {
        end(account, timeline, action, order);
    });
    if let Some(droplet) = Droplet::of(&mut account.droplets, id) {
        droplet.action = Some(action);
    }
    Ok(action)
}

/// Completes an action. What it did to the power shows a little later.
fn end(account: &mut Account, timeline: &mut Timeline, action: u64, order: Order) {
    use ActionKind::{PowerCycle, PowerOff, PowerOn, Reboot};
    let id = account.finish_action(timeline, action);
    let Some(droplet) = id.and_then(|id| Droplet::of(&mut account.droplets, id)) else {
        return;
    };
    droplet.action = None;
    match (order.kind, order.name, order.size) {
        (ActionKind::Rename, Some(name), _) => droplet.name = name,
        (ActionKind::EnableBackups, ..) => {
            droplet.has.insert(Extra::Backups);
            droplet.backup_policy = order.backup_policy;
        }
        (ActionKind::DisableBackups, ..) => {
            droplet.has.remove(&Extra::Backups);
        }
        (ActionKind::Snapshot, name, _) => {
            return snapshots::end(account, timeline, action, name);
        }
        (ActionKind::Resize, _, Some(_)) if droplet.resize_failures > 0 => {
            droplet.resize_failures -= 1;
            if let Some(action) = account.actions.get_mut(&action) {
                action.error = Some(("action_failed", "Action failed"));
            }
        }
        (ActionKind::Resize, _, Some(size)) => {
            if order.disk {
                droplet.disk = disk_of(&size);
            }
            account.ledger.change(&droplet.meter(), timeline.now(), &size);
            droplet.size = size;
        }
        _ => {}
    }
    if matches!(order.kind, PowerOn | PowerOff | Reboot | PowerCycle) {
        droplet.powered = order.kind != PowerOff;
        droplet.boot += 1;
        if droplet.powered {
            droplet.write();
        }
        let id = droplet.id;
        timeline.after(account.index, LAG, move |account, _| {
            show_power(account, id);
        });
        let Some(droplet) = account.droplets.get(&id) else {
            return;
        };
        droplet.fail_to_boot(account.index, timeline);
    }
}

fn show_power(account: &mut Account, id: u64) {
    if let Some(droplet) = Droplet::of(&mut account.droplets, id) {
        droplet.status = if droplet.powered { DropletStatus::Active } else { DropletStatus::Off };
    }
}

/// Turns off a Droplet whose guest has shut down, unless its power has changed in between.
fn guest_off(account: &mut Account, id: u64, boot: u64) {
    if let Some(droplet) = Droplet::of(&mut account.droplets, id)
        && droplet.boot == boot
        && droplet.powered
    {
        droplet.set_status(DropletStatus::Off);
    }
}
