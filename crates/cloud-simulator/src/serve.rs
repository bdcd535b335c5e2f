//! Serves requests, and holds or delays them.

use std::{
    io,
    pin::Pin,
    sync::atomic::Ordering,
    task::{Context, Poll},
};

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::{self, State as Shared},
    http::header,
    response::Response,
};
use jiff::Timestamp;
use tokio::net::TcpListener;

use crate::{
    answer::Answer,
    control,
    faults::{HeldRequest, Stage, Verdict},
    request::IncomingRequest,
    simulator::Simulator,
};

/// The largest request body that is accepted, in bytes: far more than either API needs.
const LARGEST_BODY: usize = 1024 * 1024;

/// How many rounds of this thread's tasks must pass without a new request before a delay moves the
/// clock, so that a client that sends several requests at once can send them all.
const QUIET_ROUNDS: u32 = 64;

impl Simulator {
    /// The router of both APIs and the control API.
    pub fn router(&self) -> Router {
        control::routes().fallback(exchange).with_state(self.clone())
    }

    /// Serves until the future is dropped.
    pub async fn serve(&self, listener: TcpListener) -> io::Result<()> {
        axum::serve(listener, self.router()).await
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
