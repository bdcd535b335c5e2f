//! Bars and spinners, and how the terminal is left when a person presses Ctrl-C.

use std::{
    io::{self, IsTerminal as _, Write as _},
    process,
    sync::{Mutex, PoisonError},
};

use indicatif::MultiProgress;

use crate::output;

/// The exit code of a process that Ctrl-C ended, as shells have it.
const INTERRUPTED: i32 = 128 + 2;

/// What is drawn now, and the message for a person who interrupts it.
static DRAWN: Mutex<Option<(MultiProgress, &str)>> = Mutex::new(None);

/// Bars that are wiped when Ctrl-C ends the command; `left` is printed then.
pub(crate) fn bars(left: &'static str) -> MultiProgress {
    let bars = MultiProgress::new();
    *DRAWN.lock().unwrap_or_else(PoisonError::into_inner) = Some((bars.clone(), left));
    bars
}

/// What is printed when Ctrl-C ends a command that draws no bars.
pub(crate) fn on_interrupt(left: &'static str) {
    bars(left);
}

/// Takes back the `^C` that a terminal echoes: the cursor is at the right edge of the last bar, so
/// it has begun a line of its own, and what is wiped next would be one line too low.
pub(crate) fn forget_echo(bars: &MultiProgress) {
    if io::stdin().is_terminal() && !bars.is_hidden() {
        let taken_back = "\r\u{1b}[2K\u{1b}[1A\u{1b}[999C";
        io::stderr().write_all(taken_back.as_bytes()).ok();
    }
}

/// Ends the process on Ctrl-C as it would end by itself, but with a terminal that is in order.
pub(crate) fn end_on_interrupt() {
    tokio::spawn(async {
        if tokio::signal::ctrl_c().await.is_err() {
            return;
        }
        let drawn = DRAWN.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((bars, left)) = drawn {
            forget_echo(&bars);
            // They are wiped first, and not drawn again before this ends.
            bars.suspend(|| {
                output::remark(&format!("{left}\n"));
                process::exit(INTERRUPTED)
            });
        }
        process::exit(INTERRUPTED);
    });
}
