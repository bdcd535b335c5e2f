//! The scopes that requests need, and which of them a token lacks for hibernating Droplets, as far
//! as reading shows (DOSPEC).

use domain::{Family, ResourceKind, hibernation::Attachment, resource::SavedState, step::Step};
use serde::de::IgnoredAny;

use super::Api;
use crate::{cloud::MissingScope, error::ProviderError, http::Request};

/// Returns the scope that listing a kind needs, and reading one of it.
pub(super) fn to_read(kind: ResourceKind) -> &'static str {
    match kind.family() {
        Family::CloudMachine => "the scope droplet:read",
        Family::Database => "the scope database:read",
        Family::NodePool => "the scope kubernetes:read",
        Family::OwnMachine => "a scope",
    }
}

/// Returns the scopes that a step needs.
pub(super) fn to_send(step: &Step) -> &'static str {
    match step {
        Step::Off { .. } | Step::On { .. } => "the scope droplet:update",
        Step::Resize(SavedState::Machine(_)) => {
            "one of the scopes droplet:update and droplet:create"
        }
        Step::Resize(SavedState::Database { .. }) => "the scope database:update",
        Step::Resize(SavedState::NodePool { .. }) => "the scope kubernetes:update",
        Step::Snapshot(_) => "one of the scopes droplet:update and image:create",
        Step::Delete => "the scope droplet:delete",
        Step::RemoveSnapshot(_) => "one of the scopes image:delete and snapshot:delete",
        Step::Attach(what) => to_attach(what),
        // Its tags are created with it.
        Step::Create { .. } => "one of the scopes droplet:create and tag:create",
        Step::KeepAddress(_) | Step::Protect { .. } => "a scope",
    }
}

fn to_attach(what: &Attachment) -> &'static str {
    match what {
        Attachment::Firewall(_) => "the scope firewall:update",
        Attachment::LoadBalancer(_) => "the scope load_balancer:update",
        Attachment::FloatingIp(_) => "the scope reserved_ip:update",
        Attachment::Volume(_) => "the scope block_storage_action:create",
        Attachment::Project(_) => "the scope project:assign_resource",
        Attachment::Backups(_) => "the scope droplet:update",
        Attachment::Address(_)
        | Attachment::Network(_)
        | Attachment::PlacementGroup(_)
        | Attachment::Vpc(_) => "a scope",
    }
}

/// For each scope: a small request that needs it, its name, and what hibernation reads with it.
const READS: [(&str, &str, &str); 17] = [
    ("/v2/droplets?per_page=1", "droplet:read", "Droplets"),
    ("/v2/tags?per_page=1", "tag:read", "tags"),
    ("/v2/account", "account:read", "how many Droplets there may be"),
    ("/v2/account/keys?per_page=1", "ssh_key:read", "SSH keys"),
    ("/v2/actions?per_page=1", "actions:read", "what became of a creation"),
    ("/v2/snapshots?per_page=1", "snapshot:read", "snapshots"),
    ("/v2/images?per_page=1", "image:read", "whether a snapshot is complete"),
    ("/v2/volumes?per_page=1", "block_storage:read", "volumes"),
    ("/v2/vpcs?per_page=1", "vpc:read", "VPCs"),
    ("/v2/firewalls?per_page=1", "firewall:read", "firewalls"),
    ("/v2/load_balancers?per_page=1", "load_balancer:read", "load balancers"),
    ("/v2/reserved_ips?per_page=1", "reserved_ip:read", "reserved addresses"),
    // The list is not paginated (DOSPEC).
    ("/v2/databases", "database:read", "databases that let Droplets in"),
    ("/v2/projects?per_page=1", "project:read", "projects"),
    ("/v2/monitoring/alerts?per_page=1", "monitoring:read", "alert policies"),
    ("/v2/regions?per_page=1", "regions:read", "regions"),
    (SIZES, "sizes:read", "which sizes can be ordered"),
];

/// Needs the scope for regions as well, so a refusal proves nothing if that scope is missing.
const SIZES: &str = "/v2/sizes?per_page=1";

impl Api {
    /// Changes nothing. If at most one request is not refused, the token itself may be refused, so
    /// the refusal is returned as the error.
    pub(super) async fn try_scopes(&self) -> Result<Vec<MissingScope>, ProviderError> {
        let mut missing: Vec<MissingScope> = Vec::new();
        let mut refused = None;
        for (path, scope, reads) in READS {
            let lacks_regions = missing.iter().any(|one| one.scope == "regions:read");
            if path == SIZES && lacks_regions {
                continue;
            }
            match self.0.read::<IgnoredAny>(&Request::get(path)).await {
                Ok(_) => {}
                Err(error) if error.is_about_token() => {
                    missing.push(MissingScope { scope, reads });
                    refused = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        match refused {
            Some(error) if missing.len() + 1 >= READS.len() => Err(error),
            Some(_) | None => Ok(missing),
        }
    }
}
