//! The public handle to the simulator: serves requests, and holds or delays them.

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
    extract::{self, State as Shared},
    http::header,
    response::Response,
};
use domain::{AccountName, ResourceRef};
use jiff::Timestamp;
use serde_json::Value;
use tokio::net::TcpListener;

use crate::{
    answer::Answer,
    bill::{self, Bill, BillQuery},
    clock::{HeldClock, Now, Pass},
    clouds::Clouds,
    control,
    faults::{Fault, HeldRequest, Hold, HoldId, HoldView, Stage, UnknownHoldError, Verdict},
    fleet::{self, Fleet, FleetError},
    log::Entry,
    market::{Offer, OfferError},
    people::{self, Act, PersonError},
    prices::Prices,
    request::IncomingRequest,
    world::World,
};

/// The largest request body that is accepted, in bytes: far more than either API needs.
const LARGEST_BODY: usize = 1024 * 1024;

/// How many rounds of this thread's tasks must pass without a new request before a delay moves the
/// clock, so that a client that sends several requests at once can send them all.
const QUIET_ROUNDS: u32 = 64;

/// Both simulated clouds. Clones share the same state.
#[derive(Clone)]
pub struct Simulator {
    now: Now,
    /// Advances the clock; `None` if it cannot be moved.
    pass: Option<Pass>,
    /// How many requests have arrived.
    arrived: Arc<AtomicU64>,
    /// The held clock, if there is one.
    held: Option<HeldClock>,
    clouds: Arc<Mutex<Clouds>>,
}

impl fmt::Debug for Simulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulator").finish_non_exhaustive()
    }
}

impl Simulator {
    /// Creates clouds that hold `fleet`, on the clock `now`.
    #[must_use]
    pub fn new(fleet: &Fleet, now: Now) -> Self {
        let mut world = World::new(now());
        fleet.admit(&mut world).expect("a fleet was admitted once when it was read");
        Self {
            now,
            pass: None,
            arrived: Arc::default(),
            held: None,
            clouds: Arc::new(Mutex::new(Clouds::new(world))),
        }
    }

    /// Makes the clouds advance their clock themselves while a response is delayed.
    #[must_use]
    pub fn passing(self, pass: Pass) -> Self {
        Self { pass: Some(pass), ..self }
    }

    /// Creates clouds that hold `fleet`, with a clock that `POST /_simulator/clock` can move.
    #[must_use]
    pub fn with_held_clock(fleet: &Fleet, clock: HeldClock) -> Self {
        let simulator = Self::new(fleet, clock.as_now()).passing(clock.as_pass());
        Self { held: Some(clock), ..simulator }
    }

    /// The router of both APIs and the control API.
    pub fn router(&self) -> Router {
        control::routes().fallback(exchange).with_state(self.clone())
    }

    /// Serves until the future is dropped.
    pub async fn serve(&self, listener: TcpListener) -> io::Result<()> {
        axum::serve(listener, self.router()).await
    }

