//! `DigitalOcean`, request by request.

use std::collections::BTreeSet;

use domain::{
    ClusterId, DatabaseId, PoolId, ResourceId, ResourceKind,
    reason::Reason,
    resource::{
        ActionEffect, ActionId, ActionState, AutoscaleBounds, Busy, Cluster, DatabaseSize,
        MachineFacts, MachineSize, NodePoolSize, Power, Resource, SavedState, Size,
    },
    step::Step,
};
use jiff::Timestamp;
use serde_json::{Value, json};
use testing::seen;

use super::{
    change_kind, do_error, ids, kind, list,
    script::{Answer, Script, answer, ok},
};
use crate::{Accepted, ChangeError, Client, Listed};

const CLUSTER: &str = "bd5f5959-5e1e-4205-a714-a914373942af";
const POOL: &str = "cdda885e-7663-40c8-bc74-3a036c66545d";
const DATABASE: &str = "9cc10173-e9ea-4176-9dbc-a4cee4c4ff30";

/// The list of Droplets with GPUs.
const GPUS: &str = "GET /v2/droplets?type=gpus&per_page=200&page=1";

fn droplet(id: u64, status: &str) -> Value {
    json!({
        "id": id, "name": format!("web-{id}"), "status": status, "locked": false,
        "tags": ["offhours:office-hours", "web"], "size_slug": "s-1vcpu-1gb",
        "vcpus": 1, "memory": 1024, "disk": 25,
        "size": {"slug": "s-1vcpu-1gb", "price_hourly": 0.007_439_999_841_153_62},
        "region": {"slug": "fra1", "name": "Frankfurt 1"},
        "created_at": "2020-07-21T18:37:44Z", "gpu_info": null,
        "disk_info": [{"type": "local", "size": {"amount": 25, "unit": "gib"}}],
    })
}

fn database(status: &str, engine: &str) -> Value {
    json!({
        "id": DATABASE, "name": "backend", "engine": engine, "version": "14", "num_nodes": 2,
        "size": "db-s-2vcpu-4gb", "region": "nyc3", "status": status,
        "storage_size_mib": 61_440, "tags": ["production"],
        "connection": {"password": "wv78n3zpz42xezdk"},
    })
}

fn cluster(state: &str, pools: Value) -> Value {
    json!({
        "id": CLUSTER, "name": "staging", "region": "nyc1", "tags": ["offhours:office-hours"],
        "status": {"state": state, "message": ""}, "node_pools": pools,
    })
}

fn pool(count: u32, states: &[&str]) -> Value {
    let nodes: Vec<_> =
        states.iter().map(|state| json!({"id": "478247f8", "status": {"state": state}})).collect();
    json!({
        "id": POOL, "name": "backend-pool", "size": "s-1vcpu-2gb", "count": count,
        "auto_scale": false, "min_nodes": 0, "max_nodes": 0,
        "tags": ["web-team", "k8s", "k8s:worker", "k8s-worker", "k8s-own", format!("k8s:{CLUSTER}")],
        "labels": {"service": "backend"},
        "taints": [{"key": "gpu"}],
        "nodes": nodes,
    })
}

fn page(items: &str, of: Vec<Value>, next: Option<&str>) -> Value {
    let links = match next {
        Some(next) => json!({"pages": {"next": next, "last": next}}),
        None => json!({}),
    };
    json!({items: of, "links": links, "meta": {"total": 99}})
}

fn action(id: u64, kind: &str, status: &str, started_at: &str) -> Value {
    json!({"id": id, "type": kind, "status": status, "started_at": started_at,
        "completed_at": null, "resource_id": 1, "resource_type": "droplet"})
}

fn droplet_id(number: u64) -> ResourceId {
    format!("droplet/{number}").parse().unwrap()
}

fn pool_id() -> ResourceId {
    format!("node-pool/{CLUSTER}/{POOL}").parse().unwrap()
}

fn names(texts: &[&str]) -> BTreeSet<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

/// Runs the Status operation of one resource, which gets this response.
async fn status(id: &ResourceId, path: &str, answer: Value) -> Resource {
    let cloud = Script::play([(format!("GET {path}"), ok(answer))]).await;
    let found = cloud.digitalocean().status(id).await.unwrap();
    cloud.finish();
    found.unwrap()
}

async fn droplet_status(droplet: Value) -> Resource {
    status(&droplet_id(1), "/v2/droplets/1", json!({"droplet": droplet})).await
}

async fn database_status(database: Value) -> Resource {
    let id = format!("database/{DATABASE}").parse().unwrap();
    let path = format!("/v2/databases/{DATABASE}");
    status(&id, &path, json!({"database": database})).await
}

async fn pool_status(cluster: Value) -> Resource {
    let path = format!("/v2/kubernetes/clusters/{CLUSTER}");
    status(&pool_id(), &path, json!({"kubernetes_cluster": cluster})).await
}

