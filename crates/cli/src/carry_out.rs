//! Issues a stop or start command and follows it until its result is observed.

use std::{collections::BTreeSet, time::Duration};

use domain::{
    ResourceRef,
    activity::{Action, Author},
    decision::{Decision, judge},
    hibernation::AttachmentName,
    invocation::{CommandTarget, Invocation},
    membership::Subject as Judged,
    record::{Direction, Phase, Record, SKEW},
};
use jiff::{SignedDuration, Timestamp};
use lifecycle::{
    Occurrence,
    event::{Course, Event, Subject},
};
use report::problems::reported;

use crate::{
    Exit,
    connection::{Functions, Session},
    context::Context,
    output,
    progress::bars,
    view::{GOES_ON, NOTHING_ASKED, View},
};

/// The interval between two observations while waiting.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// How long to wait for the end at most: longer than any deadline, after which a resource is stuck.
const WAIT_AT_MOST: SignedDuration = SignedDuration::from_mins(45);

/// The same for a rehearsal, whose snapshot takes hours if the disk is large.
const REHEARSAL_AT_MOST: SignedDuration = SignedDuration::from_hours(13);

/// How long dispatch may take to pick up what an invocation left over.
const PICKED_UP_WITHIN: SignedDuration = SignedDuration::from_mins(3);

/// A command to stop or start.
#[derive(Debug, Clone)]
pub(crate) struct Command {
    /// Whether to stop or to start.
    pub direction: Direction,
    /// The resources it applies to.
    pub target: CommandTarget,
    /// Who gives it, and why; `None` to report what would be sent without sending it.
    pub author: Option<Author>,
    /// Whether to follow it until the resources themselves show the target state.
    pub waits: bool,
    /// Whether it is part of a rehearsal: a stop then hibernates even what has not been rehearsed.
    pub rehearsal: bool,
    /// What a start goes without that hibernated machines had.
    pub without: Vec<AttachmentName>,
}

/// Issues the command, shows its progress, and reports how it ended.
pub(crate) async fn carry_out(
    session: &Session,
    command: &Command,
    context: &Context,
) -> anyhow::Result<Exit> {
    let dry_run = command.author.is_none();
    let left = if dry_run { NOTHING_ASKED } else { GOES_ON };
    bars(left);
    let zone = context.zone(&*session.store.in_force().await?.configuration);
    let view = View::of(context.format, zone, true, left);
    let mut pending = PendingCommand {
        session,
        functions: session.functions()?,
        direction: command.direction,
        at_most: if command.rehearsal { REHEARSAL_AT_MOST } else { WAIT_AT_MOST },
        view,
        waits: command.waits && !dry_run,
        asked: BTreeSet::new(),
        needs_person: false,
        failed: false,
    };
    let invocation = Invocation::Command(domain::invocation::Command {
        target: command.target.clone(),
        dry_run,
        by: command.author.as_ref().map(|author| author.by.to_string()),
        // A person may have thought about a question for long.
        given_at: Some(session.present()),
        rehearsal: command.rehearsal && command.direction == Direction::Stop,
        without: command.without.clone(),
    });
    if let Some(author) = &command.author {
        record(session, author, command).await?;
    }
    let report = pending.functions.command(command.direction, invocation);
    let report = report.await?;
    for outcome in &report.outcomes {
        pending.view.answer(outcome)?;
        pending.note(outcome);
    }
    if report.outcomes.is_empty() {
        output::remark("Nothing to do.\n");
    }
    if pending.waits {
        pending.until_seen().await?;
    }
    pending.view.finish();
    Ok(Exit::after(pending.failed, pending.needs_person))
}

/// Adds a command to the activity log, before it is given.
async fn record(session: &Session, author: &Author, command: &Command) -> anyhow::Result<()> {
    for target in command.target.parts() {
        let action = Action::Command { direction: command.direction, target };
        let activity = author.does(action, session.present());
        session.store.record_activity(&activity).await?;
    }
    Ok(())
}

/// A command in progress: what is still pending, and what has been reported so far.
struct PendingCommand<'a> {
    session: &'a Session,
    functions: Functions,
    direction: Direction,
    at_most: SignedDuration,
    view: View,
    /// Whether it is followed until its result is seen.
    waits: bool,
    asked: BTreeSet<ResourceRef>,
    needs_person: bool,
    failed: bool,
}

