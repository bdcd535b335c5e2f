//! The four handlers, invoked as on AWS: by a timer, or by each other.
//!
//! Handlers are not `Send`, because the Lambda runtime does not require it: they run within a
//! [`tokio::task::LocalSet`].

use std::{
    collections::BTreeMap,
    future,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task,
    time::Duration,
};

use aws_lambda_events::eventbridge::EventBridgeEvent;
use domain::{
    AccountName, ScheduleName,
    digest::Digest,
    invocation::{Invocation, Question},
    notice::StopNotice,
    record::{Direction, Writer},
    timing::FIRST_LOOK,
};
use environment::{Clock, Invoke, InvokeError, SteppedClock, check, in_words};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use lifecycle::{
    Access, Context, Listener, Occurrence, Providers, Report,
    report::{health::Health, publishing},
};
use page::Audience;
use report::{history::Period, time::shared_zone};
use store::Store;
use tokio::{sync::mpsc, task::JoinSet};

use super::{clouds::Clouds, metrics::Counts, notify::Notifier};

pub use super::metrics::InvocationTotals;

/// The functions, each with its timeout in seconds, as on AWS (`infra/template.yaml`).
pub const TIMEOUTS: [(&str, u64); 4] = [DISPATCH, POLL_STATUS, STOP, START];

const DISPATCH: (&str, u64) = ("dispatch", 30);
const POLL_STATUS: (&str, u64) = ("poll-status", 75);
const STOP: (&str, u64) = ("stop", 120);
const START: (&str, u64) = ("start", 120);

/// For how long a timer counts as working after an invocation that ended without an error.
const HEALTHY_FOR: SignedDuration = SignedDuration::from_mins(3);

/// The handlers and what they share.
#[derive(Debug)]
pub struct Service {
    store: Store,
    clients: Clients,
    clock: Clock,
    stepped: Option<SteppedClock>,
    events: Option<mpsc::UnboundedSender<ServiceEvent>>,
    invocations: AtomicU64,
    /// Distinguishes this process's invocations from an earlier one's on the same data.
    process: String,
    tasks: Mutex<JoinSet<()>>,
    invocation_totals: Mutex<BTreeMap<&'static str, InvocationTotals>>,
    counts: Counts,
    /// Sends events; `None` on a stepped clock, for people need not hear of what is simulated.
    notifier: Option<Notifier>,
}

/// An event that is reported as it happens.
#[derive(Debug)]
pub enum ServiceEvent {
    /// Something happened to a resource, or to an account.
    Outcome(Occurrence),
    /// What became of an edge of a schedule.
    Digest(Digest),
    /// A stop was announced, or called off.
    Notice(StopNotice),
    /// It is this time now.
    Passed(Timestamp),
}

/// The functions' clients for the accounts.
#[derive(Debug)]
pub struct Clients {
    /// The clients of poll-status.
    pub reading: Providers,
    /// The clients of stop and start.
    pub changing: Providers,
}

impl Clients {
    pub fn of(clouds: &Clouds) -> anyhow::Result<Self> {
        let of = |access| -> anyhow::Result<_> {
            let http = provider::http_client()?;
            Ok(Providers::new(access, clouds.tokens()?, clouds.endpoints()?, http))
        };
        Ok(Self { reading: of(Access::Read)?, changing: of(Access::Change)? })
    }
}

/// An invocation's error, only ever logged.
type Failure = Box<dyn std::error::Error + Send + Sync>;

