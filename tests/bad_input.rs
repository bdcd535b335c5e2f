//! Clouds that refuse, lie or fall silent. Each failure is reported, is never taken for success,
//! and never holds up the other clouds; once the cloud behaves again, everything recovers.

use cloud_simulator::Act;
use domain::{
    record::{Phase, Record},
    resource::Power,
};
use lifecycle::Event;
use serde_json::{Value, json};

use crate::support::{
    ACCOUNTS, EACH_KIND, TOKENS, World, an_hour_off, database, droplet, fault, monday,
    office_hours, one_of_each_kind, reference, run, unlabelled_server,
};

/// The resources of [`EACH_KIND`] at the misbehaving cloud.
const AT_FAULT: [&str; 3] = [EACH_KIND[0], EACH_KIND[1], EACH_KIND[2]];

/// The resource at the other cloud.
const SOUND: &str = EACH_KIND[3];

fn stopped(record: &Record) -> bool {
    record.phase == Phase::Settled { at: Power::Stopped }
}

/// Lets the faulty account misbehave from before the edge until 18:10. Checks that this is
/// reported, that nothing counts as done, that the others proceed, and that everything recovers
/// afterwards.
async fn survives(mut world: World, mend: impl AsyncFnOnce(&World)) {
    world.run_until(monday("18:09:30")).await;
    assert!(stopped(&world.record(SOUND).await), "the other cloud was held up");
    for resource in AT_FAULT {
        assert!(!world.was_seen(resource), "{resource} counts as stopped");
        let record = world.record(resource).await;
        assert!(!stopped(&record), "{resource}: {:?}", record.phase);
    }
    let shown = |e: &Event| {
        matches!(e, Event::Postponed { .. } | Event::Asked { .. } | Event::Refused { .. })
    };
    let shown = world.outcomes().iter().filter(|o| shown(&o.event)).count();
    assert!(shown > 1, "nothing was reported");
    mend(&world).await;
    // Enough for the longest backoff after three failures, and for a resize.
    world.run_until(monday("18:45:30")).await;
    for resource in AT_FAULT {
        let record = world.record(resource).await;
        assert!(stopped(&record), "{resource}: {record:#?}");
        assert!(world.was_seen(resource), "{resource}");
    }
    // No size was lost on the way.
    world.start_now(&json!({ "account": "do-main" })).await;
    world.run_until(monday("19:00:30")).await;
    let resources = world.simulator().resources();
    assert_eq!(resources["do-main/database/d1"]["plan"], "db-s-2vcpu-4gb");
    assert_eq!(resources["do-main/node-pool/c1/p1"]["count"], 2);
}

/// Tests one kind of misbehavior: on reads for `GET`, on all changes for any other method.
fn misbehaving(method: &'static str, does: Value) {
    run(async move {
        let configuration = office_hours("", "", "");
        let world = World::start(&configuration, &one_of_each_kind(), monday("17:48:00")).await;
        world.run_until(monday("17:59:30")).await;
        let methods: &[&str] = if method == "GET" { &["GET"] } else { &["POST", "PUT"] };
        for method in methods {
            world.simulator().add_fault(fault(&json!({
                "match": { "account": "do-main", "method": method },
                "times": 100_000,
                "does": does,
            })));
        }
        survives(world, async |world| world.simulator().clear_faults()).await;
    });
}

fn answer(status: u16, body: &str, headers: &Value) -> Value {
    json!({ "answer": { "status": status, "body": body, "headers": headers } })
}

#[test]
fn observations_that_are_garbage() {
    misbehaving("GET", answer(200, "<html>Welcome to our status page</html>", &json!({})));
}

#[test]
fn observations_of_another_shape() {
    misbehaving("GET", answer(200, "{\"message\": [1, 2, 3]}", &json!({})));
}

#[test]
fn observations_that_end_in_the_middle() {
    misbehaving("GET", json!("truncate"));
}

#[test]
fn observations_that_fail() {
    misbehaving(
        "GET",
        answer(500, "{\"id\": \"server_error\", \"message\": \"oops\"}", &json!({})),
    );
}

#[test]
fn observations_that_are_too_many() {
    misbehaving("GET", answer(429, "{}", &json!({ "retry-after": "90" })));
}

