//! Following a transition: what a look means for one that is in flight, or stuck.

use domain::{
    ResourceKind,
    configuration::Mode,
    decision::{Decision, LeaveReason, due_at, judge, mode, pause_ended},
    history::HistoryEntry,
    membership::{Membership, Subject},
    record::{
        Ask, Cause, Direction, Ending, Forced, LOOK_AGE, PERMIT, Phase, Record, Request, Transition,
    },
    resource::{ActionState, Power},
    schedule::Desired,
    step::Step,
    stop_method::StopMethod,
};
use jiff::{SignedDuration, Timestamp};

use crate::{
    answer::note_accepted,
    backoff,
    event::Event,
    log::{is_opposed, our_action},
    methods::{self, Method, Next, Outcome, Reads, Sighted},
    view::{Observation, PlanContext, View, Write},
};

/// For how long after a request a machine's log is not worth reading: the effect is on its way.
const LOG_PATIENCE: SignedDuration = SignedDuration::from_secs(30);

/// From the first 404 to *gone*: the second must come from another tick, and a tick looks for about
/// this long.
const MISSING_FOR: SignedDuration = SignedDuration::from_secs(50);

/// What following a transition leads to.
#[derive(Debug)]
pub enum Follow {
    /// Still under way.
    Wait,
    /// Something has to be recorded; the transition may have ended.
    Write(Box<Write>),
    /// The hard cut is due: stop is invoked to look again and force.
    Force,
}

/// Reports whether the machine's log can show something that its status does not.
#[must_use]
pub fn needs_log(record: &Record, seen: Observation<'_>, now: Timestamp) -> bool {
    let Some(transition) = record.in_flight() else {
        return false;
    };
    let resource = seen.resource;
    if let Some(sight) = seen.sight {
        // What was done to the machine since its snapshot was begun shows only in the log.
        return sight.machine.is_some();
    }
    let request = record.request.as_ref();
    let is_there = match request {
        Some(request) => methods::is_done(record, resource, request),
        None => resource.power == transition.direction.target_state(),
    };
    let wanted = !is_there && is_patient(record, now) || is_started_small(record, seen);
    !record.kind().is_sized() && resource.busy.is_none() && wanted
}

/// Returns what is read to follow a transition, besides the resource. [`needs_log`] says whether the
/// log is still worth reading once the resource is seen.
#[must_use]
pub fn reads(record: &Record, now: Timestamp) -> Reads {
    let own = Reads::of(record);
    let moves = record.request.as_ref().is_some_and(Request::is_shrink);
    let wanted = own.sight == Sighted::Always || is_patient(record, now) || moves;
    let transition = record.in_flight().filter(|_| wanted);
    Reads { log: transition.and_then(|now| methods::rules(now.method).log_from(record)), ..own }
}

/// Reports whether the latest request was sent so long ago that its effect should show.
fn is_patient(record: &Record, now: Timestamp) -> bool {
    let request = record.request.as_ref();
    request.is_none_or(|request| now.duration_since(request.asked_at) >= LOG_PATIENCE)
}

/// Reports whether a machine runs that a stop has just moved, though its cloud leaves it off: a person
/// may have started it.
fn is_started_small(record: &Record, seen: Observation<'_>) -> bool {
    let request = record.request.as_ref();
    let moved = request.is_some_and(|request| {
        request.is_shrink() && methods::is_done(record, seen.resource, request)
    });
    let cloud = record.kind().cloud_facts();
    let stays_off = cloud.is_some_and(|cloud| !cloud.starts_what_it_moves);
    moved && stays_off && seen.resource.power == Power::Running
}

