//! `offhours approve`: releases resources held because too many joined at once.

use domain::{
    AccountName, ResourceRef,
    activity::{self, Action},
    invocation::Question,
    record::Record,
};
use jiff::Timestamp;
use lifecycle::event::{Event, Subject};
use report::Named;
use store::Store;

use crate::{
    Exit,
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
/// came back with less storage than it had is held as well.
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
    let held = held(args, &session.store, session.now).await?;
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

async fn held(args: &Args, store: &Store, now: Timestamp) -> anyhow::Result<Vec<ResourceRef>> {
    let names = Names::of(store, &args.resources, now).await?;
    let mut records = names.select(&args.resources)?;
    if let Some(other) = records.iter().find(|record| !record.held) {
        bail_usage!("{} is not held", other.name);
    }
    if let Some(account) = &args.account {
        check_account(account, names.configuration().accounts.keys())?;
    }
    if args.resources.is_empty() {
        let of = args.account.as_ref();
        let is_meant = |record: &&Record| {
            record.held && of.is_none_or(|account| record.reference.account == *account)
        };
        records = names.records.iter().filter(is_meant).collect();
    }
    Ok(records.into_iter().map(|record| record.reference.clone()).collect())
}
