//! What steps are sent as (DOSPEC).

use std::collections::BTreeSet;

use domain::{
    ClusterId, ResourceId,
    hibernation::{Attachment, BackupPolicy, Label, MARK_LABEL, Manifest},
    resource::{ActionId, AutoscaleBounds, Resource, SavedState, Size},
    step::{Accepted, Step},
};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    hibernation::{droplet_id, of_tag, snapshot_name},
    is_service_tag, schema,
};
use crate::{
    error::ProviderError,
    http::{Request, USER_DATA, parse},
};

pub(super) fn request(resource: &Resource, step: &Step) -> Result<Request, ProviderError> {
    let id = &resource.id;
    let act = |kind| action(id, &schema::Act { kind });
    match step {
        Step::Off { gracefully: true } => act("shutdown"),
        Step::Off { gracefully: false } => act("power_off"),
        Step::On { .. } => act("power_on"),
        Step::Resize(to) => resize(resource, to),
        Step::Snapshot(label) => {
            action(id, &json!({"type": "snapshot", "name": snapshot_name(label, resource)}))
        }
        Step::Delete => Ok(Request::delete(format!("/v2/droplets/{}", droplet_id(id)?))),
        Step::Create { label, snapshot, manifest } => {
            droplet_id(id)?;
            Ok(Request::post_json("/v2/droplets", &Order::of(label, *snapshot, manifest)))
        }
        Step::Attach(what) => attach(id, what),
        Step::RemoveSnapshot(snapshot) => Ok(Request::delete(format!("/v2/snapshots/{snapshot}"))),
        // This cloud has neither.
        Step::KeepAddress(_) | Step::Protect { .. } => Err(ProviderError::foreign(id)),
    }
}

/// Reads what a cloud answers to a step that it accepts.
pub(super) fn accepted(
    step: &Step,
    request: &Request,
    answer: &[u8],
) -> Result<Accepted, ProviderError> {
    match step {
        Step::Off { .. }
        | Step::On { .. }
        | Step::Resize(SavedState::Machine(_))
        | Step::Snapshot(_) => {
            let schema::BegunActionResponse { action } = parse(request, answer)?;
            Ok(Accepted::action(action.id))
        }
        Step::Resize(SavedState::NodePool { .. }) => {
            parse::<schema::UpdatedPool>(request, answer)?;
            Ok(Accepted::default())
        }
        Step::Create { .. } => {
            let made: schema::CreateResponse = parse(request, answer)?;
            let actions = made.links.map(|links| links.actions).unwrap_or_default();
            Ok(Accepted {
                action: actions.first().map(|action| ActionId(action.id)),
                made: Some(made.droplet.id),
            })
        }
        Step::Resize(SavedState::Database { .. })
        | Step::Delete
        | Step::Attach(_)
        | Step::RemoveSnapshot(_)
        | Step::KeepAddress(_)
        | Step::Protect { .. } => {
            // No body, or the action begun (DOSPEC); an HTML page would come from a gateway.
            if !answer.is_empty() {
                parse::<Value>(request, answer)?;
            }
            Ok(Accepted::default())
        }
    }
}

/// Begins an action on a Droplet.
fn action(id: &ResourceId, action: &impl Serialize) -> Result<Request, ProviderError> {
    let path = format!("/v2/droplets/{}/actions", droplet_id(id)?);
    Ok(Request::post_json(path, action))
}

fn resize(resource: &Resource, to: &SavedState) -> Result<Request, ProviderError> {
    let foreign = || ProviderError::foreign(&resource.id);
    match (&resource.id, to) {
        (id, SavedState::Machine(to)) => {
            action(id, &schema::ResizeDroplet { kind: "resize", size: &to.plan, disk: false })
        }
        (ResourceId::Database(id), SavedState::Database { plan, nodes, storage_mib }) => {
            let body =
                schema::Resize { size: plan, num_nodes: *nodes, storage_size_mib: *storage_mib };
            Ok(Request::put(format!("/v2/databases/{id}/resize"), &body))
        }
        (ResourceId::NodePool(cluster, pool), SavedState::NodePool { count, autoscale }) => {
            let path = format!("/v2/kubernetes/clusters/{cluster}/node_pools/{pool}");
            let update = pool_update(resource, cluster, *count, *autoscale);
            Ok(Request::put(path, &update.ok_or_else(foreign)?))
        }
        (_, SavedState::Database { .. } | SavedState::NodePool { .. }) => Err(foreign()),
    }
}

