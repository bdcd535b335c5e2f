//! `offhours status`: what is known about each resource, and what it needs.

mod accounts;
mod day;
mod live;
mod screen;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    time::Duration,
};

use domain::{
    AccountName, ScheduleName, configuration::Configuration, invocation::Question,
    left_behind::is_ghost, order::Order, record::Record, resource::Power,
};
use jiff::Timestamp;
use report::{
    count,
    nearest::nearest,
    pausing,
    resource::{ResourceView, wait_in_words},
    state::PhaseName,
};
use screen::KeyAction;
use store::{AccountState, InForce, Store};
use wildmatch::WildMatch;

use crate::{
    Exit, candidates,
    connection::{Functions, Session, readable},
    context::Context,
    exit::UsageError,
    listing::{Failure, not_listed, while_asking},
    names::{check_account, check_owner, check_schedule, find},
    output::{self, Format},
    print::Screen,
    resource::wide,
};

pub(crate) use accounts::AccountRow;

/// Show each resource: its schedule, its state, and what it needs.
///
/// What needs attention comes first. Exit code 3 if something does: a resource that is overdue, stuck,
/// refused, in conflict, held or orphaned, whose tag names an unknown schedule, whose start keeps
/// failing, or whose snapshot is lost; or an account whose token fails or that was not listed for 15
/// minutes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours status
  offhours status web-1 \"ci-*\"
  offhours status --schedule office-hours --watch
  offhours status --day                  what ran and will run, as a picture
  offhours status --wide --unscheduled   what no schedule covers, and why
  offhours status --refresh              after an inventory of all accounts
  offhours status --live                 by each resource's own Status operation
  offhours status -o json | jq '.[] | select(any(.problems[]; .needs_person))'")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct Args {
    /// Only these resources: a reference, a unique name, or a pattern with `*` and `?`.
    #[arg(value_name = "RESOURCE", add = candidates::resources())]
    resources: Vec<String>,
    /// Only resources that follow this schedule.
    #[arg(long, value_name = "NAME", add = candidates::schedules())]
    schedule: Option<ScheduleName>,
    /// Only resources in this account; may be repeated.
    #[arg(long = "account", value_name = "NAME", conflicts_with = "resources", add = candidates::accounts())]
    accounts_named: Vec<AccountName>,
    /// Only resources with this tag, on themselves or on their cluster; `*` stands for any text.
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Only resources of this owner, by the `owner_tag` of the configuration.
    #[arg(long, value_name = "OWNER")]
    owner: Option<String>,
    /// Leave out resources that follow no schedule.
    #[arg(long)]
    scheduled: bool,
    /// Only resources that follow no schedule.
    #[arg(long, conflicts_with_all = ["scheduled", "schedule"])]
    unscheduled: bool,
    /// Only resources and accounts that need attention.
    #[arg(long)]
    needs_person: bool,
    /// Show the accounts instead of the resources.
    #[arg(long, conflicts_with_all = ["resources", "schedule", "scheduled", "live", "watch"])]
    accounts: bool,
    /// Also show references, sizes, regions and tags, and by which rule a schedule is followed.
    #[arg(long)]
    wide: bool,
    /// Draw 24 hours of each resource: what ran until now, and what is desired from now on.
    #[arg(long, conflicts_with_all = ["accounts", "wide", "live", "watch"])]
    day: bool,
    /// Order of the resources.
    #[arg(long, value_enum, default_value_t)]
    sort: Sort,
    /// Take an inventory of the accounts first.
    #[arg(long)]
    refresh: bool,
    /// Also ask the provider, by each resource's Status operation.
    #[arg(long)]
    live: bool,
    /// Refresh every SECONDS seconds (5 if not given) until `q`; arrows and pages scroll.
    #[arg(
        long,
        short,
        value_name = "SECONDS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "5",
        value_parser = clap::value_parser!(u64).range(1..=3600),
    )]
    watch: Option<u64>,
}

/// The order of the resources.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Sort {
    /// What needs attention first, then by schedule and name.
    #[default]
    Attention,
    /// By name.
    Name,
    /// By the time of the next edge.
    Next,
}

impl Args {
    /// Whether some of what is known may be left out.
    fn narrows(&self) -> bool {
        let switches = self.scheduled || self.unscheduled || self.needs_person;
        switches
            || !self.accounts_named.is_empty()
            || self.schedule.is_some()
            || self.tag.is_some()
            || self.owner.is_some()
    }
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    let session = context.connection.open().await?;
    let failures = if args.refresh { refresh(args, &session).await? } else { Vec::new() };
    let functions = if args.live { Some(session.functions()?) } else { None };
    let functions = functions.as_ref();
    if let Some(seconds) = args.watch {
        let every = Duration::from_secs(seconds);
        return watch(args, context, &session, functions, every).await;
    }
    let view = View::of(args, context, &session.store, functions, session.now).await?;
    view.show()?;
    failures.iter().for_each(Failure::print);
    Ok(if failures.is_empty() { view.exit() } else { Exit::Failed })
}

