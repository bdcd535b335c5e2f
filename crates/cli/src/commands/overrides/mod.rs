//! `offhours override`: temporary overrides of schedules, which end by themselves.

mod answer;
mod change;
#[cfg(test)]
mod tests;

use domain::{
    activity::Author, configuration::Override, decision::override_by_tag, record::Record,
    schedule::Desired,
};
use jiff::Timestamp;
use store::{InForce, OverrideChange};

use super::targets::{Selected, Targets};
use crate::{
    Exit,
    ask::confirm,
    author::{ReasonArgs, author},
    candidates,
    connection::Session,
    context::Context,
    exit::UsageError,
    names::{Names, record_of},
    output,
    overriding::{NotYetDue, replace_overrides},
    time::{Length, When},
};

pub(super) use answer::{Answer, OverrideView};
use change::{Change, Request, cleared, extended, has_not_ended, question};

/// Keep resources or a whole schedule running or stopped for a time.
///
/// An override wins over the schedule until it ends. It ends by itself; then the schedule takes
/// over. It does not win over `protect` or opt-outs.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours override running web-1 --for 2h
  offhours override running --all --until \"tomorrow 9am\" --reason \"release\"
  offhours override stopped --schedule office --until sunday
  offhours override extend web-1 2h
  offhours override list
  offhours override clear web-1
  offhours config schema override   what -o json prints

`offhours override running --help` says how times are written.")]
pub struct Args {
    #[command(subcommand)]
    pub(crate) command: OverrideCommand,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum OverrideCommand {
    /// Keep resources running until the given end, and start them if necessary.
    #[command(after_help = TIMES)]
    Running(SetArgs),
    /// Keep resources stopped until the given end, and stop them if necessary.
    #[command(after_help = TIMES)]
    Stopped(SetArgs),
    Extend(ExtendArgs),
    List(ListArgs),
    Clear(ClearArgs),
}

const TIMES: &str = "\
Times:
  2h, 90m, 1d12h, in 2h          from now on; days have 24 hours
  21:00, 9am, noon, midnight     when the clock shows that next
  today, tomorrow, 2026-11-24    that day: --from its begin, --until its end
  monday, next monday            the first one after today
  \"friday 18:00\"                 when that comes next; \"tomorrow 9am\"
  2026-11-24T21:00:00Z           that instant, or with an offset: +01:00
  next-edge                      when the schedule next starts or stops it

Examples:
  offhours override running web-1 \"ci-*\" --for 2h
  offhours override running --all --until \"tomorrow 9am\" --reason \"release\"
  offhours override stopped --schedule office-hours --until next-edge --dry-run
  offhours override running web-1 --from \"saturday 08:00\" --for 6h

Times are read and shown in one zone: that of --tz, else of the variable TZ,
else the one that all schedules share, else this machine's. A time that the
clock skips there is the jump; of one that it shows twice, --from is the first
and --until the last one.";

#[derive(Debug, clap::Args)]
pub(crate) struct SetArgs {
    #[command(flatten)]
    pub(super) targets: Targets,
    /// Length of the override, such as 90m, 2h or 1d12h.
    #[arg(long = "for", value_name = "LENGTH", allow_hyphen_values = true)]
    lasting: Option<Length>,
    /// End of the override: 21:00, "tomorrow 9am", friday, 2026-11-24, an instant, or next-edge.
    #[arg(long, value_name = "WHEN", conflicts_with = "lasting", add = candidates::times())]
    until: Option<When>,
    /// Begin of the override, if later than now. A length counts from there.
    #[arg(long, value_name = "WHEN", add = candidates::times())]
    from: Option<When>,
    #[command(flatten)]
    pub(super) given: ReasonArgs,
    /// Show what would happen, and change nothing.
    #[arg(long)]
    pub(super) dry_run: bool,
}

/// Add some time to the end of overrides.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours override extend web-1 2h
  offhours override extend --schedule office-hours --by 1d --reason \"still releasing\"")]
pub(crate) struct ExtendArgs {
    #[command(flatten)]
    targets: Targets,
    /// The time to add: 90m, 2h or 1d12h. Without it, the time follows the resources.
    #[arg(long, value_name = "LENGTH", required_unless_present = "resources")]
    by: Option<Length>,
    #[command(flatten)]
    change: ChangeArgs,
}

