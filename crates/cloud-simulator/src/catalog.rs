//! What both clouds offer, and the constant parts of their responses. They are stored as JSON in
//! `answers/`, without prices, which are in `prices.toml`.

use std::sync::LazyLock;

use domain::resource::PlanCapacity;
use serde_json::{Map, Value};

type StaticJson = LazyLock<Value>;

pub(crate) static DROPLET_SIZES: StaticJson =
    StaticJson::new(|| parse_static(include_str!("../answers/sizes.json")));
pub(crate) static REGIONS: StaticJson =
    StaticJson::new(|| parse_static(include_str!("../answers/regions.json")));
/// Database engines with their plans, which are not sorted by size because no order is promised.
/// Standby nodes need 2 GiB, so layouts with standbys lack the smallest plan (DOSPEC).
pub(crate) static DATABASE_OPTIONS: StaticJson =
    StaticJson::new(|| parse_static(include_str!("../answers/database_options.json")));
pub(crate) static LOCATIONS: StaticJson =
    StaticJson::new(|| parse_static(include_str!("../answers/locations.json")));
/// Hetzner's server types. Those of the previous series can no longer be ordered in the EU, and the
/// cx and cax types were last seen sold out there (2026-09).
pub(crate) static SERVER_TYPES: StaticJson =
    StaticJson::new(|| parse_static(include_str!("../answers/server_types.json")));

/// The code and message for each status: `DigitalOcean`'s `id`s of DOSPEC where it names them, and
/// the codes of HZSPEC2; the others are assumptions.
pub(crate) static REFUSALS: StaticJson =
    StaticJson::new(|| parse_static(include_str!("../answers/refusals.json")));

/// The fields that all accounts, Droplets, databases, clusters and servers have in common.
pub(crate) static ACCOUNT: StaticJson =
    StaticJson::new(|| parse_static(include_str!("../answers/account.json")));
pub(crate) static DROPLET: StaticJson =
    StaticJson::new(|| parse_static(include_str!("../answers/droplet.json")));
pub(crate) static DATABASE: StaticJson =
    StaticJson::new(|| parse_static(include_str!("../answers/database.json")));
pub(crate) static CLUSTER: StaticJson =
    StaticJson::new(|| parse_static(include_str!("../answers/cluster.json")));
pub(crate) static SERVER: StaticJson =
    StaticJson::new(|| parse_static(include_str!("../answers/server.json")));
/// The fields that all images of servers have in common.
pub(crate) static IMAGE: StaticJson =
    StaticJson::new(|| parse_static(include_str!("../answers/image.json")));
/// An ISO that may be attached to a server.
pub(crate) static ISO: StaticJson =
    StaticJson::new(|| parse_static(include_str!("../answers/iso.json")));

fn parse_static(text: &str) -> Value {
    serde_json::from_str(text).expect("the kept answers are JSON")
}

/// A stored response with `fields` added, overriding its own.
pub(crate) fn with(stored: &Value, fields: Value) -> Value {
    merged([stored.clone(), fields])
}

/// The fields of several objects; later ones override earlier ones.
pub(crate) fn merged<const N: usize>(objects: [Value; N]) -> Value {
    let mut all = Map::new();
    for mut object in objects {
        if let Some(fields) = object.as_object_mut() {
            all.append(fields);
        }
    }
    Value::Object(all)
}

pub(crate) fn entries(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// The entry of a stored list in which `field` has this value.
pub(crate) fn entry(list: &'static Value, field: &str, value: &str) -> Option<&'static Value> {
    entries(list).find(|entry| entry[field] == value)
}

pub(crate) fn droplet_size(slug: &str) -> Option<&'static Value> {
    entry(&DROPLET_SIZES, "slug", slug)
}

pub(crate) fn region(slug: &str) -> Option<&'static Value> {
    entry(&REGIONS, "slug", slug)
}

pub(crate) fn engine(slug: &str) -> Option<&'static Value> {
    DATABASE_OPTIONS["options"].get(slug)
}

/// Every combination of node count and plan that some engine offers.
pub(crate) fn database_layouts() -> impl Iterator<Item = (u32, &'static str)> {
    let engines = DATABASE_OPTIONS["options"].as_object().into_iter();
    let layouts = engines.flat_map(|engines| engines.values());
    let layouts = layouts.flat_map(|engine| entries(&engine["layouts"]));
    layouts.flat_map(|layout| {
        let nodes = layout["num_nodes"].as_u64().and_then(|nodes| nodes.try_into().ok());
        let plans = entries(&layout["sizes"]).filter_map(Value::as_str);
        plans.filter_map(move |plan| Some((nodes?, plan)))
    })
}

pub(crate) fn offers(engine_slug: &str, nodes: u32, plan: &str) -> bool {
    let layouts = engine(engine_slug).map(|engine| entries(&engine["layouts"]));
    layouts.into_iter().flatten().any(|layout| {
        layout["num_nodes"] == nodes && entries(&layout["sizes"]).any(|size| size == plan)
    })
}

/// Reports whether a resize may ask for more storage than the plan includes: only for `pg` and
/// `mysql` (TFDO).
pub(crate) fn has_extra_storage(engine: &str) -> bool {
    matches!(engine, "pg" | "mysql")
}

/// The storage, in MiB, that comes with a database plan.
pub(crate) fn plan_storage_mib(plan: &str) -> u64 {
    let memory = PlanCapacity::of_plan(plan).map_or(1, |capacity| capacity.memory_gib);
    let gib = match memory {
        0 | 1 => 10,
        2 => 30,
        4 => 60,
        8 => 140,
        16 => 290,
        more => u64::from(more) * 18,
    };
    gib * 1024
}

/// The minimum and maximum storage, in MiB, of a database plan. The factor is an assumption; that a
/// small plan refuses a large disk is not.
pub(crate) fn plan_storage_range_mib(plan: &str) -> (u64, u64) {
    let own = plan_storage_mib(plan);
    (own, own * 4)
}
