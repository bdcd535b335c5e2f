//! Instants as people write and read them.

use std::str::FromStr;

use domain::{
    ScheduleName,
    configuration::Configuration,
    schedule::{Edge, Wish},
};
use jiff::{
    SignedDuration, SignedDurationRound, Timestamp, Unit, Zoned, civil::DateTime, tz::TimeZone,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::shape;

/// The instant that a person named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// By itself.
    Instant(Timestamp),
    /// In a zone that the subject decides.
    Local(DateTime),
}

/// An edge to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NextEdge {
    /// When.
    pub at: Timestamp,
    /// The wish from then on.
    #[schemars(with = "shape::Wish")]
    pub to: Wish,
}

impl From<Edge> for NextEdge {
    fn from(edge: Edge) -> Self {
        Self {
            at: edge.at,
            to: edge.wish,
        }
    }
}

/// A text that names no instant.
#[derive(Debug, thiserror::Error)]
#[error(
    "write an instant such as 2026-06-15T07:00:00Z, or a local time such as \"2026-06-15 09:00\""
)]
pub struct NotAnInstant;

impl FromStr for At {
    type Err = NotAnInstant;

    fn from_str(text: &str) -> Result<Self, NotAnInstant> {
        let instant = text
            .parse()
            .or_else(|_| text.parse::<Zoned>().map(|zoned| zoned.timestamp()));
        match instant {
            Ok(instant) => Ok(Self::Instant(instant)),
            Err(_) => text.parse().map(Self::Local).map_err(|_| NotAnInstant),
        }
    }
}

/// The zone in which a command shows all its times: that of the schedule that it is asked about;
/// otherwise the one that all schedules have in common, and UTC where they have none.
#[must_use]
pub fn screen_zone<'c>(
    schedule: Option<&ScheduleName>,
    configuration: &'c Configuration,
) -> &'c TimeZone {
    const UTC: &TimeZone = &TimeZone::UTC;
    let rules = &configuration.schedules;
    if let Some(rule) = schedule.and_then(|name| rules.get(name)) {
        return rule.schedule.timezone();
    }
    let mut zones = rules.values().map(|rule| rule.schedule.timezone());
    match zones.next() {
        Some(first) if zones.all(|zone| zone == first) => first,
        Some(_) | None => UTC,
    }
}

/// Within this time a weekday says which day is meant.
const A_WEEK: SignedDuration = SignedDuration::from_hours(6 * 24);

/// An instant as people read it in a zone, as short as `now` allows: the weekday and the time, or
/// the date where the weekday would not tell.
#[must_use]
pub fn short(at: Timestamp, zone: &TimeZone, now: Timestamp) -> String {
    let zoned = at.to_zoned(zone.clone());
    let format = if at.duration_since(now).abs() < A_WEEK {
        "%a %H:%M %Z"
    } else {
        "%Y-%m-%d %H:%M %Z"
    };
    zoned.strftime(format).to_string()
}

/// A length from which on days are told rather than hours.
const DAYS: SignedDuration = SignedDuration::from_hours(48);

/// How long something takes or took, in the units that matter: `50s`, `10m`, `3h 10m`, `4d 2h`.
#[must_use]
pub fn long(duration: SignedDuration) -> String {
    let duration = duration.abs();
    let unit = if duration < SignedDuration::from_mins(2) {
        Unit::Second
    } else {
        Unit::Minute
    };
    if duration >= DAYS {
        let hours = duration.as_hours();
        return format!("{}d {}h", hours / 24, hours % 24);
    }
    let rounded = duration.round(SignedDurationRound::new().smallest(unit));
    format!("{:#}", rounded.unwrap_or(duration))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instant(text: &str) -> Timestamp {
        text.parse().expect("a test's instant")
    }

    #[test]
    fn instants_and_local_times_are_told_apart() {
        for text in [
            "2026-06-15T07:00:00Z",
            "2026-06-15 07:00:00Z",
            "2026-06-15T09:00:00+02:00",
            "2026-06-15T09:00[Europe/Berlin]",
        ] {
            let expected = At::Instant(instant("2026-06-15T07:00:00Z"));
            assert_eq!(text.parse::<At>().unwrap(), expected, "{text}");
        }
        for text in [
            "2026-06-15 09:00",
            "2026-06-15T09:00",
            "2026-06-15T09:00:00",
        ] {
            let expected = At::Local("2026-06-15T09:00".parse().unwrap());
            assert_eq!(text.parse::<At>().unwrap(), expected, "{text}");
        }
        for text in ["", "09:00", "tomorrow", "2026-02-30", "15.06.2026"] {
            assert!(text.parse::<At>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_screen_has_the_zone_that_its_schedules_share() {
        let zone = |text: &str, named: Option<&str>| {
            let parsed = crate::configuration_file::parse(text, "offhours.toml").unwrap();
            let named = named.map(|name| name.parse().unwrap());
            let zone = screen_zone(named.as_ref(), &parsed.configuration);
            zone.iana_name().unwrap_or_default().to_owned()
        };
        let shared = "timezone = \"Europe/Berlin\"\n\
                      schedules.a.periods = [{ begin = \"08:00\", end = \"19:00\" }]\n\
                      schedules.b.periods = [{ weekdays = \"sat\" }]\n";
        assert_eq!(zone(shared, None), "Europe/Berlin");
        let mixed = format!("{shared}schedules.b.timezone = \"Asia/Tokyo\"\n");
        assert_eq!(zone(&mixed, None), "UTC");
        assert_eq!(zone(&mixed, Some("b")), "Asia/Tokyo");
        assert_eq!(zone("", None), "UTC");
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
    fn a_length_is_told_in_the_units_that_matter() {
        for (seconds, expected) in [
            (5, "5s"),
            (119, "1m 59s"),
            (-300, "5m"),
            (11_429, "3h 10m"),
            (360_000, "4d 4h"),
        ] {
            assert_eq!(long(SignedDuration::from_secs(seconds)), expected);
        }
    }
}
