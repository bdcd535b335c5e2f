//! What every command says first while something is paused.

use domain::configuration::{Overrides, Pause, PauseScope};

use crate::{
    output::{self, Format},
    print::Screen,
};

/// Says, above what a command prints for people, what is paused.
pub(crate) fn remark_on_pauses(overrides: &Overrides, screen: &Screen) {
    if screen.format == Format::Table {
        for line in lines(overrides, screen) {
            output::remark(&format!("{line}\n"));
        }
    }
}

/// Returns a line for each pause in force.
pub(crate) fn lines(overrides: &Overrides, screen: &Screen) -> Vec<String> {
    let active = overrides.pauses().filter(|one| one.is_active(screen.now));
    active.map(|one| paused(one, screen)).collect()
}

/// Says what a pause keeps from being sent, until when, whose it is, and how to end it.
pub(crate) fn paused(pause: &Pause, screen: &Screen) -> String {
    let Pause { scope, starts, ends_at, by, why, .. } = pause;
    let scope_words = match scope {
        PauseScope::Everything => "Everything".to_owned(),
        PauseScope::Account(_) | PauseScope::Schedule(_) | PauseScope::Tag(_) => {
            format!("What is of {scope}")
        }
    };
    let sent = if *starts { "only starts are sent" } else { "nothing is sent" };
    let (until, resume) = (screen.time(*ends_at), scope.option());
    format!(
        "{scope_words} is paused until {until} by {by} ({why}): {sent}. `offhours resume{resume}` \
         ends that."
    )
}
