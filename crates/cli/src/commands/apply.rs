//! `offhours apply`: puts a file's configuration into force, after showing what that leads to.

use std::{collections::BTreeSet, fmt::Write as _, path::PathBuf};

use anyhow::Context as _;
use domain::{
    AccountName, ScheduleName,
    activity::Author,
    configuration::{Configuration, Floor, Generation, Mode, Override, Pause},
    decision::Rules,
    record::Direction,
    schedule::desired_or_any,
};
use environment::settings::PROTECT;
use jiff::{Timestamp, tz::TimeZone};
use local::file::Purpose;
use report::{
    consequences::{
        Conflict, Consequences, SOON, ScheduleChange, Soon, Stranded, Unmatched, Unprotected,
    },
    count, joined,
    load::overloads,
    time::{local, short},
};
use schemars::JsonSchema;
use serde::Serialize;
use store::{ApplyError, Applying, Head, InForce, LogEntry, StoreError};

use crate::{
    Exit,
    apply::{
        difference::{self, TableChange},
        loosening::loosened,
        moves::{Moves, MovingStop, forecast},
        trials::{AccountTrial, login, try_accounts, try_applied},
    },
    ask::confirm,
    author::{author, reason},
    configuration_file::{self, ListedResources},
    connection::{Session, all_records, readable},
    context::Context,
    output::{self, Format, Style},
    overriding::publish,
    remedies,
};

/// The most resources named in one list for people; JSON has all of them.
const MANY: usize = 20;

/// How many coming edges of a changed schedule are shown.
const EDGES: usize = 2;

/// Put a configuration into force, after showing what it changes.
///
/// Shows the difference from the stored configuration, what it will stop or start within the next
/// 15 minutes, and what the tokens of new and changed accounts show; then asks for confirmation.
/// All of it comes into force at once, or none of it: whatever goes wrong, the previous
/// configuration holds.
///
/// An apply is refused if resources that Offhours holds stopped would be left with nothing to bring
/// them back, unless --leave says so; the command that starts them is shown. An account that only
/// has another name keeps all that is known of its resources: write `was = "OLD"` under its new name.
///
/// If a schedule moves machines to another plan while they are stopped, or hibernates them, the
/// command shows from which plan to which, and what that saves. It is refused if one of them could
/// not come back.
///
/// Exit code 1 if it is refused, and 3 if it was applied, but the token of a new or changed account
/// cannot list it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours apply --data offhours.db              to a local store
  offhours apply --dry-run                       what would change
  offhours apply --dry-run --exit-code           ends with 4 if something would
  offhours apply --config staging.toml --yes     from a pipeline
  offhours apply --message \"shorter Fridays\"     shown by `offhours activity`
  offhours config rollback                       to what was in force before")]
pub struct Args {
    /// Configuration file to apply.
    #[arg(long, short = 'f', value_name = "FILE", default_value = "offhours.toml")]
    config: PathBuf,
    #[command(flatten)]
    options: Options,
}

/// How a configuration is put into force.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(super) struct Options {
    /// Show what would change, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// With --dry-run: end with exit code 4 if something would change.
    #[arg(long, requires = "dry_run")]
    exit_code: bool,
    /// Leave resources stopped that nothing would bring back, and end overrides and pauses whose
    /// schedule or account goes. `offhours start` brings back resources that a schedule releases; nothing brings
    /// back those in an account that is removed. Refused if one of the latter is owed a size.
    #[arg(long)]
    leave: bool,
    /// With --yes: apply even if a pattern of `protect` or an observe mode is given up.
    #[arg(long)]
    loosen: bool,
    /// What this apply is for: `offhours activity` shows it.
    #[arg(long, short, value_name = "TEXT", value_parser = reason)]
    message: Option<String>,
}

