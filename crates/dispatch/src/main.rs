//! The `dispatch` Lambda: wiring only.

use std::process::ExitCode;

use dispatch::journal::Journal;
use environment::{Clock, LambdaFunctions, aws, in_words, logging, settings};
use lambda_runtime::{Diagnostic, LambdaEvent, service_fn};
use store::{Reader, Tables};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let started = match logging::json() {
        Ok(()) => serve().await,
        Err(error) => Err(error.into()),
    };
    logging::ended(started)
}

async fn serve() -> anyhow::Result<()> {
    let prefix = settings::table_prefix()?;
    let config = aws::config().await;
    let functions = LambdaFunctions::stop_and_start(&config)?;
    let store = Reader::connect(&config, Tables::prefixed(&prefix));
    let clock = Clock::machine();
    let journal = Journal::default();
    let served = lambda_runtime::run(service_fn(async |event: LambdaEvent<_>| {
        let ticked = dispatch::handle(&store, &functions, event.payload, clock.now()).await;
        let dispatched = ticked.map_err(|error| Diagnostic {
            error_type: "StoreFailed".to_owned(),
            error_message: in_words(&error),
        })?;
        journal.note(&dispatched);
        Ok::<_, Diagnostic>(dispatched)
    }));
    served.await.map_err(anyhow::Error::from_boxed)
}
