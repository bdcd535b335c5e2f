//! Accounts that are removed, or called something else: what is owed is lost with none of them.

use lifecycle::Event;
use serde_json::json;

use crate::support::{World, instant, monday, office_hours, one_of_each_kind, reference, run};

const ORDERS: &str = "do-main/database/d1";

/// All that the index says is due by the end of the year.
async fn in_index(world: &World) -> Vec<String> {
    let due = world
        .local
        .store()
        .due(instant("2026-12-31T00:00:00Z"))
        .await;
    let due = due.unwrap().read.into_iter();
    due.map(|record| record.reference.to_string()).collect()
}

/// Both accounts, and no more of them.
fn without(account: &str) -> String {
    let configuration = office_hours("", "", "");
    let header = format!("[accounts.{account}]");
    let begin = configuration.find(&header).unwrap();
    let end = configuration[begin + 1..].find('[').unwrap() + begin + 1;
    configuration[..begin].to_owned() + &configuration[end..]
}

#[test]
fn what_is_under_way_in_an_account_that_is_removed_is_looked_for_no_more() {
    run(async {
        let configuration = office_hours("", "", "");
        let from = monday("17:48:00");
        let mut world = World::start(&configuration, &one_of_each_kind(), from).await;
        world.run_until(monday("18:30:00")).await;
        world.start_now(&json!({ "resources": [ORDERS] })).await;
        assert!(world.record(ORDERS).await.in_flight().is_some());
        world.apply(&without("do-main")).await;
        assert_eq!(in_index(&world).await, ["hz-eu/server/11"]);
        let told = world.outcomes().len();
        world.run_until(monday("18:40:30")).await;
        let complaints = world.outcomes()[told..].iter();
        let complaints = complaints.filter(|o| matches!(o.event, Event::Postponed { .. }));
        assert_eq!(complaints.count(), 0);
        assert!(world.record(ORDERS).await.saved.is_some());
    });
}

#[test]
fn what_an_apply_that_ended_early_left_in_the_index_leaves_it_with_the_next_tick() {
    run(async {
        let configuration = office_hours("", "", "");
        let from = monday("17:48:00");
        let world = World::start(&configuration, &one_of_each_kind(), from).await;
        world.run_until(monday("18:30:00")).await;
        world.apply(&without("do-main")).await;
        // As the apply would have left them, had it ended after its commit.
        let store = world.local.store();
        let left = [ORDERS, "do-main/droplet/1"].map(reference);
        for mut record in store.records(&left).await.unwrap().read {
            record.due_at = Some(world.local.now());
            store.save(record).await.unwrap();
        }
        assert_eq!(in_index(&world).await.len(), 3);
        world.run_until(monday("18:31:30")).await;
        assert_eq!(in_index(&world).await, ["hz-eu/server/11"]);
    });
}
