//! The process is killed between any two steps; the next one finishes the work and loses nothing.
//!
//! Nothing here waits for time to pass: the simulator holds requests to the clouds, a gate in front
//! of the store's engine holds writes of records, and the clock stands still meanwhile.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Bytes,
    http::{HeaderMap, StatusCode},
};
use domain::{
    record::Phase,
    resource::{AutoscaleBounds, Power, SavedState},
};
use jiff::Timestamp;
use local::engine::{Engine, operation};
use serde_json::{Value, json};
use store::Store;
use tempfile::TempDir;
use tokio::sync::watch;

use crate::{
    lab::{BUILD, Lab},
    programs::{
        HoldNumber, LocalProgram, Running, SimulatorProgram, StoreLocation, next_change_of,
    },
    support::{
        ACCOUNTS, an_hour_off, database, droplet, monday, pool, reference, serve, server, tables,
    },
};

/// One resource of each kind, but two servers: one that shuts down on request and one that does
/// not.
fn fleet() -> String {
    let database = database("d1", "orders", "pg").replace("db-s-2vcpu-4gb", "db-s-4vcpu-8gb");
    let pool = pool(
        r#"
        count = 3
        autoscale = { min = 1, max = 5 }
        labels = { tier = "burst" }
        taints = [{ key = "burst", value = "true", effect = "NoSchedule" }]
        "#,
    );
    [
        ACCOUNTS,
        &droplet(1, "web", &["offhours:office"]),
        &database,
        "nodes = 2\nstorage_mib = 204800\n",
        &pool,
        &server(11, ""),
        &server(12, "ignores_shutdown = true"),
    ]
    .concat()
}

const ALL: [&str; 5] = [
    "do-main/droplet/1",
    "do-main/database/d1",
    "do-main/node-pool/c1/p1",
    "hz-eu/server/11",
    DEAF,
];

/// The server whose power is cut after 60 seconds.
const DEAF: &str = "hz-eu/server/12";

/// Where the process is killed, in the order of its steps.
#[derive(Debug, Clone, Copy)]
enum Point {
    /// While it observes the resources.
    BeforeTheClaim,
    /// The claim has been written, but its response never arrives.
    AfterTheClaim,
    /// The request has been sent, but never arrives.
    SentAndLost,
    /// The request has been sent, and arrives after its sender is gone.
    SentAndLate,
    /// The request has taken effect, but its response never arrives.
    AnswerLost,
    /// The response has arrived, but was not recorded.
    AnsweredNotNoted,
    /// The target state was observed, but not written; once for each resource.
    SeenNotSettled,
}

#[tokio::test]
async fn killed_before_the_claim() {
    survives(Point::BeforeTheClaim).await;
}

#[tokio::test]
async fn killed_after_the_claim() {
    survives(Point::AfterTheClaim).await;
}

#[tokio::test]
async fn killed_while_a_request_is_lost() {
    survives(Point::SentAndLost).await;
}

#[tokio::test]
async fn killed_while_a_request_is_on_its_way() {
    survives(Point::SentAndLate).await;
}

#[tokio::test]
async fn killed_before_the_answer_came() {
    survives(Point::AnswerLost).await;
}

#[tokio::test]
async fn killed_before_the_answer_was_noted() {
    survives(Point::AnsweredNotNoted).await;
}

#[tokio::test]
async fn killed_before_what_was_seen_was_written() {
    survives(Point::SeenNotSettled).await;
}

#[tokio::test]
async fn killed_between_the_permit_for_a_cut_and_the_cut() {
    let world = World::start().await;
    world.run(monday("17:59:00")).await;
    let cut = world.gate.trap(Write::Cut, Side::Answer, &[DEAF]);
    let mut running = world.local.start(&world.simulator, monday("18:59:00")).await;
    running.until(cut.caught_all()).await;
    running.kill().await;
    world.gate.open();
    assert_eq!(world.changes_of(DEAF).await, ["shutdown"]);
    world.run(monday("18:59:00")).await;
    world.is_stopped().await;
    assert_eq!(world.changes_of(DEAF).await, ["shutdown", "poweroff"]);
}