impl PendingCommand<'_> {
    fn handle_outcome(&mut self, outcome: &Occurrence) -> anyhow::Result<()> {
        self.view.show(outcome)?;
        self.note(outcome);
        Ok(())
    }

    fn note(&mut self, outcome: &Occurrence) {
        let course = outcome.event.class().course;
        self.needs_person |= course == Course::NeedsPerson;
        let Subject::Resource { resource, .. } = &outcome.subject else {
            return;
        };
        // Nothing was done this time, for a reason that may end soon.
        let is_postponed =
            self.waits && matches!(outcome.event, Event::Postponed { token_refused: false, .. });
        match course {
            Course::UnderWay => _ = self.asked.insert(resource.clone()),
            Course::Ended | Course::NeedsPerson => _ = self.asked.remove(resource),
            // It is still due, and is tried again while this command waits.
            Course::NotDone if is_postponed => _ = self.asked.insert(resource.clone()),
            Course::NotDone => self.failed = true,
            Course::Unrelated => {}
        }
    }

    /// Polls until nothing that was requested is in flight any more. On Ctrl-C the work continues
    /// without this process.
    async fn until_seen(&mut self) -> anyhow::Result<()> {
        // The function that handled the command may use a different clock than the store.
        let began = self.session.now - SKEW;
        while !self.asked.is_empty() && self.waited() < self.at_most {
            self.session.wait(LOOK_EVERY).await?;
            self.view.passed(self.session.present());
            let due = self.due().await?;
            for outcome in self.functions.look(self.direction, due).await? {
                self.handle_outcome(&outcome)?;
            }
            self.forget_ended(began).await?;
        }
        self.failed |= !self.asked.is_empty();
        Ok(())
    }

    /// Returns the resources for which a request is due: the latest one was not accepted, or none has
    /// been sent yet.
    async fn due(&self) -> anyhow::Result<Vec<ResourceRef>> {
        if self.functions.lambda().is_some() {
            return Ok(Vec::new());
        }
        let references: Vec<_> = self.asked.iter().cloned().collect();
        let records = self.session.store.records(&references).await?.read;
        let in_force = self.session.store.in_force().await?;
        let (rules, now) = (in_force.rules(), self.session.present());
        let is_due = |record: &Record| {
            let verdict = judge(record, Judged::recorded(record), rules, now);
            let direction = match verdict.decision {
                Decision::Act(due) => Some(due.direction),
                Decision::AskAgain(direction) => Some(direction),
                Decision::Leave(_) => None,
            };
            direction == Some(self.direction) && record.due_at.is_some_and(|at| at <= now)
        };
        let due = records.into_iter().filter(is_due);
        Ok(due.map(|record| record.reference).collect())
    }

    fn waited(&self) -> SignedDuration {
        self.session.present().duration_since(self.session.now)
    }

    /// Learns from the records what other processes have finished (dispatch, or functions at AWS).
    async fn forget_ended(&mut self, began: Timestamp) -> anyhow::Result<()> {
        let references: Vec<_> = self.asked.iter().cloned().collect();
        let found = self.session.store.records(&references).await?;
        for unreadable in &found.unreadable {
            output::warn(unreadable);
            self.failed = true;
            self.asked.retain(|asked| asked.to_string() != unreadable.reference);
        }
        for record in found.read {
            let picked_up = record.handled.as_ref().is_some_and(|handled| {
                handled.key.instant >= began && handled.desired == Some(self.direction.desired())
            });
            let watched = record.watched_until().filter(|_| picked_up);
            match &record.phase {
                Phase::InFlight { .. } if reported(&record).is_none() => {
                    if let Some(until) = watched {
                        let direction = self.direction;
                        let watching = Event::Watching { direction, until };
                        let now = self.session.present();
                        self.handle_outcome(&Occurrence::of(&record, now, watching))?;
                    }
                    continue;
                }
                Phase::InFlight { .. } => self.needs_person = true,
                _ if !picked_up && self.waited() < PICKED_UP_WITHIN => continue,
                Phase::Settled { .. } => self.failed |= !picked_up,
                Phase::Refused { .. } | Phase::Stuck { .. } | Phase::Gone { .. } => {
                    self.needs_person = true;
                }
            }
            self.asked.remove(&record.reference);
        }
        Ok(())
    }
}
