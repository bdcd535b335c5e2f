//! `offhours approve`: releases resources held because too many joined at once.

use domain::{
    AccountName,
    activity::{self, Action},
    configuration::Mode,
    decision::{Decision, judge},
    invocation::Question,
    membership,
    record::{Direction, Record},
    resource::Power,
};
use lifecycle::event::{Event, Subject};
use report::Named;

use super::manual::question;
use crate::{
    Exit,
    ask::confirm,
    author::{ReasonArgs, author},
    candidates,
    context::Context,
    names::{Names, check_account},
    print::{Cell, Column, Row},
};

/// Release resources that are held until a person approves them.
///
/// More than `max_new` resources that join in one inventory look like a wrong tag: they are
/// reported by `offhours status` and left untouched until this command names them. A database that
/// came back with less storage than it had is held as well. Before many are released that their
/// schedules stop at once, the command asks.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours approve --data offhours.db web-1 web-2
  offhours approve --account do-main
  offhours approve --all")]
pub struct Args {
    /// Resources to release, by reference, by unique name or by a pattern with `*` and `?`. Each of
    /// them must be held.
    #[arg(value_name = "RESOURCE", required_unless_present_any = ["account", "all"], add = candidates::resources())]
    resources: Vec<String>,
    /// All held resources in this account.
    #[arg(long, value_name = "NAME", conflicts_with = "resources", add = candidates::accounts())]
    account: Option<AccountName>,
    /// All held resources.
    #[arg(long, conflicts_with_all = ["resources", "account"])]
    all: bool,
    #[command(flatten)]
    given: ReasonArgs,
}

impl Row for Named {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::Fixed("Approved", |row, _| Cell::new(&row.resource)),
        Column::Fixed("Name", |row, _| Cell::new(&row.name)),
    ];
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    let session = context.connection.open_for_write().await?;
    let names = Names::of(&session.store, &args.resources, session.now).await?;
    let held = held(args, &names)?;
    let stopped = stopped_at_once(&held, &names);
    let is_whole = args.resources.is_empty();
    if let Some(question) = question(&stopped, names.configuration(), is_whole, " at once") {
        confirm(&question, "nothing was approved", context)?;
    }
    let held: Vec<_> = held.into_iter().map(|record| record.reference.clone()).collect();
    let mut approved = Vec::new();
    if !held.is_empty() {
        let author = author(&session, args.given.reason.clone()).await?;
        for resources in held.chunks(activity::RESOURCES) {
            let resources = resources.to_vec();
            let activity = author.does(Action::Approved { resources }, session.now);
            session.store.record_activity(&activity).await?;
        }
        let report = session.functions()?.ask(Question::Approve(held)).await?;
        let outcomes = report.outcomes.into_iter().filter(|one| one.event == Event::Approved);
        approved.extend(outcomes.filter_map(|outcome| match outcome.subject {
            Subject::Resource { resource, name, .. } => Some(Named { resource, name }),
            Subject::Account { .. } => None,
        }));
    }
    context.screen(None, session.now).rows(&approved, "Nothing was held.")?;
    Ok(Exit::Done)
}

fn held<'n>(args: &Args, names: &'n Names) -> anyhow::Result<Vec<&'n Record>> {
    let records = names.select(&args.resources)?;
    if let Some(other) = records.iter().find(|record| !record.held) {
        bail_usage!("{} is not held", other.name);
    }
    if let Some(account) = &args.account {
        check_account(account, names.configuration().accounts.keys())?;
    }
    if !args.resources.is_empty() {
        return Ok(records);
    }
    let of = args.account.as_ref();
    let is_meant = |record: &&Record| {
        record.held && of.is_none_or(|account| record.reference.account == *account)
    };
    Ok(names.records.iter().filter(is_meant).collect())
}

/// Returns those that a stop is due for once they are approved.
fn stopped_at_once<'r>(held: &[&'r Record], names: &Names) -> Vec<&'r Record> {
    let is_stopped = |record: &&&Record| {
        let mut approved = (**record).clone();
        approved.approve(names.now);
        let subject = membership::Subject::recorded(&approved);
        let Decision::Act(due) =
            judge(&approved, subject, names.in_force.rules(), names.now).decision
        else {
            return false;
        };
        let is_off = record.observed.as_ref().is_some_and(|seen| seen.power == Power::Stopped);
        due.direction == Direction::Stop && due.mode == Mode::Act && !is_off
    };
    held.iter().filter(is_stopped).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{OFFICE, in_force, machine, monday};

    /// The names of those of two held Droplets, one of which is off, that are stopped at once if
    /// they are approved.
    fn stopped(configuration: &str, time: &str) -> Vec<String> {
        let held = |reference: &str, name: &str| Record {
            held: true,
            ..machine(reference, name, &["offhours:office"])
        };
        let mut off = held("do-main/droplet/2", "off");
        off.observed.as_mut().unwrap().power = Power::Stopped;
        let names = Names {
            in_force: in_force(configuration),
            records: vec![held("do-main/droplet/1", "web"), off],
            now: monday(time),
        };
        let held: Vec<_> = names.records.iter().collect();
        stopped_at_once(&held, &names).into_iter().map(|record| record.name.clone()).collect()
    }

    #[test]
    fn what_a_schedule_stops_once_it_is_approved_is_known() {
        assert_eq!(stopped(OFFICE, "20:00:00"), ["web"]);
        assert!(stopped(OFFICE, "12:00:00").is_empty());
        let next_edge = format!("{OFFICE}adopt = \"next-edge\"\n");
        assert!(stopped(&next_edge, "20:00:00").is_empty());
    }
}
