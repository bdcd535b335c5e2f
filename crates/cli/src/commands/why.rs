//! `offhours why`: the whole chain of reasons for one resource at an instant.

mod text;

use anyhow::Context as _;
use domain::{
    ScheduleName,
    configuration::Target,
    decision::judge,
    explanation::{Explanation, explain},
    membership::Subject,
    record::Record,
    resource::LostStorage,
    schedule::{Schedule, desired_or_any},
};
use jiff::{Timestamp, tz::TimeZone};
use schemars::JsonSchema;
use serde::Serialize;
use store::InForce;

use super::Format;
use crate::{
    Exit, candidates,
    connection::{all_records, readable},
    context::Context,
    exit::UsageError,
    hibernated::steps,
    names::find,
    output,
    print::Screen,
    resource::ResourceView,
    state::sentence,
    time::short,
};

/// Explain why a resource is in its state, and what happens next.
///
/// --full shows every rule that may have a say, what its schedule wants and why, and what was decided.
/// Of a schedule, it says what it wants, and what follows it. Exit code 3 if the resource needs
/// attention.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours why web-1
  offhours why do-main/droplet/3164444 --full
  offhours why office-hours
  offhours why web-1 -o json | jq .explanation.decision")]
pub struct Args {
    /// Resource: a reference, a unique name, or a pattern that matches one; or a schedule.
    #[arg(value_name = "NAME", add = candidates::resources())]
    name: String,
    /// Show the whole chain of reasons.
    #[arg(long)]
    full: bool,
}

/// Explains one resource or schedule.
pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    let session = context.connection.open().await?;
    let (store, now) = (&session.store, session.now);
    let in_force = store.in_force().await?;
    let is_name = |name: &&ScheduleName| name.as_str() == args.name;
    if let Some(name) = in_force.configuration.schedules.keys().find(is_name) {
        let records = all_records(store).await?;
        if !records.iter().any(|record| record.name == args.name) {
            let screen = context.screen(&*in_force.configuration, now);
            return schedule(name, &in_force, &records, &screen);
        }
    }
    let mut found = find(store, std::slice::from_ref(&args.name), now).await?;
    if found.len() > 1 {
        let message = format!("`{}` names {} resources: name one", args.name, found.len());
        return Err(UsageError(message).into());
    }
    let record = found.pop().context("nothing was found for what was named")?;
    let follows = schedule_of(&record, &in_force);
    let zone = context.zone(&*in_force.configuration);
    let states = readable(store.account_states().await?);
    let state = states.get(&record.reference.account);
    let inventory_at = state.and_then(|state| state.listed_at);
    let why = Why::of(&record, &in_force, zone, now, inventory_at);
    match context.format {
        Format::Json | Format::Csv => output::print_json(&why)?,
        Format::Table => output::print_lines(&text::render(&why, follows, args.full))?,
    }
    Ok(if why.view.needs_person().is_some() { Exit::NeedsPerson } else { Exit::Done })
}

/// Says what a schedule wants, and what follows it.
fn schedule(
    name: &ScheduleName,
    in_force: &InForce,
    records: &[Record],
    screen: &Screen,
) -> anyhow::Result<Exit> {
    if screen.format != Format::Table {
        let message = format!("{name} is a schedule: -o json explains a resource");
        return Err(UsageError(message).into());
    }
    let schedule = &in_force.configuration.schedules[name].schedule;
    let next = schedule.next_edge(screen.now);
    let next = next.map_or_else(
        || "and never anything else".to_owned(),
        |edge| format!("and {} from {} on", desired_or_any(edge.desired), screen.time(edge.at)),
    );
    let wants = desired_or_any(schedule.desired_at(screen.now));
    let mut lines = vec![format!("The schedule {name} wants {wants} now, {next}.")];
    let target = Target::Schedule(name.clone());
    if let Some(one) = in_force.overrides.of(&target).filter(|one| one.is_active(screen.now)) {
        let until = screen.time(one.ends_at);
        lines.push(format!("It is overridden: {} until {until}, by {}.", one.desired, one.by));
    }
    let follows = records.iter().filter(|record| record.schedule.as_ref() == Some(name));
    let names: Vec<_> = follows.map(|record| record.name.as_str()).collect();
    lines.push(match names.len() {
        0 => "Nothing follows it.".to_owned(),
        1 => format!("{} follows it.", names[0]),
        many => format!("{many} resources follow it: {}.", names.join(", ")),
    });
    lines.push(format!("`offhours preview --schedule {name}` shows what comes next.\n"));
    let text = lines.join("\n");
    output::print_lines(&text)?;
    Ok(Exit::Done)
}

fn schedule_of<'a>(record: &Record, in_force: &'a InForce) -> Option<&'a Schedule> {
    let rules = in_force.rules();
    let verdict = judge(record, Subject::recorded(record), rules, Timestamp::UNIX_EPOCH);
    let rule = verdict.membership.rule(rules.configuration)?;
    Some(&rule.schedule)
}

/// Why one resource is in its state.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Why {
    #[serde(flatten)]
    view: ResourceView,
    /// When the resource's account was last listed completely, which is how old its tags may be;
    /// null if it never was.
    inventory_at: Option<Timestamp>,
    /// Storage that the latest start could not restore; null if there is none.
    lost_storage: Option<LostStorage>,
    /// Number of failures in a row.
    attempts: u32,
    /// While the machine is being hibernated or woken: the outcome of the latest request, and what
    /// follows. Omitted otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<[String; 2]>,
    /// The chain of reasons.
    explanation: Explanation,
    #[serde(skip)]
    zone: TimeZone,
    /// The state, as the beginning of a sentence.
    #[serde(skip)]
    sentence: String,
    /// Whether its new state was seen, and is being watched.
    #[serde(skip)]
    is_watched: bool,
}

impl Why {
    fn of(
        record: &Record,
        in_force: &InForce,
        zone: TimeZone,
        now: Timestamp,
        inventory_at: Option<Timestamp>,
    ) -> Self {
        Self {
            view: ResourceView::of(record, in_force, &zone, now),
            inventory_at,
            lost_storage: record.lost_storage,
            attempts: record.attempts,
            steps: steps(record, |at| short(at, &zone, now)),
            explanation: explain(record, in_force.rules(), now),
            sentence: sentence(record),
            is_watched: record.watched_until().is_some(),
            zone,
        }
    }
}

#[cfg(test)]
mod tests;
