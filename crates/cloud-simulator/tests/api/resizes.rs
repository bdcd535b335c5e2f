//! The sizes of Droplets.

use cloud_simulator::{Act, Offer};
use serde_json::{Value, json};

use crate::client::{Answer, Clouds};

/// A Droplet that is off and has kept a small disk of its own, another one that is off, and a
/// running one.
const FLEET: &str = r#"
[[droplets]]
id = 1
name = "builder"
size = "s-4vcpu-8gb"
disk = 25
status = "off"

[[droplets]]
id = 2
name = "large"
size = "s-2vcpu-4gb"
status = "off"

[[droplets]]
id = 3
name = "running"
size = "s-1vcpu-1gb"
"#;

async fn act(clouds: &Clouds, id: u64, body: Value) -> Answer {
    let path = format!("/v2/droplets/{id}/actions");
    clouds.send("POST", &path, Some(body)).await
}

async fn resize(clouds: &Clouds, id: u64, size: &str, disk: bool) -> Answer {
    let body = json!({"type": "resize", "size": size, "disk": disk});
    act(clouds, id, body).await
}

/// Size, own disk, memory and status.
async fn shown(clouds: &Clouds, id: u64) -> [Value; 4] {
    let droplet = clouds.get(&format!("/v2/droplets/{id}")).await["droplet"].clone();
    ["size_slug", "disk", "memory", "status"].map(|field| droplet[field].clone())
}

#[track_caller]
fn check_refusal(answer: Answer, message: &str) {
    let error = answer.expect(422);
    assert_eq!(error["id"], "unprocessable_entity");
    assert_eq!(error["message"], message);
}

#[tokio::test]
async fn a_resize_without_the_disk_takes_a_minute_and_leaves_the_droplet_off() {
    let clouds = Clouds::with(FLEET).await;
    let before = [json!("s-4vcpu-8gb"), json!(25), json!(8192), json!("off")];
    assert_eq!(shown(&clouds, 1).await, before);
    let action = resize(&clouds, 1, "s-1vcpu-1gb", false).await.expect(201)["action"].clone();
    assert_eq!((&action["type"], &action["status"]), (&json!("resize"), &json!("in-progress")));
    clouds.pass(59);
    assert_eq!(shown(&clouds, 1).await, before);
    check_refusal(
        resize(&clouds, 1, "s-1vcpu-2gb", false).await,
        "Droplet already has a pending event.",
    );
    clouds.pass(1);
    let small = [json!("s-1vcpu-1gb"), json!(25), json!(1024), json!("off")];
    assert_eq!(shown(&clouds, 1).await, small);
    let log = clouds.get("/v2/droplets/1/actions").await["actions"].clone();
    assert_eq!((&log[0]["id"], &log[0]["status"]), (&action["id"], &json!("completed")));
    clouds.pass(600);
    assert_eq!(shown(&clouds, 1).await, small);

    // And back again: the disk is still its own.
    resize(&clouds, 1, "s-4vcpu-8gb", false).await.expect(201);
    clouds.pass(60);
    assert_eq!(shown(&clouds, 1).await, before);
}

#[tokio::test]
async fn a_resize_with_the_disk_is_for_good() {
    let clouds = Clouds::with(FLEET).await;
    // The same size, but with its full disk.
    resize(&clouds, 1, "s-4vcpu-8gb", true).await.expect(201);
    clouds.pass(60);
    assert_eq!(shown(&clouds, 1).await[1], 160);
    check_refusal(
        resize(&clouds, 1, "s-2vcpu-4gb", false).await,
        "Size can not be smaller than the Droplet's original size",
    );
}

#[tokio::test]
async fn what_does_not_fit_the_droplet_is_refused_in_known_words() {
    let clouds = Clouds::with(FLEET).await;
    for (id, size, message) in [
        (3, "s-1vcpu-2gb", "Droplet is currently on. Please power it off to run this event."),
        (2, "s-1vcpu-1gb", "Size can not be smaller than the Droplet's original size"),
        (2, "s-2vcpu-4gb", "Droplet already has this size."),
        (2, "s-0vcpu", "The size you specified is invalid."),
    ] {
        check_refusal(resize(&clouds, id, size, false).await, message);
    }
    check_refusal(
        act(&clouds, 2, json!({"type": "resize"})).await,
        "The size you specified is invalid.",
    );
    assert_eq!(shown(&clouds, 2).await[0], "s-2vcpu-4gb");
}

