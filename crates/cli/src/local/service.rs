//! The four handlers, invoked as AWS would: by a timer, or by each other, with JSON.
//!
//! Handlers are not `Send`, as the Lambda runtime does not ask it of them: they run within a
//! [`tokio::task::LocalSet`].

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use domain::{AccountName, ResourceRef, configuration::Account, digest::Digest, record::Writer};
use environment::{Clock, Function, Invoke, InvokeError, SteppedClock, in_words};
use jiff::Timestamp;
use lifecycle::{
    Access, Context, Outcome, Providers, Report, Tell,
    trial::{Trial, trials},
};
use serde_json::Value;
use store::Store;
use tokio::{sync::mpsc, task::JoinSet};

use super::clouds::Clouds;

/// The functions, each with the seconds after which an invocation is ended, as AWS ends it
/// (`infra/template.yaml`).
pub const TIMEOUTS: [(&str, u64); 4] = [DISPATCH, POLL_STATUS, STOP, START];

const DISPATCH: (&str, u64) = ("dispatch", 30);
const POLL_STATUS: (&str, u64) = ("poll-status", 75);
const STOP: (&str, u64) = ("stop", 120);
const START: (&str, u64) = ("start", 120);

/// The handlers and what they share.
#[derive(Debug)]
pub struct Service {
    store: Store,
    clients: Clients,
    clock: Clock,
    stepped: Option<SteppedClock>,
    news: mpsc::UnboundedSender<News>,
    invocations: AtomicU64,
    /// Tells this process's invocations from an earlier one's on the same data.
    process: String,
    tasks: Mutex<JoinSet<()>>,
}

/// What is told as it happens.
#[derive(Debug)]
pub enum News {
    /// Something happened to a resource, or to an account.
    Outcome(Outcome),
    /// An edge of a schedule is over.
    Digest(Digest),
}

/// The clients of the accounts, as the functions have them.
#[derive(Debug)]
pub struct Clients {
    /// Those of poll-status.
    pub reading: Providers,
    /// Those of stop and start.
    pub changing: Providers,
}

impl Clients {
    /// Clients of these clouds.
    pub fn of(clouds: &Clouds) -> anyhow::Result<Self> {
        let of = |access| -> anyhow::Result<_> {
            let http = provider::http_client()?;
            Ok(Providers::new(
                access,
                clouds.tokens()?,
                clouds.endpoints()?,
                http,
            ))
        };
        Ok(Self {
            reading: of(Access::Read)?,
            changing: of(Access::Change)?,
        })
    }
}

/// One invocation's error, as text: nobody matches on it here.
type Failure = Box<dyn std::error::Error + Send + Sync>;

