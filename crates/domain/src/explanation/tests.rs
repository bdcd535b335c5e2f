//! Table-driven tests of explanations, in the week of [`fixtures`](crate::tests::fixtures).

use super::*;
use crate::{
    configuration::Mode,
    record::{Permit, Writer},
    resource::Power,
    tests::fixtures::{World, at, daily, droplet, office_droplet, only_observe, world},
};

const STOPPED: Desired = Desired::Stopped;
const RUNNING: Desired = Desired::Running;

fn explained(world: &World, record: &Record, now: &str) -> Explanation {
    explain(record, world.rules(), at(now))
}

/// Checks the levels that are not silent, each as `LEVEL STANDING`.
#[track_caller]
fn check(world: &World, record: &Record, now: &str, expected: &[&str]) {
    let explained = explained(world, record, now);
    let level = |level: &Level| {
        let says = serde_json::to_value(&level.says).unwrap();
        says["level"].as_str().unwrap().to_owned()
    };
    let line = |one: &Level| match one.standing {
        Standing::Decides => Some(format!("{} decides", level(one))),
        Standing::Overruled => Some(format!("{} overruled", level(one))),
        Standing::Silent => None,
    };
    let lines: Vec<_> = explained.levels.iter().filter_map(line).collect();
    assert_eq!(lines, expected);
}

#[test]
fn the_first_level_that_applies_decides_and_weaker_ones_are_overruled() {
    let record = office_droplet()
        .in_cluster("staging", &["offhours:office"])
        .commanded("mon 08:30", STOPPED);
    let weaker = ["tag overruled", "cluster-tag overruled"];
    check(&world(), &droplet(), "mon 09:00", &[]);
    check(&world(), &office_droplet(), "mon 09:00", &["tag decides"]);
    let manual = [&["manual decides"], &weaker[..]].concat();
    check(&world(), &record, "mon 09:00", &manual);
    // The evening's edge is later than the command.
    let evening = ["manual overruled", "tag decides", "cluster-tag overruled"];
    check(&world(), &record, "mon 19:00", &evening);

    let listed = world().listing("office", "do-main/droplet/1");
    let list = ["manual decides", "list overruled"].as_slice();
    check(&listed, &record, "mon 09:00", &[list, &weaker].concat());

    let named = explained(&listed.listing("office", "w*"), &record, "mon 09:00");
    let by = ["do-main/droplet/1", "w*"].map(|entry| entry.parse().unwrap()).to_vec();
    let list = Says::List { names: vec!["office".to_owned()], by };
    assert!(named.levels.iter().any(|level| level.says == list), "{:?}", named.levels);

    let overridden = world().overriding("office", RUNNING, "mon 08:00", "mon 12:00");
    let expected = ["schedule-override decides", "manual overruled"].as_slice();
    check(&overridden, &record, "mon 09:00", &[expected, &weaker].concat());
    let own = overridden.overriding("do-main/droplet/1", RUNNING, "mon 08:00", "mon 12:00");
    let expected = ["resource-override decides", "schedule-override overruled"].as_slice();
    let expected = [expected, &["manual overruled"], &weaker].concat();
    check(&own, &record, "mon 09:00", &expected);

    // An excluded resource follows no schedule that could be overridden.
    let protected = own.clone().protecting("name:web");
    let expected = ["protect decides", "resource-override overruled", "manual overruled"];
    let expected = [&expected[..], &weaker].concat();
    check(&protected, &record, "mon 09:00", &expected);
    let record = record.tagged(&["offhours:office", "offhours:off"]);
    let excluded = explained(&own, &record, "mon 09:00");
    let opt_out = Says::OptOut { on_cluster: Some(false) };
    assert_eq!(excluded.levels[1].says, opt_out);
    assert_eq!(excluded.levels[1].standing, Standing::Decides);
}

/// Checks until when a command stands: at which edge the Droplet changes next, and into which state.
#[track_caller]
fn stands(world: &World, record: &Record, now: &str, expected: Option<(&str, Desired)>) {
    let explained = explained(world, record, now);
    let manual = explained.manual.as_ref().expect("no command stands");
    let until = manual.until.as_ref();
    let changes = until.map(|edge| (edge.at.unwrap(), edge.to.unwrap()));
    assert_eq!(changes, expected.map(|(time, to)| (at(time), to)));
    assert_eq!(explained.next.edge, manual.until);
}

#[test]
fn a_command_stands_until_the_resource_changes_and_not_only_its_schedule() {
    let stopped = || office_droplet().commanded("mon 16:54", STOPPED).settled(Power::Stopped);
    // The evening's edge wants it stopped, too.
    stands(&world(), &stopped(), "mon 17:00", Some(("tue 08:00", RUNNING)));
    let on_its_way = office_droplet()
        .commanded("mon 16:54", STOPPED)
        .in_flight_towards(Direction::Stop, "mon 16:54");
    stands(&world(), &on_its_way, "mon 17:00", Some(("tue 08:00", RUNNING)));
    let started = office_droplet().commanded("mon 21:15", RUNNING);
    stands(&world(), &started, "mon 21:20", Some(("tue 19:00", STOPPED)));
    let retaining = world().following("office", |policy| policy.retain_running = true);
    stands(&retaining, &started, "mon 21:20", None);
    let by_day = office_droplet().commanded("mon 12:00", RUNNING);
    stands(&retaining, &by_day, "mon 12:30", Some(("mon 19:00", STOPPED)));
    let overridden = world().overriding("office", RUNNING, "mon 18:00", "mon 20:00");
    stands(&overridden, &stopped(), "mon 17:00", Some(("mon 18:00", RUNNING)));
    let unscheduled = droplet().commanded("mon 16:54", STOPPED);
    let unscheduled = unscheduled.settled(Power::Stopped);
    stands(&world(), &unscheduled, "mon 17:00", None);

    // After the evening's edge, or after a person started it, it no longer follows the command.
    for (record, now) in [
        (stopped(), "mon 19:00"),
        (stopped().settled(Power::Running), "mon 17:00"),
        (office_droplet(), "mon 17:00"),
    ] {
        assert_eq!(explained(&world(), &record, now).manual, None, "{now}");
    }
}

