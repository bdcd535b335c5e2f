//! Snapshots of Droplets, and Droplets made from them.

use cloud_simulator::{Act, Offer};
use serde_json::{Value, json};

use crate::client::Clouds;

/// A Droplet with everything that can be attached to one, and the other fixtures.
const FLEET: &str = r#"
[[droplets]]
id = 1
name = "web"
tags = ["env:staging"]
size = "s-2vcpu-4gb"
has = ["backups", "ipv6"]
snapshot = "5m"

[[databases]]
id = "9cc10173-e9ea-4176-9dbc-a4cee4c4ff30"
name = "orders"
engine = "pg"
nodes = 1
plan = "db-s-1vcpu-2gb"
lets_in = [1]

[[digitalocean.reserved_ips]]
ip = "203.0.113.20"
droplet = 1

[[digitalocean.reserved_ips]]
ip = "2001:db8:ffff::1"
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
id = "fb6045f1-cf1d-4ca3-bfac-18832663025b"
name = "by-tag"
tags = ["env:staging"]

[[digitalocean.load_balancers]]
id = "4de7ac8b-495b-4884-9a69-1050c6793cd6"
name = "front"
droplets = [1]

[[digitalocean.load_balancers]]
id = "4de7ac8b-495b-4884-9a69-1050c6793cd7"
name = "by-tag"
tag = "env:staging"

[[digitalocean.projects]]
id = "4e1bfbc3-dc3e-41f2-a18f-1b4d7ba71679"
name = "first"
is_default = true

[[digitalocean.projects]]
id = "4e1bfbc3-dc3e-41f2-a18f-1b4d7ba71680"
name = "staging"
droplets = [1]

[[digitalocean.alerts]]
id = "78b3da62-27e5-49ba-ac70-5db0b5935c64"
droplets = [1]

[[digitalocean.ssh_keys]]
id = 512189
name = "team"
public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI team"
"#;

const VOLUME: &str = "506f78a4-e098-11e5-ad9f-000f53306ae1";

async fn act(clouds: &Clouds, id: u64, body: Value) -> Value {
    let path = format!("/v2/droplets/{id}/actions");
    clouds.send("POST", &path, Some(body)).await.expect(201)["action"].clone()
}

#[track_caller]
fn refused(answer: crate::client::Answer) -> String {
    let error = answer.expect(422);
    error["message"].as_str().unwrap().to_owned()
}

/// Powers off the Droplet, and returns the id of a snapshot of it once that is shown.
async fn snapshot(clouds: &Clouds) -> u64 {
    act(clouds, 1, json!({"type": "power_off"})).await;
    clouds.pass(20);
    act(clouds, 1, json!({"type": "snapshot", "name": "web.a1"})).await;
    clouds.pass(330);
    let listed = clouds.get("/v2/droplets/1/snapshots").await["snapshots"].clone();
    assert_eq!(listed[0]["name"], "web.a1");
    listed[0]["id"].as_u64().unwrap()
}

async fn delete(clouds: &Clouds) {
    clouds.send("DELETE", "/v2/droplets/1", None).await.expect(204);
    clouds.get("/v2/droplets/1").await;
    clouds.pass(2);
    clouds.send("GET", "/v2/droplets/1", None).await.expect(404);
}

fn body_of(snapshot: u64) -> Value {
    json!({
        "name": "web",
        "region": "fra1",
        "size": "s-2vcpu-4gb",
        "image": snapshot,
        "ssh_keys": [512_189],
        "backups": true,
        "ipv6": true,
        "monitoring": false,
        "tags": ["env:staging"],
        "volumes": [VOLUME],
    })
}

async fn create(clouds: &Clouds, body: Value) -> crate::client::Answer {
    clouds.send("POST", "/v2/droplets", Some(body)).await
}

