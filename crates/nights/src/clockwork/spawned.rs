//! What the SSH library leaves to a runtime: tasks that it spawns, and timeouts.
//!
//! The runtime's clock is paused: it jumps to its next timer when none of its tasks is ready. It
//! keeps pace with the virtual time as long as there are such tasks, or some are about to be
//! spawned.

use std::{io, sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::{
    runtime::{Builder, EnterGuard, Runtime},
    time::{Instant, sleep_until},
};

use super::{Ready, Time};

/// How long all that is ready gets to run before one of our tasks goes on. By then they have
/// nothing left to do, in whatever order they did it, so that the order does not matter.
const FINISHES: Duration = Duration::from_millis(1);

/// The runtime of spawned tasks.
pub(super) struct Spawned(Runtime);

/// A task that is about to spawn others, or waits by their clock.
#[derive(Debug, Clone)]
pub(crate) struct Spawner {
    _counted: Arc<()>,
}

impl Spawned {
    pub(super) fn new() -> io::Result<Self> {
        let mut runtime = Builder::new_current_thread();
        Ok(Self(runtime.enable_time().start_paused(true).build()?))
    }

    /// Lets code spawn tasks until the guard is dropped.
    pub(super) fn enter(&self) -> EnterGuard<'_> {
        self.0.enter()
    }

    /// Reports whether there are spawned tasks, or some are about to be spawned.
    pub(super) fn is_at_work(&self, time: &Time) -> bool {
        let is_about_to_be = Arc::strong_count(&time.lock().spawner) > 1;
        is_about_to_be || self.0.metrics().num_alive_tasks() > 0
    }

    /// Runs the spawned tasks until one of ours is ready, and at most until an instant.
    pub(super) fn run(&self, time: &Time, until: Timestamp, ready: &Ready) {
        let ends = time.instant(until);
        self.0.block_on(async {
            tokio::select! {
                biased;
                () = ready.any() => sleep_until(Instant::now() + FINISHES).await,
                () = sleep_until(ends) => {}
            }
            time.catch_up();
        });
    }
}

impl Time {
    /// Lets the clock of spawned tasks keep pace from now on, until the result is dropped and none
    /// of those tasks is left.
    pub(crate) fn spawner(&self) -> Spawner {
        let mut state = self.lock();
        let now = state.now;
        state.anchor.get_or_insert_with(|| (Instant::now(), now));
        Spawner { _counted: state.spawner.clone() }
    }

    /// Sets the virtual time to what the clock of spawned tasks says. Each of them does so before
    /// it acts.
    pub(crate) fn catch_up(&self) {
        let mut state = self.lock();
        if let Some((instant, then)) = state.anchor {
            state.now = state.now.max(then + instant.elapsed());
        }
    }

    /// Returns an instant by the clock of spawned tasks.
    fn instant(&self, at: Timestamp) -> Instant {
        let anchor = self.lock().anchor;
        let (instant, then) = anchor.unwrap_or_else(|| (Instant::now(), at));
        instant + Duration::try_from(at.duration_since(then)).unwrap_or_default()
    }
}
