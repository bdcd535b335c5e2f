//! Checks for differing clocks: the protocol allows five seconds.

use domain::record::SKEW;
use jiff::{SignedDuration, Timestamp};
use report::time::length;

use super::{Check, Finding};

/// The `Date` header of a response is truncated to whole seconds.
const CUT: SignedDuration = SignedDuration::from_secs(1);

/// Compares this machine's clock with another one, which reported `theirs` just before `ours`.
pub(crate) fn compare(whose: &str, theirs: Timestamp, ours: Timestamp) -> Finding {
    let ahead = ours.duration_since(theirs);
    if (-SKEW..=SKEW + CUT).contains(&ahead) {
        let found = format!("this machine and {whose} agree within {} s", SKEW.as_secs());
        return Finding::ok(Check::Clock, found);
    }
    let word = if ahead.is_positive() { "ahead of" } else { "behind" };
    Finding::warning(
        Check::Clock,
        format!("this machine is {} {word} {whose}", length(ahead)),
        "set this machine's clock by NTP; if others differ as well, the other clock is wrong",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{doctor::Level, scene::monday};

    #[test]
    fn more_than_five_seconds_either_way_is_a_warning() {
        let ours = monday("10:00:10.5");
        for (theirs, level, words) in [
            ("10:00:10", Level::Ok, "agree"),
            // Truncated to the second: it may have been 05.9.
            ("10:00:05", Level::Ok, "agree"),
            ("10:00:15", Level::Ok, "agree"),
            ("10:00:04", Level::Warning, "7s ahead of the store"),
            ("10:00:16", Level::Warning, "6s behind the store"),
            ("07:50:00", Level::Warning, "2h 10m ahead of the store"),
        ] {
            let finding = compare("the store", monday(theirs), ours);
            assert_eq!(finding.level, level, "{theirs}: {finding:?}");
            assert!(finding.found.contains(words), "{finding:?}");
        }
    }
}
