//! What stop, start and poll-status share: the way from AWS to a handler and back.

use std::process::ExitCode;

use domain::record::Writer;
use environment::{
    Clock, EventBus, Tokens,
    aws::{self, SdkConfig},
    bus::BusName,
    in_words, logging,
    settings::{self, SettingError},
};
use lambda_runtime::{Diagnostic, LambdaEvent, service_fn};
use serde::Deserialize;
use store::{Store, Tables};

use crate::{Access, Context, Error, Providers, Report, Tell, report::telling};

/// Serves a function until AWS ends it. `access` says which tokens it uses; `with` makes what its handler needs besides the context.
///
/// A setting that is missing or wrong ends the start with one line that names it.
pub async fn serve<With, Event>(
    access: Access,
    with: impl FnOnce(&SdkConfig) -> Result<With, SettingError>,
    handle: impl AsyncFn(Context<'_>, &With, Event) -> Result<Report, Error>,
) -> ExitCode
where
    Event: for<'de> Deserialize<'de>,
{
    let started = match logging::json() {
        Ok(()) => run(access, with, handle).await,
        Err(error) => Err(error.into()),
    };
    logging::ended(started)
}

async fn run<With, Event>(
    access: Access,
    with: impl FnOnce(&SdkConfig) -> Result<With, SettingError>,
    handle: impl AsyncFn(Context<'_>, &With, Event) -> Result<Report, Error>,
) -> anyhow::Result<()>
where
    Event: for<'de> Deserialize<'de>,
{
    // All settings are read before anybody asks AWS for anything.
    let prefix = settings::table_prefix()?;
    let bus = BusName::from_settings()?;
    let endpoints = Providers::endpoints_from_settings()?;
    let config = aws::config().await;
    let with = with(&config)?;
    let function = Function {
        store: Store::connect(&config, Tables::prefixed(&prefix)),
        providers: Providers::new(
            access,
            Tokens::from_aws(&config),
            endpoints,
            provider::http_client()?,
        ),
        clock: Clock::machine(),
        bus: EventBus::connect(&config, bus),
        stack: settings::stack(&prefix).to_owned(),
    };
    let served = lambda_runtime::run(service_fn(async |event: LambdaEvent<Event>| {
        let writer = Writer(event.context.request_id);
        let work = async |context: Context<'_>| handle(context, &with, event.payload).await;
        function.invoke(&writer, work).await
    }));
    served.await.map_err(anyhow::Error::from_boxed)
}

/// What is made once, at the start, and lent to every invocation.
struct Function {
    store: Store,
    providers: Providers,
    clock: Clock,
    bus: EventBus,
    stack: String,
}

impl Function {
    async fn invoke(
        &self,
        writer: &Writer,
        work: impl AsyncFnOnce(Context<'_>) -> Result<Report, Error>,
    ) -> Result<Report, Diagnostic> {
        let work = async |tell: &dyn Tell| {
            let context = Context {
                store: &self.store,
                providers: &self.providers,
                clock: &self.clock,
                writer,
                tell,
            };
            work(context).await
        };
        let (result, metrics) = telling(&self.bus, &self.stack, work).await;
        metrics.write(&self.stack, self.clock.now());
        result.map_err(|error| Diagnostic {
            error_type: error.kind().to_owned(),
            error_message: in_words(&error),
        })
    }
}
