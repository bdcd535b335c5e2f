//! What is published: events in the shape of their schemas, metrics that CloudWatch accepts, and a
//! bus whose failures do no harm.

use std::{
    collections::BTreeMap,
    fs,
    sync::{Arc, Mutex},
    time::Duration,
};

use aws_sdk_dynamodb::config::{AsyncSleep, Sleep};
use axum::{Json, Router, http::HeaderMap};
use domain::{
    activity::Activity,
    digest::{Digest, Named, Slowest},
    event_type::EventType,
    money::Currency,
    notice::StopNotice,
    prices::Price,
    stop_method::StopMethod,
};
use environment::{
    BusEvent, EventBus, Metric, Metrics, Publish, SteppedClock, aws::local_config, bus,
    bus::BusName,
};
use jsonschema::Validator;
use lifecycle::{
    Listener, Occurrence, Report,
    report::{Log, bus_event, health::Health, publishing},
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::{
    process::{PanicOnInvoke, PollStatus, timer},
    support::{
        ACCOUNTS, NIGHTS, TOKENS, World, any_port, dispatch, droplet, instant, monday,
        office_hours, root, run, run_logged, serve,
    },
};

/// The schemas of `infra/events/`, by detail type.
pub(crate) fn schemas() -> BTreeMap<String, Validator> {
    let folder = fs::read_dir(root().join("infra/events")).unwrap();
    let schemas = folder.map(|file| {
        let path = file.unwrap().path();
        let schema: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert!(jsonschema::draft202012::meta::is_valid(&schema));
        let title = schema["title"].as_str().unwrap();
        let name = format!("{}.schema.json", title.to_lowercase().replace(' ', "-"));
        assert!(path.ends_with(&name), "{} is not {name}", path.display());
        let validator =
            jsonschema::draft202012::options().should_validate_formats(true).build(&schema);
        (title.to_owned(), validator.unwrap())
    });
    schemas.collect()
}

/// Fails if the event of an outcome does not have the shape that its schema promises.
#[track_caller]
pub(crate) fn check_bus_event(schemas: &BTreeMap<String, Validator>, outcome: &Occurrence) {
    let mut events = bus_event::Events::default();
    // The last of these is folded, if its kind is.
    let published = (0..6).filter_map(|_| events.of_outcome("offhours", outcome));
    let mut published: Vec<_> = published.collect();
    published.extend(events.of_folded("offhours"));
    for event in published {
        let detail = serde_json::from_str(&event.detail).unwrap();
        if let Err(error) = schemas[event.event_type.detail_type()].validate(&detail) {
            panic!("{detail:#} at {}: {error}", error.instance_path());
        }
    }
}

/// Outcomes of each detail type, as in reports. The first has all the optional fields.
const OUTCOMES: &str = r#"[
    {"event": "seen", "direction": "stop", "cause": {"manual": {"by": "ada"}}, "seconds": 42,
     "forced": true, "saved": {"kind": "node-pool", "count": 3, "autoscale": {"min": 1, "max": 5}},
     "follows": "office"},
    {"event": "gone"},
    {"event": "forced", "request": "power_off droplet/1", "answer": "accepted"},
    {"event": "refused", "direction": "start", "cause": "override-ended",
     "reason": {"what": "no capacity"}},
    {"event": "stuck", "direction": "stop", "cause": "schedule", "reason": "not seen"},
    {"event": "order-not-kept", "direction": "start", "reason": "orders (starting, 15m)"},
    {"event": "orphaned"},
    {"event": "conflict", "reason": "conflict: office and night both name it by its own tag"},
    {"event": "held", "count": 2, "resources": [
        {"resource": "do-main/droplet/1", "name": "web", "schedule": "office"},
        {"resource": "do-main/database/d1", "name": "orders"}]}
]"#;

fn outcomes() -> Vec<Occurrence> {
    let Value::Array(outcomes) = serde_json::from_str(OUTCOMES).unwrap() else {
        panic!("no list");
    };
    let outcomes = outcomes.into_iter().map(|mut outcome| {
        outcome["at"] = json!("2026-11-23T18:00:00Z");
        if outcome["event"] == "held" {
            outcome["account"] = json!("do-main");
        } else {
            outcome["resource"] = json!("do-main/node-pool/c1/p1");
            outcome["name"] = json!("general");
        }
        serde_json::from_value(outcome).unwrap()
    });
    outcomes.collect()
}

