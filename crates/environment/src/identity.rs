//! Who the caller is, according to AWS.

use std::time::Duration;

use aws_config::{SdkConfig, timeout::TimeoutConfig};
use aws_sdk_sts::{Client, config::Builder};

/// How long AWS may take to say who the caller is.
const TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
#[error("AWS does not say who you are (sts:GetCallerIdentity)")]
pub struct UnknownCaller(#[source] Option<Box<aws_sdk_sts::Error>>);

pub async fn caller(config: &SdkConfig) -> Result<String, UnknownCaller> {
    let timeouts = TimeoutConfig::builder().operation_timeout(TIMEOUT).build();
    let client = Client::from_conf(Builder::from(config).timeout_config(timeouts).build());
    let answer = client.get_caller_identity().send().await;
    let answer = answer.map_err(|error| UnknownCaller(Some(Box::new(error.into()))))?;
    answer.arn.ok_or(UnknownCaller(None))
}
