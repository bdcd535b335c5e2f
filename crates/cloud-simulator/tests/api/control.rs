//! The control API, people, and the request log.

use cloud_simulator::{Act, PersonError};
use serde_json::{Value, json};

use crate::client::Clouds;

const FLEET: &str = r#"
[[droplets]]
id = 1
name = "one"

[[databases]]
id = "9cc10173-e9ea-4176-9dbc-a4cee4c4ff30"
name = "backend"
engine = "pg"
plan = "db-s-2vcpu-4gb"

[[clusters]]
id = "c"
name = "staging"

[[clusters.pools]]
id = "p"
name = "general"
count = 1

[[servers]]
id = 42
name = "server"
"#;

#[tokio::test]
async fn the_log_shows_who_asked_what_and_what_came_of_it_but_no_token() {
    let clouds = Clouds::with(FLEET).await;
    let body = Some(json!({"type": "power_off"}));
    clouds.send("POST", "/v2/droplets/1/actions?a=b", body.clone()).await.expect(201);
    clouds.pass(5);
    clouds.send("POST", "/v2/droplets/1/actions", body).await.expect(422);
    clouds.send_as("nobodys", "GET", "/v1/servers", None).await.expect(401);

    let log = clouds.send("GET", "/_simulator/log", None).await;
    assert!(!log.text.contains("do-token") && !log.text.contains("nobodys"));
    let entries = log.expect(200)["entries"].as_array().unwrap().clone();
    assert_eq!(entries.len(), 3);
    assert_eq!(entries[0]["sequence"], 1);
    assert_eq!(entries[0]["account"], "do");
    assert_eq!(entries[0]["resource"], "do/droplet/1");
    assert_eq!(entries[0]["request"]["query"], "a=b");
    assert_eq!(entries[0]["request"]["body"], "{\"type\":\"power_off\"}");
    assert_eq!(entries[0]["request"]["authorization"], true);
    assert_eq!(entries[0]["answer"]["status"], 201);
    assert_eq!(entries[0]["answer"]["headers"]["ratelimit-remaining"], "4999");
    assert_eq!((&entries[0]["changed"], &entries[1]["changed"]), (&json!(true), &json!(false)));
    assert_eq!(entries[1]["at"], "2026-11-23T07:00:05Z");
    assert_eq!((&entries[2]["account"], &entries[2]["resource"]), (&Value::Null, &Value::Null));

    let page = clouds.send("GET", "/_simulator/log?after=1&most=1", None).await.expect(200);
    assert_eq!(page["entries"], json!([entries[1]]));

    let lines = clouds.send("GET", "/_simulator/exchanges?after=1", None).await;
    let lines: Vec<Value> =
        lines.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines, entries[1..]);
}

#[tokio::test]
async fn the_clock_moves_forward_only_and_effects_follow_it() {
    let clouds = Clouds::with(FLEET).await;
    clouds.send("POST", "/v1/servers/42/actions/poweroff", None).await.expect(201);
    let moved = json!({"now": "2026-11-23T07:00:04Z"});
    let answer = clouds.send("POST", "/_simulator/clock", Some(moved)).await.expect(200);
    assert_eq!(answer, json!({"now": "2026-11-23T07:00:04Z", "held": true}));
    let resources = clouds.get("/_simulator/resources").await;
    assert_eq!(resources["resources"]["hz/server/42"]["status"], "off");
    let back = json!({"now": "2026-11-23T07:00:00Z"});
    clouds.send("POST", "/_simulator/clock", Some(back)).await.expect(409);
    assert_eq!(clouds.get("/_simulator/clock").await["now"], "2026-11-23T07:00:04Z");
}

#[tokio::test]
async fn faults_and_holds_can_be_set_over_http() {
    let clouds = Clouds::with(FLEET).await;
    let fault = json!({"match": {"path_suffix": "/servers"}, "does": {"answer": {"status": 500}}});
    clouds.send("POST", "/_simulator/faults", Some(fault)).await.expect(201);
    assert_eq!(clouds.get("/_simulator/faults").await["faults"][0]["times"], 1);
    let error = clouds.send("GET", "/v1/servers", None).await.expect(500);
    assert_eq!(error["error"]["code"], "server_error");
    clouds.send("DELETE", "/_simulator/faults", None).await.expect(204);

    let hold = json!({"match": {"resource": "hz/server/42"}, "at": "arrival"});
    let id = clouds.send("POST", "/_simulator/holds", Some(hold)).await.expect(201)["id"].clone();
    let wait = async {
        let path = format!("/_simulator/holds/{id}?wait=true");
        assert_eq!(clouds.get(&path).await["waiting"], 1);
        let path = format!("/_simulator/holds/{id}?discard=true");
        clouds.send("DELETE", &path, None).await.expect(204);
    };
    let request = clouds.try_send("hz-token", "GET", "/v1/servers/42", None);
    let (answer, ()) = tokio::join!(request, wait);
    assert!(answer.is_none());
    assert_eq!(clouds.get("/_simulator/holds").await, json!({"holds": []}));
    clouds.send("GET", &format!("/_simulator/holds/{id}?wait=true"), None).await.expect(404);
    clouds.send("GET", "/_simulator/nothing", None).await.expect(404);
}

