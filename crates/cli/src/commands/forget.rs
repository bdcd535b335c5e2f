//! `offhours forget`: deletes the record of a resource, once a person has seen what it is owed.

use domain::{
    configuration::Configuration,
    decision::Rules,
    left_behind::left_behind,
    record::{Phase, Record},
};
use jiff::Timestamp;
use local::file::Purpose;
use report::{
    count,
    problems::{ONLY_RECORDED, gone},
    resource::ResourceView,
    state::sentence,
};
use schemars::JsonSchema;
use serde::Serialize;
use store::StoreError;

use crate::{
    Exit,
    ask::confirm,
    author::{ReasonArgs, author},
    candidates,
    context::Context,
    exit::UsageError,
    names, output,
    output::Format,
    resource::wide,
};

/// Delete the records of resources, such as a removed account's.
///
/// Shows what each resource is owed, asks for confirmation, writes the owed size to history (where
/// `offhours history REF` shows it for 90 days), and deletes the record. Nothing is sent to a
/// provider: what is small stays small, and snapshots stay until you delete them.
///
/// What the next inventory may find again, or only its record can recreate, is refused without
/// --anyway; so is what is being stopped or started.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours forget do-main/droplet/3164444 do-main/droplet/3164445
  offhours forget --dry-run do-main/droplet/3164444
  offhours forget --anyway web-1      before its account is removed
  offhours status --account do-main   what a removed account has left")]
pub struct Args {
    /// Resources, by reference; by unique name or by a pattern with `*` and `?` if the account is
    /// configured, or if a size is owed. A pattern leaves out resources that are gone.
    #[arg(value_name = "RESOURCE", required = true, add = candidates::resources())]
    resources: Vec<String>,
    /// Forget even a hibernated machine, and what the next inventory may find again as a new resource
    /// of its present size.
    #[arg(long)]
    anyway: bool,
    /// Show what would be forgotten, and delete nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    given: ReasonArgs,
}

/// A resource whose record is to be deleted.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ForgottenRecord {
    #[serde(flatten)]
    view: ResourceView,
    /// Whether its record was deleted.
    forgotten: bool,
    /// Why its record was not deleted, if that was tried; null otherwise.
    error: Option<String>,
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    let session = context.connection.open_for(Purpose::Change).await?;
    let records = names::find(&session.store, &args.resources, session.now).await?;
    let in_force = session.store.in_force().await?;
    let rules = in_force.rules();
    let screen = context.screen(rules.configuration, session.now);
    let row = |record| ForgottenRecord {
        view: ResourceView::of(record, &in_force, &screen.zone, screen.now),
        forgotten: false,
        error: None,
    };
    let mut rows: Vec<_> = records.iter().map(row).collect();
    if context.format == Format::Table {
        let views: Vec<_> = rows.iter().map(|row| row.view.clone()).collect();
        output::print(&wide(&views, &screen))?;
    }
    refuse(&records, rules, args.anyway, session.now)?;
    if !args.dry_run {
        confirm(&question(&records), "nothing was forgotten", context)?;
        let author = author(&session, args.given.reason.clone()).await?;
        // Read the clock again: the question may have stood unanswered for a long time.
        let now = session.read_clock().await?;
        for (record, row) in records.iter().zip(&mut rows) {
            match session.store.forget(record, author.clone(), now).await {
                Ok(()) => row.forgotten = true,
                Err(StoreError::Stale { .. }) => {
                    row.error = Some("it was changed meanwhile: look at it again".to_owned());
                }
                Err(error) => row.error = Some(environment::in_words(&error)),
            }
        }
    }
    if context.format != Format::Table {
        output::print_json(&rows)?;
    }
    let mut exit = Exit::Done;
    for (record, row) in records.iter().zip(&rows) {
        if let Some(error) = &row.error {
            output::remark(&format!("error: {}: {error}\n", record.reference));
            exit = Exit::Failed;
        } else if row.forgotten && context.format == Format::Table {
            output::print(&forgotten(record))?;
        }
    }
    Ok(exit)
}

/// Says that a record was deleted, and what is known from history alone.
fn forgotten(record: &Record) -> String {
    let saved = record.saved.iter().map(ToString::to_string);
    let described = record.is_irreplaceable().then(|| "how to recreate it".to_owned());
    let owed = saved.chain(described).collect::<Vec<_>>().join(" and ");
    let owed = match owed.as_str() {
        "" => String::new(),
        owed => format!(": {owed} is in `offhours history` for 90 days"),
    };
    format!("forgotten {} {}{owed}\n", record.reference, record.name)
}

