//! The transport to the clouds: HTTP in bytes, over an in-memory pipe, with injected faults.

use std::{
    fmt, future::Future, io, sync::Arc, task::Context, task::Poll, task::Waker, time::Duration,
};

use axum::Router;
use bytes::Bytes;
use cloud_simulator::{Act, Matching, Misbehavior, Simulator};
use domain::{AccountName, DropletId, ResourceId, ResourceRef, ServerId, ssh::Host};
use futures_util::{FutureExt as _, future::BoxFuture};
use http_body_util::{BodyExt as _, Full};
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use jiff::SignedDuration;
use provider::{Carrier, CarrierError, CarrierResult, Stream};

use crate::{
    clockwork::Time,
    elsewhere::Elsewhere,
    faults::{Faults, RequestInfo},
    night::Fault,
    observer::Observer,
    ssh_host::SshHost,
    trace::Actor,
};

/// The request timeout, as in the real client.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The capacity of a pipe, large enough for any request or response, so that neither side waits for
/// the other.
const PIPE: usize = 4 * 1024 * 1024;

/// Carries requests to the simulated clouds.
pub(crate) struct Wire {
    pub(crate) time: Time,
    pub(crate) faults: Faults,
    pub(crate) simulator: Simulator,
    /// The simulator's server, kept because building its routes takes longer than a request.
    pub(crate) router: Router,
    pub(crate) elsewhere: Elsewhere,
    /// The host of the SSH account. `None` if the night has none.
    pub(crate) host: Option<SshHost>,
    pub(crate) observer: Observer,
    /// The accounts, by their tokens.
    pub(crate) accounts: Vec<(String, AccountName)>,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").finish_non_exhaustive()
    }
}

impl Carrier for Wire {
    fn carry(&self, request: http::Request<Bytes>) -> BoxFuture<'_, CarrierResult> {
        self.exchange(request).boxed()
    }

    fn connect(&self, host: &Host, port: u16) -> BoxFuture<'_, io::Result<Stream>> {
        let host = host.clone();
        async move {
            let there = self.host.as_ref().ok_or(io::ErrorKind::ConnectionRefused)?;
            there.connect(&host, port).await
        }
        .boxed()
    }
}

/// What happens to a request in transit.
struct Passage {
    /// How the cloud misbehaves. `None` if it does not.
    cloud: Option<Misbehavior>,
    /// How long the response takes.
    takes: Duration,
    dies_before: bool,
    dies_after: bool,
    lost: bool,
    /// What a person does meanwhile.
    crossed: Option<Act>,
}

impl Wire {
    async fn exchange(&self, request: http::Request<Bytes>) -> CarrierResult {
        let changes = request.method() != http::Method::GET;
        let token = token_of(&request);
        let is_elsewhere = Elsewhere::is_token(&token);
        let account = self.account_of(&token);
        let described = format!("{} {}", request.method(), request.uri().path());
        let named = self.observer.named(&account, &described).filter(|_| changes);
        let info = RequestInfo::Cloud {
            account: &account,
            changes,
            later_page: is_later_page(&request),
            kind: named.as_ref().map(ResourceRef::kind),
        };
        let latency = self.time.chance(|chance| chance.u64(15..250));
        let latency = Duration::from_millis(latency);
        let passage = self.passage(info, latency, request.uri().path().starts_with("/v1"));
        if passage.dies_before {
            self.observer.note_fault("dies before a request", &described);
            self.time.die().await;
        }
        self.time.sleep(latency).await;
        let body = String::from_utf8_lossy(request.body()).into_owned();
        if changes {
            let by = self.time.current();
            self.observer.before_change(&account, &described, &body, by);
        }
        if let Some((resource, act)) = named.zip(passage.crossed.as_ref()) {
            act_at_cloud(&self.observer, &self.simulator, &resource, act);
        }
        let faulty = passage.cloud.is_some();
        let answer = if is_elsewhere {
            self.observer.sent_elsewhere(&account, &described, changes);
            poll_to_completion(send(self.elsewhere.router.clone(), request))
                .map_err(|_| CarrierError::Broken)
        } else {
            self.deliver(request, passage.cloud.clone())
        };
        self.observer.after_request(&described, changes, faulty, answer.as_ref().ok());
        if passage.dies_after {
            self.observer.note_fault("dies after a request", &described);
            self.time.die().await;
        }
        if passage.takes >= TIMEOUT {
            self.time.sleep(TIMEOUT).await;
            return Err(CarrierError::TimedOut);
        }
        self.time.sleep(passage.takes).await;
        if passage.lost {
            return Err(CarrierError::Broken);
        }
        answer
    }

