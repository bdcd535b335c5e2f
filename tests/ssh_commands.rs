//! What the commands show about machines over SSH on a real server.

use std::sync::{Arc, Mutex};

use axum::{Router, body::Bytes, http::Uri};
use lifecycle::{Event, Occurrence, Report};
use serde_json::{Value, json};

use crate::{
    lab::{BUILD, Lab, OFFICE},
    programs::{CommandOutput, Terminal},
    support::{ARN, World, monday, program, run, serve, serve_sts},
};

/// Two machines in the schedule `office`.
fn two(lab: &Lab, account: &str) -> String {
    let office = "tags = [\"offhours:office\"]";
    let machines = ["build", "render"].map(|name| lab.machine(name, office));
    [account, &machines.concat(), OFFICE].concat()
}

async fn lab() -> Option<Lab> {
    Lab::start(&["build", "render"]).await
}

/// Fails unless the command ended with this code, and revealed nothing that must stay hidden.
#[track_caller]
fn ended(lab: &Lab, ended: CommandOutput, code: i32) -> CommandOutput {
    let ended = configured(lab, ended, code);
    lab.is_kept_from(&format!("{}{}", ended.stdout, ended.stderr));
    ended
}

/// The same for a command that shows the configuration.
#[track_caller]
fn configured(lab: &Lab, ended: CommandOutput, code: i32) -> CommandOutput {
    let shown = format!("{}{}", ended.stdout, ended.stderr);
    assert_eq!(ended.code, Some(code), "{shown}");
    lab.keeps_its_keys_from(&shown);
    ended
}

#[track_caller]
fn says(text: &str, expected: &[&str]) {
    for words in expected {
        assert!(text.contains(words), "no `{words}` in: {text}");
    }
}

