//! What is stored outlives the code that stored it: the exact form of every item.
//!
//! A difference here means that older functions will read something that they do not know. Make new
//! fields optional, or raise the format.

use std::{collections::BTreeMap, slice};

use aws_sdk_dynamodb::types::AttributeValue;
use domain::{
    AccountName, ResourceKind,
    configuration::{
        Account, CloudAccount, Configuration, Generation, Mode, Override, OverrideTarget, Settings,
    },
    history::HistoryEntry,
    money::{Currency, Money},
    pacing,
    prices::{self, PriceList},
    record::{
        Ask, Cause, Direction, EdgeKey, Ending, Forced, Handled, Last, ManualCommand, Opposite,
        Permit, Phase, Rank, Record, Request, Revision, Writer,
    },
    resource::{MachineSize, SavedState},
    schedule::Desired,
    step::Step,
};
use insta::assert_snapshot;
use jiff::SignedDuration;
use serde_json::Value;
use store::{
    AccountPrices, AccountState, EdgeReport, Head, ListCost, LogEntry, ReportedEdge, StoreError,
    item::{self, AccountPart, ConfigurationItem, ConfigurationPart, Item, Stored as _},
};

use testing::set_override;

use crate::{
    fixtures::{
        at, due_server, ended, hetzner, monday, office_hours, office_hours_name, pool_in_flight,
        reference, server, stopped_on_friday, transition,
    },
    world::World,
};

/// Formats an item for people: numbers without quotes are of DynamoDB's type N, text is S.
fn shown(item: &Item) -> String {
    fn sorted(value: Value) -> Value {
        match value {
            Value::Object(fields) => {
                let fields: BTreeMap<_, _> = fields.into_iter().collect();
                let fields = fields.into_iter();
                Value::Object(fields.map(|(name, v)| (name, sorted(v))).collect())
            }
            Value::Array(values) => values.into_iter().map(sorted).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
        }
    }
    let item = serde_dynamo::from_item(item.clone()).unwrap();
    serde_json::to_string_pretty(&sorted(item)).unwrap()
}

/// Formats a record as it is stored, after reading it back.
#[track_caller]
fn stored(record: &Record) -> String {
    let item = record.to_item().unwrap();
    assert_eq!(&Record::of_item(item.clone()).unwrap(), record);
    shown(&item)
}

