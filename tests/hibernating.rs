//! Machines that are kept as snapshots while they are stopped: their days, and those on which that
//! goes wrong.

use std::collections::BTreeSet;

use cloud_simulator::Act;
use domain::{
    record::{Phase, Record},
    resource::Power,
    schedule::Desired,
};
use jiff::{SignedDuration, Timestamp};
use lifecycle::Event;
use serde_json::{Value, json};

use crate::{
    support::{ACCOUNTS, World, fault, monday, run, serve},
    traffic::fits_the_clouds_descriptions,
};

const SERVER: &str = "hz-eu/server/42";

const CONFIGURATION: &str = r#"
[accounts.hz-eu]
provider = "hetzner"
token = "env:HZ_TOKEN"
ssh_key = "team"

[schedules.office]
timezone = "UTC"
periods = [{ begin = "06:00", end = "19:00" }]
methods = { server = "hibernate" }
"#;

/// A server with all that its cloud attaches to one.
const FLEET: &str = r#"
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
"#;

/// An instant in the night after Monday, or on Tuesday.
fn tuesday(time: &str) -> Timestamp {
    monday(time) + SignedDuration::from_hours(24)
}

/// The service with one server, in the afternoon. What a disk held last is watched from here on.
struct Night {
    world: World,
    latest: String,
    /// The machines of ours that were seen.
    known: BTreeSet<u64>,
    /// What the first one had.
    had: Value,
}

impl Night {
    /// Before a rehearsal.
    async fn unrehearsed(configuration: &str) -> Self {
        let fleet = format!("{ACCOUNTS}{FLEET}");
        let world = World::start(configuration, &fleet, monday("16:50:00")).await;
        world.run_until(monday("17:00:30")).await;
        Self {
            latest: text(&only(&world)["contents"]),
            known: BTreeSet::from([42]),
            had: had(&world, &json!(42)).await,
            world,
        }
    }

    /// After a rehearsal.
    async fn begin() -> Self {
        Self::begin_under(CONFIGURATION).await
    }

    async fn begin_under(configuration: &str) -> Self {
        let mut night = Self::unrehearsed(configuration).await;
        let event = json!({"resources": [SERVER], "by": "ada", "rehearsal": true});
        night.world.stop(&event).await;
        night.run_until(monday("17:30:30")).await;
        assert_eq!(night.world.servers(), Vec::<Value>::new());
        let event = json!({"resources": [SERVER], "by": "ada"});
        night.world.start_now(&event).await;
        night.run_until(monday("18:00:30")).await;
        let record = night.record().await;
        assert_eq!(record.phase, Phase::Settled { at: Power::Running });
        assert!(record.hibernation.is_some_and(|kept| kept.is_rehearsed()));
        night
    }

    async fn record(&self) -> Record {
        self.world.record(SERVER).await
    }

    /// Runs, and looks every minute at whether the latest data are there.
    async fn run_until(&mut self, until: Timestamp) {
        while self.world.local.now() < until {
            let minute = self.world.local.now() + SignedDuration::from_mins(1);
            self.world.run_until(minute.min(until)).await;
            self.look();
        }
    }

    fn look(&mut self) {
        let now = self.world.local.now();
        let mut ours = self.world.servers();
        ours.retain(is_ours);
        assert!(ours.len() <= 1, "{now}: two machines: {ours:#?}");
        if let Some(server) = ours.first() {
            if self.known.insert(server["id"].as_u64().unwrap()) {
                let first = text(&server["first_contents"]);
                assert_eq!(first, self.latest, "{now}: made from an older snapshot");
            }
            self.latest = text(&server["contents"]);
            return;
        }
        let images = self.world.simulator().images();
        let mut whole = images.iter().filter(|image| image["status"] == "available");
        let copied = whole.any(|image| text(&image["contents"]) == self.latest);
        assert!(copied, "{now}: the data of {} are lost", self.latest);
    }

