//! `offhours override`: temporary overrides of schedules, which end by themselves.

mod change;
mod effects;
mod render;
mod target;
#[cfg(test)]
mod tests;

use clap::ArgGroup;
use domain::{
    activity::{Action, Activity, Author},
    configuration::{Override, Target},
    schedule::Desired,
};
use jiff::{SignedDuration, Timestamp};
use store::Store;

use super::Format;
use crate::{
    Exit,
    ask::confirm,
    author::{author, reason},
    candidates,
    connection::{Session, all_records},
    context::Context,
    exit::UsageError,
    output,
    overriding::{NotYetDue, replace_override},
    time::{Length, end::End, here},
};

use change::{Change, OverrideRequest, cleared};
use effects::StoredState;
use render::DisplayZones;
pub(super) use render::{ChangeReport, OverrideView};
use target::{SCHEDULE, overridden_records, overridden_target, records_for, target};

/// A longer override needs confirmation: a slip, or a sign that the schedule should change.
const LONG: SignedDuration = SignedDuration::from_hours(30 * 24);

/// How long ended overrides stay in the list with `--all`.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(90 * 24);

/// Keep a resource or a whole schedule running or stopped for a time.
///
/// An override wins over the schedule until it ends. It ends by itself; then the schedule takes
/// over. It does not win over `protect` or opt-outs.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  offhours override running web-1 --for 2h
  offhours override running schedule:office --until 22:00 --reason \"release\"
  offhours override stopped do-main/droplet/3164444 --until friday
  offhours override stopped web-1 --until next-edge --dry-run
  offhours override list
  offhours override clear web-1
  offhours config schema override   what -o json prints

Times are read in the zone of the target's schedule, and the answer shows the
resulting instant there and here, and what takes over then."
)]
pub struct Args {
    #[command(subcommand)]
    command: OverrideCommand,
}

#[derive(Debug, clap::Subcommand)]
enum OverrideCommand {
    /// Keep the target running until the given end, and start it if necessary.
    Running(SetArgs),
    /// Keep the target stopped until the given end, and stop it if necessary.
    Stopped(SetArgs),
    List(ListArgs),
    Clear(ClearArgs),
}

#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("end").required(true).args(["lasting", "until"]))]
#[command(after_help = "\
Ends:
  --for 90m, 2h, 1d12h           from now on; days have 24 hours
  --until 22:00                  when the clock shows that next
  --until friday, tomorrow       the end of that day
  --until 2026-11-24             the end of that day
  --until \"friday 18:00\"         a day and a time; \"2026-11-24 18:00\"
  --until 2026-11-24T21:00:00Z   that instant
  --until next-edge              when the schedule next starts or stops it

Examples:
  offhours override running web-1 --for 2h
  offhours override running schedule:office --until 22:00 --reason \"release\"
  offhours override stopped --schedule office-hours --until next-edge --dry-run
  offhours override running web-1 --from \"saturday 08:00\" --for 6h

Times are read in the zone of the target's schedule, or in this machine's if
it follows none. A time that the clock skips there is the jump; one that it
shows twice is the last one.")]
struct SetArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Length of the override, such as 90m, 2h or 1d12h.
    #[arg(long = "for", value_name = "SPAN", allow_hyphen_values = true)]
    lasting: Option<Length>,
    /// Begin of the override, if later than now: written like an end, and a day is its midnight. The
    /// end counts from there.
    #[arg(long, value_name = "BEGIN")]
    from: Option<End>,
    /// End of the override: 22:00, friday, 2026-11-24, "2026-11-24 22:00", an instant, or
    /// next-edge.
    #[arg(long, value_name = "END")]
    until: Option<End>,
    /// Reason that is shown with the override, and by `offhours activity`.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: Option<String>,
    /// Show what would happen, and write nothing.
    #[arg(long)]
    dry_run: bool,
}

/// End an override now, so that the schedule takes over.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours override clear web-1
  offhours override clear schedule:office-hours --dry-run")]
