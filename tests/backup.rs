//! Backups of a store: taken in the middle of a night and restored on an empty machine, and files that
//! are not a whole backup.

use std::fs;

use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::{
    hibernating::HETZNER,
    programs::Terminal,
    support::{ACCOUNTS, database, droplet, monday, pool, run},
};

/// A hibernated server, a Droplet and a database that become smaller, and a pool without nodes.
fn configuration() -> String {
    let all = HETZNER.configuration.replace(
        "methods = { server = \"hibernate\" }",
        "methods = { server = \"hibernate\", droplet = \"resize\", database = \"standbys\" }",
    );
    format!("[accounts.do-main]\nprovider = \"digitalocean\"\ntoken = \"env:DO_TOKEN\"\n{all}")
}

fn fleet() -> String {
    let web = format!("{}size = \"g-2vcpu-8gb\"\n", droplet(1, "web", &["offhours:office"]));
    let orders = format!("{}nodes = 2\n", database("d1", "orders", "pg"));
    [ACCOUNTS, &web, &orders, &pool("count = 2"), HETZNER.fleet].concat()
}

/// The power, the size and the number of nodes of every resource, but no ids: a recreated machine and
/// the nodes of a pool have others.
async fn sizes(terminal: &Terminal) -> Vec<Value> {
    let resources = terminal.simulator.resources().await;
    let size = |one: Value| {
        let keys = ["name", "status", "size", "server_type", "plan", "nodes", "count"];
        let of_key = |key: &str| (key.to_owned(), one[key].clone());
        Value::Object(
            keys.map(of_key)
                .into_iter()
                .filter(|(_, value)| !value.is_null() && !value.is_array())
                .collect(),
        )
    };
    let is_node =
        |one: &Value| one["name"].as_str().is_some_and(|name| name.starts_with("general-"));
    let resources = resources.into_values().filter(|one| !is_node(one));
    let mut sizes: Vec<_> = resources.map(size).collect();
    sizes.sort_by_key(Value::to_string);
    sizes
}

#[test]
fn a_backup_of_the_night_is_a_whole_store_in_the_morning() {
    run(async {
        let terminal = Terminal::with_fleet(&fleet(), "13:00:00").await;
        let configuration = configuration();
        terminal.local(&configuration, "13:03:00").await;
        let by_day = sizes(&terminal).await;
        let rehearsed = terminal.run(&["rehearse", HETZNER.machine, "--yes"]).await;
        assert_eq!(rehearsed.code, Some(0), "{}", rehearsed.stderr);
        terminal.local(&configuration, "23:00:00").await;
        let by_night = sizes(&terminal).await;
        assert!(by_night.iter().all(|one| !by_day.contains(one)), "{by_night:#?}");

        let file = terminal.data.with_file_name("offhours.backup");
        let name = file.to_str().unwrap();
        for _ in 0..2 {
            // The prefix is that of tables at AWS.
            let staging = [("OFFHOURS_TABLE_PREFIX", "staging-")];
            let written = terminal.run_with(&staging, &["backup", name]).await;
            assert_eq!(written.code, Some(0), "{}", written.stderr);
            assert_eq!(written.stderr, "");
        }
        let store = fs::read(&terminal.data).unwrap();
        let notes = file.with_file_name("notes.txt");
        fs::write(&notes, "mine").unwrap();
        for other in [".", terminal.data.to_str().unwrap(), notes.to_str().unwrap()] {
            let refused = terminal.run(&["backup", other]).await;
            assert_eq!(refused.code, Some(2), "{}", refused.stderr);
            assert!(refused.stderr.contains("is not a backup"), "{}", refused.stderr);
        }
        assert_eq!(fs::read(&terminal.data).unwrap(), store);
        assert_eq!(fs::read_to_string(&notes).unwrap(), "mine");
        let text = fs::read_to_string(&file).unwrap();
        assert!(!text.contains("secret-"), "{text}");
        for suffix in ["", "-wal", "-shm"] {
            fs::remove_file(format!("{}{suffix}", terminal.data.display())).ok();
        }

        let restored = terminal.run(&["restore", name]).await;
        assert_eq!(restored.code, Some(0), "{}", restored.stderr);
        let says = "Restored 4 resources, 4 of them owed a size or a machine, as of ";
        assert!(restored.stdout.starts_with(says), "{}", restored.stdout);
        let again = file.with_file_name("again");
        terminal.run(&["backup", again.to_str().unwrap()]).await;
        let lines = |text: &str| {
            let mut lines: Vec<_> = text.lines().skip(1).map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(lines(&fs::read_to_string(&again).unwrap()), lines(&text));

        let repeated = terminal.run(&["restore", name]).await;
        assert_eq!(repeated.code, Some(2), "{}", repeated.stdout);
        assert!(
            repeated.stderr.contains("this store is in use: generation 1"),
            "{}",
            repeated.stderr
        );
        let morning = monday("07:00:00") + SignedDuration::from_hours(24);
        terminal.local_until(&configuration, morning).await;
        assert_eq!(sizes(&terminal).await, by_day);
        let status = terminal.run(&["status"]).await;
        assert_eq!(status.code, Some(0), "{}", status.stdout);
    });
}

#[test]
fn a_file_that_is_no_whole_backup_is_refused_by_line_and_nothing_is_restored() {
    run(async {
        let terminal = Terminal::new("12:00:00").await;
        terminal.local(&configuration(), "12:03:00").await;
        let file = terminal.data.with_file_name("offhours.backup");
        terminal.run(&["backup", file.to_str().unwrap()]).await;
        let whole = fs::read_to_string(&file).unwrap();
        let lines: Vec<_> = whole.lines().collect();
        let last = lines.len();
        let without = |number: usize| {
            let left = lines.iter().enumerate().filter(|(place, _)| place + 1 != number);
            left.flat_map(|(_, line)| [*line, "\n"]).collect::<String>()
        };
        let mut newer: Value = serde_json::from_str(lines[0]).unwrap();
        newer["format"] = json!(99);
        let cases = [
            (String::new(), 1, "it does not begin as a backup does"),
            (without(1), 1, "it does not begin as a backup does"),
            (without(last), last - 1, "it is cut off after this line"),
            (without(3), last - 1, "there are items missing before it"),
            (whole.replace(lines[1], "{}"), 2, "invalid item"),
            (whole.replace(lines[0], &newer.to_string()), 1, "a newer version of Offhours"),
        ];
        let elsewhere = file.with_file_name("another.db");
        for (text, line, why) in cases {
            fs::write(&file, text).unwrap();
            let (from, to) = (file.to_str().unwrap(), elsewhere.to_str().unwrap());
            let refused = terminal.bare(&["restore", from, "--data", to]).await;
            assert_eq!(refused.code, Some(2), "{why}: {}{}", refused.stdout, refused.stderr);
            let expected = format!("offhours.backup line {line}: {why}");
            assert!(refused.stderr.contains(&expected), "{expected}: {}", refused.stderr);
            assert!(!elsewhere.exists());
        }
    });
}