#[tokio::test]
async fn killed_with_its_data_in_a_file() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("offhours.db");
    let simulator = SimulatorProgram::start(&fleet(), monday("17:57:00")).await;
    let before = comparable(simulator.resources().await);
    let local = LocalProgram::new(&an_hour_off(""), StoreLocation::File(path.clone()));
    local.run(&simulator, monday("17:59:00")).await;

    let hold = simulator.hold(next_change_of(ALL[1], "answer", false)).await;
    let mut running = local.start(&simulator, monday("18:59:00")).await;
    running.until(simulator.wait_until_caught(hold)).await;
    running.kill().await;
    simulator.discard(hold).await;
    local.run(&simulator, monday("18:59:00")).await;
    assert_ne!(comparable(simulator.resources().await), before);

    let hold = simulator.hold(next_change_of(ALL[1], "arrival", false)).await;
    let mut running = local.start(&simulator, monday("19:59:00")).await;
    running.until(simulator.wait_until_caught(hold)).await;
    running.kill().await;
    simulator.discard(hold).await;
    local.run(&simulator, monday("19:59:00")).await;
    assert_eq!(comparable(simulator.resources().await), before);
    let store = Engine::on_file(&path).unwrap().store(tables());
    let now = simulator.now().await;
    all_are(&store, Power::Running, now).await;
}

#[tokio::test]
async fn ctrl_c_ends_it_well_and_the_next_one_finishes() {
    let world = World::start().await;
    world.run(monday("17:59:00")).await;
    let hold = world.simulator.hold(next_change_of(ALL[1], "answer", false)).await;
    let mut running = world.local.start(&world.simulator, monday("18:59:00")).await;
    running.until(world.simulator.wait_until_caught(hold)).await;
    running.interrupt().await;
    running.ends_well().await;
    world.simulator.discard(hold).await;
    world.run(monday("18:59:00")).await;
    world.is_stopped().await;
}

/// A machine over SSH beside empty simulated clouds, shortly before its stop at 18:00.
async fn machine_before_its_stop(lab: &Lab) -> World {
    let world = World::with(&lab.usual("", ""), "").await;
    world.run(monday("17:59:00")).await;
    assert_eq!(lab.changes(), [""; 0]);
    world
}

async fn machine_is_stopped(world: &World, lab: &Lab) {
    world.run(monday("18:20:00")).await;
    let record = world.store.record(&reference(BUILD)).await;
    let record = record.unwrap().unwrap();
    let stopped = Phase::Settled { at: Power::Stopped };
    assert_eq!((&record.phase, &record.request), (&stopped, &None));
    assert!(!lab.runs("build"));
}

#[tokio::test]
async fn a_machine_over_ssh_is_stopped_by_one_command_wherever_the_process_is_killed() {
    for (write, side, sent) in [
        (Write::Claim, Side::Answer, 0),
        (Write::Note, Side::Arrival, 1),
        (Write::Settle, Side::Arrival, 1),
    ] {
        let Some(lab) = Lab::start(&["build"]).await else {
            return;
        };
        let world = machine_before_its_stop(&lab).await;
        let trap = world.gate.trap(write, side, &[BUILD]);
        let mut running = world.local.start(&world.simulator, monday("18:10:00")).await;
        running.until(trap.caught_all()).await;
        running.kill().await;
        world.gate.open();
        assert_eq!(lab.changes().len(), sent, "{write:?}");
        machine_is_stopped(&world, &lab).await;
        assert_eq!(lab.changes(), ["stop build"], "{write:?}");
    }
}

