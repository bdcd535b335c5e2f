//! Table tests of schedules; `properties` compares them with a simpler model.

#![expect(
    clippy::needless_pass_by_value,
    reason = "tables are easier to read without a borrow in each row"
)]

mod early;
mod explained;
mod properties;
mod unchanged;

use jiff::{Timestamp, ToSpan, civil::Date};
use serde_json::{Value, json};

use super::*;

fn schedule(definition: Value) -> Schedule {
    let definition: Definition = serde_json::from_value(definition).unwrap();
    match Schedule::new(&definition) {
        Ok(schedule) => schedule,
        Err(problems) => panic!("{problems:?}"),
    }
}

fn at(instant: &str) -> Timestamp {
    instant.parse().unwrap()
}

/// Checks all edges from `from` up to `until`, each as `INSTANT DESIRED` in the schedule's own
/// zone.
#[track_caller]
fn check(definition: Value, from: &str, until: &str, expected: &[&str]) {
    let schedule = schedule(definition);
    let zone = schedule.timezone();
    let (from, until) = (at(from), at(until));
    let edges: Vec<Edge> = schedule.edges(from).take_while(|edge| edge.at <= until).collect();
    let shown: Vec<String> = edges
        .iter()
        .map(|edge| {
            let local = edge.at.to_zoned(zone.clone());
            format!("{} {}", local.strftime("%a %m-%d %H:%M%:z"), desired_or_any(edge.desired))
        })
        .collect();
    assert_eq!(shown, expected);
    for edge in edges {
        let before = edge.at - 1.nanosecond();
        assert_eq!(schedule.desired_at(edge.at), edge.desired);
        assert_ne!(schedule.desired_at(before), edge.desired);
        assert_eq!(schedule.next_edge(before), Some(edge));
        let latest = LatestEdge { since: Some(edge.at), desired: edge.desired };
        assert_eq!(schedule.latest_edge(edge.at), latest);
    }
}

/// Checks a schedule of periods in Berlin over a span of days, without clock changes.
#[track_caller]
fn check_periods(periods: Value, from: &str, until: &str, expected: &[&str]) {
    let definition = json!({"timezone": "Europe/Berlin", "periods": periods});
    let (from, until) = (format!("{from}T00:01+02"), format!("{until}T23:59+02"));
    let full: Vec<String> = expected
        .iter()
        .map(|edge| {
            let (when, desired) = edge.rsplit_once(' ').unwrap();
            format!("{when}+02:00 {desired}")
        })
        .collect();
    let full: Vec<&str> = full.iter().map(String::as_str).collect();
    check(definition, &from, &until, &full);
}

#[test]
fn office_hours_begin_and_end_on_working_days() {
    check_periods(
        json!([{"weekdays": ["mon-fri"], "begin": "08:00", "end": "19:00"}]),
        "2026-06-12",
        "2026-06-16",
        &[
            "Fri 06-12 08:00 running",
            "Fri 06-12 19:00 stopped",
            "Mon 06-15 08:00 running",
            "Mon 06-15 19:00 stopped",
            "Tue 06-16 08:00 running",
            "Tue 06-16 19:00 stopped",
        ],
    );
}

#[test]
fn the_longest_stop_of_a_week_is_that_over_its_weekend() {
    let hours = |definition, after| {
        let longest = schedule(definition).longest_stop(at(after));
        longest.map(|longest| longest.as_hours())
    };
    let office = json!({"weekdays": "mon-fri", "begin": "08:00", "end": "19:00"});
    let office = || json!({"timezone": "UTC", "periods": [office]});
    // From Friday 19:00 to Monday 08:00, also if the week begins in the middle of it.
    for after in ["2026-03-03T00:00Z", "2026-03-07T12:00Z"] {
        assert_eq!(hours(office(), after), Some(61), "{after}");
    }
    let daily = json!({"timezone": "UTC", "periods": [{"begin": "08:00", "end": "19:00"}]});
    assert_eq!(hours(daily, "2026-03-03T00:00Z"), Some(13));
    // Stopped for good, and never.
    let never = json!({"timezone": "UTC", "periods": [{"end": "19:00"}]});
    assert_eq!(hours(never, "2026-03-03T00:00Z"), None);
    let always = json!({"timezone": "UTC", "periods": [{"begin": "00:00", "end": "24:00"}]});
    assert_eq!(hours(always, "2026-03-03T00:00Z"), None);
}

#[test]
fn the_longest_run_of_a_week_is_that_of_its_longest_period() {
    let minutes = |periods| {
        let schedule = schedule(json!({"timezone": "UTC", "periods": periods}));
        let longest = schedule.longest_run(at("2026-03-03T09:00Z"));
        longest.map(|longest| longest.as_mins())
    };
    let short = || json!({"begin": "08:00", "end": "08:12"});
    assert_eq!(minutes(json!([short()])), Some(12));
    let both = json!([short(), {"weekdays": "mon", "begin": "20:00", "end": "21:00"}]);
    assert_eq!(minutes(both), Some(60));
    assert_eq!(minutes(json!([{"begin": "00:00", "end": "24:00"}])), None);
}

#[test]
fn intervals_are_half_open_to_the_nanosecond() {
    let schedule = schedule(json!({
        "timezone": "UTC",
        "periods": [{"begin": "08:00", "end": "19:00"}],
    }));
    for (instant, desired) in [
        ("2026-06-15T07:59:59.999999999Z", Desired::Stopped),
        ("2026-06-15T08:00:00Z", Desired::Running),
        ("2026-06-15T18:59:59.999999999Z", Desired::Running),
        ("2026-06-15T19:00:00Z", Desired::Stopped),
        ("1969-12-31T18:59:59.5Z", Desired::Running),
        ("1969-12-31T07:59:59.5Z", Desired::Stopped),
    ] {
        assert_eq!(schedule.desired_at(at(instant)), Some(desired), "{instant}");
    }
}

#[test]
fn a_window_across_midnight_belongs_to_the_day_on_which_it_begins() {
    check_periods(
        json!([{"weekdays": ["fri"], "begin": "22:00", "end": "06:00"}]),
        "2026-06-11",
        "2026-06-20",
        &[
            "Fri 06-12 22:00 running",
            "Sat 06-13 06:00 stopped",
            "Fri 06-19 22:00 running",
            "Sat 06-20 06:00 stopped",
        ],
    );
    check_periods(
        json!([{"monthdays": ["L"], "begin": "22:00", "end": "06:00"}]),
        "2026-06-02",
        "2026-07-15",
        &["Tue 06-30 22:00 running", "Wed 07-01 06:00 stopped"],
    );
}

#[test]
fn midnight_as_an_end_is_that_after_the_day() {
    for end in ["00:00", "24:00"] {
        check_periods(
            json!([{"weekdays": ["wed"], "begin": "20:00", "end": end}]),
            "2026-06-16",
            "2026-06-20",
            &["Wed 06-17 20:00 running", "Thu 06-18 00:00 stopped"],
        );
    }
}

