//! `offhours apply`: puts a file's configuration into force, after showing what that leads to.

use std::{collections::BTreeSet, fmt::Write as _, path::PathBuf, str::FromStr};

use anyhow::Context as _;
use domain::{
    activity::{Action, Author},
    configuration::{Account, Configuration, Floor, Generation, Mode, Override, Target},
    decision::Rules,
    invocation::CommandTarget,
    record::{Direction, Record},
    schedule::{Desired, desired_or_any},
};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use report::{
    consequences::{Conflict, Consequences, Move, SOON, Soon, Stranded, Unmatched},
    load::{Overload, overloads},
};
use schemars::JsonSchema;
use serde::Serialize;
use store::{ApplyError, Applying, Head, InForce, LogEntry, StoreError};

use super::Format;
use crate::{
    Exit,
    apply::{
        difference::{Change, Difference, EntryChange},
        loosening::loosened,
        moves::{Moves, MovingStop, UnknownMoves, forecast},
        trials::{AccountTrial, Login, UnknownState, try_accounts, try_applied},
    },
    ask::confirm,
    author::{author, reason},
    carry_out::{Command, Until, carry_out},
    configuration_file::{self, ListedResources, Parsed, Problem, count},
    connection::{Session, all_records, limit_of, readable},
    context::Context,
    exit::UsageError,
    output::{self, Paint, Style},
    overriding::{publish, replace_override},
    remedies,
    time::{NextEdge, local, short},
};

/// The most resources named in one list for people; JSON has all of them.
const MANY: usize = 20;

/// How long a restored resource is kept running at most: longer than a start may take.
const RESTORED_WITHIN: SignedDuration = SignedDuration::from_hours(1);

/// Put a configuration into force, after showing what it changes.
///
/// Shows the difference from the stored configuration, what it will stop or start within the next
/// 15 minutes, and what the tokens of new and changed accounts show; then asks for confirmation.
/// All of it comes into force at once, or none of it: whatever goes wrong, the previous
/// configuration holds.
///
/// An apply is refused if resources that Offhours holds stopped would be left with nothing to bring
/// them back, unless --restore or --leave says what to do with them. An account that only has
/// another name keeps all that is known of its resources: write `was = "OLD"` under its new name.
///
/// If a schedule moves machines to another plan while they are stopped, or hibernates them, the
/// command shows from which plan to which, and what that saves. It is refused if one of them could
/// not come back.
///
/// Exit code 3 if it was applied, but the token of a new or changed account cannot list it.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[command(after_help = "\
Examples:
  offhours apply --data offhours.db            to a local store
  offhours apply --dry-run                     exit code 3: it has changes
  offhours apply --config staging.toml --yes   from a pipeline
  offhours apply --message \"shorter Fridays\"   shown by `offhours activity`
  offhours apply --restore                     starts what it would strand
  offhours apply --rollback                    to what was in force before
  offhours apply --rollback=7                  to what generation 7 said")]
pub struct Args {
    /// Configuration file to apply.
    #[arg(long, value_name = "FILE", default_value = "offhours.toml")]
    config: PathBuf,
    /// Show what would change, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// First start the resources that would be left stopped with nothing to bring them back.
    #[arg(long, conflicts_with = "leave")]
    restore: bool,
    /// Leave resources stopped that nothing would bring back, and end overrides whose schedule or
    /// account goes. `offhours start` brings back resources that a schedule releases; nothing brings
    /// back those in an account that is removed. Refused if one of the latter is owed a size.
    #[arg(long)]
    leave: bool,
    /// With --yes: apply even if a pattern of `protect` or an observe mode is given up.
    #[arg(long)]
    loosen: bool,
    /// Apply the configuration that was in force before, or generation N, instead of a file.
    #[arg(
        long,
        value_name = "N",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "previous",
        conflicts_with = "config"
    )]
    rollback: Option<Rollback>,
    /// What this apply is for: `offhours activity` shows it.
    #[arg(long, short, value_name = "TEXT", value_parser = reason)]
    message: Option<String>,
}

/// Which configuration to go back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rollback {
    /// The one in force before.
    Previous,
    /// What a generation said.
    To(Generation),
}

impl FromStr for Rollback {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(number) => Ok(Self::To(Generation(number))),
            Err(_) if text == "previous" => Ok(Self::Previous),
            Err(_) => Err("write the number of a generation, as `offhours log` lists them"),
        }
    }
}

