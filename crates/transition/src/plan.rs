//! What to do about one record, decided from a fresh look: pure, so that each guard has a test.

use std::cmp::Ordering;

use domain::{
    ResourceKind,
    configuration::Mode,
    decision::{Decision, Due, LeaveReason, Why, judge, mode},
    hibernation::Mark,
    history::HistoryEntry,
    left_running::is_too_late,
    membership::Subject,
    record::{
        Ask, Cause, Direction, Ending, Forced, Handled, INVENTORY_INTERVAL, LOOK_AGE, Opposite,
        PERMIT, Permit, Phase, Rank, Record, Request, Transition,
    },
    resource::Power,
    schedule::Desired,
    step::Step,
    stop_method::StopMethod,
};
use jiff::Timestamp;

use crate::{
    answer::note_accepted,
    event::Event,
    log::{is_opposed, our_action},
    methods::{self, Displaced, Method, Next},
    view::{Observation, Plan, PlanContext, Send, View, Withheld, Write},
};

/// Why a running machine is not stopped at its end edge.
const RETAINED: &str = "was running before its begin edge, left running";

/// Why a database or a node pool is not stopped at its end edge.
const TOO_LATE: &str = "too near to its next start, left running";

/// Why a stop waits for a machine that does not answer.
const SILENT: &str = "it does not answer, so whether it is off is not known";

/// Plans the next step of stop or start for one record.
#[must_use]
pub fn plan(
    direction: Direction,
    record: &Record,
    seen: Observation<'_>,
    context: PlanContext<'_>,
) -> Plan {
    let too_old = context.now.duration_since(seen.requested_at) > LOOK_AGE;
    if too_old || record.permit_is_open(context.now) {
        // Still due at the next tick.
        return Plan::Leave;
    }
    let tagged = record.with_until_tags_of(seen.resource, context.now);
    let record = tagged.as_ref().unwrap_or(record);
    let subject = Subject::seen(record, seen.resource);
    let verdict = judge(record, subject, context.rules, context.now);
    let anew = match &verdict.decision {
        Decision::Act(due) if due.direction == Direction::Start => {
            methods::for_start(record, seen.resource)
        }
        Decision::Act(_) | Decision::AskAgain(_) | Decision::Leave(_) => None,
    };
    let record = anew.as_ref().unwrap_or(record);
    let policy = verdict.membership.policy(context.rules.configuration);
    let view = View::new(record, seen, &policy, context);
    let planner = Planner { direction, view };
    if let Some(adopted) = methods::adopted(record, seen) {
        return planner.write(adopted, None, Vec::new());
    }
    match verdict.decision {
        Decision::Act(due) if due.direction == direction => planner.act(&due),
        Decision::AskAgain(towards) if towards == direction => planner.ask_again(),
        Decision::Act(_) | Decision::AskAgain(_) => Plan::Leave,
        Decision::Leave(LeaveReason::Handled)
            if verdict.desired == Some(direction.desired()) && methods::may_be_forced(view) =>
        {
            planner.force()
        }
        Decision::Leave(reason) => planner.leave(&reason),
    }
}

struct Planner<'a> {
    direction: Direction,
    view: View<'a>,
}

