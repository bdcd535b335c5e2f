//! Machines that are kept as snapshots while they are stopped: ordinary days, and days on which
//! something goes wrong.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;
use cloud_simulator::Act;
use domain::{
    record::{Phase, Record, Revision},
    resource::Power,
    schedule::Desired,
};
use jiff::{SignedDuration, Timestamp};
use lifecycle::{Event, Occurrence};
use serde_json::{Value, json};
use store::item::record_key;

use crate::{
    newer_format::{RESOURCES, rewrite},
    support::{ACCOUNTS, World, fault, monday, reference, run, serve},
    traffic::fits_the_clouds_descriptions,
};

/// What differs between the clouds.
pub(crate) struct Cloud {
    account: &'static str,
    pub(crate) machine: &'static str,
    pub(crate) configuration: &'static str,
    /// A machine with everything that its cloud can attach to one.
    pub(crate) fleet: &'static str,
    /// The API path of machines.
    machines: &'static str,
    /// The tags with which a person opts a machine out.
    opted_out: [&'static str; 1],
    running: &'static str,
    /// Whether a machine is one of ours, judging by its state at the cloud.
    is_ours: fn(&Value) -> bool,
    /// The kinds of requests in a night: the method, the path, and a part of the body.
    requests: &'static [(&'static str, &'static str, &'static str)],
}

pub(crate) const HETZNER: Cloud = Cloud {
    account: "hz-eu",
    machine: "hz-eu/server/42",
    configuration: r#"
[accounts.hz-eu]
provider = "hetzner"
token = "env:HZ_TOKEN"
ssh_key = "team"

[schedules.office]
timezone = "UTC"
periods = [{ begin = "06:00", end = "19:00" }]
methods = { server = "hibernate" }
"#,
    fleet: r#"
[[servers]]
id = 42
name = "build"
server_type = "cpx22"
location = "fsn1"
addresses = ["ipv4", "ipv6"]
labels = { offhours = "office", team = "ci" }

[[hetzner.networks]]
id = 7
name = "internal"
members = [{ server = 42, ip = "10.0.0.9" }]

[[hetzner.volumes]]
id = 8
name = "data"
server = 42

[[hetzner.firewalls]]
id = 9
name = "web"
servers = [42]

[[hetzner.load_balancers]]
id = 10
name = "front"
targets = [{ server = 42, use_private_ip = true }]

[[hetzner.ssh_keys]]
id = 14
name = "team"
public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI team"
"#,
    machines: "/v1/servers",
    opted_out: ["offhours=off"],
    running: "running",
    is_ours: |server| server["id"] == 42 || server["labels"]["offhours-of"] == "server.42",
    requests: &[
        ("POST", "create_image", ""),
        ("POST", "change_protection", ""),
        ("DELETE", "/v1/servers/", ""),
        ("POST", "/v1/servers", ""),
        ("POST", "attach_to_network", ""),
        ("POST", "add_target", ""),
        ("POST", "poweron", ""),
    ],
};

pub(crate) const DIGITALOCEAN: Cloud = Cloud {
    account: "do-main",
    machine: "do-main/droplet/42",
    configuration: r#"
[accounts.do-main]
provider = "digitalocean"
token = "env:DO_TOKEN"
ssh_key = "team"

[schedules.office]
timezone = "UTC"
periods = [{ begin = "06:00", end = "19:00" }]
methods = { droplet = "hibernate" }
graceful = true
accept = "lost-backups"
"#,
    fleet: r#"
[[droplets]]
id = 42
name = "build"
tags = ["offhours:office", "team:ci"]
size = "s-2vcpu-4gb"
has = ["monitoring", "ipv6", "backups"]
vpc = "760e09ef-dc84-41e8-981e-3cfdfeaae001"
backup_policy = { plan = "daily", hour = 4 }

[[digitalocean.reserved_ips]]
ip = "192.0.2.9"
droplet = 42

[[digitalocean.reserved_ips]]
ip = "2001:db8:9::1"
droplet = 42

[[digitalocean.volumes]]
id = "506f78a4-e098-11e5-ad9f-000f53306ae1"
name = "data"
droplet = 42

[[digitalocean.firewalls]]
id = "bb4b2611-3d72-467b-8602-280330ecd65c"
name = "web"
droplets = [42]

[[digitalocean.firewalls]]
id = "cc4b2611-3d72-467b-8602-280330ecd65c"
name = "ci"
tags = ["team:ci"]

[[digitalocean.load_balancers]]
id = "4de7ac8b-495b-4884-9a69-1050c6793cd6"
name = "front"
droplets = [42]

[[digitalocean.projects]]
id = "4e1bfbc3-dc3e-41f2-a18f-1b4d7ba71679"
name = "first"
is_default = true

[[digitalocean.projects]]
id = "5e1bfbc3-dc3e-41f2-a18f-1b4d7ba71679"
name = "ci"
droplets = [42]

[[digitalocean.ssh_keys]]
id = 289794
name = "team"
public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI team"
"#,
    machines: "/v2/droplets",
    opted_out: ["offhours:off"],
    running: "active",
    is_ours: |droplet| {
        let tags = droplet["tags"].as_array().unwrap();
        droplet["id"] == 42 || tags.contains(&json!("offhours-of:droplet-42"))
    },
    requests: &[
        ("POST", "/actions", "shutdown"),
        ("POST", "/actions", "snapshot"),
        ("DELETE", "/v2/droplets/", ""),
        ("POST", "/v2/droplets", ""),
        ("POST", "/v2/firewalls/", ""),
        ("POST", "/v2/load_balancers/", ""),
        ("POST", "/v2/reserved_ips/", ""),
        ("POST", "/v2/reserved_ipv6/", ""),
        ("POST", "/v2/projects/", ""),
    ],
};

/// An instant on Tuesday, including the night after Monday.
fn tuesday(time: &str) -> Timestamp {
    monday(time) + SignedDuration::from_hours(24)
}

/// The service with one machine, from the afternoon on. It keeps track of the latest contents of
/// the disk.
struct Night {
    cloud: &'static Cloud,
    world: World,
    latest: String,
    /// The ids of our machines that were seen.
    known: BTreeSet<u64>,
    /// What the first machine had.
    had: Value,
}

