//! `offhours activity`: what persons changed, who and why.

use std::collections::BTreeMap;

use domain::{AccountName, ResourceRef, ScheduleName, activity::Activity};
use jiff::Timestamp;
use report::{activity::details_of, history::Period, joined};
use schemars::JsonSchema;
use serde::Serialize;
use store::Store;

use crate::{
    Exit, candidates,
    connection::{Session, readable},
    context::Context,
    names::{Names, check_account, check_schedule, history::report_unreadable},
    output,
    print::{Cell, Column, Row},
    time_range::{self, TimeRange},
};

/// Show what persons changed, newest first: who, when, what and why.
///
/// Manual stops and starts, overrides, pauses, approvals, forgotten records, applies and rollbacks. Each is
/// kept for 90 days and never overwritten. At AWS the name is that of the caller's credentials,
/// with the shell's name in brackets if it is another.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours activity
  offhours activity web-1 --since 30d
  offhours activity --schedule office-hours
  offhours activity --by ada --since 2026-10-01 --until 2026-10-31
  offhours activity -o json | jq '.[] | select(.action.applied)'")]
pub struct Args {
    /// Only what names these resources: references, names, or patterns with `*` and `?`.
    #[arg(value_name = "RESOURCE", add = candidates::resources())]
    resources: Vec<String>,
    /// Only what names this schedule as a whole.
    #[arg(long, value_name = "NAME", add = candidates::schedules())]
    schedule: Option<ScheduleName>,
    /// Only what names this account as a whole.
    #[arg(long, value_name = "NAME", add = candidates::accounts())]
    account: Option<AccountName>,
    /// Only what these persons did: part of a name or of an ARN.
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    #[command(flatten)]
    range: TimeRange,
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    let Session { store, now, .. } = context.connection.open().await?;
    // A configuration that cannot be read does not hide who applied it.
    let in_force = store.in_force().await.ok();
    let configuration = in_force.as_ref().map(|in_force| &*in_force.configuration);
    let screen = context.screen(configuration, now);
    let period = args.range.period(&screen)?;
    let (wanted, unknown) = args.wanted(&store, now).await?;
    let Period { from, until } = args.range.searched(period);
    let limit = args.range.limit();
    let mut pages = store.activity_between(from, until);
    let (mut found, mut unreadable) = (Vec::new(), 0);
    while found.len() < limit
        && let Some(page) = pages.next().await?
    {
        unreadable += page.unreadable;
        let by = |one: &Activity| args.by.as_ref().is_none_or(|by| one.by.matches(by));
        let names = |one: &Activity| {
            let targets = one.action.targets();
            wanted.is_empty() || targets.iter().any(|one| wanted.contains(one))
        };
        found.extend(page.entries.into_iter().filter(|one| by(one) && names(one)));
    }
    found.truncate(limit);
    // The log may have what is configured no more.
    if let Some(configuration) = configuration.filter(|_| found.is_empty()) {
        check_schedule(&args.schedule, configuration)?;
        if let Some(name) = &args.account {
            check_account(name, configuration.accounts.keys())?;
        }
    }
    let found = in_words(found, &store).await?;
    let period = time_range::shown(period, &screen.zone);
    screen.rows(&found, &format!("No change found {period}."))?;
    output::remarks(&unknown);
    report_unreadable(unreadable);
    Ok(Exit::Done)
}

impl Args {
    /// How entries name what is wanted: a resource by its reference, whatever name it has. Also what
    /// no record has.
    async fn wanted(
        &self,
        store: &Store,
        now: Timestamp,
    ) -> anyhow::Result<(Vec<String>, Vec<String>)> {
        let whole = [
            self.schedule.as_ref().map(|name| format!("schedule {name}")),
            self.account.as_ref().map(|name| format!("account {name}")),
        ];
        let mut wanted: Vec<_> = whole.into_iter().flatten().collect();
        let mut unknown = Vec::new();
        if !self.resources.is_empty() {
            let names = Names::read(store, now).await?;
            let selection = names.in_history(&self.resources);
            wanted.extend(selection.references.iter().map(ToString::to_string));
            wanted.extend(self.resources.iter().cloned());
            unknown = selection.unknown();
        }
        Ok((wanted, unknown))
    }
}

/// An entry of the activity log, and what it says in words.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ActivityEntry {
    #[serde(flatten)]
    entry: Activity,
    /// The name of who did it.
    person: String,
    /// What was done: `stop`, `override running`, `apply`.
    what: String,
    /// What it is about: resources by their names, `schedule NAME` or `account NAME`.
    target: String,
}

/// Names the resources of entries as they are called at present; one without a record has its
/// reference.
async fn in_words(found: Vec<Activity>, store: &Store) -> anyhow::Result<Vec<ActivityEntry>> {
    let targets = found.iter().flat_map(|entry| entry.action.targets());
    let references: Vec<ResourceRef> = targets.filter_map(|one| one.parse().ok()).collect();
    let records = readable(store.records(&references).await?).into_iter();
    let names: BTreeMap<_, _> =
        records.map(|record| (record.reference.to_string(), record.name)).collect();
    let in_words = found.into_iter().map(|entry| {
        let targets = entry.action.targets().into_iter();
        let targets = targets.map(|target| names.get(&target).cloned().unwrap_or(target));
        let (person, what) = (entry.by.to_string(), entry.action.verb());
        ActivityEntry { target: joined(targets, ", "), person, what, entry }
    });
    Ok(in_words.collect())
}

impl Row for ActivityEntry {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::Time("When", |row, screen| Cell::new(screen.date(row.entry.at))),
        Column::Fixed("By", |row, _| Cell::new(&row.person)),
        Column::Fixed("What", |row, _| Cell::new(&row.what)),
        Column::Fixed("Target", |row, screen| {
            Cell::new(details_of(&row.entry, &row.target, &screen.zone))
        }),
        Column::Text("Why", |row, _| Cell::any(row.entry.why.as_ref())),
    ];
}
