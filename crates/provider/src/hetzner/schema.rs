//! Hetzner Cloud's wire format (HZSPEC), as far as we use it.

use std::collections::{BTreeMap, BTreeSet};

use domain::hibernation::{Attachment, Balanced};
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, de::IgnoredAny};
use serde_json::Number;

use crate::{
    attachments::Thing,
    http::{ErrorWords, null_is_empty},
};

pub(super) fn read_error(body: &[u8]) -> Option<ErrorWords> {
    #[derive(Deserialize)]
    struct Wrapped {
        error: Error,
    }
    #[derive(Deserialize)]
    struct Error {
        code: String,
        message: String,
    }
    let Wrapped { error } = serde_json::from_slice(body).ok()?;
    Some(ErrorWords { code: error.code, message: error.message, request_id: None })
}

#[derive(Deserialize)]
pub(super) struct Page<T> {
    #[serde(
        alias = "servers",
        alias = "actions",
        alias = "server_types",
        alias = "ssh_keys",
        alias = "images",
        alias = "primary_ips",
        alias = "load_balancers"
    )]
    pub(super) items: Vec<T>,
    pub(super) meta: Meta,
}

#[derive(Deserialize)]
pub(super) struct Meta {
    pub(super) pagination: Pagination,
}

#[derive(Deserialize)]
pub(super) struct Pagination {
    pub(super) next_page: Option<u32>,
    pub(super) last_page: Option<u32>,
}

#[derive(Deserialize)]
pub(super) struct FloatingIpResponse {
    pub(super) floating_ip: FloatingIp,
}

#[derive(Deserialize)]
pub(super) struct FloatingIp {
    /// The server that it is assigned to.
    pub(super) server: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct ServerResponse {
    pub(super) server: Server,
}

#[derive(Deserialize)]
pub(super) struct Server {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) status: String,
    pub(super) locked: bool,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub(super) labels: BTreeMap<String, String>,
    pub(super) location: Named,
    #[serde(rename = "server_type")]
    pub(super) plan: ServerType,
    /// In GB.
    pub(super) primary_disk_size: u64,
    pub(super) created: Option<Timestamp>,
    pub(super) iso: Option<IgnoredAny>,
    #[serde(default)]
    pub(super) rescue_enabled: bool,
    pub(super) protection: Option<Protection>,
}

/// A server with its attached resources.
#[derive(Deserialize)]
pub(super) struct ServerWithAttachments {
    #[serde(flatten)]
    pub(super) server: Server,
    pub(super) public_net: PublicNet,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub(super) private_net: Vec<PrivateNet>,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub(super) volumes: Vec<u64>,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub(super) load_balancers: Vec<u64>,
    pub(super) placement_group: Option<Group>,
    pub(super) backup_window: Option<IgnoredAny>,
    pub(super) image: Option<Numbered>,
}

#[derive(Deserialize)]
pub(super) struct ServerWithAttachmentsResponse {
    pub(super) server: ServerWithAttachments,
}

#[derive(Deserialize)]
pub(super) struct PublicNet {
    pub(super) ipv4: Option<PublicAddress>,
    pub(super) ipv6: Option<PublicAddress>,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub(super) floating_ips: Vec<u64>,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub(super) firewalls: Vec<AppliedFirewall>,
}

#[derive(Deserialize)]
pub(super) struct PublicAddress {
    pub(super) id: Option<u64>,
    pub(super) ip: String,
    pub(super) blocked: bool,
}

#[derive(Deserialize)]
pub(super) struct AppliedFirewall {
    pub(super) id: u64,
    /// "applied" or "pending".
    pub(super) status: String,
}

#[derive(Deserialize)]
pub(super) struct PrivateNet {
    pub(super) network: u64,
    pub(super) ip: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub(super) alias_ips: Vec<String>,
}

#[derive(Deserialize)]
pub(super) struct Group {
    pub(super) id: u64,
    pub(super) name: String,
}

#[derive(Deserialize)]
pub(super) struct Numbered {
    pub(super) id: u64,
}

#[derive(Deserialize)]
pub(super) struct PrimaryIp {
    pub(super) id: u64,
    pub(super) auto_delete: bool,
}

#[derive(Deserialize)]
pub(super) struct LoadBalancer {
    pub(super) id: u64,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub(super) targets: Vec<BalancerTarget>,
}

/// A target that is chosen by a label or an address names no server.
#[derive(Deserialize)]
pub(super) struct BalancerTarget {
    pub(super) server: Option<Numbered>,
    #[serde(default)]
    pub(super) use_private_ip: bool,
}

impl LoadBalancer {
    /// Returns it for each server that it targets.
    pub(super) fn things(&self) -> impl Iterator<Item = Thing> {
        self.targets.iter().filter_map(|target| {
            let server = target.server.as_ref()?.id;
            let one = Balanced { id: self.id.to_string(), privately: target.use_private_ip };
            let machines = BTreeSet::from([server]);
            Some(Thing { what: Attachment::LoadBalancer(one), words: None, machines })
        })
    }
}

