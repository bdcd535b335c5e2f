//! The shell between AWS Lambda and a function.

use std::{
    hash::{BuildHasher as _, RandomState},
    process::ExitCode,
};

use domain::record::Writer;
use lambda_runtime::{LambdaEvent, service_fn};
use serde::{Serialize, de::DeserializeOwned};

pub use lambda_runtime::Diagnostic;

use crate::{in_words, logging};

/// A Lambda function: built once at cold start, then invoked for one event after another.
pub trait Function {
    type Event: DeserializeOwned;
    type Answer: Serialize;

    /// Handles one run of an invocation, which `writer` identifies.
    fn invoke(
        &self,
        event: Self::Event,
        writer: Writer,
    ) -> impl Future<Output = Result<Self::Answer, Diagnostic>>;
}

/// Serves a function until AWS ends it. If the start fails, above all because a setting is missing
/// or invalid, logs one line that says why.
pub async fn serve<F: Function>(start: impl Future<Output = anyhow::Result<F>>) -> ExitCode {
    let served = match logging::json() {
        Ok(()) => run(start).await,
        Err(error) => Err(error.into()),
    };
    logging::finish(served)
}

async fn run<F: Function>(start: impl Future<Output = anyhow::Result<F>>) -> anyhow::Result<()> {
    // Boxed, like the next one: the types of nested futures are too deep for the compiler.
    let function = Box::pin(start).await?;
    let invoke = async |event: LambdaEvent<F::Event>| {
        let context = event.context;
        // Keyed at random, and differently for each run.
        let run = RandomState::new().hash_one(context.deadline);
        let writer = Writer::of(&context.request_id, run);
        function.invoke(event.payload, writer).await
    };
    let served = Box::pin(lambda_runtime::run(service_fn(invoke)));
    served.await.map_err(anyhow::Error::from_boxed)
}

/// Describes a failed invocation, as AWS shows it. Alarms and callers match on `kind`.
#[must_use]
pub fn failed(kind: &str, error: &dyn std::error::Error) -> Diagnostic {
    Diagnostic { error_type: kind.to_owned(), error_message: in_words(error) }
}
