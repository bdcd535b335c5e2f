use domain::AccountName;

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
    let store = World::new().await.store();
    let time = store.clock().await.unwrap().unwrap();
    let machine = environment::Clock::machine().now();
    assert!(machine.duration_since(time).abs() < jiff::SignedDuration::from_mins(1));
}
