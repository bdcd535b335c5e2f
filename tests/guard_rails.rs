//! Nothing is touched without being asked for: for each guard, the requests that were not sent.
//!
//! Where it fits, a resource without the guard is stopped at the same edge, so that an empty log
//! means that the guard held and not that nothing was tried.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use cloud_simulator::{Act, Hold, Matching, Stage};
use domain::{
    invocation::Question,
    reason::Reason,
    record::{Direction, Ending, Phase},
    resource::Power,
    schedule::Desired,
};
use jiff::{SignedDuration, Timestamp};
use lifecycle::{Event, Report};
use serde_json::json;

use crate::support::{
    ACCOUNTS, EACH_KIND, NIGHTS, TOKENS, World, database, droplet, droplets, fault, longer_night,
    monday, office_hours, one_of_each_kind, program, reference, run, server, servers,
};

/// Inventories run at 17:48, 17:53, 17:58 and 18:03: the edge at 18:00 falls between two.
fn before_the_edge() -> Timestamp {
    monday("17:48:00")
}

fn after_the_edge() -> Timestamp {
    monday("18:12:30")
}

fn set(references: &[&str]) -> BTreeSet<String> {
    references.iter().map(ToString::to_string).collect()
}

/// Approves resources, as the command has poll-status do. Returns those that were released.
async fn approve(world: &World, references: &[&str]) -> BTreeSet<String> {
    let resources = references.iter().map(|one| reference(one)).collect();
    let asked = world.local.service().ask(Question::Approve(resources));
    let Report { outcomes, .. } = asked.await.unwrap();
    let approved = outcomes.iter().filter(|o| o.event == Event::Approved);
    approved.map(|outcome| outcome.resource().unwrap().to_string()).collect()
}

fn seconds(count: i64) -> SignedDuration {
    SignedDuration::from_secs(count)
}

fn conflict_with(events: &[Event], word: &str) -> bool {
    let names = |e: &Event| matches!(e, Event::Conflict { reason } if reason.contains(word));
    events.iter().any(names)
}

#[test]
fn without_a_guard_one_of_each_kind_is_stopped_at_the_edge() {
    run(async {
        let configuration = office_hours("", "", "");
        let mut world = World::start(&configuration, &one_of_each_kind(), before_the_edge()).await;
        world.run_until(monday("17:59:30")).await;
        assert_eq!(world.touched(), set(&[]));
        world.run_until(after_the_edge()).await;
        assert_eq!(world.touched(), set(&EACH_KIND));
        for resource in EACH_KIND {
            assert!(world.was_seen(resource), "{resource}");
        }
    });
}

#[test]
fn protected_resources_are_touched_by_no_schedule_command_or_override() {
    run(async {
        let protect =
            r#"protect = ["do-main/droplet/1", "name:*PROD*", "tag:production", "*/server/*"]"#;
        let tags = ["offhours:office"];
        let fleet = [
            ACCOUNTS,
            &droplet(1, "by-reference", &tags),
            &droplet(2, "by-prod-name", &tags),
            &droplet(3, "by-tag", &["offhours:office", "production"]),
            &server(11, ""),
            &droplet(4, "free", &tags),
        ];
        let configuration = office_hours(protect, "", "");
        let world = World::start(&configuration, &fleet.concat(), before_the_edge()).await;
        world.run_until(monday("17:50:30")).await;
        let guarded =
            ["do-main/droplet/1", "do-main/droplet/2", "do-main/droplet/3", "hz-eu/server/11"];
        let report = world.stop(&json!({ "resources": guarded })).await;
        let declined = report.outcomes.iter();
        let declined = declined.filter(|o| matches!(o.event, Event::Declined { .. }));
        assert_eq!(declined.count(), guarded.len());
        for resource in guarded {
            world.override_with(resource, Desired::Stopped, seconds(7200)).await;
        }
        world.run_until(after_the_edge()).await;
        assert_eq!(world.touched(), set(&["do-main/droplet/4"]));
    });
}

#[test]
fn a_name_or_tag_that_protects_is_judged_on_the_observation_before_the_change() {
    run(async {
        let tags = ["offhours:office"];
        let fleet = [
            ACCOUNTS,
            &droplet(1, "web", &tags),
            &droplet(2, "worker", &tags),
            &droplet(3, "free", &tags),
        ];
        let protect = r#"protect = ["name:*prod*", "tag:production"]"#;
        let configuration = office_hours(protect, "", "");
        let world = World::start(&configuration, &fleet.concat(), before_the_edge()).await;
        // After the last inventory before the edge.
        world.run_until(monday("17:59:30")).await;
        world.retag("do-main/droplet/1", &["offhours:office", "production"]);
        let rename = Act::Rename { name: "prod-worker".to_owned() };
        world.person("do-main/droplet/2", rename);
        world.run_until(after_the_edge()).await;
        assert_eq!(world.touched(), set(&["do-main/droplet/3"]));
    });
}

