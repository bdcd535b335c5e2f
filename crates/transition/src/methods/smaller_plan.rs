//! A machine on a smaller plan while it is off: switched off, moved, and brought back in the
//! opposite order. The next request is derived from the machine itself, not remembered.

use std::cmp::Ordering;

use domain::{
    hibernation::Mark,
    plan::{MoveRefusal, requested_plan, stop_plan},
    record::{Ask, Direction, Record, effect_timeout},
    resource::{MachineSize, Power, Resource, SavedState, Size},
    schedule::Desired,
    step::Step,
    stop_method::StopMethod,
};

use super::{Basis, Destination, Displaced, Grounds, Method, Next, NextStep, Reads, owed};
use crate::view::View;

/// Off on a smaller plan.
pub(super) struct SmallerPlan;

impl Method for SmallerPlan {
    fn reads(&self, next: NextStep<'_>) -> Reads {
        let NextStep { record, direction, seen, .. } = next;
        let resource = seen.map(|view| view.seen.resource);
        let offers = match direction {
            Direction::Stop => {
                !is_switching_off(record) && !resource.is_some_and(|seen| is_moved(seen, record))
            }
            Direction::Start => {
                record.saved.is_some() && resource.is_none_or(|seen| runs_small(seen, record))
            }
        };
        let basis = if offers { Basis::Plans } else { Basis::Itself };
        Reads { basis, ..Reads::of(record) }
    }

    fn judge<'a>(&self, view: View<'_>, by: &Grounds<'a>) -> Destination<'a> {
        let View { record, policy, .. } = view;
        let resource = view.seen.resource;
        let Size::Machine(seen) = &resource.size else {
            return Destination::Off(Vec::new());
        };
        if is_switching_off(record) {
            return Destination::Off(Vec::new());
        }
        if is_moved(resource, record) {
            return Destination::Size(SavedState::Machine(seen.clone()));
        }
        // A stop under way keeps the plan that it began with.
        let under_way = record.under_way_towards(Direction::Stop);
        let wanted =
            match under_way.and_then(|now| now.target.as_ref()).and_then(SavedState::machine) {
                Some(to) => Ok(Some(to.plan.clone())),
                None => requested_plan(record.kind(), &resource.tags, policy),
            };
        let of = by.machine(view, seen);
        match wanted.and_then(|wanted| stop_plan(of, by.catalog, wanted.as_deref())) {
            Ok(plan) => {
                // The machine keeps its own disk.
                let size = MachineSize { disk_gib: seen.disk_gib, ..plan.plan.size() };
                Destination::Smaller { plan, size: SavedState::Machine(size) }
            }
            Err(refusal) if has_nothing_to_save(&refusal) => {
                Destination::Off(vec![(&refusal).into()])
            }
            Err(refusal) => Destination::Refused(vec![(&refusal).into()]),
        }
    }

    fn next(&self, view: View<'_>, direction: Direction) -> Next {
        let (record, resource) = (view.record, view.seen.resource);
        let to = match direction {
            Direction::Stop => view.target(direction).and_then(SavedState::machine),
            Direction::Start => {
                let saved = record.saved.as_ref().and_then(SavedState::machine);
                match saved.filter(|_| is_small(resource, record) && !gives_up(view)) {
                    Some(saved) => Some(saved),
                    None => return Next::Ask(on(resource, record)),
                }
            }
        };
        let Some(to) = to else {
            return Next::Wait("no plan to which it could shrink is known".to_owned());
        };
        let is_there = resource.size.plan() == to.plan;
        let move_it = Step::Resize(SavedState::Machine(to.clone()));
        if direction == Direction::Stop && resource.power == Power::Stopped && !is_there {
            let edge = record.handled.as_ref().map(|handled| handled.key.instant);
            let both = move_it.effect_timeout(&resource.size).map(|time| time * 2);
            let late = edge.zip(both).is_some_and(|(edge, both)| view.is_late(edge, both));
            if late && !record.may_be_smaller() {
                return Next::StayOff("too near to its next start, only powered off".to_owned());
            }
        }
        Next::Ask(match resource.power {
            Power::Stopped if !is_there => move_it,
            Power::Stopped | Power::Running | Power::Between => off(view.switch_off()),
        })
    }

    fn reached(&self, view: View<'_>, direction: Direction, target: Option<&SavedState>) -> bool {
        reached(view.seen.resource, view.record, direction, target)
    }

    fn still_owes(&self, view: View<'_>) -> Option<String> {
        runs_without_its_own(view.record)
    }

    fn permit(&self, record: &mut Record, view: View<'_>, _: &Mark) -> Option<Displaced> {
        let request = record.request.as_ref().filter(|request| request.is_shrink());
        let to = request.and_then(|request| request.step.target()).and_then(SavedState::machine);
        let mut was_ours = false;
        if let Some(to) = to.map(|to| to.plan.clone()) {
            if !record.may_have_shrunk {
                record.small_plans.clear();
            }
            was_ours = record.small_plans.contains(view.seen.resource.size.plan());
            record.small_plans.insert(to);
            let method = record.in_flight().map(|now| now.method);
            record.small_runs = view.policy.rescaled_runs && method == Some(StopMethod::Rescale);
        }
        if was_ours && record.saved.is_some() {
            return Some(Displaced::default());
        }
        Some(owed::save_before_shrink(record, view))
    }
}

