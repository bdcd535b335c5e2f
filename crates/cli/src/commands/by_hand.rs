//! `offhours stop` and `offhours start`: now, through the same life cycle, until it is seen.

use domain::{AccountName, ScheduleName, record::Direction};
use serde_json::{Value, json};

use super::Format;
use crate::{
    Exit,
    carry_out::{Command, Until, carry_out},
    connection::{Connection, Session},
    lookup,
    nearest::exists,
};

/// What to stop or start.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours stop web-1 --data offhours.db          by its name, where that is unique
  offhours start do-main/droplet/3164444
  offhours stop --schedule office-hours --dry-run
  offhours start --account hz-eu --no-wait

A command by hand stands until the schedule's next edge. It is declined for what is protected,
opted out, or under an enforced schedule. Exit code 3: done, and something needs a person.")]
pub struct Args {
    /// Resources, by reference or by unique name.
    #[arg(value_name = "RESOURCE", required_unless_present_any = ["schedule", "account"])]
    resources: Vec<String>,
    /// All that follows this schedule.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["resources", "account"])]
    schedule: Option<ScheduleName>,
    /// All that follows some schedule in this account.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["resources", "schedule"])]
    account: Option<AccountName>,
    /// Say which requests would be sent, after a look at each resource, and send nothing.
    #[arg(long)]
    dry_run: bool,
    /// Return as soon as it is asked for.
    #[arg(long, conflicts_with = "dry_run")]
    no_wait: bool,
    /// How to print what happens.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    connection: Connection,
}

/// Stops or starts, and follows it until it is seen.
pub async fn run(args: &Args, direction: Direction) -> anyhow::Result<Exit> {
    let session = args.connection.open_to_change().await?;
    let command = Command {
        direction,
        target: target(args, &session).await?,
        dry_run: args.dry_run,
        until: if args.no_wait {
            Until::Asked
        } else {
            Until::Seen
        },
    };
    carry_out(&session, &command, Some(args.format)).await
}

/// What stop and start are told; names that do not exist are answered here.
async fn target(args: &Args, session: &Session) -> anyhow::Result<Value> {
    let configuration = session.store.in_force().await?.configuration;
    if let Some(name) = &args.schedule {
        let known = configuration.schedules.keys().map(ScheduleName::as_str);
        exists("schedule", name.as_str(), known)?;
        return Ok(json!({ "schedule": name }));
    }
    if let Some(name) = &args.account {
        let known = configuration.accounts.keys().map(AccountName::as_str);
        exists("account", name.as_str(), known)?;
        return Ok(json!({ "account": name }));
    }
    let records = lookup::find(&session.store, &args.resources).await?;
    let references: Vec<_> = records.iter().map(|record| &record.reference).collect();
    Ok(json!({ "resources": references }))
}
