//! What a provider reports about a resource, in one vocabulary for both clouds.

use std::{borrow::Cow, cmp::Ordering, collections::BTreeSet, fmt, mem};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    reference::{ResourceId, ResourceKind},
    text::{self, LONGEST_MESSAGE, LONGEST_NAME, LONGEST_TAG, one_line},
};

/// A resource as a provider's response showed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    pub id: ResourceId,
    /// Its name at the provider; not unique.
    pub name: String,
    /// The cluster that a node pool belongs to.
    pub cluster: Option<Cluster>,
    /// DigitalOcean's tags as they are; Hetzner's labels as `key=value`.
    pub tags: BTreeSet<String>,
    /// Region (DigitalOcean) or location (Hetzner).
    pub region: String,
    pub power: Power,
    /// Why no change may be sent now: locked, resizing, upgrading. `None` when idle.
    pub busy: Option<Busy>,
    /// Its size, which a stop may reduce.
    pub size: Size,
    /// What keeps a machine from moving to another plan. Nothing is set for other kinds.
    pub facts: MachineFacts,
    /// Why Offhours never touches it: a Kafka cluster, a Kubernetes worker. `None` when it may.
    pub unsupported: Option<String>,
}

/// Why no change may be sent to a resource now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Busy {
    /// Its cloud is still creating it. The cloud may find no capacity for it, and then it is gone
    /// (DOLISTS).
    Creating,
    Deleting,
    /// Anything else, in words.
    Other(String),
}

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Creating => "being created",
            Self::Deleting => "being deleted",
            Self::Other(why) => why,
        })
    }
}

/// Why a resource is never touched whose name, tags or size cannot be shown as they are.
pub const UNPRINTABLE: &str =
    "its name, a tag or its size has characters that cannot be shown, or is too long";

impl Resource {
    /// Makes a printable line of every text. A resource that was named or tagged otherwise is never
    /// touched: nobody can tell what it is, and neither a pattern of `protect` nor a schedule's name
    /// may depend on characters that nobody sees.
    #[must_use]
    pub fn printable(mut self) -> Self {
        let mut changed = clean(&mut self.name, LONGEST_NAME);
        changed |= clean_all(&mut self.tags);
        if let Some(cluster) = &mut self.cluster {
            changed |= clean(&mut cluster.name, LONGEST_NAME);
            changed |= clean_all(&mut cluster.tags);
        }
        changed |= clean(&mut self.region, LONGEST_NAME);
        changed |= match &mut self.size {
            Size::Machine(size) => {
                let architecture = size.architecture.as_mut();
                clean(&mut size.plan, LONGEST_NAME)
                    | architecture.is_some_and(|text| clean(text, LONGEST_NAME))
            }
            Size::Database(size) => {
                clean(&mut size.plan, LONGEST_NAME) | clean(&mut size.engine, LONGEST_NAME)
            }
            Size::NodePool(size) => clean(&mut size.plan, LONGEST_NAME),
        };
        if let Some(Busy::Other(text)) = &mut self.busy {
            clean(text, LONGEST_MESSAGE);
        }
        if let Some(text) = &mut self.unsupported {
            clean(text, LONGEST_MESSAGE);
        }
        if changed {
            self.unsupported = Some(UNPRINTABLE.to_owned());
        }
        self
    }
}

/// Makes a printable line of a text, and reports whether that changed it.
fn clean(text: &mut String, longest: usize) -> bool {
    let Cow::Owned(line) = one_line(text, longest) else {
        return false;
    };
    *text = line;
    true
}

fn clean_all(tags: &mut BTreeSet<String>) -> bool {
    let is_clean = |tag: &String| matches!(one_line(tag, LONGEST_TAG), Cow::Borrowed(_));
    if tags.iter().all(is_clean) {
        return false;
    }
    let cleaned = mem::take(tags).into_iter();
    *tags = cleaned.map(|tag| one_line(&tag, LONGEST_TAG).into_owned()).collect();
    true
}

/// The Kubernetes cluster that a node pool belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    #[serde(deserialize_with = "text::line")]
    pub name: String,
    /// The cluster's tags: an opt-in there covers all its pools.
    pub tags: BTreeSet<String>,
}

