//! The power of Hetzner servers.

use serde_json::{Value, json};

use crate::client::{Answer, Clouds};

const FLEET: &str = r#"
[[servers]]
id = 42
name = "plain"
labels = { offhours = "office" }
location = "nbg1"

[[servers]]
id = 43
name = "stubborn"
ignores_shutdown = true
"#;

async fn act(clouds: &Clouds, id: u64, word: &str) -> Answer {
    clouds.send("POST", &format!("/v1/servers/{id}/actions/{word}"), None).await
}

async fn shown(clouds: &Clouds, id: u64) -> (Value, bool) {
    let server = clouds.get(&format!("/v1/servers/{id}")).await["server"].clone();
    (server["status"].clone(), server["locked"].as_bool().unwrap())
}

#[tokio::test]
async fn a_shutdowns_success_says_only_that_the_signal_was_sent() {
    let clouds = Clouds::with(FLEET).await;
    let action = act(&clouds, 42, "shutdown").await.expect(201)["action"].clone();
    assert_eq!(action["command"], "shutdown_server");
    assert_eq!(action["status"], "running");
    assert_eq!(action["resources"], json!([{"id": 42, "type": "server"}]));
    assert_eq!(action["error"], Value::Null);
    act(&clouds, 43, "shutdown").await.expect(201);

    clouds.pass(1);
    let path = format!("/v1/actions/{}", action["id"]);
    let succeeded = clouds.get(&path).await["action"].clone();
    assert_eq!(succeeded["status"], "success");
    assert_eq!(succeeded["progress"], 100);
    assert_eq!(succeeded["finished"], "2026-11-23T07:00:01Z");
    assert_eq!(shown(&clouds, 42).await, (json!("running"), false));

    clouds.pass(14);
    assert_eq!(shown(&clouds, 42).await.0, "off");
    clouds.pass(600);
    assert_eq!(shown(&clouds, 43).await.0, "running");
}

#[tokio::test]
async fn a_server_is_locked_while_its_action_runs_and_no_longer() {
    let clouds = Clouds::with(FLEET).await;
    act(&clouds, 43, "shutdown").await.expect(201);
    let error = act(&clouds, 43, "poweroff").await.expect(423);
    assert_eq!(error["error"]["code"], "locked");
    clouds.pass(1);
    act(&clouds, 43, "poweroff").await.expect(201);
    assert_eq!(shown(&clouds, 43).await, (json!("stopping"), true));
    clouds.pass(4);
    assert_eq!(shown(&clouds, 43).await, (json!("off"), false));
    act(&clouds, 43, "poweron").await.expect(201);
    assert_eq!(shown(&clouds, 43).await, (json!("starting"), true));
    clouds.pass(10);
    assert_eq!(shown(&clouds, 43).await, (json!("running"), false));
}

#[tokio::test]
async fn a_migrating_server_takes_no_action() {
    let clouds = Clouds::with(&format!("{FLEET}status = \"migrating\"")).await;
    act(&clouds, 43, "shutdown").await.expect(423);
}

#[tokio::test]
async fn a_shutdown_before_a_power_cut_does_not_reach_the_next_boot() {
    let clouds = Clouds::with(FLEET).await;
    act(&clouds, 42, "shutdown").await.expect(201);
    clouds.pass(1);
    act(&clouds, 42, "poweroff").await.expect(201);
    clouds.pass(4);
    act(&clouds, 42, "poweron").await.expect(201);
    clouds.pass(60);
    assert_eq!(shown(&clouds, 42).await.0, "running");
}

#[tokio::test]
async fn an_action_takes_no_body() {
    let clouds = Clouds::with(FLEET).await;
    let path = "/v1/servers/42/actions/poweroff";
    clouds.send("POST", path, Some(json!({}))).await.expect(415);
    assert_eq!(shown(&clouds, 42).await, (json!("running"), false));
}

#[tokio::test]
async fn a_server_has_a_location_and_no_datacenter() {
    let clouds = Clouds::with(FLEET).await;
    let server = clouds.get("/v1/servers/42").await["server"].clone();
    assert_eq!(server["location"]["name"], "nbg1");
    assert_eq!(server.get("datacenter"), None);
    let prices = server["server_type"]["prices"].as_array().unwrap();
    let price = prices.iter().find(|price| price["location"] == "nbg1").unwrap();
    assert_eq!(price["price_monthly"]["net"], "3.7900000000");
}

#[tokio::test]
async fn actions_are_found_by_id_by_server_and_by_status() {
    let clouds = Clouds::with(FLEET).await;
    let first = act(&clouds, 42, "poweroff").await.expect(201)["action"]["id"].clone();
    clouds.pass(10);
    let second = act(&clouds, 42, "poweron").await.expect(201)["action"]["id"].clone();
    let other = act(&clouds, 43, "reboot").await.expect(201)["action"]["id"].clone();
    let ids = |page: &Value| -> Vec<Value> {
        page["actions"].as_array().unwrap().iter().map(|action| action["id"].clone()).collect()
    };
    let newest = clouds.get("/v1/servers/42/actions?sort=id:desc").await;
    assert_eq!(ids(&newest), [second.clone(), first.clone()]);
    let some = clouds.get(&format!("/v1/actions?id={first}&id={other}&id=1")).await;
    assert_eq!(ids(&some), [first.clone(), other.clone()]);
    let running = clouds.get("/v1/servers/actions?status=running").await;
    assert_eq!(ids(&running), [second, other.clone()]);
    clouds.get(&format!("/v1/servers/42/actions/{first}")).await;
    clouds.send("GET", &format!("/v1/servers/42/actions/{other}"), None).await.expect(404);
}

#[tokio::test]
async fn power_on_of_a_running_server_does_nothing() {
    let clouds = Clouds::with(FLEET).await;
    act(&clouds, 42, "poweron").await.expect(201);
    clouds.pass(1);
    assert_eq!(shown(&clouds, 42).await, (json!("running"), false));
}
