//! The log of every request to a cloud and its outcome, without tokens.

use std::collections::VecDeque;

use domain::{AccountName, ResourceRef};
use jiff::Timestamp;
use serde::Serialize;

use crate::{answer::Answer, request::Request};

/// How many bytes of response bodies are kept. The oldest bodies are dropped first; their entries
/// stay.
const KEPT_BYTES: usize = 128 * 1024 * 1024;

/// One logged request. Entries are in the order in which the clouds handled them.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    /// The entry's number, counted from 1.
    pub sequence: u64,
    /// The simulated time of the request.
    pub at: Timestamp,
    /// The account whose token the request carried; `None` if the token is unknown.
    pub account: Option<AccountName>,
    /// The resource that the path names.
    pub resource: Option<ResourceRef>,
    /// Whether the cloud accepted a change.
    pub changed: bool,
    /// Whether a fault applied: the response may then not be the cloud's own.
    pub faulty: bool,
    /// Whether the response was sent to the client.
    pub delivered: bool,
    /// What the client sent.
    pub request: Request,
    /// The response; `None` if the connection was closed instead.
    pub answer: Option<Answer>,
}

/// The entries, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Log {
    entries: Vec<Entry>,
    /// The indexes of the entries whose bodies are kept, with the sizes of the bodies in bytes.
    kept: VecDeque<(usize, usize)>,
    kept_bytes: usize,
}

impl Log {
    pub(crate) fn next_sequence(&self) -> u64 {
        self.entries.len() as u64 + 1
    }

    pub(crate) fn add(&mut self, entry: Entry) {
        let bytes = entry.answer.as_ref().map_or(0, |answer| answer.body.len());
        self.kept.push_back((self.entries.len(), bytes));
        self.kept_bytes += bytes;
        self.entries.push(entry);
        while self.kept_bytes > KEPT_BYTES
            && let Some((place, bytes)) = self.kept.pop_front()
        {
            self.kept_bytes -= bytes;
            if let Some(answer) = &mut self.entries[place].answer {
                answer.body = String::new();
                answer.forgotten = true;
            }
        }
    }

    pub(crate) fn delivered(&mut self, sequence: u64) {
        let place = usize::try_from(sequence - 1).unwrap_or(usize::MAX);
        if let Some(entry) = self.entries.get_mut(place) {
            entry.delivered = true;
        }
    }

    /// The entries after the one with this number.
    pub(crate) fn after(&self, sequence: u64) -> &[Entry] {
        let start = usize::try_from(sequence).unwrap_or(usize::MAX).min(self.entries.len());
        &self.entries[start..]
    }
}