/// Whether a resource runs, according to its own status.
///
/// For a database this is always `Running`: its stop is a move to a smaller plan, which its size
/// shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, strum::Display)]
#[strum(serialize_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Power {
    /// On; a node pool that has nodes.
    Running,
    /// Off; a node pool without any nodes, not even draining ones.
    Stopped,
    /// Neither: starting, stopping, migrating, or a status that Offhours does not know.
    Between,
}

impl Power {
    /// Returns a word for whether a resource of a kind runs. For a machine over SSH, `Between`
    /// means unknown: no cloud reports that it is on its way from one state to the other.
    #[must_use]
    pub fn in_a_word(self, kind: ResourceKind) -> String {
        match (kind, self) {
            (ResourceKind::Machine, Self::Between) => "of unknown state".to_owned(),
            (_, power) => power.to_string(),
        }
    }
}

/// How large a resource is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Size {
    /// A Droplet, a server, or a machine over SSH, whose size is not known.
    Machine(MachineSize),
    Database(DatabaseSize),
    NodePool(NodePoolSize),
}

/// A machine's plan, and the properties that another plan must match for the machine to fit it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MachineSize {
    /// The plan's slug; empty for a machine over SSH.
    pub plan: String,
    /// Number of virtual CPUs.
    #[serde(default)]
    pub vcpus: u32,
    /// Memory, in MiB.
    #[serde(default)]
    pub memory_mib: u64,
    /// Size of the machine's own disk, in GiB. The disk of another plan may be larger, but must not
    /// be smaller.
    #[serde(default)]
    pub disk_gib: u64,
    /// Processor architecture, `x86` or `arm` (Hetzner); absent for providers that have only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    /// Whether the disk is network storage instead of local to the host (Hetzner).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network_storage: bool,
}

/// What a provider reports about a machine, besides its size, that decides whether it can move to
/// another plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact that the provider states by itself"
)]
pub struct MachineFacts {
    pub created_at: Option<Timestamp>,
    /// It is a Kubernetes worker, so its node pool decides its plan.
    pub kubernetes_worker: bool,
    /// It has a graphics processor.
    pub gpu: bool,
    /// It has a further local disk that comes with its plan.
    pub scratch_disk: bool,
    /// An ISO image is attached to it.
    pub iso: bool,
    /// It boots into the rescue system next.
    pub rescue: bool,
    /// Its owner has protected it from being rebuilt or deleted.
    pub protected: bool,
    /// It counts as off only because it does not answer.
    pub silent: bool,
}

/// A database cluster's size and what decides its smallest one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseSize {
    /// The engine's slug at the provider: `pg`, `mysql`, `redis`, `valkey`, `mongodb`, ….
    pub engine: String,
    /// The plan's slug, e.g. `db-s-2vcpu-4gb`.
    pub plan: String,
    /// Primary and standby nodes together, 1 to 3.
    pub nodes: u32,
    /// Storage, in MiB; `None` if the provider does not report it.
    pub storage_mib: Option<u64>,
}

/// A node pool's size, and what an update removes unless it is sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePoolSize {
    pub plan: String,
    /// The number of nodes that the pool is set to.
    pub count: u32,
    pub autoscale: Option<AutoscaleBounds>,
    /// Nodes listed in any state, draining ones included.
    pub present: u32,
    /// Nodes listed as running.
    pub ready: u32,
    /// Labels to send back, as the provider wrote them (JSON text).
    pub labels: String,
    /// Taints to send back, as the provider wrote them (JSON text).
    pub taints: String,
}

/// The bounds within which a node pool scales itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AutoscaleBounds {
    /// Minimum number of nodes.
    pub min: u32,
    /// Maximum number of nodes.
    pub max: u32,
}

impl AutoscaleBounds {
    /// Widens these bounds to include a count that a person has raised: within narrower ones the
    /// autoscaler would remove nodes.
    #[must_use]
    pub fn reaching(self, count: u32) -> Self {
        Self { max: self.max.max(count), ..self }
    }
}

