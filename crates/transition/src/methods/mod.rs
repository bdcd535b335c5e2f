//! The ways to stop a resource and to bring it back: one file each, behind one trait. The guards
//! around them do not know which method it is.

pub mod hibernate;
mod judge;
mod owed;
mod power;
mod reads;
mod smaller_plan;
mod smallest_plan;
mod zero_nodes;

pub use hibernate::{adopted, answered, take_stock};
pub use judge::{Destination, Grounds, StopObstacle, judge};
pub use owed::{clear_untaken, for_start, unlike_plans};
pub use power::{has_cut, may_be_forced};
pub use reads::{Basis, Extent, NextStep, Reads, Sighted};
pub use smaller_plan::runs_small;

use std::cmp::Ordering;

use domain::{
    ResourceKind,
    configuration::Policy,
    hibernation::Mark,
    history::HistoryEntry,
    record::{Direction, Observed, Record, Request, Transition},
    resource::{Busy, Power, Resource, SavedState, Size},
    step::Step,
    stop_method::StopMethod,
};
use jiff::Timestamp;

use crate::{
    event::Event,
    log::log_from,
    view::{Observation, View},
};

/// A way to stop a resource, and to bring it back.
pub trait Method: Sync {
    /// Returns what is read besides the resource before the next step is planned, apart from the log.
    fn reads(&self, next: NextStep<'_>) -> Reads {
        Reads::of(next.record)
    }

    /// Returns the instant from which a machine's action log is read; `None` if it is not.
    fn log_from(&self, record: &Record) -> Option<Timestamp> {
        log_from(record)
    }

    /// Judges where a stop leads.
    fn judge<'a>(&self, _: View<'_>, _: &Grounds<'a>) -> Destination<'a> {
        Destination::Off(Vec::new())
    }

