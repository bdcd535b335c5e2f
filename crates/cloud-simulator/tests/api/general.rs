//! The behavior common to all operations: errors, permissions, pages, rate limits.

use serde_json::{Value, json};

use crate::client::Clouds;

fn droplets(count: u32) -> String {
    let droplet = |id| format!("[[droplets]]\nid = {id}\nname = \"droplet-{id}\"\n");
    (1..=count).map(droplet).collect()
}

fn servers(count: u32) -> String {
    let server = |id| {
        format!(
            "[[servers]]\nid = {id}\nname = \"server-{id}\"\n\
             labels = {{ parity = \"{}\" }}\n",
            if id % 2 == 0 { "even" } else { "odd" }
        )
    };
    (1..=count).map(server).collect()
}

#[tokio::test]
async fn each_cloud_words_its_errors_in_its_own_form() {
    let clouds = Clouds::with("").await;
    for (method, path, status, id) in [
        ("GET", "/v2/droplets/1", 404, "not_found"),
        ("GET", "/v2/droplets/abc", 404, "not_found"),
        ("GET", "/v2/domains", 404, "not_found"),
        ("DELETE", "/v2/droplets/1", 404, "not_found"),
        ("DELETE", "/v2/sizes", 405, "method_not_allowed"),
        ("GET", "/v2/databases/9cc10173-e9ea-4176-9dbc-a4cee4c4ff30", 404, "not_found"),
    ] {
        let error = clouds.send(method, path, None).await.expect(status);
        assert_eq!(error["id"], id, "{method} {path}");
        assert!(error["message"].is_string() && error["request_id"].is_string());
    }
    for (method, path, status, code) in [
        ("GET", "/v1/servers/1", 404, "not_found"),
        ("GET", "/v1/isos", 404, "not_found"),
        ("DELETE", "/v1/servers/1", 404, "not_found"),
        ("PUT", "/v1/locations/1", 405, "method_not_allowed"),
        ("POST", "/v1/servers/1/actions/poweron", 404, "not_found"),
        ("GET", "/v1/datacenters", 410, "deprecated_api_endpoint"),
        ("GET", "/v1/datacenters/4", 410, "deprecated_api_endpoint"),
        ("GET", "/v1/actions", 422, "invalid_input"),
    ] {
        let error = clouds.send(method, path, None).await.expect(status);
        assert_eq!(error["error"]["code"], code, "{method} {path}");
        assert!(error["error"]["message"].is_string());
        assert!(error["error"].get("details").is_some());
    }
}

#[tokio::test]
async fn a_token_opens_its_own_cloud_only() {
    let clouds = Clouds::with("").await;
    for token in ["hz-token", "other", ""] {
        let answer = clouds.send_as(token, "GET", "/v2/droplets", None).await;
        assert_eq!(answer.number("ratelimit-limit"), 5000);
        let error = answer.expect(401);
        assert_eq!(error["id"], "unauthorized");
        assert_eq!(error["message"], "Unable to authenticate you.");
    }
    let error = clouds.send_as("do-token", "GET", "/v1/servers", None).await.expect(401);
    assert_eq!(error["error"]["code"], "unauthorized");
}

#[tokio::test]
async fn a_read_only_token_reads_and_changes_nothing() {
    let fleet = "[[droplets]]\nid = 1\nname = \"a\"\n[[servers]]\nid = 1\nname = \"a\"\n";
    let clouds = Clouds::with(fleet).await;
    clouds.send_as("do-reader-token", "GET", "/v2/droplets", None).await.expect(200);
    let body = Some(json!({"type": "power_off"}));
    let path = "/v2/droplets/1/actions";
    let error = clouds.send_as("do-reader-token", "POST", path, body).await.expect(403);
    assert_eq!(error["id"], "forbidden");

    clouds.send_as("hz-reader-token", "GET", "/v1/servers", None).await.expect(200);
    let path = "/v1/servers/1/actions/poweroff";
    let error = clouds.send_as("hz-reader-token", "POST", path, None).await.expect(403);
    assert_eq!(error["error"]["code"], "token_readonly");
    assert_eq!(clouds.state("hz/server/1")["status"], "running");
}

#[tokio::test]
async fn digitalocean_links_full_addresses_until_the_last_page() {
    let clouds = Clouds::with(&droplets(45)).await;
    let mut path = "/v2/droplets".to_owned();
    let mut names = Vec::new();
    let mut sizes = Vec::new();
    loop {
        let page = clouds.get(&path).await;
        let found = page["droplets"].as_array().unwrap();
        sizes.push(found.len());
        names.extend(found.iter().map(|droplet| droplet["name"].clone()));
        assert_eq!(page["meta"]["total"], 45);
        let Some(next) = page["links"]["pages"]["next"].as_str() else {
            break;
        };
        let origin = format!("http://{}", clouds.address());
        path = next.strip_prefix(&origin).unwrap().to_owned();
    }
    assert_eq!(sizes, [20, 20, 5]);
    assert_eq!(names.len(), 45);
    names.dedup();
    assert_eq!(names.len(), 45);

    let page = clouds.get("/v2/droplets?per_page=201").await;
    assert_eq!(page["links"], json!({}));
    let last = clouds.get("/v2/droplets?per_page=40&page=2").await;
    let pages = &last["links"]["pages"];
    assert!(pages.get("next").is_none() && pages["prev"].is_string(), "{pages}");
    let beyond = clouds.get("/v2/droplets?page=9").await;
    assert_eq!(beyond["droplets"], json!([]));
}

