//! A person's stop or start: recorded as an edge first, then carried out like any other.

use std::collections::BTreeSet;

use domain::{
    ResourceRef,
    decision::{Verdict, judge, override_of, pause_of},
    invocation::{Command, CommandTarget, Invocation},
    left_behind::left_behind,
    membership::{Membership, Subject},
    record::{Direction, ManualCommand, Phase, Record, Transition},
    text::in_utc,
};
use jiff::{SignedDuration, Timestamp};
use store::{InForce, ReadItems, StoreError};

use crate::{
    Context, Error,
    account::by_account,
    act::{
        dry_run::dry_run,
        due::{act, act_within},
    },
    budget::Budget,
    event::{Event, HeldResource, Occurrence},
    report::{Report, reread},
};

/// A command older than this is ignored: by now the person has acted in another way.
const STALE_AFTER: SignedDuration = SignedDuration::from_mins(5);

/// Why a command about an unknown resource is not followed.
const NOT_SEEN: &str = "no inventory has seen it: check the reference, or wait five minutes for \
    the next inventory";

/// The author of a command that names none.
const UNNAMED: &str = "a manual invocation";

/// How many times writing the command is tried while others change the record.
const TRIES: usize = 5;

/// Handles one invocation of stop or start.
pub async fn handle(
    context: Context<'_>,
    direction: Direction,
    invocation: Invocation,
) -> Result<Report, Error> {
    match invocation {
        Invocation::Due(resources) => act(context, direction, &resources).await,
        Invocation::Command(command) => self::command(context, direction, &command).await,
    }
}

/// Records the command as an edge of each resource, then carries it out. If the process is lost in
/// between, dispatch finishes the work.
async fn command(
    context: Context<'_>,
    direction: Direction,
    command: &Command,
) -> Result<Report, Error> {
    let budget = Budget::begin(context.clock);
    let now = budget.now();
    let mut report = Report::default();
    if command.given_at.is_some_and(|at| now.duration_since(at) > STALE_AFTER) {
        tracing::warn!("Ignored a command given more than five minutes ago");
        return Ok(report);
    }
    let in_force = context.store.in_force().await?;
    check(&command.target, &in_force)?;
    let found = targets(context, &command.target, &in_force).await?;
    let mut records = report.readable(found);
    leave_held(context, &command.target, &mut records, &mut report);
    for (resource, reason) in missing(&command.target, &records, &report) {
        let missing = Occurrence {
            at: now,
            subject: crate::event::Subject::Resource {
                resource,
                name: String::new(),
                follows: None,
            },
            event: Event::Declined { reason },
        };
        report.answer(context, [missing]);
    }
    let (mut recorded, mut dry) = (Vec::new(), Vec::new());
    for record in records {
        let reference = record.reference.clone();
        let verdict = judge(&record, Subject::recorded(&record), in_force.rules(), now);
        if let Some(reason) = declined(direction, &record, &verdict, &in_force, now) {
            let event = Event::Declined { reason };
            report.answer(context, [Occurrence::of(&record, now, event)]);
        } else if command.dry_run {
            let invocation = context.writer.invocation();
            dry.push(with_command(record, direction, command, invocation, now));
        } else {
            match write(context, record.clone(), direction, command).await? {
                Written::Yes => recorded.push(reference),
                Written::Before => {}
                Written::No => report.answer(context, [not_written(&record, now)]),
            }
        }
    }
    let would = dry_run(budget, context, direction, dry, &in_force).await?;
    report.answer(context, would);
    let acted = act_within(budget, context, direction, &recorded).await?;
    report.outcomes.extend(acted.outcomes);
    report.left_alone.extend(acted.left_alone);
    report_awaiting(context, direction, recorded, &mut report).await?;
    Ok(report)
}

/// Leaves out held resources: only a command that names a resource reaches one.
fn leave_held(
    context: Context<'_>,
    target: &CommandTarget,
    records: &mut Vec<Record>,
    report: &mut Report,
) {
    if matches!(target, CommandTarget::Resources(_)) {
        return;
    }
    for (account, held) in by_account(records.extract_if(.., |record| record.held)) {
        let resources: Vec<_> = held.iter().map(HeldResource::of).collect();
        let count = resources.len();
        let event = Event::Held { count, resources };
        let held = Occurrence::of_account(&account, context.clock.now(), event);
        report.answer(context, [held]);
    }
}

