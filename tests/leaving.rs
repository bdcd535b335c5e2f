//! Accounts that are removed or renamed: nothing that is owed is lost with them.

use domain::record::{Cause, Ending, Record, Revision};
use lifecycle::{Event, Occurrence};
use serde_json::{Value, json};
use store::item;

use crate::support::{
    World, instant, monday, office_hours, one_of_each_kind, program, reference, run, serve_sts,
    tables,
};

const ORDERS: &str = "do-main/database/d1";

/// The same database under the account's new name.
const RENAMED: &str = "do-new/database/d1";

/// Both accounts, with `do-main` renamed to `do-new`. Nothing may join unless a person approves.
fn renamed() -> String {
    let configuration = office_hours("max_new = 0", "was = \"do-main\"", "");
    configuration.replace("[accounts.do-main]", "[accounts.do-new]")
}

/// A world in the evening: everything is stopped, under the accounts' first names.
async fn stopped() -> World {
    let configuration = office_hours("max_new = 0", "", "");
    let from = monday("17:48:00");
    let world = World::start(&configuration, &one_of_each_kind(), from).await;
    world.run_until(monday("18:30:00")).await;
    world
}

async fn references(world: &World, account: &str) -> Vec<String> {
    let records = world.local.store().records_of(&account.parse().unwrap()).await;
    let records = records.unwrap().read.into_iter();
    records.map(|record| record.reference.id.to_string()).collect()
}

const OF_DO: [&str; 3] = ["database/d1", "droplet/1", "node-pool/c1/p1"];

fn is_new(outcome: &Occurrence) -> bool {
    matches!(
        outcome.event,
        Event::Joined { .. } | Event::Held { .. } | Event::Orphaned { .. } | Event::Conflict { .. }
    )
}

/// Everything that the index lists as due by the end of the year.
async fn in_index(world: &World) -> Vec<String> {
    let due = world.local.store().due(instant("2026-12-31T00:00:00Z")).await;
    let due = due.unwrap().read.into_iter();
    due.map(|record| record.reference.to_string()).collect()
}

/// The configuration without one of the two accounts.
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
        let shown = world.outcomes().len();
        world.run_until(monday("18:40:30")).await;
        let complaints = world.outcomes()[shown..].iter();
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

#[test]
fn what_is_under_way_in_an_account_goes_on_under_its_new_name() {
    run(async {
        let mut world = stopped().await;
        world.start_now(&json!({ "resources": [ORDERS] })).await;
        let shown = world.outcomes().len();
        world.apply(&renamed()).await;
        assert_eq!(references(&world, "do-main").await, [""; 0]);
        assert_eq!(references(&world, "do-new").await, OF_DO);
        let carried = world.record(RENAMED).await;
        assert!(carried.in_flight().is_some() && carried.saved.is_some());

        world.run_until(monday("18:50:30")).await;
        assert!(!world.outcomes()[shown..].iter().any(is_new));
        let restored = world.record(RENAMED).await;
        assert_eq!((restored.in_flight(), &restored.saved), (None, &None));
        // Stopped in the evening, and started once.
        let changes = world.changes();
        let of_orders = changes.iter().filter(|entry| entry.request.path.contains("/d1/"));
        assert_eq!(of_orders.count(), 2);

        world.run_until(instant("2026-11-24T07:15:00Z")).await;
        for id in OF_DO {
            let record = world.record(&format!("do-new/{id}")).await;
            assert_eq!(record.saved, None, "{id}");
            assert_eq!(
                record.phase,
                domain::record::Phase::Settled { at: domain::resource::Power::Running }
            );
        }
    });
}

#[test]
fn an_inventory_carries_over_what_an_apply_that_ended_early_did_not() {
    run(async {
        let mut world = stopped().await;
        let store = world.local.store();
        let old = store.records_of(&"do-main".parse().unwrap()).await.unwrap().read;
        world.apply(&renamed()).await;
        take_back(&world, old.clone()).await;
        assert_eq!(references(&world, "do-main").await, OF_DO);
        let (shown, touched) = (world.outcomes().len(), world.changes().len());

        world.run_until(monday("18:36:30")).await;
        assert_eq!(references(&world, "do-main").await, [""; 0]);
        for old in old {
            let new = world.record(&format!("do-new/{}", old.reference.id)).await;
            assert_eq!((&new.saved, &new.handled, new.held), (&old.saved, &old.handled, false));
        }
        assert!(!world.outcomes()[shown..].iter().any(is_new));
        assert_eq!(world.changes().len(), touched);
    });
}

