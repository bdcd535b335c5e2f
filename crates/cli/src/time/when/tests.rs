use domain::schedule::{Definition, PeriodDefinition};
use jiff::SignedDuration;
use proptest::prelude::*;

use super::*;

fn zone(name: &str) -> TimeZone {
    TimeZone::get(name).expect("a test's zone")
}

fn instant(text: &str) -> Timestamp {
    text.parse().expect("a test's instant")
}

fn when(text: &str) -> When {
    text.parse().expect("a test's time")
}

/// Weekdays in Berlin, from 8 to 19 or whatever begin and end say.
fn office_hours(begin: Option<&str>, end: Option<&str>) -> Schedule {
    let period = PeriodDefinition {
        weekdays: vec!["mon-fri".to_owned()],
        begin: begin.map(str::to_owned),
        end: end.map(str::to_owned),
        ..PeriodDefinition::default()
    };
    let definition = Definition {
        timezone: "Europe/Berlin".to_owned(),
        periods: vec![period],
        ..Definition::default()
    };
    Schedule::new(&definition).expect("a schedule in order")
}

fn read(
    text: &str,
    asked: Asked,
    now: &str,
    place: &str,
    schedule: Option<&Schedule>,
) -> Result<Timestamp, NotAWhen> {
    let reader = Reader { now: instant(now), zone: &zone(place), schedule };
    when(text).resolve(asked, reader)
}

/// Saturday, a quarter past one in Berlin.
const SATURDAY: &str = "2026-11-21T12:15:00Z";

/// On Saturday, for what begins on Sunday at four.
#[test]
fn an_end_is_a_length_from_the_begin_or_the_day_that_is_meant_now() {
    let begin = instant("2026-11-22T04:00:00+01:00");
    for (text, expected) in [
        ("2h", "22 06:00"),
        ("in 2h", "22 06:00"),
        ("tomorrow 5am", "22 05:00"),
        ("tomorrow", "23 00:00"),
        ("sunday", "23 00:00"),
        ("21:00", "22 21:00"),
        ("saturday 20:00", "28 20:00"),
        ("2026-11-24", "25 00:00"),
    ] {
        let place = zone("Europe/Berlin");
        let reader = Reader { now: instant(SATURDAY), zone: &place, schedule: None };
        let end = when(text).resolve_end(begin, reader).unwrap();
        assert_eq!(
            end.to_zoned(place.clone()).strftime("%d %H:%M").to_string(),
            expected,
            "{text}"
        );
    }
}

