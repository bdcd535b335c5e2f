//! The log of every request to a cloud and its outcome, without tokens.

use std::collections::VecDeque;

use domain::{AccountName, ResourceRef};
use jiff::Timestamp;
use serde::Serialize;

use crate::{answer::Answer, request::Request};

/// How much of the log is kept, in bytes, headers aside. The oldest entries are dropped first, so
/// that a long simulation does not grow.
const KEPT_BYTES: usize = 64 * 1024 * 1024;

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

/// The newest entries, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Log {
    entries: VecDeque<Entry>,
    /// How many older ones were dropped.
    dropped: u64,
    bytes: usize,
}

impl Log {
    pub(crate) fn next_sequence(&self) -> u64 {
        self.dropped + self.entries.len() as u64 + 1
    }

    pub(crate) fn add(&mut self, entry: Entry) {
        self.bytes += bytes(&entry);
        self.entries.push_back(entry);
        while self.bytes > KEPT_BYTES
            && let Some(oldest) = self.entries.pop_front()
        {
            self.bytes -= bytes(&oldest);
            self.dropped += 1;
        }
    }

    pub(crate) fn delivered(&mut self, sequence: u64) {
        let place = self.place_after(sequence).checked_sub(1);
        if let Some(entry) = place.and_then(|place| self.entries.get_mut(place)) {
            entry.delivered = true;
        }
    }

    /// The kept entries after the one with this number.
    pub(crate) fn after(&self, sequence: u64) -> impl Iterator<Item = &Entry> {
        self.entries.iter().skip(self.place_after(sequence))
    }

    fn place_after(&self, sequence: u64) -> usize {
        usize::try_from(sequence.saturating_sub(self.dropped)).unwrap_or(usize::MAX)
    }
}

fn bytes(entry: &Entry) -> usize {
    let answer = entry.answer.as_ref().map_or(0, |answer| answer.body.len());
    size_of::<Entry>() + entry.request.body.len() + answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_requests_are_kept_with_their_numbers() {
        let body = "x".repeat(KEPT_BYTES / 4);
        let mut log = Log::default();
        for sequence in 1..=10 {
            assert_eq!(log.next_sequence(), sequence);
            log.add(Entry {
                sequence,
                at: Timestamp::UNIX_EPOCH,
                account: None,
                resource: None,
                changed: false,
                faulty: false,
                delivered: false,
                request: Request {
                    method: "GET".to_owned(),
                    path: "/v1/servers".to_owned(),
                    query: String::new(),
                    content_type: None,
                    authorization: true,
                    body: String::new(),
                },
                answer: Some(Answer::text(200, body.clone())),
            });
        }
        log.delivered(9);
        log.delivered(1);
        let after = |sequence| {
            let kept = log.after(sequence);
            kept.map(|entry| (entry.sequence, entry.delivered)).collect::<Vec<_>>()
        };
        assert_eq!(after(0), [(8, false), (9, true), (10, false)]);
        assert_eq!(after(9), [(10, false)]);
        assert_eq!(after(10), []);
    }
}
