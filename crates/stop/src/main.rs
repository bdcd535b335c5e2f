//! The `stop` Lambda: wiring only.

use domain::record::Writer;
use environment::{Clock, Tokens, aws, in_words, logging, settings};
use lambda_runtime::{Diagnostic, LambdaEvent, service_fn};
use lifecycle::{Access, Context, Providers};
use store::{Store, Tables};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    logging::json();
    let config = aws::config().await;
    let store = Store::connect(&config, Tables::prefixed(&settings::table_prefix()?));
    let providers = Providers::from_settings(Access::Change, Tokens::from_aws(&config))?;
    let clock = Clock::machine();
    lambda_runtime::run(service_fn(|event: LambdaEvent<_>| async {
        let writer = Writer(event.context.request_id);
        let context = Context {
            store: &store,
            providers: &providers,
            clock: &clock,
            writer: &writer,
            tell: &lifecycle::log,
        };
        stop::handle(context, event.payload)
            .await
            .map_err(|error| Diagnostic {
                error_type: "StoreFailed".to_owned(),
                error_message: in_words(&error),
            })
    }))
    .await
}