    /// The current simulated time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.now)()
    }

    /// The held clock, if there is one.
    #[must_use]
    pub fn held_clock(&self) -> Option<&HeldClock> {
        self.held.as_ref()
    }

    /// Every request so far, in the order in which the clouds handled them.
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

    /// Every image, with the contents of its disk.
    #[must_use]
    pub fn images(&self) -> Vec<Value> {
        self.up_to_date().world.images()
    }

    /// The whole state of one resource.
    #[must_use]
    pub fn resource(&self, reference: &ResourceRef) -> Option<Value> {
        self.resources().remove(&reference.to_string())
    }

    /// Performs a person's act in the provider's console.
    pub fn person(&self, resource: &ResourceRef, act: Act) -> Result<(), PersonError> {
        people::act(&mut self.up_to_date().world, resource, act)
    }

    /// Deletes an image or a snapshot, protected or not, as a person can in the console. Returns
    /// whether it existed.
    #[must_use]
    pub fn delete_image(&self, account: &AccountName, id: u64) -> bool {
        self.up_to_date().world.delete_image(account, id)
    }

    /// Sets the word that responses have for an image's status, or a snapshot's as an image; `None`
    /// for that of the status itself. Returns whether the image or snapshot exists.
    #[must_use]
    pub fn show_image_as(&self, account: &AccountName, id: u64, word: Option<&str>) -> bool {
        self.up_to_date().world.show_image_as(account, id, word)
    }

    /// Adds the label `key=value` to an image, or the tag `key:value` to a snapshot of a Droplet,
    /// or removes it, as a person would. Returns whether the image or snapshot exists.
    #[must_use]
    pub fn label_image(
        &self,
        account: &AccountName,
        id: u64,
        label: (&str, &str),
        is_given: bool,
    ) -> bool {
        let world = &mut self.up_to_date().world;
        world.label_image(account, id, label, is_given)
    }

    /// Replaces an account's token, as a person would: from now on the previous one is refused.
    pub fn set_token(&self, account: &AccountName, token: &str) {
        self.up_to_date().world.set_token(account, token);
    }

    /// Creates what a fleet's TOML describes, as a person would.
    pub fn create(&self, description: &str) -> Result<(), FleetError> {
        fleet::create(description, &mut self.up_to_date().world)
    }

    /// Replaces the price list retroactively: responses show the new prices, and the bill charges
    /// them from the beginning.
    pub fn set_prices(&self, prices: Prices) {
        let world = &mut self.up_to_date().world;
        world.set_market(world.market().priced(prices));
    }

    /// Withdraws or restores a plan (a Droplet size or a server type), everywhere or in one region
    /// or location.
    pub fn set_offer(
        &self,
        plan: &str,
        place: Option<&str>,
        offer: &Offer,
    ) -> Result<(), OfferError> {
        let world = &mut self.up_to_date().world;
        world.set_market(world.market().offering(plan, place, offer)?);
        Ok(())
    }

    /// Computes what the clouds charge for everything they hold or have held.
    #[must_use]
    pub fn bill(&self, query: &BillQuery) -> Bill {
        bill::bill(&self.up_to_date().world, query)
    }

    /// Sets a fault.
    pub fn add_fault(&self, fault: Fault) {
        self.lock().interference.faults.push(fault);
    }

    /// The active faults, each with the number of requests it still has to hit.
    #[must_use]
    pub fn faults(&self) -> Vec<Fault> {
        self.lock().interference.faults.clone()
    }

    /// Removes all faults.
    pub fn clear_faults(&self) {
        self.lock().interference.faults.clear();
    }

    /// Sets a hold.
    #[must_use]
    pub fn add_hold(&self, hold: Hold) -> HoldId {
        self.lock().interference.add_hold(hold)
    }

    /// The active holds.
    #[must_use]
    pub fn holds(&self) -> Vec<HoldView> {
        self.lock().interference.holds()
    }

    /// Waits until a request is waiting in the hold.
    pub async fn wait_until_caught(&self, id: HoldId) -> Result<(), UnknownHoldError> {
        let mut waiting = self.lock().interference.waiting(id)?;
        let caught = waiting.wait_for(|waiting| *waiting > 0).await;
        caught.map(|_| ()).map_err(|_| UnknownHoldError(id))
    }

    /// Ends a hold and lets the requests in it proceed.
    pub fn release(&self, id: HoldId) -> Result<(), UnknownHoldError> {
        self.lock().interference.end_hold(id, Verdict::Proceed)
    }

    /// Ends a hold and closes the connections of the requests in it. Requests held on arrival have
    /// no effect.
    pub fn discard(&self, id: HoldId) -> Result<(), UnknownHoldError> {
        self.lock().interference.end_hold(id, Verdict::Discard)
    }

    fn lock(&self) -> MutexGuard<'_, Clouds> {
        // A panic while the lock is held fails the test anyway.
        self.clouds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the clouds and applies everything that is due by now.
    fn up_to_date(&self) -> MutexGuard<'_, Clouds> {
        let now = (self.now)();
        let mut clouds = self.lock();
        clouds.advance(now);
        clouds
    }

    fn catch(&self, stage: Stage, incoming: &IncomingRequest) -> Option<HoldGuard> {
        let mut locked = self.lock();
        let identity = locked.identify(incoming);
        let request = locked.interference.catch(stage, &incoming.request, &identity)?;
        Some(HoldGuard { simulator: self.clone(), request })
    }

    async fn proceed(self, incoming: IncomingRequest) -> Response {
        let outcome = self.up_to_date().take(&incoming);
        if let Some(guard) = self.catch(Stage::Answer, &incoming)
            && guard.verdict().await == Verdict::Discard
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

    /// Waits until `at`. A movable clock is advanced once no more requests are arriving, so that a
    /// client that sends several at once can send them all.
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
            rounds = if now_arrived == arrived { rounds + 1 } else { 0 };
            arrived = now_arrived;
            tokio::task::yield_now().await;
        }
        pass(at);
    }
}

/// A request's place in its hold, released on drop.
struct HoldGuard {
    simulator: Simulator,
    request: HeldRequest,
}

impl HoldGuard {
    async fn verdict(&self) -> Verdict {
        let mut verdict = self.request.verdict.clone();
        let verdict = verdict.wait_for(Option::is_some).await;
        // Nothing can release a request whose hold is gone.
        verdict.ok().and_then(|verdict| *verdict).unwrap_or(Verdict::Discard)
    }
}

impl Drop for HoldGuard {
    fn drop(&mut self) {
        self.simulator.lock().interference.stopped_waiting(self.request.id);
    }
}

/// Handles a request to a cloud. If the client disconnects, this future is dropped wherever it is
/// waiting.
async fn exchange(Shared(simulator): Shared<Simulator>, request: extract::Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, LARGEST_BODY).await else {
        return closed();
    };
    let incoming = IncomingRequest::new(&parts, &body);
    simulator.arrived.fetch_add(1, Ordering::Relaxed);
    let Some(guard) = simulator.catch(Stage::Arrival, &incoming) else {
        return simulator.proceed(incoming).await;
    };
    let late = guard.request.late;
    let held = async move {
        match guard.verdict().await {
            Verdict::Proceed => simulator.proceed(incoming).await,
            Verdict::Discard => closed(),
        }
    };
    if late {
        // A separate task outlives the client.
        tokio::spawn(held).await.unwrap_or_else(|_| closed())
    } else {
        held.await
    }
}

fn respond(answer: Answer, now: Timestamp) -> Response {
    let date = now.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let mut response = Response::builder().status(answer.status).header(header::DATE, date);
    for (name, value) in answer.headers {
        response = response.header(name, value);
    }
    // A fault may set a status or header that HTTP does not allow.
    let response = response.body(Body::from(answer.body));
    response.unwrap_or_else(|_| closed())
}

/// Closes the connection without a response: the server gives up before it has sent anything.
fn closed() -> Response {
    Response::new(Body::new(Broken))
}

/// A body that fails immediately.
struct Broken;

impl http_body::Body for Broken {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, io::Error>>> {
        Poll::Ready(Some(Err(io::Error::other("the connection is closed on purpose"))))
    }
}
