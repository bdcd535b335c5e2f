//! What is paused, in words.

use domain::{
    ScheduleName,
    configuration::{Overrides, Pause, PauseScope},
};
use jiff::{Timestamp, tz::TimeZone};

use crate::time::short;

/// Returns a line for each pause in force.
#[must_use]
pub fn lines(overrides: &Overrides, zone: &TimeZone, now: Timestamp) -> Vec<String> {
    let active = overrides.pauses().filter(|one| one.is_active(now));
    active.map(|one| in_words(one, zone, now)).collect()
}

/// Says what a pause keeps from being sent, until when, whose it is, and how to end it.
#[must_use]
pub fn in_words(pause: &Pause, zone: &TimeZone, now: Timestamp) -> String {
    let Pause { scope, by, why, .. } = pause;
    let scope_words = match scope {
        PauseScope::Everything => "Everything".to_owned(),
        PauseScope::Account(_) | PauseScope::Schedule(_) | PauseScope::Tag(_) => {
            format!("Everything of {scope}")
        }
    };
    let (until, sent, resume) = (short(pause.ends_at, zone, now), sent(pause), scope.option());
    format!(
        "{scope_words} is paused until {until} by {by} ({why}): {sent}. `offhours resume{resume}` \
         ends that."
    )
}

/// Iterates over the pauses of all resources that follow a schedule, in force or not.
pub fn of_schedule<'a>(
    overrides: &'a Overrides,
    name: &ScheduleName,
) -> impl Iterator<Item = &'a Pause> {
    overrides.pauses().filter(move |pause| match &pause.scope {
        PauseScope::Everything => true,
        PauseScope::Schedule(paused) => paused == name,
        PauseScope::Account(_) | PauseScope::Tag(_) => false,
    })
}

/// Returns what is sent during a pause.
#[must_use]
pub fn sent(pause: &Pause) -> &'static str {
    if pause.starts { "only starts are sent" } else { "nothing is sent" }
}
