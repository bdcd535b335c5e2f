//! Events reach people without AWS: by webhook and by mail, from real processes, and each once.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode, Uri},
    routing::any,
};
use environment::Clock;
use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpListener,
    sync::Semaphore,
};

use crate::{
    programs::{CommandOutput, read_by, signal},
    serving::{Systemd, World},
    support::office_hours,
};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

const TARGETS: &str = r#"
heartbeat = "env:HEARTBEAT"
[notify.ops]
kind = "webhook"
url = "env:OPS_URL"
secret = "env:OPS_SECRET"
events = "override-set"
"#;

const MAIL: &str = r#"
[notify.team]
kind = "mail"
url = "env:SMTP_URL"
from = "Offhours <offhours@example.com>"
to = ["ops@example.com"]
events = "override-set"
"#;

type Request = (String, HeaderMap, Bytes);

/// A server that keeps each request, and answers it once it is allowed to.
#[derive(Clone)]
struct Receiver {
    url: String,
    requests: Arc<Mutex<Vec<Request>>>,
    status: Arc<Mutex<StatusCode>>,
    allowed: Arc<Semaphore>,
    arrived: Arc<Semaphore>,
}

impl Receiver {
    /// Answers as many requests as are allowed.
    async fn allowing(requests: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let receiver = Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            requests: Arc::default(),
            status: Arc::new(Mutex::new(StatusCode::NO_CONTENT)),
            allowed: Arc::new(Semaphore::new(requests)),
            arrived: Arc::new(Semaphore::new(0)),
        };
        let take =
            async |State(receiver): State<Self>, uri: Uri, headers: HeaderMap, body: Bytes| {
                receiver.requests.lock().unwrap().push((uri.path().to_owned(), headers, body));
                receiver.arrived.add_permits(1);
                receiver.allowed.acquire().await.unwrap().forget();
                *receiver.status.lock().unwrap()
            };
        let router = Router::new().fallback(any(take)).with_state(receiver.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        receiver
    }

    fn take(&self) -> Vec<Request> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }

    /// The requests to the webhook: their ids and bodies, each verified.
    async fn take_events(&self) -> Vec<(String, Value)> {
        let mut events = Vec::new();
        for (path, headers, body) in self.take() {
            if path == "/ops" {
                events.push(verified(&headers, &body).await);
            }
        }
        events
    }
}

/// An event's id and its body, as Python's `standardwebhooks` accepts them.
async fn verified(headers: &HeaderMap, body: &Bytes) -> (String, Value) {
    let header = |name| headers[name].to_str().unwrap();
    let signed = ["webhook-id", "webhook-timestamp", "webhook-signature"];
    let signed: BTreeMap<_, _> = signed.map(|name| (name, header(name))).into();
    let body = str::from_utf8(body).unwrap();
    let given = json!({ "secret": SECRET, "headers": signed, "body": body });
    (header("webhook-id").to_owned(), read_by("verify_webhook.py", &given.to_string()).await)
}

/// A service whose configuration has these targets, and that has none of their events yet.
async fn world(targets: &str, receiver: &Receiver) -> World {
    let mut world = World::with(targets).await;
    world.variables = vec![
        ("OPS_URL", format!("{}/ops", receiver.url)),
        ("OPS_SECRET", SECRET.to_owned()),
        ("HEARTBEAT", format!("{}/beat", receiver.url)),
    ];
    world
}

async fn done(world: &World, arguments: &[&str]) -> CommandOutput {
    let ended = world.command(arguments).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    ended
}

