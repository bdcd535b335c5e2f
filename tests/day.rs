//! A day of the example fleet, and two weeks with the clock changes of two continents: what is
//! reported matches what the clouds saw.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
    sync::Arc,
};

use cloud_simulator::Entry;
use domain::{
    configuration::Configuration,
    digest::Digest,
    history::HistoryEntry,
    membership::{self, Exclusion, Membership},
    notice::StopNotice,
    record::{Direction, Ending, Record},
    resource::{AutoscaleBounds, MachineSize, PlanCapacity, SavedState},
    schedule::Desired,
    stop_method::StopMethod,
};
use jiff::{SignedDuration, Timestamp};
use lifecycle::{Event, Occurrence, event::Subject};
use offhours::view::summary::{Summary, finished_since};
use serde_json::Value;

use crate::{
    support::{ACCOUNTS, World, instant, monday, program, root, run},
    traffic,
};

const BERLIN_CATALOG: &str = "do-main/database/5f7a3c1e-8f0d-4c55-9a5c-0f3cf6a3a1b7";

/// Protected, opted out, or not covered by any schedule.
const UNTOUCHABLE: [&str; 4] = [
    "do-main/droplet/375660214",
    "do-main/droplet/402518833",
    "do-main/droplet/402519041",
    "hz-eu/server/53104470",
];

/// The results of a day of the example fleet.
struct Day {
    outcomes: Vec<Occurrence>,
    digests: Vec<Digest>,
    log: Vec<Entry>,
    history: Vec<HistoryEntry>,
    in_force: Arc<Configuration>,
    records: Vec<Record>,
    /// Every resource before the first stop.
    before: BTreeMap<String, Value>,
    /// Every resource in the afternoon, when both offices are open.
    after: BTreeMap<String, Value>,
}

fn day() -> Day {
    run(async {
        let read =
            |name: &str| std::fs::read_to_string(root().join("examples").join(name)).unwrap();
        let (configuration, fleet) = (read("offhours.toml"), read("fleet.toml"));
        let mut world = World::start(&configuration, &fleet, monday("06:00:00")).await;
        let before = world.simulator().resources();
        world.run_until(monday("17:30:00")).await;
        let after = world.simulator().resources();
        let end = instant("2026-11-24T06:00:00Z");
        world.run_until(end).await;
        let store = world.local.store();
        let in_force = store.in_force().await.unwrap().configuration;
        let mut records = Vec::new();
        for account in in_force.accounts.keys() {
            records.extend(store.records_of(account).await.unwrap().read);
        }
        let history = finished_since(store, monday("06:00:00")).await.unwrap();
        Day {
            outcomes: world.outcomes().to_vec(),
            digests: world.digests().to_vec(),
            log: world.simulator().log(),
            history,
            in_force,
            records,
            before,
            after,
        }
    })
}

#[test]
fn a_day_of_the_example_fleet() {
    let day = day();
    history_is_what_the_clouds_saw(&day);
    a_database_without_a_smaller_plan_is_already_smallest(&day);
    after_the_next_start_everything_is_as_it_was(&day);
    nothing_protected_opted_out_or_unnamed_is_touched(&day);
    changes_use_the_documented_methods_and_paths_and_no_others(&day);
    each_edge_is_reported_once_and_its_numbers_are_what_happened(&day);
    traffic::fits_the_clouds_descriptions(&day.log);
}

