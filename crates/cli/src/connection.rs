//! Where the commands find the service: a local store's file, or AWS.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context as _;
use domain::{
    invocation::{Invocation, Question},
    record::{Direction, Record},
};
use environment::{
    Clock, LambdaFunctions, SteppedClock,
    aws::{self, SdkConfig},
    settings,
};
use jiff::Timestamp;
use lifecycle::{Access, Providers, Report};
use store::{Found, Store, StoreError, Tables};
use tokio::sync::mpsc;

use crate::{
    local::{
        clouds::Clouds,
        engine,
        file::{DataFile, Purpose},
        service::{Clients, News, Service},
    },
    output,
};

/// Where the service's store is.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Where the service is")]
pub struct Connection {
    /// The file of a local store, as given to `offhours local --data`; without it, AWS, found as
    /// the AWS tools find it (`AWS_PROFILE`, `AWS_REGION`, `AWS_ENDPOINT_URL`).
    #[arg(long, value_name = "FILE", env = "OFFHOURS_DATA")]
    data: Option<PathBuf>,
    /// The profile of the AWS tools' configuration to use.
    #[arg(long, value_name = "NAME", conflicts_with = "data")]
    profile: Option<String>,
    /// The AWS region of the stack.
    #[arg(long, value_name = "NAME", conflicts_with = "data")]
    region: Option<String>,
    /// The clouds are a cloud-simulator at this address, whose clock tells the time.
    #[arg(
        long,
        value_name = "URL",
        env = "OFFHOURS_SIMULATE",
        requires = "data",
        require_equals = true
    )]
    simulate: Option<String>,
}

/// The store, the time, and the way to the functions.
#[derive(Debug)]
pub struct Session {
    /// The store.
    pub store: Store,
    /// The instant at which the command was given: by the store's clock, or the simulator's.
    pub now: Timestamp,
    clock: Clock,
    clouds: Clouds,
    /// The clock of a simulator that is moved.
    stepped: Option<SteppedClock>,
    /// AWS, where the store is there.
    aws: Option<SdkConfig>,
    prefix: String,
    /// A local store's file, or its copy, which is there for as long as this is.
    _file: Option<DataFile>,
}

/// The functions that carry out commands.
#[derive(Debug)]
pub enum Functions {
    /// In this process, on a local store.
    Here(Arc<Service>),
    /// At AWS Lambda.
    Lambda(LambdaFunctions),
}

impl Functions {
    /// Invokes stop or start and waits for its report.
    pub async fn command(
        &self,
        direction: Direction,
        invocation: Invocation,
    ) -> anyhow::Result<Report> {
        Ok(match self {
            Self::Here(service) => service.command(direction, invocation).await?,
            Self::Lambda(lambda) => lambda.command(direction, &invocation).await?,
        })
    }

    /// Asks poll-status and waits for its report.
    pub async fn ask(&self, question: Question) -> anyhow::Result<Report> {
        Ok(match self {
            Self::Here(service) => service.ask(question).await?,
            Self::Lambda(lambda) => lambda.ask(&question).await?,
        })
    }
}

impl Connection {
    /// To a local store's file, or to AWS as the environment has it.
    pub(crate) fn at(data: Option<PathBuf>) -> Self {
        Self {
            data,
            profile: None,
            region: None,
            simulate: None,
        }
    }

    /// Opens the store to look at it.
    pub async fn open(&self) -> anyhow::Result<Session> {
        self.session(Purpose::Look).await
    }

    /// Opens the store to change what it holds.
    pub async fn open_to_change(&self) -> anyhow::Result<Session> {
        self.session(Purpose::Change).await
    }

    /// Opens the store to change what it holds; a local one is made if there is none.
    pub async fn open_or_create(&self) -> anyhow::Result<Session> {
        self.session(Purpose::Create).await
    }

    /// Whether a local store exists; one at AWS is taken to be there.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.data.as_ref().is_none_or(|file| file.exists())
    }

    /// Whether the store is a file of this machine.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.data.is_some()
    }

    /// The file of a local store; nothing for AWS.
    #[must_use]
    pub fn file(&self) -> String {
        let file = self.data.as_ref();
        file.map(|path| path.display().to_string())
            .unwrap_or_default()
    }

    async fn session(&self, purpose: Purpose) -> anyhow::Result<Session> {
        let prefix = settings::table_prefix()?;
        let (clouds, simulated) = match &self.simulate {
            Some(url) => Clouds::elsewhere(url).await?,
            None => (Clouds::Real, None),
        };
        let stepped = simulated.map(SteppedClock::at);
        let clock = stepped.clone().map_or_else(Clock::machine, Clock::from);
        let tables = Tables::prefixed(&prefix);
        let (store, aws, file) = if let Some(path) = &self.data {
            let file = DataFile::open(path, purpose)?;
            (local_store(&file, tables).await?, None, Some(file))
        } else {
            let (profile, region) = (self.profile.as_deref(), self.region.as_deref());
            let config = aws::config_of(profile, region).await;
            (Store::connect(&config, tables), Some(config), None)
        };
        let told = store.clock().await;
        let told = told.map_err(|error| unreachable(error, &prefix))?;
        let now = match (&stepped, told) {
            (None, Some(told)) => told,
            (Some(_), _) | (None, None) => clock.now(),
        };
        Ok(Session {
            store,
            now,
            clock,
            clouds,
            stepped,
            aws,
            prefix,
            _file: file,
        })
    }
}

