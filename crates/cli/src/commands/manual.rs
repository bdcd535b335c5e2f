//! `offhours stop` and `offhours start`: act now, through the same life cycle, until the result is
//! seen.

use std::collections::BTreeMap;

use domain::{
    ResourceRef,
    configuration::Configuration,
    decision::judge,
    explanation::standing_command,
    hibernation::{AttachmentName, Hibernation},
    membership::{Membership, Subject},
    record::{Direction, Phase, Record},
};
use report::{count, joined, state::stands_until};

use super::{
    overrides::{self, SetArgs},
    targets::Selected,
};
use crate::{
    Exit,
    ask::confirm,
    author::author,
    carry_out::{Command, carry_out},
    connection::{Session, readable},
    context::Context,
    exit::UsageError,
    output::{self, Format},
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
  offhours start web-1 --for 2h            then the schedule takes over

A manual command stands until the schedule's next edge; what follows no
schedule stays as it was left. It is declined for what is protected, opted
out, paused, or under an enforced schedule. Exit code 3: done, and something
needs a person. With --for or --until it is an override, and ends by itself:
see `offhours override`.")]
pub struct Args {
    #[command(flatten)]
    set: SetArgs,
    /// Return as soon as the stop or start is requested.
    #[arg(long, conflicts_with_all = ["dry_run", "lasting", "until"])]
    no_wait: bool,
}

/// The resources to start, and what they go without.
#[derive(Debug, clap::Args)]
pub struct StartArgs {
    #[command(flatten)]
    args: Args,
    /// Go without this from now on, though the machine had it when it was hibernated: network/7,
    /// as `offhours why` names it. Several times for several.
    #[arg(long, value_name = "ATTACHMENT", conflicts_with_all = ["schedule", "account", "all", "lasting", "until"])]
    without: Vec<AttachmentName>,
}

pub async fn stop(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    run(args, &[], Direction::Stop, context).await
}

pub async fn start(args: &StartArgs, context: &Context) -> anyhow::Result<Exit> {
    run(&args.args, &args.without, Direction::Start, context).await
}

/// Stops or starts resources and, unless told not to wait, follows them until the result is seen.
async fn run(
    args: &Args,
    without: &[AttachmentName],
    direction: Direction,
    context: &Context,
) -> anyhow::Result<Exit> {
    let (args, no_wait) = (&args.set, args.no_wait);
    if args.begins_or_ends() {
        return overrides::set(args, direction.desired(), context).await;
    }
    let session = context.connection.open_for_write().await?;
    let Selected { command: target, records, in_force, .. } =
        args.targets.select(&session.store, session.now).await?;
    let screen = context.screen(&*in_force.configuration, session.now);
    screen.remark_on_pauses(&in_force.overrides);
    if direction == Direction::Stop && !args.dry_run {
        let all: Vec<_> = records.iter().collect();
        let question = question(&all, &in_force.configuration, args.targets.are_whole(), "");
        if let Some(question) = question {
            confirm(&question, "nothing was stopped", context)?;
        }
    }
    check_had(&records, without)?;
    let author =
        if args.dry_run { None } else { Some(author(&session, args.given.reason.clone()).await?) };
    let waits = !no_wait;
    let command =
        Command { direction, target, author, waits, rehearsal: false, without: without.to_vec() };
    let exit = carry_out(&session, &command, context).await?;
    if context.format == Format::Table && !args.dry_run {
        let named: Vec<_> = records.into_iter().map(|record| record.reference).collect();
        for line in standing(context, &session, &named).await? {
            output::remark(&line);
        }
    }
    Ok(exit)
}

/// Refuses to go without what none of these machines had.
fn check_had(records: &[Record], without: &[AttachmentName]) -> Result<(), UsageError> {
    let hibernation = records.iter().filter_map(|record| record.hibernation.as_deref());
    let owed: Vec<_> = hibernation.flat_map(Hibernation::owed).collect();
    let Some(unknown) = without.iter().find(|name| !owed.contains(name)) else {
        return Ok(());
    };
    let known: Vec<_> = owed.iter().map(AttachmentName::to_string).collect();
    let advice = if known.is_empty() {
        "no such machine was hibernated with anything attached".to_owned()
    } else {
        format!("it had {}", known.join(", "))
    };
    bail_usage!("--without {unknown}: not what the machine had; {advice}")
}

/// Returns until when the commands stand that these resources follow now, in a line for each end.
/// One that was not carried out, or not yet, is asked for until then.
async fn standing(
    context: &Context,
    session: &Session,
    named: &[ResourceRef],
) -> anyhow::Result<Vec<String>> {
    let in_force = session.store.in_force().await?;
    let (rules, now) = (in_force.rules(), session.present());
    let zone = &context.zone(&*in_force.configuration);
    let records = readable(session.store.records(named).await?);
    let mut lines = BTreeMap::<(bool, String), Vec<&Record>>::new();
    for record in &records {
        let verdict = judge(record, Subject::recorded(record), rules, now);
        if let Some(command) = standing_command(record, &verdict, rules, now) {
            let until = stands_until(&command, verdict.membership.schedule(), zone, now);
            let words = format!("{} {until}", command.desired);
            let there = Direction::towards(command.desired).target_state();
            let is_so = record.phase == (Phase::Settled { at: there });
            lines.entry((is_so, words)).or_default().push(record);
        }
    }
    let line = |((is_so, words), records): ((bool, String), Vec<&Record>)| {
        let stays = match (is_so, records.len()) {
            (true, 1) => "stays",
            (true, _) => "stay",
            (false, 1) => "is to be",
            (false, _) => "are to be",
        };
        format!("{} {stays} {words}.\n", names(records))
    };
    Ok(lines.into_iter().map(line).collect())
}

/// A stop of this many resources or more needs confirmation.
const MANY: usize = 10;

/// The most resources named in a line.
const NAMED: usize = 20;

/// Returns what to ask before resources are stopped: many, a whole schedule or account, or what no
/// schedule starts again. What may not be touched is not among the last, because the command is
/// declined. `time` says until when, if the stop ends by itself.
pub(super) fn question(
    records: &[&Record],
    configuration: &Configuration,
    is_whole: bool,
    time: &str,
) -> Option<String> {
    let follows_none = |record: &&&Record| {
        let membership = Membership::of(Subject::recorded(record), configuration);
        matches!(membership, Membership::Unnamed | Membership::Unknown { .. })
    };
    let unscheduled: Vec<_> = records.iter().filter(follows_none).copied().collect();
    if records.is_empty() || !is_whole && records.len() < MANY && unscheduled.is_empty() {
        return None;
    }
    let stop = format!(
        "Stop {}{time}: {}?",
        count(records.len(), "resource"),
        names(records.iter().copied())
    );
    Some(match names(unscheduled).as_str() {
        "" => stop,
        unscheduled => format!("No schedule will start {unscheduled} again. {stop}"),
    })
}

fn names<'r>(records: impl IntoIterator<Item = &'r Record>) -> String {
    in_a_line(records.into_iter().map(|record| record.name.as_str()))
}