/// The configuration to apply, and where it comes from.
struct ProposedConfiguration {
    /// The file or the generation, in words.
    source: String,
    configuration: Configuration,
    warnings: Vec<Problem>,
    repeats: Option<Generation>,
}

/// Compares the configurations, asks for confirmation, and applies.
pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    let (session, mut plan) = plan(args, context).await?;
    let is_first = plan.in_force.configuration.generation.0 == 0;
    if plan.difference.is_empty() && !is_first && plan.ahead == 0 && plan.applied_instead.is_none()
    {
        return plan.nothing_to_do(context.format);
    }
    plan.moves = forecast(&session, &plan.proposed, plan.now).await;
    if context.format == Format::Table {
        output::print_lines(&plan.render(Style::of_stdout()))?;
    }
    plan.warn();
    let strands = if args.restore { Ok(()) } else { plan.refuse_to_strand(args) };
    let moves = plan.refuse_one_way_moves();
    let lapses = plan.refuse_to_end_overrides(args);
    let twice = plan.refuse_what_is_reached_twice();
    if args.dry_run {
        for refusal in
            [&twice, &moves, &strands, &lapses].into_iter().filter_map(|one| one.as_ref().err())
        {
            output::warn(refusal);
        }
        return plan.end(context.format, None, Exit::NeedsPerson);
    }
    twice?;
    moves?;
    strands?;
    lapses?;
    plan.refuse_to_loosen(args, context)?;
    let author = author(&session, args.message.clone()).await?;
    if !confirm("Apply?", context)? {
        output::remark("Nothing was applied.\n");
        return Ok(Exit::Failed);
    }
    let generation = plan.carry_out(&session, (args, context), &author).await?;
    if context.format == Format::Table {
        output::print(&format!("Applied as generation {generation}.\n"))?;
    }
    plan.try_applied(&session, context.format).await?;
    let unlisted = plan.accounts.iter().any(|trial| trial.error.is_some());
    let exit = if unlisted { Exit::NeedsPerson } else { Exit::Done };
    plan.end(context.format, Some(generation), exit)
}

/// Compares what the arguments ask for with what is in force.
async fn plan(args: &Args, context: &Context) -> anyhow::Result<(Session, Plan)> {
    // An invalid file is refused before any store is opened.
    let file = match args.rollback {
        None => Some(configuration_file::load(&args.config, ListedResources::NeedAccounts)?),
        Some(_) => None,
    };
    let session = if args.dry_run && context.connection.is_there() {
        context.connection.open().await?
    } else {
        context.connection.open_or_create().await?
    };
    let head = session.store.head_and_overrides().await?.head;
    let proposed = match (file, args.rollback) {
        (Some(parsed), _) => from_file(args, parsed, session.now),
        (None, rollback) => {
            earlier(&session, rollback.unwrap_or(Rollback::Previous), &head).await?
        }
    };
    let plan = Plan::make((&session, context), proposed, head).await?;
    Ok((session, plan))
}

fn from_file(args: &Args, parsed: Parsed, now: Timestamp) -> ProposedConfiguration {
    ProposedConfiguration {
        source: args.config.display().to_string(),
        warnings: parsed.warnings_at(now),
        configuration: parsed.configuration,
        repeats: None,
    }
}

/// Reads what an earlier generation said.
async fn earlier(
    session: &Session,
    rollback: Rollback,
    head: &Head,
) -> anyhow::Result<ProposedConfiguration> {
    let log = session.store.log(usize::MAX).await?;
    let mut newest_first = log.iter();
    let found = match rollback {
        Rollback::To(wanted) => newest_first.find(|entry| entry.generation == wanted),
        Rollback::Previous => newest_first.find(|entry| entry.generation < head.generation),
    };
    let Some(entry) = found else {
        let text = match rollback {
            Rollback::To(wanted) => format!("generation {wanted} was never in force"),
            Rollback::Previous => "nothing was in force before".to_owned(),
        };
        return Err(UsageError(format!("{text}: `offhours log` lists what was")).into());
    };
    let configuration = session.store.configuration(entry.generation).await?;
    Ok(ProposedConfiguration {
        source: format!("generation {}", entry.generation),
        configuration,
        warnings: Vec::new(),
        repeats: Some(entry.generation),
    })
}

