//! What must be put back after a stop, whatever the stop took away.

use domain::{
    ResourceRef,
    resource::{AutoscaleBounds, PlanCapacity, SavedState},
};
use serde_json::Value;

/// What a resource is when nothing has been taken away from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Whole {
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
}

impl Whole {
    /// What a resource is at its cloud, or is being made.
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

    /// What a record keeps to put back.
    pub(super) fn saved(saved: &SavedState) -> Option<Self> {
        match saved {
            SavedState::Database {
                plan,
                nodes,
                storage_mib,
            } => Self::database(plan, *nodes, storage_mib.unwrap_or_default()),
            SavedState::NodePool { count, autoscale } => Some(Self::NodePool {
                count: *count,
                autoscale: *autoscale,
            }),
            SavedState::Machine(_) => None,
        }
    }

    /// Whether nothing of the other one is missing here.
    pub(super) fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Database {
                    memory_gib,
                    vcpus,
                    nodes,
                    storage_mib,
                },
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
                Self::NodePool {
                    count: other_count,
                    autoscale: other_bounds,
                },
            ) => count >= other_count && (other_bounds.is_none() || autoscale == other_bounds),
            _ => false,
        }
    }
}
