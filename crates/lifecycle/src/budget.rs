//! How long one invocation may send requests, however long the answers take.

use environment::Clock;
use jiff::{SignedDuration, Timestamp};

/// From the start of an invocation until it sends providers no new requests. AWS ends poll-status
/// after 75 s, and a request may take 20 s.
const ASKING: SignedDuration = SignedDuration::from_secs(50);

/// From the start of an invocation until it leaves pending writes to the next one.
const WRITING: SignedDuration = SignedDuration::from_secs(60);

/// The time budget of one invocation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget<'a> {
    clock: &'a Clock,
    began: Timestamp,
    until: Timestamp,
}

impl<'a> Budget<'a> {
    /// Starts the budget of an invocation that begins now.
    pub(crate) fn begin(clock: &'a Clock) -> Self {
        let began = clock.now();
        Self { clock, began, until: began + ASKING }
    }

    /// Returns a part of the budget, so that some is left for other work.
    pub(crate) fn for_at_most(self, part: SignedDuration) -> Self {
        let until = self.until.min(self.clock.now() + part);
        Self { until, ..self }
    }

    pub(crate) fn now(self) -> Timestamp {
        self.clock.now()
    }

    /// Returns how long the invocation has been running.
    pub(crate) fn elapsed(self) -> SignedDuration {
        self.now().duration_since(self.began)
    }

    /// Returns when the invocation stops sending requests.
    pub(crate) fn until(self) -> Timestamp {
        self.until
    }

    /// Returns how much longer requests may be sent.
    pub(crate) fn left(self) -> SignedDuration {
        self.until.duration_since(self.now())
    }

    /// Reports whether no more requests may be sent: the time is over, or the process is about to
    /// end.
    pub(crate) fn is_over(self) -> bool {
        self.now() >= self.until || self.clock.is_ending()
    }

    /// Reports whether even work that needs no provider has to wait for the next invocation.
    pub(crate) fn is_over_for_writing(self) -> bool {
        self.elapsed() >= WRITING
    }
}
