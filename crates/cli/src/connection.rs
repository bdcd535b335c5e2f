//! Where the commands find the service: a local store's file, or AWS.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use domain::{
    ResourceRef,
    activity::Person,
    invocation::{Invocation, Question},
    record::{Direction, Record},
};
use environment::{
    Clock, InvokeError, LambdaFunctions,
    aws::{self, SdkConfig},
    bucket::Bucket,
    identity, in_words, settings,
    subscriptions::{Subscriptions, SubscriptionsError, subscriptions},
};
use jiff::{SignedDuration, Timestamp};
use lifecycle::{Occurrence, Providers, Report};
use local::{
    clouds::Clouds,
    file::{DataFile, Lock, Purpose},
    local_store::LocalStore,
    service::{Service, ServiceEvent},
};
use store::{ReadItems, Store, StoreError, Tables};
use tokio::sync::mpsc;

use crate::{exit::UsageError, output};

/// Where the store is.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Where the service is")]
pub(crate) struct Connection {
    /// File of a local store, as given to `offhours serve --data`. Without it, the store is at AWS,
    /// found as the AWS tools find it (`AWS_PROFILE`, `AWS_REGION`, `AWS_ENDPOINT_URL`).
    #[arg(long, value_name = "FILE", env = "OFFHOURS_DATA", global = true)]
    pub data: Option<PathBuf>,
    /// Profile of the AWS tools' configuration.
    #[arg(long, value_name = "NAME", global = true)]
    pub profile: Option<String>,
    /// AWS region of the stack.
    #[arg(long, value_name = "NAME", global = true)]
    pub region: Option<String>,
    /// Address of a cloud-simulator that stands in for the clouds, and whose clock gives the time.
    #[arg(
        long,
        value_name = "URL",
        env = "OFFHOURS_SIMULATE",
        require_equals = true,
        global = true
    )]
    pub simulate: Option<String>,
}

/// An open connection: the store, the time, and access to the functions.
#[derive(Debug)]
pub(crate) struct Session {
    pub store: Store,
    /// The instant at which the command was given: by the store's clock, or the simulator's. Overrides
    /// are compared with edges that functions have handled, and this machine's clock may be slow.
    pub now: Timestamp,
    clock: Clock,
    /// Why the guard rails of the deployment are unknown, if they are.
    pub floor_unread: Option<String>,
    /// How far the store's clock is ahead of this machine's.
    ahead: SignedDuration,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// In a file on this machine.
    Local(Box<LocalStore>),
    Aws {
        config: Box<SdkConfig>,
        prefix: String,
    },
}

/// The functions that carry out commands.
#[derive(Debug)]
pub(crate) enum Functions {
    /// In this process, on a local store.
    Local {
        service: Arc<Service>,
        /// What happens while they run.
        news: mpsc::UnboundedReceiver<ServiceEvent>,
    },
    Lambda(LambdaFunctions),
}

impl Functions {
    pub(crate) async fn command(
        &mut self,
        direction: Direction,
        invocation: Invocation,
    ) -> anyhow::Result<Report> {
        Ok(match self {
            Self::Local { service, news } => {
                let report = service.command(direction, invocation).await?;
                // What was published on the way is also in the report.
                while news.try_recv().is_ok() {}
                report
            }
            Self::Lambda(lambda) => lambda.command(direction, &invocation).await?,
        })
    }

    pub(crate) async fn ask(&self, question: Question) -> anyhow::Result<Report> {
        Ok(match self {
            Self::Local { service, .. } => {
                let report = service.ask(question).await;
                // Work that poll-status invoked is finished before this process ends.
                service.finish().await;
                report?
            }
            Self::Lambda(lambda) => lambda.ask(&question).await?,
        })
    }

    /// Carries out what is due, polls once what is in flight, and returns what has happened since the
    /// command: the service beside a local store may not be running. At AWS, the functions do that by
    /// themselves, and nothing is returned for them.
    pub(crate) async fn look(
        &mut self,
        direction: Direction,
        due: Vec<ResourceRef>,
    ) -> anyhow::Result<Vec<Occurrence>> {
        let Self::Local { service, news } = self else {
            return Ok(Vec::new());
        };
        if !due.is_empty() {
            service.command(direction, Invocation::Due(due)).await?;
        }
        service.poll_once().await?;
        let news = std::iter::from_fn(|| news.try_recv().ok());
        Ok(news
            .filter_map(|news| match news {
                ServiceEvent::Outcome(outcome) => Some(outcome),
                ServiceEvent::Digest(_) | ServiceEvent::Notice(_) | ServiceEvent::Passed(_) => None,
            })
            .collect())
    }

