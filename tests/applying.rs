//! `offhours apply`: all or nothing, and nothing is left behind without notice.

use serde_json::{Value, json};

use crate::{
    programs::Terminal,
    support::{ACCOUNTS, EACH_KIND, droplets, longer_night, office_hours, run, short_night},
};

/// A schedule that stops nothing now, in addition to the one that all resources follow.
const OTHER: &str = "\n[schedules.other]\ntimezone = \"UTC\"\nperiods = [{}]\n";

async fn apply(
    terminal: &Terminal,
    configuration: &str,
    arguments: &[&str],
) -> (Option<i32>, Value) {
    terminal.write(configuration);
    let arguments = [&["apply", "-o", "json"], arguments].concat();
    let ended = terminal.run(&arguments).await;
    let plan = serde_json::from_str(&ended.stdout).unwrap_or(Value::String(ended.stderr));
    (ended.code, plan)
}

/// What an apply warned of, and why it was refused.
fn said(plan: &Value) -> String {
    if let Value::String(error) = plan {
        return error.clone();
    }
    let lines = ["warnings", "refused"].iter().flat_map(|key| plan[*key].as_array().unwrap());
    lines.map(|line| line.as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

async fn in_force(terminal: &Terminal) -> Vec<Value> {
    let ended = terminal.run(&["config", "log", "-o", "json"]).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    serde_json::from_str(&ended.stdout).unwrap()
}

/// The texts under a key of each element, sorted.
fn names<'p>(list: &'p Value, key: &str) -> Vec<&'p str> {
    let list = list.as_array().unwrap();
    let mut names: Vec<_> = list.iter().map(|one| one[key].as_str().unwrap()).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_first_apply_says_what_comes_and_the_second_has_nothing_to_do() {
    run(async {
        let terminal = Terminal::new("17:50:00").await;
        let configuration = office_hours("", "", "");
        let (code, plan) = apply(&terminal, &configuration, &["--dry-run", "--exit-code"]).await;
        assert_eq!(code, Some(4), "{plan}");
        assert_eq!(plan["in_force_generation"], 0);
        assert_eq!(plan["applied"], Value::Null);
        assert_eq!(
            names(&plan["difference"], "table"),
            ["accounts.do-main", "accounts.hz-eu", "schedules.office"]
        );
        // Known from one list request each, before any inventory.
        let mut soon = names(&plan["consequences"]["soon"], "resource");
        soon.sort_unstable();
        assert_eq!(soon, EACH_KIND);
        let hard_cuts = &plan["consequences"]["hard_cuts"];
        assert_eq!(hard_cuts, &serde_json::json!(["office"]));
        assert_eq!(in_force(&terminal).await, [Value::Null; 0]);

        let (code, shown) = apply(&terminal, &configuration, &[]).await;
        assert_eq!(code, Some(2), "{shown}");
        assert!(shown.as_str().unwrap().contains("--yes"), "{shown}");

        let (code, plan) = apply(&terminal, &configuration, &["--yes"]).await;
        assert_eq!((code, &plan["applied"]), (Some(0), &Value::from(1)));
        let (code, plan) = apply(&terminal, &configuration, &["--yes"]).await;
        assert_eq!((code, &plan["applied"]), (Some(0), &Value::Null));
        let (code, _) = apply(&terminal, &configuration, &["--dry-run"]).await;
        assert_eq!(code, Some(0));
        assert_eq!(in_force(&terminal).await.len(), 1);
    });
}

#[test]
fn an_apply_shows_what_follows_by_name_and_which_names_nothing_has() {
    run(async {
        let terminal = Terminal::new("12:00:00").await;
        let office = office_hours("", "", "");
        terminal.local(&office, "12:10:00").await;
        let other = |resources: &str| format!("{office}{OTHER}resources = {resources}\n");
        terminal.write(&other(r#"["w*", "STAGING", "ci-*"]"#));
        let shown = terminal.run(&["apply", "--yes"]).await;
        assert_eq!(shown.code, Some(0), "{}", shown.stderr);
        for one in ["web (do-main/droplet/1)", "general (do-main/node-pool/c1/p1)"] {
            let moved = format!("{one}: other, no longer office");
            assert!(shown.stdout.contains(&moved), "{}", shown.stdout);
        }
        let unmatched = "schedule other lists the name `ci-*`, and no known resource has it";
        assert!(shown.stderr.contains(unmatched), "{}", shown.stderr);
        let why = terminal.run(&["why", "--full", "web"]).await.stdout;
        assert!(why.contains("other, named by `w*`"), "{why}");

        // What only the inventory can know is said before it is confirmed.
        let both = other(r#"["w*"]"#) + &OTHER.replace("other", "third") + "resources = \"*b\"\n";
        let (code, plan) = apply(&terminal, &both, &["--dry-run"]).await;
        assert_eq!(code, Some(0), "{plan}");
        let consequences = &plan["consequences"];
        assert_eq!(names(&consequences["conflicts"], "resource"), ["do-main/droplet/1"]);
        assert_eq!(consequences["unmatched"], json!([]));
        let doctor = terminal.run(&["doctor"]).await.stdout;
        assert!(doctor.contains("schedule other lists the name"), "{doctor}");
    });
}

#[test]
fn an_account_whose_limit_carries_less_than_its_machines_take_is_named() {
    run(async {
        let accounts = ACCOUNTS.replacen(
            "token = \"secret-do-token\"",
            "token = \"secret-do-token\"\nrate_limit = { per_hour = 120 }",
            1,
        );
        let fleet = [&accounts, &droplets(1..=80, &["offhours:office"])[..]].concat();
        let terminal = Terminal::with_fleet(&fleet, "12:00:00").await;
        let office = office_hours("max_new = 100", "", "");
        terminal.local(&office, "12:03:30").await;
        let doctor = terminal.run(&["doctor", "-o", "json"]).await.stdout;
        let findings: Value = serde_json::from_str(&doctor).unwrap();
        let mut findings = findings.as_array().unwrap().iter();
        let is_load = |one: &&Value| {
            one["check"] == "rate-limit" && one["found"].as_str().unwrap().contains("80 resources")
        };
        let load = findings.find(is_load).expect(&doctor);
        assert_eq!((&load["subject"], &load["level"]), (&json!("do-main"), &json!("warning")));

        terminal.write(&office.replace("08:00", "07:00"));
        let shown = terminal.run(&["apply", "--dry-run"]).await;
        let warning = "account do-main: 80 resources start in the hour before Tue 07:00 CET: that \
                       takes about 82 requests, and the limit of 120 an hour leaves ";
        assert!(shown.stderr.contains(warning), "{}", shown.stderr);
        assert!(shown.stderr.contains("at least an hour apart"), "{}", shown.stderr);
    });
}

#[test]
fn a_file_with_problems_changes_nothing() {
    run(async {
        let terminal = Terminal::new("12:00:00").await;
        let (code, shown) =
            apply(&terminal, "timezone = \"Mars/Olympus\"\nmdoe = 1\n", &["--yes"]).await;
        assert_eq!(code, Some(2));
        let shown = shown.as_str().unwrap();
        assert!(
            shown.contains("offhours.toml:1:") && shown.contains("offhours.toml:2:"),
            "{shown}"
        );
        assert!(!terminal.data.exists(), "a store was made for it");
    });
}

#[test]
fn a_token_that_is_refused_is_reported_before_anything_is_applied() {
    run(async {
        let terminal = Terminal::new("12:00:00").await;
        let configuration = office_hours("", "", "").replace("env:HZ_TOKEN", "env:DO_TOKEN");
        let (_, plan) = apply(&terminal, &configuration, &["--dry-run"]).await;
        let trials = plan["accounts"].as_array().unwrap();
        let errors: Vec<_> =
            trials.iter().map(|t| (t["account"].as_str().unwrap(), t["error"].is_null())).collect();
        assert_eq!(errors, [("do-main", true), ("hz-eu", false)], "{plan}");
        // Applied anyway, but the exit code shows that not everything is in order.
        let (code, plan) = apply(&terminal, &configuration, &["--yes"]).await;
        assert_eq!((code, &plan["applied"]), (Some(3), &json!(1)), "{plan}");
    });
}

/// A terminal in which everything follows `office` and is stopped at the end of its day.
async fn stopped() -> Terminal {
    let terminal = Terminal::new("17:50:00").await;
    terminal.local(&office_hours("", "", ""), "18:30:00").await;
    terminal
}

#[test]
fn what_would_be_left_behind_refuses_the_apply() {
    run(async {
        let terminal = stopped().await;
        let renamed = office_hours("", "", "").replace("schedules.office", "schedules.hours");
        terminal.write(&renamed);
        let rehearsed = terminal.run(&["apply", "--dry-run"]).await;
        assert_eq!(rehearsed.code, Some(1));
        let shown = rehearsed.stderr.matches("left behind: ").count();
        assert_eq!(shown, EACH_KIND.len(), "{}", rehearsed.stderr);
        assert!(
            rehearsed.stderr.contains("start them first by `offhours start "),
            "{}",
            rehearsed.stderr
        );

        let (code, shown) = apply(&terminal, &renamed, &["--yes"]).await;
        assert_eq!(code, Some(1), "{shown}");
        let shown = said(&shown);
        for resource in EACH_KIND {
            assert!(shown.contains(resource), "{shown}");
        }
        assert!(shown.contains("`offhours start do-main/") && shown.contains("--leave"), "{shown}");
        assert_eq!(in_force(&terminal).await.len(), 1);

        let without_account = format!("{}{OTHER}", office_hours("", "", ""))
            .replace("accounts.hz-eu", "accounts.hz-us");
        let (code, shown) = apply(&terminal, &without_account, &["--yes"]).await;
        assert_eq!(code, Some(1), "{shown}");
        let shown = said(&shown);
        assert!(shown.contains("hz-eu/server/11"), "{shown}");
        assert!(shown.contains("1 resource would be left stopped"), "{shown}");
    });
}

#[test]
fn what_a_command_or_an_override_holds_stopped_is_left_behind_by_no_apply() {
    run(async {
        let terminal = Terminal::new("12:00:00").await;
        terminal.local(&office_hours("", "", ""), "12:03:00").await;
        let stopped = terminal.run(&["stop", "orders", "web"]).await;
        assert_eq!(stopped.code, Some(0), "{}", stopped.stderr);
        let stop = ["override", "stopped", "ci", "--for", "3h"];
        assert_eq!(terminal.run(&stop).await.code, Some(0));
        terminal.local(&office_hours("", "", ""), "12:30:00").await;

        let left = [EACH_KIND[0], EACH_KIND[1], EACH_KIND[3]];
        let without = format!("{}{OTHER}", accounts_alone());
        let (code, shown) = apply(&terminal, &without, &["--yes"]).await;
        assert_eq!(code, Some(1), "{shown}");
        let shown = said(&shown);
        assert!(shown.contains("3 resources would be left stopped"), "{shown}");
        for resource in left {
            assert!(shown.contains(resource), "{shown}");
        }

        let (code, plan) = apply(&terminal, &without, &["--yes", "--leave"]).await;
        assert_eq!((code, &plan["applied"]), (Some(0), &Value::from(2)));
        let orphaned = async |until: &str| {
            let news = terminal.local(&without, until).await;
            let status = terminal.run(&["status", "--needs-person", "-o", "json"]).await;
            let rows: Vec<Value> = serde_json::from_str(&status.stdout).unwrap();
            let rows = rows.iter().filter(|row| {
                let why = row["problems"][0]["what"].as_str().unwrap();
                why.starts_with("orphaned")
            });
            let rows = rows.map(|row| row["resource"].as_str().unwrap().to_owned());
            let mut rows: Vec<_> = rows.collect();
            rows.sort_unstable();
            (status.code, rows, news.matches(r#""event":"orphaned""#).count())
        };
        // The override lasts until after three; the others are reported once.
        let by_command = left[..2].iter().map(ToString::to_string).collect();
        assert_eq!(orphaned("12:40:00").await, (Some(3), by_command, 2));
        let all: Vec<_> = left.iter().map(ToString::to_string).collect();
        assert_eq!(orphaned("15:20:00").await, (Some(3), all, 1));
    });
}

const WEB: &str = EACH_KIND[1];

#[test]
fn what_a_start_fails_to_bring_back_is_left_behind_by_no_apply() {
    run(async {
        let terminal = Terminal::new("17:50:00").await;
        let configuration = short_night("", "");
        terminal.local(&configuration, "18:30:00").await;
        let unavailable = json!({
            "match": { "resource": WEB, "method": "POST" },
            "times": 100_000,
            "does": { "answer": { "status": 503, "body": "", "headers": {} } },
        });
        terminal.simulator.fault(unavailable).await;
        terminal.local(&configuration, "18:45:00").await;

        let renamed = configuration.replace("schedules.office", "schedules.hours");
        let without = format!("{}{OTHER}", accounts_alone());
        let removed = without.replace("accounts.do-main", "accounts.do-new");
        for change in [&renamed, &without, &removed] {
            let (code, shown) = apply(&terminal, change, &["--yes"]).await;
            let shown = said(&shown);
            assert_eq!(code, Some(1), "{shown}");
            let left = format!("left behind: web ({WEB}) is held stopped");
            assert!(shown.contains(&left), "{shown}");
        }

        let (code, plan) = apply(&terminal, &renamed, &["--yes", "--leave"]).await;
        assert_eq!(code, Some(0), "{plan}");
        let news = terminal.local(&renamed, "19:00:00").await;
        let events = |word: &str| {
            let lines = news.lines().filter(|line| line.contains(WEB));
            let event = format!(r#""event":"{word}""#);
            lines.filter(|line| line.contains(&event)).count()
        };
        assert_eq!((events("let-go"), events("orphaned")), (1, 1), "{news}");
        let status = terminal.run(&["status", WEB, "-o", "json"]).await;
        assert_eq!(status.code, Some(3), "{}", status.stdout);
        assert!(status.stdout.contains("orphaned"), "{}", status.stdout);

        terminal.simulator.clear_faults().await;
        apply(&terminal, &configuration, &["--yes"]).await;
        terminal.local(&configuration, "19:10:00").await;
        let status = terminal.run(&["status", WEB, "-o", "json"]).await;
        assert_eq!(status.code, Some(0), "{}", status.stdout);
        let running = status.stdout.contains(r#""state": "running""#);
        assert!(running, "{}", status.stdout);
    });
}

#[test]
fn what_is_stopped_is_left_to_observe_mode_only_knowingly() {
    run(async {
        let terminal = Terminal::new("17:50:00").await;
        let acting = longer_night("", "");
        terminal.local(&acting, "18:30:00").await;
        let observing = longer_night("mode = \"observe\"", "");
        let (code, shown) = apply(&terminal, &observing, &["--yes"]).await;
        let shown = said(&shown);
        assert_eq!(code, Some(1), "{shown}");
        let why = "and the whole service only observes";
        assert_eq!(shown.matches(why).count(), EACH_KIND.len(), "{shown}");
        assert!(shown.contains("once what is named above has ended"), "{shown}");

        let (code, plan) = apply(&terminal, &observing, &["--yes", "--leave"]).await;
        assert_eq!(code, Some(0), "{plan}");
        let status = terminal.run(&["status", "-o", "json"]).await;
        assert_eq!(status.code, Some(0), "{}", status.stdout);
        let news = terminal.local(&observing, "19:50:00").await;
        let reported = news.matches(r#""event":"orphaned""#).count();
        assert_eq!(reported, EACH_KIND.len(), "{news}");
        let status = terminal.run(&["status", "-o", "json"]).await;
        assert_eq!(status.code, Some(3), "{}", status.stdout);
        let why = "orphaned: the whole service only observes";
        let reported = status.stdout.matches(why).count();
        assert_eq!(reported, EACH_KIND.len(), "{}", status.stdout);

        let (code, plan) = apply(&terminal, &acting, &["--yes", "--loosen"]).await;
        assert_eq!(code, Some(0), "{plan}");
        terminal.local(&acting, "20:10:00").await;
        let status = terminal.run(&["status", "-o", "json"]).await;
        assert_eq!(status.code, Some(0), "{}", status.stdout);
    });
}

#[test]
fn an_override_ends_with_its_schedule_only_knowingly() {
    run(async {
        let terminal = Terminal::new("17:50:00").await;
        let office = office_hours("", "", "");
        terminal.local(&office, "17:55:00").await;
        let release = ["override", "running", "--schedule", "office", "--for", "3h"];
        assert_eq!(terminal.run(&release).await.code, Some(0));
        let renamed = office.replace("office", "bureau");
        let (code, shown) = apply(&terminal, &renamed, &["--yes"]).await;
        let shown = said(&shown);
        assert_eq!(code, Some(1), "{shown}");
        assert!(shown.contains("schedule office to running until"), "{shown}");
        let (code, plan) = apply(&terminal, &renamed, &["--dry-run"]).await;
        assert_eq!(code, Some(1), "{plan}");
        let lapsing = &plan["consequences"]["lapsing"];
        assert_eq!(lapsing[0]["target"]["schedule"], "office");
        let (code, plan) = apply(&terminal, &renamed, &["--yes", "--leave"]).await;
        assert_eq!(code, Some(0), "{plan}");
        // One that is over holds up nothing.
        let cleared = ["override", "clear", "--schedule", "office"];
        terminal.run(&cleared).await;
        let (code, plan) = apply(&terminal, &office, &["--yes"]).await;
        assert_eq!(code, Some(0), "{plan}");
        // One that is yet to begin would never do so.
        let later =
            ["override", "running", "--schedule", "office", "--from", "23:00", "--for", "1h"];
        assert_eq!(terminal.run(&later).await.code, Some(0));
        let (code, plan) = apply(&terminal, &renamed, &["--yes"]).await;
        assert_eq!(code, Some(1), "{plan}");
        assert!(said(&plan).contains("to running from "), "{plan}");
    });
}

#[test]
fn an_account_that_was_never_listed_holds_nothing_and_what_is_stopped_is_shown() {
    run(async {
        let fleet = [ACCOUNTS, &droplets(1..=30, &["offhours:office"])].concat();
        let terminal = Terminal::with_fleet(&fleet, "18:03:00").await;
        let office = office_hours("", "", "");
        let (code, plan) = apply(&terminal, &office, &["--yes"]).await;
        assert_eq!(code, Some(0), "{plan}");
        let consequences = &plan["consequences"];
        assert_eq!(consequences["held"], json!({}));
        let soon = consequences["soon"].as_array().unwrap();
        assert!(soon.iter().all(|one| one["direction"] == "stop"), "{soon:?}");
        assert_eq!(soon.len(), 30);
        terminal.local(&office, "18:06:00").await;
        let status = terminal.run(&["status", "-o", "json"]).await;
        let rows: Vec<Value> = serde_json::from_str(&status.stdout).unwrap();
        let stopped = rows.iter().filter(|row| row["state"] != "running");
        assert_eq!(stopped.count(), 30, "{}", status.stdout);
    });
}

#[test]
fn a_pause_ends_with_its_schedule_or_its_account_only_knowingly() {
    run(async {
        let terminal = Terminal::new("17:50:00").await;
        let office = office_hours("", "", "");
        terminal.local(&office, "17:55:00").await;
        let renamed = office.replace("office", "bureau");
        let moved = office.replace("hz-eu", "hz-new");
        for (scope, name, without) in
            [("--schedule", "office", &renamed), ("--account", "hz-eu", &moved)]
        {
            let pause = ["pause", scope, name, "--reason", "release"];
            let paused = terminal.run(&pause).await;
            assert_eq!(paused.code, Some(0), "{}", paused.stderr);
            let (code, plan) = apply(&terminal, without, &["--dry-run"]).await;
            assert_eq!(code, Some(1), "{plan}");
            let refused = plan["refused"][0].as_str().unwrap();
            let kind = scope.trim_start_matches('-');
            assert!(refused.contains(&format!("({kind} {name} until ")), "{refused}");
            let (code, plan) = apply(&terminal, without, &["--dry-run", "--leave"]).await;
            assert_eq!(code, Some(0), "{plan}");
            assert_eq!(terminal.run(&["resume", scope, name]).await.code, Some(0));
            let (code, plan) = apply(&terminal, without, &["--dry-run"]).await;
            assert_eq!(code, Some(0), "{plan}");
        }
        // Whatever is configured, these apply to it.
        let everything = ["pause", "--yes", "--reason", "release"];
        for narrowed in [&[][..], &["--tag", "env=dev"]] {
            let paused = terminal.run(&[&everything, narrowed].concat()).await;
            assert_eq!(paused.code, Some(0), "{}", paused.stderr);
        }
        let (code, plan) = apply(&terminal, &renamed, &["--dry-run"]).await;
        assert_eq!(code, Some(0), "{plan}");
    });
}

#[test]
fn a_second_account_over_one_project_is_refused_before_it_freezes_both() {
    run(async {
        let terminal = Terminal::new("17:50:00").await;
        let office = office_hours("", "", "");
        terminal.local(&office, "17:52:00").await;
        let second = "[accounts.do-read]\nprovider = \"digitalocean\"\ntoken = \"env:DO_TOKEN\"\n";
        let twice = format!("{office}\n{second}");
        let (code, shown) = apply(&terminal, &twice, &["--yes"]).await;
        let shown = said(&shown);
        assert_eq!(code, Some(1), "{shown}");
        assert!(shown.contains("would be reached by two accounts"), "{shown}");
        assert_eq!(in_force(&terminal).await.len(), 1);
        let instead = office.replace("do-main", "do-read");
        let (code, plan) = apply(&terminal, &instead, &["--yes"]).await;
        assert_eq!(code, Some(0), "{plan}");
    });
}

/// The commands that a refusal names, as they are typed.
fn commands(said: &str) -> Vec<Vec<&str>> {
    let quoted = said.split('`').skip(1).step_by(2);
    let commands = quoted.filter_map(|text| text.strip_prefix("offhours "));
    commands.map(|command| command.split(' ').collect()).collect()
}

#[test]
fn the_start_that_a_refusal_names_lets_the_next_apply_through() {
    run(async {
        let terminal = stopped().await;
        let without = format!("{}{OTHER}", accounts_alone());
        let (code, plan) = apply(&terminal, &without, &["--yes"]).await;
        assert_eq!(code, Some(1), "{plan}");
        let refused = plan["refused"][0].as_str().unwrap();
        let ended = terminal.run(&commands(refused)[0]).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let (code, plan) = apply(&terminal, &without, &["--yes"]).await;
        assert_eq!((code, &plan["applied"]), (Some(0), &Value::from(2)), "{plan}");
        let ended = terminal.run(&["status", "-o", "json"]).await;
        let rows: Vec<Value> = serde_json::from_str(&ended.stdout).unwrap();
        for row in &rows {
            assert_eq!(
                (&row["phase"], &row["saved"]),
                (&Value::from("settled"), &Value::Null),
                "{row}"
            );
            let problems = row["problems"].as_array().unwrap();
            assert!(problems.iter().all(|one| one["needs_person"] == false), "{row}");
        }
        assert_eq!(ended.code, Some(0));
    });
}

#[test]
fn what_resists_a_start_is_overridden_by_the_command_that_a_refusal_names() {
    run(async {
        let terminal = Terminal::new("17:50:00").await;
        let enforced = office_hours("", "", "enforce = true");
        terminal.local(&enforced, "18:30:00").await;
        let stop = ["override", "stopped", "ci", "--for", "9h"];
        assert_eq!(terminal.run(&stop).await.code, Some(0));
        let declined = terminal.run(&["start", "web", "ci"]).await;
        assert_eq!(declined.code, Some(1), "{}", declined.stdout);

        let without = format!("{}{OTHER}", accounts_alone());
        let (code, plan) = apply(&terminal, &without, &["--yes"]).await;
        assert_eq!(code, Some(1), "{plan}");
        let refused = plan["refused"][0].as_str().unwrap();
        let command = commands(refused).into_iter().find(|one| one[0] == "override").unwrap();
        let ended = terminal.run(&[&command[..], &["--yes"]].concat()).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        terminal.local(&enforced, "18:50:00").await;

        // Nothing stops them again, whatever overruled the schedule before.
        let (code, plan) = apply(&terminal, &without, &["--yes"]).await;
        assert_eq!(code, Some(0), "{plan}");
        terminal.local(&without, "20:00:00").await;
        let ended = terminal.run(&["status", "-o", "json"]).await;
        let rows: Vec<Value> = serde_json::from_str(&ended.stdout).unwrap();
        for row in &rows {
            assert_eq!((&row["state"], &row["saved"]), (&Value::from("running"), &Value::Null));
        }
    });
}

#[test]
fn leaving_applies_and_status_says_what_is_owed_until_a_person_starts_it() {
    run(async {
        let terminal = stopped().await;
        let (code, plan) =
            apply(&terminal, &format!("{}{OTHER}", accounts_alone()), &["--yes", "--leave"]).await;
        assert_eq!((code, &plan["applied"]), (Some(0), &Value::from(2)), "{plan}");
        terminal.local(&format!("{}{OTHER}", accounts_alone()), "18:40:00").await;
        let ended = terminal.run(&["status"]).await;
        assert_eq!(ended.code, Some(3), "{}", ended.stdout);
        assert_eq!(ended.stdout.matches("orphaned").count(), EACH_KIND.len(), "{}", ended.stdout);
        let started = terminal.run(&["start", "web", "orders"]).await;
        assert_eq!(started.code, Some(0), "{}{}", started.stdout, started.stderr);
    });
}

#[test]
fn a_rollback_brings_back_what_was_in_force_before_as_a_new_generation() {
    run(async {
        let terminal = Terminal::new("12:00:00").await;
        let first = office_hours("", "", "");
        apply(&terminal, &first, &["--yes"]).await;
        let ended = terminal.run(&["config", "rollback", "--yes"]).await;
        assert_eq!(ended.code, Some(2));
        assert!(ended.stderr.contains("nothing was in force before"), "{}", ended.stderr);
        apply(&terminal, &format!("{first}{OTHER}"), &["--yes"]).await;

        let ended = terminal.run(&["config", "rollback", "--yes"]).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(ended.stdout.contains("- [schedules.other]"), "{}", ended.stdout);
        let log = in_force(&terminal).await;
        assert_eq!((&log[0]["generation"], &log[0]["repeats"]), (&Value::from(3), &Value::from(1)));
        let (code, _) = apply(&terminal, &first, &["--dry-run"]).await;
        assert_eq!(code, Some(0), "the file says what is in force again");
        let ended = terminal.run(&["config", "rollback", "9", "--yes"]).await;
        assert_eq!(ended.code, Some(2));
        assert!(ended.stderr.contains("there is no generation 9"), "{}", ended.stderr);
    });
}

/// Renames `do-main` to `do-new`. Anything that joined would be held.
fn renamed() -> String {
    office_hours("max_new = 0", "was = \"do-main\"", "")
        .replace("accounts.do-main", "accounts.do-new")
}

#[test]
fn an_account_that_is_renamed_leaves_nothing_behind_and_holds_nothing() {
    run(async {
        let terminal = stopped().await;
        let (code, plan) = apply(&terminal, &renamed(), &["--dry-run"]).await;
        assert_eq!(code, Some(0), "{plan}");
        let consequences = &plan["consequences"];
        for nothing in ["soon", "moves", "stranded"] {
            assert_eq!(consequences[nothing], json!([]), "{nothing}");
        }
        assert_eq!(consequences["held"], json!({}));
        let (code, plan) = apply(&terminal, &renamed(), &["--yes"]).await;
        assert_eq!((code, &plan["applied"]), (Some(0), &Value::from(2)), "{plan}");

        let status = terminal.run(&["status", "-o", "json"]).await;
        let rows: Value = serde_json::from_str(&status.stdout).unwrap();
        let present = EACH_KIND.map(|one| one.replace("do-main", "do-new"));
        assert_eq!(names(&rows, "resource"), present);
        assert_eq!(status.code, Some(0), "{}", status.stderr);

        let history = ["history", "do-new/database/d1", "-o", "json"];
        let history = terminal.run(&history).await;
        let entries: Value = serde_json::from_str(&history.stdout).unwrap();
        assert_eq!(names(&entries, "reference"), ["do-main/database/d1"]);
        let why = terminal.run(&["why", "--full", "do-main/database/d1"]).await;
        assert_eq!(why.code, Some(2));
        let called = "account `do-main` is called `do-new` now: write do-new/database/d1";
        assert!(why.stderr.contains(called), "{}", why.stderr);

        let back = terminal.run(&["config", "rollback", "--yes"]).await;
        assert_eq!(back.code, Some(0), "{}", back.stderr);
        let status = terminal.run(&["status", "-o", "json"]).await;
        let rows: Value = serde_json::from_str(&status.stdout).unwrap();
        assert_eq!(names(&rows, "resource"), EACH_KIND);
        let owed = rows.as_array().unwrap().iter();
        let owed = owed.filter(|row| !row["saved"].is_null());
        assert_eq!(owed.count(), 2, "{rows}");
    });
}

#[test]
fn an_account_that_goes_takes_no_owed_size_with_it() {
    run(async {
        let terminal = stopped().await;
        let all = office_hours("", "", "");
        let (begin, end) = (all.find("[accounts.do-main]"), all.find("[accounts.hz-eu]"));
        let without = all[..begin.unwrap()].to_owned() + &all[end.unwrap()..];
        for flags in [&["--yes", "--leave"][..], &["--yes"]] {
            let (code, shown) = apply(&terminal, &without, flags).await;
            assert_eq!(code, Some(1), "{shown}");
            let shown = said(&shown);
            for words in [
                "orders (do-main/database/d1) is owed 1 x db-s-2vcpu-4gb",
                "3 resources would be left stopped with nothing to bring them back",
                "start them first by `offhours start do-main/droplet/1 do-main/database/d1",
                "`was = \"do-main\"`",
                "`offhours forget --anyway do-main/database/d1 do-main/node-pool/c1/p1`",
            ] {
                assert!(shown.contains(words), "{words}: {shown}");
            }
        }
        assert_eq!(in_force(&terminal).await.len(), 1);

        // A server is owed no size: it only stays stopped, and no command is promised for that.
        let without = all.replace("accounts.hz-eu", "accounts.hz-us");
        let (code, shown) = apply(&terminal, &without, &["--yes"]).await;
        assert_eq!(code, Some(1), "{shown}");
        let shown = said(&shown);
        assert!(shown.contains("starts nothing later in an account that is removed"), "{shown}");
        assert!(!shown.contains("restores them later"), "{shown}");
        let (code, plan) = apply(&terminal, &without, &["--yes", "--leave"]).await;
        assert_eq!((code, &plan["applied"]), (Some(0), &Value::from(2)), "{plan}");
    });
}

#[test]
fn a_local_service_runs_what_is_in_force_whatever_file_is_beside_it() {
    run(async {
        let terminal = Terminal::new("12:00:00").await;
        let first = office_hours("", "", "");
        terminal.write(&first);
        let local = ["local", "--speed", "0", "--for", "2m"];
        let ended = terminal.run(&local).await;
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        let advice = "no configuration has been applied to this store: run `offhours apply`";
        assert!(ended.stderr.contains(advice), "{}", ended.stderr);

        apply(&terminal, &first, &["--yes"]).await;
        let second = format!("{first}{OTHER}");
        apply(&terminal, &second, &["--yes"]).await;
        let ended = terminal.run(&local).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(!ended.stderr.contains("offhours.toml"), "{}", ended.stderr);

        let back = terminal.run(&["config", "rollback", "--yes"]).await;
        assert_eq!(back.code, Some(0), "{}", back.stderr);
        let ended = terminal.run(&local).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let note =
            "note: offhours.toml differs from generation 3, which is in force: `offhours apply`";
        assert!(ended.stderr.contains(note), "{}", ended.stderr);
        assert_eq!(in_force(&terminal).await.len(), 3);

        terminal.write("protekt = 1\n");
        let ended = terminal.run(&local).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(ended.stderr.contains("`offhours validate`"), "{}", ended.stderr);

        terminal.write(&second);
        let named = [&local[..], &["--config", "offhours.toml"]].concat();
        let ended = terminal.run(&named).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert_eq!(in_force(&terminal).await.len(), 4);
    });
}

/// A schedule's methods that leave a plan or a standby.
const LEAVING: &str = "graceful = true\n\
    methods = { droplet = \"resize\", server = \"rescale\", database = \"standbys\" }";

/// A Droplet, a server and a database that can come back from these methods.
const FIT: &str = r#"
    [[droplets]]
    id = 1
    name = "web"
    size = "g-2vcpu-8gb"
    tags = ["offhours:office"]

    [[servers]]
    id = 11
    name = "ci"
    server_type = "ccx13"
    labels = { offhours = "office" }

    [[databases]]
    id = "d1"
    name = "orders"
    engine = "pg"
    plan = "db-s-2vcpu-4gb"
    nodes = 2
    tags = ["offhours:office"]
"#;

/// One of each that cannot, and a Droplet that keeps its plan because none is cheaper.
const UNFIT: &str = r#"
    [[droplets]]
    id = 2
    name = "scaled"
    size = "g-2vcpu-8gb"
    autoscale_pool = "8e2f"
    tags = ["offhours:office"]

    [[droplets]]
    id = 3
    name = "least"
    size = "s-1vcpu-512mb-10gb"
    tags = ["offhours:office"]

    [[servers]]
    id = 12
    name = "old"
    server_type = "ccx13"
    created = "2026-01-10T08:00:00Z"
    labels = { offhours = "office" }

    [[databases]]
    id = "d2"
    name = "events"
    engine = "mongodb"
    plan = "db-s-2vcpu-4gb"
    nodes = 3
    tags = ["offhours:office"]
"#;

const REFUSED: [(&str, &str, &str); 3] = [
    ("do-main/droplet/2", "autoscale pool", "pool's own bounds"),
    ("do-main/database/d2", "mongodb", "smallest-plan"),
    ("hz-eu/server/12", "old price", "accept the new prices"),
];

async fn with_fleet(fleet: &[&str], at: &str) -> Terminal {
    let fleet = [&[ACCOUNTS], fleet].concat().concat();
    Terminal::with_fleet(&fleet, at).await
}

/// The stops that an apply shows: the resource, and the plans that it leaves and moves to.
fn plans(plan: &Value) -> Vec<[&str; 3]> {
    let stops = plan["moves"]["stops"].as_array().unwrap();
    let plans = stops.iter().map(|stop| {
        let to = &stop["to"]["smaller"]["plan"];
        [&stop["resource"], &stop["from"], to].map(|value| value.as_str().unwrap_or("-"))
    });
    plans.collect()
}

#[test]
fn stops_that_change_a_plan_are_shown_with_what_they_save() {
    run(async {
        let terminal = with_fleet(&[FIT], "17:50:00").await;
        let configuration = office_hours("", "", LEAVING);
        let (code, plan) = apply(&terminal, &configuration, &["--dry-run"]).await;
        assert_eq!(code, Some(0), "{plan}");
        let smaller = plans(&plan)[0][2].to_owned();
        let cheaper = plans(&plan)[1][2].to_owned();
        let expected = [
            ["do-main/droplet/1", "g-2vcpu-8gb", &smaller],
            ["hz-eu/server/11", "ccx13", &cheaper],
        ];
        assert_eq!(plans(&plan), expected, "{plan}");
        assert_eq!(plan["moves"]["unknown"], json!([]));

        // The same savings that `offhours savings` reports for this schedule.
        let simulate = format!("--simulate={}", terminal.simulator.url);
        let savings = ["savings", "--config", "offhours.toml", "-o", "json"];
        let savings = terminal.bare(&[&savings[..], &[&simulate]].concat()).await;
        let savings: Value = serde_json::from_str(&savings.stdout).unwrap();
        for stop in plan["moves"]["stops"].as_array().unwrap() {
            let rows = savings["resources"].as_array().unwrap();
            let row = rows.iter().find(|row| row["resource"] == stop["resource"]);
            let methods = row.unwrap()["methods"].as_array().unwrap();
            let method = methods.iter().find(|m| m["method"] == stop["method"]);
            let method = method.unwrap();
            assert!(stop["saved"].as_f64().unwrap() > 0.0, "{stop}");
            let found = (&stop["to"]["smaller"]["plan"], &stop["saved"]);
            assert_eq!(found, (&method["to"], &method["saved"]));
        }

        let shown = terminal.run(&["apply", "--dry-run"]).await.stdout;
        assert!(shown.contains("\nWould apply: 2 accounts added, 1 schedule added"), "{shown}");
        assert!(shown.contains("Stops that change a plan:\n"), "{shown}");
        let line = format!(
            "    web (do-main/droplet/1), schedule office: resize from g-2vcpu-8gb to {smaller}, \
             saves "
        );
        assert!(shown.contains(&line), "{shown}");
        assert!(shown.contains(" USD a month\n"), "{shown}");

        // While it is stopped on the small plan, the plan it returns to is the one that counts.
        terminal.local(&configuration, "18:30:00").await;
        let resources = terminal.simulator.resources().await;
        assert_eq!(resources["do-main/droplet/1"]["size"], smaller);
        let changed = format!("{configuration}\nretain_running = true\n");
        let (code, plan) = apply(&terminal, &changed, &["--yes"]).await;
        assert_eq!(code, Some(0), "{plan}");
        assert_eq!(plans(&plan), expected, "{plan}");
    });
}

#[test]
fn what_could_not_come_back_refuses_the_apply_and_each_is_named() {
    run(async {
        let terminal = with_fleet(&[FIT, UNFIT], "12:00:00").await;
        let configuration = office_hours("", "", LEAVING);
        let (code, plan) = apply(&terminal, &configuration, &["--dry-run"]).await;
        assert_eq!(code, Some(1), "{plan}");
        let stops = plan["moves"]["stops"].as_array().unwrap();
        let refused = stops.iter().filter(|stop| stop["to"].get("refused").is_some());
        let mut refused: Vec<_> = refused.map(|stop| stop["resource"].as_str().unwrap()).collect();
        refused.sort_unstable();
        let mut expected = REFUSED.map(|(resource, ..)| resource);
        expected.sort_unstable();
        assert_eq!(refused, expected, "{plan}");

        for arguments in [&["apply", "--dry-run"][..], &["apply", "--yes"]] {
            let ended = terminal.run(arguments).await;
            assert_eq!(ended.code, Some(1), "{}", ended.stderr);
            for (resource, reason, remedy) in REFUSED {
                let mut lines = ended.stderr.lines();
                let line = lines
                    .find(|line| line.starts_with("error: refused") && line.contains(resource));
                let line = line.unwrap_or_else(|| panic!("{resource}: {}", ended.stderr));
                for words in ["schedule office", reason, remedy] {
                    assert!(line.contains(words), "{line}");
                }
            }
            // The others are shown anyway.
            for words in ["web (do-main/droplet/1)", "stays on s-1vcpu-512mb-10gb"] {
                assert!(ended.stdout.contains(words), "{}", ended.stdout);
            }
        }
        assert_eq!(in_force(&terminal).await, [Value::Null; 0]);

        let without = office_hours("", "", "");
        let (code, plan) = apply(&terminal, &without, &["--yes"]).await;
        assert_eq!((code, &plan["applied"]), (Some(0), &json!(1)), "{plan}");
    });
}

#[test]
fn a_plan_that_is_sold_out_later_holds_up_no_other_change_and_no_rollback() {
    run(async {
        let terminal = with_fleet(&[FIT], "12:00:00").await;
        let configuration = office_hours("", "", LEAVING);
        let (code, plan) = apply(&terminal, &configuration, &["--yes"]).await;
        assert_eq!(code, Some(0), "{plan}");
        let sold_out = json!({"plan": "ccx13", "offer": "unavailable"});
        terminal.simulator.offer(sold_out).await;

        terminal.write(&office_hours("max_stops = 7", "", LEAVING));
        let ended = terminal.run(&["apply", "--yes"]).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let warned = "warning: no stop until this is mended: ci (hz-eu/server/11)";
        assert!(ended.stderr.contains(warned), "{}", ended.stderr);

        let (code, plan) = apply(&terminal, &office_hours("", "", ""), &["--yes"]).await;
        assert_eq!(code, Some(0), "{plan}");
        // It is refused as a new configuration, but not as a rollback.
        let (code, _) = apply(&terminal, &configuration, &["--yes"]).await;
        assert_eq!(code, Some(1));
        let ended = terminal.run(&["config", "rollback", "--yes"]).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    });
}

#[test]
fn a_list_that_fails_is_a_warning_and_no_plan_is_asked_for_without_need() {
    run(async {
        let terminal = with_fleet(&[FIT, UNFIT], "12:00:00").await;
        let (code, plan) = apply(&terminal, &office_hours("", "", ""), &["--yes"]).await;
        assert_eq!(code, Some(0), "{plan}");
        assert_eq!(plan["moves"], json!({"stops": [], "unknown": []}));
        let log = terminal.simulator.log().await;
        let asked = |path: &str| log.iter().filter(|one| one["request"]["path"] == path).count();
        assert_eq!(
            (asked("/v2/droplets"), asked("/v2/sizes")),
            // One list for those with GPUs.
            (2, 0),
            "{log:#?}"
        );

        let rescaling = "methods = { server = \"rescale\" }";
        let configuration = office_hours("", "", rescaling).replace("env:HZ_TOKEN", "env:DO_TOKEN");
        terminal.write(&configuration);
        let ended = terminal.run(&["apply", "--yes"]).await;
        assert_eq!(ended.code, Some(3), "{}", ended.stderr);
        let warned = "warning: cannot check the resizes in account hz-eu: ";
        assert!(ended.stderr.contains(warned), "{}", ended.stderr);
        assert_eq!(in_force(&terminal).await.len(), 2);
    });
}

/// The accounts of the tests, without a schedule.
fn accounts_alone() -> String {
    let all = office_hours("", "", "");
    let schedules = all.find("[schedules").unwrap();
    all[..schedules].to_owned()
}