#[test]
fn the_whole_day_may_be_written_in_three_ways() {
    for period in [
        json!({"weekdays": ["wed"]}),
        json!({"weekdays": ["wed"], "begin": "00:00", "end": "24:00"}),
        json!({"weekdays": ["wed"], "begin": "00:00", "end": "00:00"}),
    ] {
        check_periods(
            json!([period]),
            "2026-06-16",
            "2026-06-20",
            &["Wed 06-17 00:00 running", "Thu 06-18 00:00 stopped"],
        );
    }
}

#[test]
fn a_begin_alone_runs_until_midnight_and_then_has_no_desired_state() {
    check_periods(
        json!([{"weekdays": ["mon", "tue"], "begin": "08:00"}]),
        "2026-06-14",
        "2026-06-18",
        &[
            "Mon 06-15 08:00 running",
            "Tue 06-16 00:00 any",
            "Tue 06-16 08:00 running",
            "Wed 06-17 00:00 any",
        ],
    );
}

#[test]
fn an_end_alone_stops_until_midnight_and_has_no_desired_state_before() {
    check_periods(
        json!([{"weekdays": ["mon", "tue"], "end": "19:00"}]),
        "2026-06-14",
        "2026-06-18",
        &[
            "Mon 06-15 19:00 stopped",
            "Tue 06-16 00:00 any",
            "Tue 06-16 19:00 stopped",
            "Wed 06-17 00:00 any",
        ],
    );
}

#[test]
fn an_end_alone_at_midnight_stops_until_the_morning() {
    for end in ["24:00", "00:00"] {
        check_periods(
            json!([{"weekdays": ["mon", "tue"], "end": end}]),
            "2026-06-14",
            "2026-06-18",
            &[
                "Tue 06-16 00:00 stopped",
                "Tue 06-16 06:00 any",
                "Wed 06-17 00:00 stopped",
                "Wed 06-17 06:00 any",
            ],
        );
    }
    // It takes precedence over a begin that is yet to come, and yields to what runs.
    check_periods(
        json!([
            {"begin": "08:00"},
            {"end": "24:00"},
            {"weekdays": ["tue"], "end": "20:00"},
            {"weekdays": ["wed"], "begin": "00:00"},
        ]),
        "2026-06-15",
        "2026-06-17",
        &[
            "Mon 06-15 06:00 any",
            "Mon 06-15 08:00 running",
            "Tue 06-16 00:00 stopped",
            "Tue 06-16 06:00 any",
            "Tue 06-16 08:00 running",
        ],
    );
}

#[test]
fn on_days_that_are_not_its_own_a_one_sided_period_has_no_say() {
    // One day each: neither keeps the other from stopping.
    check_periods(
        json!([{"weekdays": ["mon"], "end": "19:00"}, {"weekdays": ["tue"], "end": "14:00"}]),
        "2026-06-14",
        "2026-06-18",
        &[
            "Mon 06-15 19:00 stopped",
            "Tue 06-16 00:00 any",
            "Tue 06-16 14:00 stopped",
            "Wed 06-17 00:00 any",
        ],
    );
    // With windows as well, all other days are stopped; on its own day nothing starts.
    check_periods(
        json!([
            {"weekdays": ["mon-thu"], "begin": "08:00", "end": "19:00"},
            {"weekdays": ["fri"], "end": "17:00"},
        ]),
        "2026-06-18",
        "2026-06-22",
        &[
            "Thu 06-18 08:00 running",
            "Thu 06-18 19:00 stopped",
            "Fri 06-19 00:00 any",
            "Fri 06-19 17:00 stopped",
            "Mon 06-22 08:00 running",
            "Mon 06-22 19:00 stopped",
        ],
    );
    check_periods(
        json!([
            {"weekdays": ["mon"], "begin": "09:00"},
            {"weekdays": ["tue-thu"]},
            {"weekdays": ["fri"], "end": "17:00"},
        ]),
        "2026-06-14",
        "2026-06-22",
        &[
            "Mon 06-15 00:00 any",
            "Mon 06-15 09:00 running",
            "Fri 06-19 00:00 any",
            "Fri 06-19 17:00 stopped",
            "Mon 06-22 00:00 any",
            "Mon 06-22 09:00 running",
        ],
    );
}

#[test]
fn running_beats_any_beats_stopped() {
    // A window and a begin alone: outside both there is no desired state, so nothing is stopped.
    check_periods(
        json!([{"begin": "08:00", "end": "10:00"}, {"begin": "20:00"}]),
        "2026-06-15",
        "2026-06-15",
        &["Mon 06-15 08:00 running", "Mon 06-15 10:00 any", "Mon 06-15 20:00 running"],
    );
    // A window and an end alone: the window wins over the stop.
    check_periods(
        json!([{"begin": "08:00", "end": "20:00"}, {"end": "19:00"}]),
        "2026-06-15",
        "2026-06-15",
        &["Mon 06-15 08:00 running", "Mon 06-15 20:00 stopped"],
    );
    // Of two ends alone on one day, the later one stops.
    check_periods(
        json!([{"end": "19:00"}, {"weekdays": ["mon"], "end": "21:00"}]),
        "2026-06-15",
        "2026-06-16",
        &["Mon 06-15 21:00 stopped", "Tue 06-16 00:00 any", "Tue 06-16 19:00 stopped"],
    );
    // A begin alone and an end alone: the begin runs until midnight.
    check_periods(
        json!([{"begin": "08:00"}, {"end": "19:00"}]),
        "2026-06-15",
        "2026-06-15",
        &["Mon 06-15 08:00 running"],
    );
}

#[test]
fn overlapping_and_touching_windows_are_one() {
    check_periods(
        json!([
            {"begin": "08:00", "end": "12:00"},
            {"begin": "10:00", "end": "14:00"},
            {"begin": "14:00", "end": "16:00"},
        ]),
        "2026-06-15",
        "2026-06-15",
        &["Mon 06-15 08:00 running", "Mon 06-15 16:00 stopped"],
    );
}

#[test]
fn a_gap_of_one_minute_is_bridged_and_one_of_two_is_not() {
    check_periods(
        json!([{"begin": "08:00", "end": "11:59"}, {"begin": "12:00", "end": "16:00"}]),
        "2026-06-15",
        "2026-06-15",
        &["Mon 06-15 08:00 running", "Mon 06-15 16:00 stopped"],
    );
    check_periods(
        json!([{"begin": "08:00", "end": "11:58"}, {"begin": "12:00", "end": "16:00"}]),
        "2026-06-15",
        "2026-06-15",
        &[
            "Mon 06-15 08:00 running",
            "Mon 06-15 11:58 stopped",
            "Mon 06-15 12:00 running",
            "Mon 06-15 16:00 stopped",
        ],
    );
    check_periods(
        json!([
            {"weekdays": ["mon"], "begin": "08:00", "end": "23:59"},
            {"weekdays": ["tue"], "end": "06:00", "begin": "00:00"},
        ]),
        "2026-06-15",
        "2026-06-16",
        &["Mon 06-15 08:00 running", "Tue 06-16 06:00 stopped"],
    );
    // The end of a begin alone is bridged too; nothing follows on Wednesday.
    check_periods(
        json!([{"weekdays": ["mon-tue"], "begin": "00:01"}]),
        "2026-06-14",
        "2026-06-18",
        &["Mon 06-15 00:01 running", "Wed 06-17 00:00 any"],
    );
}

