//! One request after the other: hold, fault, effect, log, answer.

use std::{
    collections::BTreeMap,
    fmt, io,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::{Request, State as Shared},
    http::{HeaderValue, header},
    response::Response,
};
use domain::{
    ClusterId, DatabaseId, DropletId, PoolId, ResourceId, ResourceRef, ServerId,
    configuration::Provider,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::net::TcpListener;

use crate::{
    answer::{Answer, Refusal},
    clock::{HeldClock, Now, Pass},
    control, digitalocean,
    faults::{
        Caught, Fault, Hold, HoldId, HoldView, Identity, Misbehavior, Mischief, Stage,
        UnknownHoldError, Verdict,
    },
    fleet::{self, Fleet, FleetError},
    hetzner,
    log::{Entry, Log, LoggedAnswer, LoggedRequest},
    people::{self, Act, PersonError},
    request::Incoming,
    world::{World, uuid_of},
};

/// No request of either API comes near this many bytes.
const LARGEST_BODY: usize = 1024 * 1024;

/// For how many rounds of this thread's tasks no request must have arrived before time passes for
/// those that are under way: a client that sends several at once gets to send them all.
const QUIET_ROUNDS: u32 = 64;

/// Both clouds. Cloning gives the same ones.
#[derive(Clone)]
pub struct Simulator {
    now: Now,
    /// Lets time pass, where that can be done.
    pass: Option<Pass>,
    /// How many requests have arrived.
    arrived: Arc<AtomicU64>,
    /// The clock, where it is one that can be moved.
    held: Option<HeldClock>,
    state: Arc<Mutex<State>>,
}

impl fmt::Debug for Simulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulator").finish_non_exhaustive()
    }
}

struct State {
    world: World,
    log: Log,
    mischief: Mischief,
    /// Requests whose client has gone and which are still to arrive.
    late: BTreeMap<(Timestamp, u64), Incoming>,
    serial: u64,
}

/// What became of a request; no answer means that the connection is closed.
struct Outcome {
    sequence: Option<u64>,
    answer: Option<Answer>,
    /// When the answer leaves, if not at once.
    leaves_at: Option<Timestamp>,
}

