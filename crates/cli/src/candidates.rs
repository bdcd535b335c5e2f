//! Shell completion candidates: the names known to the store or to the configuration file in the
//! current folder.

use std::{
    collections::BTreeSet,
    env,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use clap_complete::{ArgValueCandidates, CompletionCandidate};
use domain::{configuration::Configuration, record::Record};

use crate::{
    configuration_file::{self, ListedResources},
    connection::{Connection, all_records},
};

/// Longest wait for the store: a person waits at the prompt, so its names are left out after that.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) fn schedules() -> ArgValueCandidates {
    let names = |known: &Known| known.0.schedules.keys().map(ToString::to_string).collect();
    ArgValueCandidates::new(move || listed(names))
}

pub(crate) fn accounts() -> ArgValueCandidates {
    let names = |known: &Known| known.0.accounts.keys().map(ToString::to_string).collect();
    ArgValueCandidates::new(move || listed(names))
}

/// The resources, by name where that is unique and by reference elsewhere.
pub(crate) fn resources() -> ArgValueCandidates {
    let names = |Known(_, records): &Known| {
        let is_alone = |one: &Record| records.iter().filter(|r| r.name == one.name).count() == 1;
        let name = |one: &Record| {
            if is_alone(one) { one.name.clone() } else { one.reference.to_string() }
        };
        records.iter().map(name).collect()
    };
    ArgValueCandidates::new(move || listed(names))
}

/// What is known: a file has no records.
struct Known(Arc<Configuration>, Vec<Record>);

/// Returns the candidates. A failure is not shown at a prompt; it yields no names.
fn listed(names: impl Fn(&Known) -> BTreeSet<String>) -> Vec<CompletionCandidate> {
    let runtime = tokio::runtime::Builder::new_multi_thread();
    let Ok(runtime) = { runtime }.enable_all().build() else {
        return Vec::new();
    };
    let stored = async {
        let stored = tokio::time::timeout(PATIENCE, stored());
        stored.await.ok().and_then(Result::ok)
    };
    let known = runtime.block_on(tokio::task::LocalSet::new().run_until(stored));
    runtime.shutdown_background();
    let names = known.or_else(of_file).as_ref().map(names).unwrap_or_default();
    names.into_iter().map(CompletionCandidate::new).collect()
}

async fn stored() -> anyhow::Result<Known> {
    let store = Connection::at(data()).open().await?.store;
    Ok(Known(store.in_force().await?.configuration, all_records(&store).await?))
}

fn of_file() -> Option<Known> {
    let parsed =
        configuration_file::load(Path::new("offhours.toml"), ListedResources::NeedAccounts);
    Some(Known(Arc::new(parsed.ok()?.configuration), Vec::new()))
}

/// The store's file, if the command line so far or the environment names one.
fn data() -> Option<PathBuf> {
    let words: Vec<_> = env::args_os().collect();
    let after = words.windows(2).find(|pair| pair[0] == "--data");
    let joined = words.iter().find_map(|word| word.to_str()?.strip_prefix("--data="));
    let named = after.map(|pair| pair[1].clone()).or(joined.map(Into::into));
    named.or_else(|| env::var_os("OFFHOURS_DATA")).map(PathBuf::from)
}
