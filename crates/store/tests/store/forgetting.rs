//! Deleting a record for a person.

use domain::{
    hibernation::{Hibernation, Manifest},
    record::{Cause, Ending, Record},
    resource::SavedState,
};
use store::StoreError;

use crate::{
    fixtures::{history, monday, pool_in_flight, reference},
    world::World,
};

async fn saved(world: &World) -> Record {
    world.store().save(pool_in_flight()).await.unwrap()
}

#[tokio::test]
async fn the_record_goes_and_what_it_is_owed_is_in_history() {
    let world = World::new().await;
    let record = saved(&world).await;
    let store = world.store();
    store.forget(&record, "ada", monday()).await.unwrap();
    assert_eq!(store.record(&record.reference).await.unwrap(), None);
    let history = history(&store, &record.reference).await;
    let [entry] = history.as_slice() else {
        panic!("{history:?}");
    };
    let owed: &Option<SavedState> = &record.saved;
    assert!(owed.is_some());
    assert_eq!((&entry.ending, &entry.saved), (&Ending::Forgotten, owed));
    let by = "ada".to_owned();
    assert_eq!(entry.cause, Cause::Manual { by });
    // Once more, as after a lost answer.
    store.forget(&record, "ada", monday()).await.unwrap();
}

#[tokio::test]
async fn history_says_how_to_recreate_a_machine_whose_record_is_gone() {
    let world = World::new().await;
    let mut kept = Hibernation::of(reference("hz-eu/server/1").id);
    kept.present = None;
    kept.manifest = Some(Manifest { name: "build".to_owned(), ..Manifest::default() });
    let record = Record { hibernation: Some(Box::new(kept)), ..pool_in_flight() };
    let store = world.store();
    let record = store.save(record).await.unwrap();
    store.forget(&record, "ada", monday()).await.unwrap();
    let history = history(&store, &record.reference).await;
    assert_eq!(history[0].hibernation, record.hibernation);
}

#[tokio::test]
async fn a_record_that_another_writer_changed_stays_and_history_has_nothing() {
    let world = World::new().await;
    let seen = saved(&world).await;
    let store = world.store();
    let changed = store.save(seen.clone()).await.unwrap();
    let refused = store.forget(&seen, "ada", monday()).await;
    let Err(StoreError::Stale { current }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(current.as_deref(), Some(&changed));
    assert_eq!(store.record(&seen.reference).await.unwrap(), Some(changed));
    assert_eq!(history(&store, &seen.reference).await, []);
}