#[tokio::test]
async fn asked_to_end_while_it_sends_it_records_the_answer_and_sends_nothing_twice() {
    let receiver = Receiver::allowing(1).await;
    let mut world = world(&TARGETS.replace("heartbeat", "# heartbeat"), &receiver).await;
    world.run(&["--once"]).await;
    for length in ["1h", "2h"] {
        done(&world, &["override", "running", "web", "--for", length]).await;
    }
    assert_eq!(receiver.take_events().await, [], "a command sends nothing itself");

    receiver.allowed.acquire().await.unwrap().forget();
    let systemd = Systemd::beside(&mut world);
    let serving = world.start(&[]);
    receiver.arrived.acquire().await.unwrap().forget();
    signal(serving.id(), "TERM").await;
    // Answered before it has heard the signal, it would go on.
    while systemd.heard().await != "STOPPING=1" {}
    receiver.allowed.add_permits(10);
    serving.ends_well().await;
    let first = receiver.take_events().await;
    let [(id, event)] = &first[..] else { panic!("{first:?}") };
    assert_eq!(event["type"], "override-set");
    assert!(event["data"]["text"].as_str().unwrap().starts_with("do-main/droplet/1 is overridden"));

    let ended = world.run(&["--once"]).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let second = receiver.take_events().await;
    assert!(second.len() == 1 && second[0].0 != *id, "{second:?}");
    world.run(&["--once"]).await;
    assert_eq!(receiver.take_events().await, []);
}

