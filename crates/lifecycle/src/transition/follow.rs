//! Following a transition: what a look means for one that is under way, or stuck.

use domain::{
    ResourceKind,
    configuration::Mode,
    decision::{Decision, LeaveReason, due_at, judge, mode},
    history::HistoryEntry,
    membership::Subject,
    record::{
        Ask, Cause, Direction, Ending, Forced, LOOK_AGE, PERMIT, Part, Phase, Record, Request,
        Transition,
    },
    resource::{ActionState, Power, Resource},
};
use jiff::{SignedDuration, Timestamp};

use crate::{
    backoff,
    event::Event,
    transition::{
        answer::note_accepted,
        log::{is_opposed, our_action},
        method::{self, graceful::may_be_forced},
        step::{Observation, PlanContext, Write},
    },
};

/// For how long after a request a machine's log is not worth reading: its effect is on its way.
const LOG_PATIENCE: SignedDuration = SignedDuration::from_secs(30);

/// From the first 404 to *gone*: the second must come from another tick, and a tick looks for about
/// this long.
const MISSING_FOR: SignedDuration = SignedDuration::from_secs(50);

/// What following a transition leads to.
#[derive(Debug)]
pub(crate) enum Follow {
    /// Still under way.
    Wait,
    /// Something is to be recorded; the transition may have ended by it.
    Write(Box<Write>),
    /// The hard cut is due: stop is asked to look again and force.
    Force,
}

/// Whether the machine's log can show something that its status does not.
pub(crate) fn needs_log(record: &Record, resource: &Resource, now: Timestamp) -> bool {
    let Some(transition) = record.in_flight() else {
        return false;
    };
    let request = record.request.as_ref();
    let is_there = match request {
        Some(request) if request.part != Part::Whole => method::is_done(request, resource, record),
        Some(_) | None => resource.power == transition.direction.end(),
    };
    let patient =
        request.is_none_or(|request| now.duration_since(request.asked_at) >= LOG_PATIENCE);
    let wanted = !is_there && patient || is_started_small(record, resource);
    !record.kind().is_sized() && resource.busy.is_none() && wanted
}

/// Whether a Droplet runs that a stop has just moved. It stays off while it is moved, so that a
/// person may have started it; a server is started by the change of its type itself.
fn is_started_small(record: &Record, resource: &Resource) -> bool {
    let request = record.request.as_ref();
    let moved = request.is_some_and(|request| {
        request.part == Part::Shrink && method::is_done(request, resource, record)
    });
    moved && record.kind() == ResourceKind::Droplet && resource.power == Power::Running
}

/// The first that fits, for a record that is in flight or stuck.
pub(crate) fn follow(record: &Record, seen: Observation<'_>, context: PlanContext<'_>) -> Follow {
    let now = context.now;
    let transition = match &record.phase {
        Phase::InFlight { transition } | Phase::Stuck { transition, .. } => transition,
        Phase::Settled { .. } | Phase::Refused { .. } | Phase::Gone { .. } => return Follow::Wait,
    };
    let too_old = now.duration_since(seen.requested_at) > LOOK_AGE;
    if too_old || record.permit_is_open(now) {
        return Follow::Wait;
    }
    let follower = Follower {
        record,
        transition,
        seen,
        context,
    };
    let resource = seen.resource;
    let request = record.request.as_ref();
    let asked = request.and_then(|request| request.target.as_ref());
    let target = transition.target.as_ref().or(asked);
    let done = request
        .filter(|request| resource.busy.is_none() && method::is_done(request, resource, record));
    let is_small = done.is_some_and(|request| request.part == Part::OnSmall);
    let is_idle = resource.busy.is_none();
    if is_idle && method::reached(transition.direction, resource, record, target) || is_small {
        let early = record
            .not_before()
            .is_some_and(|until| seen.requested_at < until);
        return if early {
            follower.watched()
        } else {
            follower.settle()
        };
    }
    if let Some(request) = done
        && request.part != Part::Whole
        && !matches!(request.ask, Ask::Done { .. })
    {
        return if is_opposed(record, seen.log) {
            follower.overtaken()
        } else {
            follower.part_done()
        };
    }
    if matches!(record.phase, Phase::Stuck { .. }) {
        return follower.observed();
    }
    if let Some(request) = request
        && matches!(request.ask, Ask::Open)
        && method::is_moving(resource, asked)
    {
        let mut record = follower.with_observation();
        note_accepted(&mut record, None, now);
        return follower.write(record, None, Vec::new());
    }
    if let Some(why) = &resource.busy {
        return follower.busy(why);
    }
    follower.idle_elsewhere()
}

