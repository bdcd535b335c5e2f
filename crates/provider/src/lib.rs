//! The one provider crate: both clouds' APIs behind one client and one vocabulary, and machines
//! that are stopped and started over SSH.
//!
//! A client reads what a cloud says about its resources and sends one step at a time. It never
//! waits, never reads a clock and never retries a change: an error's variant says what the caller
//! does next, and the next tick is the retry. An accepted change proves nothing either; only a
//! later observation of the resource does.

mod api;
mod attachments;
mod client;
mod cloud;
mod command_failure;
mod database_plans;
mod digitalocean;
mod endpoint;
mod error;
mod hetzner;
mod hibernation_lookup;
mod http;
mod pacing;
mod pages;
mod redaction;
mod service;
mod shown;
pub mod ssh;
mod transport;

#[cfg(test)]
mod tests;

pub use attachments::{Attachments, Preflight};
pub use client::Client;
pub use cloud::MissingScope;
pub use database_plans::DatabasePlans;
pub use domain::{reason::Refusal, step::Accepted};
pub use endpoint::{Base, EndpointError, Endpoints, is_loopback, secret_address};
pub use error::{ChangeError, ProviderError};
pub use hibernation_lookup::{HibernationLookup, ListedSnapshots, Lists, OwnSnapshot};
pub use http::{HttpClientError, http_client};
pub use pacing::RateLimit;
pub use pages::{AT_ONCE, Listed, OnProgress, Reading, Unread};
pub use service::{UnsupportedService, unsupported_service};
pub use transport::{
    Carrier, CarrierError, CarrierResult, Duplex, Stream, Transport, TransportError,
};
