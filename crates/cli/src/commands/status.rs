//! `offhours status`: what is known of each resource, and what it needs.

use comfy_table::Cell;
use domain::{
    ResourceRef,
    decision::{Decision, Verdict, coming_edges, judge},
    membership::Subject,
    record::{Phase, Record},
    resource::{Power, SavedState},
    schedule::Wish,
};
use jiff::Timestamp;
use serde::Serialize;
use store::{InForce, Store};

use super::Format;
use crate::{
    Exit,
    connection::{Connection, Functions, Session, all_records, named},
    output::{self, Style},
};

/// Shows what is known of each resource: wish, phase, saved state, next edge.
///
/// Exit code 3 when something needs a person: stuck, refused, conflict, held or orphaned.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours status --data offhours.db
  offhours status --data offhours.db web-1 do-main/droplet/3164444
  offhours status --data offhours.db --live      by each resource's own Status operation
  offhours status --format json | jq '.[] | select(.needs_person)'")]
pub struct Args {
    /// Only these, by reference or by unique name.
    #[arg(value_name = "RESOURCE")]
    resources: Vec<String>,
    #[command(flatten)]
    connection: Connection,
    /// Ask the provider as well, by each resource's Status operation. Needs --data.
    #[arg(long, requires = "data")]
    live: bool,
    /// Leave out what no schedule names.
    #[arg(long)]
    scheduled: bool,
    /// How to print the result.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Shows the records as they are now.
pub async fn run(args: &Args) -> anyhow::Result<Exit> {
    let (sender, _outcomes) = tokio::sync::mpsc::unbounded_channel();
    let session = args.connection.open().await?;
    let functions = args.live.then(|| session.functions(sender)).transpose()?;
    let Session { store, now, .. } = session;
    let in_force = store.in_force().await?;
    let records = chosen(args, all_records(&store).await?)?;
    let mut rows: Vec<Row> = records
        .iter()
        .map(|record| Row::of(record, &in_force, now))
        .filter(|row| !args.scheduled || row.schedule.is_some())
        .collect();
    if let Some(Functions::Here(service)) = &functions {
        for row in &mut rows {
            row.live = Some(service.look(&row.resource).await?);
        }
    }
    match args.format {
        Format::Json => output::print_json(&rows)?,
        Format::Table => output::print(&format!("{}\n", table(&rows, args.live)))?,
    }
    tell_accounts(&store, args.format).await?;
    Ok(if rows.iter().any(|row| row.needs_person.is_some()) {
        Exit::NeedsPerson
    } else {
        Exit::Done
    })
}

fn chosen(args: &Args, records: Vec<Record>) -> anyhow::Result<Vec<Record>> {
    if args.resources.is_empty() {
        return Ok(records);
    }
    args.resources
        .iter()
        .map(|target| named(target, &records).cloned())
        .collect()
}

/// What went wrong with whole accounts.
async fn tell_accounts(store: &Store, format: Format) -> anyhow::Result<()> {
    for (account, state) in store.account_states().await? {
        if let (Some(error), Format::Table) = (&state.error, format) {
            output::remark(&format!("account {account}: {error}\n"));
        }
    }
    Ok(())
}

/// One resource, as programs read it.
#[derive(Debug, Serialize)]
struct Row {
    resource: ResourceRef,
    name: String,
    schedule: Option<String>,
    wish: Wish,
    phase: &'static str,
    /// In words, with what is under way or wrong.
    state: String,
    next: Option<NextEdge>,
    saved: Option<SavedState>,
    needs_person: Option<String>,
    last_error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<String>,
}

#[derive(Debug, Serialize)]
struct NextEdge {
    at: Timestamp,
    to: Wish,
}

impl Row {
    fn of(record: &Record, in_force: &InForce, now: Timestamp) -> Self {
        let verdict = judge(record, Subject::recorded(record), in_force.rules(), now);
        let next = coming_edges(record, in_force.rules(), now)
            .find(|edge| edge.wish != Wish::Any)
            .filter(|_| verdict.opted_in)
            .map(|edge| NextEdge {
                at: edge.key.instant,
                to: edge.wish,
            });
        let (phase, state) = phase(record, now);
        Self {
            resource: record.reference.clone(),
            name: record.name.clone(),
            schedule: verdict.membership.schedule().map(ToString::to_string),
            wish: verdict.wish,
            phase,
            state,
            next,
            saved: record.saved.clone(),
            needs_person: needs_person(record, &verdict),
            last_error: record.last_error.clone(),
            live: None,
        }
    }
}

fn phase(record: &Record, now: Timestamp) -> (&'static str, String) {
    match &record.phase {
        Phase::Settled { at } => {
            let word = match at {
                Power::Running => "running",
                Power::Stopped => "stopped",
                Power::Between => "between",
            };
            ("settled", word.to_owned())
        }
        Phase::InFlight { transition } => {
            let seconds = now.duration_since(transition.claimed_at).as_secs();
            let words = format!("{} for {seconds} s", transition.direction);
            ("in-flight", words)
        }
        Phase::Refused { transition, reason } => {
            let words = format!("{} refused: {reason}", transition.direction);
            ("refused", words)
        }
        Phase::Stuck {
            transition, reason, ..
        } => ("stuck", format!("{} stuck: {reason}", transition.direction)),
        Phase::Gone { .. } => ("gone", "gone at the provider".to_owned()),
    }
}

/// What only a person can settle, and how.
fn needs_person(record: &Record, verdict: &Verdict) -> Option<String> {
    match &record.phase {
        Phase::Stuck { reason, .. } | Phase::Refused { reason, .. } => {
            return Some(reason.clone());
        }
        Phase::Settled { .. } | Phase::InFlight { .. } | Phase::Gone { .. } => {}
    }
    if record.held {
        return Some("held: `offhours approve` lets go of it".to_owned());
    }
    if record.is_orphaned() {
        return Some("orphaned: `offhours start` restores it".to_owned());
    }
    match &verdict.decision {
        Decision::Leave(reason) => {
            use domain::{decision::LeaveReason, membership::Membership};
            let conflict =
                matches!(&verdict.membership, Membership::Barred(bar) if bar.is_conflict());
            let unknown = matches!(reason, LeaveReason::UnknownSchedule(_));
            (conflict || unknown).then(|| reason.to_string())
        }
        Decision::Act(_) | Decision::AskAgain(_) => None,
    }
}

fn table(rows: &[Row], live: bool) -> String {
    let style = Style::of_stdout();
    let seen = if live { "Live" } else { "State" };
    let mut table = style.list([
        "Resource", "Name", "Schedule", "Wish", seen, "Next", "Saved", "Remark",
    ]);
    let unique = |row: &Row| rows.iter().filter(|other| other.name == row.name).count() == 1;
    for row in rows {
        // Commands take a unique name; only where there is none the whole reference is needed.
        let resource = if unique(row) {
            format!("{}/{}", row.resource.account, row.resource.kind())
        } else {
            row.resource.to_string()
        };
        let next = row.next.as_ref().map(|next| {
            let at = next.at.strftime("%a %H:%M UTC");
            format!("{} {at}", next.to)
        });
        let remark = row.needs_person.as_ref().or(row.last_error.as_ref());
        table.add_row([
            Cell::new(resource),
            Cell::new(&row.name),
            Cell::new(row.schedule.as_deref().unwrap_or_default()),
            style.wish(row.wish),
            Cell::new(row.live.as_ref().unwrap_or(&row.state)),
            Cell::new(next.unwrap_or_default()),
            Cell::new(
                row.saved
                    .as_ref()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
            ),
            Cell::new(remark.map(String::as_str).unwrap_or_default()),
        ]);
    }
    if rows.is_empty() {
        return "Nothing is known yet: the first inventory has not been taken.".to_owned();
    }
    table.to_string()
}
