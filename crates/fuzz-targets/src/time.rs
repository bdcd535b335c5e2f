//! Instants, durations and ends, as people write them on the command line.

use std::sync::LazyLock;

use domain::schedule::{Definition, PeriodDefinition, Schedule};
use jiff::{SignedDuration, Timestamp, ToSpan as _, tz::TimeZone};
use offhours::time::{
    Length, Moment, Month, When,
    end::{ClockReading, End},
};

use crate::check;

/// The zones and instants at which they are evaluated: in an ordinary hour, in one that the clock
/// repeats, and at both ends of the calendar.
static PLACES: LazyLock<[(TimeZone, Timestamp); 4]> = LazyLock::new(|| {
    let zone = |name| TimeZone::get(name).expect("a zone");
    let repeated = "2026-10-25T00:30:00Z".parse().expect("an instant");
    let ordinary = "2026-11-23T16:45:00.25Z".parse().expect("an instant");
    [
        (zone("America/New_York"), ordinary),
        (zone("Europe/Berlin"), repeated),
        (zone("Pacific/Kiritimati"), Timestamp::MAX),
        (zone("Pacific/Pago_Pago"), Timestamp::MIN),
    ]
});

static SCHEDULE: LazyLock<Schedule> = LazyLock::new(|| {
    let office = PeriodDefinition {
        weekdays: vec!["mon-fri".to_owned()],
        begin: Some("08:00".to_owned()),
        end: Some("19:00".to_owned()),
        ..PeriodDefinition::default()
    };
    let definition = Definition {
        timezone: "Europe/Berlin".to_owned(),
        periods: vec![office],
        ..Definition::default()
    };
    Schedule::new(&definition).expect("a schedule")
});

/// A length is positive and at most ten years, an end is after now and no further away, and a month
/// has 28 to 31 days.
pub(crate) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for line in text.lines() {
        match line.parse::<Length>() {
            Ok(length) => {
                let hours = length.duration().as_hours();
                assert!(length.duration().is_positive() && hours <= 3653 * 24, "{line:?}");
            }
            Err(error) => check::has_message(&error),
        }
        if let Ok(month) = line.parse::<Month>()
            && let Ok([first, next]) = month.bounds()
        {
            let days = next.duration_since(first).as_hours() / 24;
            assert!((28..=31).contains(&days), "{line:?}");
        }
        let (when, moment) = (line.parse::<When>(), line.parse::<Moment>());
        assert!(when.is_err() || moment.is_ok(), "{line:?}");
        let end = line.parse::<End>();
        for (zone, now) in &*PLACES {
            let instants = [
                when.as_ref().ok().map(|when| when.instant(zone)),
                moment.ok().map(|moment| moment.instant(zone, *now)),
            ];
            for refusal in instants.into_iter().flatten().filter_map(Result::err) {
                check::has_message(&refusal);
            }
            if let Ok(end) = end {
                check_end(end, *now, zone);
            }
        }
    }
}

fn check_end(end: End, now: Timestamp, zone: &TimeZone) {
    for schedule in [None, Some(&*SCHEDULE)] {
        match end.resolve(now, zone, schedule) {
            Ok(understood) => {
                assert!(understood.at > now, "{end:?}");
                let latest = now.to_zoned(zone.clone()).checked_add(10.years());
                let is_near = latest.is_ok_and(|latest| understood.at <= latest.timestamp());
                let at_the_end =
                    Timestamp::MAX.duration_since(now) < SignedDuration::from_hours(24 * 3653);
                assert!(is_near || at_the_end, "{end:?}");
                let remark = understood.remark(zone);
                assert_eq!(remark.is_none(), understood.clock == ClockReading::Once);
            }
            Err(error) => check::has_message(&error),
        }
    }
}
