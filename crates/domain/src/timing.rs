//! The durations on which the protocol of stops and starts rests.

use jiff::SignedDuration;

use crate::{Family, ResourceKind};

/// How long a provider's response may support a write, counted from the instant of its request; and
/// how long after the write that permits it a request may be sent.
pub const LOOK_AGE: SignedDuration = SignedDuration::from_secs(30);

/// How long a permit is valid: send window, request timeout, and the time in which a lost request
/// may still arrive.
pub const PERMIT: SignedDuration = SignedDuration::from_secs(120);

/// From "shutdown accepted" to the forced power-off: the 60 s that a guest has, and 5 s of clock
/// skew.
pub const GRACE: SignedDuration = SignedDuration::from_secs(65);

/// How far apart the clocks of two functions may be.
pub const SKEW: SignedDuration = SignedDuration::from_secs(5);

/// How far apart a function's clock and a person's may be: the store's clock has whole seconds.
pub const CLOCKS_DIFFER: SignedDuration = SignedDuration::from_secs(SKEW.as_secs() + 1);

/// How often each account's resources are listed; also the longest time for which a record can
/// stay out of the index by mistake.
pub const INVENTORY_INTERVAL: SignedDuration = SignedDuration::from_mins(5);

/// Nothing is stopped in an account whose resources were last listed longer ago than this.
pub const OBSERVATION_AGE: SignedDuration = SignedDuration::from_mins(15);

/// The time from a claim to the first observation of its effect.
pub const FIRST_LOOK: SignedDuration = SignedDuration::from_secs(5);

/// Returns how long an accepted request may take to show its effect. After that, it never will.
#[must_use]
pub fn effect_timeout(kind: ResourceKind) -> SignedDuration {
    SignedDuration::from_mins(match kind.family() {
        Family::CloudMachine | Family::OwnMachine => 10,
        Family::NodePool => 15,
        Family::Database => 30,
    })
}
