//! Times and lengths, as people write them on the command line.

use std::sync::LazyLock;

use domain::schedule::{Definition, PeriodDefinition, Schedule};
use jiff::{Timestamp, tz::TimeZone};
use offhours::time::{Asked, Length, Month, Reader, When};

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

/// A length is positive and at most ten years, and also a time; a time means an instant or is refused
/// with a message; and a month has 28 to 31 days.
pub(crate) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for line in text.lines() {
        match line.parse::<Length>() {
            Ok(length) => {
                let hours = length.duration().as_hours();
                assert!(length.duration().is_positive() && hours <= 3653 * 24, "{line:?}");
                assert!(line.parse::<When>().is_ok(), "{line:?}");
            }
            Err(error) => check::has_message(&error),
        }
        if let Ok(month) = line.parse::<Month>()
            && let Ok(month) = month.period(Asked::PastBegin, PLACES[0].1)
        {
            let days = month.length().as_hours() / 24;
            assert!((28..=31).contains(&days), "{line:?}");
        }
        match line.parse::<When>() {
            Ok(when) => check_when(&when),
            Err(error) => check::has_message(&error),
        }
    }
}

fn check_when(when: &When) {
    for ((zone, now), schedule) in PLACES.iter().zip([None, Some(&*SCHEDULE)].into_iter().cycle()) {
        let reader = Reader { now: *now, zone, schedule };
        for asked in [Asked::PastBegin, Asked::PastEnd, Asked::Begin, Asked::End] {
            if let Err(error) = when.resolve(asked, reader) {
                check::has_message(&error);
            }
        }
    }
}
