//! Everything that is stored, read and restored.

use domain::configuration::Generation;
use store::{Store, StoreError, StoredItem};

use crate::{
    fixtures::{apply_office_hours, monday, stopped_on_friday},
    world::World,
};

async fn everything(store: &Store) -> Vec<StoredItem> {
    let mut items = Vec::new();
    let read = store.each_item::<StoreError>(|item| {
        items.push(item);
        Ok(())
    });
    read.await.unwrap();
    items
}

#[tokio::test]
async fn a_restored_store_has_every_item_as_it_was() {
    let world = World::new().await;
    apply_office_hours(&world.store()).await;
    // More than one batch.
    for id in 1..40 {
        world.store().save(stopped_on_friday(id)).await.unwrap();
    }
    let items = everything(&world.store()).await;
    let restored = World::new().await;
    let (store, _) = restored.process();
    store.restore(items.iter().cloned().map(Ok::<_, StoreError>)).await.unwrap();
    let tables = World::tables();
    for table in [&tables.resources, &tables.schedules, &tables.accounts, &tables.history] {
        assert_eq!(restored.items(table).await, world.items(table).await, "{table}");
    }
}

#[tokio::test]
async fn nothing_is_in_force_until_all_of_a_backup_is_restored() {
    let world = World::new().await;
    apply_office_hours(&world.store()).await;
    // More than one batch.
    for id in 1..40 {
        world.store().save(stopped_on_friday(id)).await.unwrap();
    }
    let mut items = everything(&world.store()).await;
    let is_head =
        |one: &StoredItem| one.item.get("generation_key").is_some_and(|key| key == "head");
    items.sort_by_key(|one| !is_head(one));
    let store = World::new().await.store();
    let whole = items.iter().cloned().map(Ok);
    let cut_off = whole.clone().chain([Err(StoreError::NoGeneration(Generation(9)))]);
    store.restore(cut_off).await.unwrap_err();
    assert_eq!(store.head().await.unwrap().generation, Generation(0));
    store.restore(whole).await.unwrap();
    assert_eq!(store.head().await.unwrap().generation, Generation(1));
    assert_eq!(store.head().await.unwrap().applied_at, Some(monday()));
}
