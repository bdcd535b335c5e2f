//! Whether a resource is at an end, by what a look shows of it.

use std::cmp::Ordering;

use domain::{
    record::{Direction, Record},
    resource::{NodePoolSize, Power, Resource, SavedState, Size},
};

/// Whether the resource is where `direction` leads.
///
/// `target` is the size that a stop of a database leads to, where it is known. A start leads to
/// the saved state; where none is saved there is nothing to put back.
pub(crate) fn reached(
    direction: Direction,
    resource: &Resource,
    record: &Record,
    target: Option<&SavedState>,
) -> bool {
    match (&resource.size, direction) {
        (Size::Machine { .. }, direction) => resource.power == direction.end(),
        (Size::NodePool(_), Direction::Stop) => resource.power == Power::Stopped,
        (Size::NodePool(pool), Direction::Start) => match &record.saved {
            Some(saved) => is_restored(pool, saved, record.may_have_shrunk()),
            None => true,
        },
        (Size::Database(_), _) if resource.busy.is_some() => false,
        (Size::Database(_), Direction::Stop) => is_shrunk(resource, record.saved.as_ref(), target),
        (Size::Database(_), Direction::Start) => match &record.saved {
            Some(saved) => {
                seen_against(resource, saved) != Some(Ordering::Less)
                    && !lacks_storage(&resource.size, saved)
            }
            None => true,
        },
    }
}

/// Whether a database has less storage than is saved, and could have it again.
fn lacks_storage(seen: &Size, saved: &SavedState) -> bool {
    let settable = matches!(seen, Size::Database(database) if database.has_settable_storage());
    let lost = seen.to_save().and_then(|seen| saved.lost_storage_in(&seen));
    settable && lost.is_some()
}

/// How the size that is seen compares with another.
pub(crate) fn seen_against(resource: &Resource, other: &SavedState) -> Option<Ordering> {
    resource.size.to_save()?.compare(other)
}

/// Whether a request towards `target` shows that it is under way: a pool whose count has already
/// been set, while its nodes come and go.
pub(crate) fn is_moving(resource: &Resource, target: Option<&SavedState>) -> bool {
    match &resource.size {
        Size::NodePool(pool) => {
            resource.power == Power::Between
                && matches!(target, Some(SavedState::NodePool { count, .. }) if *count == pool.count)
        }
        Size::Database(_) => resource.busy.is_some(),
        Size::Machine { .. } => false,
    }
}

/// Whether a person resized it during a watch-out: it is at neither of the two sizes to which
/// requests of ours lead.
pub(crate) fn is_resized(resource: &Resource, record: &Record) -> bool {
    let watching = record.request.is_none() && record.not_before.is_some();
    let is_at = |size: &Option<SavedState>| {
        let against = size.as_ref().and_then(|size| seen_against(resource, size));
        against == Some(Ordering::Equal)
    };
    let ours = is_at(&record.saved) || is_at(&record.may_become);
    record.kind().is_sized() && watching && record.saved.is_some() && !ours
}

/// Whether a pool has at least what is saved of it. Where our own stop switched its autoscaler off
/// (`shrunk`), one that is still off has to be switched on again.
fn is_restored(pool: &NodePoolSize, saved: &SavedState, shrunk: bool) -> bool {
    let SavedState::NodePool { count, autoscale } = saved else {
        return false;
    };
    let scales = !shrunk || autoscale.is_none() || pool.autoscale.is_some();
    let whole = pool.ready == pool.count && pool.present == pool.count;
    // The autoscaler may have moved the count within its bounds since.
    let enough = pool.count >= *count
        || autoscale.is_some_and(|bounds| {
            pool.autoscale == Some(bounds) && (bounds.min..=bounds.max).contains(&pool.count)
        });
    whole && enough && scales && pool.count > 0
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

/// At which end the resource stands, for a record that nothing moves.
pub(crate) fn standing(resource: &Resource, record: &Record) -> Option<Power> {
    match &resource.size {
        Size::Machine { .. } | Size::NodePool(_) => Some(resource.power),
        Size::Database(_) => record.saved.as_ref().map(|saved| {
            if seen_against(resource, saved) == Some(Ordering::Less) {
                Power::Stopped
            } else {
                Power::Running
            }
        }),
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
        let saved = SavedState::NodePool {
            count: 3,
            autoscale: None,
        };
        assert!(is_restored(&pool(3, 3, 3), &saved, true));
        assert!(is_restored(&pool(4, 4, 4), &saved, true));
        assert!(!is_restored(&pool(3, 3, 2), &saved, true));
        assert!(!is_restored(&pool(3, 2, 2), &saved, true));
        assert!(!is_restored(&pool(2, 2, 2), &saved, true));
        assert!(!is_restored(&pool(0, 0, 0), &saved, true));
        let nothing = SavedState::NodePool {
            count: 0,
            autoscale: None,
        };
        assert!(!is_restored(&pool(0, 0, 0), &nothing, true));
    }

    #[test]
    fn an_autoscaled_pool_is_restored_anywhere_within_its_bounds() {
        let bounds = AutoscaleBounds { min: 1, max: 5 };
        let saved = SavedState::NodePool {
            count: 4,
            autoscale: Some(bounds),
        };
        let mut seen = pool(2, 2, 2);
        assert!(!is_restored(&seen, &saved, true), "its autoscaler is off");
        seen.autoscale = Some(bounds);
        assert!(is_restored(&seen, &saved, true));
    }

    #[test]
    fn an_autoscaler_that_our_stop_switched_off_is_part_of_what_is_put_back() {
        let saved = SavedState::NodePool {
            count: 3,
            autoscale: Some(AutoscaleBounds { min: 1, max: 5 }),
        };
        let mut seen = pool(4, 4, 4);
        assert!(!is_restored(&seen, &saved, true));
        assert!(
            is_restored(&seen, &saved, false),
            "a person switched it off"
        );
        // A person's own bounds stand.
        seen.autoscale = Some(AutoscaleBounds { min: 2, max: 8 });
        assert!(is_restored(&seen, &saved, true));
    }
}
