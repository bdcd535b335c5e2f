//! `offhours rehearse`: what stands in the way of hibernating a machine, judging by what is around
//! it.

use std::process::Output;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::{
    programs::SimulatorProgram,
    support::{instant, program, run},
    traffic,
};

/// A Droplet and servers with what the clouds can attach to them, and a plain Droplet.
const FLEET: &str = r#"
[[accounts]]
name = "digitalocean"
provider = "digitalocean"
token = "secret-do-token"
read_token = "secret-do-reads"

[[accounts]]
name = "hetzner"
provider = "hetzner"
token = "secret-hz-token"
read_token = "secret-hz-reads"

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

async fn clouds() -> SimulatorProgram {
    SimulatorProgram::start(FLEET, instant("2026-11-23T12:00:00Z")).await
}

/// Runs the command with read-only tokens. Returns the exit code, standard output and standard
/// error.
async fn rehearse(clouds: &SimulatorProgram, arguments: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = Command::new(program("offhours"))
        .arg("rehearse")
        .args(arguments)
        .env("DIGITALOCEAN_TOKEN", "secret-do-reads")
        .env("HCLOUD_TOKEN", "secret-hz-reads")
        .env("OFFHOURS_SIMULATE", &clouds.url)
        .output()
        .await
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (stdout, stderr) = (text(stdout), text(stderr));
    assert!(!stdout.contains("secret-") && !stderr.contains("secret-"));
    (status.code().unwrap(), stdout, stderr)
}

/// Returns the exit code and the rehearsal as JSON.
async fn report(clouds: &SimulatorProgram, arguments: &[&str]) -> (i32, Value) {
    let arguments = [arguments, &["--key", "team", "-o", "json"]].concat();
    let (code, stdout, stderr) = rehearse(clouds, &arguments).await;
    assert_eq!(stderr, "");
    (code, serde_json::from_str(&stdout).unwrap())
}

#[track_caller]
fn has_obstacles(report: &Value, expected: &[&str]) {
    let obstacles = report["obstacles"].as_array().unwrap();
    let what = obstacles.iter().map(|one| one["what"].as_str().unwrap());
    let what: Vec<_> = what.collect();
    assert_eq!(what.len(), expected.len(), "{what:#?}");
    for expected in expected {
        assert!(what.iter().any(|what| what.contains(expected)), "{expected}: {what:#?}");
    }
}

#[test]
fn what_is_around_a_droplet_is_found_and_what_is_accepted_stands_in_no_way() {
    run(async {
        let clouds = clouds().await;
        let (code, web) = report(&clouds, &["digitalocean/droplet/1"]).await;
        assert_eq!((code, &web["fits"]), (3, &json!(false)));
        has_obstacles(
            &web,
            &[
                "its public address 2001:db8:1::1 would be lost",
                "database orders names it",
                "database by-address names it",
                "a rule of firewall lets-in names it",
                "alert policy busy names it",
                "its backups would be deleted",
                "no firewall applies to it by a tag",
            ],
        );
        let put_back = web["put_back"].to_string();
        for expected in ["203.0.113.20", "volume 506f78a4", "firewall by-number", "front"] {
            assert!(put_back.contains(expected), "{expected}: {put_back}");
        }

        let lost = web["lost"].to_string();
        let outgoing = "address 198.18.0.1, from which its outgoing traffic comes";
        assert!(lost.contains(outgoing), "{lost}");

        let (code, plain) = report(&clouds, &["digitalocean/droplet/2"]).await;
        assert_eq!(code, 3);
        has_obstacles(&plain, &["its public address 198.18.0.2 would be lost"]);
        let accepting = ["digitalocean/droplet/2", "--accept", "new-ip"];
        let (code, plain) = report(&clouds, &accepting).await;
        assert_eq!((code, &plain["fits"]), (0, &json!(true)));
        assert_eq!(plain["snapshot_minutes"], 50);
        // The arithmetic is checked by the report's own test.
        assert_eq!(plain["month"]["snapshots"], 3.0);
        assert!(plain["month"]["saved"].as_f64().unwrap() > 34.0);
        let needs = [&accepting[..], &["--needs-private-ip"]].concat();
        has_obstacles(&report(&clouds, &needs).await.1, &["its private address 10.110.0.4"]);
        let short = [&accepting[..], &["--hours", "mon-sun 00:30-22:01"]].concat();
        has_obstacles(
            &report(&clouds, &short).await.1,
            &["its snapshot of 25 GB may take 50 min, more than a third of the 149 min"],
        );
        clouds_were_only_read(&clouds).await;
    });
}

