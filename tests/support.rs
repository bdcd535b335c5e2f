//! What the tests share: a service with its clouds, at an hour of a working day.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{Read as _, Seek as _},
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, Once,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::{
    body::Bytes,
    http::{HeaderMap, StatusCode},
};
use cloud_simulator::{Entry, Fault, Simulator};
use domain::{
    ResourceRef,
    configuration::{Configuration, Override, Target},
    digest::Digest,
    history::HistoryEntry,
    invocation::Invocation,
    record::{Direction, Record},
    schedule::Desired,
};
use environment::{Invoke, InvokeError, SteppedClock, aws::local_config};
use jiff::{SignedDuration, Timestamp};
use jsonschema::Validator;
use lifecycle::{Event, Outcome, Report, event::Subject};
use local::{Local, Options, clouds::Clouds, service::News};
use offhours::configuration_file;
use serde_json::{Value, json};
use store::{Finished, Store, Tables};
use tokio::sync::mpsc;

use crate::telling::{check_bus_event, schemas};

/// Both accounts of the small fleets; each test adds what they hold.
pub(crate) const ACCOUNTS: &str = r#"
[[accounts]]
name = "do-main"
provider = "digitalocean"
token = "secret-do-token"

[[accounts]]
name = "hz-eu"
provider = "hetzner"
token = "secret-hz-token"
"#;

/// A schedule that ends at 18:00 UTC on working days, for both accounts.
pub(crate) fn office_hours(top: &str, account: &str, policy: &str) -> String {
    format!(
        r#"
        {top}
        [accounts.do-main]
        provider = "digitalocean"
        token = "env:DO_TOKEN"
        {account}
        [accounts.hz-eu]
        provider = "hetzner"
        token = "env:HZ_TOKEN"

        [schedules.office]
        timezone = "Europe/Berlin"
        periods = [{{ weekdays = "mon-fri", begin = "08:00", end = "19:00" }}]
        {policy}
        "#
    )
}

/// A Droplet in a fleet.
pub(crate) fn droplet(id: u64, name: &str, tags: &[&str]) -> String {
    format!("[[droplets]]\nid = {id}\nname = \"{name}\"\ntags = {tags:?}\n")
}

/// A server in a fleet, in the schedule `office`.
pub(crate) fn server(id: u64, more: &str) -> String {
    format!(
        "[[servers]]\nid = {id}\nname = \"ci-{id}\"\nlabels = {{ offhours = \"office\" }}\n{more}\n"
    )
}

/// One resource of each kind in the schedule `office`, all running: [`EACH_KIND`].
pub(crate) fn one_of_each_kind() -> String {
    format!(
        r#"{ACCOUNTS}
        [[droplets]]
        id = 1
        name = "web"
        tags = ["offhours:office"]

        [[databases]]
        id = "d1"
        name = "orders"
        engine = "pg"
        plan = "db-s-2vcpu-4gb"
        tags = ["offhours:office"]

        [[clusters]]
        id = "c1"
        name = "staging"
        tags = ["offhours:office"]

        [[clusters.pools]]
        id = "p1"
        name = "general"
        count = 2

        [[servers]]
        id = 11
        name = "ci"
        labels = {{ offhours = "office" }}
        "#
    )
}

/// The references of [`one_of_each_kind`].
pub(crate) const EACH_KIND: [&str; 4] = [
    "do-main/database/d1",
    "do-main/droplet/1",
    "do-main/node-pool/c1/p1",
    "hz-eu/server/11",
];

/// An instant on Monday, 2026-11-23, in UTC.
pub(crate) fn monday(time: &str) -> Timestamp {
    instant(&format!("2026-11-23T{time}Z"))
}

pub(crate) fn instant(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub(crate) fn reference(text: &str) -> ResourceRef {
    text.parse().unwrap()
}

pub(crate) fn parse(configuration: &str) -> Configuration {
    match configuration_file::parse(configuration, "test.toml") {
        Ok(parsed) => parsed.configuration,
        Err(problems) => panic!("{problems:?}"),
    }
}

/// Any free port of this machine.
pub(crate) fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

thread_local! {
    static PANICS: Cell<u32> = const { Cell::new(0) };
}

/// Runs a test on this thread, as handlers are not `Send`. Fails if a handler panicked, if an
/// invocation failed, or if a log line holds a token.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let (result, logged) = run_logged(test);
    let errors: Vec<_> = logged.lines().filter(|l| l.contains("ERROR")).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    result
}

/// [`run`], where errors are to be logged; returns the log as well.
pub(crate) fn run_logged<T>(test: impl Future<Output = T>) -> (T, String) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICS.set(PANICS.get() + 1);
            usual(panic);
        }));
    });
    let log = Arc::new(tempfile::tempfile().unwrap());
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::INFO)
        .with_ansi(false)
        .with_writer(Arc::clone(&log))
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let result = tokio::task::LocalSet::new().block_on(&runtime, test);
    assert_eq!(PANICS.get(), 0, "a handler panicked");
    let mut logged = String::new();
    (&*log).rewind().unwrap();
    (&*log).read_to_string(&mut logged).unwrap();
    assert!(!logged.contains("secret-"), "a token was logged");
    (result, logged)
}

