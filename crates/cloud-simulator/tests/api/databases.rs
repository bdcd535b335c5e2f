//! The sizes of database clusters.

use serde_json::{Value, json};

use crate::client::{Answer, Clouds};

const ID: &str = "9cc10173-e9ea-4176-9dbc-a4cee4c4ff30";

fn fleet(more: &str) -> String {
    let base = "name = \"backend\"\nengine = \"pg\"\nplan = \"db-s-2vcpu-4gb\"\nnodes = 2\n";
    format!("[[databases]]\nid = \"{ID}\"\n{base}{more}\n")
}

async fn resize(clouds: &Clouds, body: Value) -> Answer {
    clouds.send("PUT", &format!("/v2/databases/{ID}/resize"), Some(body)).await
}

async fn shown(clouds: &Clouds) -> [Value; 4] {
    let database = clouds.get(&format!("/v2/databases/{ID}")).await["database"].clone();
    ["status", "size", "num_nodes", "storage_size_mib"].map(|field| database[field].clone())
}

#[tokio::test]
async fn a_resize_is_accepted_without_a_word_and_shows_its_size_at_the_end() {
    let clouds = Clouds::with(&fleet("storage_mib = 102400")).await;
    let before = [json!("online"), json!("db-s-2vcpu-4gb"), json!(2), json!(102_400)];
    assert_eq!(shown(&clouds).await, before);
    let accepted = resize(&clouds, json!({"size": "db-s-1vcpu-1gb", "num_nodes": 1})).await;
    assert_eq!((accepted.status, accepted.text.as_str()), (202, ""));
    assert_eq!(accepted.header("content-type"), None);
    let [_, size, nodes, storage] = before;
    clouds.pass(479);
    assert_eq!(shown(&clouds).await, [json!("resizing"), size, nodes, storage]);
    clouds.pass(1);
    // The storage is the new plan's own, since the request did not give any.
    let small = [json!("online"), json!("db-s-1vcpu-1gb"), json!(1), json!(10_240)];
    assert_eq!(shown(&clouds).await, small);

    let back = json!({"size": "db-s-2vcpu-4gb", "num_nodes": 2, "storage_size_mib": 102_400});
    resize(&clouds, back).await.expect(202);
    clouds.pass(480);
    assert_eq!(shown(&clouds).await[3], 102_400);
}

#[tokio::test]
async fn what_a_resize_lacks_or_cannot_have_is_refused_without_effect() {
    let clouds = Clouds::with(&fleet("storage_mib = 102400")).await;
    for (body, word) in [
        (json!({"size": "db-s-1vcpu-2gb"}), "num_nodes"),
        (json!({"num_nodes": 1}), "size"),
        // Standby nodes need 2 GiB.
        (json!({"size": "db-s-1vcpu-1gb", "num_nodes": 2}), "db-s-1vcpu-1gb"),
        (json!({"size": "db-s-1vcpu-2gb", "num_nodes": 4}), "4 nodes"),
        (json!({"size": "db-s-2vcpu-4gb", "num_nodes": 2}), "already"),
        // Repeating the old storage can be invalid for the new plan.
        (
            json!({"size": "db-s-1vcpu-1gb", "num_nodes": 1, "storage_size_mib": 102_400}),
            "storage_size_mib",
        ),
        (
            json!({"size": "db-s-4vcpu-8gb", "num_nodes": 2, "storage_size_mib": 102_400}),
            "storage_size_mib",
        ),
        (
            json!({"size": "db-s-2vcpu-4gb", "num_nodes": 1, "storage_size_mib": 61_440}),
            "cannot be reduced",
        ),
    ] {
        let error = resize(&clouds, body.clone()).await.expect(422);
        assert_eq!(error["id"], "unprocessable_entity");
        assert!(error["message"].as_str().unwrap().contains(word), "{body}: {error}");
    }
    clouds.pass(3600);
    assert_eq!(shown(&clouds).await[0..2], [json!("online"), json!("db-s-2vcpu-4gb")]);
}

#[tokio::test]
async fn fewer_nodes_alone_keep_the_storage() {
    let clouds = Clouds::with(&fleet("storage_mib = 102400")).await;
    resize(&clouds, json!({"size": "db-s-2vcpu-4gb", "num_nodes": 1})).await.expect(202);
    clouds.pass(480);
    let expected = [json!("online"), json!("db-s-2vcpu-4gb"), json!(1), json!(102_400)];
    assert_eq!(shown(&clouds).await, expected);
}

/// Resizes a cluster of an engine to another number of nodes, on the same plan.
async fn with_nodes(engine: &str, from: u32, to: u32) -> Answer {
    let fleet = fleet("")
        .replace("\"pg\"", &format!("\"{engine}\""))
        .replace("nodes = 2", &format!("nodes = {from}"));
    let clouds = Clouds::with(&fleet).await;
    let body = json!({"size": "db-s-2vcpu-4gb", "num_nodes": to, "storage_size_mib": null});
    resize(&clouds, body).await
}

#[tokio::test]
async fn how_few_nodes_a_cluster_may_have_depends_on_its_engine() {
    for engine in ["pg", "mysql", "redis", "valkey"] {
        for (from, to) in [(3, 1), (3, 2), (2, 1), (1, 3)] {
            with_nodes(engine, from, to).await.expect(202);
        }
        with_nodes(engine, 3, 4).await.expect(422);
    }
    with_nodes("mongodb", 3, 1).await.expect(202);
    with_nodes("mongodb", 3, 2).await.expect(422);
    for nodes in [1, 2] {
        let error = with_nodes("kafka", 3, nodes).await.expect(422);
        assert_eq!(error["id"], "unprocessable_entity");
    }
}

