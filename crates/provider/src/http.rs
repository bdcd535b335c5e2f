//! The one pipeline that every request takes: rate check, token, sending, rate limit headers, the
//! provider's errors, parsing the response. The order matters: a response's headers count even when
//! its body is an error, and the body of an unsuccessful response is never parsed as a result.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use domain::text::{LONGEST_MESSAGE, one_line};
use jiff::Timestamp;
use reqwest::{
    Method, StatusCode, Url,
    header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER},
    redirect, retry,
};
use secrecy::{ExposeSecret, SecretString};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, IgnoredAny},
};

use crate::{
    Refusal,
    endpoint::Base,
    error::ProviderError,
    pacing::{self, Pacing, RateLimit},
    redaction::redact,
    shown,
    transport::{LONGEST_BODY, Transport, TransportError},
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A lost request can no longer arrive after this plus the network's own delays. The time for which
/// a change's outcome stays unknown is derived from it.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// The user data of a recreated machine: at its first boot it keeps the host keys and the name that
/// are on its disk (CLOUDINIT).
pub(crate) const USER_DATA: &str =
    "#cloud-config\nssh_deletekeys: false\npreserve_hostname: true\n";

/// Why an HTTP client could not be built.
#[derive(Debug, thiserror::Error)]
pub enum HttpClientError {
    /// The TLS library refused its own defaults.
    #[error("TLS cannot be set up")]
    Tls(#[from] rustls::Error),
    /// The HTTP library refused its settings.
    #[error("HTTP client cannot be built")]
    Build(#[from] reqwest::Error),
}

/// Builds the HTTP client for all accounts: built-in root certificates; no redirects, proxies or
/// retries.
pub fn http_client() -> Result<reqwest::Client, HttpClientError> {
    Ok(builder()?.build()?)
}

pub(crate) fn builder() -> Result<reqwest::ClientBuilder, HttpClientError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .user_agent("offhours")
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .no_proxy()
        .referer(false)
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(REQUEST_TIMEOUT)
        .pool_idle_timeout(IDLE_TIMEOUT))
}

#[derive(Debug, Clone)]
pub(crate) struct Request {
    method: Method,
    /// Path from the root of the API, including the query.
    path: String,
    /// JSON text; `None` sends no body and no content type.
    body: Option<String>,
}

impl Request {
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path, None)
    }

    /// A POST without a body.
    pub(crate) fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path, None)
    }

    pub(crate) fn post_json(path: impl Into<String>, body: &impl Serialize) -> Self {
        Self::new(Method::POST, path, Some(json(body)))
    }

    pub(crate) fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path, None)
    }

    pub(crate) fn put(path: impl Into<String>, body: &impl Serialize) -> Self {
        Self::new(Method::PUT, path, Some(json(body)))
    }

    fn new(method: Method, path: impl Into<String>, body: Option<String>) -> Self {
        Self { method, path: path.into(), body }
    }

    /// Returns it with its body, in one line for people.
    pub(crate) fn in_full(&self) -> String {
        let body = self.body.as_deref().map(shown::in_one_line);
        match body.filter(|body| !body.is_empty()) {
            Some(body) => format!("{self} {body}"),
            None => self.to_string(),
        }
    }

    pub(crate) fn not_understood(&self, reason: impl Into<String>) -> ProviderError {
        ProviderError::NotUnderstood { request: self.to_string(), reason: reason.into() }
    }

    /// Rejects a response about a resource other than the requested one: a mix-up in transit must
    /// not pass for this resource's state.
    pub(crate) fn about<T: PartialEq>(&self, asked: &T, answered: &T) -> Result<(), ProviderError> {
        if asked == answered {
            Ok(())
        } else {
            Err(self.not_understood("another resource than the one asked for"))
        }
    }

    fn url(&self, base: &Base) -> Url {
        let (path, query) = match self.path.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (self.path.as_str(), None),
        };
        let mut url = Url::clone(base);
        url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
        url.set_query(query);
        url
    }
}

fn json(body: &impl Serialize) -> String {
    serde_json::to_string(body).expect("our own bodies have text keys alone")
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

/// A complete response, its status not yet judged.
#[derive(Debug)]
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

/// What a provider's error body says, whatever its shape.
#[derive(Debug, Default)]
pub(crate) struct ErrorWords {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) request_id: Option<String>,
}