impl Planner<'_> {
    fn act(&self, due: &Due) -> Plan {
        match self.view.record.in_flight() {
            None => self.begin(due),
            Some(transition) if transition.direction == self.direction => self.renew(due),
            Some(transition) => self.turn(due, transition),
        }
    }

    /// Begins a transition from settled, refused or stuck.
    fn begin(&self, due: &Due) -> Plan {
        if let Some(busy) = self.busy() {
            let is_machine = self.view.seen.sight.is_none_or(|sight| sight.machine.is_some());
            let label = if is_machine { "busy: " } else { "" };
            return Plan::Postpone(format!("{label}{busy}"));
        }
        let retained = self.direction == Direction::Stop
            && due.cause == Cause::Schedule
            && self.view.policy.retain_running
            && self.view.record.retained;
        let at_end = self.at_end();
        if retained {
            return self.leave_running(due, Ending::LeftRunning, RETAINED);
        }
        if at_end && self.has_just_gone_silent(due) {
            return Plan::Postpone(SILENT.to_owned());
        }
        if !at_end && self.is_too_late(&due.cause, &due.handled) {
            return self.leave_running(due, Ending::TooLate, TOO_LATE);
        }
        // A watch-out that a person overtook leaves its instant behind, which may have passed.
        let watched_until = self.view.record.not_before().filter(|&at| at > self.view.now);
        let quiet_at = self.opposite_quiet_at().max(watched_until);
        match (at_end, quiet_at) {
            (true, None) => {
                self.acknowledge(due, self.direction.target_state(), self.already_there())
            }
            (true, Some(quiet_at)) => self.watch_out(due, quiet_at, self.left_stuck()),
            (false, None)
                if self.refusal().is_none()
                    && let Next::StayOff(reason) = self.next_for(due) =>
            {
                self.acknowledge(due, Power::Stopped, reason)
            }
            (false, _) if due.mode == Mode::Observe => self.observe(due),
            (false, quiet_at) if let Some(reason) = self.runs_without_its_plan() => {
                match quiet_at {
                    Some(_) => Plan::Postpone(reason.to_owned()),
                    None => self.acknowledge(due, Power::Running, reason.to_owned()),
                }
            }
            (false, quiet_at) => self.claim_if_it_may(due, quiet_at, self.left_stuck()),
        }
    }

    /// Acknowledges an end edge that stops nothing.
    fn leave_running(&self, due: &Due, ending: Ending, reason: &str) -> Plan {
        if due.why == Why::Drift {
            return Plan::Leave;
        }
        let at = self.view.seen.resource.power;
        self.acknowledge_as(ending, due, at, reason.to_owned())
    }

    /// Reports whether a stop finds a machine off only because it has not answered since about its
    /// edge: its network may be down, and the machine run.
    fn has_just_gone_silent(&self, due: &Due) -> bool {
        let stops = self.direction == Direction::Stop;
        let observed = self.view.record.observed.as_ref();
        let off = observed.filter(|observed| observed.power == Power::Stopped);
        let was_off =
            off.is_some_and(|off| off.at + INVENTORY_INTERVAL * 2 <= due.handled.key.instant);
        stops && self.view.seen.resource.facts.silent && !was_off
    }

    /// Reports whether a stop comes too late to be worth it.
    fn is_too_late(&self, cause: &Cause, edge: &Handled) -> bool {
        let View { record, rules, now, .. } = self.view;
        self.direction == Direction::Stop
            && is_too_late(record, rules, cause, edge.key.instant, now)
    }

    /// Handles a newer edge in the same direction.
    fn renew(&self, due: &Due) -> Plan {
        let request = self.view.record.request.as_ref();
        let lost = request.is_none_or(|request| matches!(request.ask, Ask::Failed { .. }));
        let overtaken = is_opposed(self.view.record, self.view.seen.log);
        let acts = due.mode == Mode::Act;
        let free = self.busy().is_none() && !self.is_unresolved();
        let goes_on = acts && !self.at_end() && self.runs_without_its_plan().is_none();
        if goes_on && (lost || overtaken) && free {
            return self.claim_if_it_may(due, self.view.record.not_before(), None);
        }
        if goes_on && overtaken && self.busy().is_some() {
            // Taken as handled, it would be given up to what a person did before it.
            return Plan::Leave;
        }
        let mut record = self.view.record.clone();
        record.handled = Some(due.handled.clone());
        if let Some(request) = record.request.as_mut().filter(|_| acts && self.is_unresolved()) {
            // A claim whose first request has to wait: what a person did before it no longer counts.
            request.looked_at = self.view.seen.requested_at;
        }
        self.write(record, None, Vec::new())
    }

    /// Handles a newer edge in the opposite direction, in one write: never two transitions at once.
    fn turn(&self, due: &Due, old: &Transition) -> Plan {
        if self.busy().is_some() || due.mode == Mode::Observe || self.is_unresolved() {
            return Plan::Leave;
        }
        if self.runs_without_its_plan().is_some() {
            return Plan::Leave;
        }
        let ended = self.ended(old, Ending::Reversed);
        let quiet_at = if self.has_acted(old) {
            None
        } else {
            self.opposite_quiet_at().max(self.view.record.not_before())
        };
        match (self.at_end(), quiet_at) {
            (true, quiet_at) => self.watch_out(due, quiet_at.unwrap_or(self.view.now), Some(ended)),
            // Switched on, it stays on: the start ends first, and then the stop is refused.
            (false, _) if let Some(reason) = self.refusal().filter(|_| !old.method.is_chosen()) => {
                Plan::Postpone(reason.to_owned())
            }
            (false, quiet_at) => self.claim(due, quiet_at, Some(ended)),
        }
    }

    /// Reports whether the transition that is turned around has taken effect: its only request was
    /// accepted, and this look shows the result. Nothing of it can act any more.
    fn has_acted(&self, old: &Transition) -> bool {
        let Some(request) = self.view.record.request_towards(old.direction) else {
            return false;
        };
        let accepted = matches!(request.ask, Ask::Accepted { .. });
        let certain = !request.earlier_unanswered && request.forced != Forced::Intended;
        accepted && certain && methods::is_done(self.view.record, self.view.seen.resource, request)
    }

    /// Sends another request if the transition in flight has none that could still succeed.
    fn ask_again(&self) -> Plan {
        let request = self.view.record.request.as_ref();
        let open = request.filter(|request| matches!(request.ask, Ask::Open));
        let moving = open.is_some_and(|request| {
            methods::is_moving(self.view.seen.resource, request.step.target())
        });
        if self.at_end() || self.busy().is_some() || moving || self.is_unresolved() {
            // poll-status follows it.
            return Plan::Leave;
        }
        let step_done = self.view.record.wants_next_step();
        let always = self.rules().always_yields();
        // A start that was refused is asked again whatever the log shows: our own stop before it may
        // be dated after its look.
        let stops = self.direction == Direction::Stop;
        let yields = request.is_none_or(|request| {
            stops || open.is_some() || request.earlier_unanswered || step_done || always
        });
        let opposed = is_opposed(self.view.record, self.view.seen.log)
            || methods::is_resized(self.view.seen.resource, self.view.record);
        if yields && opposed {
            return self.overtaken();
        }
        if let Some(ours) = open.and_then(|request| our_action(self.view.seen.log, request)) {
            let mut record = self.view.record.clone();
            note_accepted(&mut record, Some(ours.id), self.view.now);
            return self.write(record, None, Vec::new());
        }
        if self.mode() == Mode::Observe {
            return Plan::Leave;
        }
        if let Some(transition) = self.view.record.in_flight()
            && let Some(edge) = &self.view.record.handled
            && self.is_too_late(&transition.cause, edge)
            && !self.view.record.may_be_smaller()
        {
            return self.given_up_too_late(transition);
        }
        if let Some(reason) = self.runs_without_its_plan() {
            return Plan::Postpone(reason.to_owned());
        }
        let Next::Ask(step) = self.rules().next(self.view, self.direction) else {
            return Plan::Leave;
        };
        if self.needs_way_back(&step)
            && let Some(reason) = self.refusal()
            && let Some(transition) = self.view.record.in_flight()
        {
            return self.refuse(transition.clone(), None, reason);
        }
        let mut record = self.view.record.clone();
        let unknown = request.is_some_and(|request| request.earlier_unanswered) || open.is_some();
        // An unanswered shrink may have landed, whatever size a person has left since.
        record.may_have_shrunk = self.view.record.may_be_smaller();
        let asked = self.request(step);
        let before = request.filter(|before| asked.step.repeats(&before.step) && !step_done);
        if before.is_none() {
            record.attempts = 0;
        }
        record.request = Some(Request {
            earlier_unanswered: unknown,
            first_accepted_at: before.and_then(|before| before.first_accepted_at),
            problem: before.and_then(|before| before.problem.clone()),
            ..asked
        });
        self.send(record, None)
    }

    /// Refuses a stop from which the resource could not come back. Nothing is sent; a machine that
    /// is off already stays off.
    fn refuse(&self, transition: Transition, due: Option<&Due>, reason: &str) -> Plan {
        let mut record = self.view.record.clone();
        if let Some(due) = due {
            record.handled = Some(due.handled.clone());
        }
        let ended = HistoryEntry {
            reason: Some(reason.to_owned()),
            ..self.ended(&transition, Ending::Refused)
        };
        let refused = Event::Refused {
            direction: self.direction,
            cause: Some(transition.cause.clone()),
            reason: reason.into(),
        };
        record.last = ended.last(&record);
        record.drop_request();
        record.phase = Phase::Refused { transition, reason: reason.to_owned() };
        record.retained = false;
        let mut write = self.written(record, Some(ended), vec![refused]);
        write.record.last_error = Some(reason.into());
        Plan::Write(Box::new(write))
    }

    /// Ends the transition because a person did the opposite meanwhile. A request whose result is
    /// unknown stays, so that a later turn still waits for it.
    fn overtaken(&self) -> Plan {
        let Some(transition) = self.view.record.in_flight() else {
            return Plan::Leave;
        };
        let ended = self.ended(transition, Ending::Superseded);
        let mut record = self.view.record.clone();
        record.last = ended.last(&record);
        record.phase = Phase::Settled { at: self.view.seen.resource.power };
        methods::clear_untaken(&mut record, self.view.seen.resource);
        let overtaken =
            Event::Overtaken { direction: self.direction, cause: Some(transition.cause.clone()) };
        self.write(record, Some(ended), vec![overtaken])
    }

    /// Ends a stop of which nothing was accepted until it was too late for it.
    fn given_up_too_late(&self, transition: &Transition) -> Plan {
        let reason = TOO_LATE.to_owned();
        let ended = self.ended(transition, Ending::TooLate);
        let ended = HistoryEntry { reason: Some(reason.clone()), ..ended };
        let mut record = self.view.record.clone();
        record.last = ended.last(&record);
        record.phase = Phase::Settled { at: self.view.seen.resource.power };
        methods::clear_untaken(&mut record, self.view.seen.resource);
        record.drop_request();
        let left = Event::AlreadyThere { direction: self.direction, reason };
        self.write(record, Some(ended), vec![left])
    }

    /// Acknowledges an edge that finds the resource where it leads, or leaves it where it is.
    fn acknowledge(&self, due: &Due, at: Power, reason: String) -> Plan {
        self.acknowledge_as(Ending::AlreadyThere, due, at, reason)
    }

    fn acknowledge_as(&self, ending: Ending, due: &Due, at: Power, reason: String) -> Plan {
        let mut record = self.view.record.clone();
        // In observe mode, what is off already was not stopped by Offhours.
        let foreign = due.mode == Mode::Observe && self.direction == Direction::Stop;
        let handled = if foreign && !matches!(due.cause, Cause::Manual { .. }) {
            only_observed(due, &record)
        } else {
            due.handled.clone()
        };
        let before = record.handled.replace(handled);
        let mut ended = self.left_stuck();
        let mut events = Vec::new();
        match self.direction {
            Direction::Start => {
                let unlike = methods::has_unlike_plan(self.view.seen.resource, self.view.record);
                let small = self.runs_without_its_plan().is_some();
                let kept = record.saved.as_ref().filter(|saved| {
                    methods::seen_against(self.view.seen.resource, saved) != Some(Ordering::Equal)
                });
                if kept.is_some() && !small {
                    // A person's larger size stays; what was saved goes to history.
                    ended = Some(self.unasked(due, &record, Ending::Resized));
                }
                if unlike {
                    events.extend(methods::unlike_plans(self.view));
                } else if !small {
                    record.clear_saved();
                }
                // What was desired running before may be running by our own start, unless a person
                // asked for that. And what runs because a stop came to nothing was started by no one.
                record.retained = self.view.policy.retain_running
                    && self.view.seen.resource.power != Power::Stopped
                    && !small
                    && !self.came_to_nothing()
                    && before.is_some_and(|handled| {
                        let by_person = handled.key.rank == Rank::Manual;
                        by_person || handled.desired != Some(Desired::Running) || record.retained
                    });
            }
            Direction::Stop => {
                record.retained = false;
                if methods::was_given_back(self.view.seen.resource, self.view.record) {
                    record.clear_saved();
                }
            }
        }
        record.phase = Phase::Settled { at };
        record.drop_request();
        methods::settle(&mut record, self.view, None);
        record.may_have_shrunk &= record.saved.is_some();
        record.last = self.unasked(due, &record, ending).last(&record);
        let direction = self.direction;
        events.insert(0, Event::AlreadyThere { direction, reason });
        self.write(record, ended, events)
    }

    /// Reports whether the last stop left the resource running though nobody had started it.
    fn came_to_nothing(&self) -> bool {
        let record = self.view.record;
        let last = record.last.as_ref().map(|last| last.ending);
        let desired = record.handled.as_ref().and_then(|handled| handled.desired);
        // A database from which there was nothing to take is as it was.
        let took_nothing = last == Some(Ending::AlreadyThere)
            && desired != Some(Desired::Running)
            && record.kind() == ResourceKind::Database
            && record.saved.is_none();
        took_nothing
            || matches!(
                last,
                Some(
                    Ending::Refused
                        | Ending::Stuck
                        | Ending::WouldHave
                        | Ending::TooLate
                        | Ending::Released
                )
            )
    }

    /// Waits out an opposite request that may still act on a resource already in its target state.
    fn watch_out(&self, due: &Due, until: Timestamp, ended: Option<HistoryEntry>) -> Plan {
        let mut record = self.view.record.clone();
        let turned = ended.as_ref().and_then(|ended| ended.last(&record));
        record.last = turned.or(record.last);
        record.may_have_shrunk = self.view.record.may_be_smaller();
        // No request says where it leads.
        let target = self.view.target(self.direction).filter(|_| self.direction == Direction::Stop);
        let transition = Transition { target: target.cloned(), ..self.transition(due) };
        record.phase = Phase::InFlight { transition };
        record.handled = Some(due.handled.clone());
        let known = record.opposite.take().and_then(|before| before.may_become);
        let may_become = match record.request.take() {
            Some(request) if request.direction != self.direction => request.step.target().cloned(),
            Some(_) | None => known,
        };
        record.opposite = Some(Opposite { until, may_become });
        let direction = self.direction;
        let watching = Event::Watching { direction, until };
        let events = (until > self.view.now).then_some(watching);
        self.write(record, ended, events.into_iter().collect())
    }

    /// Handles observe mode: the decision is recorded and reported, and nothing is sent.
    fn observe(&self, due: &Due) -> Plan {
        if let Some(reason) = self.refusal() {
            return self.decline_observed(due, reason.to_owned());
        }
        let step = match self.next_for(due) {
            Next::Ask(step) => step,
            Next::Wait(why) | Next::StayOff(why) | Next::Person(why) => {
                return self.decline_observed(due, why);
            }
        };
        let mut record = self.view.record.clone();
        record.handled = Some(only_observed(due, self.view.record));
        let ended = self.unasked(due, &record, Ending::WouldHave);
        record.last = ended.last(&record);
        let saved = match self.direction {
            Direction::Stop => methods::size_of(self.view.seen.resource, self.view.record),
            Direction::Start => record.saved.clone(),
        };
        Plan::Withhold(Box::new(Withheld {
            write: self.written(record, Some(ended), Vec::new()),
            resource: self.view.seen.resource.clone(),
            step,
            saved,
        }))
    }

    /// Handles observe mode where nothing could be sent. A schedule's edge is looked at again later.
    /// A command ends here: it must not act once observe mode ends.
    fn decline_observed(&self, due: &Due, reason: String) -> Plan {
        if !matches!(due.cause, Cause::Manual { .. }) {
            return Plan::Postpone(reason);
        }
        let mut record = self.view.record.clone();
        record.handled = Some(only_observed(due, self.view.record));
        self.write(record, None, vec![Event::Declined { reason }])
    }

    /// Claims the record, unless it is to stop and could not come back.
    fn claim_if_it_may(
        &self,
        due: &Due,
        quiet_at: Option<Timestamp>,
        ended: Option<HistoryEntry>,
    ) -> Plan {
        match self.refusal() {
            Some(reason) => self.refuse(self.transition(due), Some(due), reason),
            None => self.claim(due, quiet_at, ended),
        }
    }

    /// Claims the record and permits exactly one request.
    fn claim(&self, due: &Due, quiet_at: Option<Timestamp>, ended: Option<HistoryEntry>) -> Plan {
        let step = match self.next_for(due) {
            Next::Ask(step) => step,
            Next::Wait(why) | Next::StayOff(why) | Next::Person(why) => return Plan::Postpone(why),
        };
        let mut record = self.view.record.clone();
        let turned = ended.as_ref().and_then(|ended| ended.last(&record));
        record.last = turned.or(record.last);
        record.may_have_shrunk = self.view.record.may_be_smaller();
        record.phase = Phase::InFlight { transition: self.transition(due) };
        record.handled = Some(due.handled.clone());
        record.opposite = quiet_at.map(|until| Opposite { until, may_become: None });
        record.request = Some(self.request(step));
        record.attempts = 0;
        record.last_error = None;
        record.retained = false;
        self.send(record, ended)
    }

    /// Permits the hard cut.
    fn force(&self) -> Plan {
        let observed = self.mode() == Mode::Observe;
        if !self.view.policy.force || observed {
            return Plan::Leave;
        }
        let mut record = self.view.record.clone();
        if let Some(request) = &mut record.request {
            // A cut that was never answered may still take effect.
            request.earlier_unanswered |= request.forced == Forced::Intended;
            request.forced = Forced::Intended;
            request.asked_at = self.view.now;
        }
        record.permit = Some(self.permit());
        self.permitted(record, Vec::new(), None)
    }

    /// Leaves what is not due by the look. The record learns its new tags at the next inventory.
    fn leave(&self, reason: &LeaveReason) -> Plan {
        match reason {
            LeaveReason::Excluded(_) | LeaveReason::UnknownSchedule(_) | LeaveReason::Unnamed
                if self.view.record.in_flight().is_none() =>
            {
                Plan::Postpone(reason.to_string())
            }
            LeaveReason::Excluded(_)
            | LeaveReason::UnknownSchedule(_)
            | LeaveReason::Unnamed
            | LeaveReason::Held
            | LeaveReason::Paused(_)
            | LeaveReason::Adopting
            | LeaveReason::Gone
            | LeaveReason::StaleReader
            | LeaveReason::Handled
            | LeaveReason::NothingDesired => Plan::Leave,
        }
    }

    /// Returns why no change may be sent now.
    fn busy(&self) -> Option<String> {
        methods::busy(self.view.seen.resource, self.direction)
    }

    fn mode(&self) -> Mode {
        mode(self.view.record, self.view.policy, self.view.rules.configuration)
    }

    fn at_end(&self) -> bool {
        self.rules().reached(self.view, self.direction, self.view.target(self.direction))
    }

    /// Reports whether a request is unresolved that has to be, before any other leaves.
    fn is_unresolved(&self) -> bool {
        let request = self.view.record.request.as_ref();
        request.is_some_and(Request::is_unresolved)
    }

    /// Returns why a start leaves a machine running on less than is saved: switched off, it could
    /// not have its own plan back.
    fn runs_without_its_plan(&self) -> Option<&str> {
        let starts = self.direction == Direction::Start;
        let small = methods::runs_small(self.view.seen.resource, self.view.record);
        self.view.seen.refusal.filter(|_| starts && small)
    }

    /// Returns why a stop must not be made.
    fn refusal(&self) -> Option<&str> {
        let stops = self.direction == Direction::Stop;
        self.view.seen.refusal.filter(|_| stops)
    }

    fn already_there(&self) -> String {
        methods::already_there(self.view.seen.resource, self.view.record, self.direction).to_owned()
    }

    /// Returns until when the latest request in the other direction may still act.
    fn opposite_quiet_at(&self) -> Option<Timestamp> {
        self.view
            .record
            .request
            .as_ref()
            .filter(|request| request.direction != self.direction && request.may_act())
            .map(|request| request.quiet_at(self.view.record.kind()))
            .filter(|&quiet_at| quiet_at > self.view.now)
    }

    /// Returns the history entry for a transition of the record that ends now.
    fn ended(&self, transition: &Transition, ending: Ending) -> HistoryEntry {
        HistoryEntry {
            seen: methods::size_of(self.view.seen.resource, self.view.record),
            ..HistoryEntry::of(self.view.record, transition, ending, self.view.now)
        }
    }

    /// Returns the entry for a transition that was stuck when a newer edge came: it ends unseen.
    fn left_stuck(&self) -> Option<HistoryEntry> {
        let Phase::Stuck { transition, reason, .. } = &self.view.record.phase else {
            return None;
        };
        Some(HistoryEntry { reason: Some(reason.clone()), ..self.ended(transition, Ending::Stuck) })
    }

    /// Returns the entry for an edge that ends at once. An earlier request in the same direction
    /// does not belong to it.
    fn unasked(&self, due: &Due, record: &Record, ending: Ending) -> HistoryEntry {
        HistoryEntry {
            direction: self.direction,
            schedule: due.handled.schedule.clone(),
            seen: methods::size_of(self.view.seen.resource, self.view.record),
            ..HistoryEntry::unasked(record, due.cause.clone(), ending, self.view.now)
        }
    }

    fn transition(&self, due: &Due) -> Transition {
        Transition {
            direction: self.direction,
            claimed_at: self.view.now,
            cause: due.cause.clone(),
            schedule: due.handled.schedule.clone(),
            method: self.method(),
            forced: false,
            target: self
                .view
                .seen
                .target
                .filter(|_| self.method().changes_plan())
                .filter(|_| self.direction == Direction::Stop)
                .cloned(),
            was_running: self.direction == Direction::Start
                && methods::runs_small(self.view.seen.resource, self.view.record),
        }
    }

    fn method(&self) -> StopMethod {
        methods::method(self.view, self.direction)
    }

    fn request(&self, step: Step) -> Request {
        let configuration = self.view.rules.configuration;
        let reference = &self.view.record.reference;
        Request {
            direction: self.direction,
            asked_at: self.view.now,
            looked_at: self.view.seen.requested_at,
            ask: Ask::Open,
            earlier_unanswered: false,
            forced: Forced::No,
            effect_timeout: step
                .effect_timeout(&self.view.seen.resource.size)
                .or_else(|| configuration.effect_timeout(reference, self.direction)),
            step,
            created_machine: None,
            first_accepted_at: None,
            problem: None,
        }
    }

    fn permit(&self) -> Permit {
        Permit { until: self.view.now + PERMIT, writer: self.view.writer.clone() }
    }

    fn rules(&self) -> &'static dyn Method {
        methods::rules(self.method())
    }

    /// Returns what an edge asks for first. Whether that comes too late depends on this edge, not on
    /// the one before it.
    fn next_for(&self, due: &Due) -> Next {
        let record = Record { handled: Some(due.handled.clone()), ..self.view.record.clone() };
        self.rules().next(View { record: &record, ..self.view }, self.direction)
    }

    /// Reports whether a request must not leave if its effect could not be undone.
    fn needs_way_back(&self, step: &Step) -> bool {
        let stops = self.direction == Direction::Stop;
        stops && (step.target().is_some() || step.facts().exclusive)
    }

    fn write(&self, record: Record, history: Option<HistoryEntry>, events: Vec<Event>) -> Plan {
        Plan::Write(Box::new(self.written(record, history, events)))
    }

    fn written(
        &self,
        mut record: Record,
        history: Option<HistoryEntry>,
        events: Vec<Event>,
    ) -> Write {
        record.retry_at = None;
        record.attempts = 0;
        record.last_error = None;
        Write { record: self.view.dated(record), history, events }
    }

    /// Permits the request of a record, in the write that may end a transition.
    fn send(&self, mut record: Record, ended: Option<HistoryEntry>) -> Plan {
        let step = record.request.as_ref().map(|request| &request.step);
        let fresh_for = step.map(|step| step.facts().fresh_for).unwrap_or_default();
        if self.view.now.duration_since(self.view.seen.requested_at) > fresh_for {
            let seconds = fresh_for.as_secs();
            return Plan::Postpone(format!(
                "what was read before the request is older than {seconds} s"
            ));
        }
        let mark = Mark::of(&record.reference, record.revision, self.view.writer, self.view.now);
        let Some(Displaced { history, events }) = methods::permit(&mut record, self.view, &mark)
        else {
            return Plan::Leave;
        };
        record.permit = Some(self.permit());
        record.retry_at = None;
        // The entry of a turned transition names what was saved as well.
        self.permitted(record, events, ended.or(history))
    }

    fn permitted(&self, record: Record, events: Vec<Event>, history: Option<HistoryEntry>) -> Plan {
        let resource = self.view.seen.resource.clone();
        Plan::Send(Box::new(Send { record: self.view.dated(record), resource, history, events }))
    }
}

/// Returns an edge as handled with nothing done about its desired state: acting on that begins as
/// soon as it is allowed. What Offhours holds stopped stays so, unless a person has started it.
fn only_observed(due: &Due, record: &Record) -> Handled {
    let runs = matches!(record.phase, Phase::Settled { at: Power::Running });
    let stays = record.is_held_stopped() && !runs;
    Handled { desired: stays.then_some(Desired::Stopped), ..due.handled.clone() }
}