/// The service in one process with its simulated clouds, on a clock that the test moves.
pub(crate) struct World {
    pub(crate) local: Local,
    news: mpsc::UnboundedReceiver<News>,
    heard: Vec<Outcome>,
    digests: Vec<Digest>,
    /// Of the events on the bus.
    schemas: BTreeMap<String, Validator>,
}

impl World {
    pub(crate) async fn start(configuration: &str, fleet: &str, from: Timestamp) -> Self {
        let configuration = parse(configuration);
        let fleet = fleet.parse().unwrap();
        let clouds = Clouds::simulated(fleet, &configuration.accounts, any_port()).unwrap();
        Self::with(configuration, clouds, from).await
    }

    pub(crate) async fn with(
        configuration: Configuration,
        clouds: Clouds,
        from: Timestamp,
    ) -> Self {
        let (sender, news) = mpsc::unbounded_channel();
        let options = Options {
            clouds,
            data: None,
            engine_address: any_port(),
            from: Some(from),
            speed: None,
        };
        let local = Local::start(options, sender).await.unwrap();
        let applied = local.store().apply(&configuration, "test", from).await;
        applied.unwrap();
        Self {
            local,
            news,
            heard: Vec::new(),
            digests: Vec::new(),
            schemas: schemas(),
        }
    }

    /// Lets the timers fire every minute until then.
    pub(crate) async fn run_until(&self, until: Timestamp) {
        self.local.run(Some(until), |_| ()).await.unwrap();
    }

    pub(crate) fn simulator(&self) -> &Simulator {
        self.local.simulator().unwrap()
    }

    /// The requests so far that are to change something, whatever became of them.
    pub(crate) fn changes(&self) -> Vec<Entry> {
        let mut log = self.simulator().log();
        log.retain(|entry| entry.request.method != "GET");
        log
    }

    /// The resources that a change was asked of.
    pub(crate) fn touched(&self) -> BTreeSet<String> {
        let changes = self.changes();
        let touched = changes.iter().filter_map(|entry| entry.resource.as_ref());
        touched.map(ToString::to_string).collect()
    }

    /// Every outcome so far.
    pub(crate) fn outcomes(&mut self) -> &[Outcome] {
        self.hear();
        &self.heard
    }

    /// Every digest so far.
    pub(crate) fn digests(&mut self) -> &[Digest] {
        self.hear();
        &self.digests
    }

    fn hear(&mut self) {
        while let Ok(news) = self.news.try_recv() {
            match news {
                News::Outcome(outcome) => {
                    check_bus_event(&self.schemas, &outcome);
                    self.heard.push(outcome);
                }
                News::Digest(digest) => self.digests.push(digest),
            }
        }
    }

    /// Every event of one resource so far.
    pub(crate) fn events(&mut self, resource: &str) -> Vec<Event> {
        let resource = reference(resource);
        let about = |outcome: &&Outcome| match &outcome.subject {
            Subject::Resource { resource: of, .. } => *of == resource,
            Subject::Account { .. } => false,
        };
        let outcomes = self.outcomes().iter();
        outcomes.filter(about).map(|o| o.event.clone()).collect()
    }

    /// Whether a transition of the resource was reported as seen.
    pub(crate) fn was_seen(&mut self, resource: &str) -> bool {
        let events = self.events(resource);
        events.iter().any(|e| matches!(e, Event::Seen { .. }))
    }

    /// Invokes stop with an event, as a person or dispatch does.
    pub(crate) async fn stop(&self, event: &Value) -> Report {
        self.command(Direction::Stop, event).await.unwrap()
    }

    /// Invokes start with an event.
    pub(crate) async fn start_now(&self, event: &Value) -> Report {
        self.command(Direction::Start, event).await.unwrap()
    }

    /// A resource's finished transitions, newest first.
    pub(crate) async fn history(&self, resource: &str) -> Vec<HistoryEntry> {
        let all = Finished {
            since: Timestamp::MIN,
            until: Timestamp::MAX,
            schedule: None,
        };
        let mut pages = self.local.store().history_of(&reference(resource), all);
        let mut entries = Vec::new();
        while let Some(page) = pages.next().await.unwrap() {
            entries.extend(page.entries);
        }
        entries
    }

    /// Invokes stop or start with an event.
    pub(crate) async fn command(
        &self,
        direction: Direction,
        event: &Value,
    ) -> Result<Report, lifecycle::Error> {
        let invocation = serde_json::from_value(event.clone()).unwrap();
        self.local.service().command(direction, invocation).await
    }

    pub(crate) async fn record(&self, resource: &str) -> Record {
        let record = self.local.store().record(&reference(resource)).await;
        record.unwrap().unwrap()
    }

