//! What `why` prints for fixtures, on Friday at 18:55 in Berlin.

use std::sync::Arc;

use domain::{
    configuration::{
        DropletMethod, Mode, Override, OverrideTarget, Overrides, Pause, PauseScope, Policy,
    },
    record::UntilTag,
    record::{ManualCommand, Phase},
    resource::Power,
    schedule::Desired,
};

use jiff::tz::TimeZone;

use super::*;
use crate::evening::{
    at, configuration, fleet, following, in_force, now, office, overriding, seen,
    stopping_database, stuck_pool,
};

fn why_at(record: &Record, in_force: &InForce, instant: &str) -> (Why, Screen) {
    let zone = TimeZone::get("Europe/Berlin").unwrap();
    let screen = Screen::plain(&zone, at(instant));
    (Why::of(record, &[], in_force, &screen), screen)
}

/// The whole text at an instant.
fn text_at(record: &Record, in_force: &InForce, instant: &str) -> String {
    let (why, screen) = why_at(record, in_force, instant);
    why.text(true, &screen)
}

fn text(record: &Record, in_force: &InForce) -> String {
    text_at(record, in_force, "2026-11-20T17:55:00Z")
}

/// The second paragraph: what a reader in a hurry sees.
fn answer(record: &Record, in_force: &InForce) -> String {
    let text = text(record, in_force);
    text.split("\n\n").nth(1).unwrap_or_default().to_owned()
}

#[test]
fn five_minutes_before_the_office_closes() {
    insta::assert_snapshot!(text(&office("do-main/droplet/1", "web-1"), &in_force()));
}

#[test]
fn a_manual_stop_under_way() {
    insta::assert_snapshot!(text(&stopping_database(), &in_force()));
}

#[test]
fn an_override_and_what_it_overrules() {
    let mut overridden = overriding();
    overridden.target = OverrideTarget::Schedule("office".parse().unwrap());
    let in_force = InForce { overrides: Overrides::from_iter([overridden]), ..in_force() };
    let mut pool = stuck_pool();
    pool.tags.clear();
    insta::assert_snapshot!(text(&pool, &in_force));
}

#[test]
fn a_tag_that_keeps_it_running_until_a_time() {
    let mut record = office("do-main/droplet/1", "web-1");
    let seen_at = at("2026-11-20T17:30:00Z");
    record.until_tags = vec![UntilTag { text: "21:00".to_owned(), seen_at, gone_at: None }];
    let text = text_at(&record, &in_force(), "2026-11-20T18:30:00Z");
    let rule = text.lines().find(|line| line.contains("its tag")).unwrap();
    insta::assert_snapshot!(rule, @"  ▶ its tag offhours-until    running until Fri 21:00 CET, by tag offhours-until (21:00)");
    let next = text.lines().find(|line| line.starts_with("Next")).unwrap();
    insta::assert_snapshot!(next, @"Next: stopped at Fri 21:00 CET, in 1h 30m.");
}

#[test]
fn a_holiday_that_is_to_come() {
    let record = office("do-main/droplet/1", "web-1");
    insta::assert_snapshot!(text_at(&record, &in_force(), "2026-12-24T10:00:00Z"));
}

#[test]
fn cron_expressions_in_an_account_that_is_only_observed() {
    let record = fleet().pop().unwrap();
    insta::assert_snapshot!(text(&record, &in_force()));
}

#[track_caller]
fn check(record: &Record, in_force: &InForce, expected: &str) {
    assert_eq!(answer(record, in_force), expected);
}