fn question(records: &[Record]) -> String {
    let what = count(records.len(), "resource");
    let sizes = records.iter().filter(|record| record.saved.is_some()).count();
    let described = records.iter().filter(|record| record.is_irreplaceable()).count();
    let sizes = (sizes > 0).then(|| count(sizes, "owed size"));
    let described =
        (described > 0).then(|| format!("the only description of {}", count(described, "machine")));
    let given_up: Vec<_> = sizes.into_iter().chain(described).collect();
    match given_up.as_slice() {
        [] => format!("Forget {what}?"),
        given_up => format!("Forget {what}, and give up {}?", given_up.join(" and ")),
    }
}

/// Refuses the whole command if one resource cannot be forgotten or would only come back.
fn refuse(
    records: &[Record],
    rules: Rules<'_>,
    anyway: bool,
    now: Timestamp,
) -> Result<(), UsageError> {
    let obstacles = records.iter().filter_map(|record| {
        let why = obstacle(record, rules, anyway, now)?;
        Some(format!("\n{}: {why}", record.reference))
    });
    let obstacles: String = obstacles.collect();
    if obstacles.is_empty() {
        return Ok(());
    }
    bail_usage!("nothing was forgotten{obstacles}")
}

fn obstacle(record: &Record, rules: Rules<'_>, anyway: bool, now: Timestamp) -> Option<String> {
    let reference = &record.reference;
    if record.permit_is_open(now) {
        return Some("a request is just being sent: try again in two minutes".to_owned());
    }
    if record.is_irreplaceable() && !anyway {
        let first = if is_configured(record, rules.configuration) {
            format!("`offhours start {reference}` does that")
        } else {
            format!("configure its account {} again", reference.account)
        };
        return Some(format!(
            "{ONLY_RECORDED}: {first}. --anyway forgets it; its snapshots stay, and go on being \
             billed"
        ));
    }
    // Nothing follows a transition in flight in an account that is not configured.
    if !is_configured(record, rules.configuration) {
        return None;
    }
    if record.in_flight().is_some() {
        return Some(format!("{}: wait until that has ended", sentence(record)));
    }
    if anyway {
        return None;
    }
    if matches!(record.phase, Phase::Gone { .. }) {
        return left_behind(record, rules, now).map(|_| gone(record).join("; "));
    }
    let owed = record.saved.as_ref();
    let owed = owed.map(|saved| format!(" (`offhours start {reference}` puts {saved} back)"));
    Some(format!(
        "its account is configured{}: the next inventory would find it again, and take its present \
         size for the original. --anyway forgets it regardless",
        owed.unwrap_or_default()
    ))
}

fn is_configured(record: &Record, configuration: &Configuration) -> bool {
    configuration.accounts.contains_key(&record.reference.account)
}

#[cfg(test)]
mod tests {
    use domain::record::Direction;

    use super::*;
    use crate::scene::{OFFICE, asleep, database, in_force, monday, saved, transition};

    #[test]
    fn what_is_gone_and_owed_a_size_is_forgotten_only_if_that_is_given_up() {
        let in_force = in_force(OFFICE);
        let now = monday("10:00:00");
        let mut gone = database("do-main/database/d", "orders", &["offhours:office"]);
        gone.phase = Phase::Gone { since: monday("09:00:00") };
        let obstacle = |record: &Record, anyway| obstacle(record, in_force.rules(), anyway, now);
        assert_eq!(obstacle(&gone, false), None);
        gone.saved = Some(saved());
        let why = obstacle(&gone, false).unwrap();
        assert!(why.contains("owed 2 x db-s-4vcpu-8gb"), "{why}");
        assert_eq!(obstacle(&gone, true), None);
    }

    #[test]
    fn a_machine_that_may_be_hibernated_is_forgotten_only_anyway_whatever_it_is_doing() {
        let here = in_force(OFFICE);
        let elsewhere = in_force(&OFFICE.replace("accounts.hz-eu", "accounts.hz-us"));
        let now = monday("10:00:00");
        let mut waking = asleep();
        waking.phase =
            Phase::InFlight { transition: transition(Direction::Start, monday("05:50:00")) };
        for record in [asleep(), waking] {
            let obstacle = |rules, anyway| obstacle(&record, rules, anyway, now);
            let why = obstacle(here.rules(), false).unwrap();
            assert!(why.contains("`offhours start hz-eu/server/42`"), "{why}");
            let why = obstacle(elsewhere.rules(), false).unwrap();
            assert!(why.contains("configure its account hz-eu again"), "{why}");
            assert_eq!(obstacle(elsewhere.rules(), true), None);
            let known = forgotten(&record);
            assert!(known.contains(": how to recreate it is in `offhours history`"), "{known}");
            assert_eq!(
                question(&[record]),
                "Forget 1 resource, and give up the only description of 1 machine?"
            );
        }
    }
}
