//! Observes: follows transitions until they are seen, and takes the inventory. Sends no change;
//! where a cut of power is due, it asks stop, which looks again.

use aws_lambda_events::eventbridge::EventBridgeEvent;
use domain::ResourceRef;
use environment::Invoke;
use lifecycle::{Context, Error, Report, poll};
use serde::Deserialize;
use serde_json::Value;

/// An event of poll-status.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "Value")]
pub enum Event {
    /// The timer.
    Timer(Box<EventBridgeEvent>),
    /// Somebody wants to know what these show now.
    Status(Vec<ResourceRef>),
}

/// The form of a question by hand.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    resources: Vec<ResourceRef>,
}

impl TryFrom<Value> for Event {
    type Error = serde_json::Error;

    fn try_from(event: Value) -> Result<Self, serde_json::Error> {
        // Timer events have a field `resources` too: the rule's ARN.
        if event.get("detail-type").is_some() {
            Ok(Self::Timer(Box::new(serde_json::from_value(event)?)))
        } else {
            let question: Question = serde_json::from_value(event)?;
            Ok(Self::Status(question.resources))
        }
    }
}

/// One invocation: a tick of the timer, or a question.
pub async fn handle(
    context: Context<'_>,
    invoke: &impl Invoke,
    event: Event,
) -> Result<Report, Error> {
    match event {
        Event::Timer(_) => poll::tick(context, invoke).await,
        Event::Status(resources) => poll::status(context, &resources).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timer_and_a_question_are_told_apart() {
        let timer = include_str!("../events/timer.json");
        assert!(matches!(
            serde_json::from_str(timer).unwrap(),
            Event::Timer(_)
        ));
        let question = include_str!("../events/question.json");
        assert!(matches!(
            serde_json::from_str(question).unwrap(),
            Event::Status(_)
        ));
    }

    #[test]
    fn a_misspelt_question_is_refused() {
        let error = serde_json::from_str::<Event>(r#"{"resource": []}"#).unwrap_err();
        assert!(
            error.to_string().contains("unknown field `resource`"),
            "{error}"
        );
    }
}