    fn account_of(&self, token: &str) -> AccountName {
        let mut accounts = self.accounts.iter();
        let account = accounts.find(|(of, _)| of == token);
        account.map(|(_, name)| name.clone()).expect("each client has its account's token")
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the simulator does the rest")]
    fn passage(&self, info: RequestInfo<'_>, latency: Duration, at_hetzner: bool) -> Passage {
        let fault = self.faults.fault_for(info, self.time.now());
        let mut passage = Passage {
            cloud: None,
            takes: latency,
            dies_before: false,
            dies_after: false,
            lost: false,
            crossed: None,
        };
        let Some(fault) = fault else { return passage };
        if !matches!(fault, Fault::DiesBefore | Fault::DiesAfter) {
            self.observer.note_fault(fault.name(), "at the cloud");
        }
        match fault {
            Fault::DiesBefore => passage.dies_before = true,
            Fault::DiesAfter => passage.dies_after = true,
            Fault::AnswerLost => passage.lost = true,
            Fault::Slow { seconds } => passage.takes = Duration::from_secs(seconds),
            Fault::Shifted => self.shift(at_hetzner),
            Fault::Crossed(act) => passage.crossed = Some(act),
            other => passage.cloud = Some(misbehavior(&other, at_hetzner)),
        }
        passage
    }

    /// Creates the machine that comes first in every list, as a person would, or deletes it.
    fn shift(&self, at_hetzner: bool) {
        let (account, id, table) = if at_hetzner {
            ("hz-eu", ResourceId::Server(ServerId(0)), "servers")
        } else {
            ("do-main", ResourceId::Droplet(DropletId(0)), "droplets")
        };
        let account = account.parse().expect("an account's name");
        let first = ResourceRef { account, id };
        self.observer.person_acted(&first, &Act::Delete);
        if self.simulator.person(&first, Act::Delete).is_err() {
            let toml = format!("[[{table}]]\nid = 0\nname = \"first\"\n");
            self.simulator.create(&toml).ok();
        }
        self.observer.changed();
    }

    /// Delivers a request to the simulator, byte by byte, and returns its response.
    fn deliver(&self, request: http::Request<Bytes>, fault: Option<Misbehavior>) -> CarrierResult {
        if let Some(does) = fault {
            self.simulator.add_fault(cloud_simulator::Fault {
                matching: Matching::default(),
                times: 1,
                does,
            });
        }
        let answer = poll_to_completion(send(self.router.clone(), request));
        self.simulator.clear_faults();
        answer.map_err(|_| CarrierError::Broken)
    }
}

fn token_of(request: &http::Request<Bytes>) -> String {
    let token = request.headers().get(http::header::AUTHORIZATION);
    let token = token.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    token.unwrap_or_default().to_owned()
}

fn is_later_page(request: &http::Request<Bytes>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    let mut pages = query.split('&').filter_map(|pair| pair.strip_prefix("page="));
    pages.next().is_some_and(|page| page != "1")
}

/// Sends a request over a pipe: an HTTP client at one end, the simulator's server at the other.
pub(crate) async fn send(
    router: Router,
    request: http::Request<Bytes>,
) -> Result<http::Response<Bytes>, hyper::Error> {
    let (near, far) = tokio::io::duplex(PIPE);
    let service = TowerToHyperService::new(router);
    let server =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(far), service);
    let client = async move {
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(near)).await?;
        let request = in_origin_form(request).map(Full::new);
        let exchange = async move {
            let (head, body) = sender.send_request(request).await?.into_parts();
            let body = body.collect().await?.to_bytes();
            Ok::<_, hyper::Error>(http::Response::from_parts(head, body))
        };
        let (answer, _closed) = futures_util::future::join(exchange, connection).await;
        answer
    };
    let (answer, _closed) = futures_util::future::join(client, server).await;
    answer
}