impl Night {
    /// Before a rehearsal.
    async fn unrehearsed(cloud: &'static Cloud, configuration: &str) -> Self {
        Self::of(cloud, configuration, cloud.fleet).await
    }

    async fn of(cloud: &'static Cloud, configuration: &str, fleet: &str) -> Self {
        let fleet = format!("{ACCOUNTS}{fleet}");
        let world = World::start(configuration, &fleet, monday("16:50:00")).await;
        world.run_until(monday("17:00:30")).await;
        let mut night = Self {
            cloud,
            latest: String::new(),
            known: BTreeSet::from([42]),
            had: Value::Null,
            world,
        };
        night.latest = text(&night.only()["contents"]);
        night.had = night.has(&json!(42)).await;
        night
    }

    /// After a rehearsal.
    async fn begin(cloud: &'static Cloud) -> Self {
        Self::begin_with(cloud, cloud.fleet).await
    }

    async fn begin_with(cloud: &'static Cloud, fleet: &str) -> Self {
        let night = Self::of(cloud, cloud.configuration, fleet).await;
        night.rehearsed().await
    }

    async fn rehearsed(mut self) -> Self {
        let event = json!({"resources": [self.cloud.machine], "by": "ada", "rehearsal": true});
        self.world.stop(&event).await;
        self.run_until(monday("17:30:30")).await;
        assert_eq!(self.machines(), Vec::<Value>::new());
        self.start().await;
        self.run_until(monday("18:00:30")).await;
        let record = self.record().await;
        assert_eq!(record.phase, Phase::Settled { at: Power::Running });
        assert!(record.hibernation.is_some_and(|kept| kept.is_rehearsed()));
        self
    }

    /// Starts the machine by a person's command.
    async fn start(&self) {
        let event = json!({"resources": [self.cloud.machine], "by": "ada"});
        self.world.start_now(&event).await;
    }

    async fn record(&self) -> Record {
        self.world.record(self.cloud.machine).await
    }

    /// The machines that exist.
    fn machines(&self) -> Vec<Value> {
        let all = self.world.simulator().resources();
        let is_machine = |of: &str| of.contains("/server/") || of.contains("/droplet/");
        let machines = all.into_iter().filter(|(of, _)| is_machine(of));
        machines.map(|(_, shown)| shown).collect()
    }

    fn only(&self) -> Value {
        let mut machines = self.machines();
        assert_eq!(machines.len(), 1, "{machines:#?}");
        machines.remove(0)
    }

    /// The machine that exists, by its reference at the cloud.
    fn present(&self) -> String {
        let kind = self.cloud.machine.rsplit_once('/').unwrap().0;
        format!("{kind}/{}", self.only()["id"])
    }

    /// Runs until an instant, checking every minute that the latest data exist.
    async fn run_until(&mut self, until: Timestamp) {
        while self.world.local.now() < until {
            let minute = self.world.local.now() + SignedDuration::from_mins(1);
            // A minute's futures are too large for a test's stack.
            Box::pin(self.world.run_until(minute.min(until))).await;
            self.look();
        }
    }

    /// Runs until an instant. Returns how many requests the cloud has answered meanwhile.
    async fn requests_until(&mut self, until: Timestamp) -> u64 {
        let before = self.last_request();
        self.run_until(until).await;
        self.last_request() - before
    }

    fn last_request(&self) -> u64 {
        self.world.simulator().log().last().map_or(0, |entry| entry.sequence)
    }

    fn look(&mut self) {
        let now = self.world.local.now();
        let mut ours = self.machines();
        ours.retain(self.cloud.is_ours);
        assert!(ours.len() <= 1, "{now}: two machines: {ours:#?}");
        if let Some(machine) = ours.first() {
            if self.known.insert(machine["id"].as_u64().unwrap()) {
                let first = text(&machine["first_contents"]);
                assert_eq!(first, self.latest, "{now}: made from an older snapshot");
            }
            self.latest = text(&machine["contents"]);
            return;
        }
        let images = self.world.simulator().images();
        // A Droplet's snapshot is listed only once it is complete.
        let whole = |image: &&Value| image.get("status").is_none_or(|is| is == "available");
        let mut whole = images.iter().filter(whole);
        let copied = whole.any(|image| text(&image["contents"]) == self.latest);
        assert!(copied, "{now}: the data of {} are lost", self.latest);
    }

    async fn sleeps(&self) {
        let record = self.record().await;
        let asleep =
            record.is_hibernated() && record.phase == Phase::Settled { at: Power::Stopped };
        assert!(asleep, "{record:#?}");
        assert_eq!(self.machines(), Vec::<Value>::new());
    }

    /// Checks that one machine runs and has everything that the first one had.
    async fn runs(&self) {
        let record = self.record().await;
        let running = Phase::Settled { at: Power::Running };
        assert_eq!(record.phase, running, "{record:#?}");
        let machine = self.only();
        assert_eq!(machine["status"], self.cloud.running);
        assert_eq!(self.has(&machine["id"]).await, self.had);
    }

    /// Checks that nothing is created beside another machine, and that everything recovers once a
    /// person has deleted it.
    async fn is_in_the_way(&mut self, other: &str) {
        let (_, id) = other.split_once('/').unwrap();
        self.run_until(tuesday("06:30:30")).await;
        self.stuck(&format!("{id} has its name"));
        assert_eq!(self.only()["id"], id.split_once('/').unwrap().1.parse::<u64>().unwrap());
        self.world.person(other, Act::Delete);
        self.run_until(tuesday("07:00:30")).await;
        self.runs().await;
    }

    /// Deletes something through the API, as a person would.
    async fn deletes(&self, path: &str) {
        let http = provider::http_client().unwrap();
        let (version, token) = self.api();
        let request = http.delete(format!("{}/{version}/{path}", self.url().await));
        let answer = request.bearer_auth(token).send().await.unwrap();
        assert_eq!(answer.status(), 204, "{path}");
    }

    /// Checks that the machine is deleted on the next evening, and recreated with what it has now.
    async fn is_whole_after_another(&mut self) {
        self.run_until(tuesday("19:30:30")).await;
        self.sleeps().await;
        self.run_until(tuesday("06:00:30") + SignedDuration::from_hours(24)).await;
        assert_eq!(self.only()["status"], self.cloud.running);
        assert_eq!(self.record().await.hibernation_problem(), None);
    }

