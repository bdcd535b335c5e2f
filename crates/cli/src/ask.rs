//! Asking a person before something is done that cannot be taken back lightly.

use std::io::{self, BufRead as _, IsTerminal as _};

use crate::{commands::Format, exit::UsageError, output};

/// Whether the person says yes. Anything but `y` or `yes` is a no.
///
/// # Errors
/// A usage error where standard input is not a terminal, or a program reads the result: `--yes`
/// is the answer there.
pub fn confirm(question: &str, format: Format) -> anyhow::Result<bool> {
    let why_not = match format {
        Format::Json => Some("--format json asks no questions"),
        Format::Table if !io::stdin().is_terminal() => Some("Not a terminal"),
        Format::Table => None,
    };
    if let Some(why_not) = why_not {
        let message = format!("{question} {why_not}: pass --yes to confirm");
        return Err(UsageError(message).into());
    }
    output::remark(&format!("{question} [y/N] "));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