struct ClearArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Reason that `offhours activity` shows.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: Option<String>,
    /// Show what would happen, and write nothing.
    #[arg(long)]
    dry_run: bool,
}

/// List the overrides in force, and what takes over when they end.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours override list
  offhours override list --all   those that ended within 90 days as well
  offhours override list -o json | jq '.[].ends_at'")]
struct ListArgs {
    /// Include overrides that ended within 90 days: the last one of each target.
    #[arg(long)]
    all: bool,
}

#[derive(Debug, clap::Args)]
struct TargetArgs {
    /// A resource, by reference or by unique name; or a schedule, as schedule:NAME, or by its name
    /// if no resource has that name.
    #[arg(value_name = "TARGET", required_unless_present = "schedule", add = candidates::resources())]
    target: Option<String>,
    /// All resources that follow this schedule.
    #[arg(long, value_name = "NAME", conflicts_with = "target", add = candidates::schedules())]
    schedule: Option<String>,
}

impl Args {
    /// Whether overrides are only listed.
    pub(crate) fn lists(&self) -> bool {
        matches!(self.command, OverrideCommand::List(_))
    }
}

/// Sets, lists or clears overrides.
pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    match &args.command {
        OverrideCommand::Running(args) => set(args, context, Desired::Running).await,
        OverrideCommand::Stopped(args) => set(args, context, Desired::Stopped).await,
        OverrideCommand::List(args) => list(args, context).await,
        OverrideCommand::Clear(args) => clear(args, context).await,
    }
}

async fn set(args: &SetArgs, context: &Context, desired: Desired) -> anyhow::Result<Exit> {
    let session = context.connection.open_for_write().await?;
    let author = author(&session, args.reason.clone()).await?;
    let store = &session.store;
    let (mut change, mut zones) = planned(args, desired, &author, store, session.now).await?;
    let question = question(&change, &zones, session.now);
    if let Some(question) = question.filter(|_| !args.dry_run) {
        if !confirm(&question, context)? {
            anyhow::bail!("nothing was set");
        }
        // What was read before the question is stale by now, and an edge may have passed.
        (change, zones) = planned(args, desired, &author, store, session.present()).await?;
    }
    let activity = author.does(Action::set(&change.one), session.present());
    finish(&session, change, activity, &zones, args.dry_run, context.format).await
}

/// Works out the change to write from what is stored now.
async fn planned(
    args: &SetArgs,
    desired: Desired,
    author: &Author,
    store: &Store,
    now: Timestamp,
) -> anyhow::Result<(Change, DisplayZones)> {
    let here = here();
    let word = args.target.word();
    let records = records_for(store, &word).await?;
    let in_force = store.in_force().await?;
    let stored = StoredState {
        configuration: &in_force.configuration,
        overrides: &in_force.overrides,
        records: &records,
    };
    let request = OverrideRequest {
        target: target(&word, &in_force.configuration, &records, now)?,
        desired,
        begin: args.from.map(End::as_begin),
        end: args.end()?,
        author: author.clone(),
    };
    let change = request.change(stored, now, &here)?;
    let zones = DisplayZones::of(stored, &change.one.target, here);
    Ok((change, zones))
}

async fn clear(args: &ClearArgs, context: &Context) -> anyhow::Result<Exit> {
    let session = context.connection.open_for_write().await?;
    let (store, now) = (&session.store, session.now);
    let overrides = store.head_and_overrides().await?.overrides;
    let active: Vec<_> = overrides.iter().filter(|o| has_not_ended(o, now)).collect();
    let overridden = overridden_records(store, active.iter().copied()).await?;
    let target = overridden_target(&args.target.word(), &active, &overridden)?;
    let records = match &target {
        Target::Resource(_) => overridden,
        Target::Schedule(_) => all_records(store).await?,
    };
    let in_force = store.in_force().await?;
    let stored = StoredState {
        configuration: &in_force.configuration,
        overrides: &in_force.overrides,
        records: &records,
    };
    let change = cleared(stored, &target, now)?;
    let zones = DisplayZones::of(stored, &target, here());
    let author = author(&session, args.reason.clone()).await?;
    let activity = author.does(Action::OverrideCleared { target }, session.present());
    finish(&session, change, activity, &zones, args.dry_run, context.format).await
}

