//! Virtual time that passes only when no task is ready, and the tasks that run in it.
//!
//! One thread polls one task at a time, chosen at random among the ready ones, so that two handlers
//! interleave differently with each seed and identically with the same one. When all tasks wait,
//! the clock jumps to the next instant that one of them waits for.

mod spawned;

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use environment::SteppedClock;
use fastrand::Rng;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use spawned::Spawned;

/// The virtual time, the random generator, and what tasks share. Clones share the same state.
#[derive(Debug, Clone)]
pub(crate) struct Time(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    now: Timestamp,
    chance: Rng,
    serial: u64,
    timers: BTreeMap<(Timestamp, u64), Waker>,
    current: TaskId,
    doomed: BTreeSet<TaskId>,
    /// An instant by the clock of spawned tasks, and the virtual time then. `None` while nothing
    /// goes by that clock.
    anchor: Option<(Instant, Timestamp)>,
    /// Cloned by whatever is about to spawn tasks.
    spawner: Arc<()>,
}

/// The id of a task: one invocation of a function, or a person at work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TaskId(pub u64);

impl Time {
    pub(crate) fn at(now: Timestamp, seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            now,
            chance: Rng::with_seed(seed),
            serial: 0,
            timers: BTreeMap::new(),
            current: TaskId::default(),
            doomed: BTreeSet::new(),
            anchor: None,
            spawner: Arc::default(),
        })))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.lock().now
    }

    /// Draws from the random generator.
    pub(crate) fn chance<T>(&self, ask: impl FnOnce(&mut Rng) -> T) -> T {
        ask(&mut self.lock().chance)
    }

    /// Returns the task that is being polled.
    pub(crate) fn current(&self) -> TaskId {
        self.lock().current
    }

    /// Ends the task that is being polled, as a crash ends a process: nothing of it continues.
    pub(crate) async fn die(&self) -> ! {
        self.doom(self.current());
        loop {
            std::future::pending::<()>().await;
        }
    }

    /// Lets a task end as a crash ends a process, the next time that it is woken.
    pub(crate) fn doom(&self, task: TaskId) {
        self.lock().doomed.insert(task);
    }

    pub(crate) fn sleep(&self, duration: Duration) -> Sleep {
        let until = self.now() + SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
        Sleep { time: self.clone(), until, timer: None }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is consistent between statements.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A sleep until an instant of the virtual time.
#[derive(Debug)]
pub(crate) struct Sleep {
    time: Time,
    until: Timestamp,
    timer: Option<(Timestamp, u64)>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let timer = {
            let mut state = self.time.lock();
            if state.now >= self.until {
                return Poll::Ready(());
            }
            let key = self.timer.unwrap_or_else(|| {
                state.serial += 1;
                (self.until, state.serial)
            });
            state.timers.insert(key, context.waker().clone());
            key
        };
        self.timer = Some(timer);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(timer) = self.timer {
            self.time.lock().timers.remove(&timer);
        }
    }
}

/// How a task is run.
#[derive(Debug)]
pub(crate) struct TaskOptions {
    /// Its name in a trace.
    pub name: String,
    /// Its own clock, and how far that is ahead of the virtual time. `None` if it has none.
    pub clock: Option<(SteppedClock, SignedDuration)>,
    /// When it is ended, whatever it is doing. `None` if it never is.
    pub deadline: Option<Timestamp>,
}

/// Why a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskEnd {
    Finished,
    Crashed,
    OutOfTime,
}

struct Task {
    options: TaskOptions,
    future: Pin<Box<dyn Future<Output = ()>>>,
}

/// Runs tasks in virtual time.
pub(crate) struct Executor {
    time: Time,
    tasks: BTreeMap<TaskId, Task>,
    ready: Ready,
    last: u64,
    spawned: Spawned,
}

/// The tasks that are ready. Clones share the same tasks.
#[derive(Debug, Clone, Default)]
struct Ready(Arc<Mutex<ReadyTasks>>);

#[derive(Debug, Default)]
struct ReadyTasks {
    ids: BTreeSet<TaskId>,
    /// Woken when one more is ready.
    waiting: Option<Waker>,
}

impl Ready {
    fn lock(&self) -> MutexGuard<'_, ReadyTasks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, id: TaskId) {
        let mut ready = self.lock();
        ready.ids.insert(id);
        if let Some(waiting) = ready.waiting.take() {
            waiting.wake();
        }
    }

    /// Waits until a task is ready.
    async fn any(&self) {
        let has_one = |context: &mut Context<'_>| {
            let mut ready = self.lock();
            if !ready.ids.is_empty() {
                return Poll::Ready(());
            }
            ready.waiting = Some(context.waker().clone());
            Poll::Pending
        };
        std::future::poll_fn(has_one).await;
    }
}