fn digest() -> Digest {
    let web = "do-main/droplet/1".parse().unwrap();
    Digest {
        schedule: "office".parse().unwrap(),
        edge: monday("18:00:00"),
        desired: domain::schedule::Desired::Stopped,
        at: monday("18:09:00"),
        followed: 14,
        asked: 13,
        seen: 12,
        already: 1,
        left: 0,
        would: 0,
        paused: 0,
        refused: 1,
        stuck: 0,
        overtaken: 0,
        unfinished: 0,
        methods: BTreeMap::from([(StopMethod::PowerOff, 9), (StopMethod::Resize, 2)]),
        slowest: Some(Slowest {
            resource: "do-main/database/d1".parse().unwrap(),
            name: "orders".to_owned(),
            seconds: 480,
        }),
        not_seen: vec![Named { name: "web".to_owned(), resource: web }],
        next_edge_at: Some(instant("2026-11-24T07:00:00Z")),
        next_desired: Some(domain::schedule::Desired::Running),
        saves: BTreeMap::from([(Currency::Usd, Price::parse("4.2").unwrap())]),
        unpriced: 1,
        timezone: "Europe/Berlin".to_owned(),
    }
}

/// A notice that has all the optional fields, and one of a stop that is called off.
fn notices() -> [StopNotice; 2] {
    let web = "do-main/droplet/1".parse().unwrap();
    let announced = StopNotice {
        schedule: "office".parse().unwrap(),
        edge: monday("18:00:00"),
        at: monday("17:45:00"),
        count: 1,
        resources: vec![Named { name: "web".to_owned(), resource: web }],
        keep: vec!["the tag offhours-until:2h".to_owned()],
        next_start_at: Some(instant("2026-11-24T07:00:00Z")),
        timezone: "Europe/Berlin".to_owned(),
    };
    let called_off = StopNotice {
        count: 0,
        resources: Vec::new(),
        keep: Vec::new(),
        next_start_at: None,
        ..announced.clone()
    };
    [announced, called_off]
}

/// What persons do, of each detail type. The first of each has all the optional fields.
const ACTIVITIES: &str = r#"[
    {"by": {"name": "platform/ada", "arn": "arn:aws:sts::111122223333:assumed-role/platform/ada",
            "shell": "boss"}, "why": "release \"night\"",
     "action": {"override-set": {"target": {"resource": "do-main/droplet/1"}, "desired": "running",
                                 "ends_at": "2026-11-23T21:00:00Z"}}},
    {"by": {"name": "ada"}, "why": "done",
     "action": {"override-cleared": {"target": {"schedule": "office"}}}},
    {"by": {"name": "ada"}, "why": "shorter Fridays",
     "action": {"applied": {"generation": 3, "repeats": 1,
                            "changes": ["protect: without \"tag:live\"", "schedule office added"]}}},
    {"by": {"name": "ada"},
     "action": {"override-set": {"target": {"schedule": "office"}, "desired": "stopped",
                                 "ends_at": "2026-11-23T21:00:00Z"}}},
    {"by": {"name": "ada"}, "action": {"applied": {"generation": 1}}},
    {"by": {"name": "ada"}, "why": "release night",
     "action": {"paused": {"scope": "everything", "starts": false,
                           "ends_at": "2026-11-23T21:00:00Z"}}},
    {"by": {"name": "ada"}, "why": "load test",
     "action": {"paused": {"scope": {"tag": "tag:team:web"}, "starts": true,
                           "ends_at": "2026-11-23T21:00:00Z"}}},
    {"by": {"name": "ada"}, "action": {"resumed": {"scope": {"account": "hz-eu"}}}}
]"#;

fn activities() -> Vec<Activity> {
    let Value::Array(activities) = serde_json::from_str(ACTIVITIES).unwrap() else {
        panic!("no list");
    };
    let activities = activities.into_iter().map(|mut activity| {
        activity["at"] = json!("2026-11-23T18:00:00Z");
        serde_json::from_value(activity).unwrap()
    });
    activities.collect()
}

