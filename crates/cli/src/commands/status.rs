//! `offhours status`: what is known of each resource, and what it needs.

mod live;
mod row;
mod screen;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

use domain::{
    AccountName, ScheduleName, configuration::Configuration, left_behind::is_ghost, record::Record,
};
use jiff::{Timestamp, tz::TimeZone};
use store::{AccountState, InForce, RecordPages, Store};

use super::Format;
use crate::{
    Exit, candidates,
    connection::{Connection, Functions, Session, readable},
    output::{self, JsonArray, Style},
    resolve::{find, nearest::exists},
    table::Table,
    time::screen_zone,
};

pub use row::{AccountRow, Overriding, Row};

use row::Columns;
use screen::Screen;

/// So many rows are printed at once: enough to choose the widths of columns by.
const MANY: usize = 1_000;

/// Shows what is known of each resource: wish, phase, saved state, next edge.
///
/// Times in the table are those of the zone that all schedules share, otherwise UTC; in JSON they
/// are UTC. Exit code 3 when
/// something needs a person: a resource that is overdue, stuck, refused, in conflict, held or
/// orphaned, or an account whose token fails or that was not listed for a quarter of an hour.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours status --data offhours.db
  offhours status web-1 do-main/droplet/3164444
  offhours status --schedule office-hours --watch
  offhours status --needs-person
  offhours status --live                  by each resource's own Status operation
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
    let session = args.connection.open().await?;
    let functions = if args.live {
        Some(session.functions()?)
    } else {
        None
    };
    let functions = functions.as_ref();
    match args.watch {
        Some(seconds) => {
            let every = Duration::from_secs(seconds);
            watch(args, &session, functions, every).await
        }
        None => show(args, &session.store, functions, session.now).await,
    }
}

/// Prints the rows page by page, and the accounts after them.
async fn show(
    args: &Args,
    store: &Store,
    functions: Option<&Functions>,
    now: Timestamp,
) -> anyhow::Result<Exit> {
    let view = View::of(args, store, functions, now).await?;
    let style = Style::of_stdout();
    let summary = match args.format {
        Format::Json if args.accounts => {
            output::print_json(&view.account_rows())?;
            return Ok(view.exit(Summary::default()));
        }
        Format::Json => {
            let mut array = JsonArray::default();
            let summary = view.rows(&mut |rows| array.write(rows)).await?;
            array.end()?;
            summary
        }
        Format::Table if args.accounts => {
            output::print(&view.accounts_table(style))?;
            return Ok(view.exit(Summary::default()));
        }
        Format::Table => {
            let mut table = Table::new(style, view.columns.all());
            let mut print = |rows: &[Row]| Ok(output::print(&view.page(&mut table, rows))?);
            let summary = view.rows(&mut print).await?;
            if !view.account_rows().is_empty() {
                let gap = if summary.all > 0 { "\n" } else { "" };
                output::print(&format!("{gap}{}", view.accounts_table(style)))?;
            }
            output::remark(&format!("{}\n", view.told(summary)));
            summary
        }
    };
    Ok(view.exit(summary))
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
            let view = View::of(args, &session.store, functions, now).await?;
            let style = Style::of_stdout();
            let (frame, summary) = view.frame(Screen::height(), style, every).await?;
            screen.draw(&frame)?;
            session.pause(every).await;
            anyhow::Ok((view.exit(summary), session.tell_time().await?))
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
    store: &'a Store,
    functions: Option<&'a Functions>,
    in_force: InForce,
    states: BTreeMap<AccountName, AccountState>,
    /// The accounts that are gone through; all their records are read.
    accounts: BTreeSet<AccountName>,
    columns: Columns,
    /// In which all times are shown.
    zone: TimeZone,
    now: Timestamp,
}

impl<'a> View<'a> {
    /// Names that do not exist are answered here.
    async fn of(
        args: &'a Args,
        store: &'a Store,
        functions: Option<&'a Functions>,
        now: Timestamp,
    ) -> anyhow::Result<Self> {
        let in_force = store.in_force().await?;
        let schedules = &in_force.configuration.schedules;
        if let Some(name) = &args.schedule {
            let known = schedules.keys().map(ScheduleName::as_str);
            exists("schedule", name.as_str(), known)?;
        }
        let mut accounts = store.accounts().await?;
        if let Some(name) = &args.account {
            exists(
                "account",
                name.as_str(),
                accounts.iter().map(AccountName::as_str),
            )?;
            accounts.retain(|account| account == name);
        } else {
            accounts = without_ghosts(store, accounts, &in_force.configuration).await?;
        }
        let zone = screen_zone(args.schedule.as_ref(), &in_force.configuration).clone();
        let overrides = in_force.overrides.iter().any(|one| one.is_active(now));
        Ok(Self {
            args,
            store,
            functions,
            states: readable(store.account_states().await?),
            accounts,
            columns: Columns {
                whole_references: args.wide,
                overrides,
                live: args.live,
            },
            in_force,
            zone,
            now,
        })
    }

    /// Hands over the rows that are asked for, in the order of their references, many at a time and
    /// never all of them.
    async fn rows(
        &self,
        take: &mut impl FnMut(&[Row]) -> anyhow::Result<()>,
    ) -> anyhow::Result<Summary> {
        let mut summary = Summary::default();
        let mut pending = Vec::new();
        if self.args.resources.is_empty() {
            for account in &self.accounts {
                let mut pages = self.store.record_pages(account);
                while let Some(rows) = self.next_page(&mut pages).await? {
                    pending.extend(rows);
                    if pending.len() >= MANY {
                        let rows = std::mem::take(&mut pending);
                        self.give(rows, &mut summary, take).await?;
                    }
                }
            }
        } else {
            let records = find(self.store, &self.args.resources).await?;
            pending.extend(records.iter().map(|record| self.row(record)));
            pending.retain(|row| self.is_wanted(row));
        }
        self.give(pending, &mut summary, take).await?;
        Ok(summary)
    }

