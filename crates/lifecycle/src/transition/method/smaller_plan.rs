//! A machine on a smaller plan while it is off: switched off, moved, and brought back in the
//! opposite order. The next request is derived from the machine itself, not remembered.

use std::cmp::Ordering;

use domain::{
    ResourceId,
    record::{Direction, Part, Record},
    resource::{MachineSize, Power, Resource, SavedState, Size},
    schedule::Desired,
    stop_method::StopMethod,
};
use jiff::SignedDuration;
use provider::Change;

use super::{graceful, power_off};

/// Disks beyond this, in GiB, take no longer to move: what takes 12 hours has failed.
const LARGEST_DISK: u64 = 690;

/// How a transition changes a machine's plan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Move<'a> {
    /// How the machine is switched off first.
    pub switch_off: StopMethod,
    /// For a stop: what it leads to.
    pub target: Option<&'a SavedState>,
    /// Whether a start switches the machine on without the saved plan.
    pub gives_up: bool,
}

/// Returns the next request; `None` for a stop without a plan to shrink to.
pub(super) fn change(
    record: &Record,
    resource: &Resource,
    direction: Direction,
    how: Move<'_>,
) -> Option<Change> {
    let id = &resource.id;
    let to = match direction {
        Direction::Stop => machine(how.target?)?,
        Direction::Start => match record.saved.as_ref().and_then(machine) {
            Some(saved) if is_small(resource, record) && !how.gives_up => saved,
            Some(_) | None => return Some(Change::PowerOn(id.clone())),
        },
    };
    let is_there = resource.size.plan() == to.plan;
    Some(match resource.power {
        Power::Stopped if !is_there => Change::ResizeMachine { id: id.clone(), to: to.clone() },
        Power::Stopped | Power::Running | Power::Between => switch_off(id, how.switch_off),
    })
}

pub(super) fn switch_off(id: &ResourceId, method: StopMethod) -> Change {
    if method == StopMethod::PowerOff {
        power_off::change(id, Direction::Stop)
    } else {
        graceful::change(id, Direction::Stop)
    }
}

/// Returns the part that a request does in a transition that changes a machine's plan.
pub(crate) fn part(
    change: &Change,
    record: &Record,
    resource: &Resource,
    direction: Direction,
) -> Part {
    match (change, direction) {
        (Change::ResizeMachine { .. }, Direction::Stop) => Part::Shrink,
        (Change::ResizeMachine { .. }, Direction::Start) => Part::Grow,
        (Change::PowerOn(_), _) if is_small(resource, record) => Part::OnSmall,
        (Change::PowerOn(_), _) => Part::On,
        (Change::Shutdown(_) | Change::PowerOff(_), _) => Part::Off,
        (Change::Hibernate { what, .. }, _) => super::hibernate::part(what),
        (Change::ResizeDatabase { .. } | Change::ScaleNodePool { .. }, _) => Part::Whole,
    }
}

/// Returns how long a change of plan or a part of a hibernation may take to show its effect; `None`
/// for other requests. The provider itself says a minute per GB of disk, because the machine may
/// move to another host (DODROPLETS).
pub(crate) fn effect_timeout(change: &Change, resource: &Resource) -> Option<SignedDuration> {
    let Size::Machine(machine) = &resource.size else {
        return None;
    };
    if let Change::Hibernate { what, .. } = change {
        return Some(super::hibernate::effect_timeout(what, machine));
    }
    if !matches!(change, Change::ResizeMachine { .. }) {
        return None;
    }
    let for_disk = i64::try_from(machine.disk_gib.min(LARGEST_DISK)).unwrap_or_default();
    Some(SignedDuration::from_mins(30 + for_disk))
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
            let Some(target) = target.and_then(machine) else {
                return resource.power == Power::Stopped;
            };
            let may_run = record.small_runs && resource.power == Power::Running;
            resource.size.plan() == target.plan && (resource.power == Power::Stopped || may_run)
        }
        Direction::Start => resource.power == Power::Running && !is_small(resource, record),
    }
}

/// Reports whether a part of a transition is done.
pub(super) fn is_done(part: Part, resource: &Resource, target: Option<&SavedState>) -> bool {
    let has_plan = || {
        let target = target.and_then(machine);
        target.is_some_and(|target| resource.size.plan() == target.plan)
    };
    match part {
        // The result of a hibernation request is known by what it makes.
        Part::Whole
        | Part::Keep
        | Part::Snapshot
        | Part::Protect
        | Part::Delete
        | Part::Create
        | Part::Attach
        | Part::Remove => false,
        Part::Off => resource.power == Power::Stopped,
        Part::On | Part::OnSmall => resource.power == Power::Running,
        Part::Shrink | Part::Grow => has_plan(),
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
pub(crate) fn runs_small(resource: &Resource, record: &Record) -> bool {
    resource.power == Power::Running && is_small(resource, record)
}

/// Reports whether a machine is on a plan that a stop may have moved it to, or otherwise on less
/// than is saved. A cheaper plan may have more of something, so its capacity alone proves nothing.
fn is_small(resource: &Resource, record: &Record) -> bool {
    let Some(saved) = record.saved.as_ref().and_then(machine) else {
        return false;
    };
    let plan = resource.size.plan();
    let seen = resource.size.to_save();
    let seen = seen.as_ref().and_then(machine);
    let lacks = seen.is_some_and(|seen| seen.compare(saved) == Some(Ordering::Less));
    plan != saved.plan && (record.small_plans.contains(plan) || lacks)
}

fn machine(size: &SavedState) -> Option<&MachineSize> {
    match size {
        SavedState::Machine(machine) => Some(machine),
        SavedState::Database { .. } | SavedState::NodePool { .. } => None,
    }
}