#[test]
fn what_a_person_did_is_told_in_one_line() {
    let texts = activities().into_iter().map(|activity| {
        let event = bus_event::of_activity("offhours", &activity).unwrap();
        let detail: Value = serde_json::from_str(&event.detail).unwrap();
        detail["text"].as_str().unwrap().to_owned()
    });
    let texts: Vec<_> = texts.collect();
    assert_eq!(
        texts[..3],
        [
            "do-main/droplet/1 is overridden by platform/ada (boss): running until Mon 2026-11-23 \
             21:00 UTC (release 'night')",
            "the override of schedule office is cleared by ada (done)",
            "generation 3 is applied by ada, a rollback to generation 1: protect: without \
             'tag:live'; schedule office added (shorter Fridays)",
        ]
    );
    assert_eq!(
        texts[5..],
        [
            "everything is paused by ada until Mon 2026-11-23 21:00 UTC (release night)",
            "tag:team:web is paused by ada until Mon 2026-11-23 21:00 UTC, except for starts (load \
             test)",
            "the pause of account hz-eu is ended by ada",
        ]
    );
}

/// Keeps the events that it is given.
#[derive(Default)]
struct RecordedEvents(Mutex<Vec<BusEvent>>);

impl Publish for RecordedEvents {
    async fn publish(&self, events: &[BusEvent]) -> Result<Vec<bus::Refusal>, bus::PublishError> {
        self.0.lock().unwrap().extend_from_slice(events);
        Ok(Vec::new())
    }
}

#[test]
fn every_kind_of_event_has_the_shape_of_its_schema() {
    run(async {
        let schemas = schemas();
        let kept = RecordedEvents::default();
        let ((), _) = publishing(&kept, "offhours", &Log, async |listener: &dyn Listener| {
            // So many of each kind that the last ones are folded.
            for outcome in std::iter::repeat_n(outcomes(), 6).flatten() {
                listener.happened(&outcome);
            }
            listener.edge_completed(&digest());
            for notice in notices() {
                listener.stop_noticed(&notice);
            }
            for activity in activities() {
                listener.changed(&activity);
            }
        })
        .await;
        let mut sent: Vec<_> = schemas.keys().cloned().collect();
        for event in kept.0.into_inner().unwrap() {
            let mut detail: Value = serde_json::from_str(&event.detail).unwrap();
            let schema = &schemas[event.event_type.detail_type()];
            if let Err(error) = schema.validate(&detail) {
                panic!("{detail:#} at {}: {error}", error.instance_path());
            }
            detail["more"] = json!(1);
            assert!(!schema.is_valid(&detail), "{detail:#}");
            sent.retain(|title| title != event.event_type.detail_type());
        }
        assert!(sent.is_empty(), "never sent: {sent:?}");
    });
}

/// Checks the line that CloudWatch would read, and returns it.
fn check_metrics(metrics: &Metrics) -> Value {
    let schema = fs::read(root().join("tests/schemas/embedded-metric-format.schema.json"));
    let schema: Value = serde_json::from_slice(&schema.unwrap()).unwrap();
    let schema = jsonschema::draft202012::new(&schema).unwrap();
    let line = metrics.line("offhours", monday("18:00:00")).unwrap();
    assert!(!line.contains('\n'));
    let line: Value = serde_json::from_str(&line).unwrap();
    if let Err(error) = schema.validate(&line) {
        panic!("{line:#} at {}: {error}", error.instance_path());
    }
    let directive = &line["_aws"]["CloudWatchMetrics"][0];
    let named = directive["Metrics"].as_array().unwrap();
    for metric in named {
        let value = &line[metric["Name"].as_str().unwrap()];
        assert!(!value.is_null(), "{metric} has no value");
    }
    // A member that no directive names would not be a metric.
    assert_eq!(line.as_object().unwrap().len(), named.len() + 2);
    line
}

#[test]
fn what_is_counted_has_the_form_that_cloudwatch_reads() {
    run(async {
        let account = "do-main".parse().unwrap();
        let ((), metrics) = publishing(
            &RecordedEvents::default(),
            "offhours",
            &Log,
            async |listener: &dyn Listener| {
                let stuck = Health::from_iter([Metric::Stuck; 3]);
                listener.counted(&account, &stuck);
                listener.counted(&account, &Health::default());
                for outcome in outcomes() {
                    listener.happened(&outcome);
                }
            },
        )
        .await;
        let line = check_metrics(&metrics);
        assert_eq!(line["Seen"], 1);
        assert_eq!(line["Failed"], json!([0, 0]));
        assert_eq!(line["Stuck"], json!([3, 0, 1]), "the stop just stuck, too");
        assert_eq!(line["Asked"], Value::Null, "nothing was asked");
    });
}