    /// Returns what comes next in a transition.
    fn next(&self, view: View<'_>, direction: Direction) -> Next;

    /// Reports whether the resource is where `direction` leads.
    ///
    /// `target` is the size that a stop leads to, if it is known. A start leads to the saved state;
    /// if none is saved, there is nothing to put back.
    fn reached(&self, view: View<'_>, direction: Direction, target: Option<&SavedState>) -> bool;

    /// Returns the result of the last request, as far as it is seen, if it has to be known before
    /// anything else is concluded.
    fn outcome(&self, _: View<'_>, _: &Request) -> Option<Outcome> {
        None
    }

    /// Reports whether a person's opposite action ends a transition whatever became of its last
    /// request.
    fn always_yields(&self) -> bool {
        false
    }

    /// Returns why a start that is done still owes the machine its own plan; `None` if it does not.
    fn still_owes(&self, _: View<'_>) -> Option<String> {
        None
    }

    /// Updates a record after its request came to nothing. Returns what a person has to look at
    /// meanwhile, if anything.
    fn void(&self, _: &mut Record, _: View<'_>, _: &Request, _: Outcome) -> Option<&'static str> {
        None
    }

    /// Records, in the write that permits the request of a record, what that may take away or make,
    /// and gives the request its mark: the size that it makes smaller, unless the method keeps more.
    /// `None` if the request cannot rest on the look, because that did not read enough.
    fn permit(&self, record: &mut Record, view: View<'_>, _: &Mark) -> Option<Displaced> {
        Some(owed::save_before_shrink(record, view))
    }

    /// Records what a look shows.
    fn learn(&self, _: &mut Record, _: Observation<'_>) {}

    /// Records that the resource is where it should be: at the end of its transition, or because an
    /// edge finds it there. Returns what it lacks, in words.
    fn settle(&self, _: &mut Record, _: View<'_>, _: Option<&Transition>) -> Option<String> {
        None
    }
}

/// What a record no longer keeps once a request is permitted: it goes to history, and is reported.
#[derive(Debug, Default)]
pub struct Displaced {
    /// The entry for a size that no start will put back.
    pub history: Option<HistoryEntry>,
    /// What to report.
    pub events: Vec<Event>,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// This request.
    Ask(Step),
    /// Nothing yet: this has to pass first.
    Wait(String),
    /// Nothing more: the machine stays off, and intact.
    StayOff(String),
    /// Nothing: a person is needed.
    Person(String),
}

/// The result of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Not known yet.
    Open,
    /// It had its effect.
    Done,
    /// It had none, and can no longer have any.
    Void,
    /// It has not ended in the longest time that it may take, and is waited for.
    Overdue,
    /// It has not ended in the longest time that it may take, and is not waited for any more.
    GivenUp,
}

/// Returns the rules of a method: the only match on stop methods.
#[must_use]
pub fn rules(method: StopMethod) -> &'static dyn Method {
    match method {
        StopMethod::PowerOff => &power::Power { gracefully: false },
        StopMethod::Graceful => &power::Power { gracefully: true },
        StopMethod::Resize | StopMethod::Rescale => &smaller_plan::SmallerPlan,
        StopMethod::SmallestPlan | StopMethod::Standbys => &smallest_plan::SmallestPlan,
        StopMethod::ZeroNodes => &zero_nodes::ZeroNodes,
        StopMethod::Hibernate => &hibernate::Hibernate,
    }
}

/// Returns the rules of all methods that keep something in a record: that of its transition, and
/// hibernation, if the machine was ever hibernated.
fn keepers(record: &Record) -> impl Iterator<Item = &'static dyn Method> + use<> {
    let under_way = record.transition().map(|now| now.method);
    let hibernated = record.hibernation.as_ref().map(|_| StopMethod::Hibernate);
    let hibernated = hibernated.filter(|_| under_way != hibernated);
    under_way.into_iter().chain(hibernated).map(rules)
}

/// Applies [`Method::permit`] of all that a record keeps.
pub(crate) fn permit(record: &mut Record, view: View<'_>, mark: &Mark) -> Option<Displaced> {
    let mut all = Displaced::default();
    for method in keepers(record) {
        let Displaced { history, events } = method.permit(record, view, mark)?;
        all.history = all.history.or(history);
        all.events.extend(events);
    }
    Some(all)
}

/// Applies [`Method::learn`] of all that a record keeps.
pub(crate) fn learn(record: &mut Record, seen: Observation<'_>) {
    keepers(record).for_each(|method| method.learn(record, seen));
}

/// Applies [`Method::settle`] of all that the record kept until then.
pub(crate) fn settle(
    record: &mut Record,
    view: View<'_>,
    transition: Option<&Transition>,
) -> Option<String> {
    let lacking = keepers(view.record).map(|method| method.settle(record, view, transition));
    lacking.fold(None, Option::or)
}

/// Returns the method of this direction: for a stop the one that its claim found configured,
/// for a start the one that left what is saved. A machine without a smaller plan is only
/// switched off.
#[must_use]
pub fn method(view: View<'_>, direction: Direction) -> StopMethod {
    let method = expected(view.record, view.policy, direction);
    if view.record.under_way_towards(direction).is_some() {
        return method;
    }
    let kept = view.record.hibernation.as_deref();
    let incomplete = kept.is_some_and(|kept| kept.incomplete);
    if hibernate::is_hibernated(view) || incomplete && direction == Direction::Start {
        return StopMethod::Hibernate;
    }
    let moves = match (direction, method) {
        // A recreated machine has its old plan: one that is owed another is not deleted.
        (Direction::Stop, StopMethod::Hibernate) => {
            view.seen.ssh_key.is_some() && view.record.saved.is_none()
        }
        // The machine is there, with all that it had.
        (Direction::Start, StopMethod::Hibernate) => false,
        (Direction::Stop, _) => view.seen.target.is_some(),
        (Direction::Start, _) => view.record.saved.is_some(),
    };
    let is_chosen = method.changes_plan() || method == StopMethod::Hibernate;
    if is_chosen && !moves { view.switch_off() } else { method }
}

/// Returns the method of this direction as far as the record and the configuration say.
fn expected(record: &Record, policy: &Policy, direction: Direction) -> StopMethod {
    let kind = record.kind();
    if let Some(now) = record.under_way_towards(direction) {
        return now.method;
    }
    let saved = record.saved.as_ref().filter(|_| direction == Direction::Start);
    let left = saved.and_then(|saved| StopMethod::from_saved(kind, saved));
    left.unwrap_or_else(|| StopMethod::of(kind, policy))
}

/// Returns the rules by which a transition is followed: those of its method, unless the machine is
/// not there. Another method's transition then only needs what keeps it from being gone.
#[must_use]
pub fn rules_to_follow(view: View<'_>, method: StopMethod) -> &'static dyn Method {
    let is_missing = view.seen.sight.is_some_and(|sight| sight.machine.is_none());
    rules(if is_missing { StopMethod::Hibernate } else { method })
}

/// Reports whether a request has had its own effect, whether that is its whole transition or not.
#[must_use]
pub fn is_done(record: &Record, resource: &Resource, request: &Request) -> bool {
    let Request { step, direction, .. } = request;
    match &resource.size {
        Size::Machine(_) => smaller_plan::is_done(step, resource),
        Size::NodePool(pool) => zero_nodes::reached(resource, pool, record, *direction),
        Size::Database(_) => smallest_plan::reached(resource, record, *direction, step.target()),
    }
}

/// Describes what an edge finds when the resource is already where it leads.
#[must_use]
pub fn already_there(resource: &Resource, record: &Record, direction: Direction) -> &'static str {
    match &resource.size {
        Size::Machine(_) => power::already_there(direction, resource.power),
        Size::NodePool(_) => zero_nodes::already_there(resource, record, direction),
        Size::Database(_) => smallest_plan::already_there(resource, record, direction),
    }
}

fn already_large(resource: &Resource, record: &Record) -> &'static str {
    match record.saved {
        Some(_) if has_unlike_plan(resource, record) => {
            "its plan does not compare with the saved one, and stays"
        }
        Some(_) => "at least as large as saved",
        None => "nothing to put back",
    }
}