impl ExtendArgs {
    /// What is extended, and by how much.
    fn parts(&self) -> Result<(Targets, Length), UsageError> {
        let mut targets = self.targets.clone();
        let last =
            || targets.resources.pop()?.parse().ok().filter(|_| !targets.resources.is_empty());
        match self.by.or_else(last) {
            Some(by) => Ok((targets, by)),
            None => Err(UsageError("pass the time to add: web-1 2h, or --by 2h".to_owned())),
        }
    }
}

/// End overrides now, so that the schedule takes over.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours override clear web-1
  offhours override clear --schedule office-hours --dry-run
  offhours override clear --all")]
pub(crate) struct ClearArgs {
    #[command(flatten)]
    targets: Targets,
    #[command(flatten)]
    change: ChangeArgs,
}

#[derive(Debug, clap::Args)]
struct ChangeArgs {
    #[command(flatten)]
    given: ReasonArgs,
    /// Show what would happen, and write nothing.
    #[arg(long)]
    dry_run: bool,
}

/// List the overrides in force, and what takes over when they end.
///
/// `offhours activity` has those that ended.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours override list
  offhours override list -o json | jq '.[].ends_at'")]
pub(crate) struct ListArgs {}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    match &args.command {
        OverrideCommand::Running(args) => set(args, Desired::Running, context).await,
        OverrideCommand::Stopped(args) => set(args, Desired::Stopped, context).await,
        OverrideCommand::Extend(args) => extend(args, context).await,
        OverrideCommand::List(ListArgs {}) => list(context).await,
        OverrideCommand::Clear(args) => clear(args, context).await,
    }
}

impl SetArgs {
    /// Whether a stop or a start with these arguments is an override.
    pub(super) fn begins_or_ends(&self) -> bool {
        self.from.is_some() || self.end().is_some()
    }

    fn end(&self) -> Option<When> {
        self.lasting.map(When::from).or_else(|| self.until.clone())
    }
}

pub(super) async fn set(
    args: &SetArgs,
    desired: Desired,
    context: &Context,
) -> anyhow::Result<Exit> {
    let until = args.end();
    let until = until.ok_or_else(|| UsageError("pass --for or --until".to_owned()))?;
    let session = context.connection.open_for_write().await?;
    let author = author(&session, args.given.reason.clone()).await?;
    let request = Request { args, desired, until, author };
    let planned = async |now| {
        let selected = args.targets.select(&session.store, now).await?;
        let changes = request.changes(&selected, context, now)?;
        anyhow::Ok((selected, changes))
    };
    let (selected, changes) = planned(session.now).await?;
    let screen = context.screen(&*selected.in_force.configuration, session.now);
    let question = question(&changes, &selected, args.targets.are_whole(), &screen);
    let (selected, changes) = match question.filter(|_| !args.dry_run) {
        Some(question) => {
            confirm(&question, "nothing was set", context)?;
            // What was read before the question is stale by now, and an edge may have passed.
            planned(session.present()).await?
        }
        None => (selected, changes),
    };
    finish(&session, &selected, &changes, &request.author, args.dry_run, context).await
}

async fn extend(args: &ExtendArgs, context: &Context) -> anyhow::Result<Exit> {
    let (targets, by) = args.parts()?;
    let session = context.connection.open_for_write().await?;
    let author = author(&session, args.change.given.reason.clone()).await?;
    let planned = async |now| {
        let names = Names::read(&session.store, now).await?;
        let (selected, active) = meant(names, &targets)?;
        let changes = extended(&active, by, &author)?;
        anyhow::Ok((selected, changes))
    };
    let (mut selected, mut changes) = planned(session.now).await?;
    let screen = context.screen(&*selected.in_force.configuration, session.now);
    let question = question(&changes, &selected, targets.are_whole(), &screen);
    if let Some(question) = question.filter(|_| !args.change.dry_run) {
        confirm(&question, "nothing was extended", context)?;
        // It may have ended meanwhile.
        (selected, changes) = planned(session.present()).await?;
    }
    finish(&session, &selected, &changes, &author, args.change.dry_run, context).await
}

async fn clear(args: &ClearArgs, context: &Context) -> anyhow::Result<Exit> {
    let session = context.connection.open_for_write().await?;
    let names = Names::read(&session.store, session.now).await?;
    let (selected, active) = meant(names, &args.targets)?;
    let author = author(&session, args.change.given.reason.clone()).await?;
    let changes = cleared(&active, &selected, session.now);
    finish(&session, &selected, &changes, &author, args.change.dry_run, context).await
}

