//! A machine that is only switched off and on: its power is cut, or its guest is asked to shut down,
//! and the power is cut if it does not react.

use domain::{
    record::{Ask, Direction, Forced, GRACE, Request},
    resource::{Power as State, SavedState},
    step::Step,
};

use super::{Method, Next, smaller_plan};
use crate::{backoff, log::opposes, view::View};

/// Power off and on.
pub(super) struct Power {
    /// Whether the guest is asked first.
    pub(super) gracefully: bool,
}

impl Method for Power {
    fn next(&self, _: View<'_>, direction: Direction) -> Next {
        Next::Ask(match direction {
            Direction::Stop => Step::Off { gracefully: self.gracefully },
            Direction::Start => Step::On { small: false },
        })
    }

    fn reached(&self, view: View<'_>, direction: Direction, target: Option<&SavedState>) -> bool {
        smaller_plan::reached(view.seen.resource, view.record, direction, target)
    }
}

/// Describes what an edge finds when the machine is already there.
pub(super) fn already_there(direction: Direction, seen: State) -> &'static str {
    match (direction, seen) {
        (Direction::Start, _) => "already running",
        (Direction::Stop, State::Running) => "already on its small plan",
        (Direction::Stop, State::Stopped | State::Between) => "already off",
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
    has_cut(view, request)
        && !cut
        && !waits
        && !off
        && resource.busy.is_none()
        && now.duration_since(at) >= GRACE
        && !seen.log.iter().any(|action| {
            action.started_at > request.looked_at && opposes(action.effect, Direction::Stop)
        })
}

/// Reports whether the hard cut follows a request that comes to nothing: it asked the machine's
/// guest to shut down, and the account has a power cut.
#[must_use]
pub fn has_cut(view: View<'_>, request: &Request) -> bool {
    request.is_graceful() && view.rules.configuration.has_power_cut(&view.record.reference)
}