#[tokio::test]
async fn all_pages_of_droplets_are_listed_and_no_link_leads_elsewhere() {
    let elsewhere = "https://elsewhere.example.com/v2/droplets?page=2&per_page=200";
    let cloud = Script::play([
        (
            "GET /v2/droplets?per_page=200&page=1",
            ok(page("droplets", vec![droplet(1, "active"), droplet(2, "off")], Some(elsewhere))),
        ),
        (
            "GET /v2/droplets?per_page=200&page=2",
            ok(page("droplets", vec![droplet(2, "off"), droplet(3, "off")], None)),
        ),
        (GPUS, ok(page("droplets", vec![droplet(4, "active")], None))),
    ])
    .await;
    let found = list(&cloud.digitalocean(), &[ResourceKind::Droplet]).await;
    let found = found.unwrap();
    assert_eq!(ids(&found), [1, 2, 3, 4].map(droplet_id));
    assert_eq!(found.requests, [(ResourceKind::Droplet, 3)].into());
    cloud.finish_in_any_order();
}

#[tokio::test]
async fn all_kinds_are_listed_with_the_pools_of_each_cluster() {
    let other = "c0ffee00-0000-4000-8000-000000000000";
    let mut deleted = cluster("deleting", json!([]));
    deleted["id"] = json!(other);
    let cloud = Script::play([
        (
            "GET /v2/droplets?per_page=200&page=1".to_owned(),
            ok(page("droplets", vec![droplet(1, "active")], None)),
        ),
        (GPUS.to_owned(), ok(page("droplets", vec![], None))),
        ("GET /v2/databases".to_owned(), ok(json!({"databases": [database("online", "pg")]}))),
        (
            "GET /v2/kubernetes/clusters?per_page=200&page=1".to_owned(),
            ok(page("kubernetes_clusters", vec![cluster("running", json!([])), deleted], None)),
        ),
        (
            format!("GET /v2/kubernetes/clusters/{CLUSTER}/node_pools"),
            ok(json!({"node_pools": [pool(1, &["running"])]})),
        ),
        (
            format!("GET /v2/kubernetes/clusters/{other}/node_pools"),
            answer(404, do_error("not_found", "cluster not found")),
        ),
    ])
    .await;
    let listed = list(&cloud.digitalocean(), &ResourceKind::ALL).await;
    let listed = listed.unwrap();
    let requests =
        [(ResourceKind::Droplet, 2), (ResourceKind::Database, 1), (ResourceKind::NodePool, 3)];
    assert_eq!(listed.requests, requests.into());
    assert_eq!(unread(&listed), []);
    let found: Vec<_> = ids(&listed).iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "droplet/1".to_owned(),
            format!("database/{DATABASE}"),
            format!("node-pool/{CLUSTER}/{POOL}"),
        ]
    );
    cloud.finish_in_any_order();
}

/// What could not be read, each in words and with the variant of its error.
fn unread(listed: &Listed) -> Vec<(String, &'static str)> {
    let unread = listed.unread.iter();
    unread.map(|one| (one.to_string(), kind(&one.error))).collect()
}

#[tokio::test]
async fn a_kind_that_cannot_be_read_takes_no_other_kind_away() {
    let forbidden = do_error("forbidden", "You are not authorized");
    let unavailable = do_error("server_error", "no");
    let cloud = Script::play([
        ("GET /v2/droplets?per_page=200&page=1", answer(503, &unavailable)),
        (GPUS, ok(page("droplets", vec![], None))),
        ("GET /v2/databases", ok(json!({"databases": [database("online", "pg")]}))),
        ("GET /v2/kubernetes/clusters?per_page=200&page=1", answer(403, &forbidden)),
    ])
    .await;
    let listed = list(&cloud.digitalocean(), &ResourceKind::ALL).await;
    let listed = listed.unwrap();
    assert_eq!(listed.looks.len(), 1);
    assert_eq!(listed.requests, [(ResourceKind::Database, 1)].into());
    let expected = [
        ("no droplet read".to_owned(), "unavailable"),
        ("no node-pool read".to_owned(), "not permitted"),
    ];
    assert_eq!(unread(&listed), expected);
    let words = Reason::of(&listed.unread[1]).to_string();
    assert!(words.contains("lacks the scope kubernetes:read"), "{words}");
    cloud.finish_in_any_order();

    // No kind at all, or a failure of the account.
    for (status, expected) in [(403, "not permitted"), (401, "token refused")] {
        let requests = [
            "GET /v2/droplets?per_page=200&page=1",
            GPUS,
            "GET /v2/databases",
            "GET /v2/kubernetes/clusters?per_page=200&page=1",
        ];
        let refused = |request| (request, answer(status, &forbidden));
        let cloud = Script::play(requests.map(refused)).await;
        let error = list(&cloud.digitalocean(), &ResourceKind::ALL).await;
        assert_eq!(kind(&error.unwrap_err()), expected);
        cloud.finish_in_any_order();
    }
}

