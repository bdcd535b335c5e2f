//! Records, history and configurations to store.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    ResourceRef, ScheduleName,
    activity::{Action, Activity, Author},
    configuration::{
        CloudAccount, Configuration, Floor, Generation, Mode, Override, Policy, Provider, Rule,
        Schedules, Settings,
    },
    history::HistoryEntry,
    record::{
        Ask, Cause, Direction, Ending, Forced, Observed, Permit, Phase, Record, Request,
        Transition, Writer,
    },
    resource::{ActionId, AutoscaleBounds, Cluster, Power, SavedState},
    schedule::{Definition, Desired, PeriodDefinition, Schedule},
    step::Step,
    stop_method::StopMethod,
};
use jiff::Timestamp;
use store::{HistoryQuery, Store};
use testing::history::{handled, machine};

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A Monday, an hour before [`office_hours`] begin.
pub(crate) fn monday() -> Timestamp {
    at("2026-06-15T07:00:00Z")
}

pub(crate) fn reference(text: &str) -> ResourceRef {
    text.parse().unwrap()
}

/// A running server in `hz-eu` that follows no schedule.
pub(crate) fn server(number: usize) -> Record {
    record(&format!("hz-eu/server/{number}"))
}

pub(crate) fn record(name: &str) -> Record {
    let reference = reference(name);
    let resource = machine(&reference.id, Power::Running);
    Record::first_seen(reference, &resource)
}

/// A server that is due at an instant.
pub(crate) fn due_server(number: usize, due_at: Timestamp) -> Record {
    Record { due_at: Some(due_at), ..server(number) }
}

/// A record of about this many bytes.
pub(crate) fn large(record: Record, bytes: usize) -> Record {
    Record { last_error: Some("x".repeat(bytes).into()), ..record }
}

pub(crate) fn office_hours_name() -> ScheduleName {
    "office-hours".parse().unwrap()
}

/// A server that follows `office-hours` by tag and was stopped by it on Friday evening.
pub(crate) fn stopped_on_friday(number: usize) -> Record {
    let friday = at("2026-06-12T19:00:00Z");
    Record {
        tags: BTreeSet::from(["offhours=office-hours".to_owned()]),
        schedule: Some(office_hours_name()),
        opted_in: true,
        phase: Phase::Settled { at: Power::Stopped },
        handled: Some(handled(friday, Desired::Stopped, "office-hours")),
        ..server(number)
    }
}

pub(crate) fn transition(direction: Direction) -> Transition {
    Transition {
        target: None,
        method: StopMethod::Graceful,
        forced: false,
        was_running: false,
        direction,
        claimed_at: at("2026-06-15T19:00:01.5Z"),
        cause: Cause::Schedule,
        schedule: Some(office_hours_name()),
    }
}

/// A node pool in the middle of a stop, with everything that a record can carry at once.
pub(crate) fn pool_in_flight() -> Record {
    let was =
        SavedState::NodePool { count: 3, autoscale: Some(AutoscaleBounds { min: 2, max: 5 }) };
    Record {
        cluster: Some(Cluster {
            name: "staging".to_owned(),
            tags: BTreeSet::from(["offhours:office-hours".to_owned()]),
        }),
        observed: Some(Observed {
            power: Power::Between,
            size: Some(was.clone()),
            busy: Some("draining".to_owned()),
            at: at("2026-06-15T19:00:20Z"),
        }),
        opted_in: true,
        phase: Phase::InFlight { transition: transition(Direction::Stop) },
        request: Some(Request {
            direction: Direction::Stop,
            asked_at: at("2026-06-15T19:00:01.5Z"),
            looked_at: at("2026-06-15T19:00:00.123456789Z"),
            ask: Ask::Accepted { at: at("2026-06-15T19:00:02Z"), action: Some(ActionId(u64::MAX)) },
            earlier_unanswered: true,
            forced: Forced::No,
            effect_timeout: None,
            first_accepted_at: None,
            step: Step::Resize(SavedState::NodePool { count: 0, autoscale: None }),
            created_machine: None,
            problem: None,
        }),
        permit: Some(Permit {
            until: at("2026-06-15T19:02:01.5Z"),
            writer: Writer("stop-7".to_owned()),
        }),
        saved: Some(was),
        may_have_shrunk: true,
        due_at: Some(at("2026-06-15T19:00:30.25Z")),
        attempts: 2,
        ..record("do-main/node-pool/c1/p1")
    }
}

