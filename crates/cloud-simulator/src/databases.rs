//! Database clusters: how a fleet describes one, its state, and what a resize requires.

use domain::{AccountName, DatabaseId, ResourceId, resource::PlanCapacity};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    answer::{Refusal, timestamp},
    catalog, defaults,
    ledger::Meter,
    prices::database_key,
};

/// A database cluster: its description in a fleet, then its state.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Database {
    /// May be left out if its cloud has only one account.
    #[serde(skip_serializing)]
    pub(crate) account: Option<AccountName>,
    pub(crate) id: String,
    pub(crate) name: String,
    /// The engine's slug: `pg`, `mysql`, `redis`, `valkey`, `mongodb`, `kafka`, `opensearch`.
    pub(crate) engine: String,
    /// Defaults to the newest.
    pub(crate) version: Option<String>,
    pub(crate) plan: String,
    /// Primary and standby nodes together.
    #[serde(default = "defaults::one")]
    pub(crate) nodes: u32,
    /// The disk in MiB; defaults to the plan's own.
    #[serde(default)]
    pub(crate) storage_mib: u64,
    #[serde(default = "defaults::region")]
    pub(crate) region: String,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    /// The ids of the Droplets among its trusted sources.
    #[serde(default)]
    pub(crate) lets_in: Vec<u64>,
    /// The addresses among its trusted sources, each alone or as a network.
    #[serde(default)]
    pub(crate) lets_in_addresses: Vec<String>,
    #[serde(default)]
    pub(crate) status: DatabaseStatus,
    /// Whether a plan with less memory or fewer vCPUs is refused.
    #[serde(default)]
    pub(crate) refuses_shrink: bool,
    #[serde(default = "defaults::seconds::<480>", skip_serializing)]
    pub(crate) resize: SignedDuration,
    /// How long after an accepted resize the status still reads `online`.
    #[serde(default, skip_serializing)]
    pub(crate) resizing_shows_after: SignedDuration,
    /// When the disk grows automatically.
    #[serde(default)]
    pub(crate) storage_autoscale: StorageAutoscale,
    #[serde(default)]
    pub(crate) replicas: Vec<Replica>,

    #[serde(skip_deserializing)]
    pub(crate) resizing_to: Option<Resize>,
    #[serde(skip_deserializing)]
    pub(crate) created: Timestamp,
}

/// A database's status, in the provider's words (DOSPEC).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DatabaseStatus {
    Creating,
    #[default]
    Online,
    Resizing,
    Migrating,
    Forking,
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StorageAutoscale {
    enabled: bool,
    /// How full the disk must be.
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold_percent: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    increment_gib: Option<u64>,
}

/// A read-only node of a database.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Replica {
    id: String,
    name: String,
    size: String,
}

/// A requested resize: the body of its request. `size` and `num_nodes` are required (DOSPEC).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Resize {
    pub(crate) size: String,
    pub(crate) num_nodes: u32,
    /// The disk in MiB. If a change of plan leaves it out, it is the new plan's own (TFDO).
    pub(crate) storage_size_mib: Option<u64>,
}

impl Database {
    /// Initializes its state from the fleet's description.
    pub(crate) fn created_at(mut self, now: Timestamp) -> Self {
        self.created = now;
        if self.storage_mib == 0 {
            self.storage_mib = catalog::plan_storage_mib(&self.plan);
        }
        self
    }

    pub(crate) fn meter(&self) -> Meter {
        (ResourceId::Database(DatabaseId(self.id.clone())), 0)
    }

    /// The key of its entry in the price list.
    pub(crate) fn priced_as(&self) -> String {
        database_key(self.nodes, &self.plan)
    }

    /// Reports whether it has a tag, ignoring case.
    pub(crate) fn has_tag(&self, tag: &str) -> bool {
        self.tags.iter().any(|own| own.eq_ignore_ascii_case(tag))
    }