/// What an apply does, or would do.
#[derive(Serialize, JsonSchema)]
pub(super) struct Plan {
    /// The source of the new configuration: a file, or an earlier generation.
    source: String,
    /// The generation in force; 0 if nothing was ever applied.
    in_force_generation: Generation,
    /// How the new configuration differs from the one in force.
    difference: Difference,
    /// What happens to resources because of it.
    consequences: Consequences,
    /// The outcome of its stops that leave a plan, a standby, or the machine itself.
    moves: Moves,
    /// What the tokens of new and changed accounts show.
    accounts: Vec<AccountTrial>,
    /// The accounts whose rate limits do not carry what would follow schedules in them.
    overloads: Vec<Overload>,
    /// The guard rails that it gives up: patterns of `protect`, and observe modes.
    loosened: Vec<String>,
    /// Valid settings that look like mistakes.
    warnings: Vec<Problem>,
    /// Whether a newer program wrote the configuration in force. It cannot be compared then, and
    /// all of it is replaced.
    replaces_newer: bool,
    /// Number of records that were handled under a later generation than the one in force, because
    /// the table of the schedules was restored from a backup. Applying takes a later number.
    ahead: usize,
    /// The generation as which it was applied; null if it was not.
    applied: Option<Generation>,
    #[serde(skip)]
    proposed: Configuration,
    #[serde(skip)]
    repeats: Option<Generation>,
    #[serde(skip)]
    in_force: InForce,
    /// Why the guard rails of the deployment are unknown, if they are.
    #[serde(skip)]
    floor_unread: Option<String>,
    #[serde(skip)]
    head: Head,
    #[serde(skip)]
    unread: Option<StoreError>,
    #[serde(skip)]
    applied_instead: Option<LogEntry>,
    #[serde(skip)]
    now: Timestamp,
    #[serde(skip)]
    zone: TimeZone,
}

impl Plan {
    async fn make(
        (session, context): (&Session, &Context),
        mut proposed: ProposedConfiguration,
        head: Head,
    ) -> anyhow::Result<Self> {
        let store = &session.store;
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
        let difference = Difference::between(old, &proposed.configuration, session.now);
        let loosened = loosened(old, &proposed.configuration);
        let accounts = try_accounts(session, old, &proposed.configuration).await?;
        let zone = context.zone(&proposed.configuration, None);
        let mut plan = Self {
            source: proposed.source,
            in_force_generation: generation,
            difference,
            consequences: Consequences::default(),
            moves: Moves::default(),
            accounts,
            overloads: Vec::new(),
            loosened,
            warnings: proposed.warnings,
            replaces_newer: unread.as_ref().is_some_and(StoreError::is_newer),
            ahead: 0,
            applied: None,
            proposed: proposed.configuration,
            repeats: proposed.repeats,
            in_force,
            floor_unread: session.floor_unread.clone(),
            unread,
            applied_instead: store.applied_instead(head.generation).await?,
            head,
            now: session.now,
            zone,
        };
        plan.look_again(session).await?;
        Ok(plan)
    }

    /// Works out the consequences from the records as they are now.
    async fn look_again(&mut self, session: &Session) -> anyhow::Result<()> {
        let mut records = all_records(&session.store).await?;
        add_unknown(&mut records, &self.accounts, &self.proposed);
        let generation = self.in_force_generation;
        let ahead = records.iter().filter(|r| r.is_ahead_of(generation));
        self.ahead = ahead.count();
        let handled = records.iter().filter_map(|record| record.handled.as_ref());
        let last = handled.map(|handled| handled.generation).max();
        let mut proposed = self.proposed.clone();
        // Judged as what it will become: a generation later than the one in force and than all that
        // was handled.
        proposed.generation = Generation(last.unwrap_or_default().max(generation).0 + 1);
        let overrides = self.in_force.overrides.renamed(&proposed);
        let new = Rules { configuration: &proposed, overrides: &overrides };
        self.now = self.now.max(session.present());
        self.consequences = Consequences::of(&records, self.in_force.rules(), new, self.now);
        let states = readable(session.store.account_states().await?);
        self.overloads = overloads(&records, new, |name| limit_of(states.get(name)), self.now);
        Ok(())
    }

