//! `offhours log`: which configuration was in force when, and who applied it.

use domain::configuration::Generation;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use store::LogEntry;

use crate::{
    Exit,
    context::Context,
    output,
    print::{self, Screen},
    table::{Cell, Column},
};

/// List the configurations that were in force, newest first.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours log
  offhours apply --rollback              back to the second of them
  offhours export --generation 7         what generation 7 said")]
pub struct Args {
    /// Number of configurations to list.
    #[arg(
        long,
        short = 'n',
        value_name = "N",
        default_value_t = 20,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    limit: u32,
}

/// A configuration that came into force.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct AppliedGeneration {
    /// Its generation.
    generation: Generation,
    /// Whether it is in force now.
    in_force: bool,
    /// When it came into force.
    applied_at: Timestamp,
    /// Who applied it.
    author: String,
    /// For a rollback: the generation whose content it repeats; null otherwise.
    repeats: Option<Generation>,
}

/// Prints the log.
pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    let session = context.connection.open().await?;
    let store = &session.store;
    let in_force = store.head_and_overrides().await?.head.generation;
    let entries = store.log(args.limit as usize).await?;
    let rows: Vec<_> = entries.into_iter().map(|entry| row(entry, in_force)).collect();
    let read = store.in_force().await.ok();
    let configuration = read.as_ref().map(|read| &*read.configuration);
    let screen = context.screen(configuration, None, session.now);
    screen.rows(&rows, "Nothing was applied yet: `offhours apply` does.")?;
    if store.applied_instead(in_force).await?.is_some() {
        output::remark(&format!(
            "warning: generation {in_force} is in force, which is not the one applied last: see \
             `offhours doctor`\n"
        ));
    }
    Ok(Exit::Done)
}

fn row(entry: LogEntry, in_force: Generation) -> AppliedGeneration {
    AppliedGeneration {
        generation: entry.generation,
        in_force: entry.generation == in_force,
        applied_at: entry.applied_at,
        author: entry.author,
        repeats: entry.repeats,
    }
}

impl print::Row for AppliedGeneration {
    const COLUMNS: &'static [Column] =
        &[Column::number("Generation"), Column::of("Applied"), Column::of("By"), Column::text("")];

    fn cells(&self, screen: &Screen) -> Vec<Cell> {
        let repeats = self.repeats.map(|of| format!("a rollback to generation {of}"));
        let in_force = self.in_force.then(|| "in force".to_owned());
        let remarks: Vec<_> = in_force.into_iter().chain(repeats).collect();
        vec![
            Cell::new(self.generation),
            Cell::new(screen.date(self.applied_at)),
            Cell::new(&self.author),
            Cell::new(remarks.join(", ")),
        ]
    }
}
