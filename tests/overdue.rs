//! Resources that are not in their desired state for too long: they are named by the commands and
//! measured by each inventory, and no others are.

use cloud_simulator::Act;
use domain::{overdue::overdue, schedule::Desired};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{
    programs::{CommandOutput, Terminal},
    support::{
        ACCOUNTS, EACH_KIND, World, database, droplet, fault, instant, monday, office_hours, run,
        server,
    },
};

/// On Tuesday, 2026-11-24, in UTC; the office opens at 07:00.
fn tuesday(time: &str) -> Timestamp {
    instant(&format!("2026-11-24T{time}Z"))
}

fn rows(ended: &CommandOutput) -> Vec<Value> {
    serde_json::from_str(&ended.stdout).unwrap()
}

/// The text of a field in each row, with the row's name. Rows without the field are left out.
fn texts<'r>(rows: &'r [Value], name: &str, field: &str) -> Vec<(&'r str, &'r str)> {
    let text = |row: &'r Value| Some((row[name].as_str()?, row[field].as_str()?));
    rows.iter().filter_map(text).collect()
}

/// Checks what `status` answers while nothing needs a person.
async fn needs_nothing(terminal: &Terminal) {
    for command in [["status"].as_slice(), &["status", "--accounts"]] {
        let ended = terminal.run(command).await;
        assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    }
    let ended = terminal.run(&["status", "--needs-person"]).await;
    assert_eq!(ended.stderr, "No resource matches.\n");
}

/// Checks what the commands answer while the three resources of do-main should run but do not.
async fn needs_a_person(terminal: &Terminal) {
    let at_fault = &EACH_KIND[..3];
    for command in [["status"].as_slice(), &["status", "--needs-person"]] {
        let ended = terminal.run(command).await;
        assert_eq!(ended.code, Some(3), "{}", ended.stdout);
        let counted = ", 3 overdue; 3 need attention; account do-main: token refused
\
                       `offhours why NAME` says why, and what to do.
";
        assert!(ended.stderr.ends_with(counted), "{}", ended.stderr);
        let words = "overdue: should have been running since Tue 08:00 CET";
        assert!(ended.stdout.contains(words), "{}", ended.stdout);
        let command = [command, &["-o", "json"]].concat();
        let ended = terminal.run(&command).await;
        assert_eq!(ended.code, Some(3));
        let rows = rows(&ended);
        let mut since = texts(&rows, "resource", "overdue_since");
        since.sort_unstable();
        let expected = at_fault.iter().map(|one| (*one, "2026-11-24T07:00:00Z"));
        assert_eq!(since, expected.collect::<Vec<_>>(), "{command:?}");
        for row in rows.iter().filter(|row| row["problems"] != json!([])) {
            assert!(at_fault.contains(&row["resource"].as_str().unwrap()), "{row}");
            let problem = row["problems"][0]["what"].as_str().unwrap();
            assert!(problem.contains("last error: token refused: "), "{problem}");
        }
    }
    let accounts = ["status", "--accounts", "-o", "json"];
    let ended = terminal.run(&accounts).await;
    assert_eq!(ended.code, Some(3));
    let rows_of_accounts = rows(&ended);
    let [(account, why)] = texts(&rows_of_accounts, "account", "needs_person")[..] else {
        panic!("{}", ended.stdout);
    };
    assert_eq!(account, "do-main");
    assert!(why.starts_with("token refused: "), "{why}");

    let ended = terminal.run(&["why", "--full", "web"]).await;
    assert_eq!(ended.code, Some(3), "{}", ended.stdout);
    let answer = "It is stopped, and a start is due.\n\
                  It needs attention: overdue: should have been running since Tue 08:00 CET";
    assert!(ended.stdout.contains(answer), "{}", ended.stdout);

    let ended = terminal.run(&["doctor", "-o", "json"]).await;
    assert_eq!(ended.code, Some(3), "{}", ended.stdout);
    let findings = rows(&ended);
    let problem = |check: &str| {
        let of = |one: &&Value| one["check"] == check && one["level"] == "problem";
        findings.iter().filter(of).count()
    };
    let problems = ["records", "token", "inventory"].map(problem);
    assert_eq!(problems, [3, 1, 1], "{findings:#?}");
}

#[test]
fn a_token_revoked_overnight_is_named_at_once_and_what_it_keeps_stopped_from_the_morning_on() {
    run(async {
        let terminal = Terminal::new("21:50:00").await;
        // The office is open until eleven in the evening, to observe the same day thirteen hours
        // later.
        let configuration = office_hours("", "", "").replace("19:00", "23:00");
        terminal.local_until(&configuration, monday("22:30:00")).await;
        needs_nothing(&terminal).await;

        let revoked = json!({
            "match": { "account": "do-main" },
            "times": 1_000_000,
            "does": "unauthorized",
        });
        terminal.simulator.fault(revoked).await;
        terminal.local_until(&configuration, tuesday("07:15:00")).await;
        let ended = terminal.run(&["status"]).await;
        assert_eq!(ended.code, Some(3), "the token alone");
        let counted =
            "4 resources: 1 running, 3 stopped, 0 under way; account do-main: token refused\n";
        assert_eq!(ended.stderr, counted);

        terminal.local_until(&configuration, tuesday("08:08:00")).await;
        needs_a_person(&terminal).await;
        terminal.local_until(&configuration, tuesday("21:08:00")).await;
        needs_a_person(&terminal).await;

        terminal.simulator.clear_faults().await;
        // Enough for the longest backoff and a resize.
        terminal.local_until(&configuration, tuesday("21:38:00")).await;
        needs_nothing(&terminal).await;
    });
}