/// How the `number`th transition of a resource ended; each begins an hour after the one before.
pub(crate) fn ended(reference: &ResourceRef, number: i32) -> HistoryEntry {
    let claimed_at = monday() + jiff::SignedDuration::from_hours(number.into());
    HistoryEntry {
        method: None,
        reference: reference.clone(),
        name: "web".to_owned(),
        direction: Direction::Stop,
        cause: Cause::Manual { by: "ada".to_owned() },
        schedule: None,
        claimed_at,
        asked_at: Some(claimed_at),
        accepted_at: None,
        finished_at: claimed_at + jiff::SignedDuration::from_secs(90),
        ending: Ending::Seen,
        reason: None,
        forced: true,
        saved: None,
        seen: None,
        hibernation: None,
    }
}

/// On weekdays, from 8 to 19.
pub(crate) fn office_hours() -> Rule {
    let period = PeriodDefinition {
        weekdays: vec!["mon-fri".to_owned()],
        begin: Some("08:00".to_owned()),
        end: Some("19:00".to_owned()),
        ..PeriodDefinition::default()
    };
    let definition =
        Definition { timezone: "UTC".to_owned(), periods: vec![period], ..Definition::default() };
    Rule {
        schedule: Schedule::new(&definition).unwrap(),
        resources: BTreeSet::new(),
        policy: Policy::default(),
    }
}

pub(crate) fn hetzner() -> CloudAccount {
    CloudAccount {
        accept_new_prices: false,
        ssh_key: None,
        provider: Provider::Hetzner,
        was: None,
        token: "ssm:/offhours/hz-eu".parse().unwrap(),
        read_token: None,
        datacenters: Vec::new(),
        mode: Mode::Act,
        url: None,
    }
}

/// One account and no schedule.
pub(crate) fn without_schedules() -> Configuration {
    Configuration {
        generation: Generation::default(),
        settings: Settings::default(),
        accounts: BTreeMap::from([("hz-eu".parse().unwrap(), hetzner().into())]),
        schedules: Schedules::default(),
        floor: Floor::default(),
    }
}

/// One account, and [`office_hours`].
pub(crate) fn with_office_hours() -> Configuration {
    Configuration {
        schedules: Schedules::from([(office_hours_name(), office_hours())]),
        ..without_schedules()
    }
}

/// Applies [`with_office_hours`].
pub(crate) async fn apply_office_hours(store: &Store) {
    let applied = store.apply(&with_office_hours(), "ada", monday()).await;
    applied.unwrap();
}

/// A configuration that only `author` could have written: schedules, accounts and settings are
/// named after them.
pub(crate) fn by(author: &str) -> Configuration {
    let named = |number: usize| format!("{author}-{number}");
    Configuration {
        generation: Generation::default(),
        settings: Settings {
            protect: vec![format!("name:{author}").parse().unwrap()],
            ..Settings::default()
        },
        accounts: (0..2).map(|number| (named(number).parse().unwrap(), hetzner().into())).collect(),
        schedules: (0..3).map(|number| (named(number).parse().unwrap(), office_hours())).collect(),
        floor: Floor::default(),
    }
}

/// Reads all finished transitions of a resource, newest first.
pub(crate) async fn history(store: &Store, reference: &ResourceRef) -> Vec<HistoryEntry> {
    let all = HistoryQuery { since: Timestamp::MIN, until: Timestamp::MAX, schedule: None };
    let mut pages = store.history_of(reference, all);
    let mut entries = Vec::new();
    while let Some(page) = pages.next().await.unwrap() {
        assert_eq!(page.unreadable, 0);
        entries.extend(page.entries);
    }
    entries
}

/// The entry in the activity log of setting an override.
pub(crate) fn setting(one: &Override) -> Activity {
    Author::from(&*one.by).does(Action::set(one), monday())
}
