//! Images of servers, and servers made from them.

use cloud_simulator::{Act, Offer};
use serde_json::{Value, json};

use crate::client::Clouds;

/// A server with everything that can be attached to one, and the other fixtures.
const FLEET: &str = r#"
[[servers]]
id = 42
name = "web"
labels = { env = "staging" }
location = "fsn1"
server_type = "cpx22"
addresses = ["ipv4", "ipv6"]
snapshot = "2m"

[[hetzner.networks]]
id = 7
name = "internal"
members = [{ server = 42, ip = "10.0.0.9", alias_ips = ["10.0.0.10"] }]

[[hetzner.volumes]]
id = 8
name = "data"
server = 42

[[hetzner.firewalls]]
id = 9
name = "ssh-only"
servers = [42]

[[hetzner.firewalls]]
id = 10
name = "by-label"
selector = "env=staging"

[[hetzner.placement_groups]]
id = 11
name = "apart"
servers = [42]

[[hetzner.load_balancers]]
id = 12
name = "front"
targets = [{ server = 42, use_private_ip = true }]

[[hetzner.floating_ips]]
id = 13
name = "spare"
ip = "203.0.113.9"
server = 42

[[hetzner.ssh_keys]]
id = 14
name = "team"
public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI team"
"#;

async fn post(clouds: &Clouds, path: &str, body: Value) -> Value {
    clouds.send("POST", path, Some(body)).await.expect(201)
}

/// The status and the code with which a change is refused.
async fn refused(clouds: &Clouds, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
    let answer = clouds.send(method, path, body).await;
    (answer.status, answer.json()["error"]["code"].clone())
}

async fn switch_off(clouds: &Clouds) {
    clouds.send("POST", "/v1/servers/42/actions/poweroff", None).await.expect(201);
    clouds.pass(10);
}

/// Powers off the server, and returns a complete image of it.
async fn image(clouds: &Clouds) -> u64 {
    switch_off(clouds).await;
    let order = json!({"type": "snapshot", "description": "web", "labels": {"mark": "a1"}});
    let made = post(clouds, "/v1/servers/42/actions/create_image", order).await;
    assert_eq!(made["image"]["status"], "creating");
    assert_eq!(made["image"]["image_size"], Value::Null);
    clouds.pass(120);
    made["image"]["id"].as_u64().unwrap()
}

/// The body of a request that recreates the server.
async fn body_of(clouds: &Clouds, image: u64) -> Value {
    let ips = clouds.get("/v1/primary_ips").await["primary_ips"].clone();
    let of = |kind: &str| {
        let ips = ips.as_array().unwrap();
        ips.iter().find(|ip| ip["type"] == kind).unwrap()["id"].clone()
    };
    json!({
        "name": "web",
        "server_type": "cpx22",
        "image": image.to_string(),
        "location": "fsn1",
        "start_after_create": false,
        "placement_group": 11,
        "ssh_keys": ["team"],
        "volumes": [8],
        "firewalls": [{"firewall": 9}],
        "labels": {"env": "staging"},
        "public_net": {
            "enable_ipv4": true, "ipv4": of("ipv4"),
            "enable_ipv6": true, "ipv6": of("ipv6"),
        },
    })
}

/// Deletes the server, but keeps its addresses.
async fn delete(clouds: &Clouds) {
    let ips = clouds.get("/v1/primary_ips").await["primary_ips"].clone();
    for ip in ips.as_array().unwrap() {
        assert_eq!(ip["auto_delete"], true);
        let path = format!("/v1/primary_ips/{}", ip["id"]);
        let kept = clouds.send("PUT", &path, Some(json!({"auto_delete": false}))).await;
        assert_eq!(kept.expect(200)["primary_ip"]["auto_delete"], false);
    }
    let deleted = clouds.send("DELETE", "/v1/servers/42", None).await.expect(200);
    assert_eq!(deleted["action"]["command"], "delete_server");
    assert_eq!(clouds.get("/v1/servers/42").await["server"]["status"], "deleting");
    clouds.pass(5);
    clouds.send("GET", "/v1/servers/42", None).await.expect(404);
}

