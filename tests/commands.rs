//! A person's commands on a local store, run with the built program.

use offhours::configuration_file;
use serde_json::json;

use crate::{
    programs::{SimulatorProgram, Terminal},
    support::{EACH_KIND, droplet, office_hours, one_of_each_kind, run},
};

#[test]
fn a_refused_token_is_reported_each_time_and_fails_the_command() {
    run(async {
        let terminal = Terminal::new("12:00:00").await;
        terminal.local(&office_hours("", "", ""), "12:03:00").await;
        let wrong = [("DO_TOKEN", "another")];
        for _ in 0..2 {
            let ended = terminal.run_with(&wrong, &["stop", "web"]).await;
            assert_eq!(ended.code, Some(1), "{}", ended.stdout);
            assert!(ended.stdout.contains("postponed: token refused"), "{}", ended.stdout);
        }
        let ended = terminal.run_with(&wrong, &["status", "--live", "-o", "json", "web"]).await;
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        let rows: Vec<serde_json::Value> = serde_json::from_str(&ended.stdout).unwrap();
        let live = rows[0]["live"].as_str().unwrap();
        assert!(live.starts_with("token refused: "), "{live}");
    });
}

#[test]
fn commands_read_the_store_that_local_left_and_answer_by_their_exit_codes() {
    run(async {
        let terminal = Terminal::new("12:00:00").await;
        let ended = terminal.run(&["status"]).await;
        assert_eq!(ended.code, Some(2));
        let shown = ended.stderr;
        assert!(shown.contains("there is no store at"), "{shown}");

        terminal.local(&office_hours("", "", ""), "12:03:00").await;

        let ended = terminal.run(&["status", "-o", "json"]).await;
        assert_eq!(ended.code, Some(0));
        let rows: Vec<serde_json::Value> = serde_json::from_str(&ended.stdout).unwrap();
        let mut known: Vec<_> = rows.iter().map(|r| r["resource"].as_str().unwrap()).collect();
        known.sort_unstable();
        assert_eq!(known, EACH_KIND);
        assert!(rows.iter().all(|row| row["schedule"] == "office"), "{rows:#?}");

        let ended = terminal.run(&["status", "--live", "-o", "json"]).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let rows: Vec<serde_json::Value> = serde_json::from_str(&ended.stdout).unwrap();
        let live = |row: &serde_json::Value| row["live"].as_str().unwrap().contains("running, ");
        assert!(rows.iter().all(live), "{rows:#?}");
        let ended = terminal.run(&["status", "--schedule", "offcie"]).await;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
        let shown = ended.stderr;
        assert!(shown.contains("did you mean `office`?"), "{shown}");
        let ended = terminal.run(&["status", "--watch"]).await;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
        let shown = ended.stderr;
        assert!(shown.contains("--watch needs a terminal"), "{shown}");

        let ended = terminal.run(&["start", "wbe"]).await;
        assert_eq!(ended.code, Some(2));
        let shown = ended.stderr;
        assert!(shown.contains("did you mean `web`?"), "{shown}");
        let ended = terminal.run(&["stop", "--schedule", "offcie"]).await;
        assert_eq!(ended.code, Some(2));
        let shown = ended.stderr;
        assert!(shown.contains("did you mean `office`?"), "{shown}");
        let before = terminal.simulator.log().await.len();
        let ended = terminal.run(&["stop", "--schedule", "office"]).await;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
        let shown = ended.stderr;
        assert!(shown.contains("error: cannot ask \"Stop 4 resources: "), "{shown}");
        assert!(shown.contains("web, ") && shown.contains("--yes"), "{shown}");
        let ended = terminal.run(&["stop", "--account", "hz-eu"]).await;
        assert_eq!(ended.code, Some(2));
        assert!(ended.stderr.contains("error: cannot ask \"Stop 1 resource: ci?\" without"));
        assert_eq!(terminal.simulator.log().await.len(), before);
        let ended = terminal.run(&["stop", "W?b", "*/web", "--dry-run"]).await;
        assert_eq!(ended.code, Some(2));
        let shown = ended.stderr;
        assert!(shown.contains("no resource matches `*/web`"), "{shown}");
        let ended = terminal.run(&["stop", "W?b", "*/droplet/1", "--dry-run"]).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert_eq!(ended.stdout.lines().count(), 1, "{}", ended.stdout);
        let ended = terminal.run(&["why", "--full", "*"]).await;
        assert_eq!(ended.code, Some(2));
        assert!(ended.stderr.contains("`*` names 4 resources: name one"));

        let ended = terminal.run(&["approve", "web"]).await;
        assert_eq!(ended.code, Some(2));
        let shown = ended.stderr;
        assert!(shown.contains("web is not held"), "{shown}");
        let ended = terminal.run(&["approve", "--account", "do-mian"]).await;
        assert_eq!(ended.code, Some(2));
        assert!(ended.stderr.contains("did you mean `do-main`?"));
        let ended = terminal.run(&["approve", "--all"]).await;
        let (code, shown) = (ended.code, ended.stdout.as_str());
        assert_eq!((code, shown), (Some(0), "Nothing was held.\n"));

        let ended = terminal.run(&["config", "show"]).await;
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
        let file = ended.stdout;
        assert!(file.starts_with("# Generation 1, applied by "), "{file}");
        let exported = configuration_file::parse(&file, "exported").unwrap();
        let applied = configuration_file::parse(&office_hours("", "", ""), "applied").unwrap();
        assert!(exported.configuration.eq_ignoring_generation(&applied.configuration));
        let ended = terminal.run(&["config", "show", "-o", "json"]).await;
        let document: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(ended.code, Some(0));
        assert_eq!(document["timezone"], "Europe/Berlin");
        let ended = terminal.run(&["config", "show", "9"]).await;
        assert_eq!(ended.code, Some(2));
        let shown = ended.stderr;
        assert!(shown.contains("there is no generation 9"), "{shown}");
    });
}

