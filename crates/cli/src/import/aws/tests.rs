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

#[track_caller]
fn refused(texts: &[&str]) -> String {
    import(&sources(texts), None).expect_err("it is refused").to_string()
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

    [schedules.reports]
    periods = [
      { weekdays = "mon#1", months = "jan/3" },
      { monthdays = "1, 28-L", months = "12, jan", begin = "06:00", end = "23:59" },
    ]
    retain_running = true

    [schedules.running]
    state = "running"

    # Scale Up & Down! in AWS Instance Scheduler.
    [schedules.scale-up-down]
    timezone = "UTC"
    periods = [
      { weekdays = "sat-sun" },
      { weekdays = "mon-fri" },
    ]
    enforce = true

    # Office hours in Seattle (Pacific)
    # [accounts.x]
    [schedules.seattle-office-hours]
    timezone = "US/Pacific"
    periods = [{ weekdays = "mon-fri", begin = "09:00", end = "17:00" }]

    # periods = [{ weekdays = "mon-fri", begin = "09:00", end = "17:00" }]
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
    warning: config scheduler: `regions`, `tagname`: such settings have no counterpart in schedules
    warning: schedule uk-office-hours: override_status stopped is state = "stopped" here; to follow its periods, write them in its place
    warning: schedule uk-office-hours: `ssm_maintenance_window` has no counterpart
    warning: schedule uk-office-hours: `use_maintenance_window` has no counterpart
    warning: schedule Scale Up & Down!: the instance type t2.nano in period `weekends` has no counterpart: machines keep their size
    warning: schedule Scale Up & Down!: the instance type t2.micro in period `working-days` has no counterpart: machines keep their size
    warning: schedule Scale Up & Down!: `enforced` and `retain_running` exclude each other here; enforce is kept
    warning: schedule Scale Up & Down!: `hibernate` has no counterpart
    warning: schedule Scale Up & Down!: is called `scale-up-down` here, and in tags
    warning: period night: from 22:00 to 06:00 it never ran anything there, and is left out; here it would end on the next day
    warning: schedule running: override_status running is state = "running" here
    "#);
}