    async fn sleeps(&self) {
        let record = self.record().await;
        let asleep = record.is_asleep() && record.phase == Phase::Settled { at: Power::Stopped };
        assert!(asleep, "{record:#?}");
        assert_eq!(self.world.servers(), Vec::<Value>::new());
    }

    /// One machine runs, and has all that the first one had.
    async fn runs(&self) {
        let record = self.record().await;
        let running = Phase::Settled { at: Power::Running };
        assert_eq!(record.phase, running, "{record:#?}");
        let server = only(&self.world);
        assert_eq!(server["status"], "running");
        assert_eq!(had(&self.world, &server["id"]).await, self.had);
    }

    fn stuck(&mut self, with: &str) {
        let events = self.world.events(SERVER);
        let stuck = events
            .iter()
            .any(|event| matches!(event, Event::Stuck { reason, .. } if reason.contains(with)));
        assert!(stuck, "{events:#?}");
    }

    fn fails(&self, method: &str, path: &str, does: &Value) {
        let matching = match path {
            "" => json!({"method": method, "account": "hz-eu"}),
            path if path.starts_with('/') => json!({"method": method, "path_prefix": path}),
            suffix => json!({"method": method, "path_suffix": suffix}),
        };
        let one = fault(&json!({"match": matching, "does": does}));
        self.world.simulator().add_fault(one);
    }

    fn deletions(&self) -> usize {
        let changes = self.world.changes();
        let mut of_servers = changes.iter().map(|entry| &entry.request);
        of_servers
            .by_ref()
            .filter(|request| {
                request.method == "DELETE" && request.path.starts_with("/v1/servers/")
            })
            .count()
    }
}

impl World {
    /// The servers that there are.
    fn servers(&self) -> Vec<Value> {
        let all = self.simulator().resources();
        let servers = all.into_iter().filter(|(of, _)| of.contains("/server/"));
        servers.map(|(_, shown)| shown).collect()
    }
}

fn only(world: &World) -> Value {
    let mut servers = world.servers();
    assert_eq!(servers.len(), 1, "{servers:#?}");
    servers.remove(0)
}