#[test]
fn an_account_that_is_no_longer_listed_needs_a_person() {
    run(async {
        let terminal = Terminal::new("12:00:00").await;
        let configuration = office_hours("", "", "");
        terminal.local_until(&configuration, monday("12:05:00")).await;
        let failing = json!({
            "match": { "account": "do-main", "method": "GET" },
            "times": 1_000_000,
            "does": { "answer": { "status": 500 } },
        });
        terminal.simulator.fault(failing).await;
        terminal.local_until(&configuration, monday("12:20:00")).await;
        // Up to a quarter of an hour may still resolve itself.
        needs_nothing(&terminal).await;
        terminal.local_until(&configuration, monday("12:22:00")).await;
        let ended = terminal.run(&["status"]).await;
        assert_eq!(ended.code, Some(3));
        let shown = "0 under way; account do-main: not listed for 17m\n";
        assert!(ended.stderr.ends_with(shown), "{}", ended.stderr);
        let accounts = ["status", "--accounts", "--needs-person"];
        let ended = terminal.run(&accounts).await;
        assert_eq!(ended.code, Some(3));
        assert!(ended.stdout.contains("not listed for 17m: provider unavailable"));
        assert!(!ended.stdout.contains("hz-eu"), "{}", ended.stdout);
    });
}

/// The recorded resources that are overdue now.
async fn overdue_now(world: &World) -> Vec<String> {
    let store = world.local.store();
    let in_force = store.in_force().await.unwrap();
    let now = world.local.now();
    let mut found = Vec::new();
    for account in in_force.configuration.accounts.keys() {
        let mut records = store.records_of(account).await.unwrap().read;
        records.retain(|record| overdue(record, in_force.rules(), in_force.since, now).is_some());
        found.extend(records.iter().map(|record| record.reference.to_string()));
    }
    found
}

const RETAINING: &str = r#"
    [schedules.retaining]
    timezone = "Europe/Berlin"
    periods = [{ weekdays = "mon-fri", begin = "08:00", end = "19:00" }]
    retain_running = true
"#;

#[test]
fn what_is_meant_to_be_so_or_still_in_time_is_not_overdue() {
    run(async {
        let fleet = [
            ACCOUNTS,
            &droplet(1, "web", &["offhours:office"]),
            &droplet(2, "kept", &["offhours:retaining"]),
            &database("d1", "orders", "pg"),
            &server(11, ""),
        ];
        let hetzner = "provider = \"hetzner\"";
        let observed = format!("{hetzner}\nmode = \"observe\"");
        let configuration = office_hours("max_new = 1", "", "").replace(hetzner, &observed);
        let configuration = configuration + RETAINING;
        let mut world = World::start(&configuration, &fleet.concat(), monday("06:30:00")).await;
        let none: [&str; 0] = [];

        // Resources that join have been desired stopped since Friday, but are not late.
        world.run_until(monday("06:31:30")).await;
        assert_eq!(overdue_now(&world).await, none);
        world.run_until(monday("06:45:30")).await;
        world.person("do-main/droplet/2", Act::PowerOn);
        world.run_until(monday("07:30:30")).await;
        assert_eq!(overdue_now(&world).await, none);

        // A person's own stop, and two machines that are held.
        world.person("do-main/droplet/1", Act::PowerOff);
        for id in [3, 4] {
            world.create_droplet(id);
        }
        world.run_until(monday("08:00:30")).await;
        assert!(world.record("do-main/droplet/3").await.held);
        assert_eq!(overdue_now(&world).await, none);

        world.run_until(monday("18:05:30")).await;
        assert!(world.record("do-main/database/d1").await.in_flight().is_some());
        assert_eq!(overdue_now(&world).await, none);
        // A running resource that joined after its edge is not late.
        world.create_droplet(5);
        world.run_until(monday("18:25:30")).await;
        assert!(world.record("do-main/droplet/5").await.opted_in);
        assert_eq!(overdue_now(&world).await, none);
        // Held, observed and retained: all three run although they are desired stopped.
        world.run_until(monday("18:50:30")).await;
        assert!(world.was_seen("do-main/database/d1"));
        assert_eq!(overdue_now(&world).await, none);

        // A resource that should run but does not start.
        world.simulator().add_fault(fault(&json!({
            "match": { "account": "do-main", "method": "POST" },
            "times": 1_000_000,
            "does": { "answer": { "status": 429, "body": "{}" } },
        })));
        let hours = SignedDuration::from_hours;
        world.override_with("do-main/droplet/1", Desired::Running, hours(3)).await;
        let since = world.local.now();
        world.run_until(since + SignedDuration::from_mins(15)).await;
        let record = world.record("do-main/droplet/1").await;
        assert!(record.in_flight().is_some(), "{record:#?}");
        assert_eq!(overdue_now(&world).await, none);
        world.run_until(since + SignedDuration::from_mins(16)).await;
        assert_eq!(overdue_now(&world).await, ["do-main/droplet/1"]);
        world.simulator().clear_faults();
        world.run_until(since + SignedDuration::from_mins(35)).await;
        assert_eq!(overdue_now(&world).await, none);
    });
}