#[tokio::test]
async fn an_element_that_cannot_be_read_is_named_and_spoils_no_other() {
    let mut odd = droplet(2, "active");
    odd["vcpus"] = json!("two");
    let mut unnamed = droplet(3, "active");
    unnamed["name"] = Value::Null;
    let mut broken = pool(1, &["running"]);
    broken["nodes"] = json!([{"id": "478247f8", "status": null}]);
    let mut sound = pool(1, &["running"]);
    sound["id"] = json!("5ea11e55-0000-4000-8000-000000000000");
    let mut unread_cluster = cluster("running", json!([]));
    unread_cluster["name"] = json!(7);
    // The list of clusters shows their pools too.
    let whole = cluster("running", json!([broken, sound]));
    let cloud = Script::play([
        (
            "GET /v2/droplets?per_page=200&page=1".to_owned(),
            ok(page("droplets", vec![droplet(1, "off"), odd, unnamed], None)),
        ),
        (GPUS.to_owned(), answer(403, do_error("forbidden", "no"))),
        (
            "GET /v2/kubernetes/clusters?per_page=200&page=1".to_owned(),
            ok(page("kubernetes_clusters", vec![whole.clone(), unread_cluster], None)),
        ),
        (
            format!("GET /v2/kubernetes/clusters/{CLUSTER}/node_pools"),
            ok(json!({"node_pools": [broken, sound]})),
        ),
        (
            format!("GET /v2/kubernetes/clusters/{CLUSTER}"),
            ok(json!({"kubernetes_cluster": whole})),
        ),
    ])
    .await;
    let client = cloud.digitalocean();
    let kinds = [ResourceKind::Droplet, ResourceKind::NodePool];
    let listed = list(&client, &kinds).await.unwrap();
    assert_eq!(listed.looks.len(), 2);
    let expected = [
        "droplet web-2 (2) not read".to_owned(),
        "droplet 3 not read".to_owned(),
        "droplet with GPUs not read".to_owned(),
        format!("node-pool backend-pool ({POOL}) not read"),
        format!("node-pool of the cluster {CLUSTER} not read"),
    ];
    let found: Vec<_> = unread(&listed).into_iter().map(|(words, _)| words).collect();
    assert_eq!(found, expected);
    // Its own Status operation does not understand it either, which is not a 404.
    let status = client.status(&pool_id()).await;
    assert_eq!(kind(&status.unwrap_err()), "not understood");
    cloud.finish();
}

#[tokio::test]
async fn the_pools_of_a_cluster_that_cannot_be_read_are_named_by_it() {
    let mut other = cluster("running", json!([]));
    other["id"] = json!("c0ffee00-0000-4000-8000-000000000000");
    other["name"] = json!("production");
    let cloud = Script::play([
        (
            "GET /v2/kubernetes/clusters?per_page=200&page=1".to_owned(),
            ok(page("kubernetes_clusters", vec![cluster("running", json!([])), other], None)),
        ),
        (
            format!("GET /v2/kubernetes/clusters/{CLUSTER}/node_pools"),
            answer(500, do_error("server_error", "no")),
        ),
        (
            "GET /v2/kubernetes/clusters/c0ffee00-0000-4000-8000-000000000000/node_pools"
                .to_owned(),
            ok(json!({"node_pools": [pool(1, &["running"])]})),
        ),
    ])
    .await;
    let listed = list(&cloud.digitalocean(), &[ResourceKind::NodePool]).await;
    let listed = listed.unwrap();
    assert_eq!(listed.looks.len(), 1);
    let words = "node-pool of the cluster staging not read".to_owned();
    assert_eq!(unread(&listed), [(words, "unavailable")]);
    cloud.finish();
}

#[tokio::test]
async fn a_list_of_databases_that_has_pages_all_the_same_is_read_whole() {
    let next = "https://x/v2/databases?page=2&per_page=20";
    let mut other = database("online", "pg");
    other["id"] = json!("c0ffee00-0000-4000-8000-000000000000");
    let first = page("databases", vec![database("online", "pg")], Some(next));
    let cloud = Script::play([
        ("GET /v2/databases", ok(first.clone())),
        ("GET /v2/databases?per_page=200&page=1", ok(first)),
        ("GET /v2/databases?per_page=200&page=2", ok(page("databases", vec![other], None))),
    ])
    .await;
    let client = cloud.digitalocean();
    let found = list(&client, &[ResourceKind::Database]).await.unwrap();
    assert_eq!(found.looks.len(), 2);
    assert_eq!(found.requests, [(ResourceKind::Database, 3)].into());
    cloud.finish();
}

#[tokio::test]
async fn an_empty_list_may_be_written_as_null_but_not_be_left_out() {
    let request = "GET /v2/databases";
    let cloud = Script::play([
        (request, ok(json!({"databases": null, "links": {"pages": {}}}))),
        (request, ok(json!({"links": {}}))),
    ])
    .await;
    let client = cloud.digitalocean();
    let kinds = [ResourceKind::Database];
    assert!(list(&client, &kinds).await.unwrap().looks.is_empty());
    assert_eq!(kind(&list(&client, &kinds).await.unwrap_err()), "not understood");
    cloud.finish();
}