/// What a server has at its cloud, apart from what its own is: its id, its image, its age.
async fn had(world: &World, id: &Value) -> Value {
    let address = serve(world.simulator().router()).await;
    let http = provider::http_client().unwrap();
    let ask = async |path: String| -> Value {
        let request = http.get(format!("http://{address}/v1/{path}"));
        let answer = request.bearer_auth("secret-hz-token").send().await.unwrap();
        answer.json().await.unwrap()
    };
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

fn is_ours(server: &Value) -> bool {
    server["id"] == 42 || server["labels"]["offhours-of"] == "server.42"
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[test]
fn a_rehearsed_machine_is_a_snapshot_by_night_and_itself_by_day() {
    run(async {
        let mut night = Night::begin().await;
        night.run_until(monday("19:30:30")).await;
        night.sleeps().await;
        night.run_until(tuesday("06:00:30")).await;
        night.runs().await;
        fits_the_clouds_descriptions(&night.world.simulator().log());
    });
}

#[test]
fn what_has_not_been_rehearsed_is_not_hibernated() {
    run(async {
        let mut night = Night::unrehearsed(CONFIGURATION).await;
        night.run_until(monday("20:00:30")).await;
        let phase = night.record().await.phase;
        assert!(matches!(phase, Phase::Refused { .. }), "{phase:?}");
        assert_eq!(only(&night.world)["status"], "running");

        let or_off = CONFIGURATION.to_owned() + "otherwise = \"power-off\"\n";
        let mut night = Night::unrehearsed(&or_off).await;
        night.run_until(monday("20:00:30")).await;
        let phase = night.record().await.phase;
        assert_eq!(phase, Phase::Settled { at: Power::Stopped });
        assert_eq!(only(&night.world)["status"], "off");
    });
}

/// Every request of a night, lost on its way there or back, late or slow.
#[test]
fn whatever_becomes_of_a_request_the_machine_is_back_in_the_morning() {
    let requests = [
        ("POST", "create_image"),
        ("POST", "change_protection"),
        ("DELETE", "/v1/servers/"),
        ("POST", "/v1/servers"),
        ("POST", "attach_to_network"),
        ("POST", "add_target"),
        ("POST", "poweron"),
    ];
    let all = [
        json!({"drop": {"after_effect": true}}),
        json!({"drop": {"after_effect": false}}),
        json!({"late": {"by": "PT40S"}}),
        json!({"slow": {"by": "PT8M"}}),
        json!({"answer": {"status": 503}}),
        json!({"answer": {"status": 500, "after_effect": true}}),
    ];
    for does in &all {
        run(async {
            let mut night = Night::begin().await;
            for (method, path) in requests {
                night.fails(method, path, does);
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
    run(async {
        let mut night = Night::begin().await;
        night.fails(
            "DELETE",
            "/v1/servers/",
            &json!({"answer": {"status": 503}}),
        );
        let before = night.deletions();
        while night.deletions() == before {
            let next = night.world.local.now() + SignedDuration::from_mins(1);
            night.run_until(next).await;
        }
        let server = only(&night.world)["id"].to_string();
        night
            .world
            .person(&format!("hz-eu/server/{server}"), Act::PowerOn);
        night.run_until(monday("22:00:30")).await;
        assert_eq!(only(&night.world)["status"], "running");
        assert_eq!(night.deletions(), before + 1);
    });
}

#[test]
fn a_snapshot_that_is_deleted_at_its_cloud_is_an_alarm_and_nothing_is_made() {
    run(async {
        let mut night = Night::begin().await;
        night.run_until(monday("20:00:30")).await;
        night.sleeps().await;
        let account = "hz-eu".parse().unwrap();
        for image in night.world.simulator().images() {
            let id = image["id"].as_u64().unwrap();
            assert!(night.world.simulator().delete_image(&account, id));
        }
        night.world.run_until(monday("20:30:30")).await;
        night.stuck("snapshot");
        night.world.run_until(tuesday("06:30:30")).await;
        assert_eq!(night.world.servers(), Vec::<Value>::new());
        assert_eq!(
            night.record().await.phase,
            Phase::Settled { at: Power::Stopped }
        );
    });
}

#[test]
fn a_name_that_another_machine_has_taken_is_reported_and_waited_for() {
    run(async {
        let mut night = Night::begin().await;
        night.run_until(monday("20:00:30")).await;
        let copy = "[[servers]]\nid = 77\nname = \"build\"\naccount = \"hz-eu\"\n";
        night.world.simulator().create(copy).unwrap();
        night.run_until(tuesday("06:30:30")).await;
        night.stuck("server/77");
        assert_eq!(only(&night.world)["id"], 77);
        night.world.person("hz-eu/server/77", Act::Delete);
        night.run_until(tuesday("07:00:30")).await;
        night.runs().await;
    });
}

#[test]
fn an_override_in_the_night_wakes_it() {
    run(async {
        let mut night = Night::begin().await;
        night.run_until(monday("21:00:30")).await;
        night.sleeps().await;
        let hours = SignedDuration::from_hours(3);
        night
            .world
            .override_with(SERVER, Desired::Running, hours)
            .await;
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
    run(async {
        let mut night = Night::begin().await;
        night.run_until(monday("20:00:30")).await;
        let without = CONFIGURATION.replace("[schedules.office]", "[schedules.other]");
        night.world.apply(&without).await;
        night.run_until(tuesday("06:30:30")).await;
        night.sleeps().await;
        let event = json!({"resources": [SERVER], "by": "ada"});
        night.world.start_now(&event).await;
        night.run_until(tuesday("07:00:30")).await;
        night.runs().await;
    });
}
