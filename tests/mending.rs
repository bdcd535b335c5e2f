//! What inventories repair, and what an incomplete list must not lead to.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use axum::{Json, Router, http::header::AUTHORIZATION};
use cloud_simulator::Act;
use domain::{
    configuration::TokenReference,
    record::{Direction, Phase, Record},
    resource::Power,
};
use environment::{Tokens, aws::local_config};
use lifecycle::Event;
use serde_json::{Value, json};
use testing::Fate;

use crate::{
    process::{Process, writes},
    support::{
        self, ACCOUNTS, World, database, droplet, fault, monday, office_hours, run, serve, server,
    },
};

/// Enough servers that a list is the cheapest way to observe all of them.
const SERVERS: std::ops::RangeInclusive<u64> = 11..=30;

fn servers() -> Vec<String> {
    SERVERS.map(|id| format!("hz-eu/server/{id}")).collect()
}

/// These servers and one Droplet, before the edge at 18:00.
async fn many_servers() -> World {
    let servers = support::servers(SERVERS, "");
    let fleet = [ACCOUNTS, &servers, &droplet(1, "web", &["offhours:office"])].concat();
    let world = World::start(&office_hours("", "", ""), &fleet, monday("17:48:00")).await;
    world.run_until(monday("17:50:30")).await;
    world
}

/// Takes records out of the index, as a lost write would have.
async fn mislay(world: &World, resources: &[String]) -> Vec<Record> {
    let mut before = Vec::new();
    for resource in resources {
        let record = world.record(resource).await;
        assert!(record.due_at.is_some(), "{resource}");
        let mislaid = Record { due_at: None, ..record.clone() };
        world.local.store().save(mislaid).await.unwrap();
        before.push(record);
    }
    before
}

async fn are_due_again(world: &World, before: &[Record]) {
    for record in before {
        let now = world.record(&record.reference.to_string()).await;
        assert_eq!(now.due_at, record.due_at, "{}", record.reference);
    }
}

#[test]
fn an_inventory_puts_back_into_the_index_what_is_not_due_by_mistake() {
    run(async {
        let world = many_servers().await;
        let before = mislay(&world, &servers()[..3]).await;
        Process::beside(&world).take_inventory().await;
        are_due_again(&world, &before).await;
    });
}

#[test]
fn an_inventory_whose_listing_fails_mends_the_records_all_the_same() {
    run(async {
        let world = many_servers().await;
        let before = mislay(&world, &servers()[..3]).await;
        world.simulator().add_fault(fault(&json!({
            "match": { "account": "hz-eu" },
            "times": 1000,
            "does": { "answer": { "status": 500 } },
        })));
        let process = Process::beside(&world);
        // A record that cannot be written must not keep the others from being repaired.
        let refused = Fate::error("ValidationException");
        process.wire.plan(writes("hz-eu/server/11"), refused);
        process.take_inventory().await;
        are_due_again(&world, &before[1..]).await;
        let postponed = |event: &Event| matches!(event, Event::Postponed { .. });
        assert!(process.published("hz-eu/server/11").iter().any(postponed));
        process.take_inventory().await;
        are_due_again(&world, &before).await;
    });
}

/// The cloud's list without these servers, as if a page had shifted while it was read.
async fn shifted(world: &World, lacking: &[u64]) -> Value {
    let url = world.local.clouds_url().unwrap();
    let list = provider::http_client()
        .unwrap()
        .get(url.join("v1/servers?per_page=50").unwrap())
        .header(AUTHORIZATION.as_str(), "Bearer secret-hz-token");
    let list = list.send().await.unwrap().bytes().await.unwrap();
    let mut list: Value = serde_json::from_slice(&list).unwrap();
    let servers = list["servers"].as_array_mut().unwrap();
    let whole = servers.len();
    servers.retain(|server| !lacking.contains(&server["id"].as_u64().unwrap()));
    assert_eq!(servers.len() + lacking.len(), whole);
    list
}

