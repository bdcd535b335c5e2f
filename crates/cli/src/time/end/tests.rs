use domain::schedule::{Definition, PeriodDefinition};
use proptest::prelude::*;

use super::*;

fn zone(name: &str) -> TimeZone {
    TimeZone::get(name).expect("a test's zone")
}

fn instant(text: &str) -> Timestamp {
    text.parse().expect("a test's instant")
}

fn end(text: &str) -> End {
    text.parse().expect("a test's end")
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

/// Checks what `text` means at `now` in Berlin, where no clock change is involved.
#[track_caller]
fn means(now: &str, text: &str, expected: &str) {
    let schedule = office_hours(Some("08:00"), Some("19:00"));
    let understood = end(text).resolve(instant(now), &zone("Europe/Berlin"), Some(&schedule));
    let expected = ResolvedEnd::plainly(instant(expected));
    assert_eq!(understood, Ok(expected), "{text} at {now}");
}

#[track_caller]
fn lasts(text: &str, expected: &str) {
    let lasting: Length = text.parse().expect("a test's span");
    let now = instant("2026-11-21T12:00:00Z");
    let understood = End::from(lasting).resolve(now, &TimeZone::UTC, None);
    let expected = ResolvedEnd::plainly(instant(expected));
    assert_eq!(understood, Ok(expected), "{text}");
}

/// Saturday, a quarter past one in Berlin.
const SATURDAY: &str = "2026-11-21T12:15:00Z";

#[test]
fn spans_count_from_now() {
    lasts("2h", "2026-11-21T14:00:00Z");
    lasts("90m", "2026-11-21T13:30:00Z");
    lasts("1d12h", "2026-11-23T00:00:00Z");
    lasts("1h 30m", "2026-11-21T13:30:00Z");
    lasts("2w", "2026-12-05T12:00:00Z");
    lasts("PT45M", "2026-11-21T12:45:00Z");
}

#[test]
fn a_time_is_today_or_tomorrow() {
    means(SATURDAY, "22:00", "2026-11-21T21:00:00Z");
    means(SATURDAY, "9:00", "2026-11-22T08:00:00Z");
    means(SATURDAY, "13:15", "2026-11-22T12:15:00Z");
    means(SATURDAY, "13:15:01", "2026-11-21T12:15:01Z");
    means(SATURDAY, "00:00", "2026-11-21T23:00:00Z");
    means(SATURDAY, "24:00", "2026-11-21T23:00:00Z");
    means("2026-11-21T23:30:00Z", "22:00", "2026-11-22T21:00:00Z");
}

#[test]
fn a_day_is_meant_until_its_end() {
    means(SATURDAY, "today", "2026-11-21T23:00:00Z");
    means(SATURDAY, "tomorrow", "2026-11-22T23:00:00Z");
    means(SATURDAY, "saturday", "2026-11-21T23:00:00Z");
    means(SATURDAY, "sunday", "2026-11-22T23:00:00Z");
    means(SATURDAY, "Friday", "2026-11-27T23:00:00Z");
    means(SATURDAY, "FRI", "2026-11-27T23:00:00Z");
    means(SATURDAY, "2026-11-24", "2026-11-24T23:00:00Z");
    means(SATURDAY, "2026-11-21", "2026-11-21T23:00:00Z");
    // Half past midnight on Sunday in Berlin, and still Saturday in London.
    means("2026-11-21T23:30:00Z", "sunday", "2026-11-22T23:00:00Z");
    means("2026-11-21T23:30:00Z", "sat", "2026-11-28T23:00:00Z");
}

#[test]
fn a_day_may_have_a_time() {
    means(SATURDAY, "2026-11-24 22:00", "2026-11-24T21:00:00Z");
    means(SATURDAY, "2026-11-24T22:00", "2026-11-24T21:00:00Z");
    means(SATURDAY, "2026-11-24 24:00", "2026-11-24T23:00:00Z");
    means(SATURDAY, "tomorrow 09:00", "2026-11-22T08:00:00Z");
    means(SATURDAY, "sat 18:00", "2026-11-21T17:00:00Z");
    means(SATURDAY, "sat 09:00", "2026-11-28T08:00:00Z");
    means(SATURDAY, "mon 09:00", "2026-11-23T08:00:00Z");
}

#[test]
fn an_instant_is_itself_in_every_zone() {
    for text in [
        "2026-11-24T21:00:00Z",
        "2026-11-24 21:00Z",
        "2026-11-24T22:00:00+01:00",
        "2026-11-24T16:00[America/New_York]",
    ] {
        means(SATURDAY, text, "2026-11-24T21:00:00Z");
    }
}

#[test]
fn the_next_edge_is_the_schedules() {
    means(SATURDAY, "next-edge", "2026-11-23T07:00:00Z");
    means("2026-11-23T07:00:00Z", "next-edge", "2026-11-23T18:00:00Z");
    means("2026-11-23T06:59:59Z", "Next-Edge", "2026-11-23T07:00:00Z");
}

#[test]
fn an_edge_that_wants_nothing_is_not_waited_for() {
    let only_starts = office_hours(Some("08:00"), None);
    let noon = instant("2026-11-23T11:00:00Z");
    let understood = End::NextEdge.resolve(noon, only_starts.timezone(), Some(&only_starts));
    let next_morning = ResolvedEnd::plainly(instant("2026-11-24T07:00:00Z"));
    assert_eq!(understood, Ok(next_morning));
}

#[test]
fn without_edges_there_is_no_next_one() {
    let now = instant(SATURDAY);
    let always = Definition {
        timezone: "UTC".to_owned(),
        periods: vec![PeriodDefinition::default()],
        ..Definition::default()
    };
    let always = Schedule::new(&always).expect("a schedule in order");
    let understood = End::NextEdge.resolve(now, &TimeZone::UTC, Some(&always));
    assert_eq!(understood, Err(EndError::NoEdge));
    let understood = End::NextEdge.resolve(now, &TimeZone::UTC, None);
    assert_eq!(understood, Err(EndError::NoSchedule));
}

#[test]
fn an_end_that_is_over_is_named() {
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let understood = end(text).resolve(instant(SATURDAY), &zone("Europe/Berlin"), None);
        let error = understood.expect_err("it is over");
        let expected = format!(
            "that was understood as {expected}, which is not after now, \
             Sat 2026-11-21 13:15 CET"
        );
        assert_eq!(error.to_string(), expected);
    }
    check("2026-11-20", "Sat 2026-11-21 00:00 CET");
    check("2026-11-21 13:15", "Sat 2026-11-21 13:15 CET");
    check("today 09:00", "Sat 2026-11-21 09:00 CET");
    check("2026-11-21T12:14:59Z", "Sat 2026-11-21 13:14 CET");
}

