//! `offhours forget`: deletes the record of a resource, once a person has seen what it is owed.

use domain::{
    activity::Author,
    configuration::Configuration,
    decision::Rules,
    left_behind::left_behind,
    record::{Phase, Record},
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use store::{InForce, StoreError};

use super::Format;
use crate::{
    Exit,
    ask::confirm,
    author::{author, reason},
    candidates,
    configuration_file::count,
    connection::Session,
    context::Context,
    exit::UsageError,
    names, output,
    print::Screen,
    problems::{ONLY_RECORDED, gone},
    resource::{ResourceView, Wide},
    state::sentence,
};

/// Delete the records of resources, such as a removed account's.
///
/// Shows what each resource is owed, asks for confirmation, writes the owed size to history (where
/// `offhours history REF` shows it for 90 days), and deletes the record. Nothing is sent to a
/// provider: what is small stays small.
///
/// If the account is configured, this is refused unless the provider has said that the resource is
/// gone, because the next inventory would find it again and take its present size for the original.
/// A gone resource that Offhours stopped, or that is owed a size, may only be out of the token's
/// sight. --anyway accepts both. It is also refused while a stop or a start is in progress.
///
/// A machine that is or may be hibernated always needs --anyway: only its record says how to recreate
/// it. If its account is gone, configure it again instead. Afterwards only `offhours history REF
/// -o json` says how to recreate the machine, for 90 days. Its snapshots stay, and are billed
/// until you delete them at the provider.
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
    /// Reason that `offhours activity` shows.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: Option<String>,
}

/// A resource whose record is to be deleted.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ForgottenRecord {
    #[serde(flatten)]
    view: ResourceView,
    /// Whether only its record says how to recreate it: it may be hibernated, or lacks something
    /// that it had.
    only_recorded: bool,
    /// Whether its record was deleted.
    forgotten: bool,
    /// Why its record was not deleted, if that was tried; null otherwise.
    error: Option<String>,
}

impl ForgottenRecord {
    fn of(record: &Record, in_force: &InForce, screen: &Screen) -> Self {
        Self {
            view: ResourceView::of(record, in_force, &screen.zone, screen.now),
            only_recorded: record.is_irreplaceable(),
            forgotten: false,
            error: None,
        }
    }

    /// What would be known from its history alone, in words; empty if nothing.
    fn owed(&self) -> Vec<String> {
        let saved = self.view.saved.iter().map(ToString::to_string);
        let described = self.only_recorded.then(|| "how to recreate it".to_owned());
        saved.chain(described).collect()
    }
}

/// Shows the records, asks for confirmation, and deletes them.
pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    let session = context.connection.open_for_write().await?;
    let records = names::find(&session.store, &args.resources, session.now).await?;
    let in_force = session.store.in_force().await?;
    let rules = in_force.rules();
    let screen = context.screen(rules.configuration, session.now);
    let mut rows: Vec<_> =
        records.iter().map(|record| ForgottenRecord::of(record, &in_force, &screen)).collect();
    if context.format == Format::Table {
        let views: Vec<_> = rows.iter().map(|row| Wide(&row.view)).collect();
        output::print(&screen.table(&views))?;
    }
    refuse(&records, rules, args.anyway, session.now)?;
    if args.dry_run {
        return end(context.format, &rows);
    }
    if !confirm(&question(&rows), context)? {
        output::remark("Nothing was forgotten.\n");
        return Ok(Exit::Failed);
    }
    let author = author(&session, args.reason.clone()).await?;
    forget(&session, &author, &records, &mut rows).await?;
    end(context.format, &rows)
}

async fn forget(
    session: &Session,
    author: &Author,
    records: &[Record],
    rows: &mut [ForgottenRecord],
) -> anyhow::Result<()> {
    // Read the clock again: the question may have stood unanswered for a long time.
    let now = session.read_clock().await?;
    for (record, row) in records.iter().zip(rows) {
        match session.store.forget(record, author.clone(), now).await {
            Ok(()) => row.forgotten = true,
            Err(StoreError::Stale { .. }) => {
                row.error = Some("it was changed meanwhile: look at it again".to_owned());
            }
            Err(error) => row.error = Some(environment::in_words(&error)),
        }
    }
    Ok(())
}

fn end(format: Format, rows: &[ForgottenRecord]) -> anyhow::Result<Exit> {
    match format {
        Format::Json | Format::Csv => output::print_json(&rows)?,
        Format::Table => {
            for row in rows.iter().filter(|row| row.forgotten) {
                let owed = row.owed().join(" and ");
                let owed = match owed.as_str() {
                    "" => String::new(),
                    owed => format!(": {owed} is in `offhours history` for 90 days"),
                };
                output::print(&format!(
                    "forgotten {} {}{owed}\n",
                    row.view.resource, row.view.name
                ))?;
            }
        }
    }
    let failed = rows.iter().filter_map(|row| Some((row, row.error.as_ref()?)));
    let mut exit = Exit::Done;
    for (row, error) in failed {
        output::remark(&format!("error: {}: {error}\n", row.view.resource));
        exit = Exit::Failed;
    }
    Ok(exit)
}

fn question(rows: &[ForgottenRecord]) -> String {
    let what = count(rows.len(), "resource");
    let sizes = rows.iter().filter(|row| row.view.saved.is_some()).count();
    let described = rows.iter().filter(|row| row.only_recorded).count();
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
        Some(format!("{}: {why}", record.reference))
    });
    let obstacles: Vec<_> = obstacles.collect();
    if obstacles.is_empty() {
        Ok(())
    } else {
        let obstacles = obstacles.join("\n");
        Err(UsageError(format!("nothing was forgotten\n{obstacles}")))
    }
}

fn obstacle(record: &Record, rules: Rules<'_>, anyway: bool, now: Timestamp) -> Option<String> {
    if record.permit_is_open(now) {
        return Some("a request is just being sent: try again in two minutes".to_owned());
    }
    if record.is_irreplaceable() && !anyway {
        let reference = &record.reference;
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
        let state = sentence(record);
        return Some(format!("{state}: wait until that has ended"));
    }
    if anyway {
        return None;
    }
    if matches!(record.phase, Phase::Gone { .. }) {
        return left_behind(record, rules, now).map(|_| gone(record).join("; "));
    }
    Some(match &record.saved {
        Some(saved) => format!(
            "its account is configured: `offhours start {}` puts {saved} back. --anyway gives that \
             up, and from the next inventory on its present size counts as the original",
            record.reference
        ),
        None => "its account is configured, and the next inventory would find it again; if it is \
                 gone at the provider, an inventory notices within minutes. --anyway forgets it \
                 regardless"
            .to_owned(),
    })
}

fn is_configured(record: &Record, configuration: &Configuration) -> bool {
    configuration.accounts.contains_key(&record.reference.account)
}

#[cfg(test)]
mod tests {
    use domain::record::Direction;
    use jiff::tz::TimeZone;

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
            let row = ForgottenRecord::of(&record, &elsewhere, &Screen::plain(&TimeZone::UTC, now));
            assert_eq!(row.owed(), ["how to recreate it"]);
            assert_eq!(
                question(&[row]),
                "Forget 1 resource, and give up the only description of 1 machine?"
            );
        }
    }
}