#[tokio::test]
async fn a_droplet_made_again_from_its_snapshot_has_all_but_its_own_addresses() {
    let clouds = Clouds::with(FLEET).await;
    let before = clouds.get("/v2/droplets/1").await["droplet"].clone();
    let snapshot = snapshot(&clouds).await;
    let kept = clouds.state("do/droplet/1")["contents"].clone();
    delete(&clouds).await;
    let reserved = clouds.get("/v2/reserved_ips/203.0.113.20").await["reserved_ip"].clone();
    assert_eq!(reserved["droplet"], Value::Null);

    let made = create(&clouds, body_of(snapshot)).await.expect(202);
    assert_eq!(made["droplet"]["status"], "new");
    assert_eq!(made["droplet"]["networks"], json!({"v4": [], "v6": []}));
    let id = made["droplet"]["id"].as_u64().unwrap();
    assert_ne!(id, 1);
    let assign = json!({"type": "assign", "droplet_id": id});
    let path = "/v2/reserved_ips/203.0.113.20/actions";
    let busy = refused(clouds.send("POST", path, Some(assign.clone())).await);
    assert_eq!(busy, "Droplet already has a pending event.");
    clouds.pass(60);
    let action = &made["links"]["actions"][0];
    let action = clouds.get(&format!("/v2/actions/{}", action["id"])).await["action"].clone();
    assert_eq!((&action["type"], &action["status"]), (&json!("create"), &json!("completed")));

    let assigned = clouds.send("POST", path, Some(assign)).await.expect(201);
    assert_eq!(assigned["action"]["type"], "assign_ip");
    let named = Some(json!({"droplet_ids": [id]}));
    let path = "/v2/firewalls/bb4b2611-3d72-467b-8602-280330ecd65c/droplets";
    clouds.send("POST", path, named.clone()).await.expect(204);
    let path = "/v2/load_balancers/4de7ac8b-495b-4884-9a69-1050c6793cd6/droplets";
    clouds.send("POST", path, named.clone()).await.expect(204);
    let path = "/v2/load_balancers/4de7ac8b-495b-4884-9a69-1050c6793cd7/droplets";
    refused(clouds.send("POST", path, named).await);
    let urns = Some(json!({"resources": [format!("do:droplet:{id}")]}));
    let path = "/v2/projects/4e1bfbc3-dc3e-41f2-a18f-1b4d7ba71680/resources";
    let moved = clouds.send("POST", path, urns.clone()).await.expect(200);
    assert_eq!(moved["resources"][0]["status"], "assigned");
    let again = clouds.send("POST", path, urns).await.expect(200);
    assert_eq!(again["resources"][0]["status"], "assigned");
    clouds.pass(5);

    let after = clouds.get(&format!("/v2/droplets/{id}")).await["droplet"].clone();
    assert_eq!(after["status"], "active");
    for field in ["name", "tags", "region", "size_slug", "disk", "features", "volume_ids"] {
        assert_eq!(after[field], before[field], "{field}");
    }
    for place in [0, 1] {
        let ip = |droplet: &Value| droplet["networks"]["v4"][place]["ip_address"].clone();
        assert_ne!(ip(&after), ip(&before));
    }
    let reserved = clouds.get("/v2/reserved_ips/203.0.113.20").await["reserved_ip"].clone();
    assert_eq!(reserved["droplet"]["id"], id);
    let path = format!("/v2/droplets/{id}/firewalls");
    let firewalls = clouds.get(&path).await["firewalls"].as_array().unwrap().len();
    assert_eq!(firewalls, 2);
    // A Droplet cannot be created powered off, so its guest has already run.
    assert_ne!(clouds.state(&format!("do/droplet/{id}"))["contents"], kept);
    assert_eq!(clouds.simulator.images()[0]["contents"], kept);
}

#[tokio::test]
async fn a_snapshot_is_shown_some_time_after_its_action_is_completed() {
    let clouds = Clouds::with(FLEET).await;
    act(&clouds, 1, json!({"type": "power_off"})).await;
    clouds.pass(20);
    let action = act(&clouds, 1, json!({"type": "snapshot", "name": "web.a1"})).await;
    clouds.pass(300);
    let path = format!("/v2/droplets/1/actions/{}", action["id"]);
    assert_eq!(clouds.get(&path).await["action"]["status"], "completed");
    let shown = || async {
        let own = clouds.get("/v2/droplets/1/snapshots").await["snapshots"].clone();
        let all = clouds.get("/v2/snapshots?resource_type=droplet").await["snapshots"].clone();
        let ids = clouds.get("/v2/droplets/1").await["droplet"]["snapshot_ids"].clone();
        [own, all, ids].map(|list| list.as_array().unwrap().len())
    };
    assert_eq!(shown().await, [0, 0, 0]);
    clouds.pass(30);
    assert_eq!(shown().await, [1, 1, 1]);
    let id = clouds.get("/v2/snapshots").await["snapshots"][0]["id"].clone();
    let id = id.as_str().unwrap();
    let image = clouds.get(&format!("/v2/images/{id}")).await["image"].clone();
    assert_eq!((&image["type"], &image["status"]), (&json!("snapshot"), &json!("available")));
    clouds.send("DELETE", &format!("/v2/snapshots/{id}"), None).await.expect(204);
    assert_eq!(shown().await, [0, 0, 0]);
}

