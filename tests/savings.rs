//! `offhours savings` with tokens that may only read, and no service at all.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::{
    programs::{SimulatorProgram, in_terminal, python},
    shapes::check_csv,
    support::{instant, program, run},
};

/// Two accounts with a read-only token each, and the resources that decide on each method.
const FLEET: &str = r#"
[[accounts]]
name = "do-main"
provider = "digitalocean"
token = "secret-do-token"
read_token = "secret-do-reads"

[[accounts]]
name = "hz-eu"
provider = "hetzner"
token = "secret-hz-token"
read_token = "secret-hz-reads"

[[droplets]]
id = 1
name = "build"
size = "g-2vcpu-8gb"

[[droplets]]
id = 2
name = "web"
size = "s-2vcpu-4gb"
tags = ["offhours:office"]

[[droplets]]
id = 3
name = "scaled"
size = "s-2vcpu-4gb"
disk = 25
autoscale_pool = "8e2f"

[[droplets]]
id = 4
name = "vpn"
size = "g-2vcpu-8gb"
tags = ["offhours:off"]

[[databases]]
id = "d1"
name = "orders"
engine = "pg"
plan = "db-s-4vcpu-8gb"
nodes = 2

[[clusters]]
id = "c1"
name = "staging"

[[clusters.pools]]
id = "p1"
name = "general"
count = 2

[[servers]]
id = 11
name = "ci"
server_type = "ccx13"
created = "2026-07-01T00:00:00Z"

[[servers]]
id = 12
name = "old"
server_type = "ccx13"
created = "2026-01-01T00:00:00Z"
"#;

const PRICES: &str = r#"
[prices.database-month]
"db-s-4vcpu-8gb" = 120
"2 x db-s-4vcpu-8gb" = 240
"2 x db-s-1vcpu-2gb" = 60
"#;

/// A person at a machine with tokens in its environment, and nothing else of Offhours.
struct Person {
    simulator: SimulatorProgram,
    directory: TempDir,
    tokens: BTreeMap<&'static str, &'static str>,
}

impl Person {
    async fn new(fleet: &str, at: Timestamp) -> Self {
        let reads =
            [("DIGITALOCEAN_TOKEN", "secret-do-reads"), ("HCLOUD_TOKEN", "secret-hz-reads")];
        Self {
            simulator: SimulatorProgram::start(fleet, at).await,
            directory: TempDir::new().unwrap(),
            tokens: reads.into(),
        }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// What `offhours savings` answers: the exit code, standard output and standard error.
    async fn asks(&self, arguments: &[&str]) -> (i32, String, String) {
        self.types(&[&["savings"], arguments].concat()).await
    }

    async fn types(&self, arguments: &[&str]) -> (i32, String, String) {
        shown(self.command(program("offhours")).args(arguments).output().await.unwrap())
    }

    fn command(&self, program: PathBuf) -> Command {
        let mut command = Command::new(program);
        command
            .env_remove("DIGITALOCEAN_TOKEN")
            .env_remove("HCLOUD_TOKEN")
            .envs(&self.tokens)
            .env("OFFHOURS_SIMULATE", &self.simulator.url)
            .current_dir(self.path());
        command
    }

    /// The report of a run that ends without failures.
    async fn report(&self, arguments: &[&str]) -> Value {
        let arguments = [arguments, &["-o", "json"]].concat();
        let (code, stdout, stderr) = self.asks(&arguments).await;
        assert_eq!((code, stderr.as_str()), (0, ""));
        serde_json::from_str(&stdout).unwrap()
    }
}

/// What a command answered. It never shows a token.
fn shown(Output { status, stdout, stderr }: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (stdout, stderr) = (text(stdout), text(stderr));
    assert!(!stdout.contains("secret-") && !stderr.contains("secret-"));
    (status.code().unwrap(), stdout, stderr)
}

/// A resource of a report, by its name.
fn row<'r>(report: &'r Value, name: &str) -> &'r Value {
    let rows = report["resources"].as_array().unwrap();
    rows.iter().find(|row| row["name"] == name).unwrap()
}