#[tokio::test]
async fn a_list_that_breaks_on_a_later_page_or_goes_in_circles_is_an_error() {
    for (bad, expected) in [
        (answer(500, do_error("server_error", "no")), "unavailable"),
        (answer(404, do_error("not_found", "no")), "not found"),
        (ok(page("droplets", vec![], Some("https://x/?page=2"))), "not understood"),
        (ok(page("droplets", vec![], Some("https://x/?after=3"))), "not understood"),
        (answer(200, "<html>"), "not understood"),
    ] {
        let good = ok(page("droplets", vec![], Some("https://x/v2/droplets?page=2")));
        let cloud = Script::play([
            ("GET /v2/droplets?per_page=200&page=1", good),
            ("GET /v2/droplets?per_page=200&page=2", bad),
            (GPUS, ok(page("droplets", vec![], None))),
        ])
        .await;
        let list = list(&cloud.digitalocean(), &[ResourceKind::Droplet]).await;
        let error = list.unwrap_err();
        assert_eq!(kind(&error), expected, "{error}");
        cloud.finish_in_any_order();
    }
}

#[tokio::test]
async fn a_droplet_is_put_in_our_words() {
    let found = droplet_status(droplet(1, "active")).await;
    assert_eq!(
        found,
        Resource {
            id: droplet_id(1),
            name: "web-1".to_owned(),
            cluster: None,
            tags: names(&["offhours:office-hours", "web"]),
            region: "fra1".to_owned(),
            power: Power::Running,
            busy: None,
            size: Size::Machine(MachineSize {
                plan: "s-1vcpu-1gb".to_owned(),
                vcpus: 1,
                memory_mib: 1024,
                disk_gib: 25,
                ..MachineSize::default()
            }),
            facts: MachineFacts {
                created_at: Some("2020-07-21T18:37:44Z".parse().unwrap()),
                ..MachineFacts::default()
            },
            unsupported: None,
        }
    );
}

#[tokio::test]
async fn every_status_of_a_droplet_has_its_power_and_whether_it_may_be_changed() {
    for (status, locked, power, busy) in [
        ("active", false, Power::Running, None),
        ("off", false, Power::Stopped, None),
        ("active", true, Power::Running, Some("locked")),
        ("new", false, Power::Between, Some("being created")),
        ("archive", true, Power::Between, Some("status is archive")),
        ("asleep", false, Power::Between, Some("status is asleep")),
    ] {
        let mut droplet = droplet(1, status);
        droplet["locked"] = json!(locked);
        let found = droplet_status(droplet).await;
        assert_eq!(
            (found.power, found.busy.map(|busy| busy.to_string()).as_deref()),
            (power, busy),
            "{status}"
        );
    }
}

#[tokio::test]
async fn a_droplets_own_fields_say_what_forbids_a_resize() {
    let flags = async |field: &str, value: Value| {
        let mut droplet = droplet(1, "off");
        droplet[field] = value;
        let facts = droplet_status(droplet).await.facts;
        (facts.kubernetes_worker, facts.gpu, facts.scratch_disk)
    };
    let scratch = json!([{"type": "boot"}, {"type": "scratch"}]);
    assert_eq!(flags("name", json!("web")).await, (false, false, false));
    let worker = json!(["k8s:c1", "k8s-worker"]);
    assert_eq!(flags("tags", worker).await, (true, false, false));
    let gpu = json!({"count": 8});
    assert_eq!(flags("gpu_info", gpu).await, (false, true, false));
    assert_eq!(flags("disk_info", scratch).await, (false, false, true));
    assert_eq!(flags("disk_info", Value::Null).await, (false, false, false));
}

#[tokio::test]
async fn the_members_of_all_autoscale_pools_are_known() {
    let pools = json!({"autoscale_pools": [{"id": "gone"}, {"id": "web"}]});
    let members = json!({"droplets": [{"droplet_id": 4}, {"droplet_id": 5}]});
    let cloud = Script::play([
        ("GET /v2/droplets/autoscale?per_page=200&page=1", ok(pools)),
        (
            "GET /v2/droplets/autoscale/gone/members?per_page=200&page=1",
            answer(404, do_error("not_found", "no such pool")),
        ),
        ("GET /v2/droplets/autoscale/web/members?per_page=200&page=1", ok(members)),
    ])
    .await;
    let autoscaled = cloud.digitalocean().autoscaled().await.unwrap();
    assert_eq!(autoscaled, [4, 5].map(droplet_id).into());
    cloud.finish();
    // No other provider has any.
    let cloud = Script::play::<&str>([]).await;
    assert!(cloud.hetzner(&[]).autoscaled().await.unwrap().is_empty());
    cloud.finish();
}

#[tokio::test]
async fn a_kubernetes_worker_is_not_a_droplet_of_its_own() {
    for tag in ["k8s", "k8s:bd5f5959", "k8s-worker", "k8s:worker"] {
        let mut worker = droplet(1, "active");
        worker["tags"] = json!(["web", tag]);
        let reason = droplet_status(worker).await.unsupported;
        assert_eq!(
            reason.as_deref(),
            Some("a Kubernetes worker is scheduled as its node pool"),
            "{tag}"
        );
    }
    // Only the service's own tags make a worker.
    for tag in ["k8s-bastion", "k8s:bastion", "k8sworker", "env:k8s"] {
        let mut own = droplet(1, "active");
        own["tags"] = json!(["web", tag]);
        let shown = droplet_status(own).await;
        assert_eq!(shown.unsupported, None, "{tag}");
        assert!(!shown.facts.kubernetes_worker, "{tag}");
    }
}

