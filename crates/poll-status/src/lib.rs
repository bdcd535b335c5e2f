//! Observes: follows transitions until they are seen, and takes the inventory. Sends no change;
//! where a cut of power is due, it asks stop, which looks again.

use std::collections::BTreeMap;

use aws_lambda_events::eventbridge::EventBridgeEvent;
use domain::{AccountName, ResourceRef, configuration::Account};
use environment::Invoke;
use lifecycle::{Context, Error, Report, poll, trial::trials};
use serde::{Deserialize, de::Error as _};
use serde_json::Value;

/// An event of poll-status.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "Value")]
pub enum Event {
    /// The timer.
    Timer(Box<EventBridgeEvent>),
    /// Somebody wants to know what these show now.
    Status(Vec<ResourceRef>),
    /// Somebody wants to know what these accounts' tokens show, before they are applied.
    Try(BTreeMap<AccountName, Account>),
    /// Somebody wants these accounts listed now; all if none is named.
    Inventory(Vec<AccountName>),
}

/// The form of a question by hand.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Question {
    Resources(Vec<ResourceRef>),
    Try(BTreeMap<AccountName, Account>),
    Inventory(Vec<AccountName>),
}

impl TryFrom<Value> for Event {
    type Error = serde_json::Error;

    fn try_from(event: Value) -> Result<Self, serde_json::Error> {
        // Timer events have a field `resources` too: the rule's ARN.
        if event.get("detail-type").is_some() {
            Ok(Self::Timer(Box::new(serde_json::from_value(event)?)))
        } else {
            match serde_json::from_value(event)? {
                Question::Resources(resources) => Ok(Self::Status(resources)),
                // Whoever may ask must not choose where a token is sent.
                Question::Try(accounts) if accounts.values().any(|a| a.url.is_some()) => Err(
                    Self::Error::custom("an account with an address of its own is not tried"),
                ),
                Question::Try(accounts) => Ok(Self::Try(accounts)),
                Question::Inventory(accounts) => Ok(Self::Inventory(accounts)),
            }
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
        Event::Try(accounts) => Ok(Report {
            trials: trials(context, &accounts).await,
            ..Report::default()
        }),
        Event::Inventory(accounts) => poll::take_inventory(context, invoke, &accounts).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timer_and_questions_are_told_apart() {
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
        let inventory = include_str!("../events/inventory.json");
        assert!(matches!(
            serde_json::from_str(inventory).unwrap(),
            Event::Inventory(accounts) if accounts.len() == 1
        ));
        let all = serde_json::from_str(r#"{"inventory": []}"#).unwrap();
        assert_eq!(Event::Inventory(Vec::new()), all);
    }

    #[test]
    fn a_question_asks_one_thing() {
        for json in ["{}", r#"{"resources": [], "inventory": []}"#] {
            serde_json::from_str::<Event>(json).unwrap_err();
        }
    }

    #[test]
    fn a_misspelt_question_is_refused() {
        let error = serde_json::from_str::<Event>(r#"{"resource": []}"#).unwrap_err();
        assert!(
            error.to_string().contains("unknown variant `resource`"),
            "{error}"
        );
    }

    #[test]
    fn an_account_is_tried_at_its_providers_own_address_alone() {
        let question = |url: &str| {
            format!(
                r#"{{"try": {{"hz-eu": {{"provider": "hetzner", "token": "ssm:/offhours/hz"{url}}}}}}}"#
            )
        };
        let event = serde_json::from_str(&question("")).unwrap();
        assert!(matches!(event, Event::Try(accounts) if accounts.len() == 1));
        let elsewhere = question(r#", "url": "https://example.com""#);
        serde_json::from_str::<Event>(&elsewhere).unwrap_err();
    }
}
