//! Every request to a cloud, and its outcome. No tokens.

use std::collections::VecDeque;

use domain::{AccountName, ResourceRef};
use jiff::Timestamp;
use serde::Serialize;

use crate::{answer::Answer, request::Request};

/// How many bytes of answers' bodies are kept. The oldest are dropped first; their entries stay.
const KEPT_BYTES: usize = 128 * 1024 * 1024;

/// One request, in the order in which the clouds took them.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    /// Its number, from 1.
    pub sequence: u64,
    /// The simulated instant.
    pub at: Timestamp,
    /// The account whose token it carried; none if the token is unknown.
    pub account: Option<AccountName>,
    /// The resource that the path names.
    pub resource: Option<ResourceRef>,
    /// Whether the cloud accepted a change.
    pub changed: bool,
    /// Whether a fault applied: then the answer is not the cloud's own.
    pub faulty: bool,
    /// Whether the answer left for the client.
    pub delivered: bool,
    /// What the client sent.
    pub request: Request,
    /// What the cloud answered; none where the connection was closed instead.
    pub answer: Option<Answer>,
}

/// The entries, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Log {
    entries: Vec<Entry>,
    /// The places of the entries whose bodies are kept, with the bodies' sizes.
    kept: VecDeque<(usize, usize)>,
    kept_bytes: usize,
}

impl Log {
    /// The number of the next entry.
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

    /// The entries after a number.
    pub(crate) fn after(&self, sequence: u64) -> &[Entry] {
        let start = usize::try_from(sequence)
            .unwrap_or(usize::MAX)
            .min(self.entries.len());
        &self.entries[start..]
    }
}