    /// Restores what would be left behind, if that was asked for, and applies. Returns the
    /// generation that is now in force.
    async fn carry_out(
        &mut self,
        session: &Session,
        (args, context): (&Args, &Context),
        author: &Author,
    ) -> anyhow::Result<Generation> {
        let restorer = Author { why: Some("apply --restore".to_owned()), ..author.clone() };
        let overridden = if args.restore {
            self.restore(session, &restorer, context).await?
        } else {
            Vec::new()
        };
        // An edge may have passed while the question was open, or while something started.
        self.look_again(session).await?;
        if !args.leave {
            self.report_stranded();
        }
        self.refuse_to_strand(args)?;
        self.refuse_to_end_overrides(args)?;
        let generation = self.apply(session, author).await?;
        self.end_overrides(session, &restorer, overridden).await;
        Ok(generation)
    }

    /// Tries the accounts that could not be tried before they were in force.
    async fn try_applied(&mut self, session: &Session, format: Format) -> anyhow::Result<()> {
        try_applied(session, &mut self.accounts, &self.proposed).await;
        for trial in self.accounts.iter_mut().filter(|trial| trial.later) {
            trial.later = false;
            output::remark(&warnings(trial));
            if format == Format::Table {
                output::print(&listed(trial))?;
            }
        }
        Ok(())
    }

    fn nothing_to_do(&self, format: Format) -> anyhow::Result<Exit> {
        if format == Format::Table {
            output::print(&format!(
                "Nothing to apply: {} is the same as generation {}.\n",
                self.source, self.in_force_generation
            ))?;
        } else {
            output::print_json(self)?;
        }
        Ok(Exit::Done)
    }

    fn end(
        &mut self,
        format: Format,
        applied: Option<Generation>,
        exit: Exit,
    ) -> anyhow::Result<Exit> {
        self.applied = applied;
        if format == Format::Json {
            output::print_json(self)?;
        }
        Ok(exit)
    }

    /// Warns of what is allowed but should be known before confirming.
    fn warn(&self) {
        if self.replaces_newer {
            output::remark(&format!(
                "warning: a newer offhours than this one wrote generation {}: it cannot be compared, \
                 and all of it is replaced\n",
                self.in_force_generation
            ));
        }
        if let Some(StoreError::NoGeneration(generation)) = self.unread {
            output::remark(&format!(
                "warning: generation {generation} is in force, but it is not stored: it cannot be \
                 compared, and all of it is replaced\n"
            ));
        }
        if let Some(applied) = &self.applied_instead {
            output::remark(&format!(
                "warning: generation {} is in force, although generation {} was applied last, by \
                 {}: applying takes a new number\n",
                self.in_force_generation, applied.generation, applied.author
            ));
        }
        if self.ahead > 0 {
            output::remark(&format!(
                "warning: a later generation than {} has handled {}: the table of the schedules was \
                 restored from a backup; applying takes a later number\n",
                self.in_force_generation,
                count(self.ahead, "record"),
            ));
        }
        if let Some(error) = &self.floor_unread {
            output::remark(&format!(
                "warning: cannot read what the deployment itself protects: {error}\n"
            ));
        }
        for problem in &self.warnings {
            output::remark(&format!("warning: {problem}\n"));
        }
        for trial in &self.accounts {
            output::remark(&warnings(trial));
            if trial.later {
                output::remark(&self.tried_later(trial));
            }
        }
        for held in &self.consequences.held {
            output::remark(&format!(
                "warning: {} of account {} would join schedules at once, more than max_new = {}: \
                 held, and not touched until `offhours approve`\n",
                count(held.resources.len(), "resource"),
                held.account,
                held.max_new,
            ));
        }
        for one in &self.consequences.conflicts {
            let Conflict { name, resource, reason } = one;
            output::remark(&format!(
                "warning: nothing would be sent for {name} ({resource}): {reason}\n"
            ));
        }
        for Unmatched { schedule, name } in &self.consequences.unmatched {
            output::remark(&format!(
                "warning: schedule {schedule} lists the name `{name}`, and no known resource has it\n"
            ));
        }
        for schedule in &self.consequences.hard_cuts {
            output::remark(&format!(
                "warning: schedule {schedule} cuts the power of its Droplets; with graceful = true \
                 their guests are asked to shut down first\n"
            ));
        }
        for one in &self.overloads {
            let (found, remedy) = remedies::of_overload(one, &self.zone, self.now);
            output::remark(&format!("warning: account {}: {found}; {remedy}\n", one.account));
        }
        self.warn_of_moves();
        self.report_stranded();
    }