/// How a cloud is reached.
pub(crate) struct Login {
    pub(crate) transport: Transport,
    pub(crate) base: Base,
    pub(crate) token: SecretString,
}

/// A connection to one account. Clones are cheap.
#[derive(Debug, Clone)]
pub(crate) struct Http {
    account: Arc<Account>,
    /// The number of requests sent over this connection and its clones.
    requests: Arc<AtomicU64>,
    /// The number of requests from which on this connection sends none.
    most: u64,
    /// The wait that a 429 asked for, if it asked for one. From then on this connection and its
    /// clones send nothing.
    held: Arc<OnceLock<Option<Duration>>>,
}

/// An account's address, its token and its share of the allowance.
#[derive(Debug)]
struct Account {
    transport: Transport,
    base: Base,
    token: SecretString,
    /// Parses the provider's error body; `None` if it is not one.
    read_error: fn(&[u8]) -> Option<ErrorWords>,
    pacing: Mutex<Pacing>,
    /// The `Date` of the latest response that had one.
    date: Mutex<Option<Timestamp>>,
}

impl Account {
    fn redact(&self, text: &mut [u8]) {
        redact(text, self.token.expose_secret().as_bytes());
    }

    /// Makes a provider's text safe to keep and to show.
    fn clean(&self, words: &str) -> String {
        // Headers are not redacted yet, nor is what was escaped in the body.
        let mut words = words.as_bytes().to_vec();
        self.redact(&mut words);
        one_line(&String::from_utf8_lossy(&words), LONGEST_MESSAGE).into_owned()
    }
}

impl Http {
    pub(crate) fn new(login: Login, read_error: fn(&[u8]) -> Option<ErrorWords>) -> Self {
        let Login { transport, base, token } = login;
        let account = Account {
            transport,
            base,
            token,
            read_error,
            pacing: Mutex::default(),
            date: Mutex::default(),
        };
        Self {
            account: Arc::new(account),
            requests: Arc::default(),
            most: u64::MAX,
            held: Arc::default(),
        }
    }

    /// Returns the same connection with a request counter of its own.
    pub(crate) fn counting(&self) -> Self {
        Self { requests: Arc::default(), ..self.clone() }
    }

    /// Returns the same connection, which no 429 holds back yet.
    pub(crate) fn released(&self) -> Self {
        Self { held: Arc::default(), ..self.clone() }
    }

    /// Returns the same connection, which sends no more than this many requests from now on.
    pub(crate) fn sending_at_most(&self, requests: u64) -> Self {
        Self { most: self.requests().saturating_add(requests), ..self.clone() }
    }

    pub(crate) fn rate(&self) -> Option<RateLimit> {
        self.pacing().latest()
    }

    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Counts one more request, unless this connection may send none.
    fn count(&self) -> bool {
        let next = |sent: u64| (sent < self.most).then(|| sent + 1);
        self.requests.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }

    pub(crate) fn date(&self) -> Option<Timestamp> {
        *self.account.date.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a read, which is retried once, immediately, if an established connection broke.
    pub(crate) async fn read<T: DeserializeOwned>(
        &self,
        request: &Request,
    ) -> Result<T, ProviderError> {
        let answer = match self.exchange(request).await {
            Err(error) if error.is_broken_connection() => self.exchange(request).await?,
            first => first?,
        };
        parse(request, &self.judge(request, answer)?)
    }

    /// Reports whether something is there: only a 404 says that it is not.
    pub(crate) async fn exists(&self, path: String) -> Result<bool, ProviderError> {
        let read = self.read::<IgnoredAny>(&Request::get(path)).await;
        Ok(ProviderError::found(read)?.is_some())
    }

    /// Drops the ids of what is not there, in a collection of the API.
    pub(crate) async fn retain_existing(
        &self,
        collection: &str,
        ids: &mut BTreeSet<String>,
    ) -> Result<(), ProviderError> {
        for id in ids.clone() {
            if !self.exists(format!("{collection}/{id}")).await? {
                ids.remove(&id);
            }
        }
        Ok(())
    }

    /// Sends a change, once, if there is a request for it, and reads the response that accepted it.
    pub(crate) async fn send<T>(
        &self,
        request: Result<Request, ProviderError>,
        read: impl FnOnce(&Request, &[u8]) -> Result<T, ProviderError>,
    ) -> Result<T, ProviderError> {
        let request = request?;
        let answer = self.exchange(&request).await?;
        read(&request, &self.judge(&request, answer)?)
    }

    async fn exchange(&self, request: &Request) -> Result<Answer, ProviderError> {
        if let Some(&retry_after) = self.held.get() {
            return Err(ProviderError::RateLimited { retry_after });
        }
        if !self.pacing().admit() {
            return Err(ProviderError::RateLimited { retry_after: None });
        }
        let _in_flight = InFlightGuard(self);
        if !self.count() {
            return Err(ProviderError::RateLimited { retry_after: None });
        }
        let lost = |source: TransportError| ProviderError::Transport {
            request: request.to_string(),
            source: source.without_url(),
        };
        let account = &*self.account;
        let mut outgoing = account
            .transport
            .client()
            .request(request.method.clone(), request.url(&account.base))
            .bearer_auth(account.token.expose_secret());
        if let Some(body) = &request.body {
            outgoing = outgoing.header(CONTENT_TYPE, "application/json").body(body.clone());
        }
        let response = account.transport.send(outgoing).await.map_err(lost)?;
        let (status, headers) = (response.status(), response.headers().clone());
        match status {
            // The headers for a refused token are not about the account's allowance.
            StatusCode::UNAUTHORIZED => {}
            // These may be about the limit per minute, not about what is left of the hour.
            StatusCode::TOO_MANY_REQUESTS => {
                self.held.get_or_init(|| retry_after(&headers));
            }
            _ => self.pacing().learn(&headers),
        }
        if let Some(date) = pacing::date(&headers) {
            *account.date.lock().unwrap_or_else(PoisonError::into_inner) = Some(date);
        }
        let body = response.body().await.map_err(lost)?;
        let mut body = body.ok_or_else(|| {
            request.not_understood(format!("longer than {} MiB", LONGEST_BODY >> 20))
        })?;
        account.redact(&mut body);
        Ok(Answer { status, headers, body })
    }

    /// Returns the body of a successful response, or the error that any other response stands for.
    fn judge(&self, request: &Request, answer: Answer) -> Result<Vec<u8>, ProviderError> {
        if answer.status.is_success() {
            return Ok(answer.body);
        }
        let status = answer.status.as_u16();
        let words = (self.account.read_error)(&answer.body);
        let is_worded = words.is_some();
        let words = words.unwrap_or_default();
        let disposition = Disposition::of(status, is_worded, &words.code, &words.message);
        let clean = |words: &str| self.account.clean(words);
        let request_id = words.request_id.or_else(|| request_id(&answer.headers));
        let refusal = Refusal {
            status: Some(status),
            code: clean(&words.code),
            message: clean(&words.message),
            request_id: request_id.as_deref().map(clean),
        };
        Err(match disposition {
            Disposition::RateLimited => {
                ProviderError::RateLimited { retry_after: retry_after(&answer.headers) }
            }
            Disposition::TokenRefused => ProviderError::TokenRefused(refusal),
            Disposition::NotPermitted => ProviderError::NotPermitted { needs: None, refusal },
            Disposition::NotFound => ProviderError::NotFound(refusal),
            Disposition::Busy => ProviderError::Busy(refusal),
            Disposition::Refused => ProviderError::Refused(refusal),
            Disposition::Unavailable => ProviderError::Unavailable(refusal),
            Disposition::NotUnderstood => {
                request.not_understood(format!("status {status} without the provider's own words"))
            }
        })
    }

    fn pacing(&self) -> std::sync::MutexGuard<'_, Pacing> {
        self.account.pacing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request in flight. It has ended when this is dropped, abandoned or not.
struct InFlightGuard<'a>(&'a Http);

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        self.0.pacing().ended();
    }
}

/// What an unsuccessful response means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Disposition {
    RateLimited,
    TokenRefused,
    NotPermitted,
    NotFound,
    Busy,
    Refused,
    Unavailable,
    NotUnderstood,
}