#[test]
fn what_is_only_asked_about_is_neither_published_nor_measured() {
    run(async {
        let kept = RecordedEvents::default();
        let ((), metrics) = publishing(&kept, "offhours", &Log, async |listener: &dyn Listener| {
            for outcome in outcomes() {
                listener.answered(&outcome);
            }
        })
        .await;
        assert_eq!(metrics, Metrics::default());
        assert_eq!(kept.0.into_inner().unwrap(), []);
    });
}

#[test]
fn what_was_reported_before_the_work_failed_is_delivered() {
    run(async {
        let kept = RecordedEvents::default();
        let (result, _) = publishing(&kept, "offhours", &Log, async |listener: &dyn Listener| {
            listener.happened(&outcomes()[3]);
            Err::<(), _>("the store failed")
        })
        .await;
        result.unwrap_err();
        let kept = kept.0.into_inner().unwrap();
        let types: Vec<_> = kept.iter().map(|event| event.event_type).collect();
        assert_eq!(types, [EventType::TransitionRefused]);
    });
}

#[test]
fn a_failure_does_not_wait_for_the_end_of_the_work() {
    run(async {
        let kept = RecordedEvents::default();
        publishing(&kept, "offhours", &Log, async |listener: &dyn Listener| {
            listener.happened(&outcomes()[4]);
            // Stands for an observation, or for the wait until the next one.
            tokio::task::yield_now().await;
            let kept = kept.0.lock().unwrap();
            assert_eq!(kept[0].event_type, EventType::TransitionStuck);
        })
        .await;
    });
}

/// A server that answers as EventBridge does, and keeps the bodies of the requests.
struct Bridge {
    url: String,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl Bridge {
    /// Accepts all events except those of these detail types.
    async fn refusing(types: &'static [&'static str]) -> Self {
        let requests: Arc<Mutex<Vec<Value>>> = Arc::default();
        let kept = Arc::clone(&requests);
        let answer = move |headers: HeaderMap, body: axum::body::Bytes| {
            let kept = Arc::clone(&kept);
            async move {
                assert_eq!(headers["x-amz-target"], "AWSEvents.PutEvents");
                let request: Value = serde_json::from_slice(&body).unwrap();
                let entries = request["Entries"].as_array().unwrap();
                let refused =
                    |entry: &Value| types.contains(&entry["DetailType"].as_str().unwrap());
                let count = entries.iter().filter(|entry| refused(entry)).count();
                let results = entries.iter().map(|entry| {
                    if refused(entry) {
                        json!({"ErrorCode": "ThrottlingException", "ErrorMessage": "slow down"})
                    } else {
                        json!({"EventId": "1"})
                    }
                });
                let results: Vec<_> = results.collect();
                kept.lock().unwrap().push(request);
                Json(json!({"FailedEntryCount": count, "Entries": results}))
            }
        };
        let address = serve(Router::new().fallback(answer)).await;
        let url = format!("http://{address}");
        Self { url, requests }
    }

    fn bus(&self) -> EventBus {
        EventBus::connect(&local_config(&self.url), BusName::new("offhours").unwrap())
    }

    fn entries(&self) -> Vec<Value> {
        let requests = self.requests.lock().unwrap();
        let entries = requests.iter().map(|r| r["Entries"].as_array().unwrap());
        entries.flatten().cloned().collect()
    }
}

fn events(count: usize) -> mpsc::UnboundedReceiver<BusEvent> {
    let (sender, receiver) = mpsc::unbounded_channel();
    for number in 0..count {
        let event = BusEvent {
            at: monday("18:00:00"),
            event_type: EventType::TransitionFinished,
            detail: json!({ "number": number }).to_string(),
        };
        sender.send(event).unwrap();
    }
    receiver
}