/// A method of a resource.
fn method<'r>(report: &'r Value, name: &str, method: &str) -> &'r Value {
    let methods = row(report, name)["methods"].as_array().unwrap();
    methods.iter().find(|one| one["method"] == method).unwrap()
}

#[test]
fn read_tokens_and_no_configuration_are_enough_and_nothing_is_changed() {
    run(async {
        let person = Person::new(FLEET, instant("2026-11-23T12:00:00Z")).await;
        let report = person.report(&[]).await;
        assert_eq!(report["hours"], "mon-fri 08:00-19:00");
        assert_eq!(report["month_hours"], 730.5);
        let best = |name: &str| row(&report, name)["best"].clone();
        assert_eq!(best("build"), "resize");
        assert_eq!(method(&report, "build", "resize")["to"], "s-1vcpu-1gb");
        assert_eq!(method(&report, "build", "power-off")["saved"], 0.0);
        assert_eq!(best("general"), "zero-nodes");
        assert_eq!(best("ci"), "hibernate");
        assert_eq!(method(&report, "ci", "rescale")["fits"], true);
        for (name, of, why) in [
            ("web", "resize", "its disk of 80 GB is larger"),
            ("scaled", "resize", "member of a Droplet autoscale pool"),
            ("old", "rescale", "created before 2026-06-15"),
            ("orders", "standbys", "price not in the API"),
        ] {
            let found = method(&report, name, of);
            assert!(found["why"].as_str().unwrap().contains(why), "{found}");
            assert_eq!(found["saved"], Value::Null);
        }
        let vpn = row(&report, "vpn");
        assert_eq!(vpn["why"], "opted out by a tag on the resource");
        assert_eq!(vpn["methods"], json!([]));
        // The workers of a pool belong to that pool.
        assert_eq!(report["resources"].as_array().unwrap().len(), 8);
        let log = person.simulator.log().await;
        assert!(!log.is_empty());
        assert!(log.iter().all(|one| one["request"]["method"] == "GET"));
        assert_eq!(fs::read_dir(person.path()).unwrap().count(), 0);
    });
}

#[test]
fn a_first_configuration_has_what_could_save_money_and_only_observes_it() {
    run(async {
        let fleet = FLEET.replace("name = \"old\"", "name = \"Prod-1\"");
        let person = Person::new(&fleet, instant("2026-11-23T12:00:00Z")).await;
        let hours = ["init", "--hours", "mon-thu 07:30-20:00", "--tz", "Europe/Berlin"];
        let (code, stdout, stderr) = person.types(&hours).await;
        assert_eq!((code, stderr.as_str()), (0, ""));
        let says = "Wrote offhours.toml: 4 resources follow the schedule `office`, 1 protected, 3 \
                    left out, with why.";
        assert!(stdout.contains(says), "{stdout}");
        // What could be saved comes first, as `offhours savings` shows it.
        let saves = |line: &str| line.contains("ci ") && line.contains("hibernate");
        assert!(stdout.lines().any(saves), "{stdout}");
        let file = fs::read_to_string(person.path().join("offhours.toml")).unwrap();
        for line in [
            "mode = \"observe\"",
            "timezone = \"Europe/Berlin\"",
            "protect = [\"name:*prod*\"]",
            "token = \"env:HCLOUD_TOKEN\"",
            "periods = [{ weekdays = \"mon-thu\", begin = \"07:30\", end = \"20:00\" }]",
        ] {
            assert!(file.lines().any(|one| one == line), "{line}: {file}");
        }
        assert!(file.contains("  \"hetzner/server/11\", # ci: "), "{file}");
        assert!(file.contains("  # \"digitalocean/database/d1\", # "), "{file}");
        assert!(!file.contains("Prod-1"), "{file}");
        let apply = ["apply", "--data", "offhours.db", "--yes"];
        let (code, stdout, stderr) = person.types(&apply).await;
        assert_eq!(code, 0, "{stdout}{stderr}");
        let log = person.simulator.log().await;
        assert!(log.iter().all(|one| one["request"]["method"] == "GET"));

        let (code, _, stderr) = person.types(&["init"]).await;
        assert_eq!(code, 2);
        assert!(stderr.contains("offhours.toml exists already: name another file"), "{stderr}");
    });
}