#[test]
fn an_opt_out_wins_on_the_resource_and_on_its_cluster() {
    run(async {
        let fleet = format!(
            r#"{ACCOUNTS}{}{}
            [[clusters]]
            id = "c1"
            name = "staging"
            tags = ["offhours:off"]
            [[clusters.pools]]
            id = "p1"
            name = "general"
            count = 2
            tags = ["offhours:office"]

            [[servers]]
            id = 11
            name = "ci"
            labels = {{ offhours = "Off" }}
            "#,
            droplet(1, "web", &["offhours:office", "offhours:off"]),
            droplet(2, "free", &["Offhours:OFFICE"]),
        );
        let listed = r#"resources = ["hz-eu/server/11"]"#;
        let configuration = office_hours("", "", listed);
        let world = World::start(&configuration, &fleet, before_the_edge()).await;
        world.run_until(monday("17:50:30")).await;
        world.stop(&json!({ "resources": ["do-main/droplet/1", "do-main/node-pool/c1/p1"] })).await;
        world.override_with("hz-eu/server/11", Desired::Stopped, seconds(7200)).await;
        world.run_until(after_the_edge()).await;
        assert_eq!(world.touched(), set(&["do-main/droplet/2"]));
    });
}

#[test]
fn an_opt_out_a_minute_before_the_edge_is_seen_in_time() {
    run(async {
        let configuration = office_hours("", "", "");
        let world = World::start(&configuration, &one_of_each_kind(), before_the_edge()).await;
        world.run_until(monday("17:59:30")).await;
        world.retag("do-main/droplet/1", &["offhours:office", "offhours:off"]);
        world.retag("do-main/database/d1", &["offhours:off"]);
        world.retag("hz-eu/server/11", &["offhours=off"]);
        let tags = vec!["offhours:off".to_owned()];
        world.person("do-main/node-pool/c1/p1", Act::RetagCluster { tags });
        world.run_until(after_the_edge()).await;
        assert_eq!(world.touched(), set(&[]));
    });
}

/// Checks that observe mode sends nothing and reports everything, and that a configuration without
/// it takes effect without waiting for another edge.
fn observes(
    top: &'static str,
    account: &'static str,
    policy: &'static str,
    observed: &'static [&'static str],
) {
    run(async move {
        let configuration = office_hours(top, account, policy);
        let mut world = World::start(&configuration, &one_of_each_kind(), before_the_edge()).await;
        world.run_until(after_the_edge()).await;
        let others: BTreeSet<_> = set(&EACH_KIND).difference(&set(observed)).cloned().collect();
        assert_eq!(world.touched(), others);
        for resource in observed {
            let observed_only = |event: &Event| matches!(event, Event::WouldAsk { .. });
            let shown = world.events(resource).iter().filter(|e| observed_only(e)).count();
            assert_eq!(shown, 1, "{resource}");
        }
        world.apply(&office_hours("", "", "")).await;
        world.run_until(monday("18:13:30")).await;
        assert_eq!(world.touched(), set(&EACH_KIND));
    });
}

#[test]
fn observe_mode_of_the_service_sends_nothing() {
    observes("mode = \"observe\"", "", "", &EACH_KIND);
}

#[test]
fn observe_mode_of_an_account_sends_nothing_there() {
    observes("", "mode = \"observe\"", "", &EACH_KIND[..3]);
}

#[test]
fn observe_mode_of_a_schedule_sends_nothing() {
    observes("", "", "mode = \"observe\"", &EACH_KIND);
}

#[test]
fn observe_mode_holds_back_what_was_to_be_asked_again_and_the_cut_of_power() {
    run(async {
        let fleet = [
            ACCOUNTS,
            &droplet(1, "web", &["offhours:office"]),
            &server(11, "ignores_shutdown = true"),
        ];
        let configuration = office_hours("", "", "");
        let world = World::start(&configuration, &fleet.concat(), before_the_edge()).await;
        world.simulator().add_fault(fault(&json!({
            "match": { "method": "POST", "path_prefix": "/v2/droplets" },
            "times": 1,
            "does": { "answer": { "status": 503 } },
        })));
        world.run_until(monday("18:00:30")).await;
        assert_eq!(world.changes().len(), 2, "one request each");
        world.apply(&office_hours("mode = \"observe\"", "", "")).await;
        world.run_until(monday("18:30:30")).await;
        assert_eq!(world.changes().len(), 2, "{:#?}", world.changes());
    });
}