/// Has an inventory of the accounts written to the store. Returns the accounts that failed.
async fn refresh(args: &Args, session: &Session) -> anyhow::Result<Vec<Failure>> {
    let configured = session.store.in_force().await?;
    let configured = &configured.configuration.accounts;
    let wanted = |account: &&AccountName| {
        args.accounts_named.is_empty() || args.accounts_named.contains(account)
    };
    let accounts: Vec<_> = configured.keys().filter(wanted).cloned().collect();
    if accounts.is_empty() {
        return Ok(Vec::new());
    }
    let functions = session.functions()?;
    let asked = functions.ask(Question::Inventory(accounts.clone()));
    Ok(not_listed(&while_asking(&accounts, asked).await?))
}

/// Shows the rows that fit the terminal, redrawn until `q` or Ctrl-C. The last picture stays.
async fn watch(
    args: &Args,
    context: &Context,
    session: &Session,
    functions: Option<&Functions>,
    every: Duration,
) -> anyhow::Result<Exit> {
    if context.format != Format::Table {
        bail_usage!("--watch is for people: programs ask again with -o json");
    }
    let mut terminal = screen::Screen::open()?;
    let mut shown: Option<View<'_>> = None;
    let mut top = 0;
    loop {
        let is_first = shown.is_none();
        let next = async {
            let mut now = session.now;
            if !is_first {
                session.pause(every).await;
                now = session.read_clock().await?;
            }
            View::of(args, context, &session.store, functions, now).await
        };
        tokio::pin!(next);
        loop {
            let mut drawn = String::new();
            if let Some(view) = &shown {
                drawn = view.frame(screen::Screen::height(), &mut top, every);
                terminal.draw(&drawn)?;
            }
            tokio::select! {
                view = &mut next => {
                    shown = Some(view?);
                    break;
                }
                action = terminal.key_action() => match action? {
                    KeyAction::Scroll(lines) => top = top.saturating_add_signed(lines),
                    KeyAction::Leave => {
                        drop(terminal);
                        output::print(&(drawn + "\n"))?;
                        return Ok(shown.map_or(Exit::Done, |view| view.exit()));
                    }
                },
            }
        }
    }
}

/// What the arguments select from the store, as of an instant.
struct View<'a> {
    args: &'a Args,
    screen: Screen,
    in_force: InForce,
    states: BTreeMap<AccountName, AccountState>,
    /// The accounts whose resources are shown.
    accounts: BTreeSet<AccountName>,
    /// The number of resources that are not shown because they have been gone for days.
    past: usize,
    rows: Vec<ResourceView>,
    /// Whether each resource that was asked for its state could be looked at.
    all_answered: bool,
    /// The picture of their day, if that is shown instead.
    day: Option<String>,
}

impl<'a> View<'a> {
    /// Reads the store and, if functions are given, asks them.
    ///
    /// # Errors
    /// A usage error for a name that does not exist.
    async fn of(
        args: &'a Args,
        context: &Context,
        store: &Store,
        functions: Option<&Functions>,
        now: Timestamp,
    ) -> anyhow::Result<Self> {
        let in_force = store.in_force().await?;
        check_schedule(&args.schedule, &in_force.configuration)?;
        let mut selected = read(args, store, &in_force.configuration, now).await?;
        if let Some(owner) = &args.owner {
            let tag = check_owner(owner, &selected.records, &in_force.configuration)?;
            selected.records.retain(|one| one.tag_value(tag) == Some(owner));
        }
        let mut view = Self {
            args,
            screen: context.screen(&*in_force.configuration, now),
            states: readable(store.account_states().await?),
            accounts: selected.accounts,
            past: selected.past,
            rows: Vec::new(),
            all_answered: true,
            day: None,
            in_force,
        };
        let zone = &view.screen.zone;
        let others = store.in_order_with(&selected.records, &view.in_force).await?;
        let order = Order::of(&others, view.in_force.rules());
        let row = |one| {
            let wait = wait_in_words(one, &order, zone, now);
            ResourceView::of(one, &view.in_force, zone, now).waiting(wait)
        };
        let mut rows: Vec<_> = selected.records.iter().map(row).collect();
        let tag = args.tag.as_deref().map(WildMatch::new_case_insensitive);
        let is_tagged = |row: &ResourceView| {
            tag.as_ref().is_none_or(|tag| row.tags.iter().any(|one| tag.matches(one)))
        };
        if !rows.is_empty() && !rows.iter().any(is_tagged) {
            return Err(unknown_tag(args.tag.as_deref().unwrap_or_default(), &rows).into());
        }
        rows.retain(|row| is_tagged(row) && is_wanted(args, row));
        if args.resources.is_empty() {
            sort(&mut rows, args.sort);
        }
        view.rows = rows;
        if let Some(functions) = functions {
            view.all_answered = live::ask(functions, &mut view.rows).await?;
        }
        if args.day {
            view.day = Some(day::draw(&view, store).await?);
        }
        Ok(view)
    }

