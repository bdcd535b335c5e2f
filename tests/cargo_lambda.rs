//! Runs the four functions under `cargo lambda watch` and invokes them with the committed events.
//! The clouds are served by `offhours local --no-timers`, the store by the test.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Stdio,
};

use local::engine::Engine;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::{TcpListener, TcpStream},
    process::{Child, Command},
};

use crate::support::{any_port, program, root, serve_sts};

/// The Droplet that the committed events name; the example fleet contains it, too.
const DROPLET: &str = "do-main/droplet/387104512";

/// Schedules whose desired states never change, except in the first minutes of a year.
const CONFIGURATION: &str = r#"
[accounts.do-main]
provider = "digitalocean"
token = "env:OFFHOURS_DEMO_DO_TOKEN"

[schedules.parked]
timezone = "UTC"
start = "0 0 1 1 *"
stop = "1 0 1 1 *"

[schedules.always-on]
timezone = "UTC"
start = "1 0 1 1 *"
stop = "0 0 1 1 *"
"#;

/// The fleet runs on the machine's clock, so its actions are quick to keep the test short.
const FLEET: &str = r#"
[[accounts]]
name = "do-main"
provider = "digitalocean"
token = "simulated-do-token"

[[droplets]]
id = 387104512
name = "berlin-dev-1"
tags = ["offhours:parked"]
size = "s-2vcpu-4gb"
power_action = "1s"

[[droplets]]
id = 391220468
name = "new-york-staging"
tags = ["offhours:always-on"]
"#;

#[test]
fn the_committed_events_name_a_resource_of_the_example_fleet() {
    let id = DROPLET.rsplit('/').next().unwrap();
    let fleet = include_str!("../examples/fleet.toml");
    assert!(fleet.contains(&format!("\nid = {id}\n")));
    for event in [
        include_str!("../crates/stop/events/command.json"),
        include_str!("../crates/stop/events/due.json"),
        include_str!("../crates/start/events/command.json"),
        include_str!("../crates/start/events/due.json"),
        include_str!("../crates/poll-status/events/question.json"),
    ] {
        let event: Value = serde_json::from_str(event).unwrap();
        assert_eq!(event["resources"], json!([DROPLET]));
    }
}

#[tokio::test]
#[ignore = "`make test-stack` runs it: cargo-lambda builds the functions anew"]
async fn each_committed_event_does_what_it_says_under_cargo_lambda() {
    let functions = Functions::start().await;
    // Each function is built at its first invocation. Without a record nothing is due.
    for function in ["stop", "start"] {
        let report = functions.invoke(function, "due").await;
        assert_eq!(report["outcomes"], json!([]));
    }

    let report = functions.invoke("poll-status", "timer").await;
    assert_eq!(events(&report), ["joined", "joined"], "{report}");
    let dispatched = functions.invoke("dispatch", "timer").await;
    assert_eq!(dispatched["stops"], json!([DROPLET]), "{dispatched}");
    functions.poll_until_seen("stop").await;

    let report = functions.invoke("poll-status", "question").await;
    assert_eq!(report["outcomes"][0]["state"], "stopped, s-2vcpu-4gb");
    let report = functions.invoke("poll-status", "inventory").await;
    assert_eq!(report["outcomes"][0]["state"], "listed whole: 2 resources");

    let report = functions.invoke("start", "command").await;
    assert_eq!(events(&report), ["asked"], "{report}");
    functions.poll_until_seen("start").await;
    // The manual start stands until the next edge, whatever stale hints say.
    for function in ["stop", "start"] {
        let report = functions.invoke(function, "due").await;
        assert_eq!(report["outcomes"], json!([]));
    }

    let report = functions.invoke("stop", "command").await;
    assert_eq!(events(&report), ["asked"], "{report}");
    functions.poll_until_seen("stop").await;

    functions.answer_the_command().await;

    assert_eq!(functions.changes().await, ["power_off", "power_on", "power_off", "power_on"]);
    functions.end().await;
}

/// The kinds of events in a report.
fn events(report: &Value) -> Vec<&str> {
    let outcomes = report["outcomes"].as_array().unwrap();
    let events = outcomes.iter().map(|outcome| &outcome["event"]);
    events.map(|event| event.as_str().unwrap()).collect()
}