#[test]
fn a_schedule_that_always_runs_has_no_edge() {
    let week = json!([{"weekdays": ["mon-fri"]}, {"weekdays": ["sat-sun"]}]);
    for periods in [json!([{}]), week] {
        let schedule = schedule(json!({"timezone": "Europe/Berlin", "periods": periods}));
        let now = at("2026-06-15T12:00Z");
        assert_eq!(schedule.next_edge(now), None);
        let latest = LatestEdge { since: None, desired: Some(Desired::Running) };
        assert_eq!(schedule.latest_edge(now), latest);
    }
}

#[test]
fn a_leap_day_is_found_across_a_century_without_one() {
    let schedule = schedule(json!({
        "timezone": "UTC",
        "periods": [{"monthdays": ["29"], "months": ["feb"], "begin": "08:00", "end": "09:00"}],
    }));
    let next = schedule.next_edge(at("2096-02-29T09:00Z")).unwrap();
    assert_eq!(next.at, at("2104-02-29T08:00Z"));
    let latest = schedule.latest_edge(at("2104-02-29T07:59Z"));
    assert_eq!(latest.since, Some(at("2096-02-29T09:00Z")));
}

#[test]
fn the_ends_of_time_are_answered_too() {
    let schedules = [
        json!({"timezone": "Pacific/Kiritimati", "periods": [{"begin": "22:00", "end": "06:00"}]}),
        json!({"timezone": "America/New_York", "start": "0 8 * * *", "stop": "0 9 * * *"}),
    ];
    for schedule in schedules.map(schedule) {
        for end in [Timestamp::MIN, Timestamp::MAX] {
            assert_eq!(schedule.desired_at(end), schedule.latest_edge(end).desired);
            let next = schedule.next_edge(end);
            assert!(next.is_none_or(|edge| edge.at > end), "{next:?}");
        }
    }
}

/// Checks the days of a month on which a period with these fields runs.
#[track_caller]
fn check_days(fields: Value, month: &str, expected: &[i8]) {
    let schedule = schedule(json!({"timezone": "UTC", "periods": [fields]}));
    let first: Date = format!("{month}-01").parse().unwrap();
    let days: Vec<i8> = first
        .series(1.day())
        .take_while(|date| date.month() == first.month())
        .filter(|date| {
            let noon = date.at(12, 0, 0, 0).in_tz("UTC").unwrap();
            schedule.desired_at(noon.timestamp()) == Some(Desired::Running)
        })
        .map(Date::day)
        .collect();
    assert_eq!(days, expected);
}

#[test]
fn weekdays_have_names_ranges_and_occurrences() {
    // June 2026 begins on a Monday and has five Mondays and Tuesdays.
    for (weekdays, expected) in [
        (json!(["mon"]), vec![1, 8, 15, 22, 29]),
        (json!(["Monday"]), vec![1, 8, 15, 22, 29]),
        (json!(["WED", "sun"]), vec![3, 7, 10, 14, 17, 21, 24, 28]),
        (json!(["tue,thursday , SAT"]), vec![2, 4, 6, 9, 11, 13, 16, 18, 20, 23, 25, 27, 30]),
        (json!(["sat-sun"]), vec![6, 7, 13, 14, 20, 21, 27, 28]),
        (json!(["fri-mon"]), vec![1, 5, 6, 7, 8, 12, 13, 14, 15, 19, 20, 21, 22, 26, 27, 28, 29]),
        (json!(["fri - fri"]), vec![5, 12, 19, 26]),
        (json!(["mon-sun"]), (1..=30).collect()),
        (json!(["mon#1"]), vec![1]),
        (json!(["sun#1"]), vec![7]),
        (json!(["tuesday#5"]), vec![30]),
        (json!(["wed#5"]), vec![]),
        (json!(["friL"]), vec![26]),
        (json!(["tuesdayl"]), vec![30]),
        (json!(["mon#2", "sunL,wed#3"]), vec![8, 17, 28]),
    ] {
        check_days(json!({"weekdays": weekdays}), "2026-06", &expected);
    }
    check_days(json!({"weekdays": ["sunL"]}), "2026-02", &[22]);
    check_days(json!({"weekdays": ["satL"]}), "2026-02", &[28]);
    check_days(json!({"weekdays": ["sun#4"]}), "2026-02", &[22]);
}

#[test]
fn monthdays_have_ranges_steps_the_last_and_the_nearest_weekday() {
    for (monthdays, month, expected) in [
        (json!(["7"]), "2026-06", vec![7]),
        (json!(["01, 15", "30"]), "2026-06", vec![1, 15, 30]),
        (json!(["25-31"]), "2026-06", vec![25, 26, 27, 28, 29, 30]),
        (json!(["28-5"]), "2026-06", vec![1, 2, 3, 4, 5, 28, 29, 30]),
        (json!(["28-2"]), "2026-02", vec![1, 2, 28]),
        (json!(["28-L"]), "2026-06", vec![28, 29, 30]),
        (json!(["28-l"]), "2026-02", vec![28]),
        (json!(["30-L"]), "2026-02", vec![]),
        (json!(["1/10"]), "2026-07", vec![1, 11, 21, 31]),
        (json!(["1/10"]), "2026-06", vec![1, 11, 21]),
        (json!(["5-20/3"]), "2026-06", vec![5, 8, 11, 14, 17, 20]),
        (json!(["20-L/5"]), "2026-06", vec![20, 25, 30]),
        (json!(["28-4/2"]), "2026-07", vec![1, 3, 28, 30]),
        (json!(["L"]), "2026-06", vec![30]),
        (json!(["L"]), "2026-02", vec![28]),
        (json!(["l"]), "2028-02", vec![29]),
        (json!(["31"]), "2026-06", vec![]),
        // The 15th of June 2026 is a Monday, the 13th a Saturday, the 14th a Sunday.
        (json!(["15W"]), "2026-06", vec![15]),
        (json!(["13w"]), "2026-06", vec![12]),
        (json!(["14W"]), "2026-06", vec![15]),
        // Never into another month: the 1st of August 2026 is a Saturday, the 31st of May 2026 a
        // Sunday.
        (json!(["1W"]), "2026-08", vec![3]),
        (json!(["31W"]), "2026-05", vec![29]),
        (json!(["31W"]), "2026-06", vec![]),
        (json!(["1W,L"]), "2026-08", vec![3, 31]),
    ] {
        check_days(json!({"monthdays": monthdays}), month, &expected);
    }
}

