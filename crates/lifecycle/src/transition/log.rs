//! What a machine's action log says about a transition.

use domain::{
    record::{Direction, Record, Request, SKEW},
    resource::{ActionEffect, LoggedAction},
};
use jiff::Timestamp;

/// Since when a machine's action log matters to its transition; none where nothing is under way,
/// and for the kinds that keep no log.
pub(crate) fn log_since(record: &Record) -> Option<Timestamp> {
    let transition = record.in_flight().filter(|_| !record.kind().is_sized())?;
    let request = record.request.as_ref();
    // In a watch-out the opposite request is ours, and came earlier by clocks that may differ.
    Some(request.map_or(transition.claimed_at + SKEW, |request| request.looked_at))
}

/// From when on the log is read, by the provider's clock: our own entry may bear an earlier instant
/// than our request.
pub(crate) fn log_from(record: &Record) -> Option<Timestamp> {
    log_since(record).map(|since| since - SKEW)
}

/// The latest action about power since a look: that of a person if it opposes.
pub(crate) fn last_power_action(log: &[LoggedAction], since: Timestamp) -> Option<&LoggedAction> {
    log.iter()
        .filter(|action| action.started_at > since && action.effect != ActionEffect::Other)
        .max_by_key(|action| (action.started_at, action.id))
}

/// Our own request's entry in the log, when its answer was lost.
pub(crate) fn our_action<'a>(
    log: &'a [LoggedAction],
    request: &Request,
) -> Option<&'a LoggedAction> {
    log.iter().find(|action| {
        action.started_at >= request.asked_at - SKEW
            && action.effect != ActionEffect::Other
            && action.effect != ActionEffect::Reboot
            && !opposes(action.effect, request.direction)
    })
}

/// Whether an action leads away from where a transition goes.
pub(crate) fn opposes(effect: ActionEffect, direction: Direction) -> bool {
    match (effect, direction) {
        (ActionEffect::Start | ActionEffect::Reboot, Direction::Stop)
        | (ActionEffect::Shutdown | ActionEffect::PowerOff, Direction::Start) => true,
        (ActionEffect::Start | ActionEffect::Reboot, Direction::Start)
        | (ActionEffect::Shutdown | ActionEffect::PowerOff, Direction::Stop)
        | (ActionEffect::Other, _) => false,
    }
}