#[tokio::test]
async fn a_command_that_goes_on_without_the_process_is_not_repeated_before_it_is_known_to_be_lost()
{
    for (goes_on, commands) in [("on", 1), ("not", 2)] {
        let Some(lab) = Lab::start(&["build"]).await else {
            return;
        };
        let world = machine_before_its_stop(&lab).await;
        let [arrived, verdict] = ["arrived", "verdict"].map(|name| lab.pipe(name));
        lab.on(
            "stop",
            "echo here > \"$DIR/arrived\"; read verdict < \"$DIR/verdict\"; test \"$verdict\" = on || exit 1",
        );
        let mut running = world.local.start(&world.simulator, monday("18:10:00")).await;
        running.until(arrived.read()).await;
        running.kill().await;
        // The next process is already at work when the command ends.
        world.run(monday("18:01:00")).await;
        assert_eq!(lab.changes(), ["stop build"]);
        verdict.write(goes_on).await;
        lab.as_usual("stop");
        machine_is_stopped(&world, &lab).await;
        assert_eq!(lab.changes(), vec!["stop build"; commands]);
    }
}

/// Kills the process at this point of the stop, and again at this point of the start.
async fn survives(point: Point) {
    let world = World::start().await;
    let before = comparable(world.simulator.resources().await);
    world.run(monday("17:59:00")).await;
    assert!(world.changes().await.is_empty());

    world.crash(point, monday("18:50:00")).await;
    world.run(monday("18:50:00")).await;
    world.is_stopped().await;
    for resource in ALL {
        // Whatever was repeated, the cloud has accepted it once.
        let expected: &[_] = match resource {
            "do-main/droplet/1" => &["power_off"],
            "hz-eu/server/11" => &["shutdown"],
            DEAF => &["shutdown", "poweroff"],
            _ => &["size"],
        };
        assert_eq!(world.changes_of(resource).await, expected, "{resource}");
    }

    world.run(monday("18:59:00")).await;
    world.crash(point, monday("19:50:00")).await;
    world.run(monday("19:50:00")).await;
    let now = world.simulator.now().await;
    all_are(&world.store, Power::Running, now).await;
    assert_eq!(comparable(world.simulator.resources().await), before);
    for resource in ALL {
        let expected: &[_] = match resource {
            "do-main/droplet/1" => &["power_off", "power_on"],
            "hz-eu/server/11" => &["shutdown", "poweron"],
            DEAF => &["shutdown", "poweroff", "poweron"],
            _ => &["size", "size"],
        };
        assert_eq!(world.changes_of(resource).await, expected, "{resource}");
    }
}

/// A machine that is moved to a smaller plan, and the requests sent to its cloud.
struct MovedMachine {
    resource: &'static str,
    fleet: String,
    plan: &'static str,
    /// The parts of a stop and of the start after it, each with its request. Changing its type
    /// starts a server, which is then shut down again.
    stop: [(&'static str, &'static str); 2],
    start: &'static [(&'static str, &'static str)],
    stopped_by: &'static [&'static str],
    started_by: &'static [&'static str],
}

fn moved_machines() -> [MovedMachine; 2] {
    let (droplet, server) = (droplet(2, "render", &["offhours:office"]), server(21, ""));
    [
        MovedMachine {
            resource: "do-main/droplet/2",
            fleet: format!("{ACCOUNTS}\n{droplet}size = \"g-2vcpu-8gb\"\n"),
            plan: "g-2vcpu-8gb",
            stop: [("off", "power_off"), ("shrink", "resize")],
            start: &[("grow", "resize"), ("on", "power_on")],
            stopped_by: &["power_off", "resize"],
            started_by: &["resize", "power_on"],
        },
        MovedMachine {
            resource: "hz-eu/server/21",
            fleet: format!("{ACCOUNTS}\n{server}server_type = \"ccx13\"\n"),
            plan: "ccx13",
            stop: [("off", "/shutdown"), ("shrink", "/change_type")],
            start: &[("grow", "/change_type")],
            stopped_by: &["shutdown", "change_type", "shutdown"],
            started_by: &["change_type"],
        },
    ]
}

