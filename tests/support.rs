//! Shared by the tests: a service with its clouds, at an hour of a working day.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{Read as _, Seek as _},
    net::SocketAddr,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    sync::{
        Arc, Once,
        atomic::{AtomicUsize, Ordering},
    },
};

use aws_sdk_dynamodb::{
    Client,
    config::{
        ConfigBag, Intercept, RuntimeComponents, interceptors::BeforeTransmitInterceptorContextRef,
    },
    error::BoxError,
};
use axum::Router;
use cloud_simulator::{Act, Entry, Fault, Simulator};
use dispatch::DispatchReport;
use domain::{
    ResourceRef,
    configuration::{Configuration, Floor, Override, OverrideTarget, TokenReference},
    digest::Digest,
    history::HistoryEntry,
    notice::StopNotice,
    record::{Direction, Record},
    resource::{Power, Resource},
    schedule::Desired,
};
use environment::{Invoke, SteppedClock};
use jiff::{SignedDuration, Timestamp};
use jsonschema::Validator;
use lifecycle::{Event, Occurrence, Report, event::Subject};
use local::{
    Local, Options,
    clouds::Clouds,
    engine::{Engine, client_config},
    service::ServiceEvent,
};
use offhours::configuration_file;
use secrecy::SecretString;
use serde_json::Value;
use store::{HistoryQuery, Store, Tables};
use testing::{history::machine, set_override};
use tokio::sync::mpsc;

use crate::telling::{check_bus_event, schemas};

/// Both accounts of the small fleets. Each test adds their resources.
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

/// The accounts' tokens, with the references that the configurations have for them.
pub(crate) const TOKENS: [(&str, &str); 2] =
    [("env:DO_TOKEN", "secret-do-token"), ("env:HZ_TOKEN", "secret-hz-token")];

/// Tokens, with the references under which they are kept.
pub(crate) fn kept(tokens: &[(&str, &str)]) -> Vec<(TokenReference, SecretString)> {
    let kept = |(reference, token): &(&str, &str)| (reference.parse().unwrap(), (*token).into());
    tokens.iter().map(kept).collect()
}

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

/// Like [`office_hours`], with a night that ends at 18:40 UTC.
pub(crate) fn short_night(top: &str, policy: &str) -> String {
    let night = r#"end = "19:00" }, { begin = "19:40", end = "23:00" }"#;
    office_hours(top, "", policy).replace(r#"end = "19:00" }"#, night)
}

/// Like [`short_night`], but ends at 19:40 UTC: long enough to stop a database.
pub(crate) fn longer_night(top: &str, policy: &str) -> String {
    short_night(top, policy).replace("19:40", "20:40")
}

/// Like [`office_hours`], but on all days, and stopped for an hour from 18:00 to 19:00 UTC.
pub(crate) fn an_hour_off(top: &str) -> String {
    office_hours(top, "", "").replace(
        r#"{ weekdays = "mon-fri", begin = "08:00", end = "19:00" }"#,
        r#"{ begin = "07:00", end = "19:00" }, { begin = "20:00", end = "23:00" }"#,
    )
}

/// Another schedule, which is also closed at 18:00 UTC.
pub(crate) const NIGHTS: &str = r#"
    [schedules.nights]
    timezone = "UTC"
    periods = [{ begin = "20:00", end = "04:00" }]
"#;

/// A Droplet in a fleet.
pub(crate) fn droplet(id: u64, name: &str, tags: &[&str]) -> String {
    format!("[[droplets]]\nid = {id}\nname = \"{name}\"\ntags = {tags:?}\n")
}

/// Droplets with these ids, called `web-1` and so on.
pub(crate) fn droplets(ids: RangeInclusive<u64>, tags: &[&str]) -> String {
    ids.map(|id| droplet(id, &format!("web-{id}"), tags)).collect()
}

/// A database in a fleet, in the schedule `office`. A stop can move it to a smaller plan.
pub(crate) fn database(id: &str, name: &str, engine: &str) -> String {
    format!(
        "[[databases]]\nid = \"{id}\"\nname = \"{name}\"\nengine = \"{engine}\"\n\
         plan = \"db-s-2vcpu-4gb\"\ntags = [\"offhours:office\"]\n"
    )
}

/// The node pool `c1/p1` in a fleet, with these keys, in a cluster in the schedule `office`.
pub(crate) fn pool(keys: &str) -> String {
    format!(
        "[[clusters]]\nid = \"c1\"\nname = \"staging\"\ntags = [\"offhours:office\"]\n\
         [[clusters.pools]]\nid = \"p1\"\nname = \"general\"\n{keys}\n"
    )
}

/// A server in a fleet, in the schedule `office`.
pub(crate) fn server(id: u64, more: &str) -> String {
    format!("{}labels = {{ offhours = \"office\" }}\n{more}\n", unlabelled_server(id))
}

/// A server in a fleet that follows nothing.
pub(crate) fn unlabelled_server(id: u64) -> String {
    format!("[[servers]]\nid = {id}\nname = \"ci-{id}\"\n")
}

/// Several [`server`]s, with these ids.
pub(crate) fn servers(ids: RangeInclusive<u64>, more: &str) -> String {
    ids.map(|id| server(id, more)).collect()
}

/// One resource of each kind in the schedule `office`, all running: [`EACH_KIND`].
pub(crate) fn one_of_each_kind() -> String {
    [
        ACCOUNTS,
        &droplet(1, "web", &["offhours:office"]),
        &database("d1", "orders", "pg"),
        &pool("count = 2"),
        &server(11, "").replace("ci-11", "ci"),
    ]
    .concat()
}

/// The references of [`one_of_each_kind`].
pub(crate) const EACH_KIND: [&str; 4] =
    ["do-main/database/d1", "do-main/droplet/1", "do-main/node-pool/c1/p1", "hz-eu/server/11"];

/// The record of a [`server`] as its first inventory leaves it, under this schedule if any.
pub(crate) fn first_seen(id: u64, schedule: Option<&str>, power: Power) -> Record {
    let reference = reference(&format!("hz-eu/server/{id}"));
    let label = schedule.map(|name| format!("offhours={name}"));
    let seen = Resource {
        name: format!("ci-{id}"),
        tags: label.into_iter().collect(),
        ..machine(&reference.id, power)
    };
    Record::first_seen(reference, &seen)
}

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

/// The names of the tables, as `offhours local` uses them.
pub(crate) fn tables() -> Tables {
    local::tables()
}

/// Serves in the background, and returns the address.
pub(crate) async fn serve(router: Router) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind(any_port()).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// Who AWS says that the commands' credentials belong to.
pub(crate) const ARN: &str = "arn:aws:sts::111122223333:assumed-role/platform/ada@example.com";

/// Serves STS, which says that of every caller. Returns its address.
pub(crate) async fn serve_sts() -> String {
    let answer = format!(
        "<GetCallerIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\
         <GetCallerIdentityResult><Arn>{ARN}</Arn><UserId>AROA</UserId>\
         <Account>111122223333</Account></GetCallerIdentityResult></GetCallerIdentityResponse>"
    );
    let router = Router::new().fallback(async || answer);
    format!("http://{}", serve(router).await)
}

thread_local! {
    static PANICS: Cell<u32> = const { Cell::new(0) };
}

/// Runs a test on this thread, because handlers are not `Send`. Fails if a handler panicked, if an
/// invocation failed, or if a log line contains a token.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let (result, logged) = run_logged(test);
    let errors = logged.lines().filter(|line| line.contains("ERROR"));
    // An engine in this process has no connection that the SDK could close after a lost answer.
    let errors: Vec<_> = errors.filter(|line| !line.contains("connection_poisoning")).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    result
}