async fn list(context: &Context) -> anyhow::Result<Exit> {
    let Session { store, now, .. } = context.connection.open().await?;
    let Names { in_force, records, .. } = Names::read(&store, now).await?;
    let screen = context.screen(&*in_force.configuration, now);
    screen.remark_on_pauses(&in_force.overrides);
    screen.rows(&rows(&in_force, &records, now), "Nothing is overridden.")?;
    Ok(Exit::Done)
}

/// Returns the overrides that have not ended, those by tags included, the first to end first.
fn rows(in_force: &InForce, records: &[Record], now: Timestamp) -> Vec<OverrideView> {
    let by_command = in_force.overrides.iter().filter(|one| has_not_ended(one, now)).cloned();
    let mut active: Vec<_> = by_command.chain(by_tag(in_force, records, now)).collect();
    active.sort_by_key(|one| one.ends_at);
    active.iter().map(|one| OverrideView::of(one, in_force, records, true)).collect()
}

/// Returns the overrides by tags that have not ended.
fn by_tag(in_force: &InForce, records: &[Record], now: Timestamp) -> Vec<Override> {
    let followed = records.iter().filter(|record| record.opted_in);
    let made = followed.filter_map(|record| override_by_tag(record, in_force.rules(), now));
    made.filter(|one| has_not_ended(one, now)).collect()
}

/// The overrides that are meant, and what they concern. Those by tags are left out, and shown.
fn meant(names: Names, targets: &Targets) -> Result<(Selected, Vec<Override>), UsageError> {
    let Names { in_force, records, now } = &names;
    let by_command = in_force.overrides.iter().filter(|one| has_not_ended(one, *now));
    let mut active: Vec<_> = by_command.collect();
    let is_set = |one: &&Override| active.iter().any(|other| other.target == one.target);
    let by_tag = by_tag(in_force, records, *now);
    let by_tag: Vec<_> = by_tag.iter().filter(|one| !is_set(one)).collect();
    active.extend(&by_tag);
    let meant = targets.among(&active, records)?.into_iter();
    let (tagged, meant): (Vec<_>, Vec<_>) = meant.partition(|one| by_tag.contains(one));
    let tagged: Vec<_> =
        tagged.iter().filter_map(|one| Some((*one, record_of(&one.target, records)?))).collect();
    let kept = tagged.iter().map(|(Override { by, why, .. }, record)| {
        let value = why.as_deref().unwrap_or_default();
        format!("{} is kept running by its {by} ({value})", record.name)
    });
    let kept = kept.collect::<Vec<_>>().join(", ") + ": change or remove that at the provider";
    let is_refused = |(_, record): &(_, &Record)| meant.is_empty() || targets.name_exactly(record);
    if tagged.iter().any(is_refused) {
        return Err(UsageError(kept));
    } else if !tagged.is_empty() {
        output::remark(&format!("{kept}\n"));
    }
    let meant: Vec<_> = meant.into_iter().cloned().collect();
    let selected = Selected::overridden(&meant, names.in_force, names.records);
    Ok((selected, meant))
}

/// Writes changes, unless this is a dry run, and prints the answer.
async fn finish(
    session: &Session,
    selected: &Selected,
    changes: &[Change],
    author: &Author,
    dry_run: bool,
    context: &Context,
) -> anyhow::Result<Exit> {
    let at = session.present();
    let change = |change: &Change| OverrideChange {
        activity: author.does(change.action(), at),
        one: change.one.clone(),
        replaces: change.replaces.clone(),
    };
    let written: Vec<_> = changes.iter().filter(|_| !dry_run).map(change).collect();
    let half_done = match replace_overrides(session, &written).await {
        Ok(()) => None,
        Err(error) if error.is::<NotYetDue>() => Some(error),
        Err(error) => return Err(error),
    };
    let screen = context.screen(&*selected.in_force.configuration, session.now);
    screen.remark_on_pauses(&selected.in_force.overrides);
    let answer = Answer::of(changes, selected, &screen, dry_run);
    context.format.print(&answer, || answer.text(&screen))?;
    half_done.map_or(Ok(Exit::after(false, answer.needs_person())), Err)
}
