//! What both clients share: rate limits, tokens, broken connections, and what every error means.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use domain::{
    DatabaseId, ResourceId, ResourceKind, configuration::Provider, fixtures::account,
    hibernation::Attachment, reason::Reason, resource::SavedState, step::Step,
};
use futures_util::future::BoxFuture;
use testing::seen;

use super::{
    change_kind, do_error, everything, hz_error, kind, list,
    script::{Answer, Script, TOKEN, answer, ok},
};
use crate::{
    Carrier, CarrierResult, ChangeError, Client, ProviderError, Transport, http::builder,
    http_client, transport::LONGEST_BODY,
};

const ON: Step = Step::On { small: false };

const DROPLET: &str = "GET /v2/droplets/1";
const SERVER: &str = "GET /v1/servers/1";
const POWER_ON: &str = r#"POST /v2/droplets/1/actions application/json {"type":"power_on"}"#;
const START: &str = "POST /v1/servers/1/actions/poweron";

fn droplet() -> ResourceId {
    "droplet/1".parse().unwrap()
}

fn server() -> ResourceId {
    "server/1".parse().unwrap()
}

fn off() -> serde_json::Value {
    serde_json::json!({"droplet": {"id": 1, "name": "web", "status": "off", "locked": false,
        "tags": [], "size_slug": "s-1vcpu-1gb", "vcpus": 1,
        "memory": 1024, "disk": 25, "region": {"slug": "fra1"}}})
}

fn accepted() -> serde_json::Value {
    serde_json::json!({"action": {"id": 7, "status": "in-progress"}})
}

#[tokio::test]
async fn every_error_of_digitalocean_means_what_the_table_says() {
    let pending = "Droplet already has a pending event.";
    for (status, code, message, read, change) in [
        (400, "bad_request", "no", "refused", "refused"),
        (401, "unauthorized", "no", "token refused", "not accepted"),
        (403, "forbidden", "no", "not permitted", "not accepted"),
        (404, "not_found", "no", "not found", "not accepted"),
        (408, "timeout", "no", "unavailable", "unknown"),
        (409, "conflict", "no", "busy", "busy"),
        (412, "precondition_failed", "no", "busy", "busy"),
        (422, "unprocessable_entity", "invalid size", "refused", "refused"),
        (422, "unprocessable_entity", pending, "busy", "busy"),
        (422, "unprocessable_entity", "Droplet is already powered on", "busy", "busy"),
        (422, "unprocessable_entity", "Droplet is currently powered off.", "busy", "busy"),
        (422, "unprocessable_entity", "cluster is currently resizing", "busy", "busy"),
        (422, "unprocessable_entity", "cluster is being resized", "busy", "busy"),
        (422, "unprocessable_entity", "cluster must be online", "busy", "busy"),
        (423, "locked", "no", "busy", "busy"),
        (429, "too_many_requests", "no", "rate limited", "not accepted"),
        (500, "server_error", "no", "unavailable", "unknown"),
        (503, "unavailable", "no", "unavailable", "unknown"),
    ] {
        let error = || answer(status, do_error(code, message));
        let cloud = Script::play([(DROPLET, error()), (POWER_ON, error())]).await;
        let client = cloud.digitalocean();
        let row = format!("{status} {code} {message}");
        assert_eq!(kind(&client.look(&droplet()).await.unwrap_err()), read, "{row}");
        let sent = client.released().send(&seen(droplet()), &ON).await;
        assert_eq!(change_kind(&sent.unwrap_err()), change, "{row}");
        cloud.finish();
    }
}

