//! Cost follows the work: the requests that a tick sends to the store.

use store::AccountState;

use crate::{
    accounts::{account, rate},
    fixtures::{apply_office_hours, due_server, monday},
    world::World,
};

#[tokio::test]
async fn a_tick_with_nothing_due_asks_three_times() {
    let world = World::new().await;
    let (store, wire) = world.process();
    apply_office_hours(&store).await;
    let later = monday() + jiff::SignedDuration::from_secs(1);
    for number in 0..20 {
        store.save(due_server(number, later)).await.unwrap();
    }
    store.in_force().await.unwrap();
    wire.sent();

    let head = store.head_and_overrides().await.unwrap().head;
    assert_eq!(wire.operations(), ["Query"; 2]);
    assert_eq!(store.due(monday()).await.unwrap().read, []);
    assert_eq!(wire.operations(), ["Query"]);
    store.configuration_of(&head).await.unwrap();
    assert_eq!(wire.operations(), [""; 0]);
}

#[tokio::test]
async fn a_configuration_is_read_once_by_a_process_and_its_copies() {
    let world = World::new().await;
    apply_office_hours(&world.store()).await;
    let (reader, wire) = world.process();
    // The head, the overrides, and one query to each of the two tables that hold a generation.
    reader.in_force().await.unwrap();
    assert_eq!(wire.operations(), ["Query"; 4]);
    reader.clone().in_force().await.unwrap();
    assert_eq!(wire.operations(), ["Query"; 2]);
}

#[tokio::test]
async fn a_record_costs_one_request_to_read_and_one_to_write() {
    let world = World::new().await;
    let (store, wire) = world.process();
    let saved = store.save(due_server(1, monday())).await.unwrap();
    assert_eq!(wire.operations(), ["PutItem"]);
    store.record(&saved.reference).await.unwrap();
    assert_eq!(wire.operations(), ["GetItem"]);
    store.due(monday()).await.unwrap();
    assert_eq!(wire.operations(), ["Query"]);
}

#[tokio::test]
async fn an_accounts_state_costs_one_request_and_a_second_where_a_later_rate_is_known() {
    let world = World::new().await;
    let (store, wire) = world.process();
    let state = AccountState { rate: Some(rate(100, 0)), ..AccountState::unknown(account()) };
    store.save_account_state(&state).await.unwrap();
    assert_eq!(wire.operations(), ["UpdateItem"]);
    store.save_rate(&account(), rate(50, 1)).await.unwrap();
    assert_eq!(wire.operations(), ["UpdateItem"]);
    store.save_account_state(&state).await.unwrap();
    assert_eq!(wire.operations(), ["UpdateItem"; 2]);
}