    /// The functions at AWS. `None` if they run in this process.
    pub(crate) fn lambda(&self) -> Option<&LambdaFunctions> {
        let Self::Lambda(lambda) = self else { return None };
        Some(lambda)
    }
}

impl Connection {
    /// Refuses options that contradict each other, wherever they were given.
    fn check(&self) -> Result<(), UsageError> {
        let at_aws = self.profile.is_some() || self.region.is_some();
        if at_aws && self.is_local() {
            bail_usage!(
                "--profile and --region are of a store at AWS: leave them out, or leave \
                           --data out and unset OFFHOURS_DATA"
            );
        }
        if self.simulate.is_some() && !self.is_local() {
            bail_usage!(
                "simulated clouds need a local store: name its file with --data or \
                           OFFHOURS_DATA, or leave --simulate out and unset OFFHOURS_SIMULATE"
            );
        }
        Ok(())
    }

    pub(crate) async fn open(&self) -> anyhow::Result<Session> {
        self.open_for(Purpose::Read).await
    }

    /// Opens the store for what a service carries out, and says so if none runs on it.
    pub(crate) async fn open_for_write(&self) -> anyhow::Result<Session> {
        let session = self.open_for(Purpose::Change).await?;
        // In a simulation, the commands themselves move the time.
        let is_real = !session.is_simulated();
        if let Some(path) = self.data.as_deref().filter(|path| is_real && !is_served(path)) {
            let path = path.display();
            output::remark(&format!(
                "note: no service runs on {path}: what this command leaves to be done waits for \
                 `offhours serve --data {path}`\n"
            ));
        }
        Ok(session)
    }

    /// The present for a command that needs no store: by the simulator's clock, or this machine's.
    pub(crate) async fn present(&self, clock: &Clock) -> anyhow::Result<Timestamp> {
        let simulated = match &self.simulate {
            Some(url) => Clouds::elsewhere(url).await?.1,
            None => None,
        };
        Ok(simulated.unwrap_or_else(|| clock.now()))
    }

    /// Whether a local store exists. One at AWS is assumed to exist.
    pub(crate) fn is_there(&self) -> bool {
        self.data.as_deref().is_none_or(Path::exists)
    }

    pub(crate) fn is_local(&self) -> bool {
        self.data.is_some()
    }

    /// Opens the store. Only a local one is created, or read as it is at one instant.
    pub(crate) async fn open_for(&self, purpose: Purpose) -> anyhow::Result<Session> {
        self.check()?;
        if let Some(path) = &self.data {
            return self.open_local(path, purpose).await;
        }
        let prefix = settings::table_prefix()?;
        let (profile, region) = (self.profile.as_deref(), self.region.as_deref());
        let config = aws::config_of(profile, region).await?;
        let store = Store::connect(&config, Tables::prefixed(&prefix));
        let functions = LambdaFunctions::of_stack(&config, &prefix);
        let clock = Clock::machine();
        let (theirs, floor) = tokio::join!(store.clock(), functions.floor());
        let theirs = theirs.map_err(|error| unreachable(error, &prefix))?;
        let now = theirs.unwrap_or_else(|| clock.now());
        let floor_unread = floor.as_ref().err().map(|error| in_words(error));
        Ok(Session {
            store: store.under(floor.unwrap_or_default()),
            now,
            floor_unread,
            ahead: now.duration_since(clock.now()),
            clock,
            place: Place::Aws { config: Box::new(config), prefix },
        })
    }

    async fn open_local(&self, path: &Path, purpose: Purpose) -> anyhow::Result<Session> {
        let opened =
            LocalStore::open(path, purpose, self.simulate.as_deref(), local::tables()).await?;
        if purpose != Purpose::ReadAtOnce {
            remark_on(opened.file(), path);
        }
        let mut session = Session {
            store: opened.store().clone(),
            now: opened.clock().now(),
            ahead: SignedDuration::ZERO,
            clock: opened.clock().clone(),
            floor_unread: None,
            place: Place::Local(Box::new(opened)),
        };
        session.now = session.read_clock().await?;
        session.ahead = session.now.duration_since(session.clock.now());
        Ok(session)
    }
}

/// Reports whether a process works on the store's file now.
pub(crate) fn is_served(path: &Path) -> bool {
    Lock::is_taken(&path.with_added_extension("lock"))
}

/// Says what was done to the file of a store when it was opened.
pub(crate) fn remark_on(file: &DataFile, path: &Path) {
    let path = path.display();
    if file.is_copy() {
        output::remark(&format!(
            "note: {path} is read-only: this shows a copy of its present state\n"
        ));
    }
    if file.was_readable_by_others() {
        output::remark(&format!(
            "note: other users could read {path}: from now on only its owner can (mode 600)\n"
        ));
    }
}