/// One more account, whose token opens the same simulated clouds.
const ONE_MORE: &str = r#"
[accounts.do-other]
provider = "digitalocean"
token = "env:OFFHOURS_DEMO_DO_TOKEN"
"#;

/// `cargo lambda watch`, and the store and clouds that the functions work with.
struct Functions {
    local: Child,
    watch: Child,
    port: u16,
    store: String,
    clouds: String,
    directory: TempDir,
}

impl Functions {
    async fn start() -> Self {
        let directory = TempDir::new().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("offhours.toml"), CONFIGURATION).unwrap();
        fs::write(path("fleet.toml"), FLEET).unwrap();
        let store = testing::serve(Engine::in_memory().unwrap()).await;
        let mut local = Command::new(program("offhours"))
            .args(["local", "--simulate", "--no-timers"])
            .args(["--store", &store.to_string()])
            .args(["--config", "offhours.toml", "--fleet", "fleet.toml"])
            .current_dir(directory.path())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(local.stdout.take().unwrap()).lines();
        let line = lines.next_line().await.unwrap().unwrap();
        let clouds = line.split(' ').find(|word| word.starts_with("http://"));
        let clouds = clouds.unwrap().trim_end_matches('/').to_owned();
        let store = format!("http://{store}");

        let free = TcpListener::bind(any_port()).await.unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let log = File::create(path("watch.log")).unwrap();
        let mut watch = Command::new(cargo_lambda())
            .args(["lambda", "watch", "--ignore-changes"])
            .args(["-A", "127.0.0.1", "-P", &port.to_string()])
            .current_dir(root())
            // The target directory of this test, so that existing builds are reused.
            .env("CARGO_TARGET_DIR", target_directory())
            .env("AWS_ENDPOINT_URL", &store)
            .env("AWS_ENDPOINT_URL_LAMBDA", format!("http://127.0.0.1:{port}"))
            .env("AWS_REGION", "eu-central-1")
            .env("AWS_ACCESS_KEY_ID", "local")
            .env("AWS_SECRET_ACCESS_KEY", "local")
            .env("OFFHOURS_STOP_FUNCTION", "stop")
            .env("OFFHOURS_START_FUNCTION", "start")
            .env("OFFHOURS_EVENT_BUS", "none")
            .env("OFFHOURS_DIGITALOCEAN_URL", &clouds)
            .env("OFFHOURS_HETZNER_URL", &clouds)
            .env("OFFHOURS_DEMO_DO_TOKEN", "simulated-do-token")
            .env("OFFHOURS_LOCAL_TOKENS", "1")
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            let ended = watch.try_wait().unwrap();
            assert_eq!(ended, None, "{}", printed(directory.path()));
            tokio::task::yield_now().await;
        }
        Self { local, watch, port, store, clouds, directory }
    }

    /// Invokes a function with one of its committed events, and returns its response.
    async fn invoke(&self, function: &str, event: &str) -> Value {
        let output = Command::new(cargo_lambda())
            .args(["lambda", "invoke", function, "-A", "127.0.0.1"])
            .args(["-P", &self.port.to_string(), "--data-file"])
            .arg(format!("crates/{function}/events/{event}.json"))
            .current_dir(root())
            .output()
            .await
            .unwrap();
        let log = printed(self.directory.path());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}\n{log}");
        assert!(!log.contains("simulated-do-token"), "a token was logged");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Runs the commands of a person who uses the service as at AWS and holds no provider token.
    async fn answer_the_command(&self) {
        let (code, rows) = self.offhours(&["status", "--live"]).await;
        let rows: Vec<Value> = serde_json::from_str(&rows).unwrap();
        let row = rows.iter().find(|row| row["resource"] == DROPLET).unwrap();
        assert_eq!(code, Some(0), "{row}");
        assert_eq!(row["live"], "stopped, s-2vcpu-4gb");

        let (code, shown) = self.offhours(&["start", "berlin-dev-1", "--dry-run"]).await;
        let shown: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!((code, &shown["event"]), (Some(0), &json!("would-ask")), "{shown}");
        let (code, shown) = self.offhours(&["start", "berlin-dev-1", "--no-wait"]).await;
        let shown: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!((code, &shown["event"]), (Some(0), &json!("asked")), "{shown}");
        self.poll_until_seen("start").await;

        let (code, rows) = self.offhours(&["status", "--refresh"]).await;
        let rows: Vec<Value> = serde_json::from_str(&rows).unwrap();
        assert_eq!((code, rows.len()), (Some(0), 2), "{rows:?}");

        let configuration = format!("{CONFIGURATION}{ONE_MORE}");
        fs::write(self.directory.path().join("offhours.toml"), configuration).unwrap();
        let (code, plan) = self.offhours(&["apply", "--dry-run"]).await;
        let plan: Value = serde_json::from_str(&plan).unwrap();
        let tried = &plan["accounts"][0];
        // Both accounts have the token of one project.
        assert_eq!((code, &tried["account"]), (Some(1), &json!("do-other")), "{plan}");
        assert!(plan["refused"][0].as_str().unwrap().contains("by two accounts"), "{plan}");
        assert_eq!(tried["error"], Value::Null, "{plan}");
        assert_eq!(tried["places"][0]["resources"], 2, "{plan}");
    }

    async fn offhours(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let sts = serve_sts().await;
        let output = Command::new(program("offhours"))
            .args(arguments)
            .args(["-o", "json", "--region", "eu-central-1"])
            .current_dir(self.directory.path())
            .env("AWS_ENDPOINT_URL", &self.store)
            .env("AWS_ENDPOINT_URL_STS", sts)
            .env("AWS_ENDPOINT_URL_LAMBDA", format!("http://127.0.0.1:{}", self.port))
            .env("AWS_ACCESS_KEY_ID", "local")
            .env("AWS_SECRET_ACCESS_KEY", "local")
            .env("OFFHOURS_STOP_FUNCTION", "stop")
            .env("OFFHOURS_START_FUNCTION", "start")
            .env("OFFHOURS_POLL_STATUS_FUNCTION", "poll-status")
            .output()
            .await
            .unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(!shown.is_empty(), "{arguments:?}: {complaints}");
        (output.status.code(), shown)
    }

    /// Fires the timer until the end of a transition has been seen.
    async fn poll_until_seen(&self, direction: &str) {
        loop {
            let report = self.invoke("poll-status", "timer").await;
            let ended = |event: &&str| !["asked", "postponed"].contains(event);
            if events(&report).iter().any(ended) {
                assert_eq!(events(&report), ["seen"], "{report}");
                assert_eq!(report["outcomes"][0]["direction"], direction);
                return;
            }
        }
    }

    /// The changes requested from the clouds, in order.
    async fn changes(&self) -> Vec<String> {
        let url = format!("{}/_simulator/log", self.clouds);
        let client = provider::http_client().unwrap();
        let answer = client.get(url).send().await.unwrap().bytes().await.unwrap();
        let log: Value = serde_json::from_slice(&answer).unwrap();
        let entries = log["entries"].as_array().unwrap().iter();
        let changes = entries.filter(|entry| entry["request"]["method"] != "GET");
        changes
            .map(|entry| {
                assert_eq!(entry["resource"], DROPLET);
                let body = entry["request"]["body"].as_str().unwrap();
                let body: Value = serde_json::from_str(body).unwrap();
                body["type"].as_str().unwrap().to_owned()
            })
            .collect()
    }

    async fn end(mut self) {
        self.interrupt_watch();
        self.watch.wait().await.unwrap();
        self.local.kill().await.unwrap();
    }

    /// Interrupts watch as Ctrl-C does, so that it ends its functions before itself.
    fn interrupt_watch(&self) {
        if let Some(id) = self.watch.id() {
            let mut kill = std::process::Command::new("sh");
            kill.args(["-c", &format!("kill -INT {id}")]).status().ok();
        }
    }
}

impl Drop for Functions {
    fn drop(&mut self) {
        self.interrupt_watch();
    }
}

/// cargo-lambda, from the environment that builds the functions.
fn cargo_lambda() -> PathBuf {
    let path = root().join(".build/bin/cargo-lambda");
    assert!(path.is_file(), "there is no {}: run `make build`", path.display());
    path
}

/// The target directory of this test, whose binary is `TARGET/debug/deps/offhours-HASH`.
fn target_directory() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(3).unwrap().to_owned()
}

fn printed(directory: &Path) -> String {
    fs::read_to_string(directory.join("watch.log")).unwrap()
}
