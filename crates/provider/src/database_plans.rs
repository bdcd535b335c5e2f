//! The plans that a cloud offers for databases.

use std::collections::BTreeMap;

use domain::resource::{DatabaseSize, PlanCapacity};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    error::ProviderError,
    http::{Request, null_is_empty},
};

/// The path that lists them.
pub(crate) const OPTIONS: &str = "/v2/databases/options";

/// The plans that are offered for databases, by engine. An engine's plans are parsed only when they
/// are asked for.
#[derive(Debug, Clone, Default)]
pub struct DatabasePlans(BTreeMap<String, Value>);

impl DatabasePlans {
    pub(crate) fn new(by_engine: BTreeMap<String, Value>) -> Self {
        Self(by_engine)
    }

    /// Returns the slug of the smallest plan for a database's engine and number of nodes in a
    /// region: least memory, then fewest vCPUs. `None` if none is offered.
    pub fn smallest(
        &self,
        size: &DatabaseSize,
        region: &str,
    ) -> Result<Option<String>, ProviderError> {
        let Some(engine) = self.0.get(&size.engine) else {
            return Ok(None);
        };
        let engine: EngineOptions = serde_json::from_value(engine.clone()).map_err(|_| {
            let reason = format!("unexpected {} options", size.engine);
            Request::get(OPTIONS).not_understood(reason)
        })?;
        if !engine.regions.iter().any(|offered| offered == region) {
            return Ok(None);
        }
        Ok(engine
            .layouts
            .into_iter()
            .filter(|layout| layout.num_nodes == size.nodes)
            .flat_map(|layout| layout.sizes)
            .filter_map(|plan| Some((PlanCapacity::of_plan(&plan)?, plan.len(), plan)))
            // Among equal plans, the shortest name wins: `db-s-…` before `db-amd-…`.
            .min()
            .map(|(_, _, plan)| plan))
    }
}

#[derive(Deserialize)]
struct EngineOptions {
    #[serde(default, deserialize_with = "null_is_empty")]
    regions: Vec<String>,
    #[serde(default, deserialize_with = "null_is_empty")]
    layouts: Vec<Layout>,
}

#[derive(Deserialize)]
struct Layout {
    num_nodes: u32,
    #[serde(default, deserialize_with = "null_is_empty")]
    sizes: Vec<String>,
}