    /// Checks whether a resize can be carried out, and returns the resulting disk in MiB. The
    /// messages are assumptions, and so are the refusals of a second resize and of one to the same
    /// size.
    pub(crate) fn disk_after(&self, resize: &Resize) -> Result<u64, Refusal> {
        let refuse = |message: String| Err(Refusal::unprocessable(message));
        let Self { engine, plan, .. } = self;
        let Resize { size, num_nodes, .. } = resize;
        Refusal::new(
            409,
            "conflict",
            "the database cluster is being changed; try again when it is online",
        )
        .when(self.resizing_to.is_some() || self.status != DatabaseStatus::Online)?;
        if !catalog::offers(engine, *num_nodes, size) {
            return refuse(format!(
                "invalid size: {size} is not available for {engine} with {num_nodes} nodes"
            ));
        }
        // Standby nodes may be removed even where a smaller plan is refused.
        if self.refuses_shrink && shrinks(plan, size) {
            return refuse("downsizing a database cluster is not supported".to_owned());
        }
        let own = catalog::plan_storage_mib(size);
        let disk_mib = match resize.storage_size_mib {
            Some(asked) => {
                self.check_storage(size, asked)?;
                asked
            }
            None if size == plan => self.storage_mib,
            None => own,
        };
        if size == plan && *num_nodes == self.nodes && disk_mib == self.storage_mib {
            return refuse("the database cluster already has this size".to_owned());
        }
        Ok(disk_mib)
    }

    /// Checks whether a resize to a plan may ask for this much disk.
    fn check_storage(&self, plan: &str, asked_mib: u64) -> Result<(), Refusal> {
        let (least, most) = catalog::plan_storage_range_mib(plan);
        let why = if !catalog::has_extra_storage(&self.engine) {
            format!("storage of {} cannot be adjusted", self.engine)
        } else if !(least..=most).contains(&asked_mib) {
            format!("{plan} needs {least} to {most}")
        } else if *plan == self.plan && asked_mib < self.storage_mib {
            "storage cannot be reduced".to_owned()
        } else {
            return Ok(());
        };
        let message = format!("invalid storage_size_mib: {why}");
        Err(Refusal::unprocessable(message))
    }

    /// The cluster as the API shows it, without user and password, which need a scope of their own
    /// (DOSPEC).
    pub(crate) fn to_json(&self) -> Value {
        let newest = catalog::engine(&self.engine).map(|engine| &engine["default_version"]);
        let version = self.version.as_ref().map(|version| json!(version));
        let fields = json!({
            "id": self.id,
            "name": self.name,
            "engine": self.engine,
            "version": version.or(newest.cloned()),
            "num_nodes": self.nodes,
            "region": self.region,
            "status": self.status,
            "created_at": timestamp(self.created),
            "size": self.plan,
            // The service sends null if there are no tags.
            "tags": if self.tags.is_empty() { Value::Null } else { json!(self.tags) },
            "storage_size_mib": self.storage_mib,
        });
        catalog::with(&catalog::DATABASE, fields)
    }

    /// Ends the resize: only now does the cluster show its new size.
    pub(crate) fn end_resize(&mut self) {
        if let Some(resize) = self.resizing_to.take() {
            self.plan = resize.size;
            self.nodes = resize.num_nodes;
            self.storage_mib = resize.storage_size_mib.unwrap_or(self.storage_mib);
            self.status = DatabaseStatus::Online;
        }
    }

    pub(crate) fn replicas_json(&self) -> Value {
        let replica = |replica: &Replica| {
            json!({
                "id": replica.id,
                "name": replica.name,
                "region": self.region,
                "size": replica.size,
                "status": "online",
                "tags": [],
                "created_at": timestamp(self.created),
                "storage_size_mib": catalog::plan_storage_mib(&replica.size),
            })
        };
        json!({"replicas": self.replicas.iter().map(replica).collect::<Vec<_>>()})
    }

    pub(crate) fn autoscale_json(&self) -> Value {
        json!({"autoscale": {"storage": self.storage_autoscale}})
    }

    /// Sets when the disk grows; the bounds are DOSPEC's.
    pub(crate) fn set_autoscale(&mut self, body: &Value) -> Result<(), Refusal> {
        let wanted: StorageAutoscale = Refusal::parse(&body["storage"])?;
        let within = |value: Option<u64>, range: std::ops::RangeInclusive<u64>| {
            value.map_or(!wanted.enabled, |value| range.contains(&value))
        };
        Refusal::unprocessable("request payload validation failed").when(
            !within(wanted.threshold_percent, 15..=95) || !within(wanted.increment_gib, 10..=500),
        )?;
        self.storage_autoscale = wanted;
        Ok(())
    }
}

fn shrinks(old: &str, new: &str) -> bool {
    match (PlanCapacity::of_plan(old), PlanCapacity::of_plan(new)) {
        (Some(old), Some(new)) => new.memory_gib < old.memory_gib || new.vcpus < old.vcpus,
        (_, None) | (None, _) => false,
    }
}
