//! The inventory on request: the same one, when a person asks and not when a timer does.

use domain::AccountName;
use lifecycle::{Event, Outcome, outcome::Subject};
use serde_json::json;

use crate::support::{World, droplet, fault, monday, office_hours, one_of_each_kind, run};

/// What a person hears of an account whose inventory he asked for.
fn told<'o>(account: &str, outcomes: &'o [Outcome]) -> Vec<&'o Event> {
    let about = |outcome: &&Outcome| match &outcome.subject {
        Subject::Account { account: of } => of.as_str() == account,
        Subject::Resource { .. } => false,
    };
    let of_it = outcomes.iter().filter(about);
    of_it.map(|outcome| &outcome.event).collect()
}

fn accounts(names: &[&str]) -> Vec<AccountName> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

#[test]
fn an_inventory_on_request_does_not_wait_for_its_interval() {
    run(async {
        let world = World::start(
            &office_hours("", "", ""),
            &one_of_each_kind(),
            monday("09:00:00"),
        )
        .await;
        world.run_until(monday("09:01:00")).await;
        let mut new = droplet(7, "new", &["offhours:office"]);
        new.push_str("account = \"do-main\"\n");
        world.simulator().create(&new).unwrap();
        world.run_until(monday("09:02:00")).await;
        let seven = "do-main/droplet/7".parse().unwrap();
        assert_eq!(world.local.store().record(&seven).await.unwrap(), None);

        let report = world
            .local
            .service()
            .take_inventory(&accounts(&["do-main"]))
            .await
            .unwrap();
        assert!(world.record("do-main/droplet/7").await.opted_in);
        assert!(matches!(
            told("do-main", &report.outcomes)[..],
            [Event::Status { state }] if state.starts_with("listed whole: ")
        ));
        assert!(told("hz-eu", &report.outcomes).is_empty());
        let states = world.local.store().account_states().await.unwrap().read;
        let listed_at = |name: &str| states[&name.parse().unwrap()].listed_at;
        assert_eq!(listed_at("do-main"), Some(monday("09:02:00")));
        assert_eq!(listed_at("hz-eu"), Some(monday("09:00:00")));
    });
}

#[test]
fn an_unknown_account_is_declined_by_name_and_keeps_no_other_from_being_listed() {
    run(async {
        let world = World::start(
            &office_hours("", "", ""),
            &one_of_each_kind(),
            monday("09:00:00"),
        )
        .await;
        let asked = accounts(&["do-man", "hz-eu"]);
        let report = world.local.service().take_inventory(&asked).await.unwrap();
        let words = "no account `do-man` is configured; the accounts are do-main, hz-eu";
        assert!(matches!(
            told("do-man", &report.outcomes)[..],
            [Event::Declined { reason }] if reason == words
        ));
        assert!(world.record("hz-eu/server/11").await.opted_in);
    });
}

#[test]
fn who_asks_hears_of_a_failure_however_often_it_was_told() {
    run(async {
        let world = World::start(
            &office_hours("", "", ""),
            &one_of_each_kind(),
            monday("09:00:00"),
        )
        .await;
        world.simulator().add_fault(fault(&json!({
            "match": {"path_prefix": "/v1/"},
            "times": 2,
            "does": "unauthorized",
        })));
        for _ in 0..2 {
            let report = world.local.service().take_inventory(&[]).await.unwrap();
            assert!(matches!(
                told("hz-eu", &report.outcomes)[..],
                [Event::Postponed { reason, .. }] if reason.contains("token refused")
            ));
            assert!(matches!(
                told("do-main", &report.outcomes)[..],
                [Event::Status { .. }]
            ));
        }
    });
}
