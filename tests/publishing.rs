//! The function `publish`, over HTTP to a bucket and over DynamoDB's protocol to an engine, and links to
//! what it has written.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Bytes,
    extract::{Request, State},
    http::StatusCode,
};
use domain::{
    configuration::{Override, OverrideTarget},
    record::{Observed, Record},
    resource::Power,
    schedule::Desired,
};
use environment::{aws::local_config, bucket::Bucket, in_words};
use jiff::SignedDuration;
use local::engine::Engine;
use offhours::configuration_file;
use serde_json::{Value, json};
use store::Tables;
use testing::set_override;
use tokio::{net::TcpListener, process::Command};

use crate::{
    calendars,
    support::{first_seen, monday, office_hours, program, run_logged, tables},
};

#[derive(Debug, Clone, Default)]
struct Written {
    headers: BTreeMap<String, String>,
    contents: String,
}

/// What a bucket has, by path. It accepts a signed `PUT` whose body has the hash that was signed.
type Objects = Arc<Mutex<BTreeMap<String, Written>>>;

async fn accept(State(objects): State<Objects>, request: Request) -> StatusCode {
    let (head, body) = request.into_parts();
    let body: Bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let text = |value: &axum::http::HeaderValue| value.to_str().unwrap().to_owned();
    let headers: BTreeMap<_, _> =
        head.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    let signature = &headers["authorization"];
    let is_signed = signature.starts_with("AWS4-HMAC-SHA256 Credential=local/")
        && signature.contains("/local/s3/aws4_request, ")
        && signature.contains("SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date");
    if head.method != "PUT" || !is_signed {
        return StatusCode::FORBIDDEN;
    }
    if head.uri.path().starts_with("/full/") {
        return StatusCode::INSUFFICIENT_STORAGE;
    }
    let contents = String::from_utf8(body.to_vec()).unwrap();
    let written = Written { headers, contents };
    objects.lock().unwrap().insert(head.uri.path().to_owned(), written);
    StatusCode::OK
}

/// Serves a router on loopback, and returns its address.
async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

fn followed() -> Record {
    let office = "office".parse().unwrap();
    Record { schedule: Some(office), ..first_seen(1, Some("office"), Power::Running) }
}

#[test]
fn what_there_is_to_look_at_is_written_in_full_and_in_its_public_form() {
    let ((), log) = run_logged(written_in_full_and_in_its_public_form());
    // The first row of the dashboard has these fields.
    let line = log.lines().find(|line| line.contains("objects")).unwrap();
    for field in ["off=\"0 of 1 off\"", "hours_off=\"0.0 h\"", "saved=\"nothing saved this month\""]
    {
        assert!(line.contains(field), "{field}: {line}");
    }
}

async fn written_in_full_and_in_its_public_form() {
    let store = Engine::in_memory().unwrap().store(tables());
    store.create_tables().await.unwrap();
    let now = monday("12:00:00");
    let parsed = configuration_file::parse(&office_hours("", "", ""), "offhours.toml");
    store.apply(&parsed.unwrap().configuration, "ada", now).await.unwrap();
    let stopped = Override {
        target: OverrideTarget::Schedule("office".parse().unwrap()),
        desired: Desired::Stopped,
        set_at: now,
        ends_at: now + SignedDuration::from_hours(2),
        by: "ada".to_owned(),
        why: None,
        before: None,
    };
    set_override(&store, &stopped, now).await.unwrap();
    let seen = Observed { power: Power::Running, size: None, busy: None, at: now };
    let opted_in = Record { opted_in: true, observed: Some(seen), ..followed() };
    store.save(opted_in).await.unwrap();

    let objects = Objects::default();
    let router = Router::new().fallback(accept).with_state(Arc::clone(&objects));
    let endpoint = serve(router).await;
    let config = local_config(&endpoint);
    let bucket = |name: &str| Bucket::connect(&config, &format!("{name}.s3.local.example"));

    let published = publish::handle(&store, &bucket("pages"), now).await.unwrap();
    let written = objects.lock().unwrap().clone();
    assert_eq!(published.objects, written.len());
    let paths: Vec<_> = written.keys().map(String::as_str).collect();
    let rows = &written["/pages/saved/2026-11.csv"];
    assert_eq!(rows.headers["content-type"], "text/csv; charset=utf-8");
    let (head, row) = rows.contents.split_once('\n').unwrap();
    assert!(head.starts_with("group,resource,"), "{head}");
    assert!(row.starts_with("ci-1,hz-eu/server/1,"), "{row}");
    for folder in ["/pages/", "/pages/public/"] {
        let page = &written[&format!("{folder}index.html")];
        assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
        assert!(page.contents.starts_with("<!DOCTYPE html>"));
        assert!(page.contents.contains("ci-1"), "{folder}");
        for private in ["ada", "hz-eu"] {
            let names_it = page.contents.contains(private);
            assert_eq!(names_it, folder == "/pages/", "{folder}: {private}");
        }
        for path in ["calendar.ics", "calendar/office.ics"] {
            let path = format!("{folder}{path}");
            assert!(paths.contains(&path.as_str()), "{path}: {paths:?}");
            let written = &written[&path];
            assert_eq!(written.headers["content-type"], "text/calendar; charset=utf-8");
            let calendar = calendars::read(&written.contents).await;
            assert_eq!(calendar["events"][0]["summary"], "office: running");
            let names_persons = written.contents.contains("Set by ");
            assert_eq!(names_persons, folder == "/pages/", "{path}");
        }
    }

    let failed = publish::handle(&store, &bucket("full"), now).await.unwrap_err();
    let words = in_words(&failed);
    assert!(words.contains("507"), "{words}");
}

