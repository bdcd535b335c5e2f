//! What people see of a hibernated machine in the built programs, and how they recreate it without
//! them.

use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use serde_json::{Map, Value, json};

use crate::{
    hibernating::{Cloud, DIGITALOCEAN, HETZNER, server_has},
    programs::Terminal,
    support::{ACCOUNTS, monday, run},
};

const SERVER: &str = HETZNER.machine;
const CONFIGURATION: &str = HETZNER.configuration;

/// An instant on Tuesday, including the night after Monday.
fn tuesday(time: &str) -> Timestamp {
    monday(time) + SignedDuration::from_hours(24)
}

async fn afternoon(cloud: &Cloud) -> Terminal {
    Terminal::with_fleet(&format!("{ACCOUNTS}{}", cloud.fleet), "13:00:00").await
}

/// The evening after a rehearsal: the server is kept as a snapshot.
async fn evening() -> (Terminal, Value) {
    let terminal = afternoon(&HETZNER).await;
    let first = server_has(&terminal.simulator.url, &json!(42)).await;
    terminal.falls_asleep(&HETZNER).await;
    (terminal, first)
}

impl Terminal {
    /// Rehearses a cloud's machine, and lets its schedule hibernate it.
    async fn falls_asleep(&self, cloud: &Cloud) {
        self.local(cloud.configuration, "13:03:00").await;
        let why = self.run(&["why", "--full", "build"]).await.stdout;
        let first = format!("offhours rehearse {}", cloud.machine);
        assert!(why.contains(&first), "{why}");
        let rehearse = ["rehearse", cloud.machine, "--yes"];
        let ended = self.run(&rehearse).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        self.local(cloud.configuration, "19:30:00").await;
    }

    /// The JSON output of a command for the only machine.
    async fn shown(&self, arguments: &[&str]) -> Value {
        let arguments = [arguments, &["-o", "json"]].concat();
        let ended = self.run(&arguments).await;
        let printed: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| {
            panic!("{arguments:?}: {}{}", ended.stdout, ended.stderr);
        });
        let Value::Array(mut rows) = printed else {
            return printed;
        };
        assert_eq!(rows.len(), 1, "{rows:#?}");
        rows.remove(0)
    }

    /// Sends a request to Hetzner with the project's token.
    async fn hetzner(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        let path = format!("v1/{path}");
        self.simulator.asked("secret-hz-token", method, &path, body).await
    }
}

#[test]
fn a_rehearsal_sends_a_deletion_again_that_found_the_machine_locked() {
    run(async {
        let terminal = afternoon(&HETZNER).await;
        terminal.local(CONFIGURATION, "13:03:00").await;
        let locked = json!({"error": {"code": "locked", "message": "no", "details": null}});
        terminal
            .simulator
            .fault(json!({
                "match": {"method": "DELETE", "path_prefix": "/v1/servers/42"},
                "does": {"answer": {"status": 423, "body": locked.to_string()}},
            }))
            .await;
        let began = terminal.simulator.now().await;
        let ended = terminal.run(&["rehearse", SERVER, "--yes"]).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let took = terminal.simulator.now().await.duration_since(began);
        assert!(took.as_hours() < 1, "{took}");
    });
}

#[test]
fn every_command_shows_it_under_its_reference_with_its_snapshot() {
    run(async {
        let (terminal, _) = evening().await;
        let status = terminal.shown(&["status", SERVER]).await;
        assert_eq!(status["state"], "hibernated");
        let kept = &status["hibernation"];
        assert_eq!((&kept["asleep"], &kept["rehearsed"]), (&json!(true), &json!(true)));
        let snapshots = kept["snapshots"].as_array().unwrap();
        assert_eq!(snapshots.len(), 2);
        assert_eq!(snapshots[0]["mark"], kept["wake_from"]);
        assert!(snapshots[1]["proven_at"].is_string());
        // The price is unknown here: neither the store nor a file has it.
        assert_eq!(kept["month"], Value::Null);
        assert_eq!((&status["resource"], &status["schedule"]), (&json!(SERVER), &json!("office")));
        let ended = terminal.run(&["list"]).await;
        assert!(ended.stdout.contains("hibernated"), "{}", ended.stdout);
        assert!(!ended.stdout.contains("offhours-mark"), "{}", ended.stdout);
        let live = terminal.shown(&["status", "--live", SERVER]).await;
        let live = live["live"].as_str().unwrap();
        assert!(live.starts_with("hibernated: snapshot "), "{live}");
        assert!(live.ends_with(" of 4.5 GB is there, protected, 0.06 EUR a month"), "{live}");
        let why = terminal.run(&["why", "--full", SERVER]).await.stdout;
        for expected in [
            "It is hibernated, as it should be.",
            "Next: running at Tue 06:00 UTC, in 10h 30m; begun 10 min early, at 05:50.",
            "none: it was deleted, and its snapshot is kept",
            "build, cpx22 in fsn1, with ",
            "2 snapshots kept, 1 proven",
        ] {
            assert!(why.contains(expected), "{expected}: {why}");
        }

        terminal.local_until(CONFIGURATION, tuesday("06:05:00")).await;
        let listed = terminal.shown(&["list"]).await;
        assert_eq!((&listed["resource"], &listed["state"]), (&json!(SERVER), &json!("running")));
        assert_ne!(listed["hibernation"]["present"], "server/42");
        let why = terminal.run(&["why", "--full", SERVER]).await.stdout;
        assert!(why.contains(" at its cloud, since it was recreated"), "{why}");
    });
}

