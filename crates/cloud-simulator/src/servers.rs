//! Hetzner servers: power, actions, and their representation in the API.

pub(crate) mod create;
pub(crate) mod images;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, OnceLock},
};

use domain::{AccountName, ResourceId, ServerId, configuration::Provider};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    answer::Refusal,
    catalog, defaults,
    droplets::BROKEN,
    ledger::Meter,
    market::Market,
    things::Thing,
    world::{Account, Timeline},
};

/// How long it takes to send a signal, or to find that there is nothing to do.
const SIGNAL: SignedDuration = SignedDuration::from_secs(1);

/// A server: its description in a fleet, then its state.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    clippy::struct_field_names,
    reason = "a fleet file says each by itself, and `server_type` is the provider's word"
)]
#[serde(deny_unknown_fields)]
pub(crate) struct Server {
    /// May be left out if its cloud has only one account.
    #[serde(skip_serializing)]
    pub(crate) account: Option<AccountName>,
    pub(crate) id: u64,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
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
    /// How long a change of type takes.
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
    /// The extras that it has.
    #[serde(default)]
    pub(crate) has: BTreeSet<Extra>,
    /// The families of its initial public addresses.
    #[serde(default = "defaults::addresses", skip_serializing)]
    pub(crate) addresses: BTreeSet<Family>,

    /// Whether it fails to boot: it soon turns off again whenever it is powered on.
    #[serde(skip_deserializing)]
    pub(crate) broken: bool,
    /// Counts power changes and reboots, so that an old shutdown signal cannot turn off a later
    /// boot.
    #[serde(skip)]
    boot: u64,
    /// Identifies the contents of its disk: the server that last wrote to it, and the number of
    /// that write. Equal values mean equal contents.
    #[serde(skip_deserializing)]
    pub(crate) contents: String,
    /// The contents of its disk when the server was created.
    #[serde(skip_deserializing)]
    pub(crate) first_contents: String,
    /// How often the contents of its disk have changed.
    #[serde(skip)]
    written: u64,
    /// The ids of its primary IPs.
    #[serde(skip_deserializing)]
    pub(crate) ipv4: Option<u64>,
    #[serde(skip_deserializing)]
    pub(crate) ipv6: Option<u64>,
    /// The image that it was made from, if that is one of the project's.
    #[serde(skip_deserializing)]
    pub(crate) image: Option<u64>,
    /// The original server that it descends from through images; its own id if there is none.
    #[serde(skip)]
    pub(crate) origin: u64,
    /// The running action, which locks the server.
    #[serde(skip_deserializing)]
    pub(crate) action: Option<u64>,
    /// Defaults to the instant at which it joins the simulation.
    #[serde(default)]
    pub(crate) created: Timestamp,
    /// The cached response about it.
    #[serde(skip)]
    pub(crate) cached_json: OnceLock<String>,
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

/// An extra that a server may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Extra {
    Backups,
    /// An ISO is attached.
    Iso,
    /// It is protected from deletion and from being rebuilt.
    Protection,
    /// It boots into the rescue system next.
    Rescue,
}

/// A kind of public address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Family {
    Ipv4,
    Ipv6,
}

impl Family {
    /// The family of an address.
    pub(crate) fn of(ip: &Thing) -> Self {
        if ip.is_ipv6() { Self::Ipv6 } else { Self::Ipv4 }
    }
}

/// An action to begin: the name in the request's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    Shutdown,
    PowerOff,
    PowerOn,
    Reboot,
}

impl Command {
    /// The action's name (HZSPEC).
    fn name(self) -> &'static str {
        match self {
            Self::Shutdown => "shutdown_server",
            Self::PowerOff => "stop_server",
            Self::PowerOn => "start_server",
            Self::Reboot => "reboot_server",
        }
    }
}

