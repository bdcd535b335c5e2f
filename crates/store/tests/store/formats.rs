//! Items of every format so far can be read: each folder `format-N` holds one item of each kind as
//! a release of that format wrote it, in DynamoDB's own JSON. Once released, they are never rewritten.

use std::{
    collections::{BTreeSet, HashMap},
    fs,
    path::PathBuf,
};

use aws_sdk_dynamodb::types::AttributeValue;
use domain::{
    configuration::{
        CloudAccount, Generation, Override, OverrideTarget, Pause, PauseScope, Settings,
    },
    hibernation::{
        Balanced, Hibernation, KeptAddress, KeptSnapshot, Manifest, Mark, NetworkAddress,
    },
    history::HistoryEntry,
    pacing::RateLimit,
    record::{Direction, EdgeKey, Ending, Last, Phase, Rank, Record, Revision},
    schedule::Desired,
};
use jiff::SignedDuration;
use serde_json::Value;
use store::{
    AccountState, EdgeReport, Head, LogEntry, ReportedEdge,
    item::{self, AccountPart, ConfigurationItem, ConfigurationPart, Item, Stored as _},
};

use crate::fixtures::{
    at, ended, hetzner, monday, office_hours, office_hours_name, pool_in_flight, reference, server,
    stopped_on_friday, transition,
};