/// Reports what each recorded command waits for, if nothing else was reported about it.
async fn report_awaiting(
    context: Context<'_>,
    direction: Direction,
    mut recorded: Vec<ResourceRef>,
    report: &mut Report,
) -> Result<(), Error> {
    let outcomes = report.outcomes.iter();
    let heard: BTreeSet<_> = outcomes.filter_map(Occurrence::resource).collect();
    recorded.retain(|reference| !heard.contains(reference));
    for record in report.readable(context.store.records(&recorded).await?) {
        let now = context.clock.now();
        let awaiting = awaiting(direction, &record, now);
        report.answer(context, [Occurrence::of(&record, now, awaiting)]);
    }
    Ok(())
}

/// Returns what a command waits for that was recorded but has led to no request yet.
fn awaiting(direction: Direction, record: &Record, now: Timestamp) -> Event {
    let done = match direction {
        Direction::Stop => "stopped",
        Direction::Start => "started",
    };
    let under_way = |transition: &Transition| match transition.direction {
        Direction::Stop => "stopping",
        Direction::Start => "starting",
    };
    if let Some(until) = record.watched_until().filter(|&until| until > now) {
        return Event::Watching { direction, until };
    }
    let reason = match record.in_flight() {
        Some(transition) if transition.direction == direction => {
            format!("it is already {}", under_way(transition))
        }
        Some(transition) => format!(
            "it is still {}; it will be {done} as soon as that is seen",
            under_way(transition)
        ),
        None if record.permit_is_open(now) => {
            format!("a request has just been sent; it will be {done} once its answer is known")
        }
        None => format!("it will be {done} within a minute or two"),
    };
    Event::Awaiting { direction, reason }
}

/// Refuses a command about a schedule or an account that is not configured: a user's rule that
/// misspells one would otherwise seem to work and do nothing.
fn check(target: &CommandTarget, in_force: &InForce) -> Result<(), Error> {
    let configuration = &in_force.configuration;
    match target {
        CommandTarget::Schedule(name) if !configuration.schedules.contains_key(name) => {
            Err(Error::unknown("schedule", name, configuration.schedules.keys()))
        }
        CommandTarget::Account(name) if !configuration.accounts.contains_key(name) => {
            Err(Error::unknown("account", name, configuration.accounts.keys()))
        }
        CommandTarget::Resources(_) | CommandTarget::Schedule(_) | CommandTarget::Account(_) => {
            Ok(())
        }
    }
}

async fn targets(
    context: Context<'_>,
    target: &CommandTarget,
    in_force: &InForce,
) -> Result<ReadItems<Vec<Record>>, Error> {
    let mut found = match target {
        CommandTarget::Resources(references) => {
            return Ok(context.store.records(references).await?);
        }
        CommandTarget::Schedule(_) => {
            context.store.records_of_all(in_force.configuration.accounts.keys()).await?
        }
        CommandTarget::Account(account) => context.store.records_of(account).await?,
    };
    let (rules, now) = (in_force.rules(), context.clock.now());
    let names = |record: &Record| match target {
        CommandTarget::Schedule(name) => record.schedule.as_ref() == Some(name),
        CommandTarget::Account(_) => record.opted_in || left_behind(record, rules, now).is_some(),
        CommandTarget::Resources(_) => false,
    };
    let there = |record: &Record| !matches!(record.phase, Phase::Gone { .. });
    found.read.retain(|record| names(record) && there(record));
    Ok(found)
}

/// Returns the resources named by a command that have no record, or none that can be read, and why
/// nothing is done about them.
fn missing(
    target: &CommandTarget,
    records: &[Record],
    report: &Report,
) -> Vec<(ResourceRef, String)> {
    let CommandTarget::Resources(references) = target else {
        return Vec::new();
    };
    let known = |reference: &&ResourceRef| records.iter().any(|r| r.reference == **reference);
    let why = |reference: &ResourceRef| {
        let named = reference.to_string();
        let left = report.left_alone.iter().find(|l| l.reference == named);
        left.map_or_else(|| NOT_SEEN.to_owned(), |left| left.reason.clone())
    };
    let missing = references.iter().filter(|reference| !known(reference));
    missing.map(|one| (one.clone(), why(one))).collect()
}

/// Returns why a command is not followed, and what to do instead; `None` if it is followed.
fn declined(
    direction: Direction,
    record: &Record,
    verdict: &Verdict,
    in_force: &InForce,
    now: Timestamp,
) -> Option<String> {
    if matches!(record.phase, Phase::Gone { .. }) {
        return Some("it is gone at the provider".to_owned());
    }
    if let Membership::Excluded(exclusion) = &verdict.membership {
        let restores = direction == Direction::Start && record.is_held_stopped();
        if !(restores && exclusion.yields_to_a_start()) {
            return Some(exclusion.to_string());
        }
    }
    if let Some(pause) = pause_of(record, in_force.rules(), direction, now) {
        let resume = format!("`offhours resume{}` ends that", pause.scope.option());
        return Some(format!("{pause}: {resume}"));
    }
    let overridden = override_of(record, in_force.rules(), now);
    if let Some(one) = overridden.as_ref().filter(|one| one.desired != direction.desired()) {
        let until = in_utc(one.ends_at);
        return Some(format!(
            "an override by {} keeps it {} until {until}: clear that first",
            one.by, one.desired
        ));
    }
    // An override for the same state keeps the schedule from undoing the command.
    let undone =
        overridden.is_none() && verdict.membership.policy(in_force.rules().configuration).enforce;
    undone
        .then(|| "its schedule is enforced and would undo this: use an override instead".to_owned())
}

