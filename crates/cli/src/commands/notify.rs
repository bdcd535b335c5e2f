//! `offhours notify`: the targets to which events are sent.

use domain::TargetName;
use local::{file::Purpose, notify::Notifier};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    Exit,
    context::Context,
    names::exists,
    print::{Cell, Column, Row},
};

/// Try the targets to which events are sent.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Test(TestArgs),
}

/// Send a test to each target of the configuration in force.
///
/// A target that accepts it gets events again, even if it answered before that it was gone. The
/// command reads the secrets with your rights. Exit code 1 if a target does not accept it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours notify test --data offhours.db
  offhours notify test ops")]
struct TestArgs {
    /// The targets to try, [notify.NAME] [default: all].
    #[arg(value_name = "NAME")]
    targets: Vec<TargetName>,
}

/// What became of the test of a target.
#[derive(Serialize, JsonSchema)]
pub(super) struct Tested {
    /// The target's name.
    target: String,
    /// What it is.
    kind: String,
    /// Why it did not accept the test; null if it did.
    error: Option<String>,
}

impl Row for Tested {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::Fixed("Target", |row, _| Cell::new(&row.target)),
        Column::Fixed("Kind", |row, _| Cell::new(&row.kind)),
        Column::Text("Test", |row, _| Cell::new(row.error.as_deref().unwrap_or("accepted"))),
    ];
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    let Command::Test(args) = &args.command;
    if !context.connection.is_local() {
        bail_usage!(
            "events of a stack on AWS are on its bus: [notify] is for a store of `offhours \
                       serve`, --data FILE"
        );
    }
    let session = context.connection.open_for(Purpose::Change).await?;
    let configuration = session.store.in_force().await?.configuration;
    let targets = &configuration.settings.notify;
    for name in &args.targets {
        exists("target", name.as_str(), targets.keys().map(TargetName::as_str))?;
    }
    let notifier = Notifier::new(session.store.clone())?;
    let mut tested = Vec::new();
    for (name, target) in targets {
        if args.targets.is_empty() || args.targets.contains(name) {
            let sent = notifier.test(name, target, session.now).await?;
            tested.push(Tested {
                target: name.to_string(),
                kind: target.kind.to_string(),
                error: sent.err().map(|error| error.to_string()),
            });
        }
    }
    context.screen(None, session.now).rows(&tested, "There are no targets ([notify.NAME]).")?;
    let all_accepted = tested.iter().all(|one| one.error.is_none());
    Ok(if all_accepted { Exit::Done } else { Exit::Failed })
}
