//! What steps are sent as (HZSPEC).

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    hibernation::{
        Attachment, KeptAddress, Label, MARK_LABEL, Manifest, OF_LABEL, Origin, of_label,
    },
    resource::{ActionId, Resource, SavedState},
    step::{Accepted, Step},
};
use serde::Serialize;
use serde_json::json;

use super::{schema, server_id};
use crate::{
    error::ProviderError,
    http::{Request, USER_DATA, parse},
};

pub(super) fn request(resource: &Resource, step: &Step) -> Result<Request, ProviderError> {
    let id = &resource.id;
    let server = server_id(id)?.0;
    let action = |word| format!("/v1/servers/{server}/actions/{word}");
    Ok(match step {
        // A body, or a content type without one, would be answered with 415.
        Step::Off { gracefully: true } => Request::post(action("shutdown")),
        Step::Off { gracefully: false } => Request::post(action("poweroff")),
        Step::On { .. } => Request::post(action("poweron")),
        Step::Resize(SavedState::Machine(to)) => {
            let body = schema::ChangeType { server_type: &to.plan, upgrade_disk: false };
            Request::post_json(action("change_type"), &body)
        }
        Step::Resize(SavedState::Database { .. } | SavedState::NodePool { .. }) => {
            return Err(ProviderError::foreign(id));
        }
        Step::KeepAddress(address) => {
            let path = format!("/v1/primary_ips/{address}");
            Request::put(path, &json!({"auto_delete": false}))
        }
        Step::Snapshot(label) => {
            let description = description(label, resource);
            let labels: BTreeMap<_, _> = labels_of(label).into();
            let body = json!({"type": "snapshot", "description": description, "labels": labels});
            Request::post_json(action("create_image"), &body)
        }
        Step::Protect { snapshot, on } => {
            let path = format!("/v1/images/{snapshot}/actions/change_protection");
            Request::post_json(path, &json!({"delete": on}))
        }
        Step::Delete => Request::delete(format!("/v1/servers/{server}")),
        Step::Create { label, snapshot, manifest } => {
            Request::post_json("/v1/servers", &Order::of(label, *snapshot, manifest))
        }
        Step::Attach(what) => attach(server, what).ok_or_else(|| ProviderError::foreign(id))?,
        Step::RemoveSnapshot(snapshot) => Request::delete(format!("/v1/images/{snapshot}")),
    })
}

/// Reads what a cloud answers to a step that it accepts.
pub(super) fn accepted(
    step: &Step,
    request: &Request,
    answer: &[u8],
) -> Result<Accepted, ProviderError> {
    // The deletion of an image is answered without a body (HZSPEC).
    if let Step::RemoveSnapshot(_) = step {
        return Ok(Accepted::default());
    }
    if !step.facts().exclusive {
        let schema::BegunActionResponse { action } = parse(request, answer)?;
        return Ok(Accepted::action(action.id));
    }
    let begun: schema::CreateResponse = parse(request, answer)?;
    Ok(Accepted {
        action: begun.action.map(|action| ActionId(action.id)),
        made: begun.image.or(begun.server).map(|made| made.id),
    })
}

/// The body of a request to create a server.
#[derive(Serialize)]
struct Order<'a> {
    name: &'a str,
    server_type: &'a str,
    /// The snapshot's number, as text (HZSPEC).
    image: String,
    location: &'a str,
    start_after_create: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    placement_group: Option<u64>,
    ssh_keys: [&'a str; 1],
    volumes: Vec<u64>,
    automount: bool,
    firewalls: Vec<OrderedFirewall>,
    labels: BTreeMap<&'a str, String>,
    user_data: &'static str,
    public_net: OrderedNet,
}

#[derive(Serialize)]
struct OrderedFirewall {
    firewall: u64,
}

#[derive(Serialize)]
struct OrderedNet {
    enable_ipv4: bool,
    enable_ipv6: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    ipv4: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ipv6: Option<u64>,
}