    async fn next_page(&self, pages: &mut RecordPages) -> anyhow::Result<Option<Vec<Row>>> {
        let Some(page) = pages.next().await? else {
            return Ok(None);
        };
        let mut rows = Vec::with_capacity(page.len());
        for record in page {
            match record {
                // Only who asks for a removed account is shown what is left of it.
                Ok(record) if self.args.account.is_none() && self.is_ghost(&record) => {}
                Ok(record) => rows.push(self.row(&record)),
                Err(error) => output::warn(&error),
            }
        }
        rows.retain(|row| self.is_wanted(row));
        Ok(Some(rows))
    }

    fn is_ghost(&self, record: &Record) -> bool {
        is_ghost(record, &self.in_force.configuration)
    }

    fn row(&self, record: &Record) -> Row {
        Row::of(record, &self.in_force, &self.zone, self.now)
    }

    async fn give(
        &self,
        mut rows: Vec<Row>,
        summary: &mut Summary,
        take: &mut impl FnMut(&[Row]) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        if let Some(functions) = self.functions {
            live::ask(functions, &mut rows).await?;
        }
        for row in &rows {
            summary.count(row);
        }
        if rows.is_empty() { Ok(()) } else { take(&rows) }
    }

    fn is_wanted(&self, row: &Row) -> bool {
        let args = self.args;
        let named = args.schedule.as_ref().map(ScheduleName::as_str);
        (!args.scheduled || row.schedule.is_some())
            && (named.is_none() || row.schedule.as_deref() == named)
            && (!args.needs_person || row.needs_person.is_some())
    }

    fn page(&self, table: &mut Table, rows: &[Row]) -> String {
        let cells = rows
            .iter()
            .map(|row| row.cells(self.columns, &self.zone, self.now));
        table.page(&cells.collect::<Vec<_>>())
    }

    /// The summary in a line, for people.
    fn told(&self, summary: Summary) -> String {
        let args = self.args;
        let all = args.schedule.is_none() && args.account.is_none();
        let (resources, end) = if summary.all > 0 {
            (summary.to_string(), "")
        } else if all && !args.scheduled && !args.needs_person {
            let unknown = "Nothing is known yet: the first inventory has not been taken";
            (unknown.to_owned(), ".")
        } else {
            ("No resource is like that".to_owned(), ".")
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

    fn exit(&self, summary: Summary) -> Exit {
        if summary.need_person > 0 || !self.failing_accounts().is_empty() {
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
    async fn frame(
        &self,
        height: usize,
        style: Style,
        every: Duration,
    ) -> anyhow::Result<(String, Summary)> {
        let mut shown: Vec<Row> = Vec::new();
        let mut keep = |rows: &[Row]| {
            let room = height.saturating_sub(shown.len());
            shown.extend(rows.iter().take(room).cloned());
            Ok(())
        };
        let summary = self.rows(&mut keep).await?;
        let mut table = Table::new(style, self.columns.all());
        let time = self.now.to_zoned(self.zone.clone());
        let time = time.strftime("%a %Y-%m-%d %H:%M:%S %Z");
        let mut lines = vec![
            format!("{time}, every {} s; Ctrl-C ends", every.as_secs()),
            String::new(),
        ];
        lines.extend(self.page(&mut table, &shown).lines().map(str::to_owned));
        let mut last: Vec<_> = self
            .account_rows()
            .into_iter()
            .filter_map(AccountRow::wrong)
            .collect();
        last.extend([String::new(), self.told(summary)]);
        let room = height.saturating_sub(last.len());
        if lines.len() > room {
            lines.truncate(room.saturating_sub(1));
            lines.push("…".to_owned());
        }
        lines.extend(last);
        Ok((lines.join("\n"), summary))
    }
}

/// The accounts without those that are removed and have left nothing that is owed a size.
async fn without_ghosts(
    store: &Store,
    accounts: BTreeSet<AccountName>,
    configuration: &Configuration,
) -> anyhow::Result<BTreeSet<AccountName>> {
    let mut kept = BTreeSet::new();
    for account in accounts {
        let is_configured = configuration.accounts.contains_key(&account);
        if is_configured || owes(store, &account, configuration).await? {
            kept.insert(account);
        }
    }
    Ok(kept)
}

/// Whether a removed account has left anything that needs a person.
async fn owes(
    store: &Store,
    account: &AccountName,
    configuration: &Configuration,
) -> anyhow::Result<bool> {
    let mut pages = store.record_pages(account);
    while let Some(page) = pages.next().await? {
        // One that a newer program wrote is shown as such.
        let mut records = page.into_iter();
        if records.any(|record| record.map_or(true, |record| !is_ghost(&record, configuration))) {
            return Ok(true);
        }
    }
    Ok(false)
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
    fn count(&mut self, row: &Row) {
        self.all += 1;
        match (row.phase, row.state.as_str()) {
            ("settled", "running") => self.running += 1,
            ("settled", "stopped") => self.stopped += 1,
            ("in-flight", _) => self.under_way += 1,
            _ => {}
        }
        self.overdue += usize::from(row.overdue_since.is_some());
        self.need_person += usize::from(row.needs_person.is_some());
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