/// Reports whether a database is on a plan that does not compare with the saved one: no start puts
/// that back, and a person has to choose.
#[must_use]
pub fn has_unlike_plan(resource: &Resource, record: &Record) -> bool {
    let saved = record.saved.as_ref();
    let joined = saved.zip(resource.size.to_save());
    let joined = joined.map(|(saved, seen)| saved.joined_with(&seen));
    record.kind() == ResourceKind::Database && joined.is_some_and(|joined| joined.unlike)
}

/// Reports whether a database has its own size back, or more, and no request of ours can take it away
/// any more: then nothing is owed to it.
#[must_use]
pub fn was_given_back(resource: &Resource, record: &Record) -> bool {
    let acts = record.request.as_ref().is_some_and(Request::may_act);
    let is_large = standing(resource, record) == Some(Power::Running);
    let saved = record.saved.as_ref();
    let is_whole = saved.is_some_and(|saved| smallest_plan::is_whole(resource, saved));
    record.kind() == ResourceKind::Database && is_large && is_whole && !acts
}

/// Returns the observed size, if a stop makes the resource smaller: a machine that is only powered
/// off and on keeps its own.
#[must_use]
pub fn size_of(resource: &Resource, record: &Record) -> Option<SavedState> {
    let target = record.transition().and_then(|now| now.target.as_ref());
    let changes = record.kind().is_sized() || record.saved.is_some() || target.is_some();
    resource.size.to_save().filter(|_| changes)
}

/// Compares the observed size with another one.
#[must_use]
pub fn seen_against(resource: &Resource, other: &SavedState) -> Option<Ordering> {
    resource.size.to_save()?.compare(other)
}

/// Reports whether the resource shows that a request towards `target` is under way.
#[must_use]
pub fn is_moving(resource: &Resource, target: Option<&SavedState>) -> bool {
    match &resource.size {
        Size::NodePool(pool) => zero_nodes::is_moving(resource, pool, target),
        Size::Database(_) => resource.busy.is_some(),
        Size::Machine(_) => false,
    }
}

/// Returns why no request may be sent now.
pub fn busy(resource: &Resource, direction: Direction) -> Option<String> {
    let draining = direction == Direction::Stop && zero_nodes::is_draining(resource);
    let draining = draining.then(|| "its nodes are draining".to_owned());
    resource.busy.as_ref().map(Busy::to_string).or(draining)
}

/// Reports whether a person resized it during a watch-out: it has neither of the two sizes that our
/// requests lead to.
#[must_use]
pub fn is_resized(resource: &Resource, record: &Record) -> bool {
    let Some(opposite) = record.watch_out() else {
        return false;
    };
    let is_at = |size: &Option<SavedState>| {
        let against = size.as_ref().and_then(|size| seen_against(resource, size));
        against == Some(Ordering::Equal)
    };
    let ours = is_at(&record.saved) || is_at(&opposite.may_become);
    record.kind().is_sized() && record.saved.is_some() && !ours
}

/// Returns what was seen, in the form that a record keeps.
#[must_use]
pub fn observed(seen: Observation<'_>, record: &Record) -> Observed {
    Observed {
        power: standing(seen.resource, record).unwrap_or(seen.resource.power),
        size: size_of(seen.resource, record),
        busy: seen.resource.busy.as_ref().map(Busy::to_string),
        at: seen.requested_at,
    }
}

/// Returns the state in which the resource stands, for a record that nothing moves.
#[must_use]
pub fn standing(resource: &Resource, record: &Record) -> Option<Power> {
    match &resource.size {
        Size::Machine(_) => Some(smaller_plan::standing(resource, record)),
        Size::NodePool(_) => Some(resource.power),
        Size::Database(_) => smallest_plan::standing(resource, record),
    }
}