#[test]
fn max_stops_bounds_the_stops_of_an_account_in_one_tick() {
    run(async {
        let droplets = droplets(1..=8, &["offhours:office"]);
        let fleet = [ACCOUNTS, &droplets, &servers(11..=12, "")].concat();
        let configuration = office_hours("max_stops = 3", "", "");
        let world = World::start(&configuration, &fleet, before_the_edge()).await;
        world.run_until(after_the_edge()).await;
        let mut per_tick = BTreeMap::<_, usize>::new();
        for change in world.changes() {
            let tick = change.at.as_second() / 60;
            *per_tick.entry((change.account.unwrap().to_string(), tick)).or_default() += 1;
        }
        let counts: Vec<_> =
            per_tick.iter().map(|((account, _), count)| (account.as_str(), *count)).collect();
        let expected = [("do-main", 3), ("do-main", 3), ("do-main", 2), ("hz-eu", 2)];
        assert_eq!(counts, expected);
    });
}

#[test]
fn more_than_max_new_at_once_are_held_until_approved() {
    run(async {
        let fleet = [ACCOUNTS, &droplet(1, "old", &["offhours:office"])].concat();
        let configuration = office_hours("max_new = 2", "", "");
        let world = World::start(&configuration, &fleet, before_the_edge()).await;
        world.run_until(monday("17:50:30")).await;
        for id in 2..=4 {
            world.create_droplet(id);
        }
        world.run_until(monday("18:20:30")).await;
        assert_eq!(world.touched(), set(&["do-main/droplet/1"]));
        assert!(world.record("do-main/droplet/2").await.held);

        let [two, three] = ["do-main/droplet/2", "do-main/droplet/3"];
        let approved = approve(&world, &["do-main/droplet/1", two, three]).await;
        assert_eq!(approved, set(&[two, three]));
        let now = Some(world.local.now());
        for approved in [two, three] {
            let since = world.record(approved).await.joined_at;
            assert_eq!(since, now, "late by an edge that it was held at");
        }
        world.run_until(monday("18:25:30")).await;
        let expected = ["do-main/droplet/1", "do-main/droplet/2", "do-main/droplet/3"];
        assert_eq!(world.touched(), set(&expected));
    });
}

#[test]
fn no_more_than_max_new_join_without_approval() {
    run(async {
        let fleet = [ACCOUNTS, &droplet(1, "old", &["offhours:office"])].concat();
        let configuration = office_hours("max_new = 2", "", "");
        let world = World::start(&configuration, &fleet, before_the_edge()).await;
        world.run_until(monday("17:50:30")).await;
        for id in 2..=3 {
            world.create_droplet(id);
        }
        world.run_until(after_the_edge()).await;
        let expected = ["do-main/droplet/1", "do-main/droplet/2", "do-main/droplet/3"];
        assert_eq!(world.touched(), set(&expected));
    });
}

#[test]
fn two_schedules_on_one_level_are_a_conflict() {
    run(async {
        let fleet = [
            ACCOUNTS,
            &droplet(1, "web", &["offhours:office", "offhours:nights"]),
            &droplet(2, "free", &["offhours:office"]),
        ];
        let configuration = office_hours("", "", NIGHTS);
        let mut world = World::start(&configuration, &fleet.concat(), before_the_edge()).await;
        world.run_until(monday("17:50:30")).await;
        world.stop(&json!({ "resources": ["do-main/droplet/1"] })).await;
        world.run_until(after_the_edge()).await;
        assert_eq!(world.touched(), set(&["do-main/droplet/2"]));
        let events = world.events("do-main/droplet/1");
        assert!(conflict_with(&events, "nights") && conflict_with(&events, "office"));
    });
}

#[test]
fn one_resource_reached_through_two_accounts_is_a_conflict() {
    run(async {
        let fleet = [ACCOUNTS, &droplet(1, "web", &["offhours:office"]), &server(11, "")];
        let twice = r#"
            [accounts.do-too]
            provider = "digitalocean"
            token = "env:DO_TOO"
        "#;
        let configuration = office_hours("", twice, "");
        let tokens = [&TOKENS[..], &[("env:DO_TOO", "secret-do-token")]].concat();
        // Already after the edge: there is no second inventory before the first decision.
        let (fleet, from) = (fleet.concat(), monday("18:30:00"));
        let mut world = World::with_tokens(&configuration, &fleet, &tokens, from).await;
        world.run_until(monday("18:45:30")).await;
        assert_eq!(world.touched(), set(&["hz-eu/server/11"]));
        let events = world.events("do-main/droplet/1");
        assert!(conflict_with(&events, "do-too/droplet/1"), "{events:?}");
        let events = world.events("do-too/droplet/1");
        assert!(conflict_with(&events, "do-main/droplet/1"), "{events:?}");
    });
}