#[tokio::test]
async fn tags_that_are_null_or_not_shown_are_none() {
    let (mut null, mut absent) = (droplet(1, "active"), droplet(1, "active"));
    null["tags"] = Value::Null;
    absent.as_object_mut().unwrap().remove("tags");
    for droplet in [null, absent] {
        assert!(droplet_status(droplet).await.tags.is_empty());
    }
    let mut untagged = database("online", "pg");
    untagged["tags"] = Value::Null;
    assert!(database_status(untagged).await.tags.is_empty());
}

#[tokio::test]
async fn a_database_is_put_in_our_words() {
    let found = database_status(database("online", "pg")).await;
    assert_eq!(found.name, "backend");
    assert_eq!(found.region, "nyc3");
    assert_eq!(found.tags, names(&["production"]));
    assert_eq!((found.power, found.busy, found.unsupported), (Power::Running, None, None));
    assert_eq!(
        found.size,
        Size::Database(DatabaseSize {
            engine: "pg".to_owned(),
            plan: "db-s-2vcpu-4gb".to_owned(),
            nodes: 2,
            storage_mib: Some(61_440),
        })
    );
}

#[tokio::test]
async fn a_database_that_is_not_online_is_busy() {
    for status in ["creating", "resizing", "migrating", "forking", "dreaming"] {
        let found = database_status(database(status, "pg")).await;
        assert_eq!(found.power, Power::Running);
        assert_eq!(found.busy, Some(Busy::Other(format!("status is {status}"))));
    }
    assert_eq!(database_status(database("active", "pg")).await.busy, None);
}

#[tokio::test]
async fn a_database_of_another_engine_says_why_it_is_left_alone() {
    let found = database_status(database("online", "kafka")).await;
    assert!(found.unsupported.unwrap().contains("Kafka"));
    let found = database_status(database("online", "valkey")).await;
    assert_eq!(found.unsupported, None);
}

#[tokio::test]
async fn a_node_pool_is_put_in_our_words_without_the_services_own_tags() {
    let mut scaled = pool(2, &["running", "draining"]);
    scaled["auto_scale"] = json!(true);
    scaled["min_nodes"] = json!(2);
    scaled["max_nodes"] = json!(5);
    let mut other = pool(1, &["running"]);
    other["id"] = json!("0ther");
    let found = pool_status(cluster("running", json!([other, scaled]))).await;
    assert_eq!(found.id, pool_id());
    assert_eq!(found.name, "backend-pool");
    assert_eq!(found.region, "nyc1");
    assert_eq!(found.tags, names(&["web-team", "k8s-own"]));
    assert_eq!(
        found.cluster,
        Some(Cluster { name: "staging".to_owned(), tags: names(&["offhours:office-hours"]) })
    );
    assert_eq!(found.unsupported, None);
    assert_eq!(
        found.size,
        Size::NodePool(NodePoolSize {
            plan: "s-1vcpu-2gb".to_owned(),
            count: 2,
            autoscale: Some(AutoscaleBounds { min: 2, max: 5 }),
            present: 2,
            ready: 1,
            labels: r#"{"service":"backend"}"#.to_owned(),
            taints: r#"[{"key":"gpu"}]"#.to_owned(),
        })
    );
}

#[tokio::test]
async fn a_pools_power_is_seen_in_its_nodes() {
    for (count, nodes, power) in [
        (0, &[][..], Power::Stopped),
        (0, &["draining"], Power::Between),
        (0, &["deleting"], Power::Between),
        (1, &[], Power::Between),
        (2, &["running"], Power::Between),
        (2, &["running", "provisioning"], Power::Between),
        (2, &["running", "hiding"], Power::Between),
        (1, &["running", "running"], Power::Between),
        (2, &["running", "running"], Power::Running),
    ] {
        let found = pool_status(cluster("running", json!([pool(count, nodes)]))).await;
        assert_eq!((found.power, found.busy), (power, None), "{count} {nodes:?}");
    }
}

#[tokio::test]
async fn a_pool_is_busy_when_its_cluster_is() {
    for (state, busy) in [
        ("running", None),
        ("degraded", None),
        ("error", None),
        ("provisioning", Some("cluster is provisioning")),
        ("upgrading", Some("cluster is upgrading")),
        ("deleting", Some("cluster is deleting")),
        ("deleted", Some("cluster is deleted")),
        ("melting", Some("cluster is melting")),
    ] {
        let found = pool_status(cluster(state, json!([pool(1, &["running"])]))).await;
        assert_eq!(found.busy.map(|busy| busy.to_string()).as_deref(), busy, "{state}");
    }
}

#[tokio::test]
async fn a_pool_may_lack_labels_taints_and_nodes() {
    let mut bare = pool(0, &[]);
    let fields = bare.as_object_mut().unwrap();
    fields.insert("labels".to_owned(), Value::Null);
    fields.insert("nodes".to_owned(), Value::Null);
    fields.remove("taints");
    let found = pool_status(cluster("running", json!([bare]))).await;
    assert_eq!(found.power, Power::Stopped);
    let Size::NodePool(size) = found.size else { panic!("{:?}", found.size) };
    assert_eq!((size.labels.as_str(), size.taints.as_str()), ("{}", "[]"));
}