#[test]
fn events_reach_the_bus_in_order_ten_at_a_time() {
    run(async {
        let bridge = Bridge::refusing(&[]).await;
        bus::deliver(events(23), &bridge.bus()).await;
        let entries = bridge.entries();
        for (number, entry) in entries.iter().enumerate() {
            assert_eq!(entry["EventBusName"], "offhours");
            assert_eq!(entry["Source"], "offhours");
            assert_eq!(entry["DetailType"], "Transition Finished");
            assert_eq!(entry["Time"], 1_795_456_800);
            assert_eq!(entry["Detail"], json!({ "number": number }).to_string());
        }
        let requests = bridge.requests.lock().unwrap();
        let sizes = requests.iter().map(|r| r["Entries"].as_array().unwrap().len());
        let sizes: Vec<_> = sizes.collect();
        assert_eq!(sizes, [10, 10, 3]);
    });
}

/// A timer for the SDK that ends every wait immediately, and records it.
#[derive(Debug, Clone, Default)]
struct RecordedWaits(Arc<Mutex<Vec<Duration>>>);

impl AsyncSleep for RecordedWaits {
    fn sleep(&self, duration: Duration) -> Sleep {
        self.0.lock().unwrap().push(duration);
        Sleep::new(tokio::task::yield_now())
    }
}

#[test]
fn a_bus_that_does_not_answer_is_waited_for_only_so_long() {
    let ((), logged) = run_logged(async {
        let listener = tokio::net::TcpListener::bind(any_port()).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        // The connection is never accepted, and every wait for it ends immediately.
        let waits = RecordedWaits::default();
        let config = local_config(&url).into_builder();
        let config = config.sleep_impl(waits.clone()).build();
        let bus = EventBus::connect(&config, BusName::new("offhours").unwrap());
        bus::deliver(events(31), &bus).await;
        // Two requests, each with its retries: at most four seconds for each.
        let patience = Duration::from_secs(4);
        let waits = waits.0.lock().unwrap();
        let requests = waits.iter().filter(|wait| **wait == patience);
        assert_eq!(requests.count(), 2, "{waits:?}");
    });
    let lost = logged.matches("Could not publish an event, Transition Finished");
    assert_eq!(lost.count(), 31, "{logged}");
}

#[test]
fn a_bus_that_refuses_events_harms_nothing_but_the_events() {
    let ((), logged) = run_logged(async {
        let configuration = office_hours("", "", NIGHTS);
        let fleet = format!(
            "{ACCOUNTS}{}{}",
            droplet(1, "web", &["offhours:office", "offhours:nights"]),
            droplet(2, "ci", &["offhours:office"])
        );
        let world = World::start(&configuration, &fleet, monday("17:00:00")).await;
        let bridge = Bridge::refusing(&["Resource In Conflict"]).await;
        let poll_status = poll_status_with(&world, &TOKENS);
        let question = json!({ "inventory": [] });
        let (report, metrics) = invoke(&poll_status, &bridge.bus(), question).await;
        assert!(report.outcomes.len() >= 2, "{report:?}");
        assert!(!world.record("do-main/droplet/1").await.opted_in);
        assert!(world.record("do-main/droplet/2").await.opted_in);
        let line = check_metrics(&metrics);
        // Immediately, and as counted by the inventories of the two accounts.
        assert_eq!(line["Conflicts"], json!([1, 1, 0]));
        assert_eq!(line["TokensRefused"], json!([0, 0]));
        // What was refused for a moment is sent once more.
        let [entry, again] = &bridge.entries()[..] else {
            panic!("{:#?}", bridge.entries());
        };
        assert_eq!(entry, again);
        let detail: Value = serde_json::from_str(entry["Detail"].as_str().unwrap()).unwrap();
        schemas()["Resource In Conflict"].validate(&detail).unwrap();
    });
    let refused = "The event bus refused an event, Resource In Conflict: ThrottlingException";
    assert!(logged.contains(refused), "{logged}");
}

/// Runs poll-status as the function does, with a bus.
async fn invoke(
    poll_status: &PollStatus<'_>,
    bus: &impl Publish,
    event: Value,
) -> (Report, Metrics) {
    let work = async |listener: &dyn Listener| poll_status.handle("a test", event, listener).await;
    publishing(bus, "offhours", &Log, work).await
}

async fn tick(poll_status: &PollStatus<'_>) -> (Report, Metrics) {
    invoke(poll_status, &RecordedEvents::default(), timer()).await
}

/// poll-status in another process of the service, on the same store.
fn poll_status_with<'a>(world: &'a World, tokens: &[(&str, &str)]) -> PollStatus<'a> {
    let clock = SteppedClock::at(world.local.now());
    PollStatus::new(world, world.local.store(), tokens, clock)
}