/// Kills the process at this point of each part in turn.
async fn machines_survive(point: Point) {
    let methods = "methods = { droplet = \"resize\", server = \"rescale\" }";
    for machine in moved_machines() {
        let configuration = format!("{}\n{methods}\n", an_hour_off(""));
        let world = World::with(&configuration, &machine.fleet).await;
        let before = comparable(world.simulator.resources().await);
        world.run(monday("17:59:00")).await;
        for part in machine.stop {
            let until = monday("18:50:00");
            world.crash_in(machine.resource, part, point, until).await;
        }
        world.run(monday("18:50:00")).await;
        let now = world.simulator.now().await;
        let saved = all_of(&[machine.resource], &world.store, Power::Stopped, now).await;
        assert_eq!(saved[machine.resource].to_string(), machine.plan);
        // Whatever was repeated, the cloud has accepted it once.
        assert_eq!(world.changes_of(machine.resource).await, machine.stopped_by);

        world.run(monday("18:59:00")).await;
        for part in machine.start {
            let until = monday("19:50:00");
            world.crash_in(machine.resource, *part, point, until).await;
        }
        world.run(monday("19:50:00")).await;
        let now = world.simulator.now().await;
        let saved = all_of(&[machine.resource], &world.store, Power::Running, now).await;
        assert_eq!(saved, BTreeMap::new());
        assert_eq!(comparable(world.simulator.resources().await), before);
        let all = [machine.stopped_by, machine.started_by].concat();
        assert_eq!(world.changes_of(machine.resource).await, all);
    }
}

#[tokio::test]
async fn machines_that_are_moved_survive_a_kill_after_each_claim() {
    machines_survive(Point::AfterTheClaim).await;
}

#[tokio::test]
async fn machines_that_are_moved_survive_a_kill_while_each_request_is_lost() {
    machines_survive(Point::SentAndLost).await;
}

#[tokio::test]
async fn machines_that_are_moved_survive_a_kill_while_each_request_is_on_its_way() {
    machines_survive(Point::SentAndLate).await;
}

#[tokio::test]
async fn machines_that_are_moved_survive_a_kill_before_each_answer_came() {
    machines_survive(Point::AnswerLost).await;
}

#[tokio::test]
async fn machines_that_are_moved_survive_a_kill_before_each_answer_was_noted() {
    machines_survive(Point::AnsweredNotNoted).await;
}

#[tokio::test]
async fn machines_that_are_moved_survive_a_kill_before_each_part_was_seen_done() {
    machines_survive(Point::SeenNotSettled).await;
}

/// The clouds as one program, the store behind a gate, and `offhours local` as another program.
struct World {
    simulator: SimulatorProgram,
    gate: Gate,
    store: Store,
    local: LocalProgram,
}

impl World {
    async fn start() -> Self {
        Self::with(&an_hour_off(""), &fleet()).await
    }

    async fn with(configuration: &str, fleet: &str) -> Self {
        let engine = Engine::in_memory().unwrap();
        let store = engine.store(tables());
        let (gate, address) = Gate::in_front_of(engine).await;
        Self {
            simulator: SimulatorProgram::start(fleet, monday("17:57:00")).await,
            gate,
            store,
            local: LocalProgram::new(configuration, StoreLocation::Engine(address)),
        }
    }

    async fn run(&self, until: Timestamp) {
        self.local.run(&self.simulator, until).await;
    }

    /// Starts the process and kills it at that point.
    async fn crash(&self, point: Point, until: Timestamp) {
        match point {
            Point::BeforeTheClaim => {
                let looks = [
                    json!({"method": "GET", "resource": ALL[1]}),
                    json!({"method": "GET", "path_prefix": "/v1/servers"}),
                ];
                let mut holds = Vec::new();
                for look in looks {
                    let hold = json!({"match": look, "times": 10, "at": "arrival"});
                    holds.push(self.simulator.hold(hold).await);
                }
                self.kill_when_held(&holds, until).await;
                self.discard(holds).await;
            }
            Point::AfterTheClaim => self.kill_at(Write::Claim, Side::Answer, until).await,
            Point::SentAndLost => {
                let holds = self.hold_changes("arrival", false).await;
                self.kill_when_held(&holds, until).await;
                self.discard(holds).await;
            }
            Point::SentAndLate => {
                let holds = self.hold_changes("arrival", true).await;
                self.kill_when_held(&holds, until).await;
                // The next process is already at work when they arrive.
                let minute = jiff::SignedDuration::from_mins(1);
                self.run(self.simulator.now().await + minute).await;
                for hold in holds {
                    self.simulator.release(hold).await;
                }
            }
            Point::AnswerLost => {
                let holds = self.hold_changes("answer", false).await;
                self.kill_when_held(&holds, until).await;
                self.discard(holds).await;
            }
            Point::AnsweredNotNoted => self.kill_at(Write::Note, Side::Arrival, until).await,
            Point::SeenNotSettled => {
                let mut left = BTreeSet::from(ALL);
                while !left.is_empty() {
                    let resources: Vec<_> = left.iter().copied().collect();
                    let trap = self.gate.trap(Write::Settle, Side::Arrival, &resources);
                    let mut running = self.local.start(&self.simulator, until).await;
                    let caught = running.until(trap.caught_any()).await;
                    running.kill().await;
                    left.retain(|resource| !caught.contains(*resource));
                }
                self.gate.open();
            }
        }
    }

