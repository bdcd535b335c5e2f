//! The computations behind what the command and the page show: what each resource is doing and needs,
//! what a configuration leads to, whether rate limits carry that, how long resources were stopped,
//! and what stopping saves. Pure, with no I/O and no async, so that its tests take seconds.

use std::fmt;

use domain::{ResourceRef, record::Record};
use schemars::JsonSchema;
use serde::Serialize;

pub mod activity;
pub mod answer;
pub mod consequences;
pub mod csv;
pub mod hibernated;
pub mod history;
pub mod load;
pub mod money;
pub mod nearest;
pub mod past;
pub mod pausing;
pub mod problems;
pub mod resource;
#[cfg(test)]
mod scene;
pub mod state;
pub mod strip;
pub mod time;
pub mod unsent;

/// `1 problem`, `2 problems`.
#[must_use]
pub fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// The parts in a line, with a separator between them.
pub fn joined(parts: impl IntoIterator<Item: ToString>, separator: &str) -> String {
    let parts: Vec<_> = parts.into_iter().map(|part| part.to_string()).collect();
    parts.join(separator)
}

/// A resource and its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Named {
    /// The resource's reference, `ACCOUNT/KIND/ID`.
    pub resource: ResourceRef,
    /// The resource's name at the provider.
    pub name: String,
}

impl From<&Record> for Named {
    fn from(record: &Record) -> Self {
        Self { resource: record.reference.clone(), name: record.name.clone() }
    }
}

/// `web-1 (do-main/droplet/1)`
impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.resource)
    }
}