/// The state to restore after a stop. It is stored before the request that shrinks anything is
/// sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum SavedState {
    /// A database cluster's plan, nodes and storage.
    Database {
        /// The plan's slug.
        plan: String,
        /// Number of nodes, primary and standby nodes together.
        nodes: u32,
        /// Disk size, in MiB; absent if the provider does not report it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        storage_mib: Option<u64>,
    },
    /// A node pool's count and autoscaler bounds.
    NodePool {
        /// Number of nodes.
        count: u32,
        /// The autoscaler's bounds; absent if it was off.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        autoscale: Option<AutoscaleBounds>,
    },
    /// A machine's plan.
    Machine(MachineSize),
}

/// The larger of a saved state and the one that is seen, part by part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// The state. Of two plans that do not compare, it has the saved one.
    pub state: SavedState,
    /// Whether the plans, or an autoscaler's bounds, do not compare.
    pub unlike: bool,
}

/// Storage that a database had before a stop and did not get back after the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LostStorage {
    /// Storage before the stop, in MiB.
    pub before_mib: u64,
    /// Storage after the start, in MiB.
    pub after_mib: u64,
}

/// One entry of a machine's own action log at its provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedAction {
    pub id: ActionId,
    pub effect: ActionEffect,
    /// How far it has come.
    pub state: ActionState,
    /// When the provider began it, by the provider's clock.
    pub started_at: Timestamp,
    /// When it ended, by that clock; `None` while it is in progress.
    pub ended_at: Option<Timestamp>,
}

impl LoggedAction {
    /// Reports whether it had ended before an instant. Providers write whole seconds.
    #[must_use]
    pub fn is_over_before(&self, instant: Timestamp) -> bool {
        let ended_at = self.ended_at.unwrap_or(self.started_at);
        self.state != ActionState::Running && ended_at.as_second() < instant.as_second()
    }
}

/// A provider's id for an action, unique within the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ActionId(pub u64);

/// What an action does to a machine's power, or its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ActionEffect {
    /// Power on.
    Start,
    /// A shutdown signal to the guest.
    Shutdown,
    /// A forced power-off.
    PowerOff,
    /// A reboot, reset or power cycle: the machine is meant to run afterward.
    Reboot,
    /// No effect on power, but another plan afterward.
    Resize,
    /// No effect on power, but another disk afterward.
    Rebuild,
    /// No effect: a snapshot of the disk.
    Snapshot,
    /// Anything else: a rename, a word that we do not know.
    Other,
}

/// How far an action has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ActionState {
    Running,
    /// Finished; for a shutdown this says only that the signal was sent.
    Done,
    /// Ended in an error.
    Failed,
}

impl Resource {
    #[must_use]
    pub fn kind(&self) -> ResourceKind {
        self.id.kind()
    }
}

impl Size {
    /// Returns the plan's slug: the machine's, the database's, or that of the pool's nodes.
    #[must_use]
    pub fn plan(&self) -> &str {
        match self {
            Self::Machine(machine) => &machine.plan,
            Self::Database(database) => &database.plan,
            Self::NodePool(pool) => &pool.plan,
        }
    }

    /// Returns the state to restore after a stop that makes it smaller; `None` for a machine over
    /// SSH, whose size is not known.
    #[must_use]
    pub fn to_save(&self) -> Option<SavedState> {
        match self {
            Self::Machine(machine) => {
                (!machine.plan.is_empty()).then(|| SavedState::Machine(machine.clone()))
            }
            Self::Database(database) => Some(SavedState::Database {
                plan: database.plan.clone(),
                nodes: database.nodes,
                storage_mib: database.storage_mib,
            }),
            Self::NodePool(pool) => {
                Some(SavedState::NodePool { count: pool.count, autoscale: pool.autoscale })
            }
        }
    }
}

/// The vCPUs and memory that a DigitalOcean database plan's slug names.
///
/// Ordered by memory first, then by vCPU: the order in which "the smallest plan" is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlanCapacity {
    pub memory_gib: u32,
    /// Virtual CPUs.
    pub vcpus: u32,
}

impl PlanCapacity {
    /// Parses `…-2vcpu-4gb…`; `None` if the slug does not give both.
    #[must_use]
    pub fn of_plan(slug: &str) -> Option<Self> {
        let number_before =
            |unit: &str| slug.split('-').find_map(|part| part.strip_suffix(unit)?.parse().ok());
        Some(Self { memory_gib: number_before("gb")?, vcpus: number_before("vcpu")? })
    }
}

