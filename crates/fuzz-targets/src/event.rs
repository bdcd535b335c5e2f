//! The events that invoke the four functions: timers, hints, commands and questions.

use domain::invocation::{Command, CommandTarget, Invocation};
use poll_status::Event;
use serde_json::Value;

use crate::check;

/// An accepted event survives a round trip; a timer is never a question, nor a hint a command.
pub(crate) fn run(data: &[u8]) {
    match serde_json::from_slice::<Invocation>(data) {
        Ok(invocation) => {
            check::json_round_trips(&invocation);
            let says_due = value(data)["cause"] == "due";
            match invocation {
                Invocation::Due(_) => assert!(says_due),
                Invocation::Command(command) => {
                    assert!(!says_due);
                    check_single_target(&command, &value(data));
                }
            }
        }
        Err(error) => check::has_message(&error),
    }
    match serde_json::from_slice::<Event>(data) {
        Ok(Event::Timer(_)) => assert!(!value(data)["detail-type"].is_null()),
        Ok(Event::Question(question)) => {
            assert!(value(data)["detail-type"].is_null());
            check::json_round_trips(&question);
        }
        Err(error) => check::has_message(&error),
    }
}

fn value(data: &[u8]) -> Value {
    serde_json::from_slice(data).expect("it was read as an event")
}

/// Checks that a command applies to what it names and to nothing else.
fn check_single_target(command: &Command, event: &Value) {
    let named = ["resources", "schedule", "account"].map(|key| !event[key].is_null());
    let expected = match command.target {
        CommandTarget::Resources(_) => [true, false, false],
        CommandTarget::Schedule(_) => [false, true, false],
        CommandTarget::Account(_) => [false, false, true],
    };
    assert_eq!(named, expected);
    let length = command.by.as_ref().map_or(0, |by| by.chars().count());
    assert!(length <= 256, "an author's name of {length} characters");
}
