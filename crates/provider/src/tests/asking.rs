//! What commands need besides: a list's progress, whether a token can read, the provider's clock.

use std::sync::atomic::{AtomicUsize, Ordering};

use domain::ResourceKind;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    do_error, kind,
    script::{Script, answer, ok},
};
use crate::Reading;

fn server(id: u64) -> Value {
    json!({
        "id": id, "name": "ci", "status": "running", "locked": false, "labels": {},
        "location": {"name": "fsn1"}, "primary_disk_size": 40,
        "server_type": {"name": "cx22", "cores": 2, "memory": 4, "architecture": "x86",
            "storage_type": "local"},
    })
}

fn servers(ids: &[u64], next: Option<u32>) -> Value {
    let servers: Vec<_> = ids.iter().map(|&id| server(id)).collect();
    json!({"servers": servers, "meta": {"pagination": {"next_page": next}}})
}

#[tokio::test]
async fn watching_a_list_shows_how_many_resources_each_answer_brought() {
    let path = "GET /v1/servers?sort=id:asc&per_page=50&page";
    let cloud = Script::play([
        (format!("{path}=1"), ok(servers(&[1, 2], Some(2)))),
        (format!("{path}=2"), ok(servers(&[3], None))),
    ])
    .await;
    let (answers, read) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let reading = Reading {
        now: &|| Timestamp::UNIX_EPOCH,
        until: None,
        read: &|more| {
            answers.fetch_add(1, Ordering::Relaxed);
            read.fetch_add(more, Ordering::Relaxed);
        },
    };
    let client = cloud.hetzner(&[]);
    let listed = client.list(&[ResourceKind::Server], reading).await;
    assert_eq!(listed.unwrap().looks.len(), 3);
    assert_eq!((answers.into_inner(), read.into_inner()), (2, 3));
    cloud.finish();
}

#[tokio::test]
async fn whether_a_token_reads_a_kind_is_tried_by_one_small_request() {
    let droplets = json!({"droplets": [], "links": {}, "meta": {"total": 0}});
    let cloud = Script::play([
        ("GET /v2/droplets?per_page=1", ok(droplets)),
        ("GET /v2/databases", answer(403, do_error("forbidden", "no"))),
        ("GET /v2/kubernetes/clusters?per_page=1", answer(401, do_error("unauthorized", "no"))),
    ])
    .await;
    let client = cloud.digitalocean();
    assert!(client.try_reading(ResourceKind::Droplet).await.is_ok());
    for (sized, expected) in
        [(ResourceKind::Database, "not permitted"), (ResourceKind::NodePool, "token refused")]
    {
        let refused = client.try_reading(sized).await.unwrap_err();
        assert_eq!(kind(&refused), expected);
    }
    // A kind of the other provider: no request is sent.
    assert!(client.try_reading(ResourceKind::Server).await.is_ok());
    cloud.finish();

    let cloud = Script::play([("GET /v1/servers?per_page=1", ok(servers(&[], None)))]).await;
    let client = cloud.hetzner(&[]);
    assert!(client.try_reading(ResourceKind::Server).await.is_ok());
    assert!(client.try_reading(ResourceKind::Droplet).await.is_ok());
    cloud.finish();
}

#[tokio::test]
async fn the_providers_clock_is_the_date_of_its_latest_answer_an_error_included() {
    let dated = |date: &str| answer(503, "").with("date", date);
    let cloud = Script::play([
        ("GET /v1/servers?per_page=1", dated("Sat, 21 Nov 2026 09:00:00 GMT")),
        ("GET /v1/servers?per_page=1", answer(503, "")),
    ])
    .await;
    let client = cloud.hetzner(&[]);
    assert_eq!(client.date(), None);
    for _ in 0..2 {
        assert!(client.try_reading(ResourceKind::Server).await.is_err());
        let nine: Timestamp = "2026-11-21T09:00:00Z".parse().unwrap();
        assert_eq!(client.date(), Some(nine));
    }
    cloud.finish();
}

#[tokio::test]
async fn a_client_sends_no_more_requests_than_it_may() {
    let read = || ("GET /v1/servers?per_page=1", ok(servers(&[], None)));
    let cloud = Script::play([read(), read(), read()]).await;
    let client = cloud.hetzner(&[]);
    let limited = client.sending_at_most(2);
    let reads = [&limited, &client, &limited, &limited, &client];
    let mut sent = Vec::new();
    for client in reads {
        sent.push(client.try_reading(ResourceKind::Server).await.is_ok());
    }
    assert_eq!(sent, [true, true, false, false, true]);
    cloud.finish();
}

/// The requests that show which scopes a token lacks, in order.
const SCOPED: [&str; 17] = [
    "GET /v2/droplets?per_page=1",
    "GET /v2/tags?per_page=1",
    "GET /v2/account",
    "GET /v2/account/keys?per_page=1",
    "GET /v2/actions?per_page=1",
    "GET /v2/snapshots?per_page=1",
    "GET /v2/images?per_page=1",
    "GET /v2/volumes?per_page=1",
    "GET /v2/vpcs?per_page=1",
    "GET /v2/firewalls?per_page=1",
    "GET /v2/load_balancers?per_page=1",
    "GET /v2/reserved_ips?per_page=1",
    "GET /v2/databases",
    "GET /v2/projects?per_page=1",
    "GET /v2/monitoring/alerts?per_page=1",
    "GET /v2/regions?per_page=1",
    "GET /v2/sizes?per_page=1",
];

#[tokio::test]
async fn a_scope_that_a_token_lacks_is_found_by_what_is_refused() {
    let cloud = Script::play(SCOPED.map(|request| {
        let is_refused = request.contains("firewalls") || request.contains("tags");
        let answered =
            if is_refused { answer(403, do_error("forbidden", "no")) } else { ok(json!({})) };
        (request, answered)
    }))
    .await;
    let missing = cloud.digitalocean().missing_scopes().await.unwrap();
    let missing: Vec<_> = missing.iter().map(|one| one.scope).collect();
    assert_eq!(missing, ["tag:read", "firewall:read"]);
    cloud.finish();
}

/// The request for sizes needs the scope for regions as well, and is not sent without it.
#[tokio::test]
async fn a_token_that_may_read_nothing_is_refused_itself() {
    let refused = |request| (request, answer(401, do_error("unauthorized", "no")));
    let cloud = Script::play(SCOPED[..16].iter().copied().map(refused)).await;
    let client = cloud.digitalocean();
    let refused = client.missing_scopes().await.unwrap_err();
    assert_eq!(kind(&refused), "token refused");
    cloud.finish();
}
