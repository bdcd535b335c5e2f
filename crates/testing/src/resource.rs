//! A resource as a client sees it, of which only the id matters.

use std::collections::BTreeSet;

use domain::{
    ResourceId, ResourceKind,
    resource::{DatabaseSize, MachineFacts, MachineSize, NodePoolSize, Power, Resource, Size},
};

/// Returns a running resource with this id, and with nothing else of its own.
#[must_use]
pub fn seen(id: ResourceId) -> Resource {
    let size = match id.kind() {
        ResourceKind::Droplet | ResourceKind::Server | ResourceKind::Machine => {
            Size::Machine(MachineSize::default())
        }
        ResourceKind::Database => Size::Database(DatabaseSize {
            engine: "pg".to_owned(),
            plan: "db-s-2vcpu-4gb".to_owned(),
            nodes: 1,
            storage_mib: None,
        }),
        ResourceKind::NodePool => Size::NodePool(NodePoolSize {
            plan: "s-2vcpu-4gb".to_owned(),
            count: 1,
            autoscale: None,
            present: 1,
            ready: 1,
            labels: "{}".to_owned(),
            taints: "[]".to_owned(),
        }),
    };
    Resource {
        id,
        name: "web".to_owned(),
        cluster: None,
        tags: BTreeSet::new(),
        region: "fra1".to_owned(),
        power: Power::Running,
        busy: None,
        size,
        facts: MachineFacts::default(),
        unsupported: None,
    }
}
