//! Asking another function to work, without waiting for it.

use std::fmt;

/// The functions that others invoke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Function {
    /// Sends stops.
    Stop,
    /// Sends starts.
    Start,
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Stop => "stop",
            Self::Start => "start",
        })
    }
}

/// An invocation that was not taken.
#[derive(Debug, thiserror::Error)]
#[error("failed to invoke {function}")]
pub struct InvokeError {
    /// Which function.
    pub function: Function,
    /// Why.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// Hands an event to a function and returns once it was taken, not once it was worked on.
///
/// A lost invocation costs one tick: what is due stays due.
pub trait Invoke {
    /// Hands the event over.
    fn invoke(
        &self,
        function: Function,
        event: serde_json::Value,
    ) -> impl Future<Output = Result<(), InvokeError>> + Send;
}

/// Functions at AWS Lambda, by their names.
#[cfg(feature = "aws")]
#[derive(Debug, Clone)]
pub struct LambdaFunctions {
    client: aws_sdk_lambda::Client,
    stop: String,
    start: Option<String>,
}

#[cfg(feature = "aws")]
impl LambdaFunctions {
    /// The functions named by the environment. `start` is needed only by those who invoke it.
    pub fn from_settings(
        config: &aws_config::SdkConfig,
    ) -> Result<Self, crate::settings::SettingError> {
        Ok(Self {
            client: aws_sdk_lambda::Client::new(config),
            stop: crate::settings::required(crate::settings::STOP_FUNCTION)?,
            start: crate::settings::optional(crate::settings::START_FUNCTION),
        })
    }
}

#[cfg(feature = "aws")]
impl Invoke for LambdaFunctions {
    async fn invoke(
        &self,
        function: Function,
        event: serde_json::Value,
    ) -> Result<(), InvokeError> {
        let failed = |source| InvokeError { function, source };
        let name = match function {
            Function::Stop => &self.stop,
            Function::Start => self
                .start
                .as_ref()
                .ok_or_else(|| failed("OFFHOURS_START_FUNCTION is not set".into()))?,
        };
        let payload = serde_json::to_vec(&event).map_err(|error| failed(error.into()))?;
        self.client
            .invoke()
            .function_name(name)
            .invocation_type(aws_sdk_lambda::types::InvocationType::Event)
            .payload(aws_sdk_lambda::primitives::Blob::new(payload))
            .send()
            .await
            .map_err(|error| failed(Box::new(aws_sdk_lambda::Error::from(error))))?;
        Ok(())
    }
}