    /// Applies a configuration, as `offhours apply` does.
    pub(crate) async fn apply(&self, configuration: &str) {
        let store = self.local.store();
        let mut configuration = parse(configuration);
        let in_force = store.in_force().await.unwrap();
        configuration.generation = in_force.configuration.generation;
        let now = self.local.now();
        store.apply(&configuration, "a test", now).await.unwrap();
    }

    /// Sets an override of a resource from now on.
    pub(crate) async fn override_with(
        &self,
        resource: &str,
        desired: Desired,
        length: SignedDuration,
    ) {
        let now = self.local.now();
        let one = Override {
            target: Target::Resource(reference(resource)),
            desired,
            set_at: now,
            ends_at: now + length,
            by: "a person".to_owned(),
            why: None,
        };
        self.local.store().set_override(&one, now).await.unwrap();
    }
}

/// Functions that only note that they were invoked.
#[derive(Debug, Default)]
pub(crate) struct Noted(pub(crate) Mutex<Vec<(Direction, Invocation)>>);

impl Invoke for Noted {
    async fn invoke(
        &self,
        direction: Direction,
        invocation: Invocation,
    ) -> Result<(), InvokeError> {
        self.0.lock().unwrap().push((direction, invocation));
        Ok(())
    }
}

/// The event of a timer.
pub(crate) fn timer() -> Value {
    json!({
        "version": "0", "id": "1", "detail-type": "Scheduled Event", "source": "aws.events",
        "account": "000000000000", "time": "2026-11-23T17:00:00Z", "region": "local",
        "resources": ["arn:aws:events:local:000000000000:rule/offhours"], "detail": {},
    })
}

/// An HTTP proxy in front of the store's engine that counts the requests.
#[derive(Clone)]
pub(crate) struct CountingProxy {
    engine: String,
    http: reqwest::Client,
    count: Arc<AtomicUsize>,
    /// How long each request takes on a stepped clock.
    takes: Option<(SteppedClock, SignedDuration)>,
}

impl CountingProxy {
    /// A proxy, and a store that speaks through it.
    pub(crate) async fn before(engine: SocketAddr) -> (Self, Store) {
        Self::taking(engine, None).await
    }

    /// A proxy that lets so much time pass with each request.
    pub(crate) async fn taking(
        engine: SocketAddr,
        takes: Option<(SteppedClock, SignedDuration)>,
    ) -> (Self, Store) {
        let proxy = Self {
            takes,
            engine: format!("http://{engine}/"),
            http: provider::http_client().unwrap(),
            count: Arc::default(),
        };
        let listener = tokio::net::TcpListener::bind(any_port()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = proxy.clone();
        let router = axum::Router::new().fallback(move |headers: HeaderMap, body: Bytes| {
            let proxy = serving.clone();
            async move { proxy.pass_on(headers, body).await }
        });
        tokio::spawn(async move { axum::serve(listener, router).await });
        let config = local_config(&format!("http://{address}"));
        (
            proxy,
            Store::connect(&config, Tables::prefixed("offhours-")),
        )
    }

    /// How many requests have passed since the last call.
    pub(crate) fn take_count(&self) -> usize {
        self.count.swap(0, Ordering::Relaxed)
    }

    async fn pass_on(&self, headers: HeaderMap, body: Bytes) -> (StatusCode, HeaderMap, Bytes) {
        self.count.fetch_add(1, Ordering::Relaxed);
        if let Some((clock, takes)) = &self.takes {
            clock.advance_to(clock.now() + *takes);
        }
        let request = self.http.post(&self.engine).headers(headers).body(body);
        let answer = request.send().await.unwrap();
        let (status, mut headers) = (answer.status(), answer.headers().clone());
        // The body goes on as a whole, whatever it came as.
        headers.remove("transfer-encoding");
        (status, headers, answer.bytes().await.unwrap())
    }
}

/// The repository's root.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// A program of this workspace, built with what the tests were built with.
pub(crate) fn program(name: &str) -> PathBuf {
    // The test is target/debug/deps/offhours-HASH.
    let test = std::env::current_exe().unwrap();
    let path = test.parent().unwrap().parent().unwrap().join(name);
    let advice = "run `cargo build --workspace --bins`, as `make test` does";
    let modified = |path: &Path| path.metadata().and_then(|found| found.modified()).ok();
    let built = modified(&path).unwrap_or_else(|| panic!("no {}: {advice}", path.display()));
    // What is edited while the tests run is of no concern.
    let changed = built..modified(&test).unwrap();
    let sources = fs::read_to_string(path.with_extension("d")).unwrap();
    for source in sources.split_whitespace().skip(1) {
        let is_newer = modified(Path::new(source)).is_some_and(|at| changed.contains(&at));
        assert!(!is_newer, "{name} is older than {source}: {advice}");
    }
    path
}

/// A fault, as the simulator's control API takes it.
pub(crate) fn fault(json: &Value) -> Fault {
    serde_json::from_value(json.clone()).unwrap()
}
