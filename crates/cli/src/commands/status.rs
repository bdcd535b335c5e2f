//! `offhours status`: what is known about each resource, and what it needs.

mod live;
mod row;
mod screen;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
    time::Duration,
};

use domain::{
    AccountName, ScheduleName, configuration::Configuration, left_behind::is_ghost, record::Record,
};
use jiff::{Timestamp, tz::TimeZone};
use report::hours::Prices;
use store::{AccountState, InForce, Store};

use super::{Format, hours};
use crate::{
    Exit, candidates,
    connection::{Functions, Session, readable},
    context::Context,
    hibernated::SnapshotPrices,
    output::{self, Style},
    resolve::{find, nearest::exists},
    state::PhaseName,
    table::Table,
    time::screen_zone,
};

pub use row::{AccountRow, Overriding, Row};

use row::Columns;
use screen::Screen;

/// Show the desired state, phase, saved state and next edge of each resource.
///
/// Times in the table are in the zone of --schedule, or else in the one that all schedules share,
/// or else in UTC; in JSON they are in UTC. Exit code 3 if something needs a person: a resource
/// that is overdue, stuck, refused, in conflict, held or orphaned, whose tag names an unknown
/// schedule, whose start keeps failing, or whose snapshot is lost; or an account whose token fails
/// or that was not listed for 15 minutes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours status --data offhours.db
  offhours status web-1 do-main/droplet/3164444
  offhours status --schedule office-hours --watch
  offhours status --needs-person
  offhours status --live                  by each resource's own Status operation
  offhours status --prices prices.toml    with what stopping has saved this month
  offhours status --accounts              what is known of the accounts alone
  offhours status --accounts -o json | jq '.[] | select(.needs_person)'
  offhours status -o json | jq '.[] | select(.needs_person)'")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct Args {
    /// Only these resources, by reference, by unique name or by a pattern with `*` and `?`.
    #[arg(value_name = "RESOURCE", add = candidates::resources())]
    resources: Vec<String>,
    /// Only resources that follow this schedule.
    #[arg(long, value_name = "NAME", add = candidates::schedules())]
    schedule: Option<ScheduleName>,
    /// Only resources in this account.
    #[arg(long, value_name = "NAME", conflicts_with = "resources", add = candidates::accounts())]
    account: Option<AccountName>,
    /// Leave out resources that follow no schedule.
    #[arg(long)]
    scheduled: bool,
    /// Only resources and accounts that need a person.
    #[arg(long)]
    needs_person: bool,
    /// Show the accounts instead of the resources.
    #[arg(long, conflicts_with_all = ["resources", "schedule", "scheduled", "live", "watch"])]
    accounts: bool,
    /// Also ask the provider, by each resource's Status operation.
    #[arg(long)]
    live: bool,
    /// Keep running, and refresh every SECONDS seconds (5 if not given) until Ctrl-C.
    #[arg(
        long,
        value_name = "SECONDS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "5",
        value_parser = clap::value_parser!(u64).range(1..=3600),
    )]
    watch: Option<u64>,
    /// File with prices, in TOML as for `offhours hours`. Adds what stopping has saved this month,
    /// and what the snapshots of hibernated machines cost.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["account", "accounts", "watch"])]
    prices: Option<PathBuf>,
    /// Show references in full.
    #[arg(long)]
    wide: bool,
}

impl Args {
    /// Reports whether the command goes on until Ctrl-C.
    #[must_use]
    pub fn watches(&self) -> bool {
        self.watch.is_some()
    }
}

/// Shows the records as they are now.
pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    // Errors in the prices are reported before anything is read.
    let prices = args.prices.as_deref().map(hours::prices).transpose()?;
    let session = context.connection.open().await?;
    let functions = if args.live { Some(session.functions()?) } else { None };
    let functions = functions.as_ref();
    if let Some(seconds) = args.watch {
        let every = Duration::from_secs(seconds);
        return watch(args, &session, functions, every).await;
    }
    let known = (functions, prices.as_ref());
    let exit = show(args, context.format, &session.store, known, session.now).await?;
    if let Some(prices) = prices.as_ref().filter(|_| context.format == Format::Table) {
        let of = (args.resources.as_slice(), args.schedule.as_ref());
        let saved = hours::this_month(&session.store, of, prices, session.now).await?;
        output::remark(&format!("{saved}\n"));
    }
    Ok(exit)
}