#[test]
fn months_have_names_numbers_ranges_and_steps() {
    for (months, expected) in [
        (json!(["jan"]), vec![1]),
        (json!(["December", "2"]), vec![2, 12]),
        (json!(["may,JUNE,07"]), vec![5, 6, 7]),
        (json!(["nov-feb"]), vec![1, 2, 11, 12]),
        (json!(["11-2"]), vec![1, 2, 11, 12]),
        (json!(["jan/3"]), vec![1, 4, 7, 10]),
        (json!(["1/3"]), vec![1, 4, 7, 10]),
        (json!(["feb-nov/2"]), vec![2, 4, 6, 8, 10]),
        (json!(["nov-mar/2"]), vec![1, 3, 11]),
    ] {
        let running: Vec<u32> = (1..=12)
            .filter(|month| {
                let schedule =
                    schedule(json!({"timezone": "UTC", "periods": [{"months": months}]}));
                schedule.desired_at(at(&format!("2026-{month:02}-10T12:00Z")))
                    == Some(Desired::Running)
            })
            .collect();
        assert_eq!(running, expected, "{months}");
    }
}

#[test]
fn all_given_fields_must_match() {
    let fields = json!({"weekdays": ["fri"], "monthdays": ["13"]});
    check_days(fields.clone(), "2026-11", &[13]);
    check_days(fields, "2026-10", &[]);
    let fields = json!({"weekdays": ["mon-fri"], "monthdays": ["1-7"], "months": ["jun"]});
    check_days(fields.clone(), "2026-06", &[1, 2, 3, 4, 5]);
    check_days(fields, "2026-07", &[]);
}

#[test]
fn a_period_has_a_first_and_a_last_day() {
    check_periods(
        json!([{"from": "2026-06-16", "until": "2026-06-17", "begin": "22:00", "end": "06:00"}]),
        "2026-06-14",
        "2026-06-20",
        &[
            "Tue 06-16 22:00 running",
            "Wed 06-17 06:00 stopped",
            "Wed 06-17 22:00 running",
            "Thu 06-18 06:00 stopped",
        ],
    );
    // One season begins where the other ends; a one-sided period has no say outside of its dates.
    check_periods(
        json!([
            {"until": "2026-06-15", "begin": "08:00", "end": "19:00"},
            {"from": "2026-06-16", "end": "17:00"},
        ]),
        "2026-06-15",
        "2026-06-16",
        &[
            "Mon 06-15 08:00 running",
            "Mon 06-15 19:00 stopped",
            "Tue 06-16 00:00 any",
            "Tue 06-16 17:00 stopped",
        ],
    );
}

#[test]
fn a_period_may_be_in_another_zone() {
    // Offices in Berlin and New York, six hours apart: one after the other.
    check_periods(
        json!([
            {"weekdays": ["mon-fri"], "begin": "08:00", "end": "19:00"},
            {"weekdays": ["mon-fri"], "begin": "09:00", "end": "17:00", "timezone": "America/New_York"},
            {"weekdays": ["sat"], "begin": "20:00", "end": "23:00", "timezone": "America/New_York"},
        ]),
        "2026-06-18",
        "2026-06-21",
        &[
            "Thu 06-18 08:00 running",
            "Thu 06-18 23:00 stopped",
            "Fri 06-19 08:00 running",
            "Fri 06-19 23:00 stopped",
            "Sun 06-21 02:00 running",
            "Sun 06-21 05:00 stopped",
        ],
    );
    // The clocks change on different days: for two weeks, it is five hours.
    let two = schedule(json!({"timezone": "Europe/Berlin", "periods": [
        {"begin": "08:00", "end": "15:00"},
        {"begin": "09:00", "end": "17:00", "timezone": "America/New_York"},
    ]}));
    let next = |from: &str| two.next_edge(at(from)).unwrap().at.to_string();
    assert_eq!(next("2026-03-20T06:00Z"), "2026-03-20T07:00:00Z");
    assert_eq!(next("2026-03-20T07:00Z"), "2026-03-20T21:00:00Z");
    let explained = two.explain(at("2026-03-20T15:00Z"));
    let says: Vec<_> = explained.periods.iter().map(|period| period.says).collect();
    assert_eq!(says, [Some(PeriodSays::Stopped), Some(PeriodSays::Running)]);
    assert_eq!(two.latest_edge(at("2026-03-20T15:00Z")).since, Some(at("2026-03-20T07:00Z")));
    refuse_period(
        json!({"begin": "08:00", "timezone": "Europe/Berln"}),
        &[("periods[0].timezone", "did you mean Europe/Berlin?")],
    );
}

#[test]
fn dates_that_are_not_valid_are_refused() {
    for date in ["2026-02-30", "12-24", "20261224", "2026-12-24T00", "x", ""] {
        let words = "expected YYYY-MM-DD";
        refuse_period(json!({"from": date}), &[("periods[0].from", words)]);
        refuse_period(json!({"until": date}), &[("periods[0].until", words)]);
    }
    refuse_period(
        json!({"from": "2026-06-16", "until": "2026-06-15"}),
        &[("periods[0].until", "2026-06-15 is before 2026-06-16")],
    );
    refuse_period(
        json!({"from": "2026-06-15", "until": "2026-06-19", "weekdays": "sat"}),
        &[("periods[0]", "no day matches")],
    );
}

#[test]
fn on_a_holiday_no_window_begins_and_what_began_before_ends() {
    check(
        json!({
            "timezone": "Europe/Berlin",
            "periods": [{"begin": "20:00", "end": "06:00"}],
            "holidays": ["2026-06-16"],
        }),
        "2026-06-15T12:00+02",
        "2026-06-18T01:00+02",
        &[
            "Mon 06-15 20:00+02:00 running",
            "Tue 06-16 06:00+02:00 stopped",
            "Wed 06-17 20:00+02:00 running",
        ],
    );
    check(
        json!({
            "timezone": "Europe/Berlin",
            "periods": [{"begin": "08:00"}],
            "holidays": ["06-16"],
        }),
        "2026-06-15T12:00+02",
        "2026-06-17T12:00+02",
        &["Tue 06-16 00:00+02:00 any", "Wed 06-17 08:00+02:00 running"],
    );
}

#[test]
fn on_a_holiday_an_end_alone_still_stops() {
    check(
        json!({
            "timezone": "Europe/Berlin",
            "periods": [{"end": "19:00"}],
            "holidays": ["2026-06-16"],
        }),
        "2026-06-16T00:00+02",
        "2026-06-16T23:59+02",
        &["Tue 06-16 19:00+02:00 stopped"],
    );
}

