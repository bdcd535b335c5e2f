//! What the stop, start and poll-status functions share on AWS.

use std::process::ExitCode;

use domain::record::Writer;
use environment::{
    Clock, EventBus, Tokens,
    aws::{self, SdkConfig},
    bus::BusName,
    lambda::{self, Diagnostic},
    settings::{self, SettingError},
};
use futures_util::future::LocalBoxFuture;
use serde::de::DeserializeOwned;
use store::{Store, Tables};

use crate::{
    Access, Context, Error, Providers, Report,
    report::{Listener, Log, publishing},
};

/// A handler. Its future is boxed: nested ones have types too deep for the compiler.
pub type Handle<With, Event> =
    for<'a> fn(Context<'a>, &'a With, Event) -> LocalBoxFuture<'a, Result<Report, Error>>;

/// Serves a function until AWS ends it. `access` says which tokens it uses; `with` creates what its
/// handler needs besides the context.
pub async fn serve<With, Event: DeserializeOwned>(
    access: Access,
    with: impl FnOnce(&SdkConfig) -> Result<With, SettingError>,
    handle: Handle<With, Event>,
) -> ExitCode {
    lambda::serve(Function::start(access, with, handle)).await
}

/// What is created once, at the start, and lent to every invocation.
struct Function<With, Event> {
    store: Store,
    providers: Providers,
    clock: Clock,
    bus: EventBus,
    stack: String,
    with: With,
    handle: Handle<With, Event>,
}

impl<With, Event> Function<With, Event> {
    async fn start(
        access: Access,
        with: impl FnOnce(&SdkConfig) -> Result<With, SettingError>,
        handle: Handle<With, Event>,
    ) -> anyhow::Result<Self> {
        // All settings are read before the first request to AWS.
        let prefix = settings::table_prefix()?;
        let floor = settings::floor()?;
        let bus = BusName::from_settings()?;
        let endpoints = Providers::endpoints_from_settings()?;
        let endpoints = endpoints.allowing(Providers::account_urls_from_settings()?);
        let config = aws::config().await;
        let mut tokens = Tokens::from_aws(&config);
        if settings::optional(settings::LOCAL_TOKENS).as_deref() == Some("1") {
            tokens = tokens.and_local();
        }
        Ok(Self {
            with: with(&config)?,
            handle,
            store: Store::connect(&config, Tables::prefixed(&prefix)).under(floor),
            providers: Providers::new(access, tokens, endpoints, provider::http_client()?),
            clock: Clock::machine(),
            bus: EventBus::connect(&config, bus),
            stack: settings::stack(&prefix).to_owned(),
        })
    }
}

impl<With, Event: DeserializeOwned> lambda::Function for Function<With, Event> {
    type Event = Event;
    type Answer = Report;

    async fn invoke(&self, event: Event, writer: Writer) -> Result<Report, Diagnostic> {
        let work = async |listener: &dyn Listener| {
            let context = Context {
                store: &self.store,
                providers: &self.providers,
                clock: &self.clock,
                writer: &writer,
                listener,
            };
            (self.handle)(context, &self.with, event).await
        };
        let (result, metrics) = publishing(&self.bus, &self.stack, &Log, work).await;
        metrics.write(&self.stack, self.clock.now());
        result.map_err(|error| lambda::failed(error.kind(), &error))
    }
}