/// Explains why the store does not answer, and what to do about it.
fn unreachable(error: StoreError, prefix: &str) -> anyhow::Error {
    let advice = if error.is_missing_table() {
        format!(
            "this AWS account has no tables `{prefix}…` in this region: name the region of the \
             stack with --region, or a local store with --data"
        )
    } else {
        "cannot reach the store: name a local one with --data, or check --profile, --region and \
         whether `aws sts get-caller-identity` works (after `aws sso login` for SSO; a profile that \
         asks for an MFA code needs `eval \"$(aws configure export-credentials --profile NAME \
         --format env)\"` first)"
            .to_owned()
    };
    anyhow::Error::new(error).context(advice)
}

impl Session {
    /// The current time by the store's clock, because this machine's may be wrong.
    pub(crate) fn present(&self) -> Timestamp {
        self.clock.now() + self.ahead
    }

    /// This machine's clock, or the simulator's.
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn is_simulated(&self) -> bool {
        matches!(&self.place, Place::Local(opened) if opened.is_simulated())
    }

    /// Returns the functions, in this process or at AWS.
    pub(crate) fn functions(&self) -> anyhow::Result<Functions> {
        Ok(match &self.place {
            Place::Local(opened) => {
                let (service, news) = opened.functions()?;
                Functions::Local { service, news }
            }
            Place::Aws { config, prefix } => {
                Functions::Lambda(LambdaFunctions::of_stack(config, prefix))
            }
        })
    }

    /// Finds the bucket of published calendars. `None` for a local store, which has none.
    pub(crate) async fn bucket(&self) -> Option<Result<Bucket, InvokeError>> {
        let Place::Aws { config, prefix } = &self.place else { return None };
        let host = LambdaFunctions::of_stack(config, prefix).bucket().await;
        Some(host.map(|host| Bucket::connect(config, &host)))
    }

    /// Asks AWS who is subscribed to the stack's alerts. `None` for a local store, which mails none.
    pub(crate) async fn subscriptions(&self) -> Option<Result<Subscriptions, SubscriptionsError>> {
        let Place::Aws { config, prefix } = &self.place else { return None };
        Some(subscriptions(config, prefix).await)
    }

    /// Establishes who gives the command: whom AWS says the credentials belong to, or the user of
    /// this process for a local store, with the name in the shell beside it. Nobody acts in a
    /// simulation, where the shell's name is enough.
    pub(crate) async fn person(&self) -> anyhow::Result<Person> {
        let shell = std::env::var("USER").ok();
        let person = match &self.place {
            Place::Local(_) => {
                let in_shell = shell.clone().filter(|_| self.is_simulated());
                let user = in_shell.map_or_else(whoami::username, Ok);
                Person::from(user.context("cannot say who you are")?.as_str())
            }
            Place::Aws { config, .. } => {
                let caller = identity::caller(config).await;
                let refused = "nothing is changed by someone whose name is not known";
                Person::of_arn(caller.context(refused)?)
            }
        };
        Ok(person.with_shell(shell))
    }

    /// Returns read-only clients for the accounts. `None` for a store at AWS, because only commands
    /// on a local store hold tokens.
    pub(crate) fn providers(&self) -> anyhow::Result<Option<Providers>> {
        let Place::Local(opened) = &self.place else { return Ok(None) };
        Ok(Some(opened.providers()?))
    }

    /// Reads the current time again, from the store's clock or the simulator's.
    pub(crate) async fn read_clock(&self) -> anyhow::Result<Timestamp> {
        if let Place::Local(opened) = &self.place
            && let Some(now) = opened.simulated_now().await?
        {
            return Ok(now);
        }
        let theirs = self.store.clock().await?;
        Ok(theirs.unwrap_or_else(|| self.clock.now()))
    }

    /// Waits in real time, for a person who is reading. A simulator's clock does not advance.
    pub(crate) async fn pause(&self, duration: Duration) {
        Clock::machine().sleep(duration).await;
    }

    /// Waits: in real time, or by advancing a simulator's clock.
    pub(crate) async fn wait(&self, duration: Duration) -> anyhow::Result<()> {
        if let Place::Local(opened) = &self.place {
            return opened.wait(duration).await;
        }
        self.clock.sleep(duration).await;
        Ok(())
    }
}

/// Returns what could be read. What a newer program wrote is left alone and reported.
pub(crate) fn readable<T>(found: ReadItems<T>) -> T {
    found.unreadable.iter().for_each(|one| output::warn(one));
    found.read
}

/// Returns all records. What a newer program wrote is left out and reported.
pub(crate) async fn all_records(store: &Store) -> anyhow::Result<Vec<Record>> {
    Ok(readable(store.all_records().await.context("cannot read the store")?))
}