/// The configuration to apply, and where it comes from.
pub(super) struct ProposedConfiguration {
    /// The file or the generation, in words.
    pub source: String,
    pub configuration: Configuration,
    pub warnings: Vec<String>,
    /// The generation that it repeats, for a rollback.
    pub repeats: Option<Generation>,
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    // An invalid file is refused before any store is opened.
    let parsed = configuration_file::load(&args.config, ListedResources::NeedAccounts)?;
    let only_reads = args.options.dry_run && context.connection.is_there();
    let purpose = if only_reads { Purpose::Read } else { Purpose::Create };
    let session = context.connection.open_for(purpose).await?;
    let warnings = parsed.warnings_at(session.now);
    let proposed = ProposedConfiguration {
        source: args.config.display().to_string(),
        warnings: warnings.iter().map(ToString::to_string).collect(),
        configuration: parsed.configuration,
        repeats: None,
    };
    put_into_force(proposed, &args.options, &session, context).await
}

pub(super) async fn put_into_force(
    proposed: ProposedConfiguration,
    options: &Options,
    session: &Session,
    context: &Context,
) -> anyhow::Result<Exit> {
    let mut plan = Plan::make(session, context, proposed).await?;
    if plan.changes_nothing() {
        let (source, generation) = (&plan.source, plan.in_force_generation);
        let same =
            || format!("Nothing to apply: {source} is the same as generation {generation}.\n");
        context.format.print(&plan, same)?;
        return Ok(Exit::Done);
    }
    plan.moves = forecast(session, &plan.proposed, plan.now).await;
    plan.judge(options, context);
    if context.format == Format::Table {
        output::print_lines(&plan.render(Style::of_stdout()))?;
    }
    for warning in &plan.warnings {
        output::remark(&format!("warning: {warning}\n"));
    }
    if plan.is_refused() || options.dry_run {
        if context.format == Format::Table && !plan.is_refused() {
            output::print(&format!("Would apply: {}.\n", plan.counted()))?;
        }
        let allowed = if options.exit_code { Exit::Changes } else { Exit::Done };
        return plan.end(context.format, None, allowed);
    }
    let author = author(session, options.message.clone()).await?;
    confirm("Apply?", "nothing was applied", context)?;
    // An edge may have passed while the question was open.
    plan.look_again(session).await?;
    plan.judge(options, context);
    if plan.is_refused() {
        return plan.end(context.format, None, Exit::Failed);
    }
    let generation = plan.apply(session, &author).await?;
    if context.format == Format::Table {
        output::print(&format!("Applied as generation {generation}: {}.\n", plan.counted()))?;
    }
    plan.try_later(session, context.format).await?;
    let unlisted = plan.accounts.iter().any(|trial| trial.error.is_some());
    let exit = if unlisted { Exit::NeedsPerson } else { Exit::Done };
    plan.end(context.format, Some(generation), exit)
}

/// What an apply does, or would do.
#[derive(Serialize, JsonSchema)]
pub(super) struct Plan {
    /// The source of the new configuration: a file, or an earlier generation.
    source: String,
    /// The generation in force; 0 if nothing was ever applied.
    in_force_generation: Generation,
    /// How the new configuration differs from the one in force.
    difference: Vec<TableChange>,
    /// What happens to resources because of it.
    consequences: Consequences,
    /// The outcome of its stops that leave a plan, a standby, or the machine itself.
    moves: Moves,
    /// What the tokens of new and changed accounts show.
    accounts: Vec<AccountTrial>,
    /// The accounts that are tried only once they are applied, because their token or key has not
    /// been sent to its address or host before.
    later: Vec<AccountName>,
    /// The guard rails that it gives up: patterns of `protect`, and observe modes.
    loosened: Vec<String>,
    /// What is allowed, but should be known first.
    warnings: Vec<String>,
    /// Why it is refused, and what to do; empty if it is not.
    refused: Vec<String>,
    /// The generation as which it was applied; null if it was not.
    applied: Option<Generation>,
    /// What is odd about the configuration itself and the one in force.
    #[serde(skip)]
    known: Vec<String>,
    /// Which rate limits do not carry what would follow schedules.
    #[serde(skip)]
    overloads: Vec<String>,
    #[serde(skip)]
    proposed: Configuration,
    #[serde(skip)]
    repeats: Option<Generation>,
    #[serde(skip)]
    in_force: InForce,
    #[serde(skip)]
    head: Head,
    /// Whether the configuration in force is not the one applied last, or could not be read, or
    /// records were handled under a later one: applying mends that.
    #[serde(skip)]
    mends: bool,
    #[serde(skip)]
    now: Timestamp,
    #[serde(skip)]
    zone: TimeZone,
}