/// Its cloud does not protect snapshots, and no response contains their price.
#[test]
fn a_droplet_is_shown_under_its_reference_with_its_snapshot() {
    run(async {
        let terminal = afternoon(&DIGITALOCEAN).await;
        terminal.falls_asleep(&DIGITALOCEAN).await;
        let droplet = DIGITALOCEAN.machine;
        let status = terminal.shown(&["status", droplet]).await;
        assert_eq!(status["state"], "hibernated");
        let kept = &status["hibernation"];
        assert_eq!((&kept["asleep"], &kept["rehearsed"]), (&json!(true), &json!(true)));
        assert_eq!(kept["snapshots"].as_array().unwrap().len(), 2);
        assert_eq!(kept["manifest"]["name"], "build");
        assert_eq!((&status["resource"], &status["schedule"]), (&json!(droplet), &json!("office")));
        // Two snapshots of 4.5 GB at 0.06 USD.
        assert_eq!((&kept["month"], &kept["currency"]), (&json!(0.54), &json!("USD")));
        let live = terminal.shown(&["status", "--live", droplet]).await;
        let live = live["live"].as_str().unwrap();
        assert!(live.starts_with("hibernated: snapshot "), "{live}");
        assert!(live.ends_with(" of 4.5 GB is there, 0.27 USD a month"), "{live}");
        let why = terminal.run(&["why", "--full", droplet]).await.stdout;
        for expected in [
            "It is hibernated, as it should be.",
            "Next: running at Tue 06:00 UTC, in 10h 30m; begun ",
            "build, s-2vcpu-4gb in fra1, with ",
            "2 snapshots kept, 1 proven",
        ] {
            assert!(why.contains(expected), "{expected}: {why}");
        }

        terminal.local_until(DIGITALOCEAN.configuration, tuesday("06:05:00")).await;
        let listed = terminal.shown(&["list"]).await;
        assert_eq!((&listed["resource"], &listed["state"]), (&json!(droplet), &json!("running")));
        assert_ne!(listed["hibernation"]["present"], "droplet/42");
    });
}

#[test]
fn while_it_is_made_again_it_is_said_what_is_waited_for() {
    run(async {
        let (terminal, _) = evening().await;
        let stays = json!({"match": {"method": "POST", "account": "hz-eu"}, "does": {"answer": {"status": 503}}, "times": 3});
        terminal.simulator.fault(stays).await;
        terminal.local_until(CONFIGURATION, tuesday("05:50:30")).await;
        let why = terminal.run(&["why", "--full", SERVER]).await.stdout;
        assert!(why.contains("recreate it: sent at "), "{why}");
        // The machine being created counts as this resource, not as another one.
        assert_eq!(terminal.shown(&["list"]).await["resource"], SERVER);
    });
}

