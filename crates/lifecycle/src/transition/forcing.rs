//! The forced power-off of a machine whose guest does not react to a shutdown.

use domain::{
    record::{Ask, Direction, Forced, GRACE, Record},
    resource::{LoggedAction, Resource},
};
use jiff::Timestamp;

use crate::transition::log::opposes;

/// What a request is sent for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It is a transition's own.
    Transition,
    /// The guest did not react to a shutdown.
    ForcedPowerOff,
}

/// Whether the hard cut may follow: the shutdown was accepted and the grace has passed, the
/// machine is neither off nor locked, and no one else has started it since.
///
/// That it is still desired and still opted in is for the caller to see to.
pub(crate) fn may_be_forced(
    record: &Record,
    resource: &Resource,
    log: &[LoggedAction],
    now: Timestamp,
) -> bool {
    let stopping = record
        .in_flight()
        .is_some_and(|transition| transition.direction == Direction::Stop);
    let Some(request) = record.request.as_ref().filter(|_| stopping) else {
        return false;
    };
    let Ask::Accepted { at, .. } = request.ask else {
        return false;
    };
    let cut = match request.forced {
        Forced::No => false,
        // Intended and never answered: the permit is over, or we would not be here.
        Forced::Intended => record.permit_is_open(now),
        Forced::Accepted => true,
    };
    let off = resource.power == Direction::Stop.end();
    request.graceful
        && !cut
        && !off
        && resource.busy.is_none()
        && now.duration_since(at) >= GRACE
        && !log.iter().any(|action| {
            action.started_at > request.looked_at && opposes(action.effect, Direction::Stop)
        })
}