/// Names in a line, and how many are left out of it.
pub(super) fn in_a_line<'n>(mut names: impl Iterator<Item = &'n str>) -> String {
    let first = joined(names.by_ref().take(NAMED), ", ");
    match names.count() {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{OFFICE, configuration, machine};

    #[test]
    fn the_question_names_what_it_is_about() {
        let configuration = configuration(OFFICE);
        let asked = |count: usize, free: usize, is_whole, time| {
            let named = |number| {
                let tags: &[&str] = if number > count - free { &[] } else { &["offhours:office"] };
                machine("do-main/droplet/1", &format!("ci-{number}"), tags)
            };
            let records: Vec<_> = (1..=count).map(named).collect();
            let records: Vec<_> = records.iter().collect();
            question(&records, &configuration, is_whole, time)
        };
        assert_eq!(asked(2, 0, false, ""), None);
        assert_eq!(asked(0, 0, true, ""), None);
        assert_eq!(asked(2, 0, true, "").as_deref(), Some("Stop 2 resources: ci-1, ci-2?"));
        let many = asked(25, 0, false, " until noon").unwrap();
        assert!(many.starts_with("Stop 25 resources until noon: ci-1, "), "{many}");
        assert!(many.ends_with("ci-19, ci-20 and 5 more?"), "{many}");
        assert_eq!(
            asked(2, 1, false, "").as_deref(),
            Some("No schedule will start ci-2 again. Stop 2 resources: ci-1, ci-2?")
        );
    }
}
