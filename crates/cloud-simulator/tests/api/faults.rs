//! Clouds that misbehave.

use cloud_simulator::{Fault, Hold, HoldId};
use serde_json::{Value, json};

use crate::client::{Answer, Clouds};

const FLEET: &str = r#"
[[droplets]]
id = 1
name = "one"

[[droplets]]
id = 2
name = "two"

[[servers]]
id = 42
name = "server"
"#;

fn fault(clouds: &Clouds, fault: Value) {
    clouds.simulator.add_fault(serde_json::from_value::<Fault>(fault).unwrap());
}

fn hold(clouds: &Clouds, hold: Value) -> HoldId {
    clouds.simulator.add_hold(serde_json::from_value::<Hold>(hold).unwrap())
}

async fn power_off(clouds: &Clouds, id: u64) -> Option<Answer> {
    let path = format!("/v2/droplets/{id}/actions");
    clouds.try_send("do-token", "POST", &path, Some(json!({"type": "power_off"}))).await
}

fn begun(clouds: &Clouds, id: u64) -> bool {
    clouds.state(&format!("do/droplet/{id}"))["action"].is_number()
}

#[tokio::test]
async fn a_false_answer_comes_as_often_as_asked_and_has_no_effect() {
    let clouds = Clouds::with(FLEET).await;
    fault(
        &clouds,
        json!({"match": {"method": "POST"}, "times": 2, "does": {"answer": {"status": 503}}}),
    );
    for _ in 0..2 {
        clouds.get("/v2/droplets/1").await;
        let answer = power_off(&clouds, 1).await.unwrap();
        assert!(answer.header("ratelimit-remaining").is_some());
        assert_eq!(answer.expect(503)["id"], "service_unavailable");
    }
    assert!(!begun(&clouds, 1));
    power_off(&clouds, 1).await.unwrap().expect(201);
    assert!(begun(&clouds, 1));
}

#[tokio::test]
async fn an_answer_may_be_garbage_or_cut_though_the_request_took_effect() {
    let clouds = Clouds::with(FLEET).await;
    let garbage = json!({"status": 200, "body": "<html>", "after_effect": true,
        "headers": {"retry-after": "7"}});
    fault(&clouds, json!({"match": {"resource": "do/droplet/1"}, "does": {"answer": garbage}}));
    let answer = power_off(&clouds, 1).await.unwrap();
    assert_eq!((answer.status, answer.text.as_str()), (200, "<html>"));
    assert_eq!(answer.header("retry-after"), Some("7"));
    assert!(begun(&clouds, 1));

    fault(&clouds, json!({"match": {"body_contains": "power_off"}, "does": "truncate"}));
    let answer = power_off(&clouds, 2).await.unwrap();
    assert_eq!(answer.status, 201);
    assert!(answer.text.starts_with("{\"action\"") && !answer.text.ends_with('}'));
    assert!(begun(&clouds, 2));
}

#[tokio::test]
async fn a_connection_is_closed_before_or_after_the_effect() {
    let clouds = Clouds::with(FLEET).await;
    fault(&clouds, json!({"match": {"path_prefix": "/v2/droplets/1"}, "does": {"drop": {}}}));
    fault(
        &clouds,
        json!({"match": {"path_prefix": "/v2/droplets/2"}, "does": {"drop": {"after_effect": true}}}),
    );
    assert!(power_off(&clouds, 1).await.is_none());
    assert!(power_off(&clouds, 2).await.is_none());
    assert!(!begun(&clouds, 1));
    assert!(begun(&clouds, 2));
    let log = clouds.simulator.log();
    assert_eq!((log[0].changed, log[1].changed), (false, true));
    assert!(log.iter().all(|entry| !entry.delivered && entry.answer.is_none() && entry.faulty));
}

#[tokio::test]
async fn a_late_request_arrives_by_itself() {
    let clouds = Clouds::with(FLEET).await;
    fault(&clouds, json!({"match": {"method": "POST"}, "does": {"late": {"by": "45s"}}}));
    assert!(power_off(&clouds, 1).await.is_none());
    clouds.pass(44);
    assert!(!begun(&clouds, 1));
    clouds.pass(1);
    assert!(begun(&clouds, 1));
    clouds.pass(12);
    assert_eq!(clouds.state("do/droplet/1")["status"], "off");
    let log = clouds.simulator.log();
    assert_eq!(log.len(), 1);
    assert!(log[0].changed && !log[0].delivered);
    assert_eq!(log[0].at.to_string(), "2026-11-23T07:00:45Z");
}

#[tokio::test]
async fn a_slow_request_is_accepted_at_once_and_done_later() {
    let clouds = Clouds::with(FLEET).await;
    fault(&clouds, json!({"match": {"account": "hz"}, "does": {"slow": {"by": "1m"}}}));
    clouds.send("POST", "/v1/servers/42/actions/shutdown", None).await.expect(201);
    clouds.pass(74);
    assert_eq!(clouds.state("hz/server/42")["status"], "running");
    clouds.pass(1);
    assert_eq!(clouds.state("hz/server/42")["status"], "off");
}

