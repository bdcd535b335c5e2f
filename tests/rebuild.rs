//! A store that was lost without a backup: records are made again from what the clouds show.

use std::fs;

use jiff::SignedDuration;
use serde_json::Value;

use crate::{
    hibernating::HETZNER,
    programs::{CommandOutput, Terminal},
    support::{ACCOUNTS, database, droplet, monday, pool, run},
};

/// Every machine is hibernated, but for one Droplet that becomes smaller, as a database and a pool do.
fn configuration() -> String {
    let all = HETZNER.configuration.replace(
        "methods = { server = \"hibernate\" }",
        "methods = { server = \"hibernate\", droplet = \"hibernate\", database = \"standbys\" }\n\
         accept = \"new-ip\"",
    );
    format!(
        "[accounts.do-main]\nprovider = \"digitalocean\"\ntoken = \"env:DO_TOKEN\"\n\
         ssh_key = \"team\"\n{all}\n\
         [schedules.small]\ntimezone = \"UTC\"\nperiods = [{{ begin = \"06:00\", end = \"19:00\" }}]\n\
         methods = {{ droplet = \"resize\" }}\n"
    )
}

const KEY: &str = "[[digitalocean.ssh_keys]]\nid = 14\nname = \"team\"\n\
    public_key = \"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI team\"\n";

fn fleet() -> String {
    let web = format!("{}size = \"g-2vcpu-8gb\"\n", droplet(1, "web", &["offhours:small"]));
    let api =
        format!("{}size = \"s-2vcpu-4gb\"\n", droplet(2, "api", &["offhours:office", "team:ci"]));
    let orders = format!("{}nodes = 2\n", database("d1", "orders", "pg"));
    [ACCOUNTS, &web, &api, &orders, &pool("count = 2"), HETZNER.fleet, KEY].concat()
}

/// What the clouds show of machines with these names: power, plan, region and tags without ours.
async fn machines(terminal: &Terminal, names: &[&str]) -> Vec<Value> {
    let resources = terminal.simulator.resources().await.into_values();
    let is_named = |one: &Value| one["name"].as_str().is_some_and(|name| names.contains(&name));
    let mut machines: Vec<_> = resources.filter(is_named).map(likeness).collect();
    machines.sort_by_key(Value::to_string);
    machines
}

fn likeness(mut one: Value) -> Value {
    if let Some(tags) = one["tags"].as_array_mut() {
        tags.retain(|tag| !is_ours(tag.as_str().unwrap()));
    }
    if let Some(labels) = one["labels"].as_object_mut() {
        labels.retain(|key, _| !is_ours(key));
    }
    let keys = ["name", "status", "size", "server_type", "location", "region", "tags", "labels"];
    keys.into_iter().map(|key| (key.to_owned(), one[key].take())).collect()
}

fn is_ours(tag: &str) -> bool {
    tag.starts_with("offhours-of") || tag.starts_with("offhours-mark")
}

fn lose_the_store(terminal: &Terminal) {
    for suffix in ["", "-wal", "-shm"] {
        fs::remove_file(format!("{}{suffix}", terminal.data.display())).ok();
    }
}

/// Puts the configuration into a new store.
async fn apply(terminal: &Terminal) {
    terminal.write(&configuration());
    let applied = terminal.run(&["apply", "--yes"]).await;
    assert_eq!(applied.code, Some(0), "{}", applied.stderr);
}

async fn rebuild(terminal: &Terminal, arguments: &[&str]) -> (CommandOutput, Vec<Value>) {
    let arguments = [&["rebuild", "-o", "json"], arguments].concat();
    let ended = terminal.run(&arguments).await;
    let rows = serde_json::from_str(&ended.stdout);
    let rows = rows.unwrap_or_else(|_| panic!("{}{}", ended.stdout, ended.stderr));
    (ended, rows)
}

/// The resources in these rows for which this holds.
fn those<'a>(rows: &'a [Value], key: &str) -> Vec<&'a str> {
    let those = rows.iter().filter(|row| row[key] == true);
    those.map(|row| row["resource"].as_str().unwrap()).collect()
}