#[test]
fn an_end_beyond_ten_years_is_a_slip() {
    for far in [end("2037-01-01"), end("9999-12-31")] {
        let understood = far.resolve(instant(SATURDAY), &TimeZone::UTC, None);
        assert_eq!(understood, Err(EndError::TooFar), "{far:?}");
    }
}

#[test]
fn what_names_no_end_is_answered_with_what_was_meant() {
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let error = text.parse::<End>().expect_err("no end").to_string();
        assert!(error.starts_with(expected), "{text}: {error}");
    }
    check("fridya", "did you mean `friday`?");
    check("Wendesday 18:00", "did you mean `wednesday`?");
    check("tomorow", "did you mean `tomorrow`?");
    check("nextedge", "did you mean `next-edge`?");
    for text in [
        "",
        "soon",
        "tonight",
        "2h",
        "25:00",
        "24:01",
        "12:60",
        "1:5",
        "22",
        "friday noon",
        "friday 25:00",
        "20261124",
        "2026-11-31",
        "2026-W47-6",
        "2026-11-24T22",
        "10 pm",
        "+9:00",
    ] {
        check(text, "write a time such as 22:00");
    }
}

/// Checks what `text` means at a clock change, and the remark about it.
#[track_caller]
fn where_it_changes(place: &str, now: &str, text: &str, at: &str, remark: &str) {
    let zone = zone(place);
    let understood = end(text).resolve(instant(now), &zone, None);
    let understood = understood.expect("it is after now");
    assert_eq!(understood.at, instant(at), "{text} at {now}");
    assert_eq!(understood.remark(&zone).as_deref(), Some(remark));
}

#[test]
fn a_skipped_time_is_the_jump() {
    for (text, reading) in [("02:30", "02:30"), ("2026-03-29 02:00", "02:00")] {
        where_it_changes(
            "Europe/Berlin",
            "2026-03-28T23:30:00Z",
            text,
            "2026-03-29T01:00:00Z",
            &format!(
                "the clock skips {reading} on Sun 2026-03-29: understood as the jump, \
                 Sun 2026-03-29 03:00 CEST"
            ),
        );
    }
    where_it_changes(
        "America/Sao_Paulo",
        "2018-11-03T15:00:00Z",
        "today",
        "2018-11-04T03:00:00Z",
        "the clock skips 00:00 on Sun 2018-11-04: understood as the jump, \
         Sun 2018-11-04 01:00 -02",
    );
}

#[test]
fn a_repeated_time_is_its_last_occurrence() {
    // Before the repeated hour, within it before the first occurrence, and between the two
    // occurrences.
    for now in ["2026-10-24T23:30:00Z", "2026-10-25T00:15:00Z", "2026-10-25T00:45:00Z"] {
        where_it_changes(
            "Europe/Berlin",
            now,
            "02:30",
            "2026-10-25T01:30:00Z",
            "the clock shows 02:30 on Sun 2026-10-25 twice: understood as the last time, \
             Sun 2026-10-25 02:30 CET",
        );
    }
    means("2026-10-25T01:30:00Z", "02:30", "2026-10-26T01:30:00Z");
}

