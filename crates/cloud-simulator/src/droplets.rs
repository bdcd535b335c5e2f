//! Droplets: power, actions, and what the API shows of them.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    answer::{Refusal, timestamp},
    catalog,
    fleet::{self, DropletStatus},
    world::{Account, Action, Effect, Timeline},
};

/// How long it takes to hand the shutdown signal to the guest.
const SIGNAL: SignedDuration = SignedDuration::from_secs(3);
/// How long the status lags behind the end of an action.
const LAG: SignedDuration = SignedDuration::from_secs(2);

/// A Droplet as it is.
#[derive(Debug, Serialize)]
pub(crate) struct Droplet {
    #[serde(flatten)]
    pub(crate) description: fleet::Droplet,
    /// As the API shows it, a little late.
    pub(crate) status: DropletStatus,
    /// Whether it really has power.
    pub(crate) powered: bool,
    /// Counts the times that power came, went or was cycled, so that an old shutdown signal
    /// cannot switch off a later boot.
    #[serde(skip)]
    boot: u64,
    /// The action that runs, during which the Droplet is locked.
    pub(crate) action: Option<u64>,
    pub(crate) created: Timestamp,
    /// For a Kubernetes node: its cluster and pool.
    pub(crate) worker_of: Option<(String, String)>,
}

/// What an action is to do. The cloud's words for the others end without an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Order {
    PowerOn,
    PowerOff,
    Shutdown,
    Reboot,
    PowerCycle,
    Rename(String),
    Resize(String),
    Other(&'static str),
}

/// The types without an effect here (DOSPEC).
const OTHERS: [&str; 8] = [
    "enable_backups",
    "disable_backups",
    "change_backup_policy",
    "restore",
    "password_reset",
    "rebuild",
    "enable_ipv6",
    "snapshot",
];

impl Order {
    pub(crate) fn from_json(body: &Value) -> Result<Self, Refusal> {
        let kind = body["type"]
            .as_str()
            .ok_or_else(|| Refusal::unprocessable("You must specify a type of action."))?;
        let text = |field: &str| {
            let missing = || Refusal::unprocessable(format!("You must specify a {field}."));
            body[field].as_str().map(str::to_owned).ok_or_else(missing)
        };
        match kind {
            "power_on" => Ok(Self::PowerOn),
            "power_off" => Ok(Self::PowerOff),
            "shutdown" => Ok(Self::Shutdown),
            "reboot" => Ok(Self::Reboot),
            "power_cycle" => Ok(Self::PowerCycle),
            "rename" => Ok(Self::Rename(text("name")?)),
            "resize" => Ok(Self::Resize(text("size")?)),
            other => {
                let known = OTHERS.iter().find(|known| **known == other);
                let unknown = || Refusal::unprocessable(format!("{other} is not a valid action."));
                known.map(|known| Self::Other(known)).ok_or_else(unknown)
            }
        }
    }

    /// The cloud's word for it.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::PowerOn => "power_on",
            Self::PowerOff => "power_off",
            Self::Shutdown => "shutdown",
            Self::Reboot => "reboot",
            Self::PowerCycle => "power_cycle",
            Self::Rename(_) => "rename",
            Self::Resize(_) => "resize",
            Self::Other(word) => word,
        }
    }
}

impl Droplet {
    pub(crate) fn new(description: fleet::Droplet, now: Timestamp) -> Self {
        Self {
            status: description.status,
            powered: description.status == DropletStatus::Active,
            boot: 0,
            action: None,
            created: now,
            worker_of: None,
            description,
        }
    }

    pub(crate) fn has_tag(&self, tag: &str) -> bool {
        // Tags are compared without regard to case.
        self.description
            .tags
            .iter()
            .any(|own| own.eq_ignore_ascii_case(tag))
    }

    /// Sets the status that the API shows, and the power that goes with it.
    pub(crate) fn set_status(&mut self, status: DropletStatus) {
        self.status = status;
        self.powered = status == DropletStatus::Active;
        self.boot += 1;
    }

    fn refuses(&self, order: &Order) -> Option<Refusal> {
        let pending = self.action.is_some()
            || matches!(self.status, DropletStatus::New | DropletStatus::Archive);
        if pending {
            return Some(Refusal::unprocessable(
                "Droplet already has a pending event.",
            ));
        }
        let message = match (order, self.powered) {
            (Order::PowerOn, true) => "Droplet is already powered on.",
            (Order::PowerOff, false) => "Droplet is already powered off.",
            // What these say of a Droplet that is off (and a resize of one that is on) is an
            // assumption.
            (Order::Shutdown | Order::Reboot | Order::PowerCycle, false) => {
                "Droplet is currently powered off. Please power it on to run this event."
            }
            (Order::Resize(_), true) => "Droplet must be powered off to run this event.",
            (Order::Resize(size), false) if catalog::droplet_size(size).is_none() => {
                "The size you specified is invalid."
            }
            (
                Order::PowerOn
                | Order::PowerOff
                | Order::Shutdown
                | Order::Reboot
                | Order::PowerCycle
                | Order::Rename(_)
                | Order::Resize(_)
                | Order::Other(_),
                _,
            ) => return None,
        };
        Some(Refusal::unprocessable(message))
    }

