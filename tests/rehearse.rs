//! `offhours rehearse --dry-run`: what stands in the way of hibernating a machine, judging by what is
//! around it, and what it saves. tests/hibernated.rs has the rehearsal itself.

use serde_json::Value;

use crate::{
    programs::{CommandOutput, Terminal},
    shapes::schema,
    support::run,
    traffic,
};

/// A Droplet and servers with what the clouds can attach to them, and a plain Droplet.
const FLEET: &str = r#"
[[accounts]]
name = "do-main"
provider = "digitalocean"
token = "secret-do-token"

[[accounts]]
name = "hz-eu"
provider = "hetzner"
token = "secret-hz-token"

[[droplets]]
id = 1
name = "web"
size = "g-2vcpu-8gb"
tags = ["env:staging"]
has = ["backups", "ipv6"]

[[droplets]]
id = 2
name = "plain"
size = "g-2vcpu-8gb"

[[databases]]
id = "9cc10173-e9ea-4176-9dbc-a4cee4c4ff30"
name = "orders"
engine = "pg"
nodes = 1
plan = "db-s-1vcpu-2gb"
lets_in = [1]

[[databases]]
id = "9cc10173-e9ea-4176-9dbc-a4cee4c4ff31"
name = "by-address"
engine = "pg"
nodes = 1
plan = "db-s-1vcpu-2gb"
lets_in_addresses = ["10.0.0.0/8", "198.18.0.1/32"]

[[digitalocean.reserved_ips]]
ip = "203.0.113.20"
droplet = 1

[[digitalocean.volumes]]
id = "506f78a4-e098-11e5-ad9f-000f53306ae1"
name = "data"
droplet = 1

[[digitalocean.firewalls]]
id = "bb4b2611-3d72-467b-8602-280330ecd65c"
name = "by-number"
droplets = [1]

[[digitalocean.firewalls]]
id = "bb4b2611-3d72-467b-8602-280330ecd65d"
name = "lets-in"
lets_in = [1]

[[digitalocean.load_balancers]]
id = "4de7ac8b-495b-4884-9a69-1050c6793cd6"
name = "front"
droplets = [1]

[[digitalocean.alerts]]
id = "78b3da62-27e5-49ba-ac70-5db0b5935c64"
droplets = [1]

[[digitalocean.ssh_keys]]
id = 512189
name = "team"
public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI team"

[[servers]]
id = 42
name = "build"
server_type = "cpx22"
addresses = ["ipv4", "ipv6"]
has = ["backups", "iso", "protection"]

[[servers]]
id = 43
name = "old"
server_type = "cx22"
created = "2026-04-01T08:00:00Z"

[[servers]]
id = 44
name = "ci"
server_type = "cpx22"

[[hetzner.networks]]
id = 7
name = "internal"
members = [{ server = 44, ip = "10.0.0.9" }]

[[hetzner.volumes]]
id = 8
name = "data"
server = 44

[[hetzner.ssh_keys]]
id = 14
name = "team"
public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI team"
"#;

const CONFIGURATION: &str = r#"
timezone = "UTC"
[accounts.do-main]
provider = "digitalocean"
token = "env:DO_TOKEN"
ssh_key = "team"
[accounts.hz-eu]
provider = "hetzner"
token = "env:HZ_TOKEN"
ssh_key = "team"
[schedules.office]
periods = [{ weekdays = "mon-fri", begin = "08:00", end = "19:00" }]
resources = ["web", "plain", "build", "old", "ci"]
mode = "observe"
methods = { droplet = "hibernate", server = "hibernate" }
"#;

/// A terminal beside the fleet, with this configuration in force.
async fn terminal(configuration: &str) -> Terminal {
    let terminal = Terminal::with_fleet(FLEET, "12:00:00").await;
    terminal.write(configuration);
    terminal.local(configuration, "12:06:00").await;
    terminal
}

async fn rehearse(terminal: &Terminal, arguments: &[&str]) -> CommandOutput {
    terminal.run(&[&["rehearse", "--dry-run"], arguments].concat()).await
}

/// Returns the exit code and the rehearsal as JSON.
async fn report(terminal: &Terminal, name: &str) -> (Option<i32>, Value) {
    let ended = rehearse(terminal, &[name, "-o", "json"]).await;
    assert_eq!(ended.stderr, "");
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let schema = schema(terminal, "rehearse").await;
    assert!(schema.is_valid(&report), "{report:#}");
    (ended.code, report)
}