/// Builds a pool's complete update: whatever it leaves out would be removed (DOCTL), and a count of
/// 0 or a disabled autoscaler must be written out to be understood (TFDO). `None` for labels or
/// taints that are not JSON.
fn pool_update<'a>(
    resource: &'a Resource,
    cluster: &ClusterId,
    count: u32,
    autoscale: Option<AutoscaleBounds>,
) -> Option<schema::PoolUpdate<'a>> {
    let Size::NodePool(pool) = &resource.size else {
        return None;
    };
    let tags = resource.tags.iter().map(String::as_str);
    Some(schema::PoolUpdate {
        name: &resource.name,
        count,
        auto_scale: autoscale.is_some(),
        min_nodes: autoscale.map(|bounds| bounds.min),
        max_nodes: autoscale.map(|bounds| bounds.max),
        tags: tags.filter(|tag| !is_service_tag(tag, cluster)).collect(),
        labels: serde_json::from_str(&pool.labels).ok()?,
        taints: serde_json::from_str(&pool.taints).ok()?,
    })
}

/// Returns the path of a reserved address.
pub(super) fn reserved(ip: &str) -> String {
    let all = if ip.contains(':') { "reserved_ipv6" } else { "reserved_ips" };
    format!("/v2/{all}/{ip}")
}

fn attach(id: &ResourceId, what: &Attachment) -> Result<Request, ProviderError> {
    let number = droplet_id(id)?;
    let droplets = json!({"droplet_ids": [number]});
    let (path, body) = match what {
        Attachment::Firewall(firewall) => (format!("/v2/firewalls/{firewall}/droplets"), droplets),
        Attachment::LoadBalancer(one) => {
            (format!("/v2/load_balancers/{}/droplets", one.id), droplets)
        }
        Attachment::FloatingIp(ip) => {
            let body = json!({"type": "assign", "droplet_id": number});
            (format!("{}/actions", reserved(ip)), body)
        }
        Attachment::Volume(volume) => (
            format!("/v2/volumes/{volume}/actions"),
            json!({"type": "attach", "droplet_id": number}),
        ),
        Attachment::Project(project) => (
            format!("/v2/projects/{project}/resources"),
            json!({"resources": [format!("do:droplet:{number}")]}),
        ),
        Attachment::Backups(policy) => {
            let mut body = json!({"type": "enable_backups"});
            if let Some(policy) = policy {
                body["backup_policy"] = json!(policy);
            }
            (format!("/v2/droplets/{number}/actions"), body)
        }
        // The cloud chooses the addresses, and has no placement groups.
        Attachment::Network(_)
        | Attachment::PlacementGroup(_)
        | Attachment::Address(_)
        | Attachment::Vpc(_) => {
            return Err(ProviderError::foreign(id));
        }
    };
    Ok(Request::post_json(path, &body))
}

/// The body of a request to create a Droplet.
#[derive(Serialize)]
struct Order<'a> {
    name: &'a str,
    region: &'a str,
    size: &'a str,
    /// The snapshot's number: text would be the slug of a public image (DOSPEC).
    image: u64,
    ssh_keys: [&'a str; 1],
    backups: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    backup_policy: Option<&'a BackupPolicy>,
    ipv6: bool,
    monitoring: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    with_droplet_agent: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    public_networking: Option<bool>,
    tags: BTreeSet<String>,
    volumes: &'a BTreeSet<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vpc_uuid: Option<&'a str>,
    user_data: &'static str,
}

impl<'a> Order<'a> {
    fn of(label: &Label, snapshot: u64, made: &'a Manifest) -> Self {
        let has = |feature: &str| made.features.contains(feature);
        let mut tags = made.tags.clone();
        tags.insert(of_tag(&label.of));
        tags.insert(format!("{MARK_LABEL}:{}", label.mark));
        Self {
            name: &made.name,
            region: &made.region,
            size: &made.size.plan,
            image: snapshot,
            ssh_keys: [&made.ssh_key],
            backups: made.backups,
            backup_policy: made.backup_policy.as_ref(),
            ipv6: has("ipv6"),
            monitoring: has("monitoring"),
            // Asked for, the agent has to be installable on what the snapshot has by now (DOSPEC).
            with_droplet_agent: (!has("droplet_agent")).then_some(false),
            public_networking: made.private_only.then_some(false),
            tags,
            volumes: &made.volumes,
            vpc_uuid: made.vpc.as_deref(),
            user_data: USER_DATA,
        }
    }
}
