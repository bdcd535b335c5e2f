//! The rules, with no I/O: names, schedules, records and the decisions made about them.
//!
//! Nothing here is async, opens a connection or reads a clock. Every rule takes the instant to
//! judge as an argument, so that it can be tested at any instant.

pub mod activity;
pub mod configuration;
pub mod decision;
pub mod digest;
pub mod explanation;
pub mod hibernation;
pub mod history;
pub mod invocation;
pub mod joining;
pub mod left_behind;
pub mod machine;
pub mod membership;
pub mod money;
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
pub mod schedule;
#[cfg(feature = "schema")]
pub mod schema;
pub mod stop_method;
#[cfg(test)]
mod tests;
pub mod text;

pub use reference::{
    AccountName, ClusterId, DatabaseId, DropletId, MachineName, PoolId, ResourceId, ResourceKind,
    ResourceRef, ScheduleName, ServerId,
};