/// Makes the next lists lack these servers, which still exist.
async fn shift(world: &World, lacking: &[u64], times: u32) {
    let body = shifted(world, lacking).await.to_string();
    world.simulator().add_fault(fault(&json!({
        "match": { "method": "GET", "path_suffix": "/v1/servers" },
        "times": times,
        "does": { "answer": {
            "status": 200, "body": body, "headers": { "content-type": "application/json" },
        } },
    })));
}

/// Whether all the lists to be shifted have been requested.
fn is_used_up(world: &World) -> bool {
    world.simulator().faults().iter().all(|f| f.times == 0)
}

#[test]
fn what_is_not_listed_and_still_there_is_not_gone() {
    run(async {
        let world = many_servers().await;
        let before = world.record("hz-eu/server/30").await;
        shift(&world, &[30], 2).await;
        let process = Process::beside(&world);
        for minute in ["17:51:00", "17:57:00"] {
            process.clock.advance_to(monday(minute));
            process.take_inventory().await;
            let after = world.record("hz-eu/server/30").await;
            assert_eq!(after.missing_since, None);
            assert_eq!((after.phase, after.due_at), (before.phase.clone(), before.due_at));
            assert!(after.opted_in);
        }
        assert!(is_used_up(&world));
        assert_eq!(process.published("hz-eu/server/30"), []);
    });
}

/// Makes the token of `do-main` see an empty project, as if it were another team's.
fn see_an_empty_project(world: &World) {
    let answers = |status: u16, body: &Value| {
        json!({ "answer": {
        "status": status, "body": body.to_string(),
        "headers": { "content-type": "application/json" },
    } })
    };
    let missing = json!({ "id": "not_found", "message": "not found" });
    for kind in ["droplets", "databases"] {
        let path = format!("/v2/{kind}");
        for (matching, does) in [
            (json!({ "method": "GET", "path_suffix": path }), answers(200, &json!({ kind: [] }))),
            (json!({ "path_prefix": format!("{path}/") }), answers(404, &missing)),
        ] {
            let does = json!({ "match": matching, "times": 10_000, "does": does });
            world.simulator().add_fault(fault(&does));
        }
    }
}

#[test]
fn a_token_of_another_project_makes_nothing_gone_and_a_manual_start_stands() {
    run(async {
        let fleet =
            [ACCOUNTS, &droplet(1, "dev", &["offhours:office"]), &database("d1", "orders", "pg")];
        let from = monday("17:48:00");
        let mut world = World::start(&office_hours("", "", ""), &fleet.concat(), from).await;
        world.run_until(monday("20:00:00")).await;
        world.person("do-main/droplet/1", Act::PowerOn);
        world.run_until(monday("22:00:30")).await;
        let before = world.changes().len();
        see_an_empty_project(&world);
        world.run_until(monday("22:30:30")).await;
        for resource in ["do-main/droplet/1", "do-main/database/d1"] {
            let record = world.record(resource).await;
            assert!(
                matches!(record.phase, Phase::Settled { .. }),
                "{resource}: {:?}",
                record.phase
            );
        }
        let vanished = |event: &Event| matches!(event, Event::Postponed { reason, .. } if reason.words().contains("vanished"));
        let shown = world.outcomes().iter();
        assert_eq!(shown.filter(|one| vanished(&one.event)).count(), 1);
        let states = world.local.store().account_states().await.unwrap().read;
        let state = &states[&"do-main".parse().unwrap()];
        assert!(state.listed_at < Some(monday("22:01:00")), "{state:?}");

        world.simulator().clear_faults();
        world.run_until(monday("22:50:30")).await;
        assert_eq!(world.changes().len(), before);
        let dev = world.record("do-main/droplet/1").await;
        assert_eq!(dev.phase, Phase::Settled { at: Power::Running });
        let owed = world.record("do-main/database/d1").await.saved;
        assert!(owed.is_some());
    });
}