async fn list(args: &ListArgs, context: &Context) -> anyhow::Result<Exit> {
    let Session { store, now, .. } = context.connection.open().await?;
    let overrides = store.head_and_overrides().await?.overrides;
    let records = overridden_records(&store, overrides.iter()).await?;
    let in_force = store.in_force().await?;
    let stored = StoredState {
        configuration: &in_force.configuration,
        overrides: &in_force.overrides,
        records: &records,
    };
    let rows = rows(stored, now, args.all);
    let screen = context.screen(&*in_force.configuration, None, now);
    screen.rows(&rows, "Nothing is overridden.")?;
    Ok(Exit::Done)
}

/// Returns the rows of a list: active overrides first, then ended ones, the latest first.
fn rows(stored: StoredState<'_>, now: Timestamp, all: bool) -> Vec<OverrideView> {
    let (mut active, mut ended): (Vec<_>, Vec<_>) =
        stored.overrides.iter().partition(|one| has_not_ended(one, now));
    active.sort_by_key(|one| one.ends_at);
    ended.retain(|one| all && one.ends_at + REMEMBERED > now);
    ended.sort_by_key(|one| std::cmp::Reverse(one.ends_at));
    let rows = active.into_iter().chain(ended);
    rows.map(|one| OverrideView::of(stored, one, now)).collect()
}

/// Reports whether an override has yet to end. One that ended as it began was never in force.
///
/// The store's clock has whole seconds, so one that ends within this second is over.
fn has_not_ended(one: &Override, now: Timestamp) -> bool {
    now.as_second() < one.ends_at.as_second() && one.set_at < one.ends_at
}

impl TargetArgs {
    /// The target as it was written; `--schedule` is another way to write `schedule:`.
    fn word(&self) -> String {
        match (&self.target, &self.schedule) {
            (Some(target), _) => target.clone(),
            (None, schedule) => format!("{SCHEDULE}{}", schedule.as_deref().unwrap_or_default()),
        }
    }
}

impl SetArgs {
    fn end(&self) -> Result<End, UsageError> {
        let end = self.lasting.map(End::from).or(self.until);
        end.ok_or_else(|| UsageError("pass --for or --until".to_owned()))
    }
}

/// Returns what to ask before an override is set that stops a whole schedule, or lasts long.
fn question(change: &Change, zones: &DisplayZones, now: Timestamp) -> Option<String> {
    let one = &change.one;
    let is_long = one.ends_at.duration_since(now) > LONG;
    let long = is_long.then(|| format!("Longer than 30 days: until {}.", zones.both(one.ends_at)));
    let stops = match one.target {
        Target::Schedule(_) => change.report.question(zones),
        Target::Resource(_) => None,
    };
    match (long, stops) {
        (Some(long), Some(stops)) => Some(format!("{long} {stops}")),
        (Some(long), None) => Some(format!("{long} Continue?")),
        (None, stops) => stops,
    }
}

/// Writes a change, unless this is a dry run, and prints its report.
async fn finish(
    session: &Session,
    change: Change,
    activity: Activity,
    zones: &DisplayZones,
    dry_run: bool,
    format: Format,
) -> anyhow::Result<Exit> {
    let written = if dry_run {
        Ok(())
    } else {
        replace_override(session, &change.one, change.replaces.as_ref(), activity).await
    };
    let half_done = match written {
        Ok(()) => None,
        Err(error) if error.is::<NotYetDue>() => Some(error),
        Err(error) => return Err(error),
    };
    let printed = ChangeReport { dry_run, ..change.report };
    match format {
        Format::Json | Format::Csv => output::print_json(&printed)?,
        Format::Table => output::print_lines(&printed.text(zones))?,
    }
    match half_done {
        Some(error) => Err(error),
        None if printed.needs_person() => Ok(Exit::NeedsPerson),
        None => Ok(Exit::Done),
    }
}
