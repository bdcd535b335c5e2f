//! What `serve` and `local` share: the configuration that they put into force, the store's file that
//! one process at a time works on, and what they show while the service runs.

use std::{io, path::Path, pin::Pin};

use domain::{
    activity::Activity,
    configuration::{Account, Configuration, Generation},
    decision::Rules,
};
use jiff::Timestamp;
use local::{
    file::{DataFile, Lock, Purpose},
    service::ServiceEvent,
};
use report::consequences::Consequences;
use store::{Applying, Store};
use tokio::sync::mpsc;

use crate::{
    apply::difference,
    ask::confirm,
    configuration_file::{self, ListedResources},
    connection::{all_records, readable, remark_on},
    context::Context,
    output,
    view::View,
};

/// Shows what happens while the service runs, until it ends or `interrupt` does. Returns whether it
/// was interrupted.
pub(crate) async fn follow(
    running: impl Future<Output = anyhow::Result<()>>,
    view: &mut View,
    news: &mut mpsc::UnboundedReceiver<ServiceEvent>,
    mut interrupt: Pin<&mut impl Future<Output = io::Result<()>>>,
) -> anyhow::Result<bool> {
    tokio::pin!(running);
    loop {
        tokio::select! {
            biased;
            signal = &mut interrupt => {
                signal?;
                return Ok(true);
            }
            Some(news) = news.recv() => view.show_of_service(&news)?,
            result = &mut running => {
                result?;
                return Ok(false);
            }
        }
    }
}

/// Shows what has happened and was not shown yet.
pub(crate) fn show_rest(
    view: &mut View,
    news: &mut mpsc::UnboundedReceiver<ServiceEvent>,
) -> anyhow::Result<()> {
    while let Ok(news) = news.try_recv() {
        view.show_of_service(&news)?;
    }
    Ok(())
}

/// Applies a configuration, by this command, unless the stored one says the same. Asks first if it
/// sends a token or a key to a new place, unless it is the product's own and there is no terminal.
/// Refuses a configuration that would leave stopped resources behind: `offhours apply` asks what
/// becomes of those. Returns what was done, if anything.
pub(crate) async fn put_into_force(
    command: &str,
    asked: Option<&Context>,
    store: &Store,
    wanted: Option<Configuration>,
    now: Timestamp,
) -> anyhow::Result<Option<Activity>> {
    let in_force = store.in_force().await?;
    let stored = &in_force.configuration;
    let is_stored = stored.generation.0 > 0;
    let Some(mut wanted) = wanted else {
        if !is_stored {
            bail_usage!(
                "no configuration has been applied to this store: run `offhours apply`, or pass \
                 --config FILE"
            );
        }
        return Ok(None);
    };
    if is_stored && stored.eq_ignoring_generation(&wanted) {
        return Ok(None);
    }
    let new_places = new_places(&wanted, stored);
    if let Some(context) = asked.filter(|_| !new_places.is_empty()) {
        let question = format!("{} Start?", new_places.concat());
        confirm(&question, "nothing was started", context)?;
    }
    wanted.generation = Generation(stored.generation.0 + 1);
    let overrides = in_force.overrides.renamed(&wanted, stored);
    let new = Rules { configuration: &wanted, overrides: &overrides };
    let records = all_records(store).await?;
    let states = readable(store.account_states().await?);
    let consequences = Consequences::of(&records, in_force.rules(), new, &states, now);
    let Consequences { lapsing, lapsing_pauses, stranded, unprotected, .. } = consequences;
    let overrides = lapsing.iter().map(|one| format!("end an override of {}", one.target));
    let pauses = lapsing_pauses.iter().map(|one| format!("end a pause of {}", one.scope));
    let stranded = stranded.iter().map(|one| format!("leave {} stopped", one.resource));
    let unprotected = unprotected.iter().map(|one| format!("unprotect {}", one.resource));
    if let Some(what) = overrides.chain(pauses).chain(stranded).chain(unprotected).next() {
        bail_usage!(
            "this configuration would {what}: use `offhours apply`, which asks, or with --leave"
        );
    }
    wanted.generation = stored.generation;
    let changes = difference::between(stored, &wanted);
    let applying = Applying { author: command.into(), changes: difference::stored(&changes) };
    let generation = store.apply(&wanted, applying.clone(), now).await?;
    if is_stored {
        let (Generation(number), counted) = (generation, difference::counted(&changes));
        output::remark(&format!("Applied as generation {number}: {counted}.\n"));
    }
    Ok(Some(applying.activity(generation, None, now)))
}

/// Says for each account with a new address or host where its token or key goes.
fn new_places(wanted: &Configuration, stored: &Configuration) -> Vec<String> {
    let accounts = wanted.accounts.iter();
    let new = accounts.filter(|(name, account)| {
        let known = stored.accounts.get(*name);
        known != Some(account) && !account.may_be_asked(known)
    });
    let said = new.map(|(name, account)| {
        let place = account.own_destination().unwrap_or_default();
        match account {
            Account::Cloud(_) => format!("Account {name} sends its token to {place}.\n"),
            Account::Ssh(_) => format!("Account {name} runs its commands on {place}.\n"),
        }
    });
    said.collect()
}

/// Opens the store's file, creating it if there is none, for this process alone.
pub(crate) fn own_data(path: &Path) -> anyhow::Result<(DataFile, Option<Lock>)> {
    let has_it = format!(
        "another `offhours serve` or `local` works on {}: stop it first, or leave the work to it",
        path.display()
    );
    let lock = Lock::take(&path.with_added_extension("lock"), &has_it)?;
    let file = DataFile::open(path, Purpose::Create)?;
    remark_on(&file, path);
    Ok((file, lock))
}

pub(crate) fn configuration(path: &Path) -> anyhow::Result<Configuration> {
    let parsed = configuration_file::load(path, ListedResources::NeedAccounts)?;
    for warning in &parsed.warnings {
        output::remark(&format!("warning: {warning}\n"));
    }
    Ok(parsed.configuration)
}

/// Prints a one-line note if this folder's file is not what is in force.
pub(crate) async fn point_out_difference(store: &Store) -> anyhow::Result<()> {
    let path = Path::new("offhours.toml");
    if !path.exists() {
        return Ok(());
    }
    let in_force = store.in_force().await?.configuration;
    let generation = in_force.generation;
    match configuration_file::load(path, ListedResources::NeedAccounts) {
        Ok(file) if file.configuration.eq_ignoring_generation(&in_force) => {}
        Ok(_) => output::remark(&format!(
            "note: offhours.toml differs from generation {generation}, which is in force: \
             `offhours apply` shows how, and applies it\n"
        )),
        Err(_) => output::remark(&format!(
            "note: offhours.toml cannot be read, and generation {generation} is in force: \
             `offhours validate` says what is wrong, `offhours apply` applies it\n"
        )),
    }
    Ok(())
}