#[tokio::test]
async fn every_error_of_hetzner_means_what_the_table_says() {
    for (status, code, read, change) in [
        (400, "json_error", "refused", "refused"),
        (401, "unauthorized", "token refused", "not accepted"),
        (403, "forbidden", "not permitted", "not accepted"),
        (403, "token_readonly", "not permitted", "not accepted"),
        (403, "maintenance", "busy", "busy"),
        (403, "resource_limit_exceeded", "refused", "refused"),
        (404, "not_found", "not found", "not accepted"),
        (405, "method_not_allowed", "refused", "refused"),
        (409, "conflict", "busy", "busy"),
        (409, "uniqueness_error", "refused", "refused"),
        (410, "deprecated_api_endpoint", "refused", "refused"),
        (412, "resource_unavailable", "refused", "refused"),
        (415, "unsupported_media_type", "refused", "refused"),
        (422, "invalid_input", "refused", "refused"),
        (422, "service_error", "unavailable", "unknown"),
        (422, "must_be_unassigned", "busy", "busy"),
        (422, "primary_ip_already_assigned", "busy", "busy"),
        (422, "unsupported_error", "refused", "refused"),
        (423, "locked", "busy", "busy"),
        (423, "protected", "refused", "refused"),
        (423, "resource_locked", "refused", "refused"),
        (429, "rate_limit_exceeded", "rate limited", "not accepted"),
        (500, "server_error", "unavailable", "unknown"),
        (502, "bad_gateway", "unavailable", "unknown"),
        (503, "unavailable", "unavailable", "unknown"),
        (504, "timeout", "unavailable", "unknown"),
    ] {
        let error = || answer(status, hz_error(code, "no"));
        let cloud = Script::play([(SERVER, error()), (START, error())]).await;
        let client = cloud.hetzner(&[]);
        let row = format!("{status} {code}");
        assert_eq!(kind(&client.look(&server()).await.unwrap_err()), read, "{row}");
        let sent = client.released().send(&seen(server()), &ON).await;
        assert_eq!(change_kind(&sent.unwrap_err()), change, "{row}");
        cloud.finish();
    }
}

/// The scope that each change needs, by the request that is refused.
#[tokio::test]
async fn a_change_that_is_not_permitted_names_the_scope_of_its_operation() {
    let database = DatabaseId("9cc10173-e9ea-4176-9dbc-a4cee4c4ff30".to_owned());
    let size =
        SavedState::Database { plan: "db-s-1vcpu-1gb".to_owned(), nodes: 1, storage_mib: None };
    let firewall = Attachment::Firewall("f1".to_owned());
    let changes = [
        (droplet(), ON, "droplet:update"),
        (ResourceId::Database(database), Step::Resize(size), "database:update"),
        (droplet(), Step::Delete, "droplet:delete"),
        (droplet(), Step::Attach(firewall), "firewall:update"),
    ];
    let requests = [
        POWER_ON,
        "PUT /v2/databases/9cc10173-e9ea-4176-9dbc-a4cee4c4ff30/resize application/json \
         {\"size\":\"db-s-1vcpu-1gb\",\"num_nodes\":1}",
        "DELETE /v2/droplets/1",
        "POST /v2/firewalls/f1/droplets application/json {\"droplet_ids\":[1]}",
    ];
    let refused = || answer(403, do_error("forbidden", "You are not authorized"));
    let cloud = Script::play(requests.map(|request| (request, refused()))).await;
    let client = cloud.digitalocean();
    for (id, step, scope) in changes {
        let error = client.send(&seen(id), &step).await.unwrap_err();
        assert!(error.is_not_permitted(), "{error:?}");
        let words = Reason::of(&error).to_string();
        let expected =
            format!("the scope {scope}, or the account is unpaid or blocked: 403 forbidden");
        assert!(words.contains(&expected), "{words}");
    }
    cloud.finish();

    let cloud = Script::play([(START, answer(403, hz_error("token_readonly", "no")))]).await;
    let sent = cloud.hetzner(&[]).send(&seen(server()), &ON).await;
    let words = Reason::of(&sent.unwrap_err()).to_string();
    assert!(words.contains("the token lacks the right to write"), "{words}");
    cloud.finish();
}

#[tokio::test]
async fn a_page_that_is_not_the_providers_is_neither_a_refusal_nor_a_404() {
    for (status, read, change) in [
        (400, "not understood", "unknown"),
        (401, "token refused", "not accepted"),
        (403, "not understood", "unknown"),
        (404, "not understood", "unknown"),
        (429, "rate limited", "not accepted"),
        (502, "unavailable", "unknown"),
    ] {
        let page = || answer(status, "<html>gateway</html>");
        let cloud = Script::play([(DROPLET, page()), (POWER_ON, page())]).await;
        let client = cloud.digitalocean();
        let error = client.status(&droplet()).await.unwrap_err();
        assert_eq!(kind(&error), read, "{status}");
        let sent = client.released().send(&seen(droplet()), &ON).await;
        assert_eq!(change_kind(&sent.unwrap_err()), change, "{status}");
        cloud.finish();
    }
}

