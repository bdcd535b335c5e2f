//! `DigitalOcean`'s wire format, as far as we read and write it (DOSPEC).

use std::collections::{BTreeMap, BTreeSet};

use domain::resource::AutoscaleBounds;
use jiff::Timestamp;
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::Value;

use crate::{
    http::{ErrorWords, null_is_empty},
    pages::Element,
};

pub(super) fn read_error(body: &[u8]) -> Option<ErrorWords> {
    #[derive(Deserialize)]
    struct Error {
        id: String,
        message: String,
        request_id: Option<String>,
    }
    let error: Error = serde_json::from_slice(body).ok()?;
    Some(ErrorWords { code: error.id, message: error.message, request_id: error.request_id })
}

#[derive(Deserialize)]
pub(super) struct Page<T> {
    #[serde(
        alias = "droplets",
        alias = "databases",
        alias = "kubernetes_clusters",
        alias = "actions",
        alias = "sizes",
        alias = "autoscale_pools",
        alias = "reserved_ips",
        alias = "reserved_ipv6s",
        alias = "firewalls",
        alias = "load_balancers",
        alias = "policies",
        alias = "ssh_keys",
        alias = "snapshots",
        alias = "projects",
        alias = "resources",
        deserialize_with = "null_is_empty",
        bound(deserialize = "T: Deserialize<'de>")
    )]
    pub(super) items: Vec<T>,
    links: Option<Links>,
    pub(super) meta: Option<Meta>,
}

#[derive(Deserialize)]
pub(super) struct Meta {
    /// The number of entries on all pages together.
    pub(super) total: u64,
}

#[derive(Deserialize)]
struct Links {
    pages: Option<Pages>,
}

#[derive(Deserialize)]
struct Pages {
    next: Option<String>,
    last: Option<String>,
}

impl<T> Page<T> {
    /// Returns the URLs of the next page and of the last one.
    pub(super) fn next_and_last(&self) -> (Option<&str>, Option<&str>) {
        let pages = self.links.as_ref().and_then(|links| links.pages.as_ref());
        let link = |of: fn(&Pages) -> &Option<String>| pages.and_then(|pages| of(pages).as_deref());
        (link(|pages| &pages.next), link(|pages| &pages.last))
    }
}

#[derive(Deserialize)]
pub(super) struct ItemResponse<T> {
    #[serde(
        alias = "droplet",
        alias = "database",
        alias = "kubernetes_cluster",
        alias = "snapshot",
        alias = "image",
        alias = "action",
        alias = "policy",
        alias = "reserved_ip",
        alias = "reserved_ipv6"
    )]
    pub(super) item: T,
}

/// An id that can be used in a path as is.
#[derive(Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Uuid(pub(super) String);

impl TryFrom<String> for Uuid {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if text.is_empty() || text.len() > 64 || !text.chars().all(fits) {
            return Err("not an id");
        }
        Ok(Self(text))
    }
}

#[derive(Deserialize)]
pub(super) struct Droplet {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) status: String,
    pub(super) locked: bool,
    /// Absent without the scope `tag:read`.
    pub(super) tags: Option<BTreeSet<String>>,
    pub(super) size_slug: String,
    pub(super) vcpus: u32,
    /// In MiB.
    pub(super) memory: u64,
    /// In GiB.
    pub(super) disk: u64,
    pub(super) region: Region,
    pub(super) created_at: Option<Timestamp>,
    pub(super) gpu_info: Option<IgnoredAny>,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub(super) disk_info: Vec<DiskInfo>,
}

/// A Droplet with what is attached to it.
#[derive(Deserialize)]
pub(super) struct DropletWithAttachments {
    #[serde(flatten)]
    pub(super) droplet: Droplet,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub(super) features: BTreeSet<String>,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub(super) volume_ids: BTreeSet<String>,
    pub(super) image: Option<SourceImage>,
    pub(super) networks: Networks,
    /// Absent without the scope `vpc:read`.
    pub(super) vpc_uuid: Option<String>,
}

