//! Who writes a record, and what a write permits.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The revision of a record. Incremented by every write; each write names the revision it replaces.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Revision(pub u64);

/// One writer: one run of one function. It identifies the holder of a permit.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Writer(pub String);

impl Writer {
    /// The separator between the invocation and the run.
    const RUN: char = '#';

    /// Creates the writer for a run of an invocation. AWS may deliver an invocation twice, and both
    /// runs may be at work at the same instant: only `run`, which is unique, tells them apart.
    #[must_use]
    pub fn of(invocation: &str, run: u64) -> Self {
        Self(format!("{invocation}{}{run:x}", Self::RUN))
    }

    /// Returns the invocation. The same invocation delivered twice is one command.
    #[must_use]
    pub fn invocation(&self) -> &str {
        let run = self.0.rsplit_once(Self::RUN);
        run.map_or(&self.0, |(invocation, _)| invocation)
    }
}

/// Permission to send one request, given by the write just before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permit {
    pub until: Timestamp,
    pub writer: Writer,
}