impl fmt::Display for SavedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Database { plan, nodes, .. } => write!(f, "{nodes} x {plan}"),
            Self::NodePool { count: 1, autoscale: None } => f.write_str("1 node"),
            Self::NodePool { count, autoscale: None } => write!(f, "{count} nodes"),
            Self::NodePool { count, autoscale: Some(bounds) } => {
                write!(f, "{count} nodes, autoscaled {}-{}", bounds.min, bounds.max)
            }
            Self::Machine(machine) => f.write_str(&machine.plan),
        }
    }
}

impl fmt::Display for LostStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gib = |mib: u64| mib / 1024;
        let (after, before) = (gib(self.after_mib), gib(self.before_mib));
        write!(f, "{after} GiB of storage instead of {before} GiB")
    }
}

impl LostStorage {
    #[must_use]
    pub fn is_back(self, seen: &Size) -> bool {
        let Size::Database(seen) = seen else {
            return false;
        };
        seen.storage_mib.is_some_and(|mib| mib >= self.before_mib)
    }
}

impl DatabaseSize {
    /// Returns why its standby nodes cannot be removed: `MongoDB` has one or three for good
    /// (DODOCS), and other engines are not supported at all. `None` if they can.
    #[must_use]
    pub fn keeps_its_nodes(&self) -> Option<String> {
        let drops = matches!(self.engine.as_str(), "pg" | "mysql" | "redis" | "valkey");
        (!drops).then(|| format!("nodes of {} cannot be taken away", self.engine))
    }

    /// Reports whether a resize can set the storage, which only these two engines allow (TFDO,
    /// `resource_database_cluster.go`).
    #[must_use]
    pub fn has_settable_storage(&self) -> bool {
        matches!(self.engine.as_str(), "pg" | "mysql")
    }
}

impl SavedState {
    #[must_use]
    pub fn machine(&self) -> Option<&MachineSize> {
        match self {
            Self::Machine(machine) => Some(machine),
            Self::Database { .. } | Self::NodePool { .. } => None,
        }
    }

    /// Returns what another state lacks of this one's storage, if both are known.
    #[must_use]
    pub fn lost_storage_in(&self, other: &Self) -> Option<LostStorage> {
        let storage = |state: &Self| match state {
            Self::Database { storage_mib, .. } => *storage_mib,
            Self::NodePool { .. } | Self::Machine(_) => None,
        };
        let (before_mib, after_mib) = (storage(self)?, storage(other)?);
        let lost = LostStorage { before_mib, after_mib };
        (after_mib < before_mib).then_some(lost)
    }

