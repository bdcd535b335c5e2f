//! `offhours stop` and `offhours start`: now, through the same life cycle, until it is seen.

use std::{
    collections::BTreeSet,
    io::{self, IsTerminal as _},
    time::Duration,
};

use domain::{AccountName, ResourceRef, ScheduleName, record::Direction};
use environment::{Clock, Function, Invoke as _};
use jiff::{SignedDuration, Timestamp};
use lifecycle::{
    Outcome,
    outcome::{Event, Subject},
};
use serde_json::json;
use store::Store;
use tokio::sync::mpsc;

use super::Format;
use crate::{
    Exit,
    connection::{Connection, Functions, all_records, named},
    exit::UsageError,
    local::view::View,
};

/// Between two looks while waiting.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// How long to wait for the end at most: longer than any deadline, after which it is stuck.
const WAIT_AT_MOST: SignedDuration = SignedDuration::from_mins(45);

/// How long dispatch may take to pick up what an invocation left behind.
const PICKED_UP_WITHIN: SignedDuration = SignedDuration::from_mins(3);

/// What to stop or start.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours stop web-1 --data offhours.db          by its name, where that is unique
  offhours start do-main/droplet/3164444
  offhours stop --schedule office-hours --dry-run
  offhours start --account hz-eu --no-wait

A command by hand stands until the schedule's next edge. It is declined for what is protected,
opted out, or under an enforced schedule. Exit code 3: done, and something needs a person.")]
pub struct Args {
    /// Resources, by reference or by unique name.
    #[arg(value_name = "RESOURCE", required_unless_present_any = ["schedule", "account"])]
    resources: Vec<String>,
    /// All that follows this schedule.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["resources", "account"])]
    schedule: Option<ScheduleName>,
    /// All that follows some schedule in this account.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["resources", "schedule"])]
    account: Option<AccountName>,
    /// Say what would be done, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Return as soon as it is asked for.
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    connection: Connection,
    /// How to print what happens.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Stops or starts, and follows it until it is seen.
pub async fn run(args: &Args, direction: Direction, now: Timestamp) -> anyhow::Result<Exit> {
    let (sender, mut outcomes) = mpsc::unbounded_channel();
    let (store, functions) = args.connection.functions(sender).await?;
    let records = all_records(&store).await?;
    let mut event = if let Some(schedule) = &args.schedule {
        json!({ "schedule": schedule })
    } else if let Some(account) = &args.account {
        json!({ "account": account })
    } else {
        let references: Vec<_> = args
            .resources
            .iter()
            .map(|target| named(target, &records).map(|record| record.reference.clone()))
            .collect::<anyhow::Result<_>>()?;
        json!({ "resources": references })
    };
    event["dry_run"] = args.dry_run.into();
    event["by"] = whoever().into();
    event["time"] = now.to_string().into();
    let function = match direction {
        Direction::Stop => Function::Stop,
        Direction::Start => Function::Start,
    };
    let mut waiting = Waiting {
        view: view(args.format),
        asked: BTreeSet::new(),
        needs_person: false,
        failed: false,
    };
    match &functions {
        Functions::Here(service) => {
            let told = service.act(function, &event.to_string()).await;
            told.map_err(|error| anyhow::anyhow!(error))?;
            while let Ok(outcome) = outcomes.try_recv() {
                waiting.hear(&outcome)?;
            }
        }
        Functions::Lambda(lambda) => {
            if args.dry_run {
                return Err(UsageError(
                    "--dry-run needs an answer, and functions at AWS are invoked without one: \
                     use `cargo lambda invoke` or `aws lambda invoke` with \"dry_run\": true"
                        .to_owned(),
                )
                .into());
            }
            lambda.invoke(function, event.clone()).await?;
            waiting.asked = targets(args, &records);
        }
    }
    if !args.no_wait && !args.dry_run {
        waiting
            .until_seen(&store, &functions, &mut outcomes, direction, now)
            .await?;
    }
    waiting.view.finish();
    Ok(match (waiting.failed, waiting.needs_person) {
        (true, _) => Exit::Failed,
        (false, true) => Exit::NeedsPerson,
        (false, false) => Exit::Done,
    })
}

/// Who gives the command, for history.
fn whoever() -> String {
    std::env::var("USER").unwrap_or_else(|_| "somebody at a terminal".to_owned())
}

fn view(format: Format) -> View {
    match format {
        Format::Json => View::Json,
        Format::Table if io::stdout().is_terminal() => View::terminal(),
        Format::Table => View::Plain,
    }
}

fn targets(args: &Args, records: &[domain::record::Record]) -> BTreeSet<ResourceRef> {
    records
        .iter()
        .filter(|record| {
            args.schedule
                .as_ref()
                .is_some_and(|name| record.schedule.as_ref() == Some(name))
                || args.account.as_ref() == Some(&record.reference.account) && record.opted_in
                || args
                    .resources
                    .iter()
                    .any(|target| record.name == *target || record.reference.to_string() == *target)
        })
        .map(|record| record.reference.clone())
        .collect()
}

/// What is waited for, and what was heard.
struct Waiting {
    view: View,
    asked: BTreeSet<ResourceRef>,
    needs_person: bool,
    failed: bool,
}

impl Waiting {
    fn hear(&mut self, outcome: &Outcome) -> anyhow::Result<()> {
        self.view.show(outcome)?;
        let Subject::Resource { resource, .. } = &outcome.subject else {
            return Ok(());
        };
        match &outcome.event {
            Event::Asked { .. } => {
                self.asked.insert(resource.clone());
            }
            Event::Declined { .. } | Event::Postponed { .. } => self.failed = true,
            Event::Refused { .. } | Event::Stuck { .. } => {
                self.needs_person = true;
                self.asked.remove(resource);
            }
            Event::Seen { .. }
            | Event::Overtaken { .. }
            | Event::LetGo { .. }
            | Event::Gone { .. } => {
                self.asked.remove(resource);
            }
            Event::Forced { .. }
            | Event::AlreadyThere { .. }
            | Event::WouldAsk { .. }
            | Event::Joined { .. }
            | Event::Orphaned
            | Event::Conflict { .. }
            | Event::UnknownSchedule { .. }
            | Event::Replaced { .. }
            | Event::Status { .. } => {}
        }
        Ok(())
    }