#[test]
fn the_form_of_a_settled_record() {
    let record = Record {
        due_at: Some(at("2026-06-15T08:00:00Z")),
        manual_command: Some(ManualCommand {
            instant: at("2026-06-12T18:00:00Z"),
            desired: Desired::Running,
            by: "ada".to_owned(),
            request_id: "r-1".to_owned(),
            earlier: Vec::new(),
            rehearsal: false,
        }),
        held: true,
        duplicate_of: Some(reference("hz-us/server/1")),
        unsupported: Some("a reason".to_owned()),
        retained: true,
        missing_since: Some(monday()),
        retry_at: Some(monday()),
        revision: Revision(12),
        ..stopped_on_friday(1)
    };
    assert_snapshot!(stored(&record), @r#"
    {
      "account": "hz-eu",
      "due": "due",
      "due_at": "2026-06-15T08:00:00Z",
      "due_ms": 1781510400000,
      "duplicate_of": "hz-us/server/1",
      "format": 1,
      "handled": {
        "desired": "stopped",
        "generation": 1,
        "key": {
          "instant": "2026-06-12T19:00:00Z",
          "rank": "schedule"
        },
        "schedule": "office-hours"
      },
      "held": true,
      "manual_command": {
        "by": "ada",
        "desired": "running",
        "instant": "2026-06-12T18:00:00Z",
        "request_id": "r-1"
      },
      "missing_since": "2026-06-15T07:00:00Z",
      "name": "web",
      "opted_in": true,
      "phase": {
        "at": "stopped",
        "name": "settled"
      },
      "plan": "cx22",
      "reference": "hz-eu/server/1",
      "region": "fsn1",
      "resource": "server/1",
      "retained": true,
      "retry_at": "2026-06-15T07:00:00Z",
      "revision": 12,
      "schedule": "office-hours",
      "tags": [
        "offhours=office-hours"
      ],
      "unsupported": "a reason"
    }
    "#);
}

#[test]
fn the_form_of_a_record_seen_for_the_first_time() {
    assert_snapshot!(stored(&server(1)), @r#"
    {
      "account": "hz-eu",
      "format": 1,
      "name": "web",
      "opted_in": false,
      "phase": {
        "at": "running",
        "name": "settled"
      },
      "plan": "cx22",
      "reference": "hz-eu/server/1",
      "region": "fsn1",
      "resource": "server/1",
      "revision": 0,
      "tags": []
    }
    "#);
}

#[test]
fn the_form_of_a_record_in_flight() {
    assert_snapshot!(stored(&pool_in_flight()), @r#"
    {
      "account": "do-main",
      "attempts": 2,
      "cluster": {
        "name": "staging",
        "tags": [
          "offhours:office-hours"
        ]
      },
      "due": "due",
      "due_at": "2026-06-15T19:00:30.25Z",
      "due_ms": 1781550030250,
      "format": 1,
      "may_have_shrunk": true,
      "name": "web",
      "observed": {
        "at": "2026-06-15T19:00:20Z",
        "busy": "draining",
        "power": "between",
        "size": {
          "autoscale": {
            "max": 5,
            "min": 2
          },
          "count": 3,
          "kind": "node-pool"
        }
      },
      "opted_in": true,
      "permit": {
        "until": "2026-06-15T19:02:01.5Z",
        "writer": "stop-7"
      },
      "phase": {
        "name": "in-flight",
        "transition": {
          "cause": "schedule",
          "claimed_at": "2026-06-15T19:00:01.5Z",
          "direction": "stop",
          "method": "graceful",
          "schedule": "office-hours"
        }
      },
      "plan": "cx22",
      "reference": "do-main/node-pool/c1/p1",
      "region": "fsn1",
      "request": {
        "ask": {
          "action": 18446744073709551615,
          "at": "2026-06-15T19:00:02Z",
          "state": "accepted"
        },
        "asked_at": "2026-06-15T19:00:01.5Z",
        "direction": "stop",
        "earlier_unanswered": true,
        "forced": "no",
        "looked_at": "2026-06-15T19:00:00.123456789Z",
        "step": {
          "resize": {
            "count": 0,
            "kind": "node-pool"
          }
        }
      },
      "resource": "node-pool/c1/p1",
      "revision": 0,
      "saved": {
        "autoscale": {
          "max": 5,
          "min": 2
        },
        "count": 3,
        "kind": "node-pool"
      },
      "tags": []
    }
    "#);
}

#[test]
fn the_form_of_a_refused_record() {
    let record = Record {
        phase: Phase::Refused {
            transition: transition(Direction::Start),
            reason: "the plan cannot shrink".to_owned(),
        },
        last: Some(Last {
            key: EdgeKey { instant: monday(), rank: Rank::Schedule },
            claimed_at: at("2026-06-15T19:00:01.5Z"),
            asked_at: Some(at("2026-06-15T19:00:01.5Z")),
            finished_at: at("2026-06-15T19:00:02Z"),
            ending: Ending::Refused,
            method: None,
        }),
        request: Some(Request {
            direction: Direction::Start,
            asked_at: monday(),
            looked_at: monday(),
            ask: Ask::Failed { retry_at: monday() },
            earlier_unanswered: false,
            forced: Forced::No,
            effect_timeout: None,
            first_accepted_at: None,
            step: Step::On { small: false },
            created_machine: None,
            problem: None,
        }),
        ..server(1)
    };
    assert_snapshot!(stored(&record), @r#"
    {
      "account": "hz-eu",
      "format": 1,
      "last": {
        "asked_at": "2026-06-15T19:00:01.5Z",
        "claimed_at": "2026-06-15T19:00:01.5Z",
        "ending": "refused",
        "finished_at": "2026-06-15T19:00:02Z",
        "key": {
          "instant": "2026-06-15T07:00:00Z",
          "rank": "schedule"
        }
      },
      "name": "web",
      "opted_in": false,
      "phase": {
        "name": "refused",
        "reason": "the plan cannot shrink",
        "transition": {
          "cause": "schedule",
          "claimed_at": "2026-06-15T19:00:01.5Z",
          "direction": "start",
          "method": "graceful",
          "schedule": "office-hours"
        }
      },
      "plan": "cx22",
      "reference": "hz-eu/server/1",
      "region": "fsn1",
      "request": {
        "ask": {
          "retry_at": "2026-06-15T07:00:00Z",
          "state": "failed"
        },
        "asked_at": "2026-06-15T07:00:00Z",
        "direction": "start",
        "forced": "no",
        "looked_at": "2026-06-15T07:00:00Z",
        "step": {
          "on": {
            "small": false
          }
        }
      },
      "resource": "server/1",
      "revision": 0,
      "tags": []
    }
    "#);
}

#[test]
fn the_form_of_a_stuck_record() {
    let record = Record {
        phase: Phase::Stuck {
            transition: transition(Direction::Stop),
            since: monday(),
            reason: "not seen within 10 minutes".to_owned(),
        },
        request: Some(Request {
            direction: Direction::Stop,
            asked_at: monday(),
            looked_at: monday(),
            ask: Ask::Open,
            earlier_unanswered: false,
            forced: Forced::Intended,
            effect_timeout: None,
            first_accepted_at: None,
            step: Step::Off { gracefully: true },
            created_machine: None,
            problem: None,
        }),
        opposite: Some(Opposite { until: monday(), may_become: None }),
        permit: Some(Permit { until: monday(), writer: Writer("stop-7".to_owned()) }),
        ..server(1)
    };
    assert_snapshot!(stored(&record), @r#"
    {
      "account": "hz-eu",
      "format": 1,
      "name": "web",
      "opposite": {
        "until": "2026-06-15T07:00:00Z"
      },
      "opted_in": false,
      "permit": {
        "until": "2026-06-15T07:00:00Z",
        "writer": "stop-7"
      },
      "phase": {
        "name": "stuck",
        "reason": "not seen within 10 minutes",
        "since": "2026-06-15T07:00:00Z",
        "transition": {
          "cause": "schedule",
          "claimed_at": "2026-06-15T19:00:01.5Z",
          "direction": "stop",
          "method": "graceful",
          "schedule": "office-hours"
        }
      },
      "plan": "cx22",
      "reference": "hz-eu/server/1",
      "region": "fsn1",
      "request": {
        "ask": {
          "state": "open"
        },
        "asked_at": "2026-06-15T07:00:00Z",
        "direction": "stop",
        "forced": "intended",
        "looked_at": "2026-06-15T07:00:00Z",
        "step": {
          "off": {
            "gracefully": true
          }
        }
      },
      "resource": "server/1",
      "revision": 0,
      "tags": []
    }
    "#);
}

#[test]
fn the_form_of_a_gone_record() {
    let record = Record {
        phase: Phase::Gone { since: monday() },
        saved: Some(SavedState::Database {
            plan: "db-s-2vcpu-4gb".to_owned(),
            nodes: 2,
            storage_mib: Some(61_440),
        }),
        handled: Some(Handled {
            generation: Generation(3),
            key: EdgeKey { instant: monday(), rank: Rank::OverrideEnded },
            desired: None,
            schedule: None,
        }),
        ..server(1)
    };
    assert_snapshot!(stored(&record), @r#"
    {
      "account": "hz-eu",
      "format": 1,
      "handled": {
        "generation": 3,
        "key": {
          "instant": "2026-06-15T07:00:00Z",
          "rank": "override-ended"
        }
      },
      "name": "web",
      "opted_in": false,
      "phase": {
        "name": "gone",
        "since": "2026-06-15T07:00:00Z"
      },
      "plan": "cx22",
      "reference": "hz-eu/server/1",
      "region": "fsn1",
      "resource": "server/1",
      "revision": 0,
      "saved": {
        "kind": "database",
        "nodes": 2,
        "plan": "db-s-2vcpu-4gb",
        "storage_mib": 61440
      },
      "tags": []
    }
    "#);
}

#[test]
fn the_form_of_a_finished_transition() {
    let entry = HistoryEntry {
        ending: Ending::Refused,
        reason: Some("no".to_owned()),
        schedule: Some(office_hours_name()),
        accepted_at: Some(monday()),
        saved: Some(SavedState::Machine(MachineSize {
            plan: "cx22".to_owned(),
            vcpus: 2,
            memory_mib: 4096,
            disk_gib: 40,
            architecture: Some("x86".to_owned()),
            network_storage: false,
        })),
        ..ended(&reference("hz-eu/server/1"), 0)
    };
    let item = entry.to_item().unwrap();
    assert_eq!(HistoryEntry::of_item(item.clone()).unwrap(), entry);
    assert_snapshot!(shown(&item), @r#"
    {
      "accepted_at": "2026-06-15T07:00:00Z",
      "asked_at": "2026-06-15T07:00:00Z",
      "cause": {
        "manual": {
          "by": "ada"
        }
      },
      "claimed_at": "2026-06-15T07:00:00Z",
      "direction": "stop",
      "ending": "refused",
      "expires_at": 1789282890,
      "finished_at": "2026-06-15T07:01:30Z",
      "forced": true,
      "format": 1,
      "name": "web",
      "reason": "no",
      "reference": "hz-eu/server/1",
      "saved": {
        "architecture": "x86",
        "disk_gib": 40,
        "kind": "machine",
        "memory_mib": 4096,
        "plan": "cx22",
        "vcpus": 2
      },
      "schedule": "office-hours",
      "transition": "00000001781506800000#stop"
    }
    "#);
}

#[test]
fn the_forms_of_the_endings() {
    let endings = [
        Ending::Seen,
        Ending::AlreadyThere,
        Ending::WouldHave,
        Ending::Refused,
        Ending::Stuck,
        Ending::Superseded,
        Ending::Released,
        Ending::Reversed,
        Ending::Resized,
        Ending::Gone,
        Ending::Forgotten,
    ];
    let stored = endings.map(|ending| {
        let entry = HistoryEntry { ending, ..ended(&reference("hz-eu/server/1"), 0) };
        let item = entry.to_item().unwrap();
        item["ending"].as_s().unwrap().clone()
    });
    assert_snapshot!(stored.join(" "), @"seen already-there would-have refused stuck superseded released reversed resized gone forgotten");
}

#[test]
fn the_forms_of_the_causes() {
    let by = "ada".to_owned();
    let causes = [Cause::Schedule, Cause::OverrideSet, Cause::OverrideEnded, Cause::Manual { by }];
    let stored: Item = causes
        .map(|cause| {
            let key = cause.rank();
            let entry = HistoryEntry { cause, ..ended(&reference("hz-eu/server/1"), 0) };
            let mut item = entry.to_item().unwrap();
            (format!("{key:?}"), item.remove("cause").unwrap())
        })
        .into();
    assert_snapshot!(shown(&stored), @r#"
    {
      "Manual": {
        "manual": {
          "by": "ada"
        }
      },
      "OverrideEnded": "override-ended",
      "OverrideSet": "override-set",
      "Schedule": "schedule"
    }
    "#);
}

#[test]
fn the_form_of_the_head() {
    let head =
        Head { generation: Generation(3), author: "ada".to_owned(), applied_at: Some(monday()) };
    let item = head.to_item().unwrap();
    assert_eq!(Head::of_item(item.clone()).unwrap(), head);
    assert_snapshot!(shown(&item), @r#"
    {
      "applied_at": "2026-06-15T07:00:00Z",
      "author": "ada",
      "format": 1,
      "generation": 3,
      "generation_key": "head",
      "name": "head"
    }
    "#);
}

#[test]
fn the_form_of_a_line_in_the_log() {
    let entry = LogEntry {
        generation: Generation(3),
        author: "ada".to_owned(),
        applied_at: monday(),
        repeats: Some(Generation(1)),
    };
    let item = entry.to_item().unwrap();
    assert_eq!(LogEntry::of_item(item.clone()).unwrap(), entry);
    assert_snapshot!(shown(&item), @r#"
    {
      "applied_at": "2026-06-15T07:00:00Z",
      "author": "ada",
      "format": 1,
      "generation": 3,
      "generation_key": "log",
      "name": "generation#000000000003",
      "repeats": 1
    }
    "#);
}

#[test]
fn the_forms_of_overrides() {
    let targets = [
        OverrideTarget::Resource(reference("hz-eu/server/1")),
        OverrideTarget::Schedule(office_hours_name()),
    ];
    let stored = targets.map(|target| {
        let one = Override {
            target,
            desired: Desired::Running,
            set_at: monday(),
            ends_at: at("2026-06-15T09:00:00Z"),
            by: "ada".to_owned(),
            why: Some("a demonstration".to_owned()),
            before: None,
        };
        let item = one.to_item().unwrap();
        assert_eq!(Override::of_item(item.clone()).unwrap(), one);
        shown(&item)
    });
    assert_snapshot!(stored.join("\n"), @r#"
    {
      "by": "ada",
      "desired": "running",
      "ends_at": "2026-06-15T09:00:00Z",
      "format": 1,
      "generation_key": "override",
      "name": "hz-eu/server/1",
      "set_at": "2026-06-15T07:00:00Z",
      "target": {
        "resource": "hz-eu/server/1"
      },
      "why": "a demonstration"
    }
    {
      "by": "ada",
      "desired": "running",
      "ends_at": "2026-06-15T09:00:00Z",
      "format": 1,
      "generation_key": "override",
      "name": "schedule office-hours",
      "set_at": "2026-06-15T07:00:00Z",
      "target": {
        "schedule": "office-hours"
      },
      "why": "a demonstration"
    }
    "#);
}

#[test]
fn the_form_of_the_settings() {
    let settings =
        Settings { protect: vec!["name:*prod*".parse().unwrap()], ..Settings::default() };
    let one = ConfigurationItem::Settings(Box::new(settings.clone()));
    let item = one.in_generation(Generation(3)).to_item().unwrap();
    match ConfigurationPart::of_item(item.clone()).unwrap().body {
        ConfigurationItem::Settings(read) => assert_eq!(*read, settings),
        ConfigurationItem::Schedule { schedule, .. } => panic!("{schedule} is not the settings"),
    }
    assert_snapshot!(shown(&item), @r#"
    {
      "body": {
        "settings": {
          "protect": [
            "name:*prod*"
          ]
        }
      },
      "format": 1,
      "generation_key": "generation#000000000003",
      "name": "settings"
    }
    "#);
}

#[test]
fn the_form_of_a_schedule() {
    let mut rule = office_hours();
    rule.resources.insert(reference("hz-eu/server/1").into());
    rule.policy.stop_nodes = Some(1);
    let one = ConfigurationItem::Schedule { schedule: office_hours_name(), rule: Box::new(rule) };
    let item = one.in_generation(Generation(3)).to_item().unwrap();
    assert_snapshot!(shown(&item), @r#"
    {
      "body": {
        "schedule": {
          "rule": {
            "resources": [
              "hz-eu/server/1"
            ],
            "schedule": {
              "periods": [
                {
                  "begin": "08:00",
                  "end": "19:00",
                  "weekdays": "mon-fri"
                }
              ],
              "timezone": "UTC"
            },
            "stop_nodes": 1
          },
          "schedule": "office-hours"
        }
      },
      "format": 1,
      "generation_key": "generation#000000000003",
      "name": "schedule#office-hours"
    }
    "#);
}

#[test]
fn the_form_of_an_account() {
    let account = CloudAccount {
        datacenters: vec!["fsn1-dc14".parse().unwrap()],
        mode: Mode::Observe,
        url: Some("http://127.0.0.1:8080".to_owned()),
        read_token: Some("ssm:/offhours/hz-eu-read".parse().unwrap()),
        ..hetzner()
    };
    let account = Account::from(account);
    let name: AccountName = "hz-eu".parse().unwrap();
    let part = AccountPart { generation: Generation(3), name: name.clone(), body: account.clone() };
    let item = part.to_item().unwrap();
    let read = AccountPart::of_item(item.clone()).unwrap();
    assert_eq!((read.name, read.body), (name, account));
    assert_snapshot!(shown(&item), @r#"
    {
      "body": {
        "datacenters": [
          "fsn1-dc14"
        ],
        "mode": "observe",
        "provider": "hetzner",
        "read_token": "ssm:/offhours/hz-eu-read",
        "token": "ssm:/offhours/hz-eu",
        "url": "http://127.0.0.1:8080"
      },
      "format": 1,
      "generation_key": "generation#000000000003",
      "name": "hz-eu"
    }
    "#);
}

#[tokio::test]
async fn the_form_of_what_was_learnt_of_an_account() {
    let world = World::new().await;
    let state = AccountState {
        account: "hz-eu".parse().unwrap(),
        listed_at: Some(monday()),
        tried_at: Some(at("2026-06-15T07:05:00Z")),
        error: Some("token refused".into()),
        token_fails: true,
        tagless_since: Some(monday()),
        cost: Some(ListCost {
            requests: [(ResourceKind::Server, 100)].into(),
            databases: 4,
            took: SignedDuration::from_secs(13),
        }),
        rate: Some(pacing::RateLimit { remaining: 3500, at: monday(), limit: None, others: None }),
        prices_due_at: None,
        spent: Vec::new(),
        spent_revision: 0,
    };
    world.store().save_account_state(&state).await.unwrap();
    let items = world.items(&World::tables().accounts).await;
    assert_eq!(AccountState::of_item(items[0].clone()).unwrap(), state);
    assert_snapshot!(shown(&items[0]), @r#"
    {
      "account": "hz-eu",
      "cost": {
        "databases": 4,
        "requests": {
          "server": 100
        },
        "took": "PT13S"
      },
      "error": {
        "what": "token refused"
      },
      "format": 1,
      "generation_key": "state",
      "listed_at": "2026-06-15T07:00:00Z",
      "name": "hz-eu",
      "rate": {
        "at": "2026-06-15T07:00:00Z",
        "remaining": 3500
      },
      "rate_ms": 1781506800000,
      "tagless_since": "2026-06-15T07:00:00Z",
      "token_fails": true,
      "tried_at": "2026-06-15T07:05:00Z"
    }
    "#);
}

#[tokio::test]
async fn the_form_of_the_prices_of_an_account() {
    let world = World::new().await;
    let eur = |text| Money::parse(text, Currency::Eur).unwrap();
    let mut list = PriceList::new(Currency::Eur, monday(), Some(eur("0.0143")));
    list.add("cpx22", Some("fsn1"), prices::Rate { hourly: eur("0.0312"), monthly: eur("19.49") });
    let priced = AccountPrices { account: "hz-eu".parse().unwrap(), list };
    let store = world.store();
    store.save_prices(&priced).await.unwrap();
    let read = store.prices().await.unwrap().read;
    assert!(read.values().eq([&priced]));
    let items = world.items(&World::tables().accounts).await;
    assert_snapshot!(shown(&items[0]), @r#"
    {
      "account": "hz-eu",
      "format": 1,
      "generation_key": "prices",
      "list": {
        "currency": "EUR",
        "plans": {
          "cpx22": [
            {
              "hourly": "0.0312",
              "monthly": "19.49",
              "regions": [
                "fsn1"
              ]
            }
          ]
        },
        "read_at": "2026-06-15T07:00:00Z",
        "snapshot_gb_month": "0.0143"
      },
      "name": "hz-eu"
    }
    "#);
}

#[tokio::test]
async fn the_form_of_what_was_reported_of_a_schedule() {
    let world = World::new().await;
    let reported_edge = ReportedEdge {
        report: EdgeReport::Digest,
        schedule: office_hours_name(),
        edge: monday(),
        turn: 0,
        by: "poll-status-7 at 2026-06-15T07:08:00Z".to_owned(),
    };
    assert!(world.store().claim_report(&reported_edge).await.unwrap());
    let stored = world.items(&World::tables().accounts).await.remove(0);
    assert_eq!(reported_edge.to_item().unwrap(), stored);
    assert_eq!(ReportedEdge::of_item(stored.clone()).unwrap(), reported_edge);
    assert_snapshot!(shown(&stored), @r#"
    {
      "by": "poll-status-7 at 2026-06-15T07:08:00Z",
      "edge": "2026-06-15T07:00:00Z",
      "edge_ms": 1781506800000,
      "format": 1,
      "generation_key": "digest",
      "name": "office-hours",
      "schedule": "office-hours",
      "turn": 0
    }
    "#);
}

/// Returns the result of reading a record whose stored item was changed; the item stays as it is.
async fn read_after(change: impl FnOnce(&mut Item)) -> Result<Option<Record>, StoreError> {
    let world = World::new().await;
    let saved = world.store().save(due_server(1, monday())).await.unwrap();
    let mut item = world.stored(&saved).await;
    change(&mut item);
    world.put(&World::tables().resources, item.clone()).await;

    let store = world.store();
    let read = store.record(&saved.reference).await;
    let batch = store.records(slice::from_ref(&saved.reference)).await;
    let of_account = store.records_of(&saved.reference.account).await;
    let due = store.due(monday()).await;
    for several in [batch, of_account, due] {
        let several = several.unwrap();
        match &read {
            Ok(one) => assert_eq!(several.read.first(), one.as_ref()),
            Err(error) => {
                assert_eq!(several.read, []);
                let [unreadable] = &several.unreadable[..] else {
                    panic!("{several:?}");
                };
                assert_eq!(unreadable.reference, saved.reference.to_string());
                assert_eq!(unreadable.source.to_string(), error.to_string());
            }
        }
    }
    let unread = Record { revision: Revision(0), ..saved.clone() };
    let overwritten = store.save(unread).await;
    assert!(matches!(overwritten, Err(StoreError::Stale { .. })));
    assert_eq!(world.stored(&saved).await, item);
    read
}

#[tokio::test]
async fn a_record_in_a_newer_format_is_refused_and_left_alone() {
    let read = read_after(|item| {
        item.insert("format".to_owned(), AttributeValue::N("99".to_owned()));
    });
    assert!(matches!(read.await, Err(StoreError::Format(Some(99)))));
}

#[tokio::test]
async fn a_record_without_a_format_is_refused_and_left_alone() {
    let read = read_after(|item| {
        item.remove("format");
    });
    assert!(matches!(read.await, Err(StoreError::Format(None))));
}

#[tokio::test]
async fn a_record_that_breaks_its_formats_promise_is_refused_and_left_alone() {
    let read = read_after(|item| {
        item.remove("phase");
    });
    assert!(matches!(read.await, Err(StoreError::Malformed(_))));
}

#[tokio::test]
async fn fields_of_a_later_program_do_not_hinder_an_older_one() {
    fn add(item: &mut Item) {
        let later = AttributeValue::S("of a later program".to_owned());
        item.insert("a_later_field".to_owned(), later);
    }
    let read = read_after(|item| {
        add(item);
        let Some(AttributeValue::M(phase)) = item.get_mut("phase") else {
            panic!("the phase is a map");
        };
        add(phase);
    });
    let expected = Record { revision: Revision(1), ..due_server(1, monday()) };
    assert_eq!(read.await.unwrap(), Some(expected));
}

#[tokio::test]
async fn a_record_in_a_newer_format_keeps_no_other_from_being_read() {
    let world = World::new().await;
    let store = world.store();
    let mut saved = Vec::new();
    for number in 1..=3 {
        saved.push(store.save(due_server(number, monday())).await.unwrap());
    }
    let mut newer = world.stored(&saved[1]).await;
    newer.insert("format".to_owned(), AttributeValue::N("99".to_owned()));
    world.put(&World::tables().resources, newer).await;
    let references: Vec<_> = saved.iter().map(|r| r.reference.clone()).collect();
    let account = "hz-eu".parse().unwrap();
    for found in [
        store.due(monday()).await.unwrap(),
        store.records(&references).await.unwrap(),
        store.records_of(&account).await.unwrap(),
    ] {
        let mut read = found.read;
        read.sort_by(|left, right| left.reference.cmp(&right.reference));
        assert_eq!(read, [saved[0].clone(), saved[2].clone()]);
        let left: Vec<_> = found.unreadable.iter().map(|one| &*one.reference).collect();
        assert_eq!(left, ["hz-eu/server/2"]);
    }
}

#[tokio::test]
async fn a_configuration_in_a_newer_format_is_refused_whole() {
    let world = World::new().await;
    let configuration = Configuration {
        schedules: [(office_hours_name(), office_hours())].into(),
        ..crate::fixtures::without_schedules()
    };
    let store = world.store();
    store.apply(&configuration, "ada", monday()).await.unwrap();
    let override_of_a_server = Override {
        target: OverrideTarget::Resource(reference("hz-eu/server/1")),
        desired: Desired::Running,
        set_at: monday(),
        ends_at: at("2026-06-15T09:00:00Z"),
        by: "ada".to_owned(),
        why: None,
        before: None,
    };
    let set = set_override(&store, &override_of_a_server, monday());
    set.await.unwrap();
    let (schedules, accounts) = (World::tables().schedules, World::tables().accounts);
    for table in [schedules, accounts] {
        let items = world.items(&table).await.into_iter();
        // The log is for people: what is in force does not depend on it.
        let holding = items.filter(|item| item["generation_key"] != item::text(item::LOG));
        for mut item in holding {
            let known = item.clone();
            item.insert("format".to_owned(), AttributeValue::N("99".to_owned()));
            world.put(&table, item).await;
            let read = world.store().in_force().await;
            let Err(StoreError::Configuration { item, source }) = read else {
                panic!("{known:?} was not needed");
            };
            assert_eq!(item, item::name(&known));
            assert!(matches!(*source, StoreError::Format(Some(99))));
            world.put(&table, known).await;
        }
    }
    world.store().in_force().await.unwrap();
}
