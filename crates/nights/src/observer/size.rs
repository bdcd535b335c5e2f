//! What must be restored after a stop, whatever the stop took away.

use domain::{
    ResourceRef,
    configuration::{DatabaseMethod, Policy},
    resource::{AutoscaleBounds, PlanCapacity, SavedState},
};
use serde_json::Value;

use crate::plans;

/// The size of a resource: what a stop may reduce, and a start must restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ResourceSize {
    Database {
        memory_gib: u32,
        vcpus: u32,
        nodes: u32,
        storage_mib: u64,
    },
    NodePool {
        count: u32,
        autoscale: Option<AutoscaleBounds>,
    },
    /// Compared by plan: a cheaper one may have more of something.
    Machine {
        plan: String,
        vcpus: u32,
        memory_mib: u64,
    },
}

impl ResourceSize {
    /// Returns the size that a resource has at its cloud, or is being given.
    pub(super) fn of(reference: &ResourceRef, state: &Value) -> Option<Self> {
        let number = |value: &Value| value.as_u64().and_then(|n| u32::try_from(n).ok());
        if state["plan"].is_string() {
            let to = &state["resizing_to"];
            let (plan, nodes, storage) = if to.is_null() {
                (&state["plan"], &state["nodes"], &state["storage_mib"])
            } else {
                (&to["size"], &to["num_nodes"], &to["storage_size_mib"])
            };
            return Self::database(plan.as_str()?, number(nodes)?, storage.as_u64()?);
        }
        if let Some(plan) = plan_of(state) {
            return Self::machine(plan);
        }
        if !state["cluster"].is_object() {
            return None;
        }
        let bounds = &state["autoscale"];
        debug_assert_eq!(reference.kind(), domain::ResourceKind::NodePool);
        Some(Self::NodePool {
            count: number(&state["count"])?,
            autoscale: number(&bounds["min"])
                .zip(number(&bounds["max"]))
                .map(|(min, max)| AutoscaleBounds { min, max }),
        })
    }

    fn database(plan: &str, nodes: u32, storage_mib: u64) -> Option<Self> {
        let capacity = PlanCapacity::of_plan(plan)?;
        Some(Self::Database {
            memory_gib: capacity.memory_gib,
            vcpus: capacity.vcpus,
            nodes,
            storage_mib,
        })
    }

    /// Returns the size of a machine on a plan. `None` if the plan is unknown.
    pub(super) fn machine(plan: &str) -> Option<Self> {
        let known = plans::named(plan)?;
        Some(Self::Machine {
            plan: plan.to_owned(),
            vcpus: known.vcpus,
            memory_mib: known.memory_mib,
        })
    }

    /// Returns a machine's plan. `None` for other kinds.
    pub(super) fn plan(&self) -> Option<&str> {
        match self {
            Self::Machine { plan, .. } => Some(plan),
            Self::Database { .. } | Self::NodePool { .. } => None,
        }
    }

    /// Converts the saved state of a record.
    pub(super) fn of_saved(saved: &SavedState) -> Option<Self> {
        match saved {
            SavedState::Database { plan, nodes, storage_mib } => {
                Self::database(plan, *nodes, storage_mib.unwrap_or_default())
            }
            SavedState::NodePool { count, autoscale } => {
                Some(Self::NodePool { count: *count, autoscale: *autoscale })
            }
            SavedState::Machine(machine) => Some(Self::Machine {
                plan: machine.plan.clone(),
                vcpus: machine.vcpus,
                memory_mib: machine.memory_mib,
            }),
        }
    }

    /// Reports whether a stop has left less than this of a database, or has nothing to take from it.
    pub(super) fn is_shrunk(&self, owed: Option<&Self>, policy: &Policy) -> bool {
        let Self::Database { memory_gib, nodes, .. } = self else {
            return false;
        };
        let drops_standbys = policy.methods.database == DatabaseMethod::Standbys;
        let is_alone = *nodes == 1 || !drops_standbys && policy.stop_nodes.is_none();
        // The clouds have no smaller plan for one node, and for two.
        let smallest = if *nodes == 1 { 1 } else { 2 };
        let has_least = drops_standbys || policy.stop_size.is_some() || *memory_gib <= smallest;
        owed.is_some_and(|owed| !self.covers(owed)) || is_alone && has_least
    }

    /// Returns the larger of two sizes of a database in each part. Of other kinds, the other one.
    pub(super) fn joined(self, other: Self) -> Self {
        match (self, other) {
            (
                Self::Database { memory_gib, vcpus, nodes, storage_mib },
                Self::Database {
                    memory_gib: other_memory,
                    vcpus: other_vcpus,
                    nodes: other_nodes,
                    storage_mib: other_storage,
                },
            ) => Self::Database {
                memory_gib: memory_gib.max(other_memory),
                vcpus: vcpus.max(other_vcpus),
                nodes: nodes.max(other_nodes),
                storage_mib: storage_mib.max(other_storage),
            },
            (_, other) => other,
        }
    }

    /// Reports whether this size lacks nothing of the other one.
    pub(super) fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Database { memory_gib, vcpus, nodes, storage_mib },
                Self::Database {
                    memory_gib: other_memory,
                    vcpus: other_vcpus,
                    nodes: other_nodes,
                    storage_mib: other_storage,
                },
            ) => {
                memory_gib >= other_memory
                    && vcpus >= other_vcpus
                    && nodes >= other_nodes
                    && storage_mib >= other_storage
            }
            (
                Self::NodePool { count, autoscale },
                Self::NodePool { count: other_count, autoscale: other_bounds },
            ) => {
                // A count that a person has raised widens the bounds.
                let holds = |owed: &AutoscaleBounds| {
                    autoscale.is_some_and(|has| has.min >= owed.min && has.max >= owed.max)
                };
                count >= other_count && other_bounds.as_ref().is_none_or(holds)
            }
            (Self::Machine { .. }, Self::Machine { .. }) => self == other,
            _ => false,
        }
    }
}

/// Returns the plan of a machine at its cloud.
pub(super) fn plan_of(state: &Value) -> Option<&str> {
    let droplet = state["size"].as_str().filter(|_| state["powered"].is_boolean());
    droplet.or_else(|| state["server_type"].as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_stopped_only_on_less_than_its_own_or_on_the_least() {
        let of = |plan, nodes| ResourceSize::database(plan, nodes, 0).unwrap();
        let policy = Policy::default();
        let large = of("db-s-4vcpu-8gb", 1);
        assert!(!large.is_shrunk(None, &policy));
        assert!(!large.is_shrunk(Some(&large), &policy));
        assert!(of("db-s-1vcpu-2gb", 1).is_shrunk(Some(&large), &policy));
        assert!(of("db-s-1vcpu-1gb", 1).is_shrunk(None, &policy));
        assert!(of("db-s-1vcpu-2gb", 2).is_shrunk(None, &policy));
        let alone = Policy { stop_nodes: Some(1), ..policy };
        assert!(!of("db-s-1vcpu-2gb", 2).is_shrunk(None, &alone));
    }

    #[test]
    fn of_two_databases_each_part_is_owed() {
        let of = |plan, storage| ResourceSize::database(plan, 1, storage).unwrap();
        let joined = of("db-s-4vcpu-8gb", 10).joined(of("db-s-1vcpu-2gb", 20));
        assert_eq!(joined, of("db-s-4vcpu-8gb", 20));
    }
}