#[tokio::test]
async fn a_snapshot_that_fails_leaves_no_trace_but_its_action() {
    let fleet = FLEET.replace("snapshot = \"5m\"", "snapshot_failures = 1");
    let clouds = Clouds::with(&fleet).await;
    let action = act(&clouds, 1, json!({"type": "snapshot"})).await;
    clouds.pass(600);
    let path = format!("/v2/actions/{}", action["id"]);
    assert_eq!(clouds.get(&path).await["action"]["status"], "errored");
    assert_eq!(clouds.get("/v2/snapshots").await["snapshots"], json!([]));
}

#[tokio::test]
async fn what_a_new_droplet_may_not_have_is_refused_and_nothing_is_made() {
    let fleet = FLEET.replace("[[droplets]]", "[[droplets]]\nimage_type = \"snapshot\"");
    let clouds = Clouds::with(&fleet).await;
    let snapshot = snapshot(&clouds).await;
    let with = |key: &str, value: Value| {
        let mut body = body_of(snapshot);
        body["volumes"] = json!([]);
        body[key] = value;
        body
    };
    for (body, words) in [
        (with("image", json!(7)), "You specified an invalid image for Droplet creation."),
        (with("region", json!("mars1")), "Region is not available"),
        (with("size", json!("s-1vcpu-1gb")), "requires a larger disk"),
        (with("ssh_keys", json!([1])), "invalid SSH key"),
        (with("volumes", json!([VOLUME])), "volume is attached"),
    ] {
        let message = refused(create(&clouds, body).await);
        assert!(message.contains(words), "{message}");
    }
    clouds.simulator.set_offer("s-2vcpu-4gb", Some("fra1"), &Offer::Unavailable).unwrap();
    let message = refused(create(&clouds, with("tags", json!([]))).await);
    assert_eq!(message, "Size is not available in this region.");
    assert_eq!(clouds.get("/v2/droplets").await["meta"]["total"], 1);
}

#[tokio::test]
async fn a_team_has_no_more_droplets_than_its_limit() {
    let fleet = "[[accounts]]\nname = \"small\"\nprovider = \"digitalocean\"\n\
                 token = \"do-token\"\nserver_limit = 1\n\
                 [[droplets]]\nid = 1\nname = \"a\"\n";
    let clouds = Clouds::serve(fleet).await;
    assert_eq!(clouds.get("/v2/account").await["account"]["droplet_limit"], 1);
    let body = json!({"name": "b", "size": "s-1vcpu-1gb", "image": "debian-12-x64"});
    let message = refused(create(&clouds, body).await);
    assert!(message.ends_with("will exceed your droplet limit"), "{message}");
}

#[tokio::test]
async fn a_droplet_that_is_accepted_may_have_no_place() {
    let fleet = FLEET.replace("snapshot = \"5m\"", "creation_failures = 1");
    let clouds = Clouds::with(&fleet).await;
    let snapshot = snapshot(&clouds).await;
    delete(&clouds).await;
    for disappears in [true, false] {
        let made = create(&clouds, body_of(snapshot)).await.expect(202);
        clouds.pass(60);
        let path = format!("/v2/droplets/{}", made["droplet"]["id"]);
        let status = clouds.send("GET", &path, None).await.status;
        assert_eq!(status == 404, disappears);
    }
}

#[tokio::test]
async fn what_names_a_droplet_elsewhere_is_found() {
    let clouds = Clouds::with(FLEET).await;
    let path = "/v2/databases/9cc10173-e9ea-4176-9dbc-a4cee4c4ff30/firewall";
    assert_eq!(clouds.get(path).await["rules"][0]["value"], "1");
    let alerts = clouds.get("/v2/monitoring/alerts").await["policies"].clone();
    assert_eq!(alerts[0]["entities"], json!(["1"]));
    let policy = clouds.get("/v2/droplets/1/backups/policy").await["policy"].clone();
    assert_eq!(policy["backup_enabled"], true);
    let preview = clouds.get("/v2/droplets/1/destroy_with_associated_resources").await;
    assert_eq!(preview["reserved_ips"][0]["id"], "203.0.113.20");
    assert_eq!(preview["volumes"][0]["id"], VOLUME);
}

