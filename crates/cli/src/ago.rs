//! How long something takes or is past, as people say it.

use jiff::{SignedDuration, Timestamp};

/// From an instant until now: `45s`, `3m`, `2h 10m`; `now` for what is not past.
pub(crate) fn ago(at: Timestamp, now: Timestamp) -> String {
    let past = now.duration_since(at);
    if past <= SignedDuration::ZERO {
        return "now".to_owned();
    }
    format!("{} ago", length(past))
}

/// A length in the units that matter.
pub(crate) fn length(duration: SignedDuration) -> String {
    let (days, hours) = (duration.as_hours() / 24, duration.as_hours() % 24);
    let minutes = duration.as_mins() % 60;
    let two = |more: i64, unit, less: i64, lesser| match less {
        0 => format!("{more}{unit}"),
        less => format!("{more}{unit} {less}{lesser}"),
    };
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{}s", duration.as_secs()),
        (0, 0, minutes) => format!("{minutes}m"),
        (0, hours, minutes) => two(hours, "h", minutes, "m"),
        (days, hours, _) => two(days, "d", hours, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_told_in_the_units_that_matter() {
        for (seconds, expected) in [
            (0, "now"),
            (59, "59s ago"),
            (190, "3m ago"),
            (3600, "1h ago"),
            (7810, "2h 10m ago"),
            (26 * 3600, "1d 2h ago"),
        ] {
            let at = Timestamp::UNIX_EPOCH;
            let now = at + SignedDuration::from_secs(seconds);
            assert_eq!(ago(at, now), expected);
        }
    }
}
