//! A server's surroundings, all of which the server itself shows (HZSPEC).

use domain::{
    ResourceId,
    hibernation::{Address, PrivateAddress, SshKey, Surroundings},
};

use super::{Api, schema, server_id};
use crate::{
    error::ProviderError,
    http::Request,
    pages::{self, Reading},
};

/// A request names a key by its name or by its number (HZSPEC).
fn ssh_key(key: schema::Named) -> SshKey {
    SshKey { sent_as: key.name.clone(), name: key.name }
}

impl Api {
    pub(super) async fn ssh_keys(&self) -> Result<Vec<SshKey>, ProviderError> {
        let page = async |number| self.page::<schema::Named>("/v1/ssh_keys", number).await;
        let keys = pages::all(Reading::UNTIMED, page).await?;
        Ok(keys.items.into_iter().map(|(_, key)| ssh_key(key)).collect())
    }

    /// Both kinds of public address can be kept, and any address in a network can be requested.
    pub(super) async fn read_surroundings(
        &self,
        id: &ResourceId,
    ) -> Result<Surroundings, ProviderError> {
        let number = server_id(id)?;
        let request = Request::get(format!("/v1/servers/{number}"));
        let schema::ServerWithAttachmentsResponse { server } = self.http.read(&request).await?;
        request.about(&number.0, &server.server.id)?;
        let ssh_keys = self.ssh_keys().await?;
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
                    // Only an address with a number can be given to the new server.
                    stays: address.id.is_some(),
                    blocked: address.blocked,
                })
                .collect(),
            private: private.map(|ip| PrivateAddress { ip, stays: true }).collect(),
            attached: numbered("volume", server.volumes)
                .chain(numbered("firewall", firewalls))
                .chain(numbered("load balancer", server.load_balancers))
                .chain(numbered("floating IP", server.public_net.floating_ips))
                .chain(group.map(|group| format!("placement group {}", group.name)))
                .collect(),
            backups: server.backup_window.is_some(),
            ssh_keys,
            ..Surroundings::default()
        })
    }
}