#[test]
fn observations_that_are_redirected() {
    let elsewhere = json!({ "location": "http://127.0.0.1:1/v2/droplets" });
    misbehaving("GET", answer(302, "", &elsewhere));
}

#[test]
fn observations_that_are_never_answered() {
    misbehaving("GET", json!({ "drop": { "after_effect": false } }));
}

#[test]
fn what_keeps_failing_is_tried_less_and_less_often_until_its_next_edge() {
    run(async {
        let fleet = ACCOUNTS.to_owned() + &droplet(1, "web", &["offhours:office"]);
        let world = World::start(&an_hour_off(""), &fleet, monday("17:48:00")).await;
        world.run_until(monday("17:59:30")).await;
        world.simulator().add_fault(fault(&json!({
            "match": { "resource": "do-main/droplet/1", "method": "GET" },
            "times": 100_000,
            "does": answer(500, "{}", &json!({})),
        })));
        let tried = async |until| {
            world.run_until(monday(until)).await;
            let record = world.record("do-main/droplet/1").await;
            (record.attempts, record.retry_at)
        };
        // It was tried at 18:00, 18:01, 18:03 and 18:07.
        assert_eq!(tried("18:14:30").await, (4, Some(monday("18:15:00"))));
        // It was tried at 19:00 for the first time.
        assert_eq!(tried("19:00:30").await, (1, Some(monday("19:01:00"))));
    });
}

#[test]
fn a_change_that_always_fails_is_sent_less_and_less_often_and_says_why() {
    run(async {
        let fleet = ACCOUNTS.to_owned() + &droplet(1, "web", &["offhours:office"]);
        let world = World::start(&an_hour_off(""), &fleet, monday("17:48:00")).await;
        world.run_until(monday("17:59:30")).await;
        world.simulator().add_fault(fault(&json!({
            "match": { "resource": "do-main/droplet/1", "method": "POST" },
            "times": 100_000,
            "does": answer(500, "{\"id\": \"server_error\", \"message\": \"oops\"}", &json!({})),
        })));
        world.run_until(monday("18:30:30")).await;
        let record = world.record("do-main/droplet/1").await;
        assert_eq!((record.attempts, record.retry_at), (5, Some(monday("18:31:00"))));
        assert!(record.last_error.unwrap().to_string().contains("oops"));
        // It may have been accepted each time, and was looked at meanwhile.
        let minutes = [0, 2, 4, 8, 16].map(|minute| format!("18:{minute:02}:00"));
        let sent: Vec<_> = world.changes().iter().map(|entry| entry.at).collect();
        assert_eq!(sent, minutes.map(|minute| monday(&minute)));
        world.simulator().clear_faults();
        world.run_until(monday("18:33:30")).await;
        let record = world.record("do-main/droplet/1").await;
        assert_eq!(record.phase, Phase::Settled { at: Power::Stopped });
        assert_eq!((record.attempts, record.retry_at, record.last_error), (0, None, None));
    });
}

#[test]
fn a_token_that_is_refused_from_some_moment_on_and_replaced() {
    run(async {
        let tokens = [&TOKENS[..], &[("env:NEXT_TOKEN", "secret-do-token")]].concat();
        let (configuration, fleet) = (office_hours("", "", ""), one_of_each_kind());
        let from = monday("17:48:00");
        let world = World::with_tokens(&configuration, &fleet, &tokens, from).await;
        world.run_until(monday("17:59:30")).await;
        world.simulator().add_fault(fault(&json!({
            "match": { "account": "do-main" },
            "times": 100_000,
            "does": "unauthorized",
        })));
        let replaced = office_hours("", "", "").replace("env:DO_TOKEN", "env:NEXT_TOKEN");
        survives(world, async |world| {
            world.simulator().clear_faults();
            world.apply(&replaced).await;
        })
        .await;
    });
}

#[test]
fn changes_that_are_answered_with_garbage_and_have_no_effect() {
    misbehaving("POST", answer(201, "<html>Welcome</html>", &json!({})));
}

#[test]
fn changes_that_fail() {
    misbehaving(
        "POST",
        answer(500, "{\"id\": \"server_error\", \"message\": \"oops\"}", &json!({})),
    );
}

#[test]
fn changes_that_are_too_many() {
    misbehaving("POST", answer(429, "{}", &json!({ "retry-after": "90" })));
}