#[test]
fn a_schedule_without_a_zone_gets_the_one_that_is_named() {
    let (text, remarks) = imported(&[SCAN], None);
    insta::assert_snapshot!(text, @r#"
    timezone = "UTC"

    # all in AWS Instance Scheduler.
    [schedules.all-schedule]
    periods = [{ weekdays = "mon, wed, fri, sun", begin = "10:30", end = "20:00" }]
    "#);
    insta::assert_snapshot!(remarks, @"
    warning: schedule all: has no time zone, and the stack's is not known: UTC is used; --timezone names another
    warning: schedule all: is called `all-schedule` here, and in tags
    warning: period unused: no schedule names it, and it is left out
    ");
    let (text, remarks) = imported(&[SCAN], Some("Asia/Tokyo"));
    assert!(text.starts_with("timezone = \"Asia/Tokyo\"\n"), "{text}");
    assert!(!remarks.contains("time zone"), "{remarks}");
    let error = import(&sources(&[SCAN]), Some("Asia/Tokio")).unwrap_err();
    assert!(error.to_string().contains("did you mean Asia/Tokyo"), "{error}");
}

#[test]
fn what_the_command_line_describes_may_come_in_two_files() {
    let (text, remarks) = imported(&[SCHEDULES, PERIODS], None);
    insta::assert_snapshot!(text, @r#"
    timezone = "Europe/London"

    # LondonOfficeHours in AWS Instance Scheduler.
    # London, and its weekends
    [schedules.londonofficehours]
    periods = [
      { weekdays = "mon-fri", begin = "09:00", end = "17:00" },
      { weekdays = "sat-sun", monthdays = "1-7", months = "oct-mar", begin = "10:00", end = "14:00" },
    ]
    retain_running = true
    "#);
    insta::assert_snapshot!(remarks, @"
    warning: schedule LondonOfficeHours: `UseMetrics` has no counterpart
    warning: schedule LondonOfficeHours: is called `londonofficehours` here, and in tags
    left out: schedule broken: timezone: unknown time zone `Mars/Olympus`; write an IANA name such as Europe/Berlin
    left out: schedule lost: its period `nowhere` is in none of the files
    ");
    assert_eq!(imported(&[PERIODS, SCHEDULES, PERIODS], None), (text, remarks));
}

#[test]
fn what_create_and_update_print_is_read_as_well() {
    let schedule = r#"{"Schedule": {"Name": "s", "Periods": ["p"], "Timezone": "UTC"}}"#;
    let period = r#"{"Period": {"Name": "p", "Weekdays": "mon, 2"}}"#;
    let (text, remarks) = imported(&[&format!("{schedule}\n{period}")], None);
    insta::assert_snapshot!(text, @r#"
    timezone = "UTC"

    [schedules.s]
    periods = [{ weekdays = "mon, wed" }]
    "#);
    assert_eq!(remarks, "");
}

#[test]
fn a_mark_at_the_beginning_is_not_part_of_the_text() {
    let marked = format!("\u{feff}{SCAN}");
    assert_eq!(imported(&[&marked], None), imported(&[SCAN], None));
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
fn an_override_is_a_state_and_keeps_its_periods_as_a_comment() {
    let text = r#"{"Schedule": {"Name": "s", "Timezone": "UTC", "Periods": ["p"],
                               "OverrideStatus": "Running"}}
        {"Period": {"Name": "p", "Weekdays": "mon-fri", "Begintime": "9:00", "Months": "sept"}}"#;
    let (text, remarks) = imported(&[text], None);
    insta::assert_snapshot!(text, @r#"
    timezone = "UTC"

    # periods = [{ weekdays = "mon-fri", months = "sep", begin = "09:00" }]
    [schedules.s]
    state = "running"
    "#);
    insta::assert_snapshot!(remarks, @r#"warning: schedule s: override_status running is state = "running" here; to follow its periods, write them in its place"#);
}

#[test]
fn a_small_l_that_makes_a_day_the_last_of_the_month_is_pointed_out() {
    let text = r#"{"Schedule": {"Name": "s", "Timezone": "UTC", "Periods": ["p"]}}
        {"Period": {"Name": "p", "Weekdays": "mon,fril"}}"#;
    let (text, remarks) = imported(&[text], None);
    assert!(text.contains("weekdays = \"mon, friL\""), "{text}");
    insta::assert_snapshot!(remarks, @"warning: period p: `fril` is the last `fri` of each month, there and here; for every one, remove the l");
}

#[test]
fn periods_with_one_side_are_kept_where_they_mean_the_same() {
    let check = |periods: &str, expected: &str| {
        let text = format!(
            r#"{{"Schedule": {{"Name": "s", "Timezone": "UTC", "Periods": ["a", "b"]}},
                "Periods": [{periods}]}}"#
        );
        assert_eq!(imported(&[&text], None).1, expected, "{periods}");
    };
    let office = r#"{"Name": "a", "Weekdays": "mon-thu", "Begintime": "8:00", "Endtime": "19:00"}"#;
    let evening = r#"{"Name": "b", "Weekdays": "fri", "Endtime": "17:00"}"#;
    check(&format!("{office}, {evening}"), "");
    let daily = r#"{"Name": "a", "Begintime": "8:00"}"#;
    check(&format!("{daily}, {evening}"), "");
    check(
        &format!("{}, {evening}", evening.replace("\"b\"", "\"a\"").replace("fri", "mon")),
        "warning: schedule s: on days that a period with only a begin or an end does not name, \
         there is no desired state here, and not \"stopped\"",
    );
    // Stopped from Tuesday on there, and left running here.
    let morning = daily.replace("\"a\",", "\"a\", \"Weekdays\": \"mon\",");
    check(
        &format!("{morning}, {evening}"),
        "left out: schedule s: its periods with only a begin or an end, on some days only, mean \
         something else here; write periods with both",
    );
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
fn schedules_whose_names_become_one_are_numbered_and_the_name_that_fits_is_kept() {
    let alike = r#"{"Schedules": [
        {"Name": "Office", "Periods": ["weekdays"]}, {"Name": "office", "Periods": ["weekdays"]},
        {"Name": "OFFICE", "Periods": ["weekdays"]}]}"#;
    let (text, remarks) = imported(&[alike, PERIODS], Some("UTC"));
    insta::assert_snapshot!(text, @r#"
    timezone = "UTC"

    [schedules.office]
    periods = [{ weekdays = "mon-fri", begin = "09:00", end = "17:00" }]

    # Office in AWS Instance Scheduler.
    [schedules.office-2]
    periods = [{ weekdays = "mon-fri", begin = "09:00", end = "17:00" }]

    # OFFICE in AWS Instance Scheduler.
    [schedules.office-3]
    periods = [{ weekdays = "mon-fri", begin = "09:00", end = "17:00" }]
    "#);
    insta::assert_snapshot!(remarks, @"
    warning: schedule Office: would be `office`, as `office` is
    warning: schedule Office: is called `office-2` here, and in tags
    warning: schedule OFFICE: would be `office`, as `office` is
    warning: schedule OFFICE: is called `office-3` here, and in tags
    warning: period weekends: no schedule names it, and it is left out
    ");
}

#[test]
fn other_files_are_refused_and_say_why() {
    insta::assert_snapshot!(refused(&["{\"Items\": ["]), @"0.json is not JSON: EOF while parsing a list at line 1 column 11");
    insta::assert_snapshot!(refused(&["\u{feff}\"type\",\"name\",\"begintime\"\n\"period\",\"p\",\"08:00\""]), @"0.json is not JSON: a CSV file from DynamoDB's console, for example, cannot be read; write the table as JSON, `aws dynamodb scan --table-name TABLE --output json > table.json`");
    insta::assert_snapshot!(refused(&["{\"Reservations\": []}"]), @"0.json: is neither a scan of the scheduler's DynamoDB table nor output of scheduler-cli; write the table as JSON, `aws dynamodb scan --table-name TABLE --output json > table.json`");
    insta::assert_snapshot!(refused(&["{\"Item\": {\"type\": {\"S\": \"period\"}}}"]), @"0.json: is neither a scan of the scheduler's DynamoDB table nor output of scheduler-cli; write the table as JSON, `aws dynamodb scan --table-name TABLE --output json > table.json`");
    insta::assert_snapshot!(refused(&["{\"Error\": \"not found\"}"]), @r#"0.json: holds an error of scheduler-cli: "not found""#);
    insta::assert_snapshot!(refused(&[PERIODS]), @"there are no schedules in 0.json");
    insta::assert_snapshot!(refused(&["", "{\"Schedules\": []}"]), @"there are no schedules in 0.json, 1.json");
    insta::assert_snapshot!(refused(&["{\"Schedules\": [{\"Periods\": []}]}"]), @"0.json: an item has no `name`");
    let other = PERIODS.replace("09:00", "08:00");
    insta::assert_snapshot!(refused(&[SCHEDULES, PERIODS, &other]), @"2.json: period weekdays appears twice, with different contents");
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
        (r#""Begintime": "8:00", "Endtime": "8:00""#, "has no period that ever runs"),
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
