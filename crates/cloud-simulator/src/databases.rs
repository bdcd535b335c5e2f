//! Database clusters: what a resize needs, refuses and does.

use domain::{configuration::Provider, resource::PlanCapacity};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    answer::{Refusal, timestamp},
    catalog,
    fleet::{self, DatabaseStatus, StorageAutoscale},
    request::given,
    world::{Account, Effect, Timeline},
};

/// A database cluster as it is.
#[derive(Debug, Serialize)]
pub(crate) struct Database {
    #[serde(flatten)]
    pub(crate) description: fleet::Database,
    /// Disk, in MiB.
    pub(crate) disk_mib: u64,
    /// What it is being resized to.
    pub(crate) resizing_to: Option<Target>,
    pub(crate) created: Timestamp,
}

/// What a resize leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Target {
    pub(crate) plan: String,
    pub(crate) nodes: u32,
    /// Disk, in MiB.
    pub(crate) disk_mib: u64,
}

/// What a resize asks for.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) plan: String,
    pub(crate) nodes: u32,
    pub(crate) storage_mib: Option<u64>,
}

impl Wanted {
    /// Both `size` and `num_nodes` must be there (DOSPEC).
    pub(crate) fn from_json(body: &Value) -> Result<Self, Refusal> {
        let plan = body["size"].as_str().filter(|plan| !plan.is_empty());
        let nodes = body["num_nodes"]
            .as_u64()
            .and_then(|nodes| u32::try_from(nodes).ok());
        let storage = given(body, "storage_size_mib").map(|value| {
            let refused = || Refusal::unprocessable("invalid storage_size_mib: must be a number");
            value.as_u64().ok_or_else(refused)
        });
        let storage_mib = storage.transpose()?;
        match (plan, nodes) {
            (Some(plan), Some(nodes)) => Ok(Self {
                plan: plan.to_owned(),
                nodes,
                storage_mib,
            }),
            (None, _) => Err(Refusal::unprocessable("invalid size: size is required")),
            (_, None) => Err(Refusal::unprocessable(
                "invalid num_nodes: num_nodes is required",
            )),
        }
    }
}

impl Database {
    pub(crate) fn new(description: fleet::Database, now: Timestamp) -> Self {
        let own = || catalog::plan_storage_mib(&description.plan);
        Self {
            disk_mib: description.storage_mib.unwrap_or_else(own),
            resizing_to: None,
            created: now,
            description,
        }
    }

    pub(crate) fn has_tag(&self, tag: &str) -> bool {
        self.description
            .tags
            .iter()
            .any(|own| own.eq_ignore_ascii_case(tag))
    }

    /// What a resize would lead to, or why not. The texts, and that a second resize and one to
    /// the same size are refused, are assumptions (PROVIDERS.md, section 6).
    fn target(&self, wanted: &Wanted) -> Result<Target, Refusal> {
        let fleet::Database {
            engine,
            plan,
            nodes,
            status,
            refuses_shrink,
            ..
        } = &self.description;
        if self.resizing_to.is_some() || *status != DatabaseStatus::Online {
            let message = "the database cluster is being changed; try again when it is online";
            return Err(Refusal::new(409, "conflict", message));
        }
        let offer = catalog::engine(engine)
            .ok_or_else(|| Refusal::unprocessable("this engine cannot be resized"))?;
        if !catalog::offers(offer, wanted.nodes, &wanted.plan) {
            return Err(Refusal::unprocessable(format!(
                "invalid size: {} is not available for {} with {} nodes",
                wanted.plan, engine, wanted.nodes
            )));
        }
        let capacity = PlanCapacity::of_plan;
        let shrinks = match (capacity(plan), capacity(&wanted.plan)) {
            (Some(old), Some(new)) => new.memory_gib < old.memory_gib || new.vcpus < old.vcpus,
            (_, None) | (None, _) => false,
        };
        // Standby nodes may go even where a smaller plan is refused.
        if *refuses_shrink && shrinks {
            let message = "downsizing a database cluster is not supported";
            return Err(Refusal::unprocessable(message));
        }
        let target = Target {
            plan: wanted.plan.clone(),
            nodes: wanted.nodes,
            disk_mib: self.disk_after(wanted)?,
        };
        let same = target.plan == *plan && target.nodes == *nodes;
        if same && target.disk_mib == self.disk_mib {
            return Err(Refusal::unprocessable(
                "the database cluster already has this size",
            ));
        }
        Ok(target)
    }

