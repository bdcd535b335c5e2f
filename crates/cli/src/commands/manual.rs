//! `offhours stop` and `offhours start`: act now, through the same life cycle, until the result is
//! seen.

use std::collections::BTreeMap;

use domain::{
    AccountName, ResourceRef, ScheduleName,
    configuration::Configuration,
    decision::judge,
    explanation::standing_command,
    invocation::CommandTarget,
    membership::{Membership, Subject},
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
    connection::{Session, all_records, readable},
    context::Context,
    output,
    resolve::{self, nearest::exists},
    state::stands_until,
};

/// The resources to stop or start.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours stop web-1 --data offhours.db   by its name, where that is unique
  offhours start do-main/droplet/3164444
  offhours stop \"ci-*\"                     all whose names match
  offhours stop --schedule office-hours --dry-run
  offhours start --account hz-eu --no-wait

A manual command stands until the schedule's next edge; what follows no
schedule stays as it was left. It is declined for what is protected, opted
out, or under an enforced schedule. Exit code 3: done, and something needs a
person.")]
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
    /// Reason that `offhours activity` shows.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: Option<String>,
}

/// Stops or starts resources and, unless told not to wait, follows them until the result is seen.
pub async fn run(args: &Args, context: &Context, direction: Direction) -> anyhow::Result<Exit> {
    let session = context.connection.open_for_write().await?;
    let Target { named, records } = target(args, &session).await?;
    let in_force = session.store.in_force().await?;
    let unscheduled = follow_no_schedule(&records, &in_force.configuration);
    let whole = args.resources.is_empty();
    let asks = whole || records.len() >= MANY || !unscheduled.is_empty();
    if direction == Direction::Stop
        && asks
        && !args.dry_run
        && !records.is_empty()
        && !confirm(&question(&records, &unscheduled), context)?
    {
        output::remark("Nothing was stopped.\n");
        return Ok(Exit::Done);
    }
    let author =
        if args.dry_run { None } else { Some(author(&session, args.reason.clone()).await?) };
    let command = Command {
        direction,
        target: named,
        author,
        until: if args.no_wait { Until::Asked } else { Until::Seen },
        rehearsal: false,
    };
    let exit = carry_out(&session, &command, Some(context)).await?;
    if context.format == Format::Table && !args.dry_run {
        let named: Vec<_> = records.into_iter().map(|record| record.reference).collect();
        for line in standing(context, &session, &named).await? {
            output::remark(&line);
        }
    }
    Ok(exit)
}

/// Returns the resources that no schedule starts again. What may not be touched is not among them,
/// because the command is declined.
fn follow_no_schedule<'r>(records: &'r [Record], configuration: &Configuration) -> Vec<&'r Record> {
    let follows_none = |record: &&Record| {
        let membership = Membership::of(Subject::recorded(record), configuration);
        matches!(membership, Membership::Unnamed | Membership::Unknown { .. })
    };
    records.iter().filter(follows_none).collect()
}

/// Returns until when the commands stand that these resources follow now, in a line for each end.
async fn standing(
    context: &Context,
    session: &Session,
    named: &[ResourceRef],
) -> anyhow::Result<Vec<String>> {
    let in_force = session.store.in_force().await?;
    let (rules, now) = (in_force.rules(), session.present());
    let zone = &context.zone(&*in_force.configuration, None);
    let records = readable(session.store.records(named).await?);
    let mut lines = BTreeMap::<String, Vec<&Record>>::new();
    for record in &records {
        let verdict = judge(record, Subject::recorded(record), rules, now);
        if let Some(command) = standing_command(record, &verdict, rules, now) {
            let until = stands_until(&command, verdict.membership.schedule(), zone, now);
            let words = format!("{} {until}", command.desired);
            lines.entry(words).or_default().push(record);
        }
    }
    let line = |(words, records): (String, Vec<&Record>)| {
        let stay = if records.len() == 1 { "stays" } else { "stay" };
        format!("{} {stay} {words}.\n", names(records))
    };
    Ok(lines.into_iter().map(line).collect())
}

/// A stop of this many resources or more needs confirmation.
const MANY: usize = 10;

/// The most resources named in a line.
const NAMED: usize = 20;

fn question(records: &[Record], unscheduled: &[&Record]) -> String {
    let warning = match unscheduled {
        [] => String::new(),
        [one] => format!("{} follows no schedule: nothing will start it again. ", one.name),
        several => format!(
            "{} follow no schedule: nothing will start them again. ",
            names(several.iter().copied())
        ),
    };
    let resources = count(records.len(), "resource");
    format!("{warning}Stop {resources}: {}?", names(records))
}

fn names<'r>(records: impl IntoIterator<Item = &'r Record>) -> String {
    let mut records = records.into_iter();
    let first = records.by_ref().take(NAMED);
    let first = first.map(|record| record.name.as_str());
    let names = first.collect::<Vec<_>>().join(", ");
    match records.count() {
        0 => names,
        more => format!("{names} and {more} more"),
    }
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
    let records = resolve::find(&session.store, &args.resources, session.now).await?;
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
        let two = records(2);
        assert_eq!(question(&two, &[]), "Stop 2 resources: ci-1, ci-2?");
        let many = question(&records(25), &[]);
        assert!(many.ends_with("ci-19, ci-20 and 5 more?"), "{many}");
        assert_eq!(
            question(&two, &[&two[1]]),
            "ci-2 follows no schedule: nothing will start it again. Stop 2 resources: ci-1, ci-2?"
        );
        let all: Vec<_> = two.iter().collect();
        let both = question(&two, &all);
        let warning = "ci-1, ci-2 follow no schedule: nothing will start them again. Stop";
        assert!(both.starts_with(warning), "{both}");
    }
}
