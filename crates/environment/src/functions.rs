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
    /// Which function: what it does, or its name.
    pub function: String,
    /// Why.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// What an invocation failed by, for who looks for a trouble's cause.
#[cfg(feature = "aws")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvokeTrouble {
    /// There is no such function.
    Missing,
    /// It is there, and failed, or answered with what is no answer of it.
    Failed,
    /// AWS was not reached, or does not let us ask.
    NotAsked,
}

#[cfg(feature = "aws")]
impl InvokeError {
    /// What it failed by.
    #[must_use]
    pub fn trouble(&self) -> InvokeTrouble {
        match self.source.downcast_ref::<aws_sdk_lambda::Error>() {
            Some(aws_sdk_lambda::Error::ResourceNotFoundException(_)) => InvokeTrouble::Missing,
            Some(_) => InvokeTrouble::NotAsked,
            None => InvokeTrouble::Failed,
        }
    }
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
    poll_status: Option<String>,
    dispatch: Option<String>,
}

#[cfg(feature = "aws")]
impl LambdaFunctions {
    /// The function that stops, as the environment names it.
    pub fn stop_alone(
        config: &aws_config::SdkConfig,
    ) -> Result<Self, crate::settings::SettingError> {
        use crate::settings::{STOP_FUNCTION, function};
        Ok(Self {
            client: aws_sdk_lambda::Client::new(config),
            stop: function(STOP_FUNCTION)?,
            start: None,
            poll_status: None,
            dispatch: None,
        })
    }

    /// The functions that stop and start, as the environment names them.
    pub fn stop_and_start(
        config: &aws_config::SdkConfig,
    ) -> Result<Self, crate::settings::SettingError> {
        use crate::settings::{START_FUNCTION, function};
        Ok(Self {
            start: Some(function(START_FUNCTION)?),
            ..Self::stop_alone(config)?
        })
    }

    /// The functions of a deployed stack, as a person's commands find them: by the names in the
    /// environment, or behind the prefix that the tables have.
    #[must_use]
    pub fn of_stack(config: &aws_config::SdkConfig, prefix: &str) -> Self {
        use crate::settings::{
            DISPATCH_FUNCTION, POLL_STATUS_FUNCTION, START_FUNCTION, STOP_FUNCTION, optional,
        };
        let named =
            |setting, function| optional(setting).unwrap_or_else(|| format!("{prefix}{function}"));
        Self {
            client: aws_sdk_lambda::Client::new(config),
            stop: named(STOP_FUNCTION, "stop"),
            start: Some(named(START_FUNCTION, "start")),
            poll_status: Some(named(POLL_STATUS_FUNCTION, "poll-status")),
            dispatch: Some(named(DISPATCH_FUNCTION, "dispatch")),
        }
    }

    /// Hands an event to stop or start and waits for what it answers.
    pub async fn ask(
        &self,
        function: Function,
        event: serde_json::Value,
    ) -> Result<serde_json::Value, InvokeError> {
        self.answer(self.name(function)?, event).await
    }

    /// Hands a question to poll-status and waits for what it answers.
    pub async fn ask_poll_status(
        &self,
        event: serde_json::Value,
    ) -> Result<serde_json::Value, InvokeError> {
        let name = self.poll_status.as_deref();
        self.answer(name.ok_or_else(|| unnamed("poll-status"))?, event)
            .await
    }

    /// Sees that dispatch is there. It takes no questions: only its timer invokes it.
    pub async fn find_dispatch(&self) -> Result<(), InvokeError> {
        let name = self.dispatch.as_deref();
        let name = name.ok_or_else(|| unnamed("dispatch"))?;
        let found = self.client.get_function_configuration();
        match found.function_name(name).send().await {
            Ok(_) => Ok(()),
            Err(error) => Err(InvokeError {
                function: name.to_owned(),
                source: Box::new(aws_sdk_lambda::Error::from(error)),
            }),
        }
    }

    fn name(&self, function: Function) -> Result<&str, InvokeError> {
        match function {
            Function::Stop => Ok(&self.stop),
            Function::Start => self.start.as_deref().ok_or_else(|| unnamed("start")),
        }
    }

    async fn answer(
        &self,
        name: &str,
        event: serde_json::Value,
    ) -> Result<serde_json::Value, InvokeError> {
        let failed = |source| InvokeError {
            function: name.to_owned(),
            source,
        };
        let kind = aws_sdk_lambda::types::InvocationType::RequestResponse;
        let answer = self.send(name, event, kind).await?;
        let payload = answer
            .payload
            .map(aws_sdk_lambda::primitives::Blob::into_inner)
            .unwrap_or_default();
        if answer.function_error.is_some() {
            let words = String::from_utf8_lossy(&payload).into_owned();
            return Err(failed(words.into()));
        }
        serde_json::from_slice(&payload).map_err(|error| failed(error.into()))
    }

    async fn send(
        &self,
        name: &str,
        event: serde_json::Value,
        kind: aws_sdk_lambda::types::InvocationType,
    ) -> Result<aws_sdk_lambda::operation::invoke::InvokeOutput, InvokeError> {
        let failed = |source| InvokeError {
            function: name.to_owned(),
            source,
        };
        let payload = serde_json::to_vec(&event).map_err(|error| failed(error.into()))?;
        self.client
            .invoke()
            .function_name(name)
            .invocation_type(kind)
            .payload(aws_sdk_lambda::primitives::Blob::new(payload))
            .send()
            .await
            .map_err(|error| failed(Box::new(aws_sdk_lambda::Error::from(error))))
    }
}

/// A function whose name this process was not told.
#[cfg(feature = "aws")]
fn unnamed(function: &str) -> InvokeError {
    InvokeError {
        function: function.to_owned(),
        source: "the environment does not name it".into(),
    }
}

#[cfg(feature = "aws")]
impl Invoke for LambdaFunctions {
    async fn invoke(
        &self,
        function: Function,
        event: serde_json::Value,
    ) -> Result<(), InvokeError> {
        let kind = aws_sdk_lambda::types::InvocationType::Event;
        self.send(self.name(function)?, event, kind).await.map(drop)
    }
}