#[test]
fn an_override_that_is_over_or_to_come_is_silent_and_shown() {
    let world = world().overriding("office", STOPPED, "mon 10:00", "mon 12:00");
    for now in ["mon 09:59", "mon 12:00"] {
        let explained = explained(&world, &office_droplet(), now);
        let shown = explained.levels.iter().find_map(|level| {
            let shown = matches!(&level.says, Says::ScheduleOverride { set: Some(_) });
            shown.then_some(level.standing)
        });
        assert_eq!(shown, Some(Standing::Silent), "{now}");
    }
}

#[test]
fn the_latest_edge_what_is_done_and_the_next_edge_are_shown() {
    let record = office_droplet().having_handled("mon 08:00", RUNNING);
    let before = explained(&world(), &record, "mon 18:55");
    assert_eq!(before.edge.as_ref().and_then(|edge| edge.at), Some(at("mon 08:00")));
    let leave = DecisionExplanation::Leave {
        reason: "handled",
        words: "the latest edge has been handled".to_owned(),
    };
    assert_eq!(before.decision, leave);
    let next =
        EdgeExplanation { at: Some(at("mon 19:00")), to: Some(STOPPED), cause: Cause::Schedule };
    assert_eq!(before.next.edge, Some(next));
    assert_eq!(before.evaluation.and_then(|evaluation| evaluation.desired), Some(RUNNING));

    let after = explained(&world(), &record, "mon 19:00");
    let act = |retained| DecisionExplanation::Act {
        direction: Direction::Stop,
        why: Why::Edge,
        retained,
    };
    assert_eq!(after.decision, act(false));
    let retaining = world().following("office", |policy| policy.retain_running = true);
    let retained = Record { retained: true, ..record };
    assert_eq!(explained(&retaining, &retained, "mon 19:00").decision, act(true));
    assert!(explained(&retaining, &retained, "mon 19:00").retained);
}

#[test]
fn a_desired_state_that_never_changed_has_an_edge_without_an_instant() {
    let world = world().with_schedule(
        "always",
        serde_json::json!({
            "timezone": "UTC", "periods": [{}],
        }),
    );
    let always = explained(&world, &droplet().tagged(&["offhours:always"]), "mon 09:00");
    assert_eq!(always.edge.map(|edge| (edge.at, edge.to)), Some((None, Some(RUNNING))));
    assert_eq!(always.next.edge, None);
}

#[test]
fn the_widest_that_only_observes_is_named() {
    let mut world = world().following("office", |policy| policy.mode = Mode::Observe);
    let observer = |world: &World| explained(world, &office_droplet(), "mon 09:00").observed_by;
    assert_eq!(observer(&world), Some(Observer::Schedule));
    for account in world.configuration.accounts.values_mut() {
        only_observe(account);
    }
    assert_eq!(observer(&world), Some(Observer::Account));
    world.configuration.settings.mode = Mode::Observe;
    assert_eq!(observer(&world), Some(Observer::Service));
}

#[test]
fn what_stands_in_the_way_is_shown_while_it_does() {
    let waiting = Record {
        retry_at: Some(at("mon 08:04")),
        permit: Some(Permit { until: at("mon 08:02"), writer: Writer("start-1".to_owned()) }),
        ..office_droplet().settled(Power::Stopped)
    };
    let next = explained(&world(), &waiting, "mon 08:01").next;
    let shown = (next.retry_at, next.permit_until, next.look_at);
    assert_eq!(shown, (Some(at("mon 08:04")), Some(at("mon 08:02")), None));
    let next = explained(&world(), &waiting, "mon 08:04").next;
    assert_eq!((next.retry_at, next.permit_until), (None, None));

    let in_flight = Record {
        due_at: Some(at("mon 08:00:10")),
        ..office_droplet().in_flight_towards(Direction::Start, "mon 08:00")
    };
    let next = explained(&world(), &in_flight, "mon 08:00:05").next;
    assert_eq!(next.look_at, Some(at("mon 08:00:10")));
}

#[test]
fn nothing_comes_next_for_what_may_not_be_touched() {
    let two = world().with_schedule("night", daily("20:00", "06:00"));
    let record = office_droplet().tagged(&["offhours:office", "offhours:night"]);
    let conflict = explained(&two, &record, "mon 09:00");
    assert_eq!(conflict.next.edge, None);
    let DecisionExplanation::Leave { reason, words } = conflict.decision else {
        panic!("a conflict is left alone");
    };
    assert_eq!(reason, "conflict");
    assert_eq!(words, "conflict: night and office both name it by tag");
}
