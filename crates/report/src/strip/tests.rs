//! Strips of the week of Monday, 23 November 2026, in UTC.

use domain::{
    configuration::PauseScope,
    record::{Direction, UntilTag},
    resource::Power,
};

use super::*;
use crate::scene::{OFFICE, asleep, in_force, monday, office, transition, web, with_overrides};

fn office_strip(course: &[&Course], from: &str, until: &str) -> Vec<String> {
    drawn(&[], course, from, until)
}

/// Monday's hours as `08:00-18:00 running`, of the schedule `office` at noon.
fn drawn(overrides: &[Override], courses: &[&Course], from: &str, until: &str) -> Vec<String> {
    let in_force = with_overrides(OFFICE, overrides.to_vec());
    let rules = in_force.rules();
    let schedule = &rules.configuration.schedules[&office()].schedule;
    let period = Period { from: monday(from), until: monday(until) };
    let strip = Strip::of_schedule(&office(), schedule, rules, courses, period, noon());
    lines(&strip)
}

fn lines(strip: &Strip<'_>) -> Vec<String> {
    let time = |period: Period| {
        let [from, until] = [period.from, period.until].map(|at| at.strftime("%H:%M"));
        format!("{from}-{until}")
    };
    let desired = strip.desired.iter().map(|span| {
        format!("{} {}", time(span.period), domain::schedule::desired_or_any(span.desired))
    });
    let overrides = strip
        .overrides
        .iter()
        .map(|(period, one)| format!("{} override by {}", time(*period), one.by));
    let pauses =
        strip.pauses.iter().map(|(period, one)| format!("{} {}", time(*period), one.scope));
    let holidays = strip.holidays.iter().map(|(date, _)| format!("holiday {date}"));
    let ran = strip.ran.iter().map(|ran| {
        let Ran { running, stopped, unclear, .. } = ran;
        format!("{} ran {running}, off {stopped}, unclear {unclear}", time(ran.period))
    });
    desired.chain(overrides).chain(pauses).chain(holidays).chain(ran).collect()
}

fn noon() -> Timestamp {
    monday("12:00:00")
}

fn override_of(target: OverrideTarget, desired: Desired, from: &str, until: &str) -> Override {
    let (set_at, ends_at) = (monday(from), monday(until));
    Override { target, desired, set_at, ends_at, by: "ada".to_owned(), why: None, before: None }
}

fn interval(from: &str, until: &str, kind: Kind) -> StoppedInterval {
    let period = Period { from: monday(from), until: monday(until) };
    let (before, after, schedule) = (None, None, Some(office()));
    StoppedInterval { period, kind, schedule, before, after, hibernated: false }
}

fn seen_since(from: &str, record: Record) -> Record {
    Record { first_seen_at: Some(monday(from)), ..record }
}

#[test]
fn a_schedule_has_its_edges_and_what_an_override_puts_in_their_place() {
    assert_eq!(
        office_strip(&[], "00:00:00", "23:00:00"),
        ["00:00-08:00 stopped", "08:00-18:00 running", "18:00-23:00 stopped"]
    );
    let target = OverrideTarget::Schedule(office());
    let evening = override_of(target.clone(), Desired::Running, "17:00:00", "20:00:00");
    assert_eq!(
        drawn(&[evening], &[], "00:00:00", "23:00:00"),
        [
            "00:00-08:00 stopped",
            "08:00-20:00 running",
            "20:00-23:00 stopped",
            "17:00-20:00 override by ada",
        ]
    );
    let over = override_of(target, Desired::Stopped, "09:00:00", "09:00:00");
    assert_eq!(drawn(&[over], &[], "08:30:00", "10:00:00"), ["08:30-10:00 running"]);
}

#[test]
fn holidays_are_those_of_the_days_it_touches() {
    let holiday = OFFICE.replace("timezone = ", "holidays = [\"2026-11-24\"], timezone = ");
    let in_force = in_force(&holiday);
    let schedule = &in_force.configuration.schedules[&office()].schedule;
    let period = Period {
        from: monday("20:00:00"),
        until: monday("20:00:00") + SignedDuration::from_hours(24),
    };
    let now = monday("21:00:00");
    let strip = Strip::of_schedule(&office(), schedule, in_force.rules(), &[], period, now);
    assert_eq!(lines(&strip), ["20:00-20:00 stopped", "holiday 2026-11-24"]);
    assert_eq!(strip.holidays[0].1.from, "2026-11-24T00:00:00Z".parse().unwrap());
}

#[test]
fn what_ran_is_counted_from_change_to_change_and_never_after_now() {
    let web = seen_since("02:00:00", web());
    let course = |intervals: &[StoppedInterval]| Course::of(&web, None, intervals, noon());
    let slept = course(&[interval("03:00:00", "08:00:20", Kind::Stopped)]);
    let unclear = course(&[interval("03:00:10", "06:00:00", Kind::Unclear)]);
    let observed = course(&[interval("03:00:00", "08:00:00", Kind::WouldHave)]);
    let all = office_strip(&[&slept, &unclear, &observed], "00:00:00", "23:00:00");
    assert_eq!(
        all[3..],
        [
            "02:00-03:00 ran 3, off 0, unclear 0",
            "03:00-06:00 ran 1, off 1, unclear 1",
            "06:00-08:00 ran 2, off 1, unclear 0",
            "08:00-12:00 ran 3, off 0, unclear 0",
        ]
    );
    let ran = office_strip(&[&slept], "13:00:00", "14:00:00");
    assert_eq!(ran, ["13:00-14:00 running"], "nothing is known of the future");
}