#[test]
fn the_answer_comes_first_in_a_sentence() {
    let all = in_force();
    let web = || office("do-main/droplet/1", "web-1");
    let off = |record| Record { phase: Phase::Settled { at: Power::Stopped }, ..record };
    let next = "Next: stopped at Fri 19:00 CET, in 5m.";
    check(&web(), &all, &format!("It is running, as it should be.\n{next}"));
    check(
        &off(web()),
        &all,
        &format!(
            "It is stopped but should be running: someone changed it, and it stays so until the \
             next edge.\n{next}"
        ),
    );
    let mut observed = off(web());
    if let Some(handled) = &mut observed.handled {
        handled.desired = None;
    }
    check(
        &observed,
        &all,
        &format!("It is stopped and would be running, but is only observed.\n{next}"),
    );
    let unhandled = Record { handled: None, ..off(web()) };
    check(
        &unhandled,
        &all,
        &format!(
            "It is stopped, and a start is due.\n\
             It needs attention: overdue: should have been running since Fri 08:00 CET.\n\
             What to do: it is asked for again until it succeeds: `offhours doctor` checks its \
             account and the functions.\n{next}"
        ),
    );
    let joined = Record { joined_at: Some(at("2026-11-20T17:50:00Z")), ..unhandled };
    check(&joined, &all, &format!("It is stopped, and a start is due.\n{next}"));
    let named = |name: &str| office("do-main/droplet/2", name);
    check(&named("shop-prod"), &all, "It is running and left alone: protected by `name:*prod*`.");
    check(
        &seen("do-main/droplet/3", "lonely"),
        &all,
        "It is running and left alone: no schedule names it.",
    );
    check(
        &following("ofice", seen("do-main/droplet/3", "slip")),
        &all,
        "It is running and left alone: its tag names the schedule `ofice`, which does not exist.\n\
         It needs attention: its tag names the schedule `ofice`, which does not exist.\n\
         What to do: correct the tag, or add the schedule (did you mean `office`?).",
    );
    let gone = Record { phase: Phase::Gone { since: now() }, ..web() };
    check(&gone, &all, "It is gone at the provider.");
    let held = Record { held: true, handled: None, ..web() };
    check(
        &held,
        &all,
        "It is running and left alone: held until `offhours approve`.\n\
         It needs attention: held: too many joined schedules at once.\n\
         What to do: `offhours approve do-main/droplet/1` releases it.\n\
         Next: stopped at Fri 19:00 CET, in 5m, but held until `offhours approve`.",
    );
    check(
        &stuck_pool(),
        &all,
        &format!(
            "Its stop is stuck.\nIt needs attention: 2 nodes are still draining.\n\
             What to do: look at it in the provider's console; `offhours stop {}` asks again.\n\
             {next}",
            stuck_pool().reference
        ),
    );
}

#[test]
fn a_stop_that_will_be_announced_says_when() {
    let mut configuration = configuration();
    for rule in configuration.schedules.values_mut() {
        rule.policy.notice = Some("15m".parse().unwrap());
    }
    let mut all = InForce { configuration: Arc::new(configuration), ..in_force() };
    let next_of = |all: &InForce, instant: &str| {
        let (why, _) = why_at(&office("do-main/droplet/1", "web-1"), all, instant);
        why.answer.last().unwrap().clone()
    };
    let next = |instant: &str| next_of(&all, instant);
    let stop = "Next: stopped at Fri 19:00 CET, in";
    assert_eq!(next("2026-11-20T16:00:00Z"), format!("{stop} 2h, announced at Fri 18:45 CET."));
    // By then it was announced.
    assert_eq!(next("2026-11-20T17:50:00Z"), format!("{stop} 10m."));
    let pause = Pause {
        scope: PauseScope::Everything,
        starts: false,
        set_at: at("2026-11-20T16:00:00Z"),
        ends_at: at("2026-11-20T20:00:00Z"),
        by: "ada".to_owned(),
        why: "release".to_owned(),
    };
    all.overrides = all.overrides.with_pauses([pause]);
    let announced = "announced at Fri 20:45 CET.";
    let until = "but paused until Fri 21:00 CET";
    let found = next_of(&all, "2026-11-20T16:00:00Z");
    assert_eq!(found, format!("{stop} 2h, {until}, {announced}"));
    let found = next_of(&all, "2026-11-20T18:30:00Z");
    assert_eq!(found, format!("Next: stopped at Fri 21:00 CET, in 1h 30m, {announced}"));
}