/// A kind of item, and the check that compares it with what was written.
type Kind = (&'static str, fn(Item));

/// The kinds that needed each format; all others are still written in the one before.
const FORMATS: [&[Kind]; item::FORMAT as usize] = [&FIRST, &HIBERNATION, &PAUSE];

const PAUSE: [Kind; 1] = [("pause", |item| {
    assert_eq!(Pause::of_item(item).unwrap(), a_pause());
})];

const HIBERNATION: [Kind; 1] = [("record-hibernated", |item| {
    assert_eq!(Record::of_item(item).unwrap(), hibernated());
})];

const FIRST: [Kind; 13] = [
    ("record-settled", |item| {
        assert_eq!(Record::of_item(item).unwrap(), settled());
    }),
    ("record-in-flight", |item| {
        assert_eq!(Record::of_item(item).unwrap(), pool_in_flight());
    }),
    ("record-refused", |item| {
        assert_eq!(Record::of_item(item).unwrap(), refused());
    }),
    ("head", |item| {
        assert_eq!(Head::of_item(item).unwrap(), head());
    }),
    ("override", |item| {
        assert_eq!(Override::of_item(item).unwrap(), an_override());
    }),
    ("log-entry", |item| {
        assert_eq!(LogEntry::of_item(item).unwrap(), log_entry());
    }),
    ("settings", |item| match ConfigurationPart::of_item(item).unwrap().body {
        ConfigurationItem::Settings(read) => assert_eq!(*read, settings()),
        ConfigurationItem::Schedule { schedule, .. } => panic!("{schedule} is no settings"),
    }),
    ("schedule", |item| match ConfigurationPart::of_item(item).unwrap().body {
        ConfigurationItem::Schedule { schedule, rule } => {
            let wanted = office_hours();
            assert_eq!(schedule, office_hours_name());
            assert_eq!(rule.schedule.definition(), wanted.schedule.definition());
            assert_eq!(rule.policy, wanted.policy);
            assert_eq!(rule.resources, wanted.resources);
        }
        ConfigurationItem::Settings(other) => panic!("{other:?} is no schedule"),
    }),
    ("account", |item| {
        let name = "hz-eu".parse().unwrap();
        let read = AccountPart::of_item(item).unwrap();
        assert_eq!((read.name, read.body), (name, hetzner().into()));
    }),
    ("account-with-read-token", |item| {
        let name = "hz-eu".parse().unwrap();
        let read = AccountPart::of_item(item).unwrap();
        assert_eq!((read.name, read.body), (name, with_read_token().into()));
    }),
    ("account-state", |item| {
        assert_eq!(AccountState::of_item(item).unwrap(), account_state());
    }),
    ("history", |item| {
        let entry = ended(&reference("hz-eu/server/1"), 0);
        assert_eq!(HistoryEntry::of_item(item).unwrap(), entry);
    }),
    ("digest", |item| {
        assert_eq!(ReportedEdge::of_item(item).unwrap(), reported_edge());
    }),
];

fn a_pause() -> Pause {
    Pause {
        scope: PauseScope::Schedule(office_hours_name()),
        starts: true,
        set_at: at("2026-06-15T07:00:00Z"),
        ends_at: at("2026-06-15T22:00:00Z"),
        by: "ada".to_owned(),
        why: "a release".to_owned(),
    }
}

fn settled() -> Record {
    Record {
        due_at: Some(at("2026-06-15T08:00:00Z")),
        revision: Revision(12),
        ..stopped_on_friday(1)
    }
}

fn refused() -> Record {
    Record {
        phase: Phase::Refused {
            transition: transition(Direction::Stop),
            reason: "the plan cannot shrink".to_owned(),
        },
        last: Some(Last {
            key: EdgeKey { instant: at("2026-06-15T19:00:00Z"), rank: Rank::Schedule },
            claimed_at: at("2026-06-15T19:00:01.5Z"),
            asked_at: Some(at("2026-06-15T19:00:01.5Z")),
            finished_at: at("2026-06-15T19:00:02Z"),
            ending: Ending::Refused,
            method: None,
        }),
        ..server(1)
    }
}

fn hibernated() -> Record {
    let mark = |text: &str| Mark(text.to_owned());
    let mut kept = Hibernation::of("server/1".parse().unwrap());
    kept.record_deletion();
    kept.delete_asked = true;
    kept.wake_from = Some(mark("k3jd8s0a7q1zx5cv"));
    kept.manifest = Some(Manifest {
        name: "build".to_owned(),
        region: "fsn1".to_owned(),
        tags: BTreeSet::from(["offhours=office-hours".to_owned()]),
        ssh_key: "team".to_owned(),
        addresses: vec![KeptAddress {
            id: "7".to_owned(),
            ip: "192.0.2.7".to_owned(),
            is_ipv6: false,
        }],
        networks: vec![NetworkAddress {
            network: "3".to_owned(),
            ip: "10.0.0.9".to_owned(),
            alias_ips: vec!["10.0.0.10".to_owned()],
        }],
        volumes: BTreeSet::from(["8".to_owned()]),
        firewalls: BTreeSet::from(["9".to_owned()]),
        load_balancers: vec![Balanced { id: "10".to_owned(), privately: true }],
        floating_ips: BTreeSet::from(["11".to_owned()]),
        placement_group: Some("12".to_owned()),
        backups: true,
        ..Manifest::default()
    });
    kept.snapshots = vec![KeptSnapshot {
        id: Some(u64::MAX),
        centi_gb: Some(1_234),
        proven_at: Some(monday()),
        remove_asked_at: Some(monday()),
        ..KeptSnapshot::of("server/1".parse().unwrap(), mark("k3jd8s0a7q1zx5cv"), monday())
    }];
    kept.wakes = vec![mark("0123456789abcdef")];
    kept.lead = Some(SignedDuration::from_mins(40));
    kept.took = vec![SignedDuration::from_secs(95)];
    kept.failed = 1;
    kept.running_since = Some(monday());
    Record { hibernation: Some(Box::new(kept)), ..settled() }
}

fn head() -> Head {
    Head { generation: Generation(3), author: "ada".to_owned(), applied_at: Some(monday()) }
}

fn an_override() -> Override {
    Override {
        target: OverrideTarget::Schedule(office_hours_name()),
        desired: Desired::Running,
        set_at: monday(),
        ends_at: at("2026-06-15T22:00:00Z"),
        by: "ada".to_owned(),
        why: Some("a demonstration".to_owned()),
        before: None,
    }
}

fn log_entry() -> LogEntry {
    LogEntry {
        generation: Generation(3),
        author: "ada".to_owned(),
        applied_at: monday(),
        repeats: Some(Generation(1)),
    }
}

fn settings() -> Settings {
    Settings { protect: vec!["name:*prod*".parse().unwrap()], max_stops: 20, ..Settings::default() }
}

fn with_read_token() -> CloudAccount {
    CloudAccount { read_token: Some("ssm:/offhours/hz-eu-read".parse().unwrap()), ..hetzner() }
}

fn account_state() -> AccountState {
    AccountState {
        account: "hz-eu".parse().unwrap(),
        listed_at: Some(monday()),
        tried_at: Some(monday()),
        error: None,
        token_fails: false,
        tagless_since: None,
        cost: None,
        rate: Some(RateLimit { remaining: 3500, at: monday(), limit: None, others: None }),
        prices_due_at: None,
        spent: Vec::new(),
        spent_revision: 0,
    }
}

fn reported_edge() -> ReportedEdge {
    ReportedEdge {
        report: EdgeReport::Digest,
        schedule: office_hours_name(),
        edge: monday(),
        turn: 0,
        by: "poll-status-7 at 2026-06-15T07:08:00Z".to_owned(),
    }
}

fn folder(format: u32) -> PathBuf {
    let tests = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/store");
    tests.join(format!("format-{format}"))
}

/// Parses an item from DynamoDB's JSON, `{"name": {"S": "web"}, …}`.
fn item(json: Value) -> Item {
    let Value::Object(fields) = json else {
        panic!("no item: {json}");
    };
    let fields = fields.into_iter();
    fields.map(|(name, value)| (name, attribute(value))).collect()
}

fn attribute(typed: Value) -> AttributeValue {
    let typed: HashMap<String, Value> = serde_json::from_value(typed).unwrap();
    let (kind, value) = typed.into_iter().next().unwrap();
    let text = |value: Value| value.as_str().unwrap().to_owned();
    match kind.as_str() {
        "S" => AttributeValue::S(text(value)),
        "N" => AttributeValue::N(text(value)),
        "BOOL" => AttributeValue::Bool(value.as_bool().unwrap()),
        "NULL" => AttributeValue::Null(true),
        "M" => AttributeValue::M(item(value)),
        "L" => {
            let values: Vec<Value> = serde_json::from_value(value).unwrap();
            AttributeValue::L(values.into_iter().map(attribute).collect())
        }
        other => panic!("the type {other} is not used"),
    }
}

#[test]
fn items_of_every_format_are_read() {
    for (format, kinds) in (1..).zip(FORMATS) {
        let folder = folder(format);
        for (kind, check) in kinds {
            let file = folder.join(format!("{kind}.json"));
            let text = fs::read_to_string(&file);
            let text = text.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let stored = item(serde_json::from_str(&text).unwrap());
            assert_eq!(stored["format"], AttributeValue::N(format.to_string()));
            check(stored);
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), kinds.len());
    }
}

/// An older program would consider such a machine gone.
#[test]
fn a_machine_that_was_hibernated_needs_the_second_format() {
    let two = AttributeValue::N("2".to_owned());
    assert_eq!(hibernated().to_item().unwrap()["format"], two);
    let one = AttributeValue::N("1".to_owned());
    assert_eq!(settled().to_item().unwrap()["format"], one);
}

/// An older program would send what a pause bars.
#[test]
fn a_pause_needs_the_third_format() {
    let three = AttributeValue::N("3".to_owned());
    assert_eq!(a_pause().to_item().unwrap()["format"], three);
}

#[test]
fn no_folder_is_of_a_format_to_come() {
    assert!(!folder(item::FORMAT + 1).exists());
}