/// Prints the rows, and the accounts after them.
async fn show(
    args: &Args,
    format: Format,
    store: &Store,
    (functions, prices): (Option<&Functions>, Option<&Prices>),
    now: Timestamp,
) -> anyhow::Result<Exit> {
    let view = View::of(args, store, (functions, prices), now).await?;
    let rows = &view.rows;
    let style = Style::of_stdout();
    match (format, args.accounts) {
        (Format::Json, true) => output::print_json(&view.account_rows())?,
        (Format::Json, false) => output::print_json(rows)?,
        (Format::Table, true) => output::print(&view.accounts_table(style))?,
        (Format::Table, false) => {
            let mut text = String::new();
            if !rows.is_empty() {
                text += &view.table(rows, style);
            }
            if !view.account_rows().is_empty() {
                text += if rows.is_empty() { "" } else { "\n" };
                text += &view.accounts_table(style);
            }
            output::print(&text)?;
            output::remark(&format!("{}\n", view.in_a_line()));
        }
    }
    Ok(view.exit())
}

/// Shows the rows that fit the terminal, redrawn until Ctrl-C.
async fn watch(
    args: &Args,
    session: &Session,
    functions: Option<&Functions>,
    every: Duration,
) -> anyhow::Result<Exit> {
    let screen = Screen::open()?;
    let interrupt = tokio::signal::ctrl_c();
    tokio::pin!(interrupt);
    let mut exit = Exit::Done;
    let mut now = session.now;
    loop {
        let redraw = async {
            let view = View::of(args, &session.store, (functions, None), now).await?;
            let style = Style::of_stdout();
            screen.draw(&view.frame(Screen::height(), style, every))?;
            session.pause(every).await;
            anyhow::Ok((view.exit(), session.read_clock().await?))
        };
        tokio::select! {
            drawn = redraw => {
                (exit, now) = drawn?;
            }
            signal = &mut interrupt => {
                signal?;
                return Ok(exit);
            }
        }
    }
}

/// What the arguments select from the store, as of an instant.
struct View<'a> {
    args: &'a Args,
    in_force: InForce,
    states: BTreeMap<AccountName, AccountState>,
    /// The accounts whose resources are shown.
    accounts: BTreeSet<AccountName>,
    /// The number of resources that are not shown because they have been gone for days.
    past: usize,
    /// Ordered by reference, or as the command line names them.
    rows: Vec<Row>,
    columns: Columns,
    /// The zone in which all times are shown.
    zone: TimeZone,
    now: Timestamp,
}

impl<'a> View<'a> {
    /// Reads the store and, if functions are given, asks them.
    ///
    /// # Errors
    /// A usage error for a name that does not exist.
    async fn of(
        args: &'a Args,
        store: &Store,
        (functions, prices): (Option<&Functions>, Option<&Prices>),
        now: Timestamp,
    ) -> anyhow::Result<Self> {
        let in_force = store.in_force().await?;
        let schedules = &in_force.configuration.schedules;
        if let Some(name) = &args.schedule {
            let known = schedules.keys().map(ScheduleName::as_str);
            exists("schedule", name.as_str(), known)?;
        }
        let selected = read(args, store, &in_force.configuration, now).await?;
        let overrides = in_force.overrides.iter().any(|one| one.is_active(now));
        let mut view = Self {
            args,
            states: readable(store.account_states().await?),
            accounts: selected.accounts,
            past: selected.past,
            rows: Vec::new(),
            columns: Columns { whole_references: args.wide, overrides, live: args.live },
            zone: screen_zone(args.schedule.as_ref(), &in_force.configuration).clone(),
            in_force,
            now,
        };
        let snapshots = SnapshotPrices::known(&view.in_force.configuration, prices);
        let row = |one| Row::of(one, &view.in_force, &snapshots, &view.zone, now);
        let rows = selected.records.iter().map(row);
        view.rows = rows.filter(|row| view.is_wanted(row)).collect();
        if let Some(functions) = functions {
            live::ask(functions, &mut view.rows).await?;
        }
        Ok(view)
    }

    fn is_wanted(&self, row: &Row) -> bool {
        let args = self.args;
        let named = args.schedule.as_ref().map(ScheduleName::as_str);
        (!args.scheduled || row.schedule.is_some())
            && (named.is_none() || row.schedule.as_deref() == named)
            && (!args.needs_person || row.needs_person.is_some())
    }

    fn table(&self, rows: &[Row], style: Style) -> String {
        let cells = rows.iter().map(|row| row.cells(self.columns, &self.zone, self.now));
        Table::whole(style, self.columns.all(), &cells.collect::<Vec<_>>())
    }