impl Simulator {
    /// Clouds that hold `fleet`, at the time that `now` tells.
    #[must_use]
    pub fn new(fleet: &Fleet, now: Now) -> Self {
        let mut world = World::new(now());
        fleet
            .admit(&mut world)
            .expect("a fleet was admitted once when it was read");
        let state = State {
            world,
            log: Log::default(),
            mischief: Mischief::default(),
            late: BTreeMap::new(),
            serial: 0,
        };
        Self {
            now,
            pass: None,
            arrived: Arc::default(),
            held: None,
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// The same clouds on a clock that they move themselves while an answer takes its time.
    #[must_use]
    pub fn passing(self, pass: Pass) -> Self {
        Self {
            pass: Some(pass),
            ..self
        }
    }

    /// Clouds that hold `fleet`, with a clock that `POST /_simulator/clock` can move.
    #[must_use]
    pub fn with_held_clock(fleet: &Fleet, clock: HeldClock) -> Self {
        let simulator = Self::new(fleet, clock.as_now()).passing(clock.as_pass());
        Self {
            held: Some(clock),
            ..simulator
        }
    }

    /// Both APIs and the control API.
    pub fn router(&self) -> Router {
        control::routes()
            .fallback(exchange)
            .with_state(self.clone())
    }

    /// Serves until the future is dropped.
    pub async fn serve(&self, listener: TcpListener) -> io::Result<()> {
        axum::serve(listener, self.router()).await
    }

    /// The simulated instant.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.now)()
    }

    /// The clock, where it is one that can be moved.
    #[must_use]
    pub fn held_clock(&self) -> Option<&HeldClock> {
        self.held.as_ref()
    }

    /// Every request so far, in the order in which the clouds took them.
    #[must_use]
    pub fn log(&self) -> Vec<Entry> {
        self.log_after(0)
    }

    /// The requests after the one with this number.
    #[must_use]
    pub fn log_after(&self, sequence: u64) -> Vec<Entry> {
        self.up_to_date().log.after(sequence).to_vec()
    }

    /// The whole state of every resource, by its reference.
    #[must_use]
    pub fn resources(&self) -> BTreeMap<String, Value> {
        self.up_to_date().world.resources()
    }

    /// The whole state of one resource.
    #[must_use]
    pub fn resource(&self, reference: &ResourceRef) -> Option<Value> {
        self.resources().remove(&reference.to_string())
    }

    /// A person does something at the provider, past every client.
    pub fn person(&self, resource: &ResourceRef, act: Act) -> Result<(), PersonError> {
        people::act(&mut self.up_to_date().world, resource, act)
    }

    /// A person creates what a fleet's TOML describes.
    pub fn create(&self, description: &str) -> Result<(), FleetError> {
        fleet::create(description, &mut self.up_to_date().world)
    }

    /// Sets a fault.
    pub fn add_fault(&self, fault: Fault) {
        self.lock().mischief.add_fault(fault);
    }

    /// The faults that are set, with how often each is still to come.
    #[must_use]
    pub fn faults(&self) -> Vec<Fault> {
        self.lock().mischief.faults().to_vec()
    }

    /// Removes all faults.
    pub fn clear_faults(&self) {
        self.lock().mischief.clear_faults();
    }

    /// Sets a hold.
    #[must_use]
    pub fn add_hold(&self, hold: Hold) -> HoldId {
        self.lock().mischief.add_hold(hold)
    }

    /// The holds that are set.
    #[must_use]
    pub fn holds(&self) -> Vec<HoldView> {
        self.lock().mischief.holds()
    }

    /// Waits until a request waits in the hold.
    pub async fn wait_until_caught(&self, id: HoldId) -> Result<(), UnknownHoldError> {
        let mut waiting = self.lock().mischief.waiting(id)?;
        let caught = waiting.wait_for(|waiting| *waiting > 0).await;
        caught.map(|_| ()).map_err(|_| UnknownHoldError(id))
    }

    /// Ends a hold; what it has caught goes on.
    pub fn release(&self, id: HoldId) -> Result<(), UnknownHoldError> {
        self.lock().mischief.end_hold(id, Verdict::GoOn)
    }

    /// Ends a hold; the connections of what it has caught are closed, and what was held on
    /// arrival has no effect.
    pub fn discard(&self, id: HoldId) -> Result<(), UnknownHoldError> {
        self.lock().mischief.end_hold(id, Verdict::Discard)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic while the lock is held fails the test anyhow.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, after everything that was to happen until now.
    fn up_to_date(&self) -> MutexGuard<'_, State> {
        let now = (self.now)();
        let mut state = self.lock();
        state.advance(now);
        state
    }

    fn catch(&self, stage: Stage, incoming: &Incoming) -> Option<Ticket> {
        let mut locked = self.lock();
        let identity = locked.identify(incoming);
        let caught = locked.mischief.catch(stage, incoming, &identity)?;
        Some(Ticket {
            simulator: self.clone(),
            caught,
        })
    }

    async fn go_on(self, incoming: Incoming) -> Response {
        let outcome = self.up_to_date().take(&incoming);
        if let Some(ticket) = self.catch(Stage::Answer, &incoming)
            && ticket.verdict().await == Verdict::Discard
        {
            return closed();
        }
        let Some(answer) = outcome.answer else {
            return closed();
        };
        if let Some(at) = outcome.leaves_at {
            self.wait_until(at).await;
        }
        if let Some(sequence) = outcome.sequence {
            self.lock().log.delivered(sequence);
        }
        respond(answer, self.now())
    }

    /// Lets time pass until then, after whoever sends several requests at once has sent them all.
    async fn wait_until(&self, at: Timestamp) {
        let Some(pass) = &self.pass else {
            let wait = at.duration_since(self.now());
            let wait = wait.try_into().unwrap_or_default();
            return environment::Clock::machine().sleep(wait).await;
        };
        let (mut arrived, mut rounds) = (0, 0);
        while rounds < QUIET_ROUNDS {
            if self.now() >= at {
                return;
            }
            let now_arrived = self.arrived.load(Ordering::Relaxed);
            rounds = if now_arrived == arrived {
                rounds + 1
            } else {
                0
            };
            arrived = now_arrived;
            tokio::task::yield_now().await;
        }
        pass(at);
    }
}

/// A caught request's place in its hold; dropping it says that it waits no more.
struct Ticket {
    simulator: Simulator,
    caught: Caught,
}

impl Ticket {
    async fn verdict(&self) -> Verdict {
        let mut verdict = self.caught.verdict.clone();
        // Without a hold there is nobody left who could release it.
        verdict
            .wait_for(Option::is_some)
            .await
            .map_or(Verdict::Discard, |verdict| {
                verdict.unwrap_or(Verdict::Discard)
            })
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.simulator.lock().mischief.left(self.caught.id);
    }
}

/// Takes a request to a cloud. When the client goes, this future is dropped, wherever it waits.
async fn exchange(Shared(simulator): Shared<Simulator>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, LARGEST_BODY).await else {
        return closed();
    };
    let incoming = Incoming::new(&parts, body);
    simulator.arrived.fetch_add(1, Ordering::Relaxed);
    let Some(ticket) = simulator.catch(Stage::Arrival, &incoming) else {
        return simulator.go_on(incoming).await;
    };
    let late = ticket.caught.late;
    let held = async move {
        match ticket.verdict().await {
            Verdict::GoOn => simulator.go_on(incoming).await,
            Verdict::Discard => closed(),
        }
    };
    if late {
        // As a task of its own it outlives the client.
        tokio::spawn(held).await.unwrap_or_else(|_| closed())
    } else {
        held.await
    }
}