/// A 404 of the Status operation: the first is noted, a second in a later tick means *gone*.
pub(crate) fn missing(record: &Record, context: PlanContext<'_>) -> Follow {
    let now = context.now;
    if record.permit_is_open(now) || matches!(record.phase, Phase::Gone { .. }) {
        return Follow::Wait;
    }
    let mut next = record.clone();
    let Some(since) = record.missing_since else {
        next.missing_since = Some(now);
        return write(next, None, Vec::new(), context);
    };
    if now.duration_since(since) < MISSING_FOR {
        return Follow::Wait;
    }
    let ended = match &record.phase {
        Phase::InFlight { transition }
        | Phase::Stuck { transition, .. }
        | Phase::Refused { transition, .. } => {
            Some(HistoryEntry::of(record, transition, Ending::Gone, now))
        }
        // What was owed is known from history, though no transition is under way.
        Phase::Settled { .. } if record.saved.is_some() => {
            let cause = Cause::Schedule;
            Some(HistoryEntry::unasked(record, cause, Ending::Gone, now))
        }
        Phase::Settled { .. } | Phase::Gone { .. } => None,
    };
    if matches!(record.phase, Phase::InFlight { .. } | Phase::Stuck { .. }) {
        next.last = ended.as_ref().and_then(|ended| ended.last(record));
    }
    next.phase = Phase::Gone { since: now };
    next.drop_request();
    next.opted_in = false;
    let saved = next.saved.clone();
    write(next, ended, vec![Event::Gone { saved }], context)
}

struct Follower<'a> {
    record: &'a Record,
    transition: &'a Transition,
    seen: Observation<'a>,
    context: PlanContext<'a>,
}