fn each_edge_is_reported_once_and_its_numbers_are_what_happened(day: &Day) {
    let printed = day.digests.iter().map(|d| (d.schedule.as_str(), d.edge, d.desired));
    let edges = [
        ("berlin-lab", "23T06:30", Desired::Running),
        ("berlin-office", "23T07:00", Desired::Running),
        ("new-york-office", "23T13:30", Desired::Running),
        ("berlin-office", "23T18:00", Desired::Stopped),
        ("berlin-lab", "23T19:00", Desired::Stopped),
        ("berlin-builds", "23T19:30", Desired::Stopped),
        ("new-york-office", "23T23:00", Desired::Stopped),
        ("berlin-builds", "24T05:00", Desired::Running),
    ];
    let at = |time: &str| instant(&format!("2026-11-{time}:00Z"));
    let edges = edges.map(|(schedule, time, desired)| (schedule, at(time), desired));
    assert_eq!(printed.collect::<Vec<_>>(), edges);
    for digest in &day.digests {
        // No two edges are in progress at once, so everything that happens meanwhile belongs to
        // this one.
        let meanwhile = digest.edge..=digest.at;
        let during = || day.outcomes.iter().filter(|o| meanwhile.contains(&o.at));
        let count = |is: fn(&Event) -> bool| during().filter(|o| is(&o.event)).count();
        // A request that is refused immediately is reported as refused only. A machine that is
        // moved gets several requests.
        let is_asked = |e: &Event| matches!(e, Event::Asked { .. } | Event::Refused { .. });
        let asked: BTreeSet<_> = during()
            .filter(|outcome| is_asked(&outcome.event))
            .map(|outcome| format!("{:?}", outcome.subject))
            .collect();
        assert_eq!(digest.asked, asked.len());
        assert_eq!(digest.seen, count(|e| matches!(e, Event::Seen { .. })));
        assert_eq!(digest.refused, count(|e| matches!(e, Event::Refused { .. })));
        let already = count(|e| matches!(e, Event::AlreadyThere { .. }));
        assert_eq!(digest.already, already);
        assert_eq!((digest.unfinished, digest.stuck, digest.overtaken), (0, 0, 0));
        let ended = digest.seen + digest.already + digest.refused;
        assert_eq!(digest.followed, ended);
        assert_eq!(digest.not_seen.len(), digest.refused);
        let longest = during().filter_map(|outcome| {
            if let Event::Seen { seconds, .. } = outcome.event { Some(seconds) } else { None }
        });
        let slowest = digest.slowest.as_ref().map(|slowest| slowest.seconds);
        assert_eq!(slowest, longest.max());
    }
    let evening = day.digests[3].to_string();
    assert_eq!(
        evening,
        "berlin-office: 8 of 9 stopped (1 already), 1 refused; slowest berlin-orders 480 s; \
         opens Tue 08:00; saves 3.22 USD until then, 1 unknown; `offhours status \
         --needs-person` says what to do"
    );
}

/// What the requests and responses alone reveal about one resource.
#[derive(Debug, Default, PartialEq, Eq)]
struct RequestHistory {
    stopped: u32,
    started: u32,
    saved: Option<SavedState>,
    restored: u32,
    forced: u32,
    /// Whether a machine is back on its plan but still off.
    grown: bool,
    /// The response bodies of refusals.
    refused: Vec<String>,
    /// What the last GET showed.
    last: Option<Shown>,
    /// An accepted change whose end no GET has shown yet.
    open: Option<Change>,
    changes: u32,
}

/// The state of a resource in the response to a GET.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Shown {
    on: Option<bool>,
    size: Option<SavedState>,
}

#[derive(Debug, PartialEq, Eq)]
enum Change {
    PowerOff { forced: bool },
    PowerOn,
    Shrink(SavedState),
    Restore(SavedState),
}

/// Derives the history of each resource from the whole log, as the clouds saw it.
fn histories(log: &[Entry]) -> BTreeMap<String, RequestHistory> {
    assert_eq!(log[0].sequence, 1, "the log has dropped entries");
    let mut histories = BTreeMap::<String, RequestHistory>::new();
    for entry in log {
        let answer = entry.answer.as_ref().unwrap();
        assert!(entry.delivered && !entry.faulty);
        if entry.request.method == "GET" {
            for (resource, shown) in shown(entry) {
                histories.entry(resource).or_default().see(shown);
            }
            continue;
        }
        let resource = entry.resource.as_ref().unwrap().to_string();
        let history = histories.entry(resource).or_default();
        history.changes += 1;
        match answer.status {
            200..300 => history.accept(entry),
            400..500 => history.refused.push(answer.body.clone()),
            status => panic!("{status} without a fault"),
        }
    }
    histories
}

