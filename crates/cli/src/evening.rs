//! A store with records in every kind of state, for tests. The time is Friday, 20 November 2026, at
//! 18:55 in Berlin, five minutes before the office closes.

use std::{collections::BTreeSet, sync::Arc};

use domain::{
    ResourceRef,
    configuration::{Configuration, Generation, Override, OverrideTarget, Overrides},
    record::{
        Ask, Cause, Direction, EdgeKey, Forced, ManualCommand, Observed, Phase, Rank, Record,
        Request, Transition,
    },
    resource::{Cluster, MachineSize, Power, Resource, SavedState, Size},
    schedule::Desired,
    step::Step,
    stop_method::StopMethod,
};
use jiff::Timestamp;
use store::{AccountState, InForce, Store};
use testing::set_override;

use crate::{
    configuration_file,
    fixtures::{empty_store, handled, machine},
};

const CONFIGURATION: &str = r#"
timezone = "Europe/Berlin"
protect = ["name:*prod*"]

[accounts.do-main]
provider = "digitalocean"
token = "env:DO_TOKEN"

[accounts.hz-eu]
provider = "hetzner"
token = "env:HZ_TOKEN"
mode = "observe"

[schedules.office]
periods = [
  { weekdays = "mon-fri", begin = "08:00", end = "19:00" },
  { weekdays = "sat#1", begin = "10:00", end = "14:00" },
]
holidays = ["2026-12-24"]

[schedules.nightly]
start = "0 22 * * *"
stop = "0 6 * * *"
"#;

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().expect("a test's instant")
}

/// Friday, 18:55 in Berlin.
pub(crate) fn now() -> Timestamp {
    at("2026-11-20T17:55:00Z")
}

/// The first generation.
pub(crate) fn configuration() -> Configuration {
    let parsed = configuration_file::parse(CONFIGURATION, "FILE");
    Configuration {
        generation: Generation(1),
        ..parsed.expect("a test's configuration").configuration
    }
}

/// The same configuration, in force since the day before, without overrides.
pub(crate) fn in_force() -> InForce {
    InForce {
        configuration: Arc::new(configuration()),
        overrides: Overrides::default(),
        since: Some(at("2026-11-19T12:00:00Z")),
    }
}

/// A running resource that follows no schedule.
pub(crate) fn seen(reference: &str, name: &str) -> Record {
    let reference: ResourceRef = reference.parse().expect("a test's reference");
    let resource = Resource {
        name: name.to_owned(),
        region: "fra1".to_owned(),
        size: Size::Machine(MachineSize {
            plan: "s-1vcpu-1gb".to_owned(),
            ..MachineSize::default()
        }),
        ..machine(&reference.id, Power::Running)
    };
    let mut record = Record::first_seen(reference, &resource);
    record.observed = Some(Observed {
        power: Power::Running,
        size: None,
        busy: None,
        at: at("2026-11-20T07:01:00Z"),
    });
    record
}

/// The same resource under a schedule, by its own tag. It has handled this morning's edge.
pub(crate) fn following(schedule: &str, record: Record) -> Record {
    let morning = at("2026-11-20T07:00:00Z");
    Record {
        tags: BTreeSet::from([format!("offhours:{schedule}")]),
        opted_in: true,
        handled: Some(handled(morning, Desired::Running, schedule)),
        ..record
    }
}

pub(crate) fn office(reference: &str, name: &str) -> Record {
    following("office", seen(reference, name))
}

pub(crate) fn transition(direction: Direction) -> Transition {
    Transition {
        target: None,
        method: StopMethod::Graceful,
        forced: false,
        was_running: false,
        direction,
        claimed_at: at("2026-11-20T17:50:00Z"),
        cause: Cause::Manual { by: "ada".to_owned() },
        schedule: None,
    }
}

