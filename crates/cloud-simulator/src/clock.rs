//! Where the simulator's time comes from.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

/// Returns the simulated instant. Every change that takes time is computed from it when something
/// is read or changed, so nothing in here waits.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Lets simulated time pass until an instant, for a delayed answer. Never backwards.
pub type Pass = Arc<dyn Fn(Timestamp) + Send + Sync>;

/// A clock that stands still until it is moved. Cloning gives the same clock.
#[derive(Debug, Clone)]
pub struct HeldClock(Arc<Mutex<Timestamp>>);

/// The clock was asked to go back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the clock is at {now} and cannot go back to {to}")]
pub struct BackwardsError {
    /// Where the clock stands.
    pub now: Timestamp,
    /// Where it was asked to go.
    pub to: Timestamp,
}

impl HeldClock {
    /// A clock that stands at `now`.
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        Self(Arc::new(Mutex::new(now)))
    }

    /// The instant at which the clock stands.
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

    /// The clock as the simulator takes it.
    #[must_use]
    pub fn as_now(&self) -> Now {
        let clock = self.clone();
        Arc::new(move || clock.now())
    }

    /// Moves the clock as delayed answers do.
    pub(crate) fn as_pass(&self) -> Pass {
        let clock = self.clone();
        // Another answer has moved it further already.
        Arc::new(move |to| clock.move_to(to).unwrap_or_default())
    }

    fn lock(&self) -> MutexGuard<'_, Timestamp> {
        // A single value is always whole.
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
        clock
            .move_to("2026-11-23T07:00:01Z".parse().unwrap())
            .unwrap();
        assert_eq!(now().to_string(), "2026-11-23T07:00:01Z");
        clock
            .move_to("2026-11-23T07:00:00Z".parse().unwrap())
            .unwrap_err();
        assert_eq!(now().to_string(), "2026-11-23T07:00:01Z");
    }
}