impl Service {
    /// Creates the handlers over a store and clouds. Events are sent to `events`.
    pub fn new(
        store: Store,
        clients: Clients,
        clock: Clock,
        stepped: Option<SteppedClock>,
        events: Option<mpsc::UnboundedSender<ServiceEvent>>,
    ) -> anyhow::Result<Arc<Self>> {
        let notifier = stepped.is_none().then(|| Notifier::new(store.clone()));
        Ok(Arc::new(Self {
            notifier: notifier.transpose()?,
            store,
            clients,
            clock,
            stepped,
            events,
            invocations: AtomicU64::new(0),
            process: uuid::Uuid::new_v4().to_string(),
            tasks: Mutex::default(),
            invocation_totals: Mutex::default(),
            counts: Counts::default(),
        }))
    }

    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the current instant.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the ended invocations of each function.
    #[must_use]
    pub fn invocation_totals(&self) -> BTreeMap<&'static str, InvocationTotals> {
        self.lock_totals().clone()
    }

    /// Reports whether both timers work: each has ended without an error within three minutes.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        let (now, totals) = (self.now(), self.lock_totals());
        [DISPATCH, POLL_STATUS].iter().all(|(timer, _)| {
            let last_good = totals.get(timer).and_then(|totals| totals.last_good);
            last_good.is_some_and(|at| now.duration_since(at) < HEALTHY_FOR)
        })
    }

    /// Returns what was counted, in the text format of Prometheus.
    pub(crate) async fn metrics(&self) -> anyhow::Result<String> {
        let configuration = self.store.in_force().await?.configuration;
        let is_configured = |account: &AccountName| configuration.accounts.contains_key(account);
        Ok(self.counts.text(is_configured, &self.invocation_totals())?)
    }

    /// Returns the calendar of a schedule, or of all; `None` if there is no such schedule.
    pub(crate) async fn calendar(
        &self,
        only: Option<&ScheduleName>,
        audience: Audience,
    ) -> anyhow::Result<Option<String>> {
        let in_force = self.store.in_force().await?;
        if only.is_some_and(|name| !in_force.configuration.schedules.contains_key(name)) {
            return Ok(None);
        }
        let accounts = in_force.configuration.accounts.keys();
        let records = match audience {
            Audience::Public => Vec::new(),
            Audience::Operators | Audience::Acting => {
                self.store.records_of_all(accounts).await?.read
            }
        };
        let rules = in_force.rules();
        Ok(Some(page::calendar::render(rules, &records, only, audience, self.now())))
    }

    /// Returns the page, with the money of this month.
    pub(crate) async fn page(&self, audience: Audience) -> anyhow::Result<String> {
        let (in_force, now) = (self.store.in_force().await?, self.now());
        let zone = shared_zone(&in_force.configuration).cloned().unwrap_or(TimeZone::UTC);
        let render = |input: &page::Input<'_>| page::render(input, audience);
        let period = Period::month_of(now);
        let shown =
            publish::overview::show(&self.store, &in_force, None, period, &zone, now, render);
        let (page, _) = shown.await?;
        Ok(page)
    }

    /// Fires both timers. Returns at once; the handlers work in the background.
    pub async fn tick(self: &Arc<Self>) {
        while let Some(ended) = self.lock_tasks().try_join_next() {
            if let Err(error) = ended {
                tracing::error!("An invocation was aborted: {error}");
            }
        }
        let service = Arc::clone(self);
        self.spawn(DISPATCH, async move { service.dispatch().await });
        let service = Arc::clone(self);
        self.spawn(POLL_STATUS, async move { service.poll_status().await });
        // Let the handlers begin before the driver checks whether all are idle.
        tokio::task::yield_now().await;
    }

    /// Reports whether both timers work, and dispatch has not just failed.
    fn works_now(&self) -> bool {
        let dispatch = self.lock_totals().get(DISPATCH.0).copied();
        self.is_healthy() && dispatch.is_some_and(|totals| !totals.fails)
    }

    /// Observes, hands out what is due, and follows what began: a whole round without timers.
    pub(crate) async fn round(self: &Arc<Self>) -> anyhow::Result<()> {
        let ended = self.observe_and_act().await;
        self.notify(Some(ended.is_ok())).await;
        ended
    }

    async fn observe_and_act(self: &Arc<Self>) -> anyhow::Result<()> {
        let failed = |error: Failure| anyhow::anyhow!(in_words(&*error));
        self.poll_status().await.map_err(failed)?;
        self.dispatch().await.map_err(failed)?;
        if self.lock_tasks().is_empty() {
            return Ok(());
        }
        self.finish().await;
        // No resource shows the effect of a request earlier.
        let first_look = Duration::try_from(FIRST_LOOK)?;
        self.clock.sleep(first_look).await;
        self.poll_status().await.map_err(failed)?;
        self.finish().await;
        Ok(())
    }

    /// Waits until all invocations have ended. They go on if nobody waits any longer.
    pub async fn finish(&self) {
        let next = |context: &mut task::Context<'_>| self.lock_tasks().poll_join_next(context);
        while future::poll_fn(next).await.is_some() {}
    }

    async fn dispatch(self: &Arc<Self>) -> Result<(), Failure> {
        let now = self.clock.now();
        let functions = Functions(self);
        dispatch::handle(&self.store, &functions, check::passed, timer_event(), now).await?;
        Ok(())
    }

    async fn poll_status(self: &Arc<Self>) -> Result<(), Failure> {
        let timer = poll_status::Event::Timer(Box::new(timer_event()));
        let report = self.observe(timer).await?;
        for digest in report.digests {
            self.publish(ServiceEvent::Digest(digest));
        }
        for notice in report.notices {
            self.publish(ServiceEvent::Notice(notice));
        }
        Ok(())
    }

    async fn observe(
        self: &Arc<Self>,
        event: poll_status::Event,
    ) -> Result<Report, lifecycle::Error> {
        let writer = self.writer();
        self.publishing(async |listener: &dyn Listener| {
            let context = self.looking(&writer, listener);
            poll_status::handle(context, &Functions(self), event).await
        })
        .await
    }

    /// Invokes stop or start and waits for its report.
    pub async fn command(
        &self,
        direction: Direction,
        invocation: Invocation,
    ) -> Result<Report, lifecycle::Error> {
        let writer = self.writer();
        self.publishing(async |listener: &dyn Listener| {
            let context = self.acting(&writer, listener);
            match direction {
                Direction::Stop => stop::handle(context, invocation).await,
                Direction::Start => start::handle(context, invocation).await,
            }
        })
        .await
    }

    /// Observes once what is in flight.
    pub async fn poll_once(self: &Arc<Self>) -> Result<(), lifecycle::Error> {
        let writer = self.writer();
        let looked = self.publishing(async |listener: &dyn Listener| {
            let context = self.looking(&writer, listener);
            lifecycle::observe::poll::look_once(context, &Functions(self)).await
        });
        looked.await?;
        Ok(())
    }

    /// Asks poll-status and waits for its report.
    pub async fn ask(self: &Arc<Self>, question: Question) -> Result<Report, lifecycle::Error> {
        self.observe(poll_status::Event::Question(question)).await
    }

    /// Runs a piece of work, of whose events the targets of `[notify]` are to hear.
    async fn publishing<T>(&self, work: impl AsyncFnOnce(&dyn Listener) -> T) -> T {
        match &self.notifier {
            // Boxed, as on AWS: nested futures have types too deep for the compiler.
            Some(notifier) => Box::pin(publishing(notifier, "offhours", self, work)).await.0,
            None => Box::pin(work(self)).await,
        }
    }

    /// Calls the monitor, if a tick has ended, and sends the events that wait.
    async fn notify(&self, is_good_tick: Option<bool>) {
        let Some(notifier) = self.notifier.as_ref().filter(|_| !self.clock.is_ending()) else {
            return;
        };
        if let Some(is_good) = is_good_tick {
            notifier.beat(is_good).await;
        }
        notifier.send_waiting(&self.clock).await;
    }

    /// Has all that waits come to an end, on the machine's clock: the process is about to end.
    pub(crate) fn end(&self) {
        self.clock.end();
    }

    /// Waits, not even woken by the end of the process.
    pub async fn pass(&self, duration: Duration) {
        self.clock.pass(duration).await;
    }

    pub(crate) fn publish(&self, event: ServiceEvent) {
        if let Some(channel) = &self.events {
            // The receiver is gone when the process is about to end.
            channel.send(event).ok();
        }
    }

    /// Returns the context of poll-status; [`Self::acting`] is for stop and start.
    fn looking<'a>(&'a self, writer: &'a Writer, listener: &'a dyn Listener) -> Context<'a> {
        self.context(&self.clients.reading, writer, listener)
    }

    fn acting<'a>(&'a self, writer: &'a Writer, listener: &'a dyn Listener) -> Context<'a> {
        self.context(&self.clients.changing, writer, listener)
    }

    fn context<'a>(
        &'a self,
        providers: &'a Providers,
        writer: &'a Writer,
        listener: &'a dyn Listener,
    ) -> Context<'a> {
        Context { store: &self.store, providers, clock: &self.clock, writer, listener }
    }

    fn writer(&self) -> Writer {
        let number = self.invocations.fetch_add(1, Ordering::Relaxed);
        Writer(format!("{}/{number}", self.process))
    }

    fn spawn(
        self: &Arc<Self>,
        (function, seconds): (&'static str, u64),
        work: impl Future<Output = Result<(), Failure>> + 'static,
    ) {
        let service = Arc::clone(self);
        // Taken before the task begins, so that the clock cannot move in between.
        let part = self.stepped.as_ref().map(SteppedClock::take_part);
        self.lock_tasks().spawn_local(async move {
            let _part = part;
            let began = service.now();
            let is_good = tokio::select! {
                biased;
                ended = work => {
                    if let Err(error) = &ended {
                        // As on AWS: what is due stays due, and the next tick tries again.
                        tracing::error!("An invocation failed: {}", in_words(&**error));
                    }
                    ended.is_ok()
                }
                () = service.clock.pass(Duration::from_secs(seconds)) => {
                    tracing::error!("An invocation of {function} was stopped after {seconds} s");
                    false
                }
            };
            service.count(function, began, is_good);
            // Commands invoke no timers, and leave it to the service beside them to send anything.
            if [DISPATCH.0, POLL_STATUS.0].contains(&function) {
                // A minute is over when poll-status ends; dispatch was good by then, or has said so.
                let is_over = function == POLL_STATUS.0 && service.works_now();
                service.notify((is_over || !is_good).then_some(is_good)).await;
            }
        });
    }

    /// Counts an invocation that has ended.
    fn count(&self, function: &'static str, began: Timestamp, is_good: bool) {
        let now = self.now();
        let mut totals = self.lock_totals();
        let totals = totals.entry(function).or_default();
        totals.count += 1;
        totals.lasted += Duration::try_from(now.duration_since(began)).unwrap_or_default();
        totals.fails = !is_good;
        if is_good {
            totals.last_good = Some(now);
        } else {
            totals.failed += 1;
        }
    }

    fn lock_totals(&self) -> MutexGuard<'_, BTreeMap<&'static str, InvocationTotals>> {
        self.invocation_totals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener for Service {
    fn happened(&self, outcome: &Occurrence) {
        self.counts.happened(outcome);
        self.answered(outcome);
    }

    fn answered(&self, outcome: &Occurrence) {
        self.publish(ServiceEvent::Outcome(outcome.clone()));
    }

    fn counted(&self, account: &AccountName, health: &Health) {
        self.counts.counted(account, health, self.now());
    }
}

/// Stop and start in this process, invoked without waiting.
struct Functions<'a>(&'a Arc<Service>);

impl Invoke for Functions<'_> {
    async fn invoke(
        &self,
        direction: Direction,
        invocation: Invocation,
    ) -> Result<(), InvokeError> {
        let service = Arc::clone(self.0);
        let limits = match direction {
            Direction::Stop => STOP,
            Direction::Start => START,
        };
        self.0.spawn(limits, async move {
            service.command(direction, invocation).await?;
            Ok(())
        });
        Ok(())
    }
}

fn timer_event() -> EventBridgeEvent {
    let mut event = EventBridgeEvent::default();
    "Scheduled Event".clone_into(&mut event.detail_type);
    "aws.events".clone_into(&mut event.source);
    event
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clouds, engine::Engine};

    #[test]
    fn a_minute_in_which_dispatch_failed_is_not_good_though_it_was_good_before() {
        let store = Engine::in_memory().unwrap().store(crate::tables());
        let clients = Clients::of(&Clouds::Real).unwrap();
        let service = Service::new(store, clients, Clock::machine(), None, None).unwrap();
        let now = service.now();
        let ended = |function, is_good| {
            service.count(function, now, is_good);
            (service.is_healthy(), service.works_now())
        };
        assert_eq!(ended(DISPATCH.0, true), (false, false));
        assert_eq!(ended(POLL_STATUS.0, true), (true, true));
        assert_eq!(ended(DISPATCH.0, false), (true, false));
        assert_eq!(ended(POLL_STATUS.0, true), (true, false));
        assert_eq!(ended(DISPATCH.0, true), (true, true));
    }
}