    /// The disk after a resize. Left out of a change of plan, it is the new plan's own (TFDO).
    fn disk_after(&self, wanted: &Wanted) -> Result<u64, Refusal> {
        let same_plan = wanted.plan == self.description.plan;
        let Some(storage_mib) = wanted.storage_mib else {
            let own = catalog::plan_storage_mib(&wanted.plan);
            return Ok(if same_plan { self.disk_mib } else { own });
        };
        let least = catalog::plan_storage_mib(&wanted.plan);
        let most = catalog::plan_storage_limit_mib(&wanted.plan);
        let refuse = |why: String| {
            Err(Refusal::unprocessable(format!(
                "invalid storage_size_mib: {why}"
            )))
        };
        let engine = &self.description.engine;
        if !catalog::has_extra_storage(engine) {
            return refuse(format!("storage of {engine} cannot be adjusted"));
        }
        if !(least..=most).contains(&storage_mib) {
            return refuse(format!("{} needs {least} to {most}", wanted.plan));
        }
        if same_plan && storage_mib < self.disk_mib {
            return refuse("storage cannot be reduced".to_owned());
        }
        Ok(storage_mib)
    }

    /// The cluster as the API shows it, without user and password: these need a scope of their
    /// own (DOSPEC).
    pub(crate) fn to_json(&self) -> Value {
        let fleet::Database {
            id,
            name,
            engine,
            version,
            plan,
            nodes,
            region,
            tags,
            status,
            ..
        } = &self.description;
        let newest = catalog::engine(engine).map(|engine| &engine["default_version"]);
        let fields = json!({
            "id": id,
            "name": name,
            "engine": engine,
            "version": version.as_ref().map(|version| json!(version)).or(newest.cloned()),
            "num_nodes": nodes,
            "region": region,
            "status": status,
            "created_at": timestamp(self.created),
            "size": plan,
            // The service says null where there is no tag.
            "tags": if tags.is_empty() { Value::Null } else { json!(tags) },
            "storage_size_mib": self.disk_mib,
        });
        catalog::with(&catalog::DATABASE, fields)
    }

    pub(crate) fn replicas_json(&self) -> Value {
        let fleet::Database {
            region, replicas, ..
        } = &self.description;
        let of_replica = |replica: &fleet::Replica| {
            json!({
                "id": replica.id,
                "name": replica.name,
                "region": region,
                "size": replica.size,
                "status": "online",
                "tags": [],
                "created_at": timestamp(self.created),
                "storage_size_mib": catalog::plan_storage_mib(&replica.size),
            })
        };
        json!({"replicas": replicas.iter().map(of_replica).collect::<Vec<_>>()})
    }

    pub(crate) fn autoscale_json(&self) -> Value {
        let off = StorageAutoscale {
            enabled: false,
            threshold_percent: None,
            increment_gib: None,
        };
        json!({"autoscale": {"storage": self.description.storage_autoscale.unwrap_or(off)}})
    }

    /// Sets when the disk grows; the bounds are DOSPEC's.
    pub(crate) fn set_autoscale(&mut self, body: &Value) -> Result<(), Refusal> {
        let refused = || Refusal::of_status(Provider::DigitalOcean, 422);
        let wanted: StorageAutoscale =
            serde_json::from_value(body["storage"].clone()).map_err(|_| refused())?;
        let within = |value: Option<u64>, range: std::ops::RangeInclusive<u64>| {
            value.map_or(!wanted.enabled, |value| range.contains(&value))
        };
        if !within(wanted.threshold_percent, 15..=95) || !within(wanted.increment_gib, 10..=500) {
            return Err(refused());
        }
        self.description.storage_autoscale = Some(wanted);
        Ok(())
    }
}

/// Begins a resize.
pub(crate) fn resize(
    account: &mut Account,
    timeline: &mut Timeline,
    id: &str,
    wanted: &Wanted,
) -> Result<(), Refusal> {
    let database = account
        .databases
        .get_mut(id)
        .ok_or_else(Refusal::not_found)?;
    database.resizing_to = Some(database.target(wanted)?);
    let fleet::Database {
        resize,
        resizing_shows_after,
        ..
    } = database.description;
    if resizing_shows_after.is_zero() && timeline.slowness.is_zero() {
        database.description.status = DatabaseStatus::Resizing;
    } else {
        let shows = Effect::DatabaseShowsResizing(id.to_owned());
        timeline.after(account, resizing_shows_after, shows);
    }
    timeline.after(account, resize, Effect::DatabaseResized(id.to_owned()));
    Ok(())
}

pub(crate) fn shows_resizing(account: &mut Account, id: &str) {
    if let Some(database) = account.databases.get_mut(id)
        && database.resizing_to.is_some()
    {
        database.description.status = DatabaseStatus::Resizing;
    }
}

/// The resize is done: only now does the cluster show its new size.
pub(crate) fn resized(account: &mut Account, id: &str) {
    if let Some(database) = account.databases.get_mut(id)
        && let Some(target) = database.resizing_to.take()
    {
        database.description.plan = target.plan;
        database.description.nodes = target.nodes;
        database.disk_mib = target.disk_mib;
        database.description.status = DatabaseStatus::Online;
    }
}
