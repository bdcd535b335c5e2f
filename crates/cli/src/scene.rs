//! Readable builders of records, configurations and clouds for tests.
//!
//! Everything happens around Monday, 23 November 2026.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use cloud_simulator::Simulator;
use domain::{
    ResourceRef, ScheduleName,
    configuration::{Configuration, Generation, Override, Overrides},
    hibernation::{Hibernation, KeptAddress, KeptSnapshot, Manifest, Mark, NetworkAddress},
    record::{Cause, Direction, Observed, Phase, Record, Request, Transition},
    resource::{
        AutoscaleBounds, Cluster, DatabaseSize, MachineSize, NodePoolSize, Power, Resource,
        SavedState, Size,
    },
    schedule::Desired,
    step::Step,
    stop_method::StopMethod,
};
use environment::{Clock, SteppedClock};
use jiff::{SignedDuration, Timestamp};
use lifecycle::{Access, Providers};
use local::clouds::Clouds;
use store::{Head, InForce};

use crate::{configuration_file, doctor::store::StoreContents, fixtures::handled};

/// Two accounts, and the schedule `office`: Monday to Friday, 08:00 to 18:00 UTC.
pub(crate) const OFFICE: &str = r#"
protect = ["name:*prod*"]
accounts.do-main = { provider = "digitalocean", token = "env:DO" }
accounts.hz-eu = { provider = "hetzner", token = "env:HZ" }
[schedules.office]
timezone = "UTC"
periods = [{ weekdays = "mon-fri", begin = "08:00", end = "18:00" }]
"#;

pub(crate) fn monday(time: &str) -> Timestamp {
    format!("2026-11-23T{time}Z").parse().unwrap()
}

pub(crate) fn configuration(toml: &str) -> Configuration {
    let mut parsed = configuration_file::parse(toml, "test.toml").unwrap();
    parsed.configuration.generation = Generation(1);
    parsed.configuration
}

pub(crate) fn in_force(toml: &str) -> InForce {
    InForce {
        configuration: Arc::new(configuration(toml)),
        overrides: Overrides::default(),
        since: None,
    }
}

pub(crate) fn with_overrides(toml: &str, overrides: impl IntoIterator<Item = Override>) -> InForce {
    InForce { overrides: overrides.into_iter().collect(), ..in_force(toml) }
}

fn resource(reference: &ResourceRef, name: &str, tags: &[&str], size: Size) -> Resource {
    Resource {
        name: name.to_owned(),
        tags: texts(tags),
        region: "fra1".to_owned(),
        size,
        ..testing::history::machine(&reference.id, Power::Running)
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

pub(crate) fn machine(reference: &str, name: &str, tags: &[&str]) -> Record {
    let plan = "s-1vcpu-1gb".to_owned();
    let size = Size::Machine(MachineSize { plan, ..MachineSize::default() });
    seen(reference, |reference| resource(reference, name, tags, size))
}

pub(crate) fn database(reference: &str, name: &str, tags: &[&str]) -> Record {
    let size = Size::Database(DatabaseSize {
        engine: "pg".to_owned(),
        plan: "db-s-2vcpu-4gb".to_owned(),
        nodes: 2,
        storage_mib: None,
    });
    seen(reference, |reference| resource(reference, name, tags, size))
}

/// Three nodes, autoscaled, in the cluster `staging`.
pub(crate) fn pool(reference: &str, name: &str, cluster_tags: &[&str]) -> Record {
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
pub(crate) fn web() -> Record {
    let mut record = machine("do-main/droplet/1", "web", &["offhours:office"]);
    record.opted_in = true;
    record.schedule = Some(office());
    record
}

pub(crate) fn office() -> ScheduleName {
    "office".parse().unwrap()
}

pub(crate) fn transition(direction: Direction, since: Timestamp) -> Transition {
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
pub(crate) fn request(at: Timestamp, ask: domain::record::Ask) -> Request {
    Request {
        direction: Direction::Stop,
        asked_at: at,
        looked_at: at,
        ask,
        earlier_unanswered: false,
        forced: domain::record::Forced::No,
        effect_timeout: None,
        first_accepted_at: None,
        step: Step::Off { gracefully: false },
        created_machine: None,
        problem: None,
    }
}

/// A resource that handled a stop edge, is held stopped, and is no longer covered by any schedule.
pub(crate) fn orphan() -> Record {
    let handled = handled(monday("08:00:00"), Desired::Stopped, "office");
    Record {
        phase: Phase::Settled { at: Power::Stopped },
        handled: Some(handled),
        ..machine("do-main/droplet/8", "orphan", &[])
    }
}

pub(crate) fn saved() -> SavedState {
    SavedState::Database { plan: "db-s-4vcpu-8gb".to_owned(), nodes: 2, storage_mib: None }
}

/// Simulated clouds that listen, and clients for them. The clock does not advance.
pub(crate) struct SimulatedClouds {
    pub(crate) simulator: Simulator,
    pub(crate) providers: Providers,
    pub(crate) clock: Clock,
    /// The address on which the clouds listen.
    pub(crate) url: provider::Base,
}

/// Both accounts, to prepend to a fleet.
pub(crate) const ACCOUNTS: &str = r#"
accounts = [
    { name = "do-main", provider = "digitalocean", token = "secret-do" },
    { name = "hz-eu", provider = "hetzner", token = "secret-hz" },
]
"#;

pub(crate) async fn simulated_clouds(
    configuration: &Configuration,
    fleet: &str,
    now: Timestamp,
) -> SimulatedClouds {
    simulated_clouds_from(configuration, &format!("{ACCOUNTS}{fleet}"), now).await
}

/// Like [`simulated_clouds`], but the fleet defines its own accounts.
pub(crate) async fn simulated_clouds_from(
    configuration: &Configuration,
    fleet: &str,
    now: Timestamp,
) -> SimulatedClouds {
    let clock = Clock::from(SteppedClock::at(now));
    let address = ([127, 0, 0, 1], 0).into();
    let clouds =
        Clouds::simulated(fleet.parse().unwrap(), &configuration.accounts, address).unwrap();
    let clouds = clouds.start(&clock).await.unwrap();
    let tokens = clouds.tokens().unwrap();
    let http = provider::http_client().unwrap();
    SimulatedClouds {
        simulator: clouds.simulator().unwrap().clone(),
        providers: Providers::new(Access::Read, tokens, clouds.endpoints().unwrap(), http),
        clock,
        url: clouds.url().unwrap().clone(),
    }
}

/// What the doctor reads from a store with these records, in which no inventory is recorded.
pub(crate) fn store_contents(
    in_force: InForce,
    records: impl IntoIterator<Item = Record>,
) -> StoreContents {
    StoreContents {
        applied_instead: None,
        head: Head::default(),
        in_force,
        states: BTreeMap::new(),
        records: records.into_iter().collect(),
        unreadable: Vec::new(),
    }
}

/// A hibernated server that follows `office`. It is recreated from the second of its two snapshots;
/// the first is proven.
pub(crate) fn asleep() -> Record {
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
