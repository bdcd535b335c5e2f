//! Who gives a command, and why.

use domain::{
    activity::Author,
    text::{LONGEST_REASON, one_line},
};

use crate::connection::Session;

/// Why a command is given.
#[derive(Debug, clap::Args)]
pub(crate) struct ReasonArgs {
    /// Reason that `offhours activity` shows.
    #[arg(long, alias = "why", value_name = "TEXT", value_parser = reason)]
    pub(crate) reason: Option<String>,
}

/// Parses a reason or a message: one line of limited length.
pub(crate) fn reason(text: &str) -> Result<String, String> {
    let text = text.trim();
    match text.chars().count() {
        0 => Err("expected some words".to_owned()),
        1..=LONGEST_REASON => Ok(one_line(text, LONGEST_REASON).into_owned()),
        length => Err(format!("{length} characters: expected {LONGEST_REASON} at most")),
    }
}

/// Establishes who gives the command.
///
/// # Errors
/// If that cannot be established: nothing may be changed then.
pub(crate) async fn author(session: &Session, why: Option<String>) -> anyhow::Result<Author> {
    let by = session.person().await?;
    Ok(Author { by, why })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_line_of_limited_length() {
        assert_eq!(reason(" release night "), Ok("release night".to_owned()));
        reason(&"ä".repeat(LONGEST_REASON)).unwrap();
        assert_eq!(reason("ok\nprod-db stopped\u{1b}"), Ok("ok prod-db stopped\\u001b".to_owned()));
        for refused in [&"ä".repeat(LONGEST_REASON + 1), "", " "] {
            reason(refused).unwrap_err();
        }
    }
}
