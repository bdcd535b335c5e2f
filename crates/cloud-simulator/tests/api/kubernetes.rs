//! Node pools, their nodes, and the Droplets under them.

use serde_json::{Value, json};

use crate::client::{Answer, Clouds};

const CLUSTER: &str = "bd5f5959-5e1e-4205-a714-a914373942af";
const POOL: &str = "cdda885e-7663-40c8-bc74-3a036c66545d";

fn fleet(more: &str) -> String {
    format!(
        "[[clusters]]\nid = \"{CLUSTER}\"\nname = \"staging\"\ntags = [\"dev\"]\n\
         [[clusters.pools]]\nid = \"{POOL}\"\nname = \"general\"\ntags = [\"team\"]\n\
         labels = {{ tier = \"web\" }}\n\
         taints = [{{ key = \"a\", value = \"b\", effect = \"NoSchedule\" }}]\n{more}\n"
    )
}

fn path() -> String {
    format!("/v2/kubernetes/clusters/{CLUSTER}/node_pools/{POOL}")
}

async fn update(clouds: &Clouds, body: Value) -> Answer {
    clouds.send("PUT", &path(), Some(body)).await
}

async fn pool(clouds: &Clouds) -> Value {
    clouds.get(&path()).await["node_pool"].clone()
}

fn states(pool: &Value) -> Vec<&Value> {
    pool["nodes"].as_array().unwrap().iter().map(|node| &node["status"]["state"]).collect()
}

fn ids(pool: &Value) -> Vec<Value> {
    pool["nodes"].as_array().unwrap().iter().map(|node| node["id"].clone()).collect()
}

#[tokio::test]
async fn a_pool_goes_to_zero_by_draining_and_comes_back_with_new_nodes() {
    let clouds = Clouds::with(&fleet("count = 2")).await;
    let before = pool(&clouds).await;
    assert_eq!(states(&before), ["running", "running"]);
    let body = json!({"name": "general", "count": 0, "auto_scale": false});
    let answer = update(&clouds, body).await.expect(202)["node_pool"].clone();
    assert_eq!(answer["count"], 0);
    assert_eq!(states(&answer), ["draining", "draining"]);
    clouds.pass(60);
    assert_eq!(states(&pool(&clouds).await), ["deleting", "deleting"]);
    assert_eq!(clouds.get("/v2/droplets").await["meta"]["total"], 2);
    clouds.pass(30);
    assert_eq!(pool(&clouds).await["nodes"], json!([]));
    assert_eq!(clouds.get("/v2/droplets").await["meta"]["total"], 0);

    update(&clouds, json!({"name": "general", "count": 2})).await.expect(202);
    assert_eq!(states(&pool(&clouds).await), ["provisioning", "provisioning"]);
    clouds.pass(180);
    let after = pool(&clouds).await;
    assert_eq!(states(&after), ["running", "running"]);
    assert!(ids(&after).iter().all(|id| !ids(&before).contains(id)));
}

#[tokio::test]
async fn workers_are_droplets_with_the_services_tags() {
    let clouds = Clouds::with(&fleet("count = 1")).await;
    let droplets = clouds.get("/v2/droplets").await["droplets"].clone();
    let tags = json!(["team", "k8s", format!("k8s:{CLUSTER}"), "k8s:worker"]);
    assert_eq!(droplets[0]["tags"], tags);
    assert_eq!(droplets[0]["id"].to_string(), pool(&clouds).await["nodes"][0]["droplet_id"]);
    let body = json!({"name": "general", "count": 2, "tags": ["other"]});
    update(&clouds, body).await.expect(202);
    let droplets = clouds.get("/v2/droplets").await["droplets"].clone();
    assert_eq!(droplets[0]["tags"][0], "other");
    assert_eq!(droplets[1]["status"], "new");
    clouds.pass(180);
    let droplets = clouds.get("/v2/droplets").await["droplets"].clone();
    assert_eq!(droplets[1]["status"], "active");
}

#[tokio::test]
async fn what_an_update_leaves_out_is_removed() {
    let clouds = Clouds::with(&fleet("count = 1")).await;
    let before = pool(&clouds).await;
    assert_eq!(before["labels"], json!({"tier": "web"}));
    assert_eq!(before["taints"], json!([{"key": "a", "value": "b", "effect": "NoSchedule"}]));
    let resent = json!({
        "name": "general", "count": 1, "tags": before["tags"], "labels": before["labels"],
        "taints": before["taints"],
    });
    let kept = update(&clouds, resent).await.expect(202)["node_pool"].clone();
    for field in ["tags", "labels", "taints"] {
        assert_eq!(kept[field], before[field], "{field}");
    }
    let bare = update(&clouds, json!({"name": "general", "count": 1})).await.expect(202);
    let bare = &bare["node_pool"];
    assert_eq!(bare["tags"], json!(["k8s", format!("k8s:{CLUSTER}"), "k8s:worker"]));
    assert_eq!((&bare["labels"], &bare["taints"]), (&Value::Null, &json!([])));
}