#[tokio::test]
async fn a_pool_whose_tags_the_token_cannot_read_is_not_touched() {
    let mut hidden = pool(1, &["running"]);
    hidden.as_object_mut().unwrap().remove("tags");
    let found = pool_status(cluster("running", json!([hidden]))).await;
    assert!(found.unsupported.unwrap().contains("tag:read"));
}

#[tokio::test]
async fn what_is_not_there_is_none() {
    let missing = || answer(404, do_error("not_found", "no"));
    let cluster_path = format!("GET /v2/kubernetes/clusters/{CLUSTER}");
    let mut other = pool(1, &["running"]);
    other["id"] = json!("0ther");
    let cloud = Script::play([
        ("GET /v2/droplets/1".to_owned(), missing()),
        (format!("GET /v2/databases/{DATABASE}"), missing()),
        (cluster_path.clone(), missing()),
        (cluster_path, ok(json!({"kubernetes_cluster": cluster("running", json!([other]))}))),
    ])
    .await;
    let client = cloud.digitalocean();
    let database: ResourceId = format!("database/{DATABASE}").parse().unwrap();
    for id in [droplet_id(1), database, pool_id(), pool_id()] {
        assert_eq!(client.status(&id).await.unwrap(), None, "{id}");
    }
    cloud.finish();
}

#[tokio::test]
async fn a_cluster_that_hides_its_pools_or_their_bounds_does_not_make_them_disappear() {
    let mut unbounded = pool(1, &["running"]);
    unbounded["auto_scale"] = json!(true);
    unbounded.as_object_mut().unwrap().remove("max_nodes");
    for pools in [Value::Null, json!([unbounded])] {
        let body = json!({"kubernetes_cluster": cluster("running", pools)});
        let request = format!("GET /v2/kubernetes/clusters/{CLUSTER}");
        let cloud = Script::play([(request, ok(body))]).await;
        let error = cloud.digitalocean().status(&pool_id()).await.unwrap_err();
        assert_eq!(kind(&error), "not understood");
        cloud.finish();
    }
}

#[tokio::test]
async fn an_id_that_would_lead_to_another_path_is_not_understood() {
    for id in ["../droplets", "a/b", "", "a?b"] {
        let mut database = database("online", "pg");
        database["id"] = json!(id);
        let cloud =
            Script::play([("GET /v2/databases", ok(json!({"databases": [database]})))]).await;
        let listed = list(&cloud.digitalocean(), &[ResourceKind::Database]).await;
        let listed = listed.unwrap();
        assert!(listed.looks.is_empty(), "{id}");
        assert_eq!(unread(&listed)[0].1, "not understood", "{id}");
        cloud.finish();
    }
}

#[tokio::test]
async fn the_action_log_is_read_newest_first_down_to_the_instant() {
    let since: Timestamp = "2026-11-21T09:00:05.7Z".parse().unwrap();
    let next = |page| Some(format!("https://x/v2/droplets/1/actions?page={page}"));
    let cloud = Script::play([
        (
            "GET /v2/droplets/1/actions?per_page=200&page=1",
            ok(page(
                "actions",
                vec![
                    action(9, "power_on", "in-progress", "2026-11-21T09:01:00Z"),
                    action(8, "power_cycle", "errored", "2026-11-21T09:00:30Z"),
                    action(7, "shutdown", "completed", "2026-11-21T09:00:05Z"),
                ],
                next(2).as_deref(),
            )),
        ),
        (
            "GET /v2/droplets/1/actions?per_page=200&page=2",
            ok(page(
                "actions",
                vec![
                    action(6, "power_off", "postponed", "2026-11-21T09:00:05Z"),
                    action(5, "snapshot", "completed", "2026-11-21T09:00:04Z"),
                ],
                next(3).as_deref(),
            )),
        ),
    ])
    .await;
    let log = cloud.digitalocean().actions(&droplet_id(1), since).await;
    let log: Vec<_> =
        log.unwrap().iter().map(|action| (action.id.0, action.effect, action.state)).collect();
    assert_eq!(
        log,
        [
            (9, ActionEffect::Start, ActionState::Running),
            (8, ActionEffect::Reboot, ActionState::Failed),
            (7, ActionEffect::Shutdown, ActionState::Done),
            (6, ActionEffect::PowerOff, ActionState::Running),
        ]
    );
    cloud.finish();
}

#[tokio::test]
async fn an_action_log_in_another_order_is_read_to_its_end() {
    let since: Timestamp = "2026-11-21T09:00:00Z".parse().unwrap();
    let next = Some("https://x/v2/droplets/1/actions?page=2");
    let cloud = Script::play([
        (
            "GET /v2/droplets/1/actions?per_page=200&page=1",
            ok(page(
                "actions",
                vec![
                    action(1, "reboot", "completed", "2026-11-20T09:00:00Z"),
                    action(3, "snapshot", "completed", "2026-11-21T09:10:00Z"),
                    action(2, "power_off", "completed", "2026-11-20T10:00:00Z"),
                ],
                next,
            )),
        ),
        (
            "GET /v2/droplets/1/actions?per_page=200&page=2",
            ok(page(
                "actions",
                vec![action(4, "power_on", "completed", "2026-11-21T09:20:00Z")],
                None,
            )),
        ),
    ])
    .await;
    let log = cloud.digitalocean().actions(&droplet_id(1), since).await;
    let log: Vec<_> = log.unwrap().iter().map(|action| action.id.0).collect();
    assert_eq!(log, [4, 3]);
    cloud.finish();
}

