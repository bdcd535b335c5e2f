//! Asks for confirmation before an action that cannot easily be undone.

use std::io::{self, BufRead as _, IsTerminal as _};

use crate::{
    context::Context,
    output::{self, Format},
};

/// Asks the question. With `--yes`, nothing is asked.
///
/// # Errors
/// `otherwise`, which says what was not done, after any answer but `y` or `yes`. A usage error if
/// standard input is not a terminal, or if the output is for a program: pass `--yes` there.
pub(crate) fn confirm(question: &str, otherwise: &str, context: &Context) -> anyhow::Result<()> {
    if context.yes {
        return Ok(());
    }
    let why_not = match context.format {
        Format::Json | Format::Csv => Some("with --output json"),
        Format::Table if !io::stdin().is_terminal() => Some("without a terminal"),
        Format::Table => None,
    };
    if let Some(why_not) = why_not {
        bail_usage!("cannot ask \"{question}\" {why_not}: pass --yes to confirm");
    }
    output::remark(&format!("{question} [y/N] "));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    let is_yes = matches!(answer.trim().to_lowercase().as_str(), "y" | "yes");
    anyhow::ensure!(is_yes, "{otherwise}");
    Ok(())
}
