//! The only place that reads the machine's clock, and a stepped clock for simulations and tests.
//!
//! A [`Clock`] is either the machine's or *stepped*. A stepped clock moves only when its driver
//! moves it, and the driver does so only when all participants are waiting. While handlers work, no
//! time passes for them, so a simulated day gives the same result on a slow machine as on a fast
//! one, and no test waits for time to pass. The exception is a simulated cloud with slow responses:
//! it moves the clock by as much as each takes.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use tokio::sync::watch;

/// A clock that tells the time and waits for it to pass. Clones share the same clock.
#[derive(Debug, Clone)]
pub struct Clock(Source);

#[derive(Debug, Clone)]
enum Source {
    /// The machine's, with whether the process is about to end.
    Machine(watch::Sender<bool>),
    Stepped(SteppedClock),
}

impl Clock {
    #[must_use]
    pub fn machine() -> Self {
        Self(Source::Machine(watch::Sender::new(false)))
    }

    /// Ends all sleep by this clock, from now on: the process is about to end. A stepped clock goes
    /// on, for its driver can let the sleepers come to their end.
    pub fn end(&self) {
        if let Source::Machine(ending) = &self.0 {
            ending.send_replace(true);
        }
    }

    /// Reports whether the process is about to end, so that no work is begun that can wait.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        match &self.0 {
            Source::Machine(ending) => *ending.borrow(),
            Source::Stepped(_) => false,
        }
    }

    /// Returns the current instant.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            #[expect(clippy::disallowed_methods, reason = "this is the crate that reads it")]
            Source::Machine(_) => Timestamp::now(),
            Source::Stepped(stepped) => stepped.now(),
        }
    }

    #[must_use]
    pub fn stepped(&self) -> Option<&SteppedClock> {
        match &self.0 {
            Source::Machine(_) => None,
            Source::Stepped(stepped) => Some(stepped),
        }
    }

    /// Waits until `duration` has passed by this clock, without taking part: for a task that limits
    /// how long another one works, and must not make the driver move the clock.
    pub async fn pass(&self, duration: Duration) {
        match &self.0 {
            #[expect(clippy::disallowed_methods, reason = "this is the crate that waits")]
            Source::Machine(_) => tokio::time::sleep(duration).await,
            Source::Stepped(stepped) => stepped.pass(duration).await,
        }
    }

    /// Waits until `duration` has passed by this clock, or the process is about to end.
    ///
    /// On a stepped clock the caller must take part (see [`SteppedClock::take_part`]); otherwise
    /// the driver does not wait for its work.
    pub async fn sleep(&self, duration: Duration) {
        match &self.0 {
            Source::Machine(ending) => {
                let mut ending = ending.subscribe();
                tokio::select! {
                    () = self.pass(duration) => {}
                    // The sender lives in `self`.
                    _ = ending.wait_for(|ending| *ending) => {}
                }
            }
            Source::Stepped(stepped) => stepped.sleep(duration).await,
        }
    }
}

impl From<SteppedClock> for Clock {
    fn from(stepped: SteppedClock) -> Self {
        Self(Source::Stepped(stepped))
    }
}

/// A clock that stands still until its driver, or a slow simulated cloud, moves it.
///
/// A simulated day takes a minute: on a clock that ran on while handlers work, a slow answer of 20 ms would
/// count as half a minute, and observations would be too old to act on.
#[derive(Debug, Clone)]
pub struct SteppedClock {
    state: Arc<Mutex<State>>,
    /// Signals every change of `state`.
    changed: watch::Sender<()>,
}

#[derive(Debug)]
struct State {
    now: Timestamp,
    /// The number of participants that are not asleep.
    awake: usize,
    /// The instants that sleepers wait for.
    wakes: Vec<Timestamp>,
}

/// A guard for a participating task: the driver waits for its work until this is dropped.
#[derive(Debug)]
pub struct Participation(SteppedClock);

