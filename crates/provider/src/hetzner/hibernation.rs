//! Servers kept as snapshots, observed (HZSPEC).

use domain::{
    ResourceId, ServerId,
    hibernation::{
        KeptAddress, MARK_LABEL, Manifest, Mark, NetworkAddress, OF_LABEL, ObservedMachine, Origin,
        SeenSnapshot, Sight, SnapshotState, SshKey, is_own_label, of_label,
    },
    resource::{ActionId, MachineSize, Size},
};

use super::{Api, schema, server_id, step::prefix, surroundings::ssh_key};
use crate::{
    attachments::{Attachments, Preflight},
    cloud::Hibernates,
    error::ProviderError,
    hibernation_lookup::{
        HibernationLookup, ListedSnapshot, ListedSnapshots, Lists, hundredths, replace_key,
    },
    http::Request,
    pages::{self, Reading},
};

impl Hibernates for Api {
    async fn snapshots(&self) -> Result<ListedSnapshots, ProviderError> {
        let images = self.all("/v1/images?type=snapshot").await?;
        Ok(ListedSnapshots(images.into_iter().map(snapshot).collect()))
    }

    /// Servers themselves show the rest.
    async fn attachments(&self) -> Result<Attachments, ProviderError> {
        let addresses: Vec<schema::PrimaryIp> = self.all("/v1/primary_ips").await?;
        let kept = addresses.into_iter().filter(|one| !one.auto_delete);
        let balancers: Vec<schema::LoadBalancer> = self.all("/v1/load_balancers").await?;
        let things = balancers.iter().flat_map(schema::LoadBalancer::things);
        Ok(Attachments {
            things: things.collect(),
            kept_addresses: kept.map(|one| one.id).collect(),
            ..Attachments::default()
        })
    }

    async fn preflight(&self) -> Result<Preflight, ProviderError> {
        Ok(Preflight { ssh_keys: self.ssh_keys().await?, ..Preflight::default() })
    }

    async fn machine(
        &self,
        id: &ResourceId,
        lists: Lists<'_>,
    ) -> Result<Option<ObservedMachine>, ProviderError> {
        let whole = self.with_attachments(id).await?;
        Ok(whole.map(|whole| self.body(whole, lists)))
    }

    /// Reads the machine after its snapshots and attached resources, so that conclusions rest on
    /// its latest state.
    async fn inspect(&self, lookup: HibernationLookup<'_>) -> Result<Sight, ProviderError> {
        let snapshots = self.snapshots_of(lookup).await?;
        let labeled = format!("/v1/servers?label_selector={OF_LABEL}%3D%3D{}", of_label(lookup.of));
        let mut others: Vec<schema::ServerWithAttachments> = self.all(&labeled).await?;
        let machine = match lookup.present {
            Some(id) => self.machine(id, lookup.lists).await?,
            None => None,
        };
        if machine.is_none() && !lookup.name.is_empty() {
            let named = format!("/v1/servers?name={}", lookup.name);
            others.extend(self.all::<schema::ServerWithAttachments>(&named).await?);
        }
        if let Some(made) = lookup.made {
            others.extend(self.with_attachments(made).await?);
        }
        let create_failed = self.has_failed(lookup.making).await?;
        let others = others.into_iter().map(|whole| self.body(whole, lookup.lists));
        Ok(Sight { machine, snapshots, others: others.collect(), create_failed }.distinct())
    }

    async fn drop_missing(
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
}

impl Api {
    async fn ssh_keys(&self) -> Result<Vec<SshKey>, ProviderError> {
        let keys: Vec<schema::Named> = self.all("/v1/ssh_keys").await?;
        Ok(keys.into_iter().map(ssh_key).collect())
    }