    /// A one-line summary for people.
    fn in_a_line(&self) -> String {
        let args = self.args;
        let all = args.schedule.is_none() && args.account.is_none();
        let (resources, end) = if !self.rows.is_empty() {
            (Summary::of(&self.rows).to_string(), "")
        } else if all && !args.scheduled && !args.needs_person {
            let unknown = "Nothing is known yet: the first inventory has not been taken";
            (unknown.to_owned(), ".")
        } else {
            ("No resource matches".to_owned(), ".")
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
            !self.args.accounts && self.rows.iter().any(|row| row.needs_person.is_some());
        if resources || !self.failing_accounts().is_empty() {
            Exit::NeedsPerson
        } else {
            Exit::Done
        }
    }

    /// The selected accounts, or only those that need a person if just these are asked for. Empty
    /// if single resources are asked for.
    fn account_rows(&self) -> Vec<AccountRow> {
        let args = self.args;
        let accounts = self.accounts.iter().filter(|_| args.resources.is_empty());
        accounts
            .map(|account| AccountRow::of(account, &self.in_force, &self.states, self.now))
            .filter(|row| !args.needs_person || row.needs_person.is_some())
            .collect()
    }

    fn accounts_table(&self, style: Style) -> String {
        let rows = self.account_rows().into_iter();
        let cells: Vec<_> = rows.map(|row| row.cells(&self.zone, self.now)).collect();
        Table::whole(style, AccountRow::COLUMNS, &cells)
    }

    /// One frame for a screen of `height` lines: the time, the rows that fit, what is wrong with
    /// accounts, and the summary.
    fn frame(&self, height: usize, style: Style, every: Duration) -> String {
        let shown = &self.rows[..self.rows.len().min(height)];
        let time = self.now.to_zoned(self.zone.clone());
        let time = time.strftime("%a %Y-%m-%d %H:%M:%S %Z");
        let mut lines =
            vec![format!("{time}, every {} s; Ctrl-C stops", every.as_secs()), String::new()];
        lines.extend(self.table(shown, style).lines().map(str::to_owned));
        let mut last: Vec<_> =
            self.account_rows().into_iter().filter_map(AccountRow::wrong).collect();
        last.extend([String::new(), self.in_a_line()]);
        let room = height.saturating_sub(last.len());
        if lines.len() > room {
            lines.truncate(room.saturating_sub(1));
            lines.push("…".to_owned());
        }
        lines.extend(last);
        lines.join("\n")
    }
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
    if let Some(name) = &args.account {
        let known = accounts.iter().map(AccountName::as_str);
        exists("account", name.as_str(), known)?;
        accounts.retain(|account| account == name);
    }
    let mut selected = Selected::default();
    for account in accounts {
        let mut found = store.records_of(&account).await?;
        let is_asked = args.account.is_some();
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

/// What the arguments select.
#[derive(Debug, Default)]
struct Selected {
    /// The accounts whose resources are shown.
    accounts: BTreeSet<AccountName>,
    records: Vec<Record>,
    /// The number of resources of configured accounts that have been gone for days.
    past: usize,
}

/// The number of resources shown, in all and by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Summary {
    all: usize,
    running: usize,
    stopped: usize,
    under_way: usize,
    overdue: usize,
    need_person: usize,
}

impl Summary {
    fn of(rows: &[Row]) -> Self {
        let mut all = Self::default();
        for row in rows {
            all.all += 1;
            match (row.phase, row.state.as_str()) {
                (PhaseName::Settled, "running") => all.running += 1,
                (PhaseName::Settled, "stopped" | "hibernated") => all.stopped += 1,
                (PhaseName::InFlight, _) => all.under_way += 1,
                (
                    PhaseName::Settled | PhaseName::Refused | PhaseName::Stuck | PhaseName::Gone,
                    _,
                ) => {}
            }
            all.overdue += usize::from(row.overdue_since.is_some());
            all.need_person += usize::from(row.needs_person.is_some());
        }
        all
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resources = if self.all == 1 { "resource" } else { "resources" };
        write!(
            f,
            "{} {resources}: {} running, {} stopped, {} under way",
            self.all, self.running, self.stopped, self.under_way
        )?;
        if self.overdue > 0 {
            write!(f, ", {} overdue", self.overdue)?;
        }
        match self.need_person {
            0 => Ok(()),
            1 => f.write_str("; 1 needs a person"),
            many => write!(f, "; {many} need a person"),
        }
    }
}

#[cfg(test)]
mod tests;
