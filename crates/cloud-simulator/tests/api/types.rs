//! The types of Hetzner servers.

use cloud_simulator::{Act, Offer};
use serde_json::{Value, json};

use crate::client::{Answer, Clouds};

/// A server that is off and has kept the disk of the smaller type, and a running one.
const FLEET: &str = r#"
[[servers]]
id = 42
name = "builder"
server_type = "ccx23"
disk = 80
status = "off"
created = "2026-06-14T10:00:00Z"

[[servers]]
id = 43
name = "running"
server_type = "cpx22"
stays_off_after_change = true
"#;

async fn change(clouds: &Clouds, id: u64, body: Value) -> Answer {
    let path = format!("/v1/servers/{id}/actions/change_type");
    clouds.send("POST", &path, Some(body)).await
}

async fn change_to(clouds: &Clouds, server_type: &str) -> Answer {
    let body = json!({"server_type": server_type, "upgrade_disk": false});
    change(clouds, 42, body).await
}

/// Type, own disk, status and lock.
async fn shown(clouds: &Clouds, id: u64) -> [Value; 4] {
    let server = clouds.get(&format!("/v1/servers/{id}")).await["server"].clone();
    let name = server["server_type"]["name"].clone();
    let field = |field: &str| server[field].clone();
    [name, field("primary_disk_size"), field("status"), field("locked")]
}

#[track_caller]
fn check_refusal(answer: Answer, status: u16, code: &str) {
    let error = answer.expect(status)["error"].clone();
    assert_eq!(error["code"], code, "{error}");
}

#[tokio::test]
async fn a_change_of_type_migrates_the_server_and_starts_it_again() {
    let clouds = Clouds::with(FLEET).await;
    let action = change_to(&clouds, "cpx22").await.expect(201)["action"].clone();
    assert_eq!(action["command"], "change_server_type");
    assert_eq!(action["status"], "running");
    let moving = [json!("ccx23"), json!(80), json!("migrating"), json!(true)];
    assert_eq!(shown(&clouds, 42).await, moving);
    check_refusal(change_to(&clouds, "cpx32").await, 423, "locked");
    clouds.pass(89);
    assert_eq!(shown(&clouds, 42).await, moving);
    clouds.pass(1);
    let small = [json!("cpx22"), json!(80), json!("running"), json!(false)];
    assert_eq!(shown(&clouds, 42).await, small);
    let path = format!("/v1/actions/{}", action["id"]);
    assert_eq!(clouds.get(&path).await["action"]["status"], "success");
    let server = clouds.get("/v1/servers/42").await["server"].clone();
    assert_eq!(server["created"], "2026-06-14T10:00:00Z");
}

#[tokio::test]
async fn a_fleet_may_say_that_a_server_stays_off() {
    let clouds = Clouds::with(FLEET).await;
    let act = |act| clouds.simulator.person(&"hz/server/43".parse().unwrap(), act);
    act(Act::PowerOff).unwrap();
    clouds.pass(10);
    let plan = "cpx32".to_owned();
    act(Act::ChangePlan { plan, disk: true }).unwrap();
    clouds.pass(90);
    let large = [json!("cpx32"), json!(160), json!("off"), json!(false)];
    assert_eq!(shown(&clouds, 43).await, large);
    // The disk was upgraded permanently.
    let back = json!({"server_type": "cpx22", "upgrade_disk": false});
    check_refusal(change(&clouds, 43, back).await, 422, "invalid_server_type");
}

#[tokio::test]
async fn both_fields_are_required() {
    let clouds = Clouds::with(FLEET).await;
    for (body, field) in [
        (json!({"server_type": "cpx22"}), "upgrade_disk"),
        (json!({"upgrade_disk": false}), "server_type"),
        (json!({"server_type": null, "upgrade_disk": false}), "server_type"),
    ] {
        let error = change(&clouds, 42, body).await.expect(422)["error"].clone();
        assert_eq!(error["code"], "invalid_input");
        assert_eq!(error["details"]["fields"][0]["name"], field);
    }
    let path = "/v1/servers/42/actions/change_type";
    check_refusal(clouds.send("POST", path, None).await, 400, "json_error");
    let unknown = change(&clouds, 9, json!({})).await;
    check_refusal(unknown, 404, "not_found");
    // The type's id works as well as its name, as text or as a number.
    let by_number = json!({"server_type": 96, "upgrade_disk": false});
    change(&clouds, 42, by_number).await.expect(201);
    clouds.pass(90);
    assert_eq!(shown(&clouds, 42).await[0], "ccx13");
    let off = Act::SetStatus { status: "off".to_owned() };
    let server = "hz/server/42".parse().unwrap();
    clouds.simulator.person(&server, off).unwrap();
    change_to(&clouds, "109").await.expect(201);
    clouds.pass(90);
    assert_eq!(shown(&clouds, 42).await[0], "cpx22");
}

#[tokio::test]
async fn a_running_server_and_a_type_that_does_not_fit_are_refused() {
    let clouds = Clouds::with(FLEET).await;
    let running = json!({"server_type": "cpx32", "upgrade_disk": false});
    check_refusal(change(&clouds, 43, running).await, 422, "server_not_stopped");
    // Unknown, withdrawn, other architecture, disk too small, deprecated here, and the current
    // type.
    for name in ["huge", "cx32", "cax11", "cpx12", "cpx31", "ccx23"] {
        check_refusal(change_to(&clouds, name).await, 422, "invalid_server_type");
    }
    let same_disk = json!({"server_type": "cpx22", "upgrade_disk": true});
    check_refusal(change(&clouds, 42, same_disk).await, 422, "invalid_server_type");
    assert_eq!(shown(&clouds, 42).await[2], "off");
}

#[tokio::test]
async fn a_location_without_room_is_reported_as_such() {
    let clouds = Clouds::with(FLEET).await;
    check_refusal(change_to(&clouds, "cx43").await, 412, "resource_unavailable");
    clouds.simulator.set_offer("cx43", Some("fsn1"), &Offer::Available).unwrap();
    let taken = json!({
        "resource": "hz/server/42",
        "act": {"take_room": {"refusals": 1, "failures": 1}},
    });
    clouds.send("POST", "/_simulator/people", Some(taken)).await.expect(204);
    check_refusal(change_to(&clouds, "cx43").await, 412, "resource_unavailable");
    let action = change_to(&clouds, "cx43").await.expect(201)["action"].clone();
    clouds.pass(90);
    let path = format!("/v1/actions/{}", action["id"]);
    let failed = clouds.get(&path).await["action"].clone();
    assert_eq!(failed["status"], "error");
    assert_eq!(failed["error"]["code"], "action_failed");
    let as_before = [json!("ccx23"), json!(80), json!("off"), json!(false)];
    assert_eq!(shown(&clouds, 42).await, as_before);
    change_to(&clouds, "cx43").await.expect(201);
}

#[tokio::test]
async fn the_types_come_in_pages() {
    let clouds = Clouds::with("").await;
    let page = clouds.get("/v1/server_types?per_page=5&page=2").await;
    assert_eq!(page["server_types"].as_array().unwrap().len(), 5);
    assert_eq!(page["meta"]["pagination"]["next_page"], 3);
}