#[test]
fn a_holiday_is_a_day_of_the_schedules_zone() {
    check(
        json!({
            "timezone": "Pacific/Auckland",
            "periods": [{"begin": "08:00", "end": "09:00"}],
            "holidays": ["2026-06-16"],
        }),
        "2026-06-14T12:00Z",
        "2026-06-17T12:00Z",
        &[
            "Mon 06-15 08:00+12:00 running",
            "Mon 06-15 09:00+12:00 stopped",
            "Wed 06-17 08:00+12:00 running",
            "Wed 06-17 09:00+12:00 stopped",
        ],
    );
}

/// Checks the edges of one window on the day of a clock change.
#[track_caller]
fn check_change(zone: &str, day: &str, begin: &str, end: &str, expected: &[&str]) {
    let date: Date = day.parse().unwrap();
    let instant = |date: Date| date.in_tz(zone).unwrap().timestamp().to_string();
    check(
        json!({"timezone": zone, "periods": [{"begin": begin, "end": end, "monthdays": [date.day().to_string()]}]}),
        &instant(date.yesterday().unwrap()),
        &instant(date.checked_add(2.days()).unwrap()),
        expected,
    );
}

#[test]
fn berlin_in_spring_a_skipped_time_happens_at_the_jump() {
    let check = |begin, end, expected: &[&str]| {
        check_change("Europe/Berlin", "2026-03-29", begin, end, expected);
    };
    check("02:30", "08:00", &["Sun 03-29 03:00+02:00 running", "Sun 03-29 08:00+02:00 stopped"]);
    check("01:00", "02:30", &["Sun 03-29 01:00+01:00 running", "Sun 03-29 03:00+02:00 stopped"]);
    check("02:00", "03:01", &["Sun 03-29 03:00+02:00 running", "Sun 03-29 03:01+02:00 stopped"]);
    check("02:15", "02:45", &[]);
    check("02:00", "03:00", &[]);
}

#[test]
fn berlin_in_autumn_a_window_begins_at_the_first_and_ends_at_the_last_occurrence() {
    let check = |begin, end, expected: &[&str]| {
        check_change("Europe/Berlin", "2026-10-25", begin, end, expected);
    };
    check("02:30", "08:00", &["Sun 10-25 02:30+02:00 running", "Sun 10-25 08:00+01:00 stopped"]);
    check("01:00", "02:30", &["Sun 10-25 01:00+02:00 running", "Sun 10-25 02:30+01:00 stopped"]);
    check("01:00", "02:00", &["Sun 10-25 01:00+02:00 running", "Sun 10-25 02:00+01:00 stopped"]);
    check("02:15", "02:45", &["Sun 10-25 02:15+02:00 running", "Sun 10-25 02:45+01:00 stopped"]);
    check("03:00", "04:00", &["Sun 10-25 03:00+01:00 running", "Sun 10-25 04:00+01:00 stopped"]);
}

#[test]
fn new_york_changes_its_clock_at_two() {
    check_change(
        "America/New_York",
        "2026-03-08",
        "02:30",
        "09:00",
        &["Sun 03-08 03:00-04:00 running", "Sun 03-08 09:00-04:00 stopped"],
    );
    check_change(
        "America/New_York",
        "2026-11-01",
        "01:15",
        "01:45",
        &["Sun 11-01 01:15-04:00 running", "Sun 11-01 01:45-05:00 stopped"],
    );
}

#[test]
fn lord_howe_changes_its_clock_by_half_an_hour() {
    check_change(
        "Australia/Lord_Howe",
        "2026-10-04",
        "02:10",
        "02:40",
        &["Sun 10-04 02:30+11:00 running", "Sun 10-04 02:40+11:00 stopped"],
    );
    check_change(
        "Australia/Lord_Howe",
        "2026-04-05",
        "01:40",
        "01:50",
        &["Sun 04-05 01:40+11:00 running", "Sun 04-05 01:50+10:30 stopped"],
    );
}

#[test]
fn where_midnight_is_skipped_the_day_begins_at_the_jump() {
    // In Cairo 24 April 2026 begins at 01:00.
    check(
        json!({"timezone": "Africa/Cairo", "periods": [{"weekdays": ["fri"]}]}),
        "2026-04-22T00:00Z",
        "2026-04-26T00:00Z",
        &["Fri 04-24 01:00+03:00 running", "Sat 04-25 00:00+03:00 stopped"],
    );
    check(
        json!({"timezone": "Africa/Cairo", "periods": [{"weekdays": ["thu"], "begin": "20:00"}]}),
        "2026-04-22T00:00Z",
        "2026-04-26T00:00Z",
        &["Thu 04-23 20:00+02:00 running", "Fri 04-24 01:00+03:00 any"],
    );
    check(
        json!({"timezone": "Africa/Cairo", "periods": [{"weekdays": ["thu"], "end": "20:00"}]}),
        "2026-04-22T00:00Z",
        "2026-04-26T00:00Z",
        &["Thu 04-23 20:00+02:00 stopped", "Fri 04-24 01:00+03:00 any"],
    );
}

#[test]
fn where_midnight_is_repeated_a_day_begins_at_its_first_and_ends_at_its_last() {
    // In Havana the clock goes back from 01:00 to midnight on Sunday, 1 November 2026.
    check(
        json!({"timezone": "America/Havana", "periods": [{"weekdays": ["sun"]}]}),
        "2026-10-31T00:00Z",
        "2026-11-03T00:00Z",
        &["Sun 11-01 00:00-04:00 running", "Mon 11-02 00:00-05:00 stopped"],
    );
    check(
        json!({"timezone": "America/Havana", "periods": [{"weekdays": ["sat"]}]}),
        "2026-10-30T00:00Z",
        "2026-11-03T00:00Z",
        &["Sat 10-31 00:00-04:00 running", "Sun 11-01 00:00-05:00 stopped"],
    );
    check(
        json!({"timezone": "America/Havana", "periods": [{"weekdays": ["sat"], "end": "20:00"}]}),
        "2026-10-30T00:00Z",
        "2026-11-03T00:00Z",
        &["Sat 10-31 20:00-04:00 stopped", "Sun 11-01 00:00-05:00 any"],
    );
    // In Cairo it goes back from midnight to 23:00 on Thursday, 29 October 2026.
    check(
        json!({"timezone": "Africa/Cairo", "periods": [{"weekdays": ["thu"], "begin": "23:30"}]}),
        "2026-10-28T00:00Z",
        "2026-10-31T00:00Z",
        &["Thu 10-29 23:30+03:00 running", "Fri 10-30 00:00+02:00 any"],
    );
}

