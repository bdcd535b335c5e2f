//! `offhours report`: the page of what runs, until when, why, and what that saved.

use std::path::PathBuf;

use page::{Audience, Input};
use report::history::Period;

use crate::{
    Exit,
    connection::{Session, all_records},
    context::Context,
    names::{check_owner, history::report_unreadable},
    output,
    time::Month,
    time_range,
};

/// Write a page of what runs, until when, why, and what was saved.
///
/// The page is one HTML file that loads nothing and needs no script: open it in a browser, mail it,
/// or put it on a server. It shows the present, and money of this month or of the month that is
/// given. `offhours serve --listen` has the same page at `/`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours report week.html
  offhours report --month 2026-10 -o october.html
  offhours report --public public.html    without references, reasons and persons
  offhours report --owner web web.html    what is theirs alone
  offhours report --markdown              in brief, for a mail or a pull request")]
pub struct Args {
    /// Write to this file; `-` is standard output [default: -].
    file: Option<PathBuf>,
    /// Leave out references, ids, reasons, persons and accounts.
    #[arg(long)]
    public: bool,
    /// Write a summary in Markdown instead of a page.
    #[arg(long)]
    markdown: bool,
    /// Only resources of this owner, by the `owner_tag` of the configuration.
    #[arg(long, value_name = "OWNER")]
    owner: Option<String>,
    /// Calendar month, in UTC, that the money is about: 2026-10, october [default: this month].
    #[arg(long, value_name = "MONTH")]
    month: Option<Month>,
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    let audience = if args.public { Audience::Public } else { Audience::Operators };
    let render = if args.markdown { page::markdown } else { page::render };
    let owner = args.owner.as_deref();
    let page = shown(owner, args.month, context, |input| render(input, audience)).await?;
    output::write_file(args.file.as_deref(), &page)?;
    Ok(Exit::Done)
}

pub(super) async fn live(context: &Context) -> anyhow::Result<String> {
    shown(None, None, context, |input| page::render(input, Audience::Acting)).await
}

async fn shown(
    owner: Option<&str>,
    month: Option<Month>,
    context: &Context,
    render: impl FnOnce(&Input<'_>) -> String,
) -> anyhow::Result<String> {
    let Session { store, now, .. } = context.connection.open().await?;
    let in_force = store.in_force().await?;
    let screen = context.screen(&*in_force.configuration, now);
    let period = match month {
        Some(month) => time_range::of_month(month, &screen)?,
        None => Period::month_of(now),
    };
    if let Some(owner) = owner {
        check_owner(owner, &all_records(&store).await?, &in_force.configuration)?;
    }
    let shown =
        publish::overview::show(&store, &in_force, owner, period, &screen.zone, now, render);
    let (page, unreadable) = shown.await?;
    report_unreadable(unreadable);
    Ok(page)
}