async fn local_store(file: &DataFile, tables: Tables) -> anyhow::Result<Store> {
    let address = engine::serve(Some(&file.path()), ([127, 0, 0, 1], 0).into()).await?;
    let store = Store::connect(&aws::local_config(&format!("http://{address}")), tables);
    let made = store.create_tables().await;
    made.with_context(|| format!("cannot use the store at {}", file.path().display()))?;
    Ok(store)
}

/// Why the store does not answer, and what to do about it.
fn unreachable(error: StoreError, prefix: &str) -> anyhow::Error {
    let advice = if error.is_missing_table() {
        format!(
            "this AWS account has no tables `{prefix}…` in this region: name the region of the \
             stack with --region, or a local store with --data"
        )
    } else {
        "cannot reach the store: name a local one with --data, or see that --profile, --region \
         and the credentials of the AWS tools are right"
            .to_owned()
    };
    anyhow::Error::new(error).context(advice)
}

impl Session {
    /// The present instant, as it goes on.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Whether a simulator's clock tells the time.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        self.stepped.is_some()
    }

    /// AWS, where the store is there.
    #[must_use]
    pub fn aws(&self) -> Option<&SdkConfig> {
        self.aws.as_ref()
    }

    /// The functions. In this process they send what happens to `news`.
    pub fn functions(
        &self,
        news: Option<mpsc::UnboundedSender<News>>,
    ) -> anyhow::Result<Functions> {
        if let Some(config) = &self.aws {
            return Ok(Functions::Lambda(LambdaFunctions::of_stack(
                config,
                &self.prefix,
            )));
        }
        Ok(Functions::Here(Service::new(
            self.store.clone(),
            Clients::of(&self.clouds)?,
            self.clock.clone(),
            self.stepped.clone(),
            news,
        )))
    }

    /// Clients for the accounts, to look alone; only a local store's commands hold tokens.
    pub fn providers(&self) -> anyhow::Result<Providers> {
        Ok(Providers::new(
            Access::Read,
            self.clouds.tokens()?,
            self.clouds.endpoints()?,
            provider::http_client()?,
        ))
    }

    /// The present instant, told anew: by the store's clock, or the simulator's.
    pub async fn tell_time(&self) -> anyhow::Result<Timestamp> {
        if let (Some(stepped), Some(now)) = (&self.stepped, self.clouds.clock().await?) {
            stepped.advance_to(now);
            return Ok(stepped.now());
        }
        let told = self.store.clock().await?;
        Ok(told.unwrap_or_else(|| self.clock.now()))
    }

    /// Lets real time pass, for a person who reads: a simulator's clock is not moved by it.
    pub async fn pause(&self, duration: Duration) {
        Clock::machine().sleep(duration).await;
    }

    /// Lets time pass: real time, or that of a simulator whose clock is moved.
    pub async fn wait(&self, duration: Duration) -> anyhow::Result<()> {
        match &self.stepped {
            None => self.clock.sleep(duration).await,
            Some(stepped) => {
                let to = self.clock.now() + duration;
                self.clouds.advance_to(to).await?;
                stepped.advance_to(to);
            }
        }
        Ok(())
    }
}

/// What could be read; what a newer program wrote is left alone, and said.
pub(crate) fn readable<T>(found: Found<T>) -> T {
    found.unreadable.iter().for_each(|one| output::warn(one));
    found.read
}

/// All records, those of accounts that are configured no more included. What a newer program
/// wrote is left out, and told.
pub async fn all_records(store: &Store) -> anyhow::Result<Vec<Record>> {
    let mut records = Vec::new();
    for account in store.accounts().await.context("cannot read the store")? {
        let mut pages = store.record_pages(&account);
        while let Some(page) = pages.next().await? {
            for record in page {
                match record {
                    Ok(record) => records.push(record),
                    Err(error) => output::warn(&error),
                }
            }
        }
    }
    Ok(records)
}