#[test]
fn what_no_schedule_starts_again_is_stopped_only_after_a_confirmation() {
    run(async {
        let fleet = one_of_each_kind() + &droplet(2, "vpn-gateway", &[]);
        let terminal = Terminal::with_fleet(&fleet, "12:00:00").await;
        terminal.local(&office_hours("", "", ""), "12:03:00").await;
        let warning = "error: cannot ask \"No schedule will start vpn-gateway again. Stop ";
        for target in ["vpn-gateway", "*"] {
            let ended = terminal.run(&["stop", target]).await;
            assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
            assert!(ended.stderr.contains(warning), "{}", ended.stderr);
            assert!(ended.stderr.ends_with("pass --yes to confirm\n"));
        }
        assert_eq!(changes(&terminal.simulator).await, 0);

        let ended = terminal.run(&["stop", "vpn-gateway", "--yes"]).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let stays = "vpn-gateway stays stopped until a person starts it.\n";
        assert!(ended.stderr.contains(stays), "{}", ended.stderr);
        let why = terminal.run(&["why", "--full", "vpn-gateway"]).await.stdout;
        let answer = "asked, until a person starts it.\n";
        assert!(why.contains(answer), "{why}");
        let ended = terminal.run(&["start", "vpn-gateway"]).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    });
}

#[test]
fn the_command_status_and_why_say_until_when_a_manual_stop_stands_and_whose_it_is() {
    run(async {
        let terminal = Terminal::new("12:00:00").await;
        terminal.local(&office_hours("", "", ""), "12:03:00").await;
        let ended = terminal.run(&["stop", "web"]).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        // The evening's edge changes nothing about the machine.
        let until = "until Tue 08:00 CET, then office";
        let stays = format!("web stays stopped {until}.\n");
        assert!(ended.stderr.ends_with(&stays), "{}", ended.stderr);

        let rows = terminal.run(&["status", "web", "-o", "json"]).await;
        let rows: serde_json::Value = serde_json::from_str(&rows.stdout).unwrap();
        let (next, manual) = (&rows[0]["next"], &rows[0]["manual"]);
        let change = ("2026-11-24T07:00:00Z", "running");
        assert_eq!((next["at"].as_str(), next["to"].as_str()), (Some(change.0), Some(change.1)));
        assert_eq!(manual["until"]["at"], change.0);
        assert_eq!(manual["desired"], "stopped");
        let by = manual["by"].as_str().unwrap();
        let remark = rows[0]["remark"].as_str().unwrap();
        assert_eq!(remark, format!("stopped by {by} {until}"));

        let why = terminal.run(&["why", "--full", "web"]).await.stdout;
        let answer = format!("It is stopped, as {by} asked, {until}.\n");
        assert!(why.contains(&answer), "{why}");

        let begun = terminal.run(&["start", "web", "--no-wait"]).await;
        let will = "web is to be running until Mon 19:00 CET, then office.\n";
        assert!(begun.stderr.ends_with(will), "{}", begun.stderr);
    });
}