async fn rehearse(terminal: &Terminal, machines: &[&str]) {
    for machine in machines {
        let rehearsed = terminal.run(&["rehearse", machine, "--yes"]).await;
        assert_eq!(rehearsed.code, Some(0), "{machine}: {}", rehearsed.stderr);
    }
}

#[test]
fn a_store_that_is_lost_at_night_is_rebuilt_from_the_clouds() {
    run(async {
        let terminal = Terminal::with_fleet(&fleet(), "12:00:00").await;
        let hibernated = ["hz-eu/server/42", "do-main/droplet/2"];
        terminal.local(&configuration(), "12:03:00").await;
        let by_day = machines(&terminal, &["api", "build"]).await;
        rehearse(&terminal, &hibernated).await;
        terminal.local(&configuration(), "23:00:00").await;
        assert_eq!(machines(&terminal, &["api", "build"]).await, [Value::Null; 0]);

        lose_the_store(&terminal);
        let unapplied = terminal.run(&["rebuild"]).await;
        assert_eq!(unapplied.code, Some(2), "{}", unapplied.stdout);
        apply(&terminal).await;
        let (shown, rows) = rebuild(&terminal, &["--dry-run"]).await;
        assert_eq!(shown.code, Some(3), "{}", shown.stderr);
        assert_eq!(those(&rows, "written"), [""; 0]);
        let (ended, rows) = rebuild(&terminal, &["--yes"]).await;
        assert_eq!(ended.code, Some(3), "{}", ended.stderr);
        let mut written = those(&rows, "written");
        written.sort_unstable();
        assert_eq!(written, ["do-main/droplet/2", "hz-eu/server/42"]);
        let mut named: Vec<_> = rows.iter().map(|row| row["resource"].as_str().unwrap()).collect();
        named.sort_unstable();
        let all = [
            "do-main/database/d1",
            "do-main/droplet/1",
            "do-main/droplet/2",
            "do-main/node-pool/c1/p1",
            "hz-eu/server/42",
        ];
        assert_eq!(named, all);
        assert!(rows.iter().all(|row| row["to_do"].is_string()), "{rows:#?}");

        // What is recorded is left as it is.
        let (_, again) = rebuild(&terminal, &["--yes"]).await;
        assert_eq!(those(&again, "sufficient"), [""; 0]);
        assert_eq!(again.len(), 3, "{again:#?}");

        let morning = monday("07:00:00") + SignedDuration::from_hours(24);
        terminal.local_until(&configuration(), morning).await;
        assert_eq!(machines(&terminal, &["api", "build"]).await, by_day);
        // The next night goes on with them.
        let night = monday("23:00:00") + SignedDuration::from_hours(24);
        terminal.local_until(&configuration(), night).await;
        assert_eq!(machines(&terminal, &["api", "build"]).await, [Value::Null; 0]);
    });
}

#[test]
fn a_recreated_machine_keeps_its_reference_and_its_snapshots() {
    run(async {
        let terminal = Terminal::with_fleet(&fleet(), "12:00:00").await;
        terminal.local(&configuration(), "12:03:00").await;
        rehearse(&terminal, &["hz-eu/server/42"]).await;
        lose_the_store(&terminal);
        apply(&terminal).await;
        let (_, rows) = rebuild(&terminal, &["--yes"]).await;
        assert_eq!(those(&rows, "written"), ["hz-eu/server/42"], "{rows:#?}");
        terminal.local(&configuration(), "18:00:00").await;
        let status = terminal.run(&["status", "build", "-o", "json"]).await;
        let status: Vec<Value> = serde_json::from_str(&status.stdout).unwrap();
        let resources: Vec<_> = status.iter().map(|one| &one["resource"]).collect();
        assert_eq!(resources, ["hz-eu/server/42"], "{status:#?}");
        terminal.local(&configuration(), "23:00:00").await;
        assert_eq!(machines(&terminal, &["build"]).await, [Value::Null; 0]);
    });
}