#[test]
fn a_tag_that_names_no_schedule_stops_nothing_and_is_reported() {
    run(async {
        let fleet = [
            ACCOUNTS,
            &droplet(1, "web", &["offhours:ofice"]),
            &droplet(2, "free", &["offhours:office"]),
        ];
        let configuration = office_hours("", "", "");
        let mut world = World::start(&configuration, &fleet.concat(), before_the_edge()).await;
        world.run_until(after_the_edge()).await;
        assert_eq!(world.touched(), set(&["do-main/droplet/2"]));
        let shown = Event::UnknownSchedule { word: "ofice".to_owned() };
        assert_eq!(world.events("do-main/droplet/1"), [shown]);
    });
}

#[test]
fn tags_that_vanish_all_at_once_are_not_believed_and_nothing_is_sent() {
    run(async {
        let tags = ["offhours:office"];
        let fleet = [ACCOUNTS, &droplet(1, "web", &tags), &droplet(2, "db", &tags)];
        let configuration = office_hours("", "", "");
        let mut world = World::start(&configuration, &fleet.concat(), before_the_edge()).await;
        world.run_until(monday("17:50:30")).await;
        for resource in ["do-main/droplet/1", "do-main/droplet/2"] {
            world.retag(resource, &[]);
        }
        world.run_until(monday("18:05:30")).await;
        assert_eq!(world.touched(), set(&[]));
        let vanished = |e: &Event| matches!(e, Event::Postponed { reason, .. } if reason.words().contains("vanished"));
        let shown = world.outcomes().iter().filter(|o| vanished(&o.event)).count();
        assert_eq!(shown, 1);
        assert!(world.record("do-main/droplet/1").await.opted_in);
        for resource in ["do-main/droplet/1", "do-main/droplet/2"] {
            world.retag(resource, &tags);
        }
        world.run_until(monday("18:25:30")).await;
        assert_eq!(world.touched().len(), 2);
    });
}

#[test]
fn the_last_tag_of_an_account_can_be_removed_and_what_a_schedule_lists_is_stopped_all_the_same() {
    run(async {
        let fleet = [ACCOUNTS, &droplet(1, "web", &["offhours:office"]), &droplet(2, "db", &[])];
        let listed = "resources = [\"do-main/droplet/2\"]";
        let configuration = office_hours("", "", listed);
        let from = monday("16:48:00");
        let world = World::start(&configuration, &fleet.concat(), from).await;
        world.run_until(monday("17:20:30")).await;
        world.retag("do-main/droplet/1", &[]);
        world.run_until(monday("18:10:30")).await;
        assert!(world.record("do-main/droplet/1").await.opted_in);
        assert_eq!(world.touched(), set(&["do-main/droplet/2"]));
        world.run_until(monday("18:40:30")).await;
        let untagged = world.record("do-main/droplet/1").await;
        assert!(untagged.tags.is_empty() && !untagged.opted_in);
        let states = world.local.store().account_states().await.unwrap().read;
        let state = &states[&"do-main".parse().unwrap()];
        assert_eq!((&state.error, state.tagless_since), (&None, None));
        assert!(state.listed_at >= Some(monday("18:33:00")), "{state:?}");
        assert_eq!(world.touched(), set(&["do-main/droplet/2"]));
    });
}

#[test]
fn a_configuration_with_mistakes_changes_nothing_and_names_all_of_them() {
    run(async {
        let configuration = office_hours("", "", "");
        let world = World::start(&configuration, &one_of_each_kind(), before_the_edge()).await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bad.toml");
        let bad = r#"
            protekt = ["name:*prod*"]
            [accounts.do-main]
            provider = "digitalocean"
            token = "env:DO_TOKEN"
            [schedules.office]
            timezone = "Europe/Berln"
            periods = [{ weekdays = "mon-fri", begin = "25:00", end = "19:00" }]
            holidays = ["2026-02-30"]
        "#;
        std::fs::write(&file, bad).unwrap();
        let url = world.local.clouds_url().unwrap().to_string();
        let shown = tokio::task::spawn_blocking(move || {
            Command::new(program("offhours"))
                .args(["local", "--speed", "0", "--for", "1h"])
                .arg(format!("--simulate={url}"))
                .arg("--config")
                .arg(&file)
                .output()
                .unwrap()
        });
        let shown = shown.await.unwrap();
        let words = String::from_utf8(shown.stderr).unwrap();
        assert_eq!(shown.status.code(), Some(2), "{words}");
        for mistake in [":2:", "protekt", ":7:", "Berln", ":8:", "25:00", ":9:", "2026-02-30"] {
            assert!(words.contains(mistake), "{mistake}: {words}");
        }
        assert_eq!(world.simulator().log().len(), 0);
    });
}

