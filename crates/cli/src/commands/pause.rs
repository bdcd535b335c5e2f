//! `offhours pause` and `offhours resume`: a time in which nothing is sent.

use domain::{
    AccountName, ScheduleName,
    activity::Action,
    configuration::{Pattern, Pause, PauseScope},
    decision::pause_of,
    record::{Direction, Phase},
};
use jiff::SignedDuration;
use report::{count, joined, pausing};

use crate::{
    Exit,
    ask::confirm,
    author::{ReasonArgs, author, reason},
    candidates,
    connection::all_records,
    context::Context,
    names::{check_account, check_schedule},
    output::{self, Format},
    overriding::replace_pause,
    time::{Asked, Length, When},
};

/// A longer pause needs confirmation: it may be forgotten.
const LONG: SignedDuration = SignedDuration::from_hours(30 * 24);

/// What a pause applies to; everything unless an option is given.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct ScopeArgs {
    /// Only the resources of this account.
    #[arg(long, value_name = "NAME", add = candidates::accounts())]
    account: Option<AccountName>,
    /// Only the resources that follow this schedule.
    #[arg(long, value_name = "NAME", add = candidates::schedules())]
    schedule: Option<ScheduleName>,
    /// Only the resources with this tag, on themselves or on their cluster; `*` stands for any text.
    #[arg(long, value_name = "TAG", value_parser = tag)]
    tag: Option<Pattern>,
}

fn tag(text: &str) -> Result<Pattern, String> {
    format!("tag:{text}").parse().map_err(|_| "expected a tag".to_owned())
}

impl ScopeArgs {
    fn scope(&self) -> PauseScope {
        let account = self.account.clone().map(PauseScope::Account);
        let schedule = self.schedule.clone().map(PauseScope::Schedule);
        let tag = self.tag.clone().map(PauseScope::Tag);
        account.or(schedule).or(tag).unwrap_or(PauseScope::Everything)
    }
}

/// Send nothing for a time: no stop, no start, no command.
///
/// Everything is still observed and shown. What was sent before is followed to its end; what takes
/// several requests waits where it is. Afterwards the latest edge counts, as after an outage. To pause
/// the same again changes the end and the reason.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours pause --reason \"release night\"               for a day
  offhours pause --until \"tomorrow 9am\" --reason \"moving the database\"
  offhours pause --account hz-eu --for 2h --reason \"maintenance at Hetzner\"
  offhours pause --tag team:web --starts --reason \"load test\"

`offhours override running --help` says how times are written.")]
pub struct Args {
    #[command(flatten)]
    scope: ScopeArgs,
    /// Length of the pause, such as 90m or 2h.
    #[arg(long = "for", value_name = "LENGTH", default_value = "1d")]
    lasting: Length,
    /// End of the pause: 21:00, "tomorrow 9am", friday, 2026-11-24 or an instant.
    #[arg(long, value_name = "WHEN", conflicts_with = "lasting", add = candidates::times())]
    until: Option<When>,
    /// Send starts all the same.
    #[arg(long)]
    starts: bool,
    /// Reason that every command shows meanwhile.
    #[arg(long, alias = "why", value_name = "TEXT", value_parser = reason)]
    reason: String,
}

/// End a pause now.
///
/// What should have been stopped or started meanwhile follows within a minute or two.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours resume                        the only pause in force
  offhours resume --account hz-eu
  offhours resume --all")]
pub struct ResumeArgs {
    #[command(flatten)]
    scope: ScopeArgs,
    /// All pauses in force.
    #[arg(long, conflicts_with_all = ["account", "schedule", "tag"])]
    all: bool,
    #[command(flatten)]
    given: ReasonArgs,
}

pub async fn pause(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    let session = context.connection.open_for_write().await?;
    let in_force = session.store.in_force().await?;
    let configuration = &in_force.configuration;
    let scope = args.scope.scope();
    match &scope {
        PauseScope::Account(name) => check_account(name, configuration.accounts.keys())?,
        PauseScope::Schedule(name) => check_schedule(name, configuration)?,
        PauseScope::Everything | PauseScope::Tag(_) => {}
    }
    let screen = context.screen(&**configuration, session.now);
    let until = args.until.clone().unwrap_or_else(|| args.lasting.into());
    let ends_at = screen.instant(&until, Asked::End)?;
    let end = screen.date(ends_at);
    if ends_at <= session.now {
        bail_usage!("`{until}` is {end}, which is over");
    }
    let is_long = ends_at.duration_since(session.now) > LONG;
    if is_long {
        let question = format!("Longer than 30 days: until {end}. Continue?");
        confirm(&question, "nothing was paused", context)?;
    }
    let author = author(&session, Some(args.reason.clone())).await?;
    let pause = Pause {
        scope,
        starts: args.starts,
        set_at: session.now,
        ends_at,
        by: author.by.to_string(),
        why: args.reason.clone(),
    };
    let replaces = in_force.overrides.pauses().find(|one| one.scope == pause.scope);
    let activity = author.does(Action::paused(&pause), session.present());
    replace_pause(&session, &pause, replaces, activity).await?;
    if context.format != Format::Table {
        output::print_json(&[pause])?;
        return Ok(Exit::Done);
    }
    output::print(&format!("{}\n", pausing::in_words(&pause, &screen.zone, screen.now)))?;
    let in_force = session.store.in_force().await?;
    let records = all_records(&session.store).await?;
    let concerned = records.iter().filter(|record| {
        let is_there = record.opted_in && !matches!(record.phase, Phase::Gone { .. });
        let of = pause_of(record, in_force.rules(), Direction::Stop, session.now);
        is_there && of.is_some_and(|of| of.scope == pause.scope)
    });
    let concerned = count(concerned.count(), "resource");
    output::remark(&format!("That concerns {concerned} now.\n"));
    Ok(Exit::Done)
}

pub async fn resume(args: &ResumeArgs, context: &Context) -> anyhow::Result<Exit> {
    let session = context.connection.open_for_write().await?;
    let in_force = session.store.in_force().await?;
    let active = in_force.overrides.pauses().filter(|one| one.is_active(session.now));
    let mut meant: Vec<_> = active.collect();
    let known = meant.iter().map(|one| format!("`offhours resume{}`", one.scope.option()));
    let known = joined(known, " or ");
    let scope = args.scope.scope();
    if !args.all && (meant.len() > 1 || scope != PauseScope::Everything) {
        meant.retain(|one| one.scope == scope);
    }
    match (meant.is_empty(), known.as_str(), &scope) {
        (false, ..) => {}
        (true, "", _) => bail_usage!("no pause is in force"),
        (true, known, PauseScope::Everything) => {
            bail_usage!("several pauses are in force: {known}, or --all");
        }
        (true, known, _) => bail_usage!("no such pause is in force: {known}"),
    }
    let author = author(&session, args.given.reason.clone()).await?;
    let screen = context.screen(&*in_force.configuration, session.now);
    let mut ended = Vec::new();
    for one in meant {
        let pause = Pause { ends_at: session.now.max(one.set_at), ..one.clone() };
        let activity =
            author.does(Action::Resumed { scope: pause.scope.clone() }, session.present());
        replace_pause(&session, &pause, Some(one), activity).await?;
        if screen.format == Format::Table {
            let scope = &pause.scope;
            output::print(&format!("The pause of {scope} has ended. What is due follows.\n"))?;
        }
        ended.push(pause);
    }
    if screen.format != Format::Table {
        output::print_json(&ended)?;
    }
    Ok(Exit::Done)
}