#[tokio::test]
async fn a_server_made_again_from_its_image_has_everything_that_it_had() {
    let clouds = Clouds::with(FLEET).await;
    let before = clouds.get("/v1/servers/42").await["server"].clone();
    let image = image(&clouds).await;
    let kept = clouds.state("hz/server/42")["contents"].clone();
    delete(&clouds).await;
    clouds.pass(5);

    let body = body_of(&clouds, image).await;
    let made = post(&clouds, "/v1/servers", body).await;
    assert_eq!(made["server"]["status"], "initializing");
    assert_eq!(made["root_password"], Value::Null);
    let id = made["server"]["id"].as_u64().unwrap();
    assert_ne!(id, 42);
    clouds.pass(20);
    let attach = json!({"network": 7, "ip": "10.0.0.9", "alias_ips": ["10.0.0.10"]});
    post(&clouds, &format!("/v1/servers/{id}/actions/attach_to_network"), attach).await;
    let target = json!({"type": "server", "server": {"id": id}, "use_private_ip": true});
    post(&clouds, "/v1/load_balancers/12/actions/add_target", target).await;
    post(&clouds, "/v1/floating_ips/13/actions/assign", json!({"server": id})).await;

    let after = clouds.get(&format!("/v1/servers/{id}")).await["server"].clone();
    assert_eq!(after["status"], "off");
    for field in [
        "name",
        "labels",
        "location",
        "server_type",
        "public_net",
        "volumes",
        "load_balancers",
        "primary_disk_size",
    ] {
        assert_eq!(after[field], before[field], "{field}");
    }
    assert_eq!(after["private_net"][0]["ip"], "10.0.0.9");
    assert_ne!(after["private_net"][0]["mac_address"], before["private_net"][0]["mac_address"]);
    assert_eq!(after["placement_group"]["servers"], json!([id]));
    let disk = || clouds.state(&format!("hz/server/{id}"))["contents"].clone();
    assert_eq!(disk(), kept);
    clouds.send("POST", &format!("/v1/servers/{id}/actions/poweron"), None).await.expect(201);
    clouds.pass(10);
    assert_ne!(disk(), kept);
}

#[tokio::test]
async fn a_server_shows_its_image_as_it_is_now() {
    let clouds = Clouds::with(FLEET).await;
    let image = image(&clouds).await;
    delete(&clouds).await;
    clouds.pass(5);
    let body = body_of(&clouds, image).await;
    post(&clouds, "/v1/servers", body).await;
    let shown = async || clouds.get("/v1/servers").await["servers"][0]["image"].clone();
    assert_eq!(shown().await["description"], "web");
    let changed = Some(json!({"description": "renamed"}));
    clouds.send("PUT", &format!("/v1/images/{image}"), changed).await.expect(200);
    assert_eq!(shown().await["description"], "renamed");
}

#[tokio::test]
async fn an_address_that_is_not_kept_goes_with_its_server() {
    let clouds = Clouds::with(FLEET).await;
    switch_off(&clouds).await;
    clouds.send("DELETE", "/v1/servers/42", None).await.expect(200);
    clouds.pass(5);
    let ips = clouds.get("/v1/primary_ips").await["primary_ips"].clone();
    assert_eq!(ips, json!([]));
    let volume = clouds.get("/v1/volumes/8").await["volume"].clone();
    assert_eq!(volume["server"], Value::Null);
    // Its address in a network stays taken a little longer.
    let members = || async { clouds.get("/v1/networks/7").await["network"]["servers"].clone() };
    assert_eq!(members().await, json!([42]));
    clouds.pass(5);
    assert_eq!(members().await, json!([]));
}

#[tokio::test]
async fn an_image_of_a_running_server_does_not_hold_what_is_written_later() {
    let clouds = Clouds::with(FLEET).await;
    let before = clouds.state("hz/server/42")["contents"].clone();
    post(&clouds, "/v1/servers/42/actions/create_image", json!({})).await;
    clouds.pass(120);
    assert_eq!(clouds.simulator.images()[0]["contents"], before);
    assert_ne!(clouds.state("hz/server/42")["contents"], before);
}

#[tokio::test]
async fn an_image_that_fails_says_so() {
    let fleet = FLEET.replace("snapshot = \"2m\"", "snapshot_failures = 1");
    let clouds = Clouds::with(&fleet).await;
    let id = image(&clouds).await;
    let failed = clouds.get(&format!("/v1/images/{id}")).await["image"].clone();
    assert_eq!(failed["status"], "unavailable");
    let log = clouds.get("/v1/servers/42/actions?sort=id:desc").await["actions"].clone();
    assert_eq!((&log[0]["command"], &log[0]["status"]), (&json!("create_image"), &json!("error")));
    let body = body_of(&clouds, id).await;
    assert_eq!(
        refused(&clouds, "POST", "/v1/servers", Some(body)).await,
        (422, json!("invalid_input"))
    );
}