impl<'a> Order<'a> {
    fn of(label: &Label, snapshot: u64, made: &'a Manifest) -> Self {
        let address = |is_ipv6| {
            let mut all = made.addresses.iter();
            all.find(|address| address.is_ipv6 == is_ipv6)
        };
        let number = |address: Option<&KeptAddress>| address?.id.parse().ok();
        let (ipv4, ipv6) = (address(false), address(true));
        let labels = made.tags.iter().filter_map(|tag| tag.split_once('='));
        let mut labels: BTreeMap<_, _> = labels.map(|(key, of)| (key, of.to_owned())).collect();
        labels.extend(labels_of(label));
        let group = made.placement_group.as_ref();
        Self {
            name: &made.name,
            server_type: &made.size.plan,
            image: snapshot.to_string(),
            location: &made.region,
            start_after_create: false,
            placement_group: group.and_then(|group| group.parse().ok()),
            ssh_keys: [&made.ssh_key],
            volumes: numbers(&made.volumes).collect(),
            automount: false,
            firewalls: numbers(&made.firewalls)
                .map(|firewall| OrderedFirewall { firewall })
                .collect(),
            labels,
            user_data: USER_DATA,
            public_net: OrderedNet {
                enable_ipv4: ipv4.is_some() || made.new_addresses,
                enable_ipv6: ipv6.is_some() || made.new_addresses,
                ipv4: number(ipv4),
                ipv6: number(ipv6),
            },
        }
    }
}

fn numbers(ids: &BTreeSet<String>) -> impl Iterator<Item = u64> {
    ids.iter().filter_map(|id| id.parse().ok())
}

/// Returns the request that attaches this to a server; `None` for what this cloud does not have.
fn attach(server: u64, what: &Attachment) -> Option<Request> {
    let (path, body) = match what {
        Attachment::Network(one) => (
            format!("/v1/servers/{server}/actions/attach_to_network"),
            json!({
                "network": one.network.parse::<u64>().ok()?,
                "ip": one.ip,
                "alias_ips": one.alias_ips,
            }),
        ),
        Attachment::PlacementGroup(group) => (
            format!("/v1/servers/{server}/actions/add_to_placement_group"),
            json!({"placement_group": group.parse::<u64>().ok()?}),
        ),
        Attachment::Volume(volume) => (
            format!("/v1/volumes/{volume}/actions/attach"),
            json!({"server": server, "automount": false}),
        ),
        Attachment::Firewall(firewall) => (
            format!("/v1/firewalls/{firewall}/actions/apply_to_resources"),
            json!({"apply_to": [{"type": "server", "server": {"id": server}}]}),
        ),
        Attachment::LoadBalancer(one) => (
            format!("/v1/load_balancers/{}/actions/add_target", one.id),
            json!({"type": "server", "server": {"id": server}, "use_private_ip": one.privately}),
        ),
        Attachment::FloatingIp(ip) => {
            (format!("/v1/floating_ips/{ip}/actions/assign"), json!({"server": server}))
        }
        Attachment::Address(one) => (
            format!("/v1/primary_ips/{}/actions/assign", one.id),
            json!({"assignee_id": server, "assignee_type": "server"}),
        ),
        // Backups have no policy here.
        Attachment::Backups(_) => {
            return Some(Request::post(format!("/v1/servers/{server}/actions/enable_backup")));
        }
        Attachment::Project(_) | Attachment::Vpc(_) => return None,
    };
    Some(Request::post_json(path, &body))
}

/// The prefix of the description of a snapshot; what the snapshot says of its machine follows.
pub(super) fn prefix(of: &str, mark: &str) -> String {
    format!("offhours {of} {mark}")
}

fn description(label: &Label, machine: &Resource) -> String {
    let prefix = prefix(&of_label(&label.of), &label.mark.0);
    match Origin::of(machine) {
        Some(origin) => format!("{prefix} {origin}"),
        None => prefix,
    }
}

fn labels_of(label: &Label) -> [(&'static str, String); 2] {
    [(OF_LABEL, of_label(&label.of)), (MARK_LABEL, label.mark.to_string())]
}
