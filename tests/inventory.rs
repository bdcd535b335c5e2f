//! The inventory on request: the same as the timer's, but taken when a person asks.

use cloud_simulator::Act;
use domain::{AccountName, invocation::Question, record::Phase};
use jiff::SignedDuration;
use lifecycle::{Event, Occurrence, event::Subject};
use serde_json::json;

use crate::support::{
    ACCOUNTS, EACH_KIND, TOKENS, World, fault, monday, office_hours, one_of_each_kind, run, server,
};

/// The events that an inventory on request reports for one account.
fn shown<'o>(account: &str, outcomes: &'o [Occurrence]) -> Vec<&'o Event> {
    let about = |outcome: &&Occurrence| match &outcome.subject {
        Subject::Account { account: of } => of.as_str() == account,
        Subject::Resource { .. } => false,
    };
    let of_it = outcomes.iter().filter(about);
    of_it.map(|outcome| &outcome.event).collect()
}

fn accounts(names: &[&str]) -> Vec<AccountName> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

/// A world at nine, before any inventory.
async fn at_nine() -> World {
    let configuration = office_hours("", "", "");
    World::start(&configuration, &one_of_each_kind(), monday("09:00:00")).await
}

#[test]
fn an_inventory_on_request_does_not_wait_for_its_interval() {
    run(async {
        let world = at_nine().await;
        world.run_until(monday("09:01:00")).await;
        world.create_droplet(7);
        world.run_until(monday("09:02:00")).await;
        let seven = "do-main/droplet/7".parse().unwrap();
        assert_eq!(world.local.store().record(&seven).await.unwrap(), None);

        let report =
            world.local.service().ask(Question::Inventory(accounts(&["do-main"]))).await.unwrap();
        assert!(world.record("do-main/droplet/7").await.opted_in);
        assert!(matches!(
            shown("do-main", &report.outcomes)[..],
            [Event::Status { state }] if state.starts_with("listed whole: ")
        ));
        assert!(shown("hz-eu", &report.outcomes).is_empty());
        let states = world.local.store().account_states().await.unwrap().read;
        let listed_at = |name: &str| states[&name.parse().unwrap()].listed_at;
        assert_eq!(listed_at("do-main"), Some(monday("09:02:00")));
        assert_eq!(listed_at("hz-eu"), Some(monday("09:00:00")));
    });
}

#[test]
fn an_unknown_account_is_declined_by_name_and_keeps_no_other_from_being_listed() {
    run(async {
        let world = at_nine().await;
        let asked = accounts(&["do-man", "hz-eu"]);
        let report = world.local.service().ask(Question::Inventory(asked)).await.unwrap();
        let words = "no account `do-man` is configured; the accounts are do-main, hz-eu";
        assert!(matches!(
            shown("do-man", &report.outcomes)[..],
            [Event::Declined { reason }] if reason == words
        ));
        assert!(world.record("hz-eu/server/11").await.opted_in);
    });
}

#[test]
fn an_inventory_on_request_reports_a_failure_however_often_it_was_reported() {
    run(async {
        let world = at_nine().await;
        world.simulator().add_fault(fault(&json!({
            "match": {"path_prefix": "/v1/"},
            "times": 2,
            "does": "unauthorized",
        })));
        for _ in 0..2 {
            let report = world.local.service().ask(Question::Inventory(Vec::new())).await.unwrap();
            assert!(matches!(
                shown("hz-eu", &report.outcomes)[..],
                [Event::Postponed { reason, .. }] if reason.words().contains("token refused")
            ));
            assert!(matches!(shown("do-main", &report.outcomes)[..], [Event::Status { .. }]));
        }
    });
}

/// A server in Ashburn, in a project that more than one account can open.
async fn ashburn(configuration: &str) -> World {
    let fleet = [ACCOUNTS, &server(11, "location = \"ash\"")].concat();
    World::with_tokens(configuration, &fleet, &TOKENS, monday("16:30:00")).await
}

/// A configuration with one account for Ashburn, and another one without it.
fn split() -> String {
    office_hours("", "", "").replace(
        "[accounts.hz-eu]",
        "[accounts.hz-us]\nprovider = \"hetzner\"\ntoken = \"env:HZ_TOKEN\"\n\
         datacenters = [\"ash-dc1\"]\n[accounts.hz-eu]\ndatacenters = [\"fsn1-dc14\"]",
    )
}

#[test]
fn a_project_that_is_split_by_datacenters_is_not_a_conflict() {
    run(async {
        let mut world = ashburn(&office_hours("", "", "")).await;
        world.run_until(monday("16:50:30")).await;
        world.apply(&split()).await;
        world.run_until(monday("18:30:30")).await;
        assert_eq!(world.record("hz-us/server/11").await.duplicate_of, None);
        assert_eq!(world.record("hz-eu/server/11").await.duplicate_of, None);
        let conflicts = world.outcomes().iter().map(|outcome| &outcome.event);
        assert!(!conflicts.clone().any(|e| matches!(e, Event::Conflict { .. })));
        assert_eq!(world.touched().len(), 1);
        assert!(world.was_seen("hz-us/server/11"));
        assert!(!world.was_seen("hz-eu/server/11"));
    });
}

