//! Checks for differing clocks: the protocol allows five seconds.

use domain::record::SKEW;
use jiff::{SignedDuration, Timestamp};

use super::{Check, Finding};
use crate::time::length;

/// The `Date` header of a response is truncated to whole seconds.
const CUT: SignedDuration = SignedDuration::from_secs(1);

/// Compares this machine's clock with another one, which reported `theirs` just before `ours`.
pub(crate) fn compare(whose: &str, theirs: Option<Timestamp>, ours: Timestamp) -> Finding {
    let Some(theirs) = theirs else {
        return Finding::hint(Check::Clock, format!("{whose} does not give its time"));
    };
    let ahead = ours.duration_since(theirs);
    let behind = theirs.duration_since(ours);
    let (amount, word) = if ahead > SKEW + CUT {
        (ahead, "ahead of")
    } else if behind > SKEW {
        (behind, "behind")
    } else {
        return Finding::ok(
            Check::Clock,
            format!("this machine and {whose} agree within {} s", SKEW.as_secs()),
        );
    };
    Finding::warning(
        Check::Clock,
        format!("this machine is {} {word} {whose}", length(amount)),
        "set this machine's clock by NTP; if others differ as well, the other clock is wrong",
    )
}

/// Names the time zone database that this program judges schedules by.
pub(crate) fn time_zones() -> Finding {
    let version = domain::schedule::time_zone_database();
    Finding::ok(Check::Clock, format!("the time zone database in this program is {version}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{doctor::Verdict, scene::monday};

    #[test]
    fn more_than_five_seconds_either_way_is_a_warning() {
        let ours = monday("10:00:10.5");
        for (theirs, verdict, words) in [
            ("10:00:10", Verdict::Ok, "agree"),
            // Truncated to the second: it may have been 05.9.
            ("10:00:05", Verdict::Ok, "agree"),
            ("10:00:15", Verdict::Ok, "agree"),
            ("10:00:04", Verdict::Warning, "7s ahead of the store"),
            ("10:00:16", Verdict::Warning, "6s behind the store"),
            ("07:50:00", Verdict::Warning, "2h 10m ahead of the store"),
        ] {
            let finding = compare("the store", Some(monday(theirs)), ours);
            assert_eq!(finding.verdict, verdict, "{theirs}: {finding:?}");
            assert!(finding.found.contains(words), "{finding:?}");
        }
        assert_eq!(compare("the store", None, ours).verdict, Verdict::Hint);
    }
}