    /// Looks until nothing that was asked for is under way any more.
    async fn until_seen(
        &mut self,
        store: &Store,
        functions: &Functions,
        outcomes: &mut mpsc::UnboundedReceiver<Outcome>,
        direction: Direction,
        began: Timestamp,
    ) -> anyhow::Result<()> {
        let clock = Clock::machine();
        while !self.asked.is_empty() && clock.now().duration_since(began) < WAIT_AT_MOST {
            clock.sleep(LOOK_EVERY).await;
            self.view.passed(clock.now());
            if let Functions::Here(service) = functions {
                let looked = service.poll_once().await;
                looked.map_err(|error| anyhow::anyhow!(error))?;
            }
            while let Ok(outcome) = outcomes.try_recv() {
                self.hear(&outcome)?;
            }
            self.forget_ended(store, direction, began, clock.now())
                .await?;
        }
        self.failed |= !self.asked.is_empty();
        Ok(())
    }

    /// What others saw through (dispatch, or functions at AWS) is known from its record.
    async fn forget_ended(
        &mut self,
        store: &Store,
        direction: Direction,
        began: Timestamp,
        now: Timestamp,
    ) -> anyhow::Result<()> {
        let references: Vec<_> = self.asked.iter().cloned().collect();
        for record in store.records(&references).await? {
            use domain::record::Phase;
            let picked_up = record.handled.as_ref().is_some_and(|handled| {
                handled.key.instant >= began && handled.wish == direction.wish()
            });
            match &record.phase {
                Phase::InFlight { .. } => {}
                _ if !picked_up && now.duration_since(began) < PICKED_UP_WITHIN => {}
                Phase::Settled { .. } => {
                    self.failed |= !picked_up;
                    self.asked.remove(&record.reference);
                }
                Phase::Refused { .. } | Phase::Stuck { .. } | Phase::Gone { .. } => {
                    self.needs_person = true;
                    self.asked.remove(&record.reference);
                }
            }
        }
        Ok(())
    }
}