#[test]
fn stale_hints_twice_late_or_for_others_do_nothing() {
    run(async {
        let configuration = office_hours("", "", "");
        let world = World::start(&configuration, &one_of_each_kind(), before_the_edge()).await;
        world.run_until(monday("17:50:30")).await;
        let hint = json!({
            "cause": "due",
            "resources": [EACH_KIND[0], EACH_KIND[1], EACH_KIND[2], EACH_KIND[3],
                          "do-main/droplet/999", "nobody/server/1"],
        });
        // Too early, and in the wrong direction.
        for _ in 0..2 {
            world.stop(&hint).await;
            world.start_now(&hint).await;
        }
        assert_eq!(world.changes().len(), 0);
        world.run_until(monday("18:00:30")).await;
        let asked = world.changes().len();
        assert_eq!(asked, 4);
        // Both hints while the stop is in flight, and again after it has been seen.
        world.stop(&hint).await;
        world.start_now(&hint).await;
        world.run_until(after_the_edge()).await;
        world.stop(&hint).await;
        world.start_now(&hint).await;
        assert_eq!(world.changes().len(), asked);
        // A stop hint that arrives after a start.
        world.start_now(&json!({ "schedule": "office" })).await;
        world.run_until(monday("18:25:30")).await;
        let asked = world.changes().len();
        assert_eq!(asked, 8);
        world.stop(&hint).await;
        world.run_until(monday("18:27:30")).await;
        assert_eq!(world.changes().len(), asked);
    });
}

#[test]
fn two_hints_at_the_same_moment_lead_to_one_request() {
    run(async {
        let configuration = office_hours("", "", "");
        let world = World::start(&configuration, &one_of_each_kind(), before_the_edge()).await;
        world.run_until(monday("17:59:30")).await;
        // No tick falls into this moment: only the command and the two hints act.
        world.run_until(monday("17:59:59")).await;
        let manual = json!({ "resources": EACH_KIND });
        let hint = json!({ "cause": "due", "resources": EACH_KIND });
        // Side by side on one stack, three invocations are too large for a test's thread.
        let [first, second] = [&hint, &hint].map(|hint| Box::pin(world.stop(hint)));
        tokio::join!(Box::pin(world.stop(&manual)), first, second);
        assert_eq!(world.changes().len(), 4);
        assert_eq!(world.touched(), set(&EACH_KIND));
    });
}

#[test]
fn without_force_no_power_is_cut() {
    run(async {
        let fleet = format!(
            "{ACCOUNTS}{}ignores_shutdown = true\n{}",
            droplet(1, "web", &["offhours:office"]),
            server(11, "ignores_shutdown = true"),
        );
        let policy = "graceful = true\nforce = false";
        let configuration = office_hours("", "", policy);
        let world = World::start(&configuration, &fleet, before_the_edge()).await;
        world.run_until(monday("18:30:30")).await;
        let changes = world.changes();
        assert_eq!(changes.len(), 2, "{changes:#?}");
        assert!(changes.iter().any(|c| c.request.path.ends_with("/actions/shutdown")));
        assert!(changes.iter().any(|c| c.request.body.contains("\"shutdown\"")));
        for resource in ["do-main/droplet/1", "hz-eu/server/11"] {
            let phase = world.record(resource).await.phase;
            assert!(matches!(phase, Phase::Stuck { .. }), "{phase:?}");
        }
    });
}

#[test]
fn nothing_is_concluded_from_a_status_whose_log_cannot_be_read() {
    run(async {
        let fleet = ACCOUNTS.to_owned() + &server(11, "ignores_shutdown = true");
        let configuration = office_hours("", "", "graceful = true\nforce = false");
        let world = World::start(&configuration, &fleet, before_the_edge()).await;
        let ci = "hz-eu/server/11";
        world.run_until(monday("18:00:20")).await;
        world.simulator().add_fault(fault(&json!({
            "match": { "method": "GET", "path_prefix": "/v1/servers/11/actions" },
            "times": 100_000,
            "does": { "answer": { "status": 500, "body": "{}", "headers": {} } },
        })));
        world.person(ci, Act::Reboot);
        world.run_until(monday("18:05:30")).await;
        let phase = world.record(ci).await.phase;
        assert!(matches!(phase, Phase::InFlight { .. }), "{phase:?}");
        world.simulator().clear_faults();
        world.run_until(monday("18:07:30")).await;
        let history = world.history(ci).await;
        assert_eq!(history[0].ending, Ending::Superseded);
    });
}

