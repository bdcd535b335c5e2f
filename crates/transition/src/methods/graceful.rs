//! A machine whose guest is asked to shut down, and whose power is cut if it does not react.

use domain::{
    record::{Ask, Direction, Forced, GRACE},
    step::Step,
};

use super::power_off;
use crate::{backoff, log::opposes, view::View};

/// Returns the request for a direction.
pub(super) fn step(direction: Direction) -> Step {
    match direction {
        Direction::Stop => Step::Off { gracefully: true },
        Direction::Start => power_off::step(direction),
    }
}

/// Reports whether the hard cut may follow: the shutdown was accepted and the grace has passed, the
/// machine is neither off nor locked, and no one else has started it since.
///
/// The caller checks that it is still desired and still opted in.
#[must_use]
pub fn may_be_forced(view: View<'_>) -> bool {
    let View { record, seen, now, .. } = view;
    let resource = seen.resource;
    let under_way = record.in_flight().map(|transition| transition.direction);
    let request = record.request.as_ref().filter(|request| {
        under_way == Some(request.direction) && request.towards() == Direction::Stop
    });
    let Some(request) = request else {
        return false;
    };
    let Ask::Accepted { at, .. } = request.ask else {
        return false;
    };
    let cut = match request.forced {
        Forced::No => false,
        // Intended and never answered: it may be sent again once the permit is over.
        Forced::Intended => record.permit_is_open(now),
        Forced::Accepted => true,
    };
    // A cut that was not accepted is sent again after a while.
    let waits = record.attempts > 0 && now < backoff::when_free(request.asked_at, record.attempts);
    let off = resource.power == Direction::Stop.target_state();
    request.is_graceful()
        && view.rules.configuration.has_power_cut(&record.reference)
        && !cut
        && !waits
        && !off
        && resource.busy.is_none()
        && now.duration_since(at) >= GRACE
        && !seen.log.iter().any(|action| {
            action.started_at > request.looked_at && opposes(action.effect, Direction::Stop)
        })
}