impl Plan {
    async fn make(
        session: &Session,
        context: &Context,
        mut proposed: ProposedConfiguration,
    ) -> anyhow::Result<Self> {
        let store = &session.store;
        let head = store.head_and_overrides().await?.head;
        let (in_force, unread) = match store.in_force().await {
            Err(error) if error.hides_configuration() => {
                (store.in_force_without_configuration().await?, Some(error))
            }
            read => (read?, None),
        };
        let generation = in_force.configuration.generation;
        // What is written replaces the generation it was compared with.
        proposed.configuration.generation = generation;
        let old = &in_force.configuration;
        if proposed.repeats.is_some() {
            proposed.configuration.take_back_renames(old);
        }
        proposed.configuration.floor = old.floor.clone();
        let applied_instead = store.applied_instead(head.generation).await?;
        let mut known = about_in_force(generation, unread.as_ref(), applied_instead.as_ref());
        if let Some(error) = &session.floor_unread {
            known.push(format!("cannot read what the deployment itself protects: {error}"));
        }
        known.extend(proposed.warnings);
        let settings = &proposed.configuration.settings;
        if !context.connection.is_local()
            && (settings.heartbeat.is_some() || !settings.notify.is_empty())
        {
            let ignored = "the functions on AWS read neither [notify] nor heartbeat: their events \
                           are on the stack's bus";
            known.push(ignored.to_owned());
        }
        let (accounts, later) = try_accounts(session, old, &proposed.configuration).await?;
        let mut plan = Self {
            source: proposed.source,
            in_force_generation: generation,
            difference: difference::between(old, &proposed.configuration),
            consequences: Consequences::default(),
            moves: Moves::default(),
            accounts,
            later,
            loosened: loosened(old, &proposed.configuration),
            warnings: Vec::new(),
            refused: Vec::new(),
            applied: None,
            zone: context.zone(&proposed.configuration),
            known,
            overloads: Vec::new(),
            mends: unread.is_some() || applied_instead.is_some(),
            proposed: proposed.configuration,
            repeats: proposed.repeats,
            in_force,
            head,
            now: session.now,
        };
        plan.look_again(session).await?;
        Ok(plan)
    }

    fn changes_nothing(&self) -> bool {
        let is_first = self.in_force_generation.0 == 0;
        self.difference.is_empty() && !is_first && !self.mends
    }

    /// Works out the consequences from the records as they are now.
    async fn look_again(&mut self, session: &Session) -> anyhow::Result<()> {
        let mut records = all_records(&session.store).await?;
        let known = records.iter().map(|record| self.proposed.renamed(&record.reference));
        let known: BTreeSet<_> = known.collect();
        // No inventory has seen these yet under either name.
        let found = self.accounts.iter().flat_map(|account| &account.found);
        records.extend(found.filter(|found| !known.contains(&found.reference)).cloned());
        let generation = self.in_force_generation;
        let ahead = records.iter().filter(|record| record.is_ahead_of(generation)).count();
        if ahead > 0 && !self.mends {
            self.mends = true;
            self.known.push(format!(
                "a later generation than {generation} has handled {}: the table of the schedules \
                 was restored from a backup; applying takes a later number",
                count(ahead, "record"),
            ));
        }
        let handled = records.iter().filter_map(|record| record.handled.as_ref());
        let last = handled.map(|handled| handled.generation).max();
        let mut proposed = self.proposed.clone();
        // Judged as what it will become: a generation later than the one in force and than all that
        // was handled.
        proposed.generation = Generation(last.unwrap_or_default().max(generation).0 + 1);
        let in_force = &self.in_force;
        let overrides = in_force.overrides.renamed(&proposed, &in_force.configuration);
        let new = Rules { configuration: &proposed, overrides: &overrides };
        self.now = self.now.max(session.present());
        let states = readable(session.store.account_states().await?);
        self.consequences =
            Consequences::of(&records, self.in_force.rules(), new, &states, self.now);
        let overloads = overloads(&records, new, &states, self.now);
        let warning = |one| {
            let (found, remedy) = remedies::of_overload(one, &self.zone, self.now);
            format!("account {}: {found}; {remedy}", one.account)
        };
        self.overloads = overloads.iter().map(warning).collect();
        Ok(())
    }