/// The image that a Droplet was made from.
#[derive(Deserialize)]
pub(super) struct SourceImage {
    pub(super) id: Option<u64>,
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Networks {
    #[serde(default, deserialize_with = "null_is_empty")]
    pub(super) v4: Vec<Network>,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub(super) v6: Vec<Network>,
}

#[derive(Deserialize)]
pub(super) struct Network {
    pub(super) ip_address: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
}

/// Returns the addresses of a kind: `public` or `private`.
pub(super) fn ips<'a>(networks: &'a [Network], kind: &'a str) -> impl Iterator<Item = &'a str> {
    let of_kind = networks.iter().filter(move |network| network.kind == kind);
    of_kind.map(|network| network.ip_address.as_str())
}

/// A snapshot, of a Droplet or of a volume.
#[derive(Deserialize)]
pub(super) struct Snapshot {
    /// Not a number for a volume.
    pub(super) id: String,
    pub(super) name: String,
    pub(super) created_at: Timestamp,
    pub(super) resource_id: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub(super) regions: BTreeSet<String>,
    /// In GB.
    pub(super) min_disk_size: u64,
    /// In GB, with a fraction.
    pub(super) size_gigabytes: serde_json::Number,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub(super) tags: BTreeSet<String>,
}

/// A snapshot of a Droplet as an image, which has the same number.
#[derive(Deserialize)]
pub(super) struct Image {
    pub(super) status: String,
}

/// When a Droplet's backups are made.
#[derive(Deserialize)]
pub(super) struct BackupPolicy {
    pub(super) backup_policy: Option<WhenBackedUp>,
}

#[derive(Deserialize)]
pub(super) struct WhenBackedUp {
    pub(super) plan: String,
    pub(super) weekday: Option<String>,
    pub(super) hour: Option<u8>,
}

#[derive(Deserialize)]
pub(super) struct Project {
    pub(super) id: Uuid,
    pub(super) name: String,
}

/// A resource in a project.
#[derive(Deserialize)]
pub(super) struct Resource {
    pub(super) urn: String,
}

/// A Droplet that is being created.
#[derive(Deserialize)]
pub(super) struct CreateResponse {
    pub(super) droplet: Numbered,
    pub(super) links: Option<CreateLinks>,
}

#[derive(Deserialize)]
pub(super) struct CreateLinks {
    #[serde(default, deserialize_with = "null_is_empty")]
    pub(super) actions: Vec<Numbered>,
}

#[derive(Deserialize)]
pub(super) struct Numbered {
    pub(super) id: u64,
}

#[derive(Deserialize)]
pub(super) struct DiskInfo {
    #[serde(rename = "type")]
    pub(super) kind: String,
}

/// A plan for Droplets and for the nodes of pools.
#[derive(Deserialize)]
pub(super) struct PlanSize {
    pub(super) slug: String,
    pub(super) vcpus: u32,
    /// In MiB.
    pub(super) memory: u64,
    /// In GiB.
    pub(super) disk: u64,
    /// In US dollars. Prices come as widened 32-bit floats (DOSPEC has 0.00743999984115362): read
    /// as `f32`, they have their original digits again.
    pub(super) price_monthly: f32,
    pub(super) price_hourly: f32,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub(super) regions: Vec<String>,
    pub(super) available: bool,
    pub(super) gpu_info: Option<IgnoredAny>,
}

/// A group of Droplets that creates and deletes its own members.
#[derive(Deserialize)]
pub(super) struct AutoscalePool {
    pub(super) id: Uuid,
}

#[derive(Deserialize)]
pub(super) struct AutoscaleMember {
    pub(super) droplet_id: u64,
}

#[derive(Deserialize)]
pub(super) struct Region {
    pub(super) slug: String,
}

#[derive(Deserialize)]
pub(super) struct Database {
    pub(super) id: Uuid,
    pub(super) name: String,
    pub(super) engine: String,
    pub(super) num_nodes: u32,
    pub(super) size: String,
    pub(super) region: String,
    pub(super) status: String,
    pub(super) storage_size_mib: Option<u64>,
    pub(super) created_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub(super) tags: BTreeSet<String>,
}

#[derive(Deserialize)]
pub(super) struct Options {
    /// Options by engine.
    pub(super) options: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
pub(super) struct Cluster {
    pub(super) id: Uuid,
    pub(super) name: String,
    pub(super) region: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub(super) tags: BTreeSet<String>,
    pub(super) status: State,
    pub(super) created_at: Option<Timestamp>,
    pub(super) node_pools: Option<Vec<Element<NodePool>>>,
}

#[derive(Deserialize)]
pub(super) struct State {
    pub(super) state: String,
}

#[derive(Deserialize)]
pub(super) struct NodePools {
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) node_pools: Vec<Element<NodePool>>,
}

#[derive(Deserialize)]
pub(super) struct NodePool {
    pub(super) id: Uuid,
    pub(super) name: String,
    /// The slug of its nodes' plan.
    #[serde(default)]
    pub(super) size: String,
    pub(super) count: u32,
    #[serde(flatten)]
    pub(super) autoscale: Autoscale,
    /// Absent without the scope `tag:read`.
    pub(super) tags: Option<BTreeSet<String>>,
    #[serde(default)]
    pub(super) labels: Value,
    #[serde(default)]
    pub(super) taints: Value,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub(super) nodes: Vec<Node>,
}

/// The autoscaler's bounds; `None` if it is off.
#[derive(Deserialize)]
#[serde(try_from = "WrittenAutoscale")]
pub(super) struct Autoscale(pub(super) Option<AutoscaleBounds>);

#[derive(Deserialize)]
struct WrittenAutoscale {
    #[serde(default)]
    auto_scale: bool,
    min_nodes: Option<u32>,
    max_nodes: Option<u32>,
}

/// If the autoscaler is on, missing bounds are an error: they could not be restored later.
impl TryFrom<WrittenAutoscale> for Autoscale {
    type Error = &'static str;

