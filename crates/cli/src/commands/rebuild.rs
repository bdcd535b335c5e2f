//! `offhours rebuild`: makes records again from what the clouds show.

use domain::{configuration::Generation, invocation::Question, record::Record};
use lifecycle::report::Remains;
use local::file::Purpose;
use report::count;
use schemars::JsonSchema;
use serde::Serialize;
use store::{Store, StoreError};

use crate::{
    Exit,
    ask::confirm,
    context::Context,
    output::{self, Format},
    print::{Cell, Column, Row},
};

/// Make records again after the store was lost without a backup.
///
/// Apply the configuration to an empty store first, and start the service afterward. What the clouds
/// show of us by our labels becomes records again: a machine of which only snapshots are left counts
/// as hibernated, and is recreated from the newest complete one at its next start; a machine that
/// was recreated keeps its reference and its snapshots. Records are shown before they are written,
/// none is overwritten, and the command may be repeated.
///
/// A machine that was deleted by a person looks hibernated if its snapshots are left: delete those
/// first. No cloud shows what a resource was like before a stop made it smaller: what is as small as
/// its stops leave it is named.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours rebuild --data offhours.db
  offhours rebuild --dry-run -o json | jq '.[] | select(.to_do)'

The exit code is 3 if anything is left for a person to do.")]
pub struct Args {
    /// Show what was found, and write nothing.
    #[arg(long)]
    dry_run: bool,
}

/// A resource of which a cloud shows something that no record knows.
#[derive(Serialize, JsonSchema)]
pub(super) struct Remnant {
    /// The resource, as `ACCOUNT/KIND/ID`; the account alone if it could not be asked.
    resource: String,
    /// Its name at the provider.
    name: String,
    /// What was found.
    found: String,
    /// What is left for a person to do; null if nothing.
    to_do: Option<String>,
    /// Whether a record of it can be written.
    sufficient: bool,
    /// Whether its record was written.
    written: bool,
}

impl Row for Remnant {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::Fixed("Resource", |row, _| Cell::new(&row.resource)),
        Column::Fixed("Name", |row, _| Cell::new(&row.name)),
        Column::Fixed("Record", |row, _| Cell::new(if row.sufficient { "yes" } else { "no" })),
        Column::Fixed("Found", |row, _| Cell::new(&row.found)),
        Column::Fixed("To do", |row, _| Cell::any(row.to_do.as_ref())),
    ];
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    let purpose = if args.dry_run { Purpose::Read } else { Purpose::Change };
    let session = context.connection.open_for(purpose).await?;
    if session.store.head().await?.generation == Generation(0) {
        bail_usage!("no configuration is in force: `offhours apply` first");
    }
    let accounts = session.functions()?.ask(Question::Remains).await?.remains;
    let (mut rows, mut records) = (Vec::new(), Vec::new());
    for of in accounts {
        rows.extend(of.error.map(|error| Remnant {
            resource: of.account.to_string(),
            name: String::new(),
            found: "unknown".to_owned(),
            to_do: Some(error),
            sufficient: false,
            written: false,
        }));
        for Remains { resource, name, found, to_do, record } in of.found {
            let (resource, sufficient) = (resource.to_string(), record.is_some());
            records.extend(record.map(|record| (rows.len(), *record)));
            rows.push(Remnant { resource, name, found, to_do, sufficient, written: false });
        }
    }
    let screen = context.screen(None, session.now);
    let shows = context.format == Format::Table;
    if shows {
        screen.rows(&rows, "Nothing was found that is not recorded.")?;
    }
    if !args.dry_run && !records.is_empty() {
        let question = format!("Write {}?", count(records.len(), "record"));
        confirm(&question, "nothing was written", context)?;
        for (place, record) in records {
            rows[place].written = write(&session.store, record).await?;
            if !rows[place].written {
                rows[place].to_do = Some("it was recorded meanwhile".to_owned());
            }
        }
        if shows {
            let written = rows.iter().filter(|row| row.written).count();
            output::print(&format!("Wrote {}.\n", count(written, "record")))?;
        }
    }
    if !shows {
        screen.rows(&rows, "")?;
    }
    let is_done = rows.iter().all(|row| row.to_do.is_none());
    Ok(if is_done { Exit::Done } else { Exit::NeedsPerson })
}

/// Writes a record if there is none of its resource. Returns whether it did.
async fn write(store: &Store, record: Record) -> Result<bool, StoreError> {
    match store.save(record).await {
        Ok(_) => Ok(true),
        Err(StoreError::Stale { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
