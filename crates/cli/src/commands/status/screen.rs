//! The terminal's alternate screen, redrawn in place, and its keys.

use std::io::{self, IsTerminal as _, Write as _};

use crossterm::{
    cursor::{Hide, MoveTo, Show},
    event::{Event, EventStream, KeyCode, KeyEvent, KeyEventKind, KeyModifiers},
    execute, queue,
    style::Print,
    terminal::{
        BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen,
        LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
    },
};
use futures_util::StreamExt as _;

use crate::output;

/// The number of lines if the terminal does not report its size.
const USUAL_HEIGHT: u16 = 24;

/// What a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyAction {
    Leave,
    /// Moves so many lines down, or up.
    Scroll(isize),
}

/// The terminal's alternate screen, left on drop.
#[derive(Debug)]
pub(super) struct Screen {
    stdout: io::Stdout,
    events: EventStream,
}

impl Screen {
    /// Takes over the terminal; its previous content comes back afterwards.
    pub(super) fn open() -> anyhow::Result<Self> {
        if !io::stdout().is_terminal() {
            bail_usage!("--watch needs a terminal; programs ask again with -o json");
        }
        let mut stdout = io::stdout();
        enable_raw_mode()?;
        let screen = Self { stdout: io::stdout(), events: EventStream::new() };
        execute!(stdout, EnterAlternateScreen, Hide)?;
        Ok(screen)
    }

    /// Waits for a key that means something, or for another size of the terminal.
    pub(super) async fn key_action(&mut self) -> io::Result<KeyAction> {
        loop {
            match self.events.next().await.transpose()? {
                // The terminal is gone.
                None => return Ok(KeyAction::Leave),
                Some(Event::Resize(..)) => return Ok(KeyAction::Scroll(0)),
                Some(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                    if let Some(action) = key_action(key, Self::height()) {
                        return Ok(action);
                    }
                }
                Some(_) => {}
            }
        }
    }

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
        disable_raw_mode().ok();
    }
}

/// The keys of pagers: arrows and vi's letters, pages, both ends, and `q`.
#[expect(clippy::wildcard_enum_match_arm, reason = "most keys mean nothing")]
fn key_action(key: KeyEvent, height: usize) -> Option<KeyAction> {
    // A few lines stay, so that the eye finds its place.
    let page = isize::try_from(height * 2 / 3).unwrap_or(1);
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
            Some(KeyAction::Leave)
        }
        KeyCode::Char('q') | KeyCode::Esc => Some(KeyAction::Leave),
        KeyCode::Down | KeyCode::Char('j') => Some(KeyAction::Scroll(1)),
        KeyCode::Up | KeyCode::Char('k') => Some(KeyAction::Scroll(-1)),
        KeyCode::PageDown | KeyCode::Char(' ') => Some(KeyAction::Scroll(page)),
        KeyCode::PageUp => Some(KeyAction::Scroll(-page)),
        KeyCode::Home | KeyCode::Char('g') => Some(KeyAction::Scroll(isize::MIN)),
        KeyCode::End | KeyCode::Char('G') => Some(KeyAction::Scroll(isize::MAX)),
        _ => None,
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
    fn a_key_scrolls_or_leaves() {
        let key = |code| key_action(KeyEvent::new(code, KeyModifiers::NONE), 24);
        assert_eq!(key(KeyCode::Char('q')), Some(KeyAction::Leave));
        assert_eq!(key(KeyCode::PageDown), Some(KeyAction::Scroll(16)));
        assert_eq!(key(KeyCode::Up), Some(KeyAction::Scroll(-1)));
        // Ctrl-C is a key here; a plain `c` is none.
        assert_eq!(key(KeyCode::Char('c')), None);
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(key_action(interrupt, 24), Some(KeyAction::Leave));
    }

    #[test]
    fn as_many_lines_are_drawn_as_there_is_room_for() {
        assert_eq!(clipped("a\nb\nc\n", 2), "a\nb");
        assert_eq!(clipped("a\nb\nc\n", 3), "a\nb\nc");
        assert_eq!(clipped("a\nb\n", 9), "a\nb");
        assert_eq!(clipped("", 9), "");
    }
}
