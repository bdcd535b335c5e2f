//! Hetzner servers: power, actions, and what the API shows of them.

use std::sync::{Arc, Mutex, PoisonError};

use domain::configuration::Provider;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    answer::{Refusal, timestamp},
    catalog,
    fleet::{self, ServerStatus},
    world::{Account, Action, Effect, Timeline},
};

/// How long it takes to send a signal, or to find that there is nothing to do.
const SIGNAL: SignedDuration = SignedDuration::from_secs(1);

/// A server as it is.
#[derive(Debug, Serialize)]
pub(crate) struct Server {
    #[serde(flatten)]
    pub(crate) description: fleet::Server,
    /// Counts the times that power came, went or was cycled, so that an old shutdown signal
    /// cannot switch off a later boot.
    #[serde(skip)]
    boot: u64,
    /// The action that runs, during which the server is locked.
    pub(crate) action: Option<u64>,
    pub(crate) created: Timestamp,
    /// The server as it was written out last: of thousands in a list few have changed since.
    #[serde(skip)]
    written: Mutex<Option<Written>>,
}

/// A server's JSON, and what it was made of.
#[derive(Debug)]
struct Written {
    description: fleet::Server,
    locked: bool,
    json: Arc<str>,
}

/// What an action is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    Shutdown,
    PowerOff,
    PowerOn,
    Reboot,
}

impl Command {
    /// By the last part of the path that asks for it.
    pub(crate) fn of_path(word: &str) -> Option<Self> {
        match word {
            "shutdown" => Some(Self::Shutdown),
            "poweroff" => Some(Self::PowerOff),
            "poweron" => Some(Self::PowerOn),
            "reboot" => Some(Self::Reboot),
            _ => None,
        }
    }

    /// The cloud's word for it (HZSPEC).
    fn word(self) -> &'static str {
        match self {
            Self::Shutdown => "shutdown_server",
            Self::PowerOff => "stop_server",
            Self::PowerOn => "start_server",
            Self::Reboot => "reboot_server",
        }
    }
}

impl Server {
    pub(crate) fn new(description: fleet::Server, now: Timestamp) -> Self {
        Self {
            boot: 0,
            action: None,
            created: now,
            description,
            written: Mutex::default(),
        }
    }

    /// Sets the status that the API shows.
    pub(crate) fn set_status(&mut self, status: ServerStatus) {
        self.description.status = status;
        self.boot += 1;
    }

    fn locked(&self) -> bool {
        self.action.is_some()
    }

    /// [`Self::to_json`], as text.
    pub(crate) fn to_text(&self) -> Arc<str> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let is_true = |written: &&Written| {
            written.locked == self.locked() && written.description == self.description
        };
        if let Some(written) = written.as_ref().filter(is_true) {
            return Arc::clone(&written.json);
        }
        let json = Arc::from(self.to_json().to_string());
        *written = Some(Written {
            description: self.description.clone(),
            locked: self.locked(),
            json: Arc::clone(&json),
        });
        json
    }

    /// The server as the API shows it: with a location, and without a datacenter.
    pub(crate) fn to_json(&self) -> Value {
        let fleet::Server {
            id,
            name,
            labels,
            location,
            server_type,
            status,
            ..
        } = &self.description;
        let server_type = catalog::entry(&catalog::SERVER_TYPES, "name", server_type);
        let fields = json!({
            "id": id,
            "name": name,
            "status": status,
            "created": timestamp(self.created),
            "server_type": server_type,
            "location": catalog::entry(&catalog::LOCATIONS, "name", location),
            "locked": self.locked(),
            "labels": labels,
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
    let server = account.servers.get_mut(&id).ok_or_else(not_found)?;
    let fleet::Server {
        status,
        ignores_shutdown,
        shutdown,
        poweroff,
        poweron,
        ..
    } = server.description;
    let busy = matches!(
        status,
        ServerStatus::Initializing
            | ServerStatus::Deleting
            | ServerStatus::Migrating
            | ServerStatus::Rebuilding
    );
    if server.locked() || busy {
        return Err(Refusal::of_status(Provider::Hetzner, 423));
    }
    let boot = server.boot;
    let is_off = status == ServerStatus::Off;
    let takes = match command {
        Command::PowerOff if !is_off => {
            server.set_status(ServerStatus::Stopping);
            poweroff
        }
        Command::PowerOn if is_off => {
            server.set_status(ServerStatus::Starting);
            poweron
        }
        Command::Reboot if !is_off => {
            server.set_status(status);
            SIGNAL
        }
        Command::PowerOff | Command::PowerOn | Command::Reboot | Command::Shutdown => SIGNAL,
    };
    if command == Command::Shutdown && !is_off && !ignores_shutdown {
        timeline.after(
            account,
            shutdown,
            Effect::ServerGuestOff { server: id, boot },
        );
    }
    let action = account.begin_action(timeline, id, command.word(), None);
    timeline.after(account, takes, Effect::ServerActionEnds(action));
    if let Some(server) = account.servers.get_mut(&id) {
        server.action = Some(action);
    }
    Ok(action)
}

/// An action has succeeded. For a shutdown this says only that the signal was sent (HZSPEC).
pub(crate) fn action_ends(account: &mut Account, timeline: &Timeline, action: u64) {
    let Some(action) = account.actions.get_mut(&action) else {
        return;
    };
    action.finished = Some(timeline.now());
    let Some(server) = account.servers.get_mut(&action.machine) else {
        return;
    };
    server.action = None;
    match server.description.status {
        ServerStatus::Stopping => server.set_status(ServerStatus::Off),
        ServerStatus::Starting => server.set_status(ServerStatus::Running),
        ServerStatus::Running
        | ServerStatus::Initializing
        | ServerStatus::Off
        | ServerStatus::Deleting
        | ServerStatus::Migrating
        | ServerStatus::Rebuilding
        | ServerStatus::Unknown => {}
    }
}

/// The guest has shut itself down, unless power came or went in between.
pub(crate) fn guest_off(account: &mut Account, id: u64, boot: u64) {
    if let Some(server) = account.servers.get_mut(&id)
        && server.boot == boot
        && server.description.status == ServerStatus::Running
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
