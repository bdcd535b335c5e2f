//! What a machine's action log says about a transition.

use domain::{
    record::{Ask, Direction, Record, Request, SKEW},
    resource::{ActionEffect, LoggedAction},
};
use jiff::Timestamp;

/// Returns the instant from which a machine's action log matters to its transition; `None` if
/// nothing is in flight, and for kinds that keep no log.
#[must_use]
pub fn log_since(record: &Record) -> Option<Timestamp> {
    let transition = record.in_flight().filter(|_| !record.kind().is_sized())?;
    Some(match &record.request {
        // A step that is done is ours, and came earlier by clocks that may differ; so is the
        // opposite request in a watch-out. A step that cannot look like a person's doing does not
        // count: a person may have switched the machine on while it was copied, or before it was
        // seen off.
        Some(Request { ask: Ask::Done { at }, step, .. }) if step.facts().may_oppose => *at + SKEW,
        // What comes after the switch-off of a stop rests on a look that showed the machine off. By
        // clocks that may differ, a start since then may be dated before that look.
        Some(Request { step, looked_at, .. })
            if transition.direction == Direction::Stop && step.facts().towards.is_none() =>
        {
            *looked_at - SKEW
        }
        Some(request) => request.looked_at,
        None => transition.claimed_at + SKEW,
    })
}

/// Returns the instant from which the log is read, by the provider's clock: our own entry may be
/// dated before our request.
#[must_use]
pub fn log_from(record: &Record) -> Option<Timestamp> {
    log_since(record).map(|since| since - SKEW)
}

/// Reports whether the latest power action since a look is a person's, against the transition in
/// flight. A start that has to switch the machine off first does so itself.
#[must_use]
pub fn is_opposed(record: &Record, log: &[LoggedAction]) -> bool {
    let Some(transition) = record.in_flight() else {
        return false;
    };
    let request = record.request.as_ref();
    if request.is_some_and(|request| request.towards() != transition.direction) {
        return false;
    }
    let last = log_since(record).and_then(|since| last_power_action(log, since));
    last.is_some_and(|action| opposes(action.effect, transition.direction))
}

/// Returns the latest power action since a look.
fn last_power_action(log: &[LoggedAction], since: Timestamp) -> Option<&LoggedAction> {
    log.iter()
        .filter(|action| action.started_at > since && is_about_power(action.effect))
        .max_by_key(|action| (action.started_at, action.id))
}

fn is_about_power(effect: ActionEffect) -> bool {
    match effect {
        ActionEffect::Start
        | ActionEffect::Shutdown
        | ActionEffect::PowerOff
        | ActionEffect::Reboot => true,
        ActionEffect::Resize
        | ActionEffect::Rebuild
        | ActionEffect::Snapshot
        | ActionEffect::Other => false,
    }
}

/// Returns our own request's entry in the log, for when its answer was lost.
#[must_use]
pub fn our_action<'a>(log: &'a [LoggedAction], request: &Request) -> Option<&'a LoggedAction> {
    let ours = request.step.facts().logged_as;
    log.iter().find(|action| {
        action.started_at >= request.asked_at - SKEW && ours.contains(&action.effect)
    })
}

/// Reports whether an action leads away from a transition's target state.
#[must_use]
pub fn opposes(effect: ActionEffect, direction: Direction) -> bool {
    match (effect, direction) {
        (ActionEffect::Start | ActionEffect::Reboot, Direction::Stop)
        | (ActionEffect::Shutdown | ActionEffect::PowerOff, Direction::Start) => true,
        (ActionEffect::Start | ActionEffect::Reboot, Direction::Start)
        | (ActionEffect::Shutdown | ActionEffect::PowerOff, Direction::Stop)
        | (
            ActionEffect::Resize
            | ActionEffect::Rebuild
            | ActionEffect::Snapshot
            | ActionEffect::Other,
            _,
        ) => false,
    }
}
