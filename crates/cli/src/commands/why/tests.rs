//! What `why` prints for fixtures, on Friday at 18:55 in Berlin.

use std::sync::Arc;

use domain::{
    configuration::{DropletMethod, Mode, Overrides, Policy, Target},
    record::{ManualCommand, Phase},
    resource::Power,
    schedule::Desired,
};

use super::*;
use crate::state::fixtures::{
    at, configuration, fleet, following, in_force, now, office, overriding, seen,
    stopping_database, stuck_pool,
};

/// The whole text at an instant.
fn text_at(record: &Record, in_force: &InForce, instant: &str) -> String {
    let inventory_at = Some(at("2026-11-20T17:51:00Z"));
    let schedule = schedule_of(record, in_force);
    let zone = schedule.map_or(TimeZone::UTC, |schedule| schedule.timezone().clone());
    let why = Why::of(record, in_force, zone, at(instant), inventory_at);
    text::render(&why, schedule, true)
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
    overridden.target = Target::Schedule("office".parse().unwrap());
    let in_force = InForce { overrides: Overrides::from_iter([overridden]), ..in_force() };
    let mut pool = stuck_pool();
    pool.tags.clear();
    insta::assert_snapshot!(text(&pool, &in_force));
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
        &format!(
            "It is running and left alone: held until `offhours approve`.\n\
             It needs attention: held: too many joined schedules at once.\n\
             What to do: `offhours approve do-main/droplet/1` releases it.\n{next}"
        ),
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

#[test]
fn programs_read_the_whole_chain() {
    let record = Record {
        manual_command: Some(ManualCommand {
            instant: at("2026-11-19T12:00:00Z"),
            desired: Desired::Stopped,
            by: "ada".to_owned(),
            request_id: "request-1".to_owned(),
            earlier: Vec::new(),
            rehearsal: false,
        }),
        ..office("do-main/droplet/1", "web-1")
    };
    let why = Why::of(&record, &in_force(), TimeZone::UTC, now(), None);
    insta::assert_snapshot!(serde_json::to_string_pretty(&why).unwrap());
}
