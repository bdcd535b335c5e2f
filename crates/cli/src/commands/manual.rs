//! `offhours stop` and `offhours start`: act now, through the same life cycle, until the result is
//! seen.

use domain::{
    AccountName, ScheduleName,
    invocation::CommandTarget,
    record::{Direction, Phase, Record},
};

use super::Format;
use crate::{
    Exit,
    ask::confirm,
    author::{author, reason},
    candidates,
    carry_out::{Command, Until, carry_out},
    configuration_file::count,
    connection::{Connection, Session, all_records},
    output,
    resolve::{self, nearest::exists},
};

/// The resources to stop or start.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours stop web-1 --data offhours.db          by its name, where that is unique
  offhours start do-main/droplet/3164444
  offhours stop \"ci-*\"                            all whose names match
  offhours stop --schedule office-hours --dry-run
  offhours start --account hz-eu --no-wait

A manual command stands until the schedule's next edge. It is declined for what is protected,
opted out, or under an enforced schedule. Exit code 3: done, and something needs a person.")]
pub struct Args {
    /// Resources, by reference, by unique name or by a pattern with `*` and `?`.
    #[arg(value_name = "RESOURCE", required_unless_present_any = ["schedule", "account"], add = candidates::resources())]
    resources: Vec<String>,
    /// All resources that follow this schedule.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["resources", "account"], add = candidates::schedules())]
    schedule: Option<ScheduleName>,
    /// All resources in this account that follow a schedule.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["resources", "schedule"], add = candidates::accounts())]
    account: Option<AccountName>,
    /// Show the requests that would be sent, after reading each resource, and send nothing.
    #[arg(long)]
    dry_run: bool,
    /// Return as soon as the stop or start is requested.
    #[arg(long, conflicts_with = "dry_run")]
    no_wait: bool,
    /// Skip the confirmation before stopping --schedule, --account, or ten resources or more.
    #[arg(short, long)]
    yes: bool,
    /// Reason that `offhours activity` shows.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: Option<String>,
    /// Output format.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    connection: Connection,
}

/// Stops or starts resources and, unless told not to wait, follows them until the result is seen.
pub async fn run(args: &Args, direction: Direction) -> anyhow::Result<Exit> {
    let session = args.connection.open_for_write().await?;
    let Target { named, records } = target(args, &session).await?;
    let whole = args.resources.is_empty();
    let asks = direction == Direction::Stop && (whole || records.len() >= MANY);
    if asks
        && !args.dry_run
        && !args.yes
        && !records.is_empty()
        && !confirm(&question(&records), args.format)?
    {
        output::remark("Nothing was stopped.\n");
        return Ok(Exit::Done);
    }
    let author = if args.dry_run {
        None
    } else {
        Some(author(&session, args.reason.clone()).await?)
    };
    let command = Command {
        direction,
        target: named,
        author,
        until: if args.no_wait {
            Until::Asked
        } else {
            Until::Seen
        },
        rehearsal: false,
    };
    carry_out(&session, &command, Some(args.format)).await
}

/// A stop of this many resources or more needs confirmation.
const MANY: usize = 10;

/// The most resources named in the question.
const NAMED: usize = 20;

fn question(records: &[Record]) -> String {
    let names = records
        .iter()
        .take(NAMED)
        .map(|record| record.name.as_str());
    let names = names.collect::<Vec<_>>().join(", ");
    let more = match records.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("Stop {}: {names}{more}?", count(records.len(), "resource"))
}

/// The target that a command names, and the resources it covers.
struct Target {
    named: CommandTarget,
    records: Vec<Record>,
}

/// Resolves the target. Unknown names fail here.
async fn target(args: &Args, session: &Session) -> anyhow::Result<Target> {
    let following = async |which: &dyn Fn(&Record) -> bool| {
        let mut records = all_records(&session.store).await?;
        let is_there = |record: &Record| !matches!(record.phase, Phase::Gone { .. });
        records.retain(|record| record.opted_in && is_there(record) && which(record));
        anyhow::Ok(records)
    };
    let configuration = session.store.in_force().await?.configuration;
    if let Some(name) = &args.schedule {
        let known = configuration.schedules.keys().map(ScheduleName::as_str);
        exists("schedule", name.as_str(), known)?;
        let records = following(&|record| record.schedule.as_ref() == Some(name)).await?;
        let named = CommandTarget::Schedule(name.clone());
        return Ok(Target { named, records });
    }
    if let Some(name) = &args.account {
        let known = configuration.accounts.keys().map(AccountName::as_str);
        exists("account", name.as_str(), known)?;
        let records = following(&|record| record.reference.account == *name).await?;
        let named = CommandTarget::Account(name.clone());
        return Ok(Target { named, records });
    }
    let records = resolve::find(&session.store, &args.resources).await?;
    let references = records.iter().map(|record| record.reference.clone());
    let named = CommandTarget::Resources(references.collect());
    Ok(Target { named, records })
}

#[cfg(test)]
mod tests {
    use domain::resource::Power;

    use super::*;
    use crate::fixtures::record;

    #[test]
    fn the_question_names_what_it_is_about() {
        let records = |count: usize| -> Vec<_> {
            let named = |number| Record {
                name: format!("ci-{number}"),
                ..record("hz-eu/server/1", Power::Running, "15 00:00")
            };
            (1..=count).map(named).collect()
        };
        assert_eq!(question(&records(2)), "Stop 2 resources: ci-1, ci-2?");
        let many = question(&records(25));
        assert!(many.ends_with("ci-19, ci-20 and 5 more?"), "{many}");
    }
}
