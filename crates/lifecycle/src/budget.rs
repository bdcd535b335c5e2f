//! How long one invocation may ask, whatever the answers take.

use environment::Clock;
use jiff::{SignedDuration, Timestamp};

/// From the beginning of an invocation until it asks a provider for nothing new. AWS ends
/// poll-status after 75 s, and a request may take 20 s.
const ASKING: SignedDuration = SignedDuration::from_secs(50);

/// From the beginning of an invocation until it leaves what is not written yet to the next one.
const WRITING: SignedDuration = SignedDuration::from_secs(60);

/// An invocation's time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget<'a> {
    clock: &'a Clock,
    began: Timestamp,
    until: Timestamp,
}

impl<'a> Budget<'a> {
    /// The time of an invocation that begins now.
    pub(crate) fn begin(clock: &'a Clock) -> Self {
        let began = clock.now();
        Self {
            clock,
            began,
            until: began + ASKING,
        }
    }

    /// A part of the time, for what must leave some to others.
    pub(crate) fn for_at_most(self, part: SignedDuration) -> Self {
        let until = self.until.min(self.clock.now() + part);
        Self { until, ..self }
    }

    pub(crate) fn now(self) -> Timestamp {
        self.clock.now()
    }

    /// How long the invocation has gone on.
    pub(crate) fn elapsed(self) -> SignedDuration {
        self.now().duration_since(self.began)
    }

    /// From when on nothing is asked for any more.
    pub(crate) fn until(self) -> Timestamp {
        self.until
    }

    /// How long something may still be asked for.
    pub(crate) fn left(self) -> SignedDuration {
        self.until.duration_since(self.now())
    }

    /// Whether nothing may be asked for any more.
    pub(crate) fn is_over(self) -> bool {
        self.now() >= self.until
    }

    /// Whether even what needs no provider has to wait for the next invocation.
    pub(crate) fn is_over_for_writing(self) -> bool {
        self.elapsed() >= WRITING
    }
}
