//! A target behind real HTTP, and a clock that is moved.
#![cfg(unix)]

use std::{
    collections::VecDeque,
    fs,
    os::unix::fs::PermissionsExt as _,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode, Uri},
    routing::any,
};
use domain::{
    configuration::{Configuration, Floor, Generation, Schedules, Settings},
    event_type::EventType,
};
use environment::SteppedClock;
use jiff::ToSpan as _;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;

use super::*;
use crate::{engine::Engine, tables};

const OPS: &str = "ops";

/// What a target answers next, 204 if nothing is said, and the ids of what it got: of a heartbeat, its
/// path.
#[derive(Debug, Clone, Default)]
struct Answers(Arc<Mutex<(VecDeque<u16>, Vec<String>)>>);

struct World {
    store: Store,
    notifier: Notifier,
    clock: SteppedClock,
    answers: Answers,
    folder: TempDir,
}

impl World {
    async fn new() -> Self {
        let answers = Answers::default();
        let take = async |State(answers): State<Answers>, uri: Uri, headers: HeaderMap| {
            let mut answers = answers.0.lock().unwrap();
            let id = headers.get("webhook-id").map(|id| id.to_str().unwrap());
            answers.1.push(id.unwrap_or(uri.path()).to_owned());
            StatusCode::from_u16(answers.0.pop_front().unwrap_or(204)).unwrap()
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/secret-path", listener.local_addr().unwrap());
        let router = Router::new().fallback(any(take)).with_state(answers.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });

        let folder = TempDir::new().unwrap();
        let secret = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            format!("file:{}", path.display())
        };
        let target = json!({
            "kind": "webhook",
            "url": secret("url", &url),
            "secret": secret("secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
        });
        let notify = json!({ OPS: target });
        let settings = Settings {
            notify: serde_json::from_value(notify).unwrap(),
            heartbeat: Some(secret("beat", &format!("{url}/?of=me")).parse().unwrap()),
            ..Settings::default()
        };
        let configuration = Configuration {
            generation: Generation::default(),
            settings,
            accounts: BTreeMap::new(),
            schedules: Schedules::default(),
            floor: Floor::default(),
        };
        let store = Engine::in_memory().unwrap().store(tables());
        store.create_tables().await.unwrap();
        let clock = SteppedClock::at("2026-11-23T18:00:00Z".parse().unwrap());
        store.apply(&configuration, "ada", clock.now()).await.unwrap();
        let notifier = Notifier::new(store.clone()).unwrap();
        Self { store, notifier, clock, answers, folder }
    }

    async fn publish(&self, event_type: EventType) {
        self.publish_detail(event_type, &json!({ "text": "web: stop is stuck" })).await;
    }

    async fn publish_detail(&self, event_type: EventType, detail: &Value) {
        let detail = detail.to_string();
        let event = BusEvent { at: self.clock.now(), event_type, detail };
        self.notifier.publish(&[event]).await.unwrap();
    }

    /// Lets a minute pass, and sends what waits. Returns the ids of what the target got.
    async fn minute(&self) -> Vec<String> {
        self.notifier.send_waiting(&self.clock.clone().into()).await;
        self.clock.advance_to(self.clock.now() + 1.minute());
        std::mem::take(&mut self.answers.0.lock().unwrap().1)
    }

    fn answer(&self, statuses: impl IntoIterator<Item = u16>) {
        self.answers.0.lock().unwrap().0.extend(statuses);
    }

    async fn waiting(&self) -> usize {
        self.store.waiting_events().await.unwrap().read.len()
    }

    async fn failing(&self) -> Option<FailingTarget> {
        self.store.failing_targets().await.unwrap().read.remove(&OPS.parse().unwrap())
    }
}

#[tokio::test]
async fn an_event_is_sent_with_one_id_until_it_is_accepted() {
    let world = World::new().await;
    world.publish(EventType::TransitionStuck).await;
    world.publish(EventType::TransitionFinished).await;
    world.answer([503, 429, 301]);
    let mut minutes = Vec::new();
    let mut ids = Vec::new();
    for minute in 0..20 {
        let got = world.minute().await;
        minutes.extend(got.iter().map(|_| minute));
        ids.extend(got);
        let failing = world.failing().await;
        assert_eq!(failing.is_some(), minute < 7, "{minute}: {failing:?}");
    }
    assert_eq!(minutes, [0, 1, 3, 7]);
    ids.dedup();
    assert_eq!((ids.len(), world.waiting().await), (1, 0));
}

