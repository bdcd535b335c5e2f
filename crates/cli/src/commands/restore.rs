//! `offhours restore`: makes a store from a backup.

use std::path::PathBuf;

use domain::configuration::Generation;
use report::count;

use super::backup::Backup;
use crate::{Exit, connection::all_records, context::Context, output};

/// Make a store from a backup.
///
/// Only a store in which no configuration is in force is restored to, so that nothing is overwritten.
/// Until all of the file is written nothing is in force, and the same command may be repeated. What
/// has changed at the providers since the backup is found by the next inventories: what they cannot
/// settle by themselves is shown by `offhours status`, and nothing is deleted for it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours restore --data offhours.db offhours.backup
  offhours doctor --data offhours.db    afterward: tokens, and what is owed")]
pub struct Args {
    /// File that `offhours backup` has written.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    let backup = Backup::open(&args.file)?;
    let session = context.connection.open_or_create().await?;
    let Generation(generation) = session.store.head().await?.generation;
    if generation > 0 {
        bail_usage!(
            "this store is in use: generation {generation} is in force; restore into an empty one"
        );
    }
    session.store.restore(backup.items()?).await?;
    let in_force = session.store.in_force().await?;
    let records = all_records(&session.store).await?;
    let is_owed =
        |record: &&domain::record::Record| record.saved.is_some() || record.is_irreplaceable();
    let owed = records.iter().filter(is_owed).count();
    let screen = context.screen(&*in_force.configuration, session.now);
    output::print(&format!(
        "Restored {}, {} of them owed a size or a machine, as of {}\nNext: `offhours doctor` checks \
         the tokens and what is owed; then start the service.\n",
        count(records.len(), "resource"),
        owed,
        screen.time(backup.header.taken_at),
    ))?;
    Ok(Exit::Done)
}