#[test]
fn a_conflict_is_over_when_one_of_the_accounts_looks_after_it_no_more() {
    run(async {
        // `hz-eu` covers all locations, including Ashburn.
        let both = split().replace("datacenters = [\"fsn1-dc14\"]", "");
        let mut world = ashburn(&both).await;
        world.run_until(monday("16:50:30")).await;
        for account in ["hz-us", "hz-eu"] {
            let record = world.record(&format!("{account}/server/11")).await;
            assert!(record.duplicate_of.is_some(), "{account}");
        }
        world.apply(&split()).await;
        world.run_until(monday("17:00:30")).await;
        for account in ["hz-us", "hz-eu"] {
            let record = world.record(&format!("{account}/server/11")).await;
            assert_eq!(record.duplicate_of, None, "{account}");
        }
        assert!(world.touched().is_empty());
        world.run_until(monday("18:02:30")).await;
        assert_eq!(world.touched().len(), 1);
        assert!(world.was_seen("hz-us/server/11"));
    });
}

const POOL: &str = "do-main/node-pool/c1/p1";

/// The reason that an account's state gives for what its lists do not show.
async fn unread(world: &World, account: &str) -> Option<String> {
    let states = world.local.store().account_states().await.unwrap().read;
    let state = &states[&account.parse().unwrap()];
    state.error.as_ref().map(ToString::to_string)
}

#[test]
fn a_kind_that_the_token_may_not_read_takes_nothing_else_away_and_is_not_gone() {
    run(async {
        let mut world = at_nine().await;
        world.run_until(monday("09:01:00")).await;
        let error = |id: &str| json!({"id": id, "message": "no"}).to_string();
        for (path, status, id) in [
            // Not even a 404 counts where the list cannot be read.
            ("/v2/kubernetes/clusters/c1", 404, "not_found"),
            ("/v2/kubernetes", 403, "forbidden"),
        ] {
            world.simulator().add_fault(fault(&json!({
                "match": {"path_prefix": path},
                "times": 100_000,
                "does": {"answer": {"status": status, "body": error(id)}},
            })));
        }
        world.run_until(monday("09:06:00")).await;
        let said = unread(&world, "do-main").await.unwrap();
        assert!(said.contains("kubernetes:read"), "{said}");
        world.run_until(monday("18:40:00")).await;
        // Everything else is stopped.
        for resource in EACH_KIND.iter().filter(|one| **one != POOL) {
            assert!(world.was_seen(resource), "{resource}");
        }
        let told = world.outcomes().iter().filter(|outcome| {
            matches!(&outcome.event, Event::Postponed { reason, .. } if reason.to_string() == said)
        });
        assert_eq!(told.count(), 1, "said once");
        let pool = world.record(POOL).await;
        assert!(!matches!(pool.phase, Phase::Gone { .. }), "{pool:?}");
        assert_eq!(pool.missing_since, None);
    });
}

/// A restored record may be from before its first hibernation.
#[test]
fn a_machine_is_gone_once_the_list_of_snapshots_shows_none_of_it_or_may_not_be_read() {
    run(async {
        let fleet = one_of_each_kind() + &server(12, "");
        let world = World::start(&office_hours("", "", ""), &fleet, monday("09:00:00")).await;
        world.run_until(monday("09:01:00")).await;
        for machine in ["do-main/droplet/1", "hz-eu/server/11"] {
            world.person(machine, Act::Delete);
        }
        let listing = |path: &str, status: u16, id: &str| {
            world.simulator().add_fault(fault(&json!({
                "match": {"path_prefix": path},
                "times": 100_000,
                "does": {"answer": {
                    "status": status,
                    "body": json!({"id": id, "message": "no"}).to_string(),
                }},
            })));
        };
        listing("/v2/snapshots", 403, "forbidden");
        listing("/v1/images", 503, "unavailable");
        let is_gone = async |world: &World, machine: &str| {
            matches!(world.record(machine).await.phase, Phase::Gone { .. })
        };
        world.run_until(monday("09:16:00")).await;
        assert!(is_gone(&world, "do-main/droplet/1").await);
        assert!(!is_gone(&world, "hz-eu/server/11").await);
        world.simulator().clear_faults();
        world.run_until(monday("09:21:00")).await;
        assert!(is_gone(&world, "hz-eu/server/11").await);
    });
}

#[test]
fn prices_are_read_with_the_first_inventory_and_once_a_day() {
    run(async {
        let world = at_nine().await;
        let asked = |path: &str| {
            let log = world.simulator().log();
            log.iter().filter(|entry| entry.request.path == path).count()
        };
        let read_at = async |account: &str| {
            let prices = world.local.store().prices().await.unwrap().read;
            prices.get(&account.parse::<AccountName>().unwrap()).map(|one| one.list.read_at)
        };
        // A token that may not read them does no harm: the rest is listed as before.
        world.simulator().add_fault(fault(&json!({
            "match": {"path_prefix": "/v2/sizes"},
            "times": 1,
            "does": {"answer": {"status": 403, "body": "{\"id\": \"forbidden\"}"}},
        })));
        world.run_until(monday("09:55:00")).await;
        assert_eq!((asked("/v2/sizes"), asked("/v1/pricing")), (1, 1));
        assert_eq!(read_at("hz-eu").await, Some(monday("09:00:00")));
        assert_eq!(read_at("do-main").await, None);
        let states = world.local.store().account_states().await.unwrap().read;
        assert!(states.values().all(|state| state.error.is_none() && !state.token_fails));
        // It is asked for them again after an hour.
        world.run_until(monday("10:05:00")).await;
        assert_eq!(read_at("do-main").await, Some(monday("10:00:00")));
        world.run_until(monday("23:59:00")).await;
        assert_eq!((asked("/v2/sizes"), asked("/v1/pricing")), (2, 1));
        world.run_until(monday("09:05:00") + SignedDuration::from_hours(24)).await;
        assert_eq!((asked("/v2/sizes"), asked("/v1/pricing")), (2, 2));
    });
}
