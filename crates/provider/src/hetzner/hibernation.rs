//! Servers kept as snapshots: observing them, and the requests that hibernate and wake them
//! (HZSPEC).

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    ResourceId, ServerId,
    hibernation::{
        Attachment, Hibernate, KeptAddress, Label, MARK_LABEL, Manifest, Mark, NetworkAddress,
        OF_LABEL, ObservedMachine, SeenSnapshot, Sight, SnapshotState, of_label,
    },
    resource::{ActionId, MachineSize, Size},
};
use serde::Serialize;
use serde_json::json;

use super::{Api, schema, server_id};
use crate::{
    change::Accepted,
    error::ProviderError,
    hibernation_lookup::{
        HibernationLookup, ListedSnapshot, ListedSnapshots, hundredths, replace_key,
    },
    http::{Request, USER_DATA, parse},
    pages::{self, Reading},
};

/// The present state of attached resources, as far as servers themselves do not show it.
struct AttachmentLists {
    /// The public addresses that outlive their server.
    kept: BTreeSet<u64>,
    balancers: Vec<schema::LoadBalancer>,
}

impl Api {
    /// Reads the machine after its snapshots and attached resources, so that conclusions rest on
    /// its latest state.
    pub(crate) async fn look_up_hibernation(
        &self,
        lookup: HibernationLookup<'_>,
    ) -> Result<Sight, ProviderError> {
        let label = of_label(lookup.of);
        let selector = format!("label_selector={OF_LABEL}%3D%3D{label}");
        let snapshots = self.snapshots(&selector, lookup).await?;
        let attachments = if lookup.attached { Some(self.attachment_lists().await?) } else { None };
        let mut others =
            self.all::<schema::ServerWithAttachments>(&format!("/v1/servers?{selector}")).await?;
        let machine = match lookup.present {
            Some(id) => self.with_attachments(id).await?,
            None => None,
        };
        if machine.is_none() && !lookup.name.is_empty() {
            let named = format!("/v1/servers?name={}", lookup.name);
            others.extend(self.all::<schema::ServerWithAttachments>(&named).await?);
        }
        if let Some(made) = lookup.made {
            others.extend(self.with_attachments(made).await?);
        }
        let mut known: BTreeSet<u64> = machine.iter().map(|one| one.server.id).collect();
        others.retain(|one| known.insert(one.server.id));
        let body = |whole| self.body(whole, attachments.as_ref());
        Ok(Sight {
            machine: machine.map(body),
            snapshots,
            others: others.into_iter().map(body).collect(),
            create_failed: self.has_failed(lookup.making).await?,
        })
    }

    /// Lists the snapshots that a selector chooses, if it is not empty.
    pub(crate) async fn list_snapshots(
        &self,
        selector: &str,
    ) -> Result<ListedSnapshots, ProviderError> {
        let path = format!("/v1/images?type=snapshot{selector}");
        let images = self.all(&path).await?;
        Ok(ListedSnapshots(images.into_iter().map(snapshot).collect()))
    }