/// What each time means on Saturday in Berlin: as a beginning and as an end to come, and as a
/// beginning and as an end that is over. Everything is in the zone of Berlin, an hour ahead of UTC.
#[test]
fn a_time_is_read_in_the_direction_that_the_option_asks_for() {
    let all = [Asked::Begin, Asked::End, Asked::PastBegin, Asked::PastEnd];
    for (text, expected) in [
        ("2h", ["21 15:15", "21 15:15", "21 11:15", "21 11:15"]),
        ("90m", ["21 14:45", "21 14:45", "21 11:45", "21 11:45"]),
        ("1d12h", ["23 01:15", "23 01:15", "20 01:15", "20 01:15"]),
        ("7d", ["28 13:15", "28 13:15", "14 13:15", "14 13:15"]),
        ("+2h", ["21 15:15"; 4]),
        ("in 2h", ["21 15:15"; 4]),
        ("22:00", ["21 22:00", "21 22:00", "20 22:00", "20 22:00"]),
        ("9:00", ["22 09:00", "22 09:00", "21 09:00", "21 09:00"]),
        ("13:15", ["22 13:15", "22 13:15", "20 13:15", "20 13:15"]),
        ("9am", ["22 09:00", "22 09:00", "21 09:00", "21 09:00"]),
        ("9:30 PM", ["21 21:30", "21 21:30", "20 21:30", "20 21:30"]),
        ("12pm", ["22 12:00", "22 12:00", "21 12:00", "21 12:00"]),
        ("noon", ["22 12:00", "22 12:00", "21 12:00", "21 12:00"]),
        ("12am", ["22 00:00", "22 00:00", "21 00:00", "21 00:00"]),
        ("midnight", ["22 00:00", "22 00:00", "21 00:00", "21 00:00"]),
        ("24:00", ["22 00:00", "22 00:00", "21 00:00", "21 00:00"]),
        ("today", ["21 00:00", "22 00:00", "21 00:00", "22 00:00"]),
        ("tomorrow", ["22 00:00", "23 00:00", "22 00:00", "23 00:00"]),
        ("yesterday", ["20 00:00", "21 00:00", "20 00:00", "21 00:00"]),
        ("Sunday", ["22 00:00", "23 00:00", "15 00:00", "16 00:00"]),
        ("FRI", ["27 00:00", "28 00:00", "20 00:00", "21 00:00"]),
        // The present day is `today`.
        ("saturday", ["28 00:00", "29 00:00", "14 00:00", "15 00:00"]),
        ("next saturday", ["28 00:00", "29 00:00", "28 00:00", "29 00:00"]),
        ("next monday", ["23 00:00", "24 00:00", "23 00:00", "24 00:00"]),
        ("sat 18:00", ["21 18:00", "21 18:00", "14 18:00", "14 18:00"]),
        ("sat 09:00", ["28 09:00", "28 09:00", "21 09:00", "21 09:00"]),
        ("mon noon", ["23 12:00", "23 12:00", "16 12:00", "16 12:00"]),
        ("tomorrow 9am", ["22 09:00"; 4]),
        ("tomorrow at 9am", ["22 09:00"; 4]),
        ("2026-11-24", ["24 00:00", "25 00:00", "24 00:00", "25 00:00"]),
        ("2026-11-24 22:00", ["24 22:00"; 4]),
        ("2026-11-24T22:00:01", ["24 22:00"; 4]),
        ("2026-11-24 24:00", ["25 00:00"; 4]),
        ("2026-11-24T21:00:00Z", ["24 22:00"; 4]),
        ("2026-11-24 21:00Z", ["24 22:00"; 4]),
        ("2026-11-24T16:00[America/New_York]", ["24 22:00"; 4]),
    ] {
        let means = all.map(|asked| {
            let at = read(text, asked, SATURDAY, "Europe/Berlin", None).expect(text);
            at.to_zoned(zone("Europe/Berlin")).strftime("%d %H:%M").to_string()
        });
        assert_eq!(means, expected, "{text}");
    }
    // Half past midnight on Sunday in Berlin, and still Saturday in London.
    let sunday = read("sun", Asked::End, "2026-11-21T23:30:00Z", "Europe/Berlin", None);
    assert_eq!(sunday, Ok(instant("2026-11-29T23:00:00Z")));
}

#[test]
fn the_next_edge_is_the_schedules_and_has_a_desired_state() {
    let office = office_hours(Some("08:00"), Some("19:00"));
    let starts = office_hours(Some("08:00"), None);
    for (now, text, schedule, expected) in [
        (SATURDAY, "next-edge", &office, "2026-11-23T07:00:00Z"),
        ("2026-11-23T07:00:00Z", "Next-Edge", &office, "2026-11-23T18:00:00Z"),
        ("2026-11-23T06:59:59Z", "next-edge", &office, "2026-11-23T07:00:00Z"),
        ("2026-11-23T11:00:00Z", "next-edge", &starts, "2026-11-24T07:00:00Z"),
    ] {
        let at = read(text, Asked::End, now, "Europe/Berlin", Some(schedule));
        assert_eq!(at, Ok(instant(expected)), "{now}");
    }
}