    /// Starts the process and kills it at that point of one part of a transition.
    async fn crash_in(
        &self,
        resource: &str,
        (part, request): (&str, &str),
        point: Point,
        until: Timestamp,
    ) {
        let trap = match point {
            Point::AfterTheClaim => Some((Write::Claim, Side::Answer)),
            Point::AnsweredNotNoted => Some((Write::Note, Side::Arrival)),
            Point::SeenNotSettled => Some((Write::Seen, Side::Arrival)),
            Point::BeforeTheClaim | Point::SentAndLost | Point::SentAndLate | Point::AnswerLost => {
                None
            }
        };
        if let Some((write, side)) = trap {
            let trap = self.gate.trap_in(part, write, side, resource);
            let mut running = self.local.start(&self.simulator, until).await;
            running.until(trap.caught_all()).await;
            running.kill().await;
            self.gate.open();
            return;
        }
        let late = matches!(point, Point::SentAndLate);
        let at = if matches!(point, Point::AnswerLost) { "answer" } else { "arrival" };
        let mut hold = next_change_of(resource, at, late);
        let field = match request.strip_prefix('/') {
            Some(_) => "path_suffix",
            None => "body_contains",
        };
        hold["match"][field] = json!(request);
        let hold = self.simulator.hold(hold).await;
        self.kill_when_held(&[hold], until).await;
        if late {
            let minute = jiff::SignedDuration::from_mins(1);
            self.run(self.simulator.now().await + minute).await;
            self.simulator.release(hold).await;
        } else {
            self.simulator.discard(hold).await;
        }
    }

    async fn hold_changes(&self, at: &str, late: bool) -> Vec<HoldNumber> {
        let mut holds = Vec::new();
        for resource in ALL {
            let hold = next_change_of(resource, at, late);
            holds.push(self.simulator.hold(hold).await);
        }
        holds
    }

    async fn discard(&self, holds: Vec<HoldNumber>) {
        for hold in holds {
            self.simulator.discard(hold).await;
        }
    }

    async fn kill_when_held(&self, holds: &[HoldNumber], until: Timestamp) {
        let mut running: Running = self.local.start(&self.simulator, until).await;
        for hold in holds {
            running.until(self.simulator.wait_until_caught(*hold)).await;
        }
        running.kill().await;
    }

    async fn kill_at(&self, write: Write, side: Side, until: Timestamp) {
        let trap = self.gate.trap(write, side, &ALL);
        let mut running = self.local.start(&self.simulator, until).await;
        running.until(trap.caught_all()).await;
        running.kill().await;
        self.gate.open();
    }

    /// Checks that everything is stopped and that the original sizes are kept.
    async fn is_stopped(&self) {
        let now = self.simulator.now().await;
        let saved = all_are(&self.store, Power::Stopped, now).await;
        let database = SavedState::Database {
            plan: "db-s-4vcpu-8gb".to_owned(),
            nodes: 2,
            storage_mib: Some(204_800),
        };
        let pool =
            SavedState::NodePool { count: 3, autoscale: Some(AutoscaleBounds { min: 1, max: 5 }) };
        let expected = BTreeMap::from([(ALL[1], database), (ALL[2], pool)]);
        assert_eq!(saved, expected);
        let resources = self.simulator.resources().await;
        let status = |resource: &str| resources[resource]["status"].as_str().unwrap();
        assert_eq!(status(ALL[0]), "off");
        assert_eq!(resources[ALL[1]]["nodes"], 2);
        assert_eq!(resources[ALL[2]]["nodes"], json!([]));
        assert_eq!((status(ALL[3]), status(DEAF)), ("off", "off"));
    }

