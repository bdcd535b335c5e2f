use std::sync::Arc;

use clap::Parser;
use domain::{
    configuration::{Configuration, Mode, Override, Pause, PauseScope},
    resource::Power,
};
use jiff::{SignedDuration, tz::TimeZone};

use super::*;
use crate::{
    evening::{at, in_force, now, office},
    print::Screen,
};

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

/// The table of what comes until Monday noon, with these groups.
fn table(groups: serde_json::Value) -> String {
    changed(|configuration| {
        configuration.settings.groups = serde_json::from_value(groups).unwrap();
    })
}

/// The same with any change of the configuration.
fn changed(change: impl FnOnce(&mut Configuration)) -> String {
    let mut in_force = in_force();
    change(Arc::make_mut(&mut in_force.configuration));
    let names = ["web-1", "alone", "db", "web-2"];
    let records = names.iter().zip(1..).map(|(name, id)| {
        let record = office(&format!("do-main/droplet/{id}"), name);
        Record { phase: Phase::Settled { at: Power::Running }, ..record }
    });
    let followed = Names { in_force, records: records.collect(), now: now() };
    let args = Line::parse_from(["preview"]).args;
    let until = now() + SignedDuration::from_hours(66);
    let coming = followed.coming(&args, now(), until);
    let table = Screen::plain(&TimeZone::UTC, now()).table(&coming);
    let of_office = table.lines().filter(|line| line.contains("office"));
    of_office.map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_stop_is_shown_with_when_it_is_announced() {
    let noticing = |mode| {
        changed(|configuration| {
            for rule in configuration.schedules.values_mut() {
                rule.policy.notice = Some("15m".parse().unwrap());
                rule.policy.mode = mode;
            }
        })
    };
    insta::assert_snapshot!(noticing(Mode::Act), @r"
    now            running  office                   4: web-1, alone, db, web-2
    Fri 18:00 UTC  stopped  office    Fri 17:45 UTC  4: web-1, alone, db, web-2
    Mon 07:00 UTC  running  office                   4: web-1, alone, db, web-2
    ");
    insta::assert_snapshot!(noticing(Mode::Observe), @r"
    now            running  office    only observed  4: web-1, alone, db, web-2
    Fri 18:00 UTC  stopped  office    only observed  4: web-1, alone, db, web-2
    Mon 07:00 UTC  running  office    only observed  4: web-1, alone, db, web-2
    ");
}

#[test]
fn an_edge_within_a_pause_is_shown_with_its_end_and_at_that() {
    // Each edge after now: its time, how long the pause still lasts, and when it is announced.
    let edges = |until: &str, records: Vec<Record>| {
        let mut in_force = in_force();
        for rule in Arc::make_mut(&mut in_force.configuration).schedules.values_mut() {
            rule.policy.notice = Some("15m".parse().unwrap());
        }
        let pause = Pause {
            scope: PauseScope::Everything,
            starts: false,
            set_at: now(),
            ends_at: at(until),
            by: "ada".to_owned(),
            why: "moving".to_owned(),
        };
        in_force.overrides = in_force.overrides.with_pauses([pause]);
        let names = Names { in_force, records, now: now() };
        let args = Line::parse_from(["preview", "--schedule", "office"]).args;
        let coming = names.coming(&args, now(), now() + SignedDuration::from_hours(78));
        let shown = coming.into_iter().skip(1).map(|one| {
            assert!(!one.unsent.only_observed);
            let direction = one.to.map(Direction::towards);
            (one.at, direction, one.unsent.paused_until, one.announced_at)
        });
        shown.collect::<Vec<_>>()
    };
    let (stop, start) = (Some(Direction::Stop), Some(Direction::Start));
    let on = |time: &str| at(&format!("2026-11-{time}:00Z"));
    let last = (on("23T18:00"), stop, None, Some(on("23T17:45")));
    for records in [vec![office("do-main/droplet/1", "web-1")], Vec::new()] {
        let end = on("20T20:00");
        let expected = [
            (on("20T18:00"), stop, Some(end), None),
            (end, stop, None, Some(on("20T19:45"))),
            (on("23T07:00"), start, None, None),
            last,
        ];
        assert_eq!(edges("2026-11-20T20:00:00Z", records.clone()), expected);
        let end = on("23T08:00");
        let expected = [
            (on("20T18:00"), stop, Some(end), None),
            (on("23T07:00"), start, Some(end), None),
            (end, start, None, None),
            last,
        ];
        assert_eq!(edges("2026-11-23T08:00:00Z", records), expected);
    }
}

#[test]
fn what_is_held_is_shown_by_itself() {
    let held = Record { held: true, ..office("do-main/droplet/2", "new") };
    let records = vec![office("do-main/droplet/1", "web"), held];
    let mut in_force = in_force();
    for rule in Arc::make_mut(&mut in_force.configuration).schedules.values_mut() {
        rule.policy.notice = Some("15m".parse().unwrap());
    }
    let names = Names { in_force, records, now: now() };
    let args = Line::parse_from(["preview", "--schedule", "office"]).args;
    let coming = names.coming(&args, now(), now() + SignedDuration::from_hours(1));
    let table = Screen::plain(&TimeZone::UTC, now()).table(&coming);
    let stops = table.lines().filter(|line| line.contains("stopped")).map(str::trim_end);
    insta::assert_snapshot!(stops.collect::<Vec<_>>().join("\n"), @r"
    Fri 18:00 UTC  stopped  office    Fri 17:45 UTC                                 web
    Fri 18:00 UTC  stopped  office                   held until `offhours approve`  new
    ");
}

#[test]
fn an_edge_is_shown_in_the_waves_of_its_order() {
    let groups = serde_json::json!({
        "data": {"resources": ["name:db"]},
        "shop": {"resources": ["name:web-*"], "after": ["data"]},
    });
    insta::assert_snapshot!(table(groups), @r"
    now            running  office    4: web-1, alone, db, web-2
    Fri 18:00 UTC  stopped  office    3: web-1, alone, web-2
      then         stopped  office    db
    Mon 07:00 UTC  running  office    2: alone, db
      then         running  office    2: web-1, web-2
    ");
    insta::assert_snapshot!(table(serde_json::json!({})), @r"
    now            running  office    4: web-1, alone, db, web-2
    Fri 18:00 UTC  stopped  office    4: web-1, alone, db, web-2
    Mon 07:00 UTC  running  office    4: web-1, alone, db, web-2
    ");
}

#[test]
fn a_schedule_that_nothing_follows_is_shown_with_an_override_that_begins_later() {
    let mut in_force = in_force();
    let hours = |hours| now() + SignedDuration::from_hours(hours);
    let set = Override {
        target: OverrideTarget::Schedule("office".parse().unwrap()),
        desired: Desired::Running,
        set_at: hours(1),
        ends_at: hours(2),
        by: "ada".to_owned(),
        why: None,
        before: None,
    };
    in_force.overrides = [set].into_iter().collect();
    let names = Names { in_force, records: Vec::new(), now: now() };
    let args = Line::parse_from(["preview", "--schedule", "office"]).args;
    let shown = |until| {
        let coming = names.coming(&args, now(), until).into_iter();
        coming.map(|one| (one.at, one.to, one.cause)).collect::<Vec<_>>()
    };
    let (running, stopped) = (Some(Desired::Running), Some(Desired::Stopped));
    let edge = now() + SignedDuration::from_mins(5);
    let begins = [
        (now(), running, None),
        (edge, stopped, Some("schedule")),
        (hours(1), running, Some("override-set")),
    ];
    assert_eq!(shown(hours(1)), begins);
    let ends = (hours(2), stopped, Some("override-ended"));
    assert_eq!(shown(hours(2)), [begins.to_vec(), vec![ends]].concat());
}
