//! The actions of Droplets, and what they refuse and change.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::snapshots;
use crate::{
    account::{Account, Timeline},
    answer::Refusal,
    droplets::{Droplet, DropletStatus, Extra, disk_of},
    market::{Market, is_sold_in},
};

/// How long it takes to deliver the shutdown signal to the guest.
const SIGNAL: SignedDuration = SignedDuration::from_secs(3);
/// Why a resize is refused while the Droplet's host has no room.
const NO_ROOM: &str = "Size is too large to fit on your droplet's server";
/// How long the status lags behind the end of an action (`droplet_kit` #50).
const LAG: SignedDuration = SignedDuration::from_secs(2);

/// An action to begin: the body of its request.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Order {
    #[serde(rename = "type")]
    pub(crate) kind: ActionKind,
    pub(crate) name: Option<String>,
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

/// Why an order is refused. The messages for a Droplet in the wrong power state, other than
/// those for `power_on` and `power_off`, are assumptions.
fn refusal(droplet: &Droplet, order: &Order, market: &Market) -> Option<&'static str> {
    use ActionKind::{PowerCycle, PowerOff, PowerOn, Reboot, Rename, Resize, Shutdown};
    let kind = order.kind;
    if droplet.guest.action.is_some()
        || matches!(droplet.status, DropletStatus::New | DropletStatus::Archive)
    {
        Some("Droplet already has a pending event.")
    } else if kind == PowerOn && droplet.guest.powered {
        Some("Droplet is already powered on.")
    } else if kind == PowerOff && !droplet.guest.powered {
        Some("Droplet is already powered off.")
    } else if matches!(kind, Shutdown | Reboot | PowerCycle) && !droplet.guest.powered {
        Some("Droplet is currently powered off. Please power it on to run this event.")
    } else if kind == Rename && order.name.is_none() {
        Some("You must specify a name.")
    } else if kind == Resize {
        resize_refusal(droplet, order, market)
    } else {
        None
    }
}

/// Why a resize is refused (DODROPLETS, DOSIZES). The messages for an unknown size and for the
/// current one are assumptions. It is also an assumption that a size that the region lacks is
/// refused with the same message as for a new Droplet.
fn resize_refusal(droplet: &Droplet, order: &Order, market: &Market) -> Option<&'static str> {
    let size = order.size.as_deref();
    let Some((slug, size)) = size.and_then(|slug| Some((slug, market.droplet_size(slug)?))) else {
        return Some("The size you specified is invalid.");
    };
    let disk = size["disk"].as_u64().unwrap_or_default();
    let changes_nothing = slug == droplet.size && (!order.disk || disk == droplet.disk);
    if droplet.guest.powered {
        Some("Droplet is currently on. Please power it off to run this event.")
    } else if disk < droplet.disk {
        Some("Size can not be smaller than the Droplet's original size")
    } else if changes_nothing {
        Some("Droplet already has this size.")
    } else if !is_sold_in(size, &droplet.region) {
        Some("Size is not available in this region.")
    } else if droplet.resize_refusals > 0 {
        Some(NO_ROOM)
    } else {
        None
    }
}

pub(crate) fn begin(
    account: &mut Account,
    timeline: &mut Timeline,
    id: u64,
    order: Order,
) -> Result<u64, Refusal> {
    let droplet = account.droplets.get_mut(&id).ok_or_else(Refusal::not_found)?;
    if let Some(message) = refusal(droplet, &order, &account.market) {
        if message == NO_ROOM {
            droplet.resize_refusals -= 1;
        }
        return Err(Refusal::unprocessable(message));
    }
    let mut takes = droplet.power_action;
    if order.kind == ActionKind::Resize {
        takes = droplet.resize;
    } else if order.kind == ActionKind::Snapshot {
        takes = droplet.snapshot;
    } else if order.kind == ActionKind::Shutdown {
        takes = SIGNAL;
        if droplet.ignores_shutdown {
            takes = droplet.shutdown_error.unwrap_or(SIGNAL);
        } else {
            let shutdown = droplet.shutdown;
            account.turn_off_after(timeline, id, shutdown);
        }
    }
    let kind = json!(order.kind);
    let end = move |account: &mut Account, timeline: &mut Timeline, action| {
        end(account, timeline, id, action, order);
    };
    Ok(account.run_action(timeline, ("droplet", id), kind, takes, end))
}

/// Completes an action. What it did to the power shows a little later.
fn end(account: &mut Account, timeline: &mut Timeline, id: u64, action: u64, order: Order) {
    use ActionKind::{PowerCycle, PowerOff, PowerOn, Reboot};
    let Some(droplet) = account.droplets.get_mut(&id) else {
        return;
    };
    match (order.kind, order.name, order.size) {
        (ActionKind::Rename, Some(name), _) => droplet.name = name,
        (ActionKind::EnableBackups, ..) => {
            droplet.has.insert(Extra::Backups);
            droplet.backup_policy = order.backup_policy;
        }
        (ActionKind::DisableBackups, ..) => {
            droplet.has.remove(&Extra::Backups);
        }
        (ActionKind::Snapshot, name, _) => snapshots::end(account, timeline, id, action, name),
        (ActionKind::Shutdown, ..)
            if droplet.ignores_shutdown && droplet.shutdown_error.is_some() =>
        {
            account.fail_action(action);
        }
        (ActionKind::Resize, _, Some(_)) if droplet.resize_failures > 0 => {
            droplet.resize_failures -= 1;
            account.fail_action(action);
        }
        (ActionKind::Resize, _, Some(size)) => {
            if order.disk {
                droplet.disk = disk_of(&size);
            }
            account.ledger.change(&droplet.meter(), timeline.now(), &size);
            droplet.size = size;
        }
        (PowerOn | PowerOff | Reboot | PowerCycle, ..) => {
            droplet.guest.set_power(order.kind != PowerOff);
            timeline.after(account.index, LAG, move |account, _| show_power(account, id));
            account.boot(timeline, id);
        }
        _ => {}
    }
}

fn show_power(account: &mut Account, id: u64) {
    if let Some(droplet) = account.droplet(id) {
        let runs = droplet.guest.powered;
        droplet.status = if runs { DropletStatus::Active } else { DropletStatus::Off };
    }
}