#[test]
fn what_means_no_instant_is_named() {
    let always = Definition {
        timezone: "UTC".to_owned(),
        periods: vec![PeriodDefinition::default()],
        ..Definition::default()
    };
    let always = Schedule::new(&always).expect("a schedule in order");
    for (text, schedule, expected) in [
        ("next-edge", None, "`next-edge` needs a schedule: write a time such as 2h"),
        ("next-edge", Some(&always), "`next-edge` never comes"),
        ("9999-12-31", None, "`9999-12-31` is beyond the end of the calendar"),
    ] {
        let error = read(text, Asked::End, SATURDAY, "UTC", schedule).expect_err(text);
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}

#[test]
fn what_is_no_time_is_answered_with_what_was_meant_and_with_examples() {
    for (text, expected) in [
        ("fridya", "did you mean `friday`? "),
        ("Wendesday 18:00", "did you mean `wednesday`? "),
        ("tomorow", "did you mean `tomorrow`? "),
        ("nextedge", "did you mean `next-edge`? "),
        ("friday nooon", "did you mean `noon`? "),
        ("tonight", "`tonight` has no hour; "),
        ("friday midnight", "a day begins at 00:00 and ends at 24:00; "),
        ("next week", ""),
        ("next tomorrow", "`next` is followed by a weekday; "),
        ("", ""),
        ("later", ""),
        ("25:00", ""),
        ("24:01", ""),
        ("12:60", ""),
        ("1:5", ""),
        ("22", ""),
        ("13pm", ""),
        ("0am", ""),
        ("friday 25:00", ""),
        ("20261124", ""),
        ("2026-11-31", ""),
        ("2026-W47-6", ""),
        ("2026-11-24T22", ""),
        ("+9:00", ""),
        ("in 9:00", ""),
        ("-2h", ""),
        ("0s", ""),
        ("15.06.2026", ""),
    ] {
        let error = text.parse::<When>().expect_err(text).to_string();
        let expected = format!("{expected}write a time such as 2h, 21:00 or \"friday 18:00\"");
        assert_eq!(error, expected, "{text}");
    }
}

#[test]
fn a_skipped_time_is_the_jump_and_a_repeated_one_is_first_for_a_beginning_and_last_for_an_end() {
    let night = "2026-10-24T23:30:00Z";
    for (place, now, text, begin, end) in [
        ("Europe/Berlin", "2026-03-28T23:30:00Z", "02:30", "03-29T01:00", "03-29T01:00"),
        ("Europe/Berlin", "2026-03-28T23:30:00Z", "2026-03-29 02:00", "03-29T01:00", "03-29T01:00"),
        ("Europe/Berlin", night, "02:30", "10-25T00:30", "10-25T01:30"),
        // Between the two occurrences.
        ("Europe/Berlin", "2026-10-25T00:45:00Z", "02:30", "10-26T01:30", "10-25T01:30"),
        // Days of 23 and 25 hours.
        ("Europe/Berlin", "2026-03-28T23:30:00Z", "today", "03-28T23:00", "03-29T22:00"),
        ("Europe/Berlin", "2026-10-24T22:30:00Z", "today", "10-24T22:00", "10-25T23:00"),
        // A midnight that the clock skips.
        ("America/Sao_Paulo", "2018-11-03T15:00:00Z", "today", "11-03T03:00", "11-04T03:00"),
        // Samoa crossed the date line at the end of Thursday: Friday never happened there.
        ("Pacific/Apia", "2011-12-29T20:00:00Z", "friday", "12-30T10:00", "12-30T10:00"),
    ] {
        for (asked, expected) in [(Asked::Begin, begin), (Asked::End, end)] {
            let at = read(text, asked, now, place, None).expect(text);
            assert_eq!(at.strftime("%m-%dT%H:%M").to_string(), expected, "{text} at {now}");
        }
    }
}

/// Zones whose clocks change at night, at midnight, by half an hour, or never.
const PLACES: [&str; 6] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Havana",
    "America/Sao_Paulo",
    "Australia/Lord_Howe",
];

/// From 2005 to 2034, near a clock change about half of the time.
fn any_instant() -> impl Strategy<Value = (TimeZone, Timestamp)> {
    let from = 1_104_537_600_i64..2_051_222_400;
    let anywhere = proptest::sample::select(&PLACES).prop_map(zone);
    (anywhere, from, any::<bool>(), -100_000_i64..100_000).prop_map(
        |(zone, second, near, around)| {
            let at = Timestamp::from_second(second).expect("within jiff's years");
            let change =
                near.then(|| zone.following(at).next().map(|change| change.timestamp())).flatten();
            let at = change.map_or(at, |at| at + SignedDuration::from_secs(around));
            (zone, at)
        },
    )
}