/// Like [`run`], for a test in which errors are logged. Returns the log as well.
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
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
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
    /// What the store is kept on.
    pub(crate) engine: Engine,
    news: mpsc::UnboundedReceiver<ServiceEvent>,
    heard: Vec<Occurrence>,
    digests: Vec<Digest>,
    notices: Vec<StopNotice>,
    /// The schemas of the events on the bus.
    schemas: BTreeMap<String, Validator>,
}

impl World {
    pub(crate) async fn start(configuration: &str, fleet: &str, from: Timestamp) -> Self {
        let configuration = parse(configuration);
        Self::under(Floor::default(), configuration, fleet, from).await
    }

    /// Like [`Self::start`], in a deployment with guard rails of its own.
    pub(crate) async fn under(
        floor: Floor,
        configuration: Configuration,
        fleet: &str,
        from: Timestamp,
    ) -> Self {
        let fleet = fleet.parse().unwrap();
        let clouds = Clouds::simulated(fleet, &configuration.accounts, any_port()).unwrap();
        Self::with(floor, configuration, clouds, from).await
    }

    /// Like [`Self::start`], with these tokens, whatever the fleet's are.
    pub(crate) async fn with_tokens(
        configuration: &str,
        fleet: &str,
        tokens: &[(&str, &str)],
        from: Timestamp,
    ) -> Self {
        let clouds = Clouds::Simulated {
            fleet: Box::new(fleet.parse().unwrap()),
            address: any_port(),
            tokens: kept(tokens),
        };
        Self::with(Floor::default(), parse(configuration), clouds, from).await
    }

    async fn with(
        floor: Floor,
        configuration: Configuration,
        clouds: Clouds,
        from: Timestamp,
    ) -> Self {
        let (sender, news) = mpsc::unbounded_channel();
        let options = Options { clouds, data: None, from: Some(from), speed: None, floor };
        let engine = Engine::in_memory().unwrap();
        let store = engine.store(tables());
        let local = Local::start_on(store, options, sender).await.unwrap();
        let applied = local.store().apply(&configuration, "test", from).await;
        applied.unwrap();
        Self {
            local,
            engine,
            news,
            heard: Vec::new(),
            digests: Vec::new(),
            notices: Vec::new(),
            schemas: schemas(),
        }
    }

    /// Fires the timers every minute until this time.
    pub(crate) async fn run_until(&self, until: Timestamp) {
        self.local.run(Some(until)).await.unwrap();
    }

    pub(crate) fn simulator(&self) -> &Simulator {
        self.local.simulator().unwrap()
    }