#[test]
fn its_snapshot_opts_it_out_and_protect_covers_it_and_every_command_says_so() {
    run(async {
        let (terminal, _) = evening().await;
        let images = terminal.hetzner(Method::GET, "images?type=snapshot", None).await;
        for image in images["images"].as_array().unwrap() {
            let mut labels = image["labels"].clone();
            labels["offhours"] = json!("off");
            let path = format!("images/{}", image["id"]);
            let body = json!({"labels": labels});
            terminal.hetzner(Method::PUT, &path, Some(body)).await;
        }
        let because = &terminal.shown(&["status", "--refresh"]).await["because"];
        assert_eq!(because, "opted out by a tag on the resource");
        terminal.local(CONFIGURATION, "19:40:00").await;
        let status = terminal.shown(&["status", SERVER]).await;
        assert_eq!((&status["schedule"], &status["state"]), (&Value::Null, &json!("hibernated")));
        let problem = &status["problems"][0];
        assert_eq!(problem["what"], "orphaned: no schedule covers it any more");
        let remedy = problem["remedy"].as_str().unwrap();
        assert!(remedy.starts_with("`offhours start hz-eu/server/"), "{remedy}");
        let why = terminal.run(&["why", "--full", SERVER]).await.stdout;
        assert!(why.contains("▶ opt-out                   opted out by a tag"), "{why}");

        let protecting = format!("protect = [\"name:build\"]\n{CONFIGURATION}");
        terminal.write(&protecting);
        let ended = terminal.run(&["apply", "--yes", "--leave"]).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let because = &terminal.shown(&["status"]).await["because"];
        assert_eq!(because, "protected by `name:build`");
        let why = terminal.run(&["why", "--full", SERVER]).await.stdout;
        assert!(why.contains("protected by `name:build`"), "{why}");
        let before = terminal.simulator.log().await.len();
        terminal.local_until(&protecting, tuesday("07:00:00")).await;
        let log = terminal.simulator.log().await;
        let reads = log[before..].iter().all(|one| one["request"]["method"] == "GET");
        assert!(reads, "{log:#?}");
        let status = terminal.shown(&["status", SERVER]).await;
        assert_eq!(status["state"], "hibernated");
    });
}

/// The commands that docs/stop-methods.md gives, for what is stored of a machine.
fn by_hand(kept: &Value) -> Vec<String> {
    let manifest = &kept["manifest"];
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let list = |key: &str| manifest[key].as_array().cloned().unwrap_or_default();
    let name = text(&manifest["name"]);
    let snapshots = kept["snapshots"].as_array().unwrap();
    let waking = snapshots.iter().find(|one| one["mark"] == kept["wake_from"]).unwrap();
    let options = |option: &str, key: &str| -> String {
        let options =
            list(key).into_iter().flat_map(|value| [format!(" --{option} "), text(&value)]);
        options.collect()
    };
    let address = |address: &Value| {
        let family = if address["is_ipv6"] == true { "ipv6" } else { "ipv4" };
        format!(" --primary-{family} {}", text(&address["id"]))
    };
    let addresses: String = list("addresses").iter().map(address).collect();
    let create = format!(
        "hcloud server create --name {name} --type {} --location {} --image {} --ssh-key {}\
         {addresses}{}{}{} --start-after-create=false",
        text(&manifest["size"]["plan"]),
        text(&manifest["region"]),
        waking["id"],
        text(&manifest["ssh_key"]),
        options("volume", "volumes"),
        options("firewall", "firewalls"),
        options("label", "tags"),
    );
    let network = |one: &Value| {
        let (network, ip) = (text(&one["network"]), text(&one["ip"]));
        format!("hcloud server attach-to-network {name} --network {network} --ip {ip}")
    };
    let balancer = |one: &Value| {
        let id = text(&one["id"]);
        let privately = if one["privately"] == true { " --use-private-ip" } else { "" };
        format!("hcloud load-balancer add-target {id} --server {name}{privately}")
    };
    let mut lines = vec![format!("hcloud image describe {}", waking["id"]), create];
    lines.extend(list("networks").iter().map(network));
    lines.extend(list("load_balancers").iter().map(balancer));
    lines.push(format!("hcloud server poweron {name}"));
    lines
}

#[test]
fn without_us_it_is_made_again_from_what_is_stored() {
    run(async {
        let (terminal, first) = evening().await;
        let status = terminal.shown(&["status", SERVER]).await;
        for line in by_hand(&status["hibernation"]) {
            hcloud(&terminal, &line).await;
        }
        let servers = terminal.hetzner(Method::GET, "servers", None).await;
        let server = &servers["servers"][0];
        assert_eq!(server_has(&terminal.simulator.url, &server["id"]).await, first);

        // To Offhours it is an unrelated machine until a person says otherwise.
        terminal.local(CONFIGURATION, "20:00:00").await;
        let own = terminal.shown(&["status", SERVER]).await;
        let needed = own["problems"][0]["what"].as_str().unwrap();
        assert!(needed.contains("Offhours did not make it"), "{needed}");
        let ended = terminal.run(&["forget", SERVER, "--anyway", "--yes"]).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        terminal.local(CONFIGURATION, "20:10:00").await;
        let now = terminal.shown(&["status"]).await;
        assert_eq!(now["resource"], format!("hz-eu/server/{}", server["id"]));
        assert_eq!(now["schedule"], "office");
    });
}

