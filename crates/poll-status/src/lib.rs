//! Observes: follows transitions until their target state is seen, and takes the inventory. Sends
//! no changes; when a forced power-off is due, it invokes stop, which observes again.

use aws_lambda_events::eventbridge::EventBridgeEvent;
use domain::invocation::Question;
use environment::Invoke;
use lifecycle::{
    Context, Error, Report,
    observe::{
        approve::approve, changed::changed, poll, remains::remains, stop_preview::preview_stops,
        token_check::trials,
    },
};
use serde::Deserialize;
use serde_json::Value;

/// The event that poll-status is invoked with.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "Value")]
pub enum Event {
    /// The timer.
    Timer(Box<EventBridgeEvent>),
    /// A question, from a person or a command.
    Question(Question),
}

impl TryFrom<Value> for Event {
    type Error = serde_json::Error;

    fn try_from(event: Value) -> Result<Self, serde_json::Error> {
        // Timer events have a field `resources` too: the rule's ARN.
        if event.get("detail-type").is_some() {
            return Ok(Self::Timer(Box::new(serde_json::from_value(event)?)));
        }
        serde_json::from_value(event).map(Self::Question)
    }
}

/// Handles one invocation: a tick of the timer, or a question.
pub async fn handle(
    context: Context<'_>,
    invoke: &impl Invoke,
    event: Event,
) -> Result<Report, Error> {
    match event {
        Event::Timer(_) => poll::tick(context, invoke).await,
        Event::Question(Question::Resources(resources)) => poll::status(context, &resources).await,
        Event::Question(Question::Try(accounts)) => {
            Ok(Report { trials: trials(context, &accounts).await?, ..Report::default() })
        }
        Event::Question(Question::Moves(configuration)) => {
            Ok(Report { moves: preview_stops(context, &configuration).await?, ..Report::default() })
        }
        Event::Question(Question::Inventory(accounts)) => {
            poll::take_inventory(context, invoke, &accounts).await
        }
        Event::Question(Question::Changed(activity)) => changed(context, &activity).await,
        Event::Question(Question::Approve(resources)) => approve(context, &resources).await,
        Event::Question(Question::Remains) => {
            Ok(Report { remains: remains(context).await?, ..Report::default() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timer_and_questions_are_distinguished() {
        let timer = include_str!("../events/timer.json");
        assert!(matches!(serde_json::from_str(timer).unwrap(), Event::Timer(_)));
        let question = include_str!("../events/question.json");
        assert!(matches!(
            serde_json::from_str(question).unwrap(),
            Event::Question(Question::Resources(_))
        ));
        let inventory = include_str!("../events/inventory.json");
        assert!(matches!(
            serde_json::from_str(inventory).unwrap(),
            Event::Question(Question::Inventory(accounts)) if accounts.len() == 1
        ));
        let all = serde_json::from_str(r#"{"inventory": []}"#).unwrap();
        assert_eq!(Event::Question(Question::Inventory(Vec::new())), all);
    }

    #[test]
    fn a_question_has_one_subject() {
        for json in ["{}", r#"{"resources": [], "inventory": []}"#] {
            serde_json::from_str::<Event>(json).unwrap_err();
        }
    }

    #[test]
    fn a_misspelt_question_is_refused() {
        let error = serde_json::from_str::<Event>(r#"{"resource": []}"#).unwrap_err();
        assert!(error.to_string().contains("unknown variant `resource`"), "{error}");
    }
}