/// Applies the first rule that fits to a record that is in flight or stuck.
#[must_use]
pub fn follow(record: &Record, seen: Observation<'_>, context: PlanContext<'_>) -> Follow {
    let now = context.now;
    let transition = match &record.phase {
        Phase::InFlight { transition } | Phase::Stuck { transition, .. } => transition,
        Phase::Settled { .. } | Phase::Refused { .. } | Phase::Gone { .. } => return Follow::Wait,
    };
    let too_old = now.duration_since(seen.requested_at) > LOOK_AGE;
    if too_old || record.permit_is_open(now) {
        return Follow::Wait;
    }
    let tagged = record.with_until_tags_of(seen.resource, now);
    let record = tagged.as_ref().unwrap_or(record);
    let configuration = context.rules.configuration;
    let membership = Membership::of(Subject::seen(record, seen.resource), configuration);
    let policy = membership.policy(configuration);
    let view = View::new(record, seen, &policy, context);
    let follower = Follower { transition, view };
    let resource = seen.resource;
    let request = record.request.as_ref();
    let asked = request.and_then(|request| request.step.target());
    let target = asked.or(transition.target.as_ref());
    if let Some(adopted) = methods::adopted(record, seen) {
        return follower.write(adopted, None, Vec::new());
    }
    let is_idle = resource.busy.is_none();
    let done = request.filter(|request| is_idle && methods::is_done(record, resource, request));
    let is_small = done.is_some_and(|request| request.step == Step::On { small: true });
    let rules = methods::rules(transition.method);
    let reached = rules.reached(view, transition.direction, target);
    if is_idle && reached || is_small {
        let early = record.not_before().is_some_and(|until| seen.requested_at < until);
        return if early { follower.watched() } else { follower.settle() };
    }
    if let Some(follow) = follower.by_its_method() {
        return follow;
    }
    if let Some(request) = done
        && transition.method.has_parts()
        && !matches!(request.ask, Ask::Done { .. })
    {
        return if is_opposed(record, seen.log) {
            follower.overtaken()
        } else {
            follower.step_done()
        };
    }
    if matches!(record.phase, Phase::Stuck { .. }) {
        return follower.observed();
    }
    if let Some(request) = request
        && matches!(request.ask, Ask::Open)
        && methods::is_moving(resource, asked)
    {
        let mut record = follower.with_observation();
        note_accepted(&mut record, None, now);
        return follower.write(record, None, Vec::new());
    }
    if let Some(why) = &resource.busy {
        return follower.busy(&why.to_string());
    }
    follower.idle_elsewhere()
}

/// Records the first 404 of the Status operation. Only an inventory concludes anything from it.
#[must_use]
pub fn missing(record: &Record, context: PlanContext<'_>) -> Follow {
    let known = record.missing_since.is_some() || matches!(record.phase, Phase::Gone { .. });
    if known || record.permit_is_open(context.now) {
        return Follow::Wait;
    }
    let mut next = record.clone();
    next.missing_since = Some(context.now);
    write(next, None, Vec::new(), context)
}

/// Handles a 404 of the Status operation in an inventory that does not list the resource: after
/// another one in an earlier tick, the resource is *gone*.
#[must_use]
pub fn unlisted(record: &Record, context: PlanContext<'_>) -> Follow {
    let now = context.now;
    let Some(since) = record.missing_since else {
        return missing(record, context);
    };
    let is_gone = matches!(record.phase, Phase::Gone { .. });
    if is_gone || record.permit_is_open(now) || now.duration_since(since) < MISSING_FOR {
        return Follow::Wait;
    }
    let mut next = record.clone();
    let ended = match &record.phase {
        Phase::InFlight { transition }
        | Phase::Stuck { transition, .. }
        | Phase::Refused { transition, .. } => {
            Some(HistoryEntry::of(record, transition, Ending::Gone, now))
        }
        // History keeps what was owed, though no transition is under way.
        Phase::Settled { .. } if record.saved.is_some() => {
            let cause = Cause::Schedule;
            Some(HistoryEntry::unasked(record, cause, Ending::Gone, now))
        }
        Phase::Settled { .. } | Phase::Gone { .. } => None,
    };
    if matches!(record.phase, Phase::InFlight { .. } | Phase::Stuck { .. }) {
        next.last = ended.as_ref().and_then(|ended| ended.last(record));
        // Its edge was not carried out, and is decided again if the resource is seen again.
        next.handled = None;
    }
    next.phase = Phase::Gone { since: now };
    next.drop_request();
    next.opted_in = false;
    let saved = next.saved.clone();
    write(next, ended, vec![Event::Gone { saved }], context)
}

struct Follower<'a> {
    transition: &'a Transition,
    view: View<'a>,
}

