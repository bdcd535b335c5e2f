//! The actions of servers, and what they refuse and change.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{
    Result,
    body::{body, flag, labels, text},
    shown,
};
use crate::{
    account::{Account, Timeline},
    answer::{Answer, Refusal},
    catalog,
    market::Market,
    routes::Call,
    servers::{Extra, Server, ServerStatus, disk_of, meter, not_found},
};

/// How long it takes to send a signal, or to find that there is nothing to do.
const SIGNAL: SignedDuration = SignedDuration::from_secs(1);

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

/// The type that a change asks for, or why it is refused. The code for a location without room
/// and the refusal of the current type are assumptions.
fn type_after<'a>(
    server: &Server,
    change: &TypeChange,
    market: &'a Market,
    now: Timestamp,
) -> Result<&'a Value> {
    let refusal = |message: &str| Refusal::new(422, "invalid_server_type", message);
    Refusal::new(422, "server_not_stopped", "server must be stopped")
        .when(server.status != ServerStatus::Off)?;
    let asked = &change.server_type;
    let number = asked.parse().ok();
    let is_asked = |entry: &&Value| entry["name"] == **asked || entry["id"].as_u64() == number;
    let Some(found) = market.listed_types(now).find(is_asked) else {
        return Err(refusal("unknown server type"));
    };
    let own = market.server_type(&server.server_type).unwrap_or(&Value::Null);
    let mut locations = catalog::entries(&found["locations"]);
    let here = locations.find(|location| location["name"] == *server.location);
    let Some(here) = here.filter(|here| here["deprecation"].is_null()) else {
        return Err(refusal("server type is deprecated or not supported in this location"));
    };
    refusal("server already has this type").when(found["name"] == *server.server_type)?;
    refusal("server type does not fit the server")
        .when(["architecture", "storage_type"].iter().any(|field| found[field] != own[field]))?;
    let disk = disk_of(found);
    refusal("server type has a smaller disk").when(disk < server.disk)?;
    refusal("the disk cannot be upgraded: it has this size already")
        .when(change.upgrade_disk && disk == server.disk)?;
    Refusal::new(412, "resource_unavailable", "error during placement")
        .when(here["available"] != true || server.change_type_refusals > 0)?;
    Ok(found)
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
) -> Result<u64> {
    use ServerStatus::{Starting, Stopping};
    let server = account.server(id).ok_or_else(not_found)?;
    server.check_unlocked()?;
    let mut takes = SIGNAL;
    match (command, server.is_off()) {
        (Command::PowerOff, false) => {
            server.set_status(Stopping);
            takes = server.poweroff;
        }
        (Command::PowerOn, true) => {
            server.set_status(Starting);
            takes = server.poweron;
        }
        (Command::Reboot, false) => server.set_status(server.status),
        (Command::Shutdown, false) if !server.ignores_shutdown => {
            let shutdown = server.shutdown;
            account.turn_off_after(timeline, id, shutdown);
        }
        (Command::PowerOff | Command::PowerOn | Command::Reboot | Command::Shutdown, _) => {}
    }
    let kind = json!(command.name());
    Ok(account.run_action(timeline, ("server", id), kind, takes, move |account, timeline, _| {
        settle(account, timeline, id);
    }))
}

/// Completes an action successfully. For a shutdown this says only that the signal was sent
/// (HZSPEC).
pub(super) fn settle(account: &mut Account, timeline: &mut Timeline, id: u64) {
    let Some(server) = account.server(id) else {
        return;
    };
    if server.status == ServerStatus::Stopping {
        server.set_status(ServerStatus::Off);
    } else if server.status == ServerStatus::Starting {
        server.set_status(ServerStatus::Running);
        account.boot(timeline, id);
    }
}

/// Begins a change of type and returns its action's id.
pub(crate) fn change_type(
    account: &mut Account,
    timeline: &mut Timeline,
    id: u64,
    change: &TypeChange,
) -> Result<u64> {
    let market = Arc::clone(&account.market);
    let server = account.server(id).ok_or_else(not_found)?;
    server.check_unlocked()?;
    let found = match type_after(server, change, &market, timeline.now()) {
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
    let (on, kind) = (("server", id), json!("change_server_type"));
    Ok(account.run_action(timeline, on, kind, takes, move |account, timeline, action| {
        end_change(account, timeline, id, action, name, disk);
    }))
}

/// Ends a change of type: it succeeds, and the server starts again (HZSPEC), or it fails.
fn end_change(
    account: &mut Account,
    timeline: &mut Timeline,
    id: u64,
    action: u64,
    server_type: String,
    disk: Option<u64>,
) {
    let Some(server) = account.servers.get_mut(&id) else {
        return;
    };
    if server.change_type_failures > 0 {
        server.change_type_failures -= 1;
        server.set_status(ServerStatus::Off);
        account.fail_action(action);
        return;
    }
    account.ledger.change(&meter(id), timeline.now(), &server_type);
    server.server_type = server_type;
    server.disk = disk.unwrap_or(server.disk);
    let stays_off = server.stays_off_after_change;
    server.set_status(if stays_off { ServerStatus::Off } else { ServerStatus::Running });
    account.boot(timeline, id);
}

pub(super) fn update_server(call: &mut Call<'_>) -> Result<Answer> {
    let body = body(call, "name labels")?;
    let labels = labels(&body)?;
    let id = call.id();
    let server = call.account.server(id).ok_or_else(not_found)?;
    if let Some(name) = text(&body, "name") {
        server.name = name;
    }
    if let Some(labels) = labels {
        server.labels = labels;
    }
    let server = call.server()?;
    Ok(Answer::json(200, &json!({"server": shown::server(call.account, server)})))
}

pub(super) fn protect_server(call: &mut Call<'_>) -> Result<Answer> {
    let body = body(call, "delete rebuild")?;
    let id = call.id();
    let server = call.account.server(id).ok_or_else(not_found)?;
    if flag(&body, "delete", server.has.contains(&Extra::Protection)) {
        server.has.insert(Extra::Protection);
    } else {
        server.has.remove(&Extra::Protection);
    }
    call.act_at_once(("server", id), "change_protection")
}

pub(super) fn enable_backup(call: &mut Call<'_>) -> Result<Answer> {
    let id = call.id();
    let server = call.account.server(id).ok_or_else(not_found)?;
    server.has.insert(Extra::Backups);
    call.act_at_once(("server", id), "enable_backup")
}
