//! The `start` Lambda: wiring only.

// The layout of nested futures is deeper than the default limit.
#![recursion_limit = "256"]

use std::process::ExitCode;

use lifecycle::{Access, Context, lambda::serve};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let handle = async |context: Context<'_>, &(): &(), event| start::handle(context, event).await;
    serve(Access::Change, |_| Ok(()), handle).await
}
