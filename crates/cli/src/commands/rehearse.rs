//! `offhours rehearse`: hibernates a machine and wakes it again while a person watches.

use domain::{
    ResourceRef,
    activity::Author,
    configuration::Configuration,
    decision::judge,
    invocation::CommandTarget,
    membership::Subject,
    record::{Direction, Record},
    stop_method::StopMethod,
};
use lifecycle::report::MoveTarget;
use local::file::Purpose;

use crate::{
    Exit,
    apply::moves::{self, MovingStop},
    ask::confirm,
    author::{ReasonArgs, author},
    candidates,
    carry_out::{Command, carry_out},
    connection::Session,
    context::Context,
    exit::UsageError,
    names,
    output::{self, Format, Style},
};

/// Hibernate a machine and wake it once, while you watch.
///
/// A machine that is hibernated is shut down, kept as a snapshot and deleted, and recreated from
/// the snapshot at its next start. Until that was done once, and the new machine has run for ten
/// minutes, no schedule hibernates it.
///
/// The command first shows what stands in the way, what would be restored and lost, and what the
/// machine's schedule would save, and then asks. Which key, risks and hours count is in the
/// configuration: `ssh_key` of the account, `accept` and `needs_private_ip` of the schedule.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours rehearse ci-1
  offhours rehearse hz-eu/server/42 --dry-run
  offhours rehearse ci-1 --dry-run -o json | jq .to

The exit code is 3 if something stands in the way.")]
pub struct Args {
    /// The machine, by reference or by name. Its schedule must hibernate it.
    #[arg(value_name = "RESOURCE", add = candidates::resources())]
    resource: String,
    /// Show what it would lead to, and change nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    given: ReasonArgs,
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    let purpose = if args.dry_run { Purpose::Read } else { Purpose::Change };
    let session = context.connection.open_for(purpose).await?;
    let record = record(&args.resource, &session).await?;
    let in_force = session.store.in_force().await?;
    let verdict = judge(&record, Subject::recorded(&record), in_force.rules(), session.now);
    let policy = verdict.membership.policy(&in_force.configuration);
    if StopMethod::of(record.kind(), &policy) != StopMethod::Hibernate {
        let (reference, kind) = (&record.reference, record.kind());
        bail_usage!(
            "{reference} follows no schedule that hibernates it: give its schedule methods = {{ \
             {kind} = \"hibernate\" }}, and apply that first"
        );
    }
    let stop = preview(&session, &in_force.configuration, &record).await?;
    match context.format {
        Format::Json | Format::Csv if args.dry_run => output::print_json(&stop)?,
        // What is done then has lines of its own.
        Format::Json | Format::Csv => {}
        Format::Table => output::print(&text(&stop, Style::of_stdout()))?,
    }
    if args.dry_run {
        return Ok(if stop.hibernates() { Exit::Done } else { Exit::NeedsPerson });
    }
    if !stop.hibernates() {
        // The time that a snapshot may take stands in no rehearsal's way: it shows that time.
        output::remark("note: the stop itself is refused unless only its length is in the way\n");
    }
    let question = format!(
        "Shut {} ({}) down now, keep it as a snapshot, delete it, and recreate it?",
        record.name, record.reference
    );
    confirm(&question, "nothing was done", context)?;
    let author = author(&session, args.given.reason.clone()).await?;
    cycle(&record.reference, &session, context, &author).await
}

/// Asks what its schedule's next stop leads to, as an apply does.
async fn preview(
    session: &Session,
    configuration: &Configuration,
    record: &Record,
) -> anyhow::Result<MovingStop> {
    let mut configuration = configuration.clone();
    configuration.accounts.retain(|name, _| *name == record.reference.account);
    let moves = moves::forecast(session, &configuration, session.now).await;
    let mut stops = moves.stops.into_iter();
    stops.find(|one| one.stop.resource == record.reference).ok_or_else(|| {
        let why = moves.unknown.first().map_or("it is not there", String::as_str);
        anyhow::anyhow!("cannot look at {}: {why}", record.reference)
    })
}

/// Hibernates the machine and wakes it, following both until the result is seen.
async fn cycle(
    machine: &ResourceRef,
    session: &Session,
    context: &Context,
    author: &Author,
) -> anyhow::Result<Exit> {
    let stopped = follow(machine, context, session, author, Direction::Stop).await?;
    if stopped != Exit::Done {
        output::remark("It was not hibernated; `offhours why` says how it is.\n");
        return Ok(stopped);
    }
    if !record(&machine.to_string(), session).await?.is_hibernated() {
        output::remark(
            "It was only powered off, because it is to run again within four hours: rehearse it \
             at another time, or start it with `offhours start`.\n",
        );
        return Ok(Exit::NeedsPerson);
    }
    let session = context.connection.open_for_write().await?;
    let started = follow(machine, context, &session, author, Direction::Start).await?;
    if started == Exit::Done {
        output::remark(
            "Check that all of it works. Once two inventories have seen it run, ten minutes \
             apart, its schedule may hibernate it: `offhours status -o json` then says \
             \"rehearsed\": true.\n",
        );
    } else {
        output::remark("Restore still running; see `offhours why`.\n");
    }
    Ok(started)
}

async fn record(name: &str, session: &Session) -> anyhow::Result<Record> {
    let mut found = names::find(&session.store, &[name.to_owned()], session.now).await?;
    Ok(found.pop().ok_or_else(|| UsageError(format!("{name} is not recorded")))?)
}

async fn follow(
    machine: &ResourceRef,
    context: &Context,
    session: &Session,
    author: &Author,
    direction: Direction,
) -> anyhow::Result<Exit> {
    let command = Command {
        direction,
        target: CommandTarget::Resources(vec![machine.clone()]),
        author: Some(author.clone()),
        waits: true,
        rehearsal: true,
        without: Vec::new(),
    };
    carry_out(session, &command, context).await
}

fn text(stop: &MovingStop, style: Style) -> String {
    let mut text = style.wrap(&format!("{stop}\n"));
    if let MoveTarget::Snapshot { put_back, lost, .. } = &stop.stop.to {
        for (what, list) in [("Put back", put_back), ("Lost", lost)] {
            if !list.is_empty() {
                text += &style.wrap(&format!("{what}: {}.\n", list.join(", ")));
            }
        }
    }
    text
}