#[test]
fn an_apply_says_what_it_hibernates_what_that_saves_and_what_stands_in_the_way() {
    run(async {
        let more = r#"
            [[servers]]
            id = 43
            name = "kept"
            server_type = "cpx22"
            created = "2026-09-01T08:00:00Z"
            labels = { offhours = "office" }
            has = ["backups"]
        "#;
        let fleet =
            HETZNER.fleet.replace("id = 42\n", "id = 42\ncreated = \"2026-09-01T08:00:00Z\"\n");
        let terminal = Terminal::with_fleet(&format!("{ACCOUNTS}{fleet}{more}"), "13:00:00").await;
        let apply = async |configuration: &str| {
            terminal.write(configuration);
            terminal.run(&["apply", "--yes"]).await
        };
        let without_key = CONFIGURATION.replace("ssh_key = \"team\"", "");
        let ended = apply(&without_key).await;
        assert_eq!(ended.code, Some(1), "{}", ended.stdout);
        assert!(ended.stderr.contains("no SSH key is named"), "{}", ended.stderr);
        let ended = apply(CONFIGURATION).await;
        assert_eq!(ended.code, Some(1));
        for expected in [
            "kept (hz-eu/server/43), schedule office: no hibernate, because its backups would be deleted",
            "accept = [\"lost-backups\"]",
            "error: refused: kept",
        ] {
            assert!(ended.stderr.contains(expected), "{expected}: {}", ended.stderr);
        }
        let ended = apply(&format!("{CONFIGURATION}otherwise = \"power-off\"\n")).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        for expected in [
            "Stops that hibernate:",
            "build (hz-eu/server/42), schedule office: hibernate from cpx22, saves at least ",
            " EUR a month; not before `offhours rehearse hz-eu/server/42`",
            "kept (hz-eu/server/43), schedule office: only switched off, and stays on cpx22: its backups",
        ] {
            assert!(ended.stdout.contains(expected), "{expected}: {}", ended.stdout);
        }
        let ended = terminal.run(&["doctor"]).await;
        let said = "hz-eu/server/43 (kept): it is only powered off: its backups";
        assert!(ended.stdout.contains(said), "{}", ended.stdout);
        let ended = apply(&format!("{CONFIGURATION}accept = [\"lost-backups\"]\n")).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let log = terminal.simulator.log().await;
        assert!(log.iter().all(|one| one["request"]["method"] == "GET"));
    });
}

/// A fleet whose token has all the scopes needed for reading except these.
fn reading_without(missing: &[&str]) -> String {
    let scopes = [
        "account:read",
        "actions:read",
        "block_storage:read",
        "block_storage_snapshot:read",
        "database:read",
        "droplet:read",
        "firewall:read",
        "image:read",
        "kubernetes:read",
        "load_balancer:read",
        "monitoring:read",
        "project:read",
        "regions:read",
        "reserved_ip:read",
        "sizes:read",
        "snapshot:read",
        "ssh_key:read",
        "tag:read",
        "vpc:read",
    ];
    let scopes: Vec<_> = scopes.into_iter().filter(|one| !missing.contains(one)).collect();
    let token = "token = \"secret-do-token\"\n";
    let accounts = ACCOUNTS.replace(token, &format!("{token}scopes = {scopes:?}\n"));
    format!("{accounts}{}", DIGITALOCEAN.fleet)
}