    /// The requests that the clouds accepted as changes, each with its resource.
    async fn changes(&self) -> Vec<(String, String)> {
        let log = self.simulator.log().await;
        let changes = log.iter().filter(|entry| entry["changed"] == true);
        changes
            .map(|entry| {
                let resource = entry["resource"].as_str().unwrap().to_owned();
                (resource, what(&entry["request"]))
            })
            .collect()
    }

    async fn changes_of(&self, resource: &str) -> Vec<String> {
        let changes = self.changes().await.into_iter();
        let of = changes.filter(|(of, _)| of == resource);
        of.map(|(_, what)| what).collect()
    }
}

/// What a request asks for, in one word.
fn what(request: &Value) -> String {
    let path = request["path"].as_str().unwrap();
    if path.starts_with("/v1/") {
        return path.rsplit('/').next().unwrap().to_owned();
    }
    let body: Value = serde_json::from_str(request["body"].as_str().unwrap()).unwrap();
    body["type"].as_str().unwrap_or("size").to_owned()
}

/// Checks that nothing is in flight and that every record has settled at `end`. Returns the saved
/// states.
async fn all_are(store: &Store, end: Power, now: Timestamp) -> BTreeMap<&'static str, SavedState> {
    all_of(&ALL, store, end, now).await
}

/// Like [`all_are`], for some of the resources.
async fn all_of(
    resources: &[&'static str],
    store: &Store,
    end: Power,
    now: Timestamp,
) -> BTreeMap<&'static str, SavedState> {
    let mut kept = BTreeMap::new();
    for &resource in resources {
        let record = store.record(&reference(resource)).await.unwrap().unwrap();
        assert_eq!(record.phase, Phase::Settled { at: end }, "{record:#?}");
        assert!(!record.permit_is_open(now), "{record:#?}");
        assert_eq!(record.request, None, "{resource}");
        if let Some(saved) = record.saved {
            kept.insert(resource, saved);
        }
    }
    kept
}

/// The whole state of the resources, but only the states of a pool's nodes: new nodes have other
/// ids, names, Droplets and times.
fn comparable(mut resources: BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    resources.retain(|_, state| state.get("worker_of").is_none_or(Value::is_null));
    for state in resources.values_mut() {
        // A guest that has run has written to its disk.
        state.as_object_mut().unwrap().remove("contents");
        let nodes = state["nodes"].as_array().cloned();
        if let Some(nodes) = nodes {
            state["nodes"] = nodes.iter().map(|node| node["state"].clone()).collect();
        }
    }
    resources
}

/// A kind of write of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Write {
    /// The write that permits a request.
    Claim,
    /// The write that permits the hard cut.
    Cut,
    /// A write without a permit: the first one after a claim records the response.
    Note,
    /// A write that records a part as done, or ends the transition with it.
    Seen,
    /// The write that ends the transition, with its history.
    Settle,
}

/// Whether a write is held before the engine gets it, or before its sender gets the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Arrival,
    Answer,
}

/// An HTTP proxy in front of the store's engine that can hold writes forever.
#[derive(Clone)]
struct Gate {
    engine: Engine,
    trap: Arc<Mutex<Option<Trap>>>,
}

/// Which writes the gate holds, and the resources whose writes it has caught.
#[derive(Clone)]
struct Trap {
    write: Write,
    side: Side,
    /// The part whose requests are held. `None` for all parts.
    part: Option<String>,
    resources: BTreeSet<String>,
    caught: watch::Sender<BTreeSet<String>>,
}

