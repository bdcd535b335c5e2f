//! How long to wait after consecutive failures.

use jiff::{SignedDuration, Timestamp, TimestampRound, Unit};

/// The longest wait, and the wait between two attempts at a start that the provider refuses.
pub const LONGEST: SignedDuration = SignedDuration::from_mins(15);

/// The shortest wait after rounding.
const SHORTEST: SignedDuration = SignedDuration::from_secs(30);

/// The longest wait that a provider may ask for. Both count requests over one hour (DODESC,
/// HZSPEC): a longer wait is a mistake, and must not keep a machine off for days.
const LONGEST_ASKED_FOR: std::time::Duration = std::time::Duration::from_hours(2);

/// Returns when to try again: a minute after the first failure, doubling up to a quarter of an
/// hour; at least as long as the provider asked for, up to `LONGEST_ASKED_FOR`.
#[must_use]
pub fn retry_at(
    now: Timestamp,
    attempts: u32,
    asked_for: Option<std::time::Duration>,
) -> Timestamp {
    let doubled = SignedDuration::from_mins(1 << attempts.saturating_sub(1).min(4));
    let asked_for = asked_for.map(|duration| duration.min(LONGEST_ASKED_FOR));
    let asked_for = asked_for.and_then(|duration| SignedDuration::try_from(duration).ok());
    let retry_at = on_the_minute(now, doubled.min(LONGEST));
    asked_for.map_or(retry_at, |asked_for| retry_at.max(now + asked_for))
}

/// Returns when to try again what a resource was too busy for: a lock is often over in seconds. The
/// first waits are 5, 10, 20 and 40 seconds, and the others those of [`retry_at`].
#[must_use]
pub fn when_free(now: Timestamp, attempts: u32) -> Timestamp {
    const SHORT: u32 = 4;
    match attempts.saturating_sub(1) {
        short @ 0..SHORT => now + SignedDuration::from_secs(5 << short),
        _ => retry_at(now, attempts - SHORT, None),
    }
}

/// Returns the whole minute before `now + wait`: timers fire on the minute, and would otherwise
/// always be just too early.
#[must_use]
pub fn on_the_minute(now: Timestamp, wait: SignedDuration) -> Timestamp {
    let exact = now + wait;
    let minutes = TimestampRound::new().smallest(Unit::Minute).mode(jiff::RoundMode::Floor);
    let minute = exact.round(minutes).unwrap_or(exact);
    if minute.duration_since(now) < SHORTEST {
        minute + SignedDuration::from_mins(1)
    } else {
        minute
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::at;

    #[test]
    fn waits_double_up_to_a_quarter_of_an_hour() {
        let after = |attempts| retry_at(at("19:00"), attempts, None);
        let expected = ["19:01", "19:02", "19:04", "19:08", "19:15", "19:15"].map(at);
        assert_eq!([1, 2, 3, 4, 5, 6].map(after), expected);
    }

    #[test]
    fn a_lock_is_tried_again_after_seconds_at_first() {
        let after = |attempts| when_free(at("19:00"), attempts);
        let expected = ["19:00:05", "19:00:10", "19:00:20", "19:00:40"].map(at);
        assert_eq!([1, 2, 3, 4].map(after), expected);
        assert_eq!([5, 6, 9].map(after), ["19:01", "19:02", "19:15"].map(at));
    }

    #[test]
    fn a_wait_is_at_least_as_long_as_the_provider_asks_for() {
        let asked_for = Some(std::time::Duration::from_secs(3605));
        assert_eq!(retry_at(at("19:00"), 1, asked_for), at("20:00:05"));
    }

    #[test]
    fn no_provider_can_ask_for_more_than_two_hours() {
        const MOST_OF_A_DURATION: u64 = i64::MAX.unsigned_abs();
        for seconds in [7_201, 315_360_000, MOST_OF_A_DURATION, u64::MAX] {
            let asked_for = Some(std::time::Duration::from_secs(seconds));
            assert_eq!(retry_at(at("19:00"), 1, asked_for), at("21:00"));
        }
    }

    #[test]
    fn a_wait_ends_with_the_minute_in_which_a_timer_fires() {
        assert_eq!(retry_at(at("19:00:20"), 1, None), at("19:01"));
        assert_eq!(retry_at(at("19:00:30"), 1, None), at("19:01"));
        assert_eq!(retry_at(at("19:00:31"), 1, None), at("19:02"));
        assert_eq!(retry_at(at("19:00:20"), 3, None), at("19:04"));
    }
}