#[test]
fn windows_of_a_day_that_a_zone_leaves_out_keep_what_lies_on_the_next() {
    // Samoa went from Thursday, 29 December 2011 to Saturday, the 31st.
    check(
        json!({"timezone": "Pacific/Apia", "periods": [{"weekdays": ["fri"], "begin": "08:00", "end": "18:00"}]}),
        "2011-12-29T20:00Z",
        "2012-01-05T12:00Z",
        &[],
    );
    check(
        json!({"timezone": "Pacific/Apia", "periods": [{"begin": "22:00", "end": "06:00"}]}),
        "2011-12-29T20:00Z",
        "2011-12-31T20:00Z",
        &[
            "Thu 12-29 22:00-10:00 running",
            "Sat 12-31 06:00+14:00 stopped",
            "Sat 12-31 22:00+14:00 running",
            "Sun 01-01 06:00+14:00 stopped",
        ],
    );
}

#[test]
fn nothing_is_stopped_and_started_by_a_clock_change() {
    // Two windows that meet at any time of any day run through every clock change.
    for zone in ["Europe/Berlin", "America/Havana", "Africa/Cairo", "Australia/Lord_Howe"] {
        for meeting in ["00:00", "00:30", "01:00", "01:45", "02:00", "02:30", "03:00", "23:30"] {
            let schedule = schedule(json!({
                "timezone": zone,
                "periods": [
                    {"begin": meeting, "end": "12:00"},
                    {"begin": "12:00", "end": meeting},
                ],
            }));
            let edges: Vec<Edge> = schedule.edges(at("2026-01-01T00:00Z")).take(2).collect();
            assert_eq!(edges, [], "{zone} {meeting}");
        }
    }
}

#[test]
fn a_clock_change_may_make_a_gap_small_enough_to_be_bridged() {
    check(
        json!({
            "timezone": "Europe/Berlin",
            "periods": [
                {"weekdays": ["sun"], "begin": "01:00", "end": "02:30"},
                {"weekdays": ["sun"], "begin": "03:01", "end": "04:00"},
            ],
        }),
        "2026-03-28T12:00Z",
        "2026-03-29T12:00Z",
        &["Sun 03-29 01:00+01:00 running", "Sun 03-29 04:00+02:00 stopped"],
    );
}

#[test]
fn cron_wants_are_those_of_the_latest_firing() {
    check(
        json!({"timezone": "Europe/Berlin", "start": "0 8 * * mon-fri", "stop": "0 19 * * *"}),
        "2026-06-12T12:00Z",
        "2026-06-16T00:00Z",
        &[
            "Fri 06-12 19:00+02:00 stopped",
            "Mon 06-15 08:00+02:00 running",
            "Mon 06-15 19:00+02:00 stopped",
        ],
    );
    // Only the first of several starts is an edge.
    check(
        json!({"timezone": "UTC", "start": "*/15 8-17 * * *", "stop": "@daily"}),
        "2026-06-15T00:00Z",
        "2026-06-16T12:00Z",
        &[
            "Mon 06-15 08:00+00:00 running",
            "Tue 06-16 00:00+00:00 stopped",
            "Tue 06-16 08:00+00:00 running",
        ],
    );
}

#[test]
fn of_a_cron_start_and_stop_at_one_minute_the_start_wins() {
    check(
        json!({"timezone": "UTC", "start": "0 8 * * mon", "stop": "0 8 * * *"}),
        "2026-06-13T12:00Z",
        "2026-06-23T00:00Z",
        &[
            "Mon 06-15 08:00+00:00 running",
            "Tue 06-16 08:00+00:00 stopped",
            "Mon 06-22 08:00+00:00 running",
        ],
    );
    // Stops without effect are skipped in both directions.
    check(
        json!({"timezone": "UTC", "start": "0 8 * * mon-sat", "stop": "0 8 * * *"}),
        "2026-06-08T12:00Z",
        "2026-06-16T00:00Z",
        &["Sun 06-14 08:00+00:00 stopped", "Mon 06-15 08:00+00:00 running"],
    );
}

#[test]
fn cron_days_of_month_and_of_week_are_ored() {
    check(
        json!({"timezone": "UTC", "start": "0 8 1,15 * fri", "stop": "0 9 * * *"}),
        "2026-05-31T00:00Z",
        "2026-06-06T00:00Z",
        &[
            "Mon 06-01 08:00+00:00 running",
            "Mon 06-01 09:00+00:00 stopped",
            "Fri 06-05 08:00+00:00 running",
            "Fri 06-05 09:00+00:00 stopped",
        ],
    );
}

#[test]
fn on_a_holiday_no_cron_start_fires_and_stops_do() {
    check(
        json!({
            "timezone": "Europe/Berlin",
            "start": "*/5 8 * * *",
            "stop": "0 19 * * *",
            "holidays": ["2026-06-16..2026-06-17"],
        }),
        "2026-06-15T12:00Z",
        "2026-06-18T12:00Z",
        &["Mon 06-15 19:00+02:00 stopped", "Thu 06-18 08:00+02:00 running"],
    );
    check(
        json!({
            "timezone": "Europe/Berlin",
            "start": "0 20 * * *",
            "stop": "0 6 * * *",
            "holidays": ["2026-06-16"],
        }),
        "2026-06-15T12:00Z",
        "2026-06-17T12:00Z",
        &["Mon 06-15 20:00+02:00 running", "Tue 06-16 06:00+02:00 stopped"],
    );
}

#[test]
fn one_cron_expression_alone_acts_until_midnight() {
    check(
        json!({"timezone": "Europe/Berlin", "stop": "0 20 * * mon-fri"}),
        "2026-06-11T00:01+02",
        "2026-06-16T00:00+02",
        &[
            "Thu 06-11 20:00+02:00 stopped",
            "Fri 06-12 00:00+02:00 any",
            "Fri 06-12 20:00+02:00 stopped",
            "Sat 06-13 00:00+02:00 any",
            "Mon 06-15 20:00+02:00 stopped",
            "Tue 06-16 00:00+02:00 any",
        ],
    );
    check(
        json!({"timezone": "Europe/Berlin", "start": "0 7,9 * * *", "holidays": ["2026-06-12"]}),
        "2026-06-11T00:01+02",
        "2026-06-14T00:00+02",
        &[
            "Thu 06-11 07:00+02:00 running",
            "Fri 06-12 00:00+02:00 any",
            "Sat 06-13 07:00+02:00 running",
            "Sun 06-14 00:00+02:00 any",
        ],
    );
}

#[test]
fn a_stop_alone_at_midnight_is_an_edge_every_day() {
    check(
        json!({"timezone": "UTC", "stop": "0 0 * * *"}),
        "2026-06-14T12:00Z",
        "2026-06-16T12:00Z",
        &[
            "Mon 06-15 00:00+00:00 stopped",
            "Mon 06-15 06:00+00:00 any",
            "Tue 06-16 00:00+00:00 stopped",
            "Tue 06-16 06:00+00:00 any",
        ],
    );
}

#[test]
fn a_start_that_only_holidays_have_never_fires() {
    let now = at("2026-06-15T12:00Z");
    let never = schedule(json!({
        "timezone": "UTC",
        "start": "0 8 * * *",
        "stop": "0 19 * * *",
        "holidays": ["01-01..12-31"],
    }));
    assert_eq!(never.desired_at(now), Some(Desired::Stopped));
    assert_eq!(never.latest_edge(now).since, None);
    assert_eq!(never.next_edge(now), None);
}

