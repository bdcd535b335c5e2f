//! Checks against AWS that alerts reach someone: the subscriptions of the stack's topic.

use environment::{
    in_words,
    subscriptions::{Subscription, Subscriptions, SubscriptionsError},
};
use report::count;

use super::{Check, Finding, or_ok};

pub(crate) fn check(answer: Result<Subscriptions, SubscriptionsError>) -> Vec<Finding> {
    let Subscriptions { topic, all } = match answer {
        Ok(subscriptions) => subscriptions,
        Err(error) => {
            let remedy = "deploy the stack again: it has the topic; and attach its viewer policy, which \
                          allows sns:ListSubscriptionsByTopic";
            return vec![Finding::problem(Check::Alerts, in_words(&error), remedy)];
        }
    };
    let subscribe = |protocol: &str, endpoint: &str| {
        format!(
            "`aws sns subscribe --topic-arn {topic} --protocol {protocol} --notification-endpoint \
             {endpoint}`"
        )
    };
    if all.is_empty() {
        let found = "nothing is subscribed to the topic of the alerts and alarms: an address that does \
                     not confirm within two or three days is removed";
        let remedy = format!(
            "subscribe an address, {}: a webhook receives alerts, and no alarms",
            subscribe("email", "ADDRESS")
        );
        return vec![Finding::warning(Check::Alerts, found, remedy)];
    }
    let pending = all.iter().filter(|one| !one.confirmed);
    let findings = pending.map(|Subscription { protocol, endpoint, .. }| {
        let found = "has not confirmed its subscription: it receives no alerts and no alarms";
        let again = subscribe(protocol, endpoint);
        let remedy = format!("open the link in AWS's mail; if that has expired, {again}");
        Finding::warning(Check::Alerts, found, remedy).of(endpoint)
    });
    let ok = format!("{} to the alerts and alarms", count(all.len(), "confirmed subscription"));
    or_ok(findings.collect(), Check::Alerts, ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;

    const TOPIC: &str = "arn:aws:sns:eu-central-1:123456789012:offhours-alerts";

    fn found(all: &[(&str, bool)]) -> Vec<Finding> {
        let subscription = |&(endpoint, confirmed): &(&str, bool)| Subscription {
            protocol: "email".to_owned(),
            endpoint: endpoint.to_owned(),
            confirmed,
        };
        let all = all.iter().map(subscription).collect();
        check(Ok(Subscriptions { topic: TOPIC.to_owned(), all }))
    }

    #[test]
    fn an_address_that_has_not_confirmed_is_named_with_the_command_that_asks_again() {
        let found = found(&[("ada@example.com", true), ("bo@example.com", false)]);
        let [pending] = &found[..] else { panic!("{found:?}") };
        assert_eq!(pending.level, Level::Warning);
        assert_eq!(pending.subject.as_deref(), Some("bo@example.com"));
        let command = format!(
            "aws sns subscribe --topic-arn {TOPIC} --protocol email --notification-endpoint \
             bo@example.com"
        );
        let remedy = pending.remedy.as_deref().unwrap();
        assert!(remedy.contains(&command), "{remedy}");
    }

    #[test]
    fn a_topic_without_subscriptions_is_a_warning_and_confirmed_ones_are_in_order() {
        let none = found(&[]);
        let remedy = none[0].remedy.as_deref().unwrap();
        assert_eq!((none.len(), none[0].level), (1, Level::Warning));
        assert!(remedy.contains("--notification-endpoint ADDRESS"), "{remedy}");
        let confirmed = found(&[("ada@example.com", true)]);
        assert_eq!((confirmed.len(), confirmed[0].level), (1, Level::Ok));
    }
}