#[tokio::test]
async fn time_passes_while_an_answer_is_delayed_and_requests_under_way_together_share_it() {
    let clouds = Clouds::with(FLEET).await;
    fault(
        &clouds,
        json!({"match": {"account": "hz"}, "times": 4, "does": {"delay": {"by": "20s"}}}),
    );
    let shutdown = clouds.send("POST", "/v1/servers/42/actions/shutdown", None);
    shutdown.await.expect(201);
    assert_eq!(clouds.now().to_string(), "2026-11-23T07:00:20Z");
    // It took effect on arrival: a shutdown takes 15 s.
    assert_eq!(clouds.state("hz/server/42")["status"], "off");
    let list = || clouds.send("GET", "/v1/servers", None);
    let (one, two, three) = tokio::join!(list(), list(), list());
    for answer in [one, two, three] {
        assert_eq!(answer.header("date"), Some("Mon, 23 Nov 2026 07:00:40 GMT"));
    }
    assert_eq!(clouds.now().to_string(), "2026-11-23T07:00:40Z");
    list().await.expect(200);
    assert_eq!(clouds.now().to_string(), "2026-11-23T07:00:40Z");
}

#[tokio::test]
async fn a_token_may_be_refused_for_a_while() {
    let clouds = Clouds::with(FLEET).await;
    fault(&clouds, json!({"match": {"account": "hz"}, "does": "unauthorized"}));
    clouds.get("/v2/droplets").await;
    let error = clouds.send("GET", "/v1/servers", None).await.expect(401);
    assert_eq!(error["error"]["code"], "unauthorized");
    clouds.get("/v1/servers").await;
    fault(&clouds, json!({"times": 9, "does": "unauthorized"}));
    clouds.simulator.clear_faults();
    clouds.get("/v1/servers").await;
}

#[tokio::test]
async fn a_request_held_on_arrival_has_no_effect_until_it_is_released() {
    let clouds = Clouds::with(FLEET).await;
    let id = hold(&clouds, json!({"match": {"method": "POST"}, "at": "arrival"}));
    let request = power_off(&clouds, 1);
    let release = async {
        clouds.simulator.wait_until_caught(id).await.unwrap();
        assert!(!begun(&clouds, 1));
        assert_eq!(clouds.simulator.holds()[0].caught, ["POST /v2/droplets/1/actions"]);
        clouds.simulator.release(id).unwrap();
    };
    let (answer, ()) = tokio::join!(request, release);
    answer.unwrap().expect(201);
    assert!(begun(&clouds, 1));
    assert!(clouds.simulator.release(id).is_err());
}

#[tokio::test]
async fn a_discarded_request_is_closed_with_or_without_its_effect() {
    let clouds = Clouds::with(FLEET).await;
    for (droplet, at, effect) in [(1, "arrival", false), (2, "answer", true)] {
        let id = hold(&clouds, json!({"match": {"method": "POST"}, "at": at}));
        let discard = async {
            clouds.simulator.wait_until_caught(id).await.unwrap();
            assert_eq!(begun(&clouds, droplet), effect);
            clouds.simulator.discard(id).unwrap();
        };
        let (answer, ()) = tokio::join!(power_off(&clouds, droplet), discard);
        assert!(answer.is_none());
        assert_eq!(begun(&clouds, droplet), effect);
    }
}

/// Waits until no request is left in the hold, because its client has disconnected.
async fn until_gone(clouds: &Clouds) {
    while clouds.simulator.holds()[0].waiting > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_client_that_goes_while_held_takes_its_request_with_it() {
    let clouds = Clouds::with(FLEET).await;
    let id = hold(&clouds, json!({"at": "arrival"}));
    let body = Some(json!({"type": "power_off"}));
    let stream = clouds.begin("do-token", "POST", "/v2/droplets/1/actions", body).await;
    clouds.simulator.wait_until_caught(id).await.unwrap();
    drop(stream);
    until_gone(&clouds).await;
    clouds.simulator.release(id).unwrap();
    clouds.get("/v2/droplets").await;
    assert!(!begun(&clouds, 1));
    assert_eq!(clouds.simulator.log().len(), 1);
}

#[tokio::test]
async fn a_late_hold_carries_the_request_out_though_its_client_has_gone() {
    let clouds = Clouds::with(FLEET).await;
    let id = hold(&clouds, json!({"at": "arrival", "late": true}));
    let body = Some(json!({"type": "power_off"}));
    let stream = clouds.begin("do-token", "POST", "/v2/droplets/1/actions", body).await;
    clouds.simulator.wait_until_caught(id).await.unwrap();
    drop(stream);
    clouds.simulator.release(id).unwrap();
    while clouds.simulator.log().is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(begun(&clouds, 1));
}

#[tokio::test]
async fn a_hold_catches_as_many_as_asked_and_lets_the_others_pass() {
    let clouds = Clouds::with(FLEET).await;
    let id = hold(&clouds, json!({"match": {"method": "POST"}, "times": 1, "at": "answer"}));
    let second = async {
        clouds.simulator.wait_until_caught(id).await.unwrap();
        let answer = power_off(&clouds, 2).await;
        clouds.simulator.release(id).unwrap();
        answer
    };
    let (first, second) = tokio::join!(power_off(&clouds, 1), second);
    first.unwrap().expect(201);
    second.unwrap().expect(201);
}
