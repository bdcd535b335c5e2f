//! Asks for confirmation before an action that cannot easily be undone.

use std::io::{self, BufRead as _, IsTerminal as _};

use crate::{
    context::Context,
    output::{self, Format},
};

/// Asks the question and reports whether the answer was yes. Anything but `y` or `yes` is a no; with
/// `--yes`, nothing is asked.
///
/// # Errors
/// A usage error if standard input is not a terminal, or if the output is for a program: pass
/// `--yes` there.
pub(crate) fn confirm(question: &str, context: &Context) -> anyhow::Result<bool> {
    if context.yes {
        return Ok(true);
    }
    let why_not = match context.format {
        Format::Json | Format::Csv => Some("--output json asks no questions"),
        Format::Table if !io::stdin().is_terminal() => Some("Not a terminal"),
        Format::Table => None,
    };
    if let Some(why_not) = why_not {
        bail_usage!("{question} {why_not}: pass --yes to confirm");
    }
    output::remark(&format!("{question} [y/N] "));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