#[test]
fn what_it_waits_for_comes_second() {
    let mut all = in_force();
    let configuration = Arc::make_mut(&mut all.configuration);
    let groups = serde_json::json!({
        "data": {"resources": ["name:db"]},
        "shop": {"resources": ["name:web"], "after": ["data"]},
    });
    configuration.settings.groups = serde_json::from_value(groups).unwrap();
    let waiting = |id: &str, name: &str| Record {
        phase: Phase::Settled { at: Power::Stopped },
        handled: None,
        ..office(id, name)
    };
    let web = waiting("do-main/droplet/1", "web");
    let screen = Screen::plain(&TimeZone::UTC, at("2026-11-20T07:02:00Z"));
    let why = Why::of(&web, &[waiting("do-main/droplet/2", "db")], &all, &screen);
    let expected = "It waits for db (not started yet), until Fri 07:30 UTC at most.";
    assert_eq!(why.answer[1], expected);
    assert_ne!(Why::of(&web, &[], &all, &screen).answer[1], expected);

    let data = "data".parse().unwrap();
    let groups = &mut Arc::make_mut(&mut all.configuration).settings.groups;
    groups.get_mut(&data).unwrap().check = Some("tcp://db.internal:5432".parse().unwrap());
    let db = office("do-main/droplet/2", "db");
    let expected = "It waits for the check of data (tcp://db.internal:5432), until Fri 07:30 UTC at \
                    most.";
    assert_eq!(Why::of(&web, &[db], &all, &screen).answer[1], expected);
}

