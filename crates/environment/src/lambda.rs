//! The way from AWS Lambda to a function and back.

use std::{
    hash::{BuildHasher as _, RandomState},
    process::ExitCode,
};

use domain::record::Writer;
use lambda_runtime::{LambdaEvent, service_fn};
use serde::{Serialize, de::DeserializeOwned};

pub use lambda_runtime::Diagnostic;

use crate::{in_words, logging};

/// A function, made once at the start: it takes one invocation after another.
pub trait Function {
    /// What it is invoked with.
    type Event: DeserializeOwned;
    /// What it answers.
    type Answer: Serialize;

    /// One run of an invocation, which `writer` identifies.
    fn invoke(
        &self,
        event: Self::Event,
        writer: Writer,
    ) -> impl Future<Output = Result<Self::Answer, Diagnostic>>;
}

/// Serves a function until AWS ends it. A start that fails, above all for a setting that is missing
/// or wrong, ends with one line that says why.
pub async fn serve<F: Function>(start: impl Future<Output = anyhow::Result<F>>) -> ExitCode {
    let served = match logging::json() {
        Ok(()) => run(start).await,
        Err(error) => Err(error.into()),
    };
    logging::ended(served)
}

async fn run<F: Function>(start: impl Future<Output = anyhow::Result<F>>) -> anyhow::Result<()> {
    // Boxed, as the next: the types of nested futures are too deep for the compiler.
    let function = Box::pin(start).await?;
    let invoke = async |event: LambdaEvent<F::Event>| {
        let context = event.context;
        // Keyed at random, anew for each.
        let run = RandomState::new().hash_one(context.deadline);
        let writer = Writer::of(&context.request_id, run);
        function.invoke(event.payload, writer).await
    };
    let served = Box::pin(lambda_runtime::run(service_fn(invoke)));
    served.await.map_err(anyhow::Error::from_boxed)
}

/// A failed invocation, as AWS shows it: `kind` is the word that alarms and callers match.
#[must_use]
pub fn failed(kind: &str, error: &dyn std::error::Error) -> Diagnostic {
    Diagnostic {
        error_type: kind.to_owned(),
        error_message: in_words(error),
    }
}
