//! The `poll-status` Lambda: wiring only.

// The layout of nested futures is deeper than the default limit.
#![recursion_limit = "256"]

use std::process::ExitCode;

use environment::LambdaFunctions;
use lifecycle::{Access, Context, lambda::serve};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let handle = async |context: Context<'_>, functions: &LambdaFunctions, event| {
        poll_status::handle(context, functions, event).await
    };
    serve(Access::Read, LambdaFunctions::stop_alone, handle).await
}
