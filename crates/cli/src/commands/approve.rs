//! `offhours approve`: releases resources held because too many joined at once.

use domain::{AccountName, record::Record};
use lifecycle::act::approve::approve;
use schemars::JsonSchema;
use serde::Serialize;

use super::Format;
use crate::{
    Exit, candidates,
    connection::{Connection, Session},
    exit::UsageError,
    output,
    resolve::{self, nearest::exists},
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
    /// Output format.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    connection: Connection,
}

/// A resource that was released.
#[derive(Serialize, JsonSchema)]
pub(super) struct Approved {
    /// The resource, as `ACCOUNT/KIND/ID`.
    resource: String,
    /// Its name.
    name: String,
}

/// Approves held resources and prints which.
pub async fn run(args: &Args) -> anyhow::Result<Exit> {
    let Session { store, now, .. } = args.connection.open_for_write().await?;
    if let Some(account) = &args.account {
        let accounts = &store.in_force().await?.configuration.accounts;
        exists(
            "account",
            account.as_str(),
            accounts.keys().map(AccountName::as_str),
        )?;
    }
    let mut chosen = Vec::new();
    for record in resolve::find(&store, &args.resources).await? {
        if !record.held {
            return Err(UsageError(format!("{} is not held", record.name)).into());
        }
        chosen.push(record.reference);
    }
    let which = |record: &Record| {
        args.all
            || args.account.as_ref() == Some(&record.reference.account)
            || chosen.contains(&record.reference)
    };
    let approved: Vec<_> = approve(&store, which, now)
        .await?
        .into_iter()
        .map(|record| Approved {
            resource: record.reference.to_string(),
            name: record.name,
        })
        .collect();
    match args.format {
        Format::Json => output::print_json(&approved)?,
        Format::Table if approved.is_empty() => output::print("Nothing was held.\n")?,
        Format::Table => {
            for one in &approved {
                output::print(&format!("approved {} {}\n", one.resource, one.name))?;
            }
        }
    }
    Ok(Exit::Done)
}