#[test]
fn without_a_token_in_a_variable_a_person_is_asked_where_one_is_kept() {
    run(async {
        let mut person = Person::new(FLEET, instant("2026-11-23T12:00:00Z")).await;
        let token = person.tokens.remove("DIGITALOCEAN_TOKEN").unwrap();
        person.tokens = [("TOKEN_OF_MINE", token)].into();
        let (code, _, stderr) = person.types(&["init"]).await;
        assert_eq!(code, 2);
        assert!(stderr.contains("set DIGITALOCEAN_TOKEN or HCLOUD_TOKEN"), "{stderr}");

        let answers = "TOKEN_OF_MINE\nenv:TOKEN_OF_MINE\n\n";
        let mut python = person.command(python());
        let (code, screen, _) = shown(in_terminal(&mut python, &["init"], answers).await);
        assert_eq!(code, 0, "{screen}");
        for says in
            ["DigitalOcean: ", "Hetzner: ", "write where it is kept, ", "Wrote offhours.toml"]
        {
            assert!(screen.contains(says), "{says}: {screen}");
        }
        let file = fs::read_to_string(person.path().join("offhours.toml")).unwrap();
        assert!(file.contains("token = \"env:TOKEN_OF_MINE\""), "{file}");
        assert!(!file.contains("hetzner"), "{file}");
    });
}

#[test]
fn no_configuration_is_written_of_an_account_that_cannot_be_read() {
    run(async {
        let mut person = Person::new(FLEET, instant("2026-11-23T12:00:00Z")).await;
        person.tokens.insert("DIGITALOCEAN_TOKEN", "secret-wrong");
        let (code, stdout, stderr) = person.types(&["init"]).await;
        assert_eq!((code, stdout.as_str()), (1, ""));
        assert!(stderr.contains("error: account digitalocean: "), "{stderr}");
        assert_eq!(fs::read_dir(person.path()).unwrap().count(), 0);
    });
}

#[test]
fn no_configuration_is_written_for_a_time_zone_without_a_name() {
    run(async {
        let mut person = Person::new(FLEET, instant("2026-11-23T12:00:00Z")).await;
        person.tokens.insert("TZ", "CET-1CEST,M3.5.0,M10.5.0/3");
        let (code, stdout, stderr) = person.types(&["init"]).await;
        assert_eq!((code, stdout.as_str()), (2, ""));
        assert!(stderr.contains("has no name: pass --tz"), "{stderr}");
        assert_eq!(fs::read_dir(person.path()).unwrap().count(), 0);
    });
}

#[test]
fn people_see_the_best_method_of_each_resource_and_the_sum_of_each_currency() {
    run(async {
        let person = Person::new(FLEET, instant("2026-11-23T12:00:00Z")).await;
        let (code, shown, stderr) = person.asks(&["--hours", "mon-fri 07:00-20:00"]).await;
        assert_eq!((code, stderr.as_str()), (0, ""));
        for expected in [
            "A month of 730.5 h, everything running mon-fri 07:00-20:00 UTC, and off for 447.9 h:",
            "resize to s-1vcpu-1gb",
            "billed in full while off",
            "price not in the API: [prices.database-month]",
            "EUR and ",
            "known for 6 of 7 resources.",
        ] {
            assert!(shown.contains(expected), "{expected}: {shown}");
        }
        let table = shown.lines().skip(2).take_while(|line| !line.starts_with("In total"));
        assert_eq!(table.count(), 8, "a line for each resource: {shown}");
        assert!(!shown.contains('\u{1b}'), "{shown}");
        let (_, shown, _) = person.asks(&["--all"]).await;
        assert!(shown.contains("than that of every cheaper plan in fra1"), "{shown}");
    });
}