#[tokio::test]
async fn an_image_is_found_by_its_label_and_is_protected() {
    let clouds = Clouds::with(FLEET).await;
    let id = image(&clouds).await;
    let listed = |selector: &'static str| {
        let clouds = &clouds;
        async move {
            let path = format!("/v1/images?type=snapshot&label_selector={selector}");
            clouds.get(&path).await["images"].as_array().unwrap().len()
        }
    };
    assert_eq!((listed("mark==a1").await, listed("mark==b2").await), (1, 0));
    let path = format!("/v1/images/{id}");
    post(&clouds, &format!("{path}/actions/change_protection"), json!({"delete": true})).await;
    assert_eq!(clouds.get(&path).await["image"]["protection"]["delete"], true);
    assert_eq!(refused(&clouds, "DELETE", &path, None).await, (423, json!("protected")));
    post(&clouds, &format!("{path}/actions/change_protection"), json!({"delete": false})).await;
    clouds.send("DELETE", &path, None).await.expect(204);
    clouds.send("GET", &path, None).await.expect(404);
    let log = clouds.get(&format!("{path}/actions")).await["actions"].clone();
    assert_eq!(log[0]["resources"], json!([{"id": id, "type": "image"}]));
}

#[tokio::test]
async fn a_person_deletes_an_image_that_is_protected() {
    let clouds = Clouds::with(FLEET).await;
    let id = image(&clouds).await;
    let path = format!("/v1/images/{id}");
    let protect = format!("{path}/actions/change_protection");
    post(&clouds, &protect, json!({"delete": true})).await;
    let deleted = |id: u64| {
        let body = json!({"delete_image": {"account": "hz", "id": id}});
        clouds.send("POST", "/_simulator/people", Some(body))
    };
    deleted(id).await.expect(204);
    clouds.send("GET", &path, None).await.expect(404);
    deleted(id).await.expect(404);
    assert!(clouds.simulator.images().is_empty());
}

#[tokio::test]
async fn a_protected_or_locked_server_is_not_deleted() {
    let fleet = FLEET.replace("snapshot = \"2m\"", "has = [\"protection\"]");
    let clouds = Clouds::with(&fleet).await;
    assert_eq!(refused(&clouds, "DELETE", "/v1/servers/42", None).await, (423, json!("protected")));
    let path = "/v1/servers/42/actions/change_protection";
    post(&clouds, path, json!({"delete": false, "rebuild": false})).await;
    post(&clouds, "/v1/servers/42/actions/create_image", json!({})).await;
    assert_eq!(refused(&clouds, "DELETE", "/v1/servers/42", None).await, (423, json!("locked")));
}