/// Runs a command on the world's store.
async fn command(world: &World, arguments: &[&str]) -> (Option<i32>, String) {
    let address = format!("http://{}", testing::serve(world.engine.clone()).await);
    let sts = serve_sts().await;
    let output = tokio::process::Command::new(program("offhours"))
        .args(arguments)
        .envs([
            ("AWS_ENDPOINT_URL", address.as_str()),
            ("AWS_ENDPOINT_URL_STS", sts.as_str()),
            ("AWS_REGION", "eu-central-1"),
            ("AWS_ACCESS_KEY_ID", "local"),
            ("AWS_SECRET_ACCESS_KEY", "local"),
            ("USER", "ada"),
        ])
        .output()
        .await
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

/// The references in a command's JSON output, sorted.
async fn printed(world: &World, arguments: &[&str]) -> Vec<String> {
    let (code, shown) = command(world, &[arguments, &["-o", "json"]].concat()).await;
    assert!(matches!(code, Some(0 | 3)), "{shown}");
    let rows: Vec<Value> = serde_json::from_str(&shown).unwrap();
    let references = rows.iter().map(|row| row["resource"].as_str().unwrap().to_owned());
    let mut references: Vec<_> = references.collect();
    references.sort_unstable();
    references
}

const DROPLET: &str = "do-main/droplet/1";
const POOL: &str = "do-main/node-pool/c1/p1";

#[test]
fn of_a_removed_account_only_what_is_owed_is_shown_and_no_name_is_taken() {
    run(async {
        let world = stopped().await;
        world.apply(&without("do-main")).await;
        let all = [ORDERS, POOL, "hz-eu/server/11"];
        assert_eq!(printed(&world, &["status"]).await, all);
        let left = printed(&world, &["status", "--account", "do-main"]).await;
        assert_eq!(left, [ORDERS, DROPLET, POOL]);

        // Another resource has the same name as one of those left.
        let mut server = world.record("hz-eu/server/11").await;
        server.name = "web".to_owned();
        world.local.store().save(server).await.unwrap();
        assert_eq!(printed(&world, &["status", "web"]).await, ["hz-eu/server/11"]);
        let (_, shown) = command(&world, &["status", "do-main/droplet/1"]).await;
        assert!(shown.contains("stopped"), "{shown}");
        let (code, shown) = command(&world, &["history", "web"]).await;
        assert_eq!(code, Some(0), "{shown}");
        let (code, shown) = command(&world, &["why", "--full", "general"]).await;
        assert_eq!(code, Some(3), "{shown}");
        assert!(shown.contains("`offhours forget do-main/node-pool/c1/p1`"), "{shown}");
    });
}

#[test]
fn what_a_removed_account_has_left_is_forgotten_and_what_it_is_owed_goes_to_history() {
    run(async {
        let world = stopped().await;
        world.start_now(&json!({ "resources": [POOL] })).await;
        world.apply(&without("do-main")).await;
        let store = world.local.store();
        let owed = world.record(ORDERS).await.saved;
        assert!(owed.is_some());

        let rehearsed = printed(&world, &["forget", "--dry-run", ORDERS, DROPLET, ORDERS]).await;
        assert_eq!(rehearsed, [ORDERS, DROPLET]);
        let (code, shown) = command(&world, &["forget", ORDERS]).await;
        assert_eq!(code, Some(2), "{shown}");
        assert!(shown.contains("1 x db-s-2vcpu-4gb") && shown.contains("--yes"), "{shown}");
        assert!(store.record(&reference(ORDERS)).await.unwrap().is_some());

        // Nothing follows what is in flight there.
        assert!(world.record(POOL).await.in_flight().is_some());
        world.run_until(monday("18:36:00")).await;
        let (code, shown) = command(&world, &["forget", "--yes", ORDERS, DROPLET, POOL]).await;
        assert_eq!(code, Some(0), "{shown}");
        assert!(
            shown.contains("1 x db-s-2vcpu-4gb is in `offhours history` for 90 days"),
            "{shown}"
        );
        let store = world.local.store();
        for gone in [ORDERS, DROPLET, POOL] {
            assert_eq!(store.record(&reference(gone)).await.unwrap(), None);
        }
        let history = world.history(ORDERS).await;
        let given_up = history.iter().find(|entry| entry.ending == Ending::Forgotten);
        let given_up = given_up.unwrap();
        let by = "platform/ada@example.com (ada)".to_owned();
        assert_eq!((&given_up.saved, &given_up.cause), (&owed, &Cause::Manual { by }));
        assert_eq!(printed(&world, &["status"]).await, ["hz-eu/server/11"]);
    });
}

#[test]
fn what_the_next_inventory_would_find_again_is_forgotten_only_anyway() {
    run(async {
        let world = stopped().await;
        let (code, shown) = command(&world, &["forget", "--yes", ORDERS, DROPLET]).await;
        assert_eq!(code, Some(2), "{shown}");
        for words in ["nothing was forgotten", ORDERS, DROPLET, "--anyway"] {
            assert!(shown.contains(words), "{words}: {shown}");
        }
        assert!(world.record(ORDERS).await.saved.is_some());

        let forget = ["forget", "--yes", "--anyway", ORDERS];
        world.start_now(&json!({ "resources": [ORDERS] })).await;
        world.run_until(monday("18:33:00")).await;
        let (code, shown) = command(&world, &forget).await;
        assert_eq!(code, Some(2), "{shown}");
        assert!(shown.contains("It is starting: wait until that has ended"), "{shown}");
        world.run_until(monday("18:50:00")).await;
        let (code, shown) = command(&world, &forget).await;
        assert_eq!(code, Some(0), "{shown}");
        world.run_until(monday("18:56:00")).await;
        assert_eq!(world.record(ORDERS).await.saved, None);
    });
}

/// Puts records back where they were, as if the apply had ended after its commit.
async fn take_back(world: &World, old: Vec<Record>) {
    let client = world.engine.client();
    for record in old {
        let renamed = format!("do-new/{}", record.reference.id);
        let delete = client.delete_item().table_name(tables().resources);
        let delete = delete.set_key(Some(item::record_key(&reference(&renamed))));
        delete.send().await.unwrap();
        let revision = Revision::default();
        let store = world.local.store();
        store.save(Record { revision, ..record }).await.unwrap();
    }
}