fn options() -> Value {
    json!({"options": {
        "pg": {
            "regions": ["nyc3", "fra1"],
            "layouts": [
                {"num_nodes": 1, "sizes": [
                    "db-s-2vcpu-4gb", "custom", "db-amd-1vcpu-1gb", "db-s-1vcpu-1gb",
                    "db-s-1vcpu-2gb",
                ]},
                {"num_nodes": 2, "sizes": [
                    "gd-4vcpu-8gb", "db-s-2vcpu-2gb", "db-s-1vcpu-2gb", "db-s-1vcpu-3gb",
                ]},
                {"num_nodes": 3, "sizes": ["custom"]},
            ],
        },
        "kafka": "in a form that is not ours",
    }, "version_availability": {}})
}

#[tokio::test]
async fn the_smallest_plan_has_the_least_memory_and_then_the_fewest_vcpus() {
    let cloud = Script::play([("GET /v2/databases/options", ok(options()))]).await;
    let plans = cloud.digitalocean().database_plans().await.unwrap();
    cloud.finish();
    for (engine, nodes, region, expected) in [
        ("pg", 1, "nyc3", Some("db-s-1vcpu-1gb")),
        ("pg", 2, "fra1", Some("db-s-1vcpu-2gb")),
        ("pg", 3, "nyc3", None),
        ("pg", 4, "nyc3", None),
        ("pg", 1, "mars1", None),
        ("mysql", 1, "nyc3", None),
    ] {
        let size = DatabaseSize {
            engine: engine.to_owned(),
            plan: "db-s-8vcpu-32gb".to_owned(),
            nodes,
            storage_mib: None,
        };
        let plan = plans.smallest(&size, region).unwrap();
        assert_eq!(plan.as_deref(), expected, "{engine} {nodes} {region}");
    }
}

