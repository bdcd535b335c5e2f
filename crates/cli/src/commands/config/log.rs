//! `offhours config log`: which configuration was in force when, and who applied it.

use std::collections::BTreeMap;

use domain::{
    activity::{Action, Activity},
    configuration::Generation,
};
use jiff::{SignedDuration, Timestamp};
use report::joined;
use schemars::JsonSchema;
use serde::Serialize;
use store::{LogEntry, Store};

use crate::{
    Exit,
    apply::difference::{self, TableChange},
    context::Context,
    output::{self, Format},
    print::{self, Cell, Column, Screen},
};

/// List the configurations that were in force, newest first.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours config log
  offhours config log -p -n 1            what the latest apply changed, line by line
  offhours config rollback               back to the second of them
  offhours config show 7                 what generation 7 said")]
pub(crate) struct Args {
    /// Number of configurations to list.
    #[arg(
        long,
        short = 'n',
        value_name = "N",
        default_value_t = 20,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    limit: u32,
    /// Show the lines that each of them changed.
    #[arg(long, short)]
    patch: bool,
}

/// A configuration that came into force.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::commands) struct AppliedGeneration {
    /// Its generation.
    generation: Generation,
    /// Whether it is in force now.
    in_force: bool,
    /// When it came into force.
    applied_at: Timestamp,
    /// Who applied it.
    author: String,
    /// What its apply was for (`--message`); null if that was not given, or more than 90 days ago.
    message: Option<String>,
    /// For a rollback: the generation whose content it repeats; null otherwise.
    repeats: Option<Generation>,
    /// What it changed; null if it, or the one before, is not stored any more.
    changes: Option<Vec<TableChange>>,
}

pub(super) async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    let session = context.connection.open().await?;
    let store = &session.store;
    let in_force = store.head_and_overrides().await?.head.generation;
    let limit = args.limit as usize;
    // One more, to see what the oldest of them changed.
    let entries = store.log(limit + 1).await?;
    let mut configurations = Vec::new();
    for entry in &entries {
        configurations.push(store.configuration(entry.generation).await.ok());
    }
    if entries.last().is_some_and(|oldest| oldest.generation == Generation(1)) {
        configurations.push(store.configuration(Generation::default()).await.ok());
    }
    let mut messages = messages(store, &entries).await?;
    let rows = entries.into_iter().take(limit).enumerate().map(|(at, entry)| {
        let applied = configurations[at].as_ref();
        let before = configurations.get(at + 1).and_then(Option::as_ref);
        let changes = before.zip(applied).map(|(old, new)| difference::between(old, new));
        let LogEntry { generation, author, applied_at, repeats, .. } = entry;
        let in_force = generation == in_force;
        let message = messages.remove(&generation);
        AppliedGeneration { generation, in_force, applied_at, author, message, repeats, changes }
    });
    let rows: Vec<_> = rows.collect();
    let read = store.in_force().await.ok();
    let configuration = read.as_ref().map(|read| &*read.configuration);
    let screen = context.screen(configuration, session.now);
    if args.patch && context.format == Format::Table {
        for row in &rows {
            output::print(&row.drawn(&screen))?;
        }
    } else {
        screen.rows(&rows, "Nothing was applied yet: `offhours apply` does.")?;
    }
    if store.applied_instead(in_force).await?.is_some() {
        output::remark(&format!(
            "warning: generation {in_force} is in force, which is not the one applied last: see \
             `offhours doctor`\n"
        ));
    }
    Ok(Exit::Done)
}

/// What these applies were for, as far as the activity log has it.
async fn messages(
    store: &Store,
    applied: &[LogEntry],
) -> anyhow::Result<BTreeMap<Generation, String>> {
    let mut messages = BTreeMap::new();
    let (Some(newest), Some(oldest)) = (applied.first(), applied.last()) else {
        return Ok(messages);
    };
    let until = newest.applied_at + SignedDuration::from_secs(1);
    let mut pages = store.activity_between(oldest.applied_at, until);
    while let Some(page) = pages.next().await? {
        let message = |Activity { action, why, .. }: Activity| {
            let Action::Applied { generation, .. } = action else { return None };
            Some((generation, why?))
        };
        messages.extend(page.entries.into_iter().filter_map(message));
    }
    Ok(messages)
}

impl AppliedGeneration {
    /// What came into force when, by whom, and each line that changed.
    fn drawn(&self, screen: &Screen) -> String {
        let message = self.message.iter().map(|message| format!(": {message}"));
        let head = format!(
            "Generation {}, {} by {}{}\n",
            self.generation,
            screen.date(self.applied_at),
            self.author,
            message.collect::<String>()
        );
        let lines = self.changes.iter().flatten().map(|change| change.drawn(screen.style));
        head + &lines.collect::<String>() + "\n"
    }
}

impl print::Row for AppliedGeneration {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::Number("Generation", |row, _| Cell::new(row.generation)),
        Column::Time("Applied", |row, screen| Cell::new(screen.date(row.applied_at))),
        Column::Fixed("By", |row, _| Cell::new(&row.author)),
        Column::Text("Changes", |row, _| {
            let repeats = row.repeats.map(|of| format!("a rollback to generation {of}"));
            let in_force = row.in_force.then(|| "in force".to_owned());
            let changes = row.changes.as_ref();
            let changes = changes.map_or_else(|| "?".to_owned(), |all| difference::counted(all));
            let remarks = in_force.into_iter().chain(row.message.clone()).chain(repeats);
            Cell::new(joined(remarks.chain([changes]), "; "))
        }),
    ];
}