    /// Creates a Droplet through the API, as a person would, and returns its id.
    async fn makes(&self, body: &Value) -> u64 {
        let made = self.posts("droplets", body).await;
        made["droplet"]["id"].as_u64().unwrap_or_else(|| panic!("{made}"))
    }

    async fn posts(&self, path: &str, body: &Value) -> Value {
        let http = provider::http_client().unwrap();
        let (version, token) = self.api();
        let request = http.post(format!("{}/{version}/{path}", self.url().await));
        request.bearer_auth(token).json(body).send().await.unwrap().json().await.unwrap()
    }

    fn stuck(&mut self, with: &str) {
        let events = self.world.events(self.cloud.machine);
        let stuck = events
            .iter()
            .any(|event| matches!(event, Event::Stuck { reason, .. } if reason.contains(with)));
        assert!(stuck, "{events:#?}");
    }

    /// Checks that a person was told of a conflict.
    fn is_told(&mut self, with: &str) {
        let events = self.world.events(self.cloud.machine);
        let reported = events
            .iter()
            .any(|event| matches!(event, Event::Conflict { reason } if reason.contains(with)));
        assert!(reported, "{events:#?}");
    }

    fn fails(&self, (method, path, body): (&str, &str, &str), does: &Value) {
        let mut matching = json!({"method": method, "account": self.cloud.account});
        let begins = path.starts_with('/') && path.ends_with('/');
        let place = if begins { "path_prefix" } else { "path_suffix" };
        matching[place] = json!(path);
        if !body.is_empty() {
            matching["body_contains"] = json!(body);
        }
        let one = fault(&json!({"match": matching, "does": does}));
        self.world.simulator().add_fault(one);
    }

    /// From now on, each answer of the cloud takes this long.
    fn answers_after(&self, delay: &str) {
        let matching = json!({"account": self.cloud.account});
        let does = json!({"delay": {"by": delay}});
        let slow = json!({"match": matching, "times": u32::MAX, "does": does});
        self.world.simulator().add_fault(fault(&slow));
    }

    /// The number of deletion requests for machines.
    fn deletions(&self) -> usize {
        let below = format!("{}/", self.cloud.machines);
        let changes = self.world.changes();
        let requests = changes.iter().map(|entry| &entry.request);
        requests
            .filter(|request| request.method == "DELETE" && request.path.starts_with(&below))
            .count()
    }

    /// The number of creation requests for machines.
    fn creations(&self) -> usize {
        let changes = self.world.changes();
        let requests = changes.iter().map(|entry| &entry.request);
        requests
            .filter(|request| request.method == "POST" && request.path == self.cloud.machines)
            .count()
    }

    /// The cloud's response to a GET request.
    async fn asks(&self, path: String) -> Value {
        let (version, token) = self.api();
        ask(&self.url().await, &format!("{version}/{path}"), token).await
    }

    /// The version of the cloud's API, and the token.
    fn api(&self) -> (&'static str, &'static str) {
        match self.cloud.account {
            "do-main" => ("v2", "secret-do-token"),
            _ => ("v1", "secret-hz-token"),
        }
    }

    async fn url(&self) -> String {
        let address = serve(self.world.simulator().router()).await;
        format!("http://{address}")
    }

    /// What a machine has at its cloud, except what is unique to it: its id, its image, its age.
    async fn has(&self, id: &Value) -> Value {
        if self.cloud.account == "hz-eu" {
            server_has(&self.url().await, id).await
        } else {
            self.droplet_has(id).await
        }
    }

    async fn droplet_has(&self, id: &Value) -> Value {
        let droplet = &self.asks(format!("droplets/{id}")).await["droplet"];
        let firewalls = &self.asks(format!("droplets/{id}/firewalls")).await["firewalls"];
        let firewalls = firewalls.as_array().unwrap().iter();
        let policy = &self.asks(format!("droplets/{id}/backups/policy")).await["policy"];
        let balancers = &self.asks("load_balancers".to_owned()).await["load_balancers"];
        let mut reserved = Vec::new();
        for (path, key) in [("reserved_ips", "reserved_ips"), ("reserved_ipv6", "reserved_ipv6s")] {
            let all = self.asks(path.to_owned()).await;
            let own = all[key].as_array().unwrap().iter();
            let own = own.filter(|ip| ip["droplet"]["id"] == *id);
            reserved.extend(own.map(|ip| ip["ip"].clone()));
        }
        let mut projects = Vec::new();
        for project in self.asks("projects".to_owned()).await["projects"].as_array().unwrap() {
            let path = format!("projects/{}/resources", project["id"].as_str().unwrap());
            let resources = &self.asks(path).await["resources"];
            let resources = resources.as_array().unwrap();
            if resources.iter().any(|one| one["urn"] == format!("do:droplet:{id}")) {
                projects.push(project["name"].clone());
            }
        }
        let tags = droplet["tags"].as_array().unwrap().iter();
        let tags = tags.filter(|tag| !tag.as_str().unwrap().starts_with("offhours-"));
        json!({
            "name": droplet["name"],
            "tags": tags.collect::<Vec<_>>(),
            "plan": droplet["size_slug"],
            "region": droplet["region"]["slug"],
            "features": droplet["features"],
            "backups": policy["backup_policy"],
            "vpc": droplet["vpc_uuid"],
            "volumes": droplet["volume_ids"],
            "firewalls": firewalls.map(|one| &one["name"]).collect::<Vec<_>>(),
            "balanced": balancers[0]["droplet_ids"] == json!([id]),
            "reserved": reserved,
            "projects": projects,
        })
    }
}

async fn ask(url: &str, path: &str, token: &str) -> Value {
    let http = provider::http_client().unwrap();
    let request = http.get(format!("{url}/{path}")).bearer_auth(token);
    request.send().await.unwrap().json().await.unwrap()
}