#[test]
fn what_stands_in_the_way_is_shown() {
    let mut configuration = configuration();
    for rule in configuration.schedules.values_mut() {
        rule.policy = Policy { retain_running: true, ..Policy::default() };
    }
    configuration.settings.mode = Mode::Observe;
    let all = InForce { configuration: Arc::new(configuration), ..in_force() };
    let record = Record {
        retained: true,
        attempts: 3,
        retry_at: Some(at("2026-11-20T18:04:00Z")),
        last_error: Some("the cloud does not answer".into()),
        ..office("do-main/droplet/1", "web-1")
    };
    let text = text_at(&record, &all, "2026-11-20T18:00:00Z");
    for expected in [
        "left running: `retain_running` found it running before",
        "the whole service only observes: nothing is sent",
        "the next stop leaves it running",
        "the cloud does not answer (3 times in a row)",
        "tried again after a failure",
    ] {
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn the_method_of_its_schedule_is_named() {
    let mut configuration = configuration();
    for rule in configuration.schedules.values_mut() {
        rule.policy.methods.droplet = DropletMethod::Resize;
    }
    let all = InForce { configuration: Arc::new(configuration), ..in_force() };
    let followed = text(&office("do-main/droplet/1", "web-1"), &all);
    assert!(followed.contains("a stop's method           resize\n"), "{followed}");
    let unnamed = text(&seen("do-main/droplet/3", "lonely"), &all);
    assert!(unnamed.contains("a stop's method           power-off\n"), "{unnamed}");
}

#[test]
fn a_name_by_which_it_is_listed_is_shown() {
    let mut in_force = in_force();
    let schedule = "office".parse().unwrap();
    let configuration = Arc::make_mut(&mut in_force.configuration);
    let resources = ["do-main/droplet/1", "w*", "web-1"].map(|entry| entry.parse().unwrap());
    configuration.schedules.get_mut(&schedule).unwrap().resources = resources.into();
    let text = text(&office("do-main/droplet/1", "web-1"), &in_force);
    let line = "list of a schedule        office, named by `w*` and `web-1`\n";
    assert!(text.contains(line), "{text}");
}

fn stopped_by_ada(record: Record, instant: &str) -> Record {
    let command = ManualCommand {
        instant: at(instant),
        desired: Desired::Stopped,
        by: "ada".to_owned(),
        request_id: "request-1".to_owned(),
        earlier: Vec::new(),
        rehearsal: false,
    };
    Record { manual_command: Some(command), ..record }
}

/// Checks the rules that are not silent, each as `LABEL STANDING`.
#[track_caller]
fn check_rules(record: &Record, in_force: &InForce, instant: &str, expected: &[&str]) {
    let why = serde_json::to_value(why_at(record, in_force, instant).0).unwrap();
    let facts = why["sections"][0]["facts"].as_array().unwrap();
    let facts = facts.iter().map(|fact| [&fact["label"], &fact["standing"]]);
    let facts = facts.map(|both| both.map(|one| one.as_str().unwrap()).join(" "));
    let rules: Vec<_> = facts.filter(|rule| !rule.ends_with(" silent")).collect();
    assert_eq!(rules, expected);
}

#[test]
fn the_first_rule_that_applies_decides_and_weaker_ones_are_overruled() {
    let web = || office("do-main/droplet/1", "web-1");
    let noon = "2026-11-20T11:00:00Z";
    check_rules(&seen("do-main/droplet/3", "lonely"), &in_force(), noon, &[]);
    check_rules(&web(), &in_force(), noon, &["its tag decides"]);
    let record = stopped_by_ada(web(), "2026-11-20T10:00:00Z");
    let commanded = ["manual stop or start decides", "its tag overruled"];
    check_rules(&record, &in_force(), noon, &commanded);
    // The evening's edge is later than the command.
    let evening = ["manual stop or start overruled", "its tag decides"];
    check_rules(&record, &in_force(), "2026-11-20T19:00:00Z", &evening);

    let overridden = |targets: &[OverrideTarget]| {
        let set = targets.iter().map(|target| Override {
            target: target.clone(),
            desired: Desired::Running,
            set_at: at("2026-11-20T10:30:00Z"),
            ends_at: at("2026-11-20T11:30:00Z"),
            by: "bob".to_owned(),
            why: None,
            before: None,
        });
        InForce { overrides: set.collect(), ..in_force() }
    };
    let schedule = OverrideTarget::Schedule("office".parse().unwrap());
    let resource = OverrideTarget::Resource(record.reference.clone());
    let of_schedule = overridden(std::slice::from_ref(&schedule));
    let weaker = ["manual stop or start overruled", "its tag overruled"];
    let expected = [&["override of its schedule decides"], &weaker[..]].concat();
    check_rules(&record, &of_schedule, noon, &expected);
    // One that is over or to come is silent.
    for silent in ["2026-11-20T10:29:59Z", "2026-11-20T11:30:00Z"] {
        check_rules(&web(), &of_schedule, silent, &["its tag decides"]);
    }
    let both = overridden(&[schedule, resource]);
    let own = ["override of it decides", "override of its schedule overruled"];
    check_rules(&record, &both, noon, &[&own, &weaker[..]].concat());

    // An excluded resource follows no schedule that could be overridden.
    let excluded = |by| [&[by, "override of it overruled"], &weaker[..]].concat();
    let protected = Record { name: "shop-prod".to_owned(), ..record.clone() };
    check_rules(&protected, &both, noon, &excluded("protect decides"));
    let mut out = record;
    out.tags.insert("offhours:off".to_owned());
    check_rules(&out, &both, noon, &excluded("opt-out decides"));
}

#[test]
fn programs_read_the_same_chain() {
    let record = stopped_by_ada(office("do-main/droplet/1", "web-1"), "2026-11-19T12:00:00Z");
    let why = serde_json::to_value(why_at(&record, &in_force(), "2026-11-20T17:55:00Z").0).unwrap();
    insta::assert_snapshot!(
        serde_json::to_string_pretty(&[&why["answer"], &why["sections"]]).unwrap()
    );
}