#[test]
fn changes_that_are_redirected() {
    let elsewhere = json!({ "location": "http://127.0.0.1:1/v2/droplets" });
    misbehaving("POST", answer(307, "", &elsewhere));
}

#[test]
fn changes_that_are_never_answered_and_have_no_effect() {
    misbehaving("POST", json!({ "drop": { "after_effect": false } }));
}

#[test]
fn changes_whose_answers_are_lost_are_not_repeated() {
    for does in [
        json!({ "drop": { "after_effect": true } }),
        json!("truncate"),
        json!({ "answer": { "status": 500, "after_effect": true } }),
    ] {
        run(async move {
            let configuration = office_hours("", "", "");
            let world = World::start(&configuration, &one_of_each_kind(), monday("17:48:00")).await;
            world.run_until(monday("17:59:30")).await;
            for method in ["POST", "PUT"] {
                world.simulator().add_fault(fault(&json!({
                    "match": { "account": "do-main", "method": method },
                    "times": 100_000,
                    "does": does,
                })));
            }
            world.run_until(monday("18:45:30")).await;
            for resource in EACH_KIND {
                let record = world.record(resource).await;
                assert!(stopped(&record), "{does}: {record:#?}");
                let of_it = |c: &&cloud_simulator::Entry| {
                    c.changed && c.resource == Some(reference(resource))
                };
                let changes = world.changes();
                let accepted = changes.iter().filter(of_it).count();
                assert_eq!(accepted, 1, "{does}: {resource}");
            }
        });
    }
}

async fn with_bad_token(tokens: &[(&str, &str)]) -> World {
    let configuration = office_hours("", "", "").replace("env:DO_TOKEN", "env:NO_TOKEN_HERE");
    let tokens = [tokens, &TOKENS].concat();
    let (fleet, from) = (one_of_each_kind(), monday("17:48:00"));
    World::with_tokens(&configuration, &fleet, &tokens, from).await
}

/// With an invalid token the account's resources are not even known. Checks that the other account
/// is served, and that a new configuration fixes the failure.
async fn is_mended_by_another_token(mut world: World, reason: &str) {
    world.run_until(monday("18:12:30")).await;
    assert!(stopped(&world.record(SOUND).await));
    let shown = world.outcomes().iter();
    let shown = shown.filter(
        |o| matches!(&o.event, Event::Postponed { reason: words, .. } if words.words().contains(reason)),
    );
    assert_eq!(shown.count(), 1, "{:#?}", world.outcomes());
    let states = world.local.store().account_states().await.unwrap().read;
    assert!(states[&"do-main".parse().unwrap()].error.is_some());
    world.apply(&office_hours("", "", "")).await;
    world.run_until(monday("18:40:30")).await;
    for resource in EACH_KIND {
        let record = world.record(resource).await;
        assert!(stopped(&record), "{record:#?}");
    }
}

#[test]
fn a_token_that_is_missing() {
    run(async {
        let world = with_bad_token(&[]).await;
        is_mended_by_another_token(world, "NO_TOKEN_HERE").await;
    });
}

#[test]
fn a_token_that_is_refused() {
    run(async {
        let wrong = ("env:NO_TOKEN_HERE", "secret-but-wrong");
        let world = with_bad_token(&[wrong]).await;
        world.run_until(monday("17:48:30")).await;
        let log = world.simulator().log();
        let refused =
            |e: &&cloud_simulator::Entry| e.answer.as_ref().is_some_and(|a| a.status == 401);
        assert!(log.iter().filter(refused).count() >= 1);
        is_mended_by_another_token(world, "token refused").await;
    });
}

#[test]
fn a_token_that_may_only_read() {
    run(async {
        let configuration = office_hours("", "", "");
        let fleet = one_of_each_kind().replacen("token =", "read_only = true\ntoken =", 1);
        let mut world = World::start(&configuration, &fleet, monday("17:48:00")).await;
        world.run_until(monday("18:30:30")).await;
        assert!(stopped(&world.record(SOUND).await));
        for resource in AT_FAULT {
            // It is the account's failure, not the resource's.
            let refused = |e: &&Event| matches!(e, Event::Refused { .. });
            let events = world.events(resource);
            assert_eq!(events.iter().find(refused), None);
            assert!(!world.was_seen(resource));
            let record = world.record(resource).await;
            assert!(record.in_flight().is_some(), "{record:#?}");
            assert!(!record.may_have_shrunk, "nothing can have shrunk it");
        }
        // It is sent again less and less often: a token with the permission may never come.
        let tried = world.changes().len();
        assert!((15..=25).contains(&tried), "{tried}");
    });
}

