//! The power of Droplets, and what else their API shows.

use serde_json::{Value, json};

use crate::client::{Answer, Clouds};

const FLEET: &str = r#"
[[droplets]]
id = 1
name = "plain"
tags = ["web"]

[[droplets]]
id = 2
name = "stubborn"
tags = ["web"]
ignores_shutdown = true

[[droplets]]
id = 3
name = "resting"
status = "off"

[[droplets]]
id = 4
name = "wedged"
ignores_shutdown = true
shutdown_error = "2m"
"#;

async fn act(clouds: &Clouds, id: u64, body: Value) -> Answer {
    clouds.send("POST", &format!("/v2/droplets/{id}/actions"), Some(body)).await
}

async fn shown(clouds: &Clouds, id: u64) -> (Value, bool) {
    let droplet = clouds.get(&format!("/v2/droplets/{id}")).await["droplet"].clone();
    (droplet["status"].clone(), droplet["locked"].as_bool().unwrap())
}

#[tokio::test]
async fn a_power_off_completes_before_the_status_shows_it() {
    let clouds = Clouds::with(FLEET).await;
    let action = act(&clouds, 1, json!({"type": "power_off"})).await.expect(201)["action"].clone();
    assert_eq!(action["status"], "in-progress");
    assert_eq!(action["type"], "power_off");
    assert_eq!(action["completed_at"], Value::Null);
    assert_eq!(action["resource_id"], 1);
    assert_eq!(shown(&clouds, 1).await, (json!("active"), false));

    clouds.pass(10);
    let path = format!("/v2/actions/{}", action["id"]);
    let completed = clouds.get(&path).await["action"].clone();
    assert_eq!(completed["status"], "completed");
    assert_eq!(completed["completed_at"], "2026-11-23T07:00:10Z");
    assert_eq!(shown(&clouds, 1).await, (json!("active"), false));
    let path = format!("/v2/droplets/1/actions/{}", action["id"]);
    assert_eq!(clouds.get(&path).await["action"], completed);

    clouds.pass(2);
    assert_eq!(shown(&clouds, 1).await, (json!("off"), false));
}

#[tokio::test]
async fn what_a_droplet_refuses_is_said_in_known_words() {
    let clouds = Clouds::with(FLEET).await;
    for (id, kind, words) in [
        (3, "power_off", "Droplet is already powered off"),
        (1, "power_on", "Droplet is already powered on"),
    ] {
        let error = act(&clouds, id, json!({"type": kind})).await.expect(422);
        assert_eq!(error["id"], "unprocessable_entity");
        assert!(error["message"].as_str().unwrap().contains(words), "{error}");
    }
    act(&clouds, 1, json!({"type": "snapshot", "name": "a"})).await.expect(201);
    let error = act(&clouds, 1, json!({"type": "power_off"})).await.expect(422);
    assert_eq!(error["message"], "Droplet already has a pending event.");
    clouds.pass(300);
    act(&clouds, 1, json!({"type": "power_off"})).await.expect(201);
    act(&clouds, 2, json!({"type": "explode"})).await.expect(422);
    act(&clouds, 2, json!({})).await.expect(422);
    act(&clouds, 9, json!({"type": "power_off"})).await.expect(404);
}

#[tokio::test]
async fn a_shutdown_completes_when_it_is_issued_and_the_guest_follows_or_not() {
    let clouds = Clouds::with(FLEET).await;
    for id in [1, 2] {
        act(&clouds, id, json!({"type": "shutdown"})).await.expect(201);
    }
    clouds.pass(3);
    for id in [1, 2] {
        let path = format!("/v2/droplets/{id}/actions");
        assert_eq!(clouds.get(&path).await["actions"][0]["status"], "completed");
        assert_eq!(shown(&clouds, id).await, (json!("active"), false));
    }
    clouds.pass(17);
    assert_eq!(shown(&clouds, 1).await.0, "off");
    clouds.pass(3600);
    assert_eq!(shown(&clouds, 2).await.0, "active");
}