#[tokio::test]
async fn a_link_keeps_the_filter() {
    let fleet = droplets(3).replace("name = \"droplet-", "tags = [\"a b\"]\nname = \"droplet-");
    let clouds = Clouds::with(&fleet).await;
    let page = clouds.get("/v2/droplets?tag_name=A%20b&per_page=2").await;
    let next = page["links"]["pages"]["next"].as_str().unwrap();
    assert!(next.ends_with("/v2/droplets?tag_name=A+b&page=2&per_page=2"), "{next}");
    assert_eq!(clouds.get("/v2/droplets?tag_name=c").await["meta"]["total"], 0);
}

#[tokio::test]
async fn hetzner_numbers_pages_of_at_most_fifty() {
    let clouds = Clouds::with(&servers(60)).await;
    let first = clouds.get("/v1/servers").await;
    assert_eq!(first["servers"].as_array().unwrap().len(), 25);
    assert_eq!(
        first["meta"]["pagination"],
        json!({
            "page": 1, "per_page": 25, "previous_page": null, "next_page": 2, "last_page": 3,
            "total_entries": 60,
        })
    );
    let answer = clouds.send("GET", "/v1/servers?per_page=100&page=2", None).await;
    let links = answer.header("link").unwrap().to_owned();
    assert!(links.contains("rel=\"prev\"") && !links.contains("rel=\"next\""), "{links}");
    let second = answer.expect(200);
    assert_eq!(second["servers"].as_array().unwrap().len(), 10);
    assert_eq!(second["meta"]["pagination"]["next_page"], Value::Null);
    assert_eq!(second["meta"]["pagination"]["per_page"], 50);
}

#[tokio::test]
async fn servers_are_filtered_and_sorted_as_asked() {
    let clouds = Clouds::with(&servers(6)).await;
    let ids = |page: Value| -> Vec<u64> {
        let servers = page["servers"].as_array().unwrap().clone();
        servers.iter().map(|server| server["id"].as_u64().unwrap()).collect()
    };
    let even = clouds.get("/v1/servers?label_selector=parity%3D%3Deven").await;
    assert_eq!(ids(even), [2, 4, 6]);
    assert_eq!(ids(clouds.get("/v1/servers?sort=id:desc&name=server-3").await), [3]);
    assert_eq!(ids(clouds.get("/v1/servers?sort=id:desc").await), [6, 5, 4, 3, 2, 1]);
    assert_eq!(ids(clouds.get("/v1/servers?status=off").await), [] as [u64; 0]);
    let all = clouds.get("/v1/servers?status=off&status=running").await;
    assert_eq!(ids(all), [1, 2, 3, 4, 5, 6]);
    let error = clouds.send("GET", "/v1/servers?label_selector=a%20b", None).await.expect(422);
    assert_eq!(error["error"]["code"], "invalid_input");
}

#[tokio::test]
async fn a_databases_list_has_neither_pages_nor_a_total() {
    let clouds = Clouds::with("").await;
    let list = clouds.get("/v2/databases?page=2&per_page=1").await;
    assert_eq!(list, json!({"databases": []}));
}

const LIMITED: &str = r#"
[[accounts]]
name = "do"
provider = "digitalocean"
token = "do-token"
rate_limit = { per_hour = 5, per_minute = 3 }

[[accounts]]
name = "hz"
provider = "hetzner"
token = "hz-token"
rate_limit = { per_hour = 360 }
"#;

#[tokio::test]
async fn digitalocean_refuses_one_request_too_many_per_minute_and_per_hour() {
    let clouds = Clouds::serve(LIMITED).await;
    let start = clouds.now().as_second();
    for remaining in [4, 3, 2] {
        let answer = clouds.send("GET", "/v2/account", None).await;
        assert_eq!(answer.number("ratelimit-limit"), 5);
        assert_eq!(answer.number("ratelimit-remaining"), remaining);
        assert_eq!(answer.number("ratelimit-reset"), start + 3600);
        answer.expect(200);
    }
    clouds.pass(20);
    let refused = clouds.send("GET", "/v2/account", None).await;
    assert_eq!(refused.number("retry-after"), 41);
    assert_eq!(refused.number("ratelimit-remaining"), 0);
    assert_eq!(refused.expect(429)["id"], "too_many_requests");

    clouds.pass(40);
    clouds.get("/v2/account").await;
    clouds.get("/v2/account").await;
    clouds.pass(60);
    let refused = clouds.send("GET", "/v2/account", None).await;
    assert_eq!(refused.header("retry-after"), None);
    assert_eq!(refused.number("ratelimit-remaining"), 0);
    refused.expect(429);
    // The window slides: the three oldest requests are forgotten an hour after they arrived.
    clouds.pass(3480);
    let answer = clouds.send("GET", "/v2/account", None).await;
    assert_eq!(answer.number("ratelimit-remaining"), 2);
}

#[tokio::test]
async fn hetzner_gives_requests_back_one_by_one() {
    let clouds = Clouds::serve(LIMITED).await;
    let start = clouds.now().as_second();
    for _ in 0..360 {
        clouds.get("/v1/locations?name=none").await;
    }
    let refused = clouds.send("GET", "/v1/servers", None).await;
    assert_eq!(refused.number("RateLimit-Limit"), 360);
    assert_eq!(refused.number("RateLimit-Remaining"), 0);
    assert_eq!(refused.number("RateLimit-Reset"), start + 3600);
    assert_eq!(refused.header("retry-after"), None);
    assert_eq!(refused.expect(429)["error"]["code"], "rate_limit_exceeded");
    clouds.pass(10);
    clouds.get("/v1/servers").await;
    clouds.send("GET", "/v1/servers", None).await.expect(429);
}

#[tokio::test]
async fn answers_carry_the_simulated_date() {
    let clouds = Clouds::with("").await;
    clouds.pass(61);
    let answer = clouds.send("GET", "/v2/account", None).await;
    assert_eq!(answer.header("date"), Some("Mon, 23 Nov 2026 07:01:01 GMT"));
}
