//! `offhours why`: the whole chain of reasons for one resource at an instant.

mod text;

use anyhow::Context as _;
use domain::{
    ResourceRef,
    decision::judge,
    explanation::{Explanation, explain},
    membership::Subject,
    overdue::overdue,
    reason::Reason,
    record::Record,
    resource::{LostStorage, SavedState},
    schedule::Schedule,
    stop_method::StopMethod,
};
use jiff::{Timestamp, tz::TimeZone};
use schemars::JsonSchema;
use serde::Serialize;
use store::InForce;

use super::Format;
use crate::{
    Exit, candidates,
    connection::readable,
    context::Context,
    exit::UsageError,
    hibernated::{Hibernated, SnapshotPrices, rehearsal_missing, steps},
    output,
    resolve::find,
    state::{PhaseName, State, is_overdue, needs_person, sentence},
    time::{When, short},
};

/// Explain why a resource is in its state, and what happens next.
///
/// Shows every rule that may have a say, what the resource's schedule wants and why, and what was
/// decided. Times are local to the resource's schedule; in JSON they are UTC. Exit code 3 if the
/// resource needs a person.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  offhours why web-1
  offhours why do-main/droplet/3164444 --at \"2026-12-24 09:00\"
  offhours why web-1 --at 2026-06-15T07:00:00Z -o json | jq .decision")]
pub struct Args {
    /// Resource, by reference, by unique name or by a pattern with `*` and `?` that matches one
    /// resource.
    #[arg(value_name = "RESOURCE", add = candidates::resources())]
    resource: String,
    /// Instant to explain, such as 2026-06-15T07:00:00Z, or "2026-06-15 09:00" in the time zone of
    /// the resource's schedule [default: now].
    #[arg(long, value_name = "INSTANT")]
    at: Option<When>,
}

/// Explains one resource.
pub async fn run(args: &Args, context: &Context) -> anyhow::Result<Exit> {
    let session = context.connection.open().await?;
    let store = &session.store;
    let targets = std::slice::from_ref(&args.resource);
    let mut found = find(store, targets, session.now).await?;
    if found.len() > 1 {
        let message = format!("`{}` names {} resources: name one", args.resource, found.len());
        return Err(UsageError(message).into());
    }
    let record = found.pop();
    let record = record.context("nothing was found for what was named")?;
    let in_force = store.in_force().await?;
    let at = instant(args.at, &record, &in_force, session.now)?;
    let states = readable(store.account_states().await?);
    let state = states.get(&record.reference.account);
    let inventory_at = state.and_then(|state| state.listed_at);
    let why = Why::of(&record, &in_force, at, session.now, inventory_at);
    match context.format {
        Format::Json | Format::Csv => output::print_json(&why)?,
        Format::Table => {
            output::print_lines(&text::render(&why, schedule_of(&record, &in_force)))?;
        }
    }
    Ok(match why.needs_person {
        Some(_) => Exit::NeedsPerson,
        None => Exit::Done,
    })
}

/// The requested instant; now if none is given.
fn instant(
    at: Option<When>,
    record: &Record,
    in_force: &InForce,
    now: Timestamp,
) -> anyhow::Result<Timestamp> {
    match (at, schedule_of(record, in_force)) {
        (None, _) => Ok(now),
        (Some(When::Instant(instant)), _) => Ok(instant),
        (Some(local @ When::Local(_)), Some(schedule)) => Ok(local.instant(schedule.timezone())?),
        (Some(When::Local(_)), None) => {
            let message = "a local time needs the time zone of a schedule, and the resource \
                           follows none: write an instant such as 2026-06-15T07:00:00Z";
            Err(UsageError(message.to_owned()).into())
        }
    }
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
    /// The resource.
    pub resource: ResourceRef,
    /// Its name at the provider.
    pub name: String,
    /// The instant at which this was asked.
    pub now: Timestamp,
    /// When the resource's account was last listed completely, which is how old its tags may be;
    /// null if it never was.
    pub inventory_at: Option<Timestamp>,
    /// Its present phase, whatever instant is explained.
    pub phase: PhaseName,
    /// Its state in a word or two: `running`, `stopping`, `stop stuck`. The reason is in
    /// `needs_person`.
    pub state: String,
    /// When the phase began, as far as the record shows; null if it does not.
    pub since: Option<Timestamp>,
    /// How a stop would stop it, by its schedule's methods, or by the defaults if it follows no
    /// schedule.
    pub method: StopMethod,
    /// The saved state that a start will restore; null if there is none.
    pub saved: Option<SavedState>,
    /// Storage that the latest start could not restore; null if there is none.
    pub lost_storage: Option<LostStorage>,
    /// Number of failures in a row.
    pub attempts: u32,
    /// The latest failure; null if there is none.
    pub last_error: Option<String>,
    /// What only a person can resolve, and how; null if nothing needs a person.
    pub needs_person: Option<String>,
    /// What the machine is recreated from; omitted unless it is or was hibernated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hibernation: Option<Hibernated>,
    /// While the machine is being hibernated or woken: the outcome of the latest request, and what
    /// follows. Omitted otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<[String; 2]>,
    /// What is missing before its schedule may hibernate it; omitted if nothing is, or if its
    /// schedule does not hibernate it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rehearsal: Option<String>,
    /// The chain of reasons.
    #[serde(flatten)]
    pub explanation: Explanation,
    #[serde(skip)]
    zone: TimeZone,
    /// The state, as the beginning of a sentence.
    #[serde(skip)]
    sentence: String,
}

impl Why {
    fn of(
        record: &Record,
        in_force: &InForce,
        at: Timestamp,
        now: Timestamp,
        inventory_at: Option<Timestamp>,
    ) -> Self {
        let rules = in_force.rules();
        let present = judge(record, Subject::recorded(record), rules, now);
        let State { phase, words, since } = State::of(record);
        let zone = schedule_of(record, in_force).map(|schedule| schedule.timezone().clone());
        let zone = zone.unwrap_or(TimeZone::UTC);
        let policy = present.membership.policy(rules.configuration);
        let overdue = overdue(record, rules, in_force.since, now);
        let is_late = || overdue.map(|overdue| is_overdue(record, overdue, &zone, now));
        let method = StopMethod::of(record.kind(), &policy);
        let prices = SnapshotPrices::known(rules.configuration, None);
        let hibernation = Hibernated::of(record, &prices);
        let hibernates = method == StopMethod::Hibernate;
        Self {
            resource: record.reference.clone(),
            name: record.name.clone(),
            now,
            inventory_at,
            phase,
            state: words,
            since,
            method,
            saved: record.saved.clone(),
            lost_storage: record.lost_storage,
            attempts: record.attempts,
            last_error: record.last_error.as_ref().map(Reason::to_string),
            needs_person: needs_person(record, &present, rules, now).or_else(is_late),
            hibernation,
            steps: steps(record, |at| short(at, &zone, now)),
            rehearsal: rehearsal_missing(record).filter(|_| hibernates),
            explanation: explain(record, rules, at),
            zone,
            sentence: sentence(record),
        }
    }
}

#[cfg(test)]
mod tests;