    /// Says that an account is not tried before it is applied, and why.
    fn tried_later(&self, trial: &AccountTrial) -> String {
        let name = &trial.account;
        let account = self.proposed.accounts.get(name);
        let destination = account.and_then(Account::own_destination);
        let login = match trial.login {
            Login::Token | Login::ReadToken => "token",
            Login::Key => "key",
        };
        format!(
            "account {name} is not tried before it is applied: its {login} has not been used at {} \
             before\n",
            destination.unwrap_or_default(),
        )
    }

    /// Names what could not come back from its stop, with the reason, and what could not be asked.
    fn warn_of_moves(&self) {
        for UnknownMoves { account, error } in &self.moves.unknown {
            let whose = account
                .as_ref()
                .map_or_else(String::new, |account| format!(" in account {account}"));
            output::remark(&format!(
                "warning: what its stops lead to that leave a plan{whose} is unknown: {error}\n"
            ));
        }
        for stop in &self.moves.stops {
            let Some(refusal) = stop.refusal() else {
                continue;
            };
            let weight = if self.is_asked_anew(stop) {
                "refused"
            } else {
                "warning: no stop until this is mended"
            };
            output::remark(&format!("{weight}: {refusal}\n"));
        }
    }

    /// Reports whether this configuration asks for a stop that the one in force does not. A stop
    /// already in force must not hold up another change, and no stop may hold up a rollback.
    fn is_asked_anew(&self, stop: &MovingStop) -> bool {
        let policy = |of: &Configuration| {
            let rule = of.schedules.get(&stop.schedule);
            rule.map(|rule| rule.policy.clone())
        };
        let before = policy(&self.in_force.configuration);
        self.repeats.is_none() && before != policy(&self.proposed)
    }

    /// Names what would be left behind, with the reason.
    fn report_stranded(&self) {
        for one in &self.consequences.stranded {
            let mut kept = match &one.saved {
                Some(saved) => format!("owed {saved}"),
                None => "held stopped".to_owned(),
            };
            if one.only_recorded {
                kept += ", only its record says how to recreate it";
            }
            output::remark(&format!(
                "left behind: {} ({}) is {kept}, and {}\n",
                one.name, one.resource, one.reason
            ));
        }
    }

    /// Refuses to end overrides before their time unless a flag allows it.
    fn refuse_to_end_overrides(&self, args: &Args) -> Result<(), UsageError> {
        let lapsing = &self.consequences.lapsing;
        if lapsing.is_empty() || args.leave {
            return Ok(());
        }
        let ends = lapsing.iter().map(|one| {
            format!(
                "{} to {} until {}, by {}",
                one.target,
                one.desired,
                local(one.until, &self.zone),
                one.by
            )
        });
        Err(UsageError(format!(
            "{} would end at once, because what it applies to goes ({}): set it anew for what takes \
             its place and clear it, or pass --leave",
            count(lapsing.len(), "override"),
            ends.collect::<Vec<_>>().join("; "),
        )))
    }

    /// Refuses a second account that reaches the same resources: neither of the two could act.
    fn refuse_what_is_reached_twice(&self) -> Result<(), UsageError> {
        let twice = &self.consequences.twice;
        let Some(first) = twice.first() else {
            return Ok(());
        };
        let [one, other] = &first.resources;
        Err(UsageError(format!(
            "{} would be reached by two accounts, such as {} as {one} and {other}, and nothing \
             would be sent for them: keep one of the accounts",
            count(twice.len(), "resource"),
            first.name,
        )))
    }

    /// Refuses to give up guard rails that no person was asked about.
    fn refuse_to_loosen(&self, args: &Args, context: &Context) -> Result<(), UsageError> {
        if self.loosened.is_empty() || args.loosen || !context.yes {
            return Ok(());
        }
        Err(UsageError(format!(
            "{} would be given up ({}): pass --loosen as well, or confirm it in a terminal",
            count(self.loosened.len(), "guard rail"),
            self.loosened.join("; "),
        )))
    }

