//! `offhours status`: what is known of each resource, and what it needs.

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
    connection::{Connection, Functions, Session, readable},
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

/// Shows what is known of each resource: desired state, phase, saved state, next edge.
///
/// Times in the table are those of the zone that all schedules share, otherwise UTC; in JSON they
/// are UTC. Exit code 3 when something needs a person: a resource that is overdue, stuck, refused,
/// in conflict, held or orphaned, or an account whose token fails or that was not listed for a
/// quarter of an hour.
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
  offhours status --accounts --format json | jq '.[] | select(.needs_person)'
  offhours status --format json | jq '.[] | select(.needs_person)'")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
pub struct Args {
    /// Only these, by reference or by unique name.
    #[arg(value_name = "RESOURCE", add = candidates::resources())]
    resources: Vec<String>,
    /// Only what follows this schedule.
    #[arg(long, value_name = "NAME", add = candidates::schedules())]
    schedule: Option<ScheduleName>,
    /// Only what is in this account.
    #[arg(long, value_name = "NAME", conflicts_with = "resources", add = candidates::accounts())]
    account: Option<AccountName>,
    /// Leave out what no schedule names.
    #[arg(long)]
    scheduled: bool,
    /// Only what needs a person.
    #[arg(long)]
    needs_person: bool,
    /// The accounts themselves, and no resources.
    #[arg(long, conflicts_with_all = ["resources", "schedule", "scheduled", "live", "watch"])]
    accounts: bool,
    /// Ask the provider as well, by each resource's Status operation.
    #[arg(long)]
    live: bool,
    /// Go on, and show it anew every so many seconds until Ctrl-C.
    #[arg(
        long,
        value_name = "SECONDS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "5",
        value_parser = clap::value_parser!(u64).range(1..=3600),
    )]
    watch: Option<u64>,
    /// What things cost, in TOML as for `offhours hours`: adds what stopping
    /// has saved this month, and what the snapshots of hibernated machines cost.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["account", "accounts", "watch"])]
    prices: Option<PathBuf>,
    /// References in full length.
    #[arg(long)]
    wide: bool,
    /// How to print the result.
    #[arg(long, value_enum, default_value_t, conflicts_with = "watch")]
    format: Format,
    #[command(flatten)]
    connection: Connection,
}

impl Args {
    /// Whether it goes on until Ctrl-C.
    #[must_use]
    pub fn watches(&self) -> bool {
        self.watch.is_some()
    }
}

/// Shows the records as they are now.
pub async fn run(args: &Args) -> anyhow::Result<Exit> {
    // What is wrong with the prices is reported before anything is asked.
    let prices = args.prices.as_deref().map(hours::prices).transpose()?;
    let session = args.connection.open().await?;
    let functions = if args.live {
        Some(session.functions()?)
    } else {
        None
    };
    let functions = functions.as_ref();
    if let Some(seconds) = args.watch {
        let every = Duration::from_secs(seconds);
        return watch(args, &session, functions, every).await;
    }
    let known = (functions, prices.as_ref());
    let exit = show(args, &session.store, known, session.now).await?;
    if let Some(prices) = prices.as_ref().filter(|_| args.format == Format::Table) {
        let of = (args.resources.as_slice(), args.schedule.as_ref());
        let saved = hours::this_month(&session.store, of, prices, session.now).await?;
        output::remark(&format!("{saved}\n"));
    }
    Ok(exit)
}

/// Prints the rows, and the accounts after them.
async fn show(
    args: &Args,
    store: &Store,
    (functions, prices): (Option<&Functions>, Option<&Prices>),
    now: Timestamp,
) -> anyhow::Result<Exit> {
    let view = View::of(args, store, (functions, prices), now).await?;
    let rows = &view.rows;
    let style = Style::of_stdout();
    match (args.format, args.accounts) {
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

/// Shows the rows that fit the terminal, again and again until Ctrl-C.
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

/// What is asked of the store, as it is at an instant.
struct View<'a> {
    args: &'a Args,
    in_force: InForce,
    states: BTreeMap<AccountName, AccountState>,
    /// The accounts whose resources are shown.
    accounts: BTreeSet<AccountName>,
    /// In the order of their references, or in which they are named.
    rows: Vec<Row>,
    columns: Columns,
    /// In which all times are shown.
    zone: TimeZone,
    now: Timestamp,
}

impl<'a> View<'a> {
    /// Reads the store, and asks the functions where there are any.
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
        let (accounts, records) = read(args, store, &in_force.configuration).await?;
        let overrides = in_force.overrides.iter().any(|one| one.is_active(now));
        let mut view = Self {
            args,
            states: readable(store.account_states().await?),
            accounts,
            rows: Vec::new(),
            columns: Columns {
                whole_references: args.wide,
                overrides,
                live: args.live,
            },
            zone: screen_zone(args.schedule.as_ref(), &in_force.configuration).clone(),
            in_force,
            now,
        };
        let snapshots = SnapshotPrices::known(&view.in_force.configuration, prices);
        let row = |one| Row::of(one, &view.in_force, &snapshots, &view.zone, now);
        let rows = records.iter().map(row);
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
        let cells = rows
            .iter()
            .map(|row| row.cells(self.columns, &self.zone, self.now));
        Table::whole(style, self.columns.all(), &cells.collect::<Vec<_>>())
    }

    /// How all are, in a line for people.
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
        format!("{resources}{}{end}", accounts.collect::<String>())
    }

    /// The accounts gone through that need a person, and why in a few words.
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

    /// The accounts gone through, or those of them that need a person if only that is asked for;
    /// where single resources are asked for, none.
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

    /// One picture of so many lines: the time, the rows that there is room for, what is wrong with
    /// accounts, and the summary.
    fn frame(&self, height: usize, style: Style, every: Duration) -> String {
        let shown = &self.rows[..self.rows.len().min(height)];
        let time = self.now.to_zoned(self.zone.clone());
        let time = time.strftime("%a %Y-%m-%d %H:%M:%S %Z");
        let mut lines = vec![
            format!("{time}, every {} s; Ctrl-C stops", every.as_secs()),
            String::new(),
        ];
        lines.extend(self.table(shown, style).lines().map(str::to_owned));
        let mut last: Vec<_> = self
            .account_rows()
            .into_iter()
            .filter_map(AccountRow::wrong)
            .collect();
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

/// The records that are asked for, and their accounts: all but removed ones that left nothing that
/// is owed a size. Single resources come without their accounts.
async fn read(
    args: &Args,
    store: &Store,
    configuration: &Configuration,
) -> anyhow::Result<(BTreeSet<AccountName>, Vec<Record>)> {
    if !args.resources.is_empty() {
        return Ok((BTreeSet::new(), find(store, &args.resources).await?));
    }
    let mut accounts = store.accounts().await?;
    if let Some(name) = &args.account {
        let known = accounts.iter().map(AccountName::as_str);
        exists("account", name.as_str(), known)?;
        accounts.retain(|account| account == name);
    }
    let (mut shown, mut records) = (BTreeSet::new(), Vec::new());
    for account in accounts {
        let mut found = store.records_of(&account).await?;
        let is_asked = args.account.is_some();
        found
            .read
            .retain(|record| is_asked || !is_ghost(record, configuration));
        let is_configured = configuration.accounts.contains_key(&account);
        let has_left = !found.read.is_empty() || !found.unreadable.is_empty();
        if is_asked || is_configured || has_left {
            shown.insert(account);
        }
        records.extend(readable(found));
    }
    Ok((shown, records))
}

/// How many resources were shown, and how they are.
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
        let resources = if self.all == 1 {
            "resource"
        } else {
            "resources"
        };
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
