//! How requests reach the clouds, and commands their hosts: over the network, or whatever a
//! simulation puts in its place.

use std::{fmt, io, sync::Arc};

use bytes::Bytes;
use domain::ssh::Host;
use futures_util::future::BoxFuture;
use http::{HeaderMap, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::command_failure::Failure;

/// The longest body of a response that is read, in bytes.
pub(crate) const LONGEST_BODY: usize = 16 * 1024 * 1024;

/// Carries requests to the clouds. Clones share everything.
#[derive(Debug, Clone)]
pub struct Transport {
    /// Builds every request, regardless of what carries it.
    client: reqwest::Client,
    carrier: Option<Arc<dyn Carrier>>,
}

/// Carries requests and connections in place of the network.
pub trait Carrier: fmt::Debug + Send + Sync {
    /// Delivers a request to where its URL points, and returns the complete response, timeouts
    /// included.
    fn carry(&self, request: http::Request<Bytes>) -> BoxFuture<'_, CarrierResult>;

    /// Connects to a port of a host. A carrier that reaches no hosts refuses every connection.
    fn connect(&self, _host: &Host, _port: u16) -> BoxFuture<'_, io::Result<Stream>> {
        Box::pin(async { Err(io::ErrorKind::ConnectionRefused.into()) })
    }
}

/// A connection that a carrier made.
pub type Stream = Box<dyn Duplex>;

/// What a connection can do: it is read from and written to.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Duplex for S {}

/// The response, or why there is none.
pub type CarrierResult = Result<http::Response<Bytes>, CarrierError>;

/// Why there is no response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CarrierError {
    /// There was no connection: the request was certainly not sent.
    #[error("no connection")]
    NeverLeft,
    /// The connection broke; the request may have arrived.
    #[error("the connection broke")]
    Broken,
    /// The request timed out; it may have arrived, or may still arrive.
    #[error("the time was over")]
    TimedOut,
}

/// What went wrong in transit to a provider.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    #[error(transparent)]
    Http(#[from] reqwest::Error),
    /// Over HTTP, carried by something other than the network.
    #[error(transparent)]
    Carrier(#[from] CarrierError),
    #[error(transparent)]
    Ssh(#[from] Failure),
}

impl TransportError {
    /// Returns the same error without its URL, which the enclosing error names as the request.
    pub(crate) fn without_url(self) -> Self {
        match self {
            Self::Http(error) => Self::Http(error.without_url()),
            Self::Carrier(_) | Self::Ssh(_) => self,
        }
    }

    #[must_use]
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::Http(error) => error.is_timeout(),
            Self::Carrier(error) => *error == CarrierError::TimedOut,
            Self::Ssh(failure) => *failure == Failure::TimedOut,
        }
    }

    /// Reports whether the request was certainly not sent, so that it changed nothing.
    #[must_use]
    pub fn never_left(&self) -> bool {
        match self {
            Self::Http(error) => error.is_connect() || error.is_builder(),
            Self::Carrier(error) => *error == CarrierError::NeverLeft,
            Self::Ssh(failure) => !failure.may_have_run(),
        }
    }
}

/// Over the network.
impl From<reqwest::Client> for Transport {
    fn from(client: reqwest::Client) -> Self {
        Self { client, carrier: None }
    }
}

impl Transport {
    /// Creates a transport whose requests the client builds and `carrier` carries.
    #[must_use]
    pub fn with_carrier(client: reqwest::Client, carrier: Arc<dyn Carrier>) -> Self {
        Self { client, carrier: Some(carrier) }
    }

    /// What carries requests and connections. `None` if the network does.
    pub(crate) fn carrier(&self) -> Option<&Arc<dyn Carrier>> {
        self.carrier.as_ref()
    }

    /// The client that builds requests.
    pub(crate) fn client(&self) -> &reqwest::Client {
        &self.client
    }

    /// Sends a request. The response's status and headers are available before its body is read.
    pub(crate) async fn send(
        &self,
        request: reqwest::RequestBuilder,
    ) -> Result<Response, TransportError> {
        let request = request.build()?;
        let Some(carrier) = &self.carrier else {
            return Ok(Response::Network(self.client.execute(request).await?));
        };
        let request = http::Request::try_from(request)?;
        let whole = |body: reqwest::Body| body.as_bytes().map(Bytes::copy_from_slice);
        let request = request.map(|body| whole(body).unwrap_or_default());
        Ok(Response::Carrier(carrier.carry(request).await?))
    }
}

/// A response whose body may not have arrived yet.
pub(crate) enum Response {
    Network(reqwest::Response),
    Carrier(http::Response<Bytes>),
}

impl Response {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Network(response) => response.status(),
            Self::Carrier(response) => response.status(),
        }
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        match self {
            Self::Network(response) => response.headers(),
            Self::Carrier(response) => response.headers(),
        }
    }

    /// Reads the body. Returns `None` as soon as it is longer than [`LONGEST_BODY`].
    pub(crate) async fn body(self) -> Result<Option<Vec<u8>>, TransportError> {
        let mut response = match self {
            Self::Network(response) => response,
            Self::Carrier(response) => {
                let body = response.into_body();
                return Ok((body.len() <= LONGEST_BODY).then(|| body.into()));
            }
        };
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if body.len() + chunk.len() > LONGEST_BODY {
                return Ok(None);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Some(body))
    }
}