    /// Returns this state with the autoscaler bounds of another one, if it has none. Bounds that
    /// our own stop switched off belong to whatever size is restored, and are widened to include
    /// it.
    #[must_use]
    pub fn with_bounds_of(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::NodePool { count, autoscale: None }, Self::NodePool { autoscale, .. }) => {
                Self::NodePool {
                    count: *count,
                    autoscale: autoscale.map(|bounds| bounds.reaching(*count)),
                }
            }
            (Self::Database { .. } | Self::NodePool { .. } | Self::Machine(_), _) => self.clone(),
        }
    }

    /// Joins the saved state with the one that is seen: the larger of both in each part by itself,
    /// which are count or nodes, plan, and storage. An autoscaler that is seen on keeps its bounds;
    /// those of one that our own stop switched off are widened to include the count.
    #[must_use]
    pub fn joined_with(&self, seen: &Self) -> Joined {
        let larger = |state| Joined { state, unlike: false };
        match (self, seen) {
            (
                Self::Database { plan, nodes, storage_mib },
                Self::Database { plan: seen_plan, nodes: seen_nodes, storage_mib: seen_storage },
            ) => {
                let plans = compare_plans(plan, seen_plan);
                let larger_storage = |saved: u64| saved.max(seen_storage.unwrap_or(saved));
                // A storage that is not known is left to the plan.
                let (plan, storage_mib) = if plans == Some(Ordering::Less) {
                    (seen_plan, storage_mib.map(larger_storage).or(*seen_storage))
                } else {
                    (plan, storage_mib.map(larger_storage))
                };
                Joined {
                    state: Self::Database {
                        plan: plan.clone(),
                        nodes: *nodes.max(seen_nodes),
                        storage_mib,
                    },
                    unlike: plans.is_none(),
                }
            }
            (
                Self::NodePool { count, autoscale },
                Self::NodePool { count: seen_count, autoscale: seen_bounds },
            ) => larger(match seen_bounds {
                // Bounds that a person has set stand.
                Some(bounds) => Self::NodePool {
                    count: *count.max(seen_count).min(&bounds.max).max(&bounds.min),
                    autoscale: Some(*bounds),
                },
                None if seen_count > count => seen.with_bounds_of(self),
                None => Self::NodePool { count: *count, autoscale: *autoscale },
            }),
            (Self::Machine(saved), Self::Machine(machine)) => match saved.compare(machine) {
                Some(Ordering::Less) => larger(seen.clone()),
                order => Joined { state: self.clone(), unlike: order.is_none() },
            },
            (Self::Database { .. } | Self::NodePool { .. } | Self::Machine(_), _) => {
                larger(self.clone())
            }
        }
    }

    /// Compares what two states would give a user: count or nodes, then vCPU and memory. Of two
    /// equal counts, the one with an autoscaler is larger.
    ///
    /// Returns `None` when they cannot be compared: different kinds, a slug that gives no capacity,
    /// a plan with more memory and less vCPU, or equal counts under different bounds.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (
                Self::NodePool { count, autoscale },
                Self::NodePool { count: other_count, autoscale: other },
            ) => match count.cmp(other_count) {
                Ordering::Equal => compare_bounds(*autoscale, *other),
                different @ (Ordering::Less | Ordering::Greater) => Some(different),
            },
            (
                Self::Database { plan, nodes, .. },
                Self::Database { plan: other_plan, nodes: other_nodes, .. },
            ) => {
                let plans = compare_plans(plan, other_plan)?;
                both(nodes.cmp(other_nodes), plans)
            }
            (Self::Machine(machine), Self::Machine(other)) => machine.compare(other),
            (Self::Database { .. } | Self::NodePool { .. } | Self::Machine(_), _) => None,
        }
    }
}

impl MachineSize {
    /// Compares vCPU and memory. Returns `None` if one has more of the one and less of the other,
    /// or if two different plans have the same of both.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        let capacity = both(self.vcpus.cmp(&other.vcpus), self.memory_mib.cmp(&other.memory_mib));
        match (self.plan == other.plan, capacity) {
            (true, _) => Some(Ordering::Equal),
            (false, Some(Ordering::Equal)) => None,
            (false, different) => different,
        }
    }
}

fn compare_bounds(
    left: Option<AutoscaleBounds>,
    right: Option<AutoscaleBounds>,
) -> Option<Ordering> {
    match (left, right) {
        (Some(left), Some(right)) => (left == right).then_some(Ordering::Equal),
        (left, right) => Some(left.is_some().cmp(&right.is_some())),
    }
}

fn compare_plans(left: &str, right: &str) -> Option<Ordering> {
    if left == right {
        return Some(Ordering::Equal);
    }
    let (left, right) = (PlanCapacity::of_plan(left)?, PlanCapacity::of_plan(right)?);
    both(left.memory_gib.cmp(&right.memory_gib), left.vcpus.cmp(&right.vcpus))
}