/// Converts a request to its form on a connection: path and query, and the host in a header.
fn in_origin_form(request: http::Request<Bytes>) -> http::Request<Bytes> {
    let (mut head, body) = request.into_parts();
    let host = head.uri.authority().map(ToString::to_string);
    let host = host.and_then(|host| host.parse().ok());
    if let Some(host) = host {
        head.headers.insert(http::header::HOST, host);
    }
    if let Some(path) = head.uri.path_and_query() {
        head.uri = path.clone().into();
    }
    http::Request::from_parts(head, body)
}

/// Polls a future to completion that waits for nothing but itself.
pub(crate) fn poll_to_completion<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..10_000 {
        if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
            return done;
        }
    }
    unreachable!("both ends of a pipe in memory waited for each other")
}

/// The error body that `DigitalOcean` sends for a Droplet or database with a pending event.
const PENDING: &str =
    r#"{"id": "unprocessable_entity", "message": "Droplet already has a pending event."}"#;

fn misbehavior(fault: &Fault, at_hetzner: bool) -> Misbehavior {
    let answer = |status, body: Option<&str>, after_effect| Misbehavior::Answer {
        status,
        body: body.map(str::to_owned),
        headers: std::collections::BTreeMap::new(),
        after_effect,
    };
    match fault {
        Fault::Throttled { retry_after } => Misbehavior::Answer {
            status: 429,
            body: None,
            headers: retry_after
                .map(|seconds| ("retry-after".to_owned(), seconds.to_string()))
                .into_iter()
                .collect(),
            after_effect: false,
        },
        Fault::Failed { after_effect } => answer(503, None, *after_effect),
        Fault::Truncated => Misbehavior::Truncate,
        Fault::Malformed { body } => answer(200, Some(body), false),
        Fault::Busy if at_hetzner => answer(423, None, false),
        Fault::Busy => answer(422, Some(PENDING), false),
        Fault::Refused => answer(422, None, false),
        Fault::Late { seconds } => Misbehavior::Late { by: SignedDuration::from_secs(*seconds) },
        Fault::Sluggish { seconds } => {
            Misbehavior::Slow { by: SignedDuration::from_secs(*seconds) }
        }
        Fault::TokenRefused => Misbehavior::Unauthorized,
        Fault::AnswerLost
        | Fault::RequestLost
        | Fault::DiesBefore
        | Fault::DiesAfter
        | Fault::Slow { .. }
        | Fault::Shifted
        | Fault::Crossed(_)
        | Fault::Conflict
        | Fault::Unprocessed
        | Fault::IndexLags
        | Fault::ConnectionRefused
        | Fault::Unreachable
        | Fault::NoGreeting
        | Fault::HostKeyChanged => Misbehavior::Drop { after_effect: false },
    }
}

/// Wraps the wire as the clients hold it.
pub(crate) fn shared(wire: Wire) -> Arc<dyn Carrier> {
    Arc::new(wire)
}

/// Lets a person act on a resource at its cloud.
pub(crate) fn act_at_cloud(
    observer: &Observer,
    simulator: &Simulator,
    resource: &ResourceRef,
    act: &Act,
) {
    observer.person_acts(resource, act);
    let (present, marks) = observer.present(resource);
    let done = simulator.person(&present, keeping(act, marks));
    if done.is_ok() {
        observer.person_acted(resource, act);
    }
    observer.changed();
    observer.note(Actor::Person, || format!("{act:?} {resource}: {done:?}"));
}

/// Adds `marks` to a retag: a person who relabels a machine keeps the labels that are not theirs.
fn keeping(act: &Act, marks: Vec<String>) -> Act {
    let Act::Retag { tags } = act else {
        return act.clone();
    };
    let tags = tags.iter().cloned().chain(marks).collect();
    Act::Retag { tags }
}