impl Service {
    /// The handlers over a store and clouds.
    #[must_use]
    pub fn new(
        store: Store,
        clients: Clients,
        clock: Clock,
        stepped: Option<SteppedClock>,
        news: mpsc::UnboundedSender<News>,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            clients,
            clock,
            stepped,
            news,
            invocations: AtomicU64::new(0),
            process: uuid::Uuid::new_v4().to_string(),
            tasks: Mutex::default(),
        })
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The present instant.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Both timers fire. Returns at once; the handlers work in the background.
    pub async fn tick(self: &Arc<Self>, at: Timestamp) {
        while let Some(ended) = self.lock_tasks().try_join_next() {
            if let Err(error) = ended {
                tracing::error!("An invocation ended by itself: {error}");
            }
        }
        for rule in ["offhours-dispatch", "offhours-poll-status"] {
            let event = timer_event(rule, at);
            let service = Arc::clone(self);
            match rule {
                "offhours-dispatch" => {
                    self.spawn(DISPATCH, async move { service.dispatch(&event).await });
                }
                _ => self.spawn(
                    POLL_STATUS,
                    async move { service.poll_status(&event).await },
                ),
            }
        }
        // Let the handlers begin before the driver asks whether all are idle.
        tokio::task::yield_now().await;
    }

    /// Waits for all that is at work.
    pub async fn finish(&self) {
        let mut tasks = std::mem::take(&mut *self.lock_tasks());
        while tasks.join_next().await.is_some() {}
    }

    async fn dispatch(self: &Arc<Self>, event: &str) -> Result<(), Failure> {
        let event = serde_json::from_str(event)?;
        dispatch::handle(&self.store, &Functions(self), event, self.clock.now()).await?;
        Ok(())
    }

    async fn poll_status(self: &Arc<Self>, event: &str) -> Result<(), Failure> {
        let event = serde_json::from_str(event)?;
        let writer = self.writer();
        let tell = |outcome: &Outcome| self.tell(outcome);
        let context = self.looking(&writer, &tell);
        let report = poll_status::handle(context, &Functions(self), event).await?;
        for digest in report.digests {
            self.news.send(News::Digest(digest)).ok();
        }
        Ok(())
    }

    /// Invokes stop or start and waits for its report.
    pub async fn act(&self, function: Function, event: &str) -> Result<Report, Failure> {
        let writer = self.writer();
        let tell = |outcome: &Outcome| self.tell(outcome);
        let context = self.acting(&writer, &tell);
        match function {
            Function::Stop => Ok(stop::handle(context, serde_json::from_str(event)?).await?),
            Function::Start => Ok(start::handle(context, serde_json::from_str(event)?).await?),
        }
    }

    /// Looks once at what is in flight.
    pub async fn poll_once(self: &Arc<Self>) -> Result<(), Failure> {
        let writer = self.writer();
        let tell = |outcome: &Outcome| self.tell(outcome);
        lifecycle::poll::look_once(self.looking(&writer, &tell), &Functions(self)).await?;
        Ok(())
    }

    /// Lists these accounts now, all if none is named, and takes what they have into the store.
    pub async fn take_inventory(
        self: &Arc<Self>,
        accounts: &[AccountName],
    ) -> Result<Report, Failure> {
        // Through text, as between functions.
        let event = serde_json::json!({ "inventory": accounts }).to_string();
        let event = serde_json::from_str(&event)?;
        let writer = self.writer();
        let tell = |outcome: &Outcome| self.tell(outcome);
        let context = self.looking(&writer, &tell);
        Ok(poll_status::handle(context, &Functions(self), event).await?)
    }

    /// What a resource's own Status operation shows, in words.
    pub async fn look(&self, resource: &ResourceRef) -> Result<String, lifecycle::Error> {
        let writer = self.writer();
        let context = self.looking(&writer, &|_: &Outcome| ());
        let report = lifecycle::poll::status(context, std::slice::from_ref(resource)).await?;
        let words = report
            .outcomes
            .iter()
            .map(|outcome| outcome.event.to_string());
        Ok(words.collect())
    }

    /// Tries accounts that are not applied yet.
    pub async fn try_accounts(&self, accounts: &BTreeMap<AccountName, Account>) -> Vec<Trial> {
        let writer = self.writer();
        trials(self.looking(&writer, &|_: &Outcome| ()), accounts).await
    }

    fn tell(&self, outcome: &Outcome) {
        // Nobody listens any more when the process is about to end.
        self.news.send(News::Outcome(outcome.clone())).ok();
    }

    /// What poll-status works with; [`Self::acting`] for stop and start.
    fn looking<'a>(&'a self, writer: &'a Writer, tell: &'a dyn Tell) -> Context<'a> {
        self.context(&self.clients.reading, writer, tell)
    }

    fn acting<'a>(&'a self, writer: &'a Writer, tell: &'a dyn Tell) -> Context<'a> {
        self.context(&self.clients.changing, writer, tell)
    }

    fn context<'a>(
        &'a self,
        providers: &'a Providers,
        writer: &'a Writer,
        tell: &'a dyn Tell,
    ) -> Context<'a> {
        Context {
            store: &self.store,
            providers,
            clock: &self.clock,
            writer,
            tell,
        }
    }

    fn writer(&self) -> Writer {
        let number = self.invocations.fetch_add(1, Ordering::Relaxed);
        Writer(format!("{}/{number}", self.process))
    }

    fn spawn(
        &self,
        function: (&'static str, u64),
        work: impl Future<Output = Result<(), Failure>> + 'static,
    ) {
        // Taken before the task begins, so that the clock cannot move in between.
        let part = self.stepped.as_ref().map(SteppedClock::take_part);
        let clock = self.clock.clone();
        let (function, seconds) = function;
        self.lock_tasks().spawn_local(async move {
            let _part = part;
            tokio::select! {
                biased;
                ended = work => if let Err(error) = ended {
                    // As at AWS: what is due stays due, and the next tick tries again.
                    tracing::error!("An invocation failed: {}", in_words(&*error));
                },
                () = clock.pass(Duration::from_secs(seconds)) => {
                    tracing::error!("An invocation of {function} was ended after {seconds} s");
                }
            }
        });
    }

    fn lock_tasks(&self) -> std::sync::MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stop and start in this process, invoked without waiting.
struct Functions<'a>(&'a Arc<Service>);

impl Invoke for Functions<'_> {
    async fn invoke(&self, function: Function, event: Value) -> Result<(), InvokeError> {
        let service = Arc::clone(self.0);
        // Through text, as between functions.
        let event = event.to_string();
        let limits = match function {
            Function::Stop => STOP,
            Function::Start => START,
        };
        self.0.spawn(limits, async move {
            service.act(function, &event).await?;
            Ok(())
        });
        Ok(())
    }
}

/// The event that an EventBridge rule sends.
fn timer_event(rule: &str, at: Timestamp) -> String {
    serde_json::json!({
        "version": "0",
        "id": uuid::Uuid::new_v4().to_string(),
        "detail-type": "Scheduled Event",
        "source": "aws.events",
        "account": "000000000000",
        "time": at,
        "region": "local",
        "resources": [format!("arn:aws:events:local:000000000000:rule/{rule}")],
        "detail": {},
    })
    .to_string()
}