impl Follower<'_> {
    /// Handles a resource that is neither in its target state nor busy.
    fn idle_elsewhere(&self) -> Follow {
        let now = self.view.now;
        let direction = self.transition.direction;
        let request = self.view.record.request.as_ref();
        let opposed = is_opposed(self.view.record, self.view.seen.log);
        if opposed || methods::is_resized(self.view.seen.resource, self.view.record) {
            return self.overtaken();
        }
        if let Some(request) = request
            && let Some(follow) = self.by_the_log(request)
        {
            return follow;
        }
        let subject = Subject::seen(self.view.record, self.view.seen.resource);
        let verdict = judge(self.view.record, subject, self.view.rules, now);
        let policy = self.view.policy;
        let mode = mode(self.view.record, policy, self.view.rules.configuration);
        // Nothing is asked for any more: what can no longer act is left where it stands.
        let wanted = verdict.opted_in && verdict.desired.is_some() && mode == Mode::Act;
        if !wanted {
            let accepted =
                request.is_some_and(|request| matches!(request.ask, Ask::Accepted { .. }));
            let quiet = request.is_none_or(|request| {
                !request.may_act() || request.quiet_at(self.view.record.kind()) <= now
            });
            let watching = self.view.record.not_before().is_some_and(|until| now < until);
            if quiet && !watching {
                let cause = Some(self.cause());
                return self.end(Ending::Released, Event::LetGo { direction, cause });
            }
            if !verdict.opted_in || !accepted {
                return self.observed();
            }
        }
        let forceable = verdict.desired == Some(direction.desired())
            && verdict.decision == Decision::Leave(LeaveReason::Handled)
            && mode == Mode::Act
            && methods::may_be_forced(self.view);
        if forceable {
            return if policy.force {
                Follow::Force
            } else {
                let reason = "the guest did not react within 60 s, and force = false";
                self.stuck(self.with_observation(), reason.to_owned())
            };
        }
        let is_paused = matches!(verdict.decision, Decision::Leave(LeaveReason::Paused(_)));
        let awaits_cut = request
            .is_some_and(|request| request.is_graceful() && request.forced != Forced::Accepted);
        if is_paused && awaits_cut {
            // Its deadline is for the cut, too.
            return self.observed();
        }
        let deadline = self.deadline();
        // The cut is a request of its own.
        let asked_at = request.map_or(now, |request| request.asked_at);
        match request.map(|request| &request.ask) {
            Some(Ask::Accepted { at, .. }) if now >= asked_at.max(*at) + deadline => {
                let minutes = deadline.as_mins();
                self.no_effect_in_time(format!("accepted, and not seen within {minutes} minutes"))
            }
            // A command over SSH that ends without a clear answer is not run all night.
            Some(Ask::Open) if self.is_vague() && !is_paused => {
                let minutes = deadline.as_mins();
                let reason = format!("no clear answer to its command within {minutes} minutes");
                self.stuck(self.with_observation(), reason)
            }
            Some(Ask::Accepted { .. } | Ask::Open | Ask::Failed { .. } | Ask::Done { .. })
            | None => self.observed(),
        }
    }

    /// Reports whether a stop over SSH has been repeated until its deadline without a clear answer.
    fn is_vague(&self) -> bool {
        let is_stop = self.transition.direction == Direction::Stop;
        let (record, now) = (self.view.record, self.view.now);
        let paused = pause_ended(record, self.view.rules, self.transition.direction, now);
        // It was not repeated while it was paused.
        let from =
            paused.map_or(self.transition.claimed_at, |at| at.max(self.transition.claimed_at));
        let over = from + PERMIT + self.deadline();
        is_stop && record.kind() == ResourceKind::Machine && now >= over
    }

    /// Ends the transition because a person did the opposite meanwhile.
    fn overtaken(&self) -> Follow {
        let direction = self.transition.direction;
        let cause = Some(self.cause());
        self.end(Ending::Superseded, Event::Overtaken { direction, cause })
    }

    /// Handles a resource that must not be changed now: locked, or of unknown state. A cloud is
    /// waited for, since it says that it works; a machine over SSH may stay unknown for good.
    fn busy(&self, why: &str) -> Follow {
        let request = self.view.record.request.as_ref();
        let from = request.and_then(|request| match request.ask {
            Ask::Accepted { at, .. } => Some(at),
            Ask::Open => Some(request.asked_at + PERMIT),
            Ask::Failed { .. } | Ask::Done { .. } => None,
        });
        let late = from.is_some_and(|from| self.view.now >= from + self.deadline());
        if self.view.record.kind() == ResourceKind::Machine && late {
            return self.no_effect_in_time(format!("not seen: {why}"));
        }
        self.observed()
    }

    /// Returns how long its request may take to show its effect.
    fn deadline(&self) -> SignedDuration {
        let request = self.view.record.request.as_ref();
        let kind = self.view.record.kind();
        request.map_or(SignedDuration::ZERO, |request| request.deadline(kind))
    }

    /// Handles a request whose answer was lost, or whose action failed.
    fn by_the_log(&self, request: &Request) -> Option<Follow> {
        let now = self.view.now;
        match &request.ask {
            // A shutdown that failed is followed by the cut, like one that was ignored.
            Ask::Accepted { .. }
                if self.view.policy.force && methods::has_cut(self.view, request) =>
            {
                None
            }
            Ask::Accepted { action: Some(ours), .. } => {
                let failed = self
                    .view
                    .seen
                    .log
                    .iter()
                    .any(|action| action.id == *ours && action.state == ActionState::Failed);
                failed.then(|| self.errored(request.first_accepted_at))
            }
            Ask::Open => our_action(self.view.seen.log, request).map(|ours| {
                let mut record = self.with_observation();
                note_accepted(&mut record, Some(ours.id), now);
                self.write(record, None, Vec::new())
            }),
            Ask::Accepted { action: None, .. } | Ask::Failed { .. } | Ask::Done { .. } => None,
        }
    }

    /// Handles an accepted request whose action ended in an error: it is sent again after a while.
    /// From the deadline on a stop is stuck, and a start needs a person.
    fn errored(&self, first_accepted_at: Option<Timestamp>) -> Follow {
        let now = self.view.now;
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
            request.earlier_unanswered = false;
            if self.transition.was_running && request.step.moves() {
                request.ask = Ask::Failed { retry_at: now };
            }
            if past_deadline && direction == Direction::Start {
                reported = request.problem.replace(reason.as_str().into()).is_some();
            }
        }
        match (past_deadline, direction) {
            (true, Direction::Stop) => self.stuck(record, reason),
            (true, Direction::Start) if !reported => {
                let cause = Some(self.cause());
                let stuck = Event::Stuck { direction, cause, reason };
                self.write(record, None, vec![stuck])
            }
            (true, Direction::Start) | (false, _) => self.write(record, None, Vec::new()),
        }
    }

    /// Handles a request whose effect is not seen in time. A stop is stuck; a start is sent again after
    /// a while and needs a person meanwhile: a machine that stays off all day costs more than a request.
    fn no_effect_in_time(&self, reason: String) -> Follow {
        if self.transition.direction == Direction::Stop {
            return self.stuck(self.with_observation(), reason);
        }
        let mut record = self.failed(&reason);
        if let Some(request) = &mut record.request {
            // It may still take effect.
            request.earlier_unanswered = true;
        }
        let stuck = self.report_problem(&mut record, &reason);
        self.write(record, None, stuck.into_iter().collect())
    }

    /// Handles what its method alone can tell: the last request may have to be resolved before
    /// anything else is concluded.
    fn by_its_method(&self) -> Option<Follow> {
        let rules = self.rules();
        let request = self.view.record.request.as_ref();
        if let Some(request) = request.filter(|request| request.is_unresolved()) {
            return Some(match rules.outcome(self.view, request)? {
                Outcome::Open => self.observed(),
                Outcome::Done => self.step_done(),
                Outcome::Overdue => self.overdue(),
                outcome @ (Outcome::Void | Outcome::GivenUp) => self.void(request, outcome),
            });
        }
        let opposed = is_opposed(self.view.record, self.view.seen.log);
        let stops = self.transition.direction == Direction::Stop;
        let idle = self.view.seen.resource.busy.is_none() && !opposed;
        match rules.next(self.view, self.transition.direction) {
            Next::StayOff(reason) if idle => {
                Some(self.settle_as(Some(reason), Some(self.view.switch_off())))
            }
            Next::Person(reason) if stops => {
                let known = matches!(&self.view.record.phase,
                    Phase::Stuck { reason: known, .. } if *known == reason);
                Some(if known {
                    self.observed()
                } else {
                    self.stuck(self.with_observation(), reason)
                })
            }
            Next::Person(reason) => Some(self.needs_person(&reason)),
            Next::Ask(_) | Next::Wait(_) | Next::StayOff(_) => None,
        }
    }

    fn rules(&self) -> &'static dyn Method {
        methods::rules_to_follow(self.view, self.transition.method)
    }

    /// Handles a request that had no effect, and can no longer have any: what comes next is derived
    /// again.
    fn void(&self, request: &Request, outcome: Outcome) -> Follow {
        let mut record = self.failed("it had no effect, and is asked for again");
        let reason = self.rules().void(&mut record, self.view, request, outcome);
        let stuck = reason.and_then(|reason| self.report_problem(&mut record, reason));
        self.write(record, None, stuck.into_iter().collect())
    }

    /// Handles a creation or a deletion that does not end: another one might double the machine, or
    /// take it running.
    fn overdue(&self) -> Follow {
        let reason = "its cloud has not ended the latest request in the longest time that it may take, \
                      and is waited for";
        let mut record = self.with_observation();
        let stuck = self.report_problem(&mut record, reason);
        if record == *self.view.record {
            return Follow::Wait;
        }
        self.write(record, None, stuck.into_iter().collect())
    }

    /// Handles a start that needs a person: it goes on meanwhile, and is reported once.
    fn needs_person(&self, reason: &str) -> Follow {
        let now = self.view.now;
        let mut record = self.with_observation();
        let stuck = self.report_problem(&mut record, reason);
        let Some(request) = &mut record.request else {
            return self.observed();
        };
        let retry_at = backoff::retry_at(now, 1, None);
        request.ask = match request.ask {
            Ask::Failed { retry_at } if retry_at > now => return self.observed(),
            Ask::Failed { .. } | Ask::Open | Ask::Accepted { .. } | Ask::Done { .. } => {
                Ask::Failed { retry_at }
            }
        };
        record.last_error = Some(reason.into());
        self.write(record, None, stuck.into_iter().collect())
    }

    /// Returns the record after its request came to nothing: another one follows after a while.
    fn failed(&self, reason: &str) -> Record {
        let mut record = self.with_observation();
        record.attempts += 1;
        let retry_at = backoff::retry_at(self.view.now, record.attempts, None);
        record.last_error = Some(reason.into());
        if let Some(request) = &mut record.request {
            request.ask = Ask::Failed { retry_at };
        }
        record
    }

    /// Notes why the request of a record needs a person. Returns the event for a reason that was not
    /// reported before.
    fn report_problem(&self, record: &mut Record, reason: &str) -> Option<Event> {
        let request = record.request.as_mut()?;
        let known = request.problem.replace(reason.into());
        let is_new = !known.is_some_and(|known| known.eq_ignoring_request(&reason.into()));
        is_new.then(|| Event::Stuck {
            direction: self.transition.direction,
            cause: Some(self.cause()),
            reason: reason.to_owned(),
        })
    }

    /// Records that a step of the transition is done; the next look shows what comes next.
    fn step_done(&self) -> Follow {
        let mut record = self.with_observation();
        let mut transition = self.transition.clone();
        record.may_have_shrunk = self.view.record.may_be_smaller();
        if let Some(request) = &mut record.request {
            transition.forced |= request.forced == Forced::Accepted;
            request.forced = Forced::No;
            request.problem = None;
            request.ask = Ask::Done { at: self.view.seen.requested_at };
        }
        record.phase = Phase::InFlight { transition };
        record.retry_at = None;
        record.attempts = 0;
        record.last_error = None;
        self.write(record, None, Vec::new())
    }

    fn settle(&self) -> Follow {
        self.settle_as(None, Some(self.transition.method))
    }

    /// Ends a transition in its target state, by the method that it came to.
    fn settle_as(&self, reason: Option<String>, method: Option<StopMethod>) -> Follow {
        let now = self.view.now;
        let direction = self.transition.direction;
        let mut ended = self.ended(Ending::Seen);
        ended.reason = reason;
        ended.method = method;
        let still_owes = self.still_owes();
        let owes = still_owes.is_some();
        let given_back = direction == Direction::Stop
            && methods::was_given_back(self.view.seen.resource, self.view.record);
        let put_back = self.view.record.saved.as_ref().filter(|_| !owes && !given_back);
        ended.reason = still_owes.or(ended.reason);
        let saved = put_back.filter(|_| direction == Direction::Start);
        let seen = methods::size_of(self.view.seen.resource, self.view.record);
        let lost_storage = saved.zip(seen).and_then(|(saved, seen)| saved.lost_storage_in(&seen));
        let event = Event::Seen {
            direction,
            cause: Some(self.cause()),
            seconds: now.duration_since(self.transition.claimed_at).as_secs(),
            forced: ended.forced,
            method: ended.method,
            saved: put_back.cloned(),
            lost_storage,
        };
        let mut record = self.with_observation();
        record.last = ended.last(self.view.record);
        record.phase = Phase::Settled { at: direction.target_state() };
        let lacking = methods::settle(&mut record, self.view, Some(self.transition));
        if lacking.is_some() {
            ended.reason.clone_from(&lacking);
        }
        record.drop_request();
        record.retry_at = None;
        record.attempts = 0;
        record.last_error = None;
        match direction {
            // It runs on its small plan, and is still owed its own.
            Direction::Start if owes => {
                record.may_have_shrunk = true;
                record.last_error.clone_from(&self.view.record.last_error);
            }
            // A person chose a plan that does not compare: which one it is owed is theirs to say.
            Direction::Start
                if methods::has_unlike_plan(self.view.seen.resource, self.view.record) =>
            {
                record.may_have_shrunk = true;
            }
            Direction::Start => {
                record.clear_saved();
                // The next stop would not be undone either.
                record.held |= lost_storage.is_some();
                record.lost_storage = lost_storage;
            }
            Direction::Stop if given_back => record.clear_saved(),
            Direction::Stop => record.may_have_shrunk |= record.saved.is_some(),
        }
        let lacking = lacking.map(|reason| Event::Conflict { reason });
        let events = [event].into_iter().chain(lacking).collect();
        self.write(record, Some(ended), events)
    }

    /// Returns why a start leaves a machine on its small plan for now, if it does.
    fn still_owes(&self) -> Option<String> {
        let starts = self.transition.direction == Direction::Start;
        starts.then(|| methods::rules(self.transition.method).still_owes(self.view)).flatten()
    }

    /// Ends the transition where the resource stands. What may have been taken away stays saved, and
    /// the request stays too unless the transition is released.
    fn end(&self, ending: Ending, event: Event) -> Follow {
        let ended = self.ended(ending);
        let mut record = self.with_observation();
        record.last = ended.last(self.view.record);
        record.phase = Phase::Settled {
            at: methods::standing(self.view.seen.resource, &record)
                .unwrap_or(self.view.seen.resource.power),
        };
        methods::clear_untaken(&mut record, self.view.seen.resource);
        if ending == Ending::Released {
            record.drop_request();
            // It is still stopped: a start that was given up is not done.
            if self.transition.direction == Direction::Start
                && let Some(handled) = &mut record.handled
            {
                handled.desired = Some(Desired::Stopped);
            }
        }
        self.write(record, Some(ended), vec![event])
    }

    fn stuck(&self, mut record: Record, reason: String) -> Follow {
        record.last_error = Some(reason.as_str().into());
        record.last = self.ended(Ending::Stuck).last(self.view.record);
        record.phase = Phase::Stuck {
            transition: self.transition.clone(),
            since: self.view.now,
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
            seen: methods::size_of(self.view.seen.resource, self.view.record),
            ..HistoryEntry::of(self.view.record, self.transition, ending, self.view.now)
        }
    }

    /// Handles a resource in its target state that cannot settle yet: reported when first seen
    /// there.
    fn watched(&self) -> Follow {
        let record = self.with_observation();
        if record == *self.view.record {
            return Follow::Wait;
        }
        let direction = self.transition.direction;
        let watching = record.watched_until().map(|until| Event::Watching { direction, until });
        self.write(record, None, watching.into_iter().collect())
    }

    /// Records what the look shows, if it is new.
    fn observed(&self) -> Follow {
        let record = self.with_observation();
        if record == *self.view.record {
            return Follow::Wait;
        }
        self.write(record, None, Vec::new())
    }

    fn with_observation(&self) -> Record {
        let mut record = self.view.record.clone();
        record.observe(methods::observed(self.view.seen, &record));
        record.missing_since = None;
        methods::learn(&mut record, self.view.seen);
        record
    }

    fn write(&self, record: Record, history: Option<HistoryEntry>, events: Vec<Event>) -> Follow {
        let record = self.view.dated(record);
        Follow::Write(Box::new(Write { record, history, events }))
    }
}

fn write(
    mut record: Record,
    history: Option<HistoryEntry>,
    events: Vec<Event>,
    context: PlanContext<'_>,
) -> Follow {
    record.due_at = due_at(&record, context.rules, context.now);
    Follow::Write(Box::new(Write { record, history, events }))
}