/// Combines the orders of two halves. Returns `None` if they contradict each other.
fn both(first: Ordering, second: Ordering) -> Option<Ordering> {
    match (first, second) {
        (Ordering::Equal, order) | (order, Ordering::Equal) => Some(order),
        (Ordering::Less, Ordering::Less) => Some(Ordering::Less),
        (Ordering::Greater, Ordering::Greater) => Some(Ordering::Greater),
        (Ordering::Less, Ordering::Greater) | (Ordering::Greater, Ordering::Less) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database(plan: &str, nodes: u32) -> SavedState {
        SavedState::Database { plan: plan.to_owned(), nodes, storage_mib: None }
    }

    #[test]
    fn capacity_is_read_from_every_family_of_slugs() {
        for (slug, memory_gib, vcpus) in [
            ("db-s-1vcpu-1gb", 1, 1),
            ("gd-2vcpu-8gb-intel", 8, 2),
            ("so1_5-2vcpu-16gb", 16, 2),
            ("db-amd-4vcpu-8gb", 8, 4),
        ] {
            let capacity = PlanCapacity::of_plan(slug);
            assert_eq!(capacity, Some(PlanCapacity { memory_gib, vcpus }), "{slug}");
        }
        assert_eq!(PlanCapacity::of_plan("custom"), None);
    }

    #[test]
    fn sizes_compare_only_where_neither_half_contradicts() {
        let small = database("db-s-1vcpu-2gb", 1);
        assert_eq!(small.compare(&database("db-s-2vcpu-4gb", 2)), Some(Ordering::Less));
        assert_eq!(small.compare(&database("db-s-1vcpu-2gb", 1)), Some(Ordering::Equal));
        assert_eq!(small.compare(&database("db-s-1vcpu-1gb", 2)), None);
        assert_eq!(small.compare(&database("mystery", 1)), None);
        let pool = |count| SavedState::NodePool { count, autoscale: None };
        assert_eq!(pool(3).compare(&pool(1)), Some(Ordering::Greater));
        assert_eq!(pool(3).compare(&small), None);
    }

    #[test]
    fn the_larger_of_two_databases_is_taken_part_by_part() {
        let stored = |plan: &str, nodes, storage_mib| SavedState::Database {
            plan: plan.to_owned(),
            nodes,
            storage_mib: Some(storage_mib),
        };
        let saved = stored("db-s-4vcpu-8gb", 2, 140);
        for (seen, expected, unlike) in [
            (stored("db-s-1vcpu-2gb", 3, 30), stored("db-s-4vcpu-8gb", 3, 140), false),
            (stored("db-s-6vcpu-16gb", 1, 30), stored("db-s-6vcpu-16gb", 2, 140), false),
            (stored("db-s-1vcpu-2gb", 1, 160), stored("db-s-4vcpu-8gb", 2, 160), false),
            (stored("so-2vcpu-16gb", 3, 30), stored("db-s-4vcpu-8gb", 3, 140), true),
            (stored("mystery", 1, 30), saved.clone(), true),
        ] {
            let joined = saved.joined_with(&seen);
            assert_eq!((joined.state, joined.unlike), (expected, unlike), "{seen}");
        }
        let unknown = database("db-s-1vcpu-2gb", 1);
        assert_eq!(saved.joined_with(&unknown).state, saved);
    }

    #[test]
    fn bounds_that_a_person_has_set_stand_and_the_count_fits_them() {
        let pool = |count, bounds: Option<(u32, u32)>| SavedState::NodePool {
            count,
            autoscale: bounds.map(|(min, max)| AutoscaleBounds { min, max }),
        };
        let saved = pool(3, Some((1, 5)));
        for (seen, joined) in [
            (pool(0, None), pool(3, Some((1, 5)))),
            (pool(0, Some((1, 2))), pool(2, Some((1, 2)))),
            (pool(0, Some((4, 9))), pool(4, Some((4, 9)))),
            (pool(6, Some((2, 10))), pool(6, Some((2, 10)))),
            (pool(7, None), pool(7, Some((1, 7)))),
        ] {
            assert_eq!(saved.joined_with(&seen).state, joined, "{seen}");
        }
    }

    #[test]
    fn of_equal_counts_the_autoscaled_one_is_larger() {
        let bounded = |count, min, max| SavedState::NodePool {
            count,
            autoscale: Some(AutoscaleBounds { min, max }),
        };
        let fixed = |count| SavedState::NodePool { count, autoscale: None };
        let three = bounded(3, 1, 5);
        assert_eq!(three.compare(&fixed(3)), Some(Ordering::Greater));
        assert_eq!(fixed(3).compare(&three), Some(Ordering::Less));
        assert_eq!(three.compare(&bounded(3, 1, 5)), Some(Ordering::Equal));
        assert_eq!(three.compare(&bounded(3, 2, 8)), None);
        assert_eq!(three.compare(&fixed(4)), Some(Ordering::Less));
        assert_eq!(fixed(4).with_bounds_of(&three), bounded(4, 1, 5));
        assert_eq!(fixed(7).with_bounds_of(&three), bounded(7, 1, 7));
        assert_eq!(bounded(4, 2, 8).with_bounds_of(&three), bounded(4, 2, 8));
    }
}