/// A requested change of type: the body of its request. Both fields are required (HZSPEC).
#[derive(Debug, Clone)]
pub(crate) struct TypeChange {
    /// The type's name or id.
    pub(crate) server_type: String,
    /// Whether the disk also grows, permanently.
    pub(crate) upgrade_disk: bool,
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
        self.origin = self.id;
        self.write();
        self
    }

    /// Resets the state that it has inherited from another server's image.
    fn begin_life(&mut self) {
        self.status = ServerStatus::Initializing;
        (self.boot, self.written, self.action) = (0, 0, None);
        self.invalidate_cache();
    }

    /// Simulates a write by the guest to its disk.
    pub(crate) fn write(&mut self) {
        self.written += 1;
        self.contents = format!("{}.{}", self.id, self.written);
    }

    /// The id of its address of a family.
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
        if self.action.is_some() || is_busy {
            return Err(Refusal::of_status(Provider::Hetzner, 423));
        }
        Ok(())
    }

    /// The type that a change asks for, or why it is refused. The code for a location without room
    /// and the refusal of the current type are assumptions.
    fn type_after<'a>(
        &self,
        change: &TypeChange,
        market: &'a Market,
        now: Timestamp,
    ) -> Result<&'a Value, Refusal> {
        let refuse = |message: &str| Err(Refusal::new(422, "invalid_server_type", message));
        if self.status != ServerStatus::Off {
            let message = "server must be stopped";
            return Err(Refusal::new(422, "server_not_stopped", message));
        }
        let asked = &change.server_type;
        let number = asked.parse().ok();
        let is_asked = |entry: &&Value| entry["name"] == **asked || entry["id"].as_u64() == number;
        let Some(found) = market.listed_types(now).find(is_asked) else {
            return refuse("unknown server type");
        };
        let own = market.server_type(&self.server_type).unwrap_or(&Value::Null);
        let mut locations = catalog::entries(&found["locations"]);
        let here = locations.find(|location| location["name"] == *self.location);
        let Some(here) = here.filter(|here| here["deprecation"].is_null()) else {
            return refuse("server type is deprecated or not supported in this location");
        };
        if found["name"] == *self.server_type {
            return refuse("server already has this type");
        }
        if ["architecture", "storage_type"].iter().any(|field| found[field] != own[field]) {
            return refuse("server type does not fit the server");
        }
        let disk = disk_of(found);
        if disk < self.disk {
            return refuse("server type has a smaller disk");
        }
        if change.upgrade_disk && disk == self.disk {
            return refuse("the disk cannot be upgraded: it has this size already");
        }
        if here["available"] != true || self.change_type_refusals > 0 {
            let message = "error during placement";
            return Err(Refusal::new(412, "resource_unavailable", message));
        }
        Ok(found)
    }

    /// Returns a server to be changed, and invalidates its cached JSON.
    pub(crate) fn of(account: &mut Account, id: u64) -> Option<&mut Self> {
        let server = account.servers.get_mut(&id)?;
        server.invalidate_cache();
        Some(server)
    }

    /// Sets the status that the API shows.
    pub(crate) fn set_status(&mut self, status: ServerStatus) {
        self.status = status;
        self.boot += 1;
        if matches!(status, ServerStatus::Running | ServerStatus::Starting) {
            self.write();
        }
    }

    /// If the server is broken, schedules its guest to turn off again soon, like a Droplet's.
    fn fail_to_boot(&self, owner: usize, timeline: &mut Timeline) {
        let (id, boot) = (self.id, self.boot);
        if self.broken && self.status == ServerStatus::Running {
            timeline.after(owner, BROKEN, move |account, _| {
                guest_off(account, id, boot);
            });
        }
    }

    /// Invalidates the cached JSON, after a change that it shows.
    pub(crate) fn invalidate_cache(&mut self) {
        self.cached_json.take();
    }
}

/// Begins an action and returns its id.
///
/// Powering on a running server and powering off one that is off are undocumented; here they are
/// accepted and do nothing.
pub(crate) fn begin(
    account: &mut Account,
    timeline: &mut Timeline,
    id: u64,
    command: Command,
) -> Result<u64, Refusal> {
    use ServerStatus::{Off, Starting, Stopping};
    let owner = account.index;
    let server = Server::of(account, id).ok_or_else(not_found)?;
    let (status, boot) = (server.status, server.boot);
    server.check_unlocked()?;
    let mut takes = SIGNAL;
    match (command, status == Off) {
        (Command::PowerOff, false) => {
            server.set_status(Stopping);
            takes = server.poweroff;
        }
        (Command::PowerOn, true) => {
            server.set_status(Starting);
            takes = server.poweron;
        }
        (Command::Reboot, false) => server.set_status(status),
        (Command::Shutdown, false) if !server.ignores_shutdown => {
            timeline.after(owner, server.shutdown, move |account, _| {
                guest_off(account, id, boot);
            });
        }
        (Command::PowerOff | Command::PowerOn | Command::Reboot | Command::Shutdown, _) => {}
    }
    let action = account.begin_action(timeline, ("server", id), json!(command.name()));
    timeline.after(owner, takes, move |account, timeline| {
        end(account, timeline, action);
    });
    if let Some(server) = Server::of(account, id) {
        server.action = Some(action);
    }
    Ok(action)
}