#[tokio::test]
async fn a_size_that_the_region_lacks_is_refused_until_it_is_back() {
    let clouds = Clouds::with(FLEET).await;
    let offer = |place, offer| {
        let made = clouds.simulator.set_offer("s-8vcpu-16gb", place, &offer);
        made.unwrap();
    };
    for place in [Some("fra1"), None] {
        offer(place, Offer::Unavailable);
        check_refusal(
            resize(&clouds, 2, "s-8vcpu-16gb", false).await,
            "Size is not available in this region.",
        );
        offer(place, Offer::Available);
    }
    resize(&clouds, 2, "s-8vcpu-16gb", false).await.expect(201);
}

#[tokio::test]
async fn a_host_without_room_refuses_at_once_or_fails_in_the_end() {
    let fleet = FLEET.replace("id = 2", "id = 2\nresize_refusals = 1\nresize_failures = 1");
    let clouds = Clouds::with(&fleet).await;
    check_refusal(
        resize(&clouds, 2, "s-4vcpu-8gb", false).await,
        "Size is too large to fit on your droplet's server",
    );
    let action = resize(&clouds, 2, "s-4vcpu-8gb", false).await.expect(201)["action"].clone();
    assert_eq!(action["status"], "in-progress");
    clouds.pass(60);
    let path = format!("/v2/actions/{}", action["id"]);
    let failed = clouds.get(&path).await["action"].clone();
    assert_eq!(failed["status"], "errored");
    assert_eq!(failed["completed_at"], "2026-11-23T07:01:00Z");
    let droplet = clouds.get("/v2/droplets/2").await["droplet"].clone();
    assert_eq!((&droplet["size_slug"], &droplet["locked"]), (&json!("s-2vcpu-4gb"), &json!(false)));
    resize(&clouds, 2, "s-4vcpu-8gb", false).await.expect(201);
    clouds.pass(60);
    assert_eq!(shown(&clouds, 2).await[0], "s-4vcpu-8gb");

    let taken = json!({"resource": "do/droplet/2", "act": {"take_room": {"refusals": 1}}});
    clouds.send("POST", "/_simulator/people", Some(taken)).await.expect(204);
    resize(&clouds, 2, "s-8vcpu-16gb", false).await.expect(422);
    resize(&clouds, 2, "s-8vcpu-16gb", false).await.expect(201);
}

#[tokio::test]
async fn a_person_resizes_as_the_api_does() {
    let clouds = Clouds::with(FLEET).await;
    let change = |id: u64| {
        let resource = format!("do/droplet/{id}").parse().unwrap();
        let act = Act::ChangePlan { plan: "c-4".to_owned(), disk: false };
        clouds.simulator.person(&resource, act)
    };
    let refused = change(2).unwrap_err().to_string();
    assert!(refused.contains("can not be smaller"), "{refused}");
    change(1).unwrap();
    clouds.pass(60);
    assert_eq!(shown(&clouds, 1).await[0], "c-4");
}

#[tokio::test]
async fn what_must_not_be_resized_can_be_seen() {
    let fleet = r#"
        [[droplets]]
        id = 1
        name = "trainer"
        gpu = { count = 1, model = "nvidia_h100", vram_gib = 80 }

        [[droplets]]
        id = 2
        name = "appliance"
        image_type = "custom"

        [[droplets]]
        id = 3
        name = "member"
        autoscale_pool = "0d3db13e-a604-4944-9827-7ec2642d32ac"
    "#;
    let clouds = Clouds::with(fleet).await;
    let trainer = clouds.get("/v2/droplets/1").await["droplet"].clone();
    assert_eq!(trainer["gpu_info"]["model"], "nvidia_h100");
    assert_eq!(trainer["gpu_info"]["vram"], json!({"amount": 80, "unit": "gib"}));
    let listed = clouds.get("/v2/droplets").await;
    assert_eq!(listed["meta"]["total"], 2);
    let gpus = clouds.get("/v2/droplets?type=gpus").await;
    assert_eq!((&gpus["meta"]["total"], &gpus["droplets"][0]["id"]), (&json!(1), &json!(1)));

    let appliance = clouds.get("/v2/droplets/2").await["droplet"].clone();
    assert_eq!(appliance["image"]["type"], "custom");
    assert_eq!(appliance.get("gpu_info"), None);

    let pools = clouds.get("/v2/droplets/autoscale").await;
    assert_eq!(pools["meta"]["total"], 1);
    let pool = &pools["autoscale_pools"][0];
    assert_eq!(pool["active_resources_count"], 1);
    let path = format!("/v2/droplets/autoscale/{}/members", pool["id"].as_str().unwrap());
    let members = clouds.get(&path).await;
    assert_eq!(members["droplets"][0]["droplet_id"], 3);
    clouds.send("GET", "/v2/droplets/autoscale/other/members", None).await.expect(404);
}
