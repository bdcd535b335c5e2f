//! The `start` Lambda: wiring only.

use std::process::ExitCode;

use lifecycle::{Access, lambda::serve};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    serve(Access::Change, |_| Ok(()), |context, (), event| Box::pin(start::handle(context, event)))
        .await
}
