//! The terminal's alternate screen, redrawn in place.

use std::io::{self, IsTerminal as _, Write as _};

use crossterm::{
    cursor::{Hide, MoveTo, Show},
    execute, queue,
    style::Print,
    terminal::{
        BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen,
        LeaveAlternateScreen, size,
    },
};

use crate::{exit::UsageError, output};

/// The number of lines if the terminal does not report its size.
const USUAL_HEIGHT: u16 = 24;

/// The terminal's alternate screen, left on drop.
#[derive(Debug)]
pub(super) struct Screen {
    stdout: io::Stdout,
}

impl Screen {
    /// Takes over the terminal; its previous content comes back afterwards.
    pub(super) fn open() -> anyhow::Result<Self> {
        if !io::stdout().is_terminal() {
            let message = "--watch needs a terminal; programs ask again with -o json";
            return Err(UsageError(message.to_owned()).into());
        }
        let mut stdout = io::stdout();
        execute!(stdout, EnterAlternateScreen, Hide)?;
        Ok(Self { stdout })
    }

    /// The number of lines of the terminal.
    pub(super) fn height() -> usize {
        size().map_or(USUAL_HEIGHT, |(_, height)| height).into()
    }

    /// Replaces what was shown with a text, line by line, so that nothing flickers.
    pub(super) fn draw(&self, text: &str) -> io::Result<()> {
        let mut stdout = self.stdout.lock();
        queue!(stdout, BeginSynchronizedUpdate, MoveTo(0, 0))?;
        let text = output::printable(text);
        for line in clipped(&text, Self::height()).split_inclusive('\n') {
            let whole = line.trim_end_matches('\n');
            queue!(stdout, Print(whole), Clear(ClearType::UntilNewLine))?;
            if whole.len() < line.len() {
                queue!(stdout, Print("\r\n"))?;
            }
        }
        queue!(stdout, Clear(ClearType::FromCursorDown), EndSynchronizedUpdate)?;
        stdout.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that has gone away does not need to be restored.
        execute!(self.stdout, Show, LeaveAlternateScreen).ok();
    }
}

/// The first lines, as many as fit, without a line break after the last.
fn clipped(text: &str, height: usize) -> &str {
    let end = text.match_indices('\n').nth(height.saturating_sub(1));
    match end {
        Some((end, _)) => &text[..end],
        None => text.trim_end_matches('\n'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_lines_are_drawn_as_there_is_room_for() {
        assert_eq!(clipped("a\nb\nc\n", 2), "a\nb");
        assert_eq!(clipped("a\nb\nc\n", 3), "a\nb\nc");
        assert_eq!(clipped("a\nb\n", 9), "a\nb");
        assert_eq!(clipped("", 9), "");
    }
}