#[test]
fn an_opt_out_during_the_grace_keeps_the_power() {
    run(async {
        let fleet = [
            ACCOUNTS,
            &server(11, "ignores_shutdown = true"),
            &server(12, "ignores_shutdown = true"),
        ];
        let configuration = office_hours("", "", "");
        let world = World::start(&configuration, &fleet.concat(), before_the_edge()).await;
        world.run_until(monday("18:00:30")).await;
        world.retag("hz-eu/server/11", &["offhours=off"]);
        world.run_until(monday("18:10:30")).await;
        let changes = world.changes();
        let cut = changes.iter().filter(|c| c.request.path.ends_with("/poweroff"));
        let cut: Vec<_> = cut.map(|c| c.resource.clone().unwrap().to_string()).collect();
        assert_eq!(cut, ["hz-eu/server/12"]);
    });
}

/// The likely case is a database that somebody declares theirs at night: it stays small until it is
/// started by its name.
#[test]
fn a_start_by_name_restores_what_opted_out_while_it_was_stopped_and_no_stop_reaches_it() {
    run(async {
        let configuration = longer_night("", "");
        let world = World::start(&configuration, &one_of_each_kind(), before_the_edge()).await;
        world.run_until(monday("18:40:30")).await;
        let kinds = ["do-main/droplet/1", "do-main/database/d1"];
        for resource in kinds {
            let tags = vec!["offhours:off".to_owned()];
            world.person(resource, Act::Retag { tags });
        }
        world.run_until(monday("20:00:30")).await;
        let before = world.changes().len();
        let declined = |report: Report| {
            let events = report.outcomes.into_iter().map(|outcome| outcome.event);
            events.filter(|event| matches!(event, Event::Declined { .. })).count()
        };
        let named = json!({ "resources": kinds });
        assert_eq!(declined(world.stop(&named).await), kinds.len());
        assert_eq!(world.changes().len(), before, "nothing starts by itself");
        assert_eq!(declined(world.start_now(&named).await), 0);
        world.run_until(monday("20:40:30")).await;
        for resource in kinds {
            let record = world.record(resource).await;
            let running = Phase::Settled { at: Power::Running };
            assert_eq!((&record.phase, &record.saved), (&running, &None), "{record:#?}");
        }
        // What is restored is left alone again.
        assert_eq!(declined(world.start_now(&named).await), kinds.len());
    });
}

#[test]
fn where_a_schedule_is_enforced_a_command_is_declined() {
    run(async {
        let configuration = office_hours("", "", "enforce = true");
        let world = World::start(&configuration, &one_of_each_kind(), before_the_edge()).await;
        world.run_until(monday("17:50:30")).await;
        let report = world.stop(&json!({ "resources": EACH_KIND })).await;
        for outcome in &report.outcomes {
            assert!(
                matches!(&outcome.event, Event::Declined { reason } if reason.contains("override")),
                "{outcome:?}"
            );
        }
        assert_eq!(report.outcomes.len(), 4);
        world.run_until(monday("17:55:30")).await;
        assert_eq!(world.changes().len(), 0);
    });
}

#[test]
fn where_a_schedule_is_enforced_a_command_that_an_override_agrees_with_is_followed() {
    run(async {
        let configuration = office_hours("", "", "enforce = true");
        let world = World::start(&configuration, &one_of_each_kind(), before_the_edge()).await;
        world.run_until(monday("17:50:30")).await;
        let [web, ci] = ["do-main/droplet/1", "hz-eu/server/11"];
        world.override_with(web, Desired::Stopped, seconds(3600)).await;
        world.override_with(ci, Desired::Running, seconds(3600)).await;
        world.stop(&json!({ "resources": [web, ci] })).await;
        assert_eq!(world.touched(), set(&[web]));
    });
}

#[test]
fn a_command_against_an_override_is_declined() {
    run(async {
        let configuration = office_hours("", "", "");
        let world = World::start(&configuration, &one_of_each_kind(), before_the_edge()).await;
        world.run_until(monday("17:50:30")).await;
        for resource in EACH_KIND {
            world.override_with(resource, Desired::Running, seconds(3600)).await;
        }
        let report = world.stop(&json!({ "account": "do-main" })).await;
        let declined = |event: &Event| matches!(event, Event::Declined { reason } if reason.contains("a person"));
        assert_eq!(report.outcomes.len(), 3);
        assert!(report.outcomes.iter().all(|o| declined(&o.event)), "{report:?}");
        // Neither the command nor the edge at 18:00 stops anything; the end of the override does.
        world.run_until(monday("18:49:30")).await;
        assert_eq!(world.changes().len(), 0);
        world.run_until(monday("18:52:30")).await;
        assert_eq!(world.touched(), set(&EACH_KIND));
    });
}