#[tokio::test]
async fn a_refusal_keeps_the_providers_words_and_request_id() {
    let refused = answer(422, do_error("unprocessable_entity", "cannot\nshrink"));
    let locked = answer(423, hz_error("locked", "server is locked"));
    let cloud =
        Script::play([(POWER_ON, refused), (START, locked.with("x-correlation-id", "c0rr"))]).await;
    let sent = cloud.digitalocean().send(&seen(droplet()), &ON).await;
    assert_eq!(
        Reason::of(&sent.unwrap_err()).to_string(),
        "refused: 422 unprocessable_entity: cannot shrink (request 4d9d8375)"
    );
    let sent = cloud.hetzner(&[]).send(&seen(server()), &ON).await;
    assert_eq!(
        Reason::of(&sent.unwrap_err()).to_string(),
        "busy: 423 locked: server is locked (request c0rr)"
    );
    cloud.finish();
}

#[tokio::test]
async fn a_request_id_is_one_line_of_limited_length() {
    let mut refused = do_error("unprocessable_entity", "no");
    refused["request_id"] = serde_json::json!(format!("4d9d\n\u{1b}[2J{}", "8".repeat(1000)));
    let cloud = Script::play([(POWER_ON, answer(422, refused))]).await;
    let sent = cloud.digitalocean().send(&seen(droplet()), &ON).await;
    let said = Reason::of(&sent.unwrap_err()).to_string();
    assert!(said.contains("(request 4d9d \\u001b[2J888"), "{said}");
    assert!(said.len() < 600, "{said}");
    cloud.finish();
}

#[tokio::test]
async fn the_wait_that_a_429_asks_for_is_passed_on() {
    let limited = || answer(429, do_error("too_many_requests", "API rate limit exceeded."));
    let cloud =
        Script::play([(DROPLET, limited().with("retry-after", 42)), (DROPLET, limited())]).await;
    let client = cloud.digitalocean();
    let error = client.status(&droplet()).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(42)));
    // A client that is to wait sends nothing, and the next one is not held back.
    let error = client.clone().status(&droplet()).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(42)));
    let error = client.released().status(&droplet()).await.unwrap_err();
    assert_eq!(error.retry_after(), None);
    cloud.finish();
}

#[tokio::test]
async fn what_a_429_says_is_left_is_not_what_is_left_of_the_hour() {
    let limited = answer(429, do_error("too_many_requests", "API rate limit exceeded."));
    let cloud = Script::play([(DROPLET, left(4100, ok(off()))), (DROPLET, left(0, limited))]).await;
    let client = cloud.digitalocean();
    assert!(client.status(&droplet()).await.is_ok());
    assert!(client.status(&droplet()).await.is_err());
    assert_eq!(client.rate().unwrap().remaining, 4100);
    cloud.finish();
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Script::play::<String>([]).await;
    let to_elsewhere = || answer(307, "").with("location", elsewhere.base().as_str());
    let cloud = Script::play([(DROPLET, to_elsewhere()), (POWER_ON, to_elsewhere())]).await;
    let client = cloud.digitalocean();
    let error = client.status(&droplet()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "answer to GET /v2/droplets/1 not understood: status 307 without the provider's own words"
    );
    let sent = client.send(&seen(droplet()), &ON).await;
    assert_eq!(change_kind(&sent.unwrap_err()), "unknown");
    cloud.finish();
    elsewhere.finish();
}