    /// Returns the snapshots of a machine.
    async fn snapshots(
        &self,
        selector: &str,
        lookup: HibernationLookup<'_>,
    ) -> Result<Vec<SeenSnapshot>, ProviderError> {
        let mut listed = self.list_snapshots(&format!("&{selector}")).await?;
        let known = lookup.hibernation.map_or(&[][..], |known| &known.snapshots);
        for number in known.iter().filter_map(|one| one.id) {
            if !listed.has(number) {
                let request = Request::get(format!("/v1/images/{number}"));
                match self.http.read::<schema::ImageResponse>(&request).await {
                    Ok(schema::ImageResponse { image }) => {
                        request.about(&number, &image.id)?;
                        listed.0.push(snapshot(image));
                    }
                    Err(ProviderError::NotFound(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(listed.of(lookup.of, lookup.hibernation))
    }

    /// Reports whether an action has ended in an error. An action that is not found proves nothing.
    async fn has_failed(&self, action: Option<ActionId>) -> Result<bool, ProviderError> {
        let Some(ActionId(id)) = action else {
            return Ok(false);
        };
        let request = Request::get(format!("/v1/actions/{id}"));
        match self.http.read::<schema::ActionResponse>(&request).await {
            Ok(schema::ActionResponse { action }) => {
                request.about(&id, &action.id)?;
                Ok(matches!(action.status, schema::ActionStatus::Error))
            }
            Err(ProviderError::NotFound(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Drops from a server to be created what the project no longer has.
    pub(crate) async fn drop_missing(
        &self,
        made: &mut Manifest,
        ssh_key: Option<&str>,
    ) -> Result<(), ProviderError> {
        replace_key(&mut made.ssh_key, &self.ssh_keys().await?, ssh_key);
        let http = &self.http;
        let (volumes, firewalls) = (&mut made.volumes, &mut made.firewalls);
        http.retain_existing("/v1/volumes", volumes).await?;
        http.retain_existing("/v1/firewalls", firewalls).await?;
        for address in &mut made.addresses {
            if !http.exists(format!("/v1/primary_ips/{}", address.id)).await? {
                address.id.clear();
            }
        }
        if let Some(group) = &made.placement_group
            && !http.exists(format!("/v1/placement_groups/{group}")).await?
        {
            made.placement_group = None;
        }
        Ok(())
    }

    async fn attachment_lists(&self) -> Result<AttachmentLists, ProviderError> {
        let addresses = self.all::<schema::PrimaryIp>("/v1/primary_ips").await?;
        let kept = addresses.into_iter().filter(|one| !one.auto_delete);
        Ok(AttachmentLists {
            kept: kept.map(|one| one.id).collect(),
            balancers: self.all("/v1/load_balancers").await?,
        })
    }

    async fn all<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<Vec<T>, ProviderError> {
        let page = async |number| self.page::<T>(path, number).await;
        let all = pages::all(Reading::UNTIMED, page).await?;
        Ok(all.items.into_iter().map(|(_, item)| item).collect())
    }

    /// Fetches one server with its attached resources; `None` if the cloud does not know it.
    async fn with_attachments(
        &self,
        id: &ResourceId,
    ) -> Result<Option<schema::ServerWithAttachments>, ProviderError> {
        let number = server_id(id)?;
        let request = Request::get(format!("/v1/servers/{number}"));
        match self.http.read::<schema::ServerWithAttachmentsResponse>(&request).await {
            Ok(schema::ServerWithAttachmentsResponse { server }) => {
                request.about(&number.0, &server.server.id)?;
                Ok(Some(server))
            }
            Err(ProviderError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Without `attachments`, the body has no manifest: the attached resources are not fully known.
    fn body(
        &self,
        whole: schema::ServerWithAttachments,
        attachments: Option<&AttachmentLists>,
    ) -> ObservedMachine {
        let id = whole.server.id;
        let public = whole.public_net;
        let mut addresses = Vec::new();
        let mut unkept = Vec::new();
        // An address without a number is not one that a new server could be given.
        let mut all_numbered = true;
        for (is_ipv6, address) in [(false, public.ipv4), (true, public.ipv6)] {
            let Some(address) = address else { continue };
            let Some(number) = address.id else {
                all_numbered = false;
                continue;
            };
            let id = number.to_string();
            if attachments.is_some_and(|all| !all.kept.contains(&number)) {
                unkept.push(id.clone());
            }
            addresses.push(KeptAddress { id, ip: address.ip, is_ipv6 });
        }
        let settling = public.firewalls.iter().any(|one| one.status == "pending");
        let numbers = |ids: Vec<u64>| ids.into_iter().map(|id| id.to_string()).collect();
        let balancers = attachments.into_iter().flat_map(|attachments| &attachments.balancers);
        let balancers = balancers.filter_map(|one| one.target(id));
        let load_balancers = balancers.collect();
        let resource = self.server(whole.server);
        let own = |tag: &&String| !is_ours(tag);
        let size = match &resource.size {
            Size::Machine(size) => size.clone(),
            Size::Database(_) | Size::NodePool(_) => MachineSize::default(),
        };
        let manifest = Manifest {
            name: resource.name.clone(),
            region: resource.region.clone(),
            tags: resource.tags.iter().filter(own).cloned().collect(),
            size,
            // Nothing shows which key a server was created with.
            ssh_key: String::new(),
            addresses,
            networks: whole.private_net.into_iter().map(network).collect(),
            volumes: numbers(whole.volumes),
            firewalls: numbers(public.firewalls.into_iter().map(|one| one.id).collect()),
            load_balancers,
            floating_ips: numbers(public.floating_ips),
            placement_group: whole.placement_group.map(|group| group.id.to_string()),
            backups: whole.backup_window.is_some(),
            ..Manifest::default()
        };
        ObservedMachine {
            mark: mark_in(&resource.tags),
            made_from: whole.image.map(|image| image.id),
            resource,
            manifest: attachments.filter(|_| all_numbered).map(|_| manifest),
            unkept,
            settling,
        }
    }

    /// Sends one of the requests that hibernate or wake a server.
    pub(super) async fn hibernate(
        &self,
        id: &ResourceId,
        what: &Hibernate,
    ) -> Result<Accepted, ProviderError> {
        let request = request(id, what)?;
        let answer = self.http.send(&request).await?;
        let begun: schema::CreateResponse = parse(&request, &answer)?;
        Ok(Accepted {
            action: begun.action.map(|action| ActionId(action.id)),
            made: begun.image.or(begun.server).map(|made| made.id),
        })
    }
}

fn request(id: &ResourceId, what: &Hibernate) -> Result<Request, ProviderError> {
    let server = server_id(id)?.0;
    Ok(match what {
        Hibernate::KeepAddress { address } => {
            let path = format!("/v1/primary_ips/{address}");
            Request::put(path, &json!({"auto_delete": false}))
        }
        Hibernate::Snapshot(label) => {
            let path = format!("/v1/servers/{server}/actions/create_image");
            let description = format!("offhours {} {}", of_label(&label.of), label.mark);
            let labels: BTreeMap<_, _> = labels_of(label).into();
            let body = json!({"type": "snapshot", "description": description, "labels": labels});
            Request::post_json(path, &body)
        }
        Hibernate::Protect { snapshot, on } => {
            let path = format!("/v1/images/{snapshot}/actions/change_protection");
            Request::post_json(path, &json!({"delete": on}))
        }
        Hibernate::Delete => Request::delete(format!("/v1/servers/{server}")),
        Hibernate::Create { label, snapshot, manifest } => {
            Request::post_json("/v1/servers", &Order::of(label, *snapshot, manifest))
        }
        Hibernate::Attach(what) => {
            attach(server, what).ok_or_else(|| ProviderError::foreign(id))?
        }
        Hibernate::DeleteSnapshot { snapshot } => Request::delete(format!("/v1/images/{snapshot}")),
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
                enable_ipv4: ipv4.is_some(),
                enable_ipv6: ipv6.is_some(),
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

fn labels_of(label: &Label) -> [(&'static str, String); 2] {
    [(OF_LABEL, of_label(&label.of)), (MARK_LABEL, label.mark.to_string())]
}

/// Reports whether a label is one that we set on what we create.
fn is_ours(tag: &str) -> bool {
    let key = tag.split_once('=').map_or(tag, |(key, _)| key);
    key == OF_LABEL || key == MARK_LABEL
}

fn mark_in(tags: &BTreeSet<String>) -> Option<Mark> {
    let mut pairs = tags.iter().filter_map(|tag| tag.split_once('='));
    let mark = pairs.find(|(key, _)| *key == MARK_LABEL);
    mark.map(|(_, mark)| Mark(mark.to_owned()))
}

fn network(net: schema::PrivateNet) -> NetworkAddress {
    NetworkAddress { network: net.network.to_string(), ip: net.ip, alias_ips: net.alias_ips }
}

fn snapshot(image: schema::Image) -> ListedSnapshot {
    let label = |key: &str| image.labels.get(key);
    let of = label(OF_LABEL).cloned();
    let mark = label(MARK_LABEL).cloned().map(Mark);
    let opted_out = label("offhours").is_some_and(|word| word.eq_ignore_ascii_case("off"));
    let from = image.created_from.map(|from| ResourceId::Server(ServerId(from.id)));
    let seen = SeenSnapshot {
        id: image.id,
        mark,
        from,
        state: match image.status.as_str() {
            "creating" => SnapshotState::Creating,
            "available" => SnapshotState::Available,
            "unavailable" => SnapshotState::Failed,
            _ => SnapshotState::Unknown,
        },
        created_at: Some(image.created),
        centi_gb: image.size.map_or(0, |size| hundredths(&size)),
        disk_gib: image.disk_size,
        architecture: image.architecture.clone(),
        regions: None,
        protected: Some(image.protection.delete),
        opted_out,
    };
    ListedSnapshot { of, seen }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_not_known_says_neither_complete_nor_failed() {
        let state = |word: &str| {
            let image = json!({
                "id": 7, "status": word, "created": "2026-11-23T19:00:00Z", "disk_size": 80,
                "image_size": 4.5, "labels": {}, "protection": {"delete": true},
            });
            snapshot(serde_json::from_value(image).unwrap()).seen.state
        };
        assert_eq!(state("creating"), SnapshotState::Creating);
        assert_eq!(state("available"), SnapshotState::Available);
        assert_eq!(state("unavailable"), SnapshotState::Failed);
        assert_eq!(state("archived"), SnapshotState::Unknown);
    }
}
