//! `offhours config`: what was applied, and the way back to it.

mod log;
pub mod schema;
mod show;

use anyhow::bail;
use domain::configuration::{Configuration, Generation};
use store::{LogEntry, Store};

use super::apply::{self, ProposedConfiguration};
use crate::{Exit, context::Context};

/// Show, list and take back what was applied.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Show(show::Args),
    Log(log::Args),
    Rollback(RollbackArgs),
    Schema(schema::Args),
}

/// Put what was in force before into force again.
///
/// It takes the next number, and is shown and confirmed like an apply.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours config rollback           to what was in force before
  offhours config rollback 7         to what generation 7 said
  offhours config rollback --dry-run")]
pub(crate) struct RollbackArgs {
    /// The generation to go back to, as `offhours config log` lists them [default: the one before].
    #[arg(value_name = "NUMBER")]
    generation: Option<u64>,
    #[command(flatten)]
    options: apply::Options,
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    match &args.command {
        Command::Show(args) => show::run(args, context).await,
        Command::Log(args) => log::run(args, context).await,
        Command::Rollback(args) => roll_back(args, context).await,
        Command::Schema(args) => schema::run(args),
    }
}

/// Applies an earlier generation, with the same checks as any other configuration: it too may strand
/// resources that are stopped now.
async fn roll_back(args: &RollbackArgs, context: &Context) -> anyhow::Result<Exit> {
    let session = context.connection.open().await?;
    let wanted = args.generation.map_or(Wanted::BeforeIt, Wanted::Number);
    let (entry, configuration, _) = generation(&session.store, wanted).await?;
    let proposed = ProposedConfiguration {
        source: format!("generation {}", entry.generation),
        configuration,
        warnings: Vec::new(),
        repeats: Some(entry.generation),
    };
    apply::put_into_force(proposed, &args.options, &session, context).await
}

/// A generation, as seen from the one in force.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    Number(u64),
    InForce,
    BeforeIt,
}

/// Reads a generation, and which one is in force.
async fn generation(
    store: &Store,
    wanted: Wanted,
) -> anyhow::Result<(LogEntry, Configuration, Generation)> {
    let present = store.head_and_overrides().await?.head.generation;
    if present == Generation::default() {
        bail!("nothing is stored yet: `offhours apply` stores a configuration");
    }
    let found = store.log(usize::MAX).await?.into_iter().find(|entry| match wanted {
        Wanted::Number(number) => entry.generation.0 == number,
        Wanted::InForce => entry.generation == present,
        Wanted::BeforeIt => entry.generation < present,
    });
    let Some(entry) = found else {
        let missing = match wanted {
            Wanted::Number(number) => format!("there is no generation {number}"),
            Wanted::InForce | Wanted::BeforeIt => "nothing was in force before".to_owned(),
        };
        let advice = "`offhours config log` lists those that were in force";
        bail_usage!("{missing}: {advice}");
    };
    let configuration = store.configuration(entry.generation).await?;
    Ok((entry, configuration, present))
}
