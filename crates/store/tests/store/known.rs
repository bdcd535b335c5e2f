use domain::AccountName;
use environment::aws::local_config;
use local::engine::Engine;
use store::Store;

use crate::{fixtures::apply_office_hours, world::World};

fn account() -> AccountName {
    "hz-eu".parse().unwrap()
}

#[tokio::test]
async fn accounts_that_were_configured_once_are_remembered() {
    let store = World::new().await.store();
    apply_office_hours(&store).await;
    let gone: AccountName = "gone".parse().unwrap();
    let state = store::AccountState::unknown(gone.clone());
    store.save_account_state(&state).await.unwrap();
    let accounts = store.accounts().await.unwrap();
    assert!(accounts.contains(&gone), "{accounts:?}");
    assert!(accounts.contains(&account()), "{accounts:?}");
}

#[tokio::test]
async fn the_store_gives_the_time_before_anything_was_applied() {
    // Inside the process, both have the same clock.
    let store = World::new().await.store();
    assert_eq!(store.clock().await.unwrap(), None);

    let engine = testing::serve(Engine::in_memory().unwrap()).await;
    let config = local_config(&format!("http://{engine}"));
    let store = Store::connect(&config, World::tables());
    store.create_tables().await.unwrap();
    let time = store.clock().await.unwrap().unwrap();
    let machine = environment::Clock::machine().now();
    assert!(machine.duration_since(time).abs() < jiff::SignedDuration::from_mins(1));
}