impl Gate {
    async fn in_front_of(engine: Engine) -> (Self, SocketAddr) {
        let gate = Self { engine, trap: Arc::default() };
        let serving = gate.clone();
        let router = Router::new().fallback(async move |headers: HeaderMap, body: String| {
            serving.pass(&headers, &body).await
        });
        let address = serve(router).await;
        (gate, address)
    }

    /// Holds the next writes of this kind from now on.
    fn trap(&self, write: Write, side: Side, resources: &[&str]) -> Trap {
        self.hold_next(Trap {
            write,
            side,
            part: None,
            resources: resources.iter().map(ToString::to_string).collect(),
            caught: watch::Sender::default(),
        })
    }

    /// Like [`Self::trap`], for one part of a transition.
    fn trap_in(&self, part: &str, write: Write, side: Side, resource: &str) -> Trap {
        self.hold_next(Trap {
            write,
            side,
            part: Some(part.to_owned()),
            resources: BTreeSet::from([resource.to_owned()]),
            caught: watch::Sender::default(),
        })
    }

    fn hold_next(&self, trap: Trap) -> Trap {
        *self.trap.lock().unwrap() = Some(trap.clone());
        trap
    }

    /// Lets everything pass from now on.
    fn open(&self) {
        *self.trap.lock().unwrap() = None;
    }

    async fn pass(&self, headers: &HeaderMap, body: &str) -> (StatusCode, Bytes) {
        let operation = operation(headers["x-amz-target"].to_str().unwrap());
        let trap = self.trap.lock().unwrap().clone();
        let held = trap.and_then(|trap| Some((trap.holds(operation, body)?, trap)));
        if let Some((resource, trap)) = &held
            && trap.side == Side::Arrival
        {
            trap.hold(resource).await;
        }
        let (status, answer) = self.engine.answer(operation, body);
        if let Some((resource, trap)) = &held {
            assert_eq!(status, 200, "{answer:?}");
            trap.hold(resource).await;
        }
        (StatusCode::from_u16(status).unwrap(), answer)
    }
}

impl Trap {
    /// The resource, if this write is to be held.
    fn holds(&self, operation: &str, body: &str) -> Option<String> {
        let body: Value = serde_json::from_str(body).unwrap();
        let put = match operation {
            "PutItem" => &body,
            "TransactWriteItems" => &body["TransactItems"][0]["Put"],
            _ => return None,
        };
        let item = &put["Item"];
        let (permit, request) = (item.get("permit"), &item["request"]["M"]);
        let fits = put["TableName"] == "offhours-resources"
            && match self.write {
                Write::Claim => permit.is_some(),
                Write::Cut => permit.is_some() && request["forced"]["S"] == "intended",
                Write::Note => permit.is_none() && request["ask"]["M"]["state"]["S"] != "done",
                Write::Seen => {
                    let done = request["ask"]["M"]["state"]["S"] == "done";
                    done || item["phase"]["M"]["name"]["S"] == "settled"
                }
                Write::Settle => item["phase"]["M"]["name"]["S"] == "settled",
            };
        // The write that ends a transition drops its request.
        let of_part = |part: &String| {
            let asked = request["part"]["S"].as_str();
            asked.is_none_or(|asked| asked == part)
        };
        let fits = fits && self.part.as_ref().is_none_or(of_part);
        let resource =
            format!("{}/{}", item["account"]["S"].as_str()?, item["resource"]["S"].as_str()?);
        (fits && self.resources.contains(&resource)).then_some(resource)
    }

    async fn hold(&self, resource: &str) -> ! {
        self.caught.send_modify(|caught| {
            caught.insert(resource.to_owned());
        });
        std::future::pending().await
    }

    async fn caught_all(&self) {
        let mut caught = self.caught.subscribe();
        let all = |caught: &BTreeSet<_>| *caught == self.resources;
        caught.wait_for(all).await.unwrap();
    }

    async fn caught_any(&self) -> BTreeSet<String> {
        let mut caught = self.caught.subscribe();
        let any = caught.wait_for(|caught| !caught.is_empty()).await;
        any.unwrap().clone()
    }
}