#[tokio::test]
async fn a_sleeping_droplet_costs_its_snapshot_and_its_reserved_address() {
    let clouds = Clouds::with(FLEET).await;
    let snapshot = snapshot(&clouds).await;
    delete(&clouds).await;
    clouds.pass(10 * 3600 - 352);
    let made = create(&clouds, body_of(snapshot)).await.expect(202);
    clouds.pass(60);
    let assign = json!({"type": "assign", "droplet_id": made["droplet"]["id"]});
    let path = "/v2/reserved_ips/203.0.113.20/actions";
    clouds.send("POST", path, Some(assign)).await.expect(201);
    clouds.pass(3540);
    // 352 s cost less than a cent, and are charged as one.
    assert_eq!(clouds.charged("do/droplet/1", "s-2vcpu-4gb"), 1);
    assert_eq!(clouds.charged("do/droplet/5", "s-2vcpu-4gb"), 3600);
    // From the deletion until it is assigned again: ten started hours.
    assert_eq!(clouds.charged("do/droplet/1", "reserved-ipv4"), 10);
    assert_eq!(clouds.charged("do/droplet/1", "snapshot"), 4500 * 11);
}

#[tokio::test]
async fn a_deleted_reserved_address_is_neither_shown_nor_billed() {
    let clouds = Clouds::with(FLEET).await;
    let address = "/v2/reserved_ips/203.0.113.20";
    let is_shown = async || clouds.get("/v2/droplets").await.to_string().contains("203.0.113.20");
    assert!(is_shown().await);
    clouds.send("DELETE", address, None).await.expect(204);
    assert!(!is_shown().await);

    let clouds = Clouds::with(FLEET).await;
    let unassign = json!({"type": "unassign"});
    clouds.send("POST", &format!("{address}/actions"), Some(unassign)).await.expect(201);
    clouds.pass(60);
    clouds.send("DELETE", address, None).await.expect(204);
    clouds.pass(10 * 3600);
    assert_eq!(clouds.charged("do/droplet/1", "reserved-ipv4"), 1);
}

#[tokio::test]
async fn a_copy_that_a_person_deletes_is_the_end_of_the_droplet() {
    let clouds = Clouds::with(FLEET).await;
    let snapshot = snapshot(&clouds).await;
    delete(&clouds).await;
    let made = create(&clouds, body_of(snapshot)).await.expect(202);
    clouds.pass(3600);
    let copy = format!("do/droplet/{}", made["droplet"]["id"]);
    clouds.simulator.person(&copy.parse().unwrap(), Act::Delete).unwrap();
    clouds.pass(7200);
    let left_running = clouds.charged_if_left_running("do/", "s-2vcpu-4gb");
    assert_eq!(left_running, 3600 + 352);
}

#[tokio::test]
async fn what_belongs_to_a_droplet_shows_in_its_state_until_it_is_gone() {
    let clouds = Clouds::with(FLEET).await;
    let attached = |id: u64| {
        let droplet = format!("do/droplet/{id}").parse().unwrap();
        clouds.simulator.resource(&droplet).unwrap()["attached"].clone()
    };
    let vpc = "VPC 760e09ef-dc84-41e8-981e-3cfdfeaae000";
    let expected = json!([
        vpc,
        "firewall bb4b2611-3d72-467b-8602-280330ecd65c",
        "load balancer 4de7ac8b-495b-4884-9a69-1050c6793cd6",
        "project 4e1bfbc3-dc3e-41f2-a18f-1b4d7ba71680",
        "reserved IP 2001:db8:ffff::1",
        "reserved IP 203.0.113.20",
        format!("volume {VOLUME}"),
    ]);
    assert_eq!(attached(1), expected);
    let snapshot = snapshot(&clouds).await;
    delete(&clouds).await;
    let made = create(&clouds, body_of(snapshot)).await.expect(202);
    let expected =
        json!([vpc, "project 4e1bfbc3-dc3e-41f2-a18f-1b4d7ba71679", format!("volume {VOLUME}"),]);
    assert_eq!(attached(made["droplet"]["id"].as_u64().unwrap()), expected);
}

#[tokio::test]
async fn a_droplet_shows_its_snapshot_by_its_new_name() {
    let clouds = Clouds::with(FLEET).await;
    let snapshot = snapshot(&clouds).await;
    delete(&clouds).await;
    create(&clouds, body_of(snapshot)).await.expect(202);
    let shown = async || clouds.get("/v2/droplets").await["droplets"][0]["image"]["name"].clone();
    assert_eq!(shown().await, "web.a1");
    let changed = Some(json!({"name": "renamed"}));
    clouds.send("PUT", &format!("/v2/images/{snapshot}"), changed).await.expect(200);
    assert_eq!(shown().await, "renamed");
}

