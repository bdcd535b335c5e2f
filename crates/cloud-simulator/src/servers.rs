//! Hetzner servers: power, actions, and what the API shows of them.

use std::{collections::BTreeMap, sync::OnceLock};

use domain::{AccountName, configuration::Provider};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    answer::{Refusal, timestamp},
    catalog, defaults,
    market::Market,
    world::{Account, Action, Timeline},
};

/// How long it takes to send a signal, or to find that there is nothing to do.
const SIGNAL: SignedDuration = SignedDuration::from_secs(1);

/// A server: what a fleet says of it, then its state.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[expect(
    clippy::struct_field_names,
    reason = "`server_type` is the provider's word"
)]
#[serde(deny_unknown_fields)]
pub(crate) struct Server {
    /// May be left out where only one account is of its cloud.
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
    /// How long the guest needs from the shutdown request until it is off.
    #[serde(default = "defaults::seconds::<15>", skip_serializing)]
    pub(crate) shutdown: SignedDuration,
    /// How long it takes to cut the power.
    #[serde(default = "defaults::seconds::<4>", skip_serializing)]
    pub(crate) poweroff: SignedDuration,
    /// How long it takes to power on.
    #[serde(default = "defaults::seconds::<10>", skip_serializing)]
    pub(crate) poweron: SignedDuration,

    /// Counts the times that power came, went or was cycled, so that an old shutdown signal
    /// cannot switch off a later boot.
    #[serde(skip)]
    boot: u64,
    /// The action that runs, during which the server is locked.
    #[serde(skip_deserializing)]
    action: Option<u64>,
    #[serde(skip_deserializing)]
    pub(crate) created: Timestamp,
    /// The answer of [`Self::to_text`]: of thousands in a list few have changed since the last.
    #[serde(skip)]
    text: OnceLock<String>,
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

/// What an action is to do; the name in the request's path.
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

impl Server {
    /// Begins its life with what the fleet says.
    pub(crate) fn created_at(mut self, now: Timestamp) -> Self {
        self.created = now;
        self
    }

    /// The server, to be changed.
    pub(crate) fn of(account: &mut Account, id: u64) -> Option<&mut Self> {
        let server = account.servers.get_mut(&id)?;
        server.show_again();
        Some(server)
    }

    /// Sets the status that the API shows.
    pub(crate) fn set_status(&mut self, status: ServerStatus) {
        self.status = status;
        self.boot += 1;
    }

    /// [`Self::to_json`] as text.
    pub(crate) fn to_text(&self, market: &Market) -> &str {
        self.text.get_or_init(|| self.to_json(market).to_string())
    }

    /// Something has changed that its answer shows.
    pub(crate) fn show_again(&mut self) {
        self.text.take();
    }

    /// The server as the API shows it: with a location, and without a datacenter.
    pub(crate) fn to_json(&self, market: &Market) -> Value {
        let server_type = market.server_type(&self.server_type);
        let fields = json!({
            "id": self.id,
            "name": self.name,
            "status": self.status,
            "created": timestamp(self.created),
            "server_type": server_type,
            "location": catalog::entry(&catalog::LOCATIONS, "name", &self.location),
            "locked": self.action.is_some(),
            "labels": self.labels,
            "primary_disk_size": server_type.map(|server_type| &server_type["disk"]),
        });
        catalog::with(&catalog::SERVER, fields)
    }
}

/// Begins an action and returns its number.
///
/// Power-on of a running server and power-off of one that is off are undocumented; here they are
/// accepted and do nothing.
pub(crate) fn begin(
    account: &mut Account,
    timeline: &mut Timeline,
    id: u64,
    command: Command,
) -> Result<u64, Refusal> {
    use ServerStatus::{Deleting, Initializing, Migrating, Off, Rebuilding, Starting, Stopping};
    let owner = account.index;
    let server = Server::of(account, id).ok_or_else(not_found)?;
    let (status, boot) = (server.status, server.boot);
    let is_busy = matches!(status, Initializing | Deleting | Migrating | Rebuilding);
    if server.action.is_some() || is_busy {
        return Err(Refusal::of_status(Provider::Hetzner, 423));
    }
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
    let action = account.begin_action(timeline, id, json!(command.name()));
    timeline.after(owner, takes, move |account, timeline| {
        end(account, timeline, action);
    });
    if let Some(server) = Server::of(account, id) {
        server.action = Some(action);
    }
    Ok(action)
}

/// An action has succeeded. For a shutdown this says only that the signal was sent (HZSPEC).
fn end(account: &mut Account, timeline: &Timeline, action: u64) {
    let id = account.finish_action(timeline, action);
    let Some(server) = id.and_then(|id| Server::of(account, id)) else {
        return;
    };
    server.action = None;
    if server.status == ServerStatus::Stopping {
        server.set_status(ServerStatus::Off);
    } else if server.status == ServerStatus::Starting {
        server.set_status(ServerStatus::Running);
    }
}

/// The guest has shut itself down, unless power came or went in between.
fn guest_off(account: &mut Account, id: u64, boot: u64) {
    if let Some(server) = Server::of(account, id)
        && server.boot == boot
        && server.status == ServerStatus::Running
    {
        server.set_status(ServerStatus::Off);
    }
}

/// An action as the API shows it.
pub(crate) fn action_json(action: &Action) -> Value {
    let done = action.finished.is_some();
    json!({
        "id": action.id,
        "command": action.kind,
        "status": if done { "success" } else { "running" },
        "progress": if done { 100 } else { 0 },
        "started": timestamp(action.started),
        "finished": action.finished.map(timestamp),
        "resources": [{"id": action.machine, "type": "server"}],
        "error": null,
    })
}

pub(crate) fn not_found() -> Refusal {
    Refusal::of_status(Provider::Hetzner, 404)
}
