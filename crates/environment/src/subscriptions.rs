//! Who is subscribed to the topic to which a stack's alerts and alarms go.

use aws_config::SdkConfig;
use aws_sdk_sns::{
    Client, error::SdkError, operation::list_subscriptions_by_topic::ListSubscriptionsByTopicError,
    types::Subscription as Listed,
};

use crate::identity::{UnknownCaller, caller};

/// What AWS says instead of an ARN until an address has confirmed.
const PENDING: &str = "PendingConfirmation";

/// A stack's topic and its subscriptions.
#[derive(Debug)]
pub struct Subscriptions {
    pub topic: String,
    /// Its subscriptions. One that was not confirmed in time is not among them.
    pub all: Vec<Subscription>,
}

#[derive(Debug)]
pub struct Subscription {
    /// How it receives messages, such as `email`.
    pub protocol: String,
    pub endpoint: String,
    /// Whether the receiver has confirmed it; until then nothing is sent.
    pub confirmed: bool,
}

impl From<Listed> for Subscription {
    fn from(listed: Listed) -> Self {
        Self {
            confirmed: listed.subscription_arn.is_some_and(|arn| arn != PENDING),
            protocol: listed.protocol.unwrap_or_default(),
            endpoint: listed.endpoint.unwrap_or_default(),
        }
    }
}

/// AWS does not say who is subscribed.
#[derive(Debug, thiserror::Error)]
pub enum SubscriptionsError {
    /// Without the caller, the topic's ARN is unknown.
    #[error(transparent)]
    Caller(#[from] UnknownCaller),
    #[error("cannot list the subscriptions of {topic}")]
    Topic {
        topic: String,
        /// What AWS says.
        #[source]
        source: Box<SdkError<ListSubscriptionsByTopicError>>,
    },
}

impl SubscriptionsError {
    #[must_use]
    pub fn is_missing(&self) -> bool {
        match self {
            Self::Caller(_) => false,
            Self::Topic { source, .. } => {
                let answer = source.as_service_error();
                answer.is_some_and(ListSubscriptionsByTopicError::is_not_found_exception)
            }
        }
    }
}

/// Returns the subscriptions of the topic `alerts` of the stack whose names begin with `prefix`.
pub async fn subscriptions(
    config: &SdkConfig,
    prefix: &str,
) -> Result<Subscriptions, SubscriptionsError> {
    let region = config.region().map(ToString::to_string).unwrap_or_default();
    let topic = topic(&caller(config).await?, &region, prefix);
    let mut pages =
        Client::new(config).list_subscriptions_by_topic().topic_arn(&topic).into_paginator().send();
    let mut all = Vec::new();
    while let Some(page) = pages.next().await {
        let page = page.map_err(|source| SubscriptionsError::Topic {
            topic: topic.clone(),
            source: Box::new(source),
        })?;
        all.extend(page.subscriptions.unwrap_or_default().into_iter().map(Subscription::from));
    }
    Ok(Subscriptions { topic, all })
}

/// Returns the topic's ARN, in the partition and the account of the caller's.
fn topic(caller: &str, region: &str, prefix: &str) -> String {
    let mut parts = caller.split(':').skip(1);
    let partition = parts.next().unwrap_or("aws");
    let account = parts.nth(2).unwrap_or_default();
    format!("arn:{partition}:sns:{region}:{account}:{prefix}alerts")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_topic_is_in_the_partition_and_the_account_of_the_caller() {
        let caller = "arn:aws-cn:sts::123456789012:assumed-role/admin/ada";
        assert_eq!(
            topic(caller, "cn-north-1", "offhours-"),
            "arn:aws-cn:sns:cn-north-1:123456789012:offhours-alerts"
        );
    }
}