    fn show(&self) -> anyhow::Result<()> {
        let (screen, accounts) = (&self.screen, self.account_rows());
        screen.remark_on_pauses(&self.in_force.overrides);
        if self.args.accounts {
            return screen.rows(&accounts, "No account is configured.");
        }
        if screen.format != Format::Table {
            return screen.rows(&self.rows, "");
        }
        let mut text = self.table(&self.rows);
        if !accounts.is_empty() {
            text += if self.rows.is_empty() { "" } else { "\n" };
            text += &screen.table(&accounts);
        }
        output::print(&text)?;
        output::remark(&screen.style.wrap(&format!("{}\n", self.in_a_line())));
        if self.rows.iter().any(|row| row.needs_person().is_some()) {
            output::remark("`offhours why NAME` says why, and what to do.\n");
        }
        Ok(())
    }

    fn table(&self, rows: &[ResourceView]) -> String {
        if rows.is_empty() {
            String::new()
        } else if let Some(day) = &self.day {
            day.clone()
        } else if self.args.wide {
            wide(rows, &self.screen)
        } else {
            self.screen.table(rows)
        }
    }

    /// A one-line summary for people.
    fn in_a_line(&self) -> String {
        let none = if self.args.narrows() || self.states.values().any(|one| one.listed_at.is_some())
        {
            "No resource matches"
        } else if self.in_force.configuration.accounts.is_empty() {
            "No account is configured yet: `offhours apply` applies a configuration"
        } else {
            "Nothing is known yet: --refresh takes the first inventory"
        };
        let (resources, end) = match self.rows.as_slice() {
            [] => (none.to_owned(), "."),
            rows => (summary(rows), ""),
        };
        let accounts = self.failing_accounts().into_iter();
        let accounts = accounts.map(|account| format!("; {account}"));
        let past = match self.past {
            0 => String::new(),
            past => format!("; {past} gone for days, which --account shows"),
        };
        format!("{resources}{}{past}{end}", accounts.collect::<String>())
    }

    /// The selected accounts that need a person, each with a brief reason.
    fn failing_accounts(&self) -> Vec<String> {
        let rows = self.account_rows();
        rows.iter().filter_map(AccountRow::failing).collect()
    }

    fn exit(&self) -> Exit {
        let resources =
            !self.args.accounts && self.rows.iter().any(|row| row.needs_person().is_some());
        Exit::after(!self.all_answered, resources || !self.failing_accounts().is_empty())
    }

    /// The selected accounts, or only those that need a person if just these are asked for. Empty
    /// if single resources are asked for.
    fn account_rows(&self) -> Vec<AccountRow> {
        let args = self.args;
        let accounts = self.accounts.iter().filter(|_| args.resources.is_empty());
        accounts
            .map(|account| AccountRow::of(account, &self.in_force, &self.states, self.screen.now))
            .filter(|row| !args.needs_person || row.needs_person.is_some())
            .collect()
    }

    /// One frame for a terminal of `height` lines: the time, the rows that fit, what is wrong with
    /// accounts, and the summary. `top` is the number of rows above, less where there are not so
    /// many to skip.
    fn frame(&self, height: usize, top: &mut usize, every: Duration) -> String {
        let time = self.screen.now.to_zoned(self.screen.zone.clone());
        let time = time.strftime("%a %Y-%m-%d %H:%M:%S %Z");
        let keys = if self.rows.is_empty() { "q leaves" } else { "arrows scroll, q leaves" };
        let table = self.table(&self.rows);
        let mut rows = table.lines().map(str::to_owned);
        let Screen { zone, now, style, .. } = &self.screen;
        let wrapped = |lines: Vec<String>| -> Vec<String> {
            style.wrap(&format!("{}\n", lines.join("\n"))).lines().map(str::to_owned).collect()
        };
        let mut lines = vec![format!("{time}, every {} s; {keys}", every.as_secs())];
        lines.extend(pausing::lines(&self.in_force.overrides, zone, *now));
        lines.push(String::new());
        let mut lines = wrapped(lines);
        lines.extend(rows.next());
        let mut last: Vec<_> =
            self.account_rows().into_iter().filter_map(AccountRow::wrong).collect();
        last.extend([String::new(), self.in_a_line()]);
        let last = wrapped(last);
        let rows: Vec<_> = rows.collect();
        let room = height.saturating_sub(lines.len() + last.len());
        // Where not all rows fit, a line says how many are out of sight.
        let shown = if rows.len() > room { room.saturating_sub(1) } else { rows.len() };
        *top = (*top).min(rows.len() - shown);
        lines.extend_from_slice(&rows[*top..*top + shown]);
        if shown < rows.len() {
            lines.push(format!("… {top} above, {} below", rows.len() - shown - *top));
        }
        lines.extend(last);
        lines.join("\n")
    }
}

