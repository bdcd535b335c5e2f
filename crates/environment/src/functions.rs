//! Invoking the functions.

#[cfg(feature = "aws")]
use std::collections::HashMap;

#[cfg(feature = "aws")]
use aws_config::timeout::TimeoutConfig;
#[cfg(feature = "aws")]
use aws_smithy_types::error::metadata::ProvideErrorMetadata as _;
#[cfg(feature = "aws")]
use domain::{configuration::Floor, invocation::Question};
use domain::{invocation::Invocation, record::Direction};
#[cfg(feature = "aws")]
use http::Method;
#[cfg(feature = "aws")]
use serde::{Deserialize, Serialize, de::DeserializeOwned};

#[cfg(feature = "aws")]
use crate::service::{Answer, Service, ServiceError, Target};

#[derive(Debug, thiserror::Error)]
#[error("failed to invoke {function}")]
pub struct InvokeError {
    /// The function: what it does, or its name.
    pub function: String,
    /// Why it failed.
    #[source]
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// Why an invocation failed.
#[cfg(feature = "aws")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvokeFailure {
    /// No such function exists.
    Missing,
    /// The function exists, but failed or returned an invalid answer.
    Failed,
    /// AWS could not be reached, or denied the request.
    NotAsked,
}

#[cfg(feature = "aws")]
impl InvokeError {
    /// Returns why it failed.
    #[must_use]
    pub fn failure(&self) -> InvokeFailure {
        match self.source.downcast_ref() {
            Some(ServiceError::Refused(refused))
                if refused.code() == Some("ResourceNotFoundException") =>
            {
                InvokeFailure::Missing
            }
            Some(ServiceError::Refused(_) | ServiceError::Unanswered(_)) => InvokeFailure::NotAsked,
            None => InvokeFailure::Failed,
        }
    }
}

/// Invokes stop or start and returns once the invocation is accepted, not once it is carried out.
///
/// A lost invocation costs one tick: what is due stays due.
pub trait Invoke {
    fn invoke(
        &self,
        direction: Direction,
        invocation: Invocation,
    ) -> impl Future<Output = Result<(), InvokeError>> + Send;
}

/// The functions at AWS Lambda, by name.
#[cfg(feature = "aws")]
#[derive(Debug, Clone)]
pub struct LambdaFunctions {
    service: Service,
    stop: String,
    start: String,
    poll_status: Option<String>,
    dispatch: Option<String>,
    publish: Option<String>,
}

#[cfg(feature = "aws")]
impl LambdaFunctions {
    /// Returns the functions that stop and start, as the environment names them.
    pub fn stop_and_start(
        config: &aws_config::SdkConfig,
    ) -> Result<Self, crate::settings::SettingError> {
        use crate::settings::{START_FUNCTION, STOP_FUNCTION, function};
        Ok(Self {
            service: Service::connect(config, Target::new(config, "lambda", "Lambda")),
            stop: function(STOP_FUNCTION)?,
            start: function(START_FUNCTION)?,
            poll_status: None,
            dispatch: None,
            publish: None,
        })
    }

    /// Returns the functions of a deployed stack, as the command finds them: by the names in the
    /// environment, or else by the prefix of the tables.
    #[must_use]
    pub fn of_stack(config: &aws_config::SdkConfig, prefix: &str) -> Self {
        use crate::settings::{
            DISPATCH_FUNCTION, POLL_STATUS_FUNCTION, START_FUNCTION, STOP_FUNCTION, optional,
        };
        let named =
            |setting, function| optional(setting).unwrap_or_else(|| format!("{prefix}{function}"));
        // A function answers a person when it has done what was asked, which may take it minutes.
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(crate::aws::CONNECT_TIMEOUT)
            .disable_read_timeout()
            .disable_operation_attempt_timeout()
            .build();
        let target = Target::new(config, "lambda", "Lambda");
        Self {
            service: Service::connect(config, Target { timeouts, ..target }),
            stop: named(STOP_FUNCTION, "stop"),
            start: named(START_FUNCTION, "start"),
            poll_status: Some(named(POLL_STATUS_FUNCTION, "poll-status")),
            dispatch: Some(named(DISPATCH_FUNCTION, "dispatch")),
            publish: Some(format!("{prefix}publish")),
        }
    }

