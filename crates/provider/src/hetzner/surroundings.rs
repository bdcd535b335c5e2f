//! What is around a server: all of it is on the server itself (HZSPEC).

use domain::{
    ResourceId,
    hibernation::{Address, PrivateAddress, Surroundings},
};
use serde::{Deserialize, de::IgnoredAny};

use super::{Api, server_id};
use crate::{
    error::ProviderError,
    http::{Request, null_is_empty},
    pages::{self, Reading},
};

#[derive(Deserialize)]
struct Found {
    server: Server,
}

#[derive(Deserialize)]
struct Server {
    id: u64,
    public_net: PublicNet,
    #[serde(default, deserialize_with = "null_is_empty")]
    private_net: Vec<PrivateNet>,
    #[serde(default, deserialize_with = "null_is_empty")]
    volumes: Vec<u64>,
    #[serde(default, deserialize_with = "null_is_empty")]
    load_balancers: Vec<u64>,
    placement_group: Option<Named>,
    backup_window: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct PublicNet {
    ipv4: Option<PublicAddress>,
    ipv6: Option<PublicAddress>,
    #[serde(default, deserialize_with = "null_is_empty")]
    floating_ips: Vec<u64>,
    #[serde(default, deserialize_with = "null_is_empty")]
    firewalls: Vec<Numbered>,
}

#[derive(Deserialize)]
struct PublicAddress {
    ip: String,
    blocked: bool,
}

#[derive(Deserialize)]
struct PrivateNet {
    ip: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    alias_ips: Vec<String>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
struct Numbered {
    id: u64,
}

impl Api {
    /// Both kinds of public address can be kept, and any address in a network can be asked for.
    pub(crate) async fn surroundings(
        &self,
        id: &ResourceId,
    ) -> Result<Surroundings, ProviderError> {
        let number = server_id(id)?;
        let request = Request::get(format!("/v1/servers/{number}"));
        let Found { server } = self.http.read(&request).await?;
        request.about(&number.0, &server.id)?;
        let page = async |number| self.page::<Named>("/v1/ssh_keys", number).await;
        let keys = pages::all(Reading::UNTIMED, page).await?;
        let public = [server.public_net.ipv4, server.public_net.ipv6];
        let private = server.private_net.into_iter();
        let private = private.flat_map(|net| [net.ip].into_iter().chain(net.alias_ips));
        let numbered = |what: &'static str, ids: Vec<u64>| {
            ids.into_iter().map(move |id| format!("{what} {id}"))
        };
        let firewalls = server.public_net.firewalls.into_iter();
        let firewalls = firewalls.map(|one| one.id).collect();
        let group = server.placement_group;
        Ok(Surroundings {
            addresses: public
                .into_iter()
                .flatten()
                .map(|address| Address {
                    ip: address.ip,
                    stays: true,
                    blocked: address.blocked,
                })
                .collect(),
            private: private
                .map(|ip| PrivateAddress { ip, stays: true })
                .collect(),
            attached: numbered("volume", server.volumes)
                .chain(numbered("firewall", firewalls))
                .chain(numbered("load balancer", server.load_balancers))
                .chain(numbered("floating IP", server.public_net.floating_ips))
                .chain(group.map(|group| format!("placement group {}", group.name)))
                .collect(),
            backups: server.backup_window.is_some(),
            ssh_keys: keys.items.into_iter().map(|(_, key)| key.name).collect(),
            ..Surroundings::default()
        })
    }
}