/// A database that ada stopped five minutes ago.
pub(crate) fn stopping_database() -> Record {
    let reference = "do-main/database/9cc10173-e9ea-4176-9dbc-a4cee4c4ff30";
    let commanded = at("2026-11-20T17:50:00Z");
    let mut record = Record {
        phase: Phase::InFlight { transition: transition(Direction::Stop) },
        manual_command: Some(ManualCommand {
            instant: commanded,
            desired: Desired::Stopped,
            by: "ada".to_owned(),
            request_id: "request-1".to_owned(),
            earlier: Vec::new(),
            rehearsal: false,
        }),
        saved: Some(SavedState::Database {
            plan: "db-s-2vcpu-4gb".to_owned(),
            nodes: 2,
            storage_mib: None,
        }),
        may_have_shrunk: true,
        request: Some(Request {
            direction: Direction::Stop,
            asked_at: commanded,
            looked_at: commanded,
            ask: Ask::Accepted { at: commanded, action: None },
            earlier_unanswered: false,
            forced: Forced::No,
            effect_timeout: None,
            first_accepted_at: None,
            step: Step::Off { gracefully: false },
            created_machine: None,
            problem: None,
        }),
        due_at: Some(at("2026-11-20T17:55:20Z")),
        ..office(reference, "orders")
    };
    if let Some(handled) = &mut record.handled {
        handled.desired = Some(Desired::Stopped);
        handled.key = EdgeKey { instant: commanded, rank: Rank::Manual };
    }
    record
}

/// A pool whose stop is stuck.
pub(crate) fn stuck_pool() -> Record {
    Record {
        cluster: Some(Cluster {
            name: "staging".to_owned(),
            tags: BTreeSet::from(["offhours:office".to_owned()]),
        }),
        phase: Phase::Stuck {
            transition: transition(Direction::Stop),
            since: at("2026-11-20T17:52:00Z"),
            reason: "2 nodes are still draining".to_owned(),
        },
        last_error: Some("2 nodes are still draining".into()),
        ..office(
            "do-main/node-pool/8d91899c-0739-4a1a-acc5-deadbeefbb8f/cdda885e-7663-40c8-bc74-3a036c66545d",
            "workers",
        )
    }
}

/// Records in every kind of state.
pub(crate) fn fleet() -> Vec<Record> {
    let stopped = Record {
        phase: Phase::Settled { at: Power::Stopped },
        ..following("nightly", seen("hz-eu/server/42", "build"))
    };
    vec![
        office("do-main/droplet/1", "web-1"),
        office("do-main/droplet/2", "shop-prod"),
        seen("do-main/droplet/3", "lonely"),
        Record { held: true, ..office("do-main/droplet/4", "newcomer") },
        stopping_database(),
        stuck_pool(),
        seen("old/server/7", "left-behind"),
        stopped,
    ]
}

/// An override: `lonely` runs until ten.
pub(crate) fn overriding() -> Override {
    Override {
        target: OverrideTarget::Resource("do-main/droplet/3".parse().expect("a test's reference")),
        desired: Desired::Running,
        set_at: at("2026-11-20T17:00:00Z"),
        ends_at: at("2026-11-20T21:00:00Z"),
        by: "ada".to_owned(),
        why: Some("release night".to_owned()),
        before: None,
    }
}

/// A store in this process that contains only the configuration.
pub(crate) async fn store() -> Store {
    let store = empty_store().await;
    // Applying increments it.
    let configuration = Configuration { generation: Generation(0), ..configuration() };
    let applied = store.apply(&configuration, "ada", at("2026-11-19T12:00:00Z"));
    applied.await.expect("the configuration is applied");
    store
}

/// The same store with the [`fleet`], an override, and the state of the accounts.
pub(crate) async fn full_store() -> Store {
    let store = store().await;
    for record in fleet() {
        store.save(record).await.expect("a record is saved");
    }
    for (account, error) in [("do-main", None), ("hz-eu", Some("token refused")), ("old", None)] {
        let state = AccountState {
            listed_at: Some(at("2026-11-20T17:51:00Z")),
            error: error.map(Into::into),
            token_fails: error.is_some(),
            ..AccountState::unknown(account.parse().expect("a test's account"))
        };
        let saved = store.save_account_state(&state).await;
        saved.expect("an account's state is saved");
    }
    let overriding = overriding();
    let set = set_override(&store, &overriding, now()).await;
    set.expect("the override is set");
    store
}