#[tokio::test]
async fn a_cluster_that_is_not_online_takes_no_resize() {
    for status in ["creating", "resizing", "migrating", "forking"] {
        let clouds = Clouds::with(&fleet(&format!("status = \"{status}\""))).await;
        assert_eq!(shown(&clouds).await[0], status);
        let one = json!({"size": "db-s-2vcpu-4gb", "num_nodes": 1});
        resize(&clouds, one).await.expect(409);
        assert_eq!(shown(&clouds).await[2], 2);
    }
}

#[tokio::test]
async fn a_second_resize_waits_for_the_first() {
    let clouds = Clouds::with(&fleet("")).await;
    let small = json!({"size": "db-s-1vcpu-2gb", "num_nodes": 2});
    resize(&clouds, small).await.expect(202);
    let large = json!({"size": "db-s-4vcpu-8gb", "num_nodes": 2});
    let error = resize(&clouds, large.clone()).await.expect(409);
    assert_eq!(error["id"], "conflict");
    clouds.pass(480);
    resize(&clouds, large).await.expect(202);
}

#[tokio::test]
async fn a_cluster_that_refuses_to_shrink_may_still_drop_its_standby() {
    let clouds = Clouds::with(&fleet("refuses_shrink = true")).await;
    let small = json!({"size": "db-s-1vcpu-2gb", "num_nodes": 2});
    let error = resize(&clouds, small).await.expect(422);
    assert_eq!(error["id"], "unprocessable_entity");
    let larger = json!({"size": "db-s-4vcpu-8gb", "num_nodes": 1});
    resize(&clouds, larger).await.expect(202);
}

#[tokio::test]
async fn the_status_may_read_online_just_after_a_resize_was_accepted() {
    let clouds = Clouds::with(&fleet("resizing_shows_after = \"5s\"")).await;
    resize(&clouds, json!({"size": "db-s-1vcpu-2gb", "num_nodes": 2})).await.expect(202);
    assert_eq!(shown(&clouds).await[0..2], [json!("online"), json!("db-s-2vcpu-4gb")]);
    clouds.pass(5);
    assert_eq!(shown(&clouds).await[0], "resizing");
}

#[tokio::test]
async fn only_postgresql_and_mysql_take_extra_storage() {
    let fleet = fleet("").replace("\"pg\"", "\"valkey\"");
    let clouds = Clouds::with(&fleet).await;
    let body = json!({"size": "db-s-4vcpu-8gb", "num_nodes": 2, "storage_size_mib": 163_840});
    let error = resize(&clouds, body).await.expect(422);
    assert!(error["message"].as_str().unwrap().contains("valkey"), "{error}");
}

#[tokio::test]
async fn the_options_list_layouts_whose_sizes_are_not_sorted() {
    let clouds = Clouds::with("").await;
    let options = clouds.get("/v2/databases/options").await["options"].clone();
    for engine in ["pg", "mysql", "redis", "valkey", "mongodb", "kafka", "opensearch"] {
        let layouts = options[engine]["layouts"].as_array().unwrap();
        assert!(!layouts.is_empty(), "{engine}");
        assert_ne!(layouts[0]["sizes"][0], "db-s-1vcpu-1gb", "{engine}");
    }
    let counts = |engine: &str| -> Vec<Value> {
        let layouts = options[engine]["layouts"].as_array().unwrap();
        layouts.iter().map(|layout| layout["num_nodes"].clone()).collect()
    };
    assert_eq!(counts("pg"), [1, 2, 3]);
    assert_eq!(counts("mongodb"), [1, 3]);
}

#[tokio::test]
async fn a_list_is_filtered_by_tag_and_knows_no_password() {
    let clouds = Clouds::with(&fleet("tags = [\"dev\"]")).await;
    let list = clouds.get("/v2/databases?tag_name=dev").await;
    assert_eq!(list["databases"][0]["tags"], json!(["dev"]));
    assert_eq!(list["databases"][0]["connection"].get("password"), None);
    assert_eq!(clouds.get("/v2/databases?tag_name=x").await, json!({"databases": []}));
}

#[tokio::test]
async fn storage_autoscaling_can_be_read_and_set() {
    let replica = "[[databases.replicas]]\nid = \"1f0a2d4e-6c39-4d0e-8a4f-2c9f1f7a9e05\"\n\
                   name = \"reports\"\nsize = \"db-s-1vcpu-2gb\"";
    let clouds = Clouds::with(&fleet(replica)).await;
    let path = format!("/v2/databases/{ID}/autoscale");
    assert_eq!(clouds.get(&path).await["autoscale"]["storage"]["enabled"], false);
    let body = json!({"storage": {"enabled": true, "threshold_percent": 5, "increment_gib": 10}});
    clouds.send("PUT", &path, Some(body)).await.expect(422);
    let body = json!({"storage": {"enabled": true, "threshold_percent": 80, "increment_gib": 10}});
    clouds.send("PUT", &path, Some(body.clone())).await.expect(204);
    assert_eq!(clouds.get(&path).await["autoscale"], body);
    let replicas = clouds.get(&format!("/v2/databases/{ID}/replicas")).await;
    assert_eq!(replicas["replicas"][0]["size"], "db-s-1vcpu-2gb");
}