/// The same for a server at a simulator's address.
pub(crate) async fn server_has(url: &str, id: &Value) -> Value {
    let ask = async |path: String| ask(url, &format!("v1/{path}"), "secret-hz-token").await;
    let server = &ask(format!("servers/{id}")).await["server"];
    let balancer = &ask("load_balancers/10".to_owned()).await["load_balancer"];
    let (public, private) = (&server["public_net"], &server["private_net"][0]);
    json!({
        "name": server["name"],
        "team": server["labels"]["team"],
        "plan": server["server_type"]["name"],
        "location": server["location"]["name"],
        "addresses": [public["ipv4"]["ip"], public["ipv6"]["ip"]],
        "firewalls": public["firewalls"],
        "private": [private["network"], private["ip"]],
        "volumes": server["volumes"],
        "balanced": balancer["targets"][0]["server"]["id"] == *id,
    })
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// Runs a test once for each cloud.
fn at_each_cloud(test: impl AsyncFn(&'static Cloud)) {
    for cloud in [&HETZNER, &DIGITALOCEAN] {
        run(test(cloud));
    }
}

#[test]
fn a_rehearsed_machine_is_a_snapshot_by_night_and_itself_by_day() {
    at_each_cloud(async |cloud| {
        let mut night = Night::begin(cloud).await;
        night.run_until(monday("19:30:30")).await;
        night.sleeps().await;
        night.run_until(tuesday("06:00:30")).await;
        night.runs().await;
        fits_the_clouds_descriptions(&night.world.simulator().log());
    });
}

/// Apart from inventories, which take as many in the hour of the stop, in one of the night, and in the
/// hour of the start.
#[test]
fn a_night_takes_few_requests() {
    at_each_cloud(async |cloud| {
        let mut night = Night::begin(cloud).await;
        night.run_until(monday("18:59:30")).await;
        let stop = night.requests_until(monday("19:59:30")).await;
        night.sleeps().await;
        let asleep = night.requests_until(monday("20:59:30")).await;
        night.run_until(tuesday("05:29:30")).await;
        let start = night.requests_until(tuesday("06:29:30")).await;
        night.runs().await;
        let expected = if cloud.machine == HETZNER.machine { [87, 24, 42] } else { [203, 60, 142] };
        assert_eq!([stop - asleep, asleep, start - asleep], expected, "{}", cloud.machine);
    });
}

#[test]
fn what_has_not_been_rehearsed_is_not_hibernated() {
    at_each_cloud(async |cloud| {
        let mut night = Night::unrehearsed(cloud, cloud.configuration).await;
        night.run_until(monday("20:00:30")).await;
        let phase = night.record().await.phase;
        assert!(matches!(phase, Phase::Refused { .. }), "{phase:?}");
        assert_eq!(night.only()["status"], cloud.running);

        let or_off = cloud.configuration.to_owned() + "otherwise = \"power-off\"\n";
        let mut night = Night::unrehearsed(cloud, &or_off).await;
        night.run_until(monday("20:00:30")).await;
        let phase = night.record().await.phase;
        assert_eq!(phase, Phase::Settled { at: Power::Stopped });
        assert_eq!(night.only()["status"], "off");
    });
}

/// The rehearsal itself may take long, because it shows how large the snapshot is.
#[test]
fn a_snapshot_that_would_take_most_of_the_night_is_not_begun() {
    run(async {
        let short = DIGITALOCEAN.configuration.replace("06:00", "00:30");
        let fleet = droplet_with("snapshot_gb = 79.0\n");
        let night = Night::of(&DIGITALOCEAN, &short, &fleet).await;
        let mut night = night.rehearsed().await;
        night.run_until(monday("20:00:30")).await;
        let phase = night.record().await.phase;
        let Phase::Refused { reason, .. } = &phase else {
            panic!("{phase:?}");
        };
        assert!(reason.contains("may take 158 min"), "{reason}");
        assert_eq!(night.only()["status"], DIGITALOCEAN.running);
        assert_eq!(night.world.simulator().images().len(), 1);
    });
}

/// Each request of a night is lost on its way there or back, late, slow, or answered with an error.
#[test]
fn whatever_becomes_of_a_request_the_machine_is_back_in_the_morning() {
    let all = [
        json!({"drop": {"after_effect": true}}),
        json!({"drop": {"after_effect": false}}),
        json!({"late": {"by": "PT40S"}}),
        json!({"slow": {"by": "PT8M"}}),
        json!({"answer": {"status": 503}}),
        json!({"answer": {"status": 500, "after_effect": true}}),
    ];
    for does in &all {
        at_each_cloud(async |cloud| {
            let mut night = Night::begin(cloud).await;
            for request in cloud.requests {
                night.fails(*request, does);
            }
            night.run_until(tuesday("06:45:30")).await;
            let left = night.world.simulator().faults();
            assert!(left.is_empty(), "{does}: {left:?}");
            night.runs().await;
        });
    }
}

#[test]
fn a_machine_that_a_person_switches_on_after_its_snapshot_stays() {
    at_each_cloud(async |cloud| {
        let mut night = Night::begin(cloud).await;
        let below = format!("{}/", cloud.machines);
        night.fails(("DELETE", &below, ""), &json!({"answer": {"status": 503}}));
        let before = night.deletions();
        while night.deletions() == before {
            let next = night.world.local.now() + SignedDuration::from_mins(1);
            night.run_until(next).await;
        }
        night.world.person(&night.present(), Act::PowerOn);
        night.run_until(monday("22:00:30")).await;
        assert_eq!(night.only()["status"], cloud.running);
        assert_eq!(night.deletions(), before + 1);
    });
}

#[test]
fn a_droplet_whose_shutdown_ends_in_an_error_is_cut_off_and_hibernated() {
    run(async {
        let wedged = droplet_with("ignores_shutdown = true\nshutdown_error = \"2m\"\n");
        let mut night = Night::begin_with(&DIGITALOCEAN, &wedged).await;
        night.run_until(monday("19:30:30")).await;
        night.sleeps().await;
    });
}

#[test]
fn a_droplet_is_hibernated_though_each_answer_of_its_cloud_takes_a_second() {
    run(async {
        let mut night = Night::begin(&DIGITALOCEAN).await;
        night.answers_after("1.1s");
        night.run_until(monday("19:40:30")).await;
        night.sleeps().await;
    });
}

#[test]
fn a_deletion_that_rests_on_too_old_a_reading_waits_and_says_so() {
    run(async {
        let mut night = Night::begin(&DIGITALOCEAN).await;
        night.answers_after("2s");
        let before = night.deletions();
        night.run_until(monday("19:50:30")).await;
        assert_eq!(night.deletions(), before);
        let record = night.record().await;
        let reason = record.last_error.unwrap().to_string();
        assert!(reason.contains("older than 10 s"), "{reason}");
        assert!(record.attempts > 2 && record.retry_at.is_some());
        night.world.simulator().clear_faults();
        night.run_until(monday("20:20:30")).await;
        night.sleeps().await;
    });
}

/// The request for the snapshot is on its way when a person switches the machine on: it copies a
/// running machine, and the log has nothing after it.
#[test]
fn what_a_person_writes_after_a_snapshot_that_began_too_late_is_kept() {
    at_each_cloud(async |cloud| {
        let mut night = Night::begin(cloud).await;
        night.fails(
            cloud.requests[usize::from(cloud.account == "do-main")],
            &json!({"late": {"by": "PT60S"}}),
        );
        let images = night.world.simulator().images().len();
        night.run_until(monday("19:01:01")).await;
        let machine = night.present();
        assert_eq!(night.only()["status"], "off");
        assert_eq!(night.world.simulator().images().len(), images);
        night.world.person(&machine, Act::PowerOn);
        night.run_until(tuesday("18:50:30")).await;
        assert_eq!(night.world.simulator().images().len(), images + 1);
        assert_eq!(night.only()["status"], cloud.running);
        // The guest switches itself off.
        let status = "off".to_owned();
        night.world.person(&machine, Act::SetStatus { status });
        night.run_until(tuesday("20:00:30")).await;
        night.sleeps().await;
        assert_eq!(night.world.simulator().images().len(), images + 2);
    });
}

#[test]
fn a_machine_that_its_owner_deletes_after_our_deletion_was_lost_stays_away() {
    at_each_cloud(async |cloud| {
        let mut night = Night::begin(cloud).await;
        let below = format!("{}/", cloud.machines);
        let lost = json!({"drop": {"after_effect": false}});
        night.fails(("DELETE", &below, ""), &lost);
        let before = night.deletions();
        while night.deletions() == before {
            let next = night.world.local.now() + SignedDuration::from_mins(1);
            night.run_until(next).await;
        }
        let machine = night.present();
        night.world.retag(&machine, &cloud.opted_out);
        night.run_until(monday("19:45:30")).await;
        assert_eq!(night.only()["status"], "off");
        night.world.person(&machine, Act::Delete);
        night.world.run_until(tuesday("06:30:30")).await;
        assert_eq!(night.machines(), Vec::<Value>::new());
        assert!(!night.record().await.is_hibernated());
    });
}

/// Its cloud may call a good snapshot anything for some minutes.
#[test]
fn no_snapshot_is_removed_for_what_its_cloud_calls_it() {
    at_each_cloud(async |cloud| {
        for word in ["unavailable", "retired"] {
            let mut night = Night::begin(cloud).await;
            let [image] = &night.world.simulator().images()[..] else {
                panic!("one snapshot");
            };
            let id = image["id"].as_u64().unwrap();
            let account = cloud.account.parse().unwrap();
            let shown = |night: &Night, word| {
                assert!(night.world.simulator().show_image_as(&account, id, word));
            };
            shown(&night, Some(word));
            night.run_until(monday("19:20:30")).await;
            let images = night.world.simulator().images();
            assert_eq!(images.len(), 2, "{word}: {images:#?}");
            let protected = |image: &Value| image.get("protected").is_none_or(|is| is == true);
            assert!(images.iter().all(protected), "{word}: {images:#?}");
            night.sleeps().await;
            shown(&night, None);
            night.run_until(tuesday("06:00:30")).await;
            night.runs().await;
        }
    });
}

#[test]
fn an_older_snapshot_that_a_person_deletes_is_not_counted_any_more() {
    at_each_cloud(async |cloud| {
        let mut night = Night::begin(cloud).await;
        night.run_until(monday("20:00:30")).await;
        let kept = night.record().await.hibernation.unwrap();
        let [waking, older] = &kept.snapshots[..] else {
            panic!("{kept:#?}");
        };
        assert_eq!(kept.wake_from.as_ref(), Some(&waking.mark));
        let account = cloud.account.parse().unwrap();
        let id = older.id.unwrap();
        assert!(night.world.simulator().delete_image(&account, id));
        night.run_until(monday("20:30:30")).await;
        let kept = night.record().await.hibernation.unwrap();
        assert_eq!(kept.snapshots.len(), 1, "{kept:#?}");
        night.run_until(tuesday("06:00:30")).await;
        night.runs().await;
    });
}

/// Two stops a day make four snapshots in two days, none of which is old by then.
#[test]
fn a_machine_that_stops_twice_a_day_is_hibernated_each_time() {
    at_each_cloud(async |cloud| {
        let one = r#"[{ begin = "06:00", end = "19:00" }]"#;
        let two = r#"[{ begin = "06:00", end = "10:00" }, { begin = "15:00", end = "19:00" }]"#;
        let configuration = cloud.configuration.replace(one, two);
        let night = Night::of(cloud, &configuration, cloud.fleet).await;
        let mut night = night.rehearsed().await;
        let day = SignedDuration::from_hours(24);
        for asleep in [
            monday("20:00:30"),
            tuesday("11:00:30"),
            tuesday("20:00:30"),
            tuesday("11:00:30") + day,
            tuesday("20:00:30") + day,
        ] {
            night.run_until(asleep).await;
            night.sleeps().await;
        }
        assert_eq!(night.world.simulator().images().len(), 4);
        night.run_until(tuesday("06:00:30") + day * 2).await;
        night.runs().await;
    });
}

/// Its machine is locked meanwhile.
#[test]
fn a_snapshot_that_does_not_end_is_reported_and_holds_up_no_start() {
    at_each_cloud(async |cloud| {
        let slow = "id = 42\nsnapshot = \"PT10H\"\n";
        let fleet = cloud.fleet.replacen("id = 42\n", slow, 1);
        let mut night = Night::of(cloud, cloud.configuration, &fleet).await;
        let event = json!({"resources": [cloud.machine], "by": "ada", "rehearsal": true});
        night.world.stop(&event).await;
        // The disk has 80 GB: 350 minutes, and some to leave.
        night.run_until(monday("23:10:30")).await;
        night.stuck("is not waited for any more");
        let is_on = |request: &cloud_simulator::Entry| {
            let words = format!("{} {}", request.request.path, request.request.body);
            words.contains("poweron") || words.contains("power_on")
        };
        assert!(!night.world.changes().iter().any(is_on));
        night.start().await;
        night.run_until(monday("23:12:30")).await;
        assert!(night.world.changes().iter().any(is_on));
        night.run_until(tuesday("03:30:30")).await;
        night.runs().await;
    });
}

#[test]
fn a_snapshot_that_is_deleted_at_its_cloud_is_an_alarm_and_nothing_is_made() {
    at_each_cloud(async |cloud| {
        let mut night = Night::begin(cloud).await;
        night.run_until(monday("20:00:30")).await;
        night.sleeps().await;
        let account = cloud.account.parse().unwrap();
        for image in night.world.simulator().images() {
            let id = image["id"].as_u64().unwrap();
            assert!(night.world.simulator().delete_image(&account, id));
        }
        night.world.run_until(monday("20:30:30")).await;
        night.stuck("snapshot");
        night.world.run_until(tuesday("06:30:30")).await;
        assert_eq!(night.machines(), Vec::<Value>::new());
        let phase = night.record().await.phase;
        assert_eq!(phase, Phase::Settled { at: Power::Stopped });
    });
}

#[test]
fn a_name_that_another_machine_has_taken_is_reported_and_waited_for() {
    run(async {
        let mut night = Night::begin(&HETZNER).await;
        night.run_until(monday("20:00:30")).await;
        let copy = "[[servers]]\nid = 77\nname = \"build\"\naccount = \"hz-eu\"\n";
        night.world.simulator().create(copy).unwrap();
        night.is_in_the_way("hz-eu/server/77").await;
    });
}

/// At this cloud, several machines may have the same name.
#[test]
fn a_droplet_whose_name_another_has_is_hibernated_and_woken() {
    run(async {
        let mut night = Night::begin(&DIGITALOCEAN).await;
        let other = "[[droplets]]\nid = 77\nname = \"build\"\naccount = \"do-main\"\n";
        night.world.simulator().create(other).unwrap();
        let ids = |night: &Night| -> Vec<_> {
            let machines = night.machines().into_iter();
            machines.map(|machine| machine["id"].clone()).collect()
        };
        night.run_until(monday("20:00:30")).await;
        assert!(night.record().await.is_hibernated());
        assert_eq!(ids(&night), [77]);
        night.run_until(tuesday("06:00:30")).await;
        let record = night.record().await;
        assert_eq!(record.phase, Phase::Settled { at: Power::Running });
        let mut made = ids(&night);
        made.retain(|id| *id != 77);
        assert_eq!(made.len(), 1, "{made:?}");
        assert_eq!(night.has(&made[0]).await, night.had);
    });
}

#[test]
fn a_droplet_that_was_made_from_our_snapshot_is_in_the_way() {
    run(async {
        let mut night = Night::begin(&DIGITALOCEAN).await;
        night.run_until(monday("20:00:30")).await;
        let snapshot = night.record().await.hibernation.unwrap();
        let body = json!({
            "name": "build",
            "region": "fra1",
            "size": "s-2vcpu-4gb",
            "image": snapshot.waking_snapshot().unwrap().id,
        });
        let made = night.makes(&body).await;
        night.is_in_the_way(&format!("do-main/droplet/{made}")).await;
    });
}

#[test]
fn an_override_in_the_night_wakes_it() {
    at_each_cloud(async |cloud| {
        let mut night = Night::begin(cloud).await;
        night.run_until(monday("21:00:30")).await;
        night.sleeps().await;
        let hours = SignedDuration::from_hours(3);
        night.world.override_with(cloud.machine, Desired::Running, hours).await;
        night.run_until(monday("21:30:30")).await;
        night.runs().await;
        night.run_until(tuesday("00:30:30")).await;
        night.sleeps().await;
        night.run_until(tuesday("06:00:30")).await;
        night.runs().await;
    });
}

#[test]
fn a_machine_that_has_left_while_it_sleeps_is_woken_by_hand() {
    at_each_cloud(async |cloud| {
        let mut night = Night::begin(cloud).await;
        night.run_until(monday("20:00:30")).await;
        let without = cloud.configuration.replace("[schedules.office]", "[schedules.other]");
        night.world.apply(&without).await;
        night.run_until(tuesday("06:30:30")).await;
        night.sleeps().await;
        night.start().await;
        night.run_until(tuesday("07:00:30")).await;
        night.runs().await;
    });
}

/// A fleet whose Droplet has these lines in addition.
fn droplet_with(lines: &str) -> String {
    let name = "name = \"build\"\n";
    DIGITALOCEAN.fleet.replacen(name, &format!("{name}{lines}"), 1)
}

#[test]
fn a_snapshot_that_is_listed_late_is_waited_for_and_never_made_twice() {
    run(async {
        let fleet = droplet_with("snapshot_lag = \"PT17M\"\n");
        let mut night = Night::of(&DIGITALOCEAN, DIGITALOCEAN.configuration, &fleet).await;
        let event = json!({"resources": [DIGITALOCEAN.machine], "by": "ada", "rehearsal": true});
        night.world.stop(&event).await;
        // The response is lost as well: only the action log shows that the snapshot is being made.
        let lost = json!({"drop": {"after_effect": true}});
        night.fails(("POST", "/actions", "snapshot"), &lost);
        night.run_until(monday("17:15:30")).await;
        assert_eq!(night.only()["status"], "off");
        night.run_until(monday("17:40:30")).await;
        night.sleeps().await;
        assert_eq!(night.world.simulator().images().len(), 1);
    });
}

#[test]
fn a_snapshot_whose_action_fails_is_made_again_at_once() {
    run(async {
        let mut night =
            Night::begin_with(&DIGITALOCEAN, &droplet_with("snapshot_failures = 1\n")).await;
        assert_eq!(night.world.simulator().images().len(), 1);
        night.run_until(monday("20:00:30")).await;
        night.sleeps().await;
    });
}

#[test]
fn a_machine_for_which_there_was_no_place_is_asked_for_again_and_never_gone() {
    at_each_cloud(async |cloud| {
        let fleet = cloud.fleet.replacen("id = 42\n", "id = 42\ncreation_failures = 3\n", 1);
        let mut night = Night::begin_with(cloud, &fleet).await;
        assert_eq!(night.creations(), 4);
        night.run_until(tuesday("06:00:30")).await;
        night.runs().await;
        let events = night.world.events(cloud.machine);
        let gone = |event: &Event| matches!(event, Event::Gone { .. });
        assert!(!events.iter().any(gone), "{events:#?}");
    });
}

/// It goes on without what its cloud does not attach, whatever comes after that in its order.
#[test]
fn a_droplet_that_came_up_without_all_it_had_has_it_again_the_next_morning() {
    for path in ["/v2/firewalls/", "/v2/projects/"] {
        run(async {
            let mut night = Night::begin(&DIGITALOCEAN).await;
            night.run_until(monday("20:00:30")).await;
            night.sleeps().await;
            let refused = json!({
                "match": {"method": "POST", "path_prefix": path},
                "does": {"answer": {"status": 503}},
                "times": 100,
            });
            night.world.simulator().add_fault(fault(&refused));
            let machine = DIGITALOCEAN.machine;
            let hour = SignedDuration::from_hours(1);
            night.world.override_with(machine, Desired::Running, hour).await;
            night.run_until(monday("20:30:30")).await;
            assert_eq!(night.only()["status"], "active");
            assert_ne!(night.has(&night.only()["id"]).await, night.had);
            night.run_until(monday("23:00:30")).await;
            let phase = night.record().await.phase;
            assert_eq!(phase, Phase::Settled { at: Power::Stopped });
            assert!(night.machines().is_empty(), "{path}");
            night.world.simulator().clear_faults();
            // Requests are sent one after the other, and more than one per minute.
            night.run_until(tuesday("06:10:30")).await;
            night.runs().await;
        });
    }
}

/// A table of records that is restored from a backup of the afternoon.
async fn restore(night: &Night, backup: &Record) {
    let revision = night.record().await.revision;
    let backup = Record { revision, ..backup.clone() };
    night.world.local.store().save(backup).await.unwrap();
}

/// The machine that it names was deleted.
#[test]
fn a_record_that_is_restored_by_night_is_not_gone_and_makes_nothing() {
    at_each_cloud(async |cloud| {
        let mut night = Night::begin(cloud).await;
        let backup = night.record().await;
        night.run_until(monday("23:00:30")).await;
        night.sleeps().await;
        let asleep = night.record().await;
        restore(&night, &backup).await;
        night.run_until(tuesday("06:30:30")).await;
        night.is_told("the record is older than the cloud: snapshot ");
        let record = night.record().await;
        assert!(record.hibernation_problem().is_some(), "{record:#?}");
        assert_eq!(night.machines(), Vec::<Value>::new());

        // A newer backup is right again.
        restore(&night, &asleep).await;
        night.run_until(tuesday("07:30:30")).await;
        night.runs().await;
        assert_eq!(night.record().await.hibernation_problem(), None);
    });
}

/// Another machine runs by then.
#[test]
fn a_record_that_is_restored_by_day_is_not_gone() {
    at_each_cloud(async |cloud| {
        let mut night = Night::begin(cloud).await;
        let backup = night.record().await;
        night.run_until(tuesday("07:30:30")).await;
        restore(&night, &backup).await;
        night.run_until(tuesday("08:00:30")).await;
        night.is_told("the record is older than the cloud: ");
        let events = night.world.events(cloud.machine);
        let gone = |event: &Event| matches!(event, Event::Gone { .. });
        assert!(!events.iter().any(gone), "{events:#?}");
        assert_eq!(night.only()["status"], cloud.running);
    });
}

/// A record that knows of no hibernation, of the only machine of its account.
#[test]
fn a_record_that_is_restored_from_before_its_first_hibernation_is_not_gone() {
    at_each_cloud(async |cloud| {
        for at in [monday("23:00:30"), tuesday("07:30:30")] {
            let mut night = Night::begin(cloud).await;
            let backup = Record { hibernation: None, ..night.record().await };
            night.run_until(at).await;
            restore(&night, &backup).await;
            night.run_until(at + SignedDuration::from_mins(20)).await;
            night.is_told("the record is older than the cloud: ");
            let vanished = |one: &Occurrence| matches!(&one.event, Event::Postponed { reason, .. } if reason.words().contains("vanished"));
            assert!(!night.world.outcomes().iter().any(vanished), "{at}");
        }
    });
}

/// An older program runs for a while and cannot read the record; or two records came of that.
#[test]
fn a_woken_machine_is_never_taken_for_a_new_one_and_two_records_of_it_are_reported() {
    at_each_cloud(async |cloud| {
        let mut night = Night::begin(cloud).await;
        let record = night.record().await;
        let present = record.present().unwrap().clone();
        let second = reference(&format!("{}/{present}", cloud.account));
        let key = record_key(&record.reference);
        let newer = rewrite(&night.world, RESOURCES, key).await;
        night.run_until(monday("18:20:30")).await;
        let store = night.world.local.store();
        assert_eq!(store.record(&second).await.unwrap(), None);

        let mut readable = newer.clone();
        let format = AttributeValue::N("2".to_owned());
        readable.insert("format".to_owned(), format);
        let put = night.world.engine.client().put_item().table_name(RESOURCES);
        put.set_item(Some(readable)).send().await.unwrap();
        let twin = Record {
            reference: second.clone(),
            hibernation: None,
            revision: Revision::default(),
            ..record
        };
        store.save(twin).await.unwrap();
        let before = night.world.changes().len();
        night.run_until(monday("20:00:30")).await;
        assert_eq!(night.world.changes().len(), before, "neither is acted on");
        let second = second.to_string();
        for reference in [cloud.machine, &second] {
            let events = night.world.events(reference);
            let reported = |event: &Event| matches!(event, Event::Conflict { .. });
            assert!(events.iter().any(reported), "{reference}: {events:#?}");
        }
        let twin = night.world.record(&second).await;
        let now = night.world.local.now();
        let store = night.world.local.store();
        store.forget(&twin, "ada", now).await.unwrap();
        night.run_until(monday("21:00:30")).await;
        night.sleeps().await;
    });
}

/// Its name and its image are those of another machine, and so are its labels.
#[test]
fn a_second_machine_that_was_made_of_one_is_reported_until_it_is_gone() {
    run(async {
        let mut night = Night::begin(&DIGITALOCEAN).await;
        let copy = json!({
            "name": "build",
            "size": "s-2vcpu-4gb",
            "region": "fra1",
            "image": night.world.simulator().images()[0]["id"],
            "tags": ["offhours:office", "offhours-of:droplet-42"],
        });
        let second = night.makes(&copy).await;
        night.world.run_until(monday("18:30:30")).await;
        night.is_told(&format!("droplet/{second}: delete the one"));
        let record = night.record().await;
        assert!(record.hibernation_problem().is_some(), "{record:#?}");
        let store = night.world.local.store();
        let other = reference(&format!("do-main/droplet/{second}"));
        assert_eq!(store.record(&other).await.unwrap(), None);
        night.world.person(&other.to_string(), Act::Delete);
        night.world.run_until(monday("18:40:30")).await;
        assert_eq!(night.record().await.hibernation_problem(), None);
    });
}

#[test]
fn what_is_deleted_by_night_does_not_keep_the_machine_off_in_the_morning() {
    run(async {
        let mut night = Night::begin(&HETZNER).await;
        night.run_until(monday("19:30:30")).await;
        night.sleeps().await;
        night.deletes("networks/7").await;
        night.deletes("volumes/8").await;
        night.run_until(tuesday("06:00:30")).await;
        let record = night.record().await;
        let running = Phase::Settled { at: Power::Running };
        assert_eq!(record.phase, running, "{record:#?}");
        assert_eq!(night.only()["status"], "running");
        let lacking = "without network/7, volume/8,";
        night.is_told(lacking);
        let problem = record.hibernation_problem().unwrap();
        assert!(problem.contains(lacking), "{problem}");
        // An inventory does not report it again.
        let reported = |events: Vec<Event>| {
            let conflicts = events.into_iter();
            conflicts.filter(|event| matches!(event, Event::Conflict { .. })).count()
        };
        let before = reported(night.world.events(HETZNER.machine));
        night.run_until(tuesday("06:30:30")).await;
        assert_eq!(reported(night.world.events(HETZNER.machine)), before);
        assert_eq!(before, 1);
        // A person goes without the network, and then without the volume.
        for (given_up, left, morning) in [
            ("network/7", Some("without volume/8,"), tuesday("06:40:30")),
            ("volume/8", None, tuesday("06:50:30")),
        ] {
            let event = json!({"resources": [HETZNER.machine], "without": [given_up], "by": "ada"});
            night.world.start_now(&event).await;
            night.run_until(morning).await;
            let record = night.record().await;
            let problem = record.hibernation_problem().map(str::to_owned);
            assert_eq!(problem.is_some(), left.is_some(), "{problem:?}");
            assert!(
                left.is_none_or(|left| problem.as_ref().unwrap().contains(left)),
                "{record:#?}"
            );
        }
        night.is_whole_after_another().await;
    });
}

#[test]
fn a_floating_address_that_another_server_was_given_by_night_stays_with_that() {
    run(async {
        let address = "[[hetzner.floating_ips]]\nid = 13\nname = \"moves\"\n\
             ip = \"203.0.113.13\"\nserver = 42\n";
        let fleet = format!("{}{address}", HETZNER.fleet);
        let mut night = Night::begin_with(&HETZNER, &fleet).await;
        night.run_until(monday("19:30:30")).await;
        night.sleeps().await;
        let spare = json!({
            "name": "spare",
            "server_type": "cpx22",
            "location": "fsn1",
            "image": night.world.simulator().images()[0]["id"].to_string(),
        });
        let spare = night.posts("servers", &spare).await["server"]["id"].clone();
        night.run_until(monday("19:40:30")).await;
        night.posts("floating_ips/13/actions/assign", &json!({"server": spare})).await;
        night.run_until(tuesday("06:00:30")).await;
        let record = night.record().await;
        assert_eq!(record.phase, Phase::Settled { at: Power::Running }, "{record:#?}");
        let address = night.asks("floating_ips/13".to_owned()).await;
        assert_eq!(address["floating_ip"]["server"], spare);
        night.is_told("without floating-ip/13,");
    });
}

#[test]
fn a_droplet_whose_vpc_was_deleted_by_night_is_in_the_default_one_in_the_morning() {
    run(async {
        let mut night = Night::begin(&DIGITALOCEAN).await;
        night.run_until(monday("19:30:30")).await;
        night.sleeps().await;
        let vpc = "760e09ef-dc84-41e8-981e-3cfdfeaae001";
        night.deletes(&format!("vpcs/{vpc}")).await;
        night.run_until(tuesday("06:10:30")).await;
        assert_eq!(night.only()["status"], DIGITALOCEAN.running);
        night.is_told(&format!("without vpc/{vpc},"));
        night.is_whole_after_another().await;
    });
}

#[test]
fn a_server_whose_address_was_deleted_by_night_has_another_one_in_the_morning() {
    run(async {
        let mut night = Night::begin(&HETZNER).await;
        night.run_until(monday("19:30:30")).await;
        night.sleeps().await;
        let kept = night.record().await.hibernation.unwrap();
        let lost = kept.manifest.unwrap().addresses.remove(0);
        night.deletes(&format!("primary_ips/{}", lost.id)).await;
        night.run_until(tuesday("06:10:30")).await;
        let server = night.only();
        assert_eq!(server["status"], "running");
        assert!(server["ipv4"].is_number(), "{server}");
        assert_ne!(server["ipv4"].to_string(), lost.id);
        night.is_told(&format!("without address/{},", lost.ip));
        night.is_whole_after_another().await;
    });
}

#[test]
fn a_machine_whose_key_was_replaced_by_night_is_made_with_the_configured_one() {
    run(async {
        let keys = "[[hetzner.ssh_keys]]\nid = 15\nname = \"new\"\n\
                    public_key = \"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAJ new\"\n";
        let fleet = format!("{}{keys}", HETZNER.fleet);
        let mut night = Night::begin_with(&HETZNER, &fleet).await;
        night.run_until(monday("19:30:30")).await;
        night.sleeps().await;
        night.deletes("ssh_keys/14").await;
        let rotated = HETZNER.configuration.replace("\"team\"", "\"new\"");
        night.world.apply(&rotated).await;
        night.run_until(tuesday("06:00:30")).await;
        night.runs().await;
        let changes = night.world.changes();
        let made = changes.iter().map(|entry| &entry.request);
        let mut made = made.filter(|request| request.path == HETZNER.machines);
        let body: Value = serde_json::from_str(&made.next_back().unwrap().body).unwrap();
        assert_eq!(body["ssh_keys"], json!(["new"]));
    });
}
