//! Shell completion candidates: the names known to the store or to the configuration file in the
//! current folder.

use std::{
    collections::BTreeSet,
    env,
    path::{Path, PathBuf},
    time::Duration,
};

use clap_complete::{ArgValueCandidates, CompletionCandidate};
use domain::configuration::Configuration;

use crate::{
    configuration_file::{self, ListedResources},
    connection::{Connection, all_records},
};

/// Longest wait for the store: a person waits at the prompt, so its names are left out after that.
const PATIENCE: Duration = Duration::from_secs(2);

/// The schedules.
pub(crate) fn schedules() -> ArgValueCandidates {
    ArgValueCandidates::new(|| listed(|names| names.schedules))
}

/// The accounts.
pub(crate) fn accounts() -> ArgValueCandidates {
    ArgValueCandidates::new(|| listed(|names| names.accounts))
}

/// The resources, by name where that is unique and by reference elsewhere.
pub(crate) fn resources() -> ArgValueCandidates {
    ArgValueCandidates::new(|| listed(|names| names.resources))
}

#[derive(Debug, Default)]
struct Names {
    schedules: BTreeSet<String>,
    accounts: BTreeSet<String>,
    resources: BTreeSet<String>,
}

impl Names {
    /// The names in a configuration, which has no resource names.
    fn of(configuration: &Configuration) -> Self {
        let (schedules, accounts) = (&configuration.schedules, &configuration.accounts);
        Self {
            schedules: schedules.keys().map(ToString::to_string).collect(),
            accounts: accounts.keys().map(ToString::to_string).collect(),
            resources: BTreeSet::new(),
        }
    }
}

/// Returns the candidates. A failure is not shown at a prompt; it yields no names.
fn listed(which: impl Fn(Names) -> BTreeSet<String>) -> Vec<CompletionCandidate> {
    let runtime = tokio::runtime::Builder::new_multi_thread();
    let Ok(runtime) = { runtime }.enable_all().build() else {
        return Vec::new();
    };
    let stored = async {
        let stored = tokio::time::timeout(PATIENCE, stored());
        stored.await.ok().and_then(Result::ok)
    };
    let names = runtime.block_on(tokio::task::LocalSet::new().run_until(stored));
    runtime.shutdown_background();
    let names = which(names.or_else(of_file).unwrap_or_default());
    names.into_iter().map(CompletionCandidate::new).collect()
}

async fn stored() -> anyhow::Result<Names> {
    let store = Connection::at(data()).open().await?.store;
    let configuration = store.in_force().await?.configuration;
    let records = all_records(&store).await?;
    let mut names = Names::of(&configuration);
    for record in &records {
        let is_alone = records.iter().filter(|other| other.name == record.name).count() == 1;
        names.resources.insert(if is_alone {
            record.name.clone()
        } else {
            record.reference.to_string()
        });
    }
    Ok(names)
}

fn of_file() -> Option<Names> {
    let parsed =
        configuration_file::load(Path::new("offhours.toml"), ListedResources::NeedAccounts);
    Some(Names::of(&parsed.ok()?.configuration))
}

/// The store's file, if the command line so far or the environment names one.
fn data() -> Option<PathBuf> {
    let words: Vec<_> = env::args_os().collect();
    let after = words.windows(2).find(|pair| pair[0] == "--data");
    let joined = words.iter().find_map(|word| word.to_str()?.strip_prefix("--data="));
    let named = after.map(|pair| pair[1].clone()).or(joined.map(Into::into));
    named.or_else(|| env::var_os("OFFHOURS_DATA")).map(PathBuf::from)
}