#[test]
fn days_of_23_and_25_hours_end_at_midnight() {
    means("2026-03-28T23:30:00Z", "today", "2026-03-29T22:00:00Z");
    means("2026-10-24T22:30:00Z", "today", "2026-10-25T23:00:00Z");
    means("2026-10-24T22:30:00Z", "23:59", "2026-10-25T22:59:00Z");
}

#[test]
fn a_day_that_the_calendar_leaves_out_is_over_at_the_jump() {
    // Samoa crossed the date line at the end of Thursday: Friday never happened there.
    let samoa = zone("Pacific/Apia");
    let now = instant("2011-12-29T20:00:00Z");
    for text in ["tomorrow", "friday", "2011-12-30"] {
        let understood = end(text).resolve(now, &samoa, None);
        let jump = ResolvedEnd::plainly(instant("2011-12-30T10:00:00Z"));
        assert_eq!(understood, Ok(jump), "{text}");
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

fn anywhere() -> impl Strategy<Value = TimeZone> {
    proptest::sample::select(&PLACES).prop_map(zone)
}

/// From 2005 to 2034, near a clock change about half of the time.
fn any_instant() -> impl Strategy<Value = (TimeZone, Timestamp)> {
    let from = 1_104_537_600_i64..2_051_222_400;
    (anywhere(), from, any::<bool>(), -100_000_i64..100_000).prop_map(
        |(zone, second, near, around)| {
            let at = Timestamp::from_second(second).expect("within jiff's years");
            let change =
                near.then(|| zone.following(at).next().map(|change| change.timestamp())).flatten();
            let at = change.map_or(at, |at| at + SignedDuration::from_secs(around));
            (zone, at)
        },
    )
}

fn any_time() -> impl Strategy<Value = (i64, i64)> {
    prop_oneof![(0..24_i64, 0..60_i64), Just((24, 0))]
}

proptest! {
    #[test]
    fn a_time_comes_within_a_day_and_the_clock_shows_it(
        (zone, now) in any_instant(), (hour, minute) in any_time()
    ) {
        let text = format!("{hour:02}:{minute:02}");
        let understood = end(&text).resolve(now, &zone, None).expect("there is always a next");
        prop_assert!(understood.at > now);
        // The longest days in these zones have 25 hours.
        prop_assert!(understood.at.duration_since(now) <= SignedDuration::from_hours(25));
        let shown = understood.at.to_zoned(zone.clone());
        match understood.clock {
            ClockReading::Once | ClockReading::Repeated(_) => {
                let (hour, minute) = (i64::from(shown.hour()), i64::from(shown.minute()));
                prop_assert_eq!(format!("{hour:02}:{minute:02}"), text.replace("24:", "00:"));
            }
            ClockReading::Skipped(reading) => {
                let before = understood.at - SignedDuration::from_secs(1);
                prop_assert!(before.to_zoned(zone).datetime() < reading);
                prop_assert!(shown.datetime() >= reading);
            }
        }
    }

    #[test]
    fn a_day_is_over_when_its_end_comes(
        (zone, now) in any_instant(),
        (word, day) in proptest::sample::select(&DAYS)
    ) {
        let understood = end(word).resolve(now, &zone, None).expect("there is always a next");
        prop_assert!(understood.at > now);
        let today = now.to_zoned(zone.clone()).date();
        let meant = day.from(today).expect("within the calendar");
        prop_assert!(understood.at.to_zoned(zone.clone()).date() > meant);
        if understood.clock == ClockReading::Once {
            let before = understood.at - SignedDuration::from_secs(1);
            prop_assert_eq!(before.to_zoned(zone).date(), meant);
        }
        if let Day::Next(weekday) = day {
            prop_assert_eq!(meant.weekday(), weekday);
            prop_assert!(today <= meant && meant < today.checked_add(1.week()).expect("a date"));
        }
    }

    #[test]
    fn a_weekday_with_a_time_comes_within_eight_days(
        (zone, now) in any_instant(), (hour, minute) in any_time()
    ) {
        let text = format!("wed {hour:02}:{minute:02}");
        let understood = end(&text).resolve(now, &zone, None).expect("there is always a next");
        prop_assert!(understood.at > now);
        prop_assert!(understood.at.duration_since(now) <= SignedDuration::from_hours(8 * 24 + 1));
    }

    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,24}", date in "[0-9T: Z+-]{0,24}") {
        for text in [text, date] {
            let now = instant(SATURDAY);
            if let Ok(end) = text.parse::<End>() {
                let understood = end.resolve(now, &zone("Europe/Berlin"), None);
                prop_assert!(understood.is_err() || understood.is_ok_and(|u| u.at > now));
            }
            let lasting: Option<Length> = text.parse().ok();
            if let Some(lasting) = lasting {
                let understood = End::from(lasting).resolve(now, &TimeZone::UTC, None);
                prop_assert!(understood.is_err() || understood.is_ok_and(|u| u.at > now));
            }
        }
    }
}