#[test]
fn with_a_configuration_each_resource_has_the_hours_of_its_schedule() {
    run(async {
        let mut person = Person::new(FLEET, instant("2026-11-23T12:00:00Z")).await;
        person.tokens = [("DO_READS", "secret-do-reads"), ("HZ_READS", "secret-hz-reads")].into();
        let configuration = r#"
            protect = ["name:gen*"]
            accounts.do-main = { provider = "digitalocean", token = "env:NOT_SET", read_token = "env:DO_READS" }
            accounts.hz-eu = { provider = "hetzner", token = "env:HZ_READS", accept_new_prices = true }
            [schedules.office]
            timezone = "UTC"
            periods = [{ weekdays = "mon-fri", begin = "08:00", end = "19:00" }]
            resources = ["do-main/database/d1", "hz-eu/server/12"]
        "#;
        let file = |name: &str, text: &str| {
            let path = person.path().join(name);
            fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let configuration = file("offhours.toml", &format!("{configuration}{PRICES}"));
        let arguments = ["--config", &configuration];
        let report = person.report(&[&arguments[..], &["--month", "2026-11"]].concat()).await;
        assert_eq!(report["month"], "2026-11");
        assert_eq!(row(&report, "web")["schedule"], "office");
        assert_eq!(row(&report, "web")["off_hours"], 489.0);
        let resize = method(&report, "build", "resize");
        assert!(resize["why"].as_str().unwrap().contains("--hours"), "{resize}");
        assert_eq!(method(&report, "orders", "standbys")["saved"], 78.75);
        assert_eq!(row(&report, "orders")["monthly"], 240.0);
        let old = method(&report, "old", "rescale");
        assert_eq!((&old["fits"], &old["saved"]), (&json!(true), &Value::Null));
        let general = row(&report, "general");
        assert_eq!(general["why"], "protected by `name:gen*`");
        let report = person.report(&[&arguments[..], &["--hours", "08:00-20:00"]].concat()).await;
        assert_eq!(row(&report, "build")["off_hours"], 365.25);
        assert_eq!(row(&report, "build")["schedule"], Value::Null);
    });
}

#[test]
fn an_account_that_cannot_be_read_does_not_hide_the_others() {
    run(async {
        let mut person = Person::new(FLEET, instant("2026-11-23T12:00:00Z")).await;
        person.tokens.insert("DIGITALOCEAN_TOKEN", "secret-wrong");
        let (code, stdout, stderr) = person.asks(&["-o", "json"]).await;
        assert_eq!(code, 1);
        let report: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(report["resources"].as_array().unwrap().len(), 2);
        assert!(stderr.contains("error: account digitalocean: "), "{stderr}");
        assert!(stderr.contains("sizes:read and regions:read"), "{stderr}");
        person.tokens.clear();
        let (code, stdout, stderr) = person.asks(&[]).await;
        assert_eq!((code, stdout.as_str()), (2, ""));
        assert!(stderr.contains("set DIGITALOCEAN_TOKEN or HCLOUD_TOKEN"), "{stderr}");
        let (code, _, stderr) = person.asks(&["--hours", "noon"]).await;
        assert_eq!(code, 2);
        assert!(stderr.contains("such as \"mon-fri 08:00-19:00\""), "{stderr}");
    });
}

#[test]
fn what_is_printed_for_programs_has_the_shape_that_is_served() {
    run(async {
        let person = Person::new(FLEET, instant("2026-11-23T12:00:00Z")).await;
        let schema = Command::new(program("offhours"))
            .args(["config", "schema", "savings"])
            .output()
            .await
            .unwrap();
        let schema: Value = serde_json::from_slice(&schema.stdout).unwrap();
        let schema = jsonschema::draft202012::new(&schema).unwrap();
        let report = person.report(&["--month", "2026-12"]).await;
        if let Err(error) = schema.validate(&report) {
            panic!("{error} at {}", error.instance_path());
        }
        let (_, csv, _) = person.asks(&["--month", "2026-12", "-o", "csv"]).await;
        check_csv(&csv, report["resources"].as_array().unwrap());
    });
}

/// The same accounts, with tokens that may do everything.
const WRITING: &str = r#"
[[accounts]]
name = "do-main"
provider = "digitalocean"
token = "secret-do-reads"

[[accounts]]
name = "hz-eu"
provider = "hetzner"
token = "secret-hz-reads"
"#;

/// A machine of each kind, a pool and a database, all of which can be shrunk and restored at once.
const SWITCHED: &str = r#"
[[droplets]]
id = 1
name = "build"
size = "g-2vcpu-8gb"
status = "off"

[[databases]]
id = "d1"
name = "orders"
engine = "pg"
plan = "db-s-4vcpu-8gb"
nodes = 2

[[clusters]]
id = "c1"
name = "staging"

[[clusters.pools]]
id = "p1"
name = "general"
count = 2

[[servers]]
id = 11
name = "ci"
server_type = "ccx13"
status = "off"
stays_off_after_change = true
"#;

/// The act that shrinks a resource, or restores it.
type ResizeAct = fn(bool) -> Value;

/// The resources that change at an edge, with the act that shrinks or restores each.
const CHANGES: [(&str, ResizeAct); 4] = [
    ("do-main/droplet/1", |small| {
        let plan = if small { "s-1vcpu-1gb" } else { "g-2vcpu-8gb" };
        json!({"change_plan": {"plan": plan}})
    }),
    ("do-main/database/d1", |small| {
        let nodes = if small { 1 } else { 2 };
        json!({"resize": {"plan": "db-s-4vcpu-8gb", "nodes": nodes}})
    }),
    ("do-main/node-pool/c1/p1", |small| json!({"scale": {"count": if small { 0 } else { 2 }}})),
    (
        "hz-eu/server/11",
        |small| json!({"change_plan": {"plan": if small { "cpx22" } else { "ccx13" }}}),
    ),
];

#[test]
fn what_is_said_of_a_month_is_what_the_clouds_then_charge() {
    run(async {
        let begin = instant("2026-11-01T00:00:00Z");
        let person = Person::new(&format!("{WRITING}{SWITCHED}"), begin).await;
        let accounts = r#"
            accounts.do-main = { provider = "digitalocean", token = "env:DIGITALOCEAN_TOKEN" }
            accounts.hz-eu = { provider = "hetzner", token = "env:HCLOUD_TOKEN" }
        "#;
        let file = person.path().join("offhours.toml");
        fs::write(&file, format!("{accounts}{PRICES}")).unwrap();
        let file = file.to_str().unwrap();
        let hours = "mon-fri 08:00-19:00";
        let arguments = ["--month", "2026-11", "--config", file, "--hours", hours];
        let said = person.report(&arguments).await;

        // The month begins on a Sunday, so everything is small until Monday.
        let simulator = &person.simulator;
        let switch = async |small: bool| {
            for (resource, act) in CHANGES {
                simulator.person(resource, act(small)).await;
            }
        };
        switch(true).await;
        for day in 2..=30_i64 {
            let at = |hours: i64| begin + SignedDuration::from_hours(24 * (day - 1) + hours);
            if matches!((day - 1) % 7, 0 | 6) {
                continue;
            }
            simulator.move_to(at(8)).await;
            switch(false).await;
            simulator.move_to(at(19)).await;
            switch(true).await;
        }
        let end = instant("2026-12-01T00:00:00Z");
        simulator.move_to(end).await;

        let charged = simulator.bill("until=2026-12-01T00:00:00Z").await;
        let full = simulator.bill("until=2026-12-01T00:00:00Z&left_running=true").await;
        for (resource, name, of) in [
            ("do-main/droplet/1", "build", "resize"),
            ("do-main/database/d1", "orders", "standbys"),
            ("do-main/node-pool/c1/p1", "general", "zero-nodes"),
            ("hz-eu/server/11", "ci", "rescale"),
        ] {
            let saved = full[resource] - charged[resource];
            let said = method(&said, name, of)["saved"].as_f64().unwrap();
            // Within a hundredth of what is charged.
            assert!(
                (said - saved).abs() <= 0.01 * charged[resource],
                "{name}: said {said}, saved {saved}, charged {}",
                charged[resource]
            );
        }
    });
}

/// A machine at each cloud whose copies take the longest time and the most space that they may.
const HIBERNATED: &str = r#"
[[droplets]]
id = 1
name = "build"
size = "g-2vcpu-8gb"
region = "fra1"
snapshot = "50m"
snapshot_gb = 25

[[digitalocean.ssh_keys]]
id = 512189
name = "team"
public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI team"

[[servers]]
id = 11
name = "ci"
server_type = "ccx13"
location = "fsn1"
snapshot = "160m"
snapshot_gb = 80

[[hetzner.ssh_keys]]
id = 14
name = "team"
public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI team"
"#;

/// The requests that hibernate and wake a machine at its cloud.
struct Cloud {
    account: &'static str,
    kind: &'static str,
    token: &'static str,
    /// The machine's name, and its first id.
    name: &'static str,
    first: u64,
    /// The API paths of machines and of their copies.
    machines: &'static str,
    copies: &'static str,
    /// The request that makes a copy, and the key of the list of all copies.
    copying: fn() -> Value,
    action: &'static str,
    list: &'static str,
    /// The request that makes a machine from a copy.
    order: fn(u64) -> Value,
    made: &'static str,
    /// How long after the end a copy is finished, and how early a start begins.
    copied_after: SignedDuration,
    lead: SignedDuration,
}

/// A Droplet of 25 GB, and a server of 80 GB.
const CLOUDS: [Cloud; 2] = [
    Cloud {
        account: "do-main",
        kind: "droplet",
        token: "secret-do-reads",
        name: "build",
        first: 1,
        machines: "v2/droplets",
        copies: "v2/snapshots",
        copying: || json!({"type": "snapshot", "name": "copy"}),
        action: "actions",
        list: "snapshots",
        order: |copy| {
            json!({
                "name": "build", "region": "fra1", "size": "g-2vcpu-8gb", "image": copy,
                "ssh_keys": [512_189],
            })
        },
        made: "droplet",
        copied_after: SignedDuration::from_mins(10 + 2 * 25),
        lead: SignedDuration::from_secs(60 * 20 + 15 * 25),
    },
    Cloud {
        account: "hz-eu",
        kind: "server",
        token: "secret-hz-reads",
        name: "ci",
        first: 11,
        machines: "v1/servers",
        copies: "v1/images",
        copying: || json!({"type": "snapshot"}),
        action: "actions/create_image",
        list: "images",
        order: |copy| {
            json!({
                "name": "ci", "location": "fsn1", "server_type": "ccx13", "image": copy.to_string(),
                "ssh_keys": ["team"],
                "public_net": {"enable_ipv4": false, "enable_ipv6": true},
            })
        },
        made: "server",
        copied_after: SignedDuration::from_mins(10 + 2 * 80),
        lead: SignedDuration::from_secs(60 * 20 + 15 * 80),
    },
];

/// A machine that a person hibernates and wakes, and its copies, oldest first.
struct ManualHibernation<'s> {
    cloud: Cloud,
    simulator: &'s SimulatorProgram,
    machine: u64,
    copies: Vec<u64>,
}