impl SteppedClock {
    /// Creates a clock that stands at `now`.
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        Self {
            state: Arc::new(Mutex::new(State { now, awake: 0, wakes: Vec::new() })),
            changed: watch::Sender::new(()),
        }
    }

    /// Returns the instant at which the clock stands.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.lock().now
    }

    /// Registers a participant: until the guard is dropped, [`Self::idle`] waits for it whenever it
    /// is not asleep.
    #[must_use]
    pub fn take_part(&self) -> Participation {
        self.lock().awake += 1;
        Participation(self.clone())
    }

    /// Waits until all participants are asleep or gone.
    pub async fn idle(&self) {
        let mut changed = self.changed.subscribe();
        while self.lock().awake > 0 {
            // The sender lives in `self`.
            if changed.changed().await.is_err() {
                return;
            }
        }
    }

    /// Like [`Self::idle`], but also returns once the clock has passed `at` while participants
    /// work: a simulated cloud moves it while it answers.
    pub async fn idle_or_past(&self, at: Timestamp) {
        let mut changed = self.changed.subscribe();
        let goes_on = || {
            let state = self.lock();
            state.awake > 0 && state.now <= at
        };
        while goes_on() {
            // The sender lives in `self`.
            if changed.changed().await.is_err() {
                return;
            }
        }
    }

    /// Returns the earliest instant that a sleeper waits for.
    #[must_use]
    pub fn next_wake(&self) -> Option<Timestamp> {
        self.lock().wakes.iter().min().copied()
    }

    /// Waits until all participants are asleep, and returns the instant at which the first of them
    /// is to wake.
    pub async fn first_wake(&self) -> Timestamp {
        let mut changed = self.changed.subscribe();
        loop {
            {
                let state = self.lock();
                if let (0, Some(wake)) = (state.awake, state.wakes.iter().min()) {
                    return *wake;
                }
            }
            // The sender lives in `self`.
            changed.changed().await.ok();
        }
    }

    /// Moves the clock to `to` (never backwards) and wakes the sleepers whose time has come.
    pub fn advance_to(&self, to: Timestamp) {
        {
            let mut state = self.lock();
            state.now = state.now.max(to);
            // Counted here, not by the sleepers themselves: `idle` must see them at once.
            let now = state.now;
            let before = state.wakes.len();
            state.wakes.retain(|&wake| wake > now);
            state.awake += before - state.wakes.len();
        }
        self.changed.send_replace(());
    }

    async fn sleep(&self, duration: Duration) {
        let wake = {
            let mut state = self.lock();
            let wake = state.now + duration;
            state.wakes.push(wake);
            state.awake = state.awake.saturating_sub(1);
            wake
        };
        let mut changed = self.changed.subscribe();
        self.changed.send_replace(());
        while self.now() < wake {
            if changed.changed().await.is_err() {
                return;
            }
        }
    }

    async fn pass(&self, duration: Duration) {
        let mut changed = self.changed.subscribe();
        let until = self.now() + duration;
        while self.now() < until {
            if changed.changed().await.is_err() {
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is consistent between statements, so a panic elsewhere does not corrupt it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Participation {
    fn drop(&mut self) {
        {
            let mut state = self.0.lock();
            state.awake = state.awake.saturating_sub(1);
        }
        self.0.changed.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instant(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[tokio::test]
    async fn a_sleeper_wakes_when_the_clock_is_moved_and_not_before() {
        let stepped = SteppedClock::at(instant("2026-11-23T07:00:00Z"));
        let clock = Clock::from(stepped.clone());
        let part = stepped.take_part();
        let sleeper = tokio::spawn(async move {
            let _part = part;
            clock.sleep(Duration::from_mins(1)).await;
            clock.now()
        });
        stepped.idle().await;
        let wake = instant("2026-11-23T07:01:00Z");
        assert_eq!(stepped.next_wake(), Some(wake));
        stepped.advance_to(instant("2026-11-23T07:00:59Z"));
        stepped.idle().await;
        assert!(!sleeper.is_finished());
        stepped.advance_to(wake);
        stepped.idle().await;
        assert_eq!(sleeper.await.unwrap(), wake);
        assert_eq!(stepped.next_wake(), None);
    }

    #[tokio::test]
    async fn the_first_sleeper_is_known_once_all_sleep() {
        let stepped = SteppedClock::at(instant("2026-11-23T07:00:00Z"));
        let mut parts = Vec::new();
        for minutes in [2, 1] {
            let (part, clock) = (stepped.take_part(), Clock::from(stepped.clone()));
            parts.push(tokio::spawn(async move {
                let _part = part;
                clock.sleep(Duration::from_mins(minutes)).await;
            }));
        }
        for wake in ["2026-11-23T07:01:00Z", "2026-11-23T07:02:00Z"].map(instant) {
            assert_eq!(stepped.first_wake().await, wake);
            stepped.advance_to(wake);
        }
        for part in parts {
            part.await.unwrap();
        }
    }

    #[tokio::test]
    async fn an_instant_is_waited_for_no_longer_than_until_the_clock_has_passed_it() {
        let stepped = SteppedClock::at(instant("2026-11-23T07:00:00Z"));
        let _at_work = stepped.take_part();
        let tick = instant("2026-11-23T07:01:00Z");
        let mut waiting = std::pin::pin!(stepped.idle_or_past(tick));
        stepped.advance_to(tick);
        let early = tokio::select! {
            biased;
            () = &mut waiting => false,
            () = tokio::task::yield_now() => true,
        };
        assert!(early, "work that ends at the instant is waited for");
        stepped.advance_to(instant("2026-11-23T07:01:01Z"));
        waiting.await;
    }

    #[tokio::test]
    async fn no_one_sleeps_on_once_the_process_is_about_to_end() {
        let clock = Clock::machine();
        let ending = clock.clone();
        assert!(!clock.is_ending());
        let hour = Duration::from_hours(1);
        tokio::join!(clock.sleep(hour), async move { ending.end() });
        assert!(clock.is_ending());
        clock.sleep(hour).await;
        // Another clock is not ended by it.
        assert!(!Clock::machine().is_ending());
    }

    #[test]
    fn the_clock_never_goes_back() {
        let stepped = SteppedClock::at(instant("2026-11-23T07:00:00Z"));
        stepped.advance_to(instant("2026-11-23T06:00:00Z"));
        assert_eq!(stepped.now(), instant("2026-11-23T07:00:00Z"));
    }
}