struct TaskWaker {
    id: TaskId,
    ready: Ready,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.ready.add(self.id);
    }
}

impl Executor {
    pub(crate) fn new(time: Time) -> io::Result<Self> {
        let (tasks, ready) = (BTreeMap::new(), Ready::default());
        Ok(Self { time, tasks, ready, last: 0, spawned: Spawned::new()? })
    }

    pub(crate) fn spawn(
        &mut self,
        options: TaskOptions,
        future: impl Future<Output = ()> + 'static,
    ) -> TaskId {
        self.last += 1;
        let id = TaskId(self.last);
        let future = Box::pin(future);
        self.tasks.insert(id, Task { options, future });
        self.ready.add(id);
        id
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Returns the name of a task, or `None` once it has ended.
    pub(crate) fn name(&self, id: TaskId) -> Option<&str> {
        self.tasks.get(&id).map(|task| task.options.name.as_str())
    }

    /// Takes the next step up to an instant: polls a ready task, or else lets time pass. Returns
    /// false once the instant is reached and nothing is ready.
    pub(crate) fn step(
        &mut self,
        until: Timestamp,
        ended: &mut Vec<(TaskId, TaskOptions, TaskEnd)>,
    ) -> bool {
        if let Some(id) = self.choose() {
            self.poll(id, ended);
            return true;
        }
        let next = self.next_instant().filter(|next| *next <= until);
        let mut to = next.unwrap_or(until);
        let mut is_woken = false;
        if self.spawned.is_at_work(&self.time) {
            self.spawned.run(&self.time, to, &self.ready);
            is_woken = !self.ready.lock().ids.is_empty();
            if is_woken {
                to = self.time.now();
            }
        } else {
            self.time.lock().anchor = None;
        }
        self.pass_to(to, ended);
        is_woken || next.is_some()
    }

    fn choose(&self) -> Option<TaskId> {
        let ready = &mut self.ready.lock().ids;
        if ready.is_empty() {
            return None;
        }
        let nth = self.time.chance(|chance| chance.usize(..ready.len()));
        let id = *ready.iter().nth(nth)?;
        ready.remove(&id);
        Some(id)
    }

    fn poll(&mut self, id: TaskId, ended: &mut Vec<(TaskId, TaskOptions, TaskEnd)>) {
        let Some(task) = self.tasks.get_mut(&id) else {
            return;
        };
        let waker = Waker::from(Arc::new(TaskWaker { id, ready: self.ready.clone() }));
        self.time.lock().current = id;
        let is_doomed = self.time.lock().doomed.contains(&id);
        let polled = if is_doomed {
            Poll::Pending
        } else {
            let _spawns_here = self.spawned.enter();
            task.future.as_mut().poll(&mut Context::from_waker(&waker))
        };
        let crashed = self.time.lock().doomed.remove(&id);
        let end = match (crashed, polled) {
            (true, _) => TaskEnd::Crashed,
            (false, Poll::Ready(())) => TaskEnd::Finished,
            (false, Poll::Pending) => return,
        };
        if let Some(task) = self.tasks.remove(&id) {
            ended.push((id, task.options, end));
        }
    }

    fn next_instant(&self) -> Option<Timestamp> {
        let timer = self.time.lock().timers.keys().next().map(|(at, _)| *at);
        let of_tasks = self.tasks.values().flat_map(|task| {
            let clock = task.options.clock.as_ref();
            let wakes = clock.and_then(|(clock, ahead)| Some(clock.next_wake()? - *ahead));
            [wakes, task.options.deadline]
        });
        timer.into_iter().chain(of_tasks.flatten()).min()
    }

    fn pass_to(&mut self, to: Timestamp, ended: &mut Vec<(TaskId, TaskOptions, TaskEnd)>) {
        let wakers: Vec<_> = {
            let mut state = self.time.lock();
            state.now = state.now.max(to);
            let later = state.timers.split_off(&(to, u64::MAX));
            std::mem::replace(&mut state.timers, later).into_values().collect()
        };
        wakers.into_iter().for_each(Waker::wake);
        let over: Vec<_> = self
            .tasks
            .iter()
            .filter(|(_, task)| task.options.deadline.is_some_and(|deadline| deadline <= to))
            .map(|(id, _)| *id)
            .collect();
        for id in over {
            if let Some(task) = self.tasks.remove(&id) {
                ended.push((id, task.options, TaskEnd::OutOfTime));
            }
        }
        for task in self.tasks.values() {
            if let Some((clock, ahead)) = &task.options.clock {
                clock.advance_to(to + *ahead);
            }
        }
    }
}