/// Reports a command that was given up: its record changed at every try, or no longer exists.
fn not_written(record: &Record, now: Timestamp) -> Occurrence {
    let reason = "its record changed at every try: give the command again".to_owned();
    Occurrence::of(record, now, Event::Declined { reason })
}

/// The result of writing a command.
enum Written {
    Yes,
    /// The event of this invocation had been delivered before.
    Before,
    /// Others wrote each time, or the record was deleted.
    No,
}

async fn write(
    context: Context<'_>,
    record: Record,
    direction: Direction,
    command: &Command,
) -> Result<Written, Error> {
    let reference = record.reference.clone();
    let mut base = Some(record);
    for tried in 0..TRIES {
        let Some(record) = base else {
            return Ok(Written::No);
        };
        let known = record.manual_command.as_ref();
        if known.is_some_and(|manual| manual.knows(context.writer.invocation())) {
            // If this is not the first try, only the answer to our own write was lost.
            return Ok(if tried > 0 { Written::Yes } else { Written::Before });
        }
        let commanded = with_command(
            record,
            direction,
            command,
            context.writer.invocation(),
            context.clock.now(),
        );
        match context.store.save(commanded).await {
            Ok(_) => return Ok(Written::Yes),
            Err(StoreError::Stale { .. }) => base = reread(context.store, &reference).await?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Written::No)
}

/// Returns the record with the command in it. The same invocation twice is one command.
fn with_command(
    mut record: Record,
    direction: Direction,
    command: &Command,
    invocation: &str,
    now: Timestamp,
) -> Record {
    // A person's word counts now, whatever a clock that was wrong has handled.
    if record.handled_ahead(now).is_some() {
        record.handled = None;
    }
    let handled = record.handled.as_ref().map(|handled| handled.key.instant);
    let after_handled = handled.map(|at| at + SignedDuration::from_millis(1));
    let before = record.manual_command.take();
    record.manual_command = Some(ManualCommand {
        instant: after_handled.map_or(now, |at| at.max(now)),
        desired: direction.desired(),
        by: command.by.clone().unwrap_or_else(|| UNNAMED.to_owned()),
        request_id: invocation.to_owned(),
        earlier: before.map(|before| before.invocations()).unwrap_or_default(),
        rehearsal: command.rehearsal && direction == Direction::Stop,
    });
    record.due_at = Some(now);
    record.retry_at = None;
    for name in &command.without {
        record.waive(name);
    }
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::hibernation::{Attachment, Hibernation};
    use transition::tests::{at, droplet};

    fn command(record: &Record) -> Command {
        Command {
            target: CommandTarget::Resources(vec![record.reference.clone()]),
            by: None,
            given_at: None,
            dry_run: false,
            rehearsal: false,
            without: Vec::new(),
        }
    }

    #[test]
    fn a_command_does_not_wait_for_the_back_off_of_an_earlier_failure() {
        let failing = droplet().record(|record| {
            record.retry_at = Some(at("19:15"));
            record.due_at = Some(at("19:15"));
        });
        let command = command(&failing.record);
        let record = with_command(failing.record, Direction::Stop, &command, "us", at("19:05"));
        assert_eq!((record.due_at, record.retry_at), (Some(at("19:05")), None));
    }

    #[test]
    fn a_machine_lacks_nothing_once_people_go_without_all_that_it_lacked() {
        let refused = ["blue", "green"].map(|id| Attachment::Project(id.to_owned()));
        let lacking = droplet().record(|record| {
            let mut kept = Hibernation::of(record.reference.id.clone());
            kept.refused = refused.to_vec();
            kept.incomplete = true;
            kept.problem = Some("it runs without both".to_owned());
            record.hibernation = Some(Box::new(kept));
        });
        let mut record = lacking.record;
        for (given_up, is_incomplete) in refused.iter().zip([true, false]) {
            let command = Command { without: vec![given_up.name()], ..command(&record) };
            record = with_command(record, Direction::Start, &command, "us", at("08:05"));
            let kept = record.hibernation.as_deref().unwrap();
            assert_eq!((kept.incomplete, kept.problem.is_some()), (is_incomplete, is_incomplete));
        }
    }
}
