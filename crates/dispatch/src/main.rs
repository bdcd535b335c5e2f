//! The `dispatch` Lambda: wiring only.

use environment::{Clock, LambdaFunctions, aws, in_words, logging, settings};
use lambda_runtime::{Diagnostic, LambdaEvent, service_fn};
use store::{Reader, Tables};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    logging::json();
    let config = aws::config().await;
    let tables = Tables::prefixed(&settings::table_prefix()?);
    let store = Reader::connect(&config, tables);
    let functions = LambdaFunctions::from_settings(&config)?;
    let clock = Clock::machine();
    lambda_runtime::run(service_fn(|event: LambdaEvent<_>| async {
        dispatch::handle(&store, &functions, event.payload, clock.now())
            .await
            .map_err(|error| Diagnostic {
                error_type: "StoreFailed".to_owned(),
                error_message: in_words(&error),
            })
    }))
    .await
}
