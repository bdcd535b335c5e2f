//! What persons change is in the activity log: with who they are, and why.

use std::fs;

use jiff::SignedDuration;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::{
    programs::Terminal,
    support::{
        ACCOUNTS, ARN, World, any_port, monday, office_hours, program, run, serve_sts, server,
    },
};

#[test]
fn each_command_that_changes_something_is_an_entry() {
    run(async {
        let terminal = Terminal::new("12:00:00").await;
        let configuration = office_hours("", "", "");
        terminal.write(&configuration);
        let changes: [(&[&str], &str); 6] = [
            (&["apply", "--yes", "--message", "the first one"], "apply"),
            (
                &["override", "running", "web", "--for", "2h", "--reason", "a demo"],
                "override running",
            ),
            (&["override", "clear", "web", "--reason", "over"], "override clear"),
            (&["stop", "web", "--why", "loud"], "stop"),
            (&["start", "web"], "start"),
            (&["forget", "web", "--anyway", "--yes", "--reason", "trial"], "forget"),
        ];
        for (number, (command, verb)) in changes.iter().enumerate() {
            if number > 0 {
                let at = monday("12:05:00")
                    + SignedDuration::from_mins(5) * i32::try_from(number).unwrap();
                terminal.simulator.move_to(at).await;
            }
            let ended = terminal.run(command).await;
            let shown = [ended.stdout, ended.stderr].concat();
            assert_eq!(ended.code, Some(0), "{verb}: {shown}");
            if number == 0 {
                terminal.local(&configuration, "12:03:00").await;
            }
            if *verb == "override running" {
                let table = terminal.run(&["activity", "--limit", "1"]).await.stdout;
                assert!(
                    table.contains("  web until Mon ") && !table.contains("do-main"),
                    "{table}"
                );
                let csv = terminal.run(&["activity", "--limit", "1", "-o", "csv"]).await.stdout;
                assert!(csv.ends_with(",override running,web\n"), "{csv}");
            }
        }
        // A dry run changes nothing, and nothing is held.
        terminal.run(&["override", "stopped", "web", "--for", "1h", "--dry-run"]).await;
        terminal.run(&["approve", "--all"]).await;

        let shown = async |arguments: &[&str]| -> Vec<Value> {
            let arguments = [&["activity", "-o", "json"], arguments].concat();
            let ended = terminal.run(&arguments).await;
            serde_json::from_str(&ended.stdout).unwrap()
        };
        let entries = shown(&[]).await;
        let ours = entries.iter().filter(|one| one["by"]["name"] != "offhours local");
        let whys: Vec<_> = ours.map(|one| one["why"].clone()).collect();
        let expected = ["trial", "", "loud", "over", "a demo", "the first one"];
        let expected = expected.map(|why| if why.is_empty() { Value::Null } else { json!(why) });
        assert_eq!(whys, expected, "{entries:#?}");
        let first = entries.last().unwrap();
        let lines = &first["action"]["applied"]["changes"];
        assert!(lines.as_array().unwrap().contains(&json!("schedule office added")), "{first}");

        assert_eq!(shown(&["do-main/droplet/1"]).await.len(), 5);
        assert_eq!(shown(&["--limit", "2"]).await.len(), 2);
        assert_eq!(shown(&["--by", "nobody"]).await.len(), 0);
        let table = terminal.run(&["activity"]).await.stdout;
        for (_, verb) in changes {
            assert!(table.contains(verb), "{table}");
        }
        let log = terminal.run(&["config", "log"]).await.stdout;
        assert!(log.contains("in force; the first one; "), "{log}");
        // History does not trip over them.
        let history = terminal.run(&["history", "-o", "json"]).await;
        assert_eq!(history.stderr, "");
        terminal.simulator.move_to(monday("12:40:00")).await;
        let later = ["override", "running", "--schedule", "office", "--from", "tomorrow 08:00"];
        let ended = terminal.run(&[&later[..], &["--for", "2h"]].concat()).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let ended = terminal.run(&["activity", "wbe"]).await;
        assert!(ended.stdout.starts_with("No change found "), "{}", ended.stdout);
        assert_eq!(ended.stderr.trim(), "no record has the name `wbe`");
        let ended = terminal.run(&["activity", "--schedule", "offce"]).await;
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(ended.stderr.contains("did you mean `office`?"), "{}", ended.stderr);
        let table = terminal.run(&["activity", "--limit", "1"]).await.stdout;
        assert!(table.contains("schedule office from Tue 2026-11-24 08:00 "), "{table}");
        assert!(table.contains(" until Tue 2026-11-24 10:00 "), "{table}");
    });
}

/// Runs a command against a store and an STS at AWS.
async fn at_aws(world: &World, sts: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let store = format!("http://{}", testing::serve(world.engine.clone()).await);
    let output = Command::new(program("offhours"))
        .args(arguments)
        .envs([
            ("AWS_ENDPOINT_URL", store.as_str()),
            ("AWS_ENDPOINT_URL_STS", sts),
            ("AWS_REGION", "eu-central-1"),
            ("AWS_ACCESS_KEY_ID", "local"),
            ("AWS_SECRET_ACCESS_KEY", "local"),
            ("AWS_MAX_ATTEMPTS", "1"),
            ("USER", "boss"),
        ])
        .output()
        .await
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

#[test]
fn at_aws_the_author_is_who_aws_says_and_without_it_nothing_changes() {
    run(async {
        let fleet = [ACCOUNTS, &server(11, "")].concat();
        let world = World::start(&office_hours("", "", ""), &fleet, monday("12:00:00")).await;
        world.run_until(monday("12:01:30")).await;
        let set = ["override", "running", "hz-eu/server/11", "--for", "2h"];
        let overrides = async || {
            let present = world.local.store().head_and_overrides().await.unwrap();
            let all = present.overrides.iter();
            all.map(|one| one.by.clone()).collect::<Vec<_>>()
        };
        let nobody = format!("http://{}", any_port());
        let (code, text) = at_aws(&world, &nobody, &set).await;
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains("AWS does not say who you are"), "{text}");
        assert_eq!(overrides().await, [""; 0]);

        let sts = serve_sts().await;
        let (_, text) = at_aws(&world, &sts, &set).await;
        // The function cannot be asked here: the override is in force all the same.
        assert!(text.contains("within five minutes"), "{text}");
        assert_eq!(overrides().await, ["platform/ada@example.com (boss)"]);
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("offhours.toml");
        fs::write(&file, office_hours("heartbeat = \"env:BEAT\"", "", "")).unwrap();
        let apply = ["apply", "--dry-run", "--config", file.to_str().unwrap()];
        let (_, text) = at_aws(&world, &sts, &apply).await;
        assert!(text.contains("AWS read neither [notify] nor heartbeat"), "{text}");

        let arguments = ["activity", "--by", "ada@", "--since", "90d", "-o", "json"];
        let (_, text) = at_aws(&world, &nobody, &arguments).await;
        let entries: Vec<Value> = serde_json::from_str(&text).unwrap();
        assert_eq!(entries[0]["by"]["arn"], ARN);
        assert_eq!(entries[0]["by"]["shell"], "boss");
    });
}