/// AWS Lambda, where `published-publish` has a bucket, and no other `publish` exists.
async fn lambda(request: Request) -> (StatusCode, [(&'static str, &'static str); 1], String) {
    let settings =
        |settings: Value| json!({ "Environment": { "Variables": settings } }).to_string();
    let path = request.uri().path();
    let is_publish = path.contains("-publish/");
    if is_publish && !path.contains("/published-publish/") {
        let kind = ("x-amzn-errortype", "ResourceNotFoundException");
        return (StatusCode::NOT_FOUND, [kind], "{}".to_owned());
    }
    let bucket = json!({ "OFFHOURS_BUCKET": "pages.s3.eu-central-1.amazonaws.com" });
    let found = settings(if is_publish { bucket } else { json!({}) });
    (StatusCode::OK, [("content-type", "application/json")], found)
}

#[tokio::test]
async fn a_link_is_to_the_public_form_and_for_a_week_at_most() {
    let lambda = serve(Router::new().fallback(lambda)).await;
    let engine = Engine::in_memory().unwrap();
    for prefix in ["published-", "quiet-"] {
        engine.store(Tables::prefixed(prefix)).create_tables().await.unwrap();
    }
    let store = format!("http://{}", testing::serve(engine).await);
    let share = async |prefix: &str, arguments: &[&str]| {
        let output = Command::new(program("offhours"))
            .arg("share")
            .args(arguments)
            .env_remove("OFFHOURS_DATA")
            .envs([
                ("AWS_ENDPOINT_URL", store.as_str()),
                ("AWS_ENDPOINT_URL_LAMBDA", lambda.as_str()),
                ("AWS_REGION", "eu-central-1"),
                ("AWS_ACCESS_KEY_ID", "local"),
                ("AWS_SECRET_ACCESS_KEY", "local-secret"),
                ("AWS_SESSION_TOKEN", "of-a-role"),
                ("OFFHOURS_TABLE_PREFIX", prefix),
            ])
            .output()
            .await
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, link, remarks) = share("published-", &[]).await;
    assert_eq!(code, Some(0), "{remarks}");
    assert!(link.starts_with(&format!("{store}/pages/public/index.html?")), "{link}");
    for part in ["X-Amz-Expires=604800", "X-Amz-Security-Token=of-a-role", "X-Amz-Signature="] {
        assert!(link.contains(part), "{part}: {link}");
    }
    assert!(!link.contains("local-secret"), "{link}");
    let (_, link, _) = share("published-", &["--for", "2h", "--calendar"]).await;
    assert!(link.starts_with(&format!("{store}/pages/public/calendar.ics?")), "{link}");
    assert!(link.contains("X-Amz-Expires=7200"), "{link}");

    let (code, _, remarks) = share("published-", &["--for", "8d"]).await;
    assert_eq!(code, Some(2), "{remarks}");
    let (code, _, remarks) = share("published-", &["--calendar", "--schedule", "office"]).await;
    assert_eq!(code, Some(2), "{remarks}");
    let (code, link, remarks) = share("quiet-", &[]).await;
    assert_eq!((code, link.as_str()), (Some(1), ""), "{remarks}");
    assert!(remarks.contains("nothing is published"), "{remarks}");
}
