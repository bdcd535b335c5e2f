//! What a person changed, in words.

use domain::activity::{Action, Activity};
use jiff::tz::TimeZone;

use crate::{joined, time::local};

/// What an entry is about, and what it changed.
#[must_use]
pub fn details(entry: &Activity, zone: &TimeZone) -> String {
    details_of(entry, &entry.action.targets().join(", "), zone)
}

/// The same, in other words for what it is about.
#[must_use]
pub fn details_of(entry: &Activity, targets: &str, zone: &TimeZone) -> String {
    match &entry.action {
        Action::OverrideSet { ends_at, .. } | Action::Paused { ends_at, .. } => {
            let from = entry.begins_later().map(|at| format!("from {} ", local(at, zone)));
            format!("{targets} {}until {}", from.unwrap_or_default(), local(*ends_at, zone))
        }
        Action::Applied { generation, repeats, changes } => {
            let repeats = repeats.map(|of| format!("a rollback to generation {of}"));
            let all = joined(repeats.into_iter().chain(changes.iter().cloned()), "; ");
            format!("generation {generation}: {all}")
        }
        Action::Command { .. }
        | Action::OverrideCleared { .. }
        | Action::Resumed { .. }
        | Action::Approved { .. }
        | Action::Forgotten { .. } => targets.to_owned(),
    }
}