    /// Decides what to warn of, and whether to refuse it.
    fn judge(&mut self, options: &Options, context: &Context) {
        self.warnings = self.warnings();
        let refused = [
            self.reached_twice(),
            self.unprotected(),
            self.left_behind(options),
            self.loosening(options, context),
        ];
        let refused = refused.into_iter().flatten().chain(self.lapsing(options));
        self.refused = self.without_return(true).chain(refused).collect();
    }

    fn is_refused(&self) -> bool {
        !self.refused.is_empty()
    }

    /// Tries the accounts that could not be tried before they were in force.
    async fn try_later(&mut self, session: &Session, format: Format) -> anyhow::Result<()> {
        let trials = try_applied(session, &self.later, &self.proposed).await;
        for warning in trials.iter().flat_map(AccountTrial::warnings) {
            output::remark(&format!("warning: {warning}\n"));
        }
        if format == Format::Table {
            output::print(&self.found_in(&trials))?;
        }
        self.later.clear();
        self.accounts.extend(trials);
        Ok(())
    }

    fn found_in(&self, trials: &[AccountTrial]) -> String {
        let accounts = &self.proposed.accounts;
        trials.iter().filter_map(|one| Some(one.found(accounts.get(&one.account)?))).collect()
    }

    fn end(
        &mut self,
        format: Format,
        applied: Option<Generation>,
        exit: Exit,
    ) -> anyhow::Result<Exit> {
        self.applied = applied;
        for refusal in &self.refused {
            output::remark(&format!("error: refused: {refusal}\n"));
        }
        if format == Format::Json {
            output::print_json(self)?;
        }
        Ok(if self.is_refused() { Exit::Failed } else { exit })
    }

    /// What changes, in words: `1 schedule changed; 2 resources stop at once`.
    fn counted(&self) -> String {
        let tables = difference::counted(&self.difference);
        let tables = if tables.is_empty() { "as it was".to_owned() } else { tables };
        let soon = |direction: Direction| {
            let all = self.consequences.soon.iter();
            let now = all.filter(|one| one.direction == direction && one.at <= self.now);
            let number = now.filter(|one| !one.observed_only).count();
            let verb = if number == 1 { format!("{direction}s") } else { direction.to_string() };
            (number > 0).then(|| format!("; {} {verb} at once", count(number, "resource")))
        };
        let soon = [Direction::Stop, Direction::Start].into_iter().filter_map(soon);
        tables + &soon.collect::<String>()
    }

    /// What is allowed but should be known before confirming.
    fn warnings(&self) -> Vec<String> {
        let Consequences { held, conflicts, unmatched, hard_cuts, stranded, .. } =
            &self.consequences;
        let mut all = self.known.clone();
        all.extend(self.accounts.iter().flat_map(AccountTrial::warnings));
        all.extend(self.later.iter().filter_map(|name| {
            let account = self.proposed.accounts.get(name)?;
            let (login, place) = (login(account), account.own_destination().unwrap_or_default());
            Some(format!(
                "account {name} is not tried before it is applied: its {login} has not been used \
                 at {place} before"
            ))
        }));
        let max_new = self.proposed.settings.max_new;
        all.extend(held.iter().map(|(account, held)| {
            let number = count(held.len(), "resource");
            format!(
                "{number} of account {account} would join schedules at once, more than max_new = \
                 {max_new}: held, and not touched until `offhours approve`"
            )
        }));
        all.extend(conflicts.iter().map(|Conflict { resource, reason }| {
            format!("nothing would be sent for {resource}: {reason}")
        }));
        all.extend(unmatched.iter().map(|Unmatched { schedule, name }| {
            format!("schedule {schedule} lists the name `{name}`, and no known resource has it")
        }));
        all.extend(hard_cuts.iter().map(|schedule| {
            format!(
                "schedule {schedule} cuts the power of its Droplets; with graceful = true their \
                 guests are asked to shut down first"
            )
        }));
        all.extend(self.overloads.iter().cloned());
        let unknown = self.moves.unknown.iter();
        all.extend(unknown.map(|why| format!("cannot check the resizes in account {why}")));
        let refusals = self.without_return(false);
        all.extend(refusals.map(|refusal| format!("no stop until this is mended: {refusal}")));
        all.extend(stranded.iter().map(
            |Stranded { resource, saved, reason, only_recorded, .. }| {
                let kept =
                    saved.as_ref().map_or("held stopped".to_owned(), |one| format!("owed {one}"));
                let only =
                    if *only_recorded { ", only its record says how to recreate it" } else { "" };
                format!("left behind: {resource} is {kept}{only}, and {reason}")
            },
        ));
        all
    }