#[tokio::test]
async fn power_actions_name_their_type() {
    let begun = |word: &str| {
        let request =
            format!(r#"POST /v2/droplets/1/actions application/json {{"type":"{word}"}}"#);
        let body = json!({"action": action(36, word, "in-progress", "2026-11-21T09:00:00Z")});
        (request, answer(201, body))
    };
    let cloud = Script::play([begun("power_on"), begun("shutdown"), begun("power_off")]).await;
    let client = cloud.digitalocean();
    let droplet = seen(droplet_id(1));
    for (step, word) in [
        (Step::On { small: false }, "power_on"),
        (Step::Off { gracefully: true }, "shutdown"),
        (Step::CUT, "power_off"),
    ] {
        let accepted = client.send(&droplet, &step).await.unwrap();
        assert_eq!(accepted, Accepted { action: Some(ActionId(36)), made: None }, "{step}");
        let shown = client.shown(&droplet, &step);
        assert_eq!(shown, format!("POST /v2/droplets/1/actions {word}"));
    }
    cloud.finish();
}

/// A resource, and a step of it.
type Change = (Resource, Step);

fn resize(storage_mib: Option<u64>) -> Change {
    let to = SavedState::Database { plan: "db-s-1vcpu-1gb".to_owned(), nodes: 1, storage_mib };
    (seen(ResourceId::Database(DatabaseId(DATABASE.to_owned()))), Step::Resize(to))
}

async fn sent(
    request: String,
    answer: Answer,
    (resource, step): &Change,
) -> Result<Accepted, ChangeError> {
    let cloud = Script::play([(request, answer)]).await;
    let client: Client = cloud.digitalocean();
    let sent = client.send(resource, step).await;
    cloud.finish();
    sent
}

#[tokio::test]
async fn a_resize_names_storage_only_when_it_must_change() {
    let accepted = Accepted::default();
    let path = format!("PUT /v2/databases/{DATABASE}/resize application/json");
    let request = format!(r#"{path} {{"size":"db-s-1vcpu-1gb","num_nodes":1}}"#);
    let taken = sent(request, answer(202, ""), &resize(None)).await;
    assert_eq!(taken.unwrap(), accepted);
    let request =
        format!(r#"{path} {{"size":"db-s-1vcpu-1gb","num_nodes":1,"storage_size_mib":61440}}"#);
    let taken = sent(request.clone(), answer(202, "{}"), &resize(Some(61_440))).await;
    assert_eq!(taken.unwrap(), accepted);
    let (database, step) = resize(Some(61_440));
    let cloud = Script::play::<String>([]).await;
    let shown = cloud.digitalocean().shown(&database, &step);
    cloud.finish();
    let path = format!("PUT /v2/databases/{DATABASE}/resize");
    assert_eq!(shown, format!("{path} size=db-s-1vcpu-1gb num_nodes=1 storage_size_mib=61440"));
    let error = sent(request, answer(200, "<html>"), &resize(Some(61_440))).await;
    assert_eq!(change_kind(&error.unwrap_err()), "unknown");
}

#[tokio::test]
async fn a_plan_that_cannot_shrink_is_refused_in_the_providers_words() {
    let path = format!("PUT /v2/databases/{DATABASE}/resize application/json");
    let request = format!(r#"{path} {{"size":"db-s-1vcpu-1gb","num_nodes":1}}"#);
    let words = do_error("unprocessable_entity", "cannot downsize a database cluster");
    let error = sent(request, answer(422, words), &resize(None)).await.unwrap_err();
    let ChangeError::Refused(refusal) = error else { panic!("{error:?}") };
    assert_eq!(refusal.message, "cannot downsize a database cluster");
}

fn scale(count: u32, autoscale: Option<AutoscaleBounds>) -> Change {
    let id = ResourceId::NodePool(ClusterId(CLUSTER.to_owned()), PoolId(POOL.to_owned()));
    let mut resource = seen(id);
    resource.name = "backend-pool".to_owned();
    resource.tags = names(&["web-team", "k8s", "k8s:worker", &format!("k8s:{CLUSTER}")]);
    if let Size::NodePool(pool) = &mut resource.size {
        pool.labels = r#"{"service":"backend"}"#.to_owned();
        pool.taints = r#"[{"key":"gpu"}]"#.to_owned();
    }
    (resource, Step::Resize(SavedState::NodePool { count, autoscale }))
}

#[tokio::test]
async fn a_pools_update_sends_everything_again_and_writes_zero_and_false() {
    let path = format!("PUT /v2/kubernetes/clusters/{CLUSTER}/node_pools/{POOL} application/json");
    let kept = r#""tags":["web-team"],"labels":{"service":"backend"},"taints":[{"key":"gpu"}]"#;
    // Only that there is one says something.
    let updated = |_| answer(202, json!({"node_pool": {"size": 7}}));
    let scaled = r#""name":"backend-pool","count":0,"auto_scale":false"#;
    let request = format!("{path} {{{scaled},{kept}}}");
    let taken = sent(request, updated(0), &scale(0, None)).await;
    assert_eq!(taken.unwrap(), Accepted::default());
    let bounds = AutoscaleBounds { min: 2, max: 5 };
    let scaled = r#""name":"backend-pool","count":3,"auto_scale":true,"min_nodes":2,"max_nodes":5"#;
    let request = format!("{path} {{{scaled},{kept}}}");
    let taken = sent(request.clone(), updated(3), &scale(3, Some(bounds))).await;
    assert_eq!(taken.unwrap(), Accepted::default());
    let error = sent(request, answer(202, "{}"), &scale(3, Some(bounds))).await;
    assert_eq!(change_kind(&error.unwrap_err()), "unknown");
}

#[tokio::test]
async fn a_pool_that_cannot_be_sent_whole_is_not_sent() {
    let (mut broken, step) = scale(0, None);
    if let Size::NodePool(pool) = &mut broken.size {
        pool.taints = "[".to_owned();
    }
    let cloud = Script::play::<String>([]).await;
    let error = cloud.digitalocean().send(&broken, &step).await.unwrap_err();
    assert_eq!(change_kind(&error), "not accepted");
    cloud.finish();
}

#[tokio::test]
async fn an_answer_about_another_resource_is_not_understood() {
    const OTHER: &str = "0ther-1d";
    let pool_of_another = json!({"kubernetes_cluster": cluster("running", json!([]))});
    for (id, path, other) in [
        (
            "droplet/1".to_owned(),
            "/v2/droplets/1".to_owned(),
            json!({"droplet": droplet(2, "off")}),
        ),
        (
            format!("database/{OTHER}"),
            format!("/v2/databases/{OTHER}"),
            json!({"database": database("online", "pg")}),
        ),
        // A missing pool in this cluster does not make a pool of another cluster disappear.
        (
            format!("node-pool/{OTHER}/{POOL}"),
            format!("/v2/kubernetes/clusters/{OTHER}"),
            pool_of_another,
        ),
    ] {
        let cloud = Script::play([(format!("GET {path}"), ok(other))]).await;
        let id: ResourceId = id.parse().unwrap();
        let error = cloud.digitalocean().status(&id).await.unwrap_err();
        assert_eq!(kind(&error), "not understood", "{id}");
        cloud.finish();
    }
}

#[tokio::test]
async fn a_droplet_is_resized_without_its_disk() {
    let request = r#"POST /v2/droplets/1/actions application/json {"type":"resize","size":"s-1vcpu-1gb","disk":false}"#;
    let begun = action(36, "resize", "in-progress", "2026-11-21T09:00:00Z");
    let cloud = Script::play([(request, answer(201, json!({"action": begun})))]).await;
    let to = MachineSize { plan: "s-1vcpu-1gb".to_owned(), ..MachineSize::default() };
    let (droplet, step) = (seen(droplet_id(1)), Step::Resize(SavedState::Machine(to)));
    let client = cloud.digitalocean();
    let accepted = client.send(&droplet, &step).await;
    let shown = client.shown(&droplet, &step);
    assert_eq!(shown, "POST /v2/droplets/1/actions resize size=s-1vcpu-1gb disk=false");
    assert_eq!(accepted.unwrap().action, Some(ActionId(36)));
    cloud.finish();
}
