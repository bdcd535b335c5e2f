//! The store on a real DynamoDB engine in this process, over its protocol and the real client.

#![expect(
    clippy::unwrap_used,
    reason = "the exception for tests does not reach their helper functions"
)]

mod accounts;
mod activity;
mod backup;
mod configuration;
mod digests;
mod due;
mod fixtures;
mod forgetting;
mod formats;
mod history;
mod known;
mod overrides;
mod reading;
mod renaming;
mod requests;
mod saving;
mod stored_form;
mod world;