#[test]
fn why_explains_the_chain_of_one_resource_and_what_it_cannot_find() {
    run(async {
        let terminal = Terminal::new("12:00:00").await;
        terminal.local(&office_hours("", "", ""), "12:03:00").await;
        let ended = terminal.run(&["why", "--full", "web"]).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        for expected in ["It is running, as it should be.", "What the schedule office says"] {
            assert!(ended.stdout.contains(expected), "{}", ended.stdout);
        }
        assert_eq!(ended.stderr, "");

        let ended = terminal.run(&["why", "web"]).await;
        assert_eq!(ended.stdout.lines().count(), 4, "{}", ended.stdout);
        let ended = terminal.run(&["why", "web", "-o", "json"]).await;
        let why: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        let desired = &why["sections"][1]["facts"][0];
        let shown = [&why["desired"], &desired["text"], &why["schedule"]];
        assert_eq!(shown, ["running", "running", "office"]);
        let ended = terminal.run(&["why", "office"]).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let wants = "The schedule office wants running now, and stopped from Mon 19:00 CET on.\n";
        assert!(ended.stdout.starts_with(wants), "{}", ended.stdout);
        assert!(ended.stdout.contains("4 resources follow it: "), "{}", ended.stdout);

        for (target, expected) in [
            ("wbe", "did you mean `web`?"),
            ("do-main/droplet/999", "no inventory has seen do-main/droplet/999"),
        ] {
            let ended = terminal.run(&["why", "--full", target]).await;
            assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
            assert!(ended.stderr.contains(expected), "{}", ended.stderr);
        }
    });
}

#[test]
fn a_rehearsal_shows_the_exact_requests_that_the_command_then_sends() {
    run(async {
        let terminal = Terminal::new("12:00:00").await;
        terminal.local(&office_hours("", "", ""), "12:03:00").await;
        for direction in ["stop", "start"] {
            let command = [direction, "--schedule", "office", "-o", "json"];
            let before = changes(&terminal.simulator).await;
            let rehearsal = terminal.run(&[&command[..], &["--dry-run"]].concat()).await;
            assert_eq!(rehearsal.code, Some(0), "{}", rehearsal.stderr);
            assert_eq!(changes(&terminal.simulator).await, before);
            let would = requests(&rehearsal.stdout, "would-ask");
            assert_eq!(would.len(), EACH_KIND.len(), "{}", rehearsal.stdout);

            let done = terminal.run(&[&command[..], &["--yes"]].concat()).await;
            assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
            assert_eq!(requests(&done.stdout, "asked"), would);
            let seen = done.stdout.matches(r#""event":"seen""#).count();
            assert_eq!(seen, EACH_KIND.len(), "{}", done.stdout);
            assert!(changes(&terminal.simulator).await > before);
        }
    });
}

#[test]
fn what_was_not_accepted_is_sent_again_by_the_command_that_waits() {
    run(async {
        let terminal = Terminal::new("12:00:00").await;
        terminal.local(&office_hours("", "", ""), "12:03:00").await;
        let hetzner = |code| json!({"error": {"code": code, "message": "no", "details": null}});
        let pending = json!({
            "id": "unprocessable_entity", "message": "Droplet already has a pending event.",
        });
        for (resource, direction, path, status, body) in [
            ("hz-eu/server/11", "stop", "/v1/servers/11/actions/shutdown", 423, hetzner("locked")),
            (
                "hz-eu/server/11",
                "start",
                "/v1/servers/11/actions/poweron",
                409,
                hetzner("conflict"),
            ),
            ("do-main/droplet/1", "stop", "/v2/droplets/1/actions", 422, pending.clone()),
            ("do-main/droplet/1", "start", "/v2/droplets/1/actions", 422, pending),
        ] {
            terminal
                .simulator
                .fault(json!({
                    "match": {"method": "POST", "path_prefix": path},
                    "does": {"answer": {"status": status, "body": body.to_string()}},
                }))
                .await;
            let before = changes(&terminal.simulator).await;
            let began = terminal.simulator.now().await;
            let ended = terminal.run(&[direction, resource]).await;
            assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
            let sent = changes(&terminal.simulator).await - before;
            assert!(sent >= 2, "{direction} {resource}: {sent}");
            let took = terminal.simulator.now().await.duration_since(began);
            assert!(took.as_secs() < 180, "{direction} {resource}: {took}");
        }
    });
}

#[test]
fn status_and_doctor_observe_and_change_nothing() {
    run(async {
        let terminal = Terminal::new("12:00:00").await;
        terminal.local(&office_hours("", "", ""), "12:03:00").await;
        let rows = |text: &str| -> Vec<serde_json::Value> { serde_json::from_str(text).unwrap() };
        let names = |text: &str| -> Vec<String> {
            let resource = |row: &serde_json::Value| row["resource"].as_str().unwrap().to_owned();
            rows(text).iter().map(resource).collect()
        };

        let ended = terminal.run(&["status", "--refresh", "-o", "json"]).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let mut listed = names(&ended.stdout);
        listed.sort_unstable();
        assert_eq!(listed, EACH_KIND);
        let ended = terminal.run(&["list", "--unscheduled"]).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(ended.stderr.contains("No resource matches."), "{}", ended.stderr);
        let ended = terminal.run(&["list", "general"]).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        for expected in ["Because", "by the tag of its cluster", "offhours:office"] {
            assert!(ended.stdout.contains(expected), "{}", ended.stdout);
        }
        let ended = terminal.run(&["status", "--account", "do-main", "-o", "csv"]).await;
        let (heading, lines) = ended.stdout.split_once('\n').unwrap();
        assert!(heading.starts_with("resource,account,name,size,"), "{heading}");
        assert_eq!(lines.lines().count(), 3, "{lines}");
        for no_rows in [&["why", "web"][..], &["override", "running", "web", "--for", "1h"]] {
            let ended = terminal.run(&[no_rows, &["-o", "csv"]].concat()).await;
            assert_eq!(ended.code, Some(2), "{}", ended.stdout);
            assert!(ended.stderr.contains("use -o json"), "{}", ended.stderr);
        }

        for one_form in ["report", "calendar", "init"] {
            for form in ["json", "csv"] {
                let ended = terminal.run(&[one_form, "-o", form]).await;
                assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{one_form}");
                assert!(ended.stderr.contains("prints neither JSON nor CSV"), "{}", ended.stderr);
            }
        }

        let ended = terminal.run(&["doctor", "-o", "json"]).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stdout);
        let findings = rows(&ended.stdout);
        assert!(findings.iter().all(|row| row["level"] == "ok"), "{findings:#?}");
        assert_eq!(changes(&terminal.simulator).await, 0);
    });
}