#[tokio::test]
async fn a_stop_is_announced_to_a_target_once_and_called_off() {
    let receiver = Receiver::allowing(100).await;
    let world = world("", &receiver).await;
    let targets = TARGETS.replace("heartbeat", "# heartbeat");
    let targets = targets.replace(r#""override-set""#, r#"["stop-announced", "stop-called-off"]"#);
    let firing = |hours: i64| {
        let at = Clock::machine().now() + SignedDuration::from_hours(hours);
        at.strftime("%M %H * * *").to_string()
    };
    let periods = r#"periods = [{ weekdays = "mon-fri", begin = "08:00", end = "19:00" }]"#;
    let times = format!("start = \"{}\"\nstop = \"{}\"", firing(-2), firing(2));
    let office = office_hours(&targets, "", "notice = \"4h\"").replace(periods, &times);
    world.configure(&office.replace("Europe/Berlin", "UTC"));
    let sent = async || {
        let ended = world.run(&["--once"]).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        receiver.take_events().await
    };

    let first = sent().await;
    let [(_, event)] = &first[..] else { panic!("{first:?}") };
    assert_eq!(event["type"], "stop-announced");
    let data = &event["data"];
    assert_eq!((&data["schedule"], &data["count"]), (&"office".into(), &1.into()));
    assert_eq!(data["resources"][0]["name"], "web");
    let text = data["text"].as_str().unwrap();
    assert!(text.contains("`offhours override running --schedule office --for 3h`"), "{text}");
    assert_eq!(sent().await, [], "another process has announced it");

    // As the text says, but for longer than the notice: its end would be announced as well.
    let command = ["override", "running", "--schedule", "office", "--for", "6h"];
    done(&world, &command).await;
    let last = sent().await;
    let [(_, event)] = &last[..] else { panic!("{last:?}") };
    assert_eq!(event["type"], "stop-called-off");
    assert_eq!(sent().await, []);
}

#[tokio::test]
async fn a_target_of_an_owner_gets_what_is_about_their_resources() {
    let receiver = Receiver::allowing(100).await;
    let (_, target) = TARGETS.split_once("[notify.ops]").unwrap();
    let of = |owner: &str| format!("[notify.{owner}]{target}owner = \"{owner}\"\n");
    let targets = ["owner_tag = \"offhours\"\n".to_owned(), of("lab"), of("office")].concat();
    let world = world(&targets, &receiver).await;
    world.run(&["--once"]).await;
    // Its tag is offhours:office.
    done(&world, &["override", "running", "web", "--for", "1h"]).await;
    world.run(&["--once"]).await;
    assert_eq!(receiver.take_events().await.len(), 1, "the other target gets nothing");
    // It is about no resource.
    done(&world, &["override", "running", "--schedule", "office", "--for", "1h"]).await;
    world.run(&["--once"]).await;
    assert_eq!(receiver.take_events().await.len(), 2);

    let shown = async |arguments: &[&str]| {
        let ended = world.command(arguments).await;
        (ended.code, ended.stdout, ended.stderr)
    };
    let (_, listed, _) = shown(&["status", "--owner", "office", "-o", "csv"]).await;
    assert!(listed.contains("web"), "{listed}");
    let (code, _, unknown) = shown(&["status", "--owner", "offce"]).await;
    assert_eq!(code, Some(2));
    assert!(unknown.contains("there is no owner `offce`; did you mean `office`?"), "{unknown}");
    let (code, saved, _) = shown(&["saved", "--by", "owner", "-o", "csv"]).await;
    assert_eq!(code, Some(0), "{saved}");
    assert!(saved.contains("\noffice,"), "{saved}");
}

#[tokio::test]
async fn a_target_that_is_gone_is_a_finding_until_it_accepts_a_test() {
    let receiver = Receiver::allowing(100).await;
    let world = world(TARGETS, &receiver).await;
    world.run(&["--once"]).await;
    let beats: Vec<_> = receiver.take().into_iter().map(|(path, ..)| path).collect();
    assert_eq!(beats, ["/beat"]);
    done(&world, &["override", "running", "web", "--for", "1h"]).await;
    *receiver.status.lock().unwrap() = StatusCode::GONE;
    let ended = world.run(&["--once"]).await;
    assert!(ended.stderr.contains("ops does not accept events: answered 410"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("/ops"), "an address was printed: {}", ended.stderr);

    let finding = async || {
        let doctor = world.command(&["doctor", "-o", "json"]).await;
        let findings: Vec<Value> = serde_json::from_str(&doctor.stdout).unwrap();
        findings.into_iter().find(|one| one["check"] == "notify").unwrap()
    };
    let found = finding().await;
    assert_eq!((&found["level"], &found["subject"]), (&"problem".into(), &"ops".into()));
    let tested = world.command(&["notify", "test"]).await;
    assert_eq!(tested.code, Some(1), "{}", tested.stdout);
    *receiver.status.lock().unwrap() = StatusCode::OK;
    let tested = done(&world, &["notify", "test", "ops"]).await;
    assert!(tested.stdout.contains("accepted"), "{}", tested.stdout);
    assert_eq!(finding().await["level"], "ok");
    let mistyped = world.command(&["notify", "test", "opps"]).await;
    assert_eq!(mistyped.code, Some(2));
    assert!(mistyped.stderr.contains("did you mean `ops`?"), "{}", mistyped.stderr);
}

#[tokio::test]
async fn a_mail_has_the_text_of_the_event_and_its_id() {
    let receiver = Receiver::allowing(100).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut world = world(&format!("{TARGETS}{MAIL}"), &receiver).await;
    world.variables.push(("SMTP_URL", format!("smtp://{}", listener.local_addr().unwrap())));
    world.run(&["--once"]).await;
    done(&world, &["override", "running", "web", "--for", "1h"]).await;
    receiver.take();
    let (ended, mail) = tokio::join!(world.run(&["--once"]), receive_mail(listener));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let (id, event) = receiver.take_events().await.remove(0);
    let header = |name: &str| mail.iter().find_map(|line| line.strip_prefix(name)).unwrap();
    assert_eq!(header("Message-ID: "), format!("<{id}@offhours>"));
    assert!(header("Subject: ").starts_with("Offhours: do-main/droplet/1 is overridden"));
    let text = event["data"]["text"].as_str().unwrap();
    assert!(mail.concat().replace("=\r\n", "").contains(&text[..40]), "{mail:?}");
}

/// Takes one mail, as a mail server does, and returns its lines.
async fn receive_mail(listener: TcpListener) -> Vec<String> {
    let (stream, _) = listener.accept().await.unwrap();
    let mut stream = BufReader::new(stream);
    stream.write_all(b"220 mail.example.com\r\n").await.unwrap();
    let (mut mail, mut is_data, mut line) = (Vec::new(), false, String::new());
    while stream.read_line(&mut line).await.unwrap() > 0 {
        let text = line.trim_end().to_owned();
        line.clear();
        let answer = match text.as_str() {
            "." if is_data => {
                is_data = false;
                "250 accepted\r\n"
            }
            _ if is_data => {
                mail.push(text);
                continue;
            }
            "DATA" => {
                is_data = true;
                "354 go on\r\n"
            }
            "QUIT" => "221 bye\r\n",
            _ => "250 ok\r\n",
        };
        stream.write_all(answer.as_bytes()).await.unwrap();
        if text == "QUIT" {
            break;
        }
    }
    mail
}