impl ManualHibernation<'_> {
    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        let token = self.cloud.token;
        self.simulator.asked(token, method, path, body).await
    }

    /// The ids of all copies.
    async fn all(&self) -> Vec<u64> {
        let of_kind = match self.cloud.kind {
            "server" => "?type=snapshot",
            _ => "",
        };
        let found = self.ask(Method::GET, &format!("{}{of_kind}", self.cloud.copies), None).await;
        let found = found[self.cloud.list].as_array().unwrap().iter();
        let number = |id: &Value| id.as_u64().or_else(|| id.as_str()?.parse().ok());
        found.map(|one| number(&one["id"]).unwrap()).collect()
    }

    /// Switches it off, before it is copied.
    async fn begin_copy(&self) {
        let Cloud { account, kind, .. } = self.cloud;
        let resource = format!("{account}/{kind}/{}", self.machine);
        self.simulator.person(&resource, json!("power_off")).await;
    }

    async fn copy(&self) {
        let Cloud { machines, action, copying, .. } = self.cloud;
        let path = format!("{machines}/{}/{action}", self.machine);
        self.ask(Method::POST, &path, Some(copying())).await;
    }

    /// Deletes the machine once it is copied, and the oldest of three copies.
    async fn delete(&mut self) {
        let Cloud { machines, copies, .. } = self.cloud;
        let known = self.copies.clone();
        let mut all = self.all().await;
        all.retain(|id| !known.contains(id));
        self.copies.extend(all);
        self.ask(Method::DELETE, &format!("{machines}/{}", self.machine), None).await;
        if self.copies.len() > 2 {
            let oldest = self.copies.remove(0);
            self.ask(Method::DELETE, &format!("{copies}/{oldest}"), None).await;
        }
    }

    async fn make(&mut self) {
        let Cloud { machines, order, made, .. } = self.cloud;
        let latest = *self.copies.last().unwrap();
        let made_of = self.ask(Method::POST, machines, Some(order(latest))).await;
        self.machine = made_of[made]["id"].as_u64().unwrap();
    }
}