#[derive(Deserialize)]
pub(super) struct ImageResponse {
    pub(super) image: Image,
}

#[derive(Deserialize)]
pub(super) struct Image {
    pub(super) id: u64,
    pub(super) status: String,
    #[serde(default)]
    pub(super) description: String,
    /// In GB, once it is complete.
    #[serde(rename = "image_size")]
    pub(super) size: Option<Number>,
    #[serde(deserialize_with = "whole")]
    pub(super) disk_size: u64,
    pub(super) created: Timestamp,
    pub(super) created_from: Option<Numbered>,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub(super) labels: BTreeMap<String, String>,
    pub(super) architecture: Option<String>,
    pub(super) protection: Protection,
}

/// A response that may name what is being created.
#[derive(Deserialize)]
pub(super) struct CreateResponse {
    pub(super) action: Option<BegunAction>,
    pub(super) image: Option<Numbered>,
    pub(super) server: Option<Numbered>,
}

#[derive(Deserialize)]
pub(super) struct ServerType {
    pub(super) name: String,
    pub(super) cores: u32,
    /// In GB; whole for every type, though the specification allows any number (HZSPEC).
    #[serde(deserialize_with = "whole")]
    pub(super) memory: u64,
    pub(super) architecture: String,
    pub(super) storage_type: String,
}

#[derive(Deserialize)]
pub(super) struct Protection {
    #[serde(default)]
    pub(super) delete: bool,
    #[serde(default)]
    pub(super) rebuild: bool,
}

/// A server type as the list of types has it.
#[derive(Deserialize)]
pub(super) struct ListedType {
    #[serde(flatten)]
    pub(super) plan: ServerType,
    /// The included disk, in GB.
    #[serde(deserialize_with = "whole")]
    pub(super) disk: u64,
    /// The type's deprecation everywhere; superseded by that of each location.
    pub(super) deprecation: Option<IgnoredAny>,
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) prices: Vec<TypePrice>,
    /// Missing from older responses (HGO).
    pub(super) locations: Option<Vec<TypeLocation>>,
}

#[derive(Deserialize)]
pub(super) struct TypePrice {
    pub(super) location: String,
    pub(super) price_hourly: Price,
    pub(super) price_monthly: Price,
}

#[derive(Deserialize)]
pub(super) struct Price {
    /// Decimal text, without taxes.
    pub(super) net: String,
}

#[derive(Deserialize)]
pub(super) struct TypeLocation {
    pub(super) name: String,
    pub(super) deprecation: Option<IgnoredAny>,
    /// Missing from older responses (HGO).
    pub(super) available: Option<bool>,
}

#[derive(Deserialize)]
pub(super) struct PricingResponse {
    pub(super) pricing: Pricing,
}

#[derive(Deserialize)]
pub(super) struct Pricing {
    pub(super) currency: String,
}

#[derive(Deserialize)]
pub(super) struct ImagePricingResponse {
    pub(super) pricing: ImagePricing,
}

#[derive(Deserialize)]
pub(super) struct ImagePricing {
    pub(super) currency: String,
    pub(super) image: ImagePrice,
}

#[derive(Deserialize)]
pub(super) struct PricesResponse {
    pub(super) pricing: AllPrices,
}

#[derive(Deserialize)]
pub(super) struct AllPrices {
    pub(super) currency: String,
    pub(super) image: ImagePrice,
    pub(super) server_types: Vec<TypePrices>,
}

#[derive(Deserialize)]
pub(super) struct TypePrices {
    pub(super) name: String,
    pub(super) prices: Vec<TypePrice>,
}

#[derive(Deserialize)]
pub(super) struct ImagePrice {
    pub(super) price_per_gb_month: Price,
}

/// Reads a whole number, whether it is written with a fraction or without one.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let number = Number::deserialize(deserializer)?;
    let text = number.to_string();
    let whole = text.strip_suffix(".0").unwrap_or(&text);
    whole.parse().map_err(serde::de::Error::custom)
}

#[derive(Deserialize)]
pub(super) struct Named {
    pub(super) name: String,
}

#[derive(Serialize)]
pub(super) struct ChangeType<'a> {
    pub(super) server_type: &'a str,
    pub(super) upgrade_disk: bool,
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
pub(super) struct ActionResponse {
    pub(super) action: Action,
}

#[derive(Deserialize)]
pub(super) struct Action {
    pub(super) id: u64,
    pub(super) command: String,
    pub(super) status: ActionStatus,
    pub(super) started: Timestamp,
    pub(super) finished: Option<Timestamp>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ActionStatus {
    Running,
    Success,
    Error,
    #[serde(other)]
    Unknown,
}
