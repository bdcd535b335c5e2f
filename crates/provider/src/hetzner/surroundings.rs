//! A server's surroundings, all of which the server itself shows (HZSPEC).

use domain::hibernation::{Address, PrivateAddress, SshKey, Surroundings};

use super::schema;
use crate::attachments::Preflight;

/// A request names a key by its name or by its number (HZSPEC).
pub(super) fn ssh_key(key: schema::Named) -> SshKey {
    SshKey { sent_as: key.name.clone(), name: key.name }
}

impl schema::ServerWithAttachments {
    /// Both kinds of public address can be kept, and any address in a network can be requested.
    pub(super) fn surroundings(&self, preflight: &Preflight) -> Surroundings {
        let public = [&self.public_net.ipv4, &self.public_net.ipv6];
        let private = self.private_net.iter();
        let private = private.flat_map(|net| [&net.ip].into_iter().chain(&net.alias_ips));
        let numbered = |what: &'static str, ids: &[u64]| -> Vec<_> {
            ids.iter().map(|id| format!("{what} {id}")).collect()
        };
        let firewalls: Vec<_> = self.public_net.firewalls.iter().map(|one| one.id).collect();
        let group = self.placement_group.as_ref();
        let group = group.map(|group| format!("placement group {}", group.name));
        let attached = [
            numbered("volume", &self.volumes),
            numbered("firewall", &firewalls),
            numbered("load balancer", &self.load_balancers),
            numbered("floating IP", &self.public_net.floating_ips),
            Vec::from_iter(group),
        ];
        Surroundings {
            addresses: public
                .into_iter()
                .flatten()
                .map(|address| Address {
                    ip: address.ip.clone(),
                    // Only an address with a number can be given to the new server.
                    stays: address.id.is_some(),
                    blocked: address.blocked,
                })
                .collect(),
            private: private.map(|ip| PrivateAddress { ip: ip.clone(), stays: true }).collect(),
            attached: attached.concat(),
            backups: self.backup_window.is_some(),
            ssh_keys: preflight.ssh_keys.clone(),
            ..Surroundings::default()
        }
    }
}