#[tokio::test]
async fn a_shutdown_may_block_other_actions_and_end_in_an_error() {
    let clouds = Clouds::with(FLEET).await;
    act(&clouds, 4, json!({"type": "shutdown"})).await.expect(201);
    let status = async || {
        let actions = clouds.get("/v2/droplets/4/actions").await;
        actions["actions"][0]["status"].clone()
    };
    clouds.pass(119);
    assert_eq!(status().await, "in-progress");
    let error = act(&clouds, 4, json!({"type": "power_off"})).await.expect(422);
    assert_eq!(error["message"], "Droplet already has a pending event.");
    clouds.pass(1);
    assert_eq!(status().await, "errored");
    assert_eq!(shown(&clouds, 4).await.0, "active");
    act(&clouds, 4, json!({"type": "power_off"})).await.expect(201);
}

#[tokio::test]
async fn an_old_shutdown_signal_does_not_switch_off_a_later_boot() {
    let clouds = Clouds::with(FLEET).await;
    act(&clouds, 1, json!({"type": "shutdown"})).await.expect(201);
    clouds.pass(3);
    act(&clouds, 1, json!({"type": "power_cycle"})).await.expect(201);
    clouds.pass(60);
    assert_eq!(shown(&clouds, 1).await.0, "active");
}

#[tokio::test]
async fn the_action_log_has_the_newest_first() {
    let clouds = Clouds::with(FLEET).await;
    for kind in ["power_off", "power_on", "reboot"] {
        act(&clouds, 1, json!({"type": kind})).await.expect(201);
        clouds.pass(30);
    }
    let page = clouds.get("/v2/droplets/1/actions?per_page=2").await;
    let kinds: Vec<_> =
        page["actions"].as_array().unwrap().iter().map(|action| &action["type"]).collect();
    assert_eq!(kinds, ["reboot", "power_on"]);
    assert_eq!(page["meta"]["total"], 3);
    assert_eq!(clouds.get("/v2/droplets/2/actions").await["meta"]["total"], 0);
}

#[tokio::test]
async fn an_action_by_tag_reaches_every_tagged_droplet() {
    let clouds = Clouds::with(FLEET).await;
    let body = Some(json!({"type": "power_off"}));
    let path = "/v2/droplets/actions?tag_name=web";
    let actions = clouds.send("POST", path, body.clone()).await.expect(201)["actions"].clone();
    let of: Vec<_> =
        actions.as_array().unwrap().iter().map(|action| &action["resource_id"]).collect();
    assert_eq!(of, [1, 2]);
    clouds.send("POST", "/v2/droplets/actions", body).await.expect(422);
}

#[tokio::test]
async fn a_rename_happens_at_the_actions_end() {
    let clouds = Clouds::with(FLEET).await;
    act(&clouds, 1, json!({"type": "rename", "name": "other"})).await.expect(201);
    let name = || async { clouds.get("/v2/droplets/1").await["droplet"]["name"].clone() };
    assert_eq!(name().await, "plain");
    clouds.pass(10);
    assert_eq!(name().await, "other");
}

#[tokio::test]
async fn droplets_are_filtered_by_type_or_name_and_mixed_filters_are_refused() {
    let clouds = Clouds::with(FLEET).await;
    assert_eq!(clouds.get("/v2/droplets?type=gpus").await["meta"]["total"], 0);
    assert_eq!(clouds.get("/v2/droplets?type=droplets").await["meta"]["total"], 4);
    assert_eq!(clouds.get("/v2/droplets?name=resting").await["droplets"][0]["id"], 3);
    clouds.send("GET", "/v2/droplets?name=resting&tag_name=web", None).await.expect(422);
}

#[tokio::test]
async fn a_body_of_another_type_is_refused_without_effect() {
    let clouds = Clouds::with(FLEET).await;
    clouds.send("POST", "/v2/droplets/1/actions", None).await.expect(415);
    act(&clouds, 1, json!("power_off")).await.expect(400);
    assert_eq!(shown(&clouds, 1).await, (json!("active"), false));
}