    /// Refuses stops from which a resource could not come back.
    fn refuse_one_way_moves(&self) -> Result<(), UsageError> {
        let stops = self.moves.stops.iter();
        let refused = stops.filter(|stop| stop.refused.is_some() && self.is_asked_anew(stop));
        let refused = refused.count();
        if refused == 0 {
            return Ok(());
        }
        Err(UsageError(format!(
            "{} could not come back from the stop that {} asks for: follow the advice given for \
             each, or have it follow a schedule with another method",
            count(refused, "resource"),
            if refused == 1 { "its schedule" } else { "their schedules" },
        )))
    }

    /// Refuses to leave resources behind unless a flag allows it, and to lose sizes in any case.
    fn refuse_to_strand(&self, args: &Args) -> Result<(), UsageError> {
        self.refuse_to_lose_sizes()?;
        let stranded = self.consequences.stranded.len();
        if stranded == 0 || args.leave {
            return Ok(());
        }
        Err(UsageError(format!(
            "{} would be left behind with nothing to bring {}: pass --restore to start them first, \
             or --leave{}",
            count(stranded, "resource"),
            if stranded == 1 { "it back" } else { "them back" },
            self.brought_back_by(),
        )))
    }

    /// Refuses to remove an account whose resources are owed a size: no later command could put it
    /// back.
    fn refuse_to_lose_sizes(&self) -> Result<(), UsageError> {
        let owed = self.consequences.stranded.iter();
        let owed: Vec<_> = owed.filter(|one| one.account_goes && one.saved.is_some()).collect();
        let Some(first) = owed.first() else {
            return Ok(());
        };
        let account = &first.resource.account;
        let number = count(owed.len(), "resource");
        let references: Vec<_> = owed.iter().map(|one| one.resource.to_string()).collect();
        Err(UsageError(format!(
            "{number} would be owed a size that Offhours cannot put back without the account: pass \
             --restore to start them first; or, if {account} was only renamed, write `was = \
             \"{account}\"` under its new name; or give the sizes up with `offhours forget \
             --anyway {}`",
            references.join(" ")
        )))
    }