#[test]
fn cron_edges_are_found_at_any_distance() {
    let schedule = schedule(json!({
        "timezone": "UTC",
        "start": "0 8 29 2 *",
        "stop": "0 8 1 1 *",
    }));
    let next = schedule.next_edge(at("2097-06-01T00:00Z")).unwrap();
    assert_eq!(next.at, at("2104-02-29T08:00Z"));
    let latest = schedule.latest_edge(at("2104-02-29T07:59Z"));
    assert_eq!(latest.since, Some(at("2097-01-01T08:00Z")));
}

#[test]
fn many_coinciding_cron_firings_do_not_hold_the_search_up() {
    let schedule = schedule(json!({
        "timezone": "UTC",
        "start": "* * * * *",
        "stop": "*/2 * * * *",
    }));
    assert_eq!(schedule.next_edge(at("2026-06-15T12:00Z")), None);
    assert_eq!(schedule.latest_edge(at("2026-06-15T12:00Z")).since, None);
}

#[test]
fn cron_firings_at_a_clock_change_come_like_begins_and_ends() {
    let check = |start, stop, from, until, expected: &[&str]| {
        let zone = "Europe/Berlin";
        check(json!({"timezone": zone, "start": start, "stop": stop}), from, until, expected);
    };
    let spring = ("2026-03-28T12:00Z", "2026-03-29T22:00Z");
    let autumn = ("2026-10-24T12:00Z", "2026-10-25T22:00Z");
    check(
        "30 2 * * *",
        "0 8 * * *",
        spring.0,
        spring.1,
        &["Sun 03-29 03:00+02:00 running", "Sun 03-29 08:00+02:00 stopped"],
    );
    check(
        "0 1 * * *",
        "30 2 * * *",
        spring.0,
        spring.1,
        &["Sun 03-29 01:00+01:00 running", "Sun 03-29 03:00+02:00 stopped"],
    );
    // Both are skipped: the later one determines the desired state.
    check("15 2 * * *", "45 2 * * *", spring.0, spring.1, &[]);
    check("45 2 * * *", "15 2 * * *", spring.0, spring.1, &[]);
    check(
        "30 2 * * *",
        "0 8 * * *",
        autumn.0,
        autumn.1,
        &["Sun 10-25 02:30+02:00 running", "Sun 10-25 08:00+01:00 stopped"],
    );
    check(
        "0 1 * * *",
        "30 2 * * *",
        autumn.0,
        autumn.1,
        &["Sun 10-25 01:00+02:00 running", "Sun 10-25 02:30+01:00 stopped"],
    );
    // A pause of half an hour: the start's first occurrence comes before the stop's last one.
    check("45 2 * * *", "15 2 * * *", autumn.0, autumn.1, &[]);
}

/// Checks the places and messages of all problems with a definition, in order.
#[track_caller]
fn refuse(definition: Value, expected: &[(&str, &str)]) {
    let definition: Definition = serde_json::from_value(definition).unwrap();
    let problems = Schedule::new(&definition).unwrap_err();
    let places: Vec<String> = problems.iter().map(|problem| problem.place.to_string()).collect();
    let expected_places: Vec<&str> = expected.iter().map(|(place, _)| *place).collect();
    assert_eq!(places, expected_places, "{problems:?}");
    for (problem, (_, words)) in problems.iter().zip(expected) {
        assert!(problem.message.contains(words), "{problem} does not say {words}");
    }
}

#[track_caller]
fn refuse_period(period: Value, expected: &[(&str, &str)]) {
    refuse(json!({"timezone": "UTC", "periods": [period]}), expected);
}

#[test]
fn weekdays_that_are_not_valid_are_refused() {
    for (weekdays, words) in [
        ("1", "tools disagree"),
        ("0-4", "tools disagree"),
        ("mo", "unknown weekday `mo`"),
        ("montag", "expected mon, tue"),
        ("mon-", "unknown weekday ``"),
        ("mon-fri-sun", "unknown weekday `fri-sun`"),
        ("mon#0", "1 to 5"),
        ("mon#6", "1 to 5"),
        ("mon#", "1 to 5"),
        ("#1", "unknown weekday"),
        ("mon-fri#1", "unknown weekday"),
        ("L", "unknown weekday"),
        ("mon/2", "no steps"),
        ("*", "unknown weekday"),
        ("mon,,tue", "an entry is empty"),
        ("", "an entry is empty"),
    ] {
        refuse_period(json!({"weekdays": [weekdays]}), &[("periods[0].weekdays", words)]);
    }
}

#[test]
fn monthdays_that_are_not_valid_are_refused() {
    for (monthdays, words) in [
        ("0", "1 to 31"),
        ("32", "1 to 31"),
        ("-1", "1 to 31"),
        ("+1", "1 to 31"),
        ("first", "1 to 31"),
        ("1-", "1 to 31"),
        ("L-3", "1 to 31"),
        ("L/2", "1 to 31"),
        ("W", "1 to 31"),
        ("LW", "1 to 31"),
        ("1-5W", "1 to 31"),
        ("*/2", "1 to 31"),
        ("1/0", "invalid step"),
        ("1/", "invalid step"),
        ("1/x", "invalid step"),
        ("1/2/3", "invalid step"),
    ] {
        refuse_period(json!({"monthdays": [monthdays]}), &[("periods[0].monthdays", words)]);
    }
}

#[test]
fn months_that_are_not_valid_are_refused() {
    for (months, words) in [
        ("0", "jan to dec or 1 to 12"),
        ("13", "jan to dec or 1 to 12"),
        ("januar", "jan to dec or 1 to 12"),
        ("jan-", "jan to dec or 1 to 12"),
        ("*", "jan to dec or 1 to 12"),
        ("jan/0", "invalid step"),
    ] {
        refuse_period(json!({"months": [months]}), &[("periods[0].months", words)]);
    }
}

#[test]
fn days_that_never_come_are_refused() {
    for period in [
        json!({"monthdays": ["30"], "months": ["feb"]}),
        json!({"monthdays": ["31"], "months": ["apr,jun,sep,nov"]}),
        json!({"monthdays": ["30W"], "months": ["2"]}),
        json!({"weekdays": ["mon#5"], "monthdays": ["1-28"]}),
        json!({"weekdays": ["sat"], "monthdays": ["15W"]}),
    ] {
        refuse_period(period, &[("periods[0]", "no day matches")]);
    }
    // A fifth Monday in February is rare, but it exists.
    schedule(json!({
        "timezone": "UTC",
        "periods": [{"weekdays": ["mon#5"], "months": ["feb"]}],
    }));
}

