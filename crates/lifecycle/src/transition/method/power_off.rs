//! Power off and on: what every machine's stop ends in.

use domain::{ResourceId, record::Direction, resource::Power};
use provider::Change;

/// The request of either direction.
pub(super) fn change(id: &ResourceId, direction: Direction) -> Change {
    match direction {
        Direction::Stop => Change::PowerOff(id.clone()),
        Direction::Start => Change::PowerOn(id.clone()),
    }
}

/// What an edge says that finds it there.
pub(super) fn already_there(direction: Direction) -> &'static str {
    match direction.end() {
        Power::Running => "already running",
        Power::Stopped | Power::Between => "already off",
    }
}