#[test]
fn what_a_person_stopped_is_off_though_history_has_nothing_of_it() {
    let mut off = seen_since("02:00:00", web());
    off.phase = Phase::Settled { at: Power::Stopped };
    let observed = off.observed.as_mut().unwrap();
    (observed.power, observed.at) = (Power::Stopped, monday("10:00:00"));
    let course = Course::of(&off, None, &[], noon());
    assert_eq!(
        office_strip(&[&course], "09:00:00", "13:00:00")[1..],
        ["09:00-10:00 ran 1, off 0, unclear 0", "10:00-12:00 ran 0, off 1, unclear 0"]
    );
}

#[test]
fn what_is_gone_is_known_until_then() {
    let gone = Record {
        phase: Phase::Gone { since: monday("11:00:00") },
        ..seen_since("10:00:00", web())
    };
    let course = Course::of(&gone, None, &[], noon());
    let ran = office_strip(&[&course], "09:00:00", "13:00:00");
    assert_eq!(ran[1..], ["10:00-11:00 ran 1, off 0, unclear 0"]);
}

#[test]
fn a_resource_has_its_own_override_before_that_of_its_schedule() {
    let web = web();
    let of_it = OverrideTarget::Resource(web.reference.clone());
    let in_force = with_overrides(
        OFFICE,
        vec![
            override_of(of_it, Desired::Stopped, "11:00:00", "14:00:00"),
            override_of(
                OverrideTarget::Schedule(office()),
                Desired::Running,
                "17:00:00",
                "20:00:00",
            ),
        ],
    );
    let period = Period { from: monday("10:00:00"), until: monday("22:00:00") };
    let strip = Strip::of_resource(&web, in_force.rules(), None, period, noon());
    assert_eq!(
        lines(&strip),
        [
            "10:00-11:00 running",
            "11:00-14:00 stopped",
            "14:00-20:00 running",
            "20:00-22:00 stopped",
            "11:00-14:00 override by ada",
            "17:00-20:00 override by ada",
        ]
    );
}

#[test]
fn what_a_tag_keeps_running_is_an_override() {
    let tag = UntilTag { text: "2h".to_owned(), seen_at: monday("17:00:00"), gone_at: None };
    let web = Record { until_tags: vec![tag], ..web() };
    let in_force = in_force(OFFICE);
    let period = Period { from: monday("16:00:00"), until: monday("22:00:00") };
    let strip = Strip::of_resource(&web, in_force.rules(), None, period, noon());
    let lines = lines(&strip);
    assert_eq!(lines[..2], ["16:00-19:00 running", "19:00-22:00 stopped"]);
    assert_eq!(lines[2..], ["17:00-19:00 override by tag offhours-until"]);
}

#[test]
fn pauses_are_those_of_all_that_a_strip_shows() {
    let pause = |scope, from, until| Pause {
        scope,
        starts: false,
        set_at: monday(from),
        ends_at: monday(until),
        by: "ada".to_owned(),
        why: "release".to_owned(),
    };
    let account = PauseScope::Account(web().reference.account);
    let other = PauseScope::Schedule("builds".parse().unwrap());
    let mut in_force = in_force(OFFICE);
    in_force.overrides = in_force.overrides.with_pauses([
        pause(PauseScope::Everything, "09:00:00", "11:00:00"),
        pause(PauseScope::Schedule(office()), "17:00:00", "23:00:00"),
        pause(other, "10:00:00", "11:00:00"),
        pause(account, "12:00:00", "13:00:00"),
    ]);
    let (rules, web) = (in_force.rules(), web());
    let period = Period { from: monday("10:00:00"), until: monday("18:00:00") };
    let schedule = &rules.configuration.schedules[&office()].schedule;
    let of_schedule = Strip::of_schedule(&office(), schedule, rules, &[], period, noon());
    assert_eq!(lines(&of_schedule)[1..], ["10:00-11:00 everything", "17:00-18:00 schedule office"]);
    let of_resource = Strip::of_resource(&web, rules, None, period, noon());
    assert_eq!(
        lines(&of_resource)[1..],
        ["10:00-11:00 everything", "12:00-13:00 account do-main", "17:00-18:00 schedule office"]
    );
}

#[test]
fn what_is_hibernated_or_on_its_way_is_what_its_record_says() {
    let asleep = Course::of(&seen_since("02:00:00", asleep()), None, &[], noon());
    assert_eq!(asleep.known, None, "since when it is off is not known");
    let phase = Phase::InFlight { transition: transition(Direction::Stop, monday("11:59:00")) };
    let stopping = Record { phase, ..seen_since("02:00:00", web()) };
    assert_eq!(Course::of(&stopping, None, &[], noon()).stopped, []);
}

#[test]
fn days_are_those_of_the_zone_over_a_change_of_the_clock() {
    let berlin = TimeZone::get("Europe/Berlin").unwrap();
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    let period = Period { from: at("2026-10-24T22:00:00Z"), until: at("2026-10-26T23:00:00Z") };
    let hours: Vec<_> =
        days(period, &berlin).iter().map(|(_, day)| day.length().as_hours()).collect();
    assert_eq!(hours, [25, 24]);
    assert_eq!(around(at("2026-11-27T22:30:00Z")).from, at("2026-11-27T14:00:00Z"));
}