impl RequestHistory {
    fn see(&mut self, shown: Shown) {
        let size = |wanted: &SavedState| {
            shown.on == Some(true) && shown.size.as_ref().is_some_and(|size| fits(wanted, size))
        };
        // Changing a server's type starts it.
        let moved = |wanted: &SavedState| {
            shown.on.is_some() && shown.size.as_ref().is_some_and(|size| fits(wanted, size))
        };
        match &self.open {
            Some(Change::PowerOff { forced }) if shown.on == Some(false) => {
                self.stopped += 1;
                self.forced += u32::from(*forced);
            }
            Some(Change::PowerOn) if shown.on == Some(true) => {
                self.started += 1;
                self.restored += u32::from(std::mem::take(&mut self.grown));
            }
            Some(Change::Shrink(wanted @ SavedState::Machine(_))) if moved(wanted) => {
                self.stopped += u32::from(shown.on == Some(false));
            }
            Some(Change::Restore(wanted @ SavedState::Machine(_))) if moved(wanted) => {
                let on = shown.on == Some(true);
                self.started += u32::from(on);
                self.restored += u32::from(on);
                self.grown = !on;
            }
            Some(Change::Shrink(SavedState::NodePool { count: 0, .. }))
                if shown.on == Some(false) =>
            {
                self.stopped += 1;
            }
            Some(Change::Shrink(wanted)) if size(wanted) => self.stopped += 1,
            Some(Change::Restore(wanted)) if size(wanted) => {
                self.started += 1;
                self.restored += 1;
            }
            Some(_) | None => {
                self.last = Some(shown);
                return;
            }
        }
        self.open = None;
        self.last = Some(shown);
    }

    fn accept(&mut self, entry: &Entry) {
        let body: Value = serde_json::from_str(&entry.request.body).unwrap_or_default();
        let word = match body["type"].as_str() {
            Some(word) => word.to_owned(),
            None => entry.request.path.rsplit('/').next().unwrap().to_owned(),
        };
        let change = match word.as_str() {
            "shutdown" => Change::PowerOff { forced: false },
            "power_off" | "poweroff" => Change::PowerOff { forced: self.open.is_some() },
            "power_on" | "poweron" => Change::PowerOn,
            _ => self.resize(&body),
        };
        self.open = Some(change);
    }

    fn resize(&mut self, body: &Value) -> Change {
        let last = self.last.as_ref().and_then(|shown| shown.size.clone()).unwrap();
        let number = |key: &str| body[key].as_u64().and_then(|n| u32::try_from(n).ok());
        let wanted = match &last {
            SavedState::Database { .. } => SavedState::Database {
                plan: body["size"].as_str().unwrap().to_owned(),
                nodes: number("num_nodes").unwrap(),
                storage_mib: body["storage_size_mib"].as_u64(),
            },
            SavedState::NodePool { .. } => SavedState::NodePool {
                count: number("count").unwrap(),
                autoscale: (body["auto_scale"] == true).then(|| AutoscaleBounds {
                    min: number("min_nodes").unwrap(),
                    max: number("max_nodes").unwrap(),
                }),
            },
            SavedState::Machine(machine) => {
                let plan = body["size"].as_str().or(body["server_type"].as_str());
                SavedState::Machine(MachineSize {
                    plan: plan.unwrap().to_owned(),
                    ..machine.clone()
                })
            }
        };
        if let SavedState::Machine(_) = &last {
            let saved = self.saved.get_or_insert(last);
            if fits(&wanted, saved) {
                return Change::Restore(wanted);
            }
            // Being off was not the end of its stop.
            self.stopped -= 1;
            return Change::Shrink(wanted);
        }
        // The size before the first shrink is the one that must come back.
        let saved = self.saved.get_or_insert(last);
        if self.stopped > self.restored {
            assert!(fits(&wanted, saved), "{wanted:?} is not {saved:?}");
            return Change::Restore(wanted);
        }
        Change::Shrink(wanted)
    }
}

/// Whether a size is the requested one. A request that omits the storage leaves it to the cloud.
fn fits(asked: &SavedState, size: &SavedState) -> bool {
    if let (SavedState::Machine(asked), SavedState::Machine(size)) = (asked, size) {
        return asked.plan == size.plan;
    }
    let mut asked = asked.clone();
    if let (
        SavedState::Database { storage_mib: asked @ None, .. },
        SavedState::Database { storage_mib, .. },
    ) = (&mut asked, size)
    {
        *asked = *storage_mib;
    }
    asked == *size
}