    /// How the resources left behind can be brought back.
    fn brought_back_by(&self) -> &'static str {
        let mut stranded = self.consequences.stranded.iter();
        let barred = |one: &Stranded| one.barred && !one.account_goes;
        if stranded.clone().any(barred) {
            " (`offhours start` restores them later, but only once what is named above has ended)"
        } else if stranded.clone().all(|one| !one.account_goes) {
            " (`offhours start` restores them later)"
        } else if stranded.all(|one| one.account_goes) {
            " (Offhours cannot start them later)"
        } else {
            " (`offhours start` restores them later, but not what is no longer in the file)"
        }
    }

    /// Starts what would be left behind, under the configuration in force. Returns the overrides
    /// set for that.
    async fn restore(
        &self,
        session: &Session,
        author: &Author,
        context: &Context,
    ) -> anyhow::Result<Vec<Override>> {
        let stranded = &self.consequences.stranded;
        if stranded.is_empty() {
            return Ok(Vec::new());
        }
        let overridden = self.override_what_resists(session, author).await?;
        let references: Vec<_> = stranded.iter().map(|one| one.resource.clone()).collect();
        let command = Command {
            direction: Direction::Start,
            target: CommandTarget::Resources(references),
            author: Some(author.clone()),
            until: Until::Seen,
            rehearsal: false,
        };
        // In JSON, the only output is the document at the end.
        let shown = Some(context).filter(|context| context.format == Format::Table);
        match carry_out(session, &command, shown).await? {
            Exit::Done => Ok(overridden),
            Exit::Failed | Exit::BadUsage | Exit::NeedsPerson => {
                anyhow::bail!("not all could be started, so nothing was applied")
            }
        }
    }

    /// Overrides for a while what a command alone could not start: an enforced schedule would undo
    /// the start, and an override that keeps the resource stopped would win over it.
    async fn override_what_resists(
        &self,
        session: &Session,
        author: &Author,
    ) -> anyhow::Result<Vec<Override>> {
        let mut overridden = Vec::new();
        let stranded = self.consequences.stranded.iter();
        for one in stranded.filter(|one| one.resists) {
            let target = Target::Resource(one.resource.clone());
            let known = self.in_force.overrides.of(&target);
            let replaced = known.filter(|known| known.is_active(self.now));
            let running = Override {
                set_at: self.now,
                ends_at: self.now + RESTORED_WITHIN,
                target,
                desired: Desired::Running,
                by: author.by.to_string(),
                why: author.why.clone(),
            };
            let set = author.does(Action::set(&running), self.now);
            replace_override(session, &running, known, set).await?;
            let instead = replaced.map_or_else(String::new, |replaced| {
                format!(", in place of that by {}", replaced.by)
            });
            output::remark(&format!(
                "{} ({}): an override keeps it running until {}{instead}\n",
                one.name,
                one.resource,
                local(running.ends_at, &self.zone),
            ));
            overridden.push(running);
        }
        Ok(overridden)
    }

    /// Ends the overrides that [`Self::restore`] set, once nothing is left to overrule.
    async fn end_overrides(&self, session: &Session, author: &Author, overridden: Vec<Override>) {
        let now = self.now.max(session.present());
        for one in overridden {
            let ended = Override { ends_at: now.min(one.ends_at), ..one.clone() };
            let target = one.target.clone();
            let cleared = author.does(Action::OverrideCleared { target }, now);
            // An override that stays ends by itself.
            if let Err(error) = replace_override(session, &ended, Some(&one), cleared).await {
                output::warn(&*error);
            }
        }
    }

    async fn apply(&self, session: &Session, author: &Author) -> anyhow::Result<Generation> {
        let replaces = self.in_force_generation;
        let store = &session.store;
        let applying = Applying { author: author.clone(), changes: self.difference.lines() };
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
                let by = store.head_and_overrides().await;
                let by = by.map_or_else(
                    |_| String::new(),
                    |present| {
                        let Head { generation, author, .. } = present.head;
                        format!(" (generation {generation} by {author})")
                    },
                );
                let advice = format!("nothing was applied: look at the difference again{by}");
                Err(error).context(advice)
            }
            Err(error @ ApplyError::Store(_)) => Err(error).context("nothing was applied"),
        }
    }

    /// The text that people read before they confirm.
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
        // Writing to a string cannot fail, here and below.
        for change in &self.difference.settings {
            writeln!(text, "{}", style.paint(Paint::Changed, &format!("~ {change}"))).ok();
        }
        for (what, entries) in
            [("account", &self.difference.accounts), ("schedule", &self.difference.schedules)]
        {
            for entry in entries {
                text += &rendered(what, entry, style);
            }
        }
        for trial in &self.accounts {
            text += &listed(trial);
        }
        text += &list("Gives up guard rails", &self.loosened);
        text += &floor(&self.proposed.floor);
        let moves = self.consequences.moves.iter().map(moved);
        text += &list("Will follow", &moves.collect::<Vec<_>>());
        for (direction, heading) in [(Direction::Stop, "Stops"), (Direction::Start, "Starts")] {
            let soon = self.consequences.soon.iter();
            let near = soon.filter(|one| one.direction == direction);
            let near = near.map(|one| self.describe_soon(one));
            let heading = format!("{heading} within {} minutes", SOON.as_mins());
            text += &list(&heading, &near.collect::<Vec<_>>());
        }
        let (asleep, smaller): (Vec<_>, Vec<_>) =
            self.moves.stops.iter().partition(|stop| stop.hibernates());
        for (heading, stops) in
            [("Stops that change a plan", smaller), ("Stops that hibernate", asleep)]
        {
            let stops = stops.into_iter().filter_map(MovingStop::description);
            text += &list(heading, &stops.collect::<Vec<_>>());
        }
        text
    }

    fn describe_soon(&self, one: &Soon) -> String {
        let at = if one.at <= self.now {
            "at once".to_owned()
        } else {
            format!("at {}", short(one.at, &self.zone, self.now))
        };
        let how = one.method.map_or_else(String::new, |method| format!(" ({method})"));
        let observed = if one.observed_only { ", only reported: observe mode" } else { "" };
        format!("{} ({}) {at}{how}{observed}", one.name, one.resource)
    }
}

/// `web-1 (do-main/droplet/1): nights, no longer office`
fn moved(one: &Move) -> String {
    let which = format!("{} ({})", one.name, one.resource);
    match (&one.from, &one.to) {
        (from, None) => {
            let from = from.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("{which}: no schedule, no longer {from}")
        }
        (None, Some(to)) => format!("{which}: {to}"),
        (Some(from), Some(to)) => format!("{which}: {to}, no longer {from}"),
    }
}

