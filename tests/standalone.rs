//! `offhours local` beside a simulator that runs as its own program: each kind and engine is
//! stopped and started by the promised requests and no others.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    programs::{LocalProgram, SimulatorProgram, StoreLocation, next_change_of},
    support::{ACCOUNTS, an_hour_off, database, droplet, monday, pool, server},
};

/// A Droplet, a pool, a server that shuts down on request, and one that does not.
fn machines_and_pool() -> String {
    [
        ACCOUNTS,
        &droplet(1, "web", &["offhours:office"]),
        &pool("count = 2"),
        &server(11, ""),
        &server(12, "ignores_shutdown = true"),
    ]
    .concat()
}

const ENGINES: [&str; 5] = ["pg", "mysql", "redis", "valkey", "mongodb"];

/// The allowed requests, reads first. `{id}` is a resource's id, and `{pool_id}` a pool's.
const PROMISED: [&str; 19] = [
    // Prices, once a day.
    "GET /v1/pricing",
    "GET /v2/sizes",
    "GET /v1/servers",
    "GET /v1/servers/{id}",
    // Shows what others did in the meantime, before the power is cut.
    "GET /v1/servers/{id}/actions",
    "GET /v2/databases",
    "GET /v2/databases/options",
    "GET /v2/databases/{id}",
    "GET /v2/droplets",
    "GET /v2/droplets/{id}",
    "GET /v2/kubernetes/clusters",
    "GET /v2/kubernetes/clusters/{id}",
    "GET /v2/kubernetes/clusters/{id}/node_pools",
    "POST /v1/servers/{id}/actions/poweroff",
    "POST /v1/servers/{id}/actions/poweron",
    "POST /v1/servers/{id}/actions/shutdown",
    "POST /v2/droplets/{id}/actions",
    "PUT /v2/databases/{id}/resize",
    "PUT /v2/kubernetes/clusters/{id}/node_pools/{pool_id}",
];

#[tokio::test]
async fn each_kind_and_engine_is_stopped_and_started_by_the_promised_requests() {
    let databases = ENGINES.map(|engine| database(engine, engine, engine));
    let fleet = machines_and_pool() + &databases.concat();
    let simulator = SimulatorProgram::start(&fleet, monday("17:57:00")).await;
    let directory = TempDir::new().unwrap();
    let data = directory.path().join("offhours.db");
    let local = LocalProgram::new(&an_hour_off(""), StoreLocation::File(data));

    local.run(&simulator, monday("18:50:00")).await;
    let stopped = changes(&simulator.log().await);
    for engine in ENGINES {
        let resize = format!("PUT /v2/databases/{engine}/resize db-s-1vcpu-");
        let of_engine = stopped.iter().filter(|change| change.starts_with(&resize));
        assert_eq!(of_engine.count(), 1, "{engine}: {stopped:#?}");
    }
    let others: BTreeSet<_> = stopped
        .iter()
        .filter(|change| !change.contains("/databases/"))
        .map(String::as_str)
        .collect();
    let expected = [
        "POST /v1/servers/11/actions/shutdown ",
        "POST /v1/servers/12/actions/poweroff ",
        "POST /v1/servers/12/actions/shutdown ",
        "POST /v2/droplets/1/actions power_off",
        "PUT /v2/kubernetes/clusters/c1/node_pools/p1 0",
    ];
    assert_eq!(others, BTreeSet::from(expected));

    local.run(&simulator, monday("19:50:00")).await;
    let log = simulator.log().await;
    let mut started = changes(&log);
    started.retain(|change| !stopped.contains(change));
    let mut expected = BTreeSet::from([
        "POST /v1/servers/11/actions/poweron ".to_owned(),
        "POST /v1/servers/12/actions/poweron ".to_owned(),
        "POST /v2/droplets/1/actions power_on".to_owned(),
        "PUT /v2/kubernetes/clusters/c1/node_pools/p1 2".to_owned(),
    ]);
    for engine in ENGINES {
        expected.insert(format!("PUT /v2/databases/{engine}/resize db-s-2vcpu-4gb"));
    }
    assert_eq!(started, expected);

    let asked: BTreeSet<_> = log.iter().map(|entry| template(&entry["request"])).collect();
    assert_eq!(asked, PROMISED.map(str::to_owned).into());
}

/// The accepted changes: method, path, and what the body asks for.
fn changes(log: &[Value]) -> BTreeSet<String> {
    let mut times = BTreeMap::<_, u32>::new();
    for entry in log.iter().filter(|entry| entry["changed"] == true) {
        let request = &entry["request"];
        let (method, path) = method_and_path(request);
        let body = request["body"].as_str().unwrap();
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        let wanted = ["type", "size", "count"].map(|field| match &body[field] {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => String::new(),
        });
        let change = format!("{method} {path} {}", wanted.concat());
        *times.entry(change).or_default() += 1;
    }
    let repeated: Vec<_> = times.iter().filter(|(_, times)| **times > 1).collect();
    assert!(repeated.is_empty(), "{repeated:?}");
    times.into_keys().collect()
}

fn method_and_path(request: &Value) -> (&str, &str) {
    let text = |field: &str| request[field].as_str().unwrap();
    (text("method"), text("path"))
}

/// The method and the path, with placeholders for the ids.
fn template(request: &Value) -> String {
    let (method, path) = method_and_path(request);
    let is_id = |segment: &str| {
        ENGINES.contains(&segment) || segment == "c1" || segment.parse::<u64>().is_ok()
    };
    let segments = path.split('/').map(|segment| match segment {
        "p1" => "{pool_id}",
        segment if is_id(segment) => "{id}",
        segment => segment,
    });
    format!("{method} {}", segments.collect::<Vec<_>>().join("/"))
}

#[tokio::test]
async fn one_local_at_a_time_moves_the_clock_of_a_simulator() {
    let simulator = SimulatorProgram::start(&machines_and_pool(), monday("17:55:00")).await;
    let folder = TempDir::new().unwrap();
    let local = |name: &str| {
        let path = folder.path().join(name);
        LocalProgram::new(&an_hour_off(""), StoreLocation::File(path))
    };
    let (first, second) = (local("first.db"), local("second.db"));
    let hold = next_change_of("do-main/droplet/1", "arrival", false);
    let hold = simulator.hold(hold).await;
    let mut running = first.start(&simulator, monday("18:30:00")).await;
    running.until(simulator.wait_until_caught(hold)).await;
    let refused = second.start(&simulator, monday("18:30:00")).await;
    let refused = refused.refused().await;
    let expected = format!(
        "error: another `offhours local` moves the clock of the simulator at {}: stop it first, or \
         leave the work to it",
        simulator.url
    );
    assert!(refused.contains(&expected), "{refused}");
    // However the first process ends, the next may start.
    running.kill().await;
    simulator.discard(hold).await;
    second.run(&simulator, monday("18:30:00")).await;
}