fn is_wanted(args: &Args, row: &ResourceView) -> bool {
    (!args.scheduled || row.schedule.is_some())
        && (!args.unscheduled || row.schedule.is_none())
        && (args.schedule.is_none() || row.schedule == args.schedule)
        && (!args.needs_person || row.needs_person().is_some())
}

fn unknown_tag(tag: &str, rows: &[ResourceView]) -> UsageError {
    let known: BTreeSet<_> =
        rows.iter().flat_map(|row| row.tags.iter().map(String::as_str)).collect();
    // A list of hundreds of tags does not help: only a near one is named.
    let near = match nearest(tag, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`offhours status --wide` shows the tags".to_owned(),
    };
    UsageError(format!("nothing has the tag `{tag}`; {near}"))
}

fn sort(rows: &mut [ResourceView], by: Sort) {
    rows.sort_by_cached_key(|row| {
        let (attention, next) = match by {
            Sort::Attention => (row.needs_person().is_none(), None),
            Sort::Name => (false, None),
            Sort::Next => (row.next.is_none(), row.next.map(|next| next.at)),
        };
        let schedule =
            (by == Sort::Attention).then(|| (row.schedule.is_none(), row.schedule.clone()));
        (attention, next, schedule, row.name.clone(), row.resource.clone())
    });
}

/// Reads the requested records and their accounts, leaving out resources that have been gone for days
/// and removed accounts unless something is owed to them. Single resources come without their accounts.
async fn read(
    args: &Args,
    store: &Store,
    configuration: &Configuration,
    now: Timestamp,
) -> anyhow::Result<Selected> {
    if !args.resources.is_empty() {
        return Ok(Selected {
            records: find(store, &args.resources, now).await?,
            ..Selected::default()
        });
    }
    let mut accounts = store.accounts().await?;
    for name in &args.accounts_named {
        check_account(name, &accounts)?;
    }
    let is_asked = !args.accounts_named.is_empty();
    accounts.retain(|account| !is_asked || args.accounts_named.contains(account));
    let mut selected = Selected::default();
    for account in accounts {
        let mut found = store.records_of(&account).await?;
        let read = found.read.len();
        found.read.retain(|record| is_asked || !is_ghost(record, configuration, now));
        let is_configured = configuration.accounts.contains_key(&account);
        if is_configured {
            selected.past += read - found.read.len();
        }
        let has_left = !found.read.is_empty() || !found.unreadable.is_empty();
        if is_asked || is_configured || has_left {
            selected.accounts.insert(account);
        }
        selected.records.extend(readable(found));
    }
    Ok(selected)
}

#[derive(Debug, Default)]
struct Selected {
    /// The accounts whose resources are shown.
    accounts: BTreeSet<AccountName>,
    records: Vec<Record>,
    /// The number of resources of configured accounts that have been gone for days.
    past: usize,
}

/// The number of resources shown, in all and by state.
fn summary(rows: &[ResourceView]) -> String {
    let number = |is: fn(&ResourceView) -> bool| rows.iter().filter(|row| is(row)).count();
    let running = number(|row| row.power == Power::Running);
    let stopped = number(|row| row.power == Power::Stopped);
    let under_way = number(|row| row.phase == PhaseName::InFlight);
    let all = count(rows.len(), "resource");
    let mut text = format!("{all}: {running} running, {stopped} stopped, {under_way} under way");
    match number(|row| row.overdue_since.is_some()) {
        0 => {}
        overdue => _ = write!(text, ", {overdue} overdue"),
    }
    match number(|row| row.needs_person().is_some()) {
        0 => text,
        1 => text + "; 1 needs attention",
        many => text + &format!("; {many} need attention"),
    }
}

#[cfg(test)]
mod tests;
