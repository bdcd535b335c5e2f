//! The `publish` Lambda: wiring only.

use std::process::ExitCode;

use domain::record::Writer;
use environment::{
    Clock, aws,
    bucket::Bucket,
    lambda::{self, Diagnostic, Function},
    settings,
};
use publish::Published;
use serde::de::IgnoredAny;
use store::{Reader, Tables};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    lambda::serve(Publish::start()).await
}

struct Publish {
    store: Reader,
    bucket: Bucket,
    clock: Clock,
}

impl Publish {
    async fn start() -> anyhow::Result<Self> {
        let prefix = settings::table_prefix()?;
        let floor = settings::floor()?;
        let bucket = settings::required(settings::BUCKET)?;
        let config = aws::config().await;
        Ok(Self {
            store: Reader::connect(&config, Tables::prefixed(&prefix)).under(floor),
            bucket: Bucket::connect(&config, &bucket),
            clock: Clock::machine(),
        })
    }
}

impl Function for Publish {
    type Event = IgnoredAny;
    type Answer = Published;

    async fn invoke(&self, _: IgnoredAny, _: Writer) -> Result<Published, Diagnostic> {
        let published = publish::handle(&self.store, &self.bucket, self.clock.now()).await;
        published.map_err(|error| match error {
            publish::Error::Bucket(_) => lambda::failed("BucketFailed", &error),
            publish::Error::Store(_) | publish::Error::History(_) | publish::Error::Csv(_) => {
                lambda::failed("StoreFailed", &error)
            }
        })
    }
}
