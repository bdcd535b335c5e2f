use domain::{
    configuration::{Override, Target},
    record::Record,
    schedule::Wish,
};
use jiff::SignedDuration;

use crate::{
    fixtures::{at, monday, office_hours_name, reference, stopped_on_friday, with_office_hours},
    world::World,
};

fn running(target: Target, hours: i64) -> Override {
    Override {
        target,
        wish: Wish::Running,
        set_at: monday(),
        ends_at: monday() + SignedDuration::from_hours(hours),
        by: "ada".to_owned(),
        why: Some("a demonstration".to_owned()),
    }
}

fn of_server(number: usize) -> Target {
    Target::Resource(reference(&format!("hz-eu/server/{number}")))
}

fn of_schedule() -> Target {
    Target::Schedule(office_hours_name())
}

#[tokio::test]
async fn overrides_and_the_head_are_read_in_one_request() {
    let world = World::new().await;
    let (store, wire) = world.process();
    store
        .apply(&with_office_hours(), "ada", monday())
        .await
        .unwrap();
    let set = [running(of_server(1), 1), running(of_schedule(), 2)];
    for one in &set {
        store.set_override(one, monday()).await.unwrap();
    }
    wire.sent();
    let present = store.present().await.unwrap();
    assert_eq!(wire.operations(), ["Query"]);
    assert_eq!(present.head.generation.0, 1);
    let read: Vec<_> = present.overrides.iter().cloned().collect();
    assert_eq!(read, set);
}

#[tokio::test]
async fn an_override_replaces_the_one_of_its_target_alone() {
    let store = World::new().await.store();
    let kept = running(of_server(2), 3);
    for one in [&running(of_server(1), 1), &kept] {
        store.set_override(one, monday()).await.unwrap();
    }
    let ended = Override {
        wish: Wish::Stopped,
        ends_at: monday(),
        why: None,
        ..running(of_server(1), 0)
    };
    store.set_override(&ended, monday()).await.unwrap();
    let overrides = store.in_force().await.unwrap().overrides;
    assert_eq!(overrides.of(&of_server(1)), Some(&ended));
    assert_eq!(overrides.of(&of_server(2)), Some(&kept));
    assert_eq!(overrides.iter().count(), 2);
}

#[tokio::test]
async fn an_override_outlives_an_apply() {
    let store = World::new().await.store();
    let set = running(of_schedule(), 1);
    store.set_override(&set, monday()).await.unwrap();
    store
        .apply(&with_office_hours(), "ada", monday())
        .await
        .unwrap();
    let in_force = store.in_force().await.unwrap();
    assert_eq!(in_force.overrides.of(&of_schedule()), Some(&set));
    assert_eq!(in_force.configuration.generation.0, 1);
}

#[tokio::test]
async fn setting_an_override_makes_the_records_of_its_target_due() {
    let store = World::new().await.store();
    store
        .apply(&with_office_hours(), "ada", monday())
        .await
        .unwrap();
    let opening = at("2026-06-15T08:00:00Z");
    for number in [1, 2] {
        let waiting = Record {
            due_at: Some(opening),
            ..stopped_on_friday(number)
        };
        store.save(waiting).await.unwrap();
    }
    let now = monday() + SignedDuration::from_secs(1);
    store
        .set_override(&running(of_server(1), 12), now)
        .await
        .unwrap();
    let due = store.due(now).await.unwrap();
    let due: Vec<_> = due.iter().map(|r| (&*r.provider_id, r.due_at)).collect();
    assert_eq!(due, [("1", Some(now))]);

    store
        .set_override(&running(of_schedule(), 12), now)
        .await
        .unwrap();
    assert_eq!(store.due(now).await.unwrap().len(), 2);
}

#[tokio::test]
async fn clearing_ends_an_active_override_now_and_keeps_it() {
    let store = World::new().await.store();
    let target = of_server(1);
    let noon = at("2026-06-15T12:00:00Z");
    assert_eq!(store.clear_override(&target, noon).await.unwrap(), None);
    let set = running(target.clone(), 24);
    store.set_override(&set, noon).await.unwrap();
    let cleared = store.clear_override(&target, noon).await.unwrap();
    assert_eq!(cleared, Some(set.clone()));
    let kept = store.present().await.unwrap().overrides;
    let kept = kept.of(&target).unwrap();
    assert_eq!(kept.ends_at, noon);
    assert_eq!(kept.by, set.by);
    assert_eq!(store.clear_override(&target, noon).await.unwrap(), None);
}