#[test]
fn what_is_followed_under_a_token_of_another_project_is_not_gone_either() {
    run(async {
        let fleet = [ACCOUNTS, &droplet(1, "dev", &["offhours:office"])].concat();
        let world = World::start(&office_hours("", "", ""), &fleet, monday("17:48:00")).await;
        world.run_until(monday("18:00:01")).await;
        assert!(world.record("do-main/droplet/1").await.in_flight().is_some());
        see_an_empty_project(&world);
        world.run_until(monday("18:14:30")).await;
        assert!(world.record("do-main/droplet/1").await.in_flight().is_some());
        world.simulator().clear_faults();
        world.run_until(monday("18:20:30")).await;
        let phase = world.record("do-main/droplet/1").await.phase;
        assert_eq!(phase, Phase::Settled { at: Power::Stopped });
    });
}

#[test]
fn what_is_due_and_not_listed_is_looked_at_by_itself_and_stopped() {
    run(async {
        let world = many_servers().await;
        world.run_until(monday("17:59:30")).await;
        shift(&world, &[12, 30], 1).await;
        let process = Process::later(&world, monday("18:00:00"));
        let servers = servers();
        let all: Vec<_> = servers.iter().map(String::as_str).collect();
        process.hint(Direction::Stop, &all).await;
        assert!(is_used_up(&world));
        assert_eq!(world.touched(), servers.into_iter().collect());
    });
}

#[test]
fn databases_are_saved_from_an_observation_of_each_of_them_alone() {
    run(async {
        let ids: Vec<_> = (1..=12).map(|id| format!("d{id}")).collect();
        let databases: String = ids.iter().map(|id| database(id, id, "pg")).collect();
        let fleet = [ACCOUNTS, &databases].concat();
        let world = World::start(&office_hours("", "", ""), &fleet, monday("17:48:00")).await;
        world.run_until(monday("17:59:30")).await;
        let before = world.simulator().log().len() as u64;
        let process = Process::later(&world, monday("18:00:00"));
        let references: Vec<_> = ids.iter().map(|id| format!("do-main/database/{id}")).collect();
        let all: Vec<_> = references.iter().map(String::as_str).collect();
        process.hint(Direction::Stop, &all).await;
        let mut looked_at = BTreeSet::new();
        let mut resized = BTreeSet::new();
        for entry in world.simulator().log_after(before) {
            let Some(resource) = entry.resource else {
                continue;
            };
            let path = &entry.request.path;
            if entry.request.method == "PUT" {
                assert!(looked_at.contains(&resource), "{resource} was resized unseen");
                resized.insert(resource.to_string());
            } else if path.ends_with(resource.to_string().rsplit('/').next().unwrap()) {
                looked_at.insert(resource);
            }
        }
        assert_eq!(resized, references.into_iter().collect());
    });
}

#[test]
fn what_is_stuck_and_stops_after_all_is_settled_by_the_next_inventory() {
    run(async {
        let deaf = server(11, "ignores_shutdown = true");
        let fleet = [ACCOUNTS, &deaf].concat();
        let configuration = office_hours("", "", "force = false");
        let mut world = World::start(&configuration, &fleet, monday("17:48:00")).await;
        world.run_until(monday("18:14:30")).await;
        let phase = world.record("hz-eu/server/11").await.phase;
        assert!(matches!(phase, Phase::Stuck { .. }), "{phase:?}");
        world.person("hz-eu/server/11", Act::PowerOff);
        world.run_until(monday("18:20:30")).await;
        let phase = world.record("hz-eu/server/11").await.phase;
        assert_eq!(phase, Phase::Settled { at: Power::Stopped });
        assert!(world.was_seen("hz-eu/server/11"));
    });
}

