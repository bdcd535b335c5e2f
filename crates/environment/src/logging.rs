//! Log lines: JSON on stdout for a Lambda, plain on stderr for a person.

use std::io::IsTerminal as _;

use tracing_subscriber::{EnvFilter, fmt};

/// Logs as JSON lines, one per event, as CloudWatch reads them. Level by `RUST_LOG`, else `info`.
pub fn json() {
    let filter = filter("info");
    fmt()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_env_filter(filter)
        // CloudWatch stamps every line itself.
        .without_time()
        .init();
}

/// Logs as plain lines on stderr. Level by `RUST_LOG`, else `warn`.
pub fn plain() {
    fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        // The embedded engine warns of every conditional write that meets another: daily bread.
        .with_env_filter(filter("warn,dynoxide=error"))
        .without_time()
        .init();
}

fn filter(default: &str) -> EnvFilter {
    EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default))
}

/// An error and its causes in one line, for a record, a report or an alarm.
#[must_use]
pub fn in_words(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words.push_str(": ");
        words.push_str(&error.to_string());
        cause = error.source();
    }
    words
}