#[tokio::test]
async fn what_waits_for_a_day_is_given_up_and_a_target_that_is_back_gets_the_rest_at_once() {
    let world = World::new().await;
    world.publish(EventType::TransitionStuck).await;
    world.answer([500; 40]);
    let first = world.minute().await;
    for _ in 1..24 * 60 {
        world.minute().await;
    }
    let since = world.failing().await.unwrap().since;
    assert_eq!((world.waiting().await, since.to_string().as_str()), (1, "2026-11-23T18:00:00Z"));
    for _ in 0..3 {
        world.publish(EventType::TransitionStuck).await;
    }
    assert_eq!(world.minute().await.len(), 1, "after a failure, the others wait");
    assert_eq!(world.waiting().await, 3, "the first was given up");
    world.answers.0.lock().unwrap().0.clear();
    let mut rest = world.minute().await;
    assert!(rest.len() >= 2, "{rest:?}");
    rest.extend(world.minute().await);
    assert!(!rest.contains(&first[0]));
    assert_eq!((rest.len(), world.waiting().await, world.failing().await), (3, 0, None));
}

#[tokio::test]
async fn a_target_that_is_gone_gets_nothing_more_until_it_accepts_a_test() {
    let world = World::new().await;
    world.publish(EventType::TransitionStuck).await;
    world.publish(EventType::TransitionStuck).await;
    world.answer([410]);
    assert_eq!(world.minute().await.len(), 1);
    assert!(world.failing().await.unwrap().is_gone);
    world.publish(EventType::TransitionStuck).await;
    assert_eq!((world.minute().await.len(), world.waiting().await), (0, 0));

    let name: TargetName = OPS.parse().unwrap();
    let configuration = world.store.in_force().await.unwrap().configuration;
    let target = &configuration.settings.notify[&name];
    world.answer([404]);
    for accepted in [false, true] {
        let tested = world.notifier.test(&name, target, world.clock.now()).await.unwrap();
        assert_eq!(tested.is_ok(), accepted);
        assert_eq!(world.failing().await.is_none(), accepted);
    }
    world.minute().await;
    world.publish(EventType::TransitionStuck).await;
    assert_eq!(world.minute().await.len(), 1);
}

#[tokio::test]
async fn nothing_that_goes_wrong_repeats_an_address() {
    let world = World::new().await;
    let address = |text: &str| fs::write(world.folder.path().join("url"), text).unwrap();
    for text in ["http://127.0.0.1:1/secret-path", "http://example.com/secret-path", "secret-path"]
    {
        address(text);
        world.publish(EventType::TransitionStuck).await;
        world.minute().await;
        let error = world.failing().await.unwrap().error;
        assert!(!error.contains("secret"), "{error}");
        world.clock.advance_to(world.clock.now() + 2.hours());
    }
}

#[tokio::test]
async fn a_bad_minute_is_reported_below_the_address_of_the_heartbeat() {
    let world = World::new().await;
    world.notifier.beat(true).await;
    world.notifier.beat(false).await;
    assert_eq!(world.minute().await, ["/secret-path/", "/secret-path/fail"]);
}

#[tokio::test]
async fn a_target_of_an_owner_gets_nothing_of_others_unless_it_is_cut_short() {
    let world = World::new().await;
    let mut configuration = (*world.store.in_force().await.unwrap().configuration).clone();
    configuration.settings.owner_tag = Some("team".to_owned());
    for target in configuration.settings.notify.values_mut() {
        target.owner = Some("web".to_owned());
    }
    world.store.apply(&configuration, "ada", world.clock.now()).await.unwrap();
    // No record says whose it is.
    let theirs = "do-main/droplet/1";
    for (detail, received) in [
        (json!({ "resource": theirs }), 0),
        (json!({ "count": 1, "resources": [{ "resource": theirs, "name": "db" }] }), 0),
        (json!({ "count": 2, "resources": [{ "resource": theirs, "name": "db" }] }), 1),
        (json!({ "count": 25, "resources": [theirs] }), 1),
        (json!({ "schedule": "office" }), 1),
    ] {
        world.publish_detail(EventType::StopAnnounced, &detail).await;
        assert_eq!(world.minute().await.len(), received, "{detail}");
    }
}
