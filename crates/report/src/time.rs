//! Instants and durations as people read them.

use domain::configuration::Configuration;
use jiff::{SignedDuration, Span, SpanRound, Timestamp, Unit, tz::TimeZone};

/// The zone that all schedules share. `None` if they differ or there is none.
#[must_use]
pub fn shared_zone(configuration: &Configuration) -> Option<&TimeZone> {
    let mut zones = configuration.schedules.values().map(|rule| rule.schedule.timezone());
    zones.next().filter(|first| zones.all(|zone| zone == *first))
}

/// Within this time, a weekday identifies the day.
const A_WEEK: SignedDuration = SignedDuration::from_hours(6 * 24);

/// Formats an instant for people in a zone, as briefly as `now` allows: weekday and time, or the
/// date if the weekday would be ambiguous.
#[must_use]
pub fn short(at: Timestamp, zone: &TimeZone, now: Timestamp) -> String {
    let zoned = at.to_zoned(zone.clone());
    let format =
        if at.duration_since(now).abs() < A_WEEK { "%a %H:%M %Z" } else { "%Y-%m-%d %H:%M %Z" };
    zoned.strftime(format).to_string()
}

/// Formats an instant for people in a zone, in full.
#[must_use]
pub fn local(at: Timestamp, zone: &TimeZone) -> String {
    let zoned = at.to_zoned(zone.clone());
    zoned.strftime("%a %Y-%m-%d %H:%M %Z").to_string()
}

/// The time since an instant: `45s ago`, `3m ago`, `2h 10m ago`. `now` if it is not in the past.
#[must_use]
pub fn ago(at: Timestamp, now: Timestamp) -> String {
    let past = now.duration_since(at);
    if past <= SignedDuration::ZERO {
        return "now".to_owned();
    }
    format!("{} ago", length(past))
}

/// Formats a duration in the units that matter: `50s`, `10m`, `3h 10m`, `4d 2h`.
#[must_use]
pub fn length(duration: SignedDuration) -> String {
    let duration = duration.abs();
    let smallest = if duration < SignedDuration::from_mins(2) {
        Unit::Second
    } else if duration < SignedDuration::from_hours(24) {
        Unit::Minute
    } else {
        Unit::Hour
    };
    let units = SpanRound::new().largest(Unit::Day).smallest(smallest);
    let rounded = Span::try_from(duration).and_then(|span| span.round(units.days_are_24_hours()));
    rounded.map_or_else(|_| format!("{duration:#}"), |span| format!("{span:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instant(text: &str) -> Timestamp {
        text.parse().expect("a test's instant")
    }

    #[test]
    fn a_weekday_is_enough_within_a_week() {
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        let now = instant("2026-11-20T17:55:00Z");
        for (at, expected) in [
            ("2026-11-20T18:00:00Z", "Fri 19:00 CET"),
            ("2026-11-26T17:54:00Z", "Thu 18:54 CET"),
            ("2026-11-26T17:55:00Z", "2026-11-26 18:55 CET"),
            ("2026-10-23T17:55:00Z", "2026-10-23 19:55 CEST"),
        ] {
            assert_eq!(short(instant(at), &berlin, now), expected);
        }
    }

    #[test]
    fn a_length_has_the_units_that_matter() {
        for (seconds, expected) in [
            (0, "0s"),
            (5, "5s"),
            (119, "1m 59s"),
            (190, "3m"),
            (-300, "5m"),
            (3600, "1h"),
            (7810, "2h 10m"),
            (11_429, "3h 10m"),
            (86_390, "1d"),
            (26 * 3600, "1d 2h"),
            (360_000, "4d 4h"),
        ] {
            let duration = SignedDuration::from_secs(seconds);
            assert_eq!(length(duration), expected);
            let then = Timestamp::UNIX_EPOCH;
            let expected = match seconds {
                ..=0 => "now".to_owned(),
                _ => format!("{expected} ago"),
            };
            assert_eq!(ago(then, then + duration), expected);
        }
    }
}