    /// Reports whether this configuration asks for a stop that the one in force does not. A stop
    /// already in force must not hold up another change, and no stop may hold up a rollback.
    fn is_asked_anew(&self, stop: &MovingStop) -> bool {
        let schedule = &stop.stop.schedule;
        let before = self.in_force.configuration.schedules.get(schedule);
        let after = self.proposed.schedules.get(schedule);
        let same = before.zip(after).is_some_and(|(one, other)| one.policy.moves_as(&other.policy));
        self.repeats.is_none() && !same
    }

    /// A second account that reaches the same resources: neither of the two could act.
    fn reached_twice(&self) -> Option<String> {
        let twice = &self.consequences.twice;
        let [one, other] = twice.first()?;
        let number = count(twice.len(), "resource");
        Some(format!(
            "{number} would be reached by two accounts, such as {one} and {other}, and nothing \
             would be sent for them: keep one of the accounts"
        ))
    }

    /// Stops from which a resource could not come back: those that are asked for anew, or others.
    fn without_return(&self, anew: bool) -> impl Iterator<Item = String> {
        let stops = self.moves.stops.iter();
        let stops = stops.filter(move |stop| self.is_asked_anew(stop) == anew);
        stops.filter(|stop| stop.refused().is_some()).map(ToString::to_string)
    }

    /// Resources that nothing would bring back, with the commands that start them first; and sizes
    /// that no later command could restore, in any case.
    fn left_behind(&self, options: &Options) -> Option<String> {
        let stranded = &self.consequences.stranded;
        let lost: Vec<_> =
            stranded.iter().filter(|one| one.account_goes && one.saved.is_some()).collect();
        let first = stranded.first().filter(|_| !options.leave || !lost.is_empty())?;
        let (resisting, yielding): (Vec<_>, Vec<_>) = stranded.iter().partition(|one| one.resists);
        let start = command("offhours start", "", &yielding);
        let keep = command("offhours override running", " --for 1h", &resisting);
        let commands: Vec<_> = start.into_iter().chain(keep).collect();
        let number = count(stranded.len(), "resource");
        let otherwise = if lost.is_empty() {
            format!("pass --leave{}", self.brought_back_by())
        } else {
            let account = &lost.first().unwrap_or(&first).resource.resource.account;
            let forget = command("offhours forget --anyway", "", &lost).unwrap_or_default();
            format!(
                "give the sizes up by {forget}, or, if the account was only renamed, write `was = \
                 \"{account}\"` under its new name"
            )
        };
        Some(format!(
            "{number} would be left stopped with nothing to bring {} back: start {0} first by {}; \
             or {otherwise}",
            if stranded.len() == 1 { "it" } else { "them" },
            commands.join(" and "),
        ))
    }