    /// Invokes stop or start and waits for its answer.
    pub async fn command<Answer: DeserializeOwned>(
        &self,
        direction: Direction,
        invocation: &Invocation,
    ) -> Result<Answer, InvokeError> {
        self.answer(self.name(direction), invocation).await
    }

    /// Asks poll-status and waits for its answer.
    pub async fn ask<Answer: DeserializeOwned>(
        &self,
        question: &Question,
    ) -> Result<Answer, InvokeError> {
        let name = self.poll_status.as_deref();
        let name = name.ok_or_else(|| unnamed("poll-status"))?;
        self.answer(name, question).await
    }

    /// Reads the guard rails of the deployment from the settings of dispatch, which takes no
    /// questions: only its timer invokes it.
    pub async fn floor(&self) -> Result<Floor, InvokeError> {
        let name = self.dispatch.as_deref();
        let name = name.ok_or_else(|| unnamed("dispatch"))?;
        let settings = self.settings(name).await?;
        let floor = crate::settings::floor_of(|setting| settings.get(setting).cloned());
        let failed = |source| InvokeError { function: name.to_owned(), source };
        floor.map_err(|error| failed(error.into()))
    }

    /// Reads from the settings of publish where its bucket is.
    pub async fn bucket(&self) -> Result<String, InvokeError> {
        let name = self.publish.as_deref();
        let name = name.ok_or_else(|| unnamed("publish"))?;
        let host = self.settings(name).await?.remove(crate::settings::BUCKET);
        let failed = |source| InvokeError { function: name.to_owned(), source };
        host.ok_or_else(|| failed("its settings name no bucket".into()))
    }

    async fn settings(&self, name: &str) -> Result<HashMap<String, String>, InvokeError> {
        let failed =
            |error: ServiceError| InvokeError { function: name.to_owned(), source: error.into() };
        let path = path(name, "configuration");
        let found = self.service.send(Method::GET, &path, &[], Vec::new()).await.map_err(failed)?;
        let found: serde_json::Value = found.json().map_err(failed)?;
        let settings = found.pointer("/Environment/Variables").map(HashMap::deserialize);
        Ok(settings.transpose().map_err(|error| failed(error.into()))?.unwrap_or_default())
    }

    fn name(&self, direction: Direction) -> &str {
        match direction {
            Direction::Stop => &self.stop,
            Direction::Start => &self.start,
        }
    }

    async fn answer<Answer: DeserializeOwned>(
        &self,
        name: &str,
        event: &impl Serialize,
    ) -> Result<Answer, InvokeError> {
        let failed = |source| InvokeError { function: name.to_owned(), source };
        let answer = self.send(name, event, "RequestResponse").await?;
        if answer.headers.contains_key("x-amz-function-error") {
            let words = String::from_utf8_lossy(&answer.body).into_owned();
            return Err(failed(words.into()));
        }
        // An answer that cannot be read is the function's fault, not that of AWS.
        serde_json::from_slice(&answer.body).map_err(|error| failed(error.into()))
    }

    async fn send(
        &self,
        name: &str,
        event: &impl Serialize,
        invocation_type: &str,
    ) -> Result<Answer, InvokeError> {
        let failed = |source| InvokeError { function: name.to_owned(), source };
        let payload = serde_json::to_vec(event).map_err(|error| failed(error.into()))?;
        let path = path(name, "invocations");
        let headers = [("x-amz-invocation-type", invocation_type)];
        let sent = self.service.send(Method::POST, &path, &headers, payload).await;
        sent.map_err(|error| failed(error.into()))
    }
}

/// Returns the path of a function, by its name or ARN, in which nothing is a space.
#[cfg(feature = "aws")]
fn path(name: &str, what: &str) -> String {
    let name: String = form_urlencoded::byte_serialize(name.as_bytes()).collect();
    format!("/2015-03-31/functions/{name}/{what}")
}

/// Returns the error for a function whose name was not given to this process.
#[cfg(feature = "aws")]
fn unnamed(function: &str) -> InvokeError {
    InvokeError { function: function.to_owned(), source: "the environment does not name it".into() }
}

#[cfg(feature = "aws")]
impl Invoke for LambdaFunctions {
    async fn invoke(
        &self,
        direction: Direction,
        invocation: Invocation,
    ) -> Result<(), InvokeError> {
        self.send(self.name(direction), &invocation, "Event").await.map(drop)
    }
}