/// The report assumes the longest time that each step may take; here each step takes that long.
#[test]
fn a_month_of_hibernated_machines_costs_what_is_said() {
    for cloud in CLOUDS {
        run(async {
            // Two copies exist before the month begins on a Sunday, and the machine is gone by
            // then.
            let begin = instant("2026-11-01T00:00:00Z");
            let before = begin - SignedDuration::from_hours(48);
            let person = Person::new(&format!("{WRITING}{HIBERNATED}"), before).await;
            let said = person.report(&["--month", "2026-11"]).await;
            let simulator = &person.simulator;
            let (lead, copied_after) = (cloud.lead, cloud.copied_after);
            let (name, machine) = (cloud.name, cloud.first);
            let prefix = format!("{}/{}/", cloud.account, cloud.kind);
            let mut sleeper = ManualHibernation { cloud, simulator, machine, copies: Vec::new() };
            let hours = |from: Timestamp, hours: i64| from + SignedDuration::from_hours(hours);
            sleeper.begin_copy().await;
            for copy in 0..2 {
                simulator.move_to(hours(before, 10 * copy + 1)).await;
                sleeper.copy().await;
                simulator.move_to(hours(before, 10 * copy + 8)).await;
            }
            sleeper.delete().await;
            for day in 2..=30_i64 {
                if matches!((day - 1) % 7, 0 | 6) {
                    continue;
                }
                let midnight = hours(begin, 24 * (day - 1));
                simulator.move_to(hours(midnight, 8) - lead).await;
                sleeper.make().await;
                simulator.move_to(hours(midnight, 19)).await;
                sleeper.begin_copy().await;
                simulator.move_to(hours(midnight, 19) + SignedDuration::from_mins(5)).await;
                sleeper.copy().await;
                simulator.move_to(hours(midnight, 19) + copied_after).await;
                sleeper.delete().await;
            }
            let end = instant("2026-12-01T00:00:00Z");
            simulator.move_to(end).await;

            let until = "since=2026-11-01T00:00:00Z&until=2026-12-01T00:00:00Z";
            let charged = simulator.bill(until).await;
            let charged = charged.iter().filter(|(of, _)| of.starts_with(&prefix));
            let charged: f64 = charged.map(|(_, amount)| amount).sum();
            let full = row(&said, name)["monthly"].as_f64().unwrap();
            let said = method(&said, name, "hibernate")["saved"].as_f64().unwrap();
            // Within a hundredth of what is charged.
            assert!(
                (full - said - charged).abs() <= 0.01 * charged,
                "{name}: of {full} said {said}, charged {charged}"
            );
        });
    }
}