#[test]
fn a_token_that_is_refused_is_not_tried_for_each_of_many() {
    run(async {
        let databases = (1..=30).map(|n| database(&format!("d{n}"), &format!("orders-{n}"), "pg"));
        let fleet = ACCOUNTS.to_owned() + &databases.collect::<String>();
        let configuration = office_hours("", "", "");
        let world = World::start(&configuration, &fleet, monday("17:48:00")).await;
        world.run_until(monday("17:59:30")).await;
        let is_one = |path: &str| path.starts_with("/v2/databases/d");
        let asked = || {
            let log = world.simulator().log();
            log.iter().filter(|e| is_one(&e.request.path)).count()
        };
        let before = asked();
        let refusal = json!({ "id": "unauthorized", "message": "unable to authenticate" });
        let one = json!({ "method": "GET", "path_prefix": "/v2/databases/d" });
        world.simulator().add_fault(fault(&json!({
            "match": one,
            "times": 100_000,
            "does": answer(401, &refusal.to_string(), &json!({})),
        })));
        world.run_until(monday("18:00:30")).await;
        let asked = asked() - before;
        // Only the requests that were in flight together when the first was refused.
        assert!((1..=16).contains(&asked), "{asked}");
    });
}

#[test]
fn one_404_before_a_change_postpones_it_and_does_not_make_a_resource_gone() {
    run(async {
        let fleet = ACCOUNTS.to_owned() + &droplet(1, "web", &["offhours:office"]);
        let configuration = office_hours("", "", "");
        let world = World::start(&configuration, &fleet, monday("17:48:00")).await;
        world.run_until(monday("17:59:30")).await;
        let missing = json!({ "id": "not_found", "message": "not found" });
        world.simulator().add_fault(fault(&json!({
            "match": { "resource": "do-main/droplet/1", "method": "GET" },
            "times": 1,
            "does": answer(404, &missing.to_string(), &json!({})),
        })));
        world.run_until(monday("18:00:30")).await;
        let record = world.record("do-main/droplet/1").await;
        assert_eq!(record.phase, Phase::Settled { at: Power::Running });
        assert_eq!(record.retry_at, Some(monday("18:01:00")));
        world.run_until(monday("18:02:30")).await;
        assert!(stopped(&world.record("do-main/droplet/1").await));
    });
}

/// One resource of each kind, and another one in each account that stays: if all vanished, that
/// would not be believed.
fn with_one_more_each() -> String {
    one_of_each_kind() + &droplet(2, "other", &[]) + &unlabelled_server(12)
}

#[test]
fn resources_that_were_deleted_meanwhile() {
    run(async {
        let configuration = office_hours("", "", "");
        let fleet = with_one_more_each();
        let mut world = World::start(&configuration, &fleet, monday("17:48:00")).await;
        world.run_until(monday("17:59:30")).await;
        for resource in AT_FAULT {
            world.person(resource, Act::Delete);
        }
        world.run_until(monday("18:20:30")).await;
        assert!(stopped(&world.record(SOUND).await));
        for resource in AT_FAULT {
            let record = world.record(resource).await;
            assert!(matches!(record.phase, Phase::Gone { .. }), "{record:#?}");
            assert!(!world.was_seen(resource));
        }
        assert_eq!(world.changes().len(), 1);
    });
}

#[test]
fn resources_that_are_deleted_while_they_stop() {
    run(async {
        let configuration = office_hours("", "", "");
        let fleet = with_one_more_each();
        let mut world = World::start(&configuration, &fleet, monday("17:48:00")).await;
        world.run_until(monday("18:00:01")).await;
        for resource in EACH_KIND {
            world.person(resource, Act::Delete);
        }
        world.run_until(monday("18:20:30")).await;
        for resource in EACH_KIND {
            let record = world.record(resource).await;
            assert!(matches!(record.phase, Phase::Gone { .. }), "{record:#?}");
            assert!(!world.was_seen(resource));
        }
        let history = world.history("do-main/database/d1").await;
        assert!(history[0].saved.is_some(), "what it was owed goes to history");
    });
}