    /// Acts on a resource at its provider, as a person.
    pub(crate) fn person(&self, resource: &str, act: Act) {
        let resource = reference(resource);
        self.simulator().person(&resource, act).unwrap();
    }

    /// Gives a resource other tags, as a person.
    pub(crate) fn retag(&self, resource: &str, tags: &[&str]) {
        let tags = tags.iter().map(ToString::to_string).collect();
        self.person(resource, Act::Retag { tags });
    }

    /// Creates a Droplet in the schedule `office`, as a person.
    pub(crate) fn create_droplet(&self, id: u64) {
        let mut new = droplet(id, &format!("new-{id}"), &["offhours:office"]);
        new.push_str("account = \"do-main\"\n");
        self.simulator().create(&new).unwrap();
    }

    /// The change requests so far, whatever their outcome.
    pub(crate) fn changes(&self) -> Vec<Entry> {
        let mut log = self.simulator().log();
        log.retain(|entry| entry.request.method != "GET");
        log
    }

    /// The resources for which a change was requested.
    pub(crate) fn touched(&self) -> BTreeSet<String> {
        let changes = self.changes();
        let touched = changes.iter().filter_map(|entry| entry.resource.as_ref());
        touched.map(ToString::to_string).collect()
    }

    /// Every outcome so far.
    pub(crate) fn outcomes(&mut self) -> &[Occurrence] {
        self.receive();
        &self.heard
    }

    /// Every digest so far.
    pub(crate) fn digests(&mut self) -> &[Digest] {
        self.receive();
        &self.digests
    }

    /// Every notice of a stop so far.
    pub(crate) fn notices(&mut self) -> &[StopNotice] {
        self.receive();
        &self.notices
    }

    fn receive(&mut self) {
        while let Ok(news) = self.news.try_recv() {
            match news {
                ServiceEvent::Outcome(outcome) => {
                    check_bus_event(&self.schemas, &outcome);
                    self.heard.push(outcome);
                }
                ServiceEvent::Digest(digest) => self.digests.push(digest),
                ServiceEvent::Notice(notice) => self.notices.push(notice),
                ServiceEvent::Passed(_) => {}
            }
        }
    }

    /// Every event of one resource so far.
    pub(crate) fn events(&mut self, resource: &str) -> Vec<Event> {
        let resource = reference(resource);
        let about = |outcome: &&Occurrence| match &outcome.subject {
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
        let all = HistoryQuery { since: Timestamp::MIN, until: Timestamp::MAX, schedule: None };
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
            target: OverrideTarget::Resource(reference(resource)),
            desired,
            set_at: now,
            ends_at: now + length,
            by: "a person".to_owned(),
            why: None,
            before: None,
        };
        set_override(self.local.store(), &one, now).await.unwrap();
    }
}

/// Runs one tick of dispatch.
pub(crate) async fn dispatch(
    store: &Store,
    invoke: &impl Invoke,
    now: Timestamp,
) -> DispatchReport {
    let timer = include_str!("../crates/dispatch/events/timer.json");
    let timer = serde_json::from_str(timer).unwrap();
    let passed = environment::check::passed;
    let dispatched = dispatch::handle(store, invoke, passed, timer, now).await;
    dispatched.unwrap()
}

/// Counts what one process's store asks of the engine.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestCounter {
    count: Arc<AtomicUsize>,
    /// How long each request takes on a stepped clock.
    takes: Option<(SteppedClock, SignedDuration)>,
}

impl RequestCounter {
    /// A counter, and the store whose requests it counts.
    pub(crate) fn on(engine: &Engine) -> (Self, Store) {
        Self::taking(engine, None)
    }

    /// A counter that advances a clock by this much with each request.
    pub(crate) fn taking(
        engine: &Engine,
        takes: Option<(SteppedClock, SignedDuration)>,
    ) -> (Self, Store) {
        let counter = Self { takes, count: Arc::default() };
        let config = client_config(engine.clone()).interceptor(counter.clone());
        let store = Store::new(Client::from_conf(config.build()), tables());
        (counter, store)
    }

    /// The number of requests since the last call.
    pub(crate) fn take_count(&self) -> usize {
        self.count.swap(0, Ordering::Relaxed)
    }
}

impl Intercept for RequestCounter {
    fn name(&self) -> &'static str {
        "RequestCounter"
    }

    fn read_before_transmit(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        self.count.fetch_add(1, Ordering::Relaxed);
        if let Some((clock, takes)) = &self.takes {
            clock.advance_to(clock.now() + *takes);
        }
        Ok(())
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
    // Files edited while the tests run do not matter.
    let changed = built..modified(&test).unwrap();
    let sources = fs::read_to_string(path.with_extension("d")).unwrap();
    for source in sources.split_whitespace().skip(1) {
        let is_newer = modified(Path::new(source)).is_some_and(|at| changed.contains(&at));
        assert!(!is_newer, "{name} is older than {source}: {advice}");
    }
    path
}

/// A fault, in the form that the simulator's control API accepts.
pub(crate) fn fault(json: &Value) -> Fault {
    serde_json::from_value(json.clone()).unwrap()
}