/// A parameter store with one token, until it is rotated.
struct Parameters(Arc<Mutex<&'static str>>);

impl Parameters {
    async fn serve(token: &'static str) -> (Self, Tokens) {
        let kept = Arc::new(Mutex::new(token));
        let serving = kept.clone();
        let router = Router::new().fallback(move || {
            let value = *serving.lock().unwrap();
            async move { Json(json!({ "Parameter": { "Name": "/offhours/hz", "Value": value } })) }
        });
        let address = serve(router).await;
        let tokens = Tokens::from_aws(&local_config(&format!("http://{address}")));
        (Self(kept), tokens)
    }

    fn rotate(&self, token: &'static str) {
        *self.0.lock().unwrap() = token;
    }
}

/// A server whose account's token is in the parameter store, and another process that reads it from
/// there.
async fn kept_by_name(token: &'static str) -> (World, Parameters, Process) {
    let by_name: TokenReference = "ssm:/offhours/hz".parse().unwrap();
    let configuration = office_hours("", "", "");
    let fleet = [ACCOUNTS, &server(11, "")].concat();
    let world = World::start(&configuration, &fleet, monday("17:48:00")).await;
    world.run_until(monday("17:50:30")).await;
    let renamed = configuration.replace("env:HZ_TOKEN", &by_name.to_string());
    world.apply(&renamed).await;
    let (parameters, tokens) = Parameters::serve(token).await;
    let process = Process::with_tokens(&world, tokens);
    (world, parameters, process)
}

/// Hands the process a hint to stop the server, at an instant.
async fn hint_at(process: &Process, time: &str) {
    process.clock.advance_to(monday(time));
    process.hint(Direction::Stop, &["hz-eu/server/11"]).await;
}

#[test]
fn a_token_that_is_rotated_under_its_name_is_read_again_by_the_process_that_was_refused() {
    run(async {
        let (world, parameters, process) = kept_by_name("secret-revoked").await;
        hint_at(&process, "18:00:00").await;
        let refused = |event: &Event| matches!(event, Event::Postponed { token_refused: true, .. });
        assert!(process.published("hz-eu/server/11").iter().any(refused));
        assert_eq!(world.changes().len(), 0);
        parameters.rotate("secret-hz-token");
        hint_at(&process, "18:30:00").await;
        assert_eq!(world.changes().len(), 1);
    });
}

#[test]
fn a_token_that_is_refused_for_a_change_alone_is_read_again_too() {
    run(async {
        let (world, parameters, process) = kept_by_name("secret-hz-token").await;
        let refusal = json!({ "error": { "code": "token_readonly", "message": "may only read" } });
        world.simulator().add_fault(fault(&json!({
            "match": { "account": "hz-eu", "method": "POST" },
            "times": 1,
            "does": { "answer": { "status": 403, "body": refusal.to_string(), "headers": {} } },
        })));
        hint_at(&process, "18:00:00").await;
        let asked = world.changes().len();
        parameters.rotate("secret-revoked");
        hint_at(&process, "18:01:00").await;
        assert_eq!(world.changes().len(), asked);
        parameters.rotate("secret-hz-token");
        hint_at(&process, "18:02:00").await;
        assert_eq!(world.changes().len(), asked + 1);
    });
}

#[test]
fn a_token_that_is_refused_while_following_is_read_again_too() {
    run(async {
        let (world, parameters, process) = kept_by_name("secret-hz-token").await;
        hint_at(&process, "18:00:00").await;
        let refusal = json!({ "error": { "code": "unauthorized", "message": "no" } });
        world.simulator().add_fault(fault(&json!({
            "match": { "account": "hz-eu", "method": "GET" },
            "times": 1,
            "does": { "answer": { "status": 401, "body": refusal.to_string(), "headers": {} } },
        })));
        let look_at = async |time| {
            process.clock.advance_to(monday(time));
            process.look().await;
            let log = world.simulator().log();
            log.last().and_then(|e| Some(e.answer.as_ref()?.status))
        };
        look_at("18:00:10").await;
        parameters.rotate("secret-revoked");
        assert_eq!(look_at("18:00:20").await, Some(401));
        parameters.rotate("secret-hz-token");
        assert_eq!(look_at("18:00:30").await, Some(200));
    });
}
