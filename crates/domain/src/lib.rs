//! The rules, with no I/O: names, schedules, records and the decisions made about them.
//!
//! Nothing here is async, opens a connection or reads a clock. Every rule takes the instant to
//! judge as an argument, so that it can be tested at any instant.

pub mod account;
pub mod activity;
pub mod configuration;
pub mod decision;
pub mod digest;
pub mod edge;
pub mod event_type;
pub mod explanation;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
pub mod hibernation;
pub mod history;
pub mod invocation;
pub mod joining;
pub mod left_behind;
pub mod left_running;
pub mod look;
mod measure;
pub mod membership;
pub mod metric;
pub mod money;
pub mod notice;
pub mod order;
pub mod overdue;
pub mod pacing;
pub mod plan;
pub mod prices;
pub mod provider;
pub mod reason;
pub mod record;
pub mod reference;
pub mod renaming;
pub mod resource;
mod saving;
pub mod schedule;
#[cfg(feature = "schema")]
pub mod schema;
pub mod ssh;
pub mod step;
pub mod stop_method;
pub mod stored;
mod tags;
#[cfg(test)]
mod tests;
pub mod text;
pub mod timing;
pub mod token;
pub mod until;
pub mod writer;

pub use reference::{
    AccountName, ClusterId, DatabaseId, DropletId, Family, GroupName, MachineName, PoolId,
    ResourceId, ResourceKind, ResourceRef, ScheduleName, ServerId, TargetName,
};