    /// How the resources left behind can be brought back.
    fn brought_back_by(&self) -> &'static str {
        let stranded = &self.consequences.stranded;
        if stranded.iter().any(|one| one.account_goes) {
            ", which starts nothing later in an account that is removed"
        } else if stranded.iter().any(|one| one.barred) {
            ": `offhours start` restores them once what is named above has ended"
        } else {
            ": `offhours start` restores them later"
        }
    }

    /// What the deployment protects by the name that an account had.
    fn unprotected(&self) -> Option<String> {
        let unprotected = &self.consequences.unprotected;
        let Unprotected { resource, pattern } = unprotected.first()?;
        let number = count(unprotected.len(), "resource");
        Some(format!(
            "{number} would no longer be protected by the deployment, such as {resource} by \
             `{pattern}`: let {PROTECT}, the stack's parameter Protect, name it as it is called here \
             as well"
        ))
    }

    /// Overrides and pauses that would end before their time.
    fn lapsing(&self, options: &Options) -> impl Iterator<Item = String> {
        let Consequences { lapsing, lapsing_pauses, .. } = &self.consequences;
        let until = |at: Timestamp| local(at, &self.zone);
        let overrides = lapsing.iter().map(|one| {
            let Override { target, desired, set_at, ends_at, by, .. } = one;
            let from = (*set_at > self.now).then(|| format!("from {} ", until(*set_at)));
            let from = from.unwrap_or_default();
            format!("{target} to {desired} {from}until {}, by {by}", until(*ends_at))
        });
        let pauses = lapsing_pauses.iter().map(|Pause { scope, ends_at, by, .. }| {
            format!("{scope} until {}, by {by}", until(*ends_at))
        });
        let set_anew = "set it anew for what takes its place and clear it";
        let paused_anew = "pause what takes its place and resume it";
        let all: [(_, _, Vec<_>); 2] =
            [("override", set_anew, overrides.collect()), ("pause", paused_anew, pauses.collect())];
        let lapsing = all.into_iter().filter(|(.., ends)| !ends.is_empty() && !options.leave);
        lapsing.map(|(what, instead, ends)| {
            let (count, ends) = (count(ends.len(), what), ends.join("; "));
            format!(
                "{count} would end early, because what it applies to goes ({ends}): {instead}, or \
                 pass --leave"
            )
        })
    }

    /// Guard rails that would be given up without a person having been asked.
    fn loosening(&self, options: &Options, context: &Context) -> Option<String> {
        if self.loosened.is_empty() || options.loosen || !context.yes {
            return None;
        }
        Some(format!(
            "{} would be given up ({}): pass --loosen as well, or confirm it in a terminal",
            count(self.loosened.len(), "guard rail"),
            self.loosened.join("; "),
        ))
    }

    async fn apply(&self, session: &Session, author: &Author) -> anyhow::Result<Generation> {
        let replaces = self.in_force_generation;
        let store = &session.store;
        let applying =
            Applying { author: author.clone(), changes: difference::stored(&self.difference) };
        let applied = match self.repeats {
            Some(to) => store.roll_back(to, replaces, applying.clone(), self.now).await,
            None => store.apply(&self.proposed, applying.clone(), self.now).await,
        };
        match applied {
            Ok(generation) => {
                let activity = applying.activity(generation, self.repeats, self.now);
                publish(session, activity).await;
                Ok(generation)
            }
            // It is in force: the inventory does the rest within five minutes.
            Err(error @ ApplyError::NotYetDue { generation, .. }) => {
                output::warn(&error);
                Ok(generation)
            }
            Err(error @ ApplyError::Overtaken) => {
                let present = store.head().await;
                let by = present.map(|Head { generation, author, .. }| {
                    format!(" (generation {generation} by {author})")
                });
                let by = by.unwrap_or_default();
                Err(error).context(format!("nothing was applied: look at the difference again{by}"))
            }
            Err(error @ ApplyError::Store(_)) => Err(error).context("nothing was applied"),
        }
    }

    fn render(&self, style: Style) -> String {
        let head = &self.head;
        let mut text = match head.applied_at {
            None => format!("{}, the first configuration\n", self.source),
            Some(at) => format!(
                "{} against generation {} (by {}, {})\n",
                self.source,
                head.generation,
                head.author,
                local(at, &self.zone),
            ),
        };
        for change in &self.difference {
            text += &change.drawn(style);
            text += &self.next(change).unwrap_or_default();
        }
        text += &self.found_in(&self.accounts);
        text += &list("Gives up guard rails", self.loosened.iter().cloned());
        text += &floor(&self.proposed.floor);
        text += &list("Will follow", self.consequences.moves.iter().map(moved));
        for (direction, heading) in [(Direction::Stop, "Stops"), (Direction::Start, "Starts")] {
            let soon = self.consequences.soon.iter();
            let near = soon.filter(|one| one.direction == direction);
            let heading = format!("{heading} within {} minutes", SOON.as_mins());
            text += &list(&heading, near.map(|one| self.describe_soon(one)));
        }
        let stops = self.moves.stops.iter();
        let stops = stops.filter(|one| self.is_asked_anew(one) && one.refused().is_none());
        let (asleep, smaller): (Vec<_>, Vec<_>) = stops.partition(|stop| stop.hibernates());
        text += &list("Stops that change a plan", smaller.into_iter().map(ToString::to_string));
        text + &list("Stops that hibernate", asleep.into_iter().map(ToString::to_string))
    }

    fn next(&self, change: &TableChange) -> Option<String> {
        let name = change.table.strip_prefix("schedules.")?.parse().ok()?;
        let edges = |configuration: &Configuration| {
            let rule = configuration.schedules.get(&name);
            let edges = rule.into_iter().flat_map(|rule| rule.schedule.edges(self.now));
            let edges = edges.take(EDGES).map(|edge| {
                format!("{} {}", desired_or_any(edge.desired), short(edge.at, &self.zone, self.now))
            });
            joined(edges, ", ")
        };
        let (before, after) = (edges(&self.in_force.configuration), edges(&self.proposed));
        match (before.as_str(), after.as_str()) {
            (_, "") => None,
            ("", after) => Some(format!("  next: {after}\n")),
            (before, after) if before == after => None,
            (before, after) => Some(format!("  next: {after}; before: {before}\n")),
        }
    }

    fn describe_soon(&self, one: &Soon) -> String {
        let at = if one.at <= self.now {
            "at once".to_owned()
        } else {
            format!("at {}", short(one.at, &self.zone, self.now))
        };
        let how = one.method.map_or_else(String::new, |method| format!(" ({method})"));
        let observed = if one.observed_only { ", only reported: observe mode" } else { "" };
        format!("{} {at}{how}{observed}", one.resource)
    }
}

