//! Where the commands find the service: a local store's file, or AWS.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context as _, bail};
use domain::{ResourceRef, record::Record};
use environment::{Clock, LambdaFunctions, Tokens, aws, settings};
use lifecycle::{Outcome, Providers};
use store::{Store, Tables};
use tokio::sync::mpsc;

use crate::{
    exit::UsageError,
    local::{engine, service::Service},
    nearest::nearest,
};

/// Where the service's store is.
#[derive(Debug, Clone, clap::Args)]
pub struct Connection {
    /// The file of a local store, as given to `offhours local --data`; without it, AWS, found as
    /// the AWS tools find it (`AWS_PROFILE`, `AWS_REGION`, `AWS_ENDPOINT_URL`).
    #[arg(long, value_name = "FILE", global = true)]
    data: Option<PathBuf>,
}

/// The functions that carry out commands.
#[derive(Debug)]
pub enum Functions {
    /// In this process, on a local store.
    Here(Arc<Service>),
    /// At AWS Lambda.
    Lambda(LambdaFunctions),
}

impl Connection {
    /// The store.
    pub async fn store(&self) -> anyhow::Result<Store> {
        let prefix = settings::table_prefix()?;
        let config = match &self.data {
            Some(path) => {
                if !path.exists() {
                    bail!(UsageError(format!(
                        "there is no store at {}: `offhours local --data {0}` makes one",
                        path.display()
                    )));
                }
                let address = engine::serve(Some(path), ([127, 0, 0, 1], 0).into()).await?;
                aws::local_config(&format!("http://{address}"))
            }
            None => aws::config().await,
        };
        Ok(Store::connect(&config, Tables::prefixed(&prefix)))
    }

    /// The store and the functions. In this process they tell `outcomes` what happens.
    pub async fn functions(
        &self,
        outcomes: mpsc::UnboundedSender<Outcome>,
    ) -> anyhow::Result<(Store, Functions)> {
        let store = self.store().await?;
        let functions = if self.data.is_some() {
            let providers = Providers::from_settings(Tokens::from_variables())?;
            let clock = Clock::machine();
            let service = Service::new(store.clone(), providers, clock, None, outcomes);
            Functions::Here(service)
        } else {
            let config = aws::config().await;
            Functions::Lambda(LambdaFunctions::from_settings(&config)?)
        };
        Ok((store, functions))
    }
}

/// All records of the configured accounts.
pub async fn all_records(store: &Store) -> anyhow::Result<Vec<Record>> {
    let in_force = store.in_force().await.context("cannot read the store")?;
    let mut records = Vec::new();
    for account in in_force.configuration.accounts.keys() {
        records.extend(store.records_of(account).await?);
    }
    Ok(records)
}

/// The resource that a person names: by its reference, or by its name where that is unique.
pub fn named<'r>(target: &str, records: &'r [Record]) -> anyhow::Result<&'r Record> {
    let usage = |text: String| Err(UsageError(text).into());
    if let Ok(reference) = target.parse::<ResourceRef>() {
        let found = records.iter().find(|record| record.reference == reference);
        return match found {
            Some(record) => Ok(record),
            None => usage(format!("no inventory has seen {reference}")),
        };
    }
    let mut found = records.iter().filter(|record| record.name == target);
    match (found.next(), found.next()) {
        (Some(record), None) => Ok(record),
        (Some(first), Some(second)) => usage(format!(
            "`{target}` is the name of several: write {} or {}",
            first.reference, second.reference
        )),
        (None, _) => {
            let names = records.iter().map(|record| record.name.as_str());
            match nearest(target, names) {
                Some(name) => usage(format!("no resource `{target}`; did you mean `{name}`?")),
                None => usage(format!(
                    "no resource `{target}`; `offhours status` lists those that are known"
                )),
            }
        }
    }
}