#[tokio::test]
async fn a_volume_is_detached_only_from_the_droplet_that_has_it() {
    let other = "[[droplets]]\nid = 2\nname = \"other\"\n";
    let clouds = Clouds::with(&format!("{FLEET}\n{other}")).await;
    let volumes = async || clouds.get("/v2/droplets").await["droplets"][0]["volume_ids"].clone();
    assert_eq!(volumes().await, json!([VOLUME]));
    let path = format!("/v2/volumes/{VOLUME}/actions");
    let detach = |id: u64| Some(json!({"type": "detach", "droplet_id": id}));
    refused(clouds.send("POST", &path, detach(2)).await);
    assert_eq!(volumes().await, json!([VOLUME]));
    clouds.send("POST", &path, detach(1)).await.expect(202);
    assert_eq!(volumes().await, json!([]));
}

#[tokio::test]
async fn a_droplet_that_no_project_names_is_in_the_default_one() {
    let fleet = FLEET.replace("name = \"staging\"\ndroplets = [1]", "name = \"staging\"");
    let clouds = Clouds::with(&fleet).await;
    let path = "/v2/projects/4e1bfbc3-dc3e-41f2-a18f-1b4d7ba71679/resources";
    let resources = clouds.get(path).await["resources"].clone();
    assert_eq!(resources[0]["urn"], "do:droplet:1");
}

#[tokio::test]
async fn what_is_made_from_a_snapshot_that_does_not_boot_is_off_again_after_each_start() {
    let fleet = FLEET.replace("snapshot = \"5m\"", "copies_break = true");
    let clouds = Clouds::with(&fleet).await;
    let snapshot = snapshot(&clouds).await;
    delete(&clouds).await;
    let made = create(&clouds, body_of(snapshot)).await.expect(202);
    let id = made["droplet"]["id"].as_u64().unwrap();
    let path = format!("/v2/droplets/{id}");
    let status = async || clouds.get(&path).await["droplet"]["status"].clone();
    clouds.pass(61);
    assert_eq!(status().await, "active");
    clouds.pass(40);
    assert_eq!(status().await, "off");
    act(&clouds, id, json!({"type": "power_on"})).await;
    clouds.pass(20);
    assert_eq!(status().await, "active");
    clouds.pass(40);
    assert_eq!(status().await, "off");
    // Once a person has repaired it, it stays on.
    let droplet = format!("do/droplet/{id}").parse().unwrap();
    let mend = Act::BreakCopies { breaks: false };
    clouds.simulator.person(&droplet, mend).unwrap();
    act(&clouds, id, json!({"type": "power_on"})).await;
    clouds.pass(3600);
    assert_eq!(status().await, "active");
}

#[tokio::test]
async fn a_person_who_breaks_what_is_made_later_leaves_the_machine_as_it_is() {
    let clouds = Clouds::with(FLEET).await;
    let droplet = "do/droplet/1".parse().unwrap();
    let acts = [Act::BreakCopies { breaks: true }, Act::Snapshot { name: "mine".to_owned() }];
    for act in acts {
        clouds.simulator.person(&droplet, act).unwrap();
    }
    clouds.pass(3600);
    let shown = clouds.get("/v2/droplets/1").await["droplet"].clone();
    assert_eq!(shown["status"], "active");
    let listed = clouds.get("/v2/droplets/1/snapshots").await["snapshots"].clone();
    assert_eq!(listed[0]["name"], "mine");
}

#[tokio::test]
async fn a_snapshot_that_is_complete_may_never_be_shown() {
    let fleet = FLEET.replace("snapshot = \"5m\"", "snapshots_unlisted = 1");
    let clouds = Clouds::with(&fleet).await;
    let mut numbers = Vec::new();
    for _ in 0..2 {
        act(&clouds, 1, json!({"type": "snapshot", "name": "web"})).await;
        clouds.pass(7 * 24 * 3600);
        let listed = clouds.get("/v2/droplets/1/snapshots").await["snapshots"].clone();
        numbers.push(listed.as_array().unwrap().len());
    }
    assert_eq!(numbers, [0, 1]);
    assert_eq!(clouds.simulator.images().len(), 2);
}

#[tokio::test]
async fn a_person_tags_a_snapshot_and_takes_the_tag_away() {
    let clouds = Clouds::with(FLEET).await;
    let snapshot = snapshot(&clouds).await;
    let account = "do".parse().unwrap();
    for (is_given, tags) in [(true, json!(["offhours:off"])), (false, json!([]))] {
        let label = ("offhours", "off");
        assert!(clouds.simulator.label_image(&account, snapshot, label, is_given));
        let shown = clouds.get(&format!("/v2/snapshots/{snapshot}")).await;
        assert_eq!(shown["snapshot"]["tags"], tags);
    }
}
