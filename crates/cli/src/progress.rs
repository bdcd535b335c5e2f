//! Progress bars and spinners, and the cleanup of the terminal on Ctrl-C.

use std::{
    io::{self, IsTerminal as _, Write as _},
    process,
    sync::{Mutex, PoisonError},
};

use indicatif::MultiProgress;

use crate::output;

/// The conventional exit code of a process that Ctrl-C ended.
const INTERRUPTED: i32 = 128 + 2;

/// The bars now drawn, and the message for a person who interrupts them.
static DRAWN: Mutex<Option<(MultiProgress, &str)>> = Mutex::new(None);

/// Creates bars that are cleared when Ctrl-C ends the command; `left` is printed then, drawn or not.
pub(crate) fn bars(left: &'static str) -> MultiProgress {
    let bars = MultiProgress::new();
    *DRAWN.lock().unwrap_or_else(PoisonError::into_inner) = Some((bars.clone(), left));
    bars
}

/// Erases the `^C` that a terminal echoes: the cursor is at the right edge of the last bar, so the
/// echo has started a new line, and clearing would begin one line too low.
pub(crate) fn forget_echo(bars: &MultiProgress) {
    if io::stdin().is_terminal() && !bars.is_hidden() {
        let taken_back = "\r\u{1b}[2K\u{1b}[1A\u{1b}[999C";
        io::stderr().write_all(taken_back.as_bytes()).ok();
    }
}

/// Ends the process on Ctrl-C, as the signal would by default, but leaves a clean terminal.
pub(crate) fn end_on_interrupt() {
    tokio::spawn(async {
        if tokio::signal::ctrl_c().await.is_err() {
            return;
        }
        let drawn = DRAWN.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((bars, left)) = drawn {
            forget_echo(&bars);
            // The bars are cleared first, and not drawn again before the process ends.
            bars.suspend(|| {
                output::remark(&format!("{left}\n"));
                process::exit(INTERRUPTED)
            });
        }
        process::exit(INTERRUPTED);
    });
}
