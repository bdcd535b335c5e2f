//! Builders of records that read as sentences, for tests: all around Monday, 23 November 2026, in UTC.

use std::collections::BTreeSet;

use domain::{
    ResourceRef, ScheduleName,
    hibernation::{Hibernation, KeptAddress, KeptSnapshot, Manifest, Mark, NetworkAddress},
    record::{Ask, Cause, Direction, Forced, Observed, Phase, Record, Request, Transition},
    resource::{
        AutoscaleBounds, Cluster, DatabaseSize, MachineSize, NodePoolSize, Power, Resource,
        SavedState, Size,
    },
    schedule::Desired,
    step::Step,
    stop_method::StopMethod,
};
use jiff::{SignedDuration, Timestamp};

use crate::history::{self, handled};

#[must_use]
pub fn monday(time: &str) -> Timestamp {
    format!("2026-11-23T{time}Z").parse().unwrap()
}

fn resource(reference: &ResourceRef, name: &str, tags: &[&str], size: Size) -> Resource {
    Resource {
        name: name.to_owned(),
        tags: texts(tags),
        region: "fra1".to_owned(),
        size,
        ..history::machine(&reference.id, Power::Running)
    }
}

fn texts(texts: &[&str]) -> BTreeSet<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

/// The record of a resource after a first inventory at 09:00.
fn seen(reference: &str, resource: impl FnOnce(&ResourceRef) -> Resource) -> Record {
    let reference: ResourceRef = reference.parse().unwrap();
    let resource = resource(&reference);
    let mut record = Record::first_seen(reference, &resource);
    record.observed = Some(Observed {
        power: resource.power,
        size: resource.size.to_save(),
        busy: None,
        at: monday("09:00:00"),
    });
    record
}

#[must_use]
pub fn machine(reference: &str, name: &str, tags: &[&str]) -> Record {
    let plan = "s-1vcpu-1gb".to_owned();
    let size = Size::Machine(MachineSize { plan, ..MachineSize::default() });
    seen(reference, |reference| resource(reference, name, tags, size))
}

#[must_use]
pub fn database(reference: &str, name: &str, tags: &[&str]) -> Record {
    let size = Size::Database(DatabaseSize {
        engine: "pg".to_owned(),
        plan: "db-s-2vcpu-4gb".to_owned(),
        nodes: 2,
        storage_mib: None,
    });
    seen(reference, |reference| resource(reference, name, tags, size))
}

/// Three nodes, autoscaled, in the cluster `staging`.
#[must_use]
pub fn pool(reference: &str, name: &str, cluster_tags: &[&str]) -> Record {
    let size = Size::NodePool(NodePoolSize {
        plan: "s-2vcpu-4gb".to_owned(),
        count: 3,
        autoscale: Some(AutoscaleBounds { min: 1, max: 6 }),
        present: 3,
        ready: 3,
        labels: "{}".to_owned(),
        taints: "[]".to_owned(),
    });
    seen(reference, |reference| Resource {
        cluster: Some(Cluster { name: "staging".to_owned(), tags: texts(cluster_tags) }),
        ..resource(reference, name, &[], size)
    })
}

/// A Droplet that follows `office`.
#[must_use]
pub fn web() -> Record {
    let mut record = machine("do-main/droplet/1", "web", &["offhours:office"]);
    record.opted_in = true;
    record.schedule = Some(office());
    record
}

#[must_use]
pub fn office() -> ScheduleName {
    "office".parse().unwrap()
}

#[must_use]
pub fn transition(direction: Direction, since: Timestamp) -> Transition {
    Transition {
        target: None,
        method: StopMethod::Graceful,
        forced: false,
        was_running: false,
        direction,
        claimed_at: since,
        cause: Cause::Schedule,
        schedule: Some(office()),
    }
}

/// A stop request that was permitted and last observed at this instant.
#[must_use]
pub fn request(at: Timestamp, ask: Ask) -> Request {
    Request {
        direction: Direction::Stop,
        asked_at: at,
        looked_at: at,
        ask,
        earlier_unanswered: false,
        forced: Forced::No,
        effect_timeout: None,
        first_accepted_at: None,
        step: Step::Off { gracefully: false },
        created_machine: None,
        problem: None,
    }
}

/// A resource that handled a stop edge, is held stopped, and is no longer covered by any schedule.
#[must_use]
pub fn orphan() -> Record {
    let handled = handled(monday("08:00:00"), Desired::Stopped, "office");
    Record {
        phase: Phase::Settled { at: Power::Stopped },
        handled: Some(handled),
        ..machine("do-main/droplet/8", "orphan", &[])
    }
}

#[must_use]
pub fn saved() -> SavedState {
    SavedState::Database { plan: "db-s-4vcpu-8gb".to_owned(), nodes: 2, storage_mib: None }
}

/// A hibernated server that follows `office`. It is recreated from the second of its two snapshots;
/// the first is proven.
#[must_use]
pub fn asleep() -> Record {
    let mut record = machine("hz-eu/server/42", "build", &["offhours=office"]);
    let snapshot = |id: u64, mark: &str, proven_at| KeptSnapshot {
        id: Some(id),
        centi_gb: Some(450),
        proven_at,
        ..KeptSnapshot::of(record.reference.id.clone(), Mark(mark.to_owned()), monday("06:00:00"))
    };
    let snapshots = vec![snapshot(8, "two", None), snapshot(7, "one", Some(monday("05:00:00")))];
    let address = |id: &str, ip: &str| KeptAddress {
        id: id.to_owned(),
        ip: ip.to_owned(),
        is_ipv6: ip.contains(':'),
    };
    record.hibernation = Some(Box::new(Hibernation {
        present: None,
        wake_from: Some(Mark("two".to_owned())),
        manifest: Some(Manifest {
            name: "build".to_owned(),
            region: "fsn1".to_owned(),
            tags: texts(&["offhours=office", "owner=the team"]),
            size: MachineSize { plan: "cpx22".to_owned(), ..MachineSize::default() },
            ssh_key: "team".to_owned(),
            addresses: vec![address("5", "203.0.113.7")],
            networks: vec![NetworkAddress {
                network: "7".to_owned(),
                ip: "10.0.0.9".to_owned(),
                alias_ips: vec!["10.0.0.10".to_owned()],
            }],
            volumes: texts(&["8"]),
            floating_ips: texts(&["6"]),
            placement_group: Some("3".to_owned()),
            backups: true,
            ..Manifest::default()
        }),
        snapshots,
        lead: Some(SignedDuration::from_mins(25)),
        ..Hibernation::of(record.reference.id.clone())
    }));
    Record {
        phase: Phase::Settled { at: Power::Stopped },
        handled: Some(handled(monday("06:00:00"), Desired::Stopped, "office")),
        opted_in: true,
        schedule: Some(office()),
        ..record
    }
}