#[test]
fn a_command_older_than_five_minutes_is_left_aside() {
    run(async {
        let configuration = office_hours("", "", "");
        let world = World::start(&configuration, &one_of_each_kind(), before_the_edge()).await;
        world.run_until(monday("17:55:30")).await;
        let old = json!({ "resources": EACH_KIND, "time": monday("17:50:29") });
        assert_eq!(world.stop(&old).await.outcomes, []);
        world.run_until(monday("17:57:30")).await;
        assert_eq!(world.changes().len(), 0);
        let recent = json!({ "resources": EACH_KIND, "time": monday("17:52:30") });
        world.stop(&recent).await;
        assert_eq!(world.touched(), set(&EACH_KIND));
    });
}

#[test]
fn a_command_for_a_schedule_or_an_account_reaches_what_follows_and_nothing_else() {
    run(async {
        let longer = r#"
            [schedules.longer]
            timezone = "UTC"
            periods = [{ begin = "06:00", end = "22:00" }]
        "#;
        let configuration = office_hours("", "", "") + longer;
        let fleet = [
            ACCOUNTS,
            &droplet(1, "web", &["offhours:office"]),
            &droplet(2, "batch", &["offhours:longer"]),
            &droplet(3, "mail", &[]),
        ];
        let world = World::start(&configuration, &fleet.concat(), before_the_edge()).await;
        world.run_until(monday("17:50:30")).await;
        let [web, batch] = ["do-main/droplet/1", "do-main/droplet/2"];
        world.stop(&json!({ "schedule": "office" })).await;
        assert_eq!(world.touched(), set(&[web]));
        world.stop(&json!({ "account": "do-main" })).await;
        assert_eq!(world.touched(), set(&[web, batch]));
    });
}

#[test]
fn a_command_for_an_account_says_nothing_of_what_has_opted_out() {
    run(async {
        let fleet = [
            ACCOUNTS,
            &droplet(1, "web", &["offhours:office"]),
            &droplet(2, "mail", &["offhours:office"]),
        ];
        let configuration = office_hours("", "", "");
        let world = World::start(&configuration, &fleet.concat(), before_the_edge()).await;
        world.retag("do-main/droplet/2", &["offhours:off"]);
        // Two inventories later.
        world.run_until(monday("17:55:30")).await;
        let account = json!({ "account": "do-main" });
        let answer = format!("{:?}", world.stop(&account).await);
        assert!(answer.contains("DropletId(1)"), "{answer}");
        assert!(!answer.contains("DropletId(2)"), "{answer}");
    });
}

#[test]
fn a_command_about_what_is_not_configured_fails_and_says_what_is() {
    run(async {
        let configuration = office_hours("", "", "");
        let world = World::start(&configuration, &one_of_each_kind(), before_the_edge()).await;
        for (event, expected) in [
            (
                json!({ "schedule": "ofice" }),
                "no schedule `ofice` is configured; the schedules are office",
            ),
            (
                json!({ "account": "do-man", "dry_run": true }),
                "no account `do-man` is configured; the accounts are do-main, hz-eu",
            ),
        ] {
            let answer = world.command(Direction::Stop, &event).await;
            assert_eq!(answer.unwrap_err().to_string(), expected);
        }
        assert_eq!(world.changes().len(), 0);
    });
}

#[test]
fn a_dry_run_says_what_would_be_done_and_does_nothing() {
    run(async {
        let configuration = office_hours("", "", "");
        let world = World::start(&configuration, &one_of_each_kind(), before_the_edge()).await;
        world.run_until(monday("17:50:30")).await;
        let mut before = Vec::new();
        for resource in EACH_KIND {
            before.push(world.record(resource).await);
        }
        let report = world.stop(&json!({ "schedule": "office", "dry_run": true })).await;
        let observed_only = |event: &Event| matches!(event, Event::WouldAsk { .. });
        assert_eq!(report.outcomes.iter().filter(|o| observed_only(&o.event)).count(), 4);
        for (resource, before) in EACH_KIND.into_iter().zip(before) {
            assert_eq!(world.record(resource).await, before);
        }
        world.run_until(monday("17:59:30")).await;
        assert_eq!(world.changes().len(), 0);
    });
}