    /// The Droplet as the API shows it.
    pub(crate) fn to_json(&self) -> Value {
        let fleet::Droplet {
            id,
            name,
            tags,
            region,
            size: slug,
            ..
        } = &self.description;
        let facts = catalog::droplet_size(slug).unwrap_or(&Value::Null);
        let fields = json!({
            "id": id,
            "name": name,
            "memory": facts["memory"],
            "vcpus": facts["vcpus"],
            "disk": facts["disk"],
            "disk_info": facts["disk_info"],
            "locked": self.action.is_some(),
            "status": self.status,
            "created_at": timestamp(self.created),
            "size": facts,
            "size_slug": slug,
            "region": catalog::region(region),
            "tags": tags,
        });
        catalog::with(&catalog::DROPLET, fields)
    }
}

/// Begins an action and returns its number.
pub(crate) fn begin(
    account: &mut Account,
    timeline: &mut Timeline,
    id: u64,
    order: Order,
) -> Result<u64, Refusal> {
    let droplet = account.droplets.get(&id).ok_or_else(Refusal::not_found)?;
    if let Some(refusal) = droplet.refuses(&order) {
        return Err(refusal);
    }
    let fleet::Droplet {
        power_action,
        shutdown,
        ignores_shutdown,
        ..
    } = droplet.description;
    let boot = droplet.boot;
    let kind = order.word();
    let takes = if order == Order::Shutdown {
        SIGNAL
    } else {
        power_action
    };
    if order == Order::Shutdown && !ignores_shutdown {
        let guest_off = Effect::DropletGuestOff { droplet: id, boot };
        timeline.after(account, shutdown, guest_off);
    }
    let value = match order {
        Order::Rename(value) | Order::Resize(value) => Some(value),
        Order::PowerOn
        | Order::PowerOff
        | Order::Shutdown
        | Order::Reboot
        | Order::PowerCycle
        | Order::Other(_) => None,
    };
    let action = account.begin_action(timeline, id, kind, value);
    timeline.after(account, takes, Effect::DropletActionEnds(action));
    if let Some(droplet) = account.droplets.get_mut(&id) {
        droplet.action = Some(action);
    }
    Ok(action)
}

/// An action is completed. What it did shows a little later.
pub(crate) fn action_ends(account: &mut Account, timeline: &mut Timeline, action: u64) {
    let Some(action) = account.actions.get_mut(&action) else {
        return;
    };
    action.finished = Some(timeline.now());
    let Some(droplet) = account.droplets.get_mut(&action.machine) else {
        return;
    };
    droplet.action = None;
    let powered = match action.kind {
        "power_on" | "reboot" | "power_cycle" => Some(true),
        "power_off" => Some(false),
        _ => None,
    };
    match (action.kind, &action.value) {
        ("rename", Some(name)) => droplet.description.name.clone_from(name),
        ("resize", Some(size)) => droplet.description.size.clone_from(size),
        _ => {}
    }
    if let Some(powered) = powered {
        droplet.powered = powered;
        droplet.boot += 1;
        let id = action.machine;
        timeline.after(account, LAG, Effect::DropletShows(id));
    }
}

pub(crate) fn shows(account: &mut Account, id: u64) {
    if let Some(droplet) = account.droplets.get_mut(&id) {
        droplet.status = if droplet.powered {
            DropletStatus::Active
        } else {
            DropletStatus::Off
        };
    }
}

/// The guest has shut itself down, unless power came or went in between.
pub(crate) fn guest_off(account: &mut Account, id: u64, boot: u64) {
    if let Some(droplet) = account.droplets.get_mut(&id)
        && droplet.boot == boot
        && droplet.powered
    {
        droplet.set_status(DropletStatus::Off);
    }
}

/// An action as the API shows it.
pub(crate) fn action_json(account: &Account, action: &Action) -> Value {
    let region = account
        .droplets
        .get(&action.machine)
        .map(|droplet| &droplet.description.region);
    json!({
        "id": action.id,
        "status": if action.finished.is_some() { "completed" } else { "in-progress" },
        "type": action.kind,
        "started_at": timestamp(action.started),
        "completed_at": action.finished.map(timestamp),
        "resource_id": action.machine,
        "resource_type": "droplet",
        "region": region.and_then(|slug| catalog::region(slug)),
        "region_slug": region,
    })
}
