//! `offhours restore`: makes a store from a backup.

use std::{collections::BTreeSet, path::PathBuf};

use domain::configuration::Generation;
use local::file::Purpose;
use report::count;
use store::{Store, Table};

use super::backup::Backup;
use crate::{Exit, connection::all_records, context::Context, output};

/// Make a store from a backup.
///
/// Only a store in which no configuration is in force, and no record that the backup lacks, is
/// restored to, so that nothing is overwritten. Until all of the file is written nothing is in force,
/// and the same command may be repeated. What has changed at the providers since the backup is found
/// by the next inventories: what they cannot settle by themselves is shown by `offhours status`, and
/// nothing is deleted for it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours restore --data offhours.db offhours.backup
  offhours doctor --data offhours.db    afterward: tokens, and what is owed")]
pub struct Args {
    /// File that `offhours backup` has written.
    file: PathBuf,
}

/// Returns how many records of a store differ from those of a backup: what a restore that was
/// interrupted has written does not.
async fn records_besides(backup: &Backup, store: &Store) -> anyhow::Result<usize> {
    let mut others = BTreeSet::new();
    let each = store.each_item(|item| {
        if item.table == Table::Resources {
            others.insert(serde_json::to_string(&item)?);
        }
        anyhow::Ok(())
    });
    each.await?;
    if !others.is_empty() {
        for item in backup.items()? {
            others.remove(&serde_json::to_string(&item?)?);
        }
    }
    Ok(others.len())
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    let backup = Backup::open(&args.file)?;
    let session = context.connection.open_for(Purpose::Create).await?;
    let Generation(generation) = session.store.head().await?.generation;
    if generation > 0 {
        bail_usage!(
            "this store is in use: generation {generation} is in force; restore into an empty one"
        );
    }
    let others = records_besides(&backup, &session.store).await?;
    if others > 0 {
        bail_usage!(
            "this store has {} that the backup lacks or has otherwise, though no configuration is in \
             force: restore into an empty store",
            count(others, "record")
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

#[cfg(test)]
mod tests {
    use domain::{record::Record, resource::Power};
    use store::item::FORMAT;

    use super::*;
    use crate::fixtures::*;

    const CONFIGURATION: &str = "accounts.hz-eu = { provider = \"hetzner\", token = \"env:T\" }";

    /// A backup of all that is in a store.
    async fn backup_of(store: &Store) -> (tempfile::NamedTempFile, Backup) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let taken =
            format!(r#"{{"offhours":"0","format":{FORMAT},"taken_at":"{}"}}"#, at("15 00:00"));
        let mut lines = vec![taken];
        let each = store.each_item(|item| {
            lines.push(serde_json::to_string(&item)?);
            anyhow::Ok(())
        });
        each.await.unwrap();
        lines.push(format!(r#"{{"items":{}}}"#, lines.len() - 1));
        std::fs::write(file.path(), lines.join("\n") + "\n").unwrap();
        let backup = Backup::open(file.path()).unwrap();
        (file, backup)
    }

    #[tokio::test]
    async fn records_that_the_backup_lacks_or_has_otherwise_are_found() {
        let server = |id, name: &str| Record {
            name: name.to_owned(),
            ..record(&format!("hz-eu/server/{id}"), Power::Running, "15 00:00")
        };
        let whole = store_with(CONFIGURATION).await;
        for id in [1, 2] {
            whole.save(server(id, "as it was")).await.unwrap();
        }
        let (_file, backup) = backup_of(&whole).await;
        let without_head = empty_store().await;
        let besides = async || records_besides(&backup, &without_head).await.unwrap();
        assert_eq!(besides().await, 0);
        // A restore that was interrupted.
        without_head.save(server(1, "as it was")).await.unwrap();
        assert_eq!(besides().await, 0);
        without_head.save(server(2, "changed since")).await.unwrap();
        without_head.save(server(3, "new")).await.unwrap();
        assert_eq!(besides().await, 2);
    }
}