/// Returns why a start that has switched a machine on with its small plan still owes it its own.
pub(super) fn runs_without_its_own(record: &Record) -> Option<String> {
    let request = record.request.as_ref();
    let saved = record.saved.as_ref();
    let saved = saved.filter(|_| request.is_some_and(|one| one.step == Step::On { small: true }));
    saved.map(|saved| format!("on its small plan: {saved} was not to be had"))
}

/// Reports whether the first part of a stop is still under way, which no plan decides.
fn is_switching_off(record: &Record) -> bool {
    let request = record.request_towards(Direction::Stop);
    record.under_way_towards(Direction::Stop).is_some()
        && request.is_some_and(|request| matches!(request.step, Step::Off { .. }))
        && !record.wants_next_step()
}

/// Reports whether a stop has moved the machine already: no plan needs to be for sale for that.
fn is_moved(resource: &Resource, record: &Record) -> bool {
    record.small_plans.contains(resource.size.plan())
}

/// Reports whether a move is refused because the machine could not cost less, so that it is only
/// switched off.
fn has_nothing_to_save(refusal: &MoveRefusal) -> bool {
    if let MoveRefusal::TargetNotCheaper { target, plan } = refusal {
        return target == plan;
    }
    matches!(refusal, MoveRefusal::AlreadyCheapest { .. } | MoveRefusal::DiskTooLarge { .. })
}

/// Reports whether a start switches the machine on without the saved plan.
fn gives_up(view: View<'_>) -> bool {
    view.record.is_denied_its_plan() || view.policy.start_small && has_waited(view)
}

/// Reports whether the saved plan was refused, and the machine should be running by now.
fn has_waited(view: View<'_>) -> bool {
    let request = view.record.request_towards(Direction::Start);
    let refused = request
        .is_some_and(|request| request.step.moves() && matches!(request.ask, Ask::Failed { .. }));
    let since = view.record.in_flight().map(|now| now.claimed_at);
    let patience = effect_timeout(view.record.kind());
    refused && since.is_some_and(|since| view.now >= since + patience)
}

/// Switches a machine off by this method.
pub(super) fn off(method: StopMethod) -> Step {
    Step::Off { gracefully: method != StopMethod::PowerOff }
}

/// Switches a machine on, whatever its plan.
pub(super) fn on(resource: &Resource, record: &Record) -> Step {
    Step::On { small: is_small(resource, record) }
}

/// Reports whether the machine is where `direction` leads: off on its small plan, or running on
/// what is saved or more.
pub(super) fn reached(
    resource: &Resource,
    record: &Record,
    direction: Direction,
    target: Option<&SavedState>,
) -> bool {
    match direction {
        Direction::Stop => {
            let Some(target) = target.and_then(SavedState::machine) else {
                return resource.power == Power::Stopped;
            };
            let may_run = record.small_runs && resource.power == Power::Running;
            resource.size.plan() == target.plan && (resource.power == Power::Stopped || may_run)
        }
        Direction::Start => resource.power == Power::Running && !is_small(resource, record),
    }
}

/// Reports whether a step has been done to a machine. What hibernation requests is known by what it
/// makes.
pub(super) fn is_done(step: &Step, resource: &Resource) -> bool {
    match step {
        Step::Off { .. } => resource.power == Power::Stopped,
        Step::On { .. } => resource.power == Power::Running,
        Step::Resize(to) => to.machine().is_some_and(|to| resource.size.plan() == to.plan),
        Step::KeepAddress(_)
        | Step::Snapshot(_)
        | Step::Protect { .. }
        | Step::Delete
        | Step::Create { .. }
        | Step::Attach(_)
        | Step::RemoveSnapshot(_) => false,
    }
}

/// Returns where a machine stands. It counts as stopped while it runs on its small plan, if its
/// stop was to leave it so and no start has come since.
pub(super) fn standing(resource: &Resource, record: &Record) -> Power {
    let handled = record.handled.as_ref();
    let is_stopped = handled.is_some_and(|handled| handled.desired == Some(Desired::Stopped));
    if is_stopped && record.small_runs && runs_small(resource, record) {
        Power::Stopped
    } else {
        resource.power
    }
}

/// Reports whether a machine runs on less than is saved.
#[must_use]
pub fn runs_small(resource: &Resource, record: &Record) -> bool {
    resource.power == Power::Running && is_small(resource, record)
}

/// Reports whether a machine is on a plan that a stop may have moved it to, or otherwise on less
/// than is saved. A cheaper plan may have more of something, so its capacity alone proves nothing.
fn is_small(resource: &Resource, record: &Record) -> bool {
    let Some(saved) = record.saved.as_ref().and_then(SavedState::machine) else {
        return false;
    };
    let plan = resource.size.plan();
    let seen = resource.size.to_save();
    let seen = seen.as_ref().and_then(SavedState::machine);
    let lacks = seen.is_some_and(|seen| seen.compare(saved) == Some(Ordering::Less));
    plan != saved.plan && (record.small_plans.contains(plan) || lacks)
}
