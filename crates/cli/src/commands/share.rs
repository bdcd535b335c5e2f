//! `offhours share`: a link to what is published.

use std::time::Duration;

use anyhow::Context as _;
use domain::ScheduleName;
use environment::bucket::LONGEST_LINK;

use crate::{Exit, candidates, context::Context, names::check_schedule, output, time::Length};

/// Print a link to the public page or calendar, valid for some days.
///
/// It needs a stack at AWS that is deployed with Pages=ENABLED. The public forms have no references,
/// reasons, persons or accounts. The link ends after --for, and earlier if the credentials that you
/// use end: those of a role, of SSO or of `aws login` are temporary.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours share
  offhours share --for 2d --calendar
  offhours share --calendar --schedule office-hours")]
pub struct Args {
    /// How long the link is valid: at most 7d.
    #[arg(long = "for", value_name = "SPAN", default_value = "7d")]
    valid_for: Length,
    /// Link to the calendar instead of the page.
    #[arg(long)]
    calendar: bool,
    /// Link to the calendar of this schedule alone.
    #[arg(long, value_name = "NAME", requires = "calendar", add = candidates::schedules())]
    schedule: Option<ScheduleName>,
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    let valid_for = Duration::try_from(args.valid_for.duration())?;
    if valid_for > LONGEST_LINK {
        bail_usage!("a link is valid for 7d at most");
    }
    let session = context.connection.open().await?;
    let Some(bucket) = session.bucket().await else {
        bail_usage!(
            "a local store publishes nothing: `offhours report --public FILE` writes a \
                       page that you can share"
        );
    };
    let why = "nothing is published, or you may not read where: see Pages in docs/deploying.md";
    let bucket = bucket.context(why)?;
    let key = match &args.schedule {
        Some(name) => {
            check_schedule(name, &session.store.in_force().await?.configuration)?;
            format!("public/calendar/{name}.ics")
        }
        None if args.calendar => "public/calendar.ics".to_owned(),
        None => "public/index.html".to_owned(),
    };
    let link = bucket.link(&key, valid_for, session.now).await?;
    output::print(&format!("{link}\n"))?;
    Ok(Exit::Done)
}
