use super::*;
use crate::configuration_file::parse;

const TABLE: &str = include_str!("fixtures/table.json");
const SCAN: &str = include_str!("fixtures/scan.json");
const SCHEDULES: &str = include_str!("fixtures/schedules.json");
const PERIODS: &str = include_str!("fixtures/periods.json");

fn sources(texts: &[&str]) -> Vec<Source> {
    let source = |(index, text): (usize, &&str)| Source {
        name: format!("{index}.json"),
        text: (*text).to_owned(),
    };
    texts.iter().enumerate().map(source).collect()
}

/// The TOML, which is read again, and the remarks.
#[track_caller]
fn imported(texts: &[&str], zone: Option<&str>) -> (String, String) {
    let imported = import(&sources(texts), zone).expect("it can be read");
    let text = imported.to_toml();
    match parse(&text, "imported") {
        Ok(parsed) => assert_eq!(parsed.configuration.schedules.len(), imported.schedules.len()),
        Err(problems) => panic!("{problems:#?}\n{text}"),
    }
    let remarks: Vec<_> = imported.remarks.iter().map(ToString::to_string).collect();
    (text, remarks.join("\n"))
}

#[test]
fn a_scan_of_the_table_is_translated() {
    let (text, remarks) = imported(&[TABLE], None);
    insta::assert_snapshot!(text, @r#"
    timezone = "Europe/London"

    [schedules.friday]
    periods = [
      { weekdays = "mon-fri", begin = "09:00", end = "17:00" },
      { weekdays = "fri", end = "17:00" },
    ]

    [schedules.go-home]
    periods = [{ end = "17:00" }]

    [schedules.running]
    state = "running"

    [schedules.scale-up-down]
    timezone = "UTC"
    periods = [
      { weekdays = "sat-sun" },
      { weekdays = "mon-fri" },
    ]
    enforce = true

    [schedules.seattle-office-hours]
    timezone = "US/Pacific"
    periods = [{ weekdays = "mon-fri", begin = "09:00", end = "17:00" }]

    [schedules.uk-office-hours]
    state = "stopped"
    adopt = "next-edge"

    [schedules.week]
    periods = [
      { weekdays = "mon", begin = "09:00" },
      { weekdays = "tue-thu" },
      { weekdays = "fri", end = "17:00" },
    ]
    "#);
    insta::assert_snapshot!(remarks, @r#"
    warning: config scheduler: no counterpart here: `regions`, `tagname`
    warning: schedule uk-office-hours: has state = "stopped" here, for its override_status
    warning: schedule uk-office-hours: no counterpart here: `ssm_maintenance_window`, `use_maintenance_window`
    left out: schedule reports: period `night`: from 22:00 to 06:00 never runs anything there, and would end on the next day here
    warning: schedule running: has state = "running" here, for its override_status
    warning: schedule Scale Up & Down!: machines keep their size here: weekends@t2.nano
    warning: schedule Scale Up & Down!: machines keep their size here: working-days@t2.micro
    warning: schedule Scale Up & Down!: no counterpart here: `hibernate`
    warning: schedule Scale Up & Down!: is called `scale-up-down` here, and in tags
    "#);
}

#[test]
fn a_schedule_without_a_zone_gets_the_one_that_is_named() {
    let (text, remarks) = imported(&[SCAN], None);
    insta::assert_snapshot!(text, @r#"
    timezone = "UTC"

    [schedules.all-schedule]
    periods = [{ weekdays = "mon, wed, fri-sun", begin = "10:30", end = "20:00" }]
    "#);
    insta::assert_snapshot!(remarks, @"
    warning: schedule all: has no time zone, and the stack's is not known: UTC is used; --timezone names another
    warning: schedule all: is called `all-schedule` here, and in tags
    ");
    let (text, remarks) = imported(&[SCAN], Some("Asia/Tokyo"));
    assert!(text.starts_with("timezone = \"Asia/Tokyo\"\n"), "{text}");
    assert!(!remarks.contains("time zone"), "{remarks}");
    // Windows marks UTF-8 text.
    assert_eq!(imported(&[&format!("\u{feff}{SCAN}")], Some("Asia/Tokyo")), (text, remarks));
    let error = import(&sources(&[SCAN]), Some("Asia/Tokio")).unwrap_err();
    assert!(error.to_string().contains("did you mean Asia/Tokyo"), "{error}");
}

#[test]
fn what_the_command_line_describes_may_come_in_two_files() {
    let (text, remarks) = imported(&[SCHEDULES, PERIODS], None);
    insta::assert_snapshot!(text, @r#"
    timezone = "Europe/London"

    [schedules.londonofficehours]
    periods = [
      { weekdays = "mon-fri", begin = "09:00", end = "17:00" },
      { weekdays = "sat-sun", monthdays = "1-7", months = "oct-mar", begin = "10:00", end = "14:00" },
    ]
    retain_running = true
    "#);
    insta::assert_snapshot!(remarks, @"
    left out: schedule broken: unknown time zone `Mars/Olympus`; write an IANA name such as Europe/Berlin
    left out: schedule lost: its period `nowhere` is in none of the files
    warning: schedule LondonOfficeHours: no counterpart here: `UseMetrics`
    warning: schedule LondonOfficeHours: is called `londonofficehours` here, and in tags
    ");
    assert_eq!(imported(&[PERIODS, SCHEDULES, PERIODS], None), (text, remarks));
}

#[test]
fn every_problem_of_a_schedules_periods_is_named_and_none_is_called_unused() {
    let text = r#"{"Schedule": {"Name": "s", "Timezone": "UTC", "Periods": ["a", "b", "c"]}}
        {"Periods": [{"Name": "a", "Weekdays": "tue-wed-sat"}, {"Name": "b", "Begintime": "9 am"},
                     {"Name": "c", "Weekdays": "mon to fri"}]}"#;
    let (text, remarks) = imported(&[text], None);
    assert_eq!(text, "");
    insta::assert_snapshot!(remarks, @"left out: schedule s: period `a`: `tue-wed-sat`: unknown weekday `wed-sat`: expected mon, tue, wed, thu, fri, sat or sun, a range such as mon-fri, sat#1 for the first of the month or friL for the last; period `b`: invalid time `9 am`: expected HH:MM, from 00:00 to 24:00; period `c`: `mon to fri`: unknown weekday `mon to fri`: expected mon, tue, wed, thu, fri, sat or sun, a range such as mon-fri, sat#1 for the first of the month or friL for the last");
}

#[test]
fn periods_with_one_side_are_kept_where_they_mean_the_same() {
    let office = r#"{"Name": "a", "Weekdays": "mon-thu", "Begintime": "8:00", "Endtime": "19:00"}"#;
    let daily = r#"{"Name": "a", "Begintime": "8:00"}"#;
    // Stopped from Tuesday on there, and left running here.
    let monday = r#"{"Name": "a", "Weekdays": "mon", "Begintime": "8:00"}"#;
    for (period, is_same) in [(office, true), (daily, true), (monday, false)] {
        let text = format!(
            r#"{{"Schedule": {{"Name": "s", "Timezone": "UTC", "Periods": ["a", "b"]}},
                "Periods": [{period}, {{"Name": "b", "Weekdays": "fri", "Endtime": "17:00"}}]}}"#
        );
        let remarks = imported(&[&text], None).1;
        let left_out =
            "left out: schedule s: its periods with only a begin or an end, on some days";
        assert_eq!(remarks.starts_with(left_out), !is_same, "{period}: {remarks}");
    }
}

#[test]
fn names_keep_to_the_grammar_and_apart() {
    for (theirs, ours) in [
        ("office-hours", "office-hours"),
        ("Office -- Hours", "office-hours"),
        ("--x--", "x"),
        ("Büro", "b-ro"),
        ("all", "all-schedule"),
        ("!", "schedule"),
        (&"x".repeat(80), &"x".repeat(63)),
    ] {
        assert_eq!(name(theirs).as_str(), ours, "{theirs}");
    }
}

#[test]
fn of_schedules_whose_names_become_one_the_name_that_fits_is_kept() {
    let alike = r#"{"Schedules": [
        {"Name": "Office", "Periods": ["weekdays"]}, {"Name": "office", "Periods": ["weekends"]}]}"#;
    let (text, remarks) = imported(&[alike, PERIODS], Some("UTC"));
    assert!(text.contains("sat-sun"), "{text}");
    let left_out = "left out: schedule Office: would be called `office`, as another is";
    assert_eq!(remarks, left_out);
}

#[test]
fn other_files_are_refused_and_say_why() {
    let other = PERIODS.replace("09:00", "08:00");
    for (texts, expected) in [
        (
            &["{\"Items\": ["][..],
            "0.json is not JSON: EOF while parsing a list at line 1 column 11",
        ),
        (&["\"type\",\"name\"\n\"period\",\"p\""], "; write the table as JSON, `aws dynamodb scan"),
        (
            &["{\"Reservations\": []}"],
            "0.json is neither a scan of the scheduler's DynamoDB table nor",
        ),
        (&[PERIODS], "there are no schedules in 0.json"),
        (&["", "{\"Schedules\": []}"], "there are no schedules in 0.json, 1.json"),
        (&["{\"Schedules\": [{\"Periods\": []}]}"], "0.json has an item without a `name`"),
        (&[SCHEDULES, PERIODS, &other], "2.json has another period weekdays than an earlier file"),
    ] {
        let error = import(&sources(texts), None).expect_err("it is refused").to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_schedule_whose_fields_cannot_be_read_is_left_out_alone() {
    let check = |field: &str, expected: &str| {
        let text = format!(
            r#"{{"Schedules": [
                {{"Name": "bad", "Timezone": "UTC", "Periods": ["p"], {field}}},
                {{"Name": "good", "Timezone": "UTC", "Periods": ["weekdays"]}}],
                "Period": {{"Name": "p", "Weekdays": ["mon"]}}}}"#
        );
        let (text, remarks) = imported(&[&text, PERIODS], None);
        assert!(text.contains("[schedules.good]") && !text.contains("bad"), "{text}");
        let shown = format!("left out: schedule bad: {expected}");
        assert!(remarks.contains(&shown), "{remarks}");
    };
    check(r#""Enforced": "maybe""#, "`Enforced` is neither true nor false");
    check(r#""OverrideStatus": 1"#, "`OverrideStatus` is not a string");
    check(r#""OverrideStatus": "on""#, "its override_status `on` is neither running nor stopped");
    for (field, expected) in [
        (r#""Weekdays": ["7"]"#, "period `p`: `7`: weekdays are written as names"),
        (r#""Weekdays": "mon-fri#1""#, "period `p`: `mon-fri#1`: unknown weekday `mon-fri`"),
        (r#""Begintime": "9 am""#, "period `p`: invalid time `9 am`"),
        (r#""Monthdays": "25-5""#, "period `p`: `25-5` ends before it begins"),
        (r#""Monthdays": "0-5""#, "period `p`: `0-5`: invalid day of the month `0`"),
        (r#""Begintime": "8:00", "Weekdays": "mon-fri""#, "its periods with only a begin"),
        (r#""Begintime": "8:00", "Endtime": "8:00""#, "period `p`: from 08:00 to 08:00 never"),
        (
            r#""Endtime": "00:00""#,
            "period `p`: its end at 00:00 alone stops for the whole day there",
        ),
    ] {
        let text = format!(
            r#"{{"Schedule": {{"Name": "bad", "Timezone": "UTC", "Periods": ["p"]}},
                "Period": {{"Name": "p", {field}}}}}"#
        );
        let (text, remarks) = imported(&[&text], None);
        assert_eq!(text, "");
        assert!(remarks.contains(&format!("left out: schedule bad: {expected}")), "{remarks}");
    }
}
