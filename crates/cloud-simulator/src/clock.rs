//! Where the simulator's time comes from.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

/// Returns the current simulated time. Changes that take time are computed from it when something
/// is read or changed, so they need no waiting.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Advances the simulated time to an instant, for a delayed response. It never goes backwards.
pub type Pass = Arc<dyn Fn(Timestamp) + Send + Sync>;

/// A clock that stands still until it is moved. Clones share the same clock.
#[derive(Debug, Clone)]
pub struct HeldClock(Arc<Mutex<Timestamp>>);

/// The clock was asked to move backwards.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the clock is at {now} and cannot go back to {to}")]
pub struct BackwardsError {
    /// The clock's current time.
    pub now: Timestamp,
    /// The time it was asked to move to.
    pub to: Timestamp,
}

impl HeldClock {
    /// Creates a clock that stands at `now`.
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        Self(Arc::new(Mutex::new(now)))
    }

    /// The clock's current time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        *self.lock()
    }

    /// Moves the clock forward to `to`.
    pub fn move_to(&self, to: Timestamp) -> Result<(), BackwardsError> {
        let mut now = self.lock();
        if to < *now {
            return Err(BackwardsError { now: *now, to });
        }
        *now = to;
        Ok(())
    }

    /// The clock as a [`Now`] function.
    #[must_use]
    pub fn as_now(&self) -> Now {
        let clock = self.clone();
        Arc::new(move || clock.now())
    }

    pub(crate) fn as_pass(&self) -> Pass {
        let clock = self.clone();
        // An error means that another response has already moved it further.
        Arc::new(move |to| clock.move_to(to).unwrap_or_default())
    }

    fn lock(&self) -> MutexGuard<'_, Timestamp> {
        // A single value is never left half-written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_clock_moves_forward_only() {
        let clock = HeldClock::at("2026-11-23T07:00:00Z".parse().unwrap());
        let now = clock.as_now();
        clock.move_to("2026-11-23T07:00:01Z".parse().unwrap()).unwrap();
        assert_eq!(now().to_string(), "2026-11-23T07:00:01Z");
        clock.move_to("2026-11-23T07:00:00Z".parse().unwrap()).unwrap_err();
        assert_eq!(now().to_string(), "2026-11-23T07:00:01Z");
    }
}