/// Begins a change of type and returns its action's id.
pub(crate) fn change_type(
    account: &mut Account,
    timeline: &mut Timeline,
    id: u64,
    change: &TypeChange,
) -> Result<u64, Refusal> {
    let market = Arc::clone(&account.market);
    let server = Server::of(account, id).ok_or_else(not_found)?;
    server.check_unlocked()?;
    let found = match server.type_after(change, &market, timeline.now()) {
        Ok(found) => found,
        Err(refusal) => {
            if refusal.status == 412 {
                server.change_type_refusals = server.change_type_refusals.saturating_sub(1);
            }
            return Err(refusal);
        }
    };
    let name = found["name"].as_str().unwrap_or_default().to_owned();
    let disk = change.upgrade_disk.then(|| disk_of(found));
    server.set_status(ServerStatus::Migrating);
    let takes = server.change_type;
    let action = account.begin_action(timeline, ("server", id), json!("change_server_type"));
    timeline.after(account.index, takes, move |account, timeline| {
        end_change(account, timeline, action, name, disk);
    });
    if let Some(server) = Server::of(account, id) {
        server.action = Some(action);
    }
    Ok(action)
}

/// Ends a change of type: it succeeds, and the server starts again (HZSPEC), or it fails.
fn end_change(
    account: &mut Account,
    timeline: &mut Timeline,
    action: u64,
    server_type: String,
    disk: Option<u64>,
) {
    let owner = account.index;
    let id = account.finish_action(timeline, action);
    let Some(server) = id.and_then(|id| Server::of(account, id)) else {
        return;
    };
    server.action = None;
    if server.change_type_failures > 0 {
        server.change_type_failures -= 1;
        server.set_status(ServerStatus::Off);
        account.fail_action(timeline, action);
        return;
    }
    let now = timeline.now();
    server.server_type = server_type;
    server.disk = disk.unwrap_or(server.disk);
    server.set_status(if server.stays_off_after_change {
        ServerStatus::Off
    } else {
        ServerStatus::Running
    });
    server.fail_to_boot(owner, timeline);
    let (meter, size) = (meter(server.id), server.server_type.clone());
    account.ledger.change(&meter, now, &size);
}

/// The meter a server is billed under.
pub(crate) fn meter(id: u64) -> Meter {
    (ResourceId::Server(ServerId(id)), 0)
}

/// The disk that comes with a server type, in GB.
pub(crate) fn disk_of(server_type: &Value) -> u64 {
    server_type["disk"].as_u64().unwrap_or_default()
}

/// Completes an action successfully. For a shutdown this says only that the signal was sent
/// (HZSPEC).
fn end(account: &mut Account, timeline: &mut Timeline, action: u64) {
    let owner = account.index;
    let id = account.finish_action(timeline, action);
    let Some(server) = id.and_then(|id| Server::of(account, id)) else {
        return;
    };
    server.action = None;
    if server.status == ServerStatus::Stopping {
        server.set_status(ServerStatus::Off);
    } else if server.status == ServerStatus::Starting {
        server.set_status(ServerStatus::Running);
        server.fail_to_boot(owner, timeline);
    }
}

/// Turns off a server whose guest has shut down, unless its power has changed in between.
fn guest_off(account: &mut Account, id: u64, boot: u64) {
    if let Some(server) = Server::of(account, id)
        && server.boot == boot
        && server.status == ServerStatus::Running
    {
        server.set_status(ServerStatus::Off);
    }
}

pub(crate) fn not_found() -> Refusal {
    Refusal::of_status(Provider::Hetzner, 404)
}