#[test]
fn a_preview_follows_the_simulators_clock() {
    run(async {
        let terminal = Terminal::new("12:00:00").await;
        terminal.write(&office_hours("", "", ""));
        let simulate = format!("--simulate={}", terminal.simulator.url);
        let table =
            terminal.bare(&["preview", "--config", "offhours.toml", &simulate]).await.stdout;
        let first =
            "now                   running  office\nMon 19:00 CET         stopped  office\n";
        assert!(table.contains(first), "{table}");
        let valid = terminal.bare(&["validate", &simulate]).await.stdout;
        assert!(valid.contains("stopped from Mon 2026-11-23 19:00 CET"), "{valid}");
        let picture =
            terminal.bare(&["preview", "--config", "offhours.toml", "--week", &simulate]).await;
        assert!(picture.stdout.contains("\nMon 2026-11-23  ................####"));

        // What is in force has its resources and overrides.
        terminal.local(&office_hours("", "", ""), "12:03:00").await;
        let ended = terminal.run(&["override", "running", "web", "--until", "21:00"]).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let ended = terminal.run(&["preview", "--for", "12h", "-o", "json"]).await;
        let rows: Vec<serde_json::Value> = serde_json::from_str(&ended.stdout).unwrap();
        let of = |name: &str| {
            let has = |row: &&serde_json::Value| row["resources"].to_string().contains(name);
            let changes = rows.iter().filter(has).skip(1);
            changes.map(|row| format!("{} {}", row["at"], row["to"])).collect::<Vec<_>>()
        };
        assert_eq!(of("\"orders\""), [r#""2026-11-23T18:00:00Z" "stopped""#]);
        assert_eq!(of("\"web\""), [r#""2026-11-23T20:00:00Z" "stopped""#]);
    });
}

/// The number of changes requested from the clouds.
async fn changes(simulator: &SimulatorProgram) -> usize {
    let is_change = |entry: &serde_json::Value| entry["request"]["method"] != "GET";
    let log = simulator.log().await;
    log.into_iter().filter(is_change).count()
}

/// The requests in events of one kind, sorted by resource.
fn requests(lines: &str, event: &str) -> Vec<(String, String)> {
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let mut requests: Vec<_> = lines
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|outcome| outcome["event"] == event)
        .map(|outcome| (text(&outcome["resource"]), text(&outcome["request"])))
        .collect();
    requests.sort();
    requests
}