/// The resources in a GET's response, by reference.
fn shown(entry: &Entry) -> Vec<(String, Shown)> {
    let account = entry.account.as_ref().unwrap();
    let body: Value = serde_json::from_str(&entry.answer.as_ref().unwrap().body).unwrap();
    let rows = |many: &str, one: &str| -> Vec<Value> {
        let list = body[many].as_array().cloned().unwrap_or_default();
        list.into_iter().chain(body.get(one).cloned()).collect()
    };
    let mut found = Vec::new();
    for droplet in rows("droplets", "droplet") {
        found.push((format!("{account}/droplet/{}", droplet["id"]), machine(&droplet, "active")));
    }
    for server in rows("servers", "server") {
        found.push((format!("{account}/server/{}", server["id"]), machine(&server, "running")));
    }
    for database in rows("databases", "database") {
        let id = database["id"].as_str().unwrap();
        found.push((format!("{account}/database/{id}"), sized(&database)));
    }
    let clusters = rows("kubernetes_clusters", "kubernetes_cluster");
    let mut pools: Vec<(String, Value)> = Vec::new();
    for cluster in clusters {
        let id = cluster["id"].as_str().unwrap();
        let of_cluster = cluster["node_pools"].as_array().cloned().unwrap_or_default();
        pools.extend(of_cluster.into_iter().map(|pool| (id.to_owned(), pool)));
    }
    if let Some(rest) = entry.request.path.strip_suffix("/node_pools") {
        let id = rest.rsplit('/').next().unwrap();
        pools.extend(rows("node_pools", "").into_iter().map(|pool| (id.to_owned(), pool)));
    }
    for (cluster, pool) in pools {
        let id = pool["id"].as_str().unwrap();
        found.push((format!("{account}/node-pool/{cluster}/{id}"), node_pool(&pool)));
    }
    found
}

