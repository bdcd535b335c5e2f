//! Asking a person before something is done that cannot be taken back lightly.

use std::io::{self, BufRead as _, IsTerminal as _};

use crate::{exit::UsageError, output};

/// Whether the person says yes. Anything but `y` or `yes` is a no.
///
/// # Errors
/// A usage error where standard input is not a terminal: `--yes` is the answer there.
pub fn confirm(question: &str) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() {
        let message = format!("{question} Not a terminal: pass --yes to confirm");
        return Err(UsageError(message).into());
    }
    output::remark(&format!("{question} [y/N] "));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