#[test]
fn a_reading_that_a_clock_change_has_be_now_is_the_one_a_day_earlier() {
    let zone = zone("America/Havana");
    // The clock went from 00:00 to 01:00.
    let now = "2012-04-01T05:00:00Z".parse().unwrap();
    let reader = Reader { now, zone: &zone, schedule: None };
    let at = when("24:00").resolve(Asked::PastBegin, reader).unwrap();
    assert_eq!(at.to_string(), "2012-03-31T05:00:00Z");
}

#[test]
fn the_end_of_yesterday_that_a_clock_change_has_be_now_or_later_is_the_one_a_week_earlier() {
    let zone = zone("America/Havana");
    // The clock went from 00:00 to 01:00; and, at the second reading, from 01:00 to 00:00.
    for (now, expected) in [
        ("2012-04-01T05:00:00Z", "2012-03-25T05:00:00Z"),
        ("2012-11-04T04:30:00Z", "2012-10-28T04:00:00Z"),
    ] {
        let reader = Reader { now: instant(now), zone: &zone, schedule: None };
        let at = when("saturday 24:00").resolve(Asked::PastEnd, reader).unwrap();
        assert_eq!(at.to_string(), expected, "at {now}");
    }
}

fn any_asked() -> impl Strategy<Value = Asked> {
    proptest::sample::select(&[Asked::Begin, Asked::End, Asked::PastBegin, Asked::PastEnd])
}

proptest! {
    #[test]
    fn a_clock_reading_and_a_weekday_are_near_and_in_their_direction(
        (zone, now) in any_instant(),
        asked in any_asked(),
        (hour, minute) in prop_oneof![(0..24_i64, 0..60_i64), Just((24, 0))],
        (word, day) in proptest::sample::select(&DAYS),
    ) {
        let reader = Reader { now, zone: &zone, schedule: None };
        let clock = format!("{hour:02}:{minute:02}");
        let at = when(&clock).resolve(asked, reader).expect("there is always a next");
        prop_assert!(asked.has(at, now));
        // The longest days in these zones have 25 hours.
        prop_assert!(at.duration_since(now).abs() <= SignedDuration::from_hours(26));
        let shown = at.to_zoned(zone.clone());
        let reads = i64::from(shown.hour()) * 60 + i64::from(shown.minute());
        let before = (at - SignedDuration::from_secs(1)).to_zoned(zone.clone());
        let jumps = before.datetime().duration_until(shown.datetime()).as_secs() > 1;
        prop_assert!(jumps || reads == (hour * 60 + minute) % (24 * 60));

        if let Day::Weekday(weekday) = day {
            let text = format!("{word} {clock}");
            let at = when(&text).resolve(asked, reader).expect("there is always a next");
            prop_assert!(asked.has(at, now));
            prop_assert!(at.duration_since(now).abs() <= SignedDuration::from_hours(8 * 24 + 1));
            let at = when(word).resolve(asked, reader).expect("there is always a next");
            let meant = day.date(asked, now.to_zoned(zone.clone()).date()).expect("a date");
            prop_assert_eq!(meant.weekday(), weekday);
            prop_assert!(at.duration_since(now).abs() <= SignedDuration::from_hours(8 * 24 + 1));
        }
    }

    #[test]
    fn no_text_makes_it_panic(
        text in "\\PC{0,24}", date in "[0-9T: Z+-]{0,24}", asked in any_asked()
    ) {
        for text in [text, date] {
            if let Ok(when) = text.parse::<When>() {
                let reader =
                    Reader { now: instant(SATURDAY), zone: &zone("Europe/Berlin"), schedule: None };
                let _ = when.resolve(asked, reader);
            }
        }
    }
}
