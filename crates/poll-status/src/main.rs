//! The `poll-status` Lambda: wiring only.

use std::process::ExitCode;

use environment::LambdaFunctions;
use lifecycle::{Access, lambda::serve};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    serve(Access::Read, LambdaFunctions::stop_and_start, |context, functions, event| {
        Box::pin(poll_status::handle(context, functions, event))
    })
    .await
}