#[test]
fn times_that_are_not_valid_are_refused() {
    for time in [
        "8:00", "08:0", "0800", "08:60", "25:00", "24:01", "08:00:00", "8am", "", " 08:00", "+8:00",
    ] {
        refuse_period(json!({"begin": time}), &[("periods[0].begin", "expected HH:MM")]);
        refuse_period(json!({"end": time}), &[("periods[0].end", "expected HH:MM")]);
    }
}

#[test]
fn windows_of_no_length_are_refused() {
    let both = |begin: &str, end: &str| json!({"begin": begin, "end": end});
    refuse_period(both("08:00", "08:00"), &[("periods[0].end", "ends when it begins")]);
    refuse_period(both("24:00", "08:00"), &[("periods[0].begin", "write 00:00")]);
    refuse_period(json!({"begin": "24:00"}), &[("periods[0].begin", "write 00:00")]);
}

#[test]
fn a_schedule_has_periods_or_cron_or_a_state() {
    let periods = json!([{"begin": "08:00"}]);
    let words = "keep one of them";
    refuse(
        json!({"timezone": "UTC", "periods": periods, "start": "0 8 * * *"}),
        &[("schedule", words)],
    );
    refuse(
        json!({"timezone": "UTC", "periods": periods, "stop": "0 8 * * *"}),
        &[("schedule", words)],
    );
    refuse(
        json!({"timezone": "UTC", "state": "running", "stop": "0 8 * * *"}),
        &[("schedule", words)],
    );
    refuse(
        json!({"timezone": "UTC", "state": "stopped", "periods": periods}),
        &[("schedule", words)],
    );
    refuse(json!({"timezone": "UTC"}), &[("schedule", "has no times")]);
}

#[test]
fn a_state_is_desired_at_all_times() {
    for (state, desired) in [("running", Desired::Running), ("stopped", Desired::Stopped)] {
        let schedule = schedule(json!({"timezone": "UTC", "state": state, "holidays": ["06-15"]}));
        let now = at("2026-06-15T12:00Z");
        assert_eq!(schedule.desired_at(now), Some(desired));
        assert_eq!(schedule.latest_edge(now).since, None);
        assert_eq!(schedule.next_edge(now), None);
        assert_eq!(schedule.explain(now).desired, Some(desired));
    }
}

#[test]
fn cron_expressions_that_are_not_valid_are_refused() {
    for (text, words) in [
        ("", "has 0 fields"),
        ("0 8 * *", "has 4 fields"),
        ("0 0 8 * * *", "has 6 fields"),
        ("0 0 8 * * * 2026", "has 7 fields"),
        ("60 8 * * *", "invalid cron expression"),
        ("0 24 * * *", "invalid cron expression"),
        ("0 8 * * someday", "invalid cron expression"),
        ("@reboot", "invalid cron expression"),
        ("30 2 30 2 *", "never fires"),
        ("0 8 * * mon-thur", "unknown weekday `thur`"),
        ("0 8 ? * 2-6", "and tue-sat in cron"),
        ("CRON_TZ=UTC 0 8 * * *", "write timezone = \"UTC\""),
    ] {
        refuse(
            json!({"timezone": "UTC", "start": text, "stop": "0 19 * * *"}),
            &[("start", words)],
        );
        refuse(json!({"timezone": "UTC", "start": "0 7 * * *", "stop": text}), &[("stop", words)]);
    }
    refuse(
        json!({"timezone": "UTC", "start": "0 8 * * mon", "stop": "0 8 * * 1"}),
        &[("stop", "always fire together")],
    );
}

#[test]
fn an_unknown_zone_is_refused_with_the_nearest_names() {
    for (zone, words) in [
        ("Europe/Berln", "Europe/Berlin"),
        ("Berlin", "Europe/Berlin"),
        ("europe/new york", "America/New_York"),
        ("", "write an IANA name"),
        ("!!", "write an IANA name"),
        ("Etc/Unknown", "unknown time zone"),
    ] {
        refuse(json!({"timezone": zone, "periods": [{}]}), &[("timezone", words)]);
    }
    let schedule = schedule(json!({"timezone": "europe/berlin", "periods": [{}]}));
    assert_eq!(schedule.timezone().iana_name(), Some("Europe/Berlin"));
}

#[test]
fn all_problems_are_reported_at_once() {
    refuse(
        json!({
            "timezone": "Mars/Olympus",
            "holidays": ["2026-02-30", "01-01", "12-32, 13-01"],
            "periods": [
                {"weekdays": ["1, mon, 2"], "months": ["x"], "begin": "8", "end": "9"},
                {"begin": "08:00"},
                {"monthdays": ["0"], "begin": "10:00", "end": "10:00"},
            ],
            "stop": "daily",
        }),
        &[
            ("timezone", "Mars/Olympus"),
            ("holidays[0]", "02-30"),
            ("holidays[2]", "12-32"),
            ("holidays[2]", "13-01"),
            ("periods[0].weekdays", "`1`"),
            ("periods[0].weekdays", "`2`"),
            ("periods[0].months", "`x`"),
            ("periods[0].begin", "`8`"),
            ("periods[0].end", "`9`"),
            ("periods[2].monthdays", "`0`"),
            ("periods[2].end", "ends when it begins"),
            ("stop", "has 1 fields"),
            ("schedule", "keep one of them"),
        ],
    );
}

#[test]
fn a_definition_is_stored_as_it_was_written() {
    let stored = json!({
        "timezone": "Europe/Berlin",
        "periods": [{"weekdays": ["mon-fri", "sat#1"], "begin": "08:00"}, {"end": "19:00"}, {}],
        "holidays": ["01-01"],
    });
    let schedule = schedule(stored.clone());
    assert_eq!(serde_json::to_value(schedule.definition()).unwrap(), stored);
    let cron = json!({"timezone": "UTC", "start": "@daily", "stop": "0 1 * * *"});
    let definition: Definition = serde_json::from_value(cron.clone()).unwrap();
    assert_eq!(serde_json::to_value(definition).unwrap(), cron);
}

#[test]
fn desired_states_are_written_in_lower_case() {
    for (desired, word) in [(Desired::Running, "running"), (Desired::Stopped, "stopped")] {
        assert_eq!(desired.to_string(), word);
        assert_eq!(serde_json::to_value(desired).unwrap(), json!(word));
    }
}

#[test]
fn an_end_outside_of_any_schedule_is_read_like_the_end_of_a_window() {
    #[track_caller]
    fn check(zone: &str, reading: &str, expected: &str) {
        let zone = TimeZone::get(zone).unwrap();
        let at = ends_at(&zone, reading.parse().unwrap());
        assert_eq!(at.to_string(), expected, "{reading}");
    }
    check("Europe/Berlin", "2026-06-15T09:00", "2026-06-15T07:00:00Z");
    check("Europe/Berlin", "2026-03-29T02:30", "2026-03-29T01:00:00Z");
    check("Europe/Berlin", "2026-10-25T02:30", "2026-10-25T01:30:00Z");
}