#[tokio::test]
async fn name_and_count_are_needed() {
    let clouds = Clouds::with(&fleet("count = 1")).await;
    for body in [
        json!({"count": 0}),
        json!({"name": "general"}),
        json!({"name": "general", "count": -1}),
        json!({"name": "general", "count": "0"}),
        json!({"name": "general", "count": 0, "auto_scale": "no"}),
        json!({"name": "general", "count": 0, "taints": [{"key": "a", "effect": "Never"}]}),
    ] {
        let error = update(&clouds, body.clone()).await.expect(422);
        assert_eq!(error["id"], "unprocessable_entity", "{body}");
    }
    assert_eq!(pool(&clouds).await["count"], 1);
}

#[tokio::test]
async fn the_autoscaler_replaces_a_count_outside_its_bounds_by_the_least() {
    let clouds = Clouds::with(&fleet("count = 3\nautoscale = { min = 2, max = 5 }")).await;
    let with = |count: u32| {
        json!({
            "name": "general", "count": count, "auto_scale": true, "min_nodes": 2, "max_nodes": 5,
        })
    };
    for (count, expected) in [(0, 2), (4, 4), (9, 2)] {
        let answer = update(&clouds, with(count)).await.expect(202);
        assert_eq!(answer["node_pool"]["count"], expected);
    }
    let off = json!({"name": "general", "count": 0, "auto_scale": false});
    let pool = update(&clouds, off).await.expect(202)["node_pool"].clone();
    assert_eq!(pool["count"], 0);
    assert_eq!((&pool["auto_scale"], &pool["min_nodes"]), (&json!(false), &json!(0)));
    assert_eq!(pool["max_nodes"], 0);
}

#[tokio::test]
async fn a_pool_may_refuse_zero() {
    let clouds = Clouds::with(&fleet("count = 1\nrefuses_zero = true")).await;
    let error = update(&clouds, json!({"name": "general", "count": 0})).await.expect(422);
    assert!(error["message"].as_str().unwrap().ends_with("greater than or equal to 1"));
    let body = json!({
        "name": "general", "count": 1, "auto_scale": true, "min_nodes": 0, "max_nodes": 3,
    });
    let error = update(&clouds, body).await.expect(422);
    assert_eq!(error["message"], "min nodes must be greater than or equal to 1");
    update(&clouds, json!({"name": "general", "count": 2})).await.expect(202);
}

#[tokio::test]
async fn a_pool_that_grows_while_it_drains_gets_new_nodes_and_loses_the_old() {
    let clouds = Clouds::with(&fleet("count = 2")).await;
    let old = ids(&pool(&clouds).await);
    update(&clouds, json!({"name": "general", "count": 0})).await.expect(202);
    clouds.pass(10);
    update(&clouds, json!({"name": "general", "count": 1})).await.expect(202);
    assert_eq!(states(&pool(&clouds).await), ["draining", "draining", "provisioning"]);
    clouds.pass(180);
    let pool = pool(&clouds).await;
    assert_eq!(states(&pool), ["running"]);
    assert!(!old.contains(&pool["nodes"][0]["id"]));
}

#[tokio::test]
async fn clusters_show_their_pools_tags_and_state() {
    let clouds = Clouds::with(&fleet("count = 1")).await;
    let list = clouds.get("/v2/kubernetes/clusters").await;
    assert_eq!(list["meta"]["total"], 1);
    let cluster = clouds.get(&format!("/v2/kubernetes/clusters/{CLUSTER}")).await;
    let cluster = &cluster["kubernetes_cluster"];
    assert_eq!(list["kubernetes_clusters"][0], *cluster);
    assert_eq!(cluster["status"]["state"], "running");
    assert_eq!(cluster["tags"][0], "dev");
    let pools = clouds.get(&format!("/v2/kubernetes/clusters/{CLUSTER}/node_pools")).await;
    assert_eq!(pools, json!({"node_pools": cluster["node_pools"]}));
    for word in ["status_messages", "node_pools/unknown"] {
        let path = format!("/v2/kubernetes/clusters/{CLUSTER}/{word}");
        let status = if word == "status_messages" { 200 } else { 404 };
        clouds.send("GET", &path, None).await.expect(status);
    }
}

#[tokio::test]
async fn an_upgrading_cluster_takes_no_change() {
    let clouds = Clouds::with(&fleet("count = 1")).await;
    let reference = format!("do/node-pool/{CLUSTER}/{POOL}").parse().unwrap();
    let act = cloud_simulator::Act::SetStatus { status: "upgrading".to_owned() };
    clouds.simulator.person(&reference, act).unwrap();
    update(&clouds, json!({"name": "general", "count": 0})).await.expect(409);
}