#[tokio::test]
async fn a_read_is_repeated_once_when_its_connection_breaks() {
    let cut = |part: &str| Answer::CutOff(part.to_owned());
    let cloud = Script::play([
        (DROPLET, Answer::Closed),
        (DROPLET, ok(off())),
        (DROPLET, cut(r#"{"droplet""#)),
        (DROPLET, ok(off())),
        (DROPLET, Answer::Closed),
        (DROPLET, Answer::Closed),
    ])
    .await;
    let client = cloud.digitalocean();
    assert!(client.status(&droplet()).await.unwrap().is_some());
    assert!(client.status(&droplet()).await.unwrap().is_some());
    let error = client.status(&droplet()).await.unwrap_err();
    assert_eq!(kind(&error), "transport");
    cloud.finish();
}

#[tokio::test]
async fn a_read_that_got_an_answer_is_not_repeated() {
    let cloud = Script::play([
        (DROPLET, answer(500, do_error("server_error", "no"))),
        (DROPLET, ok(serde_json::json!({"droplet": {"id": "hunter2"}}))),
    ])
    .await;
    let client = cloud.digitalocean();
    let error = client.status(&droplet()).await.unwrap_err();
    assert_eq!(kind(&error), "unavailable");
    let error = client.status(&droplet()).await.unwrap_err();
    assert!(error.to_string().contains("GET /v2/droplets/1 not understood: unexpected content"));
    assert!(!everything(&error).contains("hunter2"));
    cloud.finish();
}

#[tokio::test]
async fn a_change_whose_connection_breaks_is_unknown_and_never_repeated() {
    let cloud = Script::play([
        (POWER_ON, Answer::Closed),
        (POWER_ON, Answer::CutOff(r#"{"action""#.to_owned())),
        (DROPLET, ok(off())),
        (POWER_ON, Answer::Closed),
    ])
    .await;
    let client = cloud.digitalocean();
    for is_on_used_connection in [false, false, true] {
        if is_on_used_connection {
            client.status(&droplet()).await.unwrap();
        }
        let sent = client.send(&seen(droplet()), &ON).await;
        assert_eq!(change_kind(&sent.unwrap_err()), "unknown");
    }
    cloud.finish();
}

#[tokio::test]
async fn a_change_whose_answer_cannot_be_read_is_unknown() {
    for body in ["", "garbage", "{}", r#"{"action": {}}"#, r#"{"action": null}"#] {
        let cloud = Script::play([(POWER_ON, answer(201, body)), (START, answer(201, body))]).await;
        let sent = cloud.digitalocean().send(&seen(droplet()), &ON).await;
        assert_eq!(change_kind(&sent.unwrap_err()), "unknown", "{body}");
        let sent = cloud.hetzner(&[]).send(&seen(server()), &ON).await;
        assert_eq!(change_kind(&sent.unwrap_err()), "unknown", "{body}");
        cloud.finish();
    }
}

#[tokio::test]
async fn a_time_out_is_unknown_for_a_change_and_not_repeated_for_a_read() {
    let cloud = Script::play([(DROPLET, Answer::Silent), (POWER_ON, Answer::Silent)]).await;
    let short = builder().unwrap().timeout(Duration::from_millis(100));
    let client = Client::at(
        &account(Provider::DigitalOcean),
        cloud.base(),
        TOKEN.into(),
        short.build().unwrap(),
    );
    let error = client.status(&droplet()).await.unwrap_err();
    assert!(matches!(&error, ProviderError::Transport { source, .. } if source.is_timeout()));
    let sent = client.send(&seen(droplet()), &ON).await;
    assert_eq!(change_kind(&sent.unwrap_err()), "unknown");
    cloud.finish();
}

#[tokio::test]
async fn a_change_without_a_connection_is_certainly_not_accepted() {
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let client = Client::at(
        &account(Provider::DigitalOcean),
        base.parse().unwrap(),
        TOKEN.into(),
        http_client().unwrap(),
    );
    let error = client.send(&seen(droplet()), &ON).await.unwrap_err();
    assert!(matches!(&error, ChangeError::NotAccepted(ProviderError::Transport { .. })));
    let said = everything(&error);
    assert!(!said.contains(TOKEN) && !said.contains(&base), "{said}");
}

#[tokio::test]
async fn a_token_that_fits_no_header_leaves_nowhere() {
    let cloud = Script::play::<String>([]).await;
    let token = "5ec2e7\n".into();
    let client =
        Client::at(&account(Provider::DigitalOcean), cloud.base(), token, http_client().unwrap());
    let error = client.send(&seen(droplet()), &ON).await.unwrap_err();
    assert_eq!(change_kind(&error), "not accepted");
    assert!(!everything(&error).contains("5ec2e7"));
    cloud.finish();
}

#[tokio::test]
async fn the_token_is_in_no_error_and_no_debug_output() {
    let cloud = Script::play([
        (DROPLET, answer(401, do_error("unauthorized", "no"))),
        (DROPLET, answer(302, "")),
        (DROPLET, Answer::Closed),
        (DROPLET, Answer::Closed),
    ])
    .await;
    let client = cloud.digitalocean();
    assert!(!format!("{client:?}").contains(TOKEN));
    for _ in 0..3 {
        let error = client.status(&droplet()).await.unwrap_err();
        assert!(!everything(&error).contains(TOKEN), "{error:?}");
    }
    cloud.finish();
}

#[tokio::test]
async fn a_response_that_repeats_the_token_is_redacted_before_anything_keeps_it() {
    let echo = format!("Authorization: Bearer {TOKEN}");
    let mut named = off();
    named["droplet"]["name"] = echo.clone().into();
    named["droplet"]["tags"] = serde_json::json!([echo]);
    let escaped = TOKEN.replace('d', "\\u0064");
    let refused = r#"{"id": "no", "message": "Bearer TOKEN"}"#.replace("TOKEN", &escaped);
    let half = &TOKEN[..20];
    let cloud = Script::play([
        (DROPLET, answer(401, do_error("unauthorized", &echo))),
        (DROPLET, answer(422, refused).with("x-request-id", TOKEN)),
        (DROPLET, answer(422, do_error("no", half))),
        (DROPLET, answer(429, do_error("too_many_requests", half))),
        // Of a rate limit no text is kept, however short the part of the token in it (HZTOKEN).
        (DROPLET, answer(429, do_error("too_many_requests", &TOKEN[..8]))),
        (DROPLET, ok(named)),
    ])
    .await;
    let client = cloud.digitalocean();
    for _ in 0..5 {
        let error = client.released().look(&droplet()).await.unwrap_err();
        let said = Reason::of(&error).to_string() + &everything(&error);
        assert!(!said.contains(&TOKEN[..8]), "{said}");
    }
    let named = client.look(&droplet()).await.unwrap().unwrap();
    let stars = format!("Authorization: Bearer {}", "*".repeat(TOKEN.len()));
    assert_eq!(named.name, stars);
    assert_eq!(named.tags.iter().collect::<Vec<_>>(), [&stars]);
    cloud.finish();
}

/// A Droplet in a body of this length.
fn padded(length: usize) -> String {
    let body = off().to_string();
    let blanks = " ".repeat(length - body.len());
    body + &blanks
}

#[tokio::test]
async fn a_body_is_read_up_to_a_limit_and_then_not_understood() {
    let padded = |length| answer(200, padded(length));
    let cloud = Script::play([
        (DROPLET, Answer::Endless(200)),
        (DROPLET, Answer::Endless(422)),
        (DROPLET, padded(LONGEST_BODY + 1)),
        (POWER_ON, Answer::Endless(200)),
        (DROPLET, padded(LONGEST_BODY)),
    ])
    .await;
    let client = cloud.digitalocean();
    for _ in 0..3 {
        let error = client.look(&droplet()).await.unwrap_err();
        assert_eq!(kind(&error), "not understood");
        let said = error.to_string();
        assert!(said.ends_with("not understood: longer than 16 MiB"), "{said}");
    }
    let sent = client.send(&seen(droplet()), &ON).await;
    assert_eq!(change_kind(&sent.unwrap_err()), "unknown");
    assert!(client.look(&droplet()).await.unwrap().is_some());
    cloud.finish();
}

/// Carries every request to the same response.
#[derive(Debug)]
struct Fixed(Bytes);

impl Carrier for Fixed {
    fn carry(&self, _: http::Request<Bytes>) -> BoxFuture<'_, CarrierResult> {
        Box::pin(async { Ok(http::Response::new(self.0.clone())) })
    }
}

#[tokio::test]
async fn a_body_that_did_not_come_over_the_network_has_the_same_limit() {
    for (length, is_read) in [(LONGEST_BODY, true), (LONGEST_BODY + 1, false)] {
        let carrier = Arc::new(Fixed(padded(length).into()));
        let transport = Transport::with_carrier(http_client().unwrap(), carrier);
        let base = "http://127.0.0.1:1".parse().unwrap();
        let client = Client::at(&account(Provider::DigitalOcean), base, TOKEN.into(), transport);
        assert_eq!(client.look(&droplet()).await.is_ok(), is_read, "{length}");
    }
}

#[tokio::test]
async fn a_resource_that_cannot_be_shown_as_it_is_is_never_touched() {
    let hidden = "ofi\u{200b}ce";
    for (name, tag, shown) in [
        ("web\nprod-db  running", "office", "web prod-db  running"),
        ("\u{1b}[30mweb", "office", "\\u001b[30mweb"),
        ("web\u{202e}", "office", "web\\u202e"),
        ("web", hidden, "web"),
    ] {
        let mut named = off();
        named["droplet"]["name"] = name.into();
        named["droplet"]["tags"] = serde_json::json!([tag]);
        let page = serde_json::json!({"droplets": [named["droplet"]], "links": {}});
        let page_one = "GET /v2/droplets?per_page=200&page=1";
        let gpus = "GET /v2/droplets?type=gpus&per_page=200&page=1";
        let none = serde_json::json!({"droplets": []});
        let cloud =
            Script::play([(DROPLET, ok(named)), (page_one, ok(page)), (gpus, ok(none))]).await;
        let client = cloud.digitalocean();
        let one = client.look(&droplet()).await.unwrap().unwrap();
        let listed = list(&client, &[ResourceKind::Droplet]).await.unwrap();
        for resource in [&one, &listed.looks[0].resource] {
            assert_eq!(resource.name, shown);
            assert!(resource.unsupported.is_some());
        }
        cloud.finish();
    }
}

#[tokio::test]
async fn a_base_with_a_path_keeps_it() {
    let cloud = Script::play([("GET /gateway/v2/droplets/1", ok(off()))]).await;
    let base = cloud.base().join("/gateway/").unwrap().as_str().parse().unwrap();
    let client =
        Client::at(&account(Provider::DigitalOcean), base, TOKEN.into(), http_client().unwrap());
    assert!(client.status(&droplet()).await.unwrap().is_some());
    cloud.finish();
}

/// A response that says how many of 5,000 requests are left.
fn left(remaining: u32, answer: Answer) -> Answer {
    answer
        .with("RateLimit-Limit", 5000)
        .with("RateLimit-Remaining", remaining)
        .with("RateLimit-Reset", 1_763_700_000)
}

#[tokio::test]
async fn the_last_of_the_allowance_is_left_to_others() {
    let cloud = Script::play([
        (DROPLET, left(103, ok(off()))),
        (DROPLET, left(102, answer(500, do_error("server_error", "no")))),
        (POWER_ON, left(100, answer(201, accepted()))),
    ])
    .await;
    let client = cloud.digitalocean();
    assert_eq!(client.rate(), None);
    assert!(client.status(&droplet()).await.is_ok());
    assert!(client.status(&droplet()).await.is_err());
    let twin = client.clone();
    assert!(twin.send(&seen(droplet()), &ON).await.is_ok());
    assert_eq!(client.rate().unwrap().remaining, 100);
    let error = client.status(&droplet()).await.unwrap_err();
    assert_eq!(kind(&error), "rate limited");
    let error = client.send(&seen(droplet()), &ON).await.unwrap_err();
    assert_eq!(change_kind(&error), "not accepted");
    cloud.finish();
}

#[tokio::test]
async fn what_is_said_of_a_refused_token_is_not_the_account_s_allowance() {
    let refused = answer(401, do_error("unauthorized", "no"));
    let cloud =
        Script::play([(DROPLET, left(4100, ok(off()))), (DROPLET, left(5000, refused))]).await;
    let client = cloud.digitalocean();
    assert!(client.status(&droplet()).await.is_ok());
    assert!(client.status(&droplet()).await.is_err());
    assert_eq!(client.rate().unwrap().remaining, 4100);
    cloud.finish();
}

#[tokio::test]
async fn what_the_other_provider_has_is_not_asked_of_this_one() {
    let cloud = Script::play::<String>([]).await;
    let (digitalocean, hetzner) = (cloud.digitalocean(), cloud.hetzner(&[]));
    let since = jiff::Timestamp::UNIX_EPOCH;
    for (client, kind) in [(&digitalocean, ResourceKind::Server), (&hetzner, ResourceKind::Droplet)]
    {
        let listed = list(client, &[kind]).await.unwrap();
        assert!(listed.looks.is_empty() && listed.unread.is_empty());
    }
    for (client, id) in [
        (&digitalocean, server()),
        (&hetzner, droplet()),
        (&hetzner, "database/d1".parse().unwrap()),
    ] {
        assert_eq!(kind(&client.status(&id).await.unwrap_err()), "foreign");
        assert_eq!(kind(&client.actions(&id, since).await.unwrap_err()), "foreign");
        let sent = client.send(&seen(id), &Step::CUT).await;
        assert_eq!(change_kind(&sent.unwrap_err()), "not accepted");
    }
    cloud.finish();
}