/// Adds the resources that the trials found and no inventory has seen yet under either name.
fn add_unknown(records: &mut Vec<Record>, accounts: &[AccountTrial], proposed: &Configuration) {
    let known: BTreeSet<_> =
        records.iter().map(|record| proposed.renamed(&record.reference)).collect();
    let found = accounts.iter().flat_map(|account| &account.found);
    let unknown = found.filter(|found| !known.contains(&found.reference));
    records.extend(unknown.cloned());
}

fn rendered(what: &str, entry: &EntryChange, style: Style) -> String {
    let (mark, paint) = match entry.change {
        Change::Added => ('+', Paint::Added),
        Change::Changed => ('~', Paint::Changed),
        Change::Removed => ('-', Paint::Removed),
    };
    let mut text = style.paint(paint, &format!("{mark} {what} {}", entry.name));
    text.push('\n');
    for key in &entry.keys {
        writeln!(text, "    {key}").ok();
    }
    let zone = entry.timezone.clone().unwrap_or(TimeZone::UTC);
    let edges = |edges: &[NextEdge]| {
        let edges = edges.iter();
        let edges: Vec<_> = edges
            .map(|edge| format!("{} {}", local(edge.at, &zone), desired_or_any(edge.to)))
            .collect();
        edges.join(", ")
    };
    let differ = entry.edges_before != entry.edges_after;
    if !entry.edges_before.is_empty() && entry.change == Change::Changed && differ {
        writeln!(text, "    next before: {}", edges(&entry.edges_before)).ok();
    }
    if !entry.edges_after.is_empty() && differ {
        writeln!(text, "    next: {}", edges(&entry.edges_after)).ok();
    }
    text
}

/// `The token of do-main works: 3 droplets in fra1, 2 servers in nbg1 (not chosen)`
fn listed(trial: &AccountTrial) -> String {
    if trial.error.is_some() || trial.later {
        return String::new();
    }
    let places: Vec<_> = trial
        .places
        .iter()
        .map(|place| {
            let chosen = if place.chosen { "" } else { " (not chosen)" };
            let number = count(place.resources, &place.kind);
            // Machines over SSH have no region.
            match place.region.as_str() {
                "" => number,
                region => format!("{number} in {region}{chosen}"),
            }
        })
        .collect();
    let found = if places.is_empty() {
        "nothing that Offhours could stop".to_owned()
    } else {
        places.join(", ")
    };
    let (login, untried) = match trial.login {
        Login::Token => ("token", ""),
        Login::ReadToken => ("read_token", "; only stop and start can try its token"),
        Login::Key => ("key", ""),
    };
    format!("The {login} of {} works: {found}{untried}\n", trial.account)
}

/// The warnings of a trial, one per line.
fn warnings(trial: &AccountTrial) -> String {
    let mut text = String::new();
    if let Some(error) = &trial.error {
        let name = &trial.account;
        writeln!(text, "warning: account {name} could not be listed: {error}").ok();
    }
    for unread in &trial.unread {
        writeln!(text, "warning: account {}: {unread}", trial.account).ok();
    }
    for UnknownState { resource, reason } in &trial.unknown {
        writeln!(
            text,
            "warning: the state of {resource} is unknown ({reason}): until it is known, the machine \
             is neither stopped nor started"
        )
        .ok();
    }
    text
}

/// `The deployment protects name:*prod* and only observes, whatever is applied.`
fn floor(floor: &Floor) -> String {
    let patterns: Vec<_> = floor.protect.iter().map(ToString::to_string).collect();
    let protects = (!patterns.is_empty()).then(|| format!("protects {}", patterns.join(", ")));
    let observes = (floor.mode == Mode::Observe).then(|| "only observes".to_owned());
    let holds: Vec<_> = protects.into_iter().chain(observes).collect();
    if holds.is_empty() {
        return String::new();
    }
    let holds = holds.join(" and ");
    format!("The deployment {holds}, whatever is applied.\n")
}

/// A heading and its lines; empty if there are no lines.
fn list(heading: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let mut text = format!("{heading}:\n");
    for line in lines.iter().take(MANY) {
        writeln!(text, "    {}", output::shortened(line)).ok();
    }
    if lines.len() > MANY {
        writeln!(text, "    and {} more", lines.len() - MANY).ok();
    }
    text
}