/// What a response is recognized by.
enum Match {
    Status(u16),
    Code(&'static str),
    /// Part of the message, in lower case.
    Message(&'static str),
}

/// 4xx responses in the provider's own words. The first matching row decides; none means refused.
///
/// Statuses and codes: DOSPEC, HZSPEC2, HGO. Busy means certainly not accepted now, but possibly
/// later. An action that finds the machine already in its target state is busy too, not refused:
/// the next observation sees that state and settles it.
const DISPOSITIONS: &[(Match, Disposition)] = &[
    (Match::Code("rate_limit_exceeded"), Disposition::RateLimited),
    (Match::Code("too_many_requests"), Disposition::RateLimited),
    (Match::Code("token_readonly"), Disposition::NotPermitted),
    (Match::Code("maintenance"), Disposition::Busy),
    (Match::Code("resource_limit_exceeded"), Disposition::Refused),
    (Match::Status(403), Disposition::NotPermitted),
    (Match::Status(404), Disposition::NotFound),
    (Match::Code("protected"), Disposition::Refused),
    // Only the provider's support unlocks it (HGO); "locked" is another action's, and brief.
    (Match::Code("resource_locked"), Disposition::Refused),
    (Match::Code("uniqueness_error"), Disposition::Refused),
    // Addresses are released some seconds after their server is gone (HTF).
    (Match::Code("ip_not_available"), Disposition::Busy),
    (Match::Code("no_subnet_available"), Disposition::Busy),
    (Match::Code("primary_ip_assigned"), Disposition::Busy),
    (Match::Code("primary_ip_already_assigned"), Disposition::Busy),
    (Match::Code("must_be_unassigned"), Disposition::Busy),
    (Match::Status(423), Disposition::Busy),
    (Match::Code("locked"), Disposition::Busy),
    (Match::Status(409), Disposition::Busy),
    (Match::Code("conflict"), Disposition::Busy),
    // No capacity for a type: a person may have to choose another one.
    (Match::Code("resource_unavailable"), Disposition::Refused),
    (Match::Status(412), Disposition::Busy),
    // The backend failed: the change may have begun.
    (Match::Status(408), Disposition::Unavailable),
    (Match::Code("service_error"), Disposition::Unavailable),
    // DigitalOcean has one code for every 422; its messages (TFDO, issues) are hints.
    (Match::Message("pending event"), Disposition::Busy),
    (Match::Message("blocking events"), Disposition::Busy),
    (Match::Message("already powered"), Disposition::Busy),
    (Match::Message("currently powered off"), Disposition::Busy),
    (Match::Message("currently on"), Disposition::Busy),
    (Match::Message("being resized"), Disposition::Busy),
    (Match::Message("currently resizing"), Disposition::Busy),
    (Match::Message("already resizing"), Disposition::Busy),
    (Match::Message("resize in progress"), Disposition::Busy),
    (Match::Message("already in progress"), Disposition::Busy),
    (Match::Message("is not online"), Disposition::Busy),
    (Match::Message("must be online"), Disposition::Busy),
];

impl Disposition {
    fn of(status: u16, is_worded: bool, code: &str, message: &str) -> Self {
        match status {
            401 => return Self::TokenRefused,
            429 => return Self::RateLimited,
            500.. => return Self::Unavailable,
            // A gateway's page is not a refusal, and a 404 from a wrong address does not mean that
            // a resource is gone.
            400..=499 if is_worded => {}
            _ => return Self::NotUnderstood,
        }
        let message = message.to_lowercase();
        DISPOSITIONS
            .iter()
            .find(|(expected, _)| match *expected {
                Match::Status(of_row) => of_row == status,
                Match::Code(of_row) => of_row == code,
                Match::Message(part) => message.contains(part),
            })
            .map_or(Self::Refused, |(_, disposition)| *disposition)
    }
}

/// Parses JSON. The error says where parsing failed, and reveals nothing of the content.
pub(crate) fn parse<T: DeserializeOwned>(
    request: &Request,
    body: &[u8],
) -> Result<T, ProviderError> {
    serde_json::from_slice(body).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let what = match error.classify() {
            serde_json::error::Category::Data => "unexpected content",
            serde_json::error::Category::Eof => "cut off",
            serde_json::error::Category::Io | serde_json::error::Category::Syntax => "not JSON",
        };
        request.not_understood(format!("{what} at line {line} column {column}"))
    })
}

/// Reads `null` as empty, for lists that a provider may write as `null`.
pub(crate) fn null_is_empty<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn request_id(headers: &HeaderMap) -> Option<String> {
    ["x-request-id", "x-correlation-id"]
        .into_iter()
        .find_map(|name| Some(headers.get(name)?.to_str().ok()?.to_owned()))
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse();
    seconds.ok().map(Duration::from_secs)
}