#[tokio::test]
async fn what_a_new_server_may_not_have_is_refused_and_nothing_is_made() {
    let clouds = Clouds::with(FLEET).await;
    let id = image(&clouds).await;
    let body = body_of(&clouds, id).await;
    let changed = |key: &str, value: Value| {
        let mut body = body.clone();
        body["name"] = json!("other");
        body["volumes"] = json!([]);
        body["public_net"] = json!({});
        body[key] = value;
        body
    };
    let taken = body["public_net"].clone();
    for (body, status, code) in [
        (changed("name", json!("web")), 409, "uniqueness_error"),
        (changed("name", json!("a b")), 422, "invalid_input"),
        (changed("public_net", taken), 422, "primary_ip_assigned"),
        (changed("volumes", json!([8])), 422, "invalid_input"),
        (changed("image", json!("1")), 422, "invalid_input"),
        (changed("server_type", json!("cax11")), 422, "invalid_input"),
        (changed("server_type", json!("cx99")), 422, "invalid_input"),
        (changed("ssh_keys", json!(["missing"])), 422, "invalid_input"),
        (changed("colour", json!("red")), 422, "invalid_input"),
    ] {
        let answer = refused(&clouds, "POST", "/v1/servers", Some(body.clone())).await;
        assert_eq!(answer, (status, json!(code)), "{body}");
    }
    clouds.simulator.set_offer("cpx22", Some("fsn1"), &Offer::Unavailable).unwrap();
    let body = changed("labels", json!({}));
    let answer = refused(&clouds, "POST", "/v1/servers", Some(body)).await;
    assert_eq!(answer, (412, json!("resource_unavailable")));
    assert_eq!(clouds.get("/v1/servers").await["servers"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_server_for_which_there_is_no_place_after_all_disappears() {
    let fleet = FLEET.replace("snapshot = \"2m\"", "creation_failures = 1");
    let clouds = Clouds::with(&fleet).await;
    let image = image(&clouds).await;
    delete(&clouds).await;
    for disappears in [true, false] {
        let body = body_of(&clouds, image).await;
        let made = post(&clouds, "/v1/servers", body).await;
        let path = format!("/v1/servers/{}", made["server"]["id"]);
        clouds.pass(20);
        let status = clouds.send("GET", &path, None).await.status;
        assert_eq!(status == 404, disappears);
        let action = clouds.get(&format!("/v1/actions/{}", made["action"]["id"])).await;
        assert_eq!(action["action"]["status"] == "error", disappears);
    }
}

#[tokio::test]
async fn a_firewall_is_applied_a_little_later() {
    let clouds = Clouds::with(FLEET).await;
    let image = image(&clouds).await;
    delete(&clouds).await;
    let body = body_of(&clouds, image).await;
    let made = post(&clouds, "/v1/servers", body).await;
    let path = format!("/v1/servers/{}", made["server"]["id"]);
    let shown = || async {
        let server = clouds.get(&path).await;
        server["server"]["public_net"]["firewalls"].clone()
    };
    let with = |status: &str| json!([{"id": 9, "status": status}, {"id": 10, "status": status}]);
    assert_eq!(shown().await, with("pending"));
    clouds.pass(3);
    assert_eq!(shown().await, with("applied"));
}

#[tokio::test]
async fn a_sleeping_server_costs_its_image_and_its_address() {
    let clouds = Clouds::with(FLEET).await;
    let image = image(&clouds).await;
    delete(&clouds).await;
    clouds.pass(10 * 3600 - 135);
    let body = body_of(&clouds, image).await;
    post(&clouds, "/v1/servers", body).await;
    clouds.pass(3600);
    // 135 s are one started hour. The image is 4.5 GB.
    assert_eq!(clouds.charged("hz/server/42", "cpx22"), 1);
    assert_eq!(clouds.charged("hz/server/42", "primary-ipv4"), 11);
    assert_eq!(clouds.charged("hz/server/42", "snapshot"), 4500 * 11);
    assert_eq!(clouds.charged("hz/server/5", "cpx22"), 1);
    // Had nothing been stopped, there would have been one server, running all the time.
    assert_eq!(clouds.charged_if_left_running("hz/", "cpx22"), 11);
}

#[tokio::test]
async fn a_copy_that_a_person_deletes_is_the_end_of_the_machine() {
    let clouds = Clouds::with(FLEET).await;
    let image = image(&clouds).await;
    delete(&clouds).await;
    let body = body_of(&clouds, image).await;
    let made = post(&clouds, "/v1/servers", body).await;
    clouds.pass(3600);
    let copy = format!("hz/server/{}", made["server"]["id"]);
    clouds.simulator.person(&copy.parse().unwrap(), Act::Delete).unwrap();
    clouds.pass(7200);
    assert_eq!(clouds.charged_if_left_running("hz/", "cpx22"), 2);
}

#[tokio::test]
async fn what_is_made_from_an_image_that_does_not_boot_is_off_again_after_each_start() {
    let clouds = Clouds::with(FLEET).await;
    let web = "hz/server/42".parse().unwrap();
    let breaks = Act::BreakCopies { breaks: true };
    clouds.simulator.person(&web, breaks).unwrap();
    let image = image(&clouds).await;
    delete(&clouds).await;
    let body = body_of(&clouds, image).await;
    let made = post(&clouds, "/v1/servers", body).await;
    let path = format!("/v1/servers/{}", made["server"]["id"]);
    clouds.pass(20);
    for _ in 0..2 {
        clouds.send("POST", &format!("{path}/actions/poweron"), None).await.expect(201);
        clouds.pass(12);
        assert_eq!(clouds.get(&path).await["server"]["status"], "running");
        clouds.pass(40);
        assert_eq!(clouds.get(&path).await["server"]["status"], "off");
    }
}

#[tokio::test]
async fn a_server_shows_its_image_as_that_is_now() {
    let clouds = Clouds::with(FLEET).await;
    let image = image(&clouds).await;
    let protection = format!("/v1/images/{image}/actions/change_protection");
    post(&clouds, &protection, json!({"delete": true})).await;
    delete(&clouds).await;
    let body = body_of(&clouds, image).await;
    let made = post(&clouds, "/v1/servers", body).await;
    let path = format!("/v1/servers/{}", made["server"]["id"]);
    let shown = async || clouds.get(&path).await["server"]["image"].clone();
    assert_eq!(shown().await["protection"]["delete"], true);
    post(&clouds, &protection, json!({"delete": false})).await;
    assert_eq!(shown().await["protection"]["delete"], false);
    let account = "hz".parse().unwrap();
    for word in [Some("unavailable"), None] {
        assert!(clouds.simulator.show_image_as(&account, image, word));
        assert_eq!(shown().await["status"], word.unwrap_or("available"));
    }
}
