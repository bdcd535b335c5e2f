//! Shell completion candidates: the names known to the store or to the configuration file in the
//! current folder.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use clap_complete::{ArgValueCandidates, CompletionCandidate};
use domain::{configuration::OverrideTarget, record::Record};
use jiff::Timestamp;

use crate::{
    configuration_file::{self, ListedResources},
    connection::{Connection, Session},
    names::Names,
};

/// Longest wait for the store: a person waits at the prompt, so its names are left out after that.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) fn schedules() -> ArgValueCandidates {
    candidates(|known| known.configuration().schedules.keys().map(ToString::to_string).collect())
}

pub(crate) fn accounts() -> ArgValueCandidates {
    candidates(|known| known.configuration().accounts.keys().map(ToString::to_string).collect())
}

/// The resources, by name where that is unique and by reference elsewhere; for `override clear` and
/// `extend` those that are overridden.
pub(crate) fn resources() -> ArgValueCandidates {
    candidates(|known| {
        let mut alike = BTreeMap::<&str, usize>::new();
        for record in &known.records {
            *alike.entry(&record.name).or_default() += 1;
        }
        let words: Vec<_> = env::args_os().collect();
        let of_overrides = |pair: &[OsString]| {
            pair[0] == "override" && (pair[1] == "clear" || pair[1] == "extend")
        };
        let only_overridden = words.windows(2).any(of_overrides);
        let target = |one: &Record| OverrideTarget::Resource(one.reference.clone());
        let wanted = known.records.iter().filter(|one| {
            let overridden = known.in_force.overrides.get(&target(one));
            !only_overridden || overridden.is_some_and(|one| one.ends_at > known.now)
        });
        let name = |one: &Record| match alike[one.name.as_str()] {
            1 => one.name.clone(),
            _ => one.reference.to_string(),
        };
        wanted.map(name).collect()
    })
}

/// Some ways to write a time.
pub(crate) fn times() -> ArgValueCandidates {
    let times = ["2h", "21:00", "tomorrow 9am", "today", "monday", "next-edge"];
    ArgValueCandidates::new(move || times.map(CompletionCandidate::new).into())
}

/// Candidates among what is known. A failure is not shown at a prompt; it yields no names.
fn candidates(names: fn(&Names) -> BTreeSet<String>) -> ArgValueCandidates {
    ArgValueCandidates::new(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread();
        let Ok(runtime) = { runtime }.enable_all().build() else {
            return Vec::new();
        };
        let stored = async { tokio::time::timeout(PATIENCE, stored()).await.ok()?.ok() };
        let known = runtime.block_on(tokio::task::LocalSet::new().run_until(stored));
        runtime.shutdown_background();
        let names = known.or_else(of_file).as_ref().map(names).unwrap_or_default();
        names.into_iter().map(CompletionCandidate::new).collect()
    })
}

async fn stored() -> anyhow::Result<Names> {
    let connection = Connection { data: data(), ..Connection::default() };
    let Session { store, now, .. } = connection.open().await?;
    Names::read(&store, now).await
}

fn of_file() -> Option<Names> {
    let parsed =
        configuration_file::load(Path::new("offhours.toml"), ListedResources::NeedAccounts);
    Some(Names::of_file(parsed.ok()?.configuration, Timestamp::MIN))
}

/// The store's file, if the command line so far or the environment names one.
fn data() -> Option<PathBuf> {
    let words: Vec<_> = env::args_os().collect();
    let after = words.windows(2).find(|pair| pair[0] == "--data");
    let joined = words.iter().find_map(|word| word.to_str()?.strip_prefix("--data="));
    let named = after.map(|pair| pair[1].clone()).or(joined.map(Into::into));
    named.or_else(|| env::var_os("OFFHOURS_DATA")).map(PathBuf::from)
}
