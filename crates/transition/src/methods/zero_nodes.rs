//! A node pool at zero nodes: scaled down, and scaled back.

use domain::{
    record::{Direction, Record},
    resource::{AutoscaleBounds, NodePoolSize, Power, Resource, SavedState, Size},
    step::Step,
};

use super::{Method, Next};
use crate::view::View;

/// No nodes.
pub(super) struct ZeroNodes;

impl Method for ZeroNodes {
    fn next(&self, view: View<'_>, direction: Direction) -> Next {
        let seen = view.seen.resource.size.to_save();
        let to = match direction {
            Direction::Stop => Some(SavedState::NodePool { count: 0, autoscale: None }),
            Direction::Start => view
                .record
                .saved
                .as_ref()
                .zip(seen)
                .map(|(saved, seen)| saved.joined_with(&seen).state),
        };
        match to {
            Some(to) => Next::Ask(Step::Resize(to)),
            None => Next::Wait("nothing is saved to put back".to_owned()),
        }
    }

    fn reached(&self, view: View<'_>, direction: Direction, _: Option<&SavedState>) -> bool {
        let resource = view.seen.resource;
        matches!(&resource.size, Size::NodePool(pool)
            if reached(resource, pool, view.record, direction))
    }
}

/// Reports whether the pool is where `direction` leads: without nodes, or with all that is saved.
pub(super) fn reached(
    resource: &Resource,
    seen: &NodePoolSize,
    record: &Record,
    direction: Direction,
) -> bool {
    match (direction, &record.saved) {
        (Direction::Stop, _) => resource.power == Power::Stopped,
        (Direction::Start, Some(saved)) => is_restored(seen, saved, record.may_be_smaller()),
        (Direction::Start, None) => true,
    }
}

/// Reports whether a pool has at least what is saved of it. If our own stop switched its autoscaler
/// off (`shrunk`), one that is still off has to be switched on again.
fn is_restored(pool: &NodePoolSize, saved: &SavedState, shrunk: bool) -> bool {
    let SavedState::NodePool { count, autoscale } = saved else {
        return false;
    };
    let scales = !shrunk || autoscale.is_none() || pool.autoscale.is_some();
    let whole = pool.ready == pool.count && pool.present == pool.count;
    // Its autoscaler may have moved the count within its bounds, or within those that a person set.
    let moved = |bounds: AutoscaleBounds| (bounds.min..=bounds.max).contains(&pool.count);
    let enough = pool.count >= *count || pool.autoscale.is_some_and(moved);
    // An autoscaler may keep no node (DODOCS).
    let may_be_empty = pool.autoscale.is_some_and(|bounds| bounds.min == 0);
    whole && enough && scales && (pool.count > 0 || may_be_empty)
}

/// Reports whether its count is the one asked for while its nodes still come and go.
pub(super) fn is_moving(
    resource: &Resource,
    seen: &NodePoolSize,
    target: Option<&SavedState>,
) -> bool {
    resource.power == Power::Between
        && matches!(target, Some(SavedState::NodePool { count, .. }) if *count == seen.count)
}

/// Reports whether it is already draining to zero: what is left of it is never saved.
pub(super) fn is_draining(resource: &Resource) -> bool {
    resource.power == Power::Between
        && matches!(&resource.size, Size::NodePool(pool) if pool.count == 0)
}

/// Describes what an edge finds when the pool is already there.
pub(super) fn already_there(
    resource: &Resource,
    record: &Record,
    direction: Direction,
) -> &'static str {
    match direction {
        Direction::Stop => "already at zero",
        Direction::Start => super::already_large(resource, record),
    }
}

#[cfg(test)]
mod tests {
    use domain::resource::AutoscaleBounds;

    use super::*;

    fn pool(count: u32, present: u32, ready: u32) -> NodePoolSize {
        NodePoolSize {
            plan: "s-2vcpu-4gb".to_owned(),
            count,
            autoscale: None,
            present,
            ready,
            labels: "null".to_owned(),
            taints: "[]".to_owned(),
        }
    }

    #[test]
    fn a_pool_is_restored_only_once_all_its_nodes_run() {
        let saved = SavedState::NodePool { count: 3, autoscale: None };
        assert!(is_restored(&pool(3, 3, 3), &saved, true));
        assert!(is_restored(&pool(4, 4, 4), &saved, true));
        assert!(!is_restored(&pool(3, 3, 2), &saved, true));
        assert!(!is_restored(&pool(3, 2, 2), &saved, true));
        assert!(!is_restored(&pool(3, 4, 3), &saved, true), "one drains");
        assert!(!is_restored(&pool(2, 2, 2), &saved, true));
        assert!(!is_restored(&pool(0, 0, 0), &saved, true));
        let nothing = SavedState::NodePool { count: 0, autoscale: None };
        assert!(!is_restored(&pool(0, 0, 0), &nothing, true));
    }

    #[test]
    fn an_autoscaled_pool_is_restored_anywhere_within_its_bounds() {
        let bounds = AutoscaleBounds { min: 1, max: 5 };
        let saved = SavedState::NodePool { count: 4, autoscale: Some(bounds) };
        let mut seen = pool(2, 2, 2);
        assert!(!is_restored(&seen, &saved, true), "its autoscaler is off");
        seen.autoscale = Some(bounds);
        assert!(is_restored(&seen, &saved, true));
    }

    #[test]
    fn an_autoscaler_that_our_stop_switched_off_is_part_of_what_is_put_back() {
        let saved =
            SavedState::NodePool { count: 3, autoscale: Some(AutoscaleBounds { min: 1, max: 5 }) };
        let mut seen = pool(4, 4, 4);
        assert!(!is_restored(&seen, &saved, true));
        assert!(is_restored(&seen, &saved, false), "a person switched it off");
        // A person's own bounds stand.
        seen.autoscale = Some(AutoscaleBounds { min: 2, max: 8 });
        assert!(is_restored(&seen, &saved, true));
        let mut fewer = pool(2, 2, 2);
        fewer.autoscale = Some(AutoscaleBounds { min: 1, max: 2 });
        assert!(is_restored(&fewer, &saved, true));
        (fewer.count, fewer.present, fewer.ready) = (0, 0, 0);
        assert!(!is_restored(&fewer, &saved, true));
        fewer.autoscale = Some(AutoscaleBounds { min: 0, max: 2 });
        assert!(is_restored(&fewer, &saved, true), "nothing needs a node");
    }
}
