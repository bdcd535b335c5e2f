use super::*;
use crate::{
    configuration::PauseScope,
    record::{Ending, Last, Rank},
    tests::fixtures::{World, at, office_droplet, reference, schedule_name, world},
};

const RUNNING: Desired = Desired::Running;
const STOPPED: Desired = Desired::Stopped;

/// The rules under which `office` announces each stop an hour before.
fn noticing() -> World {
    world().following("office", |policy| policy.notice = Some("1h".parse().unwrap()))
}

/// A Droplet that has been running since Monday morning.
fn web() -> Record {
    office_droplet().settled(Power::Running).having_handled("mon 08:00", RUNNING)
}

/// The Droplet, off since a stop for an edge of `office` that was claimed at another instant.
fn stopped(edge: &str, claimed_at: &str) -> Record {
    let record = web().having_handled(edge, STOPPED).settled(Power::Stopped);
    let key = record.handled.as_ref().unwrap().key;
    let (claimed_at, ending) = (at(claimed_at), Ending::Seen);
    let (asked_at, finished_at, method) = (Some(claimed_at), claimed_at, None);
    let last = Last { key, claimed_at, asked_at, finished_at, ending, method };
    Record { last: Some(last), ..record }
}

/// Checks when the Droplet's stop is, as announced at an instant.
#[track_caller]
fn check(world: &World, record: &Record, now: &str, stop: Option<&str>) {
    let stops = announced([record], world.rules(), at(now));
    let found: Vec<_> = stops.keys().map(|(edge, _)| *edge).collect();
    assert_eq!(found, Vec::from_iter(stop.map(at)), "{now}");
}

#[test]
fn a_stop_is_announced_within_the_notice_period_and_never_once_it_is_past() {
    let world = noticing();
    for (now, stop) in [
        ("mon 17:59:59", None),
        ("mon 18:00", Some("mon 19:00")),
        ("mon 18:59:59", Some("mon 19:00")),
        ("mon 19:00", None),
        ("mon 19:01", None),
    ] {
        check(&world, &web(), now, stop);
    }
}

#[test]
fn it_is_known_beforehand_when_the_stop_at_an_edge_is_announced() {
    #[track_caller]
    fn check(world: &World, record: &Record, edge: &str, expected: Option<&str>) {
        assert_eq!(announced_at(record, world.rules(), at(edge)), expected.map(at));
    }
    check(&noticing(), &web(), "mon 19:00", Some("mon 18:00"));
    check(&noticing(), &web(), "tue 08:00", None);
    check(&noticing(), &web().settled(Power::Stopped), "mon 19:00", None);
    check(&world(), &web(), "mon 19:00", None);
    let kept = noticing().overriding("office", RUNNING, "mon 12:00", "mon 21:00");
    check(&kept, &web(), "mon 19:00", None);
    check(&kept, &web(), "mon 21:00", Some("mon 20:00"));
}

#[test]
fn a_schedule_without_a_notice_period_announces_nothing() {
    check(&world(), &web(), "mon 18:30", None);
}

#[test]
fn what_will_not_be_stopped_is_not_announced() {
    let (now, id) = ("mon 18:30", "do-main/droplet/1");
    for world in [
        noticing().overriding(id, RUNNING, "mon 18:10", "mon 21:00"),
        noticing().overriding("office", RUNNING, "mon 18:10", "mon 21:00"),
        noticing().pausing(PauseScope::Everything, true, "mon 18:10", "mon 21:00"),
        noticing().protecting("do-main/*"),
        noticing().following("office", |policy| policy.mode = Mode::Observe),
    ] {
        check(&world, &web(), now, None);
    }
    let world = noticing();
    check(&world, &web().settled(Power::Stopped), now, None);
    check(&world, &Record { held: true, ..web() }, now, None);
    check(&world, &web().tagged(&["offhours:off"]), now, None);
    let retaining = noticing().following("office", |policy| policy.retain_running = true);
    check(&retaining, &web(), now, Some("mon 19:00"));
    check(&retaining, &Record { retained: true, ..web() }, now, None);
}

#[test]
fn what_is_stopped_once_an_override_or_a_pause_ends_is_announced_for_then() {
    let id = "do-main/droplet/1";
    let overridden = noticing().overriding(id, RUNNING, "mon 18:10", "mon 21:00");
    check(&overridden, &web(), "mon 19:30", None);
    check(&overridden, &web(), "mon 20:30", Some("mon 21:00"));
    let paused = noticing().pausing(PauseScope::Everything, false, "mon 18:10", "mon 19:30");
    check(&paused, &web(), "mon 18:45", Some("mon 19:30"));
    check(&paused, &web(), "mon 19:10", Some("mon 19:30"));
}

#[test]
fn the_stop_of_what_starts_before_it_is_announced() {
    let stopped = stopped("mon 19:00", "mon 19:00:20");
    let announced = |edge| announced_at(&stopped, noticing().rules(), at(edge));
    assert_eq!(announced("tue 19:00"), Some(at("tue 18:00")));
    let left_off = web().having_handled("tue 08:00", RUNNING).settled(Power::Stopped);
    assert_eq!(announced_at(&left_off, noticing().rules(), at("tue 19:00")), None);
}

