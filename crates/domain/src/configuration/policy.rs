//! How a schedule is followed.

use std::collections::BTreeSet;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MaxExtend, Mode, NoticePeriod};
#[cfg(feature = "schema")]
use crate::schema::{self, OneOrSeveral};
use crate::stored::is_default;

/// How a schedule is followed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch that the user sets by this name"
)]
pub struct Policy {
    /// "act" (the default), or "observe" to send nothing for this schedule.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "act")))]
    pub mode: Mode,
    /// Droplets: whether to ask the guest to shut down first, and cut the power 60 s later.
    /// Default: false, so that a Droplet's stop is a hard power cut.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub graceful: bool,
    /// Whether the power may be cut. If false, a machine that is still on after 60 s becomes stuck,
    /// and a person decides. Default: true.
    #[serde(skip_serializing_if = "Clone::clone")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = true)))]
    pub force: bool,
    /// Whether to restore the desired state at every inventory if anyone has changed it. Default:
    /// false. Cannot be combined with `retain_running`.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub enforce: bool,
    /// Whether to leave a resource running at the end of a window if it was found running at its
    /// begin. Default: false. Cannot be combined with `enforce`.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub retain_running: bool,
    /// When a resource that joins the schedule starts to follow it: "at-once" (the default), or
    /// from its "next-edge" on.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "at-once")))]
    pub adopt: Adopt,
    /// How long past its stop the tag `offhours-until` may keep a resource running. Default: 12h.
    /// With "0s", the tag has no effect.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "12h")))]
    pub max_extend: MaxExtend,
    /// How long before a stop an event announces it: from 5m to 4h. Default: stops are not
    /// announced.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "NoticePeriod", extend("examples" = ["15m"])))]
    pub notice: Option<NoticePeriod>,
    /// The method by which each kind of resource is stopped.
    #[serde(skip_serializing_if = "is_default")]
    pub methods: Methods,
    /// Droplets that are resized: the slug of the size to move to. Default: the cheapest that fits.
    /// The tag `offhours-to:SIZE` on a Droplet takes precedence.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "schema::Plan", extend("examples" = ["s-1vcpu-1gb"])))]
    pub resize_to: Option<String>,
    /// Servers that are rescaled: the name of the type to change to. Default: the cheapest that
    /// fits. The label `offhours-to=TYPE` on a server takes precedence.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "schema::Plan", extend("examples" = ["cpx12"])))]
    pub rescale_to: Option<String>,
    /// Whether a machine that cannot return to its own plan in time starts on the small one.
    /// Default: false, so that it stays off until its own plan is available.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub start_small: bool,
    /// Whether a server that was started by the change of its type is left running on the small
    /// type. Default: false, so that it is shut down again.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub rescaled_runs: bool,
    /// Machines that are hibernated: the risks to accept. Without it, anything that would be lost
    /// prevents the hibernation.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "OneOrSeveral<Risk>", extend("examples" = ["lost-backups"])))]
    pub accept: BTreeSet<Risk>,
    /// Droplets that are hibernated: whether to refuse one with a private address, because its
    /// cloud assigns a new one each time. Default: false.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub needs_private_ip: bool,
    /// Machines that should be hibernated but cannot be: "refuse" (the default) leaves them
    /// running, "power-off" only powers them off.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "refuse")))]
    pub otherwise: Otherwise,
    /// Databases: the slug of the plan to shrink to. Default: the smallest plan, or the database's
    /// own with the method "standbys".
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "schema::Plan", extend("examples" = ["db-s-1vcpu-1gb"])))]
    pub stop_size: Option<String>,
    /// Databases: the number of nodes to shrink to. Default: the current number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "u32", range(min = 1, max = 3)))]
    pub stop_nodes: Option<u32>,
}

impl Policy {
    /// Reports whether both would move a resource to the same size, or hibernate it, at the same
    /// risks.
    #[must_use]
    pub fn moves_as(&self, other: &Self) -> bool {
        let moves = |policy: &Self| Self {
            enforce: false,
            retain_running: false,
            graceful: false,
            force: false,
            adopt: Adopt::default(),
            max_extend: MaxExtend::default(),
            notice: None,
            start_small: false,
            ..policy.clone()
        };
        moves(self) == moves(other)
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            mode: Mode::Act,
            graceful: false,
            force: true,
            enforce: false,
            retain_running: false,
            adopt: Adopt::AtOnce,
            max_extend: MaxExtend::default(),
            notice: None,
            methods: Methods::default(),
            resize_to: None,
            rescale_to: None,
            start_small: false,
            rescaled_runs: false,
            accept: BTreeSet::new(),
            needs_private_ip: false,
            otherwise: Otherwise::Refuse,
            stop_size: None,
            stop_nodes: None,
        }
    }
}

/// The stop method of each kind of resource that offers a choice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(rename = "methods"))]
#[serde(default, deny_unknown_fields)]
pub struct Methods {
    /// Droplets: "power-off" (the default), "resize" to move to a cheaper plan while off, or
    /// "hibernate".
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "power-off")))]
    pub droplet: DropletMethod,
    /// Servers: "power-off" (the default), "rescale" to change to a cheaper type while off, or
    /// "hibernate".
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "power-off")))]
    pub server: ServerMethod,
    /// Databases: "smallest-plan" (the default), or "standbys" to drop only the standby nodes.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "smallest-plan")))]
    pub database: DatabaseMethod,
}

/// How Droplets are stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DropletMethod {
    /// Powered off, and billed as before.
    #[default]
    PowerOff,
    /// Powered off, and moved to a cheaper plan until the start.
    Resize,
    /// Powered off, kept as a snapshot and deleted, then recreated for the start. A preview
    /// feature.
    Hibernate,
}

/// How Hetzner servers are stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ServerMethod {
    /// Powered off, and billed as before.
    #[default]
    PowerOff,
    /// Powered off, and changed to a cheaper type until the start.
    Rescale,
    /// Powered off, kept as a snapshot and deleted, then recreated for the start. A preview
    /// feature.
    Hibernate,
}

/// A risk of hibernation that a machine's owner can accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Risk {
    /// A different public address after each start.
    NewIp,
    /// The loss of the machine's backups.
    LostBackups,
    /// A custom image, which is not guaranteed to boot again.
    CustomImage,
}

/// What to do with a machine that should be hibernated but cannot be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Otherwise {
    /// The stop is refused and reported; the machine is left running.
    #[default]
    Refuse,
    /// The machine is powered off, and billed as before.
    PowerOff,
}

/// How managed databases are stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DatabaseMethod {
    /// Resized to the smallest plan, or to `stop_size` and `stop_nodes`.
    #[default]
    SmallestPlan,
    /// Reduced to the fewest nodes that the engine runs with, on its own plan or, if set, on
    /// `stop_size`.
    Standbys,
}

/// When a resource that joins a schedule starts to follow it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Adopt {
    /// At once.
    #[default]
    AtOnce,
    /// From its next edge on.
    NextEdge,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decides_neither_the_size_nor_the_risks_of_a_stop_moves_alike() {
        let policy = Policy::default();
        let late = Policy { start_small: true, graceful: true, enforce: true, ..policy.clone() };
        assert!(policy.moves_as(&late));
        for other in [
            Policy { mode: Mode::Observe, ..policy.clone() },
            Policy { resize_to: Some("s-1vcpu-1gb".to_owned()), ..policy.clone() },
            Policy { otherwise: Otherwise::PowerOff, ..policy.clone() },
            Policy { stop_nodes: Some(1), ..policy.clone() },
        ] {
            assert!(!policy.moves_as(&other), "{other:?}");
        }
    }
}
