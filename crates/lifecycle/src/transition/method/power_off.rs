//! Power off and on: what every machine's stop ends in.

use domain::{ResourceId, record::Direction, resource::Power};
use provider::Change;

/// Returns the request for a direction.
pub(super) fn change(id: &ResourceId, direction: Direction) -> Change {
    match direction {
        Direction::Stop => Change::PowerOff(id.clone()),
        Direction::Start => Change::PowerOn(id.clone()),
    }
}

/// Describes what an edge finds when the machine is already there.
pub(super) fn already_there(direction: Direction, seen: Power) -> &'static str {
    match (direction, seen) {
        (Direction::Start, _) => "already running",
        (Direction::Stop, Power::Running) => "already on its small plan",
        (Direction::Stop, Power::Stopped | Power::Between) => "already off",
    }
}