impl Follower<'_> {
    /// Neither at the end nor busy.
    fn idle_elsewhere(&self) -> Follow {
        let now = self.context.now;
        let direction = self.transition.direction;
        let request = self.record.request.as_ref();
        let opposed = is_opposed(self.record, self.seen.log);
        if opposed || method::is_resized(self.seen.resource, self.record) {
            return self.overtaken();
        }
        if let Some(request) = request
            && let Some(follow) = self.by_the_log(request)
        {
            return follow;
        }
        let subject = Subject::seen(self.record, self.seen.resource);
        let verdict = judge(self.record, subject, self.context.rules, now);
        let policy = verdict.membership.policy(self.context.rules.configuration);
        let mode = mode(self.record, &policy, self.context.rules.configuration);
        // Nothing is asked for any more: what cannot act any more is left where it stands.
        let wanted = verdict.opted_in && verdict.desired.is_some() && mode == Mode::Act;
        if !wanted {
            let accepted =
                request.is_some_and(|request| matches!(request.ask, Ask::Accepted { .. }));
            let quiet = request.is_none_or(|request| {
                !request.may_act() || request.quiet_at(self.record.kind()) <= now
            });
            let watching = self.record.not_before().is_some_and(|until| now < until);
            if quiet && !watching {
                let cause = Some(self.cause());
                return self.end(Ending::LetGo, Event::LetGo { direction, cause });
            }
            if !verdict.opted_in || !accepted {
                return self.observed();
            }
        }
        let forceable = verdict.desired == Some(direction.desired())
            && verdict.decision == Decision::Leave(LeaveReason::Handled)
            && mode == Mode::Act
            && may_be_forced(self.record, self.seen.resource, self.seen.log, now);
        if forceable {
            return if policy.force {
                Follow::Force
            } else {
                let reason = "the guest did not react within 60 s, and force = false";
                self.stuck(self.with_observation(), reason.to_owned())
            };
        }
        let deadline = self.deadline();
        match request.map(|request| &request.ask) {
            Some(Ask::Accepted { at, .. }) if now >= *at + deadline => {
                let minutes = deadline.as_mins();
                let reason = format!("accepted, and not seen within {minutes} minutes");
                self.stuck(self.with_observation(), reason)
            }
            Some(Ask::Accepted { .. } | Ask::Open | Ask::Failed { .. } | Ask::Done { .. })
            | None => self.observed(),
        }
    }

    /// A person did the opposite meanwhile.
    fn overtaken(&self) -> Follow {
        let direction = self.transition.direction;
        let cause = Some(self.cause());
        self.end(Ending::Overtaken, Event::Overtaken { direction, cause })
    }

    /// Not to be changed now: locked, or of unknown state. A cloud is waited for, for it says that
    /// it works; the state of a machine over SSH may stay unknown for good.
    fn busy(&self, why: &str) -> Follow {
        let request = self.record.request.as_ref();
        let from = request.and_then(|request| match request.ask {
            Ask::Accepted { at, .. } => Some(at),
            Ask::Open => Some(request.asked_at + PERMIT),
            Ask::Failed { .. } | Ask::Done { .. } => None,
        });
        let late = from.is_some_and(|from| self.context.now >= from + self.deadline());
        if self.record.kind() == ResourceKind::Machine && late {
            return self.stuck(self.with_observation(), format!("not seen: {why}"));
        }
        self.observed()
    }

    /// How long its request may take to show its effect.
    fn deadline(&self) -> SignedDuration {
        let request = self.record.request.as_ref();
        let kind = self.record.kind();
        request.map_or(SignedDuration::ZERO, |request| request.deadline(kind))
    }

    /// A request whose answer was lost, or whose action failed.
    fn by_the_log(&self, request: &Request) -> Option<Follow> {
        let now = self.context.now;
        match &request.ask {
            Ask::Accepted {
                action: Some(ours), ..
            } => {
                let failed = self
                    .seen
                    .log
                    .iter()
                    .any(|action| action.id == *ours && action.state == ActionState::Failed);
                failed.then(|| self.errored(request.first_accepted_at))
            }
            Ask::Open => our_action(self.seen.log, request).map(|ours| {
                let mut record = self.with_observation();
                note_accepted(&mut record, Some(ours.id), now);
                self.write(record, None, Vec::new())
            }),
            Ask::Accepted { action: None, .. } | Ask::Failed { .. } | Ask::Done { .. } => None,
        }
    }

    /// The accepted request's action ended in an error: it is asked for again after a while. From
    /// the deadline on a stop is stuck, and a start needs a person.
    fn errored(&self, first_accepted_at: Option<Timestamp>) -> Follow {
        let now = self.context.now;
        let direction = self.transition.direction;
        let mut record = self.with_observation();
        record.attempts += 1;
        let retry_at = backoff::retry_at(now, record.attempts, None);
        let past_deadline = first_accepted_at.is_some_and(|at| now >= at + self.deadline());
        let reason = match record.attempts {
            1 => "the provider's action ended in an error".to_owned(),
            times => format!("the provider's action ended in an error {times} times"),
        };
        record.last_error = Some(reason.as_str().into());
        let mut reported = false;
        if let Some(request) = &mut record.request {
            request.ask = Ask::Failed { retry_at };
            request.unknown = false;
            if past_deadline && direction == Direction::Start {
                reported = request.problem.replace(reason.as_str().into()).is_some();
            }
        }
        match (past_deadline, direction) {
            (true, Direction::Stop) => self.stuck(record, reason),
            (true, Direction::Start) if !reported => {
                let cause = Some(self.cause());
                let stuck = Event::Stuck {
                    direction,
                    cause,
                    reason,
                };
                self.write(record, None, vec![stuck])
            }
            (true, Direction::Start) | (false, _) => self.write(record, None, Vec::new()),
        }
    }

    /// A part of the transition is done: what comes next is read off the next look.
    fn part_done(&self) -> Follow {
        let mut record = self.with_observation();
        let mut transition = self.transition.clone();
        record.used = self.record.may_have_shrunk();
        if let Some(request) = &mut record.request {
            transition.forced |= request.forced == Forced::Accepted;
            request.forced = Forced::No;
            request.problem = None;
            request.ask = Ask::Done {
                at: self.seen.requested_at,
            };
        }
        record.phase = Phase::InFlight { transition };
        record.attempts = 0;
        record.last_error = None;
        self.write(record, None, Vec::new())
    }

    fn settle(&self) -> Follow {
        let now = self.context.now;
        let direction = self.transition.direction;
        let mut ended = self.ended(Ending::Seen);
        let put_back = (!self.is_small()).then_some(&self.record.saved);
        if let (None, Some(saved)) = (put_back, &self.record.saved) {
            ended.reason = Some(format!("on its small plan: {saved} was not to be had"));
        }
        let saved = put_back.and_then(Option::as_ref);
        let saved = saved.filter(|_| direction == Direction::Start);
        let seen = method::size_of(self.seen.resource, self.record);
        let lost_storage = saved
            .zip(seen)
            .and_then(|(saved, seen)| saved.lost_storage_in(&seen));
        let event = Event::Seen {
            direction,
            cause: Some(self.cause()),
            seconds: now.duration_since(self.transition.claimed_at).as_secs(),
            forced: ended.forced,
            method: ended.method,
            saved: put_back.cloned().flatten(),
            lost_storage,
        };
        let mut record = self.with_observation();
        record.last = ended.last(self.record);
        record.phase = Phase::Settled {
            at: direction.end(),
        };
        record.drop_request();
        record.retry_at = None;
        record.attempts = 0;
        record.last_error = None;
        match direction {
            // On the small plan it runs, and is still owed its own.
            Direction::Start if self.is_small() => {
                record.used = true;
                record.last_error.clone_from(&self.record.last_error);
            }
            Direction::Start => {
                record.clear_saved();
                // The next stop would not be undone either.
                record.held |= lost_storage.is_some();
                record.lost_storage = lost_storage;
            }
            Direction::Stop => record.used |= record.saved.is_some(),
        }
        self.write(record, Some(ended), vec![event])
    }

    /// Whether a start has given its saved plan up for now.
    fn is_small(&self) -> bool {
        let request = self.record.request.as_ref();
        request.is_some_and(|request| request.part == Part::OnSmall)
    }

    /// Ends the transition where the resource stands. What was asked, and what is saved, stays.
    fn end(&self, ending: Ending, event: Event) -> Follow {
        let ended = self.ended(ending);
        let mut record = self.with_observation();
        record.last = ended.last(self.record);
        record.phase = Phase::Settled {
            at: method::standing(self.seen.resource, &record).unwrap_or(self.seen.resource.power),
        };
        if ending == Ending::LetGo {
            record.drop_request();
        }
        self.write(record, Some(ended), vec![event])
    }

    fn stuck(&self, mut record: Record, reason: String) -> Follow {
        record.last_error = Some(reason.as_str().into());
        record.last = self.ended(Ending::Stuck).last(self.record);
        record.phase = Phase::Stuck {
            transition: self.transition.clone(),
            since: self.context.now,
            reason: reason.clone(),
        };
        let stuck = Event::Stuck {
            direction: self.transition.direction,
            cause: Some(self.cause()),
            reason,
        };
        self.write(record, None, vec![stuck])
    }

    fn cause(&self) -> Cause {
        self.transition.cause.clone()
    }

    fn ended(&self, ending: Ending) -> HistoryEntry {
        HistoryEntry {
            seen: method::size_of(self.seen.resource, self.record),
            ..HistoryEntry::of(self.record, self.transition, ending, self.context.now)
        }
    }

    /// At the end, but too early to settle: reported when the look is the first to show it.
    fn watched(&self) -> Follow {
        let record = self.with_observation();
        if record == *self.record {
            return Follow::Wait;
        }
        let direction = self.transition.direction;
        let watching = record
            .watched_until()
            .map(|until| Event::Watching { direction, until });
        self.write(record, None, watching.into_iter().collect())
    }

    /// Nothing new but perhaps what the look shows.
    fn observed(&self) -> Follow {
        let record = self.with_observation();
        if record == *self.record {
            return Follow::Wait;
        }
        self.write(record, None, Vec::new())
    }

    fn with_observation(&self) -> Record {
        let mut record = self.record.clone();
        record.observe(self.seen.recorded(&record));
        record.missing_since = None;
        record
    }

    fn write(&self, record: Record, history: Option<HistoryEntry>, events: Vec<Event>) -> Follow {
        write(record, history, events, self.context)
    }
}

fn write(
    mut record: Record,
    history: Option<HistoryEntry>,
    events: Vec<Event>,
    context: PlanContext<'_>,
) -> Follow {
    record.due_at = due_at(&record, context.rules, context.now);
    Follow::Write(Box::new(Write {
        record,
        history,
        events,
    }))
}