/// [`TOKENS`], but with the first one from before it was replaced.
const OLD: [(&str, &str); 2] = [("env:DO_TOKEN", "secret-old"), TOKENS[1]];

/// The log's lines.
fn lines(logged: &str) -> Vec<&str> {
    logged.lines().map(str::trim).collect()
}

#[test]
fn an_idle_tick_is_one_line_and_counts_nothing() {
    let ((), logged) = run_logged(async {
        let configuration = office_hours("", "", "");
        let world = World::start(&configuration, ACCOUNTS, monday("12:00:00")).await;
        let poll_status = poll_status_with(&world, &TOKENS);
        let (_, metrics) = tick(&poll_status).await;
        let line = check_metrics(&metrics);
        assert_eq!(line["Failed"], json!([0, 0]), "the zeros of the inventory");
        poll_status.clock.advance_to(monday("12:01:00"));
        let (report, metrics) = tick(&poll_status).await;
        assert_eq!((report, metrics), (Report::default(), Metrics::default()));

        let journal = dispatch::journal::Journal::default();
        let dispatched = dispatch(world.local.store(), &PanicOnInvoke, monday("12:01:00")).await;
        journal.log_tick(&dispatched);
    });
    let lines = lines(&logged);
    let [first, second, dispatch] = lines[..] else {
        panic!("{logged}");
    };
    for line in [first, second] {
        assert!(line.contains("INFO") && line.ends_with("Nothing is in flight"), "{line}");
    }
    assert!(dispatch.contains("Nothing to hand out"), "{dispatch}");
}

#[test]
fn a_refused_token_is_complained_of_once_and_measured_until_it_is_replaced() {
    let ((), logged) = run_logged(async {
        let configuration = office_hours("", "", "");
        let world = World::start(&configuration, ACCOUNTS, monday("12:00:00")).await;
        let poll_status = poll_status_with(&world, &OLD);
        for (time, refused, failed) in [
            ("12:00:00", json!([1, 1, 0]), json!([1, 1, 0])),
            ("12:05:00", json!([1, 0]), json!([1, 0])),
        ] {
            poll_status.clock.advance_to(monday(time));
            let (_, metrics) = tick(&poll_status).await;
            let line = check_metrics(&metrics);
            assert_eq!((&line["TokensRefused"], &line["Failed"]), (&refused, &failed));
        }
        let poll_status = poll_status_with(&world, &TOKENS);
        poll_status.clock.advance_to(monday("12:10:00"));
        let (_, metrics) = tick(&poll_status).await;
        let line = check_metrics(&metrics);
        assert_eq!(line["TokensRefused"], json!([0, 0]));
    });
    let complaints: Vec<_> =
        lines(&logged).into_iter().filter(|line| line.contains("WARN")).collect();
    let [complaint] = complaints[..] else {
        panic!("{logged}");
    };
    assert!(complaint.contains("do-main: postponed: token refused"), "{complaint}");
}

#[test]
fn what_is_overdue_is_measured_by_each_inventory_until_it_is_not() {
    run(async {
        let configuration = office_hours("", "", "");
        let fleet = format!("{ACCOUNTS}{}", droplet(1, "web", &["offhours:office"]));
        let world = World::start(&configuration, &fleet, monday("17:00:00")).await;
        world.run_until(monday("17:05:30")).await;
        // From here on dispatch does not run, and the edge of 18:00 is handed to no function.
        let measured = async |tokens: &[(&str, &str)], times: &[(&str, Value)]| {
            let poll_status = poll_status_with(&world, tokens);
            for (time, overdue) in times {
                poll_status.clock.advance_to(monday(time));
                let (_, metrics) = tick(&poll_status).await;
                assert_eq!(check_metrics(&metrics)["Overdue"], *overdue, "at {time}");
            }
        };
        let times = [
            ("18:00:30", json!([0, 0])),
            ("18:15:00", json!([0, 0])),
            ("18:20:00", json!([1, 0])),
            ("18:25:00", json!([1, 0])),
        ];
        measured(&TOKENS, &times).await;
        // An account that cannot be listed is still counted.
        measured(&OLD, &[("18:30:00", json!([1, 0]))]).await;
        world.run_until(monday("18:35:30")).await;
        measured(&TOKENS, &[("18:40:30", json!([0, 0]))]).await;
    });
}
