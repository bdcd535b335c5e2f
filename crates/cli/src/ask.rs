//! Asks the person at the terminal: for confirmation before an action that cannot easily be undone, or
//! for what a command does not know.

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
    if let Some(why_not) = why_not(context) {
        bail_usage!("cannot ask \"{question}\" {why_not}: pass --yes to confirm");
    }
    let answer = answer(&format!("{question} [y/N] "))?;
    anyhow::ensure!(matches!(answer.to_lowercase().as_str(), "y" | "yes"), "{otherwise}");
    Ok(())
}

/// Returns why nothing can be asked; `None` if a person can answer.
pub(crate) fn why_not(context: &Context) -> Option<&'static str> {
    match context.format {
        Format::Json | Format::Csv => Some("with --output json"),
        Format::Table if !io::stdin().is_terminal() => Some("without a terminal"),
        Format::Table => None,
    }
}

/// Asks for a line. The answer is empty at the end of the input, too.
pub(crate) fn answer(question: &str) -> io::Result<String> {
    output::remark(question);
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(answer.trim().to_owned())
}