    fn try_from(written: WrittenAutoscale) -> Result<Self, Self::Error> {
        match (written.auto_scale, written.min_nodes, written.max_nodes) {
            (false, _, _) => Ok(Self(None)),
            (true, Some(min), Some(max)) => Ok(Self(Some(AutoscaleBounds { min, max }))),
            (true, _, _) => Err("an autoscaler without bounds"),
        }
    }
}

#[derive(Deserialize)]
pub(super) struct Node {
    pub(super) status: State,
}

#[derive(Serialize)]
pub(super) struct Act<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'a str,
}

#[derive(Serialize)]
pub(super) struct ResizeDroplet<'a> {
    #[serde(rename = "type")]
    pub(super) kind: &'a str,
    pub(super) size: &'a str,
    pub(super) disk: bool,
}

#[derive(Serialize)]
pub(super) struct Resize<'a> {
    pub(super) size: &'a str,
    pub(super) num_nodes: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) storage_size_mib: Option<u64>,
}

#[derive(Serialize)]
pub(super) struct PoolUpdate<'a> {
    pub(super) name: &'a str,
    pub(super) count: u32,
    pub(super) auto_scale: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) min_nodes: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_nodes: Option<u32>,
    pub(super) tags: Vec<&'a str>,
    pub(super) labels: Value,
    pub(super) taints: Value,
}

#[derive(Deserialize)]
pub(super) struct UpdatedPool {
    #[expect(dead_code, reason = "its presence is what makes the answer usable")]
    node_pool: IgnoredAny,
}

#[derive(Deserialize)]
pub(super) struct BegunActionResponse {
    pub(super) action: BegunAction,
}

#[derive(Deserialize)]
pub(super) struct BegunAction {
    pub(super) id: u64,
}

#[derive(Deserialize)]
pub(super) struct Action {
    pub(super) id: u64,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) status: ActionStatus,
    pub(super) started_at: Timestamp,
    pub(super) completed_at: Option<Timestamp>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ActionStatus {
    InProgress,
    Completed,
    Errored,
    #[serde(other)]
    Unknown,
}