#[test]
fn doctor_names_each_scope_that_a_token_lacks_for_hibernating() {
    run(async {
        let doctor = async |fleet: &str, configuration: &str| {
            let terminal = Terminal::with_fleet(fleet, "13:00:00").await;
            terminal.local(configuration, "13:03:00").await;
            let ended = terminal.run(&["doctor", "-o", "json"]).await;
            let log = terminal.simulator.log().await;
            assert!(log.iter().all(|one| one["request"]["method"] == "GET"));
            let found: Value = serde_json::from_str(&ended.stdout).unwrap();
            let about =
                found.as_array().unwrap().iter().filter(|one| one["check"] == "hibernation");
            let about = about.map(|one| format!("{} {}", one["level"], one["found"]));
            about.collect::<Vec<_>>().join("\n")
        };
        let hibernating = DIGITALOCEAN.configuration;
        let missing = ["firewall:read", "project:read", "vpc:read", "image:read"];
        let found = doctor(&reading_without(&missing), hibernating).await;
        for scope in missing {
            assert!(found.contains(&format!("{scope} (")), "{scope}: {found}");
        }
        assert!(!found.contains("reserved_ip:read"), "{found}");
        assert!(found.starts_with("\"problem\""), "{found}");

        let found = doctor(&reading_without(&[]), hibernating).await;
        assert!(!found.is_empty() && !found.contains("needs scopes"), "{found}");

        // Without a schedule that hibernates, nothing is requested.
        let powering_off = hibernating.replace("hibernate", "power-off");
        let powering_off = powering_off.replace("accept = \"lost-backups\"\n", "");
        assert_eq!(doctor(&reading_without(&missing), &powering_off).await, "");
    });
}

/// Does what Hetzner's CLI does for a command line by sending the same requests, and waits until
/// they are done.
async fn hcloud(terminal: &Terminal, line: &str) {
    let words: Vec<&str> = line.split(' ').collect();
    let [_, of, what, rest @ ..] = words.as_slice() else {
        panic!("{line}");
    };
    let (named, options) = parsed(rest);
    let number = |text: &str| text.parse::<u64>().unwrap();
    let one = |name: &str| options.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    let all = |name: &'static str| {
        let all = options.iter().filter(move |(key, _)| *key == name);
        all.map(|(_, value)| number(value))
    };
    let server = async |name: &str| -> u64 {
        let found = terminal.hetzner(Method::GET, &format!("servers?name={name}"), None).await;
        found["servers"][0]["id"].as_u64().unwrap()
    };
    let (path, body) = match (*of, *what) {
        ("image", "describe") => {
            let found = terminal.hetzner(Method::GET, &format!("images/{}", named[0]), None).await;
            assert_eq!(found["image"]["status"], "available");
            return;
        }
        ("server", "create") => {
            let labels = options.iter().filter(|(key, _)| *key == "label");
            let labels = labels.map(|(_, label)| label.split_once('=').unwrap());
            let labels: Map<_, _> = labels.map(|(key, of)| (key.to_owned(), json!(of))).collect();
            let firewalls: Vec<_> = all("firewall").map(|id| json!({"firewall": id})).collect();
            let mut body = json!({
                "name": one("name"),
                "server_type": one("type"),
                "location": one("location"),
                "image": number(one("image").unwrap()),
                "ssh_keys": [one("ssh-key")],
                "volumes": all("volume").collect::<Vec<_>>(),
                "automount": false,
                "firewalls": firewalls,
                "labels": labels,
                "start_after_create": one("start-after-create") != Some("false"),
                "public_net": {
                    "enable_ipv4": one("without-ipv4").is_none(),
                    "enable_ipv6": one("without-ipv6").is_none(),
                },
            });
            for (option, key) in [("primary-ipv4", "ipv4"), ("primary-ipv6", "ipv6")] {
                if let Some(id) = one(option) {
                    body["public_net"][key] = json!(number(id));
                }
            }
            ("servers".to_owned(), body)
        }
        ("server", "attach-to-network") => (
            format!("servers/{}/actions/attach_to_network", server(named[0]).await),
            json!({"network": number(one("network").unwrap()), "ip": one("ip")}),
        ),
        ("load-balancer", "add-target") => {
            let id = server(one("server").unwrap()).await;
            let private = one("use-private-ip").is_some();
            let body = json!({"type": "server", "server": {"id": id}, "use_private_ip": private});
            (format!("load_balancers/{}/actions/add_target", named[0]), body)
        }
        ("server", "poweron") => {
            let path = format!("servers/{}/actions/poweron", server(named[0]).await);
            terminal.hetzner(Method::POST, &path, None).await;
            wait(terminal).await;
            return;
        }
        _ => panic!("{line}"),
    };
    terminal.hetzner(Method::POST, &path, Some(body)).await;
    wait(terminal).await;
}