impl State {
    /// Lets everything happen that was to happen until `now`, late requests included.
    fn advance(&mut self, now: Timestamp) {
        while let Some(entry) = self.late.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((at, _), incoming) = entry.remove_entry();
            self.world.advance(at);
            let identity = self.identify(&incoming);
            self.carry_out(&incoming, identity, None);
        }
        self.world.advance(now);
    }

    fn identify(&self, incoming: &Incoming) -> Identity {
        let place = incoming
            .token()
            .and_then(|token| self.world.opened_by(incoming.provider(), token));
        let account = place.map(|place| self.world.accounts[place].login.name.clone());
        let resource = account
            .as_ref()
            .zip(named(incoming))
            .map(|(account, id)| ResourceRef {
                account: account.clone(),
                id,
            });
        Identity { account, resource }
    }

    /// Takes a request that has just arrived.
    fn take(&mut self, incoming: &Incoming) -> Outcome {
        let identity = self.identify(incoming);
        let fault = self.mischief.fault_for(incoming, &identity);
        if let Some(Misbehavior::Late { by }) = fault {
            self.serial += 1;
            let at = self.world.timeline.now() + by;
            self.late.insert((at, self.serial), incoming.clone());
            return Outcome {
                sequence: None,
                answer: None,
                leaves_at: None,
            };
        }
        self.carry_out(incoming, identity, fault)
    }

    fn carry_out(
        &mut self,
        incoming: &Incoming,
        identity: Identity,
        fault: Option<Misbehavior>,
    ) -> Outcome {
        let sequence = self.log.next_sequence();
        let request_id = uuid_of(sequence);
        let provider = incoming.provider();
        let faulty = fault.is_some();
        let mut leaves_at = None;
        let usual = |status| Refusal::of_status(provider, status).answer(provider, &request_id);
        let mut effect = |slowness| self.perform(incoming, slowness, &request_id);
        let (answer, changed) = match fault {
            None => {
                let (answer, changed) = effect(SignedDuration::ZERO);
                (Some(answer), changed)
            }
            Some(Misbehavior::Slow { by }) => {
                let (answer, changed) = effect(by);
                (Some(answer), changed)
            }
            Some(Misbehavior::Delay { by }) => {
                let (answer, changed) = effect(SignedDuration::ZERO);
                leaves_at = Some(self.world.timeline.now() + by);
                (Some(answer), changed)
            }
            Some(Misbehavior::Truncate) => {
                let (mut answer, changed) = effect(SignedDuration::ZERO);
                if let Some(body) = &mut answer.body {
                    body.truncate(body.len() / 2);
                }
                (Some(answer), changed)
            }
            Some(Misbehavior::Drop { after_effect }) => {
                (None, after_effect && effect(SignedDuration::ZERO).1)
            }
            Some(Misbehavior::Answer {
                status,
                body,
                headers,
                after_effect,
            }) => {
                let changed = after_effect && effect(SignedDuration::ZERO).1;
                let mut answer = match body {
                    Some(body) => Answer::text(status, body, "application/json"),
                    None => usual(status),
                };
                answer.headers.extend(headers);
                (Some(self.rated(incoming, answer)), changed)
            }
            // A late request has no fault of its own.
            Some(Misbehavior::Unauthorized | Misbehavior::Late { .. }) => {
                (Some(self.rated(incoming, usual(401))), false)
            }
        };
        let answer = answer.map(|answer| match provider {
            Provider::DigitalOcean => answer.with("x-request-id", &request_id),
            Provider::Hetzner => answer,
        });
        self.log.add(Entry {
            sequence,
            at: self.world.timeline.now(),
            account: identity.account,
            resource: identity.resource,
            changed,
            faulty,
            delivered: false,
            request: LoggedRequest {
                method: incoming.method.to_string(),
                path: incoming.path.clone(),
                query: incoming.query.clone(),
                content_type: incoming.content_type.clone(),
                authorization: incoming.token().is_some(),
                body: incoming.text(),
            },
            answer: answer.as_ref().map(logged),
        });
        Outcome {
            sequence: Some(sequence),
            answer,
            leaves_at,
        }
    }

    /// What the cloud itself answers, and whether it accepted a change.
    fn perform(
        &mut self,
        incoming: &Incoming,
        slowness: SignedDuration,
        request_id: &str,
    ) -> (Answer, bool) {
        let provider = incoming.provider();
        self.world.timeline.slowness = slowness;
        let answer = self.answer(incoming);
        self.world.timeline.slowness = SignedDuration::ZERO;
        let changed = answer.is_ok() && incoming.is_change();
        let answer = answer.unwrap_or_else(|(refusal, retry_after)| {
            let answer = refusal.answer(provider, request_id);
            match retry_after {
                Some(seconds) => answer.with("retry-after", &seconds),
                None => answer,
            }
        });
        (self.rated(incoming, answer), changed)
    }

    /// Token, then rate, then path, then permission, as far as the clouds' order is known.
    fn answer(&mut self, incoming: &Incoming) -> Result<Answer, (Refusal, Option<i64>)> {
        let provider = incoming.provider();
        let plain = |refusal| (refusal, None);
        let place = incoming
            .token()
            .and_then(|token| self.world.opened_by(provider, token));
        let place = place.ok_or_else(|| plain(Refusal::of_status(provider, 401)))?;
        let (account, timeline) = self.world.account(place);
        let counted = account.rate.count(timeline.now());
        counted.map_err(|exceeded| (exceeded.refusal, exceeded.retry_after))?;
        let segments = incoming.segments();
        let reads = incoming
            .token()
            .is_none_or(|t| account.login.may_only_read(t));
        let allowed = if reads && incoming.is_change() {
            Err(plain(read_only(provider)))
        } else {
            Ok(())
        };
        match provider {
            Provider::DigitalOcean => {
                let operation = digitalocean::Operation::find(&incoming.method, &segments);
                let operation = operation.map_err(plain)?;
                allowed?;
                digitalocean::perform(operation, account, timeline, incoming).map_err(plain)
            }
            Provider::Hetzner => {
                let operation = hetzner::Operation::find(&incoming.method, &segments);
                let operation = operation.map_err(plain)?;
                allowed?;
                hetzner::perform(operation, account, timeline, incoming).map_err(plain)
            }
        }
    }

    /// Adds the rate's headers; those of an untouched account where the token is nobody's.
    fn rated(&self, incoming: &Incoming, answer: Answer) -> Answer {
        let (provider, now) = (incoming.provider(), self.world.timeline.now());
        let place = incoming
            .token()
            .and_then(|token| self.world.opened_by(provider, token));
        match place {
            Some(place) => self.world.accounts[place].rate.headers(answer, now),
            None => crate::rate::Rate::new(provider, None, now).headers(answer, now),
        }
    }
}