#[tokio::test]
async fn people_act_without_the_api() {
    let clouds = Clouds::with(FLEET).await;
    let people = async |body: Value, status: u16| {
        clouds.send("POST", "/_simulator/people", Some(body)).await.expect(status)
    };
    people(json!({"resource": "do/droplet/1", "act": "power_off"}), 204).await;
    people(json!({"resource": "do/droplet/1", "act": "power_off"}), 409).await;
    let database = "do/database/9cc10173-e9ea-4176-9dbc-a4cee4c4ff30";
    let resize = json!({"resize": {"plan": "db-s-4vcpu-8gb", "nodes": 1}});
    people(json!({"resource": database, "act": resize}), 204).await;
    let scale = json!({"scale": {"count": 3, "autoscale": [2, 4]}});
    people(json!({"resource": "do/node-pool/c/p", "act": scale}), 204).await;
    let retag = json!({"retag": {"tags": ["offhours=office"]}});
    people(json!({"resource": "hz/server/42", "act": retag}), 204).await;
    people(json!({"resource": "hz/server/42", "act": "explode"}), 422).await;
    people(json!({"resource": "hz/server/1", "act": "delete"}), 404).await;
    people(json!({"resource": "hz/server/42"}), 400).await;

    clouds.pass(600);
    assert_eq!(clouds.state("do/droplet/1")["status"], "off");
    let log = clouds.get("/v2/droplets/1/actions").await;
    assert_eq!(log["actions"][0]["type"], "power_off");
    assert_eq!(clouds.state(database)["plan"], "db-s-4vcpu-8gb");
    let pool = clouds.state("do/node-pool/c/p");
    assert_eq!(pool["nodes"].as_array().unwrap().len(), 3);
    assert_eq!(pool["autoscale"], json!({"min": 2, "max": 4}));
    assert_eq!(clouds.state("hz/server/42")["labels"], json!({"offhours": "office"}));
    assert_eq!(clouds.simulator.log().len(), 1);
}

#[tokio::test]
async fn people_create_and_delete() {
    let clouds = Clouds::with(FLEET).await;
    let server = "[[servers]]\naccount = \"hz\"\nid = 43\nname = \"new\"";
    clouds.simulator.create(server).unwrap();
    clouds.get("/v1/servers/43").await;
    let error = clouds.simulator.create(server).unwrap_err();
    assert_eq!(error.to_string(), "line 1: servers: `server/43` is there already");
    for reference in ["hz/server/43", "do/droplet/1", "do/node-pool/c/p"] {
        let reference = reference.parse().unwrap();
        clouds.simulator.person(&reference, Act::Delete).unwrap();
        assert_eq!(clouds.simulator.resource(&reference), None);
        let again = clouds.simulator.person(&reference, Act::Delete);
        assert_eq!(again, Err(PersonError::Unknown(reference)));
    }
    // The pool's workers were deleted with it.
    assert_eq!(clouds.get("/v2/droplets").await["meta"]["total"], 0);
}

#[tokio::test]
async fn people_rename_and_set_a_status() {
    let clouds = Clouds::with(FLEET).await;
    let person =
        |reference: &str, act: Act| clouds.simulator.person(&reference.parse().unwrap(), act);
    let status = |status: &str| Act::SetStatus { status: status.to_owned() };
    person("hz/server/42", status("migrating")).unwrap();
    assert_eq!(clouds.get("/v1/servers/42").await["server"]["status"], "migrating");
    assert!(matches!(person("hz/server/42", status("asleep")), Err(PersonError::Refused { .. })));
    // A server's name is unique in its project.
    let own = clouds.get("/v1/servers/42").await["server"]["name"].clone();
    let name = own.as_str().unwrap().to_owned();
    assert!(matches!(
        person("hz/server/42", Act::Rename { name }),
        Err(PersonError::Refused { status: 409, .. })
    ));
    let scale = Act::Scale { count: 1, autoscale: None };
    assert!(matches!(person("do/droplet/1", scale), Err(PersonError::DoesNotFit { .. })));
    let tags = vec!["offhours:office".to_owned()];
    person("do/node-pool/c/p", Act::RetagCluster { tags }).unwrap();
    let cluster = clouds.get("/v2/kubernetes/clusters/c").await;
    assert_eq!(cluster["kubernetes_cluster"]["tags"][0], "offhours:office");
    person("do/node-pool/c/p", Act::Rename { name: "other".to_owned() }).unwrap();
    let pools = clouds.get("/v2/kubernetes/clusters/c/node_pools").await;
    assert_eq!(pools["node_pools"][0]["name"], "other");
}

#[tokio::test]
async fn the_demo_fleet_holds_every_kind_and_engine() {
    let text = include_str!("../../../../examples/fleet.toml");
    let clouds = Clouds::serve(text).await;
    let resources = clouds.simulator.resources();
    let of_kind = |kind: &'static str| {
        resources.iter().filter(move |(reference, _)| reference.contains(&format!("/{kind}/")))
    };
    let workers = of_kind("droplet").filter(|(_, droplet)| !droplet["worker_of"].is_null());
    assert!(resources.len() - workers.count() >= 16);
    assert!(of_kind("server").count() > 0 && of_kind("node-pool").count() > 0);
    let engines: Vec<_> = of_kind("database").map(|(_, database)| &database["engine"]).collect();
    for engine in ["pg", "mysql", "redis", "valkey", "mongodb"] {
        assert!(engines.contains(&&json!(engine)), "{engine}");
    }
}