/// Splits the words into those that are not options, and the options with their values.
fn parsed<'w>(words: &[&'w str]) -> (Vec<&'w str>, Vec<(&'w str, &'w str)>) {
    let (mut named, mut options) = (Vec::new(), Vec::new());
    let mut words = words.iter().copied().peekable();
    while let Some(word) = words.next() {
        match word.strip_prefix("--") {
            None => named.push(word),
            Some(option) => options.push(match option.split_once('=') {
                Some(pair) => pair,
                None => match words.next_if(|next| !next.starts_with("--")) {
                    Some(value) => (option, value),
                    None => (option, ""),
                },
            }),
        }
    }
    (named, options)
}

async fn wait(terminal: &Terminal) {
    let now = terminal.simulator.now().await;
    terminal.simulator.move_to(now + SignedDuration::from_mins(2)).await;
}

/// The cloud has no room in the morning, and meanwhile its account is removed.
#[test]
fn a_machine_that_wakes_is_left_behind_when_its_account_goes_and_its_record_is_kept() {
    run(async {
        let (terminal, _) = evening().await;
        let full = json!({
            "match": {"method": "POST", "account": "hz-eu", "path_suffix": "/v1/servers"},
            "does": {"answer": {
                "status": 412,
                "body": "{\"error\": {\"code\": \"resource_unavailable\", \"message\": \"full\"}}",
            }},
            "times": 1000,
        });
        terminal.simulator.fault(full).await;
        terminal.local_until(CONFIGURATION, tuesday("07:30:00")).await;
        let before = terminal.shown(&["status", SERVER]).await;
        assert_eq!(before["state"], "start failing");

        let removed = CONFIGURATION.replace("accounts.hz-eu", "accounts.hz-us");
        terminal.write(&removed);
        let ended = terminal.run(&["apply", "--yes"]).await;
        assert_eq!(ended.code, Some(1), "{}", ended.stdout);
        for expected in [
            "left behind: build (hz-eu/server/42)",
            "only its record says how to recreate it",
            "or pass --leave, which starts nothing later in an account that is removed",
        ] {
            assert!(ended.stderr.contains(expected), "{expected}: {}", ended.stderr);
        }
        let ended = terminal.run(&["apply", "--yes", "--leave"]).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);

        let status = terminal.shown(&["status"]).await;
        assert_eq!(status["resource"], SERVER);
        let needed = status["problems"][0]["remedy"].as_str().unwrap();
        assert!(needed.contains("configure the account again"), "{needed}");
        assert!(!needed.contains("forget"), "{needed}");
        assert_eq!(terminal.shown(&["status", "build"]).await["resource"], SERVER);
        let doctor = terminal.run(&["doctor"]).await.stdout;
        assert!(doctor.contains("configure the account again"), "{doctor}");

        let ended = terminal.run(&["forget", SERVER, "--yes"]).await;
        assert_eq!(ended.code, Some(2), "{}", ended.stdout);
        assert!(ended.stderr.contains("configure its account hz-eu again"), "{}", ended.stderr);
        let ended = terminal.run(&["forget", SERVER, "--anyway", "--yes"]).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let history = ["history", SERVER, "--limit", "1"];
        let forgotten = terminal.shown(&history).await;
        assert_eq!(forgotten["ending"], "forgotten");
        let kept = &forgotten["hibernation"];
        assert_eq!(kept["manifest"], before["hibernation"]["manifest"]);
        assert_eq!(kept["snapshots"], before["hibernation"]["snapshots"]);
    });
}

#[test]
fn it_is_woken_from_a_snapshot_whose_labels_a_person_replaced() {
    run(async {
        let (terminal, first) = evening().await;
        let images = terminal.hetzner(Method::GET, "images?type=snapshot", None).await;
        for image in images["images"].as_array().unwrap() {
            let path = format!("images/{}", image["id"]);
            let body = json!({"labels": {"kept": "forever"}});
            terminal.hetzner(Method::PUT, &path, Some(body)).await;
        }
        terminal.local_until(CONFIGURATION, tuesday("06:05:00")).await;
        let status = terminal.shown(&["status", SERVER]).await;
        assert_eq!(status["state"], "running");
        let servers = terminal.hetzner(Method::GET, "servers", None).await;
        let id = &servers["servers"][0]["id"];
        assert_eq!(server_has(&terminal.simulator.url, id).await, first);
    });
}