fn read_only(provider: Provider) -> Refusal {
    match provider {
        Provider::DigitalOcean => Refusal::of_status(provider, 403),
        Provider::Hetzner => {
            let message = "token is only allowed to perform GET requests";
            Refusal::new(403, "token_readonly", message)
        }
    }
}

/// The resource that a request's path names.
fn named(incoming: &Incoming) -> Option<ResourceId> {
    let number = |text: &str| text.parse::<u64>().ok();
    match (incoming.provider(), incoming.segments().as_slice()) {
        (Provider::DigitalOcean, ["droplets", id, ..]) => {
            Some(ResourceId::Droplet(DropletId(number(id)?)))
        }
        (Provider::DigitalOcean, ["databases", id, ..]) if *id != "options" => {
            Some(ResourceId::Database(DatabaseId((*id).to_owned())))
        }
        (Provider::DigitalOcean, ["kubernetes", "clusters", cluster, "node_pools", pool]) => {
            let cluster = ClusterId((*cluster).to_owned());
            Some(ResourceId::NodePool(cluster, PoolId((*pool).to_owned())))
        }
        (Provider::Hetzner, ["servers", id, ..]) => Some(ResourceId::Server(ServerId(number(id)?))),
        _ => None,
    }
}

fn logged(answer: &Answer) -> LoggedAnswer {
    let mut headers: BTreeMap<_, _> = answer
        .headers
        .iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()))
        .collect();
    if answer.body.is_some() {
        headers.insert("content-type".to_owned(), answer.content_type.to_owned());
    }
    let body = answer.body.clone().unwrap_or_default();
    LoggedAnswer {
        status: answer.status,
        headers,
        body,
        forgotten: false,
    }
}

fn respond(answer: Answer, now: Timestamp) -> Response {
    let mut response = Response::builder().status(answer.status);
    for (name, value) in answer.headers {
        response = response.header(name, value);
    }
    if answer.body.is_some() {
        response = response.header(header::CONTENT_TYPE, answer.content_type);
    }
    let date = now.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let date = HeaderValue::try_from(date).unwrap_or(HeaderValue::from_static("unknown"));
    let response = response.header(header::DATE, date);
    // A fault's status or header may be none that HTTP knows.
    let body = Body::from(answer.body.unwrap_or_default());
    response.body(body).unwrap_or_else(|_| closed())
}

/// Closes the connection without an answer: the server gives up before it has sent anything.
fn closed() -> Response {
    Response::new(Body::new(Broken))
}

/// A body that fails at once.
struct Broken;

impl http_body::Body for Broken {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, io::Error>>> {
        Poll::Ready(Some(Err(io::Error::other(
            "the connection is closed on purpose",
        ))))
    }
}