fn rows(ended: &CommandOutput) -> Vec<Value> {
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn the_commands_show_stop_and_start_machines_and_say_nothing_of_their_host() {
    run(async {
        let Some(lab) = lab().await else { return };
        let terminal = Terminal::new("12:00:00").await;
        terminal.write(&two(&lab, &lab.account("")));
        let run = async |arguments: &[&str]| ended(&lab, terminal.run(arguments).await, 0);

        let validated = configured(&lab, terminal.bare(&["validate"]).await, 0);
        says(&validated.stdout, &["1 account", "2 machines"]);
        let applied = configured(&lab, terminal.run(&["apply", "--yes"]).await, 0);
        says(&applied.stdout, &["The key of lab works: 2 machines\n", "Applied as generation 1: "]);
        let listed = run(&["list", "--refresh"]).await;
        says(&listed.stdout, &["build", "render", "office", "running"]);
        assert!(!listed.stdout.contains('?'), "{}", listed.stdout);
        let listed = run(&["status", "-o", "json"]).await;
        let of = |row: &Value| ["resource", "name"].map(|key| row[key].clone());
        let expected = ["build", "render"]
            .map(|name| [format!("lab/machine/{name}"), name.into()])
            .map(|row| row.map(Value::from));
        assert_eq!(rows(&listed).iter().map(of).collect::<Vec<_>>(), expected);
        assert_eq!(lab.changes(), [""; 0]);

        terminal.local(&two(&lab, &lab.account("")), "12:03:00").await;
        let why = run(&["why", "--full", "build"]).await;
        says(&why.stdout, &["It is running, as it should be.", "office"]);
        let status = run(&["status"]).await;
        says(&status.stdout, &["build", "render", "running"]);
        let stopped = run(&["stop", BUILD]).await;
        says(&stopped.stdout, &["stop asked", "ssh stop build", "stopped, seen after 5 s"]);
        assert!(!lab.runs("build") && lab.runs("render"));
        let started = run(&["start", "build"]).await;
        says(&started.stdout, &["ssh start build"]);
        assert_eq!(lab.changes(), ["stop build", "start build"]);
        let checked = run(&["doctor"]).await;
        says(&checked.stdout, &["the state of 2 machines is known"]);
        assert_eq!(lab.changes().len(), 2, "doctor changes nothing");

        // What was applied, with everything that a file contains.
        let exported = configured(&lab, terminal.run(&["config", "show"]).await, 0);
        says(
            &exported.stdout,
            &["[accounts.lab.machines.build]", "stop = \"stop build\"", &lab.sshd.host_key()[..40]],
        );
        terminal.write(&exported.stdout);
        let again = run(&["apply", "--yes"]).await;
        says(&again.stdout, &["Nothing to apply"]);
    });
}

#[test]
fn a_machine_of_unknown_state_is_a_warning_that_names_it() {
    run(async {
        let Some(lab) = lab().await else { return };
        let terminal = Terminal::new("12:00:00").await;
        terminal.local(&two(&lab, &lab.account("")), "12:03:00").await;
        lab.on("status", "test \"$SSH_ORIGINAL_COMMAND\" = 'status build' && exit 5");
        let checked = terminal.run(&["doctor", "-o", "json"]).await;
        let checked = ended(&lab, checked, 0);
        let warned: Vec<_> = rows(&checked).into_iter().filter(|r| r["level"] != "ok").collect();
        let [warning] = &warned[..] else {
            panic!("{warned:#?}");
        };
        assert_eq!(warning["level"], "warning");
        says(
            warning["found"].as_str().unwrap(),
            &["machine/build: its state is unknown", "status ended with exit code 5"],
        );
        says(warning["remedy"].as_str().unwrap(), &["status command", "0", "3"]);
        let status = terminal.run(&["status", "--live"]).await;
        says(&ended(&lab, status, 0).stdout, &["of unknown state, status ended with exit code 5"]);
    });
}

#[test]
fn a_wrong_pin_is_reported_by_apply_and_by_doctor_with_what_to_do() {
    run(async {
        let Some(lab) = lab().await else { return };
        let terminal = Terminal::new("12:00:00").await;
        let wrong = lab.account_with(&[lab.sshd.other_host_key()], "");
        terminal.write(&two(&lab, &wrong));
        let applied = configured(&lab, terminal.run(&["apply", "--yes"]).await, 3);
        says(&applied.stderr, &["warning: account lab could not be listed: ", "host-key-changed"]);
        says(&applied.stdout, &["Applied as generation 1: "]);
        let checked = terminal.run(&["doctor"]).await;
        let checked = ended(&lab, checked, 3);
        says(
            &checked.stdout,
            &["host-key-changed", "read on the host itself", "otherwise another host answers"],
        );
        assert_eq!(lab.ran(), [""; 0]);
    });
}

#[test]
fn a_stopped_machine_that_leaves_the_file_is_started_first_or_left_on_purpose() {
    run(async {
        let Some(lab) = lab().await else { return };
        let terminal = Terminal::new("17:50:00").await;
        terminal.local(&two(&lab, &lab.account("")), "18:10:00").await;
        assert!(!lab.runs("build"));
        let office = "tags = [\"offhours:office\"]";
        let render = lab.machine("render", office);
        terminal.write(&[&lab.account(""), &render, OFFICE].concat());
        let left = "left behind: build (lab/machine/build) is held stopped, and its account has no \
                    machine `build`\n";
        let rehearsed = configured(&lab, terminal.run(&["apply", "--dry-run"]).await, 1);
        says(&rehearsed.stderr, &[left]);
        says(&rehearsed.stdout, &["build (lab/machine/build): no schedule, no longer office"]);
        let refused = configured(&lab, terminal.run(&["apply", "--yes"]).await, 1);
        let start = "start it first by `offhours start lab/machine/build`";
        says(&refused.stderr, &[left, "1 resource would be left stopped", start, "--leave"]);
        assert!(!refused.stderr.contains("restores them later"));
        assert_eq!(lab.changes().len(), 2, "two stops");

        configured(&lab, terminal.run(&["start", "lab/machine/build"]).await, 0);
        let applied = configured(&lab, terminal.run(&["apply", "--yes"]).await, 0);
        says(&applied.stdout, &["Applied as generation 2: "]);
        assert!(lab.runs("build") && !lab.runs("render"));
        assert_eq!(lab.changes()[2..], ["start build"]);
    });
}

/// A fake Lambda: the questions that it was asked, and how poll-status answers one for an
/// inventory.
#[derive(Clone, Default)]
struct Lambda {
    asked: Arc<Mutex<Vec<(String, Value)>>>,
    outcomes: Arc<Mutex<Vec<Occurrence>>>,
}

impl Lambda {
    async fn serve(&self) -> String {
        let lambda = self.clone();
        let router = Router::new().fallback(async move |uri: Uri, body: Bytes| {
            // The floor is asked for with an empty body: there is none.
            let Ok(question) = serde_json::from_slice::<Value>(&body) else {
                return b"{}".to_vec();
            };
            let report = Report {
                outcomes: if question.get("inventory").is_some() {
                    lambda.outcomes.lock().unwrap().clone()
                } else {
                    Vec::new()
                },
                ..Report::default()
            };
            let asked = (uri.path().to_owned(), question);
            lambda.asked.lock().unwrap().push(asked);
            serde_json::to_vec(&report).unwrap()
        });
        format!("http://{}", serve(router).await)
    }

    /// The questions since the last call, all of which must have been for poll-status.
    fn questions(&self) -> Vec<Value> {
        let asked = self.asked.lock().unwrap().drain(..).collect::<Vec<_>>();
        let question = |(path, question): (String, Value)| {
            assert!(path.contains("poll-status/invocations"), "{path}");
            question
        };
        asked.into_iter().map(question).collect()
    }
}

/// Runs `apply` against a store and functions at AWS.
async fn apply_at_aws(world: &World, lambda: &str, configuration: &str) -> CommandOutput {
    let folder = tempfile::TempDir::new().unwrap();
    std::fs::write(folder.path().join("offhours.toml"), configuration).unwrap();
    let store = format!("http://{}", testing::serve(world.engine.clone()).await);
    let sts = serve_sts().await;
    let output = tokio::process::Command::new(program("offhours"))
        .args(["apply", "--yes"])
        .current_dir(folder.path())
        .envs([
            ("AWS_ENDPOINT_URL", store.as_str()),
            ("AWS_ENDPOINT_URL_STS", sts.as_str()),
            ("AWS_ENDPOINT_URL_LAMBDA", lambda),
            ("AWS_REGION", "eu-central-1"),
            ("AWS_ACCESS_KEY_ID", "local"),
            ("AWS_SECRET_ACCESS_KEY", "local"),
        ])
        .output()
        .await
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    CommandOutput {
        code: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

#[test]
fn against_aws_the_account_is_tried_by_an_inventory_right_after_the_apply_and_never_before() {
    run(async {
        let Some(lab) = lab().await else { return };
        let world = lab.world(&two(&lab, &lab.account("")), monday("12:00:00")).await;
        world.run_until(monday("12:01:30")).await;
        let lambda = Lambda::default();
        let url = lambda.serve().await;
        let changed = |timeout: &str| {
            let key = format!("connect_timeout = \"{timeout}\"");
            two(&lab, &lab.account(&key))
        };
        let inventory = json!({ "inventory": ["lab"] });

        let applied = apply_at_aws(&world, &url, &changed("5s")).await;
        let applied = configured(&lab, applied, 0);
        let [told, asked] = &lambda.questions()[..] else {
            panic!("the event of the apply, and the inventory");
        };
        assert_eq!(told["changed"]["by"]["arn"], ARN);
        assert_eq!(told["changed"]["action"]["applied"]["generation"], 2);
        assert_eq!(*asked, inventory);
        let generation = applied.stdout.find("Applied as generation 2: ");
        let works = applied.stdout.find("The key of lab works: 2 machines\n");
        assert!(generation.is_some() && generation < works, "{}", applied.stdout);
        says(&applied.stderr, &["account lab is not tried before it is applied"]);

        let failed = Event::postponed("refused: host-key-changed");
        let account = "lab".parse().unwrap();
        let outcome = Occurrence::of_account(&account, monday("12:01:30"), failed);
        lambda.outcomes.lock().unwrap().push(outcome);
        let applied = apply_at_aws(&world, &url, &changed("6s")).await;
        let applied = configured(&lab, applied, 3);
        assert_eq!(lambda.questions()[1..], [inventory]);
        says(
            &applied.stderr,
            &["warning: account lab could not be listed: refused: host-key-changed"],
        );
        assert!(!applied.stdout.contains("works"), "{}", applied.stdout);
    });
}