#[test]
fn an_observation_older_than_thirty_seconds_supports_no_change() {
    for (resource, path) in [
        ("do-main/droplet/1", "/v2/droplets/1"),
        ("do-main/database/d1", "/v2/databases/d1"),
        ("do-main/node-pool/c1/p1", "/v2/kubernetes/clusters/c1"),
        ("hz-eu/server/11", "/v1/servers/11"),
    ] {
        run(async move {
            let configuration = office_hours("", "", "");
            let world = World::start(&configuration, &one_of_each_kind(), before_the_edge()).await;
            world.run_until(monday("17:50:05")).await;
            let hold = world.simulator().add_hold(Hold {
                matching: Matching {
                    method: Some("GET".to_owned()),
                    path_prefix: Some(path.to_owned()),
                    ..Matching::default()
                },
                times: 1,
                at: Stage::Answer,
                late: false,
            });
            let event = json!({ "resources": [resource] });
            let too_late = async {
                world.simulator().wait_until_caught(hold).await.unwrap();
                world.run_until(monday("17:50:40")).await;
                world.simulator().release(hold).unwrap();
            };
            let (report, ()) = tokio::join!(world.stop(&event), too_late);
            let [postponed] = &report.outcomes[..] else {
                panic!("{report:?}");
            };
            let too_slow =
                |reason: &Reason| reason.what().starts_with("the provider answers too slowly");
            assert!(
                matches!(&postponed.event, Event::Postponed { reason, .. } if too_slow(reason)),
                "{postponed:?}"
            );
            assert_eq!(world.changes().len(), 0, "{resource}");
            // The command stands, and a fresh observation supports it.
            world.run_until(monday("17:52:30")).await;
            assert_eq!(world.touched(), set(&[resource]));
            assert_eq!(world.changes().len(), 1);
        });
    }
}

#[test]
fn nothing_is_stopped_on_an_observation_older_than_a_quarter_of_an_hour() {
    run(async {
        let configuration = office_hours("", "", "");
        let world = World::start(&configuration, &one_of_each_kind(), monday("17:30:00")).await;
        world.run_until(monday("17:34:30")).await;
        // Listing fails from now on; the resources themselves could still be read.
        for path_suffix in ["/droplets", "/databases", "/clusters", "/servers"] {
            world.simulator().add_fault(fault(&json!({
                "match": { "method": "GET", "path_suffix": path_suffix },
                "times": 100_000,
                "does": { "answer": { "status": 500 } },
            })));
        }
        world.run_until(monday("18:10:30")).await;
        assert_eq!(world.changes().len(), 0);
        world.simulator().clear_faults();
        world.run_until(monday("18:20:30")).await;
        assert_eq!(world.touched(), set(&EACH_KIND));
        assert_eq!(
            world.record("hz-eu/server/11").await.phase,
            Phase::Settled { at: Power::Stopped }
        );
    });
}

#[test]
fn a_database_whose_storage_cannot_be_put_back_is_not_shrunk_again() {
    const CACHE: &str = "do-main/database/cache";
    const ORDERS: &str = "do-main/database/orders";
    run(async {
        let fleet = [
            ACCOUNTS,
            &database("cache", "cache", "valkey"),
            "storage_mib = 102400\n",
            &database("orders", "orders", "pg"),
            "storage_mib = 102400\n",
        ]
        .concat();
        let configuration = office_hours("", "", "");
        let world = World::start(&configuration, &fleet, monday("16:30:00")).await;
        world.run_until(monday("16:36:00")).await;
        let both = json!({"resources": [CACHE, ORDERS]});
        world.stop(&both).await;
        world.run_until(monday("16:56:00")).await;
        world.start_now(&both).await;
        world.run_until(monday("17:20:00")).await;
        let (cache, orders) = (world.record(CACHE).await, world.record(ORDERS).await);
        let lost = cache.lost_storage.expect("its storage is not back");
        assert_eq!((lost.before_mib, lost.after_mib), (102_400, 61_440));
        assert!(cache.held);
        assert_eq!((orders.held, orders.lost_storage), (false, None));
        let before = world.changes().len();
        world.run_until(monday("18:30:00")).await;
        let stopped = world.changes().split_off(before);
        let touched = stopped.into_iter().map(|entry| entry.resource);
        assert!(touched.eq([Some(reference(ORDERS))]));

        approve(&world, &[CACHE]).await;
        world.run_until(monday("18:50:00")).await;
        let cache = world.record(CACHE).await;
        let at = Power::Stopped;
        assert_eq!(cache.phase, Phase::Settled { at });
        assert_eq!((cache.held, cache.lost_storage), (false, None));
    });
}