#[test]
fn a_stop_that_comes_too_late_is_not_announced() {
    let reference = reference("do-main/database/9cc10173-e9ea-4176-9dbc-a4cee4c4ff30");
    let database = Record { reference, ..web() };
    let until = |until| noticing().pausing(PauseScope::Everything, false, "mon 18:10", until);
    check(&until("tue 06:59"), &database, "tue 06:30", Some("tue 06:59"));
    check(&until("tue 07:01"), &database, "tue 06:30", None);
    check(&until("tue 07:01"), &web(), "tue 06:30", Some("tue 07:01"));
}

#[test]
fn an_announced_stop_stands_until_nothing_of_it_is_to_be_stopped() {
    let (office, edge) = (schedule_name("office"), at("mon 19:00"));
    let stands = |world: &World, record: &Record, now| {
        still_stops(record, world.rules(), &office, edge, at(now))
    };
    let world = noticing();
    for now in ["mon 18:30", "mon 19:00", "mon 19:01"] {
        assert!(stands(&world, &web(), now), "{now}");
    }
    assert!(stands(&world, &stopped("mon 19:00", "mon 19:00:20"), "mon 19:01"));
    let stopping = web().having_handled("mon 19:00", STOPPED);
    let stopping = stopping.in_flight_towards(Direction::Stop, "mon 19:00:20");
    assert!(stands(&world, &stopping, "mon 19:01"));
    let started = web().having_handled_ranked("mon 19:00:30", Rank::Manual, RUNNING);
    assert!(stands(&world, &started, "mon 19:01"), "a person started it again");
    let earlier = stopped("mon 18:40", "mon 18:40");
    assert!(stands(&world, &earlier, "mon 18:45"), "it was stopped earlier than announced");
    let at_noon = stopped("mon 12:00", "mon 12:00");
    assert!(!stands(&world, &at_noon, "mon 18:45"), "it was stopped before");
    let overridden = noticing().overriding("office", RUNNING, "mon 18:59:30", "mon 21:00");
    for now in ["mon 18:59:45", "mon 19:00:05"] {
        assert!(!stands(&overridden, &web(), now), "{now}");
    }
    assert!(!stands(&world, &web().tagged(&["offhours:other"]), "mon 18:30"));
}

#[test]
fn a_stop_at_the_end_of_a_pause_is_not_called_off_once_it_has_begun() {
    let world = noticing().pausing(PauseScope::Everything, false, "mon 18:10", "mon 21:00");
    let (office, edge) = (schedule_name("office"), at("mon 21:00"));
    let stands =
        |record: &Record| still_stops(record, world.rules(), &office, edge, at("mon 21:01"));
    let stopping = web().having_handled("mon 19:00", STOPPED);
    assert!(stands(&stopping.in_flight_towards(Direction::Stop, "mon 21:00:20")));
    assert!(stands(&stopped("mon 19:00", "mon 21:00:20")));
    assert!(!stands(&stopped("mon 19:00", "mon 19:00:20")), "it was stopped before the pause");
}

#[test]
fn the_text_has_what_stops_until_when_and_how_to_keep_it() {
    let world = noticing();
    let office = schedule_name("office");
    let rule = &world.configuration.schedules[&office];
    let named = |number: usize| Named {
        name: format!("web-{number:03}"),
        resource: reference(&format!("do-main/droplet/{number}")),
    };
    let (edge, now) = (at("fri 19:00"), at("fri 18:45"));
    let announce = |resources| StopNotice::of(&office, rule, edge, resources, now);
    assert_eq!(
        announce(vec![named(2), named(1)]).to_string(),
        "office: 2 resources stop Fri 19:00, until Mon 08:00: web-001, web-002; `offhours override \
         running --schedule office --for 2h` keeps all of it running, the tag offhours-until:2h \
         (label offhours-until=2h) one of them"
    );
    let many = announce((1..=120).map(named).collect());
    assert_eq!((many.count, many.resources.len()), (120, LISTED));
    assert!(many.to_string().contains("web-005 and 115 more; "), "{many}");
    let early = StopNotice::of(&office, rule, edge, vec![named(1)], at("fri 15:01"));
    assert!(early.to_string().contains("--for 5h` keeps all of it running"), "{early}");
    assert!(early.to_string().contains("the tag offhours-until:5h "), "{early}");
    let off = announce(Vec::new());
    assert_eq!(off.to_string(), "office: nothing stops Fri 19:00 after all");
    let untagged = noticing().following("office", |policy| {
        policy.max_extend = "0s".parse().unwrap();
    });
    let rule = &untagged.configuration.schedules[&office];
    let notice = StopNotice::of(&office, rule, edge, vec![named(1)], now);
    assert!(notice.to_string().ends_with("keeps all of it running"), "{notice}");
}
