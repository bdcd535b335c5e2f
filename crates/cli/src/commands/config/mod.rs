//! `offhours config`: what was applied, and the way back to it.

mod log;
pub mod schema;
mod show;

use domain::configuration::Generation;

use super::apply::{self, ProposedConfiguration};
use crate::{Exit, connection::Session, context::Context, exit::UsageError};

/// Show, list and take back what was applied.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
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
struct RollbackArgs {
    /// The generation to go back to, as `offhours config log` lists them [default: the one before].
    #[arg(value_name = "NUMBER")]
    generation: Option<u64>,
    #[command(flatten)]
    options: apply::Options,
}

impl Args {
    /// Whether what is printed is rows of one kind.
    pub(crate) fn lists(&self) -> bool {
        matches!(self.command, Command::Log(_))
    }
}

/// Runs one of the commands.
pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    match &args.command {
        Command::Show(args) => show::run(args, context).await,
        Command::Log(args) => log::run(args, context).await,
        Command::Rollback(args) => roll_back(args, context).await,
        Command::Schema(args) => schema::run(args),
    }
}

async fn roll_back(args: &RollbackArgs, context: &Context) -> anyhow::Result<Exit> {
    let session = context.connection.open().await?;
    let proposed = earlier(&session, args.generation.map(Generation)).await?;
    apply::put_into_force(proposed, &args.options, (&session, context)).await
}

/// Reads what an earlier generation said: the wanted one, or the one before that in force.
async fn earlier(
    session: &Session,
    wanted: Option<Generation>,
) -> anyhow::Result<ProposedConfiguration> {
    let present = session.store.head_and_overrides().await?.head.generation;
    let log = session.store.log(usize::MAX).await?;
    let found = log.iter().find(|entry| match wanted {
        Some(wanted) => entry.generation == wanted,
        None => entry.generation < present,
    });
    let Some(entry) = found else {
        let text = match wanted {
            Some(wanted) => format!("generation {wanted} was never in force"),
            None => "nothing was in force before".to_owned(),
        };
        return Err(UsageError(format!("{text}: `offhours config log` lists what was")).into());
    };
    Ok(ProposedConfiguration {
        source: format!("generation {}", entry.generation),
        configuration: session.store.configuration(entry.generation).await?,
        warnings: Vec::new(),
        repeats: Some(entry.generation),
    })
}
