//! `offhours calendar`: when resources run, for a calendar program.

use std::path::PathBuf;

use domain::ScheduleName;
use page::{Audience, calendar};

use crate::{
    Exit, candidates, connection::all_records, context::Context, names::check_schedule, output,
};

/// Write a calendar of when resources run, as an iCalendar file.
///
/// It has the windows of the next eight weeks, holidays, and overrides with who set them and why.
/// The same event has the same identifier in each later calendar, so that a program that imports it
/// again replaces what it has. `offhours serve --listen` has the calendars at /calendar.ics and
/// /calendar/NAME.ics, for programs that subscribe to one.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours calendar offhours.ics
  offhours calendar --schedule office-hours -o office.ics
  offhours calendar --public > public.ics")]
pub struct Args {
    /// Write to this file; `-` is standard output [default: -].
    file: Option<PathBuf>,
    /// Only this schedule.
    #[arg(long, value_name = "NAME", add = candidates::schedules())]
    schedule: Option<ScheduleName>,
    /// Leave out who set an override and why, and overrides of single resources.
    #[arg(long)]
    public: bool,
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    let session = context.connection.open().await?;
    let in_force = session.store.in_force().await?;
    let only = args.schedule.as_ref();
    check_schedule(only, &in_force.configuration)?;
    let records = all_records(&session.store).await?;
    let audience = if args.public { Audience::Public } else { Audience::Operators };
    let calendar = calendar::render(in_force.rules(), &records, only, audience, session.now);
    output::write_file(args.file.as_deref(), &calendar)?;
    Ok(Exit::Done)
}