#[test]
fn a_server_keeps_its_addresses_and_what_its_owner_protects_is_left() {
    run(async {
        let clouds = clouds().await;
        let (code, ci) = report(&clouds, &["hetzner/server/44"]).await;
        assert_eq!((code, &ci["fits"]), (0, &json!(true)), "{ci}");
        let put_back = ci["put_back"].to_string();
        assert!(put_back.contains("private address 10.0.0.9"), "{put_back}");
        assert!(put_back.contains("volume 8"), "{put_back}");
        assert_eq!(ci["snapshot_minutes"], json!(null), "Hetzner names no time");
        let (_, shown, _) = rehearse(&clouds, &["hetzner/server/44"]).await;
        let takes = "A stop would take a few minutes for its snapshot, and a start";
        assert!(shown.contains(takes), "{shown}");
        let (_, build) = report(&clouds, &["hetzner/server/42"]).await;
        has_obstacles(
            &build,
            &["protected at the provider", "ISO image", "its backups would be deleted"],
        );
        let (_, old) = report(&clouds, &["hetzner/server/43"]).await;
        has_obstacles(&old, &["created before 2026-06-15", "cx22 is no longer listed"]);
        clouds_were_only_read(&clouds).await;
    });
}

#[test]
fn people_see_each_obstacle_with_its_remedy_and_the_sum() {
    run(async {
        let clouds = clouds().await;
        let (code, shown, _) = rehearse(&clouds, &["digitalocean/droplet/2"]).await;
        assert_eq!(code, 3);
        for expected in [
            "digitalocean/droplet/2  plain  g-2vcpu-8gb in fra1",
            "It would not be hibernated:",
            "accept another one each time (accept = [\"new-ip\"], --accept new-ip)",
            "name one of the account's keys (ssh_key in its account, --key)",
            "Lost: address 198.18.0.2, its id and creation date,",
            "of a month of 730.5 h: at least 34.",
            "A stop would take up to 50 min for its snapshot, and a start would begin 26 min early.",
            "With methods = { droplet = \"hibernate\" } in its schedule,",
        ] {
            let words: Vec<_> = shown.split_whitespace().collect();
            assert!(words.join(" ").contains(&expected.replace("  ", " ")), "{expected}: {shown}");
        }
    });
}

#[test]
fn what_cannot_be_rehearsed_is_said() {
    run(async {
        let clouds = clouds().await;
        for (arguments, code, words) in [
            (&["digitalocean/droplet/9"][..], 2, "is not there"),
            (&["do-main/droplet/1"], 2, "no account `do-main`: there is digitalocean, hetzner"),
            (&["digitalocean/database/9cc10173"], 2, "only Droplets and servers"),
            (&["hetzner/server/44", "--hours", "sometimes"], 2, "invalid hours"),
        ] {
            let (found, _, stderr) = rehearse(&clouds, arguments).await;
            assert_eq!(found, code, "{stderr}");
            assert!(stderr.contains(words), "{stderr}");
        }
    });
}

async fn clouds_were_only_read(clouds: &SimulatorProgram) {
    let log = clouds.log().await;
    assert!(log.iter().all(|one| one["request"]["method"] == "GET"));
    traffic::logged_ones_fit(&log);
}