/// A Droplet's size, or a server's type.
fn machine_size(row: &Value) -> SavedState {
    let whole = |value: &Value| value.as_f64().map(|number| format!("{number:.0}"));
    let number = |value: &Value| whole(value).unwrap().parse::<u64>().unwrap();
    let server = &row["server_type"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    SavedState::Machine(if server.is_object() {
        MachineSize {
            plan: text(&server["name"]).unwrap(),
            vcpus: u32::try_from(number(&server["cores"])).unwrap(),
            memory_mib: number(&server["memory"]) * 1024,
            disk_gib: number(&row["primary_disk_size"]),
            architecture: text(&server["architecture"]),
            network_storage: server["storage_type"] == "network",
        }
    } else {
        MachineSize {
            plan: text(&row["size_slug"]).unwrap(),
            vcpus: u32::try_from(number(&row["vcpus"])).unwrap(),
            memory_mib: number(&row["memory"]),
            disk_gib: number(&row["disk"]),
            ..MachineSize::default()
        }
    })
}

fn machine(row: &Value, running: &str) -> Shown {
    let on = match row["status"].as_str().unwrap() {
        "off" => Some(false),
        word if word == running => Some(true),
        _ => None,
    };
    let size = Some(machine_size(row));
    Shown { on, size }
}

fn sized(database: &Value) -> Shown {
    let size = SavedState::Database {
        plan: database["size"].as_str().unwrap().to_owned(),
        nodes: u32::try_from(database["num_nodes"].as_u64().unwrap()).unwrap(),
        storage_mib: database["storage_size_mib"].as_u64(),
    };
    Shown { on: (database["status"] == "online").then_some(true), size: Some(size) }
}

fn node_pool(pool: &Value) -> Shown {
    let number = |key: &str| u32::try_from(pool[key].as_u64().unwrap_or_default()).unwrap();
    let nodes = pool["nodes"].as_array().cloned().unwrap_or_default();
    let ready = nodes.iter().filter(|node| node["status"]["state"] == "running").count();
    let count = number("count");
    let size = SavedState::NodePool {
        count,
        autoscale: (pool["auto_scale"] == true)
            .then(|| AutoscaleBounds { min: number("min_nodes"), max: number("max_nodes") }),
    };
    let on = match (nodes.len(), ready) {
        (0, _) => Some(false),
        (present, ready) if present == ready && ready == count as usize => Some(true),
        _ => None,
    };
    Shown { on, size: Some(size) }
}

fn history_is_what_the_clouds_saw(day: &Day) {
    let histories = histories(&day.log);
    for (resource, seen) in &histories {
        assert_eq!(seen.open, None, "{resource}: a change was never seen to its end");
        let entries = || {
            let history = day.history.iter();
            history.filter(|entry| entry.reference.to_string() == *resource)
        };
        let ended = |direction| {
            let seen = entries().filter(move |entry| entry.ending == Ending::Seen);
            seen.filter(move |entry| entry.direction == direction)
        };
        let count = |entries: &mut dyn Iterator<Item = &HistoryEntry>| {
            u32::try_from(entries.count()).unwrap()
        };
        let counts = (
            count(&mut ended(Direction::Stop)),
            count(&mut ended(Direction::Start)),
            count(&mut ended(Direction::Start).filter(|entry| entry.saved.is_some())),
            count(&mut ended(Direction::Stop).filter(|entry| entry.forced)),
        );
        let expected = (seen.stopped, seen.started, seen.restored, seen.forced);
        assert_eq!(counts, expected, "{resource}: stopped, started, restored, forced");
        let saved = ended(Direction::Stop).next_back().and_then(|entry| entry.saved.as_ref());
        assert_eq!(saved, seen.saved.as_ref().filter(|_| seen.stopped > 0), "{resource}");
        let refused = entries().filter(|entry| entry.ending == Ending::Refused);
        let refused: Vec<_> = refused.filter_map(|entry| entry.reason.as_ref()).collect();
        assert_eq!(refused.len(), seen.refused.len(), "{resource}");
        for (printed, body) in refused.iter().zip(&seen.refused) {
            let body: Value = serde_json::from_str(body).unwrap();
            let words = body["message"].as_str().or(body["error"]["message"].as_str()).unwrap();
            assert!(printed.contains(words), "{printed} is not {words}");
        }
    }
    for entry in &day.history {
        let resource = entry.reference.to_string();
        assert!(histories.contains_key(&resource), "{resource} is unknown to the clouds");
    }
    let some = |what: fn(&RequestHistory) -> bool| histories.values().any(what);
    assert!(some(|t| t.stopped > 0), "stopped");
    assert!(some(|t| t.started > 0), "started");
    assert!(some(|t| t.saved.is_some()), "saved");
    assert!(some(|t| t.restored > 0), "restored");
    assert!(some(|t| t.forced > 0), "forced");
    assert!(some(|t| !t.refused.is_empty()), "refused");
}

fn a_database_without_a_smaller_plan_is_already_smallest(day: &Day) {
    let histories = histories(&day.log);
    let options = day.log.iter().find(|e| e.request.path == "/v2/databases/options").unwrap();
    let options: Value = serde_json::from_str(&options.answer.as_ref().unwrap().body).unwrap();
    let mut smallest = BTreeSet::new();
    for entry in &day.log {
        if entry.request.method != "GET" || entry.request.path != "/v2/databases" {
            continue;
        }
        let body: Value = serde_json::from_str(&entry.answer.as_ref().unwrap().body).unwrap();
        for database in body["databases"].as_array().unwrap() {
            let reference = format!("do-main/database/{}", database["id"].as_str().unwrap());
            let engine = database["engine"].as_str().unwrap();
            let layouts = options["options"][engine]["layouts"].as_array().unwrap();
            let layout = layouts.iter().find(|l| l["num_nodes"] == database["num_nodes"]).unwrap();
            let plans = layout["sizes"].as_array().unwrap().iter();
            let least =
                plans.min_by_key(|plan| PlanCapacity::of_plan(plan.as_str().unwrap())).unwrap();
            let untouched = histories[&reference].changes == 0;
            if *least == database["size"] && untouched {
                smallest.insert(reference);
            }
        }
    }
    let printed =
        day.outcomes.iter().filter_map(|outcome| match (&outcome.subject, &outcome.event) {
            (Subject::Resource { resource, .. }, Event::AlreadyThere { reason, .. }) => {
                reason.contains("already smallest").then(|| resource.to_string())
            }
            _ => None,
        });
    let printed: BTreeSet<_> = printed.collect();
    assert_eq!(printed, smallest);
    assert_eq!(smallest.len(), 1);
}

/// The resources without what is new in a restored node pool, whose nodes are new: each node's id,
/// name, Droplet, and times of creation and change; the id, name and creation time of each node's
/// Droplet. Their number, size, state, tags and everything else are kept.
fn comparable(resources: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    let without = |value: &mut Value, fields: &[&str]| {
        for field in fields {
            value.as_object_mut().unwrap().remove(*field).unwrap();
        }
    };
    let mut comparable = BTreeMap::new();
    for (reference, view) in resources {
        let mut view = view.clone();
        // A guest that has run has written to its disk.
        view.as_object_mut().unwrap().remove("contents");
        let mut reference = reference.clone();
        if view["worker_of"].is_array() {
            without(&mut view, &["id", "name", "created"]);
            let of = view["worker_of"].to_string();
            let number = (1..=100).find(|n| !comparable.contains_key(&format!("{of} {n}")));
            reference = format!("{of} {}", number.unwrap());
        }
        // For a database, `nodes` is a number; for a node pool, a list.
        if let Some(nodes) = view["nodes"].as_array_mut() {
            for node in nodes {
                without(node, &["id", "name", "droplet", "created", "updated"]);
            }
        }
        comparable.insert(reference, view);
    }
    comparable
}

fn after_the_next_start_everything_is_as_it_was(day: &Day) {
    let (before, after) = (comparable(&day.before), comparable(&day.after));
    assert!(before.keys().eq(after.keys()));
    for (resource, before) in &before {
        assert_eq!(*before, after[resource], "{resource}");
    }
    assert!(before.len() > 20);
}

fn nothing_protected_opted_out_or_unnamed_is_touched(day: &Day) {
    for entry in day.log.iter().filter(|entry| entry.request.method != "GET") {
        let resource = entry.resource.as_ref().unwrap().to_string();
        assert!(!UNTOUCHABLE.contains(&resource.as_str()), "{entry:?}");
    }
    for resource in UNTOUCHABLE {
        assert!(day.before.contains_key(resource), "{resource} is in the fleet");
        assert_eq!(day.before[resource], day.after[resource]);
    }
    let excluded = |resource: &str| {
        let record = day.records.iter().find(|one| one.reference.to_string() == resource).unwrap();
        Membership::of(membership::Subject::recorded(record), &day.in_force)
    };
    let by = [UNTOUCHABLE[0], UNTOUCHABLE[2]].map(excluded);
    let [Membership::Excluded(protected), Membership::Excluded(opted_out)] = by else {
        panic!("{by:?}");
    };
    assert!(matches!(protected, Exclusion::Protected(_)), "{protected}");
    assert!(matches!(opted_out, Exclusion::OptedOut { .. }), "{opted_out}");
    let of_catalog = |one: &&HistoryEntry| one.reference.to_string() == BERLIN_CATALOG;
    let mut catalog = day.history.iter().filter(of_catalog);
    assert!(!catalog.any(|one| one.ending == Ending::Seen));
}

fn changes_use_the_documented_methods_and_paths_and_no_others(day: &Day) {
    let mut used = BTreeSet::new();
    for entry in day.log.iter().filter(|entry| entry.request.method != "GET") {
        let is_id = |part: &&str| part.len() == 36 || part.bytes().all(|c| c.is_ascii_digit());
        let parts = entry.request.path.split('/').skip(1);
        let path: String = parts
            .map(|part| if is_id(&part) { "/{id}".to_owned() } else { format!("/{part}") })
            .collect();
        let body: Value = serde_json::from_str(&entry.request.body).unwrap_or_default();
        let word = body["type"].as_str().unwrap_or_default();
        used.insert(format!("{} {path} {word}", entry.request.method).trim().to_owned());
    }
    let documented = [
        "POST /v1/servers/{id}/actions/change_type",
        "POST /v1/servers/{id}/actions/poweroff",
        "POST /v1/servers/{id}/actions/poweron",
        "POST /v1/servers/{id}/actions/shutdown",
        "POST /v2/droplets/{id}/actions power_off",
        "POST /v2/droplets/{id}/actions power_on",
        "POST /v2/droplets/{id}/actions resize",
        // New York's schedule is graceful.
        "POST /v2/droplets/{id}/actions shutdown",
        "PUT /v2/databases/{id}/resize",
        "PUT /v2/kubernetes/clusters/{id}/node_pools/{id}",
    ];
    assert_eq!(used, documented.map(str::to_owned).into());
}

#[test]
fn the_program_prints_one_json_object_per_line_and_the_summary_last() {
    let output = Command::new(program("offhours"))
        .args(["local", "--simulate", "--speed", "0", "--for", "2h", "-o", "json"])
        .output()
        .unwrap();
    let complaints = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{complaints}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    let summary: Summary = serde_json::from_str(lines.pop().unwrap()).unwrap();
    let mut ended = BTreeMap::<String, usize>::new();
    let mut digests = Vec::new();
    for line in lines {
        let printed: Value = serde_json::from_str(line).unwrap();
        if printed["event"] == "edge-completed" {
            digests.push(serde_json::from_value::<Digest>(printed).unwrap());
            continue;
        }
        let outcome: Occurrence = serde_json::from_value(printed).unwrap();
        if let (Subject::Resource { resource, .. }, Event::Seen { .. }) =
            (&outcome.subject, &outcome.event)
        {
            *ended.entry(resource.to_string()).or_default() += 1;
        }
    }
    assert!(!digests.is_empty());
    let mut kept = BTreeMap::<String, usize>::new();
    let seen = |entry: &&HistoryEntry| entry.ending == Ending::Seen;
    for entry in summary.history.iter().filter(seen) {
        *kept.entry(entry.reference.to_string()).or_default() += 1;
    }
    assert_eq!(kept, ended);
    assert!(!kept.is_empty());
}

/// The machines of the demo that a person rehearses.
const REHEARSED: [&str; 2] = ["do-main/droplet/391990217", "hz-eu/server/52934801"];

#[test]
fn the_demonstration_hibernates_machines_after_their_rehearsal_and_wakes_them_in_time() {
    let output = Command::new(program("offhours"))
        .args(["local", "--simulate", "--speed", "0", "-o", "json"])
        .output()
        .unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    let summary: Summary = serde_json::from_str(lines.pop().unwrap()).unwrap();
    let mut seen = BTreeMap::<String, Vec<_>>::new();
    let mut digests = Vec::new();
    let mut announced = Vec::new();
    for line in lines {
        let printed: Value = serde_json::from_str(line).unwrap();
        match printed["event"].as_str() {
            Some("edge-completed") => {
                digests.push(serde_json::from_value::<Digest>(printed).unwrap());
                continue;
            }
            Some("stop-announced") => {
                announced.push(serde_json::from_value::<StopNotice>(printed).unwrap());
                continue;
            }
            Some(_) | None => {}
        }
        let outcome: Occurrence = serde_json::from_value(printed).unwrap();
        if let (Subject::Resource { resource, .. }, Event::Seen { direction, method, .. }) =
            (&outcome.subject, &outcome.event)
        {
            let of = seen.entry(resource.to_string()).or_default();
            of.push((outcome.at, *direction, *method));
        }
    }
    let opens = instant("2026-11-24T05:00:00Z");
    for machine in REHEARSED {
        let seen = &seen[machine];
        let [_, _, (slept_at, _, method), (woken_at, direction, _)] = seen.as_slice() else {
            panic!("{machine}: {seen:#?}");
        };
        assert_eq!(*method, Some(StopMethod::Hibernate));
        assert!(*slept_at > monday("19:30:00"));
        assert_eq!(*direction, Direction::Start);
        let early = opens - SignedDuration::from_mins(15)..=opens;
        assert!(early.contains(woken_at), "{machine}: {woken_at}");
    }
    // Under their own references, and no others.
    let names = |name: &str| {
        let all = summary.history.iter().filter(|one| one.name == name);
        all.map(|one| &one.reference).collect::<BTreeSet<_>>().len()
    };
    assert_eq!((names("berlin-bench"), names("berlin-build")), (1, 1));
    let of_builds = digests.iter().filter(|digest| digest.schedule.as_str() == "berlin-builds");
    let counted: Vec<_> = of_builds.map(|digest| (digest.desired, digest.seen)).collect();
    assert_eq!(counted, [(Desired::Stopped, 2), (Desired::Running, 2)]);
    assert_eq!(announced[0].edge, monday("23:00:00"), "New York's office closes");
    assert!(announced.iter().all(|one| one.schedule.as_str() == "new-york-office"));
    assert!(!summary.bill.is_empty());
    let mut bills = summary.bill.values();
    assert!(bills.all(|bill| bill.charged < bill.left_running));
}

const TWO_WEEKS: &str = r#"
    [accounts.do-main]
    provider = "digitalocean"
    token = "env:DO_TOKEN"

    [accounts.hz-eu]
    provider = "hetzner"
    token = "env:HZ_TOKEN"

    [schedules.berlin]
    timezone = "Europe/Berlin"
    periods = [{ weekdays = "mon-fri", begin = "08:00", end = "19:00" }]

    [schedules.new-york]
    timezone = "America/New_York"
    periods = [{ weekdays = "mon-fri", begin = "08:30", end = "18:00" }]

    # From Saturday evening into the hour that the clock repeats on Sunday.
    [schedules.night]
    timezone = "Europe/Berlin"
    periods = [{ weekdays = "sat", begin = "22:00", end = "02:30" }]
"#;

/// The edges that `offhours preview` prints: schedule, instant, and whether it starts.
fn previewed(from: Timestamp) -> BTreeSet<(String, Timestamp, bool)> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("offhours.toml");
    std::fs::write(&file, TWO_WEEKS).unwrap();
    let output = Command::new(program("offhours"))
        .args(["preview", "--for", "2w", "-o", "json", "--at"])
        .arg(from.to_string())
        .arg("--config")
        .arg(&file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let preview: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut edges = BTreeSet::new();
    for row in preview.as_array().unwrap().iter().filter(|row| !row["cause"].is_null()) {
        let name = row["schedule"].as_str().unwrap();
        let at = instant(row["at"].as_str().unwrap());
        edges.insert((name.to_owned(), at, row["to"] == "running"));
    }
    edges
}

/// A tick per hour for two weeks, and every minute around each edge. More ticks in quiet hours
/// would make the test slow and show nothing more, since a wrong edge is acted on at the next tick.
fn ticks(from: Timestamp, edges: &BTreeSet<(String, Timestamp, bool)>) -> BTreeSet<Timestamp> {
    let minutes = SignedDuration::from_mins;
    let regular = (0..14 * 24).map(|hour| from + minutes(60 * hour));
    let around = edges.iter();
    let around = around.flat_map(|(_, at, _)| (-2..=3).map(|minute| *at + minutes(minute)));
    regular.chain(around).collect()
}

#[test]
fn over_two_clock_changes_power_follows_the_preview_and_nothing_else() {
    let from = instant("2026-10-19T00:00:00Z");
    let edges = previewed(from);
    let log = run(async {
        let fleet = format!(
            r#"{ACCOUNTS}
            [[droplets]]
            id = 1
            name = "new-york"
            tags = ["offhours:new-york"]
            status = "off"
            [[servers]]
            id = 2
            name = "berlin"
            labels = {{ offhours = "berlin" }}
            status = "off"
            [[servers]]
            id = 3
            name = "night"
            labels = {{ offhours = "night" }}
            status = "off"
            "#
        );
        let world = World::start(TWO_WEEKS, &fleet, from).await;
        for tick in ticks(from, &edges) {
            world.local.tick_at(tick).await.unwrap();
        }
        world.local.finish().await;
        world.changes()
    });
    let mut changed = BTreeSet::new();
    for change in &log {
        let schedule = match change.resource.as_ref().unwrap().to_string().as_str() {
            "do-main/droplet/1" => "new-york",
            "hz-eu/server/2" => "berlin",
            "hz-eu/server/3" => "night",
            other => panic!("{other}"),
        };
        let starts =
            change.request.body.contains("power_on") || change.request.path.ends_with("poweron");
        let edge = edges.iter().find(|(name, at, running)| {
            let late = change.at.duration_since(*at);
            let soon = SignedDuration::ZERO <= late && late <= SignedDuration::from_mins(2);
            name == schedule && *running == starts && soon
        });
        let edge = edge.unwrap_or_else(|| panic!("{schedule} at {}: no edge", change.at));
        assert!(changed.insert(edge.clone()), "{edge:?} led to two changes");
    }
    assert_eq!(changed, edges, "each edge led to a change");
    assert_eq!(edges.len(), 10 * 2 + 10 * 2 + 2 * 2);
    // Before and after the clock change in Berlin, and in New York.
    for (name, at) in [
        ("berlin", "2026-10-23T06:00:00Z"),
        ("berlin", "2026-10-26T07:00:00Z"),
        ("night", "2026-10-25T01:30:00Z"),
        ("new-york", "2026-10-30T22:00:00Z"),
    ] {
        assert!(edges.iter().any(|(n, t, _)| n == name && *t == instant(at)), "{name} {at}");
    }
}
