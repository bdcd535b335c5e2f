//! The clients against exact, ordered lists of requests and answers, over real HTTP.

#![expect(
    clippy::needless_pass_by_value,
    reason = "builders of JSON take what they put in, so that tables read without `&`"
)]

mod asking;
mod digitalocean;
mod hetzner;
mod hibernation;
mod pipeline;
mod plans;
mod script;

use domain::{ResourceId, ResourceKind};
use jiff::Timestamp;
use serde_json::{Value, json};
use testing::everything;

use crate::{ChangeError, Client, Listed, ProviderError, Reading};

/// Lists all resources of these kinds, without a deadline.
async fn list(client: &Client, kinds: &[ResourceKind]) -> Result<Listed, ProviderError> {
    let reading = Reading { now: &|| Timestamp::UNIX_EPOCH, until: None, read: &|_| () };
    client.list(kinds, reading).await
}

fn ids(listed: &Listed) -> Vec<ResourceId> {
    let looks = listed.looks.iter();
    looks.map(|look| look.resource.id.clone()).collect()
}

fn do_error(id: &str, message: &str) -> Value {
    json!({"id": id, "message": message, "request_id": "4d9d8375"})
}

fn hz_error(code: &str, message: &str) -> Value {
    json!({"error": {"code": code, "message": message, "details": null}})
}

/// The variant's name, for tables.
fn kind(error: &ProviderError) -> &'static str {
    match error {
        ProviderError::RateLimited { .. } => "rate limited",
        ProviderError::TokenRefused(_) => "token refused",
        ProviderError::NotPermitted { .. } => "not permitted",
        ProviderError::NotFound(_) => "not found",
        ProviderError::Busy(_) => "busy",
        ProviderError::Refused(_) => "refused",
        ProviderError::Unavailable(_) => "unavailable",
        ProviderError::NotUnderstood { .. } => "not understood",
        ProviderError::Transport { .. } => "transport",
        ProviderError::OutOfTime { .. } => "out of time",
        ProviderError::Foreign { .. } => "foreign",
    }
}

fn change_kind(error: &ChangeError) -> &'static str {
    match error {
        ChangeError::Refused(_) => "refused",
        ChangeError::Busy(_) => "busy",
        ChangeError::NotAccepted(_) => "not accepted",
        ChangeError::Unknown(_) => "unknown",
    }
}