/// `web-1 (do-main/droplet/1): nights, no longer office`
fn moved(one: &ScheduleChange) -> String {
    let to = one.to.as_ref().map_or("no schedule", ScheduleName::as_str);
    let from = one.from.as_ref().map(|from| format!(", no longer {from}"));
    format!("{}: {to}{}", one.resource, from.unwrap_or_default())
}

/// What is odd about the configuration in force.
fn about_in_force(
    generation: Generation,
    unread: Option<&StoreError>,
    applied_instead: Option<&LogEntry>,
) -> Vec<String> {
    let unread = unread.map(|error| {
        let why = if error.is_newer() {
            format!("a newer offhours than this one wrote generation {generation}")
        } else {
            format!("generation {generation} is in force, but it is not stored")
        };
        format!("{why}: it cannot be compared, and all of it is replaced")
    });
    let instead = applied_instead.map(|applied| {
        format!(
            "generation {generation} is in force, although generation {} was applied last, by {}: \
             applying takes a new number",
            applied.generation, applied.author
        )
    });
    unread.into_iter().chain(instead).collect()
}

/// A command for resources, as it is typed; `None` for none.
fn command(command: &str, options: &str, resources: &[&Stranded]) -> Option<String> {
    let references = resources.iter().take(MANY).map(|one| &one.resource.resource);
    let references = joined(references, " ");
    let more = if resources.len() > MANY { " …" } else { "" };
    (!resources.is_empty()).then(|| format!("`{command} {references}{more}{options}`"))
}

/// `The deployment protects name:*prod* and only observes, whatever is applied.`
fn floor(floor: &Floor) -> String {
    let is_any = !floor.protect.is_empty();
    let protects = is_any.then(|| format!("protects {}", joined(&floor.protect, ", ")));
    let observes = (floor.mode == Mode::Observe).then(|| "only observes".to_owned());
    match joined(protects.into_iter().chain(observes), " and ") {
        none if none.is_empty() => none,
        holds => format!("The deployment {holds}, whatever is applied.\n"),
    }
}

fn list(heading: &str, mut lines: impl Iterator<Item = String>) -> String {
    let mut text = String::new();
    for line in lines.by_ref().take(MANY) {
        // Writing to a string cannot fail.
        writeln!(text, "    {}", output::shortened(&line)).ok();
    }
    let more = match lines.count() {
        0 => String::new(),
        more => format!("    and {more} more\n"),
    };
    if text.is_empty() { text } else { format!("{heading}:\n{text}{more}") }
}
