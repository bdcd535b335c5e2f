//! Log lines: JSON on stdout for a Lambda, plain text on stderr for a person.

use std::{io::IsTerminal as _, process::ExitCode};

use tracing_subscriber::{
    filter::Targets, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

use crate::settings::{SettingError, optional};

/// The setting for the levels that are logged: `info`, or `warn,lifecycle=debug`.
const LEVELS: &str = "RUST_LOG";

/// Starts logging as JSON lines, one per event, as CloudWatch reads them. The level is that of
/// `RUST_LOG`, or else `info`.
///
/// Fails if `RUST_LOG` cannot be parsed; logging works even then.
pub fn json() -> Result<(), SettingError> {
    let (levels, read) = match levels() {
        Ok(levels) => (levels, Ok(())),
        Err(wrong) => (None, Err(wrong)),
    };
    let lines = fmt::layer()
        .json()
        .flatten_event(true)
        // Lambda takes a line without a timestamp for one of the level INFO.
        .with_current_span(false);
    tracing_subscriber::registry().with(lines).with(levels.unwrap_or_else(|| known("info"))).init();
    read
}

/// Ends a program: logs its error as one line, and returns the exit code.
pub fn finish(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("Ended: {}", in_words(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

/// Starts logging as plain lines on stderr. The levels are those of `RUST_LOG`, or else the usual ones.
pub fn plain(usual: &str) {
    let lines = fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .without_time();
    let levels = levels().ok().flatten();
    tracing_subscriber::registry().with(lines).with(levels.unwrap_or_else(|| known(usual))).init();
}

/// Returns the levels that the environment names, if any.
fn levels() -> Result<Option<Targets>, SettingError> {
    let Some(text) = optional(LEVELS) else {
        return Ok(None);
    };
    match text.parse() {
        Ok(levels) => Ok(Some(levels)),
        Err(error) => {
            let problem = format!("is `{text}`, which is not a list of levels: {error}");
            Err(SettingError::new(LEVELS, problem))
        }
    }
}

fn known(levels: &str) -> Targets {
    levels.parse().expect("our own levels can be read")
}

/// Logs a warning about an item that is left alone, and returns the reason.
pub fn left_alone(reference: &str, error: &dyn std::error::Error) -> String {
    let reason = in_words(error);
    tracing::warn!(resource.id = reference, "Left {reference} alone: {reason}");
    reason
}

/// Formats an error and its causes in one line, for a record, a report or an alarm.
#[must_use]
pub fn in_words(error: &dyn std::error::Error) -> String {
    match causes_in_words(error) {
        Some(causes) => format!("{error}: {causes}"),
        None => error.to_string(),
    }
}

/// Formats the causes of an error in one line, without its own message; `None` if it has no causes.
#[must_use]
pub fn causes_in_words(error: &dyn std::error::Error) -> Option<String> {
    let causes = std::iter::successors(error.source(), |error| error.source());
    let mut before = error.to_string();
    let mut words = Vec::new();
    for cause in causes {
        let cause = said_by_aws(cause).unwrap_or_else(|| cause.to_string());
        // Some errors repeat their cause in their own words.
        if !before.ends_with(&cause) {
            words.push(cause.clone());
        }
        before = cause;
    }
    (!words.is_empty()).then(|| words.join(": "))
}

/// Returns AWS's own message from an error for which the SDK has no type and only a debug form:
/// `AccessDeniedException` above all.
#[cfg(feature = "aws")]
fn said_by_aws(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let answer = error.downcast_ref::<aws_smithy_types::error::ErrorMetadata>()?;
    answer.message().map(str::to_owned)
}

#[cfg(not(feature = "aws"))]
fn said_by_aws(_: &(dyn std::error::Error + 'static)) -> Option<String> {
    None
}

#[cfg(all(test, feature = "aws"))]
mod tests {
    use super::*;

    #[test]
    fn what_aws_said_is_repeated_in_its_words() {
        let denied = aws_smithy_types::error::ErrorMetadata::builder()
            .code("AccessDeniedException")
            .message("you may not")
            .build();
        let error = anyhow::Error::new(denied).context("failed to invoke stop");
        assert_eq!(in_words(&*error), "failed to invoke stop: you may not");
    }

    #[test]
    fn a_cause_that_an_error_repeats_is_said_once() {
        let refused = anyhow::anyhow!("refused").context("no connection: refused");
        let error = refused.context("failed to send");
        assert_eq!(in_words(&*error), "failed to send: no connection: refused");
    }
}
