//! A database on its smallest plan: resized, and resized back.

use std::cmp::Ordering;

use domain::{
    configuration::DatabaseMethod,
    plan::stop_size,
    record::{Direction, Record},
    resource::{Power, Resource, SavedState, Size},
    step::Step,
};

use super::{
    Basis, Destination, Grounds, Method, Next, NextStep, Reads, StopObstacle, seen_against,
};
use crate::view::View;

/// A smaller plan, or fewer nodes.
pub(super) struct SmallestPlan;

impl Method for SmallestPlan {
    fn reads(&self, next: NextStep<'_>) -> Reads {
        let NextStep { record, policy, direction, .. } = next;
        let drops_standbys = policy.methods.database == DatabaseMethod::Standbys;
        let is_named = policy.stop_size.is_some() || drops_standbys;
        let offers = direction == Direction::Stop && !is_named;
        let basis = if offers { Basis::Plans } else { Basis::Itself };
        Reads { basis, ..Reads::of(record) }
    }

    fn judge<'a>(&self, view: View<'_>, by: &Grounds<'a>) -> Destination<'a> {
        let Size::Database(seen) = &view.seen.resource.size else {
            return Destination::Off(Vec::new());
        };
        match stop_size(seen, view.policy.methods.database, view.policy, by.smallest) {
            Ok(Some(size)) => Destination::Size(size),
            Ok(None) => Destination::Off(Vec::new()),
            Err(reason) => {
                let remedy = "set methods.database = \"smallest-plan\" for it".to_owned();
                Destination::Refused(vec![StopObstacle { reason, remedy }])
            }
        }
    }

    fn next(&self, view: View<'_>, direction: Direction) -> Next {
        match step(view, direction) {
            Some(step) => Next::Ask(step),
            None => Next::Wait(no_step(view.seen.target)),
        }
    }

    fn reached(&self, view: View<'_>, direction: Direction, target: Option<&SavedState>) -> bool {
        reached(view.seen.resource, view.record, direction, target)
    }
}

/// Returns the request for a direction; `None` if there is nothing to shrink to, or to put back.
fn step(view: View<'_>, direction: Direction) -> Option<Step> {
    let (record, seen) = (view.record, view.seen);
    match direction {
        Direction::Stop => {
            let target = seen.target?;
            // A size that is not smaller in every respect would not be recognized at the start as
            // one that has to be enlarged.
            let against = seen_against(seen.resource, target);
            (against == Some(Ordering::Greater)).then(|| resize(seen.resource, target))?
        }
        Direction::Start => {
            let own = seen.resource.size.to_save()?;
            resize(seen.resource, &restored(record.saved.as_ref()?, &own))
        }
    }
}

/// Returns the size to which a start leads: the larger of the saved and the seen one in each part. A
/// plan that does not compare with the saved one stays, until a person chooses.
fn restored(saved: &SavedState, seen: &SavedState) -> SavedState {
    let joined = saved.joined_with(seen);
    match (joined.state, seen) {
        (SavedState::Database { nodes, storage_mib, .. }, SavedState::Database { plan, .. })
            if joined.unlike =>
        {
            SavedState::Database { plan: plan.clone(), nodes, storage_mib }
        }
        (state, _) => state,
    }
}

fn resize(seen: &Resource, to: &SavedState) -> Option<Step> {
    let (Size::Database(seen), SavedState::Database { plan, nodes, storage_mib }) =
        (&seen.size, to)
    else {
        return None;
    };
    // If a change of plan leaves out the storage, it becomes the new plan's own (TFDO,
    // resource_database_cluster.go).
    Some(Step::Resize(SavedState::Database {
        plan: plan.clone(),
        nodes: *nodes,
        storage_mib: storage_mib.filter(|_| seen.has_settable_storage()),
    }))
}

/// Returns why a stop has nothing to send.
fn no_step(target: Option<&SavedState>) -> String {
    match target {
        Some(target) => format!(
            "{target} is not smaller in every respect than what is there: give its schedule \
             another stop_size or stop_nodes"
        ),
        None => "the provider lists no plan to which this database could shrink".to_owned(),
    }
}

/// Reports whether the database is where `direction` leads: at `target` or below, or with each part
/// at least as large as saved.
pub(super) fn reached(
    resource: &Resource,
    record: &Record,
    direction: Direction,
    target: Option<&SavedState>,
) -> bool {
    if resource.busy.is_some() {
        return false;
    }
    let saved = record.saved.as_ref();
    match direction {
        Direction::Stop => is_shrunk(resource, saved, target),
        Direction::Start => saved.is_none_or(|saved| is_whole(resource, saved)),
    }
}

fn is_shrunk(resource: &Resource, saved: Option<&SavedState>, target: Option<&SavedState>) -> bool {
    let against = |other| seen_against(resource, other);
    match (target, saved) {
        (Some(target), _) => {
            matches!(against(target), Some(Ordering::Less | Ordering::Equal))
        }
        (None, Some(saved)) => against(saved) == Some(Ordering::Less),
        (None, None) => false,
    }
}

/// Reports whether no part of a database is smaller than a start would make it.
pub(super) fn is_whole(resource: &Resource, saved: &SavedState) -> bool {
    let own = resource.size.to_save();
    let whole = own.is_some_and(|own| restored(saved, &own).compare(&own) == Some(Ordering::Equal));
    whole && !lacks_storage(&resource.size, saved)
}

/// Reports whether a database has less storage than is saved, and could have it again.
fn lacks_storage(seen: &Size, saved: &SavedState) -> bool {
    let settable = matches!(seen, Size::Database(database) if database.has_settable_storage());
    let lost = seen.to_save().and_then(|seen| saved.lost_storage_in(&seen));
    settable && lost.is_some()
}

/// Returns whether it runs at its own size, judging by what is saved. `None` if nothing is, or if
/// the size is smaller in one respect and larger in another: a person's size, from which a stop may
/// have had nothing to take.
pub(super) fn standing(resource: &Resource, record: &Record) -> Option<Power> {
    match seen_against(resource, record.saved.as_ref()?)? {
        Ordering::Less => Some(Power::Stopped),
        Ordering::Equal | Ordering::Greater => Some(Power::Running),
    }
}

/// Describes what an edge finds when the database is already there.
pub(super) fn already_there(
    resource: &Resource,
    record: &Record,
    direction: Direction,
) -> &'static str {
    match direction {
        Direction::Stop => "already smallest",
        Direction::Start => super::already_large(resource, record),
    }
}