#[track_caller]
fn is_refused(report: &(Option<i32>, Value), expected: &[&str]) {
    let (code, report) = report;
    assert_eq!((*code, report["to"].get("snapshot")), (Some(3), None));
    let refused = report["to"]["refused"]["reason"].as_str().unwrap();
    for expected in expected {
        assert!(refused.contains(expected), "{expected}: {refused}");
    }
}

#[test]
fn what_is_around_a_machine_is_found_and_what_is_accepted_stands_in_no_way() {
    run(async {
        let strict = terminal(CONFIGURATION).await;
        is_refused(
            &report(&strict, "web").await,
            &[
                "its public address 2001:db8:1::1 would be lost",
                "database orders refers to it",
                "database by-address refers to it",
                "a rule of firewall lets-in refers to it",
                "alert policy busy refers to it",
                "its backups would be deleted",
                "no firewall applies to it by a tag",
            ],
        );
        is_refused(
            &report(&strict, "plain").await,
            &["its public address 198.18.0.2 would be lost"],
        );
        is_refused(
            &report(&strict, "build").await,
            &["protected at the provider", "ISO image", "its backups would be deleted"],
        );
        is_refused(
            &report(&strict, "old").await,
            &["created before 2026-06-15", "cx22 is no longer listed"],
        );
        let (code, ci) = report(&strict, "hz-eu/server/44").await;
        assert_eq!(code, Some(0), "{ci}");
        let put_back = ci["to"]["snapshot"]["put_back"].to_string();
        for expected in ["private address 10.0.0.9", "volume 8"] {
            assert!(put_back.contains(expected), "{expected}: {put_back}");
        }
        clouds_were_only_read(&strict).await;

        let accepting = terminal(&format!("{CONFIGURATION}accept = \"new-ip\"\n")).await;
        let (code, plain) = report(&accepting, "plain").await;
        assert_eq!(code, Some(0), "{plain}");
        assert!(
            plain["to"]["snapshot"]["lost"].to_string().contains("address 198.18.0.2"),
            "{plain}"
        );
        let needs = format!("{CONFIGURATION}accept = \"new-ip\"\nneeds_private_ip = true\n");
        let needs = terminal(&needs).await;
        is_refused(&report(&needs, "plain").await, &["its private address 10.110.0.4"]);
    });
}

#[test]
fn every_command_shows_the_same_figure_for_a_machine() {
    run(async {
        let configuration = format!("{CONFIGURATION}accept = \"new-ip\"\n");
        let terminal = terminal(&configuration).await;
        let savings = ["savings", "--config", "offhours.toml", "-o", "json"];
        let savings = terminal.run(&savings).await;
        let savings: Value = serde_json::from_str(&savings.stdout).unwrap();
        for name in ["plain", "ci"] {
            let rows = savings["resources"].as_array().unwrap();
            let row = rows.iter().find(|row| row["name"] == name).unwrap();
            let methods = row["methods"].as_array().unwrap();
            let method = methods.iter().find(|one| one["method"] == "hibernate").unwrap();
            let (_, found) = report(&terminal, name).await;
            assert_eq!(found["saved"], method["saved"], "{name}");
            assert!(found["saved"].as_f64().unwrap() > 0.0, "{name}");
            let shown = rehearse(&terminal, &[name]).await.stdout;
            let words = format!("saves at least {:.2} ", found["saved"].as_f64().unwrap());
            assert!(shown.contains(&words), "{words}: {shown}");
            assert!(shown.contains("Lost: "), "{shown}");
        }
    });
}

#[test]
fn what_cannot_be_rehearsed_is_said() {
    run(async {
        let terminal = terminal(CONFIGURATION).await;
        for (name, words) in [
            ("plian", "did you mean `plain`?"),
            ("orders", "follows no schedule that hibernates it"),
        ] {
            let ended = rehearse(&terminal, &[name]).await;
            assert_eq!(ended.code, Some(2), "{}", ended.stderr);
            assert!(ended.stderr.contains(words), "{}", ended.stderr);
        }
        let shown = rehearse(&terminal, &["plain"]).await;
        assert_eq!(shown.code, Some(3));
        let remedy = "accept another one each time (accept = [\"new-ip\"])";
        let words: Vec<_> = shown.stdout.split_whitespace().collect();
        assert!(words.join(" ").contains(remedy), "{}", shown.stdout);
    });
}

async fn clouds_were_only_read(terminal: &Terminal) {
    let log = terminal.simulator.log().await;
    assert!(log.iter().all(|one| one["request"]["method"] == "GET"));
    traffic::logged_ones_fit(&log);
}