    async fn snapshots_of(
        &self,
        lookup: HibernationLookup<'_>,
    ) -> Result<Vec<SeenSnapshot>, ProviderError> {
        let mut listed = lookup.snapshots.clone();
        let known = lookup.hibernation.map_or(&[][..], |known| &known.snapshots);
        for number in known.iter().filter_map(|one| one.id) {
            if !listed.has(number) {
                let request = Request::get(format!("/v1/images/{number}"));
                let read = self.http.read(&request).await;
                if let Some(schema::ImageResponse { image }) = ProviderError::found(read)? {
                    request.about(&number, &image.id)?;
                    listed.0.push(snapshot(image));
                }
            }
        }
        Ok(listed.of_machine(lookup.of, lookup.hibernation))
    }

    /// Reports whether an action has ended in an error. An action that is not found proves nothing.
    async fn has_failed(&self, action: Option<ActionId>) -> Result<bool, ProviderError> {
        let Some(ActionId(id)) = action else {
            return Ok(false);
        };
        let request = Request::get(format!("/v1/actions/{id}"));
        let read = self.http.read(&request).await;
        let Some(schema::ActionResponse { action }) = ProviderError::found(read)? else {
            return Ok(false);
        };
        request.about(&id, &action.id)?;
        Ok(matches!(action.status, schema::ActionStatus::Error))
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
        let read = self.http.read::<schema::ServerWithAttachmentsResponse>(&request).await;
        let server = ProviderError::found(read)?.map(|read| read.server);
        server.iter().try_for_each(|server| request.about(&number.0, &server.server.id))?;
        Ok(server)
    }

    /// Without attachments, the body has no manifest: the attached resources are not fully known.
    fn body(&self, whole: schema::ServerWithAttachments, lists: Lists<'_>) -> ObservedMachine {
        let around = lists.preflight.map(|preflight| whole.surroundings(preflight));
        let attachments = lists.attachments;
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
            if attachments.is_some_and(|all| !all.kept_addresses.contains(&number)) {
                unkept.push(id.clone());
            }
            addresses.push(KeptAddress { id, ip: address.ip, is_ipv6 });
        }
        let settling = public.firewalls.iter().any(|one| one.status == "pending");
        let numbers = |ids: Vec<u64>| ids.into_iter().map(|id| id.to_string()).collect();
        let resource = self.server(whole.server);
        let own = |tag: &&String| !is_own_label(tag);
        let size = match &resource.size {
            Size::Machine(size) => size.clone(),
            Size::Database(_) | Size::NodePool(_) => MachineSize::default(),
        };
        let mut manifest = Manifest {
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
            floating_ips: numbers(public.floating_ips),
            placement_group: whole.placement_group.map(|group| group.id.to_string()),
            backups: whole.backup_window.is_some(),
            ..Manifest::default()
        };
        if let Some(attachments) = attachments {
            attachments.add_to(&mut manifest, id);
        }
        ObservedMachine {
            mark: Mark::in_tags(&resource.tags),
            made_from: whole.image.map(|image| image.id),
            resource,
            manifest: attachments.filter(|_| all_numbered).map(|_| manifest),
            around,
            unkept,
            settling,
        }
    }
}

fn network(net: schema::PrivateNet) -> NetworkAddress {
    NetworkAddress { network: net.network.to_string(), ip: net.ip, alias_ips: net.alias_ips }
}

fn snapshot(image: schema::Image) -> ListedSnapshot {
    let label = |key: &str| image.labels.get(key);
    let of = label(OF_LABEL).cloned();
    let mark = label(MARK_LABEL).cloned().map(Mark);
    let opted_out = label("offhours").is_some_and(|word| word.eq_ignore_ascii_case("off"));
    // Behind its prefix, a copy of which a person may have given another image.
    let text = of.as_ref().zip(mark.as_ref()).and_then(|(of, mark)| {
        let text = image.description.strip_prefix(&prefix(of, &mark.0))?;
        text.strip_prefix(' ')
    });
    let origin = text.and_then(Origin::parse);
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
    ListedSnapshot { of, origin, made_at: image.created, seen }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
