//! The `dispatch` Lambda: wiring only.

use std::process::ExitCode;

use aws_lambda_events::eventbridge::EventBridgeEvent;
use dispatch::{DispatchReport, journal::Journal};
use domain::record::Writer;
use environment::{
    Clock, LambdaFunctions, aws, check,
    lambda::{self, Diagnostic, Function},
    settings,
};
use store::{Reader, Tables};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    lambda::serve(Dispatch::start()).await
}

struct Dispatch {
    store: Reader,
    functions: LambdaFunctions,
    clock: Clock,
    journal: Journal,
}

impl Dispatch {
    async fn start() -> anyhow::Result<Self> {
        let prefix = settings::table_prefix()?;
        let floor = settings::floor()?;
        let config = aws::config().await;
        Ok(Self {
            functions: LambdaFunctions::stop_and_start(&config)?,
            store: Reader::connect(&config, Tables::prefixed(&prefix)).under(floor),
            clock: Clock::machine(),
            journal: Journal::default(),
        })
    }
}

impl Function for Dispatch {
    type Event = EventBridgeEvent;
    type Answer = DispatchReport;

    async fn invoke(
        &self,
        timer: EventBridgeEvent,
        _: Writer,
    ) -> Result<DispatchReport, Diagnostic> {
        let now = self.clock.now();
        let ticked =
            dispatch::handle(&self.store, &self.functions, check::passed, timer, now).await;
        let dispatched = ticked.map_err(|error| lambda::failed("StoreFailed", &error))?;
        self.journal.log_tick(&dispatched);
        Ok(dispatched)
    }
}
