//! Power off and on: what every machine's stop ends in.

use domain::{record::Direction, resource::Power, step::Step};

/// Returns the request for a direction.
pub(super) fn step(direction: Direction) -> Step {
    match direction {
        Direction::Stop => Step::CUT,
        Direction::Start => Step::On { small: false },
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
