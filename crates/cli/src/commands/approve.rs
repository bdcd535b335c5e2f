//! `offhours approve`: releases resources held because too many joined at once.

use domain::{
    AccountName, ResourceRef,
    activity::{self, Action},
    invocation::Question,
};
use jiff::Timestamp;
use lifecycle::{
    Outcome,
    event::{Event, Subject},
};
use schemars::JsonSchema;
use serde::Serialize;
use store::Store;

use super::Format;
use crate::{
    Exit,
    author::{author, reason},
    candidates,
    connection::all_records,
    context::Context,
    exit::UsageError,
    names, output,
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
    /// Reason that `offhours activity` shows.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: Option<String>,
}

/// A resource that was released.
#[derive(Serialize, JsonSchema)]
pub(super) struct Approved {
    /// The resource, as `ACCOUNT/KIND/ID`.
    resource: String,
    /// Its name.
    name: String,
}

/// Has held resources approved, and prints which.
pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    let session = context.connection.open_for_write().await?;
    let held = held(args, &session.store, session.now).await?;
    let approved = if held.is_empty() {
        Vec::new()
    } else {
        let author = author(&session, args.reason.clone()).await?;
        for resources in held.chunks(activity::RESOURCES) {
            let resources = resources.to_vec();
            let activity = author.does(Action::Approved { resources }, session.now);
            session.store.record_activity(&activity).await?;
        }
        let question = Question::Approve(held);
        let report = session.functions()?.ask(question).await?;
        report.outcomes.into_iter().filter_map(approved).collect()
    };
    match context.format {
        Format::Json | Format::Csv => output::print_json(&approved)?,
        Format::Table if approved.is_empty() => output::print("Nothing was held.\n")?,
        Format::Table => {
            for one in &approved {
                output::print(&format!("approved {} {}\n", one.resource, one.name))?;
            }
        }
    }
    Ok(Exit::Done)
}

/// Returns the held resources that the arguments select.
async fn held(args: &Args, store: &Store, now: Timestamp) -> anyhow::Result<Vec<ResourceRef>> {
    if !args.resources.is_empty() {
        let found = names::find(store, &args.resources, now).await?;
        if let Some(other) = found.iter().find(|record| !record.held) {
            return Err(UsageError(format!("{} is not held", other.name)).into());
        }
        return Ok(found.into_iter().map(|record| record.reference).collect());
    }
    if let Some(account) = &args.account {
        let accounts = &store.in_force().await?.configuration.accounts;
        names::check_account(account, accounts.keys())?;
    }
    let mut records = all_records(store).await?;
    let selected = |of: &AccountName| args.account.as_ref().is_none_or(|account| account == of);
    records.retain(|record| record.held && selected(&record.reference.account));
    Ok(records.into_iter().map(|record| record.reference).collect())
}

fn approved(outcome: Outcome) -> Option<Approved> {
    match (outcome.event, outcome.subject) {
        (Event::Approved, Subject::Resource { resource, name, .. }) => {
            Some(Approved { resource: resource.to_string(), name })
        }
        _ => None,
    }
}
